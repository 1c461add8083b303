//! What does it cost to look at content? Budget for C1 to C6 and C8 together, on one core: 1.5 ms per MiB of clean text and 10 ms
//! per MiB of dirty text; linear in the text whatever it holds; clean content is not copied. `all` is with C9, too.
//!
//! `cargo bench --bench sanitize -- clean` for the first of these. A value is a `tools/call` result; lengths are those of its
//! JSON. The content is made up by `content`: each line another, with UUIDs, times and addresses where servers have them.
//!
//! Measured 2026-11-21 on two cores with ten other processes at work: the least thread time of 25 looks, in ms per MiB, and
//! millions of instructions per MiB as callgrind counts them, which do not depend on who else works. An optimised build with
//! overflow checks, without link-time optimisation. Prose at 18 million instructions takes 1.6 ms so, perhaps 1.4 on a machine
//! at rest, where nothing has been measured yet: the budget of clean text is met by 18 to 20 million. What is beyond is marked.
//!
//! | clean | before | now | | dirty | before | now |
//! |---|---|---|---|---|---|---|
//! | prose | 23 M, 1.8 | 18 M, 1.6 | | sparse | 78 M, 6.9 | 53 M, 5.1 |
//! | docs | 31 M, 2.8 | 27 M, 2.3 (!) | | usual | 94 M, 8.5 | 63 M, 6.2 |
//! | source | 57 M, 5.4 | 40 M, 4.6 (!) | | dense | 187 M, 16.3 | 130 M, 12.3 (!) |
//! | logs | 117 M, 14.6 | 55 M, 6.3 (!) | | colours | 185 M, 21.3 | 129 M, 13.2 (!) |
//! | json_logs | 124 M, 15.7 | 63 M, 6.4 (!) | | secrets | 201 M, 16.0 | 104 M, 9.6 |
//! | rows | 112 M, 18.8 | 63 M, 5.5–8.6 (!) | | cards | 166 M, 14.6 | 143 M, 12.4 (!) |
//! | table | 193 M, 35.3 | 73 M, 7.6 (!) | | hidden | 117 M, 11.6 | 104 M, 10.4 (!) |
//! | issues | 44 M, 6.2 | 36 M, 3.3 (!) | | images | 111 M, 10.5 | 101 M, 9.3 |
//! | members | 40 M, 4.8 | 41 M, 3.2 (!) | | rows | 333 M, 49.6 | 219 M, 21.6 (!) |
//! | arabic | 39 M, 5.8 | 29 M, 2.1–2.9 (!) | | nested | 596 M, 90.3 | 446 M, 36.3 (!) |
//! | hebrew, thai, korean, russian | 31–34 M, 3.9–4.9 | 21–22 M, 1.5–2.2 (!) | | | | |
//! | hindi, chinese, japanese, european | 36–41 M, 4.9–6.4 | 24–29 M, 1.9–2.9 (!) | | | | |
//! | persian | 55 M, 9.5 | 41 M, 3.2–4.3 (!) | | | | |
//! | emoji, nothing else | 100 M, 11.2 | 71 M, 5.7 (!) | | | | |
//! | world | 43 M, 5.0 | 29 M, 2.6 (!) | | | | |
#![expect(clippy::expect_used, reason = "what is looked at here is well-formed")]

mod content;

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

/// A result with this piece again and again in one block.
fn block(piece: &str, bytes: usize) -> Json {
    parsed(content::block(&piece.repeat(bytes / piece.len() + 1)))
}

fn parsed(text: String) -> Json {
    Json::parse(Bytes::from(text), &Limits::LIST).expect("JSON")
}

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
    group.sample_size(20);
    for (name, text) in content::clean() {
        let value = parsed(text());
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
    for (name, text) in content::dirty() {
        let value = parsed(text());
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
    let kinds = content::clean().into_iter();
    for (name, text) in kinds.filter(|(name, _)| matches!(*name, "prose" | "source" | "logs")) {
        let value = parsed(text());
        group.throughput(Throughput::Bytes(value.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| sanitizer.look(black_box(&value), &subject))
        });
    }
}

criterion_group!(benches, clean, dirty, linear, all);
criterion_main!(benches);
