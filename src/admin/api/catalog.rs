//! The catalog: what is offered, whoever may use it; each item with its definition, and how it stands.

use std::{cmp::Ordering, sync::Arc};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, Given, KINDS, aside, findings::Found, kind_word};
use crate::{
    admin::{
        Gateway,
        asked::Asked,
        paging::{CURSOR, LIMIT, Page, Parameter, Shape},
        problem::Problem,
    },
    catalog::Fact,
    json::Node,
};

pub(in crate::admin) const SEARCH: &[Parameter] = &[
    CURSOR,
    LIMIT,
    Parameter::named(
        "q",
        "Only items whose name, title or description holds this, whatever the case of its letters.",
    ),
    Parameter::maybe("kind", Shape::Word(KINDS), "Only items of this sort."),
    Parameter::maybe("upstream", Shape::Text(32), "Only items of this upstream."),
    Parameter::maybe(
        "pin",
        Shape::Word(&["approved", "changed", "new"]),
        "Only items that stand so.",
    ),
];
pub(in crate::admin) const SHOW: &[Parameter] = &[
    Parameter::needed("kind", Shape::Word(KINDS), "What sort of item."),
    Parameter::needed(
        "name",
        Shape::Text(8_192),
        "Its name or URI, as the main endpoint lists it.",
    ),
];

/// Characters of a description in a list; the definition has all of them.
const DESCRIPTION: usize = 300;

pub(in crate::admin) type List = Page<Brief>;

/// One item at a glance.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Item")]
pub(in crate::admin) struct Brief {
    /// `tool`, `prompt`, `resource`, `template` or `skill`.
    kind: &'static str,
    /// Its name or URI, as the main endpoint lists it.
    name: String,
    /// Whose it is.
    upstream: String,
    /// Its upstream's own name for it.
    local: String,
    /// Its title, if it has one.
    title: Option<String>,
    /// The first 300 characters of its description.
    description: Option<String>,
    /// The toolsets it is in.
    toolsets: Vec<Arc<str>>,
    /// Tags that the operator gave it.
    tags: Vec<Arc<str>>,
    /// `approved`, `changed` or `new`, against what was approved; null where nobody looks.
    pin: Option<&'static str>,
}

/// One item, with everything there is to say of it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ItemInFull")]
pub(in crate::admin) struct Whole {
    #[serde(flatten)]
    brief: Brief,
    /// The definition as its upstream gave it.
    definition: Given,
    /// What the operator says that it does: of tools only.
    pinned: Pinned,
    /// What was found in it, or in calls of it, of the findings that are kept; the newest first.
    findings: Vec<Found>,
}

/// What the operator says that a tool does.
#[derive(Debug, Serialize, JsonSchema)]
struct Pinned {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

pub(in crate::admin) fn search(asked: Asked) -> Answer {
    aside(move || {
        let query = &asked.query;
        let (after, limit) = (query.after()?, query.limit());
        let (kind, upstream) = (query.text("kind"), query.text("upstream"));
        let pin = query.text("pin");
        let wanted = query.text("q").map(str::to_lowercase);
        let mut facts = asked.gateway.world.load().catalog.facts();
        facts.retain(|fact| {
            kind.is_none_or(|kind| kind_word(fact.kind) == kind)
                && upstream.is_none_or(|name| fact.route.upstream.as_str() == name)
                && after.as_deref().is_none_or(|after| *key(fact) > *after)
                && wanted.as_deref().is_none_or(|wanted| holds(fact, wanted))
        });
        facts.sort_by(by_key);
        let briefs = facts.iter().map(|fact| Brief::of(fact, &asked.gateway));
        let briefs = briefs.filter(|brief| pin.is_none_or(|pin| brief.pin == Some(pin)));
        let briefs: Vec<_> = briefs.take(limit + 1).collect();
        let key = |brief: &Brief| format!("{}\n{}\n{}", brief.kind, brief.name, brief.upstream);
        Ok(Page::of(briefs, limit, key))
    })
}

pub(in crate::admin) fn show(asked: Asked) -> Answer {
    aside(move || {
        let (kind, name) = (asked.query.text("kind"), asked.query.text("name"));
        let facts = asked.gateway.world.load().catalog.facts();
        let is = |fact: &&Fact| Some(kind_word(fact.kind)) == kind && Some(&*fact.name) == name;
        let fact = facts.iter().find(is);
        let fact = fact.ok_or_else(|| Problem::not_found("item"))?;
        let recent = asked.gateway.findings.recent();
        let about = recent.iter().rev().filter(|finding| {
            finding.upstream.as_ref() == Some(&fact.route.upstream)
                && finding.item.as_deref() == Some(&*fact.route.local)
        });
        Ok(Whole {
            brief: Brief::of(fact, &asked.gateway),
            definition: Given(fact.definition.clone()),
            pinned: Pinned {
                read_only: fact.pins.read_only,
                destructive: fact.pins.destructive,
                idempotent: fact.pins.idempotent,
                open_world: fact.pins.open_world,
            },
            findings: about.map(|finding| Found::of(finding)).collect(),
        })
    })
}

impl Brief {
    fn of(fact: &Fact, gateway: &Gateway) -> Self {
        let root = fact.definition.root();
        let text = |member: &str| root.member(member).and_then(Node::as_str);
        let local = &fact.route.local;
        let state = gateway.ledger.state(&fact.route.upstream, fact.kind, local);
        Self {
            kind: kind_word(fact.kind),
            name: fact.name.to_string(),
            upstream: fact.route.upstream.as_str().to_owned(),
            local: local.to_string(),
            title: text("title").map(std::borrow::Cow::into_owned),
            description: text("description").map(|it| it.chars().take(DESCRIPTION).collect()),
            toolsets: fact.toolsets.clone(),
            tags: fact.tags.clone(),
            pin: state.map(crate::pins::State::word),
        }
    }
}

/// What tells an item's place in the list.
fn key(fact: &Fact) -> String {
    format!(
        "{}\n{}\n{}",
        kind_word(fact.kind),
        fact.name,
        fact.route.upstream
    )
}

fn by_key(one: &Fact, other: &Fact) -> Ordering {
    let key = |fact: &Fact| (kind_word(fact.kind), fact.name.clone());
    key(one)
        .cmp(&key(other))
        .then_with(|| one.route.upstream.cmp(&other.route.upstream))
}

/// Whether a lower-case text stands in it.
fn holds(fact: &Fact, wanted: &str) -> bool {
    let root = fact.definition.root();
    let texts = ["title", "description"];
    let mut texts = texts.into_iter().filter_map(|it| root.member(it)?.as_str());
    fact.name.to_lowercase().contains(wanted)
        || texts.any(|text| text.to_lowercase().contains(wanted))
}
