//! How OTLP is carried: by our own client, over our own TLS.
//!
//! Guarantees: one request at a time on a connection of its own, which ends with it; no redirect is followed, no proxy and no
//! environment asked; the receiver's answer is bounded; configured headers never reach a log. Deliberately absent: what is
//! sent, and when (`opentelemetry-otlp` and the SDK).

use std::{
    fmt,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use secrecy::ExposeSecret;
use tokio::runtime::Handle;

use super::spec::OtlpSpec;
use crate::fetch::{Address, FetchError, Fetcher};

/// POSTs to one receiver. Clones share everything.
#[derive(Clone)]
pub(super) struct Post(Arc<Shared>);

struct Shared {
    fetcher: Fetcher,
    address: Address,
    headers: HeaderMap,
    runtime: Handle,
    /// Whether the last request came to nothing: said once, and once more when one comes through.
    failing: AtomicBool,
}

/// The most bytes of a receiver's answer.
const ANSWER: usize = 64 << 10;

impl Post {
    /// To this receiver, carried by the runtime that this is called in.
    pub(super) fn new(otlp: &OtlpSpec) -> Result<Self, FetchError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &otlp.headers {
            if let Ok(mut value) = HeaderValue::from_str(value.expose_secret()) {
                value.set_sensitive(true);
                headers.insert(name.clone(), value);
            }
        }
        Ok(Self(Arc::new(Shared {
            fetcher: Fetcher::new(otlp.ca.as_deref())?,
            address: otlp.address.clone(),
            headers,
            runtime: Handle::current(),
            failing: AtomicBool::new(false),
        })))
    }

    /// Where a signal goes to: `path` below the receiver's address.
    pub(super) fn path_of(&self, path: &str) -> String {
        let base = self.0.address.to_string();
        format!("{}{path}", base.trim_end_matches('/'))
    }

    async fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, FetchError> {
        let (parts, body) = request.into_parts();
        let at = self.0.address.at_path(parts.uri.path())?;
        let mut headers = parts.headers;
        headers.extend(self.0.headers.clone());
        let document = self.0.fetcher.post(&at, headers, body, ANSWER).await?;
        let mut response = Response::new(document.body);
        *response.status_mut() = document.status;
        Ok(response)
    }

    /// Says what became of it, when that is news.
    fn told(&self, result: &Result<Response<Bytes>, FetchError>) {
        let failure = match result {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("answered with HTTP {}", response.status().as_u16())),
            Err(error) => Some(error.to_string()),
        };
        let was = self.0.failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(error) if !was => {
                tracing::warn!(receiver = %self.0.address, %error, "telemetry cannot be sent");
            }
            None if was => tracing::info!(receiver = %self.0.address, "telemetry is sent again"),
            Some(_) | None => {}
        }
    }
}

#[async_trait]
impl HttpClient for Post {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let post = self.clone();
        // The exporters call from threads of their own.
        let result = Within {
            runtime: &self.0.runtime,
            inner: Box::pin(async move { post.post(request).await }),
        }
        .await;
        self.told(&result);
        Ok(result?)
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Post({})", self.0.address)
    }
}

/// A future that finds its runtime wherever it is polled.
struct Within<'a, F> {
    runtime: &'a Handle,
    inner: Pin<Box<F>>,
}

impl<F: Future> Future for Within<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let _within = self.runtime.enter();
        pin!(&mut self.inner).poll(cx)
    }
}
