//! `usher catalog`: everything that a gateway offers.

use std::sync::Arc;

use clap::Args as ClapArgs;

use super::{
    Ended,
    gateway::{To, Where},
    out, shown,
};
use crate::{
    json::Json,
    policy::Somebody,
    protocol::{meta, methods::ListKind},
};

/// Show the merged catalog: tools, prompts, resources and templates
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher catalog                                        of usher.yaml
  usher catalog --as ana@example.com                   what policies let somebody see of it
  usher catalog --url http://127.0.0.1:8808/mcp        of a running gateway
  usher catalog --json | jq -r '.tools[].name'")]
pub(super) struct Args {
    #[command(flatten)]
    place: Where,
    /// What this user sees, by the policies of the configuration; without it, everything is shown
    #[arg(long = "as", value_name = "USER", conflicts_with = "url")]
    user: Option<String>,
    /// Print the definitions, as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    let somebody = Somebody {
        user: args.user.clone(),
        ..Somebody::default()
    };
    let found = match somebody.identity().filter(|_| args.user.is_some()) {
        Some(who) => args.place.seen_by(Arc::new(who)).await,
        None => args.place.gateway(To::Look).await,
    };
    let gateway = match found {
        Ok(gateway) => gateway,
        Err(ended) => return ended,
    };
    let mut lists = Vec::new();
    for kind in ListKind::ALL {
        match gateway.list(kind).await {
            Ok(items) => lists.push((kind, items)),
            Err(refused) => {
                shown::refusal(&refused, args.json);
                return gateway.end(Ended::Failed).await;
            }
        }
    }
    if let Err(stopped) = gateway.close().await {
        return stopped;
    }
    if args.json {
        let members: Vec<(&str, Json)> = lists
            .iter()
            .map(|(kind, items)| (kind.member(), array(items)))
            .collect();
        out::line(meta::object_of(&members).as_str());
    } else {
        print(&lists);
    }
    Ended::Well
}

/// Prints lists with an empty line between two.
pub(super) fn print(lists: &[(ListKind, Vec<Json>)]) {
    let tables: Vec<String> = lists
        .iter()
        .filter_map(|(kind, items)| shown::list(*kind, items))
        .collect();
    if tables.is_empty() {
        out::note("nothing is offered");
    } else {
        out::line(&tables.join("\n\n"));
    }
}

fn array(items: &[Json]) -> Json {
    let items: Vec<&serde_json::value::RawValue> =
        items.iter().filter_map(|item| item.read().ok()).collect();
    Json::of(&items)
}
