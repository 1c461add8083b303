//! Connections, versions, TLS and retries, seen through the Streamable HTTP transport.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Mutex, atomic::AtomicUsize},
    task::Wake,
};

use futures_util::{StreamExt, future::join_all};
use http::{
    HeaderMap, HeaderValue, Method, Version,
    header::{self, CONTENT_TYPE},
};
use tokio::{
    sync::{Barrier, mpsc},
    time::{Instant, timeout},
};

use super::{
    super::{Answer, Http, Transport, body::whole, http::assemble, rig::*},
    *,
};
use crate::{
    protocol::{methods, mirror},
    tasks::Lanes,
    upstream::Deadline,
};

const TYPE: &str = "application/json";

/// A server over HTTP/1.1 that answers in either form, and how many connections it has accepted.
async fn counting(tasks: &Tasks) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let (count, family) = (Arc::clone(&accepted), tasks.clone());
    tasks.spawn(async move {
        loop {
            let (socket, _peer) = listener.accept().await.unwrap();
            count.fetch_add(1, Relaxed);
            let service = hyper::service::service_fn(|request: Request<Incoming>| async move {
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
    (address, accepted)
}

#[tokio::test]
async fn one_connection_serves_one_call_after_another_whatever_the_answers_form() {
    let tasks = Tasks::new();
    let (address, accepted) = counting(&tasks).await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
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
    assert!(accepted.load(Relaxed) <= 3, "{accepted:?}");
}

/// Wakes a task, and counts how often.
struct Counted(Waker, AtomicUsize);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Relaxed);
        self.0.wake_by_ref();
    }
}

#[tokio::test]
async fn taking_an_answer_off_a_connection_that_one_drives_wakes_nobody() {
    let tasks = Tasks::new();
    let address = serve(&tasks, None, None, |_| {
        std::future::ready(answer(200, TYPE, full(result(1, 1))))
    })
    .await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let pool = Pool::new(dial(&spec), &tasks);
    let task = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let counted = Arc::new(Counted(task, AtomicUsize::new(0)));
    let waker = quiet::around(&Waker::from(Arc::clone(&counted)));
    let request = assemble(Method::POST, &spec.url, HeaderMap::new(), Bytes::new());
    let mut sending = pin!(pool.send(request, Use::Pooled));
    let response = poll_fn(|_| sending.as_mut().poll(&mut Context::from_waker(&waker))).await;
    let mut body = response.unwrap().into_body();
    // What is still on its way comes now; nothing else wakes anybody while this test goes on without a pause.
    sleep(Duration::from_millis(100)).await;
    let before = counted.1.load(Relaxed);
    assert!(before > 0, "the answer woke whoever waited for it");
    let piece = pin!(body.piece()).poll(&mut Context::from_waker(&waker));
    assert!(matches!(piece, Poll::Ready(Ok(Some(_)))));
    assert_eq!(counted.1.load(Relaxed), before);
}

#[tokio::test]
async fn a_dead_port_and_a_silent_handshake_are_told_apart() {
    let tasks = Tasks::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = spec("https", "127.0.0.1", listener.local_addr().unwrap(), "/");
    let mut soon = timeouts();
    soon.connect = Duration::from_millis(50);
    let http = streamable(&silent, soon, &tasks).unwrap();
    let error = ask(&http, request(1)).await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::Timeout(Deadline::Connect)),
        "{error}"
    );

    let dead = spec("http", "127.0.0.1", listener.local_addr().unwrap(), "/");
    drop(listener);
    let http = streamable(&dead, timeouts(), &tasks).unwrap();
    let error = ask(&http, request(1)).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
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
        let http = streamable(&spec, timeouts(), &tasks).unwrap();
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
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    assert!(ask(&http, request(1)).await.is_err());

    let (chain, key) = authority.issue("client");
    spec.tls.identity = Some((chain.into_bytes(), key.into()));
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
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
        let error = streamable(&spec, timeouts(), &tasks).unwrap_err();
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
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(http.unsolicited(HeaderMap::new()).await.unwrap());
        let mut out = request(1);
        let listen = HeaderValue::from_static(methods::LISTEN);
        out.headers.insert(mirror::METHOD, listen);
        out.listens = true;
        let Answer::Stream(_, frames) = http.send(out).await.unwrap() else {
            panic!()
        };
        streams.push(frames);
    }
    let calls = (0..20).map(|_| ask(&http, request(1)));
    for answer in join_all(calls).await {
        assert_eq!(answer.unwrap(), ["{\"n\":1}"]);
    }
    let expected = HashSet::from([(Version::HTTP_11, true), (Version::HTTP_2, false)]);
    assert_eq!(*versions.lock().unwrap(), expected);
    drop(streams);
}

/// What speaks nothing else is listened to on connections that serve no calls either.
#[tokio::test]
async fn a_server_of_http2_alone_is_listened_to_as_well() {
    let tasks = Tasks::new();
    let authority = Authority::new();
    let acceptor =
        tokio_rustls::TlsAcceptor::from(Arc::new(authority.server("localhost", &["h2"], false)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut spec = spec("https", "localhost", listener.local_addr().unwrap(), "/");
    spec.tls.ca = Some(authority.pem());
    let (held, mut streams) = mpsc::channel(2);
    let family = tasks.clone();
    tasks.spawn(async move {
        loop {
            let (socket, _peer) = listener.accept().await.unwrap();
            let (acceptor, held) = (acceptor.clone(), held.clone());
            family.spawn(async move {
                // Who offers another protocol is told so.
                let Ok(socket) = acceptor.accept(socket).await else {
                    return;
                };
                let mut builder = h2::server::Builder::new();
                // One stream that stays open is all that a connection has room for.
                let building = builder.max_concurrent_streams(1).handshake(socket);
                let mut connection = building.await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let listens = request.method() == Method::GET;
                    let kind = if listens { "text/event-stream" } else { TYPE };
                    let head = Response::builder().header(CONTENT_TYPE, kind);
                    let mut body = respond
                        .send_response(head.body(()).unwrap(), false)
                        .unwrap();
                    if listens {
                        let event = "data: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n";
                        body.send_data(Bytes::from(event), false).unwrap();
                        held.try_send(body).unwrap();
                    } else {
                        body.send_data(result(1, 1).into(), true).unwrap();
                    }
                }
            });
        }
    });
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    let mut heard = Vec::new();
    for _ in 0..2 {
        let mut frames = http.unsolicited(HeaderMap::new()).await.unwrap();
        assert_eq!(gist(&frames.next().await.unwrap().unwrap()), "m");
        heard.push(frames);
        assert_eq!(ask(&http, request(1)).await.unwrap(), ["{\"n\":1}"]);
    }
    // What nobody listens to any more ends.
    drop(heard);
    for _ in 0..2 {
        let mut body = streams.recv().await.unwrap();
        let ended = timeout(Duration::from_secs(20), poll_fn(|cx| body.poll_reset(cx)));
        assert!(ended.await.is_ok());
    }
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
            if count.fetch_add(1, Relaxed) == 0 {
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
    (streamable(&spec, timeouts(), tasks).unwrap(), seen)
}

#[tokio::test]
async fn a_refused_stream_is_tried_once_more_and_no_other_reset_is() {
    let tasks = Tasks::new();
    let (http, seen) = resetting(&tasks, h2::Reason::REFUSED_STREAM).await;
    assert_eq!(ask(&http, request(1)).await.unwrap(), ["{\"n\":1}"]);
    assert_eq!(seen.load(Relaxed), 2);

    let (http, seen) = resetting(&tasks, h2::Reason::INTERNAL_ERROR).await;
    let error = ask(&http, request(1)).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_unavailable");
    assert_eq!(seen.load(Relaxed), 1);
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
    let pool = Pool::new(dial(&spec), &tasks);
    for id in 1..20 {
        let call = assemble(Method::POST, &spec.url, HeaderMap::new(), Bytes::new());
        let mut response = pool.send(call, Use::Pooled).await.unwrap();
        let body = whole(
            response.body_mut(),
            32 << 20,
            crate::memory::process().hold(),
        )
        .await
        .unwrap();
        assert_eq!(body, result(id, 1));
        // The news of the end must arrive first: in a race with the next call it is lost, and that call fails.
        while id % 2 == 0 && !pool.is_stale() {
            tokio::task::yield_now().await;
        }
        pool.sweep();
        assert_eq!(
            pool.idle(),
            usize::from(id % 2 == 1),
            "a sweep closes the dead alone"
        );
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
                count.fetch_add(1, Relaxed);
            }
        }
    });
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    let error = ask(&http, request(1)).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_unavailable");
    assert_eq!(seen.load(Relaxed), 1);
}

#[tokio::test]
async fn a_connection_that_brought_garbage_is_not_used_again() {
    for (kind, garbage, fresh) in [
        (TYPE, "garbage".to_owned(), true),
        (TYPE, result(2, 1), true),
        ("text/event-stream", "data: garbage\n\n".to_owned(), true),
        (TYPE, result(1, 1), false),
    ] {
        let tasks = Tasks::new();
        let ports = Arc::new(Mutex::new(Vec::new()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let spec = spec("http", "127.0.0.1", listener.local_addr().unwrap(), "/");
        let (seen, family) = (Arc::clone(&ports), tasks.clone());
        tasks.spawn(async move {
            loop {
                let (socket, peer) = listener.accept().await.unwrap();
                let (seen, garbage) = (Arc::clone(&seen), garbage.clone());
                let service = hyper::service::service_fn(move |_request: Request<Incoming>| {
                    seen.lock().unwrap().push(peer.port());
                    let body = full(garbage.clone());
                    std::future::ready(Ok::<_, std::convert::Infallible>(answer(200, kind, body)))
                });
                family.spawn(async move {
                    let io = hyper_util::rt::TokioIo::new(socket);
                    let builder = hyper::server::conn::http1::Builder::new();
                    drop(builder.serve_connection(io, service).await);
                });
            }
        });
        let http = streamable(&spec, timeouts(), &tasks).unwrap();
        for _ in 0..2 {
            assert_eq!(ask(&http, request(1)).await.is_err(), fresh);
        }
        let ports = ports.lock().unwrap();
        assert_eq!(ports[0] != ports[1], fresh);
    }
}

/// Sends one request over `pool` from wherever it is called.
pub(super) async fn sent(pool: &Pool, url: &Uri) -> Response<Arriving> {
    let request = assemble(Method::POST, url, HeaderMap::new(), Bytes::new());
    pool.send(request, Use::Pooled).await.unwrap()
}

/// Reads an answer to its end, wherever it is called.
pub(super) async fn read(response: Response<Arriving>) {
    let mut body = response.into_body();
    while body.piece().await.unwrap().is_some() {}
}

/// Runs `work` on a lane.
async fn on_lane<T: Send + 'static>(
    lanes: &Tasks,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let (told, done) = tokio::sync::oneshot::channel();
    lanes.spread(async move {
        let _ = told.send(work.await);
    });
    done.await.unwrap()
}

#[tokio::test]
async fn each_lane_keeps_the_connections_that_it_opened() {
    let family = Tasks::new();
    let (address, accepted) = counting(&family).await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let pool = Pool::new(dial(&spec), &family);
    let apart = pool.apart();
    let lanes = Tasks::over(Lanes::of(1).unwrap());
    let opened = || accepted.load(Relaxed);
    let (on, url) = (pool.clone(), spec.url.clone());
    let once = move || {
        let (on, url) = (on.clone(), url.clone());
        async move { read(sent(&on, &url).await).await }
    };
    once().await;
    once().await;
    assert_eq!(opened(), 1);
    on_lane(&lanes, once()).await;
    on_lane(&lanes, once()).await;
    assert_eq!((opened(), pool.idle()), (2, 2));
    // An answer that is read elsewhere gives its connection back to where it came from.
    let (on, url) = (pool.clone(), spec.url.clone());
    let response = on_lane(&lanes, async move { sent(&on, &url).await }).await;
    read(response).await;
    on_lane(&lanes, once()).await;
    once().await;
    assert_eq!((opened(), pool.idle()), (2, 2));
    // What there may be one of for each user is shared by all lanes.
    let (on, url) = (apart.clone(), spec.url.clone());
    on_lane(&lanes, async move { read(sent(&on, &url).await).await }).await;
    read(sent(&apart, &spec.url).await).await;
    assert_eq!((opened(), apart.idle()), (3, 1));
}

#[tokio::test]
async fn a_burst_dials_at_once_as_soon_as_each_is_known_to_need_a_connection() {
    let tasks = Tasks::new();
    let authority = Authority::new();
    let config = Arc::new(authority.server("localhost", &["http/1.1"], false));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut spec = spec("https", "localhost", listener.local_addr().unwrap(), "/");
    spec.tls.ca = Some(authority.pem());
    // After the first, no handshake is done until all the others have been begun; and no call ends before the last.
    let (handshakes, calls) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(4)));
    let family = tasks.clone();
    tasks.spawn(async move {
        for n in 0..4 {
            let (socket, _peer) = listener.accept().await.unwrap();
            let acceptor = tokio_rustls::TlsAcceptor::from(Arc::clone(&config));
            let (handshakes, calls) = (Arc::clone(&handshakes), Arc::clone(&calls));
            family.spawn(async move {
                if n > 0 {
                    handshakes.wait().await;
                }
                let socket = acceptor.accept(socket).await.unwrap();
                let service = hyper::service::service_fn(|_: Request<Incoming>| async {
                    calls.wait().await;
                    Ok::<_, std::convert::Infallible>(answer(200, TYPE, full(result(1, 1))))
                });
                let io = hyper_util::rt::TokioIo::new(socket);
                let builder = hyper::server::conn::http1::Builder::new();
                drop(builder.serve_connection(io, service).await);
            });
        }
    });
    let mut soon = timeouts();
    soon.connect = Duration::from_secs(3);
    let http = streamable(&spec, soon, &tasks).unwrap();
    let calls = (0..4).map(|_| ask(&http, request(1)));
    let all = timeout(Duration::from_secs(20), join_all(calls)).await;
    for answer in all.expect("they wait for one another") {
        assert_eq!(answer.unwrap(), ["{\"n\":1}"]);
    }
}

#[tokio::test]
async fn those_who_wait_for_a_connection_that_does_not_come_about_wait_once() {
    let tasks = Tasks::new();
    let authority = Authority::new();
    // The handshake is never answered.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut spec = spec("https", "localhost", listener.local_addr().unwrap(), "/");
    spec.tls.ca = Some(authority.pem());
    let mut soon = timeouts();
    soon.connect = Duration::from_millis(500);
    let http = streamable(&spec, soon, &tasks).unwrap();
    let began = Instant::now();
    for turn in 1..3 {
        let calls = (0..8).map(|_| ask(&http, request(1)));
        // One of them has failed to connect, and the others have waited for it: what was tried once failed once.
        let mut whose = [0, 0];
        for error in join_all(calls).await {
            match error {
                Err(UpstreamError::Timeout(Deadline::Connect)) => whose[0] += 1,
                Err(UpstreamError::Timeout(Deadline::ConnectOfAnother)) => whose[1] += 1,
                other => panic!("{:?}", other.err()),
            }
        }
        assert_eq!(whose, [1, 7]);
        // Whoever comes afterwards tries again.
        let took = began.elapsed();
        assert!(took >= soon.connect * turn, "{took:?}");
        assert!(took < soon.connect * (3 * turn), "{took:?}");
    }
}
