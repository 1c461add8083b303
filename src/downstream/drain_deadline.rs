//! The end of the time that calls have to end by themselves when the gateway stops (SECURITY 6, `Drain`).
//!
//! Guarantees: from then on a request that is looked at and has no answer yet is answered `shutting_down`. Costs a call one
//! load whenever it waits, and nobody a lock but pipes. Deliberately absent: looking at requests, which is for whoever drives
//! them: a connection does so when its listener tells it.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

/// Whether there is any time left. A cheap handle.
#[derive(Debug, Clone, Default)]
pub struct DrainDeadline(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    told: CancellationToken,
}

impl DrainDeadline {
    /// There is no more time.
    pub fn tell(&self) {
        // Before anybody is woken by it.
        self.0.over.store(true, Ordering::Release);
        self.0.told.cancel();
    }

    /// Whether there is none.
    pub(super) fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    /// Does `work`, and looks at it once more when there is no more time.
    pub(super) async fn observed_by<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = self.0.told.cancelled() => {}
        }
        work.await
    }
}
