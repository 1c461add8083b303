//! What does the gateway add to one `tools/call`, by the size of what is carried and by the client's era?
//!
//! Budget: 10 µs at 1 KB; beyond that, what reading the bytes costs (see `codec`) and at most one copy of the result. From the
//! message's bytes through decoding, dialect, stack and wording to the answer's bytes; no sockets, and an upstream that
//! answers at once, so what a peer does to send is not in it.
#![expect(clippy::expect_used, reason = "what is sent here is well-formed")]

mod gateway;

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use http::HeaderMap;
use tokio::runtime::Runtime;

use gateway::{Gateway, META, headers, stateless, tool};

const NAME: &str = "up_tool_3";

fn calling(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("call_overhead");
    for (size, bytes) in [
        ("1 KB", 1 << 10),
        ("10 KB", 10 << 10),
        ("100 KB", 100 << 10),
    ] {
        let text = "x".repeat(bytes);
        let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
        let gateway = {
            let _inside = runtime.enter();
            Gateway::new((0..20).map(tool), &result)
        };
        let call = |more: &str| {
            Bytes::from(format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{NAME}","arguments":{{"query":"{text}"}}{more}}}}}"#
            ))
        };
        for (era, headers, body) in [
            (
                "stateless",
                stateless("tools/call", Some(NAME)),
                call(&format!(",{META}")),
            ),
            ("handshake", runtime.block_on(session(&gateway)), call("")),
        ] {
            let answer = runtime
                .block_on(gateway.ask(&headers, &body))
                .segments
                .concat();
            let answer = String::from_utf8(answer).expect("UTF-8");
            assert!(answer.contains(&text), "{answer}");
            group.throughput(Throughput::Bytes((body.len() + answer.len()) as u64));
            group.bench_function(BenchmarkId::new(era, size), |bench| {
                bench
                    .to_async(&runtime)
                    .iter(|| gateway.ask(black_box(&headers), black_box(&body)));
            });
        }
    }
    group.finish();
}

/// The headers of a client of the handshake era, in a session of its own.
async fn session(gateway: &Gateway) -> HeaderMap {
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    let body = Bytes::from_static(body.as_bytes());
    let told = gateway.ask(&headers(&[]), &body).await;
    let mut headers = headers(&[("mcp-protocol-version", "2025-11-25")]);
    headers.insert("mcp-session-id", told.session.expect("a session"));
    headers
}

criterion_group!(benches, calling);
criterion_main!(benches);
