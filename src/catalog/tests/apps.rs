//! What pages of apps may reach by names of their own server.

use super::*;

fn app(name: &str, page: &str) -> String {
    format!(
        r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"_meta":{{"ui":{{"resourceUri":"{page}"}}}}}}"#
    )
}

fn leads(catalog: &Catalog, uri: &str) -> Option<String> {
    Some(catalog.resource(&Scope::All, uri)?.upstream.to_string())
}

#[test]
fn an_address_that_reads_as_anothers_is_never_an_apps_own() {
    let part = || {
        let mut part = brings(
            ListKind::Tools,
            &[
                app("show", "ui://dash/a"),
                app("odd", "ui://other/a"),
                tool("other_t"),
            ],
        );
        let listed = ["other+note://1", "note://1"].map(|uri| json(&resource(uri)));
        part.resources.items = listed.into();
        part
    };
    let catalog = build(
        &rules(&[("dash", "dash"), ("other", "other")]),
        vec![("dash", part()), ("other", tools(&["t"]))],
        None,
    );
    assert_eq!(leads(&catalog, "ui://dash/a").as_deref(), Some("dash"));
    let own = catalog.resource(&Scope::All, "ui://dash/a").unwrap();
    assert_eq!(&*own.local, "ui://dash/a");
    assert_eq!(leads(&catalog, "note://1").as_deref(), Some("dash"));
    assert_eq!(leads(&catalog, "ui://other/a").as_deref(), Some("other"));
    assert_eq!(leads(&catalog, "other+note://1").as_deref(), Some("other"));
    let leads_tool = |catalog: &Catalog, name| {
        let route = catalog.tool(&Scope::All, name)?;
        Some(route.upstream.to_string())
    };
    assert_eq!(leads_tool(&catalog, "show").as_deref(), Some("dash"));
    assert_eq!(leads_tool(&catalog, "other_t").as_deref(), Some("other"));
    let without = build(
        &rules(&[("dash", "dash"), ("other", "other")]),
        vec![("dash", part()), ("other", tools(&[]))],
        None,
    );
    assert_eq!(leads_tool(&without, "other_t"), None);
    let bare = build(
        &rules(&[("dash", "dash"), ("other", "")]),
        vec![("dash", part()), ("other", tools(&["t"]))],
        None,
    );
    assert_eq!(leads(&bare, "note://1").as_deref(), Some("other"));
    assert_eq!(leads_tool(&bare, "show"), None);
}
