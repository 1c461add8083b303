//! How calls to one upstream went since the start: how many, how many failed, how long they took.
//!
//! Guarantees: noting one takes no lock and allocates nothing; memory is [`CLASSES`] counters. Times are told as the upper end
//! of their class, of which there are two for each doubling. Deliberately absent: what changes over time, which metrics show.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Classes of times: two for each doubling of a microsecond, the last is everything from about 35 minutes on.
const CLASSES: usize = 64;

/// The counters of one upstream.
#[derive(Debug)]
pub(super) struct Tally {
    failed: AtomicU64,
    times: [AtomicU64; CLASSES],
}

/// How calls to an upstream went since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that were carried to it, or should have been.
    pub calls: u64,
    /// Those of them that it did not answer: errors of the connection, of the protocol, of its time. That a tool failed, or that
    /// a request was refused by the server, is an answer.
    pub failed: u64,
    /// How long half of the calls took at most, until their answer began. Zero where there were none.
    pub median: Duration,
    /// How long nine of ten took at most.
    pub p90: Duration,
    /// How long ninety-nine of a hundred took at most.
    pub p99: Duration,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            failed: AtomicU64::new(0),
            times: [const { AtomicU64::new(0) }; CLASSES],
        }
    }
}

impl Tally {
    /// A call took so long, and was answered or not.
    pub(super) fn note(&self, took: Duration, answered: bool) {
        if let Some(class) = self.times.get(class(took)) {
            class.fetch_add(1, Relaxed);
        }
        if !answered {
            self.failed.fetch_add(1, Relaxed);
        }
    }

    /// How many calls it answered.
    pub(super) fn answered(&self) -> u64 {
        let all: u64 = self.times.iter().map(|class| class.load(Relaxed)).sum();
        all.saturating_sub(self.failed.load(Relaxed))
    }

    /// How they went.
    pub(super) fn counts(&self) -> Counts {
        let times: Vec<u64> = self.times.iter().map(|class| class.load(Relaxed)).collect();
        let calls: u64 = times.iter().sum();
        let at = |percent: u64| {
            let wanted = (calls * percent).div_ceil(100);
            let mut so_far = 0;
            let class = times.iter().position(|count| {
                so_far += count;
                so_far >= wanted
            });
            match class {
                Some(class) if calls > 0 => end_of(class),
                Some(_) | None => Duration::ZERO,
            }
        };
        Counts {
            calls,
            failed: self.failed.load(Relaxed),
            median: at(50),
            p90: at(90),
            p99: at(99),
        }
    }
}

/// The class of a time.
fn class(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    let doublings = micros.ilog2();
    let upper_half = doublings > 0 && micros >> (doublings - 1) & 1 == 1;
    (2 * doublings as usize + usize::from(upper_half)).min(CLASSES - 1)
}

/// The end of a class.
fn end_of(class: usize) -> Duration {
    let begin = 1_u64 << (class / 2);
    Duration::from_micros(if class.is_multiple_of(2) {
        begin + begin.div_ceil(2)
    } else {
        2 * begin
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_before_the_end_of_its_class_and_not_before_that_of_the_one_before() {
        for micros in [1_u64, 2, 3, 4, 5, 6, 7, 8, 100, 1_500, 999_999, 60_000_000] {
            let time = Duration::from_micros(micros);
            let class = class(time);
            assert!(time < end_of(class), "{micros} in {class}");
            assert!(
                class == 0 || micros < 3 || time >= end_of(class - 1),
                "{micros} in {class}"
            );
        }
        assert_eq!(class(Duration::MAX), CLASSES - 1);
    }

    #[test]
    fn counts_tell_how_most_calls_went() {
        let tally = Tally::default();
        assert_eq!(tally.counts(), Counts::default());
        for _ in 0..95 {
            tally.note(Duration::from_millis(2), true);
        }
        for _ in 0..5 {
            tally.note(Duration::from_millis(200), false);
        }
        let counts = tally.counts();
        assert_eq!((counts.calls, counts.failed), (100, 5));
        assert!(counts.median < Duration::from_millis(4), "{counts:?}");
        assert_eq!(counts.median, counts.p90);
        assert!(counts.p99 > Duration::from_millis(190), "{counts:?}");
    }
}
