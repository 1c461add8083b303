//! The budget of memory: bytes that peers made this process hold, and what is refused while they are many (SECURITY 6, REL-3, REL-9).
//!
//! Guarantees: a message of more than [`SMALL`] bytes is counted from its first piece until the last who holds a part of it
//! has let go, wherever it went meanwhile, in both directions; whoever brings what there is no room for is refused, and what
//! was counted for it is given back, but for what comes on a connection that carries the calls of several; as the budget fills up, first streams,
//! then requests, then connections are refused, and taken again once it empties. Counting costs messages that are small
//! nothing but one load. Deliberately absent: small messages, whose number the bounds on requests, streams and connections
//! bound; what is kept for reasons of our own, catalogs and records among them, which have bounds of their own; what the
//! system lets us have.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

/// The budget where nothing bounds the process: 2 GiB.
pub const UNBOUNDED: u64 = 2 << 30;
/// The most bytes of a message that is not counted.
pub const SMALL: usize = 16 << 10;

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
#[error("there is memory for {left} bytes more")]
pub struct Full {
    /// Bytes that there is room for.
    pub left: usize,
}

impl Memory {
    /// A budget of so many bytes.
    pub const fn of(budget: u64) -> Self {
        Self {
            budget: AtomicU64::new(budget),
            held: AtomicU64::new(0),
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
        self.held() < self.budget() / 100 * work.percent()
    }

    /// Nothing yet of a message that begins to come.
    pub const fn hold(&'static self) -> Hold {
        Hold {
            memory: self,
            bytes: 0,
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

/// What is held of one message. Given back when it is dropped.
#[derive(Debug)]
pub struct Hold {
    memory: &'static Memory,
    bytes: u64,
}

impl Hold {
    /// So many bytes are held of it now, whether there is room for them or not: where others would lose what is theirs if it
    /// were refused.
    pub fn count(&mut self, bytes: usize) {
        if bytes <= SMALL && self.bytes == 0 {
            return;
        }
        let wanted = bytes as u64;
        match wanted.checked_sub(self.bytes) {
            Some(more) => self.memory.held.fetch_add(more, Relaxed),
            None => self.memory.held.fetch_sub(self.bytes - wanted, Relaxed),
        };
        self.bytes = wanted;
    }

    /// So many bytes are held of it now.
    ///
    /// # Errors
    /// [`Full`] where that is beyond the budget; then no more than before is counted.
    pub fn reach(&mut self, bytes: usize) -> Result<(), Full> {
        let wanted = bytes as u64;
        if wanted <= self.bytes || bytes <= SMALL {
            self.count(bytes);
            return Ok(());
        }
        let budget = self.memory.budget();
        let more = wanted - self.bytes;
        let grow = |held: u64| Some(held + more).filter(|held| *held <= budget);
        match self.memory.held.fetch_update(Relaxed, Relaxed, grow) {
            Ok(_) => {
                self.bytes = wanted;
                Ok(())
            }
            Err(held) => {
                let left = budget.saturating_sub(held);
                Err(Full {
                    left: usize::try_from(left).unwrap_or(usize::MAX),
                })
            }
        }
    }

    /// The whole message: counted until nobody holds any of it.
    pub fn with(self, message: Bytes) -> Bytes {
        if self.bytes == 0 {
            return message;
        }
        Bytes::from_owner(Counted {
            message,
            _hold: self,
        })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.held.fetch_sub(self.bytes, Relaxed);
        }
    }
}

/// Bytes and what is held for them.
struct Counted {
    message: Bytes,
    _hold: Hold,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}
