//! Methods and media types of the endpoint (SECURITY HTTP-5, HTTP-6); the rest of HTTP is tested in `tests/edge`.

use http::Method;

use crate::harness::{Client, Gateway, Revision, Upstream, tool};

async fn scene() -> (Upstream, Gateway, [Client; 2]) {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let clients = [
        gateway.client(Revision::V2025_11_25).await,
        gateway.client(Revision::V2026_07_28).await,
    ];
    (notes, gateway, clients)
}

#[tokio::test]
async fn http_5_other_methods_than_the_endpoints_are_405_with_allow() {
    let (_notes, _gateway, [legacy, modern]) = scene().await;
    for client in [&legacy, &modern] {
        for method in [Method::PUT, Method::PATCH, Method::OPTIONS, Method::HEAD] {
            let answer = client.other(method.clone()).await;
            assert_eq!(answer.status, 405, "{method}");
            let allow = answer.headers["allow"].to_str().unwrap();
            assert!(
                allow.contains("POST") && !allow.contains(method.as_str()),
                "{allow}"
            );
        }
    }
    // Without a session there is nothing to GET or DELETE: a modern client has none.
    for method in [Method::GET, Method::DELETE] {
        let answer = modern.other(method.clone()).await;
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.headers["allow"].to_str().unwrap().contains("POST"));
    }
}

#[tokio::test]
async fn http_6_a_body_that_is_not_plain_json_is_415() {
    let (notes, _gateway, clients) = scene().await;
    for client in &clients {
        for kind in [
            "text/plain",
            "application/jsonx",
            "application/json; charset=utf-16",
            "application/x-www-form-urlencoded",
            "",
        ] {
            let answer = client
                .call("notes_t", "{}")
                .header("content-type", kind)
                .await;
            assert_eq!(answer.status, 415, "{kind}");
        }
        for coding in ["gzip", "deflate", "br"] {
            let answer = client
                .call("notes_t", "{}")
                .header("content-encoding", coding)
                .await;
            assert_eq!(answer.status, 415, "{coding}");
        }
        assert_eq!(notes.heard("tools/call").len(), 0);
    }
    for client in &clients {
        for kind in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
        ] {
            let answer = client
                .call("notes_t", "{}")
                .header("content-type", kind)
                .await;
            assert_eq!(answer.text(), "called t", "{kind}");
        }
    }
}

#[tokio::test]
async fn http_6_a_client_that_takes_neither_kind_of_answer_is_406() {
    let (notes, _gateway, clients) = scene().await;
    for client in &clients {
        for accept in [
            "text/html",
            "application/xml, text/plain",
            "application/json;q=0",
            "image/*",
        ] {
            let answer = client.call("notes_t", "{}").header("accept", accept).await;
            assert_eq!(answer.status, 406, "{accept}");
        }
    }
    assert_eq!(notes.heard("tools/call").len(), 0);
    for client in &clients {
        for accept in [
            "application/json, text/event-stream",
            "*/*",
            "application/*;q=0.5",
            "text/event-stream",
        ] {
            let answer = client.call("notes_t", "{}").header("accept", accept).await;
            assert_eq!(answer.text(), "called t", "{accept}");
        }
    }
    let [legacy, _] = &clients;
    let headers = [
        ("accept", "application/json"),
        ("mcp-session-id", legacy.session.as_deref().unwrap()),
    ];
    let answer = crate::harness::exchange(legacy.address, Method::GET, "/mcp", &headers, b"").await;
    assert_eq!(answer.status, 406);
}
