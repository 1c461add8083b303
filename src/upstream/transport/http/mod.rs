//! Streamable HTTP toward an upstream, in every revision: one POST per frame, answered by JSON or an event stream.
//!
//! Guarantees: what is sent is the peer's headers and the configured ones, nothing of a client's (SECURITY EGR-1,
//! EGR-2); of an answer only the status, the session id, the frames and when to come again are looked at (EGR-7), and of one
//! that is refused the words alone by which some say why (`refused`), or that they do not know a session (`forgotten`); compression is neither asked for nor taken. Deliberately absent: what a status
//! means to a session or an era.

mod apart;
#[cfg(test)]
mod arrays;
mod forgotten;
pub(super) mod resume;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{
    future::{BoxFuture, Either},
    stream::{self, StreamExt},
};
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT},
};
use http_body_util::Full;
use secrecy::ExposeSecret;

use super::{
    Answer, Dial, Frames, Head, Outbound, Transport,
    body::{Drain, check_id, rest, whole},
    events::Events,
    owes::Owes,
    pool::{Arriving, Outgoing, Pool, Use},
    refused::{Carried, admitted, retry_after},
};
use crate::{
    fetch::AGENT,
    json::Limits,
    jsonrpc::{Frame, Message, RequestId, Response as Responded, RpcError, decode},
    memory::{self, Hold},
    protocol::{codes, mirror},
    tasks::Tasks,
    upstream::{
        UpstreamError,
        spec::{HttpSpec, PeerBounds, Timeouts},
    },
};

use apart::Apart;

use resume::Resume;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// What some write at the head of a text, and JSON does not have (RFC 8259 8.1).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The most characters of a header that are told.
const SHOWN: usize = 64;
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// Streamable HTTP to one URL.
#[derive(Debug)]
pub struct Http {
    /// Shared with the answers that may have to be resumed.
    reach: Arc<Reach>,
    drain: Drain,
    timeouts: Timeouts,
    bounds: PeerBounds,
    tasks: Tasks,
}

/// Where requests go, over which connections, and what each of them has.
#[derive(Debug, Clone)]
struct Reach {
    url: Uri,
    /// Every header that each POST has.
    template: HeaderMap,
    pool: Pool,
    /// Connections for each credential that is a user's own.
    apart: Option<Apart>,
}

impl Reach {
    fn carry(
        &self,
        request: Outgoing,
        usage: Use,
    ) -> impl Future<Output = Result<Response<Arriving>, UpstreamError>> + Send {
        let own = self
            .apart
            .as_ref()
            .and_then(|apart| apart.pool(&self.pool, &request));
        match own {
            None => Either::Left(self.pool.send(request, usage)),
            Some(pool) => Either::Right(Box::pin(async move { pool.send(request, usage).await })),
        }
    }

    /// A request for a stream of events, with these headers beside those that every one has.
    fn get(&self, headers: HeaderMap) -> Outgoing {
        let mut all = self.template.clone();
        all.extend(headers);
        all.remove(CONTENT_TYPE);
        all.insert(ACCEPT, EVENTS);
        assemble(Method::GET, &self.url, all, Bytes::new())
    }
}

impl Http {
    /// A transport to `spec.url`; connections are opened by `dial` when they are needed and live in `tasks`.
    ///
    /// # Errors
    /// `Unavailable` when the URL or a header cannot be used.
    pub fn new(
        spec: &HttpSpec,
        dial: Dial,
        timeouts: Timeouts,
        tasks: &Tasks,
    ) -> Result<Self, UpstreamError> {
        let tasks = tasks.child();
        let mut template = configured(spec)?;
        template.insert(CONTENT_TYPE, JSON);
        template.insert(ACCEPT, BOTH);
        Ok(Self {
            reach: Arc::new(Reach {
                url: spec.url.clone(),
                template,
                pool: Pool::new(dial, &tasks),
                apart: None,
            }),
            drain: Drain::new(&tasks),
            timeouts,
            bounds: PeerBounds::default(),
            tasks,
        })
    }

    /// The same where the upstream may say this much.
    #[must_use]
    pub const fn within(mut self, bounds: PeerBounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// The same where requests carry credentials of users' own: those of one go over no connection that another's went over
    /// (SECURITY STATE-8).
    #[must_use]
    pub fn apart(mut self) -> Self {
        Arc::make_mut(&mut self.reach).apart = Some(Apart::new(&self.tasks));
        self
    }

    async fn post(&self, out: Outbound) -> Result<Answer, UpstreamError> {
        let usage = if out.listens {
            Use::Dedicated
        } else {
            Use::Pooled
        };
        let mut headers = out.headers;
        // A line begins with the template, so that nothing is merged for each request.
        if !headers.contains_key(HOST) {
            headers.extend(self.reach.template.clone());
        }
        // Whoever names a revision speaks one without arrays; where none is named they may be legal (PROTOCOL A1, B4).
        let arrays = if headers.contains_key(&mirror::header::PROTOCOL_VERSION) {
            Arrays::Illegal
        } else {
            Arrays::Legal
        };
        let kept = out.resumes.then(|| resume::kept(&headers, out.credential));
        let is_named = forgotten::is_named(&headers);
        let request = assemble(Method::POST, &self.reach.url, headers, out.frame);
        let carried = Carried::of(request.headers());
        let mut response = self.reach.carry(request, usage).await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && Box::pin(forgotten::names_none(is_named, &mut response)).await
        {
            return Ok(Answer::Status(Head {
                status: StatusCode::NOT_FOUND,
                ..Head::default()
            }));
        }
        let (head, kind, body) = inspect(response, &carried).await?;
        if matches!(head.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            self.drain.take(body);
            return Ok(Answer::Accepted(head));
        }
        match (&kind, out.id) {
            (Content::Events, Some(id)) if head.status.is_success() => {
                let silence = match usage {
                    Use::Pooled => Some(self.timeouts.silence),
                    Use::Dedicated => None,
                };
                let drain = self.drain.clone();
                let owes = Owes::Response {
                    id,
                    silence,
                    patience: out.patience,
                    payer: out.payer,
                    drain,
                };
                let mut events = Events::new(body, out.limits, &self.bounds, owes);
                if let Some(kept) = kept {
                    let closed = self.tasks.token().clone();
                    events = events.resuming(Resume::new(&self.reach, kept, &head, closed));
                }
                Ok(Box::pin(first_of(head, events)).await)
            }
            (Content::Json, id) => {
                let hold = memory::process().hold().paid_by(out.payer);
                let bounds = (&out.limits, self.bounds.message_bytes);
                json_answer(head, body, (id, arrays), bounds, hold).await
            }
            (_, None) if head.status.is_success() => {
                self.drain.take(body);
                Ok(Answer::Accepted(head))
            }
            (Content::Other(told), Some(_)) if head.status.is_success() => {
                Err(UpstreamError::Protocol(unknown(told.as_ref())))
            }
            _ => {
                self.drain.take(body);
                Ok(Answer::Status(head))
            }
        }
    }

    /// The stream of a session; `None` where the upstream offers none.
    async fn listen(
        &self,
        headers: HeaderMap,
        resumes: bool,
    ) -> Result<Option<Frames>, UpstreamError> {
        let is_named = forgotten::is_named(&headers);
        let kept = resumes.then(|| resume::kept(&headers, None));
        let request = self.reach.get(headers);
        let carried = Carried::of(request.headers());
        let mut response = self.reach.carry(request, Use::Dedicated).await?;
        if forgotten::names_none(is_named, &mut response).await {
            return Err(no_session(StatusCode::UNAUTHORIZED));
        }
        let (head, kind, body) = inspect(response, &carried).await?;
        match (kind, head.status) {
            (Content::Events, status) if status.is_success() => {
                let bounds = &self.bounds;
                let mut events = Events::new(body, bounds.json, bounds, Owes::Nothing);
                if let Some(kept) = kept {
                    let closed = self.tasks.token().clone();
                    let resume = Resume::new(&self.reach, kept, &head, closed);
                    events = events.resuming(resume.apart());
                }
                Ok(Some(events.into_frames()))
            }
            (_, StatusCode::METHOD_NOT_ALLOWED) => Ok(None),
            // On a session this says that there is none (PROTOCOL B4).
            (_, status @ StatusCode::NOT_FOUND) => Err(no_session(status)),
            (_, status) if status.is_success() => Err(UpstreamError::Protocol(
                "a GET answered with something else than events".into(),
            )),
            (_, status) => Err(UpstreamError::away(format!("GET: HTTP {status}"), status)),
        }
    }
}

impl Transport for Http {
    fn send(&self, out: Outbound) -> BoxFuture<'_, Result<Answer, UpstreamError>> {
        Box::pin(self.post(out))
    }

    fn headers(&self) -> HeaderMap {
        self.reach.template.clone()
    }

    /// May be called once for each session.
    fn unsolicited(&self, headers: HeaderMap) -> BoxFuture<'_, Result<Frames, UpstreamError>> {
        Box::pin(async move {
            let offered = self.listen(headers, false).await?;
            // Not offered: then nothing comes, for as long as the transport lives.
            Ok(offered.unwrap_or_else(|| stream::pending().boxed()))
        })
    }

    fn own_stream(
        &self,
        headers: HeaderMap,
    ) -> BoxFuture<'_, Result<Option<Frames>, UpstreamError>> {
        Box::pin(self.listen(headers, true))
    }

    /// Within the connect deadline, whatever the upstream does.
    fn leave(&self, headers: HeaderMap) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut all = self.reach.template.clone();
            all.extend(headers);
            all.remove(CONTENT_TYPE);
            let request = assemble(Method::DELETE, &self.reach.url, all, Bytes::new());
            let leaving = async {
                if let Ok(response) = self.reach.carry(request, Use::Pooled).await {
                    rest(response.into_body()).await;
                }
            };
            drop(tokio::time::timeout(self.timeouts.connect, leaving).await);
        })
    }

    fn lost(&self) -> BoxFuture<'_, UpstreamError> {
        Box::pin(std::future::pending())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.tasks.stop();
        Box::pin(std::future::ready(()))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// What it means that a GET on a session is answered so.
fn no_session(status: StatusCode) -> UpstreamError {
    let said = format!("GET: HTTP {}", status.as_u16());
    UpstreamError::Refused(RpcError::new(codes::SESSION_NOT_FOUND, said))
}

/// The headers that every request has: `Host`, no compression, who asks, and what the configuration says, of that as well.
pub(super) fn configured(spec: &HttpSpec) -> Result<HeaderMap, UpstreamError> {
    let bad = |what: &str| UpstreamError::unreached(format!("the URL {what}"));
    let authority = spec.url.authority().ok_or_else(|| bad("has no host"))?;
    if authority.as_str().contains('@') {
        return Err(bad("holds a credential"));
    }
    let host = HeaderValue::from_str(authority.as_str())
        .map_err(|_invalid| bad("has a host that is no header value"))?;
    let mut headers = HeaderMap::with_capacity(24);
    headers.insert(HOST, host);
    headers.insert(ACCEPT_ENCODING, IDENTITY);
    for (name, value) in &spec.headers {
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_invalid| {
            UpstreamError::unreached(format!("the value of `{name}` is no header value"))
        })?;
        value.set_sensitive(true);
        headers.append(name.clone(), value);
    }
    headers.entry(USER_AGENT).or_insert(AGENT);
    Ok(headers)
}

/// A request that hyper can send; the body is not copied.
pub(super) fn assemble(method: Method, url: &Uri, headers: HeaderMap, body: Bytes) -> Outgoing {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = url.clone();
    *request.headers_mut() = headers;
    request
}

/// What a body claims to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Json,
    Events,
    /// Something else, or nothing.
    Other(Option<HeaderValue>),
}

/// What is wrong with a request's answer that is neither JSON nor events, for operators.
fn unknown(kind: Option<&HeaderValue>) -> String {
    match kind {
        Some(kind) => format!("an answer of the content type `{}`", shown(kind)),
        None => "an answer without a content type".into(),
    }
}

/// The beginning of a header's text, which is an upstream's.
fn shown(value: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(value.as_bytes());
    let begins = text.chars().take(SHOWN);
    begins.flat_map(char::escape_debug).collect()
}

/// Refuses what no upstream may answer, and keeps the few facts that are used. The request `carried` this.
pub(super) async fn inspect(
    response: Response<Arriving>,
    carried: &Carried,
) -> Result<(Head, Content, Arriving), UpstreamError> {
    let (mut parts, body) = admitted(response, carried).await?.into_parts();
    let coded = parts.headers.get(CONTENT_ENCODING);
    if coded.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let coding = coded.map(shown).unwrap_or_default();
        return Err(UpstreamError::Protocol(format!(
            "a compressed answer, `{coding}`, which was not asked for"
        )));
    }
    let content = match parts.headers.remove(CONTENT_TYPE) {
        Some(value) => {
            let end = memchr::memchr(b';', value.as_bytes()).unwrap_or(value.len());
            match value.as_bytes()[..end].trim_ascii() {
                kind if kind.eq_ignore_ascii_case(b"application/json") => Content::Json,
                kind if kind.eq_ignore_ascii_case(b"text/event-stream") => Content::Events,
                _ => Content::Other(Some(value)),
            }
        }
        None => Content::Other(None),
    };
    let head = Head {
        status: parts.status,
        session: parts.headers.remove(&mirror::header::SESSION_ID),
        retry_after: retry_after(parts.status, &parts.headers),
    };
    Ok((head, content, body))
}

/// An answer in an event stream: its one frame, or the stream with the first of them ahead. One that breaks before is a stream
/// too: its request was taken, and whoever gives that up may have to say so.
async fn first_of(head: Head, mut events: Events) -> Answer {
    match events.next().await {
        Some(Ok(frame @ Frame::Response(_))) => Answer::One(head, frame),
        first => Answer::Stream(
            head,
            stream::iter(first).chain(events.into_frames()).boxed(),
        ),
    }
}

/// An answer in one JSON text. Frames count whatever the status is; without one, an error status stands for itself.
async fn json_answer(
    head: Head,
    mut body: Arriving,
    (id, arrays): (Option<RequestId>, Arrays),
    (limits, max): (&Limits, usize),
    hold: Hold,
) -> Result<Answer, UpstreamError> {
    body.withhold();
    let text = whole(&mut body, max, hold).await?;
    let marked = text.starts_with(BYTE_ORDER_MARK);
    let answer = match decode(text, limits) {
        Ok(message) => sort(head, message, id, arrays)?,
        Err(_none) if !head.status.is_success() => Answer::Status(head),
        // A notification is owed nothing, so there is nothing in the answer that could be wrong.
        Err(_none) if id.is_none() => Answer::Accepted(head),
        Err(_none) if marked => {
            let why = "a byte order mark before its JSON";
            return Err(UpstreamError::Protocol(why.into()));
        }
        Err(error) => return Err(UpstreamError::undecodable(&error)),
    };
    body.accept();
    Ok(answer)
}

/// Whether an answer may be an array of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrays {
    Legal,
    Illegal,
}

fn sort(
    head: Head,
    message: Message,
    id: Option<RequestId>,
    arrays: Arrays,
) -> Result<Answer, UpstreamError> {
    let refused = !head.status.is_success();
    let mine = |mut frame: Frame| {
        // Servers that refuse a request unread give it an id of theirs: to one session that is gone `server-error`. The
        // status is about our request, whatever the error calls it.
        if let Frame::Response(Responded { id, body: Err(_) }) = &mut frame
            && refused
        {
            *id = None;
        }
        match &id {
            Some(id) => check_id(frame, id),
            None => Ok(frame),
        }
    };
    match message {
        Message::One(frame @ Frame::Response(_)) => Ok(Answer::One(head, mine(frame)?)),
        Message::One(_) => Err(UpstreamError::Protocol(
            "a JSON answer that is no response".into(),
        )),
        Message::Batch(_) if arrays == Arrays::Illegal => Err(UpstreamError::Protocol(
            "an array, which its revision does not have".into(),
        )),
        // 2025-03-26 may answer with an array, of which the response is the last.
        Message::Batch(frames) => {
            let response = |frame: &Frame| matches!(frame, Frame::Response(_));
            let broken = match frames.iter().position(response) {
                None => Some("an array without a response"),
                Some(last) if last + 1 < frames.len() => {
                    Some("an array that goes on after its response")
                }
                Some(_) => None,
            };
            if let Some(broken) = broken {
                return Err(UpstreamError::Protocol(broken.into()));
            }
            let frames: Vec<_> = frames.into_iter().map(mine).collect();
            Ok(Answer::Stream(head, stream::iter(frames).boxed()))
        }
    }
}
