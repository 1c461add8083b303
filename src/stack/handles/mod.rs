//! Handles: what clients know tasks by (PROTOCOL D3, SECURITY STATE-7).
//!
//! Guarantees: a client never sees an upstream's task id and an upstream never sees a handle; a handle that was altered,
//! belongs to somebody else or another endpoint, or is too old is refused as an unknown one is, before the upstream hears of
//! it. Nothing is stored for that, so any replica with the secret serves any handle.

mod cursor;
mod ledger;
mod list;
mod token;

use std::sync::Arc;

use futures_util::StreamExt;

use super::{Error, Missing, Parts, Wrap};
use crate::{
    call::{Caller, Op, Outcome, Reference, Reply, ReplyStream, Step, TaskOp},
    catalog::Route,
    json::{Edits, Fate, Json, Kind, Node},
    jsonrpc::RpcError,
    protocol::{
        UpstreamId, codes,
        extensions::{self, TaskDesign},
        meta,
    },
    resume::{Asked, Bounds},
    sanitize::Sanitizer,
    seal::{Sealer, unix_seconds},
    stage::{Passage, Permitted, Pinned, Target},
    upstream::{FromUpstream, UpstreamError, words},
};

use ledger::{Holder, Ledger};
use token::{TOOL_BYTES, Task};

/// Gives handles out and takes them back. Cloning is cheap; clones remember together.
#[derive(Debug, Clone)]
pub(super) struct Handles {
    sealer: Arc<Sealer>,
    sanitizer: Arc<Sanitizer>,
    asking: Bounds,
    ledger: Arc<Ledger>,
}

/// What is remembered of a call.
#[derive(Debug)]
pub(super) enum Mark {
    /// No task is in it.
    None,
    /// May become a task.
    May(Box<Maker>),
    /// Is about one.
    About {
        handle: Arc<str>,
        route: Route,
        op: TaskOp,
        caller: Arc<Caller>,
        asking: Bounds,
        /// The approval that it began with.
        approval: Option<Reference>,
    },
}

/// What is told in the place of a message that holds a server's own id of a task.
const UNTOLD: &str = "the server of this task answered with an error";

/// What a handle is made of, but for the task.
#[derive(Debug)]
pub(super) struct Maker {
    handles: Handles,
    holder: Holder,
    /// Whether the client can ask for a list of its tasks: only those of the core can.
    lists: bool,
    upstream: UpstreamId,
    tool: Arc<str>,
    design: TaskDesign,
    approval: Option<Reference>,
}

impl Handles {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            sealer: parts.sealer.clone(),
            sanitizer: parts.sanitizer.clone(),
            asking: parts.asking,
            ledger: Arc::default(),
        }
    }

    /// Where an operation on tasks goes.
    ///
    /// # Errors
    /// When the endpoint has no tasks for this client, the client did not declare them, or the handle opens to nothing.
    pub(super) fn route(&self, pinned: &Pinned) -> Result<Target, Error> {
        let call = pinned.call();
        let catalog = &pinned.snapshot().catalog;
        let (caller, scope) = (&call.caller, &call.scope);
        let features = caller.revision.features();
        let offered = catalog
            .offered(scope)
            .is_some_and(|offered| offered.has_tasks(features));
        if !offered {
            return Err(Error::NotOffered(call.op.method().into()));
        }
        if features.task_extension && !extensions::declares_tasks(&caller.capabilities, features) {
            return Err(Error::NeedsCapabilities(needed()));
        }
        let Op::Task(_, handle) = &call.op else {
            return Ok(Target::Snapshot);
        };
        let unknown = || Error::Unknown(Missing::Task);
        let task =
            Task::open(&self.sealer, &call.owner(), handle, unix_seconds()).ok_or_else(unknown)?;
        // A core client could do nothing with a task of the extension, and ids do not outlive a change of era.
        let known = catalog.namespace(scope, &task.upstream).is_some()
            && catalog
                .offers(scope, &task.upstream)
                .is_none_or(|offers| offers.tasks == Some(task.design))
            && (features.task_extension || task.design == TaskDesign::Core);
        if !known {
            return Err(unknown());
        }
        let tool = task.tool_in(catalog, scope);
        let mut route = task.route();
        // Its result is one of the tool, and held to what that is.
        route.terms = tool.and_then(|tool| tool.terms.clone());
        Ok(Target::Task {
            local_tool: tool.map(|tool| tool.local.clone()),
            tool: task.tool,
            route,
        })
    }
}

/// Whether a caller may get a task in the place of a result.
fn takes_tasks(caller: &Caller) -> bool {
    let features = caller.revision.features();
    features.core_tasks || extensions::declares_tasks(&caller.capabilities, features)
}

/// What a modern client has to declare.
fn needed() -> Json {
    let ids = meta::object_of(&[(extensions::TASKS, Json::empty_object())]);
    meta::object_of(&[(extensions::MEMBER, ids)])
}

impl Wrap<Box<Permitted>> for Handles {
    type Mark = Mark;

    fn enter(&self, routed: &mut Box<Permitted>) -> Mark {
        let Some(route) = routed.passage().map(Passage::route) else {
            return Mark::None;
        };
        let call = &routed.call;
        if let Op::Task(op, handle) = &call.op {
            let task = Task::open(&self.sealer, &call.owner(), handle, unix_seconds());
            return Mark::About {
                handle: handle.clone(),
                route: route.clone(),
                op: *op,
                caller: call.caller.clone(),
                asking: self.asking,
                approval: task.and_then(|task| task.approval),
            };
        }
        let catalog = &routed.snapshot.catalog;
        let Op::CallTool(tool) = &call.op else {
            return Mark::None;
        };
        if !catalog.has_tasks() || !takes_tasks(&call.caller) {
            return Mark::None;
        }
        let offers = catalog.offers(&call.scope, &route.upstream);
        let Some(design) = offers.and_then(|offers| offers.tasks) else {
            return Mark::None;
        };
        Mark::May(Box::new(Maker {
            handles: self.clone(),
            holder: Holder::of(call),
            lists: call.caller.revision.features().core_tasks,
            upstream: route.upstream.clone(),
            tool: tool.clone(),
            design,
            approval: routed.approved().map(|approved| approved.reference),
        }))
    }

    fn leave(&self, mark: Mark, result: Result<Reply, Error>) -> Result<Reply, Error> {
        if matches!(mark, Mark::None) {
            return result;
        }
        match result? {
            Reply::Done(outcome) => mark.outcome(outcome).map(Reply::Done),
            Reply::Stream(stream) => {
                let steps = stream.map(move |step| match step {
                    Step::Event(event) => Step::Event(event),
                    Step::Outcome(outcome) => {
                        // Once an event has gone out a refusal can only be an outcome.
                        Step::Outcome(mark.outcome(outcome).unwrap_or_else(|error| late(&error)))
                    }
                });
                Ok(Reply::Stream(ReplyStream::new(steps.boxed())))
            }
        }
    }
}

impl Mark {
    fn outcome(&self, outcome: Outcome) -> Result<Outcome, Error> {
        match (self, outcome) {
            (Self::May(maker), Outcome::Task(task)) => maker.made(&task),
            // Some servers call the state of a task a task again, instead of a complete answer (PROTOCOL D3).
            (
                Self::About {
                    handle,
                    route,
                    op,
                    caller,
                    asking,
                    approval,
                },
                Outcome::Complete(result) | Outcome::Task(result),
            ) => Ok(Outcome::Complete(match op {
                TaskOp::Get => {
                    if caller.revision.features().task_extension {
                        sound(&result).map_err(|what| broken(&route.upstream, what))?;
                    }
                    askable(&result, caller, &route.upstream, asking)?;
                    stamped(named(&result, handle), *approval)
                }
                TaskOp::Cancel | TaskOp::Update => bare(&result, handle),
                TaskOp::Result => stamped(result, *approval),
            })),
            (Self::About { route, op, .. }, Outcome::Failed(error)) => {
                failed(error, &route.local, *op)
            }
            (_, outcome) => Ok(outcome),
        }
    }
}

impl Maker {
    /// A task just made, under its handle.
    fn made(&self, task: &Json) -> Result<Outcome, Error> {
        let local = task.root().member("taskId").and_then(Node::as_str);
        let sealed = local.filter(|local| !local.is_empty()).and_then(|local| {
            let task = Task {
                upstream: self.upstream.clone(),
                local: local.as_ref().into(),
                design: self.design,
                tool: Some(self.tool.clone()).filter(|tool| tool.len() <= TOOL_BYTES),
                approval: self.approval,
            };
            let sealer = &self.handles.sealer;
            let handle = task.seal(sealer, self.holder.owner(), unix_seconds())?;
            Some((task, handle))
        });
        let Some((made, handle)) = sealed else {
            return Err(broken(&self.upstream, "a task that cannot be named"));
        };
        if self.lists {
            let (holder, known) = (self.holder.clone(), handle.as_str().into());
            self.handles.ledger.add(holder, known, Arc::new(made));
        }
        Ok(Outcome::Task(stamped(bare(task, &handle), self.approval)))
    }
}

/// A result, with the reference of the approval that its task began with.
fn stamped(result: Json, approval: Option<Reference>) -> Json {
    match approval {
        Some(approval) => approval.stamp(&result),
        None => result,
    }
}

/// Whether a state is one that the extension has, with what belongs to it (SECURITY EGR-11).
///
/// # Errors
/// What is wrong with it.
fn sound(state: &Json) -> Result<(), &'static str> {
    let root = state.root();
    let holds = |key| {
        let held = root.member(key);
        held.is_some_and(|held| held.kind() == Kind::Object)
    };
    let status = root.member("status").and_then(Node::as_str);
    match status.as_deref() {
        Some("completed") if !holds("result") => Err("a task that has completed without a result"),
        Some("input_required") if !holds("inputRequests") => Err("a task that asks for nothing"),
        Some("working" | "input_required" | "completed" | "failed" | "cancelled") => Ok(()),
        _ => Err("a task in no known state"),
    }
}

fn broken(upstream: &UpstreamId, what: impl ToString) -> Error {
    Error::Upstream(FromUpstream {
        upstream: upstream.clone(),
        error: UpstreamError::Protocol(what.to_string()),
    })
}

/// Whether a task asks for nothing but what its caller declared (SECURITY STATE-3).
fn askable(
    state: &Json,
    caller: &Caller,
    upstream: &UpstreamId,
    bounds: &Bounds,
) -> Result<(), Error> {
    let Some(requests) = state.root().member("inputRequests") else {
        return Ok(());
    };
    match Asked::of(&state.slice(requests), &caller.capabilities, bounds) {
        Ok(_) => Ok(()),
        Err(fault) => Err(broken(upstream, fault)),
    }
}

/// A task under its handle, without what only a state that was asked for may hold: elsewhere nobody checks that.
fn bare(task: &Json, handle: &str) -> Json {
    let mut edits = Edits::new();
    let fate = |key: &str, _: Node<'_>| match key {
        "taskId" => Fate::Replace(Json::string(handle)),
        "inputRequests" | "result" | "error" => Fate::Remove,
        _ => Fate::Keep,
    };
    edits.members(task.root(), fate, &[]);
    task.splice(&edits)
}

/// A task's state under its handle. Results without a task in them stay as they are.
fn named(task: &Json, handle: &str) -> Json {
    let mut edits = Edits::new();
    if let Some(id) = task.root().member("taskId") {
        edits.replace(id, Json::string(handle));
    }
    task.splice(&edits)
}

/// An upstream's own error about a task. One that it does not know is unknown to us. What else it says may hold its id, and goes
/// no further then: the id is the upstream's choice, so a handle in each of its places could be a message of any length.
fn failed(mut error: RpcError, local: &str, op: TaskOp) -> Result<Outcome, Error> {
    // A core task that is over cannot be cancelled, which the client is to hear.
    if error.code == codes::INVALID_PARAMS && op != TaskOp::Cancel {
        return Err(Error::Unknown(Missing::Task));
    }
    if error.message.contains(local) {
        error.message = UNTOLD.to_owned();
    }
    error.data = error.data.filter(|data| !data.as_str().contains(local));
    Ok(Outcome::Failed(error))
}

/// A refusal after events have gone out. That a state is broken says nothing of whether there is such a task.
fn late(error: &Error) -> Outcome {
    let (code, text) = if let Error::Upstream(FromUpstream { upstream, error }) = error {
        let text = words::describe(upstream, error);
        (codes::UPSTREAM_PROTOCOL, text)
    } else {
        (codes::INVALID_PARAMS, format!("no such {}", Missing::Task))
    };
    Outcome::Lost(RpcError {
        data: Some(meta::object_of(&[("reason", Json::string(error.reason()))])),
        ..RpcError::new(code, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    /// SECURITY REL-2: an id may be one byte, and a handle is a hundred times as long.
    #[test]
    fn an_error_that_holds_a_servers_own_id_is_told_in_words_of_ours() {
        let told = |message: &str| {
            let error = RpcError::new(codes::INTERNAL_ERROR, message);
            let Outcome::Failed(error) = failed(error, "a", TaskOp::Get).unwrap() else {
                panic!("an error stays one");
            };
            error.message
        };
        assert_eq!(told(&"a".repeat(1 << 20)), UNTOLD);
        assert_eq!(told("it is too old"), "it is too old");
    }

    #[test]
    fn of_a_state_that_nobody_asked_for_only_what_it_says_of_itself_is_kept() {
        let state = r#"{"inputRequests":{"k":{}},"taskId":"a","status":"working","result":{},"error":{},"ttlMs":1}"#;
        let state = Json::parse(state.into(), &Limits::UPSTREAM).unwrap();
        assert_eq!(
            bare(&state, "h").as_str(),
            r#"{"taskId":"h","status":"working","ttlMs":1}"#
        );
        let nothing = Json::empty_object();
        assert_eq!(bare(&nothing, "h").as_str(), "{}");
    }
}
