//! Sessions by key: who may share one, when one is opened, when it is closed (PRODUCT 6).
//!
//! Guarantees: two keys never share a session; a session is opened once however many wait for it, and closed when its
//! key's owner ends, after 15 idle minutes, or with the pool. Bounds: 10,000 HTTP sessions; 32 processes or event streams, of
//! which, once half are taken, [`OF_ONE`] are one principal's. A key beyond them is refused, unless a process or stream has had nothing to do for
//! [`SPARED`] and gives way; never one on which a call is under way.

use std::{
    sync::{
        Arc, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use dashmap::{DashMap, Entry};
use futures_util::future::join_all;
use hashbrown::DefaultHashBuilder;
use tokio::{
    sync::{Mutex, OwnedMutexGuard, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::session::{Proposal, Session};
use crate::{
    call::{Identity, Principal},
    events::Lists,
    tasks::{Tasks, clock},
    upstream::{
        Deadline, UpstreamError, asking::Offer, card_cache::CardCache, connector::Connector,
        health::Backoff, line::Wire, spec::HttpTransport, terms::Terms,
    },
};

/// The most HTTP sessions of one upstream, beside the service session.
const HTTP_SESSIONS: usize = 10_000;
/// The most processes or event streams of one upstream, beside the service one.
const OWN_TRANSPORTS: usize = 32;
/// The most of them that are one principal's once half of all are taken: nobody keeps everybody else out, and who is alone has
/// room. Whoever is not asked for a name may be many people, and has what there is.
const OF_ONE: usize = OWN_TRANSPORTS / 4;
/// What was used so lately gives way to nobody: to be ended and begun by turns would help none of those who take turns.
const SPARED: Duration = Duration::from_secs(60);
/// A session unused for this long is closed.
const IDLE: Duration = Duration::from_secs(15 * 60);
/// A process that lived shorter than this is not started again at once.
const SHORT: Duration = Duration::from_secs(60);
/// How soon a slot has lists read again that were read again because of it, in milliseconds.
const AGAIN: u64 = 60_000;
/// How often idleness is looked at.
const SWEEP: Duration = Duration::from_secs(60);

/// How further sessions are opened.
pub(in crate::upstream) enum Opener {
    /// On the same wire: Streamable HTTP.
    Shared(Arc<Wire>),
    /// Each on a transport of its own: a process, an event stream.
    Own(Arc<dyn Connector>, HttpTransport),
}

/// What a pool opens its sessions with.
pub(super) struct Opening {
    pub(super) opener: Opener,
    pub(super) proposal: Proposal,
    pub(super) terms: Arc<Terms>,
    /// What the first session was opened on. It is in doubt where a session could not be opened, as where the handshake is no
    /// longer spoken.
    pub(super) wire: Arc<Wire>,
    /// What the server said of itself when the gateway's own session was opened last.
    pub(super) card_cache: CardCache,
}

impl Opening {
    async fn open(
        &self,
        offer: Offer,
        service: bool,
        of_one: bool,
        behalf: Option<&Arc<Identity>>,
    ) -> Result<Session, UpstreamError> {
        let proposal = Proposal {
            service,
            of_one,
            ..self.proposal
        };
        let deadline = Instant::now() + self.terms.opening;
        let (wire, own) = match &self.opener {
            Opener::Shared(wire) => (Arc::clone(wire), false),
            Opener::Own(connector, http) => {
                let connecting = connector.connect(*http);
                let transport = tokio::time::timeout_at(deadline, connecting)
                    .await
                    .map_err(|_| UpstreamError::Timeout(Deadline::Connect))??;
                (Wire::new(transport, false), true)
            }
        };
        let behalf = behalf.filter(|_| !service);
        let opened = Session::open_for(behalf, &wire, proposal, offer, &self.terms, deadline).await;
        if opened.is_err() && own {
            wire.transport.close().await;
        }
        Ok(opened?)
    }

    pub(super) const fn owns_transports(&self) -> bool {
        matches!(self.opener, Opener::Own(..))
    }
}

/// Whose a session is: those who share it have one owner, and had the same declared for them (PROTOCOL D0.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    pub(super) owner: Arc<str>,
    pub(super) offer: Offer,
}

/// The place of one key's session.
pub(super) struct Slot {
    /// What is declared on its sessions.
    offer: Offer,
    /// Whose share it counts against, if anybody's.
    whose: Option<Principal>,
    live: ArcSwapOption<Session>,
    /// Held while a session is opened, so that it is opened once; remembers how that went.
    opening: Arc<Mutex<Attempts>>,
    began: Instant,
    /// Whether tasks were begun on it, which may go on where nobody asks for them.
    runs_tasks: AtomicBool,
    /// When it was last used, in milliseconds since it began.
    used: AtomicU64,
    /// Cancelled when the slot is given up.
    retired: CancellationToken,
    /// When its lists were to be read again because of it, in milliseconds since it began.
    rang: AtomicU64,
    /// Whether they are to be read again when a minute is over since then.
    owed: Arc<AtomicBool>,
    /// Whether its session is the gateway's own.
    service: bool,
    /// Whether its session is one caller's: a client's own, or those of somebody who is known by name.
    of_one: bool,
}

struct Attempts {
    backoff: Backoff,
    /// The last failure, and until when it is the answer.
    failed: Option<(UpstreamError, Instant)>,
    /// When the last session was opened.
    opened: Option<Instant>,
}

impl Slot {
    fn new(
        offer: Offer,
        whose: Option<Principal>,
        service: bool,
        of_one: bool,
        terms: &Terms,
    ) -> Arc<Self> {
        Arc::new(Self {
            offer,
            whose,
            live: ArcSwapOption::empty(),
            opening: Arc::new(Mutex::new(Attempts {
                backoff: terms.backoff(),
                failed: None,
                opened: None,
            })),
            began: clock::now(),
            runs_tasks: AtomicBool::new(false),
            used: AtomicU64::new(0),
            retired: CancellationToken::new(),
            rang: AtomicU64::new(u64::MAX),
            owed: Arc::default(),
            service,
            of_one,
        })
    }

    /// The slot of the gateway's own session.
    pub(super) fn with(session: Arc<Session>) -> Arc<Self> {
        let line = &session.line;
        let slot = Self::new(line.offer, None, true, false, &line.terms);
        slot.live.store(Some(session));
        slot
    }

    /// The session; opened first where there is none.
    ///
    /// # Errors
    /// What opening failed with; right away while the wait after a failure is not over.
    pub(super) async fn session(
        self: &Arc<Self>,
        opening: &Arc<Opening>,
        behalf: Option<&Arc<Identity>>,
    ) -> Result<Arc<Session>, UpstreamError> {
        if let Some(session) = self.usable() {
            return Ok(session);
        }
        let guard = Arc::clone(&self.opening).lock_owned().await;
        if let Some(session) = self.usable() {
            return Ok(session);
        }
        if self.retired.is_cancelled() {
            return Err(given_up());
        }
        if let Some((error, until)) = &guard.failed
            && clock::now() < *until
        {
            return Err(error.unsent(*until));
        }
        // The handshake runs to its end even when the caller who needed it goes away: half a handshake helps nobody.
        let (done, outcome) = oneshot::channel();
        let (slot, opening) = (Arc::clone(self), Arc::clone(opening));
        let behalf = behalf.map(Arc::clone);
        let tasks = opening.terms.tasks.clone();
        tasks.spawn(async move {
            let opened = slot.open(&opening, behalf.as_ref(), guard).await;
            drop(done.send(opened));
        });
        outcome
            .await
            .unwrap_or_else(|_| Err(UpstreamError::unreached("closed")))
    }

    async fn open(
        &self,
        opening: &Arc<Opening>,
        behalf: Option<&Arc<Identity>>,
        mut attempts: OwnedMutexGuard<Attempts>,
    ) -> Result<Arc<Session>, UpstreamError> {
        if let Some(lived) = attempts.opened.take().map(|opened| opened.elapsed())
            && opening.owns_transports()
        {
            attempts.backoff.ended_after(lived);
            if lived < SHORT {
                let until = Instant::now() + attempts.backoff.wait();
                let error = UpstreamError::unreached("its process ended soon after it began");
                let error = error.unsent(until);
                attempts.failed = Some((error.clone(), until));
                return Err(error);
            }
        }
        match opening
            .open(self.offer, self.service, self.of_one, behalf)
            .await
        {
            Ok(session) => {
                let session = Arc::new(session);
                if opening.owns_transports() {
                    // Its process may end; then the session is gone.
                    let wire = Arc::clone(&session.line.wire);
                    let (gone, upstream) = (session.gone.clone(), opening.terms.id.clone());
                    opening.terms.tasks.spawn(async move {
                        tokio::select! {
                            error = wire.transport.lost() => {
                                tracing::info!(%upstream, %error, "a session's transport is lost");
                                gone.cancel();
                            }
                            () = gone.cancelled() => {}
                        }
                    });
                }
                attempts.opened = Some(Instant::now());
                attempts.failed = None;
                let differs = self.service && opening.card_cache.learn(session.card.clone());
                self.live.store(Some(Arc::clone(&session)));
                if self.retired.is_cancelled() {
                    self.live.store(None);
                    session.close(opening.owns_transports()).await;
                    return Err(given_up());
                }
                if differs {
                    tracing::info!(upstream = %opening.terms.id, "it says something else of itself now");
                    // Lists that it did not offer before were not asked for.
                    self.have_lists_read(&session);
                }
                Ok(session)
            }
            // Nothing was opened, and who logs in again is not to wait.
            Err(error @ UpstreamError::Credential(_)) => Err(error),
            Err(error) => {
                // Here and not where it is remembered: a refusal is one, however often its key comes back. What one key's own
                // process or stream refuses says nothing about the one that the peer stands on.
                if is_denial(&error) && (self.service || !opening.owns_transports()) {
                    opening.wire.doubt.cast();
                }
                let until = Instant::now() + attempts.backoff.wait();
                attempts.failed = Some((error.clone(), until));
                Err(error)
            }
        }
    }

    pub(super) fn usable(&self) -> Option<Arc<Session>> {
        self.live
            .load_full()
            .filter(|session| !session.gone.is_cancelled())
    }

    /// The session was found to be gone: the next call opens another. A server that began anew may offer other things, of which
    /// nobody told whom it did not know; so its lists are read again, as if it had told.
    pub(super) fn forget(&self, session: &Session) {
        session.gone.cancel();
        self.have_lists_read(session);
    }

    /// Has the lists read again of whom the session is. Once a minute at most: some forget each session soon, or refuse in these
    /// words what they do not like, or say something else of themselves with each.
    fn have_lists_read(&self, session: &Session) {
        let (now, rang) = (self.now(), self.rang.load(Ordering::Relaxed));
        if rang == u64::MAX || now >= rang.saturating_add(AGAIN) {
            self.rang.store(now, Ordering::Relaxed);
            session.line.changed(Lists::ALL);
        } else if !self.owed.swap(true, Ordering::Relaxed) {
            // The last of them counts most.
            let due = rang.saturating_add(AGAIN);
            self.rang.store(due, Ordering::Relaxed);
            let (line, owed) = (Arc::clone(&session.line), Arc::clone(&self.owed));
            let wait = Duration::from_millis(due - now);
            session.line.terms.tasks.spawn(async move {
                tokio::time::sleep(wait).await;
                owed.store(false, Ordering::Relaxed);
                line.changed(Lists::ALL);
            });
        }
    }

    /// A task is begun on it.
    pub(super) fn runs_tasks(&self) {
        self.runs_tasks.store(true, Ordering::Relaxed);
    }

    /// A session of it is used again.
    pub(super) fn touch(&self) {
        self.used.store(self.now(), Ordering::Relaxed);
    }

    /// In milliseconds since it began.
    fn now(&self) -> u64 {
        u64::try_from(clock::since(self.began).as_millis()).unwrap_or(u64::MAX)
    }

    /// For how long it was not used.
    fn unused(&self) -> Duration {
        let used = Duration::from_millis(self.used.load(Ordering::Relaxed));
        clock::since(self.began).saturating_sub(used)
    }

    /// Gives the slot up and closes its session.
    pub(super) async fn retire(&self, owns_transport: bool) {
        self.retired.cancel();
        if let Some(session) = self.live.swap(None) {
            session.close(owns_transport).await;
        }
    }
}

/// The slots of keyed sessions.
pub(super) struct Pool {
    slots: DashMap<SessionKey, Arc<Slot>, DefaultHashBuilder>,
    opening: Arc<Opening>,
    bound: usize,
    /// Held while a slot is added, so that the bounds hold.
    adding: std::sync::Mutex<()>,
    tasks: Tasks,
}

impl Pool {
    /// An empty pool, swept once a minute.
    pub(super) fn new(opening: Arc<Opening>) -> Arc<Self> {
        let tasks = opening.terms.tasks.child();
        let bound = if opening.owns_transports() {
            OWN_TRANSPORTS
        } else {
            HTTP_SESSIONS
        };
        let pool = Arc::new(Self {
            slots: DashMap::default(),
            opening,
            bound,
            adding: std::sync::Mutex::default(),
            tasks: tasks.clone(),
        });
        let weak = Arc::downgrade(&pool);
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(pool) = Weak::upgrade(&weak) else {
                    return;
                };
                pool.sweep().await;
            }
        });
        pool
    }

    /// The slot of `key`, which counts against the share of `whose`. With `ended`, the slot is given up when that fires.
    ///
    /// # Errors
    /// [`UpstreamError::Overloaded`] when there is no room for another key, [`UpstreamError::Unavailable`] when the pool is
    /// closed.
    pub(super) fn slot(
        self: &Arc<Self>,
        key: &SessionKey,
        whose: Option<&Principal>,
        ended: Option<&CancellationToken>,
    ) -> Result<Arc<Slot>, UpstreamError> {
        // The time is written while the map's shard is locked, so that a sweep sees it.
        if let Some(slot) = self.slots.get(key) {
            slot.touch();
            return Ok(Arc::clone(&slot));
        }
        let whose = whose.filter(|whose| **whose != Principal::anonymous());
        // Nothing panics under the lock, and it protects no data.
        let one = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.slots.contains_key(key) {
            self.make_room(whose)?;
        }
        let slot = match self.slots.entry(key.clone()) {
            Entry::Occupied(entry) => {
                entry.get().touch();
                return Ok(Arc::clone(entry.get()));
            }
            // Asked while the shard is locked, so that who closes the pool finds every slot.
            Entry::Vacant(_) if self.tasks.token().is_cancelled() => {
                return Err(given_up());
            }
            Entry::Vacant(entry) => {
                let of_one = whose.is_some() || ended.is_some();
                let terms = &self.opening.terms;
                let slot = Slot::new(key.offer, whose.cloned(), false, of_one, terms);
                entry.insert(Arc::clone(&slot));
                slot
            }
        };
        drop(one);
        if let Some(ended) = ended {
            let (ended, retired) = (ended.clone(), slot.retired.clone());
            let (weak, key) = (Arc::downgrade(self), key.clone());
            self.tasks.spawn(async move {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = retired.cancelled() => return,
                }
                if let Some(pool) = Weak::upgrade(&weak)
                    && let Some((_, slot)) = pool.slots.remove(&key)
                {
                    slot.retire(pool.opening.owns_transports()).await;
                }
            });
        }
        Ok(slot)
    }

    /// Sees to it that there is room for one more of `whose`.
    ///
    /// # Errors
    /// [`UpstreamError::Overloaded`] when there is not, and nothing gives way.
    fn make_room(&self, whose: Option<&Principal>) -> Result<(), UpstreamError> {
        let full = self.slots.len() >= self.bound;
        // Of sessions that cost us next to nothing there are so many that to look through them would cost more.
        let has_room = if !self.opening.owns_transports() {
            !full
        } else if let Some(whose) = whose
            && 2 * self.slots.len() >= self.bound
            && self.count_of(whose) >= OF_ONE
        {
            self.let_one_go(|slot| slot.whose.as_ref() == Some(whose))
        } else {
            !full || self.let_one_go(|_| true)
        };
        if has_room {
            Ok(())
        } else {
            Err(UpstreamError::Overloaded)
        }
    }

    fn count_of(&self, whose: &Principal) -> usize {
        let theirs = self.slots.iter();
        theirs
            .filter(|slot| slot.whose.as_ref() == Some(whose))
            .count()
    }

    /// Gives up the slot that was used least lately, of those that `may` be given up and with which nobody has anything to do.
    fn let_one_go(&self, may: impl Fn(&Slot) -> bool) -> bool {
        // Whoever opens its session, has a call on it, be it one that waits for a person, or listens on it, holds the slot.
        // So does a task that was given to its caller, who may come for it seldom.
        let idle = |slot: &Arc<Slot>| {
            let spared = if slot.runs_tasks.load(Ordering::Relaxed) {
                IDLE
            } else {
                SPARED
            };
            Arc::strong_count(slot) == 1 && slot.unused() >= spared
        };
        loop {
            let oldest = self
                .slots
                .iter()
                .filter(|slot| idle(slot) && may(slot))
                .max_by_key(|slot| slot.unused());
            let Some(key) = oldest.map(|slot| slot.key().clone()) else {
                return false;
            };
            // Unless somebody came for it at the last moment.
            if let Some((_, slot)) = self.slots.remove_if(&key, |_, slot| idle(slot)) {
                let owns = self.opening.owns_transports();
                let retiring = async move { slot.retire(owns).await };
                self.opening.terms.tasks.spawn(retiring);
                return true;
            }
        }
    }

    async fn sweep(&self) {
        let idle = |slot: &Arc<Slot>| {
            // Whoever has a call on it, or listens on it, holds it.
            let asking = Arc::strong_count(slot) > 1
                || slot.usable().is_some_and(|session| session.is_asking());
            slot.unused() >= IDLE && !asking
        };
        let keys: Vec<_> = self
            .slots
            .iter()
            .filter(|entry| idle(entry.value()))
            .map(|entry| entry.key().clone())
            .collect();
        let swept = keys
            .iter()
            .filter_map(|key| self.slots.remove_if(key, |_, slot| idle(slot)))
            .map(|(_, slot)| slot);
        self.retire_all(swept.collect()).await;
    }

    async fn retire_all(&self, slots: Vec<Arc<Slot>>) {
        let owns = self.opening.owns_transports();
        join_all(slots.iter().map(|slot| slot.retire(owns))).await;
    }

    /// Closes every session, and takes no more.
    pub(super) async fn close(&self) {
        self.tasks.stop();
        let keys: Vec<_> = self.slots.iter().map(|entry| entry.key().clone()).collect();
        let slots = keys
            .iter()
            .filter_map(|key| self.slots.remove(key))
            .map(|(_, slot)| slot)
            .collect();
        self.retire_all(slots).await;
    }

    /// How many keys have a slot.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// Whether this is how a server may refuse a handshake that it does not know.
const fn is_denial(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::Refused(_) | UpstreamError::Protocol(_) | UpstreamError::Status(_)
    )
}

/// For whom comes to a slot or a pool that is closed: nothing is sent, and no connection failed.
fn given_up() -> UpstreamError {
    UpstreamError::unreached("its owner ended").unsent(Instant::now())
}
