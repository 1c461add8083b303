//! Keeps one upstream connected, and tells what it offers.
//!
//! Guarantees: nothing here holds up another upstream or a call; attempts are spaced (SECURITY 6); the end is orderly. What is
//! told of its lists is for `board.rs`, and what it speaks, where there is doubt, for `doubting.rs`.

mod board;
#[cfg(test)]
mod cards;
mod doubting;
mod end;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod mishaps;
#[cfg(test)]
mod others;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tokens;

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
};

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::{
    board::Board,
    doubting::Doubting,
    end::{ENDING, End, dismiss},
};
use super::{
    CredentialError, Peer, UpstreamError,
    connector::Connector,
    health::{Backoff, FIRST, Pause},
    mishaps::Mishap,
    probe::Probe,
    shared::{ConnectionState, Presence, Shared},
    sink::Sink,
};
use crate::metrics::{Bound, reached};

pub(super) use board::{COALESCE, pace};

/// The supervisor of one upstream.
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    probe: Probe,
    board: Board,
    backoff: Backoff,
    current: Option<Arc<dyn Peer>>,
    /// Whether the upstream answers to nobody without a token, so that there is nothing to read for everybody.
    closed: bool,
    /// Whether it was told that nobody has come yet who could ask the upstream anything, and nothing else happened since.
    awaits: bool,
    /// How long doubts about the era wait, over all peers: two servers of two eras may stand behind one address.
    doubts: Pause,
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
            board: Board::new(&shared, sink),
            backoff: shared.terms.backoff(),
            shared,
            probe,
            current: None,
            closed: false,
            awaits: false,
            doubts: Pause::default(),
        }
    }

    /// Works until `stop`, then ends everything.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.survive() => {}
        }
        self.be(ConnectionState::Away { retry_at: None }, None);
        self.shared.settled.cancel();
        if let Some(peer) = self.current.take() {
            drop(timeout(ENDING, peer.close()).await);
        }
        drop(timeout(ENDING, self.shared.terms.tasks.clone().finish()).await);
        self.shared.closed.cancel();
    }

    /// Works, and begins anew where that panics: a fault of ours must not take the upstream away for good.
    async fn survive(&mut self) {
        let mut broke = false;
        loop {
            let work = async {
                if broke {
                    self.mend().await;
                }
                self.live().await;
            };
            // What it was amidst is let go of before it is used again.
            if AssertUnwindSafe(work).catch_unwind().await.is_ok() {
                return;
            }
            broke = true;
            tracing::error!(upstream = %self.shared.spec.id, "the work for an upstream panicked; it begins anew");
        }
    }

    /// Lets go of what was left by a panic, and waits before the next attempt, but no longer than until an operator wants something.
    async fn mend(&mut self) {
        let mut wishes = self.shared.wishes.subscribe();
        let wait = self.backoff.wait();
        let error = Mishap::of(UpstreamError::unreached(
            "the gateway's own work for it failed",
        ));
        let retry_at = Some(Instant::now() + wait);
        if wishes.borrow_and_update().off {
            self.be_disabled();
        } else {
            self.be(ConnectionState::Away { retry_at }, Some(error));
        }
        self.shared.settled.cancel();
        self.shared.terms.interest.away();
        if let Some(peer) = self.current.take() {
            dismiss(&self.shared, peer);
        }
        self.probe.forget();
        tokio::select! {
            biased;
            // The sender is as old as this.
            _ = wishes.changed() => {
                tracing::info!(upstream = %self.shared.spec.id, "an operator wants it another way");
                if wishes.borrow_and_update().off {
                    self.be_disabled();
                } else {
                    self.be(ConnectionState::Connecting, None);
                }
                self.backoff = self.shared.terms.backoff();
            }
            () = sleep(wait) => {}
        }
        // Last, and when some time has passed: to tell of it may be what panics.
        self.board.away();
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
                self.be(ConnectionState::Connecting, None);
            }
            tokio::select! {
                biased;
                // The sender is as old as this.
                _ = wishes.changed() => {}
                () = self.keep() => {}
            }
            tracing::info!(upstream = %self.shared.spec.id, "an operator wants it another way");
            if self.shared.is_ready() {
                self.shared.terms.interest.lost();
            }
            let peer = self.current.take();
            self.gone(Mishap::wanted("restarted by an operator"), Instant::now());
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
        self.be_disabled();
        if let Some(credentials) = &self.shared.terms.credentials {
            credentials.loan().forget();
        }
        self.shared.terms.interest.away();
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
                dismiss(&self.shared, before);
            }
            self.shared.circuit.reset();
            self.be(ConnectionState::Ready(Arc::clone(&peer)), None);
            tracing::info!(upstream = %self.shared.spec.id, revision = %peer.card().revision, "upstream is there");
            self.shared.terms.interest.begin();
            let end = self.serve(&peer).await;
            self.shared.terms.interest.lost();
            let error = match end {
                End::Lost(error) => error,
                End::Other(peer, closed) => {
                    self.closed = closed;
                    other = Some(peer);
                    continue;
                }
            };
            self.backoff.ended_after(began.elapsed());
            let told = self.shared.told(&error, None);
            tracing::warn!(upstream = %self.shared.spec.id, error = told, "upstream is lost");
            let wait = self.backoff.wait();
            if matches!(error, UpstreamError::Protocol(_)) {
                self.probe.forget();
            }
            self.gone(Mishap::of(error), Instant::now() + wait);
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
            let unlent = own.filter(|_| reaching.as_ref().is_some_and(|it| !it.lent()));
            self.closed = reaching.is_some_and(|reaching| reaching.done(found.is_ok()));
            let error = match found {
                Ok(peer) => {
                    self.awaits = false;
                    return peer;
                }
                Err(error) => match unlent {
                    Some(own) => own.unlent(error),
                    None => error,
                },
            };
            if matches!(error, UpstreamError::Timeout(_)) {
                reached(Bound::DeadlineConnect);
            }
            let wait = self.backoff.wait();
            self.tell_unreached(&error);
            self.gone(Mishap::of(error), Instant::now() + wait);
            self.shared.settled.cancel();
            let shared = Arc::clone(&self.shared);
            let wait = async {
                // However many come whose tokens may open it, attempts are spaced (SECURITY 6).
                let nudged = async {
                    sleep(FIRST).await;
                    shared.nudged.notified().await;
                };
                tokio::select! {
                    () = sleep(wait) => {}
                    () = nudged => {}
                }
            };
            self.board.meanwhile(wait).await;
        }
    }

    /// Each time, but for what is as it should be until somebody comes, which may take weeks.
    fn tell_unreached(&mut self, error: &UpstreamError) {
        let upstream = &self.shared.spec.id;
        let UpstreamError::Credential(CredentialError::Nobody(words)) = error else {
            let told = self.shared.told(error, self.probe.said().as_deref());
            tracing::warn!(%upstream, error = told, "upstream cannot be reached");
            self.awaits = false;
            return;
        };
        if !std::mem::replace(&mut self.awaits, true) {
            tracing::info!(%upstream, "{words}");
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
    fn gone(&mut self, error: Mishap, retry_at: Instant) {
        let retry_at = Some(retry_at);
        self.be(ConnectionState::Away { retry_at }, Some(error));
        self.shared.terms.interest.away();
        if let Some(peer) = self.current.take() {
            dismiss(&self.shared, peer);
        }
        self.board.away();
    }

    fn be_disabled(&self) {
        let wanted = Mishap::wanted("disabled by an operator");
        self.be(ConnectionState::Disabled, Some(wanted));
    }

    fn be(&self, state: ConnectionState, error: Option<Mishap>) {
        let before = self.shared.presence.load();
        let same = matches!(
            (&before.state, &state),
            (ConnectionState::Away { .. }, ConnectionState::Away { .. })
        );
        let since = if same { before.since } else { Instant::now() };
        let (error, said) = match error {
            Some(error) => (Some(error), self.probe.take_said()),
            // What an operator wanted is over, and what went wrong is kept.
            None => {
                let kept = before.error.as_ref().filter(|mishap| !mishap.wanted);
                (kept.cloned(), before.said.clone())
            }
        };
        // What could not be read was not read of this one.
        self.shared.unread.store(None);
        self.shared.presence.store(Arc::new(Presence {
            state,
            since,
            error,
            said,
        }));
        self.shared.changed.notify_waiters();
    }
}
