//! The guard of a listen: it goes on under the policies of the moment, not under those that held when it began (SECURITY AUTHZ-10).
//!
//! Guarantees: a list is told of only when what its listener sees of it is another; a resource only while its listener may
//! hear of it. Where no policy is configured and everybody sees the same there is no guard.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    call::Call,
    catalog::View,
    events::Lists,
    protocol::methods::ListKind,
    snapshot::{Snapshot, World},
    stack::authorize,
    stage::{PermittedWatch, Watchable},
};

/// What a listen goes by while it lasts.
pub(super) struct ListenGuard {
    world: Arc<World>,
    call: Box<Call>,
    /// What was seen when each of the lists was told of last: tools, prompts, resources.
    seen: [Option<Arc<View>>; 3],
    /// Lists to be looked at without news: the world was another one already when the listen began.
    unsure: Lists,
    regranted: watch::Receiver<u64>,
}

impl ListenGuard {
    /// The guard of a call that listens for `wanted`, pinned to `snapshot`; `None` where everybody sees the same.
    pub(super) fn of(
        call: Box<Call>,
        snapshot: &Snapshot,
        world: &Arc<World>,
        wanted: Lists,
    ) -> Option<Self> {
        if snapshot.policy().policy().is_unrestricted() && !world.expects_own() {
            return None;
        }
        let mut regranted = world.regranted();
        let view = snapshot.view(&call.identity, &call.scope);
        let unsure = if world.seen_by(&call.identity).revision == snapshot.revision {
            Lists::NONE
        } else {
            // What was put in force while the listen settled counts as well.
            regranted.mark_changed();
            wanted
        };
        Some(Self {
            world: world.clone(),
            call,
            seen: [view.clone(), view.clone(), view],
            unsure,
            regranted,
        })
    }

    /// A list to be looked at without news.
    pub(super) fn unsure(&mut self) -> Option<ListKind> {
        self.unsure.take_one()
    }

    /// Waits for other policies.
    pub(super) async fn regranted(&mut self) {
        if self.regranted.changed().await.is_err() {
            // The world is gone, and with it whoever could change anything.
            std::future::pending::<()>().await;
        }
    }

    /// Whether the listener sees another list than when it was told last.
    pub(super) fn sees_another(&mut self, kind: ListKind) -> bool {
        let (at, kinds): (usize, &[ListKind]) = match kind {
            ListKind::Tools => (0, &[ListKind::Tools]),
            ListKind::Prompts => (1, &[ListKind::Prompts]),
            ListKind::Resources | ListKind::Templates | ListKind::Skills => (
                2,
                &[ListKind::Resources, ListKind::Templates, ListKind::Skills],
            ),
        };
        let now = self
            .world
            .seen_by(&self.call.identity)
            .view(&self.call.identity, &self.call.scope);
        let same = match (&self.seen[at], &now) {
            (Some(before), Some(now)) => kinds.iter().all(|kind| before.same_list(now, *kind)),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.seen[at] = now;
        !same
    }

    /// Whether the listener may still hear of everything that it watches.
    pub(super) fn may_hear_all(&self, watched: &[PermittedWatch], in_force: &[bool]) -> bool {
        let snapshot = self.world.seen_by(&self.call.identity);
        let kept = watched.iter().zip(in_force).filter(|(_, kept)| **kept);
        kept.into_iter().all(|(watched, _)| {
            let at = &watched.at;
            authorize::may_hear(&self.call, &snapshot, &at.outward, &at.route()).is_some()
        })
    }

    /// Whether the listener may hear of a resource that it watches, or of `local`, which lies below that.
    pub(super) fn may_hear(&self, at: &Watchable, outward: &str, local: &Arc<str>) -> bool {
        let route = crate::catalog::Route {
            local: local.clone(),
            ..at.route()
        };
        let snapshot = self.world.seen_by(&self.call.identity);
        authorize::may_hear(&self.call, &snapshot, outward, &route).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        call::{Affinity, CallId, Caller, Filter, Identity, Op, Principal, Trail},
        catalog::rules::CatalogRules,
        events::Hub,
        json::Json,
        policy::Policy,
        protocol::{ClientCapabilities, Revision, names::Scope},
        tasks::clock,
    };

    fn listening() -> Box<Call> {
        let caller = Caller {
            principal: Principal::anonymous(),
            revision: Revision::V2026_07_28,
            capabilities: ClientCapabilities::NONE,
            log_level: None,
            visits: false,
            affinity: Affinity {
                key: "k".into(),
                ended: None,
            },
        };
        Box::new(Call {
            unasked: false,
            stake: None,
            id: CallId::new(),
            op: Op::Listen(Arc::new(Filter::default())),
            params: Json::empty_object(),
            caller: Arc::new(caller),
            identity: Identity::anonymous(),
            address: None,
            scope: Scope::All,
            resume: None,
            wants_progress: false,
            mirrored: None,
            deadline: clock::now() + Duration::from_secs(60),
            trail: Trail::NONE,
        })
    }

    /// PROTOCOL B7
    #[test]
    fn of_a_world_that_changed_meanwhile_only_what_is_listened_for_is_looked_at() {
        let nothing = CatalogRules {
            upstreams: Vec::new(),
            toolsets: Vec::new(),
            names: Default::default(),
            pages: Default::default(),
            bounds: Default::default(),
            screen: Default::default(),
        };
        let world = Arc::new(World::new(nothing, Hub::new(Default::default())));
        world.expect_own();
        let pinned = world.load();
        let guard = |wanted| ListenGuard::of(listening(), &pinned, &world, wanted).unwrap();
        assert_eq!(guard(Lists::ALL).unsure(), None);
        world.govern(&Policy::unrestricted()).unwrap();
        let mut prompts = guard(Lists::of(ListKind::Prompts));
        assert_eq!(prompts.unsure(), Some(ListKind::Prompts));
        assert_eq!(prompts.unsure(), None);
        assert_eq!(guard(Lists::NONE).unsure(), None);
    }
}
