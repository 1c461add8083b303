//! How serving with a peer ends, and how the peer does.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::super::{Peer, UpstreamError, shared::Shared};

/// How long an orderly end of a peer may take, and of its tasks after that.
pub(super) const ENDING: Duration = Duration::from_secs(8);

/// How serving with a peer ended.
pub(super) enum End {
    /// It can serve no more.
    Lost(UpstreamError),
    /// The server is spoken to in another way now, as by this one; whether that answers to nobody without a token.
    Other(Arc<dyn Peer>, bool),
}

/// Ends a peer that serves no more, beside everything else.
pub(super) fn dismiss(shared: &Shared, peer: Arc<dyn Peer>) {
    shared.terms.tasks.spawn(async move {
        drop(timeout(ENDING, peer.close()).await);
    });
}
