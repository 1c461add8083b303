//! Every upstream of a gateway: how calls reach them, and how they are.

use std::{sync::Arc, time::Duration};

use futures_util::{
    FutureExt, TryFutureExt as _,
    future::{BoxFuture, join_all},
};
use hashbrown::HashMap;
use tokio_util::sync::CancellationToken;

use super::App;
use crate::{
    call::{Call, Identity, Reply},
    catalog::Reason,
    connect::Connections,
    downstream::{FIRST_LISTS, Starting},
    protocol::{Revision, UpstreamId, methods::ListKind, names::Scope},
    stack::{self, Upstreams},
    stage::Passage,
    tasks::Tasks,
    upstream::{
        Bearer, Claim, FromUpstream, State, Upstream, UpstreamError,
        spec::{Endpoint, UpstreamSpec},
    },
};

/// What operators see of one upstream.
#[derive(Debug, Clone)]
pub struct UpstreamStatus {
    /// Its key.
    pub id: UpstreamId,
    /// `ready`, `connecting`, `away` or `disabled`.
    pub state: &'static str,
    /// The revision spoken, while it is there.
    pub revision: Option<Revision>,
    /// Tools, prompts, resources, templates offered.
    pub counts: [usize; 4],
    /// What went wrong last, for operators.
    pub error: Option<String>,
    /// Whether one of its lists could not be read when it was asked for last; then that is the error.
    pub unread: bool,
    /// Items left out or doubtful, and why.
    pub reports: Vec<String>,
}

impl UpstreamStatus {
    /// Whether it is there, and what it offers is known.
    pub fn is_well(&self) -> bool {
        self.state == "ready" && !self.unread
    }
}

/// Every upstream, by key.
pub(super) struct Fleet {
    pub(super) all: HashMap<UpstreamId, Arc<Upstream>>,
    /// Those that offer each principal their own.
    pub(super) own: Vec<Arc<Upstream>>,
    /// Whether tokens are got for any.
    pub(super) gets_tokens: bool,
}

impl Fleet {
    /// Waits until these upstreams were reached once or failed once, at most this long.
    pub(super) async fn settled(&self, of: impl Fn(&UpstreamId) -> bool, deadline: Duration) {
        let all = self.all.values().filter(|upstream| of(upstream.id()));
        let all = join_all(all.map(|upstream| upstream.settled()));
        drop(tokio::time::timeout(deadline, all).await);
    }
}

impl App {
    /// The most time that a program behind this gateway may take to start; zero when there is none.
    pub fn slowest_start(&self) -> Duration {
        let start = |spec: &UpstreamSpec| match spec.endpoint {
            Endpoint::Stdio(_) => spec.timeouts.start,
            Endpoint::Http(_) => Duration::ZERO,
        };
        let starts = self.shared.plan.upstreams.iter().map(start);
        starts.max().unwrap_or_default()
    }

    /// How each upstream is now, in configured order.
    pub fn statuses(&self) -> Vec<UpstreamStatus> {
        let snapshot = self.shared.world.load();
        let one = |spec: &UpstreamSpec| {
            let status = self.shared.fleet.all.get(&spec.id)?.status();
            let scope = Scope::Upstream(spec.id.clone());
            let reports = snapshot
                .catalog
                .reports()
                .iter()
                .filter(|report| report.upstream == spec.id);
            Some(UpstreamStatus {
                id: spec.id.clone(),
                state: match status.state {
                    State::Connecting => "connecting",
                    State::Ready => "ready",
                    State::Away => "away",
                    State::Disabled => "disabled",
                },
                revision: status.revision,
                counts: ListKind::ALL.map(|kind| snapshot.catalog.count(&scope, kind)),
                unread: status.unread.is_some(),
                error: status.unread.or(status.error).map(|past| past.words),
                reports: reports
                    .map(|report| {
                        let (kind, reason) = (report.kind.member(), &report.reason);
                        if matches!(reason, Reason::More(_)) {
                            return format!("{kind}: {reason}");
                        }
                        format!("{kind} `{}`: {reason}", report.name)
                    })
                    .collect(),
            })
        };
        self.shared.plan.upstreams.iter().filter_map(one).collect()
    }
}

/// Whether any is in its first start, for clients who wait for that.
pub(super) fn starting(fleet: &Arc<Fleet>, tasks: &Tasks) -> Starting {
    let (fleet, over) = (fleet.clone(), CancellationToken::new());
    let starting = Starting::now(over.clone());
    tasks.spawn(async move {
        fleet.settled(|_| true, FIRST_LISTS).await;
        over.cancel();
    });
    starting
}

/// Has looked at again what was read for those who have logged in, or are no longer connected.
pub(super) async fn follow(connections: Connections, fleet: Arc<Fleet>) {
    let mut changes = connections.watch();
    while changes.changed().await.is_ok() {
        for (id, upstream) in &fleet.all {
            if connections.covers(id) {
                upstream.regranted();
            }
        }
    }
}

impl Upstreams for Fleet {
    fn call(
        &self,
        call: Call,
        passage: Passage,
    ) -> BoxFuture<'static, Result<Reply, stack::Error>> {
        let route = passage.into_route();
        let name = route.upstream.clone();
        let from = |upstream, error| stack::Error::from(FromUpstream { upstream, error });
        match self.all.get(&name) {
            Some(upstream) => upstream
                .call(call, route)
                .map_err(move |error| from(name, error))
                .boxed(),
            None => {
                let gone = UpstreamError::unreached("not configured any more");
                std::future::ready(Err(from(name, gone))).boxed()
            }
        }
    }

    fn call_timeout(&self, upstream: &UpstreamId) -> Option<Duration> {
        self.all
            .get(upstream)
            .map(|upstream| upstream.call_timeout())
    }

    fn absence(&self, upstream: &UpstreamId) -> Option<UpstreamError> {
        self.all.get(upstream)?.absence()
    }

    fn bearer(&self, upstream: &UpstreamId, identity: &Arc<Identity>) -> Option<Bearer> {
        if !self.gets_tokens {
            return None;
        }
        self.all.get(upstream)?.bearer(identity)
    }

    fn claim(
        &self,
        identity: &Arc<Identity>,
        of: &dyn Fn(&UpstreamId) -> bool,
    ) -> Vec<(Claim, Duration)> {
        let own = self.own.iter().filter(|upstream| of(upstream.id()));
        own.filter_map(|upstream| Some((upstream.claim(identity)?, upstream.list_timeout())))
            .collect()
    }
}
