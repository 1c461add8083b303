//! What strict clients would refuse a whole list for, and what is shown instead.

use super::{super::Reason, *};

#[test]
fn icons_that_strict_clients_cannot_read_go() {
    let icon = |more: &str| format!(r#"{{"src":"data:,a"{more}}}"#);
    let good = icon(r#","sizes":["48x48"],"theme":"dark","mimeType":"image/png""#);
    for bad in [
        r#","sizes":"48x48""#,
        r#","sizes":[48]"#,
        r#","sizes":null"#,
        r#","theme":"sepia""#,
        r#","theme":["dark"]"#,
        r#","mimeType":7"#,
    ] {
        let icons = format!("[{},{good}]", icon(bad));
        let text = format!(r#"{{"uri":"note://1","name":"r","icons":{icons}}}"#);
        assert_eq!(
            shown(ListKind::Resources, &text, MODERN),
            format!(r#"{{"uri":"wh+note://1","name":"r","icons":[{good}]}}"#)
        );
        let alone = format!(r#"{{"uri":"note://1","name":"r","icons":[{}]}}"#, icon(bad));
        assert_eq!(
            shown(ListKind::Resources, &alone, MODERN),
            r#"{"uri":"wh+note://1","name":"r"}"#
        );
    }
}

/// Of what may cost strict clients the whole list, what is a mere hint is left out, and the resource stays.
#[test]
fn hints_about_a_resource_that_cannot_be_ones_are_left_out() {
    let with = |kind: ListKind, more: &str| {
        let text = if kind == ListKind::Templates {
            template("note://{x}")
        } else {
            resource("note://1")
        };
        let text = text.replace('}', &format!("{more}}}"));
        // The brace of the template's expression is no end.
        let text = text.replace(&format!("{{x{more}}}"), "{x}");
        shown(kind, &text, MODERN)
    };
    for kind in [ListKind::Resources, ListKind::Templates] {
        for good in [
            r#","size":0,"annotations":{"audience":["user","assistant"],"priority":0,"x":[ ]}"#,
            r#","size":1125899906842624,"annotations":{"audience":[],"priority":1.0}"#,
            r#","annotations":{"priority":5e-1,"lastModified":"2025-01-12T15:00:58Z"}"#,
            r#","annotations":{"lastModified":"2025-01-12T15:00:58.123456789-05:30"}"#,
            r#","annotations":{}"#,
        ] {
            let shown = with(kind, good);
            assert!(shown.ends_with(&format!("{good}}}")), "{shown}");
        }
        for bad in [
            r#""audience":["user","admin"]"#,
            r#""audience":"user""#,
            r#""audience":[7]"#,
            r#""audience":null"#,
            r#""priority":1.01"#,
            r#""priority":-0.1"#,
            r#""priority":"1""#,
            r#""lastModified":1736694058"#,
            r#""lastModified":"yesterday""#,
            r#""lastModified":"2025-01-12""#,
            r#""lastModified":"2025-01-12T15:00:58""#,
            r#""lastModified":"2025-01-12 15:00:58Z""#,
            r#""lastModified":"2025-01-12T15:00Z""#,
            r#""lastModified":"2025-01-12T15:00:58+0000""#,
            r#""lastModified":"2025-02-30T15:00:58Z""#,
        ] {
            let both = with(kind, &format!(r#","annotations":{{{bad},"x":1}}"#));
            assert!(both.ends_with(r#","annotations":{"x":1}}"#), "{bad} {both}");
            let alone = with(kind, &format!(r#","annotations":{{{bad}}}"#));
            assert!(alone.ends_with(r#","annotations":{}}"#), "{bad} {alone}");
        }
        for bad in ["1.5", "-1", "2.0", "1e3", r#""12""#, "null"] {
            let shown = with(kind, &format!(r#","size":{bad},"x":1"#));
            assert!(
                shown.ends_with(r#","x":1}"#) && !shown.contains("size"),
                "{shown}"
            );
        }
    }
}

#[test]
fn cat_5_a_resource_whose_uri_is_none_is_left_out_and_told() {
    let bad = ["readme", "/a/b", " ", "db://table:users", "git://repo@v1:x"];
    let list: Vec<_> = ["note://1"]
        .iter()
        .chain(&bad)
        .chain(&["note:2"])
        .map(|uri| resource(uri))
        .collect();
    let catalog = build(
        &rules(&[("a", "wh")]),
        vec![("a", brings(ListKind::Resources, &list))],
        None,
    );
    let left = all(&catalog, &Scope::All, ListKind::Resources);
    assert_eq!(left, ["wh+note://1", "wh+note:2"]);
    let told: Vec<_> = catalog
        .reports()
        .iter()
        .map(|report| (&*report.name, report.reason.clone()))
        .collect();
    assert_eq!(told, bad.map(|uri| (uri, Reason::NotAUri)));
    assert_eq!(Reason::NotAUri.word(), "malformed");
    assert!(Reason::NotAUri.excludes());
}
