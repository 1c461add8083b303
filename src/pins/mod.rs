//! Pins: what definitions were when they were taken for good, and whether they still are (PRODUCT 11, SECURITY CAT-2, CAT-3).
//!
//! Guarantees: a definition is known by the digest of its canonical text over every member that it has, so that no change of
//! it goes by, whoever told of it and whenever it was read; what a server offers at the first contact counts as approved, but
//! for what may be an attempt on the model where definitions are quarantined (CAT-4); what it changes or adds later does not
//! count before somebody says so; what was approved is never changed by what a server says; what is withheld of an offer goes
//! by the record and by what is in that offer, and not by what anybody else was offered; a record is bounded, and what it has
//! no room for counts as new; one that cannot be read is never written over, and withholds everything of its server where
//! changes are quarantined. Deliberately absent: taking things from the lists, which `catalog` does, and the clock that reads
//! and writes, which is `app`'s.

mod alike;
mod diff;
mod gone;
mod known;
mod pin;
mod record;
mod store;
#[cfg(test)]
mod tests;
mod told;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use crate::{
    findings::{Action, Direction, Finding, Findings},
    json::Json,
    metrics,
    protocol::{UpstreamId, methods::ListKind},
};

pub use diff::{Difference, PLACES, differences};
pub use pin::{Pin, State};
pub use record::Record;
pub use store::{Locked, Store, StoreError};

use known::Known;
use record::{BEYOND, Event, HELD, Now};
use told::{How, Told};

/// What becomes of definitions that change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// They are noted and shown.
    #[default]
    Watch,
    /// They are not offered before somebody approves.
    Quarantine,
    /// Nobody looks.
    Off,
}

/// How definitions are pinned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinsSpec {
    /// By upstream; others are watched.
    pub modes: BTreeMap<UpstreamId, Mode>,
    /// Where records are kept; `None`: in memory, until the process ends.
    pub directory: Option<PathBuf>,
}

impl PinsSpec {
    /// Whether changes wait for an approval that nobody can give, since it would be kept nowhere: then what servers offer when the
    /// process starts counts as approved, and what they change is withheld until it ends.
    pub fn forgets_approvals(&self) -> bool {
        self.directory.is_none() && self.modes.values().any(|mode| *mode == Mode::Quarantine)
    }
}

/// What of one upstream is not to be offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Everything.
    pub all: bool,
    /// These items, by its own names for them.
    pub items: HashSet<(ListKind, Arc<str>)>,
    /// What it says to models about itself.
    pub instructions: bool,
}

/// What an offer tells the record of its upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// What is offered now, all of it: what is not in it is gone.
    All,
    /// What is offered now; others may be offered something else.
    Some,
    /// What was offered before: what the record lacks of it is added, and nothing taken away.
    Before,
    /// Nothing: it is stale. It is only judged.
    Nothing,
}

/// What an upstream offers at one moment.
pub struct Offered<'a> {
    /// Its lists.
    pub lists: [&'a [Json]; ListKind::COUNT],
    /// What it says to models about itself.
    pub instructions: Option<&'a str>,
    /// What it tells the record.
    pub tells: Tells,
    /// What in a definition of a kind, or without one in what it says of itself, only may be an attempt on the model, in words for operators.
    pub doubt: &'a dyn Fn(Option<ListKind>, &Json) -> Option<String>,
}

/// The records of all upstreams. Shared; keeps up with the store when told to.
#[derive(Debug)]
pub struct Ledger {
    modes: BTreeMap<UpstreamId, Mode>,
    store: Option<Store>,
    findings: Findings,
    // Held while definitions are compared and files of this size are read, by refreshes and the store's look-out, never by
    // a call.
    books: Mutex<HashMap<UpstreamId, Book>>,
}

#[derive(Debug, Default)]
struct Book {
    record: Option<Result<Record, Unreadable>>,
    stamp: Option<store::Stamp>,
    /// Whether the store lacks something of it.
    unsaved: bool,
    /// Why the store did not take it the last time; `None` where it did.
    refused: Option<Refused>,
    /// Whether it was told that there is no room.
    full: bool,
    /// Raw definitions that were digested before.
    digested: HashMap<Json, Known>,
    /// What of it was logged lately.
    told: Told,
}

/// A record that could not be written.
#[derive(Debug)]
struct Refused {
    why: String,
    /// When it is tried again, and how long that was put off.
    again: Instant,
    pause: Duration,
}

/// How long it is put off at first to write a record again that could not be written, and twice as long each time up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A record that cannot be read.
#[derive(Debug)]
struct Unreadable {
    why: Arc<str>,
    /// What was known when it could be: by that it is told whether what takes its place approves something else.
    last: Option<Record>,
}

impl Ledger {
    /// The records of a store.
    ///
    /// # Errors
    /// When its directory cannot be used, or others may write to it. A single record that cannot be read is no error.
    pub fn open(spec: &PinsSpec, findings: Findings) -> Result<Self, StoreError> {
        let store = spec.directory.as_deref().map(Store::open).transpose()?;
        if spec.forgets_approvals() {
            tracing::warn!(
                "definitions are under quarantine without `state.dir`: what changes is withheld until the next start, which takes it as it is then"
            );
        }
        let ledger = Self {
            modes: spec.modes.clone(),
            store,
            findings,
            books: Mutex::default(),
        };
        for id in spec.modes.keys() {
            let mut books = ledger.books();
            ledger.read(id, books.entry(id.clone()).or_default());
        }
        Ok(ledger)
    }

    /// What becomes of changes of an upstream.
    pub fn mode(&self, upstream: &UpstreamId) -> Mode {
        self.modes.get(upstream).copied().unwrap_or_default()
    }

    /// Takes in what an upstream offers, and says what of that is not to be. It holds until [`Ledger::keep`] tells of another
    /// record. Nothing is written here.
    pub fn judge(&self, upstream: &UpstreamId, offered: &Offered<'_>) -> Withheld {
        let mode = self.mode(upstream);
        let quarantine = mode == Mode::Quarantine;
        if mode == Mode::Off || !quarantine && offered.tells == Tells::Nothing {
            return Withheld::default();
        }
        let mut books = self.books();
        let book = books.entry(upstream.clone()).or_default();
        let record = book.record.get_or_insert_with(|| Ok(Record::default()));
        let Ok(record) = record else {
            return Withheld {
                all: quarantine,
                instructions: quarantine,
                ..Withheld::default()
            };
        };
        let mut now = Now::of(offered, &mut book.digested);
        if offered.tells != Tells::Nothing {
            if quarantine {
                now.doubt(offered, record);
            }
            let (changed, events) = record.update(&now, !quarantine);
            book.unsaved |= changed;
            told_of(upstream, book.told.over(Instant::now()));
            for event in events {
                if event.rule != BEYOND || !std::mem::replace(&mut book.full, true) {
                    self.note(upstream, mode, &event, &mut book.told);
                }
            }
        }
        if quarantine {
            record.withheld(&now)
        } else {
            Withheld::default()
        }
    }

    /// How a definition stands, by its upstream's own name for it; `None` where nobody looks, or nothing is known of it.
    pub fn state(&self, upstream: &UpstreamId, kind: ListKind, local: &Arc<str>) -> Option<State> {
        let books = self.books();
        let Some(Ok(record)) = &books.get(upstream)?.record else {
            return None;
        };
        let pin = record.pins.get(&(kind.member(), local.clone()));
        pin.map(Pin::state)
    }

    /// What an upstream offered when it was there last, by its own names for it.
    pub fn offered(&self, upstream: &UpstreamId) -> Vec<(ListKind, Arc<str>)> {
        let books = self.books();
        let Some(Ok(record)) = books.get(upstream).and_then(|book| book.record.as_ref()) else {
            return Vec::new();
        };
        let there = record
            .pins
            .iter()
            .filter(|(_, pin)| pin.state() != State::Gone);
        let kind = |member: &str| {
            ListKind::EVERY
                .into_iter()
                .find(|kind| kind.member() == member)
        };
        there
            .filter_map(|((member, local), _)| Some((kind(member)?, local.clone())))
            .collect()
    }

    /// Brings ledger and store together: what others wrote is read, what is new is written. The upstreams whose record is
    /// another one now, by which what they offer is to be judged again. Reads and writes files.
    ///
    /// Of those of which somebody approved something that is under quarantine, `approved` is told before anything is judged by it:
    /// a refresh may come at any moment. The books are held meanwhile: it must not ask the ledger, nor take long.
    pub fn keep(&self, approved: impl Fn(&UpstreamId)) -> Vec<UpstreamId> {
        let now = Instant::now();
        for (id, book) in &mut *self.books() {
            told_of(id, book.told.over(now));
        }
        let Some(store) = &self.store else {
            return Vec::new();
        };
        let ids: Vec<_> = self.books().keys().cloned().collect();
        let mut changed = Vec::new();
        for id in ids {
            let mut books = self.books();
            let Some(book) = books.get_mut(&id) else {
                continue;
            };
            let mut read = (store.stamp(&id) != book.stamp).then(|| self.read(&id, book));
            let put_off = book.refused.as_ref().is_some_and(|it| now < it.again);
            if book.unsaved
                && !put_off
                && let Some(Ok(_)) = &book.record
            {
                match self.save(store, &id, book) {
                    // Read twice, it was approved if it was either time.
                    Ok(anew) => read = read.max(anew),
                    Err(error) => {
                        // What is too much now is so until something else is noted.
                        book.unsaved &= !matches!(error, StoreError::TooMuch(_));
                        book.refused = Some(Refused::after(book.refused.take(), &id, &error, now));
                    }
                }
            }
            if read == Some(true) && self.mode(&id) == Mode::Quarantine {
                approved(&id);
            }
            changed.extend(read.map(|_| id));
        }
        changed
    }

    /// Logs what was only counted so far: nobody asks when the minute is over.
    pub fn end(&self) {
        for (id, book) in &mut *self.books() {
            told_of(id, book.told.ended());
        }
    }

    /// Writes a record, unless somebody else did meanwhile: then that is read, and returned what [`Ledger::read`] says. Where
    /// somebody else writes just now, it waits for the next look: the books are held meanwhile.
    fn save(
        &self,
        store: &Store,
        id: &UpstreamId,
        book: &mut Book,
    ) -> Result<Option<bool>, StoreError> {
        let Some(locked) = store.try_lock()? else {
            return Ok(None);
        };
        let anew = (store.stamp(id) != book.stamp).then(|| self.read(id, book));
        if book.unsaved
            && let Some(Ok(record)) = &book.record
        {
            book.stamp = Some(locked.write(id, record)?);
            book.unsaved = false;
        }
        if book.refused.take().is_some() {
            tracing::info!(upstream = %id, "pins are kept again");
        }
        Ok(anew)
    }

    /// Takes in what the store has. Whether somebody approved something meanwhile.
    fn read(&self, id: &UpstreamId, book: &mut Book) -> bool {
        let Some(store) = &self.store else {
            return false;
        };
        // Else another process was first: what it took in then counts as approved as it does here.
        let was_there = book.stamp.is_some();
        book.stamp = store.stamp(id);
        let read = store.read(id);
        let known = matches!(&read, Ok(Some(_)));
        let (record, approved) = match (read, book.record.take()) {
            (Ok(Some(now)), before) => {
                let before = before.as_ref().and_then(|before| match before {
                    Ok(record) => Some(record),
                    Err(unreadable) => unreadable.last.as_ref(),
                });
                let approved =
                    was_there && before.is_some_and(|before| now.approves_beyond(before));
                (Some(Ok(now)), approved)
            }
            (Err(error), before) => {
                let unreadable = self.unreadable(id, &error, before);
                (Some(Err(unreadable)), false)
            }
            // It was taken away: what is in memory is written again.
            (Ok(None), Some(Ok(record))) => (Some(Ok(record)), false),
            // It could not be read, and somebody moved it away: whatever is offered next they let count as approved.
            (Ok(None), Some(Err(_))) => (None, true),
            (Ok(None), None) => (None, false),
        };
        book.record = record;
        book.unsaved = !known && book.record.is_some();
        book.full = false;
        approved
    }

    /// A record that cannot be read any more, which is told once.
    fn unreadable(
        &self,
        id: &UpstreamId,
        error: &StoreError,
        before: Option<Result<Record, Unreadable>>,
    ) -> Unreadable {
        let why: Arc<str> = error.to_string().into();
        if !matches!(&before, Some(Err(known)) if known.why == why) {
            let outcome = match self.mode(id) {
                Mode::Quarantine => "nothing of it is offered until this is mended",
                Mode::Watch | Mode::Off => "its changes are not noted until this is mended",
            };
            tracing::error!(upstream = %id, %why, "the pins of an upstream cannot be read; {outcome}");
        }
        let last = match before {
            Some(Ok(record)) => Some(record),
            Some(Err(unreadable)) => unreadable.last,
            None => None,
        };
        Unreadable { why, last }
    }

    fn note(&self, id: &UpstreamId, mode: Mode, event: &Event, told: &mut Told) {
        let (action, word) = match mode {
            Mode::Quarantine => (Action::Quarantine, "quarantine"),
            Mode::Watch | Mode::Off => (Action::Flag, "watch"),
        };
        let item = || event.name.escape_debug().to_string();
        let kind = if event.rule == HELD {
            "definition_held"
        } else {
            "definition_changed"
        };
        if event.rule == BEYOND {
            tracing::error!(upstream = %id, kind = event.kind, item = item(), action = word, "a server offers more definitions than are pinned, this one and maybe more; approve what is gone to make room, or stop the gateway and move the record away to begin anew");
        } else {
            if event.rule != HELD {
                metrics::instruments().changed(id.as_str(), word);
            }
            match told.add(event.rule, Instant::now()) {
                How::Alone if event.rule == HELD => {
                    tracing::warn!(upstream = %id, kind = event.kind, item = item(), "a definition may be an attempt on the model, and is held until somebody approves it");
                }
                How::Alone => {
                    tracing::warn!(upstream = %id, kind = event.kind, item = item(), what = event.rule, action = word, "a definition is not what was pinned");
                }
                How::Begins => {
                    // Of what is in memory alone it knows nothing.
                    let each = if self.store.is_some() {
                        "; `usher pins status` shows each"
                    } else {
                        ""
                    };
                    tracing::warn!(upstream = %id, action = word, "more than a hundred definitions are not what was pinned: the others of this minute are counted, and told when it is over{each}");
                }
                How::Counted => {}
            }
        }
        self.findings.note(
            Finding {
                kind,
                rule: event.rule.into(),
                action,
                direction: Direction::Definitions,
                place: format!("/{}", event.kind).into(),
                length: 0,
                digest: None,
                upstream: Some(id.clone()),
                item: Some(event.name.clone()),
                call: None,
                at: SystemTime::now(),
            },
            None,
        );
    }

    fn books(&self) -> MutexGuard<'_, HashMap<UpstreamId, Book>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refused {
    /// One more time. It is told where it is for another reason than before.
    fn after(before: Option<Self>, id: &UpstreamId, error: &StoreError, now: Instant) -> Self {
        let why = error.to_string();
        if before.as_ref().is_none_or(|before| before.why != why) {
            tracing::error!(upstream = %id, %error, "pins are not kept");
        }
        let pause = before.map_or(PAUSE, |before| (before.pause * 2).min(LONGEST_PAUSE));
        Self {
            why,
            again: now + pause,
            pause,
        }
    }
}

/// Logs what was only counted of an upstream, if any was.
fn told_of(id: &UpstreamId, rest: Option<(u64, String)>) {
    if let Some((count, what)) = rest {
        tracing::warn!(upstream = %id, count, what, "more definitions were not what was pinned than were told one by one");
    }
}

impl Withheld {
    /// Whether an item is not to be offered.
    pub fn has(&self, kind: ListKind, local: &Arc<str>) -> bool {
        self.all || !self.items.is_empty() && self.items.contains(&(kind, local.clone()))
    }

    /// Whether nothing is withheld.
    pub fn is_empty(&self) -> bool {
        !self.all && !self.instructions && self.items.is_empty()
    }
}
