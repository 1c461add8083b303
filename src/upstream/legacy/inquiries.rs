//! What tasks ask callers who look at them now and then (PROTOCOL D3): kept between looks, and gone once answered.
//!
//! Bound: as many as calls may be parked; when there are more, those whose calls wait no more give way, else the new one is
//! not kept and is asked for again at the next look.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::park::{Lot, MAX_PARKED};
use crate::json::Json;

/// A task: whose session it is on, and what its server calls it there.
pub(super) type Task = (Arc<str>, Arc<str>);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    // Held for a moment and never across an await.
    kept: Mutex<HashMap<Task, Inquiry>>,
}

#[derive(Debug)]
struct Inquiry {
    /// Of the call that waits for the answers.
    number: u64,
    requests: Json,
}

impl Inquiries {
    /// What a task asks, if the call that waits for the answers still does.
    pub(super) fn pending(&self, task: &Task, waits: impl Fn(u64) -> bool) -> Option<Json> {
        let mut kept = self.kept();
        let inquiry = kept.get(task)?;
        if waits(inquiry.number) {
            return Some(inquiry.requests.clone());
        }
        kept.remove(task);
        None
    }

    /// The call that waits for the answers of a task, if it still does. It is known no more.
    pub(super) fn take(&self, task: &Task, waits: impl Fn(u64) -> bool) -> Option<u64> {
        let mut kept = self.kept();
        if !waits(kept.get(task)?.number) {
            return None;
        }
        kept.remove(task).map(|inquiry| inquiry.number)
    }

    /// Keeps what a task asks.
    pub(super) fn keep(&self, task: Task, number: u64, requests: &Json, lot: &Lot) {
        let mut kept = self.kept();
        if kept.len() >= MAX_PARKED {
            kept.retain(|_, inquiry| lot.waits(inquiry.number));
        }
        if kept.len() >= MAX_PARKED {
            return;
        }
        let inquiry = Inquiry {
            number,
            requests: requests.clone(),
        };
        kept.insert(task, inquiry);
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Task, Inquiry>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
