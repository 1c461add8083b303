//! What a channel brings, taken text by text: decoded, sorted, counted.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::{
    HELD_BYTES, Mux, Stray,
    exchange::{Pushed, Slot},
};
use crate::{
    json::{Limits, Node, scan},
    jsonrpc::{DecodeError, Frame, Message, Notification, decode, loose},
    metrics::{Bound, overstepped, reached},
    protocol::{meta, methods},
    upstream::UpstreamError,
};

/// The most texts in a row that are no message. A banner is forgiven, a stream of something else is not.
pub(in super::super) const MAX_NOISE: usize = 64;
/// How many oddities of one channel are logged one by one; the rest are only counted.
const MAX_LOGGED: u64 = 16;
/// How long a full queue holds the channel up: before the channel counts as flooded, where it is the unsolicited one; before what
/// finds no room is dealt with otherwise, where it is an exchange's and all are one caller's.
pub(super) const STALL: Duration = Duration::from_secs(10);
/// The same where they are not: so long takes whoever reads at once, and no longer are others held up.
const MOMENT: Duration = Duration::from_millis(20);

/// An unsolicited frame and the room that it takes up.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) frame: Frame,
    _room: OwnedSemaphorePermit,
}

/// Where the reader of a channel puts what it read. Dropping it ends the unsolicited frames.
#[derive(Debug)]
pub(in super::super) struct Inbox {
    mux: Mux,
    unsolicited: mpsc::Sender<Held>,
    room: Arc<Semaphore>,
    /// What messages are held to of which no exchange says otherwise.
    json: Limits,
    noise: usize,
    oddities: u64,
}

impl Inbox {
    pub(super) fn new(mux: Mux, unsolicited: mpsc::Sender<Held>, json: Limits) -> Self {
        Self {
            mux,
            unsolicited,
            room: Arc::new(Semaphore::new(HELD_BYTES)),
            json,
            noise: 0,
            oddities: 0,
        }
    }

    /// Takes one text: a line, the data of an event. Waits when it holds a frame that answers nothing and there is no
    /// room for it, which is how a flood is slowed down; for a shorter time, unless the channel is one caller's, also when it
    /// holds one of an exchange.
    ///
    /// # Errors
    /// `Protocol` when the channel brings nothing but noise, or floods. It should then be closed.
    pub(in super::super) async fn take(&mut self, text: Bytes) -> Result<(), UpstreamError> {
        // Before it is known whose it is: as loosely as any exchange may want.
        match decode(text.clone(), &self.json.of_lists()) {
            Ok(Message::One(frame)) => {
                self.noise = 0;
                self.sort(frame, &text).await
            }
            Ok(Message::Batch(frames)) => {
                self.noise = 0;
                for frame in frames {
                    // A slice would keep the whole batch for as long as the frame waits.
                    let frame = frame.detached();
                    let carried = frame.payload();
                    self.sort(frame, carried.bytes()).await?;
                }
                Ok(())
            }
            Err(error) => self.broken(&text, &error),
        }
    }

    /// Puts a frame where it belongs. `text` is what it is held to its limits by, and what it costs while it waits.
    async fn sort(&mut self, frame: Frame, text: &[u8]) -> Result<(), UpstreamError> {
        let cost = text.len();
        match &frame {
            Frame::Response(response) => {
                // Some refuse what they do not know without saying what it was: `server/discover`, as a rule (PROTOCOL B1.9, C3).
                let number = match &response.id {
                    Some(id) => id.as_minted(),
                    None => self.mux.only(),
                };
                let wire = self.json.of_lists();
                let mut reads = true;
                let sorted = match number {
                    Some(number) => self.mux.finish(number, |limits| {
                        let fits = within(limits, &wire, text);
                        reads = fits.is_ok();
                        fits.map(|()| frame)
                    }),
                    None => Err(Stray::Foreign),
                };
                match (sorted, number) {
                    (Ok(()), Some(number)) if !reads => self.mux.late(number),
                    (Ok(()), _) => {}
                    (Err(Stray::Late), Some(number)) => {
                        self.mux.late(number);
                        self.odd("late answer");
                    }
                    (Err(Stray::Late | Stray::Foreign), _) => {
                        self.odd("answer to an id that nobody waits for");
                    }
                }
                Ok(())
            }
            Frame::Notification(notification) => {
                let waiting = progress_of(notification).and_then(|number| self.mux.waiting(number));
                match waiting {
                    Some((slot, _limits)) => {
                        if self.put(&slot, frame, cost).await.is_some() {
                            self.odd("late progress");
                        }
                        Ok(())
                    }
                    None => match listen_of(notification) {
                        Some(number) if self.listen(number, &frame, cost) => Ok(()),
                        _ => self.pass_on(frame, text).await,
                    },
                }
            }
            Frame::Request(_) => self.pass_on(frame, text).await,
        }
    }

    /// Puts a frame into the queue of the exchange that it is of; waits for room where there is none. Gives the frame back where
    /// the exchange is over, or has more questions before it than are read.
    async fn put(&self, slot: &Slot, frame: Frame, cost: usize) -> Option<Frame> {
        let mut frame = frame;
        loop {
            frame = match slot.push(frame, cost) {
                Pushed::Taken | Pushed::TooLarge => return None,
                Pushed::Over(frame) => return Some(frame),
                Pushed::Full(frame) => frame,
            };
            if !self.has_room(slot, &frame, cost).await {
                return slot.coalesce_or_drop(frame, cost);
            }
        }
    }

    /// Whether there is room after all, for whoever reads at once, and for whoever does not where nobody else is held up.
    async fn has_room(&self, slot: &Slot, frame: &Frame, cost: usize) -> bool {
        let most = if self.mux.is_of_one() { STALL } else { MOMENT };
        tokio::select! {
            biased;
            () = self.mux.hurried() => false,
            has_room = slot.has_room(frame, cost, most) => has_room,
        }
    }

    /// Hands a frame to the listen that it names; false when there is none. A listen loses nothing: one that cannot take
    /// more ends, and whoever began it looks again.
    fn listen(&mut self, number: u64, frame: &Frame, cost: usize) -> bool {
        let Some(slot) = self.mux.listening(number) else {
            return false;
        };
        if !matches!(slot.push(frame.clone(), cost), Pushed::Taken) {
            self.odd("more changes than are read");
            let end = |_: &Limits| Err(UpstreamError::unreached("more changes than are read"));
            // It may have ended meanwhile, which is as well.
            let _ended = self.mux.finish(number, end);
        }
        true
    }

    async fn pass_on(&mut self, frame: Frame, text: &[u8]) -> Result<(), UpstreamError> {
        let cost = text.len();
        if within(&self.json, &self.json.of_lists(), text).is_err() {
            self.odd("message over its limits");
            return Ok(());
        }
        // By the way that its answer takes, or that would overtake it. What comes back is nobody's: a request is refused then.
        let frame = match self.mux.owner(&frame) {
            Some(slot) => match self.put(&slot, frame, cost).await {
                None => return Ok(()),
                Some(frame) => frame,
            },
            None => frame,
        };
        let room = u32::try_from(cost.min(HELD_BYTES)).unwrap_or(u32::MAX);
        let taken = self.mux.unsolicited_is_taken();
        let unsolicited = &self.unsolicited;
        let held = |permit| Held {
            frame,
            _room: permit,
        };
        if !taken {
            // Nobody has asked for these frames yet, and perhaps nobody will: they must not hold answers up.
            let kept = Arc::clone(&self.room)
                .try_acquire_many_owned(room)
                .is_ok_and(|permit| unsolicited.try_send(held(permit)).is_ok());
            if !kept {
                reached(Bound::UpstreamUnread);
                self.odd("message that nobody reads");
            }
            return Ok(());
        }
        let queued = tokio::time::timeout(STALL, async {
            // When the receiver is gone the permits come back, and the frame goes nowhere.
            if let Ok(permit) = Arc::clone(&self.room).acquire_many_owned(room).await {
                drop(unsolicited.send(held(permit)).await);
            }
        });
        queued.await.map_err(|_elapsed| {
            UpstreamError::Protocol("more unsolicited messages than can be taken".into())
        })
    }

    fn broken(&mut self, text: &[u8], error: &DecodeError) -> Result<(), UpstreamError> {
        let mut spoiled: Vec<_> = error
            .answered
            .iter()
            .filter_map(|id| id.as_minted())
            .collect();
        if spoiled.is_empty() {
            // Only in this corner is an answer read loosely: whose it spoils, no more.
            spoiled.extend(loose::answered(text));
        }
        let mut told = false;
        for number in spoiled {
            let fault = |_: &Limits| Err(UpstreamError::undecodable(error));
            told |= self.mux.finish(number, fault).is_ok();
            // Its server has done with it, though nobody can read with what.
            self.mux.late(number);
        }
        if told {
            self.noise = 0;
            return Ok(());
        }
        self.mux.hear(text);
        self.noise += 1;
        if self.noise > MAX_NOISE {
            return Err(UpstreamError::Protocol(format!(
                "more than {MAX_NOISE} messages in a row that are none: {error}"
            )));
        }
        // Not what it says: that may be a result, or a secret.
        let length = text.len();
        self.odd(&format!(
            "a text of {length} bytes that is no message: {error}"
        ));
        Ok(())
    }

    /// Counts something odd, and logs it unless there was much of it.
    fn odd(&mut self, what: &str) {
        self.oddities += 1;
        let upstream = self.mux.0.upstream.as_str();
        if self.oddities <= MAX_LOGGED {
            tracing::debug!(upstream, "{what}");
        } else if self.oddities.is_power_of_two() {
            tracing::debug!(upstream, count = self.oddities, "more oddities on the pipe");
        }
    }
}

/// The number in the progress token, which is the id of the request that it was sent with.
fn progress_of(notification: &Notification) -> Option<u64> {
    if &*notification.method != methods::PROGRESS {
        return None;
    }
    let token = notification
        .params
        .as_ref()?
        .root()
        .member(meta::PROGRESS_TOKEN)
        .and_then(Node::as_i64)?;
    u64::try_from(token).ok()
}

/// The listen that a notification says it belongs to, or to be the end of (PROTOCOL B6, H1).
fn listen_of(notification: &Notification) -> Option<u64> {
    let params = notification.params.as_ref()?.root();
    let number = if &*notification.method == methods::CANCELLED {
        params.member("requestId")?
    } else {
        params.member(meta::META)?.member(meta::SUBSCRIPTION_ID)?
    };
    u64::try_from(number.as_i64()?).ok()
}

/// Holds a text that was read with the limits of the wire against stricter ones; read again only where they could say no.
fn within(limits: &Limits, wire: &Limits, text: &[u8]) -> Result<(), UpstreamError> {
    let as_loose = limits.depth >= wire.depth
        && limits.members >= wire.members
        && limits.key_bytes >= wire.key_bytes
        && limits.number_bytes >= wire.number_bytes;
    // Each value but the first takes a comma, a colon or a bracket beside its own byte.
    if as_loose && text.len() / 2 <= limits.values {
        return Ok(());
    }
    match scan(text, limits) {
        Ok(_span) => Ok(()),
        Err(error) => {
            overstepped(error, Bound::UpstreamDepth);
            Err(UpstreamError::Protocol(error.to_string()))
        }
    }
}
