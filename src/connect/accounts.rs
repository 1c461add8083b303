//! Grants in memory: found without a lock that is waited for, kept in the store, and told of to whoever waits for one.
//!
//! Guarantees: what is in memory is in the store first; a grant whose upstream was given another address since is not used; what
//! somebody removed from the store, in this process or beside it, is not used after a second. Bound: that of the store.

use std::sync::Arc;

use arc_swap::ArcSwap;
use dashmap::DashMap;
use tokio::sync::{Mutex, watch};

use super::{
    flows::Account,
    grant::Grant,
    spec::ConnectSpec,
    store::{GRANT, Key, RECORDS, Record, Store, StoreError},
};
use crate::{call::Principal, protocol::UpstreamId};

/// One grant, and who is about to renew it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) grant: ArcSwap<Grant>,
    /// Held while a refresh is under way: there is one at a time, since most servers take a refresh token once.
    pub(super) refreshing: Arc<Mutex<()>>,
}

/// Every grant.
#[derive(Debug)]
pub(super) struct Grants {
    slots: DashMap<Account, Arc<Slot>>,
    store: Option<Store>,
    /// Counts changes, for those who wait for one.
    changes: watch::Sender<u64>,
}

impl Grants {
    /// What the store holds for the upstreams of `spec`.
    ///
    /// # Errors
    /// [`StoreError`] when there is to be a store and it cannot be used.
    pub(super) fn open(spec: &ConnectSpec) -> Result<(Self, Vec<Record>), StoreError> {
        let store = spec.store.as_ref().map(Store::open).transpose()?;
        let grants = Self {
            slots: DashMap::new(),
            store,
            changes: watch::Sender::new(0),
        };
        let others = grants.load(spec)?;
        Ok((grants, others))
    }

    /// Takes over what the store holds now; what it holds beside grants is given back.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) fn load(&self, spec: &ConnectSpec) -> Result<Vec<Record>, StoreError> {
        let Some(store) = &self.store else {
            return Ok(Vec::new());
        };
        let (records, strange) = store.read()?;
        if strange > 0 {
            tracing::warn!(
                strange,
                "files of the connection store do not open: sealed with another key, damaged, or too many"
            );
        }
        let mut others = Vec::new();
        let mut kept = std::collections::HashSet::new();
        for record in records {
            if record.key.kind != GRANT {
                others.push(record);
                continue;
            }
            let Some((account, grant)) = read(&record, spec) else {
                continue;
            };
            kept.insert(account.clone());
            let same = self
                .slot(&account)
                .is_some_and(|slot| slot.grant.load().written() == record.plain);
            if !same {
                self.hold(&account, grant);
            }
        }
        self.slots.retain(|account, _| kept.contains(account));
        self.tell();
        Ok(others)
    }

    /// The grant's place, if there is one.
    pub(super) fn slot(&self, account: &Account) -> Option<Arc<Slot>> {
        self.slots.get(account).map(|slot| Arc::clone(&slot))
    }

    /// Keeps a grant that somebody was just given.
    ///
    /// # Errors
    /// [`StoreError`]; then there is none.
    pub(super) fn put(&self, account: &Account, grant: Grant) -> Result<(), StoreError> {
        match &self.store {
            Some(store) => store.put(&key(account), &grant.written())?,
            None if self.slots.len() >= RECORDS && !self.slots.contains_key(account) => {
                return Err(StoreError::Full);
            }
            None => {}
        }
        self.hold(account, grant);
        self.tell();
        Ok(())
    }

    /// Keeps a renewed grant; `false` when the one before was removed meanwhile, which this one then is, too.
    ///
    /// # Errors
    /// [`StoreError`]; then the new one is used, and not kept.
    pub(super) fn renew(&self, account: &Account, grant: Grant) -> Result<bool, StoreError> {
        let kept = match &self.store {
            Some(store) => store.replace(&key(account), &grant.written()),
            None => Ok(true),
        };
        if matches!(kept, Ok(false)) {
            self.slots.remove(account);
            self.tell();
            return kept;
        }
        match self.slot(account) {
            Some(slot) => slot.grant.store(Arc::new(grant)),
            None => return Ok(false),
        }
        kept
    }

    /// Removes a grant; the one that was there.
    ///
    /// # Errors
    /// [`StoreError`]; it is no longer used all the same.
    pub(super) fn remove(&self, account: &Account) -> Result<Option<Arc<Grant>>, StoreError> {
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

    fn hold(&self, account: &Account, grant: Grant) {
        let slot = Arc::new(Slot {
            grant: ArcSwap::from_pointee(grant),
            refreshing: Arc::default(),
        });
        self.slots.insert(account.clone(), slot);
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
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::connect::{
        grant::tests::a_grant,
        spec::{AccountSpec, ClientSpec, ServerSpec, StoreSpec},
    };

    fn spec(directory: &std::path::Path, address: &str) -> ConnectSpec {
        let account = AccountSpec {
            address: address.into(),
            resource: None,
            server: ServerSpec::Discovered,
            client: ClientSpec::Given {
                id: "c".into(),
                secret: None,
            },
            scopes: None,
        };
        ConnectSpec {
            accounts: [(UpstreamId::parse("github").unwrap(), account)].into(),
            store: Some(StoreSpec {
                directory: directory.join("store"),
                keys: vec!["a key of more than thirty-two bytes".into()],
            }),
            url: None,
            ca: None,
        }
    }

    fn ana() -> Account {
        Account {
            upstream: UpstreamId::parse("github").unwrap(),
            principal: Principal::new("ana"),
        }
    }

    #[test]
    fn a_grant_is_used_at_the_address_it_was_given_for_and_nowhere_else() {
        let directory = tempfile::tempdir().unwrap();
        let before = spec(directory.path(), "https://mcp.example/mcp");
        let (grants, _) = Grants::open(&before).unwrap();
        grants.put(&ana(), a_grant("at-1")).unwrap();
        let (again, _) = Grants::open(&before).unwrap();
        let kept = again.slot(&ana()).unwrap().grant.load_full();
        assert_eq!(kept.access.expose_secret(), "at-1");
        let elsewhere = spec(directory.path(), "https://mallory.example/mcp");
        assert!(Grants::open(&elsewhere).unwrap().0.slot(&ana()).is_none());
    }

    #[test]
    fn what_another_process_removes_or_renews_is_seen_when_the_store_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let spec = spec(directory.path(), "https://mcp.example/mcp");
        let (grants, _) = Grants::open(&spec).unwrap();
        let (other, _) = Grants::open(&spec).unwrap();
        grants.put(&ana(), a_grant("at-1")).unwrap();
        other.load(&spec).unwrap();
        assert!(other.renew(&ana(), a_grant("at-2")).unwrap());
        grants.load(&spec).unwrap();
        let seen = grants.slot(&ana()).unwrap().grant.load_full();
        assert_eq!(seen.access.expose_secret(), "at-2");
        assert!(other.remove(&ana()).unwrap().is_some());
        // What the first still has in hand comes to nothing.
        assert!(!grants.renew(&ana(), a_grant("at-3")).unwrap());
        assert!(grants.slot(&ana()).is_none() && grants.all().is_empty());
    }
}
