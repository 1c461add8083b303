//! Events beside calls: what the gateway did, what was changed, who was kept out, and where it was too much.
//!
//! Guarantees: noting never waits for the disk and never fails; what comes in floods is told by its beginning and its count, so
//! that nobody fills the log or hides in it by being refused often (SECURITY 8); memory is bounded. Deliberately absent: calls,
//! which have records of their own.

mod defined;
mod tally;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    canonical::{Object, handed},
    record::described,
    recorder::{Recorder, Weight},
};
use crate::{
    call::CallId,
    findings::{Finding, Scrub},
    metrics,
    protocol::UpstreamId,
};

pub use super::kind::Kind;
pub use tally::{Refused, Sender};

use defined::{Definitions, Rest, SORTS};
use tally::{Episodes, Failed, Failures, METHODS, Measure, REFS, Step};

/// How often [`Journal::keep`] looks for what has ended.
const SWEEP: Duration = Duration::from_secs(5);

/// Notes events. Clones note in the same log.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<Shared>>);

struct Shared {
    recorder: Recorder,
    /// Takes out of what peers wrote what must not be kept.
    scrub: Arc<dyn Scrub>,
    /// Protects the counts; held for the time of counting.
    counts: Mutex<Counts>,
}

struct Counts {
    failures: Failures,
    messages: Failures,
    /// The same of those who are known.
    known: Failures,
    definitions: Definitions,
    episodes: Episodes,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            failures: Failures::new(Measure::AUTHENTICATION),
            messages: Failures::new(Measure::MESSAGES),
            known: Failures::new(Measure::MESSAGES),
            definitions: Definitions::default(),
            episodes: Episodes::default(),
        }
    }
}

impl Journal {
    /// Notes in this log; `scrub` takes out of what peers wrote what must not be kept.
    pub fn of(recorder: Recorder, scrub: Arc<dyn Scrub>) -> Self {
        Self(Some(Arc::new(Shared {
            recorder,
            scrub,
            counts: Mutex::default(),
        })))
    }

    /// Notes nothing: for a gateway without audit.
    pub const fn off() -> Self {
        Self(None)
    }

    /// Notes an event; `fill` writes what there is to say of it, in the rising order of names.
    pub fn note(&self, kind: Kind, fill: impl FnOnce(&mut Object<'_>)) {
        if let Some(shared) = &self.0 {
            shared.note(kind, Weight::Fact, fill);
        }
    }

    /// Notes what was not let in, of which there may be any number: while nothing can be written, what is beyond the bounds of what
    /// waits is counted and told by a gap record.
    pub fn note_refusal(&self, kind: Kind, fill: impl FnOnce(&mut Object<'_>)) {
        if let Some(shared) = &self.0 {
            shared.note(kind, Weight::Refusal, fill);
        }
    }

    /// Somebody was kept out. The first ten in a minute from an address are noted each, the others of that minute together when
    /// it is over. Counted in metrics, too, whether or not anything is noted.
    pub fn refused(&self, sender: Sender<'_>, refused: Refused) {
        metrics::turned_away(refused.reason);
        let Some(shared) = &self.0 else { return };
        let step = shared
            .counts()
            .failures
            .add(sender, refused, Instant::now());
        for failed in step {
            shared.failed(Kind::Authentication, &failed);
        }
    }

    /// What somebody sent was refused before it was a call, for a reason from the published list. Noted as
    /// [`Journal::refused`] is, but ten in a second at most: whoever sends rubbish does not fill the log with it. With what the
    /// answer refers to, where it has a place for that. Counted as that is.
    pub fn turned_away(&self, sender: Sender<'_>, reason: &'static str, reference: Option<CallId>) {
        metrics::turned_away(reason);
        let Some(shared) = &self.0 else { return };
        let refused = Refused {
            reference,
            ..Refused::of(reason)
        };
        let step = {
            let mut counts = shared.counts();
            let counted = if sender.is_known() {
                &mut counts.known
            } else {
                &mut counts.messages
            };
            counted.add(sender, refused, Instant::now())
        };
        for failed in step {
            shared.failed(Kind::Refused, &failed);
        }
    }

    /// Something was found in a definition. The first hundred of an upstream in a minute are noted each, and the first ten of each
    /// sort, the others of that minute together when it is over: a server may offer thousands under new names as often as it is asked.
    pub fn defined(&self, finding: &Finding) {
        let Some(shared) = &self.0 else { return };
        let step = shared.counts().definitions.add(finding, Instant::now());
        if let Some(rest) = &step.before {
            shared.rest(rest);
        }
        if step.alone {
            shared.note(Kind::Quarantine, Weight::Fact, |detail| {
                detail
                    .text("action", finding.action.word())
                    .text("class", finding.kind)
                    .maybe("item", finding.item.as_deref())
                    .text("place", &finding.place)
                    .text("rule", &finding.rule)
                    .maybe(
                        "upstream",
                        finding.upstream.as_ref().map(UpstreamId::as_str),
                    );
            });
        }
    }

    /// A limit of this name refused something, or something was shed for the lack of this capacity. The first refusal begins an
    /// episode, which ends when there was none for a minute; both are noted, the end with its count.
    pub fn exceeded(&self, kind: Kind, name: &str) {
        let Some(shared) = &self.0 else { return };
        let began = shared.counts().episodes.add(kind, name, Instant::now());
        if began {
            shared.episode(kind, name, &Step::Began);
        }
    }

    /// Notes what is over, and at the end what is not, until `token` is cancelled. To be run by one task.
    pub async fn keep(self, token: CancellationToken) {
        let Some(shared) = &self.0 else { return };
        loop {
            let ending = tokio::select! {
                () = token.cancelled() => true,
                () = tokio::time::sleep(SWEEP) => false,
            };
            shared.sweep(ending);
            if ending {
                return;
            }
        }
    }
}

/// What is written of an event; `fill` as for [`Journal::note`].
pub(super) fn event(
    kind: Kind,
    fill: impl FnOnce(&mut Object<'_>),
) -> impl FnOnce(&mut Object<'_>) {
    move |object| {
        object
            .object("detail", fill)
            .text("event", kind.word())
            .time(SystemTime::now())
            .number("v", 1);
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Journal")
    }
}

impl Shared {
    fn note(&self, kind: Kind, weight: Weight, fill: impl FnOnce(&mut Object<'_>)) {
        // A fact is kept whether or not it can be written now; who notes it does not wait.
        handed(event(kind, fill), |event, ()| {
            self.recorder.note(event.bytes(), None, weight);
        });
    }

    fn sweep(&self, ending: bool) {
        let now = Instant::now();
        let (failures, messages, known, definitions, episodes) = {
            let mut counts = self.counts();
            (
                counts.failures.sweep(now, ending),
                counts.messages.sweep(now, ending),
                counts.known.sweep(now, ending),
                counts.definitions.sweep(now, ending),
                counts.episodes.sweep(now, ending),
            )
        };
        for failed in failures {
            self.failed(Kind::Authentication, &failed);
        }
        for failed in messages.into_iter().chain(known) {
            self.failed(Kind::Refused, &failed);
        }
        for rest in definitions {
            self.rest(&rest);
        }
        for (kind, name, step) in episodes {
            self.episode(kind, &name, &step);
        }
    }

    fn failed(&self, kind: Kind, failed: &Failed) {
        let address = failed.address.map(|address| address.to_string());
        // Anybody can be kept out any number of times.
        let methods = failed.methods.iter();
        let methods: Vec<_> = methods.map(|method| self.scrub.name(method)).collect();
        let refs: Vec<_> = failed.refs.iter().map(ToString::to_string).collect();
        self.note(kind, Weight::Refusal, |detail| {
            detail.maybe("address", address.as_deref());
            if !failed.checks.is_empty() {
                detail.texts("checks", failed.checks.iter().copied(), 16);
            }
            detail.number("count", failed.count);
            if !methods.is_empty() {
                detail.texts("methods", methods.iter().map(|method| &**method), METHODS);
            }
            if let Some(who) = &failed.who {
                detail.object("principal", |told| described(told, who));
            }
            detail.texts("reasons", failed.reasons.iter().copied(), 16);
            if !refs.is_empty() {
                detail.texts("refs", refs.iter().map(String::as_str), REFS);
            }
            detail.number("seconds", failed.over.as_secs());
        });
    }

    fn rest(&self, rest: &Rest) {
        self.note(Kind::Quarantine, Weight::Fact, |detail| {
            detail
                .number("count", rest.count)
                .objects("found", &rest.sorts, SORTS, |told, (sort, count)| {
                    told.text("action", sort.action.word())
                        .text("class", sort.class)
                        .number("count", *count)
                        .text("rule", &sort.rule);
                })
                .number("seconds", rest.over.as_secs())
                .maybe("upstream", rest.upstream.as_ref().map(UpstreamId::as_str));
        });
    }

    fn episode(&self, kind: Kind, name: &str, step: &Step) {
        self.note(kind, Weight::Fact, |detail| match step {
            Step::Began => {
                detail.text("name", name).text("state", "began");
            }
            Step::Ended { count, over } => {
                detail
                    .number("count", *count)
                    .text("name", name)
                    .number("seconds", over.as_secs())
                    .text("state", "ended");
            }
        });
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
