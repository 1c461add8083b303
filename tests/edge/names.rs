//! Who may be named, which paths exist, and headers that must mean one thing (SECURITY HTTP-2 to HTTP-8, HTTP-12).

use crate::harness::{Edge, call, post};

#[tokio::test]
async fn a_well_formed_call_is_answered_and_the_connection_stays_open() {
    let edge = Edge::start();
    let mut raw = edge.connect().await;
    for body in ["one", "two", ""] {
        raw.send(call(body)).await;
        let answer = raw.answer().await;
        assert_eq!((answer.status, answer.body), (200, format!("echo:{body}")));
        assert!(!answer.head.contains("server:"), "{}", answer.head);
    }
    assert_eq!(edge.bodies(), ["one", "two", ""]);
    let peer = raw.stream.local_addr().unwrap();
    assert!(edge.seen().iter().all(|seen| seen.peer == peer));
}

fn get(host_lines: &str) -> String {
    format!("GET /mcp HTTP/1.1\r\n{host_lines}\r\n")
}

#[tokio::test]
async fn http_2_missing_repeated_or_malformed_host_is_400() {
    let edge = Edge::start();
    for lines in [
        "",
        "Host:\r\n",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: user@localhost\r\n",
        "Host: localhost/mcp\r\n",
        "Host: localhost?x\r\n",
        "Host: localhost#x\r\n",
        "Host: localhost:\r\n",
        "Host: localhost:80a\r\n",
        "Host: localhost:123456\r\n",
        "Host: local host\r\n",
        "Host: [::1\r\n",
        "Host: [localhost]\r\n",
        "Host: ::1\r\n",
        "Host: localhost, evil.example\r\n",
        "Host: http://localhost\r\n",
        "Host: loc\u{e9}lhost\r\n",
    ] {
        assert_eq!(edge.status(get(lines)).await, 400, "{lines:?}");
    }
    assert_eq!(edge.seen(), []);
}

#[tokio::test]
async fn http_2_absolute_form_must_name_the_same_authority() {
    let edge = Edge::start();
    let target = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: localhost:1\r\n\r\n");
    assert_eq!(edge.status(target("http://localhost:1/mcp")).await, 200);
    for other in [
        "http://evil.example/mcp",
        "http://localhost:2/mcp",
        "http://localhost/mcp",
        "http://localhost:1@evil.example/mcp",
        "ftp://localhost:1/mcp",
    ] {
        assert_eq!(edge.status(target(other)).await, 400, "{other}");
    }
    assert_eq!(edge.seen().len(), 1);
}

#[tokio::test]
async fn http_3_a_host_that_is_not_configured_is_403() {
    let edge = Edge::start();
    let host = |host: &str| get(&format!("Host: {host}\r\n"));
    for own in [
        "localhost",
        "LocalHost:1",
        "127.0.0.1:8808",
        "[::1]:9",
        "gateway.example",
        "GATEWAY.example:443",
    ] {
        assert_eq!(edge.status(host(own)).await, 200, "{own}");
    }
    for other in [
        "evil.example",
        "localhost.evil.example",
        "localhost.",
        "127.0.0.2",
        "127.1",
        "[::2]",
        "[0:0:0:0:0:0:0:1]",
        "xgateway.example",
        "gateway.example.evil",
    ] {
        assert_eq!(edge.status(host(other)).await, 403, "{other}");
    }
    assert_eq!(edge.seen().len(), 6);
}

#[tokio::test]
async fn http_3_a_host_that_is_not_configured_is_403_before_the_body_is_read() {
    let edge = Edge::start();
    for host in ["evil.example", "localhost.evil.example", "127.0.0.2"] {
        for length in ["Content-Length: 9", "Transfer-Encoding: chunked"] {
            // The body never comes: an answer proves that nobody waited for it.
            let head = format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{length}\r\n\r\n");
            let mut raw = edge.connect().await;
            raw.send(head).await;
            assert_eq!(raw.answer().await.status, 403, "{host} {length}");
        }
    }
    assert_eq!(edge.seen(), []);
}

#[tokio::test]
async fn http_3_loopback_names_are_not_allowed_on_another_bind() {
    let edge = Edge::with(|spec| spec.address = "0.0.0.0:0".parse().unwrap());
    assert_eq!(edge.status(get("Host: localhost\r\n")).await, 403);
    assert_eq!(edge.status(get("Host: 127.0.0.1\r\n")).await, 403);
    let own = get("Host: gateway.example\r\nOrigin: http://localhost\r\n");
    assert_eq!(edge.status(own).await, 403);
    assert_eq!(edge.status(get("Host: gateway.example\r\n")).await, 200);
}

#[tokio::test]
async fn http_3_an_origin_that_is_not_allowed_is_403_before_the_body_is_read() {
    let edge = Edge::start();
    for origin in [
        "https://evil.example",
        "null",
        "NULL",
        "",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example/localhost",
        "file://localhost",
        "localhost",
        "//localhost",
        "http://localhost http://evil.example",
    ] {
        // The body never comes: an answer proves that nobody waited for it.
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nContent-Length: 9\r\n\r\n"
        );
        assert_eq!(edge.status(head).await, 403, "{origin:?}");
    }
    let twice = post(
        "Origin: http://localhost\r\nOrigin: http://localhost\r\n",
        "",
    );
    assert_eq!(edge.status(twice).await, 403);
    assert_eq!(edge.seen(), []);
    for origin in [
        "http://localhost:6274",
        "https://gateway.example",
        "http://[::1]:1",
    ] {
        let own = post(&format!("Origin: {origin}\r\n"), "");
        assert_eq!(edge.status(own).await, 200, "{origin}");
    }
}

#[tokio::test]
async fn http_4_only_the_exact_raw_path_is_routed() {
    let edge = Edge::start();
    let path = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for other in [
        "/",
        "/mcp/",
        "//mcp",
        "/./mcp",
        "/x/../mcp",
        "/mcp/.",
        "/%6dcp",
        "/mcp%2f",
        "/mcp%00",
        "/MCP",
        "/mcp;a=b",
        "/mcp\\",
        "*",
    ] {
        assert_eq!(edge.status(path(other)).await, 404, "{other}");
    }
    assert_eq!(edge.status(path("/mcp#x")).await, 400);
    assert_eq!(edge.seen(), []);
    assert_eq!(edge.status(path("/mcp?query")).await, 200);
}

/// What the standard client of Java says on every plain connection.
#[tokio::test]
async fn http_7_an_offer_of_h2c_is_ignored_and_the_connection_stays_what_it_is() {
    let edge = Edge::start();
    let offer = "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: h2c\r\n";
    let offering = |body: &str| {
        let length = body.len();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{offer}Content-Length: {length}\r\n\r\n{body}"
        )
    };
    let said = edge
        .say(format!(
            "{}{}{}",
            offering("one"),
            offering("two"),
            post("Connection: close\r\n", "three")
        ))
        .await;
    assert_eq!(said.matches("HTTP/1.1 200 ").count(), 3, "{said}");
    assert!(
        !said.contains("101") && !said.to_lowercase().contains("upgrade"),
        "{said}"
    );
    let seen = edge.seen();
    let bodies: Vec<&str> = seen.iter().map(|seen| seen.body.as_str()).collect();
    assert_eq!(bodies, ["one", "two", "three"]);
    for seen in &seen {
        assert!(
            !seen
                .headers
                .iter()
                .any(|name| name == "upgrade" || name == "http2-settings")
        );
    }
    // Prior knowledge of HTTP/2 in the middle of a connection is no request, offer or not.
    let said = edge
        .say(format!(
            "{}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            offering("four")
        ))
        .await;
    assert!(
        said.contains("HTTP/1.1 200 ") && said.contains("HTTP/1.1 400 "),
        "{said}"
    );
}

#[tokio::test]
async fn http_7_upgrade_connect_and_trace_never_enter_a_tunnel() {
    let edge = Edge::start();
    for (request, status) in [
        (
            "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n",
            501,
        ),
        ("TRACE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n",
            400,
        ),
        (
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
            400,
        ),
        (
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\n\r\n",
            400,
        ),
        (
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n",
            400,
        ),
        (
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: x, UPGRADE\r\n\r\n",
            400,
        ),
        (
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
            400,
        ),
        ("GET /mcp\r\n", 400),
        ("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", 400),
    ] {
        let said = edge.say(format!("{request}{}", call("tunnelled"))).await;
        assert!(
            said.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request:?}: {said}"
        );
        assert_eq!(said.matches("HTTP/1.1").count(), 1, "{said}");
    }
    assert_eq!(edge.seen(), []);
}

#[tokio::test]
async fn http_7_trailers_are_dropped_and_never_become_headers() {
    let edge = Edge::start();
    let request = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n\
        2\r\nab\r\n0\r\nAuthorization: Bearer x\r\n\r\n";
    let mut raw = edge.connect().await;
    raw.send(request).await;
    assert_eq!(raw.answer().await.body, "echo:ab");
    raw.send(call("next")).await;
    assert_eq!(raw.answer().await.body, "echo:next");
    let names = edge.seen().remove(0).headers;
    assert!(!names.contains(&"authorization".to_owned()), "{names:?}");
}

#[tokio::test]
async fn http_8_repeated_or_confusable_singleton_headers_are_400() {
    let edge = Edge::start();
    for name in [
        "Authorization",
        "Content-Type",
        "Mcp-Method",
        "Mcp-Name",
        "MCP-Protocol-Version",
        "Mcp-Session-Id",
        "Last-Event-ID",
        "Mcp-Param-Region",
    ] {
        let once = post(&format!("{name}: a\r\n"), "");
        assert_eq!(edge.status(once).await, 200, "{name}");
        let before = edge.seen().len();
        let twice = post(&format!("{name}: a\r\n{}: a\r\n", name.to_lowercase()), "");
        assert_eq!(edge.status(twice).await, 400, "{name}");
        let spelled = name.replace('-', "_");
        if spelled != name {
            let both = post(&format!("{name}: a\r\n{spelled}: a\r\n"), "");
            assert_eq!(edge.status(both).await, 400, "{spelled}");
        }
        assert_eq!(edge.seen().len(), before);
    }
    let others = post("X-A_b: 1\r\nX_A-b: 2\r\n", "");
    assert_eq!(edge.status(others).await, 400);
    let alone = post("Mcp_Method: 1\r\n", "");
    assert_eq!(edge.status(alone).await, 400);
    let lists = post("Accept: a/b\r\nAccept: c/d\r\nX_y: 1\r\n", "");
    assert_eq!(edge.status(lists).await, 200);
}

#[tokio::test]
async fn http_12_forwarding_headers_are_dropped() {
    let edge = Edge::start();
    let fields = "X-Forwarded-For: 10.0.0.1\r\nx-forwarded-host: evil.example\r\nX-Forwarded-Proto: https\r\n\
        Forwarded: for=10.0.0.1\r\nX-Real-IP: 10.0.0.1\r\nX-Kept: 1\r\n";
    assert_eq!(edge.status(post(fields, "")).await, 200);
    let mut names = edge.seen().remove(0).headers;
    names.sort_unstable();
    assert_eq!(names, ["content-length", "host", "x-kept"]);
    let proxy = format!("PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n{}", call(""));
    assert!(edge.say(proxy).await.starts_with("HTTP/1.1 400 "));
}
