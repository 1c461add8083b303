//! Moments that are put off while others read them: when a list was known to be so, and until when it may be kept.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// A moment that may be put off, by whom it may be read meanwhile. `None`: not at all.
#[derive(Debug, Default)]
pub(super) struct Moment {
    at: Option<Instant>,
    /// Put off by so many milliseconds.
    later: AtomicU64,
}

impl Moment {
    pub(super) const fn new(at: Option<Instant>) -> Self {
        Self {
            at,
            later: AtomicU64::new(0),
        }
    }

    pub(super) fn get(&self) -> Option<Instant> {
        let later = Duration::from_millis(self.later.load(Ordering::Relaxed));
        self.at.and_then(|at| at.checked_add(later))
    }

    /// Puts it off until `to`, if it is a moment at all and before that.
    pub(super) fn confirm(&self, to: Instant) {
        if let Some(at) = self.at {
            let later = to.saturating_duration_since(at).as_millis();
            let later = u64::try_from(later).unwrap_or(u64::MAX);
            self.later.fetch_max(later, Ordering::Relaxed);
        }
    }
}
