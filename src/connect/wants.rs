//! What upstreams ask for beyond what somebody granted: the next login asks for that as well (PROTOCOL F6, step-up).
//!
//! Guarantees: the same is asked for once, so that an upstream which is never content has nobody log in again and again; where
//! the configuration says what is asked for, that is all that is. Bounds: [`ACCOUNTS`] accounts, [`EACH`] scopes of each.
//! Deliberately absent: whether to agree, which the person decides who is shown all of it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Account, ConnectError, Connections, Grant};

/// The most accounts that more is asked for.
const ACCOUNTS: usize = 10_000;
/// The most scopes of one that are asked for beside the usual ones.
const EACH: usize = 32;

/// Scopes by account. Held for a lookup, never across an await; gone with the process, and then asked for once more.
#[derive(Debug, Default)]
pub(super) struct Wants(Mutex<HashMap<Account, BTreeSet<Arc<str>>>>);

impl Wants {
    /// Notes that `lacking` is wanted; whether any of it was not before.
    fn note(&self, account: &Account, lacking: &[Arc<str>]) -> bool {
        let mut all = self.all();
        if !all.contains_key(account) && all.len() >= ACCOUNTS {
            return false;
        }
        let wanted = all.entry(account.clone()).or_default();
        let known = wanted.len();
        if known + lacking.len() > EACH {
            return false;
        }
        wanted.extend(lacking.iter().cloned());
        wanted.len() > known
    }

    /// `usual`, and what else is wanted of this account.
    pub(super) fn beside(&self, usual: &[String], account: &Account) -> Vec<String> {
        let mut scopes = usual.to_vec();
        let all = self.all();
        let more = all.get(account).into_iter().flatten();
        let more = more.filter(|more| !usual.iter().any(|one| **one == ***more));
        scopes.extend(more.map(ToString::to_string));
        scopes
    }

    pub(super) fn forget(&self, account: &Account) {
        self.all().remove(account);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Account, BTreeSet<Arc<str>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    /// The upstream says that what was granted lacks these scopes. Whether the person is to log in again, for these as well: then
    /// there is no grant any more.
    ///
    /// # Errors
    /// [`ConnectError::Store`].
    pub fn lacks(
        &self,
        account: &Account,
        used: &Arc<Grant>,
        lacking: &[Arc<str>],
    ) -> Result<bool, ConnectError> {
        let is_current = self
            .current(account)
            .is_some_and(|current| Arc::ptr_eq(&current, used));
        if self.account(&account.upstream)?.scopes.is_some()
            || !is_current
            || !self.shared.wants.note(account, lacking)
        {
            return Ok(false);
        }
        let instead = self.ended(account, used)?;
        if instead.is_some() {
            // What took its place is judged by what the upstream says of that.
            self.shared.wants.forget(account);
        }
        Ok(instead.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{call::Principal, protocol::UpstreamId};

    #[test]
    fn more_is_asked_for_once_and_within_bounds() {
        let wants = Wants::default();
        let of = |name: &str| Account {
            upstream: UpstreamId::parse("github").unwrap(),
            principal: Principal::new(name),
        };
        let scopes = |names: &[&str]| -> Vec<Arc<str>> {
            names.iter().map(|name| Arc::from(*name)).collect()
        };
        assert!(wants.note(&of("ana"), &scopes(&["write"])));
        assert!(
            !wants.note(&of("ana"), &scopes(&["write"])),
            "asked for already"
        );
        assert!(wants.note(&of("ana"), &scopes(&["write", "admin"])));
        let usual = ["read".to_owned(), "write".to_owned()];
        assert_eq!(wants.beside(&usual, &of("ana")), ["read", "write", "admin"]);
        assert_eq!(wants.beside(&usual, &of("bob")), usual);
        let many: Vec<Arc<str>> = (0..EACH).map(|n| format!("s{n}").into()).collect();
        assert!(!wants.note(&of("ana"), &many));
        assert!(wants.note(&of("bob"), &many));
        wants.forget(&of("ana"));
        assert_eq!(wants.beside(&usual, &of("ana")), usual);
    }
}
