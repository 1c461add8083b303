//! The HTTP/2 connection that calls share: made once, and closed when it is not used.

use std::sync::atomic::AtomicUsize;

use futures_util::future::join_all;
use http::header::CONTENT_TYPE;

use super::{
    super::rig::*,
    tests::{read, sent},
    *,
};

const TYPE: &str = "application/json";

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
            count.fetch_add(1, Relaxed);
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
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    let calls = (0..50).map(|_| ask(&http, request(1)));
    for answer in join_all(calls).await {
        assert_eq!(answer.unwrap(), ["{\"n\":1}"]);
    }
    assert_eq!(accepted.load(Relaxed), 1);
}

#[tokio::test]
async fn a_connection_of_http2_is_closed_when_it_has_not_been_used_for_a_while() {
    let tasks = Tasks::new();
    let authority = Authority::new();
    let config = authority.server("localhost", &["h2"], false);
    let address = serve(&tasks, Some(config), None, |_request| {
        std::future::ready(answer(200, TYPE, full(result(1, 1))))
    })
    .await;
    let mut spec = spec("https", "localhost", address, "/");
    spec.tls.ca = Some(authority.pem());
    let pool = Pool::new(dial(&spec), &tasks);
    let pass = async |seconds| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        // What a peer has to say takes no time but its own.
        tokio::time::resume();
        pool.sweep();
    };
    for _ in 0..2 {
        read(sent(&pool, &spec.url).await).await;
        pass(50).await;
        assert!(!pool.is_stale());
    }
    pass(11).await;
    assert!(pool.is_stale());
}
