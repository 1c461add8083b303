//! Streamable HTTP against local hyper servers.

mod forgotten;
mod headers;
mod refused;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::header;
use tokio::sync::mpsc;

use super::{super::rig::*, *};
use crate::{
    json::Limits,
    jsonrpc::sse,
    metrics::{Bound, seen},
    upstream::{Deadline, patience::Patience},
};

const MAX: usize = 32 << 20;
pub(super) const TYPE: &str = "application/json; charset=utf-8";

/// A transport to a plain server that gives this one answer to everything.
pub(super) async fn against<F>(tasks: &Tasks, make: F) -> Http
where
    F: Fn() -> Response<Body> + Clone + Send + Sync + 'static,
{
    let address = serve(
        tasks,
        None,
        None,
        move |_request| std::future::ready(make()),
    )
    .await;
    let spec = spec("http", "127.0.0.1", address, "/mcp");
    streamable(&spec, timeouts(), tasks).unwrap()
}

#[tokio::test]
async fn a_frame_counts_whatever_the_status_and_its_session_is_kept() {
    for status in [200, 400, 404, 500] {
        let tasks = Tasks::new();
        let http = against(&tasks, move || {
            let mut answer = answer(status, TYPE, full(result(1, 2)));
            answer
                .headers_mut()
                .insert("mcp-session-id", HeaderValue::from_static("abc"));
            answer
        })
        .await;
        let Answer::One(head, frame) = http.send(request(1)).await.unwrap() else {
            panic!("{status}")
        };
        assert_eq!(head.status.as_u16(), status);
        assert_eq!(head.session.unwrap(), "abc");
        assert_eq!(gist(&frame), "{\"n\":2}");
    }
}

#[tokio::test]
async fn an_error_without_an_id_is_an_answer() {
    let tasks = Tasks::new();
    let http = against(&tasks, || {
        let text = r#"{"jsonrpc":"2.0","error":{"code":-32022,"message":"no"}}"#;
        answer(400, TYPE, full(text))
    })
    .await;
    assert_eq!(ask(&http, request(1)).await.unwrap(), ["error -32022"]);
}

/// As servers of the Python SDK refuse a session that they do not know (PROTOCOL B4).
#[tokio::test]
async fn a_refusal_is_an_answer_whatever_id_its_error_has() {
    for (status, id) in [(404, r#""server-error""#), (400, "7"), (500, "null")] {
        let tasks = Tasks::new();
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"Session not found"}}}}"#
        );
        let http = against(&tasks, move || answer(status, TYPE, full(text.clone()))).await;
        let Answer::One(head, frame) = http.send(request(1)).await.unwrap() else {
            panic!("{status}")
        };
        assert_eq!(
            (head.status.as_u16(), &*gist(&frame)),
            (status, "error -32600")
        );
    }
}

#[tokio::test]
async fn a_status_without_a_frame_is_told_as_it_is() {
    for (status, kind, text) in [
        (404, "text/html", "<p>no</p>"),
        (400, TYPE, "{\"error\":\"no\"}"),
        (503, "text/event-stream", "data: x\n\n"),
        (405, TYPE, ""),
    ] {
        let tasks = Tasks::new();
        let http = against(&tasks, move || answer(status, kind, full(text))).await;
        let expected = format!("status {status}");
        assert_eq!(ask(&http, request(1)).await.unwrap(), [expected]);
    }
}

#[tokio::test]
async fn when_to_come_again_is_told_with_a_status_that_says_so() {
    for (status, wait) in [(429, Some(7)), (503, Some(7)), (404, None)] {
        let tasks = Tasks::new();
        let http = against(&tasks, move || {
            let mut answer = answer(status, "text/plain", full("slow down"));
            let later = HeaderValue::from_static("7");
            answer.headers_mut().insert(header::RETRY_AFTER, later);
            answer
        });
        let Answer::Status(head) = http.await.send(request(1)).await.unwrap() else {
            panic!("{status}")
        };
        assert_eq!(head.retry_after, wait.map(Duration::from_secs), "{status}");
    }
}

#[tokio::test]
async fn a_notification_is_accepted_by_any_success() {
    for status in [200, 202, 204] {
        let tasks = Tasks::new();
        let http = against(&tasks, move || answer(status, "text/plain", full(""))).await;
        let expected = format!("accepted {status}");
        assert_eq!(ask(&http, notification()).await.unwrap(), [expected]);
    }
}

/// Asks once of a server that answers this status with a whole frame, and with an address; it must be asked no second time.
async fn refused(status: u16, kind: &'static str, frame: Bytes) -> UpstreamError {
    let tasks = Tasks::new();
    let hits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&hits);
    let http = against(&tasks, move || {
        count.fetch_add(1, Ordering::Relaxed);
        let mut answer = answer(status, kind, full(frame.clone()));
        let elsewhere = HeaderValue::from_static("/elsewhere");
        answer.headers_mut().insert(header::LOCATION, elsewhere);
        answer
    })
    .await;
    let error = ask(&http, request(1)).await.unwrap_err();
    assert_eq!(hits.load(Ordering::Relaxed), 1, "{status} was followed");
    error
}

/// A response to request 1, as JSON and as an event.
fn frames() -> [(&'static str, Bytes); 2] {
    let frame = Bytes::from(result(1, 1));
    let event = sse::encode(None, std::slice::from_ref(&frame));
    [(TYPE, frame), ("text/event-stream", event)]
}

/// SECURITY EGR-3
#[tokio::test]
async fn a_redirect_is_refused_whatever_comes_with_it() {
    for status in [301, 302, 303, 307, 308] {
        for (kind, frame) in frames() {
            let error = refused(status, kind, frame).await;
            assert!(
                matches!(error, UpstreamError::Redirect(_)),
                "{status}: {error}"
            );
        }
    }
}

/// SECURITY EGR-6
#[tokio::test]
async fn a_refused_credential_is_told_whatever_comes_with_it() {
    for status in [401, 403] {
        for (kind, frame) in frames() {
            let error = refused(status, kind, frame).await;
            assert!(matches!(error, UpstreamError::Auth(Some(told)) if told.status == status));
        }
    }
}

#[tokio::test]
async fn a_request_that_is_too_large_is_told_whatever_comes_with_it() {
    for (kind, frame) in frames() {
        let error = refused(413, kind, frame).await;
        assert!(matches!(error, UpstreamError::RequestTooLarge), "{error}");
    }
}

#[tokio::test]
async fn broken_answers_are_protocol_errors() {
    let twice = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#;
    let foreign = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"no"}}"#;
    let wordless = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600}}"#;
    let (marked, event) = (
        format!("\u{feff}{}", result(1, 1)),
        format!("data: {}\n\n", result(2, 1)),
    );
    let unasked = "an id that was not asked";
    let cases: [(&str, Bytes, &str); 12] = [
        (TYPE, foreign.into(), unasked),
        (TYPE, "nonsense".into(), "not JSON at byte"),
        (TYPE, "".into(), "not JSON at byte 0"),
        (TYPE, marked.into(), "a byte order mark"),
        (TYPE, twice.into(), "is repeated"),
        (TYPE, wordless.into(), "`error.message` is not a string"),
        (TYPE, result(2, 1).into(), unasked),
        (TYPE, progress(1, 1).into(), "no response"),
        (TYPE, "[]".into(), "an empty batch"),
        ("text/html", result(1, 1).into(), "content type `text/html`"),
        ("a\tb", result(1, 1).into(), r"content type `a\tb`"),
        ("text/event-stream", event.into(), unasked),
    ];
    for (kind, text, told) in cases {
        let tasks = Tasks::new();
        let body = text.clone();
        let http = against(&tasks, move || answer(200, kind, full(body.clone()))).await;
        let error = ask(&http, request(1)).await.unwrap_err();
        assert_eq!(error.reason(), "upstream_protocol_error", "{text:?}");
        assert!(error.to_string().contains(told), "{text:?}: {error}");
    }
}

#[tokio::test]
async fn a_compressed_answer_is_refused() {
    let tasks = Tasks::new();
    let http = against(&tasks, || {
        let mut answer = answer(200, TYPE, full(result(1, 1)));
        answer
            .headers_mut()
            .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        answer
    })
    .await;
    let error = ask(&http, request(1)).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_protocol_error");
    assert!(error.to_string().contains("compressed answer, `gzip`"));
}

#[tokio::test]
async fn an_answer_without_a_content_type_is_told_as_that() {
    let tasks = Tasks::new();
    let http = against(&tasks, || {
        let mut answer = answer(200, TYPE, full(result(1, 1)));
        answer.headers_mut().remove(CONTENT_TYPE);
        answer
    })
    .await;
    let error = ask(&http, request(1)).await.unwrap_err().to_string();
    assert!(error.ends_with("without a content type"), "{error}");
}

#[tokio::test]
async fn a_message_may_have_32_mib_and_not_a_byte_more() {
    for (extra, ok) in [(0, true), (1, false)] {
        for in_pieces in [false, true] {
            let tasks = Tasks::new();
            let shell = result(1, 1).len();
            let text = Bytes::from(result(1, 1) + &" ".repeat(MAX - shell + extra));
            let http = against(&tasks, move || {
                let body = if in_pieces {
                    let (head, tail) = (text.slice(..1000), text.slice(1000..));
                    pieces(vec![head, tail])
                } else {
                    full(text.clone())
                };
                answer(200, TYPE, body)
            })
            .await;
            match ask(&http, request(1)).await {
                Ok(_) => assert!(ok),
                Err(error) => assert_eq!((ok, error.reason()), (false, "upstream_too_large")),
            }
        }
    }
}

/// SECURITY 6: one message of an upstream, all that answers one request, what a message may hold.
#[tokio::test]
async fn an_answer_may_have_the_bounds_that_were_set_and_not_a_byte_more() {
    let whole = result(1, 1);
    let event = format!("data: {whole}\n\n");
    let stream = format!("data: {}\n\n{event}", progress(1, 1));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{}0{}}}}}"#,
        "[".repeat(7),
        "]".repeat(7)
    );
    let default = PeerBounds::default();
    let message = |message_bytes| PeerBounds {
        message_bytes,
        ..default
    };
    let answered = |answer_bytes| PeerBounds {
        answer_bytes,
        ..default
    };
    let nested = |depth| PeerBounds {
        json: Limits {
            depth,
            ..Limits::UPSTREAM
        },
        ..default
    };
    // A line of an event is counted with what stands before its data.
    let line = event.len() - 2;
    let all = stream.len();
    let (large, larger) = (Bound::UpstreamMessage, Bound::UpstreamAnswer);
    for (kind, text, bounds, noted) in [
        (TYPE, &whole, message(whole.len() + 1), None),
        (TYPE, &whole, message(whole.len()), None),
        (TYPE, &whole, message(whole.len() - 1), Some(large)),
        ("text/event-stream", &event, message(line + 1), None),
        ("text/event-stream", &event, message(line), None),
        ("text/event-stream", &event, message(line - 1), Some(large)),
        ("text/event-stream", &stream, answered(all + 1), None),
        ("text/event-stream", &stream, answered(all), None),
        (
            "text/event-stream",
            &stream,
            answered(all - 1),
            Some(larger),
        ),
        (TYPE, &deep, nested(10), None),
        (TYPE, &deep, nested(9), None),
        (TYPE, &deep, nested(8), Some(Bound::UpstreamDepth)),
    ] {
        for in_pieces in [false, true] {
            let tasks = Tasks::new();
            let text = Bytes::from(text.clone());
            let http = against(&tasks, move || {
                let body = if in_pieces {
                    pieces(vec![text.slice(..20), text.slice(20..)])
                } else {
                    full(text.clone())
                };
                answer(200, kind, body)
            });
            let http = http.await.within(bounds);
            let mut out = request(1);
            out.limits = bounds.json;
            seen::take();
            let answered = ask(&http, out).await;
            let reason = answered.as_ref().err().map(UpstreamError::reason);
            let told = noted.map(|bound| {
                if bound == Bound::UpstreamDepth {
                    "upstream_protocol_error"
                } else {
                    "upstream_too_large"
                }
            });
            assert_eq!(reason, told, "{kind} {bounds:?}");
            assert_eq!(seen::take(), Vec::from_iter(noted), "{kind} {bounds:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_gives_its_frames_until_the_response() {
    let tasks = Tasks::new();
    let http = against(&tasks, || {
        let events = format!(
            "id: 1\ndata:\n\n: hi\n\nevent: ping\ndata: x\n\ndata: {}\n\nevent: message\ndata: {}\n\ndata: nonsense\n\n",
            progress(1, 1),
            result(1, 3)
        );
        let (head, tail) = events.split_at(70);
        let both = vec![head.to_owned().into(), tail.to_owned().into()];
        answer(200, "text/event-stream", pieces(both))
    })
    .await;
    let answer = ask(&http, request(1)).await.unwrap();
    assert_eq!(answer, ["notifications/progress", "{\"n\":3}"]);
}

#[tokio::test]
async fn a_lone_response_on_a_stream_is_one_answer() {
    let tasks = Tasks::new();
    let http = against(&tasks, || {
        let event = format!("data: {}\n\n", result(1, 3));
        answer(200, "text/event-stream", full(event))
    })
    .await;
    let answer = http.send(request(1)).await.unwrap();
    assert!(matches!(answer, Answer::One(..)));
}

#[tokio::test]
async fn a_stream_that_ends_early_or_goes_silent_is_an_error() {
    let tasks = Tasks::new();
    let event = || format!("data: {}\n\n", progress(1, 1));
    let http = against(&tasks, move || {
        answer(200, "text/event-stream", full(event()))
    })
    .await;
    let error = ask(&http, request(1)).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_unavailable");

    let (sender, receiver) = mpsc::channel(4);
    sender.send(event().into()).await.unwrap();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let address = serve(&tasks, None, None, move |_request| {
        let body = open(receiver.lock().unwrap().take().unwrap());
        std::future::ready(answer(200, "text/event-stream", body))
    })
    .await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let mut timeouts = timeouts();
    timeouts.silence = Duration::from_millis(50);
    let http = streamable(&spec, timeouts, &tasks).unwrap();
    let error = ask(&http, request(1)).await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::Timeout(Deadline::Silence)),
        "{error}"
    );
}

#[tokio::test]
async fn a_stream_may_be_silent_while_somebody_is_asked_and_no_longer() {
    let tasks = Tasks::new();
    let (sender, receiver) = mpsc::channel(4);
    let event = format!("data: {}\n\n", progress(1, 1));
    sender.send(event.into()).await.unwrap();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let address = serve(&tasks, None, None, move |_request| {
        let body = open(receiver.lock().unwrap().take().unwrap());
        std::future::ready(answer(200, "text/event-stream", body))
    })
    .await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let mut timeouts = timeouts();
    timeouts.silence = Duration::from_millis(20);
    let http = streamable(&spec, timeouts, &tasks).unwrap();
    let patience = Arc::<Patience>::default();
    let asked = patience.ask();
    let out = Outbound {
        patience: Some(patience),
        ..request(1)
    };
    let Answer::Stream(_, mut frames) = http.send(out).await.unwrap() else {
        panic!()
    };
    frames.next().await.unwrap().unwrap();
    let silent = tokio::time::timeout(Duration::from_millis(200), frames.next()).await;
    assert!(silent.is_err(), "{silent:?}");
    drop(asked);
    let error = frames.next().await.unwrap().unwrap_err();
    assert!(
        matches!(error, UpstreamError::Timeout(Deadline::Silence)),
        "{error}"
    );
}

#[tokio::test]
async fn dropping_a_stream_closes_it_upstream() {
    let tasks = Tasks::new();
    let (sender, receiver) = mpsc::channel(4);
    let event = format!("data: {}\n\n", progress(1, 1));
    sender.send(event.into()).await.unwrap();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let address = serve(&tasks, None, None, move |_request| {
        let body = open(receiver.lock().unwrap().take().unwrap());
        std::future::ready(answer(200, "text/event-stream", body))
    })
    .await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    let answer = http.send(request(1)).await.unwrap();
    assert!(!sender.is_closed());
    drop(answer);
    sender.closed().await;
}

#[tokio::test]
async fn unsolicited_frames_come_over_a_get_stream_in_the_session() {
    let tasks = Tasks::new();
    let address = serve(&tasks, None, None, |request| {
        let in_session = request.headers().get("mcp-session-id").is_some();
        let plain = request.headers().get("content-type").is_none();
        let accepts = request.headers()[ACCEPT] == "text/event-stream";
        let get = request.method() == Method::GET;
        let method = if in_session && plain && accepts && get {
            "good"
        } else {
            "bad"
        };
        let event = format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}\n\n");
        std::future::ready(answer(200, "text/event-stream", full(event)))
    })
    .await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("mcp-session-id", HeaderValue::from_static("s"));
    let frames: Vec<_> = http.unsolicited(headers).await.unwrap().collect().await;
    assert_eq!(frames.len(), 1);
    assert_eq!(gist(frames[0].as_ref().unwrap()), "good");
}

#[tokio::test]
async fn where_no_get_stream_is_offered_nothing_comes_and_nothing_ends() {
    let tasks = Tasks::new();
    let http = against(&tasks, || answer(405, "text/plain", full(""))).await;
    let mut frames = http.unsolicited(HeaderMap::new()).await.unwrap();
    assert!(futures_util::FutureExt::now_or_never(frames.next()).is_none());
}

#[tokio::test]
async fn leaving_a_session_deletes_it() {
    let tasks = Tasks::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    let address = serve(&tasks, None, None, move |request| {
        let session = request.headers()["mcp-session-id"].to_str().unwrap();
        let line = format!("{} {session}", request.method());
        keep.lock().unwrap().push(line);
        std::future::ready(answer(405, "text/plain", full("no")))
    })
    .await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("mcp-session-id", HeaderValue::from_static("s"));
    http.leave(headers).await;
    assert_eq!(*seen.lock().unwrap(), ["DELETE s"]);
}

/// SECURITY STATE-8
#[tokio::test]
async fn a_connection_that_carried_one_users_token_carries_no_others() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let tasks = Tasks::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // What each connection carried.
    let carried: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let (all, family) = (Arc::clone(&carried), tasks.clone());
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let number = {
                let mut all = all.lock().unwrap();
                all.push(Vec::new());
                all.len() - 1
            };
            let all = Arc::clone(&all);
            family.spawn(async move {
                let mut part = [0; 4_096];
                while let Ok(read @ 1..) = stream.read(&mut part).await {
                    let text = String::from_utf8_lossy(&part[..read]).into_owned();
                    let token = text
                        .lines()
                        .find_map(|it| it.strip_prefix("authorization: "));
                    let token = token.unwrap_or("none").to_owned();
                    all.lock().unwrap()[number].push(token);
                    let body = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
                    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    drop(stream.write_all(answer.as_bytes()).await);
                }
            });
        }
    });
    let http = streamable(
        &spec("http", "127.0.0.1", address, "/mcp"),
        timeouts(),
        &tasks,
    );
    let http = http.unwrap().apart();
    for token in [
        "Bearer ana",
        "Bearer ben",
        "none",
        "Bearer ana",
        "Bearer ben",
        "none",
    ] {
        let mut out = request(1);
        if token != "none" {
            out.headers
                .insert(header::AUTHORIZATION, HeaderValue::from_static(token));
        }
        ask(&http, out).await.unwrap();
    }
    let mut carried = carried.lock().unwrap().clone();
    carried.sort();
    let twice = |token: &str| vec![token.to_owned(); 2];
    assert_eq!(
        carried,
        [twice("Bearer ana"), twice("Bearer ben"), twice("none")]
    );
}
