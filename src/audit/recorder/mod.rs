//! Putting records into the log from many calls at once, and knowing when they are safe.
//!
//! Guarantees: what was put is written in the order it was put; a call that waits for its record goes on only when the record
//! is as safe as the durability promises (SECURITY AUD-1); what cannot be written now is kept and written later, within
//! bounds, and what is beyond the bounds is counted, and told in a gap record, a line of the gateway's logs and a metric (AUD-2).
//! Cost: under `kernel` whoever needs a record to go on lets all others on its thread go first that are ready to, and
//! then, if nobody is writing, writes for all; what nobody waits for goes along with that, or follows within
//! [`MAX_WRITE_DELAY`], so that calls share a system call and no thread is woken; under `strict` a thread writes and syncs for
//! all who came meanwhile.

mod keep;
mod terms;
#[cfg(test)]
mod tests;

use std::{
    io,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

pub use terms::{Bounds, Durability, Fill, Health, Watermark, Watermarks};

use tokio::time::Instant;

use super::{
    index::Gist,
    log::{Events, Log, Signed, event},
    words,
};
use crate::tasks::{LaneArc, PerLaneArc};

/// How long after a record the disk is told to keep it at the latest, under [`Durability::Kernel`].
pub const MAX_SYNC_DELAY: Duration = Duration::from_millis(50);
/// How long after what happened its record is handed to the operating system at the latest, under [`Durability::Kernel`]: that of
/// a permission is before anything is done.
pub const MAX_WRITE_DELAY: Duration = Duration::from_millis(5);
/// How many records nobody waits for, before whoever brings the next writes them.
const INLINE_WRITE_THRESHOLD: usize = 64;
/// How many batches are written in a row by whoever writes for all: its own, and what came meanwhile. Where more comes, another
/// goes on: no sync can begin before the log is free, and a call's thread has others to serve.
const ROUNDS: usize = 2;
/// Nothing was lost for so long: what is lost next is told of again.
const QUIET: Duration = Duration::from_secs(60);

/// Records cannot be written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("audit records cannot be written")]
pub struct Unavailable;

/// Whether a record may be left out when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It stands before something that is not done without it: without room, that is refused.
    Permit,
    /// It tells what has happened already, of something that was let in: there is room for it always, since there is room for as
    /// many as have been let in.
    Fact,
    /// It tells of what was not let in, of which there may be any number: without room, it is left out and counted.
    Refusal,
}

/// Takes records in. Clones put into the same log.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    /// The same for whoever holds it for a call: counted by lane, for all calls would count at one place.
    here: Arc<PerLaneArc<Shared>>,
}

struct Shared {
    durability: Durability,
    bounds: Bounds,
    interval: Duration,
    watermarks: Watermarks,
    /// Protects what waits; held to push and to take.
    queue: Mutex<Queue>,
    /// Held by the one that writes.
    log: Mutex<Log>,
    /// Wakes the thread.
    work: Condvar,
    /// Gets every checkpoint of what is durable, to keep it elsewhere (SECURITY AUD-4).
    outside: Box<dyn Fn(&Signed) + Send + Sync>,
}

#[derive(Default)]
struct Queue {
    events: Events,
    /// Empty, with the memory of those that were written last.
    spare: Events,
    /// How many more, and of how many bytes, are being written: they come back if they cannot be.
    taken: (usize, usize),
    /// How many were ever put, of those how many are written, and of those how many are safe.
    put: u64,
    written: u64,
    safe: u64,
    /// Whether something is written that is not durable, and how many bytes of events that may be: they are kept, to be written
    /// again.
    dirty: bool,
    unsynced: usize,
    /// Whether the thread was told of what waits.
    called: bool,
    /// Whether somebody is writing.
    writing: bool,
    /// Whether the thread waits for the disk, however long that takes, and so writes nothing.
    syncing: bool,
    /// Whether the last attempt to write or to sync failed, or the disk is too full.
    failing: bool,
    /// Whether that was said, and not yet that it is over.
    failure_logged: bool,
    fill: Fill,
    waiting: Vec<(u64, Waker)>,
    /// Records that were left out since the last gap record.
    lost: u64,
    /// Those that ever were, and when one was the last time.
    ever_lost: u64,
    lost_at: Option<Instant>,
    closing: bool,
}

impl Queue {
    /// What became of a record, once that is known.
    const fn result_of(&self, ticket: u64) -> Option<Result<(), Unavailable>> {
        if self.safe >= ticket {
            Some(Ok(()))
        } else if self.failing {
            Some(Err(Unavailable))
        } else {
            None
        }
    }

    /// Counts a record that is left out; whether it is the first for a while.
    fn lose(&mut self) -> bool {
        self.lost += 1;
        self.ever_lost += 1;
        let now = Instant::now();
        let before = self.lost_at.replace(now);
        before.is_none_or(|before| now.duration_since(before) >= QUIET)
    }

    /// Whether as much is written and not durable as may wait: a sync takes too long.
    const fn is_behind(&self, bounds: &Bounds) -> bool {
        self.unsynced > bounds.bytes
    }
}

impl Recorder {
    /// Takes records in for `log`; `interval` is the time between checkpoints, each of which is also given to `outside`, once what
    /// it covers is durable.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        log: Log,
        durability: Durability,
        bounds: Bounds,
        interval: Duration,
        outside: Box<dyn Fn(&Signed) + Send + Sync>,
    ) -> io::Result<(Self, Keeper)> {
        let watermarks = Watermarks::default();
        Self::start_with(log, durability, bounds, watermarks, interval, outside)
    }

    /// As [`Recorder::start`], with watermarks of one's own.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start_with(
        log: Log,
        durability: Durability,
        bounds: Bounds,
        watermarks: Watermarks,
        interval: Duration,
        outside: Box<dyn Fn(&Signed) + Send + Sync>,
    ) -> io::Result<(Self, Keeper)> {
        let shared = Arc::new(Shared {
            durability,
            bounds,
            interval,
            watermarks,
            queue: Mutex::new(Queue::default()),
            log: Mutex::new(log),
            work: Condvar::new(),
            outside,
        });
        let ours = shared.clone();
        let thread = thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || ours.keep())?;
        let keeper = Keeper {
            shared: shared.clone(),
            thread: Some(thread),
        };
        let here = Arc::new(PerLaneArc::new(&shared));
        Ok((Self { shared, here }, keeper))
    }

    /// Puts a record, with what is known of it. What comes back is ready when the record is safe, or when writing fails: then it is
    /// kept all the same, and written when it can be.
    ///
    /// # Errors
    /// [`Unavailable`] when there is no room for it, here or on the disk: the record is not kept, and never written. Nothing but a
    /// [`Weight::Permit`] is ever refused.
    pub fn put(
        &self,
        event: &[u8],
        gist: Option<Gist>,
        weight: Weight,
    ) -> Result<Safe, Unavailable> {
        let ticket = self.shared.take_in(event, gist, weight)?;
        let waits = ticket.map(|ticket| Waits {
            shared: self.here.here(),
            ticket,
            turn: self.shared.durability == Durability::Kernel,
        });
        Ok(Safe(waits))
    }

    /// Puts a record that nobody waits for.
    pub fn note(&self, event: &[u8], gist: Option<Gist>, weight: Weight) {
        // What is refused is refused to whoever would go on, and it is counted.
        _ = self.shared.take_in(event, gist, weight);
    }

    /// Whether records can be written.
    pub fn is_available(&self) -> bool {
        self.health().available
    }

    /// Whether calls are refused because they cannot be recorded.
    pub fn refuses(&self) -> bool {
        self.shared.durability != Durability::Async && !self.is_available()
    }

    /// How the recording is.
    pub fn health(&self) -> Health {
        let queue = self.shared.queue();
        Health {
            available: !queue.failing
                && queue.fill != Fill::Full
                && !queue.is_behind(&self.shared.bounds),
            failing: queue.failing,
            fill: queue.fill,
            lag: queue.put - queue.safe,
            lost: queue.lost,
            ever_lost: queue.ever_lost,
        }
    }

    /// The number of the last record that is written.
    pub fn last(&self) -> u64 {
        self.shared.log().written().seq
    }

    /// How many records wait to become safe.
    pub fn lag(&self) -> u64 {
        self.health().lag
    }
}

/// Ready when a record is safe.
pub struct Safe(Option<Waits>);

struct Waits {
    shared: LaneArc<Shared>,
    ticket: u64,
    /// Whether all others on this thread that are ready come first, to be written along with it.
    turn: bool,
}

impl Future for Safe {
    type Output = Result<(), Unavailable>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(waits) = &mut self.0 else {
            return Poll::Ready(Ok(()));
        };
        let result = ready!(waits.poll(cx));
        self.0 = None;
        Poll::Ready(result)
    }
}

impl Waits {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Unavailable>> {
        let Self {
            shared,
            ticket,
            turn,
        } = self;
        if std::mem::take(turn) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut queue = shared.queue();
        if let Some(result) = queue.result_of(*ticket) {
            return Poll::Ready(result);
        }
        if shared.durability == Durability::Kernel && !queue.writing {
            queue.writing = true;
            drop(queue);
            shared.write();
            queue = shared.queue();
            if let Some(result) = queue.result_of(*ticket) {
                return Poll::Ready(result);
            }
        }
        queue.waiting.retain(|(other, _)| other != ticket);
        queue.waiting.push((*ticket, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Safe {
    fn drop(&mut self) {
        // Its record is written by somebody else, then, and so is what it was to write.
        if let Some(Waits { shared, ticket, .. }) = &self.0 {
            let mut queue = shared.queue();
            queue.waiting.retain(|(other, _)| other != ticket);
            shared.hand_on(&queue);
        }
    }
}

/// Ends the recording: dropped, it writes what is there, signs and syncs it, and waits for that. What the disk does not take by then is
/// counted in the gateway's logs, for no gap record will tell of it.
pub struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.queue().closing = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // It panics only where the log does, and then there is nothing left to wait for.
            _ = thread.join();
        }
        let queue = self.shared.queue();
        let (unwritten, left_out) = (queue.events.len(), queue.lost);
        drop(queue);
        if unwritten > 0 || left_out > 0 {
            tracing::error!(
                unwritten,
                left_out,
                "audit records are lost: the gateway ends, and they could not be written"
            );
        }
    }
}

impl Shared {
    /// The number under which the record is to become safe, unless it is already.
    fn take_in(
        &self,
        event: &[u8],
        gist: Option<Gist>,
        weight: Weight,
    ) -> Result<Option<u64>, Unavailable> {
        let mut queue = self.queue();
        // Who chose `async` would rather lose records than calls.
        let stops = self.durability != Durability::Async && weight == Weight::Permit;
        if queue.fill == Fill::Full && stops {
            return Err(Unavailable);
        }
        let (taken, taken_bytes) = queue.taken;
        let full = queue.events.len() + taken >= self.bounds.records
            || queue.events.bytes() + taken_bytes + event.len() > self.bounds.bytes
            || queue.is_behind(&self.bounds);
        if full && (weight != Weight::Fact || self.durability == Durability::Async) {
            let begins = queue.lose();
            drop(queue);
            if begins {
                tracing::warn!(
                    "audit records are lost: more happens than can be written or kept; a gap record will say how many, and \
                     `usher_audit_lost_total` does"
                );
            }
            return if stops { Err(Unavailable) } else { Ok(None) };
        }
        queue.events.push(event, gist);
        queue.put += 1;
        let ticket = queue.put;
        match self.durability {
            Durability::Async => {
                // Once it is awake, the thread waits for others to come along.
                let many = self.bounds.records / 2;
                if queue.events.len() == 1 || queue.events.len() == many {
                    self.work.notify_one();
                }
                return Ok(None);
            }
            Durability::Strict => self.work.notify_one(),
            Durability::Kernel if queue.writing || queue.failing => {}
            // Whoever waits for it writes it.
            Durability::Kernel if weight == Weight::Permit => {}
            Durability::Kernel if !queue.syncing && queue.events.len() < INLINE_WRITE_THRESHOLD => {
                // Where something else is written and not synced, the thread has its turns already. Whoever waits for a record
                // before this one may come to its turn late.
                if !queue.dirty && !std::mem::replace(&mut queue.called, true) {
                    self.work.notify_one();
                }
            }
            Durability::Kernel => {
                queue.writing = true;
                drop(queue);
                self.write();
                queue = self.queue();
            }
        }
        Ok((queue.safe < ticket).then_some(ticket))
    }

    /// Writes what waits until nothing does, or somebody else has to go on. Whoever calls it has set `writing`.
    fn write(&self) {
        let mut log = self.log();
        let mut rounds = 0..ROUNDS;
        loop {
            let (mut batch, gap) = {
                let mut queue = self.queue();
                let nothing = queue.events.is_empty() && queue.lost == 0;
                // Nobody goes on after the end, nor during a sync where nobody waits.
                let alone = queue.closing || queue.syncing && queue.waiting.is_empty();
                if nothing || rounds.next().is_none() && !alone {
                    drop(log);
                    queue.writing = false;
                    self.let_go_on(&queue);
                    return;
                }
                let gap = std::mem::take(&mut queue.lost);
                queue.taken = (queue.events.len(), queue.events.bytes());
                queue.called = false;
                let next = std::mem::take(&mut queue.spare);
                (std::mem::replace(&mut queue.events, next), gap)
            };
            let count = batch.len() as u64;
            let result = Self::append(&mut log, &batch, gap);
            let mut queue = self.queue();
            let (_, bytes) = std::mem::take(&mut queue.taken);
            match result {
                Ok(()) => {
                    batch.clear();
                    queue.spare = batch;
                    queue.failing = false;
                    queue.unsynced += bytes;
                    queue.written += count;
                    if self.durability != Durability::Strict {
                        queue.safe = queue.written;
                        self.wake(&mut queue);
                    }
                    if !std::mem::replace(&mut queue.dirty, true) {
                        // The thread sleeps long while there is nothing to sync.
                        self.work.notify_one();
                    }
                }
                Err((lost, error)) => {
                    // Kept in front of those that came meanwhile.
                    batch.append(&queue.events);
                    queue.events = batch;
                    queue.lost += lost;
                    self.failed(&mut queue, Some(&error));
                    queue.writing = false;
                    self.wake(&mut queue);
                    self.work.notify_one();
                    return;
                }
            }
        }
    }

    /// Has somebody write what waits, where nobody does: a call that waits for its record, since the thread may be waiting for
    /// the disk, and the thread, since there may be no such call.
    fn hand_on(&self, queue: &Queue) {
        if self.let_go_on(queue) {
            self.work.notify_one();
        }
    }

    /// Has a call write what waits, where nobody does and one waits for its record; whether there is anything to write. The
    /// thread comes by itself within a turn: to wake it each time would have it sync far too often.
    fn let_go_on(&self, queue: &Queue) -> bool {
        if queue.writing || queue.events.is_empty() && queue.lost == 0 {
            return false;
        }
        if let Some((_, waker)) = queue.waiting.first() {
            waker.wake_by_ref();
        }
        true
    }

    /// Writes one batch, after what tells of so many that were lost. Where nothing of the batch is in the log, it says how many of
    /// those are still to be told of.
    fn append(log: &mut Log, batch: &Events, gap: u64) -> Result<(), (u64, io::Error)> {
        if gap > 0 {
            let told = log.append(&[gap_event(gap)].into());
            told.map_err(|error| (gap, error))?;
        }
        log.append(batch).map_err(|error| (0, error))
    }

    /// Says once that nothing can be recorded: calls are refused, and somebody must act. That it is over says the next sync.
    fn failed(&self, queue: &mut Queue, error: Option<&io::Error>) {
        queue.failing = true;
        if let Some(error) = error
            && !std::mem::replace(&mut queue.failure_logged, true)
        {
            match self.durability {
                Durability::Async => {
                    tracing::error!(%error, "audit records cannot be written: beyond the bounds they are lost");
                }
                Durability::Kernel | Durability::Strict => {
                    tracing::error!(%error, "audit records cannot be written: calls are refused until they can");
                }
            }
        }
    }

    fn wake(&self, queue: &mut Queue) {
        let (safe, failing) = (queue.safe, queue.failing);
        queue.waiting.retain(|(ticket, waker)| {
            let ready = failing || *ticket <= safe;
            if ready {
                waker.wake_by_ref();
            }
            !ready
        });
    }

    /// A panic under the lock leaves a queue that is still whole, so poison says nothing.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gap_event(lost: u64) -> Vec<u8> {
    event(|object| {
        object
            .text("event", words::GAP)
            .number("lost", lost)
            .time(SystemTime::now())
            .number("v", 1);
    })
}
