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
#[derive(Serialize, Deserialize)]
struct Kept {
    id: String,
    secret: Option<String>,
    method: Option<String>,
    /// When the secret ends, in seconds since 1970; 0: never.
    until: u64,
    /// What it was made to ask for, with spaces between; nothing in what was kept before servers were told.
    #[serde(default)]
    scope: String,
    /// Those that it took the place of, the latest first: what was granted to one of them is good with no other. They have none
    /// themselves.
    #[serde(default)]
    earlier: Vec<Self>,
}

/// The most registrations that are kept beside the one that is used for logins.
const EARLIER: usize = 8;
/// The most bytes of scopes that a server is told of when we register.
const SCOPE_BYTES: usize = 4_096;
/// The most bytes that are kept of the registrations of one place.
const KEPT_BYTES: usize = 64 << 10;

/// What somebody has to be a client for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use<'a> {
    /// A login that asks for these scopes: where no client was registered for all of them, one is.
    Login(&'a [String]),
    /// What was granted to the client of this id; `None`: to whichever there was before grants said to which.
    Grant(Option<&'a str>),
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

/// What we say of ourselves, in a document or when we register. `id` is that of the document; `scope` what is going to be asked
/// for, if that is to be said.
pub(super) fn about(id: Option<&str>, redirect: &str, method: &str, scope: &str) -> Json {
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
    members.extend((!scope.is_empty()).then(|| ("scope", text(scope))));
    meta::object_of(&members)
}

/// Registers for a login that asks for `scopes`, and for what the registration asked for that is kept in `before`; the client, and
/// the text to keep of it.
///
/// Some servers let a client ask for nothing that it did not register for; others refuse to register a client that names scopes
/// which they give out all the same. So scopes are named, and where that is refused, they are not.
///
/// # Errors
/// [`RegisterError`].
pub(super) async fn ask(
    server: &Server,
    redirect: &str,
    scopes: &[String],
    before: Option<&[u8]>,
    now: u64,
    fetcher: &Fetcher,
) -> Result<(Client, Zeroizing<Vec<u8>>), RegisterError> {
    let at = server.register.as_ref().ok_or(RegisterError::NotOffered)?;
    let has = |method: &str| server.methods.iter().any(|known| known == method);
    // A form names its client for every server, which some look for there before they look at how it proves itself. RFC 8414 has
    // who says nothing mean Basic.
    let method = ["client_secret_post", "client_secret_basic", "none"]
        .into_iter()
        .find(|method| has(method))
        .unwrap_or("client_secret_basic");
    let before: Option<Kept> = before.and_then(|text| serde_json::from_slice(text).ok());
    let wanted = joined("", scopes);
    let all = joined(before.as_ref().map_or("", |before| &before.scope), scopes);
    let mut attempts = vec![all.as_str(), wanted.as_str(), ""];
    attempts.retain(|scope| scope.len() <= SCOPE_BYTES);
    attempts.dedup();
    let told = attempts.first().copied().unwrap_or_default();
    let mut attempts = attempts.into_iter().peekable();
    let (scope, answer) = loop {
        let scope = attempts.next().unwrap_or_default();
        let body = Bytes::copy_from_slice(about(None, redirect, method, scope).bytes());
        let answer = fetcher.json(at, body, Fetcher::METADATA).await?;
        match answer.status.as_u16() {
            400 | 403 if attempts.peek().is_some() => {}
            _ if answer.status.is_success() => break (scope, answer),
            status => return Err(RegisterError::Refused(status)),
        }
    };
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
    // What a server will not be told is not told it again for each login.
    let scope = if scope.is_empty() { told } else { scope };
    let mut kept = Kept {
        id: text("client_id").ok_or(RegisterError::Unusable)?,
        secret: text("client_secret"),
        // What is not said otherwise is as it was asked for.
        method: text("token_endpoint_auth_method").or_else(|| Some(method.to_owned())),
        until,
        scope: scope.to_owned(),
        earlier: before.map_or_else(Vec::new, |before| before.followed(now)),
    };
    let written = kept.written();
    Ok((kept.client(), written))
}

/// These scopes, and then those of the list that are not among them, with spaces between.
fn joined(known: &str, scopes: &[String]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for scope in words(known).chain(scopes.iter().flat_map(|scope| words(scope))) {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    all.join(" ")
}

fn words(scope: &str) -> impl Iterator<Item = &str> {
    scope.split(' ').filter(|scope| !scope.is_empty())
}

/// The client for this use in a text that was kept, unless its secret has ended.
pub(super) fn kept(text: &[u8], wanted: Use<'_>, now: u64) -> Option<Client> {
    let kept: Kept = serde_json::from_slice(text).ok()?;
    let found = match wanted {
        Use::Login(scopes) => Some(kept).filter(|kept| kept.is_for(scopes)),
        Use::Grant(id) => {
            let mut all = kept.all();
            match id {
                Some(id) => all.find(|kept| kept.id == id),
                None => all.last(),
            }
        }
    };
    found.filter(|kept| kept.is_good(now)).map(Kept::client)
}

/// Whether a text that was kept is of the client with this id.
pub(super) fn is_of(text: &[u8], id: &str) -> bool {
    serde_json::from_slice::<Kept>(text).is_ok_and(|kept| kept.id == id)
}

impl Kept {
    /// Whether it was made to ask for all of these.
    fn is_for(&self, scopes: &[String]) -> bool {
        let mut scopes = scopes.iter().flat_map(|scope| words(scope));
        scopes.all(|scope| words(&self.scope).any(|known| known == scope))
    }

    /// Whether it proves itself with its secret.
    fn is_secret(&self) -> bool {
        self.secret.is_some() && self.method.as_deref() != Some("none")
    }

    fn is_good(&self, now: u64) -> bool {
        !self.is_secret() || self.until == 0 || self.until > now
    }

    /// Itself and those before it, the latest first.
    fn all(mut self) -> impl Iterator<Item = Self> {
        let earlier = std::mem::take(&mut self.earlier);
        std::iter::once(self).chain(earlier)
    }

    /// What is kept of it, and of those before it, when another takes its place.
    fn followed(self, now: u64) -> Vec<Self> {
        let all = self.all().filter(|kept| kept.is_good(now)).take(EARLIER);
        all.map(|kept| Self {
            scope: String::new(),
            ..kept
        })
        .collect()
    }

    fn client(self) -> Client {
        // One that was registered as public may be sent a secret all the same, and is refused with it (RFC 7591 2).
        let is_secret = self.is_secret();
        Client {
            secret: self.secret.filter(|_| is_secret).map(SecretString::from),
            id: self.id,
            method: self.method,
            registered: true,
        }
    }

    /// The text to keep.
    #[expect(clippy::expect_used, reason = "see the invariant")]
    fn written(&mut self) -> Zeroizing<Vec<u8>> {
        loop {
            // INVARIANT: strings and numbers serialise; an empty record would be a registration made in vain.
            let text = serde_json::to_vec(self).expect("strings and numbers serialise");
            let text = Zeroizing::new(text);
            if text.len() <= KEPT_BYTES || self.earlier.pop().is_none() {
                return text;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::{
        Address,
        answering::{Answering, answer},
    };

    const REDIRECT: &str = "http://127.0.0.1:8808/connect/callback";

    fn server(at: &Answering, methods: &[&str]) -> Server {
        let at = Address::configured(&format!("http://{}/", at.at), false).unwrap();
        Server {
            issuer: "https://login.example".into(),
            authorize: at.clone(),
            token: at.clone(),
            register: Some(at),
            revoke: None,
            names_itself: false,
            takes_documents: false,
            methods: methods.iter().map(|method| (*method).into()).collect(),
            offline: false,
        }
    }

    /// A server that registers `later`, with these members beside the id, unless its scope is among those that it refuses.
    async fn registering(answers: &'static str, refuses: &'static [&'static str]) -> Answering {
        Answering::by(move |sent| {
            let named = |scope: &&str| sent.contains(&format!(r#""scope":"{scope}""#));
            if refuses.iter().any(named) {
                return answer(400, r#"{"error":"invalid_client_metadata"}"#);
            }
            answer(201, &format!(r#"{{"client_id":"later"{answers}}}"#))
        })
        .await
    }

    fn list(scopes: &str) -> Vec<String> {
        words(scopes).map(str::to_owned).collect()
    }

    /// What is asked and kept where this was kept before.
    async fn asked(
        at: &Answering,
        methods: &[&str],
        scopes: &str,
        before: Option<&str>,
    ) -> (Result<Client, RegisterError>, Vec<u8>) {
        let (server, scopes) = (server(at, methods), list(scopes));
        let (fetcher, before) = (Fetcher::new(None).unwrap(), before.map(str::as_bytes));
        match ask(&server, REDIRECT, &scopes, before, 100, &fetcher).await {
            Ok((client, text)) => (Ok(client), text.to_vec()),
            Err(error) => (Err(error), Vec::new()),
        }
    }

    #[tokio::test]
    async fn a_secret_is_shown_in_forms_where_it_may_be_and_as_the_answer_says() {
        const BOTH: &[&str] = &["client_secret_basic", "none", "client_secret_post"];
        const SECRET: &str = r#","client_secret":"s""#;
        const BASIC: &str =
            r#","client_secret":"s","token_endpoint_auth_method":"client_secret_basic""#;
        const NONE: &str = r#","client_secret":"s","token_endpoint_auth_method":"none""#;
        for (methods, answers, asks, shows, secret) in [
            (
                BOTH,
                SECRET,
                "client_secret_post",
                "client_secret_post",
                true,
            ),
            (
                BOTH,
                BASIC,
                "client_secret_post",
                "client_secret_basic",
                true,
            ),
            (
                &BOTH[..2],
                SECRET,
                "client_secret_basic",
                "client_secret_basic",
                true,
            ),
            (
                &[],
                SECRET,
                "client_secret_basic",
                "client_secret_basic",
                true,
            ),
            (&["none"], "", "none", "none", false),
            // Who is public has no secret, whatever came along.
            (BOTH, NONE, "client_secret_post", "none", false),
        ] {
            let at = registering(answers, &[]).await;
            let (client, text) = asked(&at, methods, "", None).await;
            let asked = format!(r#""token_endpoint_auth_method":"{asks}""#);
            assert!(at.seen()[0].contains(&asked), "{}", at.seen()[0]);
            let later = kept(&text, Use::Login(&[]), 100).unwrap();
            for client in [client.unwrap(), later] {
                assert_eq!(client.method.as_deref(), Some(shows));
                assert_eq!(client.secret.is_some(), secret, "{answers}");
            }
        }
        let old = br#"{"id":"a","secret":"s","method":"none","until":99}"#;
        let old = kept(old, Use::Grant(None), 100).unwrap();
        assert!(old.secret.is_none());
    }

    #[tokio::test]
    async fn a_server_is_told_what_is_going_to_be_asked_for_unless_it_does_not_want_to_hear_it() {
        const BEFORE: &str = r#"{"id":"a","secret":null,"method":null,"until":0,"scope":"a"}"#;
        let told = |at: &Answering| -> Vec<String> {
            let seen = at.seen().into_iter();
            let scope = |sent: String| {
                let (_, body) = sent.split_once(r#""scope":""#)?;
                body.split_once('"').map(|(scope, _)| scope.to_owned())
            };
            seen.map(|sent| scope(sent).unwrap_or_default()).collect()
        };
        for (before, refuses, sent, good_for) in [
            (None, &[][..], &["b c"][..], "b c"),
            (Some(BEFORE), &[], &["a b c"], "a b c"),
            (Some(BEFORE), &["a b c"], &["a b c", "b c"], "b c"),
            // It is not asked again for the next login.
            (
                Some(BEFORE),
                &["a b c", "b c"],
                &["a b c", "b c", ""],
                "a b c",
            ),
            (None, &["b c"], &["b c", ""], "b c"),
        ] {
            let at = registering("", refuses).await;
            let (client, text) = asked(&at, &[], "b c", before).await;
            assert_eq!(client.unwrap().id, "later");
            assert_eq!(told(&at), sent);
            assert!(kept(&text, Use::Login(&list(good_for)), 100).is_some());
            assert!(kept(&text, Use::Login(&list("d")), 100).is_none());
        }
        let at = registering("", &[]).await;
        drop(asked(&at, &[], "", None).await);
        assert_eq!(told(&at), [""], "nothing is going to be");
        // More than anybody reads.
        let at = registering("", &[]).await;
        let long = "x".repeat(SCOPE_BYTES);
        assert!(asked(&at, &[], &format!("{long} y"), None).await.0.is_ok());
        assert_eq!(told(&at), [""]);
    }

    #[tokio::test]
    async fn what_was_granted_to_a_client_is_good_with_that_one_when_another_takes_its_place() {
        const FIRST: &str = r#"{"id":"first","secret":"s","method":null,"until":0}"#;
        let at = registering(
            r#","client_secret":"t","client_secret_expires_at":200"#,
            &[],
        )
        .await;
        let (_, text) = asked(&at, &[], "a", Some(FIRST)).await;
        let id = |wanted, now| kept(&text, wanted, now).map(|client| client.id);
        let scopes = list("a");
        assert_eq!(id(Use::Login(&scopes), 100).as_deref(), Some("later"));
        assert_eq!(id(Use::Login(&scopes), 200), None, "its secret has ended");
        assert_eq!(id(Use::Grant(Some("later")), 100).as_deref(), Some("later"));
        assert_eq!(id(Use::Grant(Some("first")), 200).as_deref(), Some("first"));
        assert_eq!(id(Use::Grant(None), 100).as_deref(), Some("first"));
        assert_eq!(id(Use::Grant(Some("other")), 100), None);
        assert!(is_of(&text, "later") && !is_of(&text, "first"));
        // One that says for nothing what it is for is for logins without scopes.
        let old = |scopes: &[String]| kept(FIRST.as_bytes(), Use::Login(scopes), 100).is_some();
        assert!(old(&[]) && !old(&scopes));
    }

    #[tokio::test]
    async fn of_those_before_it_so_many_are_kept_and_none_whose_secret_has_ended() {
        let long = "i".repeat(4_095);
        let one = |id: usize| Kept {
            id: format!("{id}{long}"),
            secret: Some(long.clone()),
            method: None,
            until: if id == 3 { 50 } else { 0 },
            scope: "a".into(),
            earlier: Vec::new(),
        };
        let all = Kept {
            earlier: (1..20).map(one).collect(),
            ..one(0)
        };
        let before = serde_json::to_string(&all).unwrap();
        let at = registering("", &[]).await;
        let (_, text) = asked(&at, &[], "b", Some(&before)).await;
        assert!(text.len() <= KEPT_BYTES);
        let left: Kept = serde_json::from_slice(&text).unwrap();
        let left: Vec<_> = left.earlier.iter().map(|kept| &kept.id[..1]).collect();
        assert_eq!(left, ["0", "1", "2", "4", "5", "6", "7"], "newest first");
        // However short they are.
        let short = |id: usize| Kept {
            id: id.to_string(),
            secret: None,
            method: None,
            until: 0,
            scope: String::new(),
            earlier: Vec::new(),
        };
        let all = Kept {
            earlier: (1..20).map(short).collect(),
            ..short(0)
        };
        let before = serde_json::to_string(&all).unwrap();
        let (_, text) = asked(&at, &[], "b", Some(&before)).await;
        let left: Kept = serde_json::from_slice(&text).unwrap();
        assert_eq!(left.earlier.len(), EARLIER);
    }
}
