//! What the handle on one upstream shares with whoever works for it: whether it is there, and what is wanted of it.

use std::sync::{Arc, atomic::AtomicU64};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    CredentialError, Peer, UpstreamError,
    health::Circuit,
    mishaps::{Mishap, Past},
    sink::Sink,
    spec::UpstreamSpec,
    tally::Tally,
    terms::Terms,
};

/// What the handle, the supervisor and those who read for principals share.
pub(super) struct Shared {
    pub(super) spec: UpstreamSpec,
    pub(super) terms: Arc<Terms>,
    pub(super) presence: ArcSwap<Presence>,
    /// Cancelled when the first attempt to connect is over, and its lists are read if it succeeded.
    pub(super) settled: CancellationToken,
    /// Cancelled when everything is closed.
    pub(super) closed: CancellationToken,
    pub(super) circuit: Circuit,
    /// Where it is told what the upstream offers.
    pub(super) sink: Arc<dyn Sink>,
    /// Tells of each change of `presence`.
    pub(super) changed: Notify,
    /// Ends the wait before the next attempt to connect.
    pub(super) nudged: Notify,
    pub(super) restarts: AtomicU64,
    /// How often its lists were read, and how often that failed.
    pub(super) refreshes: [AtomicU64; 2],
    /// Why one of its lists could not be read when it was asked for last, while it is there.
    pub(super) unread: ArcSwapOption<Past>,
    /// What operators want of it.
    pub(super) wishes: watch::Sender<Wish>,
    pub(super) tally: Tally,
}

/// What operators want of an upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// It is not to be used.
    pub(super) off: bool,
    /// How often it was to begin anew.
    pub(super) restarts: u64,
}

/// Whether the upstream is there.
pub(super) struct Presence {
    pub(super) state: ConnectionState,
    pub(super) since: Instant,
    /// What went wrong last, if anything did.
    pub(super) error: Option<Mishap>,
    /// What a program said beside the protocol before that went wrong, where the error does not tell it.
    pub(super) said: Option<Arc<String>>,
}

impl Presence {
    /// Whether it is away for no other reason than that nobody has come yet who could ask it anything.
    pub(super) fn awaits(&self) -> bool {
        matches!(
            (&self.state, self.error.as_ref().map(|mishap| &mishap.error)),
            (
                ConnectionState::Away { .. },
                Some(UpstreamError::Credential(CredentialError::Nobody(_)))
            )
        )
    }
}

/// See [`Presence`].
pub(super) enum ConnectionState {
    /// The first attempt is under way, or the first one after it was disabled.
    Connecting,
    Ready(Arc<dyn Peer>),
    Away {
        retry_at: Option<Instant>,
    },
    /// An operator does not want it used.
    Disabled,
}

impl Shared {
    pub(super) fn wish_off(&self, off: bool) -> bool {
        self.wishes.send_if_modified(|wish| {
            let news = wish.off != off;
            wish.off = off;
            news
        })
    }

    /// An error in the words that operators are told, with what was said before it.
    pub(super) fn told(&self, error: &UpstreamError, said: Option<&String>) -> String {
        let mut told = error.told(self.terms.proves);
        if let Some(said) = said {
            told.push_str("; ");
            told.push_str(said);
        }
        told
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.presence.load().state, ConnectionState::Ready(_))
    }

    /// Whether it answered to nobody without a token, so that somebody who has one may open it.
    pub(super) fn is_closed(&self) -> bool {
        let presence = self.presence.load();
        matches!(presence.state, ConnectionState::Away { .. })
            && matches!(
                presence.error.as_ref().map(|mishap| &mishap.error),
                Some(UpstreamError::Auth(_) | UpstreamError::Credential(_))
            )
    }

    /// The peer, when there is one.
    pub(super) async fn came(&self) -> Arc<dyn Peer> {
        self.until(|state| match state {
            ConnectionState::Ready(peer) => Some(Arc::clone(peer)),
            ConnectionState::Connecting
            | ConnectionState::Away { .. }
            | ConnectionState::Disabled => None,
        })
        .await
    }

    /// The peer, when there is one; `None` when an operator does not want it used.
    pub(super) async fn found(&self) -> Option<Arc<dyn Peer>> {
        self.until(|state| match state {
            ConnectionState::Ready(peer) => Some(Some(Arc::clone(peer))),
            ConnectionState::Disabled => Some(None),
            ConnectionState::Connecting | ConnectionState::Away { .. } => None,
        })
        .await
    }

    /// Resolves when this peer is not the one to use any more.
    pub(super) async fn left(&self, peer: &Arc<dyn Peer>) {
        let stays = |state: &ConnectionState| matches!(state, ConnectionState::Ready(now) if Arc::ptr_eq(now, peer));
        self.until(|state| (!stays(state)).then_some(())).await;
    }

    /// Resolves when no operator minds its being used.
    pub(super) async fn allowed(&self) {
        self.until(|state| (!matches!(state, ConnectionState::Disabled)).then_some(()))
            .await;
    }

    /// Resolves when it is disabled if an operator wants it so, and not if none does.
    pub(super) async fn heeded(&self) {
        self.until(|state| {
            let disabled = matches!(state, ConnectionState::Disabled);
            (disabled == self.wishes.borrow().off).then_some(())
        })
        .await;
    }

    /// What `seen` sees in whether it is there, once it sees something.
    async fn until<T>(&self, seen: impl Fn(&ConnectionState) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            if let Some(seen) = seen(&self.presence.load().state) {
                return seen;
            }
            changed.await;
        }
    }
}
