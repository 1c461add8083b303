//! `usher policy who-can`: everybody who may do a thing.

use clap::Args as ClapArgs;

use super::{
    Set,
    about::{About, Done, all, named},
};
use crate::{
    cli::{Ended, out, table},
    json::Json,
};

/// Tell who may do a thing: of those whom policies and groups.yaml name, and anybody else
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher policy who-can --call github_delete_repo
  usher policy who-can --read docs+file:///handbook.md --json | jq -r '.[].who'

`depends` is for what arguments, scopes, time or address decide; the conditions follow.")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    done: Done,
    /// The toolset of the endpoint
    #[arg(long)]
    toolset: Option<String>,
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
    let policy = match args.set.load(&args.about.config(), args.json) {
        Ok(policy) => policy,
        Err(ended) => return ended,
    };
    let live = match args.about.items().await {
        Ok(live) => live,
        Err(ended) => return ended,
    };
    let items = all(&policy, live);
    let (action, name) = args.done.action();
    let item = match named(&items, action, name) {
        Ok(item) => item,
        Err(ended) => return ended,
    };
    let prepared = policy.prepare(items, None);
    let able = prepared.who_can(action, item.subject(), args.toolset.as_deref());
    if args.json {
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
            [able.who.clone(), able.may.to_owned(), by]
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
