//! What the gateway holds right now, for metrics.

use std::sync::{Arc, PoisonError};

use opentelemetry::metrics::Meter;

use super::Shared;
use crate::{
    audit::{Auditor, sinks::Sinking},
    auth::Outline,
    limits::RuleStatus,
    memory::process,
    metrics::state::{
        self, AuditMoment, CertificateMoment, Moment, RuleMoment, SinkMoment, UpstreamMoment,
    },
    protocol::{methods::ListKind, names::Scope},
    snapshot::Snapshot,
    upstream::{State, spec::UpstreamSpec},
};

/// Has the gateway looked at whenever metrics are read, for as long as it is there.
pub(super) fn observe(shared: &Arc<Shared>, meter: &Meter) {
    let gateway = Arc::downgrade(shared);
    state::observe(meter, move || {
        gateway.upgrade().map(|shared| moment(&shared))
    });
}

fn moment(shared: &Shared) -> Moment {
    let snapshot = shared.world.load();
    let server = shared.server.lock().unwrap_or_else(PoisonError::into_inner);
    let connections = server
        .as_ref()
        .map_or(0, crate::server::Server::connections);
    drop(server);
    let problems = shared.controls.policy_problems().len();
    let upstreams = shared.plan.upstreams.iter();
    Moment {
        sessions: shared.door.sessions.count() as u64,
        slow_consumers: shared.door.sessions.slow_consumers(),
        subscriptions: shared.hub.seated() as u64,
        connections: connections as u64,
        memory: [process().held(), process().budget()],
        in_flight: snapshot.limits().in_flight() as u64,
        policy_problems: problems as u64,
        certificates: shared.certificates.iter().map(certificate).collect(),
        upstreams: upstreams
            .filter_map(|spec| upstream(shared, &snapshot, spec))
            .collect(),
        rules: snapshot.limits().status().into_iter().map(rule).collect(),
        audit: shared
            .auditor
            .as_ref()
            .map(|auditor| audit(shared, auditor)),
    }
}

fn upstream(shared: &Shared, snapshot: &Snapshot, spec: &UpstreamSpec) -> Option<UpstreamMoment> {
    let status = shared.fleet.all.get(&spec.id)?.status();
    let scope = Scope::Upstream(spec.id.clone());
    let reports = snapshot.catalog.reports().iter();
    Some(UpstreamMoment {
        key: spec.id.shared(),
        state: match status.state {
            State::Connecting => "connecting",
            State::Ready => "ready",
            State::Away => "away",
            State::Disabled => "disabled",
        },
        awaits: status.awaits,
        failures: status.failures.into(),
        restarts: status.restarts,
        dropped_frames: status.dropped_frames,
        calls: [status.in_flight, status.queued, status.concurrency].map(|calls| calls as u64),
        items: ListKind::ALL
            .map(|kind| (kind.member(), snapshot.catalog.count(&scope, kind) as u64))
            .to_vec(),
        reports: reports.filter(|report| report.upstream == spec.id).count() as u64,
        refreshes: [status.refreshes, status.failed_refreshes],
    })
}

fn certificate((key, outline): &(String, Outline)) -> CertificateMoment {
    CertificateMoment {
        key: key.as_str().into(),
        end: outline.not_after,
    }
}

fn rule(status: RuleStatus) -> RuleMoment {
    RuleMoment {
        name: status.name,
        admitted: status.admitted,
        keys: status.keys as u64,
    }
}

fn audit(shared: &Shared, auditor: &Auditor) -> AuditMoment {
    let recorder = auditor.recorder();
    let recording = shared.recording.lock();
    let recording = recording.unwrap_or_else(PoisonError::into_inner);
    let sinks = recording.as_ref().map_or(&[][..], |home| &home.sinks);
    // Only where somebody is behind it is asked how far the log is.
    let last = if sinks.is_empty() { 0 } else { recorder.last() };
    let sink = |sinking: &Sinking| {
        let delivery = sinking.delivery();
        SinkMoment {
            name: sinking.name().into(),
            lag: last.saturating_sub(delivery.delivered),
            failing: delivery.failing,
            lost: [delivery.missed, delivery.refused],
        }
    };
    let health = recorder.health();
    AuditMoment {
        lag: health.lag,
        failing: !health.available,
        lost: health.ever_lost,
        sinks: sinks.iter().map(sink).collect(),
    }
}
