//! `usher policy explain`: why somebody may do a thing or not, and what would change it.

use std::{net::IpAddr, sync::Arc, time::SystemTime};

use bytes::Bytes;
use clap::Args as ClapArgs;

use super::Question;
use crate::{
    cli::{Ended, out, table},
    json::{Json, Kind, Limits},
    policy::{Ask, Circumstances, Explanation, Somebody, State, moment},
    protocol::Revision,
};

/// Explain a decision: who, what, with which arguments; which policies decide, and what would change it
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher policy explain --user ana --call github_delete_repo --args '{\"repo\":\"acme/site\"}'
  usher policy explain --connect --user ana --group staff --read docs+file:///handbook.md
  usher policy explain --user ana --group oncall --at 2026-11-21T03:00:00Z --call db_run_query
  usher policy explain --key ci --call github_create_issue --connect --json | jq -r .decision

With --connect the answer is the one that the gateway gives: the same items with their tags, pinned annotations and
toolsets. Without it, items are those of cases.yaml. Groups of groups.yaml are known; those that a token brings are given
with --group.")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    who: Who,
    #[command(flatten)]
    question: Question,
    /// The arguments, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// Whence the client connects
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// When, such as 2026-11-21T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<SystemTime>,
}

/// Who asks; nobody named is somebody anonymous.
#[derive(Debug, ClapArgs)]
pub(super) struct Who {
    /// A person
    #[arg(long, conflicts_with_all = ["agent", "key"])]
    user: Option<String>,
    /// An OAuth client that acts for itself
    #[arg(long, conflicts_with = "key")]
    agent: Option<String>,
    /// An API key
    #[arg(long)]
    key: Option<String>,
    /// A group that the credential names; may be repeated
    #[arg(long, value_name = "GROUP")]
    group: Vec<String>,
    /// A scope that was granted; may be repeated
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// The tenant
    #[arg(long)]
    tenant: Option<String>,
    /// The OAuth client that acts for them
    #[arg(long)]
    client: Option<String>,
    /// The issuer of the token
    #[arg(long)]
    issuer: Option<String>,
    /// Who answers for the API key
    #[arg(long)]
    owner: Option<String>,
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    let arguments = match Json::parse(Bytes::from(args.args.into_bytes()), &Limits::CLIENT) {
        Ok(arguments) if arguments.root().kind() == Kind::Object => arguments,
        Ok(_) => {
            out::problem("--args: not a JSON object");
            return Ended::Misused;
        }
        Err(error) => {
            out::problem(&format!("--args: {error}"));
            return Ended::Misused;
        }
    };
    let (prepared, action, item) = match args.question.read().await {
        Ok(read) => read,
        Err(ended) => return ended,
    };
    let (_, name) = args.question.done.action();
    let who = Somebody {
        user: args.who.user,
        agent: args.who.agent,
        key: args.who.key,
        groups: args.who.group,
        tenant: args.who.tenant,
        scopes: args.who.scope,
        client: args.who.client,
        issuer: args.who.issuer,
        owner: args.who.owner,
    };
    let Some(identity) = who.identity() else {
        out::problem("one of --user, --agent and --key, not several");
        return Ended::Misused;
    };
    let explanation = prepared.explain(&Ask {
        who: &identity,
        action,
        item: item.subject(),
        arguments: Some(&arguments),
        circumstances: Circumstances {
            revision: Revision::LATEST_MODERN,
            address: args.address,
            toolset: args.question.toolset.as_deref(),
            now: args.at.unwrap_or_else(SystemTime::now),
        },
    });
    if args.question.basis.json {
        out::line(Json::of(&explanation).as_str());
    } else {
        print(
            &explanation,
            &format!(
                "{} may {}{} `{name}`",
                identity.name,
                if explanation.text.is_some() {
                    "not "
                } else {
                    ""
                },
                action.name()
            ),
        );
    }
    Ended::Well
}

fn print(explanation: &Explanation, sentence: &str) {
    let sentence = out::tame(sentence);
    let word = match explanation.decision {
        "allow" => out::paint(out::GREEN, "yes"),
        "approval" => out::paint(out::YELLOW, "after approval"),
        _ => out::paint(out::RED, "no"),
    };
    out::line(&format!("{word}: {sentence}"));
    if explanation.decision == "approval" {
        out::line("  a human is asked first, each time");
    }
    if let Some(text) = &explanation.text {
        if explanation.listed {
            out::line(&format!("  {}: {}", explanation.decision, out::tame(text)));
        } else {
            out::line("  it is not listed for them, and answers as if it were not there");
        }
    }
    let item = &explanation.item;
    let mut known = vec![format!("{} of the upstream {}", item.name, item.upstream)];
    known.extend(item.pinned.iter().cloned());
    let listed = |word: &str, names: &[Arc<str>]| {
        (!names.is_empty()).then(|| format!("{word} {}", names.join(", ")))
    };
    known.extend(listed("tagged", &item.tags));
    known.extend(listed("in the toolset", &item.toolsets));
    out::line(&format!("\n  what  {}", out::tame(&known.join("; "))));
    let within = match &explanation.within[..] {
        [] => "in no group that a policy names".to_owned(),
        within => format!("in {}", within.join(", ")),
    };
    out::line(&format!(
        "  who   {}",
        out::tame(&format!("{}, {within}", explanation.who))
    ));
    let rows: Vec<Vec<String>> = explanation
        .policies
        .iter()
        .map(|weighed| {
            let state = match &weighed.state {
                State::Applies => "applies".to_owned(),
                State::ConditionsFail => "conditions do not hold".to_owned(),
                State::MeantFor(whom) => format!("meant for {whom}"),
                State::Fails(_) => "cannot be evaluated".to_owned(),
            };
            let name = weighed.policy.to_string();
            [
                name,
                weighed.effect.to_owned(),
                state,
                weighed.place.clone(),
            ]
            .map(|text| out::tame(&text))
            .to_vec()
        })
        .collect();
    if !rows.is_empty() {
        let heading = ["POLICY", "EFFECT", "HERE", "PLACE"];
        out::line(&format!("\n{}", table::aligned(&heading, &rows)));
    }
    if !explanation.changes.is_empty() {
        out::line(&format!(
            "\n{}",
            out::paint(out::BOLD, "What would change it")
        ));
        for change in &explanation.changes {
            out::line(&format!("  {}", out::tame(change)));
        }
    }
}
