//! The store: one file for each upstream, in lines of JSON.
//!
//! Guarantees: a record is written whole or not at all, mode 0600, in a directory that others may not write to; one that was
//! cut short, altered so that it reads as no record, or is beyond its bounds, is told of as such and never taken for an empty
//! one, so none is written that is beyond them; several processes may use one directory, one writes at a time. The files
//! hold definitions as servers wrote them, since what is compared and approved is every byte: a server that writes a secret into one
//! finds it here, and `usher pins` shows it without.
//! Deliberately absent: what the records mean.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use nix::fcntl::{Flock, FlockArg};

use super::{
    known::Known,
    pin::{Key, Pin},
    record::{INSTRUCTIONS, PINS, Record},
};
use crate::{
    json::{Json, Kind, Limits, Node},
    protocol::{UpstreamId, meta, methods::ListKind},
};

/// The most bytes of one file.
const FILE_BYTES: u64 = 128 << 20;
/// The first line, before the sorts of items that have been seen.
const VERSION: u64 = 1;
/// How the names of files end.
const ENDING: &str = ".pins";

/// Records on disk.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// Makes names of unfinished files differ.
    next: AtomicU64,
}

/// The store, of which nobody else writes meanwhile.
#[derive(Debug)]
pub struct Locked<'a> {
    store: &'a Store,
    _lock: Flock<File>,
}

/// Tells one state of a file from another without reading it.
pub(super) type Stamp = [i128; 5];
/// Which of it is the time of the inode.
const CHANGED: usize = 4;

/// Why records cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory or a file in it.
    #[error("`{}`: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Others may write to the directory, and so approve what they like.
    #[error("others may write to `{}`: chmod 700", .0.display())]
    Open(PathBuf),
    /// A file that is no record, or was cut short.
    #[error("`{}` is no record of pins (line {line}); move it away to begin anew, or put a copy in its place", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The first line that is wrong.
        line: usize,
    },
    /// A record that could not be read again.
    #[error("`{}` would be too long to be read again, and stays as it is", .0.display())]
    TooMuch(PathBuf),
}

impl Store {
    /// Opens the directory, and makes it if it is not there.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be used, or others may write to it.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        let at = |cause| StoreError::File {
            path: directory.clone(),
            cause,
        };
        match fs::metadata(&directory) {
            Ok(found) if found.permissions().mode() & 0o022 != 0 => {
                return Err(StoreError::Open(directory));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&directory)
                .map_err(at)?,
            Err(error) => return Err(at(error)),
        }
        let store = Self {
            directory,
            next: AtomicU64::new(0),
        };
        drop(store.lock()?);
        Ok(store)
    }

    /// Keeps others from writing. Waits for them first.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn lock(&self) -> Result<Locked<'_>, StoreError> {
        self.locked(FlockArg::LockExclusive)
            .map_err(|cause| self.of_lock(cause))
    }

    /// The same without waiting: `None` where somebody else writes.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub(super) fn try_lock(&self) -> Result<Option<Locked<'_>>, StoreError> {
        match self.locked(FlockArg::LockExclusiveNonblock) {
            Ok(locked) => Ok(Some(locked)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(cause) => Err(self.of_lock(cause)),
        }
    }

    fn locked(&self, how: FlockArg) -> io::Result<Locked<'_>> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.lock_file())?;
        let lock = Flock::lock(file, how).map_err(|(_, errno)| errno)?;
        Ok(Locked {
            store: self,
            _lock: lock,
        })
    }

    fn lock_file(&self) -> PathBuf {
        self.directory.join(".lock")
    }

    fn of_lock(&self, cause: io::Error) -> StoreError {
        let path = self.lock_file();
        StoreError::File { path, cause }
    }

    /// The record of an upstream, if there is one.
    ///
    /// # Errors
    /// [`StoreError::File`], [`StoreError::Unreadable`].
    pub fn read(&self, upstream: &UpstreamId) -> Result<Option<Record>, StoreError> {
        let path = self.path(upstream);
        let mut text = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(FILE_BYTES + 1).read_to_end(&mut text));
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(StoreError::File { path, cause }),
        }
        match record(&Bytes::from(text)) {
            Ok(record) => Ok(Some(record)),
            Err(line) => Err(StoreError::Unreadable { path, line }),
        }
    }

    /// The upstreams that have a record.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn upstreams(&self) -> Result<Vec<UpstreamId>, StoreError> {
        let list = fs::read_dir(&self.directory).map_err(|cause| StoreError::File {
            path: self.directory.clone(),
            cause,
        })?;
        let mut found: Vec<_> = list
            .filter_map(|entry| {
                let name = entry.ok()?.file_name().into_string().ok()?;
                UpstreamId::parse(name.strip_suffix(ENDING)?)
            })
            .collect();
        found.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        Ok(found)
    }

    /// What is seen of a record without reading it.
    pub(super) fn stamp(&self, upstream: &UpstreamId) -> Option<Stamp> {
        fs::metadata(self.path(upstream)).ok().as_ref().map(stamp)
    }

    fn path(&self, upstream: &UpstreamId) -> PathBuf {
        self.directory.join(format!("{upstream}{ENDING}"))
    }
}

impl Locked<'_> {
    /// Writes a record in the place of the one before, unless that cannot be read. The stamp is that of what was written: by
    /// it, what somebody puts in its place at the same moment is another.
    ///
    /// # Errors
    /// [`StoreError`]; then what was there is still there.
    pub(super) fn write(
        &self,
        upstream: &UpstreamId,
        record: &Record,
    ) -> Result<Stamp, StoreError> {
        self.store.read(upstream)?;
        let path = self.store.path(upstream);
        let lines = lines(record);
        if lines.len() as u64 > FILE_BYTES || record.pins.len() > PINS {
            return Err(StoreError::TooMuch(path));
        }
        let count = self.store.next.fetch_add(1, Ordering::Relaxed);
        let unfinished = format!(".{}-{count}", std::process::id());
        let unfinished = self.store.directory.join(unfinished);
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(&lines)?;
            file.sync_all()?;
            let ours = stamp(&file.metadata()?);
            fs::rename(&unfinished, &path)?;
            File::open(&self.store.directory)?.sync_all()?;
            Ok(ours)
        })();
        match written {
            // To be renamed changes the time of the inode, and nothing else.
            Ok(ours) => Ok(match self.store.stamp(upstream) {
                Some(now) if now[..CHANGED] == ours[..CHANGED] => now,
                _ => ours,
            }),
            Err(cause) => {
                drop(fs::remove_file(&unfinished));
                Err(StoreError::File { path, cause })
            }
        }
    }

    /// Reads a record, changes it, and writes it if that changed anything.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn change<T>(
        &self,
        upstream: &UpstreamId,
        change: impl FnOnce(&mut Record) -> T,
    ) -> Result<Option<T>, StoreError> {
        let Some(mut record) = self.store.read(upstream)? else {
            return Ok(None);
        };
        let before = record.clone();
        let result = change(&mut record);
        if record != before {
            self.write(upstream, &record)?;
        }
        Ok(Some(result))
    }
}

fn stamp(meta: &Metadata) -> Stamp {
    [
        i128::from(meta.ino()),
        i128::from(meta.len()),
        i128::from(meta.mtime()),
        i128::from(meta.mtime_nsec()),
        i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec()),
    ]
}

fn lines(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    let mut line = |json: &Json| {
        out.extend_from_slice(json.bytes());
        out.push(b'\n');
    };
    let sorts: Vec<_> = record.sorts.iter().map(|sort| Json::string(sort)).collect();
    line(&meta::object_of(&[
        ("version", Json::of(&VERSION)),
        ("seen", Json::array(&sorts)),
    ]));
    for ((sort, name), pin) in &record.pins {
        let mut members = vec![("sort", Json::string(sort)), ("name", Json::string(name))];
        for (member, known) in [("approved", &pin.approved), ("offered", &pin.seen)] {
            if let Some(known) = known {
                let mut about = vec![("digest", Json::string(&known.digest))];
                about.extend(known.text.clone().map(|text| ("definition", text)));
                members.push((member, meta::object_of(&about)));
            }
        }
        if pin.gone > 0 {
            members.push(("gone", Json::of(&pin.gone)));
        }
        members.extend(pin.like.as_deref().map(|like| ("like", Json::string(like))));
        members.extend(pin.held.as_deref().map(|why| ("held", Json::string(why))));
        line(&meta::object_of(&members));
    }
    line(&meta::object_of(&[("end", Json::of(&record.pins.len()))]));
    out
}

/// The record that these lines hold, or the first line that is wrong.
fn record(text: &Bytes) -> Result<Record, usize> {
    let body = text.strip_suffix(b"\n").ok_or(0_usize)?;
    let mut lines: Vec<Json> = Vec::new();
    for (at, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = Json::parse(text.slice_ref(line), &Limits::KNOWN);
        lines.push(line.map_err(|_| at + 1)?);
    }
    let ([head, pins @ ..], Some(end)) = (lines.as_slice(), lines.last()) else {
        return Err(1);
    };
    let pins = &pins[..pins.len().saturating_sub(1)];
    let count = end.root().member("end").and_then(Node::as_i64);
    if lines.len() < 2 || pins.len() > PINS || count != i64::try_from(pins.len()).ok() {
        return Err(lines.len());
    }
    let version = head.root().member("version").and_then(Node::as_i64);
    if version != i64::try_from(VERSION).ok() {
        return Err(1);
    }
    let seen = head.root().member("seen").ok_or(1_usize)?;
    let sorts: Option<BTreeSet<_>> = seen
        .elements()
        .map(|sort| of_word(&sort.as_str()?))
        .collect();
    let mut record = Record {
        sorts: sorts.ok_or(1_usize)?,
        pins: BTreeMap::new(),
    };
    for (at, line) in pins.iter().enumerate() {
        let (key, pin) = pin(line).ok_or(at + 2)?;
        if record.pins.insert(key, pin).is_some() {
            return Err(at + 2);
        }
    }
    Ok(record)
}

fn pin(line: &Json) -> Option<(Key, Pin)> {
    let root = line.root();
    let text = |member: &str| root.member(member).and_then(Node::as_str);
    let known = |member: &str| match root.member(member) {
        None => Some(None),
        Some(node) => {
            let definition = node
                .member("definition")
                .map(|text| line.slice(text).detached());
            let digest = node.member("digest")?.as_str()?.into_owned();
            // A text that was altered by hand would be shown for what it is not.
            if let Some(definition) = &definition
                && Known::of(definition).digest != digest
            {
                return None;
            }
            Some(Some(Known {
                digest,
                text: definition,
            }))
        }
    };
    let gone = match root.member("gone") {
        None => 0,
        Some(gone) if gone.kind() == Kind::Number => u64::try_from(gone.as_i64()?).ok()?,
        Some(_) => return None,
    };
    let pin = Pin {
        approved: known("approved")?,
        seen: known("offered")?,
        gone,
        like: text("like").map(|like| like.as_ref().into()),
        held: text("held").map(|why| why.as_ref().into()),
    };
    let is_something = pin.approved.is_some() || pin.seen.is_some();
    let key = (of_word(&text("sort")?)?, text("name")?.as_ref().into());
    is_something.then_some((key, pin))
}

/// The sort of this name.
fn of_word(word: &str) -> Option<&'static str> {
    let sorts = ListKind::EVERY.into_iter().map(ListKind::member);
    sorts.chain([INSTRUCTIONS]).find(|sort| *sort == word)
}
