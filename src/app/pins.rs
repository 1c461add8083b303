//! Pins: keeps ledger and store together, and the lists up to date with both (SECURITY CAT-2).
//!
//! Guarantees: what somebody approves is offered within a second, to whomever its server offers it, and recorded before, whether or
//! not anybody is offered it then; what is new is on disk within a second; no call waits for a disk, and a refresh at most for
//! one file. Deliberately absent: what counts as a change, which `pins` says.

use std::{sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use crate::{
    audit::journal::{Journal, Kind},
    pins::Ledger,
    snapshot::World,
    tasks::Tasks,
};

/// How often the records are looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Begins to look at the records.
pub(super) fn start(ledger: Arc<Ledger>, world: Arc<World>, journal: Journal, tasks: &Tasks) {
    tasks.spawn(async move {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let (kept, noted) = (Arc::clone(&ledger), journal.clone());
            let anew = apart(move || {
                kept.keep(|upstream| {
                    tracing::info!(%upstream, "other definitions are approved");
                    noted.note(Kind::Approval, |detail| {
                        detail.text("upstream", upstream.as_str());
                    });
                })
            });
            for upstream in anew.await.unwrap_or_default() {
                let lists = Arc::clone(&world);
                apart(move || lists.reconsider(&upstream)).await;
            }
        }
    });
}

/// Does what takes too long for a thread that calls want: reads files, or looks at all principals' lists. `None` where it
/// panics.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = tokio::task::spawn_blocking(work).await.ok();
    if done.is_none() {
        tracing::error!(
            "looking after the pins ended early; what is offered may not be as they say"
        );
    }
    done
}
