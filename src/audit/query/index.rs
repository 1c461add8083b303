//! What a segment that has ended holds, in a small file beside it.
//!
//! Written when the segment ends; where it is missing or broken, the segment is read. It is no part of what is proved.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufReader},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::Filter;
use crate::audit::{
    chain::Line,
    log::{INDEX, Segment, replace},
};

/// The most different texts listed of one sort; where there are more, they rule nothing out.
const MOST: usize = 4_096;
/// How much of a segment is read at once, in bytes.
const READ: usize = 256 << 10;

/// What a segment holds.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
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

/// What of a record is listed. An [`Entry`](super::super::entry::Entry) has all of it in texts of its own: reading those cost a
/// busy gateway as much as writing them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Brief<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    call: Option<Text<'a>>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(borrow)]
    principal: Who<'a>,
    #[serde(borrow)]
    target: Target<'a>,
    #[serde(borrow)]
    decision: Option<Text<'a>>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    outcome: Option<Text<'a>>,
    #[serde(borrow)]
    findings: Vec<Found<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Who<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Target<'a> {
    #[serde(borrow)]
    exposed: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    upstream: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Found<'a> {
    #[serde(borrow)]
    class: Cow<'a, str>,
    #[serde(borrow)]
    rule: Cow<'a, str>,
}

/// A text that lies where it was read, unless it holds escapes.
#[derive(Debug, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

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
    pub(super) fn write(segment: &Path) -> io::Result<()> {
        let index = Self::of(BufReader::with_capacity(READ, fs::File::open(segment)?))?;
        replace(&segment.with_extension(INDEX), &serde_json::to_vec(&index)?)
    }

    fn of(mut segment: impl io::BufRead) -> io::Result<Self> {
        let mut index = Self::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = segment.read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(index);
            }
            index.length += read as u64;
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let event = Line::parse(text).and_then(|line| str::from_utf8(line.event).ok());
            if let Some(brief) = event.and_then(|event| serde_json::from_str(event).ok()) {
                index.add(&brief);
            }
        }
    }

    fn add(&mut self, entry: &Brief<'_>) {
        if self.since.is_empty() || *entry.time < *self.since {
            self.since = entry.time.to_string();
        }
        if *entry.time > *self.until {
            self.until.clear();
            self.until.push_str(&entry.time);
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
            if let Some(Text(text)) = text {
                listed.add(text);
            }
        }
        for Text(name) in [&target.exposed, &target.name].into_iter().flatten() {
            self.names.add(name);
        }
        let call = entry.call.as_ref().and_then(|Text(call)| parts(call));
        if let Some((process, number)) = call {
            let numbers = match self.calls.get_mut(process) {
                Some(numbers) => numbers,
                None => self
                    .calls
                    .entry(process.to_owned())
                    .or_insert((number, number)),
            };
            numbers.0 = number.min(numbers.0);
            numbers.1 = number.max(numbers.1);
        }
        for found in &entry.findings {
            self.findings.add(&found.class);
            self.findings.add(&found.rule);
        }
    }

    /// The index beside a segment, if there is one and it was written for what is there.
    pub(super) fn beside(segment: &Segment) -> Option<Self> {
        let text = fs::read(segment.path.with_extension(INDEX)).ok()?;
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
            decision: _,
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
            && self.decisions.may_hold(filter.decision_told())
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
