//! `usher policy`: tools for those who write policies.
//!
//! Every subcommand works on a directory alone; what `cases.yaml` tells of items stands in for a catalog, until `--connect`,
//! `--url` or `--catalog` brings a real one.

mod about;
mod check;
mod explain;
mod schema;
mod test;
mod who_can;

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};

use super::{Ended, out};
use crate::{
    json::Json,
    policy::{Policy, Problem},
};

/// The directory that is read if none is named.
const DEFAULT_DIR: &str = "policies";

/// Check, test and explain who may do what
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  usher policy check                       is policies/ right, and does it fit what is offered?
  usher policy test                        runs policies/cases.yaml
  usher policy explain --user ana --call github_delete_repo --args '{\"repo\":\"acme/site\"}'
  usher policy who-can --call github_delete_repo
  usher policy schema                      what policies may speak of

A first policy, in policies/first.cedar:
  permit (principal in Group::\"analysts\", action in Action::\"use\", resource in Upstream::\"docs\");")]
pub(super) enum Args {
    Check(check::Args),
    Test(test::Args),
    Explain(Box<explain::Args>),
    WhoCan(who_can::Args),
    Schema(schema::Args),
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    match args {
        Args::Check(args) => Box::pin(check::run(args)).await,
        Args::Test(args) => Box::pin(test::run(args)).await,
        Args::Explain(args) => Box::pin(explain::run(*args)).await,
        Args::WhoCan(args) => Box::pin(who_can::run(args)).await,
        Args::Schema(args) => Box::pin(schema::run(args)).await,
    }
}

/// Which set of policies.
#[derive(Debug, ClapArgs)]
struct Set {
    /// The directory of the policies [default: policies, beside the configuration]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Set {
    /// The directory: as named, or beside the configuration.
    fn path(&self, config: &Path) -> PathBuf {
        let beside = || {
            let parent = config.parent().unwrap_or_else(|| Path::new(""));
            parent.join(DEFAULT_DIR)
        };
        self.dir.clone().unwrap_or_else(beside)
    }

    /// The set; if there is none, everything that is wrong has been told.
    fn load(&self, config: &Path, json: bool) -> Result<Policy, Ended> {
        Policy::load(&self.path(config)).map_err(|problems| {
            if json {
                let outcome = Outcome {
                    ok: false,
                    problems: &problems,
                    notes: &[],
                };
                out::line(Json::of(&outcome).as_str());
            } else {
                tell(&problems);
            }
            Ended::Misused
        })
    }
}

/// What a check comes to, as JSON.
#[derive(serde::Serialize)]
struct Outcome<'a> {
    ok: bool,
    problems: &'a [Problem],
    notes: &'a [Problem],
}

/// Tells what is wrong.
fn tell(problems: &[Problem]) {
    for problem in problems {
        told(problem, &out::paint(out::RED, "error"));
    }
    let word = if problems.len() == 1 {
        "problem"
    } else {
        "problems"
    };
    out::note(&format!(
        "\n{}",
        out::paint(out::BOLD, &format!("{} {word}", problems.len()))
    ));
}

fn told(problem: &Problem, word: &str) {
    let place = match problem.line {
        0 => problem.file.clone(),
        line => format!("{}:{line}:{}", problem.file, problem.column),
    };
    out::note(&format!("{place}: {word}: {}", out::tame(&problem.message)));
    if let Some(hint) = &problem.hint {
        out::note(&format!("  {}", out::paint(out::DIM, &out::tame(hint))));
    }
}
