//! What went wrong between the gateway and one upstream: the last of it for operators, and each call that failed there for the log.
//!
//! Guarantees: a call that went out and brought no answer leaves its cause in one line of the log, with the reference that its
//! client was told; of a flood the first few of a minute are told so, and the first for each further reason, and the others together
//! when the minute is over; what comes of a caller's own doing, or of a queue of ours, is no failure of the upstream. Deliberately absent: that it is away, which the
//! supervisor tells.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::time::{Instant, sleep_until};

use super::{CredentialError, Deadline, Reached, UpstreamError, credentials::INVALID_REQUEST};
use crate::{call::CallId, protocol::UpstreamId, tasks::Tasks};

/// How long calls that fail are counted together.
const WINDOW: Duration = Duration::from_secs(60);
/// How many of them in a window are told one by one, whatever their reasons.
const SINGLE: u32 = 3;

/// Something that went wrong, in the words that operators are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// What.
    pub words: String,
    /// When.
    pub at: Instant,
}

/// Something that went wrong, and when.
#[derive(Debug, Clone)]
pub(super) struct Mishap {
    pub(super) error: UpstreamError,
    pub(super) at: Instant,
    /// An operator wanted it so: nothing of it is wrong any more once the upstream is used again.
    pub(super) wanted: bool,
}

impl Mishap {
    /// This, now.
    pub(super) fn of(error: UpstreamError) -> Self {
        Self {
            error,
            at: Instant::now(),
            wanted: false,
        }
    }

    /// What an operator did to it, now.
    pub(super) fn wanted(what: &str) -> Self {
        Self {
            wanted: true,
            ..Self::of(UpstreamError::unreached(what))
        }
    }
}

/// The mishaps of calls to one upstream.
#[derive(Debug)]
pub(super) struct Mishaps {
    upstream: UpstreamId,
    /// Whether it is sent a credential.
    proves: bool,
    tasks: Tasks,
    last: ArcSwapOption<Mishap>,
    /// Held for the time of counting; only calls that fail come here.
    flood: Mutex<Flood>,
}

/// Calls that failed in the window that is running.
#[derive(Debug, Default)]
struct Flood {
    since: Option<Instant>,
    /// Those that were told one by one, and their reasons, each once.
    told: u32,
    known: Vec<&'static str>,
    /// Those that were not told yet, and their reasons.
    untold: u64,
    reasons: Vec<&'static str>,
    /// Whether somebody waits to tell of them.
    awaited: bool,
}

/// When the warning of a call that failed is written.
enum WarningDecision {
    Now,
    Later,
    /// The first that is told later: at this time.
    At(Instant),
}

impl Mishaps {
    /// None yet; `proves`: whether the upstream is sent anything that proves who asks.
    pub(super) fn new(upstream: UpstreamId, proves: bool, tasks: Tasks) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            proves,
            tasks,
            last: ArcSwapOption::empty(),
            flood: Mutex::default(),
        })
    }

    /// A call was not answered.
    pub(super) fn note(self: &Arc<Self>, call: CallId, error: &UpstreamError) {
        if !is_failure(error) {
            return;
        }
        self.last.store(Some(Arc::new(Mishap::of(error.clone()))));
        // That there is no token is told where it was asked for.
        if matches!(error, UpstreamError::Credential(_)) {
            return;
        }
        let told = self.flood().add(error.reason(), Instant::now());
        match told {
            WarningDecision::Now => {
                let error = error.told(self.proves);
                tracing::warn!(upstream = %self.upstream, %call, error, "a call failed at its upstream");
            }
            WarningDecision::Later => {}
            WarningDecision::At(end) => {
                let rest = Rest(Arc::clone(self));
                self.tasks.spawn(async move {
                    // Told of when this ends, be it because the gateway does.
                    let _rest = rest;
                    sleep_until(end).await;
                });
            }
        }
    }

    /// The last of them.
    pub(super) fn last(&self) -> Option<Arc<Mishap>> {
        self.last.load_full()
    }

    fn flood(&self) -> MutexGuard<'_, Flood> {
        self.flood.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flood {
    fn add(&mut self, reason: &'static str, now: Instant) -> WarningDecision {
        let began = self.since.filter(|since| now - *since < WINDOW);
        let since = began.unwrap_or(now);
        if began.is_none() {
            self.since = Some(now);
            self.told = 0;
            self.known.clear();
        }
        // One server's flood must not hide what else is wrong with it; there are few reasons.
        let is_known = self.known.contains(&reason);
        if self.told < SINGLE || !is_known {
            self.told += 1;
            self.known.extend((!is_known).then_some(reason));
            return WarningDecision::Now;
        }
        self.untold += 1;
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
        if std::mem::replace(&mut self.awaited, true) {
            WarningDecision::Later
        } else {
            WarningDecision::At(since + WINDOW)
        }
    }
}

/// Those that were not told one by one.
struct Rest(Arc<Mishaps>);

impl Drop for Rest {
    fn drop(&mut self) {
        let (count, reasons) = {
            let mut flood = self.0.flood();
            flood.awaited = false;
            let reasons = std::mem::take(&mut flood.reasons);
            (std::mem::take(&mut flood.untold), reasons)
        };
        let reasons = reasons.join(", ");
        tracing::warn!(upstream = %self.0.upstream, count, %reasons, "more calls failed at their upstream; of a minute the first alone are told one by one");
    }
}

/// Whether a call that ends so failed at its upstream: what was sent was not answered, or could not be sent, or the token for it
/// could not be got. Not where its caller lacks something or comes too late, where a queue or bound of ours is full, or where
/// nothing was tried since it had gone wrong a moment before.
fn is_failure(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Unavailable { reached, .. } => match reached {
            Reached::No
            | Reached::Yes
            | Reached::Busy
            | Reached::Forgotten
            | Reached::Misspoken
            | Reached::Never => true,
            Reached::Unsent => false,
        },
        UpstreamError::Timeout(deadline) => *deadline != Deadline::ConnectOfAnother,
        UpstreamError::Auth(denial) => denial.is_some(),
        UpstreamError::Credential(error) => match error {
            CredentialError::Refused(_)
            | CredentialError::Answer(_)
            | CredentialError::Fetch(_)
            | CredentialError::Metadata(_)
            | CredentialError::Unanswered(_)
            | CredentialError::Panicked => true,
            // It is how it was asked that is wrong (RFC 6749 5.2), and it may be wrong for everybody.
            CredentialError::SubjectRefused(why) => *why == INVALID_REQUEST,
            CredentialError::NoSubject
            | CredentialError::NotConnected
            | CredentialError::Nobody(_)
            | CredentialError::Lacks(_)
            | CredentialError::Connection(_) => false,
        },
        UpstreamError::Protocol(_)
        | UpstreamError::Undeclared(_)
        | UpstreamError::Status(_)
        | UpstreamError::Redirect(_)
        | UpstreamError::TooLarge(_)
        | UpstreamError::RequestTooLarge
        | UpstreamError::Refused(_) => true,
        UpstreamError::NoMemory
        | UpstreamError::Overloaded
        | UpstreamError::Engaged
        | UpstreamError::NeedsCapabilities(_)
        | UpstreamError::CannotVisit(_)
        | UpstreamError::OutcomeUnknown
        | UpstreamError::BadAnswer(_)
        | UpstreamError::Declined => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::NoVisit;

    fn mishaps() -> (Arc<Mishaps>, Tasks) {
        let tasks = Tasks::new();
        let upstream = UpstreamId::parse("u").unwrap();
        (Mishaps::new(upstream, true, tasks.clone()), tasks)
    }

    #[test]
    fn a_question_for_a_token_that_is_wrong_in_itself_is_a_failure_and_a_refused_subject_is_none() {
        let refused = |why| is_failure(&CredentialError::SubjectRefused(why).into());
        assert!(refused("invalid_request") && !refused("invalid_grant"));
    }

    /// How many of the window were told, and are to be told.
    fn told(mishaps: &Mishaps) -> (u32, u64) {
        let flood = mishaps.flood();
        (flood.told, flood.untold)
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_flood_the_first_few_are_told_one_by_one_and_the_others_by_their_count() {
        let (mishaps, tasks) = mishaps();
        for _ in 0..100 {
            mishaps.note(CallId::new(), &UpstreamError::Timeout(Deadline::Call));
        }
        assert_eq!(told(&mishaps), (3, 97));
        tokio::time::sleep(WINDOW / 2).await;
        for _ in 0..2 {
            mishaps.note(CallId::new(), &UpstreamError::Redirect(None));
        }
        assert_eq!(told(&mishaps), (4, 98));
        let reasons = mishaps.flood().reasons.clone();
        assert_eq!(reasons, ["upstream_timeout", "upstream_redirect"]);
        // The others are told when the minute is over, whether or not one more fails then.
        tokio::time::sleep(WINDOW / 2 + Duration::from_secs(1)).await;
        assert_eq!(told(&mishaps), (4, 0));
        for _ in 0..5 {
            mishaps.note(CallId::new(), &UpstreamError::Timeout(Deadline::Call));
        }
        assert_eq!(told(&mishaps), (3, 2));
        // Nor are they forgotten where there is no end of that minute any more.
        tasks.finish().await;
        assert_eq!(told(&mishaps), (3, 0));
    }

    #[tokio::test]
    async fn what_is_a_callers_own_doing_or_was_not_tried_is_no_failure_of_the_upstream() {
        let (mishaps, _tasks) = mishaps();
        let lost = UpstreamError::unreached("reset");
        for error in [
            lost.unsent(Instant::now()),
            UpstreamError::Timeout(Deadline::Connect).with_others(),
            UpstreamError::Auth(None),
            UpstreamError::Credential(CredentialError::NotConnected),
            UpstreamError::Overloaded,
            UpstreamError::Engaged,
            UpstreamError::NoMemory,
            UpstreamError::CannotVisit(NoVisit::Revision),
            UpstreamError::CannotVisit(NoVisit::Shared),
            UpstreamError::OutcomeUnknown,
            UpstreamError::BadAnswer(None),
            UpstreamError::Declined,
        ] {
            mishaps.note(CallId::new(), &error);
            assert!(mishaps.last().is_none(), "{error}");
        }
        assert_eq!(told(&mishaps), (0, 0));
        mishaps.note(CallId::new(), &lost);
        assert_eq!(told(&mishaps), (1, 0));
        // The log was told by who asked for the token; operators look here.
        let refused = CredentialError::Refused("invalid_client");
        mishaps.note(CallId::new(), &UpstreamError::Credential(refused));
        assert_eq!(told(&mishaps), (1, 0));
        let last = mishaps.last().unwrap().error.to_string();
        assert!(last.contains("invalid_client"), "{last}");
    }
}
