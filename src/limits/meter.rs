//! Meters: what a rule has counted, which outlives the rule's amounts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{
    Limited, Stage,
    clock::Clock,
    fair_semaphore::FairSemaphore,
    meter_map::{Entry, Key, MeterMap, Whose},
    quota::{Days, Tally},
    rate::{Due, Pace},
    rule::{Amount, Rule},
};
use crate::metrics::{Refusal, RuleLabels, instruments, overflowed};

/// A rule and its meter.
#[derive(Debug, Clone)]
pub(super) struct Metered(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rule: Rule,
    name: Arc<str>,
    labels: RuleLabels,
    asks: Asks,
    meter: Meter,
    counts: Arc<Counts>,
}

/// How a rule asks its meter.
#[derive(Debug)]
enum Asks {
    Rate(Pace),
    Daily(Days),
    Concurrency,
}

/// What is kept for each key of a rule.
#[derive(Debug, Clone)]
pub(super) enum Meter {
    Rate(Arc<MeterMap<Due>>),
    Daily(Arc<MeterMap<Tally>>),
    Concurrency(Arc<MeterMap<Arc<FairSemaphore>>>),
}

/// How often a rule has said what.
#[derive(Debug, Default)]
struct Counts {
    admitted: AtomicU64,
    refused: AtomicU64,
}

/// What operators see of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleStatus {
    /// How it is called in refusals.
    pub name: Arc<str>,
    /// Calls that it let through, since its meters began.
    pub admitted: u64,
    /// Calls that it refused.
    pub refused: u64,
    /// Keys that it keeps meters for.
    pub keys: usize,
}

impl Metered {
    /// A rule with the meter of `before`, or a new one for about so many keys.
    pub(super) fn new(rule: &Rule, before: Option<&Self>, keys: usize, clock: Clock) -> Self {
        let name: Arc<str> = rule.to_string().into();
        let labels = RuleLabels::of(&name);
        let meter = before.map_or_else(
            || match rule.amount {
                Amount::Rate(_) => Meter::Rate(Arc::new(MeterMap::new(keys, clock))),
                Amount::Daily(_) => Meter::Daily(Arc::new(MeterMap::new(keys, clock))),
                Amount::Concurrency(_) => Meter::Concurrency(Arc::new(MeterMap::new(keys, clock))),
            },
            |before| before.0.meter.clone(),
        );
        let asks = match (rule.amount, &meter) {
            (Amount::Rate(rate), Meter::Rate(map)) => {
                Asks::Rate(Pace::new(rate, map.clone(), clock, labels.clone()))
            }
            (Amount::Daily(most), Meter::Daily(map)) => {
                Asks::Daily(Days::new(most, map.clone(), clock, labels.clone()))
            }
            // Rules share a meter only where they count the same.
            (Amount::Rate(_) | Amount::Daily(_) | Amount::Concurrency(_), _) => Asks::Concurrency,
        };
        let counts = before.map_or_else(Arc::default, |before| before.0.counts.clone());
        Self(Arc::new(Inner {
            rule: rule.clone(),
            name,
            labels,
            asks,
            meter,
            counts,
        }))
    }

    pub(super) fn rule(&self) -> &Rule {
        &self.0.rule
    }

    /// Counts a call of this key.
    ///
    /// # Errors
    /// How long it has to wait.
    pub(super) fn count(&self, key: Key) -> Result<(), Duration> {
        let counted = match &self.0.asks {
            Asks::Rate(pace) => pace.check(key),
            Asks::Daily(days) => days.check(key),
            Asks::Concurrency => Ok(()),
        };
        if counted.is_ok() {
            self.0.counts.admitted.fetch_add(1, Relaxed);
        }
        counted
    }

    /// Takes back what a quota has counted for a call that was refused; a rate is not given back.
    pub(super) fn uncount(&self, key: Key) {
        if let Asks::Daily(days) = &self.0.asks {
            days.uncount(key);
            self.0.counts.admitted.fetch_sub(1, Relaxed);
        }
    }

    /// The seats of this key, if the rule is about calls at once.
    pub(super) fn seats(&self, key: Key) -> Option<Arc<FairSemaphore>> {
        match &self.0.meter {
            Meter::Concurrency(map) => Some(map.with(key, |seats, whose| {
                if whose == Whose::Shared {
                    overflowed(&self.0.labels);
                }
                seats.clone()
            })),
            Meter::Rate(_) | Meter::Daily(_) => None,
        }
    }

    /// A call was seated.
    pub(super) fn seated(&self) {
        self.0.counts.admitted.fetch_add(1, Relaxed);
    }

    /// A call was seated after it had waited.
    pub(super) fn waited(&self, time: Duration) {
        self.seated();
        instruments().waited(&self.0.labels, time.as_secs_f64());
    }

    /// The refusal, which is counted.
    pub(super) fn refuse(&self, stage: Stage, retry: Duration) -> Limited {
        let refusal = match self.0.rule.amount {
            Amount::Rate(_) => Refusal::Rate,
            Amount::Daily(_) => Refusal::Quota,
            Amount::Concurrency(_) => Refusal::Overload,
        };
        self.0.counts.refused.fetch_add(1, Relaxed);
        instruments().refused(&self.0.labels, refusal);
        Limited {
            rule: self.0.name.clone(),
            refusal,
            retry,
            stage,
            whole: false,
        }
    }

    pub(super) fn status(&self) -> RuleStatus {
        RuleStatus {
            name: self.0.name.clone(),
            admitted: self.0.counts.admitted.load(Relaxed),
            refused: self.0.counts.refused.load(Relaxed),
            keys: match &self.0.meter {
                Meter::Rate(map) => map.len(),
                Meter::Daily(map) => map.len(),
                Meter::Concurrency(map) => map.len(),
            },
        }
    }
}

impl Entry for Arc<FairSemaphore> {
    fn now(_: Clock) -> u64 {
        0
    }

    /// Nobody sits, nobody waits, and nobody is about to.
    fn is_fresh(&self, _: u64) -> bool {
        Self::strong_count(self) == 1 && self.is_idle()
    }
}
