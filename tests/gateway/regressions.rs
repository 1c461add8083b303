//! Faults that were found once, each with where it was found. They stay found.

use crate::harness::{Gateway, Pairing, Play, Revision, Upstream, parse, tool};

pairings! {
    /// Issue 2: the wording of results cut the gateway's own keys from a tool error's `_meta`, as if an upstream had
    /// forged them.
    async fn a_tool_error_says_its_reason_reference_and_nothing_forged(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| Play::Status(418));
        let (_gateway, client) = pair.alone(&notes).await;
        let failed = client.call("notes_t", "{}").await.value();
        assert_eq!(failed["_meta"]["dev.usher/reason"], "upstream_protocol_error");
        assert!(!failed["_meta"]["dev.usher/ref"].as_str().unwrap().is_empty());
        notes.now_on("tools/call", |_| {
            Play::Result(r#"{"content":[],"isError":true,"_meta":{"dev.usher/reason":"forged"}}"#.into())
        });
        let forged = client.call("notes_t", "{}").await.result();
        assert!(!forged.contains("forged"), "{forged}");
    }
}

/// Issue 2: a request method without an id was taken for a notification and dropped with 202; so was one in a batch.
#[tokio::test]
async fn a_request_without_an_id_is_refused_in_a_batch_too() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client(Revision::V2025_03_26).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let nameless = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"notes_t"}}"#;
    let answer = client.post(&format!("[{ping},{nameless}]"), &[]).await;
    assert_eq!(
        (answer.status, parse(&answer.body)["error"]["code"].as_i64()),
        (400, Some(-32600))
    );
    assert!(notes.heard("tools/call").is_empty());
}
