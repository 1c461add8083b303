//! What does holding a call to its tool's schemas add to a `tools/call` of 1 KB?
//!
//! Budget: a tenth. The same call, arguments and result of 1 KB each in ten properties, with validation and without; as in
//! `call_overhead`, without sockets and with an upstream that answers at once. Beside it, what laying out a schema costs, which
//! is paid once for each text.
#![expect(clippy::expect_used, reason = "what is sent here is well-formed")]

#[expect(dead_code, reason = "shared with benches that use all of it")]
mod gateway;

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use tokio::runtime::Runtime;
use usher::{
    catalog::rules::{OnBroken, Validation},
    json::{Json, Limits},
    schema::{Names, STEPS, Schema},
};

use gateway::{Gateway, META, stateless};

const NAME: &str = "up_tool";

/// Ten properties as tools have them.
const SCHEMA: &str = r##"{"type":"object","required":["query","to","tags"],"additionalProperties":false,"properties":{
    "query":{"type":"string","minLength":1,"maxLength":4000},"limit":{"type":"integer","minimum":1,"maximum":100},
    "exact":{"type":"boolean"},"sort":{"enum":["newest","oldest","best"]},"to":{"$ref":"#/$defs/place"},
    "from":{"anyOf":[{"$ref":"#/$defs/place"},{"type":"null"}]},"tags":{"type":"array","items":{"type":"string"},"maxItems":20},
    "since":{"type":"string","pattern":"^\\d{4}-\\d{2}-\\d{2}$"},"ratio":{"type":"number","minimum":0,"maximum":1},
    "note":{"type":["string","null"]}},
    "$defs":{"place":{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"zip":{"type":"string"}}}}}"##;

fn value() -> String {
    format!(
        r#"{{"query":"{}","limit":20,"exact":true,"sort":"best","to":{{"city":"Bonn","zip":"53111"}},"from":null,"tags":["a","b","c"],"since":"2026-11-21","ratio":0.25,"note":null}}"#,
        "x".repeat(850)
    )
}

fn validating(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("validation");
    let tool = format!(r#"{{"name":"tool","inputSchema":{SCHEMA},"outputSchema":{SCHEMA}}}"#);
    let value = value();
    let result = format!(r#"{{"content":[],"structuredContent":{value}}}"#);
    let body = Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{NAME}","arguments":{value},{META}}}}}"#
    ));
    let headers = stateless("tools/call", Some(NAME));
    let off = Validation {
        arguments: OnBroken::Off,
        results: OnBroken::Off,
    };
    for (name, validation) in [
        ("call, without", off),
        ("call, with", Validation::default()),
    ] {
        let gateway = {
            let _inside = runtime.enter();
            Gateway::validating([tool.clone()].into_iter(), &result, validation)
        };
        let answer = runtime.block_on(gateway.ask(&headers, &body));
        let answer = String::from_utf8(answer.segments.concat()).expect("UTF-8");
        assert!(answer.contains("53111"), "{answer}");
        group.bench_function(name, |bench| {
            bench
                .to_async(&runtime)
                .iter(|| gateway.ask(black_box(&headers), black_box(&body)));
        });
    }
    let json = |text: &str| {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).expect("JSON")
    };
    let (schema, value) = (json(SCHEMA), json(&value));
    group.bench_function("layout", |bench| {
        bench.iter(|| Schema::compile(black_box(schema.root())));
    });
    let schema = Schema::compile(schema.root()).expect("a schema");
    group.bench_function("check", |bench| {
        bench.iter(|| schema.check(black_box(value.root()), STEPS, Names::All));
    });
    group.finish();
}

criterion_group!(benches, validating);
criterion_main!(benches);
