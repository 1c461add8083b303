//! What an authorization server says of itself (RFC 8414, OpenID Connect Discovery 1.0).

use super::{Address, FetchError, Fetcher};
use crate::json::{Json, Node};

/// The metadata of one issuer, which says that it is that issuer's.
#[derive(Debug, Clone)]
pub struct Metadata {
    issuer: String,
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
    /// names must be `issuer`, byte for byte. A place that has none, whatever it says instead, is passed by.
    ///
    /// # Errors
    /// [`MetadataError`]; where there is none, what was wrong with the first place that had something.
    pub async fn fetch(
        fetcher: &Fetcher,
        issuer: &str,
        at: &Address,
    ) -> Result<Self, MetadataError> {
        Self::within(fetcher, issuer, at, Fetcher::METADATA).await
    }

    /// The same, of at most so many bytes.
    ///
    /// # Errors
    /// As [`Metadata::fetch`].
    pub async fn within(
        fetcher: &Fetcher,
        issuer: &str,
        at: &Address,
        most: usize,
    ) -> Result<Self, MetadataError> {
        Self::naming(str::eq, fetcher, issuer, at, most).await
    }

    /// The same for an `issuer` that whoever named it may have spelled otherwise, as far as the end of one without a path goes: see
    /// `names_the_same`. What counts from then on is [`Metadata::issuer`].
    ///
    /// # Errors
    /// As [`Metadata::fetch`].
    pub async fn of_named(
        fetcher: &Fetcher,
        issuer: &str,
        at: &Address,
    ) -> Result<Self, MetadataError> {
        Self::naming(names_the_same, fetcher, issuer, at, Fetcher::METADATA).await
    }

    async fn naming(
        is_same: fn(&str, &str) -> bool,
        fetcher: &Fetcher,
        issuer: &str,
        at: &Address,
        most: usize,
    ) -> Result<Self, MetadataError> {
        let mut why = MetadataError::None;
        for path in places(at.uri().path()) {
            let found_at = at.at_path(&path)?;
            let document = fetcher.document(&found_at, most).await;
            match document.and_then(|document| document.json()) {
                Ok(document) => return Self::of(document, found_at, issuer, is_same),
                Err(FetchError::Status(404)) => {}
                Err(
                    error @ (FetchError::Status(_) | FetchError::Redirect | FetchError::NotJson),
                ) => {
                    if why == MetadataError::None {
                        why = error.into();
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(why)
    }

    /// A document that was found at an address, if it names what `is_same` says is `issuer`.
    ///
    /// # Errors
    /// [`MetadataError::ForeignIssuer`].
    pub(crate) fn of(
        document: Json,
        found_at: Address,
        issuer: &str,
        is_same: fn(&str, &str) -> bool,
    ) -> Result<Self, MetadataError> {
        let named = document.root().member("issuer").and_then(Node::as_str);
        let same = named.as_ref().filter(|named| is_same(named, issuer));
        let Some(issuer) = same.map(|named| named.clone().into_owned()) else {
            // Whoever wants to use it all the same has to know what it is called. In quotes, and escaped: it is a peer's word.
            let named = named.map(|named| named.chars().take(256).collect::<String>());
            tracing::info!(at = %found_at, expected = ?issuer, ?named, "metadata of another issuer than was expected");
            return Err(MetadataError::ForeignIssuer);
        };
        Ok(Self {
            issuer,
            found_at,
            document,
        })
    }

    /// The issuer, as the document spells it.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The address under this key, trusted as far as the document is.
    ///
    /// # Errors
    /// [`MetadataError::Missing`].
    pub fn address(&self, key: &'static str) -> Result<Address, MetadataError> {
        self.address_if_any(key)?.ok_or(MetadataError::Missing(key))
    }

    /// The same where there may be none.
    ///
    /// # Errors
    /// [`MetadataError::Missing`], if what is there is no address that may be used.
    pub fn address_if_any(&self, key: &'static str) -> Result<Option<Address>, MetadataError> {
        let text = self.document.root().member(key).and_then(Node::as_str);
        text.map(|text| self.found_at.named_here(&text))
            .transpose()
            .map_err(|_| MetadataError::Missing(key))
    }

    /// Whether it says `true` under this key.
    pub fn says(&self, key: &str) -> bool {
        let value = self.document.root().member(key);
        value.and_then(Node::as_bool) == Some(true)
    }

    /// The texts in the list under this key, at most 256 of at most 256 bytes.
    pub fn texts(&self, key: &str) -> Vec<String> {
        texts(self.document.root().member(key))
    }
}

/// The texts in an array, at most 256 of at most 256 bytes.
pub(crate) fn texts(node: Option<Node<'_>>) -> Vec<String> {
    node.into_iter()
        .flat_map(Node::elements)
        .filter_map(Node::as_str)
        .filter(|text| text.len() <= 256)
        .take(256)
        .map(std::borrow::Cow::into_owned)
        .collect()
}

/// Whether two texts name one issuer: letter for letter, but for one `/` at the end of an issuer without a path, which one of them
/// may lack.
///
/// An address without a path is the one with the path `/` (RFC 3986 6.2.3): both are asked for their metadata at one and the same
/// place, so that nobody can be either of them without being the other, and no metadata is taken here for another's (SECURITY
/// EGR-5). Upstreams, whose libraries write addresses now so and now so, do name the one where the server calls itself the other.
/// With a path each would be an issuer of its own.
fn names_the_same(one: &str, other: &str) -> bool {
    one == other || without_root(one) == without_root(other)
}

/// An address without its path, if that is `/`.
fn without_root(text: &str) -> &str {
    let is_origin = |rest: &&str| {
        let host = rest.split_once("://").map_or("", |(_, host)| host);
        !host.is_empty() && !host.contains(['/', '?', '#'])
    };
    text.strip_suffix('/').filter(is_origin).unwrap_or(text)
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
    fn an_issuer_without_a_path_is_the_same_with_a_slash_at_its_end_and_no_other_is() {
        for (one, other, same) in [
            ("https://a.example", "https://a.example/", true),
            ("https://a.example:8443/", "https://a.example:8443", true),
            ("https://a.example/t", "https://a.example/t", true),
            ("https://a.example", "https://a.example//", false),
            ("https://a.example/", "https://a.example//", false),
            ("https://a.example/t", "https://a.example/t/", false),
            ("https://a.example/?", "https://a.example/?/", false),
            ("https://a.example?t", "https://a.example?t/", false),
            ("https://a.example", "https://A.example/", false),
            ("https://a.example", "http://a.example/", false),
            ("https://a.example", "https://a.example.evil/", false),
            ("https:/", "https://", false),
            ("https://", "https:///", false),
            ("", "/", false),
        ] {
            assert_eq!(names_the_same(one, other), same, "{one} {other}");
            assert_eq!(names_the_same(other, one), same, "{other} {one}");
        }
    }

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
