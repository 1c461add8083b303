//! The admin plane of this app: what only the app can do for it, and when it comes and goes.
//!
//! Guarantees: a reload is all or nothing (SECURITY REL-10); every change that an operator makes is logged and, where there is
//! an audit log, recorded. Deliberately absent: what is looked at, which `admin` does by its handles.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use secrecy::SecretString;

use super::{
    App, AppError,
    audit::digest,
    govern::{Governor, to_the_end},
};
use crate::{
    admin::{
        self, Admin, AuditReader, Change, Configured, Gateway, LogDirectory, Metrics, Phase,
        Reloaded,
    },
    audit::{
        Auditor,
        canonical::Object,
        journal::{Journal, Kind, Refused, Sender},
    },
    config::{Loaded, Plan, Rejected},
    feed::Feed,
    limits::LimitRules,
    memory::{Work, process},
    policy::Problem,
    server::descriptors::are_none_left,
    snapshot::World,
};

/// Reads the configuration again, from where it was read first.
pub type Load = Arc<dyn Fn() -> Result<Plan, Rejected> + Send + Sync>;

/// Where operators reach a running gateway.
#[derive(Debug, Clone)]
pub struct AdminAt {
    /// The address: the port is the real one.
    pub address: SocketAddr,
    /// Whether TLS is ended there.
    pub encrypted: bool,
    /// The token that was made for this start, where none is configured.
    pub made: Option<SecretString>,
}

/// What only the app can do.
pub(super) struct Controls {
    governor: Option<Arc<Governor>>,
    /// What is wrong where there are no policies to be kept in force.
    unguided: Vec<Problem>,
    world: Arc<World>,
    journal: Journal,
    auditor: Option<Auditor>,
    // Taken for a look, never across an await.
    standing: Mutex<Standing>,
    /// Held while something is reloaded, so that one reload follows the other.
    reloading: tokio::sync::Mutex<()>,
}

struct Standing {
    loaded: Loaded,
    restart_needed: bool,
    load: Option<Load>,
}

impl Controls {
    pub(super) fn new(
        plan: &Plan,
        world: Arc<World>,
        governor: Option<Arc<Governor>>,
        unguided: Vec<Problem>,
        journal: Journal,
        auditor: Option<Auditor>,
    ) -> Arc<Self> {
        Arc::new(Self {
            governor,
            unguided,
            world,
            journal,
            auditor,
            standing: Mutex::new(Standing {
                loaded: plan.loaded.clone(),
                restart_needed: false,
                load: None,
            }),
            reloading: tokio::sync::Mutex::default(),
        })
    }

    /// What is wrong with the policies that were read last, or that there are none.
    pub(super) fn policy_problems(&self) -> Vec<Problem> {
        match &self.governor {
            Some(governor) => governor.problems(),
            None => self.unguided.clone(),
        }
    }

    /// Reads the policies again, as a change of their directory does by itself; says what of those in force does not fit what is
    /// offered.
    ///
    /// # Errors
    /// Everything that is wrong with them; then those before stay in force.
    pub(super) async fn reload_policies(&self) -> Result<Vec<Problem>, Vec<Problem>> {
        match &self.governor {
            Some(governor) => governor.reloaded(None).await,
            None => Ok(Vec::new()),
        }
    }

    /// Reads again what can be read again, and records that and what came of it.
    async fn reload(&self) -> Result<Reloaded, Vec<Problem>> {
        let reloaded = self.read_again().await;
        let digest = digest(&self.standing().loaded);
        if let Some(auditor) = &self.auditor {
            auditor.configured(digest.clone());
        }
        self.journal.note(Kind::Configuration, |detail| {
            detail.text("digest", &digest);
            match &reloaded {
                Ok(told) => detail
                    .text("outcome", "ok")
                    .texts("reloaded", told.reloaded.iter().copied(), 8)
                    .number("restart_needed", told.restart_needed.into()),
                Err(troubles) => detail
                    .text("outcome", "refused")
                    .number("problems", troubles.len() as u64),
            };
        });
        reloaded
    }

    /// Limits go with the policies, as one: they cannot go wrong any more by then.
    async fn read_again(&self) -> Result<Reloaded, Vec<Problem>> {
        let _one = self.reloading.lock().await;
        let load = self.standing().load.clone();
        let read = match load {
            None => None,
            Some(load) => {
                let read = move || load().map_err(|rejected| of_configuration(&rejected));
                Some(to_the_end("configuration", read).await?)
            }
        };
        // Bounds are taken at the start, as all that `restart_needed` tells of.
        let limits = read.as_ref().map(|plan| LimitRules {
            rules: plan.limits.rules.clone(),
            ..self.world.load().limits().rules().clone()
        });
        let unfit = match &self.governor {
            Some(governor) => governor.reloaded(limits).await?,
            None => {
                if let Some(limits) = limits {
                    self.world.limit(limits);
                }
                Vec::new()
            }
        };
        let (mut reloaded, mut restart_keys) = (Vec::new(), Vec::new());
        if self.governor.is_some() {
            reloaded.push("policies");
        }
        let mut standing = self.standing();
        if let Some(plan) = read {
            reloaded.push("limits");
            restart_keys = standing.loaded.differing(&plan.loaded);
            standing.restart_needed = !standing.loaded.differs_in_limits_alone(&plan.loaded);
            standing.loaded = standing.loaded.with_limits_of(&plan.loaded);
        }
        Ok(Reloaded {
            reloaded,
            restart_needed: standing.restart_needed,
            restart_keys,
            unfit,
        })
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same behind an `Arc`, for what outlives a borrow.
pub(super) struct Shared(pub(super) Arc<Controls>);

impl admin::Controls for Shared {
    fn configuration(&self) -> Configured {
        let standing = self.0.standing();
        Configured {
            loaded: standing.loaded.json().clone(),
            restart_needed: standing.restart_needed,
        }
    }

    fn unready(&self) -> Option<&'static str> {
        let auditor = self.0.auditor.as_ref();
        if auditor.is_some_and(|auditor| auditor.recorder().refuses()) {
            return Some("audit_unavailable");
        }
        // SECURITY AUTHZ-1, and 9 where none is configured although callers are asked who they are. After a reload that is refused
        // the set before is in force, and calls are served.
        if self.0.world.load().policy().policy().denies_everything() {
            return Some("policy_unusable");
        }
        // SECURITY REL-9
        let full = !process().takes(Work::Request) || are_none_left();
        full.then_some("overloaded")
    }

    fn policy_problems(&self) -> Vec<Problem> {
        self.0.policy_problems()
    }

    fn reload(&self) -> BoxFuture<'static, Result<Reloaded, Vec<Problem>>> {
        let own = self.0.clone();
        async move { own.reload().await }.boxed()
    }

    fn changed(&self, change: &Change<'_>) {
        tracing::info!(
            change = change.kind,
            subject = change.subject,
            by = change.by.word(),
            address = %change.address,
            outcome = change.outcome,
            "an operator changes something"
        );
        let done = change.outcome == "ok";
        let fill = |detail: &mut Object<'_>| {
            detail
                .text("address", &change.address.to_string())
                .text("by", change.by.word())
                .text("operation", change.kind)
                .text("outcome", if done { "ok" } else { "refused" });
            if !done {
                detail.text("reason", change.outcome);
            }
            detail.maybe("subject", change.subject);
        };
        let journal = &self.0.journal;
        if done {
            journal.note(Kind::Administration, fill);
        } else {
            journal.note_refusal(Kind::Administration, fill);
        }
    }

    fn refused(&self, address: IpAddr, reason: &'static str) {
        let sender = Sender::at(Some(address));
        (self.0.journal).refused(sender, Refused::of(reason));
    }
}

fn of_configuration(rejected: &Rejected) -> Vec<Problem> {
    let problems = rejected.problems.iter();
    let trouble = |problem: &crate::config::Problem| Problem {
        file: problem.file.clone(),
        line: problem.line,
        column: problem.column,
        message: match problem.path.as_str() {
            "" => problem.message.clone(),
            path => format!("{path}: {}", problem.message),
        },
        hint: problem.hint.clone(),
    };
    problems.map(trouble).collect()
}

impl App {
    /// Says how the configuration is read again, for reloads.
    pub fn reloads_from(&self, load: Load) {
        self.shared.controls.standing().load = Some(load);
    }

    /// Where calls are noted as they end, for whoever looks at them.
    pub fn feed(&self) -> &Feed {
        &self.shared.feed
    }

    /// Reads policies, and the limits of the configuration, again: all or nothing.
    ///
    /// # Errors
    /// Everything that is wrong; then what was in force stays so.
    pub async fn reload(&self) -> Result<Reloaded, Vec<Problem>> {
        self.shared.controls.reload().await
    }

    /// Where operators reach it; `None` where they do not, and before [`App::bind`].
    pub fn admin(&self) -> Option<AdminAt> {
        let admin = self.shared.admin.lock();
        let admin = admin.unwrap_or_else(PoisonError::into_inner);
        let spec = self.shared.plan.admin.as_ref()?;
        admin.as_ref().map(|admin| AdminAt {
            address: admin.address(),
            encrypted: spec.listen.tls.is_some(),
            made: admin.made().cloned(),
        })
    }

    /// Begins to listen for operators, where that is configured.
    pub(super) fn bind_admin(&self) -> Result<(), AppError> {
        let shared = &self.shared;
        let Some(spec) = shared.plan.admin.clone() else {
            return Ok(());
        };
        let address = spec.listen.address;
        let in_order = shared.plan.upstreams.iter();
        let upstreams = in_order.filter_map(|spec| shared.fleet.all.get(&spec.id).cloned());
        let gateway = Gateway {
            upstreams: upstreams.collect(),
            world: shared.world.clone(),
            sessions: shared.door.sessions.clone(),
            findings: shared.findings.clone(),
            ledger: shared.ledger.clone(),
            feed: shared.feed.clone(),
            audit: self.log(),
            metrics: shared.telemetry.clone().map(|telemetry| {
                let metrics: Metrics = Arc::new(move || telemetry.metrics_text());
                metrics
            }),
            readiness: shared.readiness.clone(),
            controls: Arc::new(Shared(shared.controls.clone())),
        };
        let admin = Admin::bind(spec, Arc::new(gateway), &shared.tasks)
            .map_err(|cause| AppError::BindAdmin { address, cause })?;
        *shared.admin.lock().unwrap_or_else(PoisonError::into_inner) = Some(admin);
        Ok(())
    }

    /// Tells operators that no new calls are taken.
    pub(super) fn draining(&self) {
        self.shared.readiness.set(Phase::Draining);
    }

    /// Ends the listener for operators.
    pub(super) async fn end_admin(&self) {
        let admin = self.shared.admin.lock();
        let admin = admin.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(admin) = admin {
            admin.drain().await;
        }
    }

    /// The audit log, where one is written.
    fn log(&self) -> Option<Arc<dyn AuditReader>> {
        let recording = self.shared.recording.lock();
        let recording = recording.unwrap_or_else(PoisonError::into_inner);
        let directory = recording.as_ref()?.directory.clone()?;
        Some(Arc::new(LogDirectory(directory)))
    }
}
