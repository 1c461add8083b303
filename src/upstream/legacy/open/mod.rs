//! A call under way to a server that may ask its caller: read until it ends or asks, and held while it asks (PROTOCOL D2c).
//!
//! Guarantees: the request is sent once, whatever happens afterwards; a question is put only to the caller whose call it came
//! on, and only if it was declared; each answer goes back under the id of its question, and roots also when the call has ended
//! by then; dropped before its end, the server is told. Deliberately absent: where it waits meanwhile.

mod leaving;
mod questions;

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream};
use http::StatusCode;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout_at},
};

use super::{
    attribution::SessionSlot, ear::Hearing, park::ParkedCalls, pool::Slot, session::Session,
    tasks::Unwanted,
};
use crate::{
    call::{Call, Caller, Event, Meanwhile, Op, Outcome, Reply, ReplyStream, Step},
    json::Json,
    jsonrpc::RpcError,
    protocol::Era,
    upstream::{
        Deadline, UpstreamError,
        asking::Offer,
        exchange::{self, Exchange, Happened, Opened},
        transport::{Answer, Owners},
    },
};

use questions::Question;

/// The most events that wait to be told while the caller is asked. Of more, the last progress is told when it has answered.
const ASIDE: usize = 64;

/// How long an outcome waits for the caller's roots, where the server asked for them on the call. Many ask for them once in a
/// session's life, when it begins, and wait for them beside whatever they are called for.
const LINGER: Duration = Duration::from_secs(5);

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
    /// It has ended, and until then its caller may still say what its roots are.
    lingers: Option<Instant>,
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
            lingers: None,
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
                // Progress that is heard aside may have moved it.
                None => timeout_at(self.deadline.max(self.exchange.deadline()), self.hear())
                    .await
                    .map_err(|_| UpstreamError::Timeout(Deadline::Call))??,
            };
            match heard {
                Heard::Happened(Happened::Event(Event::Progress(_))) if !self.progress => {}
                Heard::Happened(Happened::Event(event)) => return Ok(Turn::Event(event)),
                Heard::Happened(Happened::Asked(request)) => self.consider(request).await,
                Heard::Happened(Happened::Withdrawn(id)) => self.withdrawn(&id),
                Heard::Happened(Happened::Ended(body)) => {
                    return self.turned(StatusCode::OK, body);
                }
                Heard::Ended(status, body) => return self.turned(status, body),
            }
        }
    }

    /// What comes next for the caller when the answer has come: that, or to be asked what its session cannot do without.
    fn turned(
        &mut self,
        status: StatusCode,
        body: Result<Json, RpcError>,
    ) -> Result<Turn, UpstreamError> {
        let outcome = self.ended(status, body)?;
        if self.lingers.is_none() {
            return Ok(Turn::Ended(outcome));
        }
        self.over = Some(Ok(outcome));
        self.seat = None;
        Ok(Turn::Asks)
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
        if self.lingers.is_none() {
            self.tell_over();
        }
    }

    /// Tells whoever holds it that its outcome is there.
    fn tell_over(&self) {
        if let Some(meanwhile) = &self.meanwhile {
            meanwhile.send_modify(|meanwhile| meanwhile.over = true);
        }
    }

    /// Until when its outcome waits for the caller's roots, if it does.
    pub(super) const fn lingers(&self) -> Option<Instant> {
        self.lingers
    }

    /// They did not come in time.
    pub(super) fn lingered(&mut self) {
        self.lingers = None;
        self.refuse_questions();
        self.tell_over();
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
        // The roots are the session's more than the call's: a server that is refused them may never ask again. Nobody else is
        // on this session whose they could be taken for.
        if self.session.attribution.is_of_one() && !self.is_outlived() {
            self.refuse_all_but_roots();
        } else {
            self.refuse_questions();
        }
        if let Some(hearing) = self.hearing.take() {
            hearing.leave();
        }
        let judged = self.exchange.judge(status, body);
        if !matches!(judged, Ok(Outcome::Complete(_))) {
            self.refuse_questions();
        }
        let outcome = judged?;
        if let Some(unwanted) = &mut self.unwanted {
            unwanted.heed(&outcome);
        }
        self.lingers = (!self.questions.is_empty()).then(|| Instant::now() + LINGER);
        Ok(outcome)
    }
}
