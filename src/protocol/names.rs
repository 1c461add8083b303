//! What things are called.

use std::{fmt, sync::Arc};

/// The configured key of an upstream: `[a-z][a-z0-9-]*`, at most 32 bytes (PRODUCT 5).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamId(Arc<str>);

impl UpstreamId {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 32;

    /// The key, if it matches the grammar.
    pub fn parse(key: &str) -> Option<Self> {
        let mut bytes = key.bytes();
        let well_formed = bytes.next().is_some_and(|first| first.is_ascii_lowercase())
            && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        (well_formed && key.len() <= Self::MAX_BYTES).then(|| Self(key.into()))
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key, shared.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl fmt::Display for UpstreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which part of the catalog an endpoint serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Every upstream: `/mcp`.
    All,
    /// A configured selection: `/mcp/NAME`.
    Toolset(Arc<str>),
    /// One upstream under its original names: `/mcp/u/NAME`.
    Upstream(UpstreamId),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Toolset(name) => write!(f, "toolset `{name}`"),
            Self::Upstream(id) => write!(f, "upstream `{id}`"),
        }
    }
}
