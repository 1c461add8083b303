//! Refusals: each with what a client needs to do better, and words that a person understands (PROTOCOL F5, RFC 6750, RFC 9728).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use super::{brought::Misplaced, metadata};
use crate::{
    audit::journal::Refused,
    auth::spec::AuthSpec,
    call::CallId,
    json::Json,
    jsonrpc::{RpcError, encode},
    protocol::{codes, meta},
    server::{Body, body::full},
};

/// An answer that lets nobody in, and what its record says.
pub(super) struct Refusal {
    pub(super) answer: Response<Body>,
    /// With the words and the reference of the answer (SECURITY 4).
    pub(super) record: Refused,
}

/// What the challenges of one endpoint have in common.
pub(super) struct Challenge {
    /// `resource_metadata="…"`, where there is an authorization server to be told of.
    pointer: Option<String>,
    /// What a first token should have.
    scopes: Arc<[Arc<str>]>,
    /// How somebody who has nothing is told what to bring.
    bring: &'static str,
}

impl Challenge {
    pub(super) fn new(spec: &AuthSpec, path: &str) -> Self {
        let pointer = metadata::is_served(spec).then(|| {
            format!(
                "resource_metadata=\"{}{}\"",
                spec.resource,
                metadata::path(path)
            )
        });
        let bring = match (&pointer, &spec.keys) {
            (Some(_), None) => {
                "a token of the authorization server that `resource_metadata` leads to"
            }
            (Some(_), Some(_)) => {
                "a token of the authorization server that `resource_metadata` leads to, or an API key of this gateway"
            }
            (None, Some(_)) => "an API key of this gateway",
            (None, None) => "a client certificate",
        };
        Self {
            pointer,
            scopes: spec.required_scopes.clone(),
            bring,
        }
    }

    /// Nothing was brought: no error yet (RFC 6750, 3.1).
    pub(super) fn missing(&self) -> Refusal {
        let text = format!(
            "sign in first: send `Authorization: Bearer …` with {}",
            self.bring
        );
        let mut refusal = refusal(
            StatusCode::UNAUTHORIZED,
            codes::UNAUTHENTICATED,
            &text,
            "credential_missing",
            None,
        );
        self.write(&mut refusal.answer, None, &self.scopes);
        refusal
    }

    /// What was brought proves nothing. What it did not stand up to is for the log and the record alone.
    pub(super) fn invalid(&self, check: &'static str) -> Refusal {
        let text = format!(
            "the credential is not valid here, or no longer; bring {}",
            self.bring
        );
        let mut refusal = refusal(
            StatusCode::UNAUTHORIZED,
            codes::UNAUTHENTICATED,
            &text,
            "credential_invalid",
            Some(check),
        );
        let error = ("invalid_token", "the token is not valid here, or no longer");
        self.write(&mut refusal.answer, Some(error), &self.scopes);
        refusal
    }

    /// The token is good and does not have these scopes, which everything here needs.
    pub(super) fn insufficient(&self, scopes: &[Arc<str>]) -> Refusal {
        let text = format!("this needs a token with the scope `{}`", scopes.join(" "));
        let mut refusal = refusal(
            StatusCode::FORBIDDEN,
            codes::FORBIDDEN,
            &text,
            "insufficient_scope",
            None,
        );
        self.step_up(&mut refusal.answer, scopes);
        refusal
    }

    /// Writes the challenge of an answer that says which scopes would help: all that are needed, in one.
    pub(super) fn step_up(&self, answer: &mut Response<Body>, scopes: &[Arc<str>]) {
        let mut all = self.scopes.to_vec();
        all.extend(
            scopes
                .iter()
                .filter(|it| !self.scopes.contains(it))
                .cloned(),
        );
        let error = ("insufficient_scope", "this needs a token with more scopes");
        self.write(answer, Some(error), &all);
    }

    fn write(&self, answer: &mut Response<Body>, error: Option<(&str, &str)>, scopes: &[Arc<str>]) {
        let mut parts = Vec::new();
        if let Some((error, description)) = error {
            parts.push(format!("error=\"{error}\""));
            parts.push(format!("error_description=\"{description}\""));
        }
        let scopes: Vec<&str> = scopes
            .iter()
            .map(|it| &**it)
            .filter(|it| is_scope(it))
            .collect();
        if !scopes.is_empty() {
            parts.push(format!("scope=\"{}\"", scopes.join(" ")));
        }
        parts.extend(self.pointer.clone());
        if parts.is_empty() {
            parts.push("realm=\"mcp\"".to_owned());
        }
        if let Ok(value) = HeaderValue::try_from(format!("Bearer {}", parts.join(", "))) {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
    }
}

/// A text that may stand as a scope (RFC 6749, 3.3).
fn is_scope(text: &str) -> bool {
    let sound = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5B | 0x5D..=0x7E);
    !text.is_empty() && text.bytes().all(sound)
}

/// A credential where none belongs.
pub(super) fn misplaced(what: Misplaced) -> Refusal {
    let text = match what {
        Misplaced::Two => "two credentials in one request; send one",
        Misplaced::Query => {
            "a credential in the address, where it is logged and kept; send it as `Authorization: Bearer …`, and replace it"
        }
        Misplaced::Cookie => "a credential in a cookie; send it as `Authorization: Bearer …`",
    };
    refusal(
        StatusCode::BAD_REQUEST,
        codes::INVALID_REQUEST,
        text,
        "credential_misplaced",
        None,
    )
}

/// Too many attempts of one address failed (SECURITY AUTHN-8), this one by that check.
pub(super) fn too_many(wait: Duration, check: &'static str) -> Refusal {
    let seconds = wait.as_secs().max(1);
    let text = format!(
        "too many attempts from this address failed; try again in {seconds} s, a valid credential at once"
    );
    let refusal = refusal(
        StatusCode::TOO_MANY_REQUESTS,
        codes::OVERLOADED,
        &text,
        "rate_limited",
        Some(check),
    );
    refusal.after(HeaderValue::from(seconds))
}

/// Nobody is asked about a token of this address now, since too many of them proved nothing (SECURITY AUTHN-8).
pub(super) fn crowded() -> Refusal {
    let refusal = refusal(
        StatusCode::TOO_MANY_REQUESTS,
        codes::OVERLOADED,
        "too many tokens from this address proved nothing, and this one was not asked about yet; try again in a few seconds",
        "rate_limited",
        Some("not asked about"),
    );
    refusal.after(HeaderValue::from_static("5"))
}

/// The identity provider cannot be asked (SECURITY AUTHN-7).
pub(super) fn unavailable() -> Refusal {
    let refusal = refusal(
        StatusCode::SERVICE_UNAVAILABLE,
        codes::UPSTREAM_UNAVAILABLE,
        "who calls cannot be told: the identity provider is not reachable; try again in a minute",
        "identity_unavailable",
        None,
    );
    refusal.after(HeaderValue::from_static("30"))
}

impl Refusal {
    /// So many seconds later it may be another.
    fn after(mut self, seconds: HeaderValue) -> Self {
        let headers = self.answer.headers_mut();
        headers.insert(header::RETRY_AFTER, seconds);
        self
    }
}

fn refusal(
    status: StatusCode,
    code: i64,
    text: &str,
    reason: &'static str,
    check: Option<&'static str>,
) -> Refusal {
    let reference = CallId::new();
    tracing::info!(%status, reason, why = check, "ref" = %reference, "a request was not admitted");
    let error = RpcError {
        data: Some(meta::object_of(&[
            ("reason", Json::string(reason)),
            ("ref", Json::string(&reference.to_string())),
        ])),
        ..RpcError::new(code, text.to_owned())
    };
    let body: Bytes = encode::error(None, &error);
    let mut answer = full(status, "application/json", body);
    answer
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Refusal {
        answer,
        record: Refused {
            reason,
            check,
            reference: Some(reference),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scope_can_write_into_the_header_that_names_it() {
        let challenge = Challenge {
            pointer: None,
            scopes: Arc::new(["a".into()]),
            bring: "",
        };
        let mut answer = full(StatusCode::FORBIDDEN, "application/json", Bytes::new());
        let hostile = ["b", "c\", error=\"none", "d\r\nx: y", "e f", "", "\\"].map(Arc::from);
        challenge.step_up(&mut answer, &hostile);
        let value = answer.headers()[header::WWW_AUTHENTICATE].to_str().unwrap();
        assert!(value.ends_with("scope=\"a b\""), "{value}");
    }
}
