//! Credentials to an upstream from real authorization servers.
//! They are judged by an upstream that checks whose they are and whom they are for.

use std::{process::Stdio, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::{Instant, timeout},
};
use usher::{
    call::{
        Affinity, Assertion, Call, CallId, Caller, Grantee, Identity, IdentityKind, Op, Outcome,
        Principal, Reply, Step, Trail,
    },
    catalog::{Contribution, Route, rules::CatalogBounds},
    config,
    json::{Json, Limits},
    protocol::{ClientCapabilities, Revision, UpstreamId, names::Scope},
    tasks::Tasks,
    upstream::{Sink, Upstream, UpstreamError},
};

use crate::client::{node, peers};

const SECRET: &str = "a secret & of usher's";

/// The servers of `issuers/exchange.mjs`.
struct Issuers {
    told: Value,
    _process: Child,
}

impl Issuers {
    async fn start() -> Self {
        let mut command = Command::new(node());
        command
            .arg(peers().join("issuers/exchange.mjs"))
            .env("CLIENT_SECRET", SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().expect("it starts");
        let output = process.stdout.as_mut().expect("its output is a pipe");
        let mut line = String::new();
        let mut output = BufReader::new(output);
        let read = timeout(Duration::from_secs(60), output.read_line(&mut line)).await;
        read.expect("it is ready in time").expect("it is text");
        let told = serde_json::from_str(&line).expect("it says its addresses in JSON");
        Self {
            told,
            _process: process,
        }
    }

    fn text(&self, key: &str) -> &str {
        self.told[key].as_str().expect("it is text")
    }

    /// Somebody who logged in and came with this token.
    fn person(&self, name: &str, token: &str) -> Arc<Identity> {
        let token = self.told["people"][token].as_str().expect("it is text");
        Arc::new(Identity {
            principal: Principal::new(name),
            kind: IdentityKind::User,
            name: name.into(),
            issuer: None,
            groups: Default::default(),
            tenant: None,
            scopes: Default::default(),
            client: None,
            owner: None,
            until: None,
            revoked: Default::default(),
            key: None,
            assertion: Some(Assertion(token.to_owned().into())),
        })
    }

    /// The MCP server as an upstream with this credential.
    fn upstream(&self, auth: &str) -> Files {
        let us = "client_id: usher, client_secret: \"${env:SECRET}\"";
        let auth = auth
            .replace("US", us)
            .replace("LOGIN", self.text("login"))
            .replace("FILES", self.text("files"));
        let resource = self.text("resource");
        let text =
            format!("upstreams: {{ files: {{ url: \"{resource}\", auth: {{ {auth} }} }} }}\n");
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("usher.yaml");
        std::fs::write(&path, text).expect("it can be written to");
        let vars = |name: &str| (name == "SECRET").then(|| SECRET.to_owned());
        let plan = config::load(&path, &vars).unwrap_or_else(|rejected| panic!("{rejected:?}"));
        let tasks = Tasks::new();
        let spec = plan.upstreams[0].clone();
        let bounds = CatalogBounds::default();
        let upstream = Upstream::start(spec, bounds, Arc::new(Nowhere), Arc::default(), &tasks);
        Files { upstream, tasks }
    }
}

/// What is listed is not looked at.
struct Nowhere;

impl Sink for Nowhere {
    fn publish(&self, _id: &UpstreamId, _contribution: Contribution) {}

    fn confirm(&self, _id: &UpstreamId, _read_at: Instant) {}

    fn publish_to(&self, _who: &Grantee, _id: &UpstreamId, _own: Option<Contribution>) {}
}

/// The upstream behind a gateway.
struct Files {
    upstream: Arc<Upstream>,
    tasks: Tasks,
}

impl Drop for Files {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

impl Files {
    /// Who the upstream takes this caller for.
    async fn whoami(&self, identity: &Arc<Identity>) -> Result<Value, UpstreamError> {
        self.upstream.settled().await;
        let caller = Caller {
            principal: identity.principal.clone(),
            revision: Revision::LATEST_MODERN,
            capabilities: ClientCapabilities::NONE,
            log_level: None,
            visits: false,
            affinity: Affinity {
                key: identity.principal.shared(),
                ended: None,
            },
        };
        let params = br#"{"name":"whoami","arguments":{}}"#;
        let call = Call {
            unasked: false,
            stake: None,
            id: CallId::new(),
            op: Op::CallTool("whoami".into()),
            params: Json::parse(params.as_slice().into(), &Limits::CLIENT).expect("it is JSON"),
            caller: Arc::new(caller),
            identity: Arc::clone(identity),
            address: None,
            scope: Scope::All,
            resume: None,
            wants_progress: false,
            mirrored: None,
            deadline: Instant::now() + Duration::from_secs(30),
            trail: Trail::NONE,
        };
        let route = Route {
            upstream: self.upstream.id().clone(),
            local: "whoami".into(),
            headers: Arc::new([]),
            task_only: false,
            terms: None,
        };
        let outcome = match self.upstream.call(call, route).await? {
            Reply::Done(outcome) => outcome,
            Reply::Stream(mut steps) => loop {
                match steps.next().await {
                    Some(Step::Outcome(outcome)) => break outcome,
                    Some(Step::Event(_)) => {}
                    None => panic!("a stream without an outcome"),
                }
            },
        };
        let Outcome::Complete(result) = outcome else {
            panic!("not a result: {outcome:?}")
        };
        let result: Value = serde_json::from_str(result.as_str()).expect("it is JSON");
        let text = result["content"][0]["text"].as_str().expect("it is text");
        Ok(serde_json::from_str(text).expect("it is JSON"))
    }
}

#[tokio::test]
async fn client_credentials_make_the_gateway_one_user_of_the_upstream() {
    let issuers = Issuers::start().await;
    let files = issuers.upstream("client_credentials: { issuer: FILES, US, scopes: [files.read] }");
    for name in ["ana", "ben"] {
        let who = files.whoami(&issuers.person(name, name)).await;
        let who = who.expect("the upstream takes the token");
        assert_eq!(who["sub"], "usher");
        assert_eq!(who["aud"], issuers.text("resource"));
        assert_eq!(who["scope"], "files.read");
    }
}

#[tokio::test]
async fn token_exchange_makes_each_user_themselves_at_the_upstream() {
    let issuers = Issuers::start().await;
    let files = issuers.upstream("token_exchange: { issuer: FILES, US, scopes: [files.read] }");
    each_user_is_themselves(&issuers, &files).await;
}

#[tokio::test]
async fn an_identity_assertion_makes_each_user_themselves_at_the_upstream() {
    let issuers = Issuers::start().await;
    let files = issuers.upstream(
        "id_jag: { issuer: FILES, US, scopes: [files.read], idp: { issuer: LOGIN, US } }",
    );
    each_user_is_themselves(&issuers, &files).await;
}

async fn each_user_is_themselves(issuers: &Issuers, files: &Files) {
    let mut sessions = Vec::new();
    for name in ["ana", "ben", "ana"] {
        let who = files.whoami(&issuers.person(name, name)).await;
        let who = who.expect("the upstream takes the token");
        assert_eq!(who["sub"], name);
        assert_eq!(who["aud"], issuers.text("resource"));
        assert_eq!(who["iss"], issuers.text("files"));
        sessions.push(who["session"].clone());
    }
    assert_ne!(sessions[0], sessions[1], "two principals share a session");
    assert_eq!(sessions[0], sessions[2]);
    for token in ["forged", "elsewhere"] {
        let refused = files.whoami(&issuers.person(token, token)).await;
        let error = refused.expect_err("a token that the issuer does not take");
        assert_eq!(error.reason(), "upstream_auth_failed");
        assert!(matches!(error, UpstreamError::Credential(_)), "{error:?}");
    }
}
