//! What a client is asked, and how: no more than it declared, in the words of its revision (PROTOCOL D2).

use serde_json::json;

use super::{ALL, LEGACY, MODERN, asking, end, gateway, reply};
use crate::harness::{Heard, Revision, Upstream, parse, tool};

const FORM: &str = r#"{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string","minLength":2}},"required":["n"]}}}"#;
const PAGE: &str = r#"{"method":"elicitation/create","params":{"mode":"url","message":"Go","url":"https://example.com/x?y=1"}}"#;
const SAMPLE: &str = r#"{"method":"sampling/createMessage","params":{"includeContext":"allServers","maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}}"#;
const ROOTS: &str = r#"{"method":"roots/list"}"#;

#[tokio::test]
async fn a_server_asks_only_for_what_the_client_declared() {
    for (requests, short) in [
        (
            FORM,
            r#"{"elicitation":{"url":{}},"sampling":{},"roots":{}}"#,
        ),
        (PAGE, r#"{"elicitation":{},"sampling":{},"roots":{}}"#),
        (SAMPLE, r#"{"elicitation":{},"roots":{}}"#),
        (ROOTS, r#"{"elicitation":{},"sampling":{}}"#),
    ] {
        let requests: &'static str = format!(r#"{{"k":{requests}}}"#).leak();
        let notes = asking(requests, None);
        let gateway = gateway(&notes).await;
        for revision in [MODERN, LEGACY] {
            let client = gateway.client_able(revision, short).await;
            let refused = client.call("notes_t", "{}").await;
            assert_eq!(
                refused.tool_error(),
                "upstream_protocol_error",
                "{requests}"
            );
            let able = gateway.client_able(revision, ALL).await;
            let mut talk = able.call("notes_t", "{}").begin().await;
            assert!(talk.hear().await.contains("method"), "{requests}");
        }
    }
}

#[tokio::test]
async fn a_client_that_takes_no_stream_promises_nothing_that_would_need_one() {
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let gateway = gateway(&notes).await;
    let declared = |heard: &Heard| {
        heard
            .meta("io.modelcontextprotocol/clientCapabilities")
            .unwrap()
    };
    let client = gateway.client_able(LEGACY, ALL).await;
    client.call("notes_t", "{}").await;
    assert!(declared(&notes.last("tools/call")).contains("elicitation"));
    let ask = client
        .call("notes_t", "{}")
        .header("accept", "application/json");
    assert_eq!(ask.await.text(), "called t");
    assert_eq!(declared(&notes.last("tools/call")), "{}");
    // Nor can members of a batch be asked, nor revisions that never heard of it.
    let old = gateway.client_able(Revision::V2025_03_26, ALL).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_t"}}"#;
    assert_eq!(old.post(&format!("[{call}]"), &[]).await.status, 200);
    assert_eq!(declared(&notes.last("tools/call")), "{}");
    old.call("notes_t", "{}").await;
    let plain = declared(&notes.last("tools/call"));
    assert!(
        plain.contains("roots") && plain.contains("sampling"),
        "{plain}"
    );
    assert!(
        !plain.contains("elicitation") && !plain.contains("tools"),
        "{plain}"
    );
}

#[tokio::test]
async fn questions_are_put_in_the_words_of_the_clients_revision() {
    let notes = asking(
        r#"{"k":{"method":"elicitation/create","params":{"mode":"url","message":"Go","url":"https://example.com/x?y=1"}}}"#,
        None,
    );
    let place = gateway(&notes).await;
    let client = place.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    let page = talk.hear().await;
    let params = parse(&page)["params"].clone();
    assert_eq!(params["url"], "https://example.com/x?y=1");
    assert_eq!(params["elicitationId"].as_str().unwrap().len(), 32);
    reply(&client, &page, r#""result":{"action":"accept"}"#).await;
    assert_eq!(end(talk).await["result"]["content"][0]["text"], "done");

    let notes = asking(
        r#"{"one":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"c":{"type":"string","oneOf":[{"const":"x","title":"X"}]}}}}},"many":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"c":{"type":"array","items":{"enum":["x"]}}}}}}}"#,
        None,
    );
    let place = gateway(&notes).await;
    let client = place
        .client_able(Revision::V2025_06_18, r#"{"elicitation":{}}"#)
        .await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    let form = talk.hear().await;
    let field = &parse(&form)["params"]["requestedSchema"]["properties"]["c"];
    assert_eq!(
        *field,
        json!({"type": "string", "enum": ["x"], "enumNames": ["X"]})
    );
    reply(
        &client,
        &form,
        r#""result":{"action":"accept","content":{"c":"x"}}"#,
    )
    .await;
    assert_eq!(end(talk).await["result"]["content"][0]["text"], "done");
    let heard = notes.last("tools/call").value();
    assert_eq!(
        heard["inputResponses"],
        json!({"one": {"action": "accept", "content": {"c": "x"}}, "many": {"action": "cancel"}})
    );
}
