//! Places: directories where processes write side by side, each alone in its own, with keys that they share.
//!
//! Guarantees: one process writes to a directory at a time; keys are made at the first start, readable for their owner alone.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use aws_lc_rs::rand;
use nix::fcntl::{Flock, FlockArg};

use super::{key::SigningKey, sinks::SinkError};

/// How many processes may write below one directory at once.
pub(super) const BESIDE: usize = 64;
/// The signing key, in the directory.
pub(super) const KEY: &str = "key.pem";
/// Its public half, for whoever verifies.
const PUBLIC: &str = "key.pub";
/// The key of digests.
pub(super) const DIGEST: &str = "digest.key";
/// Held while a process writes.
const LOCK: &str = ".lock";

/// The log cannot be written where it should be.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// A file, or the directory.
    #[error("cannot use `{}`: {cause}; set `audit.dir` to a directory that this user may write to, or write `audit: off`", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A key is not one.
    #[error("`{}` is not a key that an earlier start made; move it away, and a new one is made", .0.display())]
    Key(PathBuf),
    /// There is no new key to be had.
    #[error(
        "the operating system gives no random bytes, and without a key nothing is recorded; start again, or write `audit: off`"
    )]
    Random,
    /// A sink that cannot begin.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Too many write there.
    #[error("{BESIDE} processes write below `{}` already", .0.display())]
    Crowded(PathBuf),
}

/// Makes a directory for its owner alone.
pub(super) fn make(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// The first place that nobody writes to.
///
/// # Errors
/// [`HomeError`].
pub(super) fn claim(directory: &Path) -> Result<(PathBuf, Flock<File>), HomeError> {
    for number in 1..=BESIDE {
        let own = place(directory, number);
        let locked = make(&own).and_then(|()| lock(&own));
        let path = own.join(LOCK);
        if let Some(lock) = locked.map_err(|cause| HomeError::File { path, cause })? {
            return Ok((own, lock));
        }
    }
    Err(HomeError::Crowded(directory.to_owned()))
}

/// The place of this number among those that share a directory.
pub(super) fn place(directory: &Path, number: usize) -> PathBuf {
    match number {
        1 => directory.to_owned(),
        _ => directory.join(format!("beside-{number}")),
    }
}

/// Keeps others from writing there; `None` where another process writes.
pub(super) fn lock(own: &Path) -> io::Result<Option<Flock<File>>> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(own.join(LOCK))?;
    Ok(Flock::lock(file, FlockArg::LockExclusiveNonblock).ok())
}

/// The file's content, which is `fresh` where there was none. Of many that come first at once, one makes it.
fn kept(
    path: &Path,
    fresh: impl FnOnce() -> Result<String, HomeError>,
) -> Result<String, HomeError> {
    let wrong = |cause| HomeError::File {
        path: path.to_owned(),
        cause,
    };
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read.map_err(wrong),
    }
    let text = fresh()?;
    // Linked in one step, so that nobody reads half of it.
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let made = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| match fs::hard_link(&beside, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => fs::remove_file(&beside),
        });
    made.and_then(|()| fs::read_to_string(path)).map_err(wrong)
}

/// The key that all who write below a directory sign with; made where there is none.
pub(super) fn signing_key(directory: &Path) -> Result<SigningKey, HomeError> {
    let path = directory.join(KEY);
    let text = kept(&path, || Ok(SigningKey::generate().1))?;
    let key = SigningKey::parse(&text).map_err(|_| HomeError::Key(path))?;
    kept(&directory.join(PUBLIC), || {
        Ok(format!("{}\n", key.public()))
    })?;
    Ok(key)
}

/// Bytes that nobody can guess.
pub(super) fn drawn() -> Result<[u8; 32], HomeError> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| HomeError::Random)?;
    Ok(bytes)
}

/// The key of digests.
pub(super) fn digest_key(directory: &Path) -> Result<Vec<u8>, HomeError> {
    let path = directory.join(DIGEST);
    let text = kept(&path, || {
        let digits = drawn()?.map(|byte| format!("{byte:02x}"));
        Ok(digits.concat())
    })?;
    let text = text.trim();
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(text.as_bytes().to_vec())
    } else {
        Err(HomeError::Key(path))
    }
}
