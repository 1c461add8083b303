//! One call on its way: on whose session it is carried, what is said twice, how it goes on when its caller was asked.

use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::{
    Legacy,
    attribution::SessionSlot,
    ear::Hearing,
    open::{Beginning, OpenCall},
    pool::{SessionKey, Slot},
    session::Session,
    tasks::{Plan, Unwanted},
};
use crate::{
    call::{Call, LogLevel, Op, Reply, ReplyStream, Resume, State, TaskOp, Trail},
    catalog::Route,
    json::{Json, Node},
    protocol::{meta, methods},
    tasks::clock,
    upstream::{
        Deadline, Peer, UpstreamError,
        asking::Offer,
        exchange::{self, Exchange, Opened, Wants},
        params::{self, Wish},
        spec::Isolation,
        terms::CallSlot,
    },
};

/// How one attempt at a call went.
enum Attempt {
    Replied(Reply),
    /// The session was gone before the request was looked at.
    Gone,
}

/// A call on its way, and what it takes along.
struct Going<'a> {
    call: &'a Call,
    route: &'a Route,
    /// What it means for tasks.
    plan: Plan,
    /// What its caller comes back with, should it be asked.
    known_as: &'a Op,
    /// What may be asked of its caller.
    offer: Offer,
    deadline: Instant,
    slot: &'a Arc<Slot>,
    /// Its share of work at once, while no exchange holds it.
    permit: Option<CallSlot>,
    /// Cancels the task whose result it is to bring, should it not come to an end.
    unwanted: Option<Unwanted>,
}

impl Going<'_> {
    /// What is wanted of an exchange on `session`: where something was declared, and the method may be asked about, the
    /// server's questions too.
    fn wants(&self, session: &Session, log: Option<LogLevel>) -> Wants {
        let rounds = methods::may_ask_back(self.call.op.method());
        let asks = rounds && !session.line.offer.is_none();
        Wants {
            call: Some(self.call.id),
            caller: Some(Arc::clone(&self.call.caller)),
            identity: Some(Arc::clone(&self.call.identity)),
            progress: self.call.wants_progress,
            latest: session.line.terms.latest(self.call),
            log,
            rounds: rounds.then_some(self.offer),
            relays: asks,
            patience: asks.then(|| Arc::clone(&session.asking)),
            task: false,
            looks: false,
            keeps: self.call.op.may_be_kept(),
            stake: self.call.stake.clone(),
            trail: self.trail(),
            quiet: false,
        }
    }

    /// Where it is noted that it is sent once more: a look of our own at a task is no sending of the call that it is for.
    fn trail(&self) -> Trail {
        if self.plan == Plan::None && matches!(self.call.op, Op::Task(..)) {
            Trail::NONE
        } else {
            self.call.trail.clone()
        }
    }

    fn params(&self, session: &Session, exchange: &mut Exchange) -> Json {
        let number = exchange.number();
        let token = (meta::PROGRESS_TOKEN, Json::of(&number));
        let token = self.call.wants_progress.then_some(token);
        let revision = session.card.revision;
        let trace = exchange.watch(self.call, self.route, revision);
        let own: Vec<_> = token.into_iter().chain(trace).collect();
        params::outbound(
            self.call,
            &self.route.local,
            &own,
            revision.features(),
            self.plan.wish(),
        )
    }
}

impl Legacy {
    /// The slot that a call belongs to; `offer` is what may be asked of its caller.
    pub(super) fn slot(&self, call: &Call, offer: Offer) -> Result<Arc<Slot>, UpstreamError> {
        let caller = &call.caller;
        let (owner, whose, ended) = match self.isolation {
            // Where all share a pipe, nobody could say whom a question is for.
            Isolation::Shared if offer.is_none() || !self.wire.streamable => {
                return Ok(Arc::clone(&self.service));
            }
            Isolation::Shared => (Arc::clone(&self.everybody), None, None),
            Isolation::Principal => (caller.principal.shared(), Some(&caller.principal), None),
            Isolation::Session => (
                Arc::clone(&caller.affinity.key),
                Some(&caller.principal),
                caller.affinity.ended.as_ref(),
            ),
        };
        self.keyed.slot(&SessionKey { owner, offer }, whose, ended)
    }

    /// Carries one request; only what is idempotent twice.
    pub(super) async fn once(
        &self,
        call: &Call,
        route: &Route,
        plan: Plan,
    ) -> Result<Reply, UpstreamError> {
        self.once_as(call, route, plan, &call.op, None).await
    }

    /// The same for a caller who will come back, should it be asked, with what it came with; about a task that is `unwanted`
    /// otherwise.
    pub(super) async fn once_as(
        &self,
        call: &Call,
        route: &Route,
        plan: Plan,
        known_as: &Op,
        unwanted: Option<Unwanted>,
    ) -> Result<Reply, UpstreamError> {
        let deadline = self.terms.deadline(call);
        match call
            .resume
            .as_ref()
            .and_then(|resume| resume.state.as_ref())
        {
            Some(State::Parked(number)) => {
                return Box::pin(self.go_on(*number, call, deadline)).await;
            }
            // Opened above, or nowhere.
            Some(State::Sealed(_) | State::Own(_)) => return Err(UpstreamError::OutcomeUnknown),
            // Nothing is held open: the request is sent again, as this era says (PROTOCOL D2d), unless it would only be
            // answered with the same question.
            Some(State::Upstream(_)) if call.resume.as_ref().is_some_and(is_declined) => {
                return Err(UpstreamError::Declined);
            }
            Some(State::Upstream(_)) | None => {}
        }
        let offer = Offer::of_session(&self.terms, call);
        if !self.carries_all() {
            let of = (plan, known_as, unwanted);
            let carried = self.on_own_pipe(call, route, of, offer, deadline);
            return Box::pin(carried).await;
        }
        let permit = self
            .terms
            .queue
            .enter(&call.caller.principal, call.deadline)
            .await?;
        let slot = self.slot(call, offer)?;
        if plan.wish() != Wish::Drop {
            slot.runs_tasks();
        }
        let session = self.session(&slot, Some(&call.identity), deadline).await?;
        let mut going = Going {
            call,
            route,
            plan,
            known_as,
            offer,
            deadline,
            slot: &slot,
            permit: Some(permit),
            unwanted,
        };
        if let Attempt::Replied(reply) = self.attempt(&session, &mut going).await? {
            return Ok(reply);
        }
        slot.forget(&session);
        if matches!(call.op, Op::CallTool(_) | Op::Task(TaskOp::Update, _)) {
            return Err(UpstreamError::forgotten(
                "its session had ended; a tool call is not repeated",
            ));
        }
        let session = self.session(&slot, Some(&call.identity), deadline).await?;
        going.trail().goes_again();
        match self.attempt(&session, &mut going).await? {
            Attempt::Replied(reply) => Ok(reply),
            Attempt::Gone => {
                slot.forget(&session);
                Err(UpstreamError::forgotten("its session ended at once"))
            }
        }
    }

    async fn attempt(
        &self,
        session: &Arc<Session>,
        going: &mut Going<'_>,
    ) -> Result<Attempt, UpstreamError> {
        let call = going.call;
        let line = &session.line;
        // Only a stream of its own ties a log line to a call (PROTOCOL D0.4).
        let log = call.caller.log_level.filter(|_| line.wire.streamable);
        // What most calls do without is boxed: what each of them holds stays small.
        if let Some(level) = log {
            Box::pin(session.heed(level)).await;
        }
        let wants = going.wants(session, log);
        let asks = wants.relays;
        let mut exchange = Exchange::new(line, going.deadline, wants);
        if let Some(permit) = going.permit.take() {
            exchange = exchange.holding(permit);
        }
        let params = going.params(session, &mut exchange);
        let headers = line.headers.clone();
        let limits = line.terms.peer.json;
        let method = call.op.method();
        let mut hearing = None;
        if line.wire.streamable {
            let number = exchange.number();
            let progress = call.wants_progress;
            hearing = if line.service {
                // On the gateway's own session nobody could say whose anything else is, and others listen to its stream.
                progress.then(|| session.ear.sit(line, number, false))
            } else {
                let tells = asks || progress || (log.is_some() && session.card.logs());
                let may = (asks, tells, progress);
                Box::pin(self.hearing(session, number, may, going.deadline)).await
            };
            exchange.among(Arc::clone(&session.ear) as _);
        }
        let opened = if let Some(heard) = &hearing {
            exchange = exchange.hearing(heard.aside());
            let mut sending = exchange.sending(method, &params, headers, limits);
            match Box::pin(exchange.answered_first(&mut sending)).await {
                Ok(Some(opened)) => opened,
                Err(error) => {
                    // What was not even taken is not in flight.
                    if (exchange::never_sent(&error) || matches!(error, UpstreamError::Auth(_)))
                        && let Some(heard) = hearing.take()
                    {
                        heard.leave();
                    }
                    return Err(error);
                }
                // It is heard of on its session's stream first.
                Ok(None) => {
                    let begun = self.beginning(exchange, session, going, None, hearing);
                    let mut open = OpenCall::new(call, begun);
                    open.sending(sending);
                    return Box::pin(open.into_reply()).await.map(Attempt::Replied);
                }
            }
        } else {
            exchange.send(method, &params, headers, limits).await?
        };
        if !matches!(opened, Opened::Flowing(_))
            && let Some(heard) = hearing.take()
        {
            heard.leave();
        }
        match opened {
            Opened::Ended(head, Err(error)) if session.is_forgotten(&head, Some(&error)) => {
                exchange.suspect(head.status, &error);
                going.permit = exchange.release();
                Ok(Attempt::Gone)
            }
            Opened::Ended(head, Err(error))
                if let Some(other) = exchange.undescribed(head.status, &error, &params) =>
            {
                Err(other)
            }
            Opened::Ended(head, body) => {
                let outcome = exchange.judge(head.status, body)?;
                if let Some(unwanted) = &mut going.unwanted {
                    unwanted.heed(&outcome);
                }
                Ok(Attempt::Replied(Reply::Done(outcome)))
            }
            Opened::Flowing(_) if asks || hearing.is_some() => {
                let begun = self.beginning(exchange, session, going, None, hearing);
                let open = OpenCall::new(call, begun);
                Box::pin(open.into_reply()).await.map(Attempt::Replied)
            }
            Opened::Flowing(_) => {
                let reply = Box::pin(exchange.into_reply()).await?;
                let reply = match going.unwanted.take() {
                    Some(unwanted) => unwanted.heeding(reply),
                    None => reply,
                };
                Ok(Attempt::Replied(in_use(going.slot, reply)))
            }
            Opened::Status(head) if session.is_forgotten(&head, None) => {
                going.permit = exchange.release();
                Ok(Attempt::Gone)
            }
            Opened::Status(head) => {
                session.suspect(&head);
                Err(exchange::bare(&head))
            }
        }
    }

    /// The place of the call of this `number` among those that may be meant on the session's own stream, where there is one; its
    /// caller may be asked something (`asks`), or told something (`tells`). The first such call waits until the stream stands,
    /// for a second at most: a server drops what it says before, and a tool may ask at once. Of the `progress` of a call that
    /// wants it may be told in the answers of others, too.
    async fn hearing(
        &self,
        session: &Session,
        number: u64,
        (asks, tells, progress): (bool, bool, bool),
        deadline: Instant,
    ) -> Option<Hearing> {
        let ear = &session.ear;
        if tells {
            // Where all share the session a question is nobody's, but it is answered.
            let sole = self.isolation != Isolation::Shared;
            ear.listen(session, sole, deadline).await;
        }
        (ear.listens() || progress).then(|| ear.sit(&session.line, number, asks))
    }

    /// A call on a pipe or an event stream that is its owner's alone: what the server says there unasked can be told whose it
    /// is, for calls that may be asked about go one after another.
    async fn on_own_pipe(
        &self,
        call: &Call,
        route: &Route,
        (plan, known_as, unwanted): (Plan, &Op, Option<Unwanted>),
        offer: Offer,
        deadline: Instant,
    ) -> Result<Reply, UpstreamError> {
        let slot = self.slot(call, offer)?;
        if plan.wish() != Wish::Drop {
            slot.runs_tasks();
        }
        let session = self.session(&slot, Some(&call.identity), deadline).await?;
        let mut going = Going {
            call,
            route,
            plan,
            known_as,
            offer,
            deadline,
            slot: &slot,
            permit: None,
            unwanted,
        };
        let log = call.caller.log_level;
        let wants = going.wants(&session, log);
        // Waiting for a person must not cost a share of work, so the turn comes first.
        let turn = if wants.relays {
            // What runs already has been at work, and is worth waiting for.
            Some(match &going.unwanted {
                Some(_) => session.attribution.turn(deadline).await?,
                None => session.turn(deadline).await?,
            })
        } else {
            None
        };
        going.permit = Some(
            self.terms
                .queue
                .enter(&call.caller.principal, call.deadline)
                .await?,
        );
        if let Some(level) = log {
            session.heed(level).await;
        }
        let mut exchange = Exchange::new(&session.line, deadline, wants);
        if let Some(permit) = going.permit.take() {
            exchange = exchange.holding(permit);
        }
        let seat = session
            .attribution
            .sit(exchange.number(), turn, log.is_some());
        let params = going.params(&session, &mut exchange);
        let begun = self.beginning(exchange, &session, &mut going, Some(seat), None);
        let mut open = OpenCall::new(call, begun);
        open.send(call.op.method(), &params);
        open.into_reply().await
    }

    /// Goes on with a call that waits for its caller's answers. It is never sent again (SECURITY REL-6).
    async fn go_on(
        &self,
        number: u64,
        call: &Call,
        deadline: Instant,
    ) -> Result<Reply, UpstreamError> {
        if !self.parked_calls.holds(number, call) {
            return Err(UpstreamError::OutcomeUnknown);
        }
        // Whoever comes when time is up comes to let go of it.
        if call.deadline <= clock::now() {
            if let Some(open) = self.parked_calls.take(number, call).await {
                open.expire().await;
            }
            return Err(UpstreamError::Timeout(Deadline::Call));
        }
        // Before it is taken: refused here, it can be asked for again.
        let permit = self
            .terms
            .queue
            .enter(&call.caller.principal, call.deadline)
            .await?;
        let open = self
            .parked_calls
            .take(number, call)
            .await
            .ok_or(UpstreamError::OutcomeUnknown)?;
        if let Some(stake) = &call.stake {
            stake.mark_used();
        }
        open.slot().touch();
        open.resume(call, deadline, permit).await
    }

    fn beginning(
        &self,
        exchange: Exchange,
        session: &Arc<Session>,
        going: &mut Going<'_>,
        seat: Option<SessionSlot>,
        hearing: Option<Hearing>,
    ) -> Beginning {
        Beginning {
            exchange,
            seat,
            hearing,
            session: Arc::clone(session),
            slot: Arc::clone(going.slot),
            parked_calls: Arc::clone(&self.parked_calls),
            deadline: going.deadline,
            op: going.known_as.clone(),
            unwanted: going.unwanted.take(),
        }
    }
}

/// Whether the person declined, or cancelled, a visit that was asked for.
fn is_declined(resume: &Resume) -> bool {
    let Some(responses) = &resume.responses else {
        return false;
    };
    responses.root().members().any(|answer| {
        let action = answer.value.member("action").and_then(Node::as_str);
        action.is_some_and(|action| action != "accept")
    })
}

/// A slot that is in use until this is dropped, and was used then.
struct InUse(Arc<Slot>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.touch();
    }
}

/// The reply, which keeps the slot in use for as long as it goes on.
fn in_use(slot: &Arc<Slot>, reply: Reply) -> Reply {
    match reply {
        Reply::Stream(steps) => {
            let used = InUse(Arc::clone(slot));
            let steps = steps.inspect(move |_| {
                let _used = &used;
            });
            Reply::Stream(ReplyStream::new(steps.boxed()))
        }
        done @ Reply::Done(_) => done,
    }
}
