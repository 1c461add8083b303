//! `usher policy`: tools for those who write policies.
//!
//! Every subcommand works on a directory alone; what `cases.yaml` tells of items stands in for a catalog, until `--connect`,
//! `--url` or `--catalog` brings a real one. With `--connect` the answer is the gateway's: the same policies are laid over
//! the same items by the same code.

mod about;
mod check;
mod explain;
mod schema;
mod test;
mod who_can;

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};

use super::{Ended, out, source::counted};
use crate::{
    config,
    json::Json,
    policy::{Action, Policy, Prepared, Problem},
    snapshot::Named,
};

use about::{About, Done, Offered};

/// The directory that is read if none is named.
const DEFAULT_DIR: &str = "policies";

/// Check, test and explain who may do what
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  usher policy check                       is the directory of policies right?
  usher policy check --connect             and does it fit what your servers offer?
  usher policy test                        runs its cases.yaml
  usher policy explain --connect --user ana --call github_delete_repo --args '{\"repo\":\"acme/site\"}'
  usher policy who-can --connect --call github_delete_repo
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

/// What a question about policies is asked of.
#[derive(Debug, ClapArgs)]
struct Basis {
    #[command(flatten)]
    set: Set,
    #[command(flatten)]
    about: About,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

impl Basis {
    /// The policies, and what is offered; if there are none, everything that is wrong has been told.
    async fn read(&self) -> Result<(Policy, Offered), Ended> {
        let policy = self.set.load(&self.about.config(), self.json)?;
        Ok((policy, self.about.offered().await?))
    }

    /// The directory of the policies.
    fn dir(&self) -> PathBuf {
        self.set.path(&self.about.config())
    }
}

/// Which item of it is asked about.
#[derive(Debug, ClapArgs)]
struct Question {
    #[command(flatten)]
    done: Done,
    /// At the endpoint of this toolset
    #[arg(long)]
    toolset: Option<String>,
    #[command(flatten)]
    basis: Basis,
}

impl Question {
    /// The policies over what is offered, and the item; what is not there has been told.
    async fn read(&self) -> Result<(Prepared, Action, Named), Ended> {
        let (policy, offered) = self.basis.read().await?;
        let (action, name) = self.done.action();
        let offered = offered.with_cases(&policy);
        let named = offered.named(action, name, self.toolset.as_deref())?;
        let prepared = policy.prepare(offered.items, None);
        if !prepared.problems().is_empty() {
            noted(
                "these policies do not fit what is offered, and would not be put in force like this: see `usher policy check`",
            );
        }
        Ok((prepared, action, named))
    }
}

/// Which set of policies.
#[derive(Debug, ClapArgs)]
struct Set {
    /// The directory of the policies [default: `policy.dir` of the configuration; without one, policies beside it]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Set {
    /// The directory: as named here, or in the configuration, or beside it.
    fn path(&self, config: &Path) -> PathBuf {
        let named = || config::policy_dir(config, &config::process_vars).flatten();
        let beside = || {
            let parent = config.parent().unwrap_or_else(|| Path::new(""));
            parent.join(DEFAULT_DIR)
        };
        let dir = self.dir.clone().or_else(named);
        dir.unwrap_or_else(beside)
    }

    /// The set; if there is none, everything that is wrong has been told.
    fn load(&self, config: &Path, json: bool) -> Result<Policy, Ended> {
        if config.exists() && config::policy_dir(config, &config::process_vars) == Some(None) {
            noted(&format!(
                "{} has no `policy` block, so a gateway of it asks none of these: add `policy: {{ dir: policies }}`",
                config.display()
            ));
        }
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

/// Something that a reader of the answer should know.
fn noted(text: &str) {
    let word = out::paint(out::YELLOW, "note");
    out::note(&format!("{word}: {}", out::tame(text)));
}

/// What a check comes to, as JSON.
#[derive(serde::Serialize)]
struct Outcome<'a> {
    ok: bool,
    problems: &'a [Problem],
    notes: &'a [Problem],
}

/// Tells what is wrong, and how much that is.
fn tell(problems: &[Problem]) {
    wrong(problems);
    counted(problems.len());
}

/// Tells what is wrong.
pub(super) fn wrong(problems: &[Problem]) {
    for problem in problems {
        told(problem, &out::paint(out::RED, "error"));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_that_of_the_configuration_unless_another_is_named() {
        let directory = tempfile::TempDir::new().unwrap();
        let config = directory.path().join("usher.yaml");
        let none = Set { dir: None };
        assert_eq!(none.path(&config), directory.path().join(DEFAULT_DIR));
        std::fs::write(&config, "policy: { dir: rules }\nupstreams: {}\n").unwrap();
        assert_eq!(none.path(&config), directory.path().join("rules"));
        let named = Set {
            dir: Some("elsewhere".into()),
        };
        assert_eq!(named.path(&config), Path::new("elsewhere"));
    }
}
