//! `usher audit verify`: whether the log is whole, where it is not, and what nobody can tell.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args as ClapArgs;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{
    log_dir::{LogDir, is_beside},
    unreadable,
};
use crate::{
    audit::{
        chain::Line,
        follow::Follower,
        key::VerifyingKey,
        log::{Signed, segments},
        verify::{Fault, Report, checkpoints_in, verify},
    },
    cli::{Ended, out},
    json::Json,
};

/// The file with the public key, beside the records.
const PUBLIC: &str = "key.pub";
/// How many faults are told to people.
const TOLD: usize = 10;

/// Verify that no record was changed, removed, put in or moved; offline, with the public key alone
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher audit verify                             the log of usher.yaml
  usher audit verify /mnt/copy --key our.pub     a copy, with a key from a place of your own
  usher audit verify --checkpoint collected.log  and nothing was cut off its end: any text with checkpoints
                                                 that another sink got (its lines, or the gateway's logs)
  usher audit verify --json | jq '[.] | flatten | .[].faults[0]'

The key beside the records proves that they were not damaged. Against somebody who can write there it proves nothing: keep a
copy of the key, and a sink for checkpoints, elsewhere.

Exit codes: 0 whole, 1 not whole, unreadable, or without any record, 2 usage, or no such directory")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    log_dir: LogDir,
    /// The public key: a file, or the text `ed25519:…` itself; several for a log over which the key was changed [default:
    /// key.pub beside the records]
    #[arg(long = "key", value_name = "PUBLIC")]
    keys: Vec<String>,
    /// A file with checkpoints that were kept elsewhere; others of its lines are passed over
    #[arg(long = "checkpoint", value_name = "FILE")]
    checkpoints: Vec<PathBuf>,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    let logs = match args.log_dir.logs() {
        Ok(logs) => logs,
        Err(ended) => return ended,
    };
    let Some(outside) = outside(&args.checkpoints) else {
        return Ended::Misused;
    };
    let (mut ended, mut outcomes) = (Ended::Well, Vec::new());
    for log in &logs {
        let Some(keys) = keys(args, log) else {
            return Ended::Misused;
        };
        let bar = bar(log, args.json);
        // Each is a chain of its own, and checkpoints do not say whose they are.
        let others: Vec<_> = logs.iter().filter(|other| *other != log).collect();
        let outside = of_others(&others, &outside);
        let report = verify(log, &keys, &outside, |bytes| bar.set_position(bytes));
        bar.finish_and_clear();
        match report {
            Err(error) => return unreadable(log, &error),
            Ok(report) => {
                if !report.faults.is_empty() {
                    ended = Ended::Failed;
                }
                if args.json {
                    outcomes.push(Json::of(&Outcome::of(log, &report)));
                } else {
                    told(args, log, &report);
                }
            }
        }
    }
    if let [outcome] = &outcomes[..] {
        out::line(outcome.as_str());
    } else if args.json {
        out::line(Json::array(&outcomes).as_str());
    }
    ended
}

fn keys(args: &Args, directory: &Path) -> Option<Vec<VerifyingKey>> {
    if args.keys.is_empty() {
        let home = directory.parent().filter(|_| is_beside(directory));
        let beside = home.unwrap_or(directory).join(PUBLIC);
        let Ok(text) = fs::read_to_string(&beside) else {
            out::problem(&format!(
                "there is no {}: name the public key with --key",
                beside.display()
            ));
            return None;
        };
        return read_keys(&text, &beside.display().to_string());
    }
    let mut all = Vec::new();
    for named in &args.keys {
        let inline = named.starts_with("ed25519:");
        let text = if inline {
            Ok(named.clone())
        } else {
            fs::read_to_string(named)
        };
        match text {
            Ok(text) => all.extend(read_keys(&text, named)?),
            Err(error) => {
                out::problem(&format!("--key {named}: {error}"));
                return None;
            }
        }
    }
    Some(all)
}

/// The keys in a file: one a line.
fn read_keys(text: &str, name: &str) -> Option<Vec<VerifyingKey>> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    match lines
        .map(VerifyingKey::parse)
        .collect::<Result<Vec<_>, _>>()
    {
        Ok(keys) if !keys.is_empty() => Some(keys),
        Ok(_) => {
            out::problem(&format!("{name}: no key"));
            None
        }
        Err(error) => {
            out::problem(&format!("{name}: {error}"));
            None
        }
    }
}

fn outside(files: &[PathBuf]) -> Option<Vec<Signed>> {
    let mut all = Vec::new();
    for file in files {
        let found = fs::File::open(file).and_then(|file| checkpoints_in(io::BufReader::new(file)));
        match found {
            Ok(found) if found.is_empty() => {
                out::problem(&format!(
                    "--checkpoint {}: there is none in it",
                    file.display()
                ));
                return None;
            }
            Ok(found) => all.extend(found),
            Err(error) => {
                out::problem(&format!("--checkpoint {}: {error}", file.display()));
                return None;
            }
        }
    }
    Some(all)
}

/// The checkpoints without those that are in the logs of others.
fn of_others(others: &[&PathBuf], outside: &[Signed]) -> Vec<Signed> {
    let mut left = outside.to_vec();
    for other in others {
        let mut follower = Follower::after(other, 0);
        while !left.is_empty()
            && let Ok(batch) = follower.read(usize::MAX, 1 << 20)
            && !batch.is_empty()
        {
            let lines = batch.lines().filter_map(Line::parse);
            let places: HashSet<_> = lines.map(|line| (line.seq, *line.hash.bytes())).collect();
            left.retain(|signed| {
                let last = &signed.checkpoint.last;
                !places.contains(&(last.seq, *last.hash.bytes()))
            });
        }
    }
    left
}

/// Progress, where a person waits.
fn bar(directory: &Path, json: bool) -> ProgressBar {
    if json || !out::notes_to_terminal() {
        return ProgressBar::hidden();
    }
    let sizes = segments(directory).unwrap_or_default().into_iter();
    let sizes = sizes.filter_map(|segment| fs::metadata(segment.path).ok());
    let all = sizes.map(|about| about.len()).sum();
    let bar = ProgressBar::new(all);
    if let Ok(style) = ProgressStyle::with_template(
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
    ) {
        bar.set_style(style);
    }
    bar
}

fn told(args: &Args, directory: &Path, report: &Report) {
    let Report {
        segments,
        bytes,
        records,
        first,
        checkpoints,
        faults,
        ..
    } = report;
    let last = report.last.map_or(0, |last| last.seq);
    out::line(&format!(
        "{}: {} in {}, {} MiB",
        directory.display(),
        out::count(*records, "record"),
        out::count(*segments, "segment"),
        bytes >> 20
    ));
    out::line(&format!(
        "  numbers {first} to {last}, {} to {}",
        out::tame(&report.since),
        out::tame(&report.until)
    ));
    out::line(&format!(
        "  {} signed by the key, up to record {}{}",
        out::count(*checkpoints, "checkpoint"),
        report.signed,
        of_itself(report)
    ));
    if faults.is_empty() {
        let word = out::paint(out::GREEN, "whole");
        out::line(&format!(
            "{word}: no record was changed, removed, put in or moved"
        ));
    }
    for (n, fault) in faults.iter().take(TOLD).enumerate() {
        let word = if n == 0 { "first fault" } else { "fault" };
        out::line(&format!(
            "{}: {}",
            out::paint(out::RED, word),
            out::tame(&fault.to_string())
        ));
    }
    if faults.len() > TOLD {
        out::line(&format!("and {} more", faults.len() - TOLD));
    }
    let note = |text: String| {
        out::line(&format!(
            "{}: {text}",
            out::paint(out::YELLOW, "not provable")
        ));
    };
    if let Some(text) = in_gaps(&report.gaps, report.in_gaps) {
        note(text);
    }
    for seq in report.missing.iter().take(TOLD) {
        note(format!(
            "what was removed before record {seq}, in which a start tells that records were missing"
        ));
    }
    let chained = last.saturating_sub(report.proven);
    if let Some(text) = not_signed(chained) {
        note(text);
    }
    match report.outside {
        // What is gone is a fault, and told as one.
        Some(seq) if seq > last => {}
        Some(seq) => note(format!(
            "whether there were records after {last} that are gone: the newest checkpoint held elsewhere ends with {seq}"
        )),
        None if report.faults.is_empty() => note(format!(
            "whether there were records after {last} that are gone: no checkpoint held elsewhere was given (--checkpoint)"
        )),
        None => {}
    }
    if args.keys.is_empty() {
        note(
            "that the key is ours: it lay beside the records; name one from elsewhere with --key"
                .to_owned(),
        );
    }
}

/// What is to say of the last checkpoint where none covers it yet.
fn of_itself(report: &Report) -> String {
    if report.proven > report.signed {
        let own = report.proven;
        format!("; its own signature proves record {own}, the last of them, but for the time there")
    } else {
        String::new()
    }
}

/// What is to say of records that no checkpoint covers although later ones are.
fn in_gaps(gaps: &[(u64, u64)], records: u64) -> Option<String> {
    let run = |(first, last): &(u64, u64)| {
        if first == last {
            format!("{first}")
        } else {
            format!("{first} to {last}")
        }
    };
    let mut runs: Vec<_> = gaps.iter().take(TOLD).map(run).collect();
    if gaps.len() > TOLD {
        runs.push("more".to_owned());
    }
    let (are, them, they_have) = match records {
        1 => ("is", "it", "it has"),
        _ => ("are", "them", "they have"),
    };
    (records > 0).then(|| {
        format!(
            "that {} {are} ours ({}): whoever wrote {them} ended, or gave up the segment after a sync that failed or since it was removed, before signing {them}, and what was signed later only shows that {they_have} not changed since",
            out::count(records, "record"),
            runs.join(", "),
        )
    })
}

/// What is to say of so many records at the end that no checkpoint covers.
fn not_signed(records: u64) -> Option<String> {
    match records {
        0 => None,
        1 => Some("that the last record is ours: no checkpoint covers it yet".to_owned()),
        _ => Some(format!(
            "that the last {records} records are ours: they follow one another, but no checkpoint covers them yet"
        )),
    }
}

#[derive(Serialize)]
struct Outcome<'a> {
    directory: String,
    ok: bool,
    records: u64,
    segments: u64,
    bytes: u64,
    first: u64,
    last: u64,
    last_hash: Option<String>,
    since: &'a str,
    until: &'a str,
    checkpoints: u64,
    signed_to: u64,
    /// That one, or the checkpoint behind it, which its own signature proves but for the time there.
    proven_to: u64,
    held_elsewhere_to: Option<u64>,
    /// How many records at the end no checkpoint proves.
    not_signed: u64,
    /// How many before the last one that is covered none of them proves, and the first runs of those.
    not_signed_before: u64,
    gaps: Vec<Gap>,
    /// The records of starts that found records missing.
    missing_told_by: &'a [u64],
    faults: Vec<Told>,
}

#[derive(Serialize)]
struct Gap {
    first: u64,
    last: u64,
}

#[derive(Serialize)]
struct Told {
    file: String,
    line: u64,
    offset: u64,
    seq: Option<u64>,
    kind: &'static str,
    text: String,
}

impl<'a> Outcome<'a> {
    fn of(directory: &Path, report: &'a Report) -> Self {
        let last = report.last.map_or(0, |last| last.seq);
        Self {
            directory: directory.display().to_string(),
            ok: report.faults.is_empty(),
            records: report.records,
            segments: report.segments,
            bytes: report.bytes,
            first: report.first,
            last,
            last_hash: report.last.map(|last| last.hash.to_string()),
            since: &report.since,
            until: &report.until,
            checkpoints: report.checkpoints,
            signed_to: report.signed,
            proven_to: report.proven,
            held_elsewhere_to: report.outside,
            not_signed: last.saturating_sub(report.proven),
            not_signed_before: report.in_gaps,
            gaps: report.gaps.iter().map(Gap::of).collect(),
            missing_told_by: &report.missing,
            faults: report.faults.iter().map(Told::of).collect(),
        }
    }
}

impl Gap {
    const fn of(&(first, last): &(u64, u64)) -> Self {
        Self { first, last }
    }
}

impl Told {
    fn of(fault: &Fault) -> Self {
        Self {
            file: fault.file.display().to_string(),
            line: fault.line,
            offset: fault.offset,
            seq: fault.seq,
            kind: fault.kind.word(),
            text: fault.kind.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_checkpoint_covers_is_told_in_words_that_fit_its_number() {
        assert_eq!(not_signed(0), None);
        let one = not_signed(1).unwrap();
        assert!(one.contains("the last record is"), "{one}");
        let more = not_signed(12).unwrap();
        assert!(more.contains("the last 12 records are"), "{more}");
        assert_eq!(in_gaps(&[], 0), None);
        let one = in_gaps(&[(4, 4)], 1).unwrap();
        assert!(one.starts_with("that 1 record is ours (4): "), "{one}");
        let more = in_gaps(&[(4, 4), (7, 8)], 3).unwrap();
        let begin = "that 3 records are ours (4, 7 to 8): ";
        assert!(more.starts_with(begin), "{more}");
    }
}
