//! `policy:`, and what the operator says of items for it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// Default of `policy.dir`.
pub(in crate::config) const DIR: &str = "policies";

/// Who may do what. Without this block nobody may use anything where there is `auth`, and everybody everything where there is not.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Policy {
    /// The directory with *.cedar, groups.yaml and cases.yaml, relative to this file; watched for changes. Default: policies.
    pub(in crate::config) dir: Option<String>,
    /// Refuses a changed directory while a case of its cases.yaml comes out otherwise than expected, or is about what nobody offers.
    /// The set of a start is not refused for that, nor one that breaks a case by what servers offer later; it is told. Default: false.
    pub(in crate::config) enforce_cases: bool,
}

/// Tags of what an upstream offers, by globs over original names and URIs; policies ask for them.
pub(in crate::config) type Tags = BTreeMap<String, Vec<String>>;

/// What a tool does, as the operator knows it: policies go by this, never by what the upstream claims.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Annotations {
    /// It changes nothing.
    pub(in crate::config) read_only: Option<bool>,
    /// It may destroy.
    pub(in crate::config) destructive: Option<bool>,
    /// Twice is as good as once.
    pub(in crate::config) idempotent: Option<bool>,
    /// It reaches outside a closed world.
    pub(in crate::config) open_world: Option<bool>,
}
