//! States that no task of the extension has: whoever looks is told that its server broke the protocol (SECURITY EGR-11).

use super::{ASKABLE, EXTENSION, about, alone, known, modern, text};
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

/// SECURITY STATE-3: what a task asks or brings is held to rules where its state is asked for, and nowhere else.
#[tokio::test]
async fn a_task_just_made_asks_for_nothing_and_brings_nothing() {
    let notes = modern();
    notes.now_on("tools/call", |_| {
        Play::Raw(
            r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"task","taskId":"local-7","status":"input_required","createdAt":"c","lastUpdatedAt":"l","ttlMs":null,"inputRequests":{"k":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}},"result":{"content":[]},"error":{"code":1,"message":"m"}}}"#.into(),
        )
    });
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, EXTENSION).await;
    let made = client.call("notes_slow", "{}").await.value();
    assert_eq!(made["status"], "input_required", "{made}");
    for member in ["inputRequests", "result", "error"] {
        assert!(made.get(member).is_none(), "{made}");
    }
}

/// PROTOCOL A7: a client that cannot read the answer would never learn of a task that runs.
#[tokio::test]
async fn a_task_is_told_also_where_a_server_writes_something_else_for_meta() {
    for other in ["null", "[]", "7"] {
        let notes = modern();
        notes.now_on("tools/call", move |_| {
            Play::Raw(format!(
                r#"{{"jsonrpc":"2.0","id":$id,"result":{{"resultType":"task","taskId":"local-7","status":"working","createdAt":"c","lastUpdatedAt":"l","ttlMs":null,"_meta":{other}}}}}"#
            ))
        });
        let (_gateway, client) = alone(&notes, Revision::V2026_07_28, EXTENSION).await;
        let made = client.call("notes_slow", "{}").await.value();
        assert_eq!(made["status"], "working", "{other}");
        let server = &made["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert!(server.is_object(), "{other}: {made}");
    }
}

/// SECURITY 4
#[tokio::test]
async fn a_task_that_cannot_be_named_is_told_as_what_breaks_the_protocol() {
    let notes = modern();
    notes.now_on("tools/call", |_| {
        Play::Raw(
            r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"task","taskId":"","status":"working"}}"#.into(),
        )
    });
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, EXTENSION).await;
    let refused = client.call("notes_slow", "{}").await;
    assert_eq!(refused.tool_error(), "upstream_protocol_error");
}

/// SECURITY 4
#[tokio::test]
async fn a_task_that_is_gone_is_told_alike_before_and_after_a_log_line() {
    let notes = modern();
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, EXTENSION).await;
    let made = client.call("notes_slow", "{}").await.value();
    notes.now_on("tasks/get", |_| {
        Play::live(|turn: Turn| async move {
            turn.log("info", "1").await;
            let gone = r#"{"code":-32602,"message":"no task local-7"}"#;
            turn.say(&format!(r#"{{"jsonrpc":"2.0","id":$id,"error":{gone}}}"#))
                .await;
        })
    });
    let params = format!(r#"{{"taskId":{}}}"#, quote(&text(&made["taskId"])));
    for log in [r#""io.modelcontextprotocol/logLevel":"info""#, r#""v":1"#] {
        let look = client.ask("tasks/get", &params).meta(log).await;
        assert_eq!(look.refusal(), (-32602, "unknown_name".to_owned()));
        let error = look.error();
        assert_eq!(error["message"], "no such task");
        assert!(error["data"]["ref"].is_string(), "{error}");
    }
}
