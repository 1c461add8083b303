//! The engine with detectors of its own: what they find is where the rules say, and nothing else changes.

mod encoded;
mod linear;
mod media;
mod plain;
mod properties;
mod seams;

use std::sync::Arc;

use bytes::Bytes;

use super::{rules::*, *};
use crate::{
    findings::{Action, Direction, Findings},
    json::{Json, Limits},
    metrics::{Bound, seen},
    protocol::{UpstreamId, methods::ListKind},
};

/// Finds `KEY` and 8 digits, as a secret.
struct Keys;

/// Finds zero-width spaces.
struct Invisible;

impl Detector for Keys {
    fn class(&self) -> Class {
        Class::Secret
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        for at in memchr::memmem::find_iter(text.as_bytes(), b"KEY") {
            let digits = text.as_bytes()[at + 3..].iter().take(8);
            if digits.filter(|byte| byte.is_ascii_digit()).count() == 8 {
                hits.push(Hit {
                    span: at..at + 11,
                    class: Class::Secret,
                    rule: "test_key".into(),
                    inert: None,
                });
            }
        }
    }
}

impl Detector for Invisible {
    fn class(&self) -> Class {
        Class::Hidden
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        hits.extend(text.match_indices('\u{200B}').map(|(at, found)| Hit {
            span: at..at + found.len(),
            class: Class::Hidden,
            rule: "zero_width".into(),
            inert: None,
        }));
    }
}

fn json(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap()
}

fn sanitizer() -> Sanitizer {
    Sanitizer::new(
        vec![Arc::new(Invisible), Arc::new(Keys)],
        Rules::default(),
        Findings::new(),
    )
}

fn look(text: &str, direction: Direction) -> (Verdict, Sanitizer) {
    let sanitizer = sanitizer();
    let actions = Actions::default();
    let subject = Subject::new(direction, &actions, &[]);
    let verdict = sanitizer.look(&json(text), &subject);
    (verdict, sanitizer)
}

fn result(text: &str) -> String {
    match look(text, Direction::Results).0 {
        Verdict::Clean => text.to_owned(),
        Verdict::Flagged(marks) => format!("flagged {}", marks.told().as_str()),
        Verdict::Changed(value, _) => value.as_str().to_owned(),
        Verdict::Blocked(blocked) => format!("blocked {} {}", blocked.kind, blocked.place),
    }
}

const KEY: &str = "KEY12345678";

#[test]
fn an_object_of_twenty_thousand_members_is_looked_at_within_the_budget_of_work() {
    // The clock is of no use on a machine at work: what is counted holds.
    let mut rules = Rules::default();
    rules.budget.base = std::time::Duration::from_secs(60);
    let members: Vec<String> = (0..20_000)
        .map(|nth| format!(r#""item_{nth:05}":"some value {nth}""#))
        .collect();
    let clean = format!("{{{}}}", members.join(","));
    let dirty = clean.replace("value 1", &format!("value {KEY} 1"));
    let standard = Sanitizer::standard(rules.clone(), Findings::new(), OwnCredentials::new());
    let keys = Sanitizer::new(vec![Arc::new(Keys)], rules, Findings::new());
    let subject = |actions| Subject::new(Direction::Results, actions, &[]);
    let actions = Actions::default();
    let verdict = standard.look(&json(&clean), &subject(&actions));
    assert!(matches!(verdict, Verdict::Clean), "{verdict:?}");
    let verdict = keys.look(&json(&dirty), &subject(&actions));
    assert!(matches!(verdict, Verdict::Changed(..)), "{verdict:?}");
}

#[test]
fn what_is_found_is_replaced_where_it_stood_and_all_else_stays_byte_for_byte() {
    for (text, expected) in [
        (
            r#"{ "a" : "x KEY12345678 y" , "n":1.50}"#,
            r#"{ "a" : "x [redacted:test_key] y" , "n":1.50}"#,
        ),
        (
            r#"["\u00e9\n\"KEY12345678\" \u0041","\/"]"#,
            r#"["\u00e9\n\"[redacted:test_key]\" \u0041","\/"]"#,
        ),
        (r#"["K\u0045Y1234\u0035678"]"#, r#"["[redacted:test_key]"]"#),
        (
            r#"{"KEY12345678":{"KEY87654321":1}}"#,
            r#"{"[redacted:test_key]":{"[redacted:test_key]":1}}"#,
        ),
        (r#"["KEY1234","5678"]"#, r#"["KEY1234","5678"]"#),
        ("[12345678]", "[12345678]"),
    ] {
        assert_eq!(result(text), expected);
    }
    let long = "word ".repeat(1_000);
    assert_eq!(
        result(&format!(r#"["{long}{KEY}{long}","{KEY}"]"#)),
        format!(r#"["{long}[redacted:test_key]{long}","[redacted:test_key]"]"#)
    );
}

#[test]
fn a_fence_on_the_first_line_of_a_block_is_one() {
    let sanitizer = Sanitizer::standard(Rules::default(), Findings::new(), OwnCredentials::new());
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let look = |text: &str| {
        let value = serde_json::json!({"content": [{"type": "text", "text": text}]});
        sanitizer.look(&json(&value.to_string()), &subject)
    };
    let fence = "```\na\n```\n";
    let image = "\n![x](https://evil.example/a)\n\n";
    let verdict = look(&[fence, image, fence].concat());
    assert!(matches!(verdict, Verdict::Changed(..)), "{verdict:?}");
    let verdict = look(&fence.replace('a', image));
    assert!(matches!(verdict, Verdict::Clean), "{verdict:?}");
}

#[test]
fn clean_content_is_not_copied() {
    let long = "word ".repeat(1_000);
    for text in [r#"{"a":"b\n"}"#.to_owned(), format!(r#"["{long}"]"#)] {
        assert!(matches!(look(&text, Direction::Results).0, Verdict::Clean));
    }
}

#[test]
fn names_that_would_become_alike_block_the_whole() {
    assert_eq!(
        result(r#"{"KEY12345678":1,"KEY87654321":2}"#),
        "blocked integrity "
    );
}

#[test]
fn what_hidden_characters_split_is_found_without_them() {
    assert_eq!(
        result("[\"a KEY12\u{200B}34\\u200b5678 b\"]"),
        r#"["a [redacted:test_key] b"]"#
    );
}

#[test]
fn decoded_forms_are_replaced_as_a_whole() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let once = STANDARD.encode(format!("the key is {KEY}."));
    let twice = STANDARD.encode(&once);
    let percent = "KEY%31%32345678";
    let wide = "ＫＥＹ12345678";
    let escaped = r"\\u004bEY12345678";
    let line = STANDARD.encode(format!(
        "{}{KEY}",
        "a line of fifty-one characters, for all of it to be "
    ));
    let (first, last) = line.split_at(76);
    let wrapped = format!(r"{first}\n{}", last.trim_end_matches('='));
    for form in [
        &wrapped,
        r"KEY12\\u200b345678",
        r"KEY12\\u001b[31m345678",
        "KEY12%E2%80%8B345678",
        once.trim_end_matches('='),
        twice.trim_end_matches('='),
        percent,
        wide,
        escaped,
    ] {
        let text = format!(r#"["before {form} after"]"#);
        assert_eq!(
            result(&text),
            r#"["before [redacted:test_key] after"]"#,
            "{text}"
        );
    }
}

#[test]
fn what_lies_in_the_seam_of_two_blocks_is_found_in_both() {
    assert_eq!(
        result(
            r#"{"content":[{"type":"text","text":"a KEY12"},{"type":"text","text":"345678 b"}]}"#
        ),
        r#"{"content":[{"type":"text","text":"a [redacted:test_key]"},{"type":"text","text":"[redacted:test_key] b"}]}"#
    );
}

#[test]
fn what_lies_in_the_seam_of_two_events_is_cut_short() {
    let sanitizer = sanitizer();
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let mut tail = Tail::default();
    let first = json(r#"{"progress":1,"message":"a KEY12"}"#);
    let verdict = sanitizer.look_after(&first, &subject, Some(&mut tail));
    assert!(matches!(verdict, Verdict::Clean));
    let second = json(r#"{"progress":2,"message":"345678 b"}"#);
    let verdict = sanitizer.look_after(&second, &subject, Some(&mut tail));
    let Verdict::Changed(second, _) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(
        second.as_str(),
        r#"{"progress":2,"message":"[redacted:test_key] b"}"#
    );
}

#[test]
fn what_is_skipped_is_a_handle_and_a_handle_is_a_string() {
    let actions = Actions::default();
    let subject = Subject {
        skip: &["taskId"],
        ..Subject::new(Direction::Arguments, &actions, &[])
    };
    for (text, goes) in [
        (r#"{"taskId":"KEY12345678"}"#, true),
        (r#"{"taskId":{"x":"KEY12345678"}}"#, false),
        (r#"{"taskId":["KEY12345678"]}"#, false),
    ] {
        let verdict = sanitizer().look(&json(text), &subject);
        assert_eq!(matches!(verdict, Verdict::Clean), goes, "{text}");
    }
}

#[test]
fn arguments_are_refused_and_never_altered() {
    let (verdict, sanitizer) = look(
        r#"{"arguments":{"q":["a",{"k":"KEY12345678"}]}}"#,
        Direction::Arguments,
    );
    let Verdict::Blocked(blocked) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(
        (blocked.kind, blocked.place.as_str()),
        ("secret", "/arguments/q/1/k")
    );
    let recent = sanitizer.findings().recent();
    assert_eq!(recent.len(), 1);
    assert_eq!((recent[0].action, recent[0].length), (Action::Block, 11));
    assert!(!format!("{recent:?}").contains("12345678"));
}

#[test]
fn content_that_a_digest_is_known_of_is_blocked_rather_than_changed() {
    let sanitizer = sanitizer();
    let actions = Actions::default();
    let subject = Subject {
        sealed: true,
        ..Subject::new(Direction::Results, &actions, &[])
    };
    let verdict = sanitizer.look(&json(&format!(r#"["{KEY}"]"#)), &subject);
    assert!(matches!(verdict, Verdict::Blocked(blocked) if blocked.kind == "integrity"));
}

#[test]
fn without_time_content_is_blocked_and_not_passed() {
    let rules = Rules {
        budget: Budget {
            per_mib: std::time::Duration::ZERO,
            base: std::time::Duration::ZERO,
        },
        ..Rules::default()
    };
    let sanitizer = Sanitizer::new(vec![Arc::new(Keys)], rules, Findings::new());
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let verdict = sanitizer.look(&json(&format!("[\"{}\"]", "x ".repeat(100_000))), &subject);
    assert!(matches!(verdict, Verdict::Blocked(blocked) if blocked.kind == "scan_budget"));
}

/// Finds the first byte of a character of two.
struct Cutting;

impl Detector for Cutting {
    fn class(&self) -> Class {
        Class::Secret
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        hits.extend(text.find('\u{e9}').map(|at| Hit {
            span: at..at + 1,
            class: Class::Secret,
            rule: "cutting".into(),
            inert: None,
        }));
    }
}

#[test]
fn content_in_which_a_place_is_none_is_blocked() {
    let sanitizer = Sanitizer::new(vec![Arc::new(Cutting)], Rules::default(), Findings::new());
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let verdict = sanitizer.look(&json("[\"caf\u{e9}\"]"), &subject);
    assert!(matches!(verdict, Verdict::Blocked(blocked) if blocked.kind == "scan_budget"));
}

#[test]
fn what_was_found_when_time_ran_out_is_not_taken_for_what_comes_next() {
    let with = |budget| {
        let rules = Rules {
            budget,
            ..Rules::default()
        };
        Sanitizer::new(vec![Arc::new(Keys)], rules, Findings::new())
    };
    let none = with(Budget {
        per_mib: std::time::Duration::ZERO,
        base: std::time::Duration::ZERO,
    });
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let long = format!("[\"{KEY} {}\"]", "x ".repeat(100_000));
    let verdict = none.look(&json(&long), &subject);
    assert!(matches!(verdict, Verdict::Blocked(blocked) if blocked.kind == "scan_budget"));
    let next = json(r#"["a text of somebody else, which is longer than the key is"]"#);
    assert!(matches!(sanitizer().look(&next, &subject), Verdict::Clean));
}

/// Finds `x`, and puts another one in its place.
struct Endless;

impl Detector for Endless {
    fn class(&self) -> Class {
        Class::Active
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        hits.extend(text.match_indices('x').map(|(at, found)| Hit {
            span: at..at + found.len(),
            class: Class::Active,
            rule: "endless".into(),
            inert: Some("yx".into()),
        }));
    }
}

#[test]
fn content_that_takes_too_much_is_blocked_under_the_bound_that_it_is_over() {
    let with = |detector: Arc<dyn Detector>| {
        Sanitizer::new(vec![detector], Rules::default(), Findings::new())
    };
    let mut actions = Actions::default();
    actions.set_all(Class::Active, Some(Action::Neutralise));
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let many = format!("[\"{}\"]", "\u{200B}".repeat(70_000));
    for (sanitizer, text, bound, why) in [
        (
            with(Arc::new(Endless)),
            r#"["x"]"#,
            Bound::ScanPasses,
            "looking at it took more than `sanitize.passes` allows",
        ),
        (
            with(Arc::new(Invisible)),
            many.as_str(),
            Bound::ScanHits,
            "looking at it took more than `sanitize.hits` allows",
        ),
    ] {
        drop(seen::take());
        let Verdict::Blocked(blocked) = sanitizer.look(&json(text), &subject) else {
            panic!("{why}");
        };
        assert_eq!(seen::take(), [bound]);
        assert_eq!(blocked.why("leave"), why);
        assert_eq!(
            (blocked.reason, blocked.kind),
            ("scan_budget", "scan_budget")
        );
    }
}

#[test]
fn what_is_done_about_a_tool_is_not_done_about_a_prompt_of_its_name() {
    let upstream = UpstreamId::parse("a").unwrap();
    let mut lenient = Actions::default();
    lenient.set_all(Class::Hidden, None);
    let of_upstream = UpstreamRules {
        actions: Actions::default(),
        tools: vec![("t".into(), lenient)],
    };
    let rules = Rules {
        upstreams: [(upstream.clone(), of_upstream)].into(),
        ..Rules::default()
    };
    let sanitizer = Sanitizer::new(vec![Arc::new(Invisible)], rules, Findings::new());
    let definition = json("{\"name\":\"t\",\"description\":\"a\u{200B}\"}");
    let found = |kind| {
        let found = sanitizer.definition(&definition, &upstream, kind, &"t".into());
        found.len()
    };
    assert_eq!(found(Some(ListKind::Tools)), 0);
    assert_eq!(found(Some(ListKind::Prompts)), 1);
    assert_eq!(found(None), 1);
}

#[test]
fn the_clock_is_looked_at_between_matches_of_the_operators_own_rules() {
    let rules = Rules {
        own: vec![OwnRule {
            name: "key".into(),
            pattern: regex::Regex::new("key[^;]*;|key").unwrap(),
            action: Action::Flag,
        }],
        budget: Budget {
            per_mib: std::time::Duration::ZERO,
            base: std::time::Duration::ZERO,
        },
        ..Rules::default()
    };
    let sanitizer = Sanitizer::new(Vec::new(), rules, Findings::new());
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let verdict = sanitizer.look(&json(r#"["keykeykey"]"#), &subject);
    assert!(matches!(verdict, Verdict::Blocked(blocked) if blocked.kind == "scan_budget"));
}

#[test]
fn rules_of_the_operators_own_act_as_they_say() {
    let rules = Rules {
        own: vec![OwnRule {
            name: "project".into(),
            pattern: regex::Regex::new(r"(?i)falcon-\d+").unwrap(),
            action: Action::Redact,
        }],
        ..Rules::default()
    };
    let sanitizer = Sanitizer::new(Vec::new(), rules, Findings::new());
    let actions = Actions::default();
    let mut subject = Subject::new(Direction::Results, &actions, &[]);
    let text = json(r#"["see Falcon-12!"]"#);
    let Verdict::Changed(value, marks) = sanitizer.look(&text, &subject) else {
        panic!()
    };
    assert_eq!(value.as_str(), r#"["see [redacted:project]!"]"#);
    assert_eq!(
        marks.told().as_str(),
        r#"[{"action":"redact","class":"own_rule","rule":"project","count":1}]"#
    );
    subject.direction = Direction::Arguments;
    assert!(matches!(
        sanitizer.look(&text, &subject),
        Verdict::Blocked(_)
    ));
}

#[test]
fn definitions_are_told_of_with_places() {
    let sanitizer = sanitizer();
    let upstream = UpstreamId::parse("a").unwrap();
    let found = sanitizer.definition(
        &json("{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"q\":{\"enum\":[\"a\",\"b\u{200B}\"]}}}}"),
        &upstream,
        Some(ListKind::Tools),
        &"t".into(),
    );
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].kind, found[0].place.as_str(), found[0].action),
        (
            "hidden_unicode",
            "/inputSchema/properties/q/enum/1",
            Action::Quarantine
        )
    );
}

#[test]
fn of_very_many_spots_of_a_definition_the_first_are_told_and_the_rest_counted() {
    let sanitizer = sanitizer();
    let upstream = UpstreamId::parse("a").unwrap();
    let many = vec!["\"a\u{200B}\""; 2_000].join(",");
    let many = json(&format!("[{many}]"));
    let found = sanitizer.definition(&many, &upstream, Some(ListKind::Tools), &"t".into());
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].place.as_str(), found[0].action, found[0].doubt),
        ("/0", Action::Quarantine, false)
    );
    let findings = sanitizer.findings();
    assert_eq!(findings.recent().len(), verdict::TOLD);
    let counts: u64 = findings.counts().iter().map(|(.., times)| times).sum();
    assert_eq!(counts, 2_000);
}

#[test]
fn what_is_withheld_is_told_however_much_is_flagged_before_it() {
    let mut rules = Rules::default();
    let flag = Some(Action::Flag);
    rules
        .actions
        .set(Class::Secret, Direction::Definitions, flag);
    let detectors: Vec<Arc<dyn Detector>> = vec![Arc::new(Keys), Arc::new(Invisible)];
    let sanitizer = Sanitizer::new(detectors, rules, Findings::new());
    let upstream = UpstreamId::parse("a").unwrap();
    let many = ["\"KEY12345678\""; 100].join(",");
    let definition = json(&format!("[{many},\"a\u{200B}\"]"));
    let found = sanitizer.definition(&definition, &upstream, Some(ListKind::Tools), &"t".into());
    let told: Vec<_> = found
        .iter()
        .map(|found| (&*found.place, found.action))
        .collect();
    assert_eq!(told, [("/0", Action::Flag), ("/100", Action::Quarantine)]);
}

#[test]
fn places_in_a_definition_are_right_where_time_runs_out() {
    let rules = Rules {
        budget: Budget {
            per_mib: std::time::Duration::ZERO,
            base: std::time::Duration::ZERO,
        },
        ..Rules::default()
    };
    let sanitizer = Sanitizer::new(vec![Arc::new(Keys)], rules, Findings::new());
    let upstream = UpstreamId::parse("a").unwrap();
    // What is long is looked at behind all that is short.
    let (long, longer) = ("x ".repeat(1_000), "x ".repeat(100_000));
    let definition = json(&format!("[\"{long}{KEY}\",\"{KEY}\",\"{longer}\"]"));
    sanitizer.definition(&definition, &upstream, Some(ListKind::Tools), &"t".into());
    let recent = sanitizer.findings().recent();
    let places: Vec<_> = recent.iter().map(|finding| &*finding.place).collect();
    assert_eq!(places, ["/0", "/1"]);
}
