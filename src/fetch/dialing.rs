//! Connections for who speaks HTTP/2 over them itself.

use std::sync::Arc;

use super::{Address, FetchError, Fetcher, Shared, look_up, roots, wire::Stream};

/// Opens connections that outlive one exchange, to addresses checked as those of [`Fetcher`] are, with the same TLS. Clones
/// share everything.
#[derive(Clone)]
pub(crate) struct Dialer(Fetcher);

impl Dialer {
    /// A dialer that trusts the roots in this PEM, or the system's.
    ///
    /// # Errors
    /// As [`Fetcher::new`].
    pub(crate) fn new(ca: Option<&[u8]>) -> Result<Self, FetchError> {
        let tls = roots::client(ca, b"h2").map_err(FetchError::Unusable)?;
        let lookup = Box::new(look_up);
        Ok(Self(Fetcher(Arc::new(Shared { tls, lookup }))))
    }

    /// A connection, within [`Fetcher::CONNECT`].
    ///
    /// # Errors
    /// [`FetchError`].
    pub(crate) async fn dial(&self, at: &Address) -> Result<Stream, FetchError> {
        self.0.connected(at).await
    }
}
