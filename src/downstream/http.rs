//! The HTTP binding: one request in, one answer out, JSON or an event stream (PROTOCOL B1, B4).

use std::{net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    FutureExt, Stream, StreamExt,
    future::BoxFuture,
    stream::{self, select_with_strategy},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
    request::Parts,
};
use hyper::body::Incoming;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::{
    Accepts, Answer, Door, FrameResponse, Inbound, Named, Running,
    legacy::{Answering, CannotResume, dialect::Legacy},
    problem::{self, EarlyRefusal, Problem},
    proof::while_proved,
};
use crate::{
    audit::journal::Sender,
    call::Identity,
    jsonrpc::{RpcError, sse},
    memory::{self, Full, Work},
    metrics::{self, Bound},
    protocol::{codes, mirror, names::Scope},
    server::{
        Body, Endpoint, RemoteEnd,
        body::{BodyError, empty, event_stream, full, read_body_into},
        guard::{Admission, Guard},
        spec::ServerBounds,
    },
    tasks::{LaneArc, PerLaneArc},
};

/// After what time to come again to what is too busy for now, where nothing better is known.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often a stream shows a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The event to go on after, from a client whose stream broke.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The MCP endpoint of one scope.
pub struct McpEndpoint(PerLaneArc<EndpointParts>);

/// What an endpoint is made of.
pub struct EndpointParts {
    /// What is behind it.
    pub door: Arc<Door>,
    /// What it serves.
    pub scope: Scope,
    /// Bounds on bodies.
    pub bounds: ServerBounds,
    /// Who is let in.
    pub guard: Guard,
}

impl Endpoint for McpEndpoint {
    fn serve(
        &self,
        request: Request<Incoming>,
        peer: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>> {
        let (mut head, body) = request.into_parts();
        match self.0.guard.admit(&mut head, peer.client) {
            Admission::In(identity) => admitted(self.0.here(), head, body, peer, identity),
            Admission::Out(answer) => std::future::ready(*answer).boxed(),
            Admission::Wait(wait) => {
                let parts = self.0.here();
                async move {
                    match wait.await {
                        Ok(identity) => admitted(parts, head, body, peer, identity).await,
                        Err(answer) => answer,
                    }
                }
                .boxed()
            }
        }
    }
}

impl McpEndpoint {
    /// Of these.
    pub fn new(parts: EndpointParts) -> Self {
        Self(PerLaneArc::from(parts))
    }
}

fn admitted(
    parts: LaneArc<EndpointParts>,
    head: Parts,
    body: Incoming,
    peer: RemoteEnd,
    identity: Arc<Identity>,
) -> BoxFuture<'static, Response<Body>> {
    let inbound = Inbound {
        body: Bytes::new(),
        accepts: Accepts::read(&head.headers),
        named: Named::read(&head.headers),
        headers: Some(head.headers),
        identity,
        address: Some(peer.client),
        proxy: proxy(peer),
        scope: parts.scope.clone(),
        session: None,
    };
    let door = &*parts.door;
    let wrong = |allow| std::future::ready(wrong_method(door, inbound.sender(), allow)).boxed();
    match head.method {
        // Without a session there is no stream to open and nothing to end (PROTOCOL C1.1).
        Method::GET | Method::DELETE if !inbound.names_session() => wrong("POST"),
        Method::POST => post(parts, inbound, body).boxed(),
        Method::GET => std::future::ready(get(door, &inbound)).boxed(),
        Method::DELETE => std::future::ready(delete(door, &inbound)).boxed(),
        _ => wrong("POST, GET, DELETE"),
    }
}

/// Where there is no endpoint, below the one that there is: whoever asks is told so in its own protocol. Nothing is read.
pub struct NoEndpoint {
    /// Who notes it.
    pub door: Arc<Door>,
}

impl Endpoint for NoEndpoint {
    fn serve(
        &self,
        request: Request<Incoming>,
        peer: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>> {
        let text = if request.uri().path().ends_with('/') {
            "no such endpoint: there is no toolset or server of this name here; leave out the `/` at the end"
        } else {
            "no such endpoint: there is no toolset or server of this name here"
        };
        let error = RpcError::new(codes::INVALID_REQUEST, text);
        let problem = Problem::new(StatusCode::NOT_FOUND, None, error, "unknown_endpoint");
        std::future::ready(turned_away(
            &self.door,
            Sender::at(Some(peer.client)),
            problem,
        ))
        .boxed()
    }
}

// An async block, because an async fn would store its arguments twice in its future.
#[expect(clippy::manual_async_fn, reason = "see above")]
fn post(
    parts: LaneArc<EndpointParts>,
    mut inbound: Inbound,
    body: Incoming,
) -> impl Future<Output = Response<Body>> + Send {
    async move {
        let EndpointParts {
            door,
            bounds,
            guard,
            ..
        } = &*parts;
        if inbound.accepts.nothing() {
            return not_acceptable(door, inbound.sender());
        }
        let payer = inbound.identity.payer();
        let read = match &inbound.headers {
            Some(headers) => {
                let account = BodyAccount {
                    payer: payer.clone().filter(|_| may_be_large(&body)),
                    answers: declares_large(&body)
                        .then(|| answers(door, &inbound))
                        .flatten(),
                };
                read_message(headers, body, (bounds, &door.closing), account).await
            }
            None => Ok(Bytes::new()),
        };
        inbound.body = match read {
            Ok(body) => body,
            Err(unread) => return unread.noted(door, inbound.sender()),
        };
        let accepts = inbound.accepts;
        let answer = door.accept(inbound).await;
        let scopes = match &answer {
            Answer::Frame(told) => told.scopes.clone(),
            Answer::Accepted | Answer::Stream(_) => None,
        };
        let mut answer = respond(door, answer, accepts, payer);
        if let Some(scopes) = scopes {
            guard.step_up(&mut answer, &scopes);
        }
        answer
    }
}

/// The proxy that told where a request came from, where one did.
fn proxy(peer: RemoteEnd) -> Option<IpAddr> {
    let proxy = peer.address.ip();
    (proxy != peer.client).then_some(proxy)
}

/// A message that was not read.
pub(super) struct ReadRefusal {
    answer: Response<Body>,
    early: Option<EarlyRefusal>,
}

impl ReadRefusal {
    /// In a status and nothing else.
    fn with_status(status: StatusCode, reason: &'static str) -> Self {
        Self {
            answer: empty(status),
            early: Some(EarlyRefusal::unsaid(reason)),
        }
    }

    fn no_memory(full: Full) -> Self {
        Self::with_problem(Problem::full(full, None))
    }

    fn with_problem(problem: Problem) -> Self {
        Self {
            early: problem.early,
            answer: one(problem.into(), Accepts::JSON, None),
        }
    }

    /// The same, as the last of its connection: of the request there is more to come, which is not read.
    fn cut_off(mut self) -> Self {
        let close = HeaderValue::from_static("close");
        self.answer.headers_mut().insert(header::CONNECTION, close);
        self
    }

    /// Its answer, once it is noted.
    pub(super) fn noted(self, door: &Door, sender: Sender<'_>) -> Response<Body> {
        door.note(sender, self.early);
        self.answer
    }
}

/// On whose account a body is read.
pub(super) struct BodyAccount {
    /// Who pays for it.
    pub(super) payer: Option<Arc<str>>,
    /// Set while the sender owes us an answer, for as many bodies at once as there are open questions: such a body is read even
    /// when memory is short, since the answer frees some.
    pub(super) answers: Option<Answering>,
}

/// The body of a POST that may hold a message, or its refusal by headers alone, size or time (SECURITY HTTP-6, HTTP-10).
pub(super) async fn read_message(
    headers: &HeaderMap,
    body: Incoming,
    (bounds, closing): (&ServerBounds, &CancellationToken),
    account: BodyAccount,
) -> Result<Bytes, ReadRefusal> {
    let json = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| is_json(value.as_bytes()));
    if !json || headers.contains_key(header::CONTENT_ENCODING) {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(ReadRefusal::with_status(status, "unsupported_media_type"));
    }
    let mut bounds = *bounds;
    let mut capped = false;
    let mut hold = memory::process().hold().paid_by(account.payer);
    if account.answers.is_some() {
        hold = hold.below(Work::Connection).making_room();
    } else {
        hold = hold.below(Work::Stream);
        // What is small is read all the same: a cancellation or an answer makes room.
        if may_be_large(&body) && !memory::process().takes(Work::Request) {
            if declares_large(&body) {
                return Err(ReadRefusal::no_memory(Full::Budget).cut_off());
            }
            capped = bounds.body_bytes > memory::SMALL;
            bounds.body_bytes = bounds.body_bytes.min(memory::SMALL);
        }
    }
    let read = read_body_into(hold, body, &bounds, closing).await;
    read.map_err(|error| {
        let status = error.status();
        let unread = match error {
            BodyError::TooLarge { .. } if capped => ReadRefusal::no_memory(Full::Budget),
            BodyError::TooLarge { .. } => {
                metrics::reached(Bound::HttpBody);
                ReadRefusal::with_status(status, "body_too_large")
            }
            BodyError::TooSlow => {
                metrics::reached(Bound::BodyTime);
                ReadRefusal::with_status(status, "body_too_slow")
            }
            BodyError::Stopping => ReadRefusal::with_problem(Problem::shutting_down(None)),
            BodyError::NoMemory(full) => ReadRefusal::no_memory(full),
            // The client went away in the middle of it.
            BodyError::Broken(_) => ReadRefusal {
                answer: empty(status),
                early: None,
            },
        };
        unread.cut_off()
    })
}

/// Whether the body may exceed [`memory::SMALL`]: its declared length does, or is unknown.
pub(super) fn may_be_large(body: &Incoming) -> bool {
    let said = http_body::Body::size_hint(body).upper();
    said.is_none_or(|bytes| bytes > memory::SMALL as u64)
}

/// Whether the body's declared length exceeds [`memory::SMALL`].
pub(super) fn declares_large(body: &Incoming) -> bool {
    http_body::Body::size_hint(body).lower() > memory::SMALL as u64
}

/// The open question that this message may answer, if its session has one.
fn answers(door: &Door, inbound: &Inbound) -> Option<Answering> {
    let session = inbound
        .names_session()
        .then(|| Legacy { door }.session(inbound, None).ok());
    Answering::of(&session??)
}

/// The answer to whom `door` does not take, noted where it is a refusal.
pub(super) fn turned_away(door: &Door, sender: Sender<'_>, problem: Problem) -> Response<Body> {
    door.note(sender, problem.early);
    respond(door, problem.into(), Accepts::JSON, None)
}

/// The answer as it goes out, to whoever pays for it.
fn respond(
    door: &Door,
    answer: Answer,
    accepts: Accepts,
    payer: Option<Arc<str>>,
) -> Response<Body> {
    match answer {
        Answer::Accepted => empty(StatusCode::ACCEPTED),
        Answer::Frame(told) => one(told, accepts, payer.as_ref()),
        Answer::Stream(running) => streaming(door, running, payer),
    }
}

/// A stream of a session goes out with ids, and outlives its reader. One on which nothing follows has none: an id before the end
/// of a stream invites to come again for an answer.
fn streaming(door: &Door, running: Box<Running>, payer: Option<Arc<str>>) -> Response<Body> {
    let session = running
        .session()
        .filter(|session| session.resumes() && !running.is_over())
        .cloned();
    match session {
        Some(session) => {
            let reader = session.carry(&door.backing.tasks, running);
            event_stream(Body::stream(with_signs_of_life(reader), ()))
        }
        None => event_stream(Body::stream(with_signs_of_life(events(running, payer)), ())),
    }
}

/// One message as JSON; as a stream of one event for a client that accepts only streams (PROTOCOL B1), unless the status is not
/// 200.
fn one(told: FrameResponse, accepts: Accepts, payer: Option<&Arc<str>>) -> Response<Body> {
    let mut answer = if accepts.json || told.status != StatusCode::OK {
        let mut answer = full(told.status, "application/json", Bytes::new());
        *answer.body_mut() = body_of(told.segments, payer);
        answer
    } else {
        let event = sse::encode(None, &told.segments);
        event_stream(body_of(vec![event], payer))
    };
    // Whatever is refused for now says when to come again (SECURITY REL-3).
    let for_now = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    let soon = || {
        for_now
            .contains(&told.status)
            .then_some(DEFAULT_RETRY_AFTER)
    };
    if let Some(retry) = told.retry.or_else(soon) {
        let seconds = HeaderValue::from(problem::wait_seconds(retry));
        answer.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    if let Some(session) = told.session {
        answer
            .headers_mut()
            .insert(&mirror::header::SESSION_ID, session);
    }
    answer
}

/// Small answers go out in one piece; large ones keep the shared bytes they are made of.
fn body_of(segments: Vec<Bytes>, payer: Option<&Arc<str>>) -> Body {
    const JOINED_BYTES: usize = 4 << 10;
    if segments.iter().map(Bytes::len).sum::<usize>() > JOINED_BYTES {
        let sent = |piece| memory::process().sent_to(payer, piece);
        return Body::pieces(segments.into_iter().map(sent).collect());
    }
    Body::full(segments.concat().into())
}

fn events(running: Box<Running>, payer: Option<Arc<str>>) -> impl Stream<Item = Bytes> + Send {
    running.map(move |segments| {
        let event = sse::encode(None, &segments);
        memory::process().sent_to(payer.as_ref(), event)
    })
}

/// The stream, with a comment line every 15 s among its events, however many of those there are; ends when the stream does.
pub(super) fn with_signs_of_life(
    events: impl Stream<Item = Bytes> + Send + 'static,
) -> impl Stream<Item = Bytes> + Send {
    let mut interval = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    // A client that reads again after a while gets one such line, not all that it missed.
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ticks = stream::unfold(interval, |mut interval| async move {
        interval.tick().await;
        Some((Some(sse::KEEP_ALIVE), interval))
    });
    let events = events
        .map(Some)
        .chain(stream::once(std::future::ready(None)));
    select_with_strategy(events.boxed(), ticks.boxed(), |(): &mut ()| {
        stream::PollNext::Left
    })
    .take_while(|item| std::future::ready(item.is_some()))
    .filter_map(std::future::ready)
}

/// A GET stream of a legacy session: a new one for its notices, or the rest of the one that `Last-Event-ID` is of. Some clients
/// name the same event for ever, so a stream of notices that is forgotten is followed by a new one.
fn get(door: &Door, inbound: &Inbound) -> Response<Body> {
    if !inbound.accepts.stream {
        return not_acceptable(door, inbound.sender());
    }
    let legacy = Legacy { door };
    let session = match legacy.session(inbound, None) {
        Ok(session) => session,
        Err(problem) => return turned_away(door, inbound.sender(), problem),
    };
    let headers = inbound.headers.as_ref();
    let last = headers.and_then(|headers| headers.get(LAST_EVENT_ID));
    let resumed = last.filter(|_| session.resumes()).map(|id| {
        let id = id.to_str().unwrap_or_default();
        session.resume(&door.backing.tasks, id)
    });
    let reader = match resumed {
        Some(Ok(reader)) => Ok(reader),
        Some(Err(why @ (CannotResume::Unknown | CannotResume::Expired))) => Err(not_resumed(why)),
        // Whoever fetches an answer makes room, and is let through.
        Some(Err(CannotResume::ExpiredNotices)) | None
            if !memory::process().takes(Work::Stream) =>
        {
            Err(Problem::no_memory(None))
        }
        missed @ (Some(Err(CannotResume::ExpiredNotices)) | None) => {
            let opened = session.open(&door.backing.tasks);
            if opened.is_some() && missed.is_some() {
                session.tell_lists();
            }
            opened.ok_or_else(|| {
                let error =
                    RpcError::new(codes::OVERLOADED, "too many open streams in this session");
                Problem::new(StatusCode::TOO_MANY_REQUESTS, None, error, "rate_limited")
            })
        }
    };
    let reader = match reader {
        Ok(reader) => reader,
        Err(problem) => return turned_away(door, inbound.sender(), problem),
    };
    legacy.hear(&session);
    let closing = door.closing.clone().cancelled_owned();
    // An answer that is being fetched may be waited for; streams that owe nothing end with the gateway.
    let owes = reader.owes_an_answer();
    let events = reader.take_until(async move {
        closing.await;
        if owes {
            std::future::pending::<()>().await;
        }
    });
    let events = while_proved(events, &inbound.identity);
    event_stream(Body::stream(with_signs_of_life(events), ()))
}

/// Never `404`, which means a lost session.
fn not_resumed(why: CannotResume) -> Problem {
    let (status, text, reason) = match why {
        CannotResume::Unknown => (
            StatusCode::BAD_REQUEST,
            "`Last-Event-ID` is no id of this session",
            "unknown_event",
        ),
        CannotResume::Expired | CannotResume::ExpiredNotices => (
            StatusCode::GONE,
            "what followed this event is no longer kept",
            "events_expired",
        ),
    };
    let error = RpcError::new(codes::INVALID_REQUEST, text);
    Problem::new(status, None, error, reason)
}

/// Ends a legacy session.
fn delete(door: &Door, inbound: &Inbound) -> Response<Body> {
    match (Legacy { door }).session(inbound, None) {
        Ok(session) => {
            door.sessions.end(&session);
            empty(StatusCode::NO_CONTENT)
        }
        Err(problem) => turned_away(door, inbound.sender(), problem),
    }
}

/// The refusal of whoever takes no answer that there can be, noted.
pub(super) fn not_acceptable(door: &Door, sender: Sender<'_>) -> Response<Body> {
    door.note(sender, Some(EarlyRefusal::unsaid("not_acceptable")));
    empty(StatusCode::NOT_ACCEPTABLE)
}

/// The refusal of a method, noted.
pub(super) fn wrong_method(door: &Door, sender: Sender<'_>, allow: &'static str) -> Response<Body> {
    door.note(sender, Some(EarlyRefusal::unsaid("method_not_allowed")));
    let mut answer = empty(StatusCode::METHOD_NOT_ALLOWED);
    answer
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allow));
    answer
}

/// `application/json`, perhaps with `charset=utf-8`.
fn is_json(value: &[u8]) -> bool {
    // As nearly every client writes it.
    if value == b"application/json" {
        return true;
    }
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
