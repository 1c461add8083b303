//! How a token for an upstream is got, as the file spells it.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::units::Secret;

/// A grant at an authorization server. Tokens are asked for with the upstream's url as their audience, kept in memory only, and
/// renewed before they end.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct TokenGrant {
    /// The authorization server of the upstream; its token endpoint is looked up in its metadata (RFC 8414). Either this or
    /// token_url.
    pub(in crate::config) issuer: Option<String>,
    /// Its token endpoint. Needed where that is neither public nor at the issuer's own address.
    pub(in crate::config) token_url: Option<String>,
    /// What this gateway is called there.
    #[schemars(required)]
    pub(in crate::config) client_id: Option<String>,
    /// Its secret: "${file:/path}" or "${env:NAME}".
    #[schemars(required)]
    pub(in crate::config) client_secret: Option<Secret>,
    /// How the two are shown. Default: basic.
    pub(in crate::config) client_auth: Option<ClientProof>,
    /// The resource that tokens are for (RFC 8707). Default: the upstream's url.
    pub(in crate::config) resource: Option<String>,
    /// A name for it beside that, where the server wants one. In id_jag: the issuer of the upstream's server; default: issuer.
    pub(in crate::config) audience: Option<String>,
    /// What is asked for. Default: what the server gives.
    pub(in crate::config) scopes: Vec<String>,
    /// PEM of the roots to trust at authorization servers instead of the system's.
    pub(in crate::config) ca: Option<String>,
    /// What the token is that a user came with; not in client_credentials. Default: access_token.
    pub(in crate::config) subject_token_type: Option<SubjectToken>,
    /// With what the upstream's lists are read: as each user, who alone then sees what was listed, or as this gateway, which
    /// then shows it to all users; not in client_credentials. Default: principal.
    pub(in crate::config) lists: Option<ListReader>,
    /// Where users log in, and what this gateway is there; only in id_jag.
    pub(in crate::config) idp: Option<IdentityProvider>,
}

/// Where users log in.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct IdentityProvider {
    /// Its issuer; its token endpoint is looked up in its metadata. Either this or token_url.
    pub(in crate::config) issuer: Option<String>,
    /// Its token endpoint.
    pub(in crate::config) token_url: Option<String>,
    /// What this gateway is called there.
    #[schemars(required)]
    pub(in crate::config) client_id: Option<String>,
    /// Its secret: "${file:/path}" or "${env:NAME}".
    #[schemars(required)]
    pub(in crate::config) client_secret: Option<Secret>,
    /// How the two are shown. Default: basic.
    pub(in crate::config) client_auth: Option<ClientProof>,
}

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum ClientProof {
    /// In the Authorization header.
    Basic,
    /// In the form.
    Post,
}

/// What a user's own token is (RFC 8693).
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum SubjectToken {
    /// An access token.
    AccessToken,
    /// A JWT of whatever kind.
    Jwt,
    /// An ID token.
    IdToken,
}

/// With what lists are read.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum ListReader {
    /// Each user's own token: the lists are theirs alone.
    Principal,
    /// A token of the gateway's own, by client credentials at the same server.
    Service,
    /// No credential.
    Nobody,
}
