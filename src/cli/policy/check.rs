//! `usher policy check`: whether a set of policies is right, and whether it fits what is offered.

use clap::Args as ClapArgs;

use super::{Basis, Outcome, tell, told};
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
    basis: Basis,
}

/// Runs it.
pub(super) async fn run(Args { basis }: Args) -> Ended {
    let (policy, offered) = match basis.read().await {
        Ok(read) => read,
        Err(ended) => return ended,
    };
    let items = if basis.about.is_live() {
        offered.items
    } else {
        policy.case_items().to_vec()
    };
    let (count, away) = (items.len(), &offered.configured.away);
    let prepared = policy.prepare(items, None);
    let (problems, notes) = (prepared.problems(), prepared.review(&offered.configured));
    if basis.json {
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
            let of = match (basis.about.is_live(), count) {
                (true, _) => format!("over {count} tools, prompts and resources that are offered"),
                (false, 0) => {
                    "by itself; `--connect` looks at it with what your servers offer".into()
                }
                (false, _) => format!(
                    "over the {} of its cases.yaml; `--connect` looks at what your servers offer",
                    out::count(count as u64, "item")
                ),
            };
            let noted = match notes.len() {
                0 => String::new(),
                1 => " but for the note above".to_owned(),
                count => format!(" but for the {count} notes above"),
            };
            let policies = match policy.count() {
                1 => "1 policy".to_owned(),
                many => format!("{many} policies"),
            };
            out::line(&format!(
                "{}: {}{noted}: {policies}, {of}",
                basis.dir().display(),
                out::paint(out::GREEN, "fine"),
            ));
        } else {
            tell(problems);
        }
        for upstream in away {
            out::problem(&format!(
                "`{upstream}` is away, so policies about it could not be looked at"
            ));
        }
    }
    match (problems.is_empty(), away.is_empty()) {
        (false, _) => Ended::Misused,
        (true, false) => Ended::Failed,
        (true, true) => Ended::Well,
    }
}
