//! Answers that are read slowly: while there is room they take their time, and then they make room.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep},
};
use usher::tasks::Tasks;

use super::{BIG, Fillers, Scene, notes, sees_tools};
use crate::{
    harness::{Client, Revision, eventually, exchange},
    splicing::UNSEEN,
};

/// How long an answer may take in any case. Long, or a busy machine keeps those waiting for so long who do not mean to be slow.
const STALL: Duration = Duration::from_secs(8);
/// Between two pieces that a slow client reads.
const PAUSE: Duration = Duration::from_millis(130);

/// The answer to a call of the tool `big`, read piece by piece.
enum Reader {
    Http1(TcpStream, Vec<u8>),
    Http2 { body: Incoming, _tasks: Tasks },
}

impl Reader {
    async fn http1(client: &Client) -> Self {
        let (body, headers) = client.spelled("tools/call", r#"{"name":"notes_big"}"#);
        let headers: String = (headers.iter())
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let mut stream = TcpStream::connect(client.address).await.unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            client.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Self::Http1(stream, vec![0; 128 << 10])
    }

    async fn http2(client: &Client) -> Self {
        let (body, headers) = client.spelled("tools/call", r#"{"name":"notes_big"}"#);
        let stream = TcpStream::connect(client.address).await.unwrap();
        let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(128 << 10)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        let tasks = Tasks::new();
        tasks.spawn(async move { drop(connection.await) });
        let uri = format!("http://{}/mcp", client.address);
        let mut request = Request::post(uri)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::<Bytes>::from(body)).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        Self::Http2 {
            body: answer.into_body(),
            _tasks: tasks,
        }
    }

    /// The length of the next piece; `None` at the end, be it whole or not.
    async fn piece(&mut self) -> Option<usize> {
        match self {
            Self::Http1(stream, room) => stream.read(room).await.ok().filter(|read| *read > 0),
            Self::Http2 { body, .. } => {
                let frame = body.frame().await?.ok()?;
                Some(frame.into_data().map_or(0, |data| data.len()))
            }
        }
    }

    /// The length of the rest.
    async fn rest(&mut self) -> usize {
        let mut read = 0;
        while let Some(piece) = self.piece().await {
            read += piece;
        }
        read
    }
}

#[tokio::test]
async fn rel_3_an_answer_that_is_read_slowly_is_cut_off_where_memory_is_short_and_no_other() {
    for http2 in [false, true] {
        let notes = notes();
        let scene = Scene::of(
            &notes,
            "body_time: 5m, write_stall: 8s",
            &format!("audit: off\n{UNSEEN}"),
        )
        .await;
        let client = scene.served.client(Revision::V2026_07_28).await;
        sees_tools(&client).await;
        let begin = async || {
            if http2 {
                Reader::http2(&client).await
            } else {
                Reader::http1(&client).await
            }
        };
        let bounds = async || {
            let told = exchange(scene.admin, Method::GET, "/metrics", &[], b"")
                .await
                .body;
            let reached = told
                .lines()
                .filter(|line| line.starts_with("usher_bounds_reached"));
            let bound = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
            reached.map(bound).collect::<Vec<_>>()
        };
        let mut fillers = Fillers::begin(&scene).await;
        fillers.fill(15).await;
        let mut slow = begin().await;
        let mut read = slow.piece().await.unwrap();
        let began = Instant::now();
        while began.elapsed() < STALL + STALL / 3 {
            read += slow.piece().await.expect("it may take its time");
            sleep(PAUSE).await;
        }
        assert!(read < BIG / 2, "it is read slowly: {read}");
        assert_eq!(bounds().await, [] as [String; 0]);
        // Another fills the budget up, and reads on when there is room again.
        let other = async {
            let mut reader = begin().await;
            let first = reader.piece().await.unwrap();
            eventually("one of them is cut off", async || {
                (bounds().await == ["memory"]).then_some(())
            })
            .await;
            first + reader.rest().await
        };
        let slowly = async {
            while let Some(piece) = slow.piece().await {
                read += piece;
                sleep(PAUSE).await;
            }
            read
        };
        let (whole, read) = tokio::join!(other, slowly);
        assert!(read < BIG, "http2 {http2}: it makes room");
        assert!(whole >= BIG, "http2 {http2}: {whole} of the other");
        assert_eq!(bounds().await, ["memory"], "http2 {http2}");
        drop(fillers);
        eventually("there is room", async || {
            let answer = client.call("notes_big", "{}").await;
            (answer.status == 200 && answer.text().len() == BIG).then_some(())
        })
        .await;
    }
}
