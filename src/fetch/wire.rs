//! One exchange over one connection, which ends with it.

use std::{collections::VecDeque, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use bytes::{Buf, Bytes};
use futures_util::{StreamExt, stream::FuturesUnordered};
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING,
        CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, USER_AGENT, WWW_AUTHENTICATE,
    },
    uri::PathAndQuery,
};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::sleep,
};
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use super::{Address, Challenge, Document, FetchError};
use crate::protocol::mirror::header::SESSION_ID;

/// An open connection, encrypted or not.
pub(crate) type Stream = Box<dyn Io>;

/// What bytes go over in both directions.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// How long an address is tried alone before the next is tried beside it (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(300);

/// Connects to the first of these that answers.
pub(super) async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, FetchError> {
    first_of(addresses, TcpStream::connect)
        .await
        .map_err(|cause| match cause {
            Some(cause) => FetchError::unavailable(cause),
            None => FetchError::unavailable("no address"),
        })
}

/// The first connection to one of these addresses that comes about by `connect`. One that says nothing, as where a family of
/// addresses leads nowhere, keeps the others waiting for a moment only.
///
/// # Errors
/// What the first that failed failed with, once all have; `None` where there is no address.
pub(crate) async fn first_of<T, E, F: Future<Output = Result<T, E>>>(
    addresses: &[SocketAddr],
    connect: impl Fn(SocketAddr) -> F,
) -> Result<T, Option<E>> {
    let mut left = by_turns(addresses).into_iter().peekable();
    let mut tried = FuturesUnordered::new();
    let mut failed = None;
    loop {
        match left.next() {
            Some(address) => tried.push(connect(address)),
            None if tried.is_empty() => return Err(failed),
            None => {}
        }
        tokio::select! {
            Some(outcome) = tried.next() => match outcome {
                Ok(stream) => return Ok(stream),
                Err(cause) => failed = failed.or(Some(cause)),
            },
            () = sleep(HEAD_START), if left.peek().is_some() => {}
        }
    }
}

/// The same addresses, of one family and of the other by turns; the first stays it.
fn by_turns(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let four = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (mut same, mut other): (VecDeque<SocketAddr>, VecDeque<SocketAddr>) = addresses
        .iter()
        .partition(|address| address.is_ipv4() == four);
    let mut all = Vec::with_capacity(addresses.len());
    while all.len() < addresses.len() {
        all.extend(same.pop_front());
        all.extend(other.pop_front());
    }
    all
}

/// Proves that the peer is `host`.
pub(super) async fn encrypt(
    tcp: TcpStream,
    host: &str,
    config: &Arc<ClientConfig>,
) -> Result<Stream, FetchError> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| FetchError::Address("a host that no certificate can name"))?;
    let stream = TlsConnector::from(Arc::clone(config))
        .connect(name, tcp)
        .await
        .map_err(|cause| not_encrypted(&cause))?;
    Ok(Box::new(stream))
}

/// What TLS refuses is refused again in a moment; a connection that only broke may hold the next time.
fn not_encrypted(cause: &io::Error) -> FetchError {
    let inner = cause.get_ref();
    if inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
        FetchError::Untrusted(cause.to_string())
    } else {
        FetchError::unavailable(cause)
    }
}

/// What differs from one request to another.
pub(super) struct Special {
    pub(super) accept: &'static str,
    pub(super) authorization: Option<HeaderValue>,
    /// The tag of what is known already.
    pub(super) unless: Option<HeaderValue>,
}

impl Default for Special {
    fn default() -> Self {
        Self {
            accept: "application/json",
            authorization: None,
            unless: None,
        }
    }
}

/// What is sent: these headers and no others.
pub(super) fn request(
    at: &Address,
    method: Method,
    special: Special,
    (kind, body): (Option<&'static str>, Bytes),
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = at
        .uri()
        .path_and_query()
        .cloned()
        .unwrap_or_else(|| PathAndQuery::from_static("/"))
        .into();
    let headers = request.headers_mut();
    if let Some(host) = at.uri().authority()
        && let Ok(host) = HeaderValue::from_str(host.as_str())
    {
        headers.insert(HOST, host);
    }
    headers.insert(ACCEPT, HeaderValue::from_static(special.accept));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(USER_AGENT, super::AGENT);
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    if let Some(tag) = special.unless {
        headers.insert(IF_NONE_MATCH, tag);
    }
    if let Some(mut value) = special.authorization {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    request
}

/// How much of an answer is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extent {
    /// Its head alone. The body is left out, whatever it is.
    Head,
    /// All of it, where its body has no more bytes than these.
    Whole(usize),
}

/// Sends it and reads the answer. The connection is driven from in here, so that nothing is spawned and nothing of it is left.
pub(super) async fn exchange(
    stream: Stream,
    request: Request<Full<Bytes>>,
    extent: Extent,
) -> Result<Document, FetchError> {
    let (mut line, connection) = http1::Builder::new()
        .max_headers(100)
        .max_buf_size(64 << 10)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .map_err(FetchError::unavailable)?;
    let mut answering = pin!(async {
        let response = line
            .send_request(request)
            .await
            .map_err(FetchError::unavailable)?;
        read(response, extent).await
    });
    let mut connection = pin!(connection);
    tokio::select! {
        biased;
        answer = &mut answering => answer,
        // The end of the connection is the end of the body, or its failure, and is read as such.
        _ended = &mut connection => answering.await,
    }
}

async fn read(response: Response<Incoming>, extent: Extent) -> Result<Document, FetchError> {
    let (parts, body) = response.into_parts();
    // Whoever did not ask for it gets an empty document, which is none.
    if parts.status.is_redirection() && parts.status != StatusCode::NOT_MODIFIED {
        return Err(FetchError::Redirect);
    }
    let body = match extent {
        Extent::Head => Bytes::new(),
        Extent::Whole(max) => whole(&parts.headers, body, max).await?,
    };
    Ok(Document {
        status: parts.status,
        body,
        etag: parts
            .headers
            .get(ETAG)
            .filter(|tag| tag.len() <= 256)
            .cloned(),
        max_age: max_age(&parts.headers),
        challenge: Challenge::of(parts.headers.get_all(WWW_AUTHENTICATE)),
        session: parts.headers.get(&SESSION_ID).cloned(),
    })
}

async fn whole(headers: &HeaderMap, mut body: Incoming, max: usize) -> Result<Bytes, FetchError> {
    let coded = headers.get(CONTENT_ENCODING);
    if coded.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(FetchError::NotJson);
    }
    let promised = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if promised > max {
        return Err(FetchError::TooLarge(max));
    }
    let mut all = Zeroizing::new(Vec::with_capacity(promised));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(FetchError::unavailable)?;
        if let Ok(data) = frame.into_data() {
            if all.len() + data.remaining() > max {
                return Err(FetchError::TooLarge(max));
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(Bytes::from_owner(all))
}

/// `max-age` of `Cache-Control`, where it says so and nothing that speaks against it.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let mut found = None;
    for value in headers.get_all(CACHE_CONTROL) {
        for part in value.to_str().ok()?.split(',') {
            let part = part.trim().to_ascii_lowercase();
            match part.split_once('=') {
                Some(("max-age", seconds)) => {
                    let seconds = seconds.trim_matches('"').parse().ok()?;
                    found = Some(Duration::from_secs(seconds));
                }
                None if ["no-cache", "no-store"].contains(&part.as_str()) => return None,
                _ => {}
            }
        }
    }
    found
}
