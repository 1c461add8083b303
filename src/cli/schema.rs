//! `usher schema`: descriptions for editors and other tools.

use clap::Subcommand;

use super::{Ended, out};
use crate::{audit, config};

/// Print schemas, for editors and for programs that read records
#[derive(Debug, Clone, Copy, Subcommand)]
#[command(after_help = "\
Examples:
  usher schema config > usher.schema.json
  # and on top of usher.yaml:  # yaml-language-server: $schema=usher.schema.json
  usher schema audit > audit.schema.json        for whoever reads records")]
pub(super) enum Args {
    /// JSON Schema of usher.yaml
    #[command(after_help = "Example:\n  usher schema config > usher.schema.json")]
    Config,
    /// JSON Schema of a line of the audit log
    #[command(after_help = "Example:\n  usher schema audit > audit.schema.json")]
    Audit,
}

/// Runs it.
pub(super) fn run(args: Args) -> Ended {
    match args {
        Args::Config => out::line(config::schema().as_str()),
        Args::Audit => out::line(audit::LINE_SCHEMA.trim_end()),
    }
    Ended::Well
}
