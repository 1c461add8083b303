//! OTLP over HTTP, by our own client and over our own TLS.
//!
//! Guarantees: one request at a time on a connection of its own, which ends with it; no redirect is followed; the receiver's
//! answer is bounded.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use http::HeaderMap;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    MetricExporter, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};

use super::{News, TIME, headers};
use crate::{
    fetch::{Address, FetchError, Fetcher},
    telemetry::{TelemetryError, spec::OtlpSpec, unusable},
};

/// POSTs to one receiver. Clones share everything.
#[derive(Clone)]
struct Post(Arc<Shared>);

struct Shared {
    fetcher: Fetcher,
    address: Address,
    headers: HeaderMap,
    news: News,
}

/// The most bytes of a receiver's answer.
const ANSWER: usize = 64 << 10;

/// To this receiver.
pub(super) fn exporters(
    otlp: &OtlpSpec,
    news: &News,
) -> Result<(MetricExporter, SpanExporter), TelemetryError> {
    let post = Post(Arc::new(Shared {
        fetcher: Fetcher::new(otlp.ca.as_deref())?,
        address: otlp.address.clone(),
        headers: headers(otlp),
        news: news.clone(),
    }));
    let metrics = MetricExporter::builder()
        .with_http()
        .with_http_client(post.clone())
        .with_endpoint(post.path_of("/v1/metrics"))
        .with_timeout(TIME)
        .build()
        .map_err(unusable)?;
    let spans = SpanExporter::builder()
        .with_http()
        .with_endpoint(post.path_of("/v1/traces"))
        .with_http_client(post)
        .with_timeout(TIME)
        .build()
        .map_err(unusable)?;
    Ok((metrics, spans))
}

impl Post {
    /// Where a signal goes to: `path` below the receiver's address.
    fn path_of(&self, path: &str) -> String {
        let base = self.0.address.to_string();
        format!("{}{path}", base.trim_end_matches('/'))
    }

    async fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, FetchError> {
        let (parts, body) = request.into_parts();
        let at = self.0.address.at_path(parts.uri.path())?;
        let mut headers = parts.headers;
        headers.extend(self.0.headers.clone());
        let posting = self.0.fetcher.post(&at, headers, body, ANSWER);
        let document = tokio::time::timeout(TIME, posting)
            .await
            .map_err(|_| FetchError::Timeout("answer"))??;
        let mut response = Response::new(document.body);
        *response.status_mut() = document.status;
        Ok(response)
    }
}

#[async_trait]
impl HttpClient for Post {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let result = self.post(request).await;
        // Of these the exporters say that there was one.
        if let Err(error) = &result {
            self.0.news.because(error.to_string());
        }
        Ok(result?)
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Post({})", self.0.address)
    }
}
