//! The log against disks that fail.

use std::{fs, sync::atomic::Ordering::Relaxed, thread};

use super::{
    testing::{Faulty, Passing, Shared, age_oldest, happened, origin},
    *,
};
use crate::audit::{
    chain::{Hash, Line},
    verify::{Kind, verify},
};

fn open(disk: &Arc<Faulty>, directory: &Path, cuts: Cuts) -> (Log, Option<Recovered>) {
    let key = SigningKey::generate().0;
    Log::open(
        Arc::new(Shared(disk.clone())),
        directory,
        origin(),
        key,
        cuts,
    )
    .unwrap()
}

/// Every record in the directory that counts: what stands in a segment after where the next one goes on does not.
pub(in crate::audit) fn records(directory: &Path) -> Vec<String> {
    let mut all: Vec<(u64, Hash, String)> = Vec::new();
    for segment in segments(directory).unwrap() {
        for (n, line) in fs::read_to_string(&segment.path)
            .unwrap()
            .lines()
            .enumerate()
        {
            let Some(line) = Line::parse(line.as_bytes()) else {
                continue;
            };
            assert_eq!(Hash::of(line.record), line.hash);
            if n == 0 {
                all.retain(|(seq, ..)| *seq < line.seq);
            }
            let last = all
                .last()
                .map_or((0, Hash::ZERO), |(seq, hash, _)| (*seq, *hash));
            assert_eq!((line.seq, line.prev), (last.0 + 1, last.1), "{segment:?}");
            let event = String::from_utf8(line.event.to_vec()).unwrap();
            all.push((line.seq, line.hash, event));
        }
    }
    all.into_iter().map(|(.., event)| event).collect()
}

pub(in crate::audit) fn calls(directory: &Path) -> Vec<usize> {
    let number = |event: &str| {
        Some(
            event
                .strip_prefix(r#"{"event":"call","n":"#)?
                .strip_suffix('}')?
                .parse()
                .unwrap(),
        )
    };
    records(directory)
        .iter()
        .filter_map(|event| number(event))
        .collect()
}

/// SECURITY AUD-2, AUD-5: a disk that is full when a process starts is as one that gets full later.
#[test]
fn a_log_that_is_opened_on_a_full_disk_goes_on_when_there_is_room_and_tells_of_what_was_torn() {
    for torn in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let (mut log, _) = open(&disk, directory.path(), Cuts::default());
        log.append(&[happened(0)].into()).unwrap();
        drop(log);
        if torn {
            let last = segments(directory.path()).unwrap().pop().unwrap();
            let mut text = fs::read(&last.path).unwrap();
            text.extend(b"{\"half a rec");
            fs::write(&last.path, text).unwrap();
        }
        disk.full.store(true, Relaxed);
        let (mut log, recovered) = open(&disk, directory.path(), Cuts::default());
        assert_eq!(recovered.unwrap().cut > 0, torn);
        for _ in 0..3 {
            assert!(log.append(&[happened(1)].into()).is_err());
            assert!(log.reopen().is_err() && log.tidy().is_err());
        }
        assert_eq!(segments(directory.path()).unwrap().len(), 1);
        disk.full.store(false, Relaxed);
        log.append(&[happened(2)].into()).unwrap();
        assert_eq!(calls(directory.path()), [0, 2]);
        let reason = if torn { "recovery" } else { "opened" };
        let told = records(directory.path());
        let begun = told.iter().filter(|event| event.contains(reason)).count();
        assert_eq!(begun, 1, "{told:?}");
        // It is said once.
        log.rotate().unwrap();
        let told = records(directory.path());
        assert!(told.last().unwrap().contains("next"), "{told:?}");
    }
}

#[test]
fn records_go_on_where_the_process_before_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    for life in 0..3 {
        let (mut log, recovered) = open(&disk, directory.path(), Cuts::default());
        assert_eq!(recovered.is_some(), life > 0);
        log.append(&[happened(2 * life), happened(2 * life + 1)].into())
            .unwrap();
    }
    assert_eq!(calls(directory.path()), [0, 1, 2, 3, 4, 5]);
}

/// SECURITY AUD-5
#[test]
fn a_torn_tail_is_cut_at_its_last_whole_record_and_that_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (mut log, _) = open(&disk, directory.path(), Cuts::default());
    log.append(&[happened(0), happened(1)].into()).unwrap();
    let path = log.open.as_ref().unwrap().path.clone();
    drop(log);
    let whole = fs::read(&path).unwrap();
    for torn in [1, 100, whole.len() / 3] {
        let mut text = whole.clone();
        text.extend_from_slice(&whole[..torn]);
        fs::write(&path, &text).unwrap();
        let (log, recovered) = open(&disk, directory.path(), Cuts::default());
        assert_eq!(recovered.unwrap().cut, torn as u64);
        let new = log.open.as_ref().unwrap().path.clone();
        drop(log);
        let last = records(directory.path()).pop().unwrap();
        assert!(last.contains(r#""reason":"recovery""#), "{last}");
        assert!(last.contains(&format!(r#""torn_bytes":{torn}"#)), "{last}");
        fs::remove_file(new).unwrap();
    }
}

/// SECURITY REL-8
#[test]
fn lines_that_were_changed_and_files_of_none_are_kept_apart_and_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (mut log, _) = open(&disk, directory.path(), Cuts::default());
    log.append(&[happened(0), happened(1)].into()).unwrap();
    let path = log.open.as_ref().unwrap().path.clone();
    drop(log);
    let whole = fs::read(&path).unwrap();
    let feeds: Vec<_> = memchr::memchr_iter(b'\n', &whole).collect();
    let last = feeds[feeds.len() - 2] + 1;
    let mut changed = whole.clone();
    changed[last + 20] ^= 1;
    for (text, from) in [(changed, last), (b"no record\nnone\n".to_vec(), 0)] {
        fs::write(&path, &text).unwrap();
        let (log, recovered) = open(&disk, directory.path(), Cuts::default());
        let new = log.open.as_ref().unwrap().path.clone();
        drop(log);
        let cut = text.len() - from;
        assert_eq!(recovered.unwrap().cut, cut as u64);
        let kept = fs::read(path.with_extension(DAMAGED)).unwrap();
        assert_eq!(kept, text[from..]);
        let told = records(directory.path()).pop().unwrap();
        assert!(told.contains(&format!(r#""torn_bytes":{cut}"#)), "{told}");
        fs::remove_file(new).unwrap();
    }
}

#[test]
fn a_write_that_fails_half_way_leaves_nothing_and_the_next_one_goes_on() {
    for stuck in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let (mut log, _) = open(&disk, directory.path(), Cuts::default());
        log.append(&[happened(0)].into()).unwrap();
        disk.full.store(true, Relaxed);
        disk.stuck.store(stuck, Relaxed);
        let both = [happened(1), happened(2)].into();
        log.append(&both).unwrap_err();
        log.append(&both).unwrap_err();
        disk.full.store(false, Relaxed);
        disk.stuck.store(false, Relaxed);
        log.append(&both).unwrap();
        assert_eq!(calls(directory.path()), [0, 1, 2], "stuck: {stuck}");
    }
}

/// SECURITY AUD-7
#[test]
fn after_a_sync_that_failed_what_was_not_durable_is_written_again_in_the_next_segment() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let cuts = Cuts {
        records: 3,
        ..Cuts::default()
    };
    let (mut log, _) = open(&disk, directory.path(), cuts);
    log.append(&[happened(0)].into()).unwrap();
    let syncing = log.syncing().unwrap();
    log.synced(&syncing, &syncing.wait()).unwrap();
    log.append(&[happened(1), happened(2), happened(3)].into())
        .unwrap();
    disk.lying.store(2, Relaxed);
    for _ in 0..2 {
        let syncing = log.syncing().unwrap();
        let result = syncing.wait();
        assert!(result.is_err());
        log.synced(&syncing, &result).unwrap();
    }
    log.append(&[happened(4)].into()).unwrap();
    let syncing = log.syncing().unwrap();
    log.synced(&syncing, &syncing.wait()).unwrap();
    assert_eq!(log.durable(), log.written());
    assert_eq!(log.unsynced(), 0);
    assert_eq!(calls(directory.path()), [0, 1, 2, 3, 4]);
    let all = records(directory.path()).join("\n");
    assert!(all.contains(r#""reason":"sync_failed""#), "{all}");
    // The one in between, in which nothing was durable, is gone.
    assert_eq!(segments(directory.path()).unwrap().len(), 2);
}

/// SECURITY AUD-7: of what it could not write the system tells once, and two may wait for the same file.
#[test]
fn who_ends_a_segment_learns_of_a_sync_that_failed_for_another() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let cuts = Cuts {
        segment: 1,
        ..Cuts::default()
    };
    let (mut log, _) = open(&disk, directory.path(), cuts);
    log.append(&[happened(0)].into()).unwrap();
    let syncing = log.syncing().unwrap();
    disk.lingers.store(true, Relaxed);
    disk.lying.store(1, Relaxed);
    let result = thread::scope(|scope| {
        let other = scope.spawn(|| syncing.wait());
        while disk.lying.load(Relaxed) > 0 {
            thread::yield_now();
        }
        let next = [happened(1)].into();
        if log.append(&next).is_err() {
            log.append(&next).unwrap();
        }
        other.join().unwrap()
    });
    assert!(result.is_err());
    log.synced(&syncing, &result).unwrap();
    assert_eq!(calls(directory.path()), [0, 1]);
    // Nor is anybody told of that file later that all is well.
    assert!(syncing.wait().is_err());
}

/// SECURITY AUD-4: whoever has it elsewhere holds the log to it for ever.
#[test]
fn a_checkpoint_is_given_away_when_what_it_covers_is_durable_and_not_before() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (mut log, _) = open(&disk, directory.path(), Cuts::default());
    let sync = |log: &mut Log| {
        let syncing = log.syncing().unwrap();
        log.synced(&syncing, &syncing.wait()).unwrap();
    };
    for n in 0..2 {
        log.append(&[happened(n)].into()).unwrap();
        log.sign().unwrap();
    }
    assert_eq!(log.take_checkpoint(), None);
    disk.lying.store(1, Relaxed);
    sync(&mut log);
    sync(&mut log);
    // Those were of records that were written again.
    assert_eq!(log.take_checkpoint(), None);
    for n in 2..4 {
        log.append(&[happened(n)].into()).unwrap();
        log.sign().unwrap();
    }
    assert_eq!(log.take_checkpoint(), None);
    sync(&mut log);
    let taken: Vec<Signed> = std::iter::from_fn(|| log.take_checkpoint()).collect();
    assert_eq!(taken.len(), 2, "each, the oldest first: {taken:?}");
    assert!(taken[0].checkpoint.last.seq < taken[1].checkpoint.first);
    // What is durable already needs no other sync.
    log.append(&[happened(4)].into()).unwrap();
    sync(&mut log);
    log.sign().unwrap();
    assert!(log.take_checkpoint().is_some());
}

/// SECURITY AUD-3, AUD-7: an idle gateway is asked for a checkpoint every few seconds.
#[test]
fn what_holds_nothing_new_but_its_last_checkpoint_is_not_signed_again() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (mut log, _) = open(&disk, directory.path(), Cuts::default());
    let sign = |log: &mut Log| {
        let before = log.written().seq;
        log.sign().unwrap();
        log.written().seq - before
    };
    assert_eq!(
        sign(&mut log),
        1,
        "the beginning of a segment is to be signed"
    );
    assert_eq!((sign(&mut log), sign(&mut log)), (0, 0));
    log.append(&[happened(0)].into()).unwrap();
    assert_eq!((sign(&mut log), sign(&mut log)), (1, 0));
    log.rotate().unwrap();
    let sync = |log: &mut Log| {
        let syncing = log.syncing().unwrap();
        log.synced(&syncing, &syncing.wait()).unwrap();
    };
    sync(&mut log);
    assert_eq!((sign(&mut log), sign(&mut log)), (1, 0));
    // One that was given up is none, also where another record stands at its number now.
    let number = log.written().seq;
    disk.lying.store(1, Relaxed);
    sync(&mut log);
    assert_eq!(log.written().seq, number);
    assert_eq!((sign(&mut log), sign(&mut log)), (1, 0));
}

/// SECURITY AUD-10
#[test]
fn whole_segments_are_removed_after_their_time_and_that_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let cuts = Cuts {
        segment: 1,
        retention: Duration::ZERO,
        ..Cuts::default()
    };
    let (mut log, _) = open(&disk, directory.path(), cuts);
    for n in 0..4 {
        log.append(&[happened(n)].into()).unwrap();
    }
    let left = segments(directory.path()).unwrap();
    assert_eq!(
        left.len(),
        2,
        "the one that is written to, and the one before"
    );
    let text = fs::read_to_string(&left[1].path).unwrap();
    assert!(text.contains(r#""event":"retention""#), "{text}");
    assert!(text.contains(r#""last_hash":""#), "{text}");
}

/// SECURITY AUD-10: else nobody could tell retention from somebody who can write the files.
#[test]
fn no_segment_is_removed_before_the_record_of_it_is_signed() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (mut log, _) = open(&disk, directory.path(), Cuts::default());
    for n in 0..2 {
        log.append(&[happened(n)].into()).unwrap();
        log.rotate().unwrap();
    }
    let oldest = age_oldest(directory.path());
    log.tidy().unwrap();
    assert!(!oldest.exists());
    let newest = segments(directory.path()).unwrap().pop().unwrap().path;
    let text = fs::read_to_string(newest).unwrap();
    let last = Line::parse(text.lines().next_back().unwrap().as_bytes()).unwrap();
    assert!(last.event.starts_with(CHECKPOINT), "{text}");
    assert_eq!(log.durable(), log.written());
}

/// SECURITY AUD-1, AUD-2: what goes to a file without a name nobody will read.
#[test]
fn a_segment_that_somebody_removes_or_renames_is_given_up_and_the_chain_goes_on_in_a_new_one() {
    for renamed in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let key = SigningKey::generate().0;
        let public = key.public();
        let storage = Arc::new(Shared(disk));
        let (mut log, _) =
            Log::open(storage, directory.path(), origin(), key, Cuts::default()).unwrap();
        let faults = || {
            verify(directory.path(), &[public], &[], |_| {})
                .unwrap()
                .faults
        };
        let sync = |log: &mut Log| {
            let syncing = log.syncing().unwrap();
            log.synced(&syncing, &syncing.wait()).unwrap();
        };
        log.append(&[happened(0)].into()).unwrap();
        sync(&mut log);
        log.look().unwrap();
        assert_eq!(segments(directory.path()).unwrap().len(), 1);
        log.append(&[happened(1)].into()).unwrap();
        let path = log.open.as_ref().unwrap().path.clone();
        let elsewhere = path.with_extension("jsonl.1");
        if renamed {
            fs::rename(&path, &elsewhere).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        log.look().unwrap();
        sync(&mut log);
        log.append(&[happened(2)].into()).unwrap();
        log.sign().unwrap();
        sync(&mut log);

        let left = segments(directory.path()).unwrap();
        let [segment] = &left[..] else {
            panic!("{left:?}")
        };
        let text = fs::read_to_string(&segment.path).unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.contains(r#""after":2,"#), "{first}");
        assert!(first.contains(r#""reason":"removed""#), "{first}");
        for (n, there) in [(0, false), (1, true), (2, true)] {
            assert_eq!(text.contains(&format!(r#""n":{n}"#)), there, "{n}: {text}");
        }
        let kinds: Vec<_> = faults().iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds, [Kind::Missing { from: 1, to: 2 }]);
        if renamed {
            fs::rename(&elsewhere, &path).unwrap();
            assert_eq!(faults(), []);
            assert_eq!(calls(directory.path()), [0, 1, 2]);
        }
        // What was put in its place is left alone.
        log.look().unwrap();
        assert_eq!(log.open.as_ref().unwrap().path, segment.path);
    }
}

#[test]
fn of_a_segment_that_was_removed_before_any_of_it_was_durable_nothing_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (mut log, _) = open(&disk, directory.path(), Cuts::default());
    log.append(&[happened(0)].into()).unwrap();
    let path = log.open.as_ref().unwrap().path.clone();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "somebody else's").unwrap();
    log.rotate().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
    fs::remove_file(&path).unwrap();
    assert_eq!(calls(directory.path()), [0]);
    let told = records(directory.path());
    assert!(told[0].contains(r#""reason":"removed""#), "{told:?}");
}

/// SECURITY AUD-2, AUD-10
#[test]
fn an_old_segment_that_cannot_be_removed_stops_nothing_and_is_claimed_once() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (key, _) = SigningKey::generate();
    let public = key.public();
    let storage = Arc::new(Shared(disk.clone()));
    let (mut log, _) =
        Log::open(storage, directory.path(), origin(), key, Cuts::default()).unwrap();
    for n in 0..3 {
        log.append(&[happened(n)].into()).unwrap();
        log.rotate().unwrap();
    }
    let oldest = age_oldest(directory.path());
    disk.sticks.store(true, Relaxed);
    for n in 3..6 {
        log.append(&[happened(n)].into()).unwrap();
        log.rotate().unwrap();
        log.tidy().unwrap();
    }
    assert!(oldest.exists());
    assert_eq!(calls(directory.path()), [0, 1, 2, 3, 4, 5]);
    let told = records(directory.path());
    let claims = told
        .iter()
        .filter(|event| event.starts_with("{\"event\":\"retention\""));
    assert_eq!(claims.count(), 1, "{told:?}");
    let faults = verify(directory.path(), &[public], &[], |_| {})
        .unwrap()
        .faults;
    assert_eq!(faults, []);
    // The next start tries again.
    drop(log);
    disk.sticks.store(false, Relaxed);
    drop(open(&disk, directory.path(), Cuts::default()));
    assert!(!oldest.exists());
}

#[test]
fn of_a_stream_that_is_broken_nothing_piles_up_and_no_file_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let storage = Arc::new(Passing(Shared(disk.clone())));
    let key = SigningKey::generate().0;
    let (mut log, _) =
        Log::open(storage, directory.path(), origin(), key, Cuts::default()).unwrap();
    disk.full.store(true, Relaxed);
    disk.stuck.store(true, Relaxed);
    for n in 0..5 {
        log.append(&[happened(n)].into()).unwrap_err();
    }
    assert!(log.useless.is_empty());
    assert_eq!(segments(directory.path()).unwrap().len(), 5);
}
