//! Verifying a log offline, with the public key and nothing else (SECURITY AUD-3, AUD-4).
//!
//! Guarantees: a byte that was changed, a record that was removed, put in, moved or doubled, a tail that was cut off before a
//! checkpoint held elsewhere, and a signature of another key are found, and the first of them is located. What cannot be proved
//! is said: records after the last checkpoint are only chained, and whoever can write the file could write others. Cost: reading
//! and hashing take as many threads as there are cores; no record is copied, and memory does not grow with the log.

mod fault;
mod reading;

#[cfg(test)]
mod closing;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt, fs,
    io::{self, BufRead},
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::IgnoredAny};

pub use fault::{Fault, Kind};

use super::{
    chain::{ChainPosition, Hash, Line, Tree},
    entry::Entry,
    index::Index,
    key::{Checkpoint, VerifyingKey},
    kind::Kind as Event,
    log::{
        CHECKPOINT, INDEX, RETENTION, SEGMENT, Segment, Signed, checkpoint_event,
        is_void_unless_durable, segments,
    },
    stamp::stamped,
};
use reading::{Hashed, Piece};

/// The most faults told, and the most runs; the first of them is the one that matters.
const FAULTS: usize = 100;
/// The most records after the last checkpoint that an honest log can have: those of one more, and what was written at once.
const UNSIGNED: u64 = 20_000;

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// Segments read.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records read, those that were written again not counted twice.
    pub records: u64,
    /// The first record that is there.
    pub first: u64,
    /// The last one.
    pub last: Option<ChainPosition>,
    /// When the first and the last one were written, by their own word: UTC, RFC 3339.
    pub since: String,
    /// See `since`.
    pub until: String,
    /// Checkpoints whose signature is right.
    pub checkpoints: u64,
    /// The last record that one of them covers; what is after it is chained and not signed.
    pub signed: u64,
    /// The last record that is proven: that one, or the checkpoint behind it, of which its own signature leaves nothing open but the
    /// time that it names. Until a later one covers it, or the record after it is signed, who can write the file can change that.
    pub proven: u64,
    /// Records before that one which none of them proves, first and last of each run, the first runs of them: whoever wrote them
    /// died before it signed them, or gave up the segment, and what was signed later only goes on from them.
    pub gaps: Vec<(u64, u64)>,
    /// How many records all such runs have.
    pub in_gaps: u64,
    /// The last record that a checkpoint held elsewhere covers, of those that are as that one says.
    pub outside: Option<u64>,
    /// The records of starts that found none of the records, or not all, that had been there before; the first of them.
    pub missing: Vec<u64>,
    /// What is wrong, in the order of the log; none if the log is whole.
    pub faults: Vec<Fault>,
}

/// Verifies the log in `directory`. `outside` are checkpoints that were kept elsewhere.
///
/// # Errors
/// When a file cannot be read.
pub fn verify(
    directory: &Path,
    keys: &[VerifyingKey],
    outside: &[Signed],
    mut progress: impl FnMut(u64),
) -> io::Result<Report> {
    let mut verifier = Verifier::new(keys, outside);
    let segments = segments(directory)?;
    reading::read(&segments, |piece| {
        verifier.piece(&segments, piece);
        progress(verifier.report.bytes);
    })?;
    Ok(verifier.end())
}

struct Verifier<'a> {
    keys: &'a [VerifyingKey],
    /// By the last record that they cover: of one number there may be several, where a segment was given up.
    outside: BTreeMap<u64, Vec<Elsewhere<'a>>>,
    report: Report,
    /// All runs of [`Report::gaps`]: one for each life that ended without an end.
    gaps: Vec<(u64, u64)>,
    last: Option<ChainPosition>,
    boot: String,
    /// The node that wrote the last record.
    node: String,
    /// Over the records since the last checkpoint; `None` where it cannot be known, or where a fault was told already.
    tree: Option<Tree>,
    /// What the first record of all names as the one before, where that is not there any more.
    removed: Option<ChainPosition>,
    /// The record that says that it was removed. It counts once a checkpoint covers it: who can write the file could write it.
    retained: Option<u64>,
    /// Events that have to come again, in this order, since the segment they stood in was given up.
    again: VecDeque<Vec<u8>>,
    /// What the segment holds that queries look for.
    held: Index,
    /// The segment before.
    before: Option<PathBuf>,
    file: PathBuf,
    line: u64,
    offset: u64,
}

/// A checkpoint held elsewhere, and whether its last record was met as it says.
struct Elsewhere<'a> {
    signed: &'a Signed,
    met: bool,
}

impl<'a> Verifier<'a> {
    fn new(keys: &'a [VerifyingKey], known: &'a [Signed]) -> Self {
        let mut outside: BTreeMap<u64, Vec<Elsewhere<'_>>> = BTreeMap::new();
        for signed in known {
            let of_its_record = outside.entry(signed.checkpoint.last.seq).or_default();
            if !of_its_record.iter().any(|one| one.signed == signed) {
                of_its_record.push(Elsewhere { signed, met: false });
            }
        }
        Self {
            keys,
            outside,
            report: Report::default(),
            gaps: Vec::new(),
            last: None,
            boot: String::new(),
            node: String::new(),
            tree: None,
            removed: None,
            retained: None,
            again: VecDeque::new(),
            held: Index::default(),
            before: None,
            file: PathBuf::new(),
            line: 0,
            offset: 0,
        }
    }

    fn piece(&mut self, segments: &[Segment], piece: &mut Piece) {
        let Some(segment) = segments.get(piece.segment) else {
            return;
        };
        if piece.offset == 0 {
            self.leave();
            self.before = Some(std::mem::replace(&mut self.file, segment.path.clone()));
            self.line = 0;
            self.report.segments += 1;
        }
        if let Some(part) = piece.index.take() {
            self.held.absorb(part);
        }
        let mut begin = 0;
        let mut last = None;
        for (n, hashed) in piece.lines.iter().enumerate() {
            self.line += 1;
            self.offset = piece.offset + begin as u64;
            if piece.torn && n + 1 == piece.lines.len() {
                self.fault(None, Kind::Torn);
                break;
            }
            let text = piece.text.get(begin..hashed.end).unwrap_or_default();
            match Line::parse(text) {
                Some(line) => {
                    self.record(&line, hashed, segment);
                    last = Some(line.event);
                }
                None => self.fault(None, Kind::Malformed),
            }
            begin = hashed.end + 1;
        }
        if let Some(entry) = last.and_then(Entry::parse) {
            self.report.until = entry.time;
        }
        self.report.bytes += piece.length;
    }

    /// Looks at the index of the segment that was read, if it has one.
    fn leave(&mut self) {
        let held = std::mem::take(&mut self.held);
        let index = Index::beside(&self.file);
        if index.is_some_and(|index| !index.covers(&held)) {
            let index = self.file.with_extension(INDEX);
            let segment = std::mem::replace(&mut self.file, index);
            (self.line, self.offset) = (1, 0);
            // The records are as they were.
            let tree = self.tree.take();
            self.fault(None, Kind::LeavesOut);
            (self.file, self.tree) = (segment, tree);
        }
    }

    fn record(&mut self, line: &Line<'_>, hashed: &Hashed, segment: &Segment) {
        let leaf = match hashed.hash {
            Some((hash, leaf)) if hash == line.hash => Some(leaf),
            _ => {
                self.fault(Some(line.seq), Kind::Changed);
                None
            }
        };
        let begins = line.event.starts_with(SEGMENT);
        let opening = begins.then(|| parse::<Opening>(line.event)).flatten();
        match self.last {
            None => self.first(line, segment),
            Some(last) => self.follow(line, last, opening.as_ref()),
        }
        if begins {
            let reason = opening.map(|opening| opening.segment.reason);
            let anew = reason.is_some_and(|reason| ANEW.contains(&reason.as_str()));
            if self.boot != line.boot || anew {
                // What was signed with records that are gone, or by somebody who has died since, is only chained.
                let whole = self.last.is_some() || line.seq == 1;
                self.tree = whole.then(Tree::default);
            }
        } else if self.boot != line.boot {
            self.fault(Some(line.seq), Kind::Foreign);
        }
        if self.boot != line.boot {
            line.boot.clone_into(&mut self.boot);
        }
        if line.event.starts_with(CHECKPOINT) {
            self.checkpoint(line);
        } else if line.event.starts_with(RETENTION) {
            self.retention(line);
        } else if !begins
            && let Some(expected) = self.again.pop_front()
            && expected != line.event
        {
            self.again.clear();
            self.fault(Some(line.seq), Kind::NotAgain);
        }
        if tells_of_missing(line.event) && self.report.missing.len() < FAULTS {
            self.report.missing.push(line.seq);
        }
        if let (Some(tree), Some(leaf)) = (&mut self.tree, leaf) {
            tree.grow(leaf);
        }
        self.compare(line);
        if self.node != line.node {
            line.node.clone_into(&mut self.node);
        }
        self.last = Some(line.place());
        self.report.records += 1;
    }

    fn first(&mut self, line: &Line<'_>, segment: &Segment) {
        self.report.first = line.seq;
        if let Some(entry) = Entry::parse(line.event) {
            self.report.since = entry.time;
        }
        if line.seq != segment.first {
            self.fault(
                Some(line.seq),
                Kind::Missing {
                    from: segment.first,
                    to: line.seq.saturating_sub(1),
                },
            );
        }
        if line.seq != 1 {
            self.removed = Some(ChainPosition {
                seq: line.seq - 1,
                hash: line.prev,
            });
        } else if line.prev != Hash::ZERO {
            self.fault(Some(1), Kind::Broken);
        }
    }

    fn follow(&mut self, line: &Line<'_>, last: ChainPosition, opening: Option<&Opening>) {
        if line.seq == last.seq + 1 && line.prev == last.hash {
            return;
        }
        if let Some(opening) = opening
            && GIVEN_UP.contains(&&*opening.segment.reason)
            && line.seq <= last.seq
            && self.line == 1
        {
            self.rewind(line);
            return;
        }
        let kind = match line.seq.cmp(&(last.seq + 1)) {
            std::cmp::Ordering::Greater => Kind::Missing {
                from: last.seq + 1,
                to: line.seq - 1,
            },
            std::cmp::Ordering::Less => Kind::OutOfOrder { after: last.seq },
            std::cmp::Ordering::Equal => Kind::Broken,
        };
        self.fault(Some(line.seq), kind);
    }

    /// The segment before was given up after a sync that failed: this one goes on at its last durable record.
    fn rewind(&mut self, line: &Line<'_>) {
        let from = line.seq - 1;
        let text = self.before.as_deref().map(fs::read);
        let text = text.and_then(Result::ok).unwrap_or_default();
        // A torn line at its end was not counted as a record.
        let (whole, _) = text.split_at(memchr::memrchr(b'\n', &text).unwrap_or(0));
        let mut again = VecDeque::new();
        let mut goes_on = false;
        for (n, old) in whole.split(|byte| *byte == b'\n').enumerate() {
            let Some(old) = Line::parse(old) else {
                continue;
            };
            let here = if n == 0 && old.seq == line.seq {
                // Nothing of that segment was durable.
                old.prev == line.prev
            } else {
                old.seq == from && old.hash == line.prev
            };
            goes_on |= here;
            if old.seq > from {
                self.report.records = self.report.records.saturating_sub(1);
                if !is_void_unless_durable(old.event) {
                    again.push_back(old.event.to_vec());
                }
            }
        }
        if !goes_on {
            self.fault(Some(line.seq), Kind::Broken);
            return;
        }
        self.retained = self.retained.filter(|seq| *seq <= from);
        // What was signed with records that were given up was read, and is signed.
        self.report.signed = self.report.signed.min(from);
        self.report.proven = self.report.proven.min(from);
        self.gaps.retain(|(first, _)| *first <= from);
        self.report.missing.retain(|seq| *seq <= from);
        // What is written again may be as was kept elsewhere, where what was given up is not; and what was is no record now.
        self.report.outside = self.report.outside.map(|seq| seq.min(from));
        let faults = &mut self.report.faults;
        faults.retain(|fault| {
            fault.kind != Kind::NotAsOutside || fault.seq.is_none_or(|seq| seq <= from)
        });
        again.append(&mut self.again);
        self.again = again;
    }

    /// Holds a record against the checkpoints that were kept elsewhere. One that was met before is of a segment that was given up:
    /// what it covers is there, and comes again with other hashes.
    fn compare(&mut self, line: &Line<'_>) {
        let Some(outside) = self.outside.get_mut(&line.seq) else {
            return;
        };
        for one in &mut *outside {
            if one.signed.checkpoint.last.hash == line.hash {
                one.met = true;
                self.report.outside = Some(line.seq);
            }
        }
        if outside.iter().any(|one| !one.met) {
            self.fault(Some(line.seq), Kind::NotAsOutside);
        }
    }

    fn checkpoint(&mut self, line: &Line<'_>) {
        let last = self.last.unwrap_or(ChainPosition::START);
        let tree = self.tree.replace(Tree::default());
        let Some(told) = parse::<Told>(line.event).map(|told| told.checkpoint) else {
            self.fault(Some(line.seq), Kind::Malformed);
            return;
        };
        let Some(checkpoint) = told.checkpoint() else {
            self.fault(Some(line.seq), Kind::Malformed);
            return;
        };
        let mut keys = self.keys.iter();
        let Some(key) = keys.find(|key| key.verifies(&checkpoint, &told.signature)) else {
            self.fault(
                Some(line.seq),
                Kind::NotSigned {
                    first: told.first,
                    last: told.last,
                },
            );
            return;
        };
        let ours = tree.is_none_or(|tree| {
            tree.root() == checkpoint.root
                && tree.count() == (checkpoint.last.seq + 1).saturating_sub(checkpoint.first)
        });
        if checkpoint.last != last || !ours {
            self.fault(
                Some(line.seq),
                Kind::NotAsSigned {
                    first: told.first,
                    last: told.last,
                },
            );
            return;
        }
        self.report.checkpoints += 1;
        self.gap(checkpoint.first);
        self.report.signed = told.last;
        let itself = told.is_all_of(line.event, key) && line.node == self.node;
        self.report.proven = told.last + u64::from(itself);
        // One that a gateway only went on from is chained to what it signed, and not signed.
        if self.retained.is_some_and(|seq| seq >= checkpoint.first) {
            self.removed = None;
        }
    }

    /// Notes what is not signed before a checkpoint that begins with this record.
    fn gap(&mut self, begin: u64) {
        let first = (self.report.proven + 1).max(self.report.first);
        if begin > first {
            self.gaps.push((first, begin - 1));
        }
    }

    fn retention(&mut self, line: &Line<'_>) {
        let told = parse::<Retention>(line.event).map(|told| told.retention);
        if let (Some(removed), Some(told)) = (self.removed, told) {
            // Of several segments that were to go some may be there yet: whoever removed them was stopped on the way.
            let halfway = removed.seq < told.last;
            let whole = told.last == removed.seq
                && Hash::parse(told.last_hash.as_bytes()) == Some(removed.hash);
            if halfway || whole {
                self.retained = Some(line.seq);
            }
        }
    }

    fn fault(&mut self, seq: Option<u64>, kind: Kind) {
        // What is signed over a fault does not fit: that is told already.
        self.tree = None;
        if self.report.faults.len() < FAULTS {
            self.report.faults.push(Fault {
                file: self.file.clone(),
                line: self.line,
                offset: self.offset,
                seq,
                kind,
            });
        }
    }

    fn end(mut self) -> Report {
        self.leave();
        let last = self.last.unwrap_or(ChainPosition::START);
        if let Some(removed) = self.removed {
            let to = removed.seq;
            let kind =
                self.retained
                    .map_or(Kind::Missing { from: 1, to }, |by| Kind::RemovalNotSigned {
                        to,
                        by,
                    });
            self.fault(None, kind);
        }
        if !self.again.is_empty() {
            self.fault(None, Kind::NotAgain);
        }
        let outside = std::mem::take(&mut self.outside).into_iter();
        let each = outside.flat_map(|(seq, all)| all.into_iter().map(move |one| (seq, one)));
        for (seq, Elsewhere { signed, met }) in each {
            let Signed {
                checkpoint,
                signature,
            } = signed;
            if !self
                .keys
                .iter()
                .any(|key| key.verifies(checkpoint, signature))
            {
                self.fault(None, Kind::OutsideNotSigned { seq });
            } else if seq > last.seq && !met {
                self.fault(
                    None,
                    Kind::Cut {
                        last: last.seq,
                        known: seq,
                    },
                );
            }
        }
        if last
            .seq
            .saturating_sub(self.report.signed.max(self.report.first))
            > UNSIGNED
        {
            self.fault(
                None,
                Kind::Unsigned {
                    after: self.report.signed,
                },
            );
        }
        self.report.last = self.last;
        let records = |(first, last): &(u64, u64)| last + 1 - first;
        self.report.in_gaps = self.gaps.iter().map(records).sum();
        self.gaps.truncate(FAULTS);
        self.report.gaps = self.gaps;
        self.report
    }
}

/// The reasons of a segment over which checkpoints do not reach back.
const ANEW: [&str; 5] = [GIVEN_UP[0], GIVEN_UP[1], "first", "recovery", "opened"];
/// The reasons of a segment that begins since the one before was given up; one that was removed may be there again.
const GIVEN_UP: [&str; 2] = ["sync_failed", "removed"];

fn parse<'a, T: Deserialize<'a>>(event: &'a [u8]) -> Option<T> {
    serde_json::from_slice(event).ok()
}

#[derive(Deserialize)]
struct Opening {
    segment: OpeningFields,
}

#[derive(Deserialize)]
struct OpeningFields {
    reason: String,
}

/// Whether this is of a start that says that records were gone.
fn tells_of_missing(event: &[u8]) -> bool {
    // Of calls none begins so, and they are many.
    let started = event.starts_with(b"{\"detail\":{").then(|| parse(event));
    started.flatten().is_some_and(|started: Started<'_>| {
        started.event == Event::Start.word() && started.detail.missing.is_some()
    })
}

#[derive(Deserialize)]
struct Started<'a> {
    event: &'a str,
    detail: StartedFields,
}

#[derive(Deserialize)]
struct StartedFields {
    missing: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Told {
    checkpoint: ToldFields,
}

/// A checkpoint as it is written.
#[derive(Deserialize)]
struct ToldFields {
    first: u64,
    last: u64,
    last_hash: String,
    root: String,
    signature: String,
}

/// When an event was, by its own word.
#[derive(Deserialize)]
struct Timed {
    time: String,
}

impl ToldFields {
    /// Whether an event says what a checkpoint of this key says and nothing else, but for its time, which is only of the form of
    /// one: the signature covers no more than what it signs.
    fn is_all_of(&self, event: &[u8], key: &VerifyingKey) -> bool {
        let (Some(checkpoint), Some(Timed { time })) = (self.checkpoint(), parse(event)) else {
            return false;
        };
        stamped(&time).is_some_and(|form| form == time)
            && checkpoint_event(&checkpoint, &self.signature, &key.to_string(), &time) == event
    }

    fn checkpoint(&self) -> Option<Checkpoint> {
        Some(Checkpoint {
            first: self.first,
            last: ChainPosition {
                seq: self.last,
                hash: Hash::parse(self.last_hash.as_bytes())?,
            },
            root: Hash::parse(self.root.as_bytes())?,
        })
    }
}

#[derive(Deserialize)]
struct Retention {
    retention: RetentionFields,
}

#[derive(Deserialize)]
struct RetentionFields {
    last: u64,
    last_hash: String,
}

/// The checkpoints in a text that was kept elsewhere, whatever else is in it: lines of the log, events of checkpoints, and lines
/// of the gateway's own logs.
///
/// # Errors
/// When it cannot be read.
pub fn checkpoints_in(text: impl BufRead) -> io::Result<Vec<Signed>> {
    let mut all = Vec::new();
    for line in text.split(b'\n') {
        let line = line?;
        let line = line.trim_ascii();
        let event = Line::parse(line).map_or(line, |line| line.event);
        let said = || logged(&String::from_utf8_lossy(line));
        all.extend(checkpoint_in(event).or_else(said));
    }
    Ok(all)
}

/// The checkpoint in an event.
fn checkpoint_in(event: &[u8]) -> Option<Signed> {
    let told = parse::<Told>(event)?.checkpoint;
    Some(Signed {
        checkpoint: told.checkpoint()?,
        signature: told.signature,
    })
}

/// How a line of the gateway's logs begins to tell of a checkpoint.
const LOGGED: &str = "audit checkpoint ";

impl fmt::Display for Signed {
    /// As a line of the gateway's logs tells of it; [`checkpoints_in`] finds it there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checkpoint { first, last, root } = &self.checkpoint;
        let (seq, hash, signature) = (last.seq, last.hash, &self.signature);
        write!(f, "{LOGGED}{first} {seq} {hash} {root} {signature}")
    }
}

fn logged(line: &str) -> Option<Signed> {
    let (_, rest) = line.split_once(LOGGED)?;
    let mut parts = rest.split([' ', '"', '\u{1b}']);
    let mut next = || parts.next();
    let first = next()?.parse().ok()?;
    let last = ChainPosition {
        seq: next()?.parse().ok()?,
        hash: Hash::parse(next()?.as_bytes())?,
    };
    let root = Hash::parse(next()?.as_bytes())?;
    Some(Signed {
        checkpoint: Checkpoint { first, last, root },
        signature: next()?.to_owned(),
    })
}
