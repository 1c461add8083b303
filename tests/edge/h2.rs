//! HTTP/2 on the same port, under the same rules (SECURITY HTTP-2 to HTTP-9).

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use crate::{
    harness::{Edge, until},
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
