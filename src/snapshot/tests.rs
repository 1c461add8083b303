//! Worlds that change, and who hears of it.

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
            labels: Default::default(),
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
            let hints = catalog.hints(scope, ListKind::Tools, &Position::start(), Instant::now());
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
