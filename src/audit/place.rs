//! Places: directories where processes write side by side, each alone in its own, with keys that they share.
//!
//! Guarantees: one process writes to a directory at a time; keys are made at the first start, readable for their owner alone, and one that
//! everybody may read is not used, nor is a directory that everybody may write to (SECURITY 10); the
//! public half of every key that has signed here stays for whoever verifies, also when another one signs from now on.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use aws_lc_rs::rand;
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    sys::statvfs::{FsFlags, statvfs},
};
use zeroize::Zeroizing;

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
    /// Others may use what is there.
    #[error("{}: {}", .0.message(), .0.hint())]
    Exposed(Exposed),
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
    held(Flock::lock(file, FlockArg::LockExclusiveNonblock))
}

/// The lock; `None` where another process has it. A file system without locks, for one, is told of as it is.
fn held(tried: Result<Flock<File>, (File, Errno)>) -> io::Result<Option<Flock<File>>> {
    match tried {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, errno)) => Err(errno.into()),
    }
}

/// A directory or a key that everybody may use.
#[derive(Debug, PartialEq, Eq)]
pub struct Exposed {
    path: PathBuf,
    mode: u32,
    /// What they may do to it, and the change of its mode after which they may not.
    may: &'static str,
    change: &'static str,
    /// What else there is to do, of what may not be ours to change.
    or: &'static str,
}

impl Exposed {
    /// What is wrong.
    pub fn message(&self) -> String {
        let Self {
            path, mode, may, ..
        } = self;
        format!("everybody may {may} `{}` (mode {mode:03o})", path.display())
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        let (path, change, or) = (self.path.display(), self.change, self.or);
        format!("chmod {change} {path}{or}")
    }
}

/// Of a volume that is handed to a container open to everybody, and whose mode its user cannot change.
const WITHIN: &str =
    ", or name a directory in it that is not there yet: it is made for its owner alone";

/// What there is of a directory of records that everybody may use: who may write there may put another key in the place of ours, and who may
/// read a key may sign records, or guess what was digested. Groups are not looked at: orchestrators hand volumes to one, with
/// all that is on them.
pub fn exposed(directory: &Path) -> Option<Exposed> {
    let exposed = |path: PathBuf, bits, may, change, or| {
        let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
        let exposed = mode & bits != 0 && !is_on_read_only_mount(&path);
        exposed.then_some(Exposed {
            path,
            mode,
            may,
            change,
            or,
        })
    };
    let key = |name| exposed(directory.join(name), 0o007, "use", "o=", "");
    exposed(directory.to_owned(), 0o002, "write to", "o-w", WITHIN)
        .or_else(|| key(KEY))
        .or_else(|| key(DIGEST))
}

/// Whether a file lies on a mount that nobody writes to: how orchestrators hand secrets to a container that has one user.
fn is_on_read_only_mount(path: &Path) -> bool {
    statvfs(path).is_ok_and(|at| at.flags().contains(FsFlags::ST_RDONLY))
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
    text: Zeroizing<String>,
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
            let text = read.map_err(wrong)?.into();
            return Ok(Kept { text, made: false });
        }
    }
    let text = Zeroizing::new(fresh()?);
    // Linked in one step, so that nobody reads half of it.
    let linked = beside(path, &text, |beside| match fs::hard_link(beside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    });
    let made = linked.map_err(wrong)?;
    let text = fs::read_to_string(path).map_err(wrong)?.into();
    Ok(Kept { text, made })
}

/// Has `put` take what is written to a file beside this one into its place; what is left of it goes, also on a full disk.
fn beside<T>(path: &Path, text: &str, put: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    // Not named for this process: the first of each container has the same number.
    let mut random = [0; 8];
    rand::fill(&mut random).map_err(io::Error::other)?;
    let random = u64::from_ne_bytes(random);
    let beside = path.with_extension(format!("new-{random:016x}"));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lock_that_another_has_is_held() {
        let tried = |errno| held(Err((tempfile::tempfile().unwrap(), errno)));
        assert!(tried(Errno::EWOULDBLOCK).unwrap().is_none());
        for errno in [Errno::ENOLCK, Errno::EOPNOTSUPP, Errno::EIO] {
            let error = tried(errno).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(errno as i32));
        }
        let directory = tempfile::tempdir().unwrap();
        let first = lock(directory.path()).unwrap();
        assert!(first.is_some());
        assert!(lock(directory.path()).unwrap().is_none());
    }

    #[test]
    fn what_two_write_at_once_is_in_two_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let put = |beside: &Path| fs::rename(beside, &path);
        beside(&path, "one", |one| {
            beside(&path, "other", put)?;
            assert_eq!(fs::read_to_string(one)?, "one");
            assert_eq!(fs::read_to_string(&path)?, "other");
            put(one)
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    /// As Kubernetes mounts an `emptyDir`, by itself and with an `fsGroup`.
    #[test]
    fn a_directory_within_a_volume_that_is_open_to_everybody_is_made_and_used() {
        for mode in [0o777, 0o2777] {
            let volume = tempfile::tempdir().unwrap();
            fs::set_permissions(&volume, fs::Permissions::from_mode(mode)).unwrap();
            let refused = exposed(volume.path()).unwrap();
            let hint = refused.hint();
            assert!(hint.contains("name a directory in it"), "{hint}");
            let within = volume.path().join("usher/audit");
            assert_eq!(exposed(&within), None);
            let (own, _lock) = claim(&within).unwrap();
            signing_key(&own).unwrap();
            digest_key(&own).unwrap();
            assert_eq!(exposed(&within), None);
            let made = fs::metadata(&within).unwrap().permissions();
            assert_eq!(made.mode() & 0o777, 0o700);
        }
    }

    /// SECURITY 10
    #[test]
    fn what_everybody_may_use_is_told_and_what_a_group_may_is_not() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        signing_key(directory).unwrap();
        digest_key(directory).unwrap();
        let told = |path: &Path, mode| {
            let before = fs::metadata(path).unwrap().permissions();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            let exposed = exposed(directory).map(|it| (it.message(), it.hint()));
            fs::set_permissions(path, before).unwrap();
            exposed
        };
        let here = directory.display();
        for mode in [0o2770, 0o755, 0o700] {
            assert_eq!(told(directory, mode), None, "{mode:o}");
        }
        for (mode, shown) in [(0o777, "777"), (0o1777, "777"), (0o702, "702")] {
            let wrong = format!("everybody may write to `{here}` (mode {shown})");
            let hint = format!("chmod o-w {here}{WITHIN}");
            assert_eq!(told(directory, mode), Some((wrong, hint)));
        }
        for name in [KEY, DIGEST] {
            let path = directory.join(name);
            assert_eq!(told(&path, 0o660), None, "{name}");
            for mode in [0o644, 0o604, 0o602] {
                let wrong = format!("everybody may use `{here}/{name}` (mode {mode:03o})");
                let hint = format!("chmod o= {here}/{name}");
                assert_eq!(told(&path, mode), Some((wrong, hint)));
            }
        }
        assert_eq!(told(&directory.join(PUBLIC), 0o644), None);
        assert_eq!(exposed(&directory.join("none")), None);
    }
}
