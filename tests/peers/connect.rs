//! The official SDKs call an upstream that people log in to (PRODUCT 7, PROTOCOL D2, F6).
//! It is found through its own metadata, registered at, logged in to with PKCE at a real authorization server by whoever was
//! sent to the connect page, and each token after that is renewed.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::{
    client::{node, script, venv},
    servers::{free_port, wait_for},
};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn typescript_1_is_asked_to_log_in_and_goes_on() {
    logs_in("connect-1.mjs", [node(), script("accounts.mjs")]).await;
}

#[tokio::test]
async fn typescript_2_is_asked_to_log_in_and_goes_on() {
    logs_in("connect-2.mjs", [node(), script("accounts.mjs")]).await;
}

#[tokio::test]
async fn a_login_goes_through_at_the_authorization_server_of_the_python_sdk() {
    logs_in("connect-2.mjs", [venv("python"), script("accounts.py")]).await;
}

async fn logs_in(client: &str, server: [PathBuf; 2]) {
    let scene = Scene::set(server).await;
    let mut command = Command::new(node());
    command.arg(script(client)).arg(&scene.url);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(PATIENCE, output)
        .await
        .expect("the client ends")
        .expect("the client runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("the client tells JSON");
    assert_eq!(told["first"], "accounts_login", "{told}");
    let login = told["login"].as_str().unwrap_or_default();
    assert!(login.starts_with("Logged in to accounts"), "{told}");
    let page = told["page"].as_str().unwrap_or_default();
    assert!(page.contains("<h1>Connected</h1>"), "{told}");
    assert_eq!(told["asked"].as_array().map(Vec::len), Some(1), "{told}");
    assert_eq!(told["asked"][0]["mode"], "url");
    let texts: Vec<_> = told["texts"].as_array().into_iter().flatten().collect();
    let count = |text: &Value| -> u32 {
        let text = text.as_str().unwrap_or_default();
        let (who, count) = text.split_once(", token ").expect("a token's number");
        assert_eq!(who, format!("ana for {}/mcp", scene.issuer));
        count.parse().expect("a number")
    };
    let counts: Vec<u32> = texts.into_iter().map(count).collect();
    // Each was fetched with the refresh token of the one before, which is good once.
    assert!(counts.windows(2).all(|pair| pair[0] < pair[1]), "{told}");
    let log = fs::read_to_string(scene.directory.path().join("log")).expect("a log");
    assert!(!log.contains("oauth_error"), "{log}");
}

/// A server with accounts behind an Usher that keeps nothing but sealed files.
struct Scene {
    url: String,
    issuer: String,
    directory: TempDir,
    /// It must not find its output closed.
    _output: Lines<BufReader<ChildStdout>>,
    _processes: [Child; 2],
}

impl Scene {
    async fn set(server: [PathBuf; 2]) -> Self {
        let directory = TempDir::new().expect("a directory");
        let (port, accounts) = (free_port(), free_port());
        let issuer = format!("http://127.0.0.1:{accounts}");
        let [program, script] = server;
        let mut server = Command::new(program)
            .arg(script)
            .arg(accounts.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts");
        let output = server.stdout.take().expect("its output is a pipe");
        let mut lines = BufReader::new(output).lines();
        let ready = timeout(PATIENCE, lines.next_line()).await;
        assert!(
            matches!(&ready, Ok(Ok(Some(line))) if line == "ready"),
            "the server says {ready:?}"
        );
        let configuration = json!({
            "listen": {"address": format!("127.0.0.1:{port}")},
            "connections": {
                "store": directory.path().join("connections"),
                "keys": ["${env:CONNECTIONS_KEY}"],
            },
            "upstreams": {"accounts": {
                "url": format!("{issuer}/mcp"),
                "auth": {"authorization_code": {}},
            }},
        });
        let file = directory.path().join("usher.yaml");
        // JSON is YAML.
        fs::write(&file, configuration.to_string()).expect("the directory can be written to");
        let log = fs::File::create(directory.path().join("log")).expect("likewise");
        let usher = Command::new(env!("CARGO_BIN_EXE_usher"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .args(["serve".as_ref(), "-c".as_ref(), file.as_os_str()])
            .env("CONNECTIONS_KEY", "0123456789abcdef0123456789abcdef")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("usher starts");
        wait_for(port).await;
        Self {
            url: format!("http://127.0.0.1:{port}/mcp"),
            issuer,
            directory,
            _output: lines,
            _processes: [server, usher],
        }
    }
}
