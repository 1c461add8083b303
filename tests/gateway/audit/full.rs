//! Records that cannot be written (SECURITY AUD-2, 6).

use std::{collections::HashMap, path::Path, process::Command};

use http::Method;
use serde_json::Value;
use usher::audit::{key::VerifyingKey, verify::verify};

use super::records;
use crate::harness::{
    Gateway, Play, Revision, Upstream, eventually, exchange, parse, text_result, tool,
};

/// A file system of its own that is soon full; it goes with the test, or with the namespace it was mounted in.
struct Small(tempfile::TempDir);

impl Small {
    /// `None` where the test ran elsewhere: in a namespace of its own, where a user may mount what root may mount here. Where not
    /// even that is allowed it does not run, which `tests/run` says at its end.
    fn mounted(test: &str, instead: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "usher-test"])
            .arg(directory.path())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(directory));
        }
        let elsewhere = || {
            let mut unshare = Command::new("unshare");
            unshare.args(["--map-root-user", "--mount"]);
            unshare
        };
        let allowed = elsewhere().arg("true").status();
        if !allowed.is_ok_and(|status| status.success()) {
            let why = format!("audit::full::{test}: this user may mount no tmpfs; {instead}\n");
            let told = Path::new(env!("CARGO_TARGET_TMPDIR")).join("not-run");
            let told = std::fs::File::options()
                .append(true)
                .create(true)
                .open(told);
            std::io::Write::write_all(&mut told.unwrap(), why.as_bytes()).unwrap();
            return None;
        }
        let again = elsewhere()
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &format!("audit::full::{test}")])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&again.stdout);
        assert!(told.contains("1 passed"), "{told}");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room that is left, but for so many bytes.
    fn fill(&self, left: u64) {
        let about = nix::sys::statvfs::statvfs(self.path()).unwrap();
        let free = about.blocks_available() * about.fragment_size();
        let size = usize::try_from(free - left).unwrap();
        match std::fs::write(self.path().join("filler"), vec![b'x'; size]) {
            // Somebody was faster: there is no room all the same.
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {}
            written => written.unwrap(),
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: where the test has failed, somebody still writes there.
        let unmounted = Command::new("umount").arg("-l").arg(self.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

// SECURITY AUD-2
#[tokio::test]
async fn on_a_full_disk_calls_are_refused_and_lists_are_not_until_there_is_room() {
    let test = "on_a_full_disk_calls_are_refused_and_lists_are_not_until_there_is_room";
    let instead =
        "`what_cannot_be_written_is_refused_kept_and_written_later` has the fault injected";
    let Some(disk) = Small::mounted(test, instead) else {
        return;
    };
    for (durability, watermark) in [("kernel", 95), ("kernel", 100), ("strict", 100)] {
        let directory = disk.path().join(format!("{durability}-{watermark}"));
        let notes = Upstream::http(Revision::V2026_07_28)
            .tools([tool("t")])
            .on("tools/call", |_| Play::Result(text_result("it-was-called")));
        let setting = format!(
            "audit: {{ dir: '{}', durability: {durability}, disk: {{ refuse: {watermark} }} }}",
            directory.display()
        );
        let gateway = Gateway::of().setting(&setting).upstream("notes", &notes);
        let gateway = gateway.admin(crate::admin::spec()).start().await;
        let admin = gateway.app.admin().unwrap().address;
        let ready = async || {
            let answer = exchange(admin, Method::GET, "/readyz", &[], b"").await;
            (answer.status, parse(&answer.body)["reason"].clone())
        };
        let client = gateway.client(Revision::V2026_07_28).await;
        client.call("notes_t", "{}").await.result();
        assert_eq!(ready().await, (200, Value::Null));
        assert_eq!(notes.heard("tools/call").len(), 1);

        // With a watermark of 100 it is the system that says no, in the middle of a record.
        disk.fill(if watermark == 100 { 0 } else { 64 << 10 });
        let refused = eventually("calls are refused", || async {
            let answer = client.call("notes_t", "{}").await;
            (!answer.body.contains("it-was-called")).then_some(answer)
        });
        let refused = refused.await;
        assert!(
            refused.body.contains("audit_unavailable"),
            "{}",
            refused.body
        );
        let heard = notes.heard("tools/call").len();
        for _ in 0..20 {
            let answer = client.call("notes_t", "{}").await;
            assert!(answer.body.contains("audit_unavailable"), "{}", answer.body);
        }
        assert_eq!(notes.heard("tools/call").len(), heard, "nobody hears of it");
        assert_eq!(ready().await, (503, "audit_unavailable".into()));
        assert_eq!(client.tools().await, ["notes_t"]);
        client.ask("server/discover", "{}").await.result();

        disk.make_room();
        eventually("calls go through again", || async {
            let answer = client.call("notes_t", "{}").await;
            answer.body.contains("it-was-called").then_some(())
        })
        .await;
        assert_eq!(ready().await, (200, Value::Null));
        let heard = notes.heard("tools/call").len();
        gateway.app.clone().shutdown().await;
        let key = std::fs::read_to_string(directory.join("key.pub")).unwrap();
        let key = VerifyingKey::parse(&key).unwrap();
        let report = verify(&directory, &[key], &[], |_| {}).unwrap();
        assert_eq!(report.faults, [], "{durability} {watermark}");
        let told = records(&directory, "tools/call");
        let permitted = told.iter().filter(|record| record["decision"] == "permit");
        assert!(
            permitted.count() >= heard,
            "each call that was heard of is on record"
        );
        let refused = told
            .iter()
            .filter(|record| record["reason"] == "audit_unavailable");
        assert!(
            refused.count() >= 20,
            "and each refusal, when there is room again"
        );
        // SECURITY 8: two records, or one for both.
        let mut stages = HashMap::<_, Vec<_>>::new();
        for record in &told {
            let of = stages.entry(record["call"].as_str().unwrap()).or_default();
            of.push(record["stage"].as_str().unwrap());
        }
        for (call, stages) in stages {
            assert!(
                [&["decision", "outcome"][..], &["both"]].contains(&&*stages),
                "{durability} {watermark}: {call} has {stages:?}"
            );
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

/// SECURITY AUD-2: also where the disk was full before the process was there.
#[tokio::test]
async fn a_gateway_that_starts_on_a_full_disk_lists_and_refuses_until_there_is_room() {
    let test = "a_gateway_that_starts_on_a_full_disk_lists_and_refuses_until_there_is_room";
    let instead =
        "`who_begins_to_record_on_a_full_disk_refuses_until_there_is_room` has the fault injected";
    let Some(disk) = Small::mounted(test, instead) else {
        return;
    };
    let directory = disk.path().join("audit");
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| Play::Result(text_result("it-was-called")));
    let setting = format!(
        "audit: {{ dir: '{}', disk: {{ refuse: 100 }} }}",
        directory.display()
    );
    let start = async || {
        let gateway = Gateway::of().setting(&setting).upstream("notes", &notes);
        gateway.start().await
    };
    // What has never been there cannot be begun: there is no key yet.
    let gateway = start().await;
    gateway.app.clone().shutdown().await;
    disk.fill(0);
    let gateway = start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    assert_eq!(client.tools().await, ["notes_t"]);
    let answer = client.call("notes_t", "{}").await;
    assert!(answer.body.contains("audit_unavailable"), "{}", answer.body);
    assert!(notes.heard("tools/call").is_empty());
    disk.make_room();
    eventually("calls go through", || async {
        let answer = client.call("notes_t", "{}").await;
        answer.body.contains("it-was-called").then_some(())
    })
    .await;
    gateway.app.clone().shutdown().await;
    let key = std::fs::read_to_string(directory.join("key.pub")).unwrap();
    let key = VerifyingKey::parse(&key).unwrap();
    assert_eq!(verify(&directory, &[key], &[], |_| {}).unwrap().faults, []);
}

/// SECURITY AUD-2: `async` loses records rather than calls, and says how many.
#[tokio::test]
async fn a_gateway_that_records_when_it_can_goes_on_calling_on_a_full_disk() {
    let test = "a_gateway_that_records_when_it_can_goes_on_calling_on_a_full_disk";
    let instead = "`a_gap_of_a_queue_that_was_full_is_told_exactly` has the fault injected";
    let Some(disk) = Small::mounted(test, instead) else {
        return;
    };
    let directory = disk.path().join("audit");
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| Play::Result(text_result("it-was-called")));
    let setting = format!(
        "audit: {{ dir: '{}', durability: async, disk: {{ refuse: 100 }} }}",
        directory.display()
    );
    let gateway = Gateway::of().setting(&setting).upstream("notes", &notes);
    let gateway = gateway.start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    client.call("notes_t", "{}").await.result();
    disk.fill(0);
    for _ in 0..30 {
        let answer = client.call("notes_t", "{}").await;
        assert!(answer.body.contains("it-was-called"), "{}", answer.body);
    }
    disk.make_room();
    gateway.app.clone().shutdown().await;
    // The queue was long enough for these: they are all there.
    assert_eq!(records(&directory, "tools/call").len(), 62);
}
