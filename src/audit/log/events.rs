//! Events one after the other in one piece of memory.
//!
//! An event lives for as long as the disk takes, and there are two for every call: each in memory of its own would be made by one
//! thread and given back by another. Guarantees: what is emptied keeps its memory for what comes next, up to [`KEPT`].

use super::Event;
use crate::audit::index::Gist;

/// How much memory is kept for what comes next, in bytes: what a busy gateway records while the disk is told to keep it. Memory that
/// is given back and taken again costs more than the records.
const KEPT: usize = 8 << 20;

/// An event is longer than this as a rule, in bytes.
const LEAST: usize = 128;

/// Events in an order.
#[derive(Debug, Default)]
pub struct Events {
    text: Vec<u8>,
    /// Where each ends in `text`.
    ends: Vec<usize>,
    /// What was told along with each.
    gists: Vec<Option<Gist>>,
}

impl Events {
    /// Adds one, with what is known of it.
    pub fn push(&mut self, event: &[u8], gist: Option<Gist>) {
        self.text.extend_from_slice(event);
        self.ends.push(self.text.len());
        self.gists.push(gist);
    }

    /// Adds those of another, in their order.
    pub fn append(&mut self, others: &Self) {
        let before = self.text.len();
        self.text.extend_from_slice(&others.text);
        self.ends.extend(others.ends.iter().map(|end| before + end));
        self.gists.extend(&others.gists);
    }

    /// Each, from the first, with what is known of it.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&Gist>)> {
        let mut from = 0;
        self.ends.iter().zip(&self.gists).map(move |(end, gist)| {
            // INVARIANT: ends rise, and none lies beyond the text. An event that is not there must not become an empty record.
            let event = &self.text[from..*end];
            from = *end;
            (event, gist.as_ref())
        })
    }

    /// Takes the first ones out, so many of them or all there are.
    pub fn remove_first(&mut self, count: usize) {
        let count = count.min(self.ends.len());
        let Some(cut) = count.checked_sub(1).and_then(|last| self.ends.get(last)) else {
            return;
        };
        let cut = *cut;
        self.text.drain(..cut);
        self.ends.drain(..count);
        self.gists.drain(..count);
        for end in &mut self.ends {
            *end -= cut;
        }
        self.shrink();
    }

    /// Takes all of them out.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.gists.clear();
        self.shrink();
    }

    fn shrink(&mut self) {
        self.text.shrink_to(KEPT);
        self.ends.shrink_to(KEPT / LEAST);
        self.gists.shrink_to(KEPT / LEAST);
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many bytes they take.
    pub const fn bytes(&self) -> usize {
        self.text.len()
    }
}

impl FromIterator<Event> for Events {
    fn from_iter<T: IntoIterator<Item = Event>>(events: T) -> Self {
        let mut all = Self::default();
        for event in events {
            all.push(&event, None);
        }
        all
    }
}

impl<const N: usize> From<[Event; N]> for Events {
    fn from(events: [Event; N]) -> Self {
        events.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(events: &Events) -> Vec<&str> {
        events
            .iter()
            .map(|(it, _)| str::from_utf8(it).unwrap())
            .collect()
    }

    #[test]
    fn events_keep_their_order_and_their_ends_whatever_is_taken_out_before_them() {
        let mut events = Events::from(["a", "", "bcd"].map(|text| text.as_bytes().to_vec()));
        let mut others = Events::default();
        others.push(b"ef", None);
        others.append(&events);
        assert_eq!(texts(&others), ["ef", "a", "", "bcd"]);
        assert_eq!((others.len(), others.bytes()), (4, 6));
        others.remove_first(0);
        others.remove_first(2);
        assert_eq!(texts(&others), ["", "bcd"]);
        others.push(b"g", None);
        assert_eq!(texts(&others), ["", "bcd", "g"]);
        others.remove_first(9);
        assert!(others.is_empty() && others.bytes() == 0);
        events.clear();
        events.push(b"h", None);
        assert_eq!(texts(&events), ["h"]);
    }

    #[test]
    fn the_memory_of_a_flood_is_not_kept() {
        let mut events = Events::default();
        events.push(&vec![b'x'; 4 * KEPT], None);
        events.push(b"y", None);
        events.remove_first(1);
        assert_eq!(texts(&events), ["y"]);
        assert!(events.text.capacity() <= 2 * KEPT);
        for _ in 0..2 * KEPT / LEAST {
            events.push(b"z", None);
        }
        events.clear();
        assert!(events.ends.capacity() <= 2 * KEPT / LEAST);
    }
}
