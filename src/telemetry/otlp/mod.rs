//! How OTLP is carried: over HTTP, or over gRPC in builds with the feature `grpc`.
//!
//! Guarantees: no proxy is asked; configured headers never reach a log; that a receiver takes no traces, or no metrics, is said
//! once in the log, and once more when it takes some again. Deliberately absent: what is sent, and when (`opentelemetry-otlp` and the SDK).

mod carried;
#[cfg(feature = "grpc")]
mod grpc;
mod news;
mod post;

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use opentelemetry_otlp::{MetricExporter, SpanExporter};
use secrecy::ExposeSecret as _;

use super::{
    Telemetry, TelemetryError,
    spec::{OtlpSpec, Protocol},
};

pub(super) use carried::Carried;
use news::News;

/// How long one request may take.
const TIME: Duration = Telemetry::FLUSH;

/// What sends to one receiver.
pub(super) struct Senders {
    pub(super) metrics: Carried<MetricExporter>,
    pub(super) spans: Carried<SpanExporter>,
}

impl Senders {
    /// To this receiver, carried by the runtime that this is called in.
    pub(super) fn to(otlp: &OtlpSpec) -> Result<Self, TelemetryError> {
        let [of_metrics, of_spans] =
            ["metrics", "traces"].map(|signal| News::of(signal, &otlp.address));
        let (metrics, spans) = match otlp.protocol {
            Protocol::HttpProtobuf => post::exporters(otlp, &of_metrics, &of_spans)?,
            #[cfg(feature = "grpc")]
            Protocol::Grpc => grpc::exporters(otlp)?,
        };
        Ok(Self {
            metrics: Carried::new(metrics, of_metrics),
            spans: Carried::new(spans, of_spans),
        })
    }
}

/// What is sent with every request, beside what the protocol says.
fn headers(otlp: &OtlpSpec) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &otlp.headers {
        if let Ok(mut value) = HeaderValue::from_str(value.expose_secret()) {
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
    }
    headers
}
