//! `usher check`: whether a configuration is right, and with `--connect` whether its upstreams are there.

use std::collections::HashMap;

use clap::Args as ClapArgs;
use http::Uri;

use super::{
    Ended,
    gateway::settled,
    out, shown,
    source::{Source, tell},
};
use crate::{
    app::{App, UpstreamStatus},
    catalog::rules::ToolsetRules,
    config::Plan,
    glob,
    json::Json,
    policy::{Item, ItemKind},
    protocol::{UpstreamId, meta},
    tasks::Tasks,
    upstream::spec::{Endpoint, UpstreamSpec},
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
    let (plan, mut notes) = match args.source.load() {
        Ok(loaded) => loaded,
        Err(rejected) => {
            if args.json {
                let members = [("ok", Json::of(&false)), ("problems", rejected.json())];
                out::line(meta::object_of(&members).as_str());
            } else {
                tell(&rejected);
            }
            return Ended::Misused;
        }
    };
    let summary = summary(&args, &plan);
    if plan.upstreams.is_empty() {
        notes.push(
            "nothing is configured: without `upstreams` the endpoint is empty; `usher import` takes over what other programs have"
                .to_owned(),
        );
    }
    if plan.auth.is_some() && plan.policy.is_none() {
        notes.push(
            "`auth` without `policy`: nobody may use anything; `usher init --operator YOU` writes policies that permit you alone, \
             `policy: { dir: policies }` puts them in force"
                .to_owned(),
        );
    }
    notes.extend(plan.loaded.in_clear().iter().map(|path| {
        format!(
            "{path} may be a secret that stands in the file: `${{env:NAME}}` keeps it out of it"
        )
    }));
    if !args.connect {
        if args.json {
            let members = [("ok", Json::of(&true)), ("notes", Json::of(&notes))];
            out::line(meta::object_of(&members).as_str());
        } else {
            notes.iter().for_each(|note| out::line(note));
            out::line(&summary);
        }
        return Ended::Well;
    }
    let addresses = addresses(&plan);
    let sets = plan.catalog.toolsets.clone();
    let (statuses, items) = match connect(plan).await {
        Ok(seen) => seen,
        Err(error) => {
            out::problem(&error);
            return Ended::Failed;
        }
    };
    let well = statuses.iter().all(|status| status.state == "ready");
    if well {
        // Of what is away nobody knows what it would offer.
        notes.extend(idle(&sets, &items));
    }
    if args.json {
        let list: Vec<Status<'_>> = statuses.iter().map(Status::of).collect();
        let members = [
            ("ok", Json::of(&well)),
            ("notes", Json::of(&notes)),
            ("upstreams", Json::of(&list)),
        ];
        out::line(meta::object_of(&members).as_str());
    } else {
        notes.iter().for_each(|note| out::line(note));
        out::line(&summary);
        if !statuses.is_empty() {
            out::line(&format!("\n{}", shown::statuses(&statuses)));
        }
        for status in &statuses {
            if let Some(hint) = addresses
                .get(&status.id)
                .and_then(|url| path_hint(status, url))
            {
                out::line(&format!("{}: {hint}", status.id));
            }
            for report in &status.reports {
                out::line(&format!("{}: {}", status.id, out::tame(report)));
            }
        }
    }
    if well { Ended::Well } else { Ended::Failed }
}

async fn connect(mut plan: Plan) -> Result<(Vec<UpstreamStatus>, Vec<Item>), String> {
    // Nothing is called, so there is nothing to record.
    plan.audit = None;
    let tasks = Tasks::new();
    let app = App::build(plan, tasks.child())
        .await
        .map_err(|error| error.to_string())?;
    let statuses = settled(&app).await;
    let items = app.snapshot().items();
    app.shutdown().await;
    tasks.finish().await;
    Ok((statuses, items))
}

/// What toolsets select by and nothing answers to: as a rule a slip, and else a selection that is empty.
fn idle(sets: &[ToolsetRules], items: &[Item]) -> Vec<String> {
    let mut notes = Vec::new();
    for set in sets {
        for (what, globs, kinds) in [
            ("tools", &set.tools, &[ItemKind::Tool][..]),
            ("prompts", &set.prompts, &[ItemKind::Prompt]),
            (
                "resources",
                &set.resources,
                &[ItemKind::Resource, ItemKind::Template],
            ),
        ] {
            let there = |glob: &str| {
                let of_kind = |item: &&Item| kinds.contains(&item.kind);
                let mut there = items.iter().filter(of_kind);
                there.any(|item| glob::matches(glob, &item.outward))
            };
            let idle = globs.iter().filter(|glob| !there(glob));
            notes.extend(idle.map(|glob| {
                format!(
                    "toolsets.{}.{what}: `{glob}` matches none of the {what} that are there; `usher catalog` lists them",
                    set.name
                )
            }));
        }
    }
    notes
}

fn summary(args: &Args, plan: &Plan) -> String {
    let count = |number: usize, word| out::count(number as u64, word);
    format!(
        "{}: {}, {}, {}",
        args.source.path().display(),
        out::paint(out::GREEN, "fine"),
        count(plan.upstreams.len(), "upstream"),
        count(plan.catalog.toolsets.len(), "toolset"),
    )
}

/// The addresses of the upstreams that have one.
fn addresses(plan: &Plan) -> HashMap<UpstreamId, Uri> {
    let address = |spec: &UpstreamSpec| match &spec.endpoint {
        Endpoint::Http(http) => Some((spec.id.clone(), http.url.clone())),
        Endpoint::Stdio(_) => None,
    };
    plan.upstreams.iter().filter_map(address).collect()
}

/// What to try when a server answers that there is nothing at its address.
fn path_hint(status: &UpstreamStatus, url: &Uri) -> Option<String> {
    let error = status.error.as_deref()?;
    let missing = ["HTTP 404", "HTTP 405"]
        .into_iter()
        .find(|answer| error.contains(answer))?;
    let path = url.path().trim_end_matches('/');
    if status.state == "ready" || path.ends_with("/mcp") {
        return None;
    }
    let (scheme, authority) = (url.scheme_str()?, url.authority()?);
    Some(format!(
        "{missing} says that no MCP server is at this path; most are at `/mcp`: try {scheme}://{authority}{path}/mcp"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Hints;

    #[test]
    fn what_a_toolset_selects_by_and_nothing_answers_to_is_told() {
        let item = |kind, outward: &str| Item {
            kind,
            upstream: UpstreamId::parse("git").expect("a key"),
            outward: outward.into(),
            local: outward.into(),
            tags: Vec::new(),
            pinned: Hints::default(),
            claimed: Hints::default(),
            toolsets: Vec::new(),
            schema: None,
        };
        let items = [
            item(ItemKind::Tool, "git_log"),
            item(ItemKind::Prompt, "git_review"),
            item(ItemKind::Template, "repo://{path}"),
        ];
        let globs = |globs: &[&str]| globs.iter().map(|&glob| glob.to_owned()).collect();
        let set = ToolsetRules {
            name: "dev".into(),
            tools: globs(&["git_*", "gti_*", "git_review"]),
            prompts: globs(&["*"]),
            resources: globs(&["repo://*", "file://*"]),
            upstreams: Vec::new(),
        };
        let told = idle(&[set], &items);
        let places: Vec<&str> = told
            .iter()
            .filter_map(|note| note.split(" matches").next())
            .collect();
        assert_eq!(
            places,
            [
                "toolsets.dev.tools: `gti_*`",
                "toolsets.dev.tools: `git_review`",
                "toolsets.dev.resources: `file://*`"
            ]
        );
    }

    #[test]
    fn an_address_that_answers_404_or_405_without_the_usual_path_gets_a_hint() {
        let status = |state, error: &str| UpstreamStatus {
            id: UpstreamId::parse("a").expect("a key"),
            state,
            revision: None,
            counts: [0; 4],
            error: Some(error.to_owned()),
            reports: Vec::new(),
        };
        let hint = |state, error, url: &str| {
            path_hint(&status(state, error), &url.parse().expect("an address"))
        };
        for (url, better) in [
            ("https://host.example", "https://host.example/mcp"),
            ("https://host.example:1/", "https://host.example:1/mcp"),
            ("http://localhost/api/", "http://localhost/api/mcp"),
        ] {
            for error in ["x: HTTP 404 without a message", "HTTP 405"] {
                let hint = hint("away", error, url).expect("a hint");
                assert!(hint.ends_with(&format!("try {better}")), "{hint}");
            }
        }
        assert_eq!(hint("away", "HTTP 404", "https://host.example/mcp/"), None);
        assert_eq!(hint("away", "HTTP 503", "https://host.example/"), None);
        assert_eq!(hint("ready", "HTTP 404", "https://host.example/"), None);
    }
}
