//! Quotas: so many in a UTC day. A day begins at midnight for everybody, whenever its first call came.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{
    clock::Clock,
    meter_map::{Entry, Key, MeterMap, Whose},
};
use crate::metrics::{RuleLabels, overflowed};

/// The most that a quota may be: what an entry counts has to fit beside its day.
pub(super) const MOST: u64 = (1 << COUNT_BITS) - 1;

const COUNT_BITS: u32 = 40;

/// A day in the upper 24 bits, what was counted on it in the lower 40.
#[derive(Debug, Default)]
pub(super) struct Tally(AtomicU64);

impl Entry for Tally {
    fn now(clock: Clock) -> u64 {
        clock.day().0
    }

    fn is_fresh(&self, today: u64) -> bool {
        of_day(self.0.load(Relaxed), today) & MOST == 0
    }
}

/// A quota over a map.
#[derive(Debug)]
pub(super) struct Days {
    most: u64,
    map: Arc<MeterMap<Tally>>,
    clock: Clock,
    labels: RuleLabels,
}

impl Days {
    pub(super) fn new(
        most: u64,
        map: Arc<MeterMap<Tally>>,
        clock: Clock,
        labels: RuleLabels,
    ) -> Self {
        Self {
            most: most.min(MOST),
            map,
            clock,
            labels,
        }
    }

    /// Counts a call of this key.
    ///
    /// # Errors
    /// How long the day still lasts.
    pub(super) fn check(&self, key: Key) -> Result<(), Duration> {
        let (day, left) = self.clock.day();
        self.meet(key, |tally| {
            let counted = tally
                .0
                .fetch_update(Relaxed, Relaxed, |before| {
                    let before = of_day(before, day);
                    (before & MOST < self.most).then_some(before + 1)
                })
                .is_ok();
            if counted { Ok(()) } else { Err(left) }
        })
    }

    /// Takes back a call that was counted today and then refused by another rule.
    pub(super) fn uncount(&self, key: Key) {
        let (day, _) = self.clock.day();
        self.meet(key, |tally| {
            let _none = tally.0.fetch_update(Relaxed, Relaxed, |before| {
                (before >> COUNT_BITS == day && before & MOST > 0).then(|| before - 1)
            });
        });
    }

    fn meet<R>(&self, key: Key, act: impl FnOnce(&Tally) -> R) -> R {
        self.map.with(key, |tally, whose| {
            if whose == Whose::Shared {
                overflowed(&self.labels);
            }
            act(tally)
        })
    }
}

/// What an entry says of a day: nothing was counted yet if it is of another.
const fn of_day(entry: u64, day: u64) -> u64 {
    if entry >> COUNT_BITS == day {
        entry
    } else {
        day << COUNT_BITS
    }
}
