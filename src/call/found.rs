//! What was found in the content of one call, for its record: however much is found in other calls, none of it is pushed out.
//!
//! What is alike in one place is told once, with how often it was there. Bounded: every kind of finding has a place among
//! [`MOST`], as long as there is one, and what is beyond is counted.

use std::sync::Arc;

use crate::findings::{Action, Finding};

/// The most entries; a record names as many.
pub const MOST: usize = 32;
/// So many of them are for kinds of findings that are not there yet.
const SPARE: usize = 8;

/// What was found in one call.
#[derive(Debug, Clone, Default)]
pub struct Found {
    list: Vec<Alike>,
    more: u64,
}

/// Findings of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike {
    /// The class of content, or another kind of event.
    pub kind: &'static str,
    /// The rule that matched.
    pub rule: Arc<str>,
    /// What was done.
    pub action: Action,
    /// Where the first was, as [`Finding::place`]; `""` also where that is not known.
    pub place: Box<str>,
    /// The bytes that matched there.
    pub length: usize,
    /// How many there were in that place; where there was no room for another, also how many came later in others.
    pub count: u64,
}

impl Found {
    /// Takes in a finding as it was noted.
    pub fn add(&mut self, finding: &Finding) {
        self.put(Alike {
            kind: finding.kind,
            rule: finding.rule.clone(),
            action: finding.action,
            place: finding.place.clone(),
            length: finding.length,
            count: 1,
        });
    }

    /// Takes in so many that were counted and not noted one by one.
    pub fn count(&mut self, kind: &'static str, rule: &str, action: Action, times: u64) {
        let rule = match self.list.iter().find(|one| *one.rule == *rule) {
            Some(known) => known.rule.clone(),
            None => rule.into(),
        };
        let more = Alike {
            kind,
            rule,
            action,
            place: "".into(),
            length: 0,
            count: times,
        };
        match self.list.iter_mut().rfind(|one| one.is_like(&more)) {
            Some(last) => last.count += times,
            None => self.put(more),
        }
    }

    /// In the order in which they came.
    pub fn list(&self) -> &[Alike] {
        &self.list
    }

    /// How many there were beside them, of kinds for which there was no room.
    pub const fn more(&self) -> u64 {
        self.more
    }

    fn put(&mut self, new: Alike) {
        let mut last = None;
        for (at, one) in self.list.iter_mut().enumerate() {
            if one.is_like(&new) {
                if one.place == new.place {
                    one.count += new.count;
                    return;
                }
                last = Some(at);
            }
        }
        let room = match last {
            Some(_) => MOST - SPARE,
            None => MOST,
        };
        if self.list.len() < room {
            self.list.push(new);
        } else if let Some(at) = last {
            self.list[at].count += new.count;
        } else {
            self.more += new.count;
        }
    }
}

impl Alike {
    fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind && self.action == other.action && self.rule == other.rule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(rule: &str, place: &str) -> Alike {
        Alike {
            kind: "secret",
            rule: rule.into(),
            action: Action::Redact,
            place: place.into(),
            length: 20,
            count: 1,
        }
    }

    fn told(found: &Found) -> Vec<(&str, &str, u64)> {
        let told = found.list().iter();
        told.map(|one| (&*one.rule, &*one.place, one.count))
            .collect()
    }

    #[test]
    fn what_is_alike_in_one_place_is_told_once_with_how_often_it_was_there() {
        let mut found = Found::default();
        for place in ["/a", "/b", "/a"] {
            found.put(alike("key", place));
        }
        found.put(alike("token", "/a"));
        found.count("secret", "key", Action::Redact, 5);
        found.count("secret", "unseen", Action::Redact, 7);
        let all = [
            ("key", "/a", 2),
            ("key", "/b", 6),
            ("token", "/a", 1),
            ("unseen", "", 7),
        ];
        assert_eq!((told(&found), found.more()), (all.to_vec(), 0));
    }

    #[test]
    fn very_many_of_a_kind_leave_room_for_others_and_nothing_is_not_counted() {
        let mut found = Found::default();
        for n in 0..1_000 {
            found.put(alike("key", &format!("/{n}")));
        }
        let places = MOST - SPARE;
        let last = format!("/{}", places - 1);
        let count = 1_001 - places as u64;
        assert_eq!(found.list().len(), places);
        assert_eq!(told(&found)[places - 1], ("key", &*last, count));
        for n in 0..10 {
            found.put(alike(&format!("rule {n}"), "/"));
        }
        assert_eq!((found.list().len(), found.more()), (MOST, 2));
        let all: u64 = found.list().iter().map(|one| one.count).sum();
        assert_eq!(all + found.more(), 1_010);
    }
}
