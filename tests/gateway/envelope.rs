//! What stands around a request: its id, and the headers that say what its body says (SECURITY MSG-8, MSG-9).

use base64::Engine as _;

use crate::harness::{Gateway, Revision, Upstream, resource, tool};

#[tokio::test]
async fn a_notification_of_a_name_that_nobody_knows_is_taken_and_nothing_comes_of_it() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = gateway.client(revision).await;
        for method in ["codex/event", "$/setTrace", "tools/x", "notifications/mine"] {
            let (_, headers) = client.spelled(method, "{}");
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{}}}}"#);
            let answer = client.post(&text, &headers).await;
            assert_eq!((answer.status, &*answer.body), (202, ""), "{method}");
            assert!(notes.heard(method).is_empty());
        }
    }
}

#[tokio::test]
async fn msg_8_no_request_without_an_id_is_executed_whatever_it_asks_for() {
    let notes = Upstream::http(Revision::V2026_07_28)
        .telling()
        .tools([tool("t")])
        .prompts(&["p"])
        .resources([resource("n://a")]);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let completion =
        r#"{"ref":{"type":"ref/prompt","name":"notes_p"},"argument":{"name":"a","value":"b"}}"#;
    let uri = r#"{"uri":"notes+n://a"}"#;
    let both = [
        ("tools/list", "{}"),
        ("prompts/list", "{}"),
        ("resources/list", "{}"),
        ("resources/templates/list", "{}"),
        ("prompts/get", r#"{"name":"notes_p"}"#),
        ("resources/read", uri),
        ("completion/complete", completion),
    ];
    let legacy = [
        (
            "initialize",
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#,
        ),
        ("ping", "{}"),
        ("logging/setLevel", r#"{"level":"debug"}"#),
        ("resources/subscribe", uri),
        ("resources/unsubscribe", uri),
    ];
    let modern = [
        ("server/discover", "{}"),
        (
            "subscriptions/listen",
            r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["notes+n://b"]}}"#,
        ),
    ];
    for (revision, own) in [
        (Revision::V2025_11_25, &legacy[..]),
        (Revision::V2026_07_28, &modern),
    ] {
        let client = gateway.client(revision).await;
        for (method, params) in both.iter().chain(own) {
            let heard = notes.heard(method).len();
            let (body, headers) = client.spelled(method, params);
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let (before, rest) = body.split_once(r#""id":"#).unwrap();
            let without = format!("{before}{}", rest.split_once(',').unwrap().1);
            let answer = client.post(&without, &headers).await;
            assert_eq!(
                (answer.status, answer.refusal().0, answer.id()),
                (400, -32600, None),
                "{method}: {answer:?}"
            );
            assert!(!answer.headers.contains_key("mcp-session-id"), "{method}");
            // With its id it is a sound request.
            if *method != "subscriptions/listen" {
                assert_eq!(notes.heard(method).len(), heard, "{method}");
                client.ask(method, params).await.result();
            }
        }
    }
    // The gateway listens, too, but for nothing that nobody asked for.
    let listens = notes.heard("subscriptions/listen");
    assert!(!listens.iter().any(|heard| heard.params.contains("n://b")));
}

#[tokio::test]
async fn msg_9_a_header_that_names_another_prompt_or_resource_than_the_body_is_refused() {
    let coded = |text: &str| {
        let coded = base64::engine::general_purpose::STANDARD.encode(text);
        format!("=?base64?{coded}?=")
    };
    let notes = Upstream::http(Revision::V2026_07_28)
        .prompts(&["p", "q"])
        .resources([resource("n://a"), resource("n://é")]);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let ask = |method: &str, key: &str, name: &str| {
        client.ask(method, &format!(r#"{{"{key}":"{name}"}}"#))
    };
    for (method, key, name, others) in [
        (
            "prompts/get",
            "name",
            "notes_p",
            [
                "notes_q".to_owned(),
                "p".to_owned(),
                "Notes_p".to_owned(),
                coded("notes_q"),
                coded("notes_p").to_lowercase(),
            ],
        ),
        (
            "resources/read",
            "uri",
            "notes+n://a",
            [
                "notes+n://é".to_owned(),
                "n://a".to_owned(),
                "notes+n://a/".to_owned(),
                coded("notes+n://é"),
                coded("notes+n://A"),
            ],
        ),
        (
            "resources/read",
            "uri",
            "notes+n://é",
            [
                "notes+n://a".to_owned(),
                "notes+n://%C3%A9".to_owned(),
                coded("notes+n://e\u{301}"),
                coded("notes+n://e"),
                coded("notes+n://é").replace('=', ""),
            ],
        ),
    ] {
        for other in others {
            let answer = ask(method, key, name).header("mcp-name", &other).await;
            assert_eq!(
                (answer.status, answer.refusal()),
                (400, (-32020, "header_mismatch".to_owned())),
                "{name}: {other}"
            );
        }
        let answer = ask(method, key, name).without("mcp-name").await;
        assert_eq!((answer.status, answer.refusal().0), (400, -32020), "{name}");
        assert!(notes.heard(method).is_empty(), "{name}");
    }
    // The same name, coded or not, says the same.
    for (method, key, name) in [
        ("prompts/get", "name", "notes_p"),
        ("resources/read", "uri", "notes+n://a"),
        ("resources/read", "uri", "notes+n://é"),
    ] {
        let answer = ask(method, key, name)
            .header("mcp-name", &coded(name))
            .await;
        answer.result();
    }
    assert_eq!(notes.heard("resources/read").len(), 2);
}

/// PROTOCOL C1.7: what a header says of each of a batch holds of all together.
#[tokio::test]
async fn a_batch_under_the_header_of_the_era_without_sessions_is_not_carried_out_in_a_session() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client(Revision::V2025_03_26).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_t","arguments":{}}}"#;
    let told = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;
    let modern = [("mcp-protocol-version", "2026-07-28")];
    let alone = client.post(call, &modern).await;
    assert_eq!((alone.status, alone.refusal().0), (400, -32602));
    for batch in [
        format!("[{call}]"),
        format!("[{told},{call}]"),
        format!("[{told}]"),
    ] {
        let answer = client.post(&batch, &modern).await;
        assert_eq!(
            (answer.status, answer.refusal().0),
            (400, -32600),
            "{batch}"
        );
    }
    assert!(notes.heard("tools/call").is_empty());
    // A revision with sessions is none that describes itself.
    let named = [("mcp-protocol-version", "2025-03-26")];
    let answer = client.post(&format!("[{call}]"), &named).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(notes.heard("tools/call").len(), 1);
}
