//! The handle on one upstream: what the stack calls and operators look at.
//!
//! Guarantees: finding the peer takes no lock; a call to an upstream that is away fails at once and says when the next attempt
//! is due, unless its caller's own token may open the upstream: then the call waits for that, as all do for the very first
//! attempt; the last handle's end is the upstream's orderly end.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    Claim, Deadline, Peer, Reached, UpstreamError,
    connector::{Connector, Dialer},
    credentials::{Bearer, Credentials},
    health::Circuit,
    mishaps::Past,
    shared::{ConnectionState, Presence, Shared},
    sink::Sink,
    spec::UpstreamSpec,
    supervisor::Supervisor,
    tally::{Counts, Tally},
    terms::{self, Terms},
};
use crate::{
    call::{Call, Identity, Reply, ServerCard},
    catalog::{Route, rules::CatalogBounds},
    connect::Connections,
    events::{Lists, ResourceInterest},
    metrics::{self, Bound},
    protocol::{Revision, UpstreamId},
    tasks::{Tasks, clock},
};

/// When to try again what is about to be there.
const SOON: Duration = Duration::from_secs(1);

/// One upstream, kept connected in the background. Dropping it ends it; [`Upstream::close`] also waits for that.
pub struct Upstream {
    shared: Arc<Shared>,
    tasks: Tasks,
}

/// What operators see of an upstream.
#[derive(Debug, Clone)]
pub struct Status {
    /// Whether it is there.
    pub state: State,
    /// Whether it is away for no other reason than that nobody has come yet who could ask it anything: it is well, as far as
    /// is known.
    pub awaits: bool,
    /// The revision spoken, while it is there.
    pub revision: Option<Revision>,
    /// Since when it is in this state.
    pub since: Instant,
    /// What went wrong last, for operators only: it may name hosts and hold a process's last words. While it is there, a call that
    /// failed counts, too.
    pub error: Option<Past>,
    /// Why one of its lists could not be read when it was asked for last, while it is there: what is offered of that is what was
    /// read before, if anything was. For operators only, too.
    pub unread: Option<Past>,
    /// Attempts to connect after the first one.
    pub restarts: u64,
    /// Frames of it that were dropped because they belonged to nothing.
    pub dropped_frames: u64,
    /// Connections in a row that failed under calls, of those that all calls share; with the fifth it counts as away (SECURITY
    /// REL-2).
    pub failures: u32,
    /// How often its lists were read whole.
    pub refreshes: u64,
    /// How often they were read and some or all could not be.
    pub failed_refreshes: u64,
    /// Calls in flight to it.
    pub in_flight: usize,
    /// Calls that wait for their turn.
    pub queued: usize,
    /// Calls that may be in flight at once.
    pub concurrency: usize,
    /// When the next attempt to connect is due, while it is away and one is planned.
    pub retry_at: Option<Instant>,
    /// How calls to it went since the start.
    pub counts: Counts,
}

/// Whether an upstream is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The first attempt to connect is under way.
    Connecting,
    /// It can be called.
    Ready,
    /// It cannot be called; attempts go on.
    Away,
    /// An operator does not want it used; nothing is attempted.
    Disabled,
}

impl Upstream {
    /// Begins to connect to what `spec` describes, to tell `sink` what it offers, and `interest` what becomes of its resources,
    /// until `tasks` is stopped.
    pub fn start(
        spec: UpstreamSpec,
        bounds: CatalogBounds,
        sink: Arc<dyn Sink>,
        interest: Arc<ResourceInterest>,
        tasks: &Tasks,
    ) -> Arc<Self> {
        Self::start_connected(spec, bounds, sink, interest, None, tasks)
    }

    /// Like [`Upstream::start`], but people may log in to the upstream: `connections` has what they were given.
    pub fn start_connected(
        spec: UpstreamSpec,
        bounds: CatalogBounds,
        sink: Arc<dyn Sink>,
        interest: Arc<ResourceInterest>,
        connections: Option<Connections>,
        tasks: &Tasks,
    ) -> Arc<Self> {
        // A family of its own: transports must outlive the stop signal for as long as an orderly end takes. The supervisor,
        // which belongs to `tasks`, ends this family and waits for it.
        let inner = Tasks::new();
        let terms = Terms::with(&spec, bounds, interest, inner.clone(), connections);
        let connector = Arc::new(Dialer {
            spec: spec.clone(),
            credentials: terms.credentials.clone(),
            dial: ArcSwap::default(),
            tasks: inner,
        });
        Self::over(spec, terms, connector, sink, tasks)
    }

    /// Like [`Upstream::start_connected`], but over any transports: those of `connector`.
    pub(super) fn over(
        spec: UpstreamSpec,
        terms: Arc<Terms>,
        connector: Arc<dyn Connector>,
        sink: Arc<dyn Sink>,
        tasks: &Tasks,
    ) -> Arc<Self> {
        let tasks = tasks.child();
        let shared = Arc::new(Shared {
            spec,
            terms,
            presence: ArcSwap::from_pointee(Presence {
                state: ConnectionState::Connecting,
                since: Instant::now(),
                error: None,
                said: None,
            }),
            settled: CancellationToken::new(),
            closed: CancellationToken::new(),
            circuit: Circuit::default(),
            sink: Arc::clone(&sink),
            changed: Notify::new(),
            nudged: Notify::new(),
            restarts: AtomicU64::new(0),
            refreshes: Default::default(),
            unread: ArcSwapOption::empty(),
            wishes: watch::Sender::default(),
            tally: Tally::default(),
        });
        let supervisor = Supervisor::new(Arc::clone(&shared), connector, sink);
        tasks.spawn_orderly(supervisor.run(tasks.token().clone()));
        Arc::new(Self { shared, tasks })
    }

    /// Its configured key.
    pub fn id(&self) -> &UpstreamId {
        &self.shared.spec.id
    }

    /// The peer, while there is one. Takes no lock.
    ///
    /// # Errors
    /// [`UpstreamError::Unavailable`] with the time of the next attempt.
    pub fn peer(&self) -> Result<Arc<dyn Peer>, UpstreamError> {
        let presence = self.shared.presence.load();
        match &presence.state {
            ConnectionState::Ready(peer) => Ok(Arc::clone(peer)),
            ConnectionState::Connecting => Err(UpstreamError::unconnected("not connected yet")),
            ConnectionState::Disabled => Err(UpstreamError::unconnected("disabled by an operator")),
            ConnectionState::Away { retry_at } => Err(UpstreamError::Unavailable {
                cause: match presence.error.as_ref().map(|mishap| &mishap.error) {
                    Some(UpstreamError::Unavailable { cause, .. }) => cause.clone(),
                    Some(error) => error.to_string(),
                    None => "away".to_owned(),
                },
                retry_at: *retry_at,
                // Whatever it answered, it was to somebody else.
                status: None,
                reached: Reached::Unsent,
            }),
        }
    }

    /// Why nothing is known of what it offers, before it was reached for the first time or long after it was for the last.
    /// `None` where that is as it should be: an operator does not want it used, or it offers each principal their own.
    pub fn absence(&self) -> Option<UpstreamError> {
        if self.offers_each_their_own() {
            return None;
        }
        match self.shared.presence.load().state {
            ConnectionState::Disabled => None,
            ConnectionState::Away { .. } => self.peer().err(),
            // It is being reached, or its lists are being read.
            ConnectionState::Connecting | ConnectionState::Ready(_) => {
                let soon = clock::now() + SOON;
                Some(UpstreamError::unreached("not connected yet").unsent(soon))
            }
        }
    }

    /// Whether what it offers differs from principal to principal.
    pub fn offers_each_their_own(&self) -> bool {
        let credentials = self.shared.terms.credentials.as_ref();
        credentials.is_some_and(Credentials::lists_are_own)
    }

    /// What it offers to one principal alone is wanted, and begins to be read unless it is known. `None` where what it offers
    /// is everybody's, or there is no token to read it with.
    pub fn claim(&self, identity: &Arc<Identity>) -> Option<Claim> {
        self.shared.claim(identity)
    }

    /// Whether tokens are got for its calls.
    pub fn gets_tokens(&self) -> bool {
        self.shared.terms.credentials.is_some()
    }

    /// What a call of this principal goes with, where tokens for it are got; `None` where what it goes with is configured, or nothing.
    pub fn bearer(&self, identity: &Arc<Identity>) -> Option<Bearer> {
        let credentials = self.shared.terms.credentials.as_ref();
        credentials.map(|credentials| Bearer::of(credentials, identity))
    }

    /// Some principals have logged in, or are no longer connected: what was read for them is looked at again.
    pub fn regranted(&self) {
        self.shared.regranted();
    }

    /// How long a call may take.
    pub fn call_timeout(&self) -> Duration {
        self.shared.spec.timeouts.call
    }

    /// How long a list may take.
    pub fn list_timeout(&self) -> Duration {
        self.shared.spec.timeouts.list
    }

    /// Carries one call. While the very first attempt to connect is under way, waits for it up to the connect deadline.
    ///
    /// # Errors
    /// Why it was not answered.
    pub fn call(
        self: &Arc<Self>,
        call: Call,
        route: Route,
    ) -> impl Future<Output = Result<Reply, UpstreamError>> + Send + use<> {
        let this = Arc::clone(self);
        // An async block, because an async fn would store its arguments twice in its future.
        async move {
            let began = clock::now();
            let reply = match this.reached(&call).await {
                Ok(peer) => {
                    // Whoever comes too late for anything to be tried has waited for somebody else.
                    let tried = (call.deadline > clock::now()).then_some(call.id);
                    let is_got = terms::is_got(&call.op);
                    let reply = this.learned(&peer, is_got, peer.call(call, route).await);
                    if let (Err(error), Some(call)) = (&reply, tried) {
                        this.shared.terms.mishaps.note(call, error);
                    }
                    reply
                }
                Err(error) => Err(error),
            };
            this.shared.tally.note(clock::since(began), reply.is_ok());
            reply
        }
    }

    /// The peer, once it is known whether there is one.
    async fn reached(&self, call: &Call) -> Result<Arc<dyn Peer>, UpstreamError> {
        let connecting = matches!(
            self.shared.presence.load().state,
            ConnectionState::Connecting
        );
        if connecting {
            let until = call
                .deadline
                .min(Instant::now() + self.shared.spec.timeouts.connect);
            Box::pin(timeout_at(until, self.settled()))
                .await
                .map_err(|_| UpstreamError::Timeout(Deadline::Connect))?;
        }
        if self.shared.is_closed() {
            Box::pin(self.arrived_for(call)).await;
        }
        self.peer()
    }

    /// Takes note of what a reply says of the peer, unless another has taken its place: that one it says nothing of.
    fn learned(
        &self,
        peer: &Arc<dyn Peer>,
        is_got: bool,
        reply: Result<Reply, UpstreamError>,
    ) -> Result<Reply, UpstreamError> {
        if let Err(error) = &reply
            && let Some(bound) = error.bound()
        {
            let of_list = is_got && bound == Bound::DeadlineCall;
            metrics::reached(if of_list { Bound::DeadlineList } else { bound });
        }
        if peer.carries_all() && self.is_there(peer) {
            if self.shared.circuit.is_startling(&reply) {
                self.refresh();
            }
            self.shared.circuit.learn(&reply);
        }
        reply
    }

    fn is_there(&self, peer: &Arc<dyn Peer>) -> bool {
        matches!(&self.shared.presence.load().state, ConnectionState::Ready(there) if Arc::ptr_eq(there, peer))
    }

    /// Has it reached with the caller's own token, and waits for that up to the connect deadline.
    async fn arrived_for(&self, call: &Call) {
        let lends = self.shared.lend(&call.identity);
        if lends {
            let timeouts = &self.shared.spec.timeouts;
            let until = call.deadline.min(Instant::now() + timeouts.connect);
            drop(Box::pin(timeout_at(until, self.shared.came())).await);
        }
    }

    /// Asks for the lists to be read again: at once, or when 2 s have passed since they were last read because of that.
    pub fn refresh(&self) {
        self.shared.terms.refresh.ring(Lists::ALL);
    }

    /// Has it begin anew: what is connected is closed, calls in flight are lost, a program is started again. At once, whatever
    /// pauses are due. Nothing while it is disabled.
    pub fn restart(&self) {
        self.shared.wishes.send_modify(|wish| wish.restarts += 1);
    }

    /// Uses it no more until [`Upstream::enable`]: what is connected is closed, what it offers is taken from the lists, calls
    /// fail. Says whether that is news. Forgotten when the process ends.
    pub fn disable(&self) -> bool {
        self.shared.wish_off(true)
    }

    /// Uses it again. Says whether that is news.
    pub fn enable(&self) -> bool {
        self.shared.wish_off(false)
    }

    /// Resolves once it is not used, or is, as operators wish.
    pub async fn heeded(&self) {
        self.shared.heeded().await;
    }

    /// What the server said of itself last, while it is there.
    pub fn card(&self) -> Option<Arc<ServerCard>> {
        match &self.shared.presence.load().state {
            ConnectionState::Ready(peer) => Some(peer.card()),
            ConnectionState::Connecting
            | ConnectionState::Away { .. }
            | ConnectionState::Disabled => None,
        }
    }

    /// What operators see of it.
    pub fn status(&self) -> Status {
        let presence = self.shared.presence.load();
        let (state, revision, retry_at) = match &presence.state {
            ConnectionState::Connecting => (State::Connecting, None, None),
            ConnectionState::Ready(peer) => (State::Ready, Some(peer.card().revision), None),
            ConnectionState::Away { retry_at } => (State::Away, None, *retry_at),
            ConnectionState::Disabled => (State::Disabled, None, None),
        };
        Status {
            state,
            awaits: presence.awaits(),
            revision,
            since: presence.since,
            error: self.past(&presence),
            unread: (self.shared.unread.load().as_deref()).cloned(),
            restarts: self.shared.restarts.load(Ordering::Relaxed),
            dropped_frames: self.shared.terms.dropped.load(Ordering::Relaxed),
            failures: self.shared.circuit.failures(),
            refreshes: self.shared.refreshes[0].load(Ordering::Relaxed),
            failed_refreshes: self.shared.refreshes[1].load(Ordering::Relaxed),
            in_flight: self.shared.terms.queue.taken(),
            queued: self.shared.terms.queue.waiting(),
            concurrency: self.shared.terms.queue.most(),
            retry_at,
            counts: self.shared.tally.counts(),
        }
    }

    /// What went wrong last: with it, or with a call while it is there.
    fn past(&self, presence: &Presence) -> Option<Past> {
        let own = presence.error.as_ref();
        let own = own.map(|mishap| (mishap, presence.said.as_deref()));
        let called = match presence.state {
            ConnectionState::Ready(_) => self.shared.terms.mishaps.last(),
            ConnectionState::Connecting
            | ConnectionState::Away { .. }
            | ConnectionState::Disabled => None,
        };
        let called = called.as_deref().map(|mishap| (mishap, None));
        let last = called.into_iter().chain(own);
        let (mishap, said) = last.max_by_key(|(mishap, _)| mishap.at)?;
        Some(Past {
            words: self.shared.told(&mishap.error, said),
            at: mishap.at,
        })
    }

    /// Resolves when the first attempt is over: it failed, or it succeeded and the lists were read.
    pub async fn settled(&self) {
        self.shared.settled.cancelled().await;
    }

    /// Ends it in an orderly way, within a few seconds.
    pub async fn close(&self) {
        self.tasks.stop();
        self.shared.closed.cancelled().await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({})", self.id())
    }
}
