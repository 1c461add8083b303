//! The schema for editors says of a text what the loader says of it.

#![expect(clippy::disallowed_types, reason = "the validator reads trees")]

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Number, Value};

use super::*;
use crate::config::{
    raw::Raw,
    schema::referring,
    tree::{self, Node},
};

/// The schema as a tree.
fn tree() -> Value {
    serde_json::from_str(schema().as_str()).unwrap()
}

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).unwrap()
}

/// What an editor makes of a text, by the core schema of YAML 1.2.
fn seen(yaml: &str) -> Value {
    let mut findings = problem::Findings::default();
    let file = findings.add_source("seen".into());
    value(&yaml::read(yaml, file, &mut findings).unwrap())
}

fn value(node: &Node) -> Value {
    match &node.value {
        tree::Value::Map(entries) => entries
            .iter()
            .map(|entry| (entry.key.clone(), value(&entry.node)))
            .collect(),
        tree::Value::List(items) => items.iter().map(value).collect(),
        tree::Value::Scalar(scalar) if scalar.is_null() => Value::Null,
        tree::Value::Scalar(scalar) if scalar.plain => {
            let text = scalar.text.trim_start_matches('+');
            let is_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
            match text {
                "true" | "True" | "TRUE" => true.into(),
                "false" | "False" | "FALSE" => false.into(),
                _ if text.parse::<i64>().is_ok() => text.parse::<i64>().unwrap().into(),
                _ if is_number && text.parse::<f64>().is_ok() => {
                    Number::from_f64(text.parse().unwrap()).unwrap().into()
                }
                text => text.into(),
            }
        }
        tree::Value::Scalar(scalar) => scalar.text.as_str().into(),
    }
}

/// Somewhere that a value may stand.
#[derive(Debug, Clone, Default)]
struct Spot {
    /// The keys that lead there; `None` is an element of a list.
    path: Vec<Option<String>>,
    /// Nothing may not stand there, or is refused for what it lacks, which is told later.
    has_to_be: bool,
    /// Only a reference may: what else is refused for being a secret, which is told later.
    is_secret: bool,
    /// The words that may be chosen there.
    words: BTreeSet<String>,
}

impl Spot {
    /// A text with `value` there.
    fn with(&self, value: &str) -> String {
        let around = self.path.iter().rev();
        around.fold(value.to_owned(), |inner, step| match step {
            Some(key) => format!("{{ \"{key}\": {inner} }}"),
            None => format!("[ {inner} ]"),
        })
    }

    /// What stands in it.
    fn below(&self, step: Option<&str>, has_to_be: bool) -> Self {
        let step = step.map(str::to_owned);
        Self {
            path: self.path.iter().cloned().chain([step]).collect(),
            has_to_be,
            ..Self::default()
        }
    }
}

/// Every spot at and below one.
fn spots(root: &Value, schema: &Value, mut at: Spot) -> Vec<Spot> {
    let reference = schema["$ref"].as_str();
    let schema = reference.map_or(schema, |reference| {
        root.pointer(reference.trim_start_matches('#')).unwrap()
    });
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let choices = [list(&schema["anyOf"]), list(&schema["oneOf"])].concat();
    let required = list(&schema["required"]);
    at.has_to_be |= !required.is_empty();
    at.is_secret = schema["pattern"] == referring()
        || choices
            .iter()
            .any(|choice| choice["$ref"] == "#/$defs/Secret");
    let mut all = Vec::new();
    for choice in &choices {
        let words = [vec![choice["const"].clone()], list(&choice["enum"])].concat();
        let words = words.iter().filter_map(Value::as_str);
        at.words.extend(words.map(str::to_owned));
        for spot in spots(root, choice, at.clone()) {
            if spot.path == at.path {
                at.words.extend(spot.words);
            } else {
                all.push(spot);
            }
        }
    }
    for (key, member) in schema["properties"].as_object().into_iter().flatten() {
        let has_to_be = required.iter().any(|name| name == key);
        all.extend(spots(root, member, at.below(Some(key), has_to_be)));
    }
    if schema["additionalProperties"].is_object() {
        let any = at.below(Some("any"), false);
        all.extend(spots(root, &schema["additionalProperties"], any));
    }
    if schema["items"].is_object() {
        all.extend(spots(root, &schema["items"], at.below(None, false)));
    }
    all.push(at);
    all
}

/// The same schema for texts that say but one thing, where others have to stand beside it.
fn for_one_thing(schema: &mut Value) {
    if schema["properties"]
        .as_object()
        .is_some_and(|all| all.len() > 1)
        && let Some(schema) = schema.as_object_mut()
    {
        drop(schema.remove("required"));
    }
    match schema {
        Value::Array(items) => items.iter_mut().for_each(for_one_thing),
        Value::Object(members) => members.values_mut().for_each(for_one_thing),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a text is read, where `${env:V}` is this: what its values mean together is looked at later.
fn is_read(yaml: &str, v: &str) -> bool {
    let mut findings = problem::Findings::default();
    let file = findings.add_source("read".into());
    let vars = |name: &str| (name == "V").then(|| v.to_owned());
    let Some(mut tree) = files::parse(yaml, file, Path::new("."), &vars, &mut findings) else {
        return false;
    };
    let _read = typed::read::<Raw>(&mut tree, &mut findings);
    findings.problems.is_empty()
}

/// Every key there is, with a value of each kind and spelling.
#[test]
fn what_may_stand_at_a_key_is_the_same_to_the_schema_and_to_the_loader() {
    let whole = tree();
    let all = spots(&whole, &whole, Spot::default());
    assert!(all.len() > 400, "{}", all.len());
    let mut schema = whole;
    for_one_thing(&mut schema);
    let schema = validator(&schema);
    let values = [
        "5",
        "'5'",
        "-1",
        "'-1'",
        "1.5",
        "true",
        "'true'",
        "false",
        "'false'",
        "yes",
        "''",
        "~",
        "'null'",
        "[]",
        "{}",
        "[[]]",
        "{ zebra: 1 }",
        "'$5'",
        "'${HOME}'",
        "'${env:}'",
        "'x ${env:V} ${HOME}'",
        "5s",
        "5  s",
        "5 minutes",
        "5KiB",
        "'5 '",
        "5MB",
        "10%",
        "'0.1 %'",
        "100.01%",
        "50/s",
        "' 50 / min '",
        "0/s",
        "1000001/s",
    ];
    let mut apart = Vec::new();
    for spot in &all {
        let words = spot.words.iter().map(String::as_str);
        for text in values.into_iter().chain(words.clone()) {
            let is_nothing = text == "~";
            if (is_nothing && spot.has_to_be) || (spot.is_secret && !is_nothing) {
                continue;
            }
            let yaml = spot.with(text);
            let (fits, read) = (schema.is_valid(&seen(&yaml)), is_read(&yaml, ""));
            if fits != read {
                apart.push(format!("{yaml}: fits {fits}, read {read}"));
            }
        }
        // It fits where there is something that it may lead to.
        let yaml = spot.with("'${env:V}'");
        let mut led_to = ["5", "true", "5s", "50/s", "10%"].into_iter().chain(words);
        let read = led_to.any(|v| is_read(&yaml, v));
        let fits = schema.is_valid(&seen(&yaml));
        if fits != read {
            apart.push(format!("{yaml}: fits {fits}, read {read}"));
        }
    }
    let count = apart.len();
    apart.truncate(40);
    assert!(apart.is_empty(), "{count}:\n{}", apart.join("\n"));
}

/// Whole documents, and whether they are accepted by both.
#[test]
fn documents_are_the_same_to_the_schema_and_to_the_loader() {
    const KEYS: &str = "auth: { keys: { file: k, secret: '${env:LONG}' } }";
    let schema = validator(&tree());
    for (yaml, accepted) in [
        ("", true),
        ("listen:\nupstreams:\nlimits:\nadmin:\naudit:\n", true),
        // Texts that look like something else.
        (
            "upstreams: { a: { command: [run, 8080, 1.10, true], env: { PORT: 8080, ON: true }, tools: { describe: { x: 7 } } } }",
            true,
        ),
        ("upstreams: { a: { command: [run, ~] } }", false),
        ("upstreams: { a: { command: [run], env: { A: } } }", false),
        ("upstreams: { a: { command: [run], tags: { x: } } }", true),
        (
            "upstreams: { a: { command: [run], tags: { x: y } } }",
            false,
        ),
        ("telemetry: { service_name: 7 }", true),
        ("limits: [{ per: tool, match: 7, rate: 5/s }]", true),
        ("limits: [{ per: [tool], name: true, daily: '5' }]", true),
        ("limits: [{ per: , rate: 5/s }]", false),
        ("limits: [{ rate: 5/s }]", false),
        // Numbers, switches and words, also by reference.
        (
            "names: { max: '32', charset: '${env:SPEC}' }\npage_size: { items: '${env:FORTY}', bytes: '${env:FORTY}KiB' }",
            true,
        ),
        (
            "names: { max: '${env:FORTY}' }\nlisten: { legacy_sse: '${env:YES}' }",
            true,
        ),
        ("names: { max: ten }", false),
        ("names: { max: 3.5 }", false),
        ("names: { max: [32] }", false),
        ("names: { charset: sepc }", false),
        ("names: { max: }", true),
        ("listen: { legacy_sse: 'true' }", true),
        ("listen: { legacy_sse: }", false),
        ("listen: { legacy_sse: yes }", false),
        ("listen: { address: '127.0.0.1:${env:FORTY}' }", true),
        ("listen: { address: '127.0.0.1:${FORTY}' }", false),
        ("listen: { adress: 127.0.0.1:80 }", false),
        ("audit: '${env:OFF}'", true),
        ("audit: on", false),
        (
            "sanitize: { classes: { secret: false, media: { results: '${env:OFF}' } } }",
            true,
        ),
        ("sanitize: { classes: { secret: true } }", false),
        (
            "bounds: { http: { body_time: 5 s, body: 1048576 }, memory: '1  GiB' }",
            true,
        ),
        ("bounds: { http: { body_time: '${env:FORTY}s' } }", true),
        ("bounds: { http: { body_time: 5 } }", false),
        ("telemetry: { sample: 10 }", false),
        // Keys that have to be there, and secrets.
        (KEYS, true),
        ("auth: { keys: { file: k } }", false),
        ("auth: { keys: { secret: '${env:LONG}' } }", false),
        ("auth: { keys: { file: k, secret: } }", false),
        (
            "auth: { keys: { file: k, secret: an-open-secret-of-forty-bytes-or-even-more } }",
            false,
        ),
        (
            "upstreams: { a: { url: 'https://a.example/', auth: { basic: { user: '${env:LONG}' } } } }",
            false,
        ),
        (
            "upstreams: { a: { url: 'https://a.example/', auth: { basic: } } }",
            false,
        ),
        (
            "upstreams: { a: { url: 'https://a.example/', auth: {} } }",
            false,
        ),
        (
            "upstreams: { a: { url: 'https://a.example/', auth: } }",
            true,
        ),
        (
            "upstreams: { a: { url: 'https://a.example/', auth: { bearer: '${env:LONG}' } } }",
            true,
        ),
        (
            "upstreams: { a: { url: 'https://a.example/', auth: { bearer: '${env:LONG}', basic: {} } } }",
            false,
        ),
        ("audit: { content: [{ level: metadata }] }", true),
        ("audit: { content: [{ methods: [tools/call] }] }", false),
        ("sanitize: { rules: [{ name: own, pattern: 7 }] }", true),
        ("sanitize: { rules: [{ name: own }] }", false),
        ("state: { store: disk }", false),
        ("zebra: 1", false),
        ("[]", false),
        ("7", false),
    ] {
        let vars = |name: &str| match name {
            "FORTY" => Some("40".to_owned()),
            "SPEC" => Some("spec".to_owned()),
            "YES" => Some("true".to_owned()),
            "OFF" => Some("off".to_owned()),
            "LONG" => Some("0123456789abcdef0123456789abcdef".to_owned()),
            _ => None,
        };
        let files = Files::with(yaml);
        let loaded = load(&files.path("usher.yaml"), &vars);
        let told = loaded.as_ref().err().map(|it| it.drawn(Colour::Plain));
        assert_eq!(loaded.is_ok(), accepted, "{yaml}: {told:?}");
        let value = seen(yaml);
        let value = if value.is_null() {
            Value::Object(serde_json::Map::new())
        } else {
            value
        };
        let told: Vec<_> = schema
            .iter_errors(&value)
            .map(|it| it.to_string())
            .collect();
        assert_eq!(told.is_empty(), accepted, "{yaml}: {told:?}");
    }
}

#[test]
fn what_is_written_to_begin_with_fits_the_schema() {
    let schema = validator(&tree());
    for operator in [None, Some("me")] {
        assert!(schema.is_valid(&seen(&starter(operator))));
    }
}
