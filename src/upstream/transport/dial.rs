//! Connections to one HTTP upstream: TLS trust, time bounds, pooling.
//!
//! Guarantees: names are checked against the configured roots (SECURITY EGR-9); a connection, its TLS handshake
//! included, is made within the connect deadline; a request is sent again only when none of it was taken (REL-6).
//! Redirects, cookies, proxies and environment variables are unknown here.

use std::{
    error::Error as StdError,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::{body::Incoming, rt::Executor};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::TokioTimer,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use secrecy::ExposeSecret;
use tower::Service;

use crate::{
    tasks::Tasks,
    upstream::{UpstreamError, spec::TlsSpec},
};

/// The most idle connections kept; as many as calls can be in flight.
const MAX_IDLE: usize = 1_024;
/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(60);

/// Two ways to send: pooled for short exchanges, one connection each for streams that stay open. A long stream on
/// HTTP/2 would hold one of the few streams that the peer allows on the shared connection.
#[derive(Debug, Clone)]
pub(super) struct Dial {
    pooled: Client<Bounded, Full<Bytes>>,
    single: Client<Bounded, Full<Bytes>>,
    may_be_h2: bool,
}

/// Whether an exchange is expected to stay open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// Ends with its answer.
    Short,
    /// Stays open until somebody closes it.
    Long,
}

impl Dial {
    /// Prepares both ways to `url`; nothing is opened yet.
    ///
    /// # Errors
    /// `Unavailable` when the roots or the identity cannot be read.
    pub(super) fn new(
        url: &Uri,
        tls: &TlsSpec,
        connect: Duration,
        tasks: &Tasks,
    ) -> Result<Self, UpstreamError> {
        let may_be_h2 = url.scheme() == Some(&http::uri::Scheme::HTTPS);
        // Plain HTTP never looks at the roots, so they need not be read for it.
        let config = client_config(tls, may_be_h2)?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let https = || {
            HttpsConnectorBuilder::new()
                .with_tls_config(config.clone())
                .https_or_http()
        };
        let pooled = https().enable_all_versions().wrap_connector(tcp.clone());
        let single = https().enable_http1().wrap_connector(tcp);
        let mut builder = Client::builder(Owned(tasks.clone()));
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(MAX_IDLE)
            .pool_idle_timeout(IDLE)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .http2_keep_alive_timeout(Duration::from_secs(10));
        let bound = |inner| Bounded {
            inner,
            limit: connect,
        };
        Ok(Self {
            pooled: builder.build(bound(pooled)),
            single: builder.build(bound(single)),
            may_be_h2,
        })
    }

    /// Sends one request and waits for the head of its answer.
    ///
    /// # Errors
    /// `Timeout` when no connection came about in time, `Unavailable` for every other failure below HTTP.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        length: Length,
    ) -> Result<Response<Incoming>, UpstreamError> {
        if length == Length::Long {
            return self.single.request(request).await.map_err(failure);
        }
        if !self.may_be_h2 {
            return self.pooled.request(request).await.map_err(failure);
        }
        let again = request.clone();
        match self.pooled.request(request).await {
            Ok(response) => Ok(response),
            Err(error) if refused_unread(&error) => {
                self.pooled.request(again).await.map_err(failure)
            }
            Err(error) => Err(failure(error)),
        }
    }
}

/// REFUSED_STREAM says that the peer did nothing with the request (RFC 9113, 8.7).
fn refused_unread(error: &legacy::Error) -> bool {
    causes(error).any(|cause| {
        cause
            .downcast_ref::<h2::Error>()
            .is_some_and(|error| error.reason() == Some(h2::Reason::REFUSED_STREAM))
    })
}

fn failure(error: legacy::Error) -> UpstreamError {
    if causes(&error).any(|cause| cause.is::<TooSlow>()) {
        UpstreamError::Timeout("connect")
    } else {
        chain(&error)
    }
}

/// An `Unavailable` that tells the whole chain of causes.
pub(super) fn chain(error: &(dyn StdError + 'static)) -> UpstreamError {
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
    UpstreamError::unavailable(cause)
}

fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| StdError::source(error))
}

fn client_config(tls: &TlsSpec, wanted: bool) -> Result<ClientConfig, UpstreamError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| UpstreamError::unavailable(format!("TLS: {error}")))?
        .with_root_certificates(roots(tls, wanted)?);
    let Some((chain, key)) = &tls.identity else {
        return Ok(config.with_no_client_auth());
    };
    let bad = |what: &str, error: &dyn StdError| {
        UpstreamError::unavailable(format!("TLS client {what}: {error}"))
    };
    let chain = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad("certificate", &error))?;
    let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes())
        .map_err(|error| bad("key", &error))?;
    config
        .with_client_auth_cert(chain, key)
        .map_err(|error| bad("identity", &error))
}

/// The configured roots alone, or the system's, or Mozilla's where the system has none.
fn roots(tls: &TlsSpec, wanted: bool) -> Result<RootCertStore, UpstreamError> {
    let mut roots = RootCertStore::empty();
    let Some(pem) = &tls.ca else {
        if wanted {
            // Unreadable files among the system's are its own matter; what could be read is used.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            }
        }
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
        added.map_err(|error| UpstreamError::unavailable(format!("TLS roots: {error}")))?;
    }
    if roots.is_empty() {
        return Err(UpstreamError::unavailable(
            "TLS roots: no certificate in the PEM",
        ));
    }
    Ok(roots)
}

/// Runs hyper's connection tasks in the family of their transport.
#[derive(Debug, Clone)]
struct Owned(Tasks);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Owned {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// A connector whose work, name lookup and TLS included, must be done within a limit.
#[derive(Debug, Clone)]
struct Bounded {
    inner: HttpsConnector<HttpConnector>,
    limit: Duration,
}

#[derive(Debug, thiserror::Error)]
#[error("no connection in time")]
struct TooSlow;

type Connected = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;
type BoxError = Box<dyn StdError + Send + Sync>;

impl Service<Uri> for Bounded {
    type Response = Connected;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Connected, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.limit, self.inner.call(uri));
        Box::pin(async move { connecting.await.map_err(|_elapsed| TooSlow)? })
    }
}
