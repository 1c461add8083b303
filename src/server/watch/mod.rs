//! What a connection is doing, seen by its I/O, its service and its clock alike: one small shared record per connection.
//!
//! Guarantees: every state a client can hold a connection in, except a running request or an open stream, has a deadline
//! (SECURITY HTTP-10). Noting a state costs a few relaxed stores and at most one look at the clock; no timer is touched.

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool, AtomicU8, AtomicU32, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Context, Waker},
    time::Duration,
};

use tokio::time::Instant;

use super::{frames::Seen, framing::Violation, spec::ServerBounds};
use crate::{
    memory::{self, Memory, SMALL, Work},
    metrics::Bound,
    tasks::clock,
};

/// Milliseconds an endpoint has to say that the body took too long, before the connection is cut off.
const BODY_GRACE: u64 = 1_000;

/// Frames of HTTP/2 that carry nothing, beyond what is made good: then the connection ends.
pub(super) const IDLE_FRAMES: u32 = 10_000;
/// How many of them a frame of a request, or one of an answer, makes good.
const MADE_GOOD: u32 = 10;
/// Bytes of one frame of an answer.
const FRAME: usize = 16 << 10;

/// Where the reading side of a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between requests.
    Idle,
    /// A head has begun, or the first one is awaited.
    Head,
    /// A head is complete, its body is not.
    Body,
    /// Told to finish: what runs ends, and what is left then is flushed.
    Closing,
}

/// The record. All times are milliseconds since the connection began.
#[derive(Debug)]
pub(super) struct Watch {
    began: Instant,
    limits: Limits,
    phase: AtomicU8,
    /// When the phase began, or when the last answer ended if that was later and nothing of that request was being read.
    since: AtomicU64,
    /// Requests whose answer has not ended.
    in_flight: AtomicU32,
    /// When the socket last took bytes, plus one, while it takes none; else zero.
    blocked: AtomicU64,
    /// Since when there is a piece of an answer, worth counting, that has not gone out whole over HTTP/1, plus one; else zero.
    large: AtomicU64,
    /// What is held of messages by everybody.
    memory: &'static Memory,
    /// Requests handed to the service so far.
    calls: AtomicU32,
    /// Requests of HTTP/1 whose heads were read so far.
    heads: AtomicU32,
    /// Which request of the connection broke the rules, counted from one, times 256, plus the violation.
    refused: AtomicU64,
    /// Frames of HTTP/2 that carried nothing, less what others made good.
    idle_frames: AtomicU32,
    /// Whether they once were too many.
    flooded: AtomicBool,
    /// The framing of a body broke: no answer may promise another one.
    broken: AtomicBool,
    /// Whether the server has told it to finish.
    finishing: AtomicBool,
    /// Since when the client holds each HTTP/2 answer, or [`OURS`], or [`FREE`]. At most one for each stream. The lock
    /// guards single looks and changes, and is shared by the streams of this connection only.
    turns: Mutex<Vec<u64>>,
    /// How many of them the client holds.
    holding: AtomicU32,
    /// The requests that wait in tasks of their own, as those of HTTP/2 do. The lock is as that of `turns`.
    sleepers: Mutex<Sleepers>,
}

#[derive(Debug, Default)]
struct Sleepers {
    /// Who wakes each; places are used again.
    wakers: Vec<Option<Waker>>,
    /// They were woken: whoever comes to wait is woken at once.
    woken: bool,
}

/// The endpoint has the next move.
const OURS: u64 = u64::MAX - 1;
/// Nobody's.
const FREE: u64 = u64::MAX;

/// What comes when nothing else does, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The connection is asked to finish: nobody used it.
    WindDown(u64),
    /// The connection is dropped, for this bound.
    Cut(u64, Bound),
}

impl Due {
    pub(super) const fn at(self) -> u64 {
        match self {
            Self::WindDown(at) | Self::Cut(at, _) => at,
        }
    }
}

#[derive(Debug)]
struct Limits {
    headers: u64,
    body: u64,
    idle: u64,
    write_stall: u64,
}

impl Watch {
    pub(super) fn new(bounds: &ServerBounds) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            limits: Limits {
                headers: millis(bounds.headers),
                body: millis(bounds.body) + BODY_GRACE,
                idle: millis(bounds.idle),
                write_stall: millis(bounds.write_stall),
            },
            phase: AtomicU8::new(Phase::Head as u8),
            since: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
            blocked: AtomicU64::new(0),
            large: AtomicU64::new(0),
            memory: memory::process(),
            calls: AtomicU32::new(0),
            heads: AtomicU32::new(0),
            refused: AtomicU64::new(0),
            idle_frames: AtomicU32::new(0),
            flooded: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            finishing: AtomicBool::new(false),
            turns: Mutex::default(),
            holding: AtomicU32::new(0),
            sleepers: Mutex::default(),
        })
    }

    /// The reading side entered `phase`.
    pub(super) fn enter(&self, phase: Phase) {
        if self.phase() == Phase::Closing || self.phase() == phase {
            return;
        }
        self.phase.store(phase as u8, Relaxed);
        self.since.store(self.now(), Relaxed);
    }

    /// So many heads of requests were read so far.
    pub(super) fn read_heads(&self, heads: u32) {
        self.heads.store(heads, Relaxed);
    }

    /// Whether what is being read is a request that the service does not have. While another one runs nobody reads on, so it
    /// is not its client who is slow.
    fn reads_ahead(&self) -> bool {
        match self.phase() {
            Phase::Head => true,
            Phase::Body => self.heads.load(Relaxed) != self.calls.load(Relaxed),
            Phase::Idle | Phase::Closing => false,
        }
    }

    /// The socket takes no bytes.
    pub(super) fn write_blocked(&self) {
        if self.blocked.load(Relaxed) == 0 {
            self.blocked.store(self.now() + 1, Relaxed);
        }
    }

    /// The socket took bytes.
    pub(super) fn wrote(&self) {
        if self.blocked.load(Relaxed) != 0 {
            self.blocked.store(0, Relaxed);
            // One that is to close gains no time by reading slowly.
            if self.phase() == Phase::Idle {
                self.since.store(self.now(), Relaxed);
            }
        }
    }

    /// A piece of an answer is going out over HTTP/1.
    pub(super) fn sends(&self, bytes: usize) {
        if bytes > SMALL && self.large.load(Relaxed) == 0 {
            self.large.store(self.now() + 1, Relaxed);
        }
    }

    /// Everything has gone out.
    pub(super) fn sent(&self) {
        if self.large.load(Relaxed) != 0 {
            self.large.store(0, Relaxed);
        }
    }

    /// Whether a large piece of an answer that began to go out then has to make room: memory is short, and its client had as
    /// long for it as for doing nothing at all (SECURITY REL-3).
    pub(super) fn is_too_slow(&self, since: u64) -> bool {
        self.now() >= since + self.limits.write_stall && !self.memory.takes(Work::Request)
    }

    /// The request after the first `heads` ones broke the rules; the service is asked about it as the next one.
    pub(super) fn refuse(&self, heads: u32, violation: Violation) {
        let value = (u64::from(heads) + 1) << 8 | u64::from(violation as u8);
        self.refused.store(value, Relaxed);
    }

    /// Takes note of frames of HTTP/2 that were read.
    pub(super) fn read_frames(&self, seen: Seen) {
        let (idle, good) = (seen.idle, seen.useful.saturating_mul(MADE_GOOD));
        let mut after = 0;
        // Answers go out in tasks of their own.
        let _ = self.idle_frames.fetch_update(Relaxed, Relaxed, |before| {
            after = before.saturating_add(idle).saturating_sub(good);
            (after != before).then_some(after)
        });
        if after > IDLE_FRAMES {
            self.flooded.store(true, Relaxed);
        }
    }

    /// A piece of an answer goes out over HTTP/2: clients say that they have room for more, some of them after each few
    /// kilobytes, of the stream and of the connection.
    pub(super) fn wrote_piece(&self, bytes: usize) {
        let frames = u32::try_from(bytes / FRAME).unwrap_or(u32::MAX);
        self.read_frames(Seen {
            idle: 0,
            useful: frames.saturating_add(1),
        });
    }

    /// Whether there came more frames that carry nothing than clients have use for (SECURITY 6, HTTP-9). Then bytes that came
    /// are missing, so that nothing makes it good again.
    pub(super) fn is_flooded(&self) -> bool {
        self.flooded.load(Relaxed)
    }

    /// The framing of the body being read broke.
    pub(super) fn break_off(&self) {
        self.broken.store(true, Relaxed);
    }

    /// The connection takes no request after those that it has.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Relaxed);
    }

    /// Takes note of a request; `Err` if it stands for one that broke the rules.
    pub(super) fn call(&self) -> Result<(), Violation> {
        let nth = u64::from(self.calls.fetch_add(1, Relaxed)) + 1;
        let refused = self.refused.load(Relaxed);
        if refused >> 8 == nth {
            return Err(Violation::from_bits(refused as u8));
        }
        Ok(())
    }

    /// A request runs until the flight is dropped.
    pub(super) fn take_off(self: &Arc<Self>) -> Flight {
        self.in_flight.fetch_add(1, Relaxed);
        Flight {
            watch: Arc::clone(self),
            sleeper: None,
        }
    }

    /// Wakes every request that waits in a task of its own.
    pub(super) fn wake(&self) {
        let mut sleepers = self.sleepers();
        sleepers.woken = true;
        for waker in sleepers.wakers.iter().flatten() {
            waker.wake_by_ref();
        }
    }

    /// The client has the next move on a stream of its own flow control, until the turn is passed or dropped.
    pub(super) fn client_turn(self: &Arc<Self>) -> Turn {
        let mut turns = self.turns();
        let slot = place(&mut turns, |since| *since == FREE, FREE);
        drop(turns);
        let turn = Turn {
            watch: Arc::clone(self),
            slot,
        };
        turn.set(self.now());
        turn
    }

    /// When the connection has to be looked at again if nothing happens; `None` while a request runs.
    pub(super) fn due(&self) -> Option<Due> {
        let runs = self.in_flight.load(Acquire) > 0;
        let since = self.since.load(Relaxed);
        let blocked = self.blocked.load(Relaxed);
        let blocked = (blocked != 0).then(|| blocked - 1);
        let held = match self.holding.load(Relaxed) {
            0 => None,
            _ => self
                .turns()
                .iter()
                .copied()
                .filter(|since| *since < OURS)
                .min(),
        };
        let stall = [blocked, held].into_iter().flatten().min();
        let stall = stall.map(|since| (since + self.limits.write_stall, Bound::WriteStall));
        let large = self.large.load(Relaxed);
        let slow = (large != 0 && !self.memory.takes(Work::Request))
            .then(|| (large - 1 + self.limits.write_stall, Bound::Memory));
        let stall = [stall, slow]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at);
        let phase = match self.phase() {
            Phase::Head | Phase::Body if runs && self.reads_ahead() => None,
            Phase::Head => Some((since + self.limits.headers, Bound::HeadersTime)),
            Phase::Body => Some((since + self.limits.body, Bound::BodyTime)),
            Phase::Closing | Phase::Idle if runs => None,
            Phase::Closing => Some((since + self.limits.write_stall, Bound::WriteStall)),
            Phase::Idle if stall.is_none() => {
                return Some(Due::WindDown(since + self.limits.idle));
            }
            Phase::Idle => None,
        };
        let first = [stall, phase].into_iter().flatten();
        first
            .min_by_key(|(at, _)| *at)
            .map(|(at, bound)| Due::Cut(at, bound))
    }

    /// When to look again at a connection that has nothing due.
    pub(super) const fn recheck(&self, now: u64) -> u64 {
        now + self.limits.idle
    }

    pub(super) fn now(&self) -> u64 {
        millis(clock::since(self.began))
    }

    pub(super) fn at(&self, millis: u64) -> Instant {
        self.began + Duration::from_millis(millis)
    }

    fn turns(&self) -> MutexGuard<'_, Vec<u64>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Idle,
            1 => Phase::Head,
            2 => Phase::Body,
            _ => Phase::Closing,
        }
    }
}

/// One request from its head to the end of its answer.
#[derive(Debug)]
pub(super) struct Flight {
    watch: Arc<Watch>,
    /// Its place among those that wait in tasks of their own.
    sleeper: Option<usize>,
}

/// Whose move it is on one HTTP/2 answer: the client's, which has to make room, or the endpoint's.
#[derive(Debug)]
pub(super) struct Turn {
    watch: Arc<Watch>,
    slot: usize,
}

impl Turn {
    /// The client got bytes; it must make room for more.
    pub(super) fn to_client(&self) {
        self.set(self.watch.now());
    }

    /// See [`Watch::is_too_slow`].
    pub(super) fn is_too_slow(&self, since: u64) -> bool {
        self.watch.is_too_slow(since)
    }

    /// The time now.
    pub(super) fn now(&self) -> u64 {
        self.watch.now()
    }

    /// There is room, but nothing to send.
    pub(super) fn to_endpoint(&self) {
        self.set(OURS);
    }

    fn set(&self, to: u64) {
        let mut turns = self.watch.turns();
        let Some(since) = turns.get_mut(self.slot) else {
            return;
        };
        match (*since < OURS, to < OURS) {
            (false, true) => self.watch.holding.fetch_add(1, Relaxed),
            (true, false) => self.watch.holding.fetch_sub(1, Relaxed),
            (true, true) | (false, false) => 0,
        };
        *since = to;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.set(FREE);
    }
}

impl Flight {
    /// The watch of its connection.
    pub(super) const fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Whether its answer must be the last of the connection.
    pub(super) fn is_last(&self) -> bool {
        self.watch.broken.load(Relaxed) || self.watch.finishing.load(Relaxed)
    }

    /// It waits in this task, which is its own: noted once, since a request stays in its task.
    pub(super) fn waits_in(&mut self, cx: &Context<'_>) {
        if self.sleeper.is_some() {
            return;
        }
        let mut sleepers = self.watch.sleepers();
        if sleepers.woken {
            cx.waker().wake_by_ref();
        }
        let slot = place(&mut sleepers.wakers, Option::is_none, None);
        if let Some(place) = sleepers.wakers.get_mut(slot) {
            *place = Some(cx.waker().clone());
        }
        drop(sleepers);
        self.sleeper = Some(slot);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(slot) = self.sleeper
            && let Some(place) = self.watch.sleepers().wakers.get_mut(slot)
        {
            *place = None;
        }
        let watch = &self.watch;
        if matches!(watch.phase(), Phase::Idle | Phase::Closing) || watch.reads_ahead() {
            watch.since.store(watch.now(), Relaxed);
        }
        // Whoever sees that nothing runs sees since when.
        self.watch.in_flight.fetch_sub(1, Release);
    }
}

/// A place that is free, or a new one, which then is.
fn place<T>(places: &mut Vec<T>, is_free: impl Fn(&T) -> bool, free: T) -> usize {
    places.iter().position(is_free).unwrap_or_else(|| {
        places.push(free);
        places.len() - 1
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX >> 1)
}
