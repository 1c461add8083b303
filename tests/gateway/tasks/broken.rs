//! States that no task of the extension has: whoever looks is told that its server broke the protocol (SECURITY EGR-11).

use super::{ASKABLE, about, alone, known, modern, text};
use crate::harness::{Play, Revision, Turn, quote};

#[tokio::test]
async fn a_state_that_the_extension_does_not_have_is_not_passed_on() {
    let notes = modern();
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, ASKABLE).await;
    let made = client.call("notes_slow", "{}").await.value();
    let handle = text(&made["taskId"]);
    let now = |told: &'static str| {
        notes.now_on("tasks/get", move |heard| {
            known(
                heard,
                &format!(
                    r#"{{"taskId":"local-7",{told}"createdAt":"c","lastUpdatedAt":"l","ttlMs":null}}"#
                ),
            )
        });
    };
    for bad in [
        "",
        r#""status":7,"#,
        r#""status":"done","#,
        r#""status":"completed","#,
        r#""status":"completed","result":[],"#,
        r#""status":"input_required","#,
        r#""status":"input_required","inputRequests":7,"#,
    ] {
        now(bad);
        let refused = about(&client, "tasks/get", &handle).await.refusal();
        assert_eq!(refused.1, "upstream_protocol_error", "{bad}");
    }
    for good in [
        r#""status":"working","#,
        r#""status":"cancelled","#,
        r#""status":"input_required","inputRequests":{},"#,
        r#""status":"failed","error":{"code":-32603,"message":"m"},"#,
        r#""status":"completed","result":{},"#,
    ] {
        now(good);
        let state = about(&client, "tasks/get", &handle).await.value();
        assert!(good.contains(&text(&state["status"])), "{state}");
    }
}

/// Whoever watches the task would let go of one that there is not.
#[tokio::test]
async fn a_broken_state_after_a_log_line_is_not_told_as_a_task_that_there_is_not() {
    let notes = modern();
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, ASKABLE).await;
    let made = client.call("notes_slow", "{}").await.value();
    notes.now_on("tasks/get", |_| {
        Play::live(|turn: Turn| async move {
            turn.log("info", "1").await;
            turn.result(r#"{"taskId":"local-7","status":"done"}"#).await;
        })
    });
    let params = format!(r#"{{"taskId":{}}}"#, quote(&text(&made["taskId"])));
    let look = client.ask("tasks/get", &params);
    let look = look.meta(r#""io.modelcontextprotocol/logLevel":"info""#);
    assert_eq!(look.await.refusal().1, "upstream_protocol_error");
}
