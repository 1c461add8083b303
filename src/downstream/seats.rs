//! Seats: how many sessions there may be, of all together and of one party of those who come, and likewise streams of 2024-11-05.
//!
//! Guarantees: a seat is given back when it is dropped, and a refusal is counted. Whoever has no name is counted by the address
//! it comes from, so that one such does not take the seats of all others (SECURITY STATE-6).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::legacy::SessionBounds;
use crate::{
    events::Party,
    metrics::{Bound, reached},
};

/// Those that are taken.
#[derive(Debug, Default)]
pub(super) struct Seats {
    // Held to come and to go.
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    parties: HashMap<Party, usize>,
}

/// One of them, given back when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    party: Party,
}

impl Seats {
    /// One more; `None` when there are too many.
    pub(super) fn take(self: &Arc<Self>, party: Party, bounds: &SessionBounds) -> Option<Seat> {
        let mut taken = self.taken();
        if taken.total >= bounds.total {
            reached(Bound::SessionsProcess);
            return None;
        }
        let own = taken.parties.get(&party).copied().unwrap_or_default();
        if own >= bounds.per_principal {
            reached(Bound::SessionsPrincipal);
            return None;
        }
        taken.total += 1;
        taken.parties.insert(party.clone(), own + 1);
        Some(Seat {
            seats: self.clone(),
            party,
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let taken = self.taken();
        taken.total == 0 && taken.parties.is_empty()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        taken.total -= 1;
        if let Some(own) = taken.parties.get_mut(&self.party) {
            *own -= 1;
            if *own == 0 {
                taken.parties.remove(&self.party);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{call::Principal, metrics::seen};

    #[test]
    fn who_has_no_name_takes_the_seats_of_one_address_and_each_refusal_is_counted() {
        let bounds = SessionBounds {
            per_principal: 2,
            total: 6,
            ..SessionBounds::default()
        };
        let seats = Arc::<Seats>::default();
        let nobody = Principal::anonymous();
        let from = |address: &str| Party::of(&nobody, Some(address.parse().unwrap()));
        let mut held = Vec::new();
        for party in [
            from("192.0.2.1"),
            from("192.0.2.2"),
            Party::of(&nobody, None),
        ] {
            seen::take();
            held.push(seats.take(party.clone(), &bounds).unwrap());
            held.push(seats.take(party.clone(), &bounds).unwrap());
            assert!(held.len() == 6 || seats.take(party, &bounds).is_none());
            let refused = (held.len() < 6).then_some(Bound::SessionsPrincipal);
            assert_eq!(seen::take(), Vec::from_iter(refused));
        }
        let ana = || seats.take(Party::of(&Principal::new("ana"), None), &bounds);
        assert!(ana().is_none());
        assert_eq!(seen::take(), [Bound::SessionsProcess]);
        held.pop();
        held.push(ana().unwrap());
        held.clear();
        assert!(seats.is_empty());
    }
}
