//! What an upstream answered, in the record of a call (SECURITY 8).
//! The HTTP status of its answer to that call, and to no other; the code of its own error.

use serde_json::{Value, json};

use super::{recording, records};
use crate::harness::{Pairing, Play, Revision, Upstream, eventually, member, text_result, tool};

pairings! {
    async fn a_status_is_recorded_of_the_call_that_it_answered_and_of_none_that_was_never_sent(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| {
            Play::Result(text_result("done"))
        });
        let gateway = recording(directory.path(), &notes).start().await;
        let client = pair.client(&gateway).await;
        client.call("notes_t", "{}").await.result();
        // From the fifth on nothing is sent, and what is asked of it meanwhile fails with a status, too.
        for method in ["tools/call", "server/discover", "initialize"] {
            notes.now_on(method, |_| Play::Status(503));
        }
        for _ in 0..5 {
            let answer = client.call("notes_t", "{}").await;
            assert_eq!(answer.tool_error(), "upstream_unavailable");
        }
        eventually("it was asked in vain whether it is there", async || {
            let status = gateway.app.statuses().remove(0);
            let away = status.state == "away" && status.error?.contains("503");
            away.then_some(())
        })
        .await;
        let heard = notes.heard("tools/call").len();
        assert_eq!(client.call("notes_t", "{}").await.tool_error(), "upstream_unavailable");
        assert_eq!(notes.heard("tools/call").len(), heard, "it is not sent");
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let ends: Vec<_> = told.iter().filter(|record| record["stage"] == "outcome").collect();
        assert_eq!(ends.len(), 7, "{told:#?}");
        for end in &ends[1..] {
            assert_eq!(end["outcome"], "unavailable");
        }
        assert_eq!(ends[0]["status"], Value::Null);
        for answered in &ends[1..6] {
            assert_eq!(answered["status"], json!(503));
        }
        assert_eq!(ends[6]["status"], Value::Null);
    }
}

pairings! {
    /// Whatever the status is, it is told as a number, and as that of the answer.
    async fn the_statuses_that_refuse_a_call_are_recorded_as_they_were_answered(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([tool("t")]);
        let gateway = recording(directory.path(), &notes).start().await;
        let client = pair.client(&gateway).await;
        let statuses = [307, 401, 403, 413, 418, 429, 500];
        for status in statuses {
            notes.now_on("tools/call", move |_| Play::Status(status));
            client.call("notes_t", "{}").await.tool_error();
        }
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let ends = told.iter().filter(|record| record["stage"] == "outcome");
        let ends: Vec<_> = ends.map(|end| end["status"].clone()).collect();
        // A redirect is told by its reason: which of them it was says nothing about the upstream's health.
        let expected = statuses.map(|status| match status {
            307 => Value::Null,
            status => json!(status),
        });
        assert_eq!(ends, expected, "{told:#?}");
    }
}

pairings! {
    /// The error of a server goes on as it is, and its code is in the record as a number.
    async fn the_code_of_a_servers_own_error_is_recorded_as_it_was_given(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| {
            Play::Error(r#"{"code":-12345,"message":"no"}"#.into())
        });
        let gateway = recording(directory.path(), &notes).start().await;
        let client = pair.client(&gateway).await;
        assert_eq!(client.call("notes_t", "{}").await.error()["code"], -12345);
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let [_, outcome] = &told[..] else { panic!("{told:#?}") };
        assert_eq!(outcome["code"], -12345);
        assert_eq!(outcome["outcome"], "protocol_error");
        assert_eq!(outcome["bytes"]["out"], 0);
    }
}

/// Whatever the reason is, and nothing where there was none.
#[tokio::test]
async fn how_often_a_call_was_sent_is_recorded_where_that_was_more_than_once() {
    const MIRRORED: &str = r#"{"name":"mirrored","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}"#;
    const ASKS: &str = r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}}}}"#;
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("once"), tool("asks"), tool("mirrored")])
        .on("tools/call", |heard| {
            let done = Play::Result(text_result("done"));
            let lacks = |key: &str| member(&heard.params, key).is_none();
            match heard.text("name").as_deref() {
                Some("asks") if lacks("inputResponses") => Play::Raw(ASKS.into()),
                Some("mirrored") if heard.header("mcp-param-a").is_none() => {
                    Play::Refused(400, r#"{"code":-32020,"message":"no"}"#.into())
                }
                _ => done,
            }
        });
    let gateway = recording(directory.path(), &notes).start().await;
    let modern = Revision::V2026_07_28;
    let client = gateway
        .client_able(modern, r#"{"elicitation":{"form":{}}}"#)
        .await;
    assert_eq!(client.call("notes_once", "{}").await.text(), "done");
    let brought = r#"{"name":"notes_asks","arguments":{},"inputResponses":{"who":{"action":"accept","content":{"n":"Ann"}}}}"#;
    let answer = client.ask("tools/call", brought).await;
    assert_eq!(answer.text(), "done");
    // It tells nobody of what it wants now.
    notes.offer(0, [tool("once"), tool("asks"), MIRRORED.to_owned()]);
    let answer = client.call("notes_mirrored", r#"{"a":"x"}"#).await;
    assert_eq!(answer.text(), "done");
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "tools/call");
    let ends = told.iter().filter(|record| record["stage"] == "outcome");
    let attempts: Vec<_> = ends.map(|end| end["attempts"].clone()).collect();
    assert_eq!(attempts, [Value::Null, json!(2), json!(2)], "{told:#?}");
}
