//! Ends of streams that come late, seen through the Streamable HTTP transport.

use std::{
    net::SocketAddr,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Semaphore,
    time::sleep,
};

use super::{
    super::{
        super::{Http, rig::*},
        Pool,
        tests::sent,
    },
    PATIENCE,
};
use crate::tasks::Tasks;

/// What a server says after an answer in an event stream, when it is told to.
type After = Vec<&'static [u8]>;

/// A server whose streams hold an answer and then, one word from outside for each piece, what comes after it; how many connections
/// it has accepted, and how many have ended.
async fn late(tasks: &Tasks, after: After) -> (SocketAddr, Arc<Semaphore>, [Arc<AtomicUsize>; 2]) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let words = Arc::new(Semaphore::new(0));
    let counts = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let (family, go) = (tasks.clone(), Arc::clone(&words));
    let [accepted, ended] = counts.clone();
    tasks.spawn(async move {
        loop {
            let (mut socket, _peer) = listener.accept().await.unwrap();
            accepted.fetch_add(1, Relaxed);
            let (go, ended, after) = (Arc::clone(&go), Arc::clone(&ended), after.clone());
            family.spawn(async move {
                let mut asked = vec![0; 4096];
                while socket.read(&mut asked).await.is_ok_and(|length| length > 0) {
                    let event = format!("data: {}\n\n", result(1, 1));
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                    let answer = format!("{head}{:x}\r\n{event}\r\n", event.len());
                    socket.write_all(answer.as_bytes()).await.unwrap();
                    for piece in &after {
                        go.acquire().await.unwrap().forget();
                        // Who has hung up does not hear it.
                        _ = socket.write_all(piece).await;
                    }
                }
                ended.fetch_add(1, Relaxed);
            });
        }
    });
    (address, words, counts)
}

/// Until what was written to a connection can be read from it.
async fn arrived() {
    sleep(Duration::from_millis(100)).await;
}

#[tokio::test]
async fn the_end_of_a_stream_is_waited_for_by_nobody_and_read_by_who_is_next() {
    let tasks = Tasks::new();
    let after: After = vec![b"7\r\n: bye\n\n\r\n", b"0\r\n\r\n"];
    let (address, words, [accepted, _]) = late(&tasks, after).await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let http = Http::new(&spec, timeouts(), &tasks).unwrap();
    let call = async || assert_eq!(ask(&http, request(1)).await.unwrap(), ["{\"n\":1}"]);
    call().await;
    call().await;
    assert_eq!(accepted.load(Relaxed), 2, "the end of neither has come");
    // A comment to each, which is not the end.
    words.add_permits(2);
    arrived().await;
    call().await;
    assert_eq!(accepted.load(Relaxed), 3);
    words.add_permits(4);
    arrived().await;
    for _ in 0..3 {
        call().await;
    }
    assert_eq!(accepted.load(Relaxed), 3, "all three serve again");
}

#[tokio::test]
async fn a_stream_that_does_not_end_or_says_too_much_closes_its_connection() {
    static LONG: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let comment = format!(": {}\n\n", "x".repeat(9 << 10));
        format!("{:x}\r\n{comment}\r\n0\r\n\r\n", comment.len()).into()
    });
    for (after, words) in [(vec![&b"0\r\n\r\n"[..]], 0), (vec![&LONG[..]], 1)] {
        let tasks = Tasks::new();
        let (address, go, [accepted, ended]) = late(&tasks, after).await;
        let spec = spec("http", "127.0.0.1", address, "/");
        let http = Http::new(&spec, timeouts(), &tasks).unwrap();
        ask(&http, request(1)).await.unwrap();
        go.add_permits(words);
        if words == 0 {
            sleep(PATIENCE).await;
        }
        arrived().await;
        ask(&http, request(1)).await.unwrap();
        assert_eq!(accepted.load(Relaxed), 2);
        go.add_permits(2);
        arrived().await;
        assert_eq!(ended.load(Relaxed), 1, "the first alone is closed");
        // The second has come to its end in time, or said too much as well.
        ask(&http, request(1)).await.unwrap();
        assert_eq!(accepted.load(Relaxed), 2 + words);
    }
}

#[tokio::test]
async fn a_sweep_finds_the_streams_that_have_ended_and_those_that_never_will() {
    let tasks = Tasks::new();
    let (address, words, [_, ended]) = late(&tasks, vec![b"0\r\n\r\n"]).await;
    let spec = spec("http", "127.0.0.1", address, "/");
    let pool = Pool::new(&spec.url, &spec.tls, timeouts().connect, &tasks).unwrap();
    for words_to_come in [1, 0] {
        let mut body = sent(&pool, &spec.url).await.into_body();
        assert!(body.piece().await.unwrap().is_some());
        assert!(body.leave().is_none());
        pool.sweep();
        assert_eq!(pool.idle(), 0);
        words.add_permits(words_to_come);
        arrived().await;
        pool.sweep();
        assert_eq!((pool.idle(), ended.load(Relaxed)), (words_to_come, 0));
    }
    sleep(PATIENCE).await;
    pool.sweep();
    words.add_permits(1);
    arrived().await;
    assert_eq!((pool.idle(), ended.load(Relaxed)), (0, 1));
}
