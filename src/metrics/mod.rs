//! Every instrument of the gateway: the one place that spells metric names and their labels.
//!
//! Guarantees: each instrument is made once, from the global meter as it stands at first use, so whoever exports installs
//! its provider before anything is served; noting something takes no lock of ours and, where the labels are known
//! beforehand, builds none. Labels hold configured names and fixed words only: never a principal, an address, an argument.
//! Deliberately absent: exporters and readers (`telemetry`), and what is measured but not counted here (spans).
//!
//! What there is stands in [`table`]: instruments are made from it.

pub mod calls;
pub mod names;
pub mod state;
pub mod table;

use std::{borrow::Cow, sync::LazyLock};

use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Histogram, Meter},
};

use crate::{json::ScanError, memory::Full};

pub use calls::{Operation, begin};

/// The instruments of this process.
pub fn instruments() -> &'static Instruments {
    static ALL: LazyLock<Instruments> = LazyLock::new(|| Instruments::new(&global::meter("usher")));
    &ALL
}

/// Notes that a fixed bound kept something out.
pub fn reached(bound: Bound) {
    instruments().reached(bound);
    #[cfg(test)]
    seen::note(bound);
}

/// Notes that a key of this rule found no place and is held to it together with others.
pub fn overflowed(rule: &RuleLabels) {
    instruments().overflowed(rule);
    #[cfg(test)]
    seen::note_overflowed();
}

/// Notes that a request was refused before it was a call, for a reason from the published list.
pub fn turned_away(reason: &'static str) {
    instruments().turned_away(reason);
    #[cfg(test)]
    seen::note_turned_away(reason);
}

/// Notes that something panicked in the answer of a request.
pub fn panicked() {
    instruments().panicked();
    #[cfg(test)]
    seen::note_panicked();
}

/// Notes that a text is over a bound, where that is what is wrong with it; `depth` is the bound of its nesting.
pub fn overstepped(error: ScanError, depth: Bound) {
    if let Some(bound) = Bound::of_text(error, depth) {
        reached(bound);
    }
}

/// What the tests of this crate see of bounds: those that were reached on their own thread.
#[cfg(test)]
pub(crate) mod seen {
    use std::cell::{Cell, RefCell};

    use super::Bound;

    thread_local! {
        static REACHED: RefCell<Vec<Bound>> = const { RefCell::new(Vec::new()) };
        static TURNED_AWAY: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
        static PANICKED: Cell<u32> = const { Cell::new(0) };
        static OVERFLOWED: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn note(bound: Bound) {
        REACHED.with_borrow_mut(|all| all.push(bound));
    }

    pub(super) fn note_turned_away(reason: &'static str) {
        TURNED_AWAY.with_borrow_mut(|all| all.push(reason));
    }

    pub(super) fn note_overflowed() {
        OVERFLOWED.set(OVERFLOWED.get() + 1);
    }

    pub(super) fn note_panicked() {
        PANICKED.set(PANICKED.get() + 1);
    }

    /// Why requests were turned away since the last look.
    pub(crate) fn take_turned_away() -> Vec<&'static str> {
        TURNED_AWAY.take()
    }

    /// How often a key found no place since the last look.
    pub(crate) fn take_overflowed() -> usize {
        OVERFLOWED.take()
    }

    /// How often something panicked since the last look.
    pub(crate) fn take_panicked() -> u32 {
        PANICKED.take()
    }

    /// Those since the last look.
    pub(crate) fn take() -> Vec<Bound> {
        REACHED.take()
    }
}

/// All of them.
#[derive(Debug)]
pub struct Instruments {
    calls: calls::Calls,
    refused: Counter<u64>,
    waited: Histogram<f64>,
    overflowed: Counter<u64>,
    reached: Counter<u64>,
    turned_away: Counter<u64>,
    panicked: Counter<u64>,
    findings: Counter<u64>,
    invalid: Counter<u64>,
    changed: Counter<u64>,
    /// The labels of each bound, by its number.
    bounds: Vec<[KeyValue; 1]>,
}

/// What labels of one rule are made of, built once for each: cloning an `Arc` of the name is all that a note costs.
#[derive(Debug, Clone)]
pub struct RuleLabels {
    rule: KeyValue,
}

impl RuleLabels {
    /// Of the rule with this name.
    pub fn of(rule: &str) -> Self {
        let name: std::sync::Arc<str> = rule.into();
        Self {
            rule: KeyValue::new(RULE, name),
        }
    }
}

/// What a rule has refused for; the published reason words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// `rate_limited`
    Rate,
    /// `overloaded`
    Overload,
    /// `quota_exceeded`
    Quota,
}

impl Refusal {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rate => "rate_limited",
            Self::Overload => "overloaded",
            Self::Quota => "quota_exceeded",
        }
    }
}

/// Which side of a call did not fit its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What the client sent.
    Arguments,
    /// What the upstream sent.
    Result,
}

const RULE: &str = "usher.rule";
const REASON: &str = "usher.reason";

impl Instruments {
    /// Made from this meter; [`instruments`] has those of the process.
    pub fn new(meter: &Meter) -> Self {
        Self {
            calls: calls::Calls::new(meter),
            refused: table::LIMITS_REFUSED.counter(meter),
            waited: table::LIMITS_WAIT.histogram(meter),
            overflowed: table::LIMITS_OVERFLOWED.counter(meter),
            reached: table::BOUNDS_REACHED.counter(meter),
            turned_away: table::REFUSED.counter(meter),
            panicked: table::REQUESTS_PANICKED.counter(meter),
            findings: table::FINDINGS.counter(meter),
            invalid: table::VALIDATION_FAILED.counter(meter),
            changed: table::DEFINITIONS_CHANGED.counter(meter),
            bounds: Bound::ALL
                .iter()
                .map(|(_, word)| [KeyValue::new("usher.bound", *word)])
                .collect(),
        }
    }

    /// A rule refused a call.
    pub fn refused(&self, rule: &RuleLabels, why: Refusal) {
        let labels = [rule.rule.clone(), KeyValue::new(REASON, why.as_str())];
        self.refused.add(1, &labels);
    }

    /// An admitted call stood in a rule's queue for so many seconds.
    pub fn waited(&self, rule: &RuleLabels, seconds: f64) {
        self.waited
            .record(seconds, std::slice::from_ref(&rule.rule));
    }

    /// A call was met by a rule's shared meter.
    pub fn overflowed(&self, rule: &RuleLabels) {
        self.overflowed.add(1, std::slice::from_ref(&rule.rule));
    }

    /// A fixed bound kept something out.
    pub fn reached(&self, bound: Bound) {
        // INVARIANT: there are labels for each of `Bound::ALL`, which holds each bound at its number.
        if let Some(labels) = self.bounds.get(bound as usize) {
            self.reached.add(1, labels);
        }
    }

    /// A request was refused before it was a call, for a reason from the published list.
    pub fn turned_away(&self, reason: &'static str) {
        self.turned_away.add(1, &[KeyValue::new(REASON, reason)]);
    }

    /// Something panicked in the answer of a request.
    pub fn panicked(&self) {
        self.panicked.add(1, &[]);
    }

    /// So many findings of a class, by one detector rule, dealt with in one way; words of SECURITY 7, such as `C4`, `redact`.
    pub fn found(
        &self,
        class: &'static str,
        rule: impl Into<Cow<'static, str>>,
        action: &'static str,
        count: u64,
    ) {
        let labels = [
            KeyValue::new("usher.class", class),
            KeyValue::new(RULE, rule.into()),
            KeyValue::new("usher.action", action),
        ];
        self.findings.add(count, &labels);
    }

    /// Arguments or a result did not fit their schema; the action is `refuse` or `flag`.
    pub fn invalid(&self, side: Side, action: &'static str) {
        let side = match side {
            Side::Arguments => "arguments",
            Side::Result => "result",
        };
        let labels = [
            KeyValue::new("usher.side", side),
            KeyValue::new("usher.action", action),
        ];
        self.invalid.add(1, &labels);
    }

    /// A definition of an upstream (its configured key) is not what was pinned; the action is `watch` or `quarantine`.
    pub fn changed(&self, upstream: &str, action: &'static str) {
        let labels = [
            KeyValue::new("gateway.upstream", upstream.to_owned()),
            KeyValue::new("usher.action", action),
        ];
        self.changed.add(1, &labels);
    }
}

/// A fixed bound of SECURITY 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// A request body.
    HttpBody,
    /// A request target.
    HttpTarget,
    /// One header field.
    HttpField,
    /// All header fields.
    HttpHead,
    /// Number of header fields.
    HttpFields,
    /// Connections at once: accepting paused.
    Connections,
    /// Connections of one peer address.
    ConnectionsPerPeer,
    /// Files that the system lets the process open: no connection is accepted.
    Descriptors,
    /// Bytes of messages that are held: streams, requests and connections are refused.
    Memory,
    /// Those that are held for one principal, once half of the budget is held.
    MemoryPrincipal,
    /// A TLS handshake.
    HandshakeTime,
    /// Until headers are complete.
    HeadersTime,
    /// Until a body is complete.
    BodyTime,
    /// A connection without a request.
    IdleTime,
    /// A client that does not read.
    WriteStall,
    /// Requests in flight after the stop signal.
    Drain,
    /// Frames of HTTP/2 that keep a server busy: resets, headers without end, pings. The connection ends.
    Http2,
    /// Nesting of a client's message.
    JsonDepth,
    /// Values in a message.
    JsonValues,
    /// Members of one object.
    JsonMembers,
    /// Bytes of one key.
    JsonKey,
    /// Digits of one number.
    JsonNumber,
    /// Requests in flight of one principal.
    InFlightPrincipal,
    /// Requests in flight of one principal to one upstream.
    InFlightPrincipalUpstream,
    /// Requests in flight to one upstream.
    InFlightUpstream,
    /// Requests in flight in the process.
    InFlightProcess,
    /// Calls that wait for one upstream.
    QueueLength,
    /// How long a call waits for its upstream.
    QueueTime,
    /// Failed authentications of one address in a minute.
    FailedAuthentications,
    /// A connection to an upstream.
    DeadlineConnect,
    /// A list of an upstream.
    DeadlineList,
    /// A call to an upstream.
    DeadlineCall,
    /// An upstream that owes an outcome and is silent.
    DeadlineSilence,
    /// Nesting of an upstream's message.
    UpstreamDepth,
    /// One message of an upstream.
    UpstreamMessage,
    /// One response stream of an upstream.
    UpstreamAnswer,
    /// Messages of an upstream that are not read as fast as they come.
    UpstreamUnread,
    /// Subscription streams of one principal.
    StreamsPrincipal,
    /// Subscription streams of the process.
    StreamsProcess,
    /// Addresses of one subscription stream.
    StreamAddresses,
    /// What waits for a subscriber that does not keep up.
    StreamBuffer,
    /// Legacy sessions of one principal.
    SessionsPrincipal,
    /// Legacy sessions of the process.
    SessionsProcess,
    /// A legacy session that nobody uses.
    SessionIdle,
    /// A legacy session in any case.
    SessionAbsolute,
    /// Items of one list of an upstream.
    CatalogItems,
    /// One definition.
    CatalogDefinition,
    /// One description.
    CatalogDescription,
    /// All definitions of an upstream.
    CatalogTotal,
    /// Pages of one list.
    CatalogPages,
    /// Nesting of a schema.
    SchemaDepth,
    /// Subschemas of a schema.
    Subschemas,
    /// Characters of a pattern in a schema.
    SchemaPattern,
    /// Time for one check against a schema.
    SchemaTime,
    /// A cursor of an upstream.
    UpstreamCursor,
    /// An upstream's `requestState`.
    RequestState,
    /// How long a call may wait for its answers.
    ResumeLife,
    /// How often one call may ask.
    Rounds,
    /// How much one round may ask for.
    Inputs,
    /// A token that a client presents.
    Token,
    /// A metadata document of an authorization server.
    AuthMetadata,
    /// A key set of an authorization server.
    AuthKeySet,
    /// The keys in one.
    AuthKeys,
    /// A line of a process.
    StdioLine,
    /// What is kept of the last words of a process.
    StdioStderr,
    /// Quick restarts of a process.
    StdioRestarts,
    /// Time for one scan of content.
    ScanTime,
    /// The bytes that it looks at, over and over.
    ScanWork,
    /// What it finds.
    ScanHits,
    /// How often it changes the content.
    ScanPasses,
}

impl From<Full> for Bound {
    fn from(full: Full) -> Self {
        match full {
            Full::Budget => Self::Memory,
            Full::Share => Self::MemoryPrincipal,
        }
    }
}

impl Bound {
    /// Each bound at its number, with its word: as a rule the key under `bounds:` that sets it.
    const ALL: [(Self, &'static str); 70] = [
        (Self::HttpBody, "http.body"),
        (Self::HttpTarget, "http.target"),
        (Self::HttpField, "http.field"),
        (Self::HttpHead, "http.head"),
        (Self::HttpFields, "http.fields"),
        (Self::Connections, "http.connections"),
        (Self::ConnectionsPerPeer, "http.connections_per_peer"),
        (Self::Descriptors, "descriptors"),
        (Self::Memory, "memory"),
        (Self::MemoryPrincipal, "memory.principal"),
        (Self::HandshakeTime, "http.handshake_time"),
        (Self::HeadersTime, "http.headers_time"),
        (Self::BodyTime, "http.body_time"),
        (Self::IdleTime, "http.idle_time"),
        (Self::WriteStall, "http.write_stall"),
        (Self::Drain, "http.drain"),
        (Self::Http2, "http.h2"),
        (Self::JsonDepth, "json.depth"),
        (Self::JsonValues, "json.values"),
        (Self::JsonMembers, "json.members"),
        (Self::JsonKey, "json.key"),
        (Self::JsonNumber, "json.number"),
        (Self::InFlightPrincipal, "in_flight.principal"),
        (
            Self::InFlightPrincipalUpstream,
            "in_flight.principal_upstream",
        ),
        (Self::InFlightUpstream, "in_flight.upstream"),
        (Self::InFlightProcess, "in_flight.process"),
        (Self::QueueLength, "queue.length"),
        (Self::QueueTime, "queue.time"),
        (Self::FailedAuthentications, "auth.failed_per_minute"),
        (Self::DeadlineConnect, "timeout.connect"),
        (Self::DeadlineList, "timeout.list"),
        (Self::DeadlineCall, "timeout.call"),
        (Self::DeadlineSilence, "timeout.silence"),
        (Self::UpstreamDepth, "upstream.depth"),
        (Self::UpstreamMessage, "upstream.message"),
        (Self::UpstreamAnswer, "upstream.answer"),
        (Self::UpstreamUnread, "upstream.unread"),
        (Self::StreamsPrincipal, "subscriptions.per_principal"),
        (Self::StreamsProcess, "subscriptions.total"),
        (Self::StreamAddresses, "subscriptions.addresses"),
        (Self::StreamBuffer, "subscriptions.buffer"),
        (Self::SessionsPrincipal, "sessions.per_principal"),
        (Self::SessionsProcess, "sessions.total"),
        (Self::SessionIdle, "sessions.idle"),
        (Self::SessionAbsolute, "sessions.absolute"),
        (Self::CatalogItems, "catalog.items"),
        (Self::CatalogDefinition, "catalog.definition"),
        (Self::CatalogDescription, "catalog.description"),
        (Self::CatalogTotal, "catalog.total"),
        (Self::CatalogPages, "catalog.pages"),
        (Self::SchemaDepth, "catalog.schema_depth"),
        (Self::Subschemas, "catalog.subschemas"),
        (Self::SchemaPattern, "catalog.pattern"),
        (Self::SchemaTime, "catalog.schema_time"),
        (Self::UpstreamCursor, "upstream.cursor"),
        (Self::RequestState, "resume.state"),
        (Self::ResumeLife, "resume.life"),
        (Self::Rounds, "resume.rounds"),
        (Self::Inputs, "resume.inputs"),
        (Self::Token, "auth.token"),
        (Self::AuthMetadata, "auth.metadata"),
        (Self::AuthKeySet, "auth.key_set"),
        (Self::AuthKeys, "auth.keys"),
        (Self::StdioLine, "stdio.line"),
        (Self::StdioStderr, "stdio.stderr"),
        (Self::StdioRestarts, "stdio.restarts"),
        (Self::ScanTime, "sanitize.time"),
        (Self::ScanWork, "sanitize.work"),
        (Self::ScanHits, "sanitize.hits"),
        (Self::ScanPasses, "sanitize.passes"),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(bound, _)| *bound == self)
            .map_or("", |(_, word)| word)
    }

    /// The bound that a text is over, if that is what is wrong with it (SECURITY MSG-5); `depth` is that of its nesting.
    pub const fn of_text(error: ScanError, depth: Self) -> Option<Self> {
        match error {
            ScanError::TooDeep(_) => Some(depth),
            ScanError::TooManyValues(_) => Some(Self::JsonValues),
            ScanError::TooManyMembers(_) => Some(Self::JsonMembers),
            ScanError::KeyTooLong(_) => Some(Self::JsonKey),
            ScanError::NumberTooLong(_) => Some(Self::JsonNumber),
            ScanError::Syntax(_) | ScanError::Encoding(_) | ScanError::DuplicateMember(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::metrics::{
        InMemoryMetricExporter, SdkMeterProvider,
        data::{AggregatedMetrics, MetricData},
    };

    use super::*;

    /// What was noted: `name{label=value,…}` and the sum.
    fn noted(note: impl FnOnce(&Instruments)) -> Vec<(String, u64)> {
        let exporter = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder()
            .with_periodic_exporter(exporter.clone())
            .build();
        note(&Instruments::new(&provider.meter("usher")));
        provider.force_flush().unwrap();
        let mut sums = Vec::new();
        for metrics in exporter.get_finished_metrics().unwrap() {
            for metric in metrics.scope_metrics().flat_map(|scope| scope.metrics()) {
                match metric.data() {
                    AggregatedMetrics::U64(MetricData::Sum(sum)) => {
                        for point in sum.data_points() {
                            sums.push((written(metric.name(), point.attributes()), point.value()));
                        }
                    }
                    AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                        for point in histogram.data_points() {
                            sums.push((written(metric.name(), point.attributes()), point.count()));
                        }
                    }
                    other @ (AggregatedMetrics::U64(_)
                    | AggregatedMetrics::F64(_)
                    | AggregatedMetrics::I64(_)) => panic!("{other:?}"),
                }
            }
        }
        sums.sort();
        sums
    }

    fn written<'a>(name: &str, labels: impl Iterator<Item = &'a KeyValue>) -> String {
        let mut labels: Vec<String> = labels
            .map(|label| format!("{}={}", label.key, label.value))
            .collect();
        labels.sort();
        format!("{name}{{{}}}", labels.join(","))
    }

    #[test]
    fn what_is_noted_is_counted_under_its_labels() {
        let sums = noted(|all| {
            let rule = RuleLabels::of("per tenant");
            all.refused(&rule, Refusal::Quota);
            all.refused(&rule, Refusal::Quota);
            all.refused(&rule, Refusal::Rate);
            all.waited(&rule, 0.5);
            all.overflowed(&rule);
            all.reached(Bound::HttpBody);
            all.reached(Bound::ScanTime);
            all.turned_away("unknown_session");
            all.turned_away("unknown_session");
            all.found("C4", "aws_key", "redact", 3);
            all.invalid(Side::Result, "flag");
            all.changed("github", "quarantine");
        });
        let sums: Vec<(&str, u64)> = sums.iter().map(|(name, sum)| (&**name, *sum)).collect();
        assert_eq!(
            sums,
            [
                ("usher.bounds.reached{usher.bound=http.body}", 1),
                ("usher.bounds.reached{usher.bound=sanitize.time}", 1),
                (
                    "usher.definitions.changed{gateway.upstream=github,usher.action=quarantine}",
                    1
                ),
                (
                    "usher.findings{usher.action=redact,usher.class=C4,usher.rule=aws_key}",
                    3
                ),
                ("usher.limits.overflowed{usher.rule=per tenant}", 1),
                (
                    "usher.limits.refused{usher.reason=quota_exceeded,usher.rule=per tenant}",
                    2
                ),
                (
                    "usher.limits.refused{usher.reason=rate_limited,usher.rule=per tenant}",
                    1
                ),
                ("usher.limits.wait{usher.rule=per tenant}", 1),
                ("usher.refused{usher.reason=unknown_session}", 2),
                (
                    "usher.validation.failed{usher.action=flag,usher.side=result}",
                    1
                ),
            ]
        );
    }

    #[test]
    fn each_bound_stands_at_its_number_under_a_word_of_its_own() {
        let mut words: Vec<&str> = Bound::ALL.iter().map(|(_, word)| *word).collect();
        for (number, (bound, _)) in Bound::ALL.iter().enumerate() {
            assert_eq!(*bound as usize, number);
        }
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Bound::ALL.len());
    }
}
