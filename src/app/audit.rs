//! Audit: opens the log that calls are recorded in, and closes it as the last thing of all.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest as hash};

use super::HomeError;
use crate::{
    audit::{
        home::{Home, default_directory},
        journal::Journal,
    },
    call,
    config::{self, Loaded, Plan},
    findings::{Direction, Finding, Findings},
    sanitize::{Sanitizer, Scrubber},
    tasks::Tasks,
};

/// Begins to record; `None` where that is switched off.
pub(super) fn open(
    plan: &Plan,
    sanitizer: &Sanitizer,
    tasks: &Tasks,
) -> Result<Option<Home>, HomeError> {
    let Some(spec) = &plan.audit else {
        return Ok(None);
    };
    let directory = spec.directory.clone();
    let directory = directory.unwrap_or_else(|| default_directory(&config::process_vars));
    // Checkpoints are kept elsewhere by whoever collects the logs (SECURITY AUD-4).
    let outside = Box::new(|signed: &crate::audit::log::Signed| tracing::info!("{signed}"));
    let scrub = Arc::new(Scrubber::of(sanitizer));
    let config = digest(&plan.loaded);
    let home = Home::open(spec, &directory, &call::process(), config, scrub, outside)?;
    if let Some(recovered) = home.recovered.filter(|recovered| recovered.cut > 0) {
        tracing::warn!(
            bytes = recovered.cut,
            last = recovered.last.seq,
            "the audit log of the process before ended in the middle of a record, which was cut off"
        );
    }
    if let Some(signs) = home.replaced.signing {
        tracing::warn!(
            key = %signs.now, before = signs.before.map(tracing::field::display),
            "another key signs the audit log than before: older records are verified with the one before, which has to stay in \
             key.pub; if nobody changed it on purpose, find out who did"
        );
    }
    if home.replaced.digests {
        tracing::warn!(
            "digest.key is new beside audit records that are there: what is the same has other digests from now on; if nobody \
             changed it on purpose, find out who did"
        );
    }
    if let Some(missing) = home.missing {
        tracing::warn!(
            last = missing.last,
            known = missing.known,
            "audit records are missing that were there before: there is a key of an earlier start and no record, or a sink was given \
             newer ones than there are; if nobody moved them away on purpose, find out who did"
        );
    }
    match &home.directory {
        Some(directory) => {
            tracing::info!(directory = %directory.display(), key = %home.key, "calls are recorded");
        }
        None => tracing::info!(key = %home.key, "calls are recorded in lines, and in no file"),
    }
    let keeping = home.journal.clone().keep(tasks.token().clone());
    tasks.spawn_orderly(keeping);
    Ok(Some(home))
}

/// The SHA-256 of a configuration as operators see it: with references where secrets are.
pub(super) fn digest(loaded: &Loaded) -> String {
    let hash = hash(&SHA256, loaded.json().bytes());
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Notes what is found in definitions: that one is not what was approved, or is held.
pub(super) fn note_definitions(findings: &Findings, journal: &Journal) {
    let journal = journal.clone();
    findings.listen(Box::new(move |finding: &Finding| {
        if finding.direction == Direction::Definitions {
            journal.defined(finding);
        }
    }));
}

/// Ends the recording, after everything that was to be recorded.
pub(super) fn close(recording: Option<Home>) {
    drop(recording);
}
