//! What policies are about: the items of `cases.yaml`, of a gateway, or of a catalog that was written down.
//!
//! With `--connect` names lead where the gateway's own snapshot leads them, and items are those that it decides on, tags, pins
//! and toolsets included. Lists alone, of a file or of a gateway elsewhere, tell less; that is said.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use clap::Args;

use super::noted;
use crate::{
    app::App,
    cli::{
        Ended,
        gateway::{Gateway, To, Where},
        near::near,
        out, shown,
    },
    json::{Json, Limits, Node},
    policy::{Action, Configured, Hints, Item, ItemKind, Policy},
    protocol::{UpstreamId, methods::ListKind, names::Scope},
    snapshot::{Named, Snapshot, Unnamed, kind_of, list_of, toolset_of},
};

/// The most of a catalog that is read from a file.
const CATALOG_BYTES: u64 = 256 * 1024 * 1024;

/// Where the items come from.
#[derive(Debug, Args)]
pub(super) struct About {
    #[command(flatten)]
    place: Where,
    /// Reach the upstreams of the configuration, and decide as the gateway does about what they offer
    #[arg(long)]
    connect: bool,
    /// A catalog that was written down: the output of `usher catalog --json`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["connect", "url"])]
    catalog: Option<PathBuf>,
}

/// What there is that policies can be about.
#[derive(Default)]
pub(super) struct Offered {
    /// As policy sees it: of a gateway of ours just what its own decisions are made from.
    pub(super) items: Vec<Item>,
    /// What is configured, so that a policy about it is not about nothing.
    pub(super) configured: Configured,
    /// The world of that gateway.
    snapshot: Option<Arc<Snapshot>>,
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

    /// What is offered; what `cases.yaml` tells of is not among it.
    pub(super) async fn offered(&self) -> Result<Offered, Ended> {
        if let Some(path) = &self.catalog {
            let items = written(path).map_err(|error| {
                out::problem(&format!("{}: {error}", path.display()));
                Ended::Misused
            })?;
            return Ok(Offered::listed(items));
        }
        if !self.is_live() {
            return Ok(Offered::default());
        }
        let gateway = self.place.gateway(To::Look).await?;
        let offered = match &gateway {
            Gateway::AdHoc(own, _) => Ok(Offered::of(own.app())),
            Gateway::Running(_) => listed(&gateway).await,
        };
        gateway.close().await?;
        offered
    }
}

/// What a gateway that runs elsewhere lists.
async fn listed(gateway: &Gateway) -> Result<Offered, Ended> {
    let mut items = Vec::new();
    for kind in ListKind::ALL {
        match gateway.list(kind).await {
            Ok(list) => items.extend(list.iter().filter_map(|json| item(kind, json))),
            Err(refused) => {
                shown::refusal(&refused, false);
                return Err(Ended::Failed);
            }
        }
    }
    Ok(Offered::listed(items))
}

impl Offered {
    /// Of a gateway of our own.
    fn of(app: &App) -> Self {
        let snapshot = app.snapshot();
        let statuses = app.statuses();
        let away = statuses.iter().filter(|status| status.state != "ready");
        let toolsets = snapshot.catalog.scopes().filter_map(toolset_of);
        Self {
            items: snapshot.items(),
            configured: Configured {
                upstreams: statuses.iter().map(|status| status.id.clone()).collect(),
                away: away.map(|status| status.id.clone()).collect(),
                toolsets: toolsets.map(Arc::from).collect(),
            },
            snapshot: Some(snapshot),
        }
    }

    /// Of lists alone, which tell neither tags nor pins nor toolsets.
    fn listed(items: Vec<Item>) -> Self {
        noted(
            "lists tell neither tags nor pinned annotations nor toolsets, and of an upstream only its prefix; `--connect` knows all of it",
        );
        Self {
            items,
            ..Self::default()
        }
    }

    /// Everything there is to ask about: what is offered by a gateway of ours, and nothing else; otherwise also what `cases.yaml`
    /// tells of.
    pub(super) fn with_cases(mut self, policy: &Policy) -> Self {
        if self.snapshot.is_some() {
            return self;
        }
        for item in policy.case_items() {
            let same = |other: &Item| (other.kind, &other.outward) == (item.kind, &item.outward);
            if !self.items.iter().any(same) {
                self.items.push(item.clone());
            }
        }
        self
    }

    /// What a name at an endpoint stands for; where it stands for nothing, that has been told.
    pub(super) fn named(
        &self,
        action: Action,
        name: &str,
        toolset: Option<&str>,
    ) -> Result<Named, Ended> {
        match &self.snapshot {
            Some(snapshot) => self.routed(snapshot, action, name, toolset),
            None => self.guessed(action, name),
        }
    }

    /// The way that a call of that name takes in the gateway.
    fn routed(
        &self,
        snapshot: &Snapshot,
        action: Action,
        name: &str,
        toolset: Option<&str>,
    ) -> Result<Named, Ended> {
        let scope = toolset.map_or(Scope::All, |name| Scope::Toolset(name.into()));
        let problem = match snapshot.named(action, name, &scope) {
            Ok(named) => return Ok(named),
            Err(Unnamed::NoEndpoint) => {
                format!("there is no toolset `{}`", toolset.unwrap_or_default())
            }
            Err(Unnamed::Twisted) => format!(
                "`{name}` is refused whoever asks: dot segments, control characters or broken percent-encoding"
            ),
            Err(Unnamed::NotThere) => {
                let away: Vec<_> = self
                    .configured
                    .away
                    .iter()
                    .map(UpstreamId::as_str)
                    .collect();
                let away = match &away[..] {
                    [] => String::new(),
                    away => format!(" (and these upstreams are away: {})", away.join(", ")),
                };
                let place =
                    toolset.map_or(String::new(), |name| format!(" in the toolset `{name}`"));
                format!("`{name}` is not there{place}{away}{}", self.meant(name))
            }
        };
        out::problem(&out::tame(&problem));
        Err(Ended::Misused)
    }

    /// The item of a name; one that is not among the items by its prefix alone, with a note on it.
    fn guessed(&self, action: Action, name: &str) -> Result<Named, Ended> {
        let kind = kind_of(list_of(action));
        let mut same = self.items.iter().filter(|item| item.kind == kind);
        if let Some(item) = same.find(|item| *item.outward == *name) {
            return Ok(Named {
                kind,
                upstream: item.upstream.clone(),
                local: item.local.clone(),
                outward: name.to_owned(),
            });
        }
        let meant = self.meant(name);
        let Some((upstream, local)) = apart(kind, name) else {
            out::problem(&out::tame(&format!(
                "`{name}` is not there, and no prefix tells whose it would be{meant}"
            )));
            return Err(Ended::Misused);
        };
        // What is not listed may be read all the same.
        if kind != ItemKind::Resource {
            noted(&format!(
                "nothing is known of `{name}`, so its arguments have no types; `--connect` or `items` in cases.yaml would tell{meant}"
            ));
        }
        Ok(Named {
            kind,
            local: local.into(),
            upstream,
            outward: name.to_owned(),
        })
    }

    /// What somebody may have meant, as the end of a sentence.
    fn meant(&self, name: &str) -> String {
        let names: Vec<String> = self
            .items
            .iter()
            .map(|item| item.outward.to_string())
            .collect();
        let near = near(name, &names);
        near.first()
            .map_or(String::new(), |name| format!("; did you mean `{name}`?"))
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
