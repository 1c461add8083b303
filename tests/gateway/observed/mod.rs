//! What is seen of calls: spans that join the caller's with the upstream's, metrics with bounded labels, and no content in either.

mod markers;
mod refused;
mod series;

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use usher::telemetry::Telemetry;

use crate::{
    audit::{recording, records},
    harness::*,
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
/// The caller's span, in `_meta`.
const OWN: &str = "b7ad6b7169203331";
/// What carried the request says that it belongs elsewhere.
const CARRIER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Telemetry of this process's metrics, and of spans of this test alone.
fn watched() -> (Telemetry, InMemorySpanExporter) {
    let exporter = InMemorySpanExporter::default();
    let tracers = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    (metered().with_tracers(tracers), exporter)
}

/// The spans of methods that this begins with, servers' before clients', each in order of its end.
fn spans(exporter: &InMemorySpanExporter, method: &str) -> [Vec<SpanData>; 2] {
    let all = exporter.get_finished_spans().unwrap();
    let of = |kind: SpanKind| {
        let own = all.iter().filter(|span| span.span_kind == kind);
        let own = own.filter(|span| attribute(span, "mcp.method.name").as_deref() == Some(method));
        own.cloned().collect()
    };
    [of(SpanKind::Server), of(SpanKind::Client)]
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|own| own.key.as_str() == key);
    found.map(|own| own.value.to_string())
}

async fn between(notes: &Upstream, pair: Pairing) -> (Gateway, Client, InMemorySpanExporter) {
    let (telemetry, exporter) = watched();
    let gateway = Gateway::of().upstream("notes", notes).observed(telemetry);
    let gateway = gateway.start().await;
    let client = pair.client(&gateway).await;
    (gateway, client, exporter)
}

/// Calls are counted, and nobody gets spans.
async fn without_spans() -> (Gateway, Client, Upstream) {
    let pair = Pairing::MODERN_MODERN;
    let notes = pair.upstream().tools([tool("t")]);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .observed(metered().clone());
    let gateway = gateway.start().await;
    let client = pair.client(&gateway).await;
    (gateway, client, notes)
}

pairings! {
    /// Issue 6, acceptance 4; SECURITY EGR-8; STYLE 3.16
    async fn a_call_is_a_server_span_of_the_callers_trace_and_a_client_span_that_the_upstream_hears_of(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let (_gateway, client, exporter) = between(&notes, pair).await;
        let meta = format!(r#""traceparent":"00-{TRACE}-{OWN}-01","tracestate":"a=1","baggage":"user=1""#);
        let asked = client.call("notes_t", "{}").meta(&meta).header("traceparent", CARRIER).header("baggage", "user=1");
        let answer = asked.await;
        assert_eq!(answer.text(), "called t");

        let [server, asked] = spans(&exporter, "tools/call");
        let ([server], [asked]) = (&server[..], &asked[..]) else { panic!("{server:?} {asked:?}") };
        assert_eq!((&*server.name, &*asked.name), ("tools/call notes_t", "tools/call t"));
        assert_eq!(server.span_context.trace_id().to_string(), TRACE);
        assert_eq!(server.parent_span_id.to_string(), OWN);
        assert!(server.parent_span_is_remote);
        assert_eq!(asked.span_context.trace_id().to_string(), TRACE);
        assert_eq!(asked.parent_span_id, server.span_context.span_id());
        for (span, target, revision) in [(server, "notes_t", pair.client), (asked, "t", pair.upstream)] {
            for (key, value) in [
                ("mcp.protocol.version", revision.as_str()),
                ("gen_ai.operation.name", "execute_tool"),
                ("gen_ai.tool.name", target),
                ("gateway.upstream", "notes"),
                ("network.transport", "tcp"),
            ] {
                assert_eq!(attribute(span, key).as_deref(), Some(value), "{key}");
            }
            assert_eq!((attribute(span, "error.type"), &span.status), (None, &Status::Unset));
        }
        let ids = [server, asked].map(|span| attribute(span, "jsonrpc.request.id").unwrap());
        let told = parse(answer.frames.last().unwrap())["id"].to_string();
        assert_eq!(ids, [told, notes.last("tools/call").id.unwrap()]);

        let heard = notes.last("tools/call");
        let told = format!("00-{TRACE}-{}-01", asked.span_context.span_id());
        assert_eq!(heard.meta("traceparent").as_deref(), Some(&*format!("\"{told}\"")));
        assert_eq!(heard.header("traceparent"), Some(&*told));
        assert_eq!(heard.meta("tracestate").as_deref(), Some(r#""a=1""#));
        assert_eq!(heard.header("tracestate"), Some("a=1"));
        assert_eq!((heard.meta("baggage"), heard.header("baggage")), (None, None));
        assert_eq!(heard.params.matches("traceparent").count(), 1, "{}", heard.params);
    }
}

pairings! {
    /// SECURITY 8
    async fn both_records_of_a_call_name_its_trace_and_its_span(pair: Pairing) {
        let (directory, (telemetry, exporter)) = (tempfile::tempdir().unwrap(), watched());
        let notes = pair.upstream().tools([tool("t")]);
        let gateway = recording(directory.path(), &notes).observed(telemetry).start().await;
        let client = pair.client(&gateway).await;
        client.call("notes_t", "{}").meta(&format!(r#""traceparent":"00-{TRACE}-{OWN}-01""#)).await;
        client.call("notes_t", "{}").await;
        let [server, _] = spans(&exporter, "tools/call");
        assert_eq!(server.len(), 2);
        // Not by stopping it: its metrics are those of all tests.
        let told = eventually("all is on record", || async {
            Some(records(directory.path(), "tools/call")).filter(|told| told.len() == 4)
        })
        .await;
        for record in &told {
            let span = record["trace"]["span"].as_str().unwrap();
            let own = server.iter().find(|own| own.span_context.span_id().to_string() == span).unwrap();
            let trace = own.span_context.trace_id().to_string();
            assert_eq!(record["trace"]["trace"], *trace);
            assert_eq!(record["trace"]["parent"].as_str(), (trace == TRACE).then_some(OWN));
        }
        let stages: Vec<_> = told.iter().map(|record| &record["stage"]).collect();
        assert_eq!(stages, ["decision", "outcome", "decision", "outcome"]);
        assert_eq!(told[0]["trace"], told[1]["trace"]);
        assert_ne!(told[1]["trace"], told[2]["trace"]);
    }
}

pairings! {
    /// SECURITY EGR-8
    async fn a_trace_that_only_a_header_tells_of_goes_on_too_and_without_any_one_begins_here(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let (_gateway, client, exporter) = between(&notes, pair).await;
        let headed = client.call("notes_t", "{}").header("traceparent", CARRIER).header("tracestate", "b=2");
        assert_eq!(headed.await.text(), "called t");
        assert_eq!(notes.last("tools/call").meta("tracestate").as_deref(), Some(r#""b=2""#));
        assert_eq!(client.call("notes_t", "{}").meta(r#""traceparent":"00-1","tracestate":"a=1""#).await.text(), "called t");
        let heard = notes.last("tools/call");
        let [server, asked] = spans(&exporter, "tools/call");
        assert_eq!((server.len(), asked.len()), (2, 2));
        assert_eq!(server[0].span_context.trace_id().to_string(), &CARRIER[3..35]);
        assert_eq!(server[0].parent_span_id.to_string(), &CARRIER[36..52]);
        // What is malformed is nobody's trace.
        assert_eq!(server[1].parent_span_id.to_string(), "0".repeat(16));
        assert_eq!(asked[1].span_context.trace_id(), server[1].span_context.trace_id());
        let told = format!("00-{}-{}-01", asked[1].span_context.trace_id(), asked[1].span_context.span_id());
        assert_eq!(heard.header("traceparent"), Some(&*told));
        assert_eq!((heard.meta("tracestate"), heard.header("tracestate")), (None, None));
    }
}

pairings! {
    /// STYLE 3.16
    async fn what_goes_wrong_is_told_by_its_class_and_names_that_nobody_offers_are_not_repeated(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t"), tool("odd"), tool("bad")]).on("tools/call", |heard| {
            match heard.text("name").as_deref() {
                Some("t") => Play::Result(r#"{"content":[],"isError":true}"#.into()),
                Some("odd") => Play::Error(r#"{"code":-12345,"message":"mk-words"}"#.into()),
                _ => Play::Error(r#"{"code":-32602,"message":"mk-words"}"#.into()),
            }
        });
        let (_gateway, client, exporter) = between(&notes, pair).await;
        for name in ["notes_t", "notes_odd", "notes_bad", "notes_mk-name"] {
            client.call(name, "{}").await;
        }
        client.read("mk-uri://nowhere").await;
        let [server, asked] = spans(&exporter, "tools/call");
        let told = |spans: &[SpanData]| -> Vec<_> {
            let of = |span: &SpanData| {
                assert!(matches!(span.status, Status::Error { .. }), "{span:?}");
                (span.name.to_string(), attribute(span, "error.type").unwrap(), attribute(span, "rpc.response.status_code"))
            };
            spans.iter().map(of).collect()
        };
        let row = |name: &str, error: &str, code: Option<&str>| (name.to_owned(), error.to_owned(), code.map(str::to_owned));
        assert_eq!(told(&asked), [
            row("tools/call t", "tool_error", None),
            row("tools/call odd", "_OTHER", Some("-12345")),
            row("tools/call bad", "-32602", Some("-32602")),
        ]);
        let server = told(&server);
        assert_eq!(server[..3], [
            row("tools/call notes_t", "tool_error", None),
            row("tools/call notes_odd", "_OTHER", Some("-12345")),
            row("tools/call notes_bad", "-32602", Some("-32602")),
        ]);
        assert_eq!((server.len(), &*server[3].0, &*server[3].1), (4, "tools/call", "denied"));
        let all = format!("{:?}", exporter.get_finished_spans().unwrap());
        assert!(!all.contains("mk-"), "{all}");
    }
}

#[tokio::test]
async fn a_call_that_its_client_gives_up_is_told_as_cancelled_once_on_either_side() {
    let pair = Pairing::MODERN_MODERN;
    let notes = pair
        .upstream()
        .tools([tool("t")])
        .on("tools/call", |_| Play::Hang);
    let (_gateway, client, exporter) = between(&notes, pair).await;
    let asking = client.call("notes_t", "{}").into_future();
    tokio::select! {
        answer = asking => panic!("{answer:?}"),
        _ = notes.until_heard("tools/call", 1) => {}
    }
    let [server, asked] = eventually("both spans end", || async {
        let spans = spans(&exporter, "tools/call");
        spans.iter().all(|spans| spans.len() == 1).then_some(spans)
    })
    .await;
    for span in [&server[0], &asked[0]] {
        assert_eq!(attribute(span, "error.type").as_deref(), Some("cancelled"));
    }
}

#[tokio::test]
async fn without_spans_a_trace_that_a_header_tells_of_goes_on_as_a_child_of_the_callers_own() {
    let (_gateway, client, notes) = without_spans().await;
    let asked = client.call("notes_t", "{}").header("traceparent", CARRIER);
    assert_eq!(asked.await.text(), "called t");
    let told = notes.last("tools/call");
    let told = told.header("traceparent").unwrap();
    assert_eq!((&told[..35], &told[52..]), (&CARRIER[..35], "-01"));
    assert_ne!(told, CARRIER);
}

#[tokio::test]
async fn what_is_answered_in_one_turn_of_a_connection_took_time_too() {
    let (_gateway, client, _notes) = without_spans().await;
    let seconds = || {
        let text = String::from_utf8(metered().metrics_text()).unwrap();
        let sums = text.lines().filter(|line| {
            line.starts_with("mcp_server_operation_duration_seconds_sum")
                && line.contains(r#"mcp_method_name="resources/templates/list""#)
        });
        let sums = sums.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        sums.sum::<f64>()
    };
    let before = seconds();
    for _ in 0..8 {
        assert_eq!(
            client.ask("resources/templates/list", "{}").await.status,
            200
        );
    }
    assert!(seconds() > before);
}
