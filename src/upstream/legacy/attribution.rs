//! Which call a session's unasked frames belong to, on transports that do not say (PROTOCOL D0.4).
//!
//! Guarantees: a server's request goes to the one call that may be asked, and there is at most one on a session at a time; a log
//! line goes to a call only when no other is in flight; what fits nowhere is nobody's, never guessed: a call that is given up
//! keeps its seat until its server has had time to heed that, or what it still asks would be the next call's. Deliberately
//! absent: Streamable HTTP, whose streams say it themselves but for one (`ear`).

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    call::Principal,
    jsonrpc::Frame,
    protocol::methods,
    upstream::{
        UpstreamError,
        terms::{CallQueue, CallSlot},
        transport::Owners,
    },
};

/// How long a server may take to heed that a call which may be asked is given up, unless it answers it before: so long the next
/// one waits.
pub(super) const HEEDING: Duration = Duration::from_secs(3);

/// Who of one session may be asked, and is told.
#[derive(Debug)]
pub(super) struct Attribution {
    /// Who may be asked goes one after another, or nobody could say whom a question is for.
    turn: CallQueue,
    /// Calls in flight on the session.
    busy: AtomicUsize,
    /// Whether the session is one caller's.
    of_one: bool,
    /// Who wants to hear of unasked frames. A lock, because both ends only ever touch it for a moment.
    seats: Mutex<Vec<Place>>,
}

#[derive(Debug)]
struct Place {
    number: u64,
    /// Set where it may be asked; cancelled when its answer came after all.
    asks: Option<CancellationToken>,
}

/// A call's seat in its session. Dropping it is leaving.
pub(super) struct SessionSlot {
    number: u64,
    attribution: Arc<Attribution>,
    /// Its turn, where it may be asked, and what is cancelled when its answer came after all.
    turn: Option<(CallSlot, CancellationToken)>,
}

impl SessionSlot {
    /// Leaves when the server, which was told that the call is given up, can be taken to have done with it. What is asked until
    /// then is nobody's: the call is not there to hear it, and no other may be asked.
    pub(super) async fn leave_in_time(self) {
        // Of who was never to be asked, no question could be taken for another's. A log line could, which is worth no wait.
        if let Some((_, answered)) = &self.turn {
            drop(timeout(HEEDING, answered.cancelled()).await);
        }
    }
}

impl Attribution {
    /// Nobody yet; whether its session is one caller's, and not shared.
    pub(super) fn new(of_one: bool) -> Self {
        Self {
            turn: CallQueue::of_one(),
            busy: AtomicUsize::new(0),
            of_one,
            seats: Mutex::default(),
        }
    }

    /// Waits until nobody else of the session may be asked.
    ///
    /// # Errors
    /// [`UpstreamError::Overloaded`] at `deadline`, or when too many wait already.
    pub(super) async fn turn(&self, deadline: Instant) -> Result<CallSlot, UpstreamError> {
        // One of a session after the other: a session is one principal's.
        self.turn.enter(&Principal::anonymous(), deadline).await
    }

    /// Sits down for the call with this number: with a turn it may be asked, and it may want to hear of log lines.
    pub(super) fn sit(
        self: &Arc<Self>,
        number: u64,
        turn: Option<CallSlot>,
        logs: bool,
    ) -> SessionSlot {
        let turn = turn.map(|turn| (turn, CancellationToken::new()));
        if turn.is_some() || logs {
            let asks = turn.as_ref().map(|(_turn, answered)| answered.clone());
            self.seats().push(Place { number, asks });
        }
        self.busy.fetch_add(1, Ordering::Relaxed);
        SessionSlot {
            number,
            attribution: Arc::clone(self),
            turn,
        }
    }

    /// A panic under the lock leaves a list that is still whole, so poison says nothing.
    fn seats(&self) -> MutexGuard<'_, Vec<Place>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owners for Attribution {
    fn whose(&self, frame: &Frame) -> Option<u64> {
        let seats = self.seats();
        let place = match frame {
            Frame::Request(request) if &*request.method == methods::PING => None,
            Frame::Request(_) => seats.iter().find(|place| place.asks.is_some()),
            Frame::Notification(notification) => match &*notification.method {
                methods::CANCELLED | methods::ELICITATION_COMPLETE => {
                    seats.iter().find(|place| place.asks.is_some())
                }
                methods::MESSAGE if self.busy.load(Ordering::Relaxed) == 1 => seats.first(),
                _ => None,
            },
            Frame::Response(_) => None,
        };
        place.map(|place| place.number)
    }

    fn late(&self, number: u64) {
        let seats = self.seats();
        let place = seats.iter().find(|place| place.number == number);
        if let Some(answered) = place.and_then(|place| place.asks.as_ref()) {
            answered.cancel();
        }
    }

    fn is_of_one(&self) -> bool {
        self.of_one
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        self.attribution
            .seats()
            .retain(|place| place.number != self.number);
        self.attribution.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
