//! The floors of the content rules, held over the corpus: all samples, and a fixed part of the ordinary text.
//! The part is read within a minute without optimisation. `cargo run --profile perf --example corpus` reads all of it.
#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

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

/// Of the files of a part, every so manieth is read here.
const EVERY: usize = 8;

#[test]
fn every_floor_holds_and_the_ordinary_text_is_what_the_manifest_says() {
    let mut parts = ordinary::parts().expect("tests/run installs what the corpus is made of");
    for part in &mut parts {
        assert!(part.as_stated(), "{}: {}", part.name, part.digest());
    }
    assert!(parts.iter().map(ordinary::Part::bytes).sum::<usize>() >= 50 << 20);
    for part in &mut parts {
        let files = std::mem::take(&mut part.files);
        part.files = files.into_iter().step_by(EVERY).collect();
    }
    for subject in subjects::subjects() {
        let figures = measure::measure(&subject, &parts);
        assert!(figures.holds, "{figures:#?}");
    }
}
