//! One session of the handshake era: opened, spoken on, closed.
//!
//! Guarantees: a session exists only at a revision that we know, after a whole handshake; the server's pings are answered, what
//! it asks on a pipe goes to the one call that it can belong to and is refused where there is none, as is what it asks on a
//! stream of the session's own (`ear`); closing it tells the server where that is possible, and first ends the calls that wait
//! for a person.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{attribution::Attribution, ear::Ear};
use crate::{
    call::{Identity, LogLevel, ServerCard},
    json::{Json, Kind, Node},
    jsonrpc::{Frame, RpcError, encode},
    metrics::{self, Bound},
    protocol::{Era, Revision, codes, meta, methods, mirror},
    tasks::{Tasks, clock},
    upstream::{
        Deadline, UpstreamError,
        asking::Offer,
        exchange::{self, AskOutcome},
        line::{Line, Wire},
        modern::client_info,
        patience::Patience,
        terms::{CallSlot, Terms},
        transport::{Answer, Frames, Head, is_busy},
    },
};

/// How long telling the server of the end may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// The shortest time after which it is looked whether somebody is asked.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long somebody else's answer is waited for, where no queue says how long a call waits.
const QUEUED: Duration = Duration::from_secs(2);
/// How long a server may take to agree to a log level. A call waits for it.
const HEED: Duration = Duration::from_secs(2);
/// No log level was asked for.
const NO_LEVEL: u8 = u8::MAX;

/// An open session.
pub(in crate::upstream) struct Session {
    /// What to speak on.
    pub(super) line: Arc<Line>,
    /// What the server said of itself.
    pub(super) card: ServerCard,
    /// Cancelled when it can be used no more.
    pub(super) gone: CancellationToken,
    /// Where its unasked frames find the call they belong to.
    pub(super) attribution: Arc<Attribution>,
    /// What is heard on its own stream, where that is not a pipe.
    pub(super) ear: Arc<Ear>,
    /// Whether its calls wait for people.
    pub(super) asking: Arc<Patience>,
    /// The calls that wait for a person, and the tasks that are being cancelled: the session's end waits for theirs.
    pub(super) parked: TaskTracker,
    /// The log level asked for, if any. Only ever lowered: what is above a call's own level is dropped here.
    level: AtomicU8,
    /// Held while a level is asked for, so that those who want it have it before they go on.
    levelling: tokio::sync::Mutex<()>,
    /// Whether an HTTP session id names it.
    named: bool,
    parting: Parting,
    opened: Instant,
    /// What ends with it.
    pub(super) tasks: Tasks,
}

/// What a session is opened with.
#[derive(Debug, Clone, Copy)]
pub(in crate::upstream) struct Proposal {
    /// The revision proposed.
    pub(in crate::upstream) revision: Revision,
    /// Whether no other will do.
    pub(in crate::upstream) exact: bool,
    /// Whether it is for the gateway itself, and not for a caller.
    pub(in crate::upstream) service: bool,
    /// Whether it is one caller's, whom nobody else shares it with.
    pub(in crate::upstream) of_one: bool,
}

/// Why no session was opened.
#[derive(Debug)]
pub(in crate::upstream) enum NotOpened {
    /// `initialize` was answered with an HTTP status and no frame.
    Status(Head),
    /// `initialize` was answered with an error.
    Refused(Head, RpcError),
    /// It failed otherwise.
    Failed(UpstreamError),
}

impl NotOpened {
    /// Whether the status says that the server failed, whatever it was asked.
    fn is_failure_of_server(&self) -> bool {
        match self {
            Self::Status(head) | Self::Refused(head, _) => head.status.is_server_error(),
            Self::Failed(_) => false,
        }
    }
}

impl From<UpstreamError> for NotOpened {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

impl From<NotOpened> for UpstreamError {
    fn from(why: NotOpened) -> Self {
        match why {
            NotOpened::Status(head) => exchange::bare(&head),
            // It came at a bad time, whatever the message says: some servers say so where they have too many sessions.
            NotOpened::Refused(head, _)
                if is_busy(head.status.as_u16()) || head.status.is_server_error() =>
            {
                exchange::bare(&head)
            }
            NotOpened::Refused(_, error) => Self::Refused(error),
            NotOpened::Failed(error) => error,
        }
    }
}

impl Session {
    /// Opens a session that declares `offer`: `initialize`, the version agreed on, `notifications/initialized` (PROTOCOL A1). A
    /// server that cannot read that is asked once more with [`Offer::plain`], and the session's line says what was granted.
    ///
    /// # Errors
    /// [`NotOpened`]; also when the server answers with a revision that is none of ours, or not the `exact` one.
    pub(in crate::upstream) async fn open(
        wire: &Arc<Wire>,
        proposal: Proposal,
        offer: Offer,
        terms: &Arc<Terms>,
        deadline: Instant,
    ) -> Result<Self, NotOpened> {
        Self::open_for(None, wire, proposal, offer, terms, deadline).await
    }

    /// The same on behalf of somebody, with whose credential everything is said that is said on it.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub(super) async fn open_for(
        behalf: Option<&Arc<Identity>>,
        wire: &Arc<Wire>,
        proposal: Proposal,
        offer: Offer,
        terms: &Arc<Terms>,
        deadline: Instant,
    ) -> Result<Self, NotOpened> {
        // What this server balked at before is not declared to it again.
        let mut offer = if wire.plain.load(Ordering::Relaxed) {
            offer.plain()
        } else {
            offer
        };
        let line = |offer, headers| {
            let line = Line::new(Arc::clone(wire), Era::Legacy, headers, Arc::clone(terms));
            let line = line.offering(offer).in_service(proposal.service);
            Arc::new(line.on_behalf(behalf))
        };
        let bare = line(offer, HeaderMap::new());
        let tasks = terms.tasks.child();
        let stop = StopOnDrop(Some(tasks.clone()));
        let attribution = Arc::new(Attribution::new(proposal.of_one));
        if !wire.streamable {
            // Servers may ask things before the handshake is over (PROTOCOL J6), and expect pings answered.
            wire.transport
                .sort_by(Arc::<Attribution>::clone(&attribution));
            let frames = wire.transport.unsolicited(HeaderMap::new()).await?;
            tasks.spawn(attend(Arc::clone(&bare), frames));
        }
        let (head, result) = match greet(&bare, proposal, offer, deadline).await {
            Ok(granted) => granted,
            Err(why) if offer != offer.plain() && balks(&why) => {
                let less = offer.plain();
                match greet(&bare, proposal, less, deadline).await {
                    Ok(granted) => {
                        // A server that was ill for a moment has refused nothing of what was declared.
                        if !why.is_failure_of_server() {
                            wire.plain.store(true, Ordering::Relaxed);
                            tracing::info!(
                                upstream = %terms.id,
                                "the server refuses a handshake that declares modes of elicitation, or tools in sampling; these are no longer declared to it"
                            );
                        }
                        offer = less;
                        granted
                    }
                    // Then it was not for what was declared.
                    Err(_again) => return Err(why),
                }
            }
            Err(why) => return Err(why),
        };
        let mut headers = HeaderMap::new();
        if let Some(session) = head.session.filter(|_| wire.streamable) {
            headers.insert(HeaderName::from_static(mirror::SESSION_ID), session);
        }
        let named = !headers.is_empty();
        let card = match card(&result, proposal) {
            Ok(card) => card,
            Err(error) => {
                if named {
                    leave(&line(offer, headers)).await;
                }
                return Err(error.into());
            }
        };
        if wire.streamable && card.revision.features().version_header {
            headers.insert(
                HeaderName::from_static(mirror::PROTOCOL_VERSION),
                HeaderValue::from_static(card.revision.as_str()),
            );
        }
        let line = line(offer, headers);
        let initialized = encode::notification(methods::INITIALIZED, None);
        if let Some(why) = not_taken(line.notify(initialized, deadline).await) {
            // The server keeps a session that nobody is going to use.
            if named {
                leave(&line).await;
            }
            return Err(why.into());
        }
        stop.keep();
        Ok(Self {
            parting: Parting::of(&line),
            line,
            card,
            gone: CancellationToken::new(),
            attribution,
            ear: Arc::default(),
            asking: Arc::default(),
            parked: TaskTracker::new(),
            level: AtomicU8::new(NO_LEVEL),
            levelling: tokio::sync::Mutex::default(),
            named,
            opened: Instant::now(),
            tasks,
        })
    }

    /// Waits until nobody else of it may be asked: a call goes on in milliseconds or minutes, but who is asked may be at lunch, so
    /// that nobody waits for a person longer than in any other queue.
    ///
    /// # Errors
    /// [`UpstreamError::Engaged`] while somebody is asked; else as [`Attribution::turn`].
    pub(super) async fn turn(&self, deadline: Instant) -> Result<CallSlot, UpstreamError> {
        let patience = self
            .line
            .terms
            .queue
            .patience()
            .unwrap_or(QUEUED)
            .max(SHORTEST);
        let mut turn = pin!(self.attribution.turn(deadline));
        loop {
            if let Ok(turn) = timeout(patience, turn.as_mut()).await {
                return turn;
            }
            if self.asking.lasts() >= patience {
                metrics::reached(Bound::QueueTime);
                return Err(UpstreamError::Engaged);
            }
        }
    }

    /// Whether it is named by an HTTP session id, which the server may forget.
    pub(super) const fn is_named(&self) -> bool {
        self.named
    }

    /// Whether an answer says that the server no longer knows it: 404 (PROTOCOL B4), and the 400 that some servers give instead.
    /// A legacy server's own errors come with 200.
    pub(super) fn is_forgotten(&self, head: &Head, error: Option<&RpcError>) -> bool {
        self.named
            && match head.status.as_u16() {
                404 => true,
                400 => error.is_none_or(|error| matches!(error.code, -32001 | -32000)),
                _ => false,
            }
    }

    /// Takes note of a refusal by status: where there is no session that could be gone, the server may have become another. A process
    /// speaks one era for as long as it lives (PROTOCOL C4).
    pub(super) fn suspect(&self, head: &Head) {
        if !self.named
            && self.line.wire.streamable
            && matches!(head.status.as_u16(), 400 | 404 | 405)
        {
            self.line.wire.doubt.cast();
        }
    }

    /// It is replaced though the server may still know it: the server is told when nobody uses it any more.
    pub(super) fn replaced(&self) {
        self.gone.cancel();
        self.parting.set_due(self.named);
    }

    /// Whether a call of it waits for a person, or has just ceased to.
    pub(super) fn is_asking(&self) -> bool {
        !self.parked.is_empty()
    }

    /// Sees to it that the server sends log lines of `level` and above, if it can at all (PROTOCOL D1). A server that does not
    /// agree is not asked again.
    pub(super) async fn heed(&self, level: LogLevel) {
        let wanted = level as u8;
        if wanted >= self.level.load(Ordering::Relaxed) || !self.card.logs() {
            return;
        }
        let _turn = self.levelling.lock().await;
        if wanted >= self.level.load(Ordering::Relaxed) {
            return;
        }
        let params = meta::object_of(&[("level", Json::string(level.as_str()))]);
        let headers = self.line.headers.clone();
        let until = Instant::now() + HEED;
        let method = methods::SET_LEVEL;
        let asked = exchange::ask(&self.line, method, &params, headers, until, false).await;
        if !matches!(asked, Ok(AskOutcome::Result(..))) {
            tracing::debug!(upstream = %self.line.terms.id, "a log level was not agreed to");
        }
        self.level.store(wanted, Ordering::Relaxed);
    }

    /// Ends the session: no more calls, the server told over HTTP, its transport closed where it has one of its own.
    pub(super) async fn close(&self, owns_transport: bool) {
        self.gone.cancel();
        self.parked.close();
        // Each of them has something to tell the server first.
        drop(timeout(FAREWELL, self.parked.wait()).await);
        self.tasks.stop();
        self.parting.set_due(false);
        if self.named {
            leave(&self.line).await;
        }
        if owns_transport {
            self.line.wire.transport.close().await;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.gone.cancel();
        self.tasks.stop();
        let open = clock::since(self.opened);
        metrics::calls::session_held(&self.line.terms.id, self.card.revision, open);
    }
}

/// Asks `initialize`, once, and declares `offer`.
///
/// # Errors
/// [`NotOpened`].
async fn greet(
    line: &Arc<Line>,
    proposal: Proposal,
    offer: Offer,
    deadline: Instant,
) -> Result<(Head, Json), NotOpened> {
    let params = meta::object_of(&[
        ("protocolVersion", Json::string(proposal.revision.as_str())),
        ("capabilities", offer.json()),
        ("clientInfo", client_info()),
    ]);
    let method = methods::INITIALIZE;
    match exchange::ask(line, method, &params, HeaderMap::new(), deadline, true).await {
        Ok(AskOutcome::Result(head, result)) => Ok((head, result)),
        Ok(AskOutcome::Error(head, error)) => Err(NotOpened::Refused(head, error)),
        Ok(AskOutcome::Status(head)) => Err(NotOpened::Status(head)),
        Err(UpstreamError::Timeout(_)) => Err(UpstreamError::Timeout(Deadline::Initialize).into()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a handshake was refused as by a server that could not read it. The Java SDK's, before 2.0.0, reject a whole
/// `initialize` for a member of a capability that they do not know: with 400 or 500, or with an error that says the same.
fn balks(why: &NotOpened) -> bool {
    match why {
        NotOpened::Status(head) => matches!(head.status.as_u16(), 400 | 500),
        NotOpened::Refused(head, error) => {
            matches!(head.status.as_u16(), 200 | 400 | 500)
                && matches!(
                    error.code,
                    codes::PARSE_ERROR
                        | codes::INVALID_REQUEST
                        | codes::INVALID_PARAMS
                        | codes::INTERNAL_ERROR
                )
        }
        NotOpened::Failed(_) => false,
    }
}

/// Stops the tasks of a session that did not come to be.
struct StopOnDrop(Option<Tasks>);

impl StopOnDrop {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(tasks) = &self.0 {
            tasks.stop();
        }
    }
}

/// Why a server did not take that the handshake is over, if so. It took the handshake itself, so that this is a failure, and
/// no word on how it is spoken to (PROTOCOL C2).
fn not_taken(answer: Result<Answer, UpstreamError>) -> Option<UpstreamError> {
    match answer {
        Ok(Answer::Status(head)) if !head.status.is_success() => Some(exchange::bare(&head)),
        Ok(Answer::Status(_) | Answer::Accepted(_) | Answer::One(..) | Answer::Stream(..)) => None,
        Err(UpstreamError::Timeout(_)) => Some(UpstreamError::Timeout(Deadline::Initialize)),
        Err(error) => Some(error),
    }
}

/// Tells the server of the end of a session that was replaced, when nobody uses that any more.
struct Parting {
    line: Arc<Line>,
    due: AtomicBool,
}

impl Parting {
    fn of(line: &Arc<Line>) -> Self {
        Self {
            line: Arc::clone(line),
            due: AtomicBool::new(false),
        }
    }

    /// Whether there will be anything to tell.
    fn set_due(&self, due: bool) {
        self.due.store(due, Ordering::Relaxed);
    }
}

impl Drop for Parting {
    fn drop(&mut self) {
        // Outside a runtime there is nobody to tell it: the process is ending.
        if *self.due.get_mut() && tokio::runtime::Handle::try_current().is_ok() {
            let line = Arc::clone(&self.line);
            let tasks = self.line.terms.tasks.clone();
            tasks.spawn(async move { leave(&line).await });
        }
    }
}

/// Ends a session that a server named in its answer to something that began none, and that nobody is going to use: some begin one
/// for whatever comes without, and keep it. Within two seconds, whatever the server does.
pub(in crate::upstream) async fn decline(
    wire: &Arc<Wire>,
    session: HeaderValue,
    terms: &Arc<Terms>,
) {
    let name = HeaderName::from_static(mirror::SESSION_ID);
    let headers = HeaderMap::from_iter([(name, session)]);
    // Nothing is agreed on in it, so no version is named.
    let line = Line::new(Arc::clone(wire), Era::Legacy, headers, Arc::clone(terms));
    leave(&line).await;
}

/// Tells the server that the session of this line is over.
async fn leave(line: &Line) {
    let leaving = async {
        if let Ok(headers) = line.credentialed().await {
            line.wire.transport.leave(headers).await;
        }
    };
    drop(timeout(FAREWELL, leaving).await);
}

/// The card in a result of `initialize`.
fn card(result: &Json, proposal: Proposal) -> Result<ServerCard, UpstreamError> {
    let root = result.root();
    let broken = |what: &str| UpstreamError::Protocol(format!("`initialize`: {what}"));
    let version = root
        .member("protocolVersion")
        .and_then(Node::as_str)
        .ok_or_else(|| broken("no `protocolVersion`"))?;
    let revision = Revision::parse(&version)
        .filter(|revision| revision.era() == Era::Legacy)
        .ok_or_else(|| broken("a revision that the handshake cannot agree on"))?;
    if proposal.exact && revision != proposal.revision {
        return Err(broken("not the revision that the configuration pins"));
    }
    let object = |key| {
        root.member(key)
            .filter(|value| value.kind() == Kind::Object)
            .map(|value| result.slice(value))
    };
    Ok(ServerCard {
        revision,
        capabilities: object("capabilities").unwrap_or_else(Json::empty_object),
        instructions: root
            .member("instructions")
            .and_then(Node::as_str)
            .map(Into::into),
        server_info: object("serverInfo"),
        ttl_millis: 0,
    })
}

/// Reads what a server says unasked, of no call that anybody knows: requests are answered one after another, changes are heard.
async fn attend(line: Arc<Line>, mut frames: Frames) {
    while let Some(Ok(frame)) = frames.next().await {
        match frame {
            Frame::Request(request) => line.answer(&request).await,
            Frame::Notification(notification) => line.hear(&notification),
            Frame::Response(_) => line.terms.drop_frame(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::upstream::Reached;

    #[test]
    fn a_handshake_that_comes_at_a_bad_time_is_told_by_its_status_whatever_message_comes_with_it() {
        let told = |status: u16| {
            let head = Head {
                status: StatusCode::from_u16(status).unwrap(),
                ..Head::default()
            };
            let error = RpcError::new(-32603, "Too many sessions");
            UpstreamError::from(NotOpened::Refused(head, error))
        };
        for (status, how) in [
            (429, Reached::Busy),
            (503, Reached::No),
            (500, Reached::Yes),
            (408, Reached::Yes),
        ] {
            let error = told(status);
            let UpstreamError::Unavailable { reached, .. } = error else {
                panic!("{status}: {error}")
            };
            assert_eq!((reached, error.status()), (how, Some(status)));
        }
        for status in [200, 400, 404] {
            assert!(
                matches!(told(status), UpstreamError::Refused(_)),
                "{status}"
            );
        }
    }
}
