//! One exchange: a small queue between the one that reads the channel and the one that waits for an answer.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use super::{HELD_BYTES, Mux, QUEUE, RESERVE};
use crate::{
    jsonrpc::Frame,
    metrics::{Bound, reached},
    protocol::methods,
    upstream::UpstreamError,
};

type Item = Result<Frame, UpstreamError>;

/// The waiting end. Dropping it gives the id up.
#[derive(Debug)]
pub(in super::super) struct Exchange {
    mux: Mux,
    number: u64,
    slot: Arc<Slot>,
}

impl Exchange {
    pub(super) const fn new(mux: Mux, number: u64, slot: Arc<Slot>) -> Self {
        Self { mux, number, slot }
    }

    /// The writing end: for a writer that would rather not send what nobody waits for any more.
    pub(in super::super) fn slot(&self) -> Arc<Slot> {
        Arc::clone(&self.slot)
    }

    /// The next frame; the response, or an error, is the last.
    pub(super) async fn next(&mut self) -> Option<Item> {
        poll_fn(|cx| {
            let mut queue = self.slot.queue();
            match queue.items.pop_front() {
                Some(next) => {
                    queue.taken_out(&next);
                    if queue.items.is_empty() {
                        queue.waited = Duration::ZERO;
                    }
                    self.slot.freed.notify_one();
                    Poll::Ready(Some(next.item))
                }
                None if queue.finished => Poll::Ready(None),
                None => {
                    queue.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.slot.queue().abandoned = true;
        self.slot.freed.notify_one();
        self.mux.abandon(self.number);
    }
}

/// The queue of one exchange. A mutex, because both ends only ever touch it for a moment.
#[derive(Debug, Default)]
pub(in super::super) struct Slot {
    queue: Mutex<Queue>,
    /// Told when something was read, and when nothing more will be: for the one that fills it.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Queued>,
    told: Load,
    asked: Load,
    waker: Option<Waker>,
    finished: bool,
    abandoned: bool,
    /// How long room was waited for that counts, since it was last read to its end.
    waited: Duration,
}

#[derive(Debug)]
struct Queued {
    item: Item,
    bytes: usize,
    kind: Kind,
}

/// How much of one kind waits.
#[derive(Debug, Default)]
struct Load {
    frames: usize,
    bytes: usize,
}

/// What a frame is to whoever reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// How far it is: the newest says all that those before it said.
    Progress,
    /// What else is told.
    Told,
    /// What the server waits for, and what it takes back of that. There is room of its own for it.
    Asked,
}

/// What became of a frame.
#[derive(Debug)]
pub(super) enum Pushed {
    /// It is in the queue.
    Taken,
    /// There is no room for it.
    Full(Frame),
    /// There never is: it was left out.
    TooLarge,
    /// Nobody will read it.
    Over(Frame),
}

impl Slot {
    /// Whether nobody waits any more.
    pub(in super::super) fn is_abandoned(&self) -> bool {
        self.queue().abandoned
    }

    /// Adds a frame that cost so many bytes, where there is room: for a question there always is when no other waits. What is
    /// told, and is larger than all that may wait, goes nowhere.
    pub(super) fn push(&self, frame: Frame, bytes: usize) -> Pushed {
        let queue = self.queue();
        let kind = Kind::of(&frame);
        if queue.is_over() {
            Pushed::Over(frame)
        } else if kind != Kind::Asked && bytes > HELD_BYTES {
            // It would never fit.
            reached(Bound::UpstreamUnread);
            Pushed::TooLarge
        } else if queue.fits(kind, bytes) {
            Self::put(queue, frame, bytes, kind);
            Pushed::Taken
        } else {
            Pushed::Full(frame)
        }
    }

    /// Whether there is room for a frame, or nobody will read it.
    fn takes(&self, frame: &Frame, bytes: usize) -> bool {
        let queue = self.queue();
        queue.is_over() || queue.fits(Kind::of(frame), bytes)
    }

    /// Waits until there is room for a frame, or nobody will read it; false when there is none in time. Of that there is so much
    /// in all, until everything was read that was there: whoever reads now and then holds nobody up for longer than who does not.
    pub(super) async fn has_room(&self, frame: &Frame, bytes: usize, most: Duration) -> bool {
        let left = most.saturating_sub(self.queue().waited);
        if left.is_zero() {
            return false;
        }
        let began = Instant::now();
        let room = timeout(left, async {
            while !self.takes(frame, bytes) {
                self.freed.notified().await;
            }
        });
        let found = room.await.is_ok();
        self.queue().waited += began.elapsed();
        found
    }

    /// Deals with a frame for which there is no room, and counts what is lost. Progress replaces the last progress before it, so
    /// that the newest is always told; any other notification is dropped. Gives the frame back if it asks something, or if
    /// nobody will read it.
    pub(super) fn coalesce_or_drop(&self, frame: Frame, bytes: usize) -> Option<Frame> {
        let mut queue = self.queue();
        if queue.is_over() {
            return Some(frame);
        }
        match Kind::of(&frame) {
            Kind::Progress => {
                let mut waiting = queue.items.iter();
                if let Some(last) = waiting.rposition(|queued| queued.kind == Kind::Progress)
                    && let Some(outdone) = queue.items.remove(last)
                {
                    queue.taken_out(&outdone);
                    reached(Bound::UpstreamUnread);
                }
                Self::put(queue, frame, bytes, Kind::Progress);
                None
            }
            Kind::Told => {
                reached(Bound::UpstreamUnread);
                None
            }
            Kind::Asked => Some(frame),
        }
    }

    /// Adds the last item. Always fits.
    pub(super) fn finish(&self, item: Item) {
        let mut queue = self.queue();
        if !queue.finished {
            queue.finished = true;
            queue.items.push_back(Queued {
                item,
                bytes: 0,
                kind: Kind::Told,
            });
            queue.told.frames += 1;
            Self::wake(queue);
            self.freed.notify_one();
        }
    }

    fn put(mut queue: MutexGuard<'_, Queue>, frame: Frame, bytes: usize, kind: Kind) {
        let load = queue.load(kind);
        load.frames += 1;
        load.bytes += bytes;
        queue.items.push_back(Queued {
            item: Ok(frame),
            bytes,
            kind,
        });
        Self::wake(queue);
    }

    fn wake(mut queue: MutexGuard<'_, Queue>) {
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    const fn is_over(&self) -> bool {
        self.finished || self.abandoned
    }

    const fn fits(&self, kind: Kind, bytes: usize) -> bool {
        let (load, most) = match kind {
            Kind::Progress | Kind::Told => (&self.told, QUEUE),
            Kind::Asked => (&self.asked, RESERVE),
        };
        // What is large goes alone, or it would never go.
        load.frames == 0 || load.frames < most && load.bytes + bytes <= HELD_BYTES
    }

    const fn load(&mut self, kind: Kind) -> &mut Load {
        match kind {
            Kind::Progress | Kind::Told => &mut self.told,
            Kind::Asked => &mut self.asked,
        }
    }

    fn taken_out(&mut self, queued: &Queued) {
        let load = self.load(queued.kind);
        load.frames -= 1;
        load.bytes -= queued.bytes;
    }
}

impl Kind {
    fn of(frame: &Frame) -> Self {
        match frame {
            Frame::Request(_) => Self::Asked,
            Frame::Response(_) => Self::Told,
            Frame::Notification(notification) => match &*notification.method {
                methods::PROGRESS => Self::Progress,
                methods::CANCELLED | methods::ELICITATION_COMPLETE => Self::Asked,
                _ => Self::Told,
            },
        }
    }
}
