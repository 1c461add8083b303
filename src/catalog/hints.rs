//! Hints: how long, and by whom, a merged list may be kept (PROTOCOL D5, SECURITY CAT-7).

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{build::Part, rules::Selection};
use crate::protocol::methods::ListKind;

/// A moment that may be put off, by whom it may be read meanwhile. `None`: not at all.
#[derive(Debug, Default)]
pub(super) struct Moment {
    at: Option<Instant>,
    /// Put off by so many milliseconds.
    later: AtomicU64,
}

impl Moment {
    pub(super) const fn new(at: Option<Instant>) -> Self {
        Self {
            at,
            later: AtomicU64::new(0),
        }
    }

    pub(super) fn get(&self) -> Option<Instant> {
        let later = Duration::from_millis(self.later.load(Ordering::Relaxed));
        self.at.and_then(|at| at.checked_add(later))
    }

    /// Puts it off until `to`, if it is a moment at all and before that.
    pub(super) fn confirm(&self, to: Instant) {
        if let Some(at) = self.at {
            let later = to.saturating_duration_since(at).as_millis();
            let later = u64::try_from(later).unwrap_or(u64::MAX);
            self.later.fetch_max(later, Ordering::Relaxed);
        }
    }
}

/// How long, and for whom, a list may be kept.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    pub(super) until: Moment,
    pub(super) public: bool,
}

impl Freshness {
    /// What holds for one list of these upstreams together (PROTOCOL D5, SECURITY CAT-7). An upstream that declares
    /// no such capability has no say.
    pub(super) fn of<'a>(
        kind: ListKind,
        parts: impl Iterator<Item = &'a Part> + Clone,
        selected: bool,
    ) -> Self {
        let mut public = None;
        for part in parts.clone().filter(|part| has_a_say(part, kind)) {
            let own = !part.is_away()
                && part
                    .contribution
                    .as_ref()
                    .is_some_and(|contribution| contribution.listing(kind).public)
                && !(kind == ListKind::Tools && is_shaped(part));
            public = Some(public.unwrap_or(true) && own);
        }
        Self {
            until: Moment::new(until(kind, parts)),
            public: public.unwrap_or(false) && !selected,
        }
    }

    /// An upstream's lists were read again and are the same.
    pub(super) fn confirm<'a>(&self, kind: ListKind, parts: impl Iterator<Item = &'a Part>) {
        if let Some(until) = until(kind, parts) {
            self.until.confirm(until);
        }
    }
}

/// Until when one list of these upstreams together may be kept: until the first of theirs is over.
pub(super) fn until<'a>(kind: ListKind, parts: impl Iterator<Item = &'a Part>) -> Option<Instant> {
    let mut least: Option<Option<Instant>> = None;
    for part in parts.filter(|part| has_a_say(part, kind)) {
        let listing = part
            .contribution
            .as_ref()
            .map(|contribution| contribution.listing(kind))
            .filter(|listing| !part.is_away() && !listing.truncated);
        let own = listing
            .and_then(|listing| listing.ttl)
            .zip(part.read_at.get())
            .and_then(|(ttl, read_at)| read_at.checked_add(ttl));
        least = Some(match least {
            None => own,
            Some(least) => least.zip(own).map(|(a, b)| a.min(b)),
        });
    }
    least.flatten()
}

/// An upstream that is there and declares no such capability has no say.
fn has_a_say(part: &Part, kind: ListKind) -> bool {
    part.is_away()
        || part.contribution.as_ref().is_none_or(|contribution| {
            contribution
                .card
                .as_ref()
                .is_some_and(|card| kind.promised_in(&card.capabilities))
        })
}

/// Whether the operator changes what is seen of the upstream's tools.
fn is_shaped(part: &Part) -> bool {
    let naming = &part.naming;
    naming.tools != Selection::default() || !naming.rename.is_empty() || !naming.describe.is_empty()
}
