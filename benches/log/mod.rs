//! A log as long as one wants, of records as long as those of calls are; and what of it was kept elsewhere.

use std::{
    io::BufReader,
    iter,
    path::{Path, PathBuf},
    sync::Arc,
};

use usher::audit::{
    chain::Origin,
    key::{SigningKey, VerifyingKey},
    log::{Cuts, Disk, Event, Log, Signed},
    verify::{Report, checkpoints_in, verify},
};

/// How many records issue 6 names.
pub(crate) const RECORDS: usize = 1_000_000;

/// A log that was written, synced and signed to its end.
pub(crate) struct Written {
    /// Where its segments are.
    directory: PathBuf,
    /// Whose signatures are in it.
    pub(crate) key: VerifyingKey,
    /// What was kept elsewhere: the newest checkpoint.
    pub(crate) outside: Signed,
}

impl Written {
    /// Of so many records, with the indexes of its segments or without.
    ///
    /// # Panics
    /// Where there is no room for it.
    pub(crate) fn of(directory: &Path, records: usize, indexed: bool) -> Self {
        let (key, _) = SigningKey::generate();
        let public = key.public();
        let origin = Origin {
            node: "node-1".to_owned(),
            boot: "0123456789abcdef".to_owned(),
        };
        let (mut log, _) =
            Log::open(Arc::new(Disk), directory, origin, key, Cuts::default()).expect("a log");
        for first in (0..records).step_by(250) {
            let batch = (first..records.min(first + 250)).map(record).collect();
            assert!(log.append(&batch).is_ok(), "there is room");
        }
        log.sign().expect("signed");
        let syncing = log.syncing().expect("something to wait for");
        log.synced(&syncing, &syncing.wait()).expect("synced");
        for segment in log.take_ended().into_iter().filter(|_| indexed) {
            segment.write_index().expect("an index");
        }
        let outside = iter::from_fn(|| log.take_checkpoint()).last();
        let outside = outside.expect("a checkpoint");
        // As it would be found in collected logs.
        let kept = format!("2026-11-21 INFO {outside}\n");
        let kept = checkpoints_in(BufReader::new(kept.as_bytes())).expect("read");
        Self {
            directory: directory.to_owned(),
            key: public,
            outside: kept.into_iter().next().expect("one"),
        }
    }

    /// What the offline verifier says of it with this key.
    pub(crate) fn verified(&self, key: VerifyingKey) -> Report {
        let outside = std::slice::from_ref(&self.outside);
        verify(&self.directory, &[key], outside, |_| {}).expect("read")
    }
}

/// A record as long as those of calls are.
fn record(n: usize) -> Event {
    let spent = n % 977;
    format!(
        r#"{{"arguments":{{"bytes":{spent},"digest":"00112233445566778899aabbccddeeff"}},"call":"0123456789abcdef-{n}","decision":"permit","event":"call","listener":"http","method":"tools/call","monotonic":{n},"policies":["readers"],"policy":"8a1f0c3e5d7b9a2c4e6f8091a2b3c4d5","principal":{{"client":"agent-7","groups":["dev","ops"],"issuer":"https://login.example","kind":"user","name":"ana","token":"ffeeddccbbaa99887766554433221100"}},"request":"{n}","revision":"2026-07-28","server":"everything","stage":"decision","target":{{"exposed":"notes_read","name":"read","upstream":"notes"}},"time":"2026-11-21T12:00:00.{n:09}Z","v":1}}"#
    )
    .into_bytes()
}
