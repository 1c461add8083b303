//! What goes both ways: notifications, subscriptions, and servers that ask back, in all four pairings (PROTOCOL D1, D2, D7).
//!
//! One behaviour test for each feature and pairing, and where a pairing makes a feature impossible one for the honest answer.
//! A test says by a line `Feature: …` in its doc which row it fills; [`table`] holds the table to the tests.

mod asking;
mod asking_beside;
mod asking_limits;
mod asking_over;
mod audience;
mod cancelling;
mod changes;
mod hanging_up;
mod hops;
mod isolation;
mod killing;
mod one_user;
mod subscribing;
mod telling;

mod table;

use serde_json::Value;

use crate::harness::{
    Client, Gateway, Pairing, Play, Says, Turn, Upstream, member, quote, text_result, tool,
};

/// All that a client can do for a server.
pub(crate) const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;

/// A question that a person answers by a form.
pub(crate) const FORM: (&str, &str) = (
    "elicitation/create",
    r#"{"mode":"form","message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}"#,
);
/// What a person says to it.
pub(crate) const NAMED: &str = r#"{"action":"accept","content":{"name":"Ada"}}"#;

/// A question that the client's model answers.
pub(crate) const SAMPLE: (&str, &str) = (
    "sampling/createMessage",
    r#"{"messages":[{"role":"user","content":{"type":"text","text":"What is the capital of France?"}}],"maxTokens":100}"#,
);
/// What a model says to it.
const PARIS: &str = r#"{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m","stopReason":"endTurn"}"#;

/// A question that the client answers by itself.
pub(crate) const ROOTS: (&str, &str) = ("roots/list", "{}");
/// What it says.
const HOME: &str = r#"{"roots":[{"uri":"file:///home/ada","name":"home"}]}"#;

/// A question that is answered at an address.
const VISIT: (&str, &str) = (
    "elicitation/create",
    r#"{"mode":"url","message":"Sign in","url":"https://accounts.example/sign-in?x=1","elicitationId":"e-1"}"#,
);

/// What the upstream of [`asking`] gives along in the stateless era; no client may ever see it.
const STATE: &str = r#""the server's own: \"é\"""#;

/// What the client says to each kind of question.
pub(crate) fn usual(method: &str, params: &Value) -> Says {
    Says::Result(
        match method {
            "elicitation/create" if params["mode"] == "url" => r#"{"action":"accept"}"#,
            "elicitation/create" => NAMED,
            "sampling/createMessage" => PARIS,
            _ => HOME,
        }
        .to_owned(),
    )
}

/// A server whose tool `ask` asks all of these, and then tells what was answered: an array of the results, as text.
pub(crate) fn asking(
    pair: Pairing,
    questions: &'static [(&'static str, &'static str)],
) -> Upstream {
    asking_at(pair.upstream(), pair, questions)
}

/// The same, however it is reached.
fn asking_at(
    server: Upstream,
    pair: Pairing,
    questions: &'static [(&'static str, &'static str)],
) -> Upstream {
    let server = server.tools([tool("ask"), tool("t")]);
    if !pair.upstream_is_modern() {
        return server.on("tools/call", move |heard| {
            if heard.text("name").as_deref() == Some("t") {
                return Play::Result(text_result("called t"));
            }
            Play::live(move |turn: Turn| async move {
                let mut answers = Vec::new();
                for (method, params) in questions {
                    let answer = turn.ask(method, params).await;
                    let answer = answer
                        .get("result")
                        .or_else(|| answer.get("error"))
                        .cloned();
                    answers.push(answer.expect("a response"));
                }
                let text = Value::Array(answers).to_string();
                turn.result(&text_result(&text)).await;
            })
        });
    }
    server.on("tools/call", move |heard| {
        if heard.text("name").as_deref() == Some("t") {
            return Play::Result(text_result("called t"));
        }
        let Some(responses) = member(&heard.params, "inputResponses") else {
            let requests: Vec<String> = questions
                .iter()
                .enumerate()
                .map(|(n, (method, params))| {
                    format!(r#""q{n}":{{"method":"{method}","params":{params}}}"#)
                })
                .collect();
            return Play::Result(format!(
                r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":{STATE}}}"#,
                requests.join(",")
            ));
        };
        let responses = crate::harness::parse(&responses);
        let answers: Vec<Value> = (0..questions.len())
            .map(|n| responses[format!("q{n}")].clone())
            .collect();
        Play::Result(text_result(&Value::Array(answers).to_string()))
    })
}

impl Pairing {
    /// One upstream called `notes`, and a client that can do this for it.
    async fn able(self, notes: &Upstream, capabilities: &str) -> (Gateway, Client) {
        let gateway = Gateway::of().upstream("notes", notes).start().await;
        let client = gateway.client_able(self.client, capabilities).await;
        (gateway, client)
    }
}

/// The state of an answer that asks.
fn state_of(result: &str) -> String {
    member(result, "requestState").unwrap_or_else(|| panic!("no state: {result}"))
}

/// `{"key":value}` for one member of `inputResponses`.
fn response(key: &str, value: &str) -> String {
    format!("{}:{value}", quote(key))
}
