//! Grants in memory: found without a lock that is waited for, kept in the store, and told of to whoever waits for one.
//!
//! Guarantees: what is in memory is in the store first; a grant whose upstream was given another address since is not used; what
//! somebody removed from the store, in this process or beside it, is not used after a second; a read of the store puts nothing
//! back that was written, or removed, while it was under way, and takes nothing away that it could not read; a grant ends as the one that was used, never as another that took
//! its place. Bound: that of the store.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use dashmap::DashMap;
use tokio::sync::watch;

use super::{
    flows::Account,
    grant::Grant,
    renewing::Slot,
    spec::ConnectSpec,
    store::{Change, GRANT, Key, RECORDS, Record, Store, StoreError},
};
use crate::{call::Principal, protocol::UpstreamId};

/// Every grant.
#[derive(Debug)]
pub(super) struct Grants {
    slots: DashMap<Account, Arc<Slot>>,
    store: Option<Store>,
    /// Held while the store and `slots` change together, by whoever may wait for a disk; reads need it not.
    writing: Mutex<()>,
    /// Counts changes, for those who wait for one.
    changes: watch::Sender<u64>,
    /// How many files that do not open were told of last.
    strange: AtomicUsize,
}

/// What the store held when it was read.
struct Seen {
    grants: HashMap<Account, Grant>,
    /// What it holds beside grants.
    others: Vec<Record>,
    /// How many files in it do not open.
    strange: usize,
    /// Whether that is all of it.
    whole: bool,
}

impl Grants {
    /// What the store holds for the upstreams of `spec`, and what it holds beside grants.
    ///
    /// # Errors
    /// [`StoreError`] when there is to be a store and it cannot be used.
    pub(super) fn open(spec: &ConnectSpec) -> Result<(Self, Vec<Record>), StoreError> {
        let store = spec.store.as_ref().map(Store::open).transpose()?;
        let grants = Self {
            slots: DashMap::new(),
            store,
            writing: Mutex::default(),
            changes: watch::Sender::new(0),
            strange: AtomicUsize::new(0),
        };
        let Some(store) = &grants.store else {
            return Ok((grants, Vec::new()));
        };
        let seen = Seen::read(store, spec)?;
        grants.note_strange(seen.strange);
        let writing = grants.writing();
        for (account, grant) in seen.grants {
            grants.hold(&writing, &account, grant);
        }
        drop(writing);
        Ok((grants, seen.others))
    }

    /// Takes over what the store holds now; whether all of it could be read.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) fn load(&self, spec: &ConnectSpec) -> Result<bool, StoreError> {
        let Some(store) = &self.store else {
            return Ok(true);
        };
        let seen = Seen::read(store, spec)?;
        self.note_strange(seen.strange);
        self.take_over(&seen, spec);
        Ok(seen.whole)
    }

    /// So many files do not open: is told where it is another number than was told last. Whether it was.
    fn note_strange(&self, strange: usize) -> bool {
        let is_news = self.strange.swap(strange, Ordering::Relaxed) != strange && strange > 0;
        if is_news {
            tracing::warn!(
                strange,
                "files of the connection store do not open: sealed with another key, damaged, or too many"
            );
        }
        is_news
    }

    /// Takes over what was read where it differs from what is known here.
    fn take_over(&self, seen: &Seen, spec: &ConnectSpec) {
        let is_known = |account: &Account, grant: &Grant| {
            let slot = self.slot(account);
            slot.is_some_and(|slot| slot.stored.load().is(grant))
        };
        let written = seen.grants.iter();
        let written = written.filter(|(account, grant)| !is_known(account, grant));
        let mut differ: Vec<Account> = written.map(|(account, _)| account.clone()).collect();
        let removed = self.slots.iter();
        let removed = removed.filter(|slot| !seen.grants.contains_key(slot.key()));
        differ.extend(removed.map(|slot| slot.key().clone()));
        for account in differ {
            self.look_at(&account, spec);
        }
        self.tell();
    }

    /// Takes over what the store holds of one account at this moment: what was read before may have been written anew since.
    pub(super) fn look_at(&self, account: &Account, spec: &ConnectSpec) {
        let Some(store) = &self.store else { return };
        let writing = self.writing();
        // That it cannot be read just now ends nothing; whoever reads the whole store does so again.
        let Ok(stored) = store.find(&key(account)) else {
            return;
        };
        let Some((_, grant)) = stored.and_then(|record| read(&record, spec)) else {
            self.slots.remove(account);
            return;
        };
        let slot = self.slot(account);
        if !slot.is_some_and(|slot| slot.stored.load().is(&grant)) {
            self.hold(&writing, account, grant);
        }
    }

    /// The grant's place, if there is one.
    pub(super) fn slot(&self, account: &Account) -> Option<Arc<Slot>> {
        self.slots.get(account).map(|slot| Arc::clone(&slot))
    }

    /// Keeps a grant that somebody was just given; `kept` is done once it is in the store and before anybody finds it.
    ///
    /// # Errors
    /// [`StoreError`]; then there is none.
    pub(super) fn put(
        &self,
        account: &Account,
        grant: Grant,
        kept: impl FnOnce(),
    ) -> Result<(), StoreError> {
        let writing = self.writing();
        match &self.store {
            Some(store) => store.put(&key(account), &grant.written())?,
            None if self.slots.len() >= RECORDS && !self.slots.contains_key(account) => {
                return Err(StoreError::Full);
            }
            None => {}
        }
        kept();
        self.hold(&writing, account, grant);
        self.tell();
        Ok(())
    }

    /// Keeps what `used` was renewed to, unless that was removed meanwhile, which this one then is, too, or has made room for
    /// another, which stays.
    ///
    /// # Errors
    /// [`StoreError`]; then the new one is used, and not kept.
    pub(super) fn renew(
        &self,
        account: &Account,
        used: &Arc<Grant>,
        grant: Grant,
    ) -> Result<(), StoreError> {
        let writing = self.writing();
        let Some(slot) = self.slot(account).filter(|slot| slot.holds(used)) else {
            return Ok(());
        };
        let (grant, stored) = (Arc::new(grant), slot.stored.load_full());
        let change = match &self.store {
            Some(store) => {
                let known = |plain: &[u8]| stored.is_in(plain);
                store.replace(&key(account), known, &grant.written())
            }
            None => Ok(Change::Made),
        };
        match change {
            Ok(Change::Made) => slot.hold(grant),
            Ok(change) => self.yield_to(&writing, account, &slot, change),
            Err(error) => {
                slot.grant.store(grant);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Nothing follows `used`: removes it. What is there instead by now, if anything is.
    ///
    /// # Errors
    /// [`StoreError`]; it is no longer used all the same.
    pub(super) fn end(
        &self,
        account: &Account,
        used: &Arc<Grant>,
    ) -> Result<Option<Arc<Grant>>, StoreError> {
        let writing = self.writing();
        let Some(slot) = self.slot(account) else {
            return Ok(None);
        };
        if slot.holds(used) {
            let stored = slot.stored.load_full();
            let change = self.store.as_ref().map_or(Ok(Change::Made), |store| {
                store.remove_known(&key(account), |plain| stored.is_in(plain))
            });
            let (change, failed) = match change {
                Ok(change) => (change, None),
                Err(error) => (Change::Gone, Some(error)),
            };
            self.yield_to(&writing, account, &slot, change);
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(self.slot(account).map(|slot| slot.grant.load_full()))
    }

    /// What is in the place of a grant in the store is what is used: another one, or none.
    fn yield_to(
        &self,
        _writing: &MutexGuard<'_, ()>,
        account: &Account,
        slot: &Slot,
        change: Change,
    ) {
        let address = &slot.stored.load().address;
        let other = match change {
            Change::Other(plain) => Grant::read(&plain),
            Change::Made | Change::Gone => None,
        };
        match other.filter(|other| other.address == *address) {
            Some(other) => slot.hold(Arc::new(other)),
            None => drop(self.slots.remove(account)),
        }
        self.tell();
    }

    /// Removes a grant, whichever it is; the one that was there.
    ///
    /// # Errors
    /// [`StoreError`]; it is no longer used all the same.
    pub(super) fn remove(&self, account: &Account) -> Result<Option<Arc<Grant>>, StoreError> {
        let _writing = self.writing();
        let removed = self.slots.remove(account);
        let stored = self.store.as_ref().map(|store| store.remove(&key(account)));
        self.tell();
        stored.transpose()?;
        Ok(removed.map(|(_, slot)| slot.grant.load_full()))
    }

    /// Every grant, in order.
    pub(super) fn all(&self) -> Vec<(Account, Arc<Grant>)> {
        let mut all: Vec<_> = self
            .slots
            .iter()
            .map(|slot| (slot.key().clone(), slot.grant.load_full()))
            .collect();
        all.sort_by(|(a, _), (b, _)| {
            let of = |account: &Account| {
                (
                    account.upstream.as_str().to_owned(),
                    account.principal.as_str().to_owned(),
                )
            };
            of(a).cmp(&of(b))
        });
        all
    }

    /// Hears of every change.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Tells whoever waits that something is another way.
    pub(super) fn tell(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// What lies on disk.
    pub(super) const fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Takes a grant that is in the store.
    fn hold(&self, _writing: &MutexGuard<'_, ()>, account: &Account, grant: Grant) {
        let grant = Arc::new(grant);
        match self.slot(account) {
            Some(slot) => slot.hold(grant),
            None => drop(
                self.slots
                    .insert(account.clone(), Arc::new(Slot::of(grant))),
            ),
        }
    }

    /// A panic under the lock leaves nothing half done, so poison says nothing.
    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn read(store: &Store, spec: &ConnectSpec) -> Result<Self, StoreError> {
        let contents = store.read()?;
        let mut seen = Self {
            grants: HashMap::new(),
            others: Vec::new(),
            strange: contents.strange,
            whole: contents.unread == 0,
        };
        for record in contents.records {
            if record.key.kind == GRANT {
                seen.grants.extend(read(&record, spec));
            } else {
                seen.others.push(record);
            }
        }
        Ok(seen)
    }
}

fn key(account: &Account) -> Key {
    Key {
        kind: GRANT,
        whose: account.principal.as_str().to_owned(),
        place: account.upstream.as_str().to_owned(),
    }
}

/// The grant in a record, if its upstream is still the one that it was given for.
fn read(record: &Record, spec: &ConnectSpec) -> Option<(Account, Grant)> {
    let upstream = UpstreamId::parse(&record.key.place)?;
    let grant = Grant::read(&record.plain)?;
    let known = spec.accounts.get(&upstream);
    if known.is_none_or(|known| known.address != grant.address) {
        return None;
    }
    let principal = Principal::new(record.key.whose.as_str());
    Some((
        Account {
            upstream,
            principal,
        },
        grant,
    ))
}

#[cfg(test)]
pub(super) mod tests;
