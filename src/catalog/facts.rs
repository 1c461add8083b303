//! Facts: what is known of each item, for whoever decides who may use it (SECURITY 5.4).
//!
//! Guarantees: an item has one name for this purpose, whichever endpoint it is used at, and no two items share one: what has
//! no outward name of its own is called by its upstream and its upstream's name for it, with a character between that no
//! outward name may hold. Deliberately absent: any decision.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use super::{
    Catalog, Route,
    check::Item,
    rules::{Labels, Pins},
};
use crate::{
    glob,
    json::Json,
    protocol::{UpstreamId, methods::ListKind, names::Scope},
};

/// One item of the catalog, as far as it matters for who may use it.
#[derive(Debug, Clone)]
pub struct Fact {
    /// What sort.
    pub kind: ListKind,
    /// Where it leads.
    pub route: Route,
    /// Its name, see the module.
    pub name: Arc<str>,
    /// The definition as the upstream gave it.
    pub definition: Json,
    /// The toolsets it is in.
    pub toolsets: Vec<Arc<str>>,
    /// Tags that the operator gave it, each once.
    pub tags: Vec<Arc<str>>,
    /// What the operator says that it does: of tools only.
    pub pins: Pins,
}

/// Between upstream and local name where there is no outward name: no name and no address may hold it.
const APART: char = '\u{1}';

impl Catalog {
    /// Every item that some endpoint serves.
    pub fn facts(&self) -> Vec<Fact> {
        let mut toolsets: HashMap<*const Item, Vec<Arc<str>>> = HashMap::new();
        for (scope, view) in &self.scopes {
            let Scope::Toolset(name) = scope else {
                continue;
            };
            for item in view.lists.iter().flat_map(|list| list.items()) {
                toolsets
                    .entry(Arc::as_ptr(item))
                    .or_default()
                    .push(name.clone());
            }
        }
        let mut facts = Vec::new();
        for part in &self.parts {
            for kind in ListKind::EVERY {
                for item in &part.kept[kind as usize] {
                    let Route {
                        upstream, local, ..
                    } = &item.route;
                    let mut sets = toolsets.remove(&Arc::as_ptr(item)).unwrap_or_default();
                    sets.sort_unstable();
                    facts.push(Fact {
                        kind,
                        route: item.route.clone(),
                        name: if self.holds(kind, &item.exposed, upstream, local) {
                            item.exposed.clone()
                        } else {
                            apart(upstream, local).into()
                        },
                        definition: item.raw.clone(),
                        toolsets: sets,
                        tags: tags(&part.naming.labels, local),
                        pins: match kind {
                            ListKind::Tools => pins(&part.naming.labels, local),
                            ListKind::Prompts
                            | ListKind::Resources
                            | ListKind::Templates
                            | ListKind::Skills => Pins::default(),
                        },
                    });
                }
            }
        }
        facts
    }

    /// The one name of what a route leads to, whichever endpoint it was found at and whether any list has it or not.
    /// `asked` is how it was asked for, or how it is listed.
    pub fn name_of<'a>(&'a self, kind: ListKind, route: &Route, asked: &'a str) -> Cow<'a, str> {
        if self.holds(kind, asked, &route.upstream, &route.local) {
            return Cow::Borrowed(asked);
        }
        let own = self.scopes.get(&Scope::Upstream(route.upstream.clone()));
        let listed = own.and_then(|view| view.lists[kind as usize].item(&route.local));
        let name = match (listed, kind) {
            (Some(item), _) => Some(Cow::Borrowed(&*item.exposed)),
            (None, ListKind::Tools | ListKind::Prompts) => {
                return self
                    .unread_name(kind, route)
                    .unwrap_or_else(|| Cow::Owned(apart(&route.upstream, &route.local)));
            }
            (None, ListKind::Resources | ListKind::Templates | ListKind::Skills) => {
                let part = self.parts.iter().find(|part| *part.id() == route.upstream);
                part.map(|part| match part.namespace.outward_uri(&route.local) {
                    Some(outward) => Cow::Owned(outward),
                    None => Cow::Owned(route.local.to_string()),
                })
            }
        };
        match name {
            Some(name) if self.may_hold(kind, &name, &route.upstream, &route.local) => name,
            _ => Cow::Owned(apart(&route.upstream, &route.local)),
        }
    }

    /// One of the upstreams, if there are any.
    pub fn some_upstream(&self) -> Option<&UpstreamId> {
        self.parts.first().map(super::part::Part::id)
    }

    /// Whether an outward name is that of just this item.
    fn holds(&self, kind: ListKind, name: &str, upstream: &UpstreamId, local: &str) -> bool {
        let holder = self.held[kind as usize].get(name);
        holder.is_some_and(|(whose, what)| whose == upstream && **what == *local)
    }

    /// Whether an outward name is this item's, or nobody's and spelled in its upstream's namespace or in none.
    fn may_hold(&self, kind: ListKind, name: &str, upstream: &UpstreamId, local: &str) -> bool {
        match self.held[kind as usize].get(name) {
            Some((whose, what)) => whose == upstream && **what == *local,
            None => self
                .owner(name)
                .is_none_or(|rank| self.parts[rank].id() == upstream),
        }
    }
}

fn tags(labels: &Labels, local: &str) -> Vec<Arc<str>> {
    let given = labels
        .tags
        .iter()
        .filter(|(glob, _)| glob::matches(glob, local));
    let mut tags: Vec<_> = given.flat_map(|(_, tags)| tags.iter().cloned()).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

fn pins(labels: &Labels, local: &str) -> Pins {
    let given = labels
        .pins
        .iter()
        .filter(|(glob, _)| glob::matches(glob, local));
    given.fold(Pins::default(), |before, (_, pins)| Pins {
        read_only: pins.read_only.or(before.read_only),
        destructive: pins.destructive.or(before.destructive),
        idempotent: pins.idempotent.or(before.idempotent),
        open_world: pins.open_world.or(before.open_world),
    })
}

fn apart(upstream: &UpstreamId, local: &str) -> String {
    format!("{upstream}{APART}{local}")
}
