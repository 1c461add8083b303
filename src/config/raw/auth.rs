//! `auth:` as it is spelled: who is admitted, and by what.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::units::{Secret, Time};

/// Who is admitted, and by what. Without this block nobody is asked, and only loopback may be listened on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Auth {
    /// Where clients reach this gateway: scheme, host and port. Default: made of listen.address, hosts and tls.
    pub(in crate::config) resource: Option<String>,
    /// Issuers whose JSON Web Tokens are taken.
    pub(in crate::config) jwt: Vec<Issuer>,
    /// API keys, made by `usher keys create`.
    pub(in crate::config) keys: Option<Keys>,
    /// Client certificates; they are verified by listen.tls.client_ca.
    pub(in crate::config) mtls: Option<Mtls>,
    /// Tokens that only their authorization server can read (RFC 7662).
    pub(in crate::config) introspection: Option<Introspection>,
    /// Admits requests that bring no credential. Default: false.
    pub(in crate::config) anonymous: bool,
    /// Scopes.
    pub(in crate::config) scopes: Scopes,
    /// Failed attempts of one address within a minute; the next are answered 429. Default: 10.
    pub(in crate::config) failures_per_minute: Option<usize>,
}

/// An issuer of JSON Web Tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Issuer {
    /// The `iss` of its tokens, byte for byte. Its metadata is looked for there.
    #[schemars(required)]
    pub(in crate::config) issuer: Option<String>,
    /// The `aud` of tokens for this gateway, byte for byte. Default: the address of the endpoint, or of the main one.
    pub(in crate::config) audience: Vec<String>,
    /// Where its keys are. Default: where its metadata says.
    pub(in crate::config) jwks_url: Option<String>,
    /// The file its keys are in.
    pub(in crate::config) jwks_file: Option<String>,
    /// Algorithms its tokens may be signed with. Default: all of RS, PS, ES256, ES384 and EdDSA.
    pub(in crate::config) algorithms: Vec<String>,
    /// Which claims say what.
    pub(in crate::config) claims: Claims,
    /// How often its keys are read, 10s to 50s, or sooner where they say so (`max-age`, at least 10s): a key that is removed ends
    /// its streams within a minute. A `jwks_file` is looked at every five seconds all the same. Default: 45s.
    pub(in crate::config) refresh: Option<Time>,
    /// How long its keys serve while they cannot be read; then requests are answered 503. Default: 1h.
    pub(in crate::config) lifetime: Option<Time>,
}

/// Which claims say what: a name, or the way to a nested one with dots.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Claims {
    /// The user. Default: sub.
    pub(in crate::config) user: Option<String>,
    /// Groups. Default: groups.
    pub(in crate::config) groups: Option<String>,
    /// The tenant. Default: none.
    pub(in crate::config) tenant: Option<String>,
    /// Scopes. Default: scope, or else scp.
    pub(in crate::config) scopes: Option<String>,
    /// The OAuth client. Default: client_id, or else azp.
    pub(in crate::config) client: Option<String>,
}

/// API keys.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Keys {
    /// The file they are in, as keyed hashes. It need not be there yet.
    #[schemars(required)]
    pub(in crate::config) file: Option<String>,
    /// What they are hashed with, at least 32 bytes: "${file:/path}". With another one, no key there is counts any more.
    #[schemars(required)]
    pub(in crate::config) secret: Option<Secret>,
}

/// Client certificates.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Mtls {
    /// Which name is the user: the first of these that the certificate has exactly one of. Default: [san_uri, san_email, san_dns].
    pub(in crate::config) user: Vec<CertificateName>,
    /// Groups of everybody with a certificate.
    pub(in crate::config) groups: Vec<String>,
    /// The tenant of everybody with a certificate.
    pub(in crate::config) tenant: Option<String>,
}

/// A name in a certificate.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum CertificateName {
    /// A URI, such as a SPIFFE id.
    SanUri,
    /// A DNS name.
    SanDns,
    /// A mail address.
    SanEmail,
    /// The common name of the subject.
    SubjectCn,
}

/// RFC 7662.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Introspection {
    /// Where to ask.
    #[schemars(required)]
    pub(in crate::config) url: Option<String>,
    /// Who asks.
    #[schemars(required)]
    pub(in crate::config) client_id: Option<String>,
    /// And the proof.
    #[schemars(required)]
    pub(in crate::config) client_secret: Option<Secret>,
    /// Whose tokens these are: told to clients, and the `iss` of answers that have one.
    #[schemars(required)]
    pub(in crate::config) issuer: Option<String>,
    /// As for jwt.
    pub(in crate::config) audience: Vec<String>,
    /// Refuses answers that name no audience. Default: true.
    pub(in crate::config) require_audience: Option<bool>,
    /// How long an answer is kept. Default: 45s, at most 60s.
    pub(in crate::config) cache: Option<Time>,
    /// Which members say what.
    pub(in crate::config) claims: Claims,
}

/// Scopes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Scopes {
    /// What every token and key needs. Clients are told to ask for it. Default: none.
    pub(in crate::config) required: Vec<String>,
    /// What else clients may hear of beforehand. Default: none.
    pub(in crate::config) supported: Vec<String>,
}
