//! Tokens for one upstream: got at its authorization server, kept while they are good, sent with each request.
//!
//! Guarantees: a token goes to the upstream it was asked for and stands for the principal it was asked for, or for the gateway
//! itself, and never for somebody else (PROTOCOL F2, F9); nothing that a client presented is ever sent upstream, only what was
//! got in exchange (SECURITY EGR-1); no credential means none, not the caller's (EGR-2); tokens live in memory alone (EGR-10).
//! Bounds: [`MAX`] principals, who are forgotten after [`IDLE`]. Deliberately absent: static credentials, which are headers
//! like others and cost a call nothing.

mod ask;
mod bearer;
mod behalf;
mod connected;
mod error;
mod loan;
mod place;
mod slot;
pub(super) mod spec;

#[cfg(test)]
mod refused;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use http::header::AUTHORIZATION;
use moka::sync::Cache;
use secrecy::SecretString;

pub(super) use self::{ask::INVALID_REQUEST, connected::Connected, loan::Loan};
pub use self::{bearer::Bearer, error::CredentialError};

use self::{
    behalf::Behalf,
    place::Endpoint,
    slot::{Asking, Slot, Token},
    spec::{Grant, GrantSpec, ListsAs},
};
use super::{
    Denial, UpstreamError,
    transport::{Answer, Outbound, Transport, sent},
};
use crate::{
    call::{Assertion, Grantee, Identity},
    fetch::{FetchError, Fetcher},
    protocol::UpstreamId,
    tasks::Tasks,
};

/// The most principals of one upstream whose tokens are kept; the one unused for longest goes first.
const MAX: u64 = 10_000;
/// How long a token is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(15 * 60);

/// The tokens of one upstream. Clones share them.
#[derive(Clone, Debug)]
pub(super) enum Credentials {
    /// Got by a grant of the gateway's own, or on behalf of the principal.
    Granted(Granted),
    /// Given to each principal where they logged in.
    Connected(Connected),
}

/// Tokens that are got by a grant.
#[derive(Clone)]
pub(super) struct Granted(Arc<Shared>);

struct Shared {
    upstream: UpstreamId,
    spec: GrantSpec,
    fetcher: Result<Fetcher, FetchError>,
    /// Of the server that issues the tokens, and of the one that issues assertions.
    endpoint: Endpoint,
    idp: Option<Endpoint>,
    slots: Cache<Whose, Arc<Slot>>,
    loan: Loan,
    tasks: Tasks,
}

/// Whose a token is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Whose {
    /// The gateway's own.
    Service,
    /// A principal's.
    Principal(Grantee),
}

impl Credentials {
    /// Tokens as `spec` says; nothing is asked for yet. What is under way lives in `tasks`.
    pub(super) fn new(upstream: UpstreamId, spec: GrantSpec, tasks: Tasks) -> Self {
        let fetcher = Fetcher::new(spec.ca.as_deref());
        Self::Granted(Granted::over(upstream, spec, fetcher, tasks))
    }

    /// Whether each principal has tokens of its own.
    pub(super) fn is_per_principal(&self) -> bool {
        match self {
            Self::Granted(granted) => granted.is_per_principal(),
            Self::Connected(_) => true,
        }
    }

    /// Whether lists are read for each principal with their own token: then the gateway itself has none.
    pub(super) fn lists_are_own(&self) -> bool {
        match self {
            Self::Granted(granted) => {
                granted.is_per_principal() && granted.0.spec.lists == ListsAs::Principal
            }
            Self::Connected(_) => true,
        }
    }

    /// What a token of this principal's stands on: another number when that is another login; `None` when there is nothing to
    /// ask for one with.
    pub(super) fn mark(&self, identity: &Identity) -> Option<u64> {
        match self {
            Self::Granted(_) => identity.assertion.as_ref().map(|_| 0),
            Self::Connected(connected) => connected.mark(identity),
        }
    }

    /// The token that requests on behalf of this principal go with, if there is one now.
    fn held(&self, identity: &Identity) -> Option<SecretString> {
        match self {
            Self::Granted(granted) => granted.held(identity),
            Self::Connected(connected) => connected.held(identity),
        }
    }

    /// Whose token may be borrowed while the upstream is reached.
    pub(super) fn loan(&self) -> &Loan {
        match self {
            Self::Granted(granted) => &granted.0.loan,
            Self::Connected(connected) => connected.loan(),
        }
    }

    /// What it means that the upstream could not be reached with nobody's token: where each has their own and that is what it
    /// asks for, nothing is wrong, and somebody has to come first. A 403 may have nothing to do with who asks.
    pub(super) fn unlent(&self, error: UpstreamError) -> UpstreamError {
        let asks = matches!(
            error,
            UpstreamError::Auth(None | Some(Denial { status: 401, .. }))
                | UpstreamError::Credential(CredentialError::Lacks(_))
        );
        if asks && self.lists_are_own() {
            CredentialError::Nobody(self.awaits()).into()
        } else {
            error
        }
    }

    /// Who has to come before there is anything to ask the upstream with.
    fn awaits(&self) -> &'static str {
        match self {
            Self::Granted(_) => {
                "nobody has come with a token yet; its lists come with the first who does"
            }
            Self::Connected(connected) if connected.is_used() => {
                "nobody who has logged in has come yet; its lists come with the first who does"
            }
            Self::Connected(_) => "nobody has logged in yet; its lists come with the first login",
        }
    }

    /// Sends `out` with the token of whoever it is on behalf of, the gateway itself where that is nobody. A request that is
    /// refused with 401 was not looked at, and is sent once more if a fresh token can be had (SECURITY REL-6).
    ///
    /// Where lists are each principal's own, what is on behalf of nobody goes without a token; while the upstream is reached,
    /// once more with a borrowed one if it is refused: whether there is a server and what it speaks is nobody's secret.
    ///
    /// # Errors
    /// [`UpstreamError::Credential`], and what the transport fails with.
    pub(super) async fn carry(
        &self,
        transport: &dyn Transport,
        out: Outbound,
        on_behalf: Option<&Arc<Identity>>,
    ) -> Result<Answer, UpstreamError> {
        if on_behalf.is_some() || !self.lists_are_own() {
            return self.carry_for(transport, out, on_behalf).await;
        }
        let Some(lender) = self.loan().lender() else {
            return sent(transport, out).await;
        };
        let again = out.clone();
        match sent(transport, out).await {
            Err(UpstreamError::Auth(_) | UpstreamError::Credential(CredentialError::Lacks(_))) => {
                self.loan().lent(&lender);
                let answer = self.carry_for(transport, again, Some(&lender)).await;
                if answer.is_ok() {
                    self.loan().taken();
                }
                answer
            }
            answer => answer,
        }
    }

    async fn carry_for(
        &self,
        transport: &dyn Transport,
        mut out: Outbound,
        on_behalf: Option<&Arc<Identity>>,
    ) -> Result<Answer, UpstreamError> {
        if out.resumes {
            out.credential = Some(Arc::new(Behalf::of(self, on_behalf)));
        }
        match self {
            Self::Granted(granted) => granted
                .carry(transport, out, on_behalf)
                .await
                .map_err(UpstreamError::past_login),
            Self::Connected(connected) => connected.carry(transport, out, on_behalf).await,
        }
    }

    /// The header for what is sent beside requests; `None` where none is to be sent.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub(super) async fn header(
        &self,
        on_behalf: Option<&Arc<Identity>>,
    ) -> Result<Option<http::HeaderValue>, CredentialError> {
        match self {
            Self::Granted(granted) => granted.header(on_behalf).await,
            Self::Connected(connected) => connected.header(on_behalf).await,
        }
    }
}

impl Granted {
    fn over(
        upstream: UpstreamId,
        spec: GrantSpec,
        fetcher: Result<Fetcher, FetchError>,
        tasks: Tasks,
    ) -> Self {
        let idp = match &spec.grant {
            Grant::IdJag { idp, .. } => Some(Endpoint::new(&upstream, idp.token_endpoint.clone())),
            Grant::ClientCredentials | Grant::TokenExchange { .. } => None,
        };
        Self(Arc::new(Shared {
            endpoint: Endpoint::new(&upstream, spec.server.token_endpoint.clone()),
            upstream,
            fetcher,
            idp,
            loan: Loan::default(),
            slots: Cache::builder()
                .max_capacity(MAX)
                .time_to_idle(IDLE)
                .build(),
            spec,
            tasks,
        }))
    }

    fn is_per_principal(&self) -> bool {
        self.0.spec.grant.is_per_principal()
    }

    async fn carry(
        &self,
        transport: &dyn Transport,
        mut out: Outbound,
        on_behalf: Option<&Arc<Identity>>,
    ) -> Result<Answer, UpstreamError> {
        let again = out.clone();
        let Some((slot, token)) = self.token(on_behalf).await? else {
            out.credential = None;
            return sent(transport, out).await;
        };
        out.headers.insert(AUTHORIZATION, token.header.clone());
        let answer = sent(transport, out).await;
        if !matches!(
            answer,
            Err(UpstreamError::Auth(Some(Denial { status: 401, .. })))
        ) || !slot.refused(&token.header)
        {
            return answer;
        }
        tracing::debug!(upstream = %self.0.upstream, "a token was refused; a fresh one is tried");
        let mut out = again;
        if let Some((_, token)) = self.token(on_behalf).await? {
            out.headers.insert(AUTHORIZATION, token.header);
        }
        out.trail.goes_again();
        sent(transport, out).await
    }

    fn held(&self, identity: &Identity) -> Option<SecretString> {
        let whose = if self.is_per_principal() {
            Whose::Principal(identity.grantee())
        } else {
            Whose::Service
        };
        self.0.slots.get(&whose)?.text()
    }

    async fn header(
        &self,
        on_behalf: Option<&Arc<Identity>>,
    ) -> Result<Option<http::HeaderValue>, CredentialError> {
        Ok(self.token(on_behalf).await?.map(|(_, token)| token.header))
    }

    /// Another token than this one, which was refused; `None` where a fresh one is not worth a try.
    async fn instead(
        &self,
        on_behalf: Option<&Arc<Identity>>,
        refused: &http::HeaderValue,
    ) -> Result<Option<http::HeaderValue>, CredentialError> {
        let Some((slot, token)) = self.token(on_behalf).await? else {
            return Ok(None);
        };
        if token.header != refused {
            return Ok(Some(token.header));
        }
        if !slot.refused(refused) {
            return Ok(None);
        }
        self.header(on_behalf).await
    }

    async fn token(
        &self,
        on_behalf: Option<&Arc<Identity>>,
    ) -> Result<Option<(Arc<Slot>, Token)>, CredentialError> {
        let shared = &self.0;
        let whose = match on_behalf.filter(|_| self.is_per_principal()) {
            Some(identity) => {
                if identity.assertion.is_none() {
                    return Err(CredentialError::NoSubject);
                }
                Whose::Principal(identity.grantee())
            }
            None if self.is_per_principal() && shared.spec.lists != ListsAs::Service => {
                return Ok(None);
            }
            None => Whose::Service,
        };
        let is_service = whose == Whose::Service;
        let slot = shared.slots.get_with(whose, Arc::default);
        let proof = on_behalf.filter(|_| !is_service);
        let ask = || -> Asking {
            let shared = Arc::clone(shared);
            let identity = proof.map(Arc::clone);
            Box::pin(async move {
                let assertion = identity.as_ref().and_then(|it| it.assertion.as_ref());
                let token = shared.ask(assertion).await;
                if let Err(error) = &token {
                    tracing::warn!(upstream = %shared.upstream, %error, "no token for an upstream");
                }
                token
            })
        };
        let token = slot.token(proof, ask, &shared.tasks).await?;
        Ok(Some((slot, token)))
    }
}

impl Shared {
    /// Asks for a token, for the gateway itself where there is no assertion.
    async fn ask(&self, assertion: Option<&Assertion>) -> Result<Token, CredentialError> {
        let fetcher = self.fetcher.as_ref().map_err(Clone::clone)?;
        let spec = &self.spec;
        let at = self.endpoint.address(fetcher).await?;
        match (assertion, &spec.grant, &self.idp) {
            (None, _, _) => ask::client_credentials(fetcher, &at, spec).await,
            (Some(Assertion(subject)), Grant::TokenExchange { subject: kind }, _) => {
                ask::exchange(fetcher, &at, spec, subject, kind.urn()).await
            }
            (
                Some(Assertion(subject)),
                Grant::IdJag {
                    subject: kind,
                    idp,
                    audience,
                },
                Some(endpoint),
            ) => {
                let from = endpoint.address(fetcher).await?;
                let who = (spec, idp, audience.as_str());
                let jag = ask::assertion(fetcher, &from, who, subject, kind.urn()).await?;
                ask::redeem(fetcher, &at, spec, &jag).await
            }
            // Nobody is ever stood for by the gateway's own token.
            (Some(_), Grant::ClientCredentials | Grant::IdJag { .. }, _) => {
                Err(CredentialError::NoSubject)
            }
        }
    }
}

impl std::fmt::Debug for Granted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Granted({})", self.0.upstream)
    }
}
