//! Failures that a model can act on: as results of tools (PRODUCT 6).

use super::{
    needed_capabilities, retry_millis,
    words::{
        CANNOT_APPROVE, NOT_APPROVED, REFUSED, SESSION_ENDED, arguments, content, describe, login,
        over, withheld,
    },
};
use crate::{
    call::{CallId, Op},
    json::Json,
    jsonrpc::RpcError,
    limits::Stage,
    protocol::{Era, meta},
    stack::{self, Error},
    upstream::{FromUpstream, UpstreamError},
};

/// A failure that a model can act on: a tool result, and what its `_meta` says in keys of our own.
pub(in crate::downstream) struct ToolError {
    /// The result, without `_meta`.
    pub(in crate::downstream) result: Json,
    /// Reason, reference, when to try again. Stamped on last, since such keys from elsewhere are cut.
    pub(in crate::downstream) about: Vec<(&'static str, Json)>,
}

impl ToolError {
    fn new(text: &str, about: Vec<(&'static str, Json)>) -> Self {
        let block =
            meta::object_of(&[("type", Json::string("text")), ("text", Json::string(text))]);
        let result = meta::object_of(&[
            ("content", Json::array(&[block])),
            ("isError", Json::of(&true)),
        ]);
        Self { result, about }
    }

    /// What was lost on the way after the first event: words and reason are ours already.
    pub(in crate::downstream) fn of_lost(error: &RpcError, call: CallId) -> Self {
        let reason = error
            .data
            .as_ref()
            .and_then(|data| Some(data.slice(data.root().member("reason")?)));
        let mut about = vec![("dev.usher/ref", Json::string(&call.to_string()))];
        about.extend(reason.map(|reason| ("dev.usher/reason", reason)));
        Self::new(&error.message, about)
    }
}

/// For `tools/call`: a failure of the upstream as a tool result that a model can act on (PRODUCT 6), if it is one.
pub(in crate::downstream) fn tool_error(
    error: &Error,
    era: Era,
    op: &Op,
    call: CallId,
) -> Option<ToolError> {
    // What a client lacks is for the client to see, not for the model, where its era has words for that.
    let for_client = era == Era::Modern && needed_capabilities(error).is_some();
    if !matches!(op, Op::CallTool(_)) || for_client {
        return None;
    }
    let text = match error {
        // What was to go on is gone: there is nothing that a model could do about it (PROTOCOL D7).
        Error::Upstream(FromUpstream {
            error: UpstreamError::OutcomeUnknown,
            ..
        }) => return None,
        Error::Upstream(from) => describe(from),
        Error::Deadline => {
            "no answer within the time allowed; whether the tool ran is unknown".to_owned()
        }
        Error::SessionEnded => SESSION_ENDED.to_owned(),
        Error::InputRefused => REFUSED.to_owned(),
        Error::Denied { text, .. } => text.to_string(),
        Error::NotApproved => NOT_APPROVED.to_owned(),
        Error::CannotApprove => CANNOT_APPROVE.to_owned(),
        Error::LoginNeeded(needed) => login(needed),
        Error::OverLimit(limited) if limited.stage == Stage::Route => over(limited),
        Error::Withheld(_) | Error::Blocked(_) => content(error),
        Error::InvalidArguments(problems) => arguments(problems),
        Error::InvalidResult { upstream, problems } => stack::refused(upstream, problems),
        Error::Quarantined(what) => withheld(what),
        Error::Unknown(_)
        | Error::NoScope
        | Error::BadCursor
        | Error::StateInvalid
        | Error::BadAnswer { .. }
        | Error::HeaderMismatch { .. }
        | Error::NotOffered(_)
        | Error::NotSubscribable { .. }
        | Error::OnlyForApps
        | Error::NeedsCapabilities(_)
        | Error::InsufficientScope { .. }
        | Error::OverLimit(_)
        | Error::Limited(_)
        | Error::AuditUnavailable
        | Error::Panicked
        | Error::ShuttingDown
        | Error::CutOff => return None,
    };
    let mut about = vec![
        ("dev.usher/reason", Json::string(error.reason())),
        ("dev.usher/ref", Json::string(&call.to_string())),
    ];
    if let Error::OverLimit(limited) = error {
        about.push(("dev.usher/rule", Json::string(&limited.rule)));
    }
    if let Some(after) = retry_millis(error) {
        about.push(("dev.usher/retryAfterMs", Json::of(&after)));
    }
    Some(ToolError::new(&text, about))
}
