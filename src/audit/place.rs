//! Places: directories where processes write side by side, each alone in its own, with keys that they share.
//!
//! Guarantees: one process writes to a directory at a time; keys are made at the first start, readable for their owner alone; the
//! public half of every key that has signed here stays for whoever verifies, also when another one signs from now on.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use aws_lc_rs::rand;
use nix::fcntl::{Flock, FlockArg};

use super::{
    key::{SigningKey, VerifyingKey},
    log::{is_full, segments, sync_directory},
    sinks::SinkError,
};

/// How many processes may write below one directory at once.
pub(super) const BESIDE: usize = 64;
/// The signing key, in the directory.
pub(super) const KEY: &str = "key.pem";
/// Its public half, for whoever verifies: one a line, the newest last, where the key was another one before.
pub(super) const PUBLIC: &str = "key.pub";
/// There while nobody was told that the key after it signs in the place of another one, of which nothing is known.
const UNKNOWN: &str = "# signs in the place of a key that is not known";
/// The key of digests.
pub(super) const DIGEST: &str = "digest.key";
/// Held while a process writes.
const LOCK: &str = ".lock";

/// The log cannot be written where it should be.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// A file, or the directory.
    #[error("cannot use `{}`: {cause}; {}, or write `audit: off`", .path.display(), remedy(.cause))]
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

/// What to do about what the system said.
fn remedy(cause: &io::Error) -> &'static str {
    if is_full(cause) {
        "make room there, set `audit.dir` to a directory on another disk"
    } else {
        "set `audit.dir` to a directory that this user may write to"
    }
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

/// Keys that are not those of records that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Another key signs.
    pub signing: Option<Signs>,
    /// Digests are made with a new key: they are no longer those of the same before.
    pub digests: bool,
}

/// The key that signs in the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signs {
    /// Its public half.
    pub now: VerifyingKey,
    /// That of the one before; `None` where nothing tells which that was.
    pub before: Option<VerifyingKey>,
}

/// What is in a file that is made where there is none.
struct Kept {
    text: String,
    /// Whether it was made just now, by us.
    made: bool,
}

/// The file's content, which is `fresh` where there was none. Of many that come first at once, one makes it.
fn kept(path: &Path, fresh: impl FnOnce() -> Result<String, HomeError>) -> Result<Kept, HomeError> {
    let wrong = |cause| HomeError::File {
        path: path.to_owned(),
        cause,
    };
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => {
            let text = read.map_err(wrong)?;
            return Ok(Kept { text, made: false });
        }
    }
    let text = fresh()?;
    // Linked in one step, so that nobody reads half of it.
    let linked = beside(path, &text, |beside| match fs::hard_link(beside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    });
    let made = linked.map_err(wrong)?;
    let text = fs::read_to_string(path).map_err(wrong)?;
    Ok(Kept { text, made })
}

/// Has `put` take what is written to a file beside this one into its place; what is left of it goes, also on a full disk.
fn beside<T>(path: &Path, text: &str, put: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
    let done = written.and_then(|()| put(&beside));
    // It is not there any more where it was moved.
    drop(fs::remove_file(&beside));
    done
}

/// The key that all who write below a directory sign with; made where there is none. And whether it signs in the place of another
/// one: both are named by the file for those who verify, but until that is [`told`] the last of them stays the one before, so that
/// whoever asks next hears of it as well.
pub(super) fn signing_key(directory: &Path) -> Result<(SigningKey, Option<Signs>), HomeError> {
    let (path, public) = (directory.join(KEY), directory.join(PUBLIC));
    if !path.exists() && is_written(directory) {
        // There was another key. Where both files are gone, nothing tells of it but what it has signed, and soon that is not all.
        kept(&public, || Ok(String::new()))?;
    }
    let private = kept(&path, || Ok(SigningKey::generate().1))?;
    let key = SigningKey::parse(&private.text).map_err(|_| HomeError::Key(path))?;
    let now = key.public();
    let name = now.to_string();
    let text = kept(&public, || Ok(format!("{now}\n")))?.text;
    let mut lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_key = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let last = lines.iter().rposition(is_key);
    let known = last.filter(|_| !lines.contains(&UNKNOWN));
    let before = known.map(|at| lines[at]);
    if before == Some(&*name) {
        return Ok((key, None));
    }
    if !lines.contains(&&*name) {
        match last {
            Some(at) => lines.insert(at, &name),
            None => lines.extend([UNKNOWN, &name]),
        }
        put(&public, lines)?;
    }
    let before = before.and_then(|line| VerifyingKey::parse(line).ok());
    Ok((key, Some(Signs { now, before })))
}

/// That this key signs was told for good: it is the last in the file from now on.
pub(super) fn told(directory: &Path, now: VerifyingKey) -> Result<(), HomeError> {
    let (path, name) = (directory.join(PUBLIC), now.to_string());
    let text = fs::read_to_string(&path).map_err(|cause| HomeError::File {
        path: path.clone(),
        cause,
    })?;
    let lines = text.lines().map(str::trim);
    let others = lines.filter(|line| *line != name && *line != UNKNOWN);
    put(&path, others.chain([&*name]))
}

/// Has the file hold these lines.
fn put<'a>(path: &Path, lines: impl IntoIterator<Item = &'a str>) -> Result<(), HomeError> {
    let lines = lines.into_iter();
    let all: String = lines.flat_map(|line| [line, "\n"]).collect();
    beside(path, &all, |beside| fs::rename(beside, path))
        .and_then(|()| sync_directory(path))
        .map_err(|cause| HomeError::File {
            path: path.to_owned(),
            cause,
        })
}

/// Whether a start before was here, by what it made beside the key that signs, which somebody may have put here.
pub(super) fn is_keyed(directory: &Path) -> bool {
    [DIGEST, PUBLIC]
        .iter()
        .any(|name| directory.join(name).exists())
}

/// Whether there are records below a directory.
fn is_written(directory: &Path) -> bool {
    let mut places = (1..=BESIDE).map(|number| place(directory, number));
    places.any(|own| segments(&own).is_ok_and(|segments| !segments.is_empty()))
}

/// Bytes that nobody can guess.
pub(super) fn drawn() -> Result<[u8; 32], HomeError> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| HomeError::Random)?;
    Ok(bytes)
}

/// The key of digests, and whether it is a new one beside records that are there.
pub(super) fn digest_key(directory: &Path) -> Result<(Vec<u8>, bool), HomeError> {
    let path = directory.join(DIGEST);
    let Kept { text, made } = kept(&path, || {
        let digits = drawn()?.map(|byte| format!("{byte:02x}"));
        Ok(digits.concat())
    })?;
    let text = text.trim();
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok((text.as_bytes().to_vec(), made && is_written(directory)))
    } else {
        Err(HomeError::Key(path))
    }
}
