//! Approvals that were used: each counts once (PRODUCT 9).
//!
//! Guarantees: of two uses at once one is refused; what was used stays remembered for as long as it could be brought again, unless
//! the call that it was used for was never sent: then it is as good as before.
//! When there is no room for another, it is refused: at most [`TOTAL`] are remembered, and [`EACH`] of one principal.
//! Deliberately absent: other replicas, which remember their own.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use crate::call::Stake;

/// The most that are remembered.
const TOTAL: usize = 65_536;
/// The most that are remembered of one principal: as many as people agree to in ten minutes, and more.
const EACH: usize = 1_024;
/// Seconds that replicas' clocks may differ.
const SKEW: u64 = 60;

/// The number of one approval.
pub type Number = [u8; 16];

/// Why an approval does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAgain {
    /// It was used already.
    #[error("was used already")]
    Used,
    /// There is no room to remember it.
    #[error("too many are remembered")]
    Full,
}

/// What was used.
#[derive(Debug)]
pub struct Spent {
    /// Seconds that state is good for.
    life: u64,
    // A std mutex, never held across an await; only calls that need an approval take it.
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    used: HashMap<Number, Arc<str>>,
    /// By when they may be forgotten, which is the order in which they were used.
    order: VecDeque<(u64, Number)>,
    each: HashMap<Arc<str>, usize>,
}

impl Spent {
    /// Nothing yet; state is good for so many seconds.
    pub fn new(life: u64) -> Self {
        Self {
            life,
            books: Mutex::default(),
        }
    }

    /// Uses an approval of `principal`, at `now` in seconds since 1970, for a call that has it at stake.
    ///
    /// # Errors
    /// When it does not count any more.
    pub fn stake(
        self: &Arc<Self>,
        number: Number,
        principal: &Arc<str>,
        now: u64,
    ) -> Result<Stake, NotAgain> {
        self.spend(number, principal, now)?;
        let this = Arc::clone(self);
        Ok(Stake::new(move || this.give_back(&number)))
    }

    fn spend(&self, number: Number, principal: &Arc<str>, now: u64) -> Result<(), NotAgain> {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.forget(now);
        if books.used.contains_key(&number) {
            return Err(NotAgain::Used);
        }
        let own = books.each.get(principal).copied().unwrap_or_default();
        if books.used.len() >= TOTAL || own >= EACH {
            return Err(NotAgain::Full);
        }
        books.used.insert(number, principal.clone());
        books.each.insert(principal.clone(), own + 1);
        books.order.push_back((now + self.life + 2 * SKEW, number));
        Ok(())
    }

    fn give_back(&self, number: &Number) {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        // As a rule it is among the last.
        let at = books.order.iter().rposition(|(_, other)| other == number);
        if let Some(at) = at {
            books.order.remove(at);
            books.remove(number);
        }
    }
}

impl Books {
    fn forget(&mut self, now: u64) {
        while let Some((until, number)) = self.order.front().copied()
            && until < now
        {
            self.remove(&number);
            self.order.pop_front();
        }
    }

    fn remove(&mut self, number: &Number) {
        if let Some(principal) = self.used.remove(number)
            && let Some(own) = self.each.get_mut(&principal)
        {
            *own -= 1;
            if *own == 0 {
                self.each.remove(&principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: u64 = 600;

    fn number(of: usize) -> Number {
        let mut number = [0; 16];
        number[..8].copy_from_slice(&(of as u64).to_le_bytes());
        number
    }

    #[test]
    fn an_approval_counts_once_for_as_long_as_it_can_be_brought() {
        let (spent, ana) = (Spent::new(LIFE), Arc::from("ana"));
        assert_eq!(spent.spend(number(1), &ana, 1_000), Ok(()));
        assert_eq!(spent.spend(number(2), &ana, 1_000), Ok(()));
        for later in [1_000, 1_000 + LIFE, 1_000 + LIFE + SKEW] {
            assert_eq!(
                spent.spend(number(1), &ana, later),
                Err(NotAgain::Used),
                "{later}"
            );
        }
        // Its ticket opens nowhere by then.
        assert_eq!(
            spent.spend(number(1), &ana, 1_001 + LIFE + 2 * SKEW),
            Ok(())
        );
        assert_eq!(spent.books.lock().unwrap().used.len(), 1);
    }

    #[test]
    fn what_was_never_sent_counts_again_and_leaves_nothing_behind() {
        let (spent, ana) = (Arc::new(Spent::new(LIFE)), Arc::from("ana"));
        for _ in 0..3 {
            let stake = spent.stake(number(1), &ana, 1_000).unwrap();
            let copy = stake.clone();
            drop(stake);
            let twice = spent.stake(number(1), &ana, 1_000);
            assert_eq!(twice.unwrap_err(), NotAgain::Used, "one call has it still");
            drop(copy);
            let books = spent.books.lock().unwrap();
            assert_eq!(
                (books.used.len(), books.order.len(), books.each.len()),
                (0, 0, 0)
            );
        }
        let stake = spent.stake(number(1), &ana, 1_000).unwrap();
        assert!(stake.mark_used() && !stake.clone().mark_used());
        drop(stake);
        let twice = spent.stake(number(1), &ana, 1_000);
        assert_eq!(twice.unwrap_err(), NotAgain::Used);
    }

    #[test]
    fn what_cannot_be_remembered_does_not_count() {
        let (spent, ana, bob) = (Spent::new(LIFE), Arc::from("ana"), Arc::from("bob"));
        for of in 0..EACH {
            assert_eq!(spent.spend(number(of), &ana, 1_000), Ok(()));
        }
        assert_eq!(spent.spend(number(EACH), &ana, 1_000), Err(NotAgain::Full));
        assert_eq!(spent.spend(number(EACH), &bob, 1_000), Ok(()));
        for of in EACH + 1..TOTAL {
            let who = Arc::from(format!("{}", of / EACH));
            assert_eq!(spent.spend(number(of), &who, 1_000), Ok(()), "{of}");
        }
        let carl = Arc::from("carl");
        assert_eq!(
            spent.spend(number(TOTAL), &carl, 1_000),
            Err(NotAgain::Full)
        );
        assert_eq!(spent.spend(number(TOTAL), &carl, 5_000), Ok(()));
        let books = spent.books.lock().unwrap();
        assert_eq!(
            (books.used.len(), books.order.len(), books.each.len()),
            (1, 1, 1)
        );
    }
}
