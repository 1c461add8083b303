//! The listener: connections accepted, bounded and drained; TLS; what HTTP itself must refuse.
//!
//! Guarantees: a request that reaches an [`Endpoint`] has an exact path, an allowed `Host` and `Origin`, unambiguous framing
//! and no repeated singleton header (SECURITY HTTP-1 to HTTP-8). Deliberately absent: JSON-RPC, eras, sessions.

pub mod spec;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;

/// Body of every answer. Boxed once per answer; errors cannot happen, streams end instead.
pub type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// What stands behind an exact path. The body is unread: what is refused by headers alone costs nothing.
pub trait Endpoint: Send + Sync + 'static {
    /// Answers one request. Dropping the future means that the client went away.
    fn serve(&self, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>>;
}
