//! Receivers that are away, that refuse, and that were told before.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::audit::{
    chain::Line,
    key::SigningKey,
    log::{
        Cuts, Log,
        testing::{Faulty, Shared as Storage, happened, origin},
    },
};

fn log(directory: &Path) -> Log {
    let disk = Arc::new(Storage(Arc::new(Faulty::default())));
    let key = SigningKey::generate().0;
    Log::open(disk, directory, origin(), key, Cuts::default())
        .unwrap()
        .0
}

/// Asks `answer` about each batch of numbers, and tells of those that were taken.
struct Probe<F> {
    answer: F,
    taken: Sender<u64>,
}

impl<F: FnMut(&[u64]) -> Result<(), Undelivered> + Send + 'static> Sink for Probe<F> {
    fn name(&self) -> &str {
        "probe"
    }

    fn deliver(&mut self, batch: &Batch) -> Result<(), Undelivered> {
        let seqs: Vec<u64> = batch
            .lines()
            .map(|line| Line::parse(line).unwrap().seq)
            .collect();
        (self.answer)(&seqs)?;
        for seq in seqs {
            _ = self.taken.send(seq);
        }
        Ok(())
    }
}

fn start(
    directory: &Path,
    first: u64,
    answer: impl FnMut(&[u64]) -> Result<(), Undelivered> + Send + 'static,
) -> (Sinking, Receiver<u64>) {
    let (taken, told) = channel();
    let sinking = Sinking::start(directory, first, Probe { answer, taken }).unwrap();
    (sinking, told)
}

const SOON: Duration = Duration::from_secs(30);

/// Waits until it is so.
fn until(what: &str, is: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + SOON;
    while !is() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "never happened: {what}"
        );
        thread::yield_now();
    }
}

/// SECURITY AUD-9
#[test]
fn what_a_receiver_that_never_took_anything_is_owed_is_known_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = log(directory.path());
    let away = |_: &[u64]| Err(Undelivered::Later("away".into()));
    let (sinking, _told) = start(directory.path(), log.written().seq, away);
    log.append(&[happened(1)].into()).unwrap();
    until("it was tried", || sinking.delivery().failing);
    drop(sinking);
    log.append(&[happened(2)].into()).unwrap();
    let (_sinking, told) = start(directory.path(), log.written().seq, |_| Ok(()));
    let arrived = [(); 2].map(|()| told.recv_timeout(SOON).unwrap());
    assert_eq!(arrived, [2, 3]);
}

/// SECURITY AUD-9
#[test]
fn every_record_arrives_once_across_restarts_of_the_sink() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = log(directory.path());
    let mut all = Vec::new();
    for n in 0..6 {
        // At the first start of a sink, what was there before is not for it.
        let first = if n == 0 { 1 } else { log.written().seq };
        let (sinking, told) = start(directory.path(), first, |_| Ok(()));
        log.append(&[happened(n)].into()).unwrap();
        while all.last() != Some(&log.written().seq) {
            all.push(told.recv_timeout(SOON).unwrap());
        }
        log.append(&[happened(n)].into()).unwrap();
        // It ends when what is there is delivered.
        drop(sinking);
        all.extend(told.try_iter());
    }
    assert_eq!(all, (2..=log.written().seq).collect::<Vec<_>>());
}

/// SECURITY AUD-9
#[test]
fn where_nobody_knows_any_more_what_was_delivered_all_is_delivered_again() {
    for left in ["", "7x", "\u{fffd}"] {
        let directory = tempfile::tempdir().unwrap();
        let mut log = log(directory.path());
        log.append(&[happened(0)].into()).unwrap();
        let end = log.written().seq;
        fs::write(directory.path().join("probe.cursor"), left).unwrap();
        let (_sinking, told) = start(directory.path(), end, |_| Ok(()));
        let all: Vec<u64> = (0..end).map(|_| told.recv_timeout(SOON).unwrap()).collect();
        assert_eq!(all, (1..=end).collect::<Vec<_>>(), "{left:?}");
    }
}

#[test]
fn records_are_delivered_though_it_cannot_be_kept_which() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = log(directory.path());
    // What is written in its place first cannot be.
    fs::create_dir(directory.path().join("probe.cursor-new")).unwrap();
    let (sinking, told) = start(directory.path(), 0, |_| Ok(()));
    for n in 0..3 {
        log.append(&[happened(n)].into()).unwrap();
    }
    let all: Vec<u64> = (0..4).map(|_| told.recv_timeout(SOON).unwrap()).collect();
    assert_eq!(all, [1, 2, 3, 4]);
    until("it is told", || sinking.shared.state().forgetful);
    drop(sinking);
    let (_sinking, told) = start(directory.path(), 0, |_| Ok(()));
    assert_eq!(
        told.recv_timeout(SOON),
        Ok(1),
        "and the next one delivers them again"
    );
}

#[test]
fn records_that_cannot_be_read_are_told_of_and_delivered_when_they_can() {
    let directory = tempfile::tempdir().unwrap();
    // Something of a segment's name that is no file.
    let odd = directory.path().join(format!("{:020}-0000.jsonl", 1));
    fs::create_dir(&odd).unwrap();
    let (sinking, told) = start(directory.path(), 0, |_| Ok(()));
    until("it is told", || sinking.delivery().failing);
    fs::remove_dir(odd).unwrap();
    let mut log = log(directory.path());
    log.append(&[happened(0)].into()).unwrap();
    assert_eq!(told.recv_timeout(SOON), Ok(1));
    until("it is well", || !sinking.delivery().failing);
}

#[test]
fn a_receiver_that_is_away_gets_everything_when_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = log(directory.path());
    for n in 0..5 {
        log.append(&[happened(n)].into()).unwrap();
    }
    let mut tries = 0;
    let (sinking, told) = start(directory.path(), 0, move |_| {
        tries += 1;
        if tries < 3 {
            Err(Undelivered::Later("away".to_owned()))
        } else {
            Ok(())
        }
    });
    let all: Vec<u64> = (0..6).map(|_| told.recv_timeout(SOON).unwrap()).collect();
    assert_eq!(all, [1, 2, 3, 4, 5, 6]);
    until("all are delivered", || sinking.delivery().delivered == 6);
    assert!(!sinking.delivery().failing);
}

#[test]
fn a_record_that_is_refused_is_left_out_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = log(directory.path());
    for n in 0..9 {
        log.append(&[happened(n)].into()).unwrap();
    }
    let (sinking, told) = start(directory.path(), 0, |seqs| {
        if seqs.contains(&4) {
            Err(Undelivered::Refused("too odd".to_owned()))
        } else {
            Ok(())
        }
    });
    let all: Vec<u64> = (0..9).map(|_| told.recv_timeout(SOON).unwrap()).collect();
    assert_eq!(all, [1, 2, 3, 5, 6, 7, 8, 9, 10]);
    assert_eq!(sinking.delivery().refused, 1);
}

#[test]
fn an_end_does_not_wait_for_a_receiver_that_takes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = log(directory.path());
    log.append(&[happened(0)].into()).unwrap();
    let (sinking, told) = start(directory.path(), 0, |_| {
        Err(Undelivered::Later("no".to_owned()))
    });
    until("it fails", || sinking.delivery().failing);
    drop(sinking);
    assert!(told.try_iter().next().is_none());
    // And the next one begins where this one was.
    let (_sinking, told) = start(directory.path(), 0, |_| Ok(()));
    assert_eq!(told.recv_timeout(SOON), Ok(1));
}

#[test]
fn lines_are_those_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = log(directory.path());
    log.append(&[happened(0)].into()).unwrap();
    let batch = Follower::after(directory.path(), 0)
        .read(9, 1 << 20)
        .unwrap();
    let mut lines = Lines::to("stdout", Vec::new());
    lines.deliver(&batch).unwrap();
    let file = crate::audit::log::segments(directory.path())
        .unwrap()
        .remove(0);
    assert_eq!(lines.into_inner(), fs::read(file.path).unwrap());
}
