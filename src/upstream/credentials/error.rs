//! Why there is no token for an upstream, and what a challenge says that one lacks.

use std::{sync::Arc, time::Duration};

use super::slot::AGAIN;
use crate::{
    connect,
    fetch::{Challenge, FetchError, MetadataError},
};

/// Why there is no token. For logs and operators; no text of a peer's is in it but registered words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The caller came without a token, so there is nothing to exchange.
    #[error("the caller has no token that could be exchanged")]
    NoSubject,
    /// The authorization server does not take the caller's token, and says so with this word.
    #[error("the authorization server refused the caller's token with `{0}`")]
    SubjectRefused(&'static str),
    /// The authorization server refused with this word.
    #[error("the authorization server refused with `{0}`")]
    Refused(&'static str),
    /// Its answer is not usable.
    #[error("the authorization server's answer {0}")]
    Answer(&'static str),
    /// It could not be asked.
    #[error("the authorization server {0}")]
    Fetch(#[from] FetchError),
    /// Its metadata is not usable.
    #[error("the authorization server {0}")]
    Metadata(MetadataError),
    /// The principal is not connected, or not any more.
    #[error("the caller has not logged in to the upstream")]
    NotConnected,
    /// It was asked with nobody's token, since nobody came with one yet; what that means in words.
    #[error("{0}")]
    Nobody(&'static str),
    /// What was sent is good, and lacks these scopes: 403 with `insufficient_scope`.
    #[error("the upstream wants more scopes (HTTP 403, insufficient_scope): {}", .0.join(" "))]
    Lacks(Arc<[Arc<str>]>),
    /// What the principal was given when they logged in cannot be renewed now.
    #[error("a connection: {0}")]
    Connection(String),
    /// The server that they log in at does not answer now, or says to come again.
    #[error("a connection, for now: {0}")]
    Unanswered(String),
    /// Asking for a token panicked.
    #[error("a token could not be asked for: an internal error")]
    Panicked,
}

/// The most scopes that an upstream may want at once.
const SCOPES: usize = 16;
/// The most bytes of one.
const SCOPE_BYTES: usize = 128;

impl CredentialError {
    /// What a challenge says that a credential lacks; nothing where it says no such thing, or what cannot be scopes.
    pub(in crate::upstream) fn lacks(challenge: Challenge) -> Option<Self> {
        let scopes = challenge.scopes;
        // RFC 6749 3.3.
        let is_scope = |scope: &String| {
            let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
            scope.len() <= SCOPE_BYTES && scope.bytes().all(fits)
        };
        let are_scopes = (1..=SCOPES).contains(&scopes.len()) && scopes.iter().all(is_scope);
        (challenge.insufficient && are_scopes)
            .then(|| Self::Lacks(scopes.into_iter().map(Arc::from).collect()))
    }

    /// The stable word for `data.reason`.
    pub const fn reason(&self) -> &'static str {
        // One condition has one word, whichever server it is that does not answer now.
        if self.pause().is_some() {
            return "upstream_unavailable";
        }
        match self {
            Self::Fetch(FetchError::Redirect)
            | Self::Metadata(MetadataError::Fetch(FetchError::Redirect)) => "upstream_redirect",
            Self::NotConnected => "login_required",
            Self::NoSubject
            | Self::SubjectRefused(_)
            | Self::Refused(_)
            | Self::Answer(_)
            | Self::Fetch(_)
            | Self::Connection(_)
            | Self::Unanswered(_)
            | Self::Nobody(_)
            | Self::Lacks(_)
            | Self::Metadata(_)
            | Self::Panicked => "upstream_auth_failed",
        }
    }

    /// In how long it is worth another try, where what is in the way may well pass; no sooner is anybody asked again.
    pub const fn pause(&self) -> Option<Duration> {
        match self {
            Self::Fetch(error) | Self::Metadata(MetadataError::Fetch(error))
                if error.is_passing() =>
            {
                Some(AGAIN)
            }
            Self::Unanswered(_) => Some(connect::AGAIN),
            Self::NoSubject
            | Self::SubjectRefused(_)
            | Self::Refused(_)
            | Self::Answer(_)
            | Self::Fetch(_)
            | Self::Metadata(_)
            | Self::NotConnected
            | Self::Nobody(_)
            | Self::Lacks(_)
            | Self::Connection(_)
            | Self::Panicked => None,
        }
    }

    /// Whether the caller could do something about it: log in, or log in again.
    pub const fn is_the_callers(&self) -> bool {
        matches!(
            self,
            Self::NoSubject | Self::SubjectRefused(_) | Self::NotConnected
        )
    }
}

impl From<connect::ConnectError> for CredentialError {
    fn from(error: connect::ConnectError) -> Self {
        if error.is_passing() {
            Self::Unanswered(error.to_string())
        } else {
            Self::Connection(error.to_string())
        }
    }
}

impl From<MetadataError> for CredentialError {
    fn from(error: MetadataError) -> Self {
        match error {
            MetadataError::Fetch(error) => Self::Fetch(error),
            MetadataError::None | MetadataError::ForeignIssuer | MetadataError::Missing(_) => {
                Self::Metadata(error)
            }
        }
    }
}
