//! `usher completions`: completion scripts for shells.

use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Ended, out};

/// Print a completion script for a shell
#[derive(Debug, Clone, Copy, ClapArgs)]
#[command(after_help = "\
Examples:
  usher completions bash > ~/.local/share/bash-completion/completions/usher
  usher completions zsh > \"${fpath[1]}/_usher\"
  usher completions fish > ~/.config/fish/completions/usher.fish")]
pub(super) struct Args {
    /// Which shell
    shell: Shell,
}

/// Runs it.
pub(super) fn run(args: Args) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "usher", &mut script);
    out::raw(&script);
    Ended::Well
}
