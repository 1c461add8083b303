//! `admin:`: where operators come in, and by which credentials.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{super::units::Secret, ListenTls};

/// Default of `admin.address`.
pub(in crate::config) const ADDRESS: &str = "127.0.0.1:8809";

/// The listener for operators: health, metrics, and the API under /api. Without this block there is none. Of `usher serve`
/// only: `usher stdio` listens nowhere.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Admin {
    /// IP address and port. Default: 127.0.0.1:8809. Others than loopback need tls, hosts and a token.
    pub(in crate::config) address: Option<String>,
    /// Host names that may be used for it, beside the loopback names. With any, health and metrics need a token too.
    pub(in crate::config) hosts: Vec<String>,
    /// TLS.
    pub(in crate::config) tls: Option<ListenTls>,
    /// What operators come with, as a bearer token: at least 32 characters. Default: made at each start, and shown.
    pub(in crate::config) token: Option<Secret>,
    /// What auditors come with, who look at everything and change nothing. Default: nobody is one.
    pub(in crate::config) auditor_token: Option<Secret>,
}
