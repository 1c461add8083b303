//! Who was proved to call: what authentication knows of the sender of one request.
//!
//! Made by `auth` alone (and [`Identity::anonymous`]); read by policy, limits, credentials to upstreams and audit. It belongs
//! to the request, not to a session: a session keeps only its [`Principal`], and each request brings its own proof.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use super::Principal;
use crate::tasks::PerLane;

/// What is known of the sender of a request (PRODUCT 7).
#[derive(Debug)]
pub struct Identity {
    /// The unit of ownership: equal for all requests of the same somebody, whatever token they carry.
    pub principal: Principal,
    /// What sort of somebody.
    pub kind: IdentityKind,
    /// The name under which policy knows them: the mapped user claim, the OAuth client, or the key's name. Exact bytes.
    pub name: Arc<str>,
    /// Who vouches: the issuer of the token; `None` for keys, certificates and anonymous.
    pub issuer: Option<Arc<str>>,
    /// Groups that the credential names. Memberships of `groups.yaml` are policy's.
    pub groups: BTreeSet<Arc<str>>,
    /// The tenant, where claims are mapped to one.
    pub tenant: Option<Arc<str>>,
    /// Scopes that were granted.
    pub scopes: BTreeSet<Arc<str>>,
    /// The OAuth client that acts, where the token names one.
    pub client: Option<Arc<str>>,
    /// Who answers for an API key; `None` for everybody else (SECURITY AUTHN-9).
    pub owner: Option<Arc<str>>,
    /// When the proof ends; streams opened under it end with it (SECURITY AUTHN-5).
    pub until: Option<End>,
    /// Cancelled when the proof is withdrawn before its time: a revoked key, an issuer that is gone.
    pub revoked: CancellationToken,
    /// The id of an API key, by which its file and records name it; `None` for everybody else.
    pub key: Option<Arc<str>>,
    /// The token itself, for exchange at an upstream's authorization server and nothing else (SECURITY EGR-1, EGR-10).
    pub assertion: Option<Assertion>,
}

/// When a proof ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    at: SystemTime,
    tolerance: Duration,
}

impl End {
    /// At this time, after which it is taken for so much longer, since clocks differ.
    pub const fn new(at: SystemTime, tolerance: Duration) -> Self {
        Self { at, tolerance }
    }

    /// At this time by our own clock.
    pub const fn sharp(at: SystemTime) -> Self {
        Self::new(at, Duration::ZERO)
    }

    /// When a stream that is opened at `now` ends: with the proof, or with the tolerance if it is opened within that. Whoever is
    /// let in gets more than the first event, and a stream that was there before goes on no longer than the proof says.
    // SECURITY AUTHN-5
    pub fn of_a_stream(self, now: SystemTime) -> SystemTime {
        if now < self.at {
            return self.at;
        }
        self.at.checked_add(self.tolerance).unwrap_or(self.at)
    }
}

/// What sort of somebody calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdentityKind {
    /// Nobody was asked.
    Anonymous,
    /// A person.
    User,
    /// An OAuth client that acts for itself.
    Agent,
    /// An API key.
    Key,
}

/// What the principal of a client certificate begins with.
pub const BY_CERTIFICATE: &str = "certificate ";

/// How somebody proved who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// By an API key.
    Key,
    /// By a client certificate.
    Certificate,
    /// By a token of an issuer.
    Token,
}

impl AuthMethod {
    /// The word for it in records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Certificate => "certificate",
            Self::Token => "token",
        }
    }
}

/// A token that was presented, kept for token exchange. Its text shows in no log and no debug output.
pub struct Assertion(pub SecretString);

impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Assertion(..)")
    }
}

/// Whom an upstream is asked for: a principal, and what it was granted here. The latter is part of it, so that who comes with
/// less does not get what was given for more.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grantee {
    /// Who.
    pub principal: Principal,
    client: Option<Arc<str>>,
    scopes: BTreeSet<Arc<str>>,
}

impl Grantee {
    /// A text that differs for different ones.
    pub fn text(&self) -> Arc<str> {
        let client = self.client.as_deref();
        let scopes = self.scopes.iter().map(|scope| &**scope);
        let parts = [self.principal.as_str(), client.unwrap_or_default()];
        let parts: Vec<_> = parts.into_iter().chain(scopes).collect();
        // None of them may hold this.
        parts.join("\u{1}").into()
    }
}

impl Identity {
    /// How they proved it; `None` where nobody was asked, and where whoever runs a command says who it is.
    pub fn method(&self) -> Option<AuthMethod> {
        match (self.kind, &self.issuer) {
            (IdentityKind::Anonymous, _) => None,
            (IdentityKind::Key, _) => Some(AuthMethod::Key),
            (IdentityKind::User | IdentityKind::Agent, Some(_)) => Some(AuthMethod::Token),
            (IdentityKind::User | IdentityKind::Agent, None) => {
                let shown = self.principal.as_str().starts_with(BY_CERTIFICATE);
                shown.then_some(AuthMethod::Certificate)
            }
        }
    }

    /// Whether policy sees the same in both: who it is, and what their proof says of them.
    pub fn has_the_rights_of(&self, other: &Self) -> bool {
        // Named one by one, so that whoever adds something has to say whether it counts.
        let Self {
            principal: _,
            kind,
            name,
            issuer,
            groups,
            tenant,
            scopes,
            client,
            owner,
            until: _,
            revoked: _,
            key: _,
            assertion: _,
        } = self;
        *kind == other.kind
            && *name == other.name
            && *issuer == other.issuer
            && *groups == other.groups
            && *tenant == other.tenant
            && *scopes == other.scopes
            && *client == other.client
            && *owner == other.owner
    }

    /// Who has a share of what is held in memory; nobody where all are one.
    pub fn payer(&self) -> Option<Arc<str>> {
        (self.kind != IdentityKind::Anonymous).then(|| self.principal.shared())
    }

    /// Whom upstreams are asked for on its behalf.
    pub fn grantee(&self) -> Grantee {
        Grantee {
            principal: self.principal.clone(),
            client: self.client.clone(),
            scopes: self.scopes.clone(),
        }
    }

    /// Whether two are one proof. Nobody proves to be anonymous, so that is one however often it is held.
    pub fn is_proof_of(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let anonymous = |of: &Self| of.kind == IdentityKind::Anonymous;
        Arc::ptr_eq(self, other) || anonymous(self) && anonymous(other)
    }

    /// Whether both came with the same token, even where what it proves was found out anew.
    pub fn came_with_the_token_of(&self, other: &Self) -> bool {
        let tokens = self.assertion.as_ref().zip(other.assertion.as_ref());
        tokens.is_some_and(|(own, other)| own.0.expose_secret() == other.0.expose_secret())
    }

    /// For tests: somebody of this name, which is their principal, too, of whom nothing else is known.
    #[cfg(test)]
    pub(crate) fn named(kind: IdentityKind, name: &str) -> Self {
        Self::bare(Principal::new(name), kind, name)
    }

    /// Somebody of whom nothing else is known.
    fn bare(principal: Principal, kind: IdentityKind, name: &str) -> Self {
        Self {
            principal,
            kind,
            name: name.into(),
            issuer: None,
            groups: BTreeSet::new(),
            tenant: None,
            scopes: BTreeSet::new(),
            client: None,
            owner: None,
            until: None,
            revoked: CancellationToken::new(),
            key: None,
            assertion: None,
        }
    }

    /// Whoever comes in where no authentication is configured.
    pub fn anonymous() -> Arc<Self> {
        // One for each lane, so that calls of two count nothing together.
        static ANONYMOUS: LazyLock<PerLane<Arc<Identity>>> = LazyLock::new(|| {
            let anonymous = || {
                let principal = Principal::anonymous();
                Arc::new(Identity::bare(
                    principal,
                    IdentityKind::Anonymous,
                    "anonymous",
                ))
            };
            PerLane::of(anonymous)
        });
        ANONYMOUS.at(ANONYMOUS.here()).clone()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{Barrier, mpsc};

    use super::*;
    use crate::{
        call::CallId,
        tasks::{Lanes, Tasks},
    };

    /// On each of two lanes: whoever is anonymous there, and the ids of some calls.
    async fn of_two_lanes() -> Vec<(Arc<Identity>, Vec<CallId>)> {
        let tasks = Tasks::over(Lanes::of(2).unwrap());
        let (told, mut heard) = mpsc::channel(2);
        // Whoever comes next is seated beside nobody only while the first is there.
        let together = Arc::new(Barrier::new(2));
        for _ in 0..2 {
            let (told, together) = (told.clone(), Arc::clone(&together));
            tasks.spread(async move {
                together.wait().await;
                let ids = (0..600).map(|_| CallId::new()).collect();
                told.send((Identity::anonymous(), ids)).await.unwrap();
            });
        }
        let both = vec![heard.recv().await.unwrap(), heard.recv().await.unwrap()];
        tasks.finish().await;
        both
    }

    #[tokio::test]
    async fn nobody_in_particular_is_the_same_on_every_lane_and_no_call_is() {
        let [(one, its), (other, others)] = &of_two_lanes().await[..] else {
            panic!("two lanes");
        };
        assert!(!Arc::ptr_eq(one, other), "each lane counts its own");
        assert!(one.is_proof_of(other));
        let ids: std::collections::HashSet<_> = its.iter().chain(others).collect();
        assert_eq!(ids.len(), 1_200);
    }
}
