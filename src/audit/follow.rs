//! Following the log from a record on, across its segments, as it is written: for sinks, for exports and for who watches.
//!
//! Guarantees: every record after the one begun with is given at least once and in order, as long as retention has not removed
//! it, which is counted; only whole records are given; memory is bounded. What was written again after a disk failed is given
//! again (SECURITY AUD-9: at least once). Deliberately absent: waiting, and proof.

use std::{
    fs::File,
    io::{self, ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use super::{
    chain::Line,
    log::{Segment, segments},
};

/// What is read at once, in bytes.
const READ: usize = 256 << 10;
/// A line that is longer is no record, and passed over.
const LONGEST: usize = 4 << 20;

/// Reads the log on and on.
#[derive(Debug)]
pub struct Follower {
    directory: PathBuf,
    /// The number of the record that is wanted next.
    next: u64,
    open: Option<Open>,
    /// What was read and not given yet.
    rest: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    segment: Segment,
    file: File,
    /// Whether this is the segment it was begun with, whose first records are not wanted.
    begun: bool,
}

/// Records that were read together: whole lines.
#[derive(Debug, Default)]
pub struct Batch {
    text: Vec<u8>,
    count: usize,
    /// The number of the last of them; if there is none, of the last that was given before.
    pub last: u64,
    /// How many records before them are gone: retention was faster.
    pub missed: u64,
}

impl Batch {
    /// The records, each as its line without the feed.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.text.split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty())
    }

    /// The records with their feeds, as they stand in the file.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The name of the node that wrote the first of them.
    pub fn node(&self) -> &str {
        let first = self.lines().next();
        first.and_then(Line::parse).map_or("", |line| line.node)
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The two halves of it, for who cannot take it whole.
    pub fn halves(&self) -> (Self, Self) {
        let mut halves = (Self::default(), Self::default());
        for (n, line) in self.lines().enumerate() {
            let half = if n < self.count / 2 {
                &mut halves.0
            } else {
                &mut halves.1
            };
            half.add(line, seq_of(line));
        }
        halves
    }

    fn add(&mut self, line: &[u8], seq: u64) {
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        self.count += 1;
        self.last = seq;
    }
}

fn seq_of(line: &[u8]) -> u64 {
    Line::parse(line).map_or(0, |line| line.seq)
}

impl Follower {
    /// Follows from the record after `seq` on; 0 for all that there are.
    pub fn after(directory: &Path, seq: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            next: seq.saturating_add(1),
            open: None,
            rest: Vec::new(),
        }
    }

    /// The same from where it is, with nothing open: for after a failure.
    pub(super) fn again(self) -> Self {
        Self::after(&self.directory, self.next - 1)
    }

    /// What is there now, at most `count` records and about `bytes`; empty when all that is there was given.
    ///
    /// # Errors
    /// When the log cannot be read. It may be tried again.
    pub fn read(&mut self, count: usize, bytes: usize) -> io::Result<Batch> {
        let mut batch = Batch {
            last: self.next - 1,
            ..Batch::default()
        };
        match self.fill(&mut batch, count, bytes) {
            // What was taken is given; the failure comes again.
            Err(error) if batch.is_empty() => Err(error),
            Ok(()) | Err(_) => Ok(batch),
        }
    }

    fn fill(&mut self, batch: &mut Batch, count: usize, bytes: usize) -> io::Result<()> {
        loop {
            if self.take(batch, count, bytes) {
                return Ok(());
            }
            if self.open.is_none() && !self.find(batch)? {
                return Ok(());
            }
            if self.more()? {
                continue;
            }
            // The end of this segment, for now or for good: whoever began the next one has finished this one.
            let Some(newer) = self.newer()? else {
                return Ok(());
            };
            if self.more()? {
                continue;
            }
            if !batch.is_empty() {
                return Ok(());
            }
            self.open = Some(opened(newer, false)?);
            self.begin(batch);
        }
    }

    /// Takes whole lines out of what was read; whether that is enough.
    fn take(&mut self, batch: &mut Batch, count: usize, bytes: usize) -> bool {
        let mut begin = 0;
        let mut enough = false;
        while let Some(end) = memchr::memchr(b'\n', self.rest.get(begin..).unwrap_or_default()) {
            if batch.count >= count || batch.text.len() >= bytes {
                enough = true;
                break;
            }
            let line = self.rest.get(begin..begin + end).unwrap_or_default();
            begin += end + 1;
            let Some(parsed) = Line::parse(line) else {
                continue;
            };
            let skip = self.open.as_ref().is_some_and(|open| open.begun);
            if skip && parsed.seq < self.next {
                continue;
            }
            if batch.is_empty() && parsed.seq > self.next {
                batch.missed += parsed.seq - self.next;
            }
            self.next = parsed.seq + 1;
            batch.add(line, parsed.seq);
        }
        self.rest.drain(..begin);
        if self.rest.len() > LONGEST {
            self.rest.clear();
        }
        enough
    }

    /// Reads on in the segment; whether there was anything.
    fn more(&mut self) -> io::Result<bool> {
        let Some(open) = &mut self.open else {
            return Ok(false);
        };
        let limit = READ as u64;
        Ok((&mut open.file).take(limit).read_to_end(&mut self.rest)? > 0)
    }

    /// Opens the segment that the next record is in; whether there is any.
    fn find(&mut self, batch: &mut Batch) -> io::Result<bool> {
        let all = match segments(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            all => all?,
        };
        let after = all.partition_point(|segment| segment.first <= self.next);
        let mut candidates = all.into_iter().skip(after.saturating_sub(1));
        let Some(segment) = candidates.next() else {
            return Ok(false);
        };
        self.open = Some(opened(segment, true)?);
        self.begin(batch);
        Ok(true)
    }

    /// Notes what is gone before the segment that was just opened, or is there again.
    fn begin(&mut self, batch: &mut Batch) {
        self.rest.clear();
        let Some(open) = &self.open else { return };
        let first = open.segment.first;
        if first > self.next {
            batch.missed += first - self.next;
        }
        if first > self.next || !open.begun {
            self.next = first;
        }
    }

    /// The segment after the one that is read.
    fn newer(&self) -> io::Result<Option<Segment>> {
        let Some(open) = &self.open else {
            return Ok(None);
        };
        let ours = &open.segment;
        let all = segments(&self.directory)?.into_iter();
        let mut newer = all.filter(|other| (other.first, &other.path) > (ours.first, &ours.path));
        Ok(newer.next())
    }
}

fn opened(segment: Segment, begun: bool) -> io::Result<Open> {
    let file = File::open(&segment.path)?;
    Ok(Open {
        segment,
        file,
        begun,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::Ordering::Relaxed};

    use super::*;
    use crate::audit::{
        key::SigningKey,
        log::{
            Cuts, Log,
            testing::{Faulty, Shared, happened, origin},
        },
    };

    fn log(directory: &Path, faulty: &Arc<Faulty>, segment: u64) -> Log {
        let disk = Arc::new(Shared(faulty.clone()));
        let cuts = Cuts {
            segment,
            ..Cuts::default()
        };
        let key = SigningKey::generate().0;
        Log::open(disk, directory, origin(), key, cuts).unwrap().0
    }

    fn seqs(batch: &Batch) -> Vec<u64> {
        batch.lines().map(seq_of).collect()
    }

    #[test]
    fn every_record_is_given_once_and_in_order_while_the_log_grows_and_turns() {
        for (segment, count) in [(u64::MAX, 3), (1, 1), (2_000, 5), (2_000, 1_000)] {
            let directory = tempfile::tempdir().unwrap();
            let mut follower = Follower::after(directory.path(), 0);
            assert!(follower.read(count, READ).unwrap().is_empty());
            let mut log = log(directory.path(), &Arc::default(), segment);
            let mut all = Vec::new();
            for n in 0..40 {
                log.append(&[happened(n)].into()).unwrap();
                if n % 3 == 0 {
                    loop {
                        let batch = follower.read(count, READ).unwrap();
                        assert!(batch.count() <= count && batch.missed == 0);
                        all.extend(seqs(&batch));
                        assert_eq!(batch.last, all.last().copied().unwrap_or(0));
                        if batch.is_empty() {
                            break;
                        }
                    }
                }
            }
            assert_eq!(all, (1..=log.written().seq).collect::<Vec<_>>());
            for after in [0, 1, 7, log.written().seq] {
                let mut late = Follower::after(directory.path(), after);
                let mut all = Vec::new();
                while let Ok(batch) = late.read(9, READ)
                    && !batch.is_empty()
                {
                    all.extend(seqs(&batch));
                }
                assert_eq!(all, (after + 1..=log.written().seq).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn half_a_record_waits_for_its_other_half() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = log(directory.path(), &Arc::default(), u64::MAX);
        log.append(&[happened(0)].into()).unwrap();
        let path = segments(directory.path()).unwrap().remove(0).path;
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 10]).unwrap();
        let mut follower = Follower::after(directory.path(), 0);
        assert_eq!(seqs(&follower.read(9, READ).unwrap()), [1]);
        assert!(follower.read(9, READ).unwrap().is_empty());
        std::fs::write(&path, &text).unwrap();
        assert_eq!(seqs(&follower.read(9, READ).unwrap()), [2]);
    }

    #[test]
    fn what_retention_removed_is_counted_and_what_was_written_again_is_given_again() {
        let directory = tempfile::tempdir().unwrap();
        let faulty = Arc::new(Faulty::default());
        faulty.keeps.store(true, Relaxed);
        let mut log = log(directory.path(), &faulty, u64::MAX);
        for n in 0..5 {
            log.append(&[happened(n)].into()).unwrap();
        }
        let mut follower = Follower::after(directory.path(), 0);
        assert_eq!(follower.read(99, READ).unwrap().count(), 6);
        faulty.lying.store(1, Relaxed);
        let syncing = log.syncing().unwrap();
        log.synced(&syncing, &syncing.wait()).unwrap();
        let again = follower.read(99, READ).unwrap();
        assert_eq!((seqs(&again), again.missed), ((1..=6).collect(), 0));
        log.rotate().unwrap();
        log.append(&[happened(5)].into()).unwrap();
        let all = segments(directory.path()).unwrap();
        let last = &all[all.len() - 1];
        for segment in &all[..all.len() - 1] {
            std::fs::remove_file(&segment.path).unwrap();
        }
        let mut late = Follower::after(directory.path(), 2);
        let batch = late.read(99, READ).unwrap();
        assert_eq!(batch.missed, last.first - 3);
        assert_eq!(seqs(&batch)[0], last.first);
    }

    #[test]
    fn a_batch_falls_into_two_halves() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = log(directory.path(), &Arc::default(), u64::MAX);
        for n in 0..4 {
            log.append(&[happened(n)].into()).unwrap();
        }
        let batch = Follower::after(directory.path(), 0).read(9, READ).unwrap();
        let (one, two) = batch.halves();
        assert_eq!((seqs(&one), seqs(&two)), (vec![1, 2], vec![3, 4, 5]));
        assert_eq!((one.last, two.last), (2, 5));
    }
}
