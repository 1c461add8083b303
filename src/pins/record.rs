//! The record of one upstream: what was approved of it, and what it offers that was not.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    Offered, Tells, Withheld,
    gone::Gone,
    known::Known,
    pin::{Key, Pin, State},
};
use crate::{
    json::{Json, Node},
    protocol::methods::ListKind,
};

/// What the instructions of a server are kept under.
pub(super) const INSTRUCTIONS: &str = "instructions";
/// The most definitions that are known of one upstream; what is offered beyond them is not taken in.
pub(super) const PINS: usize = 64_000;
/// How many of those are left to what servers do not make as they go.
const LEFT: usize = 4_000;
/// The most bytes of what definitions are called, and what is noted beside them: written down, six times that at most.
const NAMES: usize = 12 << 20;
/// Held for what it may be: the rule of an event.
pub(super) const HELD: &str = "held";
/// Beyond the bounds: the rule of an event.
pub(super) const BEYOND: &str = "beyond";
/// The most items that are gone and still remembered; those gone longest go first.
const GONE: usize = 1_000;
/// The most definition text that is kept of one upstream, in bytes; beyond it digests alone.
const TEXTS: usize = 32 << 20;

/// What is known of one upstream's definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The sorts of items that have been seen once: whatever comes later is new.
    pub(super) sorts: BTreeSet<&'static str>,
    pub(super) pins: BTreeMap<Key, Pin>,
}

impl Record {
    /// Whether somebody approved something in it since it was as `before`: a definition, or that one is gone. What it lacks of
    /// what was known, has of a sort that nobody had seen, or has forgotten since too many are gone, nobody approved.
    pub(super) fn approves_beyond(&self, before: &Self) -> bool {
        let has_more = |(key, pin): (&Key, &Pin)| {
            let Some(approved) = &pin.approved else {
                return false;
            };
            match before.pins.get(key) {
                Some(known) => !known.approves(&approved.digest),
                None => before.sorts.contains(key.0),
            }
        };
        let lets_go = |(key, pin): (&Key, &Pin)| pin.gone > 0 && !self.pins.contains_key(key);
        let gone = self.pins.values().filter(|pin| pin.gone > 0).count();
        self.pins.iter().any(has_more) || gone < GONE && before.pins.iter().any(lets_go)
    }
}

/// What an upstream offers now, digested.
#[derive(Debug)]
pub(super) struct Now {
    items: BTreeMap<Key, Known>,
    tells: Tells,
    /// What of them may be an attempt on the model, and why.
    doubts: HashMap<Key, Arc<str>>,
}

/// Something that was not so before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: &'static str,
    pub(super) name: Arc<str>,
    /// `changed`, `new`, `renamed`, [`HELD`], [`BEYOND`].
    pub(super) rule: &'static str,
}

impl Record {
    /// Every definition that is known, with its sort (`tools`, `prompts`, …, `instructions`) and name.
    pub fn pins(&self) -> impl Iterator<Item = (&'static str, &str, &Pin)> {
        self.pins
            .iter()
            .map(|((sort, name), pin)| (*sort, &**name, pin))
    }

    /// Approves what is offered under a name; of what is gone, that it is. Whether that changed anything.
    pub fn approve(&mut self, sort: &str, name: &str) -> bool {
        let found = self
            .pins
            .keys()
            .find(|(of, called)| *of == sort && **called == *name);
        let Some(key) = found.cloned() else {
            return false;
        };
        let Some(pin) = self.pins.get_mut(&key) else {
            return false;
        };
        match pin.state() {
            State::Approved => false,
            State::Gone => self.pins.remove(&key).is_some(),
            State::Changed | State::New => {
                pin.approved = pin.seen.take().or(pin.approved.take());
                (pin.like, pin.held) = (None, None);
                true
            }
        }
    }

    /// Takes in what is offered; whether the record is another one now, and what is to be told. Servers make resources as they
    /// go: where changes are only watched, a new one that is like none that is gone is nothing to tell of.
    pub(super) fn update(&mut self, now: &Now, watched: bool) -> (bool, Vec<Event>) {
        let before = self.clone();
        let mut events = Vec::new();
        let mut last = self.pins.values().map(|pin| pin.gone).max().unwrap_or(0);
        let all = now.tells == Tells::All;
        for (key, pin) in &mut self.pins {
            if now.items.contains_key(key) {
                pin.gone = 0;
            } else if pin.gone == 0 && all {
                last += 1;
                pin.gone = last;
                pin.seen = None;
            }
        }
        // What was never approved and is gone is nothing.
        self.pins
            .retain(|_, pin| pin.gone == 0 || pin.approved.is_some());
        self.forget_gone();
        let lengths = self.pins.iter().map(|(key, pin)| pin.length(&key.1));
        let mut room = NAMES.saturating_sub(lengths.sum());
        let mut beyond = None;
        let mut gone = None;
        for (key, known) in &now.items {
            if let Some(pin) = self.pins.get_mut(key) {
                let approved = pin.approved.as_ref().map(|known| &known.digest);
                if now.tells == Tells::Before && pin.seen.is_some() {
                    // What was read of it later stands.
                } else if approved == Some(&known.digest) {
                    pin.seen = None;
                } else if pin.seen.as_ref().map(|known| &known.digest) != Some(&known.digest) {
                    pin.seen = Some(known.clone());
                    pin.held = None;
                    events.push(event(key, "changed"));
                }
                continue;
            }
            if key.1.len() > room || !self.has_room_for(key.0) {
                beyond = beyond.or(Some(key));
                continue;
            }
            let (pin, rule) = self.first_seen(key, known, now, watched, &mut gone);
            room = room.saturating_sub(pin.length(&key.1));
            events.extend(rule.map(|rule| event(key, rule)));
            self.pins.insert(key.clone(), pin);
        }
        events.extend(beyond.map(|key| event(key, BEYOND)));
        self.sorts.insert(INSTRUCTIONS);
        self.sorts.extend(now.items.keys().map(|(sort, _)| *sort));
        if all {
            self.sorts.extend(ListKind::EVERY.map(ListKind::member));
        }
        self.forget_texts();
        (*self != before, events)
    }

    /// The pin of something that is in no record, and what is to be told of it. `gone` is filled when it is needed first.
    fn first_seen(
        &self,
        key: &Key,
        known: &Known,
        now: &Now,
        watched: bool,
        gone: &mut Option<Gone>,
    ) -> (Pin, Option<&'static str>) {
        let unapproved = Pin {
            seen: Some(known.clone()),
            ..Pin::default()
        };
        if self.sorts.contains(key.0) {
            let gone = gone.get_or_insert_with(|| Gone::of(&self.pins));
            let like = gone.like(key, known);
            if watched && like.is_none() && is_made_as_they_go(key.0) {
                return (Pin::approved(known), None);
            }
            let rule = if like.is_some() { "renamed" } else { "new" };
            (Pin { like, ..unapproved }, Some(rule))
        } else if let Some(why) = now.doubts.get(key) {
            let held = Some(why.clone());
            (Pin { held, ..unapproved }, Some(HELD))
        } else {
            (Pin::approved(known), None)
        }
    }

    fn has_room_for(&self, sort: &str) -> bool {
        let left = if is_made_as_they_go(sort) { LEFT } else { 0 };
        self.pins.len() < PINS - left
    }

    /// What of what is offered was not approved.
    pub(super) fn withheld(&self, now: &Now) -> Withheld {
        let mut withheld = Withheld::default();
        for (key, known) in &now.items {
            let pin = self.pins.get(key);
            let approved = pin.and_then(|pin| pin.approved.as_ref());
            if approved.is_some_and(|approved| approved.digest == known.digest) {
                continue;
            }
            match ListKind::EVERY
                .into_iter()
                .find(|kind| kind.member() == key.0)
            {
                Some(kind) => drop(withheld.items.insert((kind, key.1.clone()))),
                None => withheld.instructions = true,
            }
        }
        withheld
    }

    /// Of what is gone the last are remembered.
    fn forget_gone(&mut self) {
        let mut gone: Vec<_> = self
            .pins
            .values()
            .map(|pin| pin.gone)
            .filter(|gone| *gone > 0)
            .collect();
        if gone.len() > GONE {
            gone.sort_unstable();
            let first = gone[gone.len() - GONE];
            self.pins
                .retain(|_, pin| pin.gone == 0 || pin.gone >= first);
        }
    }

    /// Of texts that are too many the digests are kept alone.
    fn forget_texts(&mut self) {
        let mut room = TEXTS;
        for pin in self.pins.values_mut() {
            for known in pin.approved.iter_mut().chain(&mut pin.seen) {
                let length = known.text.as_ref().map_or(0, Json::len);
                match room.checked_sub(length) {
                    Some(left) => room = left,
                    None => known.text = None,
                }
            }
        }
    }
}

impl Now {
    /// What is offered. `digested` saves digesting what did not change.
    pub(super) fn of(offered: &Offered<'_>, digested: &mut HashMap<Json, Known>) -> Self {
        let mut now = Self {
            items: BTreeMap::new(),
            tells: offered.tells,
            doubts: HashMap::new(),
        };
        let mut kept = HashMap::with_capacity(digested.len());
        for kind in ListKind::EVERY {
            let list = offered.lists[kind as usize];
            for raw in list {
                let Some(name) = raw.root().member(kind.key()).and_then(Node::as_str) else {
                    continue;
                };
                let known = match digested
                    .remove_entry(raw)
                    .or_else(|| kept.remove_entry(raw))
                {
                    Some((_, known)) => known,
                    None => Known::of_item(kind, raw),
                };
                kept.insert(raw.clone(), known.clone());
                let key = (kind.member(), Arc::from(&*name));
                // Of two of one name the first is offered, or none.
                now.items.entry(key).or_insert(known);
            }
        }
        *digested = kept;
        if let Some(text) = offered.instructions {
            let known = Known::of(&Json::string(text));
            now.items.insert((INSTRUCTIONS, "".into()), known);
        }
        now
    }
}

impl Now {
    /// Looks for what may be an attempt on the model, in what no record knows yet.
    pub(super) fn doubt(&mut self, offered: &Offered<'_>, known: &Record) {
        let is_known = |key: &Key| known.sorts.contains(key.0) || known.pins.contains_key(key);
        for kind in ListKind::EVERY {
            for raw in offered.lists[kind as usize] {
                let Some(name) = raw.root().member(kind.key()).and_then(Node::as_str) else {
                    continue;
                };
                let key = (kind.member(), Arc::from(&*name));
                if !is_known(&key)
                    && !self.doubts.contains_key(&key)
                    && let Some(why) = (offered.doubt)(Some(kind), raw)
                {
                    self.doubts.insert(key, why.into());
                }
            }
        }
        let key = (INSTRUCTIONS, "".into());
        if let Some(text) = offered.instructions.filter(|_| !is_known(&key))
            && let Some(why) = (offered.doubt)(None, &Json::string(text))
        {
            self.doubts.insert(key, why.into());
        }
    }
}

/// Whether servers make items of this sort as they go.
fn is_made_as_they_go(sort: &str) -> bool {
    sort == ListKind::Resources.member() || sort == ListKind::Templates.member()
}

fn event((kind, name): &Key, rule: &'static str) -> Event {
    Event {
        kind,
        name: name.clone(),
        rule,
    }
}
