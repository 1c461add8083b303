//! What is recorded beside calls (SECURITY 8).
//! What never came to be one, what was read again, which keys there are, and through which proxy a call came.

use std::{path::Path, sync::Arc};

use http::Method;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use usher::{
    auth::{
        keys::{KeyFile, KeyWish, create},
        spec::{AuthSpec, KeysSpec},
    },
    config,
    server::guard::replace,
};

use super::{recording, recording_by, records};
use crate::harness::{
    Authority, Client, EventStream, Gateway, Play, Revision, Upstream, eventually, exchange, tool,
};

const MODERN: Revision = Revision::V2026_07_28;

/// What is recorded of one kind of event, in its order.
fn told(directory: &Path, kind: &str) -> Vec<Value> {
    let all = super::events(directory);
    let ours = all.into_iter().filter(|event| event["event"] == kind);
    ours.map(|mut event| event["detail"].take()).collect()
}

#[tokio::test]
async fn what_never_came_to_be_a_call_is_recorded_with_its_reason_and_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let gateway = recording(directory.path(), &notes).start().await;
    let json = ("content-type", "application/json");
    let takes = ("accept", "application/json, text/event-stream");
    let session = ("mcp-session-id", "nobodys");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (path, headers, body, reason) in [
        ("/mcp", vec![json, takes], "{", "parse_error"),
        ("/mcp", vec![json, takes], "[]", "invalid_request"),
        ("/mcp", vec![json, takes], ping, "session_required"),
        ("/mcp", vec![json, takes, session], ping, "unknown_session"),
        ("/mcp", vec![takes], "{}", "unsupported_media_type"),
        ("/none", vec![json, takes], "{}", "not_found"),
        (
            "/mcp",
            vec![json, takes, ("host", "evil.example")],
            "{}",
            "bad_host",
        ),
        (
            "/mcp",
            vec![json, takes, ("origin", "https://evil.example")],
            "{}",
            "origin_not_allowed",
        ),
    ] {
        let before = told(directory.path(), "refused").len();
        let answer = exchange(
            gateway.address,
            Method::POST,
            path,
            &headers,
            body.as_bytes(),
        )
        .await;
        assert!(answer.status >= 400, "{reason}: {answer:?}");
        let all = eventually("it is written", async || {
            let all = told(directory.path(), "refused");
            (all.len() > before).then_some(all)
        })
        .await;
        assert_eq!(all[before]["reasons"], json!([reason]));
        assert_eq!(all[before]["address"], "127.0.0.1");
    }
    // Ten of one address in a minute are told one by one; the others together, at the end at the latest.
    for _ in 0..200 {
        exchange(gateway.address, Method::POST, "/mcp", &[json, takes], b"{").await;
    }
    gateway.app.clone().shutdown().await;
    let all = told(directory.path(), "refused");
    assert_eq!(all.len(), 11, "{all:?}");
    assert_eq!(all[10]["count"], 198);
    // What came to be a call is not among them.
    assert!(records(directory.path(), "tools/call").is_empty());
}

/// What is recorded of one kind of event after so many, which must be this.
async fn next_told(directory: &Path, kind: &str, before: usize, reason: &str) -> Value {
    let mut all = eventually("it is written", async || {
        let all = told(directory, kind);
        (all.len() > before).then_some(all)
    })
    .await;
    assert_eq!(all[before]["reasons"], json!([reason]));
    assert_eq!(all[before]["address"], "127.0.0.1");
    all.remove(before)
}

#[tokio::test]
async fn what_a_binding_refuses_by_itself_is_recorded_too() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let notes = notes.on("tools/call", |_| Play::Hang);
    let gateway = recording(directory.path(), &notes)
        .setting("listen: { legacy_sse: true }")
        .setting("bounds: { sessions: { per_principal: 2 } }")
        .start()
        .await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let own = ("mcp-session-id", client.session.as_deref().unwrap());
    let nobodys = ("mcp-session-id", "nobodys");
    let json = ("content-type", "application/json");
    let takes = ("accept", "application/json, text/event-stream");
    let stream = ("accept", "text/event-stream");
    let only_json = ("accept", "application/json");
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    let open =
        async || EventStream::open(gateway.address, Method::GET, "/sse", &[stream], "").await;
    let (mut held, _other) = (open().await, open().await);
    let messages = held.next().await.unwrap().data;
    let cases = [
        (
            Method::POST,
            "/mcp",
            vec![json, takes, nobodys],
            batch,
            404,
            "unknown_session",
        ),
        (
            Method::POST,
            "/mcp",
            vec![json, takes, own],
            batch,
            400,
            "invalid_request",
        ),
        (
            Method::PUT,
            "/mcp",
            vec![takes],
            "",
            405,
            "method_not_allowed",
        ),
        (
            Method::GET,
            "/mcp",
            vec![stream],
            "",
            405,
            "method_not_allowed",
        ),
        (
            Method::GET,
            "/mcp",
            vec![only_json, own],
            "",
            406,
            "not_acceptable",
        ),
        (
            Method::POST,
            "/sse",
            vec![json, takes],
            "{}",
            405,
            "method_not_allowed",
        ),
        (
            Method::GET,
            "/messages",
            vec![takes],
            "",
            405,
            "method_not_allowed",
        ),
        (
            Method::GET,
            "/sse",
            vec![only_json],
            "",
            406,
            "not_acceptable",
        ),
        (Method::GET, "/sse", vec![stream], "", 429, "rate_limited"),
    ];
    for (before, (method, path, headers, body, status, reason)) in cases.into_iter().enumerate() {
        let answer = exchange(gateway.address, method, path, &headers, body.as_bytes()).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        next_told(directory.path(), "refused", before, reason).await;
    }
    let begin = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}"#;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_t"}}"#;
    let headers = [json];
    for body in [begin, call, call] {
        let body = body.as_bytes();
        let answer = exchange(gateway.address, Method::POST, &messages, &headers, body).await;
        assert_eq!(answer.status, 202);
    }
    next_told(directory.path(), "refused", 9, "duplicate_id").await;
}

/// SECURITY 4, 8
#[tokio::test]
async fn whoever_is_not_admitted_is_in_a_record_that_the_answer_refers_to() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let (authority, away) = (Authority::start().await, Authority::start().await);
    away.down(true);
    let mut auth = authority.spec();
    auth.issuers.extend(away.spec().issuers);
    auth.required_scopes = Arc::new(["mcp".into()]);
    auth.failures_per_minute = 1;
    let gateway = recording(directory.path(), &notes).auth(auth).start().await;
    let bearer = |token: &str| vec![("authorization", format!("Bearer {token}"))];
    let (less, nobodys) = (bearer(&authority.token("ana", "")), bearer("wrong"));
    let unknown = bearer(&away.token("ana", ""));
    let foreign = Some("not a token of ours");
    for (before, (path, headers, status, reason, check)) in [
        (
            "/mcp?access_token=x",
            &vec![],
            400,
            "credential_misplaced",
            None,
        ),
        ("/mcp", &less, 403, "insufficient_scope", None),
        ("/mcp", &vec![], 401, "credential_missing", None),
        ("/mcp", &nobodys, 401, "credential_invalid", foreign),
        ("/mcp", &nobodys, 429, "rate_limited", foreign),
        ("/mcp", &unknown, 503, "identity_unavailable", None),
    ]
    .into_iter()
    .enumerate()
    {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, it)| (*name, it.as_str()))
            .collect();
        let answer = exchange(gateway.address, Method::POST, path, &headers, b"{}").await;
        assert_eq!(answer.status, status, "{answer:?}");
        let data = answer.error()["data"].take();
        assert_eq!(data["reason"], reason);
        let told = next_told(directory.path(), "authentication", before, reason).await;
        assert_eq!(told["refs"], json!([data["ref"]]), "{reason}");
        assert_eq!(told["checks"].get(0).and_then(Value::as_str), check);
        let known = (reason == "insufficient_scope").then_some("ana");
        assert_eq!(told["principal"]["name"].as_str(), known, "{reason}");
    }
}

/// SECURITY 4, 8, MSG-3, MSG-9: whoever has proved who they are is named, and what they asked for.
#[tokio::test]
async fn who_sends_what_is_no_call_is_named_where_they_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let authority = Authority::start().await;
    let auth = authority.spec();
    let gateway = recording(directory.path(), &notes).auth(auth).start().await;
    let bearer = format!("Bearer {}", authority.token("mallory", ""));
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = |name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{name},"arguments":{{}},{meta}}}}}"#
        )
    };
    let unknown =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"admin/keys","params":{{{meta}}}}}"#);
    let old = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned();
    for (before, (version, method, body, reason)) in [
        (
            "2026-07-28",
            "tools/call",
            call(r#""name":"notes_secret""#),
            "header_mismatch",
        ),
        (
            "2026-07-28",
            "tools/call",
            call(r#""name":"notes_t","Name":"notes_secret""#),
            "confusable_member",
        ),
        ("2026-07-28", "admin/keys", unknown, "method_not_found"),
        ("2025-11-25", "tools/list", old, "unknown_session"),
        ("2026-07-28", "", "{".to_owned(), "parse_error"),
    ]
    .into_iter()
    .enumerate()
    {
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", version),
            ("mcp-session-id", "none"),
            ("mcp-method", method),
            ("mcp-name", "notes_t"),
        ];
        let named = version == "2025-11-25";
        let headers: Vec<_> = headers
            .into_iter()
            .filter(|(name, value)| {
                !value.is_empty()
                    && (named || *name != "mcp-session-id")
                    && !(*name == "mcp-name" && method != "tools/call")
            })
            .collect();
        let body = body.as_bytes();
        let answer = exchange(gateway.address, Method::POST, "/mcp", &headers, body).await;
        let told = next_told(directory.path(), "refused", before, reason).await;
        assert_eq!(
            told["refs"],
            json!([answer.error()["data"]["ref"]]),
            "{reason}"
        );
        assert_eq!(told["principal"]["name"], "mallory", "{told}");
        assert_eq!(told["principal"]["auth_method"], "token", "{told}");
        assert_eq!(
            told["methods"].get(0).and_then(Value::as_str),
            Some(method).filter(|it| !it.is_empty()),
            "{told}"
        );
    }
}

#[tokio::test]
async fn records_name_the_configuration_by_its_digest_which_changes_when_it_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let gateway = recording(directory.path(), &notes).start().await;
    let client = gateway.client(MODERN).await;
    client.call("notes_t", "{}").await;
    let text = format!(
        "audit: {{ dir: '{}' }}\nlimits: [{{ per: principal, rate: 1000/s }}]\nupstreams: {{ notes: {{ {} }} }}\n",
        directory.path().display(),
        notes.place()
    );
    gateway
        .app
        .reloads_from(Arc::new(move || config::of_text(&text)));
    gateway.app.reload().await.unwrap();
    client.call("notes_t", "{}").await;
    gateway.app.clone().shutdown().await;
    let calls = records(directory.path(), "tools/call");
    let of = |call: usize| calls[2 * call]["config"].as_str().unwrap().to_owned();
    let (first, second) = (of(0), of(1));
    assert!(first.len() == 64 && first != second, "{first} {second}");
    assert_eq!(told(directory.path(), "start")[0]["config"], *first);
    let reloaded = told(directory.path(), "configuration");
    assert_eq!(reloaded.len(), 1, "{reloaded:?}");
    assert_eq!(reloaded[0]["digest"], *second);
    assert_eq!(reloaded[0]["outcome"], "ok");
    assert_eq!(reloaded[0]["reloaded"], json!(["limits"]));
}

#[tokio::test]
async fn keys_that_are_made_used_and_revoked_are_recorded_by_their_ids() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys.json");
    let secret = "a-secret-of-at-least-thirty-two-bytes".into();
    let wish = |name: &str| KeyWish {
        name: name.to_owned(),
        owner: "ana".to_owned(),
        ..KeyWish::default()
    };
    let mut keys = KeyFile::default();
    let key = create(wish("first"), &secret, 1);
    let bearer = format!("Bearer {}", key.text.expose_secret());
    let first = key.record;
    keys.keys.push(first.clone());
    replace(&file, keys.text().as_bytes()).unwrap();
    let authority = Authority::start().await;
    let auth = AuthSpec {
        keys: Some(KeysSpec {
            file: file.clone(),
            secret: secret.clone(),
        }),
        ..authority.spec()
    };
    let records = directory.path().join("audit");
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let gateway = recording(&records, &notes).auth(auth).start().await;
    let headers = [("authorization", bearer)];
    let client = Client::connect_with(gateway.address, "/mcp", MODERN, "{}", &headers);
    let client = client.await.unwrap();
    client.call("notes_t", "{}").await.result();
    let second = create(wish("second"), &secret, 2).record;
    keys.keys.push(second.clone());
    keys.keys[0].revoked = Some(3);
    replace(&file, keys.text().as_bytes()).unwrap();
    let changed = eventually("the change is seen", async || {
        let all = told(&records, "keys");
        (all.len() == 2).then_some(all)
    });
    let changed = changed.await;
    assert_eq!(changed[0], json!({"live": 1, "state": "read", "total": 1}));
    let expected = json!({
        "created": [second.id], "removed": [], "revoked": [first.id], "state": "changed", "total": 2,
    });
    assert_eq!(changed[1], expected);
    // Its client is not told as much.
    let refused = client.call("notes_t", "{}").await;
    assert_eq!(refused.status, 401);
    let told = next_told(&records, "authentication", 0, "credential_invalid").await;
    assert_eq!(told["checks"], json!(["revoked API key"]));
    gateway.app.clone().shutdown().await;
    let calls = super::records(&records, "tools/call");
    assert_eq!(calls.len(), 2, "{calls:#?}");
    for record in &calls {
        assert_eq!(record["principal"]["token"], *first.id, "{record}");
        assert_eq!(record["principal"]["owner"], "ana");
    }
}

#[tokio::test]
async fn a_call_through_a_trusted_proxy_has_both_addresses_and_one_without_has_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let gateway: Gateway = recording_by(directory.path(), "", &notes)
        .setting("listen: { trusted_proxies: [127.0.0.1] }")
        .start()
        .await;
    let client: Client = gateway.client(MODERN).await;
    client
        .call("notes_t", "{}")
        .header("x-forwarded-for", "192.0.2.7")
        .await;
    client.call("notes_t", "{}").await;
    gateway.app.clone().shutdown().await;
    let calls = records(directory.path(), "tools/call");
    let of = |call: usize| [&calls[2 * call]["address"], &calls[2 * call]["proxy"]];
    assert_eq!(of(0), [&json!("192.0.2.7"), &json!("127.0.0.1")]);
    assert_eq!(of(1), [&json!("127.0.0.1"), &json!(null)]);
}
