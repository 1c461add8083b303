//! States of tasks, in the words of the core and of the extension.
//!
//! Guarantees: what nobody knows in a state stays in it. Deliberately absent: when a state is asked for.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;

use crate::{
    call::{Outcome, Reply, ReplyStream, Step},
    json::{Edits, Fate, Json, Node},
    jsonrpc::RpcError,
    protocol::{codes, meta},
    upstream::UpstreamError,
};

/// How often a task that is waited for is looked at when its server does not say.
const PAUSE: Duration = Duration::from_secs(1);
/// The bounds of what a server may say.
const SHORTEST: Duration = Duration::from_millis(50);
/// The same.
pub(super) const LONGEST: Duration = Duration::from_secs(10);

/// A state in canonical words, if there is one.
pub(super) fn told(outcome: Outcome) -> Outcome {
    if let Outcome::Complete(state) = outcome {
        Outcome::Complete(canonical(&state))
    } else {
        outcome
    }
}

/// Nothing in the place of what there is.
pub(super) fn acknowledged(outcome: Outcome) -> Outcome {
    if matches!(outcome, Outcome::Complete(_)) {
        Outcome::Complete(Json::empty_object())
    } else {
        outcome
    }
}

/// A task out of `CreateTaskResult`, in canonical words. Any other result stays one: a server may run a tool at once.
pub(super) fn created(outcome: Outcome) -> Outcome {
    let Outcome::Complete(result) = &outcome else {
        return outcome;
    };
    let Some(task) = result.root().member("task") else {
        return outcome;
    };
    let state = canonical(&result.slice(task));
    let Some(told) = result.root().member(meta::META) else {
        return Outcome::Task(state);
    };
    let mut edits = Edits::new();
    edits.set(state.root(), meta::META, result.slice(told));
    Outcome::Task(state.splice(&edits))
}

/// A task's state of the core in the words of the extension.
pub(super) fn canonical(state: &Json) -> Json {
    let root = state.root();
    let value = |key| root.member(key).map(|value| state.slice(value));
    let mut more = vec![(
        "ttlMs",
        value("ttl").unwrap_or_else(|| Json::literal("null")),
    )];
    more.extend(value("pollInterval").map(|pause| ("pollIntervalMs", pause)));
    let fate = |key: &str, _: Node<'_>| match key {
        "ttl" | "pollInterval" | "ttlMs" | "pollIntervalMs" | "result" | "error"
        | "inputRequests" => Fate::Remove,
        _ => Fate::Keep,
    };
    let mut edits = Edits::new();
    edits.members(root, fate, &more);
    state.splice(&edits)
}

/// A state with this status, and what belongs to it.
pub(super) fn with(state: &Json, status: &str, member: (&str, Json)) -> Outcome {
    let fate = |key: &str, _: Node<'_>| {
        if key == "status" {
            Fate::Replace(Json::string(status))
        } else {
            Fate::Keep
        }
    };
    let mut edits = Edits::new();
    edits.members(state.root(), fate, &[member]);
    Outcome::Complete(state.splice(&edits))
}

/// The state of a task that asked and goes on: what it is after that shows when it is looked at again.
pub(super) fn goes_on(state: &Json) -> Outcome {
    let mut edits = Edits::new();
    edits.set(state.root(), "status", Json::string("working"));
    Outcome::Complete(state.splice(&edits))
}

pub(super) fn status(state: &Json) -> Option<String> {
    let status = state.root().member("status")?;
    status.as_str().map(std::borrow::Cow::into_owned)
}

pub(super) fn id(task: &Json) -> Result<Arc<str>, UpstreamError> {
    let id = task.root().member("taskId").and_then(Node::as_str);
    id.map(|id| id.as_ref().into())
        .ok_or_else(|| UpstreamError::Protocol("made a task without an id".into()))
}

pub(super) fn pause(state: &Json) -> Duration {
    let told = state
        .root()
        .member("pollIntervalMs")
        .and_then(Node::as_i64)
        .and_then(|millis| u64::try_from(millis).ok());
    told.map_or(PAUSE, Duration::from_millis)
        .clamp(SHORTEST, LONGEST)
}

/// The reply with its outcome changed.
pub(super) fn mapped(
    reply: Reply,
    change: impl FnOnce(Outcome) -> Outcome + Send + 'static,
) -> Reply {
    match reply {
        Reply::Done(outcome) => Reply::Done(change(outcome)),
        Reply::Stream(stream) => {
            let mut change = Some(change);
            let steps = stream.map(move |step| match step {
                Step::Outcome(outcome) => Step::Outcome(match change.take() {
                    Some(change) => change(outcome),
                    None => outcome,
                }),
                event @ Step::Event(_) => event,
            });
            Reply::Stream(ReplyStream::new(steps.boxed()))
        }
    }
}

/// The outcome of a reply, whatever comes before it.
pub(super) async fn ended(reply: Reply) -> Outcome {
    let mut stream = match reply {
        Reply::Done(outcome) => return outcome,
        Reply::Stream(stream) => stream,
    };
    loop {
        match stream.next().await {
            Some(Step::Outcome(outcome)) => return outcome,
            Some(Step::Event(_)) => {}
            // A stream ends in an outcome; this is never come to.
            None => {
                return Outcome::Lost(RpcError::new(
                    codes::UPSTREAM_UNAVAILABLE,
                    "the stream ended before its answer",
                ));
            }
        }
    }
}
