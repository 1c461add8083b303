//! Usher between a client and servers of Python's `mcp` 2.x, all of them watched (issue 6, acceptance 4 and 6).
//! One trace over all hops, and metrics that a parser of Prometheus' own reads.
//!
//! The receiver of OTLP is made of the published protobufs, in Python too: nothing here decodes with what encoded.

use std::{fs, process::Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    time::{Duration, timeout},
};

use crate::{
    client::{Client, peers, venv},
    servers::{World, free_port, wait_for},
    usher::Usher,
};

const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "mk-otlp-token-4d1";
const ARGUMENT: &str = "mk-argument-4d1";
const BAGGAGE: &str = "mk-baggage-4d1";
/// The upstreams: the era each is spoken to in, and whether over HTTP.
const UPSTREAMS: [(&str, &str, bool); 4] = [
    ("old", "2025-11-25", true),
    ("new", "2026-07-28", true),
    ("oldpipe", "2025-11-25", false),
    ("newpipe", "2026-07-28", false),
];

#[tokio::test]
async fn one_trace_joins_client_gateway_and_server_in_either_era_and_parsers_read_the_metrics() {
    watched("http").await;
}

/// Issue 6: gRPC as a feature. Only what the gateway itself sends goes another way.
#[cfg(feature = "grpc")]
#[tokio::test]
async fn the_same_is_told_to_a_receiver_that_speaks_grpc() {
    watched("grpc").await;
}

#[cfg(feature = "grpc")]
#[tokio::test]
async fn the_same_is_told_to_a_receiver_that_speaks_grpc_over_tls() {
    watched("grpcs").await;
}

/// `carrier`: how the gateway itself tells the receiver.
async fn watched(carrier: &str) {
    let world = World::new().await;
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("issued");
    fs::write(world.path("receiver.pem"), issued.cert.pem()).expect("written");
    let key = issued.signing_key.serialize_pem();
    fs::write(world.path("receiver.key"), key).expect("written");
    let (addresses, _receiving) = receiver(&world).await;
    let receiver = addresses["http"].as_str().expect("text").to_owned();
    let (server, _serving) = server(&receiver).await;
    let (port, admin) = (free_port(), free_port());
    let telemetry = match carrier {
        "http" => json!({"otlp": receiver}),
        "grpc" => json!({"otlp": addresses[carrier], "protocol": "grpc"}),
        _ => {
            let ca = format!("${{file:{}}}", world.path("receiver.pem"));
            json!({"otlp": addresses[carrier], "protocol": "grpc", "ca": ca})
        }
    };
    let file = configure(&world, telemetry, &server, port, admin);
    let variables = [("OTLP_TOKEN", TOKEN), ("OTLP_RECEIVER", receiver.as_str())];
    let usher = Usher::serve(&world, &file, port, &variables).await;
    usher.wait_until_it_lists([12, 4, 0, 0]).await;

    let mut calls = 0;
    for (era, revision) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let steps = UPSTREAMS.iter().flat_map(|(key, ..)| steps(key));
        let steps: Vec<Value> = steps.collect();
        let client = Client::watched(&receiver).era(era);
        let results = client.run(usher.connection(), &steps).await;
        for (step, result) in steps.iter().zip(&results) {
            assert!(result.get("ok").is_some(), "{step}: {result}");
        }
        for ((key, _, http), results) in UPSTREAMS.iter().zip(results.chunks(4)) {
            let told = results[1]["ok"]["content"][0]["text"]
                .as_str()
                .expect("text");
            let told: Value = serde_json::from_str(told).expect("JSON");
            let parent = &told[0]["traceparent"];
            assert!(
                parent.is_string() && told[0].get("baggage").is_none(),
                "{key}: {told}"
            );
            let headers = if *http {
                json!({"traceparent": parent})
            } else {
                json!({})
            };
            assert_eq!(
                told[1], headers,
                "{key}: the headers say what the body says"
            );
        }
        calls += steps.len();
        let spans = spans(&receiver, calls).await;
        for (key, upstream, http) in UPSTREAMS {
            for (name, target) in [
                ("tools/call", "echo"),
                ("tools/call", "fail"),
                ("prompts/get", "greet"),
            ] {
                let outward = format!("{name} {key}_{target}");
                let revisions = [revision, upstream];
                joined(
                    &spans,
                    &outward,
                    &format!("{name} {target}"),
                    revisions,
                    http,
                );
            }
        }
    }
    let read = exposition(admin).await;
    usher.stop().await;
    let told = told(&receiver).await;
    conventional(&read, &told);

    let headers = told["headers"].as_array().expect("a list").iter();
    let own = headers.filter(|of| of["authorization"] == format!("Bearer {TOKEN}"));
    assert!(own.count() > 2, "configured headers are sent");
    let log = fs::read_to_string(world.path("usher.log")).expect("a log");
    let own = |span: &&Value| span["service"] == "usher";
    let spans = told["spans"].as_array().expect("a list").iter().filter(own);
    let spans: Vec<&Value> = spans.collect();
    for (what, text) in [
        ("the log", log),
        ("metrics", read["text"].to_string()),
        ("metrics sent", told["metrics"].to_string()),
        ("spans", json!(spans).to_string()),
    ] {
        for marker in [TOKEN, ARGUMENT, BAGGAGE] {
            assert!(!text.contains(marker), "{marker} in {what}");
        }
    }
}

fn steps(key: &str) -> [Value; 4] {
    let call = |tool: &str, arguments: Value| json!({"op": "call", "name": format!("{key}_{tool}"), "arguments": arguments});
    [
        call("echo", json!({"text": ARGUMENT})),
        call("luggage", json!({})),
        call("fail", json!({"text": ARGUMENT})),
        json!({"op": "get_prompt", "name": format!("{key}_greet"), "arguments": {"name": ARGUMENT}}),
    ]
}

/// Client span, the gateway's two, the server's: each the parent of the next, in one trace; `revisions` are those of both hops.
fn joined(spans: &[Value], outward: &str, inward: &str, revisions: [&str; 2], http: bool) {
    let find = |what: &dyn Fn(&&Value) -> bool| -> Option<&Value> { spans.iter().rev().find(what) };
    let child = |of: &Value, service: &str, kind: &str| {
        find(&|span: &&Value| {
            span["service"] == service
                && span["kind"] == kind
                && span["parent"] == of["span"]
                && span["trace"] == of["trace"]
        })
        .unwrap_or_else(|| panic!("{service} has no {kind} below {of}"))
    };
    let sent = format!("MCP send {outward}");
    let client = find(&|span: &&Value| span["service"] == "client" && span["name"] == sent);
    let client = client.unwrap_or_else(|| panic!("no span `{sent}`"));
    let served = child(client, "usher", "SPAN_KIND_SERVER");
    let asked = child(served, "usher", "SPAN_KIND_CLIENT");
    let answered = child(asked, "upstream", "SPAN_KIND_SERVER");
    assert_eq!(served["name"], outward);
    assert_eq!(
        (&asked["name"], &answered["name"]),
        (&json!(inward), &json!(inward))
    );
    for (span, revision) in [
        (served, revisions[0]),
        (asked, revisions[1]),
        (answered, revisions[1]),
    ] {
        assert_eq!(
            span["attributes"]["mcp.protocol.version"], revision,
            "{span}"
        );
        let failed = inward.ends_with("fail").then_some("tool_error");
        assert_eq!(
            span["attributes"].get("error.type").and_then(Value::as_str),
            failed,
            "{span}"
        );
        let status = if failed.is_some() {
            "STATUS_CODE_ERROR"
        } else {
            "STATUS_CODE_UNSET"
        };
        assert_eq!(span["status"], status, "{span}");
    }
    let transport = if http { "tcp" } else { "pipe" };
    assert_eq!(asked["attributes"]["network.transport"], transport);
    // What both say of the same call they say in the same words.
    for (key, value) in asked["attributes"].as_object().expect("an object") {
        let ours = key.starts_with("gateway.") || key == "network.transport";
        assert!(
            ours || answered["attributes"][key] == *value,
            "{key} of {asked}"
        );
    }
    let length = |span: &Value| span["nanoseconds"].as_u64().expect("a number");
    assert!(
        length(served) >= length(asked) && length(asked) > 0,
        "{served} {asked}"
    );
}

/// Names, units and kinds are those of the conventions, in what is scraped and in what is sent.
fn conventional(read: &Value, told: &Value) {
    for name in [
        "mcp.server.operation.duration",
        "mcp.client.operation.duration",
    ] {
        let wanted = &read["conventions"][name];
        let sent = &told["metrics"][name];
        assert_eq!(
            (&sent["kind"], &sent["unit"]),
            (&wanted["kind"], &wanted["unit"]),
            "{name}"
        );
        let bounds = json!([
            0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0
        ]);
        assert_eq!(sent["points"][0]["bounds"], bounds, "{name}");
        let scraped = &read["families"][format!("{}_seconds", name.replace('.', "_"))];
        assert_eq!(scraped["kind"], "histogram", "{name}");
        for (key, upstream) in UPSTREAMS.map(|(key, ..)| ("gateway_upstream", key)) {
            let samples = scraped["samples"].as_array().expect("a list").iter();
            let own = samples.filter(|sample| sample["labels"][key] == upstream);
            let own = own.filter(|sample| sample["labels"]["mcp_method_name"] == "tools/call");
            let counted = own.filter(|sample| {
                sample["name"]
                    .as_str()
                    .is_some_and(|name| name.ends_with("_count"))
            });
            let all: f64 = counted.filter_map(|sample| sample["value"].as_f64()).sum();
            assert!((all - 6.0).abs() < 0.5, "{name} of {upstream}: {all}");
        }
    }
    assert_eq!(told["resources"][0]["service.name"], "usher");
    let taken = &read["families"]["otel_sdk_exporter_span_exported"]["samples"][0];
    assert!(taken["value"].as_f64().expect("a number") > 60.0, "{taken}");
    assert!(taken["labels"].get("error_type").is_none(), "{taken}");
    let sent = &read["families"]["otel_sdk_processor_span_processed"]["samples"];
    let sent = sent.as_array().expect("spans are counted").iter();
    let dropped = sent
        .clone()
        .filter(|sample| sample["labels"].get("error_type").is_some());
    let sum = |samples: &mut dyn Iterator<Item = &Value>| -> f64 {
        samples.filter_map(|sample| sample["value"].as_f64()).sum()
    };
    assert!(sum(&mut sent.clone()) > 60.0 && sum(&mut dropped.clone()) < 0.5);
    // Everything that is sent can be scraped, under the name that Prometheus has for it.
    for (name, metric) in told["metrics"].as_object().expect("an object") {
        let mut name = name.replace('.', "_");
        match metric["unit"].as_str() {
            Some("s") => name.push_str("_seconds"),
            Some("By") => name.push_str("_bytes"),
            _ => {}
        }
        let family = read["families"].get(&name);
        assert!(family.is_some(), "{name} is not scraped");
        let kind = match metric["kind"].as_str() {
            Some("sum") => "counter",
            Some(kind) => kind,
            None => "none",
        };
        assert_eq!(family.expect("it is there")["kind"], kind, "{name}");
    }
}

fn configure(world: &World, mut telemetry: Value, server: &str, port: u16, admin: u16) -> String {
    telemetry["interval"] = json!("1s");
    telemetry["headers"] = json!({"authorization": "Bearer ${env:OTLP_TOKEN}"});
    let program = peers().join("observed/server.py");
    let upstreams = UPSTREAMS.map(|(key, revision, http)| {
        let mut upstream = json!({"protocol": revision, "timeout": {"connect": "30s"}});
        if http {
            upstream["url"] = json!(server);
        } else {
            upstream["command"] = json!([venv("python"), program]);
            upstream["env"] = json!({"OTLP_RECEIVER": "${env:OTLP_RECEIVER}"});
        }
        (key.to_owned(), upstream)
    });
    let configuration = json!({
        "listen": {"address": format!("127.0.0.1:{port}")},
        "admin": {"address": format!("127.0.0.1:{admin}")},
        "audit": "off",
        "telemetry": telemetry,
        "upstreams": upstreams.into_iter().collect::<serde_json::Map<_, _>>(),
    });
    let file = world.path("observed.yaml");
    // JSON is YAML.
    fs::write(&file, configuration.to_string()).expect("the world can be written to");
    file
}

/// A receiver, and its addresses by how it is spoken to there.
async fn receiver(world: &World) -> (Value, Child) {
    let mut command = Command::new(venv("python"));
    command
        .arg(peers().join("observed/receiver.py"))
        .args(["receiver.pem", "receiver.key"].map(|file| world.path(file)));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let output = child.stdout.take().expect("its output is a pipe");
    let mut line = String::new();
    let read = BufReader::new(output).read_line(&mut line).await;
    read.expect("it says its address");
    let ready: Value = serde_json::from_str(&line).expect("in JSON");
    (ready, child)
}

async fn server(receiver: &str) -> (String, Child) {
    let port = free_port();
    let mut command = Command::new(venv("python"));
    command
        .arg(peers().join("observed/server.py"))
        .arg(port.to_string())
        .env("OTLP_RECEIVER", receiver);
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = quiet.kill_on_drop(true).spawn().expect("it starts");
    wait_for(port).await;
    (format!("http://127.0.0.1:{port}/mcp"), child)
}

/// All spans, as soon as the gateway's of so many calls have come: they wait for others a while.
async fn spans(receiver: &str, calls: usize) -> Vec<Value> {
    let mut every = tokio::time::interval(Duration::from_millis(250));
    let all = async {
        loop {
            every.tick().await;
            let told = told(receiver).await;
            let spans = told["spans"].as_array().expect("a list").clone();
            let of = |kind: &str| {
                let own = spans.iter().filter(|span| span["service"] == "usher");
                let own = own.filter(|span| span["kind"] == kind);
                let called = |span: &&Value| {
                    let method = span["attributes"]["mcp.method.name"].as_str();
                    matches!(method, Some("tools/call" | "prompts/get"))
                };
                own.filter(called).count()
            };
            if of("SPAN_KIND_SERVER") >= calls && of("SPAN_KIND_CLIENT") >= calls {
                return spans;
            }
        }
    };
    timeout(PATIENCE, all).await.expect("spans come")
}

async fn told(receiver: &str) -> Value {
    let program =
        "import sys,urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())";
    let mut command = Command::new(venv("python"));
    command
        .args(["-c", program])
        .arg(format!("{receiver}/told"));
    let output = command.output().await.expect("python runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What Prometheus' own parser makes of the metrics at the admin listener.
async fn exposition(admin: u16) -> Value {
    let program =
        "import sys,urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())";
    let mut command = Command::new(venv("python"));
    command
        .args(["-c", program])
        .arg(format!("http://127.0.0.1:{admin}/metrics"));
    let text = command.output().await.expect("python runs");
    assert!(text.status.success(), "{text:?}");
    let mut command = Command::new(venv("python"));
    command.arg(peers().join("observed/exposition.py"));
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.spawn().expect("python runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&text.stdout).await.expect("it reads");
    drop(input);
    let output = child.wait_with_output().await.expect("it ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&text.stdout)
    );
    let mut read: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    read["text"] = json!(String::from_utf8_lossy(&text.stdout));
    read
}
