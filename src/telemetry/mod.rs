//! Telemetry: where metrics and traces go to.
//!
//! Guarantees: the global meter provider is installed once, before anything is served; what `/metrics` shows is read when it
//! is asked for and not before; a metric has no more sets of labels than configured, whoever calls whatever; what cannot be
//! sent is dropped and said once in the log, and never makes a call wait; the end takes no longer than [`Telemetry::FLUSH`].
//!
//! How many series there are: a duration is 17 for each set of labels (method, revision, upstream, error, and tool where it is
//! told apart), everything else one. Principals, arguments and addresses are no labels, so their number is that of the
//! configuration: ten thousand principals on five thousand tools of one upstream make less than 10,000 series. Whatever
//! happens, a metric has no more than `label_sets` sets (2,000) and counts the rest together, as `otel_metric_overflow`:
//! less than 250,000 series in all.
//! Deliberately absent: the instruments (`metrics`), the spans (`spans`), and the listener that serves the text.

mod otlp;
pub mod spec;

use std::{fmt, sync::Arc, time::Duration};

use opentelemetry::{
    Key, KeyValue, global,
    metrics::{Meter, MeterProvider as _},
    trace::TracerProvider as _,
};
use opentelemetry_sdk::{
    Resource,
    metrics::{Instrument, PeriodicReader, SdkMeterProvider, Stream},
    resource::SdkProvidedResourceDetector,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanExporter},
};
use prometheus::{Encoder, Registry, TextEncoder};
use tokio::sync::oneshot;

use crate::{audit::home, fetch::FetchError, metrics, spans::Spans};

use otlp::Senders;
use spec::{SERVICE_NAME, TelemetrySpec};

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
        let telemetry = Self::installed(spec, |meters| {
            global::set_meter_provider(meters.clone());
        })?;
        metrics::begin(spec.tools);
        Ok(telemetry)
    }

    /// The exporters alone; nothing global knows them.
    ///
    /// # Errors
    /// [`TelemetryError`].
    pub fn new(spec: &TelemetrySpec) -> Result<Self, TelemetryError> {
        Self::installed(spec, |_| {})
    }

    /// `install` comes before anything else, since what sends spans counts those it drops.
    fn installed(
        spec: &TelemetrySpec,
        install: impl FnOnce(&SdkMeterProvider),
    ) -> Result<Self, TelemetryError> {
        let resource = resource(spec, &environment());
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
        let mut sending = None;
        if let Some(otlp) = &spec.otlp {
            let senders = Senders::to(otlp)?;
            let reader = PeriodicReader::builder(senders.metrics)
                .with_interval(otlp.interval)
                .build();
            meters = meters.with_reader(reader);
            sending = Some((otlp, senders.spans));
        }
        let meters = meters.build();
        install(&meters);
        let tracers = sending.map(|(otlp, spans)| {
            let spans = spans.counted(&meters.meter("usher"));
            sent_by(spans, otlp.sample, resource)
        });
        let spans = tracers.as_ref().map_or_else(Spans::none, |provider| {
            Spans::made_by(provider.tracer("usher"))
        });
        Ok(Self(Arc::new(Shared {
            registry,
            meters,
            tracers,
            spans,
        })))
    }

    /// The same metrics, with spans that a provider of the caller's own gets.
    #[must_use]
    pub fn with_tracers(&self, tracers: SdkTracerProvider) -> Self {
        Self(Arc::new(Shared {
            registry: self.0.registry.clone(),
            meters: self.0.meters.clone(),
            spans: Spans::made_by(tracers.tracer("usher")),
            tracers: Some(tracers),
        }))
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
        if let Err(error) = waiting {
            tracing::warn!(%error, "telemetry was not sent at the end");
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

/// What `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say, of which the first counts where both have a name.
fn environment() -> Resource {
    Resource::builder()
        .with_detector(Box::new(SdkProvidedResourceDetector))
        .build()
}

/// Who tells all this: what the configuration says, else the environment, else what is known here. Replicas differ in the
/// node, as in what the audit log sends: where they did not, one would write what is another's.
fn resource(spec: &TelemetrySpec, environment: &Resource) -> Resource {
    const NAME: Key = Key::from_static_str("service.name");
    const INSTANCE: Key = Key::from_static_str("service.instance.id");
    let said = environment.get(&NAME).map(|name| name.to_string());
    // What the SDK says where nobody does.
    let said = said.filter(|name| !name.starts_with("unknown_service"));
    let name = spec.service_name.clone().or(said);
    let instance = environment.get(&INSTANCE);
    let all = environment.iter();
    let all = all.map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    Resource::builder_empty()
        .with_attributes(all)
        .with_service_name(name.unwrap_or_else(|| SERVICE_NAME.to_owned()))
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new(INSTANCE, instance.unwrap_or_else(|| home::node().into())),
        ])
        .build()
}

/// The same instrument, with a bound on its sets of labels.
fn bounded(sets: usize) -> Option<Stream> {
    // A stream that says nothing of aggregation leaves the boundaries to the instrument.
    Stream::builder().with_cardinality_limit(sets).build().ok()
}

fn sent_by(
    exporter: impl SpanExporter + 'static,
    sample: f64,
    resource: Resource,
) -> SdkTracerProvider {
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(SPANS)
        .with_max_export_batch_size(BATCH)
        .with_scheduled_delay(DELAY)
        .build();
    let processor = BatchSpanProcessor::builder(exporter)
        .with_batch_config(batches)
        .build();
    SdkTracerProvider::builder()
        .with_resource(resource)
        .with_sampler(sampler(sample))
        .with_span_processor(processor)
        .build()
}

/// What a caller records is recorded here; of traces that begin here this share.
fn sampler(share: f64) -> Sampler {
    Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(text: &[u8], name: &str) -> usize {
        let text = String::from_utf8_lossy(text);
        text.lines().filter(|line| line.starts_with(name)).count()
    }

    #[test]
    fn no_metric_has_more_sets_of_labels_than_it_may() {
        let spec = TelemetrySpec {
            label_sets: 100,
            ..TelemetrySpec::default()
        };
        let telemetry = Telemetry::new(&spec).unwrap();
        let counter = telemetry.meter().u64_counter("many").build();
        let label = |number: u64| [KeyValue::new("n", number.to_string())];
        for number in 0..99 {
            counter.add(1, &label(number));
        }
        let text = telemetry.metrics_text();
        assert_eq!(series(&text, "many_total"), 99);
        assert_eq!(series(&text, "many_total{otel_metric_overflow"), 0);
        for number in 99..5_000 {
            counter.add(1, &label(number));
        }
        let text = telemetry.metrics_text();
        assert!(series(&text, "many_total") <= 101);
        let text = String::from_utf8(text).unwrap();
        let rest = text
            .lines()
            .find(|line| line.contains(r#"otel_metric_overflow="true""#))
            .unwrap();
        let (_, rest) = rest.rsplit_once(' ').unwrap();
        assert!(rest.parse::<u64>().unwrap() >= 4_900, "{rest}");
    }

    #[test]
    fn who_tells_is_what_the_configuration_says_else_the_environment_else_what_is_known() {
        let told = |written: Option<&str>, environment: &Resource| {
            let spec = TelemetrySpec {
                service_name: written.map(str::to_owned),
                ..TelemetrySpec::default()
            };
            let resource = resource(&spec, environment);
            [
                "service.name",
                "service.instance.id",
                "service.version",
                "a",
            ]
            .map(|key| {
                let value = resource.get(&Key::from_static_str(key));
                value.map(|value| value.to_string())
            })
        };
        let text = |text: &str| Some(text.to_owned());
        let (version, node) = (env!("CARGO_PKG_VERSION"), home::node());
        let said = |attributes: &[(&'static str, &'static str)]| {
            let attributes = attributes.iter();
            let attributes = attributes.map(|(key, value)| KeyValue::new(*key, *value));
            Resource::builder_empty()
                .with_attributes(attributes)
                .build()
        };
        for nothing in [
            said(&[]),
            said(&[("service.name", "unknown_service:usher")]),
        ] {
            assert_eq!(
                told(None, &nothing),
                [text("usher"), text(&node), text(version), None]
            );
        }
        let all = said(&[
            ("service.name", "theirs"),
            ("service.instance.id", "7"),
            ("a", "b"),
        ]);
        assert_eq!(
            told(None, &all),
            [text("theirs"), text("7"), text(version), text("b")]
        );
        assert_eq!(
            told(Some("gate"), &all),
            [text("gate"), text("7"), text(version), text("b")]
        );
        // Where tests run nobody says anything.
        if std::env::vars().all(|(name, _)| !name.starts_with("OTEL_")) {
            assert_eq!(told(None, &environment())[0], text("usher"));
        }
    }

    /// As is said above, and in `deploy/manual/operating.md`: 17 series for each set of labels of a histogram, one for each of anything else.
    #[test]
    fn all_metrics_together_have_no_more_series_than_is_said() {
        use crate::metrics::table::{ALL, Kind, Metric};

        let each = |metric: &Metric| match metric.kind {
            Kind::Histogram => 17,
            Kind::Counter | Kind::Gauge => 1,
        };
        let most = ALL.iter().map(each).sum::<usize>() * TelemetrySpec::default().label_sets;
        assert!(most < 250_000, "{most}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn spans_that_no_receiver_takes_are_counted_by_why() {
        use crate::{
            fetch::Address,
            spans::About,
            telemetry::spec::{OtlpSpec, Protocol},
        };

        // Bound and never listened at: whoever dials it is refused.
        let nobody = tokio::net::TcpSocket::new_v4().unwrap();
        nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = format!("http://{}", nobody.local_addr().unwrap());
        for protocol in [
            Protocol::HttpProtobuf,
            #[cfg(feature = "grpc")]
            Protocol::Grpc,
        ] {
            let telemetry = Telemetry::new(&TelemetrySpec {
                otlp: Some(OtlpSpec {
                    address: Address::configured(&address, false).unwrap(),
                    protocol,
                    headers: Vec::new(),
                    ca: None,
                    interval: Duration::from_secs(3_600),
                    sample: 1.0,
                }),
                ..TelemetrySpec::default()
            });
            let telemetry = telemetry.unwrap();
            let about = About {
                method: "tools/list",
                ..About::default()
            };
            for _ in 0..3 {
                let span = telemetry.spans().served(&about, None).unwrap();
                span.end(None, None);
            }
            let tracers = telemetry.0.tracers.as_ref().unwrap();
            assert!(tokio::task::block_in_place(|| tracers.force_flush()).is_err());
            let text = String::from_utf8(telemetry.metrics_text()).unwrap();
            let lost = r#"otel_sdk_exporter_span_exported_total{error_type="not_sent"} 3"#;
            assert!(text.contains(lost), "{protocol:?}: {text}");
        }
    }

    #[test]
    fn what_a_caller_records_is_recorded_and_of_the_rest_a_share() {
        use opentelemetry_sdk::trace::InMemorySpanExporter;

        use crate::{
            protocol::trace::Parent,
            spans::{About, Span},
        };

        let exporter = InMemorySpanExporter::default();
        let tracers = SdkTracerProvider::builder()
            .with_sampler(sampler(0.0))
            .with_simple_exporter(exporter.clone())
            .build();
        let telemetry = Telemetry::new(&TelemetrySpec::default())
            .unwrap()
            .with_tracers(tracers);
        let about = About {
            method: "tools/list",
            ..About::default()
        };
        let parent = |flags| Parent {
            trace: 7,
            span: 8,
            flags,
        };
        for parent in [None, Some(parent(0)), Some(parent(1))] {
            let span = telemetry.spans().served(&about, parent.as_ref()).unwrap();
            // The trace goes on whether it is recorded or not.
            let told: Parent = Span::told(&span);
            assert_eq!(told.flags, parent.map_or(0, |parent| parent.flags));
            assert!(parent.is_none_or(|parent| parent.trace == told.trace));
            assert!(told.trace != 0 && told.span != 0);
            span.end(None, None);
        }
        assert_eq!(exporter.get_finished_spans().unwrap().len(), 1);
    }
}
