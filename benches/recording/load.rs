//! Clients that call one tool again and again, and look at every answer.

use std::{fs, net::SocketAddr, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep},
};

/// How long a gateway may take until it answers calls.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a gateway.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    /// What is said with each call, and has to come back.
    said: Bytes,
    body: Bytes,
    /// What reads and writes it.
    _connection: JoinSet<hyper::Result<()>>,
}

/// What one turn came to.
pub(crate) struct Slice {
    took: Duration,
    /// What the gateway's threads have worked.
    worked: Duration,
    /// How long processors had nothing to do, in hundredths of a second.
    idle: u64,
    /// How long each call took, the shortest first.
    calls: Vec<Duration>,
}

impl Slice {
    /// Calls each second.
    pub(crate) fn rate(&self) -> f64 {
        self.calls.len() as f64 / self.took.as_secs_f64()
    }

    /// What the gateway worked for each call, in microseconds.
    pub(crate) fn work(&self) -> f64 {
        self.worked.as_secs_f64() * 1e6 / self.calls.len() as f64
    }

    /// How long processors had nothing to do for each call, in microseconds.
    pub(crate) fn idle(&self) -> f64 {
        self.idle as f64 * 1e4 / self.calls.len() as f64
    }

    /// What a hundredth of the calls took longer than, in milliseconds.
    pub(crate) fn p99(&self) -> f64 {
        let at = self.calls.len() * 99 / 100;
        self.calls[at.min(self.calls.len() - 1)].as_secs_f64() * 1e3
    }
}

impl Client {
    /// Connects as soon as the gateway answers a call, in which this is said: letters and blanks.
    pub(crate) async fn connect(gateway: SocketAddr, said: &str) -> Self {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(stream) = TcpStream::connect(gateway).await {
                stream.set_nodelay(true).expect("an option");
                let mut client = Self::over(stream, said).await;
                let answer = client.call().await;
                if client.is_answered(&answer) {
                    return client;
                }
            }
            assert!(Instant::now() < until, "the gateway answers no call");
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn over(stream: TcpStream, said: &str) -> Self {
        let made = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = made.expect("HTTP");
        let mut driving = JoinSet::new();
        driving.spawn(connection);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"sdk_echo","arguments":{{"text":"{said}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        Self {
            sender,
            said: Bytes::copy_from_slice(said.as_bytes()),
            body: Bytes::from(body),
            _connection: driving,
        }
    }

    fn is_answered(&self, answer: &[u8]) -> bool {
        memchr::memmem::find(answer, &self.said).is_some()
    }

    /// Calls once; the answer.
    async fn call(&mut self) -> Bytes {
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "sdk_echo")
            .body(Full::new(self.body.clone()))
            .expect("a request");
        self.sender.ready().await.expect("a connection");
        let answer = self.sender.send_request(request).await.expect("an answer");
        let body = answer.into_body().collect().await.expect("its body");
        body.to_bytes()
    }

    /// Calls until then; how long each call took.
    async fn work(&mut self, until: Instant) -> Vec<Duration> {
        let mut calls = Vec::new();
        loop {
            let began = Instant::now();
            if began >= until {
                return calls;
            }
            let answer = self.call().await;
            assert!(self.is_answered(&answer), "{answer:?}");
            calls.push(began.elapsed());
        }
    }
}

/// All of them call the gateway of this process, for as long as a turn is.
pub(crate) async fn slice(clients: &mut [Client], gateway: u32, turn: Duration) -> Slice {
    let (began, before, rested) = (Instant::now(), worked(gateway), idle());
    let work = clients.iter_mut().map(|client| client.work(began + turn));
    let all = work.collect::<FuturesUnordered<_>>();
    let mut calls = all.collect::<Vec<_>>().await.concat();
    let took = began.elapsed();
    assert!(!calls.is_empty(), "no call ended");
    calls.sort_unstable();
    Slice {
        idle: idle().saturating_sub(rested),
        took,
        worked: worked(gateway) - before,
        calls,
    }
}

/// How long the threads of a process have had a processor.
fn worked(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
    let each = threads.map(|thread| -> u64 {
        let told = fs::read_to_string(thread.expect("a thread").path().join("schedstat"));
        let told = told.expect("its times");
        let nanos = told.split_whitespace().next();
        nanos
            .and_then(|nanos| nanos.parse().ok())
            .expect("a number")
    });
    Duration::from_nanos(each.sum::<u64>())
}

/// How long processors have had nothing to do, or waited for a disk with nothing else to do, in hundredths of a second.
fn idle() -> u64 {
    let told = fs::read_to_string("/proc/stat").expect("what processors did");
    let all = told.lines().next().expect("that of all of them");
    let each = all.split_whitespace().skip(4).take(2);
    each.map(|nth| nth.parse::<u64>().expect("a number")).sum()
}
