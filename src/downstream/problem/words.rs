//! What a person or a model is told of our own errors.
//!
//! Text never holds upstream addresses, causes, paths or internal names (SECURITY 4).

use crate::{
    limits::Limited,
    metrics::Refusal,
    sanitize::{BUDGET, MISFIT},
    schema,
    stack::{self, Error, LoginNeeded, Missing},
    upstream::{
        FromUpstream,
        words::{self, in_words},
    },
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
/// What is said of content that does not go on: what sort of thing it holds and where, never what, or how much it took to look at.
pub(in crate::downstream) fn content(error: &Error) -> String {
    if let Error::Withheld(blocked) = error {
        let instead = if blocked.reason == BUDGET {
            "Send less at once"
        } else {
            "Leave it out and try again"
        };
        return format!(
            "this was not sent: {}{}; nothing was done. {instead}",
            blocked.why("leave"),
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
        "the answer was withheld: {}{}{fits}; the call itself was made",
        blocked.why("come through"),
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

/// What became of a call to an upstream that did not answer it.
pub(super) fn describe(from: &FromUpstream) -> String {
    words::describe(&from.upstream, &from.error)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::{
        protocol::UpstreamId,
        upstream::{CredentialError, Deadline, Reached, UpstreamError},
    };

    #[test]
    fn what_was_never_sent_is_not_told_as_unknown_and_cancelled() {
        let told = |deadline| {
            describe(&FromUpstream {
                upstream: UpstreamId::parse("u").unwrap(),
                error: UpstreamError::Timeout(deadline),
            })
        };
        for deadline in [
            Deadline::Connect,
            Deadline::ConnectOfAnother,
            Deadline::Initialize,
            Deadline::Discover,
        ] {
            let told = told(deadline);
            assert!(
                !told.contains("unknown") && !told.contains("cancelled"),
                "{told}"
            );
            assert!(told.contains("not sent"), "{told}");
        }
        for deadline in [Deadline::Call, Deadline::Silence, Deadline::Send] {
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
