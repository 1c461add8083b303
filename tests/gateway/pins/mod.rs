//! Definitions that change after they were approved (PRODUCT 11, SECURITY CAT-2, CAT-3).
//! Each is seen by every way that a change comes, under either setting.

mod mirrored;
mod rug_pull;
mod server;
mod withheld;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Gateway, GatewayBuilder, Pairing, Upstream, eventually, tool};

/// A tool with this beside its name and schema.
fn with(name: &str, more: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},{more}}}"#)
}

/// A place for what outlives a gateway.
struct State {
    dir: TempDir,
    mode: &'static str,
    /// What the server is called in the configuration; its namespace is `notes` in any case.
    key: String,
}

impl State {
    fn of(mode: &'static str) -> Self {
        Self::under(mode, "notes")
    }

    fn under(mode: &'static str, key: &str) -> Self {
        let (dir, key) = (TempDir::new().unwrap(), key.to_owned());
        Self { dir, mode, key }
    }

    /// A gateway that keeps its state here.
    fn gateway(&self, notes: &Upstream) -> GatewayBuilder {
        let dir = self.dir.path().join("state");
        let builder = Gateway::of()
            .setting(&format!("state: {{ dir: {} }}", dir.display()))
            .upstream_with(
                &self.key,
                notes,
                &format!("prefix: notes, definitions: {{ pin: {} }}", self.mode),
            );
        fs::write(self.config(), builder.text()).unwrap();
        builder
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("usher.yaml")
    }

    fn record(&self) -> PathBuf {
        let directory = self.dir.path().join("state/pins");
        directory.join(format!("{}.pins", self.key))
    }

    fn output(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_usher"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .arg("pins")
            .args(words)
            .arg("-c")
            .arg(self.config())
            .output()
            .unwrap()
    }

    /// What the command prints; it must end well.
    fn usher(&self, words: &[&str]) -> String {
        let output = self.output(words);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is not as it was approved, once so many things are not, by name and state.
    async fn unapproved(&self, count: usize) -> Vec<(String, String)> {
        eventually("the record tells of the changes", || async {
            if !self.record().exists() {
                return None;
            }
            let all: Value = serde_json::from_str(&self.usher(&["status", "--json"])).unwrap();
            let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
            let mut rows: Vec<_> = all
                .as_array()
                .unwrap()
                .iter()
                .map(|row| (text(row, "name"), text(row, "state")))
                .collect();
            rows.sort();
            (rows.len() == count).then_some(rows)
        })
        .await
    }

    /// Waits until what was seen first is on disk.
    async fn written(&self) {
        eventually("the first record is written", || async {
            self.record().exists().then_some(())
        })
        .await;
    }
}
