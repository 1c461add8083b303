//! Asking token endpoints: what is sent, and what of an answer is taken.
//!
//! Guarantees: an answer is a bearer token of at most 16 KiB that can stand in a header, is not the token that was given in
//! exchange, and is not said to be something else than an access token; of an error only its registered word is kept
//! (SECURITY EGR-5, EGR-10).

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::{
    CredentialError,
    slot::Token,
    spec::{ClientAuth, GrantSpec, ServerSpec},
};
use crate::{
    fetch::{Address, Document, Fetcher, seconds},
    json::{Json, Node},
};

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const BEARER_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
pub(in crate::upstream) const INVALID_REQUEST: &str = "invalid_request";

/// The most bytes of a token (SECURITY 6).
const MAX_TOKEN: usize = 16 << 10;
/// How long a token lives whose server does not say, or not in a way that can be read.
const UNSAID: Duration = Duration::from_secs(300);
/// No token is believed to live longer.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// A form being filled in.
struct Form<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Form<'a> {
    fn of(grant: &'a str) -> Self {
        Self(vec![("grant_type", grant)])
    }

    fn with(mut self, name: &'a str, value: &'a str) -> Self {
        if !value.is_empty() {
            self.0.push((name, value));
        }
        self
    }

    async fn send(
        mut self,
        fetcher: &Fetcher,
        at: &Address,
        server: &'a ServerSpec,
    ) -> Result<Json, CredentialError> {
        let authorization = match server.client_auth {
            ClientAuth::Basic => Some(basic(server)?),
            ClientAuth::Post => {
                self.0.push(("client_id", &server.client_id));
                self.0
                    .push(("client_secret", server.client_secret.expose_secret()));
                None
            }
        };
        let answer = fetcher
            .form(at, authorization, &self.0, Fetcher::ANSWER)
            .await?;
        granted(&answer)
    }
}

/// A token for the gateway itself.
pub(super) async fn client_credentials(
    fetcher: &Fetcher,
    at: &Address,
    spec: &GrantSpec,
) -> Result<Token, CredentialError> {
    let scope = spec.scopes.join(" ");
    let answer = Form::of("client_credentials")
        .with("scope", &scope)
        .with("resource", &spec.resource)
        .with("audience", spec.audience.as_deref().unwrap_or_default())
        .send(fetcher, at, &spec.server)
        .await?;
    bearer(&answer, None)
}

/// A token on behalf of whoever `subject` was issued to (RFC 8693, 2.1).
pub(super) async fn exchange(
    fetcher: &Fetcher,
    at: &Address,
    spec: &GrantSpec,
    subject: &SecretString,
    subject_type: &str,
) -> Result<Token, CredentialError> {
    let scope = spec.scopes.join(" ");
    let answer = Form::of(EXCHANGE)
        .with("subject_token", subject.expose_secret())
        .with("subject_token_type", subject_type)
        .with("requested_token_type", ACCESS_TOKEN)
        .with("scope", &scope)
        .with("resource", &spec.resource)
        .with("audience", spec.audience.as_deref().unwrap_or_default())
        .send(fetcher, at, &spec.server)
        .await
        .map_err(of_exchange)?;
    let issued = answer
        .root()
        .member("issued_token_type")
        .and_then(Node::as_str);
    if !matches!(issued.as_deref(), Some(ACCESS_TOKEN | JWT)) {
        return Err(CredentialError::Answer("is no access token"));
    }
    bearer(&answer, Some(subject))
}

/// An assertion of who `subject` was issued to, for the server `audience` (PROTOCOL F8).
pub(super) async fn assertion(
    fetcher: &Fetcher,
    at: &Address,
    (spec, idp, audience): (&GrantSpec, &ServerSpec, &str),
    subject: &SecretString,
    subject_type: &str,
) -> Result<SecretString, CredentialError> {
    let scope = spec.scopes.join(" ");
    let answer = Form::of(EXCHANGE)
        .with("subject_token", subject.expose_secret())
        .with("subject_token_type", subject_type)
        .with("requested_token_type", ID_JAG)
        .with("audience", audience)
        .with("resource", &spec.resource)
        .with("scope", &scope)
        .send(fetcher, at, idp)
        .await
        .map_err(of_exchange)?;
    let root = answer.root();
    if root
        .member("issued_token_type")
        .and_then(Node::as_str)
        .as_deref()
        != Some(ID_JAG)
    {
        return Err(CredentialError::Answer("is no identity assertion"));
    }
    let text = root.member("access_token").and_then(Node::as_str);
    match text {
        Some(text) if text.len() <= MAX_TOKEN && text != subject.expose_secret() => {
            Ok(text.into_owned().into())
        }
        Some(_) | None => Err(CredentialError::Answer("holds no usable token")),
    }
}

/// A token for an assertion (RFC 7523, 2.1).
pub(super) async fn redeem(
    fetcher: &Fetcher,
    at: &Address,
    spec: &GrantSpec,
    assertion: &SecretString,
) -> Result<Token, CredentialError> {
    let scope = spec.scopes.join(" ");
    let answer = Form::of(BEARER_GRANT)
        .with("assertion", assertion.expose_secret())
        .with("scope", &scope)
        .with("resource", &spec.resource)
        .send(fetcher, at, &spec.server)
        .await?;
    bearer(&answer, Some(assertion))
}

/// `Authorization: Basic`, with both parts form-encoded first (RFC 6749, 2.3.1).
fn basic(server: &ServerSpec) -> Result<HeaderValue, CredentialError> {
    let mut pair = Zeroizing::new(String::new());
    let secret = server.client_secret.expose_secret().as_bytes();
    pair.extend(form_urlencoded::byte_serialize(server.client_id.as_bytes()));
    pair.push(':');
    pair.extend(form_urlencoded::byte_serialize(secret));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    header(value.as_bytes()).ok_or(CredentialError::Answer("cannot be asked with this secret"))
}

/// The object that was answered with success; for anything else, the registered word of the error.
fn granted(answer: &Document) -> Result<Json, CredentialError> {
    if answer.status.is_success() {
        return Ok(answer.json()?);
    }
    /// RFC 6749, 5.2; RFC 8693, 2.2.2; RFC 8707, 2.
    const WORDS: [&str; 8] = [
        INVALID_REQUEST,
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
        "invalid_target",
        "access_denied",
    ];
    let told = answer.any_json().ok();
    let told = told
        .as_ref()
        .and_then(|told| told.root().member("error"))
        .and_then(Node::as_str);
    let word = WORDS.into_iter().find(|word| told.as_deref() == Some(word));
    Err(match word {
        Some(word @ "invalid_grant") => CredentialError::SubjectRefused(word),
        Some(word) => CredentialError::Refused(word),
        None => CredentialError::Fetch(crate::fetch::FetchError::Status(answer.status.as_u16())),
    })
}

/// What a refusal of an exchange means: a subject token that is not taken is an invalid request there (RFC 8693, 2.2.2).
fn of_exchange(error: CredentialError) -> CredentialError {
    if error == CredentialError::Refused(INVALID_REQUEST) {
        CredentialError::SubjectRefused(INVALID_REQUEST)
    } else {
        error
    }
}

/// The bearer token in an answer, if it is not what was given for it: that would be the very token that must not go
/// upstream (SECURITY EGR-1).
fn bearer(answer: &Json, given: Option<&SecretString>) -> Result<Token, CredentialError> {
    let root = answer.root();
    let kind = root.member("token_type").and_then(Node::as_str);
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return Err(CredentialError::Answer("is no bearer token"));
    }
    let text = root
        .member("access_token")
        .and_then(Node::as_str)
        .filter(|text| !text.is_empty() && text.len() <= MAX_TOKEN && is_token(text))
        .ok_or(CredentialError::Answer("holds no usable token"))?;
    if given.is_some_and(|given| given.expose_secret() == text) {
        return Err(CredentialError::Answer(
            "is the token that was given for it",
        ));
    }
    let value = Zeroizing::new(format!("Bearer {text}"));
    let header =
        header(value.as_bytes()).ok_or(CredentialError::Answer("holds no usable token"))?;
    let life = seconds(root).map_or(UNSAID, |life| {
        Duration::from_secs(u64::try_from(life).unwrap_or_default())
    });
    Ok(Token::living(header, life.min(LONGEST)))
}

/// `b64token` (RFC 6750, 2.1), a little wider: visible ASCII without what would end it.
fn is_token(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\'))
}

/// A sensitive header value, cleared with its last copy.
fn header(text: &[u8]) -> Option<HeaderValue> {
    let bytes = Bytes::from_owner(Zeroizing::new(text.to_vec()));
    let mut value = HeaderValue::from_maybe_shared(bytes).ok()?;
    value.set_sensitive(true);
    Some(value)
}
