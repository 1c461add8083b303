//! `usher policy schema`: what policies may speak of.

use clap::Args as ClapArgs;

use super::{Set, about::About};
use crate::{
    cli::{Ended, near::near, out},
    policy::{ItemKind, Policy},
};

/// Print the Cedar schema, for editors; with --tool with the arguments of that tool
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher policy schema > policies/usher.cedarschema
  usher policy schema --tool github_create_issue --connect | grep 'type Args'")]
pub(in crate::cli) struct Args {
    /// Fill in the arguments of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    #[command(flatten)]
    set: Set,
    #[command(flatten)]
    about: About,
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    let Some(name) = args.tool else {
        out::raw(Policy::schema(None).as_bytes());
        return Ended::Well;
    };
    let offered = match args.about.offered().await {
        Ok(offered) => offered,
        Err(ended) => return ended,
    };
    let items = if args.about.is_live() {
        offered.items
    } else {
        match args.set.load(&args.about.config(), false) {
            Ok(policy) => offered.with_cases(&policy).items,
            Err(ended) => return ended,
        }
    };
    let tool = items
        .iter()
        .find(|item| item.kind == ItemKind::Tool && *item.outward == *name);
    if tool.is_none() {
        let names: Vec<String> = items.iter().map(|item| item.outward.to_string()).collect();
        let meant = near(&name, &names);
        let meant = meant
            .first()
            .map(|name| format!("; did you mean `{name}`?"));
        out::problem(&format!(
            "`{name}` is not there{}",
            meant.unwrap_or_default()
        ));
        return Ended::Failed;
    }
    out::raw(Policy::schema(tool).as_bytes());
    Ended::Well
}
