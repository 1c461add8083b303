//! Opening connections to one HTTP upstream: name lookup, TCP, TLS.
//!
//! Guarantees: names are checked against the configured roots (SECURITY EGR-9); a connection, its TLS handshake
//! included, is made within the connect deadline; of several addresses one that says nothing keeps nobody from the others.
//! Deliberately absent: proxies and environment variables.

use std::{
    error::Error as StdError,
    future::{Ready, poll_fn, ready},
    io, iter,
    net::SocketAddr,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{Uri, uri::Scheme};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower::{BoxError, Service, ServiceExt as _};

use crate::{
    fetch,
    upstream::{Deadline, UpstreamError, spec::TlsSpec},
};

/// Opens connections to one origin. Made once each time that an upstream is connected to, for all its sessions: to read the system's roots
/// takes a while.
#[derive(Debug, Clone)]
pub struct Dial {
    origin: Uri,
    any: HttpsConnector<Tcp>,
    single: HttpsConnector<Tcp>,
    limit: Duration,
}

/// An open connection.
pub(super) type Dialled = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Dial {
    /// Prepares connections to `url`'s origin.
    ///
    /// # Errors
    /// `Unavailable` when the roots or the identity cannot be read.
    pub(super) fn new(url: &Uri, tls: &TlsSpec, limit: Duration) -> Result<Self, UpstreamError> {
        // Plain HTTP never looks at the roots, so they need not be read for it.
        let config = client_config(tls, url.scheme() == Some(&Scheme::HTTPS))?;
        let tcp = Tcp {
            look_up: fetch::look_up,
        };
        let mut single = config.clone();
        // Said, and not left to be guessed: a peer that does not speak it says so before anything is sent.
        single.alpn_protocols = vec![b"http/1.1".to_vec()];
        let any = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_all_versions();
        Ok(Self {
            origin: url.clone(),
            any: any.wrap_connector(tcp),
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

    async fn open(&self, connector: &HttpsConnector<Tcp>) -> Result<Dialled, BoxError> {
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

/// Connects to a name without TLS: to whichever of its addresses answers first.
#[derive(Debug, Clone, Copy)]
struct Tcp {
    /// Finds the addresses of a host and port.
    look_up: fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>,
}

impl Service<Uri> for Tcp {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let look_up = self.look_up;
        Box::pin(async move {
            let is_https = to.scheme() == Some(&Scheme::HTTPS);
            let port = to.port_u16().unwrap_or(if is_https { 443 } else { 80 });
            let host = to.host().unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let found = look_up(host.to_owned(), port)
                .await
                .map_err(|error| format!("no address of `{host}`: {error}"))?;
            let connect = |address| to_one(address).oneshot(to.clone());
            let connected = fetch::first_of(&found, connect).await;
            connected.map_err(|failed| match failed {
                Some(error) => error.into(),
                None => format!("no address of `{host}`").into(),
            })
        })
    }
}

/// Connects to this one address, whatever name it is asked for.
fn to_one(address: SocketAddr) -> HttpConnector<One> {
    let mut tcp = HttpConnector::new_with_resolver(One(address));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(Duration::from_secs(60)));
    tcp
}

/// An address that was found already.
#[derive(Debug, Clone, Copy)]
struct One(SocketAddr);

impl Service<Name> for One {
    type Response = iter::Once<SocketAddr>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        ready(Ok(iter::once(self.0)))
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
    iter::successors(Some(error), |&error| StdError::source(error))
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
    use std::sync::OnceLock;

    use tokio::{
        net::{TcpListener, TcpSocket},
        time::timeout,
    };

    use super::*;
    use crate::upstream::Reached;

    /// To addresses of which the first two say nothing.
    #[tokio::test]
    async fn an_address_that_says_nothing_keeps_nobody_from_the_next() {
        static FOUND: OnceLock<Vec<SocketAddr>> = OnceLock::new();
        let silent = TcpSocket::new_v4().unwrap();
        silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let silent = silent.listen(1).unwrap();
        let nowhere = silent.local_addr().unwrap();
        // Nobody takes what waits there, and once that is all it holds it says nothing any more.
        let mut waiting = Vec::new();
        let brief = Duration::from_millis(500);
        while let Ok(stream) = timeout(brief, TcpStream::connect(nowhere)).await {
            waiting.push(stream.unwrap());
            assert!(waiting.len() < 64, "it goes on answering");
        }
        let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = there.local_addr().unwrap();
        FOUND.set(vec![nowhere, nowhere, address]).unwrap();
        let mut tcp = Tcp {
            look_up: |host, port| {
                assert_eq!((&*host, port), ("many.example", 443));
                Box::pin(ready(Ok(FOUND.get().unwrap().clone())))
            },
        };
        // Where it says no port, that of an address is left as it is.
        let url = Uri::from_static("https://many.example/mcp");
        let dialled = timeout(Duration::from_secs(5), tcp.call(url)).await;
        let stream = dialled.expect("in time").unwrap().into_inner();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn addresses_are_read_off_where_they_are_spelled_out() {
        for (literal, bind) in [("127.0.0.1", "127.0.0.1:0"), ("[::1]", "[::1]:0")] {
            // Not every machine has the newer family.
            let Ok(there) = TcpListener::bind(bind).await else {
                continue;
            };
            let address = there.local_addr().unwrap();
            let url: Uri = format!("http://{literal}:{}/", address.port())
                .parse()
                .unwrap();
            let limit = Duration::from_secs(5);
            let dial = Dial::new(&url, &TlsSpec::default(), limit).unwrap();
            assert!(dial.any().await.is_ok(), "{literal}");
        }
    }

    #[tokio::test]
    async fn where_nobody_listens_nothing_was_sent() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
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
