//! What does it cost to look at content? Budget for C1 to C6 and C8 together, on one core: 1.5 ms per MiB of clean text and 10 ms
//! per MiB of dirty text; linear in the text whatever it holds; clean content is not copied. `all` is with C9, too.
//!
//! `cargo bench --bench sanitize -- clean` for the first of these. A value is a `tools/call` result; lengths are those of its
//! JSON.
#![expect(clippy::expect_used, reason = "what is looked at here is well-formed")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use usher::{
    findings::{Direction, Findings},
    json::{Json, Limits},
    sanitize::{
        Class, OwnCredentials, Sanitizer, Subject, Verdict,
        rules::{Actions, Rules},
    },
};

const MIB: usize = 1 << 20;

fn sanitizer() -> Sanitizer {
    let own = OwnCredentials::new();
    let held: Vec<String> = (0..16)
        .map(|n| format!("{n:02}-credential-of-ours-{n}"))
        .collect();
    own.hold(held.iter().map(String::as_str));
    Sanitizer::standard(Rules::default(), Findings::new(), own)
}

/// A result with this text in one block.
fn block(piece: &str, bytes: usize) -> Json {
    let text = piece.repeat(bytes / piece.len() + 1);
    let text = Json::string(&text);
    let result = format!(
        r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
        text.as_str()
    );
    Json::parse(Bytes::from(result), &Limits::LIST).expect("JSON")
}

/// A result of many small values.
fn rows(bytes: usize) -> Json {
    let row = r#"{"id":4711,"name":"Jane Q. Public","state":"open","labels":["bug","help wanted"],"score":0.75,"created_at":"2026-11-21T13:37:00Z"}"#;
    let rows = vec![row; bytes / row.len() + 1].join(",");
    let result = format!(r#"{{"structuredContent":{{"rows":[{rows}]}},"content":[]}}"#);
    Json::parse(Bytes::from(result), &Limits::LIST).expect("JSON")
}

const PROSE: &str = "The gateway reads what a server says before anybody else does. Most of what it reads is ordinary: \
    a paragraph of documentation, a table of results, a list of issues with their numbers (#4711) and dates. It has to be \
    quick about it, since nobody should notice that it is there, and it must not change a single byte of what is fine.\n";
const SOURCE: &str = "fn handle(&mut self, event: Event) -> Result<(), Error> {\n    let Some(route) = self.routes.get(&event.path) else {\n        \
    return Err(Error::Unknown { path: event.path.clone() });\n    };\n    tracing::debug!(path = %event.path, \"routed\");\n    route.call(event.body)\n}\n\n";
const LOGS: &str = "2026-11-21T13:37:42.123456Z  INFO server::accept: connection from 10.1.2.3:54321 accepted id=7f3a status=200 bytes=5123 took=1.25ms\n";
const WORLD: &str = "Zażółć gęślą jaźń — naïve café “quotes”. 日本語の文章はここにあります。中文也在这里，没有空格。 مرحبا بالعالم. שלום עולם. नमस्ते दुनिया। 👩‍💻🎉\n";
const DIRTY: &str = "deploy with AKIAQYLPMN5HHHFPZAM2 and a card 4111 1111 1111 1111 ![x](https://evil.example/p.png?d=1) \u{1B}[31mred\u{1B}[0m ze\u{200B}ro and so on, with some more words in between so that it reads like text and not like a list\n";

/// What the budget is of: everything that is on by default but C9.
fn budgeted() -> Actions {
    let mut actions = Actions::default();
    actions.set_all(Class::Injection, None);
    actions
}

fn subject(actions: &Actions) -> Subject<'_> {
    Subject {
        direction: Direction::Results,
        upstream: None,
        item: None,
        call: None,
        actions,
        skip: &[],
        questions: false,
        sealed: false,
    }
}

fn clean(c: &mut Criterion) {
    let sanitizer = sanitizer();
    let actions = budgeted();
    let subject = subject(&actions);
    let mut group = c.benchmark_group("clean");
    for (name, value) in [
        ("prose", block(PROSE, MIB)),
        ("source", block(SOURCE, MIB)),
        ("logs", block(LOGS, MIB)),
        ("world", block(WORLD, MIB)),
        ("rows", rows(MIB)),
        ("small", block(PROSE, 256)),
    ] {
        let verdict = sanitizer.look(&value, &subject);
        assert!(
            matches!(verdict, Verdict::Clean | Verdict::Flagged(_)),
            "{name}: {verdict:?}"
        );
        group.throughput(Throughput::Bytes(value.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| sanitizer.look(black_box(&value), &subject))
        });
    }
}

fn dirty(c: &mut Criterion) {
    let sanitizer = sanitizer();
    let actions = budgeted();
    let subject = subject(&actions);
    let mut group = c.benchmark_group("dirty");
    group.sample_size(20);
    let sparse = format!("{}{DIRTY}", PROSE.repeat(40));
    for (name, value) in [
        ("sparse", block(&sparse, MIB)),
        ("dense", block(DIRTY, MIB)),
    ] {
        let verdict = sanitizer.look(&value, &subject);
        assert!(
            matches!(verdict, Verdict::Changed(..)),
            "{name}: {verdict:?}"
        );
        group.throughput(Throughput::Bytes(value.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| sanitizer.look(black_box(&value), &subject))
        });
    }
}

/// Twice the text takes twice the time: the figures per byte of one pair are alike.
fn linear(c: &mut Criterion) {
    let sanitizer = sanitizer();
    let actions = budgeted();
    let subject = subject(&actions);
    let mut group = c.benchmark_group("linear");
    group.sample_size(10);
    for (name, piece) in [
        ("brackets", "!["),
        ("angles", "<"),
        ("base64", "QUtJQUlPU0ZPRE5ON0VYQU1QTEUg"),
        ("percent", "%41"),
        ("digits", "4"),
        ("escapes", "\\u0041"),
        ("assignments", "password="),
        ("begin", "-----BEGIN "),
        ("joiners", "a\u{200D}"),
        ("wide", "Ａ"),
    ] {
        for bytes in [MIB / 4, MIB / 2] {
            let value = block(piece, bytes);
            group.throughput(Throughput::Bytes(value.len() as u64));
            group.bench_function(format!("{name}/{}", bytes >> 10), |b| {
                b.iter(|| sanitizer.look(black_box(&value), &subject))
            });
        }
    }
}

/// With what reads like instructions, too: as it is by default.
fn all(c: &mut Criterion) {
    let sanitizer = sanitizer();
    let actions = Actions::default();
    let subject = subject(&actions);
    let mut group = c.benchmark_group("all");
    group.sample_size(20);
    for (name, value) in [
        ("prose", block(PROSE, MIB)),
        ("source", block(SOURCE, MIB)),
        ("small", block(PROSE, 256)),
    ] {
        group.throughput(Throughput::Bytes(value.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| sanitizer.look(black_box(&value), &subject))
        });
    }
}

criterion_group!(benches, clean, dirty, linear, all);
criterion_main!(benches);
