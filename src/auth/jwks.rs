//! Key sets of issuers (RFC 7517): what can verify a signature is kept, everything else is left out.
//!
//! Guarantees: at most 100 keys from at most 256 KiB, unless configured; no symmetric key ever verifies; a key is used with the algorithms that
//! fit its kind and what it says of itself, and no other (SECURITY AUTHN-2, 6).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};

use super::{Standing, spec::ProofLimits};
use crate::{
    json::{Json, Kind, Limits},
    metrics::{Bound, reached},
};

/// The keys of one issuer.
#[derive(Debug, Default)]
pub struct KeySet {
    keys: Vec<Key>,
    /// Unix seconds until which it serves without being seen again.
    serves_until: AtomicU64,
}

/// One that verifies.
#[derive(Debug)]
pub(super) struct Key {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(super) decoding: DecodingKey,
    pub(super) standing: Arc<Standing>,
    /// The text it was read from: a key is the same one if it is spelled the same.
    text: Json,
}

/// A text that is no key set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKeySet {
    /// Over its bound, in bytes.
    #[error("more than {0} bytes")]
    TooLarge(usize),
    /// More keys than may be.
    #[error("more than {0} keys")]
    TooMany(usize),
    /// Not `{"keys":[…]}`.
    #[error("no JSON object with a list `keys`")]
    Shape,
    /// Nothing in it can verify a signature.
    #[error("no key in it can verify a signature")]
    Nothing,
}

/// Which of the keys a token may have been signed with.
pub(super) enum Candidate<'a> {
    One(&'a Key),
    /// None by that name.
    Unknown,
    /// The token names none, and there are several.
    Several,
}

impl KeySet {
    /// Reads a key set within the bounds that hold where nothing else is configured.
    ///
    /// # Errors
    /// See [`BadKeySet`]. Single keys of unknown kinds are left out.
    pub fn parse(text: Bytes) -> Result<Self, BadKeySet> {
        Self::within(text, &ProofLimits::default())
    }

    /// Reads a key set within these bounds.
    ///
    /// # Errors
    /// As [`KeySet::parse`].
    pub fn within(text: Bytes, limits: &ProofLimits) -> Result<Self, BadKeySet> {
        let set = Self::as_it_is(text, limits)?;
        if set.is_empty() {
            return Err(BadKeySet::Nothing);
        }
        Ok(set)
    }

    /// The same, where nothing in it may be able to verify a signature: that is what becomes of the keys of an issuer that takes
    /// all of them away.
    ///
    /// # Errors
    /// As [`KeySet::parse`], and never [`BadKeySet::Nothing`].
    pub fn as_it_is(text: Bytes, limits: &ProofLimits) -> Result<Self, BadKeySet> {
        if text.len() > limits.key_set_bytes {
            reached(Bound::AuthKeySet);
            return Err(BadKeySet::TooLarge(limits.key_set_bytes));
        }
        let set = Json::parse(text, &Limits::CLIENT).map_err(|_| BadKeySet::Shape)?;
        let list = set.root().member("keys");
        let list = list.filter(|list| list.kind() == Kind::Array);
        let list = list.ok_or(BadKeySet::Shape)?;
        let mut keys = Vec::new();
        for (number, node) in list.elements().enumerate() {
            if number >= limits.keys {
                reached(Bound::AuthKeys);
                return Err(BadKeySet::TooMany(limits.keys));
            }
            keys.extend(Key::read(set.slice(node)));
        }
        Ok(Self {
            keys,
            serves_until: AtomicU64::new(0),
        })
    }

    /// Whether nothing in it can verify a signature.
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// These keys; of those that were in `before` too, the ones from there.
    pub(super) fn following(mut self, before: Option<&Self>) -> Self {
        for key in &mut self.keys {
            let known = before.and_then(|before| before.keys.iter().find(|it| it.text == key.text));
            if let Some(known) = known {
                key.standing = known.standing.clone();
            }
        }
        self
    }

    pub(super) fn serve_until(&self, until: u64) {
        self.serves_until.store(until, Ordering::Release);
        for key in &self.keys {
            key.standing.serves_until.store(until, Ordering::Release);
        }
    }

    pub(super) fn serves(&self, now: u64) -> bool {
        now <= self.serves_until.load(Ordering::Acquire)
    }

    /// What is in this set and not in `after` proves nothing any more.
    pub(super) fn end_those_missing_in(&self, after: &Self) {
        let kept =
            |key: &Key| (after.keys.iter()).any(|it| Arc::ptr_eq(&it.standing, &key.standing));
        for key in self.keys.iter().filter(|key| !kept(key)) {
            key.standing.end();
        }
    }

    pub(super) fn candidate(&self, kid: Option<&str>, algorithm: Algorithm) -> Candidate<'_> {
        let fits = |key: &&Key| {
            key.algorithms.contains(&algorithm)
                && kid.is_none_or(|kid| key.kid.as_deref() == Some(kid))
        };
        let mut fitting = self.keys.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Candidate::One(key),
            // Two of one name: the set is not to be trusted with it.
            (Some(_), Some(_)) => Candidate::Several,
            (None, _) => Candidate::Unknown,
        }
    }
}

impl Key {
    fn read(text: Json) -> Option<Self> {
        let jwk: Jwk = text.read().ok()?;
        let common = &jwk.common;
        if matches!(common.public_key_use, Some(PublicKeyUse::Encryption)) {
            return None;
        }
        if (common.key_operations.as_ref()).is_some_and(|ops| !ops.contains(&KeyOperations::Verify))
        {
            return None;
        }
        let mut algorithms = algorithms(&jwk.algorithm);
        if let Some(own) = common.key_algorithm {
            let own = Algorithm::try_from(own).ok()?;
            algorithms.retain(|algorithm| *algorithm == own);
        }
        if algorithms.is_empty() {
            return None;
        }
        Some(Self {
            kid: common.key_id.clone(),
            algorithms,
            decoding: DecodingKey::from_jwk(&jwk).ok()?,
            standing: Arc::default(),
            text,
        })
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else there is, now or later, verifies nothing"
)]
fn algorithms(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match parameters {
        AlgorithmParameters::RSA(_) => vec![RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => vec![ES256],
            EllipticCurve::P384 => vec![ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            vec![EdDSA]
        }
        // A shared secret signs as well as it verifies: whoever publishes one vouches for nobody.
        _ => Vec::new(),
    }
}
