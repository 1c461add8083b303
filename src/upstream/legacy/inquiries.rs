//! What tasks ask callers who look at them now and then (PROTOCOL D3): kept between looks, and gone once answered.
//!
//! Guarantees: one at a time finds out what a task asks, by asking its server or by answering it, since a server that is asked
//! twice asks twice; what still waits for answers is not replaced.
//! Bound: as many as calls may be parked; when there are more, those whose calls wait no more give way, else there is no room.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

use super::park::{MAX_PARKED, ParkedCalls};
use crate::{
    call::{Call, Hold},
    json::Json,
};

/// A task: whose session it is on, and what its server calls it there.
pub(super) type Task = (Arc<str>, Arc<str>);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    // Held for a moment and never across an await.
    kept: Mutex<HashMap<Task, Place>>,
}

#[derive(Debug)]
enum Place {
    /// Somebody is finding out.
    Sought(Sought),
    /// It asks this.
    Asked(Inquiry),
}

/// That somebody is finding out what a task asks.
#[derive(Debug, Clone)]
pub(super) struct Sought {
    /// Whether by answering what it asked before.
    pub(super) answering: bool,
    /// Cancelled when they have, or have given up.
    pub(super) over: CancellationToken,
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

/// What is known of what a task asks.
pub(super) enum Known {
    /// This.
    Asked(Json),
    /// Nothing yet: somebody else is finding out.
    Sought(Sought),
    /// Nothing: whoever has this turn finds out.
    Nothing(Turn),
    /// Nothing, and there is no room to keep it.
    Full,
}

/// The turn to find out what a task asks. Dropping it lets others have it.
pub(super) struct Turn {
    inquiries: Arc<Inquiries>,
    task: Task,
    over: CancellationToken,
    /// Whether its place is somebody else's from here on.
    left: bool,
}

impl Inquiries {
    /// What a task asks and the number of the call that waits for the answers, if that still does.
    pub(super) fn pending(&self, task: &Task, waits: impl Fn(u64) -> bool) -> Option<(u64, Json)> {
        match self.kept().get(task)? {
            Place::Asked(asked) if waits(asked.number) => {
                Some((asked.number, asked.requests.clone()))
            }
            Place::Asked(_) | Place::Sought(_) => None,
        }
    }

    /// What is known of what a task asks, for `call`, which could go on with the call that waits for the answers; the turn to
    /// find out, if nobody has it.
    pub(super) fn seek(
        self: &Arc<Self>,
        task: &Task,
        call: &Call,
        parked_calls: &ParkedCalls,
    ) -> Known {
        let mut kept = self.kept();
        match kept.get(task) {
            Some(Place::Asked(asked)) if parked_calls.holds(asked.number, call) => {
                return Known::Asked(asked.requests.clone());
            }
            Some(Place::Sought(sought)) => return Known::Sought(sought.clone()),
            Some(Place::Asked(_)) | None => {}
        }
        if kept.len() >= MAX_PARKED {
            kept.retain(|_, place| match place {
                Place::Asked(asked) => parked_calls.waits(asked.number),
                Place::Sought(_) => true,
            });
        }
        if kept.len() >= MAX_PARKED {
            return Known::Full;
        }
        let (sought, turn) = self.turn(task, false);
        kept.insert(task.clone(), Place::Sought(sought));
        Known::Nothing(turn)
    }

    /// What a task asks, for whoever answers the call of this number. From here on it is theirs to find out what it asks next.
    pub(super) fn take(self: &Arc<Self>, task: &Task, number: u64) -> Option<(Inquiry, Turn)> {
        let mut kept = self.kept();
        let asked = match kept.remove(task)? {
            Place::Asked(asked) if asked.number == number => asked,
            other @ (Place::Asked(_) | Place::Sought(_)) => {
                kept.insert(task.clone(), other);
                return None;
            }
        };
        let (sought, turn) = self.turn(task, true);
        kept.insert(task.clone(), Place::Sought(sought));
        Some((asked, turn))
    }

    fn turn(self: &Arc<Self>, task: &Task, answering: bool) -> (Sought, Turn) {
        let over = CancellationToken::new();
        let turn = Turn {
            inquiries: Arc::clone(self),
            task: task.clone(),
            over: over.clone(),
            left: false,
        };
        (Sought { answering, over }, turn)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Task, Place>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Keeps what was found.
    pub(super) fn keep(mut self, inquiry: Inquiry) {
        self.left = true;
        let mut kept = self.inquiries.kept();
        kept.insert(self.task.clone(), Place::Asked(inquiry));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.left {
            self.inquiries.kept().remove(&self.task);
        }
        self.over.cancel();
    }
}
