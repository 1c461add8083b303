//! Connections for who speaks HTTP/2 over them itself.

use super::{Address, FetchError, Fetcher, look_up, roots, wire::Stream};

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
        let tls = roots::speaking(b"h2", ca, None)?;
        Ok(Self(Fetcher::of(tls, Box::new(look_up))))
    }

    /// A connection, within [`Fetcher::CONNECT`].
    ///
    /// # Errors
    /// [`FetchError`].
    pub(crate) async fn dial(&self, at: &Address) -> Result<Stream, FetchError> {
        self.0.connected(at).await
    }
}
