//! Pages, hints, and what a rebuild costs.

use super::*;

fn many(upstreams: usize, each: usize) -> (CatalogRules, Vec<(UpstreamId, Arc<Contribution>)>) {
    let keys: Vec<_> = (0..upstreams).map(|n| format!("u{n}")).collect();
    let pairs: Vec<_> = keys
        .iter()
        .map(|key| (key.as_str(), key.as_str()))
        .collect();
    let parts = keys
        .iter()
        .map(|key| {
            let list: Vec<_> = (0..each).map(|n| tool(&format!("tool_{n}"))).collect();
            (id(key), Arc::new(brings(ListKind::Tools, &list)))
        })
        .collect();
    (rules(&pairs), parts)
}

#[test]
fn ten_upstreams_with_two_hundred_tools_are_listed_exactly_once_in_pages_of_fifty() {
    let (mut rules, parts) = many(10, 200);
    rules.pages.items = 50;
    let catalog = Catalog::build(&rules, &parts, None);
    let names = all(&catalog, &Scope::All, ListKind::Tools);
    assert_eq!(names.len(), 2_000);
    let want: Vec<_> = (0..2_000)
        .map(|n| format!("u{}_tool_{}", n / 200, n % 200))
        .collect();
    assert_eq!(names, want);
}

#[test]
fn a_page_is_encoded_once_and_shared_by_revisions_of_equal_shape() {
    let (rules, parts) = many(2, 3);
    let catalog = Catalog::build(&rules, &parts, None);
    let page = |kind, revision| {
        catalog
            .page(&Scope::All, kind, revision, &Position::start())
            .unwrap()
            .items
            .value()
    };
    let tools = page(ListKind::Tools, MODERN);
    assert_eq!(tools.as_ptr(), page(ListKind::Tools, MODERN).as_ptr());
    assert_ne!(
        tools.as_ptr(),
        page(ListKind::Tools, Revision::V2025_03_26).as_ptr()
    );
    assert_eq!(
        page(ListKind::Prompts, MODERN).as_ptr(),
        page(ListKind::Prompts, Revision::V2024_11_05).as_ptr()
    );
}

#[test]
fn a_rebuild_that_finds_the_same_shares_its_pages_and_says_so() {
    let (rules, parts) = many(3, 3);
    let one = Catalog::build(&rules, &parts, None);
    let again: Vec<_> = parts
        .iter()
        .map(|(id, _)| {
            (
                id.clone(),
                Arc::new(brings(
                    ListKind::Tools,
                    &(0..3)
                        .map(|n| tool(&format!("tool_{n}")))
                        .collect::<Vec<_>>(),
                )),
            )
        })
        .collect();
    let two = Catalog::build(&rules, &again, Some(&one));
    assert!(two.same_list(&one, &Scope::All, ListKind::Tools));
    let page = |catalog: &Catalog| {
        catalog
            .page(&Scope::All, ListKind::Tools, MODERN, &Position::start())
            .unwrap()
            .items
            .value()
    };
    assert_eq!(page(&one).as_ptr(), page(&two).as_ptr());
    let mut changed = again;
    changed[1].1 = Arc::new(tools(&["other"]));
    let three = Catalog::build(&rules, &changed, Some(&two));
    assert!(!three.same_list(&two, &Scope::All, ListKind::Tools));
    assert!(three.same_list(&two, &Scope::All, ListKind::Prompts));
    assert!(three.same_list(&two, &Scope::Upstream(id("u0")), ListKind::Tools));
}

#[test]
fn pages_end_at_their_limit_of_bytes_and_hold_at_least_one_item() {
    let (mut rules, parts) = many(1, 100);
    rules.pages.bytes = 2_000;
    let catalog = Catalog::build(&rules, &parts, None);
    let mut after = Some(Position::start());
    let mut pages = 0;
    while let Some(position) = after {
        let page = catalog
            .page(&Scope::All, ListKind::Tools, MODERN, &position)
            .unwrap();
        assert!(page.items.value_len() <= 2_000);
        pages += 1;
        after = page.next;
    }
    assert!(pages > 3);
    rules.pages.bytes = 1;
    let catalog = Catalog::build(&rules, &parts, None);
    assert_eq!(all(&catalog, &Scope::All, ListKind::Tools).len(), 100);
}

#[test]
fn an_empty_list_is_one_empty_page() {
    let catalog = build(&rules(&[]), vec![], None);
    let page = catalog
        .page(&Scope::All, ListKind::Tools, MODERN, &Position::start())
        .unwrap();
    assert_eq!((&page.items.value()[..], page.next), (&b"[]"[..], None));
}

fn hints(
    catalog: &Catalog,
    scope: &Scope,
    kind: ListKind,
    now: Instant,
) -> (u64, bool, Vec<String>) {
    let hints = catalog.hints(scope, kind, &Position::start(), now).unwrap();
    (
        hints.ttl_millis,
        hints.public,
        hints.away.as_deref().unwrap_or_default().to_vec(),
    )
}

#[tokio::test(start_paused = true)]
async fn cat_7_the_time_to_live_is_what_is_left_of_the_shortest() {
    let now = Instant::now();
    let mut short = tools(&["a"]);
    short.tools.ttl = Some(Duration::from_secs(10));
    let rules = rules(&[("a", "a"), ("b", "b")]);
    let catalog = build(&rules, vec![("a", short), ("b", tools(&["b"]))], None);
    let ttl = |kind, age| hints(&catalog, &Scope::All, kind, now + Duration::from_secs(age)).0;
    assert_eq!(ttl(ListKind::Tools, 0), 10_000);
    assert_eq!(ttl(ListKind::Tools, 4), 6_000);
    assert_eq!(ttl(ListKind::Tools, 11), 0);
    assert_eq!(ttl(ListKind::Prompts, 0), 60_000);
}

#[test]
fn cat_7_one_upstream_without_hints_away_or_missing_leaves_no_time_to_live() {
    let rules = rules(&[("a", "a"), ("b", "b")]);
    let none = |b: Option<Contribution>| {
        let mut parts = vec![("a", tools(&["a"]))];
        parts.extend(b.map(|b| ("b", b)));
        hints(
            &build(&rules, parts, None),
            &Scope::All,
            ListKind::Tools,
            Instant::now(),
        )
    };
    let mut legacy = tools(&["b"]);
    legacy.tools.ttl = None;
    legacy.tools.public = false;
    assert_eq!(none(Some(legacy)), (0, false, vec![]));
    let mut away = tools(&["b"]);
    away.away = true;
    assert_eq!(none(Some(away)), (0, false, vec!["b".to_owned()]));
    assert_eq!(none(None), (0, false, vec!["b".to_owned()]));
    let mut no_tools = tools(&[]);
    no_tools.card = Some(card(r#"{"prompts":{}}"#));
    no_tools.tools = Listing::default();
    assert!(
        none(Some(no_tools)).1,
        "who has no tools has no say in them"
    );
    let mut undeclared = tools(&["b"]);
    undeclared.card = Some(card("{}"));
    undeclared.tools.ttl = None;
    undeclared.tools.public = false;
    assert_eq!(none(Some(undeclared)), (0, false, vec![]));
}

#[test]
fn cat_7_a_list_is_public_only_when_all_are_and_nothing_was_selected() {
    let parts = |public| {
        let mut one = tools(&["b"]);
        one.tools.public = public;
        vec![("a", tools(&["a"])), ("b", one)]
    };
    let mut rules = rules(&[("a", "a"), ("b", "b")]);
    let mut set = toolset("set");
    set.upstreams = vec![id("a")];
    rules.toolsets = vec![set];
    let public = |rules: &CatalogRules, all, scope: &Scope| {
        hints(
            &build(rules, parts(all), None),
            scope,
            ListKind::Tools,
            Instant::now(),
        )
        .1
    };
    assert!(public(&rules, true, &Scope::All));
    assert!(!public(&rules, false, &Scope::All));
    assert!(public(&rules, false, &Scope::Upstream(id("a"))));
    assert!(!public(&rules, true, &Scope::Toolset("set".into())));
    for shape in 0..3 {
        let mut rules = rules.clone();
        match shape {
            0 => rules.upstreams[1].tools.deny = vec!["x".into()],
            1 => drop(rules.upstreams[1].rename.insert("b".into(), "c".into())),
            _ => drop(rules.upstreams[1].describe.insert("b".into(), "c".into())),
        }
        assert!(!public(&rules, true, &Scope::All));
    }
}

#[test]
fn cat_7_once_a_page_of_a_run_was_private_all_later_ones_are() {
    let mut rules = rules(&[("a", "a")]);
    rules.pages.items = 1;
    let with = |public| {
        let mut one = tools(&["x", "y", "z"]);
        one.tools.public = public;
        build(&rules, vec![("a", one)], None)
    };
    let (private, open) = (with(false), with(true));
    let next = |catalog: &Catalog, after: &Position| {
        catalog
            .page(&Scope::All, ListKind::Tools, MODERN, after)
            .unwrap()
            .next
            .unwrap()
    };
    let second = next(&private, &Position::start());
    let is_public = |after: &Position| {
        open.hints(&Scope::All, ListKind::Tools, after, Instant::now())
            .unwrap()
            .public
    };
    assert!(!is_public(&second));
    assert!(
        !is_public(&next(&open, &second)),
        "also after a page that could have been"
    );
    assert!(is_public(&next(&open, &Position::start())));
}

/// Loose bounds for an unoptimised build on a shared machine: they catch what grows with the square of the items.
#[test]
fn ten_thousand_tools_are_built_and_rebuilt_quickly() {
    let (rules, parts) = many(10, 1_000);
    let started = Instant::now();
    let one = Catalog::build(&rules, &parts, None);
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    let started = Instant::now();
    let two = Catalog::build(&rules, &parts, Some(&one));
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(two.count(&Scope::All, ListKind::Tools), 10_000);
}
