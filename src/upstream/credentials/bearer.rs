//! The token that a call goes with, for whoever looks whether what is said in the call holds it (SECURITY 7, C3).
//!
//! Guarantees: nothing is asked for; a call that goes with what is configured, or with nothing, costs a branch.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};

use super::Credentials;
use crate::call::Identity;

/// What a call goes with.
#[derive(Debug)]
pub struct Bearer {
    credentials: Credentials,
    identity: Arc<Identity>,
    first: Option<SecretString>,
}

impl Bearer {
    pub(in crate::upstream) fn of(credentials: &Credentials, identity: &Arc<Identity>) -> Self {
        Self {
            first: credentials.held(identity),
            credentials: credentials.clone(),
            identity: identity.clone(),
        }
    }

    /// The token that there was as it began, for whoever looks just then.
    pub fn into_first(self) -> Option<SecretString> {
        self.first
    }

    /// The tokens that it may have gone with: the one that there was as it began, and the one that there is now, which may have been
    /// got for it.
    pub fn tokens(&self) -> Vec<SecretString> {
        let now = self.credentials.held(&self.identity);
        let first = self.first.as_ref().filter(|first| {
            now.as_ref()
                .is_none_or(|now| now.expose_secret() != first.expose_secret())
        });
        first.cloned().into_iter().chain(now).collect()
    }
}
