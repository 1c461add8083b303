//! What a person or a model is told of our own errors.
//!
//! Text never holds upstream addresses, causes, paths or internal names (SECURITY 4).

use std::time::Duration;

use tokio::time::Instant;

use super::wait_seconds;
use crate::{
    json::Json,
    limits::Limited,
    metrics::Refusal,
    protocol::UpstreamId,
    sanitize::MISFIT,
    schema,
    stack::{self, Error, LoginNeeded, Missing},
    upstream::{CredentialError, FromUpstream, Reached, UpstreamError},
};

/// What is said when a client gives no input.
pub(super) const REFUSED: &str =
    "the input that the server asked for was refused or not given in time; it did not go on";

/// What is said of a panic.
pub(super) const PANICKED: &str = "internal error";

/// What is said of what is not begun any more because the gateway stops.
pub(super) const SHUTTING_DOWN: &str = "shutting down; try again";

/// What is said of what is not begun because too much is held already.
pub(super) const NO_MEMORY: &str = "too much is in flight; try again";

/// What is said of what had not ended when the gateway stopped.
pub(super) const CUT_OFF: &str =
    "the gateway stopped before the call had ended; whether the call took effect is unknown";

/// What is said of what had not ended when its session was ended.
pub(super) const SESSION_ENDED: &str = "the session of this call was ended before the call had; the call was cancelled, whether it took effect is unknown";

/// What is said when a person did not agree to a call.
pub(super) const NOT_APPROVED: &str =
    "this needs the approval of the person at the client, who did not give it; it was not done";

/// What is said when nobody can be asked to agree.
pub(super) const CANNOT_APPROVE: &str = "this needs the approval of a person, and this client cannot ask one (it declares no `elicitation`, or takes no event stream); it was not done";
/// What is said of content that does not go on: what sort of thing it holds and where, never what.
pub(in crate::downstream) fn content(error: &Error) -> String {
    if let Error::Withheld(blocked) = error {
        return format!(
            "this was not sent: it holds what must not leave ({}){}; nothing was done. Leave it out and try again",
            blocked.kind,
            Place(&blocked.place)
        );
    }
    let Error::Blocked(blocked) = error else {
        return error.reason().to_owned();
    };
    let fits = match blocked.rule.as_deref() {
        Some(MISFIT) => "; without that it would not fit the tool's output schema",
        Some(_) | None => "",
    };
    format!(
        "the answer was withheld: it holds what must not come through ({}){}{fits}; the call itself was made",
        blocked.kind,
        Place(&blocked.place)
    )
}

/// A place in content, where one is known; what its peer called it is shown, but nothing that could be more than a name.
pub(super) struct Place<'a>(&'a str);

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain = |character: char| {
            character.is_ascii_alphanumeric() || matches!(character, '/' | '_' | '-' | '.' | '~')
        };
        if self.0.is_empty() || self.0.len() > 200 || !self.0.chars().all(plain) {
            return Ok(());
        }
        write!(f, " at `{}`", self.0)
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

/// What is said to somebody who has to log in first.
pub(super) fn login(needed: &LoginNeeded) -> String {
    let upstream = &needed.upstream;
    match &needed.url {
        Some(url) => format!(
            "the server `{upstream}` needs its user to log in first: the user has to open {url} in a browser within 10 minutes; then make the call again"
        ),
        None if needed.notice.is_empty() => format!(
            "the server `{upstream}` needs its user to log in first, and this gateway has no page for that here: it has to run with `usher serve`, and with `connections.url` set where it is not reached at its own address"
        ),
        None => format!(
            "the server `{upstream}` waits for its user to finish the login that was begun; then make the call again"
        ),
    }
}

/// What is said of an item that is not the one that was approved.
pub(super) fn withheld(what: &Missing) -> String {
    format!(
        "the definition of this {what} has changed, or is new, and was not approved yet; it cannot be used before the operator of the gateway approves it (`usher pins diff`)"
    )
}

/// What is said of arguments that do not fit, so that whoever sent them can mend them (SECURITY MSG-12).
pub(super) fn arguments(problems: &[schema::Problem]) -> String {
    format!(
        "the tool was not run: its arguments do not fit its input schema: {}",
        stack::in_words(problems)
    )
}

/// What happened, for a person or a model: the configured key of the upstream is ours to tell, its address is not.
pub(super) fn describe(from: &FromUpstream) -> String {
    let upstream = &from.upstream;
    match &from.error {
        UpstreamError::Unavailable {
            retry_at, reached, ..
        } => unavailable(upstream, *reached, *retry_at),
        UpstreamError::Timeout("connect" | "initialize" | "discover") => {
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
        UpstreamError::CannotVisit => format!(
            "the server `{upstream}` wants its user to open a URL in a browser first, and this client cannot open URLs: its revision of the protocol has no words for that"
        ),
        UpstreamError::NeedsCapabilities(needed) => format!(
            "the server `{upstream}` cannot do this without client capabilities that this call does not come with{}",
            Capabilities(needed)
        ),
    }
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

/// That the answer to the question of this key does not fit it; without one, that what was brought holds no answers at all.
pub(super) fn bad_answer(key: Option<&str>) -> String {
    key.map_or_else(
        || "`inputResponses` is not an object".to_owned(),
        |key| {
            let key = key.escape_debug();
            format!("the answer to input `{key}` is not one that was asked for")
        },
    )
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

/// Which rule or bound, and when to try again.
pub(super) fn over(limited: &Limited) -> String {
    let (rule, wait) = (&limited.rule, in_words(limited.retry));
    match (limited.refusal, limited.whole) {
        (_, true) => format!("too many {rule}; try again in {wait}"),
        (Refusal::Overload, _) => format!("too many at once: {rule}; try again in {wait}"),
        (Refusal::Rate, _) => format!("over the rate of {rule}; try again in {wait}"),
        (Refusal::Quota, _) => format!("the quota of {rule} is used up; it begins anew in {wait}"),
    }
}

/// A wait, rounded up: `2 s`, `5 min`, `3 h`.
pub(super) fn in_words(wait: Duration) -> String {
    match wait_seconds(wait) {
        seconds @ ..=120 => format!("{seconds} s"),
        seconds @ 121..=7_200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_sent_is_not_told_as_unknown_and_cancelled() {
        let told = |deadline| {
            describe(&FromUpstream {
                upstream: UpstreamId::parse("u").unwrap(),
                error: UpstreamError::Timeout(deadline),
            })
        };
        for deadline in ["connect", "initialize", "discover"] {
            let told = told(deadline);
            assert!(
                !told.contains("unknown") && !told.contains("cancelled"),
                "{told}"
            );
            assert!(told.contains("not sent"), "{told}");
        }
        for deadline in ["call", "silence"] {
            assert!(told(deadline).contains("whether it took effect is unknown"));
        }
        let away = |reached| away(reached, None);
        for reached in [Reached::Never, Reached::Unsent] {
            assert!(away(reached).ends_with("the call was not sent"));
        }
        for reached in [Reached::No, Reached::Yes] {
            assert!(away(reached).contains("whether the call took effect is unknown"));
        }
    }

    #[test]
    fn a_login_server_that_does_not_answer_now_is_no_matter_for_an_operator() {
        use super::super::upstream_code;
        use crate::{
            fetch::FetchError,
            protocol::{Era, codes},
        };
        let told = |error| {
            let error = UpstreamError::Credential(error);
            let code = upstream_code(&error, Era::Modern);
            let reason = error.reason();
            let told = describe(&FromUpstream {
                upstream: UpstreamId::parse("u").unwrap(),
                error,
            });
            (told, code, reason)
        };
        for error in [
            CredentialError::Fetch(FetchError::Status(500)),
            CredentialError::Fetch(FetchError::Status(429)),
            CredentialError::Fetch(FetchError::Timeout("answer")),
            CredentialError::Unanswered("x".into()),
        ] {
            let (told, code, reason) = told(error);
            assert_eq!(
                told,
                "the login server of `u` does not answer now, so nothing was done; try again in 2 s"
            );
            assert_eq!(
                (code, reason),
                (codes::UPSTREAM_UNAVAILABLE, "upstream_unavailable")
            );
        }
        for error in [
            CredentialError::Fetch(FetchError::Status(404)),
            CredentialError::Fetch(FetchError::NotJson),
            CredentialError::Fetch(FetchError::Untrusted("x".into())),
            CredentialError::Fetch(FetchError::Addresses),
            CredentialError::Connection("x".into()),
        ] {
            let (told, code, reason) = told(error);
            assert!(told.ends_with("its operator must look"));
            assert_eq!(
                (code, reason),
                (codes::UPSTREAM_AUTH, "upstream_auth_failed")
            );
        }
    }

    /// What became of it, if the server is not there, and whether it went out.
    fn away(reached: Reached, retry_at: Option<Instant>) -> String {
        describe(&FromUpstream {
            upstream: UpstreamId::parse("u").unwrap(),
            error: UpstreamError::Unavailable {
                cause: "x".into(),
                retry_at,
                status: None,
                reached,
            },
        })
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_server_did_not_take_is_not_told_as_unknown_and_may_be_tried_again() {
        let in_seven = Some(Instant::now() + Duration::from_secs(7));
        for (reached, retry_at, ending) in [
            (
                Reached::Busy,
                in_seven,
                "takes no more calls now, and did not take this one; try again in 7 s",
            ),
            (
                Reached::Busy,
                None,
                "takes no more calls now, and did not take this one; try again later",
            ),
            (
                Reached::Forgotten,
                None,
                "had forgotten the session, and the call was not carried out; call again",
            ),
            (
                Reached::Misspoken,
                None,
                "speaks another revision of the protocol than it did, and the call was not carried out; call again",
            ),
            (
                Reached::No,
                in_seven,
                "is not available, and says to try again in 7 s; whether the call took effect is unknown",
            ),
            (
                Reached::Unsent,
                in_seven,
                "is not available; the next attempt to reach it is due in 8 s",
            ),
        ] {
            assert_eq!(away(reached, retry_at), format!("the server `u` {ending}"));
        }
    }
}
