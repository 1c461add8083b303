//! One request's way back to the client: reporting progress, asking a person or a model, and stopping.
//!
//! Guarantees that a tool asks in the same words in every revision: in a session the question is a request of the server's
//! own and the tool waits; otherwise the tool is run again from its start when the client calls with the answer. Hence a
//! tool asks at most one question per call, and does nothing before it.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    frame::{self, Object, Refusal},
    session::Session,
};

/// How long a reported step takes, so that progress can be watched.
const PACE: Duration = Duration::from_millis(40);

/// What a running request knows of its client.
pub(super) struct Turn {
    pub(super) asking: Asking,
    pub(super) progress_token: Option<Value>,
    /// Where messages about this request go while it runs; `None` when the answer is a single document.
    pub(super) out: Option<mpsc::Sender<Value>>,
}

/// How the client is asked.
pub(super) enum Asking {
    /// By requests on the client's session.
    Session(Arc<Session>),
    /// By answering `input_required` and reading the answers from the next call.
    Rounds {
        capabilities: Value,
        responses: Object,
        state: String,
    },
}

/// Why a request has no ordinary result.
#[derive(Debug)]
pub(super) enum Stop {
    /// A JSON-RPC error.
    Refused(Refusal),
    /// No resource has this URI; each revision spells that in its own way.
    NoResource(String),
    /// A tool ran and failed: an `isError` result that says why.
    Failed(String),
    /// A whole `input_required` result: the client is asked, and calls again.
    Input(Value),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Stop {
    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }
}

/// A person's answer.
pub(super) enum Choice {
    Accepted(Object),
    Declined,
    Cancelled,
}

/// A model's answer.
pub(super) struct Sampled {
    pub(super) text: String,
    pub(super) model: String,
}

impl Turn {
    /// Reports that `done` of `total` steps are done. Says nothing when the client did not ask to be told.
    pub(super) async fn step(&self, done: usize, total: usize, message: &str) {
        if let (Some(token), Some(out)) = (&self.progress_token, &self.out) {
            let params = json!({
                "progressToken": token, "progress": done, "total": total, "message": message,
            });
            let sent = out.send(frame::notification("notifications/progress", Some(params)));
            drop(sent.await); // a client that went away is noticed where the answer is sent
            tokio::time::sleep(PACE).await;
        }
    }

    /// Asks a person to fill in a form.
    pub(super) async fn elicit(
        &self,
        key: &str,
        message: String,
        form: Value,
    ) -> Result<Choice, Stop> {
        if !self.can_elicit() {
            return Err(Stop::failed(
                "this needs an answer from the user, and the client did not declare the `elicitation` capability \
                 (form mode), so nobody can be asked; nothing was done",
            ));
        }
        let params = json!({"message": message, "requestedSchema": form});
        let mut answer = self.ask(key, "elicitation/create", params).await?;
        match answer["action"].as_str() {
            Some("accept") => Ok(Choice::Accepted(match answer["content"].take() {
                Value::Object(content) => content,
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_) => Object::new(),
            })),
            Some("decline") => Ok(Choice::Declined),
            Some("cancel") => Ok(Choice::Cancelled),
            _ => Err(self.malformed(key)),
        }
    }

    /// Asks the client's model.
    pub(super) async fn sample(
        &self,
        key: &str,
        system: &str,
        prompt: String,
    ) -> Result<Sampled, Stop> {
        if !self.capability("sampling").is_object() {
            return Err(Stop::failed(
                "this needs the client's model, and the client did not declare the `sampling` capability, so no \
                 model can be asked; nothing was done",
            ));
        }
        let params = json!({
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
            "systemPrompt": system,
            "maxTokens": 200,
        });
        let answer = self.ask(key, "sampling/createMessage", params).await?;
        let content = &answer["content"];
        let blocks = content
            .as_array()
            .map_or(std::slice::from_ref(content), Vec::as_slice);
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        match answer["model"].as_str() {
            Some(model) if !texts.is_empty() => Ok(Sampled {
                text: texts.join("\n"),
                model: model.to_owned(),
            }),
            _ => Err(self.malformed(key)),
        }
    }

    async fn ask(&self, key: &str, method: &str, params: Value) -> Result<Value, Stop> {
        match (&self.asking, &self.out) {
            (Asking::Session(session), Some(out)) => {
                let answer = session.ask(out, method, params).await;
                answer.map_err(|why| Stop::Failed(format!("{why}; nothing was done")))
            }
            (Asking::Session(_), None) => Err(Stop::failed("the client cannot be asked here")),
            (
                Asking::Rounds {
                    responses, state, ..
                },
                _,
            ) => match responses.get(key) {
                Some(answer) => Ok(answer.clone()),
                None => Err(Stop::Input(json!({
                    "resultType": "input_required",
                    "inputRequests": { key: {"method": method, "params": params} },
                    "requestState": state,
                }))),
            },
        }
    }

    /// An empty `elicitation` means forms; one that names only other modes does not.
    fn can_elicit(&self) -> bool {
        let elicitation = self.capability("elicitation");
        let declared = elicitation.as_object();
        declared.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
    }

    fn capability(&self, name: &str) -> Value {
        match &self.asking {
            Asking::Session(session) => session.capability(name),
            Asking::Rounds { capabilities, .. } => capabilities[name].clone(),
        }
    }

    fn malformed(&self, key: &str) -> Stop {
        match &self.asking {
            Asking::Session(_) => {
                Stop::failed("the client's answer is malformed; nothing was done")
            }
            Asking::Rounds { .. } => {
                Refusal::invalid(format!("`params.inputResponses.{key}` is malformed")).into()
            }
        }
    }
}
