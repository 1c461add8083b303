//! `usher schema`: descriptions for editors and other tools.

use clap::Subcommand;

use super::{Ended, out};
use crate::config;

/// Print schemas, for editors
#[derive(Debug, Clone, Copy, Subcommand)]
#[command(after_help = "\
Examples:
  usher schema config > usher.schema.json
  # and on top of usher.yaml:  # yaml-language-server: $schema=usher.schema.json")]
pub(super) enum Args {
    /// JSON Schema of usher.yaml
    #[command(after_help = "Example:\n  usher schema config > usher.schema.json")]
    Config,
}

/// Runs it.
pub(super) fn run(args: Args) -> Ended {
    match args {
        Args::Config => out::line(config::schema().as_str()),
    }
    Ended::Well
}
