//! Where a session's unasked frames find the call they belong to, on transports that do not say (PROTOCOL D0.4).
//!
//! Guarantees: a server's request goes to the one call that may be asked, and there is at most one on a session at a time; a log
//! line goes to a call only when no other is in flight; what fits nowhere is given back, never guessed. Bounds: 32 frames wait
//! for a call. Deliberately absent: Streamable HTTP, whose streams say it themselves.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{sync::mpsc, time::Instant};

use crate::{
    call::Principal,
    jsonrpc::Frame,
    protocol::methods,
    upstream::{
        UpstreamError,
        terms::{Gate, Share},
    },
};

/// The most frames that wait to be taken by one call.
const QUEUE: usize = 32;

/// The desk of one session.
pub(super) struct Desk {
    /// Who may be asked goes one after another, or nobody could say whom a question is for.
    turn: Gate,
    /// Calls in flight on the session.
    busy: AtomicUsize,
    /// Who wants to hear of unasked frames. A lock, because both ends only ever touch it for a moment.
    seats: Mutex<Vec<Place>>,
}

struct Place {
    number: u64,
    asks: bool,
    frames: mpsc::Sender<Frame>,
}

/// A call's place at its session's desk. Dropping it is leaving.
pub(super) struct Seat {
    /// What it hears of, if it wants to hear of anything.
    frames: Option<mpsc::Receiver<Frame>>,
    number: u64,
    desk: Arc<Desk>,
    _turn: Option<Share>,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self {
            turn: Gate::of_one(),
            busy: AtomicUsize::new(0),
            seats: Mutex::default(),
        }
    }

    /// Waits until nobody else of the session may be asked.
    ///
    /// # Errors
    /// [`UpstreamError::Overloaded`] at `deadline`, or when too many wait already.
    pub(super) async fn turn(&self, deadline: Instant) -> Result<Share, UpstreamError> {
        // One of a session after the other: a session is one principal's.
        self.turn.enter(&Principal::anonymous(), deadline).await
    }

    /// Sits down for the call with this number: with a turn it may be asked, and it may want to hear of log lines.
    pub(super) fn sit(self: &Arc<Self>, number: u64, turn: Option<Share>, logs: bool) -> Seat {
        let frames = (turn.is_some() || logs).then(|| {
            let (sender, frames) = mpsc::channel(QUEUE);
            self.seats().push(Place {
                number,
                asks: turn.is_some(),
                frames: sender,
            });
            frames
        });
        self.busy.fetch_add(1, Ordering::Relaxed);
        Seat {
            frames,
            number,
            desk: Arc::clone(self),
            _turn: turn,
        }
    }

    /// Hands a frame to the call it belongs to; gives it back where there is none, and where the call has no room for it.
    pub(super) fn hand(&self, frame: Frame) -> Option<Frame> {
        let seats = self.seats();
        let place = match &frame {
            Frame::Request(request) if &*request.method == methods::PING => None,
            Frame::Request(_) => seats.iter().find(|place| place.asks),
            Frame::Notification(notification) => match &*notification.method {
                methods::CANCELLED | methods::ELICITATION_COMPLETE => {
                    seats.iter().find(|place| place.asks)
                }
                methods::MESSAGE if self.busy.load(Ordering::Relaxed) == 1 => seats.first(),
                _ => None,
            },
            Frame::Response(_) => None,
        };
        match place {
            Some(place) => match place.frames.try_send(frame) {
                Ok(()) => None,
                Err(
                    mpsc::error::TrySendError::Full(frame)
                    | mpsc::error::TrySendError::Closed(frame),
                ) => Some(frame),
            },
            None => Some(frame),
        }
    }

    /// A panic under the lock leaves a list that is still whole, so poison says nothing.
    fn seats(&self) -> MutexGuard<'_, Vec<Place>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// The next frame for the call. Waits for ever when there is none.
    pub(super) async fn next(&mut self) -> Frame {
        match &mut self.frames {
            Some(frames) => match frames.recv().await {
                Some(frame) => frame,
                // The sender lives at the desk, which this holds.
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.frames.is_some() {
            self.desk
                .seats()
                .retain(|place| place.number != self.number);
        }
        self.desk.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
