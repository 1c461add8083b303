//! How fast is a log of a million records verified, and is every way to tamper with it found where it is?
//!
//! Budget: 200 MiB/s on two cores (issue 6, acceptance 2). Faults: a changed byte, in several places; a record that is removed, put in,
//! swapped, doubled; a tail cut off before the last checkpoint held elsewhere; a foreign key. Each has to be located: the right record,
//! or the right line of the right file. Ends with an error where one is not.
//!
//! Run with `cargo bench --bench audit`; another number of records may be given as an argument.
//!
//! Measured on 2026-11-21, two shared cores under a load of about 9: 1,001,020 records, 816 MiB, at 313 MiB/s; with each of the faults
//! between 2.1 and 3.1 s, which is 266 to 390 MiB/s. Of CPU time: 460 MiB for each second of a core. An idle run is still owed.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "what is put together here is well-formed, and the figures are the result"
)]

use std::{
    fs,
    io::{BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    iter,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use usher::audit::{
    chain::{Line, Origin, Place, link},
    key::{SigningKey, VerifyingKey},
    log::{Cuts, Disk, Event, Log, Segment, Signed, segments},
    verify::{Fault, Kind, Report, checkpoints_in, verify},
};

const RECORDS: usize = 1_000_000;

fn main() -> ExitCode {
    let given = std::env::args().filter_map(|arg| arg.parse().ok()).next();
    let records = given.unwrap_or(RECORDS);
    let directory = tempfile::tempdir().expect("a directory");
    let log = Written::of(directory.path(), records);
    let mut failed = false;
    let (report, took) = log.verified(&[log.key]);
    let mib = report.bytes as f64 / f64::from(1 << 20);
    println!(
        "{} records, {mib:.0} MiB in {} segments: {:.2} s, {:.0} MiB/s",
        report.records,
        report.segments,
        took.as_secs_f64(),
        mib / took.as_secs_f64()
    );
    if !report.faults.is_empty() {
        println!(
            "  FAILED: an untouched log has faults: {}",
            report.faults[0]
        );
        failed = true;
    }
    for (name, tamper) in TAMPERINGS {
        let all = segments(directory.path()).expect("segments");
        // In the middle of the log.
        let segment = &all[all.len() / 2];
        let before = fs::read(&segment.path).expect("read");
        let wanted = tamper(&log, segment, &before);
        let (report, took) = log.verified(&[log.key]);
        fs::write(&segment.path, before).expect("written");
        let first = report.faults.first();
        let found = first.is_some_and(|first| wanted.is(first, &segment.path));
        failed |= !found;
        let told = first.map_or_else(|| "nothing".to_owned(), Fault::to_string);
        let word = if found { "found" } else { "FAILED" };
        println!("{name}: {word} in {:.2} s: {told}", took.as_secs_f64());
    }
    failed |= !log.foreign_key();
    failed |= !log.cut_tail(directory.path());
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Where a fault has to be.
enum Wanted {
    /// At this line of the segment.
    Line(u64),
    /// At this record.
    Record(u64),
}

impl Wanted {
    fn is(&self, fault: &Fault, path: &Path) -> bool {
        let here = fault.file == path;
        here && match *self {
            Self::Line(line) => fault.line == line,
            Self::Record(seq) => fault.seq == Some(seq),
        }
    }
}

type Tamper = fn(&Written, &Segment, &[u8]) -> Wanted;

const TAMPERINGS: [(&str, Tamper); 9] = [
    ("a byte of the content", |log, segment, text| {
        log.flip(segment, text, 300)
    }),
    ("a byte of the hash", |log, segment, text| {
        log.flip(segment, text, 20)
    }),
    ("a byte of the frame", |log, segment, text| {
        log.flip(segment, text, 1)
    }),
    ("a byte of the link", |log, segment, text| {
        let line = middle(text);
        log.flip(segment, text, line.1 - line.0 - 30)
    }),
    ("the end of a line", |log, segment, text| {
        let line = middle(text);
        log.flip(segment, text, line.1 - line.0)
    }),
    ("a record removed", |_, segment, text| {
        let (begin, end) = middle(text);
        let seq = seq(&text[begin..end]);
        rewrite(segment, &[&text[..begin], &text[end + 1..]]);
        Wanted::Record(seq + 1)
    }),
    (
        "a record put in, linked to the one before",
        |_, segment, text| {
            let (begin, end) = middle(text);
            let line = Line::parse(&text[begin..end]).expect("a line");
            let mut new = Vec::new();
            let origin = Origin {
                node: line.node.to_owned(),
                boot: line.boot.to_owned(),
            };
            let last = Place {
                seq: line.seq,
                hash: line.hash,
            };
            link(&mut new, b"{\"event\":\"call\",\"v\":1}", &last, &origin);
            rewrite(segment, &[&text[..=end], &new, &text[end + 1..]]);
            // It follows the one before; the one after it does not follow it.
            Wanted::Record(line.seq + 1)
        },
    ),
    ("two records swapped", |_, segment, text| {
        let (begin, end) = middle(text);
        let next = end + 1 + line_end(&text[end + 1..]);
        let seq = seq(&text[begin..end]);
        let (one, other) = (&text[begin..=end], &text[end + 1..=next]);
        rewrite(segment, &[&text[..begin], other, one, &text[next + 1..]]);
        Wanted::Record(seq + 1)
    }),
    ("a record doubled", |_, segment, text| {
        let (begin, end) = middle(text);
        let seq = seq(&text[begin..end]);
        rewrite(
            segment,
            &[&text[..=end], &text[begin..=end], &text[end + 1..]],
        );
        Wanted::Record(seq)
    }),
];

fn rewrite(segment: &Segment, parts: &[&[u8]]) {
    fs::write(&segment.path, parts.concat()).expect("written");
}

/// Where a line in the middle begins and ends.
fn middle(text: &[u8]) -> (usize, usize) {
    let half = text.len() / 2;
    let begin = half + line_end(&text[half..]) + 1;
    (begin, begin + line_end(&text[begin..]))
}

fn line_end(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).expect("a line ends")
}

fn seq(line: &[u8]) -> u64 {
    Line::parse(line).expect("a line").seq
}

struct Written {
    directory: PathBuf,
    key: VerifyingKey,
    /// What was kept elsewhere: the newest checkpoint.
    outside: Signed,
}

impl Written {
    fn of(directory: &Path, records: usize) -> Self {
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
            assert!(log.append(batch).is_ok(), "there is room");
        }
        log.sign().expect("signed");
        let syncing = log.syncing().expect("something to wait for");
        log.synced(&syncing, &syncing.wait()).expect("synced");
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

    fn verified(&self, keys: &[VerifyingKey]) -> (Report, Duration) {
        let began = Instant::now();
        let outside = std::slice::from_ref(&self.outside);
        let report = verify(&self.directory, keys, outside, |_| {}).expect("read");
        (report, began.elapsed())
    }

    /// Changes a bit of a byte of the line in the middle.
    fn flip(&self, segment: &Segment, text: &[u8], at: usize) -> Wanted {
        let (begin, _) = middle(text);
        let place = begin + at;
        let mut file = fs::File::options()
            .read(true)
            .write(true)
            .open(&segment.path)
            .expect("opened");
        let mut byte = [0];
        file.seek(SeekFrom::Start(place as u64)).expect("there");
        file.read_exact(&mut byte).expect("read");
        file.seek(SeekFrom::Start(place as u64)).expect("there");
        file.write_all(&[byte[0] ^ 1]).expect("written");
        let line = memchr::memchr_iter(b'\n', &text[..begin]).count() as u64 + 1;
        Wanted::Line(line)
    }

    fn foreign_key(&self) -> bool {
        let other = SigningKey::generate().0.public();
        let (report, took) = self.verified(&[other]);
        let first = report.faults.first().map(|first| first.kind);
        let found = matches!(first, Some(Kind::NotSigned { first: 1, .. }));
        let word = if found { "found" } else { "FAILED" };
        println!(
            "a foreign key: {word} in {:.2} s: {first:?}",
            took.as_secs_f64()
        );
        found
    }

    fn cut_tail(&self, directory: &Path) -> bool {
        let last = segments(directory).expect("segments").pop().expect("one");
        let text = fs::read(&last.path).expect("read");
        let known = self.outside.checkpoint.last.seq;
        // The last line that is left is the one before the last that the checkpoint covers.
        let mut end = 0;
        for feed in memchr::memchr_iter(b'\n', &text) {
            if seq(&text[end..feed]) >= known {
                break;
            }
            end = feed + 1;
        }
        fs::write(&last.path, &text[..end]).expect("written");
        let (report, took) = self.verified(&[self.key]);
        fs::write(&last.path, text).expect("written");
        let first = report.faults.first().map(|first| first.kind);
        let found = first
            == Some(Kind::Cut {
                last: known - 1,
                known,
            });
        let word = if found { "found" } else { "FAILED" };
        println!(
            "a tail cut off: {word} in {:.2} s: {first:?}",
            took.as_secs_f64()
        );
        found
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
