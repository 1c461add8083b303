//! A call under way to a server that may ask its caller: read until it ends or asks, and held while it asks (PROTOCOL D2c).
//!
//! Guarantees: the request is sent once, whatever happens afterwards; a question is put only to the caller whose call it came
//! on, and only if it was declared; each answer goes back under the id of its question; dropped before its end, the server is
//! told. Deliberately absent: where it waits meanwhile.

use std::{sync::Arc, time::Duration};

use futures_util::{
    StreamExt,
    future::{BoxFuture, join_all},
    stream,
};
use http::StatusCode;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout_at},
};

use super::{
    attribution::SessionSlot,
    ear::Hearing,
    park::{self, ParkedCalls},
    pool::Slot,
    session::Session,
    tasks::Unwanted,
};
use crate::{
    call::{
        Call, Caller, Event, InputRequired, Meanwhile, Op, Outcome, Reply, ReplyStream, State, Step,
    },
    json::{Edits, Fate, Json, Node},
    jsonrpc::{Request, RequestId, RpcError},
    metrics::{Bound, reached},
    protocol::{Era, codes, meta, methods},
    resume::Asked,
    upstream::{
        Deadline, UpstreamError,
        asking::{self, Offer},
        exchange::{self, Exchange, Happened, Opened},
        terms::CallSlot,
        transport::Answer,
        visits,
    },
};

/// How long further questions are waited for after the first, to ask them together.
const BATCH: Duration = Duration::from_millis(5);
/// The most events that wait to be told while the caller is asked. Of more, the last progress is told when it has answered.
const ASIDE: usize = 64;

/// A call under way.
pub(super) struct OpenCall {
    /// Set while the first frame is still to come, and something may be said of it elsewhere before.
    sending: Option<BoxFuture<'static, Result<Answer, UpstreamError>>>,
    exchange: Exchange,
    seat: Option<SessionSlot>,
    /// Its place among those that may be meant on its session's own stream, until it is answered.
    hearing: Option<Hearing>,
    session: Arc<Session>,
    slot: Arc<Slot>,
    parked_calls: Arc<ParkedCalls>,
    op: Op,
    caller: Arc<Caller>,
    /// Cancels the task whose result it is to bring, should it not come to an end.
    unwanted: Option<Unwanted>,
    offer: Offer,
    deadline: Instant,
    progress: bool,
    /// What was not told, because nobody could be told: progress while the caller was asked.
    missed: Option<Event>,
    /// What the server wants to know, in the order it asked.
    questions: Vec<Question>,
    /// How many it has asked.
    asked: u32,
    /// When the caller is to be asked.
    ask_at: Option<Instant>,
    /// How it ended, while nobody was there to be told.
    over: Option<Result<Outcome, UpstreamError>>,
    /// Who is told of that, and of what it takes back, while its caller is asked.
    meanwhile: Option<watch::Sender<Meanwhile>>,
    /// Who is told of its events meanwhile, where the caller's own request is still open.
    aside: Option<mpsc::Sender<Event>>,
}

/// What an open call is begun with.
pub(super) struct Beginning {
    /// Not sent yet, or sent and answered with a stream.
    pub(super) exchange: Exchange,
    pub(super) seat: Option<SessionSlot>,
    pub(super) hearing: Option<Hearing>,
    pub(super) session: Arc<Session>,
    pub(super) slot: Arc<Slot>,
    pub(super) parked_calls: Arc<ParkedCalls>,
    pub(super) deadline: Instant,
    /// What its caller wants; the request may be about something that led to.
    pub(super) op: Op,
    pub(super) unwanted: Option<Unwanted>,
}

/// A request of the server's that is open.
struct Question {
    /// What the caller knows it by.
    key: String,
    id: RequestId,
    /// `{method, params}` as the caller gets it.
    request: Json,
    elicits: bool,
    /// Whether the caller was asked it.
    put: bool,
}

/// What is heard of a call.
pub(super) enum Heard {
    Happened(Happened),
    /// The response, and the HTTP status it came with.
    Ended(StatusCode, Result<Json, RpcError>),
}

/// What comes next for the caller.
enum Turn {
    Event(Event),
    Ended(Outcome),
    Asks,
}

impl OpenCall {
    /// A call whose request is sent already, if its exchange says so.
    pub(super) fn new(call: &Call, begun: Beginning) -> Box<Self> {
        Box::new(Self {
            sending: None,
            offer: begun.session.line.offer,
            exchange: begun.exchange,
            seat: begun.seat,
            hearing: begun.hearing,
            session: begun.session,
            slot: begun.slot,
            parked_calls: begun.parked_calls,
            op: begun.op,
            unwanted: begun.unwanted,
            caller: Arc::clone(&call.caller),
            deadline: begun.deadline,
            progress: call.wants_progress,
            missed: None,
            questions: Vec::new(),
            asked: 0,
            ask_at: None,
            over: None,
            meanwhile: None,
            aside: None,
        })
    }

    /// Begins to send its request, and listens to the rest of its session at the same time.
    pub(super) fn send(&mut self, method: &str, params: &Json) {
        let headers = self.session.line.headers.clone();
        let limits = self.session.line.terms.peer.json;
        self.sending = Some(self.exchange.sending(method, params, headers, limits));
    }

    /// Its request is being sent already.
    pub(super) fn sending(&mut self, sending: BoxFuture<'static, Result<Answer, UpstreamError>>) {
        self.sending = Some(sending);
    }

    /// The session it is on.
    pub(super) const fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Who is asked, and about what.
    pub(super) const fn about(&self) -> (&Arc<Caller>, &Op) {
        (&self.caller, &self.op)
    }

    /// Tells of what becomes of it, and of its events to who can be told, from now on until somebody goes on with it.
    pub(super) fn meanwhile(&mut self) -> (watch::Receiver<Meanwhile>, mpsc::Receiver<Event>) {
        let (meanwhile, told) = watch::channel(Meanwhile::default());
        self.meanwhile = Some(meanwhile);
        let (aside, events) = mpsc::channel(ASIDE);
        // Who is asked by a result has no request open that an event could belong to (PROTOCOL D2c).
        self.aside = (self.caller.revision.era() == Era::Legacy).then_some(aside);
        (told, events)
    }

    /// Where it waits while its caller is asked.
    pub(super) const fn parked_calls(&self) -> &Arc<ParkedCalls> {
        &self.parked_calls
    }

    /// The slot of its session.
    pub(super) const fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Goes on for `call`, which brings answers: they go to the server under the ids of its questions, and what was not
    /// answered will be asked again. `permit` is the call's share of work at once.
    ///
    /// # Errors
    /// What sending an answer failed with; the call is then given up.
    pub(super) async fn resume(
        mut self: Box<Self>,
        call: &Call,
        deadline: Instant,
        permit: CallSlot,
    ) -> Result<Reply, UpstreamError> {
        let caller = &call.caller;
        self.meanwhile = None;
        self.aside = None;
        self.caller = Arc::clone(caller);
        let offer = Offer::to(&self.session.line.terms, call);
        self.offer = self.session.line.offer.and(offer);
        self.deadline = deadline;
        self.progress = call.wants_progress;
        let heard = self.session.line.wire.streamable || self.seat.is_some();
        let log = caller.log_level.filter(|_| heard);
        self.exchange.attach(deadline, call, Some(self.offer), log);
        self.exchange.hold(permit);
        if let Some(level) = log
            && self.over.is_none()
        {
            self.session.heed(level).await;
        }
        let resume = call.resume.as_ref();
        let responses = resume.and_then(|resume| resume.responses.as_ref());
        let refused = |key: &str| {
            let mut refused = resume.into_iter().flat_map(|resume| &resume.refused);
            refused
                .find(|(asked, _)| asked == key)
                .map(|(_, error)| Err(error.clone()))
        };
        let mut answers = Vec::new();
        self.questions.retain(|question| {
            let answer = responses.and_then(|responses| {
                let answer = responses.root().member(&question.key)?;
                Some(responses.slice(answer))
            });
            match answer.map(body_of).or_else(|| refused(&question.key)) {
                Some(body) => {
                    answers.push((question.id.clone(), body));
                    false
                }
                None => true,
            }
        });
        // Whoever goes on may be able to less than who was asked: what is not for them would be in the way of what comes
        // next. About a task somebody may ask later who is able to more.
        let (offer, is_outlived) = (self.offer, self.is_outlived());
        self.questions.retain(|question| {
            if is_outlived {
                return true;
            }
            let asks = question.request.root();
            let method = asks.member("method").and_then(Node::as_str);
            let allowed = offer.allows(&method.unwrap_or_default(), asks.member("params"));
            if let Err(why) = &allowed {
                let refusal = RpcError::new(why.code(), why.to_string());
                answers.push((question.id.clone(), Err(refusal)));
            }
            allowed.is_ok()
        });
        if self.over.is_none() {
            let line = &self.session.line;
            let sent = answers
                .iter()
                .map(|(id, body)| line.reply_before(id, body, deadline));
            for answer in join_all(sent).await {
                // Whether or not a message says why, it has not taken the answer.
                let (Answer::Status(head)
                | Answer::Accepted(head)
                | Answer::One(head, _)
                | Answer::Stream(head, _)) = answer.map_err(UpstreamError::of_a_call_under_way)?;
                if !head.status.is_success() {
                    // The call went with its session (PROTOCOL D7).
                    if head.status == StatusCode::NOT_FOUND {
                        self.slot.forget(&self.session);
                        return Err(UpstreamError::OutcomeUnknown);
                    }
                    return Err(exchange::bare(&head).of_a_call_under_way());
                }
            }
        }
        self.ask_at = (!self.questions.is_empty()).then(|| Instant::now() + BATCH);
        self.into_reply().await
    }

    /// The reply: at once when the outcome, or the need to ask, comes first, else a stream that owns this call.
    ///
    /// # Errors
    /// Whatever happens before the first event; later failures are the stream's outcome.
    pub(super) async fn into_reply(mut self: Box<Self>) -> Result<Reply, UpstreamError> {
        let first = match self.step().await? {
            Turn::Ended(outcome) => return Ok(Reply::Done(outcome)),
            Turn::Asks => return self.ask().await.map(Reply::Done),
            Turn::Event(event) => event,
        };
        let rest = stream::unfold(Some(self), |call| async move {
            let mut call = call?;
            let line = Arc::clone(&call.session.line);
            let outcome = match call.step().await {
                Ok(Turn::Event(event)) => return Some((Step::Event(event), Some(call))),
                Ok(Turn::Ended(outcome)) => outcome,
                // What is in the way here is ours.
                Ok(Turn::Asks) => (call.ask().await).unwrap_or_else(|error| {
                    Outcome::Lost(exchange::failure(&line.terms.id, &error))
                }),
                Err(error) => call.exchange.lost(&error),
            };
            Some((Step::Outcome(outcome), None))
        });
        let steps = stream::once(std::future::ready(Step::Event(first))).chain(rest);
        Ok(Reply::Stream(ReplyStream::new(steps.boxed())))
    }

    async fn step(&mut self) -> Result<Turn, UpstreamError> {
        loop {
            if let Some(event) = self.missed.take()
                && self.progress
            {
                return Ok(Turn::Event(event));
            }
            if let Some(over) = self.over.take() {
                return over.map(Turn::Ended);
            }
            let heard = match self.ask_at {
                Some(at) => match timeout_at(at, self.hear()).await {
                    Ok(heard) => heard?,
                    Err(_elapsed) => return Ok(Turn::Asks),
                },
                // What has begun to flow keeps its deadline itself.
                None if self.sending.is_none() => self.hear().await?,
                None => timeout_at(self.deadline, self.hear())
                    .await
                    .map_err(|_| UpstreamError::Timeout(Deadline::Call))??,
            };
            match heard {
                Heard::Happened(Happened::Event(Event::Progress(_))) if !self.progress => {}
                Heard::Happened(Happened::Event(event)) => return Ok(Turn::Event(event)),
                Heard::Happened(Happened::Asked(request)) => self.consider(request).await,
                Heard::Happened(Happened::Withdrawn(id)) => self.withdrawn(&id),
                Heard::Happened(Happened::Ended(body)) => {
                    return self.ended(StatusCode::OK, body).map(Turn::Ended);
                }
                Heard::Ended(status, body) => return self.ended(status, body).map(Turn::Ended),
            }
        }
    }

    /// The next thing that is heard of the call. Dropping the future loses nothing.
    ///
    /// # Errors
    /// What the call fails with.
    pub(super) async fn hear(&mut self) -> Result<Heard, UpstreamError> {
        loop {
            let Some(sending) = &mut self.sending else {
                return self.exchange.next().await.map(Heard::Happened);
            };
            let answer = tokio::select! {
                biased;
                happened = self.exchange.said_aside() => return Ok(Heard::Happened(happened)),
                answer = sending => answer,
            };
            self.sending = None;
            match self.exchange.opened(answer)? {
                Opened::Ended(head, body) => {
                    let error = body.as_ref().err();
                    if error.is_some() && self.session.is_forgotten(&head, error) {
                        return Err(self.forgotten());
                    }
                    return Ok(Heard::Ended(head.status, body));
                }
                Opened::Flowing(_) => {}
                Opened::Status(head) if self.session.is_forgotten(&head, None) => {
                    return Err(self.forgotten());
                }
                Opened::Status(head) => {
                    self.session.suspect(&head);
                    return Err(exchange::bare(&head));
                }
            }
        }
    }

    /// Its session went before it: calls have another from here on.
    fn forgotten(&self) -> UpstreamError {
        self.slot.forget(&self.session);
        UpstreamError::forgotten("its session had ended")
    }

    /// Takes what is heard while the caller is asked. Whose request is still open is told; else nobody can be, and the last
    /// progress is kept (PROTOCOL D1, D2c).
    pub(super) async fn take_in(&mut self, heard: Result<Heard, UpstreamError>) {
        let over = match heard {
            Ok(Heard::Happened(Happened::Event(event))) => return self.aside(event),
            Ok(Heard::Happened(Happened::Asked(request))) => return self.consider(request).await,
            Ok(Heard::Happened(Happened::Withdrawn(id))) => return self.withdrawn(&id),
            Ok(Heard::Happened(Happened::Ended(body))) => self.ended(StatusCode::OK, body),
            Ok(Heard::Ended(status, body)) => self.ended(status, body),
            Err(error) => {
                if self.is_outlived() {
                    self.questions.clear();
                }
                self.refuse_questions();
                self.give_up().await;
                Err(error)
            }
        };
        if over.is_err() {
            // Nobody can say any more what comes of it.
            self.unwanted = None;
        }
        // It waits for its caller alone: others of its session may be asked from here on.
        self.over = Some(over);
        self.seat = None;
        self.hearing = None;
        if let Some(meanwhile) = &self.meanwhile {
            meanwhile.send_modify(|meanwhile| meanwhile.over = true);
        }
    }

    /// An event while the caller is asked.
    fn aside(&mut self, event: Event) {
        let untold = match &self.aside {
            Some(aside) => match aside.try_send(event) {
                Ok(()) => return,
                Err(full_or_gone) => full_or_gone.into_inner(),
            },
            None => event,
        };
        if let Event::Progress(_) = untold {
            self.missed = Some(untold);
        } else {
            self.session.line.terms.drop_frame();
        }
    }

    /// Whether it has ended while nobody was there.
    pub(super) const fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether there is an outcome to come for: its session is not needed for that.
    pub(super) const fn has_outcome(&self) -> bool {
        matches!(self.over, Some(Ok(_)))
    }

    fn ended(
        &mut self,
        status: StatusCode,
        body: Result<Json, RpcError>,
    ) -> Result<Outcome, UpstreamError> {
        self.refuse_questions();
        if let Some(hearing) = self.hearing.take() {
            hearing.leave();
        }
        let outcome = self.exchange.judge(status, body)?;
        if let Some(unwanted) = &mut self.unwanted {
            unwanted.heed(&outcome);
        }
        Ok(outcome)
    }

    /// Takes a request of the server's: kept, to be put to the caller, or refused.
    async fn consider(&mut self, request: Request) {
        let line = &self.session.line;
        if &*request.method == methods::PING {
            return line.answer(&request).await;
        }
        match self.question(&request) {
            Ok(question) => {
                self.asked += 1;
                self.questions.push(question);
                self.ask_at.get_or_insert_with(|| Instant::now() + BATCH);
            }
            Err(refusal) => {
                line.terms.drop_frame();
                if let Err(error) = line.reply(&request.id, &Err(refusal)).await {
                    tracing::debug!(%error, "a server's request could not be refused");
                }
            }
        }
    }

    /// What the caller is asked by a request of the server's.
    ///
    /// # Errors
    /// What the server is told, where it may not be put to them.
    fn question(&self, request: &Request) -> Result<Question, RpcError> {
        let bounds = &self.session.line.terms.peer.asking;
        let params = request.params.as_ref().map(Json::root);
        self.offer
            .allows(&request.method, params)
            .map_err(|why| RpcError::new(why.code(), why.to_string()))?;
        if self.questions.len() >= bounds.inputs {
            reached(Bound::Inputs);
            let full = "too many requests of this call are open";
            return Err(RpcError::new(codes::INVALID_PARAMS, full));
        }
        // A task may be asked about again, on another call: its keys are unique for its life (PROTOCOL D3).
        let key = if matches!(self.op, Op::Task(..)) {
            format!("ask-{:016x}", park::random())
        } else {
            format!("ask-{}", self.asked + 1)
        };
        let question = Question {
            key,
            request: self.outward(request),
            elicits: &*request.method == methods::ELICITATION_CREATE,
            id: request.id.clone(),
            put: false,
        };
        // Those that are open go to the caller together. Whatever does not fit there ends the call, and here only itself
        // (SECURITY STATE-3).
        let together: Vec<_> = self
            .questions
            .iter()
            .chain([&question])
            .map(|question| (question.key.as_str(), question.request.clone()))
            .collect();
        let together = meta::object_of(&together);
        match Asked::of(&together, &self.caller.capabilities, bounds) {
            Ok(_fits) => Ok(question),
            Err(fault) => Err(RpcError::new(codes::INVALID_PARAMS, fault.to_string())),
        }
    }

    /// A request as the caller gets it: nothing of this hop in it, and no context of other servers asked for.
    fn outward(&self, request: &Request) -> Json {
        let method = ("method", Json::string(&request.method));
        let Some(params) = &request.params else {
            return meta::object_of(&[method]);
        };
        let mut edits = Edits::new();
        meta::rewrite(&mut edits, params.root(), &[]);
        let mut params = params.splice(&edits);
        if self.caller.revision.era() == Era::Legacy {
            params = visits::outward(&self.session.line.terms.id, &params);
        }
        let mut edits = Edits::new();
        let modern = self.caller.revision.era() == Era::Modern;
        edits.members(
            params.root(),
            |key, _| match key {
                // Nobody could follow the task up: none was offered.
                "task" => Fate::Remove,
                "elicitationId" if modern => Fate::Remove,
                _ => Fate::Keep,
            },
            &[],
        );
        if &*request.method == methods::SAMPLING_CREATE {
            asking::without_context(&mut edits, params.root());
        }
        meta::object_of(&[method, ("params", params.splice(&edits))])
    }

    fn withdrawn(&mut self, id: &Json) {
        let same = |question: &Question| {
            question.id.json() == id
                || id.root().as_str().is_some()
                    && question.id.json().root().as_str() == id.root().as_str()
        };
        let withdrawn = self.questions.extract_if(.., |question| same(question));
        // Who was not asked it yet need not hear of it.
        let withdrawn = withdrawn.filter(|question| question.put);
        let withdrawn: Vec<_> = withdrawn.map(|question| question.key).collect();
        if let Some(meanwhile) = &self.meanwhile {
            meanwhile.send_modify(|meanwhile| meanwhile.withdrawn.extend(withdrawn));
        }
        if self.questions.is_empty() {
            self.ask_at = None;
        }
    }

    /// Asks the caller: the call is parked, and the outcome says under which number. Its share of work at once is free again,
    /// or a few slow people would keep everybody else out.
    ///
    /// # Errors
    /// Where there is no room to wait: [`UpstreamError::OutcomeUnknown`] for a tool, and [`UpstreamError::Overloaded`] for what
    /// only reads.
    async fn ask(mut self: Box<Self>) -> Result<Outcome, UpstreamError> {
        let questions: Vec<_> = self
            .questions
            .iter_mut()
            .map(|question| {
                question.put = true;
                let question: &Question = question;
                (question.key.as_str(), question.request.clone())
            })
            .collect();
        let requests = meta::object_of(&questions);
        drop(self.exchange.release());
        self.exchange.rest();
        self.ask_at = None;
        match ParkedCalls::park(self) {
            Ok((number, hold)) => Ok(Outcome::InputRequired(InputRequired {
                requests,
                state: State::Parked(number),
                hold: Some(hold),
            })),
            Err(call) => {
                // The server has been at work on it: what a tool may have done must not be done again for want of room.
                let full = if matches!(call.op, Op::CallTool(_)) {
                    UpstreamError::OutcomeUnknown
                } else {
                    UpstreamError::Overloaded
                };
                call.expire().await;
                Err(full)
            }
        }
    }

    /// Ends a call whose caller does not answer: its questions are answered as a person who walked away would, unless they can
    /// be asked again, and it is cancelled. Returns when the server has been told, or cannot be.
    pub(super) async fn expire(mut self: Box<Self>) {
        // Nobody goes on with it, from here on and not only when the server has been told.
        self.meanwhile = None;
        self.aside = None;
        self.hang_up();
        let line = Arc::clone(&self.session.line);
        let cancel = Ok(meta::object_of(&[("action", Json::string("cancel"))]));
        let error = Err(RpcError::new(codes::INTERNAL_ERROR, "nobody answered"));
        let mut questions = std::mem::take(&mut self.questions);
        if self.is_outlived() {
            questions.clear();
        }
        let told = questions.into_iter().map(|question| {
            let body = if question.elicits { &cancel } else { &error };
            let line = &line;
            async move { line.reply(&question.id, body).await }
        });
        for told in join_all(told).await {
            if let Err(error) = told {
                tracing::debug!(%error, "a server could not be told that nobody answers");
            }
        }
        // Its seat, if it has one, is given up last: until then no other call of the session may be asked.
        self.give_up().await;
    }

    /// Reads no more of what comes on a pipe: what its server still asks there is refused at once, and its answer, which may come
    /// before it is told of the end, is known to be nobody's and lets others be asked.
    fn hang_up(&mut self) {
        if self.seat.is_some() {
            self.sending = None;
            self.exchange.hang_up();
        }
    }

    /// Gives it up, and returns when the server has been told. Its seat is left when the server has had time to heed that.
    async fn give_up(&mut self) {
        self.hang_up();
        let Some(telling) = self.exchange.giving_up() else {
            return;
        };
        let seat = self.seat.take();
        let (told, hears) = oneshot::channel::<()>();
        // Whoever waits for that may go at any time, and the server is told all the same.
        self.session.line.terms.tasks.spawn(async move {
            telling.await;
            drop(told);
            if let Some(seat) = seat {
                seat.leave_in_time().await;
            }
        });
        drop(hears.await);
    }

    /// Whether it only reads what a task of its caller's comes to. The task goes on without it, and asks whoever reads next:
    /// nothing is answered in the name of a person who may still come (PROTOCOL D3).
    const fn is_outlived(&self) -> bool {
        matches!(self.op, Op::Task(..))
    }

    /// Answers what is open with errors: the call it belonged to is over.
    fn refuse_questions(&mut self) {
        let questions = std::mem::take(&mut self.questions);
        self.ask_at = None;
        if questions.is_empty() {
            return;
        }
        let line = Arc::clone(&self.session.line);
        self.session.line.terms.tasks.spawn(async move {
            let error = RpcError::new(codes::INVALID_PARAMS, "the call it belonged to is over");
            let body = Err(error);
            join_all(
                questions
                    .iter()
                    .map(|question| line.reply(&question.id, &body)),
            )
            .await;
        });
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        // However long it took: its session was in use until now.
        self.slot.touch();
        // Outside a runtime there is nobody to tell it: the process is ending.
        if let Some(seat) = self.seat.take()
            && tokio::runtime::Handle::try_current().is_ok()
            && let Some(telling) = self.exchange.giving_up()
        {
            self.session.line.terms.tasks.spawn(async move {
                telling.await;
                seat.leave_in_time().await;
            });
        }
    }
}

/// The body that answers a question. Results go as they are; an object that holds nothing but an error is one: that is how a
/// dialect says that its client refused.
fn body_of(answer: Json) -> Result<Json, RpcError> {
    let mut members = answer.root().members();
    if let (Some(only), None) = (members.next(), members.next())
        && only.key == "error"
        && let Some(code) = only.value.member("code").and_then(Node::as_i64)
    {
        let message = only.value.member("message").and_then(Node::as_str);
        return Err(RpcError::new(code, message.unwrap_or_default()));
    }
    Ok(answer)
}
