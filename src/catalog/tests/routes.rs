//! Where URIs lead.

use super::*;

fn leads(catalog: &Catalog, scope: &Scope, uri: &str) -> Option<(String, String)> {
    let route = catalog.resource(scope, uri)?;
    Some((route.upstream.to_string(), route.local.to_string()))
}

fn to(upstream: &str, local: &str) -> Option<(String, String)> {
    Some((upstream.to_owned(), local.to_owned()))
}

fn catalog() -> Catalog {
    let mut rules = rules(&[("bare", ""), ("wh", "wh"), ("web", "web")]);
    let mut notes = toolset("notes");
    notes.resources = vec!["wh+note://*".into(), "https://docs/*".into()];
    let mut logs = toolset("logs");
    logs.resources = vec!["wh+log://{+path}".into()];
    let mut whole = toolset("whole");
    whole.upstreams = vec![id("wh")];
    rules.toolsets = vec![notes, logs, whole];
    let mut bare = brings(ListKind::Resources, &[resource("mem://1")]);
    bare.templates.items = [json(&template("bare://{x}"))].into();
    let mut wh = brings(
        ListKind::Resources,
        &[resource("note://1"), resource("https://wh.example/a")],
    );
    wh.templates.items = [json(&template("log://{+path}"))].into();
    let mut web = brings(ListKind::Resources, &[]);
    web.templates.items = [json(&template("https://docs/{page}"))].into();
    build(&rules, vec![("bare", bare), ("wh", wh), ("web", web)], None)
}

#[test]
fn uris_lead_to_who_lists_them_or_by_their_spelling_or_by_a_template() {
    let catalog = catalog();
    let all = |uri| leads(&catalog, &Scope::All, uri);
    assert_eq!(all("wh+note://1"), to("wh", "note://1"));
    assert_eq!(all("wh+unlisted://x"), to("wh", "unlisted://x"));
    assert_eq!(all("ui://wh/app/x"), to("wh", "ui://app/x"));
    assert_eq!(
        all("skill://wh/review/SKILL.md"),
        to("wh", "skill://review/SKILL.md")
    );
    assert_eq!(
        all("https://wh.example/a"),
        to("wh", "https://wh.example/a")
    );
    assert_eq!(all("https://docs/start"), to("web", "https://docs/start"));
    assert_eq!(all("https://docs/a/b"), None);
    assert_eq!(all("https://elsewhere/x"), None);
    assert_eq!(all("wh+https://elsewhere/x"), None);
    assert_eq!(all("mem://1"), to("bare", "mem://1"));
    assert_eq!(all("unlisted://x"), to("bare", "unlisted://x"));
    assert_eq!(all("note://1"), to("bare", "note://1"));
    assert_eq!(all("wh+note://1\u{1}"), None);
    assert_eq!(all("wh+note://1\u{200b}"), None);
}

#[test]
fn a_prefix_that_two_upstreams_share_routes_only_what_is_listed() {
    let shared = rules(&[("a", ""), ("b", "")]);
    let part = |uri| brings(ListKind::Resources, &[resource(uri)]);
    let catalog = build(
        &shared,
        vec![("a", part("a://1")), ("b", part("b://1"))],
        None,
    );
    assert_eq!(leads(&catalog, &Scope::All, "b://1"), to("b", "b://1"));
    assert_eq!(leads(&catalog, &Scope::All, "b://2"), None);
}

#[test]
fn cat_1_what_is_spelled_as_anothers_is_no_expansion_of_an_open_template() {
    let mut bare = brings(ListKind::Resources, &[]);
    bare.templates.items = [json(&template("{+u}"))].into();
    let mut wh = brings(ListKind::Resources, &[resource("note://1")]);
    wh.templates.items = [json(&template("weather://{city}"))].into();
    let catalog = build(
        &rules(&[("bare", ""), ("wh", "wh"), ("one", "two"), ("other", "two")]),
        vec![("bare", bare), ("wh", wh)],
        None,
    );
    let all = |uri| leads(&catalog, &Scope::All, uri);
    assert_eq!(all("wh+unlisted://x"), to("wh", "unlisted://x"));
    assert_eq!(all("wh+weather://paris"), to("wh", "weather://paris"));
    assert_eq!(all("ui://wh/app/x"), to("wh", "ui://app/x"));
    assert_eq!(all("two+note://1"), None, "of several it is nobody's");
    assert_eq!(all("unlisted://x"), to("bare", "unlisted://x"));
    assert_eq!(
        all("https://elsewhere/x"),
        to("bare", "https://elsewhere/x")
    );
}

#[test]
fn a_toolset_reaches_only_what_it_selects() {
    let catalog = catalog();
    let scope = |name: &str| Scope::Toolset(name.into());
    let notes = |uri| leads(&catalog, &scope("notes"), uri);
    assert_eq!(notes("wh+note://1"), to("wh", "note://1"));
    assert_eq!(notes("wh+note://unlisted"), to("wh", "note://unlisted"));
    assert_eq!(notes("wh+secret://1"), None);
    assert_eq!(notes("https://docs/start"), to("web", "https://docs/start"));
    assert_eq!(notes("unlisted://x"), None);
    let logs = |uri| leads(&catalog, &scope("logs"), uri);
    assert_eq!(logs("wh+log://a/b"), to("wh", "log://a/b"));
    assert_eq!(logs("wh+note://1"), None);
    let whole = |uri| leads(&catalog, &scope("whole"), uri);
    assert_eq!(whole("wh+any://x"), to("wh", "any://x"));
    assert_eq!(whole("mem://1"), None);
    assert!(catalog.namespace(&scope("whole"), &id("bare")).is_none());
}

#[test]
fn one_upstreams_own_endpoint_changes_no_uri() {
    let catalog = catalog();
    let own = Scope::Upstream(id("wh"));
    for uri in [
        "note://1",
        "unlisted://x",
        "wh+note://1",
        "https://elsewhere/x",
        "ui://app/x",
    ] {
        assert_eq!(leads(&catalog, &own, uri), to("wh", uri));
    }
    let namespace = catalog.namespace(&own, &id("wh")).unwrap();
    assert_eq!(namespace.outward_uri("note://1"), None);
    assert!(catalog.namespace(&own, &id("web")).is_none());
    let merged = catalog.namespace(&Scope::All, &id("wh")).unwrap();
    assert_eq!(
        merged.outward_uri("note://1").as_deref(),
        Some("wh+note://1")
    );
}

#[test]
fn completion_gets_the_original_template_back() {
    let catalog = catalog();
    let route = |scope: &Scope, uri| {
        catalog
            .template(scope, uri)
            .map(|route| route.local.to_string())
    };
    assert_eq!(
        route(&Scope::All, "wh+log://{+path}").as_deref(),
        Some("log://{+path}")
    );
    assert_eq!(
        route(&Scope::All, "wh+note://1").as_deref(),
        Some("note://1")
    );
    assert_eq!(
        route(&Scope::All, "https://docs/{page}").as_deref(),
        Some("https://docs/{page}")
    );
    assert_eq!(route(&Scope::All, "https://other/{page}"), None);
    assert_eq!(
        route(&Scope::Upstream(id("wh")), "log://{+path}").as_deref(),
        Some("log://{+path}")
    );
}

#[test]
fn a_tools_route_carries_its_mirrored_arguments() {
    let definition = r#"{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}"#;
    let catalog = build(
        &rules(&[("a", "a")]),
        vec![("a", brings(ListKind::Tools, &[definition.into()]))],
        None,
    );
    let route = catalog.tool(&Scope::All, "a_t").unwrap();
    assert_eq!(route.headers[0].header, "mcp-param-region");
}

#[test]
fn the_page_of_a_tools_app_is_reached_where_the_tool_is_and_nowhere_else() {
    let with_app = |name: &str, uri: &str| {
        let meta = format!(r#"{{"ui":{{"resourceUri":"{uri}"}}}}"#);
        format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"_meta":{meta}}}"#)
    };
    let mut rules = rules(&[("a", ""), ("b", ""), ("wh", "wh")]);
    let mut set = toolset("set");
    set.tools = vec!["wh_one".into()];
    rules.toolsets = vec![set];
    let wh = [with_app("one", "ui://one/x"), with_app("two", "ui://two/x")];
    let b = [
        with_app("b", "ui://b/x"),
        with_app("thief", "ui://wh/one/x"),
    ];
    let catalog = build(
        &rules,
        vec![
            ("b", brings(ListKind::Tools, &b)),
            ("wh", brings(ListKind::Tools, &wh)),
        ],
        None,
    );
    assert_eq!(
        leads(&catalog, &Scope::All, "ui://wh/one/x"),
        to("wh", "ui://one/x")
    );
    assert_eq!(
        leads(&catalog, &Scope::All, "ui://b/x"),
        to("b", "ui://b/x")
    );
    assert_eq!(leads(&catalog, &Scope::All, "ui://c/x"), None);
    let set = Scope::Toolset("set".into());
    assert_eq!(
        leads(&catalog, &set, "ui://wh/one/x"),
        to("wh", "ui://one/x")
    );
    assert_eq!(leads(&catalog, &set, "ui://wh/two/x"), None);
}

/// What an upstream offers: these templates, all withheld.
fn withheld(templates: &[&str]) -> Contribution {
    let mut brought = brings(ListKind::Resources, &[]);
    let items = templates.iter().map(|text| json(&template(text)));
    brought.templates.items = items.collect();
    let names = templates.iter();
    let names: super::super::WithheldNames = names
        .map(|text| (ListKind::Templates, Arc::from(*text)))
        .collect();
    brought.withheld.items = Some(Arc::new(names));
    brought
}

/// Whose withheld template this would be an expansion of.
fn held(catalog: &Catalog, scope: &Scope, uri: &str) -> Option<String> {
    let held = catalog.withheld(scope, ListKind::Resources, uri);
    held.map(|held| held.route().upstream.to_string())
}

// SECURITY CAT-2
#[test]
fn what_takes_too_long_to_tell_is_withheld_and_one_upstreams_templates_take_no_time_from_anothers_own_endpoint()
 {
    use std::fmt::Write as _;

    let mut slow = "memo://".to_owned();
    for n in 0..600 {
        write!(slow, "{{+v{n}}}").unwrap();
    }
    slow.push('!');
    let slow = &*slow;
    let rules = rules(&[("slow", "sl"), ("bare", "")]);
    let uri = format!("memo://{}", "x".repeat(5_000));
    for (scope, brought, whose) in [
        (Scope::Upstream(id("bare")), ["memo://{id}"], Some("bare")),
        (Scope::Upstream(id("bare")), ["other://{id}"], None),
        (Scope::All, ["memo://{id}"], Some("bare")),
    ] {
        let parts = vec![("slow", withheld(&[slow])), ("bare", withheld(&brought))];
        let catalog = build(&rules, parts, None);
        assert_eq!(held(&catalog, &scope, &uri).as_deref(), whose, "{scope:?}");
    }
    let parts = vec![("bare", withheld(&[slow, "memo://{id}"]))];
    let catalog = build(&rules, parts, None);
    for scope in [Scope::All, Scope::Upstream(id("bare"))] {
        assert_eq!(held(&catalog, &scope, &uri).as_deref(), Some("bare"));
        assert_eq!(held(&catalog, &scope, &uri.replace("memo", "other")), None);
    }
}

#[test]
fn cat_2_what_a_withheld_template_would_expand_to_is_withheld_wherever_it_is_read_and_nothing_of_others()
 {
    let catalog = build(
        &rules(&[("bare", ""), ("wh", "wh")]),
        vec![
            ("bare", withheld(&["{+u}"])),
            ("wh", withheld(&["memo://{id}"])),
        ],
        None,
    );
    let held = |scope: &Scope, uri: &str| held(&catalog, scope, uri);
    let (wh, bare) = (Scope::Upstream(id("wh")), Scope::Upstream(id("bare")));
    assert_eq!(held(&Scope::All, "wh+memo://7").as_deref(), Some("wh"));
    assert_eq!(held(&wh, "memo://7").as_deref(), Some("wh"));
    assert_eq!(held(&wh, "other://7"), None);
    assert_eq!(held(&bare, "memo://7").as_deref(), Some("bare"));
    assert_eq!(held(&Scope::All, "memo://7").as_deref(), Some("bare"));
    assert_eq!(held(&Scope::All, "wh+other://7"), None);
}

// SECURITY CAT-2
#[test]
fn cat_2_a_withheld_template_is_not_got_around_where_it_is_not_selected_itself() {
    let mut rules = rules(&[("wh", "wh")]);
    let mut set = toolset("set");
    set.resources = vec!["wh+memo://7".into(), "wh+other://*".into()];
    rules.toolsets = vec![set];
    let catalog = build(&rules, vec![("wh", withheld(&["memo://{id}"]))], None);
    let scope = Scope::Toolset("set".into());
    let held = |uri: &str| {
        let route = catalog.resource(&scope, uri).expect("a way");
        let held = catalog.withheld_at(ListKind::Resources, &route);
        held.map(|held| held.route().local.to_string())
    };
    assert_eq!(held("wh+memo://7").as_deref(), Some("memo://{id}"));
    assert_eq!(held("wh+other://7"), None);
}
