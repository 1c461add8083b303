//! What is recorded of what calls ask for beside arguments, and of what users answer (SECURITY 8, PROTOCOL F20).

use serde_json::{Value, json};

use super::{recording, recording_by, records};
use crate::harness::{
    Heard, Pairing, Play, Revision, Upstream, eventually, member, text_result, tool,
};

pairings! {
    async fn what_is_to_be_completed_is_told_as_arguments_are(pair: Pairing) {
        for (level, kept) in [("metadata", false), ("request", true)] {
            let directory = tempfile::tempdir().unwrap();
            let notes = pair.upstream().prompts(&["p"]);
            let setting = format!("content: [{{ level: {level} }}]");
            let gateway = recording_by(directory.path(), &setting, &notes).start().await;
            let client = pair.client(&gateway).await;
            let argument = r#"{"name":"city","value":"par"}"#;
            let context = r#"{"arguments":{"country":"fr"}}"#;
            for context in [String::new(), format!(r#","context":{context}"#)] {
                let prompt = r#"{"type":"ref/prompt","name":"notes_p"}"#;
                let params = format!(r#"{{"ref":{prompt},"argument":{argument}{context}}}"#);
                client.ask("completion/complete", &params).await.result();
            }
            gateway.app.clone().shutdown().await;
            let told = records(directory.path(), "completion/complete");
            let decisions = told.iter().filter(|record| record["stage"] == "decision");
            let decisions: Vec<_> = decisions.collect();
            let [alone, in_context] = &decisions[..] else { panic!("{told:#?}") };
            let both = format!(r#"{{"argument":{argument},"context":{context}}}"#);
            for (record, text) in [(alone, argument), (in_context, both.as_str())] {
                assert_eq!(record["arguments"]["bytes"], text.len());
                assert!(record["arguments"]["digest"].is_string());
                let content = if kept { Value::from(text) } else { Value::Null };
                assert_eq!(record["content"], content);
            }
            assert_ne!(alone["arguments"]["digest"], in_context["arguments"]["digest"]);
        }
    }
}

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}},"requestState":"s"}"#;
const ANSWER: &str = r#"{"action":"accept","content":{"n":"planted"}}"#;

/// A server of the stateless era whose tool asks once.
fn asking() -> Upstream {
    Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |heard: &Heard| {
            if member(&heard.params, "inputResponses").is_some() {
                return Play::Result(text_result("done"));
            }
            Play::Result(ASKS.to_owned())
        })
}

/// The records of its calls, of which the last decision is the one that the answers went along with; nothing tells a word of them.
fn answered(told: &[Value], answers: &str) {
    assert!(!format!("{told:?}").contains("planted"), "{told:#?}");
    let stages: Vec<_> = told.iter().map(|record| &record["stage"]).collect();
    assert_eq!(stages, ["decision", "outcome", "decision", "outcome"]);
    assert_eq!(told[0]["answers"], Value::Null);
    assert_eq!(told[2]["answers"]["bytes"], answers.len());
    assert!(told[2]["answers"]["digest"].is_string());
    // Arguments are kept as ever.
    assert_eq!(told[2]["content"], r#"{"a":1}"#);
}

const EVERYTHING: &str = "content: [{ level: request_response }]";
const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

#[tokio::test]
async fn what_a_user_answers_in_a_call_that_goes_on_is_told_by_its_size_and_digest_alone() {
    let directory = tempfile::tempdir().unwrap();
    let notes = asking();
    let gateway = recording_by(directory.path(), EVERYTHING, &notes);
    let gateway = gateway.start().await;
    let client = gateway.client_able(Revision::V2026_07_28, FORMS).await;
    let asked = client.call("notes_t", r#"{"a":1}"#).await.value();
    let state = asked["requestState"].as_str().expect("a question");
    let answers = format!(r#"{{"who":{ANSWER}}}"#);
    let again = |state: &str| {
        format!(
            r#"{{"name":"notes_t","arguments":{{"a":1}},"requestState":"{state}","inputResponses":{answers}}}"#
        )
    };
    let done = client.ask("tools/call", &again(state)).await;
    assert_eq!(done.text(), "done");
    client.ask("tools/call", &again("x")).await.refusal();
    gateway.app.clone().shutdown().await;
    let mut told = records(directory.path(), "tools/call");
    let refused = told.pop().expect("a record");
    assert_eq!(refused["reason"], "state_invalid");
    assert_eq!(refused["answers"], told[2]["answers"]);
    assert!(!refused.to_string().contains("planted"), "{refused}");
    answered(&told, &answers);
}

#[tokio::test]
async fn what_a_user_answers_in_a_session_is_told_by_its_size_and_digest_alone() {
    let directory = tempfile::tempdir().unwrap();
    let notes = asking();
    let gateway = recording_by(directory.path(), EVERYTHING, &notes);
    let gateway = gateway.start().await;
    let client = gateway.client_able(Revision::V2025_11_25, FORMS).await;
    let mut talk = client.call("notes_t", r#"{"a":1}"#).begin().await;
    let question = talk.hear().await;
    client.reply(&question, ("result", ANSWER)).await;
    assert_eq!(talk.rest().await.text(), "done");
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "tools/call");
    answered(&told, &format!(r#"{{"who":{ANSWER}}}"#));
}

/// SECURITY 8: what a client is told refers to a record.
#[tokio::test]
async fn a_call_that_ends_while_its_client_is_asked_has_a_record_of_that_end() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]).on(
        "tools/call",
        |heard: &Heard| {
            let many = heard.value()["arguments"]["questions"].as_u64().unwrap();
            let asks = (0..many).map(|n| format!(r#""{n}":{{"method":"roots/list"}}"#));
            let asks = asks.collect::<Vec<_>>().join(",");
            Play::Result(format!(
                r#"{{"resultType":"input_required","inputRequests":{{{asks}}},"requestState":"s"}}"#
            ))
        },
    );
    let gateway = recording(directory.path(), &notes).setting("bounds: { resume: { inputs: 64 } }");
    let gateway = gateway.start().await;
    let client = gateway
        .client_able(Revision::V2025_11_25, r#"{"roots":{}}"#)
        .await;
    let call = client.call("notes_t", r#"{"questions":64}"#);
    let mut asked = call.id("71").begin().await;
    asked.hear().await;
    // No more can be asked: that is an end of its own.
    let refused = client.call("notes_t", r#"{"questions":1}"#).await;
    assert_eq!(refused.tool_error(), "input_refused");
    let reference = refused.value()["_meta"]["dev.usher/ref"].clone();
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":71}}"#;
    client.post(cancelled, &[]).await;
    let told = eventually("it is recorded", async || {
        let told = records(directory.path(), "tools/call");
        (told.len() == 6).then_some(told)
    });
    let told = told.await;
    gateway.app.clone().shutdown().await;
    assert_eq!(records(directory.path(), "tools/call").len(), 6);
    let of = |call: &Value| {
        let of = told.iter().filter(|record| record["call"] == *call);
        of.map(|record| (record["stage"].clone(), record["outcome"].clone()))
            .collect::<Vec<_>>()
    };
    let ends = |outcome: &str| {
        [
            (json!("decision"), Value::Null),
            (json!("outcome"), json!("input_required")),
            (json!("both"), json!(outcome)),
        ]
    };
    assert_eq!(of(&reference), ends("denied"));
    assert_eq!(of(&told[0]["call"]), ends("cancelled"));
    let last = told.iter().rfind(|record| record["call"] == reference);
    let last = last.unwrap();
    assert_eq!(last["reason"], "input_refused");
    // Policy had let it through.
    assert_eq!(last["decision"], "permit");
    assert_eq!(last["target"]["upstream"], "notes");
    assert_eq!(last["request"], told[2]["request"]);
}
