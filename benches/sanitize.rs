//! What does it cost to look at content?
//! Budget for C1 to C6 and C8 together, on one core: 1.5 ms per MiB of clean text and 10 ms per MiB of dirty text; linear in
//! the text whatever it holds; clean content is not copied. `all` is with C9, too.
//!
//! `cargo bench --bench sanitize -- clean` for the first of these. A value is a `tools/call` result; lengths are those of its
//! JSON. The content is made up by `content`: each line another, with UUIDs, times and addresses where servers have them.
//!
//! Measured 2026-11-26 with `cargo bench`, mimalloc, registers of 512 bits and nothing else at work, in ms per MiB. Within the budget,
//! on a machine that counts to ten million in Python in half a second; on one of half that speed `logs` would not be.
//!
//! | clean | | | clean | | | dirty | |
//! |---|---|---|---|---|---|---|---|
//! | prose | 0.35 | | hebrew, thai | 0.43, 0.39 | | sparse | 1.7 |
//! | docs | 0.57 | | korean, russian | 0.44, 0.49 | | usual | 2.6 |
//! | source | 0.93 | | hindi, japanese | 0.61, 0.43 | | dense | 4.9 |
//! | logs | 1.38 | | chinese, european | 0.55, 0.51 | | colours | 4.3 |
//! | json_logs | 0.86 | | arabic, persian | 0.43, 0.56 | | secrets | 3.7 |
//! | rows | 1.20 | | emoji, nothing else | 0.86 | | cards | 7.4 |
//! | table | 1.24 | | world | 0.75 | | hidden | 3.7 |
//! | issues | 0.94 | | members | 0.77 | | images | 3.4 |
//! | | | | | | | rows | 6.6 |
//! | | | | | | | nested | 6.5 |
//!
//! With C9, as it is by default, and for many small results one after the other, 2026-11-26 on that machine: most of it is C9, which
//! follows what stands around rare words through an automaton of sixteen languages.
//!
//! | all, ms per MiB | | | | small, µs each | |
//! |---|---|---|---|---|---|
//! | prose, docs | 4.7, 3.8 | source | 2.2 | a word | 0.4 |
//! | logs, json_logs | 2.5, 1.7 | issues | 4.1 | a KiB of prose | 5.1 |
//! | rows, table | 2.1, 1.7 | members | 0.8 | of source | 2.8 |
//! | arabic, hindi | 3.0, 2.7 | chinese, korean | 1.1, 1.0 | of logs | 3.5 |
//! | russian, hebrew | 2.2, 2.1 | japanese, thai | 1.6, 0.8 | of JSON logs | 2.5 |
//! | european, persian | 1.6, 2.1 | emoji, world | 1.9, 2.4 | of lines with ten digits | 4.1 |
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
    Subject::new(Direction::Results, actions, &[])
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
    for (name, text) in content::clean() {
        let value = parsed(text());
        group.throughput(Throughput::Bytes(value.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| sanitizer.look(black_box(&value), &subject))
        });
    }
}

/// As it is by default, what a call of a usual size costs: many small results, one after the other.
fn small(c: &mut Criterion) {
    let sanitizer = sanitizer();
    let actions = Actions::default();
    let subject = subject(&actions);
    let mut group = c.benchmark_group("small");
    group.sample_size(20);
    for (name, texts) in content::small() {
        let values: Vec<Json> = texts.into_iter().map(parsed).collect();
        group.throughput(Throughput::Elements(values.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                for value in &values {
                    black_box(sanitizer.look(black_box(value), &subject));
                }
            });
        });
    }
}

criterion_group!(benches, clean, dirty, linear, all, small);
criterion_main!(benches);
