//! What is held of what one upstream offers, to everybody and to each principal alone: every definition once (SECURITY 6, REL-3).
//!
//! Guarantees: the definitions that are kept of one upstream have no more bytes than `bounds.catalog.total`, in however many lists
//! of however many principals they stand; whoever is offered the same shares it, so that it costs nothing more. What takes the
//! place of something may be as long as that beside it while it is read, and is cut where it does not fit when it is kept.
//! Deliberately absent: what other bounds a list has, which is read elsewhere.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use crate::{
    catalog::Contribution,
    json::Json,
    metrics::{Bound, reached},
    protocol::methods::ListKind,
};

/// The definitions that are held of one upstream.
#[derive(Debug)]
pub(super) struct Holdings {
    /// How many bytes they may have.
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    definitions: HashMap<Json, Known>,
}

/// A definition that is held.
#[derive(Debug)]
struct Known {
    holders: usize,
    /// Whether it is no slice of a page, which would be kept alive by whoever holds this alone of it.
    apart: bool,
}

impl Held {
    /// One more holds it: what is held already, or itself.
    fn take(&mut self, definition: Json, apart: bool) -> Json {
        let mut known = match self.definitions.entry(definition) {
            Entry::Vacant(new) => {
                let definition = new.key().clone();
                self.bytes += definition.len();
                new.insert(Known { holders: 1, apart });
                return definition;
            }
            Entry::Occupied(known) => known,
        };
        known.get_mut().holders += 1;
        if known.get().apart {
            return known.key().clone();
        }
        let (slice, known) = known.remove_entry();
        // It is one value of a valid text.
        let copy = Json::composed(Bytes::copy_from_slice(slice.bytes()));
        let known = Known {
            apart: true,
            ..known
        };
        self.definitions.insert(copy.clone(), known);
        copy
    }

    /// What is in a list is held once more.
    fn add(&mut self, definition: &Json) {
        if let Some(known) = self.definitions.get_mut(definition) {
            known.holders += 1;
        } else {
            self.take(definition.clone(), true);
        }
    }

    fn holders(&self, definition: &Json) -> usize {
        let known = self.definitions.get(definition);
        known.map_or(0, |known| known.holders)
    }

    fn remove(&mut self, definition: &Json) {
        if let Some(known) = self.definitions.get_mut(definition) {
            known.holders -= 1;
            if known.holders == 0 {
                self.definitions.remove(definition);
                self.bytes -= definition.len();
            }
        }
    }

    fn remove_all<'a>(&mut self, definitions: impl IntoIterator<Item = &'a Json>) {
        definitions.into_iter().for_each(|it| self.remove(it));
    }
}

impl Holdings {
    /// Nothing yet, of at most this many bytes.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            held: Mutex::default(),
        })
    }

    /// Somebody for whom lists are read, and kept.
    pub(super) fn holder(self: &Arc<Self>) -> Holder {
        Holder {
            holdings: Arc::clone(self),
            lists: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody for whom lists of one upstream are kept; with it goes what it holds.
#[derive(Debug)]
pub struct Holder {
    holdings: Arc<Holdings>,
    // Taken before that of the holdings.
    lists: Mutex<[Lists; ListKind::COUNT]>,
}

#[derive(Debug, Default)]
struct Lists {
    kept: Arc<[Json]>,
    /// What was read and is not known to be kept.
    read: Vec<Json>,
}

impl Holder {
    /// A list of this kind begins to be read.
    pub(super) fn reading(&self, kind: ListKind) -> Reading<'_> {
        let kept = self.lists()[kind as usize].kept.clone();
        Reading {
            holder: self,
            kind,
            spare: kept.iter().map(Json::len).sum(),
            taken: Vec::new(),
        }
    }

    /// From now on this is kept, or nothing, in the place of what was; of lists that are new as much as there is room for, and
    /// what others hold too, which takes none.
    pub(super) fn keep(&self, offered: Option<&mut Contribution>) {
        let mut lists = self.lists();
        let mut held = self.holdings.held();
        let mut new = [false; ListKind::COUNT];
        for kind in ListKind::EVERY {
            let list = &mut lists[kind as usize];
            let next = offered.as_ref().map(|it| it.listing(kind).items.clone());
            let next = next.unwrap_or_default();
            if !Arc::ptr_eq(&next, &list.kept) {
                new[kind as usize] = true;
                next.iter().for_each(|definition| held.add(definition));
                held.remove_all(&*list.kept);
                list.kept = next;
            }
            held.remove_all(&std::mem::take(&mut list.read));
        }
        let Some(offered) = offered else { return };
        if held.bytes <= self.holdings.most {
            return;
        }
        // How often each stands in what is new: where that is as often as it is held, nobody else holds it.
        let mut own: HashMap<Json, usize> = HashMap::new();
        for (list, _) in lists.iter().zip(new).filter(|(_, new)| *new) {
            for definition in &*list.kept {
                *own.entry(definition.clone()).or_default() += 1;
            }
        }
        for kind in ListKind::EVERY.into_iter().rev() {
            let list = &mut lists[kind as usize];
            if !new[kind as usize] {
                continue;
            }
            let mut items = Vec::with_capacity(list.kept.len());
            for definition in list.kept.iter().rev() {
                let stands = own.get_mut(definition);
                let alone = stands.filter(|stands| held.holders(definition) == **stands);
                match alone.filter(|_| held.bytes > self.holdings.most) {
                    Some(stands) => {
                        *stands -= 1;
                        held.remove(definition);
                    }
                    None => items.push(definition.clone()),
                }
            }
            if items.len() == list.kept.len() {
                continue;
            }
            items.reverse();
            reached(Bound::CatalogTotal);
            list.kept = items.into();
            let listing = offered.listing_mut(kind);
            listing.items = list.kept.clone();
            listing.truncated = true;
        }
    }

    fn lists(&self) -> MutexGuard<'_, [Lists; ListKind::COUNT]> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.keep(None);
    }
}

/// A list that is being read. What was taken for it is held until it is dropped, or until it is said what is kept.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    holder: &'a Holder,
    kind: ListKind,
    /// The bytes of the list that it may take the place of.
    spare: usize,
    taken: Vec<Json>,
}

impl Reading<'_> {
    /// The definition as it is held; `None` where there is no room for it. `apart` is whether it is no slice of a page.
    pub(super) fn take(&mut self, definition: Json, apart: bool) -> Option<Json> {
        let holdings = &self.holder.holdings;
        let mut held = holdings.held();
        let is_held = held.definitions.contains_key(&definition);
        let most = holdings.most.saturating_add(self.spare);
        if !is_held && held.bytes.saturating_add(definition.len()) > most {
            return None;
        }
        let definition = held.take(definition, apart);
        drop(held);
        self.taken.push(definition.clone());
        Some(definition)
    }

    /// It was read to its end.
    pub(super) fn end(mut self) {
        let taken = std::mem::take(&mut self.taken);
        let mut lists = self.holder.lists();
        let before = std::mem::replace(&mut lists[self.kind as usize].read, taken);
        self.holder.holdings.held().remove_all(&before);
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if !self.taken.is_empty() {
            self.holder.holdings.held().remove_all(&self.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalog::Listing, metrics::seen};

    /// Definitions of three bytes each.
    fn tools(numbers: std::ops::Range<u32>) -> Vec<Json> {
        numbers.map(|number| Json::of(&number)).collect()
    }

    /// Reads this list of tools, and keeps it; how much of it was kept, and whether it is known to be cut.
    fn read(holder: &Holder, numbers: std::ops::Range<u32>) -> (Contribution, usize) {
        let mut reading = holder.reading(ListKind::Tools);
        let mut items = Vec::new();
        for definition in tools(numbers) {
            items.extend(reading.take(definition, false));
        }
        reading.end();
        let mut offered = Contribution {
            tools: Listing {
                items: items.into(),
                ..Listing::default()
            },
            ..Contribution::default()
        };
        holder.keep(Some(&mut offered));
        let count = offered.tools.items.len();
        (offered, count)
    }

    /// SECURITY 6, REL-3
    #[test]
    fn lists_of_several_may_have_the_bound_together_and_no_byte_more() {
        for (most, second) in [(17, 2), (18, 3), (19, 3)] {
            let holdings = Holdings::new(most);
            let (ana, ben) = (holdings.holder(), holdings.holder());
            assert_eq!(read(&ana, 100..103).1, 3);
            assert_eq!(read(&ben, 200..203).1, second, "{most}");
            assert!(holdings.held().bytes <= most);
        }
    }

    #[test]
    fn what_several_are_offered_is_held_once() {
        let holdings = Holdings::new(9);
        let holders: Vec<_> = (0..100).map(|_| holdings.holder()).collect();
        let at = |holder: &Holder| {
            let (own, count) = read(holder, 100..103);
            assert_eq!(count, 3);
            own.tools.items[0].bytes().as_ptr()
        };
        // The first has a slice of a page, which nobody else keeps alive.
        let (first, second) = (at(&holders[0]), at(&holders[1]));
        assert_ne!(first, second);
        assert!(holders.iter().all(|holder| at(holder) == second));
        assert_eq!(holdings.held().bytes, 9);
        drop(holders);
        assert_eq!(holdings.held().bytes, 0);
        assert!(holdings.held().definitions.is_empty());
    }

    #[test]
    fn what_is_held_no_more_makes_room() {
        let holdings = Holdings::new(9);
        let (ana, ben) = (holdings.holder(), holdings.holder());
        assert_eq!(read(&ana, 100..103).1, 3);
        assert_eq!(read(&ben, 200..203).1, 0);
        ana.keep(None);
        assert_eq!(read(&ben, 200..203).1, 3);
        drop(ben);
        assert_eq!(read(&ana, 100..103).1, 3);
    }

    #[test]
    fn a_list_takes_the_place_of_one_that_is_as_long_as_may_be() {
        let holdings = Holdings::new(9);
        let ana = holdings.holder();
        assert_eq!(read(&ana, 100..103).1, 3);
        assert_eq!(read(&ana, 200..203).1, 3);
        assert_eq!(holdings.held().bytes, 9);
    }

    #[test]
    fn what_is_in_the_place_of_what_others_still_hold_is_cut_and_told_of() {
        let holdings = Holdings::new(12);
        let (ana, ben) = (holdings.holder(), holdings.holder());
        for holder in [&ana, &ben] {
            assert_eq!(read(holder, 100..103).1, 3);
        }
        seen::take();
        let (offered, count) = read(&ana, 200..203);
        assert_eq!((count, offered.tools.truncated), (1, true));
        assert_eq!(seen::take(), [Bound::CatalogTotal]);
        assert_eq!(holdings.held().bytes, 12);
    }

    #[test]
    fn what_others_hold_too_is_not_cut_though_much_is_being_read() {
        let holdings = Holdings::new(9);
        let (ana, ben) = (holdings.holder(), holdings.holder());
        for holder in [&ana, &ben] {
            assert_eq!(read(holder, 100..103).1, 3);
        }
        let mut reading = ana.reading(ListKind::Tools);
        for definition in tools(200..203) {
            assert!(reading.take(definition, true).is_some());
        }
        seen::take();
        let (offered, count) = read(&ben, 100..103);
        assert_eq!((count, offered.tools.truncated), (3, false));
        assert!(seen::take().is_empty());
        assert_eq!(holdings.held().bytes, 18);
        drop(reading);
        assert_eq!(holdings.held().bytes, 9);
    }

    /// However a server says the same twice.
    #[test]
    fn what_stands_twice_in_one_list_is_cut_as_well() {
        let holdings = Holdings::new(9);
        let (ana, ben) = (holdings.holder(), holdings.holder());
        for holder in [&ana, &ben] {
            assert_eq!(read(holder, 100..103).1, 3);
        }
        let mut reading = ana.reading(ListKind::Tools);
        let twice = tools(200..202).into_iter().chain(tools(200..202));
        let items: Vec<_> = twice.filter_map(|it| reading.take(it, true)).collect();
        assert_eq!(items.len(), 4);
        reading.end();
        let mut offered = Contribution {
            tools: Listing {
                items: items.into(),
                ..Listing::default()
            },
            ..Contribution::default()
        };
        ana.keep(Some(&mut offered));
        assert!(offered.tools.items.is_empty() && offered.tools.truncated);
        assert_eq!(holdings.held().bytes, 9);
    }

    #[test]
    fn a_reading_that_comes_to_nothing_holds_nothing() {
        let holdings = Holdings::new(9);
        let ana = holdings.holder();
        for ends in [false, true] {
            let mut reading = ana.reading(ListKind::Tools);
            for definition in tools(100..103) {
                assert!(reading.take(definition, true).is_some());
            }
            assert!(reading.take(Json::of(&103), true).is_none());
            if ends {
                reading.end();
            } else {
                drop(reading);
            }
        }
        assert_eq!(holdings.held().bytes, 9, "until it is said what is kept");
        ana.keep(None);
        assert_eq!(holdings.held().bytes, 0);
    }
}
