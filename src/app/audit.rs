//! Audit: opens the log that calls are recorded in, and closes it as the last thing of all.

use super::HomeError;
use crate::{
    audit::home::{Home, default_directory},
    call,
    config::{self, Plan},
};

/// Begins to record; `None` where that is switched off.
pub(super) fn open(plan: &Plan) -> Result<Option<Home>, HomeError> {
    let Some(spec) = &plan.audit else {
        return Ok(None);
    };
    let directory = spec.directory.clone();
    let directory = directory.unwrap_or_else(|| default_directory(&config::process_vars));
    // Checkpoints are kept elsewhere by whoever collects the logs (SECURITY AUD-4).
    let outside = Box::new(|signed: &crate::audit::log::Signed| tracing::info!("{signed}"));
    let home = Home::open(spec, &directory, &call::process(), String::new(), outside)?;
    if let Some(recovered) = home.recovered.filter(|recovered| recovered.cut > 0) {
        tracing::warn!(
            bytes = recovered.cut,
            last = recovered.last.seq,
            "the audit log of the process before ended in the middle of a record, which was cut off"
        );
    }
    tracing::info!(directory = %home.directory.display(), key = %home.key, "calls are recorded");
    Ok(Some(home))
}

/// Ends the recording, after everything that was to be recorded.
pub(super) fn close(recording: Option<Home>) {
    drop(recording);
}
