//! What tasks of the handshake era ask while their client waits for their result (PROTOCOL D3).

use super::{ASKABLE, SURE, about, alone, inquiring, text};
use crate::harness::{Revision, parse, quote};

#[tokio::test]
async fn legacy_client_legacy_server_what_a_task_asks_says_which_task_asks() {
    let notes = inquiring();
    let (_gateway, client) = alone(&notes, Revision::V2025_11_25, ASKABLE).await;
    let params = r#"{"name":"notes_slow","arguments":{},"task":{"ttl":60000}}"#;
    let made = client.ask("tools/call", params).await.value();
    let handle = text(&made["task"]["taskId"]);
    about(&client, "tasks/get", &handle).await;
    let params = format!(r#"{{"taskId":{}}}"#, quote(&handle));
    let mut talk = client.ask("tasks/result", &params).begin().await;
    let question = talk.hear().await;
    let asked = parse(&question);
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert_eq!(asked["params"]["message"], "[notes] Sure?");
    let related = &asked["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, serde_json::json!({ "taskId": handle }));
    assert_eq!(client.reply(&question, ("result", SURE)).await.status, 202);
    assert_eq!(talk.rest().await.text(), "sure");
}
