//! Logs on stderr: for people on a terminal, JSON lines otherwise.

use tracing_subscriber::{EnvFilter, filter::ParseError, fmt, prelude::*};

use super::out;

/// Starts logging by `filter`, or by what suits a service; `quiet` is for commands that say everything themselves.
///
/// # Errors
/// When the filter cannot be read.
pub(super) fn start(filter: Option<&str>, quiet: bool) -> Result<(), ParseError> {
    let default = if quiet { "error" } else { "info" };
    let filter = EnvFilter::builder().parse(filter.unwrap_or(default))?;
    let registry = tracing_subscriber::registry().with(filter);
    let started = if out::notes_to_terminal() {
        registry
            .with(fmt::layer().with_writer(std::io::stderr).with_target(false))
            .try_init()
    } else {
        registry
            .with(
                fmt::layer()
                    .json()
                    .flatten_event(true)
                    .with_writer(std::io::stderr),
            )
            .try_init()
    };
    // A second start in one process is a test's: the first one's logs go on.
    drop(started);
    Ok(())
}
