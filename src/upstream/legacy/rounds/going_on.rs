//! Tests: questions become outcomes, and calls go on with their answers.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_question_on_a_calls_own_stream_is_its_outcome_and_the_answer_goes_back_under_its_id() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT, ROOTS]).await);
    assert_eq!(
        asked.requests.as_str(),
        r#"{"ask-1":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}},"ask-2":{"method":"roots/list"}}"#
    );
    let again = again(
        &call,
        &asked,
        r#"{"ask-1":{"action":"accept","content":{"n":1.50}},"ask-2":{"roots":[]},"other":{}}"#,
    );
    let going_on = peer.call(again, a_route("t"));
    let speaking = async {
        transport.until_count("", 2).await;
        transport.tell(0, &last(r#"{"content":[], "n":1.0}"#));
    };
    let (reply, ()) = tokio::join!(going_on, speaking);
    assert_eq!(text(reply), r#"{"content":[], "n":1.0}"#);
    let mut told = answers(&transport);
    told.sort();
    assert_eq!(
        told,
        [
            r#"{"jsonrpc":"2.0","id":"r\u0031","result":{"roots":[]}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"action":"accept","content":{"n":1.50}}}"#,
        ]
    );
    assert_eq!(transport.sent_of("tools/call").len(), 1, "sent once");
    assert_eq!(transport.sent_of("notifications/cancelled").len(), 0);
    assert_eq!(peer.parked_calls.len(), 0);
    let opened = transport.sent_of("initialize");
    assert!(opened[0].params.contains(r#""capabilities":{},"#));
    assert!(
        opened[1]
            .params
            .contains(&format!(r#""capabilities":{ALL},"#)),
        "{}",
        opened[1].params
    );
}

#[tokio::test(start_paused = true)]
async fn two_parked_calls_go_on_in_any_order_and_never_with_each_others_answers() {
    let (transport, peer) = played(&an_address()).await;
    let (a, b) = (able("k"), able("k"));
    let first = asked(begun(&transport, &peer, a.clone(), 0, &[ROOTS]).await);
    let second = asked(begun(&transport, &peer, b.clone(), 1, &[ELICIT]).await);
    assert_ne!(first.state, second.state);
    assert_eq!(peer.parked_calls.len(), 2);
    for (call, asked, nth, answer, want) in [
        (
            b,
            second,
            1,
            r#"{"ask-1":{"action":"decline"}}"#,
            r#""id":7,"result":{"action":"decline"}"#,
        ),
        (
            a,
            first,
            0,
            r#"{"ask-1":{"roots":[]}}"#,
            r#""id":"r\u0031","result":{"roots":[]}"#,
        ),
    ] {
        let before = answers(&transport).len();
        let going_on = peer.call(again(&call, &asked, answer), a_route("t"));
        let speaking = async {
            transport.until_count("", before + 1).await;
            transport.tell(nth, &last(&format!(r#"{{"n":{nth}}}"#)));
        };
        let (reply, ()) = tokio::join!(going_on, speaking);
        assert_eq!(text(reply), format!(r#"{{"n":{nth}}}"#));
        assert!(answers(&transport)[before].contains(want));
    }
    assert_eq!(transport.sent_of("tools/call").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_goes_on_once_for_its_own_principal_and_request_only() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ROOTS]).await);
    let fine = again(&call, &asked, r#"{"ask-1":{"roots":[]}}"#);
    let unknown = |reply| matches!(reply, Err(UpstreamError::OutcomeUnknown));
    let other_tool = Call {
        op: Op::CallTool("u_other".into()),
        ..fine.clone()
    };
    let guessed = Call {
        resume: Some(Resume {
            responses: None,
            state: Some(State::Parked(1)),
            ..Resume::default()
        }),
        ..fine.clone()
    };
    for foreign in [other_tool, guessed] {
        assert!(unknown(peer.call(foreign, a_route("t")).await));
    }
    assert_eq!(peer.parked_calls.len(), 1, "nothing was taken");
    transport.tell(0, &last("{}"));
    assert_eq!(text(peer.call(fine.clone(), a_route("t")).await), "{}");
    assert!(unknown(peer.call(fine, a_route("t")).await));
    assert_eq!(transport.sent_of("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_answered_is_asked_again_under_the_same_key() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let first = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT, ROOTS]).await);
    let half = again(&call, &first, r#"{"ask-2":{"roots":[]}}"#);
    let second = asked(peer.call(half, a_route("t")).await);
    assert!(second.requests.root().member("ask-1").is_some());
    assert!(second.requests.root().member("ask-2").is_none());
    assert_ne!(first.state, second.state);
    assert_eq!(answers(&transport).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_withdraws_its_question_is_not_answered_and_one_that_goes_on_alone_is_heard()
{
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let first = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT, ROOTS]).await);
    for text in [
        &note("notifications/cancelled", r#"{"requestId":7}"#),
        &note(
            "notifications/progress",
            r#"{"progressToken":$id,"progress":1}"#,
        ),
        &note(
            "notifications/progress",
            r#"{"progressToken":$id,"progress":2}"#,
        ),
        &note("notifications/message", r#"{"level":"error","data":1}"#),
    ] {
        transport.tell(0, text);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let answer = r#"{"ask-1":{"action":"accept"},"ask-2":{"roots":[]}}"#;
    transport.tell(0, &last("{}"));
    let reply = peer.call(again(&call, &first, answer), a_route("t")).await;
    assert_eq!(text(reply), "{}");
    assert!(
        !answers(&transport)
            .iter()
            .any(|told| told.contains(r#""id":7,"#))
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_holds_a_call_is_told_of_its_end_and_of_what_it_asked_and_takes_back() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT, ROOTS]).await);
    let mut meanwhile = asked.hold.as_ref().unwrap().meanwhile();
    assert!(!meanwhile.has_changed().unwrap());
    let cancel = |id: &str| {
        let params = format!(r#"{{"requestId":{id}}}"#);
        transport.tell(0, &note("notifications/cancelled", &params));
    };
    // What nobody was asked yet, however often.
    for _ in 0..3 {
        transport.tell(0, &ELICIT.replace(r#""id":7"#, r#""id":8"#));
        cancel("8");
    }
    cancel("7");
    meanwhile
        .wait_for(|meanwhile| !meanwhile.withdrawn.is_empty())
        .await
        .unwrap();
    assert_eq!(meanwhile.borrow().withdrawn, ["ask-1"]);
    assert!(!meanwhile.borrow().over);
    transport.tell(0, &last("{}"));
    meanwhile
        .wait_for(|meanwhile| meanwhile.over)
        .await
        .unwrap();
    assert_eq!(
        text(peer.call(again(&call, &asked, "{}"), a_route("t")).await),
        "{}"
    );
    assert!(meanwhile.changed().await.is_err(), "nobody reads it on");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_while_its_caller_is_asked_has_its_outcome_kept_and_its_questions_closed()
{
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await);
    transport.tell(0, &last(r#"{"content":[]}"#));
    let closed = transport
        .until(|sent| sent.text.contains(r#""id":7,"#))
        .await;
    assert!(closed.text.contains("-32602"), "{}", closed.text);
    let reply = peer.call(
        again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#),
        a_route("t"),
    );
    assert_eq!(text(reply.await), r#"{"content":[]}"#);
    assert_eq!(answers(&transport).len(), 1, "the answer came too late");
}

/// The server forgets the session, which another call finds out. The outcome is here.
#[tokio::test(start_paused = true)]
async fn a_kept_outcome_outlives_its_session_and_not_its_peer() {
    for closes in [false, true] {
        let mut calls = 0;
        let (transport, peer) = over_http(&an_address(), move |sent| match sent.method.as_str() {
            "tools/call" if calls == 0 => {
                calls += 1;
                Play::Open
            }
            "tools/call" => Play::Status(404),
            _ => Play::Status(202),
        })
        .await;
        let peer = Arc::new(peer);
        let call = able("k");
        let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await);
        transport.tell(0, &last(r#"{"content":[]}"#));
        transport
            .until(|sent| sent.text.contains(r#""id":7,"#))
            .await;
        assert!(peer.call(able("k"), a_route("t")).await.is_err());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(peer.parked_calls.len(), 1);
        if closes {
            peer.close().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(peer.parked_calls.len(), 0);
        } else {
            let answer = again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#);
            let reply = peer.call(answer, a_route("t")).await;
            assert_eq!(text(reply), r#"{"content":[]}"#);
        }
        assert!(transport.sent_of("notifications/cancelled").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_progress_of_the_time_between_is_told_when_the_call_goes_on() {
    let (transport, peer) = played(&an_address()).await;
    let call = Call {
        wants_progress: true,
        ..able("k")
    };
    let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await);
    for n in 1..4 {
        let progress = format!(r#"{{"progressToken":$id,"progress":{n}}}"#);
        transport.tell(0, &note("notifications/progress", &progress));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let again = again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#);
    let Ok(Reply::Stream(stream)) = peer.call(again, a_route("t")).await else {
        panic!()
    };
    transport.tell(0, &last("{}"));
    let steps: Vec<_> = stream.collect().await;
    let [
        Step::Event(Event::Progress(progress)),
        Step::Outcome(Outcome::Complete(_)),
    ] = &steps[..]
    else {
        panic!("{steps:?}")
    };
    assert!(progress.as_str().contains(r#""progress":3"#));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_client_reaches_the_server_as_the_error_it_is() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ROOTS]).await);
    transport.tell(0, &last("{}"));
    let refused = r#"{"ask-1":{"error":{"code":-1,"message":"no"}}}"#;
    // The outcome is read while nobody is there, so that the answer would come too late; asked for at once it does not.
    let reply = peer.call(again(&call, &asked, refused), a_route("t")).await;
    assert_eq!(text(reply), "{}");
    assert_eq!(
        answers(&transport),
        [r#"{"jsonrpc":"2.0","id":"r\u0031","error":{"code":-1,"message":"no"}}"#]
    );
}

/// A token may have to be got first, or the server may be slow to take it: the call has its time.
#[tokio::test(start_paused = true)]
async fn an_answer_may_take_as_long_as_its_call_and_no_longer() {
    for (takes, goes_on) in [(3, true), (61, false)] {
        let slow = Play::After(takes, Box::new(Play::Status(202)));
        let (transport, peer) = over_http(&an_address(), move |sent| match sent.method.as_str() {
            "tools/call" => Play::Open,
            "" => slow.clone(),
            _ => Play::Status(202),
        })
        .await;
        let peer = Arc::new(peer);
        let call = able("k");
        let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await);
        let began = Instant::now();
        let answer = again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#);
        let going_on = peer.call(answer, a_route("t"));
        let speaking = async {
            transport.until_count("", 1).await;
            tokio::time::sleep(Duration::from_secs(takes)).await;
            transport.tell(0, &last("{}"));
        };
        let (reply, ()) = tokio::join!(going_on, speaking);
        assert_eq!(began.elapsed(), Duration::from_secs(takes));
        if goes_on {
            assert_eq!(text(reply), "{}");
        } else {
            assert!(matches!(reply, Err(UpstreamError::Timeout(_))), "{reply:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_whoever_goes_on_cannot_be_asked_any_more_is_refused_and_in_the_way_of_nothing() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let first = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT, ROOTS]).await);
    let less = Call {
        caller: able_to("k", r#"{"elicitation":{}}"#).caller,
        ..again(&call, &first, r#"{"ask-1":{"action":"accept"}}"#)
    };
    let going_on = peer.call(less, a_route("t"));
    let speaking = async {
        transport.until_count("", 2).await;
        transport.tell(0, &ELICIT.replace(r#""id":7"#, r#""id":8"#));
    };
    let (reply, ()) = tokio::join!(going_on, speaking);
    let next = asked(reply);
    let keys: Vec<_> = next.requests.root().members().map(|it| it.key).collect();
    assert_eq!(keys, ["ask-3"]);
    let told = answers(&transport);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].contains(r#""error":{"code":-32601"#), "{told:?}");
}
