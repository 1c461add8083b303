//! Who gets which name.

use proptest::prelude::*;

use super::{
    super::{
        Login, Reason,
        rules::{Pins, Validation},
    },
    *,
};

#[test]
fn names_are_prefixed_and_listed_in_configured_order_then_the_upstreams_own() {
    let catalog = build(
        &rules(&[("b", "b"), ("a", "wh"), ("late", "late")]),
        vec![("a", tools(&["z", "y"])), ("b", tools(&["q"]))],
        None,
    );
    assert_eq!(
        all(&catalog, &Scope::All, ListKind::Tools),
        ["b_q", "wh_z", "wh_y"]
    );
    let route = catalog.tool(&Scope::All, "wh_z").unwrap();
    assert_eq!((&route.upstream, &*route.local), (&id("a"), "z"));
    assert_eq!(
        all(&catalog, &Scope::Upstream(id("a")), ListKind::Tools),
        ["z", "y"]
    );
    assert!(catalog.tool(&Scope::Upstream(id("a")), "wh_z").is_none());
    assert!(catalog.tool(&Scope::Upstream(id("a")), "z").is_some());
    assert!(catalog.tool(&Scope::Upstream(id("b")), "z").is_none());
}

#[test]
fn what_the_configuration_names_and_nobody_offers_is_reported() {
    let mut rules = rules(&[("mini", "mini")]);
    let naming = &mut rules.upstreams[0];
    naming.tools = Selection {
        allow: ["*", "e*", "x*"].map(str::to_owned).into(),
        deny: ["die", "dye"].map(str::to_owned).into(),
    };
    for key in ["echo", "gone"] {
        naming.rename.insert(key.into(), format!("{key}_2"));
        naming.describe.insert(key.into(), "Says it again.".into());
    }
    naming.labels.tags = ["echo", "a://*", "dei"]
        .map(|glob| (glob.to_owned(), vec!["x".into()]))
        .into();
    naming.labels.pins = ["d*", "ech"]
        .map(|glob| (glob.to_owned(), Pins::default()))
        .into();
    naming.validation.tools = ["*", "ehco"]
        .map(|glob| (glob.to_owned(), Validation::default()))
        .into();
    let catalog = build(&rules, vec![("mini", tools(&["echo", "die"]))], None);
    assert_eq!(all(&catalog, &Scope::All, ListKind::Tools), ["mini_echo_2"]);
    let unmet = |name: &str, key: &str| {
        let reason = format!("is in `{key}`, but no tool that is there is called so");
        ("mini".to_owned(), name.to_owned(), reason)
    };
    let nothing = |name: &str| {
        let reason = "is in `tags`, but nothing that is there is called so";
        ("mini".to_owned(), name.to_owned(), reason.to_owned())
    };
    assert_eq!(
        reports(&catalog),
        [
            unmet("x*", "tools.allow"),
            unmet("dye", "tools.deny"),
            unmet("ech", "tools.annotations"),
            unmet("ehco", "validate.tools"),
            unmet("gone", "rename"),
            unmet("gone", "describe"),
            nothing("a://*"),
            nothing("dei"),
        ]
    );
}

#[test]
fn cat_1_a_clash_leaves_the_later_one_out_and_is_reported() {
    let catalog = build(
        &rules(&[("bare", ""), ("wh", "wh")]),
        vec![("bare", tools(&["wh_x", "y"])), ("wh", tools(&["x", "z"]))],
        None,
    );
    assert_eq!(
        all(&catalog, &Scope::All, ListKind::Tools),
        ["wh_x", "y", "wh_z"]
    );
    assert_eq!(
        catalog.tool(&Scope::All, "wh_x").unwrap().upstream,
        id("bare")
    );
    assert_eq!(catalog.reports()[0].reason, Reason::Taken(id("bare")));
    assert!(
        catalog.tool(&Scope::Upstream(id("wh")), "x").is_some(),
        "its own endpoint still has it"
    );
}

#[test]
fn cat_1_nobody_takes_over_a_name_that_is_held_not_even_by_standing_first() {
    let rules = rules(&[("bare", ""), ("wh", "wh")]);
    let holder = |catalog: &Catalog| {
        catalog
            .tool(&Scope::All, "wh_x")
            .map(|route| route.upstream.to_string())
    };
    let first = build(&rules, vec![("wh", tools(&["x"]))], None);
    assert_eq!(holder(&first).as_deref(), Some("wh"));

    let both = || vec![("bare", tools(&["wh_x"])), ("wh", tools(&["x"]))];
    let second = build(&rules, both(), Some(&first));
    assert_eq!(holder(&second).as_deref(), Some("wh"));

    let mut away = tools(&[]);
    away.away = true;
    let third = build(
        &rules,
        vec![("bare", tools(&["wh_x"])), ("wh", away)],
        Some(&second),
    );
    assert_eq!(holder(&third), None, "reserved while its holder is away");
    let fourth = build(&rules, both(), Some(&third));
    assert_eq!(holder(&fourth).as_deref(), Some("wh"));

    let given_up = build(
        &rules,
        vec![("bare", tools(&["wh_x"])), ("wh", tools(&[]))],
        Some(&fourth),
    );
    assert_eq!(holder(&given_up).as_deref(), Some("bare"));
    let back = build(&rules, both(), Some(&given_up));
    assert_eq!(
        holder(&back).as_deref(),
        Some("bare"),
        "and now it is held by that one"
    );
}

#[test]
fn cat_1_names_are_kept_for_whoever_stands_first_and_is_not_read_yet() {
    let rules = rules(&[("wh", "wh"), ("bare", "")]);
    let bare = || ("bare", tools(&["wh_x", "other_x", "y"]));
    let alone = build(&rules, vec![bare()], None);
    let tools_of = |catalog: &Catalog| all(catalog, &Scope::All, ListKind::Tools);
    assert_eq!(tools_of(&alone), ["other_x", "y"]);
    assert_eq!(alone.reports()[0].reason, Reason::Reserved(id("wh")));
    let own = Scope::Upstream(id("bare"));
    assert!(alone.tool(&own, "wh_x").is_some());
    let both = build(&rules, vec![("wh", tools(&["x"])), bare()], Some(&alone));
    let holder = &both.tool(&Scope::All, "wh_x").unwrap().upstream;
    assert_eq!(*holder, id("wh"));
    let not_offered = build(&rules, vec![("wh", tools(&["z"])), bare()], Some(&alone));
    assert_eq!(tools_of(&not_offered), ["wh_z", "wh_x", "other_x", "y"]);
    // Who has a name keeps it, whatever becomes of the other.
    let gone = build(&rules, vec![bare()], Some(&not_offered));
    assert_eq!(tools_of(&gone), ["wh_x", "other_x", "y"]);
}

#[test]
fn cat_1_what_somebody_is_remembered_to_have_offered_is_kept_for_them_until_they_are_read() {
    let mut rules = rules(&[("one", "one"), ("two", "two"), ("three", "three")]);
    let uri = "https://shared.test/a";
    let claims = |uri: &str| [(ListKind::Resources, Arc::from(uri))].into();
    rules.upstreams[0].claims = claims("https://shared.test/b");
    rules.upstreams[1].claims = claims(uri);
    let offers = || brings(ListKind::Resources, &[resource(uri)]);
    let holder = |catalog: &Catalog| {
        let route = catalog.listed(&Scope::All, ListKind::Resources, uri);
        route.map(|route| route.upstream.to_string())
    };
    let later = build(&rules, vec![("three", offers())], None);
    assert_eq!(holder(&later), None);
    assert_eq!(later.reports()[0].reason, Reason::Reserved(id("two")));
    let first = build(
        &rules,
        vec![("one", offers()), ("three", offers())],
        Some(&later),
    );
    assert_eq!(holder(&first).as_deref(), Some("one"), "it stands first");
    let there = build(
        &rules,
        vec![("one", gone()), ("two", offers()), ("three", offers())],
        Some(&later),
    );
    assert_eq!(holder(&there).as_deref(), Some("two"));
    let not_offered = build(
        &rules,
        vec![("one", gone()), ("two", tools(&[])), ("three", offers())],
        Some(&later),
    );
    assert_eq!(holder(&not_offered).as_deref(), Some("three"));
    let earlier = build(&rules, vec![("one", offers())], None);
    assert_eq!(holder(&earlier).as_deref(), Some("one"), "by the order");
}

#[test]
fn cat_1_a_web_uri_is_kept_for_whoever_stands_first_until_that_is_read_or_away() {
    let rules = rules(&[("one", "one"), ("two", "two"), ("three", "three")]);
    for (kind, definition, uri) in [
        (
            ListKind::Resources,
            resource("https://a.test/x"),
            "https://a.test/x",
        ),
        (
            ListKind::Templates,
            template("HTTP://a.test/{x}"),
            "HTTP://a.test/{x}",
        ),
    ] {
        let offers = || brings(kind, std::slice::from_ref(&definition));
        let holder = |catalog: &Catalog| {
            let route = catalog.listed(&Scope::All, kind, uri);
            route.map(|route| route.upstream.to_string())
        };
        let later = build(&rules, vec![("three", offers())], None);
        assert_eq!(holder(&later), None);
        assert_eq!(later.reports()[0].reason, Reason::Reserved(id("one")));
        let own = Scope::Upstream(id("three"));
        assert!(later.listed(&own, kind, uri).is_some());
        let both = build(
            &rules,
            vec![("two", offers()), ("three", offers())],
            Some(&later),
        );
        assert_eq!(holder(&both), None);
        let all = || vec![("one", offers()), ("two", offers()), ("three", offers())];
        let whole = build(&rules, all(), Some(&both));
        assert_eq!(holder(&whole).as_deref(), Some("one"), "by the order");
        // Who is away from the beginning holds nobody up, and who has it then keeps it.
        let without = build(
            &rules,
            vec![("one", gone()), ("two", offers()), ("three", offers())],
            Some(&both),
        );
        assert_eq!(holder(&without).as_deref(), Some("two"));
        let back = build(&rules, all(), Some(&without));
        assert_eq!(holder(&back).as_deref(), Some("two"));
    }
    // What carries a prefix is nobody else's.
    let prefixed = brings(ListKind::Resources, &[resource("note://1")]);
    let alone = build(&rules, vec![("three", prefixed)], None);
    assert_eq!(
        all(&alone, &Scope::All, ListKind::Resources),
        ["three+note://1"]
    );
}

#[test]
fn cat_1_what_is_not_approved_takes_no_name_from_whoever_stands_first_and_is_not_read_yet() {
    let rules = rules(&[("one", "one"), ("two", "two")]);
    let uri = "https://a.test/x";
    let offers = || brings(ListKind::Resources, &[resource(uri)]);
    let held_back = || {
        let mut held_back = offers();
        held_back.withheld.items = Some(Arc::new([(ListKind::Resources, uri.into())].into()));
        held_back
    };
    let later = build(&rules, vec![("two", held_back())], None);
    let both = build(
        &rules,
        vec![("one", offers()), ("two", held_back())],
        Some(&later),
    );
    let route = both.listed(&Scope::All, ListKind::Resources, uri);
    assert_eq!(route.map(|route| &route.upstream), Some(&id("one")));
}

#[test]
fn cat_1_what_is_not_approved_takes_no_name_that_is_remembered_to_be_anothers_or_reads_as_one() {
    let mut rules = rules(&[("one", "one"), ("bare", ""), ("two", "two")]);
    let (web, named) = ("https://a.test/x", "two+note://1");
    rules.upstreams[0].claims = [(ListKind::Resources, Arc::from(web))].into();
    let held_back = || {
        let mut held_back = brings(ListKind::Resources, &[resource(web), resource(named)]);
        held_back.withheld.all = true;
        ("bare", held_back)
    };
    let one = || ("one", brings(ListKind::Resources, &[resource(web)]));
    let two = || ("two", brings(ListKind::Resources, &[resource("note://1")]));
    let holder = |catalog: &Catalog, uri: &str| {
        let route = catalog.listed(&Scope::All, ListKind::Resources, uri);
        route.map(|route| route.upstream.to_string())
    };
    // So that it is not kept for the first alone because nobody was reached.
    let gone = || ("one", gone());
    let later = build(&rules, vec![gone(), held_back()], None);
    let both = build(&rules, vec![one(), held_back(), two()], Some(&later));
    assert_eq!(holder(&both, web).as_deref(), Some("one"));
    assert_eq!(holder(&both, named).as_deref(), Some("two"));
}

#[test]
fn cat_1_a_login_that_stands_in_for_whoever_nobody_has_tried_yet_gives_no_web_uri_away() {
    let rules = rules(&[("one", "one"), ("two", "two")]);
    let uri = "https://a.test/x";
    let offers = || brings(ListKind::Resources, &[resource(uri)]);
    let stands_in = |awaited| Contribution {
        awaited,
        login: Login::Alone,
        ..tools(&["login"])
    };
    let holder = |catalog: &Catalog| {
        let route = catalog.listed(&Scope::All, ListKind::Resources, uri);
        route.map(|route| route.upstream.to_string())
    };
    let early = build(
        &rules,
        vec![("one", stands_in(true)), ("two", offers())],
        None,
    );
    assert_eq!(holder(&early), None);
    assert_eq!(early.reports()[0].reason, Reason::Reserved(id("one")));
    let read = build(
        &rules,
        vec![("one", offers()), ("two", offers())],
        Some(&early),
    );
    assert_eq!(holder(&read).as_deref(), Some("one"), "by the order");
    // Nothing can be read of it before somebody logs in: it holds nobody up.
    let tried = build(
        &rules,
        vec![("one", stands_in(false)), ("two", offers())],
        Some(&early),
    );
    assert_eq!(holder(&tried).as_deref(), Some("two"));
}

/// What of an upstream is known that cannot be reached.
fn gone() -> Contribution {
    Contribution {
        away: true,
        ..Contribution::default()
    }
}

#[test]
fn cat_1_names_that_could_fool_are_left_out_and_the_others_stay() {
    let catalog = build(
        &rules(&[("a", "a")]),
        vec![(
            "a",
            tools(&["good", "b\\u200bad", "ev\\u0456l", "be\\u0007ll", "good"]),
        )],
        None,
    );
    assert_eq!(all(&catalog, &Scope::All, ListKind::Tools), ["a_good"]);
    let reasons: Vec<_> = reports(&catalog)
        .into_iter()
        .map(|(_, name, reason)| (name, reason))
        .collect();
    let expected = [
        ("b\\u{200b}ad", "holds a hidden character"),
        ("evіl", "holds a character that looks like another"),
        ("be\\u{7}ll", "holds a control character"),
        ("good", "is listed twice"),
    ];
    assert_eq!(
        reasons,
        expected.map(|(name, reason)| (name.to_owned(), reason.to_owned()))
    );
}

#[test]
fn cat_1_a_uri_inside_anothers_namespace_is_left_out() {
    let list = [
        resource("wh+note://1"),
        resource("note://1"),
        resource("ui://wh/x"),
    ];
    let catalog = build(
        &rules(&[("bare", ""), ("wh", "wh")]),
        vec![("bare", brings(ListKind::Resources, &list))],
        None,
    );
    assert_eq!(
        all(&catalog, &Scope::All, ListKind::Resources),
        ["note://1"]
    );
    assert_eq!(catalog.reports()[0].reason, Reason::Foreign(id("wh")));
    assert_eq!(
        catalog.count(&Scope::Upstream(id("bare")), ListKind::Resources),
        3
    );
}

#[test]
fn tools_are_selected_renamed_and_described_by_their_original_name() {
    let mut rules = rules(&[("wh", "wh")]);
    let naming = &mut rules.upstreams[0];
    naming.tools.allow = vec!["query_*".into()];
    naming.tools.deny = vec!["*_all".into()];
    naming.rename.insert("query_sql".into(), "sql".into());
    naming
        .describe
        .insert("query_sql".into(), "Runs \"SQL\"".into());
    let catalog = build(
        &rules,
        vec![("wh", tools(&["query_sql", "query_all", "drop", "query_x"]))],
        None,
    );
    assert_eq!(
        all(&catalog, &Scope::All, ListKind::Tools),
        ["wh_sql", "wh_query_x"]
    );
    assert_eq!(
        &*catalog.tool(&Scope::All, "wh_sql").unwrap().local,
        "query_sql"
    );
    assert!(
        first(&catalog, &Scope::All, ListKind::Tools, MODERN)
            .contains(r#""description":"Runs \"SQL\"""#)
    );
    assert_eq!(
        all(&catalog, &Scope::Upstream(id("wh")), ListKind::Tools),
        ["query_sql", "query_x"]
    );
    assert!(
        catalog.reports().is_empty(),
        "what the operator leaves out is no offence"
    );
}

#[test]
fn a_renamed_tool_is_described_under_its_new_name_and_else_under_its_own() {
    let mut rules = rules(&[("wh", "")]);
    let naming = &mut rules.upstreams[0];
    for (local, shown) in [
        ("query_sql", "sql"),
        ("run", "start"),
        ("a", "b"),
        ("b", "c"),
    ] {
        naming.rename.insert(local.into(), shown.into());
    }
    for (name, text) in [
        ("sql", "by its new name"),
        ("query_sql", "overruled"),
        ("run", "by its own"),
        ("b", "of a"),
        ("start_", "of none"),
    ] {
        naming.describe.insert(name.into(), text.into());
    }
    let names = ["query_sql", "run", "a", "b"];
    let catalog = build(&rules, vec![("wh", tools(&names))], None);
    let page = first(&catalog, &Scope::All, ListKind::Tools, MODERN);
    let page = json(&page);
    let described: Vec<_> = page
        .root()
        .elements()
        .map(|tool| {
            let text = |member| tool.member(member).and_then(Node::as_str);
            let (name, description) = (text("name"), text("description"));
            (name.unwrap_or_default(), description.unwrap_or_default())
        })
        .collect();
    assert_eq!(
        described,
        [
            ("sql".into(), "by its new name".into()),
            ("start".into(), "by its own".into()),
            ("b".into(), "of a".into()),
            ("c".into(), "".into()),
        ]
    );
    let reports = reports(&catalog);
    let told: Vec<_> = reports.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(told, ["start_"]);
}

#[test]
fn a_toolset_takes_upstreams_whole_and_globs_over_outward_names() {
    let mut rules = rules(&[("gh", "gh"), ("fs", "fs")]);
    let mut set = toolset("oncall");
    set.tools = vec!["gh_*issue*".into()];
    set.upstreams = vec![id("fs")];
    rules.toolsets = vec![set, toolset("empty")];
    let catalog = build(
        &rules,
        vec![
            ("gh", tools(&["list_issues", "merge"])),
            ("fs", tools(&["read"])),
        ],
        None,
    );
    let oncall = Scope::Toolset("oncall".into());
    assert_eq!(
        all(&catalog, &oncall, ListKind::Tools),
        ["gh_list_issues", "fs_read"]
    );
    assert!(catalog.tool(&oncall, "gh_merge").is_none());
    assert!(all(&catalog, &Scope::Toolset("empty".into()), ListKind::Tools).is_empty());
    let unknown = Scope::Toolset("unknown".into());
    assert!(
        catalog
            .page(&unknown, ListKind::Tools, MODERN, &Position::start())
            .is_none()
    );
    assert!(catalog.face(&unknown, MODERN).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn cat_1_every_exposed_name_leads_to_exactly_one_item(
        lists in proptest::collection::vec(proptest::collection::vec("(a_|b_)?[xyz.]{1,2}(é|_[0-9a-f]{8})?", 0..12), 3),
    ) {
        let rules = rules(&[("bare", ""), ("a", "a"), ("b", "b")]);
        let parts: Vec<_> = ["bare", "a", "b"].into_iter().zip(&lists).map(|(key, list)| {
            let names: Vec<_> = list.iter().map(String::as_str).collect();
            (key, tools(&names))
        }).collect();
        let catalog = build(&rules, parts, None);
        let names = all(&catalog, &Scope::All, ListKind::Tools);
        let mut routes = std::collections::HashSet::new();
        let mut unique = std::collections::HashSet::new();
        for name in &names {
            let route = catalog.tool(&Scope::All, name).unwrap();
            prop_assert!(routes.insert((route.upstream.clone(), route.local.clone())));
            prop_assert!(unique.insert(name.clone()));
        }
        let distinct: usize = lists.iter().map(|list| list.iter().collect::<std::collections::HashSet<_>>().len()).sum();
        let taken = catalog.reports().iter().filter(|report| matches!(report.reason, Reason::Taken(_))).count();
        prop_assert_eq!(names.len() + taken, distinct);
    }
}
