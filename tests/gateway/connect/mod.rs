//! Upstreams that people log in to with accounts of their own.
//! They are asked in every era, finish in a browser, and are refused in every way in which they must be (PRODUCT 7, PROTOCOL
//! F6, F7, F10, SECURITY EGR-5).

mod browser;
mod challenged;
mod deputy;
mod login;
mod markers;
mod own;
mod principals;
mod refused;
mod renewing;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::{
    Answer, Client, Gateway, GatewayBuilder, Pairing, Play, Revision, Talk, Upstream, eventually,
    member, parse, quote, text_result, tool,
};

use browser::Browser;
use login::LoginServer;

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;
const URLS: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;
/// Servers here say which token they were sent. That clients are told none is looked at where tokens are markers.
const SHOWN: &str = "sanitize: { classes: { own_credential: off } }";
const KEY: &str = "dev.usher/login";

/// A server with a tool `t` that answers whoever comes with a token of `server`, and says which.
fn github(revision: Revision) -> Upstream {
    Upstream::http(revision)
        .tools([tool("t"), tool("u")])
        .prompts(&["p"])
        .on("tools/call", |heard| match heard.header("authorization") {
            Some(value) if value.starts_with("Bearer ACCESS-") => Play::Result(text_result(value)),
            _ => Play::Status(401),
        })
}

fn gateway(github: &Upstream, server: &LoginServer) -> GatewayBuilder {
    Gateway::of().upstream_with("github", github, &server.auth())
}

/// Goes on with a call of `t`, with these answers.
async fn go_on(client: &Client, state: &str, action: Option<&str>) -> Answer {
    go_on_with(client, "t", state, action).await
}

/// The same of another tool.
async fn go_on_with(client: &Client, tool: &str, state: &str, action: Option<&str>) -> Answer {
    let answers = action.map_or_else(String::new, |action| {
        format!(r#""inputResponses":{{"{KEY}":{{"action":"{action}"}}}},"#)
    });
    let params = format!(
        r#"{{"name":"github_{tool}","arguments":{{}},{answers}"requestState":{}}}"#,
        quote(state)
    );
    client.ask("tools/call", &params).await
}

/// The link and the state in the answer to a modern client.
fn asked(answer: &Answer) -> (String, String) {
    let value = answer.value();
    assert_eq!(value["resultType"], "input_required", "{value}");
    let params = &value["inputRequests"][KEY]["params"];
    assert_eq!(params["mode"], "url", "{value}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&params["url"]), text(&value["requestState"]))
}

/// The question on a talk with a legacy client: its link, and the question.
async fn question(talk: &mut Talk) -> (String, String) {
    let question = talk.hear().await;
    assert_eq!(
        member(&question, "method").as_deref(),
        Some("\"elicitation/create\""),
        "{question}"
    );
    let params = parse(&member(&question, "params").unwrap());
    assert_eq!(params["mode"], "url");
    let url = params["url"].as_str().unwrap().to_owned();
    (url, question)
}

fn words(value: &Value) -> &str {
    value["content"][0]["text"].as_str().unwrap()
}

/// The link in words.
fn link_in(text: &str) -> String {
    let at = text
        .find("http://")
        .unwrap_or_else(|| panic!("no link: {text}"));
    let rest = &text[at..];
    rest.split_whitespace().next().unwrap().to_owned()
}

pairings! {
    /// Whoever has not logged in is sent to, in the way of their era, and the call goes on when they have. The next call asks
    /// nobody.
    async fn somebody_who_calls_for_the_first_time_logs_in_and_the_call_goes_on(pair: Pairing) {
        let (server, github) = (LoginServer::start(), github(pair.upstream));
        let gateway = gateway(&github, &server).start().await;
        let client = gateway.client_able(pair.client, URLS).await;
        assert_eq!(client.tools().await, ["github_t", "github_u"], "listed all the same");
        let mut browser = Browser::default();
        if pair.client_is_modern() {
            let (link, state) = asked(&client.call("github_t", "{}").await);
            assert!(github.heard("tools/call").is_empty(), "nothing before the login");
            let (went_on, done) =
                tokio::join!(go_on(&client, &state, Some("accept")), browser.log_in(&link));
            assert_eq!(done.status, 200, "{}", done.body);
            assert!(done.body.contains("github</strong> is connected"), "{}", done.body);
            assert!(went_on.text().starts_with("Bearer ACCESS-"));
        } else {
            let mut talk = client.call("github_t", "{}").begin().await;
            let (link, asked) = question(&mut talk).await;
            assert!(github.heard("tools/call").is_empty(), "nothing before the login");
            let id = parse(&member(&asked, "params").unwrap())["elicitationId"].clone();
            let told = client.reply(&asked, ("result", r#"{"action":"accept"}"#)).await;
            assert_eq!(told.status, 202);
            assert_eq!(browser.log_in(&link).await.status, 200);
            let complete = talk.hear().await;
            assert_eq!(
                member(&complete, "method").as_deref(),
                Some("\"notifications/elicitation/complete\"")
            );
            assert_eq!(parse(&member(&complete, "params").unwrap())["elicitationId"], id);
            let last = parse(&talk.hear().await);
            assert!(words(&last["result"]).starts_with("Bearer ACCESS-"), "{last}");
        }
        let token = server.told("/token").pop().unwrap();
        assert_eq!(token.form["grant_type"], "authorization_code");
        assert!(token.form["code_verifier"].len() >= 43);
        assert_eq!(token.form["client_id"], "usher");
        assert!(token.form["resource"].ends_with("/mcp"), "{token:?}");
        let again = client.call("github_t", "{}").await;
        assert!(again.text().starts_with("Bearer ACCESS-"));
        assert_eq!(server.told("/token").len(), 1);
        let heard = github.last("tools/call");
        assert!(!heard.params.contains("dev.usher") && !heard.params.contains("requestState"));
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_where_to_go() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    let gateway = gateway(&github, &server).start().await;
    for (revision, able) in [
        (MODERN, "{}"),
        (MODERN, r#"{"elicitation":{}}"#),
        (LEGACY, r#"{"elicitation":{}}"#),
        (Revision::V2025_06_18, URLS),
        (Revision::V2025_03_26, "{}"),
    ] {
        let client = gateway.client_able(revision, able).await;
        let told = client.call("github_t", "{}").await;
        assert_eq!(told.tool_error(), "login_required", "{revision}");
        let value = told.value();
        let link = link_in(words(&value));
        assert!(
            link.starts_with(&format!("http://{}/connect?login=", gateway.address)),
            "{link}"
        );
        let prompt = client.ask("prompts/get", r#"{"name":"github_p"}"#).await;
        let error = prompt.error();
        assert_eq!(error["data"]["reason"], "login_required", "{revision}");
        assert_eq!(error["data"]["url"], link, "the same until it is taken");
    }
    assert!(github.heard("tools/call").is_empty() && github.heard("prompts/get").is_empty());
    // The words lead to the same login.
    let client = gateway.client(MODERN).await;
    let link = link_in(words(&client.call("github_t", "{}").await.value()));
    assert_eq!(Browser::default().log_in(&link).await.status, 200);
    let done = client.call("github_t", "{}").await;
    assert!(done.text().starts_with("Bearer ACCESS-"));
}

#[tokio::test]
async fn a_client_that_shows_links_but_reads_no_stream_gets_the_error_of_its_revision() {
    let (server, github) = (LoginServer::start(), github(LEGACY));
    let gateway = gateway(&github, &server).start().await;
    let client = gateway.client_able(LEGACY, URLS).await;
    let told = client
        .call("github_t", "{}")
        .header("accept", "application/json")
        .await;
    let error = told.error();
    assert_eq!(error["code"], -32042, "{error}");
    let visit = &error["data"]["elicitations"][0];
    assert_eq!(visit["mode"], "url");
    assert!(visit["elicitationId"].is_string() && visit["message"].is_string());
    let link = visit["url"].as_str().unwrap();
    assert!(
        !link.contains(visit["elicitationId"].as_str().unwrap()),
        "the name of a login is not its link"
    );
    assert_eq!(Browser::default().log_in(link).await.status, 200);
    let done = client.call("github_t", "{}").await;
    assert!(done.text().starts_with("Bearer ACCESS-"));
}

pairings! {
    only [modern_client = MODERN_MODERN, legacy_client = LEGACY_LEGACY]
        because "who is asked, and how, depends on the client alone";
    /// A refusal at the client ends the call, and the link with it.
    async fn whoever_declines_is_not_logged_in_and_the_link_is_void(pair: Pairing) {
        let (server, github) = (LoginServer::start(), github(pair.upstream));
        let gateway = gateway(&github, &server).start().await;
        let client = gateway.client_able(pair.client, URLS).await;
        let (link, reason) = if pair.client_is_modern() {
            let (link, state) = asked(&client.call("github_t", "{}").await);
            (link, go_on(&client, &state, Some("decline")).await.tool_error())
        } else {
            let mut talk = client.call("github_t", "{}").begin().await;
            let (link, asked) = question(&mut talk).await;
            client.reply(&asked, ("result", r#"{"action":"cancel"}"#)).await;
            (link, talk.rest().await.tool_error())
        };
        assert_eq!(reason, "input_refused");
        assert_eq!(Browser::default().open(&link).await.status, 404);
        assert!(github.heard("tools/call").is_empty() && server.told("/token").is_empty());
    }
}

#[tokio::test]
async fn a_gateway_without_a_client_id_registers_once_and_proves_itself() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    let auth = format!(
        "auth: {{ authorization_code: {{ issuer: \"{}\" }} }}",
        server.issuer()
    );
    let gateway = Gateway::of()
        .upstream_with("github", &github, &auth)
        .upstream_with("gitlab", &github, &auth)
        .start()
        .await;
    let client = gateway.client_able(MODERN, URLS).await;
    for name in ["github_t", "gitlab_t"] {
        let (link, _) = asked(&client.call(name, "{}").await);
        assert_eq!(Browser::default().log_in(&link).await.status, 200);
    }
    let registered = server.told("/register");
    assert_eq!(registered.len(), 1, "the second is of the same server");
    let about = parse(&registered[0].form["json"]);
    let redirect = format!("http://{}/connect/callback", gateway.address);
    assert_eq!(about["redirect_uris"][0], redirect);
    assert_eq!(about["application_type"], "native");
    for token in server.told("/token") {
        // base64 of `registered:REGISTERED-SECRET`
        let basic = "Basic cmVnaXN0ZXJlZDpSRUdJU1RFUkVELVNFQ1JFVA==";
        assert_eq!(token.authorization.as_deref(), Some(basic));
        assert!(!token.form.contains_key("client_secret"));
    }
}

/// So are those that are made with the official SDK for Python.
#[tokio::test]
async fn a_server_that_lets_nobody_ask_for_what_they_did_not_register_for_is_told_of_it() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    server.manners(|manners| {
        manners.strict = true;
        // So that each call renews its token.
        manners.life = Some(20);
        manners.metadata = |text| text.replace("\"none\"", "\"client_secret_post\"");
    });
    let auth = |scopes: &str| {
        let issuer = server.issuer();
        format!(
            "auth: {{ authorization_code: {{ issuer: \"{issuer}\", scopes: [{scopes}] }} }}, {SHOWN}"
        )
    };
    let gateway = Gateway::of()
        .upstream_with("github", &github, &auth("read"))
        .upstream_with("gitlab", &github, &auth("read, write"))
        .upstream_with("gitea", &github, &auth("write"))
        .start()
        .await;
    let client = gateway.client_able(MODERN, URLS).await;
    let tools = ["github_t", "gitlab_t", "gitea_t"];
    for name in tools {
        let (link, _) = asked(&client.call(name, "{}").await);
        let done = Browser::default().log_in(&link).await;
        assert_eq!(done.status, 200, "{}", done.body);
    }
    let registered = server.told("/register");
    let scopes = registered.iter().map(|told| {
        let scope = parse(&told.form["json"])["scope"].clone();
        scope.as_str().unwrap().to_owned()
    });
    assert_eq!(scopes.collect::<Vec<_>>(), ["read", "read write"]);
    // What the first client was given is good with that one, which the server sees to.
    for name in tools {
        let called = client.call(name, "{}").await;
        assert!(called.text().starts_with("Bearer ACCESS-"), "{name}");
    }
    let tokens = server.told("/token");
    assert!(tokens.iter().all(|token| token.authorization.is_none()));
    let renewed = tokens
        .iter()
        .filter(|token| token.form["grant_type"] == "refresh_token");
    let by: BTreeSet<_> = renewed.map(|token| &*token.form["client_id"]).collect();
    assert_eq!(by, BTreeSet::from(["client-1", "client-2"]));
}

// SECURITY REL-2
#[tokio::test]
async fn a_server_that_does_not_answer_a_registration_holds_up_no_other() {
    let (slow, other, github) = (LoginServer::start(), LoginServer::start(), github(MODERN));
    let unregistered = |server: &LoginServer| {
        let issuer = server.issuer();
        format!("auth: {{ authorization_code: {{ issuer: \"{issuer}\" }} }}")
    };
    let gateway = Gateway::of()
        .upstream_with("slow", &github, &unregistered(&slow))
        .upstream_with("github", &github, &unregistered(&other))
        .start()
        .await;
    let client = gateway.client_able(MODERN, URLS).await;
    slow.hold(Some("/register"));
    let (link, _) = asked(&client.call("slow_t", "{}").await);
    let mut browser = Browser::default();
    let mut waits = std::pin::pin!(browser.log_in(&link));
    let told = eventually("it is asked to register us", async || {
        (slow.told("/register").len() == 1).then_some(())
    });
    let logs_in = async {
        told.await;
        let (link, _) = asked(&client.call("github_t", "{}").await);
        Browser::default().log_in(&link).await.status
    };
    tokio::select! {
        biased;
        done = waits.as_mut() => panic!("the slow one was first: {}", done.body),
        status = logs_in => assert_eq!(status, 200),
    }
    slow.hold(None);
    assert_eq!(waits.await.status, 200);
}

pairings! {
    /// While nobody has logged in to a server that lists nothing without a login, there is a tool that leads to it; then the
    /// server's own take its place.
    async fn a_server_that_lists_nothing_without_a_login_offers_the_login(pair: Pairing) {
        let server = LoginServer::start();
        let github = github(pair.upstream);
        let opening = if pair.upstream_is_modern() { "server/discover" } else { "initialize" };
        github.now_on(opening, |_| Play::Status(401));
        let gateway = gateway(&github, &server).start().await;
        let client = gateway.client_able(pair.client, URLS).await;
        assert_eq!(client.tools().await, ["github_login"]);
        let without = gateway.client(pair.client).await;
        let told = without.call("github_login", "{}").await;
        assert_eq!(told.tool_error(), "login_required");
        let link = link_in(words(&told.value()));
        github.as_usual(opening);
        assert_eq!(Browser::default().log_in(&link).await.status, 200);
        let done = client.call("github_login", "{}").await;
        let text = done.text();
        assert!(text.starts_with("Logged in to github"), "{text}");
        let own = ["github_t", "github_u", "github_login"];
        eventually("the tools of the server are listed", async || {
            (client.tools().await == own).then_some(())
        })
        .await;
        let listed = github.last("tools/list");
        assert!(listed.header("authorization").unwrap().starts_with("Bearer ACCESS-"));
        assert!(client.call("github_t", "{}").await.text().starts_with("Bearer ACCESS-"));
    }
}
