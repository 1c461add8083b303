//! The servers, what they work on, and the calls they are asked for.
//!
//! Every call answers the same whenever it is made (the time server's on the same day, and but for the time of day in what is
//! [`TIMED`]), changes nothing, and works on files that are made for one test.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::{interval, timeout},
};

use crate::client::{Connection, example, node, package, script, venv};

/// One server.
pub(crate) struct Server {
    /// Its key in Usher's configuration, which is its prefix too.
    pub(crate) prefix: &'static str,
    pub(crate) connection: Connection,
    /// The newer of the eras it speaks.
    pub(crate) era: &'static str,
    /// Whether it takes tasks of 2025-11-25, without which what its tools say of them is void.
    pub(crate) tasks: bool,
    /// What else its upstream entry says.
    pub(crate) configuration: Value,
    /// One call of each kind that it offers.
    pub(crate) calls: Vec<Value>,
}

/// Files for the servers to work on, and the servers which are not started by their clients. All of it goes away when this
/// is dropped.
pub(crate) struct World {
    directory: TempDir,
    everything: String,
    fixture: String,
    _processes: [Child; 2],
}

impl World {
    /// Makes the files and starts the servers.
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let root = directory.path();
        let files = root.join("files");
        fs::create_dir_all(files.join("below")).expect("it can be written to");
        fs::write(files.join("hello.txt"), "Grüß Gott\nand good day\n").expect("likewise");
        fs::write(files.join("below/notes.md"), "# Notes\n").expect("likewise");
        fs::write(root.join("memory.jsonl"), MEMORY).expect("likewise");
        git_repository(&root.join("repository")).await;
        let (everything, first) = start_everything().await;
        let (fixture, second) = start_fixture(&[]).await;
        Self {
            directory,
            everything,
            fixture,
            _processes: [first, second],
        }
    }

    /// A path below the world's directory.
    pub(crate) fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.to_str().expect("temporary paths are text").to_owned()
    }

    /// The fixture's endpoint.
    pub(crate) fn fixture(&self) -> &str {
        &self.fixture
    }

    /// Those with these prefixes, in this order.
    pub(crate) fn servers_named(&self, prefixes: &[&str]) -> Vec<Server> {
        let mut all = self.servers();
        let mut take = |prefix: &&str| {
            let at = all.iter().position(|server| server.prefix == *prefix);
            all.swap_remove(at.expect("there is a server of that name"))
        };
        prefixes.iter().map(&mut take).collect()
    }

    /// The servers, in the order of Usher's configuration.
    pub(crate) fn servers(&self) -> Vec<Server> {
        let node = node();
        let node = node.display();
        let everything = package("server-everything/dist/index.js");
        let filesystem = package("server-filesystem/dist/index.js");
        let memory = package("server-memory/dist/index.js");
        let files = self.path("files");
        let repository = self.path("repository");
        // The only ones that take tasks are the two of this name.
        let tasks = |prefix| ["everything", "web"].contains(&prefix);
        let stdio = |prefix, era, command, calls| Server {
            prefix,
            connection: Connection::Command(command),
            era,
            tasks: tasks(prefix),
            // Several tests start all of them at once, and an interpreter takes its time then.
            // What they say themselves of arguments that do not fit is compared, too.
            configuration: json!({"timeout": {"connect": "30s"}, "validate": {"arguments": "off"}}),
            calls,
        };
        let http = |prefix, era, url: &str, configuration, calls| Server {
            prefix,
            connection: Connection::Url(url.to_owned()),
            era,
            tasks: tasks(prefix),
            configuration,
            calls,
        };
        vec![
            stdio(
                "everything",
                "legacy",
                format!("'{node}' '{}' stdio", everything.display()),
                everything_calls(),
            ),
            http(
                "web",
                "legacy",
                &self.everything,
                // Where all share, the gateway declares what these clients declare: nothing. More would be listed otherwise.
                json!({"isolation": "shared", "validate": {"arguments": "off"}}),
                everything_calls(),
            ),
            stdio(
                "files",
                "legacy",
                format!("'{node}' '{}' '{files}'", filesystem.display()),
                vec![
                    tool(
                        "read_text_file",
                        json!({"path": format!("{files}/hello.txt")}),
                    ),
                    tool("directory_tree", json!({"path": files})),
                    tool(
                        "read_text_file",
                        json!({"path": format!("{files}/absent.txt")}),
                    ),
                ],
            ),
            stdio(
                "memory",
                "legacy",
                format!(
                    "env MEMORY_FILE_PATH='{}' '{node}' '{}'",
                    self.path("memory.jsonl"),
                    memory.display()
                ),
                vec![
                    tool("search_nodes", json!({"query": "lighthouse"})),
                    json!({"op": "read", "uri": "memory://knowledge-graph"}),
                ],
            ),
            stdio(
                "time",
                "modern",
                format!(
                    "'{}' --local-timezone=UTC",
                    venv("mcp-server-time").display()
                ),
                vec![tool(
                    "convert_time",
                    json!({"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}),
                )],
            ),
            stdio(
                "git",
                "modern",
                format!(
                    "'{}' --repository '{repository}'",
                    venv("mcp-server-git").display()
                ),
                vec![
                    tool("git_log", json!({"repo_path": repository, "max_count": 5})),
                    tool(
                        "git_show",
                        json!({"repo_path": repository, "revision": "HEAD"}),
                    ),
                ],
            ),
            http(
                "fixture",
                "modern",
                &self.fixture,
                json!({"protocol": "modern"}),
                fixture_calls(),
            ),
        ]
    }
}

/// What the everything server makes when it is read: the text ends with the time of day.
pub(crate) const TIMED: &str = "demo://resource/dynamic/";

fn everything_calls() -> Vec<Value> {
    let template = "demo://resource/dynamic/text/{resourceId}";
    vec![
        tool("echo", json!({"message": "naïve \u{1f98a}"})),
        tool("get-sum", json!({"a": 2, "b": 3.5})),
        tool("get-structured-content", json!({"location": "Chicago"})),
        tool(
            "get-annotated-message",
            json!({"messageType": "error", "includeImage": true}),
        ),
        tool("get-resource-links", json!({"count": 2})),
        tool("get-sum", json!({"a": 1})),
        json!({"op": "get_prompt", "name": "simple-prompt"}),
        prompt("args-prompt", json!({"city": "Paris", "state": "Texas"})),
        json!({"op": "read", "uri": "demo://resource/static/document/features.md"}),
        json!({"op": "read", "uri": format!("{TIMED}text/7")}),
        json!({
            "op": "complete",
            "ref": {"type": "ref/prompt", "name": "completable-prompt"},
            "argument": {"name": "department", "value": "S"},
        }),
        json!({
            "op": "complete",
            "ref": {"type": "ref/resource", "uri": template},
            "argument": {"name": "resourceId", "value": "7"},
        }),
    ]
}

fn fixture_calls() -> Vec<Value> {
    vec![
        tool(
            "test_echo",
            json!({"value": {"b": [1, null, "\u{2028}"], "a": 1.5}}),
        ),
        tool("test_embedded_resource", json!({})),
        tool("test_multiple_content_types", json!({})),
        tool("test_resource_links", json!({})),
        tool("test_error_handling", json!({})),
        tool(
            "test_custom_header",
            json!({"value": "Grüße, with a blank "}),
        ),
        prompt(
            "test_prompt_with_arguments",
            json!({"arg1": "one", "arg2": "two"}),
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            json!({"resourceUri": "test://static-text"}),
        ),
        json!({"op": "read", "uri": "test://static-binary"}),
        json!({"op": "read", "uri": "test://template/7/data"}),
        json!({
            "op": "complete",
            "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": "hel"},
        }),
        json!({
            "op": "complete",
            "ref": {"type": "ref/resource", "uri": "test://template/{id}/data"},
            "argument": {"name": "id", "value": "1"},
        }),
    ]
}

fn tool(name: &str, arguments: Value) -> Value {
    json!({"op": "call", "name": name, "arguments": arguments})
}

fn prompt(name: &str, arguments: Value) -> Value {
    json!({"op": "get_prompt", "name": name, "arguments": arguments})
}

const MEMORY: &str = r#"{"type":"entity","name":"Ada","entityType":"person","observations":["keeps the lighthouse"]}
{"type":"entity","name":"Skerryvore","entityType":"lighthouse","observations":["stands on a reef"]}
{"type":"relation","from":"Ada","to":"Skerryvore","relationType":"tends"}
"#;

async fn git_repository(path: &Path) {
    fs::create_dir(path).expect("the world can be written to");
    fs::write(path.join("file.txt"), "one\n").expect("likewise");
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "."],
        &["commit", "--quiet", "--message=Write one line"],
    ] {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(path);
        for (name, value) in [
            ("GIT_AUTHOR_NAME", "Ada"),
            ("GIT_AUTHOR_EMAIL", "ada@example.com"),
            ("GIT_AUTHOR_DATE", "2026-07-28T12:00:00Z"),
            ("GIT_COMMITTER_NAME", "Ada"),
            ("GIT_COMMITTER_EMAIL", "ada@example.com"),
            ("GIT_COMMITTER_DATE", "2026-07-28T12:00:00Z"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
        ] {
            git.env(name, value);
        }
        let status = git.status().await.expect("git is installed");
        assert!(status.success(), "git {arguments:?} failed");
    }
}

/// The everything server over Streamable HTTP. It takes its port from the environment and does not say which it got.
async fn start_everything() -> (String, Child) {
    let port = free_port();
    let mut command = Command::new(node());
    command
        .arg(package("server-everything/dist/index.js"))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.kill_on_drop(true).spawn().expect("node starts");
    wait_for(port).await;
    (format!("http://127.0.0.1:{port}/mcp"), child)
}

/// A server of TypeScript SDK 1.x over Streamable HTTP that asks and tells beside the call.
pub(crate) async fn start_beside() -> (Server, Child) {
    let port = free_port();
    let mut command = Command::new(node());
    command
        .arg(script("beside.mjs"))
        .arg(port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.kill_on_drop(true).spawn().expect("node starts");
    wait_for(port).await;
    let server = Server {
        prefix: "beside",
        connection: Connection::Url(format!("http://127.0.0.1:{port}/mcp")),
        era: "legacy",
        tasks: false,
        configuration: json!({}),
        calls: Vec::new(),
    };
    (server, child)
}

/// The fixture over Streamable HTTP, told this, too.
pub(crate) async fn start_fixture(more: &[&str]) -> (String, Child) {
    let mut command = Command::new(example("fixture"));
    command
        .args(["--listen", "127.0.0.1:0"])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().expect("it starts");
    let output = child.stdout.take().expect("its output is a pipe");
    let mut line = String::new();
    let read = BufReader::new(output).read_line(&mut line).await;
    read.expect("the fixture says its address");
    let ready: Value = serde_json::from_str(&line).expect("the fixture says it in JSON");
    (ready["url"].as_str().expect("it is text").to_owned(), child)
}

/// A port that nobody listens on at the moment: each once, and none of those that the system gives away by itself, so that nobody
/// has it when whoever it is for is up.
pub(crate) fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const MANY: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Other processes of tests begin elsewhere.
    let begin = std::process::id().wrapping_mul(61);
    let ports = std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
    ports
        .map(|next| FIRST + begin.wrapping_add(next) % MANY)
        .take(20_000)
        .filter_map(|port| u16::try_from(port).ok())
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("some port is free")
}

/// Waits until somebody listens on `port`.
pub(crate) async fn wait_for(port: u16) {
    let connected = async {
        let mut every = interval(Duration::from_millis(20));
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            every.tick().await;
        }
    };
    let waited = timeout(Duration::from_secs(30), connected).await;
    assert!(waited.is_ok(), "nobody listens on port {port} after 30 s");
}
