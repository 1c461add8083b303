//! Every way to tamper with a log of a million records is found, and where it is (SECURITY AUD-3, AUD-4; issue 6, acceptance 2).

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot read what it wrote has failed"
)]

#[path = "../benches/log/mod.rs"]
mod log;

use std::{
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use usher::audit::{
    chain::{Line, Origin, link},
    key::SigningKey,
    log::{Segment, segments},
    verify::{Fault, Kind, Report},
};

use log::{RECORDS, Written};

/// How often a byte of each segment is changed, each time another.
const ROUNDS: usize = 4;

// One test, for writing a million records takes longer than verifying them.
#[test]
fn every_way_to_tamper_with_a_million_records_is_found_and_where_it_is() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let log = Written::of(directory.path(), RECORDS, false);
    let all = segments(directory.path()).unwrap();
    assert!(all.len() >= 12, "{} segments", all.len());
    let whole = |what: &str| {
        let report = log.verified(log.key);
        assert_eq!(report.faults, [], "{what}");
        assert!(report.records > RECORDS as u64, "{what}");
    };
    whole("untouched");
    for _ in 0..ROUNDS {
        bytes_changed(&log, &all);
    }
    records_moved(&log, &all);
    segments_moved(&log, &all);
    whole("restored");

    let foreign = log.verified(SigningKey::generate().0.public());
    let first = foreign.faults.first().map(|fault| fault.kind);
    assert!(
        matches!(first, Some(Kind::NotSigned { first: 1, .. })),
        "{first:?}"
    );
    tail_cut(&log, all.last().unwrap());
}

/// One bit of one byte, anywhere in each segment.
fn bytes_changed(log: &Written, all: &[Segment]) {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut changed = Vec::new();
    for segment in all {
        // But its last line: what follows that is in the next segment, and told there.
        let text = fs::read(&segment.path).unwrap();
        let last = memchr::memrchr(b'\n', &text[..text.len() - 1]).unwrap() + 1;
        let (at, bit) = (random.u64(..last as u64), 1 << random.u8(..8));
        flip(&segment.path, at, bit);
        changed.push((segment, at, bit));
    }
    let report = log.verified(log.key);
    for (segment, at, bit) in changed {
        flip(&segment.path, at, bit);
        let text = fs::read(&segment.path).unwrap();
        let line = 1 + lines(&text[..at as usize]);
        let found = first_in(&report, &segment.path);
        assert!(
            found.is_some_and(|fault| fault.line == line),
            "seed {seed}, bit {bit} of byte {at} in line {line} of {}: {found:?}",
            segment.path.display()
        );
    }
}

fn flip(path: &Path, at: u64, bit: u8) {
    let file = fs::File::options().read(true).write(true).open(path);
    let file = file.unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ bit], at).unwrap();
}

/// Records removed, put in, swapped and doubled, in segments of their own; and two swapped across segments.
fn records_moved(log: &Written, all: &[Segment]) {
    let kept: Vec<Vec<u8>> = all[..=10]
        .iter()
        .map(|of| fs::read(&of.path).unwrap())
        .collect();
    let mut wanted: Vec<(&str, usize, u64)> = Vec::new();
    let put = |n: usize, parts: &[&[u8]]| fs::write(&all[n].path, parts.concat()).unwrap();

    let parts = Parts::of(&kept[0]);
    put(0, &[parts.before, parts.next, parts.after]);
    wanted.push(("removed", 0, parts.seq() + 1));

    let parts = Parts::of(&kept[2]);
    let line = Line::parse(parts.middle.trim_ascii_end()).unwrap();
    let origin = Origin {
        node: line.node.to_owned(),
        boot: line.boot.to_owned(),
    };
    let mut new = Vec::new();
    let event = br#"{"event":"call","v":1}"#;
    link(&mut new, event, &line.place(), &origin);
    put(
        2,
        &[parts.before, parts.middle, &new, parts.next, parts.after],
    );
    // It follows the one before; the one after it does not follow it.
    wanted.push(("put in, linked to the one before", 2, parts.seq() + 1));

    let parts = Parts::of(&kept[4]);
    put(4, &[parts.before, parts.next, parts.middle, parts.after]);
    wanted.push(("swapped", 4, parts.seq() + 1));

    let parts = Parts::of(&kept[6]);
    put(
        6,
        &[
            parts.before,
            parts.middle,
            parts.middle,
            parts.next,
            parts.after,
        ],
    );
    wanted.push(("doubled", 6, parts.seq()));

    let (one, other) = (Parts::of(&kept[8]), Parts::of(&kept[10]));
    put(8, &[one.before, other.middle, one.next, one.after]);
    put(10, &[other.before, one.middle, other.next, other.after]);
    wanted.push(("swapped with a later segment's", 8, other.seq()));
    wanted.push(("swapped with an earlier segment's", 10, one.seq()));

    let report = log.verified(log.key);
    for (what, n, seq) in wanted {
        let found = first_in(&report, &all[n].path);
        assert!(
            found.is_some_and(|fault| fault.seq == Some(seq)),
            "{what}, {seq}: {found:?}"
        );
    }
    for (segment, text) in all.iter().zip(kept) {
        fs::write(&segment.path, text).unwrap();
    }
}

/// A whole segment removed, and one in the place of another.
fn segments_moved(log: &Written, all: &[Segment]) {
    let aside = aside(&all[3].path);
    fs::rename(&all[3].path, &aside).unwrap();
    let report = log.verified(log.key);
    let first = &report.faults[0];
    let missing = Kind::Missing {
        from: all[3].first,
        to: all[4].first - 1,
    };
    assert_eq!((&first.file, first.line), (&all[4].path, 1));
    assert_eq!(first.kind, missing);

    fs::copy(&all[7].path, &all[3].path).unwrap();
    let report = log.verified(log.key);
    let first = &report.faults[0];
    assert_eq!((&first.file, first.line), (&all[3].path, 1));
    assert_eq!(first.seq, Some(all[7].first), "doubled: {first}");
    fs::rename(&aside, &all[3].path).unwrap();
}

/// The end is cut off, before what was kept elsewhere.
fn tail_cut(log: &Written, last: &Segment) {
    let text = fs::read(&last.path).unwrap();
    let known = log.outside.checkpoint.last.seq;
    let mut end = 0;
    // The last line that is left is the one before the last that the checkpoint covers.
    for feed in memchr::memchr_iter(b'\n', &text) {
        if Line::parse(&text[end..feed]).unwrap().seq >= known {
            break;
        }
        end = feed + 1;
    }
    fs::write(&last.path, &text[..end]).unwrap();
    let report = log.verified(log.key);
    let first = report.faults.first().map(|fault| fault.kind);
    let last = known - 1;
    assert_eq!(first, Some(Kind::Cut { last, known }));
}

fn aside(path: &Path) -> PathBuf {
    path.with_extension("aside")
}

/// The first thing that is wrong with a segment.
fn first_in<'a>(report: &'a Report, path: &Path) -> Option<&'a Fault> {
    report.faults.iter().find(|fault| fault.file == path)
}

fn lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// A segment, taken apart around two lines in its middle; each with its end.
struct Parts<'a> {
    before: &'a [u8],
    middle: &'a [u8],
    next: &'a [u8],
    after: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(text: &'a [u8]) -> Self {
        let line = |from: usize| from + memchr::memchr(b'\n', &text[from..]).unwrap() + 1;
        let begin = line(text.len() / 2);
        let next = line(begin);
        let end = line(next);
        Self {
            before: &text[..begin],
            middle: &text[begin..next],
            next: &text[next..end],
            after: &text[end..],
        }
    }

    fn seq(&self) -> u64 {
        Line::parse(self.middle.trim_ascii_end()).unwrap().seq
    }
}
