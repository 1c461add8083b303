//! What upstreams ask for beyond what somebody granted: the next login asks for that as well (PROTOCOL F6, step-up).
//!
//! Guarantees: the same is asked for once, so that an upstream which is never content has nobody log in again and again; what was
//! granted stays until something takes its place, and is asked for again beside the rest; where the configuration says what is
//! asked for, that is all that is. Bounds: [`ACCOUNTS`] accounts, [`EACH`] scopes of each. Deliberately absent: whether to
//! agree, which the person decides who is shown all of it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
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
    /// What is wanted, and whether it was asked for in a login that came to something.
    scopes: BTreeMap<Arc<str>, bool>,
    /// Of which login the grant was that was found lacking last: what has taken its place since may be enough.
    found: u64,
}

impl Wanted {
    /// Whether some of it was never asked for.
    fn is_open(&self) -> bool {
        self.scopes.values().any(|asked| !asked)
    }
}

impl Wants {
    /// Notes that `lacking` is wanted beyond what the login of `since` was granted; whether any of it was not before.
    fn note(&self, account: &Account, since: u64, lacking: &[Arc<str>]) -> bool {
        let mut all = self.all();
        if !all.contains_key(account) && all.len() >= ACCOUNTS {
            // What was asked for already may be asked for once more; what was not is waited for.
            all.retain(|_, wanted| wanted.is_open());
            if all.len() >= ACCOUNTS {
                return false;
            }
        }
        let wanted = all.entry(account.clone()).or_default();
        wanted.found = since;
        let unknown = lacking
            .iter()
            .filter(|scope| !wanted.scopes.contains_key(*scope));
        let unknown: BTreeSet<_> = unknown.cloned().collect();
        if unknown.is_empty() || wanted.scopes.len() + unknown.len() > EACH {
            return false;
        }
        let unknown = unknown.into_iter().map(|scope| (scope, false));
        wanted.scopes.extend(unknown);
        true
    }

    /// Whether somebody has to log in for what is wanted of this account beyond what the login of `since` was granted.
    fn are_open(&self, account: &Account, since: u64) -> bool {
        let is_open = |wanted: &Wanted| wanted.found == since && wanted.is_open();
        self.all().get(account).is_some_and(is_open)
    }

    /// Somebody logs in, and was asked for these. What was found lacking while they were is still to be asked for.
    pub(super) fn met(&self, account: &Account, asked: &[String]) {
        if let Some(wanted) = self.all().get_mut(account) {
            for scope in asked {
                if let Some(asked) = wanted.scopes.get_mut(scope.as_str()) {
                    *asked = true;
                }
            }
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
            .filter(|scope| wanted.is_open() && !scope.is_empty());
        for more in granted.chain(wanted.scopes.keys().map(|more| &**more)) {
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
            self.shared.wants.note(account, used.since, lacking);
        }
    }

    /// Whether somebody has to log in again for what an upstream has found lacking.
    pub fn wants_more(&self, account: &Account) -> bool {
        let current = self.current(account);
        current.is_some_and(|grant| self.shared.wants.are_open(account, grant.since))
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
    use tokio::time::Instant;

    use super::*;
    use crate::{
        call::Principal,
        connect::{
            Settled,
            accounts::{self, Grants},
            grant::tests::a_grant,
        },
        fetch::Fetcher,
        protocol::UpstreamId,
        tasks::Tasks,
    };

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
        assert!(wants.note(&of("ana"), 1, &scopes(&["write"])));
        assert!(
            !wants.note(&of("ana"), 1, &scopes(&["write"])),
            "asked for already"
        );
        assert!(wants.note(&of("ana"), 1, &scopes(&["write", "admin"])));
        let usual = ["read".to_owned(), "write".to_owned()];
        let beside = |granted, name| wants.beside(&usual, granted, &of(name));
        assert_eq!(beside("", "ana"), ["read", "write", "admin"]);
        assert_eq!(beside("notes", "bob"), usual);
        // What was granted goes along while there is more to be.
        assert!(wants.are_open(&of("ana"), 1) && !wants.are_open(&of("bob"), 1));
        assert_eq!(
            beside("notes  read", "ana"),
            ["read", "write", "notes", "admin"]
        );
        wants.met(&of("ana"), &["write".to_owned(), "admin".to_owned()]);
        assert!(!wants.are_open(&of("ana"), 1));
        assert_eq!(beside("notes", "ana"), ["read", "write", "admin"]);
        assert!(!wants.note(&of("ana"), 1, &scopes(&["write"])));
        assert!(!wants.are_open(&of("ana"), 1), "asked for already");
        let many: Vec<Arc<str>> = (0..EACH).map(|n| format!("s{n}").into()).collect();
        assert!(!wants.note(&of("ana"), 1, &many));
        assert!(wants.note(&of("bob"), 1, &many));
        let known = scopes(&["write", "admin"]);
        let with_known = [&known[..], &many[known.len()..]].concat();
        assert!(
            wants.note(&of("ana"), 1, &with_known),
            "as many as there may be"
        );
        assert!(!wants.note(&of("ana"), 1, &with_known));
        assert!(!wants.note(&of("ana"), 1, &many));
        wants.forget(&of("ana"));
        assert_eq!(beside("notes", "ana"), usual);
    }

    #[test]
    fn accounts_that_were_asked_make_room_for_others_and_those_that_were_not_do_not() {
        let wants = Wants::default();
        let of = |number: usize| Account {
            principal: Principal::new(number.to_string()),
            ..accounts::tests::ana()
        };
        let note = |number| wants.note(&of(number), 1, &["write".into()]);
        assert!((0..ACCOUNTS).all(note));
        assert!(!note(ACCOUNTS));
        wants.met(&of(0), &["write".to_owned()]);
        assert!(note(ACCOUNTS));
        assert!(wants.are_open(&of(1), 1) && !wants.are_open(&of(0), 1));
        assert!(!note(ACCOUNTS + 1));
    }

    /// What somebody was asked for is fixed when they leave for the page on which they agree.
    #[test]
    fn what_is_found_lacking_while_somebody_is_asked_for_other_things_is_asked_for_next() {
        let (wants, ana) = (Wants::default(), accounts::tests::ana());
        let asked = ["read".to_owned(), "write".to_owned()];
        assert!(wants.note(&ana, 1, &["write".into()]));
        assert!(wants.note(&ana, 1, &["admin".into()]));
        wants.met(&ana, &asked);
        // What that login was granted may be enough, until it is found not to be.
        assert!(!wants.are_open(&ana, 2));
        assert!(!wants.note(&ana, 2, &["admin".into()]), "known already");
        assert!(wants.are_open(&ana, 2));
        assert_eq!(
            wants.beside(&asked[..1], "read write", &ana),
            ["read", "write", "admin"]
        );
        wants.met(&ana, &["admin".to_owned()]);
        assert!(!wants.note(&ana, 3, &["admin".into()]));
        assert!(!wants.are_open(&ana, 3), "asked for already");
    }

    #[tokio::test(start_paused = true)]
    async fn a_login_of_another_process_is_as_good_as_one_here_and_a_renewal_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let spec = || accounts::tests::spec(directory.path(), "https://mcp.example/mcp");
        let (fetcher, tasks) = (Fetcher::new(None).unwrap(), Tasks::new());
        let connections = Connections::open(spec(), fetcher, &tasks).unwrap();
        let (grants, ana) = (&connections.shared.grants, accounts::tests::ana());
        let settled = || connections.settled(&ana, "over", Some(1_000), Instant::now());
        grants.put(&ana, a_grant("at-1"), || ()).unwrap();
        let first = connections.current(&ana).unwrap();
        connections.lacks(&ana, &first, &["write".into()]);
        assert!(connections.wants_more(&ana));
        grants.renew(&ana, &first, a_grant("at-2")).unwrap();
        assert!(connections.wants_more(&ana));
        assert_eq!(settled().await, Settled::Failed);
        let (other, _) = Grants::open(&spec()).unwrap();
        let later = Grant {
            since: 2_000,
            ..a_grant("at-3")
        };
        other.put(&ana, later, || ()).unwrap();
        grants.load(&spec()).unwrap();
        assert!(!connections.wants_more(&ana));
        assert_eq!(settled().await, Settled::Granted);
        tasks.stop();
    }
}
