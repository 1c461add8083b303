//! What one session still has to say and what it has said: its outgoing streams, and what of them can be told again.
//!
//! Two kinds of stream. A POST's has a feed of its own, the frames of one answer, and whoever reads it last drives it; when
//! its reader is lost it is driven on without one, so that nothing stops and the answer can be fetched. A GET's is fed with
//! the session's notices: each goes to exactly one stream, the one that was opened last of those that are open, and waits
//! where none is (PROTOCOL B4).
//!
//! Guarantees: each stream has at most one reader, and a new one takes over where the last stopped; notices coalesce and
//! their queue is bounded, where nobody reads by merging and never by losing that a list is another one now; a reader that lets it
//! fill is cut off as a `slow_consumer` (SECURITY REL-4); what is kept for
//! replay is bounded in events and bytes, per session and in the process, the oldest going first, and a reader is never
//! taken over a gap: it is refused instead. Deliberately absent: HTTP, timers.

mod streams;
mod waiting;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use tokio::time::Instant;

use super::{
    event_id::{EventAt, EventIds},
    notice::Notice,
};
use crate::{
    jsonrpc::sse,
    memory,
    metrics::{Bound, reached},
};

use streams::{State, Stream, is_of_notices};
use waiting::Put;

pub(super) use waiting::Room;

/// Events of one session kept for replay.
pub(super) const KEPT_EVENTS: usize = 1_024;
/// Bytes of them.
pub(super) const KEPT_BYTES: usize = 4 << 20;
/// How long a notice may wait for a reader that is there, before that reader is called slow.
const SLOW: Duration = Duration::from_secs(30);
/// GET streams of one session at once.
const OPEN: usize = 8;
/// How long a stream can be resumed after its reader was lost.
const KEEP: Duration = Duration::from_secs(5 * 60);

/// The frames of one answer, each in segments.
pub(super) type Feed = Arc<Mutex<BoxStream<'static, Vec<Bytes>>>>;

/// What all outboxes of a process share.
#[derive(Debug)]
pub(super) struct Shared {
    /// What there is for the notices that wait in one of them.
    room: Room,
    kept: AtomicUsize,
    /// Readers cut off because they did not keep up.
    pub(super) slow: AtomicU64,
}

impl Shared {
    /// Nothing is kept yet; in each notices wait as there is room.
    pub(super) fn keeping(room: Room) -> Self {
        Self {
            room,
            kept: AtomicUsize::new(0),
            slow: AtomicU64::new(0),
        }
    }
}

/// One session's.
#[derive(Debug)]
pub(super) struct Outbox {
    ids: EventIds,
    /// Whose it is what goes out. What is kept has a bound of its own.
    payer: Option<Arc<str>>,
    shared: Arc<Shared>,
    // A plain lock: held for single looks and changes only, never while a feed is asked for its next frame.
    state: Mutex<State>,
}

/// What there is for a reader.
pub(super) enum Look {
    /// Something that goes out.
    Event(Bytes),
    /// The feed is to be asked.
    Ask(Feed),
    /// Nothing yet.
    Wait,
    /// Nothing more, or somebody else reads now.
    Over,
}

/// How what is said goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Server-sent events with ids, kept for replay.
    Events,
    /// Server-sent events without ids; nothing is kept.
    Unnumbered,
    /// Frames as they are, on a connection that carries everything and is never cut off for its notices.
    Frames,
}

/// A reader's place.
#[derive(Debug)]
pub(super) struct Place {
    stream: u64,
    reader: u64,
    /// The next event to go out.
    next: u64,
    form: Form,
}

/// Why a stream cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::downstream) enum CannotResume {
    /// No id of this session.
    Unknown,
    /// What followed is no longer kept, or nothing follows.
    Expired,
    /// The same of a stream of notices: nothing is owed on one, so that another serves as well.
    ExpiredNotices,
}

impl Outbox {
    pub(super) fn new(shared: Arc<Shared>, payer: Option<Arc<str>>) -> Self {
        Self {
            ids: EventIds::default(),
            payer,
            shared,
            state: Mutex::default(),
        }
    }

    /// A stream of notices; `None` when there are too many.
    pub(super) fn open(&self, form: Form) -> Option<Place> {
        let mut state = self.lock();
        let open = state.streams.values().filter(|one| one.takes_notices());
        (open.count() < OPEN).then(|| state.add(None, form, &self.shared))
    }

    /// A stream of its own for the frames of an answer. Where the session has ended meanwhile, it is what the feed says to that.
    pub(super) fn carry(&self, feed: Feed) -> Place {
        let mut state = self.lock();
        let closed = state.closed;
        // What is kept after the end nobody lets go of: an answer holds its session, and with it this.
        let kept = (!closed).then(|| feed.clone());
        let place = state.add(kept, Form::Events, &self.shared);
        drop(state);
        if closed {
            self.conclude(place.stream, &feed);
        }
        // Outside the lock: what is dropped here may be somebody's work.
        drop(feed);
        place
    }

    /// The stream of the event with this id, from the one after it on. Its reader, if it still has one, is taken over from.
    pub(super) fn resume(&self, id: &str) -> Result<Place, CannotResume> {
        let at = self.ids.read(id).ok_or(CannotResume::Unknown)?;
        let expired = if is_of_notices(at.stream) {
            CannotResume::ExpiredNotices
        } else {
            CannotResume::Expired
        };
        let mut state = self.lock();
        let reader = state.reader();
        let stream = state.streams.get_mut(&at.stream).ok_or(expired)?;
        let next = at.event + 1;
        // An answer that has ended and says nothing more is that of a cancelled call, or known already. A stream that ends
        // without a response invites to come again, for ever.
        if next < stream.first() || stream.over && next >= stream.next {
            return Err(expired);
        }
        stream.attach(reader);
        Ok(Place {
            stream: at.stream,
            reader,
            next,
            form: Form::Events,
        })
    }

    /// The id to resume a stream from its beginning.
    pub(super) fn first_id(&self, place: &Place) -> String {
        self.ids.write(EventAt {
            stream: place.stream,
            event: 0,
        })
    }

    /// Tells the client something when it can. What says the same as something that waits is not told twice.
    pub(super) fn notify(&self, notice: Notice) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        match state.waiting.put(notice, &self.shared.room) {
            Put::Waits => {}
            put @ (Put::Beyond | Put::Merged) => {
                // Of a reader that is cut off for it this is counted by that.
                if !self.cut_slow(&mut state) && put == Put::Merged {
                    reached(Bound::StreamBuffer);
                }
            }
        }
        if let Some(stream) = state.top().and_then(|top| state.streams.get_mut(&top)) {
            stream.wake();
        }
    }

    /// Nothing more is told of a resource that is watched no more.
    pub(super) fn forget(&self, watched: &str) {
        self.lock().waiting.forget(watched);
    }

    /// What there is for the reader at `place`, who is woken when there is more.
    pub(super) fn look(&self, place: &mut Place, cx: &Context<'_>) -> Look {
        let mut state = self.lock();
        let closed = state.closed;
        let Some(stream) = state
            .streams
            .get_mut(&place.stream)
            .filter(|stream| stream.reader == place.reader)
        else {
            return Look::Over;
        };
        if place.next < stream.next {
            let Some(event) = stream.at(place.next) else {
                // It fell out while this reader was still on its way to it.
                stream.attached = false;
                self.tell_slow();
                return Look::Over;
            };
            place.next += 1;
            return Look::Event(self.sent(event));
        }
        // A feed is still to say what it says to the end of the session.
        if stream.over || closed && stream.feed.is_none() {
            return Look::Over;
        }
        stream.watch(cx);
        if let Some(feed) = &stream.feed {
            return Look::Ask(feed.clone());
        }
        if state.top() != Some(place.stream) {
            return Look::Wait;
        }
        let Some(notice) = state.waiting.take() else {
            return Look::Wait;
        };
        let frame = notice.frame();
        match place.form {
            Form::Frames => Look::Event(frame),
            Form::Unnumbered => Look::Event(sse::encode(None, &[frame])),
            Form::Events => {
                let event = self.keep(&mut state, place.stream, &[frame]);
                place.next += 1;
                event.map_or(Look::Over, Look::Event)
            }
        }
    }

    /// Whether the reader at `place` is still the one who reads.
    pub(super) fn reads(&self, place: &Place) -> bool {
        let state = self.lock();
        let stream = state.streams.get(&place.stream);
        stream.is_some_and(|stream| stream.reader == place.reader)
    }

    /// Takes a frame of a feed, or its end; gives back what is to go out. If somebody has taken over meanwhile, it is theirs.
    pub(super) fn fed(&self, place: &mut Place, frame: Option<Vec<Bytes>>) -> Option<Bytes> {
        let mut state = self.lock();
        let Some(frame) = frame else {
            let stream = state.streams.get_mut(&place.stream)?;
            stream.over = true;
            stream.feed = None;
            stream.left = Instant::now();
            if stream.reader != place.reader {
                stream.wake();
                return None;
            }
            // Asked at the end of the session, it said its last before this reader came to ask.
            let event = stream.at(place.next)?;
            place.next += 1;
            return Some(self.sent(event));
        };
        let event = self.keep(&mut state, place.stream, &frame)?;
        let stream = state.streams.get_mut(&place.stream)?;
        if stream.reader != place.reader {
            stream.wake();
            return None;
        }
        place.next += 1;
        Some(event)
    }

    /// The reader is gone. Gives the place of whoever is to drive on what it was reading, if anything is left of that.
    pub(super) fn leave(&self, place: &Place) -> Option<Place> {
        let mut state = self.lock();
        let closed = state.closed;
        let reader = state.reader();
        let stream = state.streams.get_mut(&place.stream)?;
        if stream.reader != place.reader {
            return None;
        }
        stream.attached = false;
        stream.waker = None;
        stream.left = Instant::now();
        if stream.feed.is_some() && !stream.over && !closed {
            stream.reader = reader;
            return Some(Place {
                stream: place.stream,
                reader,
                next: stream.next,
                form: Form::Events,
            });
        }
        if closed || place.form != Form::Events {
            state.forget(place.stream, &self.shared);
        }
        // What waits is now another's.
        if let Some(stream) = state.top().and_then(|top| state.streams.get_mut(&top)) {
            stream.wake();
        }
        None
    }

    /// Whether a stream is that of an answer which is still to come.
    pub(super) fn is_answer(&self, place: &Place) -> bool {
        let state = self.lock();
        let stream = state.streams.get(&place.stream);
        stream.is_some_and(|stream| stream.feed.is_some())
    }

    /// Whether anybody reads.
    pub(super) fn is_read(&self) -> bool {
        self.lock().streams.values().any(|stream| stream.attached)
    }

    /// How many streams of it are read.
    pub(super) fn readers(&self) -> usize {
        let state = self.lock();
        let read = state.streams.values().filter(|stream| stream.attached);
        read.count()
    }

    /// Forgets what cannot be resumed any more, and cuts off who does not read.
    pub(super) fn sweep(&self, now: Instant) {
        let mut state = self.lock();
        let old = |stream: &Stream| {
            !stream.attached && (stream.over || stream.feed.is_none()) && now >= stream.left + KEEP
        };
        let gone: Vec<_> = state
            .streams
            .iter()
            .filter_map(|(number, stream)| old(stream).then_some(*number))
            .collect();
        for number in gone {
            state.forget(number, &self.shared);
        }
        if state
            .waiting
            .since()
            .is_some_and(|since| now >= since + SLOW)
        {
            self.cut_slow(&mut state);
        }
    }

    /// The session has ended: every stream does. Who reads an answer still gets what its feed says to that.
    pub(super) fn close(&self) {
        let answers = {
            let mut state = self.lock();
            state.closed = true;
            state.answers()
        };
        for (number, feed) in answers {
            self.conclude(number, &feed);
        }
        let gone = self.lock().close(&self.shared);
        // Outside the lock: what is dropped here may be somebody's work.
        for mut stream in gone {
            stream.wake();
        }
    }

    /// Takes from a feed whose session has ended what it says to that, and nothing more.
    fn conclude(&self, number: u64, feed: &Feed) {
        let mut feed = feed.lock().unwrap_or_else(PoisonError::into_inner);
        let said = feed.poll_next_unpin(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(frame) = said else { return };
        // Under the feed's lock, as readers do it.
        let mut state = self.lock();
        if let Some(frame) = frame {
            self.keep(&mut state, number, &frame);
        }
        if let Some(stream) = state.streams.get_mut(&number) {
            stream.over = true;
            stream.feed = None;
            stream.wake();
        }
    }

    /// Cuts off who should be reading the notices that wait. Whether there was anybody.
    fn cut_slow(&self, state: &mut State) -> bool {
        let Some(top) = state.top() else {
            return false;
        };
        let reader = state.reader();
        let stream = state.streams.get_mut(&top);
        let slow = stream.filter(|stream| stream.form != Form::Frames);
        let is_cut = slow.is_some();
        if let Some(stream) = slow {
            stream.reader = reader;
            stream.attached = false;
            stream.left = Instant::now();
            stream.wake();
            self.tell_slow();
        }
        if let Some(stream) = state.top().and_then(|top| state.streams.get_mut(&top)) {
            stream.wake();
        }
        is_cut
    }

    fn tell_slow(&self) {
        reached(Bound::StreamBuffer);
        self.shared.slow.fetch_add(1, Ordering::Relaxed);
        tracing::info!(
            reason = "slow_consumer",
            "a client's event stream was cut off: it does not keep up"
        );
    }

    /// Makes an event of a frame and keeps it if there is room.
    fn keep(&self, state: &mut State, number: u64, frame: &[Bytes]) -> Option<Bytes> {
        let stream = state.streams.get(&number)?;
        let id = self.ids.write(EventAt {
            stream: number,
            event: stream.next,
        });
        let event = sse::encode(Some(&id), frame);
        let fits = state.make_room(event.len(), &self.shared);
        if !fits {
            // No gaps: what came before cannot be resumed from either.
            state.drop_kept(number, &self.shared);
        }
        let stream = state.streams.get_mut(&number)?;
        stream.next += 1;
        if fits {
            stream.kept.push_back(event.clone());
            state.order.push_back(number);
            state.kept_bytes += event.len();
        }
        Some(self.sent(event))
    }

    fn sent(&self, event: Bytes) -> Bytes {
        memory::process().sent_to(self.payer.as_ref(), event)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.close();
        // Nobody reads any more.
        let kept = std::mem::take(&mut self.lock().kept_bytes);
        self.shared.kept.fetch_sub(kept, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
