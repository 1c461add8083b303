//! What policies are about: the items of `cases.yaml`, of a gateway, or of a catalog that was written down.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;

use crate::{
    cli::{Ended, gateway::Where, near::near, out, shown},
    json::{Json, Limits, Node},
    policy::{Action, Hints, Item, ItemKind, Policy, Subject},
    protocol::{UpstreamId, methods::ListKind},
};

/// The most of a catalog that is read from a file.
const CATALOG_BYTES: u64 = 256 * 1024 * 1024;

/// Where the items come from.
#[derive(Debug, Args)]
pub(super) struct About {
    #[command(flatten)]
    place: Where,
    /// Ask the upstreams of the configuration what they offer
    #[arg(long)]
    connect: bool,
    /// A catalog that was written down: the output of `usher catalog --json`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["connect", "url"])]
    catalog: Option<PathBuf>,
}

impl About {
    /// The file of the configuration, whether it is there or not.
    pub(super) fn config(&self) -> PathBuf {
        self.place.config()
    }

    /// Whether a catalog is asked for.
    pub(super) fn is_live(&self) -> bool {
        self.connect || self.place.is_running() || self.catalog.is_some()
    }

    /// The items; those of `cases.yaml` are not among them.
    pub(super) async fn items(&self) -> Result<Vec<Item>, Ended> {
        if let Some(path) = &self.catalog {
            return written(path).map_err(|error| {
                out::problem(&format!("{}: {error}", path.display()));
                Ended::Misused
            });
        }
        if !self.is_live() {
            return Ok(Vec::new());
        }
        let gateway = self.place.gateway().await?;
        let mut items = Vec::new();
        for kind in ListKind::ALL {
            match gateway.list(kind).await {
                Ok(list) => items.extend(list.iter().filter_map(|json| item(kind, json))),
                Err(refused) => {
                    shown::refusal(&refused, false);
                    gateway.close().await;
                    return Err(Ended::Failed);
                }
            }
        }
        gateway.close().await;
        Ok(items)
    }
}

/// The items of a written catalog.
fn written(path: &Path) -> Result<Vec<Item>, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if size.len() > CATALOG_BYTES {
        return Err("longer than 256 MiB".into());
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let catalog =
        Json::parse(Bytes::from(bytes), &Limits::LIST).map_err(|error| error.to_string())?;
    let mut items = Vec::new();
    for kind in ListKind::ALL {
        let list = catalog.root().member(kind.member());
        let list = list.into_iter().flat_map(Node::elements);
        items.extend(list.filter_map(|node| item(kind, &catalog.slice(node))));
    }
    Ok(items)
}

/// A listed item as policy sees it. Its upstream is told by its prefix.
// Tags, pins and toolsets are not listed; with a configuration at hand they are the gateway's to add.
fn item(kind: ListKind, json: &Json) -> Option<Item> {
    let root = json.root();
    let (kind, name, schema) = match kind {
        ListKind::Tools => (ItemKind::Tool, "name", root.member("inputSchema")),
        ListKind::Prompts => (ItemKind::Prompt, "name", root.member("arguments")),
        ListKind::Resources => (ItemKind::Resource, "uri", None),
        ListKind::Templates => (ItemKind::Template, "uriTemplate", None),
        ListKind::Skills => return None,
    };
    let outward = root.member(name)?.as_str()?;
    let (upstream, local) = apart(kind, &outward)?;
    let hint = |name: &str| {
        let annotations = root.member("annotations")?;
        annotations.member(name)?.as_bool()
    };
    Some(Item {
        kind,
        local: local.into(),
        upstream,
        outward: outward.as_ref().into(),
        tags: Vec::new(),
        pinned: Hints::default(),
        claimed: Hints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
        toolsets: Vec::new(),
        schema: schema.map(|schema| json.slice(schema)),
    })
}

fn apart(kind: ItemKind, outward: &str) -> Option<(UpstreamId, &str)> {
    let separator = match kind {
        ItemKind::Tool | ItemKind::Prompt => '_',
        ItemKind::Resource | ItemKind::Template => '+',
    };
    let (prefix, local) = outward.split_once(separator)?;
    Some((UpstreamId::parse(prefix)?, local))
}

/// What is done with which item.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Done {
    /// Call this tool
    #[arg(long, value_name = "TOOL")]
    call: Option<String>,
    /// Get this prompt
    #[arg(long, value_name = "PROMPT")]
    get: Option<String>,
    /// Read this resource
    #[arg(long, value_name = "URI")]
    read: Option<String>,
    /// Subscribe to this resource
    #[arg(long, value_name = "URI")]
    subscribe: Option<String>,
}

impl Done {
    /// The action and the item's name.
    pub(super) fn action(&self) -> (Action, &str) {
        let done = [
            (Action::Call, &self.call),
            (Action::Get, &self.get),
            (Action::Read, &self.read),
            (Action::Subscribe, &self.subscribe),
        ];
        let mut done = done
            .into_iter()
            .filter_map(|(action, name)| Some((action, name.as_deref()?)));
        done.next().unwrap_or((Action::Call, ""))
    }
}

/// An item to ask about.
pub(super) struct Named {
    kind: ItemKind,
    upstream: UpstreamId,
    local: String,
    outward: String,
}

impl Named {
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            kind: self.kind,
            upstream: &self.upstream,
            local: &self.local,
            outward: &self.outward,
        }
    }
}

/// Everything there is to ask about: `live` first, then what `cases.yaml` tells of.
pub(super) fn all(policy: &Policy, live: Vec<Item>) -> Vec<Item> {
    let mut items = live;
    for item in policy.case_items() {
        let same = |other: &Item| (other.kind, &other.outward) == (item.kind, &item.outward);
        if !items.iter().any(same) {
            items.push(item.clone());
        }
    }
    items
}

/// The item of a name; one that is not among `items` by its prefix alone, with a note on it.
pub(super) fn named(items: &[Item], action: Action, name: &str) -> Result<Named, Ended> {
    let found = items
        .iter()
        .filter(|item| *item.outward == *name)
        .find(|item| item.kind.uses().contains(&action));
    if let Some(item) = found {
        return Ok(Named {
            kind: item.kind,
            upstream: item.upstream.clone(),
            local: item.local.to_string(),
            outward: name.to_owned(),
        });
    }
    let names: Vec<String> = items.iter().map(|item| item.outward.to_string()).collect();
    let kind = match action {
        Action::Call => ItemKind::Tool,
        Action::Get => ItemKind::Prompt,
        Action::Read
        | Action::Subscribe
        | Action::Complete
        | Action::Elicit
        | Action::Sample
        | Action::ListRoots => ItemKind::Resource,
    };
    let meant = match near(name, &names)[..] {
        [] => String::new(),
        [first, ..] => format!("; did you mean `{first}`?"),
    };
    let Some((upstream, local)) = apart(kind, name) else {
        out::problem(&format!(
            "`{name}` is not there, and no prefix tells whose it would be{meant}"
        ));
        return Err(Ended::Misused);
    };
    // What is not listed may be read all the same.
    if kind != ItemKind::Resource {
        out::note(&format!(
            "{}: nothing is known of `{name}`, so its arguments have no types; `--connect` or `items` in cases.yaml would tell{meant}",
            out::paint(out::YELLOW, "note")
        ));
    }
    Ok(Named {
        kind,
        local: local.to_owned(),
        upstream,
        outward: name.to_owned(),
    })
}
