//! Logins that must come to nothing: the wrong browser, the wrong state, twice, too late, another server's answer.
//! See PROTOCOL F6, F7, F10, SECURITY EGR-5.

use http::Method;
use serde_json::json;

use super::{
    Browser, LoginServer, MODERN, URLS, asked, browser::form, gateway, github, go_on, login::Iss,
};
use crate::harness::{Client, Gateway, Upstream};

struct Scene {
    server: LoginServer,
    github: Upstream,
    gateway: Gateway,
    client: Client,
}

impl Scene {
    async fn begin() -> Self {
        let (server, github) = (LoginServer::start(), github(MODERN));
        let gateway = gateway(&github, &server).start().await;
        let client = gateway.client_able(MODERN, URLS).await;
        Self {
            server,
            github,
            gateway,
            client,
        }
    }

    async fn link(&self) -> String {
        asked(&self.client.call("github_t", "{}").await).0
    }

    /// No code was exchanged, no token kept, nothing sent upstream.
    async fn nothing_came_of_it(&self) {
        assert!(self.server.told("/token").is_empty(), "a code was sent");
        let again = self.client.call("github_t", "{}").await;
        assert_eq!(again.value()["resultType"], "input_required");
        assert!(self.github.heard("tools/call").is_empty());
    }
}

#[tokio::test]
async fn a_login_does_not_end_in_another_browser_than_it_began_in() {
    // The attacker begins a login of their own and has the victim finish it, or the other way round.
    let scene = Scene::begin().await;
    let link = scene.link().await;
    let (mut own, mut other) = (Browser::default(), Browser::default());
    let at = own.leave(&link).await;
    let back = own.sent_back(&at).await;
    let refused = other.open(&back).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert_eq!(own.open(&back).await.status, 404, "spent");
    scene.nothing_came_of_it().await;
}

#[tokio::test]
async fn the_cookie_of_another_login_is_not_that_of_this_one() {
    let scene = Scene::begin().await;
    let (mut own, mut other) = (Browser::default(), Browser::default());
    let first = scene.link().await;
    let at = own.leave(&first).await;
    let second = scene.link().await;
    assert_ne!(first, second, "the first belongs to a browser");
    drop(other.leave(&second).await);
    let back = own.sent_back(&at).await;
    assert_eq!(other.open(&back).await.status, 403);
    scene.nothing_came_of_it().await;
}

#[tokio::test]
async fn a_link_goes_on_in_one_browser_alone() {
    let scene = Scene::begin().await;
    let link = scene.link().await;
    let (mut own, mut other) = (Browser::default(), Browser::default());
    let page = own.open(&link).await;
    let elsewhere = other.open(&link).await;
    assert_eq!(elsewhere.status, 200, "looking takes it from nobody");
    // The form of one page does not go with the cookie of the other.
    let crossed = other.press(&link, &page.body).await;
    assert_eq!(crossed.status, 403, "{}", crossed.body);
    assert_eq!(own.press(&link, &page.body).await.status, 200);
    assert_eq!(other.press(&link, &elsewhere.body).await.status, 403);
    assert_eq!(other.open(&link).await.status, 403);
    scene.nothing_came_of_it().await;
}

#[tokio::test]
async fn another_site_cannot_press_the_button() {
    let scene = Scene::begin().await;
    let link = scene.link().await;
    let mut browser = Browser::default();
    let page = browser.open(&link).await;
    let url = format!("http://{}/connect", scene.gateway.address);
    let form = form(&page.body);
    for (headers, status) in [
        (vec![("origin", "https://mallory.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("sec-fetch-site", "cross-site")], 403),
        (vec![("sec-fetch-site", "same-site")], 403),
    ] {
        let pressed = browser.send(Method::POST, &url, &headers, &form).await;
        assert_eq!(pressed.status, status, "{headers:?}");
    }
    let bare = Browser::default()
        .send(Method::POST, &url, &[], &form)
        .await;
    assert_eq!(bare.status, 403, "without the cookie");
    let empty = browser.send(Method::POST, &url, &[], "").await;
    assert_eq!(empty.status, 404);
    let large = "x".repeat(5_000);
    assert_eq!(
        browser.send(Method::POST, &url, &[], &large).await.status,
        413
    );
    scene.nothing_came_of_it().await;
}

#[tokio::test]
async fn a_state_is_good_once_and_no_other_is() {
    let scene = Scene::begin().await;
    let link = scene.link().await;
    let mut browser = Browser::default();
    let at = browser.leave(&link).await;
    let back = browser.sent_back(&at).await;
    let base = format!("http://{}/connect/callback", scene.gateway.address);
    let (_, query) = back.split_once('?').unwrap();
    for wrong in [
        String::new(),
        "code=CODE-1".to_owned(),
        "state=guessed&code=CODE-1".to_owned(),
        format!("{query}&code=CODE-2"),
        format!("state=x&{query}"),
        query.replace("state=", "State="),
    ] {
        let refused = browser.open(&format!("{base}?{wrong}")).await;
        assert_eq!(refused.status, 404, "{wrong}");
    }
    assert!(scene.server.told("/token").is_empty());
    assert_eq!(browser.open(&back).await.status, 200);
    assert_eq!(browser.open(&back).await.status, 404, "replayed");
    assert_eq!(browser.open(&link).await.status, 404, "the link, too");
    assert_eq!(scene.server.told("/token").len(), 1);
}

/// SECURITY EGR-5
#[tokio::test]
async fn an_answer_of_another_server_or_of_nobody_is_not_taken() {
    for iss in [Iss::Wrong, Iss::Missing] {
        for error in [None, Some("access_denied")] {
            let scene = Scene::begin().await;
            scene.server.manners(|manners| {
                manners.iss = iss;
                manners.error = error;
            });
            let done = Browser::default().log_in(&scene.link().await).await;
            assert_eq!(done.status, 502, "{iss:?} {error:?}: {}", done.body);
            scene.nothing_came_of_it().await;
        }
    }
}

#[tokio::test]
async fn a_server_that_names_itself_though_it_need_not_must_name_itself_rightly() {
    let scene = Scene::begin().await;
    scene.server.manners(|manners| {
        manners.iss = Iss::Wrong;
        manners.metadata = |text| text.replace("_iss_parameter_supported\":true", "x\":1");
    });
    let done = Browser::default().log_in(&scene.link().await).await;
    assert_eq!(done.status, 502);
    scene.nothing_came_of_it().await;
}

#[tokio::test]
async fn what_a_server_says_of_its_errors_is_repeated_nowhere() {
    let scene = Scene::begin().await;
    scene
        .server
        .manners(|manners| manners.error = Some("access_denied"));
    let (link, state) = asked(&scene.client.call("github_t", "{}").await);
    let mut browser = Browser::default();
    let (went_on, denied) = tokio::join!(
        go_on(&scene.client, &state, Some("accept")),
        browser.log_in(&link)
    );
    assert_eq!(denied.status, 200);
    assert!(denied.body.contains("did not agree"), "{}", denied.body);
    assert_eq!(went_on.tool_error(), "input_refused", "told at once");
    scene
        .server
        .manners(|manners| manners.error = Some("server_error"));
    let refused = Browser::default().log_in(&scene.link().await).await;
    assert_eq!(refused.status, 502);
    scene.nothing_came_of_it().await;
    scene.server.manners(|manners| {
        manners.error = None;
        manners.token_error = Some((400, "invalid_grant"));
    });
    let late = Browser::default().log_in(&scene.link().await).await;
    assert_eq!(late.status, 502);
    for body in [denied.body, went_on.body, refused.body, late.body] {
        assert!(!body.contains("LEAK"), "{body}");
        assert!(!body.contains("CODE-"), "{body}");
    }
}

/// SECURITY EGR-4 and EGR-5
#[tokio::test]
async fn nobody_is_sent_to_a_server_whose_metadata_is_not_as_it_must_be() {
    let changes: [fn(String) -> String; 3] = [
        |text| {
            text.replace(
                "\"issuer\":\"http://127.0.0.1",
                "\"issuer\":\"http://localhost",
            )
        },
        |text| text.replace("S256", "plain"),
        // A place that only its document names, in our own network.
        |text| {
            let (before, after) = text.split_once("\"token_endpoint\":\"").unwrap();
            let (_, after) = after.split_once('"').unwrap();
            format!("{before}\"token_endpoint\":\"https://169.254.169.254/token\"{after}")
        },
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let scene = Scene::begin().await;
        scene.server.manners(|manners| manners.metadata = change);
        let link = scene.link().await;
        let mut browser = Browser::default();
        let page = browser.open(&link).await;
        if at < 2 {
            assert_eq!(page.status, 502, "{}", page.body);
        } else {
            // It looks like any other; the fetcher refuses to go there.
            assert_eq!(browser.log_in(&link).await.status, 502);
        }
        assert!(!page.body.contains("169.254"), "{}", page.body);
        scene.nothing_came_of_it().await;
    }
}

#[tokio::test]
async fn pages_cannot_be_framed_kept_or_made_to_run_anything() {
    let scene = Scene::begin().await;
    let link = scene.link().await;
    let page = Browser::default().open(&link).await;
    let header = |name: &str| page.headers[name].to_str().unwrap();
    let policy = header("content-security-policy");
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(header("x-frame-options"), "DENY");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(!page.body.contains("<script") && !page.body.contains("src="));
    // Whose it is, what for, and where it leads is there to be read.
    let server = scene.server.issuer();
    for told in ["github", "read write", server.as_str(), "without a login"] {
        assert!(page.body.contains(told), "{told} in {}", page.body);
    }
    for (method, path, status) in [
        (Method::DELETE, "/connect", 405),
        (Method::POST, "/connect/callback", 405),
        (Method::GET, "/connect/client.json", 404),
        (Method::GET, "/connect", 404),
        (Method::GET, "/connect?login=x&login=y", 404),
        (Method::GET, "/connect/", 404),
    ] {
        let url = format!("http://{}{path}", scene.gateway.address);
        let answer = Browser::default().send(method.clone(), &url, &[], "").await;
        assert_eq!(answer.status, status, "{method} {path}");
    }
}

#[tokio::test]
async fn an_answer_to_another_call_or_from_nobody_logs_nobody_in() {
    let scene = Scene::begin().await;
    let (_, state) = asked(&scene.client.call("github_t", "{}").await);
    // The state of one call does not open another, nor is an answer that nobody asked for of any use.
    for params in [
        json!({"name": "github_u", "arguments": {}, "requestState": state}),
        json!({"name": "github_t", "arguments": {"a": 1}, "requestState": state}),
    ] {
        let refused = scene.client.ask("tools/call", &params.to_string()).await;
        assert_eq!(refused.refusal(), (-32602, "state_invalid".to_owned()));
    }
    let params = json!({"name": "github_t", "arguments": {}, "inputResponses": {"dev.usher/login": {"action": "accept"}}});
    let told = scene.client.ask("tools/call", &params.to_string()).await;
    assert_eq!(told.value()["resultType"], "input_required");
    scene.nothing_came_of_it().await;
}
