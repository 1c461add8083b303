//! A disk that fails when told to, and something to write on it.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, SystemTime},
};

use super::{Appender, Event, Storage, Usage, event, segments};
use crate::audit::chain::Origin;

/// A disk that fails when told to.
#[derive(Debug, Default)]
pub(in crate::audit) struct Faulty {
    /// Appends take half of what they get, and fail.
    pub(in crate::audit) full: AtomicBool,
    /// An append does not return.
    pub(in crate::audit) stalls: AtomicBool,
    /// Cutting off fails as well.
    pub(in crate::audit) stuck: AtomicBool,
    /// So many syncs fail, and throw away what was not durable.
    pub(in crate::audit) lying: AtomicUsize,
    /// A sync that fails throws nothing away.
    pub(in crate::audit) keeps: AtomicBool,
    /// A sync does not return.
    pub(in crate::audit) hangs: AtomicBool,
    /// A sync that failed returns when another one has begun, or after a while.
    pub(in crate::audit) lingers: AtomicBool,
    /// No file can be made.
    pub(in crate::audit) crowded: AtomicBool,
    /// No file can be removed.
    pub(in crate::audit) sticks: AtomicBool,
    /// How many appends there were.
    pub(in crate::audit) appends: AtomicUsize,
    /// How many syncs have begun.
    pub(in crate::audit) syncs: AtomicUsize,
    /// How full it is, in percent.
    pub(in crate::audit) used: AtomicU8,
    /// What is left on it, in bytes.
    pub(in crate::audit) left: AtomicU64,
    /// How far each file is durable.
    durable: Mutex<Vec<(PathBuf, u64)>>,
}

impl Faulty {
    /// How many bytes of the newest file are not durable.
    pub(in crate::audit) fn volatile(&self) -> u64 {
        let durable = self.durable.lock().unwrap();
        let (path, known) = durable.last().unwrap();
        fs::metadata(path).unwrap().len() - known
    }

    /// Until one more than so many syncs have begun; half a second, where none does.
    fn linger(&self, begun: usize) {
        for _ in 0..500 {
            if self.syncs.load(Relaxed) > begun {
                return;
            }
            thread::park_timeout(Duration::from_millis(1));
        }
    }
}

struct FaultyFile {
    disk: Arc<Faulty>,
    file: fs::File,
    path: PathBuf,
}

/// Shared, so that a test can turn its knobs.
#[derive(Debug)]
pub(in crate::audit) struct Shared(pub(in crate::audit) Arc<Faulty>);

impl Storage for Shared {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Appender>> {
        if self.0.crowded.load(Relaxed) {
            return Err(ErrorKind::StorageFull.into());
        }
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        self.0.durable.lock().unwrap().push((path.to_owned(), 0));
        Ok(Arc::new(FaultyFile {
            disk: self.0.clone(),
            file,
            path: path.to_owned(),
        }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.0.sticks.load(Relaxed) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        fs::remove_file(path)
    }

    fn usage(&self, _: &Path) -> io::Result<Usage> {
        Ok(Usage {
            percent: self.0.used.load(Relaxed),
            left: self.0.left.load(Relaxed),
        })
    }
}

/// Files that nobody is to keep, as a stream is.
#[derive(Debug)]
pub(in crate::audit) struct Passing(pub(in crate::audit) Shared);

impl Storage for Passing {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Appender>> {
        self.0.create(path)
    }

    fn keeps_files(&self) -> bool {
        false
    }

    fn usage(&self, directory: &Path) -> io::Result<Usage> {
        self.0.usage(directory)
    }
}

impl Appender for FaultyFile {
    fn append(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.disk.appends.fetch_add(1, Relaxed);
        while self.disk.stalls.load(Relaxed) {
            thread::yield_now();
        }
        if self.disk.full.load(Relaxed) {
            self.file.append(&bytes[..bytes.len() / 2], at)?;
            return Err(ErrorKind::StorageFull.into());
        }
        self.file.append(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        let begun = self.disk.syncs.fetch_add(1, Relaxed) + 1;
        while self.disk.hangs.load(Relaxed) {
            thread::yield_now();
        }
        let mut durable = self.disk.durable.lock().unwrap();
        let known = durable
            .iter_mut()
            .find(|(path, _)| *path == self.path)
            .unwrap();
        if self.disk.lying.load(Relaxed) > 0 {
            if !self.disk.keeps.load(Relaxed) {
                // What the disk had in its cache is gone.
                self.file.set_len(known.1)?;
            }
            drop(durable);
            self.disk.lying.fetch_sub(1, Relaxed);
            if self.disk.lingers.load(Relaxed) {
                self.disk.linger(begun);
            }
            return Err(ErrorKind::Other.into());
        }
        known.1 = self.file.metadata()?.len();
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        if self.disk.stuck.load(Relaxed) {
            return Err(ErrorKind::Other.into());
        }
        self.file.truncate(length)
    }

    fn is_at(&self, path: &Path) -> bool {
        self.file.is_at(path)
    }
}

pub(in crate::audit) fn origin() -> Origin {
    Origin {
        node: "node".to_owned(),
        boot: "boot".to_owned(),
    }
}

/// Makes the oldest segment one that is kept too long; where it is.
pub(in crate::audit) fn age_oldest(directory: &Path) -> PathBuf {
    let oldest = segments(directory).unwrap().remove(0).path;
    let file = OpenOptions::new().write(true).open(&oldest).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    oldest
}

pub(in crate::audit) fn happened(n: usize) -> Event {
    event(|object| _ = object.text("event", "call").number("n", n as u64))
}
