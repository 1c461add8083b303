//! What is refused before it is a call is counted by its reason, whether or not there are records.

use http::Method;

use super::*;

/// How much of what is asked was refused for each of these reasons, at least.
async fn grows(reasons: &[&str], asked: impl Future<Output = ()>) {
    let count = || -> Vec<u64> {
        let counted = |reason: &&str| counted("usher.refused", &[("usher.reason", *reason)]);
        reasons.iter().map(counted).collect()
    };
    let before = count();
    asked.await;
    for ((reason, before), after) in reasons.iter().zip(before).zip(count()) {
        assert!(after > before, "{reason}: {before}, then {after}");
    }
}

#[tokio::test]
async fn who_is_not_let_in_and_what_is_no_request_are_counted_without_an_audit_log() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let authority = Authority::start().await;
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .auth(authority.spec())
        .start()
        .await;
    let refused = [
        "credential_missing",
        "credential_invalid",
        "origin_not_allowed",
    ];
    grows(&refused, async {
        let post = async |headers: &[(&str, &str)]| {
            let answer = exchange(gateway.address, Method::POST, "/mcp", headers, b"{}");
            answer.await.status
        };
        assert_eq!(post(&[]).await, 401);
        assert_eq!(post(&[("authorization", "Bearer nobody's")]).await, 401);
        assert_eq!(post(&[("origin", "https://elsewhere.example")]).await, 403);
    })
    .await;
    let bearer = format!("Bearer {}", authority.token("ana", ""));
    let refused = ["unknown_session", "header_mismatch", "parse_error"];
    grows(&refused, async {
        let post = async |body: &str, more: &[(&str, &str)]| {
            let mut headers = vec![
                ("authorization", bearer.as_str()),
                ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"),
            ];
            headers.extend(more);
            let posted = exchange(gateway.address, Method::POST, "/mcp", &headers, body.as_bytes());
            posted.await.status
        };
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let session = [("mcp-session-id", "0123456789abcdef0123456789abcdef")];
        assert_eq!(post(ping, &session).await, 404);
        assert_eq!(post("{", &[]).await, 400);
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#);
        let other = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "ping")];
        assert_eq!(post(&list, &other).await, 400);
    })
    .await;
}
