//! Limits: how much of the gateway one caller may have (PRODUCT 10, SECURITY 5.9 and 6).
//!
//! Guarantees: rules swap and meters stay, those of a rule that is asked the same way (only how much it lets through may
//! have changed); memory is bounded under unbounded keys (`meter_map`); nothing is allocated and no lock is taken where no
//! rule applies; among principals that wait for the same thing turns are taken (`seats`). A refusal names its rule and
//! says when to try again. What a later rule refuses has still counted with rates asked before it, but not with quotas.
//! Deliberately absent: what a refusal looks like on the wire, and groups that a credential does not name.

mod clock;
mod fair_semaphore;
mod meter;
mod meter_map;
mod quota;
mod rate;
mod rule;
mod subject;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    call::Principal,
    metrics::{self, Bound, Refusal},
};

pub use fair_semaphore::{FairSemaphore, FairSlot, Full, Room};
pub use meter::RuleStatus;
pub use rate::Rate;
pub use rule::{Amount, Concurrency, Dimension, Glob, Pattern, Rule};
pub use subject::Subject;

use clock::Clock;
use meter::Metered;
use meter_map::{Keys, MeterMap};

/// What is configured: the fixed bounds of calls in flight, and rules.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRules {
    /// Fixed bounds.
    pub in_flight: InFlight,
    /// In order of the file. No two that meter alike.
    pub rules: Vec<Rule>,
    /// About how many keys each rule keeps meters for. Default 100,000, which is about 3 MB for a rate or a quota and 20 MB
    /// for calls at once, when all are in use. Counts where a rule is new.
    pub keys: usize,
}

/// How many requests may be in flight: accepted, and not yet answered to the end. Listens are bounded for themselves. Whoever
/// comes in where nobody is asked for a name is bounded by the process alone: that principal is everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// Of one principal. Default 512 (SECURITY 6).
    pub principal: usize,
    /// Of one principal to one upstream. Default 256.
    pub principal_upstream: usize,
    /// In the process. Default 16,384.
    pub process: usize,
}

/// How far a call has come when it is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was looked up.
    Entry,
    /// It has found its way, and may take it.
    Route,
}

/// The limits in force: cheap to ask, swapped as a whole.
#[derive(Debug)]
pub struct Limits {
    rules: LimitRules,
    /// Rules that are asked at entry, and those that are asked on the way. In order of the file.
    entry: Asked,
    route: Asked,
    fixed: Fixed,
    keys: Keys,
    clock: Clock,
}

/// Rules of one stage, by how they are asked: rates first, so that what they refuse leaves quotas alone.
#[derive(Debug, Default)]
struct Asked {
    counted: Vec<Metered>,
    seated: Vec<Metered>,
}

/// The meters of the fixed bounds.
#[derive(Debug, Clone)]
struct Fixed {
    process: Arc<FairSemaphore>,
    principals: Arc<MeterMap<Arc<FairSemaphore>>>,
    ways: Arc<MeterMap<Arc<FairSemaphore>>>,
}

/// A call that has to wait or to go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("over the limit of {rule}")]
pub struct Limited {
    /// Which rule or bound, in words for whoever is refused.
    pub rule: Arc<str>,
    /// The sort of refusal.
    pub refusal: Refusal,
    /// After what time it makes sense to try again.
    pub retry: Duration,
    /// Whether it is about a tool or an upstream rather than about requests as such.
    pub stage: Stage,
    /// Whether it is the whole process that has no room, and not the caller who has too much.
    pub whole: bool,
}

/// What a call that is under way holds; dropping it gives all of it back.
#[derive(Debug, Default)]
pub struct HeldSlots {
    // Nothing is allocated for the bounds that every call meets.
    fixed: [Option<FairSlot>; 2],
    more: Vec<FairSlot>,
}

/// What becomes of a call that wants to be under way.
#[derive(Debug)]
pub enum Acquired {
    /// It is.
    Now(HeldSlots),
    /// It has to wait.
    Later(Waiting),
}

/// A call that waits for its turn.
#[derive(Debug)]
pub struct Waiting {
    held: HeldSlots,
    who: Principal,
    /// What it still needs, in order.
    lines: Vec<InLine>,
    stage: Stage,
}

#[derive(Debug)]
struct InLine {
    seats: Arc<FairSemaphore>,
    rule: Metered,
    terms: Concurrency,
}

/// What the bounds are called of which there are many.
const OF_ONE: &str = "requests in flight of one principal";
const TO_ONE: &str = "requests in flight of one principal to one server";

/// How soon it makes sense to try again where there are too many at once.
const SOON: Duration = Duration::from_secs(1);

impl Default for LimitRules {
    fn default() -> Self {
        Self {
            in_flight: InFlight::default(),
            rules: Vec::new(),
            keys: 100_000,
        }
    }
}

impl Default for InFlight {
    fn default() -> Self {
        Self {
            principal: 512,
            principal_upstream: 256,
            process: 16_384,
        }
    }
}

impl Limits {
    /// The limits that are configured so, with meters that nobody has used.
    pub fn new(rules: LimitRules) -> Self {
        Self::with(rules, Clock::start())
    }

    fn with(rules: LimitRules, clock: Clock) -> Self {
        let fixed = Fixed {
            process: Arc::default(),
            principals: Arc::new(MeterMap::new(rules.keys, clock)),
            ways: Arc::new(MeterMap::new(rules.keys, clock)),
        };
        Self::build(rules, fixed, Keys::default(), clock, &[])
    }

    /// Other rules with the meters of these: a rule that is asked the same way goes on with what it has counted.
    #[must_use]
    pub fn swapped(&self, rules: LimitRules) -> Self {
        let known: Vec<&Metered> = [&self.entry, &self.route]
            .into_iter()
            .flat_map(|asked| asked.counted.iter().chain(&asked.seated))
            .collect();
        let (fixed, keys) = (self.fixed.clone(), self.keys.clone());
        Self::build(rules, fixed, keys, self.clock, &known)
    }

    fn build(
        rules: LimitRules,
        fixed: Fixed,
        keys: Keys,
        clock: Clock,
        known: &[&Metered],
    ) -> Self {
        let (mut entry, mut route) = (Asked::default(), Asked::default());
        for rule in &rules.rules {
            let before = known.iter().find(|other| other.rule().meters_like(rule));
            let metered = Metered::new(rule, before.copied(), rules.keys, clock);
            let asked = if rule.needs_route() {
                &mut route
            } else {
                &mut entry
            };
            match rule.amount {
                Amount::Rate(_) | Amount::Daily(_) => asked.counted.push(metered),
                Amount::Concurrency(_) => asked.seated.push(metered),
            }
        }
        for asked in [&mut entry, &mut route] {
            // Stable: otherwise in order of the file.
            asked
                .counted
                .sort_by_key(|metered| matches!(metered.rule().amount, Amount::Daily(_)));
        }
        Self {
            rules,
            entry,
            route,
            fixed,
            keys,
            clock,
        }
    }

    /// What is configured.
    pub const fn rules(&self) -> &LimitRules {
        &self.rules
    }

    /// Whether any rate or quota is asked at this stage: whoever asks need not find out what a call is about otherwise.
    pub fn counts(&self, stage: Stage) -> bool {
        !self.asked(stage).counted.is_empty()
    }

    /// Whether calls at once are bounded by rules at this stage.
    pub fn seats(&self, stage: Stage) -> bool {
        !self.asked(stage).seated.is_empty()
    }

    /// Counts a call with every rate and quota of this stage that it meets.
    ///
    /// # Errors
    /// The first that refuses it; quotas asked before have not counted it then, rates have.
    // SECURITY REL-3
    pub fn admit(&self, stage: Stage, subject: &Subject<'_>) -> Result<(), Limited> {
        let asked = self.asked(stage);
        for (at, metered) in asked.counted.iter().enumerate() {
            let refused = subject.meets(metered.rule()).then(|| {
                subject
                    .keys(metered.rule(), &self.keys)
                    .find_map(|key| metered.count(key).err().map(|wait| (key, wait)))
            });
            let Some(Some((key, wait))) = refused else {
                continue;
            };
            // What came before the refusing key of this rule, and the quotas before this rule.
            let earlier = subject
                .keys(metered.rule(), &self.keys)
                .take_while(|other| *other != key);
            earlier.for_each(|key| metered.uncount(key));
            for metered in &asked.counted[..at] {
                if subject.meets(metered.rule()) {
                    let keys = subject.keys(metered.rule(), &self.keys);
                    keys.for_each(|key| metered.uncount(key));
                }
            }
            return Err(metered.refuse(stage, wait));
        }
        Ok(())
    }

    /// A place under way for a call: with the fixed bounds of this stage, and with every rule on calls at once that it meets.
    ///
    /// # Errors
    /// The bound or rule that has no room and no line.
    pub fn acquire(&self, stage: Stage, subject: &Subject<'_>) -> Result<Acquired, Limited> {
        let mut held = HeldSlots {
            fixed: self.fixed_seats(stage, subject)?,
            more: Vec::new(),
        };
        let mut lines = Vec::new();
        for metered in &self.asked(stage).seated {
            let (Amount::Concurrency(terms), true) =
                (metered.rule().amount, subject.meets(metered.rule()))
            else {
                continue;
            };
            for key in subject.keys(metered.rule(), &self.keys) {
                let Some(seats) = metered.seats(key) else {
                    continue;
                };
                // Whoever waits for one thing takes none of what comes after it.
                let seat = lines.is_empty().then(|| seats.try_take(terms.room()));
                match seat.flatten() {
                    Some(seat) => {
                        metered.seated();
                        held.more.push(seat);
                    }
                    None if terms.queue == 0 && lines.is_empty() => {
                        return Err(metered.refuse(stage, SOON));
                    }
                    None => lines.push(InLine {
                        seats,
                        rule: metered.clone(),
                        terms,
                    }),
                }
            }
        }
        Ok(if lines.is_empty() {
            Acquired::Now(held)
        } else {
            let who = subject.identity.principal.clone();
            Acquired::Later(Waiting {
                held,
                who,
                lines,
                stage,
            })
        })
    }

    fn fixed_seats(
        &self,
        stage: Stage,
        subject: &Subject<'_>,
    ) -> Result<[Option<FairSlot>; 2], Limited> {
        let most = self.rules.in_flight;
        let take = |seats: &Arc<FairSemaphore>, seats_most| {
            seats.try_take(Room {
                seats: seats_most,
                line: 0,
            })
        };
        Ok(match stage {
            Stage::Entry => {
                let process = take(&self.fixed.process, most.process)
                    .ok_or_else(|| bound(Bound::InFlightProcess, "requests in flight", stage))?;
                let principal = subject.named(&self.keys).map(|key| {
                    let principals = &self.fixed.principals;
                    principals
                        .with(key, |seats, _| take(seats, most.principal))
                        .ok_or_else(|| bound(Bound::InFlightPrincipal, OF_ONE, stage))
                });
                [Some(process), principal.transpose()?]
            }
            Stage::Route => {
                let way = subject.named_way(&self.keys).map(|key| {
                    let ways = &self.fixed.ways;
                    ways.with(key, |seats, _| take(seats, most.principal_upstream))
                        .ok_or_else(|| bound(Bound::InFlightPrincipalUpstream, TO_ONE, stage))
                });
                [way.transpose()?, None]
            }
        })
    }

    /// What operators see of each rule, those of the entry first.
    pub fn status(&self) -> Vec<RuleStatus> {
        [&self.entry, &self.route]
            .into_iter()
            .flat_map(|asked| asked.counted.iter().chain(&asked.seated))
            .map(Metered::status)
            .collect()
    }

    /// How many requests are in flight in the process.
    pub fn in_flight(&self) -> usize {
        self.fixed.process.taken()
    }

    const fn asked(&self, stage: Stage) -> &Asked {
        match stage {
            Stage::Entry => &self.entry,
            Stage::Route => &self.route,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(LimitRules::default())
    }
}

impl Waiting {
    /// Waits for its turn, at each line in turn, at most as long as each rule says and never past `deadline`.
    ///
    /// # Errors
    /// The rule whose line was full, or took too long.
    pub async fn turn(self, deadline: Instant) -> Result<HeldSlots, Limited> {
        let Self {
            mut held,
            who,
            lines,
            stage,
        } = self;
        for line in lines {
            let began = Instant::now();
            let until = deadline.min(began + line.terms.wait);
            match line.seats.take(&who, line.terms.room(), until).await {
                Ok(seat) => {
                    line.rule.waited(began.elapsed());
                    held.more.push(seat);
                }
                Err(Full::Line | Full::Time) => return Err(line.rule.refuse(stage, SOON)),
            }
        }
        Ok(held)
    }
}

impl HeldSlots {
    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.more.is_empty() && self.fixed.iter().all(Option::is_none)
    }
}

impl Concurrency {
    const fn room(self) -> Room {
        Room {
            seats: self.calls,
            line: self.queue,
        }
    }
}

/// The refusal of a fixed bound: which, and how it is called.
fn bound(bound: Bound, rule: &'static str, stage: Stage) -> Limited {
    metrics::reached(bound);
    Limited {
        rule: rule.into(),
        refusal: Refusal::Overload,
        retry: SOON,
        stage,
        whole: bound == Bound::InFlightProcess,
    }
}
