//! What is kept for how long, and what never is (SECURITY AUD-8, AUD-10).

use std::{
    fs,
    process::Command,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use usher::audit::log::segments;

use super::{recording, records};
use crate::harness::{Authority, Gateway, Play, Revision, Upstream, text_result, tool};

// SECURITY AUD-10
#[tokio::test]
async fn whole_segments_go_after_their_time_which_is_recorded_and_leaves_a_log_that_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| Play::Result(text_result("done")));
    let days = |days: u64| SystemTime::now() - Duration::from_secs(days * 24 * 3_600);
    // Each life has a segment of its own. The default of 190 days keeps the second and removes the first.
    for age in [Some(191), Some(189), None, None] {
        let gateway = recording(directory.path(), &notes).start().await;
        let client = gateway.client(Revision::V2026_07_28).await;
        client.call("notes_t", "{}").await.result();
        gateway.app.clone().shutdown().await;
        if let Some(age) = age {
            let newest = segments(directory.path()).unwrap().pop().unwrap();
            let file = fs::File::options().write(true).open(newest.path).unwrap();
            file.set_modified(days(age)).unwrap();
        }
    }
    let left = segments(directory.path()).unwrap();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left[0].first > 1);
    let output = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["audit", "verify", "--json", "--dir"])
        .arg(directory.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], true, "{report:#}");
    assert_eq!(report["first"], left[0].first);
    // Who removes one by hand is found out.
    fs::remove_file(&left[0].path).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["audit", "verify", "--json", "--dir"])
        .arg(directory.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["faults"][0]["kind"], "missing", "{report:#}");
}

// SECURITY AUD-8
#[tokio::test]
async fn no_token_and_no_argument_is_in_any_file_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| {
            Play::Result(text_result("planted-result"))
        });
    let authority = Authority::start().await;
    let gateway = Gateway::of()
        .setting(&format!(
            "audit: {{ dir: '{}' }}",
            directory.path().display()
        ))
        .upstream("notes", &notes)
        .auth(authority.spec())
        .start()
        .await;
    let good = authority.token("ana", "");
    let late = authority.token_until("ana", 1_000, "");
    let client = gateway.client_with(Revision::V2026_07_28, &good).await;
    client
        .call("notes_t", r#"{"x":"planted-argument"}"#)
        .await
        .result();
    client.call("notes_planted-no-tool", "{}").await;
    let refused = gateway.client_with(Revision::V2026_07_28, &late).await;
    assert_eq!(refused.call("notes_t", "{}").await.status, 401);
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "tools/call");
    assert_eq!(told[0]["principal"]["name"], "ana");
    assert!(told[0]["principal"]["token"].is_string(), "a keyed digest");
    assert_eq!(told[0]["principal"]["auth_method"], "token");
    let mut marks = vec!["planted-argument".to_owned(), "planted-result".to_owned()];
    for token in [&good, &late] {
        marks.push(token.clone());
        // Its parts, and its bytes in hexadecimal digits.
        marks.extend(token.split('.').map(str::to_owned));
        marks.push(token.bytes().map(|byte| format!("{byte:02x}")).collect());
    }
    for entry in fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        for mark in &marks {
            assert!(
                !text.contains(mark.as_str()),
                "{} holds {mark}",
                path.display()
            );
        }
    }
}
