//! What is recorded of what calls ask for beside arguments, and of what users answer (SECURITY 8, PROTOCOL F20).

use serde_json::{Value, json};

use super::{recording, recording_by, records};
use crate::harness::{
    Gate, Heard, Pairing, Play, Revision, Upstream, eventually, member, text_result, tool,
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

/// PROTOCOL F20: which round a record belongs to, and the ids on both sides.
#[tokio::test]
async fn each_record_says_how_often_its_client_had_been_asked_and_which_request_its_server_had() {
    let directory = tempfile::tempdir().unwrap();
    let notes = asking();
    let gateway = recording(directory.path(), &notes).start().await;
    let client = gateway.client_able(Revision::V2026_07_28, FORMS).await;
    let asked = client.call("notes_t", "{}").id("11").await.value();
    let state = asked["requestState"].as_str().expect("a question");
    let on = |answers: &str| {
        format!(
            r#"{{"name":"notes_t","arguments":{{}},"requestState":"{state}","inputResponses":{answers}}}"#
        )
    };
    let params = on(&format!(r#"{{"who":{ANSWER}}}"#));
    let done = client.ask("tools/call", &params).id("12").await;
    assert_eq!(done.text(), "done");
    // What is refused in a round is of that round, and its server has no request.
    let params = on(r#"{"who":{"action":"accept","content":{"n":5}}}"#);
    let refused = client.ask("tools/call", &params).id("13").await;
    assert_eq!(refused.refusal().1, "invalid_input_response");
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "tools/call");
    let rounds: Vec<_> = told.iter().map(|record| record["round"].as_u64()).collect();
    assert_eq!(rounds, [None, None, Some(1), Some(1), Some(1)], "{told:#?}");
    let sent = notes.heard("tools/call");
    let sent: Vec<_> = sent.iter().map(|heard| heard.id.as_deref()).collect();
    let [first, second] = sent[..] else {
        panic!("{sent:?}")
    };
    let at = |record: &Value| {
        record["target"]["request"]
            .as_u64()
            .map(|id| id.to_string())
    };
    let ids: Vec<_> = told.iter().map(at).collect();
    let ids: Vec<_> = ids.iter().map(Option::as_deref).collect();
    assert_eq!(ids, [None, first, None, second, None], "{told:#?}");
    let own = ["11", "12", "13"].map(Value::from);
    assert_eq!([0, 2, 4].map(|at| told[at]["request"].clone()), own);
}

/// The same where the upstream's request stays open while its caller is asked.
#[tokio::test]
async fn a_call_that_goes_on_upstream_has_the_same_request_in_both_rounds() {
    const ELICIT: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}"#;
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::new();
    let opened = gate.clone();
    let notes =
        Upstream::http(Revision::V2025_11_25)
            .tools([tool("t")])
            .on("tools/call", move |_| {
                let done = Play::Result(text_result("done"));
                Play::Gated(vec![ELICIT.to_owned()], gate.clone(), Box::new(done))
            });
    let gateway = recording(directory.path(), &notes).start().await;
    let client = gateway.client_able(Revision::V2026_07_28, FORMS).await;
    let asked = client.call("notes_t", "{}").await.value();
    let state = asked["requestState"].as_str().expect("a question");
    let questions = asked["inputRequests"].as_object().unwrap();
    let key = questions.keys().next().unwrap();
    let params = format!(
        r#"{{"name":"notes_t","arguments":{{}},"requestState":"{state}","inputResponses":{{"{key}":{ANSWER}}}}}"#
    );
    let answered = async {
        notes.until_heard("", 1).await;
        opened.open();
    };
    let (done, ()) = tokio::join!(client.ask("tools/call", &params), answered);
    assert_eq!(done.text(), "done");
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "tools/call");
    let sent = notes.last("tools/call").id.unwrap();
    let ends = told.iter().filter(|record| record["stage"] == "outcome");
    let ends: Vec<_> = ends
        .map(|record| {
            (
                record["round"].as_u64(),
                record["target"]["request"].to_string(),
            )
        })
        .collect();
    assert_eq!(ends, [(None, sent.clone()), (Some(1), sent)], "{told:#?}");
}

/// SECURITY 8: what decided is in the record of a call that ends while its client is asked, too, with the round that asked.
#[tokio::test]
async fn a_call_that_ends_while_its_client_is_asked_is_recorded_with_what_had_let_it_through() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_: &Heard| Play::Result(ASKS.to_owned()));
    let gateway = recording(directory.path(), &notes)
        .policies(r#"@id("all") permit(principal, action, resource);"#);
    let gateway = gateway.start().await;
    let client = gateway.client_able(Revision::V2025_11_25, FORMS).await;
    let mut talk = client.call("notes_t", "{}").id("71").begin().await;
    let question = talk.hear().await;
    client.reply(&question, ("result", ANSWER)).await;
    talk.hear().await;
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":71}}"#;
    client.post(cancelled, &[]).await;
    let told = eventually("it is recorded", async || {
        let told = records(directory.path(), "tools/call");
        (told.len() == 5).then_some(told)
    });
    let told = told.await;
    gateway.app.clone().shutdown().await;
    let (before, last) = (&told[2], &told[4]);
    assert_eq!(
        (&before["stage"], &before["round"]),
        (&json!("decision"), &json!(1))
    );
    assert_eq!(
        (&last["stage"], &last["outcome"]),
        (&json!("both"), &json!("cancelled"))
    );
    assert_eq!(last["decision"], "permit");
    assert_eq!(last["policies"], json!(["all"]));
    for member in ["call", "policies", "policy", "round"] {
        assert_eq!(last[member], before[member], "{member} of {last}");
    }
    // Where the decision has a record of its own, no other repeats it.
    assert_eq!(told[3]["policies"], Value::Null);
}
