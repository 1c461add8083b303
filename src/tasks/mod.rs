//! The one owner of spawned tasks: whoever starts a task holds a [`Tasks`], and nothing outlives it.

pub mod clock;
mod counted;
mod lanes;
pub mod quiet;

use std::future::Future;

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio_util::{future::FutureExt as _, sync::CancellationToken, task::TaskTracker};

pub use counted::{LaneArc, PerLaneArc};
pub use lanes::{LaneIndex, Lanes, PerLane, aside, look_through};

/// A family of tasks with one stop signal. Clones belong to the same family; [`Tasks::child`] begins a smaller one that
/// can be stopped on its own and is stopped with its parent.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    token: CancellationToken,
    lanes: Option<Lanes>,
}

impl Tasks {
    /// A family of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// A family of its own that has lanes to [`Tasks::spread`] over.
    pub fn over(lanes: Lanes) -> Self {
        Self {
            lanes: Some(lanes),
            ..Self::default()
        }
    }

    /// A family inside this one: its tasks are also waited for by the parent.
    pub fn child(&self) -> Self {
        Self {
            tracker: self.tracker.clone(),
            token: self.token.child_token(),
            lanes: self.lanes.clone(),
        }
    }

    /// The stop signal, for tasks that end in an orderly way.
    pub const fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Runs `task` until it ends or the family is stopped, whichever is first. A stopped task is dropped at its next await.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.begin_stoppable(task.boxed());
    }

    /// Runs `task` to its own end: it must watch [`Tasks::token`] itself.
    pub fn spawn_orderly(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.begin(task.boxed());
    }

    /// The same on one of the family's lanes, if it has any.
    pub fn spread(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.begin_on_a_lane(task.boxed());
    }

    // What the runtime does for a task is compiled for each kind of task, and each place that spawns has a kind of its own:
    // boxed they are one.

    fn begin_stoppable(&self, task: BoxFuture<'static, ()>) {
        if self.token.is_cancelled() {
            // Where it would have run: whoever spawns may hold what dropping it takes.
            return self.begin(async move { drop(task) });
        }
        let stopped = self.token.clone();
        self.begin(task.with_cancellation_token_owned(stopped).map(drop));
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(self.tracker.track_future(task)));
    }

    fn begin_on_a_lane(&self, task: BoxFuture<'static, ()>) {
        match self.lanes.as_ref().and_then(Lanes::seat) {
            None => self.begin(task),
            Some(seat) => {
                let lane = seat.handle();
                let seated = task.map(move |()| drop(seat));
                drop(lane.spawn(self.tracker.track_future(seated)));
            }
        }
    }

    /// Tells every task of this family to stop.
    pub fn stop(&self) {
        self.token.cancel();
    }

    /// Stops the family and waits until its last task is gone.
    pub async fn finish(self) {
        self.token.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
