//! Clients that leave, endpoints that panic, and servers that stop (SECURITY REL-1, REL-5, REL-7).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::{
    h2,
    harness::{Edge, call, until},
    meter::{counted, reached},
};

const HANG: &str = "GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n";
const THREAD: &str = "GET /thread HTTP/1.1\r\nHost: localhost\r\n\r\n";
const STREAM: &str = "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn rel_1_a_panic_is_one_internal_error_and_the_connection_goes_on() {
    let edge = Edge::start();
    let before = counted("usher.requests.panicked", &[]);
    let mut raw = edge.connect().await;
    raw.send("GET /panic HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let answer = raw.answer().await;
    assert_eq!(answer.status, 500);
    let told = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":{"reason":"internal_error","ref":""#;
    assert!(answer.body.starts_with(told), "{}", answer.body);
    raw.send(call("next")).await;
    assert_eq!(raw.answer().await.body, "echo:next");
    assert!(counted("usher.requests.panicked", &[]) > before);
}

#[tokio::test]
async fn rel_1_an_answer_that_panics_breaks_off_and_does_not_look_whole() {
    let edge = Edge::start();
    let before = counted("usher.requests.panicked", &[]);
    let answer = edge
        .say("GET /breaks HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert!(answer.contains(": hello\n\n"), "{answer}");
    assert!(!answer.contains("\r\n0\r\n"), "{answer}");
    assert!(counted("usher.requests.panicked", &[]) > before);
}

#[tokio::test]
async fn what_follows_a_request_and_is_none_takes_no_time_from_it() {
    let edge = Edge::with(|spec| spec.bounds.write_stall = Duration::from_millis(200));
    let mut raw = edge.connect().await;
    raw.send(format!("{HANG}\r\n")).await;
    until(&edge.site.begun).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    edge.site.release.add_permits(1);
    assert_eq!(raw.answer().await.body, "released");
    assert_eq!(raw.answer().await.status, 400);
    assert_eq!(raw.rest().await, "");
}

/// SECURITY HTTP-10: nobody reads it meanwhile, so it is not its client who is slow.
#[tokio::test]
async fn a_request_that_is_not_read_to_its_end_takes_nothing_from_the_one_before_it() {
    let large = call(&"x".repeat(100_000));
    for part in [10, 50_000] {
        let edge = Edge::with(|spec| {
            spec.bounds.headers = Duration::from_millis(200);
            spec.bounds.body = Duration::from_millis(200);
        });
        let mut raw = edge.connect().await;
        raw.send(format!("{HANG}{}", &large[..part])).await;
        until(&edge.site.begun).await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        edge.site.release.add_permits(1);
        assert_eq!(raw.answer().await.body, "released", "{part}");
        raw.send(&large[part..]).await;
        assert_eq!(raw.answer().await.status, 200, "{part}");
        // Then it is its turn, and its client may be slow.
        raw.send(&large[..part]).await;
        assert!(!raw.rest().await.contains("HTTP/1.1 200"), "{part}");
    }
}

#[tokio::test]
async fn connections_are_spread_over_the_lanes_and_stay_on_them() {
    let edge = Edge::start();
    edge.site.release.add_permits(16);
    let mut connections = Vec::new();
    for _ in 0..4 {
        connections.push(edge.connect().await);
    }
    let mut threads = Vec::new();
    for _ in 0..2 {
        let mut these = Vec::new();
        for raw in &mut connections {
            raw.send(THREAD).await;
            these.push(raw.answer().await.body);
        }
        threads.push(these);
    }
    assert_eq!(threads[0], threads[1]);
    threads[0].sort();
    let (first, second) = ("usher-lane-1", "usher-lane-2");
    assert_eq!(threads[0], [first, first, second, second]);
}

#[tokio::test]
async fn rel_5_a_request_is_dropped_when_its_client_leaves() {
    let edge = Edge::start();
    for request in [HANG, STREAM] {
        let mut raw = edge.connect().await;
        raw.send(request).await;
        until(&edge.site.begun).await;
        drop(raw);
        until(&edge.site.gone).await;
    }
}

#[tokio::test]
async fn a_request_that_waits_is_looked_at_when_what_it_waits_for_is_there_and_not_before() {
    let edge = Edge::start();
    let mut raw = edge.connect().await;
    // A connection that has just begun looks at its first request once more.
    raw.send(call("first")).await;
    raw.answer().await;
    for _ in 0..3 {
        raw.send("POST /looks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody")
            .await;
        until(&edge.site.begun).await;
        // Whatever woke it up for nothing has its turn now.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        edge.site.release.add_permits(1);
        assert_eq!(raw.answer().await.body, "2");
    }
    // A body of many pieces wakes whoever waits for the next, and one that comes late does.
    let large = "x".repeat(900_000);
    raw.send(call(&large)).await;
    assert_eq!(raw.answer().await.body, format!("echo:{large}"));
    let slow = call(&large);
    let (first, last) = slow.split_at(700_000);
    raw.send(first).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    raw.send(last).await;
    assert_eq!(raw.answer().await.body, format!("echo:{large}"));
}

#[tokio::test]
async fn an_event_stream_has_the_headers_that_keep_it_flowing() {
    let edge = Edge::start();
    let mut raw = edge.connect().await;
    raw.send(STREAM).await;
    let head = raw.head().await;
    for line in [
        "HTTP/1.1 200 OK",
        "content-type: text/event-stream",
        "cache-control: no-store, no-transform",
        "x-accel-buffering: no",
        "transfer-encoding: chunked",
    ] {
        assert!(head.lines().any(|other| other == line), "{line}: {head}");
    }
}

#[tokio::test]
async fn rel_7_draining_finishes_what_is_in_flight_and_takes_nothing_new() {
    let edge = Edge::start();
    let address = edge.server.address();
    let mut idle = edge.connect().await;
    idle.send(call("one")).await;
    idle.answer().await;
    let mut busy = edge.connect().await;
    busy.send(HANG).await;
    until(&edge.site.begun).await;

    let site = edge.site;
    let client = async {
        assert_eq!(idle.rest().await, "");
        // The idle connection was told to go, so the listener is closed too.
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        site.release.add_permits(1);
        let answer = busy.answer().await;
        assert_eq!(answer.body, "released");
        assert!(answer.head.contains("connection: close"), "{}", answer.head);
        assert_eq!(busy.rest().await, "");
    };
    tokio::join!(edge.server.drain(Duration::from_secs(60)), client);
}

#[tokio::test]
async fn rel_7_a_request_that_was_there_before_the_drain_is_answered() {
    let edge = Edge::start();
    let address = edge.server.address();
    let mut idle = edge.connect().await;
    idle.send(call("one")).await;
    idle.answer().await;
    // On the other lane; then on the same, so that nobody reads there.
    let _other = edge.connect().await;
    let mut busy = edge.connect().await;
    busy.send("GET /blocks HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    until(&edge.site.begun).await;
    idle.send(call("two")).await;

    let site = edge.site;
    let client = async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        site.over.store(true, Ordering::Release);
        let answer = idle.answer().await;
        assert_eq!(answer.body, "echo:two");
        assert!(answer.head.contains("connection: close"), "{}", answer.head);
        assert_eq!(idle.rest().await, "");
        assert_eq!(busy.answer().await.body, "over");
    };
    tokio::join!(edge.server.drain(Duration::from_secs(60)), client);
}

#[tokio::test]
async fn rel_7_what_is_left_at_the_deadline_is_cut_off() {
    let edge = Edge::start();
    let mut stream = edge.connect().await;
    stream.send(STREAM).await;
    until(&edge.site.begun).await;
    let before = reached("http.drain");
    edge.server.drain(Duration::from_millis(50)).await;
    until(&edge.site.gone).await;
    stream.rest().await;
    assert!(reached("http.drain") > before);
}

#[tokio::test]
async fn rel_7_what_is_left_at_the_deadline_can_answer_when_it_is_told_in_either_protocol() {
    let edge = Edge::start();
    let mut one = edge.connect().await;
    let mut two = h2::client(&edge, edge.connect().await.stream).await;
    let site = Arc::clone(&edge.site);
    one.send("GET /last HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let ending = async {
        until(&site.begun).await;
        until(&site.begun).await;
        let tell = || site.over.store(true, Ordering::Release);
        edge.server
            .drain_telling(Duration::from_millis(50), std::future::pending(), tell)
            .await;
    };
    let request = h2::post("http://localhost/last");
    let (one, (status, two), ()) =
        tokio::join!(one.answer(), h2::send(&mut two, request, ""), ending);
    assert_eq!((one.status, one.body.as_str()), (200, "over"));
    assert_eq!((status.as_u16(), two.as_str()), (200, "over"));
}

#[tokio::test]
async fn connections_end_with_the_tasks_that_own_them() {
    let edge = Edge::start();
    let mut stream = edge.connect().await;
    stream.send(STREAM).await;
    until(&edge.site.begun).await;
    edge.tasks.finish().await;
    assert_eq!(edge.site.gone.available_permits(), 1);
    stream.rest().await;
}
