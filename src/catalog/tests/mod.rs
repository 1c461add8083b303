//! Tests of the catalog as a whole, through its public face, and what they share.

mod apps;
mod cursors;
mod faces;
mod items;
mod lists;
mod names;
mod routes;
mod strict;
mod unread;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    Catalog, Contribution, Listing, Position,
    rules::{
        CatalogBounds, CatalogRules, NameRules, NamingRules, PageRules, Selection, ToolsetRules,
    },
};
use crate::{
    call::ServerCard,
    json::{Json, Limits, Node},
    protocol::{Revision, UpstreamId, methods::ListKind, names::Scope},
};

pub(super) const MODERN: Revision = Revision::V2026_07_28;

pub(super) fn id(key: &str) -> UpstreamId {
    UpstreamId::parse(key).unwrap()
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::LIST).unwrap()
}

/// Rules for upstreams given as key and prefix.
pub(super) fn rules(upstreams: &[(&str, &str)]) -> CatalogRules {
    CatalogRules {
        upstreams: upstreams
            .iter()
            .map(|(key, prefix)| NamingRules {
                upstream: id(key),
                prefix: (*prefix).into(),
                tools: Selection::default(),
                rename: BTreeMap::new(),
                describe: BTreeMap::new(),
                labels: Default::default(),
                validation: Default::default(),
                claims: Default::default(),
            })
            .collect(),
        toolsets: Vec::new(),
        names: NameRules::default(),
        pages: PageRules::default(),
        bounds: CatalogBounds::default(),
        screen: Default::default(),
    }
}

pub(super) fn toolset(name: &str) -> ToolsetRules {
    ToolsetRules {
        name: name.into(),
        ..ToolsetRules::default()
    }
}

pub(super) fn card(capabilities: &str) -> ServerCard {
    ServerCard {
        revision: MODERN,
        capabilities: json(capabilities),
        instructions: None,
        server_info: None,
        ttl_millis: 0,
    }
}

/// A contribution that was reached and has everything, with these definitions in one list.
pub(super) fn brings(kind: ListKind, definitions: &[String]) -> Contribution {
    let mut contribution = Contribution {
        card: Some(card(r#"{"tools":{},"prompts":{},"resources":{}}"#)),
        read_at: Some(Instant::now()),
        ..Contribution::default()
    };
    for kind in ListKind::EVERY {
        contribution.listing_mut(kind).ttl = Some(Duration::from_secs(60));
        contribution.listing_mut(kind).public = true;
    }
    contribution.listing_mut(kind).items = definitions.iter().map(|text| json(text)).collect();
    contribution
}

pub(super) fn tool(name: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#)
}

pub(super) fn tools(names: &[&str]) -> Contribution {
    let list: Vec<_> = names.iter().map(|name| tool(name)).collect();
    brings(ListKind::Tools, &list)
}

pub(super) fn resource(uri: &str) -> String {
    format!(r#"{{"uri":"{uri}","name":"r"}}"#)
}

pub(super) fn template(uri: &str) -> String {
    format!(r#"{{"uriTemplate":"{uri}","name":"t"}}"#)
}

pub(super) fn build(
    rules: &CatalogRules,
    parts: Vec<(&str, Contribution)>,
    previous: Option<&Catalog>,
) -> Catalog {
    let parts: Vec<_> = parts
        .into_iter()
        .map(|(key, contribution)| (id(key), Arc::new(contribution)))
        .collect();
    Catalog::build(rules, &parts, previous)
}

/// The first page, as text.
pub(super) fn first(
    catalog: &Catalog,
    scope: &Scope,
    kind: ListKind,
    revision: Revision,
) -> String {
    let page = catalog
        .page(scope, kind, revision, &Position::start())
        .unwrap();
    String::from_utf8(page.items.value().to_vec()).unwrap()
}

/// The one item of one list, as shown under prefix `wh`.
pub(super) fn shown(kind: ListKind, definition: &str, revision: Revision) -> String {
    let catalog = build(
        &rules(&[("a", "wh")]),
        vec![("a", brings(kind, &[definition.into()]))],
        None,
    );
    let page = first(&catalog, &Scope::All, kind, revision);
    page[1..page.len() - 1].to_owned()
}

/// The names or URIs in an encoded page.
pub(super) fn keys(items: &[u8], kind: ListKind) -> Vec<String> {
    let items = json(std::str::from_utf8(items).unwrap());
    items
        .root()
        .elements()
        .map(|item| {
            item.member(kind.key())
                .and_then(Node::as_str)
                .unwrap()
                .into_owned()
        })
        .collect()
}

/// Every name of a list, read to its end.
pub(super) fn all(catalog: &Catalog, scope: &Scope, kind: ListKind) -> Vec<String> {
    let mut names = Vec::new();
    let mut after = Some(Position::start());
    while let Some(position) = after {
        let page = catalog.page(scope, kind, MODERN, &position).unwrap();
        names.extend(keys(&page.items.value(), kind));
        after = page.next;
    }
    names
}

/// Upstream, name and reason of each report.
pub(super) fn reports(catalog: &Catalog) -> Vec<(String, String, String)> {
    catalog
        .reports()
        .iter()
        .map(|report| {
            (
                report.upstream.to_string(),
                report.name.clone(),
                report.reason.to_string(),
            )
        })
        .collect()
}
