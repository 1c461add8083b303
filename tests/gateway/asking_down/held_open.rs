//! Calls that older servers hold open while their client is asked, and what servers say beside.

use serde_json::json;

use super::{ALL, LEGACY, MODERN, end, gateway, go_on, reply, state_of};
use crate::harness::{Play, Turn, Upstream, member, parse, text_result, tool};

/// A server of the older era whose tool asks on the call's own stream, and then says what it was told.
fn holding() -> Upstream {
    let params = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}"#;
    Upstream::http(LEGACY)
        .tools([tool("t")])
        .on("tools/call", move |_| {
            Play::live(move |turn: Turn| async move {
                let answer = turn.ask("elicitation/create", params).await;
                let told = text_result(answer["result"]["action"].as_str().unwrap());
                turn.result(&told).await;
            })
        })
}

#[tokio::test]
async fn state_of_a_call_that_an_older_server_held_open_leads_nowhere_once_it_is_over() {
    let notes = holding();
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(MODERN, ALL).await;
    let asked = client.call("notes_t", r#"{"a":1}"#).await.value();
    let questions = asked["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!(question["params"]["message"], "[notes] Who?");
    let state = state_of(&asked);
    let answers = format!(r#"{{"{key}":{{"action":"accept","content":{{"n":"Ann"}}}}}}"#);
    let more = format!(r#""inputResponses":{answers},"requestState":"{state}""#);
    assert_eq!(go_on(&client, &more).await.text(), "accept");
    assert_eq!(
        go_on(&client, &more).await.refusal().1,
        "outcome_unknown",
        "not once more"
    );
    assert_eq!(notes.heard("tools/call").len(), 1);
}

#[tokio::test]
async fn a_client_that_cancels_while_it_is_asked_frees_the_server_that_waits() {
    let notes = holding();
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", "{}").id("\"mine\"").begin().await;
    let question = talk.hear().await;
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mine"}}"#;
    assert_eq!(client.post(cancel, &[]).await.status, 202);
    let heard = notes.until_heard("notifications/cancelled", 1).await;
    let call = notes.last("tools/call");
    assert_eq!(member(&heard.params, "requestId"), call.id);
    assert!(
        talk.next().await.is_none(),
        "a cancelled call has no answer"
    );
    let id = member(&question, "id").unwrap();
    let late = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept"}}}}"#);
    // It may have crossed the withdrawal, so it is no fault.
    assert_eq!(client.post(&late, &[]).await.status, 202);
}

#[tokio::test]
async fn the_end_of_a_page_is_told_under_the_id_that_the_client_knows() {
    let params =
        r#"{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"e"}"#;
    let complete = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{{"elicitationId":"{id}"}}}}"#
        )
    };
    let notes = Upstream::http(LEGACY)
        .tools([tool("t")])
        .on("tools/call", move |_| {
            Play::live(move |turn: Turn| async move {
                turn.ask("elicitation/create", params).await;
                // Of a page that this client was never sent to, and of its own.
                turn.say(&complete("f")).await;
                turn.say(&complete("e")).await;
                turn.result(&text_result("done")).await;
            })
        });
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    let page = talk.hear().await;
    let id = parse(&page)["params"]["elicitationId"].clone();
    assert!(id != "e" && id.is_string(), "{page}");
    reply(&client, &page, r#""result":{"action":"accept"}"#).await;
    let told = parse(&talk.hear().await);
    assert_eq!(told["method"], "notifications/elicitation/complete");
    assert_eq!(told["params"], json!({ "elicitationId": id }));
    assert_eq!(end(talk).await["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn log_lines_say_whose_they_are() {
    let line = |logger: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"error",{logger}"data":1.0}}}}"#
        )
    };
    let lines = vec![line(r#""logger":"db","#), line("")];
    let notes = Upstream::http(MODERN)
        .tools([tool("t")])
        .on("tools/call", move |_| {
            Play::Events(lines.clone(), Box::new(Play::Result(text_result("done"))))
        });
    let gateway = gateway(&notes).await;
    let client = gateway.client(MODERN).await;
    let answer = client
        .call("notes_t", "{}")
        .meta(r#""io.modelcontextprotocol/logLevel":"debug""#)
        .await;
    let loggers: Vec<_> = answer
        .events()
        .iter()
        .map(|event| parse(event)["params"]["logger"].clone())
        .collect();
    assert_eq!(loggers, ["notes/db", "notes"]);
    assert!(answer.events()[0].contains(r#""data":1.0"#));
}
