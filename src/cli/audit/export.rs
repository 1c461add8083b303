//! `usher audit export`: records in the forms that other systems take.

use clap::{Args as ClapArgs, ValueEnum, value_parser};

use super::{log_dir::LogDir, unreadable};
use crate::{
    audit::{
        chain::MAX_SEQ,
        export::{self, Resource, ocsf},
        follow::Follower,
    },
    cli::{Ended, out},
};

/// How many records and bytes are taken at once: of OpenTelemetry, one request.
const BATCH: (usize, usize) = (512, 1 << 20);

/// Write records as OCSF events or OpenTelemetry log records
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher audit export --format ocsf                   every record, one event a line: API Activity for calls
  usher audit export --format otel > logs.jsonl      one OTLP request a line, as collectors read them from files
  usher audit export --format ocsf --after 120394    those after the last one exported before

When it is done, the number to go on with is told on stderr; with --json as the last line there. Each event has its record's
number (`metadata.sequence`, `usher.audit.seq`), its hash, and the whole record.")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    log_dir: LogDir,
    /// In which form
    #[arg(long, value_enum)]
    format: Format,
    /// Those after the record of this number
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = value_parser!(u64).range(..=MAX_SEQ))]
    after: u64,
    /// What the gateway is called: `service.name`
    #[arg(long, value_name = "NAME", default_value = "usher")]
    service: String,
    /// Tell where to go on as JSON: {"last":120394,"records":17}
    #[arg(long)]
    json: bool,
}

/// Forms of export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Open Cybersecurity Schema Framework 1.8.0, one event a line
    Ocsf,
    /// OpenTelemetry: OTLP in JSON, one request a line
    Otel,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    let logs = match args.log_dir.logs() {
        Ok(logs) => logs,
        Err(ended) => return ended,
    };
    let Some((directory, others)) = logs.split_first() else {
        return Ended::Failed;
    };
    for other in others {
        out::note(&format!(
            "{}: {} is a log of its own, of another process; name it to export it",
            out::paint(out::YELLOW, "note"),
            other.display()
        ));
    }
    let mut follower = Follower::after(directory, args.after);
    let (mut last, mut count, mut missed) = (args.after, 0, 0);
    loop {
        let batch = match follower.read(BATCH.0, BATCH.1) {
            Ok(batch) => batch,
            Err(error) => return unreadable(directory, &error),
        };
        if batch.is_empty() {
            break;
        }
        missed += batch.missed;
        let mut text = Vec::new();
        match args.format {
            Format::Ocsf => {
                for line in batch.lines() {
                    ocsf(&mut text, line);
                }
            }
            Format::Otel => {
                let resource = Resource {
                    service: args.service.clone(),
                    node: batch.node().to_owned(),
                };
                text.extend_from_slice(&export::logs(&resource, batch.lines()));
                text.push(b'\n');
            }
        }
        if !out::sent(&[&text]) {
            break;
        }
        last = batch.last;
        count += batch.count();
    }
    if missed > 0 && args.after > 0 {
        out::note(&format!(
            "{}: {missed} records after {} are not there any more",
            out::paint(out::YELLOW, "note"),
            args.after
        ));
    }
    if args.json {
        out::note(&format!(r#"{{"last":{last},"records":{count}}}"#));
    } else {
        out::note(&out::paint(
            out::DIM,
            &format!("{count} records; go on with --after {last}"),
        ));
    }
    Ended::Well
}
