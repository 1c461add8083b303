//! Who we are at an authorization server: a given client, a metadata document of ours, or one that we register (RFC 7591).
//! Registrations are kept by issuer and never shown to another server (PROTOCOL F6).

use bytes::Bytes;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{
    discover::Server,
    spec::{ClientSpec, Registration},
    token::Client,
};
use crate::{
    fetch::{FetchError, Fetcher},
    json::{Json, Kind, Node},
    protocol::meta,
};

/// Why we are nobody there. For logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// It takes no clients that nobody registered.
    #[error(
        "the authorization server registers no clients; register one there and configure its `client_id`"
    )]
    NotOffered,
    /// There is no registration of ours under this redirect URI, or its secret has ended; the next login makes one.
    #[error(
        "this gateway has no registration at the authorization server, or not under the address that it has now"
    )]
    Unregistered,
    /// Documents need an address that the server can reach.
    #[error("the authorization server takes no client id metadata document of this gateway")]
    NoDocument,
    /// It would not.
    #[error("the authorization server refused to register a client, with HTTP {0}")]
    Refused(u16),
    /// It answered with something else.
    #[error("the authorization server answered a registration with no client")]
    Unusable,
    /// It did not answer.
    #[error("registration: {0}")]
    Fetch(#[from] FetchError),
}

/// A registration as it is kept.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    id: String,
    secret: Option<String>,
    method: Option<String>,
    /// When the secret ends, in seconds since 1970; 0: never.
    until: u64,
}

/// How we come to be somebody.
pub(super) enum Way {
    /// We are.
    Known(Client),
    /// A document of ours says who.
    Document,
    /// By asking.
    Ask,
}

/// The way at this server, for a gateway whose pages are at `base`.
///
/// # Errors
/// [`RegisterError`] when there is none.
pub(super) fn way(client: &ClientSpec, server: &Server, base: &str) -> Result<Way, RegisterError> {
    let registration = match client {
        ClientSpec::Given { id, secret } => {
            return Ok(Way::Known(Client {
                id: id.clone(),
                secret: secret.clone(),
                method: None,
                registered: false,
            }));
        }
        ClientSpec::Registered(registration) => *registration,
    };
    let document = server.takes_documents && base.starts_with("https://");
    match registration {
        Registration::Auto | Registration::Document if document => Ok(Way::Document),
        Registration::Document => Err(RegisterError::NoDocument),
        Registration::Auto | Registration::Dynamic if server.register.is_some() => Ok(Way::Ask),
        Registration::Auto | Registration::Dynamic => Err(RegisterError::NotOffered),
    }
}

/// What we say of ourselves, in a document or when we register. `id` is that of the document.
pub(super) fn about(id: Option<&str>, redirect: &str, method: &str) -> Json {
    let text = Json::string;
    let kind = if redirect.starts_with("https://") {
        "web"
    } else {
        // Servers of OpenID Connect take loopback addresses from these alone.
        "native"
    };
    let mut members = vec![
        ("client_name", text("Usher")),
        ("redirect_uris", Json::array(&[text(redirect)])),
        (
            "grant_types",
            Json::array(&[text("authorization_code"), text("refresh_token")]),
        ),
        ("response_types", Json::array(&[text("code")])),
        ("token_endpoint_auth_method", text(method)),
        ("application_type", text(kind)),
    ];
    members.extend(id.map(|id| ("client_id", text(id))));
    meta::object_of(&members)
}

/// Registers; the client, and the text to keep of it.
///
/// # Errors
/// [`RegisterError`].
#[expect(clippy::expect_used, reason = "see the invariant")]
pub(super) async fn ask(
    server: &Server,
    redirect: &str,
    fetcher: &Fetcher,
) -> Result<(Client, Zeroizing<Vec<u8>>), RegisterError> {
    let at = server.register.as_ref().ok_or(RegisterError::NotOffered)?;
    let has = |method: &str| server.methods.iter().any(|known| known == method);
    let method = ["client_secret_basic", "client_secret_post", "none"]
        .into_iter()
        .find(|method| has(method))
        .unwrap_or("client_secret_basic");
    let body = Bytes::copy_from_slice(about(None, redirect, method).bytes());
    let answer = fetcher.json(at, body, Fetcher::METADATA).await?;
    if !answer.status.is_success() {
        return Err(RegisterError::Refused(answer.status.as_u16()));
    }
    let answer = answer.json()?;
    let root = answer.root();
    let text = |key: &str| {
        let text = root.member(key).and_then(Node::as_str)?;
        (!text.is_empty() && text.len() <= 4_096).then(|| text.into_owned())
    };
    let until = root
        .member("client_secret_expires_at")
        .filter(|node| node.kind() == Kind::Number)
        .and_then(|node| node.raw().parse().ok())
        .unwrap_or(0);
    let kept = Kept {
        id: text("client_id").ok_or(RegisterError::Unusable)?,
        secret: text("client_secret"),
        method: text("token_endpoint_auth_method"),
        until,
    };
    // INVARIANT: strings and numbers serialise; an empty record would be a registration made in vain.
    let written = Zeroizing::new(serde_json::to_vec(&kept).expect("strings and numbers serialise"));
    Ok((client(kept), written))
}

/// The client in a text that was kept, unless its secret has ended.
pub(super) fn kept(text: &[u8], now: u64) -> Option<Client> {
    let kept: Kept = serde_json::from_slice(text).ok()?;
    (kept.until == 0 || kept.until > now).then(|| client(kept))
}

/// Whether a text that was kept is of the client with this id.
pub(super) fn is_of(text: &[u8], id: &str) -> bool {
    serde_json::from_slice::<Kept>(text).is_ok_and(|kept| kept.id == id)
}

fn client(kept: Kept) -> Client {
    Client {
        id: kept.id,
        secret: kept.secret.map(SecretString::from),
        method: kept.method,
        registered: true,
    }
}
