//! Upstreams that people log in to, and where what they are given is kept.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::units::Secret;

/// People log in to the upstream, each with an account of their own (OAuth authorization code with PKCE). Whoever calls without
/// having logged in is sent to a page of this gateway first.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct AuthorizationCode {
    /// The client that this gateway is at the authorization server. Default: it registers itself.
    pub(in crate::config) client_id: Option<String>,
    /// Its secret: "${file:/path}". Default: a public client.
    pub(in crate::config) client_secret: Option<Secret>,
    /// How it registers itself where there is no client_id. Default: auto.
    pub(in crate::config) registration: Option<Registering>,
    /// What is asked for. Default: what the upstream's metadata names.
    pub(in crate::config) scopes: Option<Vec<String>>,
    /// The authorization server, as it calls itself. Default: the one that the upstream names (RFC 9728).
    pub(in crate::config) issuer: Option<String>,
    /// Where people log in, for a server without metadata that checks PKCE; with token_url and client_id.
    pub(in crate::config) authorize_url: Option<String>,
    /// Where codes become tokens, for a server without metadata.
    pub(in crate::config) token_url: Option<String>,
    /// What tokens are asked for (RFC 8707). Default: what the upstream's metadata says, or else its url.
    pub(in crate::config) resource: Option<String>,
}

/// How this gateway becomes a client of an authorization server.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Registering {
    /// With a metadata document where the server takes one, else dynamically.
    Auto,
    /// With a client id metadata document, which the connect page serves; needs https.
    Document,
    /// With RFC 7591.
    Dynamic,
}

/// What people are given for upstreams that they log in to.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Connections {
    /// A directory for encrypted files, which only the gateway may look into, relative to this file. Default: in memory, so that everybody logs in
    /// again after a restart.
    pub(in crate::config) store: Option<String>,
    /// What the files are encrypted with, each at least 32 bytes: the first encrypts, all decrypt. To change the key, put the
    /// new one first.
    pub(in crate::config) keys: Vec<Secret>,
    /// Where browsers reach this gateway, such as https://mcp.example.com. Default: the address that it listens at, on loopback.
    pub(in crate::config) url: Option<String>,
    /// Roots to trust at authorization servers instead of the system's, in PEM; at an upstream its own `tls` counts, where it has any.
    pub(in crate::config) ca: Option<String>,
}
