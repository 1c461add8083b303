//! Those who follow the audit log and are slow, or do not read at all, while it grows and turns from segment to segment.

use std::{net::SocketAddr, time::Duration};

use futures_util::future::{join, join_all};
use http::Method;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};
use usher::audit::log::segments;

use super::{AUDITOR, Plane, plane_with, problem, spec};
use crate::harness::{
    Client, EventStream, Gateway, PATIENCE, Play, Revision, Upstream, eventually, parse,
    text_result, tool, within,
};

const MODERN: Revision = Revision::V2026_07_28;
/// Event streams at once.
const STREAMS: usize = 64;
/// Calls at once, each of which makes two records of more than 8 KB.
const AT_ONCE: usize = 20;

/// A gateway that keeps arguments and results, in small segments, and cuts off who does not read for so long.
async fn keeping(notes: &Upstream, stall: Duration) -> (Plane, Client, TempDir) {
    let records = tempfile::tempdir().unwrap();
    let audit = format!(
        "audit: {{ dir: '{}', content: [{{ level: request_response }}] }}",
        records.path().display()
    );
    let builder = Gateway::of().upstream("notes", notes).setting(&audit);
    let mut spec = spec();
    spec.listen.bounds.write_stall = stall;
    let plane = plane_with(builder.segments(100_000), spec).await;
    let client = plane.gateway.client(MODERN).await;
    (plane, client, records)
}

/// A few calls whose records are long.
async fn call(client: &Client) {
    let arguments = format!(r#"{{"text":"{}"}}"#, "x".repeat(9_000));
    let calls = (0..AT_ONCE).map(|_| client.call("notes_t", &arguments).into_future());
    for answer in join_all(calls).await {
        assert!(answer.text().starts_with("yyy"));
    }
}

/// Whose results are long.
fn notes() -> Upstream {
    let result = text_result(&"y".repeat(9_000));
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    notes.on("tools/call", move |_| Play::Result(result.clone()))
}

async fn follow(address: SocketAddr, path: &str) -> EventStream {
    let bearer = format!("Bearer {AUDITOR}");
    let headers = [("authorization", bearer.as_str())];
    EventStream::open(address, Method::GET, path, &headers, "").await
}

/// Follows everything, and reads nothing of it but that it may.
async fn stare(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let request = format!(
        "GET /api/audit/follow HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {AUDITOR}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    let read = stream.read_exact(&mut status);
    within(PATIENCE, "a status", read).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    stream
}

/// The numbers of the records that come, up to one that is at least `last`.
async fn numbers(followed: &mut EventStream, last: u64) -> Vec<u64> {
    let mut all = Vec::new();
    while all.last().is_none_or(|seq| *seq < last) {
        let event = followed.message().await;
        assert_eq!(event.name, "record");
        all.push(parse(&event.data)["seq"].as_u64().unwrap());
    }
    all
}

async fn newest(plane: &Plane) -> u64 {
    let told = plane.get("/api/audit?limit=1").await;
    told["items"][0]["seq"].as_u64().unwrap()
}

#[tokio::test]
async fn a_slow_reader_gets_every_record_once_and_in_order_over_many_segments() {
    let notes = notes();
    let (plane, client, records) = keeping(&notes, Duration::from_secs(600)).await;
    let before = newest(&plane).await;
    let mut followed = follow(plane.address, "/api/audit/follow").await;
    assert_eq!(followed.status, 200);
    // It is open when its first comment has come; what is written from now on is told.
    call(&client).await;
    let mut told = numbers(&mut followed, before + 1).await;
    let begun = segments(records.path()).unwrap().len();
    // Now it reads nothing for a while, and more is written than waits on the way.
    for _ in 0..30 {
        call(&client).await;
    }
    let turned = segments(records.path()).unwrap().len() - begun;
    assert!(turned > 50, "{turned}");
    let last = eventually("all is written", async || {
        let found = plane.get("/api/audit?limit=1&method=tools/call").await;
        let ended = found["items"][0]["record"]["stage"] == "outcome";
        ended.then_some(found["items"][0]["seq"].as_u64().unwrap())
    })
    .await;
    told.extend(numbers(&mut followed, last).await);
    let first = told[0];
    assert!(first > before, "from when it was opened on");
    let all: Vec<u64> = (first..first + told.len() as u64).collect();
    assert_eq!(told, all);
    assert!(told.len() > 2 * 30 * AT_ONCE, "{}", told.len());
}

#[tokio::test]
async fn who_never_reads_is_cut_off_and_holds_nothing_else_up() {
    let notes = notes();
    let (plane, client, _records) = keeping(&notes, Duration::from_secs(1)).await;
    let mut stares = stare(plane.address).await;
    let mut others = vec![follow(plane.address, "/api/audit/follow?event=call").await];
    for _ in 2..STREAMS {
        let other = follow(plane.address, "/api/audit/follow?event=retention").await;
        assert_eq!(other.status, 200);
        others.push(other);
    }
    let more = plane.seen(AUDITOR, "/api/audit/follow").await;
    assert_eq!(problem(&more), (503, "overloaded".into()));
    assert!(more.headers.contains_key("retry-after"));
    // Calls go on, and whoever reads is told of them, until there is room for another.
    let mut calls = 0;
    let cut_off = async {
        loop {
            // It is read all the while: whoever does not for as long as calls may take here is cut off, too.
            let told = async {
                for _ in 0..2 * AT_ONCE {
                    let event = others[0].message().await;
                    let record = &parse(&event.data)["record"];
                    assert_eq!(record["method"], "tools/call", "{record:#}");
                }
            };
            join(call(&client), told).await;
            calls += AT_ONCE;
            let another = follow(plane.address, "/api/calls/follow").await;
            if another.status == 200 {
                break;
            }
        }
    };
    within(4 * PATIENCE, "there is room", cut_off).await;
    let mut got = Vec::new();
    let read = within(PATIENCE, "the end", stares.read_to_end(&mut got)).await;
    assert!(
        read.is_err() || !got.ends_with(b"0\r\n\r\n"),
        "it ends in the midst"
    );
    assert!(got.len() < calls * 16_000, "{} of {calls} calls", got.len());
}
