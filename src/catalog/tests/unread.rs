//! Where names lead of upstreams of which nothing is known.

use super::*;

fn leads(catalog: &Catalog, scope: &Scope, name: &str) -> Option<(String, String)> {
    let route = catalog.unread(scope, ListKind::Tools, name)?;
    Some((route.upstream.to_string(), route.local.to_string()))
}

fn to(upstream: &str, local: &str) -> Option<(String, String)> {
    Some((upstream.to_owned(), local.to_owned()))
}

/// Of `wh` and `bare` nothing is known, of `fs` everything; `one` and `two` cannot be told apart.
fn catalog() -> Catalog {
    let mut rules = rules(&[
        ("wh", "wh"),
        ("fs", "fs"),
        ("bare", ""),
        ("one", "same"),
        ("two", "same"),
    ]);
    rules.upstreams[0].tools.allow = vec!["query_*".into()];
    rules.upstreams[0]
        .rename
        .insert("query_sql".into(), "sql".into());
    let mut some = toolset("some");
    some.tools = vec!["wh_query_a*".into()];
    let mut whole = toolset("whole");
    whole.upstreams = vec![id("wh")];
    rules.toolsets = vec![some, whole];
    build(
        &rules,
        vec![("fs", tools(&["x"])), ("wh", Contribution::default())],
        None,
    )
}

#[test]
fn a_name_leads_by_its_prefix_to_whoever_nothing_is_known_of() {
    let catalog = catalog();
    let all = |name| leads(&catalog, &Scope::All, name);
    assert_eq!(all("wh_query_x"), to("wh", "query_x"));
    assert_eq!(all("wh_sql"), to("wh", "query_sql"));
    assert_eq!(all("x"), to("bare", "x"));
    assert_eq!(all("nobodys_x"), to("bare", "nobodys_x"));
    assert_eq!(all("wh"), to("bare", "wh"));
    for nobodys in [
        // It is shown under another name, or not taken.
        "wh_query_sql",
        "wh_drop",
        "wh_",
        // Its lists are known, and it is in none of them.
        "fs_y",
        "same_x",
        "",
        "no name",
        "wh_query_\u{200b}",
    ] {
        assert_eq!(all(nobodys), None, "{nobodys}");
    }
}

#[test]
fn an_endpoint_leads_only_where_it_would_if_all_were_known() {
    let catalog = catalog();
    let at = |scope: &Scope, name| leads(&catalog, scope, name);
    let some = Scope::Toolset("some".into());
    assert_eq!(at(&some, "wh_query_all"), to("wh", "query_all"));
    assert_eq!(at(&some, "wh_query_x"), None);
    assert_eq!(at(&some, "x"), None);
    let whole = Scope::Toolset("whole".into());
    assert_eq!(at(&whole, "wh_query_x"), to("wh", "query_x"));
    let own = Scope::Upstream(id("wh"));
    assert_eq!(at(&own, "query_sql"), to("wh", "query_sql"));
    assert_eq!(at(&own, "wh_query_x"), None);
    assert_eq!(at(&own, "query_\u{200b}"), None);
    assert_eq!(at(&Scope::Upstream(id("fs")), "y"), None);
    assert_eq!(at(&Scope::Toolset("other".into()), "wh_sql"), None);
    let uri = catalog.unread(&Scope::All, ListKind::Resources, "wh_query_x");
    assert!(uri.is_none());
}

#[test]
fn what_nothing_is_known_of_is_judged_under_the_name_that_it_would_have() {
    let catalog = catalog();
    for (scope, name, exposed) in [
        (Scope::All, "wh_sql", "wh_sql"),
        (Scope::Upstream(id("wh")), "query_sql", "wh_sql"),
        (Scope::Upstream(id("wh")), "query_x", "wh_query_x"),
    ] {
        let route = catalog.unread(&scope, ListKind::Tools, name).unwrap();
        assert_eq!(catalog.name_of(ListKind::Tools, &route, name), exposed);
    }
}

#[test]
fn an_endpoint_lacks_something_while_an_upstream_that_it_may_be_of_is_not_known() {
    let catalog = catalog();
    assert!(catalog.lacks_some(&Scope::All));
    assert!(catalog.lacks_some(&Scope::Toolset("some".into())));
    assert!(catalog.lacks_some(&Scope::Upstream(id("wh"))));
    assert!(!catalog.lacks_some(&Scope::Upstream(id("fs"))));
    let known = build(&rules(&[("fs", "fs")]), vec![("fs", tools(&["x"]))], None);
    assert!(!known.lacks_some(&Scope::All));
}
