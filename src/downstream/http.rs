//! The HTTP binding: one request in, one answer out, JSON or an event stream (PROTOCOL B1, B4).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    FutureExt, Stream, StreamExt,
    future::BoxFuture,
    stream::{self, select_with_strategy},
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::{Instant, interval_at};

use super::{Answer, Door, Inbound, Running, Told, legacy::Legacy, problem::Problem};
use crate::{
    call::Principal,
    jsonrpc::{RpcError, sse},
    protocol::{codes, mirror, names::Scope},
    server::{
        Body, Endpoint,
        body::{empty, event_stream, full, read_body},
        spec::ServerBounds,
    },
};

/// How often a silent stream shows a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The MCP endpoint of one scope.
pub struct McpEndpoint {
    /// What is behind it.
    pub door: Arc<Door>,
    /// What it serves.
    pub scope: Scope,
    /// Bounds on bodies.
    pub bounds: ServerBounds,
}

impl Endpoint for McpEndpoint {
    fn serve(&self, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        let (head, body) = request.into_parts();
        let inbound = Inbound {
            body: Bytes::new(),
            headers: Some(head.headers),
            principal: Principal::anonymous(),
            scope: self.scope.clone(),
            session: None,
        };
        let door = self.door.clone();
        match head.method {
            // Without a session there is no stream to open and nothing to end (PROTOCOL C1.1).
            Method::GET | Method::DELETE if !names_session(&inbound) => {
                std::future::ready(not_allowed("POST")).boxed()
            }
            Method::POST => post(door, inbound, body, self.bounds).boxed(),
            Method::GET => std::future::ready(get(&door, &inbound)).boxed(),
            Method::DELETE => std::future::ready(delete(&door, &inbound)).boxed(),
            _ => std::future::ready(not_allowed("POST, GET, DELETE")).boxed(),
        }
    }
}

async fn post(
    door: Arc<Door>,
    mut inbound: Inbound,
    body: Incoming,
    bounds: ServerBounds,
) -> Response<Body> {
    if let Some(status) = inbound.headers.as_ref().and_then(unacceptable) {
        return empty(status);
    }
    inbound.body = match read_body(body, &bounds).await {
        Ok(body) => body,
        Err(error) => {
            let mut answer = empty(error.status());
            answer
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
            return answer;
        }
    };
    respond(door.accept(inbound).await)
}

fn respond(answer: Answer) -> Response<Body> {
    match answer {
        Answer::Accepted => empty(StatusCode::ACCEPTED),
        Answer::Frame(told) => one(told),
        Answer::Stream(running) => {
            event_stream(Body::stream(with_signs_of_life(events(running)), ()))
        }
    }
}

fn one(told: Told) -> Response<Body> {
    let mut answer = full(told.status, "application/json", Bytes::new());
    *answer.body_mut() = body_of(told.segments);
    if let Some(session) = told.session {
        answer.headers_mut().insert(mirror::SESSION_ID, session);
    }
    answer
}

/// Small answers go out in one piece; large ones keep the shared bytes they are made of.
fn body_of(segments: Vec<Bytes>) -> Body {
    const SMALL: usize = 16 << 10;
    if segments.iter().map(Bytes::len).sum::<usize>() > SMALL {
        return Body::pieces(segments);
    }
    Body::full(segments.concat().into())
}

fn events(running: Running) -> impl Stream<Item = Bytes> + Send {
    running.map(|segments| sse::encode(None, &segments))
}

/// The stream, with a comment line whenever it has been silent for a while; ends when the stream does.
fn with_signs_of_life(
    events: impl Stream<Item = Bytes> + Send + 'static,
) -> impl Stream<Item = Bytes> + Send {
    let ticks = stream::unfold(
        interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE),
        |mut interval| async move {
            interval.tick().await;
            Some((Some(sse::KEEP_ALIVE), interval))
        },
    );
    let events = events
        .map(Some)
        .chain(stream::once(std::future::ready(None)));
    select_with_strategy(events.boxed(), ticks.boxed(), |(): &mut ()| {
        stream::PollNext::Left
    })
    .take_while(|item| std::future::ready(item.is_some()))
    .filter_map(std::future::ready)
}

/// The GET stream of a legacy session.
fn get(door: &Door, inbound: &Inbound) -> Response<Body> {
    if !inbound
        .headers
        .as_ref()
        .is_some_and(|headers| accepts(headers, "text/event-stream"))
    {
        return empty(StatusCode::NOT_ACCEPTABLE);
    }
    let session = match (Legacy { door }).session(inbound, None) {
        Ok(session) => session,
        Err(problem) => return respond(problem.into()),
    };
    let Some(guard) = session.stream() else {
        let error = RpcError::new(codes::OVERLOADED, "too many open streams in this session");
        return respond(
            Problem::new(StatusCode::TOO_MANY_REQUESTS, None, error, "rate_limited").into(),
        );
    };
    let (ended, closing) = (session.ended.clone(), door.closing.clone());
    // The session has nothing to say on its own yet; the stream is held open for when it has.
    let silence = stream::once(std::future::ready(Bytes::from_static(b": open\n\n"))).chain(
        stream::once(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = closing.cancelled() => {}
            }
            Bytes::new()
        }),
    );
    event_stream(Body::stream(with_signs_of_life(silence), guard))
}

/// Ends a legacy session.
fn delete(door: &Door, inbound: &Inbound) -> Response<Body> {
    match (Legacy { door }).session(inbound, None) {
        Ok(session) => {
            door.sessions.end(&session);
            empty(StatusCode::NO_CONTENT)
        }
        Err(problem) => respond(problem.into()),
    }
}

fn names_session(inbound: &Inbound) -> bool {
    let headers = inbound.headers.as_ref();
    headers.is_some_and(|headers| headers.contains_key(mirror::SESSION_ID))
}

fn not_allowed(allow: &'static str) -> Response<Body> {
    let mut answer = empty(StatusCode::METHOD_NOT_ALLOWED);
    answer
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allow));
    answer
}

/// The status that refuses a POST by its headers alone (SECURITY HTTP-6).
fn unacceptable(headers: &HeaderMap) -> Option<StatusCode> {
    let json = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| is_json(value.as_bytes()));
    if !json || headers.contains_key(header::CONTENT_ENCODING) {
        return Some(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let takes_some = accepts(headers, "application/json") || accepts(headers, "text/event-stream");
    (!takes_some).then_some(StatusCode::NOT_ACCEPTABLE)
}

/// `application/json`, perhaps with `charset=utf-8`.
fn is_json(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let mut parts = text.split(';').map(str::trim);
    parts
        .next()
        .is_some_and(|media| media.eq_ignore_ascii_case("application/json"))
        && parts.all(|parameter| {
            parameter.is_empty()
                || parameter.split_once('=').is_some_and(|(name, value)| {
                    !name.trim().eq_ignore_ascii_case("charset")
                        || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
                })
        })
}

/// Whether `Accept` admits a media type; without the header everything is admitted.
pub(super) fn accepts(headers: &HeaderMap, media: &str) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let family = media.split_once('/').map_or(media, |(family, _)| family);
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused =
                parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
            let fits = name == "*/*"
                || name.eq_ignore_ascii_case(media)
                || name
                    .strip_suffix("/*")
                    .is_some_and(|range| range.eq_ignore_ascii_case(family));
            fits && !refused
        })
}
