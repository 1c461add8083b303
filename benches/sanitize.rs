//! What does it cost to look at content? Budget for C1 to C6 and C8 together, on one core: 1.5 ms per MiB of clean text and 10 ms
//! per MiB of dirty text; linear in the text whatever it holds; clean content is not copied. `all` is with C9, too.
//!
//! `cargo bench --bench sanitize -- clean` for the first of these. A value is a `tools/call` result; lengths are those of its
//! JSON. The content is made up by `content`: each line another, with UUIDs, times and addresses where servers have them.
//!
//! Measured 2026-11-21 on two cores with other processes at work: the least thread time of 15 looks, in ms per MiB, in each of two
//! runs, and millions of instructions per MiB as callgrind counts them, which hardly move. An
//! optimised build with overflow checks, without link-time optimisation, of this module by itself and not of the whole crate.
//! "Before" is the same count before one pass found the places of all detectors. Nothing has been measured on a machine at rest:
//! the budgets are taken to be missed where (!) stands, which is where the time was beyond them.
//!
//! | clean | before | now | | dirty | before | now |
//! |---|---|---|---|---|---|---|
//! | prose | 19 M | 13 M, 1.5–1.9 (!) | | sparse | 53 M | 43 M, 4.0–4.2 |
//! | docs | 27 M | 21 M, 3.1–3.3 (!) | | usual | 63 M | 53 M, 5.4 |
//! | source | 39 M | 35 M, 3.4–5.9 (!) | | dense | 130 M | 121 M, 11.9–15.2 (!) |
//! | logs | 55 M | 38 M, 4.1–5.8 (!) | | colours | 129 M | 116 M, 11.5–16.1 (!) |
//! | json_logs | 63 M | 44 M, 3.7–3.9 (!) | | secrets | 104 M | 94 M, 8.7–8.9 |
//! | rows | 63 M | 47 M, 3.4–4.5 (!) | | cards | 143 M | 131 M, 11.9–12.1 (!) |
//! | table | 73 M | 44 M, 4.0–5.4 (!) | | hidden | 104 M | 100 M, 9.6–9.7 |
//! | issues | 36 M | 29 M, 2.9–4.4 (!) | | images | 101 M | 93 M, 8.7–9.2 |
//! | members | 41 M | 34 M, 3.8–4.3 (!) | | rows | 219 M | 207 M, 18.0–18.5 (!) |
//! | arabic | 29 M | 23 M, 2.3–2.6 (!) | | nested | 446 M | 447 M, 37.5–39.2 (!) |
//! | korean, russian | 22 M | 16–17 M, 1.1–1.8 (!) | | | | |
//! | hebrew, thai, japanese, european | 21–29 M | 16–23 M, 1.4–2.2 (!) | | | | |
//! | hindi, chinese | 26 M | 20 M, 1.5–2.9 (!) | | | | |
//! | persian | 41 M | 28 M, 3.0–3.2 (!) | | | | |
//! | emoji, nothing else | 71 M | 43 M, 3.7–4.1 (!) | | | | |
//! | world | 29 M | 21 M, 1.9–3.0 (!) | | | | |
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
