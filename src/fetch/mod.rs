//! Fetching small JSON documents: key sets, metadata, answers of token endpoints; for everything that is no MCP traffic.
//!
//! Guarantees: an address that a peer named reaches public unicast space and nothing else, whatever its spelling, and the
//! address that was checked is the one that is dialled (SECURITY EGR-4); no redirect is followed (EGR-3); https with names
//! checked, but for loopback and what the operator named (EGR-9); every fetch ends within [`Fetcher::LIMIT`] and holds no more
//! than the bytes it was allowed; forms and the bodies of answers are cleared when they are dropped. Deliberately absent: proxies,
//! environment variables, cookies, compression, a cache (whoever keeps a document says by which tag), and connections that outlive one fetch (one fetch in minutes needs
//! none, and nothing of one principal's lies around for another).

mod address;
mod challenge;
#[cfg(feature = "grpc")]
mod dialing;
mod lifetime;
mod metadata;
mod reach;
mod roots;
mod wire;

#[cfg(test)]
pub(crate) mod answering;
#[cfg(test)]
mod tests;

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header::ACCEPT};
use http_body_util::Full;
use rustls::ClientConfig;
use zeroize::Zeroizing;

use crate::{
    json::{Json, Limits},
    protocol::mirror::header::SESSION_ID,
};

use wire::{Extent, Special};

/// Who asks, wherever Usher does: firewalls before servers refuse whoever does not say it.
pub(crate) const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("usher/", env!("CARGO_PKG_VERSION")));

pub use address::{Address, Trust, misnames_port};
pub use challenge::Challenge;
#[cfg(feature = "grpc")]
pub(crate) use dialing::Dialer;
pub(crate) use lifetime::seconds;
pub(crate) use metadata::texts;
pub use metadata::{Metadata, MetadataError};
pub use roots::{TlsSpec, client, roots};
pub(crate) use wire::first_of;

/// Fetches. Clones share everything.
#[derive(Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
    /// What has TLS of its own.
    own: Option<Arc<Own>>,
}

struct Shared {
    tls: Arc<ClientConfig>,
    lookup: Lookup,
}

/// An origin, by any address of it, and the TLS that is for nothing else.
struct Own {
    at: Address,
    tls: Arc<ClientConfig>,
}

/// What is spoken with everybody, by its name in ALPN.
const HTTP1: &[u8] = b"http/1.1";
/// The type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// Finds the addresses of a host and port.
type Lookup =
    Box<dyn Fn(String, u16) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> + Send + Sync>;

impl Fetcher {
    /// The most bytes of a metadata document (SECURITY 6).
    pub const METADATA: usize = 64 << 10;
    /// The most bytes of a token endpoint's or an introspection's answer: a token of 16 KiB (SECURITY 6), another beside it,
    /// and what is said of them.
    pub const ANSWER: usize = 64 << 10;
    /// From the lookup to the last byte.
    pub const LIMIT: Duration = Duration::from_secs(10);
    /// From the lookup to the end of the TLS handshake.
    pub const CONNECT: Duration = Duration::from_secs(5);
    /// How long telling a server of the end of a session may take.
    const FAREWELL: Duration = Duration::from_secs(2);

    /// A fetcher that trusts the roots in this PEM, or the system's.
    ///
    /// # Errors
    /// [`FetchError::Unusable`] when the PEM holds no root.
    pub fn new(ca: Option<&[u8]>) -> Result<Self, FetchError> {
        Self::over(ca, Box::new(look_up))
    }

    /// The same over any lookup.
    fn over(ca: Option<&[u8]>, lookup: Lookup) -> Result<Self, FetchError> {
        Ok(Self::of(roots::speaking(HTTP1, ca, None)?, lookup))
    }

    fn of(tls: Arc<ClientConfig>, lookup: Lookup) -> Self {
        Self {
            shared: Arc::new(Shared { tls, lookup }),
            own: None,
        }
    }

    /// The same, with this TLS at the origin of `at` and nowhere else. Where it is a peer that names an address there, which has
    /// the trust of no operator, ours is not shown to it: nobody has us ask anything under our name.
    ///
    /// # Errors
    /// [`FetchError::Unusable`] when the PEM holds no root, or no certificate and its key.
    pub fn with(&self, at: &Address, tls: &TlsSpec) -> Result<Self, FetchError> {
        let (ca, identity) = (tls.ca.as_deref(), tls.identity.as_ref());
        let tls = roots::speaking(HTTP1, ca, identity)?;
        let at = at.clone();
        Ok(Self {
            shared: Arc::clone(&self.shared),
            own: Some(Arc::new(Own { at, tls })),
        })
    }

    /// The TLS for an address.
    fn tls(&self, at: &Address) -> &Arc<ClientConfig> {
        let own = self.own.as_ref().filter(|own| own.at.leads_there(at));
        own.map_or(&self.shared.tls, |own| &own.tls)
    }

    /// GETs a document of at most `max` bytes, whatever its status.
    ///
    /// # Errors
    /// [`FetchError`]; a status is none, but for redirects.
    pub async fn document(&self, at: &Address, max: usize) -> Result<Document, FetchError> {
        self.again(at, None, max).await
    }

    /// The same for a document that is known already by this tag: what has not changed since is answered with 304 and without
    /// its body.
    ///
    /// # Errors
    /// As [`Fetcher::document`].
    pub async fn again(
        &self,
        at: &Address,
        known: Option<HeaderValue>,
        max: usize,
    ) -> Result<Document, FetchError> {
        let special = Special {
            unless: known,
            ..Special::default()
        };
        self.bounded(at, Method::GET, special, (None, Bytes::new()), max)
            .await
    }

    /// What an MCP server asks of somebody who brings nothing (RFC 9728 5.1): it is sent a ping without any credential. `None`
    /// where it asks for none. A session that it begins for that is ended, if it can be in two seconds.
    ///
    /// # Errors
    /// As [`Fetcher::document`].
    pub async fn challenge(&self, at: &Address) -> Result<Option<Challenge>, FetchError> {
        const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let special = Special {
            accept: "application/json, text/event-stream",
            ..Special::default()
        };
        let body = (Some("application/json"), Bytes::from_static(PING));
        let request = wire::request(at, Method::POST, special, body);
        // Of the page beside it nothing is wanted, which may be of any length and in any form.
        let answer = self.exchanged(at, request, Extent::Head).await?;
        if let Some(session) = answer.session {
            let special = Special::default();
            let mut request = wire::request(at, Method::DELETE, special, (None, Bytes::new()));
            request.headers_mut().insert(SESSION_ID.clone(), session);
            let leaving = self.exchanged(at, request, Extent::Head);
            // Whether it agrees is of no consequence.
            drop(tokio::time::timeout(Self::FAREWELL, leaving).await);
        }
        let asked = answer.status == StatusCode::UNAUTHORIZED;
        Ok(asked.then_some(answer.challenge).flatten())
    }

    /// POSTs a form, with an `Authorization` header if there is one, and reads an answer of at most `max` bytes.
    ///
    /// # Errors
    /// As [`Fetcher::document`].
    pub async fn form(
        &self,
        at: &Address,
        authorization: Option<HeaderValue>,
        fields: &[(&str, &str)],
        max: usize,
    ) -> Result<Document, FetchError> {
        let form = encoded(fields);
        let special = Special {
            authorization,
            ..Special::default()
        };
        self.bounded(
            at,
            Method::POST,
            special,
            (Some(FORM), Bytes::from_owner(form)),
            max,
        )
        .await
    }

    /// POSTs a JSON text and reads an answer of at most `max` bytes.
    ///
    /// # Errors
    /// As [`Fetcher::document`].
    pub async fn json(
        &self,
        at: &Address,
        body: Bytes,
        max: usize,
    ) -> Result<Document, FetchError> {
        let body = (Some("application/json"), body);
        self.bounded(at, Method::POST, Special::default(), body, max)
            .await
    }

    /// POSTs a body of any type, with these headers in the place of ours of the same names, and reads an answer of at most
    /// `max` bytes, whatever its type.
    ///
    /// # Errors
    /// As [`Fetcher::document`].
    pub async fn post(
        &self,
        at: &Address,
        headers: HeaderMap,
        body: Bytes,
        max: usize,
    ) -> Result<Document, FetchError> {
        let mut request = wire::request(at, Method::POST, Special::default(), (None, body));
        request.headers_mut().remove(ACCEPT);
        request.headers_mut().extend(headers);
        self.exchanged(at, request, Extent::Whole(max)).await
    }

    async fn bounded(
        &self,
        at: &Address,
        method: Method,
        special: Special,
        body: (Option<&'static str>, Bytes),
        max: usize,
    ) -> Result<Document, FetchError> {
        let request = wire::request(at, method, special, body);
        self.exchanged(at, request, Extent::Whole(max)).await
    }

    async fn exchanged(
        &self,
        at: &Address,
        request: Request<Full<Bytes>>,
        extent: Extent,
    ) -> Result<Document, FetchError> {
        let fetching = async {
            let stream = self.connected(at).await?;
            wire::exchange(stream, request, extent).await
        };
        tokio::time::timeout(Self::LIMIT, fetching)
            .await
            .map_err(|_| FetchError::Timeout("answer"))?
    }

    /// A connection within [`Fetcher::CONNECT`].
    async fn connected(&self, at: &Address) -> Result<wire::Stream, FetchError> {
        tokio::time::timeout(Self::CONNECT, self.reach(at))
            .await
            .map_err(|_| FetchError::Timeout("connect"))?
    }

    /// A connection to one of the addresses of `at`, all of which were checked.
    async fn reach(&self, at: &Address) -> Result<wire::Stream, FetchError> {
        let found = (self.shared.lookup)(at.host().to_owned(), at.port())
            .await
            .map_err(FetchError::unavailable)?;
        // From here on there is no name any more that could lead elsewhere.
        let checked = reach::check(at.trust(), found)?;
        let tcp = wire::dial(&checked).await?;
        if at.is_encrypted() {
            wire::encrypt(tcp, at.host(), self.tls(at)).await
        } else {
            Ok(Box::new(tcp))
        }
    }
}

/// The addresses that the system knows of a host.
pub(crate) fn look_up(
    host: String,
    port: u16,
) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> {
    Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
}

/// A form, cleared when it is dropped; it is never copied while it grows.
fn encoded(fields: &[(&str, &str)]) -> Zeroizing<Vec<u8>> {
    let most = |(name, value): &(&str, &str)| 3 * (name.len() + value.len()) + 2;
    let room = String::with_capacity(fields.iter().map(most).sum());
    let mut form = form_urlencoded::Serializer::new(room);
    form.extend_pairs(fields);
    Zeroizing::new(form.finish().into_bytes())
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetcher")
    }
}

/// What was answered. Its body is cleared when the last handle to it is dropped, but not what hyper read it into, nor smaller
/// buffers that a body of unknown length outgrew; its `Debug` shows none of it.
pub struct Document {
    /// Any but a redirect's.
    pub status: StatusCode,
    /// The body.
    pub body: Bytes,
    /// The tag by which it is known (RFC 9110 8.8.3), at most 256 bytes.
    pub etag: Option<HeaderValue>,
    /// For how long it is fresh, as far as whoever gave it says (RFC 9111 5.2.2.1).
    pub max_age: Option<Duration>,
    /// What is asked of who brings no credential.
    pub challenge: Option<Challenge>,
    /// The session of MCP that it names, if it names one.
    pub session: Option<HeaderValue>,
}

impl Document {
    /// The body as JSON, strictly read (SECURITY MSG-1 to MSG-5), if it was answered with success.
    ///
    /// # Errors
    /// [`FetchError::Status`], [`FetchError::NotJson`].
    pub fn json(&self) -> Result<Json, FetchError> {
        if !self.status.is_success() {
            return Err(FetchError::Status(self.status.as_u16()));
        }
        self.any_json()
    }

    /// The body as JSON whatever the status: OAuth's errors are objects beside a 400.
    ///
    /// # Errors
    /// [`FetchError::NotJson`].
    pub fn any_json(&self) -> Result<Json, FetchError> {
        Json::parse(self.body.clone(), &Limits::CLIENT).map_err(|_| FetchError::NotJson)
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({}, {} bytes)", self.status, self.body.len())
    }
}

/// Why nothing was fetched. For logs and operators; no text of the peer's is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// This text is no address that may be fetched from.
    #[error("not an address to fetch from: {0}")]
    Address(&'static str),
    /// It leads, or one of its addresses does, to where a peer may not send us (SECURITY EGR-4).
    #[error("leads to an address that is not public")]
    NotPublic,
    /// It answered with a redirect (SECURITY EGR-3).
    #[error("answered with a redirect")]
    Redirect,
    /// `connect` or `answer` took too long.
    #[error("no answer in time: {0}")]
    Timeout(&'static str),
    /// More bytes than these.
    #[error("an answer of more than {0} bytes")]
    TooLarge(usize),
    /// No connection, or one that broke.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// What answers there proves by no certificate that it is who was asked, or does not speak TLS with us at all.
    #[error("no TLS with it: {0}")]
    Untrusted(String),
    /// Its name stands for no address, or for more than anybody looks at.
    #[error("the name has no address, or too many")]
    Addresses,
    /// Answered without success.
    #[error("answered with HTTP {0}")]
    Status(u16),
    /// The body is not one strict JSON value, or is compressed.
    #[error("answered with something that is not JSON")]
    NotJson,
    /// The roots, or our own certificate, cannot be used.
    #[error("TLS {0}")]
    Unusable(String),
}

/// Whether a status says no more than that it does not go now.
pub const fn says_later(status: u16) -> bool {
    matches!(status, 429 | 500..=599)
}

impl FetchError {
    /// Whether it may well be another way in a moment: nobody answers now, or says to come again.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Timeout(_) | Self::Unavailable(_) => true,
            Self::Status(status) => says_later(*status),
            Self::Address(_)
            | Self::NotPublic
            | Self::Untrusted(_)
            | Self::Addresses
            | Self::Redirect
            | Self::TooLarge(_)
            | Self::NotJson
            | Self::Unusable(_) => false,
        }
    }

    fn unavailable(cause: impl ToString) -> Self {
        Self::Unavailable(cause.to_string())
    }
}
