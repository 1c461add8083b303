//! The merged catalog: what every upstream offers, under outward names, in one deterministic order.
//!
//! Immutable once built. Every outward name and URI leads to exactly one route; conflicts are decided and reported when
//! the catalog is built, never at call time. Lists are encoded here, once, so that answering one is a lookup.

mod apps;
mod build;
mod check;
mod convert;
mod cursor;
mod face;
mod facts;
mod hints;
mod moment;
mod namespace;
mod offered;
mod part;
mod report;
mod resembling;
pub mod rules;
mod schema;
mod scope;
mod screen;
mod seen;
mod shelf;
mod skills;
mod spelling;
mod strict;
mod template;
mod terms;
#[cfg(test)]
mod tests;
mod unread;
mod view;
mod withheld;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use hashbrown::HashMap;
use tokio::time::Instant;

use crate::{
    call::ServerCard,
    json::Json,
    jsonrpc::encode::LastMember,
    protocol::{
        Revision, UpstreamId, extensions::Offers, methods::ListKind, mirror::ParamHeader,
        names::Scope,
    },
};

pub use convert::{STALE, icons};
pub use cursor::{BadCursor, CURSOR_CHARS, CURSOR_LIFE, Position};
pub use facts::Fact;
pub use namespace::Namespace;
pub use offered::Offered;
pub use report::{Reason, Report};
pub use schema::SchemaFault;
pub use screen::{Content, Look, Screen, Screened};
pub use seen::View;
pub use skills::Files as SkillFiles;
pub use spelling::{Offence, is_hidden, is_twisted};
pub use terms::Terms;
pub use withheld::{Withheld, WithheldItem, WithheldNames};

/// What all upstreams offer together, laid out for every endpoint. Immutable; the next one is built beside it.
#[derive(Debug)]
pub struct Catalog {
    rules: rules::CatalogRules,
    /// In configured order.
    parts: Vec<part::Part>,
    scopes: HashMap<Scope, scope::ScopeView>,
    has_tasks: bool,
    withholds_some: bool,
    prefixes: namespace::Prefixes,
    held: [build::Held; ListKind::COUNT],
    reports: Arc<[Report]>,
}

/// One page of a merged list.
#[derive(Debug, Clone)]
pub struct PageOf {
    /// The items: one JSON array, shared.
    pub items: LastMember,
    /// Where the next page begins, if there is one.
    pub next: Option<Position>,
}

/// How a list may be kept, and what it lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hints {
    /// For how many milliseconds: the least over the upstreams of what is left of theirs; 0 when one gave none, is away,
    /// or was cut short (PROTOCOL D5).
    pub ttl_millis: u64,
    /// Whether by everybody: only when every upstream says so and nothing was selected, renamed or described.
    pub public: bool,
    /// Upstreams whose items are missing or stale.
    pub away: Option<Arc<[String]>>,
    /// Upstreams that have more items than are listed: reading them came to a limit (SECURITY CAT-6).
    pub partial: Option<Arc<[String]>>,
}

impl Catalog {
    /// Merges what the upstreams bring. Contributions of upstreams that `rules` do not name are left out; those of the
    /// others may be missing. `previous` decides who holds contested names, and lends what did not change: a build in
    /// which one upstream changed costs little more than that upstream.
    pub fn build(
        rules: &rules::CatalogRules,
        contributions: &[(UpstreamId, Arc<Contribution>)],
        previous: Option<&Self>,
    ) -> Self {
        build::build(rules, contributions, previous)
    }

    /// The same catalog with what some upstreams offer to somebody in the place of what they offer to everybody. Names are
    /// given out as in [`Catalog::build`]; `previous` is what that somebody saw before.
    pub fn join(
        &self,
        own: &BTreeMap<UpstreamId, Arc<Contribution>>,
        previous: Option<&Self>,
    ) -> Self {
        build::join(self, own, previous)
    }

    /// Whether something of this kind and this outward name could be `upstream`'s, whether or not it exists: by its spelling
    /// alone, so that nothing can be told from the answer.
    pub fn could_be_of(
        &self,
        scope: &Scope,
        upstream: &UpstreamId,
        kind: ListKind,
        name: &str,
    ) -> bool {
        if let Scope::Upstream(id) = scope {
            return id == upstream;
        }
        let Some(naming) = self
            .rules
            .upstreams
            .iter()
            .find(|it| it.upstream == *upstream)
        else {
            return false;
        };
        let spelled = match kind {
            ListKind::Tools | ListKind::Prompts => name.split_once('_').map(|(prefix, _)| prefix),
            ListKind::Resources | ListKind::Templates | ListKind::Skills => {
                namespace::prefix_of(name)
            }
        };
        match spelled.filter(|prefix| self.prefixes.contains_key(*prefix)) {
            Some(prefix) if *prefix == *naming.prefix => true,
            Some(_) => naming.rename.values().any(|given| **given == *name),
            // Without a prefix that is anybody's it may be anybody's.
            None => true,
        }
    }

    /// What is not offered, and why, in deterministic order. At most about a hundred a list.
    pub const fn reports(&self) -> &Arc<[Report]> {
        &self.reports
    }

    /// The page of a list after `after`, as clients of `revision` know it; `None` when there is no such scope.
    pub fn page(
        &self,
        scope: &Scope,
        kind: ListKind,
        revision: Revision,
        after: &Position,
    ) -> Option<PageOf> {
        let view = self.scopes.get(scope)?;
        let (items, mark) = view.lists[kind as usize].page(revision, after);
        let next = mark.map(|mark| Position {
            after: Some(mark),
            private: !view.is_public(kind, after),
        });
        Some(PageOf { items, next })
    }

    /// How the page after `after` may be kept from `now` on; `None` when there is no such scope. Once one page of a run is
    /// private, all later ones are.
    pub fn hints(
        &self,
        scope: &Scope,
        kind: ListKind,
        after: &Position,
        now: Instant,
    ) -> Option<Hints> {
        Some(self.scopes.get(scope)?.hints(kind, after, now))
    }

    /// How many items a list has; 0 when there is no such scope.
    pub fn count(&self, scope: &Scope, kind: ListKind) -> usize {
        let view = self.scopes.get(scope);
        view.map_or(0, |view| view.lists[kind as usize].items().len())
    }

    /// Whether a list is the same as in `other`, which one was built from with the other as `previous`.
    pub fn same_list(&self, other: &Self, scope: &Scope, kind: ListKind) -> bool {
        let list = |catalog: &Self| Some(catalog.scopes.get(scope)?.lists[kind as usize].clone());
        match (list(self), list(other)) {
            (Some(one), Some(two)) => Arc::ptr_eq(&one, &two),
            (None, None) => true,
            _ => false,
        }
    }

    /// Every endpoint's scope.
    pub fn scopes(&self) -> impl Iterator<Item = &Scope> {
        self.scopes.keys()
    }

    /// What an upstream offers was read again at `read_at` and is the same: the one thing that changes in a catalog, since
    /// building another for it would cost much and show the same.
    pub fn confirm(&self, upstream: &UpstreamId, read_at: Instant) {
        let Some(rank) = self.parts.iter().position(|part| part.id() == upstream) else {
            return;
        };
        self.parts[rank].read_at.confirm(read_at);
        for view in self.scopes.values() {
            view.confirm(&self.parts, rank);
        }
    }

    /// What an endpoint says of itself to clients of `revision`; `None` when there is no such scope.
    pub fn face(&self, scope: &Scope, revision: Revision) -> Option<ServerCard> {
        let view = self.scopes.get(scope)?;
        let mut card = view.face.card(revision);
        card.capabilities = view.offered.beside(&card.capabilities, revision);
        Some(card)
    }

    /// The extensions that an endpoint offers; `None` when there is no such scope.
    pub fn offered(&self, scope: &Scope) -> Option<&Offered> {
        Some(&self.scopes.get(scope)?.offered)
    }

    /// Whether any upstream has tasks: a first question that costs nothing.
    pub const fn has_tasks(&self) -> bool {
        self.has_tasks
    }

    /// What an upstream has of the extensions that we understand; `None` when it has no part in this scope, or nothing is
    /// known of it.
    pub fn offers(&self, scope: &Scope, upstream: &UpstreamId) -> Option<&Offers> {
        self.scopes.get(scope)?.offers(&self.parts, upstream)
    }

    /// Where a tool leads: by its name as listed, or as an app knows it where only one upstream has apps.
    pub fn tool(&self, scope: &Scope, name: &str) -> Option<&Route> {
        self.scopes.get(scope)?.tool(name)
    }

    /// Where an item leads that is listed under just this name, whoever may use it.
    pub fn listed(&self, scope: &Scope, kind: ListKind, name: &str) -> Option<&Route> {
        self.scopes.get(scope)?.listed(kind, name)
    }

    /// The digest of the definition of what is listed under just this name, as pins have it (SECURITY 8).
    pub fn definition(&self, scope: &Scope, kind: ListKind, name: &str) -> Option<&str> {
        self.scopes.get(scope)?.definition(kind, name)
    }

    /// Whether a tool is listed that nobody may call here: it is for apps of its own server, and whose app asks cannot be
    /// told (PROTOCOL G16).
    pub fn withholds(&self, scope: &Scope, name: &str) -> bool {
        let view = self.scopes.get(scope);
        view.is_some_and(|view| view.withholds(name))
    }

    /// Where a prompt leads.
    pub fn prompt(&self, scope: &Scope, name: &str) -> Option<&Route> {
        self.scopes.get(scope)?.listed(ListKind::Prompts, name)
    }

    /// Where a URI leads: to the upstream that lists it, or in whose namespace it is spelled, or that has a template it fits, or
    /// that alone has no prefix. Servers let clients read what they do not list, so a namespace needs no entry; `http` and
    /// `https` always do. URIs with control or hidden characters lead nowhere.
    pub fn resource(&self, scope: &Scope, uri: &str) -> Option<Route> {
        self.scopes.get(scope)?.resource(self, uri)
    }

    /// Whether an upstream that this endpoint may serve something of is away, or was not read yet: then what leads nowhere now may
    /// lead somewhere later.
    pub fn lacks_some(&self, scope: &Scope) -> bool {
        let mut parts = self.parts.iter();
        match scope {
            Scope::All | Scope::Toolset(_) => parts.any(|part| part.is_away()),
            Scope::Upstream(id) => parts.any(|part| part.id() == id && part.is_away()),
        }
    }

    /// Where completion for a resource leads: by its template as listed, or by a URI as [`Catalog::resource`] finds it.
    pub fn template(&self, scope: &Scope, uri: &str) -> Option<Route> {
        let view = self.scopes.get(scope)?;
        match view.listed(ListKind::Templates, uri) {
            Some(route) => Some(route.clone()),
            None => view.resource(self, uri),
        }
    }

    /// Where a skill leads: by its URI as listed, or as [`Catalog::resource`] finds it. `None` also when who is led to has no
    /// skills.
    pub fn skill(&self, scope: &Scope, uri: &str) -> Option<Route> {
        let view = self.scopes.get(scope)?;
        let route = match view.listed(ListKind::Skills, uri) {
            Some(route) => route.clone(),
            None => view.resource(self, uri)?,
        };
        let has = |offers: &Offers| offers.skills;
        self.offers(scope, &route.upstream)
            .is_some_and(has)
            .then_some(route)
    }

    /// Where a directory leads, as [`Catalog::resource`] finds it. `None` also when who is led to reads no directories.
    pub fn directory(&self, scope: &Scope, uri: &str) -> Option<Route> {
        let route = self.resource(scope, uri)?;
        let has = |offers: &Offers| offers.directories;
        self.offers(scope, &route.upstream)
            .is_some_and(has)
            .then_some(route)
    }

    /// Whether what an upstream calls so is a file of a skill, by its spelling or by what the upstream lists: then whoever reads it
    /// compares it with a digest (PROTOCOL E).
    pub fn is_of_a_skill(&self, upstream: &UpstreamId, local: &str) -> bool {
        let part = self.parts.iter().find(|part| part.id() == upstream);
        skills::says_so(local) || part.is_some_and(|part| part.skill_files.hold(local))
    }

    /// The revision that an upstream speaks, if it is known.
    pub fn revision_of(&self, upstream: &UpstreamId) -> Option<Revision> {
        let part = self.parts.iter().find(|part| part.id() == upstream)?;
        Some(part.contribution.as_ref()?.card.as_ref()?.revision)
    }

    /// How the URIs in an upstream's results look in this scope; `None` when it has no part in it.
    pub fn namespace(&self, scope: &Scope, upstream: &UpstreamId) -> Option<Arc<Namespace>> {
        self.scopes.get(scope)?.namespace(&self.parts, upstream)
    }

    /// Whose namespace an outward URI is spelled in: that of the prefix it carries, else the one without prefix, where
    /// exactly one upstream has that.
    fn owner(&self, uri: &str) -> Option<usize> {
        if namespace::is_web(uri) {
            return None;
        }
        let named = self.named(uri).and_then(|prefix| self.prefixes.get(prefix));
        *named.or_else(|| self.prefixes.get(""))?
    }

    /// The prefix of somebody's that an outward URI carries: then it is nobody's without that prefix, listed or not (CAT-1).
    fn named<'a>(&self, uri: &'a str) -> Option<&'a str> {
        namespace::prefix_of(uri)
            .filter(|prefix| !prefix.is_empty() && self.prefixes.contains_key(*prefix))
    }
}

/// What one upstream brings, raw as it came: the input of a build.
#[derive(Debug, Clone, Default)]
pub struct Contribution {
    /// What the server said of itself; `None` until it was reached once.
    pub card: Option<ServerCard>,
    /// Its lists; empty where it has none.
    pub tools: Listing,
    /// See [`Contribution::tools`].
    pub prompts: Listing,
    /// See [`Contribution::tools`].
    pub resources: Listing,
    /// See [`Contribution::tools`].
    pub templates: Listing,
    /// The skills, of an upstream with that extension.
    pub skills: Listing,
    /// What of it no server said.
    pub login: Login,
    /// What of it is not to be offered, because nobody approved it.
    pub withheld: Withheld,
    /// Whether the upstream is away now, so that what is known of it is stale.
    pub away: bool,
    /// Whether it only holds the place of an upstream that nobody has tried to reach yet.
    pub awaited: bool,
    /// When its lists were read: the oldest of them. `None` keeps clients from keeping them.
    pub read_at: Option<Instant>,
}

/// What of a contribution is the gateway's own: the tool that leads to the login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Login {
    /// Nothing.
    #[default]
    None,
    /// The last of its tools.
    Beside,
    /// All of it: nothing is known of the upstream.
    Alone,
}

impl Contribution {
    /// What its server itself offers of this kind.
    pub fn said(&self, kind: ListKind) -> &[Json] {
        let items = &*self.listing(kind).items;
        match (self.login, kind, items) {
            (Login::Alone, ..) => &[],
            (Login::Beside, ListKind::Tools, [said @ .., _login]) => said,
            _ => items,
        }
    }

    /// The list of this kind.
    pub const fn listing(&self, kind: ListKind) -> &Listing {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
            ListKind::Skills => &self.skills,
        }
    }

    /// Whether both offer the same, whenever they were read.
    pub fn offers_the_same(&self, other: &Self) -> bool {
        self.away == other.away
            && self.awaited == other.awaited
            && self.login == other.login
            && self.withheld == other.withheld
            && self.card == other.card
            && ListKind::EVERY
                .into_iter()
                .all(|kind| self.listing(kind).same(other.listing(kind)))
    }

    /// The list of this kind, to fill.
    pub const fn listing_mut(&mut self, kind: ListKind) -> &mut Listing {
        match kind {
            ListKind::Tools => &mut self.tools,
            ListKind::Prompts => &mut self.prompts,
            ListKind::Resources => &mut self.resources,
            ListKind::Templates => &mut self.templates,
            ListKind::Skills => &mut self.skills,
        }
    }
}

/// All pages of one list of one upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The items in the upstream's order.
    pub items: Arc<[Json]>,
    /// The smallest `ttlMs` over its pages; `None` from an upstream that gives none.
    pub ttl: Option<Duration>,
    /// Whether every page was `cacheScope: public`.
    pub public: bool,
    /// Whether a limit cut the list short.
    pub truncated: bool,
    /// Whether it was cut short because its pages came to no end: what there is was not found out.
    pub endless: bool,
}

impl Listing {
    /// Whether this one is kept where `next` was read after it: the last good one, where the next has no end (SECURITY CAT-6).
    pub fn outlasts(&self, next: &Self) -> bool {
        next.endless && !self.endless && !self.items.is_empty()
    }

    /// Equality that begins with whether both share their items, as they do when nothing was read anew.
    fn same(&self, other: &Self) -> bool {
        let facts = |it: &Self| (it.ttl, it.public, it.truncated, it.endless);
        facts(self) == facts(other)
            && (Arc::ptr_eq(&self.items, &other.items) || self.items == other.items)
    }
}

/// Where an outward name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Whose it is.
    pub upstream: UpstreamId,
    /// What the upstream calls it: a tool or prompt name, a URI, or a URI template.
    pub local: Arc<str>,
    /// For a tool: its arguments that travel in headers too.
    pub headers: Arc<[ParamHeader]>,
    /// For a tool: whether its upstream runs it as a core task or not at all (2025-11-25, `taskSupport: "required"`).
    pub task_only: bool,
    /// For a tool: what its arguments and results are held to, if to anything.
    pub terms: Option<Arc<Terms>>,
}
