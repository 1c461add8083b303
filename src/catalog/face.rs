//! Faces: what an endpoint says of itself, merged from what its upstreams say (PROTOCOL D4).

use std::{fmt::Write, sync::Arc};

use super::part::Part;
use crate::{
    call::ServerCard,
    json::{Json, Node},
    protocol::Revision,
};

/// What an endpoint offers, the same for every revision.
#[derive(Debug)]
pub(super) struct Face {
    capabilities: Json,
    instructions: Option<Arc<str>>,
}

/// How the instructions of several upstreams are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Labels {
    /// There is one upstream and its names are its own.
    None,
    /// By a line with key and prefix before each.
    Prefixes,
}

/// Most bytes of one upstream's instructions.
const ONE_BYTES: usize = 8 << 10;
/// Most bytes of all instructions together, labels included.
const ALL_BYTES: usize = 32 << 10;
const CUT: &str = "\n[cut]";
const PREFIX_RULE: &str = "Several servers answer here. The tools and prompts of a server are called by its prefix, `_` and their own name; \
    its resource URIs begin with its prefix and `+`.";
const OWN_NAMES: &str = " What each server says below may use its own names, without the prefix.";

impl Face {
    /// The card, for a client of this revision. Its `ttl_millis` is 0: how old the upstreams' cards are is not known.
    pub(super) fn card(&self, revision: Revision) -> ServerCard {
        ServerCard {
            revision,
            capabilities: self.capabilities.clone(),
            instructions: self.instructions.clone(),
            server_info: None,
            ttl_millis: 0,
        }
    }
}

/// The face of these upstreams together, in this order. One that nothing was heard of yet may turn out to do anything: sessions
/// are told once, and what a server does not offer after all is refused by name, as where another offers it.
pub(super) fn merge<'a>(labels: &Labels, parts: impl Iterator<Item = &'a Part>) -> Face {
    let (mut completes, mut logs, mut subscribes) = (false, false, false);
    let mut text = String::new();
    let (mut speaks, mut is_awaited) = (false, false);
    for part in parts {
        if part.is_unheard() {
            (completes, logs, subscribes) = (true, true, true);
            is_awaited = true;
        }
        let Some(card) = part.contribution.as_ref().and_then(|it| it.card.as_ref()) else {
            continue;
        };
        speaks = true;
        completes |= can_complete(card);
        logs |= declares(card, "logging");
        subscribes |= can_subscribe(card);
        let Some(instructions) = card.instructions.as_deref().map(str::trim) else {
            continue;
        };
        let withheld = part.contribution.as_ref();
        if instructions.is_empty() || withheld.is_some_and(|it| it.withheld.instructions) {
            continue;
        }
        if *labels == Labels::Prefixes {
            if text.is_empty() {
                text.push_str(PREFIX_RULE);
                text.push_str(OWN_NAMES);
            }
            let (id, prefix) = (part.id(), part.namespace.prefix());
            let _ = if prefix.is_empty() {
                write!(text, "\n\n## {id} (no prefix)\n")
            } else {
                write!(text, "\n\n## {id} (prefix `{prefix}`)\n")
            };
        }
        push_cut(&mut text, instructions, ONE_BYTES);
    }
    if is_awaited && !speaks && *labels == Labels::Prefixes {
        text.push_str(PREFIX_RULE);
    }
    let instructions = (!text.is_empty()).then(|| {
        let mut all = String::new();
        push_cut(&mut all, &text, ALL_BYTES);
        all.into()
    });
    // Changes are told of whatever an upstream promises: where it tells of none, its lists are read now and then.
    let changes = Json::literal(r#"{"listChanged":true}"#);
    let resources = if subscribes {
        Json::literal(r#"{"subscribe":true,"listChanged":true}"#)
    } else {
        changes.clone()
    };
    let always = [
        ("tools", changes.clone()),
        ("prompts", changes),
        ("resources", resources),
    ];
    let some = [("completions", completes), ("logging", logs)]
        .into_iter()
        .filter(|(_, has)| *has)
        .map(|(name, _)| (name, Json::empty_object()));
    let members: Vec<_> = always.into_iter().chain(some).collect();
    Face {
        capabilities: crate::protocol::meta::object_of(&members),
        instructions,
    }
}

fn declares(card: &ServerCard, capability: &str) -> bool {
    card.capabilities.root().member(capability).is_some()
}

/// Whether a server completes, or may though it has no way to say so: then it has something that can be completed.
fn can_complete(card: &ServerCard) -> bool {
    let undeclared = card.revision.features().completes_undeclared;
    declares(card, "completions")
        || undeclared && (declares(card, "prompts") || declares(card, "resources"))
}

/// Whether a server tells of changes of single resources.
fn can_subscribe(card: &ServerCard) -> bool {
    let resources = card.capabilities.root().member("resources");
    resources
        .and_then(|resources| resources.member("subscribe"))
        .and_then(Node::as_bool)
        == Some(true)
}

/// Appends `text`, cut to `limit` bytes with a mark when it is longer.
fn push_cut(out: &mut String, text: &str, limit: usize) {
    if text.len() <= limit {
        out.push_str(text);
    } else {
        let mut end = limit - CUT.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        out.push_str(&text[..end]);
        out.push_str(CUT);
    }
}
