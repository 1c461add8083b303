//! What it means when there is no response: an HTTP status alone, or a stream that breaks.

use crate::{
    json::Json,
    jsonrpc::RpcError,
    protocol::{codes, meta},
    upstream::{UpstreamError, transport::Head},
};

/// What an HTTP answer without a frame means when nothing better is known about it. What is refused whatever comes with it, a
/// redirect or a refused credential, no transport hands on.
pub(in crate::upstream) fn bare(head: &Head) -> UpstreamError {
    match head.status.as_u16() {
        code @ (408 | 425 | 429 | 500..=599) => {
            UpstreamError::away(format!("HTTP {code}"), head.status).again_in(head.retry_after)
        }
        code => UpstreamError::Status(code),
    }
}

/// An error that comes after the first event: the stream's outcome, in our own range and without the cause.
pub(in crate::upstream) fn failure(error: &UpstreamError) -> RpcError {
    let (code, message) = match error {
        UpstreamError::Unavailable { .. } | UpstreamError::OutcomeUnknown => (
            codes::UPSTREAM_UNAVAILABLE,
            "the connection to the upstream was lost before its answer; whether the call took effect is unknown",
        ),
        UpstreamError::Timeout(_) => (
            codes::UPSTREAM_TIMEOUT,
            "the upstream did not answer in time; whether the call took effect is unknown",
        ),
        UpstreamError::Protocol(_)
        | UpstreamError::Undeclared(_)
        | UpstreamError::Status(_)
        | UpstreamError::Refused(_)
        | UpstreamError::Redirect(_) => {
            (codes::UPSTREAM_PROTOCOL, "the upstream broke the protocol")
        }
        // Its own code goes with HTTP 400, for which it is too late.
        UpstreamError::NeedsCapabilities(_) => (
            codes::INTERNAL_ERROR,
            "the upstream cannot do this without client capabilities that this call does not come with",
        ),
        UpstreamError::CannotVisit => (
            codes::INTERNAL_ERROR,
            "the upstream wants its user to open a URL, and this client cannot open URLs",
        ),
        UpstreamError::BadAnswer(_) => (
            codes::INVALID_PARAMS,
            "an answer is not one that was asked for",
        ),
        UpstreamError::Auth(_) => (
            codes::UPSTREAM_AUTH,
            "the upstream refused the gateway's credential",
        ),
        UpstreamError::Credential(error) if error.pause().is_some() => (
            codes::UPSTREAM_UNAVAILABLE,
            "the gateway can get no credential for the upstream now",
        ),
        UpstreamError::Credential(_) => (
            codes::UPSTREAM_AUTH,
            "the gateway has no credential for the upstream",
        ),
        UpstreamError::TooLarge(_) | UpstreamError::RequestTooLarge => (
            codes::UPSTREAM_TOO_LARGE,
            "the upstream's answer is too large",
        ),
        UpstreamError::Overloaded => (codes::OVERLOADED, "too many calls in flight"),
        UpstreamError::Engaged => (
            codes::OVERLOADED,
            "another call of the session waits for its user's answer",
        ),
        UpstreamError::NoMemory => (
            codes::OVERLOADED,
            "there is no memory for the upstream's answer now; whether the call took effect is unknown",
        ),
    };
    let data = meta::object_of(&[("reason", Json::string(error.reason()))]);
    RpcError {
        data: Some(data),
        ..RpcError::new(code, message)
    }
}
