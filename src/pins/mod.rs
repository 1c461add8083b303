//! Pins: what definitions were when they were taken for good, and whether they still are (PRODUCT 11, SECURITY CAT-2, CAT-3).
//!
//! Guarantees: a definition is known by the digest of its canonical text over every member that it has, so that no change of
//! it goes by, whoever told of it and whenever it was read; what a server offers at the first contact counts as approved, but
//! for what may be an attempt on the model where definitions are quarantined (CAT-4); what it changes or adds later does not
//! count before somebody says so; what was approved is never changed by what a server says; a
//! record that cannot be read is never written over, and withholds everything of its server where changes are quarantined.
//! Deliberately absent: taking things from the lists, which `catalog` does, and the clock that reads and writes, which is
//! `app`'s.

mod alike;
mod diff;
mod known;
mod record;
mod store;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use crate::{
    findings::{Action, Direction, Finding, Findings},
    json::Json,
    metrics,
    protocol::{UpstreamId, methods::ListKind},
};

pub use alike::{are_alike, outline};
pub use diff::{Difference, PLACES, differences};
pub use record::{Pin, Record, State};
pub use store::{Locked, Store, StoreError};

use known::Known;
use record::{Event, Now};

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

/// What an upstream offers at one moment.
pub struct Offered<'a> {
    /// Its lists.
    pub lists: [&'a [Json]; ListKind::COUNT],
    /// What it says to models about itself.
    pub instructions: Option<&'a str>,
    /// Whether all of its lists were read, so that what is not in them is gone.
    pub whole: bool,
    /// What in a definition, or in what it says of itself, only may be an attempt on the model, in words for operators.
    pub doubt: &'a dyn Fn(&Json) -> Option<String>,
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
    /// `Err`: why it cannot be read.
    record: Option<Result<Record, Arc<str>>>,
    stamp: Option<store::Stamp>,
    /// Whether the store lacks something of it.
    unsaved: bool,
    now: Now,
    withheld: Arc<Withheld>,
    /// Raw definitions that were digested before.
    digested: HashMap<Json, Known>,
}

impl Ledger {
    /// The records of a store.
    ///
    /// # Errors
    /// When its directory cannot be used, or others may write to it. A single record that cannot be read is no error.
    pub fn open(spec: &PinsSpec, findings: Findings) -> Result<Self, StoreError> {
        let store = spec.directory.as_deref().map(Store::open).transpose()?;
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

    /// A ledger in memory that watches all upstreams.
    pub fn in_memory(findings: Findings) -> Self {
        Self {
            modes: BTreeMap::new(),
            store: None,
            findings,
            books: Mutex::default(),
        }
    }

    /// What becomes of changes of an upstream.
    pub fn mode(&self, upstream: &UpstreamId) -> Mode {
        self.modes.get(upstream).copied().unwrap_or_default()
    }

    /// What an upstream offers now. Nothing is written here.
    pub fn observe(&self, upstream: &UpstreamId, offered: &Offered<'_>) {
        if self.mode(upstream) == Mode::Off {
            return;
        }
        let mut books = self.books();
        let book = books.entry(upstream.clone()).or_default();
        book.now = Now::of(offered, &mut book.digested);
        if self.mode(upstream) == Mode::Quarantine {
            let known = book.record.as_ref().and_then(|record| record.as_ref().ok());
            book.now.doubt(offered, known);
        }
        self.judge(upstream, book);
    }

    /// What of an upstream is not to be offered, as far as is known.
    pub fn withheld(&self, upstream: &UpstreamId) -> Arc<Withheld> {
        let books = self.books();
        let book = books.get(upstream);
        book.map_or_else(Arc::default, |book| book.withheld.clone())
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

    /// Brings ledger and store together: what others wrote is read, what is new is written. The upstreams of which something
    /// else is withheld now. Reads and writes files.
    pub fn keep(&self) -> Vec<UpstreamId> {
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
            let before = book.withheld.clone();
            if store.stamp(&id) != book.stamp {
                self.read(&id, book);
                self.judge(&id, book);
            }
            if book.unsaved
                && let Some(Ok(_)) = &book.record
            {
                match self.save(store, &id, book) {
                    Ok(()) => {}
                    Err(error) => tracing::error!(upstream = %id, %error, "pins are not kept"),
                }
            }
            if *before != *book.withheld {
                changed.push(id);
            }
        }
        changed
    }

    /// Writes a record, unless somebody else did meanwhile: then that is read and judged first.
    fn save(&self, store: &Store, id: &UpstreamId, book: &mut Book) -> Result<(), StoreError> {
        let locked = store.lock()?;
        if store.stamp(id) != book.stamp {
            self.read(id, book);
            self.judge(id, book);
        }
        if let Some(Ok(record)) = &book.record {
            book.stamp = locked.write(id, record)?;
            book.unsaved = false;
        }
        Ok(())
    }

    /// Takes in what the store has.
    fn read(&self, id: &UpstreamId, book: &mut Book) {
        let Some(store) = &self.store else { return };
        book.stamp = store.stamp(id);
        let read = store.read(id).map_err(|error| error.to_string().into());
        match (&read, &book.record) {
            (Err(why), before) if !matches!(before, Some(Err(known)) if known == why) => {
                let outcome = match self.mode(id) {
                    Mode::Quarantine => "nothing of it is offered until this is mended",
                    Mode::Watch | Mode::Off => "its changes are not noted until this is mended",
                };
                tracing::error!(upstream = %id, %why, "the pins of an upstream cannot be read; {outcome}");
            }
            _ => {}
        }
        let known = matches!(&read, Ok(Some(_)));
        book.record = match (read, book.record.take()) {
            (Ok(Some(record)), _) => Some(Ok(record)),
            (Err(why), _) => Some(Err(why)),
            // It was taken away: what is in memory is written again.
            (Ok(None), Some(Ok(record))) => Some(Ok(record)),
            (Ok(None), _) => None,
        };
        book.unsaved = !known && book.record.is_some();
    }

    /// Compares what is offered with the record.
    fn judge(&self, id: &UpstreamId, book: &mut Book) {
        let mode = self.mode(id);
        let quarantine = mode == Mode::Quarantine;
        match book.record.get_or_insert_with(|| Ok(Record::default())) {
            Err(_) => {
                book.withheld = Arc::new(Withheld {
                    all: quarantine,
                    instructions: quarantine,
                    ..Withheld::default()
                });
            }
            Ok(record) => {
                let (changed, events) = record.update(&book.now, !quarantine);
                book.unsaved |= changed;
                for event in &events {
                    self.note(id, mode, event);
                }
                book.withheld = Arc::new(if quarantine {
                    record.withheld(&book.now)
                } else {
                    Withheld::default()
                });
            }
        }
    }

    fn note(&self, id: &UpstreamId, mode: Mode, event: &Event) {
        let (action, word) = match mode {
            Mode::Quarantine => (Action::Quarantine, "quarantine"),
            Mode::Watch | Mode::Off => (Action::Flag, "watch"),
        };
        let item = &*event.name.escape_debug().to_string();
        let kind = if event.rule == "held" {
            tracing::warn!(upstream = %id, kind = event.kind, item, "a definition may be an attempt on the model, and is held until somebody approves it");
            "definition_held"
        } else {
            metrics::instruments().changed(id.as_str(), word);
            tracing::warn!(upstream = %id, kind = event.kind, item, what = event.rule, action = word, "a definition is not what was pinned");
            "definition_changed"
        };
        self.findings.note(Finding {
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
        });
    }

    fn books(&self) -> MutexGuard<'_, HashMap<UpstreamId, Book>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
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
