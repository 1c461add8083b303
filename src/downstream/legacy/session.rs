//! One session: who speaks and how, what runs, what is listened for, what is still to be said.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use aws_lc_rs::digest::{SHA256, digest};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    SessionBounds, asks::Asks, flights::Flights, outbox, outbox::Outbox,
    subscriptions::Subscriptions,
};
use crate::{
    call::{Call, CallId, Caller, Identity, LogLevel, Op, Owner, Principal, Trail},
    events::Pages,
    json::Json,
    metrics::Bound,
    protocol::{Revision, names::Scope},
    tasks::clock,
};

/// Bytes of a digest that tell one session from another.
const REFERENCE_BYTES: usize = 8;

/// What operators see of one session.
#[derive(Debug, Clone)]
pub struct SessionSeen {
    /// What it is known by here: 16 hexadecimal digits. Not its id, which is the client's secret.
    pub reference: String,
    /// Whose it is.
    pub principal: Principal,
    /// Under which name policies know them.
    pub name: Arc<str>,
    /// The revision agreed on.
    pub revision: Revision,
    /// The endpoint it was opened at.
    pub scope: Scope,
    /// Since it was opened.
    pub age: Duration,
    /// Since it was used last.
    pub idle: Duration,
    /// Requests that run.
    pub running: usize,
    /// Event streams that are read.
    pub streams: usize,
    /// Resources that it watches.
    pub subscriptions: usize,
    /// Whether it is a pipe's, and has no age.
    pub piped: bool,
}

/// What all sessions of a process share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outboxes: Arc<outbox::Shared>,
    pub(super) pages: Arc<Pages>,
}

/// One session.
#[derive(Debug)]
pub(in crate::downstream) struct Session {
    /// 128 random bits in hexadecimal.
    pub(in crate::downstream) id: Arc<str>,
    /// The revision agreed on.
    pub(in crate::downstream) revision: Revision,
    /// Whose it is: whoever opened it, where they did.
    pub(super) owner: Owner,
    /// Who proved to be its principal last.
    identity: ArcSwap<Identity>,
    /// Counts up when that brings other rights.
    proved: watch::Sender<u64>,
    /// Cancelled when the session ends.
    pub(in crate::downstream) ended: CancellationToken,
    /// What it has to say of its own accord, and what of its streams can be told again.
    pub(super) outbox: Outbox,
    /// What its client has been asked and not answered.
    pub(in crate::downstream) asks: Asks,
    /// Where pages are known that clients of all sessions were sent to.
    pub(super) pages: Arc<Pages>,
    /// What runs.
    pub(super) flights: Flights,
    /// Watched resources.
    pub(super) subscriptions: Subscriptions,
    /// Whether it already hears of changed lists.
    pub(super) listening: AtomicBool,
    /// Who speaks and how, with the log level last asked for: read by each call, written by `logging/setLevel`.
    caller: ArcSwap<Caller>,
    born: Instant,
    /// Milliseconds from `born` to the last use.
    used: AtomicU64,
    /// It ends with its pipe and not by age.
    piped: bool,
}

impl Session {
    pub(super) fn new(
        id: Arc<str>,
        caller: Caller,
        identity: Arc<Identity>,
        ended: CancellationToken,
        scope: Scope,
        shared: &Shared,
        piped: bool,
    ) -> Self {
        let payer = identity.payer();
        Self {
            id,
            revision: caller.revision,
            owner: Owner::of(&identity, &scope),
            identity: ArcSwap::new(identity),
            proved: watch::Sender::new(0),
            ended,
            outbox: Outbox::new(shared.outboxes.clone(), payer),
            pages: shared.pages.clone(),
            asks: Asks::default(),
            flights: Flights::default(),
            subscriptions: Subscriptions::default(),
            listening: AtomicBool::new(false),
            caller: ArcSwap::from_pointee(caller),
            born: Instant::now(),
            used: AtomicU64::new(0),
            piped,
        }
    }

    /// A call of this session's client, or of the session's own.
    pub(super) fn call(
        &self,
        identity: &Arc<Identity>,
        op: Op,
        params: Json,
        time: Duration,
    ) -> Box<Call> {
        Box::new(Call {
            id: CallId::new(),
            op,
            params,
            caller: self.caller.load_full(),
            identity: identity.clone(),
            address: None,
            scope: self.owner.scope().clone(),
            resume: None,
            wants_progress: false,
            mirrored: None,
            unasked: false,
            stake: None,
            deadline: clock::now() + time,
            trail: Trail::NONE,
        })
    }

    /// Whether its client can send somebody to a page, by its revision and by what it declared.
    pub(in crate::downstream) fn shows_urls(&self) -> bool {
        self.caller.load().visits
    }

    /// Its principal has proved itself anew: what it does of its own accord, it does by this proof.
    pub(super) fn identified(&self, identity: &Arc<Identity>) {
        if self.identity.load().is_proof_of(identity) {
            return;
        }
        let before = self.identity.swap(identity.clone());
        if !before.has_the_rights_of(identity) {
            self.proved.send_modify(|count| *count += 1);
        }
    }

    /// Tells when its principal has other rights than at this moment.
    pub(super) fn proved_anew(&self) -> watch::Receiver<u64> {
        self.proved.subscribe()
    }

    /// By what proof it does what it does of its own accord.
    pub(super) fn identity(&self) -> Arc<Identity> {
        self.identity.load_full()
    }

    /// From now on calls ask for log lines of this level and above.
    pub(super) fn log_at(&self, level: LogLevel) {
        self.caller.rcu(|caller| Caller {
            log_level: Some(level),
            ..Caller::clone(caller)
        });
    }

    /// It was used just now.
    pub(super) fn touch(&self) {
        let used = u64::try_from(self.age().as_millis()).unwrap_or(u64::MAX);
        self.used.store(used, Ordering::Relaxed);
    }

    /// For how long it is open.
    pub(super) fn age(&self) -> Duration {
        clock::since(self.born)
    }

    /// Whether its time has come: too old, or idle for too long with nothing running and nobody reading.
    pub(super) fn is_over(&self, bounds: &SessionBounds, now: Instant) -> Option<Bound> {
        if self.piped {
            return None;
        }
        let age = now.duration_since(self.born);
        let used = Duration::from_millis(self.used.load(Ordering::Relaxed));
        let idle = age.saturating_sub(used) >= bounds.idle
            && self.flights.is_empty()
            && !self.outbox.is_read();
        if age >= bounds.absolute {
            return Some(Bound::SessionAbsolute);
        }
        idle.then_some(Bound::SessionIdle)
    }

    /// For how long nobody has used it, if nothing runs in it, nobody reads it and it watches nothing: its client may be gone.
    pub(super) fn is_left_for(&self, now: Instant) -> Option<Duration> {
        let left = !self.piped
            && self.flights.is_empty()
            && !self.outbox.is_read()
            && self.subscriptions.count() == 0;
        let used = Duration::from_millis(self.used.load(Ordering::Relaxed));
        left.then(|| now.duration_since(self.born).saturating_sub(used))
    }

    /// What operators see of it.
    pub(super) fn seen(&self) -> SessionSeen {
        let age = self.age();
        let used = Duration::from_millis(self.used.load(Ordering::Relaxed));
        let identity = self.identity();
        SessionSeen {
            reference: self.reference(),
            principal: self.owner.principal().clone(),
            name: identity.name.clone(),
            revision: self.revision,
            scope: self.owner.scope().clone(),
            age,
            idle: age.saturating_sub(used),
            running: self.flights.count(),
            streams: self.outbox.readers(),
            subscriptions: self.subscriptions.count(),
            piped: self.piped,
        }
    }

    /// What operators know it by. Its id is the client's secret, and cannot be found from this: it is random.
    pub(super) fn reference(&self) -> String {
        let digest = digest(&SHA256, self.id.as_bytes());
        let bytes = digest.as_ref().iter().take(REFERENCE_BYTES);
        bytes.fold(String::new(), |mut text, byte| {
            _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Ends everything of it.
    pub(super) fn end(&self) {
        // First the requests, so that nobody drives their streams on.
        self.flights.close();
        self.outbox.close();
        // Before what is subscribed to is forgotten, so that nothing more comes to it afterwards.
        self.ended.cancel();
        self.subscriptions.clear();
    }

    #[cfg(test)]
    pub(in crate::downstream) fn for_tests() -> Arc<Self> {
        use crate::{call::Affinity, protocol::ClientCapabilities};

        let caller = Caller {
            principal: Principal::anonymous(),
            revision: Revision::V2025_11_25,
            capabilities: ClientCapabilities::NONE,
            log_level: None,
            visits: false,
            affinity: Affinity {
                key: "s".into(),
                ended: None,
            },
        };
        let ended = CancellationToken::new();
        Arc::new(Self::new(
            "s".into(),
            caller,
            Identity::anonymous(),
            ended,
            Scope::All,
            &Shared {
                outboxes: Arc::new(outbox::Shared::keeping(outbox::Room {
                    notices: 256,
                    bytes: 1 << 20,
                    watched: 256,
                })),
                pages: Arc::default(),
            },
            false,
        ))
    }
}
