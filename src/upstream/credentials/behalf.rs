//! Whom a request was on behalf of, for as long as its answer is gone on with (PROTOCOL B4): answers outlive tokens.
//!
//! Guarantees: what is got later is the same principal's, and stands on the same login (SECURITY STATE-8, PROTOCOL F9).

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderValue;

use super::{CredentialError, Credentials};
use crate::{call::Identity, upstream::transport::Credential};

/// The credential of one request.
#[derive(Debug)]
pub(super) struct Behalf {
    credentials: Credentials,
    identity: Option<Arc<Identity>>,
    /// See [`Credentials::mark`].
    mark: Option<u64>,
}

impl Behalf {
    pub(super) fn of(credentials: &Credentials, identity: Option<&Arc<Identity>>) -> Self {
        Self {
            credentials: credentials.clone(),
            mark: identity.and_then(|identity| credentials.mark(identity)),
            identity: identity.map(Arc::clone),
        }
    }

    /// A token of another login would be another user's, for all that the upstream knows.
    fn stands(&self) -> Result<Option<&Arc<Identity>>, CredentialError> {
        let identity = self.identity.as_ref();
        let mark = identity.and_then(|identity| self.credentials.mark(identity));
        if mark == self.mark {
            Ok(identity)
        } else {
            Err(CredentialError::NotConnected)
        }
    }
}

impl Credential for Behalf {
    fn now(&self) -> BoxFuture<'_, Result<HeaderValue, CredentialError>> {
        Box::pin(async {
            let header = self.credentials.header(self.stands()?).await?;
            header.ok_or(CredentialError::NotConnected)
        })
    }

    fn instead<'a>(
        &'a self,
        refused: &'a HeaderValue,
    ) -> BoxFuture<'a, Result<Option<HeaderValue>, CredentialError>> {
        Box::pin(async move {
            let identity = self.stands()?;
            match &self.credentials {
                Credentials::Granted(granted) => granted.instead(identity, refused).await,
                Credentials::Connected(connected) => connected.instead(identity, refused).await,
            }
        })
    }
}
