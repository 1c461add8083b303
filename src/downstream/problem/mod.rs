//! The one place that maps our own errors to what a client sees: status, code, words, reason.
//!
//! Text never holds upstream addresses, causes, paths or internal names (SECURITY 4); reasons are stable words.

mod tool;
mod words;

use std::{sync::Arc, time::Duration};

use http::StatusCode;

use crate::{
    call::CallId,
    json::{Edits, Fate, Json},
    jsonrpc::{DecodeError, RequestId, RpcError, decode::Fault},
    limits::Stage,
    memory::Full,
    metrics::{self, Bound, Refusal},
    protocol::{Era, codes, meta},
    stack::{self, Error, LoginNeeded, Missing},
    upstream::{FromUpstream, UpstreamError, words::bad_answer},
};

pub(super) use crate::upstream::words::wait_seconds;
pub(super) use tool::{ToolError, tool_error};
pub(super) use words::content;

use words::{
    CANNOT_APPROVE, CUT_OFF, NO_MEMORY, NOT_APPROVED, PANICKED, REFUSED, SESSION_ENDED,
    SHUTTING_DOWN, arguments, describe, login, over, withheld,
};

/// A refusal as it goes out.
#[derive(Debug)]
pub(super) struct Problem {
    /// The HTTP status; without meaning on a pipe and inside a started stream.
    pub(super) status: StatusCode,
    /// Whose request it was, if known.
    pub(super) id: Option<RequestId>,
    /// The error object; boxed, since as a rule there is none.
    pub(super) error: Box<RpcError>,
    /// The scopes that would help, for the challenge that goes with `403`.
    pub(super) scopes: Option<Arc<[Arc<str>]>>,
    /// After what time to try again, for `Retry-After`.
    pub(super) retry: Option<Duration>,
    /// Why, where it never came to be a call; what became of calls is recorded elsewhere.
    pub(super) early: Option<EarlyRefusal>,
}

/// The refusal of what never came to be a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EarlyRefusal {
    /// Why, as a word from the published list.
    pub(super) reason: &'static str,
    /// What the answer refers to and the record names, where the answer is a message; as a call would be named.
    pub(super) reference: Option<CallId>,
}

impl EarlyRefusal {
    /// In a status of HTTP and nothing else.
    pub(super) const fn unsaid(reason: &'static str) -> Self {
        Self {
            reason,
            reference: None,
        }
    }
}

impl Problem {
    /// A refusal with a reason word, which goes with a reference into what there is of data (SECURITY 4).
    pub(super) fn new(
        status: StatusCode,
        id: Option<RequestId>,
        mut error: RpcError,
        reason: &'static str,
    ) -> Self {
        let data = error.data.unwrap_or(Json::empty_object());
        let reference = CallId::new();
        let more = [
            ("reason", Json::string(reason)),
            ("ref", Json::string(&reference.to_string())),
        ];
        let mut edits = Edits::new();
        edits.members(data.root(), |_, _| Fate::Keep, &more);
        error.data = Some(data.splice(&edits));
        Self {
            status,
            id,
            error: Box::new(error),
            scopes: None,
            retry: None,
            early: Some(EarlyRefusal {
                reason,
                reference: Some(reference),
            }),
        }
    }

    /// The same of what was a call after all: its record is what the answer refers to, and there is no other.
    pub(super) fn about(mut self, call: CallId) -> Self {
        refer(&mut self.error, call);
        Self {
            early: None,
            ..self
        }
    }

    /// The same in a session, whose client takes `404` for the loss of it (PROTOCOL B4).
    pub(super) fn in_session(self) -> Self {
        let status = match self.status {
            StatusCode::NOT_FOUND => StatusCode::OK,
            other => other,
        };
        Self { status, ..self }
    }

    /// A session that is not there, or no longer, or somebody else's: always the same words (SECURITY STATE-6).
    pub(super) fn session_unknown(id: Option<RequestId>) -> Self {
        let error = RpcError::new(
            codes::SESSION_NOT_FOUND,
            "no such session; send `initialize` again",
        );
        Self::new(StatusCode::NOT_FOUND, id, error, "unknown_session")
    }

    /// The gateway is stopping, and takes nothing new (SECURITY REL-7).
    pub(super) fn shutting_down(id: Option<RequestId>) -> Self {
        let error = RpcError::new(codes::SHUTTING_DOWN, SHUTTING_DOWN);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, id, error, "shutting_down")
    }

    /// There is no memory for it now (SECURITY REL-3, REL-9).
    pub(super) fn no_memory(id: Option<RequestId>) -> Self {
        Self::full(Full::Budget, id)
    }

    /// The same, of what there is for one or for all.
    pub(super) fn full(full: Full, id: Option<RequestId>) -> Self {
        metrics::reached(full.into());
        let error = RpcError::new(codes::OVERLOADED, NO_MEMORY);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, id, error, "overloaded")
    }

    /// A pipe has as many requests in flight as it may have (SECURITY REL-3).
    pub(super) fn too_many_requests(id: Option<RequestId>) -> Self {
        let text = "too many requests are running on this connection; try again when one of them is answered";
        let error = RpcError::new(codes::OVERLOADED, text);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, id, error, "overloaded")
    }

    /// A connection that carries messages both ways has as many listens as it may have.
    pub(super) fn too_many_listens(id: RequestId) -> Self {
        let text = "too many listens on this connection; end one of them first";
        let error = RpcError::new(codes::OVERLOADED, text);
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            Some(id),
            error,
            "rate_limited",
        )
    }

    /// Something of ours panicked before there was a call, or beside it (SECURITY REL-1).
    pub(super) fn panicked(id: Option<RequestId>) -> Self {
        let error = RpcError::new(codes::INTERNAL_ERROR, PANICKED);
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            id,
            error,
            "internal_error",
        )
    }

    /// A message of more bytes than this on a pipe, of which nothing was looked at (SECURITY 6).
    pub(super) fn too_large(most: usize) -> Self {
        metrics::reached(Bound::HttpBody);
        let text = format!("a message of more than {most} bytes");
        let error = RpcError::new(codes::INVALID_REQUEST, text);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, None, error, "body_too_large")
    }

    /// Bytes that are no frame (PROTOCOL B1 table, SECURITY MSG-1 to MSG-7).
    pub(super) fn undecodable(error: DecodeError) -> Self {
        let (code, text) = match error.fault {
            Fault::Scan(scan) => {
                metrics::overstepped(scan, Bound::JsonDepth);
                (codes::PARSE_ERROR, scan.to_string())
            }
            Fault::Envelope(_) | Fault::Confusable => {
                (codes::INVALID_REQUEST, error.fault.to_string())
            }
        };
        Self::new(
            StatusCode::BAD_REQUEST,
            error.id,
            RpcError::new(code, text),
            error.fault.reason(),
        )
    }
}

/// What a call came to in words of ours already, with what the answer refers to (SECURITY 4).
pub(super) fn lost(mut error: RpcError, call: CallId) -> RpcError {
    refer(&mut error, call);
    error
}

fn refer(error: &mut RpcError, call: CallId) {
    let data = error.data.take().unwrap_or(Json::empty_object());
    let mut edits = Edits::new();
    edits.set(data.root(), "ref", Json::string(&call.to_string()));
    error.data = Some(data.splice(&edits));
}

/// For a client of 2025-11-25 that shows URLs, but not while it waits for this answer: the error that its revision has for it.
pub(super) fn visit(error: &Error, call: CallId) -> Option<RpcError> {
    let Error::LoginNeeded(LoginNeeded {
        upstream,
        url: Some(url),
        notice,
    }) = error
    else {
        return None;
    };
    let message = format!("Log in to `{upstream}` to let this call go on.");
    let visit = meta::object_of(&[
        ("mode", Json::literal("\"url\"")),
        ("elicitationId", Json::string(notice)),
        ("url", Json::string(url)),
        ("message", Json::string(&message)),
    ]);
    let data = meta::object_of(&[
        ("elicitations", Json::array(&[visit])),
        ("reason", Json::string(error.reason())),
        ("ref", Json::string(&call.to_string())),
    ]);
    Some(RpcError {
        data: Some(data),
        ..RpcError::new(codes::URL_ELICITATION_REQUIRED, message)
    })
}

/// Maps an error of the stack, for one request in one era.
pub(super) fn problem(error: &Error, era: Era, id: RequestId, call: CallId) -> Problem {
    let (status, code, message) = mapped(error, era);
    let told_in_status = status != StatusCode::OK;
    let scopes = if let Error::InsufficientScope { scopes } = error {
        Some(scopes.clone())
    } else {
        None
    };
    let retry = if let Error::OverLimit(limited) = error
        && told_in_status
    {
        Some(limited.retry)
    } else {
        None
    };
    Problem {
        status,
        id: Some(id),
        error: Box::new(RpcError {
            code,
            message,
            data: Some(data_of(error, era, call)),
        }),
        scopes,
        retry,
        early: None,
    }
}

/// The table: the status, the code and the words of each error.
fn mapped(error: &Error, era: Era) -> (StatusCode, i64, String) {
    let modern_status = |status: StatusCode| {
        if era == Era::Modern {
            status
        } else {
            StatusCode::OK
        }
    };
    match error {
        Error::Unknown(Missing::Resource(_)) => (
            StatusCode::OK,
            resource_not_found(era),
            "no such resource".to_owned(),
        ),
        Error::Unknown(missing) => (
            StatusCode::OK,
            codes::INVALID_PARAMS,
            format!("no such {missing}"),
        ),
        Error::Quarantined(what) => (StatusCode::OK, codes::INVALID_PARAMS, withheld(what)),
        Error::NoScope => (
            StatusCode::NOT_FOUND,
            codes::INVALID_REQUEST,
            "no such endpoint".to_owned(),
        ),
        Error::BadCursor => (
            StatusCode::OK,
            codes::INVALID_PARAMS,
            "the cursor is not valid for this list, or has expired; start again without one"
                .to_owned(),
        ),
        Error::StateInvalid => (
            StatusCode::OK,
            codes::INVALID_PARAMS,
            "`requestState` is not valid for this call, or has expired; start again without it"
                .to_owned(),
        ),
        Error::BadAnswer { key } => (
            StatusCode::OK,
            codes::INVALID_PARAMS,
            bad_answer(key.as_deref()),
        ),
        Error::InputRefused => (StatusCode::OK, codes::INPUT_REFUSED, REFUSED.to_owned()),
        Error::LoginNeeded(needed) => (StatusCode::OK, codes::LOGIN_REQUIRED, login(needed)),
        Error::HeaderMismatch { header } => (
            modern_status(StatusCode::BAD_REQUEST),
            codes::HEADER_MISMATCH,
            format!("header `{header}` does not agree with the body"),
        ),
        Error::InvalidArguments(problems) => {
            (StatusCode::OK, codes::INVALID_PARAMS, arguments(problems))
        }
        Error::InvalidResult { upstream, problems } => (
            StatusCode::OK,
            codes::UPSTREAM_PROTOCOL,
            stack::refused(upstream, problems),
        ),
        Error::NotOffered(_) => (
            modern_status(StatusCode::NOT_FOUND),
            codes::METHOD_NOT_FOUND,
            "this endpoint does not offer the method".to_owned(),
        ),
        // In the same words, whatever it is: what is hidden is not told from what its server does not tell of.
        Error::NotSubscribable { .. } => (
            StatusCode::OK,
            codes::INVALID_PARAMS,
            "this resource cannot be subscribed to".to_owned(),
        ),
        Error::OnlyForApps => (
            StatusCode::OK,
            codes::INVALID_PARAMS,
            "the tool is for apps of its own server; they can call it at that server's own endpoint"
                .to_owned(),
        ),
        Error::NeedsCapabilities(_) => (
            modern_status(StatusCode::BAD_REQUEST),
            codes::MISSING_CAPABILITY,
            "the method needs client capabilities that were not declared".to_owned(),
        ),
        // In both eras: that is how clients of either are told to ask their user for more (PROTOCOL F5).
        Error::InsufficientScope { scopes } => (
            StatusCode::FORBIDDEN,
            codes::FORBIDDEN,
            format!("this needs a token with the scope `{}`", scopes.join(" ")),
        ),
        Error::Denied { text, .. } => (StatusCode::OK, codes::DENIED, text.to_string()),
        Error::NotApproved => (StatusCode::OK, codes::DENIED, NOT_APPROVED.to_owned()),
        Error::CannotApprove => (StatusCode::OK, codes::DENIED, CANNOT_APPROVE.to_owned()),
        // Both eras' transports can carry it; a rule for a tool or a server is no fault of the request as such.
        Error::OverLimit(limited) => (
            match (limited.stage, limited.whole) {
                (Stage::Route, _) => StatusCode::OK,
                (Stage::Entry, true) => StatusCode::SERVICE_UNAVAILABLE,
                (Stage::Entry, false) => StatusCode::TOO_MANY_REQUESTS,
            },
            match limited.refusal {
                Refusal::Overload => codes::OVERLOADED,
                Refusal::Rate | Refusal::Quota => codes::LIMITED,
            },
            over(limited),
        ),
        Error::Withheld(_) | Error::Blocked(_) => {
            (StatusCode::OK, codes::CONTENT_BLOCKED, content(error))
        }
        Error::Limited(what) => (
            modern_status(StatusCode::TOO_MANY_REQUESTS),
            codes::OVERLOADED,
            (*what).to_owned(),
        ),
        Error::Upstream(from) => (
            if needed_capabilities(error).is_some() {
                modern_status(StatusCode::BAD_REQUEST)
            } else {
                StatusCode::OK
            },
            upstream_code(&from.error, era),
            describe(from),
        ),
        Error::Deadline => (
            StatusCode::OK,
            codes::UPSTREAM_TIMEOUT,
            "no answer within the time allowed".to_owned(),
        ),
        Error::ShuttingDown => (
            StatusCode::SERVICE_UNAVAILABLE,
            codes::SHUTTING_DOWN,
            SHUTTING_DOWN.to_owned(),
        ),
        Error::CutOff => (
            StatusCode::SERVICE_UNAVAILABLE,
            codes::SHUTTING_DOWN,
            CUT_OFF.to_owned(),
        ),
        // What was sent counts as sent: a client that is told of a lost session calls again (PROTOCOL B4, G8).
        Error::SessionEnded => (
            StatusCode::OK,
            codes::UPSTREAM_UNAVAILABLE,
            SESSION_ENDED.to_owned(),
        ),
        Error::Panicked => (
            modern_status(StatusCode::INTERNAL_SERVER_ERROR),
            codes::INTERNAL_ERROR,
            PANICKED.to_owned(),
        ),
        Error::AuditUnavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            codes::AUDIT_UNAVAILABLE,
            "nothing can be recorded at the moment, so nothing is done; try again later".to_owned(),
        ),
    }
}

/// What a program can read of an error: why, what to refer to, and what else there is to know of it.
fn data_of(error: &Error, era: Era, call: CallId) -> Json {
    let mut data = vec![
        ("reason", Json::string(error.reason())),
        ("ref", Json::string(&call.to_string())),
    ];
    if let Error::Unknown(Missing::Resource(uri)) = error {
        data.push(("uri", Json::string(uri)));
    }
    if let Error::LoginNeeded(LoginNeeded { url: Some(url), .. }) = error {
        data.push(("url", Json::string(url)));
    }
    if let Some(needed) = needed_capabilities(error)
        && era == Era::Modern
    {
        data.push(("requiredCapabilities", needed.clone()));
    }
    if let Error::OverLimit(limited) = error {
        data.push(("rule", Json::string(&limited.rule)));
    }
    if let Some(after) = retry_millis(error) {
        data.push(("retryAfterMs", Json::of(&after)));
    }
    meta::object_of(&data)
}

/// The code for a resource that does not exist (PROTOCOL A6).
pub(super) const fn resource_not_found(era: Era) -> i64 {
    match era {
        Era::Modern => codes::INVALID_PARAMS,
        Era::Legacy => codes::RESOURCE_NOT_FOUND,
    }
}

fn upstream_code(error: &UpstreamError, era: Era) -> i64 {
    if era == Era::Modern && matches!(error, UpstreamError::NeedsCapabilities(_)) {
        return codes::MISSING_CAPABILITY;
    }
    error.code()
}

/// What the client would have to declare, where that is what is missing.
const fn needed_capabilities(error: &Error) -> Option<&Json> {
    if let Error::NeedsCapabilities(needed)
    | Error::Upstream(FromUpstream {
        error: UpstreamError::NeedsCapabilities(needed),
        ..
    }) = error
    {
        Some(needed)
    } else {
        None
    }
}

/// In how many milliseconds to try again, where that is known.
fn retry_millis(error: &Error) -> Option<u64> {
    let millis = |wait: u128| u64::try_from(wait).unwrap_or(u64::MAX);
    if let Error::OverLimit(limited) = error {
        return Some(millis(limited.retry.as_nanos().div_ceil(1_000_000)));
    }
    let Error::Upstream(FromUpstream { error, .. }) = error else {
        return None;
    };
    if let UpstreamError::Unavailable {
        retry_at: Some(at), ..
    } = error
    {
        let wait = at.saturating_duration_since(tokio::time::Instant::now());
        return Some(millis(wait.as_millis()));
    }
    // A person takes longer than a queue.
    if matches!(error, UpstreamError::Engaged) {
        return Some(15_000);
    }
    if let UpstreamError::Credential(error) = error {
        return error.pause().map(|pause| millis(pause.as_millis()));
    }
    matches!(error, UpstreamError::Overloaded).then_some(2_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{call::Op, protocol::Revision};

    /// SECURITY 4
    #[test]
    fn what_the_specification_has_for_data_stands_beside_reason_and_reference() {
        let with = |data: &'static str| RpcError {
            data: Some(Json::literal(data)),
            ..RpcError::new(codes::UNSUPPORTED_VERSION, "m")
        };
        let status = StatusCode::BAD_REQUEST;
        let told = Problem::new(status, None, with(r#"{"requested":"x"}"#), "word");
        let early = told.early.unwrap();
        let named = early.reference.unwrap();
        assert_eq!(
            told.error.data.unwrap().as_str(),
            format!(r#"{{"requested":"x","reason":"word","ref":"{named}"}}"#)
        );
        let call = CallId::new();
        let told = lost(with(r#"{"reason":"word"}"#), call);
        assert_eq!(
            told.data.unwrap().as_str(),
            format!(r#"{{"reason":"word","ref":"{call}"}}"#)
        );
    }

    /// SECURITY 8
    #[test]
    fn what_is_recorded_of_a_code_is_what_is_told_of_it() {
        let all = [
            Error::Unknown(Missing::Tool("t".into())),
            Error::Unknown(Missing::Prompt("p".into())),
            Error::Unknown(Missing::Resource("r://1".into())),
            Error::Unknown(Missing::Task),
            Error::BadCursor,
            Error::StateInvalid,
            Error::BadAnswer { key: None },
            Error::OnlyForApps,
            Error::NotSubscribable { gone: true },
            Error::NotSubscribable { gone: false },
            Error::NoScope,
            Error::HeaderMismatch { header: "h".into() },
            Error::NotOffered("m".into()),
            Error::NeedsCapabilities(Json::empty_object()),
            Error::InsufficientScope {
                scopes: Arc::new(["s".into()]),
            },
            Error::Limited("l"),
            Error::ShuttingDown,
            Error::CutOff,
            Error::Panicked,
            Error::AuditUnavailable,
        ];
        let op = Op::CallTool("t".into());
        for error in all {
            for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
                let (era, call) = (revision.era(), CallId::new());
                let told = problem(&error, era, RequestId::minted(1), call);
                let recorded = error.code(revision.features());
                assert_eq!(recorded, Some(told.error.code), "{error:?}");
                assert!(tool_error(&error, era, &op, call).is_none(), "{error:?}");
            }
        }
    }

    #[test]
    fn a_token_that_lacks_a_scope_is_http_403_in_both_eras_and_names_all_scopes() {
        let error = Error::InsufficientScope {
            scopes: Arc::new(["read".into(), "write".into()]),
        };
        for era in [Era::Modern, Era::Legacy] {
            let told = problem(&error, era, RequestId::minted(1), CallId::new());
            assert_eq!(told.status, StatusCode::FORBIDDEN);
            assert_eq!(told.error.code, codes::FORBIDDEN);
            let scopes = told.scopes.expect("scopes");
            assert_eq!(scopes.join(" "), "read write");
        }
        let op = Op::CallTool("t".into());
        assert!(tool_error(&error, Era::Modern, &op, CallId::new()).is_none());
    }
}
