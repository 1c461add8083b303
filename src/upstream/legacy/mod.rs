//! The peer for the handshake era: calls carried on sessions (PROTOCOL B4 to B6, D0, D1).
//!
//! Guarantees: callers share a session only under one key; a session that the server forgot is opened again, and only what is
//! idempotent is said twice (PROTOCOL D6, SECURITY REL-6); what a server says of itself is what it said with the gateway's own
//! session last; giving a call up is told to the server, in every transport; what a
//! server asks reaches the caller of the one call it can belong to, and nobody where there is none (D0.4).

mod attribution;
mod carrying;
mod ear;
mod inquiries;
mod listing;
mod open;
mod park;
mod pool;
mod session;
mod tasks;
mod watch;

#[cfg(test)]
mod balking;
#[cfg(test)]
mod cancelling;
#[cfg(test)]
mod crowding;
#[cfg(test)]
mod levels;
#[cfg(test)]
mod parting;
#[cfg(test)]
mod rounds;
#[cfg(test)]
mod tests;

use std::sync::{Arc, atomic::AtomicBool};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::{
    Deadline, Peer, UpstreamError,
    card_cache::{CachedCard, CardCache},
    holdings::Holder,
    line::Wire,
    modern::offers,
    refresh_signal::RefreshSignal,
    spec::Isolation,
    terms::Terms,
};
use crate::{
    call::{Call, Identity, Reply, ServerCard},
    catalog::{Contribution, Listing, Route},
    events::ResourceInterest,
    protocol::methods::ListKind,
};

use inquiries::Inquiries;
use park::ParkedCalls;
use pool::{Opening, Pool, Slot};
use tasks::Plan;

pub(super) use pool::Opener;
pub(super) use session::{NotOpened, Proposal, Session, decline};

/// A peer of the handshake era.
pub(super) struct Legacy {
    isolation: Isolation,
    /// The session of the gateway itself: lists, and calls where all share one.
    service: Arc<Slot>,
    keyed: Arc<Pool>,
    opening: Arc<Opening>,
    /// Calls whose callers are being asked.
    parked_calls: Arc<ParkedCalls>,
    /// What tasks of the extension's callers ask.
    inquiries: Arc<Inquiries>,
    /// Owns sessions that all callers share.
    everybody: Arc<str>,
    /// Whether the server has listed tools without having promised any list: from then on it is as if it had.
    has_unpromised: AtomicBool,
    terms: Arc<Terms>,
    /// What the first session was opened on: the peer lives as long as it.
    wire: Arc<Wire>,
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
            wire: Arc::clone(&wire),
            card_cache: CardCache::new(first.card.clone()),
        });
        Self {
            isolation,
            service: Slot::with(first),
            keyed: Pool::new(Arc::clone(&opening)),
            opening,
            parked_calls: Arc::default(),
            inquiries: Arc::default(),
            everybody: "".into(),
            has_unpromised: AtomicBool::new(false),
            terms: Arc::clone(terms),
            wire,
        }
    }

    /// The session of `slot`, opened on behalf of somebody if it has to be opened and is not the gateway's own.
    async fn session(
        &self,
        slot: &Arc<Slot>,
        behalf: Option<&Arc<Identity>>,
        deadline: Instant,
    ) -> Result<Arc<Session>, UpstreamError> {
        if let Some(session) = slot.usable() {
            return Ok(session);
        }
        let opening = slot.session(&self.opening, behalf);
        Box::pin(timeout_at(deadline, opening))
            .await
            .map_err(|_| UpstreamError::Timeout(Deadline::Initialize))?
    }
}

impl Peer for Legacy {
    fn card(&self) -> Arc<ServerCard> {
        self.opening.card_cache.card()
    }

    fn list(&self, kind: ListKind) -> BoxFuture<'_, Result<Listing, UpstreamError>> {
        Box::pin(async move {
            let deadline = Instant::now() + self.terms.timeouts.list;
            // Where its session is gone, the next one says what it offers.
            match self.session(&self.service, None, deadline).await {
                Ok(session) => {
                    let holder = &self.terms.lists;
                    self.offered_on(&session, (&self.service, None), kind, holder)
                        .await
                }
                Err(error) if offers(&self.card(), kind) => Err(error),
                Err(_) => Ok(Listing::default()),
            }
        })
    }

    fn offer_to<'a>(
        &'a self,
        who: &'a Arc<Identity>,
        holder: &'a Holder,
    ) -> BoxFuture<'a, Result<Contribution, UpstreamError>> {
        Box::pin(self.offered(who, holder))
    }

    fn watch_for<'a>(
        &'a self,
        who: &'a Arc<Identity>,
        refresh: &'a RefreshSignal,
        interest: &'a Arc<ResourceInterest>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.keep_watch_for(who, refresh, interest))
    }

    fn call(&self, call: Call, route: Route) -> BoxFuture<'_, Result<Reply, UpstreamError>> {
        let has_tasks = |cached: &CachedCard| cached.offers.tasks.is_some();
        let plan = Plan::of(&call, &route, self.opening.card_cache.read(has_tasks));
        if plan == Plan::None {
            // An async block, because an async fn would store its arguments twice in its future.
            Box::pin(async move { self.once(&call, &route, plan).await })
        } else {
            Box::pin(self.carry_task(call, route, plan))
        }
    }

    fn carries_all(&self) -> bool {
        self.wire.streamable || self.isolation == Isolation::Shared
    }

    fn is_streamable(&self) -> bool {
        self.wire.streamable
    }

    fn watch(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.keep_watch())
    }

    /// The first session's transport decides; a session that an HTTP server forgets is opened again instead.
    fn lost(&self) -> BoxFuture<'_, UpstreamError> {
        self.wire.transport.lost()
    }

    fn doubted(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.wire.doubt.arisen())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.parked_calls.close();
            let service = self.service.retire(false);
            tokio::join!(service, self.keyed.close());
            self.wire.transport.close().await;
        })
    }
}
