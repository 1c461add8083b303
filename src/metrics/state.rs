//! What the gateway holds right now: gauges, and counts that somebody else keeps, looked at when metrics are read.
//!
//! Guarantees: nothing here costs a call anything; one reading of all metrics takes one look. Labels are configured keys and
//! fixed words: as many sets as there are upstreams and rules, times a few.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{AsyncInstrument, Meter},
};
use tokio::time::Instant;

use super::{
    RULE, names,
    table::{self, Metric},
};

/// The gateway at one moment.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// Legacy sessions of clients.
    pub sessions: u64,
    /// Event streams that were cut off because their clients did not keep up, ever.
    pub slow_consumers: u64,
    /// Streams of principals that listen for changes.
    pub subscriptions: u64,
    /// Connections to the listener.
    pub connections: u64,
    /// Bytes of messages that are held, and how many may be.
    pub memory: [u64; 2],
    /// Requests in flight.
    pub in_flight: u64,
    /// Faults of the policies that were read last, where those before stay in force; and of those in force what does not fit what is
    /// offered, and the enforced cases that they break.
    pub policy_problems: u64,
    /// Certificates that others are shown.
    pub certificates: Vec<CertificateMoment>,
    /// Every upstream.
    pub upstreams: Vec<UpstreamMoment>,
    /// Configured limits.
    pub rules: Vec<RuleMoment>,
    /// The audit log, where there is one.
    pub audit: Option<AuditMoment>,
}

/// An upstream at one moment.
#[derive(Debug, Clone)]
pub struct UpstreamMoment {
    /// Its key.
    pub key: Arc<str>,
    /// One of [`STATES`].
    pub state: &'static str,
    /// Whether it is `away` for no other reason than that nobody has come yet who could ask it anything.
    pub awaits: bool,
    /// Connections in a row that failed under calls; five trip the breaker, and it is away until it was probed.
    pub failures: u64,
    /// Attempts to connect after the first, ever.
    pub restarts: u64,
    /// Frames that belonged to nothing, ever.
    pub dropped_frames: u64,
    /// Calls at once: in flight, waiting for their turn, and how many may be in flight.
    pub calls: [u64; 3],
    /// Entries of the catalog, by the word for their kind.
    pub items: Vec<(&'static str, u64)>,
    /// Entries that were left out of it, or are doubtful.
    pub reports: u64,
    /// How often its lists were read, and how often that failed, ever.
    pub refreshes: [u64; 2],
}

impl UpstreamMoment {
    /// Whether it is a reason to look that calls do not reach it: a server that waits for the first login is well.
    fn is_broken(&self) -> bool {
        self.state == "away" && !self.awaits
    }
}

/// A certificate of our own.
#[derive(Debug, Clone)]
pub struct CertificateMoment {
    /// The key of the configuration that it stands at.
    pub key: Arc<str>,
    /// Unix seconds of its end.
    pub end: u64,
}

/// A limit at one moment.
#[derive(Debug, Clone)]
pub struct RuleMoment {
    /// Its name.
    pub name: Arc<str>,
    /// Calls that it let through, ever.
    pub admitted: u64,
    /// Keys that it keeps meters for.
    pub keys: u64,
}

/// The audit log at one moment.
#[derive(Debug, Clone, Default)]
pub struct AuditMoment {
    /// Records that were put and are not safe yet.
    pub lag: u64,
    /// Whether new operations are refused because they cannot be recorded.
    pub failing: bool,
    /// Records that were left out, since there was no room to keep them until they could be written, ever.
    pub lost: u64,
    /// Where records go to beside the files.
    pub sinks: Vec<SinkMoment>,
}

/// A sink of audit records at one moment.
#[derive(Debug, Clone)]
pub struct SinkMoment {
    /// Its name.
    pub name: Arc<str>,
    /// Records that are written and were not delivered to it yet.
    pub lag: u64,
    /// Whether the last delivery failed, or the records cannot be read.
    pub failing: bool,
    /// Records that it never got: removed first, by retention or by somebody, and refused by it, ever.
    pub lost: [u64; 2],
}

/// The words for the state of an upstream. The breaker is open while it is `away`, unless it waits for somebody to log in; an
/// operator may have `disabled` it.
pub const STATES: [&str; 4] = ["connecting", "ready", "away", "disabled"];

/// The label of a certificate.
const CERTIFICATE: &str = "usher.certificate";
/// The label of a sink of audit records.
const SINK: &str = "usher.sink";

/// For how long one look serves: for all instruments of one reading.
const FRESH: Duration = Duration::from_millis(50);

/// Has `look` asked for the gateway's state whenever metrics are read; `None` when the gateway is gone.
pub fn observe(meter: &Meter, look: impl Fn() -> Option<Moment> + Send + Sync + 'static) {
    let eye = Arc::new(Eye {
        look: Box::new(look),
        last: Mutex::default(),
    });
    for (metric, read) in GAUGES {
        let eye = Arc::clone(&eye);
        let gauge = metric.described(meter.u64_observable_gauge(metric.name));
        // The meter keeps it.
        let _kept = gauge
            .with_callback(move |seen| eye.tell(seen, read))
            .build();
    }
    for (metric, read) in COUNTERS {
        let eye = Arc::clone(&eye);
        let counter = metric.described(meter.u64_observable_counter(metric.name));
        let _kept = counter
            .with_callback(move |seen| eye.tell(seen, read))
            .build();
    }
}

type Seen<'a> = &'a dyn AsyncInstrument<u64>;
type Read = fn(&Moment, Seen<'_>);
type Row = (Metric, Read);

const GAUGES: [Row; 21] = [
    (table::SESSIONS, |at, seen| {
        seen.observe(at.sessions, &[]);
    }),
    (table::SUBSCRIPTIONS, |at, seen| {
        seen.observe(at.subscriptions, &[])
    }),
    (table::CONNECTIONS, |at, seen| {
        seen.observe(at.connections, &[]);
    }),
    (table::MEMORY_HELD, |at, seen| {
        seen.observe(at.memory[0], &[]);
    }),
    (table::MEMORY_BUDGET, |at, seen| {
        seen.observe(at.memory[1], &[]);
    }),
    (table::IN_FLIGHT, |at, seen| {
        seen.observe(at.in_flight, &[]);
    }),
    (table::POLICY_PROBLEMS, |at, seen| {
        seen.observe(at.policy_problems, &[])
    }),
    (table::CERTIFICATE_END, |at, seen| {
        for certificate in &at.certificates {
            let labels = [KeyValue::new(CERTIFICATE, Arc::clone(&certificate.key))];
            seen.observe(certificate.end, &labels);
        }
    }),
    (table::UPSTREAM_STATE, |at, seen| {
        for upstream in &at.upstreams {
            for state in STATES {
                let labels = [of(upstream), KeyValue::new("usher.state", state)];
                seen.observe(u64::from(upstream.state == state), &labels);
            }
        }
    }),
    (table::UPSTREAM_BREAKER, |at, seen| {
        each(at, seen, |upstream| u64::from(upstream.is_broken()))
    }),
    (table::UPSTREAM_FAILURES, |at, seen| {
        each(at, seen, |upstream| upstream.failures)
    }),
    (table::UPSTREAM_IN_FLIGHT, |at, seen| {
        each(at, seen, |upstream| upstream.calls[0]);
    }),
    (table::UPSTREAM_QUEUED, |at, seen| {
        each(at, seen, |upstream| upstream.calls[1])
    }),
    (table::UPSTREAM_CONCURRENCY, |at, seen| {
        each(at, seen, |upstream| upstream.calls[2])
    }),
    (table::CATALOG_ITEMS, |at, seen| {
        for upstream in &at.upstreams {
            for (kind, count) in &upstream.items {
                let labels = [of(upstream), KeyValue::new("usher.kind", *kind)];
                seen.observe(*count, &labels);
            }
        }
    }),
    (table::CATALOG_REPORTS, |at, seen| {
        each(at, seen, |upstream| upstream.reports)
    }),
    (table::LIMITS_KEYS, |at, seen| {
        for rule in &at.rules {
            seen.observe(rule.keys, &[KeyValue::new(RULE, Arc::clone(&rule.name))]);
        }
    }),
    (table::AUDIT_LAG, |at, seen| {
        if let Some(audit) = &at.audit {
            seen.observe(audit.lag, &[]);
        }
    }),
    (table::AUDIT_FAILING, |at, seen| {
        if let Some(audit) = &at.audit {
            seen.observe(u64::from(audit.failing), &[]);
        }
    }),
    (table::AUDIT_SINK_LAG, |at, seen| {
        each_sink(at, seen, |sink| sink.lag)
    }),
    (table::AUDIT_SINK_FAILING, |at, seen| {
        each_sink(at, seen, |sink| u64::from(sink.failing))
    }),
];

const COUNTERS: [Row; 7] = [
    (table::SLOW_CONSUMERS, |at, seen| {
        seen.observe(at.slow_consumers, &[])
    }),
    (table::UPSTREAM_RESTARTS, |at, seen| {
        each(at, seen, |upstream| upstream.restarts)
    }),
    (table::UPSTREAM_DROPPED_FRAMES, |at, seen| {
        each(at, seen, |upstream| upstream.dropped_frames)
    }),
    (table::CATALOG_REFRESHES, |at, seen| {
        for upstream in &at.upstreams {
            for (outcome, count) in ["ok", "failed"].into_iter().zip(upstream.refreshes) {
                let labels = [of(upstream), KeyValue::new("usher.outcome", outcome)];
                seen.observe(count, &labels);
            }
        }
    }),
    (table::AUDIT_LOST, |at, seen| {
        if let Some(audit) = &at.audit {
            seen.observe(audit.lost, &[]);
        }
    }),
    (table::AUDIT_SINK_LOST, |at, seen| {
        for sink in at.audit.iter().flat_map(|audit| &audit.sinks) {
            for (outcome, count) in ["removed", "refused"].into_iter().zip(sink.lost) {
                let labels = [
                    KeyValue::new(SINK, Arc::clone(&sink.name)),
                    KeyValue::new("usher.outcome", outcome),
                ];
                seen.observe(count, &labels);
            }
        }
    }),
    (table::LIMITS_ADMITTED, |at, seen| {
        for rule in &at.rules {
            let name = Arc::clone(&rule.name);
            seen.observe(rule.admitted, &[KeyValue::new(RULE, name)]);
        }
    }),
];

fn of(upstream: &UpstreamMoment) -> KeyValue {
    KeyValue::new(names::UPSTREAM, Arc::clone(&upstream.key))
}

fn each(at: &Moment, seen: Seen<'_>, number: impl Fn(&UpstreamMoment) -> u64) {
    for upstream in &at.upstreams {
        seen.observe(number(upstream), &[of(upstream)]);
    }
}

fn each_sink(at: &Moment, seen: Seen<'_>, number: impl Fn(&SinkMoment) -> u64) {
    for sink in at.audit.iter().flat_map(|audit| &audit.sinks) {
        let labels = [KeyValue::new(SINK, Arc::clone(&sink.name))];
        seen.observe(number(sink), &labels);
    }
}

/// Looks once for all who ask at about the same time.
struct Eye {
    look: Box<dyn Fn() -> Option<Moment> + Send + Sync>,
    // Held while looking, so that those who come meanwhile see the same.
    last: Mutex<Option<(Instant, Arc<Moment>)>>,
}

impl Eye {
    fn open(&self) -> Option<Arc<Moment>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, moment)) = &*last
            && at.elapsed() < FRESH
        {
            return Some(Arc::clone(moment));
        }
        let moment = Arc::new((self.look)()?);
        *last = Some((Instant::now(), Arc::clone(&moment)));
        Some(moment)
    }

    fn tell(&self, seen: Seen<'_>, read: Read) {
        if let Some(moment) = self.open() {
            read(&moment, seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_that_nobody_has_logged_in_to_yet_is_not_told_as_broken() {
        let broken = |state, awaits| {
            let upstream = UpstreamMoment {
                key: "x".into(),
                state,
                awaits,
                failures: 0,
                restarts: 0,
                dropped_frames: 0,
                calls: [0; 3],
                items: Vec::new(),
                reports: 0,
                refreshes: [0; 2],
            };
            upstream.is_broken()
        };
        assert!(broken("away", false) && !broken("away", true));
        assert!(!broken("ready", false) && !broken("disabled", false));
    }
}
