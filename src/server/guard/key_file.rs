//! The file of API keys: read when it changes; when keys were used last is written beside it.
//!
//! Guarantees: a key that is revoked in the file is refused within seconds, and its streams end (SECURITY AUTHN-5); a file
//! that cannot be read changes nothing while the gateway runs and stops it from starting. No file yet means no keys yet.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::Metadata,
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::GuardError;
use crate::{
    audit::journal::{Journal, Kind},
    auth::{
        Authenticator,
        keys::{KeyFile, KeyRecord, KeyTable},
    },
    tasks::Tasks,
};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(2);
/// After how many looks it is written when keys were used last.
const WRITE: u32 = 15;
/// Ids of keys in one record.
const TOLD: usize = 32;
/// Bytes of the file.
const MAX_BYTES: u64 = 64 << 20;
/// For how long nobody writes one file.
const ABANDONED: Duration = Duration::from_secs(3_600);

/// What tells one state of the file from another.
type Mark = Option<[i128; 5]>;

/// Reads the keys and begins to watch their file.
pub(super) fn watch(
    authenticator: &Arc<Authenticator>,
    file: &Path,
    journal: &Journal,
    tasks: &Tasks,
) -> Result<(), GuardError> {
    let mark = mark(file);
    let keys = read(file).map_err(|why| GuardError::Keys {
        file: file.to_owned(),
        why,
    })?;
    authenticator.put_api_keys(KeyTable::of(&keys));
    let known = standing(&keys);
    journal.note(Kind::Keys, |detail| {
        let live = known.values().filter(|live| **live).count();
        detail
            .number("live", live as u64)
            .text("state", "read")
            .number("total", known.len() as u64);
    });
    let watching = Watching {
        authenticator: authenticator.clone(),
        file: file.to_owned(),
        mark,
        unread: None,
        written: BTreeMap::new(),
        known,
        journal: journal.clone(),
    };
    tasks.spawn_orderly(watching.run(tasks.token().clone()));
    Ok(())
}

struct Watching {
    authenticator: Arc<Authenticator>,
    file: PathBuf,
    mark: Mark,
    /// Why the file could not be read when it was read last.
    unread: Option<String>,
    written: BTreeMap<String, u64>,
    /// The keys there are, by their ids, and whether each may still be used.
    known: BTreeMap<String, bool>,
    journal: Journal,
}

impl Watching {
    async fn run(mut self, stop: tokio_util::sync::CancellationToken) {
        let mut looks = 0_u32;
        while stop
            .run_until_cancelled(tokio::time::sleep(LOOK))
            .await
            .is_some()
        {
            looks = looks.wrapping_add(1);
            self = self.off_the_way(looks.is_multiple_of(WRITE)).await;
        }
        self.off_the_way(true).await;
    }

    /// Looks, and perhaps writes, where waiting for a disk keeps nobody.
    async fn off_the_way(self, write: bool) -> Self {
        let idle = Self {
            authenticator: self.authenticator.clone(),
            file: self.file.clone(),
            mark: self.mark,
            unread: None,
            written: BTreeMap::new(),
            known: BTreeMap::new(),
            journal: Journal::off(),
        };
        let work = move || {
            let mut this = self;
            this.look();
            if write {
                this.write();
            }
            this
        };
        tokio::task::spawn_blocking(work).await.unwrap_or(idle)
    }

    fn look(&mut self) {
        let mark = mark(&self.file);
        // What could not be read is tried again, whatever it was: a key that is revoked in it must not count on.
        if mark == self.mark && self.unread.is_none() {
            return;
        }
        self.mark = mark;
        match read(&self.file) {
            Ok(keys) => {
                self.unread = None;
                self.authenticator.put_api_keys(KeyTable::of(&keys));
                self.compare(standing(&keys));
                tracing::info!(keys = keys.keys.len(), "the file of API keys is read anew");
            }
            Err(why) => {
                if self.unread.as_ref() != Some(&why) {
                    tracing::error!(
                        file = %self.file.display(), why,
                        "the file of API keys cannot be read; the keys there were stay"
                    );
                }
                self.unread = Some(why);
            }
        }
    }

    /// Records which keys were made, revoked and taken away.
    fn compare(&mut self, now: BTreeMap<String, bool>) {
        let before = std::mem::replace(&mut self.known, now);
        let now = &self.known;
        let made = now.keys().filter(|id| !before.contains_key(*id));
        let gone = before.keys().filter(|id| !now.contains_key(*id));
        let revoked = now
            .iter()
            .filter(|(id, live)| !**live && before.get(*id) == Some(&true));
        let made: Vec<&str> = made.map(String::as_str).collect();
        let gone: Vec<&str> = gone.map(String::as_str).collect();
        let revoked: Vec<&str> = revoked.map(|(id, _)| id.as_str()).collect();
        if made.is_empty() && gone.is_empty() && revoked.is_empty() {
            return;
        }
        self.journal.note(Kind::Keys, |detail| {
            detail
                .texts("created", made, TOLD)
                .texts("removed", gone, TOLD)
                .texts("revoked", revoked, TOLD)
                .text("state", "changed")
                .number("total", now.len() as u64);
        });
    }

    fn write(&mut self) {
        let used = self.authenticator.api_keys().last_used();
        if used.is_empty() || used == self.written {
            return;
        }
        match note_use(&self.file, &used) {
            Ok(()) => self.written = used,
            Err(error) => tracing::warn!(%error, "when keys were used cannot be written"),
        }
    }
}

/// The ids of the keys, and whether each is not revoked.
fn standing(keys: &KeyFile) -> BTreeMap<String, bool> {
    let standing = |key: &KeyRecord| (key.id.clone(), key.revoked.is_none());
    keys.keys.iter().map(standing).collect()
}

fn mark(file: &Path) -> Mark {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = std::fs::metadata(file).ok()?;
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    Some([
        i128::from(metadata.dev()),
        i128::from(metadata.ino()),
        i128::from(metadata.len()),
        nanos(metadata.mtime(), metadata.mtime_nsec()),
        // Of who may read it, too.
        nanos(metadata.ctime(), metadata.ctime_nsec()),
    ])
}

/// The keys in a file; none where there is none yet.
///
/// # Errors
/// Why it cannot be used.
pub fn read(file: &Path) -> Result<KeyFile, String> {
    match std::fs::metadata(file) {
        Ok(metadata) if metadata.len() > MAX_BYTES => return Err("more than 64 MiB".to_owned()),
        Ok(metadata) => kept_to_ourselves(&metadata)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(KeyFile::default()),
        Err(error) => return Err(error.to_string()),
    }
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    KeyFile::parse(&text).map_err(|error| error.to_string())
}

/// A file that says who is admitted is not one that others may write to (SECURITY OPS-1).
///
/// # Errors
/// What is wrong with its mode.
pub(super) fn kept_to_ourselves(metadata: &Metadata) -> Result<(), String> {
    let mode = metadata.permissions().mode();
    // Volumes of pods are handed to a group, which may write to all that is on them.
    if mode & 0o002 == 0 {
        return Ok(());
    }
    let mode = mode & 0o777;
    Err(format!(
        "others may write to this file (mode {mode:03o}): chmod o-w"
    ))
}

/// The file beside the keys that says when each was used last.
fn used_file(file: &Path) -> PathBuf {
    let mut name = file
        .file_name()
        .map_or_else(OsString::new, ToOwned::to_owned);
    name.push(".used");
    file.with_file_name(name)
}

/// When each key was used last, by id, as far as is known.
pub fn last_used(file: &Path) -> BTreeMap<String, u64> {
    // It is only looked at: what cannot be read is not known.
    read_used(file).unwrap_or_default()
}

fn read_used(file: &Path) -> io::Result<BTreeMap<String, u64>> {
    match std::fs::read(used_file(file)) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

fn note_use(file: &Path, used: &BTreeMap<String, u64>) -> io::Result<()> {
    // Other replicas write the same file: the latest counts, of each.
    // What is there and cannot be read is not written over.
    let mut all = read_used(file)?;
    for (id, at) in used {
        let known = all.entry(id.clone()).or_insert(*at);
        *known = (*known).max(*at);
    }
    let text = serde_json::to_string(&all)?;
    replace(&used_file(file), text.as_bytes())
}

/// The name of a file while it is written. Replicas on one volume may have the same process id: one that nobody else has.
fn unfinished(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(format!(".{:016x}.new", fastrand::u64(..)));
    name
}

/// Whether [`unfinished`] made `name` of `file`.
fn is_unfinished(name: &OsStr, file: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(file.as_bytes());
    let rest = rest.and_then(|rest| rest.strip_prefix(b"."));
    let number = rest.and_then(|rest| rest.strip_suffix(b".new"));
    number.is_some_and(|number| number.len() == 16 && number.iter().all(u8::is_ascii_hexdigit))
}

/// Removes what processes left that ended while they wrote this file. What is young may be another replica's, which goes on.
fn remove_unfinished(file: &Path) {
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return;
    };
    let here = directory.as_os_str().is_empty();
    let directory = if here { Path::new(".") } else { directory };
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    for entry in entries.flatten() {
        if !is_unfinished(&entry.file_name(), name) {
            continue;
        }
        let written = entry.metadata().and_then(|found| found.modified());
        let age = written.ok().and_then(|written| written.elapsed().ok());
        if age.is_some_and(|age| age > ABANDONED) {
            // One that stays is in nobody's way.
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// Puts a new text in the place of a file, whole or not at all, readable by its owner alone.
///
/// # Errors
/// Whatever the operating system says.
pub fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    remove_unfinished(file);
    let beside = file.with_file_name(unfinished(file.file_name().unwrap_or_default()));
    let mut new = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let written = new
        .write_all(text)
        .and_then(|()| new.sync_all())
        .and_then(|()| std::fs::rename(&beside, file));
    written.inspect_err(|_| drop(std::fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_read_the_file_is_part_of_its_state() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("keys.json");
        std::fs::write(&file, "{}").unwrap();
        let before = mark(&file);
        assert_eq!(mark(&file), before);
        // Times of files are those of the last tick of a clock.
        std::thread::park_timeout(Duration::from_millis(20));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_ne!(mark(&file), before);
    }

    // SECURITY OPS-1
    #[test]
    fn a_file_that_others_may_write_to_is_not_read() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("keys.json");
        std::fs::write(&file, r#"{"keys":[]}"#).unwrap();
        for (mode, read_then) in [(0o600, true), (0o660, true), (0o602, false), (0o666, false)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read(&file);
            assert_eq!(read.is_ok(), read_then, "{read:?}");
            if let Err(why) = read {
                assert_eq!(
                    why,
                    format!("others may write to this file (mode {mode:o}): chmod o-w")
                );
            }
        }
    }

    #[test]
    fn what_another_replica_is_writing_is_not_touched() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("keys.json");
        // In containers each of them is process 1.
        let name = format!("keys.json.{}.new", std::process::id());
        let theirs = directory.path().join(name);
        std::fs::write(&theirs, "half of").unwrap();
        replace(&file, b"whole").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"whole");
        assert_eq!(std::fs::read(&theirs).unwrap(), b"half of");
        let there = std::fs::read_dir(directory.path()).unwrap();
        assert_eq!(there.count(), 2, "nothing unfinished is left");
    }

    #[test]
    fn what_a_writer_left_that_ended_is_removed_after_an_hour_and_nothing_else() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("keys.json");
        let hour = Duration::from_secs(3_600);
        let put = |name: &str, age: Duration| {
            let new = std::fs::File::create(directory.path().join(name)).unwrap();
            new.set_modified(std::time::SystemTime::now() - age)
                .unwrap();
        };
        put("keys.json.0123456789abcdef.new", 2 * hour);
        let stay = [
            ("keys.json.0123456789abcdee.new", hour / 2),
            ("keys.json.1234.new", 2 * hour),
            ("keys.json.old.new", 2 * hour),
            ("keys.json.used.0123456789abcdef.new", 2 * hour),
            ("other.json.0123456789abcdef.new", 2 * hour),
        ];
        for (name, age) in stay {
            put(name, age);
        }
        replace(&file, b"whole").unwrap();
        let there = std::fs::read_dir(directory.path()).unwrap();
        let there = there.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut there: Vec<_> = there.collect();
        there.sort();
        let mut want = vec!["keys.json"];
        want.extend(stay.map(|(name, _)| name));
        want.sort_unstable();
        assert_eq!(there, want);
    }

    #[test]
    fn uses_of_all_replicas_are_kept_and_the_latest_counts() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("keys.json");
        let used = |list: &[(&str, u64)]| -> BTreeMap<String, u64> {
            list.iter()
                .map(|(id, at)| ((*id).to_owned(), *at))
                .collect()
        };
        note_use(&file, &used(&[("a", 5), ("b", 7)])).unwrap();
        note_use(&file, &used(&[("a", 4), ("c", 1)])).unwrap();
        assert_eq!(last_used(&file), used(&[("a", 5), ("b", 7), ("c", 1)]));
        let beside = used_file(&file);
        std::fs::write(&beside, "{\"a\":").unwrap();
        assert!(note_use(&file, &used(&[("a", 6)])).is_err());
        let kept = std::fs::read(&beside).unwrap();
        assert_eq!(kept, b"{\"a\":", "what cannot be read is not written over");
        let mode = std::fs::metadata(used_file(&file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
