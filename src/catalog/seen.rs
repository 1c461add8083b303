//! What of one endpoint somebody sees: its lists, filtered once and encoded once for all who see the same (PRODUCT 5).
//!
//! Guarantees: lists keep their order and their cursors' meaning; what an endpoint says of itself is said by the upstreams of
//! which something is seen and by no others; nothing of it may be kept by everybody (SECURITY CAT-7). Deliberately absent:
//! who sees what, which the caller decides item by item.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    Catalog, Hints, PageOf, Position, Route,
    face::{self, Face},
    hints,
    offered::Offered,
    view::ListView,
};
use crate::{
    call::ServerCard,
    protocol::{Revision, methods::ListKind, names::Scope},
};

/// What of one endpoint is seen. Belongs to the catalog it was made from.
#[derive(Debug)]
pub struct View {
    lists: [Arc<ListView>; ListKind::COUNT],
    face: Face,
    offered: Offered,
    away: Option<Arc<[String]>>,
    partial: [Option<Arc<[String]>>; ListKind::COUNT],
    /// The upstreams of which something is seen, by rank.
    members: Vec<usize>,
}

impl View {
    /// Whether a list is the same as in `other`: the same items, shown in the same way.
    pub fn same_list(&self, other: &Self, kind: ListKind) -> bool {
        let at = kind as usize;
        self.lists[at].is_same(&other.lists[at])
    }

    /// At least the bytes that its pages take in one encoding, those that it shares with others included.
    pub fn weight(&self) -> usize {
        let items = self.lists.iter().flat_map(|list| list.items());
        items.map(|item| item.weight).sum()
    }

    /// How many items of a kind are seen.
    pub fn count(&self, kind: ListKind) -> usize {
        self.lists[kind as usize].items().len()
    }

    /// What an endpoint says of itself to those who see this, in `revision`.
    pub fn card(&self, revision: Revision) -> ServerCard {
        let mut card = self.face.card(revision);
        card.capabilities = self.offered.beside(&card.capabilities, revision);
        card
    }
}

impl Catalog {
    /// What of a scope is seen by somebody for whom `sees` says so of each item, by kind, route and outward name; `None` when
    /// there is no such scope. Lists that show the same as one of `known` are shared with it, encodings included.
    pub fn view(
        &self,
        scope: &Scope,
        mut sees: impl FnMut(ListKind, &Route, &str) -> bool,
        known: &[Arc<View>],
    ) -> Option<View> {
        let whole = self.scopes.get(scope)?;
        let lists = ListKind::EVERY.map(|kind| {
            let at = kind as usize;
            whole.lists[at].only(
                |item| sees(kind, &item.route, &item.exposed),
                known.iter().map(|view| &view.lists[at]),
            )
        });
        let seen = |rank: &usize| {
            let id = self.parts[*rank].id();
            let mut items = lists.iter().flat_map(|list| list.items());
            items.any(|item| item.route.upstream == *id)
        };
        let members: Vec<_> = whole.members().iter().copied().filter(seen).collect();
        let parts = || members.iter().map(|rank| &self.parts[*rank]);
        Some(View {
            face: face::merge(&whole.labelled(&self.parts), parts()),
            offered: Offered::of(parts()),
            away: hints::away(parts()),
            partial: ListKind::EVERY.map(|kind| hints::partial(kind, parts())),
            lists,
            members,
        })
    }

    /// The page of a seen list after `after`, as clients of `revision` know it.
    pub fn seen_page(
        &self,
        view: &View,
        kind: ListKind,
        revision: Revision,
        after: &Position,
    ) -> PageOf {
        let (items, mark) = view.lists[kind as usize].page(revision, after);
        let next = mark.map(|mark| Position {
            after: Some(mark),
            private: true,
        });
        PageOf { items, next }
    }

    /// How a page of a seen list may be kept from `now` on: never by others than whoever asked.
    pub fn seen_hints(&self, view: &View, kind: ListKind, now: Instant) -> Hints {
        let parts = view.members.iter().map(|rank| &self.parts[*rank]);
        let left = hints::until(kind, parts)
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        Hints {
            ttl_millis: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            public: false,
            away: view.away.clone(),
            partial: view.partial[kind as usize].clone(),
        }
    }
}
