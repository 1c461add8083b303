//! Values planted in every secret slot of a login, and a search for them in all that comes out (SECURITY 10).
//! That is answers to clients, logs, what operators see, files. Pages are the browser's own, and hold what the browser has to
//! bring back.

use super::*;
use crate::{
    egress::markers::{Written, finds},
    harness::{Authority, EVERYTHING},
};

const CLIENT_SECRET: &str = "mk6-client-s&cret-7f3a9";
const STORE_KEY: &str = "mk7-store-key-0123456789-0123456789-7f3a9";

/// A gateway with a store, whose configuration refers to its secrets.
fn plan(github: &Upstream, server: &LoginServer, at: &std::path::Path) -> usher::config::Plan {
    let path = at.join("usher.yaml");
    let place = github.place();
    let auth = format!(
        "auth: {{ authorization_code: {{ issuer: \"{}\", client_id: usher, client_secret: \"${{env:SECRET}}\" }} }}",
        server.issuer()
    );
    let store = at.join("store");
    let policies = at.join("policies");
    std::fs::create_dir(&policies).unwrap();
    std::fs::write(policies.join("main.cedar"), EVERYTHING).unwrap();
    let text = format!(
        "upstreams: {{ github: {{ {place}, {auth} }} }}\nconnections: {{ store: {}, keys: [\"${{env:KEY}}\"] }}\npolicy: {{ dir: {} }}\n",
        store.display(),
        policies.display()
    );
    std::fs::write(&path, text).unwrap();
    let vars = |name: &str| match name {
        "SECRET" => Some(CLIENT_SECRET.to_owned()),
        "KEY" => Some(STORE_KEY.to_owned()),
        _ => None,
    };
    let mut plan = usher::config::load(&path, &vars).unwrap_or_else(|no| panic!("{no:?}"));
    plan.listen.address = ([127, 0, 0, 1], 0).into();
    plan
}

/// Every file below, names included.
fn files(at: &std::path::Path, into: &Written) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        into.note(&format!("{path:?}"));
        if path.is_dir() {
            count += files(&path, into);
        } else {
            into.note(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
            count += 1;
        }
    }
    count
}

#[tokio::test]
async fn no_grant_code_secret_or_cookie_of_a_login_is_in_any_answer_log_or_file() {
    let written = Written::default();
    let _logs = written.hears_everything();
    let (server, authority) = (LoginServer::start(), Authority::start().await);
    let upstream = Upstream::http(MODERN)
        .closed()
        .tools([tool("t")])
        .on("tools/call", |heard| match heard.header("authorization") {
            Some(token) => Play::Result(text_result(token)),
            None => Play::Status(401),
        });
    let directory = tempfile::tempdir().unwrap();
    let mut plan = plan(&upstream, &server, directory.path());
    plan.auth = Some(authority.spec());
    plan.audit = None;
    written.note(&format!("{plan:?}"));
    let tasks = usher::tasks::Tasks::new();
    let app = usher::app::App::build(plan, tasks.clone()).await.unwrap();
    let address = app.bind().await.unwrap();
    app.settled(crate::harness::PATIENCE).await;
    let token = authority.token("ana", "");
    let headers = [("authorization", format!("Bearer {token}"))];
    let client = Client::connect_with(address, "/mcp", MODERN, "{}", &headers)
        .await
        .unwrap();
    let mut browser = Browser::default();
    // A login that comes to nothing, one that does, and calls that go well and wrong.
    server.manners(|manners| manners.token_error = Some((400, "invalid_grant")));
    let told = client.call("github_login", "{}").await;
    let first = link_in(words(&told.value()));
    assert_ne!(browser.log_in(&first).await.status, 200);
    server.manners(|manners| manners.token_error = None);
    let told = client.call("github_login", "{}").await;
    let link = link_in(words(&told.value()));
    assert_eq!(browser.log_in(&link).await.status, 200);
    let mut answers = vec![client.call("github_login", "{}").await];
    assert_eq!(client.tools().await, ["github_t", "github_login"]);
    for status in [None, Some(500), Some(403), Some(302), Some(401)] {
        if let Some(status) = status {
            upstream.now_on("tools/call", move |_| Play::Status(status));
        }
        answers.push(client.call("github_t", "{}").await);
    }
    for answer in &answers {
        written.note(&format!("{:?} {}", answer.headers, answer.body));
    }
    written.note(&format!("{:?}", app.statuses()));
    assert!(
        files(directory.path(), &written) >= 2,
        "the store is written"
    );
    tasks.stop();
    let mut markers = vec![CLIENT_SECRET.to_owned(), STORE_KEY.to_owned(), token];
    markers.extend(server.tokens());
    for told in server.told("/token") {
        let secrets = ["code", "code_verifier", "refresh_token", "client_secret"];
        markers.extend(secrets.iter().filter_map(|it| told.form.get(*it).cloned()));
        markers.extend(told.authorization);
    }
    markers.extend(browser.cookies());
    assert!(markers.len() >= 8, "{markers:?}");
    let text = written.text();
    assert!(text.contains("the log is heard"));
    for marker in markers {
        if let Some(spelling) = finds(&text, &marker) {
            let at = text.find(&spelling).unwrap();
            let from = (0..=at.saturating_sub(300))
                .rev()
                .find(|at| text.is_char_boundary(*at));
            panic!(
                "`{marker}` is there as `{spelling}`: …{}",
                &text[from.unwrap()..at]
            );
        }
    }
}
