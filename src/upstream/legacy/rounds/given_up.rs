//! Tests: calls that nobody goes on with, and sessions that end meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{super::attribution::HEEDING, *};
use crate::call::Stake;

#[tokio::test(start_paused = true)]
async fn nobody_comes_back_and_after_ten_minutes_the_server_is_told_and_the_call_cancelled() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let sample = r#"{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":{"messages":[],"includeContext":"thisServer"}}"#;
    let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT, sample]).await);
    assert!(
        asked
            .requests
            .as_str()
            .contains(r#""includeContext":"none""#)
    );
    tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
    assert_eq!(peer.parked_calls.len(), 1);
    assert!(answers(&transport).is_empty());
    transport.until_count("notifications/cancelled", 1).await;
    let told = answers(&transport);
    assert!(
        told[0].contains(r#""id":7,"result":{"action":"cancel"}"#),
        "{told:?}"
    );
    assert!(told[1].contains(r#""id":8,"error""#), "{told:?}");
    let cancelled = transport.sent_of("notifications/cancelled").remove(0);
    let number = id_of(&transport.sent_of("tools/call")[0]);
    assert!(
        cancelled
            .params
            .contains(&format!(r#""requestId":{number}"#))
    );
    assert_eq!(peer.parked_calls.len(), 0);
    let late = again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#);
    let reply = peer.call(late, a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::OutcomeUnknown)));
    assert_eq!(transport.sent_of("tools/call").len(), 1);
}

/// What a client brings back is good for so long, and no longer.
#[tokio::test(start_paused = true)]
async fn a_person_is_waited_for_as_long_as_the_configuration_says() {
    for life in [60, 3_600] {
        let mut spec = an_address();
        spec.bounds.asking.life = life;
        let (transport, peer) = played(&spec).await;
        let call = able("k");
        asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await);
        tokio::time::sleep(Duration::from_secs(life - 1)).await;
        assert_eq!(peer.parked_calls.len(), 1, "{life}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(peer.parked_calls.len(), 0, "{life}");
        assert!(answers(&transport)[0].contains(r#""action":"cancel""#));
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_its_callers_session_cancels_a_parked_call_and_no_other() {
    let (transport, peer) = played(&an_address()).await;
    let (a, b) = (able("a"), able("b"));
    asked(begun(&transport, &peer, a.clone(), 0, &[ELICIT]).await);
    asked(begun(&transport, &peer, b, 1, &[ELICIT]).await);
    a.caller.affinity.ended.as_ref().unwrap().cancel();
    transport.until_count("notifications/cancelled", 1).await;
    while transport.ended.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let calls = transport.sent_of("tools/call");
    let cancelled = transport.sent_of("notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert!(
        cancelled[0]
            .params
            .contains(&format!(r#""requestId":{},"#, id_of(&calls[0])))
    );
    assert_eq!(
        cancelled[0].header("mcp-session-id"),
        calls[0].header("mcp-session-id")
    );
    assert_eq!(peer.parked_calls.len(), 1);
    let sent = transport.sent();
    let told = sent
        .iter()
        .position(|sent| sent.method == "notifications/cancelled");
    assert!(told.is_some(), "told before the session was left");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_reply_of_a_resumed_call_cancels_it() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await);
    let again = again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#);
    let going_on = peer.call(again, a_route("t"));
    assert!(
        tokio::time::timeout(Duration::from_secs(1), going_on)
            .await
            .is_err()
    );
    transport.until_count("notifications/cancelled", 1).await;
    assert_eq!(transport.sent_of("notifications/cancelled").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_is_asked_holds_no_share_of_work_and_takes_it_up_again() {
    let spec = UpstreamSpec {
        concurrency: 1,
        ..an_address()
    };
    let (transport, peer) = played(&spec).await;
    let call = able("k");
    let first = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await);
    asked(begun(&transport, &peer, able("k"), 1, &[ELICIT]).await);
    // While another call is in flight there is no room to go on; the parked call is not lost over that.
    let mut busy = peer.call(able("k"), a_route("t"));
    assert!(futures_util::poll!(busy.as_mut()).is_pending());
    let answer = r#"{"ask-1":{"action":"accept"}}"#;
    let given_back = Arc::<AtomicUsize>::default();
    let staked = || {
        let back = Arc::clone(&given_back);
        let stake = Stake::new(move || _ = back.fetch_add(1, Ordering::SeqCst));
        Call {
            stake: Some(stake),
            ..again(&call, &first, answer)
        }
    };
    let refused = peer.call(staked(), a_route("t")).await;
    assert!(matches!(refused, Err(UpstreamError::Overloaded)));
    // Nor is what it had at stake (SECURITY REL-3).
    assert_eq!(given_back.load(Ordering::SeqCst), 1);
    drop(busy);
    transport.tell(0, &last("{}"));
    let reply = peer.call(staked(), a_route("t")).await;
    assert_eq!(text(reply), "{}");
    assert_eq!(given_back.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_while_its_caller_is_asked_leaves_an_unknown_outcome() {
    let (processes, peer) = on_own_pipes().await;
    let call = able("k");
    let (pipe, first) = asked_on_own_pipe(&processes, &peer, call.clone()).await;
    let asked = asked(first);
    pipe.die();
    while peer.parked_calls.len() > 0 {
        tokio::task::yield_now().await;
    }
    let reply = peer.call(
        again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#),
        a_route("t"),
    );
    assert!(matches!(reply.await, Err(UpstreamError::OutcomeUnknown)));
    assert_eq!(processes.made().len(), 2, "not even begun again");
}

#[tokio::test(start_paused = true)]
async fn a_dead_session_that_is_told_an_answer_ends_the_call_and_is_opened_again_for_the_next() {
    // With a message, or without.
    for refused in [Play::Status(404), Play::Error(404, -32001, "")] {
        let (transport, peer) = over_http(&an_address(), move |sent| match sent.method.as_str() {
            "tools/call" => Play::Open,
            _ => refused.clone(),
        })
        .await;
        let peer = Arc::new(peer);
        let call = able("k");
        let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await);
        // Responses get the status that the script says.
        let reply = peer.call(
            again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#),
            a_route("t"),
        );
        let reply = tokio::time::timeout(Duration::from_secs(1), reply).await;
        assert!(matches!(reply, Ok(Err(UpstreamError::OutcomeUnknown))));
        let done = last("{}");
        assert_eq!(
            text(begun(&transport, &peer, call, 1, &[&done]).await),
            "{}"
        );
        assert_eq!(transport.sent_of("initialize").len(), 3);
        assert_eq!(transport.sent_of("tools/call").len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_when_time_is_up_lets_go_of_the_call_even_where_all_shares_are_taken() {
    let spec = UpstreamSpec {
        concurrency: 1,
        ..an_address()
    };
    let (transport, peer) = played(&spec).await;
    let call = able("k");
    let asked = asked(begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await);
    let mut busy = peer.call(able("k"), a_route("t"));
    assert!(futures_util::poll!(busy.as_mut()).is_pending());
    let late = Call {
        deadline: Instant::now(),
        resume: Some(Resume {
            responses: None,
            state: Some(asked.state),
            ..Resume::default()
        }),
        ..call
    };
    let reply = peer.call(late, a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Timeout(_))));
    let number = id_of(&transport.sent_of("tools/call")[0]);
    let cancelled = transport.sent_of("notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert!(
        cancelled[0]
            .params
            .contains(&format!(r#""requestId":{number},"#))
    );
    assert!(answers(&transport)[0].contains(r#""action":"cancel""#));
    assert_eq!(peer.parked_calls.len(), 0);
}

/// The server is told all the same, and has time to heed it.
#[tokio::test(start_paused = true)]
async fn whoever_lets_go_of_a_call_on_a_pipe_and_is_gone_at_once_lets_nobody_in_too_early() {
    let (processes, peer) = on_pipes(Isolation::Session, |_, sent| match sent.method.as_str() {
        "tools/call" => Play::Open,
        "notifications/cancelled" => Play::After(1, Box::new(Play::Status(202))),
        _ => Play::Status(202),
    })
    .await;
    let peer = Arc::new(peer);
    let call = able("k");
    let (pipe, first) = asked_on_own_pipe(&processes, &peer, call.clone()).await;
    let asked = asked(first);
    let late = Call {
        deadline: Instant::now(),
        resume: Some(Resume {
            responses: None,
            state: Some(asked.state),
            ..Resume::default()
        }),
        ..call
    };
    let letting_go = peer.call(late, a_route("t"));
    let gone = tokio::time::timeout(Duration::from_millis(500), letting_go).await;
    assert!(gone.is_err());
    assert_eq!(pipe.sent_of("notifications/cancelled").len(), 1);
    let began = Instant::now();
    goes_out(&pipe, &peer, 1).await;
    assert!(began.elapsed() >= HEEDING, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_its_caller_is_not_told_lets_go_of_its_call_at_once() {
    let (processes, peer) = on_own_pipes().await;
    let (pipe, first) = asked_on_own_pipe(&processes, &peer, able("k")).await;
    let Ok(Reply::Done(Outcome::InputRequired(question))) = first else {
        panic!("{first:?}")
    };
    // Whoever passes it up may keep a copy for a while.
    let copy = question.clone();
    drop(question);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(peer.parked_calls.len(), 1);
    let before = Instant::now();
    drop(copy);
    pipe.until_count("notifications/cancelled", 1).await;
    goes_out(&pipe, &peer, 1).await;
    assert!(before.elapsed() < Duration::from_secs(5));
    let told = pipe.sent_of("").remove(0).text;
    assert!(
        told.contains(r#""id":7,"result":{"action":"cancel"}"#),
        "{told}"
    );
    assert_eq!(peer.parked_calls.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn going_on_where_nobody_else_can_lets_go_of_the_call_when_it_fails() {
    let spec = UpstreamSpec {
        concurrency: 1,
        ..an_address()
    };
    let (transport, peer) = played(&spec).await;
    let call = able("k");
    let reply = begun(&transport, &peer, call.clone(), 0, &[ELICIT]).await;
    let Ok(Reply::Done(Outcome::InputRequired(mut question))) = reply else {
        panic!("{reply:?}")
    };
    let mut busy = peer.call(able("k"), a_route("t"));
    assert!(futures_util::poll!(busy.as_mut()).is_pending());
    let mut again = again(&call, &question, r#"{"ask-1":{"action":"accept"}}"#);
    again.resume.as_mut().unwrap().hold = question.hold.take();
    let refused = peer.call(again, a_route("t")).await;
    assert!(matches!(refused, Err(UpstreamError::Overloaded)));
    let before = Instant::now();
    transport.until_count("notifications/cancelled", 1).await;
    assert!(before.elapsed() < Duration::from_secs(5));
    assert_eq!(peer.parked_calls.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_while_its_caller_is_asked_keeps_nobody_else_of_its_pipe_waiting() {
    for breaks in [false, true] {
        let (processes, peer) = on_own_pipes().await;
        let call = able("k");
        let (pipe, first) = asked_on_own_pipe(&processes, &peer, call.clone()).await;
        let asked = asked(first);
        let end = if breaks {
            r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_owned()
        } else {
            last("{}")
        };
        pipe.tell(0, &end);
        pipe.until(|sent| sent.text.contains(r#""id":7,"#)).await;
        let before = Instant::now();
        goes_out(&pipe, &peer, 1).await;
        assert!(before.elapsed() < Duration::from_secs(5));
        // What cannot be read is no answer: the server is told, and not only when somebody comes for it.
        let told = pipe.sent_of("notifications/cancelled").len();
        assert_eq!(told, usize::from(breaks));
        let reply = peer.call(
            again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#),
            a_route("t"),
        );
        assert_eq!(reply.await.is_err(), breaks);
    }
}

#[tokio::test(start_paused = true)]
async fn one_principal_cannot_take_all_the_room_for_calls_that_wait() {
    let (transport, peer) = over_http(&an_address(), |sent| match sent.method.as_str() {
        "tools/call" | "resources/read" => Play::Open,
        _ => Play::Status(202),
    })
    .await;
    let peer = Arc::new(peer);
    let of = |name: &str| {
        let call = able("k");
        let caller = Caller {
            principal: Principal::new(name),
            ..(*call.caller).clone()
        };
        Call {
            caller: Arc::new(caller),
            ..call
        }
    };
    for nth in 0..256 {
        asked(begun(&transport, &peer, of("ana"), nth, &[ELICIT]).await);
    }
    // The tool has begun, so nobody is told to call it again.
    let refused = begun(&transport, &peer, of("ana"), 256, &[ELICIT]).await;
    assert!(matches!(refused, Err(UpstreamError::OutcomeUnknown)));
    asked(begun(&transport, &peer, of("ben"), 257, &[ELICIT]).await);
    assert_eq!(peer.parked_calls.len(), 257);
    // What only reads may be asked for again.
    let read = Call {
        op: Op::ReadResource("u+a:b".into()),
        params: json(r#"{"uri":"u+a:b"}"#),
        ..of("ana")
    };
    let read = peer.call(read, a_route("a:b"));
    let speaking = async {
        transport.until_count("resources/read", 1).await;
        transport.tell(258, ELICIT);
    };
    let (refused, ()) = tokio::join!(read, speaking);
    assert!(matches!(refused, Err(UpstreamError::Overloaded)));
}
