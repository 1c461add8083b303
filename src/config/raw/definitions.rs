//! `validate:` and `definitions:`: what calls are held to, and what becomes of definitions that change.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::units::Ordered;

/// Whether calls are held to the schemas of their tools.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Validate {
    /// Arguments that do not fit inputSchema. Default: refuse.
    pub(in crate::config) arguments: Option<Arguments>,
    /// Results whose structuredContent does not fit outputSchema. Default: refuse.
    pub(in crate::config) results: Option<Results>,
}

/// The same for one upstream, and for its tools by globs over original names.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct UpstreamValidate {
    /// Arguments that do not fit inputSchema. Default: that of the top.
    pub(in crate::config) arguments: Option<Arguments>,
    /// Results whose structuredContent does not fit outputSchema. Default: that of the top.
    pub(in crate::config) results: Option<Results>,
    /// Tools that are treated otherwise; of several globs that match, the last counts: { "report_*": { results: flag } }.
    pub(in crate::config) tools: Ordered<Validate>,
}

/// What is done about arguments that do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Arguments {
    /// The call is answered with what is wrong and goes no further.
    Refuse,
    /// They are not looked at.
    Off,
}

/// What is done about results that do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Results {
    /// They are withheld.
    Refuse,
    /// They are noted, and go on.
    Flag,
    /// They are not looked at.
    Off,
}

/// What becomes of definitions that change after they were first seen.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Definitions {
    /// watch notes and shows changes, quarantine takes what is changed or new from the lists until `usher pins approve`, off
    /// does not look. Default: watch.
    pub(in crate::config) pin: Option<Pin>,
}

/// What becomes of definitions that change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Pin {
    /// They are noted and shown.
    Watch,
    /// They are not offered before somebody approves.
    Quarantine,
    /// Nobody looks.
    Off,
}
