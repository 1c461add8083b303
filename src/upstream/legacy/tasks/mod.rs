//! Core tasks of 2025-11-25, for callers of either design and of none (PROTOCOL D3).
//!
//! | caller | tool | what happens |
//! |---|---|---|
//! | 2025-11-25 | any | its own `task` passes, and so does what it asks about the task |
//! | declares the extension | runs only as a task | we ask for a task; `tasks/get` holds its result once there is one |
//! | any other | runs only as a task | we ask for a task and wait for it; giving up cancels it, also while its caller is asked |
//!
//! What a task asks comes on the stream of its result. A core client reads that stream itself; for one that waits it is a
//! question of its call; for the extension it stands in the state, and is kept until the answers come.
//! Deliberately absent: progress of a task after it was made.

mod asking;
mod states;
mod unwanted;

use std::time::Duration;

use tokio::time::{Instant, sleep};

use self::states::{LONGEST, acknowledged, created, ended, id, mapped, pause, status, told, with};
use super::Legacy;
use crate::{
    call::{Call, CallId, Op, Outcome, Reply, TaskOp},
    catalog::Route,
    json::{Json, Kind},
    jsonrpc::RpcError,
    protocol::{codes, extensions, meta},
    upstream::{Deadline, UpstreamError, asking::Offer, params::Wish},
};

pub(super) use self::unwanted::Unwanted;

/// How many looks at a task that is waited for may bring no answer, one after the other, before it is given up.
const MISSED: u32 = 5;

/// What a call means for tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing.
    None,
    /// The caller asks for a task in this upstream's own way.
    Passed,
    /// We ask for a task, and the caller gets it.
    Added,
    /// We ask for a task, and the caller gets what comes of it.
    Awaited,
    /// About a task, in this upstream's own way.
    About(TaskOp),
    /// About a task, in the way of the extension.
    Translated(TaskOp),
}

impl Plan {
    /// What to do with a call, given whether its upstream has tasks. Looks into params only where it has, and where the
    /// caller may have asked for one.
    pub(super) fn of(call: &Call, route: &Route, has_tasks: bool) -> Self {
        let caller = &call.caller;
        let features = caller.revision.features();
        match &call.op {
            Op::Task(op, _) if features.core_tasks => Self::About(*op),
            Op::Task(op, _) => Self::Translated(*op),
            Op::CallTool(_) if !has_tasks => Self::None,
            Op::CallTool(_) if features.core_tasks => {
                let task = call.params.root().member("task");
                if task.is_some_and(|task| task.kind() != Kind::Null) {
                    Self::Passed
                } else {
                    Self::None
                }
            }
            Op::CallTool(_) if route.task_only => {
                if extensions::declares_tasks(&caller.capabilities, features) {
                    Self::Added
                } else {
                    Self::Awaited
                }
            }
            Op::CallTool(_)
            | Op::Discover
            | Op::List(..)
            | Op::GetPrompt(_)
            | Op::ReadResource(_)
            | Op::Complete(_)
            | Op::GetSkill(_)
            | Op::ReadDirectory(..)
            | Op::ListTasks(_)
            | Op::Listen(_) => Self::None,
        }
    }

    /// What becomes of `task` in the params.
    pub(super) const fn wish(self) -> Wish {
        match self {
            Self::Passed => Wish::Keep,
            Self::Added | Self::Awaited => Wish::Add,
            Self::None | Self::About(_) | Self::Translated(_) => Wish::Drop,
        }
    }
}

impl Legacy {
    /// Carries a call that has to do with tasks.
    pub(super) async fn carry_task(
        &self,
        call: Call,
        route: Route,
        plan: Plan,
    ) -> Result<Reply, UpstreamError> {
        match plan {
            Plan::None | Plan::About(TaskOp::Result) => self.once(&call, &route, plan).await,
            Plan::Passed | Plan::Added => {
                let reply = self.once(&call, &route, plan).await?;
                Ok(mapped(reply, created))
            }
            Plan::Awaited => self.awaited(&call, &route, plan).await,
            Plan::About(_) => {
                let reply = self.once(&call, &route, plan).await?;
                Ok(mapped(reply, told))
            }
            Plan::Translated(op) => {
                let outcome = match op {
                    TaskOp::Get => self.whole_state(&call, &route).await?,
                    TaskOp::Cancel => self.cancelled(&call, &route).await?,
                    TaskOp::Update => self.updated(&call, &route).await?,
                    TaskOp::Result => Outcome::Failed(RpcError::new(
                        codes::METHOD_NOT_FOUND,
                        "no such method in this revision",
                    )),
                };
                Ok(Reply::Done(outcome))
            }
        }
    }

    /// Runs a tool as a task and waits for its result.
    async fn awaited(
        &self,
        call: &Call,
        route: &Route,
        plan: Plan,
    ) -> Result<Reply, UpstreamError> {
        let outcome = created(ended(self.once(call, route, plan).await?).await);
        let Outcome::Task(task) = outcome else {
            return Ok(Reply::Done(outcome));
        };
        // The tool runs: whatever becomes of what is asked about it, it is not told as not sent.
        let result = self.result_of(task, call, route).await;
        result.map_err(UpstreamError::of_a_call_under_way)
    }

    /// Waits for the result of a task that runs the tool of `call`.
    async fn result_of(
        &self,
        task: Json,
        call: &Call,
        route: &Route,
    ) -> Result<Reply, UpstreamError> {
        let local = id(&task)?;
        let session = self
            .session(
                &self.slot(call, Offer::of_session(&self.terms, call))?,
                Some(&call.identity),
                call.deadline,
            )
            .await?;
        let mut unwanted = Unwanted::of(session, local.clone());
        let route = Route {
            local,
            ..route.clone()
        };
        let mut state = task;
        loop {
            match status(&state).as_deref() {
                Some("working") => {}
                Some("cancelled") => {
                    unwanted.keep();
                    return Ok(Reply::Done(Outcome::Failed(RpcError::new(
                        codes::INTERNAL_ERROR,
                        "the server cancelled the task that ran the tool",
                    ))));
                }
                // Its result: at once when it has ended, and where it asks something first, on the stream that it asks on.
                Some("completed" | "failed" | "input_required") => {
                    let result = about(call, TaskOp::Result);
                    let unwanted = Some(unwanted);
                    return self
                        .once_as(&result, &route, Plan::None, &call.op, unwanted)
                        .await;
                }
                _ => return Err(UpstreamError::Protocol("a task in no known state".into())),
            }
            let outcome = self.next_state(call, &route, pause(&state)).await?;
            let Outcome::Complete(next) = outcome else {
                unwanted.heed(&outcome);
                return Ok(Reply::Done(outcome));
            };
            state = next;
        }
    }

    /// The state of a task after a pause. What becomes of the task does not hang on one look at it: where a look brings no
    /// answer, there are others, further and further apart.
    async fn next_state(
        &self,
        call: &Call,
        route: &Route,
        mut pause: Duration,
    ) -> Result<Outcome, UpstreamError> {
        let mut missed = 0;
        loop {
            if Instant::now() + pause >= call.deadline {
                return Err(UpstreamError::Timeout(Deadline::Call));
            }
            sleep(pause).await;
            let look = self.state(call, route).await;
            let may_pass = match &look {
                Ok(Outcome::Lost(_)) => true,
                // A process that is gone has taken its tasks along.
                Err(UpstreamError::Unavailable { .. } | UpstreamError::Timeout(_)) => {
                    self.wire.streamable
                }
                Err(UpstreamError::Overloaded | UpstreamError::Engaged) => true,
                Ok(_) | Err(_) => false,
            };
            if !may_pass || missed == MISSED {
                return look;
            }
            missed += 1;
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// The state of a task in canonical words, with neither result nor error.
    async fn state(&self, call: &Call, route: &Route) -> Result<Outcome, UpstreamError> {
        let get = about(call, TaskOp::Get);
        Ok(told(ended(self.once(&get, route, Plan::None).await?).await))
    }

    /// The state of a task as the extension tells it.
    async fn whole_state(&self, call: &Call, route: &Route) -> Result<Outcome, UpstreamError> {
        let outcome = self.state(call, route).await?;
        let Outcome::Complete(state) = outcome else {
            return Ok(outcome);
        };
        Ok(match status(&state).as_deref() {
            Some("completed" | "failed") => {
                let result = about(call, TaskOp::Result);
                let outcome = ended(self.once(&result, route, Plan::None).await?).await;
                // A tool that failed has completed all the same (PROTOCOL G27).
                if let Outcome::Complete(result) = outcome {
                    with(&state, "completed", ("result", result))
                } else if let Outcome::Failed(mut error) = outcome {
                    // No code of the design that this is told in (PROTOCOL A6).
                    if error.code == codes::RESOURCE_NOT_FOUND {
                        error.code = codes::INVALID_PARAMS;
                    }
                    with(&state, "failed", ("error", error.to_json()))
                } else {
                    outcome
                }
            }
            Some("input_required") => self.inquired(call, route, &state).await?,
            _ => Outcome::Complete(state),
        })
    }

    /// Cancels a task, which the extension acknowledges whatever comes of it.
    async fn cancelled(&self, call: &Call, route: &Route) -> Result<Outcome, UpstreamError> {
        let cancel = about(call, TaskOp::Cancel);
        let outcome = ended(self.once(&cancel, route, Plan::None).await?).await;
        // It may be over already, which this design calls an error.
        if matches!(&outcome, Outcome::Failed(error) if error.code == codes::INVALID_PARAMS) {
            self.acknowledged(call, route).await
        } else {
            Ok(acknowledged(outcome))
        }
    }

    /// Nothing, if there is such a task.
    async fn acknowledged(&self, call: &Call, route: &Route) -> Result<Outcome, UpstreamError> {
        Ok(acknowledged(self.state(call, route).await?))
    }
}

/// A request of our own about the task that `call` is about or led to. The params are not the client's: nothing in them
/// but the id means anything here, and the peer puts the upstream's in its place.
fn about(call: &Call, op: TaskOp) -> Call {
    Call {
        id: CallId::new(),
        op: Op::Task(op, "".into()),
        params: meta::object_of(&[("taskId", Json::string(""))]),
        wants_progress: false,
        resume: None,
        mirrored: None,
        ..call.clone()
    }
}
