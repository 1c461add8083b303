//! Answers to what a task of the handshake era asks, held to that as all answers are (SECURITY STATE-3).

use super::{ASKABLE, SURE, about, alone, inquiring, text};
use crate::harness::{Client, Revision, eventually, quote};

/// The keys of what a task asks now.
async fn keys(client: &Client, handle: &str) -> Vec<String> {
    let state = about(client, "tasks/get", handle).await.value();
    let asked = state["inputRequests"].as_object().unwrap();
    asked.keys().cloned().collect()
}

fn update(handle: &str, responses: &str) -> String {
    let handle = quote(handle);
    format!(r#"{{"taskId":{handle},"inputResponses":{responses}}}"#)
}

#[tokio::test]
async fn modern_client_legacy_server_an_answer_that_does_not_fit_is_refused_and_can_be_mended() {
    let notes = inquiring();
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, ASKABLE).await;
    let made = client.call("notes_slow", "{}").await.value();
    let handle = text(&made["taskId"]);
    let asked = keys(&client, &handle).await;
    let key = quote(&asked[0]);
    for bad in [
        r#""x""#,
        r#"{"action":"zzz"}"#,
        r#"{"content":{"n":"yes"}}"#,
        r#"{"action":"accept","content":{"n":5}}"#,
        r#"{"action":"accept","content":[]}"#,
    ] {
        let params = update(&handle, &format!("{{{key}:{bad}}}"));
        let refused = client.ask("tasks/update", &params).await;
        let why = (-32602, "invalid_input_response".to_owned());
        assert_eq!(refused.refusal(), why, "{bad}");
        assert_eq!(keys(&client, &handle).await, asked);
    }
    let refused = client.ask("tasks/update", &update(&handle, "[]")).await;
    assert_eq!(refused.refusal().0, -32602);
    // What nobody asked for is no answer, whatever it holds.
    let other = update(&handle, r#"{"other":3}"#);
    client.ask("tasks/update", &other).await.result();
    assert_eq!(keys(&client, &handle).await, asked);
    assert_eq!(notes.heard("tasks/result").len(), 1);
    let params = update(&handle, &format!("{{{key}:{SURE}}}"));
    client.ask("tasks/update", &params).await.result();
    let state = eventually("the task completes", async || {
        let state = about(&client, "tasks/get", &handle).await.value();
        (state["status"] == "completed").then_some(state)
    })
    .await;
    assert_eq!(state["result"]["content"][0]["text"], "sure");
}
