//! Who calls: a presented credential becomes an [`Identity`], or a refusal that says no more than it must.
//!
//! Guarantees: a token counts only if a configured issuer's key signed it with an allowed algorithm, for this audience, now
//! (SECURITY AUTHN-1 to AUTHN-3); nothing that a token names is ever fetched; a verified token is looked up and not verified
//! again until it or its key ends; static keys exist as keyed hashes only (AUTHN-9). Deliberately absent: HTTP, files and the
//! network. What must be fetched is named in a [`Verdict`] and put in by whoever fetched it.

mod cache;
mod certificate;
mod claims;
mod introspection;
mod jwks;
mod jwt;
pub mod keys;
pub mod spec;

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio_util::sync::CancellationToken;

use crate::{
    call::Identity,
    metrics::{Bound, reached},
};

pub use certificate::{Certificate, NotACertificate, Outline};
pub use jwks::{BadKeySet, KeySet};

use cache::Cache;
use keys::KeyTable;
use spec::{AuthSpec, IssuerSpec};

/// Decides who calls.
pub struct Authenticator {
    spec: AuthSpec,
    issuers: Vec<Issuer>,
    keys: ArcSwap<KeyTable>,
    cache: Cache,
}

/// One issuer, and the keys it has now.
struct Issuer {
    spec: IssuerSpec,
    keys: ArcSwapOption<KeySet>,
}

/// What one request brings.
#[derive(Clone, Copy, Default)]
pub struct Presented<'a> {
    /// The bearer token: a JWT, an API key, or something to introspect.
    pub bearer: Option<&'a str>,
    /// The API key, where it came in a header of its own.
    pub key: Option<&'a str>,
    /// What the peer of the connection proved in the handshake.
    pub certificate: Option<&'a Certificate>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// This is who calls.
    Proved(Arc<Identity>),
    /// Not admitted.
    Refused(AuthError),
    /// The issuer of this number may have a key that is not known yet: worth one refresh, then ask again.
    NeedsKeys(usize),
    /// The token means nothing by itself: the authorization server has to be asked, then ask again.
    NeedsIntrospection,
}

/// Whether what was missing has been looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Not yet.
    First,
    /// Yes: what is still missing is not there.
    Again,
}

/// Why nobody is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Nothing was presented, and anonymous is not allowed.
    #[error("no credential")]
    Missing,
    /// Something was, and it proves nothing. Which check failed is told to nobody (SECURITY AUTHN-1).
    #[error("credential not valid: {0}")]
    Invalid(&'static str),
    /// Its address failed too often for anybody to be asked about one more token now (SECURITY AUTHN-8).
    #[error("too many failed attempts of this address")]
    Crowded,
    /// The identity provider's keys are not to be had (SECURITY AUTHN-7).
    #[error("identity provider not reachable")]
    Unavailable,
}

/// What a cached token was proved by.
#[derive(Debug, Clone)]
struct Verified {
    identity: Arc<Identity>,
    /// The audiences that the token names, and which issuer's list they are judged by.
    audiences: Vec<Arc<str>>,
    issuer: Option<usize>,
    /// Unix seconds of its end, the tolerance included.
    until: u64,
    proof: Proof,
}

/// What has to hold on for a verified token to count.
#[derive(Debug, Clone)]
enum Proof {
    /// A key of an issuer.
    Signed(Arc<Standing>),
    /// An answer of an authorization server, good until then (unix seconds).
    Introspected(u64),
}

/// How a signing key stands.
#[derive(Debug, Default)]
pub struct Standing {
    gone: AtomicBool,
    /// Unix seconds until which it serves without being seen again.
    serves_until: AtomicU64,
    revoked: CancellationToken,
}

impl Standing {
    fn end(&self) {
        self.gone.store(true, Ordering::Release);
        self.revoked.cancel();
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    fn serves(&self, now: u64) -> bool {
        now <= self.serves_until.load(Ordering::Acquire)
    }
}

impl Authenticator {
    /// One that knows no keys yet.
    pub fn new(spec: AuthSpec) -> Self {
        let issuer = |spec: &IssuerSpec| Issuer {
            spec: spec.clone(),
            keys: ArcSwapOption::empty(),
        };
        Self {
            issuers: spec.issuers.iter().map(issuer).collect(),
            keys: ArcSwap::from_pointee(KeyTable::default()),
            cache: Cache::new(),
            spec,
        }
    }

    /// What it goes by.
    pub const fn spec(&self) -> &AuthSpec {
        &self.spec
    }

    /// Decides for one request at an endpoint whose own audiences are `audiences`, at `now` in unix seconds.
    // SECURITY AUTHN-1 to AUTHN-3, AUTHN-7
    pub fn judge(
        &self,
        presented: Presented<'_>,
        audiences: &[Arc<str>],
        asked: Asked,
        now: u64,
    ) -> Verdict {
        let verdict = match presented {
            Presented { key: Some(key), .. } => self.by_key(key, now),
            Presented {
                bearer: Some(token),
                ..
            } if keys::looks_like_one(token) => self.by_key(token, now),
            Presented {
                bearer: Some(token),
                ..
            } => return self.by_token(token, audiences, asked, now),
            Presented {
                certificate: Some(certificate),
                ..
            } if self.spec.certificates.is_some() => self.by_certificate(certificate, now),
            Presented { .. } if self.spec.anonymous => Ok(Identity::anonymous()),
            Presented { .. } => Err(AuthError::Missing),
        };
        verdict.map_or_else(Verdict::Refused, Verdict::Proved)
    }

    fn by_token(&self, token: &str, audiences: &[Arc<str>], asked: Asked, now: u64) -> Verdict {
        // Nobody is asked about what can be no token.
        if token.is_empty() {
            return Verdict::Refused(AuthError::Invalid("no bearer token"));
        }
        if token.len() > self.spec.limits.token_bytes {
            reached(Bound::Token);
            return Verdict::Refused(AuthError::Invalid("longer than a token may be"));
        }
        let digest = Cache::digest(token);
        if let Some(verified) = self.cache.find(&digest)
            && let Some(verdict) = self.still(&verified, audiences, now)
        {
            return verdict;
        }
        match jwt::verify(&self.issuers, self.spec.limits.skew, token, asked, now) {
            jwt::Outcome::Verified(verified) => {
                let fits = self.fits(&verified, audiences);
                let identity = verified.identity.clone();
                // Kept also where it does not fit: it may at another endpoint.
                self.cache.keep(digest, token.len(), verified);
                if fits {
                    Verdict::Proved(identity)
                } else {
                    Verdict::Refused(AuthError::Invalid("audience"))
                }
            }
            jwt::Outcome::NeedsKeys(issuer) => Verdict::NeedsKeys(issuer),
            jwt::Outcome::Foreign if self.spec.introspection.is_some() && asked == Asked::First => {
                Verdict::NeedsIntrospection
            }
            jwt::Outcome::Foreign => Verdict::Refused(AuthError::Invalid("not a token of ours")),
            jwt::Outcome::Refused(error) => Verdict::Refused(error),
        }
    }

    /// What a token that was verified before is worth now; `None` when that has to be found out anew.
    fn still(&self, verified: &Verified, audiences: &[Arc<str>], now: u64) -> Option<Verdict> {
        let refused = |error| Some(Verdict::Refused(error));
        match &verified.proof {
            // Its server may have moved the end.
            Proof::Introspected(_) if now > verified.until => return None,
            Proof::Signed(_) if now > verified.until => {
                return refused(AuthError::Invalid("expired"));
            }
            Proof::Signed(key) if key.is_gone() => return None,
            Proof::Signed(key) if !key.serves(now) => return None,
            Proof::Introspected(until) if now > *until => return None,
            Proof::Signed(_) | Proof::Introspected(_) => {}
        }
        if self.fits(verified, audiences) {
            Some(Verdict::Proved(verified.identity.clone()))
        } else {
            refused(AuthError::Invalid("audience"))
        }
    }

    /// Whether a token is for this endpoint: byte for byte (SECURITY AUTHN-3).
    fn fits(&self, verified: &Verified, endpoint: &[Arc<str>]) -> bool {
        let own = match verified.issuer {
            Some(number) => self.issuers.get(number).map(|it| &*it.spec.audiences),
            None => self.spec.introspection.as_ref().map(|it| &*it.audiences),
        };
        let unbound = verified.issuer.is_none()
            && verified.audiences.is_empty()
            && (self.spec.introspection.as_ref()).is_some_and(|it| !it.require_audience);
        let wanted = own.filter(|own| !own.is_empty()).unwrap_or(endpoint);
        unbound || (verified.audiences.iter()).any(|named| wanted.contains(named))
    }

    /// Takes in what an issuer's keys are now; they serve until `serves_until` (unix seconds) without being seen again.
    /// Keys that are the same stay the same; those that are missing end, and with them what was proved by them. An issuer that has
    /// none any more has none that a token could be signed with; one that never had any is one whose keys are not known.
    // SECURITY AUTHN-1, AUTHN-5, AUTHN-7
    pub fn put_keys(&self, issuer: usize, keys: KeySet, serves_until: u64) {
        let Some(issuer) = self.issuers.get(issuer) else {
            return;
        };
        let before = issuer.keys.load_full();
        if before.is_none() && keys.is_empty() {
            return;
        }
        let keys = keys.following(before.as_deref());
        keys.serve_until(serves_until);
        issuer.keys.store(Some(Arc::new(keys)));
        if let (Some(before), Some(after)) = (before, issuer.keys.load_full()) {
            before.end_those_missing_in(&after);
        }
    }

    /// An issuer's keys are what they were: they serve until `serves_until` (unix seconds).
    pub fn keep_keys(&self, issuer: usize, serves_until: u64) {
        if let Some(issuer) = self.issuers.get(issuer)
            && let Some(keys) = &*issuer.keys.load()
        {
            keys.serve_until(serves_until);
        }
    }

    /// Whether an issuer has keys that serve.
    pub fn has_keys(&self, issuer: usize, now: u64) -> bool {
        let issuer = self.issuers.get(issuer);
        issuer.is_some_and(|it| {
            let keys = it.keys.load();
            (keys.as_ref()).is_some_and(|keys| keys.serves(now) && !keys.is_empty())
        })
    }

    /// Takes in the API keys there are now; those that are gone end, and with them their streams.
    pub fn put_api_keys(&self, table: KeyTable) {
        let before = self.keys.load_full();
        self.keys.store(Arc::new(table.following(&before)));
        before.end_those_missing_in(&self.keys.load());
    }

    /// The API keys there are now.
    pub fn api_keys(&self) -> Arc<KeyTable> {
        self.keys.load_full()
    }

    fn by_key(&self, key: &str, now: u64) -> Result<Arc<Identity>, AuthError> {
        let (Some(spec), true) = (&self.spec.keys, key.len() <= keys::MAX_KEY) else {
            return Err(AuthError::Invalid("no API key"));
        };
        let found = self.keys.load().find(key, &spec.secret, now);
        found.map_err(AuthError::Invalid)
    }

    fn by_certificate(
        &self,
        certificate: &Certificate,
        now: u64,
    ) -> Result<Arc<Identity>, AuthError> {
        let Some(spec) = &self.spec.certificates else {
            return Err(AuthError::Missing);
        };
        if now > certificate.not_after() {
            return Err(AuthError::Invalid("certificate expired"));
        }
        let identity = certificate.identity(spec);
        identity.ok_or(AuthError::Invalid(
            "certificate without the name that is looked for",
        ))
    }

    /// Takes in what the authorization server said of a token, and decides by it. A token that is no longer active, or
    /// of which it says something else than before, ends what hangs on it.
    pub fn put_introspected(
        &self,
        token: &str,
        answer: bytes::Bytes,
        audiences: &[Arc<str>],
        now: u64,
    ) -> Verdict {
        let Some(spec) = &self.spec.introspection else {
            return Verdict::Refused(AuthError::Invalid("not a token of ours"));
        };
        let digest = Cache::digest(token);
        match introspection::read(spec, self.spec.limits.skew, token, answer, now) {
            Ok(verified) => {
                let fits = self.fits(&verified, audiences);
                let identity = (self.cache).keep_introspected(digest, token.len(), verified);
                if fits {
                    Verdict::Proved(identity)
                } else {
                    Verdict::Refused(AuthError::Invalid("audience"))
                }
            }
            Err(error) => {
                // That the server is not to be had says nothing of the token.
                if let AuthError::Invalid(_) = error {
                    self.cache.take_back(&digest);
                }
                Verdict::Refused(error)
            }
        }
    }

    /// Whether a token counted when somebody was asked about it last. It may be time to ask again.
    pub fn knows(&self, token: &str) -> bool {
        self.cache.find(&Cache::digest(token)).is_some()
    }

    /// Tokens that were introspected and that something still hangs on: a stream, a session.
    pub fn introspected_in_use(&self) -> Vec<Arc<Identity>> {
        self.cache.introspected_in_use()
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

/// Unix seconds as a time.
fn time(seconds: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}
