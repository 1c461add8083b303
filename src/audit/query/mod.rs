//! Looking records up, segment by segment, the newest or the oldest first.
//!
//! Guarantees: what matches is found, and once, whatever an index says of its segment, since an index only ever rules segments
//! out that certainly hold nothing; whoever asks [for the newest](newest) may end it at any time, is told how far it came, and
//! goes on there without anything being read again. Cost: a segment that is ruled out costs nothing but its small index; in the
//! others a line is only taken apart when the rarest text that is asked for stands in it; memory is bounded. Deliberately
//! absent: proof. That is what [`verify`](super::verify) is for.

mod index;
mod pieces;

#[cfg(test)]
mod tests;

use std::{fs::File, io, ops::ControlFlow, path::Path};

use memchr::memmem::Finder;

use pieces::Pieces;

use super::{
    canonical,
    chain::Line,
    entry::{Detail, Entry},
    index::Index,
    log::{Segment, segments},
};

/// What is looked for. What is `None` does not matter; what is given has to match exactly. Records that are of no call say the same
/// among their details, and are found by it.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Not before this time, as records have it (UTC, RFC 3339; compared as text).
    pub since: Option<String>,
    /// Before this time.
    pub until: Option<String>,
    /// The name of who called or did it, or of who answers for them.
    pub principal: Option<String>,
    /// The upstream.
    pub upstream: Option<String>,
    /// The name of the tool, the prompt or the resource, as the client or as the upstream has it; one of the addresses of a listen; what
    /// else something was done to.
    pub name: Option<String>,
    /// The method.
    pub method: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// `permit` or `deny`.
    pub decision: Option<String>,
    /// The reason of a refusal, or what a credential did not stand up to.
    pub reason: Option<String>,
    /// The class or the rule of a finding.
    pub finding: Option<String>,
    /// The kind of event.
    pub event: Option<String>,
    /// The reference of a call, of the approval that it went by, or of what was refused before it was one.
    pub call: Option<String>,
}

/// Which end of the log comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The oldest record first.
    Oldest,
    /// The newest record first.
    Newest,
}

/// A record that was found.
#[derive(Debug)]
pub struct Hit<'a> {
    /// Its number.
    pub seq: u64,
    /// Its line, without its end.
    pub line: &'a [u8],
    /// Its event.
    pub event: &'a [u8],
    /// What of it is read back.
    pub entry: Entry,
}

/// Which part of the log a query for the newest is about, and how long it goes on.
pub struct Reach<'a> {
    /// Only records before this number.
    pub before: u64,
    /// Asked after each piece of the log that was looked at, of at most a few MiB: whether that is to be all.
    pub enough: &'a dyn Fn() -> bool,
}

impl Reach<'_> {
    /// All of it, to its end.
    pub const ALL: Self = Self {
        before: u64::MAX,
        enough: &|| false,
    };
}

/// Gives `found` every record that matches, until it breaks off.
///
/// # Errors
/// When a file cannot be read.
pub fn query(
    directory: &Path,
    filter: &Filter,
    order: Order,
    found: impl FnMut(Hit<'_>) -> ControlFlow<()>,
) -> io::Result<Scanned> {
    through(directory, filter, order, &Reach::ALL, found)
}

/// Gives `found` every record within `reach` that matches, the newest first, until it breaks off.
///
/// # Errors
/// When a file cannot be read.
pub fn newest(
    directory: &Path,
    filter: &Filter,
    reach: &Reach<'_>,
    found: impl FnMut(Hit<'_>) -> ControlFlow<()>,
) -> io::Result<Scanned> {
    through(directory, filter, Order::Newest, reach, found)
}

fn through(
    directory: &Path,
    filter: &Filter,
    order: Order,
    reach: &Reach<'_>,
    mut found: impl FnMut(Hit<'_>) -> ControlFlow<()>,
) -> io::Result<Scanned> {
    let filter = &filter.as_written();
    let mut scanned = Scanned::default();
    let mut all = with_ends(segments(directory)?);
    if order == Order::Newest {
        all.reverse();
    }
    let mut reached = reach.before;
    for (segment, end) in &all {
        let limit = reach.before.min(*end);
        if segment.first >= limit {
            continue;
        }
        if Index::beside(&segment.path).is_some_and(|index| !index.may_hold(filter)) {
            scanned.skipped += 1;
            reached = reached.min(segment.first);
            if (reach.enough)() {
                scanned.stopped = Some(reached);
                return Ok(scanned);
            }
            continue;
        }
        let file = match File::open(&segment.path) {
            // Retention may take it away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        scanned.read += 1;
        let mut pieces = Pieces::of(&file)?;
        if reach.before < *end {
            pieces.end_before(limit)?;
        }
        let mut counts = |hit: Hit<'_>| {
            if hit.seq < limit {
                found(hit)
            } else {
                ControlFlow::Continue(())
            }
        };
        let before = scanned.bytes;
        while let Some(text) = match order {
            Order::Oldest => pieces.towards_the_end()?,
            Order::Newest => pieces.towards_the_beginning()?,
        } {
            let ended = filter.scan(text, order, &mut counts).is_break();
            reached = reached.min(first_of(text).unwrap_or(u64::MAX));
            scanned.bytes = before + pieces.read();
            if ended {
                return Ok(scanned);
            }
            if (reach.enough)() {
                scanned.stopped = Some(reached);
                return Ok(scanned);
            }
        }
        scanned.bytes = before + pieces.read();
    }
    Ok(scanned)
}

/// The number of the first record of these lines.
fn first_of(text: &[u8]) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.find_map(|line| Some(Line::parse(line)?.seq))
}

/// Each segment and the number of the first record after those of it that count: what stands beyond was written again in the
/// next one, since the disk would not keep it.
fn with_ends(segments: Vec<Segment>) -> Vec<(Segment, u64)> {
    let mut end = u64::MAX;
    let mut all: Vec<_> = segments
        .into_iter()
        .rev()
        .map(|segment| {
            let its = end;
            end = end.min(segment.first);
            (segment, its)
        })
        .collect();
    all.reverse();
    all
}

/// A text as it stands in a record, quotes included.
fn written(text: &str, most: usize) -> Vec<u8> {
    let mut out = String::new();
    canonical::text(&mut out, text, most);
    out.into_bytes()
}

/// What a query cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Segments that were read.
    pub read: u64,
    /// Segments that an index ruled out.
    pub skipped: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Where it was ended because that was [enough](Reach::enough): of the records, those before this number were not looked at.
    pub stopped: Option<u64>,
}

/// The decision on whatever was let through.
const PERMIT: &str = "permit";

impl Filter {
    /// The same with each text as records have it: what a terminal would act upon is replaced there, and what is too long cut.
    pub fn as_written(&self) -> Self {
        let mut filter = self.clone();
        for text in filter.texts().into_iter().flatten() {
            if let Ok(written) = serde_json::from_slice(&written(text, canonical::TEXT)) {
                *text = written;
            }
        }
        filter
    }

    const fn texts(&mut self) -> [&mut Option<String>; 10] {
        [
            &mut self.principal,
            &mut self.upstream,
            &mut self.name,
            &mut self.method,
            &mut self.outcome,
            &mut self.decision,
            &mut self.reason,
            &mut self.finding,
            &mut self.event,
            &mut self.call,
        ]
    }

    fn scan(
        &self,
        text: &[u8],
        order: Order,
        found: &mut impl FnMut(Hit<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let needle = self.needle();
        let finder = needle.as_deref().map(Finder::new);
        let mut line = |line: &[u8]| {
            if finder
                .as_ref()
                .is_some_and(|finder| finder.find(line).is_none())
            {
                return ControlFlow::Continue(());
            }
            match self.matched(line) {
                Some(hit) => found(hit),
                None => ControlFlow::Continue(()),
            }
        };
        let mut rest = text;
        match order {
            Order::Oldest => {
                while let Some(feed) = memchr::memchr(b'\n', rest) {
                    let (this, after) = rest.split_at(feed);
                    line(this)?;
                    rest = after.get(1..).unwrap_or_default();
                }
            }
            Order::Newest => {
                while let Some(feed) = memchr::memrchr(b'\n', rest) {
                    rest = rest.get(..feed).unwrap_or_default();
                    let begin = memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1);
                    line(rest.get(begin..).unwrap_or_default())?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The longest text that stands in every line that matches, as it is written there.
    fn needle(&self) -> Option<Vec<u8>> {
        let mut filter = self.clone();
        filter.decision = self.decision_told().cloned();
        let asked = filter.texts().into_iter().flatten();
        let longest = asked.max_by_key(|text| text.len())?;
        // It was cut as records cut, if it was too long.
        Some(written(longest, usize::MAX / 2))
    }

    /// The record of this line, if it is one of those that are looked for.
    pub fn matched<'a>(&self, line: &'a [u8]) -> Option<Hit<'a>> {
        let parsed = Line::parse(line)?;
        let entry = Entry::parse(parsed.event)?;
        self.matches(&entry).then_some(Hit {
            seq: parsed.seq,
            line,
            event: parsed.event,
            entry,
        })
    }

    /// The decision on a call, by one of its records. That of its end does not repeat it, and stands for it where a call is
    /// looked for by both: whatever has two records was permitted.
    fn decided<'a>(&self, entry: &'a Entry) -> Option<&'a str> {
        let ended = self.asks_how_it_ended() && entry.stage.as_deref() == Some("outcome");
        entry.decision.as_deref().or(ended.then_some(PERMIT))
    }

    /// Whether only what tells how a call ended can match.
    const fn asks_how_it_ended(&self) -> bool {
        self.outcome.is_some() || self.finding.is_some() || self.reason.is_some()
    }

    /// The decision that a segment must hold a word of, if it must.
    fn decision_told(&self) -> Option<&String> {
        let implied = self.asks_how_it_ended() && self.decision.as_deref() == Some(PERMIT);
        self.decision.as_ref().filter(|_| !implied)
    }

    /// Whether a record is one of those that are looked for.
    pub fn matches(&self, entry: &Entry) -> bool {
        let is = |asked: &Option<String>, there: &[Option<&str>], beside: &[&str]| {
            asked.as_deref().is_none_or(|asked| {
                there.contains(&Some(asked)) || entry.detail.says(beside, asked)
            })
        };
        let (who, target) = (&entry.principal, &entry.target);
        let names = [target.exposed.as_deref(), target.name.as_deref()];
        let listened = |asked: &str| {
            let mut all = entry.watched.iter().chain(&entry.not_watched);
            all.any(|address| address == asked)
        };
        let found = |asked: &str| {
            let mut findings = entry.findings.iter();
            findings.any(|found| found.class == asked || found.rule == asked)
        };
        is(
            &self.principal,
            &[Some(&who.name), who.owner.as_deref()],
            Detail::WHO,
        ) && is(
            &self.upstream,
            &[target.upstream.as_deref()],
            Detail::UPSTREAM,
        ) && is(&self.method, &[entry.method.as_deref()], Detail::WHAT)
            && is(&self.outcome, &[entry.outcome.as_deref()], Detail::RESULT)
            && is(&self.decision, &[self.decided(entry)], &[])
            && is(&self.reason, &[entry.reason.as_deref()], Detail::REASON)
            && is(&self.event, &[Some(&entry.event)], &[])
            && is(
                &self.call,
                &[entry.call.as_deref(), entry.approval.reference.as_deref()],
                Detail::REFS,
            )
            && (self.name.as_deref().is_some_and(listened) || is(&self.name, &names, Detail::NAME))
            && (self.finding.as_deref().is_some_and(found)
                || is(&self.finding, &[], Detail::FINDING))
            && self.since.as_ref().is_none_or(|since| entry.time >= *since)
            && self.until.as_ref().is_none_or(|until| entry.time < *until)
    }
}
