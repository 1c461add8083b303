//! What an authorization server says of itself (RFC 8414, OpenID Connect Discovery 1.0).

use http::StatusCode;

use super::{Address, FetchError, Fetcher};
use crate::json::{Json, Kind, Node};

/// The metadata of one issuer, which says that it is that issuer's.
#[derive(Debug, Clone)]
pub struct Metadata {
    found_at: Address,
    document: Json,
}

/// Why there is no usable metadata.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// It could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It is nowhere where it could be.
    #[error("publishes no metadata")]
    None,
    /// It says that it is another's (SECURITY EGR-5).
    #[error("publishes the metadata of another issuer")]
    ForeignIssuer,
    /// It does not name this, or not as an address that may be used.
    #[error("names no usable `{0}`")]
    Missing(&'static str),
}

impl Metadata {
    /// Fetches the metadata of `issuer`, from the places where it may be, in their order (PROTOCOL F6). The issuer that it
    /// names must be `issuer`, byte for byte.
    ///
    /// # Errors
    /// [`MetadataError`].
    pub async fn fetch(
        fetcher: &Fetcher,
        issuer: &str,
        at: &Address,
    ) -> Result<Self, MetadataError> {
        for path in places(at.uri().path()) {
            let found_at = at.at_path(&path)?;
            let document = fetcher.document(&found_at, Fetcher::METADATA).await?;
            if document.status == StatusCode::NOT_FOUND {
                continue;
            }
            let document = document.json()?;
            let named = document.root().member("issuer").and_then(Node::as_str);
            if named.as_deref() != Some(issuer) {
                return Err(MetadataError::ForeignIssuer);
            }
            return Ok(Self { found_at, document });
        }
        Err(MetadataError::None)
    }

    /// The address under this key, trusted as far as the document is.
    ///
    /// # Errors
    /// [`MetadataError::Missing`].
    pub fn address(&self, key: &'static str) -> Result<Address, MetadataError> {
        self.document
            .root()
            .member(key)
            .and_then(Node::as_str)
            .and_then(|text| self.found_at.named_here(&text).ok())
            .ok_or(MetadataError::Missing(key))
    }

    /// Whether the list under this key holds `value`.
    pub fn lists(&self, key: &str, value: &str) -> bool {
        self.document
            .root()
            .member(key)
            .filter(|list| list.kind() == Kind::Array)
            .is_some_and(|list| {
                list.elements()
                    .any(|element| element.as_str().as_deref() == Some(value))
            })
    }

    /// The whole document.
    pub const fn document(&self) -> &Json {
        &self.document
    }
}

/// Three places for an issuer with a path, two for one without.
fn places(path: &str) -> Vec<String> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    match path.trim_end_matches('/') {
        "" => vec![OAUTH.to_owned(), OPENID.to_owned()],
        path => vec![
            format!("{OAUTH}{path}"),
            format!("{OPENID}{path}"),
            format!("{path}{OPENID}"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_in_the_documented_order() {
        assert_eq!(
            places("/tenant/a"),
            [
                "/.well-known/oauth-authorization-server/tenant/a",
                "/.well-known/openid-configuration/tenant/a",
                "/tenant/a/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            places("/"),
            [
                "/.well-known/oauth-authorization-server",
                "/.well-known/openid-configuration",
            ]
        );
    }
}
