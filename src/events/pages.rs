//! Pages that people were sent to, and who is to hear that one is done with (PROTOCOL D1).
//!
//! Guarantees: nobody hears of a page but who sent somebody there, and of each once; where several number theirs alike, as each
//! process of a pipe may, that one is done with is told to nobody but in the middle of their own call. Bounds: [`MOST`] senders,
//! each counted for each of its pages; of those beyond it is told only what comes in the middle of their own call. Deliberately
//! absent: what a client is told.

use std::{
    collections::HashMap,
    fmt::Debug,
    ptr,
    sync::{Arc, Mutex, Weak},
};

use super::held;

/// The most pages whose end may still be told, each counted for each of its senders.
const MOST: usize = 10_000;

/// Whoever sent somebody to a page.
pub trait Sender: Debug + Send + Sync {
    /// The page with this id is done with. False when it is none of theirs.
    fn done(&self, page: &str) -> bool;
}

/// Those whose end may still be told, by id: the server's own, with its key before it.
#[derive(Debug, Default)]
pub struct Pages {
    // A std mutex: held to come, to go and to tell, and never while somebody is told.
    sent: Mutex<Sent>,
}

#[derive(Debug, Default)]
struct Sent {
    by: HashMap<Box<str>, Senders>,
    /// How many there are of all pages together.
    count: usize,
}

/// Those who sent somebody to a page of one id.
#[derive(Debug, Default)]
struct Senders {
    left: Vec<Weak<dyn Sender>>,
    /// There was more than one: whose page it is that is done with cannot be known, until all of them are gone.
    several: bool,
}

impl Senders {
    fn weed(&mut self) {
        self.left.retain(|by| by.strong_count() > 0);
        self.several &= !self.left.is_empty();
    }
}

impl Sent {
    fn weed(&mut self) {
        self.by.retain(|_, senders| {
            senders.weed();
            !senders.left.is_empty()
        });
        self.count = self.by.values().map(|senders| senders.left.len()).sum();
    }
}

impl Pages {
    /// The longest id of a page that is looked at, in bytes.
    pub const ID_BYTES: usize = 1 << 10;

    /// Somebody was sent to a page by this.
    pub fn sent<T: Sender + 'static>(&self, page: &str, by: &Arc<T>) {
        if page.len() > Self::ID_BYTES {
            return;
        }
        let by: Weak<T> = Arc::downgrade(by);
        let by: Weak<dyn Sender> = by;
        let mut guard = held(&self.sent);
        let sent = &mut *guard;
        if sent.count >= MOST {
            sent.weed();
        }
        let room = sent.count < MOST;
        if !room && !sent.by.contains_key(page) {
            return;
        }
        let senders = sent.by.entry(page.into()).or_default();
        let before = senders.left.len();
        senders.weed();
        if !senders.left.iter().any(|other| other.ptr_eq(&by)) {
            senders.several |= !senders.left.is_empty();
            if room {
                senders.left.push(by);
            }
        }
        sent.count = sent.count + senders.left.len() - before;
    }

    /// Who sent somebody to a page is not to hear of it any more. Whoever else did so is left.
    pub fn forget(&self, page: &str, by: &impl Sender) {
        let mut guard = held(&self.sent);
        let sent = &mut *guard;
        let Some(senders) = sent.by.get_mut(page) else {
            return;
        };
        let before = senders.left.len();
        let by = ptr::from_ref(by);
        senders
            .left
            .retain(|other| !ptr::addr_eq(other.as_ptr(), by));
        let left = senders.left.len();
        sent.count -= before - left;
        if left == 0 {
            sent.by.remove(page);
        }
    }

    /// The server says that a page is done with. False when nobody hears that.
    pub fn done(&self, page: &str) -> bool {
        let by = {
            let mut guard = held(&self.sent);
            let sent = &mut *guard;
            if sent.by.get(page).is_some_and(|senders| senders.several) {
                return false;
            }
            let by = sent.by.remove(page);
            sent.count -= by.as_ref().map_or(0, |senders| senders.left.len());
            by
        };
        // Whoever is told, and perhaps dropped, is so without the lock.
        by.and_then(|mut senders| senders.left.pop()?.upgrade())
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
        assert_eq!(held(&pages.sent).count, MOST);
        assert!(!held(&pages.sent).by.contains_key("u/4"));
        assert!(!pages.done(&MOST.to_string()));
    }

    /// PROTOCOL D0.4
    #[test]
    fn a_page_that_several_number_alike_is_told_to_nobody_until_all_of_them_are_gone() {
        let pages = Pages::default();
        let (one, two, three) = (
            Arc::<Heard>::default(),
            Arc::<Heard>::default(),
            Arc::<Heard>::default(),
        );
        pages.sent("u/1", &one);
        pages.sent("u/1", &one);
        assert!(pages.done("u/1"), "it is the same one twice");
        pages.sent("u/1", &one);
        pages.sent("u/1", &two);
        assert!(!pages.done("u/1"));
        // Nor is it the page of whoever comes later, or is left.
        pages.sent("u/1", &three);
        assert!(!pages.done("u/1"));
        pages.forget("u/1", &*one);
        drop(two);
        assert!(!pages.done("u/1"));
        assert!(held(&three.0).is_empty());
        drop(three);
        pages.sent("u/1", &one);
        assert!(pages.done("u/1"));
        assert_eq!(*held(&one.0), ["u/1", "u/1"]);
        assert_eq!(held(&pages.sent).count, 0);
    }
}
