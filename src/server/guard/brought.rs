//! The credential that one request brings: taken out of its head, or misplaced.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts};

use crate::{
    auth::{Certificate, Presented, keys},
    server::Certified,
};

/// The header for API keys, beside `Authorization: Bearer`.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Names under which credentials are put where they do not belong, folded.
const NAMES: [&str; 11] = [
    "accesstoken",
    "apikey",
    "authorization",
    "authtoken",
    "bearer",
    "bearertoken",
    "idtoken",
    "jwt",
    "key",
    "token",
    "xapikey",
];

/// What came.
pub(super) struct Brought {
    authorization: Option<HeaderValue>,
    key: Option<HeaderValue>,
    certificate: Option<Arc<Certificate>>,
}

/// A credential where none belongs (SECURITY AUTHN-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misplaced {
    /// Two in one request.
    Two,
    /// In the query of the address.
    Query,
    /// In a cookie.
    Cookie,
}

impl Brought {
    /// Takes the credential out of a head.
    ///
    /// # Errors
    /// [`Misplaced`]; what was found is in no message.
    pub(super) fn take(head: &mut Parts) -> Result<Self, Misplaced> {
        if head.uri.query().is_some_and(query_holds_one) {
            return Err(Misplaced::Query);
        }
        let headers = &mut head.headers;
        if headers.contains_key(header::COOKIE) && cookies_hold_one(headers) {
            return Err(Misplaced::Cookie);
        }
        if headers.contains_key(API_KEY) && headers.get_all(API_KEY).iter().count() > 1 {
            return Err(Misplaced::Two);
        }
        let brought = Self {
            authorization: headers.remove(header::AUTHORIZATION),
            key: headers.remove(API_KEY),
            certificate: head.extensions.get::<Certified>().map(|it| it.0.clone()),
        };
        headers.remove(header::COOKIE);
        headers.remove(header::PROXY_AUTHORIZATION);
        match (&brought.authorization, &brought.key) {
            (Some(_), Some(_)) => Err(Misplaced::Two),
            _ => Ok(brought),
        }
    }

    /// What it is, to be judged. A header that cannot be read presents something that proves nothing.
    pub(super) fn presented(&self) -> Presented<'_> {
        Presented {
            bearer: self
                .authorization
                .as_ref()
                .map(|value| bearer(value).unwrap_or_default()),
            key: self
                .key
                .as_ref()
                .map(|value| value.to_str().map(str::trim).unwrap_or_default()),
            certificate: self.certificate.as_deref(),
        }
    }
}

/// The token of `Bearer TOKEN` (RFC 6750, 2.1); the scheme is told in any case (RFC 9110, 11.1).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim_start();
    let sound = !token.is_empty() && !token.contains([' ', ',', '\t']);
    (scheme.eq_ignore_ascii_case("bearer") && sound).then_some(token)
}

fn query_holds_one(query: &str) -> bool {
    form_urlencoded::parse(query.as_bytes()).any(|(name, value)| sounds_like_one(&name, &value))
}

fn cookies_hold_one(headers: &HeaderMap) -> bool {
    let cookies = headers.get_all(header::COOKIE).iter();
    cookies
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'))
        .any(|pair| {
            let pair = String::from_utf8_lossy(pair);
            let (name, value) = pair.split_once('=').unwrap_or((&pair, ""));
            sounds_like_one(name, value.trim().trim_matches('"'))
        })
}

/// By its name, or by what it looks like whatever it is called.
fn sounds_like_one(name: &str, value: &str) -> bool {
    let folded: Cow<'_, str> = name
        .trim()
        .chars()
        .filter(|char| !matches!(char, '_' | '-' | '.'))
        .map(|char| char.to_ascii_lowercase())
        .collect::<String>()
        .into();
    let named = NAMES.contains(&folded.as_ref()) && !value.is_empty();
    let jwt = value.starts_with("eyJ") && value.split('.').count() == 3;
    named || jwt || keys::looks_like_one(value)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn take(uri: &str, headers: &[(&str, &str)]) -> Result<Brought, Misplaced> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Brought::take(&mut request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_credential_is_taken_from_where_it_belongs_and_from_nowhere_else() {
        let brought = take("/mcp", &[("authorization", "bearer  abc")])
            .ok()
            .unwrap();
        assert_eq!(brought.presented().bearer, Some("abc"));
        let brought = take("/mcp", &[("x-api-key", "usher_1_2")]).ok().unwrap();
        assert_eq!(brought.presented().key, Some("usher_1_2"));
        for odd in [
            "Basic YTpi",
            "Bearer",
            "Bearer ",
            "Bearer a b",
            "Bearer a,Bearer b",
        ] {
            let brought = take("/mcp", &[("authorization", odd)]).ok().unwrap();
            assert_eq!(brought.presented().bearer, Some(""), "{odd}");
        }
    }

    // SECURITY AUTHN-4
    #[test]
    fn what_looks_like_a_credential_in_query_or_cookie_is_misplaced() {
        for query in [
            "access_token=x",
            "a=1&token=x",
            "API-Key=x",
            "acces%73_token=x",
            "x=eyJh.b.c",
            "x=usher_1_2",
        ] {
            let taken = take(&format!("/mcp?{query}"), &[]).err();
            assert_eq!(taken, Some(Misplaced::Query), "{query}");
        }
        for cookie in ["access_token=x", "a=b; jwt=\"x\"", "session=eyJh.b.c"] {
            let taken = take("/mcp", &[("cookie", cookie)]).err();
            assert_eq!(taken, Some(Misplaced::Cookie), "{cookie}");
        }
        assert!(
            take(
                "/mcp?session=0123&token=",
                &[("cookie", "AWSALB=abc; theme=dark")]
            )
            .is_ok()
        );
        let two = [("authorization", "Bearer a"), ("x-api-key", "usher_1_2")];
        assert_eq!(take("/mcp", &two).err(), Some(Misplaced::Two));
    }
}
