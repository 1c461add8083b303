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

/// POSTs one signal to a receiver. Clones share everything.
#[derive(Clone)]
struct Post {
    shared: Arc<Shared>,
    news: News,
}

struct Shared {
    fetcher: Fetcher,
    address: Address,
    headers: HeaderMap,
}

/// The most bytes of a receiver's answer.
const ANSWER: usize = 64 << 10;

/// To this receiver.
pub(super) fn exporters(
    otlp: &OtlpSpec,
    of_metrics: &News,
    of_spans: &News,
) -> Result<(MetricExporter, SpanExporter), TelemetryError> {
    let shared = Arc::new(Shared {
        fetcher: Fetcher::new(otlp.ca.as_deref())?,
        address: otlp.address.clone(),
        headers: headers(otlp),
    });
    let post = |news: &News| Post {
        shared: Arc::clone(&shared),
        news: news.clone(),
    };
    let (metrics, spans) = (post(of_metrics), post(of_spans));
    let metrics = MetricExporter::builder()
        .with_http()
        .with_endpoint(metrics.path_of("/v1/metrics"))
        .with_http_client(metrics)
        .with_timeout(TIME)
        .build()
        .map_err(unusable)?;
    let spans = SpanExporter::builder()
        .with_http()
        .with_endpoint(spans.path_of("/v1/traces"))
        .with_http_client(spans)
        .with_timeout(TIME)
        .build()
        .map_err(unusable)?;
    Ok((metrics, spans))
}

impl Post {
    /// Where a signal goes to: `path` below the receiver's address.
    fn path_of(&self, path: &str) -> String {
        let base = self.shared.address.to_string();
        format!("{}{path}", base.trim_end_matches('/'))
    }

    async fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, FetchError> {
        let (parts, body) = request.into_parts();
        let at = self.shared.address.at_path(parts.uri.path())?;
        let mut headers = parts.headers;
        headers.extend(self.shared.headers.clone());
        let posting = self.shared.fetcher.post(&at, headers, body, ANSWER);
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
            self.news.because(error.to_string());
        }
        Ok(result?)
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Post({})", self.shared.address)
    }
}
