//! The admin API as a program sees it that was made from its document: schemathesis, against the binary (issue 6, acceptance 7).
//!
//! It is given the document that the listener serves, makes requests that fit it and requests that do not, and holds every
//! answer to it: statuses, media types, headers, schemas, what has to be taken and what has to be refused. What follows something
//! has no end, and is left out. So is what it knows of credentials: it tries more wrong ones than the listener bears in a minute,
//! and does not expect to be told so; `tests/gateway/admin` tries them.

use std::{fs, path::Path, process::Stdio, time::Duration};

use serde_json::json;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::{
    client::{example, venv},
    servers::{free_port, wait_for},
};

const PATIENCE: Duration = Duration::from_secs(540);
const TOKEN: &str = "0123456789abcdef-for-operators-alone";
/// A cursor that every list takes: which ones a list gives out, no schema tells.
const SETTINGS: &str = "[parameters]\n\"query.cursor\" = \"MA\"\n";
/// That a question names one of `user`, `agent` and `key`, and not several, no schema tells either: what is refused there is looked
/// at by `tests/gateway/admin`.
const EXPLAIN: &str = "explain_decision";
/// What has no end.
const ENDLESS: [&str; 2] = ["follow_audit", "follow_calls"];

#[tokio::test]
async fn a_client_made_from_the_document_finds_the_api_as_it_says() {
    let home = TempDir::new().expect("a directory");
    let [fixture, clients, operators] = [free_port(), free_port(), free_port()];
    let _server = spawned(
        Command::new(example("fixture")).args(["--listen", &format!("127.0.0.1:{fixture}")]),
        fixture,
    )
    .await;
    let file = home.path().join("usher.yaml");
    let configuration = json!({
        "listen": {"address": format!("127.0.0.1:{clients}")},
        "admin": {"address": format!("127.0.0.1:{operators}"), "token": "${env:USHER_ADMIN_TOKEN}"},
        "audit": {"dir": "audit"},
        "limits": [{"per": "principal", "rate": "1000/s"}],
        "upstreams": {"fixture": {"url": format!("http://127.0.0.1:{fixture}/mcp")}},
    });
    // JSON is YAML.
    fs::write(&file, configuration.to_string()).expect("written");
    let _usher = spawned(
        Command::new(env!("CARGO_BIN_EXE_usher"))
            .arg("serve")
            .arg("-c")
            .arg(&file)
            .env("USHER_ADMIN_TOKEN", TOKEN)
            .env("XDG_STATE_HOME", home.path()),
        clients,
    )
    .await;
    fs::write(home.path().join("schemathesis.toml"), SETTINGS).expect("written");
    let others: Vec<&str> = ENDLESS
        .iter()
        .chain([&EXPLAIN])
        .flat_map(|id| ["--exclude-operation-id", id])
        .collect();
    asks(home.path(), operators, "ignored_auth", &others).await;
    let unchecked = "ignored_auth,positive_data_acceptance";
    let only = ["--include-operation-id", EXPLAIN];
    asks(home.path(), operators, unchecked, &only).await;
}

/// Has it ask about these operations, all but these checks looked at.
async fn asks(home: &Path, operators: u16, unchecked: &str, which: &[&str]) {
    let mut command = Command::new(venv("schemathesis"));
    command
        .current_dir(home)
        .arg("run")
        .arg(format!("http://127.0.0.1:{operators}/api/openapi.json"))
        .arg("--header")
        .arg(format!("Authorization: Bearer {TOKEN}"))
        .args(["--checks", "all", "--exclude-checks", unchecked])
        .args(["--max-examples", "25", "--seed", "6"])
        .args(["--request-timeout", "30", "--workers", "1", "--no-color"])
        .args(["--generation-database", "none"])
        .args(which);
    let run = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let run = timeout(PATIENCE, run).await.expect("it ends");
    let run = run.expect("it runs");
    let told = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}\n{errors}");
    // It has asked, and not only looked at the document.
    assert!(told.contains("generated"), "{told}");
}

async fn spawned(command: &mut Command, port: u16) -> Child {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    wait_for(port).await;
    child.expect("it starts")
}
