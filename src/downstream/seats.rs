//! Seats: how many sessions there may be, of all together and of one party of those who come, and likewise streams of 2024-11-05.
//!
//! Guarantees: a seat is given back when it is dropped. Whoever has no name is counted by the address
//! it comes from, so that one such does not take the seats of all others (SECURITY STATE-6).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::legacy::SessionBounds;
use crate::{events::Party, metrics::Bound};

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
    /// One more.
    ///
    /// # Errors
    /// The bound that is reached, for the caller to count if it refuses anybody for that.
    pub(super) fn take(
        self: &Arc<Self>,
        party: &Party,
        bounds: &SessionBounds,
    ) -> Result<Seat, Bound> {
        let mut taken = self.taken();
        if taken.total >= bounds.total {
            return Err(Bound::SessionsProcess);
        }
        let own = taken.parties.get(party).copied().unwrap_or_default();
        if own >= bounds.per_principal {
            return Err(Bound::SessionsPrincipal);
        }
        taken.total += 1;
        taken.parties.insert(party.clone(), own + 1);
        Ok(Seat {
            seats: self.clone(),
            party: party.clone(),
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

impl Seat {
    /// Whose it is.
    pub(super) const fn party(&self) -> &Party {
        &self.party
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
    use crate::call::Principal;

    #[test]
    fn who_has_no_name_takes_the_seats_of_one_address() {
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
            held.push(seats.take(&party, &bounds).unwrap());
            held.push(seats.take(&party, &bounds).unwrap());
            let refused = seats.take(&party, &bounds).unwrap_err();
            let bound = match held.len() {
                6 => Bound::SessionsProcess,
                _ => Bound::SessionsPrincipal,
            };
            assert_eq!(refused, bound);
        }
        let ana = || seats.take(&Party::of(&Principal::new("ana"), None), &bounds);
        assert_eq!(ana().unwrap_err(), Bound::SessionsProcess);
        held.pop();
        held.push(ana().unwrap());
        held.clear();
        assert!(seats.is_empty());
    }
}
