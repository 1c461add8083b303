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

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    Legacy,
    inquiries::{self, Inquiry, Known},
    open::OpenCall,
    session::Session,
};
use crate::{
    call::{
        Call, CallId, InputRequired, Op, Outcome, Reply, ReplyStream, Resume, State, Step, TaskOp,
    },
    catalog::Route,
    json::{Edits, Fate, Json, Node},
    jsonrpc::RpcError,
    protocol::{ClientCapabilities, codes, extensions, meta, methods},
    resume::{Asked, Bounds},
    upstream::{Peer, UpstreamError, asking::Offer, exchange, params::Wish, terms::Share},
};

/// How often a task that is waited for is looked at when its server does not say.
const PAUSE: Duration = Duration::from_secs(1);
/// The bounds of what a server may say.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));
/// How many looks at a task that is waited for may bring no answer, one after the other, before it is given up.
const MISSED: u32 = 5;
/// How long a server that waits for answers may take to ask.
const ASKING: Duration = Duration::from_secs(5);
/// How long a look waits for what comes of an answer: what is not answered is asked again at once.
const ANSWERING: Duration = Duration::from_millis(500);
/// How long telling the server that a task is not wanted any more may take.
const FAREWELL: Duration = Duration::from_secs(5);

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
                if call.params.root().member("task").is_some() {
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
        let local = id(&task)?;
        let session = self
            .session(
                &self.slot(call, Offer::of_session(&call.caller))?,
                Some(&call.identity),
                call.deadline,
            )
            .await?;
        let mut unwanted = Unwanted(Some((session, local.clone())));
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
                return Err(UpstreamError::Timeout("call"));
            }
            sleep(pause).await;
            let look = self.state(call, route).await;
            let may_pass = match &look {
                Ok(Outcome::Lost(_)) => true,
                // A process that is gone has taken its tasks along.
                Err(UpstreamError::Unavailable { .. } | UpstreamError::Timeout(_)) => {
                    self.wire.streamable
                }
                Ok(_) | Err(_) => false,
            };
            if !may_pass || missed == MISSED {
                return look;
            }
            missed += 1;
            pause = (pause * 2).min(PAUSES.1);
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

    /// The state of a task that waits for its caller, with what it asks (PROTOCOL D3): its server asks on the stream of its
    /// result, which is held open from here on until the answers come.
    async fn inquired(
        &self,
        call: &Call,
        route: &Route,
        state: &Json,
    ) -> Result<Outcome, UpstreamError> {
        let offer = Offer::of(&call.caller);
        let asks = |requests: &Json| {
            let requests = offered(requests, offer);
            with(state, "input_required", ("inputRequests", requests))
        };
        // Nothing was declared, so nothing can be asked that anybody could answer.
        if offer.is_none() {
            return Ok(asks(&Json::empty_object()));
        }
        let mut result = about(call, TaskOp::Result);
        result.deadline = call.deadline.min(Instant::now() + ASKING);
        let task = inquirer(call, route);
        let turn = match self.inquiries.seek(&task, &result, &self.lot) {
            Known::Asked(requests) => return Ok(asks(&requests)),
            Known::Full => return Err(UpstreamError::Overloaded),
            Known::Nothing(turn) => turn,
            Known::Sought(sought) => {
                let until = if sought.answering {
                    call.deadline.min(Instant::now() + ANSWERING)
                } else {
                    result.deadline
                };
                // Whether that took too long shows in what is known.
                drop(timeout_at(until, sought.over.cancelled()).await);
                let held = |number| self.lot.holds(number, &result);
                return Ok(match self.inquiries.pending(&task, held) {
                    Some((_, requests)) => asks(&requests),
                    // What it asked has just been answered.
                    None if sought.answering => goes_on(state),
                    None => asks(&Json::empty_object()),
                });
            }
        };
        let reply = match self.once(&result, route, Plan::None).await {
            // It has not asked on this stream, perhaps because it has on another.
            Err(UpstreamError::Timeout(_) | UpstreamError::Engaged) => {
                return Ok(asks(&Json::empty_object()));
            }
            // Others are being asked on its pipe. Where there are no turns, there was no room.
            Err(UpstreamError::Overloaded) if !self.carries_all() => {
                return Ok(asks(&Json::empty_object()));
            }
            reply => reply?,
        };
        if let Some(inquiry) = inquiry_of(ended(reply).await) {
            let requests = inquiry.requests.clone();
            turn.keep(inquiry);
            return Ok(asks(&requests));
        }
        Ok(goes_on(state))
    }

    /// Takes answers to what a task asks. Those to keys that are not outstanding are ignored, and what comes of them shows
    /// when the task is looked at again.
    async fn updated(&self, call: &Call, route: &Route) -> Result<Outcome, UpstreamError> {
        let result = about(call, TaskOp::Result);
        let task = inquirer(call, route);
        let held = |number| self.lot.holds(number, &result);
        let brought = call.params.root().member("inputResponses");
        let answered = match self.inquiries.pending(&task, held).zip(brought) {
            Some(((number, requests), brought)) => {
                let bounds = &self.terms.peer.asking;
                let answers = outstanding(&requests, &call.params.slice(brought), bounds)?;
                answers.map(|answers| (number, answers))
            }
            None => None,
        };
        let Some((number, answers)) = answered else {
            return self.acknowledged(call, route).await;
        };
        // Before the question is taken: refused here, the answers can be brought again.
        let permit = self
            .terms
            .gate
            .enter(&call.caller.principal, call.deadline)
            .await?;
        let Some((Inquiry { hold, .. }, turn)) = self.inquiries.take(&task, number) else {
            // Somebody else was quicker.
            drop(permit);
            return self.acknowledged(call, route).await;
        };
        let Some(open) = self.lot.take(number, &result).await else {
            drop((permit, turn));
            return self.acknowledged(call, route).await;
        };
        let resumed = Call {
            resume: Some(Resume {
                responses: Some(answers),
                hold,
                ..Resume::default()
            }),
            ..result
        };
        let (inquiries, lot) = (Arc::clone(&self.inquiries), Arc::clone(&self.lot));
        // The answer is owed at once, and the task may take as long as it likes.
        self.terms.tasks.spawn(async move {
            let mut next = pin!(asked_next(open, &resumed, permit));
            let (turn, inquiry) = match timeout(ASKING, &mut next).await {
                Ok(inquiry) => (Some(turn), inquiry),
                // Should its server still want answers, whoever looks may have it asked: these may not have come to it.
                Err(_elapsed) => {
                    drop(turn);
                    let inquiry = next.await;
                    let free = match inquiries.seek(&task, &resumed, &lot) {
                        Known::Nothing(turn) => Some(turn),
                        Known::Asked(_) | Known::Sought(_) | Known::Full => None,
                    };
                    (free, inquiry)
                }
            };
            if let (Some(turn), Some(inquiry)) = (turn, inquiry) {
                turn.keep(inquiry);
            }
        });
        Ok(Outcome::Complete(Json::empty_object()))
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

/// Tells the server that a task is not wanted any more, unless it has come to an end.
pub(super) struct Unwanted(Option<(Arc<Session>, Arc<str>)>);

impl Unwanted {
    /// It is over, or the server's own affair.
    fn keep(&mut self) {
        self.0 = None;
    }

    /// It is over if this is an end: a question is none, and whose result is lost may go on.
    pub(super) fn heed(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Complete(_)
            | Outcome::Failed(_)
            | Outcome::Task(_)
            | Outcome::Listed(_)
            | Outcome::Card(_) => self.keep(),
            Outcome::InputRequired(_) | Outcome::Lost(_) => {}
        }
    }

    /// The reply, which is heeded.
    pub(super) fn heeding(mut self, reply: Reply) -> Reply {
        mapped(reply, move |outcome| {
            self.heed(&outcome);
            outcome
        })
    }
}

impl Drop for Unwanted {
    fn drop(&mut self) {
        // Outside a runtime there is nobody to tell it: the process is ending.
        let Some((session, local)) = self.0.take() else {
            return;
        };
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (tasks, parked) = (session.line.terms.tasks.clone(), session.parked.clone());
        // A session that ends waits for it, as for the calls that are parked there.
        tasks.spawn(parked.track_future(async move {
            let line = &session.line;
            let params = meta::object_of(&[("taskId", Json::string(&local))]);
            let headers = line.headers.clone();
            let deadline = Instant::now() + FAREWELL;
            let method = methods::TASKS_CANCEL;
            let told = exchange::ask(line, method, &params, headers, deadline, true).await;
            if let Err(error) = told {
                tracing::debug!(%error, "a task could not be cancelled");
            }
        }));
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

/// A state in canonical words, if there is one.
fn told(outcome: Outcome) -> Outcome {
    if let Outcome::Complete(state) = outcome {
        Outcome::Complete(canonical(&state))
    } else {
        outcome
    }
}

/// Nothing in the place of what there is.
fn acknowledged(outcome: Outcome) -> Outcome {
    if matches!(outcome, Outcome::Complete(_)) {
        Outcome::Complete(Json::empty_object())
    } else {
        outcome
    }
}

/// What is asked, without what may not be asked of whoever looks: each look declares for itself (SECURITY STATE-3).
fn offered(requests: &Json, offer: Offer) -> Json {
    let fate = |_: &str, request: Node<'_>| {
        let method = request.member("method").and_then(Node::as_str);
        let method = method.unwrap_or_default();
        match offer.allows(&method, request.member("params")) {
            Ok(()) => Fate::Keep,
            Err(_) => Fate::Remove,
        }
    };
    let mut edits = Edits::new();
    edits.members(requests.root(), fate, &[]);
    requests.splice(&edits)
}

/// The answers to what is asked, if there are any among what was brought. What it was asked for when it was, its caller need not
/// declare again.
///
/// # Errors
/// [`UpstreamError::BadAnswer`] for one that its question may not have (SECURITY STATE-3).
fn outstanding(
    requests: &Json,
    brought: &Json,
    bounds: &Bounds,
) -> Result<Option<Json>, UpstreamError> {
    let anything = ClientCapabilities::read(Offer::LISTING.json());
    let anything = anything.unwrap_or(ClientCapabilities::NONE);
    let asked = Asked::of(requests, &anything, bounds);
    let asked = asked.map_err(|fault| UpstreamError::Protocol(fault.to_string()))?;
    let answers = asked.answers(brought);
    let answers = answers.map_err(|bad| UpstreamError::BadAnswer(bad.key.map(Into::into)))?;
    let any = answers.root().members().next().is_some();
    Ok(any.then_some(answers))
}

/// What a task asks once it has the answers that `resumed` brings, if it does.
async fn asked_next(open: Box<OpenCall>, resumed: &Call, permit: Share) -> Option<Inquiry> {
    match open.resume(resumed, resumed.deadline, permit).await {
        Ok(reply) => inquiry_of(ended(reply).await),
        Err(error) => {
            tracing::debug!(%error, "a task could not be answered");
            None
        }
    }
}

/// What is to be kept of an outcome that asks.
fn inquiry_of(outcome: Outcome) -> Option<Inquiry> {
    let Outcome::InputRequired(InputRequired {
        requests,
        state: State::Parked(number),
        hold,
    }) = outcome
    else {
        return None;
    };
    Some(Inquiry {
        number,
        hold,
        requests,
    })
}

/// Which task asks.
fn inquirer(call: &Call, route: &Route) -> inquiries::Task {
    (call.caller.affinity.key.clone(), route.local.clone())
}

/// A task out of `CreateTaskResult`, in canonical words. Any other result stays one: a server may run a tool at once.
fn created(outcome: Outcome) -> Outcome {
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
fn canonical(state: &Json) -> Json {
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
fn with(state: &Json, status: &str, member: (&str, Json)) -> Outcome {
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
fn goes_on(state: &Json) -> Outcome {
    let mut edits = Edits::new();
    edits.set(state.root(), "status", Json::string("working"));
    Outcome::Complete(state.splice(&edits))
}

fn status(state: &Json) -> Option<String> {
    let status = state.root().member("status")?;
    status.as_str().map(std::borrow::Cow::into_owned)
}

fn id(task: &Json) -> Result<Arc<str>, UpstreamError> {
    let id = task.root().member("taskId").and_then(Node::as_str);
    id.map(|id| id.as_ref().into())
        .ok_or_else(|| UpstreamError::Protocol("made a task without an id".into()))
}

fn pause(state: &Json) -> Duration {
    let told = state
        .root()
        .member("pollIntervalMs")
        .and_then(Node::as_i64)
        .and_then(|millis| u64::try_from(millis).ok());
    told.map_or(PAUSE, Duration::from_millis)
        .clamp(PAUSES.0, PAUSES.1)
}

/// The reply with its outcome changed.
fn mapped(reply: Reply, change: impl FnOnce(Outcome) -> Outcome + Send + 'static) -> Reply {
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
async fn ended(reply: Reply) -> Outcome {
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
