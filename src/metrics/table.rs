//! Every metric that there is: what it is called, what it is, in which unit, and what it counts. Nothing else spells their names.
//!
//! Guarantees: instruments are made of these rows, so what is told is what stands here; names and units follow one rule, which a
//! test holds: what takes time, and the time of something, is in `s`, what has a size in `By`, and what is counted in `{things}` of
//! one word; those that the conventions of OpenTelemetry name are as they say (`mcp.*`, Development). Deliberately absent: labels
//! ([`names`](super::names)), and what the SDK tells of itself (`otel.sdk.*`).

use opentelemetry::metrics::{
    AsyncInstrumentBuilder, Counter, Histogram, HistogramBuilder, InstrumentBuilder, Meter,
};

/// Upper bounds of buckets of seconds, as the conventions ask for.
const SECONDS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// What an instrument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Only ever grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many were how large.
    Histogram,
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its unit, in UCUM.
    pub unit: &'static str,
    /// What it counts.
    pub about: &'static str,
}

impl Metric {
    const fn new(kind: Kind, name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind,
            unit,
            about,
        }
    }

    /// A counter that is added to.
    pub(super) fn counter(self, meter: &Meter) -> Counter<u64> {
        let counter: InstrumentBuilder<'_, Counter<u64>> = meter.u64_counter(self.name);
        counter
            .with_unit(self.unit)
            .with_description(self.about)
            .build()
    }

    /// A histogram of seconds.
    pub(super) fn histogram(self, meter: &Meter) -> Histogram<f64> {
        let histogram: HistogramBuilder<'_, Histogram<f64>> = meter.f64_histogram(self.name);
        let histogram = histogram.with_unit(self.unit).with_description(self.about);
        histogram.with_boundaries(SECONDS.to_vec()).build()
    }

    /// One that is looked at when metrics are read.
    pub(super) fn described<'a, I, M>(
        self,
        builder: AsyncInstrumentBuilder<'a, I, M>,
    ) -> AsyncInstrumentBuilder<'a, I, M> {
        builder.with_unit(self.unit).with_description(self.about)
    }
}

/// All of them.
pub const ALL: [Metric; 41] = [
    SERVED,
    ASKED,
    SESSIONS_SERVED,
    SESSIONS_HELD,
    LIMITS_REFUSED,
    LIMITS_WAIT,
    LIMITS_OVERFLOWED,
    BOUNDS_REACHED,
    REFUSED,
    REQUESTS_PANICKED,
    FINDINGS,
    VALIDATION_FAILED,
    DEFINITIONS_CHANGED,
    SESSIONS,
    SUBSCRIPTIONS,
    CONNECTIONS,
    MEMORY_HELD,
    MEMORY_BUDGET,
    IN_FLIGHT,
    POLICY_PROBLEMS,
    CERTIFICATE_END,
    UPSTREAM_STATE,
    UPSTREAM_BREAKER,
    UPSTREAM_FAILURES,
    UPSTREAM_IN_FLIGHT,
    UPSTREAM_QUEUED,
    UPSTREAM_CONCURRENCY,
    CATALOG_ITEMS,
    CATALOG_REPORTS,
    LIMITS_KEYS,
    AUDIT_LAG,
    AUDIT_FAILING,
    AUDIT_SINK_LAG,
    AUDIT_SINK_FAILING,
    SLOW_CONSUMERS,
    UPSTREAM_RESTARTS,
    UPSTREAM_DROPPED_FRAMES,
    CATALOG_REFRESHES,
    AUDIT_LOST,
    AUDIT_SINK_LOST,
    LIMITS_ADMITTED,
];

/// By as of [`calls`](super::calls).
pub(super) const SERVED: Metric = Metric::new(
    Kind::Histogram,
    "mcp.server.operation.duration",
    "s",
    "How long requests of clients took, from their arrival to the end of their answer.",
);
/// By as of [`calls`](super::calls).
pub(super) const ASKED: Metric = Metric::new(
    Kind::Histogram,
    "mcp.client.operation.duration",
    "s",
    "How long requests to upstreams took, from sending to the end of the answer.",
);
/// By the revision.
pub(super) const SESSIONS_SERVED: Metric = Metric::new(
    Kind::Histogram,
    "mcp.server.session.duration",
    "s",
    "How long sessions of clients were open that are over.",
);
/// By the upstream, the revision.
pub(super) const SESSIONS_HELD: Metric = Metric::new(
    Kind::Histogram,
    "mcp.client.session.duration",
    "s",
    "How long sessions with upstreams were open that are over.",
);
/// By `usher.rule`, `usher.reason`.
pub(super) const LIMITS_REFUSED: Metric = Metric::new(
    Kind::Counter,
    "usher.limits.refused",
    "{call}",
    "Calls that a configured rule refused.",
);
/// By `usher.rule`.
pub(super) const LIMITS_WAIT: Metric = Metric::new(
    Kind::Histogram,
    "usher.limits.wait",
    "s",
    "Time that admitted calls stood in a rule's queue.",
);
/// By `usher.rule`.
pub(super) const LIMITS_OVERFLOWED: Metric = Metric::new(
    Kind::Counter,
    "usher.limits.overflowed",
    "{call}",
    "Calls met by a rule's shared meter, where there was no room for one of their own.",
);
/// By `usher.bound`.
pub(super) const BOUNDS_REACHED: Metric = Metric::new(
    Kind::Counter,
    "usher.bounds.reached",
    "{event}",
    "What a fixed bound kept out.",
);
/// By `usher.reason`.
pub(super) const REFUSED: Metric = Metric::new(
    Kind::Counter,
    "usher.refused",
    "{request}",
    "Requests that were refused before they were calls: for who sent them, or for what they are.",
);
pub(super) const REQUESTS_PANICKED: Metric = Metric::new(
    Kind::Counter,
    "usher.requests.panicked",
    "{request}",
    "Requests in whose answer something panicked.",
);
/// By `usher.class`, `usher.rule`, `usher.action`.
pub(super) const FINDINGS: Metric = Metric::new(
    Kind::Counter,
    "usher.findings",
    "{finding}",
    "Findings in content.",
);
/// By `usher.side`, `usher.action`.
pub(super) const VALIDATION_FAILED: Metric = Metric::new(
    Kind::Counter,
    "usher.validation.failed",
    "{message}",
    "Arguments and results that do not fit their schema.",
);
/// By `gateway.upstream`, `usher.action`.
pub(super) const DEFINITIONS_CHANGED: Metric = Metric::new(
    Kind::Counter,
    "usher.definitions.changed",
    "{definition}",
    "Definitions that are not what was pinned.",
);
pub(super) const SESSIONS: Metric = Metric::new(
    Kind::Gauge,
    "usher.sessions",
    "{session}",
    "Legacy sessions of clients.",
);
pub(super) const SUBSCRIPTIONS: Metric = Metric::new(
    Kind::Gauge,
    "usher.subscriptions",
    "{stream}",
    "Streams of principals that listen for changes.",
);
pub(super) const CONNECTIONS: Metric = Metric::new(
    Kind::Gauge,
    "usher.connections",
    "{connection}",
    "Connections to the listener.",
);
pub(super) const MEMORY_HELD: Metric = Metric::new(
    Kind::Gauge,
    "usher.memory.held",
    "By",
    "Bytes of messages that are held.",
);
pub(super) const MEMORY_BUDGET: Metric = Metric::new(
    Kind::Gauge,
    "usher.memory.budget",
    "By",
    "Bytes of messages that may be held.",
);
pub(super) const IN_FLIGHT: Metric = Metric::new(
    Kind::Gauge,
    "usher.in_flight",
    "{request}",
    "Requests in flight.",
);
pub(super) const POLICY_PROBLEMS: Metric = Metric::new(
    Kind::Gauge,
    "usher.policy.problems",
    "{problem}",
    "Faults of the policies that were read last, and of those in force: what does not fit, and enforced cases that they break.",
);
/// By `usher.certificate`.
pub(super) const CERTIFICATE_END: Metric = Metric::new(
    Kind::Gauge,
    "usher.certificate.end",
    "s",
    "When a certificate that others are shown ends, in seconds since 1970.",
);
pub(super) const UPSTREAM_STATE: Metric = Metric::new(
    Kind::Gauge,
    "usher.upstream.state",
    "{upstream}",
    "1 for the state that an upstream is in, 0 for the others.",
);
pub(super) const UPSTREAM_BREAKER: Metric = Metric::new(
    Kind::Gauge,
    "usher.upstream.breaker",
    "{upstream}",
    "1 while calls to an upstream fail at once, 0 while they reach it or nobody has logged in yet.",
);
pub(super) const UPSTREAM_FAILURES: Metric = Metric::new(
    Kind::Gauge,
    "usher.upstream.failures",
    "{connection}",
    "Connections in a row that failed under calls; five trip the breaker.",
);
pub(super) const UPSTREAM_IN_FLIGHT: Metric = Metric::new(
    Kind::Gauge,
    "usher.upstream.in_flight",
    "{call}",
    "Calls in flight to an upstream.",
);
pub(super) const UPSTREAM_QUEUED: Metric = Metric::new(
    Kind::Gauge,
    "usher.upstream.queued",
    "{call}",
    "Calls that wait for their turn at an upstream.",
);
pub(super) const UPSTREAM_CONCURRENCY: Metric = Metric::new(
    Kind::Gauge,
    "usher.upstream.concurrency",
    "{call}",
    "Calls that may be in flight to an upstream at once.",
);
pub(super) const CATALOG_ITEMS: Metric = Metric::new(
    Kind::Gauge,
    "usher.catalog.items",
    "{item}",
    "Entries of the catalog.",
);
pub(super) const CATALOG_REPORTS: Metric = Metric::new(
    Kind::Gauge,
    "usher.catalog.reports",
    "{item}",
    "Entries that were left out of the catalog, or are doubtful.",
);
pub(super) const LIMITS_KEYS: Metric = Metric::new(
    Kind::Gauge,
    "usher.limits.keys",
    "{key}",
    "Keys that a rule keeps meters for.",
);
pub(super) const AUDIT_LAG: Metric = Metric::new(
    Kind::Gauge,
    "usher.audit.lag",
    "{record}",
    "Audit records that are not safe yet.",
);
pub(super) const AUDIT_FAILING: Metric = Metric::new(
    Kind::Gauge,
    "usher.audit.failing",
    "{log}",
    "1 while calls are refused because they cannot be recorded.",
);
pub(super) const AUDIT_SINK_LAG: Metric = Metric::new(
    Kind::Gauge,
    "usher.audit.sink.lag",
    "{record}",
    "Audit records that were not delivered to a sink yet; the file has them.",
);
pub(super) const AUDIT_SINK_FAILING: Metric = Metric::new(
    Kind::Gauge,
    "usher.audit.sink.failing",
    "{sink}",
    "1 while audit records cannot be delivered to a sink.",
);
pub(super) const SLOW_CONSUMERS: Metric = Metric::new(
    Kind::Counter,
    "usher.slow_consumers",
    "{stream}",
    "Event streams that were cut off because their clients did not keep up.",
);
pub(super) const UPSTREAM_RESTARTS: Metric = Metric::new(
    Kind::Counter,
    "usher.upstream.restarts",
    "{attempt}",
    "Attempts to connect to an upstream after the first.",
);
pub(super) const UPSTREAM_DROPPED_FRAMES: Metric = Metric::new(
    Kind::Counter,
    "usher.upstream.dropped_frames",
    "{frame}",
    "Frames of an upstream that belonged to nothing.",
);
pub(super) const CATALOG_REFRESHES: Metric = Metric::new(
    Kind::Counter,
    "usher.catalog.refreshes",
    "{read}",
    "How often an upstream's lists were read, and whether all of them could be.",
);
pub(super) const AUDIT_LOST: Metric = Metric::new(
    Kind::Counter,
    "usher.audit.lost",
    "{record}",
    "Audit records that are nowhere: more happened than could be written or kept; gap records say how many.",
);
pub(super) const AUDIT_SINK_LOST: Metric = Metric::new(
    Kind::Counter,
    "usher.audit.sink.lost",
    "{record}",
    "Audit records that a sink never got, by why not; the file had them, or has them.",
);
pub(super) const LIMITS_ADMITTED: Metric = Metric::new(
    Kind::Counter,
    "usher.limits.admitted",
    "{call}",
    "Calls that a configured rule let through.",
);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::metrics::{
        InMemoryMetricExporter, SdkMeterProvider,
        data::{AggregatedMetrics, Metric as Sent, MetricData},
    };

    use super::*;
    use crate::metrics::{
        Bound, Instruments, Refusal, RuleLabels, Side, calls,
        state::{
            self, AuditMoment, CertificateMoment, Moment, RuleMoment, SinkMoment, UpstreamMoment,
        },
    };

    /// The metrics that the MCP conventions know: all histograms, in this unit, with these buckets
    /// (open-telemetry/semantic-conventions-genai, `model/mcp/metrics.yaml`; Development).
    const CONVENTIONS: [(&str, &str); 4] = [
        ("mcp.client.operation.duration", "s"),
        ("mcp.server.operation.duration", "s"),
        ("mcp.client.session.duration", "s"),
        ("mcp.server.session.duration", "s"),
    ];
    const BUCKETS: [f64; 14] = [
        0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    ];

    /// Last words of names that say what is measured.
    const TIMES: [&str; 5] = ["duration", "wait", "time", "age", "latency"];
    /// The same of those that say when something is.
    const MOMENTS: [&str; 1] = ["end"];
    const SIZES: [&str; 5] = ["bytes", "size", "length", "held", "budget"];

    fn kind<T>(data: &MetricData<T>) -> Kind {
        match data {
            MetricData::Sum(sum) => {
                assert!(sum.is_monotonic());
                Kind::Counter
            }
            MetricData::Gauge(_) => Kind::Gauge,
            MetricData::Histogram(_) => Kind::Histogram,
            MetricData::ExponentialHistogram(_) => panic!("without the buckets that are asked for"),
        }
    }

    fn kind_of(sent: &Sent) -> Kind {
        match sent.data() {
            AggregatedMetrics::F64(data) => kind(data),
            AggregatedMetrics::U64(data) => kind(data),
            AggregatedMetrics::I64(data) => kind(data),
        }
    }

    fn everything() -> Moment {
        Moment {
            upstreams: vec![UpstreamMoment {
                key: "x".into(),
                state: "ready",
                awaits: false,
                failures: 0,
                restarts: 0,
                dropped_frames: 0,
                calls: [0; 3],
                items: vec![("tools", 1)],
                reports: 0,
                refreshes: [0; 2],
            }],
            certificates: vec![CertificateMoment {
                key: "listen.tls.cert".into(),
                end: 1_795_630_967,
            }],
            rules: vec![RuleMoment {
                name: "a rule".into(),
                admitted: 0,
                keys: 0,
            }],
            audit: Some(AuditMoment {
                sinks: vec![SinkMoment {
                    name: "stdout".into(),
                    lag: 0,
                    failing: false,
                    lost: [0; 2],
                }],
                ..AuditMoment::default()
            }),
            ..Moment::default()
        }
    }

    /// Issue 6, acceptance 4: of every metric that is told, its name, unit and kind.
    #[test]
    fn what_is_told_is_what_stands_in_the_table_and_all_of_it() {
        let exporter = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder()
            .with_periodic_exporter(exporter.clone())
            .build();
        let meter = provider.meter("usher");
        let all = Instruments::new(&meter);
        state::observe(&meter, || Some(everything()));
        let rule = RuleLabels::of("a rule");
        all.calls.note(&calls::Operation {
            method: "tools/call",
            revision: None,
            upstream: None,
            tool: None,
            error: None,
        });
        all.calls.note_sessions();
        all.refused(&rule, Refusal::Rate);
        all.waited(&rule, 0.5);
        all.overflowed(&rule);
        all.reached(Bound::HttpBody);
        all.turned_away("credential_invalid");
        all.panicked();
        all.found("C4", "a rule", "redact", 1);
        all.invalid(Side::Result, "flag");
        all.changed("x", "watch");
        provider.force_flush().unwrap();
        let told = exporter.get_finished_metrics().unwrap();
        let scopes = told.iter().flat_map(|metrics| metrics.scope_metrics());
        let mut found = BTreeSet::new();
        for sent in scopes.flat_map(|scope| scope.metrics()) {
            let (name, unit) = (sent.name().to_owned(), sent.unit().to_owned());
            found.insert((name, kind_of(sent), unit, sent.description().to_owned()));
            if let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = sent.data() {
                for point in histogram.data_points() {
                    assert_eq!(
                        point.bounds().collect::<Vec<_>>(),
                        BUCKETS,
                        "{}",
                        sent.name()
                    );
                }
            }
        }
        let texts = |row: &Metric| {
            let [name, unit, about] = [row.name, row.unit, row.about].map(str::to_owned);
            (name, row.kind, unit, about)
        };
        let table: BTreeSet<_> = ALL.iter().map(texts).collect();
        assert_eq!(table.len(), ALL.len());
        assert_eq!(found, table);
    }

    #[test]
    fn names_and_units_are_as_the_conventions_or_the_rule_of_the_house_say() {
        for metric in ALL {
            let Metric {
                name, kind, unit, ..
            } = metric;
            let word = |part: &str| {
                let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
                !part.is_empty() && part.bytes().all(plain)
            };
            assert!(name.split('.').all(word), "{name}");
            if !name.starts_with("usher.") {
                let known = CONVENTIONS.iter().find(|(known, _)| *known == name);
                assert_eq!(known.map(|(_, unit)| *unit), Some(unit), "{name}");
                assert_eq!(kind, Kind::Histogram, "{name}");
                continue;
            }
            let last = name.rsplit('.').next().unwrap();
            let last = last.rsplit('_').next().unwrap();
            let thing = unit
                .strip_prefix('{')
                .and_then(|unit| unit.strip_suffix('}'));
            let moment = MOMENTS.contains(&last);
            let fits = if moment || TIMES.contains(&last) {
                unit == "s"
            } else if SIZES.contains(&last) {
                unit == "By"
            } else {
                thing.is_some_and(|thing| word(thing) && !thing.ends_with('s'))
            };
            assert!(fits, "{name} in {unit}");
            // The unit and the kind are told beside the name, and what counts is no histogram.
            assert!(
                !name.ends_with("_total") && !name.ends_with(".seconds"),
                "{name}"
            );
            // Of memory there is so much at a moment, as of things; and the time of something stands still.
            let at_once = thing.is_some() || moment || name.starts_with("usher.memory.");
            assert_eq!(kind != Kind::Histogram, at_once, "{name}");
            assert!(metric.about.ends_with('.'), "{name}");
        }
    }
}
