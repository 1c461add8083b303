//! The gateway that a one-off command talks to: a running one by its address, or one made for the occasion.

use std::{path::PathBuf, pin::pin, sync::Arc, time::Duration};

use clap::Args;

use super::{
    Ended,
    client::{Client, TOKEN},
    out,
    refused::Refused,
    shown,
    signals::Halt,
    source::Source,
};
use crate::{
    app::{App, UpstreamStatus},
    audit::{log::Streamed, sinks::Stream},
    call::Identity,
    config::Plan,
    json::{Json, Node},
    jsonrpc::RpcError,
    protocol::{meta, methods::ListKind},
    tasks::Tasks,
    telemetry::Telemetry,
};

/// How long upstreams may take, beside the start of their programs, until a one-off command goes on without them.
const SETTLE: Duration = Duration::from_secs(30);
/// How much longer than its starts may take a program is waited for: then it is known why it did not come.
const TOLD: Duration = Duration::from_secs(5);
/// How long upstreams are waited for that cannot have what is asked for, once those that can have are known: what they offer may
/// be what was meant.
const MEANT: Duration = Duration::from_secs(3);
/// How often it is looked for what is asked for, while upstreams are away.
const LOOK: Duration = Duration::from_millis(50);
/// Pages of one list.
const MAX_PAGES: usize = 10_000;

/// Which gateway.
#[derive(Debug, Clone, Args)]
pub(super) struct Where {
    /// The endpoint of a running gateway, such as http://127.0.0.1:8808/mcp; USHER_TOKEN is sent as the bearer token
    #[arg(long, conflicts_with_all = ["config", "mcp_json"])]
    url: Option<String>,
    #[command(flatten)]
    source: Source,
}

/// What a gateway is wanted for.
#[derive(Debug, Clone, Copy)]
pub(super) enum To<'a> {
    /// To look at what is offered: nothing is called, so nothing is recorded.
    Look,
    /// To ask one of this kind for something, by its name.
    Ask(ListKind, &'a str),
}

/// A gateway to ask.
pub(super) enum Gateway {
    /// One that runs elsewhere.
    Running(Box<Client>),
    /// One of our own, for this command; where somebody is named, it is asked as by them.
    AdHoc(Own, Option<Arc<Identity>>),
}

/// A gateway of our own, with the servers that it has started. A signal ends it before its time, and them with it.
pub(super) struct Own {
    app: App,
    tasks: Tasks,
    halt: Halt,
}

impl Where {
    /// The file of the configuration, whether it is there or not.
    pub(super) fn config(&self) -> PathBuf {
        self.source.path()
    }

    /// The arguments that name it, with a space before them; nothing where none were given.
    pub(super) fn spelled(&self) -> String {
        match &self.url {
            Some(url) => format!(" --url {url}"),
            None => self.source.spelled(),
        }
    }

    /// Whether it is one that runs elsewhere.
    pub(super) const fn is_running(&self) -> bool {
        self.url.is_some()
    }

    /// The gateway, ready for this; if there is none, the reason has been told.
    pub(super) async fn gateway(&self, to: To<'_>) -> Result<Gateway, Ended> {
        if let Some(url) = &self.url {
            let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
            return Client::new(url, token.as_deref())
                .map(|client| Gateway::Running(Box::new(client)))
                .map_err(|error| {
                    out::problem(&format!("--url: {error}"));
                    Ended::Misused
                });
        }
        let mut plan = self.source.plan().ok_or(Ended::Misused)?;
        if matches!(to, To::Look) {
            plan = looking(plan);
        }
        Ok(Gateway::AdHoc(start(plan, to).await?, None))
    }

    /// The same, asked as by somebody, where somebody is named: a gateway of our own takes the word of whoever runs it.
    pub(super) async fn asked_by(
        &self,
        who: Option<Arc<Identity>>,
        to: To<'_>,
    ) -> Result<Gateway, Ended> {
        Ok(match self.gateway(to).await? {
            Gateway::AdHoc(own, _) => Gateway::AdHoc(own, who),
            running @ Gateway::Running(_) => running,
        })
    }

    /// One of our own to look at what somebody sees: by its policies, and nothing is recorded. If there is none, the reason has been
    /// told.
    pub(super) async fn seen_by(&self, who: Arc<Identity>) -> Result<Gateway, Ended> {
        let mut plan = self.source.plan().ok_or(Ended::Misused)?;
        plan.audit = None;
        Ok(Gateway::AdHoc(start(plan, To::Look).await?, Some(who)))
    }
}

/// What is wrong with upstreams.
fn tell(statuses: &[UpstreamStatus]) {
    for status in statuses {
        if let Some(error) = &status.error {
            out::note(&format!("{}: {}", status.id, out::tame(error)));
        }
    }
}

/// One of our own of this plan, ready for this, and what is wrong is told; if there is none, so is the reason.
async fn start(plan: Plan, to: To<'_>) -> Result<Own, Ended> {
    let halt = halt()?;
    let (app, tasks) = build_and_tell(plan, None).await?;
    let own = Own { app, tasks, halt };
    let (own, statuses) = own.ready(to).await?;
    tell(&statuses);
    Ok(own)
}

/// What a signal tells to end; if none can be heard, the reason has been told.
fn halt() -> Result<Halt, Ended> {
    Halt::listen().map_err(|error| {
        out::problem(&format!("signals: {error}"));
        Ended::Failed
    })
}

/// The same plan for a look at what is offered: nothing is called, so nothing is recorded, and nobody is asked who they are and what
/// they may do.
pub(super) fn looking(mut plan: Plan) -> Plan {
    plan.audit = None;
    // Without policies nobody may do anything where there is `auth`, which is told.
    if plan.policy.take().is_some() {
        plan.auth = None;
    }
    plan
}

/// The same, watched as the configuration says: for what goes on for long.
pub(super) async fn build_observed(source: &Source) -> Result<(App, Tasks), Ended> {
    let plan = source.plan_to_serve().ok_or(Ended::Misused)?;
    let telemetry = observed(&plan)?;
    build_and_tell(plan, Some(telemetry)).await
}

/// What watches a gateway of this plan; if nothing can, the reason has been told.
pub(super) fn observed(plan: &Plan) -> Result<Telemetry, Ended> {
    Telemetry::start(&plan.telemetry).map_err(|error| {
        out::problem(&error.to_string());
        Ended::Failed
    })
}

/// Builds the gateway of a plan, and tells what is wrong with it although it was built.
async fn build_and_tell(plan: Plan, telemetry: Option<Telemetry>) -> Result<(App, Tasks), Ended> {
    // What is wrong with those of a directory is in the log.
    let unguided = plan.policy.is_none();
    let (app, tasks) = Box::pin(build(plan, telemetry)).await?;
    for problem in app.policy_problems().iter().filter(|_| unguided) {
        out::note(&problem.to_string());
    }
    Ok((app, tasks))
}

/// Builds the gateway of a plan; if that fails, the reason has been told.
async fn build(mut plan: Plan, telemetry: Option<Telemetry>) -> Result<(App, Tasks), Ended> {
    if let Some(audit) = &mut plan.audit {
        // On stdout is the answer.
        audit.sinks.lines = audit.sinks.lines.map(|_| Stream::Stderr);
        if !audit.storage.keeps_files() {
            audit.storage = Arc::new(Streamed::Stderr);
        }
    }
    let tasks = Tasks::new();
    match App::observed(plan, telemetry, tasks.child()).await {
        Ok(app) => Ok((app, tasks)),
        Err(error) => {
            out::problem(&error.to_string());
            Err(Ended::Failed)
        }
    }
}

impl Own {
    /// One that looks at what the servers of this plan offer, once each was reached or failed, and how they are; if there is
    /// none, the reason has been told.
    pub(super) async fn settled(plan: Plan) -> Result<(Self, Vec<UpstreamStatus>), Ended> {
        let halt = halt()?;
        let (app, tasks) = Box::pin(build(looking(plan), None)).await?;
        Self { app, tasks, halt }.ready(To::Look).await
    }

    /// What runs.
    pub(super) const fn app(&self) -> &App {
        &self.app
    }

    /// Waits until every upstream was reached once or failed once, or until what is asked for is there, with something to look
    /// at on a terminal. Where a signal is first, it is closed.
    async fn ready(self, to: To<'_>) -> Result<(Self, Vec<UpstreamStatus>), Ended> {
        let app = &self.app;
        let waiting = shown::waiting(&format!("connecting to {} upstreams", app.statuses().len()));
        let statuses = tokio::select! {
            statuses = settled(app, to) => Ok(statuses),
            () = offered(app, to) => Ok(app.statuses()),
            ended = self.halt.asked() => Err(ended),
        };
        waiting.finish_and_clear();
        match statuses {
            Ok(statuses) => Ok((self, statuses)),
            Err(ended) => {
                self.close().await?;
                Err(ended)
            }
        }
    }

    /// One request. Where a signal comes before its answer it is given up, and answered and recorded as what a gateway cuts off
    /// that stops.
    async fn request(
        &self,
        who: Arc<Identity>,
        method: &str,
        params: Json,
    ) -> Result<Json, RpcError> {
        let mut asking = pin!(self.app.request_as(who, method, params));
        tokio::select! {
            answer = asking.as_mut() => return answer,
            _ = self.halt.asked() => self.app.conclude(),
        }
        asking.await
    }

    /// Ends it, with the servers that it has started.
    ///
    /// # Errors
    /// How the command ends, where a signal asked for that.
    pub(super) async fn close(self) -> Result<(), Ended> {
        let Self { app, tasks, halt } = self;
        tokio::select! {
            () = async {
                app.shutdown().await;
                tasks.finish().await;
            } => {}
            // What runs is dropped with the runtime, which kills the servers.
            () = halt.urged() => {}
        }
        halt.closed()
    }
}

/// Waits until every upstream was reached once or failed once, and says so of those that are still on their way. Where something is
/// asked for, those alone are waited for that could have it.
async fn settled(app: &App, to: To<'_>) -> Vec<UpstreamStatus> {
    let patience = patience(app.slowest_start());
    let mut statuses = match to {
        To::Look => app.settled(patience).await,
        To::Ask(kind, asked) => {
            app.settled_for(kind, asked, patience).await;
            app.settled(MEANT).await
        }
    };
    statuses.iter_mut().for_each(under_way);
    statuses
}

/// How long upstreams are waited for, where the slowest program may take so long to start. One that ends when it is asked is
/// started once more, and has that time again.
fn patience(start: Duration) -> Duration {
    start.saturating_mul(2).saturating_add(TOLD).max(SETTLE)
}

/// An upstream of which nothing is known yet has not gone wrong, and is not there.
fn under_way(status: &mut UpstreamStatus) {
    if status.state == "connecting" && status.error.is_none() {
        status.error = Some("still connecting".to_owned());
    }
}

/// Waits until what is asked for is in the catalog.
async fn offered(app: &App, to: To<'_>) {
    let To::Ask(kind, asked) = to else {
        return std::future::pending().await;
    };
    let mut looks = tokio::time::interval(LOOK);
    let is_asked = |item: &Json| {
        let name = item.root().member(kind.key()).and_then(Node::as_str);
        name.as_deref() == Some(asked)
    };
    loop {
        looks.tick().await;
        if app.catalog(kind).iter().any(is_asked) {
            return;
        }
    }
}

impl Gateway {
    /// One request of the newest revision.
    pub(super) async fn request(&self, method: &str, params: Json) -> Result<Json, Refused> {
        match self {
            Self::Running(client) => client.request(method, params).await,
            Self::AdHoc(own, who) => {
                let who = who.clone().unwrap_or_else(Identity::anonymous);
                let answer = own.request(who, method, params).await;
                answer.map_err(Refused::Answer)
            }
        }
    }

    /// Every item of a list.
    pub(super) async fn list(&self, kind: ListKind) -> Result<Vec<Json>, Refused> {
        if let Self::AdHoc(own, None) = self {
            return Ok(own.app.catalog(kind));
        }
        let mut items = Vec::new();
        let mut params = Json::empty_object();
        for _ in 0..MAX_PAGES {
            let page = self.request(kind.method(), params).await?;
            if let Some(list) = page.root().member(kind.member()) {
                items.extend(list.elements().map(|item| page.slice(item)));
            }
            match page.root().member("nextCursor") {
                Some(cursor) => params = meta::object_of(&[("cursor", page.slice(cursor))]),
                None => return Ok(items),
            }
        }
        Err(Refused::Silence(format!("more than {MAX_PAGES} pages")))
    }

    /// Ends it, if it is ours.
    ///
    /// # Errors
    /// How the command ends, where a signal asked for that.
    pub(super) async fn close(self) -> Result<(), Ended> {
        match self {
            Self::Running(_) => Ok(()),
            Self::AdHoc(own, _) => own.close().await,
        }
    }

    /// The same for a command that would have ended so.
    pub(super) async fn end(self, ended: Ended) -> Ended {
        self.close().await.err().unwrap_or(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{protocol::UpstreamId, upstream::spec::Timeouts};

    #[test]
    fn a_program_is_waited_for_until_it_is_known_why_it_did_not_start() {
        let start = Timeouts::default().start;
        // One that ends when it is asked is started a second time.
        assert!(patience(start) > 2 * start);
        assert_eq!(patience(Duration::ZERO), SETTLE);
    }

    #[test]
    fn an_upstream_that_is_on_its_way_is_told_as_that() {
        for (state, error, told) in [
            ("connecting", None, Some("still connecting")),
            ("connecting", Some("refused"), Some("refused")),
            ("ready", None, None),
            ("away", Some("no answer in time"), Some("no answer in time")),
        ] {
            let mut status = UpstreamStatus {
                id: UpstreamId::parse("a").expect("a key"),
                state,
                revision: None,
                counts: [0; 4],
                error: error.map(str::to_owned),
                unread: false,
                reports: Vec::new(),
            };
            under_way(&mut status);
            assert_eq!(status.error.as_deref(), told, "{state}");
        }
    }
}
