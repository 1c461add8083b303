//! `usher stdio`: the same gateway on stdin and stdout, for hosts that launch a command.

use clap::Args as ClapArgs;

use super::{Ended, serve, source::Source};

/// Run the gateway on stdin and stdout, for hosts that launch a command
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher stdio -c usher.yaml
  claude mcp add usher -- usher stdio -c /path/to/usher.yaml

Ends when stdin does. Logs go to stderr.
SIGTERM and SIGINT let what is in flight end, for 5 seconds, and it ends with exit code 0; a second one waits for no call,
and it ends with exit code 1.")]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

/// Runs it.
pub(super) async fn run(args: Args) -> Ended {
    serve::stdio(&args.source).await
}
