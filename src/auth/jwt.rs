//! JSON Web Tokens (RFC 7519, RFC 8725, RFC 9068): what one must be to prove anything.
//!
//! Guarantees: the header is read strictly and names nothing that is followed; the issuer is one that is configured, byte for
//! byte; the algorithm is one that this issuer may use and that fits the key; the signature is checked before any claim but
//! `iss` counts; `exp` and `aud` are there; every claim that counts has its type and stands once (SECURITY AUTHN-1 to
//! AUTHN-3).

use std::str::FromStr;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;

use super::{
    Asked, AuthError, Issuer, Proof, Verified,
    claims::{self, Facts},
    jwks::Candidate,
};
use crate::json::{Json, Kind, Limits, Node};

/// What a token may hold.
const LIMITS: Limits = Limits {
    depth: 16,
    values: 4_096,
    members: 1_024,
    key_bytes: 512,
    number_bytes: 32,
};
/// Bytes of a key's name.
const MAX_KID: usize = 256;

/// What came of one.
pub(super) enum Outcome {
    Verified(Verified),
    /// This issuer may have a key that is not known yet.
    NeedsKeys(usize),
    /// No JWT, or of an issuer that is not ours: somebody else may know it.
    Foreign,
    Refused(AuthError),
}

/// A token taken apart; nothing of it is proved yet.
struct Parts<'a> {
    signed: &'a str,
    signature: &'a str,
    header: Json,
    claims: Json,
}

/// Verifies a token at `now` in unix seconds, of which clocks may differ by `skew`.
pub(super) fn verify(
    issuers: &[Issuer],
    skew: u64,
    token: &str,
    asked: Asked,
    now: u64,
) -> Outcome {
    let Some(parts) = Parts::read(token) else {
        return Outcome::Foreign;
    };
    let claims = parts.claims.root();
    let named = claims.member("iss").and_then(Node::as_str);
    let of = |issuer: &Issuer| named.as_deref() == Some(&*issuer.spec.issuer);
    let Some(number) = issuers.iter().position(of) else {
        return Outcome::Foreign;
    };
    match signed_by(&issuers[number], &parts, asked, now) {
        Ok(Signed::By(proof, revoked)) => {
            let about = About {
                issuer: &issuers[number],
                number,
                token,
                now,
                skew,
            };
            let verified = about.verified(claims, proof, revoked);
            verified.map_or_else(Outcome::Refused, Outcome::Verified)
        }
        Ok(Signed::NeedsKeys) => Outcome::NeedsKeys(number),
        Err(error) => Outcome::Refused(error),
    }
}

enum Signed {
    By(Proof, tokio_util::sync::CancellationToken),
    NeedsKeys,
}

impl<'a> Parts<'a> {
    fn read(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let object = |part: &str| {
            let text = URL_SAFE_NO_PAD.decode(part).ok()?;
            // Members that stand twice are refused here (SECURITY AUTHN-3).
            let json = Json::parse(text.into(), &LIMITS).ok()?;
            (json.root().kind() == Kind::Object).then_some(json)
        };
        Some(Self {
            signed,
            signature,
            header: object(header)?,
            claims: object(claims)?,
        })
    }
}

/// Checks the header and the signature.
// SECURITY AUTHN-2
fn signed_by(
    issuer: &Issuer,
    parts: &Parts<'_>,
    asked: Asked,
    now: u64,
) -> Result<Signed, AuthError> {
    let header = parts.header.root();
    let mut kid = None;
    let mut algorithm = None;
    for member in header.members() {
        match member.key.as_ref() {
            "alg" => {
                let text = member.value.as_str().ok_or(AuthError::Invalid("alg"))?;
                algorithm =
                    Some(Algorithm::from_str(&text).map_err(|_| AuthError::Invalid("alg"))?);
            }
            "kid" => {
                let text = member.value.as_str().filter(|text| text.len() <= MAX_KID);
                kid = Some(text.ok_or(AuthError::Invalid("kid"))?);
            }
            "typ" => {
                let text = member.value.as_str().ok_or(AuthError::Invalid("typ"))?;
                let known = ["jwt", "at+jwt", "application/at+jwt", "application/jwt"];
                if !known.iter().any(|known| text.eq_ignore_ascii_case(known)) {
                    return Err(AuthError::Invalid("typ"));
                }
            }
            // What would have to be understood, unpacked, or brings its own key.
            "crit" | "b64" | "zip" | "enc" | "jwk" | "jku" | "x5u" | "x5c" => {
                return Err(AuthError::Invalid("a header that is not taken"));
            }
            _ => {}
        }
    }
    let algorithm = algorithm.ok_or(AuthError::Invalid("alg"))?;
    if !issuer.spec.algorithms.contains(&algorithm) {
        return Err(AuthError::Invalid("alg"));
    }
    let keys = issuer.keys.load();
    let Some(keys) = keys.as_ref().filter(|keys| keys.serves(now)) else {
        return match asked {
            Asked::First => Ok(Signed::NeedsKeys),
            Asked::Again => Err(AuthError::Unavailable),
        };
    };
    let key = match keys.candidate(kid.as_deref(), algorithm) {
        Candidate::One(key) => key,
        Candidate::Unknown if asked == Asked::First && kid.as_deref().is_none_or(is_plain) => {
            return Ok(Signed::NeedsKeys);
        }
        Candidate::Unknown | Candidate::Several => return Err(AuthError::Invalid("kid")),
    };
    let verified = jsonwebtoken::crypto::verify(
        parts.signature,
        parts.signed.as_bytes(),
        &key.decoding,
        algorithm,
    );
    if !matches!(verified, Ok(true)) {
        return Err(AuthError::Invalid("signature"));
    }
    let standing = key.standing.clone();
    let revoked = standing.revoked.clone();
    Ok(Signed::By(Proof::Signed(standing), revoked))
}

/// Whether the name of an unknown key is worth looking for: names that look like places are not.
fn is_plain(kid: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=+@".contains(&byte);
    !kid.is_empty() && kid.bytes().all(plain) && !kid.contains("..")
}

/// A token with a sound signature.
struct About<'a> {
    issuer: &'a Issuer,
    number: usize,
    token: &'a str,
    now: u64,
    skew: u64,
}

/// What it says.
// SECURITY AUTHN-1, AUTHN-3
impl About<'_> {
    fn verified(
        self,
        claims: Node<'_>,
        proof: Proof,
        revoked: tokio_util::sync::CancellationToken,
    ) -> Result<Verified, AuthError> {
        let Self {
            issuer,
            number,
            token,
            now,
            skew,
        } = self;
        let expires = claims::seconds(claims, "exp")?.ok_or(AuthError::Invalid("no exp"))?;
        if now > expires.saturating_add(skew) {
            return Err(AuthError::Invalid("expired"));
        }
        for claim in ["nbf", "iat"] {
            if claims::seconds(claims, claim)?.is_some_and(|from| from > now.saturating_add(skew)) {
                return Err(AuthError::Invalid("not yet valid"));
            }
        }
        // Bound to a key that the client would have to prove: as a bearer token it is a stolen one.
        if claims.member("cnf").is_some() {
            return Err(AuthError::Invalid("bound to a key"));
        }
        let audiences = claims::audiences(claims)?;
        if audiences.is_empty() {
            return Err(AuthError::Invalid("no aud"));
        }
        let facts = Facts {
            token,
            issuer: &issuer.spec.issuer,
            expires: Some(expires),
            skew,
            revoked,
        };
        let identity = claims::identity(claims, &issuer.spec.claims, facts)?;
        Ok(Verified {
            identity: identity.into(),
            audiences,
            issuer: Some(number),
            until: expires.saturating_add(skew),
            proof,
        })
    }
}
