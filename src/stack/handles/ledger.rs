//! The ledger: which tasks a client has made, so that `tasks/list` can tell them and no others (PROTOCOL D3).
//!
//! Guarantees: nobody sees what somebody else made; memory is bounded: 200 tasks for one holder and 2,000 holders, where the
//! oldest give way. Deliberately absent: anything about a task but its handle, and durability: after a restart the list is
//! empty, and the handles go on working.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::call::{Call, Owner, Principal};

use super::token::Task;

/// The most tasks remembered for one holder.
const TASKS: usize = 200;
/// The most holders.
const HOLDERS: usize = 2_000;

/// Whose tasks. Whoever is not told apart by name is told apart by session: a list for all of them would tell one what
/// another does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    owner: Owner,
    session: Option<Arc<str>>,
}

impl Holder {
    /// The holder of what this call makes.
    pub(super) fn of(call: &Call) -> Self {
        let owner = call.owner();
        let anonymous = *owner.principal() == Principal::anonymous();
        Self {
            session: anonymous.then(|| call.caller.affinity.key.clone()),
            owner,
        }
    }

    /// The owner of each of its tasks.
    pub(super) const fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What tells it from others, for seals.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let session = self.session.as_deref().unwrap_or_default();
        std::iter::once(session.as_bytes()).chain(self.owner.parts())
    }

    /// An owner and a session, for tests.
    #[cfg(test)]
    pub(super) fn new(owner: Owner, session: Option<&str>) -> Self {
        let session = session.map(Arc::from);
        Self { owner, session }
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
    of: HashMap<Holder, VecDeque<Entry>>,
    /// Holders by the age of their first task.
    order: VecDeque<Holder>,
}

impl Ledger {
    /// Remembers a task.
    pub(super) fn add(&self, holder: Holder, handle: Arc<str>, task: Arc<Task>) {
        let mut books = self.books();
        books.next += 1;
        let entry = Entry {
            handle,
            task,
            number: books.next,
        };
        if let Some(entries) = books.of.get_mut(&holder) {
            if entries.len() >= TASKS {
                entries.pop_front();
            }
            entries.push_back(entry);
            return;
        }
        if books.of.len() >= HOLDERS
            && let Some(oldest) = books.order.pop_front()
        {
            books.of.remove(&oldest);
        }
        books.order.push_back(holder.clone());
        books.of.insert(holder, VecDeque::from([entry]));
    }

    /// Up to `limit` tasks after `number`, oldest first, and whether there are more.
    pub(super) fn after(&self, holder: &Holder, number: u64, limit: usize) -> (Vec<Entry>, bool) {
        let books = self.books();
        let mut left = books
            .of
            .get(holder)
            .into_iter()
            .flatten()
            .filter(|entry| entry.number > number);
        let page = left.by_ref().take(limit).cloned().collect();
        (page, left.next().is_some())
    }

    /// Forgets a task that its upstream no longer knows.
    pub(super) fn forget(&self, holder: &Holder, number: u64) {
        if let Some(entries) = self.books().of.get_mut(holder) {
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
    use crate::protocol::{UpstreamId, extensions::TaskDesign, names::Scope};

    fn holder(session: &str) -> Holder {
        let owner = Owner::named("anonymous", None, &Scope::All);
        Holder::new(owner, Some(session))
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
    fn each_holder_sees_its_own_in_order_and_in_pages() {
        let ledger = Ledger::default();
        for (session, handle) in [("a", "1"), ("b", "2"), ("a", "3"), ("a", "4")] {
            ledger.add(holder(session), handle.into(), task());
        }
        let (page, more) = ledger.after(&holder("a"), 0, 2);
        assert_eq!((handles(&page), more), (vec!["1", "3"], true));
        let (rest, more) = ledger.after(&holder("a"), page[1].number, 2);
        assert_eq!((handles(&rest), more), (vec!["4"], false));
        ledger.forget(&holder("b"), page[0].number);
        ledger.forget(&holder("a"), page[0].number);
        assert_eq!(handles(&ledger.after(&holder("a"), 0, 9).0), ["3", "4"]);
        assert_eq!(handles(&ledger.after(&holder("b"), 0, 9).0), ["2"]);
        assert!(ledger.after(&holder("c"), 0, 9).0.is_empty());
    }

    #[test]
    fn the_oldest_give_way_when_it_is_full() {
        let ledger = Ledger::default();
        for n in 0..=TASKS {
            ledger.add(holder("a"), n.to_string().into(), task());
        }
        let (page, _) = ledger.after(&holder("a"), 0, usize::MAX);
        assert_eq!((page.len(), &*page[0].handle), (TASKS, "1"));
        for n in 0..HOLDERS {
            ledger.add(holder(&n.to_string()), "h".into(), task());
        }
        assert!(ledger.after(&holder("a"), 0, 9).0.is_empty());
        let books = ledger.books();
        assert_eq!((books.of.len(), books.order.len()), (HOLDERS, HOLDERS));
    }
}
