//! `usher check`: whether a configuration is right, and with `--connect` whether its upstreams are there.

use clap::Args as ClapArgs;

use super::{
    Ended,
    gateway::{object, settled},
    out, shown,
    source::{Source, tell},
};
use crate::{
    app::{App, UpstreamStatus},
    config::Plan,
    json::Json,
    tasks::Tasks,
};

/// Check a configuration: every problem at once, with file, line, column and a hint
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher check                           usher.yaml: keys, values, secrets, certificates
  usher check -c prod.yaml --connect    and reach every upstream
  usher check --json | jq '.problems'

Exit codes: 0 fine, 1 an upstream is away (--connect), 2 the configuration is wrong")]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// Also reach every upstream, and say its revision, era and what it offers
    #[arg(long)]
    connect: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    let (plan, notes) = match args.source.load() {
        Ok(loaded) => loaded,
        Err(rejected) => {
            if args.json {
                let members = [("ok", Json::of(&false)), ("problems", rejected.json())];
                out::line(object(&members).as_str());
            } else {
                tell(&rejected);
            }
            return Ended::Misused;
        }
    };
    let summary = summary(&args, &plan);
    let mut members = vec![("ok", Json::of(&true)), ("notes", Json::of(&notes))];
    if !args.connect {
        if args.json {
            out::line(object(&members).as_str());
        } else {
            notes.iter().for_each(|note| out::line(note));
            out::line(&summary);
        }
        return Ended::Well;
    }
    let statuses = match connect(plan).await {
        Ok(statuses) => statuses,
        Err(error) => {
            out::problem(&error);
            return Ended::Failed;
        }
    };
    let well = statuses.iter().all(|status| status.state == "ready");
    if args.json {
        members[0].1 = Json::of(&well);
        let list: Vec<Status<'_>> = statuses.iter().map(Status::of).collect();
        members.push(("upstreams", Json::of(&list)));
        out::line(object(&members).as_str());
    } else {
        notes.iter().for_each(|note| out::line(note));
        out::line(&summary);
        if !statuses.is_empty() {
            out::line(&format!("\n{}", shown::statuses(&statuses)));
        }
        for status in &statuses {
            for report in &status.reports {
                out::line(&format!("{}: {}", status.id, out::tame(report)));
            }
        }
    }
    if well { Ended::Well } else { Ended::Failed }
}

async fn connect(plan: Plan) -> Result<Vec<UpstreamStatus>, String> {
    let tasks = Tasks::new();
    let app = App::build(plan, tasks.child())
        .await
        .map_err(|error| error.to_string())?;
    let statuses = settled(&app).await;
    app.shutdown().await;
    tasks.finish().await;
    Ok(statuses)
}

fn summary(args: &Args, plan: &Plan) -> String {
    let count = |number: usize, word: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{number} {word}{plural}")
    };
    format!(
        "{}: {}, {}, {}",
        args.source.path().display(),
        out::paint(out::GREEN, "fine"),
        count(plan.upstreams.len(), "upstream"),
        count(plan.catalog.toolsets.len(), "toolset"),
    )
}

/// A status as JSON.
#[derive(serde::Serialize)]
struct Status<'a> {
    upstream: &'a str,
    state: &'a str,
    revision: Option<&'a str>,
    era: Option<&'a str>,
    tools: usize,
    prompts: usize,
    resources: usize,
    templates: usize,
    error: Option<&'a str>,
    reports: &'a [String],
}

impl<'a> Status<'a> {
    fn of(status: &'a UpstreamStatus) -> Self {
        let [tools, prompts, resources, templates] = status.counts;
        Self {
            upstream: status.id.as_str(),
            state: status.state,
            revision: status.revision.map(crate::protocol::Revision::as_str),
            era: status.revision.map(shown::era),
            tools,
            prompts,
            resources,
            templates,
            error: status.error.as_deref(),
            reports: &status.reports,
        }
    }
}
