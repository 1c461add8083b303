//! Streamable HTTP against local hyper servers.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Version, header};
use tokio::sync::mpsc;

use super::{super::rig::*, *};

const MAX: usize = super::super::body::MAX_MESSAGE;
const TYPE: &str = "application/json; charset=utf-8";

/// A transport to a plain server that gives this one answer to everything.
async fn against<F>(tasks: &Tasks, make: F) -> Http
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
    Http::new(&spec, timeouts(), tasks).unwrap()
}

#[tokio::test]
async fn a_post_carries_the_peers_and_the_configured_headers_and_nothing_else() {
    let tasks = Tasks::new();
    let seen = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&seen);
    let address = serve(&tasks, None, None, move |request| {
        *keep.lock().unwrap() = Some(request);
        std::future::ready(answer(200, TYPE, full(result(1, 5))))
    })
    .await;
    let mut spec = spec("http", "127.0.0.1", address, "/mcp?x=1");
    let credential = (header::AUTHORIZATION, "Bearer s3cret".to_owned().into());
    spec.headers.push(credential);
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    let mut out = request(1);
    out.headers
        .insert("mcp-session-id", HeaderValue::from_static("s"));
    let sent = out.frame.clone();
    assert_eq!(ask(&http, out).await.unwrap(), ["{\"n\":5}"]);

    let request = seen.lock().unwrap().take().unwrap();
    assert_eq!(request.method(), Method::POST);
    assert_eq!(request.uri().to_string(), "/mcp?x=1");
    assert_eq!(request.body(), &sent);
    let expected = [
        ("accept", "application/json, text/event-stream".to_owned()),
        ("accept-encoding", "identity".to_owned()),
        ("authorization", "Bearer s3cret".to_owned()),
        ("content-length", sent.len().to_string()),
        ("content-type", "application/json".to_owned()),
        ("host", format!("127.0.0.1:{}", address.port())),
        ("mcp-session-id", "s".to_owned()),
    ];
    let mut headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    assert_eq!(headers, expected);
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
async fn a_notification_is_accepted_by_any_success() {
    for status in [200, 202, 204] {
        let tasks = Tasks::new();
        let http = against(&tasks, move || answer(status, "text/plain", full(""))).await;
        let expected = format!("accepted {status}");
        assert_eq!(ask(&http, notification()).await.unwrap(), [expected]);
    }
}

#[tokio::test]
async fn refusals_have_errors_of_their_own() {
    for (status, reason) in [
        (301, "upstream_redirect"),
        (307, "upstream_redirect"),
        (401, "upstream_auth_failed"),
        (403, "upstream_auth_failed"),
        (413, "upstream_request_too_large"),
    ] {
        let tasks = Tasks::new();
        let hits = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&hits);
        let http = against(&tasks, move || {
            count.fetch_add(1, Ordering::Relaxed);
            let mut answer = answer(status, TYPE, full(result(1, 1)));
            answer
                .headers_mut()
                .insert(header::LOCATION, HeaderValue::from_static("/elsewhere"));
            answer
        })
        .await;
        let error = ask(&http, request(1)).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{status}");
        assert_eq!(hits.load(Ordering::Relaxed), 1, "{status} was followed");
    }
}

#[tokio::test]
async fn broken_answers_are_protocol_errors() {
    let twice = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#;
    let cases: [(&str, Bytes); 8] = [
        (TYPE, "nonsense".into()),
        (TYPE, "".into()),
        (TYPE, twice.into()),
        (TYPE, result(2, 1).into()),
        (TYPE, progress(1, 1).into()),
        (TYPE, "[]".into()),
        ("text/html", result(1, 1).into()),
        (
            "text/event-stream",
            format!("data: {}\n\n", result(2, 1)).into(),
        ),
    ];
    for (kind, text) in cases {
        let tasks = Tasks::new();
        let body = text.clone();
        let http = against(&tasks, move || answer(200, kind, full(body.clone()))).await;
        let error = ask(&http, request(1)).await.unwrap_err();
        assert_eq!(error.reason(), "upstream_protocol_error", "{text:?}");
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

#[tokio::test]
async fn an_array_answers_up_to_its_response() {
    let tasks = Tasks::new();
    let http = against(&tasks, || {
        let text = format!("[{},{}]", progress(1, 1), result(1, 3));
        answer(200, TYPE, full(text))
    })
    .await;
    let answer = ask(&http, request(1)).await.unwrap();
    assert_eq!(answer, ["notifications/progress", "{\"n\":3}"]);
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
    let http = Http::new(&spec, timeouts, &tasks).unwrap();
    let error = ask(&http, request(1)).await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::Timeout("silence")),
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
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    let answer = http.send(request(1)).await.unwrap();
    assert!(!sender.is_closed());
    drop(answer);
    sender.closed().await;
}

#[tokio::test]
async fn one_connection_serves_one_call_after_another_whatever_the_answers_form() {
    let tasks = Tasks::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let (count, family) = (Arc::clone(&accepted), tasks.clone());
    tasks.spawn(async move {
        loop {
            let (socket, _peer) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let service =
                hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async move {
                    let streamed = request.headers().contains_key("streamed");
                    let (kind, body) = if streamed {
                        // The end comes on its own, after the last event.
                        let (sender, receiver) = mpsc::channel(1);
                        let event = format!("data: {}\n\n", result(1, 1));
                        sender.try_send(event.into()).unwrap();
                        ("text/event-stream", open(receiver))
                    } else {
                        (TYPE, full(result(1, 1)))
                    };
                    let told = request.headers().contains_key("told");
                    Ok::<_, std::convert::Infallible>(if told {
                        answer(202, "text/plain", full("Accepted"))
                    } else {
                        answer(200, kind, body)
                    })
                });
            family.spawn(async move {
                let io = hyper_util::rt::TokioIo::new(socket);
                let builder = hyper::server::conn::http1::Builder::new();
                drop(builder.serve_connection(io, service).await);
            });
        }
    });
    let spec = spec("http", "127.0.0.1", address, "/");
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    for turn in 0..20 {
        let mut out = request(1);
        if turn % 2 == 1 {
            out.headers
                .insert("streamed", HeaderValue::from_static("y"));
        }
        assert_eq!(ask(&http, out).await.unwrap(), ["{\"n\":1}"]);
        let mut out = notification();
        out.headers.insert("told", HeaderValue::from_static("y"));
        assert_eq!(ask(&http, out).await.unwrap(), ["accepted 202"]);
    }
    // Reuse may be lost now and then when the next call is quicker than the end of the last stream, but not as a rule.
    assert!(accepted.load(Ordering::Relaxed) <= 3, "{accepted:?}");
}

#[tokio::test]
async fn a_dead_port_and_a_silent_handshake_are_told_apart() {
    let tasks = Tasks::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = spec("https", "127.0.0.1", listener.local_addr().unwrap(), "/");
    let mut soon = timeouts();
    soon.connect = Duration::from_millis(50);
    let http = Http::new(&silent, soon, &tasks).unwrap();
    let error = ask(&http, request(1)).await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::Timeout("connect")),
        "{error}"
    );

    let dead = spec("http", "127.0.0.1", listener.local_addr().unwrap(), "/");
    drop(listener);
    let http = Http::new(&dead, timeouts(), &tasks).unwrap();
    let error = ask(&http, request(1)).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
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
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
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
async fn tls_is_checked_against_the_configured_roots_and_the_name() {
    let tasks = Tasks::new();
    let (ours, foreign) = (Authority::new(), Authority::new());
    let config = ours.server("localhost", &["h2", "http/1.1"], false);
    let address = serve(&tasks, Some(config), None, |request| {
        let version = u64::from(request.version() == Version::HTTP_2);
        std::future::ready(answer(200, TYPE, full(result(1, version))))
    })
    .await;
    for (host, roots, good) in [
        ("localhost", Some(&ours), true),
        ("127.0.0.1", Some(&ours), false),
        ("localhost", Some(&foreign), false),
        ("localhost", None, false),
    ] {
        let mut spec = spec("https", host, address, "/");
        spec.tls.ca = roots.map(Authority::pem);
        let http = Http::new(&spec, timeouts(), &tasks).unwrap();
        match ask(&http, request(1)).await {
            // And HTTP/2 is spoken where it is offered.
            Ok(answer) => assert_eq!((good, answer[0].as_str()), (true, "{\"n\":1}")),
            Err(error) => assert!(
                !good && error.to_string().contains("certificate"),
                "{error}"
            ),
        }
    }
}

#[tokio::test]
async fn our_certificate_is_shown_where_it_is_asked_for() {
    let tasks = Tasks::new();
    let authority = Authority::new();
    let config = authority.server("localhost", &["http/1.1"], true);
    let address = serve(&tasks, Some(config), None, |_request| {
        std::future::ready(answer(200, TYPE, full(result(1, 1))))
    })
    .await;
    let mut spec = spec("https", "localhost", address, "/");
    spec.tls.ca = Some(authority.pem());
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    assert!(ask(&http, request(1)).await.is_err());

    let (chain, key) = authority.issue("client");
    spec.tls.identity = Some((chain.into_bytes(), key.into()));
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    assert_eq!(ask(&http, request(1)).await.unwrap(), ["{\"n\":1}"]);
}

#[tokio::test]
async fn unusable_roots_identities_headers_and_urls_are_told_at_once() {
    let tasks = Tasks::new();
    let address = "127.0.0.1:1".parse().unwrap();
    let good = spec("https", "localhost", address, "/");
    let mut roots = good.clone();
    roots.tls.ca = Some(b"nothing".to_vec());
    let mut identity = good.clone();
    identity.tls.identity = Some((b"nothing".to_vec(), "nothing".to_owned().into()));
    let mut headers = good.clone();
    let secret = "s3cret\nx".to_owned();
    headers.headers = vec![(header::AUTHORIZATION, secret.into())];
    let mut url = good.clone();
    url.url = "https://user:s3cret@localhost/".parse().unwrap();
    for spec in [roots, identity, headers, url] {
        let error = Http::new(&spec, timeouts(), &tasks).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn long_streams_do_not_use_up_a_shared_http2_connection() {
    let tasks = Tasks::new();
    let authority = Authority::new();
    let config = authority.server("localhost", &["h2", "http/1.1"], false);
    let held = Arc::new(Mutex::new(Vec::new()));
    let versions = Arc::new(Mutex::new(HashSet::new()));
    let (keep, note) = (Arc::clone(&held), Arc::clone(&versions));
    // The server allows two streams at a time on one connection.
    let address = serve(&tasks, Some(config), Some(2), move |request| {
        let long = request.method() == Method::GET || request.headers().contains_key("mcp-method");
        note.lock().unwrap().insert((request.version(), long));
        let response = if long {
            let (sender, receiver) = mpsc::channel(1);
            sender
                .try_send("data: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n".into())
                .unwrap();
            keep.lock().unwrap().push(sender);
            answer(200, "text/event-stream", open(receiver))
        } else {
            answer(200, TYPE, full(result(1, 1)))
        };
        std::future::ready(response)
    })
    .await;
    let mut spec = spec("https", "localhost", address, "/");
    spec.tls.ca = Some(authority.pem());
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(http.unsolicited(HeaderMap::new()).await.unwrap());
        let mut out = request(1);
        let listen = HeaderValue::from_static(methods::LISTEN);
        out.headers.insert(mirror::METHOD, listen);
        let Answer::Stream(_, frames) = http.send(out).await.unwrap() else {
            panic!()
        };
        streams.push(frames);
    }
    let calls = (0..20).map(|_| ask(&http, request(1)));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap(), ["{\"n\":1}"]);
    }
    let expected = HashSet::from([(Version::HTTP_11, true), (Version::HTTP_2, false)]);
    assert_eq!(*versions.lock().unwrap(), expected);
    drop(streams);
}

/// A server on HTTP/2 that resets its first stream with `reason` and answers the others; and how many it has seen.
async fn resetting(tasks: &Tasks, reason: h2::Reason) -> (Http, Arc<AtomicUsize>) {
    let authority = Authority::new();
    let config = Arc::new(authority.server("localhost", &["h2"], false));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    tasks.spawn(async move {
        let (socket, _peer) = listener.accept().await.unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(config);
        let socket = acceptor.accept(socket).await.unwrap();
        let mut connection = h2::server::handshake(socket).await.unwrap();
        while let Some(Ok((_request, mut respond))) = connection.accept().await {
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                respond.send_reset(reason);
                continue;
            }
            let head = Response::builder().header(CONTENT_TYPE, TYPE);
            let mut body = respond
                .send_response(head.body(()).unwrap(), false)
                .unwrap();
            body.send_data(result(1, 1).into(), true).unwrap();
        }
    });
    let mut spec = spec("https", "localhost", address, "/");
    spec.tls.ca = Some(authority.pem());
    (Http::new(&spec, timeouts(), tasks).unwrap(), seen)
}

#[tokio::test]
async fn a_refused_stream_is_tried_once_more_and_no_other_reset_is() {
    let tasks = Tasks::new();
    let (http, seen) = resetting(&tasks, h2::Reason::REFUSED_STREAM).await;
    assert_eq!(ask(&http, request(1)).await.unwrap(), ["{\"n\":1}"]);
    assert_eq!(seen.load(Ordering::Relaxed), 2);

    let (http, seen) = resetting(&tasks, h2::Reason::INTERNAL_ERROR).await;
    let error = ask(&http, request(1)).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_unavailable");
    assert_eq!(seen.load(Ordering::Relaxed), 1);
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
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("mcp-session-id", HeaderValue::from_static("s"));
    http.leave(headers).await;
    assert_eq!(*seen.lock().unwrap(), ["DELETE s"]);
}

#[tokio::test]
async fn a_connection_that_died_unused_costs_the_next_call_nothing() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let tasks = Tasks::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let spec = spec("http", "127.0.0.1", listener.local_addr().unwrap(), "/");
    tasks.spawn(async move {
        let mut calls = 0;
        loop {
            let (mut socket, _peer) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            while socket.read(&mut request).await.unwrap() > 0 {
                calls += 1;
                let body = result(calls, 1);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                socket.write_all(answer.as_bytes()).await.unwrap();
                // Kept alive by its words, and closed all the same.
                if calls % 2 == 0 {
                    break;
                }
            }
        }
    });
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    for id in 1..20 {
        assert_eq!(ask(&http, request(id)).await.unwrap(), ["{\"n\":1}"]);
        // The news of the end must arrive first: it is lost in a race with the next call, and then it is an error.
        while id % 2 == 0 && !http.pool.is_stale() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_call_that_was_sent_is_never_sent_again() {
    use tokio::io::AsyncReadExt;
    let tasks = Tasks::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let spec = spec("http", "127.0.0.1", listener.local_addr().unwrap(), "/");
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    tasks.spawn(async move {
        loop {
            let (mut socket, _peer) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            if socket.read(&mut request).await.unwrap() > 0 {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    let error = ask(&http, request(1)).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_unavailable");
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_burst_over_http2_makes_one_connection() {
    let tasks = Tasks::new();
    let authority = Authority::new();
    let config = Arc::new(authority.server("localhost", &["h2"], false));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut spec = spec("https", "localhost", listener.local_addr().unwrap(), "/");
    spec.tls.ca = Some(authority.pem());
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    let family = tasks.clone();
    tasks.spawn(async move {
        loop {
            let (socket, _peer) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let acceptor = tokio_rustls::TlsAcceptor::from(Arc::clone(&config));
            family.spawn(async move {
                let socket = acceptor.accept(socket).await.unwrap();
                let mut connection = h2::server::handshake(socket).await.unwrap();
                while let Some(Ok((_request, mut respond))) = connection.accept().await {
                    let head = Response::builder().header(CONTENT_TYPE, TYPE);
                    let mut body = respond
                        .send_response(head.body(()).unwrap(), false)
                        .unwrap();
                    body.send_data(result(1, 1).into(), true).unwrap();
                }
            });
        }
    });
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    let calls = (0..50).map(|_| ask(&http, request(1)));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap(), ["{\"n\":1}"]);
    }
    assert_eq!(accepted.load(Ordering::Relaxed), 1);
}
