//! One request to an upstream: sent under a number of our own, its frames read, its outcome found, its end seen to.
//!
//! Guarantees: an exchange ends in one outcome or one error before its deadline; dropped before that, the upstream is told in
//! its era's manner; a frame that is not this exchange's own breaks this exchange and no other (SECURITY EGR-11, REL-5).

mod aside;
mod hints;
mod judged;
mod lost;

use std::{future::pending, mem, sync::Arc};

use futures_util::{StreamExt, future::BoxFuture, stream};
use http::{HeaderMap, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::{
    CredentialError, Deadline, UpstreamError,
    asking::Offer,
    exchange_span::ExchangeSpan,
    line::Line,
    patience::Patience,
    terms::CallSlot,
    transport::{Answer, Frames, Head, Outbound},
    visits,
};
use crate::{
    call::{
        Call, CallId, Caller, Event, Identity, LogLevel, Outcome, Reply, ReplyStream, Stake, Step,
        Trail,
    },
    catalog::Route,
    json::{Json, Limits, Node},
    jsonrpc::{Frame, Notification, Request, Response, RpcError, encode},
    protocol::{Era, Revision, meta, methods},
};

pub(super) use aside::{Aside, Others, number_of};
pub(super) use judged::{complete, is_of_older_era};
pub(super) use lost::{bare, failure};

/// A request that is under way.
pub(super) struct Exchange {
    line: Arc<Line>,
    number: u64,
    deadline: Instant,
    /// Set while a person is being asked: the deadline is suspended.
    resting: bool,
    /// Whether there is nothing to cancel: the request was not sent yet, or its exchange is over.
    over: bool,
    wants: Wants,
    frames: Option<Frames>,
    /// What is said of it elsewhere than in its answer, where that can be.
    aside: Option<Arc<Aside>>,
    others: Option<Arc<dyn Others>>,
    /// Whether progress was heard: whoever tells of it tells until it has ended.
    progresses: bool,
    permit: Option<CallSlot>,
    watched: Option<Box<ExchangeSpan>>,
    /// What was used up by sending it, and by nothing before.
    staked: Option<Stake>,
}

/// What is wanted of an exchange beside its outcome.
#[derive(Default)]
pub(super) struct Wants {
    /// The call that it is for; `None` for our own requests.
    pub(super) call: Option<CallId>,
    /// For whom it is; `None` for our own requests.
    pub(super) caller: Option<Arc<Caller>>,
    /// Who was proved to want it; `None` for our own requests.
    pub(super) identity: Option<Arc<Identity>>,
    /// Progress events.
    pub(super) progress: bool,
    /// How far those may move the deadline; `None` for not at all.
    pub(super) latest: Option<Instant>,
    /// Log events of this level and above.
    pub(super) log: Option<LogLevel>,
    /// What may be asked of the caller; `None` where the answer must not be a question (PROTOCOL A3).
    pub(super) rounds: Option<Offer>,
    /// Whether a task may come instead of a result: tasks were declared for it.
    pub(super) task: bool,
    /// Whether what comes is the state of a task, which may ask too.
    pub(super) looks: bool,
    /// Whether the server's own requests, and what concerns them, are handed out instead of refused: only a peer that can
    /// put them to the caller wants that.
    pub(super) relays: bool,
    /// Whether what comes may say how long, and by whom, it may be kept.
    pub(super) keeps: bool,
    /// Who of this session is being asked; see [`Outbound::patience`].
    pub(super) patience: Option<Arc<Patience>>,
    /// What is used up once it is sent.
    pub(super) stake: Option<Stake>,
    /// Where it is noted if it is sent once more; nowhere for our own requests.
    pub(super) trail: Trail,
    /// Whether giving up is never told: a handshake must not be cancelled, and a question of a probe need not be.
    pub(super) quiet: bool,
}

/// What sending a request led to.
pub(super) enum Opened {
    /// Its response.
    Ended(Head, Result<Json, RpcError>),
    /// Frames, to be read with [`Exchange::next`].
    Flowing(Head),
    /// An HTTP answer without a frame.
    Status(Head),
}

/// What came on an exchange's stream.
pub(super) enum Happened {
    /// An event that is wanted.
    Event(Event),
    /// A request of the server's own. Only where [`Wants::relays`].
    Asked(Request),
    /// The server no longer wants the answer to a request of its own. Only where [`Wants::relays`].
    Withdrawn(Json),
    /// The response.
    Ended(Result<Json, RpcError>),
}

/// How a request of our own was answered.
pub(super) enum AskOutcome {
    /// With a result.
    Result(Head, Json),
    /// With an error.
    Error(Head, RpcError),
    /// With an HTTP status and no frame.
    Status(Head),
}

impl Exchange {
    /// An exchange that must be over at `deadline`; nothing is sent yet.
    pub(super) fn new(line: &Arc<Line>, deadline: Instant, wants: Wants) -> Self {
        Self {
            line: Arc::clone(line),
            number: line.wire.mint(),
            deadline,
            resting: false,
            over: true,
            wants,
            frames: None,
            aside: None,
            others: None,
            progresses: false,
            permit: None,
            watched: None,
            staked: None,
        }
    }

    /// Observes the exchange (span, metrics), which is for `call` at `revision`, until it is over. Returns the `_meta` members,
    /// such as trace context, to send with it.
    pub(super) fn watch(
        &mut self,
        call: &Call,
        route: &Route,
        revision: Revision,
    ) -> impl Iterator<Item = (&'static str, Json)> + use<'_> {
        let hop = (self.number, !self.line.wire.streamable);
        self.watched = ExchangeSpan::of(call, route, revision, hop);
        self.watched.iter().flat_map(|watched| watched.stamps())
    }

    /// Lets the exchange hold a slot until it is over, and until its cancellation is told.
    pub(super) fn holding(mut self, permit: CallSlot) -> Self {
        self.permit = Some(permit);
        self
    }

    /// As [`Exchange::holding`].
    pub(super) fn hold(&mut self, permit: CallSlot) {
        self.permit = Some(permit);
    }

    /// Lets it hear what is said of it elsewhere than in its answer.
    pub(super) fn hearing(mut self, aside: Arc<Aside>) -> Self {
        self.aside = Some(aside);
        self
    }

    /// Whose answers may have something of others in them: these hear of it.
    pub(super) fn among(&mut self, others: Arc<dyn Others>) {
        self.others = Some(others);
    }

    /// The request's id and progress token.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Gives the slot back to whoever wants to try again.
    pub(super) const fn release(&mut self) -> Option<CallSlot> {
        self.permit.take()
    }

    /// Sends the request. `headers` go beside the line's own.
    ///
    /// # Errors
    /// What the transport fails with; [`UpstreamError::Timeout`], [`UpstreamError::Auth`], [`UpstreamError::Protocol`].
    pub(super) async fn send(
        &mut self,
        method: &str,
        params: &Json,
        headers: HeaderMap,
        limits: Limits,
    ) -> Result<Opened, UpstreamError> {
        let out = self.outbound(method, params, headers, limits);
        self.over = false;
        let sending = self.line.send(out, self.wants.identity.as_ref());
        let Ok(answer) = timeout_at(self.deadline, sending).await else {
            // The upstream may be at work on it, and is told when this is dropped.
            let late = UpstreamError::Timeout(Deadline::Call);
            self.failed(&late);
            return Err(late);
        };
        self.opened(answer)
    }

    /// Sends the request, whose first frame may be long in coming while other things are heard of it: the caller keeps the
    /// deadline, and gives what comes of it to [`Exchange::opened`].
    pub(super) fn sending(
        &mut self,
        method: &str,
        params: &Json,
        headers: HeaderMap,
        limits: Limits,
    ) -> BoxFuture<'static, Result<Answer, UpstreamError>> {
        let out = self.outbound(method, params, headers, limits);
        self.over = false;
        let (line, identity) = (Arc::clone(&self.line), self.wants.identity.clone());
        Box::pin(async move { line.send(out, identity.as_ref()).await })
    }

    /// What came of sending it; `None` where something is said of it before, elsewhere than in its answer.
    ///
    /// # Errors
    /// As [`Exchange::send`].
    pub(super) async fn answered_first(
        &mut self,
        sending: &mut BoxFuture<'static, Result<Answer, UpstreamError>>,
    ) -> Result<Option<Opened>, UpstreamError> {
        let said = async {
            match &self.aside {
                Some(aside) => aside.came().await,
                None => pending().await,
            }
        };
        let first = async {
            tokio::select! {
                biased;
                () = said => None,
                answer = sending => Some(answer),
            }
        };
        match timeout_at(self.deadline, first).await {
            Ok(None) => Ok(None),
            Ok(Some(answer)) => self.opened(answer).map(Some),
            Err(_elapsed) => {
                let late = UpstreamError::Timeout(Deadline::Call);
                self.failed(&late);
                Err(late)
            }
        }
    }

    /// What is said of it elsewhere, before its answer begins. Dropping the future loses nothing, where requests are handed out.
    pub(super) async fn said_aside(&mut self) -> Happened {
        loop {
            let said = match &self.aside {
                Some(aside) => aside.next().await,
                None => pending().await,
            };
            match said {
                Frame::Request(request) if self.wants.relays => return Happened::Asked(request),
                Frame::Request(request) => self.line.answer(&request).await,
                Frame::Notification(notification) => {
                    if let Some(happened) = self.noted(notification) {
                        return happened;
                    }
                }
                Frame::Response(_) => self.line.terms.drop_frame(),
            }
        }
    }

    fn outbound(
        &mut self,
        method: &str,
        params: &Json,
        mut headers: HeaderMap,
        limits: Limits,
    ) -> Outbound {
        if let Some(watched) = &self.watched
            && self.line.wire.streamable
        {
            watched.stamp(&mut headers);
        }
        self.staked = self.wants.stake.take().filter(Stake::mark_used);
        let id = Line::id(self.number);
        let trail = mem::take(&mut self.wants.trail);
        self.note(&trail);
        Outbound {
            frame: encode::request(&id, method, params),
            id: Some(id),
            headers,
            limits,
            patience: self.wants.patience.take(),
            payer: self.wants.identity.as_ref().and_then(|it| it.payer()),
            listens: false,
            resumes: self.line.era == Era::Legacy,
            credential: None,
            trail,
        }
    }

    /// What sending the request led to.
    ///
    /// # Errors
    /// As [`Exchange::send`].
    pub(super) fn opened(
        &mut self,
        answer: Result<Answer, UpstreamError>,
    ) -> Result<Opened, UpstreamError> {
        let opened = self.read(answer);
        match &opened {
            Ok(Opened::Status(head)) => self.failed(&bare(head)),
            Ok(Opened::Ended(..) | Opened::Flowing(_)) => {}
            Err(error) => self.failed(error),
        }
        opened
    }

    fn read(&mut self, answer: Result<Answer, UpstreamError>) -> Result<Opened, UpstreamError> {
        if let (Err(error), Some(stake)) = (&answer, self.staked.take())
            && never_sent(error)
        {
            stake.release();
        }
        // What never began to be answered needs no cancelling.
        match answer.inspect_err(|_| self.over = true)? {
            Answer::Stream(head, frames) => {
                self.frames = Some(frames);
                Ok(Opened::Flowing(head))
            }
            Answer::One(head, Frame::Response(response)) => {
                let body = self.take(response)?;
                Ok(Opened::Ended(head, body))
            }
            Answer::One(_, Frame::Request(_) | Frame::Notification(_)) => {
                Err(UpstreamError::Protocol(
                    "answered a request with a frame that is no response".into(),
                ))
            }
            Answer::Status(head) => {
                self.over = true;
                Ok(Opened::Status(head))
            }
            Answer::Accepted(head) => {
                self.over = true;
                Err(UpstreamError::Protocol(format!(
                    "answered a request with HTTP {} and nothing else",
                    head.status.as_u16()
                )))
            }
        }
    }

    /// The response's body, if it is ours. An error may come without an id when ours could not be read (PROTOCOL B1.9).
    fn take(&mut self, response: Response) -> Result<Result<Json, RpcError>, UpstreamError> {
        let ours = match &response.id {
            Some(id) => id.as_minted() == Some(self.number),
            None => response.body.is_err(),
        };
        if ours {
            self.over = true;
            if let Some(watched) = &mut self.watched {
                match &response.body {
                    Ok(result) => watched.answered(result),
                    Err(error) => watched.refused(error.code),
                }
            }
            Ok(response.body)
        } else {
            Err(UpstreamError::Protocol(
                "answered under an id that was not asked".into(),
            ))
        }
    }

    /// Goes on for another call than it was begun for.
    pub(super) fn attach(
        &mut self,
        deadline: Instant,
        call: &Call,
        rounds: Option<Offer>,
        log: Option<LogLevel>,
    ) {
        self.deadline = deadline;
        self.wants.latest = self.line.terms.latest(call);
        self.resting = false;
        self.wants.call = Some(call.id);
        self.wants.caller = Some(Arc::clone(&call.caller));
        self.wants.rounds = rounds;
        self.wants.log = log;
        self.note(&call.trail);
    }

    /// Notes under which id the upstream has it.
    fn note(&self, trail: &Trail) {
        trail.note(|facts| facts.sent = Some(self.number));
    }

    /// Suspends the deadline: a person is being asked.
    pub(super) const fn rest(&mut self) {
        self.resting = true;
    }

    /// Reads no more of its frames.
    pub(super) fn hang_up(&mut self) {
        self.frames = None;
    }

    /// Gives it up: what is left to do is to tell the upstream, where there is anything to tell. Its share of work is held until
    /// that is done, which bounds how many of these there are.
    pub(super) fn giving_up(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let is_over = mem::replace(&mut self.over, true);
        if is_over || self.wants.quiet || !self.line.tells_of_cancelling() {
            return None;
        }
        let (line, number, permit) = (Arc::clone(&self.line), self.number, self.permit.take());
        Some(async move {
            let _permit = permit;
            line.cancel(number).await;
        })
    }

    /// The next event that is wanted, or the end. Dropping the future loses nothing, where requests are handed out.
    ///
    /// # Errors
    /// What the stream fails with; [`UpstreamError::Timeout`], [`UpstreamError::Protocol`].
    pub(super) async fn next(&mut self) -> Result<Happened, UpstreamError> {
        let happened = self.heard().await;
        if let Err(error) = &happened {
            self.failed(error);
        }
        happened
    }

    fn failed(&mut self, error: &UpstreamError) {
        if let Some(watched) = &mut self.watched {
            watched.failed(error.reason());
        }
    }

    async fn heard(&mut self) -> Result<Happened, UpstreamError> {
        loop {
            // Over HTTP the transport counts the bytes, keep-alive comments among them; here only frames are seen, and who says
            // something once need not go on.
            let silence = Instant::now() + self.line.terms.timeouts.silence;
            let (until, what) =
                if self.progresses && silence < self.deadline && !self.line.wire.streamable {
                    (silence, Deadline::Silence)
                } else {
                    (self.deadline, Deadline::Call)
                };
            let Some(frames) = &mut self.frames else {
                return Err(UpstreamError::Protocol("answered without frames".into()));
            };
            let next = next_of(frames, self.aside.as_deref());
            let frame = if self.resting {
                next.await
            } else {
                timeout_at(until, next)
                    .await
                    .map_err(|_| UpstreamError::Timeout(what))?
            };
            match frame {
                // The work may still be going on, however its stream ends: in the older era that is not the work's end.
                None => {
                    return Err(UpstreamError::unreached(
                        "the stream ended before its answer",
                    ));
                }
                Some(Err(error)) => return Err(error),
                Some(Ok(Frame::Response(response))) => {
                    return self.take(response).map(Happened::Ended);
                }
                Some(Ok(Frame::Notification(notification))) => {
                    self.progresses |= &*notification.method == methods::PROGRESS;
                    if let Some(happened) = self.noted(notification) {
                        return Ok(happened);
                    }
                }
                Some(Ok(Frame::Request(request))) => match self.line.era {
                    Era::Legacy if self.wants.relays => return Ok(Happened::Asked(request)),
                    Era::Legacy => self.line.answer(&request).await,
                    Era::Modern => {
                        return Err(UpstreamError::Protocol(
                            "sent a request, which its revision does not have".into(),
                        ));
                    }
                },
            }
        }
    }

    /// What a notification means for the caller; `None` when it is foreign, unknown or unwanted. Of its `_meta` goes on what of
    /// a result's does (PROTOCOL A7).
    pub(super) fn noted(&mut self, notification: Notification) -> Option<Happened> {
        match &*notification.method {
            methods::PROGRESS => {
                if number_of(&notification) != Some(self.number) {
                    // Some servers write what they have to say of a session wherever an answer of it is open.
                    let others = self.others.as_ref();
                    if !others.is_some_and(|others| others.progress(notification)) {
                        self.line.terms.drop_frame();
                    }
                    return None;
                }
                let params = notification.params?;
                if !self.wants.progress {
                    return None;
                }
                self.goes_on();
                Some(Happened::Event(Event::Progress(meta::crossing(&params))))
            }
            methods::MESSAGE => {
                let params = notification.params?;
                let level = params
                    .root()
                    .member("level")
                    .and_then(Node::as_str)
                    .and_then(|level| LogLevel::parse(&level))?;
                (level >= self.wants.log?)
                    .then(|| Happened::Event(Event::Log(level, meta::crossing(&params))))
            }
            methods::CANCELLED if self.wants.relays => {
                let params = notification.params?;
                let id = params.root().member("requestId")?;
                Some(Happened::Withdrawn(params.slice(id)))
            }
            methods::ELICITATION_COMPLETE if self.wants.relays => {
                let caller = self.wants.caller.as_ref()?;
                if caller.revision.era() == Era::Modern {
                    // To its own client this is no more than a reason to look again (PROTOCOL D1). On a pipe it may be about
                    // where somebody else was sent.
                    self.line.hear(&notification);
                    return None;
                }
                let params = meta::crossing(&notification.params?);
                let params = visits::outward(&self.line.terms.id, &params);
                Some(Happened::Event(Event::Elicited(params)))
            }
            _ => {
                match self.line.era {
                    Era::Legacy => self.line.hear(&notification),
                    // Changes are told on listens there, and nowhere else.
                    Era::Modern => self.line.terms.drop_frame(),
                }
                None
            }
        }
    }

    /// The server is at work on it: it has the time of a call from now on, within bounds, and never less than it had.
    fn goes_on(&mut self) {
        if let Some(latest) = self.wants.latest {
            let until = Instant::now() + self.line.terms.timeouts.call;
            self.deadline = self.deadline.max(until.min(latest));
        }
    }

    /// Until when it has to be over, as things are.
    pub(super) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What an error that comes after the first event is to the caller. Nobody above is told the cause.
    pub(super) fn lost(&self, error: &UpstreamError) -> Outcome {
        if let Some(call) = self.wants.call {
            self.line.terms.mishaps.note(call, error);
        }
        Outcome::Lost(failure(&self.line.terms.id, error))
    }

    /// The next step toward the caller.
    async fn step(&mut self) -> Result<Step, UpstreamError> {
        loop {
            match self.next().await? {
                Happened::Event(event) => return Ok(Step::Event(event)),
                Happened::Ended(body) => {
                    return self.judge(StatusCode::OK, body).map(Step::Outcome);
                }
                // Nobody here could put it to the caller.
                Happened::Asked(request) => self.line.answer(&request).await,
                Happened::Withdrawn(_) => {}
            }
        }
    }

    /// The reply made of the frames: at once when the outcome comes first, else a stream that owns this exchange.
    ///
    /// # Errors
    /// Whatever happens before the first event; later failures are the stream's outcome.
    pub(super) async fn into_reply(mut self) -> Result<Reply, UpstreamError> {
        let first = match self.step().await? {
            Step::Outcome(outcome) => return Ok(Reply::Done(outcome)),
            event @ Step::Event(_) => event,
        };
        let rest = stream::unfold(Some(self), |exchange| async move {
            let mut exchange = exchange?;
            match exchange.step().await {
                Ok(event @ Step::Event(_)) => Some((event, Some(exchange))),
                Ok(outcome) => Some((outcome, None)),
                Err(error) => Some((Step::Outcome(exchange.lost(&error)), None)),
            }
        });
        let steps = stream::once(std::future::ready(first)).chain(rest);
        Ok(Reply::Stream(ReplyStream::new(steps.boxed())))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Outside a runtime there is nobody to tell it: the process is ending.
        if tokio::runtime::Handle::try_current().is_ok()
            && let Some(telling) = self.giving_up()
        {
            self.line.terms.tasks.spawn(telling);
        }
    }
}

/// The next frame of an answer, or one that is said aside. Dropping the future loses nothing.
async fn next_of(
    frames: &mut Frames,
    aside: Option<&Aside>,
) -> Option<Result<Frame, UpstreamError>> {
    let Some(aside) = aside else {
        return frames.next().await;
    };
    tokio::select! {
        biased;
        said = aside.next() => Some(Ok(said)),
        next = frames.next() => next,
    }
}

/// Whether a request that failed so never left: then nothing can have come of it.
pub(super) fn never_sent(error: &UpstreamError) -> bool {
    if let UpstreamError::Credential(error) = error {
        // A token that lacks scopes was sent.
        return !matches!(error, CredentialError::Lacks(_));
    }
    // The transport itself may have no room for another.
    matches!(error, UpstreamError::Overloaded | UpstreamError::Engaged) || error.says_unsent()
}

/// A request of our own, and its answer. `headers` go out as they are.
///
/// # Errors
/// As [`Exchange::send`], and what its stream fails with.
pub(super) async fn ask(
    line: &Arc<Line>,
    method: &'static str,
    params: &Json,
    headers: HeaderMap,
    deadline: Instant,
    quiet: bool,
) -> Result<AskOutcome, UpstreamError> {
    let wants = Wants {
        quiet,
        ..Wants::default()
    };
    let mut exchange = Exchange::new(line, deadline, wants);
    exchange.watched = ExchangeSpan::own(&line.terms.id, method);
    let limits = line.terms.peer.json.of_lists();
    let (head, body) = match exchange.send(method, params, headers, limits).await? {
        Opened::Ended(head, body) => (head, body),
        Opened::Status(head) => return Ok(AskOutcome::Status(head)),
        Opened::Flowing(head) => loop {
            // Nothing is relayed for requests of our own.
            if let Happened::Ended(body) = exchange.next().await? {
                break (head, body);
            }
        },
    };
    Ok(match body {
        Ok(result) => AskOutcome::Result(head, result),
        Err(error) => AskOutcome::Error(head, error),
    })
}
