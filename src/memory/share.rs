//! What each of those holds for whom messages are held, so that one cannot have it all.
//!
//! Guarantees: whoever holds nothing is not remembered; a message that is all that somebody holds is never too much of theirs.
//! Nothing is looked up for messages that are small.

use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use dashmap::{DashMap, Entry};

use super::Full;

/// Everybody's.
#[derive(Debug)]
pub(super) struct Shares(OnceLock<Arc<Known>>);

type Known = DashMap<Arc<str>, Weak<Share>>;

/// Bytes held for one.
#[derive(Debug)]
pub(super) struct Share {
    who: Arc<str>,
    held: AtomicU64,
    among: Arc<Known>,
}

/// A part of a share. Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Part(Arc<Share>, u64);

/// For whom something is held.
#[derive(Debug, Clone)]
pub(super) enum Payer {
    /// For ourselves, or for everybody.
    Nobody,
    /// For this one, of whom nothing is counted yet.
    Named(Arc<str>),
    /// For the one whose share this is.
    Known(Arc<Share>),
}

impl Shares {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    pub(super) fn of(&self, who: &Arc<str>) -> Arc<Share> {
        let known = self.0.get_or_init(Arc::default);
        let fresh = || {
            Arc::new(Share {
                who: Arc::clone(who),
                held: AtomicU64::new(0),
                among: Arc::clone(known),
            })
        };
        match known.entry(Arc::clone(who)) {
            Entry::Vacant(place) => {
                let share = fresh();
                place.insert(Arc::downgrade(&share));
                share
            }
            Entry::Occupied(mut place) => place.get().upgrade().unwrap_or_else(|| {
                let share = fresh();
                place.insert(Arc::downgrade(&share));
                share
            }),
        }
    }

    /// Bytes held for one.
    pub(super) fn held(&self, who: &Arc<str>) -> u64 {
        let known = self.0.get().and_then(|known| known.get(who)?.upgrade());
        known.map_or(0, |share| share.held.load(Relaxed))
    }

    /// Of how many something is held.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.0.get().map_or(0, |known| known.len())
    }
}

impl Payer {
    /// Whose share it is counted in, if anybody's.
    pub(super) fn share(&mut self, shares: &Shares) -> Option<&Share> {
        if let Self::Named(who) = self {
            *self = Self::Known(shares.of(who));
        }
        match self {
            Self::Known(share) => Some(share),
            Self::Nobody | Self::Named(_) => None,
        }
    }
}

impl Share {
    pub(super) fn take(&self, bytes: u64) {
        self.held.fetch_add(bytes, Relaxed);
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Relaxed);
    }

    /// More of a message of which so much is held already, up to `most` of all that is held for them.
    pub(super) fn try_take(&self, more: u64, of_it: u64, most: Option<u64>) -> Result<(), Full> {
        let grow = |held: u64| {
            let alone = held <= of_it;
            let fits = most.is_none_or(|most| held + more <= most);
            (alone || fits).then_some(held + more)
        };
        let taken = self.held.fetch_update(Relaxed, Relaxed, grow);
        taken.map(|_| ()).map_err(|_| Full::Share)
    }
}

impl Part {
    pub(super) fn of(share: Arc<Share>, bytes: u64) -> Self {
        share.take(bytes);
        Self(share, bytes)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.give_back(self.1);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // Somebody may have begun anew meanwhile.
        let gone = |_: &Arc<str>, share: &Weak<Self>| share.strong_count() == 0;
        self.among.remove_if(&self.who, gone);
    }
}
