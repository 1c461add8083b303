//! Keeps one upstream connected, and tells what it offers.
//!
//! Guarantees: nothing here holds up another upstream or a call; a list that fails keeps its last good value; what is listed of
//! an upstream that is away is marked at once and gone after `stale_for`; attempts are spaced (SECURITY 6), and so are
//! readings because of changes, of which the first is immediate (CAT-6); where there is doubt how it is spoken to nothing
//! ends until that is found to be another way; the end is orderly.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::future::{OptionFuture, join_all};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    CredentialError, Peer, Reached, UpstreamError,
    bell::Spacing,
    connector::Connector,
    credentials::Credentials,
    health::{Backoff, Pause, jittered},
    probe::Probe,
    shared::{Being, Presence, Shared},
    sink::Sink,
    spec::Endpoint,
};
use crate::{
    catalog::Contribution,
    events::Lists,
    metrics::{Bound, reached},
    protocol::{UpstreamId, methods::ListKind},
};

/// The shortest time between two reads of a list that was said to have changed.
pub(super) const COALESCE: Duration = Duration::from_secs(2);
/// The shortest time between two reads that a time to live asks for, and the first wait after a list failed.
const SOONEST: Duration = Duration::from_secs(5);
/// How long it is waited for somebody whose token an upstream is asked with that answers to nobody without one.
const LENDING: Duration = Duration::from_secs(60);
/// How long an orderly end of a peer may take, and of its tasks after that.
const ENDING: Duration = Duration::from_secs(8);

/// The supervisor of one upstream.
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    probe: Probe,
    board: Board,
    backoff: Backoff,
    current: Option<Arc<dyn Peer>>,
    /// Whether the upstream answers to nobody without a token, so that there is nothing to read for everybody.
    closed: bool,
    /// How long doubts about the era wait, over all peers: two servers of two eras may stand behind one address.
    doubts: Pause,
}

/// How serving with a peer ended.
enum End {
    /// It can serve no more.
    Lost(UpstreamError),
    /// The server is spoken to in another way now, as by this one; whether that answers to nobody without a token.
    Other(Arc<dyn Peer>, bool),
}

/// How a read of the lists went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    Whole,
    /// Some list failed and kept its last value.
    Partly,
    /// None was answered in time.
    Silent,
    /// None could be reached.
    Unreachable,
    /// It shows them to nobody without a token.
    Closed,
}

impl Supervisor {
    /// Begins with nothing.
    pub(super) fn new(
        shared: Arc<Shared>,
        connector: Arc<dyn Connector>,
        sink: Arc<dyn Sink>,
    ) -> Self {
        let probe = Probe::new(shared.spec.clone(), connector, Arc::clone(&shared.terms));
        Self {
            board: Board {
                id: shared.spec.id.clone(),
                stale_for: shared.spec.stale_for,
                sink,
                known: Contribution::default(),
                stale_at: None,
                own: (shared.terms.credentials.as_ref()).is_some_and(Credentials::lists_are_own),
            },
            backoff: shared.terms.backoff(),
            shared,
            probe,
            current: None,
            closed: false,
            doubts: Pause::default(),
        }
    }

    /// Works until `stop`, then ends everything.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.live() => {}
        }
        self.be(Being::Away { retry_at: None }, None);
        self.shared.settled.cancel();
        if let Some(peer) = self.current.take() {
            drop(timeout(ENDING, peer.close()).await);
        }
        drop(timeout(ENDING, self.shared.terms.tasks.clone().finish()).await);
        self.shared.closed.cancel();
    }

    /// Works as operators wish.
    async fn live(&mut self) {
        let mut wishes = self.shared.wishes.subscribe();
        loop {
            if wishes.borrow_and_update().off {
                self.rest();
                while wishes.borrow_and_update().off {
                    drop(wishes.changed().await);
                }
                self.be(Being::Connecting, None);
            }
            tokio::select! {
                biased;
                // The sender is as old as this.
                _ = wishes.changed() => {}
                () = self.keep() => {}
            }
            tracing::info!(upstream = %self.shared.spec.id, "an operator wants it another way");
            if self.shared.is_ready() {
                self.shared.terms.desk.lost();
            }
            let peer = self.current.take();
            let error = UpstreamError::unreached("restarted by an operator");
            self.gone(error, Instant::now());
            self.probe.forget();
            self.backoff = self.shared.terms.backoff();
            // Two of it at once might stand in each other's way.
            if let Some(peer) = peer {
                drop(timeout(ENDING, peer.close()).await);
            }
        }
    }

    /// Nothing of it is used any more.
    fn rest(&mut self) {
        self.be(
            Being::Disabled,
            Some(UpstreamError::unreached("disabled by an operator")),
        );
        if let Some(credentials) = &self.shared.terms.credentials {
            credentials.loan().forget();
        }
        self.shared.terms.desk.away();
        self.board.withdrawn();
        self.shared.settled.cancel();
        tracing::info!(upstream = %self.shared.spec.id, "upstream is disabled");
    }

    /// Keeps it connected. Ends only by being dropped.
    async fn keep(&mut self) {
        let mut other = None;
        loop {
            let peer = match other.take() {
                Some(peer) => peer,
                None => self.connect().await,
            };
            let began = Instant::now();
            if let Some(before) = self.current.replace(Arc::clone(&peer)) {
                self.dismiss(before);
            }
            self.shared.circuit.reset();
            self.be(Being::Ready(Arc::clone(&peer)), None);
            tracing::info!(upstream = %self.shared.spec.id, revision = %peer.card().revision, "upstream is there");
            self.shared.terms.desk.begin();
            let end = self.serve(&peer).await;
            self.shared.terms.desk.lost();
            let error = match end {
                End::Lost(error) => error,
                End::Other(peer, closed) => {
                    self.closed = closed;
                    other = Some(peer);
                    continue;
                }
            };
            self.backoff.ended_after(began.elapsed());
            tracing::warn!(upstream = %self.shared.spec.id, %error, "upstream is lost");
            let wait = self.backoff.wait();
            if matches!(error, UpstreamError::Protocol(_)) {
                self.probe.forget();
            }
            self.gone(error, Instant::now() + wait);
            self.board.meanwhile(sleep(wait)).await;
        }
    }

    /// Attempts, spaced, until one succeeds.
    async fn connect(&mut self) -> Arc<dyn Peer> {
        loop {
            if self.shared.settled.is_cancelled() {
                self.shared.restarts.fetch_add(1, Ordering::Relaxed);
            }
            let own = self.shared.terms.credentials.as_ref();
            let reaching = own.map(|own| own.loan().reach());
            let found = self.board.meanwhile(self.probe.peer()).await;
            self.closed = reaching.is_some_and(|reaching| reaching.done(found.is_ok()));
            let error = match found {
                Ok(peer) => return peer,
                Err(error) => error,
            };
            if matches!(error, UpstreamError::Timeout(_)) {
                reached(Bound::DeadlineConnect);
            }
            let wait = self.backoff.wait();
            tracing::warn!(upstream = %self.shared.spec.id, %error, "upstream cannot be reached");
            self.gone(error, Instant::now() + wait);
            self.shared.settled.cancel();
            let shared = Arc::clone(&self.shared);
            let wait = async {
                tokio::select! {
                    () = sleep(wait) => {}
                    () = shared.nudged.notified() => {}
                }
            };
            self.board.meanwhile(wait).await;
        }
    }

    /// Reads the lists now and then, and watches for changes, until the peer is lost, the circuit trips, or the server is found
    /// to speak in another way.
    async fn serve(&mut self, peer: &Arc<dyn Peer>) -> End {
        let (shared, closed) = (&*self.shared, self.closed);
        let board = &mut self.board;
        let serving = async {
            if closed {
                return board.stand_by(shared, peer).await;
            }
            let watch = async {
                peer.watch().await;
                std::future::pending().await
            };
            tokio::select! {
                error = board.read_on(shared, peer) => error,
                never = watch => never,
            }
        };
        let doubting = Doubting {
            shared,
            probe: &mut self.probe,
            peer,
            pause: &mut self.doubts,
            closed,
        };
        tokio::select! {
            biased;
            error = serving => End::Lost(error),
            end = doubting.settle() => end,
        }
    }

    /// The upstream is away: calls fail from now on, and what is listed is marked.
    fn gone(&mut self, error: UpstreamError, retry_at: Instant) {
        let retry_at = Some(retry_at);
        self.be(Being::Away { retry_at }, Some(error));
        self.shared.terms.desk.away();
        if let Some(peer) = self.current.take() {
            self.dismiss(peer);
        }
        self.board.away();
    }

    fn be(&self, state: Being, error: Option<UpstreamError>) {
        let before = self.shared.presence.load();
        let same = matches!(
            (&before.state, &state),
            (Being::Away { .. }, Being::Away { .. })
        );
        let since = if same { before.since } else { Instant::now() };
        let error = error.or_else(|| before.error.clone());
        self.shared.presence.store(Arc::new(Presence {
            state,
            since,
            error,
        }));
        self.shared.changed.notify_waiters();
    }

    /// Ends a peer that serves no more, beside everything else.
    fn dismiss(&self, peer: Arc<dyn Peer>) {
        dismiss(&self.shared, peer);
    }
}

fn dismiss(shared: &Shared, peer: Arc<dyn Peer>) {
    shared.terms.tasks.spawn(async move {
        drop(timeout(ENDING, peer.close()).await);
    });
}

/// Finds out again what a server speaks whenever there is doubt, beside everything else that goes on with it.
struct Doubting<'a> {
    shared: &'a Shared,
    probe: &'a mut Probe,
    peer: &'a Arc<dyn Peer>,
    pause: &'a mut Pause,
    /// Whether it answers to nobody without a token.
    closed: bool,
}

impl Doubting<'_> {
    /// Asks anew at each doubt, spaced, and where what is known has grown old. As long as it is spoken to in the same way, the peer stays and with it all that is
    /// under way; what cannot be settled now is settled later (PROTOCOL C4).
    async fn settle(self) -> End {
        let (mut asked, mut doubted) = (Instant::now(), false);
        loop {
            if !doubted {
                let stale = OptionFuture::from(self.probe.stale_at().map(sleep_until));
                let stale = tokio::select! {
                    () = self.peer.doubted() => false,
                    Some(()) = stale => true,
                };
                if stale {
                    let own = self.shared.terms.credentials.as_ref();
                    let reaching = own.filter(|_| self.closed).map(|own| own.loan().reach());
                    if reaching.is_some() {
                        // It says nothing to nobody; somebody has to come with a token first.
                        sleep(LENDING).await;
                    }
                    let found = self.probe.upgraded().await;
                    let closed = reaching.is_some_and(|reaching| reaching.done(found.is_some()));
                    match found {
                        Some(other) => return End::Other(other, closed),
                        None => continue,
                    }
                }
            }
            if matches!(self.shared.spec.endpoint, Endpoint::Stdio(_)) {
                // It denied the era on its own pipe, and a second process might stand in the way of the first.
                let why = "it no longer speaks the era it was reached in";
                return End::Lost(UpstreamError::Protocol(why.into()));
            }
            let own = self.shared.terms.credentials.as_ref();
            // Where all are answered their lists are read meanwhile, with nobody's token.
            let reaching = own.filter(|_| self.closed).map(|own| own.loan().reach());
            sleep(self.pause.after(asked.elapsed())).await;
            self.probe.forget();
            let found = self.probe.peer().await;
            let closed = reaching.is_some_and(|reaching| reaching.done(found.is_ok()));
            asked = Instant::now();
            let id = &self.shared.spec.id;
            doubted = match found {
                Ok(other) if self.is_like(&*other) => {
                    dismiss(self.shared, other);
                    false
                }
                Ok(other) => return End::Other(other, closed),
                Err(error) if self.closed || self.answers().await => {
                    tracing::info!(upstream = %id, %error, "what it speaks cannot be found out");
                    true
                }
                Err(error) => return End::Lost(error),
            };
        }
    }

    /// Whether this one is spoken to in the same way. Where the revision is the same the HTTP transport may be another: what was
    /// moved from one to the other answers on the first no more.
    fn is_like(&self, other: &dyn Peer) -> bool {
        let way = |peer: &dyn Peer| (peer.card().revision, peer.is_streamable());
        way(other) == way(&**self.peer)
    }

    /// Whether the gateway's own conversation with it goes on.
    async fn answers(&self) -> bool {
        let offers = |kind: &ListKind| super::modern::offers(self.peer.card(), *kind);
        let Some(kind) = ListKind::EVERY.into_iter().find(offers) else {
            return true;
        };
        match self.peer.list(kind).await {
            Ok(_) => true,
            // It is asked with nobody's token: where each has their own, it has to be reached anew by somebody's.
            Err(UpstreamError::Auth(_) | UpstreamError::Credential(_)) => {
                let credentials = self.shared.terms.credentials.as_ref();
                !credentials.is_some_and(Credentials::lists_are_own)
            }
            Err(error) => {
                tracing::info!(upstream = %self.shared.spec.id, %error, "a list could not be read");
                false
            }
        }
    }
}

/// What is told of the upstream.
struct Board {
    id: UpstreamId,
    stale_for: Duration,
    sink: Arc<dyn Sink>,
    known: Contribution,
    /// When what is known of an upstream that is away is no longer told.
    stale_at: Option<Instant>,
    /// Whether each principal's lists are read with their own token, and nobody's with none.
    own: bool,
}

impl Board {
    /// Where there is nothing to read for everybody, waits until the peer is lost or the circuit trips.
    async fn stand_by(&mut self, shared: &Shared, peer: &Arc<dyn Peer>) -> UpstreamError {
        self.nothing();
        shared.settled.cancel();
        tokio::select! {
            biased;
            error = peer.lost() => error,
            () = shared.circuit.tripped() => UpstreamError::unreached("calls cannot reach it"),
        }
    }

    async fn read_on(&mut self, shared: &Shared, peer: &Arc<dyn Peer>) -> UpstreamError {
        let ended = async {
            tokio::select! {
                biased;
                error = peer.lost() => error,
                () = shared.circuit.tripped() => UpstreamError::unreached("calls cannot reach it"),
            }
        };
        let mut ended = pin!(ended);
        let mut failures = 0;
        let (mut first, mut suspected) = (true, false);
        // Whether any of its lists was answered on this connection: what is slow to begin has not come to an end.
        let mut answers = false;
        // How many calls it had answered when none of its lists was answered last.
        let mut silent_since = None;
        let mut lists = Lists::ALL;
        // When all is to be read again, and when what changed may be.
        let mut due = Instant::now();
        let mut spacing = Spacing::new(due);
        loop {
            let heard = shared.tally.answered();
            let read = tokio::select! {
                biased;
                error = ended.as_mut() => return error,
                read = self.read(&**peer, first, lists) => read,
            };
            first = false;
            shared.settled.cancel();
            let outcome = usize::from(read != Read::Whole);
            shared.refreshes[outcome].fetch_add(1, Ordering::Relaxed);
            failures = match read {
                Read::Whole => 0,
                Read::Partly | Read::Silent => failures + 1,
                Read::Closed => return self.stand_by(shared, peer).await,
                Read::Unreachable => return UpstreamError::unreached("its lists cannot be read"),
            };
            if read == Read::Silent && answers {
                // What takes it long, a call that may yet be answered, is waited for; and its lists alone may be what takes long.
                let again = silent_since == Some(heard) && shared.terms.gate.taken() == 0;
                silent_since = Some(shared.tally.answered());
                let hangs = suspected && shared.circuit.is_silent();
                if silent_since == Some(heard) && (hangs || again) {
                    return UpstreamError::unreached("it answers nothing any more");
                }
            } else if read != Read::Silent {
                (answers, silent_since) = (true, None);
                shared.circuit.answered();
            }
            suspected = false;
            if lists == Lists::ALL || failures > 0 {
                due = Instant::now() + self.pace(shared.spec.poll, failures);
            }
            lists = tokio::select! {
                biased;
                error = ended.as_mut() => return error,
                rung = shared.terms.bell.rung(&spacing) => {
                    spacing.after(rung.changed, COALESCE);
                    rung.lists
                }
                () = shared.circuit.silent() => {
                    suspected = true;
                    Lists::ALL
                }
                () = sleep_until(due) => Lists::ALL,
            };
        }
    }

    /// It is there, and shows nothing to everybody.
    fn nothing(&mut self) {
        self.known = Contribution::default();
        self.stale_at = None;
        self.publish();
    }

    fn publish(&self) {
        self.sink.publish(&self.id, self.known.clone());
    }

    /// Reads these lists; tells what is known when anything changed, or when it is the first time on a connection.
    async fn read(&mut self, peer: &dyn Peer, first: bool, lists: Lists) -> Read {
        let started = Instant::now();
        let asked = ListKind::EVERY
            .into_iter()
            .filter(|kind| lists.has(*kind))
            .map(|kind| async move { (kind, peer.list(kind).await) });
        let (mut changed, mut failed, mut unreachable, mut silent) = (first, 0, 0, 0);
        for (kind, listing) in join_all(asked).await {
            match listing {
                Ok(listing) => {
                    if listing != *self.known.listing(kind) {
                        changed = true;
                        *self.known.listing_mut(kind) = listing;
                    }
                }
                Err(
                    UpstreamError::Auth(_) | UpstreamError::Credential(CredentialError::Lacks(_)),
                ) if self.own => return Read::Closed,
                Err(error) => {
                    if matches!(error, UpstreamError::Timeout(_)) {
                        reached(Bound::DeadlineList);
                        silent += 1;
                    }
                    tracing::warn!(upstream = %self.id, list = kind.method(), %error, "a list could not be read");
                    failed += 1;
                    // One that answers is there; at first it is not known to be of any use.
                    unreachable += usize::from(matches!(
                        error,
                        UpstreamError::Unavailable { reached, .. } if first || reached != Reached::Yes
                    ));
                }
            }
        }
        let offered = ListKind::EVERY
            .into_iter()
            .filter(|kind| super::modern::offers(peer.card(), *kind))
            .count();
        // One list says too little about whether the rest can be read.
        if lists == Lists::ALL && offered > 0 && unreachable == offered {
            return Read::Unreachable;
        }
        if first {
            self.known.card = Some(peer.card().clone());
            self.known.away = false;
            self.stale_at = None;
        }
        let whole = failed == 0 && lists == Lists::ALL;
        if whole {
            self.known.read_at = Some(started);
        }
        if changed {
            self.publish();
        } else if whole {
            self.sink.confirm(&self.id, started);
        }
        match failed {
            0 => Read::Whole,
            _ if lists == Lists::ALL && offered > 0 && silent == offered => Read::Silent,
            _ => Read::Partly,
        }
    }

    fn pace(&self, poll: Duration, failures: u32) -> Duration {
        pace(Some(&self.known), poll, failures)
    }

    /// What is known is stale from now on.
    fn away(&mut self) {
        if self.known.away {
            return;
        }
        self.known.away = true;
        if self.known.card.is_some() {
            self.stale_at = Some(Instant::now() + self.stale_for);
        }
        self.publish();
    }

    /// What was known is told no more.
    fn withdrawn(&mut self) {
        self.stale_at = None;
        self.known = Contribution {
            away: true,
            ..Contribution::default()
        };
        self.publish();
    }

    /// Does `work`, and meanwhile takes back what is stale when its time comes.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        if let Some(at) = self.stale_at {
            tokio::select! {
                biased;
                done = work.as_mut() => return done,
                () = sleep_until(at) => {}
            }
            self.withdrawn();
        }
        work.await
    }
}

/// How long until lists are read again: the smallest time to live, or the poll; sooner after a failure. Jittered, because a
/// time to live is no polling interval (PROTOCOL D5).
pub(super) fn pace(known: Option<&Contribution>, poll: Duration, failures: u32) -> Duration {
    let told = ListKind::EVERY
        .iter()
        .filter_map(|kind| known?.listing(*kind).ttl)
        // Zero says that nothing is known about how long it lasts.
        .filter(|ttl| !ttl.is_zero())
        .min();
    let pace = told.map_or(poll, |ttl| ttl.max(SOONEST).min(poll));
    let pace = match failures {
        0 => pace,
        _ => pace.min(SOONEST * 2_u32.saturating_pow(failures.min(10) - 1)),
    };
    jittered(pace).max(SOONEST.min(poll))
}

#[cfg(test)]
mod others;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tokens;
