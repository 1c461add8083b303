//! Configuration: a file is read, checked whole, and becomes a plan.
//!
//! Guarantees: every problem is reported at once, each with file, line, column and a hint; no message and no drawing shows
//! a secret; a plan exists only if nothing was wrong, but for somebody who [needs only a part](load_parts) of it and starts nothing.
//! Below this floor nobody has heard of a file.

mod plan;

mod check;
mod files;
mod hint;
mod loaded;
mod mcp_json;
mod problem;
mod raw;
mod reference;
mod render;
mod schema;
mod secrets;
mod starter;
mod tree;
mod typed;
mod units;
mod yaml;

use std::path::{Path, PathBuf};

pub use loaded::Loaded;
pub use mcp_json::{Export, Import, import, load_mcp_json};
pub use plan::{Plan, PolicyPlan, RENEWAL, StartCertificates};
pub use problem::{Problem, Rejected};
pub use reference::Vars;
pub use render::Colour;
pub use schema::schema;
pub use starter::{permit_line, starter, starter_policies, write_new};

/// Reads and checks the configuration at `path` and everything it includes; `vars` answers `${env:NAME}`.
///
/// # Errors
/// [`Rejected`] with everything that is wrong (SECURITY OPS-1, OPS-5).
pub fn load(path: &Path, vars: Vars<'_>) -> Result<Plan, Rejected> {
    let mut findings = problem::Findings::default();
    let plan =
        files::gather(path, vars, &mut findings).map(|tree| check::check(tree, &mut findings));
    findings.settle(plan)
}

/// Like [`load`], for a gateway that will serve: its certificates must be valid.
///
/// # Errors
/// As [`load`].
pub fn load_to_serve(path: &Path, vars: Vars<'_>) -> Result<Plan, Rejected> {
    let mut findings = problem::Findings {
        serves: true,
        ..problem::Findings::default()
    };
    let plan =
        files::gather(path, vars, &mut findings).map(|tree| check::check(tree, &mut findings));
    findings.settle(plan)
}

/// Like [`load_to_serve`], for a reload: a certificate already in use (`shown`) may have expired, since it goes on being shown
/// whatever is read.
///
/// # Errors
/// As [`load`].
pub fn load_again(
    path: &Path,
    vars: Vars<'_>,
    shown: &StartCertificates,
) -> Result<Plan, Rejected> {
    let mut findings = problem::Findings {
        serves: true,
        shown: shown.clone(),
        ..problem::Findings::default()
    };
    let plan =
        files::gather(path, vars, &mut findings).map(|tree| check::check(tree, &mut findings));
    findings.settle(plan)
}

/// Like [`load_to_serve`], and checks the files a start would read and the places it would write.
///
/// # Errors
/// As [`load`].
pub fn examine(path: &Path, vars: Vars<'_>) -> Result<Plan, Rejected> {
    let mut findings = problem::Findings {
        serves: true,
        ..problem::Findings::default()
    };
    let plan = files::gather(path, vars, &mut findings)
        .map(|tree| check::examine(tree, vars, &mut findings));
    findings.settle(plan)
}

/// Reads and checks the configuration at `path` for somebody who needs only these parts of it, such as `auth.keys`, or
/// `upstreams.*.url` for that of each. What is wrong elsewhere comes along with the plan, in which it is left out or left as it is
/// written: a key can be revoked where another part's secrets are not.
///
/// # Errors
/// [`Rejected`] where something is wrong with those parts, or with a file as a whole.
pub fn load_parts(
    path: &Path,
    vars: Vars<'_>,
    parts: &[&str],
) -> Result<(Plan, Option<Rejected>), Rejected> {
    let mut findings = problem::Findings::default();
    let tree = files::gather(path, vars, &mut findings);
    let Some(plan) = tree.map(|tree| check::check(tree, &mut findings)) else {
        return Err(findings.rejected());
    };
    if findings.problems.is_empty() {
        Ok((plan, None))
    } else if findings.spares(parts) {
        Ok((plan, Some(findings.rejected())))
    } else {
        Err(findings.rejected())
    }
}

/// The directory of policies that the configuration at `path` names, whatever else is wrong with it: policies can be worked on
/// where its secrets are not. The inner `None`: it has no `policy` block. `None`: it cannot be read.
pub fn policy_dir(path: &Path, vars: Vars<'_>) -> Option<Option<PathBuf>> {
    let mut findings = problem::Findings::default();
    let tree = files::gather(path, vars, &mut findings)?;
    Some(check::policy::dir(&tree, &findings))
}

/// The directory of records that the configuration at `path` names, whatever else is wrong with it: who reads records need not have
/// its secrets. The inner `None`: it names none. `None`: it cannot be read.
pub fn audit_dir(path: &Path, vars: Vars<'_>) -> Option<Option<PathBuf>> {
    let mut findings = problem::Findings::default();
    let tree = files::gather(path, vars, &mut findings)?;
    Some(check::audit::dir(&tree, &findings))
}

/// Checks the text of a configuration that we wrote ourselves: no file, no references.
///
/// # Errors
/// [`Rejected`] with everything that is wrong.
pub fn of_text(text: &str) -> Result<Plan, Rejected> {
    let mut findings = problem::Findings::default();
    let file = findings.add_source("built in".into());
    let plan = files::parse(text, file, Path::new("."), &|_| None, &mut findings)
        .map(|tree| check::check(tree, &mut findings));
    findings.settle(plan)
}

/// The time that a text such as `30d` spells.
pub(crate) fn time(text: &str) -> Option<std::time::Duration> {
    units::Time::parse(text).map(|time| time.0)
}

/// The variables of this process.
pub fn process_vars(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests;
