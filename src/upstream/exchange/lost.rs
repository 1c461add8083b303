//! What it means when there is no response: an HTTP status alone, or a stream that breaks.

use crate::{
    json::Json,
    jsonrpc::RpcError,
    protocol::{UpstreamId, meta},
    upstream::{Deadline, Reached, UpstreamError, transport::Head, words},
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

/// An error that comes after the first event: the stream's outcome, in our own range, in the words of one that comes before it
/// and without the cause.
pub(in crate::upstream) fn failure(upstream: &UpstreamId, error: &UpstreamError) -> RpcError {
    let text = match answered_in_part(error) {
        Some(error) => words::describe(upstream, &error),
        None => words::describe(upstream, error),
    };
    let data = meta::object_of(&[("reason", Json::string(error.reason()))]);
    RpcError {
        data: Some(data),
        ..RpcError::new(error.code(), text)
    }
}

/// What an error says of a call that was being answered, where it says that something was not sent: the call was.
fn answered_in_part(error: &UpstreamError) -> Option<UpstreamError> {
    if let UpstreamError::Unavailable { reached, cause, .. } = error {
        return match reached {
            Reached::No | Reached::Yes => None,
            Reached::Busy
            | Reached::Forgotten
            | Reached::Misspoken
            | Reached::Never
            | Reached::Unsent => Some(UpstreamError::unreached(cause)),
        };
    }
    matches!(error, UpstreamError::Timeout(_)).then_some(UpstreamError::Timeout(Deadline::Call))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: &UpstreamError) -> RpcError {
        failure(&UpstreamId::parse("u").unwrap(), error)
    }

    #[test]
    fn what_fails_after_the_first_event_is_told_as_what_fails_before_it() {
        let needed = meta::object_of(&[("sampling", Json::empty_object())]);
        for error in [
            UpstreamError::Timeout(Deadline::Silence),
            UpstreamError::NeedsCapabilities(needed),
            UpstreamError::Protocol("x".into()),
            UpstreamError::unreached("x"),
            UpstreamError::TooLarge(16 << 20),
        ] {
            let upstream = UpstreamId::parse("u").unwrap();
            assert_eq!(
                &*told(&error).message,
                words::describe(&upstream, &error),
                "{error}"
            );
        }
        let needs = told(&UpstreamError::NeedsCapabilities(meta::object_of(&[(
            "sampling",
            Json::empty_object(),
        )])));
        assert!(needs.message.contains("`u`") && needs.message.ends_with("`sampling`"));
        let late = told(&UpstreamError::Timeout(Deadline::Call)).message;
        assert!(late.contains("the call was cancelled"), "{late}");
    }

    #[test]
    fn what_had_begun_to_be_answered_is_never_told_as_unsent() {
        let away = |reached| UpstreamError::Unavailable {
            cause: "x".into(),
            retry_at: None,
            status: None,
            reached,
        };
        for error in [
            away(Reached::Never),
            away(Reached::Unsent),
            away(Reached::Busy),
            away(Reached::Forgotten),
            away(Reached::Misspoken),
            UpstreamError::Timeout(Deadline::Connect),
        ] {
            let told = told(&error).message;
            assert!(
                told.ends_with("whether the call took effect is unknown")
                    || told.ends_with("whether it took effect is unknown"),
                "{told}"
            );
        }
    }
}
