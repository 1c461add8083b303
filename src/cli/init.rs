//! `usher init`: a configuration to start from.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Ended, out};
use crate::config;

/// Write a commented usher.yaml to start from
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher init
  usher init gateway/usher.yaml

An existing file is left alone.")]
pub(super) struct Args {
    /// Where to write
    #[arg(default_value = "usher.yaml", value_name = "FILE")]
    file: PathBuf,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    match config::write_new(&args.file, config::STARTER) {
        Ok(()) => {
            let file = args.file.display();
            out::line(&format!("{file} is written; next: usher check -c {file}"));
            Ended::Well
        }
        Err(error) => {
            out::problem(&format!("{}: {error}", args.file.display()));
            Ended::Failed
        }
    }
}
