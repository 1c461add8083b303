//! Views: what each permission class sees of each endpoint, worked out once for a snapshot and shared (PRODUCT 5, 9).
//!
//! Guarantees: a view that was worked out costs one look-up and no policy evaluation; two that are wanted at once are worked
//! out once; what all views of a snapshot hold is bounded by [`BYTES`], beyond which the least used go and are worked out
//! again. Lists that show the same as one in use share its encodings, across classes and across snapshots.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use moka::sync::Cache;

use super::items::{kind_of, toolset_of};
use crate::{
    call::Identity,
    catalog::{Catalog, View},
    policy::{Class, Prepared, Subject},
    protocol::names::Scope,
    tasks::aside,
};

/// The most bytes that the views of one snapshot may hold, by the weight of what they show.
const BYTES: u64 = 256 << 20;
/// How many views are looked at for lists that show the same.
const KNOWN: usize = 64;

/// The views of one snapshot.
#[derive(Debug)]
pub(super) struct Views {
    seen: Cache<(Class, Scope), Option<Arc<View>>>,
    known: Known,
}

/// Views that were made last and may still be in use: at most [`KNOWN`].
#[derive(Debug, Clone, Default)]
pub(super) struct Known(Arc<Mutex<VecDeque<Weak<View>>>>);

impl Views {
    pub(super) fn new(known: &Known) -> Self {
        let weigh = |_: &(Class, Scope), view: &Option<Arc<View>>| {
            let bytes = view.as_ref().map_or(0, |view| view.weight());
            u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX)
        };
        Self {
            seen: Cache::builder()
                .max_capacity(BYTES / 1024)
                .weigher(weigh)
                .build(),
            known: known.clone(),
        }
    }

    /// What somebody sees of a scope.
    pub(super) fn of(
        &self,
        catalog: &Catalog,
        policy: &Prepared,
        who: &Identity,
        scope: &Scope,
    ) -> Option<Arc<View>> {
        let class = policy.class(who);
        let key = (class, scope.clone());
        // Scopes are configured, so that those that are not cannot fill the cache.
        if let Some(view) = self.seen.get(&key) {
            return view;
        }
        let class = key.0.clone();
        let make = || {
            let toolset = toolset_of(scope);
            let known = self.known.alive();
            let view = catalog.view(
                scope,
                |kind, route, exposed| {
                    let name = catalog.name_of(kind, route, exposed);
                    let item = Subject {
                        kind: kind_of(kind),
                        upstream: &route.upstream,
                        local: &route.local,
                        outward: &name,
                    };
                    policy.lists(&class, item, toolset)
                },
                &known,
            );
            let view = view.map(Arc::new);
            if let Some(view) = &view {
                self.known.add(view);
            }
            view
        };
        // Of thousands of items each is decided on.
        self.seen.get_with(key, || aside(make))
    }
}

impl Known {
    fn alive(&self) -> Vec<Arc<View>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|view| view.strong_count() > 0);
        known.iter().filter_map(Weak::upgrade).collect()
    }

    fn add(&self, view: &Arc<View>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN {
            known.pop_front();
        }
        known.push_back(Arc::downgrade(view));
    }
}
