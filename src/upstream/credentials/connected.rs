//! Tokens that principals were given where they logged in (PRODUCT 7): what `connect` keeps, put into requests.
//!
//! Guarantees: a request on behalf of a principal carries that principal's token or none at all, whoever else is connected
//! (PROTOCOL F9); what is on behalf of nobody goes without a token.

use std::sync::Arc;

use http::{HeaderValue, header::AUTHORIZATION};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::{CredentialError, Loan};
use crate::{
    call::Identity,
    connect::{Account, Connections, Grant},
    protocol::UpstreamId,
    upstream::{
        Denial, UpstreamError,
        transport::{Answer, Outbound, Transport, sent},
    },
};

/// The connections of one upstream.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Connected {
    upstream: UpstreamId,
    connections: Connections,
    loan: Arc<Loan>,
}

impl Connected {
    /// Those of `connections` that are of `upstream`.
    pub(in crate::upstream) fn new(upstream: UpstreamId, connections: Connections) -> Self {
        Self {
            upstream,
            connections,
            loan: Arc::default(),
        }
    }

    /// When this principal logged in; `None` when they are not connected.
    pub(super) fn mark(&self, identity: &Identity) -> Option<u64> {
        let account = Account::of(&self.upstream, &identity.principal);
        Some(self.connections.current(&account)?.since)
    }

    /// Whether anybody has logged in.
    pub(super) fn is_used(&self) -> bool {
        let all = self.connections.list();
        all.iter()
            .any(|connection| connection.account.upstream == self.upstream)
    }

    /// As [`super::Credentials::held`].
    pub(super) fn held(&self, identity: &Identity) -> Option<SecretString> {
        let account = Account::of(&self.upstream, &identity.principal);
        Some(self.connections.current(&account)?.access.clone())
    }

    pub(super) fn loan(&self) -> &Loan {
        &self.loan
    }

    /// As [`super::Credentials::carry`].
    pub(super) async fn carry(
        &self,
        transport: &dyn Transport,
        mut out: Outbound,
        on_behalf: Option<&Arc<Identity>>,
    ) -> Result<Answer, UpstreamError> {
        let again = out.clone();
        let Some((account, grant)) = self.grant(on_behalf).await? else {
            // Whoever has not logged in is as good as refused; nobody may find an upstream that lists for everybody.
            out.credential = None;
            return match on_behalf {
                Some(_) => Err(CredentialError::NotConnected.into()),
                None => sent(transport, out).await,
            };
        };
        out.headers.insert(AUTHORIZATION, header(&grant)?);
        let answer = sent(transport, out).await;
        if let Err(UpstreamError::Credential(CredentialError::Lacks(scopes))) = &answer {
            self.connections.lacks(&account, &grant, scopes);
            return answer;
        }
        if !matches!(
            answer,
            Err(UpstreamError::Auth(Some(Denial { status: 401, .. })))
        ) {
            return answer;
        }
        let renewed = self.connections.refused(&account, &grant).await;
        match renewed.map_err(CredentialError::from)? {
            Some(grant) => {
                let mut out = again;
                out.headers.insert(AUTHORIZATION, header(&grant)?);
                out.trail.goes_again();
                sent(transport, out).await
            }
            None => Err(CredentialError::NotConnected.into()),
        }
    }

    /// As [`super::Credentials::header`].
    pub(super) async fn header(
        &self,
        on_behalf: Option<&Arc<Identity>>,
    ) -> Result<Option<HeaderValue>, CredentialError> {
        let found = self.grant(on_behalf).await?;
        found.map(|(_, grant)| header(&grant)).transpose()
    }

    /// Another token than this one, which was refused: the one that it was renewed to; `None` where there is none.
    pub(super) async fn instead(
        &self,
        on_behalf: Option<&Arc<Identity>>,
        refused: &HeaderValue,
    ) -> Result<Option<HeaderValue>, CredentialError> {
        let Some((account, grant)) = self.grant(on_behalf).await? else {
            return Ok(None);
        };
        let now = header(&grant)?;
        if now != refused {
            return Ok(Some(now));
        }
        let renewed = self.connections.refused(&account, &grant).await;
        renewed?.map(|grant| header(&grant)).transpose()
    }

    async fn grant(
        &self,
        on_behalf: Option<&Arc<Identity>>,
    ) -> Result<Option<(Account, Arc<Grant>)>, CredentialError> {
        let Some(identity) = on_behalf else {
            return Ok(None);
        };
        let account = Account::of(&self.upstream, &identity.principal);
        let grant = self.connections.grant(&account).await?;
        Ok(grant.map(|grant| (account, grant)))
    }
}

fn header(grant: &Grant) -> Result<HeaderValue, CredentialError> {
    let text = Zeroizing::new(format!("Bearer {}", grant.access.expose_secret()));
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| CredentialError::Answer("holds no usable token"))?;
    value.set_sensitive(true);
    Ok(value)
}
