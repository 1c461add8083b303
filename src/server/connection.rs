//! One connection from its first byte to its last: handshake, protocol, requests, end.
//!
//! Guarantees: HTTP/2 where TLS agreed on it or a plain client opened with its preface, HTTP/1 behind the framing guard
//! otherwise; limits of SECURITY 6; every wait for the client has a deadline (HTTP-10). While a connection is idle its one
//! timer is left alone, and no lock is shared between connections on the way of a request.

use std::{
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::{BoxFuture, poll_fn};
use hyper::{
    rt::Executor,
    server::conn::{http1, http2},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::yield_now,
    time::{Instant, sleep_until, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{
    Certified, RemoteEnd,
    framing::{Framing, HeadBounds},
    io::{Io, PREFACE, Socket},
    serve::{Serve, Site},
    watch::{Due, Phase, Watch},
};
use crate::{
    auth::Certificate,
    metrics::{Bound, reached},
    tasks::{Tasks, clock, quiet},
};

/// How long a client may take to notice our end of a connection that it was still sending on.
const LINGER: Duration = Duration::from_secs(1);
/// Bytes read and thrown away meanwhile.
const LINGER_BYTES: usize = 256 << 10;
/// Bytes of one stream waiting to be sent.
const H2_SEND_BYTES: usize = 64 << 10;

/// What connections are to do, as one listener tells them all.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// Zero, or one when `finish` is cancelled, two when `conclude` is, three when `abort` is.
    stage: AtomicU8,
    finish: CancellationToken,
    conclude: CancellationToken,
    abort: CancellationToken,
}

/// What is needed to serve connections of one listener.
pub(super) struct Protocols {
    pub(super) site: Arc<Site>,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) stop: Arc<Stop>,
    h1: http1::Builder,
    h2: http2::Builder<Spawn>,
}

/// Runs HTTP/2 streams: many at once of one connection are spread, for a proxy in front may have few connections and all the
/// calls. They end with their connection, which resets them, so nothing else need stop them.
#[derive(Clone)]
pub(super) struct Spawn(Tasks);

impl Stop {
    pub(super) fn finish(&self) {
        self.stage.fetch_max(1, Relaxed);
        self.finish.cancel();
    }

    /// What still runs is to be looked at once more.
    pub(super) fn conclude(&self) {
        self.stage.fetch_max(2, Relaxed);
        self.conclude.cancel();
    }

    pub(super) fn abort(&self) {
        self.stage.store(3, Relaxed);
        self.finish.cancel();
        self.abort.cancel();
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Spawn {
    fn execute(&self, stream: F) {
        self.0.spread(stream);
    }
}

impl Protocols {
    pub(super) fn new(site: Arc<Site>, tls: Option<TlsAcceptor>, tasks: &Tasks) -> Self {
        let bounds = &site.bounds;
        let head = bounds.target_bytes + bounds.head_bytes;
        let mut h1 = http1::Builder::new();
        // Heads are timed and bounded by the framing guard, which never lets a part of one through.
        h1.header_read_timeout(None).max_buf_size(
            (head + 4 * bounds.fields + 1024)
                .next_power_of_two()
                .max(64 << 10),
        );
        if bounds.fields != 100 {
            h1.max_headers(bounds.fields);
        }
        let mut h2 = http2::Builder::new(Spawn(tasks.clone()));
        h2.max_concurrent_streams(bounds.h2_streams)
            .initial_stream_window_size(bounds.h2_stream_window)
            .initial_connection_window_size(bounds.h2_connection_window)
            .max_pending_accept_reset_streams(bounds.h2_pending_resets)
            .max_local_error_reset_streams(bounds.h2_local_resets)
            // HTTP/2 counts 32 bytes of overhead for each field.
            .max_header_list_size(
                u32::try_from(head + 32 * (bounds.fields + 4)).unwrap_or(u32::MAX),
            )
            .max_send_buf_size(H2_SEND_BYTES)
            .timer(TokioTimer::new())
            .keep_alive_interval(bounds.idle / 2)
            .keep_alive_timeout(bounds.write_stall);
        Self {
            site,
            tls,
            stop: Arc::default(),
            h1,
            h2,
        }
    }
}

/// Serves one connection to its end. Its errors are the client's and are logged at debug level.
pub(super) async fn serve(protocols: Arc<Protocols>, stream: TcpStream, address: SocketAddr) {
    let bounds = &protocols.site.bounds;
    let encrypted = protocols.tls.is_some();
    let abort = protocols.stop.abort.clone();
    // Box: the handshake's state is large and short-lived, the task is not.
    let opened = {
        let opening = Box::pin(open(&protocols, stream));
        let limit = if encrypted {
            bounds.handshake
        } else {
            bounds.headers
        };
        tokio::select! {
            biased;
            () = abort.cancelled() => return,
            () = protocols.stop.finish.cancelled() => return,
            opened = timeout(limit, opening) => opened,
        }
    };
    let (socket, seen, version) = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => return tracing::debug!(%address, %error, "connection did not open"),
        Err(_) => {
            reached(if encrypted {
                Bound::HandshakeTime
            } else {
                Bound::HeadersTime
            });
            return tracing::debug!(%address, "connection did not open in time");
        }
    };
    let watch = Watch::new(bounds);
    let service = Serve {
        site: Arc::clone(&protocols.site),
        peer: RemoteEnd {
            address,
            client: address.ip().to_canonical(),
            encrypted,
        },
        certified: certified(&socket),
        watch: Arc::clone(&watch),
    };
    let run = match version {
        Version::Http1 => http1(&protocols, socket, seen, watch, service),
        Version::Http2 => http2(&protocols, socket, seen, watch, service),
    };
    drop(protocols);
    run.await;
}

/// What the peer proved in the handshake. A certificate that cannot be read proves nothing.
fn certified(socket: &Socket) -> Option<Certified> {
    let Socket::Tls(stream) = socket else {
        return None;
    };
    let certificate = stream.get_ref().1.peer_certificates()?.first()?;
    Certificate::read(certificate)
        .ok()
        .map(|it| Certified(Arc::new(it)))
}

// The next two are no async functions, so that a connection lies in its box only and not in its task as well.

fn http1(
    protocols: &Protocols,
    socket: Socket,
    seen: Vec<u8>,
    watch: Arc<Watch>,
    service: Serve,
) -> BoxFuture<'static, ()> {
    let framing = Framing::new(HeadBounds::from(&protocols.site.bounds));
    let io = Io::new(socket, seen, Arc::clone(&watch), Some(framing));
    let mut connection = protocols.h1.serve_connection(TokioIo::new(io), service);
    let stop = Arc::clone(&protocols.stop);
    Box::pin(async move {
        if drive(&mut connection, &watch, &stop).await == End::Orderly {
            let io = connection.into_parts().io.into_inner();
            let _ = timeout(LINGER, Box::pin(linger(io))).await;
        }
    })
}

fn http2(
    protocols: &Protocols,
    socket: Socket,
    seen: Vec<u8>,
    watch: Arc<Watch>,
    service: Serve,
) -> BoxFuture<'static, ()> {
    let io = Io::new(socket, seen, Arc::clone(&watch), None);
    let mut connection = protocols.h2.serve_connection(TokioIo::new(io), service);
    let stop = Arc::clone(&protocols.stop);
    Box::pin(async move {
        drive(&mut connection, &watch, &stop).await;
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Http1,
    Http2,
}

/// TLS, if any, and which protocol. Plain clients tell by their first bytes, which are returned.
async fn open(protocols: &Protocols, stream: TcpStream) -> io::Result<(Socket, Vec<u8>, Version)> {
    stream.set_nodelay(true)?;
    if let Some(tls) = &protocols.tls {
        let stream = tls.accept(stream).await?;
        let version = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Version::Http2,
            Some(_) | None => Version::Http1,
        };
        return Ok((Socket::Tls(Box::new(stream)), Vec::new(), version));
    }
    let mut socket = stream;
    let mut first = [0; PREFACE.len()];
    let mut there = 0;
    while let Some(free) = first.get_mut(there..).filter(|free| !free.is_empty()) {
        let read = socket.read(free).await?;
        there += read;
        if read == 0 || !PREFACE.starts_with(first.get(..there).unwrap_or_default()) {
            break;
        }
    }
    let seen = first.get(..there).unwrap_or_default().to_vec();
    let version = if seen == PREFACE {
        Version::Http2
    } else {
        Version::Http1
    };
    Ok((Socket::Plain(socket), seen, version))
}

/// A connection of either protocol.
trait Connection {
    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>>;
    fn wind_down(&mut self);
}

impl Connection for http1::Connection<TokioIo<Io>, Serve> {
    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.poll_without_shutdown(cx)
    }

    fn wind_down(&mut self) {
        Pin::new(self).graceful_shutdown();
    }
}

impl Connection for http2::Connection<TokioIo<Io>, Serve, Spawn> {
    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        Pin::new(self).poll(cx)
    }

    fn wind_down(&mut self) {
        Pin::new(self).graceful_shutdown();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Everything there was to say was said.
    Orderly,
    /// To be dropped as it is.
    Abrupt,
}

/// Runs a connection until it ends, is told to, or a deadline passes.
async fn drive(connection: &mut impl Connection, watch: &Watch, stop: &Stop) -> End {
    let mut finish = pin!(stop.finish.cancelled());
    let mut conclude = pin!(stop.conclude.cancelled());
    let mut abort = pin!(stop.abort.cancelled());
    let mut armed = u64::MAX;
    let mut clock = pin!(sleep_until(Instant::now()));
    let mut told = 0;
    let mut listening = pin!(yield_now());
    let mut heard = false;
    let mut quiet = None;
    poll_fn(|cx| {
        // INVARIANT: this runs in a task of its own, so the waker registered once is the one of every later poll. Signals
        // and clock are therefore polled when they change, not with each request: polling a signal takes its lock.
        let waker = quiet.get_or_insert_with(|| {
            let _ = finish.as_mut().poll(cx);
            let _ = conclude.as_mut().poll(cx);
            let _ = abort.as_mut().poll(cx);
            quiet::around(cx.waker())
        });
        let cx = &mut Context::from_waker(waker);
        loop {
            let stage = stop.stage.load(Relaxed);
            if stage >= 1 {
                // An answer that is there already says that it is the last.
                watch.finish();
            }
            match clock::turn(|| connection.poll_run(cx)) {
                Poll::Ready(Ok(())) => return Poll::Ready(End::Orderly),
                Poll::Ready(Err(error)) => {
                    if is_abuse(&error) {
                        reached(Bound::Http2);
                    }
                    tracing::debug!(%error, "connection broke");
                    return Poll::Ready(End::Abrupt);
                }
                Poll::Pending => {}
            }
            if watch.is_flooded() {
                reached(Bound::Http2);
                tracing::debug!("connection was flooded");
                // It is told, if it listens.
                connection.wind_down();
                let _ = connection.poll_run(cx);
                return Poll::Ready(End::Abrupt);
            }
            if stage >= 3 {
                return Poll::Ready(End::Abrupt);
            }
            if stage > told {
                // A wound-down idle connection reads nothing more. So yield once first: the runtime polls I/O before it resumes
                // us, and what has arrived is still served.
                if !heard {
                    if listening.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    heard = true;
                    continue;
                }
                told = stage;
                connection.wind_down();
                if stage == 2 {
                    // What runs in this task is looked at with the connection.
                    watch.wake();
                }
                continue;
            }
            let due = watch.due();
            let earlier = armed == u64::MAX || due.is_some_and(|due| due.at() < armed);
            if !earlier && !clock.is_elapsed() {
                return Poll::Pending;
            }
            let now = watch.now();
            let next = match due {
                Some(Due::Cut(at, bound)) if at <= now => {
                    reached(bound);
                    return Poll::Ready(End::Abrupt);
                }
                Some(Due::WindDown(at)) if at <= now => {
                    reached(Bound::IdleTime);
                    watch.enter(Phase::Closing);
                    connection.wind_down();
                    continue;
                }
                Some(due) => due.at(),
                None => watch.recheck(now),
            };
            armed = next;
            clock.as_mut().reset(watch.at(next));
            let _ = clock.as_mut().poll(cx);
        }
    })
    .await
}

/// Whether the connection ends because its client asked for more work than it may (SECURITY HTTP-9).
fn is_abuse(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    let h2 = source.and_then(|source| source.downcast_ref::<h2::Error>());
    h2.is_some_and(|error| error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM))
}

/// Ends an HTTP/1 connection so that a client still sending can read our last answer.
async fn linger(mut io: Io) {
    if io.shutdown().await.is_err() || !io.has_unread() {
        return;
    }
    let mut scratch = [0; 2048];
    let mut so_far = 0;
    while so_far < LINGER_BYTES {
        match io.socket().read(&mut scratch).await {
            Ok(read) if read > 0 => so_far += read,
            Ok(_) | Err(_) => return,
        }
    }
}
