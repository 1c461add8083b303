//! What an authorization server says of a token that only it can read (RFC 7662).

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::{
    AuthError, Proof, Verified,
    claims::{self, Facts},
    spec::IntrospectionSpec,
};
use crate::json::{Json, Kind, Limits, Node};

/// Reads an answer; it is good for as long as the specification says.
pub(super) fn read(
    spec: &IntrospectionSpec,
    skew: u64,
    token: &str,
    answer: Bytes,
    now: u64,
) -> Result<Verified, AuthError> {
    let answer = Json::parse(answer, &Limits::CLIENT).map_err(|_| AuthError::Unavailable)?;
    let root = answer.root();
    if root.kind() != Kind::Object {
        return Err(AuthError::Unavailable);
    }
    if root.member("active").and_then(Node::as_bool) != Some(true) {
        return Err(AuthError::Invalid("not active"));
    }
    let expires = claims::seconds(root, "exp")?;
    if expires.is_some_and(|at| now > at.saturating_add(skew)) {
        return Err(AuthError::Invalid("expired"));
    }
    if claims::seconds(root, "nbf")?.is_some_and(|from| from > now.saturating_add(skew)) {
        return Err(AuthError::Invalid("not yet valid"));
    }
    if root.member("cnf").is_some() {
        return Err(AuthError::Invalid("bound to a key"));
    }
    let issuer = match root.member("iss") {
        None => spec.issuer.clone(),
        Some(node) => {
            let text = node.as_str().ok_or(AuthError::Invalid("iss"))?;
            let known = *text == *spec.issuer;
            known
                .then(|| Arc::from(text.as_ref()))
                .ok_or(AuthError::Invalid("iss"))?
        }
    };
    let audiences = claims::audiences(root)?;
    if audiences.is_empty() && spec.require_audience {
        return Err(AuthError::Invalid("no aud"));
    }
    let facts = Facts {
        token,
        issuer: &issuer,
        expires,
        skew,
        revoked: CancellationToken::new(),
    };
    let identity = claims::identity(root, &spec.claims, facts)?;
    Ok(Verified {
        identity: identity.into(),
        audiences,
        issuer: None,
        until: expires.map_or(u64::MAX, |at| at.saturating_add(skew)),
        proof: Proof::Introspected(now.saturating_add(spec.cache.as_secs())),
    })
}
