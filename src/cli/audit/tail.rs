//! `usher audit tail`: the newest records, and those that come.

use std::{io, ops::ControlFlow, path::Path, thread, time::Duration};

use clap::Args as ClapArgs;

use super::{asked::Asked, log_dir::LogDir, row, unreadable};
use crate::{
    audit::{
        follow::{Batch, Follower},
        log::is_of_the_log,
        query::{Filter, Hit, Order, query},
    },
    cli::{Ended, out},
};

/// How often it is looked for new records.
const LOOK: Duration = Duration::from_millis(200);
/// How many records and bytes are taken at once.
const BATCH: (usize, usize) = (1_000, 1 << 20);

/// Show the newest records, and with -f those that come
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher audit tail                       the newest 20
  usher audit tail -f                    and those that come, until Ctrl-C
  usher audit tail -f --decision deny    who is refused what
  usher audit tail -f -n 0 --json | jq -c .record.event")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    log_dir: LogDir,
    #[command(flatten)]
    asked: Asked,
    /// Go on with those that come
    #[arg(short, long)]
    follow: bool,
    /// How many of those that are there
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    lines: usize,
    /// Print each as a line of JSON, as it stands in the file
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    let logs = match args.log_dir.logs() {
        Ok(logs) => logs,
        // There may be one soon.
        Err(_) if args.follow => match args.log_dir.path() {
            Ok(directory) => vec![directory],
            Err(ended) => return ended,
        },
        Err(ended) => return ended,
    };
    let filter = args.asked.filter().as_written();
    let (mut there, mut followers) = (Vec::new(), Vec::new());
    for log in &logs {
        match newest(args, log, &filter) {
            Ok((last, its)) => {
                there.extend(its);
                followers.push(Follower::after(log, last));
            }
            Err(error) if args.follow && error.kind() == io::ErrorKind::NotFound => {
                followers.push(Follower::after(log, 0));
            }
            Err(error) => return unreadable(log, &error),
        }
    }
    there.sort();
    let surplus = there.len().saturating_sub(args.lines);
    for (_, line) in there.split_off(surplus) {
        if !out::sent(&[line.as_bytes(), b"\n"]) {
            return Ended::Well;
        }
    }
    if args.follow {
        follow(args, &mut followers, &filter);
    }
    Ended::Well
}

/// What is shown of what is there, with the time of each, and the number of the last record, of whatever kind.
fn newest(args: &Args, log: &Path, filter: &Filter) -> io::Result<(u64, Vec<(String, String)>)> {
    let (mut last, mut lines) = (0, Vec::new());
    // The newest of all is where following begins.
    query(log, &Filter::default(), Order::Newest, |hit| {
        last = hit.seq;
        ControlFlow::Break(())
    })?;
    if args.lines > 0 {
        query(log, filter, Order::Newest, |hit| {
            if hit.seq <= last
                && let Some(line) = shown(args, &hit)
            {
                lines.push((hit.entry.time, line));
            }
            if lines.len() < args.lines {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
    }
    lines.reverse();
    Ok((last, lines))
}

fn follow(args: &Args, followers: &mut [Follower], filter: &Filter) {
    let mut troubled = None;
    loop {
        let mut idle = true;
        let mut trouble = None;
        for follower in &mut *followers {
            // What cannot be read now may be read later: the gateway may turn its log just now.
            let batch = follower.read(BATCH.0, BATCH.1).unwrap_or_else(|error| {
                trouble = Some(error.to_string());
                Batch::default()
            });
            idle &= batch.is_empty();
            for hit in batch.lines().filter_map(|line| filter.matched(line)) {
                if let Some(line) = shown(args, &hit)
                    && !out::sent(&[line.as_bytes(), b"\n"])
                {
                    return;
                }
            }
        }
        if let Some(error) = &trouble
            && troubled != trouble
        {
            out::note(&format!(
                "{}: the records cannot be read just now: {error}",
                out::paint(out::YELLOW, "note")
            ));
        }
        troubled = trouble;
        if idle {
            thread::park_timeout(LOOK);
        }
    }
}

/// As it is shown, if it is.
fn shown(args: &Args, hit: &Hit<'_>) -> Option<String> {
    if !args.asked.is_of_a_kind() && is_of_the_log(hit.event) {
        return None;
    }
    Some(if args.json {
        String::from_utf8_lossy(hit.line).into_owned()
    } else {
        row::line(hit)
    })
}
