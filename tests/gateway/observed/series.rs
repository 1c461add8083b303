//! How many series there are, and that what is made for them names what there is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use futures_util::{StreamExt, stream};
use opentelemetry::trace::{Span as _, Tracer as _, TracerProvider as _};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, InMemorySpanExporter, SdkTracerProvider,
};
use regex::Regex;
use serde_json::Value;
use usher::{
    fetch::Address,
    metrics::{
        Operation, Refusal, RuleLabels, Side, calls, instruments,
        state::{
            self, AuditMoment, CertificateMoment, Moment, RuleMoment, SinkMoment, UpstreamMoment,
        },
    },
    protocol::UpstreamId,
    spans::About,
    telemetry::{
        Telemetry,
        spec::{OtlpSpec, Protocol, TelemetrySpec},
    },
};

use super::*;

/// What ten thousand principals on five thousand tools may come to; see `usher::telemetry`.
const MOST: usize = 10_000;

/// Issue 6, acceptance 5
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_principals_on_five_thousand_tools_make_less_than_ten_thousand_series() {
    let tools: Vec<String> = (0..5_000)
        .map(|number| tool(&format!("t{number}")))
        .collect();
    let many = Upstream::http(Revision::V2026_07_28).tools(tools);
    let authority = Authority::start().await;
    let gateway = Gateway::of()
        .upstream("many", &many)
        .auth(authority.spec())
        .observed(metered().clone())
        .start()
        .await;
    let called = stream::iter(0..10_000)
        .map(|number: usize| {
            let token = authority.token(&format!("user-{number}"), "");
            let address = gateway.address;
            async move {
                let headers = [("authorization", format!("Bearer {token}"))];
                let revision = Revision::V2026_07_28;
                let client = Client::connect_with(address, "/mcp", revision, "{}", &headers).await;
                let name = format!("many_t{}", number % 5_000);
                let answer = client.unwrap().call(&name, "{}").await;
                usize::from(answer.status == 200 && answer.text().starts_with("called"))
            }
        })
        .buffer_unordered(64)
        .fold(0, |all, one| async move { all + one })
        .await;
    assert_eq!(called, 10_000);
    let text = String::from_utf8(metered().metrics_text()).unwrap();
    // Other tests of this process have upstreams of their own, which are no part of this.
    let ours = |line: &&str| {
        !line.starts_with('#')
            && (line.contains(r#"gateway_upstream="many""#) || !line.contains("gateway_upstream="))
    };
    let series = text.lines().filter(ours).count();
    assert!(series < MOST, "{series} series");
    // All of them were counted, by a hundred names and the rest.
    let name = r#"gateway_upstream="many",gen_ai_operation_name="execute_tool",gen_ai_tool_name=""#;
    let counts = text.lines().filter(|line| {
        line.starts_with("mcp_server_operation_duration_seconds_count") && line.contains(name)
    });
    let counts: Vec<&str> = counts.collect();
    assert!(counts.len() <= 101, "{}", counts.len());
    // Other tests of this process may have taken some of the hundred; each that is left has its buckets.
    let least = counts.len() * 10;
    assert!(series > least, "{series} series: something is not counted");
    let all = counts.iter().filter_map(|line| line.rsplit_once(' '));
    let all: u64 = all.map(|(_, count)| count.parse::<u64>().unwrap()).sum();
    assert_eq!(all, 10_000);
    assert!(!text.contains("user-"), "a principal is a label");
}

#[test]
fn what_a_sink_of_records_never_got_is_counted_by_why() {
    let held = Telemetry::new(&TelemetrySpec::default()).unwrap();
    state::observe(&held.meter(), || {
        Some(Moment {
            audit: Some(AuditMoment {
                sinks: vec![SinkMoment {
                    name: "otlp".into(),
                    lag: 0,
                    failing: false,
                    lost: [3, 1],
                }],
                ..AuditMoment::default()
            }),
            ..Moment::default()
        })
    });
    let text = String::from_utf8(held.metrics_text()).unwrap();
    for (outcome, count) in [("removed", 3), ("refused", 1)] {
        let line = text.lines().find(|line| {
            line.starts_with("usher_audit_sink_lost_total{")
                && line.contains(r#"usher_sink="otlp""#)
                && line.contains(&format!(r#"usher_outcome="{outcome}""#))
        });
        assert!(line.unwrap().ends_with(&format!(" {count}")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_and_label_that_the_board_and_the_alerts_name_is_in_the_exposition() {
    let mut texts = expositions();
    texts.push(of_lost_spans().await);
    let there = named_and_labelled(texts);
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    let board = fs::read_to_string(deploy.join("grafana/usher.json")).unwrap();
    let board: Value = serde_json::from_str(&board).unwrap();
    let mut expressions = Vec::new();
    for panel in board["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        expressions.extend(targets.map(|target| target["expr"].as_str().unwrap().to_owned()));
    }
    for variable in board["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["definition"].as_str() {
            let (metric, label) = query
                .strip_prefix("label_values(")
                .and_then(|query| query.strip_suffix(')')?.split_once(", "))
                .unwrap();
            expressions.push(format!("{metric}{{{label}=\"\"}}"));
        }
    }
    assert!(expressions.len() > 40, "{}", expressions.len());
    let alerts = fs::read_to_string(deploy.join("prometheus/alerts.yaml")).unwrap();
    let before = expressions.len();
    expressions.extend(rules(&alerts));
    assert!(expressions.len() - before > 15);
    let mut named = BTreeSet::new();
    for expression in &expressions {
        for (metric, labels) in named_in(expression) {
            let known = there
                .get(&metric)
                .unwrap_or_else(|| panic!("`{metric}` is nowhere: {expression}"));
            for label in labels {
                let own = known.contains(&label);
                assert!(
                    own || label == "le",
                    "`{metric}` has no `{label}`: {expression}"
                );
            }
            named.insert(metric);
        }
    }
    assert!(named.len() > 30, "{named:?}");
    // And the other way round: nothing is kept that nobody looks at.
    for metric in there.keys() {
        let family = metric.trim_end_matches("_bucket").trim_end_matches("_sum");
        let family = family.trim_end_matches("_count");
        let shown = named.iter().any(|named| named.starts_with(family));
        assert!(
            shown || metric == "target_info",
            "`{metric}` is on no board"
        );
    }
}

/// What is said when nobody takes spans.
async fn of_lost_spans() -> Vec<u8> {
    // Bound and never listened at: whoever dials it is refused.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", nobody.local_addr().unwrap());
    let telemetry = Telemetry::new(&TelemetrySpec {
        otlp: Some(OtlpSpec {
            address: Address::configured(&address, false).unwrap(),
            protocol: Protocol::HttpProtobuf,
            headers: Vec::new(),
            ca: None,
            interval: std::time::Duration::from_secs(3_600),
            sample: 1.0,
        }),
        ..TelemetrySpec::default()
    });
    let telemetry = telemetry.unwrap();
    let about = About {
        method: "tools/list",
        ..About::default()
    };
    // As many as are sent at once, and some.
    for _ in 0..1_000 {
        telemetry
            .spans()
            .served(&about, None)
            .unwrap()
            .end(None, None);
    }
    let said = async {
        loop {
            let text = telemetry.metrics_text();
            if String::from_utf8_lossy(&text).contains("otel_sdk_exporter_span_exported_total{") {
                return text;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let patience = std::time::Duration::from_secs(30);
    tokio::time::timeout(patience, said)
        .await
        .expect("they are counted")
}

/// What is said of everything else that there can be.
fn expositions() -> Vec<Vec<u8>> {
    let mut texts = vec![metered().metrics_text()];
    let upstream = UpstreamId::parse("x").unwrap();
    for error in [None, Some("timeout")] {
        let operation = Operation {
            method: "tools/call",
            revision: Some(Revision::V2026_07_28),
            upstream: Some(&upstream),
            tool: Some(&"x_t".into()),
            error,
        };
        calls::served(&operation, std::time::Duration::ZERO);
        calls::asked(&operation, std::time::Duration::ZERO);
    }
    calls::session_served(Revision::V2025_11_25, std::time::Duration::ZERO);
    calls::session_held(&upstream, Revision::V2025_11_25, std::time::Duration::ZERO);
    let all = instruments();
    let rule = RuleLabels::of("a rule");
    all.refused(&rule, Refusal::Rate);
    all.waited(&rule, 0.1);
    all.overflowed(&rule);
    all.found("secret", "a rule", "redact", 1);
    all.invalid(Side::Result, "flag");
    all.changed("x", "watch");
    all.turned_away("credential_invalid");
    usher::metrics::reached(usher::metrics::Bound::HttpBody);
    usher::metrics::panicked();
    // Spans that are sent, and, where there is room for one of them, some that are not.
    let config = BatchConfigBuilder::default().with_max_queue_size(1).build();
    let processor = BatchSpanProcessor::builder(InMemorySpanExporter::default())
        .with_batch_config(config)
        .build();
    let tracers = SdkTracerProvider::builder()
        .with_span_processor(processor)
        .build();
    let tracer = tracers.tracer("usher");
    (0..10_000).for_each(|_| tracer.start("one").end());
    texts.push(metered().metrics_text());
    let held = Telemetry::new(&TelemetrySpec::default()).unwrap();
    state::observe(&held.meter(), || {
        Some(Moment {
            upstreams: vec![UpstreamMoment {
                key: "x".into(),
                state: "ready",
                awaits: false,
                failures: 0,
                restarts: 0,
                dropped_frames: 0,
                calls: [0; 3],
                items: vec![("tools", 1)],
                reports: 0,
                refreshes: [0; 2],
            }],
            rules: vec![RuleMoment {
                name: "a rule".into(),
                admitted: 0,
                keys: 0,
            }],
            certificates: vec![CertificateMoment {
                key: "listen.tls.cert".into(),
                end: 1_795_630_967,
            }],
            audit: Some(AuditMoment {
                sinks: vec![SinkMoment {
                    name: "stdout".into(),
                    lag: 0,
                    failing: false,
                    lost: [3, 1],
                }],
                ..AuditMoment::default()
            }),
            ..Moment::default()
        })
    });
    texts.push(held.metrics_text());
    texts
}

/// Every metric in these, with the labels that it has.
fn named_and_labelled(texts: Vec<Vec<u8>>) -> BTreeMap<String, BTreeSet<String>> {
    let line = Regex::new(r"^([a-z_]+)(?:\{(.*)\})? \S+$").unwrap();
    let label = Regex::new(r#"([a-z_]+)=""#).unwrap();
    let mut there: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for text in texts {
        let text = String::from_utf8(text).unwrap();
        for found in text.lines().filter_map(|text| line.captures(text)) {
            let labels = found.get(2).map_or("", |labels| labels.as_str());
            let labels = label.captures_iter(labels).map(|label| label[1].to_owned());
            there.entry(found[1].to_owned()).or_default().extend(labels);
        }
    }
    there
}

/// The metrics that an expression names, each with the labels that it is asked for by.
fn named_in(expression: &str) -> Vec<(String, BTreeSet<String>)> {
    let grouped = Regex::new(r"\b(?:by|on) \(([^)]*)\)").unwrap();
    let selected = Regex::new(r"\b((?:usher|mcp|otel_sdk)_[a-z_]+)(\{[^}]*\})?").unwrap();
    let label = Regex::new(r"\b([a-z_]+) ?(?:=~|!=|=|!~)").unwrap();
    let mut groups = BTreeSet::new();
    let rest = grouped.replace_all(expression, |found: &regex::Captures<'_>| {
        groups.extend(found[1].split(',').map(|label| label.trim().to_owned()));
        ""
    });
    // What Prometheus adds to all it scrapes.
    groups.retain(|label| !matches!(label.as_str(), "job" | "instance" | "__name__"));
    let mut named = Vec::new();
    for found in selected.captures_iter(&rest) {
        let own = found.get(2).map_or("", |own| own.as_str());
        let mut labels: BTreeSet<_> = label
            .captures_iter(own)
            .map(|label| label[1].to_owned())
            .collect();
        labels.extend(groups.iter().cloned());
        named.push((found[1].to_owned(), labels));
    }
    named
}

/// The expressions of alert rules; of a block, its lines.
fn rules(yaml: &str) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    let mut inside = false;
    for line in yaml.lines() {
        if let Some(expression) = line.trim().strip_prefix("expr:") {
            rules.push(expression.trim().trim_start_matches('|').to_owned());
            inside = expression.trim() == "|";
        } else if inside && line.starts_with("          ") {
            let last = rules.last_mut().unwrap();
            last.push(' ');
            last.push_str(line.trim());
        } else {
            inside = false;
        }
    }
    rules
}
