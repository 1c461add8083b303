//! Paths, methods and media types of the endpoints (SECURITY HTTP-4 to HTTP-6); the rest of HTTP is tested in `tests/edge`.

use http::Method;

use crate::harness::{Answer, Client, EventStream, Gateway, Revision, Upstream, exchange, tool};

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
async fn http_4_only_the_exact_raw_path_of_an_endpoint_leads_to_it() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .toolset("some", r#"tools: ["*"]"#)
        .start()
        .await;
    let sound = [
        ("/mcp", "notes_t"),
        ("/mcp/some", "notes_t"),
        ("/mcp/u/notes", "t"),
    ];
    let handshake = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    for path in [
        "/",
        "//",
        "/.",
        "/mcp/",
        "//mcp",
        "/./mcp",
        "/mcp/.",
        "/mcp/..",
        "/x/../mcp",
        "/..;/mcp",
        "/%2e/mcp",
        "/%6dcp",
        "/MCP",
        "/mcp;a=b",
        "/mcp;",
        "/mcp%00",
        "/mcp%20",
        "/mcp%2f",
        "/mcp%2fsome",
        "/mcp%2Fu%2Fnotes",
        "/mcp//some",
        "/mcp/some/",
        "/mcp/./some",
        "/mcp/some/.",
        "/mcp/some/..",
        "/mcp/x/../some",
        "/mcp/some;a=b",
        "/mcp;a=b/some",
        "/mcp/%73ome",
        "/mcp/Some",
        "/mcp/u",
        "/mcp/u/",
        "/mcp//u/notes",
        "/mcp/u//notes",
        "/mcp/u/notes/",
        "/mcp/u/./notes",
        "/mcp/u/../u/notes",
        "/mcp/some/../u/notes",
        "/mcp/some/%2e%2e/u/notes",
        "/mcp/some/..%2fu/notes",
        "/mcp/u%2fnotes",
        "/mcp/u/%6eotes",
        "/mcp/u;a=b/notes",
        "/mcp/u/notes;a=b",
        "/mcp/U/notes",
        "/mcp/u/Notes",
    ] {
        for name in ["notes_t", "t"] {
            let client = gateway.client_at(path, Revision::V2026_07_28).await;
            let answer = client.call(name, "{}").await;
            assert_eq!(answer.status, 404, "{path}: {answer:?}");
        }
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (method, body) in [
            (Method::POST, handshake),
            (Method::GET, ""),
            (Method::DELETE, ""),
        ] {
            let body = body.as_bytes();
            let answer = exchange(gateway.address, method, path, &headers, body).await;
            assert_eq!(answer.status, 404, "{path}: {answer:?}");
            assert!(!answer.headers.contains_key("mcp-session-id"), "{path}");
            let hints = answer.body.contains("leave out the `/`");
            let is_below = path.starts_with("/mcp/");
            assert_eq!(hints, is_below && path.ends_with('/'), "{path}: {answer:?}");
        }
    }
    assert_eq!(notes.heard("tools/call").len(), 0);
    for (path, name) in sound {
        for path in [path.to_owned(), format!("{path}?a=/../b")] {
            let client = gateway.client_at(&path, Revision::V2026_07_28).await;
            assert_eq!(client.call(name, "{}").await.text(), "called t", "{path}");
        }
    }
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

const PAGE: (&str, &str) = ("origin", "http://localhost:6274");
const ASKS: (&str, &str) = ("access-control-request-method", "POST");

/// What a browser is told about who may have an answer.
fn allowed(answer: &Answer) -> Option<&str> {
    let origin = answer.headers.get("access-control-allow-origin")?;
    assert_eq!(answer.headers["vary"], "origin", "{answer:?}");
    assert!(
        !answer
            .headers
            .contains_key("access-control-allow-credentials"),
        "{answer:?}"
    );
    Some(origin.to_str().unwrap())
}

// PROTOCOL F12
#[tokio::test]
async fn http_3_a_page_of_an_allowed_origin_can_use_every_endpoint() {
    let (notes, gateway, [legacy, modern]) = scene().await;
    let asks = |path: &'static str, headers: Vec<(&'static str, &'static str)>| {
        exchange_of(&gateway, Method::OPTIONS, path, headers)
    };
    let wants = (
        "access-control-request-headers",
        "content-type,mcp-param-city,x-other",
    );
    for path in ["/mcp", "/mcp/u/notes", "/mcp/nowhere"] {
        let answer = asks(path, vec![PAGE, ASKS, wants]).await;
        assert_eq!((answer.status, allowed(&answer)), (204, Some(PAGE.1)));
        let said = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        assert_eq!(said("access-control-allow-methods"), "GET, POST, DELETE");
        let headers = said("access-control-allow-headers");
        for header in [
            "content-type",
            "authorization",
            "mcp-session-id",
            "mcp-protocol-version",
            "last-event-id",
            "mcp-param-city",
        ] {
            assert!(headers.split(", ").any(|it| it == header), "{headers}");
        }
        assert!(!headers.contains("x-other"), "{headers}");
    }
    // What asks for nothing is a method that there is not; of a stranger nothing is taken; without an origin nothing is said.
    assert_eq!(asks("/mcp", vec![PAGE]).await.status, 405);
    let stranger = ("origin", "https://evil.example");
    let refused = asks("/mcp", vec![stranger, ASKS]).await;
    assert_eq!((refused.status, allowed(&refused)), (403, None));
    let plain = modern.call("notes_t", "{}").await;
    assert_eq!((plain.text().as_str(), allowed(&plain)), ("called t", None));
    assert!(!plain.headers.contains_key("vary"));

    for client in [&legacy, &modern] {
        let answer = client.call("notes_t", "{}").header(PAGE.0, PAGE.1).await;
        assert_eq!(answer.text(), "called t");
        assert_eq!(allowed(&answer), Some(PAGE.1));
        let read = answer.headers["access-control-expose-headers"].to_str();
        assert!(read.unwrap().contains("mcp-session-id"));
        // A refusal can be read as well.
        let unread = client
            .call("notes_t", "{}")
            .header(PAGE.0, PAGE.1)
            .header("content-type", "text/plain")
            .await;
        assert_eq!((unread.status, allowed(&unread)), (415, Some(PAGE.1)));
    }
    let stream = [PAGE, ("accept", "text/event-stream")]
        .into_iter()
        .chain(legacy.session.as_deref().map(|it| ("mcp-session-id", it)))
        .collect::<Vec<_>>();
    let stream = EventStream::open(gateway.address, Method::GET, "/mcp", &stream, "").await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.headers["access-control-allow-origin"], PAGE.1);
    assert_eq!(notes.heard("tools/call").len(), 3);
}

async fn exchange_of(
    gateway: &Gateway,
    method: Method,
    path: &str,
    headers: Vec<(&str, &str)>,
) -> Answer {
    exchange(gateway.address, method, path, &headers, b"").await
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
            let kind = match accept {
                "text/event-stream" => "text/event-stream",
                _ => "application/json",
            };
            assert_eq!(answer.headers["content-type"], kind, "{accept}");
        }
    }
    let [legacy, _] = &clients;
    let headers = [
        ("accept", "application/json"),
        ("mcp-session-id", legacy.session.as_deref().unwrap()),
    ];
    let answer = exchange(legacy.address, Method::GET, "/mcp", &headers, b"").await;
    assert_eq!(answer.status, 406);
}
