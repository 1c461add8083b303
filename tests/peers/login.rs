//! The official SDKs log in (PROTOCOL F1, F4, F5).
//! A real authorization server, found through metadata, with PKCE; then a tool call with a token that lacks a scope, the
//! challenge, a second login, and the call succeeds. The scope is one that everything needs by configuration, or one that a
//! policy asks for.

use std::{
    fs,
    path::PathBuf,
    process::{Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
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

/// Everything needs both scopes.
const BY_CONFIGURATION: Needs = Needs {
    required: &["mcp", "tools"],
    policy: "permit(principal, action, resource);",
    asked_first: "mcp tools",
};

/// Everything needs one scope, and policies permit nothing without the other, of which they alone know.
const BY_POLICY: Needs = Needs {
    required: &["mcp"],
    policy: r#"permit(principal == User::"ana", action, resource) when { context.scopes.contains("tools") };"#,
    asked_first: "mcp",
};

struct Needs {
    required: &'static [&'static str],
    policy: &'static str,
    /// What a client asks for that has heard nothing but the first challenge.
    asked_first: &'static str,
}

#[tokio::test]
async fn typescript_1_logs_in_steps_up_and_calls_a_tool() {
    logs_in(&BY_CONFIGURATION, vec![node(), script("login-1.mjs")]).await;
}

#[tokio::test]
async fn typescript_2_logs_in_steps_up_and_calls_a_tool() {
    logs_in(&BY_CONFIGURATION, vec![node(), script("login-2.mjs")]).await;
}

#[tokio::test]
async fn python_logs_in_steps_up_and_calls_a_tool() {
    logs_in(&BY_CONFIGURATION, vec![venv("python"), script("login.py")]).await;
}

#[tokio::test]
async fn typescript_1_steps_up_to_the_scope_that_a_policy_asks_for() {
    logs_in(&BY_POLICY, vec![node(), script("login-1.mjs")]).await;
}

#[tokio::test]
async fn typescript_2_steps_up_to_the_scope_that_a_policy_asks_for() {
    logs_in(&BY_POLICY, vec![node(), script("login-2.mjs")]).await;
}

#[tokio::test]
async fn python_steps_up_to_the_scope_that_a_policy_asks_for() {
    logs_in(&BY_POLICY, vec![venv("python"), script("login.py")]).await;
}

async fn logs_in(needs: &Needs, program: Vec<PathBuf>) {
    let scene = Scene::set(needs).await;
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
    let login = |scopes: &str| format!("login for {scopes} at {} with PKCE", scene.url);
    assert_eq!(
        log,
        [
            "registered",
            login(needs.asked_first).as_str(),
            "token for mcp",
            login("mcp tools").as_str(),
            "token for mcp tools"
        ],
        "{told}\n{errors}"
    );
    assert!(told["result"]["content"][0]["text"].is_string(), "{told}");
    assert!(told["result"]["isError"] != json!(true), "{told}");
}

/// Whether what can be scraped at this port tells of tools.
async fn has_tools(admin: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", admin)).await else {
        return false;
    };
    let request =
        format!("GET /metrics HTTP/1.1\r\nhost: 127.0.0.1:{admin}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("answered");
    text.lines().any(|line| {
        line.starts_with("usher_catalog_items")
            && line.contains(r#""tools""#)
            && !line.ends_with(" 0")
    })
}

impl Scene {
    async fn set(needs: &Needs) -> Self {
        let directory = TempDir::new().expect("a directory");
        let (port, authority, admin) = (free_port(), free_port(), free_port());
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
            "admin": {"address": format!("127.0.0.1:{admin}")},
            "auth": {
                "jwt": [{"issuer": issuer, "algorithms": ["RS256"]}],
                "scopes": {"required": needs.required},
            },
            "policy": {"dir": "."},
            "upstreams": {"files": {"command": [node(), files, directory.path()]}},
        });
        fs::write(directory.path().join("only.cedar"), needs.policy).expect("it can be written to");
        let file = directory.path().join("usher.yaml");
        // JSON is YAML.
        fs::write(&file, configuration.to_string()).expect("the directory can be written to");
        let usher = Command::new(env!("CARGO_BIN_EXE_usher"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .args(["serve".as_ref(), "-c".as_ref(), file.as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("usher starts");
        wait_for(port).await;
        // Whoever calls before its server is there is told that there is no such tool.
        let listed = timeout(PATIENCE, async {
            while !has_tools(admin).await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        listed.await.expect("the server's tools are listed");
        Self {
            url,
            _directory: directory,
            _processes: [server, usher],
        }
    }
}
