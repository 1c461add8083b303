//! How a call ended, in the words of SECURITY 8.

use std::borrow::Cow;

use crate::{
    audit::record::Ending,
    call::Outcome,
    json::Json,
    jsonrpc::RpcError,
    protocol::codes,
    stack::Error,
    upstream::{FromUpstream, UpstreamError},
};

/// With an outcome.
pub(super) fn with(outcome: &Outcome, tool: bool) -> Ending<'_> {
    match outcome {
        Outcome::Complete(result) => Ending {
            outcome: if tool && is_error(result) {
                "tool_error"
            } else {
                "ok"
            },
            bytes: result.len(),
            content: Some(result),
            ..Ending::default()
        },
        Outcome::Task(task) => Ending {
            outcome: "ok",
            bytes: task.len(),
            content: Some(task),
            ..Ending::default()
        },
        Outcome::Listed(page) => Ending {
            outcome: "ok",
            bytes: page.items.len(),
            ..Ending::default()
        },
        Outcome::Card(_) => Ending {
            outcome: "ok",
            ..Ending::default()
        },
        Outcome::InputRequired(_) => Ending {
            outcome: "input_required",
            ..Ending::default()
        },
        Outcome::Failed(error) => Ending {
            outcome: "protocol_error",
            code: Some(error.code),
            ..Ending::default()
        },
        Outcome::Lost(error) => Ending {
            outcome: lost(error.code),
            reason: reason(error),
            code: Some(error.code),
            ..Ending::default()
        },
    }
}

/// With a refusal or a failure of ours.
pub(super) fn refused(error: &Error) -> Ending<'_> {
    let limit = if let Error::OverLimit(limited) = error {
        Some(&*limited.rule)
    } else {
        None
    };
    Ending {
        outcome: word(error),
        reason: Some(error.reason().into()),
        limit,
        ..Ending::default()
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

/// Because its client went away, or told it to stop.
pub(super) fn cancelled() -> Ending<'static> {
    Ending {
        outcome: "cancelled",
        ..Ending::default()
    }
}

/// Whether a tool says that it failed.
fn is_error(result: &Json) -> bool {
    let told = result.root().member("isError");
    told.is_some_and(|told| told.as_bool() == Some(true))
}

/// What is lost on the way has a code of ours.
const fn lost(code: i64) -> &'static str {
    match code {
        codes::UPSTREAM_TIMEOUT => "timeout",
        codes::UPSTREAM_UNAVAILABLE | codes::SHUTTING_DOWN => "unavailable",
        codes::CONTENT_BLOCKED => "blocked",
        codes::INPUT_REFUSED | codes::DENIED => "denied",
        _ => "protocol_error",
    }
}

fn reason(error: &RpcError) -> Option<Cow<'_, str>> {
    error.data.as_ref()?.root().member("reason")?.as_str()
}

const fn word(error: &Error) -> &'static str {
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
        | Error::OnlyForApps => "denied",
        Error::Withheld(_) | Error::Blocked(_) => "blocked",
        Error::BadCursor
        | Error::StateInvalid
        | Error::BadAnswer { .. }
        | Error::HeaderMismatch { .. }
        | Error::InvalidArguments(_)
        | Error::NotOffered(_)
        | Error::NeedsCapabilities(_) => "invalid",
        Error::InvalidResult { .. } => "protocol_error",
        Error::OverLimit(_) | Error::Limited(_) => "shed",
        Error::Upstream(FromUpstream { error, .. }) => from_upstream(error),
        Error::Deadline => "timeout",
        Error::ShuttingDown | Error::AuditUnavailable | Error::Panicked => "unavailable",
    }
}

const fn from_upstream(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::Unavailable { .. }
        | UpstreamError::Auth(_)
        | UpstreamError::Credential(_)
        | UpstreamError::Redirect => "unavailable",
        UpstreamError::Timeout(_) => "timeout",
        UpstreamError::Overloaded => "shed",
        UpstreamError::NeedsCapabilities(_) => "invalid",
        UpstreamError::Undeclared(_) => "protocol_error",
        UpstreamError::Protocol(_)
        | UpstreamError::Status(_)
        | UpstreamError::TooLarge(_)
        | UpstreamError::RequestTooLarge
        | UpstreamError::OutcomeUnknown
        | UpstreamError::Refused(_) => "protocol_error",
    }
}
