//! The gateway that a one-off command talks to: a running one by its address, or one made for the occasion.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;

use super::{
    client::{Client, TOKEN},
    out,
    refused::Refused,
    shown,
    source::Source,
};
use crate::{
    app::{App, UpstreamStatus},
    audit::sinks::Stream,
    call::Identity,
    config::Plan,
    json::{Json, Node},
    protocol::{meta, methods::ListKind},
    tasks::Tasks,
    telemetry::Telemetry,
};

/// How long upstreams may take, beside the start of their programs, until a one-off command goes on without them.
const SETTLE: Duration = Duration::from_secs(30);
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
    AdHoc(App, Tasks, Option<Arc<Identity>>),
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
    pub(super) async fn gateway(&self, to: To<'_>) -> Result<Gateway, super::Ended> {
        if let Some(url) = &self.url {
            let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
            return Client::new(url, token.as_deref())
                .map(|client| Gateway::Running(Box::new(client)))
                .map_err(|error| {
                    out::problem(&format!("--url: {error}"));
                    super::Ended::Misused
                });
        }
        let (app, tasks) = build(&self.source, matches!(to, To::Ask(..))).await?;
        tell(&ready(&app, to).await);
        Ok(Gateway::AdHoc(app, tasks, None))
    }

    /// The same, asked as by somebody, where somebody is named: a gateway of our own takes the word of whoever runs it.
    pub(super) async fn asked_by(
        &self,
        who: Option<Arc<Identity>>,
        to: To<'_>,
    ) -> Result<Gateway, super::Ended> {
        Ok(match self.gateway(to).await? {
            Gateway::AdHoc(app, tasks, _) => Gateway::AdHoc(app, tasks, who),
            running @ Gateway::Running(_) => running,
        })
    }

    /// One of our own to look at what somebody sees: by its policies, and nothing is recorded. If there is none, the reason has been
    /// told.
    pub(super) async fn seen_by(&self, who: Arc<Identity>) -> Result<Gateway, super::Ended> {
        let mut plan = self.source.plan().ok_or(super::Ended::Misused)?;
        plan.audit = None;
        let (app, tasks) = built(plan, None).await?;
        tell(&settled(&app).await);
        Ok(Gateway::AdHoc(app, tasks, Some(who)))
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

/// An app of this configuration; if there is none, the reason has been told.
pub(super) async fn build(source: &Source, calls: bool) -> Result<(App, Tasks), super::Ended> {
    let mut plan = source.plan().ok_or(super::Ended::Misused)?;
    if !calls {
        plan = looking(plan);
    }
    built(plan, None).await
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
pub(super) async fn build_observed(source: &Source) -> Result<(App, Tasks), super::Ended> {
    let plan = source.plan_to_serve().ok_or(super::Ended::Misused)?;
    let telemetry = observed(&plan)?;
    built(plan, Some(telemetry)).await
}

/// What watches a gateway of this plan; if nothing can, the reason has been told.
pub(super) fn observed(plan: &Plan) -> Result<Telemetry, super::Ended> {
    Telemetry::start(&plan.telemetry).map_err(|error| {
        out::problem(&error.to_string());
        super::Ended::Failed
    })
}

async fn built(mut plan: Plan, telemetry: Option<Telemetry>) -> Result<(App, Tasks), super::Ended> {
    if let Some(audit) = &mut plan.audit
        && audit.sinks.lines.is_some()
    {
        // On stdout is the answer.
        audit.sinks.lines = Some(Stream::Stderr);
    }
    let tasks = Tasks::new();
    // What is wrong with those of a directory is in the log.
    let unguided = plan.policy.is_none();
    match App::observed(plan, telemetry, tasks.child()).await {
        Ok(app) => {
            for problem in app.policy_problems().iter().filter(|_| unguided) {
                out::note(&problem.to_string());
            }
            Ok((app, tasks))
        }
        Err(error) => {
            out::problem(&error.to_string());
            Err(super::Ended::Failed)
        }
    }
}

/// Waits until every upstream was reached once or failed once, with something to look at on a terminal.
pub(super) async fn settled(app: &App) -> Vec<UpstreamStatus> {
    ready(app, To::Look).await
}

/// The same, or until what is asked for is there.
async fn ready(app: &App, to: To<'_>) -> Vec<UpstreamStatus> {
    let waiting = shown::waiting(&format!("connecting to {} upstreams", app.statuses().len()));
    let statuses = tokio::select! {
        statuses = app.settled(app.slowest_start().max(SETTLE)) => statuses,
        () = offered(app, to) => app.statuses(),
    };
    waiting.finish_and_clear();
    statuses
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
            Self::AdHoc(app, _, who) => {
                let who = who.clone().unwrap_or_else(Identity::anonymous);
                let answer = app.request_as(who, method, params).await;
                answer.map_err(Refused::Answer)
            }
        }
    }

    /// Every item of a list.
    pub(super) async fn list(&self, kind: ListKind) -> Result<Vec<Json>, Refused> {
        if let Self::AdHoc(app, _, None) = self {
            return Ok(app.catalog(kind));
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
    pub(super) async fn close(self) {
        if let Self::AdHoc(app, tasks, _) = self {
            app.shutdown().await;
            tasks.finish().await;
        }
    }
}
