//! What is known and not offered: definitions that nobody approved (SECURITY CAT-2).
//!
//! Guarantees: what is withheld is in no list and leads nowhere, whatever name or selection would lead there, and keeps its outward
//! name, so that nobody takes that over; a URI of which it takes too long to tell whether a withheld template fits it counts as
//! withheld.
//! Deliberately absent: what is withheld, which `pins` says.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use super::{Catalog, Route, check::Item, part::Part, template::MATCH_STEPS};
use crate::protocol::{methods::ListKind, names::Scope};

/// Items of one upstream, by original names and URIs.
pub type WithheldNames = HashSet<(ListKind, Arc<str>)>;

/// What of an upstream is not to be offered. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Everything.
    pub all: bool,
    /// These items, by original names and URIs; nothing where there are none.
    pub items: Option<Arc<WithheldNames>>,
    /// What it says to models about itself.
    pub instructions: bool,
}

/// An item that is withheld.
#[derive(Debug)]
pub struct WithheldItem<'a> {
    item: &'a Item,
}

impl<'a> WithheldItem<'a> {
    /// Where it would lead.
    pub const fn route(&self) -> &'a Route {
        &self.item.route
    }

    /// Its name or URI outside.
    pub fn outward(&self) -> &'a str {
        &self.item.exposed
    }

    /// The digest of its definition, as pins have it.
    pub fn definition(&self) -> &'a str {
        &self.item.digest
    }
}

impl Withheld {
    /// Whether an item is withheld.
    pub(super) fn has(&self, kind: ListKind, local: &Arc<str>) -> bool {
        let among = |items: &Arc<WithheldNames>| items.contains(&(kind, local.clone()));
        self.all || self.items.as_ref().is_some_and(among)
    }
}

impl Catalog {
    /// Whether anything is withheld: a first question that costs nothing.
    pub const fn withholds_some(&self) -> bool {
        self.withholds_some
    }

    /// What is withheld that this name or URI would lead to.
    pub fn withheld(&self, scope: &Scope, kind: ListKind, name: &str) -> Option<WithheldItem<'_>> {
        if !self.withholds_some {
            return None;
        }
        let view = self.scopes.get(scope)?;
        let own = matches!(scope, Scope::Upstream(_));
        let mut steps = MATCH_STEPS;
        let mut leads = |rank: usize, kind: ListKind, item: &Arc<Item>, outward: Option<&str>| {
            let called = if own {
                &item.route.local
            } else {
                &item.exposed
            };
            let is_called = **called == *name;
            let template = item.template.as_ref().zip(outward);
            let template = template.filter(|_| kind == ListKind::Templates);
            // What would not be listed here takes no steps from what would.
            (is_called || template.is_some())
                && view.would_list(rank, kind, item)
                && (is_called
                    || template.is_some_and(|(template, outward)| {
                        template.matches(outward, &mut steps) != Some(false)
                    }))
        };
        let kinds = alike(kind);
        // What is listed is not withheld, whatever template it fits too.
        if kinds.iter().any(|kind| view.listed(*kind, name).is_some()) {
            return None;
        }
        for (rank, part) in self.parts.iter().enumerate() {
            let outward = self.outward(part, own, name);
            for kind in kinds {
                let found = part.withheld[*kind as usize]
                    .iter()
                    .find(|item| leads(rank, *kind, item, outward.as_deref()));
                if let Some(item) = found {
                    return Some(WithheldItem { item });
                }
            }
        }
        None
    }

    /// What is withheld where this way ends. One item may be reached by several names and past a selection: the page of an app by
    /// what its server calls it or by its tool, anything in a namespace by its spelling.
    pub fn withheld_at(&self, kind: ListKind, route: &Route) -> Option<WithheldItem<'_>> {
        // The ways to tools and prompts are those of what is listed, by an app's own name for a tool, too: nothing withheld is.
        if !self.withholds_some || matches!(kind, ListKind::Tools | ListKind::Prompts) {
            return None;
        }
        let part = self
            .parts
            .iter()
            .find(|part| *part.id() == route.upstream)?;
        let kinds = alike(kind);
        let is_it = |item: &&Arc<Item>| item.route.local == route.local;
        let withheld = || kinds.iter().flat_map(|kind| &part.withheld[*kind as usize]);
        let mut kept = kinds.iter().flat_map(|kind| &part.kept[*kind as usize]);
        // What is approved is not withheld, whatever template it fits too.
        if withheld().next().is_none() || kept.any(|item| is_it(&item)) {
            return None;
        }
        let outward = part.namespace.outward_uri(&route.local);
        let outward = outward.as_deref().unwrap_or(&route.local);
        let mut steps = MATCH_STEPS;
        let fits = |item: &&Arc<Item>| {
            let template = item.template.as_ref();
            template.is_some_and(|it| it.matches(outward, &mut steps) != Some(false))
        };
        let item = withheld().find(is_it).or_else(|| withheld().find(fits))?;
        Some(WithheldItem { item })
    }

    /// What may be an expansion of this upstream's templates, which are known in their outward form; `None` for what is spelled
    /// as another's.
    fn outward<'a>(&self, part: &Part, own: bool, uri: &'a str) -> Option<Cow<'a, str>> {
        if own {
            let outward = part.namespace.outward_uri(uri);
            return Some(outward.map_or(Cow::Borrowed(uri), Cow::Owned));
        }
        let named = self.named(uri);
        let is_its = named.is_none_or(|prefix| prefix == part.namespace.prefix());
        is_its.then_some(Cow::Borrowed(uri))
    }
}

/// The kinds whose items may be asked for as one of this kind.
const fn alike(kind: ListKind) -> &'static [ListKind] {
    match kind {
        ListKind::Resources | ListKind::Templates | ListKind::Skills => {
            &[ListKind::Resources, ListKind::Skills, ListKind::Templates]
        }
        ListKind::Tools => &[ListKind::Tools],
        ListKind::Prompts => &[ListKind::Prompts],
    }
}
