//! What every exchange with one upstream keeps to: its deadlines, its bounds, its share of work at once.
//!
//! Guarantees: no more than the configured number of calls are in flight to an upstream, however many peers and sessions
//! carry them; the queue before them is bounded in length and time (SECURITY 6, REL-3, REL-4).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::{
    UpstreamError,
    bell::Bell,
    credentials::{Connected, Credentials},
    own::Own,
    spec::{Endpoint, Timeouts, UpstreamSpec},
};
use crate::{
    catalog::rules::CatalogBounds, connect::Connections, events::Desk, protocol::UpstreamId,
    tasks::Tasks,
};

/// One upstream's terms, shared by its supervisor, peers and sessions.
#[derive(Debug)]
pub(super) struct Terms {
    /// Its configured key.
    pub(super) id: UpstreamId,
    /// Deadlines.
    pub(super) timeouts: Timeouts,
    /// To the end of an opening: of a process's, or of one over the network.
    pub(super) opening: Duration,
    /// Bounds on its lists.
    pub(super) bounds: CatalogBounds,
    /// Its share of work at once.
    pub(super) gate: Gate,
    /// The tokens for it, where they are got by a grant.
    pub(super) credentials: Option<Credentials>,
    /// What it offers to each principal alone, where that differs.
    pub(super) own: Own,
    /// Who owns the tasks started for it.
    pub(super) tasks: Tasks,
    /// Where it is told that lists are to be read again.
    pub(super) bell: Bell,
    /// Which of its resources are wanted, and who hears of their changes.
    pub(super) desk: Arc<Desk>,
    /// Frames of it that were dropped because they belong to nothing: unknown notifications, foreign tokens.
    pub(super) dropped: AtomicU64,
}

impl Terms {
    /// The terms that a specification asks for.
    #[cfg(test)]
    pub(super) fn new(
        spec: &UpstreamSpec,
        bounds: CatalogBounds,
        desk: Arc<Desk>,
        tasks: Tasks,
    ) -> Arc<Self> {
        Self::with(spec, bounds, desk, tasks, None)
    }

    /// The terms that a specification asks for, and what people were given where they log in to the upstream.
    pub(super) fn with(
        spec: &UpstreamSpec,
        bounds: CatalogBounds,
        desk: Arc<Desk>,
        tasks: Tasks,
        connections: Option<Connections>,
    ) -> Arc<Self> {
        let connected = connections
            .filter(|connections| connections.covers(&spec.id))
            .map(|connections| Connected::new(spec.id.clone(), connections));
        let grant = match &spec.endpoint {
            Endpoint::Http(http) => http.grant.clone(),
            Endpoint::Stdio(_) => None,
        };
        let credentials = grant.map(|grant| {
            let tasks = tasks.clone();
            Credentials::new(spec.id.clone(), *grant, tasks)
        });
        let credentials = credentials.or(connected.map(Credentials::Connected));
        Arc::new(Self {
            id: spec.id.clone(),
            timeouts: spec.timeouts,
            opening: match spec.endpoint {
                Endpoint::Stdio(_) => spec.timeouts.start,
                Endpoint::Http(_) => spec.timeouts.connect,
            },
            bounds,
            gate: Gate::new(spec.concurrency),
            credentials,
            own: Own::default(),
            tasks,
            bell: Bell::default(),
            desk,
            dropped: AtomicU64::new(0),
        })
    }

    /// Counts a frame that goes nowhere.
    pub(super) fn drop_frame(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls waiting for a slot: at most this many, the next is refused.
const QUEUE: usize = 128;
/// How long a call waits for a slot before it is refused.
const PATIENCE: Duration = Duration::from_secs(2);

/// Slots for calls in flight, and a bounded queue before them.
#[derive(Debug)]
pub(super) struct Gate {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// How long a call waits; `None`: as long as it may.
    patience: Option<Duration>,
}

impl Gate {
    fn new(slots: usize) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(slots.max(1))),
            waiting: AtomicUsize::new(0),
            patience: Some(PATIENCE),
        }
    }

    /// One slot, which is waited for until a call's own deadline: what holds it may be waiting for a person.
    pub(super) fn of_one() -> Self {
        Self {
            patience: None,
            ..Self::new(1)
        }
    }

    /// A slot, free again when the permit is dropped.
    ///
    /// # Errors
    /// [`UpstreamError::Overloaded`] when 128 calls wait already, or after 2 s (where a person is waited for: not
    /// before the deadline), or at `deadline`.
    pub(super) async fn enter(
        &self,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, UpstreamError> {
        match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(permit) => Ok(permit),
            Err(_) => Box::pin(self.queue(deadline)).await,
        }
    }

    async fn queue(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, UpstreamError> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _leave = Leave(&self.waiting);
        if before >= QUEUE {
            return Err(UpstreamError::Overloaded);
        }
        let until = match self.patience {
            Some(patience) => deadline.min(Instant::now() + patience),
            None => deadline,
        };
        match timeout_at(until, Arc::clone(&self.slots).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(UpstreamError::Overloaded),
        }
    }
}

/// Leaves the queue, also when the waiting call is dropped.
struct Leave<'a>(&'a AtomicUsize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_gate_lets_callers_wait_two_seconds_and_then_refuses() {
        let gate = Gate::new(1);
        let far = Instant::now() + Duration::from_secs(60);
        let held = gate.enter(far).await.unwrap();
        let began = Instant::now();
        assert!(matches!(
            gate.enter(far).await,
            Err(UpstreamError::Overloaded)
        ));
        assert_eq!(began.elapsed(), PATIENCE);
        drop(held);
        assert!(gate.enter(far).await.is_ok());
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_129th_in_the_queue_is_refused_at_once() {
        let gate = Gate::new(1);
        let far = Instant::now() + Duration::from_secs(60);
        let _held = gate.enter(far).await.unwrap();
        let mut queue: Vec<_> = (0..QUEUE).map(|_| Box::pin(gate.enter(far))).collect();
        for waiter in &mut queue {
            assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        }
        let began = Instant::now();
        assert!(matches!(
            gate.enter(far).await,
            Err(UpstreamError::Overloaded)
        ));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
