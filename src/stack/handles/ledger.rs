//! The ledger: which tasks a client has made, so that `tasks/list` can tell them and no others (PROTOCOL D3).
//!
//! Guarantees: nobody sees what somebody else made; memory is bounded: 200 tasks for one owner and 2,000 owners, where the
//! oldest give way. Deliberately absent: anything about a task but its handle, and durability: after a restart the list is
//! empty, and the handles go on working.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    call::{Caller, Principal},
    protocol::names::Scope,
};

use super::token::Task;

/// The most tasks remembered for one owner.
const TASKS: usize = 200;
/// The most owners.
const OWNERS: usize = 2_000;

/// Whose tasks. Whoever is not told apart by name is told apart by session: a list for all of them would tell one what
/// another does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    principal: Principal,
    session: Option<Arc<str>>,
    scope: Scope,
}

impl Owner {
    /// The owner of what this caller makes at this endpoint.
    pub(super) fn of(caller: &Caller, scope: &Scope) -> Self {
        let anonymous = caller.principal == Principal::anonymous();
        Self {
            principal: caller.principal.clone(),
            session: anonymous.then(|| caller.affinity.key.clone()),
            scope: scope.clone(),
        }
    }

    /// What tells it from others: the principal, the session, the endpoint.
    pub(super) fn parts(&self) -> [String; 3] {
        let session = self.session.as_deref().unwrap_or_default();
        [
            self.principal.as_str().to_owned(),
            session.to_owned(),
            self.scope.to_string(),
        ]
    }
}

/// One remembered task.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// As the client knows it.
    pub(super) handle: Arc<str>,
    /// What it stands for.
    pub(super) task: Arc<Task>,
    /// Counts up: where a page of the list begins.
    pub(super) number: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    // A std mutex, never held across an await; only making, ending and listing tasks take it.
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    next: u64,
    of: HashMap<Owner, VecDeque<Entry>>,
    /// Owners by the age of their first task.
    order: VecDeque<Owner>,
}

impl Ledger {
    /// Remembers a task.
    pub(super) fn add(&self, owner: Owner, handle: Arc<str>, task: Arc<Task>) {
        let mut books = self.books();
        books.next += 1;
        let entry = Entry {
            handle,
            task,
            number: books.next,
        };
        if let Some(entries) = books.of.get_mut(&owner) {
            if entries.len() >= TASKS {
                entries.pop_front();
            }
            entries.push_back(entry);
            return;
        }
        if books.of.len() >= OWNERS
            && let Some(oldest) = books.order.pop_front()
        {
            books.of.remove(&oldest);
        }
        books.order.push_back(owner.clone());
        books.of.insert(owner, VecDeque::from([entry]));
    }

    /// Up to `limit` tasks after `number`, oldest first, and whether there are more.
    pub(super) fn after(&self, owner: &Owner, number: u64, limit: usize) -> (Vec<Entry>, bool) {
        let books = self.books();
        let mut left = books
            .of
            .get(owner)
            .into_iter()
            .flatten()
            .filter(|entry| entry.number > number);
        let page = left.by_ref().take(limit).cloned().collect();
        (page, left.next().is_some())
    }

    /// Forgets a task that its upstream no longer knows.
    pub(super) fn forget(&self, owner: &Owner, number: u64) {
        if let Some(entries) = self.books().of.get_mut(owner) {
            entries.retain(|entry| entry.number != number);
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{UpstreamId, extensions::TaskDesign};

    fn owner(session: &str) -> Owner {
        Owner {
            principal: Principal::anonymous(),
            session: Some(session.into()),
            scope: Scope::All,
        }
    }

    fn task() -> Arc<Task> {
        Arc::new(Task {
            approval: None,
            upstream: UpstreamId::parse("u").unwrap(),
            local: "l".into(),
            design: TaskDesign::Core,
            tool: None,
        })
    }

    fn handles(page: &[Entry]) -> Vec<&str> {
        page.iter().map(|entry| &*entry.handle).collect()
    }

    #[test]
    fn each_owner_sees_its_own_in_order_and_in_pages() {
        let ledger = Ledger::default();
        for (session, handle) in [("a", "1"), ("b", "2"), ("a", "3"), ("a", "4")] {
            ledger.add(owner(session), handle.into(), task());
        }
        let (page, more) = ledger.after(&owner("a"), 0, 2);
        assert_eq!((handles(&page), more), (vec!["1", "3"], true));
        let (rest, more) = ledger.after(&owner("a"), page[1].number, 2);
        assert_eq!((handles(&rest), more), (vec!["4"], false));
        ledger.forget(&owner("b"), page[0].number);
        ledger.forget(&owner("a"), page[0].number);
        assert_eq!(handles(&ledger.after(&owner("a"), 0, 9).0), ["3", "4"]);
        assert_eq!(handles(&ledger.after(&owner("b"), 0, 9).0), ["2"]);
        assert!(ledger.after(&owner("c"), 0, 9).0.is_empty());
    }

    #[test]
    fn the_oldest_give_way_when_it_is_full() {
        let ledger = Ledger::default();
        for n in 0..=TASKS {
            ledger.add(owner("a"), n.to_string().into(), task());
        }
        let (page, _) = ledger.after(&owner("a"), 0, usize::MAX);
        assert_eq!((page.len(), &*page[0].handle), (TASKS, "1"));
        for n in 0..OWNERS {
            ledger.add(owner(&n.to_string()), "h".into(), task());
        }
        assert!(ledger.after(&owner("a"), 0, 9).0.is_empty());
        let books = ledger.books();
        assert_eq!((books.of.len(), books.order.len()), (OWNERS, OWNERS));
    }
}
