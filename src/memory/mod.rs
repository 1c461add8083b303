//! The budget of memory: bytes that peers made this process hold, and what is refused while they are many (SECURITY 6, REL-3, REL-9).
//!
//! Guarantees: messages of more than [`SMALL`] bytes are counted from their first byte until the last slice of them is dropped,
//! in both directions. A message that would exceed the budget is refused and no longer counted, except on a connection that
//! several calls share (stdio, HTTP+SSE), where it is only counted. From 80, 90 and 95 % of the budget on, new streams, requests
//! and connections are refused ([`Work`]). Above 50 %, a caller who holds 25 % is refused more, unless the message is the only
//! one that they hold. Counting a small message costs one load. Deliberately absent: small messages, which the bounds on
//! requests, streams and connections bound in number; what is kept for reasons of our own, such as catalogs and records, which
//! have bounds of their own; what the system lets us have.

mod share;
#[cfg(test)]
mod tests;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use bytes::Bytes;

use share::{Part, Payer, Shares};

/// The budget where nothing bounds the process: 2 GiB.
pub const UNBOUNDED: u64 = 2 << 30;
/// The most bytes of a message that is not counted.
pub const SMALL: usize = 16 << 10;
/// Hundredths of the budget up to which one alone may hold what there is.
const SHARED_FROM: u64 = 50;
/// Hundredths of it that are for one beyond that. A message that is all that somebody holds may be larger.
const SHARE: u64 = 25;

/// The memory of one process: one for all of it, since that is what there is.
pub const fn process() -> &'static Memory {
    static PROCESS: Memory = Memory::of(UNBOUNDED);
    &PROCESS
}

/// A budget and what is held of it. Read and written by whoever holds much, without a lock.
#[derive(Debug)]
pub struct Memory {
    budget: AtomicU64,
    held: AtomicU64,
    shares: Shares,
}

/// What is refused while much is held, in the order in which that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A stream that stays open: from 80 % of the budget on.
    Stream,
    /// A request: from 90 % on.
    Request,
    /// A connection: from 95 % on.
    Connection,
}

impl Work {
    /// Hundredths of the budget from which on there is no room for it.
    const fn percent(self) -> u64 {
        match self {
            Self::Stream => 80,
            Self::Request => 90,
            Self::Connection => 95,
        }
    }
}

/// More than there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// Of the budget.
    #[error("too much is held in memory")]
    Budget,
    /// Of what one caller may hold while others hold much.
    #[error("too much is held in memory for one caller")]
    Share,
}

impl Memory {
    /// A budget of so many bytes.
    pub const fn of(budget: u64) -> Self {
        Self {
            budget: AtomicU64::new(budget),
            held: AtomicU64::new(0),
            shares: Shares::new(),
        }
    }

    /// Another budget from now on.
    pub fn set(&self, budget: u64) {
        self.budget.store(budget, Relaxed);
    }

    /// In bytes. Default: [`UNBOUNDED`].
    pub fn budget(&self) -> u64 {
        self.budget.load(Relaxed)
    }

    /// Bytes held of it now.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Whether there is room for more of this.
    pub fn takes(&self, work: Work) -> bool {
        self.held() < self.part(work.percent())
    }

    /// Bytes held for one.
    #[cfg(test)]
    pub(crate) fn held_for(&self, who: &Arc<str>) -> u64 {
        self.shares.held(who)
    }

    /// Whether somebody may begin something that needs memory: not once half is held, and a share of it is theirs.
    pub fn has_room_for(&self, who: impl FnOnce() -> Option<Arc<str>>) -> bool {
        if self.held() <= self.part(SHARED_FROM) {
            return true;
        }
        who().is_none_or(|who| self.shares.held(&who) < self.part(SHARE))
    }

    /// So many hundredths of the budget.
    fn part(&self, percent: u64) -> u64 {
        self.budget().saturating_mul(percent) / 100
    }

    /// Nothing yet of a message that begins to come, and which may fill the budget up.
    pub const fn hold(&'static self) -> Hold {
        Hold {
            memory: self,
            bytes: 0,
            most: 100,
            makes_room: false,
            payer: Payer::Nobody,
        }
    }

    /// The same bytes, counted until nobody holds any of them: what we made ourselves of what was counted, and have to send. It
    /// is never refused.
    pub fn counted(&'static self, bytes: Bytes) -> Bytes {
        if bytes.len() <= SMALL {
            return bytes;
        }
        let mut hold = self.hold();
        hold.count(bytes.len());
        hold.with(bytes)
    }
}

impl Memory {
    /// The same bytes, which are on their way to somebody: theirs until nobody holds any of them. It is never refused.
    pub fn sent_to(&'static self, who: Option<&Arc<str>>, bytes: Bytes) -> Bytes {
        let Some(who) = who.filter(|_| bytes.len() > SMALL) else {
            return bytes;
        };
        let part = Part::of(self.shares.of(who), bytes.len() as u64);
        Bytes::from_owner(Counted {
            message: bytes,
            _held: part,
        })
    }
}

/// What is held of one message. Given back when it is dropped.
#[derive(Debug)]
pub struct Hold {
    memory: &'static Memory,
    bytes: u64,
    /// Hundredths of the budget beyond which it does not grow.
    most: u64,
    /// Whether it is never too much for whoever pays for it.
    makes_room: bool,
    payer: Payer,
}

impl Hold {
    /// The same, which fills the budget no further than where `work` is refused, and so never makes it be refused.
    #[must_use]
    pub const fn below(mut self, work: Work) -> Self {
        self.most = work.percent() - 1;
        self
    }

    /// The same, which makes room when it is there: it is part of a share, and is not refused for that.
    #[must_use]
    pub const fn making_room(mut self) -> Self {
        self.makes_room = true;
        self
    }

    /// The same, held for somebody of this name, where it is held for one.
    #[must_use]
    pub fn paid_by(mut self, who: Option<Arc<str>>) -> Self {
        self.payer = who.map_or(Payer::Nobody, Payer::Named);
        self
    }

    /// Nothing yet of another message, under the same rules.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            memory: self.memory,
            bytes: 0,
            most: self.most,
            makes_room: self.makes_room,
            payer: self.payer.clone(),
        }
    }

    /// So many bytes are held of it now, whether there is room for them or not: where others would lose what is theirs if it
    /// were refused.
    pub fn count(&mut self, bytes: usize) {
        if bytes <= SMALL && self.bytes == 0 {
            return;
        }
        let wanted = bytes as u64;
        let share = self.payer.share(&self.memory.shares);
        if let Some(more) = wanted.checked_sub(self.bytes) {
            self.memory.held.fetch_add(more, Relaxed);
            share.inspect(|share| share.take(more));
        } else {
            let less = self.bytes - wanted;
            self.memory.held.fetch_sub(less, Relaxed);
            share.inspect(|share| share.give_back(less));
        }
        self.bytes = wanted;
    }

    /// So many bytes are held of it now.
    ///
    /// # Errors
    /// [`Full`] where that is beyond the budget, or beyond what is for one; then no more than before is counted.
    pub fn reach(&mut self, bytes: usize) -> Result<(), Full> {
        let wanted = bytes as u64;
        if wanted <= self.bytes || bytes <= SMALL {
            self.count(bytes);
            return Ok(());
        }
        let memory = self.memory;
        let more = wanted - self.bytes;
        let share = self.payer.share(&memory.shares);
        if let Some(share) = share {
            let crowded = !self.makes_room && memory.held() + more > memory.part(SHARED_FROM);
            let most = crowded.then(|| memory.part(SHARE));
            share.try_take(more, self.bytes, most)?;
        }
        let most = memory.part(self.most);
        let grow = |held: u64| Some(held + more).filter(|held| *held <= most);
        if memory.held.fetch_update(Relaxed, Relaxed, grow).is_err() {
            share.inspect(|share| share.give_back(more));
            return Err(Full::Budget);
        }
        self.bytes = wanted;
        Ok(())
    }

    /// The same, which is nobody's part any more: what comes of it is that of whoever it is [sent to](Memory::sent_to).
    #[must_use]
    pub fn unpaid(mut self) -> Self {
        if self.bytes > 0 {
            let share = self.payer.share(&self.memory.shares);
            share.inspect(|share| share.give_back(self.bytes));
        }
        self.payer = Payer::Nobody;
        self
    }

    /// The whole message: counted until nobody holds any of it.
    pub fn with(self, message: Bytes) -> Bytes {
        if self.bytes == 0 {
            return message;
        }
        Bytes::from_owner(Counted {
            message,
            _held: self,
        })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.held.fetch_sub(self.bytes, Relaxed);
            let share = self.payer.share(&self.memory.shares);
            share.inspect(|share| share.give_back(self.bytes));
        }
    }
}

/// Bytes and what is held for them.
struct Counted<T> {
    message: Bytes,
    _held: T,
}

impl<T> AsRef<[u8]> for Counted<T> {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}
