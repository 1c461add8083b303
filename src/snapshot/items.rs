//! Items: the catalog as policy sees it.

use std::{collections::HashSet, sync::Arc};

use super::Snapshot;
use crate::{
    catalog::{Catalog, Fact, is_twisted},
    json::{Json, Node},
    policy::{Action, Hints, Item, ItemKind, Subject},
    protocol::{UpstreamId, methods::ListKind, names::Scope},
};

/// What a name stands for, as policies are asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// What sort of item.
    pub kind: ItemKind,
    /// Whose it is.
    pub upstream: UpstreamId,
    /// Its upstream's own name for it.
    pub local: Arc<str>,
    /// The name that policies know it by.
    pub outward: String,
}

/// Why a name stands for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unnamed {
    /// There is no such endpoint.
    NoEndpoint,
    /// Nothing is called so there.
    NotThere,
    /// It is refused whoever asks: dot segments, control characters, broken percent-encoding.
    Twisted,
}

impl Named {
    /// As a decision is asked about it.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            kind: self.kind,
            upstream: &self.upstream,
            local: &self.local,
            outward: &self.outward,
        }
    }
}

impl Snapshot {
    /// What a name stands for at an endpoint: the way that a call of that name takes.
    ///
    /// # Errors
    /// [`Unnamed`].
    pub fn named(&self, action: Action, name: &str, scope: &Scope) -> Result<Named, Unnamed> {
        let catalog = &self.catalog;
        if !catalog.scopes().any(|known| known == scope) {
            return Err(Unnamed::NoEndpoint);
        }
        let kind = list_of(action);
        let route = match kind {
            ListKind::Tools => catalog.tool(scope, name).cloned(),
            ListKind::Prompts => catalog.prompt(scope, name).cloned(),
            ListKind::Resources | ListKind::Templates | ListKind::Skills => {
                catalog.resource(scope, name)
            }
        };
        let route = route.ok_or(Unnamed::NotThere)?;
        if kind == ListKind::Resources && is_twisted(&route.local) {
            return Err(Unnamed::Twisted);
        }
        Ok(Named {
            kind: kind_of(kind),
            outward: catalog.name_of(kind, &route, name).into_owned(),
            local: route.local,
            upstream: route.upstream,
        })
    }
}

/// The list that what an action is done with stands in.
pub const fn list_of(action: Action) -> ListKind {
    match action {
        Action::Call => ListKind::Tools,
        Action::Get => ListKind::Prompts,
        Action::Read
        | Action::Subscribe
        | Action::Complete
        | Action::Elicit
        | Action::Sample
        | Action::ListRoots => ListKind::Resources,
    }
}

/// What policy calls the items of a list.
pub const fn kind_of(kind: ListKind) -> ItemKind {
    match kind {
        ListKind::Tools => ItemKind::Tool,
        ListKind::Prompts => ItemKind::Prompt,
        ListKind::Resources | ListKind::Skills => ItemKind::Resource,
        ListKind::Templates => ItemKind::Template,
    }
}

/// The toolset of an endpoint, if it is that of one.
pub fn toolset_of(scope: &Scope) -> Option<&str> {
    match scope {
        Scope::Toolset(name) => Some(name),
        Scope::All | Scope::Upstream(_) => None,
    }
}

/// Every item of a catalog, each once: a skill that is listed as a resource too is that resource.
pub(super) fn of(catalog: &Catalog) -> Vec<Item> {
    let mut seen = HashSet::new();
    let facts = catalog.facts().into_iter();
    facts
        .filter(|fact| {
            let named = (kind_of(fact.kind), fact.name.clone());
            seen.insert(named)
        })
        .map(item)
        .collect()
}

fn item(fact: Fact) -> Item {
    let root = fact.definition.root();
    let schema = match fact.kind {
        ListKind::Tools => root.member("inputSchema"),
        ListKind::Prompts => root.member("arguments"),
        ListKind::Resources | ListKind::Templates | ListKind::Skills => None,
    };
    Item {
        kind: kind_of(fact.kind),
        upstream: fact.route.upstream.clone(),
        outward: fact.name,
        local: fact.route.local.clone(),
        tags: fact.tags,
        pinned: Hints {
            read_only: fact.pins.read_only,
            destructive: fact.pins.destructive,
            idempotent: fact.pins.idempotent,
            open_world: fact.pins.open_world,
        },
        claimed: claimed(fact.kind, &fact.definition),
        toolsets: fact.toolsets,
        schema: schema.map(|schema| fact.definition.slice(schema)),
    }
}

fn claimed(kind: ListKind, definition: &Json) -> Hints {
    let annotations = definition.root().member("annotations");
    let Some(annotations) = annotations.filter(|_| kind == ListKind::Tools) else {
        return Hints::default();
    };
    let hint = |name| annotations.member(name).and_then(Node::as_bool);
    Hints {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}
