//! What no upstream over HTTP may answer: a redirect (SECURITY EGR-3), or that it refuses our credential (EGR-6).
//! This is the one place where they are refused, whatever comes with them.
//!
//! Guarantees: of such an answer nothing is acted on but its status and, of a 403, whether it names scopes that the token
//! lacks, and whether it asks for any credential: no frame of it is looked at. (A 401 that is not about a credential does not come
//! here: `http::forgotten`.) Where a redirect leads, the words of a challenge, and what a 403 says that has none, are told to
//! operators alone, without what may be a secret in them. Of that text no more than [`MOST`] bytes are read, and for no longer
//! than [`PATIENCE`]. Deliberately absent: what other statuses mean, which the peers know; of those that say that the request came at a bad time, when the next
//! one would not is read here.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_ENCODING, DATE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use smallvec::SmallVec;
use tokio::time::timeout;

use super::{body::beginning, pool::Arriving, printable::printable};
use crate::{
    fetch::Challenge,
    protocol::mirror::header::SESSION_ID,
    sanitize::{OwnCredentials, without_secrets},
    upstream::{CredentialError, Denial, UpstreamError},
};

/// The longest wait that an upstream may ask for: what has a quota has it for a day.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The most characters of an address, of a challenge's words, or of a text, that are told.
const SHOWN: usize = 200;
/// The most bytes of a text that are read: a secret in what is told of it is read to its end.
const MOST: usize = 16 << 10;
/// How long those may be in coming.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a request carried that is told to nobody, though its answer repeat it.
// Few carry more than a token and a session, and of nearly all of them it is never asked.
pub(super) struct Carried(SmallVec<[HeaderValue; 2]>);

impl Carried {
    /// Of a request with these headers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let is_secret = |name, value: &HeaderValue| {
            value.is_sensitive() || name == AUTHORIZATION || name == SESSION_ID
        };
        let secret = headers
            .iter()
            .filter(|(name, value)| is_secret(*name, value));
        Self(secret.map(|(_, value)| value.clone()).collect())
    }

    fn taken_out_of(&self, text: &str) -> String {
        let own = OwnCredentials::new();
        own.hold(self.0.iter().filter_map(|value| value.to_str().ok()));
        without_secrets(&own.without(text)).into_owned()
    }
}

/// The answer to a request that `carried` this, unless its status is one that is refused.
///
/// # Errors
/// [`UpstreamError::Redirect`], [`UpstreamError::Auth`], [`UpstreamError::RequestTooLarge`]; [`UpstreamError::Credential`] where
/// a 403 says that a token lacks scopes.
pub(super) async fn admitted(
    response: Response<Arriving>,
    carried: &Carried,
) -> Result<Response<Arriving>, UpstreamError> {
    match refusal(&response) {
        None => Ok(response),
        Some(error) => Err(Box::pin(in_its_words(error, response, carried)).await),
    }
}

/// What it means, where the status is one that is refused.
fn refusal<B>(response: &Response<B>) -> Option<UpstreamError> {
    let status = response.status();
    Some(match status {
        _ if status.is_redirection() => UpstreamError::Redirect(location(response.headers())),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => denied(response),
        StatusCode::PAYLOAD_TOO_LARGE => UpstreamError::RequestTooLarge,
        _ => return None,
    })
}

/// The error with what the answer says, where it asks for no credential: then nothing else tells what it is about.
async fn in_its_words(
    mut error: UpstreamError,
    response: Response<Arriving>,
    carried: &Carried,
) -> UpstreamError {
    if let UpstreamError::Auth(Some(denial)) = &mut error
        && !denial.asks
    {
        denial.said = excerpt(response, carried).await;
    }
    error
}

/// The beginning of what an answer says, on one line and without secrets.
async fn excerpt(response: Response<Arriving>, carried: &Carried) -> Option<Box<str>> {
    // What is compressed is no text.
    if response.headers().contains_key(CONTENT_ENCODING) {
        return None;
    }
    let mut body = response.into_body();
    let text = timeout(PATIENCE, beginning(&mut body, MOST)).await.ok()?;
    let text = carried.taken_out_of(&String::from_utf8_lossy(&text));
    let words: Vec<_> = text.split_whitespace().collect();
    let shown: String = words.join(" ").chars().take(SHOWN).collect();
    (!shown.is_empty()).then(|| printable(&shown).into())
}

/// Where a redirect leads, if it can be told: without the query and the user's name and password, of which each may be a secret,
/// and its beginning alone.
fn location(headers: &HeaderMap) -> Option<Box<str>> {
    // Browsers take one for the other.
    let told = headers.get(LOCATION)?.to_str().ok()?.replace('\\', "/");
    let told = told.split(['?', '#']).next()?;
    let slashes = told.find("//").filter(|at| !told[..*at].contains('/'));
    let scheme = slashes.map_or(0, |at| {
        told.len() - told[at..].trim_start_matches('/').len()
    });
    let (scheme, rest) = told.split_at(scheme);
    let authority = rest.split('/').next()?;
    let host = authority.rfind('@').map_or(0, |at| at + 1);
    let shown = scheme.chars().chain(rest[host..].chars()).take(SHOWN);
    let shown: String = shown.flat_map(char::escape_debug).collect();
    (!shown.is_empty()).then(|| shown.into())
}

/// What it means that a credential was refused: that it lacks what a 403 says it does (RFC 6750 3.1), or is of no use.
fn denied<B>(response: &Response<B>) -> UpstreamError {
    let status = response.status();
    let challenge = Challenge::of(response.headers().get_all(WWW_AUTHENTICATE));
    let said = challenge.as_ref().and_then(words);
    let asks =
        status == StatusCode::UNAUTHORIZED || response.headers().contains_key(WWW_AUTHENTICATE);
    let challenge = challenge.filter(|_| status == StatusCode::FORBIDDEN);
    match challenge.and_then(CredentialError::lacks) {
        Some(lacks) => lacks.into(),
        None => UpstreamError::Auth(Some(Denial {
            status: status.as_u16(),
            said,
            asks,
        })),
    }
}

/// What a challenge says is wrong and which scopes it wants, for operators: words alone, and of those the beginning.
fn words(challenge: &Challenge) -> Option<Box<str>> {
    let is_word = |text: &str| {
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        !text.is_empty() && text.bytes().all(fits)
    };
    let scopes = challenge.scopes.join(" ");
    let are_words = scopes.split(' ').all(is_word);
    let shown = |name: &str, text: &str| {
        let text: String = text.chars().take(SHOWN).collect();
        format!("{name}=\"{text}\"")
    };
    let error = challenge.error.as_deref().filter(|error| is_word(error));
    let error = error.map(|error| shown("error", error));
    let scope = are_words.then(|| shown("scope", &scopes));
    let all: Vec<_> = error.into_iter().chain(scope).collect();
    (!all.is_empty()).then(|| all.join(", ").into())
}

/// In how long the upstream is to be asked again, where its status says that it takes no requests now: a number of seconds, or
/// the time until a date (RFC 9110 10.2.3).
pub(super) fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let tells = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let told = headers.get(RETRY_AFTER).filter(|_| tells)?.to_str().ok()?;
    let is_number = !told.is_empty() && told.bytes().all(|byte| byte.is_ascii_digit());
    let wait = if is_number {
        // What is no number for its length is a long time.
        Duration::from_secs(told.parse().unwrap_or(u64::MAX))
    } else {
        until(told, headers)?
    };
    Some(wait.min(LONGEST))
}

/// How long it is until a date, by the clock of whoever named it where the answer says what that shows; none where it has passed.
fn until(date: &str, headers: &HeaderMap) -> Option<Duration> {
    let date = httpdate::parse_http_date(date).ok()?;
    let now = headers.get(DATE).and_then(|now| now.to_str().ok());
    let now = now.and_then(|now| httpdate::parse_http_date(now).ok());
    let now = now.unwrap_or_else(SystemTime::now);
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_to_wait_is_read_where_no_requests_are_taken_and_is_a_day_at_most() {
        let told = |status: u16, text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            retry_after(StatusCode::from_u16(status).unwrap(), &headers).map(|wait| wait.as_secs())
        };
        for (status, text, wait) in [
            (429, "7", Some(7)),
            (503, "30", Some(30)),
            (429, "0", Some(0)),
            (429, "86401", Some(86_400)),
            (429, "99999999999999999999999", Some(86_400)),
            (429, "", None),
            (429, "+7", None),
            (429, "-1", None),
            (429, "1.5", None),
            (429, "Fri, 27 Nov 1970 15:00:00 GMT", Some(0)),
            (503, "Wed, 27 Nov 2999 15:00:00 GMT", Some(86_400)),
            (429, "27 Nov 2999", None),
            (200, "Wed, 27 Nov 2999 15:00:00 GMT", None),
            (200, "7", None),
            (404, "7", None),
            (502, "7", None),
        ] {
            assert_eq!(told(status, text), wait, "{status} {text}");
        }
        assert_eq!(
            retry_after(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new()),
            None
        );
    }

    #[test]
    fn how_long_it_is_until_a_date_is_read_off_the_clock_of_whoever_named_it() {
        let told = |date: Option<&'static str>, after: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(after).unwrap());
            headers.extend(date.map(|date| (DATE, HeaderValue::from_static(date))));
            retry_after(StatusCode::SERVICE_UNAVAILABLE, &headers).map(|wait| wait.as_secs())
        };
        let slow = Some("Fri, 27 Nov 2020 14:59:30 GMT");
        assert_eq!(told(slow, "Fri, 27 Nov 2020 15:00:00 GMT"), Some(30));
        // The forms of old (RFC 9110 5.6.7).
        assert_eq!(told(slow, "Friday, 27-Nov-20 15:00:00 GMT"), Some(30));
        assert_eq!(told(slow, "Fri Nov 27 15:00:00 2020"), Some(30));
        assert_eq!(told(slow, "Fri, 27 Nov 2020 14:00:00 GMT"), Some(0));
        assert_eq!(told(slow, "Sat, 28 Nov 2020 15:00:00 GMT"), Some(86_400));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        for date in [None, Some("yesterday")] {
            let wait = told(date, &soon).unwrap();
            assert!((90..=100).contains(&wait), "{wait}");
        }
    }

    fn refused(status: u16, challenge: &str) -> Option<UpstreamError> {
        let answer = Response::builder()
            .status(status)
            .header("location", "https://evil.example/")
            .header(WWW_AUTHENTICATE, challenge)
            .body(())
            .unwrap();
        refusal(&answer)
    }

    // SECURITY EGR-3
    #[test]
    fn every_redirect_is_refused() {
        for status in 300..400 {
            let error = refused(status, "Bearer");
            assert!(
                matches!(error, Some(UpstreamError::Redirect(_))),
                "{status}"
            );
        }
    }

    #[test]
    fn where_a_redirect_leads_is_told_without_what_may_be_a_secret_in_it() {
        let told = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_str(text).unwrap());
            UpstreamError::Redirect(location(&headers)).to_string()
        };
        for (text, shown) in [
            ("https://b.example/mcp/", "https://b.example/mcp/"),
            (
                "https://b.example/mcp?key=secret#x",
                "https://b.example/mcp",
            ),
            ("https://b.example?key=secret/x@y", "https://b.example"),
            ("https://me:secret@b.example/@x", "https://b.example/@x"),
            ("https://me:se@cret@b.example", "https://b.example"),
            ("//me:secret@b.example/x", "//b.example/x"),
            ("me:secret@b.example/x", "b.example/x"),
            ("https:\\\\me:secret@b.example", "https://b.example"),
            ("https:///me:secret@b.example/x", "https:///b.example/x"),
            ("/other//me@x", "/other//me@x"),
        ] {
            assert_eq!(told(text), format!("answered with a redirect to `{shown}`"));
        }
        assert_eq!(told("?key=secret"), "answered with a redirect");
        assert!(told(&format!("https://b.example/{}", "x".repeat(9_000))).len() < 300);
        let mute = UpstreamError::Redirect(location(&HeaderMap::new()));
        assert_eq!(mute.to_string(), "answered with a redirect");
    }

    // SECURITY EGR-6
    #[test]
    fn a_refused_credential_is_told_by_its_status_or_by_what_it_lacks() {
        for status in [401, 403] {
            let error = refused(status, "Bearer");
            assert_eq!(error.as_ref().and_then(UpstreamError::status), Some(status));
            assert!(matches!(error, Some(UpstreamError::Auth(_))), "{status}");
        }
        let scopes = r#"Bearer error="insufficient_scope", scope="notes""#;
        assert!(matches!(
            refused(403, scopes),
            Some(UpstreamError::Credential(_))
        ));
        assert!(matches!(refused(401, scopes), Some(UpstreamError::Auth(_))));
    }

    #[test]
    fn what_a_challenge_says_is_told_in_its_words_and_nothing_else_of_it() {
        let told = |status, text: &str| refused(status, text).unwrap().to_string();
        let invalid = r#"Bearer realm="r", error="invalid_token", error_description="he said""#;
        assert_eq!(
            told(401, invalid),
            r#"refused our credential with HTTP 401: error="invalid_token""#
        );
        assert_eq!(
            told(
                401,
                r#"Bearer scope="read write", resource_metadata="https://x.example/""#
            ),
            r#"refused our credential with HTTP 401: scope="read write""#
        );
        assert_eq!(
            told(403, r#"Bearer error="insufficient_scope""#),
            r#"refused our credential with HTTP 403: error="insufficient_scope""#
        );
        let lacks = told(403, r#"Bearer error="insufficient_scope", scope="write""#);
        assert!(
            lacks.ends_with("more scopes (HTTP 403, insufficient_scope): write"),
            "{lacks}"
        );
        let bare = "refused our credential with HTTP 401";
        for text in [
            "Bearer",
            "Basic x",
            r#"Bearer error="a b""#,
            r#"Bearer scope="a\"b""#,
        ] {
            assert_eq!(told(401, text), bare, "{text}");
        }
        let long = told(401, &format!("Bearer error={}", "x".repeat(3_000)));
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn other_statuses_are_for_the_peers() {
        for status in [200, 202, 204, 400, 404, 405, 408, 418, 429, 500, 503] {
            assert!(refused(status, "Bearer").is_none(), "{status}");
        }
    }
}
