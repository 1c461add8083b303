//! What every exchange with one upstream keeps to: its deadlines, its bounds, its share of work at once.
//!
//! Guarantees: no more than the configured number of calls are in flight to an upstream, however many peers and sessions
//! carry them; the queue before them is bounded in length and time, and principals take turns in it (SECURITY 6, REL-3,
//! REL-4).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};

use super::{
    UpstreamError,
    credentials::{Connected, Credentials},
    health::{Backoff, Tried},
    holdings::{Holder, Holdings},
    mishaps::Mishaps,
    own::Own,
    refresh_signal::RefreshSignal,
    spec::{Endpoint, PeerBounds, QueueBounds, Timeouts, UpstreamSpec, UrlElicitation},
};
use crate::{
    call::{Call, Identity, IdentityKind, Op, Principal},
    catalog::rules::CatalogBounds,
    connect::Connections,
    events::ResourceInterest,
    limits::{FairSemaphore, FairSlot, Full, Room},
    metrics::{self, Bound},
    pins,
    protocol::UpstreamId,
    tasks::{Tasks, clock},
};

/// The most streams of callers' own sessions: each is a connection that stays open.
const STREAMS: usize = 1_024;
/// How many times its time a call may take that reports progress. There is a hard maximum however much is reported (PROTOCOL G29): by
/// default it is the 300 s of SECURITY 6, which hosts give a call as well.
const AT_WORK: u32 = 5;

/// One upstream's terms, shared by its supervisor, peers and sessions.
#[derive(Debug)]
pub(super) struct Terms {
    /// Its configured key.
    pub(super) id: UpstreamId,
    /// Deadlines.
    pub(super) timeouts: Timeouts,
    /// Deadline for opening: start of a process, or connect.
    pub(super) opening: Duration,
    /// Bounds on its lists.
    pub(super) bounds: CatalogBounds,
    /// How long its card and lists are used when it gives no TTL; its card is used no shorter in any case.
    pub(super) poll: Duration,
    /// What becomes of definitions that it changes.
    pub(super) definitions: pins::Mode,
    /// How much it may say.
    pub(super) peer: PeerBounds,
    /// What a connection attempt starts: a process or a connection (selects the backoff).
    tried: Tried,
    /// Its share of work at once.
    pub(super) queue: CallQueue,
    /// Whether it is sent, or shown, anything that may prove who asks.
    pub(super) proves: bool,
    /// Whether that is the same for all callers, and nobody said that they may be sent to addresses all the same.
    one_for_all: bool,
    /// The tokens for it, where they are got by a grant.
    pub(super) credentials: Option<Credentials>,
    /// For whom its lists are kept that are everybody's.
    pub(super) lists: Holder,
    /// What it offers to each principal alone, where that differs.
    pub(super) own: Own,
    /// Who owns the tasks started for it.
    pub(super) tasks: Tasks,
    /// Where it is told that lists are to be read again.
    pub(super) refresh: RefreshSignal,
    /// Which of its resources are wanted, and who hears of their changes.
    pub(super) interest: Arc<ResourceInterest>,
    /// Frames of it that were dropped because they belong to nothing: unknown notifications, foreign tokens.
    pub(super) dropped: AtomicU64,
    /// Calls to it that failed.
    pub(super) mishaps: Arc<Mishaps>,
    /// Room for streams of callers' own sessions.
    pub(super) streams: Semaphore,
}

impl Terms {
    /// The terms that a specification asks for.
    #[cfg(test)]
    pub(super) fn new(
        spec: &UpstreamSpec,
        bounds: CatalogBounds,
        interest: Arc<ResourceInterest>,
        tasks: Tasks,
    ) -> Arc<Self> {
        Self::with(spec, bounds, interest, tasks, None)
    }

    /// The terms that a specification asks for, and what people were given where they log in to the upstream.
    pub(super) fn with(
        spec: &UpstreamSpec,
        bounds: CatalogBounds,
        interest: Arc<ResourceInterest>,
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
        let holdings = Holdings::new(bounds.total_bytes);
        let proves = spec.has_credential() || credentials.is_some();
        let own = credentials
            .as_ref()
            .is_some_and(Credentials::is_per_principal);
        Arc::new(Self {
            proves,
            one_for_all: proves && !own && spec.url_elicitation == UrlElicitation::Own,
            id: spec.id.clone(),
            timeouts: spec.timeouts,
            opening: match spec.endpoint {
                Endpoint::Stdio(_) => spec.timeouts.start,
                Endpoint::Http(_) => spec.timeouts.connect,
            },
            tried: match spec.endpoint {
                Endpoint::Stdio(_) => Tried::Process,
                Endpoint::Http(_) => Tried::Connection,
            },
            bounds,
            poll: spec.poll,
            definitions: spec.definitions,
            peer: spec.bounds,
            queue: CallQueue::new(spec.concurrency, spec.queue),
            credentials,
            lists: holdings.holder(),
            own: Own::new(holdings),
            mishaps: Mishaps::new(spec.id.clone(), proves, tasks.clone()),
            tasks,
            refresh: RefreshSignal::default(),
            interest,
            dropped: AtomicU64::new(0),
            streams: Semaphore::new(STREAMS),
        })
    }

    /// The waits between attempts to come to it, none of which was made yet.
    pub(super) const fn backoff(&self) -> Backoff {
        Backoff::new(self.tried, self.peer.restarts)
    }

    /// Whether it must not send this somebody to addresses: it takes them and everybody else for one user, and what one of them
    /// allowed there would be allowed for all (PROTOCOL F9). Those without a name are not told apart here either.
    pub(super) fn is_one_for_all(&self, identity: &Identity) -> bool {
        self.one_for_all && identity.kind != IdentityKind::Anonymous
    }

    /// Until when the exchange for this has to be over that begins now (SECURITY 6).
    pub(super) fn deadline(&self, call: &Call) -> Instant {
        let time = if is_got(&call.op) {
            self.timeouts.list
        } else {
            self.timeouts.call
        };
        call.deadline.min(clock::now() + time)
    }

    /// How late that may become where it reports progress, since whoever tells of it is at work; `None` where it may not: what is
    /// got by its name has the time of a list. Whoever calls has no more time than its own deadline either.
    pub(super) fn latest(&self, call: &Call) -> Option<Instant> {
        let latest = clock::now() + self.timeouts.call * AT_WORK;
        (!is_got(&call.op)).then(|| call.deadline.min(latest))
    }

    /// Counts a frame that goes nowhere.
    pub(super) fn drop_frame(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether this is got by its name, and has the time of a list: SECURITY 6 tells getting from calling, and from nothing else. What is
/// read may be long, and looks at a task are part of the call that runs it.
pub(super) const fn is_got(op: &Op) -> bool {
    matches!(op, Op::GetPrompt(_) | Op::GetSkill(_))
}

/// Slots for calls in flight, and a bounded queue before them.
#[derive(Debug)]
pub(super) struct CallQueue {
    slots: Arc<FairSemaphore>,
    room: Room,
    /// What bounds the queue, where it is that of an upstream.
    bound: Bound,
    /// How long a call waits; `None`: as long as it may.
    patience: Option<Duration>,
}

/// A share of the work at once, given back when it is dropped.
pub(super) type CallSlot = FairSlot;

impl CallQueue {
    /// So many slots, at least one; calls in flight are those that wait, too.
    fn new(slots: usize, queue: QueueBounds) -> Self {
        let seats = slots.clamp(1, queue.in_flight.max(1));
        let line = queue
            .length
            .min(queue.in_flight - seats.min(queue.in_flight));
        Self {
            slots: Arc::default(),
            room: Room { seats, line },
            bound: if line < queue.length {
                Bound::InFlightUpstream
            } else {
                Bound::QueueLength
            },
            patience: Some(queue.time),
        }
    }

    /// One slot, which is waited for until a call's own deadline: what holds it may be waiting for a person.
    pub(super) fn of_one() -> Self {
        Self {
            patience: None,
            ..Self::new(1, QueueBounds::default())
        }
    }

    /// Calls in flight now.
    pub(super) fn taken(&self) -> usize {
        self.slots.taken()
    }

    /// Calls that wait now.
    pub(super) fn waiting(&self) -> usize {
        self.slots.waiting()
    }

    /// How long a call waits at most; nothing where only its deadline says.
    pub(super) const fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// Calls that may be in flight.
    pub(super) const fn most(&self) -> usize {
        self.room.seats
    }

    /// A share.
    ///
    /// # Errors
    /// [`UpstreamError::Overloaded`] when the queue is full (128 calls by default) and this principal has no fewer calls in it
    /// than any other, after the configured queue time (default 2 s; none where a person is waited for), or at `deadline`.
    pub(super) async fn enter(
        &self,
        who: &Principal,
        deadline: Instant,
    ) -> Result<CallSlot, UpstreamError> {
        match self.slots.try_take(self.room) {
            Some(slot) => Ok(slot),
            None => Box::pin(self.queue(who, deadline)).await,
        }
    }

    async fn queue(&self, who: &Principal, deadline: Instant) -> Result<CallSlot, UpstreamError> {
        let until = match self.patience {
            Some(patience) => deadline.min(Instant::now() + patience),
            None => deadline,
        };
        self.slots
            .take(who, self.room, until)
            .await
            .map_err(|full| {
                metrics::reached(match full {
                    Full::Line => self.bound,
                    Full::Time => Bound::QueueTime,
                });
                UpstreamError::Overloaded
            })
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, Uri};

    use super::*;
    use crate::{
        fetch::Address,
        upstream::{
            scripted::{a_pipe, an_address, terms},
            spec::{
                ClientAuth, Grant, GrantSpec, HttpSpec, ListsAs, ServerSpec, SubjectType,
                TokenEndpoint,
            },
        },
    };

    fn with(change: impl FnOnce(&mut HttpSpec)) -> UpstreamSpec {
        let mut spec = an_address();
        if let Endpoint::Http(http) = &mut spec.endpoint {
            change(http);
        }
        spec
    }

    fn granted(grant: Grant) -> UpstreamSpec {
        let at = Address::configured("http://127.0.0.1:1/token", false).unwrap();
        let grant = GrantSpec {
            grant,
            server: ServerSpec {
                token_endpoint: TokenEndpoint::Url(at),
                client_id: "usher".into(),
                client_secret: "secret".into(),
                client_auth: ClientAuth::Basic,
            },
            resource: "https://files.example/mcp".into(),
            audience: None,
            scopes: Vec::new(),
            lists: ListsAs::Principal,
            ca: None,
        };
        with(|http| http.grant = Some(Box::new(grant)))
    }

    /// PROTOCOL F9
    #[test]
    fn who_has_a_name_is_one_with_all_others_where_what_is_sent_is_the_same_for_all() {
        let anybody = Identity::anonymous();
        let ana = Identity::named(IdentityKind::User, "ana");
        let header = || (HeaderName::from_static("x-key"), "k".into());
        let theirs = Grant::TokenExchange {
            subject: SubjectType::AccessToken,
        };
        let told = UpstreamSpec {
            url_elicitation: UrlElicitation::Shared,
            ..with(|http| http.headers = vec![header()])
        };
        for (spec, one_for_all) in [
            (an_address(), false),
            (a_pipe(), true),
            (with(|http| http.headers = vec![header()]), true),
            (
                with(|http| http.url = Uri::from_static("http://127.0.0.1/mcp?key=k")),
                true,
            ),
            (granted(Grant::ClientCredentials), true),
            (granted(theirs), false),
            (told, false),
        ] {
            let terms = terms(&spec);
            assert_eq!(terms.is_one_for_all(&ana), one_for_all, "{spec:?}");
            assert!(!terms.is_one_for_all(&anybody), "{spec:?}");
        }
    }

    const QUEUE: QueueBounds = QueueBounds {
        length: 128,
        time: Duration::from_secs(2),
        in_flight: 1_024,
    };

    fn somebody() -> Principal {
        Principal::anonymous()
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_gate_lets_callers_wait_two_seconds_and_then_refuses() {
        let queue = CallQueue::new(1, QUEUE);
        let held = queue.enter(&somebody(), far()).await.unwrap();
        let began = Instant::now();
        assert!(matches!(
            queue.enter(&somebody(), far()).await,
            Err(UpstreamError::Overloaded)
        ));
        assert_eq!(began.elapsed(), QUEUE.time);
        drop(held);
        assert!(queue.enter(&somebody(), far()).await.is_ok());
        assert_eq!(queue.slots.waiting(), 0);
    }

    /// How many of so many calls at once are seated, and how many wait.
    async fn fill(queue: &CallQueue, calls: usize) -> (usize, usize) {
        let who = somebody();
        let mut all: Vec<_> = (0..calls)
            .map(|_| Box::pin(queue.enter(&who, far())))
            .collect();
        let mut kept = Vec::new();
        for call in &mut all {
            if let std::task::Poll::Ready(Ok(slot)) = futures_util::poll!(call.as_mut()) {
                kept.push(slot);
            }
        }
        (queue.slots.taken(), queue.slots.waiting())
    }

    #[tokio::test(start_paused = true)]
    async fn the_129th_in_the_queue_is_refused_at_once() {
        for (calls, waiting) in [(128, 127), (129, 128), (130, 128)] {
            let queue = CallQueue::new(1, QUEUE);
            assert_eq!(fill(&queue, calls).await, (1, waiting));
        }
        let queue = CallQueue::new(1, QUEUE);
        let _held = queue.enter(&somebody(), far()).await.unwrap();
        let who = somebody();
        let mut waiters: Vec<_> = (0..128)
            .map(|_| Box::pin(queue.enter(&who, far())))
            .collect();
        for waiter in &mut waiters {
            assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        }
        let began = Instant::now();
        assert!(matches!(
            queue.enter(&somebody(), far()).await,
            Err(UpstreamError::Overloaded)
        ));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_are_in_flight_too_and_no_more_than_1024_are() {
        for (calls, waiting) in [(1_023, 23), (1_024, 24), (1_025, 24)] {
            let queue = CallQueue::new(1_000, QUEUE);
            assert_eq!(fill(&queue, calls).await, (1_000, waiting));
        }
        let queue = CallQueue::new(2_000, QUEUE);
        assert_eq!(fill(&queue, 1_025).await, (1_024, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn one_principal_that_floods_an_upstream_leaves_others_their_turns() {
        let queue = CallQueue::new(1, QUEUE);
        let (loud, quiet) = (Principal::new("loud"), Principal::new("quiet"));
        let held = queue.enter(&loud, far()).await.unwrap();
        let mut flood: Vec<_> = (0..400)
            .map(|_| Box::pin(queue.enter(&loud, far())))
            .collect();
        for call in &mut flood {
            drop(futures_util::poll!(call.as_mut()));
        }
        let mut one = Box::pin(queue.enter(&quiet, far()));
        assert!(futures_util::poll!(one.as_mut()).is_pending());
        // The loud one's turn was first, and then it is the quiet one's.
        drop(held);
        let mut turns = 0;
        for call in &mut flood {
            if let std::task::Poll::Ready(Ok(slot)) = futures_util::poll!(call.as_mut()) {
                turns += 1;
                drop(slot);
                break;
            }
        }
        assert_eq!(turns, 1);
        assert!(one.await.is_ok());
    }
}
