//! A server with recording endpoints, and a client that writes and reads raw bytes.

use std::{
    future::{Future, poll_fn, ready},
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    time::timeout,
};
use usher::{
    server::{
        Body, Endpoint, RemoteEnd, Routes, Server,
        body::{event_stream, full, read_body, segments},
        spec::{ListenSpec, ServerBounds},
    },
    tasks::{Lanes, Tasks},
};

use crate::meter::metered;

/// Nothing here takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Edge {
    pub(crate) server: Server,
    pub(crate) tasks: Tasks,
    pub(crate) site: Arc<Site>,
}

/// Its endpoints: `/mcp` echoes, `/hang` waits for a permit of `release`, `/stream` stays open, `/panic` panics, `/breaks`
/// panics in the middle of its answer, `/unread` leaves the body alone, `/large` answers 8 MiB, `/looks` reads its body, waits as `/hang` does, and says how often it was polled
/// from then on, `/last` answers when it is looked at after `over` was set, and wakes nobody for that.
pub(crate) struct Site {
    bounds: ServerBounds,
    /// What reached `/mcp`: method, body and the names of its headers.
    seen: Mutex<Vec<Seen>>,
    /// Lets `/hang` answer.
    pub(crate) release: Semaphore,
    /// A permit for each request that began at `/hang` or `/stream`.
    pub(crate) begun: Semaphore,
    /// A permit for each answer of `/hang` or `/stream` that was dropped.
    pub(crate) gone: Semaphore,
    /// Lets `/last` answer.
    pub(crate) over: AtomicBool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) body: String,
    pub(crate) headers: Vec<String>,
    pub(crate) peer: SocketAddr,
}

impl Site {
    /// Waits to be released; how often it was looked at until then. That it has begun is said once it waits.
    async fn released(&self) -> usize {
        let mut released = std::pin::pin!(self.release.acquire());
        let mut looks = 0;
        let permit = poll_fn(|cx| {
            let polled = released.as_mut().poll(cx);
            looks += 1;
            if looks == 1 {
                self.begun.add_permits(1);
            }
            polled
        });
        permit.await.unwrap().forget();
        looks
    }
}

struct At(Arc<Site>, &'static str);

const PATHS: [&str; 11] = [
    "/mcp", "/blocks", "/hang", "/stream", "/panic", "/breaks", "/unread", "/large", "/looks",
    "/last", "/thread",
];

impl Edge {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(adjust: impl FnOnce(&mut ListenSpec)) -> Self {
        Self::try_with(adjust).unwrap()
    }

    pub(crate) fn try_with(adjust: impl FnOnce(&mut ListenSpec)) -> std::io::Result<Self> {
        metered();
        let mut spec = ListenSpec {
            address: "127.0.0.1:0".parse().unwrap(),
            hosts: vec!["gateway.example".to_owned()],
            trusted_proxies: Vec::new(),
            tls: None,
            bounds: ServerBounds::default(),
        };
        adjust(&mut spec);
        let site = Arc::new(Site {
            bounds: spec.bounds,
            seen: Mutex::default(),
            release: Semaphore::new(0),
            begun: Semaphore::new(0),
            gone: Semaphore::new(0),
            over: AtomicBool::new(false),
        });
        // As the program does it, on any machine.
        let tasks = Tasks::over(Lanes::of(2).unwrap());
        let all = PATHS.into_iter().map(|path| At(Arc::clone(&site), path));
        let routes = Arc::new(Table(all.collect()));
        let server = Server::bind(spec, routes, &tasks)?;
        Ok(Self {
            server,
            tasks,
            site,
        })
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.site.seen.lock().unwrap().clone()
    }

    /// Bodies that reached `/mcp`, in order.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.body).collect()
    }

    pub(crate) async fn connect(&self) -> Raw<TcpStream> {
        Raw::new(TcpStream::connect(self.server.address()).await.unwrap())
    }

    /// Everything the server says to `bytes` until it closes the connection.
    pub(crate) async fn say(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut raw = self.connect().await;
        raw.send(bytes).await;
        raw.rest().await
    }

    /// The status of one answer to `bytes`, and whether the connection was closed after it.
    pub(crate) async fn status(&self, bytes: impl AsRef<[u8]>) -> u16 {
        let mut raw = self.connect().await;
        raw.send(bytes).await;
        raw.answer().await.status
    }
}

struct Table(Vec<At>);

impl Routes for Table {
    fn find(&self, raw_path: &str) -> Option<&dyn Endpoint> {
        let found = self.0.iter().find(|at| at.1 == raw_path);
        found.map(|at| at as &dyn Endpoint)
    }
}

/// Adds a permit when dropped.
struct Note(Arc<Site>);

impl Drop for Note {
    fn drop(&mut self) {
        self.0.gone.add_permits(1);
    }
}

impl Endpoint for At {
    fn serve(
        &self,
        request: Request<Incoming>,
        peer: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>> {
        let site = Arc::clone(&self.0);
        let text = |text: &'static str| full(StatusCode::OK, "text/plain", text.into());
        match self.1 {
            "/mcp" => Box::pin(echo(site, request, peer)),
            "/hang" => Box::pin(async move {
                let note = Note(Arc::clone(&site));
                site.released().await;
                drop(note);
                text("released")
            }),
            "/thread" => Box::pin(async move {
                site.released().await;
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                full(StatusCode::OK, "text/plain", name.into())
            }),
            // As what computes, or waits for a disk.
            "/blocks" => Box::pin(async move {
                site.begun.add_permits(1);
                while !site.over.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                text("over")
            }),
            "/stream" => Box::pin(async move {
                let (sender, source) = tokio::sync::mpsc::channel(4);
                sender
                    .send(Bytes::from_static(b": hello\n\n"))
                    .await
                    .unwrap();
                let note = (Note(Arc::clone(&site)), sender);
                site.begun.add_permits(1);
                event_stream(Body::channel(source, note))
            }),
            "/breaks" => Box::pin(async {
                let first = stream::once(ready(Bytes::from_static(b": hello\n\n")));
                let then = stream::once(async {
                    // What came before has gone out by then.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    panic!("an endpoint panics, as the test wants")
                });
                event_stream(Body::stream(first.chain(then), ()))
            }),
            "/large" => Box::pin(async {
                let bytes = Bytes::from(vec![b'x'; 8 << 20]);
                full(StatusCode::OK, "text/plain", bytes)
            }),
            "/looks" => Box::pin(async move {
                let read = read_body(request.into_body(), &site.bounds).await;
                assert!(read.is_ok());
                let looks = site.released().await;
                full(StatusCode::OK, "text/plain", looks.to_string().into())
            }),
            "/last" => Box::pin(async move {
                site.begun.add_permits(1);
                let over = poll_fn(|_| match site.over.load(Ordering::Acquire) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                });
                over.await;
                text("over")
            }),
            "/panic" => Box::pin(async { panic!("an endpoint panics, as the test wants") }),
            _ => Box::pin(async move { text("unread") }),
        }
    }
}

async fn echo(site: Arc<Site>, request: Request<Incoming>, peer: RemoteEnd) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = match read_body(body, &site.bounds).await {
        Ok(body) => body,
        Err(error) => return full(error.status(), "text/plain", error.to_string().into()),
    };
    site.seen.lock().unwrap().push(Seen {
        method: head.method.to_string(),
        body: String::from_utf8_lossy(&body).into_owned(),
        headers: head.headers.keys().map(ToString::to_string).collect(),
        peer: peer.address,
    });
    let empty = Bytes::new();
    segments(StatusCode::OK, "text/plain", ["echo:".into(), empty, body])
}

/// One connection, raw.
pub(crate) struct Raw<S> {
    pub(crate) stream: S,
    read: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self {
            stream,
            read: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The server may close before it has everything; what it answered is what counts.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// One answer with a `Content-Length`.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        while self.read.len() < length {
            assert!(self.more().await, "closed inside a body after {head}");
        }
        let body = self.read.drain(..length).collect();
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            body: String::from_utf8(body).unwrap(),
            head,
        }
    }

    /// The head of an answer.
    pub(crate) async fn head(&mut self) -> String {
        loop {
            let end = self.read.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = self.read.drain(..end + 4).collect();
                return String::from_utf8(head).unwrap();
            }
            assert!(
                self.more().await,
                "closed inside a head: {:?}",
                String::from_utf8_lossy(&self.read)
            );
        }
    }

    /// Everything until the end of the connection, however it ends.
    pub(crate) async fn rest(&mut self) -> String {
        String::from_utf8(self.rest_bytes().await).unwrap()
    }

    pub(crate) async fn rest_bytes(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.read)
    }

    /// Everything said to `bytes` until the end.
    pub(crate) async fn say_bytes(mut self, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        self.send(bytes).await;
        self.rest_bytes().await
    }

    /// The body of an answer, or nothing if the connection ends without one.
    pub(crate) async fn body_or_end(&mut self) -> String {
        if self.read.is_empty() && !self.more().await {
            return String::new();
        }
        self.answer().await.body
    }

    /// Reads on; `false` at the end.
    async fn more(&mut self) -> bool {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.read))
            .await
            .expect("the server neither answers nor closes");
        matches!(read, Ok(1..))
    }
}

/// A well-formed call of `/mcp` with `body`.
pub(crate) fn call(body: &str) -> String {
    post("", body)
}

/// The same with more header lines, each with its CRLF.
pub(crate) fn post(fields: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Waits for a permit.
pub(crate) async fn until(semaphore: &Semaphore) {
    timeout(PATIENCE, semaphore.acquire())
        .await
        .expect("what is waited for never happens")
        .unwrap()
        .forget();
}
