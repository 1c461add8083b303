//! The streams of one outbox: who reads them, and what of them is kept for being told again.
//!
//! Guarantees: what is kept is bounded in events and bytes, of one session and of the process, and what is oldest goes first; what
//! is let go of is counted out. Deliberately absent: locks.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::atomic::Ordering,
    task::{Context, Waker},
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{Feed, Form, KEPT_BYTES, KEPT_EVENTS, Place, Shared, waiting::Waiting};

/// Bytes kept for replay in this process.
pub(super) const ALL_KEPT_BYTES: usize = 256 << 20;
/// Streams without a reader that can still be resumed.
pub(super) const RESUMABLE: usize = 64;

#[derive(Default)]
pub(super) struct State {
    pub(super) streams: BTreeMap<u64, Stream>,
    next_stream: u64,
    next_reader: u64,
    pub(super) waiting: Waiting,
    /// Events kept, oldest first, as the number of their stream; streams that were forgotten have none left here.
    pub(super) order: VecDeque<u64>,
    pub(super) kept_bytes: usize,
    /// The session has ended.
    pub(super) closed: bool,
}

pub(super) struct Stream {
    /// Of a POST's stream; a GET's has none.
    pub(super) feed: Option<Feed>,
    /// The last events, as they went out.
    pub(super) kept: VecDeque<Bytes>,
    /// The number of the next event; the first is 1.
    pub(super) next: u64,
    /// Who reads.
    pub(super) reader: u64,
    pub(super) attached: bool,
    /// Wakes whoever reads.
    pub(super) waker: Option<Waker>,
    /// Nothing follows what is kept.
    pub(super) over: bool,
    /// When the last reader left.
    pub(super) left: Instant,
    pub(super) form: Form,
}

impl State {
    pub(super) fn reader(&mut self) -> u64 {
        self.next_reader += 1;
        self.next_reader
    }

    pub(super) fn add(&mut self, feed: Option<Feed>, form: Form, shared: &Shared) -> Place {
        let left = |stream: &Stream| !stream.attached && (stream.over || stream.feed.is_none());
        if self.streams.values().filter(|stream| left(stream)).count() >= RESUMABLE {
            let oldest = self.streams.iter().filter(|(_, stream)| left(stream));
            let oldest = oldest
                .min_by_key(|(_, stream)| stream.left)
                .map(|(number, _)| *number);
            if let Some(oldest) = oldest {
                self.forget(oldest, shared);
            }
        }
        let number = numbered(self.next_stream, feed.is_none());
        self.next_stream += 1;
        let reader = self.reader();
        let mut stream = Stream {
            feed,
            kept: VecDeque::new(),
            next: 1,
            reader,
            attached: false,
            waker: None,
            over: false,
            left: Instant::now(),
            form,
        };
        stream.attach(reader);
        self.streams.insert(number, stream);
        Place {
            stream: number,
            reader,
            next: 1,
            form,
        }
    }

    /// The stream that notices go to: of the open ones the one opened last.
    pub(super) fn top(&self) -> Option<u64> {
        let open = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.takes_notices());
        open.max_by_key(|(_, stream)| stream.reader)
            .map(|(number, _)| *number)
    }

    /// The feeds of the answers that somebody reads, with the numbers of their streams.
    pub(super) fn answers(&self) -> Vec<(u64, Feed)> {
        let read = self.streams.iter().filter(|(_, stream)| stream.attached);
        read.filter_map(|(number, stream)| Some((*number, stream.feed.clone()?)))
            .collect()
    }

    /// Gives back the streams that end with their session: all but those of answers that are said and still being read.
    pub(super) fn close(&mut self, shared: &Shared) -> Vec<Stream> {
        self.waiting.clear();
        let mut gone = Vec::new();
        let numbers: Vec<_> = self.streams.keys().copied().collect();
        for number in numbers {
            let stays = |stream: &Stream| stream.attached && stream.over;
            if self.streams.get(&number).is_some_and(stays) {
                continue;
            }
            self.drop_kept(number, shared);
            gone.extend(self.streams.remove(&number));
        }
        gone
    }

    /// Makes room for so many bytes by letting go of the oldest; `false` when there never is.
    pub(super) fn make_room(&mut self, bytes: usize, shared: &Shared) -> bool {
        if bytes > KEPT_BYTES {
            return false;
        }
        while self.order.len() >= KEPT_EVENTS || self.kept_bytes + bytes > KEPT_BYTES {
            if !self.drop_oldest(shared) {
                return false;
            }
        }
        loop {
            let before = shared.kept.fetch_add(bytes, Ordering::Relaxed);
            if before + bytes <= ALL_KEPT_BYTES {
                return true;
            }
            shared.kept.fetch_sub(bytes, Ordering::Relaxed);
            if !self.drop_oldest(shared) {
                return false;
            }
        }
    }

    fn drop_oldest(&mut self, shared: &Shared) -> bool {
        let Some(number) = self.order.pop_front() else {
            return false;
        };
        let event = self
            .streams
            .get_mut(&number)
            .and_then(|stream| stream.kept.pop_front());
        self.release(event.map_or(0, |event| event.len()), shared);
        true
    }

    /// Lets go of all that is kept of a stream.
    pub(super) fn drop_kept(&mut self, number: u64, shared: &Shared) {
        let Some(stream) = self.streams.get_mut(&number) else {
            return;
        };
        let bytes = stream.kept.drain(..).map(|event| event.len()).sum();
        self.order.retain(|other| *other != number);
        self.release(bytes, shared);
    }

    pub(super) fn forget(&mut self, number: u64, shared: &Shared) {
        self.drop_kept(number, shared);
        self.streams.remove(&number);
    }

    fn release(&mut self, bytes: usize, shared: &Shared) {
        self.kept_bytes -= bytes;
        shared.kept.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The number of the stream that is opened as this one of its session: odd if it is one of notices, for an event id must say
/// so when the stream itself is forgotten.
const fn numbered(index: u64, notices: bool) -> u64 {
    index << 1 | notices as u64
}

/// Whether a stream with this number is, or was, one of notices.
pub(super) const fn is_of_notices(number: u64) -> bool {
    number & 1 == 1
}

impl Stream {
    pub(super) fn first(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    pub(super) fn at(&self, event: u64) -> Option<Bytes> {
        let index = usize::try_from(event.checked_sub(self.first())?).ok()?;
        self.kept.get(index).cloned()
    }

    pub(super) const fn takes_notices(&self) -> bool {
        self.feed.is_none() && self.attached && !self.over
    }

    pub(super) fn attach(&mut self, reader: u64) {
        self.reader = reader;
        self.attached = true;
        self.wake();
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn watch(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}
