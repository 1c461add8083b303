//! Segments that have ended, and their indexes.

use std::{
    fs,
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use super::{INDEX, replace, segment::remove_index_before, segments};
use crate::audit::index::Index;

/// How much is read at once of a segment that needs an index, in bytes.
const READ: usize = 256 << 10;

/// A segment that has ended.
#[derive(Debug)]
pub struct Ended {
    path: PathBuf,
    /// What it holds, where all of it was written here.
    index: Option<Index>,
}

impl Ended {
    /// With the index that was filled while it was written, where that is all of it.
    pub(super) const fn of(path: PathBuf, index: Option<Index>) -> Self {
        Self { path, index }
    }

    /// Writes its index, for queries; where that is missing, they read the segment. One that another process has begun is read for it.
    ///
    /// # Errors
    /// When the segment cannot be read, or the index not be written.
    pub fn write_index(&self) -> io::Result<()> {
        let text = match &self.index {
            Some(index) => serde_json::to_vec(index),
            None => {
                let segment = fs::File::open(&self.path)?;
                serde_json::to_vec(&Index::of(BufReader::with_capacity(READ, segment))?)
            }
        };
        replace(&self.path.with_extension(INDEX), &text?)?;
        remove_index_before(&self.path);
        Ok(())
    }
}

/// The segments of processes before that have no index.
pub(super) fn without_index(directory: &Path) -> io::Result<Vec<Ended>> {
    let all = segments(directory)?.into_iter().map(|segment| Ended {
        path: segment.path,
        index: None,
    });
    Ok(all
        .filter(|ended| !ended.path.with_extension(INDEX).exists())
        .collect())
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, atomic::Ordering::Relaxed},
        time::{Duration, SystemTime},
    };

    use super::*;
    use crate::{
        audit::{
            canonical::Written,
            index::Gist,
            key::SigningKey,
            log::{
                Cuts, Events, Log, event,
                testing::{Faulty, Passing, Shared, happened, origin},
                tests::{calls, records},
            },
            verify::verify,
        },
        call::CallId,
    };

    /// A record of the `n`th of many calls, of which few differ from all others in what is listed, and what is known of it.
    fn record(n: u64, written: &mut Written) -> Gist {
        let call = CallId::numbered(n * 7_919 % 1_000 + 1);
        // Before and after what the log tells of itself, in no order.
        let age = Duration::from_secs(4_000_000_000 * (n % 2));
        let time = SystemTime::UNIX_EPOCH + age + Duration::from_millis(n * 6_007 % 5_000);
        written.object(|object| {
            object.plain("call", call);
            object
                .maybe("decision", (n % 3 == 1).then_some("permit"))
                .text("event", "call")
                .objects("findings", (n % 50 == 3).then_some(()), 9, |found, ()| {
                    found
                        .text("class", "secret")
                        .text("rule", &format!("r{}", n / 900));
                });
            object
                .maybe("outcome", (n % 3 > 1).then_some("ok"))
                .object("principal", |who| {
                    _ = who.text("name", ["ana", "bo\n", "\"c"][(n % 7 % 3) as usize]);
                })
                .maybe("reason", (n % 611 == 9).then_some("denied"))
                .object("target", |target| {
                    _ = target
                        .text("exposed", &format!("x_tool{}", n / 333))
                        .text("upstream", "x");
                })
                .time(time);
        });
        let texts = written.texts().unwrap();
        let call = call.number();
        Gist { time, call, texts }
    }

    #[test]
    fn what_was_noted_of_a_segment_while_it_was_written_is_what_is_read_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let cuts = Cuts {
            segment: 60_000,
            ..Cuts::default()
        };
        let faulty = Arc::new(Faulty::default());
        faulty.keeps.store(true, Relaxed);
        let disk = Arc::new(Shared(faulty.clone()));
        let key = SigningKey::generate().0;
        let (mut log, _) = Log::open(disk, directory.path(), origin(), key, cuts).unwrap();
        let mut written = Written::default();
        for n in 0..2_000 {
            let mut events = Events::default();
            let gist = record(n, &mut written);
            events.push(written.bytes(), Some(gist));
            if n % 97 == 0 {
                let other = event(|object| _ = object.text("event", &format!("other{n}")));
                events.push(&other, None);
            }
            log.append(&events).unwrap();
            if n % 500 == 250 {
                faulty.lying.store(1, Relaxed);
                let syncing = log.syncing().unwrap();
                log.synced(&syncing, &syncing.wait()).unwrap();
            }
        }
        log.rotate().unwrap();
        let all = log.take_ended();
        assert!(all.len() > 10, "{}", all.len());
        for Ended { path, index } in all {
            let read = Index::of(BufReader::new(fs::File::open(path).unwrap())).unwrap();
            assert_eq!(index, Some(read));
        }
    }

    #[test]
    fn what_goes_to_a_stream_has_no_index() {
        let directory = tempfile::tempdir().unwrap();
        let faulty = Arc::new(Faulty::default());
        let disk = Arc::new(Passing(Shared(faulty.clone())));
        let key = SigningKey::generate().0;
        let (mut log, _) =
            Log::open(disk, directory.path(), origin(), key, Cuts::default()).unwrap();
        let one = event(|object| _ = object.text("event", "one"));
        log.append(&[one.clone()].into()).unwrap();
        log.rotate().unwrap();
        log.append(&[one.clone()].into()).unwrap();
        let syncing = log.syncing().unwrap();
        log.synced(&syncing, &syncing.wait()).unwrap();
        log.append(&[one].into()).unwrap();
        faulty.lying.store(1, Relaxed);
        let syncing = log.syncing().unwrap();
        log.synced(&syncing, &syncing.wait()).unwrap();
        assert!(log.take_ended().is_empty());
    }

    /// SECURITY AUD-2: where there is no room for the next one, the one before has ended all the same.
    #[test]
    fn a_segment_that_ended_well_is_not_given_up_since_the_next_has_to_wait() {
        let directory = tempfile::tempdir().unwrap();
        let faulty = Arc::new(Faulty::default());
        let disk = Arc::new(Shared(faulty.clone()));
        let key = SigningKey::generate().0;
        let public = key.public();
        let (mut log, _) =
            Log::open(disk, directory.path(), origin(), key, Cuts::default()).unwrap();
        log.append(&[happened(0)].into()).unwrap();
        faulty.crowded.store(true, Relaxed);
        log.rotate().unwrap_err();
        log.append(&[happened(1)].into()).unwrap_err();
        let ended = log.take_ended();
        assert!(
            matches!(&ended[..], [Ended { index: Some(_), .. }]),
            "{ended:?}"
        );
        faulty.crowded.store(false, Relaxed);
        log.append(&[happened(2)].into()).unwrap();
        log.sign().unwrap();
        assert_eq!(calls(directory.path()), [0, 2]);
        let told = records(directory.path()).join("\n");
        assert!(told.contains(r#""reason":"next""#), "{told}");
        assert!(!told.contains(r#""reason":"sync_failed""#), "{told}");
        let report = verify(directory.path(), &[public], &[], |_| {}).unwrap();
        assert_eq!((report.faults, report.in_gaps), (vec![], 0));
    }
}
