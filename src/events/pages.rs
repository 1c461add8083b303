//! Pages that people were sent to, and who is to hear that one is done with (PROTOCOL D1).
//!
//! Guarantees: nobody hears of a page but who sent somebody there, and of each once. Bounds: [`MOST`] pages; of those beyond it is
//! told only what comes in the middle of their own call. Deliberately absent: what a client is told.

use std::{
    collections::HashMap,
    fmt::Debug,
    ptr,
    sync::{Arc, Mutex, Weak},
};

use super::held;

/// The most pages whose end may still be told.
const MOST: usize = 10_000;
/// The longest id of a page that is looked at, in bytes.
const ID_BYTES: usize = 1 << 10;

/// Whoever sent somebody to a page.
pub trait Sender: Debug + Send + Sync {
    /// The page with this id is done with. False when it is none of theirs.
    fn done(&self, page: &str) -> bool;
}

/// Those whose end may still be told, by id: the server's own, with its key before it.
#[derive(Debug, Default)]
pub struct Pages {
    // A std mutex: held to come, to go and to tell, and never while somebody is told.
    sent: Mutex<HashMap<Box<str>, Weak<dyn Sender>>>,
}

impl Pages {
    /// Somebody was sent to a page by this.
    pub fn sent<T: Sender + 'static>(&self, page: &str, by: &Arc<T>) {
        if page.len() > ID_BYTES {
            return;
        }
        let mut sent = held(&self.sent);
        if sent.len() >= MOST {
            sent.retain(|_, by| by.strong_count() > 0);
        }
        if sent.len() < MOST {
            let by: Weak<T> = Arc::downgrade(by);
            sent.insert(page.into(), by);
        }
    }

    /// Who sent somebody to a page is not to hear of it any more. If somebody else did so since, they are.
    pub fn forget(&self, page: &str, by: &impl Sender) {
        let mut sent = held(&self.sent);
        let is_theirs = sent
            .get(page)
            .is_some_and(|it| ptr::addr_eq(it.as_ptr(), ptr::from_ref(by)));
        if is_theirs {
            sent.remove(page);
        }
    }

    /// The server says that a page is done with. False when nobody hears that.
    pub fn done(&self, page: &str) -> bool {
        let by = held(&self.sent).remove(page);
        by.and_then(|by| by.upgrade())
            .is_some_and(|by| by.done(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Sender for Heard {
        fn done(&self, page: &str) -> bool {
            held(&self.0).push(page.to_owned());
            true
        }
    }

    #[test]
    fn the_end_of_a_page_is_told_once_to_who_sent_somebody_there() {
        let (pages, one, two) = (
            Pages::default(),
            Arc::<Heard>::default(),
            Arc::<Heard>::default(),
        );
        for (page, by) in [("u/1", &one), ("u/2", &two), ("u/3", &one), ("u/4", &two)] {
            pages.sent(page, by);
        }
        pages.forget("u/1", &*two);
        pages.forget("u/3", &*one);
        drop(two);
        let told = ["u/0", "u/1", "u/1", "u/2", "u/3"].map(|page| pages.done(page));
        assert_eq!(told, [false, true, false, false, false]);
        assert_eq!(*held(&one.0), ["u/1"]);
        // Those whose sender is gone make room.
        for page in 0..MOST + 1 {
            pages.sent(&page.to_string(), &one);
        }
        assert_eq!(held(&pages.sent).len(), MOST);
        assert!(!held(&pages.sent).contains_key("u/4"));
        assert!(!pages.done(&MOST.to_string()));
    }
}
