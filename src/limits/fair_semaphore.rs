//! A fair semaphore: so many slots at once, and a bounded line before them in which principals take turns.
//!
//! Guarantees: never more are seated than the limit that was told last; a seat is free again when it is dropped, and so is
//! the place of whoever stops waiting; nobody who comes later is seated before those who wait; of those who wait each
//! principal is seated in its turn, however many of its calls wait; in a full line the newest call of whoever waits with the
//! most gives way to one of somebody who waits with fewer, so that nobody can fill it for the others (SECURITY REL-3, REL-4).
//! While nobody waits, taking a seat and leaving it are atomic counts; no lock is taken.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use crate::call::Principal;

/// So many at once. One for each key of a rule; a handle is an `Arc` of it.
// In this order, so that what each call changes lies beside the count of the `Arc`, which it changes too.
#[derive(Debug, Default)]
#[repr(C)]
pub struct FairSemaphore {
    taken: AtomicUsize,
    /// How many wait; written under the lock of `line`, read without.
    waiting: AtomicUsize,
    /// The limit that whoever leaves keeps to when it calls the next.
    limit: AtomicUsize,
    // A std mutex, never held across an await; taken only while somebody waits.
    line: Mutex<Line>,
}

/// What holds at seats: changes of it count from the next call on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// How many may be seated at once; at least 1.
    pub seats: usize,
    /// How many may wait.
    pub line: usize,
}

/// A slot that is taken, until it is dropped.
#[derive(Debug)]
pub struct FairSlot(Arc<FairSemaphore>);

/// Neither a seat nor a place in the line, or not in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many at once")]
pub enum Full {
    /// There was no place in the line, or it was given to somebody who had fewer.
    Line,
    /// Nothing became free in time.
    Time,
}

#[derive(Debug, Default)]
struct Line {
    next: u64,
    /// Who waits, each with calls in order.
    of: HashMap<Principal, VecDeque<Waiter>>,
    /// Whose turn it is. Everybody in `of` is here once.
    turns: VecDeque<Principal>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    /// Told when it is seated; dropped unsent when its place is given away.
    called: oneshot::Sender<()>,
}

/// A place in the line.
struct Place<'a> {
    seats: &'a Arc<FairSemaphore>,
    who: &'a Principal,
    number: u64,
    called: oneshot::Receiver<()>,
    left: bool,
}

impl FairSemaphore {
    /// A seat, if one is free and nobody waits.
    pub fn try_take(self: &Arc<Self>, room: Room) -> Option<FairSlot> {
        self.admit(room);
        let nobody_waits = self.waiting.load(SeqCst) == 0;
        (nobody_waits && self.sit(room.seats)).then(|| FairSlot(Arc::clone(self)))
    }

    /// A seat, waited for in the line until `until`.
    ///
    /// # Errors
    /// [`Full`]
    pub async fn take(
        self: &Arc<Self>,
        who: &Principal,
        room: Room,
        until: Instant,
    ) -> Result<FairSlot, Full> {
        if let Some(seat) = self.try_take(room) {
            return Ok(seat);
        }
        let mut place = self.stand(who, room).ok_or(Full::Line)?;
        match timeout_at(until, &mut place.called).await {
            Ok(Ok(())) => {
                place.left = true;
                Ok(FairSlot(Arc::clone(self)))
            }
            Ok(Err(_)) => {
                // Out of the line already.
                place.left = true;
                Err(Full::Line)
            }
            Err(_) => Err(Full::Time),
        }
    }

    /// How many are seated.
    pub fn taken(&self) -> usize {
        self.taken.load(SeqCst)
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    /// Nobody is seated and nobody waits.
    pub(super) fn is_idle(&self) -> bool {
        self.taken() == 0 && self.waiting() == 0
    }

    fn admit(&self, room: Room) {
        // Read before written: it changes with a reload only.
        if self.limit.load(SeqCst) != room.seats {
            self.limit.store(room.seats, SeqCst);
            if self.waiting.load(SeqCst) > 0 {
                self.call_next(&mut self.line());
            }
        }
    }

    fn sit(&self, limit: usize) -> bool {
        self.taken
            .fetch_update(SeqCst, SeqCst, |taken| (taken < limit).then(|| taken + 1))
            .is_ok()
    }

    fn stand<'a>(self: &'a Arc<Self>, who: &'a Principal, room: Room) -> Option<Place<'a>> {
        let mut line = self.line();
        if self.waiting.load(SeqCst) >= room.line && !self.make_room(&mut line, who) {
            // Nothing may have become free since it was looked for; then nobody would ever be called.
            return None;
        }
        let (called, receiver) = oneshot::channel();
        let number = line.push(who, called);
        // Counted before a seat is looked for: whoever leaves now sees it, or is seen to have left.
        self.waiting.fetch_add(1, SeqCst);
        self.call_next(&mut line);
        drop(line);
        Some(Place {
            seats: self,
            who,
            number,
            called: receiver,
            left: false,
        })
    }

    /// Sends the newest call of whoever waits with the most away, if `who` would still wait with fewer.
    fn make_room(&self, line: &mut Line, who: &Principal) -> bool {
        let own = line.of.get(who).map_or(0, VecDeque::len);
        let Some((most, count)) = line
            .of
            .iter()
            .map(|(whose, calls)| (whose, calls.len()))
            .max_by_key(|(_, count)| *count)
        else {
            return false;
        };
        if count <= own + 1 {
            return false;
        }
        let most = most.clone();
        // Dropped unsent: it is told that way.
        let gone = line.remove(&most, VecDeque::pop_back);
        if gone.is_some() {
            self.waiting.fetch_sub(1, SeqCst);
        }
        gone.is_some()
    }

    /// Seats those whose turn it is while there are seats.
    fn call_next(&self, line: &mut Line) {
        let limit = self.limit.load(SeqCst);
        while !line.turns.is_empty() && self.sit(limit) {
            let seated = loop {
                let Some(waiter) = line.pop() else {
                    break false;
                };
                self.waiting.fetch_sub(1, SeqCst);
                // Who is gone already leaves the seat to the next.
                if waiter.called.send(()).is_ok() {
                    break true;
                }
            };
            if !seated {
                self.taken.fetch_sub(1, SeqCst);
            }
        }
    }

    fn leave(&self) {
        self.taken.fetch_sub(1, SeqCst);
        if self.waiting.load(SeqCst) > 0 {
            self.call_next(&mut self.line());
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn push(&mut self, who: &Principal, called: oneshot::Sender<()>) -> u64 {
        self.next += 1;
        let number = self.next;
        let calls = self.of.entry(who.clone()).or_default();
        if calls.is_empty() {
            self.turns.push_back(who.clone());
        }
        calls.push_back(Waiter { number, called });
        number
    }

    /// The oldest call of whoever's turn it is; it is that one's turn again after all others.
    fn pop(&mut self) -> Option<Waiter> {
        let who = self.turns.pop_front()?;
        let calls = self.of.get_mut(&who)?;
        let waiter = calls.pop_front();
        if calls.is_empty() {
            self.of.remove(&who);
        } else {
            self.turns.push_back(who);
        }
        waiter
    }

    fn remove(
        &mut self,
        who: &Principal,
        pick: impl FnOnce(&mut VecDeque<Waiter>) -> Option<Waiter>,
    ) -> Option<Waiter> {
        let calls = self.of.get_mut(who)?;
        let waiter = pick(calls);
        if calls.is_empty() {
            self.of.remove(who);
            self.turns.retain(|other| other != who);
        }
        waiter
    }
}

impl Drop for FairSlot {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let gone = {
            let mut line = self.seats.line();
            let number = self.number;
            let gone = line.remove(self.who, |calls| {
                let at = calls.iter().position(|waiter| waiter.number == number)?;
                calls.remove(at)
            });
            if gone.is_some() {
                self.seats.waiting.fetch_sub(1, SeqCst);
            }
            gone
        };
        // Called in the meantime: the seat goes to the next.
        if gone.is_none() && self.called.try_recv().is_ok() {
            self.seats.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::Pin, time::Duration};

    use futures_util::poll;

    use super::*;

    const ROOM: Room = Room { seats: 2, line: 4 };

    fn who(name: &str) -> Principal {
        Principal::new(name)
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(3_600)
    }

    /// A call that takes a seat or waits.
    fn call<'a>(
        seats: &'a Arc<FairSemaphore>,
        who: &'a Principal,
        room: Room,
    ) -> Pin<Box<impl Future<Output = Result<FairSlot, Full>> + 'a>> {
        Box::pin(async move { seats.take(who, room, far()).await })
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_as_there_are_seats_go_in_and_as_many_as_the_line_holds_wait() {
        let (seats, who) = (Arc::new(FairSemaphore::default()), who("a"));
        let mut held = vec![seats.try_take(ROOM).unwrap(), seats.try_take(ROOM).unwrap()];
        assert!(seats.try_take(ROOM).is_none());
        let mut line: Vec<_> = (0..4).map(|_| call(&seats, &who, ROOM)).collect();
        for waiting in &mut line {
            assert!(poll!(waiting.as_mut()).is_pending());
        }
        assert_eq!(seats.take(&who, ROOM, far()).await.unwrap_err(), Full::Line);
        assert_eq!((seats.taken(), seats.waiting()), (2, 4));
        held.pop();
        let mut line = line.into_iter();
        held.push(line.next().unwrap().await.unwrap());
        assert_eq!((seats.taken(), seats.waiting()), (2, 3));
        drop((held, line));
        assert!(seats.is_idle());
        assert!(seats.line().turns.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_is_refused_and_its_place_is_free() {
        let (seats, who) = (Arc::new(FairSemaphore::default()), who("a"));
        let room = Room { seats: 1, line: 1 };
        let held = seats.try_take(room).unwrap();
        let until = Instant::now() + Duration::from_secs(2);
        let began = Instant::now();
        assert_eq!(seats.take(&who, room, until).await.unwrap_err(), Full::Time);
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        assert_eq!(seats.waiting(), 0);
        drop(held);
        assert!(seats.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_that_overload_it_each_gets_every_other_seat() {
        let seats = Arc::new(FairSemaphore::default());
        let (loud, quiet) = (who("loud"), who("quiet"));
        let room = Room { seats: 1, line: 8 };
        let mut held = seats.try_take(room);
        let mut louds: VecDeque<_> = (0..8).map(|_| call(&seats, &loud, room)).collect();
        for waiting in &mut louds {
            assert!(poll!(waiting.as_mut()).is_pending());
        }
        // The line is full of the loud one's, and the quiet one comes in all the same.
        let mut quiets: VecDeque<_> = (0..3).map(|_| call(&seats, &quiet, room)).collect();
        for waiting in &mut quiets {
            assert!(poll!(waiting.as_mut()).is_pending());
        }
        assert_eq!(seats.waiting(), 8);
        for _ in 0..3 {
            assert_eq!(louds.pop_back().unwrap().await.unwrap_err(), Full::Line);
        }
        let mut order = String::new();
        while held.take().is_some() {
            for (sign, calls) in [('l', &mut louds), ('q', &mut quiets)] {
                if held.is_none()
                    && let Some(front) = calls.front_mut()
                    && let std::task::Poll::Ready(seat) = poll!(front.as_mut())
                {
                    held = Some(seat.unwrap());
                    calls.pop_front();
                    order.push(sign);
                }
            }
        }
        assert_eq!(order, "lqlqlqll");
        assert!(seats.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_overtakes_who_waits() {
        let (seats, who) = (Arc::new(FairSemaphore::default()), who("a"));
        let room = Room { seats: 1, line: 1 };
        let held = seats.try_take(room).unwrap();
        let mut waiting = call(&seats, &who, room);
        assert!(poll!(waiting.as_mut()).is_pending());
        drop(held);
        assert!(seats.try_take(room).is_none());
        let seat = waiting.await.unwrap();
        drop(seat);
        assert!(seats.try_take(room).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_called_and_gone_leaves_the_seat_to_the_next() {
        let (seats, who) = (Arc::new(FairSemaphore::default()), who("a"));
        let room = Room { seats: 1, line: 2 };
        let held = seats.try_take(room).unwrap();
        let mut first = call(&seats, &who, room);
        let mut second = call(&seats, &who, room);
        assert!(poll!(first.as_mut()).is_pending() && poll!(second.as_mut()).is_pending());
        drop(held);
        drop(first);
        let seat = second.await.unwrap();
        drop(seat);
        assert!(seats.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_raised_limit_seats_those_who_wait() {
        let (seats, who) = (Arc::new(FairSemaphore::default()), who("a"));
        let room = Room { seats: 1, line: 2 };
        let _held = seats.try_take(room).unwrap();
        let mut waiting = call(&seats, &who, room);
        assert!(poll!(waiting.as_mut()).is_pending());
        let _other = seats.try_take(Room { seats: 3, ..room }).unwrap();
        assert!(poll!(waiting.as_mut()).is_ready());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_wake_up_is_lost_between_many_threads() {
        let seats = Arc::new(FairSemaphore::default());
        let room = Room {
            seats: 3,
            line: 1_000,
        };
        let highest = Arc::new(AtomicUsize::new(0));
        let all = (0..64).map(|number| {
            let (seats, highest) = (seats.clone(), highest.clone());
            async move {
                let who = who(if number % 3 == 0 { "a" } else { "b" });
                for _ in 0..200 {
                    let seat = seats.take(&who, room, far()).await.unwrap();
                    highest.fetch_max(seats.taken(), SeqCst);
                    tokio::task::yield_now().await;
                    drop(seat);
                }
            }
        });
        let tasks = crate::tasks::Tasks::new();
        let (done, mut finished) = tokio::sync::mpsc::channel(64);
        for one in all {
            let done = done.clone();
            tasks.spawn(async move {
                one.await;
                done.send(()).await.unwrap();
            });
        }
        for _ in 0..64 {
            finished.recv().await.unwrap();
        }
        assert!(seats.is_idle());
        assert!(highest.load(SeqCst) <= 3);
    }
}
