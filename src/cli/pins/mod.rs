//! `usher pins`: which definitions are not what was approved, how they differ, and approving them.

mod clean;

use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs, Subcommand};

use super::{Ended, out, source::Source, table};
use crate::{
    catalog::is_hidden,
    config::Plan,
    json::{Json, Kind},
    pins::{Difference, Pin, Record, State, Store, StoreError, differences},
    protocol::{UpstreamId, meta},
};

use clean::{Change, Clean, Shown};

/// Definitions that changed after they were first seen: status, diff and approve
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  usher pins status                            what is not as it was approved
  usher pins diff github                       how it differs, item by item
  usher pins approve github create_issue       takes what one item is now
  usher pins approve github --all              takes everything that this server offers now

A running gateway that uses the same `state.dir` follows within a second.")]
pub(super) enum Command {
    /// Show which definitions changed, are new, or are gone
    Status(Args),
    /// Show how definitions differ from what was approved
    Diff(Args),
    /// Approve what is offered now
    Approve(ApproveArgs),
}

/// See [`Command::Status`].
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher pins status                            of all upstreams
  usher pins diff github create_issue          one item of one upstream
  usher pins status --json | jq -r '.[] | select(.state == \"changed\") | .name'")]
pub(super) struct Args {
    /// The upstream's key
    upstream: Option<String>,
    /// The item, by its server's own name or URI
    name: Option<String>,
    /// Tell of definitions that are as they were approved, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// See [`Command::Approve`].
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher pins approve github create_issue       takes what one item is now
  usher pins approve github create_issue --digest 3f0c
                                               only if it still is what `usher pins diff` showed
  usher pins approve github --all              takes everything that this server offers now")]
#[command(group = ArgGroup::new("which").required(true))]
#[command(override_usage = "usher pins approve [OPTIONS] <UPSTREAM> <NAMES...|--all>")]
pub(super) struct ApproveArgs {
    /// The upstream's key
    upstream: String,
    /// The items, by their server's own names or URIs; `instructions` for what the server says of itself
    #[arg(group = "which")]
    names: Vec<String>,
    /// Everything
    #[arg(long, group = "which")]
    all: bool,
    /// What the digest of the item has to begin with
    #[arg(long, value_name = "HEX", conflicts_with = "all")]
    digest: Option<String>,
    #[command(flatten)]
    source: Source,
    /// Print what is approved as JSON
    #[arg(long)]
    json: bool,
}

/// One definition that was taken as it is, as JSON.
#[derive(Debug, serde::Serialize)]
struct Taken<'a> {
    upstream: &'a str,
    sort: &'a str,
    name: &'a str,
    /// `approved`, or `forgotten` where it is gone.
    outcome: &'a str,
    /// How it stood before.
    was: &'a str,
    digest: &'a str,
}

/// Runs it.
pub(super) fn run(command: Command) -> Ended {
    match command {
        Command::Status(args) => shown(&args, status),
        Command::Diff(args) => shown(&args, diff),
        Command::Approve(args) => approve(&args),
    }
}

/// One definition, and whose.
struct Row<'a> {
    upstream: &'a UpstreamId,
    sort: &'static str,
    name: &'a str,
    pin: &'a Pin,
    clean: &'a Clean,
}

fn shown(args: &Args, show: fn(&[Row<'_>])) -> Ended {
    let (store, clean) = match open(&args.source) {
        Ok(opened) => opened,
        Err(ended) => return ended,
    };
    let clean = &clean;
    let (records, failed) = match records(&store, args.upstream.as_deref()) {
        Ok(read) => read,
        Err(error) => {
            out::problem(&error.to_string());
            return Ended::Failed;
        }
    };
    if let Some(unknown) = unknown(args, &records) {
        // What could not be read is told already.
        if !failed {
            out::problem(&unknown);
        }
        return Ended::Failed;
    }
    let rows: Vec<_> = records
        .iter()
        .flat_map(|(upstream, record)| {
            record.pins().map(move |(sort, name, pin)| Row {
                upstream,
                sort,
                name,
                pin,
                clean,
            })
        })
        .filter(|row| args.all || row.pin.state() != State::Approved)
        .filter(|row| {
            args.name
                .as_deref()
                .is_none_or(|name| name == called(row.sort, row.name))
        })
        .collect();
    if args.json {
        let all: Vec<Json> = rows.iter().map(as_json).collect();
        out::line(Json::array(&all).as_str());
    } else if !rows.is_empty() {
        show(&rows);
    } else if !records.is_empty() {
        out::note("everything is as it was approved");
    } else if !failed {
        out::note(
            "nothing has been seen yet: what servers offer is kept once a gateway with this `state.dir` has reached them",
        );
    }
    if failed { Ended::Failed } else { Ended::Well }
}

/// That nothing is known of what is asked for, where that is so.
fn unknown(args: &Args, records: &[(UpstreamId, Record)]) -> Option<String> {
    let upstream = args.upstream.as_deref()?;
    let Some((_, record)) = records.first() else {
        return Some(unheard_of(upstream));
    };
    let wanted = args.name.as_deref()?;
    let known = record
        .pins()
        .any(|(sort, name, _)| called(sort, name) == wanted);
    (!known).then(|| absent(upstream, wanted, "of that name"))
}

fn unheard_of(upstream: &str) -> String {
    format!("nothing is known of `{}` yet", visible(upstream))
}

fn absent(upstream: &str, name: &str, why: &str) -> String {
    let (upstream, name) = (visible(upstream), visible(name));
    format!(
        "`{name}`: nothing of `{upstream}` {why}; `usher pins status --all` shows what there is"
    )
}

fn status(rows: &[Row<'_>]) {
    let lines: Vec<_> = rows
        .iter()
        .map(|row| {
            let state = match row.pin.state() {
                state @ (State::Changed | State::New) => out::paint(out::YELLOW, state.word()),
                state @ (State::Gone | State::Approved) => state.word().to_owned(),
            };
            let like = row
                .pin
                .like()
                .map(|like| format!("may be `{}` renamed", row.shown(like)));
            let held = row
                .pin
                .held()
                .map(|why| format!("holds {}", row.shown(why)));
            vec![
                row.upstream.to_string(),
                row.sort.to_owned(),
                row.shown(called(row.sort, row.name)),
                state,
                row.pin.digest().chars().take(12).collect(),
                like.or(held).unwrap_or_default(),
            ]
        })
        .collect();
    let heading = ["UPSTREAM", "SORT", "NAME", "STATE", "DIGEST", "NOTE"];
    out::line(&table::aligned(&heading, &lines));
}

fn diff(rows: &[Row<'_>]) {
    for row in rows {
        let title = format!(
            "{} {} {}: {}",
            row.upstream,
            row.sort,
            row.shown(called(row.sort, row.name)),
            row.pin.state().word()
        );
        out::line(&out::paint(out::BOLD, &title));
        out::line(&format!("  digest {}", row.pin.digest()));
        if let Some(like) = row.pin.like() {
            out::line(&format!(
                "  may be `{}` renamed, which is gone",
                row.shown(like)
            ));
        }
        if let Some(why) = row.pin.held() {
            out::line(&format!(
                "  may be an attempt on the model: holds {}",
                row.shown(why)
            ));
        }
        match row.changes() {
            Some(changes) => changes.iter().for_each(difference),
            None => out::line("  too long to be kept: only its digest is known"),
        }
        out::line("");
    }
}

/// How a pin differs from what was approved, where that is known: of what is new, everything; of what is gone, nothing.
fn changes(pin: &Pin) -> Option<Vec<Difference>> {
    let empty = Json::empty_object();
    Some(match (pin.state(), pin.texts()) {
        (State::Gone | State::Approved, _) => Vec::new(),
        (State::New, (_, Some(after))) => differences(&empty, after),
        (State::Changed, (Some(before), Some(after))) => differences(before, after),
        (State::New | State::Changed, _) => return None,
    })
}

fn difference(difference: &Change) {
    let path = match difference.path.as_str() {
        "" => "(the whole)",
        path => path.trim_start_matches('/'),
    };
    out::line(&format!("  {}", visible(path)));
    for (json, sign, style) in [
        (&difference.before, '-', out::RED),
        (&difference.after, '+', out::GREEN),
    ] {
        let Some(json) = json else { continue };
        let root = json.root();
        let text = match root.kind() {
            Kind::String => root.as_str().unwrap_or_default().into_owned(),
            Kind::Object | Kind::Array | Kind::Number | Kind::Bool | Kind::Null => {
                json.as_str().to_owned()
            }
        };
        for line in text.split('\n') {
            out::line(&out::paint(style, &format!("    {sign} {}", visible(line))));
        }
    }
    match difference.shown {
        Shown::Seen => {}
        Shown::Alike => out::line("    differs within what is not shown"),
        Shown::Withheld => out::line("    cannot be shown; only its digest is known"),
    }
}

impl Row<'_> {
    /// What a server wrote, in one line, in which nothing is hidden but credentials.
    fn shown(&self, text: &str) -> String {
        visible(&self.clean.text(text))
    }

    /// The same of how it differs, as [`changes`] has it.
    fn changes(&self) -> Option<Vec<Change>> {
        let changes = changes(self.pin)?;
        if changes.is_empty() {
            return Some(Vec::new());
        }
        let (before, after) = self.pin.texts();
        let wholes = [before, after].map(|text| self.clean.whole(text?));
        let wholes = wholes.each_ref().map(Option::as_ref);
        let changes = changes.into_iter();
        Some(changes.map(|it| self.clean.change(it, wholes)).collect())
    }
}

fn approve(args: &ApproveArgs) -> Ended {
    let (store, clean) = match open(&args.source) {
        Ok(opened) => opened,
        Err(ended) => return ended,
    };
    let Some(upstream) = UpstreamId::parse(&args.upstream) else {
        out::problem(&format!("`{}` is no upstream", out::tame(&args.upstream)));
        return Ended::Failed;
    };
    let mut told = Vec::new();
    let mut unknown: Vec<&str> = args.names.iter().map(String::as_str).collect();
    let changed = store.lock().and_then(|locked| {
        locked.change(&upstream, |record| {
            let wanted: Vec<_> = record
                .pins()
                .filter(|(sort, name, _)| {
                    args.all || args.names.iter().any(|one| one == called(sort, name))
                })
                .filter(|(_, _, pin)| {
                    args.digest
                        .as_deref()
                        .is_none_or(|digest| pin.digest().starts_with(digest))
                })
                .map(|(sort, name, pin)| {
                    (sort, name.to_owned(), pin.state(), pin.digest().to_owned())
                })
                .collect();
            for (sort, name, state, digest) in wanted {
                unknown.retain(|one| *one != called(sort, &name));
                if record.approve(sort, &name) {
                    told.push((sort, name, state, digest));
                }
            }
        })
    });
    match changed {
        Err(error) => {
            out::problem(&error.to_string());
            return Ended::Failed;
        }
        Ok(None) => {
            out::problem(&unheard_of(upstream.as_str()));
            return Ended::Failed;
        }
        Ok(Some(())) => {}
    }
    for (sort, name, ..) in &mut told {
        *name = clean.text(called(sort, name));
    }
    let taken: Vec<_> = told
        .iter()
        .map(|(sort, name, state, digest)| Taken {
            upstream: upstream.as_str(),
            sort,
            name,
            outcome: if *state == State::Gone {
                "forgotten"
            } else {
                "approved"
            },
            was: state.word(),
            digest,
        })
        .collect();
    if args.json {
        out::line(Json::of(&taken).as_str());
    } else {
        for it in &taken {
            let digest: String = it.digest.chars().take(12).collect();
            out::line(&format!(
                "{}: {} {} ({}) {digest}",
                it.outcome,
                it.sort,
                visible(it.name),
                it.was
            ));
        }
    }
    for name in &unknown {
        let why = if args.digest.is_some() {
            "that is of this digest"
        } else {
            "of that name"
        };
        out::problem(&absent(upstream.as_str(), name, why));
    }
    if taken.is_empty() && unknown.is_empty() && !args.json {
        out::note("everything is as it was approved");
    }
    if unknown.is_empty() {
        Ended::Well
    } else {
        Ended::Failed
    }
}

/// The store of a configuration, and what takes credentials out of what is in it, as far as they are known here.
fn open(source: &Source) -> Result<(Store, Clean), Ended> {
    let take = |plan: Plan| -> Option<(PathBuf, Clean)> {
        let clean = Clean::of(&plan);
        Some((plan.pins.directory?, clean))
    };
    let Some((directory, clean)) = source.part(&["state.dir"], take)? else {
        out::problem(
            "`state.dir` is not set: pins are in the memory of the running gateway, and end with it",
        );
        return Err(Ended::Failed);
    };
    match Store::open(&directory) {
        Ok(store) => Ok((store, clean)),
        Err(error) => {
            out::problem(&error.to_string());
            Err(Ended::Failed)
        }
    }
}

/// The records of one upstream or all, and whether one could not be read, which is told.
fn records(
    store: &Store,
    one: Option<&str>,
) -> Result<(Vec<(UpstreamId, Record)>, bool), StoreError> {
    let (mut records, mut failed) = (Vec::new(), false);
    for upstream in store.upstreams()? {
        if one.is_some_and(|one| one != upstream.as_str()) {
            continue;
        }
        match store.read(&upstream) {
            Ok(record) => records.extend(record.map(|record| (upstream, record))),
            Err(error) => {
                out::problem(&error.to_string());
                failed = true;
            }
        }
    }
    Ok((records, failed))
}

/// What an item is called here: what a server says of itself has no name.
fn called<'a>(sort: &'a str, name: &'a str) -> &'a str {
    if name.is_empty() { sort } else { name }
}

fn as_json(row: &Row<'_>) -> Json {
    let mut members = vec![
        ("upstream", Json::string(row.upstream.as_str())),
        ("sort", Json::string(row.sort)),
        (
            "name",
            Json::string(&row.clean.text(called(row.sort, row.name))),
        ),
        ("state", Json::string(row.pin.state().word())),
        ("digest", Json::string(row.pin.digest())),
    ];
    let text = |text: &str| Json::string(&row.clean.text(text));
    members.extend(row.pin.like().map(|like| ("like", text(like))));
    members.extend(row.pin.held().map(|why| ("held", text(why))));
    if let Some(changes) = row.changes() {
        let changes: Vec<_> = changes
            .into_iter()
            .map(|it| {
                let mut members = vec![("path", Json::string(&it.path))];
                members.extend(it.before.map(|before| ("before", before)));
                members.extend(it.after.map(|after| ("after", after)));
                let alike = it.shown == Shown::Alike;
                members.extend(alike.then(|| ("alike", Json::of(&true))));
                let withheld = it.shown == Shown::Withheld;
                members.extend(withheld.then(|| ("withheld", Json::of(&true))));
                meta::object_of(&members)
            })
            .collect();
        members.push(("changes", Json::array(&changes)));
    }
    meta::object_of(&members)
}

/// Text of somebody else in which nothing is hidden.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\t' || is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_what_is_shown_is_hidden() {
        assert_eq!(
            visible("a\u{200b}b\u{1b}[2J\u{e0041}"),
            "a\\u{200b}b\\u{1b}[2J\\u{e0041}"
        );
        assert_eq!(visible("é\t"), "é\t");
    }
}
