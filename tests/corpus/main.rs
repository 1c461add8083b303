//! Measures the detectors with the corpus: recall, precision, and hits in a mebibyte of ordinary text, by class.
//!
//! `cargo run --profile perf --example corpus` prints a line for each class, with `--json` a JSON array; the exit code is 1 if a
//! floor does not hold and 2 if the ordinary text is not there. `--digests` prints what the manifest is to say of each part.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command of the tests: it prints, and cannot go on without its corpus"
)]

mod active;
mod digits;
mod draw;
mod formats;
mod hidden;
mod injection;
mod measure;
mod national;
mod ordinary;
mod personal;
mod sample;
mod secrets;
mod subjects;
mod taxpayers;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let parts = match ordinary::parts() {
        Ok(parts) => parts,
        Err(missing) => {
            eprintln!("{missing}");
            return ExitCode::from(2);
        }
    };
    if asked.iter().any(|word| word == "--digests") {
        for part in &parts {
            println!("{} ={}", part.name, part.digest());
        }
        return ExitCode::SUCCESS;
    }
    if let Some(part) = parts.iter().find(|part| !part.as_stated()) {
        eprintln!(
            "{} is not what the manifest says: {}",
            part.name,
            part.digest()
        );
        return ExitCode::from(2);
    }
    let figures: Vec<_> = subjects::subjects()
        .iter()
        .map(|subject| measure::measure(subject, &parts))
        .collect();
    if asked.iter().any(|word| word == "--json") {
        println!(
            "{}",
            serde_json::to_string(&figures).expect("figures are numbers and strings")
        );
    } else {
        let bytes: usize = parts.iter().map(ordinary::Part::bytes).sum();
        println!(
            "ordinary text: {:.1} MiB in {} parts",
            bytes as f64 / f64::from(1 << 20),
            parts.len()
        );
        println!(
            "class             positives  recall  precision  negatives  flagged  hits/MiB  floor"
        );
        for class in &figures {
            println!(
                "{:16} {:10} {:7.4} {:10.4} {:10} {:8.4} {:9.3}  {}",
                class.class,
                class.expected,
                class.recall,
                class.precision,
                class.negatives,
                class.flagged,
                class.per_mebibyte,
                if class.holds { "holds" } else { "FAILS" },
            );
            if !class.holds || asked.iter().any(|word| word == "--misses") {
                class.misses.iter().for_each(|miss| println!("  {miss}"));
            }
        }
    }
    ExitCode::from(u8::from(figures.iter().any(|class| !class.holds)))
}
