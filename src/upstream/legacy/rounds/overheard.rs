//! Tests: what servers say on the own stream of a caller's session, and to whom that belongs (PROTOCOL B4, D0.4).

use futures_util::future::BoxFuture;

use super::{super::ear::HEAD, *};
use crate::{
    call::ReplyStream,
    upstream::{Reached, scripted::last},
};

/// Begins a call, which goes out as the `nth`, counted from 1.
async fn out<'a>(
    transport: &Scripted,
    peer: &'a Legacy,
    call: Call,
    nth: usize,
) -> BoxFuture<'a, Result<Reply, UpstreamError>> {
    let mut call = peer.call(call, a_route("t"));
    let goes = transport.until_count("tools/call", nth);
    tokio::select! {
        biased;
        _ = &mut call => panic!("answered"),
        () = goes => {}
    }
    call
}

/// How the question of this id was refused.
async fn refused(transport: &Scripted, id: &str) -> String {
    let id = format!(r#""id":{id},"#);
    let told = transport.until(|sent| sent.method.is_empty() && sent.text.contains(&id));
    let told = told.await.text;
    assert!(told.contains(r#""error":{"code":-32602"#), "{told}");
    told
}

fn asking(id: u32) -> String {
    ELICIT.replace(r#""id":7"#, &format!(r#""id":{id}"#))
}

#[tokio::test(start_paused = true)]
async fn a_question_on_the_sessions_own_stream_is_put_to_the_only_call_in_flight() {
    for isolation in [Isolation::Session, Isolation::Principal] {
        let spec = UpstreamSpec {
            isolation,
            ..an_address()
        };
        let (transport, peer) = played(&spec).await;
        let call = able("k");
        let carried = out(&transport, &peer, call.clone(), 1).await;
        transport.say(ELICIT);
        let asked = asked(carried.await);
        assert_eq!(transport.opened(), 1);
        // While its caller thinks, too.
        transport.say(ROOTS);
        let answers_both = again(&call, &asked, r#"{"ask-1":{"action":"accept"}}"#);
        let rest = super::asked(peer.call(answers_both, a_route("t")).await);
        assert!(rest.requests.root().member("ask-2").is_some());
        let going_on = peer.call(
            again(&call, &rest, r#"{"ask-2":{"roots":[]}}"#),
            a_route("t"),
        );
        let speaking = async {
            transport.until_count("", 2).await;
            transport.tell(0, &last("{}"));
        };
        let (reply, ()) = tokio::join!(going_on, speaking);
        assert_eq!(text(reply), "{}");
        let told = answers(&transport);
        assert!(
            told[0].contains(r#""id":7,"result":{"action":"accept"}"#),
            "{told:?}"
        );
        assert!(
            told[1].contains(r#""id":"r\u0031","result":{"roots":[]}"#),
            "{told:?}"
        );
        assert_eq!(transport.sent_of("tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_there_is_refused_at_once_where_no_call_or_more_than_one_is_in_flight() {
    let (transport, peer) = played(&an_address()).await;
    let first = out(&transport, &peer, able("k"), 1).await;
    let second = out(&transport, &peer, able("k"), 2).await;
    transport.say(&asking(11));
    let told = refused(&transport, "11").await;
    assert!(told.contains("does not say to which of them"), "{told}");
    transport.tell(0, &last("{}"));
    assert_eq!(text(first.await), "{}");
    transport.say(ELICIT);
    asked(second.await);
    let (transport, peer) = played(&an_address()).await;
    let only = out(&transport, &peer, able("k"), 1).await;
    transport.tell(0, &last("{}"));
    assert_eq!(text(only.await), "{}");
    transport.say(&asking(12));
    let told = refused(&transport, "12").await;
    assert!(told.contains("no call in progress"), "{told}");
    // Pings are answered, as everywhere.
    transport.say(r#"{"jsonrpc":"2.0","id":13,"method":"ping"}"#);
    transport
        .until(|sent| sent.text.contains(r#""id":13,"result":{}"#))
        .await;
    assert_eq!(transport.opened(), 1);
}

/// Its server may ask once more before it knows, and that would look like the next call's question.
#[tokio::test(start_paused = true)]
async fn what_a_call_that_is_given_up_may_still_ask_there_is_put_to_no_other() {
    let (transport, peer) = played(&an_address()).await;
    drop(out(&transport, &peer, able("k"), 1).await);
    transport.say(&asking(11));
    refused(&transport, "11").await;
    let second = out(&transport, &peer, able("k"), 2).await;
    transport.say(&asking(12));
    refused(&transport, "12").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    transport.say(ELICIT);
    asked(second.await);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_its_call_did_not_live_to_read_is_refused() {
    let (transport, peer) = played(&an_address()).await;
    let call = out(&transport, &peer, able("k"), 1).await;
    transport.say(&asking(11));
    // It reaches the call, which is not polled.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(answers(&transport).is_empty());
    drop(call);
    refused(&transport, "11").await;
}

#[tokio::test(start_paused = true)]
async fn where_all_share_a_session_a_question_on_its_own_stream_is_nobodys() {
    let spec = UpstreamSpec {
        isolation: Isolation::Shared,
        ..an_address()
    };
    let (transport, peer) = played(&spec).await;
    let call = out(&transport, &peer, able("k"), 1).await;
    transport.say(&asking(11));
    refused(&transport, "11").await;
    transport.tell(0, &last("{}"));
    assert_eq!(text(call.await), "{}");
}

#[tokio::test(start_paused = true)]
async fn lines_and_progress_there_are_told_on_the_call_that_they_can_belong_to() {
    let (transport, peer) = played(&an_address()).await;
    let wanting = || {
        let call = able("k");
        let caller = Caller {
            log_level: Some(LogLevel::Info),
            ..Caller::clone(&call.caller)
        };
        Call {
            caller: caller.into(),
            wants_progress: true,
            ..call
        }
    };
    let line = |data: u32| {
        let params = format!(r#"{{"level":"info","data":{data}}}"#);
        note("notifications/message", &params)
    };
    let first = out(&transport, &peer, wanting(), 1).await;
    transport.say(&line(1));
    let Ok(Reply::Stream(mut first)) = first.await else {
        panic!()
    };
    let Some(Step::Event(Event::Log(LogLevel::Info, told))) = first.next().await else {
        panic!()
    };
    assert!(told.as_str().contains(r#""data":1"#));
    let second = out(&transport, &peer, wanting(), 2).await;
    let dropped = || {
        peer.terms
            .dropped
            .load(std::sync::atomic::Ordering::Relaxed)
    };
    let before = dropped();
    transport.say(&line(2));
    let number = id_of(&transport.sent_of("tools/call")[1]);
    let params = format!(r#"{{"progressToken":{number},"progress":1}}"#);
    transport.say(&note("notifications/progress", &params));
    let Ok(Reply::Stream(mut second)) = second.await else {
        panic!()
    };
    let told = second.next().await;
    assert!(
        matches!(told, Some(Step::Event(Event::Progress(_)))),
        "{told:?}"
    );
    assert_eq!(dropped(), before + 1);
    for (nth, stream) in [&mut first, &mut second].into_iter().enumerate() {
        transport.tell(nth, &last("{}"));
        let told = stream.next().await;
        assert!(
            matches!(told, Some(Step::Outcome(Outcome::Complete(_)))),
            "{told:?}"
        );
    }
}

/// A call that wants to hear of progress, and can be asked nothing.
fn wanting_progress() -> Call {
    Call {
        wants_progress: true,
        ..able_to("k", "{}")
    }
}

/// Progress of the call that went out as the `nth`, counted from 0.
fn progress(transport: &Scripted, nth: usize) -> String {
    let number = id_of(&transport.sent_of("tools/call")[nth]);
    let params = format!(r#"{{"progressToken":{number},"progress":1}}"#);
    note("notifications/progress", &params)
}

/// The call's events, of which the first is progress.
async fn progressing(reply: Result<Reply, UpstreamError>) -> ReplyStream {
    let Ok(Reply::Stream(mut stream)) = reply else {
        panic!("{reply:?}")
    };
    let told = stream.next().await;
    assert!(
        matches!(told, Some(Step::Event(Event::Progress(_)))),
        "{told:?}"
    );
    stream
}

#[tokio::test(start_paused = true)]
async fn who_wants_progress_hears_of_it_on_the_sessions_own_stream_too() {
    let (transport, peer) = played(&an_address()).await;
    let call = out(&transport, &peer, wanting_progress(), 1).await;
    assert_eq!(transport.opened(), 1);
    transport.say(&progress(&transport, 0));
    let mut call = progressing(call.await).await;
    transport.tell(0, &last("{}"));
    let told = call.next().await;
    assert!(
        matches!(told, Some(Step::Outcome(Outcome::Complete(_)))),
        "{told:?}"
    );
}

/// As servers do that have one queue for a session, and write what is in it to any answer that is open.
#[tokio::test(start_paused = true)]
async fn progress_in_the_answer_to_another_call_of_the_session_is_told_to_its_own() {
    let (transport, peer) = played(&an_address()).await;
    let one = out(&transport, &peer, wanting_progress(), 1).await;
    let other = out(&transport, &peer, wanting_progress(), 2).await;
    let dropped = || {
        peer.terms
            .dropped
            .load(std::sync::atomic::Ordering::Relaxed)
    };
    let before = dropped();
    transport.tell(1, &progress(&transport, 0));
    transport.tell(1, &last("{}"));
    let (one, other) = tokio::join!(one, other);
    progressing(one).await;
    assert_eq!(text(other), "{}");
    assert_eq!(dropped(), before);
}

#[tokio::test(start_paused = true)]
async fn a_question_there_that_is_taken_back_is_taken_back_from_its_caller() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let carried = out(&transport, &peer, call.clone(), 1).await;
    transport.say(ELICIT);
    transport.say(ROOTS);
    let asked = asked(carried.await);
    transport.say(&note("notifications/cancelled", r#"{"requestId":7}"#));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let rest = peer.call(again(&call, &asked, "{}"), a_route("t")).await;
    let rest = super::asked(rest);
    let keys: Vec<_> = rest.requests.root().members().map(|it| it.key).collect();
    assert_eq!(keys, ["ask-2"]);
}

/// Though something was heard of its call before.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_forgotten_when_its_call_is_answered_is_told_as_that_and_used_no_more() {
    for answer in [
        Play::Status(404),
        Play::Error(404, -32001, ""),
        Play::Error(400, -32001, ""),
    ] {
        let mut answer = Some(Play::After(5, Box::new(answer)));
        let (transport, peer) = over_http(&an_address(), move |sent| match sent.method.as_str() {
            "tools/call" => answer.take().unwrap_or_else(|| result("{}")),
            "" | "notifications/cancelled" => Play::Status(202),
            _ => result("{}"),
        })
        .await;
        let peer = Arc::new(peer);
        let call = out(&transport, &peer, able("k"), 1).await;
        // It is about nothing that was asked, and still something that is heard.
        transport.say(&note("notifications/cancelled", r#"{"requestId":99}"#));
        let error = call.await.unwrap_err();
        let is_told = matches!(
            error,
            UpstreamError::Unavailable {
                reached: Reached::Forgotten,
                ..
            }
        );
        assert!(is_told, "{error}");
        assert_eq!(transport.sent_of("tools/call").len(), 1);
        let before = transport.sent_of("initialize").len();
        let next = peer.call(able("k"), a_route("t")).await;
        assert_eq!(text(next), "{}");
        assert_eq!(transport.sent_of("initialize").len(), before + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_call_waits_until_the_stream_stands_and_no_longer_than_a_second() {
    for (takes, waits) in [
        (Duration::from_millis(300), Duration::from_millis(300)),
        (Duration::from_secs(60), HEAD),
    ] {
        let (transport, peer) = played(&an_address()).await;
        *transport.own_takes.lock().unwrap() = takes;
        let began = Instant::now();
        let first = out(&transport, &peer, able("k"), 1).await;
        assert_eq!(began.elapsed(), waits);
        let _second = out(&transport, &peer, able("k"), 2).await;
        assert_eq!(began.elapsed(), waits);
        drop(first);
    }
    // Who can be asked nothing waits for nothing.
    let (transport, peer) = played(&an_address()).await;
    let _call = out(&transport, &peer, able_to("k", "{}"), 1).await;
    assert_eq!(transport.opened(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_stream_is_opened_again_when_it_ends_and_no_more_when_its_session_has() {
    let (transport, peer) = played(&an_address()).await;
    let call = able("k");
    let ended = call.caller.affinity.ended.clone().unwrap();
    let carried = out(&transport, &peer, call, 1).await;
    transport.cut();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(transport.opened(), 2);
    transport.say(ELICIT);
    asked(carried.await);
    ended.cancel();
    transport.until_count("notifications/cancelled", 1).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(*transport.ended.lock().unwrap(), ["s1"]);
    // Nobody reads it.
    transport.say(&asking(11));
    transport.cut();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(transport.opened(), 2);
    assert!(
        !answers(&transport)
            .iter()
            .any(|it| it.contains(r#""id":11"#))
    );
}

/// Sessions that ask again and again would fill the room that others need.
#[tokio::test(start_paused = true)]
async fn a_stream_is_asked_for_again_unless_it_was_refused_for_good() {
    for (status, opened) in [
        (400, 1),
        (403, 1),
        (410, 1),
        (501, 1),
        (401, 2),
        (409, 2),
        (429, 2),
        (500, 2),
        (503, 2),
    ] {
        let (transport, peer) = played(&an_address()).await;
        let _carried = out(&transport, &peer, able("k"), 1).await;
        let refused = match status {
            401 | 403 => UpstreamError::denied(status),
            status => UpstreamError::away("", http::StatusCode::from_u16(status).unwrap()),
        };
        transport.shut(&["s1"], &refused);
        transport.cut();
        tokio::time::sleep(Duration::from_secs(5)).await;
        transport.unshut();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(transport.opened(), opened, "{status}");
    }
}
