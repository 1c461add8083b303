//! What the log needs of a disk, so that tests can put faults in between.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

/// Opens files. The real one is [`Disk`].
pub trait Storage: fmt::Debug + Send + Sync + 'static {
    /// A new file, which only its owner may read; it must not be there yet. Its name is durable when this returns.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Appender>>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Whether what is written can be found again by its path. Default: yes.
    fn keeps_files(&self) -> bool {
        true
    }

    /// How much of the disk that `directory` is on is used.
    ///
    /// # Errors
    /// What the system says.
    fn usage(&self, directory: &Path) -> io::Result<Usage>;
}

/// How much of a disk is used, as `df` tells it: what only the superuser may use counts as used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// What is used, in percent: 0 to 100.
    pub percent: u8,
    /// What is left, in bytes.
    pub left: u64,
}

impl Usage {
    /// Of what has no end.
    pub const ENDLESS: Self = Self {
        percent: 0,
        left: u64::MAX,
    };
}

/// A file that grows at its end.
pub trait Appender: Send + Sync + 'static {
    /// Hands all of `bytes` to the operating system, to stand at `at`, which is the end of the file.
    ///
    /// # Errors
    /// What the system says; some of the bytes may have been taken then.
    fn append(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Returns when everything that was appended survives the loss of power.
    ///
    /// # Errors
    /// What the system says. Nobody knows then what survives.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file off.
    ///
    /// # Errors
    /// What the system says.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Whether it is found at `path`. Default: yes, for what has no path. Where nobody can tell, it is.
    fn is_at(&self, _path: &Path) -> bool {
        true
    }
}

/// A file that several wait for. Of what it could not write the system tells once, to whoever syncs next (`fsync(2)`): so one syncs
/// at a time, and once it has failed it fails for everybody.
pub(super) struct Awaited {
    file: Arc<dyn Appender>,
    /// Whether a sync has failed; held while one is under way.
    failed: Mutex<bool>,
}

impl Awaited {
    pub(super) const fn new(file: Arc<dyn Appender>) -> Self {
        Self {
            file,
            failed: Mutex::new(false),
        }
    }
}

impl Appender for Awaited {
    fn append(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.append(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if *failed {
            return Err(io::Error::other("an earlier sync of this file failed"));
        }
        let result = self.file.sync();
        *failed = result.is_err();
        result
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }

    fn is_at(&self, path: &Path) -> bool {
        self.file.is_at(path)
    }
}

/// The file system.
#[derive(Debug, Clone, Copy)]
pub struct Disk;

/// A stream of this process in the place of files: what was written to it is somebody else's to keep.
#[derive(Debug, Clone, Copy)]
pub enum Streamed {
    /// stdout.
    Stdout,
    /// stderr.
    Stderr,
}

impl Storage for Streamed {
    fn create(&self, _: &Path) -> io::Result<Arc<dyn Appender>> {
        Ok(Arc::new(*self))
    }

    fn keeps_files(&self) -> bool {
        false
    }

    fn usage(&self, _: &Path) -> io::Result<Usage> {
        Ok(Usage::ENDLESS)
    }
}

impl Appender for Streamed {
    fn append(&self, bytes: &[u8], _: u64) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().write_all(bytes),
            Self::Stderr => io::stderr().write_all(bytes),
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().flush(),
            Self::Stderr => io::stderr().flush(),
        }
    }

    /// A stream takes nothing back: what was cut off in the middle of a record is no record, and the next one begins anew.
    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Storage for Disk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Appender>> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        sync_directory(path)?;
        Ok(Arc::new(file))
    }

    fn usage(&self, directory: &Path) -> io::Result<Usage> {
        let about = nix::sys::statvfs::statvfs(directory)?;
        let (all, free) = (u128::from(about.blocks()), u128::from(about.blocks_free()));
        let left = u128::from(about.blocks_available());
        let used = all.saturating_sub(free);
        let percent = (used * 100).checked_div(used + left).unwrap_or(0);
        let bytes = left * u128::from(about.fragment_size());
        Ok(Usage {
            percent: u8::try_from(percent).unwrap_or(100),
            left: u64::try_from(bytes).unwrap_or(u64::MAX),
        })
    }
}

impl Appender for File {
    fn append(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn is_at(&self, path: &Path) -> bool {
        match (self.metadata(), fs::metadata(path)) {
            (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
            (_, Err(error)) => !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
            (Err(_), Ok(_)) => true,
        }
    }
}

/// Whether there is no room, which somebody may make, or time.
pub(in crate::audit) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Makes the name of a file durable, or that it is gone.
pub(in crate::audit) fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Writes a small file in one step: whoever reads sees the old one or the new one.
pub(in crate::audit) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        // On a full disk a part of it would be in the way of what matters.
        drop(fs::remove_file(&beside));
    }
    moved?;
    sync_directory(path)
}
