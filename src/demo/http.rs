//! The loopback listener of the demo servers that speak HTTP.
//!
//! Guarantees that only loopback names in `Host` and `Origin` are served (DNS rebinding), that a body is at most
//! [`LARGEST_BODY`] bytes and that at most [`MAX_CONNECTIONS`] connections are open; further ones wait to be accepted.

use std::{convert::Infallible, io, net::Ipv4Addr, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{HOST, ORIGIN},
    request::Parts,
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use super::{
    answers::{Body, empty, not_allowed},
    modern::Modern,
    sessions::Sessions,
};
use crate::tasks::Tasks;

/// Where the endpoint is.
const PATH: &str = "/mcp";
/// Largest request body, in bytes.
const LARGEST_BODY: usize = 1 << 20;
const MAX_CONNECTIONS: usize = 256;

/// What is behind an endpoint.
pub(super) enum Face {
    /// Stateless: 2026-07-28.
    Modern(Modern),
    /// With sessions: 2025-06-18.
    Sessions(Sessions),
}

impl Face {
    fn methods(&self) -> &'static str {
        match self {
            Self::Modern(_) => "POST",
            Self::Sessions(_) => "GET, POST, DELETE",
        }
    }

    async fn respond(&self, parts: &Parts, body: Bytes) -> Response<Body> {
        match (self, &parts.method) {
            (Self::Modern(face), &Method::POST) => face.post(&parts.headers, &body).await,
            (Self::Sessions(face), &Method::POST) => face.post(&parts.headers, &body).await,
            (Self::Sessions(face), &Method::GET) => face.stream(&parts.headers),
            (Self::Sessions(face), &Method::DELETE) => face.delete(&parts.headers),
            _ => not_allowed(self.methods()),
        }
    }
}

/// Serves `face` on a free port of 127.0.0.1 until the token of `tasks` is cancelled. Returns the endpoint's URL.
///
/// # Errors
/// When the port cannot be bound.
pub(super) async fn listen(tasks: &Tasks, face: Face) -> io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}{PATH}", listener.local_addr()?);
    let tasks = tasks.clone();
    let accepting = tasks.clone();
    tasks.spawn(async move { accept(&accepting, listener, Arc::new(face)).await });
    Ok(url)
}

async fn accept(tasks: &Tasks, listener: TcpListener, face: Arc<Face>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: let some close.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        drop(stream.set_nodelay(true)); // without it, progress would only be late
        let (face, token) = (face.clone(), tasks.token().clone());
        tasks.spawn_orderly(async move {
            let _place = place;
            let connection = connection(stream, face);
            let mut connection = pin!(connection);
            tokio::select! {
                _ = connection.as_mut() => return,
                () = token.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            // Event streams watch the same token and end by themselves; a client that reads no more is not waited for.
            drop(tokio::time::timeout(Duration::from_secs(1), connection).await);
        });
    }
}

fn connection(
    stream: TcpStream,
    face: Arc<Face>,
) -> http1::Connection<
    TokioIo<TcpStream>,
    impl hyper::service::Service<
        Request<Incoming>,
        Response = Response<Body>,
        Error = Infallible,
        Future: Send,
    >,
> {
    let service = service_fn(move |request| {
        let face = face.clone();
        async move { Ok::<_, Infallible>(serve(&face, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    http.serve_connection(TokioIo::new(stream), service)
}

async fn serve(face: &Face, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if !is_local(&parts.headers) {
        return empty(StatusCode::FORBIDDEN);
    }
    if parts.uri.path() != PATH {
        return empty(StatusCode::NOT_FOUND);
    }
    match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(body) => face.respond(&parts, body.to_bytes()).await,
        Err(error) if error.is::<LengthLimitError>() => empty(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => empty(StatusCode::BAD_REQUEST),
    }
}

/// Whether the request was meant for this machine and, where a browser sent it, comes from a page of this machine.
fn is_local(headers: &HeaderMap) -> bool {
    let name_of = |authority: &str| {
        let authority: Option<http::uri::Authority> = authority.parse().ok();
        authority.is_some_and(|a| ["127.0.0.1", "localhost", "[::1]"].contains(&a.host()))
    };
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_ascii_lowercase();
    let host = headers.get(HOST).is_some_and(|host| name_of(&text(host)));
    let origin = headers.get(ORIGIN).is_none_or(|origin| {
        let origin = text(origin);
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(name_of)
    });
    host && origin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn only_loopback_names_are_local() {
        assert!(is_local(&headers(&[("host", "127.0.0.1:80")])));
        assert!(is_local(&headers(&[
            ("host", "LOCALHOST"),
            ("origin", "http://[::1]:6274")
        ])));
        assert!(!is_local(&headers(&[])));
        assert!(!is_local(&headers(&[("host", "evil.example")])));
        assert!(!is_local(&headers(&[("host", "127.0.0.1.evil.example")])));
        assert!(!is_local(&headers(&[
            ("host", "localhost"),
            ("origin", "https://evil.example")
        ])));
        assert!(!is_local(&headers(&[
            ("host", "localhost"),
            ("origin", "null")
        ])));
    }
}
