//! A disk that fails to sync beneath a whole gateway (SECURITY AUD-7).

use std::{
    collections::HashSet,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
};

use serde_json::Value;
use usher::audit::log::{Appender, Disk, Storage, Usage, segments};

use super::recording_by;
use crate::harness::{Play, Revision, Upstream, eventually, text_result, tool};

/// A disk whose syncs fail as long as it is told to; what was not durable then is gone, or is not.
#[derive(Debug, Default)]
struct Failing {
    fails: AtomicBool,
    loses: bool,
    failed: AtomicUsize,
    done: AtomicUsize,
}

#[derive(Debug)]
struct Beneath(Arc<Failing>);

struct File {
    disk: Arc<Failing>,
    file: Arc<dyn Appender>,
    path: PathBuf,
    durable: AtomicU64,
}

impl Storage for Beneath {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Appender>> {
        Ok(Arc::new(File {
            disk: self.0.clone(),
            file: Disk.create(path)?,
            path: path.to_owned(),
            durable: AtomicU64::new(0),
        }))
    }

    fn usage(&self, _: &Path) -> io::Result<Usage> {
        Ok(Usage::ENDLESS)
    }
}

impl Appender for File {
    fn append(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.append(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        if !self.disk.fails.load(SeqCst) {
            self.durable.store(fs::metadata(&self.path)?.len(), SeqCst);
            self.disk.done.fetch_add(1, SeqCst);
            return Ok(());
        }
        self.disk.failed.fetch_add(1, SeqCst);
        if self.disk.loses {
            let file = OpenOptions::new().write(true).open(&self.path)?;
            file.set_len(self.durable.load(SeqCst))?;
        }
        Err(io::Error::other("EIO"))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }
}

// SECURITY AUD-7
#[tokio::test]
async fn what_was_not_durable_when_a_sync_failed_is_in_the_next_segment_before_anything_is_answered()
 {
    for (durability, loses) in [
        ("strict", true),
        ("strict", false),
        ("kernel", true),
        ("kernel", false),
    ] {
        let disk = Arc::new(Failing {
            loses,
            ..Failing::default()
        });
        let directory = tempfile::tempdir().unwrap();
        let notes = Upstream::http(Revision::V2026_07_28)
            .tools([tool("t")])
            .on("tools/call", |_| Play::Result(text_result("it-was-called")));
        let gateway = recording_by(
            directory.path(),
            &format!("durability: {durability}"),
            &notes,
        );
        let gateway = gateway.disk(Arc::new(Beneath(disk.clone())));
        let gateway = gateway.start().await;
        let client = gateway.client(Revision::V2026_07_28).await;
        let (mut answered, mut refused) = (0, 0);
        for _ in 0..3 {
            client.call("notes_t", "{}").await.result();
            let before = segments(directory.path()).unwrap().pop();
            let failures = disk.failed.load(SeqCst);
            disk.fails.store(true, SeqCst);
            // Under `strict` nobody is answered meanwhile, or is refused; under `kernel` it is noticed after the answer.
            let mending = async {
                eventually("a sync fails", || async {
                    (disk.failed.load(SeqCst) > failures).then_some(())
                })
                .await;
                disk.fails.store(false, SeqCst);
                disk.done.load(SeqCst)
            };
            let call = client.call("notes_t", "{}").into_future();
            let (done, answer) = tokio::join!(mending, call);
            if answer.body.contains("it-was-called") {
                answered += 1;
            } else {
                assert!(answer.body.contains("audit_unavailable"), "{}", answer.body);
                refused += 1;
            }
            eventually("calls go on", || async {
                let answer = client.call("notes_t", "{}").await;
                answer.body.contains("it-was-called").then_some(())
            })
            .await;
            assert_ne!(segments(directory.path()).unwrap().pop(), before);
            // Or the next failure is one with this: a segment of which nothing was durable leaves no trace.
            eventually("what was written again is durable", || async {
                (disk.done.load(SeqCst) > done).then_some(())
            })
            .await;
        }
        let heard = notes.heard("tools/call").len();
        gateway.app.clone().shutdown().await;

        // In the chain as it is proved, the segments that were given up count as far as they were durable.
        let chain = chain(directory.path());
        let of = |stage: &str| -> HashSet<String> {
            let calls = chain.iter().filter(|event| event["method"] == "tools/call");
            let calls =
                calls.filter(|event| event["stage"] == stage && event["decision"] != "deny");
            calls
                .map(|event| event["call"].as_str().unwrap().to_owned())
                .collect()
        };
        let (decisions, outcomes) = (of("decision"), of("outcome"));
        let what = format!("{durability}, loses: {loses}, answered {answered}, refused {refused}");
        assert!(
            decisions.len() >= heard,
            "{what}: each call that was heard of is on record"
        );
        assert!(outcomes.len() >= heard, "{what}: and how it ended");
        let failures = chain
            .iter()
            .filter(|event| event["segment"]["reason"] == "sync_failed");
        assert!(failures.count() >= 3, "{what}");
        let verified = Command::new(env!("CARGO_BIN_EXE_usher"))
            .args(["audit", "verify", "--dir"])
            .arg(directory.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&verified.stdout);
        assert!(verified.status.success(), "{what}: {said}");
    }
}

/// The events of the log, of which those count that the next segment goes on from.
fn chain(directory: &Path) -> Vec<Value> {
    let mut chain: Vec<Value> = Vec::new();
    for segment in segments(directory).unwrap() {
        let text = fs::read_to_string(&segment.path).unwrap();
        for line in text.lines() {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let seq = line["record"]["link"]["seq"].as_u64().unwrap();
            chain.truncate(usize::try_from(seq - 1).unwrap());
            assert_eq!(chain.len() as u64, seq - 1, "{}", segment.path.display());
            chain.push(line["record"]["event"].take());
        }
    }
    chain
}
