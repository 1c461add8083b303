//! Sessions of the handshake era, as its revisions have them (PROTOCOL B4, SECURITY STATE-6).

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use http::Method;
use http_body_util::BodyExt as _;
use usher::tasks::Tasks;

use crate::harness::{
    Client, EventStream, Gate, Gateway, Heard, PATIENCE, Play, Revision, Upstream, call_result,
    exchange, open, parse, tool, within,
};

async fn scene() -> (Upstream, Gateway) {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    (notes, gateway)
}

fn call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"notes_t","arguments":{{}}}}}}"#
    )
}

#[tokio::test]
async fn a_request_without_a_session_is_refused_and_one_of_an_unknown_session_is_not_found() {
    let (notes, gateway) = scene().await;
    for revision in &Revision::ALL[..4] {
        let client = gateway.client(*revision).await;
        let without = client.post(&call("1"), &[("mcp-session-id", "")]).await;
        assert_eq!(
            (without.status, without.refusal()),
            (400, (-32600, "session_required".to_owned()))
        );
        assert_eq!(without.id().as_deref(), Some("1"));
        for foreign in ["0", "00000000000000000000000000000000", &"f".repeat(300)] {
            let unknown = client
                .post(&call("1"), &[("mcp-session-id", foreign)])
                .await;
            assert_eq!(
                (unknown.status, unknown.refusal().1),
                (404, "unknown_session".to_owned())
            );
            let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            assert_eq!(
                client
                    .post(told, &[("mcp-session-id", foreign)])
                    .await
                    .status,
                404
            );
        }
    }
    assert!(notes.heard("tools/call").is_empty());
}

#[tokio::test]
async fn a_session_ends_with_delete_and_is_then_unknown() {
    let (_notes, gateway) = scene().await;
    let client = gateway.client(Revision::V2025_11_25).await;
    assert_eq!(client.post(&call("1"), &[]).await.text(), "called t");
    assert_eq!(client.other(Method::DELETE).await.status, 204);
    assert_eq!(client.post(&call("2"), &[]).await.status, 404);
    assert_eq!(client.other(Method::DELETE).await.status, 404);
    assert_eq!(client.other(Method::GET).await.status, 404);
    // Another is opened as if nothing had been.
    let again = gateway.client(Revision::V2025_11_25).await;
    assert_ne!(again.session, client.session);
    assert_eq!(again.post(&call("1"), &[]).await.text(), "called t");
}

#[tokio::test]
async fn ending_a_session_ends_its_stream() {
    let (_notes, gateway) = scene().await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let session = client.session.clone().unwrap();
    let tasks = Tasks::new();
    let headers = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", session.as_str()),
    ];
    let stream = open(&tasks, gateway.address, Method::GET, "/mcp", &headers, b"").await;
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut body = stream.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"id: "), "{first:?}");
    assert_eq!(client.other(Method::DELETE).await.status, 204);
    within(PATIENCE, "the end of the stream", body.collect())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_session_belongs_to_one_endpoint() {
    let (_notes, gateway) = scene().await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let mut elsewhere = client.clone();
    elsewhere.path = "/mcp/u/notes".into();
    assert_eq!(elsewhere.post(&call("1"), &[]).await.status, 404);
    assert_eq!(elsewhere.other(Method::DELETE).await.status, 404);
    assert_eq!(client.post(&call("1"), &[]).await.status, 200);
}

#[tokio::test]
async fn state_6_a_session_id_altered_in_any_byte_or_late_is_unknown_and_the_server_hears_nothing()
{
    let (notes, gateway) = scene().await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let own = client.session.clone().unwrap();
    let unknown = async |id: &str| {
        let named = [("mcp-session-id", id)];
        assert_eq!(client.post(&call("1"), &named).await.status, 404, "{id}");
        let mut stranger = client.clone();
        stranger.session = Some(id.to_owned());
        for method in [Method::GET, Method::DELETE] {
            assert_eq!(stranger.other(method).await.status, 404, "{id}");
        }
    };
    for at in 0..own.len() {
        let mut altered = own.clone().into_bytes();
        altered[at] = if altered[at] == b'0' { b'1' } else { b'0' };
        unknown(std::str::from_utf8(&altered).unwrap()).await;
    }
    for altered in [own.clone() + "A", format!("{own}0"), own[1..].to_owned()] {
        unknown(&altered).await;
    }
    assert!(notes.heard("tools/call").is_empty());
    // It was none of that which ended it.
    assert_eq!(client.post(&call("2"), &[]).await.text(), "called t");
    assert_eq!(client.other(Method::DELETE).await.status, 204);
    let before = notes.heard("tools/call").len();
    unknown(&own).await;
    assert_eq!(notes.heard("tools/call").len(), before);
}

#[tokio::test]
async fn the_version_header_of_a_session_is_the_revision_agreed_on() {
    let (_notes, gateway) = scene().await;
    for (revision, header, status) in [
        (Revision::V2025_11_25, "2025-11-25", 200),
        (Revision::V2025_11_25, "", 200),
        (Revision::V2025_11_25, "2025-06-18", 400),
        (Revision::V2025_11_25, "nonsense", 400),
        (Revision::V2025_11_25, "2026-07-28", 400),
        (Revision::V2025_06_18, "2025-06-18", 200),
        (Revision::V2025_06_18, "2025-11-25", 400),
        // There was no such header yet.
        (Revision::V2025_03_26, "2025-11-25", 200),
        (Revision::V2025_03_26, "", 200),
        (Revision::V2024_11_05, "", 200),
    ] {
        let client = gateway.client(revision).await;
        let answer = client
            .post(&call("1"), &[("mcp-protocol-version", header)])
            .await;
        assert_eq!(answer.status, status, "{revision}: {header}");
    }
}

#[tokio::test]
async fn ping_is_answered_in_a_session() {
    let (notes, gateway) = scene().await;
    for revision in &Revision::ALL[..4] {
        let client = gateway.client(*revision).await;
        assert_eq!(client.ask("ping", "{}").await.result(), "{}");
    }
    assert!(notes.heard("ping").is_empty());
}

/// Feature: Batch (LM)
#[tokio::test]
async fn a_batch_of_2025_03_26_is_answered_together() {
    let (notes, gateway) = scene().await;
    let client = gateway.client(Revision::V2025_03_26).await;
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let unknown = r#"{"jsonrpc":"2.0","id":9,"method":"nonsense"}"#;
    let told = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let answer = client
        .post(
            &format!(
                "[{},{told},{ping},{unknown}]",
                call("1.0e0").replace("1.0e0", "1")
            ),
            &[],
        )
        .await;
    assert_eq!(answer.status, 200);
    let answers = parse(&answer.body);
    let of = |id: serde_json::Value| {
        let mut found = answers
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["id"] == id);
        let one = found
            .next()
            .unwrap_or_else(|| panic!("no {id} in {answers}"));
        assert!(found.next().is_none());
        one.clone()
    };
    assert_eq!(answers.as_array().unwrap().len(), 3);
    assert_eq!(of(1.into())["result"]["content"][0]["text"], "called t");
    assert_eq!(of("p".into())["result"], serde_json::json!({}));
    assert_eq!(of(9.into())["error"]["code"], -32601);
    assert_eq!(notes.heard("tools/call").len(), 1);
    assert_eq!(client.post(&format!("[{told}]"), &[]).await.status, 202);
}

/// What is answered from memory is over before the next of its batch begins.
#[tokio::test]
async fn requests_of_a_batch_that_are_answered_at_once_are_not_at_once() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of()
        .setting("limits: [{ per: [], concurrency: 2 }]")
        .upstream("notes", &notes)
        .start()
        .await;
    let client = gateway.client(Revision::V2025_03_26).await;
    let list = |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
    let batch = format!("[{},{},{}]", list(1), list(2), list(3));
    let answer = client.post(&batch, &[]).await;
    let answers = parse(&answer.body);
    let lists = answers.as_array().unwrap().iter();
    assert!(
        lists.clone().all(|one| one["result"]["tools"].is_array()),
        "{answers}"
    );
    assert_eq!(lists.count(), 3);
}

/// Feature: Batch (ML, MM)
#[tokio::test]
async fn a_batch_is_refused_where_there_is_none() {
    let (notes, gateway) = scene().await;
    let batch = format!("[{}]", call("1"));
    for revision in [
        Revision::V2024_11_05,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
    ] {
        let client = gateway.client(revision).await;
        let answer = client.post(&batch, &[]).await;
        assert_eq!(
            (answer.status, answer.refusal().0),
            (400, -32600),
            "{revision}"
        );
    }
    let client = gateway.client(Revision::V2025_03_26).await;
    let modern = gateway.client(Revision::V2026_07_28).await;
    let claimed = modern.spelled("tools/call", r#"{"name":"notes_t"}"#).0;
    let opening = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}"#;
    let nameless = call("1").replace(r#""id":1,"#, "");
    for body in [
        "[]".to_owned(),
        format!("[{opening}]"),
        format!("[{claimed}]"),
        format!("[{},1]", call("1")),
        format!("[{nameless}]"),
    ] {
        let answer = client.post(&body, &[]).await;
        assert_eq!((answer.status, answer.refusal().0), (400, -32600), "{body}");
    }
    assert!(notes.heard("tools/call").is_empty());
}

#[tokio::test]
async fn session_ids_are_long_random_and_visible() {
    let (_notes, gateway) = scene().await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let session = gateway.client(Revision::V2025_11_25).await.session.unwrap();
        assert!(session.len() >= 32 && session.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(seen.insert(session));
    }
}

#[tokio::test]
async fn a_modern_request_needs_no_session_and_gets_none() {
    let (_notes, gateway) = scene().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let answer = client
        .call("notes_t", "{}")
        .header("mcp-session-id", "whatever")
        .await;
    assert_eq!(answer.text(), "called t");
    assert!(answer.headers.get("mcp-session-id").is_none());
}

#[tokio::test]
async fn more_sessions_than_allowed_are_refused_until_one_ends() {
    let notes = Upstream::http(Revision::V2026_07_28);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .setting("bounds: { sessions: { total: 2, per_principal: 2 } }")
        .start()
        .await;
    let first = gateway.client(Revision::V2025_11_25).await;
    let _second = gateway.client(Revision::V2025_11_25).await;
    let refused = gateway
        .try_client_at("/mcp", Revision::V2025_11_25)
        .await
        .err()
        .unwrap()
        .0;
    assert_eq!(
        (refused.status, refused.refusal().1),
        (429, "rate_limited".to_owned())
    );
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(first.other(Method::DELETE).await.status, 204);
    gateway.client(Revision::V2025_11_25).await;
}

/// SECURITY 6: whoever has no name takes the sessions of its own address, not those of everybody.
#[tokio::test]
async fn one_address_without_a_name_leaves_sessions_for_the_others() {
    let notes = Upstream::http(Revision::V2026_07_28);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .setting("listen: { trusted_proxies: [127.0.0.1], legacy_sse: true }")
        .setting("bounds: { sessions: { total: 9, per_principal: 2 } }")
        .start()
        .await;
    let from = async |place: &str| {
        let told = [("x-forwarded-for", place.to_owned())];
        let revision = Revision::V2025_11_25;
        Client::connect_with(gateway.address, "/mcp", revision, "{}", &told).await
    };
    let first = from("203.0.113.9").await.unwrap();
    from("203.0.113.9").await.unwrap();
    let refused = from("203.0.113.9").await.err().unwrap().0;
    assert_eq!(
        (refused.status, refused.refusal().1),
        (429, "rate_limited".to_owned())
    );
    from("203.0.113.10").await.unwrap();
    assert_eq!(first.other(Method::DELETE).await.status, 204);
    from("203.0.113.9").await.unwrap();
    // So are the streams of 2024-11-05 counted.
    let line = async |place: &str| {
        let headers = [("accept", "text/event-stream"), ("x-forwarded-for", place)];
        EventStream::open(gateway.address, Method::GET, "/sse", &headers, "").await
    };
    let mut open = Vec::new();
    for (place, status) in [
        ("203.0.113.9", 200),
        ("203.0.113.9", 200),
        ("203.0.113.9", 429),
        ("203.0.113.10", 200),
    ] {
        open.push(line(place).await);
        assert_eq!(open.last().unwrap().status, status, "{place}");
    }
}

#[tokio::test]
async fn an_initialize_that_says_too_little_opens_nothing() {
    let (_notes, gateway) = scene().await;
    let much = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{{"experimental":{{"x":{{"y":"{}"}}}}}}}}"#,
        "z".repeat(64 << 10)
    );
    for params in [
        "{}",
        r#"{"protocolVersion":1}"#,
        r#"{"protocolVersion":"2025-11-25","capabilities":[]}"#,
        &much,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let answer = exchange(
            gateway.address,
            Method::POST,
            "/mcp",
            &headers,
            body.as_bytes(),
        )
        .await;
        assert_eq!(answer.refusal().0, -32602, "{params}");
        assert!(answer.headers.get("mcp-session-id").is_none());
    }
}

/// SECURITY REL-2: a server that knows a session no more is there all the same.
#[tokio::test]
async fn a_server_that_forgot_the_sessions_of_some_ends_nobody_elses_call() {
    let forgotten = Arc::new(Mutex::new(HashSet::new()));
    let gate = Gate::new();
    let (unknown, held) = (Arc::clone(&forgotten), gate.clone());
    let notes = Upstream::http(Revision::V2025_11_25)
        .tools([tool("t"), tool("long")])
        .on("tools/call", move |heard: &Heard| {
            let name = heard.text("name").unwrap();
            let result = Play::Result(call_result(&name));
            if unknown.lock().unwrap().contains(&heard.session) {
                Play::Status(404)
            } else if name == "long" {
                Play::Gated(Vec::new(), held.clone(), Box::new(result))
            } else {
                result
            }
        });
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let mut clients = Vec::new();
    for _ in 0..6 {
        let client = gateway.client(Revision::V2025_11_25).await;
        assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
        clients.push(client);
    }
    let heard = notes.heard("tools/call").into_iter();
    *forgotten.lock().unwrap() = heard.map(|heard| heard.session).collect();
    assert_eq!(forgotten.lock().unwrap().len(), clients.len());
    let patient = gateway.client(Revision::V2025_11_25).await;
    let long = async { patient.call("notes_long", "{}").await };
    let others = async {
        notes.until_heard("tools/call", 7).await;
        for client in &clients {
            let refused = client.call("notes_t", "{}").await.value();
            let reason = &refused["_meta"]["dev.usher/reason"];
            assert_eq!(reason, "upstream_unavailable");
        }
        for client in &clients {
            assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
        }
        gate.open();
    };
    let (answer, ()) = tokio::join!(long, others);
    assert_eq!(answer.text(), "called long");
    assert_eq!(notes.heard("tools/call").len(), 7 + 2 * clients.len());
}
