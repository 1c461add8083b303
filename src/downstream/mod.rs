//! Facing clients: two dialects, three bindings (Streamable HTTP, HTTP+SSE, pipe), and the one place that chooses between eras.
//!
//! Guarantees: the era is chosen per message from its body, with headers as a cross-check (PROTOCOL C1); a session belongs to
//! one principal and one endpoint; every accepted request gets exactly one answer or a closed stream. Request ids, progress
//! tokens, session ids and status codes end here: nothing below knows them.

mod channel;
mod connect;
mod drain_deadline;
mod exchange;
mod extensions;
mod http;
mod legacy;
mod listen;
mod modern;
mod named;
mod problem;
mod proof;
mod read;
mod seats;
mod sent;
mod starting;
mod stdio;
mod two_endpoints;
mod wants;
mod watched_tasks;

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use crate::{
    audit::journal::{Journal, Sender},
    call::{Call, Identity, Listener, Op, Origin, Page, Trail},
    json::{Json, Limits, Node, push_string},
    jsonrpc::{
        DecodeError, Frame, Message, Notification, Request, RequestId, Response, RpcError, decode,
        decode::Fault, encode,
    },
    memory::{self, Full, Work},
    protocol::{Era, codes, members, meta, methods, mirror, names::Scope, trace, trace::Parent},
    stack::McpService,
    tasks::{PerLaneArc, Tasks},
};

pub use connect::{ConnectPage, ConnectPart};
pub use drain_deadline::DrainDeadline;
pub use exchange::Running;
pub use http::{EndpointParts, McpEndpoint, NoEndpoint};
pub use legacy::{SessionBounds, SessionSeen, Sessions};
pub use named::Named;
pub use starting::{FIRST_LISTS, HEAD_START, Starting};
pub use stdio::{serve as serve_stdio, unread as stdio_unread};
pub use two_endpoints::{EventsEndpoint, Lines, MessagesEndpoint};
pub use wants::Accepts;

use exchange::Exchange;
use legacy::dialect::Legacy;
use modern::Modern;
use problem::{EarlyRefusal, Problem};
use read::{BadParams, Head};
use sent::Sent;

/// Everything the dialects share; one for the process.
pub struct Door {
    /// What calls hold on to while they run.
    pub backing: PerLaneArc<Backing>,
    /// Legacy sessions.
    pub sessions: Arc<Sessions>,
    /// The most time an answer may take: 300 s.
    pub deadline: Duration,
    /// Cancelled when the gateway begins to drain: open streams that owe nothing end then.
    pub closing: CancellationToken,
    /// Whether servers are in their first start, for which handshakes wait a little, and on a pipe lists.
    pub starting: Starting,
    /// Whether anybody reads what calls learn about themselves.
    pub observed: bool,
    /// How messages are read.
    pub bounds: MessageBounds,
    /// Where is noted what is refused before it is a call.
    pub journal: Journal,
}

/// What a call holds on to while it runs.
pub struct Backing {
    /// Where calls go.
    pub service: McpService,
    /// Owns work that outlives its connection: in the legacy era a lost connection is no cancellation.
    pub tasks: Tasks,
    /// Told when the gateway has drained for long enough: what still runs is answered then, with why.
    pub drain_deadline: DrainDeadline,
}

/// How much a client may say at a time (SECURITY 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageBounds {
    /// How a message is read. Default: [`Limits::CLIENT`].
    pub json: Limits,
    /// The most bytes of one line on a pipe; those of a body are the listener's. Default 16 MiB.
    pub line_bytes: usize,
    /// How long a person has for one round of questions that is put to a client with a session: a little less than what
    /// state is good for, so that giving up still gets through. Default 590 s.
    pub patience: Duration,
}

impl Default for MessageBounds {
    fn default() -> Self {
        Self {
            json: Limits::CLIENT,
            line_bytes: 16 << 20,
            patience: Duration::from_secs(590),
        }
    }
}

/// One message at the door.
#[derive(Debug)]
pub struct Inbound {
    /// The bytes of the message.
    pub body: Bytes,
    /// The HTTP headers; `None` on a pipe, where nothing is mirrored.
    pub headers: Option<HeaderMap>,
    /// The revision that they name.
    pub named: Named,
    /// What kinds of answer are taken.
    pub accepts: Accepts,
    /// Who sent it.
    pub identity: Arc<Identity>,
    /// Where it came from: the peer of the connection, or what a trusted proxy tells. `None` on a pipe.
    pub address: Option<IpAddr>,
    /// That proxy, where it is one that tells.
    pub proxy: Option<IpAddr>,
    /// What its endpoint serves.
    pub scope: Scope,
    /// The session it belongs to by other means than a header: the one session of a pipe.
    pub session: Option<Arc<str>>,
}

impl Inbound {
    /// Whether it says that it belongs to a session, whatever becomes of that.
    fn names_session(&self) -> bool {
        self.session.is_some()
            || self
                .headers
                .as_ref()
                .is_some_and(|headers| headers.contains_key(&mirror::header::SESSION_ID))
    }

    /// Which memory budget is exhausted for a new request of this sender, if one is: the process's or the sender's share.
    fn too_full(&self) -> Option<Full> {
        let memory = memory::process();
        if !memory.takes(Work::Request) {
            return Some(Full::Budget);
        }
        let has_room = memory.has_room_for(|| self.identity.payer());
        (!has_room).then_some(Full::Share)
    }
}

/// What goes back.
pub enum Answer {
    /// Nothing is owed: HTTP 202 with an empty body.
    Accepted,
    /// One message.
    Frame(FrameResponse),
    /// Frames as they come; the last is the response.
    Stream(Box<Running>),
}

/// One message that answers, with its HTTP facts.
#[derive(Debug)]
pub struct FrameResponse {
    /// The HTTP status; without meaning on a pipe.
    pub status: StatusCode,
    /// The message, in segments that follow each other.
    pub segments: Vec<Bytes>,
    /// A session just opened.
    pub session: Option<HeaderValue>,
    /// The scopes that would help, where this is the `403` of a token that lacks some.
    pub scopes: Option<Arc<[Arc<str>]>>,
    /// After what time to try again, where that is why it is refused.
    pub retry: Option<Duration>,
    /// Why the message was refused before it became a call; `None` if it became one.
    refused: Option<EarlyRefusal>,
}

impl Answer {
    /// Why what was sent never came to be a call, if it did not.
    const fn refused(&self) -> Option<EarlyRefusal> {
        match self {
            Self::Frame(told) => told.refused,
            Self::Accepted | Self::Stream(_) => None,
        }
    }

    /// The same, but a stream ends with the proof of whoever it is for, which is at `end` (SECURITY AUTHN-5).
    fn proved_by(mut self, identity: &Arc<Identity>, end: Option<SystemTime>) -> Self {
        if let Self::Stream(running) = &mut self {
            running.proved_by(identity, end);
        }
        self
    }
}

impl FrameResponse {
    fn ok(segments: Vec<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            segments,
            session: None,
            scopes: None,
            retry: None,
            refused: None,
        }
    }
}

impl From<Problem> for FrameResponse {
    fn from(problem: Problem) -> Self {
        let segments = vec![encode::error(problem.id.as_ref(), &problem.error)];
        Self {
            status: problem.status,
            segments,
            session: None,
            scopes: problem.scopes,
            retry: problem.retry,
            refused: problem.early,
        }
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        Self::Frame(problem.into())
    }
}

/// What answers a message.
enum Next<'a> {
    /// It is answered.
    Done(Answer),
    /// A call that has begun, and by what proof.
    Running(Box<Running>, Arc<Identity>),
    /// What the era with sessions does that is no call.
    Legacy(BoxFuture<'a, Answer>),
}

impl Next<'_> {
    /// Waits for the answer, and notes it at `door` where it is a refusal, of whoever `sent` what it answers.
    async fn answer(self, door: &Door, address: Option<IpAddr>, sent: Option<Sent>) -> Answer {
        let answer = match self {
            Self::Done(answer) => answer,
            Self::Running(running, identity) => {
                // What was asked for before the end does not go on beyond it because its first word took long.
                let end = proof::end(&identity);
                let answer = running.answer().await.proved_by(&identity, end);
                door.note(Sender::at(address).by(&identity), answer.refused());
                return answer;
            }
            Self::Legacy(answer) => answer.await,
        };
        let sender = sent.as_ref().map(|sent| sent.at(address));
        door.note(sender.unwrap_or(Sender::at(address)), answer.refused());
        answer
    }
}

impl Door {
    /// Answers one message: the ladder of PROTOCOL C1, body first, header as cross-check.
    // The message is read before the future is made, so that the future holds no more than what is waited for.
    pub fn accept(&self, inbound: Inbound) -> impl Future<Output = Answer> + Send + '_ {
        let address = inbound.address;
        let (next, sent) = match decode(inbound.body.clone(), &self.bounds.json) {
            Ok(message) => self.take(inbound, message),
            Err(error) => {
                let problem = self.unreadable(&inbound, error);
                let sent = Sent::by(&inbound.identity, None);
                (Next::Done(problem.into()), Some(sent))
            }
        };
        next.answer(self, address, sent)
    }

    /// Says why bytes are no message. What it was to answer is over all the same.
    fn unreadable(&self, inbound: &Inbound, mut error: DecodeError) -> Problem {
        let answered = std::mem::take(&mut error.answered);
        let problem = Problem::undecodable(error);
        Legacy { door: self }.spoilt(inbound, answered, &problem.error);
        problem
    }

    /// Notes why something never came to be a call, and whose it was.
    fn note(&self, sender: Sender<'_>, refused: Option<EarlyRefusal>) {
        if let Some(EarlyRefusal { reason, reference }) = refused {
            self.journal.turned_away(sender, reason, reference);
        }
    }

    /// The same, where the body was looked at already.
    fn accept_decoded(
        &self,
        inbound: Inbound,
        message: Message,
    ) -> impl Future<Output = Answer> + Send + '_ {
        let address = inbound.address;
        let (next, sent) = self.take(inbound, message);
        next.answer(self, address, sent)
    }

    /// Decides what answers a message. The second value is the sender, for the record of a refusal; `None` once a call has
    /// begun, which knows its sender itself.
    fn take(&self, inbound: Inbound, message: Message) -> (Next<'_>, Option<Sent>) {
        let legacy = Legacy { door: self };
        let mut method = None;
        let answer = match message {
            Message::One(frame) if lacks_id(&frame) => {
                if let Frame::Notification(Notification { method: name, .. }) = &frame {
                    method = sent::method(name);
                }
                invalid("a request without an `id`").into()
            }
            Message::Batch(frames) => match together(&inbound, &frames) {
                Ok(()) => {
                    let sent = Sent::by(&inbound.identity, None);
                    let answer = legacy.batch(inbound, frames).boxed();
                    return (Next::Legacy(answer), Some(sent));
                }
                Err(problem) => legacy.unbatched(&inbound, &frames, problem).into(),
            },
            // A request's names are looked at where its params are read.
            Message::One(frame @ Frame::Notification(_)) if let Err(problem) = named(&frame) => {
                problem.into()
            }
            Message::One(Frame::Response(response)) => legacy.response(&inbound, response),
            Message::One(Frame::Notification(notification)) => {
                match (&notification.params, inbound.named.is_modern()) {
                    (Some(params), false) if !meta::claims_revision(params.root()) => {
                        legacy.notification(&inbound, &notification)
                    }
                    (None, false) => legacy.notification(&inbound, &notification),
                    // No modern client notification exists on HTTP; none is ever acted on (PROTOCOL B1.5).
                    _ => Answer::Accepted,
                }
            }
            // What answers or cancels is taken all the same: it makes room.
            Message::One(Frame::Request(request))
                if let Some(full) = inbound.too_full()
                    && !makes_room(&request) =>
            {
                method = sent::method(&request.method);
                Problem::full(full, Some(request.id)).into()
            }
            Message::One(Frame::Request(request)) => {
                let params = request.params.clone().unwrap_or(Json::empty_object());
                let head = read::head(&request.method, &params);
                match self.choose_era(&inbound, &request, &params, head) {
                    Ok(EraChoice::Modern(exchange, call)) => {
                        let running = exchange.begin(self, call);
                        return (Next::Running(running, inbound.identity), None);
                    }
                    Ok(EraChoice::Legacy(head)) => {
                        let sent = Sent::by(&inbound.identity, sent::method(&request.method));
                        let next = legacy.request(inbound, request, &params, head);
                        return (next, Some(sent));
                    }
                    Err(problem) => {
                        method = sent::method(&request.method);
                        problem.into()
                    }
                }
            }
        };
        let sent = Sent::by(&inbound.identity, method);
        (Next::Done(answer), Some(sent))
    }

    /// The trail of a request. `other` is the method and params to record where the call itself has different ones.
    fn trail(
        &self,
        inbound: &Inbound,
        request: &RequestId,
        head: Option<&Head<'_>>,
        other: Option<(&'static str, &Json)>,
    ) -> Trail {
        if !self.observed {
            return Trail::NONE;
        }
        let headers = inbound.headers.as_ref();
        let in_meta = |key| head?.meta?.member(key)?.as_str();
        let in_headers =
            |name: &HeaderName| Some(Cow::Borrowed(headers?.get(name)?.to_str().ok()?));
        // What stands in the body is of this message; a header is of whatever carried it (PROTOCOL A7).
        let told = told_by(in_meta(trace::PARENT), || in_meta(trace::STATE)).or_else(|| {
            told_by(in_headers(&trace::header::PARENT), || {
                in_headers(&trace::header::STATE)
            })
        });
        let (parent, state) = told.map_or((None, None), |(parent, state)| (Some(parent), state));
        Trail::of(Origin {
            request: Some(request.clone()),
            method: other.map(|(method, _)| method),
            params: other.map(|(_, params)| params.len()),
            listener: if headers.is_some() {
                Listener::Http
            } else {
                Listener::Stdio
            },
            proxy: inbound.proxy,
            parent,
            state,
        })
    }

    /// Chooses the era of a request whose params were looked at, and reads a modern one.
    fn choose_era<'a>(
        &self,
        inbound: &Inbound,
        request: &Request,
        params: &Json,
        head: Result<Head<'a>, BadParams>,
    ) -> Result<EraChoice<'a>, Problem> {
        match head {
            Err(bad) if bad.is_alike() => Err(bad.problem(Some(request.id.clone()))),
            Err(bad) => match choose(request, None, inbound)? {
                Era::Modern => Err(bad.problem(Some(request.id.clone()))),
                Era::Legacy => Ok(EraChoice::Legacy(Err(bad))),
            },
            Ok(head) => match choose(request, Some(&head), inbound)? {
                Era::Modern => {
                    let modern = Modern { door: self };
                    let (exchange, call) = modern.read(inbound, request, params, &head)?;
                    Ok(EraChoice::Modern(exchange, call))
                }
                Era::Legacy => Ok(EraChoice::Legacy(Ok(head))),
            },
        }
    }
}

/// In which era a request speaks.
enum EraChoice<'a> {
    /// The one without sessions: the call is read.
    Modern(Exchange, Box<Call>),
    /// The one with sessions: what is wrong with the params is said in the session.
    Legacy(Result<Head<'a>, BadParams>),
}

/// Steps 5 to 9 of the ladder.
fn choose(request: &Request, head: Option<&Head<'_>>, inbound: &Inbound) -> Result<Era, Problem> {
    let claims = match head {
        Some(head) => head
            .meta
            .is_some_and(|meta| meta.member(meta::PROTOCOL_VERSION).is_some()),
        // Params that cannot be read properly may claim all the same.
        None => request
            .params
            .as_ref()
            .is_some_and(|params| meta::claims_revision(params.root())),
    };
    if claims {
        return Ok(Era::Modern);
    }
    let id = || Some(request.id.clone());
    let missing = |what: &str| {
        let error = RpcError::new(
            codes::INVALID_PARAMS,
            format!("`params._meta` lacks `{}`: {what}", meta::PROTOCOL_VERSION),
        );
        Problem::new(StatusCode::BAD_REQUEST, id(), error, "missing_meta")
    };
    match &*request.method {
        methods::INITIALIZE if inbound.named.is_modern() => {
            let text = "`initialize` does not exist in the revision that the header names";
            Err(Problem::new(
                StatusCode::BAD_REQUEST,
                id(),
                RpcError::new(codes::HEADER_MISMATCH, text),
                "header_mismatch",
            ))
        }
        methods::INITIALIZE => Ok(Era::Legacy),
        _ if inbound.named.is_modern() => Err(missing(
            "the header names a revision whose requests describe themselves",
        )),
        methods::DISCOVER if !inbound.names_session() => {
            Err(missing("`server/discover` describes itself"))
        }
        _ => Ok(Era::Legacy),
    }
}

/// Whether it gives something up, or brings back the state of what is held for it: that makes room (SECURITY REL-3). Whether it is
/// that state is looked at before anything is done.
fn makes_room(request: &Request) -> bool {
    let goes_on = |params: &Json| {
        let root = params.root();
        let state = root.member("requestState").and_then(Node::as_str);
        meta::claims_revision(root) && state.is_some()
    };
    match &*request.method {
        methods::PING | methods::UNSUBSCRIBE | methods::TASKS_CANCEL | methods::TASKS_UPDATE => {
            true
        }
        method if methods::may_ask_back(method) => request.params.as_ref().is_some_and(goes_on),
        _ => false,
    }
}

/// Whether these may be one batch, whatever its session says, and there is room for it now.
fn together(inbound: &Inbound, frames: &[Frame]) -> Result<(), Problem> {
    if frames.iter().any(lacks_id) {
        return Err(invalid("a request without an `id`"));
    }
    if frames.iter().any(claims) {
        return Err(invalid("a batch of self-describing requests"));
    }
    // Each of them alone would be refused, or told to nobody (PROTOCOL C1.7, C1.10): together they are not of the other era either.
    let is_response = |frame: &Frame| matches!(frame, Frame::Response(_));
    if inbound.named.is_modern() && !frames.iter().all(is_response) {
        return Err(invalid("a batch, in the revision that the header names"));
    }
    if frames.iter().any(is_request)
        && let Some(full) = inbound.too_full()
    {
        return Err(Problem::full(full, None));
    }
    frames.iter().try_for_each(named)
}

fn is_request(frame: &Frame) -> bool {
    matches!(frame, Frame::Request(_))
}

/// Whether a frame is a request that wants no answer: it would be executed as a side effect (SECURITY MSG-8). Hosts also notify
/// under names of their own, which nobody here knows and nothing comes of.
fn lacks_id(frame: &Frame) -> bool {
    matches!(frame, Frame::Notification(notification) if methods::is_request(&notification.method))
}

/// Whether the names in a frame are the protocol's where they look so (SECURITY MSG-3).
fn named(frame: &Frame) -> Result<(), Problem> {
    let (id, method, params) = match frame {
        Frame::Request(request) => (Some(&request.id), &request.method, &request.params),
        Frame::Notification(Notification { method, params }) => (None, method, params),
        Frame::Response(response) => return named_in_answer(response),
    };
    let Some(params) = params else { return Ok(()) };
    members::params(method, params.root())
        .map_err(|alike| BadParams::from(alike).problem(id.cloned()))
}

/// The same of an answer. Of an error nothing goes on but what is called as it should be.
fn named_in_answer(response: &Response) -> Result<(), Problem> {
    let Ok(result) = &response.body else {
        return Ok(());
    };
    members::answer(result.root()).map_err(|alike| BadParams::from(alike).problem(None))
}

fn claims(frame: &Frame) -> bool {
    let params = match frame {
        Frame::Request(request) => &request.params,
        Frame::Notification(notification) => &notification.params,
        Frame::Response(_) => return false,
    };
    params
        .as_ref()
        .is_some_and(|params| meta::claims_revision(params.root()))
}

fn invalid(what: &'static str) -> Problem {
    Problem::undecodable(DecodeError {
        fault: Fault::Envelope(what),
        id: None,
        answered: Vec::new(),
    })
}

/// Who we are, in every answer that says so.
const SERVER_INFO: &str = concat!(
    "{\"name\":\"usher\",\"title\":\"Usher\",\"version\":\"",
    env!("CARGO_PKG_VERSION"),
    "\"}"
);

/// Appends a page's cursor, if it has one, and a comma.
fn push_cursor(out: &mut Vec<u8>, page: &Page) {
    if let Some(next) = &page.next {
        out.extend_from_slice(b"\"nextCursor\":");
        push_string(out, next);
        out.push(b',');
    }
}

/// The vendor marks of a page that lacks upstreams, or some of what they have (PROTOCOL H11).
fn lacks(page: &Page) -> Vec<(&'static str, Json)> {
    let marks = [
        ("dev.usher/away", &page.away),
        ("dev.usher/partial", &page.partial),
    ];
    let marks = marks.into_iter().filter_map(|(key, names)| {
        let names = names.as_ref()?.iter().map(|name| Json::string(name));
        Some((key, Json::array(&names.collect::<Vec<_>>())))
    });
    marks.collect()
}

/// Whether an upstream's error says that exactly this resource is not there: its `data.uri` is the one asked for.
fn is_about(error: &RpcError, uri: &str) -> bool {
    let told = error
        .data
        .as_ref()
        .and_then(|data| data.root().member("uri"))
        .and_then(Node::as_str);
    matches!(
        error.code,
        codes::INVALID_PARAMS | codes::INTERNAL_ERROR | 0
    ) && told.as_deref() == Some(uri)
}

/// Codes that speak of the upstream's own hop mean nothing on ours (PROTOCOL D6). What this one upstream does not offer, say
/// completions or prompts, is a bad name to a client that was promised it by all of them together (PROTOCOL G25).
fn hop_local(op: &Op, mut error: RpcError, era: Era) -> RpcError {
    match error.code {
        // The peer lets this one through only where it is the client that lacks something.
        codes::MISSING_CAPABILITY if era == Era::Modern => {}
        codes::HEADER_MISMATCH | codes::MISSING_CAPABILITY | codes::UNSUPPORTED_VERSION => {
            error.code = codes::INTERNAL_ERROR;
            error.data = Some(meta::object_of(&[(
                "reason",
                Json::string("upstream_protocol_error"),
            )]));
        }
        codes::METHOD_NOT_FOUND
            if matches!(
                op,
                Op::GetPrompt(_)
                    | Op::ReadResource(_)
                    | Op::Complete(_)
                    | Op::GetSkill(_)
                    | Op::ReadDirectory(..)
            ) =>
        {
            error.code = codes::INVALID_PARAMS
        }
        _ => {}
    }
    error
}

/// The span that a request belongs to, and vendors' state of its trace, where both stand in the same place.
fn told_by<'a>(
    parent: Option<Cow<'a, str>>,
    state: impl FnOnce() -> Option<Cow<'a, str>>,
) -> Option<(Parent, Option<Box<str>>)> {
    let parent = Parent::parse(&parent?)?;
    let state = state().filter(|state| !state.is_empty() && trace::is_state(state));
    Some((parent, state.map(|state| state.as_ref().into())))
}
