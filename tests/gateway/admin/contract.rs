//! The document is true: every operation of it answers as it says.

use std::collections::BTreeSet;

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use usher::{admin::document, tasks::Tasks};

use super::{OPERATOR, Plane, plane};
use crate::harness::{
    Answer, Gateway, PATIENCE, Revision, Upstream, open, parse, resource, tool, within,
};

/// What each operation is asked with, in an order that leaves something for the next: identifier, path, body.
pub(super) const ASKED: &[(&str, &str, &str)] = &[
    ("healthz", "/healthz", ""),
    ("readyz", "/readyz", ""),
    ("metrics", "/metrics", ""),
    ("document", "/api/openapi.json", ""),
    ("status", "/api/status", ""),
    ("list_upstreams", "/api/upstreams?limit=1", ""),
    ("show_upstream", "/api/upstreams/notes", ""),
    ("refresh_upstream", "/api/upstreams/notes/refresh", "{}"),
    ("search_catalog", "/api/catalog?limit=2&q=t", ""),
    ("show_item", "/api/catalog/item?kind=tool&name=notes_t", ""),
    ("list_findings", "/api/findings", ""),
    ("list_sessions", "/api/sessions", ""),
    ("end_session", "/api/sessions/SESSION/end", "{}"),
    ("list_streams", "/api/streams", ""),
    ("end_stream", "/api/streams/STREAM/end", "{}"),
    ("list_limits", "/api/limits?limit=1", ""),
    ("show_policy", "/api/policy", ""),
    ("list_policies", "/api/policy/policies?limit=1", ""),
    (
        "explain_decision",
        "/api/policy/explain",
        r#"{"who":{"user":"ana"},"action":"call","name":"notes_t"}"#,
    ),
    ("search_audit", "/api/audit?limit=3", ""),
    ("follow_audit", "/api/audit/follow", ""),
    ("follow_calls", "/api/calls/follow", ""),
    ("show_configuration", "/api/configuration", ""),
    ("reload", "/reload", "{}"),
    ("restart_upstream", "/api/upstreams/notes/restart", "{}"),
    ("disable_upstream", "/api/upstreams/notes/disable", "{}"),
    ("enable_upstream", "/api/upstreams/notes/enable", "{}"),
];

#[tokio::test]
async fn every_operation_answers_as_the_document_says() {
    let records = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t"), tool("u"), tool("v")])
        .resources([resource("note:1")]);
    let old = Upstream::http(Revision::V2025_06_18).tools([tool("t")]);
    let builder = Gateway::of()
        .upstream("notes", &notes)
        .upstream("old", &old)
        .setting(&format!("audit: {{ dir: '{}' }}", records.path().display()))
        .setting("limits: [{ per: principal, rate: 1000/s }, { per: tool, concurrency: 100 }]")
        .policies("permit(principal, action, resource);\nforbid(principal, action, resource) when { context has never };");
    let plane = plane(builder).await;
    let who = "ana";
    let client = plane
        .gateway
        .client_as(who, Revision::V2025_11_25, "{}")
        .await;
    client.call("notes_t", "{}").await;
    let listener = plane
        .gateway
        .client_as(who, Revision::V2026_07_28, "{}")
        .await;
    let _watch = listener.watch(&["tools"], &[]).await;

    let document = parse(document().as_str());
    let served = parse(&plane.seen(OPERATOR, "/api/openapi.json").await.body);
    assert_eq!(served, document);
    let mut asked = BTreeSet::new();
    for (id, path, body) in ASKED {
        let path = filled(&plane, path).await;
        let (verb, operation) = operation(&document, id);
        let answer = answered(&plane, &verb, &path, body).await;
        assert_eq!(
            answer.status,
            if *id == "metrics" { 404 } else { 200 },
            "{id}: {}",
            answer.body
        );
        fits(&document, operation, id, &answer);
        asked.insert(*id);
    }
    let all: BTreeSet<_> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|verbs| verbs.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(asked, all);
}

#[tokio::test]
async fn what_goes_wrong_is_told_as_the_document_says() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let plane = plane(
        Gateway::of()
            .upstream("notes", &notes)
            .setting("audit: off"),
    )
    .await;
    let document = parse(document().as_str());
    for (id, path, body, status) in [
        ("show_upstream", "/api/upstreams/nobody", "", 404),
        (
            "restart_upstream",
            "/api/upstreams/nobody/restart",
            "{}",
            404,
        ),
        (
            "show_item",
            "/api/catalog/item?kind=tool&name=none",
            "",
            404,
        ),
        ("show_item", "/api/catalog/item?kind=tool", "", 400),
        ("search_catalog", "/api/catalog?limit=0", "", 400),
        ("search_catalog", "/api/catalog?cursor=x", "", 400),
        ("search_catalog", "/api/catalog?what=x", "", 400),
        (
            "end_session",
            "/api/sessions/0123456789abcdef/end",
            "{}",
            404,
        ),
        ("end_stream", "/api/streams/99/end", "{}", 404),
        ("search_audit", "/api/audit", "", 404),
        ("follow_audit", "/api/audit/follow", "", 404),
        ("search_audit", "/api/audit?since=never", "", 400),
        ("explain_decision", "/api/policy/explain", "{}", 400),
        (
            "explain_decision",
            "/api/policy/explain",
            r#"{"action":"call","name":"none"}"#,
            404,
        ),
        (
            "explain_decision",
            "/api/policy/explain",
            r#"{"action":"call","name":"notes_t","x":1}"#,
            400,
        ),
        (
            "explain_decision",
            "/api/policy/explain",
            r#"{"action":"call","name":"notes_t","args":[]}"#,
            400,
        ),
        (
            "explain_decision",
            "/api/policy/explain",
            r#"{"action":"call","name":"notes_t","who":{"user":"a","key":"b"}}"#,
            400,
        ),
    ] {
        let (verb, operation) = operation(&document, id);
        let answer = answered(&plane, &verb, path, body).await;
        assert_eq!(answer.status, status, "{id} {path}: {}", answer.body);
        fits(&document, operation, id, &answer);
    }
}

/// The path, with what there is to be ended in it.
pub(super) async fn filled(plane: &Plane, path: &str) -> String {
    let mut path = path.to_owned();
    if path.contains("SESSION") {
        let sessions = plane.get("/api/sessions").await;
        let session = sessions["items"][0]["session"].as_str().unwrap();
        path = path.replace("SESSION", session);
    }
    if path.contains("STREAM") {
        let streams = plane.get("/api/streams").await;
        path = path.replace("STREAM", &streams["items"][0]["stream"].to_string());
    }
    path
}

async fn answered(plane: &Plane, verb: &str, path: &str, body: &str) -> Answer {
    asked(plane, verb, path, body, Some(OPERATOR), None).await
}

/// What comes of a request with this token, if any, and this header beside. Of a stream that is open it is the head: it has no
/// end.
pub(super) async fn asked(
    plane: &Plane,
    verb: &str,
    path: &str,
    body: &str,
    token: Option<&str>,
    more: Option<(&str, &str)>,
) -> Answer {
    let method: Method = verb.to_uppercase().parse().unwrap();
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = Vec::from_iter(more);
    headers.extend(bearer.as_ref().map(|it| ("authorization", it.as_str())));
    if method == Method::POST {
        headers.push(("content-type", "application/json"));
    }
    if !path.ends_with("/follow") {
        return plane.raw(method, path, &headers, body).await;
    }
    let tasks = Tasks::new();
    let opening = open(&tasks, plane.address, method, path, &headers, b"");
    let (head, body) = within(PATIENCE, "a head", opening).await.into_parts();
    let mut told = String::new();
    if head.status != 200 {
        let body = within(PATIENCE, "a body", body.collect()).await.unwrap();
        told = String::from_utf8(body.to_bytes().to_vec()).unwrap();
    }
    tasks.stop();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: told,
        frames: Vec::new(),
    }
}

pub(super) fn operation<'a>(document: &'a Value, id: &str) -> (String, &'a Value) {
    let paths = document["paths"].as_object().unwrap();
    let mut all = paths.values().flat_map(|verbs| verbs.as_object().unwrap());
    let (verb, operation) = all.find(|(_, it)| it["operationId"] == id).unwrap();
    (verb.clone(), operation)
}

/// Checks status, media type, headers and body against what the document says.
pub(super) fn fits(document: &Value, operation: &Value, id: &str, answer: &Answer) {
    let described = &operation["responses"][answer.status.to_string()];
    assert!(
        described.is_object(),
        "{id}: {} is not told of",
        answer.status
    );
    for (name, header) in described["headers"].as_object().into_iter().flatten() {
        let there = answer.headers.get(name);
        let needed = header["required"] == true;
        assert!(there.is_some() || !needed, "{id}: no {name}");
        if let Some(text) = there.map(|value| value.to_str().unwrap()) {
            let number = header["schema"]["type"] == "integer";
            let value = if number { parse(text) } else { json!(text) };
            valid(document, &header["schema"], &value, id);
        }
    }
    let media = answer.headers["content-type"].to_str().unwrap();
    let content = described["content"].as_object().unwrap();
    let (_, described) = content
        .iter()
        .find(|(known, _)| *known == media)
        .unwrap_or_else(|| panic!("{id}: {media} is not told of"));
    if !media.ends_with("json") {
        return;
    }
    valid(document, &described["schema"], &parse(&answer.body), id);
}

/// Checks a value against a schema of the document, and that nothing is in it that the schema does not describe.
pub(super) fn valid(document: &Value, described: &Value, value: &Value, id: &str) {
    let schema = json!({
        "allOf": [described],
        "components": document["components"],
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<_> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{id}: {faults:?} in {value:#}");
    // What is told is described: schemas that took anything would fit as well.
    let resolved = described["$ref"].as_str().map(|name| {
        let name = name.rsplit('/').next().unwrap();
        document["components"]["schemas"][name]["properties"]
            .as_object()
            .unwrap()
    });
    if let Some(properties) = resolved {
        for member in value.as_object().unwrap().keys() {
            assert!(
                properties.contains_key(member),
                "{id}: `{member}` is not described"
            );
        }
    }
}
