//! Counting what is found in definitions, of which a server may make as many as it likes. Time is handed in.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::tally::WINDOW;
use crate::{
    findings::{Action, Finding},
    protocol::UpstreamId,
};

/// How many of one upstream in a window are told one by one.
const SINGLE: u64 = 100;
/// How many of each sort are in any case, so that many of one do not hide another: a change behind what is new.
const OF_EACH: u64 = 10;
/// How many are in all, whatever they are.
const MOST: u64 = 400;
/// The most sorts that are named of the rest of a window; the record says how many more there were.
pub(super) const SORTS: usize = 32;

/// What is alike of findings, whatever they are in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sort {
    pub(super) class: &'static str,
    pub(super) rule: Arc<str>,
    pub(super) action: Action,
}

/// What of a window was not told one by one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) upstream: Option<UpstreamId>,
    pub(super) count: u64,
    /// How many of each sort; of what there was most first.
    pub(super) sorts: Vec<(Sort, u64)>,
    pub(super) over: Duration,
}

/// What is to be told now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Of the window before, which is over.
    pub(super) before: Option<Rest>,
    /// Whether the one that was found is told by itself.
    pub(super) alone: bool,
}

/// Findings by upstream, of which the configuration names few; their sorts are few as well.
#[derive(Default)]
pub(super) struct Definitions {
    windows: HashMap<Option<UpstreamId>, Window>,
}

struct Window {
    since: Instant,
    told: u64,
    sorts: BTreeMap<Sort, Counted>,
}

/// Of one sort, how many were told one by one, and how many were not.
#[derive(Default)]
struct Counted {
    told: u64,
    rest: u64,
}

impl Definitions {
    /// Counts one.
    pub(super) fn add(&mut self, finding: &Finding, now: Instant) -> Step {
        let upstream = &finding.upstream;
        let over = |window: &Window| now.duration_since(window.since) >= WINDOW;
        let before = if self.windows.get(upstream).is_some_and(over) {
            let window = self.windows.remove(upstream);
            window.and_then(|window| window.rest(upstream.clone(), now))
        } else {
            None
        };
        let window = self.windows.entry(upstream.clone());
        let window = window.or_insert_with(|| Window {
            since: now,
            told: 0,
            sorts: BTreeMap::new(),
        });
        let sort = Sort {
            class: finding.kind,
            rule: finding.rule.clone(),
            action: finding.action,
        };
        let counted = window.sorts.entry(sort).or_default();
        let alone = window.told < SINGLE || counted.told < OF_EACH && window.told < MOST;
        if alone {
            window.told += 1;
            counted.told += 1;
        } else {
            counted.rest += 1;
        }
        Step { before, alone }
    }

    /// What is over, or at the end everything.
    pub(super) fn sweep(&mut self, now: Instant, ending: bool) -> Vec<Rest> {
        let over = |window: &Window| ending || now.duration_since(window.since) >= WINDOW;
        let ended = self.windows.extract_if(|_, window| over(window));
        ended
            .filter_map(|(upstream, window)| window.rest(upstream, now))
            .collect()
    }
}

impl Window {
    /// Those that were not told one by one.
    fn rest(self, upstream: Option<UpstreamId>, now: Instant) -> Option<Rest> {
        let sorts = self.sorts.into_iter();
        let sorts = sorts.map(|(sort, counted)| (sort, counted.rest));
        let mut sorts: Vec<_> = sorts.filter(|(_, count)| *count > 0).collect();
        sorts.sort_by_key(|(_, count)| Reverse(*count));
        let count = sorts.iter().map(|(_, count)| count).sum();
        (count > 0).then(|| Rest {
            upstream,
            count,
            sorts,
            over: now.duration_since(self.since),
        })
    }
}
