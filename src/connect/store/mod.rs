//! The store: records sealed one by one, in memory or in a directory of files.
//!
//! Guarantees: nothing is on disk but sealed text, not even whose it is; a file opens only under its own name and with one of
//! our keys; each is written whole or not at all, mode 0600; what is in its place is kept, and a disk that does not say that it outlives
//! a failure of the machine is told of; what a revocation removed is not brought back by a refresh that
//! was under way, and what somebody else has written meanwhile is neither replaced nor removed by it; two processes may use one
//! directory. Bound: 10,000 records; then no new one is taken. Deliberately absent:
//! what the records mean.

#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use aws_lc_rs::digest::{SHA256, digest};
use nix::fcntl::{Flock, FlockArg};
use secrecy::ExposeSecret;
use zeroize::Zeroizing;

use super::spec::StoreSpec;
use crate::seal::{Purpose, Sealer};

/// The most records.
pub const RECORDS: usize = 10_000;
/// The most bytes of one file; ours are shorter.
const FILE_BYTES: u64 = 256 << 10;
/// What every file begins with.
const HEAD: &str = "usher-connection-1 ";
/// How the names of files end.
const ENDING: &str = ".sealed";

/// What a record is known by: its kind, and two texts of that kind's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The kind of record.
    pub kind: &'static str,
    /// Whose it is.
    pub whose: String,
    /// What it is for.
    pub place: String,
}

/// A record that was read.
#[derive(Debug)]
pub struct Record {
    /// Whose and what for.
    pub key: Key,
    /// What it says.
    pub plain: Zeroizing<Vec<u8>>,
}

/// What a directory held when it was read.
#[derive(Debug, Default)]
pub struct Contents {
    /// Everything that opens.
    pub records: Vec<Record>,
    /// How many files do not: sealed with another key, damaged, or too many.
    pub strange: usize,
    /// How many files, or entries of the directory, are there and could not be read this time.
    pub unread: usize,
}

/// What became of a change to a record as it was known.
#[derive(Debug)]
pub enum Change {
    /// It was made.
    Made,
    /// There is no such record any more, because somebody removed it.
    Gone,
    /// Somebody has written another one: what that says.
    Other(Zeroizing<Vec<u8>>),
}

/// Why something could not be kept or read.
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
    /// Others may look into the directory.
    #[error("others may look into `{}`: chmod 700", .0.display())]
    Open(PathBuf),
    /// There is no room for another record.
    #[error("the store is full")]
    Full,
}

/// Sealed records on disk.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// The first seals, all open.
    sealers: Vec<Sealer>,
    /// Makes names of unfinished files differ.
    next: AtomicU64,
    /// Has a directory itself survive a failure of the machine: [`sync`], or what a test says.
    sync: fn(&Path) -> io::Result<()>,
}

/// When a directory was last changed, by the clock of its file system: a change in the same tick as the one before leaves it as it
/// was, and so does one of a file's own contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(i64, i64);

impl Store {
    /// Opens the directory, and makes it if it is not there.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be used, or others may look into it.
    pub fn open(spec: &StoreSpec) -> Result<Self, StoreError> {
        let directory = spec.directory.clone();
        let at = |cause| StoreError::File {
            path: directory.clone(),
            cause,
        };
        match fs::metadata(&directory) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
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
            sealers: spec
                .keys
                .iter()
                .map(|key| Sealer::new(key.expose_secret().as_bytes()))
                .collect(),
            directory,
            next: AtomicU64::new(0),
            sync,
        };
        let lock = store.lock()?;
        store.remove_unfinished(&lock);
        drop(lock);
        Ok(store)
    }

    /// Removes what processes left that ended while they wrote. Nobody writes while the lock is held.
    fn remove_unfinished(&self, _lock: &Flock<File>) {
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        for entry in entries.flatten() {
            if entry.file_name().to_str().is_some_and(is_unfinished) {
                // One that stays is in nobody's way.
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// What the directory holds.
    ///
    /// # Errors
    /// [`StoreError::File`] when the directory cannot be read.
    pub fn read(&self) -> Result<Contents, StoreError> {
        let (names, unread) = self.names()?;
        let mut contents = Contents {
            unread,
            ..Contents::default()
        };
        for name in names {
            match self.record(&name) {
                Ok(Some(record)) if contents.records.len() < RECORDS => {
                    contents.records.push(record);
                }
                Ok(_) => contents.strange += 1,
                // Removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => contents.unread += 1,
            }
        }
        Ok(contents)
    }

    /// When the directory was changed last.
    pub fn stamp(&self) -> Option<Stamp> {
        let found = fs::metadata(&self.directory).ok()?;
        Some(Stamp(found.mtime(), found.mtime_nsec()))
    }

    /// Keeps a record, in the place of the one before.
    ///
    /// # Errors
    /// [`StoreError`]; then what was kept before is still kept.
    pub fn put(&self, key: &Key, plain: &[u8]) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let name = name_of(key);
        if !self.directory.join(&name).exists() && self.names()?.0.len() >= RECORDS {
            return Err(StoreError::Full);
        }
        self.write(&name, key, plain)
    }

    /// The record of this key, if there is one that opens.
    ///
    /// # Errors
    /// [`StoreError::File`] when it cannot be read, which says nothing of whether there is one.
    pub fn find(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let name = name_of(key);
        match self.record(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map_err(|cause| self.file_failed(&name, cause)),
        }
    }

    /// Keeps a record in the place of the one before, of which `known` says whether it is the one that was known. One that
    /// cannot be read makes room, too: what is kept is newer than all that was known.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn replace(
        &self,
        key: &Key,
        known: impl FnOnce(&[u8]) -> bool,
        plain: &[u8],
    ) -> Result<Change, StoreError> {
        self.change(key, known, |name, _| self.write(name, key, plain))
    }

    /// Removes a record if it is the one that was known, as `known` says.
    ///
    /// # Errors
    /// [`StoreError::File`]; one that cannot be read may be another one, and stays.
    pub fn remove_known(
        &self,
        key: &Key,
        known: impl FnOnce(&[u8]) -> bool,
    ) -> Result<Change, StoreError> {
        self.change(key, known, |name, read| {
            read?;
            self.unlink(name).map(drop)
        })
    }

    fn change(
        &self,
        key: &Key,
        known: impl FnOnce(&[u8]) -> bool,
        make: impl FnOnce(&str, Result<(), StoreError>) -> Result<(), StoreError>,
    ) -> Result<Change, StoreError> {
        let _lock = self.lock()?;
        let name = name_of(key);
        let read = match self.record(&name) {
            Ok(Some(found)) if !known(&found.plain) => return Ok(Change::Other(found.plain)),
            // One that does not open is of no use to anybody.
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Change::Gone),
            Err(cause) => Err(self.file_failed(&name, cause)),
        };
        make(&name, read).map(|()| Change::Made)
    }

    /// Removes a record; `false` when there is none.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn remove(&self, key: &Key) -> Result<bool, StoreError> {
        let _lock = self.lock()?;
        self.unlink(&name_of(key))
    }

    fn unlink(&self, name: &str) -> Result<bool, StoreError> {
        let path = self.directory.join(name);
        match fs::remove_file(&path) {
            Ok(()) => {
                (self.sync)(&self.directory).map_err(|cause| self.failed(cause))?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(StoreError::File { path, cause }),
        }
    }

    fn write(&self, name: &str, key: &Key, plain: &[u8]) -> Result<(), StoreError> {
        let mut text = Zeroizing::new(Vec::with_capacity(plain.len() + 256));
        for part in [key.kind, &key.whose, &key.place] {
            text.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
            text.extend_from_slice(part.as_bytes());
        }
        text.extend_from_slice(plain);
        let Some(sealer) = self.sealers.first() else {
            return Err(self.failed(io::Error::other("no key")));
        };
        let sealed = sealer.seal(Purpose::Connection, &[name.as_bytes()], &text);
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let unfinished = unfinished(std::process::id(), count);
        let unfinished = self.directory.join(unfinished);
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(HEAD.as_bytes())?;
            file.write_all(sealed.as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, self.directory.join(name))
        })();
        if let Err(cause) = written {
            drop(fs::remove_file(&unfinished));
            return Err(self.failed(cause));
        }
        // From here on everybody finds it, so it would be untrue that it is not kept.
        if let Err(error) = (self.sync)(&self.directory) {
            tracing::warn!(%error, "what was written to the connection store may not outlive a failure of the machine");
        }
        Ok(())
    }

    /// The record in a file; `None` where it does not open.
    fn record(&self, name: &str) -> io::Result<Option<Record>> {
        let path = self.directory.join(name);
        if fs::metadata(&path)?.len() > FILE_BYTES {
            return Ok(None);
        }
        let text = fs::read(&path)?;
        Ok(self.opened(name, &text))
    }

    fn opened(&self, name: &str, text: &[u8]) -> Option<Record> {
        let sealed = std::str::from_utf8(text).ok()?.strip_prefix(HEAD)?;
        let plain = self.sealers.iter().find_map(|sealer| {
            sealer
                .open(Purpose::Connection, &[name.as_bytes()], sealed)
                .ok()
        })?;
        let plain = Zeroizing::new(plain);
        let mut rest = plain.as_slice();
        let mut part = || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (part, after) = after.split_at_checked(length)?;
            rest = after;
            std::str::from_utf8(part).ok()
        };
        let (kind, whose, place) = (part()?, part()?, part()?);
        let key = Key {
            kind: KINDS.into_iter().find(|known| *known == kind)?,
            whose: whose.to_owned(),
            place: place.to_owned(),
        };
        let plain = Zeroizing::new(rest.to_vec());
        (name_of(&key) == name).then_some(Record { key, plain })
    }

    /// The names of records, and how many entries could not be read.
    fn names(&self) -> Result<(Vec<String>, usize), StoreError> {
        let list = fs::read_dir(&self.directory).map_err(|cause| self.failed(cause))?;
        Ok(names(list.map(|entry| Ok(entry?.file_name()))))
    }

    /// One who writes at a time, over all processes.
    fn lock(&self) -> Result<Flock<File>, StoreError> {
        let path = self.directory.join(".lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let locked = file.and_then(|file| {
            Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
        });
        locked.map_err(|cause| StoreError::File { path, cause })
    }

    fn file_failed(&self, name: &str, cause: io::Error) -> StoreError {
        StoreError::File {
            path: self.directory.join(name),
            cause,
        }
    }

    fn failed(&self, cause: io::Error) -> StoreError {
        StoreError::File {
            path: self.directory.clone(),
            cause,
        }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Grants of principals, by principal and upstream.
pub const GRANT: &str = "grant";
/// Registrations of ours, by issuer and redirect URI.
pub const CLIENT: &str = "client";
const KINDS: [&str; 2] = [GRANT, CLIENT];

/// The names of records among the entries of a directory, in order, and how many entries could not be read.
fn names(entries: impl Iterator<Item = io::Result<OsString>>) -> (Vec<String>, usize) {
    let (mut names, mut unread) = (Vec::new(), 0);
    for entry in entries {
        match entry.map(OsString::into_string) {
            Ok(Ok(name)) if name.ends_with(ENDING) => names.push(name),
            // None of ours.
            Ok(_) => {}
            Err(_) => unread += 1,
        }
    }
    names.sort_unstable();
    (names, unread)
}

/// Has a directory itself survive a failure of the machine.
fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The name of a file while it is written.
fn unfinished(process: u32, count: u64) -> String {
    format!(".{process}-{count}")
}

/// Whether [`unfinished`] made this name.
fn is_unfinished(name: &str) -> bool {
    let parts = name.strip_prefix('.').and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(process, count)| {
        process.parse::<u32>().is_ok() && count.parse::<u64>().is_ok()
    })
}

/// A file's name: tells nothing of whose it is but to those who can guess it.
fn name_of(key: &Key) -> String {
    let mut text = Vec::new();
    for part in [key.kind, &key.whose, &key.place] {
        text.extend_from_slice(&(part.len() as u64).to_le_bytes());
        text.extend_from_slice(part.as_bytes());
    }
    let mut name = String::with_capacity(64 + ENDING.len());
    for byte in digest(&SHA256, &text).as_ref() {
        name.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        name.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
    }
    name.push_str(ENDING);
    name
}
