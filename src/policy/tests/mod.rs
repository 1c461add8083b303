//! The engine as the rest of the program uses it.

mod authors;
mod deciding;
mod loading;
mod naive;
mod properties;
mod templates;

use std::{sync::Arc, time::SystemTime};

use bytes::Bytes;

use super::*;
use crate::{
    call::{Identity, IdentityKind, Principal},
    json::{Json, Limits},
    protocol::{Revision, UpstreamId},
};

/// JSON of a test.
fn json(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::CLIENT).expect("JSON")
}

/// A set of one file.
fn set(text: &str) -> Policy {
    Policy::of(&[("p.cedar", text)]).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// Somebody with a name and groups.
fn somebody(kind: IdentityKind, name: &str, groups: &[&str]) -> Identity {
    Identity {
        principal: Principal::new(format!("{kind:?}:{name}")),
        groups: groups.iter().map(|group| Arc::from(*group)).collect(),
        ..Identity::named(kind, name)
    }
}

fn user(name: &str, groups: &[&str]) -> Identity {
    somebody(IdentityKind::User, name, groups)
}

/// An upstream's key.
fn upstream(id: &str) -> UpstreamId {
    UpstreamId::parse(id).expect("a key")
}

/// The item `UPSTREAM_LOCAL`, or for resources and templates `LOCAL`.
fn item(kind: ItemKind, id: &str, local: &str, schema: Option<&str>) -> Item {
    let outward = match kind {
        ItemKind::Tool | ItemKind::Prompt => format!("{id}_{local}"),
        ItemKind::Resource | ItemKind::Template => format!("{id}+{local}"),
    };
    Item {
        kind,
        upstream: upstream(id),
        outward: outward.into(),
        local: local.into(),
        tags: Vec::new(),
        pinned: Hints::default(),
        claimed: Hints::default(),
        toolsets: Vec::new(),
        schema: schema.map(json),
    }
}

fn tool(id: &str, local: &str, schema: &str) -> Item {
    item(ItemKind::Tool, id, local, Some(schema))
}

const REPO: &str = r#"{"type":"object","properties":{
    "repo":{"type":"string"},"amount":{"type":"number"},"force":{"type":"boolean"},
    "labels":{"type":"array","items":{"type":"string"}},
    "filter":{"type":"object","properties":{"owner":{"type":"string"},"depth":{"type":"integer"}}},
    "note":{"anyOf":[{"type":"string"},{"type":"null"}]},
    "any":{}},"required":["repo"]}"#;

/// What is there in most tests.
fn items() -> Vec<Item> {
    vec![
        tool("github", "create_issue", REPO),
        Item {
            pinned: Hints {
                destructive: Some(true),
                ..Hints::default()
            },
            ..tool("github", "delete_repo", REPO)
        },
        Item {
            pinned: Hints {
                read_only: Some(true),
                ..Hints::default()
            },
            ..tool(
                "docs",
                "search",
                r#"{"type":"object","properties":{"query":{"type":"string"}}}"#,
            )
        },
        item(
            ItemKind::Prompt,
            "docs",
            "summary",
            Some(r#"[{"name":"topic"}]"#),
        ),
        item(ItemKind::Resource, "docs", "file:///pub/a.txt", None),
        item(ItemKind::Template, "docs", "file:///{path}", None),
    ]
}

fn circumstances() -> Circumstances<'static> {
    Circumstances {
        revision: Revision::LATEST_MODERN,
        address: None,
        toolset: None,
        now: SystemTime::UNIX_EPOCH,
    }
}

/// What is asked about: `github_create_issue`.
fn subject<'a>(item: &'a Item) -> Subject<'a> {
    Subject {
        kind: item.kind,
        upstream: &item.upstream,
        local: &item.local,
        outward: &item.outward,
    }
}

/// Policies over [`items`].
struct Over {
    items: Vec<Item>,
    prepared: Prepared,
}

impl Over {
    fn new(text: &str) -> Self {
        Self::with(&set(text), items())
    }

    fn with(policy: &Policy, items: Vec<Item>) -> Self {
        Self {
            prepared: policy.prepare(items.clone(), None),
            items,
        }
    }

    fn find(&self, outward: &str) -> &Item {
        let found = self.items.iter().find(|item| *item.outward == *outward);
        found.unwrap_or_else(|| panic!("no {outward}"))
    }

    /// Decides what is usually done with an item.
    fn decide(&self, who: &Identity, outward: &str, args: &str) -> Result<Permit, Denied> {
        let item = self.find(outward);
        self.act(who, item.kind.uses()[0], outward, args)
    }

    fn act(
        &self,
        who: &Identity,
        action: Action,
        outward: &str,
        args: &str,
    ) -> Result<Permit, Denied> {
        let args = json(args);
        self.prepared.decide(&Ask {
            who,
            action,
            item: subject(self.find(outward)),
            arguments: Some(&args),
            circumstances: circumstances(),
        })
    }

    /// In one word: `allow`, or why not.
    fn word(&self, who: &Identity, outward: &str, args: &str) -> &'static str {
        match self.decide(who, outward, args) {
            Ok(_) => "allow",
            Err(denied) => denied.reason.word(),
        }
    }

    fn lists(&self, who: &Identity, outward: &str) -> bool {
        let class = self.prepared.class(who);
        self.prepared
            .lists(&class, subject(self.find(outward)), None)
    }
}
