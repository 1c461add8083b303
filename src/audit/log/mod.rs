//! The log: records in segments on disk, chained, signed, rotated, and never written over.
//!
//! Guarantees: what was appended is in the chain, in that order; a write that fails leaves no half record in the chain; a segment ends
//! where a sync of it fails, or where somebody removes or renames it, and everything not known to be durable is written again in
//! the next one (SECURITY AUD-7); a torn tail of the process before is cut at its last whole record, and the chain goes on from
//! there (AUD-5). The caller sees to it that one thread at a time writes. Deliberately absent: queues, waiting, and what is
//! recorded.

mod disk;
mod ended;
mod events;
mod given_up;
mod recover;
mod retention;
mod segment;
mod told;

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
pub(super) mod tests;

use std::{
    collections::VecDeque,
    fs, io, mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

pub use disk::{Appender, Disk, Storage, Streamed, Usage};
pub(in crate::audit) use disk::{is_full, replace, sync_directory};
pub use ended::Ended;
pub use events::Events;
pub use recover::{DAMAGED, Recovered};
pub(in crate::audit) use segment::INDEX;
pub use segment::{EXTENSION, Segment, segments};
pub(in crate::audit) use told::event;
pub(crate) use told::is_of_the_log;
pub(super) use told::{CHECKPOINT, RETENTION, SEGMENT, checkpoint_event, is_void_unless_durable};

use tokio::time::Instant;

use disk::Awaited;
use ended::without_index;
use recover::recover;
use told::{Begin, GivenUp, segment_event};

use super::{
    chain::{ChainPosition, Hash, Origin, Tree, link},
    index::{Filling, Gist, Index},
    key::{Checkpoint, SigningKey},
    stamp::stamp,
};

/// An event: the text of one canonical JSON object.
pub type Event = Vec<u8>;

/// How the log is cut and signed (SECURITY 6).
#[derive(Debug, Clone, Copy)]
pub struct Cuts {
    /// A segment ends when it is this long, in bytes. Default 64 MiB.
    pub segment: u64,
    /// And when it is this old, if it holds anything: what is kept too long is removed by whole segments. Default 24 h.
    pub age: Duration,
    /// A checkpoint is due after so many records. Default 1,000.
    pub records: u64,
    /// And after this time, if there was any record. Default 10 s.
    pub interval: Duration,
    /// Segments that ended longer ago are removed. Default 190 days (SECURITY AUD-10).
    pub retention: Duration,
}

impl Default for Cuts {
    fn default() -> Self {
        Self {
            segment: 64 << 20,
            age: Duration::from_secs(24 * 3_600),
            records: 1_000,
            interval: Duration::from_secs(10),
            retention: Duration::from_secs(190 * 24 * 3_600),
        }
    }
}

/// The log, open for writing.
pub struct Log {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    origin: Origin,
    key: SigningKey,
    cuts: Cuts,
    /// The segment that is written to; `None` after one was given up and before the next.
    open: Option<Open>,
    /// How the first segment is to begin, where there was no room for it when the log was opened.
    opening: Option<Begin>,
    /// Why the last one was given up, until the next begins; `None` where it was not.
    given_up: Option<GivenUp>,
    /// The last record that the operating system has.
    written: ChainPosition,
    /// The last record that survives a loss of power.
    synced: ChainPosition,
    /// The events of the records after `synced`, for writing them again.
    unsynced: Events,
    /// Over the records after the last checkpoint.
    tree: Tree,
    /// The record of the last checkpoint.
    checkpoint: ChainPosition,
    /// Those that nobody has taken, the oldest first.
    checkpoints: VecDeque<Signed>,
    /// Segments that ended and have no index yet.
    ended: Vec<Ended>,
    /// Segments that were given up with nothing in them that is durable: all of it is written again, and they go then.
    useless: Vec<PathBuf>,
    /// From when on segments may be removed again, after one could not be.
    retires_from: Option<Instant>,
    /// The name of the last segment: no other gets it, also when its file is gone.
    named: (u64, u32),
    /// What is written, before it is, and the hashes of it.
    buffer: Vec<u8>,
    hashes: Vec<Hash>,
}

struct Open {
    file: Arc<Awaited>,
    path: PathBuf,
    /// The number of its first record.
    first: u64,
    /// Whether it was found at its path when it was made: where it was not, its file system does not tell, and nobody asks.
    found: bool,
    length: u64,
    begun: SystemTime,
    /// Whether it holds more than its beginning.
    holds: bool,
    /// Its index so far; of a stream nobody asks for one.
    filling: Option<Filling>,
}

impl Open {
    /// Whether it is still at its path, as far as anybody can tell.
    fn is_there(&self) -> bool {
        !self.found || self.file.is_at(&self.path)
    }
}

/// A checkpoint and its signature, for keeping elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// What is signed.
    pub checkpoint: Checkpoint,
    /// The signature, in Base64.
    pub signature: String,
}

/// How far the log is.
pub struct Syncing {
    file: Arc<Awaited>,
    upto: ChainPosition,
}

impl Syncing {
    /// Waits for the disk. Needs no access to the log, which others may write to meanwhile.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait(&self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Log {
    /// Opens the log in `directory`, which is made if it is not there, and begins a segment. Where there is no room for that, it
    /// begins when there is: as where a disk gets full later, nothing can be written until then (SECURITY AUD-2).
    ///
    /// # Errors
    /// What the system says; nothing that was there is changed then, but for a torn tail.
    pub fn open(
        storage: Arc<dyn Storage>,
        directory: &Path,
        origin: Origin,
        key: SigningKey,
        cuts: Cuts,
    ) -> io::Result<(Self, Option<Recovered>)> {
        let (mut recovered, mut ended) = (None, Vec::new());
        if storage.keeps_files() {
            fs::create_dir_all(directory)?;
            recovered = recover(directory)?;
            ended = without_index(directory)?;
        }
        let last = recovered.map_or(ChainPosition::START, |recovered| recovered.last);
        let mut log = Self {
            storage,
            directory: directory.to_owned(),
            origin,
            key,
            cuts,
            open: None,
            opening: None,
            given_up: None,
            written: last,
            synced: last,
            unsynced: Events::default(),
            tree: Tree::default(),
            checkpoint: ChainPosition::START,
            checkpoints: VecDeque::new(),
            ended,
            useless: Vec::new(),
            retires_from: None,
            named: (0, 0),
            buffer: Vec::new(),
            hashes: Vec::new(),
        };
        let torn = recovered.map_or(0, |recovered| recovered.cut);
        let begin = Begin {
            opens: true,
            torn,
            ..Begin::default()
        };
        match log.begin(begin) {
            Err(error) if is_full(&error) => log.opening = Some(begin),
            begun => {
                begun?;
                log.retire();
            }
        }
        Ok((log, recovered))
    }

    /// Hands events to the operating system, in this order. When it returns they survive the death of this process.
    ///
    /// # Errors
    /// What the system says: none of the events is in the log then.
    pub fn append(&mut self, events: &Events) -> io::Result<()> {
        self.room()?;
        self.write(events.iter())?;
        if let Some(open) = &mut self.open {
            open.holds = true;
        }
        self.unsynced.append(events);
        if self.tree.count() >= self.cuts.records {
            // The events are in the log, whatever becomes of this; it is tried again with the next ones.
            _ = self.sign();
        }
        Ok(())
    }

    /// A segment that has room.
    fn room(&mut self) -> io::Result<()> {
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.length >= self.cuts.segment)
        {
            self.rotate()?;
        }
        self.reopen()
    }

    /// Signs what is not signed yet, if there is anything but the last checkpoint: that proves itself, and where nothing happens
    /// nobody has to sign signatures for ever.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn sign(&mut self) -> io::Result<()> {
        let nothing_new = self.tree.count() == 1 && self.written == self.checkpoint;
        if self.tree.count() == 0 || nothing_new {
            return Ok(());
        }
        self.reopen()?;
        let checkpoint = Checkpoint {
            first: self.written.seq + 1 - self.tree.count(),
            last: self.written,
            root: self.tree.root(),
        };
        let signature = self.key.sign(&checkpoint);
        let key = self.key.public().to_string();
        let event = checkpoint_event(&checkpoint, &signature, &key, &stamp(SystemTime::now()));
        // It covers what is before it; the next one begins with it.
        let before = mem::take(&mut self.tree);
        if let Err(error) = self.write([(&*event, None)]) {
            self.tree = before;
            return Err(error);
        }
        self.checkpoint = self.written;
        self.unsynced.push(&event, None);
        self.checkpoints.push_back(Signed {
            checkpoint,
            signature,
        });
        Ok(())
    }

    /// The oldest checkpoint that has not been taken yet, once what it covers is durable: until then that may have to be written
    /// again, with other hashes, and who kept the checkpoint elsewhere would take it for a forgery.
    pub fn take_checkpoint(&mut self) -> Option<Signed> {
        let durable = self.synced.seq;
        self.checkpoints
            .pop_front_if(|signed| signed.checkpoint.last.seq <= durable)
    }

    /// What to wait for so that all that is written now becomes durable; `None` if it is.
    pub fn syncing(&self) -> Option<Syncing> {
        let open = self.open.as_ref()?;
        (self.synced != self.written).then(|| Syncing {
            file: open.file.clone(),
            upto: self.written,
        })
    }

    /// Tells what became of a wait.
    ///
    /// # Errors
    /// When the next segment cannot be begun after a sync that failed; see [`Log::reopen`].
    pub fn synced(&mut self, syncing: &Syncing, result: &io::Result<()>) -> io::Result<()> {
        let ours = self
            .open
            .as_ref()
            .is_some_and(|open| Arc::ptr_eq(&open.file, &syncing.file));
        if !ours {
            // The segment was ended meanwhile, when all of it was durable, or given up, and what was not is written again: the
            // failure of one wait is that of all.
            return Ok(());
        }
        match result {
            Ok(()) => {
                let more = syncing.upto.seq.saturating_sub(self.synced.seq);
                let more = usize::try_from(more).unwrap_or(usize::MAX);
                self.unsynced.remove_first(more);
                self.synced = syncing.upto;
                Ok(())
            }
            Err(_) => {
                self.give_up();
                self.reopen()
            }
        }
    }

    /// How many bytes wait to become durable.
    pub fn unsynced(&self) -> usize {
        self.unsynced.bytes()
    }

    /// The last record that the operating system has.
    pub const fn written(&self) -> ChainPosition {
        self.written
    }

    /// The last record that survives a loss of power.
    pub const fn durable(&self) -> ChainPosition {
        self.synced
    }

    /// Ends the segment, durable and signed, and removes those that are too old.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn rotate(&mut self) -> io::Result<()> {
        self.look()?;
        self.sign()?;
        if let Some(syncing) = self.syncing() {
            let result = syncing.wait();
            self.synced(&syncing, &result)?;
            result?;
        }
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        // It has ended, whether the next one can be begun now or later.
        let index = open.filling.map(|filling| filling.ended(open.length));
        self.end(open.path, index);
        self.begin(Begin::default())?;
        self.retire();
        Ok(())
    }

    /// Ends the segment if it is old, and removes what is kept too long. To be called now and then.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn tidy(&mut self) -> io::Result<()> {
        self.reopen()?;
        let old = self.open.as_ref().is_some_and(|open| {
            open.holds && open.begun.elapsed().unwrap_or_default() >= self.cuts.age
        });
        if old {
            return self.rotate();
        }
        self.retire();
        Ok(())
    }

    /// The segments that ended since this was asked, for which an index is to be [written](Ended::write_index); the log need not be held
    /// for that.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        mem::take(&mut self.ended)
    }

    /// How full the disk is.
    ///
    /// # Errors
    /// What the system says.
    pub fn usage(&self) -> io::Result<Usage> {
        self.storage.usage(&self.directory)
    }

    /// Where nothing is kept in files there is no segment to index, and no place for an index.
    fn end(&mut self, path: PathBuf, index: Option<Index>) {
        if self.storage.keeps_files() {
            self.ended.push(Ended::of(path, index));
        }
    }

    /// Removes a segment that holds nothing. A stream has none, whatever stands at that path.
    fn discard(&self, path: &Path) {
        if self.storage.keeps_files() {
            // Left behind, it is one more that was given up.
            _ = self.storage.remove(path);
        }
    }

    fn begin(&mut self, begin: Begin) -> io::Result<()> {
        let first = self.written.seq + 1;
        let mut turn = match self.named {
            (before, turn) if before == first => (turn + 1) % TURNS,
            _ => 0,
        };
        let mut tried = 1;
        let (file, path) = loop {
            let path = self.directory.join(segment::name(first, turn));
            match self.storage.create(&path) {
                Ok(file) => break (Arc::new(Awaited::new(file)), path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < TURNS => {
                    turn = (turn + 1) % TURNS;
                    tried += 1;
                }
                Err(error) => return Err(error),
            }
        };
        self.named = (first, turn);
        let found = file.is_at(&path);
        if !found {
            tracing::warn!(
                segment = %path.display(),
                "this file system does not tell whether a file is still the one that was made: nobody notices if the audit log is \
                 removed or renamed while it is written"
            );
        }
        self.open = Some(Open {
            found,
            file,
            path: path.clone(),
            first,
            length: 0,
            begun: SystemTime::now(),
            holds: false,
            filling: self.storage.keeps_files().then(Filling::default),
        });
        let event = segment_event(&begin, self.written, &self.key.public().to_string());
        let given_up = self.given_up;
        if let Err(error) = self.write([(&*event, None)]) {
            // It never began, so there is nothing to say of it: only of the one before.
            self.open = None;
            self.given_up = given_up;
            self.useless.retain(|useless| *useless != path);
            self.discard(&path);
            return Err(error);
        }
        self.unsynced.push(&event, None);
        Ok(())
    }

    /// Writes records and counts them in; all of them or none.
    fn write<'a>(
        &mut self,
        events: impl IntoIterator<Item = (&'a [u8], Option<&'a Gist>)>,
    ) -> io::Result<()> {
        let Some(open) = &mut self.open else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        self.buffer.clear();
        self.hashes.clear();
        let mut last = self.written;
        for (event, gist) in events {
            last = link(&mut self.buffer, event, &last, &self.origin);
            self.hashes.push(last.hash);
            if let Some(filling) = &mut open.filling {
                filling.note(event, gist);
            }
        }
        if let Err(error) = open.file.append(&self.buffer, open.length) {
            // Half a record must not stay; where it cannot be cut off, the segment ends here.
            if open.file.truncate(open.length).is_err() {
                self.give_up();
            }
            return Err(error);
        }
        open.length += self.buffer.len() as u64;
        self.buffer.shrink_to(BUFFER);
        self.hashes.shrink_to(HASHES);
        self.written = last;
        for hash in &self.hashes {
            self.tree.push(hash);
        }
        Ok(())
    }
}

/// How many segments may begin with the same record.
const TURNS: u32 = 10_000;
/// What is kept of the buffer between writes.
const BUFFER: usize = 1 << 20;
/// And of the hashes.
const HASHES: usize = 1 << 10;
