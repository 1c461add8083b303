//! Upstreams: how each is, and what operators can do about it.

use std::time::Duration;

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout};

use super::{Answer, Given, aside, kind_word, millis, now, upstream};
use crate::{
    admin::{
        asked::Asked,
        paging::{CURSOR, LIMIT, Page, Parameter, Shape},
        problem::Problem,
        reply,
    },
    catalog::Report,
    json::Json,
    protocol::{methods::ListKind, names::Scope},
    snapshot::Snapshot,
    upstream::{State, Upstream},
};

pub(in crate::admin) const LIST: &[Parameter] = &[
    CURSOR,
    LIMIT,
    Parameter::maybe("state", Shape::Word(STATES), "Only those in this state."),
    Parameter::named("q", "Only those whose name holds this."),
];

/// How long an answer waits for what an operator wishes.
const HEEDED: Duration = Duration::from_secs(5);

const STATES: &[&str] = &["ready", "connecting", "away", "disabled"];

pub(in crate::admin) type List = Page<Brief>;

/// One upstream at a glance.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Upstream")]
pub(in crate::admin) struct Brief {
    /// Its key.
    name: String,
    /// `ready`, `connecting`, `away` or `disabled`.
    state: &'static str,
    /// For how long.
    state_ms: u64,
    /// `legacy` or `modern`, while it is there.
    era: Option<&'static str>,
    /// The revision spoken, while it is there.
    revision: Option<&'static str>,
    breaker: Breaker,
    /// How long until the next attempt to connect, where one is planned.
    retry_in_ms: Option<u64>,
    /// What went wrong last, with it or with a call to it; it may be long over.
    last_error: Option<String>,
    /// How long ago that was.
    last_error_ago_ms: Option<u64>,
    /// Attempts to connect after the first one.
    restarts: u64,
    /// Frames of it that were dropped because they belonged to nothing.
    dropped_frames: u64,
    offers: Offers,
    calls: Calls,
}

/// Whether calls are let through to it.
#[derive(Debug, Serialize, JsonSchema)]
struct Breaker {
    /// `closed`: calls go through. `open`: they fail at once, until it is reached again.
    state: &'static str,
    /// Calls in a row that could not reach it; the fifth opens it.
    failures: u32,
}

/// How many of each it offers.
#[derive(Debug, Serialize, JsonSchema)]
struct Offers {
    tools: usize,
    prompts: usize,
    resources: usize,
    templates: usize,
    skills: usize,
}

/// How calls to it went since the start.
#[derive(Debug, Serialize, JsonSchema)]
struct Calls {
    /// How many there were.
    total: u64,
    /// Those that it did not answer. That a tool failed is an answer.
    failed: u64,
    /// How long half of them took at most, until their answer began; of times that lie within a factor of one and a half
    /// the longest is told.
    median_ms: f64,
    /// How long nine of ten took at most.
    p90_ms: f64,
    /// How long ninety-nine of a hundred took at most.
    p99_ms: f64,
}

/// One upstream, with everything there is to say of it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UpstreamInFull")]
pub(in crate::admin) struct Whole {
    #[serde(flatten)]
    brief: Brief,
    /// What the server says that it is, while it is there.
    server: Option<Given>,
    /// What it says that it can do, while it is there.
    capabilities: Option<Given>,
    /// What it tells models about itself, while it is there.
    instructions: Option<String>,
    /// `watch`, `quarantine` or `off`: what becomes of definitions that change.
    pins: &'static str,
    /// Items that are not offered, or only with a doubt: at most about a hundred a list.
    reports: Vec<Reported>,
}

/// An item that is not offered, or only with a doubt.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Report")]
struct Reported {
    /// What sort of item.
    kind: &'static str,
    /// The name that the upstream has for it; empty where it is about the list.
    name: String,
    /// Why: a word that stays the same.
    reason: &'static str,
    /// Why, in words.
    detail: String,
    /// Whether it is not offered.
    excluded: bool,
}

pub(in crate::admin) fn list(asked: Asked) -> Answer {
    aside(move || {
        let (state, q) = (asked.query.text("state"), asked.query.text("q"));
        let (after, limit) = (asked.query.after()?, asked.query.limit());
        let snapshot = asked.gateway.world.load();
        let mut upstreams: Vec<_> = asked.gateway.upstreams.iter().collect();
        upstreams.sort_by_key(|upstream| upstream.id());
        let later = |upstream: &&std::sync::Arc<Upstream>| {
            let name = upstream.id().as_str();
            after.as_deref().is_none_or(|after| name > after) && q.is_none_or(|q| name.contains(q))
        };
        let upstreams = upstreams.into_iter().filter(later);
        let briefs = upstreams.map(|upstream| Brief::of(upstream, &snapshot));
        let briefs = briefs.filter(|brief| state.is_none_or(|state| brief.state == state));
        let briefs = briefs.take(limit + 1).collect();
        Ok(Page::of(briefs, limit, |brief| brief.name.clone()))
    })
}

pub(in crate::admin) fn show(asked: Asked) -> Answer {
    now(upstream(&asked).map(|upstream| {
        let snapshot = asked.gateway.world.load();
        let card = upstream.card();
        let card = card.as_ref();
        let reports = snapshot.catalog.reports().iter();
        let own = reports.filter(|report| report.upstream == *upstream.id());
        Whole {
            brief: Brief::of(&upstream, &snapshot),
            server: card.and_then(|card| card.server_info.clone()).map(Given),
            capabilities: card.map(|card| Given(card.capabilities.clone())),
            instructions: card.and_then(|card| Some(card.instructions.as_ref()?.to_string())),
            pins: match asked.gateway.ledger.mode(upstream.id()) {
                crate::pins::Mode::Watch => "watch",
                crate::pins::Mode::Quarantine => "quarantine",
                crate::pins::Mode::Off => "off",
            },
            reports: own.map(Reported::of).collect(),
        }
    }))
}

pub(in crate::admin) fn refresh(asked: Asked) -> Answer {
    done(&asked, Upstream::refresh)
}

pub(in crate::admin) fn restart(asked: Asked) -> Answer {
    done(&asked, Upstream::restart)
}

pub(in crate::admin) fn disable(asked: Asked) -> Answer {
    heeded(asked, Upstream::disable)
}

pub(in crate::admin) fn enable(asked: Asked) -> Answer {
    heeded(asked, Upstream::enable)
}

/// Has an upstream used no more, or again, and tells how it is when that has come about; or how it is on the way there, where a
/// server takes long to be left.
fn heeded(asked: Asked, wish: fn(&Upstream) -> bool) -> Answer {
    async move {
        let upstream = upstream(&asked)?;
        wish(&upstream);
        drop(timeout(HEEDED, upstream.heeded()).await);
        let told = Brief::of(&upstream, &asked.gateway.world.load());
        Ok(reply::json(&Json::of(&told)))
    }
    .boxed()
}

/// Has something done, and tells how the upstream is now: what is to come of it may take a while.
fn done(asked: &Asked, what: impl FnOnce(&Upstream)) -> Answer {
    let done: Result<Brief, Problem> = upstream(asked).map(|upstream| {
        what(&upstream);
        Brief::of(&upstream, &asked.gateway.world.load())
    });
    now(done)
}

impl Brief {
    pub(in crate::admin) fn of(upstream: &Upstream, snapshot: &Snapshot) -> Self {
        let status = upstream.status();
        let scope = Scope::Upstream(upstream.id().clone());
        let count = |kind| snapshot.catalog.count(&scope, kind);
        let retry = status.retry_at;
        let retry = retry.map(|at| at.saturating_duration_since(Instant::now()));
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        let last = status.unread.or(status.error);
        Self {
            name: upstream.id().as_str().to_owned(),
            state: word(status.state),
            state_ms: millis(status.since.elapsed()),
            era: status.revision.map(|revision| revision.era().as_str()),
            revision: status.revision.map(crate::protocol::Revision::as_str),
            breaker: Breaker {
                state: match status.state {
                    State::Ready | State::Connecting => "closed",
                    State::Away | State::Disabled => "open",
                },
                failures: status.failures,
            },
            retry_in_ms: retry.map(millis),
            last_error_ago_ms: last.as_ref().map(|last| millis(last.at.elapsed())),
            last_error: last.map(|last| last.words),
            restarts: status.restarts,
            dropped_frames: status.dropped_frames,
            offers: Offers {
                tools: count(ListKind::Tools),
                prompts: count(ListKind::Prompts),
                resources: count(ListKind::Resources),
                templates: count(ListKind::Templates),
                skills: count(ListKind::Skills),
            },
            calls: Calls {
                total: status.counts.calls,
                failed: status.counts.failed,
                median_ms: ms(status.counts.median),
                p90_ms: ms(status.counts.p90),
                p99_ms: ms(status.counts.p99),
            },
        }
    }
}

impl Reported {
    fn of(report: &Report) -> Self {
        Self {
            kind: kind_word(report.kind),
            name: report.name.clone(),
            reason: report.reason.word(),
            detail: report.reason.to_string(),
            excluded: report.reason.excludes(),
        }
    }
}

/// The word for a state.
pub(in crate::admin) const fn word(state: State) -> &'static str {
    match state {
        State::Connecting => "connecting",
        State::Ready => "ready",
        State::Away => "away",
        State::Disabled => "disabled",
    }
}
