//! A log that was tampered with, in each of the ways that there are.

use std::{
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use super::*;
use crate::{
    audit::{
        chain::{Origin, link},
        key::SigningKey,
        log::{
            Cuts, Log,
            testing::{Faulty, Shared, age_oldest, happened, origin},
        },
    },
    json::{Edits, Json, Kind as JsonKind, Limits},
};

struct Written {
    directory: tempfile::TempDir,
    key: VerifyingKey,
    newest: Signed,
}

/// A log of about 60 records, with a checkpoint after every ten, in segments of at least `segment` bytes.
fn written(segment: u64) -> Written {
    let directory = tempfile::tempdir().unwrap();
    let (key, _) = SigningKey::generate();
    let public = key.public();
    let cuts = Cuts {
        segment,
        records: 10,
        ..Cuts::default()
    };
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, cuts).unwrap();
    for n in 0..53 {
        log.append(&[happened(n)].into()).unwrap();
    }
    sync(&mut log);
    let newest = std::iter::from_fn(|| log.take_checkpoint()).last();
    Written {
        directory,
        key: public,
        newest: newest.unwrap(),
    }
}

/// A log whose disk keeps what is written until it is told to lie.
fn on_a_faulty_disk(cuts: Cuts) -> (tempfile::TempDir, VerifyingKey, Arc<Faulty>, Log) {
    let directory = tempfile::tempdir().unwrap();
    let (key, _) = SigningKey::generate();
    let public = key.public();
    let faulty = Arc::new(Faulty::default());
    let disk = Arc::new(Shared(faulty.clone()));
    let (log, _) = Log::open(disk, directory.path(), origin(), key, cuts).unwrap();
    faulty.keeps.store(true, Relaxed);
    (directory, public, faulty, log)
}

pub(super) fn sync(log: &mut Log) {
    let syncing = log.syncing().unwrap();
    let result = syncing.wait();
    log.synced(&syncing, &result).unwrap();
}

impl Written {
    fn report(&self, outside: &[Signed]) -> Report {
        verify(self.directory.path(), &[self.key], outside, |_| {}).unwrap()
    }

    fn only(&self) -> PathBuf {
        segments(self.directory.path()).unwrap().remove(0).path
    }

    /// The first fault after the lines were changed.
    fn fault_after(&self, change: impl FnOnce(&mut Vec<String>)) -> Option<(Option<u64>, Kind)> {
        let path = self.only();
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let report = self.report(std::slice::from_ref(&self.newest));
        fs::write(&path, text).unwrap();
        report.faults.first().map(|fault| (fault.seq, fault.kind))
    }
}

/// Links lines anew from `range.start` on, as somebody without the key could.
fn rechain(lines: &mut [String], range: Range<usize>) {
    let origin: Origin = origin();
    for n in range {
        let last = Line::parse(lines[n - 1].as_bytes()).unwrap().place();
        let event = Line::parse(lines[n].as_bytes()).unwrap().event.to_vec();
        let mut out = Vec::new();
        link(&mut out, &event, &last, &origin);
        lines[n] = String::from_utf8(out).unwrap().trim_end().to_owned();
    }
}

#[test]
fn an_untouched_log_is_whole_whatever_its_segments() {
    for segment in [u64::MAX, 4_000, 1] {
        let written = written(segment);
        let report = written.report(std::slice::from_ref(&written.newest));
        assert_eq!(report.faults, [], "{segment}");
        assert_eq!(report.last.unwrap().seq, report.records);
        assert!(report.checkpoints >= 5, "{report:?}");
        assert_eq!((&report.gaps[..], report.in_gaps), (&[][..], 0));
        assert_eq!(report.signed, written.newest.checkpoint.last.seq);
    }
}

/// SECURITY AUD-3
#[test]
fn a_changed_byte_anywhere_is_found_where_it_is() {
    let written = written(u64::MAX);
    let path = written.only();
    let text = fs::read(&path).unwrap();
    // Each byte would take long.
    for at in (0..text.len()).filter(|at| at % 7 == 0 || text[*at] == b'\n') {
        let mut other = text.clone();
        other[at] ^= 1;
        fs::write(&path, &other).unwrap();
        let report = written.report(&[]);
        let first = report
            .faults
            .first()
            .unwrap_or_else(|| panic!("byte {at} may be changed"));
        let line = 1 + text[..at].iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(first.line, line, "byte {at}: {first}");
    }
}

/// SECURITY AUD-3, REL-1: whoever writes what no log holds is told of, and takes no report away.
#[test]
fn a_number_that_no_record_has_is_found_like_any_other_change() {
    let written = written(u64::MAX);
    for seq in ["0", "9007199254740992", "18446744073709551615"] {
        let fault = written.fault_after(|lines| {
            let (before, _) = lines[9].rsplit_once(':').unwrap();
            lines[9] = format!("{before}:{seq}}}}}}}");
        });
        assert_eq!(fault, Some((None, Kind::Malformed)), "{seq}");
    }
}

/// SECURITY AUD-3, REL-1
#[test]
fn a_torn_line_before_records_that_come_again_is_not_counted_and_not_uncounted() {
    let (directory, public, faulty, mut log) = on_a_faulty_disk(Cuts::default());
    log.append(&[happened(0)].into()).unwrap();
    let given_up = segments(directory.path()).unwrap().remove(0).path;
    let text = fs::read(&given_up).unwrap();
    faulty.lying.store(1, Relaxed);
    sync(&mut log);
    fs::write(&given_up, text.trim_ascii_end()).unwrap();
    let report = verify(directory.path(), &[public], &[], |_| {}).unwrap();
    let kinds: Vec<_> = report.faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, [Kind::Torn]);
    assert_eq!(report.records, 2);
}

/// SECURITY AUD-3
#[test]
fn records_that_were_removed_put_in_moved_or_doubled_are_found() {
    let written = written(u64::MAX);
    let removed = written.fault_after(|lines| drop(lines.drain(20..22)));
    assert_eq!(
        removed,
        Some((Some(23), Kind::Missing { from: 21, to: 22 }))
    );
    let doubled = written.fault_after(|lines| lines.insert(20, lines[19].clone()));
    assert_eq!(doubled, Some((Some(20), Kind::OutOfOrder { after: 20 })));
    let swapped = written.fault_after(|lines| lines.swap(20, 21));
    assert_eq!(
        swapped,
        Some((Some(22), Kind::Missing { from: 21, to: 21 }))
    );
    let inserted = written.fault_after(|lines| {
        let event = lines[20].clone();
        lines.insert(20, event);
        rechain(lines, 20..21);
    });
    assert_eq!(inserted, Some((Some(21), Kind::OutOfOrder { after: 21 })));
    assert_eq!(written.fault_after(|_| {}), None);
}

/// SECURITY AUD-3
#[test]
fn a_chain_that_was_made_anew_does_not_fit_what_was_signed() {
    let written = written(u64::MAX);
    let last = fs::read_to_string(written.only()).unwrap().lines().count();
    let replaced = written.fault_after(|lines| {
        lines[4] = lines[4].replace("\"n\":3", "\"n\":4");
        rechain(lines, 4..last);
    });
    assert_eq!(
        replaced,
        Some((Some(11), Kind::NotAsSigned { first: 1, last: 10 }))
    );
    let stripped = written.fault_after(|lines| {
        lines.retain(|line| !line.contains("\"checkpoint\""));
        let last = lines.len();
        rechain(lines, 4..last);
    });
    assert!(
        matches!(stripped, Some((_, Kind::NotAsOutside | Kind::Cut { .. }))),
        "{stripped:?}"
    );
}

#[test]
fn another_key_is_not_ours() {
    let written = written(u64::MAX);
    let other = SigningKey::generate().0.public();
    let report = verify(written.directory.path(), &[other], &[], |_| {}).unwrap();
    let first = report.faults.first().unwrap();
    assert_eq!(
        (first.seq, first.kind),
        (Some(11), Kind::NotSigned { first: 1, last: 10 })
    );
    assert_eq!(report.checkpoints, 0);
}

/// SECURITY AUD-4
#[test]
fn a_tail_cut_off_before_a_checkpoint_held_elsewhere_is_missed() {
    let written = written(u64::MAX);
    let known = written.newest.checkpoint.last.seq;
    let keep = usize::try_from(known).unwrap();
    assert_eq!(written.fault_after(|lines| lines.truncate(keep)), None);
    let cut = written.fault_after(|lines| lines.truncate(keep - 1));
    assert_eq!(
        cut,
        Some((
            None,
            Kind::Cut {
                last: known - 1,
                known
            }
        ))
    );
    let all = written.fault_after(|lines| lines.truncate(3));
    assert_eq!(all, Some((None, Kind::Cut { last: 3, known })));
}

#[test]
fn whole_segments_that_are_gone_are_missed_unless_their_removal_was_recorded() {
    let whole = written(2_000);
    let all = segments(whole.directory.path()).unwrap();
    fs::remove_file(&all[0].path).unwrap();
    let report = whole.report(&[]);
    let kind = Kind::Missing {
        from: 1,
        to: all[1].first - 1,
    };
    assert_eq!(report.faults.first().map(|fault| fault.kind), Some(kind));
    fs::remove_file(&all[2].path).unwrap();
    assert!(
        whole
            .report(&[])
            .faults
            .iter()
            .any(|fault| matches!(fault.kind, Kind::Missing { from, .. } if from == all[2].first))
    );

    let directory = tempfile::tempdir().unwrap();
    let (key, _) = SigningKey::generate();
    let public = key.public();
    let cuts = Cuts {
        segment: 1,
        retention: std::time::Duration::ZERO,
        ..Cuts::default()
    };
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, cuts).unwrap();
    for n in 0..5 {
        log.append(&[happened(n)].into()).unwrap();
    }
    let report = verify(directory.path(), &[public], &[], |_| {}).unwrap();
    assert!(report.first > 1);
    assert_eq!(report.faults, []);
}

/// SECURITY AUD-10: who was killed while it removed segments leaves a log that is whole.
#[test]
fn a_removal_that_was_stopped_halfway_is_no_tampering() {
    let directory = tempfile::tempdir().unwrap();
    let (key, _) = SigningKey::generate();
    let public = key.public();
    let cuts = Cuts {
        segment: 1,
        ..Cuts::default()
    };
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, cuts).unwrap();
    for n in 0..6 {
        log.append(&[happened(n)].into()).unwrap();
    }
    let old = segments(directory.path()).unwrap();
    for segment in &old[..3] {
        let file = fs::OpenOptions::new().write(true).open(&segment.path);
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        file.unwrap().set_modified(long_ago).unwrap();
    }
    let third = fs::read(&old[2].path).unwrap();
    log.tidy().unwrap();
    assert!(old[..3].iter().all(|segment| !segment.path.exists()));
    fs::write(&old[2].path, third).unwrap();
    let report = verify(directory.path(), &[public], &[], |_| {}).unwrap();
    assert_eq!((report.first, report.faults), (old[2].first, vec![]));
}

/// SECURITY AUD-3, AUD-10: anybody who can write the files can say that it was retention.
#[test]
fn a_removal_counts_only_where_the_record_of_it_is_signed() {
    let directory = tempfile::tempdir().unwrap();
    let (_, text) = SigningKey::generate();
    let key = || SigningKey::parse(&text).unwrap();
    let open = || {
        let disk = Arc::new(Shared(Arc::new(Faulty::default())));
        let cuts = Cuts {
            segment: 2_000,
            ..Cuts::default()
        };
        Log::open(disk, directory.path(), origin(), key(), cuts)
            .unwrap()
            .0
    };
    let mut log = open();
    for n in 0..30 {
        log.append(&[happened(n)].into()).unwrap();
    }
    log.sign().unwrap();
    sync(&mut log);
    let outside: Vec<Signed> = std::iter::from_fn(|| log.take_checkpoint()).collect();
    let all = segments(directory.path()).unwrap();
    fs::remove_file(&all[0].path).unwrap();
    let first = fs::read_to_string(&all[1].path).unwrap();
    let first = Line::parse(first.lines().next().unwrap().as_bytes()).unwrap();
    let (to, hash) = (first.seq - 1, first.prev);
    let forged = format!(
        r#"{{"event":"retention","retention":{{"last":{to},"last_hash":"{hash}","segments":[]}},"v":1}}"#
    );
    let newest = &all.last().unwrap().path;
    let mut text = fs::read(newest).unwrap();
    let place = link(&mut text, forged.as_bytes(), &log.written(), &origin());
    drop(log);
    fs::write(newest, text).unwrap();
    let kinds = || {
        let report = verify(directory.path(), &[key().public()], &outside, |_| {}).unwrap();
        let faults = report.faults.into_iter();
        faults.map(|fault| fault.kind).collect::<Vec<_>>()
    };
    let not_signed = Kind::RemovalNotSigned { to, by: place.seq };
    assert_eq!(kinds(), [not_signed]);
    // Nor is it signed by a gateway that goes on after it: what that signs begins with its own records.
    let mut log = open();
    log.append(&[happened(30)].into()).unwrap();
    log.sign().unwrap();
    assert_eq!(kinds(), [not_signed]);
}

/// SECURITY AUD-7
#[test]
fn a_segment_that_was_given_up_is_whole_if_its_records_come_again() {
    let cuts = Cuts {
        records: 4,
        ..Cuts::default()
    };
    let (directory, public, faulty, mut log) = on_a_faulty_disk(cuts);
    let mut outside = Vec::new();
    for n in 0..12 {
        log.append(&[happened(n)].into()).unwrap();
        outside.extend(std::iter::from_fn(|| log.take_checkpoint()));
        if n % 3 == 2 {
            faulty.lying.store(usize::from(n % 2 == 0), Relaxed);
            sync(&mut log);
            outside.extend(std::iter::from_fn(|| log.take_checkpoint()));
        }
    }
    let report = verify(directory.path(), &[public], &outside, |_| {}).unwrap();
    assert_eq!(report.faults, []);
    assert_eq!(report.records, report.last.unwrap().seq);
    assert!(report.outside.is_some());
    // A sink reads what is written, durable or not: what stands in the segment that was given up was there.
    let mut delivered = Vec::new();
    for segment in segments(directory.path()).unwrap() {
        let text = fs::read(&segment.path).unwrap();
        delivered.extend(checkpoints_in(text.as_slice()).unwrap());
    }
    assert!(delivered.iter().any(|one| !outside.contains(one)));
    let report = verify(directory.path(), &[public], &delivered, |_| {}).unwrap();
    assert_eq!(report.faults, []);
    // Without one of the records that came again it is not.
    let newest = segments(directory.path()).unwrap().pop().unwrap().path;
    let text = fs::read_to_string(&newest).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.remove(1);
    let last = lines.len();
    rechain(&mut lines, 1..last);
    fs::write(&newest, lines.join("\n") + "\n").unwrap();
    let report = verify(directory.path(), &[public], &[], |_| {}).unwrap();
    assert_eq!(
        report.faults.first().map(|fault| fault.kind),
        Some(Kind::NotAgain)
    );
}

/// SECURITY AUD-3, AUD-7: what was given up is signed by nobody once it is written again.
#[test]
fn no_more_counts_as_signed_than_what_is_left_of_a_segment_that_was_given_up() {
    let (directory, public, faulty, mut log) = on_a_faulty_disk(Cuts::default());
    let report = || verify(directory.path(), &[public], &[], |_| {}).unwrap();
    let more = |log: &mut Log, records: usize, signs: bool, fails: bool| {
        for n in 0..records {
            log.append(&[happened(n)].into()).unwrap();
        }
        if signs {
            log.sign().unwrap();
        }
        faulty.lying.store(usize::from(fails), Relaxed);
        sync(log);
        report()
    };
    let signed = more(&mut log, 3, true, false).signed;
    let durable = more(&mut log, 2, false, false).last.unwrap().seq;
    assert!(signed < durable);
    // They are signed with others that are given up, and those alone are not signed any more.
    let now = more(&mut log, 3, true, true);
    assert_eq!((now.faults, now.gaps), (vec![], vec![]));
    assert_eq!(now.signed, durable);
    let now = more(&mut log, 1, true, false);
    assert_eq!((now.faults, now.gaps, now.in_gaps), (vec![], vec![], 0));
    // Those that nobody had signed yet stay so, but for the checkpoint before them.
    let (signed, proven) = (now.signed, now.proven);
    assert_eq!(proven, signed + 1);
    let durable = more(&mut log, 2, false, false).last.unwrap().seq;
    let now = more(&mut log, 2, false, true);
    assert_eq!((now.signed, now.gaps), (signed, vec![]));
    let now = more(&mut log, 1, true, false);
    assert_eq!(now.faults, []);
    assert_eq!(now.gaps, [(proven + 1, durable)]);
    assert_eq!(now.in_gaps, durable - proven);
}

/// SECURITY AUD-3: whoever looks for something finds it.
#[test]
fn an_index_that_leaves_anything_out_is_found_and_one_that_lists_more_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let (key, _) = SigningKey::generate();
    let public = key.public();
    let cuts = Cuts {
        segment: 8 << 10,
        ..Cuts::default()
    };
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, cuts).unwrap();
    for n in 0..40 {
        let event = format!(
            r#"{{"call":"p-{n}","decision":"permit","event":"call","findings":[{{"class":"c","rule":"r"}}],"method":"m","outcome":"ok","principal":{{"name":"ana"}},"reason":"why","target":{{"exposed":"x_t","upstream":"x"}},"time":"2026-11-27T09:00:{n:02}.000Z"}}"#
        );
        log.append(&[event.into_bytes()].into()).unwrap();
    }
    log.sign().unwrap();
    let ended = log.take_ended();
    for segment in &ended {
        segment.write_index().unwrap();
    }
    let faults = || {
        let report = verify(directory.path(), &[public], &[], |_| {}).unwrap();
        assert!(report.signed > 30);
        let faults = report.faults.into_iter();
        faults
            .map(|fault| (fault.file, fault.kind))
            .collect::<Vec<_>>()
    };
    assert_eq!(faults(), []);
    let index = segments(directory.path()).unwrap().remove(0).path;
    let index = index.with_extension(INDEX);
    let whole = Json::parse(fs::read(&index).unwrap().into(), &Limits::CLIENT).unwrap();
    let with = |members: &[(&str, &str)]| {
        let mut edits = Edits::new();
        for (name, value) in members {
            let value = Json::parse(value.to_string().into(), &Limits::CLIENT).unwrap();
            edits.set(whole.root(), name, value);
        }
        fs::write(&index, whole.splice(&edits).bytes()).unwrap();
    };
    let mut changed = 0;
    for member in whole.root().members() {
        let name = &*member.key;
        let text = whole.slice(member.value);
        let less = match (member.value.kind(), text.as_str().split_once(',')) {
            (JsonKind::Array, Some((_, others))) => format!("[{others}"),
            (JsonKind::Array, None) => "[]".to_owned(),
            (JsonKind::Object, _) => r#"{"p":[9,9]}"#.to_owned(),
            _ if name == "since" => r#""2026-11-27T10""#.to_owned(),
            _ if name == "until" => r#""2026-11-27T08""#.to_owned(),
            _ => continue,
        };
        changed += 1;
        with(&[(name, &less)]);
        assert_eq!(faults(), [(index.clone(), Kind::LeavesOut)], "{name}");
        // A sort that was given up rules nothing out.
        if member.value.kind() == JsonKind::Array {
            with(&[(name, "null")]);
            assert_eq!(faults(), [], "{name}");
        }
    }
    assert_eq!(changed, 12);
    // One that is for another length is read by nobody.
    with(&[("length", "1"), ("names", "[]")]);
    assert_eq!(faults(), []);
}

/// SECURITY AUD-7, AUD-10: such a segment holds more than the log goes on from.
#[test]
fn the_removal_of_a_segment_that_was_given_up_is_recorded_by_where_the_next_goes_on() {
    let cuts = Cuts {
        retention: std::time::Duration::ZERO,
        ..Cuts::default()
    };
    let (directory, public, faulty, mut log) = on_a_faulty_disk(cuts);
    for n in 0..5 {
        log.append(&[happened(n)].into()).unwrap();
    }
    sync(&mut log);
    for n in 5..8 {
        log.append(&[happened(n)].into()).unwrap();
    }
    faulty.lying.store(1, Relaxed);
    sync(&mut log);
    log.rotate().unwrap();
    let report = verify(directory.path(), &[public], &[], |_| {}).unwrap();
    assert_eq!((report.first, report.segments), (7, 2));
    assert_eq!(report.faults, []);
}

/// SECURITY AUD-7, AUD-10: what was not removed after all is removed later, and told then.
#[test]
fn a_log_is_whole_where_the_sync_of_a_removal_has_failed() {
    let (directory, public, faulty, mut log) = on_a_faulty_disk(Cuts::default());
    for n in 0..2 {
        log.append(&[happened(n)].into()).unwrap();
        log.rotate().unwrap();
    }
    sync(&mut log);
    let oldest = age_oldest(directory.path());
    log.append(&[happened(2)].into()).unwrap();
    faulty.lying.store(1, Relaxed);
    log.tidy().unwrap();
    log.append(&[happened(3)].into()).unwrap();
    let report = || verify(directory.path(), &[public], &[], |_| {}).unwrap();
    assert_eq!((report().first, report().faults), (1, vec![]));
    assert!(oldest.exists());
    log.tidy().unwrap();
    assert!(!oldest.exists());
    assert_eq!(report().faults, []);
}

#[test]
fn a_log_that_was_opened_again_is_whole_whether_or_not_by_the_same_process() {
    let directory = tempfile::tempdir().unwrap();
    let (_, text) = SigningKey::generate();
    let key = || SigningKey::parse(&text).unwrap();
    for life in 0..4 {
        let disk = Arc::new(Shared(Arc::new(Faulty::default())));
        let mut origin = origin();
        if life == 3 {
            "other".clone_into(&mut origin.boot);
        }
        let (mut log, _) =
            Log::open(disk, directory.path(), origin, key(), Cuts::default()).unwrap();
        for n in 0..5 {
            log.append(&[happened(n)].into()).unwrap();
        }
        if life % 2 == 0 {
            log.sign().unwrap();
        }
    }
    let report = verify(directory.path(), &[key().public()], &[], |_| {}).unwrap();
    assert_eq!(report.faults, []);
    assert_eq!(report.checkpoints, 2);
}

/// SECURITY AUD-3: what a process wrote that died before it signed it may be anybody's.
#[test]
fn records_that_nobody_signed_are_told_also_where_later_ones_are_signed() {
    let directory = tempfile::tempdir().unwrap();
    let (_, text) = SigningKey::generate();
    let key = || SigningKey::parse(&text).unwrap();
    let open = || {
        let disk = Arc::new(Shared(Arc::new(Faulty::default())));
        let cuts = Cuts::default();
        Log::open(disk, directory.path(), origin(), key(), cuts)
            .unwrap()
            .0
    };
    let report = || verify(directory.path(), &[key().public()], &[], |_| {}).unwrap();
    let mut log = open();
    for n in 0..3 {
        log.append(&[happened(n)].into()).unwrap();
    }
    log.sign().unwrap();
    sync(&mut log);
    let proven = report().proven;
    assert_eq!(proven, log.written().seq, "the checkpoint proves itself");
    assert_eq!((report().gaps, report().in_gaps), (vec![], 0));
    for n in 3..6 {
        log.append(&[happened(n)].into()).unwrap();
    }
    let last = log.written().seq;
    drop(log);
    assert_eq!(report().gaps, [], "nothing is signed after them");
    let mut log = open();
    log.append(&[happened(6)].into()).unwrap();
    log.sign().unwrap();
    drop(log);
    let report = report();
    assert_eq!(report.faults, []);
    assert!(report.signed > last);
    let [(first, end)] = report.gaps[..] else {
        panic!("{report:?}");
    };
    assert_eq!(first, proven + 1);
    assert!(end >= last, "{report:?}");
    assert_eq!(report.in_gaps, end - first + 1);
}
