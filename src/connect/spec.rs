//! What connections are made of: plain validated values, made from configuration.

use std::{collections::BTreeMap, path::PathBuf};

use secrecy::SecretString;

use crate::{fetch::TlsSpec, protocol::UpstreamId};

/// Everything about per-user connections.
#[derive(Debug, Clone, Default)]
pub struct ConnectSpec {
    /// The upstreams that people log in to, each with their own account.
    pub accounts: BTreeMap<UpstreamId, AccountSpec>,
    /// Where grants are kept; `None`: in memory, so that everybody logs in again after a restart.
    pub store: Option<StoreSpec>,
    /// Where browsers reach this gateway: `https://host[:port]`, or http on this machine; no path. `None`: the address that is
    /// listened at.
    pub url: Option<String>,
    /// PEM of the roots to trust at authorization servers, and at upstreams that say nothing of TLS, instead of the system's.
    pub ca: Option<Vec<u8>>,
}

/// An encrypted store on disk.
#[derive(Debug, Clone)]
pub struct StoreSpec {
    /// A directory of ours, mode 0700; made when it is not there.
    pub directory: PathBuf,
    /// At least one, each at least 32 bytes. The first seals, all open; what another opened is sealed with the first when it is
    /// written next.
    pub keys: Vec<SecretString>,
}

/// How people log in to one upstream.
#[derive(Debug, Clone)]
pub struct AccountSpec {
    /// The upstream's own URL: grants are good there and nowhere else.
    pub address: String,
    /// Trust and identity at the origin of that, whatever is asked there.
    pub tls: TlsSpec,
    /// What tokens are asked for (RFC 8707); `None`: what the upstream's metadata says, or else its URL.
    pub resource: Option<String>,
    /// Which authorization server.
    pub server: ServerSpec,
    /// Who we are there.
    pub client: ClientSpec,
    /// What is asked for; `None`: what the upstream's challenge or metadata names.
    pub scopes: Option<Vec<String>>,
}

/// Which authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSpec {
    /// The one that the upstream names (RFC 9728).
    Discovered,
    /// The one with this issuer; its metadata says the rest (RFC 8414).
    Issuer(String),
    /// One without metadata; whoever wrote this down has made sure that it checks PKCE.
    Given {
        /// Where people are sent to.
        authorize_url: String,
        /// Where codes are exchanged.
        token_url: String,
    },
}

/// Who we are at an authorization server.
#[derive(Debug, Clone)]
pub enum ClientSpec {
    /// A client that somebody registered.
    Given {
        /// Its id.
        id: String,
        /// Its secret; `None`: a public client.
        secret: Option<SecretString>,
    },
    /// One that we register ourselves.
    Registered(Registration),
}

/// How we register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Registration {
    /// With a metadata document of ours where the server takes such, else as with `Dynamic`.
    #[default]
    Auto,
    /// A client id metadata document, served by the connect page.
    Document,
    /// RFC 7591.
    Dynamic,
}
