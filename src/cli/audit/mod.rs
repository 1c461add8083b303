//! `usher audit`: what happened, from the files alone; no gateway has to run.
//!
//! Guarantees: reads and never writes; verifying needs the public key and nothing else; text from records is shown without what
//! a terminal would act upon.

mod asked;
mod export;
mod log_dir;
mod query;
mod row;
mod tail;
mod verify;

use clap::Subcommand;

use super::{Ended, out};

/// Verify, search, watch and export the audit records
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  usher audit verify                           is the log whole, and signed by us?
  usher audit query --principal ana --since 1h what ana did in the last hour
  usher audit query --ref 3f9a-17              one call, by the reference that its client was told
  usher audit tail -f                          what happens now
  usher audit export --format ocsf --after 0   everything, for another system

The directory is that of the configuration; `--dir` names another, such as a copy on another machine.")]
pub(super) enum Args {
    Verify(verify::Args),
    Query(query::Args),
    Tail(tail::Args),
    Export(export::Args),
}

/// Runs it. It reads files and computes for as long as that takes, on a thread for that.
pub(super) async fn run(args: Args) -> Ended {
    let done = tokio::task::spawn_blocking(move || match args {
        Args::Verify(args) => verify::run(&args),
        Args::Query(args) => query::run(&args),
        Args::Tail(args) => tail::run(&args),
        Args::Export(args) => export::run(&args),
    });
    done.await.unwrap_or(Ended::Failed)
}

/// A file that cannot be read.
fn unreadable(directory: &std::path::Path, error: &std::io::Error) -> Ended {
    out::problem(&format!("{}: {error}", directory.display()));
    Ended::Failed
}
