//! Pauses: a call whose client is asked is nowhere in the stack, and may end there. Then that is told as any other end is.
//!
//! In the stateless era nobody knows of such a call: it is over with its question, and made again with the answer. A session's
//! is one request all the while, of which the client is told how it ends.

use std::{fmt, sync::Arc};

use super::{CallObservers, Error, ObservedCall, Operation, Parts, ended};
use crate::{
    call::{Call, Decision, Facts, Origin, Trail},
    tasks::PerLaneArc,
};

/// Tells of calls that end in a pause.
#[derive(Clone)]
pub(in crate::stack) struct Pauses(Arc<PerLaneArc<CallObservers>>);

/// A call whose client is asked. Dropped before it goes on or ends, its client went away, or it was cut off.
#[derive(Debug)]
pub struct Pause(Box<ObservedCall>);

impl Pauses {
    pub(in crate::stack) fn new(parts: &Parts) -> Self {
        Self(Arc::new(PerLaneArc::from(CallObservers::of(parts))))
    }

    /// The client of this call is asked from now on; `None` where nobody wants to know.
    pub(in crate::stack) fn begin(&self, call: &Call) -> Option<Pause> {
        let observers = &**self.0;
        if observers.auditor.is_none() && !observers.feed.is_watched() {
            return None;
        }
        let trail = if call.trail.is_read() {
            call.trail.renewed()
        } else {
            Trail::of(Origin::default())
        };
        // It leads where it led, and was let through, whoever refuses now.
        let before = call.trail.read(|facts| Facts {
            route: facts.route.clone(),
            grounds: facts.grounds.clone(),
            round: facts.round,
            decision: facts.decision,
            ..Facts::default()
        });
        trail.note(|facts| {
            *facts = before;
            facts.decision = match facts.decision {
                Decision::Pending => Decision::Pending,
                // What is recorded here is the end of a pause alone.
                Decision::Permitted | Decision::Recorded => Decision::Permitted,
            };
        });
        Some(Pause(Box::new(ObservedCall {
            of: Operation {
                trail,
                ..Operation::of(call)
            },
            observers: self.0.here(),
            // Its time was told with its question.
            span: None,
            told: false,
        })))
    }
}

impl Pause {
    /// The call goes on, and is told of by what watches it there.
    pub fn go_on(mut self) {
        self.0.told = true;
    }

    /// The call ends here, with this.
    pub fn end(mut self, error: &Error) {
        let features = self.0.of.caller.revision.features();
        self.0.tell(ended::refused(error, features));
    }
}

impl fmt::Debug for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pauses")
    }
}
