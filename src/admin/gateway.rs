//! What the admin plane knows of the gateway: handles to look at, and the few things that only the app can do.

use std::{
    fmt, io,
    net::IpAddr,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;

use super::Role;
use crate::{
    audit::query::{self, Filter, Hit, Reach},
    downstream::Sessions,
    feed::Feed,
    findings::Findings,
    json::Json,
    pins::Ledger,
    policy::Problem,
    snapshot::World,
    upstream::Upstream,
};

/// Makes the text of all metrics as they stand now.
pub type Metrics = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// Everything that the admin plane looks at.
pub struct Gateway {
    /// The upstreams, in configured order.
    pub upstreams: Vec<Arc<Upstream>>,
    /// Catalog, policies, limits.
    pub world: Arc<World>,
    /// Sessions of the handshake era.
    pub sessions: Arc<Sessions>,
    /// What was found in content.
    pub findings: Findings,
    /// What was approved of definitions.
    pub ledger: Arc<Ledger>,
    /// Calls as they end.
    pub feed: Feed,
    /// The audit log; `None` where there is none to read.
    pub audit: Option<Arc<dyn AuditReader>>,
    /// Metrics as text; `None` where nobody keeps any.
    pub metrics: Option<Metrics>,
    /// Whether calls are served.
    pub readiness: Readiness,
    /// What only the app can do.
    pub controls: Arc<dyn Controls>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

/// What only the app can do.
pub trait Controls: Send + Sync + 'static {
    /// The configuration in force.
    fn configuration(&self) -> Configured;

    /// Why calls are refused that would be served otherwise, by its reason word: `audit_unavailable`, `policy_unusable`,
    /// `overloaded`.
    fn unready(&self) -> Option<&'static str>;

    /// What is wrong with the policies that were read last, what of those in force does not fit what is offered, and the enforced
    /// cases that they break.
    fn policy_problems(&self) -> Vec<Problem>;

    /// Reads again what can be read again: policies, and the limits of the configuration.
    ///
    /// # Errors
    /// Everything that is wrong; then what was in force stays so.
    fn reload(&self) -> BoxFuture<'static, Result<Reloaded, Vec<Problem>>>;

    /// Somebody has changed something, or was kept from it: for whoever keeps records. Must not block.
    fn changed(&self, change: &Change<'_>);

    /// Somebody came without a credential that is right, for this reason. Must not block.
    fn refused(&self, address: IpAddr, reason: &'static str);
}

/// The configuration in force.
#[derive(Debug, Clone)]
pub struct Configured {
    /// As it stands in its file, with what was reloaded since.
    pub loaded: Json,
    /// Whether the file, or what it refers to, says something else by now that only a restart puts in force, as far as a reload has
    /// found.
    pub restart_needed: bool,
}

/// What a reload has put in force.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reloaded {
    /// What was read again and is in force.
    pub reloaded: Vec<&'static str>,
    /// Whether the configuration, or what it refers to, says something else beside that, which needs a restart.
    pub restart_needed: bool,
    /// Under which keys it does, such as `upstreams.github`; empty where only their order is another.
    pub restart_keys: Vec<String>,
    /// What of the policies in force does not fit what is offered now, and which enforced cases they break; they stay.
    pub unfit: Vec<Problem>,
}

/// A change that somebody made on the admin plane, or tried to.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    /// What: the identifier of the operation, such as `disable_upstream`.
    pub kind: &'static str,
    /// To what: the name in the path, if there is one.
    pub subject: Option<&'a str>,
    /// As what they came.
    pub by: Role,
    /// From where.
    pub address: IpAddr,
    /// `ok`, or the reason word of the problem that they were told.
    pub outcome: &'static str,
}

/// Whether calls are served. A cheap handle.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<AtomicU8>);

/// How far a gateway has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It serves no calls yet.
    Starting,
    /// It serves calls.
    Serving,
    /// It takes no new calls, and finishes those it has.
    Draining,
}

impl Readiness {
    /// It has come so far.
    pub fn set(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Release);
    }

    /// How far it has come.
    pub fn phase(&self) -> Phase {
        match self.0.load(Ordering::Acquire) {
            0 => Phase::Starting,
            1 => Phase::Serving,
            _ => Phase::Draining,
        }
    }
}

impl Phase {
    /// `starting`, `serving`, `draining`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Draining => "draining",
        }
    }
}

/// Reads an audit log. Blocks: it is called where that may be.
pub trait AuditReader: Send + Sync + 'static {
    /// Gives `found` every record within `reach` that matches, with its number, the newest first, until it breaks off. What
    /// comes back is the number before which nothing was looked at, where that was [enough](Reach::enough).
    ///
    /// # Errors
    /// When the log cannot be read.
    fn query(
        &self,
        filter: &Filter,
        reach: &Reach<'_>,
        found: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> io::Result<Option<u64>>;

    /// The directory of its segments, to follow what is written.
    fn directory(&self) -> &Path;
}

/// The audit log in this directory.
#[derive(Debug, Clone)]
pub struct LogDirectory(pub PathBuf);

impl AuditReader for LogDirectory {
    fn query(
        &self,
        filter: &Filter,
        reach: &Reach<'_>,
        found: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> io::Result<Option<u64>> {
        let each = |hit: Hit<'_>| found(hit.seq, hit.event);
        Ok(query::newest(&self.0, filter, reach, each)?.stopped)
    }

    fn directory(&self) -> &Path {
        &self.0
    }
}
