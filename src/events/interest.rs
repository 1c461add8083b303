//! Interest in the resources of one upstream: which of them are wanted, which it tells of, and who hears it.
//!
//! Guarantees: a URI is wanted for as long as somebody watches it and no longer; whoever watched it while the upstream did not
//! tell is told to look again; what is wanted by a principal who is offered something of their own is wanted, and told, in
//! one of theirs. Bounds: [`WANTED`] URIs; looking up an update takes at most [`DEPTH`] steps of it; a principal's lasts
//! for as long as somebody holds it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, Weak},
};

use tokio::sync::watch;

use super::{Pages, held, mailbox::Mailbox};
use crate::call::Grantee;

/// The most URIs of one upstream that are wanted at once; the next is not watched.
const WANTED: usize = 10_000;
/// The longest URI of an update that is looked at, in bytes.
const URI_BYTES: usize = 8 << 10;
/// How many of the parents of an updated resource are looked for.
const DEPTH: usize = 64;

/// Interest in the resources of one upstream.
#[derive(Debug)]
pub struct ResourceInterest {
    /// A std mutex: held to come, to go, to settle and to tell; never across an await.
    ledger: Mutex<Ledger>,
    /// Counts up when other URIs are wanted.
    wanted: watch::Sender<u64>,
    /// Counts up when more is known of what is in force.
    settled: watch::Sender<u64>,
    /// Those of principals who are offered something of their own.
    own: Mutex<HashMap<Grantee, Weak<Self>>>,
    /// Pages that people were sent to, of all upstreams.
    pages: Arc<Pages>,
}

#[derive(Debug, Default)]
struct Ledger {
    standing: Standing,
    wants: BTreeMap<Arc<str>, Want>,
    stamps: u64,
}

/// Whether anybody finds out what is in force.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The upstream was not reached yet, and may be soon.
    #[default]
    Unknown,
    /// A watch is at work.
    Watching,
    /// The upstream is away.
    Away,
}

#[derive(Debug)]
struct Want {
    stamp: u64,
    verdict: Option<bool>,
    /// It was in force, and is to be looked at again by those who relied on that.
    missed: bool,
    /// By listener, and by which of what it watches this is: two spellings of one resource are two of those.
    watchers: HashMap<(u64, usize), Arc<Mailbox>>,
}

/// A URI that is wanted. One that is given up and wanted again has another stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// As the upstream knows it.
    pub uri: Arc<str>,
    /// When it began to be wanted, in numbers that only grow.
    pub stamp: u64,
}

impl Default for ResourceInterest {
    fn default() -> Self {
        Self {
            ledger: Mutex::default(),
            wanted: watch::Sender::new(0),
            settled: watch::Sender::new(0),
            own: Mutex::default(),
            pages: Arc::default(),
        }
    }
}

impl ResourceInterest {
    /// One that knows of these pages.
    pub(super) fn sharing(pages: Arc<Pages>) -> Self {
        Self {
            pages,
            ..Self::default()
        }
    }

    /// The pages that people were sent to.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The interest of one to whom the upstream offers something of their own. It stays the same for as long as anybody holds it.
    pub fn own(&self, who: &Grantee) -> Arc<Self> {
        let mut own = held(&self.own);
        if let Some(interest) = own.get(who).and_then(Weak::upgrade) {
            return interest;
        }
        own.retain(|_, interest| interest.strong_count() > 0);
        let interest = Arc::new(Self::sharing(Arc::clone(&self.pages)));
        own.insert(who.clone(), Arc::downgrade(&interest));
        interest
    }
}

/// What a watch of the upstream does.
impl ResourceInterest {
    /// A watch begins: from now on it is worth waiting for what it finds out.
    pub fn begin(&self) {
        held(&self.ledger).standing = Standing::Watching;
    }

    /// The upstream is away: nothing is in force, and nothing is about to be.
    pub fn away(&self) {
        held(&self.ledger).standing = Standing::Away;
        self.lost();
    }

    /// What was in force may have been broken off: whoever relied on it will be told to look again once that is known.
    pub fn lost(&self) {
        for want in held(&self.ledger).wants.values_mut() {
            want.missed |= want.verdict.take() == Some(true);
        }
        self.settled.send_modify(|count| *count += 1);
    }

    /// Updates may have been missed, though all that was in force still is: those who watch are to look again.
    pub fn look_again(&self) {
        for want in held(&self.ledger).wants.values() {
            if want.verdict == Some(true) {
                want.tell();
            }
        }
    }

    /// Tells when other URIs are wanted than before.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    /// Everything that is wanted, in order.
    pub fn wanted(&self) -> Vec<Wanted> {
        let ledger = held(&self.ledger);
        let wants = ledger.wants.iter();
        wants
            .map(|(uri, want)| Wanted {
                uri: Arc::clone(uri),
                stamp: want.stamp,
            })
            .collect()
    }

    /// Whether the upstream tells of changes of each of these. Those no longer wanted under that stamp are left alone.
    pub fn settle<'a>(&self, verdicts: impl IntoIterator<Item = (&'a Wanted, bool)>) {
        let mut ledger = held(&self.ledger);
        for (wanted, verdict) in verdicts {
            let Some(want) = ledger.wants.get_mut(&wanted.uri) else {
                continue;
            };
            if want.stamp != wanted.stamp || want.verdict == Some(verdict) {
                continue;
            }
            want.missed |= want.verdict.replace(verdict) == Some(true);
            if want.missed {
                want.tell();
            }
            // Until it is in force again, whoever relied on it has been told of no more than what was missed so far.
            want.missed &= !verdict;
        }
        drop(ledger);
        self.settled.send_modify(|count| *count += 1);
    }

    /// A resource is not as it was: whoever watches it, or something that it lies below, is told once for each spelling by which it
    /// watches that. False when that is nobody.
    pub fn updated(&self, uri: &str) -> bool {
        if uri.len() > URI_BYTES {
            return false;
        }
        let ledger = held(&self.ledger);
        let mut told = HashSet::new();
        if let Some(want) = ledger.wants.get(uri) {
            for ((listener, number), mailbox) in &want.watchers {
                told.insert(*listener);
                mailbox.resource(*number, None);
            }
        }
        let mut shared = None;
        for parent in parents(uri) {
            let Some(want) = ledger.wants.get(parent) else {
                continue;
            };
            let uri = shared.get_or_insert_with(|| Arc::from(uri));
            let nearer = |watcher: &(u64, usize)| told.contains(&watcher.0);
            let next: Vec<_> = want.watchers.iter().filter(|(it, _)| !nearer(it)).collect();
            for ((listener, number), mailbox) in next {
                told.insert(*listener);
                mailbox.resource(*number, Some(uri));
            }
        }
        !told.is_empty()
    }
}

impl Want {
    fn tell(&self) {
        for ((_, number), mailbox) in &self.watchers {
            mailbox.resource(*number, None);
        }
    }
}

/// What listeners do.
impl ResourceInterest {
    /// Somebody watches a URI; false when there are too many.
    pub(super) fn watch(
        &self,
        uri: &Arc<str>,
        listener: u64,
        number: usize,
        mailbox: &Arc<Mailbox>,
    ) -> bool {
        let mut ledger = held(&self.ledger);
        let (watcher, mailbox) = ((listener, number), Arc::clone(mailbox));
        if let Some(want) = ledger.wants.get_mut(uri) {
            want.watchers.insert(watcher, mailbox);
            return true;
        }
        if ledger.wants.len() >= WANTED {
            return false;
        }
        ledger.stamps += 1;
        let want = Want {
            stamp: ledger.stamps,
            verdict: None,
            missed: false,
            watchers: HashMap::from([(watcher, mailbox)]),
        };
        ledger.wants.insert(Arc::clone(uri), want);
        drop(ledger);
        self.wanted.send_modify(|count| *count += 1);
        true
    }

    /// Somebody watches a URI no more.
    pub(super) fn unwatch(&self, uri: &str, listener: u64, number: usize) {
        let mut ledger = held(&self.ledger);
        let Some(want) = ledger.wants.get_mut(uri) else {
            return;
        };
        want.watchers.remove(&(listener, number));
        if want.watchers.is_empty() {
            ledger.wants.remove(uri);
            drop(ledger);
            self.wanted.send_modify(|count| *count += 1);
        }
    }

    /// Waits until it is known whether the upstream tells of a URI, or that nobody is about to find out.
    pub(super) async fn settled(&self, uri: &str) {
        let mut settled = self.settled.subscribe();
        let known = |_: &u64| {
            let ledger = held(&self.ledger);
            let verdict = ledger.wants.get(uri).map(|want| want.verdict);
            ledger.standing == Standing::Away || verdict.is_none_or(|verdict| verdict.is_some())
        };
        // The sender is this one's own, so it is there.
        drop(settled.wait_for(known).await);
    }

    /// Whether the upstream tells of changes of a URI.
    pub(super) fn is_in_force(&self, uri: &str) -> bool {
        let ledger = held(&self.ledger);
        ledger
            .wants
            .get(uri)
            .is_some_and(|want| want.verdict == Some(true))
    }
}

/// What a resource may lie below, from the nearest on: its URI cut at each `/`, `?` and `#`, with and without that.
fn parents(uri: &str) -> impl Iterator<Item = &str> {
    let cuts = uri.rmatch_indices(['/', '?', '#']).take(DEPTH);
    cuts.flat_map(|(at, _)| [&uri[..=at], &uri[..at]])
        .filter(move |parent| parent.len() < uri.len())
}
