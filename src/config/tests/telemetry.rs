//! `telemetry:`: what may be said of it, and what is wrong with the rest.

use secrecy::ExposeSecret;

use super::*;

const UPSTREAM: &str = "upstreams: { x: { url: \"https://x.example/mcp\" } }\n";

fn with(block: &str) -> String {
    format!("{UPSTREAM}telemetry: {{ {block} }}\n")
}

#[test]
fn nothing_said_sends_nothing_and_everything_can_be_said() {
    let spec = Files::with(UPSTREAM).plan().telemetry;
    assert_eq!(
        (spec.service_name, spec.tools, spec.label_sets),
        (None, 100, 2_000)
    );
    assert!(spec.otlp.is_none());
    let files = Files::with(&with(
        "otlp: \"https://otlp.example:4318/in\", service_name: gate, headers: { x-key: \"${env:TOKEN}\" }, sample: 12.5%, \
         interval: 5s, tools: 0, label_sets: 500",
    ));
    let spec = files.plan().telemetry;
    assert_eq!(
        (spec.service_name.as_deref(), spec.tools, spec.label_sets),
        (Some("gate"), 0, 500)
    );
    let otlp = spec.otlp.as_ref().unwrap();
    assert_eq!(otlp.address.to_string(), "https://otlp.example:4318/in");
    assert!((otlp.sample - 0.125).abs() < 1e-9);
    assert_eq!(otlp.interval, std::time::Duration::from_secs(5));
    assert_eq!(otlp.headers[0].0, "x-key");
    assert_eq!(otlp.headers[0].1.expose_secret(), "t0ken-marker-9f");
    assert!(!format!("{spec:?}").contains("t0ken-marker"));
    for default in ["otlp: http://127.0.0.1:4318", "otlp: \"http://[::1]:4318\""] {
        let spec = Files::with(&with(default)).plan().telemetry;
        let otlp = spec.otlp.unwrap();
        assert_eq!(
            (otlp.sample, otlp.interval),
            (1.0, std::time::Duration::from_secs(30))
        );
    }
    let said = "otlp: \"http://127.0.0.1:4318\", protocol: http/protobuf";
    assert!(Files::with(&with(said)).plan().telemetry.otlp.is_some());
    let far = "otlp: http://collector:4318, plain_http: true";
    assert!(Files::with(&with(far)).plan().telemetry.otlp.is_some());
}

#[test]
fn what_is_wrong_with_it_is_said_where_it_stands() {
    for (block, path, message) in [
        ("otlp: http://collector:4318", "otlp", "not this machine"),
        ("otlp: collector", "otlp", "absolute"),
        ("otlp: \"http://127.0.0.1:4317\"", "otlp", "gRPC"),
        (
            "otlp: \"http://127.0.0.1:4318/v1/traces\"",
            "otlp",
            "one signal",
        ),
        ("otlp: \"http://127.0.0.1:4318/?a=b\"", "otlp", "query"),
        (
            "otlp: \"http://127.0.0.1:4318\", sample: 0.5",
            "sample",
            "not a share",
        ),
        (
            "otlp: \"http://127.0.0.1:4318\", interval: 2h",
            "interval",
            "out of range",
        ),
        (
            "otlp: \"http://127.0.0.1:4318\", headers: { x-token: plain }",
            "headers",
            "in the file itself",
        ),
        (
            "otlp: \"http://127.0.0.1:4318\", headers: { host: \"${env:TOKEN}\" }",
            "headers",
            "for the gateway",
        ),
        (
            "otlp: \"http://127.0.0.1:4318\", ca: nonsense",
            "ca",
            "no certificate",
        ),
        ("protocol: grpc", "protocol", "means nothing without"),
        (
            "otlp: \"http://127.0.0.1:4318\", protocol: http/json",
            "protocol",
            "http/json",
        ),
        ("sample: 10%", "sample", "means nothing without"),
        (
            "headers: { x: \"${env:TOKEN}\" }",
            "headers",
            "means nothing without",
        ),
        ("service_name: \"\"", "service_name", "not a name"),
        ("tools: 1000000", "tools", "out of range"),
        ("label_sets: 1", "label_sets", "out of range"),
        ("endpoint: x", "telemetry", "endpoint"),
    ] {
        let problem = only(&with(block));
        assert!(problem.path.contains(path), "{block}: {}", problem.path);
        assert!(
            problem.message.contains(message),
            "{block}: {}",
            problem.message
        );
        assert_eq!(problem.line, 2, "{block}");
        assert!(problem.hint.is_some() || path == "headers", "{block}");
    }
}

#[cfg(not(feature = "grpc"))]
#[test]
fn a_build_without_grpc_says_so_and_how_to_get_it() {
    let problem = only(&with("otlp: \"http://127.0.0.1:4317\", protocol: grpc"));
    assert!(problem.path.contains("protocol"), "{}", problem.path);
    assert!(problem.hint.unwrap().contains("--features grpc"));
}

#[cfg(feature = "grpc")]
#[test]
fn a_receiver_that_speaks_grpc_has_a_host_and_a_port_of_its_own() {
    let spec = Files::with(&with("otlp: \"http://127.0.0.1:4317\", protocol: grpc")).plan();
    let protocol = spec.telemetry.otlp.unwrap().protocol;
    assert_eq!(protocol, crate::telemetry::spec::Protocol::Grpc);
    for (otlp, message) in [
        ("http://127.0.0.1:4318", "4318"),
        ("http://127.0.0.1:4317/in", "no path"),
    ] {
        let problem = only(&with(&format!("otlp: \"{otlp}\", protocol: grpc")));
        assert!(problem.path.contains("otlp"), "{}", problem.path);
        assert!(problem.message.contains(message), "{}", problem.message);
        assert!(problem.hint.is_some());
    }
}
