//! What a look at content may take, in time, in work and in what it finds (SECURITY 6): what is not done by then is blocked.
//!
//! Guarantees: the work is counted in bytes, so that nothing is looked at without end whatever the clock says.

use tokio::time::Instant;

use super::rules::Budget;
use crate::metrics::Bound;

/// How much text is looked at between two looks at the clock, in bytes.
const STRIDE: usize = 64 << 10;
/// The most bytes that are looked at for each byte of a value, over all passes and decoded forms, beside [`FREE`].
const TIMES: usize = 64;
/// The bytes that are looked at in any case.
const FREE: usize = 1 << 20;
/// How much longer everything takes in a build that is not optimised.
const SLOWER: u32 = if cfg!(debug_assertions) { 40 } else { 1 };

#[cfg(test)]
thread_local! {
    /// Bytes that were looked at, over and over where they were.
    static LOOKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Tests count every byte that is looked at where the number of looks is not bounded by a small constant for each place:
/// otherwise this does nothing.
#[inline(always)]
pub(super) fn looked(bytes: usize) {
    #[cfg(test)]
    LOOKED.with(|all| all.set(all.get() + bytes));
    #[cfg(not(test))]
    let _ = bytes;
}

/// What was counted since the last time.
#[cfg(test)]
pub(super) fn take_looked() -> usize {
    LOOKED.take()
}

/// What of the budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exhausted {
    /// The time.
    Time,
    /// The bytes that are looked at.
    Work,
    /// The hits that are kept.
    Hits,
    /// The changes to one value.
    Passes,
}

impl Exhausted {
    pub(super) const fn bound(self) -> Bound {
        match self {
            Self::Time => Bound::ScanTime,
            Self::Work => Bound::ScanWork,
            Self::Hits => Bound::ScanHits,
            Self::Passes => Bound::ScanPasses,
        }
    }
}

/// What a scan has used of its budget.
pub(super) struct Work {
    left: usize,
    stride: usize,
    deadline: Instant,
}

impl Work {
    pub(super) fn new(length: usize, budget: Budget) -> Self {
        let mibs = length as f64 / f64::from(1 << 20);
        Self {
            left: length.saturating_mul(TIMES).saturating_add(FREE),
            stride: 0,
            deadline: Instant::now() + (budget.base + budget.per_mib.mul_f64(mibs)) * SLOWER,
        }
    }

    /// This much is about to be looked at.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.left = self.left.checked_sub(bytes).ok_or(Exhausted::Work)?;
        self.stride += bytes;
        Ok(())
    }

    /// Looks at the clock, now and then.
    pub(super) fn check(&mut self) -> Result<(), Exhausted> {
        if self.stride < STRIDE {
            return Ok(());
        }
        self.check_now()
    }

    /// Looks at the clock.
    pub(super) fn check_now(&mut self) -> Result<(), Exhausted> {
        self.stride = 0;
        if Instant::now() >= self.deadline {
            return Err(Exhausted::Time);
        }
        Ok(())
    }
}
