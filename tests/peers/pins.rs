//! A server of the Rust SDK that is taken over (issue 5, acceptance 6).
//! Its description, a schema, a hint and a `_meta` are not what they were.
//!
//! Seen by notification, by poll, on reconnect and after Usher's restart, under either setting; Usher and its commands are run as
//! programs.

use std::{fs, process::Stdio, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use crate::{
    client::{Client, Connection, example},
    servers::{free_port, wait_for},
};

const PATIENCE: Duration = Duration::from_secs(60);
/// What is another after the change, in the order of names.
const CHANGED: [&str; 4] = [
    "greet",
    "multi_input",
    "test_echo",
    "test_trigger_tool_change",
];

/// How the change comes to be known.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Notification,
    Poll,
    Reconnect,
    Restart,
}

#[tokio::test]
async fn cat_2_what_a_server_of_the_rust_sdk_changes_is_shown_under_watch() {
    for by in [By::Notification, By::Poll, By::Reconnect, By::Restart] {
        Story::begin("watch", by).await.tell().await;
    }
}

#[tokio::test]
async fn cat_2_what_a_server_of_the_rust_sdk_changes_is_withheld_under_quarantine() {
    for by in [By::Notification, By::Poll, By::Reconnect, By::Restart] {
        Story::begin("quarantine", by).await.tell().await;
    }
}

struct Story {
    directory: TempDir,
    mode: &'static str,
    by: By,
    fixture: Child,
    /// Where the fixture listens, and where Usher does.
    ports: [u16; 2],
    usher: Child,
}

impl Story {
    async fn begin(mode: &'static str, by: By) -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let ports = [free_port(), free_port()];
        let configuration = json!({
            "listen": {"address": format!("127.0.0.1:{}", ports[1])},
            "state": {"dir": "state"},
            "definitions": {"pin": mode},
            "upstreams": {"sdk": {"url": format!("http://127.0.0.1:{}/mcp", ports[0]), "poll": "1s"}},
        });
        // JSON is YAML.
        let file = directory.path().join("usher.yaml");
        fs::write(file, configuration.to_string()).expect("it can be written to");
        let fixture = fixture(ports[0], 0, by == By::Poll).await;
        let usher = usher(&directory, ports[1]).await;
        Self {
            directory,
            mode,
            by,
            fixture,
            ports,
            usher,
        }
    }

    async fn tell(mut self) {
        let whole = self.until("all is listed", |names| names.len() > 30).await;
        self.until_written().await;
        match self.by {
            // It tells those who listen, or nobody.
            By::Notification | By::Poll => {
                let direct = Connection::Url(format!("http://127.0.0.1:{}/mcp", self.ports[0]));
                let step =
                    json!({"op": "call", "name": "test_trigger_tool_change", "arguments": {}});
                Client::example("rmcp-client")
                    .era("modern")
                    .run(&direct, &[step])
                    .await;
            }
            By::Reconnect => {
                self.fixture.kill().await.expect("it can be killed");
                self.fixture = fixture(self.ports[0], 1, false).await;
            }
            By::Restart => {
                self.usher.kill().await.expect("it can be killed");
                self.fixture.kill().await.expect("it can be killed");
                self.fixture = fixture(self.ports[0], 1, false).await;
                self.usher = usher(&self.directory, self.ports[1]).await;
            }
        }
        let rows = self.until_unapproved(4).await;
        let mut names: Vec<_> = rows
            .iter()
            .map(|row| row["name"].as_str().unwrap_or_default())
            .collect();
        names.sort_unstable();
        assert_eq!(names, CHANGED, "{:?} {}", self.by, self.mode);
        let diff = self.pins(&["diff"]).await;
        for line in [
            "    - The tools have changed 0 times",
            "    + The tools have changed 1 times",
            "  inputSchema/properties/token\n    + {\"type\":\"string\"}",
            "  annotations/readOnlyHint\n    - true\n    + false",
            "  _meta\n    + {\"com.example/x\":true}",
        ] {
            assert!(diff.contains(line), "{line:?} in\n{diff}");
        }
        if self.mode == "quarantine" {
            let less = whole.len() - CHANGED.len();
            let listed = self
                .until("what changed is gone", |names| names.len() == less)
                .await;
            assert!(
                CHANGED
                    .iter()
                    .all(|name| !listed.contains(&format!("sdk_{name}")))
            );
            let refused = self.call("sdk_greet", json!({"name": "x"})).await;
            assert_eq!(
                refused["ok"]["_meta"]["dev.usher/reason"], "definition_quarantined",
                "{refused}"
            );
        }
        self.pins(&["approve", "sdk", "--all"]).await;
        self.until_unapproved(0).await;
        self.until("all is back", |names| names.len() == whole.len())
            .await;
        let called = self.call("sdk_test_echo", json!({"value": 1})).await;
        assert_eq!(called["ok"]["structuredContent"]["value"], 1, "{called}");
    }

    fn connection(&self) -> Connection {
        Connection::Url(format!("http://127.0.0.1:{}/mcp", self.ports[1]))
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        let step = json!({"op": "call", "name": name, "arguments": arguments});
        let client = Client::example("rmcp-client").era("modern");
        client.run(&self.connection(), &[step]).await.remove(0)
    }

    async fn until(&self, what: &str, is: impl Fn(&[String]) -> bool) -> Vec<String> {
        let client = Client::example("rmcp-client").era("modern");
        let began = Instant::now();
        loop {
            let results = client
                .run(&self.connection(), &[json!({"op": "list_tools"})])
                .await;
            let tools = results[0]["ok"]["tools"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let names: Vec<_> = tools
                .iter()
                .filter_map(|tool| Some(tool["name"].as_str()?.to_owned()))
                .collect();
            if is(&names) {
                return names;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "never: {what}, {:?} {}: {names:?}",
                self.by,
                self.mode
            );
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn until_written(&self) {
        let record = self.directory.path().join("state/pins/sdk.pins");
        let began = Instant::now();
        while !record.exists() {
            assert!(began.elapsed() < PATIENCE, "no record is written");
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn until_unapproved(&self, count: usize) -> Vec<Value> {
        let began = Instant::now();
        loop {
            let told = self.pins(&["status", "--json"]).await;
            let rows: Vec<Value> = serde_json::from_str(&told).expect("the command prints JSON");
            if rows.len() == count {
                return rows;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{:?} {}: {told}",
                self.by,
                self.mode
            );
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// What a command prints; it must end well.
    async fn pins(&self, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
        command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
        command
            .arg("pins")
            .args(words)
            .current_dir(self.directory.path());
        let output = command.output().await.expect("usher starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {told}");
        String::from_utf8(output.stdout).expect("it prints text")
    }
}

async fn fixture(port: u16, changed: u64, silent: bool) -> Child {
    let mut command = Command::new(example("fixture"));
    command
        .args([
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--changed",
            &changed.to_string(),
        ])
        .args(silent.then_some("--silent"))
        .stdout(Stdio::null());
    let child = command.kill_on_drop(true).spawn().expect("it starts");
    wait_for(port).await;
    child
}

async fn usher(directory: &TempDir, port: u16) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
        .args(["serve"])
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.kill_on_drop(true).spawn().expect("usher starts");
    wait_for(port).await;
    child
}
