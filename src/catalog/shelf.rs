//! Shelves: one list of one upstream, checked. What did not change since the last build is taken over, not checked again.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    Listing,
    check::{Checker, Item},
    namespace::Namespace,
    report::{Reason, Report, Reports},
    rules::{CatalogRules, NamingRules},
    schema::SchemaCheck,
};
use crate::{
    json::{Json, Node},
    protocol::methods::ListKind,
};

/// The items of one list of one upstream that are fit to be offered, in its order.
#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) items: Vec<Arc<Item>>,
    pub(super) reports: Vec<Report>,
    source: Arc<[Json]>,
    pub(super) truncated: bool,
    /// Whether it has more items than one list may have.
    pub(super) overflows: bool,
}

/// What raw items are called.
fn names(items: &[Json], kind: ListKind) -> impl Iterator<Item = Cow<'_, str>> {
    let keys = items
        .iter()
        .filter_map(move |raw| raw.root().member(kind.key()));
    keys.filter_map(Node::as_str)
}

impl Shelf {
    /// What its upstream calls what it lists, fit to be offered or not.
    pub(super) fn names(&self, kind: ListKind) -> impl Iterator<Item = Cow<'_, str>> {
        names(&self.source, kind)
    }

    /// Checks a list. `previous` is the same shelf made under the same rules.
    pub(super) fn stock(
        rules: &CatalogRules,
        naming: &NamingRules,
        namespace: &Namespace,
        kind: ListKind,
        listing: &Listing,
        previous: Option<&Arc<Self>>,
    ) -> Arc<Self> {
        if let Some(previous) = previous
            && previous.truncated == listing.truncated
            && (Arc::ptr_eq(&previous.source, &listing.items) || previous.source == listing.items)
        {
            return previous.clone();
        }
        let known: HashMap<&str, &Arc<Item>> = previous
            .iter()
            .flat_map(|shelf| &shelf.items)
            .map(|item| (&*item.route.local, item))
            .collect();
        let mut checker = Checker {
            rules,
            naming,
            namespace,
            kind,
            schemas: SchemaCheck::default(),
        };
        let mut reports = Reports::new(naming.upstream.clone(), kind);
        let mut items = Vec::with_capacity(listing.items.len());
        let mut seen = HashSet::with_capacity(listing.items.len());
        let limit = rules.bounds.items;
        for raw in listing.items.iter().take(limit) {
            let unchanged = raw
                .root()
                .member(kind.key())
                .and_then(Node::as_str)
                .and_then(|key| known.get(&*key))
                .filter(|item| item.raw == *raw);
            let checked = match unchanged {
                Some(item) => Ok(Some((*item).clone())),
                None => checker.check(raw).map(|item| item.map(Arc::new)),
            };
            // A name is its first definition's, broken or not: that is the one which is pinned (CAT-2).
            let name = raw.root().member(kind.key()).and_then(Node::as_str);
            let is_first = name.is_none_or(|name| seen.insert(name));
            match checked {
                Ok(Some(item)) if is_first => {
                    if let Some(doubt) = item.doubt {
                        reports.add_raw(raw, Reason::Doubt(doubt));
                    }
                    items.push(item);
                }
                Ok(Some(_)) => reports.add_raw(raw, Reason::Repeated),
                Ok(None) => {}
                Err(reason) => reports.add_raw(raw, reason),
            }
        }
        for raw in listing.items.iter().skip(limit) {
            reports.add_raw(raw, Reason::TooMany(limit));
        }
        if listing.truncated {
            reports.add("", Reason::CutShort);
        } else if kind == ListKind::Tools {
            // Also those beyond the bound.
            let offered: Vec<_> = names(&listing.items, kind).collect();
            let offered: Vec<&str> = offered.iter().map(|name| &**name).collect();
            for (key, named) in naming.unmet(&offered) {
                reports.add(named, Reason::Unmet(key));
            }
        }
        Arc::new(Self {
            items,
            reports: reports.into_list(),
            source: listing.items.clone(),
            truncated: listing.truncated,
            overflows: listing.items.len() > limit,
        })
    }
}
