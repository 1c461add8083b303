//! Rates: so many in a period, and so many at once after a pause.
//! `governor` decides; what it remembers is in a map of ours, which is bounded and outlives a change of the rate.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use governor::{
    Quota, RateLimiter, clock, middleware::NoOpMiddleware, nanos::Nanos, state::StateStore,
};

use super::{
    clock::Clock,
    meter_map::{Entry, Key, MeterMap, Whose},
};
use crate::metrics::{RuleLabels, overflowed};

/// So many calls in a period, evenly spaced, and `burst` at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// At least 1.
    pub calls: u32,
    /// In which time; at least a nanosecond for each call.
    pub period: Duration,
    /// At least 1, at most what is earned within [`Rate::LONGEST`]: more counts as that.
    pub burst: u32,
}

impl Rate {
    /// The longest that a burst may take to be earned.
    pub const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

    /// The most calls at once where one is earned in `each`.
    pub fn most_at_once(each: Duration) -> u32 {
        let most = Self::LONGEST.as_nanos() / each.as_nanos().max(1);
        u32::try_from(most).unwrap_or(u32::MAX).max(1)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.period.as_secs() {
            60 => "min",
            3_600 => "h",
            86_400 => "d",
            _ => "s",
        };
        write!(f, "{}/{unit}", self.calls)?;
        if self.burst == self.calls {
            return Ok(());
        }
        write!(f, ", burst {},", self.burst)
    }
}

/// When a key's next call is due by the rate alone, in nanoseconds since the clock's start: all that is remembered of it.
#[derive(Debug, Default)]
pub(super) struct Due(AtomicU64);

impl Entry for Due {
    fn now(clock: Clock) -> u64 {
        clock.nanos()
    }

    fn is_fresh(&self, now: u64) -> bool {
        self.0.load(Relaxed) <= now
    }
}

/// A rate over a map.
pub(super) struct Pace {
    limiter: RateLimiter<Key, Store, Ticks, NoOpMiddleware<Nanos>>,
    clock: Clock,
}

/// What `governor` keeps its state in.
struct Store {
    map: Arc<MeterMap<Due>>,
    labels: RuleLabels,
}

/// Stands at zero until it is set going, so that each limiter counts from the start of the clock: entries of one map must
/// mean the same to the limiter before a reload and to the one after.
struct Ticks(OnceLock<Clock>);

impl Pace {
    /// A rate whose meters are in `map`, which must have been written by this clock alone.
    pub(super) fn new(
        rate: Rate,
        map: Arc<MeterMap<Due>>,
        clock: Clock,
        labels: RuleLabels,
    ) -> Self {
        let at_least_one = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let each = rate.period / at_least_one(rate.calls).get();
        let quota = Quota::with_period(each.max(Duration::from_nanos(1)))
            .unwrap_or(Quota::per_second(NonZeroU32::MIN))
            .allow_burst(at_least_one(rate.burst.min(Rate::most_at_once(each))));
        let store = Store { map, labels };
        let limiter = RateLimiter::new(quota, store, Ticks(OnceLock::new()));
        let _unset = limiter.clock().0.set(clock);
        Self { limiter, clock }
    }

    /// Counts a call of this key.
    ///
    /// # Errors
    /// How long it has to wait.
    pub(super) fn check(&self, key: Key) -> Result<(), Duration> {
        self.limiter
            .check_key(&key)
            .map_err(|until| until.wait_time_from(Nanos::new(self.clock.nanos())))
    }
}

impl StateStore for Store {
    type Key = Key;

    fn measure_and_replace<T, F, E>(&self, key: &Key, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.map.with(*key, |due, whose| {
            if whose == Whose::Shared {
                overflowed(&self.labels);
            }
            let mut before = due.0.load(Relaxed);
            loop {
                // Zero is the start of the clock, at which nothing was due: the same as a key that was never here.
                let (outcome, after) = f(Some(Nanos::new(before)))?;
                match due
                    .0
                    .compare_exchange_weak(before, after.as_u64(), Relaxed, Relaxed)
                {
                    Ok(_) => return Ok(outcome),
                    Err(now) => before = now,
                }
            }
        })
    }
}

impl clock::Clock for Ticks {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(self.0.get().map_or(0, |clock| clock.nanos()))
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pace")
    }
}
