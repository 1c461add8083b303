//! Hints: how long, and by whom, a merged list may be kept (PROTOCOL D5, SECURITY CAT-7).

use tokio::time::Instant;

use super::{build::Part, rules::Selection};
use crate::protocol::methods::ListKind;

/// How long, and for whom, a list may be kept.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    /// `None`: not at all.
    pub(super) until: Option<Instant>,
    pub(super) public: bool,
}

impl Freshness {
    /// What holds for one list of these upstreams together (PROTOCOL D5, SECURITY CAT-7). An upstream that declares
    /// no such capability has no say.
    pub(super) fn of<'a>(
        kind: ListKind,
        parts: impl Iterator<Item = &'a Part>,
        selected: bool,
    ) -> Self {
        let mut merged: Option<Self> = None;
        for part in parts {
            let one = match &part.contribution {
                Some(contribution) if !part.is_away() => {
                    let declares = contribution
                        .card
                        .as_ref()
                        .is_some_and(|card| kind.promised_in(&card.capabilities));
                    if !declares {
                        continue;
                    }
                    let listing = contribution.listing(kind);
                    let until = contribution.read_at.zip(listing.ttl);
                    Self {
                        until: until
                            .filter(|_| !listing.truncated)
                            .and_then(|(read_at, ttl)| read_at.checked_add(ttl)),
                        public: listing.public && !(kind == ListKind::Tools && is_shaped(part)),
                    }
                }
                _ => Self::default(),
            };
            let all = merged.take().unwrap_or(Self {
                until: one.until,
                public: true,
            });
            merged = Some(Self {
                until: all.until.zip(one.until).map(|(a, b)| a.min(b)),
                public: all.public && one.public && !selected,
            });
        }
        merged.unwrap_or_default()
    }
}

/// Whether the operator changes what is seen of the upstream's tools.
fn is_shaped(part: &Part) -> bool {
    let naming = &part.naming;
    naming.tools != Selection::default() || !naming.rename.is_empty() || !naming.describe.is_empty()
}
