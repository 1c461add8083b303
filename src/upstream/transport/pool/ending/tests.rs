//! Ends of streams that come late, seen through the Streamable HTTP transport.

use std::{
    net::SocketAddr,
    sync::{
        Arc, LazyLock, Mutex,
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
    *,
};
use crate::{tasks::Tasks, upstream::spec::HttpSpec};

/// What a server says after an answer in an event stream, when it is told to.
type After = Vec<&'static [u8]>;

const END: &[u8] = b"0\r\n\r\n";

/// A server whose streams hold an answer and then, one word from outside for each piece, what comes after it.
struct Late {
    address: SocketAddr,
    words: Arc<Semaphore>,
    /// Which connection each request came over.
    asked: Arc<Mutex<Vec<usize>>>,
    /// How many connections have ended.
    ended: Arc<AtomicUsize>,
}

impl Late {
    async fn serve(tasks: &Tasks, after: After) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let late = Self {
            address: listener.local_addr().unwrap(),
            words: Arc::new(Semaphore::new(0)),
            asked: Default::default(),
            ended: Default::default(),
        };
        let (words, asked) = (late.words.clone(), late.asked.clone());
        let (ended, family) = (late.ended.clone(), tasks.clone());
        tasks.spawn(async move {
            for connection in 0.. {
                let (mut socket, _peer) = listener.accept().await.unwrap();
                let (words, asked) = (words.clone(), asked.clone());
                let (ended, after) = (ended.clone(), after.clone());
                family.spawn(async move {
                    let mut read = vec![0; 4096];
                    while socket.read(&mut read).await.is_ok_and(|length| length > 0) {
                        asked.lock().unwrap().push(connection);
                        socket.write_all(&answer()).await.unwrap();
                        for piece in &after {
                            words.acquire().await.unwrap().forget();
                            // Who has hung up does not hear it.
                            _ = socket.write_all(piece).await;
                        }
                    }
                    ended.fetch_add(1, Relaxed);
                });
            }
        });
        late
    }

    fn spec(&self) -> HttpSpec {
        spec("http", "127.0.0.1", self.address, "/")
    }

    fn pool(&self, tasks: &Tasks) -> Pool {
        Pool::new(dial(&self.spec()), tasks)
    }

    /// Lets so many pieces go, and waits until they can be read.
    async fn says(&self, words: usize) {
        self.words.add_permits(words);
        sleep(Duration::from_millis(50)).await;
    }

    fn asked(&self) -> Vec<usize> {
        self.asked.lock().unwrap().clone()
    }

    fn ended(&self) -> usize {
        self.ended.load(Relaxed)
    }
}

/// The beginning of an answer whose end is still to come.
fn answer() -> Vec<u8> {
    let event = format!("data: {}\n\n", result(1, 1));
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("{head}{:x}\r\n{event}\r\n", event.len()).into()
}

async fn call(http: &Http) {
    assert_eq!(ask(http, request(1)).await.unwrap(), ["{\"n\":1}"]);
}

/// A body of which nobody wants more, and its connection.
async fn unfinished(pool: &Pool, late: &Late) -> (Incoming, Http1) {
    let mut body = sent(pool, &late.spec().url).await.into_body();
    assert!(body.piece().await.unwrap().is_some());
    (body.body, body.driven.unwrap().line)
}

#[tokio::test]
async fn the_end_of_a_stream_is_waited_for_by_nobody_and_read_by_who_is_next() {
    let tasks = Tasks::new();
    let late = Late::serve(&tasks, vec![b"7\r\n: bye\n\n\r\n", END]).await;
    let http = streamable(&late.spec(), timeouts(), &tasks).unwrap();
    call(&http).await;
    call(&http).await;
    assert_eq!(late.asked(), [0, 1], "the end of neither has come");
    // A comment to each, which is not the end.
    late.says(2).await;
    call(&http).await;
    late.says(4).await;
    for _ in 0..3 {
        call(&http).await;
    }
    let mut all = late.asked();
    assert_eq!(all[..3], [0, 1, 2]);
    all[3..].sort_unstable();
    assert_eq!(all[3..], [0, 1, 2], "all three serve again");
}

#[tokio::test]
async fn a_stream_that_says_too_much_closes_its_connection() {
    static LONG: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let comment = format!(": {}\n\n", "x".repeat(9 << 10));
        let chunk = format!("{:x}\r\n{comment}\r\n", comment.len());
        [chunk.as_bytes(), END].concat()
    });
    let tasks = Tasks::new();
    let late = Late::serve(&tasks, vec![&LONG]).await;
    let http = streamable(&late.spec(), timeouts(), &tasks).unwrap();
    call(&http).await;
    late.says(1).await;
    call(&http).await;
    late.says(1).await;
    assert_eq!((late.asked(), late.ended()), (vec![0, 1], 1));
}

#[tokio::test]
async fn a_stream_that_does_not_end_is_closed_though_nobody_calls() {
    let tasks = Tasks::new();
    let late = Late::serve(&tasks, vec![END]).await;
    let http = streamable(&late.spec(), timeouts(), &tasks).unwrap();
    call(&http).await;
    sleep(3 * PATIENCE).await;
    // To nobody.
    late.says(1).await;
    assert_eq!(late.ended(), 1);
}

#[tokio::test]
async fn after_a_burst_of_streams_calls_go_over_one_connection_again() {
    let tasks = Tasks::new();
    let late = Late::serve(&tasks, vec![END]).await;
    let pool = late.pool(&tasks);
    for connection in 0..3 {
        let (body, line) = unfinished(&pool, &late).await;
        assert_eq!(late.asked().last(), Some(&connection));
        pool.leave(body, line);
    }
    pool.settle();
    assert_eq!(pool.idle(), 0);
    late.says(3).await;
    pool.settle();
    assert_eq!(pool.idle(), 3);
    for _ in 0..4 {
        let (body, line) = unfinished(&pool, &late).await;
        pool.leave(body, line);
        late.says(1).await;
        pool.settle();
    }
    let all = late.asked();
    assert!(all[3..].iter().all(|it| *it == all[3]), "{all:?}");
    assert_eq!(late.ended(), 0);
}

#[tokio::test]
async fn where_no_more_may_be_left_the_first_that_has_ended_is_free() {
    let tasks = Tasks::new();
    let late = Late::serve(&tasks, vec![END]).await;
    let pool = late.pool(&tasks);
    let list = pool.0.lists.at(pool.0.lists.here());
    let [first, second, third] = [
        unfinished(&pool, &late).await,
        unfinished(&pool, &late).await,
        unfinished(&pool, &late).await,
    ];
    list.leave(Ending::of(first.0, first.1), 1);
    late.says(1).await;
    list.leave(Ending::of(second.0, second.1), 1);
    assert_eq!(pool.idle(), 1);
    list.leave(Ending::of(third.0, third.1), 1);
    late.says(1).await;
    assert_eq!((pool.idle(), late.ended()), (1, 1), "the second is closed");
}

#[tokio::test]
async fn behind_many_that_do_not_end_one_that_does_is_found_in_a_few_turns() {
    let tasks = Tasks::new();
    let late = Late::serve(&tasks, vec![END]).await;
    let pool = late.pool(&tasks);
    let list = pool.0.lists.at(pool.0.lists.here());
    let mut all = Vec::new();
    for _ in 0..6 {
        all.push(unfinished(&pool, &late).await);
    }
    // The first to be asked hears the first word, and is left last.
    for (body, line) in all.into_iter().rev() {
        pool.leave(body, line);
    }
    late.says(1).await;
    assert!(list.free().is_none());
    assert!(list.free().is_some());
}

#[tokio::test]
async fn what_is_left_in_a_pool_apart_serves_that_alone() {
    let tasks = Tasks::new();
    let late = Late::serve(&tasks, vec![END]).await;
    let pool = late.pool(&tasks);
    let apart = pool.apart();
    for (pool, connection) in [(&apart, 0), (&pool, 1), (&apart, 0), (&pool, 1)] {
        let (body, line) = unfinished(pool, &late).await;
        assert_eq!(late.asked().last(), Some(&connection));
        pool.leave(body, line);
        late.says(1).await;
    }
}
