//! The peer for the handshake era: calls carried on sessions (PROTOCOL B4 to B6, D0, D1).
//!
//! Guarantees: callers share a session only under one key; a session that the server forgot is opened again, and only what is
//! idempotent is said twice (PROTOCOL D6, SECURITY REL-6); giving a call up is told to the server, in every transport; what a
//! server asks reaches the caller of the one call it can belong to, and nobody where there is none (D0.4).

mod desk;
mod inquiries;
mod open;
mod park;
mod pool;
mod session;
mod tasks;
mod watch;

#[cfg(test)]
mod cancelling;
#[cfg(test)]
mod levels;
#[cfg(test)]
mod rounds;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::{
    Peer, UpstreamError,
    asking::Offer,
    bell::Bell,
    exchange::{self, Exchange, Opened, Told, Wants},
    health::Doubt,
    line::Wire,
    lists,
    modern::offers,
    params,
    spec::Isolation,
    terms::{Share, Terms},
    transport::Head,
};
use crate::{
    call::{Call, Identity, LogLevel, Op, Reply, ServerCard, State},
    catalog::{Contribution, Listing, Route},
    events::Desk,
    json::Json,
    jsonrpc::RpcError,
    protocol::{
        codes,
        extensions::Offers,
        meta,
        methods::{self, ListKind},
    },
};

use desk::Seat;
use inquiries::Inquiries;
use open::{Beginning, OpenCall};
use park::Lot;
use pool::{Opening, Pool, SessionKey, Slot};
use tasks::Plan;

pub(super) use pool::Opener;
pub(super) use session::{NotOpened, Proposal, Session};

/// A peer of the handshake era.
pub(super) struct Legacy {
    card: ServerCard,
    /// Whether tools may be run as tasks.
    has_tasks: bool,
    isolation: Isolation,
    /// The session of the gateway itself: lists, and calls where all share one.
    service: Arc<Slot>,
    keyed: Arc<Pool>,
    opening: Arc<Opening>,
    /// Calls whose callers are being asked.
    lot: Arc<Lot>,
    /// What tasks of the extension's callers ask.
    inquiries: Arc<Inquiries>,
    /// Owns sessions that all callers share.
    everybody: Arc<str>,
    terms: Arc<Terms>,
    /// What the first session was opened on: the peer lives as long as it.
    wire: Arc<Wire>,
    /// Whether a session could not be opened, as where the handshake is no longer spoken.
    doubt: Doubt,
}

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
    permit: Option<Share>,
}

impl Going<'_> {
    /// What is wanted of an exchange on `session`: where something was declared, and the method may be asked about, the
    /// server's questions too.
    fn wants(&self, session: &Session, log: Option<LogLevel>) -> Wants {
        let rounds = methods::may_ask_back(self.call.op.method());
        let asks = rounds && !session.line.offer.is_none();
        Wants {
            caller: Some(Arc::clone(&self.call.caller)),
            identity: Some(Arc::clone(&self.call.identity)),
            progress: self.call.wants_progress,
            log,
            rounds: rounds.then_some(self.offer),
            relays: asks,
            patience: asks.then(|| Arc::clone(&session.asking)),
            task: false,
            quiet: false,
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
    /// A peer around its first session, which serves lists; `opener` makes further ones.
    pub(super) fn new(
        first: Session,
        opener: Opener,
        proposal: Proposal,
        isolation: Isolation,
        terms: &Arc<Terms>,
    ) -> Self {
        let first = Arc::new(first);
        let wire = Arc::clone(&first.line.wire);
        let opening = Arc::new(Opening {
            opener,
            proposal,
            terms: Arc::clone(terms),
        });
        let offers = Offers::of(&first.card.capabilities, first.card.revision.features());
        Self {
            has_tasks: offers.tasks.is_some(),
            card: first.card.clone(),
            isolation,
            service: Slot::with(first),
            keyed: Pool::new(Arc::clone(&opening)),
            opening,
            lot: Arc::default(),
            inquiries: Arc::default(),
            everybody: "".into(),
            terms: Arc::clone(terms),
            wire,
            doubt: Doubt::default(),
        }
    }

    /// The slot that a call belongs to; `offer` is what may be asked of its caller.
    fn slot(&self, call: &Call, offer: Offer) -> Result<Arc<Slot>, UpstreamError> {
        let caller = &call.caller;
        let (owner, ended) = match self.isolation {
            // Where all share a pipe, nobody could say whom a question is for.
            Isolation::Shared if offer.is_none() || !self.wire.streamable => {
                return Ok(Arc::clone(&self.service));
            }
            Isolation::Shared => (Arc::clone(&self.everybody), None),
            Isolation::Principal => (caller.principal.shared(), None),
            Isolation::Session => (
                Arc::clone(&caller.affinity.key),
                caller.affinity.ended.as_ref(),
            ),
        };
        self.keyed.slot(&SessionKey { owner, offer }, ended)
    }

    /// The session of `slot`, opened on behalf of somebody if it has to be opened and is not the gateway's own.
    async fn session(
        &self,
        slot: &Arc<Slot>,
        behalf: Option<&Arc<Identity>>,
        deadline: Instant,
    ) -> Result<Arc<Session>, UpstreamError> {
        let session = timeout_at(deadline, slot.session(&self.opening, behalf))
            .await
            .map_err(|_| UpstreamError::Timeout("initialize"))?;
        if let Err(
            UpstreamError::Refused(_) | UpstreamError::Protocol(_) | UpstreamError::Status(_),
        ) = &session
            // What one key's own process or stream refuses says nothing about the one that the peer stands on.
            && (slot.is_service() || !self.opening.owns_transports())
        {
            self.doubt.cast();
        }
        session
    }

    async fn carry(&self, call: Call, route: Route) -> Result<Reply, UpstreamError> {
        let plan = Plan::of(&call, &route, self.has_tasks);
        if plan == Plan::None {
            self.once(&call, &route, plan).await
        } else {
            self.carry_task(call, route, plan).await
        }
    }

    /// Carries one request; only what is idempotent twice.
    async fn once(&self, call: &Call, route: &Route, plan: Plan) -> Result<Reply, UpstreamError> {
        self.once_as(call, route, plan, &call.op).await
    }

    /// The same for a caller who will come back, should it be asked, with what it came with.
    async fn once_as(
        &self,
        call: &Call,
        route: &Route,
        plan: Plan,
        known_as: &Op,
    ) -> Result<Reply, UpstreamError> {
        let deadline = call.deadline.min(Instant::now() + self.terms.timeouts.call);
        match call
            .resume
            .as_ref()
            .and_then(|resume| resume.state.as_ref())
        {
            Some(State::Parked(number)) => return self.go_on(*number, call, deadline).await,
            // Opened above, or nowhere.
            Some(State::Sealed(_) | State::Own(_)) => return Err(UpstreamError::OutcomeUnknown),
            // Nothing is held open: the request is sent again, as this era says (PROTOCOL D2d).
            Some(State::Upstream(_)) | None => {}
        }
        let offer = Offer::of(&call.caller);
        if !self.carries_all() {
            return self
                .on_own_pipe(call, route, (plan, known_as), offer, deadline)
                .await;
        }
        let permit = self
            .terms
            .gate
            .enter(&call.caller.principal, call.deadline)
            .await?;
        let slot = self.slot(call, offer)?;
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
        };
        if let Attempt::Replied(reply) = self.attempt(&session, &mut going).await? {
            return Ok(reply);
        }
        slot.forget(&session);
        if matches!(call.op, Op::CallTool(_) | Op::Task(..)) {
            return Err(UpstreamError::unavailable(
                "its session had ended; a tool call is not repeated",
            ));
        }
        let session = self.session(&slot, Some(&call.identity), deadline).await?;
        call.trail.note(|facts| facts.attempts = 2);
        match self.attempt(&session, &mut going).await? {
            Attempt::Replied(reply) => Ok(reply),
            Attempt::Gone => {
                slot.forget(&session);
                Err(UpstreamError::unavailable("its session ended at once"))
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
        if let Some(level) = log {
            session.heed(level).await;
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
        let sent = exchange.send(call.op.method(), &params, headers, limits);
        match sent.await? {
            Opened::Ended(head, Err(error)) if forgotten(session, &head, Some(&error)) => {
                going.permit = exchange.release();
                Ok(Attempt::Gone)
            }
            Opened::Ended(head, body) => exchange
                .judge(head.status, body)
                .map(|outcome| Attempt::Replied(Reply::Done(outcome))),
            Opened::Flowing(_) if asks => {
                let open = OpenCall::new(call, self.beginning(exchange, session, going, None));
                open.into_reply().await.map(Attempt::Replied)
            }
            Opened::Flowing(_) => exchange.into_reply().await.map(Attempt::Replied),
            Opened::Status(head) if forgotten(session, &head, None) => {
                going.permit = exchange.release();
                Ok(Attempt::Gone)
            }
            Opened::Status(head) => Err(exchange::bare(head.status)),
        }
    }

    /// A call on a pipe or an event stream that is its owner's alone: what the server says there unasked can be told whose it
    /// is, for calls that may be asked about go one after another.
    async fn on_own_pipe(
        &self,
        call: &Call,
        route: &Route,
        (plan, known_as): (Plan, &Op),
        offer: Offer,
        deadline: Instant,
    ) -> Result<Reply, UpstreamError> {
        let slot = self.slot(call, offer)?;
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
        };
        let log = call.caller.log_level;
        let wants = going.wants(&session, log);
        // Waiting for a person must not cost a share of work, so the turn comes first.
        let turn = if wants.relays {
            Some(session.desk.turn(deadline).await?)
        } else {
            None
        };
        going.permit = Some(
            self.terms
                .gate
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
        let seat = session.desk.sit(exchange.number(), turn, log.is_some());
        let params = going.params(&session, &mut exchange);
        let begun = self.beginning(exchange, &session, &going, Some(seat));
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
        if !self.lot.holds(number, call) {
            return Err(UpstreamError::OutcomeUnknown);
        }
        // Whoever comes when time is up comes to let go of it.
        if call.deadline <= Instant::now() {
            if let Some(open) = self.lot.take(number, call).await {
                open.expire().await;
            }
            return Err(UpstreamError::Timeout("call"));
        }
        // Before it is taken: refused here, it can be asked for again.
        let permit = self
            .terms
            .gate
            .enter(&call.caller.principal, call.deadline)
            .await?;
        let open = self
            .lot
            .take(number, call)
            .await
            .ok_or(UpstreamError::OutcomeUnknown)?;
        self.keyed.touch(open.slot());
        open.resume(call, deadline, permit).await
    }

    fn beginning(
        &self,
        exchange: Exchange,
        session: &Arc<Session>,
        going: &Going<'_>,
        seat: Option<Seat>,
    ) -> Beginning {
        Beginning {
            exchange,
            seat,
            session: Arc::clone(session),
            slot: Arc::clone(going.slot),
            lot: Arc::clone(&self.lot),
            deadline: going.deadline,
            op: going.known_as.clone(),
        }
    }

    /// The session on which the lists of one principal are read, and heard of.
    fn own_slot(&self, who: &Identity) -> Result<Arc<Slot>, UpstreamError> {
        let key = SessionKey {
            owner: who.grantee().text(),
            offer: Offer::LISTING,
        };
        self.keyed.slot(&key, None)
    }

    /// What a principal sees of the server, on a session of their own.
    async fn offered(&self, who: &Arc<Identity>) -> Result<Contribution, UpstreamError> {
        let slot = self.own_slot(who)?;
        let deadline = Instant::now() + self.terms.timeouts.list;
        let session = self.session(&slot, Some(who), deadline).await?;
        session.line.speaks_for(who);
        let mut contribution = Contribution::default();
        for kind in ListKind::EVERY {
            if offers(&session.card, kind) {
                *contribution.listing_mut(kind) = self.listing(&slot, Some(who), kind).await?;
            }
        }
        contribution.card = Some(session.card.clone());
        Ok(contribution)
    }

    async fn listing(
        &self,
        slot: &Arc<Slot>,
        behalf: Option<&Arc<Identity>>,
        kind: ListKind,
    ) -> Result<Listing, UpstreamError> {
        let deadline = Instant::now() + self.terms.timeouts.list;
        match self.drain(slot, behalf, kind, deadline).await {
            // Pages belong to one session, so the walk begins again with a new one.
            Ok(None) => self
                .drain(slot, behalf, kind, deadline)
                .await?
                .ok_or_else(|| UpstreamError::unavailable("its session ended at once")),
            Ok(Some(listing)) => Ok(listing),
            Err(error) => Err(error),
        }
    }

    /// The whole list; `None` when the session turned out to be gone.
    async fn drain(
        &self,
        slot: &Arc<Slot>,
        behalf: Option<&Arc<Identity>>,
        kind: ListKind,
        deadline: Instant,
    ) -> Result<Option<Listing>, UpstreamError> {
        let session = self.session(slot, behalf, deadline).await?;
        let page = |cursor: Option<String>| {
            let session = &session;
            async move {
                let members: Vec<_> = cursor
                    .map(|cursor| ("cursor", Json::string(&cursor)))
                    .into_iter()
                    .collect();
                let line = &session.line;
                let headers = line.headers.clone();
                let params = meta::object_of(&members);
                let asked =
                    exchange::ask(line, kind.method(), &params, headers, deadline, false).await?;
                match asked {
                    Told::Result(_, result) => Ok(result),
                    // A list may be asked for again, so any refusal that is not of this era is reason to open anew.
                    Told::Error(head, _) if session.is_named() && head.status.is_client_error() => {
                        session.gone.cancel();
                        Err(UpstreamError::unavailable("its session had ended"))
                    }
                    Told::Error(_, error) if error.code == codes::METHOD_NOT_FOUND => {
                        Ok(meta::object_of(&[(kind.member(), Json::of::<[u8]>(&[]))]))
                    }
                    Told::Error(_, error) => Err(UpstreamError::Refused(error)),
                    Told::Status(head) => {
                        if forgotten(session, &head, None) {
                            session.gone.cancel();
                        }
                        Err(exchange::bare(head.status))
                    }
                }
            }
        };
        match lists::drain(kind, &self.terms.bounds, page).await {
            Ok(listing) => Ok(Some(listing)),
            Err(_) if session.gone.is_cancelled() && session.is_named() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether an answer says that the server no longer knows the session: 404 (PROTOCOL B4), and the 400 that some servers give
/// instead. A legacy server's own errors come with 200.
fn forgotten(session: &Session, head: &Head, error: Option<&RpcError>) -> bool {
    session.is_named()
        && match head.status.as_u16() {
            404 => true,
            400 => error.is_none_or(|error| matches!(error.code, -32001 | -32000)),
            _ => false,
        }
}

impl Peer for Legacy {
    fn card(&self) -> &ServerCard {
        &self.card
    }

    fn list(&self, kind: ListKind) -> BoxFuture<'_, Result<Listing, UpstreamError>> {
        Box::pin(async move {
            if offers(&self.card, kind) {
                self.listing(&self.service, None, kind).await
            } else {
                Ok(Listing::default())
            }
        })
    }

    fn offer_to<'a>(
        &'a self,
        who: &'a Arc<Identity>,
    ) -> BoxFuture<'a, Result<Contribution, UpstreamError>> {
        Box::pin(self.offered(who))
    }

    fn watch_for<'a>(
        &'a self,
        who: &'a Arc<Identity>,
        bell: &'a Bell,
        desk: &'a Arc<Desk>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.keep_watch_for(who, bell, desk))
    }

    fn call(&self, call: Call, route: Route) -> BoxFuture<'_, Result<Reply, UpstreamError>> {
        Box::pin(self.carry(call, route))
    }

    fn carries_all(&self) -> bool {
        self.wire.streamable || self.isolation == Isolation::Shared
    }

    fn watch(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.keep_watch())
    }

    /// The first session's transport decides; a session that an HTTP server forgets is opened again instead.
    fn lost(&self) -> BoxFuture<'_, UpstreamError> {
        self.wire.transport.lost()
    }

    fn doubted(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.doubt.arisen())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let service = self.service.retire(false);
            tokio::join!(service, self.keyed.close());
            self.wire.transport.close().await;
        })
    }
}
