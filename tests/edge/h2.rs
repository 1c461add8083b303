//! HTTP/2 on the same port, under the same rules (SECURITY HTTP-2 to HTTP-9).

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION,
};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    task::JoinSet,
    time::timeout,
};

use crate::{
    harness::{Edge, PATIENCE, Raw, until},
    limits::until_counted,
    meter::reached,
};

pub(crate) type Client = SendRequest<Full<Bytes>>;

/// An HTTP/2 client on an open stream.
pub(crate) async fn client(
    edge: &Edge,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Client {
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    edge.tasks.spawn(async move {
        let _ = connection.await;
    });
    client
}

async fn plain(edge: &Edge) -> Client {
    client(edge, edge.connect().await.stream).await
}

pub(crate) fn post(uri: &str) -> http::request::Builder {
    Request::post(uri)
}

pub(crate) async fn send(
    client: &mut Client,
    request: http::request::Builder,
    body: &'static str,
) -> (StatusCode, String) {
    let request = request.body(Full::from(body)).unwrap();
    let answer: Response<_> = client.send_request(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn prior_knowledge_is_served_and_held_to_the_same_rules() {
    let edge = Edge::start();
    let mut client = plain(&edge).await;
    let own = "http://localhost:1/mcp";
    for body in ["one", "two"] {
        let answer = send(&mut client, post(own), body).await;
        assert_eq!(answer, (StatusCode::OK, format!("echo:{body}")));
    }
    let long = format!("http://localhost/mcp?{}", "x".repeat(8 << 10));
    let field = "x".repeat(16 << 10);
    let many = (0..101).fold(post(own), |post, n| post.header(format!("x-{n}"), "y"));
    let twice = |name: &str| post(own).header(name, "a").header(name, "a");
    for (request, status) in [
        (post("http://evil.example/mcp"), 403),
        (post(own).header("host", "localhost:2"), 400),
        (post(own).header("origin", "https://evil.example"), 403),
        (post(own).header("origin", "null"), 403),
        (post("http://localhost/mcp/"), 404),
        (post("http://localhost/%6dcp"), 404),
        (post("http://localhost/x/../mcp"), 404),
        (post(own).method("TRACE"), 405),
        (
            post(own)
                .header("mcp_method", "a")
                .header("mcp-method", "a"),
            400,
        ),
        (twice("authorization"), 400),
        (twice("mcp-name"), 400),
        (post(&long), 414),
        (post(own).header("x", field), 431),
        (many, 431),
    ] {
        let shown = format!("{request:?}");
        let (got, _) = send(&mut client, request, "").await;
        assert_eq!(got.as_u16(), status, "{}", &shown[..shown.len().min(300)]);
    }
    assert_eq!(edge.bodies(), ["one", "two"]);
}

#[tokio::test]
async fn calls_of_one_connection_are_spread_over_the_lanes() {
    let edge = Edge::start();
    let client = plain(&edge).await;
    let mut calls = JoinSet::new();
    for _ in 0..6 {
        let mut client = client.clone();
        calls.spawn(async move {
            send(&mut client, post("http://localhost/thread"), "")
                .await
                .1
        });
    }
    for _ in 0..6 {
        until(&edge.site.begun).await;
    }
    edge.site.release.add_permits(6);
    let mut each = calls.join_all().await;
    each.sort();
    // The connection itself counts as one.
    let (first, second) = ("usher-lane-1", "usher-lane-2");
    let wanted = [first, first, first, second, second, second];
    assert_eq!(each, wanted);
}

#[tokio::test]
async fn connect_is_refused_without_a_tunnel() {
    let edge = Edge::start();
    let mut client = plain(&edge).await;
    let request = Request::connect("localhost:80")
        .body(Full::default())
        .unwrap();
    let status = client.send_request(request).await.unwrap().status();
    assert_eq!(status, StatusCode::NOT_IMPLEMENTED);
}

#[tokio::test]
async fn a_panic_ends_one_stream_only() {
    let edge = Edge::start();
    let mut client = plain(&edge).await;
    let (status, body) = send(&mut client, post("http://localhost/panic"), "").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(body.contains("-32603"));
    let (status, _) = send(&mut client, post("http://localhost/mcp"), "").await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn an_answer_that_panics_ends_its_stream_only_and_does_not_look_whole() {
    let edge = Edge::start();
    let mut client = plain(&edge).await;
    let request = post("http://localhost/breaks").body(Full::default());
    let answer = client.send_request(request.unwrap()).await.unwrap();
    let mut body = answer.into_body();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), ": hello\n\n");
    assert!(matches!(body.frame().await, Some(Err(_))), "it was reset");
    let (status, _) = send(&mut client, post("http://localhost/mcp"), "").await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_stream_that_is_reset_drops_its_request_and_not_the_others() {
    let edge = Edge::start();
    let mut client = plain(&edge).await;
    let hang = || post("http://localhost/hang").body(Full::default()).unwrap();
    let left = client.send_request(hang());
    let kept = client.send_request(hang());
    until(&edge.site.begun).await;
    until(&edge.site.begun).await;
    drop(left);
    until(&edge.site.gone).await;
    edge.site.release.add_permits(1);
    assert_eq!(kept.await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn an_idle_connection_is_sent_away() {
    let edge = Edge::with(|spec| spec.bounds.idle = Duration::from_millis(500));
    let (mut client, connection) = handshake(
        TokioExecutor::new(),
        TokioIo::new(edge.connect().await.stream),
    )
    .await
    .unwrap();
    let (closed, ()) = tokio::join!(connection, async {
        let answer = send(&mut client, post("http://localhost/mcp"), "one").await;
        assert_eq!(answer.1, "echo:one");
    });
    closed.unwrap();
}

#[tokio::test]
async fn draining_finishes_streams_in_flight_and_takes_no_new_ones() {
    let edge = Edge::start();
    let address = edge.server.address();
    let mut client = plain(&edge).await;
    let hang = post("http://localhost/hang").body(Full::default()).unwrap();
    let hanging = client.send_request(hang);
    until(&edge.site.begun).await;
    let site = edge.site;
    let release = async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await; // until draining has begun
        }
        site.release.add_permits(1);
        hanging.await.unwrap().status()
    };
    let (status, ()) = tokio::join!(release, edge.server.drain(Duration::from_secs(60)));
    assert_eq!(status, StatusCode::OK);
    assert!(client.ready().await.is_err());
}

/// One frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The error code of the last GOAWAY among the frames in `bytes`.
fn goaway(mut bytes: &[u8]) -> Option<u32> {
    let mut code = None;
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let (payload, next) = rest.split_at_checked(length)?;
        if *kind == GOAWAY {
            code = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
        bytes = next;
    }
    code
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const GOAWAY: u8 = 7;
const NO_ERROR: u32 = 0;
const ENHANCE_YOUR_CALM: u32 = 11;

/// Sends `frames`, and returns the code of the GOAWAY with which the server closes the connection.
async fn abuse(edge: &Edge, frames: impl IntoIterator<Item = Vec<u8>>) -> Option<u32> {
    let before = reached("http.h2");
    let mut raw = edge.connect().await;
    let settings = frame(4, 0, 0, &[]);
    let all: Vec<u8> = frames.into_iter().flatten().collect();
    raw.send([PREFACE, &settings, &all].concat()).await;
    let code = goaway(&raw.rest_bytes().await);
    until_counted("http.h2", before).await;
    code
}

/// A field that is in no table: its name, and its value.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        bytes.push(u8::try_from(text.len()).unwrap());
        bytes.extend(text.bytes());
    }
    bytes
}

/// What the server said to one stream first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// An answer of this status.
    Status(u16),
    /// A reset with this code.
    Reset(u32),
}

/// What is said to each of so many streams.
async fn said(
    raw: &mut Raw<impl AsyncRead + AsyncWrite + Unpin>,
    streams: usize,
) -> BTreeMap<u32, Said> {
    let mut bytes = Vec::new();
    loop {
        let said = said_in(&bytes);
        if said.len() == streams {
            return said;
        }
        let more = timeout(PATIENCE, raw.stream.read_buf(&mut bytes)).await;
        assert!(matches!(more, Ok(Ok(1..))), "not said to all: {said:?}");
    }
}

fn said_in(mut bytes: &[u8]) -> BTreeMap<u32, Said> {
    let mut said = BTreeMap::new();
    while let [a, b, c, kind, _, stream @ ..] = bytes {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let Some((stream, rest)) = stream.split_first_chunk() else {
            break;
        };
        let Some((payload, next)) = rest.split_at_checked(length) else {
            break;
        };
        let heard = match (*kind, payload) {
            // The statuses of the static table, and the one other that is asked for here.
            (1, [0x88, ..]) => Some(Said::Status(200)),
            (1, [0x8c, ..]) => Some(Said::Status(400)),
            (1, [0x8d, ..]) => Some(Said::Status(404)),
            (1, [0x08 | 0x48, 0x83, 0x68, 0x0c, 0xff, ..]) => Some(Said::Status(403)),
            (1, other) => panic!("a status that this test does not read: {other:x?}"),
            (3, code) => Some(Said::Reset(u32::from_be_bytes(code.try_into().unwrap()))),
            _ => None,
        };
        if let Some(heard) = heard {
            said.entry(u32::from_be_bytes(*stream)).or_insert(heard);
        }
        bytes = next;
    }
    said
}

const PROTOCOL_ERROR: u32 = 1;
const REFUSED_STREAM: u32 = 7;

/// SECURITY HTTP-2. What is no authority at all the library takes for a malformed request and resets, as RFC 9113, 8.1.1, has
/// it; what it lets pass is a bad request.
#[tokio::test]
async fn http_2_a_missing_repeated_or_malformed_authority_is_refused() {
    let edge = Edge::start();
    let named = |authorities: &[&str], hosts: &[&str]| {
        // POST, http.
        let mut head = vec![0x83, 0x86];
        let pseudo = authorities.iter().map(|it| field(":authority", it));
        head.extend(pseudo.flatten());
        head.extend(field(":path", "/mcp"));
        head.extend(hosts.iter().flat_map(|it| field("host", it)));
        head
    };
    let one = |authority| named(&[authority], &[]);
    let refused = Said::Status(400);
    let reset = Said::Reset(PROTOCOL_ERROR);
    let cases = [
        ("sound", one("localhost"), Said::Status(200)),
        ("missing", named(&[], &[]), refused),
        ("empty", one(""), reset),
        ("userinfo", one("user@localhost"), refused),
        ("a path", one("localhost/mcp"), reset),
        ("a query", one("localhost?x"), reset),
        ("a fragment", one("localhost#x"), reset),
        ("no port", one("localhost:"), refused),
        ("half a port", one("localhost:80a"), refused),
        ("a long port", one("localhost:123456"), refused),
        ("a blank", one("local host"), reset),
        ("an open bracket", one("[::1"), reset),
        ("a name in brackets", one("[localhost]"), refused),
        ("bare IPv6", one("::1"), reset),
        ("two in one", one("localhost, evil.example"), reset),
        ("a URL", one("http://localhost"), reset),
        ("repeated", named(&["localhost", "localhost"], &[]), reset),
        ("another", named(&["localhost", "evil.example"], &[]), reset),
        (
            "another host",
            named(&["localhost"], &["evil.example"]),
            refused,
        ),
        (
            "hosts",
            named(&["localhost"], &["localhost", "localhost"]),
            refused,
        ),
        (
            "hosts alone",
            named(&[], &["localhost", "localhost"]),
            refused,
        ),
        ("sound again", one("localhost"), Said::Status(200)),
    ];
    let ids = || (1_u32..).step_by(2);
    let mut raw = edge.connect().await;
    let mut all = [PREFACE, &frame(4, 0, 0, &[])].concat();
    for (id, (_, head, _)) in ids().zip(&cases) {
        all.extend(frame(1, 5, id, head));
    }
    raw.send(all).await;
    let heard = said(&mut raw, cases.len()).await;
    let told: Vec<_> = ids()
        .zip(&cases)
        .map(|(id, (what, ..))| (*what, heard[&id]))
        .collect();
    let wanted: Vec<_> = cases
        .iter()
        .map(|(what, _, wanted)| (*what, *wanted))
        .collect();
    assert_eq!(told, wanted);
    assert_eq!(edge.seen().len(), 2);
}

#[tokio::test]
async fn http_3_an_authority_that_is_not_configured_is_403_before_the_body_is_read() {
    let edge = Edge::start();
    let mut head = vec![0x83, 0x86];
    for (name, value) in [(":authority", "evil.example"), (":path", "/mcp")] {
        head.extend(field(name, value));
    }
    let mut raw = edge.connect().await;
    // The stream stays open: its body never comes.
    let frames = [frame(4, 0, 0, &[]), frame(1, 4, 1, &head)].concat();
    raw.send([PREFACE, &frames].concat()).await;
    let heard = said(&mut raw, 1).await;
    assert_eq!(heard.get(&1), Some(&Said::Status(403)));
    assert_eq!(edge.seen(), []);
}

#[tokio::test]
async fn http_7_trailers_are_dropped_and_never_become_headers() {
    let edge = Edge::start();
    let socket = TokioIo::new(edge.connect().await.stream);
    let (mut client, connection) = handshake(TokioExecutor::new(), socket).await.unwrap();
    edge.tasks.spawn(async move {
        let _ = connection.await;
    });
    let trailers = HeaderMap::from_iter([
        (AUTHORIZATION, HeaderValue::from_static("Bearer x")),
        (
            HeaderName::from_static("mcp-name"),
            HeaderValue::from_static("x"),
        ),
    ]);
    for trailers in [Some(trailers), None] {
        let pieces = [
            Some(Frame::data(Bytes::from("ab"))),
            trailers.map(Frame::trailers),
        ];
        let pieces = pieces.into_iter().flatten().map(Ok::<_, Infallible>);
        let body = StreamBody::new(stream::iter(pieces));
        let request = post("http://localhost/mcp").body(body).unwrap();
        let answer: Response<_> = client.send_request(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let told = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(told, "echo:ab");
        let names = edge.seen().pop().unwrap().headers;
        for trailer in ["authorization", "mcp-name"] {
            assert!(!names.contains(&trailer.to_owned()), "{names:?}");
        }
    }
    assert_eq!(edge.bodies(), ["ab", "ab"]);
}

#[tokio::test]
async fn http_10_a_stream_that_is_not_read_is_closed_although_others_are() {
    let edge = Edge::with(|spec| spec.bounds.write_stall = Duration::from_millis(400));
    let mut raw = edge.connect().await;
    // GET /large and GET /stream on a window that holds one event, and on one of two bytes.
    let get = |path: &str| {
        let length = u8::try_from(path.len()).unwrap();
        let mut head = vec![0x82, 0x86, 0x41, 9];
        head.extend(b"localhost");
        head.extend([0x04, length]);
        head.extend(path.bytes());
        head
    };
    let window = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let frames = [
        PREFACE.to_vec(),
        window,
        frame(1, 5, 1, &get("/stream")),
        frame(8, 0, 1, &[0, 0, 0, 64]),
        frame(1, 5, 3, &get("/large")),
        frame(8, 0, 3, &[0, 0, 0, 2]),
    ];
    raw.send(frames.concat()).await;
    until(&edge.site.begun).await;
    assert_eq!(goaway(&raw.rest_bytes().await), None);
    until(&edge.site.gone).await;
}

#[tokio::test]
async fn a_large_answer_arrives_whole_in_pieces() {
    let edge = Edge::start();
    let mut client = plain(&edge).await;
    let (status, body) = send(&mut client, post("http://localhost/large"), "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.len() == 8 << 20 && body.bytes().all(|byte| byte == b'x'));
}

#[tokio::test]
async fn a_quiet_stream_is_not_taken_for_one_that_is_not_read() {
    let edge = Edge::with(|spec| {
        spec.bounds.write_stall = Duration::from_millis(400);
        spec.bounds.idle = Duration::from_millis(500);
    });
    let mut client = plain(&edge).await;
    let open = post("http://localhost/stream")
        .body(Full::default())
        .unwrap();
    let mut stream = client.send_request(open).await.unwrap().into_body();
    stream.frame().await.unwrap().unwrap();
    // Other connections come and go for longer than any of the limits.
    for _ in 0..3 {
        let mut raw = edge.connect().await;
        raw.send(crate::harness::call("one")).await;
        raw.answer().await;
        raw.rest().await;
    }
    assert_eq!(edge.site.gone.available_permits(), 0);
    let (status, _) = send(&mut client, post("http://localhost/mcp"), "").await;
    assert_eq!(status, StatusCode::OK);
}

/// SECURITY 6: streams of one connection.
#[tokio::test]
async fn http_9_as_many_streams_are_open_as_may_and_the_next_is_refused() {
    let edge = Edge::with(|spec| spec.bounds.h2_streams = 3);
    let mut head = vec![0x83, 0x86];
    for (name, value) in [(":authority", "localhost"), (":path", "/mcp")] {
        head.extend(field(name, value));
    }
    let open = |stream| frame(1, 4, stream, &head);
    let mut raw = edge.connect().await;
    raw.send([PREFACE, &frame(4, 0, 0, &[])].concat()).await;
    // None is over before the last begins; each of the others is answered when its body has come.
    let opened = [1, 3, 5, 7].map(open).concat();
    let ended = [1, 3, 5].map(|stream| frame(0, 1, stream, b"x")).concat();
    raw.send([opened, ended].concat()).await;
    let ok = |stream| (stream, Said::Status(200));
    let mut wanted = BTreeMap::from([1, 3, 5].map(ok));
    wanted.insert(7, Said::Reset(REFUSED_STREAM));
    assert_eq!(said(&mut raw, 4).await, wanted);
}

#[tokio::test]
async fn http_9_rapid_reset_is_answered_with_goaway() {
    let edge = Edge::start();
    // GET http://localhost/ in static and literal fields.
    let head = [&[0x82, 0x86, 0x84, 0x41, 9][..], b"localhost"].concat();
    let storm = (0..500).flat_map(|n| {
        let stream = 2 * n + 1;
        [
            frame(1, 5, stream, &head),
            frame(3, 0, stream, &[0, 0, 0, 8]),
        ]
    });
    assert_eq!(abuse(&edge, storm).await, Some(ENHANCE_YOUR_CALM));
}

#[tokio::test]
async fn http_9_server_reset_baiting_is_answered_with_goaway() {
    let edge = Edge::start();
    let head = [&[0x82, 0x86, 0x84, 0x41, 9][..], b"localhost"].concat();
    // A window that overflows makes the server reset it.
    let storm = (0..500).flat_map(|n| {
        let stream = 2 * n + 1;
        [
            frame(1, 4, stream, &head),
            frame(8, 0, stream, &[0x7f, 0xff, 0xff, 0xff]),
        ]
    });
    assert_eq!(abuse(&edge, storm).await, Some(ENHANCE_YOUR_CALM));
}

#[tokio::test]
async fn http_9_a_header_flood_without_an_end_is_answered_with_goaway() {
    let edge = Edge::start();
    let literal = [&[0, 1, b'x', 0x7f, 0xfe, 0x1e][..], &[b'y'; 4093]].concat();
    let flood = std::iter::once(frame(1, 0, 1, &[0x82, 0x86, 0x84]))
        .chain((0..4000).map(|_| frame(9, 0, 1, &literal)));
    assert_eq!(abuse(&edge, flood).await, Some(ENHANCE_YOUR_CALM));
    assert_eq!(edge.bodies(), [""; 0]);
}

/// Frames that carry nothing of a request before the connection ends.
const IDLE_FRAMES: usize = 10_000;

/// A request without a body: GET http://localhost/ in static and literal fields.
fn get(stream: u32) -> Vec<u8> {
    let head = [&[0x82, 0x86, 0x84, 0x41, 9][..], b"localhost"].concat();
    frame(1, 5, stream, &head)
}

#[tokio::test]
async fn http_9_a_flood_of_frames_that_carry_nothing_is_answered_with_goaway() {
    let open = frame(
        1,
        4,
        1,
        &[&[0x83, 0x86, 0x84, 0x41, 9][..], b"localhost"].concat(),
    );
    for (before, idle) in [
        (vec![], frame(6, 0, 0, &[1; 8])),
        (vec![], frame(4, 0, 0, &[])),
        (vec![], frame(2, 0, 3, &[0, 0, 0, 0, 1])),
        (vec![], frame(8, 0, 0, &[0, 0, 0, 1])),
        (vec![], frame(0xbb, 0, 0, &[1; 100])),
        (open.clone(), frame(0, 0, 1, &[])),
        (open, frame(0, 0, 1, b"x")),
    ] {
        let edge = Edge::start();
        let storm = std::iter::once(before).chain(std::iter::repeat_n(idle, 2 * IDLE_FRAMES));
        // Of some the library has counts of its own.
        let code = abuse(&edge, storm).await;
        assert!(
            matches!(code, Some(NO_ERROR | ENHANCE_YOUR_CALM)),
            "{code:?}"
        );
    }
}

#[tokio::test]
async fn http_9_as_many_frames_may_carry_nothing_as_clients_have_use_for_and_no_more() {
    for (pings, flooded) in [
        // The settings at the beginning are one.
        (IDLE_FRAMES - 2, false),
        (IDLE_FRAMES - 1, false),
        (IDLE_FRAMES, true),
    ] {
        let edge = Edge::start();
        let before = reached("http.h2");
        let mut raw = edge.connect().await;
        let pings = frame(6, 0, 0, &[1; 8]).repeat(pings);
        raw.send([PREFACE, &frame(4, 0, 0, &[]), &pings].concat())
            .await;
        if flooded {
            assert_eq!(goaway(&raw.rest_bytes().await), Some(NO_ERROR));
            until_counted("http.h2", before).await;
        } else {
            raw.send(get(1)).await;
            assert!(said(&mut raw, 1).await.contains_key(&1));
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_used_may_go_on_with_pings_and_windows_for_ever() {
    let edge = Edge::start();
    let mut raw = edge.connect().await;
    raw.send([PREFACE, &frame(4, 0, 0, &[])].concat()).await;
    let idle = [frame(6, 0, 0, &[1; 8]), frame(8, 0, 0, &[0, 0, 0, 1])].concat();
    for round in 0..60 {
        let requests =
            (0..50).flat_map(|n| [get(100 * round + 2 * n + 1), idle.repeat(5)].concat());
        raw.send(requests.collect::<Vec<u8>>()).await;
        assert_eq!(said(&mut raw, 50).await.len(), 50, "{round}");
    }
}
