//! What upstreams ask for beyond what somebody granted: the next login asks for that as well (PROTOCOL F6, step-up).
//!
//! Guarantees: the same is asked for once, so that an upstream which is never content has nobody log in again and again; what was
//! granted stays until something takes its place, and is asked for again beside the rest; where the configuration says what is
//! asked for, that is all that is. Bounds: [`ACCOUNTS`] accounts, [`EACH`] scopes of each. Deliberately absent: whether to
//! agree, which the person decides who is shown all of it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Account, Connections, Grant};

/// The most accounts that more is asked for.
const ACCOUNTS: usize = 10_000;
/// The most scopes of one that are asked for beside the usual ones.
const EACH: usize = 32;

/// Scopes by account. Held for a lookup, never across an await; gone with the process, and then asked for once more.
#[derive(Debug, Default)]
pub(super) struct Wants(Mutex<HashMap<Account, Wanted>>);

/// What is wanted of one account.
#[derive(Debug, Default)]
struct Wanted {
    scopes: BTreeSet<Arc<str>>,
    /// Whether nobody has logged in since the last of it was wanted.
    open: bool,
}

impl Wants {
    /// Notes that `lacking` is wanted; whether any of it was not before.
    fn note(&self, account: &Account, lacking: &[Arc<str>]) -> bool {
        let mut all = self.all();
        if !all.contains_key(account) && all.len() >= ACCOUNTS {
            return false;
        }
        let wanted = all.entry(account.clone()).or_default();
        let known = wanted.scopes.len();
        if known + lacking.len() > EACH {
            return false;
        }
        wanted.scopes.extend(lacking.iter().cloned());
        let more = wanted.scopes.len() > known;
        wanted.open |= more;
        more
    }

    /// Whether somebody has to log in for what is wanted of this account.
    pub(super) fn are_open(&self, account: &Account) -> bool {
        self.all().get(account).is_some_and(|wanted| wanted.open)
    }

    /// Somebody has logged in, and was asked for all of it.
    pub(super) fn met(&self, account: &Account) {
        if let Some(wanted) = self.all().get_mut(account) {
            wanted.open = false;
        }
    }

    /// `usual`, what was granted in `granted` where that is to be more, and what else is wanted of this account.
    fn beside(&self, usual: &[String], granted: &str, account: &Account) -> Vec<String> {
        let mut scopes = usual.to_vec();
        let all = self.all();
        let Some(wanted) = all.get(account) else {
            return scopes;
        };
        let granted = granted
            .split(' ')
            .filter(|scope| wanted.open && !scope.is_empty());
        for more in granted.chain(wanted.scopes.iter().map(|more| &**more)) {
            if !scopes.iter().any(|one| one == more) {
                scopes.push(more.to_owned());
            }
        }
        scopes
    }

    pub(super) fn forget(&self, account: &Account) {
        self.all().remove(account);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Account, Wanted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    /// The upstream says that what was granted lacks these scopes: the next login asks for them as well, for which see
    /// [`Connections::wants_more`]. What was granted is as good as before for all else.
    pub fn lacks(&self, account: &Account, used: &Arc<Grant>, lacking: &[Arc<str>]) {
        let is_current = self
            .current(account)
            .is_some_and(|current| Arc::ptr_eq(&current, used));
        let chosen = self.account(&account.upstream);
        if is_current && chosen.is_ok_and(|account| account.scopes.is_none()) {
            self.shared.wants.note(account, lacking);
        }
    }

    /// Whether somebody has to log in again for what an upstream has found lacking.
    pub fn wants_more(&self, account: &Account) -> bool {
        self.shared.wants.are_open(account)
    }

    /// What somebody is asked for who usually is for `usual`.
    pub(super) fn asked_for(&self, usual: &[String], account: &Account) -> Vec<String> {
        let current = self.current(account);
        let granted = current.as_ref().and_then(|grant| grant.scope.as_deref());
        let granted = granted.unwrap_or_default();
        self.shared.wants.beside(usual, granted, account)
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
        let beside = |granted, name| wants.beside(&usual, granted, &of(name));
        assert_eq!(beside("", "ana"), ["read", "write", "admin"]);
        assert_eq!(beside("notes", "bob"), usual);
        // What was granted goes along while there is more to be.
        assert!(wants.are_open(&of("ana")) && !wants.are_open(&of("bob")));
        assert_eq!(
            beside("notes  read", "ana"),
            ["read", "write", "notes", "admin"]
        );
        wants.met(&of("ana"));
        assert!(!wants.are_open(&of("ana")));
        assert_eq!(beside("notes", "ana"), ["read", "write", "admin"]);
        assert!(!wants.note(&of("ana"), &scopes(&["write"])));
        assert!(!wants.are_open(&of("ana")), "asked for already");
        let many: Vec<Arc<str>> = (0..EACH).map(|n| format!("s{n}").into()).collect();
        assert!(!wants.note(&of("ana"), &many));
        assert!(wants.note(&of("bob"), &many));
        wants.forget(&of("ana"));
        assert_eq!(beside("notes", "ana"), usual);
    }
}
