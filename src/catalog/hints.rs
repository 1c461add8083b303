//! Hints: how long, and by whom, a merged list may be kept (PROTOCOL D5, SECURITY CAT-7).

use std::sync::Arc;

use tokio::time::Instant;

use super::{moment::Moment, part::Part, rules::Selection};
use crate::protocol::methods::ListKind;

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
            .filter(|_| !part.is_away() && !part.is_cut(kind));
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

/// An upstream that is there, declares no such capability and lists nothing of the kind has no say.
fn has_a_say(part: &Part, kind: ListKind) -> bool {
    part.is_away()
        || part.contribution.as_ref().is_none_or(|contribution| {
            let card = contribution.card.as_ref();
            card.is_some_and(|card| kind.promised_in(&card.capabilities))
                || !contribution.listing(kind).items.is_empty()
        })
}

/// Whether the operator changes what is seen of the upstream's tools.
fn is_shaped(part: &Part) -> bool {
    let naming = &part.naming;
    naming.tools != Selection::default() || !naming.rename.is_empty() || !naming.describe.is_empty()
}

/// Which of these are away; `None` where none is.
pub(super) fn away<'a>(parts: impl Iterator<Item = &'a Part>) -> Option<Arc<[String]>> {
    named(parts.filter(|part| part.is_away()))
}

/// Of which of these a list of this kind was cut short; `None` where none was.
pub(super) fn partial<'a>(
    kind: ListKind,
    parts: impl Iterator<Item = &'a Part>,
) -> Option<Arc<[String]>> {
    named(parts.filter(|part| part.is_cut(kind)))
}

fn named<'a>(parts: impl Iterator<Item = &'a Part>) -> Option<Arc<[String]>> {
    let names: Vec<_> = parts.map(|part| part.id().to_string()).collect();
    (!names.is_empty()).then(|| names.into())
}
