//! Tasks that a listen watches: looked at where they live, and told when they are others than they were (PROTOCOL D3).
//!
//! Each look is a `tasks/get` of the listener's own, down the same stack as every other call, so that nobody is told of what
//! they may not see, and what is told is what that request would have answered. Guarantees: only tasks that could be looked
//! at are acknowledged, at most [`MOST`]; one is looked at at a time, no more often than its server says, and not at all while
//! the client takes nothing; a task that is over is told once and let go of, and one that is no longer known is let go of.
//! Deliberately absent: an upstream's own push, which only saves the looks, and progress, which tasks do not have.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{
    StreamExt,
    future::{BoxFuture, OptionFuture, join_all},
    stream,
};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{
    call::{
        Call, CallId, Change, Cut, Event, Filter, Op, Outcome, Reply, ReplyStream, Step, TaskOp,
        Trail,
    },
    json::{Json, Node},
    protocol::{codes, meta},
    stack::{Error, McpService},
};

/// The most tasks of one listen.
const MOST: usize = 16;
/// How long the first looks may hold up the acknowledgement (PROTOCOL H16).
const PATIENCE: Duration = Duration::from_millis(800);
/// How long one look may take.
const LOOK: Duration = Duration::from_secs(15);
/// Between two looks at a task whose server does not say.
const PAUSE: Duration = Duration::from_secs(5);
/// The bounds of what a server may say, and of how far looks at one that is away move apart.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));

/// A listen, and what becomes of the tasks that it names.
struct Watch {
    looker: Looker,
    tasks: Vec<Task>,
    /// The look under way.
    looking: Option<BoxFuture<'static, (Arc<str>, Look)>>,
    /// States not told yet, at most one of each task.
    news: VecDeque<Json>,
    /// Everything else that the listen hears.
    rest: ReplyStream,
}

struct Task {
    handle: Arc<str>,
    /// What of its state was told last.
    told: Told,
    due: Instant,
    pause: Duration,
}

/// What makes a state another one, as spelled.
type Told = [Option<Box<str>>; 3];

/// Looks at tasks on behalf of one listener.
#[derive(Clone)]
struct Looker {
    service: McpService,
    listen: Box<Call>,
}

enum Look {
    /// Its state under its handle, as `tasks/get` says it.
    State(Json),
    /// There is none, for this listener.
    Gone,
    /// That cannot be said now.
    Unsaid,
}

/// Whether a listen names tasks.
pub(super) fn named_in(op: &Op) -> bool {
    matches!(op, Op::Listen(filter) if !filter.tasks.is_empty())
}

/// Begins a listen that names tasks.
pub(super) async fn listen(service: McpService, call: Box<Call>) -> Result<Reply, Error> {
    let Op::Listen(asked) = &call.op else {
        return service.call(call).await;
    };
    let asked = asked.clone();
    let reply = service.call(call.clone()).await?;
    let Reply::Stream(mut rest) = reply else {
        return Ok(reply);
    };
    let first = rest.next().await;
    let Some(Step::Event(Event::Acknowledged(granted))) = first else {
        let all = stream::iter(first).chain(rest);
        return Ok(Reply::Stream(ReplyStream::new(all.boxed())));
    };
    let looker = Looker {
        service,
        listen: call,
    };
    let mut watch = Watch {
        tasks: Vec::new(),
        looking: None,
        news: VecDeque::new(),
        rest,
        looker,
    };
    let acknowledged = Filter {
        tasks: watch.begin(&asked.tasks).await,
        ..(*granted).clone()
    };
    // The client named them once; how often they are looked at from now on is not its doing.
    watch.looker.listen.unasked = true;
    let first = stream::once(std::future::ready(Step::Event(Event::Acknowledged(
        Arc::new(acknowledged),
    ))));
    let steps = stream::unfold(watch, |mut watch| async {
        let step = watch.next().await?;
        Some((step, watch))
    });
    Ok(Reply::Stream(ReplyStream::new(first.chain(steps).boxed())))
}

impl Watch {
    /// Looks at all of them once. Those that there are.
    async fn begin(&mut self, handles: &[Arc<str>]) -> Vec<Arc<str>> {
        let deadline = Instant::now() + PATIENCE;
        let handles = handles.iter().take(MOST);
        let looks = handles.map(|handle| self.looker.clone().look_by(deadline, handle.clone()));
        let mut there = Vec::new();
        for (handle, look) in join_all(looks).await.into_iter().flatten() {
            let Look::State(state) = look else { continue };
            there.push(handle.clone());
            let mut task = Task {
                handle,
                told: Told::default(),
                due: Instant::now(),
                pause: PAUSE,
            };
            task.rest(&state);
            // That it works is what whoever was given it knows.
            if member(&state, "status").as_deref() == Some("working") {
                task.told = told(&state);
                self.tasks.push(task);
            } else {
                self.tasks.push(task);
                self.heard(state);
            }
        }
        there
    }

    /// The next thing to tell.
    async fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(state) = self.news.pop_front() {
                return Some(Step::Event(Event::Changed(Change::Task(state))));
            }
            let due = match &self.looking {
                Some(_) => None,
                None => self.tasks.iter().map(|task| task.due).min(),
            };
            tokio::select! {
                biased;
                step = self.rest.next() => return step,
                Some((handle, look)) = OptionFuture::from(self.looking.as_mut()) => {
                    self.looking = None;
                    self.looked(&handle, look);
                }
                Some(()) = OptionFuture::from(due.map(sleep_until)) => self.look(),
            }
        }
    }

    /// Begins to look at the one that has waited longest.
    fn look(&mut self) {
        let next = self.tasks.iter().min_by_key(|task| task.due);
        if let Some(task) = next {
            let trail = self.looker.listen.trail.renewed();
            let look = self.looker.clone().look(task.handle.clone(), trail);
            self.looking = Some(Box::pin(look));
        }
    }

    fn looked(&mut self, handle: &Arc<str>, look: Look) {
        let Some(place) = self.tasks.iter().position(|task| task.handle == *handle) else {
            return;
        };
        let task = &mut self.tasks[place];
        match look {
            Look::State(state) => {
                task.rest(&state);
                self.heard(state);
            }
            Look::Gone => drop(self.tasks.swap_remove(place)),
            Look::Unsaid => {
                task.pause = (task.pause * 2).min(PAUSES.1);
                task.due = Instant::now() + task.pause;
            }
        }
    }

    /// Has it told if it is news, and lets go of the task if nothing can follow.
    fn heard(&mut self, state: Json) {
        let Some(handle) = member(&state, "taskId") else {
            return;
        };
        let known = self.tasks.iter().position(|task| *task.handle == *handle);
        let Some(place) = known else { return };
        let told = told(&state);
        let news = self.tasks[place].told != told;
        let over = matches!(
            member(&state, "status").as_deref(),
            Some("completed" | "failed" | "cancelled")
        );
        if over {
            drop(self.tasks.swap_remove(place));
        } else {
            self.tasks[place].told = told;
        }
        if news {
            self.news.push_back(state);
        }
    }
}

impl Task {
    /// Until when it is left alone after this was seen.
    fn rest(&mut self, state: &Json) {
        let told = state.root().member("pollIntervalMs").and_then(Node::as_i64);
        let told = told.and_then(|millis| u64::try_from(millis).ok());
        self.pause = told
            .map_or(PAUSE, Duration::from_millis)
            .clamp(PAUSES.0, PAUSES.1);
        self.due = Instant::now() + self.pause;
    }
}

impl Looker {
    /// Looks, for as long as the acknowledgement can wait for it. That is no fault of whoever listens.
    async fn look_by(self, deadline: Instant, handle: Arc<str>) -> Option<(Arc<str>, Look)> {
        let trail = self.listen.trail.renewed();
        let look = self.look(handle, trail.clone());
        tokio::pin!(look);
        let looked = timeout_at(deadline, &mut look).await.ok();
        if looked.is_none() {
            trail.cut_alone(Cut::Late);
        }
        looked
    }

    async fn look(self, handle: Arc<str>, trail: Trail) -> (Arc<str>, Look) {
        let call = Call {
            id: CallId::new(),
            op: Op::Task(TaskOp::Get, handle.clone()),
            params: meta::object_of(&[("taskId", Json::string(&handle))]),
            resume: None,
            wants_progress: false,
            mirrored: None,
            deadline: Instant::now() + LOOK,
            trail,
            ..*self.listen
        };
        let outcome = match self.service.call(Box::new(call)).await {
            Ok(Reply::Done(outcome)) => Some(outcome),
            Ok(Reply::Stream(mut steps)) => loop {
                match steps.next().await {
                    Some(Step::Event(_)) => {}
                    Some(Step::Outcome(outcome)) => break Some(outcome),
                    None => break None,
                }
            },
            Err(error) if error.is_gone() => return (handle, Look::Gone),
            // A limit, a full disk, a server that is away: what stands against one look need not stand against the next.
            Err(_) => None,
        };
        let look = if let Some(Outcome::Complete(state)) = outcome {
            Look::State(state)
        } else if let Some(Outcome::Failed(error) | Outcome::Lost(error)) = &outcome
            && error.code == codes::INVALID_PARAMS
        {
            Look::Gone
        } else {
            Look::Unsaid
        };
        (handle, look)
    }
}

fn member<'a>(state: &'a Json, key: &str) -> Option<std::borrow::Cow<'a, str>> {
    state.root().member(key).and_then(Node::as_str)
}

fn told(state: &Json) -> Told {
    ["status", "statusMessage", "inputRequests"]
        .map(|key| state.root().member(key).map(|value| value.raw().into()))
}
