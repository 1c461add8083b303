//! `usher policy check`: whether a set of policies is right, and whether it fits what is offered.

use clap::Args as ClapArgs;

use super::{Outcome, Set, about::About, tell, told};
use crate::{
    cli::{Ended, out},
    json::Json,
};

/// Check policies: every problem at once, with file, line and column; then what is strange about them
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher policy check                        policies/ by itself
  usher policy check --connect              and with the tools that the servers of usher.yaml offer
  usher policy check --dir new --catalog catalog.json --json | jq '.notes[].message'

Exit codes: 0 fine, 1 an upstream is away (--connect), 2 the policies are wrong or do not fit")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    set: Set,
    #[command(flatten)]
    about: About,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    let config = args.about.config();
    let policy = match args.set.load(&config, args.json) {
        Ok(policy) => policy,
        Err(ended) => return ended,
    };
    let live = match args.about.items().await {
        Ok(live) => live,
        Err(ended) => return ended,
    };
    let items = if args.about.is_live() {
        live
    } else {
        policy.case_items().to_vec()
    };
    let count = items.len();
    let prepared = policy.prepare(items, None);
    let (problems, notes) = (prepared.problems(), prepared.review());
    if args.json {
        let outcome = Outcome {
            ok: problems.is_empty(),
            problems,
            notes: &notes,
        };
        out::line(Json::of(&outcome).as_str());
    } else {
        for note in &notes {
            told(note, &out::paint(out::YELLOW, "note"));
        }
        if problems.is_empty() {
            out::line(&format!(
                "{}: {}, {} policies, looked at with {count} items",
                args.set.path(&config).display(),
                out::paint(out::GREEN, "fine"),
                policy.count(),
            ));
        } else {
            tell(problems);
        }
    }
    if problems.is_empty() {
        Ended::Well
    } else {
        Ended::Misused
    }
}
