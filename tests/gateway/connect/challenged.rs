//! A server that says by itself where people log in, what for, and when that is not enough.
//! Its challenges are followed, and relayed to nobody (PROTOCOL F3, F6, SECURITY EGR-6).

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use usher::tasks::Tasks;

use super::{renewing::takes_only_later_ones, *};
use crate::harness::{MEDDLING, exchange};

/// Where the metadata is: at none of the places where it is looked for without a word.
const METADATA: &str = "/about/this-server";

/// One origin for an MCP server, its metadata, and an authorization server: what that names is as good as written down, though
/// it is on this machine. It ends with the test.
struct Front {
    address: SocketAddr,
    shared: Arc<Shared>,
    tasks: Tasks,
}

struct Shared {
    mcp: SocketAddr,
    login: SocketAddr,
    /// What is asked for of whoever brings nothing.
    scopes: Mutex<&'static str>,
    /// The challenge to whoever brought something that is not enough.
    challenge: Mutex<&'static str>,
    seen: Mutex<Vec<String>>,
}

impl Front {
    fn of(server: &LoginServer, github: &Upstream) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let place = github.place();
        let mcp = place.split('/').nth(2).unwrap().parse().unwrap();
        let shared = Arc::new(Shared {
            mcp,
            login: server.address,
            scopes: Mutex::new("read notes"),
            challenge: Mutex::new("Bearer error=\"invalid_token\""),
            seen: Mutex::default(),
        });
        let tasks = Tasks::new();
        let (family, ours) = (tasks.clone(), Arc::clone(&shared));
        tasks.spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let shared = Arc::clone(&ours);
                family.spawn(async move {
                    let service = service_fn(move |request| {
                        let shared = Arc::clone(&shared);
                        async move { Ok::<_, Infallible>(shared.answer(address, request).await) }
                    });
                    let served = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service);
                    drop(served.await);
                });
            }
        });
        Self {
            address,
            shared,
            tasks,
        }
    }

    /// The MCP server.
    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    fn gateway(&self) -> GatewayBuilder {
        let block = format!(
            "{{ url: \"{}\", auth: {{ authorization_code: {{ client_id: usher }} }}, {SHOWN} }}",
            self.url()
        );
        Gateway::of().placed("github", &block)
    }

    fn asks_for(&self, scopes: &'static str) {
        *self.shared.scopes.lock().unwrap() = scopes;
    }

    fn challenges(&self, challenge: &'static str) {
        *self.shared.challenge.lock().unwrap() = challenge;
    }

    /// Where metadata of the MCP server was looked for.
    fn looked_at(&self) -> Vec<String> {
        let seen = self.shared.seen.lock().unwrap();
        let seen = seen.iter();
        let of_it = |path: &&String| *path == METADATA || path.contains("protected-resource");
        seen.filter(of_it).cloned().collect()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

impl Shared {
    async fn answer(&self, here: SocketAddr, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let path = head.uri.path_and_query().unwrap().as_str();
        self.seen.lock().unwrap().push(head.uri.path().to_owned());
        let to = match head.uri.path() {
            "/mcp" if body.ends_with(br#""method":"ping"}"#) => {
                assert!(!head.headers.contains_key("authorization"));
                let scopes = *self.scopes.lock().unwrap();
                let challenge = format!(
                    r#"Bearer realm="notes", resource_metadata="http://{here}{METADATA}", scope="{scopes}""#
                );
                return Response::builder()
                    .status(401)
                    .header("www-authenticate", challenge)
                    .body(Full::default())
                    .unwrap();
            }
            "/mcp" => self.mcp,
            METADATA => {
                let text = format!(
                    r#"{{"resource":"http://{here}/mcp","authorization_servers":["http://{here}"],"scopes_supported":["read","notes","write","admin","all"]}}"#
                );
                return Response::new(Full::from(text));
            }
            _ => self.login,
        };
        let kept = |name: &str| {
            !matches!(
                name,
                "host" | "content-length" | "connection" | "transfer-encoding"
            )
        };
        let headers: Vec<_> = head
            .headers
            .iter()
            .filter(|(name, _)| kept(name.as_str()))
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        let answer = exchange(to, head.method.clone(), path, &headers, &body).await;
        let (login, here) = (self.login.port().to_string(), here.port().to_string());
        let ours = |text: &str| {
            text.replace(&format!("127.0.0.1:{login}"), &format!("127.0.0.1:{here}"))
                .replace(
                    &format!("127.0.0.1%3A{login}"),
                    &format!("127.0.0.1%3A{here}"),
                )
        };
        let refuses = matches!(answer.status, 401 | 403);
        let mut built = Response::builder().status(answer.status);
        for (name, value) in &answer.headers {
            if kept(name.as_str()) && !(refuses && name == "www-authenticate") {
                built = built.header(name, ours(value.to_str().unwrap()));
            }
        }
        if refuses {
            built = built.header("www-authenticate", *self.challenge.lock().unwrap());
        }
        built.body(Full::from(ours(&answer.body))).unwrap()
    }
}

/// Nothing of a challenge is in an answer.
fn unrelayed(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!answer.headers.contains_key("www-authenticate"));
    for word in [
        METADATA,
        "resource_metadata",
        "insufficient_scope",
        "invalid_token",
        "notes write",
        MEDDLING,
    ] {
        assert!(!answer.body.contains(word), "{word} in {}", answer.body);
    }
}

/// What the authorization server is asked for.
fn asked_there(at: &str) -> HashMap<String, String> {
    let (_, query) = at.split_once('?').unwrap();
    form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

/// Logs in by a link, for these scopes.
async fn logs_in_for(link: &str, scopes: &str) {
    let mut browser = Browser::default();
    let page = browser.open(link).await;
    let shown = format!("<dd>{scopes}</dd>");
    assert!(page.body.contains(&shown), "{}", page.body);
    let at = browser.leave(link).await;
    assert_eq!(asked_there(&at)["scope"], scopes);
    let back = browser.sent_back(&at).await;
    let done = browser.open(&back).await;
    assert_eq!(done.status, 200, "{}", done.body);
}

pairings! {
    only [modern_server = MODERN_MODERN, legacy_server = MODERN_LEGACY]
        because "what a server asks of whoever comes does not depend on the client";
    /// SECURITY EGR-6, PROTOCOL F3, F6: what a server says of where to log in and what for is followed; a token that it takes no
    /// more is replaced and the call made once again; and whoever called hears nothing of it.
    async fn a_challenge_is_followed_and_told_to_nobody(pair: Pairing) {
        let (server, github) = (LoginServer::start(), github(pair.upstream));
        let front = Front::of(&server, &github);
        let gateway = front.gateway().start().await;
        let client = gateway.client_able(MODERN, URLS).await;
        let told = client.call("github_t", "{}").await;
        unrelayed(&told);
        logs_in_for(&asked(&told).0, "read notes").await;
        assert_eq!(front.looked_at(), [METADATA], "where the challenge says, and nowhere else");
        let token = server.told("/token").pop().unwrap();
        assert_eq!(token.form["resource"], front.url());
        let first = client.call("github_t", "{}").await;
        assert_eq!(first.text(), format!("Bearer {}", server.tokens()[0]));

        takes_only_later_ones(&github, &server);
        let before = github.heard("tools/call").len();
        let second = client.call("github_t", "{}").await;
        unrelayed(&second);
        assert_eq!(second.text(), format!("Bearer {}", server.tokens()[1]));
        assert_eq!(github.heard("tools/call").len(), before + 2, "once again, and no more");

        // There is no other token to be had: the person is asked, for what the server wants by now.
        server.forget();
        takes_only_later_ones(&github, &server);
        front.asks_for("read notes admin");
        let told = client.call("github_t", "{}").await;
        unrelayed(&told);
        assert_eq!(github.heard("tools/call").len(), before + 3);
        logs_in_for(&asked(&told).0, "read notes admin").await;
        let third = client.call("github_t", "{}").await;
        assert_eq!(third.text(), format!("Bearer {}", server.tokens()[2]));
    }
}

pairings! {
    only [modern_server = MODERN_MODERN, legacy_server = MODERN_LEGACY]
        because "what a server asks of whoever comes does not depend on the client";
    /// PROTOCOL F6: where a token lacks a scope, the person is asked for that and all that was asked for before, once.
    async fn what_a_token_lacks_is_asked_for_beside_all_the_rest_and_once(pair: Pairing) {
        let (server, github) = (LoginServer::start(), github(pair.upstream));
        let front = Front::of(&server, &github);
        let gateway = front.gateway().start().await;
        let client = gateway.client_able(MODERN, URLS).await;
        logs_in_for(&asked(&client.call("github_t", "{}").await).0, "read notes").await;
        assert!(client.call("github_t", "{}").await.text().starts_with("Bearer ACCESS-"));
        let lacks = |teller: Vec<String>| move |heard: &crate::harness::Heard| {
            let token = heard.header("authorization").unwrap_or_default().to_owned();
            if teller.iter().any(|old| token.ends_with(old.as_str())) {
                Play::Status(403)
            } else {
                Play::Result(text_result(&token))
            }
        };
        github.now_on("tools/call", lacks(server.tokens()));
        front.challenges(r#"Bearer error="insufficient_scope", scope="read write""#);
        let told = client.call("github_t", "{}").await;
        unrelayed(&told);
        logs_in_for(&asked(&told).0, "read notes write").await;
        let text = client.call("github_t", "{}").await.text();
        assert_eq!(text, format!("Bearer {}", server.tokens()[1]));

        // It is never content: nobody is asked for the same again, and nobody loses what they have.
        github.now_on("tools/call", |_| Play::Status(403));
        for _ in 0..2 {
            let told = client.call("github_t", "{}").await;
            assert_eq!(told.tool_error(), "upstream_auth_failed");
            unrelayed(&told);
        }
        github.now_on("tools/call", lacks(Vec::new()));
        let text = client.call("github_t", "{}").await.text();
        assert_eq!(text, format!("Bearer {}", server.tokens()[1]));
        assert_eq!(server.told("/token").len(), 2);
    }
}

// PROTOCOL F6
#[tokio::test]
async fn what_one_tool_lacks_takes_nothing_from_the_others() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    let front = Front::of(&server, &github);
    let gateway = front.gateway().start().await;
    let client = gateway.client_able(MODERN, URLS).await;
    logs_in_for(&asked(&client.call("github_t", "{}").await).0, "read notes").await;
    assert!(
        client
            .call("github_t", "{}")
            .await
            .text()
            .starts_with("Bearer ACCESS-")
    );
    let old = server.tokens();
    github.now_on("tools/call", move |heard| {
        let token = heard.header("authorization").unwrap_or_default();
        let lacks = old.iter().any(|old| token.ends_with(old.as_str()));
        if lacks && heard.text("name").as_deref() == Some("t") {
            Play::Status(403)
        } else {
            Play::Result(text_result(token))
        }
    });
    front.challenges(r#"Bearer error="insufficient_scope", scope="write""#);
    let first = format!("Bearer {}", server.tokens()[0]);
    let others_stay = async || {
        assert_eq!(client.call("github_u", "{}").await.text(), first);
        assert_eq!(client.tools().await, ["github_t", "github_u"]);
    };
    let (_, state) = asked(&client.call("github_t", "{}").await);
    others_stay().await;
    let declined = go_on(&client, &state, Some("decline")).await;
    assert_eq!(declined.tool_error(), "input_refused");
    others_stay().await;
    // Asked again, and gone on with when there is more than there was.
    let (link, state) = asked(&client.call("github_t", "{}").await);
    let went_on = go_on(&client, &state, Some("accept"));
    let logs_in = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        others_stay().await;
        logs_in_for(&link, "read notes write").await;
    };
    let (went_on, ()) = tokio::join!(went_on, logs_in);
    let second = format!("Bearer {}", server.tokens()[1]);
    assert_eq!(went_on.text(), second);
    assert_eq!(client.call("github_u", "{}").await.text(), second);
}

/// Somebody who has logged in for `read notes`, at a server whose `t` wants `write` as well, and whose `u` wants more than that.
async fn in_two_steps(server: &LoginServer, github: &Upstream, front: &Front) -> (Gateway, Client) {
    let gateway = front.gateway().start().await;
    let client = gateway.client_able(MODERN, URLS).await;
    logs_in_for(&asked(&client.call("github_t", "{}").await).0, "read notes").await;
    assert_eq!(client.call("github_t", "{}").await.status, 200);
    let tokens = server.teller();
    github.now_on("tools/call", move |heard| {
        let token = heard.header("authorization").unwrap_or_default();
        let number = tokens()
            .iter()
            .position(|one| token.ends_with(one.as_str()));
        let wanted = if heard.text("name").as_deref() == Some("t") {
            1
        } else {
            2
        };
        if number.is_some_and(|number| number >= wanted) {
            Play::Result(text_result(token))
        } else {
            Play::Status(403)
        }
    });
    (gateway, client)
}

const WRITE: &str = r#"Bearer error="insufficient_scope", scope="write""#;
const ADMIN: &str = r#"Bearer error="insufficient_scope", scope="admin""#;

// PROTOCOL F6
#[tokio::test]
async fn what_is_found_lacking_while_somebody_agrees_to_other_things_is_asked_for_next() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    let front = Front::of(&server, &github);
    let (_gateway, client) = in_two_steps(&server, &github, &front).await;
    front.challenges(WRITE);
    let (link, of_t) = asked(&client.call("github_t", "{}").await);
    let mut browser = Browser::default();
    browser.open(&link).await;
    let at = browser.leave(&link).await;
    assert_eq!(asked_there(&at)["scope"], "read notes write");
    front.challenges(ADMIN);
    let (_, of_u) = asked(&client.call("github_u", "{}").await);
    let back = browser.sent_back(&at).await;
    assert_eq!(browser.open(&back).await.status, 200);
    // That was not for what this one lacks.
    let (link, of_u) = asked(&go_on_with(&client, "u", &of_u, Some("accept")).await);
    // And it was for what that one lacks, though its client is heard only now.
    let went_on = go_on(&client, &of_t, Some("accept")).await;
    assert_eq!(went_on.text(), format!("Bearer {}", server.tokens()[1]));
    logs_in_for(&link, "read notes admin write").await;
    let went_on = go_on_with(&client, "u", &of_u, Some("accept")).await;
    assert_eq!(went_on.text(), format!("Bearer {}", server.tokens()[2]));
}

// PROTOCOL F6
#[tokio::test]
async fn who_declines_one_login_has_answered_no_other() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    let front = Front::of(&server, &github);
    let (_gateway, client) = in_two_steps(&server, &github, &front).await;
    front.challenges(WRITE);
    let (link, of_t) = asked(&client.call("github_t", "{}").await);
    let mut browser = Browser::default();
    browser.open(&link).await;
    let at = browser.leave(&link).await;
    front.challenges(ADMIN);
    let (_, of_u) = asked(&client.call("github_u", "{}").await);
    let before = github.heard("tools/call").len();
    let went_on = go_on(&client, &of_t, Some("accept"));
    let declines = async {
        let declined = go_on_with(&client, "u", &of_u, Some("decline")).await;
        assert_eq!(declined.tool_error(), "input_refused");
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(github.heard("tools/call").len(), before, "it waits");
        let back = browser.sent_back(&at).await;
        assert_eq!(browser.open(&back).await.status, 200);
    };
    let (went_on, ()) = tokio::join!(went_on, declines);
    assert_eq!(went_on.text(), format!("Bearer {}", server.tokens()[1]));
}

// PROTOCOL F6
#[tokio::test]
async fn who_may_list_nothing_with_what_was_granted_is_asked_for_more_by_the_login() {
    let server = LoginServer::start();
    let tokens = server.teller();
    let github = github(MODERN).closed().on("tools/list", move |heard| {
        let shown = heard.header("authorization").unwrap_or_default();
        let number = tokens()
            .iter()
            .position(|token| shown == format!("Bearer {token}"));
        match number {
            None => Play::Status(401),
            Some(0) => Play::Status(403),
            Some(_) => Play::Result(format!(r#"{{"tools":[{}]}}"#, tool("t"))),
        }
    });
    let front = Front::of(&server, &github);
    let gateway = front.gateway().start().await;
    let client = gateway.client_able(MODERN, URLS).await;
    front.challenges(r#"Bearer error="insufficient_scope", scope="write""#);
    for scopes in ["read notes", "read notes write"] {
        assert_eq!(client.tools().await, ["github_login"]);
        let (link, _) = asked(&client.call("github_login", "{}").await);
        logs_in_for(&link, scopes).await;
    }
    let listed = client.tools().await;
    assert!(listed.contains(&"github_t".to_owned()), "{listed:?}");
    let text = client.call("github_t", "{}").await.text();
    assert_eq!(text, format!("Bearer {}", server.tokens()[1]));
}

#[tokio::test]
async fn scopes_that_are_written_down_are_all_that_is_asked_for() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    let front = Front::of(&server, &github);
    let block = format!(
        "{{ url: \"{}\", auth: {{ authorization_code: {{ client_id: usher, scopes: [read] }} }} }}",
        front.url()
    );
    let gateway = Gateway::of().placed("github", &block).start().await;
    let client = gateway.client_able(MODERN, URLS).await;
    logs_in_for(&asked(&client.call("github_t", "{}").await).0, "read").await;
    github.now_on("tools/call", |_| Play::Status(403));
    front.challenges(r#"Bearer error="insufficient_scope", scope="write""#);
    let told = client.call("github_t", "{}").await;
    assert_eq!(told.tool_error(), "upstream_auth_failed");
    unrelayed(&told);
    assert_eq!(server.tokens().len(), 1);
}

// PROTOCOL F7
#[tokio::test]
async fn a_browser_that_is_new_here_goes_on_when_somebody_says_that_the_login_is_theirs() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    let gateway = gateway(&github, &server).start().await;
    let client = gateway.client_able(MODERN, URLS).await;
    let (link, _) = asked(&client.call("github_t", "{}").await);
    let mut browser = Browser::default();
    let page = browser.open(&link).await;
    assert!(
        page.body.contains("required> I am <strong>"),
        "{}",
        page.body
    );
    let (url, from) = (
        format!("http://{}/connect", gateway.address),
        format!("http://{}", gateway.address),
    );
    let headers = [("origin", from.as_str()), ("sec-fetch-site", "same-origin")];
    let form = browser::form(&page.body);
    for form in [
        form.replace("&mine=yes", ""),
        form.replace("mine=yes", "mine=no"),
        form.clone() + "&mine=yes",
    ] {
        let refused = browser.send(Method::POST, &url, &headers, &form).await;
        assert_eq!(refused.status, 400, "{form}: {}", refused.body);
        assert!(!refused.body.contains("/authorize"), "{}", refused.body);
    }
    assert!(server.told("/token").is_empty());
    assert_eq!(browser.log_in(&link).await.status, 200);
    // From then on it is known to be theirs.
    server.forget();
    takes_only_later_ones(&github, &server);
    let (link, _) = asked(&client.call("github_t", "{}").await);
    let page = browser.open(&link).await;
    assert!(!page.body.contains("name=\"mine\""), "{}", page.body);
    assert_eq!(browser.log_in(&link).await.status, 200);
}
