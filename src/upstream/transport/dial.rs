//! Opening connections to one HTTP upstream: name lookup, TCP, TLS.
//!
//! Guarantees: names are checked against the configured roots (SECURITY EGR-9); a connection, its TLS handshake
//! included, is made within the connect deadline. Proxies and environment variables are unknown here.

use std::{error::Error as StdError, future::poll_fn, io, time::Duration};

use http::{Uri, uri::Scheme};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use tower::{BoxError, Service};

use crate::{
    fetch,
    upstream::{Deadline, UpstreamError, spec::TlsSpec},
};

/// Opens connections to one origin. Made once each time that an upstream is connected to, for all its sessions: to read the system's roots
/// takes a while.
#[derive(Debug, Clone)]
pub struct Dial {
    origin: Uri,
    any: HttpsConnector<HttpConnector>,
    single: HttpsConnector<HttpConnector>,
    limit: Duration,
}

/// An open connection.
pub(super) type Dialled = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;

impl Dial {
    /// Prepares connections to `url`'s origin.
    ///
    /// # Errors
    /// `Unavailable` when the roots or the identity cannot be read.
    pub(super) fn new(url: &Uri, tls: &TlsSpec, limit: Duration) -> Result<Self, UpstreamError> {
        // Plain HTTP never looks at the roots, so they need not be read for it.
        let config = client_config(tls, url.scheme() == Some(&Scheme::HTTPS))?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let mut single = config.clone();
        // Said, and not left to be guessed: a peer that does not speak it says so before anything is sent.
        single.alpn_protocols = vec![b"http/1.1".to_vec()];
        let any = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_all_versions();
        Ok(Self {
            origin: url.clone(),
            any: any.wrap_connector(tcp.clone()),
            single: HttpsConnector::from((tcp, single)),
            limit,
        })
    }

    /// A connection of whichever version the peer prefers.
    pub(super) async fn any(&self) -> Result<Dialled, UpstreamError> {
        self.in_time(self.open(&self.any)).await
    }

    /// A connection of HTTP/1.1, or of HTTP/2 where the peer does not speak that.
    pub(super) async fn single(&self) -> Result<Dialled, UpstreamError> {
        let opening = async {
            match self.open(&self.single).await {
                Err(error) if speaks_another(&*error) => self.open(&self.any).await,
                opened => opened,
            }
        };
        self.in_time(opening).await
    }

    async fn open(&self, connector: &HttpsConnector<HttpConnector>) -> Result<Dialled, BoxError> {
        let mut connector = connector.clone();
        poll_fn(|cx| connector.poll_ready(cx)).await?;
        connector.call(self.origin.clone()).await
    }

    async fn in_time(
        &self,
        opening: impl Future<Output = Result<Dialled, BoxError>>,
    ) -> Result<Dialled, UpstreamError> {
        match tokio::time::timeout(self.limit, opening).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(UpstreamError::unconnected(words(&*error))),
            Err(_elapsed) => Err(UpstreamError::Timeout(Deadline::Connect)),
        }
    }
}

/// Whether the peer speaks no protocol that it was offered (RFC 7301, 3.2).
fn speaks_another(error: &(dyn StdError + 'static)) -> bool {
    let mut error = error;
    // What an I/O error wraps is not its source.
    while let Some(wrapped) = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        error = wrapped;
    }
    let refused = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    error.downcast_ref() == Some(&refused)
}

/// REFUSED_STREAM says that the peer did nothing with the request (RFC 9113, 8.7).
pub(super) fn refused_unread(error: &hyper::Error) -> bool {
    causes(error).any(|cause| {
        cause
            .downcast_ref::<h2::Error>()
            .is_some_and(|error| error.reason() == Some(h2::Reason::REFUSED_STREAM))
    })
}

/// An `Unavailable` that tells the whole chain of causes.
pub(super) fn chain(error: &(dyn StdError + 'static)) -> UpstreamError {
    UpstreamError::unreached(words(error))
}

fn words(error: &(dyn StdError + 'static)) -> String {
    let mut cause = String::new();
    for part in causes(error) {
        let part = part.to_string();
        if !cause.ends_with(&part) {
            if !cause.is_empty() {
                cause.push_str(": ");
            }
            cause.push_str(&part);
        }
    }
    cause
}

fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| StdError::source(error))
}

fn client_config(tls: &TlsSpec, wanted: bool) -> Result<ClientConfig, UpstreamError> {
    fetch::client(roots(tls, wanted)?, tls.identity.as_ref())
        .map_err(|error| UpstreamError::unreached(format!("TLS {error}")))
}

/// The configured roots alone, or the system's, or Mozilla's where the system has none.
fn roots(tls: &TlsSpec, wanted: bool) -> Result<RootCertStore, UpstreamError> {
    if tls.ca.is_none() && !wanted {
        return Ok(RootCertStore::empty());
    }
    fetch::roots(tls.ca.as_deref())
        .map_err(|error| UpstreamError::unreached(format!("TLS roots: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Reached;

    #[tokio::test]
    async fn where_nobody_listens_nothing_was_sent() {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        drop(taken);
        let url: Uri = format!("http://{address}/mcp").parse().unwrap();
        let limit = Duration::from_secs(5);
        let dial = Dial::new(&url, &TlsSpec::default(), limit).unwrap();
        for dialled in [dial.any().await, dial.single().await] {
            let Err(UpstreamError::Unavailable { reached, cause, .. }) = dialled else {
                panic!("somebody listens");
            };
            assert_eq!(reached, Reached::Never, "{cause}");
        }
    }
}
