//! The official SDKs log in: a real authorization server, found through metadata, with PKCE; then a tool call with a token
//! that lacks a scope, the challenge, a second login, and the call succeeds (PROTOCOL F1, F4, F5).

use std::{
    fs,
    path::PathBuf,
    process::{Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::{
    client::{node, script, venv},
    servers::{free_port, wait_for},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// An authorization server, a demo behind an Usher that takes its tokens, and where that is.
struct Scene {
    url: String,
    _directory: TempDir,
    _processes: [Child; 2],
}

#[tokio::test]
async fn typescript_1_logs_in_steps_up_and_calls_a_tool() {
    let scene = Scene::set().await;
    logs_in(&scene, vec![node(), script("login-1.mjs")]).await;
}

#[tokio::test]
async fn typescript_2_logs_in_steps_up_and_calls_a_tool() {
    let scene = Scene::set().await;
    logs_in(&scene, vec![node(), script("login-2.mjs")]).await;
}

#[tokio::test]
async fn python_logs_in_steps_up_and_calls_a_tool() {
    let scene = Scene::set().await;
    logs_in(&scene, vec![venv("python"), script("login.py")]).await;
}

async fn logs_in(scene: &Scene, program: Vec<PathBuf>) {
    let mut command = Command::new(&program[0]);
    command
        .args(&program[1..])
        .args([&scene.url, "files_list_allowed_directories"]);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output: Output = timeout(PATIENCE, output)
        .await
        .expect("the client ends")
        .expect("the client runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("the client tells JSON");
    let log: Vec<&str> = told["log"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|line| !line.starts_with("again"))
        .collect();
    let login = format!("login for mcp tools at {} with PKCE", scene.url);
    assert_eq!(
        log,
        [
            "registered",
            login.as_str(),
            "token for mcp",
            login.as_str(),
            "token for mcp tools"
        ],
        "{told}\n{errors}"
    );
    assert!(told["result"]["content"][0]["text"].is_string(), "{told}");
    assert!(told["result"]["isError"] != json!(true), "{told}");
}

impl Scene {
    async fn set() -> Self {
        let directory = TempDir::new().expect("a directory");
        let (port, authority) = (free_port(), free_port());
        let url = format!("http://127.0.0.1:{port}/mcp");
        let issuer = format!("http://127.0.0.1:{authority}");
        let mut server = Command::new(node())
            .arg(script("authority.mjs"))
            .args([authority.to_string(), url.clone()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the authorization server starts");
        let output = server.stdout.take().expect("its output is a pipe");
        let mut lines = BufReader::new(output).lines();
        let ready = timeout(PATIENCE, lines.next_line()).await;
        assert!(
            matches!(&ready, Ok(Ok(Some(line))) if line == "ready"),
            "the authorization server says {ready:?}"
        );
        let files = crate::client::package("server-filesystem/dist/index.js");
        let configuration = json!({
            "listen": {"address": format!("127.0.0.1:{port}")},
            "auth": {
                "jwt": [{"issuer": issuer, "algorithms": ["RS256"]}],
                "scopes": {"required": ["mcp", "tools"]},
            },
            "upstreams": {"files": {"command": [node(), files, directory.path()]}},
        });
        let file = directory.path().join("usher.yaml");
        // JSON is YAML.
        fs::write(&file, configuration.to_string()).expect("the directory can be written to");
        let usher = Command::new(env!("CARGO_BIN_EXE_usher"))
            .args(["serve".as_ref(), "-c".as_ref(), file.as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("usher starts");
        wait_for(port).await;
        Self {
            url,
            _directory: directory,
            _processes: [server, usher],
        }
    }
}
