//! Records to stdout and to no file (PRODUCT 12).

use std::{process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};
use usher::audit::{chain::Line, key::VerifyingKey, verify::verify};

use crate::harness::{
    Client, PATIENCE, Piped, Revision, Upstream, eventually, parse, tool, within,
};

#[tokio::test]
async fn without_files_records_go_to_stdout_chained_and_signed_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let place = notes.place();
    std::fs::write(
        &file,
        format!(
            "listen: {{ address: \"127.0.0.1:0\" }}\naudit: {{ files: false, sinks: {{ stdout: true }} }}\nupstreams: {{ notes: {{ {place} }} }}\n"
        ),
    )
    .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["serve", "-c"])
        .arg(&file)
        .env("XDG_STATE_HOME", directory.path().join("state"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut notes_of_it = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = notes_of_it.next_line().await.unwrap().unwrap();
        if let Some((_, url)) = line.split_once("ready at http://") {
            let (address, _) = url.split_once("/mcp").unwrap();
            break address.parse().unwrap();
        }
    };
    let client = Client::connect(address, "/mcp", Revision::V2026_07_28)
        .await
        .unwrap();
    eventually("it is there", async || {
        (client.tools().await == ["notes_t"]).then_some(())
    })
    .await;
    client.call("notes_t", "{}").await.result();
    let id = nix::unistd::Pid::from_raw(child.id().unwrap().try_into().unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut all = String::new();
    while let Some(line) = tokio::time::timeout(Duration::from_secs(30), lines.next_line())
        .await
        .unwrap()
        .unwrap()
    {
        all += &(line + "\n");
    }
    assert!(child.wait().await.unwrap().success());
    assert!(
        !directory.path().join("state").exists(),
        "nothing is written"
    );

    let events: Vec<_> = all
        .lines()
        .map(|line| parse(str::from_utf8(Line::parse(line.as_bytes()).unwrap().event).unwrap()))
        .collect();
    let stages = events
        .iter()
        .filter(|event| event["method"] == "tools/call");
    let stages: Vec<_> = stages
        .map(|event| event["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, ["decision", "outcome"]);
    // Whoever collects them proves them with the key that the first of them names.
    let key = events[0]["segment"]["key"].as_str().unwrap();
    let collected = directory.path().join("collected");
    std::fs::create_dir(&collected).unwrap();
    std::fs::write(collected.join(format!("{:020}-0000.jsonl", 1)), &all).unwrap();
    let report = verify(
        &collected,
        &[VerifyingKey::parse(key).unwrap()],
        &[],
        |_| {},
    )
    .unwrap();
    assert_eq!(report.faults, []);
    assert_eq!(report.records, all.lines().count() as u64);
}

/// What is on stdout is the answer, and on a pipe the protocol.
#[tokio::test]
async fn where_stdout_is_taken_records_go_to_stderr() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let place = notes.place();
    let configuration = format!(
        "audit: {{ files: false, sinks: {{ stdout: true }} }}\nupstreams: {{ notes: {{ {place} }} }}\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    std::fs::write(&file, &configuration).unwrap();
    let call = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["call", "notes_t", "--json", "-c"])
        .arg(&file)
        .env("XDG_STATE_HOME", directory.path().join("state"))
        .kill_on_drop(true)
        .output();
    let call = within(PATIENCE, "the call ends", call).await.unwrap();
    assert!(call.status.success(), "{call:?}");
    let answer = parse(str::from_utf8(&call.stdout).unwrap());
    assert_eq!(answer["content"][0]["text"], "called t");
    let told = String::from_utf8(call.stderr).unwrap();
    assert!(told.contains(r#""stage":"outcome""#), "{told}");

    let mut piped = Piped::start(&configuration).await;
    let discover = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    piped.say(discover).await;
    let lines = piped.rest().await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(parse(&lines[0])["id"], 1);
}
