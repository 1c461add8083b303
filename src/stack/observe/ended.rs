//! How a call ended, in the words of SECURITY 8.

use std::{borrow::Cow, thread};

use crate::{
    audit::{End, record::Ending},
    call::{Cut, Outcome, Trail},
    json::Json,
    jsonrpc::RpcError,
    protocol::{Features, codes, methods},
    stack::{Error, Missing},
    upstream::{FromUpstream, NoVisit, UpstreamError},
};

/// With an outcome, of what came by this method.
pub(super) fn with<'a>(outcome: &'a Outcome, method: &str) -> Ending<'a> {
    match outcome {
        Outcome::Complete(result) => Ending {
            bytes: result.len(),
            content: Some(result),
            ..Ending::of(if method == methods::TOOLS_CALL && is_error(result) {
                End::ToolError
            } else {
                End::Ok
            })
        },
        Outcome::Task(task) => Ending {
            bytes: task.len(),
            content: Some(task),
            ..Ending::of(End::Ok)
        },
        Outcome::Listed(page) => Ending {
            bytes: page.items.value_len(),
            ..Ending::of(End::Ok)
        },
        // The dialect asks whether there is a use for a level.
        Outcome::Card(card) if method == methods::SET_LEVEL && !card.logs() => Ending {
            reason: Some("method_not_found".into()),
            code: Some(codes::METHOD_NOT_FOUND),
            ..Ending::of(End::Invalid)
        },
        // It is asked for that alone, and answered with nothing.
        Outcome::Card(_) if method == methods::SET_LEVEL => Ending {
            bytes: Json::empty_object().len(),
            ..Ending::of(End::Ok)
        },
        Outcome::Card(card) => Ending {
            bytes: card.capabilities.len()
                + card.instructions.as_ref().map_or(0, |text| text.len()),
            ..Ending::of(End::Ok)
        },
        Outcome::InputRequired(required) => Ending {
            bytes: required.requests.len(),
            ..Ending::of(End::InputRequired)
        },
        Outcome::Failed(error) => Ending {
            code: Some(error.code),
            ..Ending::of(End::ProtocolError)
        },
        Outcome::Lost(error) => {
            let reason = reason(error);
            let end = lost(error.code, reason.as_deref());
            Ending {
                reason,
                code: Some(error.code),
                ..Ending::of(end)
            }
        }
    }
}

/// With a refusal or a failure of ours, to a client of a revision with these features.
pub(super) fn refused<'a>(error: &'a Error, features: &Features) -> Ending<'a> {
    let limit = if let Error::OverLimit(limited) = error {
        Some(&*limited.rule)
    } else {
        None
    };
    Ending {
        reason: Some(error.reason().into()),
        code: error.code(features),
        limit,
        ..Ending::of(word(error))
    }
}

/// The HTTP status that an upstream failed with, where it is known.
pub(super) fn status(error: &Error) -> Option<u16> {
    if let Error::Upstream(FromUpstream { error, .. }) = error {
        error.status()
    } else {
        None
    }
}

/// Without an outcome: its client went away or told it to stop, unless the gateway itself ended it, for the reason that its trail
/// knows, or panics right now; or its client ended what ends by that.
pub(super) fn without(trail: &Trail) -> Ending<'static> {
    let cut = if thread::panicking() {
        Some(Cut::Panicked)
    } else {
        trail.cut_reason()
    };
    let outcome = match cut {
        None if trail.is_finished() => return Ending::of(End::Ok),
        None => return Ending::of(End::Cancelled),
        Some(Cut::Stopping | Cut::Panicked) => End::Unavailable,
        Some(Cut::Expired | Cut::Revoked) => End::Denied,
        Some(Cut::Late) => End::Timeout,
        Some(Cut::Renewed) => End::Ok,
        Some(Cut::SessionEnded) => End::Cancelled,
    };
    Ending {
        reason: cut.map(|cut| cut.reason().into()),
        code: (cut == Some(Cut::Panicked)).then_some(codes::INTERNAL_ERROR),
        ..Ending::of(outcome)
    }
}

/// Whether a tool says that it failed.
fn is_error(result: &Json) -> bool {
    let told = result.root().member("isError");
    told.is_some_and(|told| told.as_bool() == Some(true))
}

/// What is lost on the way has a code of ours, and so has every failure of an upstream, before its first event and after it: what
/// it is recorded as does not depend on when it came.
fn lost(code: i64, reason: Option<&str>) -> End {
    match code {
        codes::INVALID_PARAMS if reason == Some(Error::Unknown(Missing::Task).reason()) => {
            End::Denied
        }
        codes::INVALID_PARAMS => End::Invalid,
        codes::UPSTREAM_TIMEOUT => End::Timeout,
        codes::UPSTREAM_UNAVAILABLE | codes::UPSTREAM_AUTH | codes::SHUTTING_DOWN => {
            End::Unavailable
        }
        // There is no code for it in both eras.
        codes::INTERNAL_ERROR
            if reason == Some(UpstreamError::CannotVisit(NoVisit::Shared).reason()) =>
        {
            End::Invalid
        }
        codes::CONTENT_BLOCKED => End::Blocked,
        codes::INPUT_REFUSED | codes::DENIED => End::Denied,
        codes::OVERLOADED => End::Shed,
        _ => End::ProtocolError,
    }
}

fn reason(error: &RpcError) -> Option<Cow<'_, str>> {
    error.data.as_ref()?.root().member("reason")?.as_str()
}

fn word(error: &Error) -> End {
    match error {
        Error::Unknown(_)
        | Error::Quarantined(_)
        | Error::NoScope
        | Error::InsufficientScope { .. }
        | Error::Denied { .. }
        | Error::NotApproved
        | Error::CannotApprove
        | Error::InputRefused
        | Error::LoginNeeded(_)
        | Error::NotSubscribable { gone: true }
        | Error::OnlyForApps => End::Denied,
        Error::Withheld(_) | Error::Blocked(_) => End::Blocked,
        Error::BadCursor
        | Error::StateInvalid
        | Error::BadAnswer { .. }
        | Error::HeaderMismatch { .. }
        | Error::InvalidArguments(_)
        | Error::NotOffered(_)
        | Error::NotSubscribable { gone: false }
        | Error::NeedsCapabilities(_) => End::Invalid,
        Error::InvalidResult { .. } => End::ProtocolError,
        Error::SessionEnded => End::Cancelled,
        Error::OverLimit(_) | Error::Limited(_) => End::Shed,
        Error::Upstream(FromUpstream { error, .. }) => lost(error.code(), Some(error.reason())),
        Error::Deadline => End::Timeout,
        Error::ShuttingDown | Error::CutOff | Error::AuditUnavailable | Error::Panicked => {
            End::Unavailable
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::{
        call::Origin,
        protocol::{Revision, UpstreamId, meta},
        upstream::{CredentialError, Deadline},
    };

    /// SECURITY 8: the same failure is the same in all records, before an upstream's first event and after it.
    #[test]
    fn how_a_call_ended_does_not_depend_on_when_its_upstream_failed() {
        let needed = Json::literal(r#"{"sampling":{}}"#);
        for (error, word) in [
            (UpstreamError::unreached("x"), End::Unavailable),
            (UpstreamError::Timeout(Deadline::Call), End::Timeout),
            (UpstreamError::Protocol("x".into()), End::ProtocolError),
            (UpstreamError::Undeclared("sampling"), End::ProtocolError),
            (UpstreamError::Status(404), End::ProtocolError),
            (UpstreamError::Auth(None), End::Unavailable),
            (
                UpstreamError::Credential(CredentialError::Lacks(Vec::new().into())),
                End::Unavailable,
            ),
            (UpstreamError::Redirect(None), End::ProtocolError),
            (UpstreamError::TooLarge(1), End::ProtocolError),
            (UpstreamError::NoMemory, End::Shed),
            (UpstreamError::RequestTooLarge, End::ProtocolError),
            (UpstreamError::Overloaded, End::Shed),
            (UpstreamError::Engaged, End::Shed),
            (UpstreamError::NeedsCapabilities(needed), End::Invalid),
            (UpstreamError::CannotVisit(NoVisit::Shared), End::Invalid),
            (UpstreamError::OutcomeUnknown, End::Unavailable),
            (UpstreamError::BadAnswer(None), End::Invalid),
            (UpstreamError::Declined, End::Denied),
            (
                UpstreamError::Refused(RpcError::new(1, "x")),
                End::ProtocolError,
            ),
        ] {
            let upstream = UpstreamId::parse("a").unwrap();
            let late = Outcome::Lost(RpcError {
                data: Some(meta::object_of(&[("reason", Json::string(error.reason()))])),
                ..RpcError::new(error.code(), "x")
            });
            let early = Error::Upstream(FromUpstream { upstream, error });
            let features = Revision::V2026_07_28.features();
            let (early, late) = (refused(&early, features), with(&late, methods::TOOLS_CALL));
            assert_eq!(early.outcome.word(), word.word(), "{early:?}");
            assert_eq!(late.outcome.word(), word.word(), "{late:?}");
            assert_eq!(early.reason, late.reason);
        }
    }

    #[test]
    fn what_ends_without_an_outcome_says_who_ended_it_and_why() {
        let told = |cut: Option<Cut>| {
            let trail = Trail::of(Origin::default());
            trail.cut(cut);
            let ending = without(&trail);
            (ending.outcome.word(), ending.reason, ending.code)
        };
        assert_eq!(told(None), ("cancelled", None, None));
        for (cut, word, reason) in [
            (Cut::Stopping, "unavailable", "shutting_down"),
            (Cut::Expired, "denied", "token_expired"),
            (Cut::Revoked, "denied", "credential_revoked"),
            (Cut::Late, "timeout", "deadline_exceeded"),
            (Cut::Renewed, "ok", "rights_changed"),
            (Cut::SessionEnded, "cancelled", "outcome_unknown"),
        ] {
            assert_eq!(told(Some(cut)), (word, Some(reason.into()), None));
        }
        let panicked = ("unavailable", Some("internal_error".into()), Some(-32603));
        assert_eq!(told(Some(Cut::Panicked)), panicked);
    }

    /// SECURITY REL-1: what is dropped by a panic was not given up by its client.
    #[test]
    fn what_a_panic_drops_is_not_cancelled() {
        struct Dropped<'a>(&'a mut Option<Ending<'static>>);
        impl Drop for Dropped<'_> {
            fn drop(&mut self) {
                *self.0 = Some(without(&Trail::of(Origin::default())));
            }
        }
        let mut told = None;
        let work = catch_unwind(AssertUnwindSafe(|| {
            let _dropped = Dropped(&mut told);
            panic!("as the test wants");
        }));
        assert!(work.is_err());
        let told = told.unwrap();
        assert_eq!(told.reason.as_deref(), Some("internal_error"));
    }
}
