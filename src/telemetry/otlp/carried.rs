//! Exporters, called by the SDK on threads of its own, and what becomes of what they send.

use std::{
    fmt,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter},
};
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    metrics::{Temporality, data::ResourceMetrics, exporter::PushMetricExporter},
    trace::{SpanData, SpanExporter},
};
use tokio::runtime::Handle;

use super::News;

/// An exporter that the runtime it was made in carries, and of which the log hears.
pub(in crate::telemetry) struct Carried<E> {
    exporter: E,
    runtime: Handle,
    news: News,
    /// Spans that were sent, and by `error.type` those that were not.
    sent: Option<Counter<u64>>,
}

impl<E> Carried<E> {
    /// # Panics
    /// Outside a runtime.
    pub(super) fn new(exporter: E, news: News) -> Self {
        Self {
            exporter,
            runtime: Handle::current(),
            news,
            sent: None,
        }
    }

    /// Runs an export where its input, output and timers find the runtime.
    async fn export(&self, export: impl Future<Output = OTelSdkResult> + Send) -> OTelSdkResult {
        let within = Within {
            runtime: &self.runtime,
            inner: Box::pin(export),
        };
        let result = within.await;
        self.news
            .tell(result.as_ref().err().map(ToString::to_string));
        result
    }
}

impl Carried<opentelemetry_otlp::SpanExporter> {
    /// The same exporter, which counts what it sends, by the conventions of OpenTelemetry for its SDK.
    pub(in crate::telemetry) fn counted(mut self, meter: &Meter) -> Self {
        let counter = meter
            .u64_counter("otel.sdk.exporter.span.exported")
            .with_unit("{span}")
            .with_description(
                "Spans that were sent, and by error.type those of requests that failed.",
            );
        self.sent = Some(counter.build());
        self
    }
}

impl SpanExporter for Carried<opentelemetry_otlp::SpanExporter> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let result = self.export(self.exporter.export(batch)).await;
        if let Some(sent) = &self.sent {
            let class = result.as_ref().err().map(class);
            let labels = class.map(|class| KeyValue::new("error.type", class));
            sent.add(spans, labels.as_slice());
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl PushMetricExporter for Carried<opentelemetry_otlp::MetricExporter> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.export(self.exporter.export(metrics)).await
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

/// The class of a failure: few words, whatever a receiver says.
const fn class(error: &OTelSdkError) -> &'static str {
    match error {
        OTelSdkError::AlreadyShutdown => "already_shutdown",
        OTelSdkError::Timeout(_) => "timeout",
        OTelSdkError::InternalFailure(_) => "not_sent",
    }
}

impl<E> fmt::Debug for Carried<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Carried")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fetch::Address,
        logged::Logged,
        telemetry::{
            otlp::Senders,
            spec::{OtlpSpec, Protocol},
        },
    };

    #[tokio::test]
    async fn a_receiver_that_takes_one_signal_alone_is_told_of_once() {
        let senders = Senders::to(&OtlpSpec {
            address: Address::configured("http://127.0.0.1:4318", false).unwrap(),
            protocol: Protocol::HttpProtobuf,
            headers: Vec::new(),
            ca: None,
            interval: Duration::from_secs(30),
            sample: 1.0,
        });
        let Senders { metrics, spans } = senders.unwrap();
        let logged = Logged::new();
        for _ in 0..3 {
            spans.news.tell(None);
            metrics.news.tell(Some("HTTP 404".to_owned()));
        }
        let text = logged.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(r#"signal="metrics""#), "{text}");
    }
}
