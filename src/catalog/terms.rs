//! Terms: what the arguments and results of a tool are held to (PRODUCT 11, SECURITY MSG-12).
//!
//! Guarantees: schemas that ask nothing of anything are left out, so that such tools cost nothing at all. Deliberately absent:
//! what is done about a value that does not fit, which the stack does as the rules here say.

use std::{sync::Arc, time::Duration};

use super::rules::{OnBroken, Validation};
use crate::{
    json::{Json, Node},
    schema::{Names, Schema, Verdict, steps_in},
};

/// What hosts put among the arguments of whatever tool they call. Servers drop what they do not know, though many say of it that
/// it must not be there, as `zod` 3 writes of every object: a model that is told so cannot leave out what its host adds.
const OF_HOSTS: [&str; 5] = [
    // Gemini CLI has it in the schemas that it shows the model, and does not take it away again.
    "wait_for_previous",
    // n8n, beside every call.
    "toolCallId",
    // n8n, where its agent is given the item that its trigger made: the members of a chat message.
    "sessionId",
    "action",
    "chatInput",
];

/// What one tool takes and gives.
#[derive(Debug)]
pub struct Terms {
    input: Option<Arc<Schema>>,
    output: Option<Arc<Schema>>,
    /// How long a check may take.
    steps: u32,
    /// What is done about results that do not fit.
    pub on_results: OnBroken,
    /// What is done about arguments that do not fit.
    pub on_arguments: OnBroken,
}

impl Terms {
    /// Those of a tool with these schemas; `None` when there is nothing to hold it to.
    pub(super) fn of(
        input: Option<Arc<Schema>>,
        output: Option<Arc<Schema>>,
        validation: Validation,
        time: Duration,
    ) -> Option<Arc<Self>> {
        let input = input.filter(|_| validation.arguments != OnBroken::Off);
        let output = output.filter(|_| validation.results != OnBroken::Off);
        (input.is_some() || output.is_some()).then(|| {
            Arc::new(Self {
                input,
                output,
                steps: steps_in(time),
                on_results: validation.results,
                on_arguments: validation.arguments,
            })
        })
    }

    /// Whether results are held to anything.
    pub const fn binds_results(&self) -> bool {
        self.output.is_some()
    }

    /// How the arguments of a call stand to the input schema; none are the empty object. What hosts add, and no more than that, may
    /// be there at the root where a schema forbids what it does not know: whether to take it is left to the server.
    pub fn arguments(&self, arguments: Option<Node<'_>>) -> Verdict {
        let Some(schema) = &self.input else {
            return Verdict::Fits;
        };
        match arguments {
            Some(arguments) => schema.check_beside(arguments, self.steps, Names::All, &OF_HOSTS),
            None => schema.check(Json::empty_object().root(), self.steps, Names::All),
        }
    }

    /// How the `structuredContent` of a result stands to the output schema; `None` when the schema wants one and there is
    /// none. Errors need none (PROTOCOL A4). What is told of it is told to whoever called, for whom the upstream's own names were not
    /// looked at.
    pub fn result(&self, result: Node<'_>) -> Option<Verdict> {
        let Some(schema) = &self.output else {
            return Some(Verdict::Fits);
        };
        if result.member("isError").and_then(Node::as_bool) == Some(true) {
            return Some(Verdict::Fits);
        }
        let content = result.member("structuredContent")?;
        Some(schema.check(content, self.steps, Names::Known))
    }

    /// Whether a result may leave with this `structuredContent` as far as the output schema goes: for whoever changes
    /// results. What cannot be judged may; what would take too long may not.
    pub fn conforms(&self, structured: Node<'_>) -> bool {
        let schema = self.output.as_ref();
        schema.is_none_or(|schema| schema.conforms(structured, self.steps))
    }
}

/// Equal when made of the same schemas: each text is laid out once.
impl PartialEq for Terms {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &Option<Arc<Schema>>, other: &Option<Arc<Schema>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same(&self.input, &other.input)
            && same(&self.output, &other.output)
            && (self.steps, self.on_results, self.on_arguments)
                == (other.steps, other.on_results, other.on_arguments)
    }
}

impl Eq for Terms {}
