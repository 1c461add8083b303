//! One exchange: a small queue between the one that reads the channel and the one that waits for an answer.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use super::{HELD_BYTES, Mux, QUEUE};
use crate::{jsonrpc::Frame, upstream::UpstreamError};

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
                Some((item, bytes)) => {
                    queue.bytes -= bytes;
                    Poll::Ready(Some(item))
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
        self.mux.abandon(self.number);
    }
}

/// The queue of one exchange. A mutex, because both ends only ever touch it for a moment.
#[derive(Debug, Default)]
pub(in super::super) struct Slot(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<(Item, usize)>,
    bytes: usize,
    waker: Option<Waker>,
    finished: bool,
    abandoned: bool,
}

impl Slot {
    /// Whether nobody waits any more.
    pub(in super::super) fn is_abandoned(&self) -> bool {
        self.queue().abandoned
    }

    /// Adds a frame that cost so many bytes; false when there is no room, and then the frame is gone. Progress only ever
    /// tells more of the same, so the reader of the channel does not wait for room here.
    pub(super) fn push(&self, frame: Frame, bytes: usize) -> bool {
        let mut queue = self.queue();
        if queue.finished || queue.items.len() >= QUEUE || queue.bytes + bytes > HELD_BYTES {
            return false;
        }
        queue.bytes += bytes;
        queue.items.push_back((Ok(frame), bytes));
        Self::wake(queue);
        true
    }

    /// Adds the last item. Always fits.
    pub(super) fn finish(&self, item: Item) {
        let mut queue = self.queue();
        if !queue.finished {
            queue.finished = true;
            queue.items.push_back((item, 0));
            Self::wake(queue);
        }
    }

    fn wake(mut queue: MutexGuard<'_, Queue>) {
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
