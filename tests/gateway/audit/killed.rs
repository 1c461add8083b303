//! The process is killed again and again in the middle of its work: what an upstream saw is on record, and the log goes on.

use std::{
    collections::HashSet,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
};
use usher::audit::{
    chain::Line,
    key::VerifyingKey,
    log::{Segment, segments},
    verify::verify,
};

use crate::harness::{PATIENCE, Play, Revision, Upstream, text_result, tool, within};

/// How often each durability is killed, unless `USHER_TEST_LIVES` says otherwise: issue 6 asks for 500 in all.
const LIVES: usize = 250;
/// How many call at once.
const CALLERS: usize = 3;
/// How long it goes on after the first answer at most: so often others get their turn.
const LONGEST: usize = 4_000;
/// How often the whole log is verified on the way.
const VERIFIED_EVERY: usize = 50;

// SECURITY AUD-1, AUD-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_that_an_upstream_saw_is_on_record_though_the_process_was_killed_kernel() {
    Killing::begin("kernel").many(lives()).await;
}

// SECURITY AUD-1, AUD-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_that_an_upstream_saw_is_on_record_though_the_process_was_killed_strict() {
    Killing::begin("strict").many(lives()).await;
}

fn lives() -> usize {
    let wanted = std::env::var("USHER_TEST_LIVES").ok();
    wanted.map_or(LIVES, |wanted| wanted.parse().unwrap())
}

struct Killing {
    directory: tempfile::TempDir,
    notes: Upstream,
    /// Marks of the calls that were answered.
    answered: Arc<Mutex<HashSet<String>>>,
    random: fastrand::Rng,
    /// Marks of the calls whose permission is on record, and the segments that were looked at.
    recorded: HashSet<String>,
    looked: HashSet<PathBuf>,
}

impl Killing {
    fn begin(durability: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let notes = Upstream::http(Revision::V2026_07_28)
            .tools([tool("t")])
            .on("tools/call", |_| Play::Result(text_result("done")));
        let configuration = format!(
            "listen: {{ address: \"127.0.0.1:0\" }}\naudit:\n  dir: audit\n  durability: {durability}\n  content: [{{ methods: [tools/call], level: request }}]\nupstreams: {{ notes: {{ {} }} }}\n",
            notes.place()
        );
        std::fs::write(directory.path().join("usher.yaml"), configuration).unwrap();
        let seed = fastrand::u64(..);
        Self {
            directory,
            notes,
            answered: Arc::default(),
            random: fastrand::Rng::with_seed(seed),
            recorded: HashSet::new(),
            looked: HashSet::new(),
        }
    }

    async fn many(mut self, lives: usize) {
        let mut heard = 0;
        for life in 0..lives {
            let what = format!("life {life}");
            within(PATIENCE, &what, self.live_and_die(life)).await;
            self.look();
            heard = self.on_record(&what, heard);
            if life % VERIFIED_EVERY == VERIFIED_EVERY - 1 || life + 1 == lives {
                self.whole(&what).await;
            }
        }
        // Every life but the last was followed by one that mended the log: nothing of it went with a torn tail.
        self.looked.clear();
        self.recorded.clear();
        self.look();
        self.on_record("all lives", 0);
        assert!(heard >= lives, "each life had a call: {heard}");
        let answered = self.answered.lock().unwrap().len();
        assert!(answered > 0, "{lives} lives, {heard} calls heard");
    }

    /// All that the upstream heard, but for the first so many calls, and all that was answered is on record. How many it heard.
    fn on_record(&self, what: &str, known: usize) -> usize {
        let all = self.notes.heard("tools/call");
        let answered = self.answered.lock().unwrap();
        let heard = all[known..]
            .iter()
            .map(|call| mark_in(&call.params).unwrap());
        for mark in heard.chain(answered.iter().map(String::as_str)) {
            assert!(
                self.recorded.contains(mark),
                "{what}: {mark} is not on record"
            );
        }
        all.len()
    }

    async fn live_and_die(&mut self, life: usize) {
        let (mut child, address) = start(self.directory.path()).await;
        let first = Arc::new(tokio::sync::Notify::new());
        let mut calling = tokio::task::JoinSet::new();
        for caller in 0..CALLERS {
            let (answered, first) = (self.answered.clone(), first.clone());
            calling.spawn(call(address, life, caller, answered, first));
        }
        first.notified().await;
        for _ in 0..self.random.usize(..LONGEST) {
            tokio::task::yield_now().await;
        }
        child.start_kill().unwrap();
        child.wait().await.unwrap();
        while calling.join_next().await.is_some() {}
    }

    /// Takes in the permissions that are on record.
    fn look(&mut self) {
        let audit = self.directory.path().join("audit");
        for Segment { path, .. } in segments(&audit).unwrap() {
            if self.looked.contains(&path) {
                continue;
            }
            let text = std::fs::read(&path).unwrap();
            for line in text.split(|byte| *byte == b'\n') {
                let Some(line) = Line::parse(line) else {
                    continue;
                };
                let event = str::from_utf8(line.event).unwrap();
                if event.contains(r#""stage":"decision""#) {
                    self.recorded.extend(mark_in(event).map(str::to_owned));
                }
            }
            self.looked.insert(path);
        }
    }

    /// After the next start, the log is whole.
    async fn whole(&self, what: &str) {
        let (mut child, _) = start(self.directory.path()).await;
        child.start_kill().unwrap();
        child.wait().await.unwrap();
        let audit = self.directory.path().join("audit");
        let key = std::fs::read_to_string(audit.join("key.pub")).unwrap();
        let key = VerifyingKey::parse(&key).unwrap();
        let report = verify(&audit, &[key], &[], |_| {}).unwrap();
        assert_eq!(report.faults, [], "{what}");
        assert_eq!(report.records, report.last.unwrap().seq, "{what}");
    }
}

/// The process, and where it listens.
async fn start(directory: &Path) -> (Child, SocketAddr) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["--log", "error", "serve", "-c"])
        .arg(directory.join("usher.yaml"))
        // Nothing is dialled by TLS: without the roots of the system it is sooner ready.
        .env("SSL_CERT_FILE", "/dev/null")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("it is ready");
        if let Some((_, url)) = line.split_once("http://") {
            let address = url.trim_end_matches("/mcp").parse().unwrap();
            return (child, address);
        }
    }
}

/// Calls until nobody answers any more.
async fn call(
    address: SocketAddr,
    life: usize,
    caller: usize,
    answered: Arc<Mutex<HashSet<String>>>,
    first: Arc<tokio::sync::Notify>,
) {
    let Ok(mut socket) = TcpStream::connect(address).await else {
        return;
    };
    for n in 0.. {
        let mark = format!("mark-{life}-{caller}-{n}.");
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}},"name":"notes_t","arguments":{{"x":"{mark}"}}}}}}"#
        );
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: notes_t\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if socket.write_all(request.as_bytes()).await.is_err() {
            return;
        }
        match answer(&mut socket).await {
            Some(text) if text.contains(r#""done""#) => {
                answered.lock().unwrap().insert(mark);
                first.notify_one();
            }
            // The catalog is not there yet.
            Some(_) => {}
            None => return,
        }
    }
}

/// The body of an answer, if it comes whole.
async fn answer(socket: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = socket
            .read(&mut buffer)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        text.extend_from_slice(&buffer[..read]);
        let Some(head) = memchr::memmem::find(&text, b"\r\n\r\n") else {
            continue;
        };
        let fields = str::from_utf8(&text[..head]).unwrap().to_lowercase();
        let length = fields
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.unwrap().trim().parse().unwrap();
        if text.len() >= head + 4 + length {
            return Some(String::from_utf8(text.split_off(head + 4)).unwrap());
        }
    }
}

/// The mark of a call in a text.
fn mark_in(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("mark-")?;
    let (mark, _) = rest.split_once('.')?;
    let begin = text.len() - rest.len() - "mark-".len();
    text.get(begin..=begin + "mark-".len() + mark.len())
}
