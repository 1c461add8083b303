//! The connect page: where a person logs in to an upstream, in a browser (PRODUCT 7, PROTOCOL F7).
//!
//! Guarantees: nothing happens on a GET but that a browser gets a cookie; who goes on has seen whose login it is, and is the
//! browser that saw it; a browser with which somebody logged in is sent away from everybody else's login, and in one that is
//! not known a person has to say that the login is theirs; no page is framed, kept, or runs anything; whatever is shown is
//! escaped, and no word of an authorization server is repeated. Deliberately absent: what a login is, which is `connect`.

mod html;

use std::borrow::Cow;

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{Context, SHA256},
    rand,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use crate::{
    connect::{BadVisit, Callback, ConnectError, Connections, LIFE, REMEMBERED, Refusal},
    server::{
        Body, Endpoint, RemoteEnd,
        body::{empty, full, read_body_until},
        spec::ServerBounds,
    },
};

/// The most bytes of a form of ours.
const FORM_BYTES: usize = 4 << 10;
/// The most characters of one value in a query: a code of an authorization server may be long.
const VALUE_CHARS: usize = 4 << 10;

/// The pages of logins, at three paths of their own.
pub struct ConnectPage {
    /// What they are of.
    pub connections: Connections,
    /// Bounds on bodies.
    pub bounds: ServerBounds,
    /// Cancelled when the gateway begins to drain.
    pub closing: CancellationToken,
    /// Which of the three this is.
    pub part: ConnectPart,
}

/// The parts of the connect page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectPart {
    /// Where a person begins: [`crate::connect::PATH`].
    Start,
    /// Where browsers come back to: [`crate::connect::CALLBACK`].
    Callback,
    /// What authorization servers read of us: [`crate::connect::DOCUMENT`].
    Document,
}

impl Endpoint for ConnectPage {
    fn serve(
        &self,
        request: Request<Incoming>,
        _: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>> {
        let connections = self.connections.clone();
        match (self.part, request.method()) {
            (ConnectPart::Start, &Method::GET) => start(connections, request).boxed(),
            (ConnectPart::Start, &Method::POST) => {
                let bounds = ServerBounds {
                    body_bytes: FORM_BYTES,
                    ..self.bounds
                };
                go_on(connections, request, (bounds, self.closing.clone())).boxed()
            }
            (ConnectPart::Callback, &Method::GET) => come_back(connections, request).boxed(),
            (ConnectPart::Document, &Method::GET) => {
                std::future::ready(document(&connections)).boxed()
            }
            (ConnectPart::Start, _) => std::future::ready(not_allowed("GET, POST")).boxed(),
            (ConnectPart::Callback | ConnectPart::Document, _) => {
                std::future::ready(not_allowed("GET")).boxed()
            }
        }
    }
}

/// Shows whose login it is. Looking binds nobody: what only looks, such as a preview of a link, takes it from nobody.
async fn start(connections: Connections, request: Request<Incoming>) -> Response<Body> {
    let Some(link) = request.uri().query().and_then(|query| one(query, "login")) else {
        return refused(&BadVisit::Gone.into());
    };
    if let Err(refusal) = connections.vet(&link, remembered(request.headers(), &connections)) {
        return refused(&refusal);
    }
    let name = connections.cookie_of(&link);
    let brought = cookie(request.headers(), &name);
    let prompt = match connections.visit(&link, brought.as_deref()).await {
        Ok(prompt) => prompt,
        Err(refusal) => return refused(&refusal),
    };
    let value = brought.unwrap_or_else(random);
    let known = connections.knows(&link, remembered(request.headers(), &connections));
    let page = html::prompt(&prompt, &link, &token(&value, &link), known);
    let mut answer = shown(StatusCode::OK, page);
    set_cookie(&mut answer, &connections, &name, &value, LIFE.as_secs());
    answer
}

/// Goes on: the browser that pressed has the login from now on, and is sent to the authorization server.
async fn go_on(
    connections: Connections,
    request: Request<Incoming>,
    (bounds, closing): (ServerBounds, CancellationToken),
) -> Response<Body> {
    let (head, body) = request.into_parts();
    // Newer browsers say where a form comes from; older ones bring no cookie along from elsewhere.
    if let Some(site) = head.headers.get("sec-fetch-site")
        && site != "same-origin"
    {
        return refused(&BadVisit::OtherBrowser.into());
    }
    let body = match read_body_until(&closing, body, &bounds).await {
        Ok(body) => body,
        Err(error) => return empty(error.status()),
    };
    let form = String::from_utf8_lossy(&body);
    let (Some(link), Some(pressed)) = (one(&form, "login"), one(&form, "token")) else {
        return refused(&BadVisit::Gone.into());
    };
    if let Err(refusal) = connections.vet(&link, remembered(&head.headers, &connections)) {
        return refused(&refusal);
    }
    let value = cookie(&head.headers, &connections.cookie_of(&link));
    let Some(value) = value.filter(|value| is_same(&token(value, &link), &pressed)) else {
        return refused(&BadVisit::OtherBrowser.into());
    };
    let known = connections.knows(&link, remembered(&head.headers, &connections));
    if !known && one(&form, "mine").as_deref() != Some("yes") {
        return refused(&BadVisit::Unconfirmed.into());
    }
    match connections.go_on(&link, &value).await {
        Ok(url) => shown(StatusCode::OK, html::leaving(&url)),
        Err(refusal) => refused(&refusal),
    }
}

/// The browser is back.
async fn come_back(connections: Connections, request: Request<Incoming>) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default();
    let Some(callback) = callback(query) else {
        return refused(&BadVisit::Gone.into());
    };
    let headers = request.headers();
    if let Err(refusal) = connections.vet_state(&callback.state, remembered(headers, &connections))
    {
        // A state that somebody else has seen is good for nobody.
        drop(connections.come_back(callback, None).await);
        return refused(&refusal);
    }
    let name = connections.cookie_of_state(&callback.state);
    let value = name.as_ref().and_then(|name| cookie(headers, name));
    let mut answer = match connections.come_back(callback, value.as_deref()).await {
        Ok(done) => {
            let mut answer = shown(StatusCode::OK, html::done(&done));
            let (name, seconds) = (connections.browser_cookie(), REMEMBERED.as_secs());
            set_cookie(&mut answer, &connections, name, &done.browser, seconds);
            answer
        }
        Err(refusal) => refused(&refusal),
    };
    // Of no more use.
    if let Some(name) = name {
        set_cookie(&mut answer, &connections, &name, "", 0);
    }
    answer
}

fn document(connections: &Connections) -> Response<Body> {
    match connections.document() {
        Some(document) => full(StatusCode::OK, "application/json", document.bytes().clone()),
        None => empty(StatusCode::NOT_FOUND),
    }
}

/// What a browser brings back; nothing if anything is said twice.
fn callback(query: &str) -> Option<Callback> {
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let one = |name: &str| -> Option<Option<String>> {
        let mut values = pairs.iter().filter(|(key, _)| key == name);
        let value = values.next().map(|(_, value)| value.clone().into_owned());
        let fits = value
            .as_ref()
            .is_none_or(|value| value.len() <= VALUE_CHARS);
        (fits && values.next().is_none()).then_some(value)
    };
    Some(Callback {
        state: one("state")??,
        code: one("code")?,
        error: one("error")?,
        iss: one("iss")?,
    })
}

/// The only value of this name.
fn one(query: &str, name: &str) -> Option<String> {
    let mut values = form_urlencoded::parse(query.as_bytes())
        .filter(|(key, _)| key == name)
        .map(|(_, value)| value);
    let value = values.next().filter(|value| value.len() <= 256)?;
    values.next().is_none().then(|| value.into_owned())
}

/// What the browser remembers of who logged in with it.
fn remembered<'a>(headers: &'a HeaderMap, connections: &Connections) -> Option<&'a str> {
    only(headers, connections.browser_cookie())
}

/// The value of this cookie, if there is exactly one and it could be ours.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = only(headers, name).filter(|value| value.len() == 43)?;
    Some(value.to_owned())
}

/// The value of this cookie, if there is exactly one.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE);
    let mut values = all
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

fn set_cookie(
    answer: &mut Response<Body>,
    connections: &Connections,
    name: &str,
    value: &str,
    seconds: u64,
) {
    let secure = if connections.is_encrypted() {
        "; Secure"
    } else {
        ""
    };
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    // Names and values are ours, and plain.
    if let Ok(value) = HeaderValue::from_str(&text) {
        answer.headers_mut().append(header::SET_COOKIE, value);
    }
}

/// What stands in the form: only who can read the cookie, or the page made for it, knows it.
fn token(cookie: &str, link: &str) -> String {
    let mut context = Context::new(&SHA256);
    for part in ["usher connect form", cookie, link] {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    URL_SAFE_NO_PAD.encode(context.finish())
}

fn is_same(a: &str, b: &str) -> bool {
    verify_slices_are_equal(a.as_bytes(), b.as_bytes()).is_ok()
}

#[expect(clippy::expect_used, reason = "see the invariant")]
fn random() -> String {
    let mut bytes = [0; 32];
    // INVARIANT: the operating system's random source does not fail after boot; a process without one must not serve.
    rand::fill(&mut bytes).expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// What a person is told who cannot go on. The cause is in the log.
fn refused(refusal: &Refusal) -> Response<Body> {
    const AGAIN: &str = "Go back to the program you came from and call the tool again; it will give you a new link.";
    let (status, title, text): (_, _, Cow<'_, str>) = match refusal {
        Refusal::Visit(BadVisit::Gone) => (
            StatusCode::NOT_FOUND,
            "This link is not good any more",
            format!("Links can be used once, within 10 minutes. {AGAIN}").into(),
        ),
        Refusal::Visit(BadVisit::OtherBrowser) => (
            StatusCode::FORBIDDEN,
            "This login belongs to another browser",
            format!("It was begun in another browser, or cookies are switched off here. {AGAIN}")
                .into(),
        ),
        Refusal::Visit(BadVisit::Unconfirmed) => (
            StatusCode::BAD_REQUEST,
            "Is this login yours?",
            "Go back one page, and tick the box only if you are the one named there. If another person sent you the link, do not use it: they would get your account."
                .into(),
        ),
        Refusal::Visit(BadVisit::OtherPerson) => (
            StatusCode::FORBIDDEN,
            "This login is somebody else's",
            "Somebody else has logged in with this browser before, so the login behind this link is not yours. If another person sent you the link, do not use it: they would get your account. If it is yours after all, because you go by more than one name here, open it in a private window."
                .into(),
        ),
        Refusal::Denied => (
            StatusCode::OK,
            "Not connected",
            "You did not agree, so nothing was connected. You can close this window.".into(),
        ),
        Refusal::Refused | Refusal::WrongIssuer => (
            StatusCode::BAD_GATEWAY,
            "Not connected",
            format!("The answer of the login server could not be accepted. {AGAIN} If it happens again, tell whoever runs this gateway.").into(),
        ),
        Refusal::Failed(ConnectError::Stopping) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Not connected",
            format!("The gateway is stopping. {AGAIN}").into(),
        ),
        Refusal::Failed(_) => (
            StatusCode::BAD_GATEWAY,
            "Not connected",
            "The login server could not be used. Try again in a while, or tell whoever runs this gateway; its log says why."
                .into(),
        ),
    };
    match refusal {
        Refusal::Visit(_) | Refusal::Denied => tracing::debug!(%refusal, "a login did not go on"),
        Refusal::Refused | Refusal::WrongIssuer | Refusal::Failed(_) => {
            tracing::warn!(%refusal, "a login did not go on");
        }
    }
    shown(status, html::notice(title, &text))
}

fn shown(status: StatusCode, page: String) -> Response<Body> {
    let mut answer = full(status, "text/html; charset=utf-8", Bytes::from(page));
    let headers = answer.headers_mut();
    let fixed: [(HeaderName, &'static str); 6] = [
        (header::CACHE_CONTROL, "no-store"),
        // The form must say where it comes from; nobody else is told anything.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(policy) = HeaderValue::from_str(&html::policy()) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

fn not_allowed(methods: &'static str) -> Response<Body> {
    let mut answer = empty(StatusCode::METHOD_NOT_ALLOWED);
    answer
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(methods));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_twice_is_said_not_at_all() {
        assert_eq!(one("a=1&login=x%20y", "login").as_deref(), Some("x y"));
        for query in ["", "login", "login=1&login=2", "x=1"] {
            assert!(
                one(query, "login").is_none_or(|value| value.is_empty()),
                "{query}"
            );
        }
        assert!(one(&format!("login={}", "a".repeat(257)), "login").is_none());
        let fine = callback("state=s&code=c%2F&iss=https%3A%2F%2Fa").unwrap();
        assert_eq!(fine.code.as_deref(), Some("c/"));
        assert_eq!(fine.iss.as_deref(), Some("https://a"));
        for query in [
            "code=c",
            "state=s&state=s&code=c",
            "state=s&code=c&code=d",
            "state=s&code=c&iss=a&iss=b",
            &format!("state=s&code={}", "c".repeat(VALUE_CHARS + 1)),
        ] {
            assert!(callback(query).is_none(), "{query}");
        }
    }

    #[test]
    fn a_cookie_counts_once_and_whole() {
        let value = "v".repeat(43);
        let read = |lines: &[String]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, line.parse().unwrap());
            }
            cookie(&headers, "n")
        };
        assert_eq!(read(&[format!("a=b; n={value}")]), Some(value.clone()));
        assert_eq!(
            read(&["a=b".into(), format!("n={value};c=d")]),
            Some(value.clone())
        );
        for lines in [
            vec![format!("n={value}; n={value}")],
            vec![format!("n={value}"), format!("n={value}")],
            vec![format!("nn={value}")],
            vec!["n=".into()],
            vec![format!("n={value}v")],
        ] {
            assert_eq!(read(&lines), None, "{lines:?}");
        }
    }

    #[test]
    fn the_forms_token_is_that_of_its_cookie_and_link() {
        let base = token("cookie", "link");
        assert!(is_same(&base, &token("cookie", "link")));
        for other in [
            token("cookie2", "link"),
            token("cookie", "link2"),
            token("cookiel", "ink"),
        ] {
            assert!(!is_same(&base, &other));
        }
    }
}
