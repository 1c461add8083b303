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
            r#""lastModified":"2016-12-31T23:59:60Z""#,
        ] {
            let both = with(kind, &format!(r#","annotations":{{{bad},"x":1}}"#));
            assert!(both.ends_with(r#","annotations":{"x":1}}"#), "{bad} {both}");
            let alone = with(kind, &format!(r#","annotations":{{{bad}}}"#));
            assert!(alone.ends_with(r#","annotations":{}}"#), "{bad} {alone}");
        }
        for bad in ["1.5", "-1", "-0", "2.0", "1e3", r#""12""#, "null"] {
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

const TOOL: &str = r#""inputSchema":{"type":"object"}"#;

/// What is optional and cannot be what it is is no reason to leave out what it is said of.
#[test]
fn optional_members_of_a_form_that_strict_clients_do_not_take_are_left_out() {
    for (kind, head) in [
        (ListKind::Tools, format!(r#""name":"wh_a",{TOOL}"#)),
        (ListKind::Prompts, r#""name":"wh_a""#.to_owned()),
        (
            ListKind::Resources,
            r#""uri":"wh+n://a","name":"a""#.to_owned(),
        ),
        (
            ListKind::Templates,
            r#""uriTemplate":"wh+n://{a}","name":"a""#.to_owned(),
        ),
    ] {
        let own = head.replace("wh+", "").replace("wh_", "");
        let check = |bad: &str| {
            for revision in Revision::ALL {
                let given = [
                    format!(r#"{{{bad},{own},"x":[ ]}}"#),
                    format!(r#"{{{own},{bad},"x":[ ]}}"#),
                ];
                for given in given {
                    let told = shown(kind, &given, revision);
                    assert_eq!(told, format!(r#"{{{head},"x":[ ]}}"#), "{bad}");
                }
            }
        };
        for bad in [
            r#""description":7"#,
            r#""title":["a"]"#,
            r#""annotations":"none""#,
            r#""icons":{"src":"data:,a"}"#,
            r#""_meta":[]"#,
            r#""_meta":null"#,
        ] {
            check(bad);
        }
        let own: &[&str] = match kind {
            ListKind::Tools => &[
                r#""outputSchema":true"#,
                r#""outputSchema":"object""#,
                r#""execution":"none""#,
            ],
            ListKind::Prompts => &[r#""arguments":{"a":"string"}"#, r#""arguments":"a""#],
            ListKind::Resources | ListKind::Templates => &[r#""mimeType":["text/plain"]"#],
            ListKind::Skills => &[],
        };
        own.iter().for_each(|bad| check(bad));
    }
}

#[test]
fn hints_of_a_tool_that_cannot_be_ones_are_left_out() {
    let tool = |hints: &str| format!(r#"{{"name":"a",{TOOL},"annotations":{{{hints}}}}}"#);
    let told = |hints: &str, revision| {
        let told = shown(ListKind::Tools, &tool(hints), revision);
        told.replace("wh_a", "a")
    };
    let good = r#""title":"T","readOnlyHint":true , "openWorldHint":false,"x":null"#;
    let bad = [
        r#""title":null"#,
        r#""title":7"#,
        r#""readOnlyHint":null"#,
        r#""readOnlyHint":"true""#,
        r#""destructiveHint":0"#,
        r#""idempotentHint":null"#,
        r#""openWorldHint":[]"#,
    ];
    for revision in Revision::ALL {
        assert_eq!(told(good, revision), tool(good));
        for bad in bad {
            let left = told(&format!(r#""x":1,{bad},"y":[ ]"#), revision);
            assert_eq!(left, tool(r#""x":1,"y":[ ]"#), "{bad}");
            assert_eq!(told(bad, revision), tool(""), "{bad}");
        }
    }
    // It is known in this place alone.
    let titled = format!(r#"{{"name":"a","title":"T",{TOOL},"annotations":{{"title":null}}}}"#);
    let told = shown(ListKind::Tools, &titled, Revision::V2025_03_26);
    let annotations = r#""annotations":{"title":"T"}"#;
    assert!(told.contains(annotations), "{told}");
}

#[test]
fn what_is_said_of_a_prompts_argument_and_cannot_be_that_is_left_out() {
    let prompt = |arguments: &str| format!(r#"{{"name":"a","arguments":[{arguments}],"x":1}}"#);
    let told = |arguments: &str| {
        let told = shown(ListKind::Prompts, &prompt(arguments), MODERN);
        told.replace("wh_a", "a")
    };
    let good =
        r#"{"name":"a","title":"A","description":"","required":true , "x":null},{"name":"b"}"#;
    assert_eq!(told(good), prompt(good));
    for bad in [
        r#""description":null"#,
        r#""description":{}"#,
        r#""title":null"#,
        r#""title":7"#,
        r#""required":null"#,
        r#""required":"yes""#,
    ] {
        let given = format!(r#"{{{bad},"name":"a"}},{good},{{"name":"b",{bad}}}"#);
        let left = format!(r#"{{"name":"a"}},{good},{{"name":"b"}}"#);
        assert_eq!(told(&given), prompt(&left), "{bad}");
    }
    // Nothing can be called what has no name.
    let nameless = prompt(r#"{"description":"a"}"#);
    let catalog = build(
        &rules(&[("a", "wh")]),
        vec![("a", brings(ListKind::Prompts, &[nameless]))],
        None,
    );
    let reasons: Vec<_> = catalog.reports().iter().map(|it| &it.reason).collect();
    assert_eq!(reasons, [&Reason::WrongType("arguments")]);
}

#[test]
fn what_is_no_word_on_tasks_is_left_out() {
    let with = |execution: &str| {
        let definition = format!(r#"{{"name":"a",{TOOL},"execution":{execution}}}"#);
        let mut part = brings(ListKind::Tools, &[definition]);
        part.card = Some(ServerCard {
            revision: Revision::V2025_11_25,
            ..card(r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#)
        });
        let catalog = build(&rules(&[("a", "")]), vec![("a", part)], None);
        let told = first(
            &catalog,
            &Scope::All,
            ListKind::Tools,
            Revision::V2025_11_25,
        );
        let told = told.split(r#","execution":"#).nth(1).unwrap().to_owned();
        told.strip_suffix("}]").unwrap().to_owned()
    };
    for word in ["required", "optional", "forbidden"] {
        let good = format!(r#"{{ "taskSupport":"{word}","x":1}}"#);
        assert_eq!(with(&good), good);
    }
    for bad in [r#""maybe""#, "null", "true", "[]"] {
        let execution = format!(r#"{{"taskSupport":{bad},"x":1}}"#);
        assert_eq!(with(&execution), r#"{"x":1}"#, "{bad}");
    }
}

/// Clients on the TypeScript SDK 1 make a validator of each output schema that they are shown, and of no input schema.
#[test]
fn output_schemas_that_older_clients_cannot_make_a_validator_of_are_not_shown_to_them() {
    let schema = |pattern: &str| {
        format!(r#"{{"type":"object","properties":{{"a":{{"pattern":"{pattern}"}}}}}}"#)
    };
    for (pattern, is_common) in [
        (r"^[\\w.-]+$", true),
        // It is not checked here, and fine there.
        (r"^(?=a)", true),
        (r"^[\\w-.]+$", false),
        (r"^\\@", false),
        (r"(?i)^a", false),
    ] {
        let schema = schema(pattern);
        let definition =
            format!(r#"{{"name":"a","inputSchema":{schema},"outputSchema":{schema}}}"#);
        for revision in Revision::ALL {
            let told = shown(ListKind::Tools, &definition, revision);
            let features = revision.features();
            let shows = features.structured_output && (is_common || features.any_structured);
            let output = if shows {
                format!(r#","outputSchema":{schema}"#)
            } else {
                String::new()
            };
            let wanted = format!(r#"{{"name":"wh_a","inputSchema":{schema}{output}}}"#);
            assert_eq!(told, wanted, "{revision}");
        }
    }
}
