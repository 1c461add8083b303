//! `usher policy who-can`: everybody who may do a thing.

use clap::Args as ClapArgs;

use super::Question;
use crate::{
    cli::{Ended, out, table},
    json::Json,
};

/// Tell who may do a thing: of those whom policies and groups.yaml name, and anybody else
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher policy who-can --call github_delete_repo
  usher policy who-can --connect --call github_delete_repo
  usher policy who-can --read docs+file:///handbook.md --json | jq -r '.[] | select(.may != \"no\").who'

`after approval` is for what a person at the client agrees to each time. `depends` is for what arguments, scopes, time or address decide; the conditions follow. `no` is for
those whom a policy keeps from it although others like them may.")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    question: Question,
}

/// Runs it.
pub(super) async fn run(Args { question }: Args) -> Ended {
    let (prepared, action, item) = match question.read().await {
        Ok(read) => read,
        Err(ended) => return ended,
    };
    let (_, name) = question.done.action();
    let able = prepared.who_can(action, item.subject(), question.toolset.as_deref());
    if question.basis.json {
        out::line(Json::of(&able).as_str());
        return Ended::Well;
    }
    if able.is_empty() {
        out::line(&format!(
            "nobody may {} `{}`",
            action.name(),
            out::tame(name)
        ));
        return Ended::Well;
    }
    let rows: Vec<Vec<String>> = able
        .iter()
        .map(|able| {
            let by = able.by.join(", ");
            let may = match able.may {
                "approval" => "after approval",
                may => may,
            };
            [able.who.clone(), may.to_owned(), by]
                .map(|text| out::tame(&text))
                .to_vec()
        })
        .collect();
    out::line(&table::aligned(&["WHO", "MAY", "BY"], &rows));
    let mut conditions: Vec<&String> = able.iter().flat_map(|able| &able.conditions).collect();
    conditions.sort();
    conditions.dedup();
    if !conditions.is_empty() {
        out::line("");
        for condition in conditions {
            out::line(&out::tame(condition));
        }
    }
    Ended::Well
}
