//! Health, readiness, metrics, and the gateway at a glance.
//!
//! Guarantees: health is a word and nothing else (SECURITY OPS-4); readiness is `503` while calls are not served, or are
//! refused for want of records, policies or memory; where others
//! reach the listener, what is told of upstreams and metrics takes a credential.

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Phase, api::upstreams::word, asked::Asked, problem::Problem, reply};
use crate::{json::Json, server::Body, upstream::State};

type Answer = BoxFuture<'static, Result<Response<Body>, Problem>>;

/// Whether calls are served.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Readiness")]
pub(super) struct Ready {
    /// `starting`, `serving` or `draining`.
    status: &'static str,
    /// Why calls are refused although they are served: `audit_unavailable`; `policy_unusable`, where no set of policies could be
    /// read since the start, or none is configured beside `auth`; `overloaded`. Null where they are not.
    reason: Option<&'static str>,
    /// The upstreams, in configured order; null without a credential where others reach this listener.
    upstreams: Option<Vec<UpstreamState>>,
}

/// How an upstream is.
#[derive(Debug, Serialize, JsonSchema)]
struct UpstreamState {
    /// Its key.
    name: String,
    /// `ready`, `connecting`, `away` or `disabled`.
    state: &'static str,
}

/// The gateway at a glance.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Status {
    /// `starting`, `serving` or `draining`.
    status: &'static str,
    /// The version of this program.
    version: &'static str,
    /// Counts up with each change of catalog, policies or limits.
    world: u64,
    /// How many upstreams there are.
    upstreams: usize,
    /// How many of them can be called.
    upstreams_ready: usize,
    /// Tools that the main endpoint lists, whoever may use them.
    tools: usize,
    /// Sessions that are open.
    sessions: usize,
    /// Findings since the start.
    findings: u64,
    /// Whether an audit log is kept that can be searched here.
    audit: bool,
}

pub(super) fn healthz(_: Asked) -> Answer {
    text("text/plain; charset=utf-8", b"ok\n".to_vec())
}

pub(super) fn readyz(asked: Asked) -> Answer {
    let phase = asked.gateway.readiness.phase();
    let states = || {
        let all = asked.gateway.upstreams.iter();
        let state = |upstream: &std::sync::Arc<crate::upstream::Upstream>| UpstreamState {
            name: upstream.id().as_str().to_owned(),
            state: word(upstream.status().state),
        };
        all.map(state).collect()
    };
    let reason = asked.gateway.controls.unready();
    let told = Json::of(&Ready {
        status: phase.word(),
        reason,
        upstreams: (asked.private || asked.role.is_some()).then(states),
    });
    let status = match phase {
        Phase::Serving if reason.is_none() => StatusCode::OK,
        Phase::Starting | Phase::Serving | Phase::Draining => StatusCode::SERVICE_UNAVAILABLE,
    };
    let answer = reply::full(status, "application/json", told.bytes().clone());
    std::future::ready(Ok(answer)).boxed()
}

pub(super) fn metrics(asked: Asked) -> Answer {
    let Some(metrics) = asked.gateway.metrics.clone() else {
        let off = Problem::new(StatusCode::NOT_FOUND, "metrics_off", "no metrics are kept");
        return std::future::ready(Err(off)).boxed();
    };
    let made = tokio::task::spawn_blocking(move || metrics());
    async move {
        // It ends only with the runtime, and everything with it; or it panicked.
        let made = made.await.map_err(|_| Problem::internal())?;
        text("text/plain; version=0.0.4; charset=utf-8", made).await
    }
    .boxed()
}

pub(super) fn status(asked: Asked) -> Answer {
    let gateway = &asked.gateway;
    let snapshot = gateway.world.load();
    let ready = |upstream: &&std::sync::Arc<crate::upstream::Upstream>| {
        upstream.status().state == State::Ready
    };
    let told = Status {
        status: gateway.readiness.phase().word(),
        version: env!("CARGO_PKG_VERSION"),
        world: snapshot.revision,
        upstreams: gateway.upstreams.len(),
        upstreams_ready: gateway.upstreams.iter().filter(ready).count(),
        tools: snapshot.catalog.count(
            &crate::protocol::names::Scope::All,
            crate::protocol::methods::ListKind::Tools,
        ),
        sessions: gateway.sessions.count(),
        findings: gateway.findings.noted(),
        audit: gateway.audit.is_some(),
    };
    std::future::ready(Ok(reply::json(&Json::of(&told)))).boxed()
}

fn text(media: &'static str, text: Vec<u8>) -> Answer {
    let answer = reply::full(StatusCode::OK, media, Bytes::from(text));
    std::future::ready(Ok(answer)).boxed()
}
