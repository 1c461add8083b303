//! Telemetry: where metrics and traces go to.
//!
//! Guarantees: the global meter provider is installed once, before anything is served; what `/metrics` shows is read when it
//! is asked for and not before; a metric has no more sets of labels than configured, whoever calls whatever; what cannot be
//! sent is dropped and said once in the log, and never makes a call wait; the end takes no longer than [`Telemetry::FLUSH`].
//! Deliberately absent: the instruments (`metrics`), the spans (`spans`), and the listener that serves the text.

mod otlp;
pub mod spec;

use std::{fmt, sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue, global,
    metrics::{Meter, MeterProvider as _},
    trace::TracerProvider as _,
};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    metrics::{Instrument, PeriodicReader, SdkMeterProvider, Stream},
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider},
};
use prometheus::{Encoder, Registry, TextEncoder};
use tokio::sync::oneshot;

use crate::{fetch::FetchError, metrics, spans::Spans};

use otlp::Post;
use spec::{OtlpSpec, TelemetrySpec};

/// The exporters of this process. Clones share everything.
#[derive(Clone)]
pub struct Telemetry(Arc<Shared>);

struct Shared {
    registry: Registry,
    meters: SdkMeterProvider,
    tracers: Option<SdkTracerProvider>,
    spans: Spans,
}

/// Why there is no telemetry.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// An exporter cannot be made.
    #[error("telemetry: {0}")]
    Exporter(String),
    /// The receiver cannot be reached as configured.
    #[error("telemetry.ca: {0}")]
    Receiver(#[from] FetchError),
}

/// Spans that wait to be sent; more are dropped.
const SPANS: usize = 8_192;
/// Spans sent at once.
const BATCH: usize = 512;
/// How long a span waits for others at most.
const DELAY: Duration = Duration::from_secs(2);

impl Telemetry {
    /// The media type of [`Telemetry::metrics_text`].
    pub const METRICS_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";
    /// How long the end may take: what is not sent by then is dropped.
    pub const FLUSH: Duration = Duration::from_secs(5);

    /// Begins: makes the exporters and installs the meter provider of this process. Instruments made before count nowhere,
    /// so this comes first. Call it within the runtime, which carries what is sent.
    ///
    /// # Errors
    /// [`TelemetryError`].
    pub fn start(spec: &TelemetrySpec) -> Result<Self, TelemetryError> {
        let telemetry = Self::new(spec)?;
        global::set_meter_provider(telemetry.0.meters.clone());
        metrics::begin(spec.tools);
        Ok(telemetry)
    }

    /// The exporters alone; nothing global knows them.
    ///
    /// # Errors
    /// [`TelemetryError`].
    pub fn new(spec: &TelemetrySpec) -> Result<Self, TelemetryError> {
        let resource = resource(spec);
        let registry = Registry::new();
        let prometheus = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()
            .map_err(unusable)?;
        let sets = spec.label_sets;
        let mut meters = SdkMeterProvider::builder()
            .with_resource(resource.clone())
            .with_view(move |_: &Instrument| bounded(sets))
            .with_reader(prometheus);
        let mut tracers = None;
        if let Some(otlp) = &spec.otlp {
            let post = Post::new(otlp)?;
            let exporter = MetricExporter::builder()
                .with_http()
                .with_http_client(post.clone())
                .with_endpoint(post.path_of("/v1/metrics"))
                .with_timeout(Self::FLUSH)
                .build()
                .map_err(unusable)?;
            let reader = PeriodicReader::builder(exporter)
                .with_interval(otlp.interval)
                .build();
            meters = meters.with_reader(reader);
            tracers = Some(sending(otlp, post, resource)?);
        }
        let spans = tracers.as_ref().map_or_else(Spans::none, |provider| {
            Spans::made_by(provider.tracer("usher"))
        });
        Ok(Self(Arc::new(Shared {
            registry,
            meters: meters.build(),
            tracers,
            spans,
        })))
    }

    /// Every metric as it stands now, in the text format of Prometheus (0.0.4).
    pub fn metrics_text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.0.registry.gather(), &mut text) {
            tracing::warn!(%error, "metrics could not be written");
        }
        text
    }

    /// Where instruments of the gateway's state are made.
    pub fn meter(&self) -> Meter {
        self.0.meters.meter("usher")
    }

    /// What makes the spans of calls; none where nothing is sent.
    pub fn spans(&self) -> &Spans {
        &self.0.spans
    }

    /// Sends what is left, within [`Telemetry::FLUSH`], and stops sending.
    pub async fn shutdown(&self) {
        let (done, ended) = oneshot::channel();
        let shared = Arc::clone(&self.0);
        // The providers wait for their own threads, which need this runtime to go on: so they are waited for elsewhere.
        let waiting = std::thread::Builder::new()
            .name("telemetry-end".to_owned())
            .spawn(move || {
                let traces = shared
                    .tracers
                    .as_ref()
                    .map(|tracers| tracers.shutdown_with_timeout(Self::FLUSH));
                let metrics = shared.meters.shutdown();
                drop(done.send((traces, metrics)));
            });
        if waiting.is_err() {
            return;
        }
        match tokio::time::timeout(Self::FLUSH, ended).await {
            Ok(Ok((Some(Err(error)), _) | (_, Err(error)))) => {
                tracing::warn!(%error, "not all telemetry was sent at the end");
            }
            Ok(Ok(_) | Err(_)) => {}
            Err(_) => tracing::warn!("not all telemetry was sent in time at the end"),
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Telemetry(sends: {})", self.0.tracers.is_some())
    }
}

fn unusable(error: impl fmt::Display) -> TelemetryError {
    TelemetryError::Exporter(error.to_string())
}

/// Who tells all this. `OTEL_RESOURCE_ATTRIBUTES` adds to it, as everywhere.
fn resource(spec: &TelemetrySpec) -> Resource {
    Resource::builder()
        .with_service_name(spec.service_name.clone())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

/// The same instrument, with a bound on its sets of labels.
fn bounded(sets: usize) -> Option<Stream> {
    // A stream that says nothing of aggregation leaves the boundaries to the instrument.
    Stream::builder().with_cardinality_limit(sets).build().ok()
}

fn sending(
    otlp: &OtlpSpec,
    post: Post,
    resource: Resource,
) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(post.path_of("/v1/traces"))
        .with_http_client(post)
        .with_timeout(Telemetry::FLUSH)
        .build()
        .map_err(unusable)?;
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(SPANS)
        .with_max_export_batch_size(BATCH)
        .with_scheduled_delay(DELAY)
        .build();
    let processor = BatchSpanProcessor::builder(exporter)
        .with_batch_config(batches)
        .build();
    Ok(SdkTracerProvider::builder()
        .with_resource(resource)
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(
            otlp.sample,
        ))))
        .with_span_processor(processor)
        .build())
}
