//! How tokens for one upstream are come by: plain validated values, made from configuration.

use secrecy::SecretString;

use crate::fetch::Address;

/// A grant at an authorization server, whose tokens are for one upstream alone.
#[derive(Debug, Clone)]
pub struct GrantSpec {
    /// Which grant.
    pub grant: Grant,
    /// The authorization server that issues the tokens which the upstream takes, and what we are there.
    pub server: ServerSpec,
    /// Whom the tokens are for: the upstream's canonical URI (RFC 8707, PROTOCOL F2). Default: its `url`.
    pub resource: String,
    /// `audience` of the request, where the server wants a name of its own instead of a URI.
    pub audience: Option<String>,
    /// What is asked for; empty: whatever the server gives by default.
    pub scopes: Vec<String>,
    /// With what the gateway itself reads lists and watches for changes, where tokens are each user's own.
    pub lists: ListsAs,
    /// PEM of the roots to trust at authorization servers instead of the system's.
    pub ca: Option<Vec<u8>>,
}

/// How a token is asked for.
#[derive(Debug, Clone)]
pub enum Grant {
    /// For the gateway itself (RFC 6749, 4.4): one token for everybody.
    ClientCredentials,
    /// On behalf of the principal, against the token that it came with (RFC 8693).
    TokenExchange {
        /// What that token is.
        subject: SubjectType,
    },
    /// On behalf of the principal: an assertion from where it logged in, traded for a token at the upstream's own server
    /// (Identity Assertion Authorization Grant, PROTOCOL F8).
    IdJag {
        /// What the principal's token is.
        subject: SubjectType,
        /// Where it logged in, and what we are there.
        idp: ServerSpec,
        /// The issuer of the upstream's own server.
        audience: String,
    },
}

/// What a principal's own token is said to be (RFC 8693, 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubjectType {
    /// An access token.
    #[default]
    AccessToken,
    /// A JWT of whatever kind.
    Jwt,
    /// An ID token.
    IdToken,
}

/// With what the gateway itself reads the lists of an upstream whose tokens are each user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListsAs {
    /// Nothing of its own: what the upstream shows to anybody is everybody's, and what it shows to a principal, read with that
    /// principal's token when it is needed first, is theirs alone.
    #[default]
    Principal,
    /// A token of its own, by client credentials at the same server.
    Service,
    /// No credential at all: the upstream shows its lists to anybody.
    Nobody,
}

/// An authorization server, and who we are to it.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Where its token endpoint is.
    pub token_endpoint: TokenEndpoint,
    /// Our id there.
    pub client_id: String,
    /// Our secret there.
    pub client_secret: SecretString,
    /// How the two are shown.
    pub client_auth: ClientAuth,
}

/// Where a token endpoint is.
#[derive(Debug, Clone)]
pub enum TokenEndpoint {
    /// Here.
    Url(Address),
    /// Where the metadata of this issuer says; the text as configured, which the metadata must repeat (SECURITY EGR-5).
    Issuer(Address, String),
}

/// How a client proves who it is (RFC 6749, 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuth {
    /// In the `Authorization` header.
    #[default]
    Basic,
    /// In the form.
    Post,
}

impl GrantSpec {
    /// Every authorization server that is asked.
    pub fn servers(&self) -> impl Iterator<Item = &ServerSpec> {
        let other = match &self.grant {
            Grant::ClientCredentials | Grant::TokenExchange { .. } => None,
            Grant::IdJag { idp, .. } => Some(idp),
        };
        std::iter::once(&self.server).chain(other)
    }
}

impl Grant {
    /// Whether each principal has tokens of its own.
    pub const fn is_per_principal(&self) -> bool {
        match self {
            Self::ClientCredentials => false,
            Self::TokenExchange { .. } | Self::IdJag { .. } => true,
        }
    }
}

impl SubjectType {
    /// The URN.
    pub(super) const fn urn(self) -> &'static str {
        match self {
            Self::AccessToken => "urn:ietf:params:oauth:token-type:access_token",
            Self::Jwt => "urn:ietf:params:oauth:token-type:jwt",
            Self::IdToken => "urn:ietf:params:oauth:token-type:id_token",
        }
    }
}
