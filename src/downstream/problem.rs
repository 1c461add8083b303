//! The one place that maps our own errors to what a client sees: status, code, words, reason.
//!
//! Text never holds upstream addresses, causes, paths or internal names (SECURITY 4); reasons are stable words.

use std::{sync::Arc, time::Duration};

use http::StatusCode;

use crate::{
    call::{CallId, Op},
    json::Json,
    jsonrpc::{DecodeError, RequestId, RpcError, decode::Fault},
    limits::{Limited, Stage},
    metrics::{self, Bound, Refusal},
    protocol::{Era, codes, meta},
    schema,
    stack::{self, Error, LoginNeeded, Missing},
    upstream::{CredentialError, FromUpstream, UpstreamError},
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
}

impl Problem {
    /// A refusal with a reason word.
    pub(super) fn new(
        status: StatusCode,
        id: Option<RequestId>,
        mut error: RpcError,
        reason: &str,
    ) -> Self {
        if error.data.is_none() {
            error.data = Some(meta::object_of(&[("reason", Json::string(reason))]));
        }
        Self {
            status,
            id,
            error: Box::new(error),
            scopes: None,
            retry: None,
        }
    }

    /// A session that is not there, or no longer, or somebody else's: always the same words (SECURITY STATE-6).
    pub(super) fn session_unknown(id: Option<RequestId>) -> Self {
        let error = RpcError::new(
            codes::SESSION_NOT_FOUND,
            "no such session; send `initialize` again",
        );
        Self::new(StatusCode::NOT_FOUND, id, error, "unknown_session")
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

/// What is said when a client gives no input.
const REFUSED: &str =
    "the input that the server asked for was refused or not given in time; it did not go on";

/// What is said when a person did not agree to a call.
const NOT_APPROVED: &str =
    "this needs the approval of the person at the client, who did not give it; it was not done";

/// What is said when nobody can be asked to agree.
const CANNOT_APPROVE: &str = "this needs the approval of a person, and this client cannot ask one (it declares no `elicitation`, or takes no event stream); it was not done";
/// What is said of content that does not go on: what sort of thing it holds and where, never what.
pub(super) fn content(error: &Error) -> String {
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
    format!(
        "the answer was withheld: it holds what must not come through ({}){}; the call itself was made",
        blocked.kind,
        Place(&blocked.place)
    )
}

/// A place in content, where one is known; what its peer called it is shown, but nothing that could be more than a name.
struct Place<'a>(&'a str);

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
fn login(needed: &LoginNeeded) -> String {
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

/// What is said of an item that is not the one that was approved.
fn withheld(what: &Missing) -> String {
    format!(
        "the definition of this {what} has changed, or is new, and was not approved yet; it cannot be used before the operator of the gateway approves it (`usher pins diff`)"
    )
}

/// What is said of arguments that do not fit, so that whoever sent them can mend them (SECURITY MSG-12).
fn arguments(problems: &[schema::Problem]) -> String {
    format!(
        "the tool was not run: its arguments do not fit its input schema: {}",
        stack::in_words(problems)
    )
}

/// Maps an error of the stack, for one request in one era.
pub(super) fn problem(error: &Error, era: Era, id: RequestId, call: CallId) -> Problem {
    let modern_status = |status: StatusCode| {
        if era == Era::Modern {
            status
        } else {
            StatusCode::OK
        }
    };
    let (status, code, text) = match error {
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
            key.as_deref().map_or_else(
                || "`inputResponses` is not an object".to_owned(),
                |key| {
                    let key = key.escape_debug();
                    format!("the answer to input `{key}` is not one that was asked for")
                },
            ),
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
            upstream_code(&from.error),
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
            "shutting down; try again".to_owned(),
        ),
        Error::AuditUnavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            codes::AUDIT_UNAVAILABLE,
            "nothing can be recorded at the moment, so nothing is done; try again later".to_owned(),
        ),
    };
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
    if let Some(needed) = needed_capabilities(error) {
        data.push(("requiredCapabilities", needed.clone()));
    }
    if let Error::OverLimit(limited) = error {
        data.push(("rule", Json::string(&limited.rule)));
    }
    if let Some(after) = retry_millis(error) {
        data.push(("retryAfterMs", Json::of(&after)));
    }
    let scopes = if let Error::InsufficientScope { scopes } = error {
        Some(scopes.clone())
    } else {
        None
    };
    let told_in_status = status != StatusCode::OK;
    let retry = if let Error::OverLimit(limited) = error
        && told_in_status
    {
        Some(limited.retry)
    } else {
        None
    };
    Problem {
        scopes,
        retry,
        status,
        id: Some(id),
        error: Box::new(RpcError {
            code,
            message: text,
            data: Some(meta::object_of(&data)),
        }),
    }
}

/// A failure that a model can act on: a tool result, and what its `_meta` says in keys of our own.
pub(super) struct ToolError {
    /// The result, without `_meta`.
    pub(super) result: Json,
    /// Reason, reference, when to try again. Stamped on last, since such keys from elsewhere are cut.
    pub(super) about: Vec<(&'static str, Json)>,
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
    pub(super) fn of_lost(error: &RpcError, call: CallId) -> Self {
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
pub(super) fn tool_error(error: &Error, op: &Op, call: CallId) -> Option<ToolError> {
    // What a client lacks is for the client to see, not for the model.
    if !matches!(op, Op::CallTool(_)) || needed_capabilities(error).is_some() {
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
        | Error::OnlyForApps
        | Error::NeedsCapabilities(_)
        | Error::InsufficientScope { .. }
        | Error::OverLimit(_)
        | Error::Limited(_)
        | Error::AuditUnavailable
        | Error::ShuttingDown => return None,
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

/// The code for a resource that does not exist (PROTOCOL A6).
pub(super) const fn resource_not_found(era: Era) -> i64 {
    match era {
        Era::Modern => codes::INVALID_PARAMS,
        Era::Legacy => codes::RESOURCE_NOT_FOUND,
    }
}

const fn upstream_code(error: &UpstreamError) -> i64 {
    match error {
        UpstreamError::Unavailable { .. } | UpstreamError::OutcomeUnknown => {
            codes::UPSTREAM_UNAVAILABLE
        }
        UpstreamError::Timeout(_) => codes::UPSTREAM_TIMEOUT,
        UpstreamError::Protocol(_)
        | UpstreamError::Undeclared(_)
        | UpstreamError::Redirect
        | UpstreamError::Refused(_) => codes::UPSTREAM_PROTOCOL,
        UpstreamError::Auth(_) | UpstreamError::Credential(_) => codes::UPSTREAM_AUTH,
        UpstreamError::TooLarge(_) | UpstreamError::RequestTooLarge => codes::UPSTREAM_TOO_LARGE,
        UpstreamError::Overloaded => codes::OVERLOADED,
        UpstreamError::NeedsCapabilities(_) => codes::MISSING_CAPABILITY,
    }
}

/// What happened, for a person or a model: the configured key of the upstream is ours to tell, its address is not.
fn describe(from: &FromUpstream) -> String {
    let upstream = &from.upstream;
    match &from.error {
        UpstreamError::Unavailable {
            retry_at: Some(at), ..
        } => {
            let wait = at
                .saturating_duration_since(tokio::time::Instant::now())
                .as_secs()
                + 1;
            format!(
                "the server `{upstream}` is not available; the next attempt to reach it is due in {wait} s"
            )
        }
        UpstreamError::Unavailable { retry_at: None, .. } => {
            format!(
                "the server `{upstream}` is not available, or was lost during the call; whether the call took effect is unknown"
            )
        }
        UpstreamError::Timeout(_) => {
            format!(
                "the server `{upstream}` did not answer in time; the call was cancelled, whether it took effect is unknown"
            )
        }
        UpstreamError::Protocol(_)
        | UpstreamError::Undeclared(_)
        | UpstreamError::Redirect
        | UpstreamError::Refused(_) => {
            format!("the server `{upstream}` gave an answer that breaks the protocol")
        }
        UpstreamError::Auth(_) | UpstreamError::Credential(CredentialError::Lacks(_)) => format!(
            "the server `{upstream}` refused the gateway's credential; its operator must look"
        ),
        UpstreamError::Credential(error) if error.is_the_callers() => format!(
            "the server `{upstream}` is used in your own name, and the credential that you called with cannot stand for you there; log in again, with an account that it knows"
        ),
        UpstreamError::Credential(_) => format!(
            "the gateway could not get a credential for the server `{upstream}`; its operator must look"
        ),
        UpstreamError::TooLarge(limit) => format!(
            "the answer of the server `{upstream}` is over {} MiB",
            limit >> 20
        ),
        UpstreamError::RequestTooLarge => {
            format!("the server `{upstream}` takes no request of this size; send less")
        }
        UpstreamError::Overloaded => format!(
            "the server `{upstream}` has too many calls in flight; try again in a few seconds"
        ),
        UpstreamError::OutcomeUnknown => format!(
            "the call to the server `{upstream}` that asked for input is no longer known; whether it took effect is unknown, and it was not repeated"
        ),
        UpstreamError::NeedsCapabilities(_) => format!(
            "the server `{upstream}` cannot do this without client capabilities that were not declared"
        ),
    }
}

/// What the client would have to declare, where that is what is missing.
const fn needed_capabilities(error: &Error) -> Option<&Json> {
    match error {
        Error::NeedsCapabilities(needed)
        | Error::Upstream(FromUpstream {
            error: UpstreamError::NeedsCapabilities(needed),
            ..
        }) => Some(needed),
        Error::Upstream(_)
        | Error::Unknown(_)
        | Error::Quarantined(_)
        | Error::NoScope
        | Error::BadCursor
        | Error::StateInvalid
        | Error::BadAnswer { .. }
        | Error::InputRefused
        | Error::LoginNeeded(_)
        | Error::HeaderMismatch { .. }
        | Error::InvalidArguments(_)
        | Error::InvalidResult { .. }
        | Error::NotOffered(_)
        | Error::OnlyForApps
        | Error::InsufficientScope { .. }
        | Error::Denied { .. }
        | Error::NotApproved
        | Error::CannotApprove
        | Error::OverLimit(_)
        | Error::Withheld(_)
        | Error::Blocked(_)
        | Error::Limited(_)
        | Error::Deadline
        | Error::AuditUnavailable
        | Error::ShuttingDown => None,
    }
}

/// Which rule or bound, and when to try again.
fn over(limited: &Limited) -> String {
    let (rule, wait) = (&limited.rule, in_words(limited.retry));
    match (limited.refusal, limited.whole) {
        (_, true) => format!("too many {rule}; try again in {wait}"),
        (Refusal::Overload, _) => format!("too many at once: {rule}; try again in {wait}"),
        (Refusal::Rate, _) => format!("over the rate of {rule}; try again in {wait}"),
        (Refusal::Quota, _) => format!("the quota of {rule} is used up; it begins anew in {wait}"),
    }
}

/// A wait, rounded up: `2 s`, `5 min`, `3 h`.
fn in_words(wait: Duration) -> String {
    match wait_seconds(wait) {
        seconds @ ..=120 => format!("{seconds} s"),
        seconds @ 121..=7_200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3_600)),
    }
}

/// Whole seconds, at least one and rounded up: trying again after them is not too soon.
pub(super) fn wait_seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun).max(1)
}

fn retry_millis(error: &Error) -> Option<u64> {
    match error {
        Error::Upstream(FromUpstream {
            error: UpstreamError::Unavailable {
                retry_at: Some(at), ..
            },
            ..
        }) => {
            let wait = at.saturating_duration_since(tokio::time::Instant::now());
            Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
        }
        Error::Upstream(FromUpstream {
            error: UpstreamError::Overloaded,
            ..
        }) => Some(2_000),
        Error::OverLimit(limited) => {
            let wait = limited.retry.as_nanos().div_ceil(1_000_000);
            Some(u64::try_from(wait).unwrap_or(u64::MAX))
        }
        Error::Upstream(_)
        | Error::Unknown(_)
        | Error::Quarantined(_)
        | Error::NoScope
        | Error::BadCursor
        | Error::StateInvalid
        | Error::BadAnswer { .. }
        | Error::InputRefused
        | Error::LoginNeeded(_)
        | Error::HeaderMismatch { .. }
        | Error::InvalidArguments(_)
        | Error::InvalidResult { .. }
        | Error::NotOffered(_)
        | Error::OnlyForApps
        | Error::NeedsCapabilities(_)
        | Error::InsufficientScope { .. }
        | Error::Denied { .. }
        | Error::NotApproved
        | Error::CannotApprove
        | Error::Withheld(_)
        | Error::Blocked(_)
        | Error::Limited(_)
        | Error::Deadline
        | Error::AuditUnavailable
        | Error::ShuttingDown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(tool_error(&error, &op, CallId::new()).is_none());
    }
}
