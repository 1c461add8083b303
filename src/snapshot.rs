//! The world one call sees: everything that may change while the program runs, behind one pointer and one revision number.
//!
//! Guarantees: one writer at a time; a call uses the snapshot it pinned to its end, so it never sees a mixture of old and
//! new; reading takes no lock; whoever listens hears of a list only after the snapshot in which it is another one is live,
//! and of no list that stayed the same. The only `ArcSwap` of shared state in the program.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::{
    catalog::{Catalog, Contribution, rules::CatalogRules},
    events::{Hub, Lists},
    protocol::{UpstreamId, methods::ListKind},
};

/// One state of the world.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts up with each change.
    pub revision: u64,
    /// What is offered, and where each name leads.
    pub catalog: Catalog,
}

/// Holds the current snapshot and makes the next one.
#[derive(Debug)]
pub struct World {
    current: ArcSwap<Snapshot>,
    // Serialises writers and holds what they build from. A std mutex: never held across an await, and only upstream
    // refreshes take it, never a call.
    writer: Mutex<Writer>,
    hub: Arc<Hub>,
}

#[derive(Debug)]
struct Writer {
    rules: CatalogRules,
    contributions: BTreeMap<UpstreamId, Arc<Contribution>>,
}

impl World {
    /// A world in which no upstream has been reached yet, and whose changes `hub` tells of.
    pub fn new(rules: CatalogRules, hub: Arc<Hub>) -> Self {
        let writer = Writer {
            rules,
            contributions: BTreeMap::new(),
        };
        let catalog = writer.build(None);
        Self {
            current: ArcSwap::from_pointee(Snapshot {
                revision: 1,
                catalog,
            }),
            writer: Mutex::new(writer),
            hub,
        }
    }

    /// Who listens for its changes.
    pub const fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// The world as it is now.
    pub fn load(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Takes in what an upstream offers now, and tells whoever listens to a list that is another one thereby. A
    /// contribution equal to the last one changes nothing but until when clients may keep it.
    pub fn publish(&self, upstream: &UpstreamId, contribution: Contribution) {
        let mut writer = self.writer();
        let known = writer.contributions.get(upstream);
        if known.is_some_and(|known| known.offers_the_same(&contribution)) {
            if let Some(read_at) = contribution.read_at {
                self.confirmed(&mut writer, upstream, read_at);
            }
            return;
        }
        writer
            .contributions
            .insert(upstream.clone(), Arc::new(contribution));
        let before = self.current.load_full();
        let catalog = writer.build(Some(&before.catalog));
        let after = Arc::new(Snapshot {
            revision: before.revision + 1,
            catalog,
        });
        self.current.store(Arc::clone(&after));
        // Still under the lock: those who listen hear of changes in the order in which they happened.
        self.tell(&before.catalog, &after.catalog);
    }

    /// What an upstream offers was read again at `read_at` and is the same: clients may keep it for longer.
    pub fn confirm(&self, upstream: &UpstreamId, read_at: Instant) {
        self.confirmed(&mut self.writer(), upstream, read_at);
    }

    fn confirmed(&self, writer: &mut Writer, upstream: &UpstreamId, read_at: Instant) {
        let Some(known) = writer.contributions.get_mut(upstream) else {
            return;
        };
        // The lists are shared, so this copies little; the next build goes by it.
        Arc::make_mut(known).read_at = Some(read_at);
        self.current.load().catalog.confirm(upstream, read_at);
    }

    fn tell(&self, before: &Catalog, after: &Catalog) {
        if self.hub.is_silent() {
            return;
        }
        for scope in after.scopes() {
            let changed = ListKind::EVERY
                .into_iter()
                .filter(|kind| !after.same_list(before, scope, *kind))
                .fold(Lists::NONE, |set, kind| set | Lists::of(kind));
            if !changed.is_empty() {
                self.hub.lists_changed(scope, changed);
            }
        }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn build(&self, previous: Option<&Catalog>) -> Catalog {
        let parts: Vec<_> = self
            .rules
            .upstreams
            .iter()
            .filter_map(|naming| self.contributions.get_key_value(&naming.upstream))
            .map(|(id, contribution)| (id.clone(), contribution.clone()))
            .collect();
        Catalog::build(&self.rules, &parts, previous)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::{FutureExt, StreamExt};

    use super::*;
    use crate::{
        call::ServerCard,
        catalog::{
            Position,
            rules::{CatalogBounds, NameRules, NamingRules, PageRules, Selection, ToolsetRules},
        },
        events::{Bounds, Listener, News},
        json::{Json, Limits},
        protocol::{Revision, names::Scope},
    };

    fn id() -> UpstreamId {
        UpstreamId::parse("a").unwrap()
    }

    fn world() -> World {
        let rules = CatalogRules {
            names: NameRules::default(),
            pages: PageRules {
                items: 100,
                bytes: 1 << 20,
            },
            bounds: CatalogBounds::default(),
            upstreams: vec![NamingRules {
                upstream: id(),
                prefix: "a".into(),
                tools: Selection::default(),
                rename: BTreeMap::new(),
                describe: BTreeMap::new(),
            }],
            toolsets: vec![ToolsetRules {
                name: "one".into(),
                tools: vec!["a_x".into()],
                ..ToolsetRules::default()
            }],
        };
        World::new(rules, Hub::new(Bounds::default()))
    }

    fn offering(tools: &[&str], read_at: Instant) -> Contribution {
        let json = |text: String| Json::parse(Bytes::from(text), &Limits::LIST).unwrap();
        let mut contribution = Contribution {
            card: Some(ServerCard {
                revision: Revision::V2026_07_28,
                capabilities: json(r#"{"tools":{}}"#.into()),
                instructions: None,
                server_info: None,
                ttl_millis: 0,
            }),
            read_at: Some(read_at),
            ..Contribution::default()
        };
        contribution.tools.ttl = Some(Duration::from_secs(10));
        contribution.tools.items = tools
            .iter()
            .map(|name| {
                json(format!(
                    r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#
                ))
            })
            .collect();
        contribution
    }

    fn listening(world: &World, scope: Scope) -> Listener {
        world.hub().listen(&scope, Lists::ALL, [], None).unwrap()
    }

    fn heard(listener: &mut Listener) -> Vec<News> {
        std::iter::from_fn(|| listener.next().now_or_never())
            .map(|news| news.unwrap().unwrap())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_list_what_changed_hear_of_it_and_of_nothing_that_stayed() {
        let world = world();
        let mut all = listening(&world, Scope::All);
        let mut one = listening(&world, Scope::Toolset("one".into()));
        let tools = News::List(ListKind::Tools);
        world.publish(&id(), offering(&["x"], Instant::now()));
        assert_eq!(heard(&mut all), std::slice::from_ref(&tools));
        assert_eq!(heard(&mut one), std::slice::from_ref(&tools));
        world.publish(&id(), offering(&["x", "y"], Instant::now()));
        assert_eq!(heard(&mut all), [tools]);
        assert_eq!(heard(&mut one), []);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_the_same_is_not_built_again_and_may_be_kept_for_longer() {
        let world = world();
        world.publish(&id(), offering(&["x"], Instant::now()));
        let mut all = listening(&world, Scope::All);
        let revision = world.load().revision;
        let ttl = || {
            let catalog = &world.load().catalog;
            let hints = |scope: &Scope| {
                let hints =
                    catalog.hints(scope, ListKind::Tools, &Position::start(), Instant::now());
                hints.unwrap().ttl_millis
            };
            [hints(&Scope::All), hints(&Scope::Upstream(id()))]
        };
        assert_eq!(ttl(), [10_000, 10_000]);
        tokio::time::advance(Duration::from_secs(8)).await;
        assert_eq!(ttl(), [2_000, 2_000]);
        world.publish(&id(), offering(&["x"], Instant::now()));
        assert_eq!(ttl(), [10_000, 10_000]);
        tokio::time::advance(Duration::from_secs(9)).await;
        world.confirm(&id(), Instant::now());
        assert_eq!(ttl(), [10_000, 10_000]);
        assert_eq!(heard(&mut all), []);
        assert_eq!(world.load().revision, revision);
        // What is built next goes by the last reading, too.
        let mut more = offering(&["x", "y"], Instant::now());
        more.prompts.truncated = true;
        world.publish(&id(), more);
        assert_eq!(ttl(), [10_000, 10_000]);
        assert_eq!(world.load().revision, revision + 1);
    }
}
