//! The listener: connections accepted, bounded and drained; TLS; what HTTP itself must refuse.
//!
//! Guarantees: a request that reaches an [`Endpoint`] has an exact path, an allowed `Host` and `Origin`, unambiguous framing
//! and no repeated singleton header (SECURITY HTTP-1 to HTTP-8). Deliberately absent: JSON-RPC, eras, sessions.

pub mod body;
pub mod guard;
pub mod pages;
pub mod spec;

mod accept;
mod connection;
pub mod descriptors;
mod forwarded;
mod frames;
mod framing;
mod head_check;
mod io;
mod serve;
mod tls;
mod watch;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;

use crate::auth::Certificate;

pub use accept::Server;
pub use body::Body;

/// What stands behind an exact path. The body is unread: what is refused by headers alone costs nothing.
pub trait Endpoint: Send + Sync + 'static {
    /// Answers one request. Dropping the future means that the client went away.
    fn serve(
        &self,
        request: Request<Incoming>,
        peer: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>>;
}

/// Which endpoint stands behind which path.
pub trait Routes: Send + Sync + 'static {
    /// The endpoint of exactly this path, as the client spelled it: nothing was decoded, folded or collapsed, and the query
    /// was cut off. `None` is answered `404`.
    // SECURITY HTTP-4
    fn find(&self, raw_path: &str) -> Option<&dyn Endpoint>;

    /// A request from this address got to no endpoint, for a reason from the published list. It must not wait. Default: nobody
    /// is told.
    fn turned_away(&self, _address: IpAddr, _reason: &'static str) {}
}

/// What the peer of the connection proved in its TLS handshake; in a request's extensions where there was a certificate.
#[derive(Debug, Clone)]
pub struct Certified(pub Arc<Certificate>);

/// Who is on the other end of the connection that carried a request. Never taken from a header, but for
/// [`RemoteEnd::client`] where it is a trusted proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteEnd {
    /// The peer address of the socket.
    pub address: SocketAddr,
    /// Whose request it is: the same address, or the one that trusted proxies tell of.
    pub client: IpAddr,
    /// Whether TLS is ended here.
    pub encrypted: bool,
}
