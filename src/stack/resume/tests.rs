//! State on its way out and back in, between a route and a caller that are made up.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;

use super::*;
use crate::{
    call::{
        Affinity, Call, CallId, CompletionRef, Event, Identity, LogLevel, Principal, Reference,
        Trail,
    },
    catalog::{Route, rules::CatalogRules},
    events::Hub,
    json::Limits,
    metrics::seen,
    protocol::{ClientCapabilities, Revision, names::Scope},
    resume::arguments_digest,
    snapshot::World,
    stage::{Consent, Way},
};

fn json(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap()
}

/// Others than the defaults, so that nothing can hold to those.
const BOUNDS: Bounds = Bounds {
    life: 700,
    rounds: 5,
    inputs: 3,
    state_bytes: 1_000,
};

struct Scene {
    open: OpenResume,
    seal: SealResume,
}

impl Scene {
    fn new() -> Self {
        let sealer = Arc::new(Sealer::new(b"a secret"));
        Self {
            open: OpenResume {
                sealer: sealer.clone(),
                spent: Arc::new(Spent::new(BOUNDS.life)),
                life: BOUNDS.life,
            },
            seal: SealResume {
                sealer,
                bounds: BOUNDS,
            },
        }
    }

    /// What leaves when `outcome` comes up for `routed`.
    fn leave(&self, mut routed: Box<Permitted>, outcome: Outcome) -> Result<Outcome, Error> {
        let mark = self.seal.enter(&mut routed);
        match self.seal.leave(mark, Ok(Reply::Done(outcome)))? {
            Reply::Done(outcome) => Ok(outcome),
            Reply::Stream(_) => panic!("a stream of one outcome"),
        }
    }

    /// The sealed state of a question that asks for roots.
    fn asked(&self, routed: Box<Permitted>, state: State) -> Arc<str> {
        match self.leave(routed, asks(ROOTS, state)) {
            Ok(Outcome::InputRequired(InputRequired {
                state: State::Sealed(text),
                ..
            })) => text,
            other => panic!("{other:?}"),
        }
    }
}

const ROOTS: &str = r#"{"r":{"method":"roots/list"}}"#;

fn asks(requests: &str, state: State) -> Outcome {
    Outcome::InputRequired(InputRequired {
        requests: json(requests),
        state,
        hold: None,
    })
}

fn routed(op: Op, upstream: &str, local: &str) -> Box<Permitted> {
    let caller = Caller {
        principal: Principal::anonymous(),
        revision: Revision::V2026_07_28,
        capabilities: ClientCapabilities::read(json(r#"{"roots":{}}"#)).unwrap(),
        log_level: None,
        visits: false,
        affinity: Affinity {
            key: "k".into(),
            ended: None,
        },
    };
    let nothing = CatalogRules {
        upstreams: Vec::new(),
        toolsets: Vec::new(),
        names: Default::default(),
        pages: Default::default(),
        bounds: Default::default(),
        screen: Default::default(),
    };
    let snapshot = World::new(nothing, Hub::new(Default::default())).load();
    Box::new(Permitted {
        call: Box::new(Call {
            unasked: false,
            stake: None,
            id: CallId::new(),
            op,
            params: json(r#"{"name":"t"}"#),
            caller: Arc::new(caller),
            identity: Identity::anonymous(),
            address: None,
            scope: Scope::All,
            resume: None,
            wants_progress: false,
            mirrored: None,
            deadline: clock::now() + Duration::from_secs(60),
            trail: Trail::NONE,
        }),
        snapshot: snapshot.clone().into(),
        way: Way::Upstream(Passage::new(
            Route {
                upstream: UpstreamId::parse(upstream).unwrap(),
                local: local.into(),
                headers: Arc::new([]),
                task_only: false,
                terms: None,
            },
            snapshot.policy().unasked().unwrap(),
        )),
        round: 0,
        brought: None,
        declared: None,
        consent: Consent::None,
    })
}

fn tool(upstream: &str, local: &str) -> Box<Permitted> {
    routed(Op::CallTool("t".into()), upstream, local)
}

/// The same call, going on.
fn again(mut routed: Box<Permitted>, text: &Arc<str>, responses: Option<&str>) -> Box<Permitted> {
    routed.call.resume = Some(Resume {
        responses: responses.map(json),
        state: Some(State::Sealed(text.clone())),
        ..Resume::default()
    });
    routed
}

#[test]
fn the_upstreams_state_comes_back_to_the_upstream_that_gave_it_and_to_no_other() {
    let scene = Scene::new();
    for state in [
        State::Upstream(None),
        State::Upstream(Some(json(r#""s""#))),
        State::Parked(u64::MAX),
    ] {
        let text = scene.asked(tool("a", "t"), state.clone());
        let back = scene
            .open
            .admit(again(
                tool("a", "t"),
                &text,
                Some(r#"{"r":{"roots":[]},"x":1}"#),
            ))
            .unwrap();
        assert_eq!(back.round, 1);
        let resume = back.call.resume.unwrap();
        assert_eq!(resume.state, Some(state));
        assert_eq!(resume.responses.unwrap().as_str(), r#"{"r":{"roots":[]}}"#);
        for other in [tool("b", "t"), tool("a", "u")] {
            let refused = scene.open.admit(again(other, &text, None));
            assert!(matches!(refused, Err(Error::StateInvalid)), "{refused:?}");
        }
    }
}

#[test]
fn state_that_was_never_sealed_opens_nothing() {
    let scene = Scene::new();
    for state in [
        State::Upstream(Some(json(r#""s""#))),
        State::Parked(7),
        State::Sealed("x".into()),
    ] {
        let mut call = tool("a", "t");
        call.call.resume = Some(Resume {
            responses: None,
            state: Some(state),
            ..Resume::default()
        });
        assert!(matches!(scene.open.admit(call), Err(Error::StateInvalid)));
    }
    // Answers alone are set aside; nothing at all goes to a method that cannot ask.
    let mut call = tool("a", "t");
    call.call.resume = Some(Resume {
        responses: Some(json(r#"{"r":{}}"#)),
        ..Resume::default()
    });
    let call = scene.open.admit(call).unwrap();
    assert!(call.call.resume.is_none());
    assert_eq!(call.brought.unwrap().as_str(), r#"{"r":{}}"#);
    let op = Op::Complete(CompletionRef::Prompt("p".into()));
    let call = again(routed(op, "a", "p"), &"x".into(), None);
    assert!(scene.open.admit(call).unwrap().call.resume.is_none());
}

#[test]
fn a_call_without_time_reaches_only_an_upstream_that_holds_it_open() {
    let scene = Scene::new();
    let late = |state| {
        let text = scene.asked(tool("a", "t"), state);
        let mut call = again(tool("a", "t"), &text, None);
        call.call.deadline = clock::now();
        scene.open.admit(call)
    };
    assert!(matches!(late(State::Upstream(None)), Err(Error::Deadline)));
    assert!(late(State::Parked(7)).is_ok());
}

#[test]
fn rounds_are_counted_across_calls() {
    let scene = Scene::new();
    let mut call = tool("a", "t");
    for _ in 0..BOUNDS.rounds {
        let text = scene.asked(call, State::Upstream(None));
        call = again(tool("a", "t"), &text, None);
        call = scene.open.admit(call).unwrap();
    }
    assert_eq!(call.round, BOUNDS.rounds);
    assert_eq!(seen::take(), []);
    broken(&scene.leave(call, asks(ROOTS, State::Upstream(None))));
    assert_eq!(seen::take(), [Bound::Rounds]);
}

fn broken(result: &Result<Outcome, Error>) {
    match result {
        Err(Error::Upstream(FromUpstream {
            error: UpstreamError::Protocol(_),
            ..
        })) => {}
        other => panic!("{other:?}"),
    }
}

const YES: &str = r#"{"dev.usher/approval":{"action":"accept","content":{"approve":true}}}"#;

impl Scene {
    /// The sealed state of a question of ours whether this call may leave; agreeing counts until then.
    fn may_it(&self, routed: &Permitted, until: u64) -> (Arc<str>, Reference) {
        let request = r#"{"dev.usher/approval":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"approve":{"type":"boolean"}}}}}}"#;
        let forms = ClientCapabilities::read(json(r#"{"elicitation":{}}"#)).unwrap();
        let number = number();
        let ticket = Ticket {
            upstream: UpstreamId::parse("a").unwrap(),
            local: "t".into(),
            state: State::Upstream(None),
            round: routed.round + 1,
            asked: Asked::of_own(&json(request), &forms, &BOUNDS).unwrap(),
            approval: Some(Approval {
                number,
                given: None,
                until,
            }),
        };
        let bound_to = CallBinding {
            owner: &routed.call.owner(),
            op: &routed.call.op,
            params: &routed.call.params,
        };
        let text = ticket.seal(&self.open.sealer, bound_to, unix_seconds());
        (text.into(), Reference(number))
    }
}

/// What a call with these params was approved as.
fn given(routed: &Permitted) -> Approved {
    match &routed.consent {
        Consent::Given(approved) => (**approved).clone(),
        other @ (Consent::None | Consent::Declined) => panic!("{other:?}"),
    }
}

/// The reference that a result names.
fn named(outcome: Result<Outcome, Error>) -> Option<String> {
    let Ok(Outcome::Complete(result)) = outcome else {
        panic!("{outcome:?}");
    };
    let own = result.root().member("_meta")?.member(meta::APPROVAL)?;
    Some(own.member("ref")?.as_str()?.into_owned())
}

#[test]
fn an_approval_says_who_agreed_when_and_to_what() {
    let scene = Scene::new();
    let call = |params: &str| {
        let mut call = tool("a", "t");
        call.call.params = json(params);
        let caller = Arc::get_mut(&mut call.call.caller).unwrap();
        caller.principal = Principal::new("id.example:ana");
        call
    };
    let first = r#"{"name":"t","arguments":{"n":1}}"#;
    let (text, reference) = scene.may_it(&call(first), unix_seconds() + 60);
    let before = unix_seconds();
    let done = scene
        .open
        .admit(again(call(first), &text, Some(YES)))
        .unwrap();
    let approved = given(&done);
    assert_eq!(approved.reference, reference);
    assert_eq!(approved.by, Principal::new("id.example:ana"));
    assert!((before..=unix_seconds()).contains(&approved.at));
    assert_eq!(approved.how.word(), "elicitation");
    // The digest is of name and arguments: another try of the same has the same one, and anything else another.
    assert_eq!(approved.digest, arguments_digest(&json(first)));
    let retried = r#"{"_meta":{"x":1},"arguments":{"n":1},"name":"t","requestState":"s"}"#;
    assert_eq!(approved.digest, arguments_digest(&json(retried)));
    for other in [
        r#"{"name":"t","arguments":{"n":2}}"#,
        r#"{"name":"t","arguments":{"n":1,"m":1}}"#,
        r#"{"name":"u","arguments":{"n":1}}"#,
        r#"{"name":"t"}"#,
    ] {
        assert_ne!(approved.digest, arguments_digest(&json(other)), "{other}");
    }
    let result = Outcome::Complete(json(r#"{"content":[]}"#));
    assert_eq!(
        named(scene.leave(done, result)),
        Some(reference.to_string())
    );
}

#[test]
fn an_approval_is_the_same_one_in_every_round_that_follows() {
    let scene = Scene::new();
    let (text, reference) = scene.may_it(&tool("a", "t"), unix_seconds() + 60);
    let mut call = scene
        .open
        .admit(again(tool("a", "t"), &text, Some(YES)))
        .unwrap();
    let first = given(&call);
    for round in 2..BOUNDS.rounds {
        let text = scene.asked(call, State::Upstream(None));
        call = scene
            .open
            .admit(again(tool("a", "t"), &text, Some(r#"{"r":{"roots":[]}}"#)))
            .unwrap();
        assert_eq!((call.round, given(&call)), (round, first.clone()));
        // Each round counts once.
        let twice = scene.open.admit(again(tool("a", "t"), &text, None));
        assert!(matches!(twice, Err(Error::StateInvalid)), "{twice:?}");
    }
    let result = Outcome::Complete(json(r#"{"content":[],"_meta":{"x":1}}"#));
    assert_eq!(
        named(scene.leave(call, result)),
        Some(reference.to_string())
    );
    // What nobody had to agree to names none.
    let result = Outcome::Complete(json(r#"{"content":[]}"#));
    assert_eq!(named(scene.leave(tool("a", "t"), result)), None);
}

/// SECURITY REL-3
#[test]
fn an_approval_is_used_by_a_call_that_is_sent_and_by_no_other() {
    let scene = Scene::new();
    let (text, _) = scene.may_it(&tool("a", "t"), unix_seconds() + 60);
    let bring = || scene.open.admit(again(tool("a", "t"), &text, Some(YES)));
    let refuse = |mut call: Box<Permitted>, sent: bool| {
        let mark = scene.seal.enter(&mut call);
        if sent {
            call.call.stake.as_ref().unwrap().mark_used();
        }
        drop(call);
        let refused = scene.seal.leave(mark, Err(Error::AuditUnavailable));
        assert!(matches!(refused, Err(Error::AuditUnavailable)));
    };
    // Refused above, refused below, and given up in between.
    drop(bring().unwrap());
    refuse(bring().unwrap(), false);
    drop(scene.seal.enter(&mut bring().unwrap()));
    let first = bring().unwrap();
    assert!(matches!(bring(), Err(Error::StateInvalid)), "two at once");
    refuse(first, true);
    assert!(matches!(bring(), Err(Error::StateInvalid)));
    // A later round is no other.
    let (text, _) = scene.may_it(&tool("a", "t"), unix_seconds() + 60);
    let call = scene.open.admit(again(tool("a", "t"), &text, Some(YES)));
    let parked = scene.asked(call.unwrap(), State::Parked(7));
    let twice = scene.open.admit(again(tool("a", "t"), &text, Some(YES)));
    assert!(matches!(twice, Err(Error::StateInvalid)), "it asked");
    let answered = || {
        let answers = Some(r#"{"r":{"roots":[]}}"#);
        scene.open.admit(again(tool("a", "t"), &parked, answers))
    };
    refuse(answered().unwrap(), false);
    refuse(answered().unwrap(), true);
    assert!(matches!(answered(), Err(Error::StateInvalid)));
}

#[test]
fn a_refusal_is_one_as_often_as_it_comes() {
    let scene = Scene::new();
    let (text, _) = scene.may_it(&tool("a", "t"), unix_seconds() + 60);
    let no = r#"{"dev.usher/approval":{"action":"decline"}}"#;
    let bring = |answer| scene.open.admit(again(tool("a", "t"), &text, Some(answer)));
    for _ in 0..2 {
        assert_eq!(bring(no).unwrap().consent, Consent::Declined);
    }
    let after_all = bring(YES);
    assert!(
        matches!(after_all, Err(Error::StateInvalid)),
        "{after_all:?}"
    );
}

#[test]
fn agreeing_too_late_is_not_agreeing() {
    let scene = Scene::new();
    for (until, consents) in [(unix_seconds() + 60, true), (unix_seconds() - 1, false)] {
        let (text, _) = scene.may_it(&tool("a", "t"), until);
        let call = scene
            .open
            .admit(again(tool("a", "t"), &text, Some(YES)))
            .unwrap();
        assert_eq!(matches!(call.consent, Consent::Given(_)), consents);
        assert_eq!(call.consent == Consent::Declined, !consents);
    }
}

#[test]
fn a_question_that_may_not_be_asked_is_the_upstreams_fault() {
    let scene = Scene::new();
    let sample = r#"{"k":{"method":"sampling/createMessage","params":{"messages":[]}}}"#;
    broken(&scene.leave(tool("a", "t"), asks(sample, State::Upstream(None))));
    broken(&scene.leave(tool("a", "t"), asks("{}", State::Upstream(None))));
    for (length, good) in [(999, true), (1_000, true), (1_001, false)] {
        // As text, without its quotes.
        let state = json(&format!("\"{}\"", "s".repeat(length)));
        seen::take();
        let left = scene.leave(tool("a", "t"), asks(ROOTS, State::Upstream(Some(state))));
        if good {
            assert!(left.is_ok(), "{length}");
            assert_eq!(seen::take(), []);
        } else {
            broken(&left);
            assert_eq!(seen::take(), [Bound::RequestState]);
        }
    }
    let completion = routed(Op::Complete(CompletionRef::Prompt("p".into())), "a", "p");
    broken(&scene.leave(completion, asks(ROOTS, State::Upstream(None))));
}

/// PRODUCT 9
#[tokio::test]
async fn what_policy_keeps_a_server_from_asking_is_told_as_a_denial_and_no_fault_of_its() {
    let scene = Scene::new();
    const FORM: &str = r#"{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}}"#;
    // What the client declared, of which the server is told of roots alone.
    for (declared, reason, code) in [
        (
            r#"{"roots":{},"elicitation":{}}"#,
            "policy_denied",
            codes::DENIED,
        ),
        (
            r#"{"roots":{},"sampling":{}}"#,
            "upstream_protocol_error",
            codes::UPSTREAM_PROTOCOL,
        ),
    ] {
        let call = || {
            let mut call = tool("a", "t");
            let declared = ClientCapabilities::read(json(declared)).unwrap();
            call.declared = Some(Box::new(declared));
            call
        };
        let error = scene.leave(call(), asks(FORM, State::Upstream(None)));
        assert_eq!(error.unwrap_err().reason(), reason);
        assert!(
            scene
                .leave(call(), asks(ROOTS, State::Upstream(None)))
                .is_ok()
        );
        // The same where the upstream's own line found it out.
        let mark = scene.seal.enter(&mut call());
        let found = Error::Upstream(FromUpstream {
            upstream: UpstreamId::parse("a").unwrap(),
            error: UpstreamError::Undeclared("elicitation"),
        });
        let told = scene.seal.leave(mark, Err(found)).unwrap_err();
        assert_eq!(told.reason(), reason);
        let mark = scene.seal.enter(&mut call());
        let steps = [
            Step::Event(Event::Log(LogLevel::Info, Json::empty_object())),
            Step::Outcome(asks(FORM, State::Upstream(None))),
        ];
        let reply = Reply::Stream(ReplyStream::new(stream::iter(steps).boxed()));
        let Ok(Reply::Stream(stream)) = scene.seal.leave(mark, Ok(reply)) else {
            panic!("no stream");
        };
        match &stream.collect::<Vec<_>>().await[..] {
            [Step::Event(_), Step::Outcome(Outcome::Lost(error))] => {
                assert_eq!(error.code, code);
                let data = error.data.as_ref().unwrap();
                assert!(data.as_str().contains(reason), "{data:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_question_at_the_end_of_a_stream_is_sealed_or_lost_like_any_other() {
    let scene = Scene::new();
    for (requests, good) in [(ROOTS, true), (r#"{"k":{"method":"ping"}}"#, false)] {
        let mut call = tool("a", "t");
        let mark = scene.seal.enter(&mut call);
        let steps = [
            Step::Event(Event::Log(LogLevel::Info, Json::empty_object())),
            Step::Outcome(asks(requests, State::Upstream(None))),
        ];
        let reply = Reply::Stream(ReplyStream::new(stream::iter(steps).boxed()));
        let Ok(Reply::Stream(stream)) = scene.seal.leave(mark, Ok(reply)) else {
            panic!("no stream");
        };
        match &stream.collect::<Vec<_>>().await[..] {
            [
                Step::Event(_),
                Step::Outcome(Outcome::InputRequired(required)),
            ] => {
                assert!(good && matches!(required.state, State::Sealed(_)));
            }
            [Step::Event(_), Step::Outcome(Outcome::Lost(error))] => {
                assert!(!good);
                assert_eq!(error.code, codes::UPSTREAM_PROTOCOL);
            }
            other => panic!("{other:?}"),
        }
    }
}
