//! Worlds that change, and who hears of it.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::mpsc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::{
    call::{Identity, IdentityKind, ServerCard},
    catalog::{
        Position, Screened,
        rules::{CatalogBounds, NameRules, NamingRules, PageRules, Selection, ToolsetRules},
    },
    events::{Bounds, Listener, News},
    json::{Json, Limits},
    pins::{Mode, PinsSpec, Record, Store},
    protocol::{Revision, names::Scope},
};

pub(super) fn id() -> UpstreamId {
    UpstreamId::parse("a").unwrap()
}

pub(super) fn world() -> World {
    World::new(rules(), Hub::new(Bounds::default()))
}

fn rules() -> CatalogRules {
    CatalogRules {
        names: NameRules::default(),
        pages: PageRules {
            items: 100,
            bytes: 1 << 20,
        },
        bounds: CatalogBounds::default(),
        screen: Default::default(),
        upstreams: vec![NamingRules {
            upstream: id(),
            prefix: "a".into(),
            tools: Selection::default(),
            rename: BTreeMap::new(),
            describe: BTreeMap::new(),
            labels: Default::default(),
            validation: Default::default(),
            claims: Default::default(),
        }],
        toolsets: vec![ToolsetRules {
            name: "one".into(),
            tools: vec!["a_x".into()],
            ..ToolsetRules::default()
        }],
    }
}

pub(super) fn offering(tools: &[&str], read_at: Instant) -> Contribution {
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
async fn what_no_catalog_can_be_made_of_breaks_nothing_that_comes_after_it() {
    let mut rules = rules();
    rules.screen = Screen::new(|_, _, definition, _| {
        assert!(!definition.as_str().contains("bad"), "a fault of ours");
        Screened::default()
    });
    let other = UpstreamId::parse("b").unwrap();
    rules.upstreams.push(NamingRules {
        upstream: other.clone(),
        prefix: "b".into(),
        ..rules.upstreams[0].clone()
    });
    let world = World::new(rules, Hub::new(Bounds::default()));
    let mut all = listening(&world, Scope::All);
    let publish = || world.publish(&id(), offering(&["bad"], Instant::now()));
    assert!(catch_unwind(AssertUnwindSafe(publish)).is_err());
    assert_eq!(heard(&mut all), []);
    world.publish(&other, offering(&["x"], Instant::now()));
    assert_eq!(heard(&mut all), [News::List(ListKind::Tools)]);
    // Nor where it is one principal's own.
    let who = Identity::anonymous().grantee();
    let own = |names: &[&str]| {
        world.publish_to(&who, &id(), Some(offering(names, Instant::now())));
    };
    for _ in 0..2 {
        assert!(catch_unwind(AssertUnwindSafe(|| own(&["bad"]))).is_err());
        own(&["y"]);
    }
    world.publish_to(&who, &id(), None);
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

/// A user in these groups.
fn user(name: &str, groups: &[&str]) -> Identity {
    Identity {
        groups: groups.iter().map(|group| Arc::from(*group)).collect(),
        ..Identity::named(IdentityKind::User, name)
    }
}

fn governed(cedar: &str, tools: &[&str]) -> World {
    let world = world();
    world.publish(&id(), offering(tools, Instant::now()));
    let policy = Policy::of(&[("main.cedar", cedar)]).unwrap();
    world.govern(&policy).unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_people_with_twenty_distinct_grants_cost_twenty_views() {
    use std::fmt::Write as _;

    let mut cedar = String::new();
    for n in 0..20 {
        writeln!(
            cedar,
            r#"permit(principal in Group::"g{n}", action, resource == Tool::"a_t{n}");"#
        )
        .unwrap();
    }
    let tools: Vec<_> = (0..20).map(|n| format!("t{n}")).collect();
    let tools: Vec<_> = tools.iter().map(String::as_str).collect();
    let world = governed(&cedar, &tools);
    let snapshot = world.load();
    let views: Vec<_> = (0..10_000)
        .map(|n| {
            let group = format!("g{}", n % 20);
            let who = user(&format!("user{n}"), &[&group, "nothing is said of this"]);
            snapshot.view(&who, &Scope::All).unwrap()
        })
        .collect();
    for (n, view) in views.iter().enumerate() {
        assert!(Arc::ptr_eq(view, &views[n % 20]), "{n}");
        assert_eq!(view.count(ListKind::Tools), 1);
    }
    let distinct: HashSet<_> = views.iter().map(Arc::as_ptr).collect();
    assert_eq!(distinct.len(), 20);
    assert!(
        snapshot
            .view(&user("x", &[]), &Scope::Toolset("none".into()))
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn who_sees_the_same_shares_its_encoding_across_classes_and_snapshots() {
    let cedar = r#"
        permit(principal in Group::"one", action, resource == Tool::"a_x");
        permit(principal in Group::"two", action, resource == Tool::"a_x");
        permit(principal in Group::"two", action, resource == Tool::"a_z");
    "#;
    let world = governed(cedar, &["x", "y"]);
    let page = |snapshot: &Snapshot, group: &str| {
        let view = snapshot.view(&user("u", &[group]), &Scope::All).unwrap();
        let start = Position::start();
        let page =
            snapshot
                .catalog
                .seen_page(&view, ListKind::Tools, Revision::V2026_07_28, &start);
        (view, page.items.value())
    };
    let first = world.load();
    let (one, ones) = page(&first, "one");
    let (_two, twos) = page(&first, "two");
    assert_eq!(ones.as_ptr(), twos.as_ptr());
    assert!(
        ones.windows(3).any(|part| part == b"a_x") && !ones.windows(3).any(|part| part == b"a_y")
    );
    // Another tool comes, of which only the second group sees something.
    world.publish(&id(), offering(&["x", "y", "z"], Instant::now()));
    let second = world.load();
    let (later, laters) = page(&second, "one");
    assert_eq!(ones.as_ptr(), laters.as_ptr());
    assert!(one.same_list(&later, ListKind::Tools));
    let (_, twos) = page(&second, "two");
    assert!(twos.windows(3).any(|part| part == b"a_z"));
    // Nobody may keep it for others, and for no longer than its upstreams let.
    let hints = second
        .catalog
        .seen_hints(&later, ListKind::Tools, Instant::now());
    assert_eq!((hints.public, hints.ttl_millis), (false, 10_000));
    tokio::time::advance(Duration::from_secs(4)).await;
    world.confirm(&id(), Instant::now());
    let hints = second
        .catalog
        .seen_hints(&later, ListKind::Tools, Instant::now());
    assert_eq!(hints.ttl_millis, 10_000);
}

#[tokio::test(start_paused = true)]
async fn other_policies_are_told_to_whoever_listens_and_a_call_keeps_those_it_began_with() {
    let world = governed("permit(principal, action, resource);", &["x"]);
    let mut regranted = world.regranted();
    let mut all = listening(&world, Scope::All);
    let before = world.load();
    let none = Policy::of(&[("main.cedar", "forbid(principal, action, resource);")]).unwrap();
    world.govern(&none).unwrap();
    assert!(regranted.changed().now_or_never().is_some());
    let kinds = [ListKind::Tools, ListKind::Prompts, ListKind::Resources];
    assert_eq!(heard(&mut all), kinds.map(News::List));
    let seen = |snapshot: &Snapshot| {
        let view = snapshot.view(&user("u", &[]), &Scope::All).unwrap();
        view.count(ListKind::Tools)
    };
    assert_eq!((seen(&before), seen(&world.load())), (1, 0));
    assert_eq!(world.load().revision, before.revision + 1);
}

/// A world where what changes is not offered before somebody approves.
fn pinned(directory: Option<&Path>) -> (World, Arc<Ledger>) {
    let spec = PinsSpec {
        modes: [(id(), Mode::Quarantine)].into(),
        directory: directory.map(Into::into),
    };
    let ledger = Arc::new(Ledger::open(&spec, Findings::new()).unwrap());
    let world = world().pinned(Arc::clone(&ledger), Findings::new());
    world.expect_own();
    (world, ledger)
}

/// Tools by name and description.
fn saying(tools: &[(&str, &str)]) -> Contribution {
    let mut contribution = offering(&[], Instant::now());
    let tool = |(name, says): &(&str, &str)| {
        let text = format!(
            r#"{{"name":"{name}","description":"{says}","inputSchema":{{"type":"object"}}}}"#
        );
        Json::parse(Bytes::from(text), &Limits::LIST).unwrap()
    };
    contribution.tools.items = tools.iter().map(tool).collect();
    contribution
}

fn away(contribution: Contribution) -> Contribution {
    Contribution {
        away: true,
        ..contribution
    }
}

/// Whether a tool of this name leads anywhere for whoever sees this.
fn leads(snapshot: &Snapshot, name: &str) -> bool {
    snapshot.catalog.tool(&Scope::All, name).is_some()
}

/// What somebody approves, a second later; whether it is told of as that.
fn approve(world: &World, ledger: &Ledger, directory: &Path, name: &str) -> bool {
    let store = Store::open(directory).unwrap();
    let approve = |record: &mut Record| record.approve("tools", name);
    let approved = store.lock().unwrap().change(&id(), approve);
    assert_eq!(approved.unwrap(), Some(true));
    follow(world, ledger)
}

/// Follows the record; whether somebody approved something.
fn follow(world: &World, ledger: &Ledger) -> bool {
    let approved = std::cell::Cell::new(false);
    let anew = ledger.keep(|_| approved.set(true));
    anew.iter().for_each(|upstream| world.reconsider(upstream));
    approved.get()
}

#[tokio::test(start_paused = true)]
async fn cat_2_what_one_is_offered_does_not_decide_what_is_withheld_from_another() {
    let (world, _ledger) = pinned(None);
    let (ana, ben) = (user("ana", &[]), user("ben", &[]));
    let to = |who: &Identity, own| world.publish_to(&who.grantee(), &id(), Some(own));
    let sees = |who: &Identity| {
        let seen = world.seen_by(who);
        (leads(&seen, "a_x"), leads(&seen, "a_y"))
    };
    to(&ana, saying(&[("x", "old"), ("y", "old")]));
    assert_eq!(sees(&ana), (true, true));
    to(&ana, saying(&[("x", "new"), ("y", "old")]));
    assert_eq!(sees(&ana), (false, true));
    to(&ben, saying(&[("y", "old")]));
    to(&ana, away(saying(&[("x", "new"), ("y", "old")])));
    assert_eq!(sees(&ana), (false, true));
    // Nor the other way round: what is as it was approved is offered, whoever is offered something else.
    to(&ben, saying(&[("x", "old"), ("y", "old")]));
    to(&ana, saying(&[("x", "new"), ("y", "new")]));
    to(&ben, away(saying(&[("x", "old"), ("y", "old")])));
    assert_eq!((sees(&ana), sees(&ben)), ((false, false), (true, true)));
}

#[tokio::test(start_paused = true)]
async fn cat_2_what_one_is_offered_does_not_decide_what_is_withheld_from_all() {
    let (world, _ledger) = pinned(None);
    let ben = user("ben", &[]);
    world.publish(&id(), saying(&[("x", "old"), ("y", "old")]));
    world.publish(&id(), saying(&[("x", "new"), ("y", "old")]));
    assert!(!leads(&world.load(), "a_x"));
    world.publish_to(&ben.grantee(), &id(), Some(saying(&[("y", "old")])));
    world.publish(&id(), away(saying(&[("x", "new"), ("y", "old")])));
    let now = world.load();
    assert_eq!((leads(&now, "a_x"), leads(&now, "a_y")), (false, true));
}

#[tokio::test(start_paused = true)]
async fn cat_2_what_is_approved_reaches_the_lists_that_are_one_principals_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pins");
    let (world, ledger) = pinned(Some(&path));
    let (ana, ben) = (user("ana", &[]), user("ben", &[]));
    let to = |who: &Identity, own| world.publish_to(&who.grantee(), &id(), Some(own));
    to(&ana, saying(&[("x", "old"), ("y", "old")]));
    to(&ana, saying(&[("x", "new"), ("y", "new")]));
    follow(&world, &ledger);
    assert!(approve(&world, &ledger, &path, "x"));
    let seen = world.seen_by(&ana);
    assert_eq!((leads(&seen, "a_x"), leads(&seen, "a_y")), (true, false));
    // Whoever was read for last has nothing of it.
    to(&ben, saying(&[("z", "old")]));
    follow(&world, &ledger);
    assert!(approve(&world, &ledger, &path, "y"));
    let seen = world.seen_by(&ana);
    assert_eq!((leads(&seen, "a_x"), leads(&seen, "a_y")), (true, true));
    assert!(!leads(&world.seen_by(&ben), "a_z"));
}

#[tokio::test(start_paused = true)]
async fn cat_2_what_stands_behind_a_broken_definition_of_its_name_never_takes_its_place() {
    let (world, _ledger) = pinned(None);
    let broken = r#"{"name":"x","inputSchema":[]}"#;
    let broken = Json::parse(Bytes::from(broken), &Limits::LIST).unwrap();
    let offered = ["old", "new"].map(|says| {
        let mut contribution = saying(&[("x", says), ("y", "old")]);
        let behind = contribution.tools.items.iter().cloned();
        contribution.tools.items = std::iter::once(broken.clone()).chain(behind).collect();
        world.publish(&id(), contribution);
        let now = world.load();
        (leads(&now, "a_x"), leads(&now, "a_y"))
    });
    // The first is what was pinned, so that nobody would notice what becomes of the second.
    assert_eq!(offered, [(false, true); 2]);
}

#[test]
fn cat_2_whose_lists_are_just_being_judged_is_found_when_all_are_judged_again() {
    let world = Arc::new(world());
    let ana = user("ana", &[]).grantee();
    let (answers, answered) = mpsc::channel();
    let asked = Arc::clone(&world);
    let asks = move || answers.send(asked.joins.offered_by(&id())).unwrap();
    let mut asking = None;
    world.put_to(&ana, &id(), |_| {
        asking = Some(thread::spawn(asks));
        // Who does not wait answers by now.
        assert!(answered.recv_timeout(Duration::from_millis(200)).is_err());
        Some(saying(&[("x", "old")]))
    });
    asking.unwrap().join().unwrap();
    assert_eq!(answered.recv().unwrap(), [ana]);
}

/// SECURITY 5: that somebody approved something is recorded, whoever is offered it then.
#[tokio::test(start_paused = true)]
async fn what_is_approved_is_known_though_nobody_is_offered_it_just_then() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pins");
    let (world, ledger) = pinned(Some(&path));
    let ana = user("ana", &[]);
    for said in ["old", "new"] {
        let own = saying(&[("x", said)]);
        world.publish_to(&ana.grantee(), &id(), Some(own));
        assert!(!follow(&world, &ledger));
    }
    world.publish_to(&ana.grantee(), &id(), None);
    assert!(approve(&world, &ledger, &path, "x"));
    assert!(!follow(&world, &ledger), "told once");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_any_more_withholds_what_is_one_principals_own_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pins");
    let (world, ledger) = pinned(Some(&path));
    let ana = user("ana", &[]);
    world.publish_to(&ana.grantee(), &id(), Some(saying(&[("x", "old")])));
    assert!(!follow(&world, &ledger));
    assert!(leads(&world.seen_by(&ana), "a_x"));
    let good = fs::read(path.join("a.pins")).unwrap();
    fs::write(path.join("a.pins"), "no record\n").unwrap();
    assert!(!follow(&world, &ledger));
    assert!(!leads(&world.seen_by(&ana), "a_x"));
    fs::write(path.join("a.pins"), good).unwrap();
    assert!(!follow(&world, &ledger));
    assert!(leads(&world.seen_by(&ana), "a_x"));
}
