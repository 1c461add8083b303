//! Tasks of this era whose callers are of the other: what they ask waits to be looked at, and to be answered.

use super::*;
use crate::call::TaskOp;

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

/// Looks at the task while its server asks on the `nth` stream; the key of the question.
async fn looked_at(transport: &Arc<Scripted>, peer: &Arc<Legacy>, nth: usize) -> String {
    let look = peer.call(about(TaskOp::Get, r#"{"taskId":"h"}"#), a_route("local"));
    let speaking = async {
        transport.until_count("tasks/result", nth + 1).await;
        transport.tell(nth, ELICIT);
    };
    let (reply, ()) = tokio::join!(look, speaking);
    let state = json(&text(reply));
    let asked = state.root().member("inputRequests").unwrap();
    let question = asked.members().next().unwrap();
    question.key.into_owned()
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
