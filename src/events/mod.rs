//! The hub: who listens for changes, and telling them (PROTOCOL B7, D1, H16).
//!
//! Guarantees: a listener hears of a change only after it can be seen; what it has not taken yet is merged, so a storm
//! costs it one wake-up and a bounded set; one that takes nothing for [`SLOW_LISTENER_TIMEOUT`] while there is news is let go of; all that
//! is kept is bounded, and calls never come here but for the pages that they send people to. Deliberately absent: outward URIs (a listener knows how its own look), and
//! asking upstreams for changes, which their watches do by what the [`ResourceInterest`] of each says.

mod interest;
mod listener;
mod lists;
mod mailbox;
mod pages;
mod party;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    call::Principal,
    metrics::{self, Bound},
    protocol::{UpstreamId, names::Scope},
};

pub use interest::{ResourceInterest, Wanted};
pub use listener::Listener;
pub use lists::Lists;
pub use mailbox::{News, SlowConsumer};
pub use pages::{Pages, Sender};
pub use party::Party;

use mailbox::Mailbox;

/// How long news may wait for a listener that takes none; the next news after that finds it gone (SECURITY REL-4).
pub const SLOW_LISTENER_TIMEOUT: Duration = Duration::from_secs(30);

/// How many may listen at once. Listens that belong to a session are bounded by the bounds of sessions instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Over all principals. Default 20,000 (SECURITY 6).
    pub total: usize,
    /// For each principal that is known by name, and for each address elsewhere that others come from. Default 64 (SECURITY
    /// 6). Whoever comes in without a name on this machine is bounded by the total alone: that is everybody there.
    pub per_principal: usize,
    /// Resources that one listener watches; those beyond are not in force. Default 256 (SECURITY 6).
    pub addresses: usize,
    /// What may wait for a listener, in resources below watched ones and in bytes of their URIs: beyond it the watched one
    /// stands for all below it. Default 256 and 1 MiB (SECURITY 6).
    pub buffer: (usize, usize),
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            total: 20_000,
            per_principal: 64,
            addresses: 256,
            buffer: (256, 1 << 20),
        }
    }
}

/// Too many listen already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many listen already")]
pub struct Full;

/// Everybody who listens; one for the process.
#[derive(Debug)]
pub struct Hub {
    /// Who listens for the lists of which scope. A std mutex: held to come, to go, and to tell; never across an await.
    scopes: Mutex<HashMap<Scope, HashMap<u64, Arc<Mailbox>>>>,
    interests: Mutex<HashMap<UpstreamId, Arc<ResourceInterest>>>,
    pages: Arc<Pages>,
    seats: Mutex<Seats>,
    /// Those who take a seat, for operators to look at.
    seated: Mutex<BTreeMap<u64, Seated>>,
    bounds: Bounds,
    next: AtomicU64,
}

#[derive(Debug)]
struct Seated {
    seen: ListenSeen,
    mailbox: Arc<Mailbox>,
}

/// What operators see of one who listens and takes a seat. Listens of sessions belong to those.
#[derive(Debug, Clone)]
pub struct ListenSeen {
    /// Counts up from 1 in this process.
    pub id: u64,
    /// Who.
    pub principal: Principal,
    /// Where.
    pub scope: Scope,
    /// For which lists.
    pub lists: Lists,
    /// For how many resources.
    pub resources: usize,
    /// Since when.
    pub since: Instant,
}

#[derive(Debug, Default)]
struct Seats {
    total: usize,
    parties: HashMap<Party, usize>,
}

/// A place among those who listen, given back when dropped.
#[derive(Debug)]
struct Seat {
    hub: Arc<Hub>,
    party: Party,
}

impl Hub {
    /// Nobody listens yet.
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            scopes: Mutex::default(),
            interests: Mutex::default(),
            pages: Arc::default(),
            seats: Mutex::default(),
            seated: Mutex::default(),
            bounds,
            next: AtomicU64::new(1),
        })
    }

    /// What holds for those who listen.
    pub const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The interest in one upstream's resources, which stays the same for as long as the hub lives. There are as many as upstreams.
    pub fn interest(&self, upstream: &UpstreamId) -> Arc<ResourceInterest> {
        let mut interests = held(&self.interests);
        let interest = || Arc::new(ResourceInterest::sharing(self.pages.clone()));
        Arc::clone(interests.entry(upstream.clone()).or_insert_with(interest))
    }

    /// The pages that people were sent to, of all upstreams.
    pub const fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// Begins to listen: for changes of `lists` as `scope` shows them, and of the resources that the upstreams of `watched`
    /// know by these URIs, at most [`Bounds::addresses`]. `seat` is whose place it takes; `None` where a session's bounds hold
    /// instead.
    ///
    /// # Errors
    /// [`Full`] when there is no place left.
    pub fn listen(
        self: &Arc<Self>,
        scope: &Scope,
        lists: Lists,
        watched: impl IntoIterator<Item = (Arc<ResourceInterest>, Arc<str>)>,
        seat: Option<&Party>,
    ) -> Result<Listener, Full> {
        let who = seat;
        let seat = seat.map(|party| self.seat(party)).transpose()?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mailbox = Arc::new(Mailbox::new(lists, self.bounds.buffer));
        if !lists.is_empty() {
            held(&self.scopes)
                .entry(scope.clone())
                .or_default()
                .insert(id, Arc::clone(&mailbox));
        }
        let mut watched = watched.into_iter();
        let within = watched.by_ref().take(self.bounds.addresses);
        let within: Vec<_> = within
            .enumerate()
            .map(|(number, (interest, uri))| {
                let kept = interest.watch(&uri, id, number, &mailbox);
                kept.then_some((interest, uri))
            })
            .collect();
        if watched.next().is_some() {
            metrics::reached(Bound::StreamAddresses);
        }
        if let Some(party) = who {
            let seen = ListenSeen {
                id,
                principal: party.principal(),
                scope: scope.clone(),
                lists,
                resources: within.len(),
                since: Instant::now(),
            };
            let mailbox = Arc::clone(&mailbox);
            held(&self.seated).insert(id, Seated { seen, mailbox });
        }
        Ok(Listener::new(
            Arc::clone(self),
            id,
            scope.clone(),
            mailbox,
            within,
            seat,
        ))
    }

    /// Tells everybody who listens to them that these lists of `scope` are others now.
    pub fn lists_changed(&self, scope: &Scope, lists: Lists) {
        if let Some(listeners) = held(&self.scopes).get(scope) {
            listeners.values().for_each(|mailbox| mailbox.lists(lists));
        }
    }

    /// How many places are taken: listens of principals, sessions' own left out.
    pub fn seated(&self) -> usize {
        held(&self.seats).total
    }

    /// Whether anybody listens for lists of any scope.
    pub fn is_silent(&self) -> bool {
        held(&self.scopes).is_empty()
    }

    /// Those who listen and take a seat, the oldest first, beginning after `after`; at most `most`.
    pub fn seen(&self, after: u64, most: usize) -> Vec<ListenSeen> {
        let seated = held(&self.seated);
        let later = seated.range(after.saturating_add(1)..).take(most);
        later.map(|(_, seated)| seated.seen.clone()).collect()
    }

    /// Ends a listen, as if it had run its time. Says whether there was one.
    pub fn end(&self, id: u64) -> bool {
        let seated = held(&self.seated);
        let found = seated.get(&id);
        found.is_some_and(|seated| {
            seated.mailbox.end();
            true
        })
    }

    fn seat(self: &Arc<Self>, party: &Party) -> Result<Seat, Full> {
        let mut seats = held(&self.seats);
        let own = seats.parties.get(party).copied().unwrap_or_default();
        if seats.total >= self.bounds.total {
            metrics::reached(Bound::StreamsProcess);
            return Err(Full);
        }
        if party.is_bounded() && own >= self.bounds.per_principal {
            metrics::reached(Bound::StreamsPrincipal);
            return Err(Full);
        }
        seats.total += 1;
        seats.parties.insert(party.clone(), own + 1);
        Ok(Seat {
            hub: Arc::clone(self),
            party: party.clone(),
        })
    }

    fn leave(&self, scope: &Scope, id: u64) {
        held(&self.seated).remove(&id);
        let mut scopes = held(&self.scopes);
        if let Some(listeners) = scopes.get_mut(scope) {
            listeners.remove(&id);
            if listeners.is_empty() {
                scopes.remove(scope);
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = held(&self.hub.seats);
        seats.total -= 1;
        if let Some(own) = seats.parties.get_mut(&self.party) {
            *own -= 1;
            if *own == 0 {
                seats.parties.remove(&self.party);
            }
        }
    }
}

/// A panic under one of these locks leaves what they hold whole, so poison says nothing.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
