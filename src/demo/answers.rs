//! What both faces on HTTP share: whether a client takes an answer, and the answers, documents or streams of events.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE},
};
use http_body::Frame;
use http_body_util::{BodyExt as _, Empty, Full, combinators::UnsyncBoxBody};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};

use super::frame::Refusal;

/// Messages waiting on one event stream; who says more waits.
const STREAM_BUFFER: usize = 32;
/// How often a silent event stream sends a comment, lest somebody on the way close it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Refuses a POST whose body is not JSON, or whose client cannot take both kinds of answer.
pub(super) fn unacceptable(headers: &HeaderMap) -> Option<Response<Body>> {
    let json = headers.get(CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.to_str().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    });
    if !json {
        return Some(empty(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let both = accepts(headers, "application/json") && accepts(headers, "text/event-stream");
    (!both).then(|| empty(StatusCode::NOT_ACCEPTABLE))
}

/// Whether `Accept` names `kind`, also by a wildcard.
pub(super) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let any = format!("{}/*", kind.split('/').next().unwrap_or_default());
    headers.get_all(ACCEPT).iter().any(|value| {
        value.to_str().unwrap_or_default().split(',').any(|one| {
            let one = one.split(';').next().unwrap_or_default().trim();
            let one = one.to_ascii_lowercase();
            one == kind || one == any || one == "*/*"
        })
    })
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = status;
    response
}

pub(super) fn not_allowed(methods: &'static str) -> Response<Body> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(ALLOW, methods);
    response
}

pub(super) fn json(status: StatusCode, message: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(message.to_string()));
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

pub(super) fn refused(status: StatusCode, id: Option<&Value>, refusal: &Refusal) -> Response<Body> {
    json(status, &refusal.frame(id))
}

/// An event stream and the sender of its messages. The stream ends when the sender is dropped; the sender learns by
/// `closed()` that the client went away.
pub(super) fn event_stream() -> (mpsc::Sender<Value>, Response<Body>) {
    let (sender, messages) = mpsc::channel(STREAM_BUFFER);
    let mut keep_alive = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let body = Events {
        messages,
        keep_alive,
    };
    let mut response = Response::new(body.boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    (sender, response)
}

struct Events {
    messages: mpsc::Receiver<Value>,
    keep_alive: Interval,
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = match self.messages.poll_recv(cx) {
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(message)) => format!("event: message\ndata: {message}\n\n"),
            Poll::Pending => {
                ready!(self.keep_alive.poll_tick(cx));
                ": keep-alive\n".to_owned()
            }
        };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(event)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_is_read_with_parameters_and_wildcards() {
        let accept = |value| HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))]);
        assert!(accepts(
            &accept("application/json;q=1, Text/Event-Stream"),
            "text/event-stream"
        ));
        assert!(accepts(&accept("*/*"), "application/json"));
        assert!(accepts(&accept("text/*"), "text/event-stream"));
        assert!(!accepts(&accept("application/json"), "text/event-stream"));
    }
}
