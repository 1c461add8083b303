//! What does it cost to look at content? Budget for C1 to C6 and C8 together, on one core: 1.5 ms per MiB of clean text and 10 ms
//! per MiB of dirty text; linear in the text whatever it holds; clean content is not copied. `all` is with C9, too.
//!
//! `cargo bench --bench sanitize -- clean` for the first of these. A value is a `tools/call` result; lengths are those of its
//! JSON. The content is made up by `content`: each line another, with UUIDs, times and addresses where servers have them.
//!
//! Measured 2026-11-22 with `cargo bench`, mimalloc, registers of 512 bits and nothing else at work, in ms per MiB: a day before,
//! and now. The machine did some ten million instructions in a millisecond; on others the same took twice as long. Not within
//! the budget: logs, JSON logs, rows, members, issues and emoji of the clean kinds; dense, rows and nested of the dirty ones.
//!
//! | clean | before | now | | clean | before | now | | dirty | before | now |
//! |---|---|---|---|---|---|---|---|---|---|---|
//! | prose | 0.9 | 0.7 | | hebrew, thai | 1.3, 1.5 | 0.7, 0.6 | | sparse | 5.2 | 4.2 |
//! | docs | 2.2 | 1.3 | | korean, russian | 1.3, 1.4 | 0.8 | | usual | 6.1 | 5.2 |
//! | source | 3.0 | 1.5 | | hindi, japanese | 2.0, 1.5 | 1.0, 0.7 | | dense | 12.5 | 11.9 |
//! | logs | 3.9 | 2.2 | | chinese, european | 1.3, 1.6 | 0.9 | | colours | 9.6 | 9.0 |
//! | json_logs | 2.3 | 1.7 | | arabic, persian | 1.4, 2.0 | 1.0, 1.1 | | secrets | 9.5 | 8.9 |
//! | rows | 3.1 | 2.3 | | emoji, nothing else | 2.9 | 2.5 | | cards | 10.2 | 9.9 |
//! | table | 2.4 | 1.5 | | world | 2.3 | 1.5 | | hidden | 7.6 | 7.9 |
//! | issues | 2.3 | 1.8 | | | | | | images | 9.2 | 6.2 |
//! | members | 2.2 | 1.8 | | | | | | rows | 18.6 | 14.5 |
//! | | | | | | | | | nested | 41.7 | 33.9 |
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
    Subject::new(Direction::Results, actions)
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
