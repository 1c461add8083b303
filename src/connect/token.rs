//! The token endpoint: what is asked there, who we are there, and what comes back (RFC 6749 4.1.3, 5, 6; RFC 8707; RFC 7009).
//!
//! Guarantees: no text of the server's leaves this file but tokens and scopes; what is no token is not kept.

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::discover::Server;
use crate::{
    fetch::{Address, Document, FetchError, Fetcher, seconds},
    json::Node,
};

/// Who we are at one server.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// Our id.
    pub(super) id: String,
    /// Our secret, if we have one.
    pub(super) secret: Option<SecretString>,
    /// How it is shown, where the registration says.
    pub(super) method: Option<String>,
    /// Whether we registered it ourselves, and can register another.
    pub(super) registered: bool,
}

/// What was given.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) access: SecretString,
    pub(super) refresh: Option<SecretString>,
    /// Seconds.
    pub(super) life: Option<u64>,
    pub(super) scope: Option<String>,
}

/// Why nothing was. For logs; no text of the server's is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// No answer.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The code or refresh token is not good any more.
    #[error("the grant was refused")]
    InvalidGrant,
    /// We are not who we say.
    #[error("the server does not know us as this client")]
    InvalidClient,
    /// Another refusal.
    #[error("the server refused, with HTTP {0}")]
    Refused(u16),
    /// Something that holds no token we could use.
    #[error("an answer without a usable token: {0}")]
    Unusable(&'static str),
}

/// The most bytes of a token (SECURITY 6).
const TOKEN_BYTES: usize = 16 << 10;

/// Asks for tokens with these fields, as `client`.
///
/// # Errors
/// [`TokenError`].
pub(super) async fn ask(
    server: &Server,
    client: &Client,
    fields: &[(&str, &str)],
    fetcher: &Fetcher,
) -> Result<Tokens, TokenError> {
    let answer = send(&server.token, server, client, fields, fetcher).await?;
    read(&answer)
}

/// Has the server take back a token, which it is told at `at` (RFC 7009).
///
/// # Errors
/// [`TokenError`], where it does not say that it has.
pub(super) async fn take_back(
    at: &Address,
    server: &Server,
    client: &Client,
    token: &SecretString,
    fetcher: &Fetcher,
) -> Result<(), TokenError> {
    let fields = [("token", token.expose_secret())];
    let answer = send(at, server, client, &fields, fetcher).await?;
    if answer.status.is_success() {
        Ok(())
    } else {
        Err(refusal(&answer))
    }
}

async fn send(
    at: &Address,
    server: &Server,
    client: &Client,
    fields: &[(&str, &str)],
    fetcher: &Fetcher,
) -> Result<Document, FetchError> {
    let shown = shown(client, &server.methods);
    let mut fields = fields.to_vec();
    let mut authorization = None;
    match (&client.secret, shown) {
        (Some(secret), Shown::Basic) => authorization = basic(&client.id, secret),
        (Some(secret), Shown::Form) => {
            fields.push(("client_id", &client.id));
            fields.push(("client_secret", secret.expose_secret()));
        }
        (None, _) => fields.push(("client_id", &client.id)),
    }
    fetcher
        .form(at, authorization, &fields, Fetcher::ANSWER)
        .await
}

/// How a secret is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Basic,
    Form,
}

fn shown(client: &Client, methods: &[String]) -> Shown {
    let has = |method: &str| methods.iter().any(|known| known == method);
    match client.method.as_deref() {
        Some("client_secret_post") => Shown::Form,
        Some("client_secret_basic") => Shown::Basic,
        // Without a word of the server's, what every server must take (RFC 6749 2.3.1).
        _ if has("client_secret_post") && !has("client_secret_basic") => Shown::Form,
        _ => Shown::Basic,
    }
}

/// RFC 6749 2.3.1: both parts are encoded as in a form before they are joined.
fn basic(id: &str, secret: &SecretString) -> Option<HeaderValue> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = Zeroizing::new(format!(
        "{}:{}",
        encoded(id),
        encoded(secret.expose_secret())
    ));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn read(answer: &Document) -> Result<Tokens, TokenError> {
    if !answer.status.is_success() {
        return Err(refusal(answer));
    }
    let json = answer.any_json()?;
    let root = json.root();
    let text = |key: &str| root.member(key).and_then(Node::as_str);
    let kind = text("token_type").ok_or(TokenError::Unusable("no type"))?;
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(TokenError::Unusable("a type other than bearer"));
    }
    let access = text("access_token").ok_or(TokenError::Unusable("no access token"))?;
    if !is_token(&access) {
        return Err(TokenError::Unusable("characters that no token has"));
    }
    let refresh = text("refresh_token").filter(|token| is_token(token));
    Ok(Tokens {
        access: SecretString::from(&*access),
        refresh: refresh.map(|token| SecretString::from(&*token)),
        // Less than none is what some say whose tokens do not end.
        life: seconds(root).and_then(|life| life.try_into().ok()),
        scope: text("scope")
            .filter(|scope| scope.len() <= 4_096)
            .map(std::borrow::Cow::into_owned),
    })
}

/// What a refusal says; its word is compared, never repeated.
fn refusal(answer: &Document) -> TokenError {
    let json = answer.any_json().ok();
    let word = json
        .as_ref()
        .and_then(|json| json.root().member("error"))
        .and_then(Node::as_str);
    match word.as_deref() {
        Some("invalid_grant") => TokenError::InvalidGrant,
        Some("invalid_client" | "unauthorized_client") => TokenError::InvalidClient,
        _ => TokenError::Refused(answer.status.as_u16()),
    }
}

/// What may stand in a header and needs no escape in JSON.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= TOKEN_BYTES
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::StatusCode;

    use super::*;

    fn answer(status: u16, body: &str) -> Result<Tokens, TokenError> {
        read(&Document {
            status: StatusCode::from_u16(status).unwrap(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            etag: None,
            max_age: None,
            challenge: None,
            session: None,
        })
    }

    #[test]
    fn tokens_are_taken_as_given_and_nothing_else_is() {
        let fine = answer(
            200,
            r#"{"access_token":"a.b-c~/+=","token_type":"BEARER","expires_in":60,"refresh_token":"r","scope":"x y"}"#,
        )
        .unwrap();
        assert_eq!(fine.access.expose_secret(), "a.b-c~/+=");
        assert_eq!(fine.refresh.unwrap().expose_secret(), "r");
        assert_eq!((fine.life, fine.scope.as_deref()), (Some(60), Some("x y")));
        let text = answer(
            200,
            r#"{"access_token":"a","token_type":"bearer","expires_in":"60"}"#,
        );
        assert_eq!(text.unwrap().life, Some(60));
        for (life, expected) in [
            ("60.0", Some(60)),
            ("0", Some(0)),
            ("-1", None),
            ("[]", None),
        ] {
            let said =
                format!(r#"{{"access_token":"a","token_type":"bearer","expires_in":{life}}}"#);
            assert_eq!(answer(200, &said).unwrap().life, expected, "{life}");
        }
        for bad in [
            r#"{"access_token":"a","token_type":"mac"}"#,
            r#"{"access_token":"a"}"#,
            r#"{"token_type":"bearer"}"#,
            r#"{"access_token":"","token_type":"bearer"}"#,
            r#"{"access_token":"a b","token_type":"bearer"}"#,
            r#"{"access_token":"a\r\nx: y","token_type":"bearer"}"#,
            r#"{"access_token":7,"token_type":"bearer"}"#,
            &format!(
                r#"{{"access_token":"{}","token_type":"bearer"}}"#,
                "a".repeat(TOKEN_BYTES + 1)
            ),
            "no json",
        ] {
            assert!(answer(200, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn refusals_are_known_by_their_word_and_never_repeated() {
        for (status, body, want) in [
            (
                400,
                r#"{"error":"invalid_grant"}"#,
                TokenError::InvalidGrant,
            ),
            (
                401,
                r#"{"error":"invalid_client"}"#,
                TokenError::InvalidClient,
            ),
            (
                400,
                r#"{"error":"LEAK","error_description":"LEAK"}"#,
                TokenError::Refused(400),
            ),
            (503, "LEAK", TokenError::Refused(503)),
        ] {
            let error = answer(status, body).unwrap_err();
            assert!(!error.to_string().contains("LEAK"));
            assert_eq!(error, want);
        }
    }

    #[test]
    fn a_secret_is_shown_in_the_way_the_server_takes() {
        let client = |method: Option<&str>| Client {
            id: "a:b c".into(),
            secret: Some("s&t".into()),
            method: method.map(Into::into),
            registered: false,
        };
        let known = |methods: &[&str]| methods.iter().map(|&one| one.into()).collect::<Vec<_>>();
        let form = known(&["client_secret_post", "none"]);
        let both = known(&["client_secret_post", "client_secret_basic"]);
        assert_eq!(shown(&client(None), &[]), Shown::Basic);
        assert_eq!(shown(&client(None), &form), Shown::Form);
        assert_eq!(shown(&client(None), &both), Shown::Basic);
        assert_eq!(
            shown(&client(Some("client_secret_post")), &both),
            Shown::Form
        );
        // base64 of `a%3Ab+c:s%26t`
        let value = basic("a:b c", &"s&t".into()).unwrap();
        assert_eq!(value, "Basic YSUzQWIrYzpzJTI2dA==");
        assert!(value.is_sensitive());
    }
}
