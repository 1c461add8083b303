//! Ambiguous framing is refused, and what follows it is never a request (SECURITY HTTP-1).

use crate::harness::{Edge, call, until};

/// A whole second request that must never be one.
const SMUGGLED: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nsmuggled";

/// Sends `request` and the smuggled one behind it, at once and byte by byte, and expects one `400` and the end.
async fn refused(request: &[u8]) {
    let edge = Edge::start();
    let whole = [request, SMUGGLED.as_bytes()].concat();
    for size in [whole.len(), 7, 1] {
        let mut raw = edge.connect().await;
        for piece in whole.chunks(size) {
            raw.send(piece).await;
        }
        let said = raw.rest().await;
        let shown = request.escape_ascii();
        assert!(said.starts_with("HTTP/1.1 400 "), "{shown}: {said}");
        assert!(said.contains("connection: close"), "{shown}: {said}");
        assert_eq!(said.matches("HTTP/1.1").count(), 1, "{shown}: {said}");
        assert_eq!(edge.bodies(), [""; 0], "{shown}");
    }
}

async fn fields_refused(fields: &[&str]) {
    for fields in fields {
        let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        refused(head.as_bytes()).await;
    }
}

#[tokio::test]
async fn http_1_content_length_with_transfer_encoding_is_400_and_closes() {
    fields_refused(&[
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 0\r\ntransfer-encoding:chunked\r\n",
        "Content_Length: 5\r\nTransfer-Encoding: chunked\r\n",
    ])
    .await;
    refused(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        .await;
}

#[tokio::test]
async fn http_1_repeated_or_non_digit_content_length_is_400_and_closes() {
    fields_refused(&[
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 0\r\nContent-Length: 60\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5;\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: \r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length: \u{0665}\r\n",
    ])
    .await;
}

#[tokio::test]
async fn http_1_unknown_or_obfuscated_transfer_coding_is_400_and_closes() {
    fields_refused(&[
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: chun\u{212a}ed\r\n",
        "Transfer-Encoding: \u{b}chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer_Encoding: chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
    ])
    .await;
    refused(
        b"POST /mcp HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    )
    .await;
}

#[tokio::test]
async fn http_1_bare_line_ends_folds_and_control_bytes_are_400_and_close() {
    fields_refused(&[
        "X: a\nY: b\r\n",
        "X: a\rY: b\r\n",
        "X: a\n\r\n",
        "X: a\r\n folded\r\n",
        "X: a\r\n\tfolded\r\n",
        "X : a\r\n",
        "X\t: a\r\n",
        " X: a\r\n",
        "X: a\0b\r\n",
        "X: a\u{7f}b\r\n",
        "X: \u{8}\r\n",
        "X\u{1}: a\r\n",
        "no colon\r\n",
        ": no name\r\n",
    ])
    .await;
    for request in [
        &b"POST /mcp HTTP/1.1\nHost: localhost\n\n"[..],
        b"POST /mcp HTTP/1.1\rHost: localhost\r\r",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\n",
        b"\r\nPOST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /mcp\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST  /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /mcp HTTP/1.1 \r\nHost: localhost\r\n\r\n",
        b"POST /mcp HTTP/1.11\r\nHost: localhost\r\n\r\n",
        b"POST /mcp HTTP/3.0\r\nHost: localhost\r\n\r\n",
    ] {
        refused(request).await;
    }
}

#[tokio::test]
async fn http_1_bad_chunk_sizes_and_extensions_are_400_and_close() {
    for body in [
        "5;a=b\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello!\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "\r\n5\r\nhello\r\n0\r\n\r\n",
        "FFFFFFFFFFFFFFFF1\r\nhello\r\n0\r\n\r\n",
        "000000000005\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nbad trailer\r\n\r\n",
        "5\r\nhello\r\n0\r\nX: a\n\r\n",
        "5\r\nhello\r\n0\r\n\n",
        "5\r\nhello\r\n;\r\n\r\n",
    ] {
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        refused(format!("{head}{body}").as_bytes()).await;
    }
}

#[tokio::test]
async fn http_1_answers_under_way_come_before_the_refusal_of_a_later_request() {
    let edge = Edge::start();
    let mut raw = edge.connect().await;
    let slow = "GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let bad =
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n";
    raw.send(format!("{}{slow}{bad}{SMUGGLED}", call("first")))
        .await;
    until(&edge.site.begun).await;
    edge.site.release.add_permits(1);
    assert_eq!(raw.answer().await.body, "echo:first");
    assert_eq!(raw.answer().await.body, "released");
    assert_eq!(raw.answer().await.status, 400);
    assert_eq!(raw.rest().await, "");
    assert_eq!(edge.bodies(), ["first"]);
}

#[tokio::test]
async fn http_1_a_body_is_never_read_as_a_request() {
    let edge = Edge::start();
    let mut raw = edge.connect().await;
    // The endpoint leaves the body alone; the connection must not go on inside it.
    let head = format!(
        "POST /unread HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{SMUGGLED}",
        SMUGGLED.len() + 1
    );
    raw.send(head).await;
    assert_eq!(raw.answer().await.body, "unread");
    raw.send(format!("x{SMUGGLED}")).await;
    let rest = raw.rest().await;
    assert_eq!(rest.matches("echo:smuggled").count(), edge.bodies().len());
    assert!(edge.bodies().len() <= 1, "{:?}", edge.bodies());
}

#[tokio::test]
async fn well_formed_requests_are_served_however_they_are_cut() {
    let edge = Edge::start();
    let chunked = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n";
    let both = format!("{}{chunked}{}", call("one"), call("three"));
    for size in [1, 2, 3, 11, 64, both.len()] {
        let mut raw = edge.connect().await;
        for piece in both.as_bytes().chunks(size) {
            raw.send(piece).await;
        }
        for body in ["one", "abc0123456789", "three"] {
            assert_eq!(raw.answer().await.body, format!("echo:{body}"), "{size}");
        }
    }
}

#[tokio::test]
async fn a_large_body_arrives_byte_for_byte() {
    let edge = Edge::start();
    let body = "0123456789abcdef".repeat(1 << 16);
    let mut raw = edge.connect().await;
    raw.send(call(&body)).await;
    assert!(raw.answer().await.body == format!("echo:{body}"));
}
