//! What becomes of single definitions: bounds, edits, conversion.

use super::{
    super::{Hints, Reason, Route, SchemaFault},
    *,
};
use crate::protocol::mirror::BadAnnotation;

/// Builds with one upstream that brings these tools, and gives the names that are left and the reasons for the others.
fn offered(bounds: CatalogBounds, definitions: &[String]) -> (Vec<String>, Vec<Reason>) {
    let mut rules = rules(&[("a", "")]);
    rules.bounds = bounds;
    let catalog = build(
        &rules,
        vec![("a", brings(ListKind::Tools, definitions))],
        None,
    );
    let reasons = catalog
        .reports()
        .iter()
        .map(|report| report.reason.clone())
        .collect();
    (all(&catalog, &Scope::All, ListKind::Tools), reasons)
}

fn with_schema(name: &str, members: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"{members}}}}}"#)
}

#[test]
fn cat_2_a_name_is_its_first_definitions_broken_or_not() {
    let good = with_schema("t", "");
    let other = with_schema("t", r#","title":"another""#);
    let broken = r#"{"name":"t","inputSchema":[]}"#.to_owned();
    let wrong = Reason::WrongType("inputSchema");
    let bounds = CatalogBounds::default;
    for (definitions, names, reasons) in [
        ([&good, &good], &["t"][..], [Reason::Repeated].to_vec()),
        ([&good, &other], &["t"], [Reason::Repeated].to_vec()),
        ([&good, &broken], &["t"], [wrong.clone()].to_vec()),
        ([&broken, &good], &[], [wrong, Reason::Repeated].to_vec()),
    ] {
        let offered = offered(bounds(), &definitions.map(String::clone));
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(offered, (names, reasons), "{definitions:?}");
    }
}

#[test]
fn cat_5_a_bad_definition_is_left_out_and_the_others_stay() {
    let bad = [
        (
            with_schema(
                "t",
                r#","properties":{"a":{"type":"number","x-mcp-header":"A"}}"#,
            ),
            Reason::Header(BadAnnotation::WrongType("A".into())),
        ),
        (
            with_schema("t", r#","$ref":"https://example.com/s""#),
            Reason::Schema(SchemaFault::RemoteRef),
        ),
        (
            with_schema("t", r#","properties":{"a":{"type":7}}"#),
            Reason::Schema(SchemaFault::NotASchema(
                "`/properties/a/type` 7 is not valid under any of the schemas listed in the 'anyOf' keyword".into(),
            )),
        ),
        (
            r#"{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"$ref":"x"}}"#.into(),
            Reason::Schema(SchemaFault::RemoteRef),
        ),
        (r#"{"name":"t"}"#.into(), Reason::Missing("inputSchema")),
        (
            r#"{"name":"t","inputSchema":{}}"#.into(),
            Reason::WrongType("inputSchema"),
        ),
        (
            r#"{"name":"t","inputSchema":true}"#.into(),
            Reason::WrongType("inputSchema"),
        ),
        (
            // Of a dialect that says nothing against it.
            with_schema("t", r#","$schema":"https://example.com/mine","required":"a""#),
            Reason::WrongType("inputSchema"),
        ),
        (
            with_schema("t", r#","$schema":"https://example.com/mine","properties":{"a":7}"#),
            Reason::WrongType("inputSchema"),
        ),
        (
            r#"{"inputSchema":{"type":"object"}}"#.into(),
            Reason::Missing("name"),
        ),
        (
            r#"{"name":"","inputSchema":{"type":"object"}}"#.into(),
            Reason::Missing("name"),
        ),
        (
            r#"{"name":7,"inputSchema":{"type":"object"}}"#.into(),
            Reason::Missing("name"),
        ),
        ("[]".into(), Reason::NotAnObject),
    ];
    for (definition, reason) in bad {
        let (left, reasons) = offered(
            CatalogBounds::default(),
            &[tool("before"), definition.clone(), tool("after")],
        );
        assert_eq!(left, ["before", "after"], "{definition}");
        assert_eq!(reasons, [reason], "{definition}");
    }
}

#[test]
fn cat_5_definitions_and_descriptions_are_bounded_to_the_byte() {
    let described = |length: usize| {
        format!(
            r#"{{"name":"t","description":"{}","inputSchema":{{"type":"object"}}}}"#,
            "x".repeat(length)
        )
    };
    let bounds = CatalogBounds {
        description_bytes: 10,
        ..CatalogBounds::default()
    };
    assert_eq!(offered(bounds, &[described(9)]).0, ["t"]);
    assert_eq!(offered(bounds, &[described(10)]).0, ["t"]);
    assert_eq!(
        offered(bounds, &[described(11)]).1,
        [Reason::DescriptionTooLong(10)]
    );
    let size = described(10).len();
    let bounds = |definition_bytes| CatalogBounds {
        definition_bytes,
        ..CatalogBounds::default()
    };
    assert_eq!(offered(bounds(size + 1), &[described(10)]).0, ["t"]);
    assert_eq!(offered(bounds(size), &[described(10)]).0, ["t"]);
    assert_eq!(
        offered(bounds(size - 1), &[described(10)]).1,
        [Reason::TooLarge(size - 1)]
    );
}

#[test]
fn cat_6_the_tail_of_an_oversized_list_is_left_out_and_reported_in_bounded_number() {
    let names: Vec<_> = (0..500).map(|n| tool(&format!("t{n}"))).collect();
    let bounds = |items| CatalogBounds {
        items,
        ..CatalogBounds::default()
    };
    assert_eq!(offered(bounds(501), &names).0.len(), 500);
    assert_eq!(offered(bounds(500), &names).0.len(), 500);
    let (left, reasons) = offered(bounds(499), &names);
    assert_eq!(
        (left.len(), &reasons[..]),
        (499, &[Reason::TooMany(499)][..])
    );
    let (left, reasons) = offered(bounds(10), &names);
    assert_eq!(left.len(), 10);
    assert_eq!(reasons.len(), 101);
    assert_eq!(reasons[100], Reason::More(390));
}

#[test]
fn cat_6_all_definitions_together_are_bounded() {
    let size = tool("t0").len();
    let list: Vec<_> = (0..4).map(|n| tool(&format!("t{n}"))).collect();
    let left = |total_bytes| {
        offered(
            CatalogBounds {
                total_bytes,
                ..CatalogBounds::default()
            },
            &list,
        )
    };
    assert_eq!(left(4 * size + 1).0.len(), 4);
    assert_eq!(left(4 * size).0.len(), 4);
    let (names, reasons) = left(4 * size - 1);
    assert_eq!(names, ["t0", "t1", "t2"]);
    assert_eq!(reasons, [Reason::TotalTooLarge(4 * size - 1)]);
}

#[test]
fn cat_6_where_all_do_not_fit_each_upstream_has_its_share_and_what_others_leave() {
    let size = tool("t0").len();
    let mut rules = rules(&[("a", "a"), ("b", "b"), ("c", "c")]);
    rules.bounds.total_bytes = 9 * size;
    let list = |count: usize| {
        let tools: Vec<_> = (0..count).map(|n| tool(&format!("t{n}"))).collect();
        brings(ListKind::Tools, &tools)
    };
    for (brought, left) in [
        ([3, 3, 3], [3, 3, 3]),
        // Whoever grows, and wherever it stands.
        ([9, 3, 3], [3, 3, 3]),
        ([3, 3, 9], [3, 3, 3]),
        ([9, 1, 3], [5, 1, 3]),
        ([9, 9, 1], [4, 4, 1]),
        ([0, 9, 0], [0, 9, 0]),
    ] {
        let [a, b, c] = brought.map(list);
        let catalog = build(&rules, vec![("a", a), ("b", b), ("c", c)], None);
        let names = all(&catalog, &Scope::All, ListKind::Tools);
        let of = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
        assert_eq!(["a_", "b_", "c_"].map(of), left, "{brought:?}");
    }
}

#[test]
fn cat_6_a_list_that_was_cut_short_says_so_and_may_not_be_kept() {
    let mut cut = tools(&["a"]);
    cut.tools.truncated = true;
    let brought = vec![("a", cut), ("b", tools(&["b"]))];
    let catalog = build(&rules(&[("a", "a"), ("b", "b")]), brought, None);
    assert_eq!(catalog.reports()[0].reason, Reason::CutShort);
    let whole = |kind| {
        let (start, now) = (Position::start(), Instant::now());
        catalog.hints(&Scope::All, kind, &start, now).unwrap()
    };
    assert_eq!(whole(ListKind::Tools).ttl_millis, 0);
    // Who sees nothing of that upstream is told nothing of it, either.
    let seen = |upstream: &str, kind| {
        let sees = |_, route: &Route, _: &str| route.upstream.as_str() == upstream;
        let view = catalog.view(&Scope::All, sees, &[]).unwrap();
        catalog.seen_hints(&view, kind, Instant::now())
    };
    let named = |hints: Hints| hints.partial.map(|names| names.to_vec());
    assert_eq!(named(whole(ListKind::Tools)), Some(vec!["a".to_owned()]));
    assert_eq!(named(whole(ListKind::Prompts)), None);
    assert_eq!(
        named(seen("a", ListKind::Tools)),
        Some(vec!["a".to_owned()])
    );
    assert_eq!(named(seen("a", ListKind::Prompts)), None);
    assert_eq!(named(seen("b", ListKind::Tools)), None);
}

/// At whichever bound.
#[test]
fn a_list_that_the_catalog_cut_is_not_whole_and_may_not_be_kept() {
    let size = tool("t0").len();
    let list: Vec<_> = (0..4).map(|n| tool(&format!("t{n}"))).collect();
    let hints = |items, total_bytes| {
        let mut rules = rules(&[("a", "a"), ("b", "b")]);
        rules.bounds.items = items;
        rules.bounds.total_bytes = total_bytes;
        let brought = vec![("a", brings(ListKind::Tools, &list)), ("b", tools(&["t"]))];
        let catalog = build(&rules, brought, None);
        [ListKind::Tools, ListKind::Prompts].map(|kind| {
            let hints = catalog.hints(&Scope::All, kind, &Position::start(), Instant::now());
            let hints = hints.unwrap();
            let partial = hints.partial.map(|names| names.to_vec());
            (partial, hints.ttl_millis > 0)
        })
    };
    let whole = [(None, true), (None, true)];
    let cut = [(Some(vec!["a".to_owned()]), false), (None, true)];
    assert_eq!(hints(4, 9 * size), whole);
    assert_eq!(hints(3, 9 * size), cut);
    assert_eq!(hints(4, 4 * size), cut);
}

#[test]
fn unknown_members_order_and_spellings_survive_byte_for_byte() {
    let definition = r#"{ "z" : 1.50e+3 , "name" : "q\u0031" , "inputSchema" : {"type":"object", "x":"\u00e9/\/"} , "_meta" : {"b":[ ] } }"#;
    let want = definition.replace(r#""q\u0031""#, r#""wh_q1""#);
    for revision in Revision::ALL {
        assert_eq!(shown(ListKind::Tools, definition, revision), want);
    }
    let catalog = build(
        &rules(&[("a", "wh")]),
        vec![("a", brings(ListKind::Tools, &[definition.into()]))],
        None,
    );
    let own = first(&catalog, &Scope::Upstream(id("a")), ListKind::Tools, MODERN);
    assert_eq!(own, format!("[{definition}]"));
}

#[test]
fn uris_in_definitions_are_put_into_the_namespace() {
    let with_app = r#"{"name":"t","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://app/x","visibility":["app"]},"ui/resourceUri":"ui://app/x","dev.usher/stale":true}}"#;
    assert_eq!(
        shown(ListKind::Tools, with_app, MODERN),
        r#"{"name":"wh_t","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://wh/app/x","visibility":["app"]},"ui/resourceUri":"ui://wh/app/x"}}"#
    );
    assert_eq!(
        shown(ListKind::Resources, &resource("note://1"), MODERN),
        r#"{"uri":"wh+note://1","name":"r"}"#
    );
    assert_eq!(
        shown(ListKind::Resources, &resource("https://e/x"), MODERN),
        r#"{"uri":"https://e/x","name":"r"}"#
    );
    assert_eq!(
        shown(ListKind::Templates, &template("n://{a}{?b}"), MODERN),
        r#"{"uriTemplate":"wh+n://{a}{?b}","name":"t"}"#
    );
}

/// PROTOCOL A7, SECURITY EGR-8
#[test]
fn reserved_keys_of_definitions_do_not_cross_and_those_of_extensions_do() {
    let with = |meta: &str| {
        format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},"_meta":{{{meta}}},"x":1.0}}"#)
    };
    let kept =
        r#""io.modelcontextprotocol.skills/a":1,"com.example/b":[ ],"ui":{"visibility":["app"]}"#;
    let reserved = r#""io.modelcontextprotocol/zzz":{},"dev.mcp/x":1,"progressToken":2"#;
    for revision in Revision::ALL {
        let want = with(kept).replace(r#""t""#, r#""wh_t""#);
        let both = with(&format!("{reserved},{kept}"));
        assert_eq!(shown(ListKind::Tools, &both, revision), want);
        assert_eq!(shown(ListKind::Tools, &with(kept), revision), want);
    }
    let prompt = r#"{"name":"p","_meta":{"io.modelcontextprotocol/zzz":1,"v":1}}"#;
    assert_eq!(
        shown(ListKind::Prompts, prompt, MODERN),
        r#"{"name":"wh_p","_meta":{"v":1}}"#
    );
}

#[test]
fn templates_that_cannot_carry_a_prefix_are_left_out() {
    let list = [
        template("{scheme}://x"),
        template("x://{a"),
        template("x://{a}"),
    ];
    let catalog = build(
        &rules(&[("a", "wh")]),
        vec![("a", brings(ListKind::Templates, &list))],
        None,
    );
    assert_eq!(
        all(&catalog, &Scope::All, ListKind::Templates),
        ["wh+x://{a}"]
    );
    let reasons: Vec<_> = catalog
        .reports()
        .iter()
        .map(|report| report.reason.clone())
        .collect();
    assert_eq!(reasons, [Reason::OpenTemplate, Reason::BadTemplate]);
}

#[test]
fn icons_that_carry_their_bytes_stay_and_others_go() {
    let with = |icons: &str| {
        shown(
            ListKind::Prompts,
            &format!(r#"{{"name":"p","icons":{icons},"x":1}}"#),
            MODERN,
        )
    };
    assert_eq!(
        with(r#"[{"src":"https://x/i.png"}]"#),
        r#"{"name":"wh_p","x":1}"#
    );
    assert_eq!(
        with(r#"[{"src":"data:image/png;base64,AA=="}]"#),
        r#"{"name":"wh_p","icons":[{"src":"data:image/png;base64,AA=="}],"x":1}"#
    );
    assert_eq!(
        with(r#"[{"src":"https://x"}, {"src":"DATA:,a"}]"#),
        r#"{"name":"wh_p","icons":[{"src":"DATA:,a"}],"x":1}"#
    );
    // One that strict clients do not take would cost them the list.
    let whole = r#"[{"src":"data:,a","sizes":["48x48"],"theme":"dark","mimeType":"image/png"}]"#;
    let kept = format!(r#"{{"name":"wh_p","icons":{whole},"x":1}}"#);
    assert_eq!(with(whole), kept);
    for wrong in [
        r#""sizes":"48x48""#,
        r#""sizes":[48]"#,
        r#""theme":"blue""#,
        r#""theme":1"#,
        r#""mimeType":[]"#,
    ] {
        let icons = format!(r#"[{{"src":"data:,a",{wrong}}}]"#);
        assert_eq!(with(&icons), r#"{"name":"wh_p","x":1}"#, "{wrong}");
    }
}

/// PROTOCOL D6: the schema of a property is an object before 2026-07-28.
#[test]
fn properties_that_may_be_anything_are_said_as_each_revision_has_it() {
    let tool = |any: &str, none: &str| {
        let properties = format!(
            r#"{{"type":"object","properties":{{"a":{any},"b":{none},"c":{{"x":true}}}}}}"#
        );
        format!(r#"{{"name":"t","inputSchema":{properties},"outputSchema":{properties}}}"#)
    };
    let definition = tool("true", "false");
    for revision in Revision::ALL {
        let told = shown(ListKind::Tools, &definition, revision);
        let wanted = if revision == MODERN {
            tool("true", "false")
        } else {
            tool("{}", r#"{"not":{}}"#)
        };
        let wanted = wanted.replace(r#""t""#, r#""wh_t""#);
        let input = wanted.split(r#","outputSchema""#).next().unwrap();
        assert!(told.starts_with(input), "{revision}: {told}");
        assert!(
            told.len() == input.len() + 1 || told == wanted,
            "{revision}: {told}"
        );
    }
}

#[test]
fn null_where_a_member_is_optional_is_left_out() {
    let nulls =
        r#"{"name":"t","title":null,"inputSchema":{"type":"object"},"annotations":null,"x":null}"#;
    assert_eq!(
        shown(ListKind::Tools, nulls, MODERN),
        r#"{"name":"wh_t","inputSchema":{"type":"object"},"x":null}"#
    );
}

#[test]
fn what_a_tool_says_of_tasks_is_kept_where_client_and_server_have_core_tasks() {
    let execution = r#","execution":{"taskSupport":"required"}"#;
    let core = r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#;
    for (server, capabilities, client, stays) in [
        (Revision::V2025_11_25, core, Revision::V2025_11_25, true),
        (Revision::V2025_11_25, core, Revision::V2025_06_18, false),
        (Revision::V2025_11_25, core, MODERN, false),
        (
            Revision::V2025_11_25,
            r#"{"tools":{}}"#,
            Revision::V2025_11_25,
            false,
        ),
        (MODERN, core, Revision::V2025_11_25, false),
    ] {
        let definition = format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{execution}}}"#);
        let mut part = brings(ListKind::Tools, &[definition]);
        part.card = Some(ServerCard {
            revision: server,
            ..card(capabilities)
        });
        let catalog = build(&rules(&[("a", "wh")]), vec![("a", part)], None);
        let text = first(&catalog, &Scope::All, ListKind::Tools, client);
        assert_eq!(text.contains(execution), stays, "{server} {client} {text}");
        assert!(catalog.tool(&Scope::All, "wh_t").unwrap().task_only);
    }
}

#[test]
fn tools_are_converted_to_what_each_revision_knows() {
    let tool = |tail: &str| format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{tail}}}"#);
    let output = r#","outputSchema":{"type":"object"}"#;
    let array = r#","outputSchema":{"type":"array"}"#;
    // For each revision, oldest first: whether the member stays.
    for (member, stays) in [
        (output, [false, false, true, true, true]),
        (array, [false, false, false, false, true]),
    ] {
        for (revision, stays) in Revision::ALL.into_iter().zip(stays) {
            let want = tool(if stays { member } else { "" }).replace(r#""t""#, r#""wh_t""#);
            assert_eq!(
                shown(ListKind::Tools, &tool(member), revision),
                want,
                "{revision}"
            );
        }
    }
    let titled = shown(
        ListKind::Tools,
        &tool(r#","title":"T""#),
        Revision::V2025_03_26,
    );
    assert!(
        titled.ends_with(r#""title":"T","annotations":{"title":"T"}}"#),
        "{titled}"
    );
    let kept = shown(
        ListKind::Tools,
        &tool(r#","title":"T","annotations":{"title":"U"}"#),
        Revision::V2025_03_26,
    );
    assert!(kept.ends_with(r#""annotations":{"title":"U"}}"#), "{kept}");
    let joined = shown(
        ListKind::Tools,
        &tool(r#","title":"T","annotations":{"readOnlyHint":true}"#),
        Revision::V2025_03_26,
    );
    assert!(
        joined.ends_with(r#""annotations":{"readOnlyHint":true,"title":"T"}}"#),
        "{joined}"
    );
}

#[test]
fn items_of_an_upstream_that_is_away_are_marked_stale() {
    let list = [
        tool("a"),
        r#"{"name":"b","inputSchema":{"type":"object"},"_meta":{"k":1}}"#.to_owned(),
    ];
    let mut away = brings(ListKind::Tools, &list);
    away.away = true;
    let catalog = build(&rules(&[("a", "a")]), vec![("a", away)], None);
    let page = first(&catalog, &Scope::All, ListKind::Tools, MODERN);
    assert!(
        page.contains(r#""_meta":{"dev.usher/stale":true}"#),
        "{page}"
    );
    assert!(
        page.contains(r#""_meta":{"k":1,"dev.usher/stale":true}"#),
        "{page}"
    );
    let fresh = build(
        &rules(&[("a", "a")]),
        vec![("a", brings(ListKind::Tools, &list))],
        Some(&catalog),
    );
    assert!(!first(&fresh, &Scope::All, ListKind::Tools, MODERN).contains("stale"));
}
