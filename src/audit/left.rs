//! Applies retention to the directories of processes that have ended.
//!
//! Guarantees: nothing is touched where another process writes; that something was removed is recorded and signed there, as
//! anywhere (SECURITY AUD-10).

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, TryRecvError, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

use super::{
    chain::Origin,
    log::{Cuts, Log, Storage, segments},
    place::{BESIDE, lock, place, signing_key},
};

/// How often it is looked after.
const OFTEN: Duration = Duration::from_secs(3_600);

/// Where processes write side by side.
pub(super) struct Neighbours {
    /// The directory of them all, where the keys are.
    pub(super) home: PathBuf,
    /// That of this process.
    pub(super) own: PathBuf,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) origin: Origin,
    pub(super) cuts: Cuts,
}

/// Looks after what was left behind, until it is dropped.
pub(super) struct Caretaker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Caretaker {
    /// Looks at once, and then each hour.
    ///
    /// # Errors
    /// Where there is no thread for it.
    pub(super) fn of(neighbours: Neighbours) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let look = move || {
            // Where it failed once it is not tried again: each try begins a segment.
            let mut failed = Vec::new();
            loop {
                neighbours.look(&mut failed, || {
                    stopped.try_recv() == Err(TryRecvError::Empty)
                });
                if stopped.recv_timeout(OFTEN) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let named = thread::Builder::new().name("audit-left".into());
        Ok(Self {
            stop: Some(stop),
            thread: Some(named.spawn(look)?),
        })
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it was told where it was.
            drop(thread.join());
        }
    }
}

impl Neighbours {
    fn look(&self, failed: &mut Vec<PathBuf>, goes_on: impl Fn() -> bool) {
        for number in 1..=BESIDE {
            let directory = place(&self.home, number);
            let ours = directory == self.own || failed.contains(&directory);
            if ours || !directory.is_dir() {
                continue;
            }
            if !goes_on() {
                return;
            }
            if let Err(error) = self.tidy(&directory) {
                tracing::warn!(directory = %directory.display(), %error, "old audit records cannot be removed");
                failed.push(directory);
            }
        }
    }

    /// Removes what is kept too long: a log does so when it is opened, but for its last two segments.
    fn tidy(&self, directory: &Path) -> io::Result<()> {
        if !self.holds_old(directory)? {
            return Ok(());
        }
        let Some(lock) = lock(directory)? else {
            return Ok(());
        };
        // That it is another one than before is for a start to tell.
        let (key, _) = signing_key(&self.home).map_err(io::Error::other)?;
        let (storage, origin) = (self.storage.clone(), self.origin.clone());
        let (mut log, _) = Log::open(storage, directory, origin, key, self.cuts)?;
        log.sign()?;
        if let Some(syncing) = log.syncing() {
            syncing.wait()?;
        }
        let ended = log.take_ended();
        drop((log, lock));
        for segment in ended {
            // Queries read a segment that has none; some were removed just now.
            _ = segment.write_index();
        }
        if segments(directory)?.len() > 2 && self.holds_old(directory)? {
            return Err(io::Error::other("they are still there"));
        }
        Ok(())
    }

    /// Whether the oldest of its segments is: what is behind one that is not stays.
    fn holds_old(&self, directory: &Path) -> io::Result<bool> {
        let all = segments(directory)?;
        let changed = match all.first().map(|oldest| fs::metadata(&oldest.path)) {
            None => return Ok(false),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Some(known) => known?.modified()?,
        };
        let age = SystemTime::now().duration_since(changed);
        Ok(age.unwrap_or_default() >= self.cuts.retention)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{
        log::testing::{Faulty, Shared, age_oldest, happened, origin},
        place::{KEY, PUBLIC},
        verify::verify,
    };

    /// Where something was left behind below a directory, and who looks after it.
    fn left_behind(home: &Path) -> (PathBuf, Neighbours) {
        let beside = place(home, 2);
        let storage: Arc<dyn Storage> = Arc::new(Shared(Arc::new(Faulty::default())));
        let (mut log, _) = Log::open(
            storage.clone(),
            &beside,
            origin(),
            signing_key(home).unwrap().0,
            Cuts::default(),
        )
        .unwrap();
        for n in 0..3 {
            log.append(&[happened(n)].into()).unwrap();
            log.rotate().unwrap();
        }
        let neighbours = Neighbours {
            home: home.to_owned(),
            own: home.to_owned(),
            storage,
            origin: origin(),
            cuts: Cuts::default(),
        };
        (beside, neighbours)
    }

    #[test]
    fn that_another_key_signs_is_left_to_a_start_to_tell() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let (beside, neighbours) = left_behind(home);
        let first = signing_key(home).unwrap().0.public();
        fs::remove_file(home.join(KEY)).unwrap();
        let oldest = age_oldest(&beside);
        neighbours.look(&mut Vec::new(), || true);
        assert!(!oldest.exists());
        let (key, signs) = signing_key(home).unwrap();
        assert_eq!(signs.unwrap().before, Some(first));
        // What is signed already can be verified already.
        let now = key.public();
        let public = fs::read_to_string(home.join(PUBLIC)).unwrap();
        assert!(public.contains(&now.to_string()), "{public}");
        assert_eq!(
            verify(&beside, &[first, now], &[], |_| {}).unwrap().faults,
            []
        );
    }

    #[test]
    fn what_is_old_is_removed_where_nobody_writes_and_the_rest_stays_provable() {
        let home = tempfile::tempdir().unwrap();
        let key = signing_key(home.path()).unwrap().0.public();
        let (beside, neighbours) = left_behind(home.path());
        let all = || segments(&beside).unwrap();
        let look = || {
            let mut failed = Vec::new();
            neighbours.look(&mut failed, || true);
            failed
        };
        let before = all().len();
        look();
        assert_eq!(all().len(), before, "nothing is old");
        let oldest = age_oldest(&beside);
        let writes = lock(&beside).unwrap().unwrap();
        look();
        assert!(oldest.exists(), "another process writes there");
        drop(writes);
        look();
        assert!(!oldest.exists());
        let report = verify(&beside, &[key], &[], |_| {}).unwrap();
        assert_eq!(report.faults, []);
        assert!(report.first > 1);
        // One that was written by a clock that ran ahead stays, and nothing is begun behind it.
        let ahead = fs::File::options()
            .write(true)
            .open(&all()[0].path)
            .unwrap();
        let late = SystemTime::now() + OFTEN;
        ahead.set_modified(late).unwrap();
        let second = fs::File::options()
            .write(true)
            .open(&all()[1].path)
            .unwrap();
        second.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let before = all().len();
        look();
        assert_eq!(all().len(), before);
        // The last of all goes too, the next time.
        let oldest = age_oldest(&beside);
        look();
        assert!(!oldest.exists());
        assert_eq!(verify(&beside, &[key], &[], |_| {}).unwrap().faults, []);
    }

    #[test]
    fn it_ends_when_it_is_dropped() {
        let home = tempfile::tempdir().unwrap();
        let neighbours = Neighbours {
            home: home.path().to_owned(),
            own: home.path().to_owned(),
            storage: Arc::new(Shared(Arc::new(Faulty::default()))),
            origin: origin(),
            cuts: Cuts::default(),
        };
        drop(Caretaker::of(neighbours).unwrap());
    }
}
