//! A server that dies with a task in flight: whoever waits gets one answer, and no tool is run twice (acceptance 5).

use futures_util::future::join_all;

use super::{ASKABLE, EXTENSION, about, alone, core_at, inquiring, known, modern_at, text};
use crate::harness::{Answer, Heard, Pairing, Play, Revision, Upstream, eventually, member, quote};

/// Who waits at the same time.
const WAITING: usize = 5;

/// A task that goes on for ever, in the words of either design.
fn working(heard: &Heard) -> Play {
    known(
        heard,
        r#"{"taskId":"local-7","status":"working","createdAt":"c","lastUpdatedAt":"l","ttl":60000,"ttlMs":60000,"pollInterval":50,"pollIntervalMs":50}"#,
    )
}

/// A server whose tool `slow` becomes a task that never ends.
fn endless(revision: Revision, piped: bool) -> Upstream {
    let server = if piped {
        Upstream::pipe(revision)
    } else {
        Upstream::http(revision)
    };
    let server = if revision == Revision::V2026_07_28 {
        modern_at(server)
    } else {
        core_at(server).on("tasks/result", |_| Play::Hang)
    };
    server.on("tasks/get", working)
}

/// One response, whatever it says, and nothing after it.
fn answered_once(answer: &Answer) {
    let frames = answer.frames.iter();
    let responses = frames.filter(|frame| member(frame, "method").is_none());
    assert_eq!(responses.count(), 1, "{answer:?}");
}

/// One response that says no.
fn refused_once(answer: &Answer) {
    answered_once(answer);
    if member(answer.message(), "error").is_none() {
        let result = answer.value();
        assert_eq!(result["isError"], true, "{result}");
    }
}

/// How often the tool was run.
fn runs(notes: &Upstream) -> usize {
    let calls = notes.heard("tools/call").into_iter();
    calls
        .filter(|call| call.text("name").as_deref() == Some("slow"))
        .count()
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "a legacy client has no task of a modern server";
    /// Feature: Server lost with a task in flight
    async fn everybody_who_waits_for_a_task_of_a_dead_server_is_answered_once(pair: Pairing) {
        for piped in [false, true] {
            let notes = endless(pair.upstream, piped);
            let modern = pair.client_is_modern();
            let able = if modern { EXTENSION } else { "{}" };
            let (gateway, client) = alone(&notes, pair.client, able).await;
            let wish = if modern { "" } else { r#","task":{}"# };
            let params = format!(r#"{{"name":"notes_slow","arguments":{{}}{wish}}}"#);
            let made = client.ask("tools/call", &params).await.value();
            let handle = text(if modern { &made["taskId"] } else { &made["task"]["taskId"] });
            // One design waits for the result, the other looks at the state.
            let method = if modern { "tasks/get" } else { "tasks/result" };
            notes.now_on(method, |_| Play::Hang);
            let waiting = join_all((0..WAITING).map(|_| about(&client, method, &handle)));
            let killing = async {
                notes.until_heard(method, WAITING).await;
                notes.down();
            };
            let (answers, ()) = tokio::join!(waiting, killing);
            answers.iter().for_each(refused_once);
            // Nor is anything else about it left open while the server is away.
            for method in ["tasks/get", "tasks/cancel"] {
                refused_once(&about(&client, method, &handle).await);
            }
            notes.now_on("tasks/get", working);
            notes.up();
            // The handle outlives the connection: what becomes of the task is its server's to say.
            eventually("the task is there again", async || {
                let well = gateway.state("notes") == "ready";
                let state = about(&client, "tasks/get", &handle).await;
                (well && state.message().contains("working")).then_some(())
            })
            .await;
            assert_eq!(runs(&notes), 1, "run again");
        }
    }
}

#[tokio::test]
async fn a_tool_that_runs_as_a_task_and_loses_its_server_is_answered_once_and_not_run_again() {
    for revision in [Revision::V2026_07_28, Revision::V2025_06_18] {
        for piped in [false, true] {
            let notes = endless(Revision::V2025_11_25, piped);
            let (gateway, client) = alone(&notes, revision, "{}").await;
            let waiting =
                join_all((0..WAITING).map(|_| async { client.call("notes_slow", "{}").await }));
            let killing = async {
                notes.until_heard("tools/call", WAITING).await;
                notes.until_heard("tasks/get", 2 * WAITING).await;
                notes.down();
            };
            let (answers, ()) = tokio::join!(waiting, killing);
            answers.iter().for_each(refused_once);
            notes.up();
            eventually("the server is back", async || {
                (gateway.state("notes") == "ready").then_some(())
            })
            .await;
            assert!(client.call("notes_maybe", "{}").await.value()["content"].is_array());
            assert_eq!(runs(&notes), WAITING, "run again");
        }
    }
}

#[tokio::test]
async fn answers_to_a_task_of_a_dead_server_are_answered_once_and_go_nowhere() {
    let notes = inquiring();
    let (gateway, client) = alone(&notes, Revision::V2026_07_28, ASKABLE).await;
    let made = client.call("notes_slow", "{}").await.value();
    let handle = text(&made["taskId"]);
    let first = about(&client, "tasks/get", &handle).await.value();
    let (key, _) = first["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    notes.down();
    let update = format!(
        r#"{{"taskId":{},"inputResponses":{{{}:{{"action":"accept","content":{{"n":"yes"}}}}}}}}"#,
        quote(&handle),
        quote(key)
    );
    // It may be taken before the loss is noticed: taking it promises nothing, and the state tells that it is asked again.
    answered_once(&client.ask("tasks/update", &update).await);
    notes.up();
    // What was asked on the lost stream is asked anew on another, under another key, and answered once.
    let (again, state) = eventually("it asks again", async || {
        let answer = about(&client, "tasks/get", &handle).await;
        let well =
            gateway.state("notes") == "ready" && member(answer.message(), "result").is_some();
        let state = well.then(|| answer.value())?;
        let key = state["inputRequests"].as_object()?.keys().next()?.clone();
        Some((key, state))
    })
    .await;
    assert_eq!(state["status"], "input_required");
    let update = format!(
        r#"{{"taskId":{},"inputResponses":{{{}:{{"action":"accept","content":{{"n":"yes"}}}}}}}}"#,
        quote(&handle),
        quote(&again)
    );
    client.ask("tasks/update", &update).await.result();
    eventually("the task completes", async || {
        let state = about(&client, "tasks/get", &handle).await.value();
        (state["status"] == "completed").then_some(())
    })
    .await;
    assert_eq!(runs(&notes), 1, "run again");
}
