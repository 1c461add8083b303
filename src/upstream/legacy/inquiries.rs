//! What tasks ask callers who look at them now and then (PROTOCOL D3): kept between looks, and gone once answered.
//!
//! Bound: as many as calls may be parked; when there are more, those whose calls wait no more give way, else the new one is
//! not kept and is asked for again at the next look.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::park::{Lot, MAX_PARKED};
use crate::{call::Hold, json::Json};

/// A task: whose session it is on, and what its server calls it there.
pub(super) type Task = (Arc<str>, Arc<str>);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    // Held for a moment and never across an await.
    kept: Mutex<HashMap<Task, Inquiry>>,
}

/// What one task asks.
#[derive(Debug)]
pub(super) struct Inquiry {
    /// Of the call that waits for the answers.
    pub(super) number: u64,
    /// Keeps that call.
    pub(super) hold: Option<Hold>,
    /// What is asked.
    pub(super) requests: Json,
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

    /// What a task asks, if the call that waits for the answers still does. It is known no more.
    pub(super) fn take(&self, task: &Task, waits: impl Fn(u64) -> bool) -> Option<Inquiry> {
        let mut kept = self.kept();
        if !waits(kept.get(task)?.number) {
            return None;
        }
        kept.remove(task)
    }

    /// Keeps what a task asks.
    pub(super) fn keep(&self, task: Task, inquiry: Inquiry, lot: &Lot) {
        let mut kept = self.kept();
        if kept.len() >= MAX_PARKED {
            kept.retain(|_, inquiry| lot.waits(inquiry.number));
        }
        if kept.len() >= MAX_PARKED {
            return;
        }
        kept.insert(task, inquiry);
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Task, Inquiry>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
