//! The command line: what can be said, and which file does it.
//!
//! Guarantees: exit code 0 when all is well, 1 when what was asked for failed, 2 for usage or configuration, 130 and 143 for
//! a one-off command that SIGINT or SIGTERM ended; results on stdout, everything else on stderr; colours on terminals only. Each
//! command is one file.

mod audit;
mod call;
mod catalog;
mod check;
mod client;
mod completions;
mod connections;
mod date;
mod demo;
mod gateway;
mod import;
mod init;
mod keys;
mod logs;
mod near;
mod out;
mod pins;
mod policy;
mod refused;
mod schema;
mod serve;
mod shown;
mod signals;
mod source;
mod stdio;
mod table;

#[cfg(test)]
mod tests;

use std::{process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use nix::sys::resource::{Resource, setrlimit};

/// An MCP gateway: one endpoint in front of many MCP servers, for every client, in every revision.
#[derive(Debug, Parser)]
#[command(name = "usher", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    /// Which logs are written to stderr, such as `debug` or `info,usher::upstream=debug`
    #[arg(long, global = true, value_name = "FILTER", env = "RUST_LOG")]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  usher demo                                three servers behind one endpoint, and what to try
  usher serve --mcp-json ~/.cursor/mcp.json the servers of an existing file behind one endpoint
  usher init && usher check && usher serve  a configuration of your own

Exit codes: 0 fine, 1 what was asked for failed, 2 usage or configuration; 130 and 143 where SIGINT or SIGTERM ended a one-off
command, with the servers that it had started";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Serve(serve::Args),
    Stdio(stdio::Args),
    Check(check::Args),
    Catalog(catalog::Args),
    Call(call::CallArgs),
    Read(call::ReadArgs),
    Prompt(call::PromptArgs),
    Import(import::Args),
    Init(init::Args),
    #[command(subcommand)]
    Keys(keys::Args),
    #[command(subcommand)]
    Policy(policy::Args),
    #[command(subcommand)]
    Connections(connections::Command),
    #[command(subcommand)]
    Audit(audit::Args),
    #[command(subcommand)]
    Pins(pins::Command),
    #[command(subcommand)]
    Schema(schema::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    DemoTravel,
}

/// How long it may take to drop what runs when a signal has ended the command.
const KILL: Duration = Duration::from_secs(1);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ended {
    /// All is well.
    Well,
    /// What was asked for failed.
    Failed,
    /// The usage or the configuration was wrong.
    Misused,
    /// SIGINT ended it before its time.
    Interrupted,
    /// SIGTERM ended it before its time.
    Terminated,
}

impl Ended {
    /// What a shell is told; of those that a signal ends, what it says of who dies of that signal.
    const fn code(self) -> u8 {
        match self {
            Self::Well => 0,
            Self::Failed => 1,
            Self::Misused => 2,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        Self::from(ended.code())
    }
}

/// Does what the arguments of this process say.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help that cannot be printed has nobody to be told.
            drop(error.print());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let serves = matches!(cli.command, Command::Serve(_) | Command::Stdio(_));
    let stays = serves || matches!(cli.command, Command::Demo(_));
    if stays {
        dump_no_core();
    }
    if let Err(error) = logs::start(cli.log.as_deref(), !serves) {
        out::problem(&format!("--log: {error}"));
        return Ended::Misused.into();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(obey(cli.command));
            // A read of stdin that nobody waits for any more must not keep the process.
            match ended {
                Ended::Failed if !stays => runtime.shutdown_background(),
                Ended::Well | Ended::Misused => runtime.shutdown_background(),
                // There may be servers that were not given the time to end: they are killed when what runs them is dropped.
                Ended::Failed | Ended::Interrupted | Ended::Terminated => {
                    runtime.shutdown_timeout(KILL);
                }
            }
            match out::unwritten() {
                // What a gateway that serves says of itself is no result.
                Some(error) if !serves => {
                    out::problem(&format!("not all of the results are written: {error}"));
                    ended.max(Ended::Failed).into()
                }
                Some(_) | None => ended.into(),
            }
        }
        Err(error) => {
            out::problem(&format!("the runtime does not start: {error}"));
            Ended::Failed.into()
        }
    }
}

/// What holds credentials for long leaves none of them on disk when it crashes (SECURITY 10); nor do the programs that it
/// starts, which inherit that. Before any configuration is read.
fn dump_no_core() {
    if let Err(error) = setrlimit(Resource::RLIMIT_CORE, 0, 0) {
        out::note(&format!("core dumps cannot be turned off: {error}"));
    }
}

async fn obey(command: Command) -> Ended {
    match command {
        Command::Demo(args) => Box::pin(demo::run(args)).await,
        Command::Serve(args) => Box::pin(serve::run(args)).await,
        Command::Stdio(args) => Box::pin(stdio::run(args)).await,
        Command::Check(args) => Box::pin(check::run(args)).await,
        Command::Catalog(args) => Box::pin(catalog::run(args)).await,
        Command::Call(args) => Box::pin(call::call(args)).await,
        Command::Read(args) => Box::pin(call::read(args)).await,
        Command::Prompt(args) => Box::pin(call::prompt(args)).await,
        Command::Import(args) => import::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Policy(args) => Box::pin(policy::run(args)).await,
        Command::Connections(command) => Box::pin(connections::run(command)).await,
        Command::Audit(args) => Box::pin(audit::run(args)).await,
        Command::Pins(command) => pins::run(command),
        Command::Schema(args) => schema::run(args),
        Command::Completions(args) => completions::run(args),
        Command::DemoTravel => match crate::demo::travel_stdio().await {
            Ok(()) => Ended::Well,
            Err(error) => {
                out::problem(&error.to_string());
                Ended::Failed
            }
        },
    }
}
