//! What does reading one frame cost, from bytes to a frame whose params can be routed?
//!
//! Budget: less than `serde_json` needs to make a tree of the same bytes. A frame is scanned once, with limits, depth and
//! duplicate members checked; `serde_json` is shown twice: as a tree, and as an envelope with its params left raw, which
//! checks none of that and is the bound below which nobody gets.
#![expect(
    clippy::disallowed_types,
    clippy::expect_used,
    reason = "what others would do with a frame; frames of our own are well-formed"
)]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde::Deserialize;
use serde_json::value::RawValue;
use usher::{json::Limits, jsonrpc};

/// The least that a gateway could look at.
#[derive(Deserialize)]
#[expect(dead_code, reason = "read for their cost")]
struct Envelope<'a> {
    jsonrpc: &'a str,
    id: u64,
    method: &'a str,
    #[serde(borrow)]
    params: &'a RawValue,
}

fn reading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec");
    for (name, arguments) in [
        ("1 KB text", text(1 << 10)),
        ("100 KB text", text(100 << 10)),
        ("100 KB nested", nested(100 << 10)),
    ] {
        let frame = frame(&arguments);
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_with_input(BenchmarkId::new("usher", name), &frame, |bench, frame| {
            bench.iter(|| jsonrpc::decode(black_box(frame).clone(), &Limits::CLIENT));
        });
        group.bench_with_input(
            BenchmarkId::new("serde_json tree", name),
            &frame,
            |bench, frame| {
                bench.iter(|| serde_json::from_slice::<serde_json::Value>(black_box(frame)));
            },
        );
        group.bench_with_input(
            BenchmarkId::new("serde_json raw", name),
            &frame,
            |bench, frame| {
                bench.iter(|| serde_json::from_slice::<Envelope<'_>>(black_box(frame)).map(drop));
            },
        );
    }
    group.finish();
}

/// A `tools/call` that every reader here takes.
fn frame(arguments: &str) -> Bytes {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"up_echo","arguments":{arguments}}}}}"#
    );
    let frame = Bytes::from(text);
    jsonrpc::decode(frame.clone(), &Limits::CLIENT).expect("a frame");
    serde_json::from_slice::<Envelope<'_>>(&frame).expect("a frame");
    frame
}

/// One long string with an escape and a letter outside ASCII now and then.
fn text(bytes: usize) -> String {
    let unit = r"The quick brown fox jumps over the lazy dog, \n and then naïvely does it again. ";
    format!(
        r#"{{"text":"{}"}}"#,
        unit.repeat(bytes.div_ceil(unit.len()))
    )
}

/// Many small objects in arrays in objects.
fn nested(bytes: usize) -> String {
    let row =
        r#"{"id":12345,"tags":["a","b",{"deep":[1,2.5,-3e7,{"er":null}]}],"ok":true,"name":"row"}"#;
    let rows = vec![row; bytes.div_ceil(row.len() + 1)];
    format!(r#"{{"rows":[{}]}}"#, rows.join(","))
}

criterion_group!(benches, reading);
criterion_main!(benches);
