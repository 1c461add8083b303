//! Scopes: what one endpoint serves, as lists, lookups and hints.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    Catalog, Hints, Route,
    apps::Apps,
    check::{Item, URI_BYTES},
    cursor::Position,
    face::{self, Face},
    hints::{self, Freshness},
    namespace::{self, Namespace},
    offered::Offered,
    part::Part,
    rules::{CatalogRules, ToolsetRules},
    spelling,
    template::MATCH_STEPS,
    view::{ListView, Section},
};
use crate::{
    glob,
    protocol::{
        UpstreamId,
        extensions::{Offers, TaskDesign},
        methods::ListKind,
        names::Scope,
    },
};

/// Everything one endpoint serves.
#[derive(Debug)]
pub(super) struct ScopeView {
    pub(super) lists: [Arc<ListView>; ListKind::COUNT],
    pub(super) face: Face,
    pub(super) offered: Offered,
    hints: [Freshness; ListKind::COUNT],
    away: Option<Arc<[String]>>,
    partial: [Option<Arc<[String]>>; ListKind::COUNT],
    extent: Extent,
    /// The upstreams that have a part in it, by rank.
    members: Vec<usize>,
    apps: Apps,
    /// Templates whose spelling does not tell whose they are.
    loose: Vec<Arc<Item>>,
}

/// How far a scope reaches.
#[derive(Debug)]
enum Extent {
    All,
    Toolset(ToolsetRules),
    Upstream {
        rank: usize,
        identity: Arc<Namespace>,
    },
}

/// Every scope that is configured.
pub(super) fn all(rules: &CatalogRules) -> impl Iterator<Item = Scope> {
    let toolsets = rules
        .toolsets
        .iter()
        .map(|set| Scope::Toolset(set.name.clone()));
    let upstreams = rules
        .upstreams
        .iter()
        .map(|naming| Scope::Upstream(naming.upstream.clone()));
    std::iter::once(Scope::All).chain(toolsets).chain(upstreams)
}

impl ScopeView {
    pub(super) fn new(
        scope: &Scope,
        rules: &CatalogRules,
        parts: &[Part],
        previous: Option<&Self>,
    ) -> Self {
        let extent = Extent::new(scope, rules, previous);
        let lists = ListKind::EVERY.map(|kind| {
            let before = previous.map(|previous| &previous.lists[kind as usize]);
            extent.list(kind, rules, parts, before)
        });
        let members: Vec<_> = (0..parts.len())
            .filter(|rank| extent.includes(parts, *rank, &lists))
            .collect();
        let loose = lists[ListKind::Templates as usize]
            .items()
            .iter()
            .filter(|item| namespace::is_web(&item.exposed) || item.exposed == item.route.local)
            .cloned()
            .collect();
        let apps = match extent {
            Extent::Upstream { .. } => Apps::default(),
            Extent::All | Extent::Toolset(_) => Apps::new(
                parts,
                &lists[ListKind::Tools as usize],
                &lists[ListKind::Resources as usize],
            ),
        };
        Self {
            apps,
            offered: Offered::of(members.iter().map(|rank| &parts[*rank])),
            face: face::merge(
                &extent.labelled(parts),
                members.iter().map(|rank| &parts[*rank]),
            ),
            hints: ListKind::EVERY.map(|kind| {
                let parts = members.iter().map(|rank| &parts[*rank]);
                Freshness::of(kind, parts, matches!(extent, Extent::Toolset(_)))
            }),
            lists,
            away: hints::away(members.iter().map(|rank| &parts[*rank])),
            partial: ListKind::EVERY
                .map(|kind| hints::partial(kind, members.iter().map(|rank| &parts[*rank]))),
            extent,
            members,
            loose,
        }
    }

    /// The upstreams that have a part in it, by rank.
    pub(super) fn members(&self) -> &[usize] {
        &self.members
    }

    /// How texts of its upstreams are told apart.
    pub(super) fn labelled(&self, parts: &[Part]) -> face::Labels {
        self.extent.labelled(parts)
    }

    /// Whether the page after `after` may be kept by everybody.
    pub(super) const fn is_public(&self, kind: ListKind, after: &Position) -> bool {
        self.hints[kind as usize].public && !after.private
    }

    pub(super) fn hints(&self, kind: ListKind, after: &Position, now: Instant) -> Hints {
        let until = self.hints[kind as usize].until.get();
        let left = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        Hints {
            ttl_millis: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            public: self.is_public(kind, after),
            away: self.away.clone(),
            partial: self.partial[kind as usize].clone(),
        }
    }

    /// The lists of the upstream at `rank` were read again and are the same.
    pub(super) fn confirm(&self, parts: &[Part], rank: usize) {
        if !self.members.contains(&rank) {
            return;
        }
        for kind in ListKind::EVERY {
            let members = self.members.iter().map(|rank| &parts[*rank]);
            self.hints[kind as usize].confirm(kind, members);
        }
    }

    /// The namespace that results of this upstream are to be seen in; `None` when it has no part in the scope.
    pub(super) fn namespace(
        &self,
        parts: &[Part],
        upstream: &UpstreamId,
    ) -> Option<Arc<Namespace>> {
        let rank = *self
            .members
            .iter()
            .find(|rank| parts[**rank].id() == upstream)?;
        Some(match &self.extent {
            Extent::Upstream { identity, .. } => identity.clone(),
            Extent::All | Extent::Toolset(_) => parts[rank].namespace.clone(),
        })
    }

    /// What an upstream of the scope has of the extensions that we understand, if it is known.
    pub(super) fn offers<'a>(
        &self,
        parts: &'a [Part],
        upstream: &UpstreamId,
    ) -> Option<&'a Offers> {
        let rank = *self
            .members
            .iter()
            .find(|rank| parts[**rank].id() == upstream)?;
        let part = &parts[rank];
        part.contribution.as_ref()?.card.as_ref()?;
        Some(&part.offers)
    }

    /// Whether an item of the upstream at `rank` would be listed here if it were not withheld.
    pub(super) fn would_list(&self, rank: usize, kind: ListKind, item: &Item) -> bool {
        self.would_take(rank, &item.route.upstream, kind, &item.exposed)
    }

    /// The one upstream that it serves under original names, by rank, if it is such a scope.
    pub(super) const fn only(&self) -> Option<usize> {
        match self.extent {
            Extent::Upstream { rank, .. } => Some(rank),
            Extent::All | Extent::Toolset(_) => None,
        }
    }

    /// Whether an item of this outward name would be listed here if the upstream at `rank` had it.
    pub(super) fn would_take(
        &self,
        rank: usize,
        id: &UpstreamId,
        kind: ListKind,
        outward: &str,
    ) -> bool {
        match &self.extent {
            Extent::All => true,
            Extent::Toolset(set) => takes(set, id, kind, outward),
            Extent::Upstream { rank: own, .. } => rank == *own,
        }
    }

    pub(super) fn listed(&self, kind: ListKind, name: &str) -> Option<&Route> {
        self.lists[kind as usize].item(name).map(|item| &item.route)
    }

    pub(super) fn definition(&self, kind: ListKind, name: &str) -> Option<&str> {
        let item = self.lists[kind as usize].item(name)?;
        Some(&item.digest)
    }

    /// Where calling a tool leads: by its name here, or by the name that an app knows it by where that is certain.
    pub(super) fn tool(&self, name: &str) -> Option<&Route> {
        match self.lists[ListKind::Tools as usize].item(name) {
            Some(item) if self.apps.admits(item) => Some(&item.route),
            Some(_) => None,
            None => self.apps.tool(name),
        }
    }

    /// Whether a tool is listed that nobody may call here.
    pub(super) fn withholds(&self, name: &str) -> bool {
        let item = self.lists[ListKind::Tools as usize].item(name);
        item.is_some_and(|item| !self.apps.admits(item))
    }

    /// Where reading `uri` leads: to who lists it, to whose namespace it is spelled in by a prefix, to whose template it fits,
    /// or to who has no prefix. An app may use the URI that its server has for it, where that is certain.
    pub(super) fn resource(&self, catalog: &Catalog, uri: &str) -> Option<Route> {
        if let Some(route) = self.listed(ListKind::Resources, uri) {
            return Some(route.clone());
        }
        if uri.len() > URI_BYTES || spelling::of_uri(uri).is_some() || spelling::is_twisted(uri) {
            return None;
        }
        if let Some(route) = self.apps.page(uri).or_else(|| self.apps.resource(uri)) {
            return Some(route.clone());
        }
        if let Extent::Upstream { rank, .. } = &self.extent {
            return Some(catalog.parts[*rank].route(uri.to_owned()));
        }
        let mut budget = MATCH_STEPS;
        // What it fits nobody knows when the steps are used up: then it leads where it does without a template, or nowhere.
        let mut fits = |item: &Arc<Item>| {
            let template = item.template.as_ref();
            template.is_some_and(|template| template.matches(uri, &mut budget) == Some(true))
        };
        let is_named = catalog.named(uri).is_some();
        let loose = self.loose.iter().find(|item| !is_named && fits(item));
        if let Some(item) = loose {
            let part = catalog
                .parts
                .iter()
                .find(|part| *part.id() == item.route.upstream)?;
            return Some(part.route(uri.to_owned()));
        }
        let part = &catalog.parts[catalog.owner(uri)?];
        let reached = match &self.extent {
            Extent::All => true,
            Extent::Toolset(set) => {
                set.upstreams.contains(part.id())
                    || glob::any(&set.resources, uri)
                    || self.lists[ListKind::Templates as usize]
                        .items()
                        .iter()
                        .any(|item| item.route.upstream == *part.id() && fits(item))
            }
            Extent::Upstream { .. } => false,
        };
        if !reached {
            return None;
        }
        Some(part.route(part.namespace.inward_uri(uri)?))
    }
}

impl Extent {
    fn new(scope: &Scope, rules: &CatalogRules, previous: Option<&ScopeView>) -> Self {
        match scope {
            Scope::All => Self::All,
            Scope::Toolset(name) => {
                let set = rules.toolsets.iter().find(|set| set.name == *name);
                Self::Toolset(set.cloned().unwrap_or_default())
            }
            Scope::Upstream(id) => Self::Upstream {
                rank: rules
                    .upstreams
                    .iter()
                    .position(|naming| naming.upstream == *id)
                    .unwrap_or(usize::MAX),
                // The same one as before, so that views that show the same are told to be the same.
                identity: match previous.map(|previous| &previous.extent) {
                    Some(Self::Upstream { identity, .. }) => identity.clone(),
                    _ => Arc::new(Namespace::identity()),
                },
            },
        }
    }

    fn list(
        &self,
        kind: ListKind,
        rules: &CatalogRules,
        parts: &[Part],
        previous: Option<&Arc<ListView>>,
    ) -> Arc<ListView> {
        let mut items = Vec::new();
        let mut sections = Vec::with_capacity(parts.len());
        for (rank, part) in parts.iter().enumerate() {
            let before = items.len();
            let namespace = match self {
                Self::All => {
                    items.extend(part.shown[kind as usize].iter().cloned());
                    &part.namespace
                }
                Self::Toolset(set) => {
                    let taken = part.shown[kind as usize].iter();
                    items.extend(taken.filter(|item| selects(set, kind, item)).cloned());
                    &part.namespace
                }
                Self::Upstream {
                    rank: own,
                    identity,
                } => {
                    if rank != *own {
                        continue;
                    }
                    items.extend(part.kept[kind as usize].iter().cloned());
                    identity
                }
            };
            sections.push(Section {
                upstream: part.id().clone(),
                rank: u16::try_from(rank).unwrap_or(u16::MAX),
                namespace: namespace.clone(),
                stale: items.len() > before && part.is_away(),
                executes: part.offers.tasks == Some(TaskDesign::Core),
                end: items.len(),
            });
        }
        let outward = !matches!(self, Self::Upstream { .. });
        ListView::new(kind, outward, rules.pages, sections, items, previous)
    }

    /// Whether the upstream at `rank` has a part in this scope, or may have one once it is known.
    fn includes(
        &self,
        parts: &[Part],
        rank: usize,
        lists: &[Arc<ListView>; ListKind::COUNT],
    ) -> bool {
        let id = parts[rank].id();
        match self {
            Self::All => true,
            Self::Upstream { rank: own, .. } => rank == *own,
            Self::Toolset(set) => {
                let has_item = |list: &Arc<ListView>| {
                    list.items().iter().any(|item| item.route.upstream == *id)
                };
                set.upstreams.contains(id)
                    || lists.iter().any(has_item)
                    || selects_prefix(set, parts[rank].namespace.prefix())
                        && (parts[rank].is_away() || !set.resources.is_empty())
            }
        }
    }

    /// How texts of several upstreams are told apart, if they have to be.
    fn labelled(&self, parts: &[Part]) -> face::Labels {
        match self {
            Self::Upstream { .. } => face::Labels::None,
            Self::All if parts.len() == 1 && parts[0].namespace.prefix().is_empty() => {
                face::Labels::None
            }
            Self::All | Self::Toolset(_) => face::Labels::Prefixes,
        }
    }
}

fn selects(set: &ToolsetRules, kind: ListKind, item: &Item) -> bool {
    takes(set, &item.route.upstream, kind, &item.exposed)
}

/// Whether the set takes an item of this upstream and this outward name.
fn takes(set: &ToolsetRules, upstream: &UpstreamId, kind: ListKind, outward: &str) -> bool {
    set.upstreams.contains(upstream) || glob::any(globs(set, kind), outward)
}

fn globs(set: &ToolsetRules, kind: ListKind) -> &[String] {
    match kind {
        ListKind::Tools => &set.tools,
        ListKind::Prompts => &set.prompts,
        ListKind::Resources | ListKind::Templates | ListKind::Skills => &set.resources,
    }
}

/// Whether a glob of the set may select something with this prefix.
fn selects_prefix(set: &ToolsetRules, prefix: &str) -> bool {
    [
        (ListKind::Tools, '_'),
        (ListKind::Prompts, '_'),
        (ListKind::Resources, '+'),
    ]
    .into_iter()
    .any(|(kind, joint)| {
        let begin = if prefix.is_empty() {
            String::new()
        } else {
            format!("{prefix}{joint}")
        };
        globs(set, kind).iter().any(|glob| {
            let head = glob.split(['*', '?']).next().unwrap_or_default();
            begin.starts_with(head) || head.starts_with(&begin)
        })
    })
}
