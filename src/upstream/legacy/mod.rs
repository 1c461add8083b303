//! The peer for the handshake era: calls carried on sessions (PROTOCOL B4 to B6, D0, D1).
//!
//! Guarantees: callers share a session only under one key; a session that the server forgot is opened again, and only what is
//! idempotent is said twice (PROTOCOL D6, SECURITY REL-6); giving a call up is told to the server, in every transport.
//! Deliberately absent: log levels set on sessions, server requests relayed to clients, the GET stream.

mod pool;
mod session;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    Peer, UpstreamError,
    exchange::{self, Exchange, Opened, Told, Wants},
    line::Wire,
    lists,
    modern::offers,
    params,
    spec::Isolation,
    terms::Terms,
    transport::Head,
};
use crate::{
    call::{Call, Op, Reply, ServerCard},
    catalog::{Listing, Route},
    json::{Json, Limits},
    jsonrpc::RpcError,
    protocol::{codes, meta, methods::ListKind},
};

use pool::{Opening, Pool, Slot};

pub(super) use pool::Opener;
pub(super) use session::{NotOpened, Proposal, Session};

/// A peer of the handshake era.
pub(super) struct Legacy {
    card: ServerCard,
    isolation: Isolation,
    /// The session of the gateway itself: lists, and calls where all share one.
    service: Arc<Slot>,
    keyed: Arc<Pool>,
    opening: Arc<Opening>,
    terms: Arc<Terms>,
    /// What the first session was opened on: the peer lives as long as it.
    wire: Arc<Wire>,
    /// Cancelled when a session cannot be opened again because the handshake is no longer spoken.
    doubt: CancellationToken,
}

/// How one attempt at a call went.
enum Attempt {
    Replied(Reply),
    /// The session was gone before the request was looked at.
    Gone(Option<OwnedSemaphorePermit>),
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
        Self {
            card: first.card.clone(),
            isolation,
            service: Slot::with(first),
            keyed: Pool::new(Arc::clone(&opening)),
            opening,
            terms: Arc::clone(terms),
            wire,
            doubt: CancellationToken::new(),
        }
    }

    /// The slot that a call belongs to.
    fn slot(&self, call: &Call) -> Result<Arc<Slot>, UpstreamError> {
        let caller = &call.caller;
        match self.isolation {
            Isolation::Shared => Ok(Arc::clone(&self.service)),
            Isolation::Principal => self.keyed.slot(&caller.principal.as_str().into(), None),
            Isolation::Session => self
                .keyed
                .slot(&caller.affinity.key, caller.affinity.ended.as_ref()),
        }
    }

    /// The session of `slot`.
    async fn session(
        &self,
        slot: &Arc<Slot>,
        deadline: Instant,
    ) -> Result<Arc<Session>, UpstreamError> {
        let session = timeout_at(deadline, slot.session(&self.opening))
            .await
            .map_err(|_| UpstreamError::Timeout("initialize"))?;
        if let Err(UpstreamError::Refused(_) | UpstreamError::Protocol(_)) = &session {
            self.doubt.cancel();
        }
        session
    }

    async fn carry(&self, call: Call, route: Route) -> Result<Reply, UpstreamError> {
        let permit = self.terms.gate.enter(call.deadline).await?;
        let deadline = call.deadline.min(Instant::now() + self.terms.timeouts.call);
        let slot = self.slot(&call)?;
        let session = self.session(&slot, deadline).await?;
        let permit = match self
            .attempt(&session, &call, &route, deadline, Some(permit))
            .await?
        {
            Attempt::Replied(reply) => return Ok(reply),
            Attempt::Gone(permit) => permit,
        };
        slot.forget(&session);
        if matches!(call.op, Op::CallTool(_)) {
            return Err(UpstreamError::unavailable(
                "its session had ended; a tool call is not repeated",
            ));
        }
        let session = self.session(&slot, deadline).await?;
        match self
            .attempt(&session, &call, &route, deadline, permit)
            .await?
        {
            Attempt::Replied(reply) => Ok(reply),
            Attempt::Gone(_) => {
                slot.forget(&session);
                Err(UpstreamError::unavailable("its session ended at once"))
            }
        }
    }

    async fn attempt(
        &self,
        session: &Arc<Session>,
        call: &Call,
        route: &Route,
        deadline: Instant,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Attempt, UpstreamError> {
        let line = &session.line;
        let wants = Wants {
            caller: Some(Arc::clone(&call.caller)),
            progress: call.wants_progress,
            // Only a stream of its own ties a log line to a call (PROTOCOL D0.4).
            log: call.caller.log_level.filter(|_| line.wire.streamable),
            rounds: None,
            quiet: false,
        };
        let mut exchange = Exchange::new(line, deadline, wants);
        if let Some(permit) = permit {
            exchange = exchange.holding(permit);
        }
        let token = [(meta::PROGRESS_TOKEN, Json::of(&exchange.number()))];
        let own = if call.wants_progress { &token[..] } else { &[] };
        let features = session.card.revision.features();
        let params = params::outbound(call, &route.local, own, features);
        let headers = line.headers.clone();
        let sent = exchange.send(call.op.method(), &params, headers, Limits::UPSTREAM);
        match sent.await? {
            Opened::Ended(head, Err(error)) if forgotten(session, &head, Some(&error)) => {
                Ok(Attempt::Gone(exchange.release()))
            }
            Opened::Ended(head, body) => exchange
                .judge(head.status, body)
                .map(|outcome| Attempt::Replied(Reply::Done(outcome))),
            Opened::Flowing(_) => exchange.into_reply().await.map(Attempt::Replied),
            Opened::Status(head) if forgotten(session, &head, None) => {
                Ok(Attempt::Gone(exchange.release()))
            }
            Opened::Status(head) => Err(exchange::bare(head.status)),
        }
    }

    async fn listing(&self, kind: ListKind) -> Result<Listing, UpstreamError> {
        if !offers(&self.card, kind) {
            return Ok(Listing::default());
        }
        let deadline = Instant::now() + self.terms.timeouts.list;
        match self.drain(kind, deadline).await {
            // Pages belong to one session, so the walk begins again with a new one.
            Ok(None) => self
                .drain(kind, deadline)
                .await?
                .ok_or_else(|| UpstreamError::unavailable("its session ended at once")),
            Ok(Some(listing)) => Ok(listing),
            Err(error) => Err(error),
        }
    }

    /// The whole list; `None` when the session turned out to be gone.
    async fn drain(
        &self,
        kind: ListKind,
        deadline: Instant,
    ) -> Result<Option<Listing>, UpstreamError> {
        let session = self.session(&self.service, deadline).await?;
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
        Box::pin(self.listing(kind))
    }

    fn call(&self, call: Call, route: Route) -> BoxFuture<'_, Result<Reply, UpstreamError>> {
        Box::pin(self.carry(call, route))
    }

    /// The first session's transport decides; a session that an HTTP server forgets is opened again instead.
    fn lost(&self) -> BoxFuture<'_, UpstreamError> {
        Box::pin(async {
            tokio::select! {
                error = self.wire.transport.lost() => error,
                () = self.doubt.cancelled() => UpstreamError::Protocol(
                    "it no longer speaks the era it was reached in".into(),
                ),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let service = self.service.retire(false);
            tokio::join!(service, self.keyed.close());
            self.wire.transport.close().await;
        })
    }
}
