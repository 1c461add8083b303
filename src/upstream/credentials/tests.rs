//! Grants at a scripted authorization server, over real sockets of this machine.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures_util::future::join_all;

use super::{
    spec::{ClientAuth, ServerSpec, SubjectType, TokenEndpoint},
    *,
};
use crate::{
    call::IdentityKind,
    fetch::{
        Address, MetadataError,
        answering::{Answering, answer, ok},
    },
};

const TOKEN: &str = r#"{"access_token":"TOKEN","token_type":"Bearer","expires_in":300,"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}"#;

fn server(token_endpoint: TokenEndpoint) -> ServerSpec {
    ServerSpec {
        token_endpoint,
        client_id: "usher:1".into(),
        client_secret: "s3cr&t".into(),
        client_auth: ClientAuth::Basic,
    }
}

pub(super) fn endpoint(at: &Answering) -> TokenEndpoint {
    TokenEndpoint::Url(Address::configured(&format!("http://{}/token", at.at), false).unwrap())
}

pub(super) fn spec(grant: Grant, token_endpoint: TokenEndpoint) -> GrantSpec {
    GrantSpec {
        grant,
        server: server(token_endpoint),
        resource: "https://files.example/mcp".into(),
        audience: None,
        scopes: vec!["files.read".into(), "files.write".into()],
        lists: ListsAs::Service,
        ca: None,
    }
}

pub(super) fn exchanging() -> Grant {
    Grant::TokenExchange {
        subject: SubjectType::AccessToken,
    }
}

pub(super) fn credentials(spec: GrantSpec) -> Credentials {
    Credentials::new(UpstreamId::parse("files").unwrap(), spec, Tasks::new())
}

/// Somebody who came with this token.
pub(super) fn somebody(name: &str, assertion: Option<&str>) -> Arc<Identity> {
    Arc::new(Identity {
        assertion: assertion.map(|text| Assertion(text.to_owned().into())),
        ..Identity::named(IdentityKind::User, name)
    })
}

async fn text(
    credentials: &Credentials,
    who: Option<&Arc<Identity>>,
) -> Result<Option<String>, CredentialError> {
    let header = credentials.header(who).await?;
    Ok(header.map(|header| {
        assert!(header.is_sensitive());
        header.to_str().unwrap().to_owned()
    }))
}

/// The fields of a form that was sent, in order.
fn form(seen: &str) -> Vec<(String, String)> {
    let (_, body) = seen.split_once("\r\n\r\n").unwrap();
    form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect()
}

fn field(seen: &str, name: &str) -> Option<String> {
    let mut form = form(seen).into_iter();
    form.find(|(field, _)| field == name)
        .map(|(_, value)| value)
}

/// Answers an exchange of `subject` with a token that says whose it is.
pub(super) fn minting() -> impl Fn(&str) -> Vec<u8> + Send + 'static {
    let minted = AtomicUsize::new(0);
    move |seen| {
        let number = minted.fetch_add(1, Ordering::Relaxed);
        let subject = field(seen, "subject_token").unwrap_or_else(|| "service".into());
        ok(&TOKEN.replace("TOKEN", &format!("for-{subject}-{number}")))
    }
}

#[tokio::test]
async fn client_credentials_ask_for_this_upstream_alone_and_serve_everybody() {
    let issuer = Answering::with(ok(TOKEN)).await;
    let tokens = credentials(spec(Grant::ClientCredentials, endpoint(&issuer)));
    let (ana, ben) = (somebody("ana", Some("a")), somebody("ben", None));
    for who in [None, Some(&ana), Some(&ben)] {
        assert_eq!(text(&tokens, who).await, Ok(Some("Bearer TOKEN".into())));
    }
    let seen = issuer.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    // `usher%3A1:s3cr%26t`
    assert!(
        seen[0].contains("authorization: Basic dXNoZXIlM0ExOnMzY3IlMjZ0\r\n"),
        "{seen:?}"
    );
    let expected = [
        ("grant_type", "client_credentials"),
        ("scope", "files.read files.write"),
        ("resource", "https://files.example/mcp"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(form(&seen[0]), expected);
}

#[tokio::test]
async fn a_client_may_prove_itself_in_the_form() {
    let issuer = Answering::with(ok(TOKEN)).await;
    let mut spec = spec(Grant::ClientCredentials, endpoint(&issuer));
    spec.server.client_auth = ClientAuth::Post;
    text(&credentials(spec), None).await.unwrap();
    let seen = issuer.seen();
    assert!(!seen[0].to_ascii_lowercase().contains("authorization:"));
    assert_eq!(field(&seen[0], "client_id").as_deref(), Some("usher:1"));
    assert_eq!(field(&seen[0], "client_secret").as_deref(), Some("s3cr&t"));
}

#[tokio::test]
async fn egr_10_each_principal_has_a_token_of_its_own_got_once() {
    let issuer = Answering::by(minting()).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    let (ana, ben) = (somebody("ana", Some("A")), somebody("ben", Some("B")));
    let many = |who: &Arc<Identity>| {
        let all: Vec<_> = (0..50).map(|_| who.clone()).collect();
        let tokens = tokens.clone();
        async move { join_all(all.iter().map(|who| text(&tokens, Some(who)))).await }
    };
    let (of_ana, of_ben) = tokio::join!(many(&ana), many(&ben));
    for (of, subject) in [(of_ana, "for-A-"), (of_ben, "for-B-")] {
        for token in of {
            let token = token.unwrap().unwrap();
            assert!(token.starts_with(&format!("Bearer {subject}")), "{token}");
        }
    }
    let service = text(&tokens, None).await.unwrap().unwrap();
    assert!(service.starts_with("Bearer for-service-"), "{service}");
    let seen = issuer.seen();
    assert_eq!(seen.len(), 3, "{seen:?}");
    let exchange = seen
        .iter()
        .find(|seen| field(seen, "subject_token").as_deref() == Some("A"))
        .unwrap();
    for (name, value) in [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ),
        (
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:access_token",
        ),
        (
            "requested_token_type",
            "urn:ietf:params:oauth:token-type:access_token",
        ),
        ("scope", "files.read files.write"),
        ("resource", "https://files.example/mcp"),
    ] {
        assert_eq!(field(exchange, name).as_deref(), Some(value), "{name}");
    }
}

#[tokio::test]
async fn who_comes_with_less_does_not_get_what_was_exchanged_for_more() {
    let issuer = Answering::by(minting()).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    let with = |scope: &str, assertion: &str| {
        let mut identity = Arc::into_inner(somebody("ana", Some(assertion))).unwrap();
        identity.scopes = BTreeSet::from([scope.into()]);
        Arc::new(identity)
    };
    let more = text(&tokens, Some(&with("admin", "A"))).await.unwrap();
    let less = text(&tokens, Some(&with("read", "R"))).await.unwrap();
    assert_eq!(more.as_deref(), Some("Bearer for-A-0"));
    assert_eq!(less.as_deref(), Some("Bearer for-R-1"));
}

#[tokio::test]
async fn who_has_no_token_to_exchange_is_refused_and_never_gets_the_gateways_own() {
    let issuer = Answering::by(minting()).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    text(&tokens, None).await.unwrap();
    let key = somebody("key", None);
    assert_eq!(
        text(&tokens, Some(&key)).await,
        Err(CredentialError::NoSubject)
    );
    assert_eq!(issuer.seen().len(), 1);
}

#[tokio::test]
async fn egr_2_where_the_gateway_has_no_credential_of_its_own_none_is_sent() {
    let issuer = Answering::by(minting()).await;
    let spec = GrantSpec {
        lists: ListsAs::Nobody,
        ..spec(exchanging(), endpoint(&issuer))
    };
    let tokens = credentials(spec);
    assert_eq!(text(&tokens, None).await, Ok(None));
    assert_eq!(issuer.seen().len(), 0);
}

#[tokio::test]
async fn an_identity_assertion_is_got_where_the_user_logged_in_and_traded_at_the_upstreams_own_server()
 {
    let jag = r#"{"access_token":"JAG","token_type":"N_A","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}"#;
    let idp = Answering::with(ok(jag)).await;
    let resource = Answering::with(ok(TOKEN)).await;
    let grant = Grant::IdJag {
        subject: SubjectType::IdToken,
        idp: server(endpoint(&idp)),
        audience: "https://auth.files.example".into(),
    };
    let tokens = credentials(spec(grant, endpoint(&resource)));
    let ana = somebody("ana", Some("A"));
    let token = text(&tokens, Some(&ana)).await;
    assert_eq!(token, Ok(Some("Bearer TOKEN".into())));
    let (asked, redeemed) = (idp.seen(), resource.seen());
    for (name, value) in [
        ("subject_token", "A"),
        (
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:id_token",
        ),
        (
            "requested_token_type",
            "urn:ietf:params:oauth:token-type:id-jag",
        ),
        ("audience", "https://auth.files.example"),
        ("resource", "https://files.example/mcp"),
    ] {
        assert_eq!(field(&asked[0], name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(
        field(&redeemed[0], "grant_type").as_deref(),
        Some("urn:ietf:params:oauth:grant-type:jwt-bearer")
    );
    assert_eq!(field(&redeemed[0], "assertion").as_deref(), Some("JAG"));
    assert!(!redeemed[0].contains("subject_token"), "{redeemed:?}");
}

#[tokio::test]
async fn egr_1_an_authorization_server_that_hands_the_callers_token_back_is_not_believed() {
    let echo = |seen: &str| {
        let subject = field(seen, "subject_token").unwrap();
        ok(&TOKEN.replace("TOKEN", &subject))
    };
    let issuer = Answering::by(echo).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    let ana = somebody("ana", Some("A"));
    let token = text(&tokens, Some(&ana)).await;
    assert!(
        matches!(token, Err(CredentialError::Answer(_))),
        "{token:?}"
    );
}

#[tokio::test]
async fn answers_that_hold_no_bearer_access_token_are_refused() {
    let plain = r#"{"access_token":"T","token_type":"Bearer","expires_in":300}"#;
    let long = TOKEN.replace("TOKEN", &"x".repeat((16 << 10) + 1));
    let broken = [
        "{}",
        "[]",
        plain,
        &long,
        &TOKEN.replace("Bearer", "DPoP"),
        &TOKEN.replace("token-type:access_token", "token-type:refresh_token"),
        &TOKEN.replace("TOKEN", "a\\r\\nset-cookie: b"),
        &TOKEN.replace("TOKEN", "a b"),
        &TOKEN.replace("TOKEN", "ä"),
        &TOKEN.replace("TOKEN", ""),
        &TOKEN.replace("\"TOKEN\"", "7"),
    ];
    for body in broken {
        let issuer = Answering::with(ok(body)).await;
        let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
        let ana = somebody("ana", Some("A"));
        let token = text(&tokens, Some(&ana)).await;
        assert!(
            matches!(
                token,
                Err(CredentialError::Answer(_)) | Err(CredentialError::Fetch(FetchError::NotJson))
            ),
            "{body}: {token:?}"
        );
    }
    // At the bound it is one.
    let issuer = Answering::with(ok(&TOKEN.replace("TOKEN", &"x".repeat(16 << 10)))).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    assert!(
        text(&tokens, Some(&somebody("ana", Some("A"))))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_token_is_kept_for_as_long_as_is_said_however_that_is_spelled() {
    for (said, asked) in [
        ("3600", 1),
        ("\"3600\"", 1),
        ("3600.0", 1),
        ("\"an hour\"", 1),
        ("null", 1),
        ("0", 3),
        ("-1", 3),
    ] {
        let said = TOKEN.replace("300", said);
        let issuer = Answering::with(ok(&said)).await;
        let tokens = credentials(spec(Grant::ClientCredentials, endpoint(&issuer)));
        for _ in 0..3 {
            text(&tokens, None).await.unwrap();
        }
        assert_eq!(issuer.seen().len(), asked, "{said}");
    }
}

#[tokio::test]
async fn of_a_refusal_only_the_registered_word_is_kept() {
    for (status, body, expected) in [
        (
            400,
            r#"{"error":"invalid_grant"}"#,
            CredentialError::SubjectRefused("invalid_grant"),
        ),
        (
            401,
            r#"{"error":"invalid_client","error_description":"MARKER"}"#,
            CredentialError::Refused("invalid_client"),
        ),
        (
            400,
            r#"{"error":"MARKER"}"#,
            CredentialError::Fetch(FetchError::Status(400)),
        ),
        (
            500,
            "MARKER",
            CredentialError::Fetch(FetchError::Status(500)),
        ),
        (302, "", CredentialError::Fetch(FetchError::Redirect)),
    ] {
        let issuer = Answering::with(answer(status, body)).await;
        let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
        let error = text(&tokens, Some(&somebody("ana", Some("A"))))
            .await
            .unwrap_err();
        assert_eq!(error, expected);
        assert!(!format!("{error} {error:?}").contains("MARKER"));
    }
    assert_eq!(
        CredentialError::Fetch(FetchError::Redirect).reason(),
        "upstream_redirect"
    );
}

/// RFC 8693, 2.2.2: there it is what an invalid subject token is answered with.
#[tokio::test]
async fn an_invalid_request_is_a_matter_of_the_caller_in_an_exchange_and_of_the_operator_elsewhere()
{
    let issuer = Answering::with(answer(400, r#"{"error":"invalid_request"}"#)).await;
    let ana = somebody("ana", Some("A"));
    let id_jag = Grant::IdJag {
        subject: SubjectType::IdToken,
        idp: server(endpoint(&issuer)),
        audience: "https://as.example".into(),
    };
    for (grant, callers) in [
        (exchanging(), true),
        (id_jag, true),
        (Grant::ClientCredentials, false),
    ] {
        let tokens = credentials(spec(grant, endpoint(&issuer)));
        let error = text(&tokens, Some(&ana)).await.unwrap_err();
        assert_eq!(error.is_the_callers(), callers, "{error}");
        assert!(
            error.to_string().ends_with("with `invalid_request`"),
            "{error}"
        );
    }
}

/// Metadata of `issuer`, with the token endpoint at `token`.
fn metadata(issuer: &str, token: &str) -> Vec<u8> {
    ok(&format!(
        r#"{{"issuer":"{issuer}","token_endpoint":"{token}"}}"#
    ))
}

/// A server whose metadata says what `answer` makes of its own address.
async fn publishing(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Answering {
    Answering::by(move |seen| {
        let host = seen.lines().find_map(|line| line.strip_prefix("host: "));
        let base = format!("http://{}", host.unwrap());
        match seen.split(' ').nth(1).unwrap() {
            "/token" => ok(TOKEN),
            "/.well-known/openid-configuration" => answer(&base),
            _ => self::answer(404, ""),
        }
    })
    .await
}

fn found(at: &Answering) -> Credentials {
    let issuer = format!("http://{}", at.at);
    let token_endpoint =
        TokenEndpoint::Issuer(Address::configured(&issuer, false).unwrap(), issuer);
    credentials(spec(Grant::ClientCredentials, token_endpoint))
}

#[tokio::test]
async fn a_token_endpoint_is_found_in_the_metadata_of_its_issuer_and_remembered() {
    let issuer = publishing(|base| metadata(base, &format!("{base}/token"))).await;
    let tokens = found(&issuer);
    assert!(text(&tokens, None).await.is_ok());
    let asked = |seen: &[String]| -> Vec<String> {
        seen.iter()
            .map(|seen| seen.split(' ').nth(1).unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        asked(&issuer.seen()),
        [
            "/.well-known/oauth-authorization-server",
            "/.well-known/openid-configuration",
            "/token"
        ]
    );
}

#[tokio::test]
async fn egr_5_metadata_of_another_issuer_is_refused_and_nothing_is_sent() {
    for other in ["https://evil.example", "{base}/", "{base}/tenant"] {
        let other = other.to_owned();
        let issuer = publishing(move |base| {
            metadata(&other.replace("{base}", base), &format!("{base}/token"))
        })
        .await;
        let error = text(&found(&issuer), None).await.unwrap_err();
        assert_eq!(
            error,
            CredentialError::Metadata(MetadataError::ForeignIssuer)
        );
        assert!(!issuer.seen().iter().any(|seen| seen.contains("POST")));
    }
}

#[tokio::test]
async fn egr_4_metadata_cannot_send_us_into_our_own_network() {
    let trap = Answering::with(ok(TOKEN)).await;
    for elsewhere in ["http://{}/token", "https://{}/token"] {
        let elsewhere = elsewhere.replace("{}", &trap.at.to_string());
        let issuer = publishing(move |base| metadata(base, &elsewhere)).await;
        let error = text(&found(&issuer), None).await.unwrap_err();
        assert!(
            matches!(
                error,
                CredentialError::Metadata(MetadataError::Missing("token_endpoint"))
                    | CredentialError::Fetch(FetchError::NotPublic)
            ),
            "{error:?}"
        );
    }
    assert_eq!(trap.seen().len(), 0);
}

#[tokio::test]
async fn nothing_of_a_token_shows_in_debug_output() {
    let issuer = Answering::with(ok(&TOKEN.replace("TOKEN", "MARKER"))).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    let ana = somebody("ana", Some("MARKER-A"));
    let Credentials::Granted(granted) = &tokens else {
        panic!("{tokens:?}");
    };
    let (slot, token) = granted.token(Some(&ana)).await.unwrap().unwrap();
    let spec = &granted.0.spec;
    let shown = format!("{tokens:?} {token:?} {slot:?} {ana:?} {spec:?}");
    assert!(!shown.contains("MARKER"), "{shown}");
    assert!(!shown.contains("s3cr"), "{shown}");
}
