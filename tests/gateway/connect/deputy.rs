//! The confused deputy, as PROTOCOL F7 tells of it.
//! Usher has one client id at somebody else's authorization server, which remembers that a person agreed once and asks no more.
//! Whoever lures that person then gets nothing: a browser with which they logged in before is refused, and any other shows
//! whose login it is before it begins.

use std::collections::HashMap;

use http::Method;

use super::{Browser, LoginServer, MODERN, URLS, asked, browser::form, gateway, github};
use crate::harness::{Authority, Client, Gateway, Play, Upstream, text_result};

/// Ana, who has logged in and agreed to everything, here and there; and Mallory, who has a token of his own for the gateway.
struct Scene {
    server: LoginServer,
    github: Upstream,
    gateway: Gateway,
    ana: Client,
    mallory: Client,
    /// Ana's, with all its cookies. The authorization server sends whoever comes straight back, as after a consent that it keeps.
    browser: Browser,
}

impl Scene {
    async fn set() -> Self {
        let (server, github) = (LoginServer::start(), github(MODERN));
        let authority = Authority::start().await;
        let gateway = gateway(&github, &server)
            .auth(authority.spec())
            .start()
            .await;
        let person = async |name: &str| {
            let token = format!("Bearer {}", authority.token(name, ""));
            let headers = [("authorization", token)];
            let client = Client::connect_with(gateway.address, "/mcp", MODERN, URLS, &headers);
            client.await.unwrap()
        };
        let (ana, mallory) = (person("ana").await, person("mallory").await);
        let mut browser = Browser::default();
        let (link, _) = asked(&ana.call("github_t", "{}").await);
        assert_eq!(browser.log_in(&link).await.status, 200);
        let called = ana.call("github_t", "{}").await;
        assert!(called.text().starts_with("Bearer ACCESS-"), "{called:?}");
        Self {
            server,
            github,
            gateway,
            ana,
            mallory,
            browser,
        }
    }

    async fn lure(&self) -> String {
        asked(&self.mallory.call("github_t", "{}").await).0
    }

    /// No code but Ana's own was exchanged, and Mallory still has to log in himself; Ana is not disturbed.
    async fn nothing_came_of_it(&self) {
        assert_eq!(self.server.told("/token").len(), 1, "a code was exchanged");
        assert_eq!(self.server.tokens().len(), 1);
        let (still, _) = asked(&self.mallory.call("github_t", "{}").await);
        assert!(still.contains("/connect?login="), "{still}");
        let called = self.ana.call("github_t", "{}").await;
        let own = format!("Bearer {}", self.server.tokens()[0]);
        assert_eq!(called.text(), own);
        assert_eq!(self.github.heard("tools/call").len(), 2, "both of Ana");
    }
}

// PROTOCOL F7
#[tokio::test]
async fn somebody_who_is_new_here_is_shown_whose_login_it_is_before_it_begins() {
    let scene = Scene::set().await;
    let link = scene.lure().await;
    let page = Browser::default().open(&link).await;
    // A page to be read, not a way: no redirect, no state, nothing of the authorization server's address but its name.
    assert_eq!(page.status, 200);
    assert!(!page.headers.contains_key("location"));
    for no in ["state=", "/authorize", "http-equiv", "code_challenge"] {
        assert!(!page.body.contains(no), "{no} in {}", page.body);
    }
    assert!(page.body.contains("mallory"), "{}", page.body);
    assert!(!page.body.contains("ana</strong>"), "{}", page.body);
    scene.nothing_came_of_it().await;
}

// PROTOCOL F7
#[tokio::test]
async fn a_browser_that_somebody_logged_in_with_is_of_no_use_for_anybody_elses_login() {
    let mut scene = Scene::set().await;
    let link = scene.lure().await;
    let page = scene.browser.open(&link).await;
    assert_eq!(page.status, 403, "{}", page.body);
    assert!(page.body.contains("somebody else&#39;s"), "{}", page.body);
    assert!(!page.body.contains("<form"), "{}", page.body);
    // Nor with a form that somebody else was shown, nor with a login that somebody else began.
    let mut mallorys = Browser::default();
    let shown = mallorys.open(&link).await;
    assert_eq!(scene.browser.press(&link, &shown.body).await.status, 403);
    let at = mallorys.leave(&link).await;
    let back = scene.browser.sent_back(&at).await;
    let refused = scene.browser.open(&back).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.body.contains("somebody else&#39;s"),
        "{}",
        refused.body
    );
    assert_eq!(mallorys.open(&back).await.status, 404, "spent");
    scene.nothing_came_of_it().await;
}

// PROTOCOL F7
#[tokio::test]
async fn a_browser_is_good_for_further_logins_of_its_own_person() {
    let mut scene = Scene::set().await;
    scene.github.now_on("tools/call", |_| Play::Status(401));
    // Her token is not taken any more, and cannot be renewed: she logs in again, as anybody would.
    scene.server.forget();
    let (link, _) = asked(&scene.ana.call("github_t", "{}").await);
    scene
        .github
        .now_on("tools/call", |_| Play::Result(text_result("back")));
    assert_eq!(scene.browser.log_in(&link).await.status, 200);
    assert_eq!(scene.ana.call("github_t", "{}").await.text(), "back");
}

// PROTOCOL F7
#[tokio::test]
async fn a_consent_that_the_server_remembers_is_of_no_use_to_whoever_began_the_login() {
    let mut scene = Scene::set().await;
    let link = scene.lure().await;
    // Mallory agrees on our page himself, and sends Ana on from there: the server knows her, and gives a code at once.
    let mut mallorys = Browser::default();
    let at = mallorys.leave(&link).await;
    let back = scene.browser.sent_back(&at).await;
    assert!(back.contains("code=CODE-"), "{back}");
    let refused = scene.browser.open(&back).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    // Nor can he use the code in his own browser then: the state is spent.
    assert_eq!(mallorys.open(&back).await.status, 404);
    scene.nothing_came_of_it().await;
}

// PROTOCOL F7
#[tokio::test]
async fn where_a_code_goes_is_not_for_a_link_or_a_form_to_say() {
    let scene = Scene::set().await;
    let link = scene.lure().await;
    let more = "redirect_uri=https%3A%2F%2Fmallory.example%2F&scope=admin&client_id=mallory&state=0123456789012345678901&resource=https%3A%2F%2Fmallory.example%2F";
    let mut browser = Browser::default();
    let page = browser.open(&format!("{link}&{more}")).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(!page.body.contains("mallory.example"), "{}", page.body);
    let url = format!("http://{}/connect?{more}", scene.gateway.address);
    let headers = [("sec-fetch-site", "same-origin")];
    let form = format!("{}&{more}", form(&page.body));
    let left = browser.send(Method::POST, &url, &headers, &form).await;
    assert_eq!(left.status, 200, "{}", left.body);
    let (_, at) = left.body.split_once("href=\"").unwrap();
    let at = at.split_once('"').unwrap().0.replace("&amp;", "&");
    let (_, query) = at.split_once('?').unwrap();
    let said: HashMap<String, String> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let callback = format!("http://{}/connect/callback", scene.gateway.address);
    assert_eq!(said["redirect_uri"], callback);
    assert_eq!(said["client_id"], "usher");
    assert_eq!(said["scope"], "read write");
    assert!(!at.contains("mallory"), "{at}");
    scene.nothing_came_of_it().await;
}
