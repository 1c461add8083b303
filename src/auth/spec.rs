//! What authentication goes by: plain validated values, made from configuration.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use secrecy::SecretString;

pub use jsonwebtoken::Algorithm;

use crate::fetch::Address;

/// Algorithms that are taken unless an issuer says otherwise: every signature with a public key, never a shared secret.
pub const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The longest [`IssuerSpec::refresh`]: with the 10 s that a fetch may take, the streams of a key that is removed end within
/// 60 s (SECURITY AUTHN-5).
pub const MOST_REFRESH: Duration = Duration::from_secs(50);

/// Who is admitted, and by what.
#[derive(Debug, Clone)]
pub struct AuthSpec {
    /// Where clients reach this gateway: scheme, host and port, such as `https://mcp.example.com`. The resource of an
    /// endpoint is this and its path.
    pub resource: Arc<str>,
    /// Whose JWTs are taken.
    pub issuers: Vec<IssuerSpec>,
    /// API keys.
    pub keys: Option<KeysSpec>,
    /// Client certificates.
    pub certificates: Option<CertificateSpec>,
    /// Tokens that only their authorization server can read.
    pub introspection: Option<IntrospectionSpec>,
    /// Whether a request without any credential is admitted. Default: false.
    pub anonymous: bool,
    /// Scopes that every token and key needs. Default: none.
    pub required_scopes: Arc<[Arc<str>]>,
    /// Further scopes that clients may hear of beforehand. Default: none.
    pub supported_scopes: Vec<Arc<str>>,
    /// Failed attempts of one address within a minute before the next is answered `429`. Default: 10.
    pub failures_per_minute: u32,
    /// What a proof may be.
    pub limits: ProofLimits,
}

impl AuthSpec {
    /// Tokens of these issuers for this resource, and everything else at its default.
    pub fn new(resource: impl Into<Arc<str>>, issuers: Vec<IssuerSpec>) -> Self {
        Self {
            resource: resource.into(),
            issuers,
            keys: None,
            certificates: None,
            introspection: None,
            anonymous: false,
            required_scopes: Arc::new([]),
            supported_scopes: Vec::new(),
            failures_per_minute: 10,
            limits: ProofLimits::default(),
        }
    }

    /// How many say who somebody is, each on its own: issuers, whether their tokens are read here or asked about, and whoever signs
    /// certificates.
    pub fn authorities(&self) -> usize {
        let read = self.issuers.iter().map(|one| &*one.issuer);
        let asked = self.introspection.iter().map(|one| &*one.issuer);
        let issuers: BTreeSet<&str> = read.chain(asked).collect();
        issuers.len() + usize::from(self.certificates.is_some())
    }
}

/// How large what proves something may be, and how far clocks may differ (SECURITY 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofLimits {
    /// Bytes of a token. Default 16 KiB.
    pub token_bytes: usize,
    /// Bytes of a metadata document. Default 64 KiB.
    pub metadata_bytes: usize,
    /// Bytes of a key set. Default 256 KiB.
    pub key_set_bytes: usize,
    /// Keys in one. Default 100.
    pub keys: usize,
    /// Seconds that clocks may differ. Default 30.
    pub skew: u64,
}

impl Default for ProofLimits {
    fn default() -> Self {
        Self {
            token_bytes: 16 << 10,
            metadata_bytes: 64 << 10,
            key_set_bytes: 256 << 10,
            keys: 100,
            skew: 30,
        }
    }
}

/// One issuer of JWTs.
#[derive(Debug, Clone)]
pub struct IssuerSpec {
    /// The `iss` of its tokens, byte for byte; where its metadata is discovered.
    pub issuer: Arc<str>,
    /// The `aud` of tokens for this gateway, byte for byte. Empty: the resource of the endpoint, or of the main one.
    pub audiences: Vec<Arc<str>>,
    /// Algorithms its tokens may be signed with; none is symmetric. Default: [`ALGORITHMS`].
    pub algorithms: Vec<Algorithm>,
    /// Where its keys are.
    pub keys: KeySource,
    /// How often they are read, at most [`MOST_REFRESH`]: default 45 s.
    pub refresh: Duration,
    /// How long keys serve while they cannot be read: default 1 h.
    pub lifetime: Duration,
    /// Which claims say what.
    pub claims: ClaimNames,
}

/// Where an issuer's keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// Where the OIDC or RFC 8414 metadata of the issuer at this address says.
    Discovered(Address),
    /// At this address.
    Url(Address),
    /// In this file.
    File(PathBuf),
}

/// Which claims say what. A name is a claim's, or the way to a nested one with dots.
#[derive(Debug, Clone)]
pub struct ClaimNames {
    /// The user. Default: `sub`.
    pub user: String,
    /// Groups: a text, or a list of texts. Default: `groups`.
    pub groups: String,
    /// The tenant. Default: none.
    pub tenant: Option<String>,
    /// Scopes: a text with blanks, or a list of texts. Default: `scope`, or else `scp`.
    pub scopes: Option<String>,
    /// The OAuth client. Default: `client_id`, or else `azp`.
    pub client: Option<String>,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self {
            user: "sub".into(),
            groups: "groups".into(),
            tenant: None,
            scopes: None,
            client: None,
        }
    }
}

/// API keys.
#[derive(Debug, Clone)]
pub struct KeysSpec {
    /// The file they are in, as keyed hashes.
    pub file: PathBuf,
    /// What they are hashed with: at least 32 bytes.
    pub secret: SecretString,
}

/// Client certificates.
#[derive(Debug, Clone)]
pub struct CertificateSpec {
    /// Which name is the user, the first that the certificate has.
    pub user: Vec<CertificateName>,
    /// Groups that everybody with a certificate is in.
    pub groups: Vec<Arc<str>>,
    /// The tenant of everybody with a certificate.
    pub tenant: Option<Arc<str>>,
}

/// A name in a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateName {
    /// A URI of the subject's alternative names, such as a SPIFFE id.
    SanUri,
    /// A DNS name of them.
    SanDns,
    /// A mail address of them.
    SanEmail,
    /// The common name of the subject.
    SubjectCn,
}

/// RFC 7662.
#[derive(Debug, Clone)]
pub struct IntrospectionSpec {
    /// Where to ask.
    pub url: Address,
    /// Who asks.
    pub client_id: String,
    /// And the proof.
    pub client_secret: SecretString,
    /// Who vouches, where the answer does not name an issuer.
    pub issuer: Arc<str>,
    /// As for JWTs.
    pub audiences: Vec<Arc<str>>,
    /// Whether an answer without `aud` is refused. Default: true.
    pub require_audience: bool,
    /// How long an answer is kept: default 45 s.
    pub cache: Duration,
    /// Which members say what.
    pub claims: ClaimNames,
}
