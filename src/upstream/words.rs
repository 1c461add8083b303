//! What a person or a model is told of an upstream that did not answer: the same words before its first event and after it.
//!
//! Text never holds upstream addresses, causes, paths or internal names (SECURITY 4). Deliberately absent: codes and statuses,
//! which each era has its own of.

use std::time::Duration;

use tokio::time::Instant;

use super::{CredentialError, Denial, NoVisit, Reached, UpstreamError};
use crate::{json::Json, protocol::UpstreamId};

/// What happened, for a person or a model: the configured key of the upstream is ours to tell, its address is not.
pub fn describe(upstream: &UpstreamId, error: &UpstreamError) -> String {
    match error {
        UpstreamError::Unavailable {
            retry_at, reached, ..
        } => unavailable(upstream, *reached, *retry_at),
        UpstreamError::Timeout(deadline) if !deadline.was_sent() => {
            format!("the server `{upstream}` could not be reached in time; the call was not sent")
        }
        UpstreamError::Timeout(_) => {
            format!(
                "the server `{upstream}` did not answer in time; the call was cancelled, whether it took effect is unknown"
            )
        }
        UpstreamError::Protocol(_)
        | UpstreamError::Undeclared(_)
        | UpstreamError::Status(_)
        | UpstreamError::Redirect(_)
        | UpstreamError::Refused(_) => {
            format!("the server `{upstream}` gave an answer that breaks the protocol")
        }
        // What it said is for its operator alone: it may name hosts.
        UpstreamError::Auth(Some(Denial {
            status,
            asks: false,
            ..
        })) => format!(
            "the server `{upstream}` refused the request with HTTP {status}; its operator must look"
        ),
        UpstreamError::Auth(None) => format!(
            "the server `{upstream}` refused the gateway a moment ago, so this call was not sent; its operator must look"
        ),
        UpstreamError::Auth(_) | UpstreamError::Credential(CredentialError::Lacks(_)) => format!(
            "the server `{upstream}` refused the gateway's credential; its operator must look"
        ),
        UpstreamError::Credential(error) => no_credential(upstream, error),
        UpstreamError::TooLarge(limit) => format!(
            "the answer of the server `{upstream}` is over {} MiB",
            limit >> 20
        ),
        UpstreamError::NoMemory => format!(
            "the gateway has no memory for the answer of the server `{upstream}` now; whether the call took effect is unknown"
        ),
        UpstreamError::RequestTooLarge => {
            format!("the server `{upstream}` takes no request of this size; send less")
        }
        UpstreamError::Overloaded => format!(
            "the server `{upstream}` has too many calls in flight; try again in a few seconds"
        ),
        UpstreamError::Engaged => format!(
            "another call of yours to the server `{upstream}` waits for its user's answer, and this one could be asked in its place; it was not sent: try again when that is answered"
        ),
        UpstreamError::OutcomeUnknown => format!(
            "the call to the server `{upstream}` that asked for input is no longer known; whether it took effect is unknown, and it was not repeated"
        ),
        UpstreamError::BadAnswer(key) => bad_answer(key.as_deref()),
        UpstreamError::Declined => format!(
            "the server `{upstream}` wants its user to open a URL in a browser first, and that was refused; the call was not sent again"
        ),
        UpstreamError::CannotVisit(NoVisit::Shared) => format!(
            "the server `{upstream}` wants its user to open a URL in a browser first, and to it all callers are one user: what you allow there would be allowed for everybody, so nobody is sent there; its operator must look"
        ),
        UpstreamError::CannotVisit(NoVisit::Revision) => format!(
            "the server `{upstream}` wants its user to open a URL in a browser first, and this client cannot open URLs: its revision of the protocol has no words for that"
        ),
        UpstreamError::NeedsCapabilities(needed) => format!(
            "the server `{upstream}` cannot do this without client capabilities that this call does not come with{}",
            Capabilities(needed)
        ),
    }
}

/// That the answer to the question of this key does not fit it; without one, that what was brought holds no answers at all.
pub fn bad_answer(key: Option<&str>) -> String {
    key.map_or_else(
        || "`inputResponses` is not an object".to_owned(),
        |key| {
            let key = key.escape_debug();
            format!("the answer to input `{key}` is not one that was asked for")
        },
    )
}

/// A wait, rounded up: `2 s`, `5 min`, `3 h`.
pub fn in_words(wait: Duration) -> String {
    match wait_seconds(wait) {
        seconds @ ..=120 => format!("{seconds} s"),
        seconds @ 121..=7_200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3_600)),
    }
}

/// Whole seconds, at least one and rounded up: trying again after them is not too soon.
pub fn wait_seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun).max(1)
}

/// Why there was no credential for a server, and who can do something about it.
fn no_credential(upstream: &UpstreamId, error: &CredentialError) -> String {
    if error.is_the_callers() {
        return format!(
            "the server `{upstream}` is used in your own name, and the credential that you called with cannot stand for you there; log in again, with an account that it knows"
        );
    }
    match error.pause() {
        Some(pause) => format!(
            "the login server of `{upstream}` does not answer now, so nothing was done; try again in {}",
            in_words(pause)
        ),
        None => format!(
            "the gateway could not get a credential for the server `{upstream}`; its operator must look"
        ),
    }
}

/// That a server is not available, what became of the call, and when to try again where that is known.
fn unavailable(upstream: &UpstreamId, reached: Reached, retry_at: Option<Instant>) -> String {
    let wait = retry_at.map(|at| at.saturating_duration_since(Instant::now()));
    match (reached, wait) {
        (Reached::Busy, wait) => {
            let when = wait.map_or_else(
                || "later".to_owned(),
                |wait| format!("in {}", in_words(wait)),
            );
            format!(
                "the server `{upstream}` takes no more calls now, and did not take this one; try again {when}"
            )
        }
        (Reached::Forgotten, _) => format!(
            "the server `{upstream}` had forgotten the session, and the call was not carried out; call again"
        ),
        (Reached::Misspoken, _) => format!(
            "the server `{upstream}` speaks another revision of the protocol than it did, and the call was not carried out; call again"
        ),
        (Reached::Never | Reached::Unsent, Some(wait)) => format!(
            "the server `{upstream}` is not available; the next attempt to reach it is due in {} s",
            wait.as_secs() + 1
        ),
        (Reached::Never | Reached::Unsent, None) => {
            format!("the server `{upstream}` is not available; the call was not sent")
        }
        (Reached::No | Reached::Yes, Some(wait)) => format!(
            "the server `{upstream}` is not available, and says to try again in {}; whether the call took effect is unknown",
            in_words(wait)
        ),
        (Reached::No | Reached::Yes, None) => format!(
            "the server `{upstream}` is not available, or was lost during the call; whether the call took effect is unknown"
        ),
    }
}

/// The names of capabilities that the protocol has, where a server names some of these; what else it writes is not repeated.
struct Capabilities<'a>(&'a Json);

impl std::fmt::Display for Capabilities<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut before = ": ";
        for name in ["elicitation", "sampling", "roots", "extensions"] {
            if self.0.root().member(name).is_some() {
                write!(f, "{before}`{name}`")?;
                before = ", ";
            }
        }
        Ok(())
    }
}
