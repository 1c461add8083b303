//! The loopback listener of the demo servers that speak HTTP, and the pieces that both of their faces share.
//!
//! Guarantees that only loopback names in `Host` and `Origin` are served (DNS rebinding), that a body is at most
//! [`LARGEST_BODY`] bytes and that at most [`MAX_CONNECTIONS`] connections are open; further ones wait to be accepted.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::{
    convert::Infallible,
    io,
    net::Ipv4Addr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN},
    request::Parts,
};
use http_body::Frame;
use http_body_util::{
    BodyExt as _, Empty, Full, LengthLimitError, Limited, combinators::UnsyncBoxBody,
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};

use super::{frame::Refusal, modern::Modern, sessions::Sessions};
use crate::tasks::Tasks;

/// Where the endpoint is.
const PATH: &str = "/mcp";
/// Largest request body, in bytes.
const LARGEST_BODY: usize = 1 << 20;
const MAX_CONNECTIONS: usize = 256;
/// Messages waiting on one event stream; who says more waits.
const STREAM_BUFFER: usize = 32;
/// How often a silent event stream sends a comment, lest somebody on the way close it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What is behind an endpoint.
pub(super) enum Face {
    /// Stateless: 2026-07-28.
    Modern(Modern),
    /// With sessions: 2025-06-18.
    Sessions(Sessions),
}

impl Face {
    fn methods(&self) -> &'static str {
        match self {
            Self::Modern(_) => "POST",
            Self::Sessions(_) => "GET, POST, DELETE",
        }
    }

    async fn respond(&self, parts: &Parts, body: Bytes) -> Response<Body> {
        match (self, &parts.method) {
            (Self::Modern(face), &Method::POST) => face.post(&parts.headers, &body).await,
            (Self::Sessions(face), &Method::POST) => face.post(&parts.headers, &body).await,
            (Self::Sessions(face), &Method::GET) => face.stream(&parts.headers),
            (Self::Sessions(face), &Method::DELETE) => face.delete(&parts.headers),
            _ => not_allowed(self.methods()),
        }
    }
}

/// Serves `face` on a free port of 127.0.0.1 until the token of `tasks` is cancelled. Returns the endpoint's URL.
///
/// # Errors
/// When the port cannot be bound.
pub(super) async fn listen(tasks: &Tasks, face: Face) -> io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}{PATH}", listener.local_addr()?);
    let tasks = tasks.clone();
    let accepting = tasks.clone();
    tasks.spawn(async move { accept(&accepting, listener, Arc::new(face)).await });
    Ok(url)
}

async fn accept(tasks: &Tasks, listener: TcpListener, face: Arc<Face>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: let some close.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        drop(stream.set_nodelay(true)); // without it, progress would only be late
        let (face, token) = (face.clone(), tasks.token().clone());
        tasks.spawn_orderly(async move {
            let _place = place;
            let connection = connection(stream, face);
            let mut connection = pin!(connection);
            tokio::select! {
                _ = connection.as_mut() => return,
                () = token.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            // Event streams watch the same token and end by themselves; a client that reads no more is not waited for.
            drop(tokio::time::timeout(Duration::from_secs(1), connection).await);
        });
    }
}

fn connection(
    stream: TcpStream,
    face: Arc<Face>,
) -> http1::Connection<
    TokioIo<TcpStream>,
    impl hyper::service::Service<
        Request<Incoming>,
        Response = Response<Body>,
        Error = Infallible,
        Future: Send,
    >,
> {
    let service = service_fn(move |request| {
        let face = face.clone();
        async move { Ok::<_, Infallible>(serve(&face, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    http.serve_connection(TokioIo::new(stream), service)
}

async fn serve(face: &Face, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if !is_local(&parts.headers) {
        return empty(StatusCode::FORBIDDEN);
    }
    if parts.uri.path() != PATH {
        return empty(StatusCode::NOT_FOUND);
    }
    match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(body) => face.respond(&parts, body.to_bytes()).await,
        Err(error) if error.is::<LengthLimitError>() => empty(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => empty(StatusCode::BAD_REQUEST),
    }
}

/// Whether the request was meant for this machine and, where a browser sent it, comes from a page of this machine.
fn is_local(headers: &HeaderMap) -> bool {
    let name_of = |authority: &str| {
        let authority: Option<http::uri::Authority> = authority.parse().ok();
        authority.is_some_and(|a| ["127.0.0.1", "localhost", "[::1]"].contains(&a.host()))
    };
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_ascii_lowercase();
    let host = headers.get(HOST).is_some_and(|host| name_of(&text(host)));
    let origin = headers.get(ORIGIN).is_none_or(|origin| {
        let origin = text(origin);
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(name_of)
    });
    host && origin
}

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
                ": keep-alive\n\n".to_owned()
            }
        };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(event)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn only_loopback_names_are_local() {
        assert!(is_local(&headers(&[("host", "127.0.0.1:80")])));
        assert!(is_local(&headers(&[
            ("host", "LOCALHOST"),
            ("origin", "http://[::1]:6274")
        ])));
        assert!(!is_local(&headers(&[])));
        assert!(!is_local(&headers(&[("host", "evil.example")])));
        assert!(!is_local(&headers(&[("host", "127.0.0.1.evil.example")])));
        assert!(!is_local(&headers(&[
            ("host", "localhost"),
            ("origin", "https://evil.example")
        ])));
        assert!(!is_local(&headers(&[
            ("host", "localhost"),
            ("origin", "null")
        ])));
    }

    #[test]
    fn accept_is_read_with_parameters_and_wildcards() {
        let accept = |value| headers(&[("accept", value)]);
        assert!(accepts(
            &accept("application/json;q=1, Text/Event-Stream"),
            "text/event-stream"
        ));
        assert!(accepts(&accept("*/*"), "application/json"));
        assert!(accepts(&accept("text/*"), "text/event-stream"));
        assert!(!accepts(&accept("application/json"), "text/event-stream"));
    }
}
