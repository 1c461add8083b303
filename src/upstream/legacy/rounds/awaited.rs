//! Tests: tools that run only as tasks, for callers who know of none: what becomes of the task once it has asked.

use super::*;
use crate::call::{Origin, Trail};

const TASK: &str = r#"{"task":{"taskId":"local","status":"input_required","createdAt":"c","lastUpdatedAt":"l","ttl":null}}"#;

/// The server says from now on that it runs tools as tasks.
fn comes_to_have_tasks(peer: &Legacy) {
    let card = ServerCard {
        revision: Revision::V2025_11_25,
        capabilities: Json::literal(r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#),
        ..ServerCard::clone(&peer.card())
    };
    assert!(peer.opening.card_cache.learn(card));
}

/// A server whose tool is a task that waits for its caller, and whose results are played by hand.
async fn a_task() -> (Arc<Scripted>, Arc<Legacy>) {
    let (transport, peer) = over_http(&an_address(), |sent| match sent.method.as_str() {
        "tools/call" => result(TASK),
        "tasks/result" => Play::Open,
        "tasks/cancel" => result("{}"),
        _ => Play::Status(202),
    })
    .await;
    comes_to_have_tasks(&peer);
    (transport, Arc::new(peer))
}

fn only_as_a_task() -> Route {
    Route {
        task_only: true,
        ..a_route("t")
    }
}

/// Calls the tool while the server says this on the stream of its result.
async fn called(
    transport: &Arc<Scripted>,
    peer: &Arc<Legacy>,
    call: Call,
    says: &[&str],
) -> Result<Reply, UpstreamError> {
    let carried = peer.call(call, only_as_a_task());
    let speaking = async {
        transport.until_count("tasks/result", 1).await;
        for text in says {
            transport.tell(0, text);
        }
    };
    tokio::join!(carried, speaking).0
}

/// The task was cancelled, once.
async fn is_cancelled(transport: &Arc<Scripted>) {
    transport.until_count("tasks/cancel", 1).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let told = transport.sent_of("tasks/cancel");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].params, r#"{"taskId":"local"}"#);
    assert_eq!(told[0].header("mcp-session-id"), Some("s1"));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_caller_does_not_come_back_is_cancelled_with_the_call() {
    let (transport, peer) = a_task().await;
    let began = Instant::now();
    asked(called(&transport, &peer, able("k"), &[ELICIT]).await);
    tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
    assert!(transport.sent_of("tasks/cancel").is_empty());
    transport.until_count("tasks/cancel", 1).await;
    assert!(began.elapsed() < PATIENCE + Duration::from_secs(5));
    is_cancelled(&transport).await;
    assert_eq!(peer.parked_calls.len(), 0);
}

/// A server whose tool is a task at work, and which answers looks at it so, one after the other and the last one ever after.
async fn at_work(looks: Vec<Play>) -> (Arc<Scripted>, Arc<Legacy>) {
    let mut looked = 0;
    let (transport, peer) = over_http(&an_address(), move |sent| match sent.method.as_str() {
        "tools/call" => result(TASK.replace("input_required", "working")),
        "tasks/get" => {
            let look = looks.get(looked).or(looks.last()).unwrap();
            looked += 1;
            look.clone()
        }
        "tasks/result" => result(r#"{"n":1}"#),
        _ => result("{}"),
    })
    .await;
    comes_to_have_tasks(&peer);
    (transport, Arc::new(peer))
}

#[tokio::test(start_paused = true)]
async fn a_look_at_a_task_that_is_sent_again_is_no_sending_of_its_tool() {
    let done =
        r#"{"taskId":"local","status":"completed","createdAt":"c","lastUpdatedAt":"l","ttl":null}"#;
    let (transport, peer) = at_work(vec![Play::Status(404), result(done)]).await;
    let trail = Trail::of(Origin::default());
    let call = Call {
        trail: trail.clone(),
        ..able("k")
    };
    assert_eq!(text(peer.call(call, only_as_a_task()).await), r#"{"n":1}"#);
    assert_eq!(transport.sent_of("tasks/get").len(), 2);
    assert_eq!(trail.read(|facts| facts.attempts), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_waited_for_outlives_looks_at_it_that_bring_no_answer() {
    let state = |status: &str| {
        let state =
            r#"{"taskId":"local","status":"now","createdAt":"c","lastUpdatedAt":"l","ttl":null}"#;
        result(state.replace("now", status))
    };
    let cut = Play::Stream(
        vec![(
            0,
            note("notifications/message", r#"{"level":"error","data":1}"#),
        )],
        false,
    );
    let looks = vec![
        Play::Status(503),
        cut,
        Play::Status(503),
        state("working"),
        Play::Fail(UpstreamError::Timeout(Deadline::Silence)),
        state("completed"),
    ];
    let (transport, peer) = at_work(looks).await;
    assert_eq!(
        text(peer.call(able("k"), only_as_a_task()).await),
        r#"{"n":1}"#
    );
    assert_eq!(transport.sent_of("tasks/get").len(), 6);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(transport.sent_of("tasks/cancel").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_waited_for_is_given_up_when_its_server_stays_away_or_says_no() {
    let (transport, peer) = at_work(vec![Play::Status(503)]).await;
    let began = Instant::now();
    let call = Call {
        deadline: began + Duration::from_secs(3600),
        ..able("k")
    };
    let reply = peer.call(call, only_as_a_task()).await;
    assert!(
        matches!(reply, Err(UpstreamError::Unavailable { .. })),
        "{reply:?}"
    );
    assert_eq!(transport.sent_of("tasks/get").len(), 6);
    assert!(began.elapsed() > Duration::from_secs(30) && began.elapsed() < Duration::from_secs(60));
    is_cancelled(&transport).await;
    // An error of its own is an answer.
    let (transport, peer) = at_work(vec![Play::Error(200, -32603, "")]).await;
    let reply = peer.call(able("k"), only_as_a_task()).await;
    assert!(
        matches!(reply, Ok(Reply::Done(Outcome::Failed(_)))),
        "{reply:?}"
    );
    assert_eq!(transport.sent_of("tasks/get").len(), 1);
}

/// While the session can still be spoken on.
#[tokio::test(start_paused = true)]
async fn a_task_that_asked_is_cancelled_before_the_session_of_its_caller_is_left() {
    let (transport, peer) = a_task().await;
    let call = able("k");
    asked(called(&transport, &peer, call.clone(), &[ELICIT]).await);
    call.caller.affinity.ended.as_ref().unwrap().cancel();
    while transport.ended.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(transport.sent_of("tasks/cancel").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_answered_is_cancelled_when_its_caller_goes_and_not_when_it_ends() {
    for ends in [true, false] {
        let (transport, peer) = a_task().await;
        let call = able("k");
        let asked = asked(called(&transport, &peer, call.clone(), &[ELICIT]).await);
        let key = asked.requests.root().members().next().unwrap().key;
        let answer = format!(r#"{{"{key}":{{"action":"accept"}}}}"#);
        let going_on = peer.call(again(&call, &asked, &answer), only_as_a_task());
        if ends {
            let speaking = async {
                transport.until_count("", 1).await;
                transport.tell(0, &last(r#"{"n":1}"#));
            };
            assert_eq!(text(tokio::join!(going_on, speaking).0), r#"{"n":1}"#);
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert!(transport.sent_of("tasks/cancel").is_empty());
        } else {
            let gone = tokio::time::timeout(Duration::from_secs(1), going_on).await;
            assert!(gone.is_err());
            is_cancelled(&transport).await;
        }
    }
}

/// What cannot be read is no answer: whether the caller is asked meanwhile, or is told of the end on a stream.
#[tokio::test(start_paused = true)]
async fn a_task_whose_result_is_lost_is_cancelled_at_once() {
    let foreign = r#"{"jsonrpc":"2.0","id":99,"result":{}}"#;
    let (transport, peer) = a_task().await;
    let before = Instant::now();
    asked(called(&transport, &peer, able("k"), &[ELICIT]).await);
    transport.tell(0, foreign);
    transport.until_count("tasks/cancel", 1).await;
    assert!(before.elapsed() < Duration::from_secs(5));
    is_cancelled(&transport).await;

    let line = note("notifications/message", r#"{"level":"error","data":1}"#);
    for declared in [ALL, "{}"] {
        let (transport, peer) = a_task().await;
        let mut call = able_to("k", declared);
        Arc::make_mut(&mut call.caller).log_level = Some(LogLevel::Info);
        let reply = called(&transport, &peer, call, &[&line, foreign]).await;
        let Ok(Reply::Stream(stream)) = reply else {
            panic!("{reply:?}")
        };
        let steps: Vec<_> = stream.collect().await;
        assert!(matches!(
            steps[..],
            [Step::Event(Event::Log(..)), Step::Outcome(Outcome::Lost(_))]
        ));
        transport.until_count("tasks/cancel", 1).await;
    }
}
