//! Receivers that are away, that refuse, and that were told before.

use std::{
    borrow::Cow,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    sync::mpsc::{Receiver, Sender, channel},
};

use super::*;
use crate::{
    audit::{
        chain::Line,
        key::SigningKey,
        log::{
            Cuts, Log,
            testing::{Faulty, Shared as Storage, happened, origin},
        },
    },
    json::Json,
    protocol::UpstreamId,
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

/// As OTLP says: what a receiver took it is not sent again, though it throws some of it away.
#[test]
fn what_a_receiver_throws_away_is_counted_and_nothing_is_sent_once_more() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = log(directory.path());
    for n in 0..9 {
        log.append(&[happened(n)].into()).unwrap();
    }
    let (tried, tries) = channel();
    let (sinking, _told) = start(directory.path(), 0, move |seqs| {
        _ = tried.send(seqs.to_vec());
        let records = if seqs.contains(&4) { 3 } else { u64::MAX };
        let why = "too odd".to_owned();
        Err(Undelivered::Discarded { records, why })
    });
    until("it is delivered", || sinking.delivery().delivered == 10);
    assert_eq!(sinking.delivery().refused, 3);
    assert!(!sinking.delivery().failing);
    log.append(&[happened(9)].into()).unwrap();
    until("the next is", || sinking.delivery().delivered == 11);
    // No more than there were.
    assert_eq!(sinking.delivery().refused, 4);
    let tries: Vec<_> = tries.try_iter().flatten().collect();
    assert_eq!(tries, (1..=11).collect::<Vec<_>>());
}

/// Hides what a test calls a secret.
#[derive(Debug)]
struct Hides;

impl Scrub for Hides {
    fn content(&self, value: &Json, _: Option<&UpstreamId>, _: Option<&str>) -> Json {
        value.clone()
    }

    fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        name.replace("hunter2", "[redacted]").into()
    }

    fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        id.into()
    }
}

/// Answers each request with 200 and the next of these.
fn receiver(answers: Vec<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for answer in answers {
            let (mut socket, _) = listener.accept().unwrap();
            let mut text = Vec::new();
            while !text.ends_with(b"]}]}]}") {
                let mut some = [0; 4_096];
                let read = socket.read(&mut some).unwrap();
                text.extend_from_slice(&some[..read]);
            }
            let length = answer.len();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            socket.write_all((head + &answer).as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn an_answer_that_says_what_was_thrown_away_is_read() {
    let rejected = |told: &str| format!(r#"{{"partialSuccess":{told}}}"#);
    let long = "x".repeat(9_000);
    let cases = [
        (r#"{}"#.to_owned(), None),
        (String::new(), None),
        ("taken".to_owned(), None),
        (rejected("{}"), None),
        (rejected(r#"{"rejectedLogRecords":"0"}"#), None),
        (rejected(r#"{"rejectedLogRecords":-1}"#), None),
        (rejected(r#"{"errorMessage":"soon no more"}"#), None),
        (
            rejected(r#"{"rejectedLogRecords":"2","errorMessage":"token hunter2 is old"}"#),
            Some((2, "token [redacted] is old".to_owned())),
        ),
        (
            rejected(r#"{"rejectedLogRecords":3}"#),
            Some((3, String::new())),
        ),
        (
            rejected(&format!(
                r#"{{"rejectedLogRecords":"1","errorMessage":"{long}"}}"#
            )),
            Some((1, "x".repeat(256))),
        ),
    ];
    let answers = cases.iter().map(|(answer, _)| answer.clone()).collect();
    let to = OtlpSpec {
        address: Address::configured(&format!("http://{}", receiver(answers)), false).unwrap(),
        headers: Vec::new(),
        ca: None,
        service: "usher".to_owned(),
    };
    let directory = tempfile::tempdir().unwrap();
    let mut log = log(directory.path());
    log.append(&[happened(0)].into()).unwrap();
    let batch = Follower::after(directory.path(), 0).read(9, 9_000).unwrap();
    let mut building = tokio::runtime::Builder::new_multi_thread();
    let runtime = building.worker_threads(1).enable_all().build().unwrap();
    let resource = Resource {
        service: "usher".to_owned(),
        node: "node-1".to_owned(),
    };
    let mut sink = {
        let _inside = runtime.enter();
        let fetcher = Fetcher::new(None).unwrap();
        Otlp::new(fetcher, &to, resource, Arc::new(Hides))
    };
    for (answer, expected) in cases {
        let expected = match expected {
            None => Ok(()),
            Some((records, why)) => Err(Undelivered::Discarded { records, why }),
        };
        assert_eq!(sink.deliver(&batch), expected, "{answer}");
    }
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

#[test]
fn what_was_delivered_is_known_of_the_sinks_that_there_are() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        fs::write(directory.path().join(format!("{name}.cursor")), text).unwrap();
    };
    let of = |lines| {
        let spec = SinksSpec { lines, otlp: None };
        spec.delivered(directory.path())
    };
    write("stdout", "12\n");
    write("stderr", "");
    assert_eq!(of(Some(Stream::Stdout)), Some(12));
    // What is not known is said where it is delivered again.
    assert_eq!((of(Some(Stream::Stderr)), of(None)), (None, None));
}
