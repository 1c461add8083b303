//! `usher policy test`: the cases of a set of policies.

use std::time::SystemTime;

use clap::Args as ClapArgs;

use super::Basis;
use crate::{
    cli::{Ended, out},
    json::Json,
};

/// Run cases.yaml: what the policies are meant to decide
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher policy test                         the cases of policies/cases.yaml
  usher policy test --connect               with tools as they are offered now
  usher policy test --json | jq '.cases[] | select(.failure)'

Exit codes: 0 every case as expected, 1 one is not, 2 the policies are wrong")]
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
    let outcomes = policy.run_cases(&offered.items, SystemTime::now());
    let failed = outcomes
        .iter()
        .filter(|case| case.failure.is_some())
        .count();
    if basis.json {
        #[derive(serde::Serialize)]
        struct Report<'a> {
            ok: bool,
            cases: &'a [crate::policy::Outcome],
        }
        let report = Report {
            ok: failed == 0,
            cases: &outcomes,
        };
        out::line(Json::of(&report).as_str());
    } else {
        let file = basis.dir().join("cases.yaml");
        for case in &outcomes {
            match &case.failure {
                None => out::line(&format!("{}  {}", out::paint(out::GREEN, "ok"), case.name)),
                Some(failure) => {
                    out::line(&format!("{}  {}", out::paint(out::RED, "no"), case.name));
                    let place = format!("{}:{}", file.display(), case.line);
                    out::line(&format!("    {place}: {}", out::tame(failure)));
                }
            }
        }
        let all = outcomes.len();
        if all == 0 {
            out::note(&format!("{} has no cases", file.display()));
        } else {
            out::line(&format!("\n{} of {all} as expected", all - failed));
        }
    }
    if failed == 0 {
        Ended::Well
    } else {
        Ended::Failed
    }
}
