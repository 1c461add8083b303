//! `usher audit query`: records that are like what is asked for.

use std::{
    collections::VecDeque,
    io,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use clap::Args as ClapArgs;

use super::{asked::Asked, log_dir::LogDir, row, unreadable};
use crate::{
    audit::{
        log::is_of_the_log,
        query::{Order, query},
    },
    cli::{Ended, out, table},
};

/// Find records by time, who, where, how it ended and more
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher audit query                                            the newest 100
  usher audit query --since 1h --principal ana                 what ana did in the last hour
  usher audit query --tool github_delete_repo --decision deny  who was refused it
  usher audit query --finding secret --json | jq .record.event # where secrets were found
  usher audit query --ref 3f9a-17                              one call: its decision and its outcome
  usher audit query --since 2026-11-01 --until 2026-12-01 --limit 0 --json > november.jsonl")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    log_dir: LogDir,
    #[command(flatten)]
    asked: Asked,
    /// How many of the newest are shown; 0 for all
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Print each as a line of JSON, as it stands in the file
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    let logs = match args.log_dir.logs() {
        Ok(logs) => logs,
        Err(ended) => return ended,
    };
    let limit = if args.limit == 0 {
        usize::MAX
    } else {
        args.limit
    };
    // All the records of one log go out as they are found; the newest have to be found from the end.
    if args.json && limit == usize::MAX && logs.len() == 1 {
        return all(args, &logs);
    }
    let mut found = Vec::new();
    let mut more = false;
    for log in &logs {
        match newest(args, log, limit) {
            Ok((its, there_are_more)) => {
                found.extend(its);
                more |= there_are_more;
            }
            Err(error) => return unreadable(log, &error),
        }
    }
    found.sort_by(|one, other| one.time.cmp(&other.time));
    let surplus = found.len().saturating_sub(limit);
    more |= surplus > 0;
    found.drain(..surplus);
    let mut rows = Vec::with_capacity(found.len());
    for Found { shown, .. } in found {
        match shown {
            Shown::Row(cells) => rows.push(cells),
            Shown::Line(line) => {
                if !out::sent(&[&line, b"\n"]) {
                    return Ended::Well;
                }
            }
        }
    }
    if args.json {
        return Ended::Well;
    }
    if rows.is_empty() {
        out::note("no record is like that");
    } else {
        out::line(&table::aligned(&row::HEADING, &rows));
    }
    if more {
        out::note(&out::paint(
            out::DIM,
            &format!("the newest {limit}; --limit shows more"),
        ));
    }
    Ended::Well
}

/// A record, and when it was written.
struct Found {
    time: String,
    shown: Shown,
}

enum Shown {
    Row(Vec<String>),
    Line(Vec<u8>),
}

/// The newest of one log, oldest first, and whether there are more.
fn newest(args: &Args, log: &Path, limit: usize) -> io::Result<(VecDeque<Found>, bool)> {
    let (mut found, mut more) = (VecDeque::new(), false);
    query(log, &args.asked.filter(), Order::Newest, |hit| {
        if !args.asked.is_of_a_kind() && is_of_the_log(hit.event) {
            return ControlFlow::Continue(());
        }
        if found.len() == limit {
            more = true;
            return ControlFlow::Break(());
        }
        let shown = if args.json {
            Shown::Line(hit.line.to_vec())
        } else {
            Shown::Row(row::cells(&hit.entry))
        };
        found.push_front(Found {
            time: hit.entry.time,
            shown,
        });
        ControlFlow::Continue(())
    })?;
    Ok((found, more))
}

/// Every record, as it is found.
fn all(args: &Args, logs: &[PathBuf]) -> Ended {
    for log in logs {
        let scanned = query(log, &args.asked.filter(), Order::Oldest, |hit| {
            let shown = args.asked.is_of_a_kind() || !is_of_the_log(hit.event);
            if !shown || out::sent(&[hit.line, b"\n"]) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        if let Err(error) = scanned {
            return unreadable(log, &error);
        }
    }
    Ended::Well
}
