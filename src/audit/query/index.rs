//! What a segment that has ended holds, in a small file beside it.
//!
//! Written when the segment ends; where it is missing or broken, the segment is read. It is no part of what is proved.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::Filter;
use crate::audit::{chain::Line, entry::Entry, log::replace};

/// The most different texts listed of one sort; where there are more, they rule nothing out.
const MOST: usize = 4_096;

/// What a segment holds.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::audit) struct Index {
    /// The length of the segment that this was written for.
    length: u64,
    /// The first and the last time.
    since: String,
    until: String,
    principals: Listed,
    upstreams: Listed,
    names: Listed,
    methods: Listed,
    outcomes: Listed,
    decisions: Listed,
    reasons: Listed,
    findings: Listed,
    events: Listed,
    /// Of each process, the least and the greatest number of its calls.
    calls: BTreeMap<String, (u64, u64)>,
}

/// Every text of one sort, or none of them if they are too many.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Listed(Option<BTreeSet<String>>);

impl Default for Listed {
    fn default() -> Self {
        Self(Some(BTreeSet::new()))
    }
}

impl Listed {
    fn add(&mut self, text: &str) {
        let Some(all) = &mut self.0 else { return };
        if !all.contains(text) {
            all.insert(text.to_owned());
        }
        if all.len() > MOST {
            self.0 = None;
        }
    }

    fn may_hold(&self, asked: Option<&String>) -> bool {
        match (&self.0, asked) {
            (Some(all), Some(asked)) => all.contains(asked),
            _ => true,
        }
    }
}

impl Index {
    /// Writes the index of a segment that has ended.
    ///
    /// # Errors
    /// When the segment cannot be read, or the index not be written.
    pub(in crate::audit) fn write(segment: &Path) -> io::Result<()> {
        let index = Self::of(&fs::read(segment)?);
        replace(
            &segment.with_extension(EXTENSION),
            &serde_json::to_vec(&index)?,
        )
    }

    fn of(text: &[u8]) -> Self {
        let mut index = Self {
            length: text.len() as u64,
            ..Self::default()
        };
        for line in text.split(|byte| *byte == b'\n') {
            let entry = Line::parse(line).and_then(|line| Entry::parse(line.event));
            if let Some(entry) = entry {
                index.add(&entry);
            }
        }
        index
    }

    fn add(&mut self, entry: &Entry) {
        if self.since.is_empty() || entry.time < self.since {
            self.since.clone_from(&entry.time);
        }
        if entry.time > self.until {
            self.until.clone_from(&entry.time);
        }
        self.events.add(&entry.event);
        self.principals.add(&entry.principal.name);
        let target = &entry.target;
        let each = [
            (&mut self.upstreams, &target.upstream),
            (&mut self.methods, &entry.method),
            (&mut self.outcomes, &entry.outcome),
            (&mut self.decisions, &entry.decision),
            (&mut self.reasons, &entry.reason),
        ];
        for (listed, text) in each {
            if let Some(text) = text {
                listed.add(text);
            }
        }
        for name in [&target.exposed, &target.name].into_iter().flatten() {
            self.names.add(name);
        }
        if let Some((process, number)) = entry.call.as_deref().and_then(parts) {
            let of = self.calls.entry(process.to_owned());
            let (least, greatest) = of.or_insert((number, number));
            *least = number.min(*least);
            *greatest = number.max(*greatest);
        }
        for found in &entry.findings {
            self.findings.add(&found.class);
            self.findings.add(&found.rule);
        }
    }

    /// The index beside a segment, if there is one and it was written for what is there.
    pub(super) fn beside(segment: &super::Segment) -> Option<Self> {
        let text = fs::read(segment.path.with_extension(EXTENSION)).ok()?;
        let index: Self = serde_json::from_slice(&text).ok()?;
        (fs::metadata(&segment.path).ok()?.len() == index.length).then_some(index)
    }

    /// Whether the segment may hold what is looked for.
    pub(super) fn may_hold(&self, filter: &Filter) -> bool {
        let Filter {
            since,
            until,
            principal,
            upstream,
            name,
            method,
            outcome,
            decision,
            reason,
            finding,
            event,
            call,
        } = filter;
        since.as_ref().is_none_or(|since| self.until >= *since)
            && until.as_ref().is_none_or(|until| self.since < *until)
            && self.principals.may_hold(principal.as_ref())
            && self.upstreams.may_hold(upstream.as_ref())
            && self.names.may_hold(name.as_ref())
            && self.methods.may_hold(method.as_ref())
            && self.outcomes.may_hold(outcome.as_ref())
            && self.decisions.may_hold(decision.as_ref())
            && self.reasons.may_hold(reason.as_ref())
            && self.findings.may_hold(finding.as_ref())
            && self.events.may_hold(event.as_ref())
            && call.as_deref().is_none_or(|call| self.may_hold_call(call))
    }

    fn may_hold_call(&self, call: &str) -> bool {
        let Some((process, number)) = parts(call) else {
            // No reference of ours: nothing is ruled out.
            return true;
        };
        let known = self.calls.get(process);
        known.is_some_and(|(least, greatest)| (*least..=*greatest).contains(&number))
    }
}

/// The process and the number in a call's reference.
fn parts(call: &str) -> Option<(&str, u64)> {
    let (process, number) = call.rsplit_once('-')?;
    Some((process, number.parse().ok()?))
}

/// What an index's name ends in.
pub(in crate::audit) const EXTENSION: &str = "idx";
