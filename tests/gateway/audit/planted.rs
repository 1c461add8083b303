//! Values planted wherever a call or a configuration may hold a secret, and a search for them in all that a gateway puts out.
//! That is what it writes, sends and serves: records, logs, metrics, traces, the admin API and its feeds (issue 6, acceptance
//! 6; SECURITY 10).

use std::{
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

use http::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    task::JoinSet,
};
use usher::admin::document;

use crate::{
    egress::markers::finds,
    harness::{
        Authority, Client, EVERYTHING, EventStream, Play, RESOURCE, Revision, Upstream, eventually,
        exchange, parse, quote, template, text_result, tool,
    },
};

/// What the configuration refers to, by the name of its variable.
const CREDENTIALS: [(&str, &str); 9] = [
    ("OPERATOR", "mk01-operator-c41f-and-nobody-else"),
    ("AUDITOR", "mk02-auditor-c41f-and-nobody-else"),
    ("STATE", "mk03-state-key-c41f-of-at-least-32-bytes"),
    ("HASHED", "mk04-hashing-key-c41f-of-at-least-32-bytes"),
    ("BEARER", "mk05-upstream-bearer-c41f"),
    ("HEADER", "mk06-upstream-header-c41f"),
    ("PROGRAM", "mk07-program-token-c41f"),
    ("CLIENT", "mk08-client-secret-c41f"),
    ("COLLECTOR", "mk09-collector-token-c41f"),
];
/// What the token endpoint gives.
const GRANTED: &str = "mk10-granted-token-c41f";
/// What proves nothing.
const WRONG: &str = "mk11-wrong-credential-c41f";
/// Secrets by their form, and by the name of their parameter.
const SECRET: &str = "glpat-k7Qd2ZrTn8VbXw4Ls9Yc";
const PARAMETER: &str = "mk12-parameter-c41f";
/// Content.
const ARGUMENT: &str = "mk20-argument-c41f";
const RESULT: &str = "mk21-result-c41f";
const FAILURE: &str = "mk22-failure-c41f";
const BROKEN: &str = "mk23-error-c41f";
const CONTENT: [&str; 4] = [ARGUMENT, RESULT, FAILURE, BROKEN];

/// How much of calls is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Default,
    Everything,
}

// SECURITY AUD-8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_credential_is_in_anything_that_comes_out_and_content_only_where_it_is_to_be_kept() {
    for kept in [Kept::Default, Kept::Everything] {
        let told = driven(kept).await;
        for (what, text) in &told.texts {
            assert!(!text.is_empty(), "{kept:?}: nothing of {what}");
            for secret in &told.secrets {
                absent(secret, what, text, kept);
            }
            // Records and whatever shows them may hold content, where they are to.
            if kept == Kept::Everything && HOLDS_CONTENT.contains(what) {
                continue;
            }
            for content in CONTENT {
                absent(content, what, text, kept);
            }
        }
        let records = &told.texts[0].1;
        for content in CONTENT {
            let found = finds(records, content).is_some();
            // Of errors there is a code and no words.
            let wanted = kept == Kept::Everything && content != BROKEN;
            assert_eq!(found, wanted, "{kept:?}: {content} in records");
        }
    }
}

/// Texts that records stand in.
const HOLDS_CONTENT: [&str; 5] = [
    "records",
    "stdout",
    "log records",
    "the admin API",
    "the feeds",
];

fn absent(marker: &str, what: &str, text: &str, kept: Kept) {
    let escaped: String = marker.bytes().fold(String::new(), |mut escaped, byte| {
        _ = write!(escaped, "\\u{byte:04x}");
        escaped
    });
    let found = finds(text, marker).or_else(|| text.contains(&escaped).then_some(escaped));
    if let Some(spelling) = found {
        let at = text.find(&spelling).unwrap();
        let from = text.floor_char_boundary(at.saturating_sub(400));
        let to = text.ceil_char_boundary((at + 200).min(text.len()));
        panic!(
            "{kept:?}: `{marker}` is in {what} as `{spelling}`: …{}…",
            &text[from..to]
        );
    }
}

/// Everything that came out, and what must not be in it.
struct Told {
    texts: Vec<(&'static str, String)>,
    secrets: Vec<String>,
}

/// A collector of OpenTelemetry, and a token endpoint.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<(String, String)>>>);

impl Collector {
    async fn serve(self, listener: TcpListener) {
        let mut serving = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            let this = self.clone();
            serving.spawn(async move { this.answer(socket).await });
        }
    }

    async fn answer(&self, mut socket: TcpStream) {
        let (mut text, mut buffer) = (Vec::new(), [0; 4_096]);
        let (head, body) = loop {
            match socket.read(&mut buffer).await {
                Ok(read @ 1..) => text.extend_from_slice(&buffer[..read]),
                _ => return,
            }
            let Some(end) = memchr::memmem::find(&text, b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8_lossy(&text[..end]).to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if text.len() >= end + 4 + length {
                break (head, String::from_utf8_lossy(&text[end + 4..]).into_owned());
            }
        };
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let answer = match path.as_str() {
            "/token" => {
                format!(r#"{{"access_token":"{GRANTED}","token_type":"Bearer","expires_in":300}}"#)
            }
            _ => "{}".to_owned(),
        };
        self.0.lock().unwrap().push((path, body));
        let length = answer.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
        );
        drop(socket.write_all(answer.as_bytes()).await);
    }

    /// What came to this path.
    fn got(&self, path: &str) -> String {
        let all = self.0.lock().unwrap();
        all.iter()
            .filter(|(to, _)| to == path)
            .map(|(_, body)| body.as_str())
            .collect()
    }
}

/// Runs the binary, and calls through it in every way; all that it wrote, sent and served.
async fn driven(kept: Kept) -> Told {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = Collector::default();
    let at = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(collector.clone().serve(listener));
    let authority = Authority::start().await;
    let [notes, granted] = upstreams();
    configure(home.path(), kept, at, &authority, &notes, &granted);
    let key = key(home.path()).await;
    let token = authority.token("ana", "");
    let mut running = start(home.path()).await;
    let operators = running.operators;

    let feeds = Arc::new(Mutex::new(String::new()));
    for path in ["/api/calls/follow", "/api/audit/follow"] {
        let feeds = feeds.clone();
        serving.spawn(async move {
            let bearer = format!("Bearer {}", CREDENTIALS[1].1);
            let headers = [("authorization", bearer.as_str())];
            let mut stream = EventStream::open(operators, Method::GET, path, &headers, "").await;
            while let Some(event) = stream.next().await {
                feeds.lock().unwrap().push_str(&event.data);
            }
        });
    }
    for credential in [&token, &key] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            calls(running.clients, credential, revision).await;
        }
    }
    refusals(running.clients).await;
    // Spans and metrics are sent within a second or some, records at once.
    eventually("everything was sent", async || {
        let all = ["/v1/logs", "/v1/traces", "/v1/metrics"];
        let sent = all.map(|path| collector.got(path).contains("notes_t"));
        (sent == [true; 3] && feeds.lock().unwrap().contains("notes_t")).then_some(())
    })
    .await;
    let api = api(operators).await;
    let metrics = asked(operators, "/metrics").await;
    let arguments = fs::read(format!("/proc/{}/cmdline", running.id)).unwrap();
    let [stdout, stderr] = running.end().await;
    assert!(
        !stderr.is_empty() && stderr.lines().all(|line| line.starts_with('{')),
        "logs are in JSON: {stderr}"
    );
    serving.abort_all();

    let signature = token.rsplit_once('.').unwrap().1.to_owned();
    let mut secrets: Vec<String> = CREDENTIALS
        .iter()
        .map(|(_, value)| (*value).to_owned())
        .collect();
    secrets.extend([GRANTED, WRONG, SECRET, PARAMETER].map(str::to_owned));
    secrets.extend([key, signature]);
    Told {
        texts: vec![
            ("records", files(&home.path().join("audit"))),
            ("stdout", stdout),
            ("log records", collector.got("/v1/logs")),
            ("the admin API", api),
            ("the feeds", feeds.lock().unwrap().clone()),
            ("stderr", stderr),
            ("metrics", metrics),
            ("traces sent", collector.got("/v1/traces")),
            ("metrics sent", collector.got("/v1/metrics")),
            (
                "arguments of the process",
                String::from_utf8_lossy(&arguments).into_owned(),
            ),
        ],
        secrets,
    }
}

/// A server with a credential in headers, which says what it was told of it, and one for a token of ours.
fn upstreams() -> [Upstream; 2] {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools(["t", "echo", "fails", "breaks"].map(tool))
        .templates([template("notes://{+place}")])
        .on("tools/call", |heard| match heard.text("name").as_deref() {
            Some("t") => Play::Result(text_result(&format!("{RESULT} {SECRET}"))),
            Some("echo") => {
                let told = ["authorization", "x-team-key"]
                    .map(|name| heard.header(name).unwrap_or_default());
                Play::Result(text_result(&format!("{RESULT} {}", told.join(" "))))
            }
            Some("fails") => Play::Result(format!(
                r#"{{"content":[{{"type":"text","text":"{FAILURE} {SECRET}"}}],"isError":true}}"#
            )),
            _ => Play::Error(format!(
                r#"{{"code":-32603,"message":"{BROKEN} {SECRET}","data":"{BROKEN}"}}"#
            )),
        });
    let granted = Upstream::http(Revision::V2025_11_25).tools([tool("t")]);
    [notes, granted]
}

fn configure(
    home: &Path,
    kept: Kept,
    collector: SocketAddr,
    authority: &Authority,
    notes: &Upstream,
    granted: &Upstream,
) {
    let (content, sanitize) = match kept {
        Kept::Default => ("", ""),
        // Where it is let pass, what is kept is all that stands between.
        Kept::Everything => (
            "content: [{ level: request_response }],",
            "sanitize: { classes: { secret: off, weak_secret: off, own_credential: flag } }",
        ),
    };
    fs::create_dir(home.join("policies")).unwrap();
    fs::write(home.join("policies/main.cedar"), EVERYTHING).unwrap();
    let (issuer, notes, granted) = (&authority.issuer, notes.place(), granted.place());
    let text = format!(
        r#"
listen: {{ address: "127.0.0.1:0" }}
admin: {{ address: "127.0.0.1:0", token: "${{env:OPERATOR}}", auditor_token: "${{env:AUDITOR}}" }}
telemetry: {{ otlp: "http://{collector}", headers: {{ authorization: "Bearer ${{env:COLLECTOR}}" }}, interval: 1s }}
audit: {{ dir: audit, {content} sinks: {{ stdout: true, otlp: "http://{collector}", otlp_headers: {{ authorization: "Bearer ${{env:COLLECTOR}}" }} }} }}
state: {{ key: "${{env:STATE}}" }}
auth:
  jwt: [{{ issuer: "{issuer}", audience: ["{RESOURCE}/mcp"] }}]
  keys: {{ file: keys.json, secret: "${{env:HASHED}}" }}
policy: {{ dir: policies }}
{sanitize}
upstreams:
  notes: {{ {notes}, auth: {{ bearer: "${{env:BEARER}}" }}, headers: {{ x-team-key: "${{env:HEADER}}" }} }}
  granted:
    {granted}
    auth: {{ client_credentials: {{ token_url: "http://{collector}/token", client_id: usher, client_secret: "${{env:CLIENT}}" }} }}
  program: {{ command: [sh, -c, "echo $API_TOKEN >&2; exit 3"], env: {{ API_TOKEN: "${{env:PROGRAM}}" }} }}
"#
    );
    fs::write(home.join("usher.yaml"), text).unwrap();
}

/// `usher` with the configuration in `home`.
fn usher(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
    command
        .args(arguments)
        .arg("-c")
        .arg(home.join("usher.yaml"))
        .envs(CREDENTIALS)
        .env("XDG_STATE_HOME", home)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// An API key.
async fn key(home: &Path) -> String {
    let made = usher(
        home,
        &[
            "keys",
            "create",
            "ci",
            "--owner",
            "ana",
            "--expires",
            "never",
        ],
    );
    let made = { made }.output().await.unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

/// The process, and where it listens.
struct Running {
    child: Child,
    id: u32,
    clients: SocketAddr,
    operators: SocketAddr,
    out: Arc<Mutex<[String; 2]>>,
    reading: JoinSet<()>,
}

async fn start(home: &Path) -> Running {
    let mut child = usher(home, &["--log", "trace", "serve"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out: Arc<Mutex<[String; 2]>> = Arc::default();
    let mut reading = JoinSet::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = out.clone();
    reading.spawn(async move {
        while let Ok(Some(line)) = stdout.next_line().await {
            told.lock().unwrap()[0] += &(line + "\n");
        }
    });
    let told = out.clone();
    reading.spawn(async move {
        while let Ok(Some(line)) = stderr.next_line().await {
            told.lock().unwrap()[1] += &(line + "\n");
        }
    });
    let place = |mark: &str| {
        let out = out.lock().unwrap().concat();
        let (_, rest) = out.split_once(mark)?;
        let (_, rest) = rest.split_once("http://")?;
        let end = rest.find(['/', '\n', ';', '"']).unwrap_or(rest.len());
        rest[..end].trim().parse().ok()
    };
    let ready = eventually("it is ready", async || {
        Some((place("usher is ready at")?, place("operators come in at")?))
    });
    let (clients, operators) = ready.await;
    Running {
        id: child.id().unwrap(),
        child,
        clients,
        operators,
        out,
        reading,
    }
}

impl Running {
    /// Ends it; what it wrote.
    async fn end(&mut self) -> [String; 2] {
        let id = nix::unistd::Pid::from_raw(self.id.try_into().unwrap());
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
        let status = self.child.wait().await.unwrap();
        while self.reading.join_next().await.is_some() {}
        let out = self.out.lock().unwrap().clone();
        assert!(status.success(), "{out:?}");
        out
    }
}

/// Calls of every outcome, as whoever has this credential.
async fn calls(clients: SocketAddr, credential: &str, revision: Revision) {
    let headers = [("authorization", format!("Bearer {credential}"))];
    let client = Client::connect_with(clients, "/mcp", revision, "{}", &headers).await;
    let client = client.unwrap();
    eventually("both servers are there", async || {
        let tools = client.tools().await;
        let has = |name: &str| tools.iter().any(|tool| tool == name);
        (has("notes_t") && has("granted_t")).then_some(())
    })
    .await;
    let (plain, secret) = (
        format!(r#"{{"a":"{ARGUMENT}"}}"#),
        format!(r#"{{"a":"{ARGUMENT} {SECRET}","{SECRET}":1}}"#),
    );
    for name in [
        "notes_t",
        "notes_echo",
        "notes_fails",
        "notes_breaks",
        "granted_t",
        SECRET,
    ] {
        client.call(name, &plain).await;
        client.call(name, &secret).id(&quote(SECRET)).await;
    }
    client
        .read(&format!("notes+notes://x?token={PARAMETER}"))
        .await;
    client
        .read(&format!(
            "https://ann:{PARAMETER}@nowhere/{SECRET}?api_key={PARAMETER}"
        ))
        .await;
    client.ask(SECRET, "{}").await;
}

/// What is refused before it is a call.
async fn refusals(clients: SocketAddr) {
    let wrong = format!("Bearer {WRONG}");
    let kind = ("content-type", "application/json");
    let takes = ("accept", "application/json, text/event-stream");
    for (path, headers, body) in [
        (
            "/mcp",
            vec![("authorization", wrong.as_str()), kind, takes],
            "{}".to_owned(),
        ),
        (
            "/mcp",
            vec![("x-api-key", WRONG), kind, takes],
            "{}".to_owned(),
        ),
        ("/mcp", vec![("host", SECRET), kind, takes], "{}".to_owned()),
        (
            "/mcp",
            vec![("origin", SECRET), kind, takes],
            format!("{{{SECRET}"),
        ),
    ] {
        let answer = exchange(clients, Method::POST, path, &headers, body.as_bytes()).await;
        assert!(answer.status >= 400, "{answer:?}");
    }
    let path = format!("/{SECRET}?access_token={WRONG}");
    exchange(clients, Method::GET, &path, &[], b"").await;
}

/// Everything that the admin API shows.
async fn api(operators: SocketAddr) -> String {
    let document = parse(document().as_str());
    let mut all = String::new();
    for (path, verbs) in document["paths"].as_object().unwrap() {
        if verbs["get"] == Value::Null || path.ends_with("/follow") {
            continue;
        }
        let path = path
            .replace("{upstream}", "notes")
            .replace("{session}", "0")
            .replace("{stream}", "1");
        all += &asked(operators, &path).await;
    }
    assert!(all.contains("notes_t"), "{all}");
    all
}

async fn asked(operators: SocketAddr, path: &str) -> String {
    let bearer = format!("Bearer {}", CREDENTIALS[0].1);
    let headers = [("authorization", bearer.as_str())];
    exchange(operators, Method::GET, path, &headers, b"")
        .await
        .body
}

/// Everything in a directory but its keys.
fn files(directory: &Path) -> String {
    let mut all = String::new();
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let key = path
            .extension()
            .is_some_and(|it| it == "pem" || it == "key");
        if path.is_file() && !key {
            all += &String::from_utf8_lossy(&fs::read(path).unwrap());
        }
    }
    all
}
