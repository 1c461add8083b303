//! Pins: keeps ledger and store together, and the lists up to date with both (SECURITY CAT-2).
//!
//! Guarantees: what somebody approves is offered within a second, to whomever its server offers it, and recorded, whether or
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
            let kept = Arc::clone(&ledger);
            // It ends only with the runtime, and everything with it.
            let changed = tokio::task::spawn_blocking(move || kept.keep()).await;
            for upstream in changed.unwrap_or_default() {
                let (lists, id) = (Arc::clone(&world), upstream.clone());
                // All principals' lists are looked at: too long for a thread that calls want.
                let offers = tokio::task::spawn_blocking(move || lists.reconsider(&id)).await;
                let approved = ledger.take_reapproved(&upstream);
                if !approved && !offers.unwrap_or_default() {
                    continue;
                }
                tracing::info!(upstream = %upstream, "other definitions are approved");
                journal.note(Kind::Approval, |detail| {
                    detail.text("upstream", upstream.as_str());
                });
            }
        }
    });
}
