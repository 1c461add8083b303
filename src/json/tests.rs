//! What the JSON floor promises: strictness, positions, edits that keep every other byte.
#![expect(
    clippy::disallowed_types,
    reason = "a foreign reader is the judge here"
)]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, value::RawValue};

use super::*;

fn json(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::CLIENT).unwrap()
}

fn refused(text: impl AsRef<[u8]>) -> ScanError {
    scan(text.as_ref(), &Limits::CLIENT).unwrap_err()
}

#[test]
fn a_detached_value_keeps_nothing_of_the_buffer_it_was_cut_from() {
    let whole = json(r#"{"a":{"b":[1,"x"]},"c":0}"#);
    let part = whole.slice(whole.root().member("a").unwrap());
    assert!(
        whole
            .bytes()
            .as_ptr_range()
            .contains(&part.bytes().as_ptr())
    );
    let own = part.detached();
    assert_eq!(own.as_str(), part.as_str());
    assert_eq!(own.root().member("b").unwrap().raw(), r#"[1,"x"]"#);
    assert!(!whole.bytes().as_ptr_range().contains(&own.bytes().as_ptr()));
}

#[test]
fn what_is_not_strict_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'a'",
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e",
        "NaN",
        "Infinity",
        "tru",
        "nullx",
        "[1 2]",
        "{\"a\" 1}",
        "{\"a\":}",
        "\"\t\"",
        "\"\\x\"",
        "\"\\u12\"",
        "1 2",
        "[]]",
        "/*c*/1",
        "\u{feff}1",
        "\"abc",
        "[1",
        "{\"a\":1",
    ] {
        assert!(matches!(refused(text), ScanError::Syntax(_)), "{text:?}");
    }
    assert!(matches!(refused(b"\"\xc0\xaf\""), ScanError::Encoding(_)));
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800\u0041""#,
        r#""\ud800x""#,
    ] {
        assert!(matches!(refused(text), ScanError::Encoding(_)), "{text}");
    }
}

#[test]
fn duplicate_members_are_refused_at_any_depth_and_behind_escapes() {
    for text in [
        r#"{"a":1,"a":2}"#,
        r#"[{"x":{"k":1,"b":2,"k":3}}]"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\u0061":1,"a":2}"#,
    ] {
        assert!(
            matches!(refused(text), ScanError::DuplicateMember(_)),
            "{text}"
        );
    }
    let mut many: Vec<String> = (0..40).map(|i| format!("\"k{i}\":{i}")).collect();
    json(&format!("{{{}}}", many.join(",")));
    many.push("\"k7\":0".into());
    assert!(matches!(
        refused(format!("{{{}}}", many.join(","))),
        ScanError::DuplicateMember(_)
    ));
    json(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}"#);
}

#[test]
fn each_limit_holds_at_its_edge() {
    let limits = Limits {
        depth: 3,
        values: 5,
        members: 2,
        key_bytes: 4,
        number_bytes: 6,
    };
    let check = |text: &str| scan(text.as_bytes(), &limits).map(|_| ());
    assert_eq!(check("[[[]]]"), Ok(()));
    assert_eq!(check("[[[[]]]]"), Err(ScanError::TooDeep(3)));
    assert_eq!(check("[1,2,3,4]"), Ok(()));
    assert_eq!(check("[1,2,3,4,5]"), Err(ScanError::TooManyValues(5)));
    assert_eq!(check(r#"{"a":1,"b":2}"#), Ok(()));
    assert_eq!(
        check(r#"{"a":1,"b":2,"c":3}"#),
        Err(ScanError::TooManyMembers(2))
    );
    assert_eq!(check(r#"{"abcd":1}"#), Ok(()));
    assert_eq!(check(r#"{"abcde":1}"#), Err(ScanError::KeyTooLong(4)));
    assert_eq!(check("123456"), Ok(()));
    assert_eq!(check("1234567"), Err(ScanError::NumberTooLong(6)));
}

#[test]
fn a_million_brackets_are_refused_without_a_deep_stack() {
    assert_eq!(refused("[".repeat(1_000_000)), ScanError::TooDeep(64));
}

#[test]
fn white_space_around_the_value_is_cut_and_inside_kept() {
    assert_eq!(
        json(" \r\n{ \"a\" : [ 1 , 2 ] }\t").as_str(),
        "{ \"a\" : [ 1 , 2 ] }"
    );
}

#[test]
fn members_elements_and_strings_are_found() {
    let value = json(
        r#"{ "a\u0062" : "x\ud83d\ude00\n\/\"" , "list":[1, {"k":[]} ,"s",true,null,-1.5e3], "n":12 }"#,
    );
    let root = value.root();
    let keys: Vec<_> = root.members().map(|m| m.key.into_owned()).collect();
    assert_eq!(keys, ["ab", "list", "n"]);
    assert_eq!(root.member("ab").unwrap().as_str().unwrap(), "x😀\n/\"");
    let kinds: Vec<_> = root
        .member("list")
        .unwrap()
        .elements()
        .map(Node::kind)
        .collect();
    assert_eq!(
        kinds,
        [
            Kind::Number,
            Kind::Object,
            Kind::String,
            Kind::Bool,
            Kind::Null,
            Kind::Number
        ]
    );
    assert_eq!(root.member("n").unwrap().as_i64(), Some(12));
    assert_eq!(
        value
            .slice(root.member("list").unwrap().elements().nth(1).unwrap())
            .as_str(),
        r#"{"k":[]}"#
    );
}

#[test]
fn members_are_removed_replaced_and_added_with_their_commas() {
    let cases = [
        ("{}", vec![], "{\"z\":0}"),
        (r#"{"a":1}"#, vec!["a"], "{\"z\":0}"),
        (r#"{ "a":1 , "b":2 }"#, vec!["a"], "{\"b\":2,\"z\":0 }"),
        (
            r#"{"a":1,"b":2,"c":3}"#,
            vec!["b"],
            r#"{"a":1,"c":3,"z":0}"#,
        ),
        (r#"{"a":1,"b":2,"c":3}"#, vec!["a", "b"], r#"{"c":3,"z":0}"#),
        (r#"{"a":1,"b":2,"c":3}"#, vec!["b", "c"], r#"{"a":1,"z":0}"#),
        (
            r#"{"a":1,"b":2,"c":3,"d":4}"#,
            vec!["a", "c"],
            r#"{"b":2,"d":4,"z":0}"#,
        ),
        (r#"{"a":1,"b":2,"c":3}"#, vec!["a", "b", "c"], "{\"z\":0}"),
    ];
    for (text, gone, want) in cases {
        let value = json(text);
        let mut edits = Edits::new();
        let fate = |key: &str, _: Node<'_>| {
            if gone.contains(&key) {
                Fate::Remove
            } else {
                Fate::Keep
            }
        };
        edits.members(value.root(), fate, &[("z", json("0"))]);
        assert_eq!(
            value.splice(&edits).as_str(),
            want,
            "{text} without {gone:?}"
        );
    }
}

#[test]
fn what_can_hold_nothing_is_given_nothing() {
    for text in ["null", "true", "12", r#""text""#, "[1]", "{}"] {
        let (value, more) = (json(text), [("z", json("0"))]);
        let edited = |edit: &dyn Fn(&mut Edits)| {
            let mut edits = Edits::new();
            edit(&mut edits);
            value.splice(&edits).as_str().to_owned()
        };
        let is_object = text == "{}";
        for told in [
            edited(&|edits| edits.members(value.root(), |_, _| Fate::Keep, &more)),
            edited(&|edits| edits.append(value.root(), true, &more)),
            edited(&|edits| edits.set(value.root(), "z", json("0"))),
        ] {
            let wanted = if is_object { r#"{"z":0}"# } else { text };
            assert_eq!(told, wanted, "{text}");
        }
        let pushed = edited(&|edits| edits.push(value.root(), &json("0")));
        let wanted = if text == "[1]" { "[1,0]" } else { text };
        assert_eq!(pushed, wanted, "{text}");
    }
}

#[test]
fn nothing_is_copied_when_nothing_changes() {
    let value = json(r#"{"a":1}"#);
    assert_eq!(
        value.splice(&Edits::new()).bytes().as_ptr(),
        value.bytes().as_ptr()
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |f| f.is_finite())
            .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[\"\\\\a-z]{40,90}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map(".{0,6}", inner, 0..8)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Every value inside, as a walk finds it.
fn walked(node: Node<'_>, found: &mut Vec<Span>) {
    found.push(node.span());
    node.members()
        .map(|member| member.value)
        .chain(node.elements())
        .for_each(|inner| walked(inner, found));
}

#[test]
fn many_names_that_begin_and_end_alike_are_told_apart() {
    let name = |i: u32| format!("\"beginning{i:04}the-ending\":0");
    let mut many: Vec<_> = (0..3_000).map(name).collect();
    json(&format!("{{{}}}", many.join(",")));
    many.push(name(1_234));
    assert!(matches!(
        refused(format!("{{{}}}", many.join(","))),
        ScanError::DuplicateMember(_)
    ));
}

/// Whether a text is JSON is told as a foreign reader tells it.
fn agrees_with_a_foreign_reader(text: &str) {
    // Nothing is converted: it could not hold every number.
    let theirs = serde_json::from_str::<&RawValue>(text);
    match scan(text.as_bytes(), &Limits::CLIENT) {
        Ok(_) => assert!(theirs.is_ok(), "{text}"),
        Err(ScanError::Syntax(_)) => assert!(theirs.is_err(), "{text}"),
        Err(_) => {}
    }
}

#[test]
fn a_number_of_any_size_is_json_as_it_is_to_a_foreign_reader() {
    for text in ["1e999", "-1E+999", "[1e9999,-0.1e-9999]"] {
        assert!(scan(text.as_bytes(), &Limits::CLIENT).is_ok(), "{text}");
        agrees_with_a_foreign_reader(text);
    }
    for text in ["1e", "01e999", "[1e999.1]", r#"["\u12",1e999]"#] {
        assert!(matches!(refused(text), ScanError::Syntax(_)), "{text}");
        agrees_with_a_foreign_reader(text);
    }
}

proptest! {
    #[test]
    fn what_a_scan_noted_changes_no_walk(value in any_value(), blank in " {0,3}") {
        let scanned = json(&format!("{blank}{value}"));
        let unnoted = Json::composed(scanned.bytes().clone());
        let (mut one, mut two) = (Vec::new(), Vec::new());
        walked(scanned.root(), &mut one);
        walked(unnoted.root(), &mut two);
        prop_assert_eq!(&one, &two);
        let slices = scanned.root().members().map(|member| scanned.slice(member.value));
        for (slice, member) in slices.zip(unnoted.root().members()) {
            let (mut inside, mut outside) = (Vec::new(), Vec::new());
            walked(slice.root(), &mut inside);
            walked(unnoted.slice(member.value).root(), &mut outside);
            prop_assert_eq!(inside, outside);
        }
    }

    #[test]
    fn what_a_foreign_writer_writes_is_accepted_and_sliced_exactly(value in any_value()) {
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let json = json(&pretty);
        prop_assert_eq!(json.as_str(), &pretty);
        if let Value::Object(map) = &value {
            for ((key, want), member) in map.iter().zip(json.root().members()) {
                prop_assert_eq!(key, &member.key);
                prop_assert_eq!(want, &serde_json::from_str::<Value>(member.value.raw()).unwrap());
            }
        }
    }

    #[test]
    fn random_bytes_never_panic_and_agree_with_a_foreign_reader(text in "[\\[\\]{}\",:0-9a-fu\\\\ tn.-]{0,24}") {
        agrees_with_a_foreign_reader(&text);
    }

    #[test]
    fn any_subset_of_members_can_be_removed(map in prop::collection::btree_map("[a-z]{1,4}", any_value(), 0..8), mask in any::<u8>()) {
        let value = json(&serde_json::to_string(&map).unwrap());
        let goes = |key: &str| map.keys().position(|k| k == key).is_some_and(|i| mask >> i & 1 == 1);
        let mut edits = Edits::new();
        edits.members(value.root(), |key, _| if goes(key) { Fate::Remove } else { Fate::Keep }, &[]);
        let left = value.splice(&edits);
        scan(left.bytes(), &Limits::CLIENT).unwrap();
        let keys: Vec<_> = left.root().members().map(|m| m.key.into_owned()).collect();
        let want: Vec<_> = map.keys().filter(|k| !goes(k)).cloned().collect();
        prop_assert_eq!(keys, want);
    }
}
