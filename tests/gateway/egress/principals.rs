//! Tokens of each principal's own: whose token goes with which call, and what shares what (SECURITY EGR-10, STATE-8).
//!
//! Calls are made on the upstream itself, by callers who came with a token: how they came to be known is not looked at here.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, future::join_all};
use tokio::time::Instant;
use usher::{
    call::{
        Affinity, Assertion, Call, CallId, Caller, Grantee, Hold, Identity, IdentityKind, Op,
        Outcome, Principal, Reply, Resume, Step, Trail,
    },
    catalog::{Contribution, Route, rules::CatalogBounds},
    json::{Json, Limits},
    protocol::{ClientCapabilities, UpstreamId, names::Scope},
    tasks::Tasks,
    upstream::{Sink, Upstream as Behind, UpstreamError},
};

use super::*;
use crate::harness::{Gate, text_result};

/// What is listed is not looked at.
struct Nowhere;

impl Sink for Nowhere {
    fn publish(&self, _id: &UpstreamId, _contribution: Contribution) {}

    fn confirm(&self, _id: &UpstreamId, _read_at: Instant) {}

    fn publish_to(&self, _who: &Grantee, _id: &UpstreamId, _own: Option<Contribution>) {}
}

/// The gateway's side of one upstream. It ends with the test.
pub(super) struct Side {
    upstream: Arc<Behind>,
    tasks: Tasks,
}

impl Drop for Side {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

pub(super) async fn side(notes: &Upstream, auth: &str, vars: &[(&str, &str)]) -> Side {
    let (plan, _directory) = plan(notes, auth, vars);
    let tasks = Tasks::new();
    let spec = plan.upstreams[0].clone();
    let bounds = CatalogBounds::default();
    let upstream = Behind::start(spec, bounds, Arc::new(Nowhere), Arc::default(), &tasks);
    upstream.settled().await;
    Side { upstream, tasks }
}

/// Somebody who came with this token, if with any.
pub(super) fn somebody(name: &str, assertion: Option<&str>) -> Arc<Identity> {
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
        assertion: assertion.map(|text| Assertion(text.to_owned().into())),
    })
}

fn json(text: &'static str) -> Json {
    Json::parse(text.into(), &Limits::CLIENT).unwrap()
}

/// A call of the tool.
fn a_call(identity: &Arc<Identity>, revision: Revision) -> Call {
    let caller = Caller {
        principal: identity.principal.clone(),
        revision,
        capabilities: ClientCapabilities::NONE,
        log_level: None,
        visits: false,
        affinity: Affinity {
            key: identity.principal.shared(),
            ended: None,
        },
    };
    Call {
        unasked: false,
        stake: None,
        id: CallId::new(),
        op: Op::CallTool("notes_t".into()),
        params: json(r#"{"name":"t","arguments":{}}"#),
        caller: Arc::new(caller),
        identity: Arc::clone(identity),
        address: None,
        scope: Scope::All,
        resume: None,
        wants_progress: false,
        mirrored: None,
        deadline: Instant::now() + Duration::from_secs(20),
        trail: Trail::NONE,
    }
}

impl Side {
    pub(super) async fn call(
        &self,
        identity: &Arc<Identity>,
        revision: Revision,
    ) -> Result<Outcome, UpstreamError> {
        self.make(a_call(identity, revision)).await
    }

    async fn make(&self, call: Call) -> Result<Outcome, UpstreamError> {
        let route = Route {
            upstream: self.upstream.id().clone(),
            local: "t".into(),
            headers: Arc::new([]),
            task_only: false,
            terms: None,
        };
        match self.upstream.call(call, route).await? {
            Reply::Done(outcome) => Ok(outcome),
            Reply::Stream(steps) => {
                let last = steps.collect::<Vec<_>>().await.pop();
                match last {
                    Some(Step::Outcome(outcome)) => Ok(outcome),
                    Some(Step::Event(_)) | None => panic!("a stream without an outcome"),
                }
            }
        }
    }
}

pairings! {
    async fn egr_10_each_call_goes_with_its_own_principals_token_and_sessions_are_not_shared(pair: Pairing) {
        let issuer = Issuer::start();
        let notes = pair.upstream().tools([tool("t")]);
        let side = side(&notes, &for_all("token_exchange", &issuer), &[]).await;
        let people = ["ana", "ben", "eve"].map(|name| somebody(name, Some(&format!("of-{name}"))));
        let calls = (0..60).map(|at| side.call(&people[at % 3], pair.client));
        for outcome in join_all(calls).await {
            assert!(matches!(outcome, Ok(Outcome::Complete(_))), "{outcome:?}");
        }
        // One exchange for each, and one token for the gateway's own questions.
        let asked = issuer.asked();
        assert_eq!(asked.len(), 4, "{asked:?}");
        let called = notes.heard("tools/call");
        assert_eq!(called.len(), 60);
        let mut tokens = HashMap::<String, usize>::new();
        for heard in &called {
            *tokens.entry(heard.header("authorization").unwrap().to_owned()).or_default() += 1;
        }
        assert_eq!(tokens.len(), 3, "{tokens:?}");
        assert!(tokens.values().all(|count| *count == 20), "{tokens:?}");
        assert!(tokens.keys().all(|token| token.starts_with("Bearer t0k-of-")), "{tokens:?}");
        if !pair.upstream_is_modern() {
            let mut holders = HashMap::<String, HashSet<String>>::new();
            for method in ["notifications/initialized", "tools/list", "tools/call"] {
                for heard in notes.heard(method) {
                    let token = heard.header("authorization").unwrap().to_owned();
                    holders.entry(heard.session.unwrap()).or_default().insert(token);
                }
            }
            assert_eq!(holders.len(), 4, "three people and the gateway: {holders:?}");
            assert!(holders.values().all(|tokens| tokens.len() == 1), "{holders:?}");
        }
    }
}

pairings! {
    async fn who_came_without_a_token_is_told_and_nothing_is_sent_for_them(pair: Pairing) {
        let issuer = Issuer::start();
        let notes = pair.upstream().tools([tool("t")]);
        let side = side(&notes, &for_all("token_exchange", &issuer), &[]).await;
        let outcome = side.call(&somebody("key", None), pair.client).await;
        let Err(error @ UpstreamError::Credential(_)) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(error.reason(), "upstream_auth_failed");
        assert!(notes.heard("tools/call").is_empty());
        // Neither of a session in their name.
        assert_eq!(issuer.asked().len(), 1);
    }
}

pairings! {
    async fn a_subject_token_that_the_issuer_refuses_is_not_taken_for_a_fault_of_the_upstream(pair: Pairing) {
        let issuer = Issuer::start();
        let notes = pair.upstream().tools([tool("t")]);
        let side = side(&notes, &for_all("token_exchange", &issuer), &[]).await;
        issuer.answer(400, r#"{"error":"invalid_grant","error_description":"$asked"}"#);
        for _ in 0..8 {
            let outcome = side.call(&somebody("ana", Some("old")), pair.client).await;
            assert!(matches!(outcome, Err(UpstreamError::Credential(_))), "{outcome:?}");
        }
        assert!(issuer.asked().len() <= 3, "a failure is remembered for a moment");
        let state = side.upstream.status().state;
        assert_eq!(state, usher::upstream::State::Ready);
    }
}

/// A person may think for longer than a token lives: who answers comes with another one.
#[tokio::test]
async fn an_answer_goes_to_the_server_with_the_token_of_whoever_brings_it() {
    let (issuer, gate) = (Issuer::start(), Gate::new());
    let opened = gate.clone();
    let notes =
        Upstream::http(Revision::V2025_11_25)
            .tools([tool("t")])
            .on("tools/call", move |_| {
                let asks = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#.to_owned();
                let done = Play::Result(text_result("done"));
                Play::Gated(vec![asks], opened.clone(), Box::new(done))
            });
    let side = side(&notes, &for_all("token_exchange", &issuer), &[]).await;
    // None of them is kept, so each message goes with one that was got for it.
    issuer.gives_for(30);
    let can = |mut call: Call| {
        let capabilities = ClientCapabilities::read(json(r#"{"roots":{}}"#)).unwrap();
        Arc::make_mut(&mut call.caller).capabilities = capabilities;
        call
    };
    let first = can(a_call(&somebody("ana", Some("old")), Revision::V2026_07_28));
    let Ok(Outcome::InputRequired(asked)) = side.make(first).await else {
        panic!("nothing was asked")
    };
    asked.hold.iter().for_each(Hold::told);
    issuer.ends("old");
    let again = Call {
        resume: Some(Resume {
            responses: Some(json(r#"{"ask-1":{"roots":[]}}"#)),
            state: Some(asked.state),
            ..Resume::default()
        }),
        ..can(a_call(&somebody("ana", Some("new")), Revision::V2026_07_28))
    };
    let answered = async {
        notes.until_heard("", 1).await;
        gate.open();
    };
    let (outcome, ()) = tokio::join!(side.make(again), answered);
    assert!(matches!(outcome, Ok(Outcome::Complete(_))), "{outcome:?}");
    let answer = notes.last("");
    assert_eq!(answer.params, r#"{"roots":[]}"#);
    let token = answer.header("authorization").unwrap();
    assert!(token.starts_with("Bearer t0k-new-"), "{token}");
}
