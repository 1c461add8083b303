//! Transports carry frames to one upstream and know nothing of eras.

mod body;
mod dial;
mod events;
mod http;
mod mux;
mod owes;
mod pool;
mod printable;
mod refused;
#[cfg(test)]
mod rig;
mod sse;
mod stdio;

use std::{sync::Arc, time::Duration};

use ::http::{HeaderMap, HeaderValue, StatusCode};
use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};
use tokio::sync::OnceCell;

pub use self::{dial::Dial, http::Http, sse::Sse, stdio::Stdio};

use super::{
    CredentialError, UpstreamError,
    patience::Patience,
    spec::{Endpoint, HttpTransport, UpstreamSpec},
};
use crate::{
    call::Trail,
    jsonrpc::{Frame, RequestId},
    tasks::Tasks,
};

/// Reaches an upstream over the transport that its endpoint has. `http` says which of the two over HTTP; `Auto` counts as
/// `Streamable`, which opens no connection before it is used. `token` is what `Sse` opens its stream with, beside what is
/// configured; `each_their_own` says that requests carry users' own. `dial` opens the connections to its address, and is made
/// by the first that needs it. What the transport runs lives in `tasks`.
///
/// # Errors
/// `Unavailable` when a child cannot be started or TLS material cannot be read; for `Sse`, whatever kept the stream from
/// opening.
pub async fn connect(
    spec: &UpstreamSpec,
    http: HttpTransport,
    token: Option<HeaderValue>,
    each_their_own: bool,
    dial: &OnceCell<Dial>,
    tasks: &Tasks,
) -> Result<Arc<dyn Transport>, UpstreamError> {
    Ok(match &spec.endpoint {
        Endpoint::Stdio(child) => {
            Arc::new(Stdio::spawn(&spec.id, child, &spec.bounds, tasks).await?)
        }
        Endpoint::Http(address) => {
            let (timeouts, bounds) = (spec.timeouts, &spec.bounds);
            let made = async { Dial::new(&address.url, &address.tls, timeouts.connect) };
            let dial = dial.get_or_try_init(|| made).await?.clone();
            match http {
                HttpTransport::Auto | HttpTransport::Streamable => {
                    let http = Http::new(address, dial, timeouts, tasks)?.within(*bounds);
                    Arc::new(if each_their_own { http.apart() } else { http })
                }
                HttpTransport::Sse => {
                    let opened = Sse::open(&spec.id, address, dial, token, timeouts, bounds, tasks);
                    Arc::new(opened.await?)
                }
            }
        }
    })
}

/// Carries frames.                                         impls: transport::{Http, Stdio, Sse}
pub trait Transport: Send + Sync + 'static {
    /// Sends one frame. For a request the answer holds the frames that belong to it; a notification or response is
    /// `Answer::Accepted`. Dropping the answer gives up on it: HTTP closes the stream, a pipe forgets the id (whether the
    /// upstream must also be told is the peer's business).
    fn send(&self, out: Outbound) -> BoxFuture<'_, Result<Answer, UpstreamError>>;

    /// What the headers of every frame begin with; a line takes them over once.
    fn headers(&self) -> HeaderMap {
        HeaderMap::new()
    }

    /// Frames that answer nothing: server requests and notifications without a progress token of ours. May be taken
    /// once; on HTTP it opens the GET stream in session `headers`. Ends when the transport does.
    fn unsolicited(&self, headers: HeaderMap) -> BoxFuture<'_, Result<Frames, UpstreamError>>;

    /// The same for a session that carries callers' calls: gone on with from its last event where that is possible, and `None`
    /// where the upstream offers no stream.
    fn own_stream(
        &self,
        headers: HeaderMap,
    ) -> BoxFuture<'_, Result<Option<Frames>, UpstreamError>> {
        Box::pin(async move { self.unsolicited(headers).await.map(Some) })
    }

    /// Sorts by these what names no request of ours, from now on: it comes as a frame of the answer, before whatever was said
    /// after it. Once; nothing on HTTP, whose streams say themselves what belongs to whom.
    fn sort_by(&self, _owners: Arc<dyn Owners>) {}

    /// Tells the upstream that the session in `headers` is over: a DELETE on Streamable HTTP (PROTOCOL B4), nothing on
    /// transports whose session is their connection. Whether the upstream agrees is of no consequence.
    fn leave(&self, _headers: HeaderMap) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// What it said beside the protocol, for operators, where there is a place for that.
    fn words(&self) -> Option<String> {
        None
    }

    /// Resolves when the transport can carry no more (a process ended, an SSE stream closed). Never, for plain HTTP.
    fn lost(&self) -> BoxFuture<'_, UpstreamError>;

    /// Closes it in an orderly way: stdin closed, then SIGTERM, then SIGKILL; a stream dropped.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Sends a frame. Where its call is to be sent once more, that is noted, unless no connection came about or nothing had room.
///
/// # Errors
/// As [`Transport::send`].
pub(super) async fn sent(
    transport: &dyn Transport,
    out: Outbound,
) -> Result<Answer, UpstreamError> {
    let again = out.trail.is_sent().then(|| out.trail.clone());
    let answer = transport.send(out).await;
    if let (Some(trail), Err(error)) = (again, &answer)
        && (matches!(error, UpstreamError::Overloaded) || error.says_unsent())
    {
        trail.was_not_sent();
    }
    answer
}

/// Says whose a frame is that names no request of ours, by what is known of its session.
pub trait Owners: Send + Sync + std::fmt::Debug {
    /// The number of the request in whose course it was sent, if anybody can say.
    fn whose(&self, frame: &Frame) -> Option<u64>;

    /// The answer to a request has come that nobody waits for any more, or that nobody can read.
    fn late(&self, number: u64);

    /// Whether all who ask something on the session are one caller, who may be held up by what they do not read.
    fn is_of_one(&self) -> bool;
}

/// A frame on its way out.
#[derive(Debug, Clone)]
pub struct Outbound {
    /// The encoded frame.
    pub frame: Bytes,
    /// The id, when it is a request: minted by the peer, unique on this transport. The peer uses the same number as the
    /// request's progress token, so that a pipe can tell whose progress a notification is.
    pub id: Option<RequestId>,
    /// Headers for HTTP: version, session, mirrored ones; ignored by pipes. Credentials that are configured are the transport's own.
    pub headers: HeaderMap,
    /// The most bytes of one message in the answer, and how strictly it is read.
    pub limits: crate::json::Limits,
    /// While somebody is asked by this, the answer's stream may be silent for longer than the upstream's silence deadline. Only
    /// HTTP keeps that deadline here.
    pub patience: Option<Arc<Patience>>,
    /// For whom the answer is held in memory; nobody in particular for our own requests, and where nobody is asked for a name.
    pub payer: Option<Arc<str>>,
    /// Whether it is a listen of the stateless era: its answer has no end of its own, and a pipe ties to it whatever names
    /// it as its subscription (PROTOCOL B6).
    pub listens: bool,
    /// Whether an answer in a stream that ends before the response may be resumed, by a GET that names its last event: so in
    /// the era that has event ids (PROTOCOL B4). Only HTTP knows how.
    pub resumes: bool,
    /// Where its credential is from, if it has one that ends: for whatever goes on with its answer later.
    pub credential: Option<Arc<dyn Credential>>,
    /// Where it is noted that it was sent once more with another credential; nowhere for our own requests.
    pub trail: Trail,
}

/// What the credential of a request is got from, which may outlive it.        impls: credentials::Behalf
pub trait Credential: std::fmt::Debug + Send + Sync {
    /// The header of now, for whoever the request was on behalf of.
    fn now(&self) -> BoxFuture<'_, Result<HeaderValue, CredentialError>>;

    /// Another one, since the upstream refused this one as it would refuse an old one; `None` where none is worth a try.
    fn instead<'a>(
        &'a self,
        refused: &'a HeaderValue,
    ) -> BoxFuture<'a, Result<Option<HeaderValue>, CredentialError>>;
}

/// What came back for one frame.
pub enum Answer {
    /// Nothing is owed: a notification was taken.
    Accepted(Head),
    /// One frame, whatever the HTTP status said.
    One(Head, Frame),
    /// Frames as they come; a response to the request's id is the last.
    Stream(Head, Frames),
    /// An HTTP answer that holds no frame: the peer decides what the status means (404 on a session, 405, 4xx of an older server).
    Status(Head),
}

/// The HTTP facts of an answer; pipes leave the default.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// The status: neither a redirect nor a refused credential (EGR-3, EGR-6).
    pub status: StatusCode,
    /// `Mcp-Session-Id`, if the upstream set one.
    pub session: Option<HeaderValue>,
    /// In how long it is to be asked again, where it takes no requests now and says so; a day at most.
    pub retry_after: Option<Duration>,
}

/// Whether this status only says that the request came at a bad time.
pub(super) const fn is_busy(status: u16) -> bool {
    matches!(status, 408 | 425 | 429)
}

/// Frames of one answer, or unsolicited ones.
pub type Frames = BoxStream<'static, Result<Frame, UpstreamError>>;
