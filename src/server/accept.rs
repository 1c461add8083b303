//! The listener itself: bind, accept within bounds, drain.
//!
//! Guarantees: at most [`connections`](super::spec::ServerBounds::connections) in all, beyond which accepting pauses, as it
//! does while memory is short; at most [`connections_per_peer`](super::spec::ServerBounds::connections_per_peer) from one
//! address, beyond which a connection is closed at once. An accept error never ends the listener.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Routes,
    connection::{self, Protocols, Stop},
    descriptors,
    head_check::Names,
    serve::Site,
    spec::ListenSpec,
    tls,
};
use crate::{
    memory::{self, Work},
    metrics::{self, Bound},
    tasks::Tasks,
};

/// Connections the kernel keeps for us while we accept none.
const BACKLOG: u32 = 4096;
/// Pause after an accept error, usually file descriptors running out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// At most one warning about that in this time.
const WARN_INTERVAL: Duration = Duration::from_secs(30);

/// How long answers sent at the drain deadline have to go out.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A bound listener. It serves until [`Server::drain`] or until its [`Tasks`] are stopped, whichever is first.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    accepting: CancellationToken,
    connections: TaskTracker,
    stop: Arc<Stop>,
    shutdown: CancellationToken,
}

impl Server {
    /// Binds and begins to serve `routes`. Port 0 takes a free one, see [`Server::address`]. Call inside a runtime.
    ///
    /// # Errors
    /// Whatever the operating system says; `InvalidInput` for TLS settings that cannot be used.
    pub fn bind(spec: ListenSpec, routes: Arc<dyn Routes>, tasks: &Tasks) -> io::Result<Self> {
        let tls = spec.tls.as_ref().map(tls::acceptor).transpose()?;
        let socket = match spec.address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(spec.address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;

        let bounds = spec.bounds;
        let site = Arc::new(Site {
            routes,
            names: Names {
                loopback: address.ip().is_loopback(),
                hosts: spec.hosts,
            },
            bounds,
            trusted: spec.trusted_proxies,
        });
        let protocols = Arc::new(Protocols::new(site, tls, tasks));
        let server = Self {
            address,
            accepting: CancellationToken::new(),
            connections: TaskTracker::new(),
            stop: Arc::clone(&protocols.stop),
            shutdown: tasks.token().clone(),
        };
        let acceptor = Acceptor {
            listener,
            protocols,
            tasks: tasks.clone(),
            connections: server.connections.clone(),
            total: Arc::new(Semaphore::new(
                bounds.connections.min(Semaphore::MAX_PERMITS),
            )),
            peers: Arc::new(Peers {
                most: bounds.connections_per_peer,
                seated: Mutex::default(),
            }),
            sheds: bounds.sheds,
        };
        tasks.spawn_orderly(acceptor.run(server.accepting.clone()));
        Ok(server)
    }

    /// Where it listens: the port is the real one.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Stops accepting, lets requests in flight end and closes each connection with its last answer; what is left after
    /// `deadline` is cut off. Open streams end when their endpoints end them: tell those first.
    // SECURITY REL-7
    pub async fn drain(self, deadline: Duration) {
        self.finish_within(deadline).await;
        self.cut_off().await;
    }

    /// Like [`Server::drain`], but at the deadline, or when `sooner` resolves, calls `tell`, polls what still runs once more so
    /// that it can answer, and gives those answers a second before cutting off.
    // SECURITY 6
    pub async fn drain_telling(
        self,
        deadline: Duration,
        sooner: impl Future<Output = ()>,
        tell: impl FnOnce(),
    ) {
        let ended = tokio::select! {
            biased;
            ended = self.finish_within(deadline) => ended,
            () = sooner => false,
        };
        if !ended {
            tell();
            self.stop.conclude();
            self.ended_within(LAST_WORDS).await;
        }
        self.cut_off().await;
    }

    /// Takes nothing new; whether all that was there has ended in time.
    async fn finish_within(&self, deadline: Duration) -> bool {
        self.accepting.cancel();
        self.stop.finish();
        self.connections.close();
        let ended = self.ended_within(deadline).await;
        if !ended {
            metrics::reached(Bound::Drain);
        }
        ended
    }

    /// Whether nothing is left to be waited for.
    async fn ended_within(&self, limit: Duration) -> bool {
        tokio::select! {
            () = self.shutdown.cancelled() => true,
            ended = timeout(limit, self.connections.wait()) => ended.is_ok(),
        }
    }

    async fn cut_off(self) {
        self.stop.abort();
        self.connections.wait().await;
    }
}

struct Acceptor {
    listener: TcpListener,
    protocols: Arc<Protocols>,
    tasks: Tasks,
    connections: TaskTracker,
    total: Arc<Semaphore>,
    peers: Arc<Peers>,
    /// See [`ServerBounds::sheds`](super::spec::ServerBounds::sheds).
    sheds: bool,
}

impl Acceptor {
    async fn run(self, accepting: CancellationToken) {
        tokio::select! {
            biased;
            () = accepting.cancelled() => {}
            () = self.tasks.token().cancelled() => {}
            () = self.accept() => {}
        }
        let Self {
            listener,
            protocols,
            tasks,
            connections,
            ..
        } = self;
        drop(listener);
        // Connections do not watch the family's signal themselves.
        tokio::select! {
            () = tasks.token().cancelled() => protocols.stop.abort(),
            () = connections.wait() => {}
        }
    }

    async fn accept(&self) {
        let mut told: Option<Instant> = None;
        loop {
            if self.total.available_permits() == 0 {
                metrics::reached(Bound::Connections);
            }
            if self.is_short_of_memory() {
                metrics::reached(Bound::Memory);
            }
            while self.is_short_of_memory() {
                sleep(ACCEPT_PAUSE).await;
            }
            let Ok(seat) = Arc::clone(&self.total).acquire_owned().await else {
                return;
            };
            let (stream, address) = match self.listener.accept().await {
                Ok(accepted) => {
                    descriptors::some_left();
                    accepted
                }
                Err(error) => {
                    if descriptors::none_left(&error) {
                        metrics::reached(Bound::Descriptors);
                    }
                    // Anybody can bring it about, many times a second.
                    if told.is_none_or(|at| at.elapsed() > WARN_INTERVAL) {
                        tracing::warn!(%error, "accepting a connection failed; it is tried again");
                        told = Some(Instant::now());
                    }
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            match Peers::seat(&self.peers, address.ip().to_canonical()) {
                Some(peer) => self.start(stream, address, (seat, peer)),
                None => {
                    metrics::reached(Bound::ConnectionsPerPeer);
                    tracing::debug!(%address, "peer has too many connections");
                }
            }
        }
    }

    fn is_short_of_memory(&self) -> bool {
        self.sheds && !memory::process().takes(Work::Connection)
    }

    fn start(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        seats: (OwnedSemaphorePermit, AddressSlot),
    ) {
        let protocols = Arc::clone(&self.protocols);
        // Whoever serves it waits for it, not whoever accepted it.
        let stream = stream.into_std();
        let connection = async move {
            match stream.and_then(TcpStream::from_std) {
                Ok(stream) => connection::serve(protocols, stream, address).await,
                Err(error) => tracing::warn!(%address, %error, "taking a connection over failed"),
            }
            drop(seats);
        };
        self.tasks.spread(self.connections.track_future(connection));
    }
}

/// How many connections each peer address has. The lock is taken when a connection opens and when it closes.
#[derive(Debug)]
struct Peers {
    most: usize,
    seated: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection counted for its peer.
#[derive(Debug)]
struct AddressSlot {
    peers: Arc<Peers>,
    peer: IpAddr,
}

impl Peers {
    fn seat(peers: &Arc<Self>, peer: IpAddr) -> Option<AddressSlot> {
        let mut seated = peers.seated.lock().unwrap_or_else(PoisonError::into_inner);
        let count = seated.entry(peer).or_default();
        if *count >= peers.most {
            return None;
        }
        *count += 1;
        Some(AddressSlot {
            peers: Arc::clone(peers),
            peer,
        })
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let mut seated = self
            .peers
            .seated
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = seated.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                seated.remove(&self.peer);
            }
        }
    }
}
