//! Tests: whose question it is, what may be asked, and who shares a session.

use std::sync::OnceLock;

use super::{
    super::{attribution::HEEDING, tests::on_pipes_of},
    *,
};
use crate::upstream::{
    asking::Offer,
    scripted::{Processes, a_pipe},
    spec::Timeouts,
    transport::Owners,
};

#[tokio::test(start_paused = true)]
async fn what_was_not_declared_is_refused_and_reaches_nobody() {
    let (transport, peer) = played(&an_address()).await;
    let url = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a","elicitationId":"e"}}"#;
    let sample =
        r#"{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"messages":[]}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    let tasks = r#"{"jsonrpc":"2.0","id":4,"method":"tasks/list"}"#;
    let call = able_to("k", r#"{"elicitation":{}}"#);
    let says = [url, sample, ping, tasks, &last("{}")];
    assert_eq!(text(begun(&transport, &peer, call, 0, &says).await), "{}");
    let told = answers(&transport);
    assert_eq!(told.len(), 4);
    assert!(
        told[0].contains(r#""id":1,"error":{"code":-32602"#),
        "{told:?}"
    );
    assert!(
        told[1].contains(r#""id":2,"error":{"code":-32601"#),
        "{told:?}"
    );
    assert!(told[2].contains(r#""id":3,"result":{}"#), "{told:?}");
    assert!(
        told[3].contains(r#""id":4,"error":{"code":-32601"#),
        "{told:?}"
    );
}

/// What would not be let through to the caller is refused where it is asked, and the tool goes on.
#[tokio::test(start_paused = true)]
async fn what_may_not_reach_a_person_costs_its_server_that_question_and_not_the_call() {
    let uses_a_tool = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"n","input":{}}]}]}}"#;
    let no_web = r#"{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"myapp://auth","elicitationId":"e"}}"#;
    let says_nothing = r#"{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{"requestedSchema":{"type":"object","properties":{}}}}"#;
    // Each would do; they go to the caller together.
    let long = |id| {
        let choice = "x".repeat(20 << 10);
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"m","requestedSchema":{{"type":"object","properties":{{"a":{{"type":"string","enum":["{choice}"]}}}}}}}}}}"#
        )
    };
    let (transport, peer) = played(&an_address()).await;
    let says = [uses_a_tool, no_web, says_nothing, &long(4), &long(5), ROOTS];
    let asked = asked(begun(&transport, &peer, able("k"), 0, &says).await);
    let keys: Vec<_> = asked.requests.root().members().map(|it| it.key).collect();
    assert_eq!(keys, ["ask-1", "ask-2"]);
    let first = asked.requests.root().member("ask-1").unwrap().raw();
    assert!(first.contains("xxx"));
    let told = answers(&transport);
    assert_eq!(told.len(), 4, "{told:?}");
    for (told, id) in told.iter().zip([1, 2, 3, 5]) {
        let refused = format!(r#""id":{id},"error":{{"code":-32602"#);
        assert!(told.contains(&refused), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_eight_questions_are_open_at_a_time() {
    let (transport, peer) = played(&an_address()).await;
    let many: Vec<_> = (0..9)
        .map(|n| format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"roots/list"}}"#))
        .collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let asked = asked(begun(&transport, &peer, able("k"), 0, &many).await);
    assert_eq!(asked.requests.root().members().count(), 8);
    let told = answers(&transport);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains(r#""id":8,"error":{"code":-32602"#),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_is_shared_only_by_those_who_declare_the_same() {
    let (transport, peer) = played(&an_address()).await;
    let forms = || able_to("k", r#"{"elicitation":{}}"#);
    for (nth, call) in [able("k"), forms(), able("k"), able_to("k", "{}"), forms()]
        .into_iter()
        .enumerate()
    {
        let done = last("{}");
        assert_eq!(
            text(begun(&transport, &peer, call, nth, &[&done]).await),
            "{}"
        );
    }
    let sessions: Vec<_> = transport
        .sent_of("tools/call")
        .iter()
        .map(|sent| sent.header("mcp-session-id").unwrap().to_owned())
        .collect();
    assert_eq!(sessions, ["s1", "s2", "s1", "s3", "s2"]);
}

#[tokio::test(start_paused = true)]
async fn where_all_share_a_session_its_streams_say_whose_a_question_is_and_a_pipe_offers_nothing() {
    let shared = UpstreamSpec {
        isolation: Isolation::Shared,
        ..an_address()
    };
    let (transport, peer) = played(&shared).await;
    asked(begun(&transport, &peer, able("a"), 0, &[ELICIT]).await);
    asked(begun(&transport, &peer, able("b"), 1, &[ELICIT]).await);
    let sessions = transport.sent_of("tools/call");
    assert_eq!(sessions[0].header("mcp-session-id"), Some("s1"));
    assert_eq!(sessions[1].header("mcp-session-id"), Some("s1"));

    let (processes, peer) = on_pipes(Isolation::Shared, |_, sent| match sent.method.as_str() {
        "tools/call" => Play::Open,
        _ => Play::Status(202),
    })
    .await;
    let peer = Arc::new(peer);
    let pipe = processes.made().remove(0);
    let mut call = peer.call(able("a"), a_route("t"));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    pipe.say(ELICIT);
    let refused = pipe.until(|sent| sent.text.contains(r#""id":7"#)).await;
    assert!(refused.text.contains("-32601"), "{}", refused.text);
    pipe.tell(0, &last("{}"));
    assert_eq!(text(call.await), "{}");
    assert!(
        pipe.sent_of("initialize")[0]
            .params
            .contains(r#""capabilities":{},"#)
    );
    assert_eq!(processes.made().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn on_a_pipe_of_its_own_a_call_is_asked_before_its_first_frame_and_others_wait_their_turn() {
    let (processes, peer) = on_own_pipes().await;
    let call = able("k");
    let mut first = peer.call(call.clone(), a_route("t"));
    while processes.made().len() < 2 || processes.made()[1].sent_of("tools/call").is_empty() {
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    let pipe = processes.made().remove(1);
    pipe.say(ELICIT);
    let asked = asked(first.await);
    // Another call that may be asked about would make the next question anybody's.
    let mut second = peer.call(able("k"), a_route("t"));
    for _ in 0..8 {
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    assert_eq!(pipe.sent_of("tools/call").len(), 1);
    let going_on = peer.call(
        again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#),
        a_route("t"),
    );
    let speaking = async {
        pipe.until_count("", 1).await;
        pipe.tell(0, &last("{}"));
    };
    let (reply, ()) = tokio::join!(going_on, speaking);
    assert_eq!(text(reply), "{}");
    let speaking = async {
        pipe.until_count("tools/call", 2).await;
        pipe.tell(1, &last(r#"{"n":2}"#));
    };
    let (reply, ()) = tokio::join!(second, speaking);
    assert_eq!(text(reply), r#"{"n":2}"#);
}

/// PROTOCOL D0.4: its server may ask once more before it knows, and that would look like the next call's question.
#[tokio::test(start_paused = true)]
async fn what_a_call_that_is_given_up_still_asks_on_a_pipe_is_nobodys_and_others_wait_until_it_is_over()
 {
    for (asked, answers) in [(false, false), (false, true), (true, false)] {
        let (processes, peer) = on_own_pipes().await;
        if asked {
            let (_pipe, first) = asked_on_own_pipe(&processes, &peer, able("k")).await;
            // Its caller is not told.
            drop(first);
        } else {
            let mut first = peer.call(able("k"), a_route("t"));
            while processes.made().len() < 2 || processes.made()[1].sent_of("tools/call").is_empty()
            {
                assert!(futures_util::poll!(first.as_mut()).is_pending());
                tokio::task::yield_now().await;
            }
        }
        let pipe = processes.made().remove(1);
        pipe.until_count("notifications/cancelled", 1).await;
        let began = Instant::now();
        let mut second = peer.call(able("k"), a_route("t"));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        pipe.say(&ELICIT.replace(r#""id":7"#, r#""id":8"#));
        let refused = pipe.until(|sent| sent.text.contains(r#""id":8,"#)).await;
        assert!(refused.text.contains("-32602"), "{}", refused.text);
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        assert_eq!(pipe.sent_of("tools/call").len(), 1);
        if answers {
            pipe.tell(0, &last("{}"));
        }
        let speaking = async {
            pipe.until_count("tools/call", 2).await;
            pipe.tell(1, &last(r#"{"n":2}"#));
            began.elapsed()
        };
        let (reply, waited) = tokio::join!(second, speaking);
        assert_eq!(text(reply), r#"{"n":2}"#);
        assert_eq!(waited, if answers { Duration::ZERO } else { HEEDING });
    }
}

/// It has done with the call before it is told that the call is cancelled.
#[tokio::test(start_paused = true)]
async fn who_answers_as_soon_as_it_hears_that_nobody_will_keeps_no_other_call_waiting() {
    let all = Arc::new(OnceLock::<Arc<Processes>>::new());
    let known = Arc::clone(&all);
    let (processes, peer) = on_pipes(Isolation::Session, move |nth, sent| {
        match sent.method.as_str() {
            "tools/call" => Play::Open,
            "" => {
                known.get().unwrap().made()[nth].tell(0, &last("{}"));
                Play::Status(202)
            }
            _ => Play::Status(202),
        }
    })
    .await;
    assert!(all.set(Arc::clone(&processes)).is_ok());
    let peer = Arc::new(peer);
    let (pipe, first) = asked_on_own_pipe(&processes, &peer, able("k")).await;
    let began = Instant::now();
    // Its caller is not told.
    drop(first);
    goes_out(&pipe, &peer, 1).await;
    assert!(answers(&pipe)[0].contains(r#""action":"cancel""#));
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// SECURITY REL-3: a person may be at lunch, and nobody else hangs for that.
#[tokio::test(start_paused = true)]
async fn a_slow_call_is_waited_for_on_a_pipe_and_a_person_no_longer_than_in_any_queue() {
    let (processes, peer) = on_own_pipes().await;
    let mut first = peer.call(able("k"), a_route("t"));
    while processes.made().len() < 2 || processes.made()[1].sent_of("tools/call").is_empty() {
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    let pipe = processes.made().remove(1);
    let mut second = peer.call(able("k"), a_route("t"));
    let waits = tokio::time::timeout(Duration::from_secs(20), second.as_mut());
    assert!(waits.await.is_err(), "the first is at work");
    pipe.say(ELICIT);
    let _asked = asked(first.await);
    let began = Instant::now();
    assert!(matches!(second.await, Err(UpstreamError::Engaged)));
    assert!(began.elapsed() <= Duration::from_secs(4));
    let began = Instant::now();
    let third = peer.call(able("k"), a_route("t"));
    assert!(matches!(third.await, Err(UpstreamError::Engaged)));
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    assert_eq!(pipe.sent_of("tools/call").len(), 1);
}

/// SECURITY 6: what is said on a pipe is no sign of life of a call; whoever tells of progress goes on telling.
#[tokio::test(start_paused = true)]
async fn who_asked_or_logged_on_a_pipe_may_work_in_silence_and_who_tells_of_progress_may_not() {
    let spec = UpstreamSpec {
        isolation: Isolation::Session,
        timeouts: Timeouts {
            call: Duration::from_secs(600),
            ..Timeouts::default()
        },
        ..a_pipe()
    };
    let (processes, peer) = on_pipes_of(spec, |_, sent| match sent.method.as_str() {
        "tools/call" => Play::Open,
        _ => Play::Status(202),
    })
    .await;
    let peer = Arc::new(peer);
    let log =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$id,"progress":1}}"#;
    for (nth, tells) in [(0, false), (1, true)] {
        let call = peer.call(able("k"), a_route("t"));
        let speaking = async {
            while processes.made().len() < 2 {
                tokio::task::yield_now().await;
            }
            let pipe = processes.made().remove(1);
            pipe.until_count("tools/call", nth + 1).await;
            pipe.say(log);
            if tells {
                pipe.tell(nth, progress);
            }
            tokio::time::sleep(Duration::from_secs(200)).await;
            pipe.tell(nth, &last("{}"));
        };
        let (reply, ()) = tokio::join!(call, speaking);
        if tells {
            assert!(
                matches!(reply, Err(UpstreamError::Timeout(Deadline::Silence))),
                "{reply:?}"
            );
        } else {
            assert_eq!(text(reply), "{}");
        }
    }
}

/// Who is not waited for any more, because the server has answered without them, keeps nobody from waiting for a call at work.
#[tokio::test(start_paused = true)]
async fn behind_a_call_at_work_others_wait_though_somebody_still_looks_at_a_question_that_is_over()
{
    let (processes, peer) = on_own_pipes().await;
    let (pipe, first) = asked_on_own_pipe(&processes, &peer, able("k")).await;
    let _kept = asked(first);
    pipe.tell(0, &last("{}"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let mut second = peer.call(able("k"), a_route("t"));
    let working = tokio::time::timeout(Duration::from_secs(1), second.as_mut());
    assert!(working.await.is_err());
    let mut third = peer.call(able("k"), a_route("t"));
    let waiting = tokio::time::timeout(Duration::from_secs(20), third.as_mut());
    assert!(waiting.await.is_err(), "it waits for the one at work");
    pipe.tell(1, &last("{}"));
    assert_eq!(text(second.await), "{}");
}

#[tokio::test(start_paused = true)]
async fn only_a_pipe_that_was_begun_for_one_caller_may_be_held_up_by_what_is_not_read() {
    let (_processes, peer) = on_pipes(Isolation::Session, |_, _| result("{}")).await;
    let call = able("k");
    assert_eq!(text(peer.call(call.clone(), a_route("t")).await), "{}");
    let own = peer
        .slot(&call, Offer::of_session(&peer.terms, &call))
        .unwrap();
    assert!(own.usable().unwrap().attribution.is_of_one());
    assert!(!peer.service.usable().unwrap().attribution.is_of_one());
}

/// As server-filesystem does: it asks for roots when its session begins, answers the first call meanwhile, and never asks again.
#[tokio::test(start_paused = true)]
async fn roots_that_are_open_when_the_answer_comes_are_asked_for_all_the_same() {
    for is_asked_before in [false, true] {
        let (processes, peer) = on_own_pipes().await;
        let call = able("k");
        let speaking = async {
            while processes.made().len() < 2 {
                tokio::task::yield_now().await;
            }
            let pipe = processes.made().remove(1);
            pipe.until_count("tools/call", 1).await;
            pipe.say(ROOTS);
            if !is_asked_before {
                pipe.tell(0, &last(r#"{"n":1}"#));
            }
            pipe
        };
        let (reply, pipe) = tokio::join!(peer.call(call.clone(), a_route("t")), speaking);
        let first = asked(reply);
        let meanwhile = first.hold.as_ref().unwrap().meanwhile();
        if is_asked_before {
            pipe.tell(0, &last(r#"{"n":1}"#));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!(!meanwhile.borrow().over, "its roots are still wanted");
        // Others of the session go on.
        goes_out(&pipe, &peer, 1).await;
        let roots = r#"{"ask-1":{"roots":[{"uri":"file:///a"}]}}"#;
        let reply = peer.call(again(&call, &first, roots), a_route("t")).await;
        assert_eq!(text(reply), r#"{"n":1}"#);
        let told = answers(&pipe);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(r#""id":"r\u0031","result":{"roots":[{"uri":"file:///a"}]}"#));
        assert!(pipe.sent_of("notifications/cancelled").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_waits_five_seconds_for_roots_and_for_nothing_else() {
    let (processes, peer) = on_own_pipes().await;
    let call = able("k");
    let (pipe, reply) = asked_on_own_pipe(&processes, &peer, call.clone()).await;
    drop(asked(reply));
    pipe.until_count("notifications/cancelled", 1).await;
    pipe.tell(0, &last("{}"));
    let speaking = async {
        pipe.until_count("tools/call", 2).await;
        pipe.say(&ELICIT.replace(r#""id":7"#, r#""id":8"#));
        pipe.say(ROOTS);
    };
    let (reply, ()) = tokio::join!(peer.call(call.clone(), a_route("t")), speaking);
    let second = asked(reply);
    let mut meanwhile = second.hold.as_ref().unwrap().meanwhile();
    pipe.tell(1, &last(r#"{"n":2}"#));
    let refused = |id: &'static str| {
        let pipe = &pipe;
        async move {
            let told = pipe.until(|sent| sent.method.is_empty() && sent.text.contains(id));
            assert!(told.await.text.contains("-32602"), "{id}");
        }
    };
    let began = Instant::now();
    refused(r#""id":8,"#).await;
    assert_eq!(meanwhile.borrow_and_update().withdrawn, ["ask-1"]);
    meanwhile
        .wait_for(|meanwhile| meanwhile.over)
        .await
        .unwrap();
    assert_eq!(began.elapsed().as_secs(), 5);
    refused(r#""id":"r\u0031""#).await;
    let late = r#"{"ask-2":{"roots":[]}}"#;
    let reply = peer.call(again(&call, &second, late), a_route("t")).await;
    assert_eq!(text(reply), r#"{"n":2}"#);
    let roots = answers(&pipe).into_iter();
    assert_eq!(roots.filter(|told| told.contains("r\\u0031")).count(), 1);
}

/// Whose roots they are cannot be said where others have the same session.
#[tokio::test(start_paused = true)]
async fn an_outcome_does_not_wait_for_roots_on_a_session_that_others_share() {
    let spec = UpstreamSpec {
        isolation: Isolation::Shared,
        ..an_address()
    };
    let (transport, peer) = played(&spec).await;
    let says = [ROOTS, &last(r#"{"n":1}"#)];
    let reply = begun(&transport, &peer, able("k"), 0, &says).await;
    assert_eq!(text(reply), r#"{"n":1}"#);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_belongs_to_no_call_is_refused() {
    let (processes, peer) = on_own_pipes().await;
    let call = able("k");
    let complete = Call {
        op: Op::Complete(crate::call::CompletionRef::Prompt("p".into())),
        params: json(r#"{"ref":{"type":"ref/prompt","name":"p"}}"#),
        ..call.clone()
    };
    assert_eq!(text(peer.call(complete, a_route("p")).await), "{}");
    let pipe = processes.made().remove(1);
    // As some servers do right after the handshake (PROTOCOL J6).
    pipe.say(ROOTS);
    let refused = pipe
        .until(|sent| sent.text.contains(r#""id":"r\u0031""#))
        .await;
    assert!(refused.text.contains("-32602"), "{}", refused.text);
    assert_eq!(
        peer.terms
            .dropped
            .load(std::sync::atomic::Ordering::Relaxed),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_only_hears_log_lines_is_never_asked() {
    let (processes, peer) = on_pipes(Isolation::Session, |_, sent| match sent.method.as_str() {
        "completion/complete" => Play::Open,
        _ => Play::Status(202),
    })
    .await;
    let caller = Arc::new(Caller {
        log_level: Some(LogLevel::Info),
        ..Caller::clone(&able("k").caller)
    });
    let complete = Call {
        op: Op::Complete(crate::call::CompletionRef::Prompt("p".into())),
        params: json(r#"{"ref":{"type":"ref/prompt","name":"p"}}"#),
        caller,
        ..able("k")
    };
    let completed = peer.call(complete, a_route("p"));
    let speaking = async {
        while processes.made().len() < 2 {
            tokio::task::yield_now().await;
        }
        let pipe = processes.made().remove(1);
        pipe.until_count("completion/complete", 1).await;
        pipe.say(ROOTS);
        let refused = pipe.until(|sent| sent.method.is_empty()).await;
        pipe.tell(0, &last("{}"));
        refused
    };
    let (reply, refused) = tokio::join!(completed, speaking);
    assert_eq!(text(reply), "{}");
    assert!(refused.text.contains("-32602"), "{}", refused.text);
}
