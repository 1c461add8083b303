//! What does one page of `tools/list` cost when 10,000 tools are listed?
//!
//! Budget: what it costs with 500, which is one page: a list is encoded once and then only handed out, whoever asks and
//! however long it is. Two pages are measured, the first and one from a cursor in the middle, which has to be opened.
#![expect(clippy::expect_used, reason = "what is sent here is well-formed")]

mod gateway;

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use http::HeaderMap;
use tokio::runtime::Runtime;

use gateway::{Gateway, META, stateless, tool};

fn listing(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let headers = stateless("tools/list", None);
    let mut group = criterion.benchmark_group("list_at_scale");
    for tools in [500, 10_000] {
        let gateway = {
            let _inside = runtime.enter();
            Gateway::new((0..tools).map(tool), "{}")
        };
        let pages = runtime.block_on(walk(&gateway, &headers));
        assert!(pages.len() >= tools / 500, "{} pages", pages.len());
        for (place, body) in [("first page", 0), ("middle page", pages.len() / 2)]
            .map(|(place, at)| (place, pages[at].clone()))
        {
            group.bench_function(BenchmarkId::new(place, tools), |bench| {
                bench
                    .to_async(&runtime)
                    .iter(|| gateway.ask(black_box(&headers), black_box(&body)));
            });
        }
    }
    group.finish();
}

/// The request of every page, in order.
async fn walk(gateway: &Gateway, headers: &HeaderMap) -> Vec<Bytes> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let body = Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{{cursor}{META}}}}}"#
        ));
        let answer = gateway.ask(headers, &body).await.segments.concat();
        pages.push(body);
        let answer = String::from_utf8(answer).expect("UTF-8");
        assert!(answer.contains("tool_"), "{answer}");
        match answer.rsplit_once(r#""nextCursor":""#) {
            None => return pages,
            Some((_, rest)) => {
                let next = rest.split('"').next().unwrap_or_default();
                cursor = format!(r#""cursor":"{next}","#);
            }
        }
    }
}

criterion_group!(benches, listing);
criterion_main!(benches);
