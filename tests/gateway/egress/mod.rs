//! What leaves toward upstreams, and what of their answers comes back: credentials, headers, challenges (SECURITY 5.7).

mod issuer;
pub(crate) mod markers;
mod own;
mod principals;
mod tls;

use std::{net::SocketAddr, path::PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use usher::{app::App, config, tasks::Tasks};

use self::issuer::Issuer;
use super::harness::{
    Client, EVERYTHING, Heard, MEDDLING, PATIENCE, Pairing, Play, Revision, Upstream, resource,
    text_result, tool,
};

/// A gateway whose configuration refers to secrets.
struct Secretive {
    app: App,
    address: SocketAddr,
    tasks: Tasks,
    _directory: tempfile::TempDir,
}

/// The secret of the gateway at every issuer, if a test does not care.
const SECRET: &str = "s3cret";

impl Secretive {
    /// One upstream called `notes` with this `auth`; `${env:NAME}` is what `vars` says.
    async fn start(notes: &Upstream, auth: &str, vars: &[(&str, &str)]) -> Self {
        let (plan, directory) = plan(notes, auth, vars);
        Self::of(plan, directory).await
    }

    async fn of(mut plan: config::Plan, directory: tempfile::TempDir) -> Self {
        plan.audit = None;
        let tasks = Tasks::new();
        let app = App::build(plan, tasks.clone()).await.unwrap();
        let address = app.bind().await.unwrap();
        app.settled(PATIENCE).await;
        Self {
            app,
            address,
            tasks,
            _directory: directory,
        }
    }

    async fn client(&self, revision: Revision) -> Client {
        Client::connect(self.address, "/mcp", revision)
            .await
            .unwrap()
    }
}

impl Drop for Secretive {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

fn plan(notes: &Upstream, auth: &str, vars: &[(&str, &str)]) -> (config::Plan, tempfile::TempDir) {
    plan_with(notes, auth, vars, "")
}

/// The same with lines at the top.
fn plan_with(
    notes: &Upstream,
    auth: &str,
    vars: &[(&str, &str)],
    settings: &str,
) -> (config::Plan, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("usher.yaml");
    let place = notes.place();
    // What is tested here is not who may do what.
    let policies = directory.path().join("policies");
    std::fs::create_dir(&policies).unwrap();
    std::fs::write(policies.join("main.cedar"), EVERYTHING).unwrap();
    let settings = format!("{settings}policy: {{ dir: {} }}\n", policies.display());
    let text = format!("{settings}upstreams: {{ notes: {{ {place}, auth: {{ {auth} }} }} }}\n");
    std::fs::write(&path, text).unwrap();
    let vars = |name: &str| {
        let found = vars.iter().find(|(key, _)| *key == name);
        let found = found.map(|(_, value)| (*value).to_owned());
        found.or_else(|| (name == "SECRET").then(|| SECRET.to_owned()))
    };
    let mut plan = config::load(&path, &vars).unwrap_or_else(|rejected| panic!("{rejected:?}"));
    plan.listen.address = SocketAddr::from(([127, 0, 0, 1], 0));
    (plan, directory)
}

/// `kind: { … }` at an issuer.
fn grant(kind: &str, issuer: &Issuer) -> String {
    let url = issuer.token_url();
    format!(
        "{kind}: {{ token_url: \"{url}\", client_id: usher, client_secret: \"${{env:SECRET}}\", scopes: [notes] }}"
    )
}

/// The same where lists are read once, for everybody.
fn for_all(kind: &str, issuer: &Issuer) -> String {
    grant(kind, issuer).replace("scopes:", "lists: service, scopes:")
}

/// Everything an upstream was sent over HTTP, by method.
const SAID: [&str; 7] = [
    "server/discover",
    "initialize",
    "notifications/initialized",
    "tools/list",
    "tools/call",
    "subscriptions/listen",
    "resources/list",
];

/// What may be in a request to an upstream, beside `mcp-*`.
const OURS: [&str; 7] = [
    "accept",
    "accept-encoding",
    "content-length",
    "content-type",
    "host",
    "authorization",
    "user-agent",
];

pairings! {
    async fn egr_1_and_2_nothing_that_a_client_presents_goes_upstream(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let (_gateway, client) = pair.alone(&notes).await;
        let ask = client.call("notes_t", "{}");
        let ask = [
            ("authorization", "Bearer pr3sented"),
            ("proxy-authorization", "Basic pr3sented"),
            ("cookie", "session=pr3sented"),
            ("x-api-key", "pr3sented"),
            ("x-forwarded-for", "10.0.0.1"),
            ("user-agent", "pr3sented"),
            ("referer", "https://pr3sented.example"),
            ("te", "trailers"),
        ]
        .into_iter()
        .fold(ask, |ask, (name, value)| ask.header(name, value));
        assert_eq!(ask.await.status, 200);
        for method in SAID {
            for heard in notes.heard(method) {
                for (name, value) in &heard.headers {
                    let name = name.as_str();
                    assert!(OURS.contains(&name) || name.starts_with("mcp-"), "{name}");
                    assert!(!value.to_str().unwrap().contains("pr3sented"), "{heard:?}");
                }
                assert_eq!(heard.header("authorization"), None);
            }
        }
    }
}

pairings! {
    async fn egr_3_a_redirect_is_not_followed(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let (_gateway, client) = pair.alone(&notes).await;
        for status in [301, 302, 303, 307, 308] {
            notes.now_on("tools/call", move |_| Play::Status(status));
            let before = notes.heard("tools/call").len();
            assert_eq!(client.call("notes_t", "{}").await.tool_error(), "upstream_redirect");
            assert_eq!(notes.heard("tools/call").len(), before + 1);
        }
    }
}

pairings! {
    async fn egr_6_a_challenge_of_an_upstream_is_never_relayed(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let (_gateway, client) = pair.alone(&notes).await;
        for status in [401, 403] {
            notes.now_on("tools/call", move |_| Play::Status(status));
            let answer = client.call("notes_t", "{}").await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.tool_error(), "upstream_auth_failed");
            assert!(answer.headers.get("www-authenticate").is_none());
            assert!(!answer.body.contains(MEDDLING), "{}", answer.body);
        }
    }
}

pairings! {
    async fn egr_7_no_header_of_an_upstream_reaches_a_client(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let (_gateway, client) = pair.alone(&notes).await;
        let mut answers = vec![client.call("notes_t", "{}").await];
        answers.push(client.ask("tools/list", "{}").await);
        notes.now_on("tools/call", |_| Play::Status(503));
        answers.push(client.call("notes_t", "{}").await);
        for answer in answers {
            for (name, value) in &answer.headers {
                let value = String::from_utf8_lossy(value.as_bytes());
                assert!(!value.contains(MEDDLING), "{name}: {value}");
            }
        }
    }
}

pairings! {
    async fn client_credentials_go_with_everything_that_is_said_to_an_upstream(pair: Pairing) {
        let issuer = Issuer::start();
        let notes = pair.upstream().tools([tool("t")]).telling();
        let gateway = Secretive::start(&notes, &grant("client_credentials", &issuer), &[]).await;
        let client = gateway.client(pair.client).await;
        for _ in 0..3 {
            assert_eq!(client.call("notes_t", "{}").await.status, 200);
        }
        let mut count = 0;
        for method in SAID {
            for heard in notes.heard(method) {
                assert_eq!(heard.header("authorization"), Some("Bearer t0k-service-0"), "{heard:?}");
                count += 1;
            }
        }
        assert!(count >= 5, "{count}");
        let asked = issuer.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].contains("grant_type=client_credentials"), "{asked:?}");
        assert!(asked[0].contains("scope=notes"), "{asked:?}");
        assert!(asked[0].contains("resource=http%3A%2F%2F127.0.0.1%3A"), "{asked:?}");
    }
}

pairings! {
    /// SECURITY 7, C3: what was got for calls to a server is for that server alone.
    async fn a_token_that_goes_with_a_call_comes_back_to_nobody(pair: Pairing) {
        const TOKEN: &str = "t0k-service-0";
        let issuer = Issuer::start();
        let shown = |heard: &Heard| {
            let token = heard.header("authorization").unwrap_or_default().to_owned();
            let encoded = STANDARD.encode(format!("what was sent to here is {token} and nothing else"));
            format!("{token} {encoded}")
        };
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", move |heard| {
            let said = shown(heard);
            let event = format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$token,"progress":1,"message":"{said}"}}}}"#);
            Play::Events(vec![event], Box::new(Play::Result(text_result(&said))))
        });
        let gateway = Secretive::start(&notes, &grant("client_credentials", &issuer), &[]).await;
        let client = gateway.client(pair.client).await;
        let encoded = STANDARD.encode(format!("what was sent to here is Bearer {TOKEN} and nothing else"));
        for _ in 0..2 {
            let answer = client.call("notes_t", "{}").meta(r#""progressToken":"p""#).await;
            assert_eq!(answer.events().len(), 1, "{answer:?}");
            assert!(!answer.body.contains(TOKEN) && !answer.body.contains(&encoded), "{answer:?}");
            let marks = answer.value()["_meta"]["dev.usher/content"].to_string();
            assert!(marks.contains(r#""rule":"own_credential""#), "{marks}");
        }
        // Nor does anybody send it back.
        let sent = notes.heard("tools/call").len();
        let refused = client.call("notes_t", &format!(r#"{{"q":"{TOKEN}"}}"#)).await;
        assert_eq!(refused.tool_error(), "content_blocked");
        assert_eq!(notes.heard("tools/call").len(), sent);
        notes.now_on("tools/call", move |heard| {
            Play::Error(format!(r#"{{"code":-32000,"message":"{}"}}"#, shown(heard)))
        });
        let failed = client.call("notes_t", "{}").await;
        assert!(failed.body.contains("[redacted:"), "{failed:?}");
        assert!(!failed.body.contains(TOKEN) && !failed.body.contains(&encoded), "{failed:?}");
    }
}

pairings! {
    /// SECURITY 7, C3: what is watched is said to a server, and what changed is said by it.
    async fn a_token_that_goes_with_a_listen_is_told_in_no_address(pair: Pairing) {
        const WATCHED: &str = "note://d";
        const TOKEN: &str = "t0k-service-0";
        let issuer = Issuer::start();
        let notes = pair.upstream().resources([resource(WATCHED)]).telling();
        let gateway = Secretive::start(&notes, &grant("client_credentials", &issuer), &[]).await;
        let client = gateway.client(pair.client).await;
        let uri = format!("notes+note://x/{TOKEN}");
        let refused = if pair.client_is_modern() {
            let listen = format!(r#"{{"notifications":{{"resourceSubscriptions":["{uri}"]}}}}"#);
            client.ask("subscriptions/listen", &listen).await
        } else {
            client.ask("resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#)).await
        };
        assert_eq!(refused.refusal(), (-31015, "content_blocked".to_owned()));
        assert!(!refused.message().contains(TOKEN), "{refused:?}");
        let mut watch = client.watch(&[], &["notes+note://d"]).await;
        notes.updated(WATCHED, &format!("{WATCHED}/{TOKEN}")).await;
        assert_eq!(watch.resource().await, "notes+note://d");
        notes.updated(WATCHED, "note://d/part").await;
        assert_eq!(watch.resource().await, "notes+note://d/part");
    }
}

pairings! {
    async fn a_token_that_an_upstream_no_longer_takes_is_replaced_and_the_call_goes_on(pair: Pairing) {
        let issuer = Issuer::start();
        let notes = pair.upstream().tools([tool("t")]);
        let gateway = Secretive::start(&notes, &grant("client_credentials", &issuer), &[]).await;
        let client = gateway.client(pair.client).await;
        notes.now_on("tools/call", |heard| {
            if heard.header("authorization") == Some("Bearer t0k-service-0") {
                Play::Status(401)
            } else {
                Play::Result(r#"{"content":[]}"#.into())
            }
        });
        let answer = client.call("notes_t", "{}").await;
        assert!(!answer.body.contains("upstream_auth_failed"), "{}", answer.body);
        assert_eq!(notes.heard("tools/call").len(), 2);
        assert_eq!(issuer.asked().len(), 2);
    }
}

#[tokio::test]
async fn an_authorization_server_that_is_away_or_redirects_keeps_one_upstream_away_and_says_why() {
    for (status, word) in [(500, "HTTP 500"), (307, "redirect")] {
        let issuer = Issuer::start();
        issuer.answer(status, "{}");
        let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
        let gateway = Secretive::start(&notes, &grant("client_credentials", &issuer), &[]).await;
        let statuses = gateway.app.statuses();
        assert_eq!(statuses[0].state, "away");
        let error = statuses[0].error.clone().unwrap();
        assert!(error.contains(word), "{error}");
        assert!(
            notes.heard("server/discover").is_empty(),
            "nothing is asked without a token"
        );
    }
}
