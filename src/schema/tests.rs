//! What fits, what does not, what is told of it, and what it may cost.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::json::{Json, Limits};

pub(super) fn json(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap()
}

pub(super) fn schema(text: &str) -> Schema {
    Schema::compile(json(text).root()).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

fn check(of: &str, value: &str) -> Verdict {
    schema(of).check(json(value).root(), STEPS, Names::All)
}

pub(super) fn told(of: &str, value: &str) -> Vec<String> {
    match check(of, value) {
        Verdict::Broken(told) => told
            .into_iter()
            .map(|problem| format!("{} {}", problem.path, problem.wanted))
            .collect(),
        other @ (Verdict::Fits | Verdict::Unjudged | Verdict::TooMuch) => {
            panic!("{of} {value}: {other:?}")
        }
    }
}

const ORDER: &str = r##"{"type":"object","required":["item","count"],"additionalProperties":false,"properties":{
    "item":{"type":"string","minLength":2,"maxLength":5,"pattern":"^[a-z]+$"},
    "count":{"type":"integer","minimum":1,"exclusiveMaximum":10},
    "size":{"enum":["s","m",{"cm":30}]},
    "tags":{"type":"array","items":{"$ref":"#/$defs/tag"},"uniqueItems":true,"maxItems":3},
    "to":{"anyOf":[{"type":"string"},{"type":"null"},{"type":"object","required":["zip"]}]}},
    "$defs":{"tag":{"type":"string","not":{"const":"none"}}}}"##;

#[test]
fn msg_12_what_is_told_names_the_place_and_what_is_wanted_and_never_the_value() {
    for (value, want) in [
        (
            r#"{"item":"secret","count":1}"#,
            "/item must have at most 5 characters",
        ),
        (
            r#"{"item":"S3CRE","count":1}"#,
            "/item must match `^[a-z]+$`",
        ),
        (
            r#"{"item":"tea","count":"secret"}"#,
            "/count must be an integer",
        ),
        (
            r#"{"item":"tea","count":10.0}"#,
            "/count must be less than 10",
        ),
        (r#"{"item":"tea","count":0}"#, "/count must be at least 1"),
        (r#"{"item":"tea"}"#, " must have `count`"),
        (
            r#"{"item":"tea","count":1,"size":"secret"}"#,
            r#"/size must be "s" or "m" or {"cm":30}"#,
        ),
        (
            r#"{"item":"tea","count":1,"tags":["a","secret",7]}"#,
            "/tags/2 must be a string",
        ),
        (
            r#"{"item":"tea","count":1,"tags":["none"]}"#,
            r#"/tags/0 must not be "none""#,
        ),
        (
            r#"{"item":"tea","count":1,"tags":["secret","secret"]}"#,
            "/tags must not have the same element twice",
        ),
        (
            r#"{"item":"tea","count":1,"to":7}"#,
            "/to must be a string or null or an object with `zip`",
        ),
        (
            r#"{"item":"tea","count":1,"to":{"a":"secret"}}"#,
            "/to must have `zip`",
        ),
        (
            r#"{"item":"tea","count":1,"note":"secret"}"#,
            "/note must not be there; known are `count`, `item`, `size`, `tags`, `to`",
        ),
    ] {
        let told = told(ORDER, value);
        assert_eq!(told, [want], "{value}");
        assert!(!told[0].contains("secret"));
    }
    assert_eq!(
        check(
            ORDER,
            r#"{"item":"tea","count":3.0,"to":null,"tags":["a","b"],"size":{"cm":3e1}}"#
        ),
        Verdict::Fits
    );
    let all = told(ORDER, r#"{"item":7,"a":1,"b":1,"c":1,"d":1,"e":1}"#);
    assert_eq!(all.len(), TOLD);
}

#[test]
fn numbers_are_judged_as_they_are_written() {
    let of = r#"{"type":"integer","maximum":9007199254740992}"#;
    assert_eq!(check(of, "9007199254740992.0"), Verdict::Fits);
    // A double takes it for the number before.
    assert!(matches!(check(of, "9007199254740993"), Verdict::Broken(_)));
    assert_eq!(check(r#"{"type":"integer"}"#, "1e300"), Verdict::Fits);
    assert!(matches!(
        check(r#"{"type":"integer"}"#, "1.00000000000000000000001"),
        Verdict::Broken(_)
    ));
    assert!(matches!(
        check(r#"{"const":0.1}"#, "0.1000000000000000055511151231257827"),
        Verdict::Broken(_)
    ));
    assert_eq!(check(r#"{"multipleOf":0.01}"#, "19.99"), Verdict::Fits);
    // Nothing can be said of it, so nothing is let through because of it.
    assert_eq!(
        check(r#"{"maximum":5}"#, "-1e99999999999"),
        Verdict::TooMuch
    );
}

#[test]
fn what_cannot_be_judged_is_neither_kept_nor_broken_wherever_it_stands() {
    let ahead = r#"{"type":"string","pattern":"^(?!\\.)[a-z.]+@[a-z]+$"}"#;
    assert_eq!(schema(ahead).gap(), Some(Gap::Pattern));
    assert_eq!(check(ahead, r#"".a@b""#), Verdict::Unjudged);
    assert_eq!(told(ahead, "7"), [" must be a string"]);
    for of in [
        format!(r#"{{"not":{ahead}}}"#),
        format!(r#"{{"oneOf":[{ahead},{{"type":"string"}}]}}"#),
        format!(r#"{{"if":{ahead},"then":false}}"#),
        format!(r#"{{"if":{ahead},"else":false}}"#),
        format!(r#"{{"contains":{ahead}}}"#),
        r#"{"patternProperties":{"(?=a)b":false},"additionalProperties":false}"#.to_owned(),
        r#"{"$schema":"https://example.com/mine","type":"boolean"}"#.to_owned(),
        r#"{"$ref":"http://json-schema.org/draft-07/schema#"}"#.to_owned(),
    ] {
        let value = match &of {
            of if of.contains("contains") => r#"["x"]"#,
            of if of.contains("Properties") => r#"{"x":1}"#,
            _ => r#""x""#,
        };
        assert_eq!(check(&of, value), Verdict::Unjudged, "{of}");
    }
}

#[test]
fn what_cannot_be_judged_may_have_looked_at_whatever_is_left() {
    let text = r#"{"pattern":"(?=x)x"}"#;
    let meta = "https://json-schema.org/draft/2020-12/schema";
    for (of, value) in [
        (
            format!(
                r#"{{"if":{{"properties":{{"a":{text}}}}},"then":{{"properties":{{"b":true}}}},"unevaluatedProperties":false}}"#
            ),
            r#"{"a":"x","b":1}"#,
        ),
        (
            format!(r#"{{"$ref":"{meta}","unevaluatedProperties":false}}"#),
            r#"{"type":"object"}"#,
        ),
        (
            format!(
                r#"{{"allOf":[{{"$ref":"{meta}"}}],"unevaluatedProperties":{{"type":"null"}}}}"#
            ),
            r#"{"type":"object","other":null}"#,
        ),
        (
            format!(
                r#"{{"if":{{"prefixItems":[{text}]}},"else":{{"items":true}},"unevaluatedItems":false}}"#
            ),
            r#"["x",1]"#,
        ),
        // One that may be broken has not looked at anything then.
        (
            format!(
                r#"{{"not":{{"anyOf":[true,{{"properties":{{"a":{text}}}}}],"unevaluatedProperties":false}}}}"#
            ),
            r#"{"a":"x"}"#,
        ),
        (
            format!(
                r#"{{"contains":{{"anyOf":[{text}]}},"minContains":0,"unevaluatedItems":false}}"#
            ),
            r#"["x"]"#,
        ),
    ] {
        assert_eq!(check(&of, value), Verdict::Unjudged, "{of}");
    }
    // What can be judged is.
    for (of, value, want) in [
        (
            format!(
                r#"{{"if":{text},"then":{{"properties":{{"b":true}}}},"unevaluatedProperties":false}}"#
            ),
            r#"{"a":1,"b":1}"#,
            "/a must not be there",
        ),
        (
            r#"{"type":["string","object"],"pattern":"(?=x)x","unevaluatedProperties":false}"#
                .to_owned(),
            r#"{"a":1}"#,
            "/a must not be there",
        ),
        (
            format!(
                r#"{{"$ref":"{meta}","properties":{{"type":{{"type":"null"}}}},"unevaluatedProperties":false}}"#
            ),
            r#"{"type":1,"a":1}"#,
            "/type must be null",
        ),
    ] {
        assert_eq!(told(&of, value), [want], "{of}");
    }
}

#[test]
fn cat_5_patterns_beyond_what_one_schema_may_take_are_not_judged() {
    let many: Vec<_> = (0..1_000)
        .map(|nth| format!(r#""p{nth}":{{"pattern":"^[a-z]{{300}}{nth}$"}}"#))
        .collect();
    let of = format!(r#"{{"properties":{{{}}}}}"#, many.join(","));
    assert_eq!(schema(&of).gap(), Some(Gap::Pattern));
    assert_eq!(
        told(&of, r#"{"p0":"A"}"#),
        ["/p0 must match `^[a-z]{300}0$`"]
    );
    assert_eq!(check(&of, r#"{"p999":"A"}"#), Verdict::Unjudged);
}

#[test]
fn a_short_pattern_that_runs_long_takes_steps_by_what_it_runs() {
    let text = json(&format!("\"{}\"", "ac".repeat(50_000)));
    for of in [
        r#"{"pattern":"[ab][a-z]{3000}x"}"#,
        r#"{"pattern":"[ab](?:[a-z]?){1000}[0-9]"}"#,
    ] {
        assert_eq!(
            schema(of).check(text.root(), STEPS, Names::All),
            Verdict::TooMuch,
            "{of}"
        );
    }
    let of = schema(r#"{"pattern":"^[a-z]+$"}"#);
    assert_eq!(of.check(text.root(), STEPS, Names::All), Verdict::Fits);
    // Names of members are texts as well.
    let names = json(&format!(r#"{{"{}":1}}"#, "ac".repeat(450)));
    let of = r#"{"patternProperties":{"[ab][a-z]{6000}x":true}}"#;
    assert_eq!(
        schema(of).check(names.root(), 100_000, Names::All),
        Verdict::TooMuch
    );
}

#[test]
fn references_are_followed_without_walking_along_the_whole_schema_for_each() {
    let many = 2_000;
    let all: Vec<_> = (0..many).map(|nth| format!(r#""s{nth}":{{}}"#)).collect();
    let refs: Vec<_> = (0..many)
        .map(|nth| format!(r##"{{"$ref":"#/$defs/s{nth}"}}"##))
        .collect();
    let of = format!(
        r#"{{"allOf":[{}],"$defs":{{{}}}}}"#,
        refs.join(","),
        all.join(",")
    );
    notes::take_kept();
    schema(&of);
    let kept = notes::take_kept();
    assert!(kept < 3 * of.len(), "{kept}");
    for (pointer, leads) in [
        ("/allOf/0", true),
        ("/allOf/00", false),
        ("/a~1b", true),
        ("/allOf/2", false),
    ] {
        let of = format!(r##"{{"allOf":[{{}},true],"a/b":{{}},"items":{{"$ref":"#{pointer}"}}}}"##);
        assert_eq!(
            Schema::compile(json(&of).root()).is_ok(),
            leads,
            "{pointer}"
        );
    }
}

#[test]
fn cat_5_a_schema_that_leads_nowhere_elsewhere_or_round_is_none() {
    for (of, want) in [
        (
            r##"{"$ref":"#/$defs/gone"}"##,
            "refers to `#/$defs/gone`, which is not in it",
        ),
        (
            r##"{"properties":{"a":{"$ref":"#nobody"}}}"##,
            "refers to `#nobody`, which is not in it",
        ),
        (
            r#"{"items":{"$ref":"https://example.com/x"}}"#,
            "refers to something outside itself",
        ),
        (r##"{"$ref":"#"}"##, "refers to itself without end"),
        (
            r##"{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}"##,
            "refers to itself without end",
        ),
    ] {
        let fault = Schema::compile(json(of).root())
            .err()
            .map(|fault| fault.to_string());
        assert_eq!(fault.as_deref(), Some(want), "{of}");
    }
    let tree = r##"{"properties":{"below":{"items":{"$ref":"#"}}},"required":["name"]}"##;
    assert_eq!(
        check(tree, r#"{"name":1,"below":[{"name":2,"below":[]}]}"#),
        Verdict::Fits
    );
    assert_eq!(
        told(tree, r#"{"name":1,"below":[{"name":2,"below":[{}]}]}"#),
        ["/below/0/below/0 must have `name`"]
    );
}

#[test]
fn cat_5_an_address_of_the_schema_itself_is_inside_it() {
    let seven = r#""$schema":"http://json-schema.org/draft-07/schema#""#;
    let four = r#""$schema":"http://json-schema.org/draft-04/schema#""#;
    // As TypeBox spells what refers to itself, once and twice.
    let tree = r#"{"$id":"T0","type":"object","required":["id"],"properties":{"id":{"type":"string"},"nodes":{"type":"array","items":{"$ref":"T0"}}}}"#;
    let in_tree = r#"{"t":{"id":"a","nodes":[{"id":"b","nodes":[{}]}]}}"#;
    for (of, value, place) in [
        (
            format!(r#"{{"properties":{{"t":{tree}}}}}"#),
            in_tree,
            "/t/nodes/0/nodes/0 must have `id`",
        ),
        (
            format!(r#"{{"$id":"https://e.com/s","properties":{{"u":{tree},"t":{tree}}}}}"#),
            in_tree,
            "/t/nodes/0/nodes/0 must have `id`",
        ),
        // An address that is taken for a name, although it would be relative to itself.
        (
            r#"{"properties":{"t":{"$id":"own/T0","type":"object","properties":{"t":{"$ref":"own/T0"}}}}}"#.to_owned(),
            r#"{"t":{"t":1}}"#,
            "/t/t must be an object",
        ),
        (
            r#"{"$id":"https://e.com/own.json","type":"object","properties":{"a":{"$ref":"https://e.com/own.json"}}}"#.to_owned(),
            r#"{"a":{"a":1}}"#,
            "/a/a must be an object",
        ),
        (
            r#"{"properties":{"a":{"$ref":"item.json"}},"$defs":{"i":{"$id":"item.json","type":"string"}}}"#.to_owned(),
            r#"{"a":1}"#,
            "/a must be a string",
        ),
        // Relative to the resource that it stands in, and with more behind it.
        (
            r##"{"$id":"https://e.com/a/","properties":{"a":{"$ref":"b/c#/$defs/x"}},"$defs":{"b":{"$id":"b/","$defs":{"c":{"$id":"../b/c","$defs":{"x":{"$ref":"/d#named"}}}}},"d":{"$id":"/d","$defs":{"n":{"$anchor":"named","type":"integer"}}}}}"##.to_owned(),
            r#"{"a":"x"}"#,
            "/a must be an integer",
        ),
        (
            format!(r#"{{{seven},"properties":{{"a":{{"$ref":"item"}}}},"definitions":{{"i":{{"$id":"item#","type":"string"}}}}}}"#),
            r#"{"a":1}"#,
            "/a must be a string",
        ),
        (
            format!(r#"{{{four},"id":"http://e.com/","properties":{{"a":{{"$ref":"item"}}}},"definitions":{{"i":{{"id":"http://e.com/item","type":"string"}}}}}}"#),
            r#"{"a":1}"#,
            "/a must be a string",
        ),
        // A property may be called as what holds data is.
        (
            r#"{"properties":{"default":{"$id":"T","type":"string"},"a":{"$ref":"T"}}}"#.to_owned(),
            r#"{"a":1}"#,
            "/a must be a string",
        ),
    ] {
        assert_eq!(told(&of, value), [place], "{of}");
    }
    for (remote, why) in [
        (r#"{"$id":"https://e.com/a","items":{"$ref":"https://e.com/b"}}"#.to_owned(), "another"),
        (r#"{"$id":"https://e.com/a/b","items":{"$ref":"//e.org/a/b"}}"#.to_owned(), "elsewhere"),
        (r#"{"items":{"$ref":"T"},"const":{"$id":"T"}}"#.to_owned(), "data"),
        (r#"{"items":{"$ref":"T"},"allOf":[{"$id":"T","type":"string"},{"$id":"T","type":"null"}]}"#.to_owned(), "two"),
        (format!(r##"{{{seven},"items":{{"$ref":"T"}},"allOf":[{{"$id":"T","$ref":"#"}}]}}"##), "hidden"),
        (format!(r#"{{{four},"items":{{"$ref":"T"}},"allOf":[{{"$id":"T"}}]}}"#), "no word of its dialect"),
    ] {
        let fault = Schema::compile(json(&remote).root()).err();
        assert_eq!(fault, Some(Faulty::Remote), "{why}");
    }
    let nowhere = r##"{"$id":"T","items":{"$ref":"T#/$defs/x"}}"##;
    assert_eq!(
        Schema::compile(json(nowhere).root())
            .err()
            .map(|fault| fault.to_string()),
        Some("refers to `T#/$defs/x`, which is not in it".to_owned())
    );
}

#[test]
fn dialects_differ_as_they_say() {
    let items = r#""items":[{"type":"string"}],"additionalItems":false"#;
    let seven = format!(r#"{{"$schema":"http://json-schema.org/draft-07/schema#",{items}}}"#);
    assert!(matches!(check(&seven, r#"["a",1]"#), Verdict::Broken(_)));
    assert_eq!(
        check(
            r#"{"prefixItems":[{"type":"string"}],"items":false}"#,
            r#"["a"]"#
        ),
        Verdict::Fits
    );
    let beside = r##""$ref":"#/definitions/a","type":"string","definitions":{"a":{}}"##;
    let seven = format!(r#"{{"$schema":"http://json-schema.org/draft-07/schema#",{beside}}}"#);
    assert_eq!(check(&seven, "1"), Verdict::Fits);
    assert!(matches!(
        check(&format!("{{{beside}}}"), "1"),
        Verdict::Broken(_)
    ));
}

#[test]
fn a_check_ends_whatever_the_schema_and_the_value() {
    // Each level doubles the work: without an end it would take 2^64 steps.
    let doubling = r##"{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},{"properties":{"a":{"$ref":"#"}},"required":["y"]}]}"##;
    let deep = format!("{}1{}", r#"{"a":"#.repeat(60), "}".repeat(60));
    let chain: Vec<_> = (0..300)
        .map(|at| {
            format!(
                r##""s{at}":{{"allOf":[{{"$ref":"#/$defs/s{0}"}},{{"$ref":"#/$defs/s{0}"}}]}}"##,
                at + 1
            )
        })
        .collect();
    let wide = format!(
        r##"{{"$ref":"#/$defs/s0","$defs":{{{},"s300":{{}}}}}}"##,
        chain.join(",")
    );
    let pattern = r#"{"items":{"pattern":"^(a+)+(b|a)*$"}}"#;
    let text = format!(
        "[{}]",
        vec![format!("\"{}!\"", "a".repeat(5_000)); 1_000].join(",")
    );
    for (of, value) in [(doubling, deep.as_str()), (&wide, "1"), (pattern, &text)] {
        let of = schema(of);
        let value = json(value);
        let verdict = of.check(value.root(), STEPS, Names::All);
        assert!(
            matches!(verdict, Verdict::TooMuch | Verdict::Broken(_)),
            "{verdict:?}"
        );
    }
    assert!(
        !schema(&wide).conforms(json("1").root(), STEPS),
        "what cannot be judged in time does not conform"
    );
    // The same with too few steps for a value that fits.
    let fits = json(r#"[1,2,3,4,5,6,7,8,9]"#);
    let ints = schema(r#"{"items":{"type":"integer"}}"#);
    assert_eq!(ints.check(fits.root(), 19, Names::All), Verdict::Fits);
    assert_eq!(ints.check(fits.root(), 18, Names::All), Verdict::TooMuch);
    assert_eq!(ints.check(fits.root(), 20, Names::All), Verdict::Fits);
    assert!(ints.conforms(fits.root(), 19) && !ints.conforms(fits.root(), 18));
    // A time stands for so many of them.
    for (millis, steps) in [(1, 25_000), (20, STEPS), (1_000, 25_000_000)] {
        assert_eq!(steps_in(Duration::from_millis(millis)), steps);
    }
}

/// References to references, each of a level to all of the next by `allOf`: 8,000 looks at the same value.
fn cubed(word: &str) -> Schema {
    let all = |to: &str| vec![format!(r##"{{"$ref":"#/$defs/{to}"}}"##); 20].join(",");
    schema(&format!(
        r##"{{"allOf":[{}],"{word}":{{"type":"integer"}},"$defs":{{"a":{{"allOf":[{}]}},"b":{{"allOf":[{}]}},"c":{{}}}}}}"##,
        all("a"),
        all("b"),
        all("c"),
    ))
}

#[test]
fn what_keeps_what_was_looked_at_takes_steps_too() {
    let zeros = json(&format!("[{}]", vec!["0"; 190_000].join(",")));
    let names: Vec<String> = (0..20_000).map(|nth| format!("\"{nth}\":0")).collect();
    let names = json(&format!("{{{}}}", names.join(",")));
    for (word, value) in [
        ("unevaluatedItems", &zeros),
        ("unevaluatedProperties", &names),
    ] {
        notes::take_kept();
        assert_eq!(
            cubed(word).check(value.root(), STEPS, Names::All),
            Verdict::TooMuch,
            "{word}"
        );
        let kept = notes::take_kept();
        assert!(kept <= 256 * STEPS as usize, "{word}: {kept}");
    }
    // What is about members keeps nothing of elements.
    let of = cubed("unevaluatedProperties");
    notes::take_kept();
    assert_eq!(of.check(zeros.root(), STEPS, Names::All), Verdict::Fits);
    assert_eq!(notes::take_kept(), 0);
}

#[test]
fn white_space_takes_steps_too() {
    let blank = " ".repeat(4 << 10);
    let array = json(&format!("[1,{blank}2]"));
    let object = json(&format!(r#"{{"a":{blank}1}}"#));
    for (of, value) in [
        (r#"{"minItems":2}"#, &array),
        (r#"{"contains":{"type":"null"},"minContains":0}"#, &array),
        (r#"{"unevaluatedItems":{"type":"integer"}}"#, &array),
        (r#"{"properties":{"b":true}}"#, &object),
        (r#"{"unevaluatedProperties":{"type":"integer"}}"#, &object),
    ] {
        let of = schema(of);
        assert_eq!(of.check(value.root(), STEPS, Names::All), Verdict::Fits);
        assert_eq!(of.check(value.root(), 12, Names::All), Verdict::TooMuch);
    }
}

fn values() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|it| it.to_string()),
        (-20_i32..20).prop_map(|it| it.to_string()),
        (-40_i32..40).prop_map(|it| format!("{:.1}", f64::from(it) / 4.0)),
        "[a-c]{0,4}".prop_map(|it| format!("\"{it}\"")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|all| format!("[{}]", all.join(","))),
            proptest::collection::btree_map("[a-c]{1,2}", inner, 0..4).prop_map(|all| {
                let all: Vec<_> = all
                    .iter()
                    .map(|(key, value)| format!("\"{key}\":{value}"))
                    .collect();
                format!("{{{}}}", all.join(","))
            }),
        ]
    })
}

fn schemas() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec![
        "string", "integer", "number", "boolean", "array", "object", "null",
    ]);
    let leaf = prop_oneof![
        Just("true".to_owned()),
        Just("false".to_owned()),
        kinds.prop_map(|kind| format!(r#"{{"type":"{kind}"}}"#)),
        values().prop_map(|value| format!(r#"{{"const":{value}}}"#)),
        (-9_i32..9).prop_map(|bound| format!(r#"{{"minimum":{bound},"multipleOf":0.5}}"#)),
        (0_u32..4).prop_map(|bound| format!(
            r#"{{"maxLength":{bound},"minItems":{bound},"maxProperties":{bound}}}"#
        )),
        "[abc]\\*".prop_map(|pattern| format!(r#"{{"pattern":"^{pattern}$","uniqueItems":true}}"#)),
        Just(r##"{"$ref":"#/$defs/d"}"##.to_owned()),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let list = proptest::collection::vec(inner.clone(), 1..4).prop_map(|all| format!("[{}]", all.join(",")));
        let map = proptest::collection::btree_map("[a-c]{1,2}", inner.clone(), 0..4).prop_map(|all| {
            let all: Vec<_> = all.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            format!("{{{}}}", all.join(","))
        });
        prop_oneof![
            list.clone().prop_map(|all| format!(r#"{{"allOf":{all}}}"#)),
            list.clone().prop_map(|all| format!(r#"{{"anyOf":{all},"unevaluatedProperties":false}}"#)),
            list.clone().prop_map(|all| format!(r#"{{"oneOf":{all}}}"#)),
            (list, inner.clone()).prop_map(|(all, rest)| format!(r#"{{"prefixItems":{all},"items":{rest},"contains":{rest}}}"#)),
            (map.clone(), inner.clone()).prop_map(|(all, rest)| format!(r#"{{"properties":{all},"additionalProperties":{rest},"required":["a"]}}"#)),
            (map, inner.clone()).prop_map(|(all, rest)| format!(r#"{{"patternProperties":{all},"unevaluatedProperties":{rest},"propertyNames":{{"maxLength":1}}}}"#)),
            (inner.clone(), inner.clone(), inner).prop_map(|(one, two, three)| format!(r#"{{"if":{one},"then":{two},"else":{{"not":{three}}}}}"#)),
        ]
    })
}

/// Numbers as JSON spells them, with exponents that no machine word holds.
fn numbers() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,20})([.][0-9]{1,20})?([eE][+-]?([0-9]{1,3}|922337203685477580[78]|[0-9]{20}))?"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Another validator, which knows the keywords from elsewhere, says the same.
    #[test]
    #[expect(clippy::disallowed_types, reason = "the other validator reads trees")]
    fn another_validator_agrees(of in schemas(), value in values()) {
        let of = format!(r#"{{"allOf":[{of}],"$defs":{{"d":{{"type":["string","integer"]}}}}}}"#);
        let other = jsonschema::validator_for(&serde_json::from_str::<serde_json::Value>(&of).unwrap()).unwrap();
        let wants = other.is_valid(&serde_json::from_str::<serde_json::Value>(&value).unwrap());
        let ours = check(&of, &value);
        prop_assert_eq!(matches!(ours, Verdict::Fits), wants, "{} {} {:?}", of, value, ours);
    }

    /// However a number is spelled, in the value or in the schema, judging it ends without a panic, and it equals itself.
    #[test]
    fn any_spelling_of_a_number_is_judged(value in numbers(), bound in numbers()) {
        for of in [
            r#"{"type":"integer"}"#.to_owned(),
            format!(r#"{{"minimum":{bound},"exclusiveMaximum":{bound}}}"#),
            format!(r#"{{"multipleOf":{bound}}}"#),
            format!(r#"{{"minLength":{bound},"maxItems":{bound}}}"#),
            format!(r#"{{"uniqueItems":true,"items":{{"enum":[{bound},0]}}}}"#),
        ] {
            let array = format!("[{value},{bound}]");
            for value in [&value, &array] {
                check(&of, value);
            }
        }
        let known = check(&format!(r#"{{"const":{value}}}"#), &value);
        prop_assert_eq!(known, Verdict::Fits);
    }

    /// What is told is about places that are there, or one step below: repairing by it can be done.
    #[test]
    fn whatever_is_broken_is_told_with_at_least_one_place(of in schemas(), value in values()) {
        let of = format!(r#"{{"allOf":[{of}],"$defs":{{"d":{{}}}}}}"#);
        if let Verdict::Broken(told) = check(&of, &value) {
            prop_assert!((1..=TOLD).contains(&told.len()));
            prop_assert!(told.iter().all(|problem| problem.wanted.starts_with("must ")));
        }
    }
}
