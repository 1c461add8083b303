//! `cases.yaml`: what a set of policies is meant to decide, so that a change which decides otherwise is seen.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{groups::yaml_problem, problem::Problem};

/// The name of the file.
pub(super) const FILE: &str = "cases.yaml";

/// One case.
#[derive(Debug, Clone)]
pub(super) struct Case;

pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Case>, Problem> {
    #[derive(Deserialize)]
    struct Raw(BTreeMap<String, String>);
    let raw: Raw = serde_saphyr::from_str(text).map_err(|error| yaml_problem(file, &error))?;
    drop(raw.0);
    Ok(Vec::new())
}
