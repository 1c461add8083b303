//! What a segment holds, in a small file beside it once it has ended.
//!
//! It is filled while the segment is written, from what is told along with each event; of one that another process began, the
//! segment is read. Guarantees: every text of the sorts that it lists is in it, or the sort is given up; it may list what a write that
//! failed has left nowhere. Where it is missing or broken, queries read the segment. It is not signed: whoever verifies the log looks
//! whether it leaves anything out.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    io,
    time::SystemTime,
};

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};

use super::{chain::Line, stamp::stamp};
use crate::call::process;

/// The most different texts listed of one sort; where there are more, they rule nothing out.
const MOST: usize = 4_096;
/// How many different events are known as listed already; where there are more, some are read again.
const KNOWN: usize = 1 << 16;

/// What a segment holds. Whoever lists more in it than before gives it another [`INDEX`](super::log::INDEX), since those that are there
/// would seem to leave that out.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    /// The length of the segment that this was written for.
    pub(super) length: u64,
    /// The first and the last time.
    pub(super) since: String,
    pub(super) until: String,
    pub(super) principals: Listed,
    pub(super) upstreams: Listed,
    pub(super) names: Listed,
    pub(super) methods: Listed,
    pub(super) outcomes: Listed,
    pub(super) decisions: Listed,
    pub(super) reasons: Listed,
    pub(super) findings: Listed,
    pub(super) events: Listed,
    /// Of each process, the least and the greatest number of its calls.
    pub(super) calls: BTreeMap<String, (u64, u64)>,
}

/// What of a record is listed. An [`Entry`](super::entry::Entry) has all of it in texts of its own: reading those cost a
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
    #[serde(borrow)]
    watched: Vec<Text<'a>>,
    #[serde(borrow)]
    not_watched: Vec<Text<'a>>,
    #[serde(borrow)]
    detail: Detail<'a>,
}

/// Of what is told beside calls, what people look for: all that an [`entry`](super::entry::Detail) has lists of.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Detail<'a> {
    #[serde(borrow)]
    action: Option<Text<'a>>,
    #[serde(borrow)]
    by: Option<Text<'a>>,
    #[serde(borrow)]
    cause: Option<Text<'a>>,
    #[serde(borrow)]
    checks: Vec<Text<'a>>,
    #[serde(borrow)]
    class: Option<Text<'a>>,
    #[serde(borrow)]
    found: Vec<Found<'a>>,
    #[serde(borrow)]
    item: Option<Text<'a>>,
    #[serde(borrow)]
    methods: Vec<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    operation: Option<Text<'a>>,
    #[serde(borrow)]
    outcome: Option<Text<'a>>,
    #[serde(borrow)]
    principal: Who<'a>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    reasons: Vec<Text<'a>>,
    #[serde(borrow)]
    refs: Vec<Text<'a>>,
    #[serde(borrow)]
    rule: Option<Text<'a>>,
    #[serde(borrow)]
    state: Option<Text<'a>>,
    #[serde(borrow)]
    subject: Option<Text<'a>>,
    #[serde(borrow)]
    upstream: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Who<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    owner: Option<Text<'a>>,
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
pub(super) struct Listed(Option<BTreeSet<String>>);

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

    /// Adds all that there is of these.
    fn note<'t, 'a: 't>(
        &mut self,
        texts: impl IntoIterator<Item = impl IntoIterator<Item = &'t Text<'a>>>,
    ) {
        for Text(text) in texts.into_iter().flatten() {
            self.add(text);
        }
    }

    fn absorb(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some(all), Some(others)) => {
                all.extend(others);
                if all.len() > MOST {
                    self.0 = None;
                }
            }
            (_, None) => self.0 = None,
            (None, _) => {}
        }
    }

    fn covers(&self, held: &Self) -> bool {
        match (&self.0, &held.0) {
            (None, _) => true,
            (Some(all), Some(held)) => held.is_subset(all),
            (Some(_), None) => false,
        }
    }

    pub(super) fn may_hold(&self, asked: Option<&String>) -> bool {
        match (&self.0, asked) {
            (Some(all), Some(asked)) => all.contains(asked),
            _ => true,
        }
    }
}

impl Index {
    /// Of a segment as it is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn of(mut segment: impl io::BufRead) -> io::Result<Self> {
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
            if let Some(event) = event {
                index.read(event);
            }
        }
    }

    /// Lists what is in a further part of the segment, too.
    pub(super) fn absorb(&mut self, part: Self) {
        self.length += part.length;
        for time in [&part.since, &part.until] {
            self.note_time(time);
        }
        for (process, (least, most)) in &part.calls {
            self.note_call(process, *least);
            self.note_call(process, *most);
        }
        self.principals.absorb(part.principals);
        self.upstreams.absorb(part.upstreams);
        self.names.absorb(part.names);
        self.methods.absorb(part.methods);
        self.outcomes.absorb(part.outcomes);
        self.decisions.absorb(part.decisions);
        self.reasons.absorb(part.reasons);
        self.findings.absorb(part.findings);
        self.events.absorb(part.events);
    }

    /// Whether it leaves out nothing of what a segment holds, so that no query passes over any of that.
    pub(super) fn covers(&self, held: &Self) -> bool {
        let calls = |(process, (least, most)): (&String, &(u64, u64))| {
            let listed = self.calls.get(process);
            listed.is_some_and(|(first, last)| first <= least && last >= most)
        };
        // None has a time before all times.
        (held.since.is_empty() || self.since <= held.since && self.until >= held.until)
            && held.calls.iter().all(calls)
            && self.principals.covers(&held.principals)
            && self.upstreams.covers(&held.upstreams)
            && self.names.covers(&held.names)
            && self.methods.covers(&held.methods)
            && self.outcomes.covers(&held.outcomes)
            && self.decisions.covers(&held.decisions)
            && self.reasons.covers(&held.reasons)
            && self.findings.covers(&held.findings)
            && self.events.covers(&held.events)
    }

    /// Lists an event; nothing, where it is none of ours.
    pub(super) fn read(&mut self, event: &str) {
        if let Ok(brief) = serde_json::from_str(event) {
            self.add(&brief);
        }
    }

    fn add(&mut self, entry: &Brief<'_>) {
        self.note_time(&entry.time);
        self.events.add(&entry.event);
        let (target, beside) = (&entry.target, &entry.detail);
        for who in [&entry.principal, &beside.principal] {
            self.principals.add(&who.name);
            self.principals.note([&who.owner]);
        }
        self.principals.note([&beside.by]);
        let upstreams = [&target.upstream, &beside.upstream, &beside.subject];
        self.upstreams.note(upstreams);
        self.names.note([&target.exposed, &target.name]);
        self.names
            .note([&beside.subject, &beside.item, &beside.name]);
        self.names.note([&entry.watched, &entry.not_watched]);
        self.methods.note([&entry.method, &beside.operation]);
        self.methods.note([&beside.methods]);
        self.outcomes.note([
            &entry.outcome,
            &beside.outcome,
            &beside.state,
            &beside.action,
        ]);
        self.decisions.note([&entry.decision]);
        self.reasons
            .note([&entry.reason, &beside.reason, &beside.rule, &beside.cause]);
        self.reasons.note([&beside.reasons, &beside.checks]);
        self.findings.note([&beside.class, &beside.rule]);
        for Text(call) in entry.call.iter().chain(&beside.refs) {
            if let Some((process, number)) = parts(call) {
                self.note_call(process, number);
            }
        }
        for found in &beside.found {
            self.reasons.add(&found.rule);
        }
        for found in entry.findings.iter().chain(&beside.found) {
            self.findings.add(&found.class);
            self.findings.add(&found.rule);
        }
    }

    fn note_time(&mut self, time: &str) {
        if time.is_empty() {
            // None of ours; it is before nothing.
            return;
        }
        if self.since.is_empty() || *time < *self.since {
            self.since = time.to_owned();
        }
        if *time > *self.until {
            self.until.clear();
            self.until.push_str(time);
        }
    }

    fn note_call(&mut self, process: &str, number: u64) {
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
}

/// What is asked of the event of a call, told along with it so that nobody has to read it for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gist {
    /// When it was, as it says.
    pub time: SystemTime,
    /// The number of its call in this process.
    pub call: u64,
    /// Of all texts in it that are listed, and where they stand: equal where those are.
    pub texts: u64,
}

/// The index of a segment that is being written. Memory: at most [`MOST`] texts of a KiB in each of nine lists, and [`KNOWN`] hashes.
#[derive(Debug, Default)]
pub(super) struct Filling {
    index: Index,
    /// Whose texts are listed already.
    known: HashSet<u64>,
    /// The first and the last time, and the least and the greatest call, of events that were not read.
    times: Option<(SystemTime, SystemTime)>,
    calls: Option<(u64, u64)>,
}

impl Filling {
    /// Lists an event. Most differ from one before in nothing that is listed but their time and their call.
    pub(super) fn note(&mut self, event: &[u8], gist: Option<&Gist>) {
        let Some(gist) = gist.filter(|gist| self.known.contains(&gist.texts)) else {
            if let Ok(event) = str::from_utf8(event) {
                self.index.read(event);
            }
            if let Some(gist) = gist {
                if self.known.len() >= KNOWN {
                    self.known.clear();
                }
                self.known.insert(gist.texts);
            }
            return;
        };
        let Gist { time, call, .. } = *gist;
        let (since, until) = self.times.get_or_insert((time, time));
        (*since, *until) = (time.min(*since), time.max(*until));
        let (least, greatest) = self.calls.get_or_insert((call, call));
        (*least, *greatest) = (call.min(*least), call.max(*greatest));
    }

    /// The index of the whole segment, which has this length.
    pub(super) fn ended(self, length: u64) -> Index {
        let mut index = self.index;
        index.length = length;
        for time in self.times.iter().flat_map(|(since, until)| [since, until]) {
            index.note_time(&stamp(*time));
        }
        for number in self.calls.iter().flat_map(|(least, most)| [least, most]) {
            index.note_call(&process(), *number);
        }
        index
    }
}

/// The process and the number in a call's reference.
pub(super) fn parts(call: &str) -> Option<(&str, u64)> {
    let (process, number) = call.rsplit_once('-')?;
    Some((process, number.parse().ok()?))
}
