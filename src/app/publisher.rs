//! What upstreams offer, on its way into the world: beside it, or in its place, the login that leads to it.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    call::Grantee, catalog::Contribution, connect::Connections, protocol::UpstreamId,
    snapshot::World, tasks::Tasks, upstream::Sink,
};

/// Takes what upstreams offer into the world; where nothing is known, the login that leads to it.
pub(super) struct Publisher(
    pub(super) Arc<World>,
    pub(super) Option<(Connections, Tasks)>,
);

impl Sink for Publisher {
    fn publish(&self, id: &UpstreamId, contribution: Contribution) {
        self.0.observe(id, &contribution);
        let Some((connections, tasks)) = &self.1 else {
            self.0.publish(id, contribution);
            return;
        };
        let (contribution, until) = connections.stand_in(id, contribution);
        self.0.publish(id, contribution);
        if let Some(until) = until {
            let (world, connections, id) = (self.0.clone(), connections.clone(), id.clone());
            tasks.spawn(async move {
                tokio::time::sleep_until(until).await;
                if let Some(known) = connections.known(&id) {
                    world.publish(&id, known);
                }
            });
        }
    }

    fn confirm(&self, id: &UpstreamId, read_at: Instant) {
        self.0.confirm(id, read_at);
    }

    fn publish_to(&self, who: &Grantee, id: &UpstreamId, contribution: Option<Contribution>) {
        let (Some((connections, tasks)), Some(contribution)) = (&self.1, contribution.clone())
        else {
            self.0.publish_to(who, id, contribution);
            return;
        };
        let (contribution, until) = connections.stand_in_for(id, who, contribution);
        self.0.publish_to(who, id, Some(contribution));
        if let Some(until) = until {
            let (world, connections) = (self.0.clone(), connections.clone());
            let (who, id) = (who.clone(), id.clone());
            tasks.spawn(async move {
                tokio::time::sleep_until(until).await;
                if let Some(known) = connections.known_to(&id, &who) {
                    world.publish_to(&who, &id, Some(known));
                }
            });
        }
    }
}
