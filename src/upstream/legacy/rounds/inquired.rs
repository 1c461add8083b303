//! Tests: tasks of this era whose callers are of the other: what they ask waits to be looked at, and to be answered.

use super::*;
use crate::call::TaskOp;

/// A question of two, the other being [`ELICIT`].
const SECOND: &str = r#"{"jsonrpc":"2.0","id":8,"method":"elicitation/create","params":{"message":"n","requestedSchema":{"type":"object","properties":{}}}}"#;
const ASKS: &str = r#"{"taskId":"local","status":"input_required","createdAt":"c","lastUpdatedAt":"l","ttl":null}"#;

/// A server whose one task asks, on the stream of its result, what is told there; its tools never answer.
async fn asking(spec: &UpstreamSpec) -> (Arc<Scripted>, Arc<Legacy>) {
    let (transport, peer) = over_http(spec, |sent| match sent.method.as_str() {
        "tasks/get" => result(ASKS),
        "tasks/result" => Play::Open,
        "tools/call" => Play::Hang,
        _ => Play::Status(202),
    })
    .await;
    (transport, Arc::new(peer))
}

fn about(op: TaskOp, params: &str) -> Call {
    Call {
        op: Op::Task(op, "h".into()),
        params: json(params),
        ..able("k")
    }
}

/// What the task says of itself to whoever looks.
async fn look(peer: &Arc<Legacy>) -> Json {
    let look = peer.call(about(TaskOp::Get, r#"{"taskId":"h"}"#), a_route("local"));
    json(&text(look.await))
}

/// The keys of what is asked in this state.
fn keys(state: &Json) -> Vec<String> {
    let asked = state.root().member("inputRequests").unwrap();
    asked.members().map(|asked| asked.key.into()).collect()
}

/// Looks at the task while its server asks on the `nth` stream; the key of the question.
async fn looked_at(transport: &Arc<Scripted>, peer: &Arc<Legacy>, nth: usize) -> String {
    let speaking = async {
        transport.until_count("tasks/result", nth + 1).await;
        transport.tell(nth, ELICIT);
    };
    let (state, ()) = tokio::join!(look(peer), speaking);
    keys(&state).remove(0)
}

async fn answered(peer: &Arc<Legacy>, key: &str) -> Result<Reply, UpstreamError> {
    let params = format!(
        r#"{{"taskId":"h","inputResponses":{{"{key}":{{"action":"accept","content":{{}}}}}}}}"#
    );
    peer.call(about(TaskOp::Update, &params), a_route("local"))
        .await
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_there_was_no_room_for_can_be_brought_again() {
    let spec = UpstreamSpec {
        concurrency: 1,
        ..an_address()
    };
    let (transport, peer) = asking(&spec).await;
    let key = looked_at(&transport, &peer, 0).await;
    let mut busy = peer.call(able("k"), a_route("t"));
    assert!(futures_util::poll!(busy.as_mut()).is_pending());
    let refused = answered(&peer, &key).await;
    assert!(matches!(refused, Err(UpstreamError::Overloaded)));
    drop(busy);
    assert_eq!(text(answered(&peer, &key).await), "{}");
    let told = transport.until(|sent| sent.method.is_empty()).await;
    assert!(told.text.contains(r#""action":"accept""#), "{}", told.text);
}

/// PROTOCOL D3: unique for the task's life.
#[tokio::test(start_paused = true)]
async fn what_a_task_asks_is_never_known_by_a_key_of_an_earlier_question() {
    let (transport, peer) = asking(&an_address()).await;
    let first = looked_at(&transport, &peer, 0).await;
    assert_eq!(text(answered(&peer, &first).await), "{}");
    transport.until_count("", 1).await;
    // Its result is read anew, and there it asks again.
    transport.tell(0, &last("{}"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = looked_at(&transport, &peer, 1).await;
    assert_ne!(first, second);
    // A late answer to the first is none to the second.
    assert_eq!(text(answered(&peer, &first).await), "{}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(answers(&transport).len(), 1);
}

/// On a pipe, others are asked first.
#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_listened_to_yet_is_looked_at_again_and_not_refused() {
    let (processes, peer) = on_pipes(Isolation::Session, |_, sent| match sent.method.as_str() {
        "tools/call" => Play::Open,
        "tasks/get" => result(ASKS),
        _ => Play::Status(202),
    })
    .await;
    let peer = Arc::new(peer);
    let (_pipe, first) = asked_on_own_pipe(&processes, &peer, able("k")).await;
    asked(first);
    let look = peer.call(about(TaskOp::Get, r#"{"taskId":"h"}"#), a_route("local"));
    let state = text(look.await);
    assert!(state.contains(r#""inputRequests":{}"#), "{state}");
}

/// Nothing is known of what it asks, for nothing was heard.
#[tokio::test(start_paused = true)]
async fn a_task_that_there_is_no_room_to_listen_to_is_not_said_to_ask_nothing() {
    let spec = UpstreamSpec {
        concurrency: 1,
        ..an_address()
    };
    let (transport, peer) = over_http(&spec, |sent| match sent.method.as_str() {
        "tasks/get" => Play::After(1, Box::new(result(ASKS))),
        "tools/call" => Play::Hang,
        _ => Play::Status(202),
    })
    .await;
    let look = peer.call(about(TaskOp::Get, r#"{"taskId":"h"}"#), a_route("local"));
    // Its turn comes between the two requests about the task.
    let busy = peer.call(able("k"), a_route("t"));
    let reply = tokio::select! {
        biased;
        reply = look => reply,
        _ = busy => panic!(),
    };
    assert!(matches!(reply, Err(UpstreamError::Overloaded)), "{reply:?}");
    assert_eq!(transport.sent_of("tools/call").len(), 1);
    assert!(transport.sent_of("tasks/result").is_empty());
}

/// PROTOCOL D6: what is said twice does nothing twice.
#[tokio::test]
async fn what_is_asked_of_a_task_is_asked_again_where_its_session_was_forgotten() {
    let over = ASKS.replace("input_required", "completed");
    let (transport, peer) = over_http(&an_address(), move |sent| {
        let session = sent.header("mcp-session-id").unwrap();
        match (sent.method.as_str(), session) {
            ("tasks/get", "s1") | ("tasks/result", "s2") => Play::Status(404),
            ("tasks/get", _) => result(over.clone()),
            _ => result(r#"{"n":1}"#),
        }
    })
    .await;
    let state = look(&Arc::new(peer)).await;
    let found = state.root().member("result").unwrap();
    assert_eq!(found.raw(), r#"{"n":1}"#);
    assert_eq!(transport.sent_of("initialize").len(), 4);
}

/// SECURITY STATE-3: each look declares for itself what may be asked.
#[tokio::test(start_paused = true)]
async fn what_a_task_asks_is_told_to_who_declared_that_and_the_rest_waits() {
    let (transport, peer) = asking(&an_address()).await;
    let speaking = async {
        transport.until_count("tasks/result", 1).await;
        transport.tell(0, ELICIT);
        transport.tell(0, ROOTS);
    };
    let (state, ()) = tokio::join!(look(&peer), speaking);
    let both = keys(&state);
    for (declared, told) in [
        (r#"{"roots":{}}"#, &both[1..]),
        (r#"{"elicitation":{"url":{}}}"#, &both[2..]),
        ("{}", &both[2..]),
        (r#"{"elicitation":{},"roots":{}}"#, &both[..]),
    ] {
        let call = Call {
            caller: able_to("k", declared).caller,
            ..about(TaskOp::Get, r#"{"taskId":"h"}"#)
        };
        let state = json(&text(peer.call(call, a_route("local")).await));
        assert_eq!(keys(&state), told, "{declared}");
    }
    assert_eq!(transport.sent_of("tasks/result").len(), 1);
    assert_eq!(answers(&transport), Vec::<String>::new());
}

/// PROTOCOL D2b, D3: nobody said `cancel`.
#[tokio::test(start_paused = true)]
async fn looks_at_once_have_the_server_asked_once_and_nothing_answered() {
    let (transport, peer) = asking(&an_address()).await;
    let speaking = async {
        transport.until_count("tasks/get", 3).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let streams = transport.sent_of("tasks/result").len();
        (0..streams).for_each(|nth| transport.tell(nth, ELICIT));
    };
    let looks = async { tokio::join!(look(&peer), look(&peer), look(&peer)) };
    let ((first, second, third), ()) = tokio::join!(looks, speaking);
    assert_eq!(keys(&first).len(), 1);
    assert_eq!(first.as_str(), second.as_str());
    assert_eq!(first.as_str(), third.as_str());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(transport.sent_of("tasks/result").len(), 1);
    assert_eq!(answers(&transport), Vec::<String>::new());
    // Whoever looked first may be gone before the answer.
    assert_eq!(text(answered(&peer, &keys(&second)[0]).await), "{}");
    transport.until_count("", 1).await;
    assert!(answers(&transport)[0].contains(r#""action":"accept""#));
}

/// A look that its caller lets go of leaves the question to the next.
#[tokio::test(start_paused = true)]
async fn a_look_that_is_let_go_of_keeps_nobody_from_the_next() {
    let (transport, peer) = asking(&an_address()).await;
    let gone = tokio::time::timeout(Duration::from_secs(1), look(&peer)).await;
    assert!(gone.is_err());
    let key = looked_at(&transport, &peer, 1).await;
    assert_eq!(text(answered(&peer, &key).await), "{}");
    transport.until_count("", 1).await;
    assert_eq!(answers(&transport).len(), 1);
}

/// PROTOCOL D3: answers to keys that are not outstanding are ignored.
#[tokio::test(start_paused = true)]
async fn an_answer_to_another_key_leaves_the_question_where_it_is() {
    let (transport, peer) = asking(&an_address()).await;
    let key = looked_at(&transport, &peer, 0).await;
    for other in ["other", "ask-1"] {
        assert_eq!(text(answered(&peer, other).await), "{}");
        assert_eq!(keys(&look(&peer).await), [key.as_str()]);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(transport.sent_of("tasks/result").len(), 1);
    assert_eq!(answers(&transport), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_look_while_an_answer_is_brought_does_not_have_the_rest_asked_again() {
    let (transport, peer) = asking(&an_address()).await;
    let speaking = async {
        transport.until_count("tasks/result", 1).await;
        transport.tell(0, ELICIT);
        transport.tell(0, SECOND);
    };
    let (state, ()) = tokio::join!(look(&peer), speaking);
    let both = keys(&state);
    assert_eq!(both.len(), 2);
    // One of the two: the other is still asked, by the same key.
    assert_eq!(text(answered(&peer, &both[0]).await), "{}");
    assert_eq!(keys(&look(&peer).await), both[1..]);
    // Both: whatever its server still says of it, it is not asked for what it asks again.
    assert_eq!(text(answered(&peer, &both[1]).await), "{}");
    let state = look(&peer).await;
    let status = state.root().member("status").unwrap();
    assert_eq!(status.as_str().as_deref(), Some("working"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(transport.sent_of("tasks/result").len(), 1);
    let told = answers(&transport);
    assert_eq!(told.len(), 2);
    assert!(
        told.iter()
            .all(|told| told.contains(r#""action":"accept""#))
    );
}

/// Its server may not have had them.
#[tokio::test(start_paused = true)]
async fn a_task_that_still_asks_long_after_its_answers_is_asked_again() {
    let (transport, peer) = asking(&an_address()).await;
    let key = looked_at(&transport, &peer, 0).await;
    assert_eq!(text(answered(&peer, &key).await), "{}");
    transport.until_count("", 1).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let again = looked_at(&transport, &peer, 1).await;
    assert_ne!(key, again);
    // What is asked on the stream that was answered has been asked on the other, and is not answered for anybody.
    transport.tell(0, SECOND);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(keys(&look(&peer).await), [again]);
    assert_eq!(answers(&transport).len(), 1);
}

/// The task outlives whoever looks at it: its next reader is asked again (PROTOCOL D3).
#[tokio::test(start_paused = true)]
async fn nobody_answers_for_a_person_whose_task_goes_on() {
    for way in ["stopping", "leaving", "waiting", "losing"] {
        let (transport, peer) = asking(&an_address()).await;
        let call = about(TaskOp::Get, r#"{"taskId":"h"}"#);
        let speaking = async {
            transport.until_count("tasks/result", 1).await;
            transport.tell(0, ELICIT);
        };
        let (state, ()) = tokio::join!(peer.call(call.clone(), a_route("local")), speaking);
        assert_eq!(keys(&json(&text(state))).len(), 1);
        assert_eq!(peer.parked_calls.len(), 1);
        match way {
            "stopping" => peer.close().await,
            "leaving" => call.caller.affinity.ended.as_ref().unwrap().cancel(),
            "waiting" => tokio::time::sleep(PATIENCE).await,
            _ => transport.tell(0, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#),
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(answers(&transport), Vec::<String>::new(), "{way}");
        assert_eq!(transport.sent_of("tasks/cancel").len(), 0);
        assert_eq!(peer.parked_calls.len(), usize::from(way == "losing"));
        if way == "waiting" {
            looked_at(&transport, &peer, 1).await;
        }
    }
}
