//! Tests: rounds with a server of the stateless era: what is declared, what a question becomes, how a call goes on.

use std::sync::atomic::Ordering;

use super::{
    tests::{done, over_http, text},
    *,
};
use crate::{
    call::{Caller, Outcome},
    json::Limits,
    protocol::ClientCapabilities,
    upstream::scripted::{Play, a_call, a_caller, a_route, a_tool_call, result},
};

const ASKING: &str = r#"{"resultType":"input_required","inputRequests":{"n":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object"}}}},"requestState":"s\u002f1"}"#;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned().into(), &Limits::UPSTREAM).unwrap()
}

fn able(declared: &str, call: Call) -> Call {
    Call {
        caller: Arc::new(Caller {
            capabilities: ClientCapabilities::read(json(declared)).unwrap(),
            ..a_caller("k")
        }),
        ..call
    }
}

fn declared(sent: &crate::upstream::scripted::Sent) -> String {
    let params = json(&sent.params);
    let meta = params.root().member("_meta").unwrap();
    let declared = meta.member(meta::CLIENT_CAPABILITIES).unwrap();
    declared.raw().to_owned()
}

#[tokio::test]
async fn each_call_declares_what_its_own_caller_can_and_other_methods_declare_nothing() {
    let (transport, peer) = over_http(|_| result("{}"));
    let able_to = r#"{"elicitation":{"url":{}},"roots":{"listChanged":true},"x":{}}"#;
    done(peer.call(able(able_to, a_tool_call()), a_route("t")).await);
    done(peer.call(a_tool_call(), a_route("t")).await);
    let complete = a_call(
        Op::Complete(crate::call::CompletionRef::Prompt("p".into())),
        r#"{"ref":{"type":"ref/prompt","name":"p"}}"#,
    );
    done(peer.call(able(able_to, complete), a_route("p")).await);
    let sent: Vec<_> = transport.sent().iter().map(declared).collect();
    assert_eq!(
        sent,
        [r#"{"elicitation":{"url":{}},"roots":{}}"#, "{}", "{}"]
    );
}

#[tokio::test]
async fn a_question_is_an_outcome_and_its_state_comes_back_byte_for_byte_with_the_answers() {
    let mut plays = [result(ASKING), result(r#"{"resultType":"complete"}"#)].into_iter();
    let (transport, peer) = over_http(move |_| plays.next().unwrap());
    let call = able(r#"{"elicitation":{}}"#, a_tool_call());
    let Outcome::InputRequired(asked) = done(peer.call(call.clone(), a_route("t")).await) else {
        panic!()
    };
    assert_eq!(
        asked.requests.as_str(),
        r#"{"n":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object"}}}}"#
    );
    // The client's own params hold what we sealed, which must not come through.
    let again = Call {
        params: json(
            r#"{"name":"u_t","requestState":"sealed","inputResponses":{"n":1,"old":2},"arguments":{"a":1.0}}"#,
        ),
        resume: Some(Resume {
            responses: Some(json(r#"{"n":{"action":"accept","content":{"q":1.50}}}"#)),
            state: Some(asked.state),
            ..Resume::default()
        }),
        ..call
    };
    let outcome = done(peer.call(again, a_route("t")).await);
    assert_eq!(text(&outcome), r#"{"resultType":"complete"}"#);
    let sent = transport.sent();
    assert_eq!(sent.len(), 2);
    assert!(
        sent[1]
            .params
            .starts_with(r#"{"name":"t","arguments":{"a":1.0},"_meta":{"#)
    );
    assert!(
        sent[1].params.ends_with(
            r#","inputResponses":{"n":{"action":"accept","content":{"q":1.50}}},"requestState":"s\u002f1"}"#
        ),
        "{}",
        sent[1].params
    );
}

#[tokio::test]
async fn a_state_that_was_not_given_stays_absent() {
    let (transport, peer) = over_http(|_| result("{}"));
    for state in [None, Some(State::Upstream(None))] {
        let call = Call {
            resume: Some(Resume {
                responses: Some(json("{}")),
                state,
                ..Resume::default()
            }),
            ..a_tool_call()
        };
        done(peer.call(call, a_route("t")).await);
    }
    let only_state = Call {
        resume: Some(Resume {
            responses: None,
            state: Some(State::Upstream(Some(json(r#""""#)))),
            ..Resume::default()
        }),
        ..a_tool_call()
    };
    done(peer.call(only_state, a_route("t")).await);
    let sent = transport.sent();
    for sent in &sent[..2] {
        assert!(sent.params.ends_with(r#","inputResponses":{}}"#));
        assert!(!sent.params.contains("requestState"));
    }
    assert!(sent[2].params.ends_with(r#","requestState":""}"#));
    assert!(!sent[2].params.contains("inputResponses"));
}

#[tokio::test]
async fn a_call_that_an_earlier_peer_held_open_is_not_done_again() {
    let (transport, peer) = over_http(|_| result("{}"));
    let call = Call {
        resume: Some(Resume {
            responses: None,
            state: Some(State::Parked(7)),
            ..Resume::default()
        }),
        ..a_tool_call()
    };
    let reply = peer.call(call, a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::OutcomeUnknown)));
    assert!(transport.sent().is_empty());
}

#[tokio::test]
async fn what_was_not_offered_or_cannot_be_asked_there_breaks_the_call() {
    let complete = || {
        a_call(
            Op::Complete(crate::call::CompletionRef::Prompt("p".into())),
            r#"{"ref":{"type":"ref/prompt","name":"p"}}"#,
        )
    };
    let elicits = r#"{"elicitation":{}}"#;
    let cases: [(&str, Call); 5] = [
        (ASKING, a_tool_call()),
        (ASKING, able(r#"{"elicitation":{"url":{}}}"#, a_tool_call())),
        (ASKING, able(elicits, complete())),
        (
            r#"{"resultType":"input_required"}"#,
            able(elicits, a_tool_call()),
        ),
        (r#"{"resultType":"task"}"#, able(elicits, a_tool_call())),
    ];
    for (answer, call) in cases {
        let (transport, peer) = over_http(move |_| result(answer));
        let reply = peer.call(call, a_route("t")).await;
        assert!(
            matches!(
                reply,
                Err(UpstreamError::Protocol(_) | UpstreamError::Undeclared("elicitation"))
            ),
            "{answer}: {reply:?}"
        );
        assert_eq!(transport.dropped.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_capability_that_the_caller_lacks_is_named_and_one_that_was_withheld_is_not() {
    let needs = |needed: &'static str| {
        let (_, peer) = over_http(move |_| Play::Error(400, -32021, needed));
        peer
    };
    let call = || {
        able(
            r#"{"elicitation":{},"sampling":{"context":{}}}"#,
            a_tool_call(),
        )
    };
    let url = r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#;
    let reply = needs(url).call(call(), a_route("t")).await;
    let Err(UpstreamError::NeedsCapabilities(named)) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(named.as_str(), r#"{"elicitation":{"url":{}}}"#);
    for had in [
        r#"{"requiredCapabilities":{"elicitation":{"form":{}}}}"#,
        r#"{"requiredCapabilities":{"sampling":{"context":{}}}}"#,
    ] {
        let reply = needs(had).call(call(), a_route("t")).await;
        assert!(
            matches!(reply, Err(UpstreamError::Protocol(_))),
            "{reply:?}"
        );
    }
}
