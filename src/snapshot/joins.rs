//! Joins: what upstreams offer to one principal alone, in the place of what they offer to everybody (STYLE 3.9).
//!
//! Guarantees: what was read with somebody's credential is in their snapshot and in no other (SECURITY STATE-5); a snapshot is
//! made when its principal needs it and what it is made from has changed, and shared by all who are offered the same bytes;
//! what did not change is not built again, so that nobody hears of a change that is none to them. Bounds: whoever tells of
//! what is offered says also when it is forgotten; as many as that are kept. Deliberately absent: when lists are read.

use std::{
    collections::{BTreeMap, HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use dashmap::DashMap;

use super::{Snapshot, items, views::Known};
use crate::{
    call::Grantee,
    catalog::{Catalog, Contribution},
    protocol::{UpstreamId, methods::ListKind},
    tasks::aside,
};

/// What principals are offered of their own.
#[derive(Debug, Default)]
pub(super) struct Joins {
    /// Whether any upstream offers anybody something of their own.
    expected: AtomicBool,
    own: DashMap<Grantee, Arc<Own>>,
    // Held while what somebody is offered is judged and put in its place, never by a call: so that no judgement is in force that
    // was overtaken by another.
    turn: Mutex<()>,
    /// What is offered, by fingerprint: the same bytes are kept once.
    offers: Mutex<HashMap<u64, Weak<Contribution>>>,
    /// Snapshots in use, and what they were made from.
    made: Mutex<Vec<Made>>,
    next: AtomicU64,
}

/// What some upstreams offer.
type Parts = BTreeMap<UpstreamId, Arc<Contribution>>;

/// What one principal is offered.
#[derive(Debug, Default)]
struct Own {
    /// What they see, if that is known to be so. Read without a lock.
    now: ArcSwapOption<Joined>,
    /// Held while a snapshot is made, never across an await.
    standing: Mutex<Standing>,
}

#[derive(Debug, Default)]
struct Standing {
    parts: Parts,
    /// What was seen last, to make the next one from.
    last: Option<Arc<Snapshot>>,
}

/// A snapshot, and the revision of the shared one that it was made from.
#[derive(Debug)]
struct Joined {
    base: u64,
    snapshot: Arc<Snapshot>,
}

#[derive(Debug)]
struct Made {
    base: u64,
    parts: Parts,
    snapshot: Weak<Snapshot>,
}

/// Revisions of joined snapshots begin here, so that none is that of a shared one.
const APART: u64 = 1 << 63;

impl Joins {
    /// From now on somebody may be offered something of their own.
    pub(super) fn expect(&self) {
        self.expected.store(true, Ordering::Relaxed);
    }

    pub(super) fn are_expected(&self) -> bool {
        self.expected.load(Ordering::Relaxed)
    }

    /// What somebody sees, where everybody else sees `shared`.
    pub(super) fn seen(
        &self,
        who: &Grantee,
        shared: Arc<Snapshot>,
        known: &Known,
    ) -> Arc<Snapshot> {
        let own = self.own.get(who).map(|own| Arc::clone(&own));
        match own {
            Some(own) => own.seen(shared, known, self),
            None => shared,
        }
    }

    /// Whom `upstream` offers something of their own. Whoever is offered the first of it at this moment is among them, or is
    /// judged later.
    pub(super) fn offered_by(&self, upstream: &UpstreamId) -> Vec<Grantee> {
        let _turn = held(&self.turn);
        let own = self
            .own
            .iter()
            .map(|own| (own.key().clone(), Arc::clone(&own)));
        let own: Vec<_> = own.collect();
        own.into_iter()
            .filter(|(_, own)| own.standing().parts.contains_key(upstream))
            .map(|(who, _)| who)
            .collect()
    }

    /// What `upstream` offers to somebody is this now, or nothing of their own any more. What they saw before, and see now; `None`
    /// where that is the same.
    pub(super) fn put(
        &self,
        who: &Grantee,
        upstream: &UpstreamId,
        change: impl FnOnce(Option<Contribution>) -> Option<Contribution>,
        shared: &Arc<Snapshot>,
        known: &Known,
    ) -> Option<(Arc<Snapshot>, Arc<Snapshot>)> {
        let before = self.seen(who, Arc::clone(shared), known);
        let (old, new) = {
            let _turn = held(&self.turn);
            let contribution = change(self.offer(who, upstream));
            // Its place in the map is not held meanwhile: calls of others come by, and this may wait for a snapshot to be made.
            let own = Arc::clone(&self.own.entry(who.clone()).or_default());
            let mut standing = own.standing();
            let old = match contribution {
                Some(contribution) => {
                    let contribution = self.once(contribution);
                    standing.parts.insert(upstream.clone(), contribution)
                }
                None => standing.parts.remove(upstream),
            };
            let new = standing.parts.get(upstream).cloned();
            if old.as_ref().map(Arc::as_ptr) != new.as_ref().map(Arc::as_ptr) {
                own.now.store(None);
            }
            (old, new)
        };
        let seen = || self.seen(who, Arc::clone(shared), known);
        let after = catch_unwind(AssertUnwindSafe(seen)).unwrap_or_else(|fault| {
            self.put_back(who, upstream, old, new.as_ref());
            resume_unwind(fault)
        });
        self.forget_empty(who);
        (before.revision != after.revision).then_some((before, after))
    }

    /// No snapshot can be made with what was put in place last: with it in place nothing could be done for them any more.
    fn put_back(
        &self,
        who: &Grantee,
        upstream: &UpstreamId,
        old: Option<Arc<Contribution>>,
        new: Option<&Arc<Contribution>>,
    ) {
        if let Some(own) = self.own.get(who).map(|own| Arc::clone(&own)) {
            let _turn = held(&self.turn);
            let mut standing = own.standing();
            // Unless something else was put there since.
            if standing.parts.get(upstream).map(Arc::as_ptr) == new.map(Arc::as_ptr) {
                match old {
                    Some(old) => drop(standing.parts.insert(upstream.clone(), old)),
                    None => drop(standing.parts.remove(upstream)),
                }
                own.now.store(None);
            }
        }
        self.forget_empty(who);
    }

    /// Forgets somebody who is offered nothing of their own.
    fn forget_empty(&self, who: &Grantee) {
        // What is offered changes only under this.
        let _turn = held(&self.turn);
        let own = self.own.get(who).map(|own| Arc::clone(&own));
        if own.is_some_and(|own| own.standing().parts.is_empty()) {
            self.own.remove(who);
        }
    }

    /// What `upstream` offers to somebody.
    fn offer(&self, who: &Grantee, upstream: &UpstreamId) -> Option<Contribution> {
        let own = self.own.get(who).map(|own| Arc::clone(&own))?;
        let standing = own.standing();
        standing.parts.get(upstream).map(|it| (**it).clone())
    }

    /// Every snapshot in use.
    pub(super) fn each(&self, mut look: impl FnMut(&Snapshot)) {
        for made in held(&self.made).iter() {
            if let Some(snapshot) = made.snapshot.upgrade() {
                look(&snapshot);
            }
        }
    }

    /// The one that is kept of contributions that offer the same.
    fn once(&self, contribution: Contribution) -> Arc<Contribution> {
        let mut hasher = DefaultHasher::new();
        for kind in ListKind::EVERY {
            let items = &contribution.listing(kind).items;
            items.len().hash(&mut hasher);
            for item in items.iter() {
                item.bytes().hash(&mut hasher);
            }
        }
        let mut offers = held(&self.offers);
        offers.retain(|_, offer| offer.strong_count() > 0);
        let print = hasher.finish();
        let known = offers.get(&print).and_then(Weak::upgrade);
        if let Some(known) = known
            && known.offers_the_same(&contribution)
        {
            return known;
        }
        let contribution = Arc::new(contribution);
        offers.insert(print, Arc::downgrade(&contribution));
        contribution
    }

    fn found(&self, base: u64, parts: &Parts) -> Option<Arc<Snapshot>> {
        let mut made = held(&self.made);
        made.retain(|made| made.snapshot.strong_count() > 0);
        let same = |made: &&Made| {
            made.base == base
                && made.parts.len() == parts.len()
                && made
                    .parts
                    .iter()
                    .zip(parts)
                    .all(|(one, other)| one.0 == other.0 && Arc::ptr_eq(one.1, other.1))
        };
        made.iter().find(same)?.snapshot.upgrade()
    }

    fn make(
        &self,
        shared: &Snapshot,
        parts: &Parts,
        last: Option<&Snapshot>,
        known: &Known,
    ) -> Arc<Snapshot> {
        if let Some(found) = self.found(shared.revision, parts) {
            return found;
        }
        let last = last.map(|last| &*last.catalog);
        let (catalog, policy) = aside(|| {
            let catalog = Catalog::join(&shared.catalog, parts, last);
            let policy = shared.policy.policy();
            let policy = if policy.is_unrestricted() {
                shared.policy.clone()
            } else {
                policy.prepare(items::of(&catalog), Some(&shared.policy))
            };
            (catalog, policy)
        });
        let revision = APART | self.next.fetch_add(1, Ordering::Relaxed);
        let limits = shared.limits.clone();
        let mut snapshot = Snapshot::new(revision, Arc::new(catalog), policy, known, limits);
        snapshot.own = parts.keys().cloned().collect();
        let snapshot = Arc::new(snapshot);
        held(&self.made).push(Made {
            base: shared.revision,
            parts: parts.clone(),
            snapshot: Arc::downgrade(&snapshot),
        });
        snapshot
    }
}

impl Own {
    fn seen(&self, shared: Arc<Snapshot>, known: &Known, joins: &Joins) -> Arc<Snapshot> {
        let fits = |joined: &Arc<Joined>| joined.base == shared.revision;
        if let Some(joined) = self.now.load_full().filter(fits) {
            return Arc::clone(&joined.snapshot);
        }
        let mut standing = self.standing();
        if let Some(joined) = self.now.load_full().filter(fits) {
            return Arc::clone(&joined.snapshot);
        }
        if standing.parts.is_empty() {
            return shared;
        }
        let last = standing.last.take();
        let snapshot = joins.make(&shared, &standing.parts, last.as_deref(), known);
        standing.last = Some(Arc::clone(&snapshot));
        self.now.store(Some(Arc::new(Joined {
            base: shared.revision,
            snapshot: Arc::clone(&snapshot),
        })));
        snapshot
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        held(&self.standing)
    }
}

/// A panic under one of these locks leaves what they hold whole, so poison says nothing.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use tokio::time::Instant;

    use super::*;
    use crate::{
        call::Identity,
        snapshot::tests::{id, offering, world},
    };

    /// How often it is looked whether somebody waits.
    const LOOKS: usize = 10_000_000;

    /// Calls of others come by there, and a snapshot may take its time.
    #[test]
    fn who_waits_for_somebodys_snapshot_holds_no_place_in_the_map() {
        let world = world();
        let (joins, shared) = (&world.joins, world.load());
        let who = Identity::anonymous().grantee();
        let offers = offering(&["x"], Instant::now());
        joins.put(&who, &id(), |_| Some(offers), &shared, &world.known);
        let own = joins.own.get(&who).map(|own| Arc::clone(&own)).unwrap();
        let (begun, begins) = mpsc::channel();
        let (over, ends) = mpsc::channel::<()>();
        let waits = thread::scope(|scope| {
            scope.spawn(|| {
                // Once it is known what is offered now, a snapshot begins to be made.
                let change = |_| {
                    let (making, made) = mpsc::channel();
                    let own = &own;
                    scope.spawn(move || {
                        let _standing = own.standing();
                        making.send(()).unwrap();
                        ends.recv().unwrap();
                    });
                    made.recv().unwrap();
                    begun.send(()).unwrap();
                    None
                };
                joins.put(&who, &id(), change, &shared, &world.known);
            });
            begins.recv().unwrap();
            // The map's, this one's, and that of who waits.
            let waits = (0..LOOKS).any(|_| {
                thread::yield_now();
                Arc::strong_count(&own) == 3
            });
            let others = waits && joins.own.get(&who).is_some();
            over.send(()).unwrap();
            others
        });
        assert!(waits);
        assert!(!joins.own.contains_key(&who), "nothing is left");
    }
}
