//! Items: the catalog as policy sees it.

use std::collections::HashSet;

use crate::{
    catalog::{Catalog, Fact},
    json::{Json, Node},
    policy::{Hints, Item, ItemKind},
    protocol::{methods::ListKind, names::Scope},
};

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
