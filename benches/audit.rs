//! How fast is a log of a million records verified?
//!
//! Budget: 200 MiB/s on two cores (issue 6, acceptance 2), whole and with a byte changed in the middle. That every way to tamper with
//! such a log is found where it is, is a test: `tests/tampered.rs`.
//!
//! Run with `cargo bench --bench audit`; another number of records may be given as an argument.
//!
//! Measured on 2026-11-21, two shared cores under a load of about 9: 1,001,020 records, 816 MiB, at 313 MiB/s; with a fault
//! between 2.1 and 3.1 s, which is 266 to 390 MiB/s. Of CPU time: 460 MiB for each second of a core. On 2026-11-27, two idle
//! cores, profile `perf`, each segment held against its index as well: 760 MiB/s, with a fault 771.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "what is put together here is well-formed, and the figures are the result"
)]

#[path = "log/mod.rs"]
mod log;

use std::{fs, os::unix::fs::FileExt as _, process::ExitCode};

use tokio::time::Instant;
use usher::audit::log::segments;

use log::{RECORDS, Written};

fn main() -> ExitCode {
    let given = std::env::args().filter_map(|arg| arg.parse().ok()).next();
    let directory = tempfile::tempdir().expect("a directory");
    let log = Written::of(directory.path(), given.unwrap_or(RECORDS), true);
    let whole = timed("whole", &log);
    let all = segments(directory.path()).expect("segments");
    let file = fs::File::options()
        .write(true)
        .open(&all[all.len() / 2].path)
        .expect("opened");
    file.write_all_at(b"~", file.metadata().expect("its length").len() / 2)
        .expect("written");
    let changed = timed("a byte changed", &log);
    if whole == 0 && changed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Verifies it, says how fast, and how many faults there were.
fn timed(name: &str, log: &Written) -> usize {
    let began = Instant::now();
    let report = log.verified(log.key);
    let seconds = began.elapsed().as_secs_f64();
    let mib = report.bytes as f64 / f64::from(1 << 20);
    println!(
        "{name}: {} records, {mib:.0} MiB in {} segments: {seconds:.2} s, {:.0} MiB/s",
        report.records,
        report.segments,
        mib / seconds
    );
    report.faults.len()
}
