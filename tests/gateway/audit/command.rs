//! `usher audit` over what a gateway wrote, and over what somebody made of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use usher::audit::log::segments;

use super::recording;
use crate::harness::{Play, Revision, Upstream, text_result, tool};

/// What a command said, and whether it ended well.
struct Said {
    out: String,
    err: String,
    code: Option<i32>,
}

fn audit(arguments: &[&str], directory: &Path) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_usher"))
        .arg("audit")
        .args(arguments)
        .arg("--dir")
        .arg(directory)
        .output()
        .unwrap();
    Said {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

/// What `verify` says in JSON.
fn verified(directory: &Path, more: &[&str]) -> (Value, Option<i32>) {
    let said = audit(&[&["verify", "--json"][..], more].concat(), directory);
    let report = serde_json::from_str(&said.out);
    (report.unwrap_or_else(|_| panic!("{}", said.err)), said.code)
}

/// The log of a gateway that was called 30 times, by two principals' worth of names: 30 of `notes_t`, 10 of `notes_none`.
async fn written() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| Play::Result(text_result("done")));
    let gateway = recording(directory.path(), &notes).start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    for n in 0..30 {
        client
            .call("notes_t", &format!(r#"{{"n":{n}}}"#))
            .await
            .result();
        if n % 3 == 0 {
            client.call("notes_none", "{}").await;
        }
    }
    gateway.app.clone().shutdown().await;
    directory
}

fn only(directory: &Path) -> PathBuf {
    let mut all = segments(directory).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0).path
}

// SECURITY AUD-3
#[tokio::test]
async fn whoever_tampers_with_the_records_of_a_gateway_is_found_out_and_where() {
    let directory = written().await;
    let directory = directory.path();
    let (report, code) = verified(directory, &[]);
    assert_eq!(
        (report["ok"].as_bool(), code),
        (Some(true), Some(0)),
        "{report:#}"
    );
    assert!(report["checkpoints"].as_u64() >= Some(1), "{report:#}");
    // Whoever has stopped in good order leaves nothing that nobody has signed.
    assert_eq!(report["not_signed"], 0, "{report:#}");
    assert_eq!(report["proven_to"], report["last"], "{report:#}");
    assert!(report["since"].as_str() < report["until"].as_str());
    let path = only(directory);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    type Tamper = fn(&mut Vec<String>);
    let tamperings: [(&str, Tamper, u64); 6] = [
        (
            "changed",
            |lines| lines[19] = lines[19].replace("anonymous", "anonymouse"),
            20,
        ),
        ("missing", |lines| drop(lines.remove(19)), 20),
        (
            "out_of_order",
            |lines| lines.insert(19, lines[9].clone()),
            20,
        ),
        ("missing", |lines| lines.swap(19, 20), 20),
        (
            "out_of_order",
            |lines| lines.insert(19, lines[18].clone()),
            20,
        ),
        ("malformed", |lines| lines[19].insert(0, ' '), 20),
    ];
    for (kind, tamper, line) in tamperings {
        let mut lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        tamper(&mut lines);
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let (report, code) = verified(directory, &[]);
        assert_eq!(code, Some(1), "{kind}");
        assert_eq!(report["ok"], false);
        let first = &report["faults"][0];
        assert_eq!(first["kind"], kind, "{report:#}");
        assert_eq!(first["line"], line, "{report:#}");
        assert!(first["file"].as_str().unwrap().ends_with(".jsonl"));
        let said = audit(&["verify"], directory);
        assert!(said.out.contains("first fault"), "{}", said.out);
    }
    fs::write(&path, &text).unwrap();
    // A foreign key.
    let other = usher::audit::key::SigningKey::generate().0.public();
    let (report, code) = verified(directory, &["--key", &other.to_string()]);
    assert_eq!(
        (&report["faults"][0]["kind"], code),
        (&"not_signed".into(), Some(1))
    );
    let own = directory.join("key.pub");
    let (report, code) = verified(directory, &["--key", own.to_str().unwrap()]);
    assert_eq!((report["ok"].as_bool(), code), (Some(true), Some(0)));
    let said = audit(&["verify", "--key", "nonsense"], directory);
    assert_eq!(said.code, Some(2), "{}", said.err);
}

// SECURITY AUD-4
#[tokio::test]
async fn a_tail_that_was_cut_off_is_missed_by_who_kept_a_checkpoint_and_the_rest_is_said() {
    let directory = written().await;
    let directory = directory.path();
    let path = only(directory);
    let text = fs::read_to_string(&path).unwrap();
    let kept = directory.join("kept.log");
    // As another sink has it.
    let checkpoint = text
        .lines()
        .rfind(|line| line.contains(r#"{"checkpoint":"#));
    fs::write(&kept, format!("noise\n{}\n", checkpoint.unwrap())).unwrap();
    let kept = kept.to_str().unwrap();
    let (report, code) = verified(directory, &["--checkpoint", kept]);
    assert_eq!(code, Some(0), "{report:#}");
    let known = report["held_elsewhere_to"].as_u64().unwrap();
    let said = audit(&["verify"], directory);
    assert!(said.out.contains("not provable"), "{}", said.out);
    assert!(said.out.contains("--checkpoint"), "{}", said.out);
    let all: Vec<&str> = text.lines().collect();
    let count = usize::try_from(known).unwrap();
    fs::write(&path, all[..count - 1].join("\n") + "\n").unwrap();
    let (report, code) = verified(directory, &["--checkpoint", kept]);
    assert_eq!(code, Some(1));
    assert_eq!(report["faults"][0]["kind"], "cut", "{report:#}");
    // What is proved to be gone is not called a thing that cannot be proved.
    let said = audit(&["verify", "--checkpoint", kept], directory);
    assert!(!said.out.contains("that are gone"), "{}", said.out);
    // Without it, nobody can tell.
    assert_eq!(verified(directory, &[]).1, Some(0));
    fs::write(&path, all.join("\n") + "\n").unwrap();
    fs::write(directory.join("kept.log"), "nothing").unwrap();
    assert_eq!(
        audit(&["verify", "--checkpoint", kept], directory).code,
        Some(2)
    );
}

#[tokio::test]
async fn records_are_found_by_what_they_are_like() {
    let directory = written().await;
    let directory = directory.path();
    let found = |arguments: &[&str]| {
        let said = audit(&[&["query", "--json"][..], arguments].concat(), directory);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let lines = said.out.lines();
        lines
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["record"]["event"].take())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&["--tool", "notes_t", "--limit", "0"]).len(), 60);
    assert_eq!(found(&["--tool", "notes_t"]).len(), 60);
    assert_eq!(found(&["--tool", "t", "--limit", "7"]).len(), 7);
    assert_eq!(found(&["--decision", "deny"]).len(), 10);
    assert_eq!(found(&["--reason", "unknown_name"]).len(), 10);
    assert_eq!(
        found(&["--outcome", "ok", "--method", "tools/call"]).len(),
        30
    );
    assert_eq!(found(&["--upstream", "notes"]).len(), 60);
    assert_eq!(
        found(&["--principal", "anonymous", "--decision", "deny"]).len(),
        10
    );
    assert_eq!(found(&["--principal", "nobody"]).len(), 0);
    assert_eq!(found(&["--since", "1h", "--decision", "deny"]).len(), 10);
    assert_eq!(found(&["--until", "1h"]).len(), 0);
    assert_eq!(found(&["--event", "start"]).len(), 1);
    let newest = found(&["--method", "tools/call", "--limit", "2"]);
    let call = newest[1]["call"].as_str().unwrap();
    let one = found(&["--ref", call]);
    assert!(!one.is_empty() && one.iter().all(|record| record["call"] == call));
    // Newest last.
    let times: Vec<_> = newest
        .iter()
        .map(|record| record["time"].as_str())
        .collect();
    assert!(times.is_sorted());
    let said = audit(&["query", "--decision", "deny"], directory);
    assert!(
        said.out.contains("notes_none") && said.out.starts_with("TIME"),
        "{}",
        said.out
    );
    let said = audit(&["tail", "-n", "3"], directory);
    assert_eq!(said.out.lines().count(), 3, "{}", said.out);
    // Not "nothing is like that": it could not be.
    for no_such in [
        ["--since", "yesterday"],
        ["--decision", "denied"],
        ["--outcome", "deny"],
        ["--event", "calls"],
    ] {
        let said = audit(&[&["query"][..], &no_such].concat(), directory);
        assert_eq!(said.code, Some(2), "{no_such:?}");
    }
    // Every event that there is can be asked for, and whatever is shown as the result of one.
    let all = fs::read_to_string(only(directory)).unwrap();
    for line in all.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let record = record["record"]["event"].take();
        let event = record["event"].as_str().unwrap();
        assert!(!found(&["--event", event]).is_empty(), "{event}");
        for name in ["outcome", "state", "action"] {
            if let Some(word) = record["detail"][name].as_str() {
                assert!(!found(&["--outcome", word]).is_empty(), "{record}");
            }
        }
    }
}

// SECURITY AUD-9
#[tokio::test]
async fn results_that_cannot_be_written_are_a_failure_unless_it_is_the_reader_who_went_away() {
    let directory = written().await;
    let servers = directory.path().join("mcp.json");
    fs::write(&servers, r#"{"mcpServers":{"a":{"command":"true"}}}"#).unwrap();
    let usher = |arguments: &[&str], out: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
        command.args(arguments).stdout(out);
        if arguments[0] == "audit" {
            command.arg("--dir").arg(directory.path());
        }
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), told)
    };
    for arguments in [
        &["audit", "query"][..],
        &["audit", "query", "--json"],
        &["audit", "query", "--json", "--limit", "0"],
        &["audit", "export", "--format", "ocsf"],
        &["audit", "tail"],
        &["audit", "verify"],
        &["schema", "config"],
        &["completions", "bash"],
        &["import", servers.to_str().unwrap()],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let (code, told) = usher(arguments, full.unwrap().into());
        assert_eq!(code, Some(1), "{arguments:?}: {told}");
        assert!(told.contains("No space left"), "{arguments:?}: {told}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, told) = usher(arguments, writer.into());
        assert_eq!(code, Some(0), "{arguments:?}: {told}");
        assert!(!told.contains("error"), "{arguments:?}: {told}");
    }
}

#[tokio::test]
async fn an_export_goes_on_where_it_ended() {
    let directory = written().await;
    let directory = directory.path();
    let sequences = |format: &str, after: u64| {
        let after = after.to_string();
        let said = audit(
            &["export", "--format", format, "--after", &after, "--json"],
            directory,
        );
        assert_eq!(said.code, Some(0), "{}", said.err);
        let told: Value = serde_json::from_str(said.err.lines().last().unwrap()).unwrap();
        let all = said.out.lines().flat_map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            match format {
                "ocsf" => vec![event["metadata"]["sequence"].as_u64().unwrap()],
                _ => {
                    let records = &event["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
                    let seq = |record: &Value| {
                        let all = record["attributes"].as_array().unwrap();
                        let one = all.iter().find(|one| one["key"] == "usher.audit.seq");
                        one.unwrap()["value"]["intValue"]
                            .as_str()
                            .unwrap()
                            .parse()
                            .unwrap()
                    };
                    records.as_array().unwrap().iter().map(seq).collect()
                }
            }
        });
        (all.collect::<Vec<u64>>(), told["last"].as_u64().unwrap())
    };
    for format in ["ocsf", "otel"] {
        let (all, last) = sequences(format, 0);
        assert_eq!(all, (1..=last).collect::<Vec<_>>());
        assert_eq!(sequences(format, last), (Vec::new(), last));
        let (rest, _) = sequences(format, 10);
        assert_eq!(rest, (11..=last).collect::<Vec<_>>());
    }
}

// SECURITY AUD-6
#[tokio::test]
async fn no_name_forges_a_record_or_steers_the_terminal_of_who_reads() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = recording(directory.path(), &notes).start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let hostile = [
        "a\\n{\\\"hash\\\":\\\"0\\\"}",
        "\\u001b[2J\\u001b]0;owned\\u0007",
        "\\u009b31m\\u202egnp",
        &"x".repeat(10_000),
        "\\\",\\\"link\\\":{\\\"boot\\\":\\\"b\\\",\\\"node\\\":\\\"n\\\",\\\"prev\\\":\\\"0\\\",\\\"seq\\\":1}}",
    ];
    for name in hostile {
        client
            .call(
                &serde_json::from_str::<String>(&format!("\"{name}\"")).unwrap(),
                "{}",
            )
            .await;
    }
    gateway.app.clone().shutdown().await;
    let (report, code) = verified(directory.path(), &[]);
    assert_eq!(code, Some(0), "{report:#}");
    let text = fs::read_to_string(only(directory.path())).unwrap();
    assert_eq!(
        text.lines().count() as u64,
        report["records"].as_u64().unwrap()
    );
    assert!(text.lines().all(|line| line.len() < 64 << 10));
    assert!(text.contains("bytes)"), "what was cut says so");
    let shown = [
        text,
        audit(&["query"], directory.path()).out,
        audit(&["tail"], directory.path()).out,
        audit(&["query", "--json"], directory.path()).out,
    ];
    for text in shown {
        let acted = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(acted), "{text}");
    }
}

// PRODUCT 4
#[tokio::test]
async fn the_directory_is_found_in_the_configuration_though_its_secrets_are_not_there() {
    let directory = written().await;
    let file = directory.path().join("usher.yaml");
    fs::write(
        &file,
        "audit: { dir: . }\nupstreams: { x: { url: \"https://x.example/mcp\", auth: { bearer: \"${env:NOT_THERE}\" } } }\n",
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["audit", "verify", "-c"])
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("whole"),
        "{output:?}"
    );
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(audit(&["verify"], empty.path()).code, Some(1));
    assert_eq!(audit(&["verify"], &empty.path().join("none")).code, Some(2));
}
