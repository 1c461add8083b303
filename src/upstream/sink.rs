//! Where it is told what upstreams offer.

use tokio::time::Instant;

use crate::{call::Grantee, catalog::Contribution, protocol::UpstreamId};

/// Takes what upstreams offer; the catalog is built from it.
pub trait Sink: Send + Sync {
    /// Upstream `id` now offers this, instead of what it offered before. Must not block.
    fn publish(&self, id: &UpstreamId, contribution: Contribution);

    /// What upstream `id` offers was read again at `read_at`, and is what was published last. Must not block.
    fn confirm(&self, id: &UpstreamId, read_at: Instant);

    /// Upstream `id` now offers this to one principal and to nobody else; `None`: nothing of their own. Must not block.
    fn publish_to(&self, who: &Grantee, id: &UpstreamId, contribution: Option<Contribution>);
}
