//! The clocks of meters: nanoseconds since the limits were first made, which `tokio::time` can stop for tests, and the day.

use std::time::Duration;

use tokio::time::Instant;

use crate::seal::unix_seconds;

/// Seconds of a day (UTC has no leap seconds here: they are smeared or stepped, and a day's quota does not mind).
const DAY: u64 = 86_400;

/// One for all meters of a process: those that outlive a reload go on with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    opened: Instant,
    /// Where the time of day comes from.
    seconds: fn() -> u64,
}

impl Clock {
    /// Starts now; the time of day is the system's.
    pub(super) fn start() -> Self {
        Self::with(unix_seconds)
    }

    /// Starts now; the time of day is told in seconds since 1970, UTC.
    pub(super) fn with(seconds: fn() -> u64) -> Self {
        Self {
            opened: Instant::now(),
            seconds,
        }
    }

    /// Nanoseconds since the start. Monotonic: jumps of the time of day change nothing (SECURITY REL-9).
    pub(super) fn nanos(self) -> u64 {
        u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The number of this UTC day, and how long it still lasts.
    pub(super) fn day(self) -> (u64, Duration) {
        let now = (self.seconds)();
        (now / DAY, Duration::from_secs(DAY - now % DAY))
    }
}
