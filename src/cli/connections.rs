//! `usher connections`: who has logged in to which upstream, and taking that back.

use clap::{Args as ClapArgs, Subcommand};

use super::{Ended, date, out, source::Source, table};
use crate::{
    app::own_url,
    connect::{Connection, Connections, spec::ConnectSpec},
    fetch::Fetcher,
    json::Json,
    protocol::meta,
    seal::unix_seconds,
    tasks::Tasks,
};

/// Who has logged in to which upstream: list and revoke
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  usher connections list                       everybody, and what they have logged in to
  usher connections revoke github ana          ana logs in to github again at her next call
  usher connections revoke github --all        everybody does

A running gateway that uses the same store follows within a second.")]
pub(super) enum Command {
    /// Show who has logged in to which upstream
    List(ListArgs),
    /// Remove what somebody was given for an upstream, here and at its authorization server
    Revoke(RevokeArgs),
}

/// See [`Command::List`].
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher connections list                       of the store that usher.yaml names
  usher connections list --json | jq -r '.[] | select(.renews | not) | .who'")]
pub(super) struct ListArgs {
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// See [`Command::Revoke`].
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher connections revoke github ana          ana logs in to github again at her next call
  usher connections revoke github --all        everybody does")]
pub(super) struct RevokeArgs {
    /// The upstream's key
    upstream: String,
    /// Who, as in the columns WHO or PRINCIPAL of `usher connections list`
    #[arg(required_unless_present = "all")]
    who: Option<String>,
    /// Everybody
    #[arg(long, conflicts_with = "who")]
    all: bool,
    #[command(flatten)]
    source: Source,
    /// Print what is revoked as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) async fn run(command: Command) -> Ended {
    match command {
        Command::List(args) => list(&args),
        Command::Revoke(args) => revoke(&args).await,
    }
}

/// What a list needs of a configuration: the store, and to which upstreams its connections belong.
const LISTED: [&str; 6] = [
    "connections",
    "upstreams.*.url",
    "upstreams.*.auth.authorization_code.authorize_url",
    "upstreams.*.auth.authorization_code.client_id",
    "upstreams.*.auth.authorization_code.issuer",
    "upstreams.*.auth.authorization_code.token_url",
];

fn list(args: &ListArgs) -> Ended {
    let connect = args.source.part(&LISTED, |plan| {
        (!plan.connect.accounts.is_empty()).then_some(plan.connect)
    });
    let opened = connect.and_then(|connect| open(connect.unwrap_or_default()));
    let (connections, _tasks) = match opened {
        Ok(opened) => opened,
        Err(ended) => return ended,
    };
    let all = connections.list();
    if args.json {
        let all: Vec<Json> = all.iter().map(as_json).collect();
        out::line(Json::array(&all).as_str());
        return Ended::Well;
    }
    if all.is_empty() {
        out::note("nobody has logged in to anything");
        return Ended::Well;
    }
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let heading = ["UPSTREAM", "WHO", "SINCE", "TOKEN", "SCOPE", "PRINCIPAL"];
    out::line(&table::aligned(&heading, &rows));
    Ended::Well
}

async fn revoke(args: &RevokeArgs) -> Ended {
    // Its server takes the tokens back, for which the whole of its block is needed.
    let Some(plan) = args.source.plan() else {
        return Ended::Misused;
    };
    let here = own_url(plan.listen.address, plan.listen.tls.is_some());
    let (connections, tasks) = match open(plan.connect) {
        Ok(opened) => opened,
        Err(ended) => return ended,
    };
    // As the gateway that registered itself there.
    connections.reached_at(here);
    let of_upstream: Vec<_> = connections
        .list()
        .into_iter()
        .filter(|one| one.account.upstream.as_str() == args.upstream)
        .collect();
    let (mut revoked, mut failed) = (Vec::new(), false);
    for one in of_upstream {
        let named = args
            .who
            .as_deref()
            .is_none_or(|who| who == one.who || who == one.account.principal.as_str());
        if !named {
            continue;
        }
        match connections.revoke(&one.account).await {
            Ok(told) => {
                if let Some(Err(not)) = told {
                    out::note(&format!(
                        "the authorization server of `{}` does not know that {} is no longer connected: {}; what it gave may be good there until it ends",
                        one.account.upstream,
                        out::tame(&one.who),
                        out::tame(&not.to_string())
                    ));
                }
                revoked.push(as_json(&one));
            }
            Err(error) => {
                out::problem(&error.to_string());
                failed = true;
            }
        }
    }
    tasks.finish().await;
    if args.json {
        out::line(Json::array(&revoked).as_str());
    }
    match (failed, revoked.len()) {
        (true, _) => Ended::Failed,
        (false, 0) => {
            out::problem(&format!(
                "nobody of that name has logged in to `{}`; `usher connections list` shows who has",
                out::tame(&args.upstream)
            ));
            Ended::Failed
        }
        (false, _) if args.json => Ended::Well,
        (false, 1) => {
            out::note("1 connection revoked");
            Ended::Well
        }
        (false, many) => {
            out::note(&format!("{many} connections revoked"));
            Ended::Well
        }
    }
}

/// The store of a configuration.
fn open(connect: ConnectSpec) -> Result<(Connections, Tasks), Ended> {
    if connect.accounts.is_empty() {
        out::problem("nobody logs in to any upstream of this configuration");
        return Err(Ended::Failed);
    }
    if connect.store.is_none() {
        out::problem(
            "`connections.store` is not set: connections are in the memory of the running gateway, and end with it",
        );
        return Err(Ended::Failed);
    }
    let tasks = Tasks::new();
    let opened = Fetcher::new(connect.ca.as_deref())
        .map_err(Into::into)
        .and_then(|fetcher| Connections::open(connect, fetcher, &tasks));
    match opened {
        Ok(connections) => Ok((connections, tasks)),
        Err(error) => {
            out::problem(&error.to_string());
            Err(Ended::Failed)
        }
    }
}

fn row(one: &Connection) -> Vec<String> {
    let token = match (one.renews, one.until) {
        (true, _) => "renews itself".to_owned(),
        (false, None) => "does not end".to_owned(),
        (false, Some(until)) if until <= unix_seconds() => "has ended".to_owned(),
        (false, Some(until)) => format!("until {}", date::minute(until)),
    };
    vec![
        one.account.upstream.to_string(),
        out::tame(&one.who),
        date::minute(one.since),
        token,
        out::tame(one.scope.as_deref().unwrap_or("-")),
        out::tame(one.account.principal.as_str()),
    ]
}

fn as_json(one: &Connection) -> Json {
    let mut members = vec![
        ("upstream", Json::string(one.account.upstream.as_str())),
        ("principal", Json::string(one.account.principal.as_str())),
        ("who", Json::string(&one.who)),
        ("issuer", Json::string(&one.issuer)),
        ("since", Json::of(&one.since)),
        ("renews", Json::of(&one.renews)),
    ];
    members.extend(one.until.map(|until| ("until", Json::of(&until))));
    members.extend(
        one.scope
            .as_deref()
            .map(|scope| ("scope", Json::string(scope))),
    );
    meta::object_of(&members)
}
