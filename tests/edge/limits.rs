//! Sizes, times and numbers a client may have (SECURITY 6, HTTP-10).

use std::time::Duration;

use usher::server::spec::ServerBounds;

use crate::{
    harness::{Edge, call, post, until},
    meter::reached,
};

/// Longer than a busy machine takes between a connection and its first bytes.
const SHORT: Duration = Duration::from_millis(500);

fn bounded(adjust: impl FnOnce(&mut ServerBounds)) -> Edge {
    Edge::with(|spec| adjust(&mut spec.bounds))
}

/// Waits until a bound was counted: the client may see the end first.
pub(crate) async fn until_counted(bound: &str, before: u64) {
    let counted = async {
        while reached(bound) <= before {
            tokio::task::yield_now().await;
        }
    };
    let counted = tokio::time::timeout(Duration::from_secs(20), counted).await;
    assert!(counted.is_ok(), "`{bound}` was not counted");
}

#[tokio::test]
async fn heads_over_their_bounds_are_414_and_431() {
    let edge = Edge::start();
    // HTTP/1 does not tell which of the bounds on fields it was.
    let bounds = ["http.target", "http.head"];
    let before = bounds.map(reached);
    let target = |bytes: usize| {
        let path = format!("/mcp?{}", "x".repeat(bytes - 5));
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    };
    assert_eq!(edge.status(target((8 << 10) - 1)).await, 200);
    assert_eq!(edge.status(target(8 << 10)).await, 200);
    assert_eq!(edge.status(target((8 << 10) + 1)).await, 414);

    let field = |bytes: usize| post(&format!("X:{}\r\n", "x".repeat(bytes - 2)), "");
    assert_eq!(edge.status(field((16 << 10) - 1)).await, 200);
    assert_eq!(edge.status(field(16 << 10)).await, 200);
    assert_eq!(edge.status(field((16 << 10) + 1)).await, 431);

    let two = format!("X:{}\r\n", "x".repeat(16 << 10)).replacen("xx", "", 1);
    assert_eq!(edge.status(post(&two.repeat(2), "")).await, 431);

    // Host and Content-Length are two of them.
    let count = |fields: usize| post(&"X: y\r\n".repeat(fields - 2), "");
    assert_eq!(edge.status(count(99)).await, 200);
    assert_eq!(edge.status(count(100)).await, 200);
    assert_eq!(edge.status(count(101)).await, 431);
    for (bound, before) in bounds.iter().zip(before) {
        assert!(reached(bound) > before, "{bound}");
    }
}

#[tokio::test]
async fn a_body_over_its_bound_is_413_without_waiting_for_it() {
    let edge = bounded(|bounds| bounds.body_bytes = 8);
    assert_eq!(edge.status(call("1234567")).await, 200);
    assert_eq!(edge.status(call("12345678")).await, 200);
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
    assert_eq!(edge.status(head).await, 413);
    let chunked = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let within = format!("{chunked}4\r\n1234\r\n4\r\n5678\r\n0\r\n\r\n");
    assert_eq!(edge.status(within).await, 200);
    let over = format!("{chunked}4\r\n1234\r\n5\r\n56789\r\n");
    assert_eq!(edge.status(over).await, 413);
    assert_eq!(edge.bodies(), ["1234567", "12345678", "12345678"]);
}

#[tokio::test]
async fn http_10_a_slow_head_is_closed() {
    let before = reached("http.headers_time");
    let edge = bounded(|bounds| bounds.headers = SHORT);
    for slow in ["", "P", "POST /mcp HTTP/1.1\r\nHost: loc"] {
        let mut raw = edge.connect().await;
        raw.send(slow).await;
        assert_eq!(raw.rest().await, "", "{slow:?}");
    }
    let mut raw = edge.connect().await;
    raw.send(call("one")).await;
    raw.answer().await;
    raw.send("POST /mcp").await;
    assert_eq!(raw.rest().await, "");
    until_counted("http.headers_time", before).await;
}

#[tokio::test]
async fn http_10_a_slow_body_is_408_and_closed() {
    let edge = bounded(|bounds| bounds.body = SHORT);
    let mut raw = edge.connect().await;
    raw.send("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc")
        .await;
    assert_eq!(raw.answer().await.status, 408);
    assert_eq!(raw.rest().await, "");
}

#[tokio::test]
async fn http_10_an_idle_connection_is_closed_and_an_open_stream_is_not_idle() {
    let before = reached("http.idle_time");
    let edge = bounded(|bounds| bounds.idle = SHORT);
    let mut stream = edge.connect().await;
    stream
        .send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    until(&edge.site.begun).await;
    for _ in 0..3 {
        let mut raw = edge.connect().await;
        raw.send(call("one")).await;
        raw.answer().await;
        assert_eq!(raw.rest().await, "");
    }
    assert_eq!(edge.site.gone.available_permits(), 0);
    drop(stream);
    until(&edge.site.gone).await;
    until_counted("http.idle_time", before).await;
}

#[tokio::test]
async fn http_10_a_reader_that_stops_is_closed() {
    let before = reached("http.write_stall");
    let edge = bounded(|bounds| {
        bounds.write_stall = SHORT;
        bounds.connections = 1;
    });
    let mut stalled = edge.connect().await;
    stalled
        .send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    // There is room for one connection only: an answer to another one proves that the first was closed.
    assert_eq!(edge.status(call("next")).await, 200);
    assert!(stalled.rest().await.len() < 8 << 20);
    until_counted("http.write_stall", before).await;
}

#[tokio::test]
async fn a_large_answer_is_whole_and_has_its_length() {
    let edge = Edge::start();
    let mut raw = edge.connect().await;
    raw.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let answer = raw.answer().await;
    assert!(answer.head.contains("content-length: 8388608"));
    assert!(answer.body.len() == 8 << 20 && answer.body.bytes().all(|byte| byte == b'x'));
}

#[tokio::test]
async fn accepting_pauses_when_there_are_too_many_connections() {
    let before = reached("http.connections");
    let edge = bounded(|bounds| bounds.connections = 2);
    let mut first = edge.connect().await;
    let mut second = edge.connect().await;
    for raw in [&mut first, &mut second] {
        raw.send(call("early")).await;
        raw.answer().await;
    }
    let mut third = edge.connect().await;
    third.send(call("late")).await;
    let waiting = tokio::time::timeout(SHORT, third.answer()).await;
    assert!(waiting.is_err(), "answered beyond the limit: {waiting:?}");
    drop(first);
    assert_eq!(third.answer().await.body, "echo:late");
    until_counted("http.connections", before).await;
}

#[tokio::test]
async fn connections_of_one_peer_beyond_its_share_are_closed() {
    let before = reached("http.connections_per_peer");
    let edge = bounded(|bounds| bounds.connections_per_peer = 2);
    let mut first = edge.connect().await;
    let mut second = edge.connect().await;
    for raw in [&mut first, &mut second] {
        raw.send(call("early")).await;
        raw.answer().await;
    }
    assert_eq!(edge.say(call("third")).await, "");
    first.send(call("still")).await;
    assert_eq!(first.answer().await.body, "echo:still");
    drop((first, second));
    // The seats are free again as soon as the server has seen the ends.
    loop {
        let mut raw = edge.connect().await;
        raw.send(call("again")).await;
        if raw.body_or_end().await == "echo:again" {
            break;
        }
    }
    until_counted("http.connections_per_peer", before).await;
}
