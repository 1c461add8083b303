//! What a scripted upstream does with what it hears, in either era; and what it notes as wrong.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use tokio::sync::{Notify, futures::Notified, mpsc, oneshot};
use usher::{protocol::Era, tasks::Tasks};

use super::{
    Revision,
    json::{member, parse, quote},
    script::{Gate, Heard, Play, Script},
    turn::Turn,
};

/// How an upstream is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Streamable HTTP.
    Http,
    /// The two endpoints of 2024-11-05.
    Sse,
    /// Standard input and output of a process.
    Pipe,
}

/// What the serving tasks share with the test.
pub(super) struct Stage {
    pub(super) revision: Revision,
    pub(super) wire: Wire,
    script: Mutex<Script>,
    heard: Mutex<Vec<Heard>>,
    faults: Mutex<Vec<String>>,
    news: Notify,
    sessions: AtomicUsize,
    /// Pipes and streams that take what answers nothing.
    outlets: Mutex<Vec<Outlet>>,
    /// What each session of the handshake era watches.
    watched: Mutex<HashSet<(String, String)>>,
    /// Requests of its own that wait for their answers.
    asked: Mutex<HashMap<u64, oneshot::Sender<String>>>,
    next_question: AtomicU64,
    /// Ids, as spelled, of requests that a script says by itself and whose answers are the test's to look at.
    scripted: Mutex<Vec<String>>,
    tasks: Tasks,
    /// Cuts every connection when told: see [`Stage::cut_all`].
    pub(super) cut: Notify,
}

/// A way out for what answers nothing in particular.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    pub(super) session: Option<String>,
    pub(super) kind: OutletKind,
    pub(super) out: mpsc::Sender<Out>,
}

/// See [`Outlet`].
#[derive(Debug, Clone)]
pub(super) enum OutletKind {
    /// A pipe, or the stream of the two-endpoint transport: everything goes there.
    Whole,
    /// The stream of a session.
    Stream,
    /// A listen of the stateless era: its id as spelled, and what it asked for.
    Listen(String, Value),
}

/// What goes back for one message.
#[derive(Debug)]
pub(super) enum Spoken {
    /// Messages, the last of which is the response; and a session that begins with it.
    Frames(Vec<String>, Option<String>),
    /// Messages, and more once the gate is open.
    Gated(Vec<String>, Gate, Vec<String>),
    /// An error of HTTP's own, with a message.
    Refused(u16, String),
    Accepted,
    Status(u16),
    Hang,
    Die,
    Flood,
    /// Message by message.
    Live(mpsc::Receiver<Out>),
}

/// What goes out on a pipe or a stream.
#[derive(Debug)]
pub(super) enum Out {
    /// A message.
    Frame(String),
    /// Bytes as they are.
    Noise(Bytes),
    /// The connection breaks.
    Die,
}

/// How much waits to be written to one pipe or stream; the script waits with what comes next.
pub(super) const OUTGOING: usize = 64;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

impl Stage {
    pub(super) fn new(wire: Wire, revision: Revision, tasks: Tasks) -> Self {
        Self {
            revision,
            wire,
            script: Mutex::default(),
            heard: Mutex::default(),
            faults: Mutex::default(),
            news: Notify::new(),
            sessions: AtomicUsize::new(0),
            outlets: Mutex::default(),
            watched: Mutex::default(),
            asked: Mutex::default(),
            // As small as the ids of everybody else.
            next_question: AtomicU64::new(1),
            scripted: Mutex::default(),
            tasks,
            cut: Notify::new(),
        }
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    pub(super) fn faults(&self) -> Vec<String> {
        self.faults.lock().unwrap().clone()
    }

    /// Opens a way out that answers nothing in particular.
    pub(super) fn outlet(&self, outlet: Outlet) {
        self.outlets.lock().unwrap().push(outlet);
        self.news.notify_waiters();
    }

    /// The ways out that are open.
    pub(super) fn outlets(&self) -> Vec<Outlet> {
        let mut outlets = self.outlets.lock().unwrap();
        outlets.retain(|outlet| !outlet.out.is_closed());
        outlets.clone()
    }

    /// Cuts every connection, and with them every way out.
    pub(super) fn cut_all(&self) {
        self.outlets.lock().unwrap().clear();
        self.cut.notify_waiters();
    }

    /// Closes the listens, and says which they were.
    pub(super) fn close_listens(&self) -> Vec<Outlet> {
        let mut outlets = self.outlets.lock().unwrap();
        let (listens, others) = outlets
            .drain(..)
            .partition(|outlet| matches!(outlet.kind, OutletKind::Listen(..)));
        *outlets = others;
        listens
    }

    pub(super) fn tells(&self) -> bool {
        self.script().tells
    }

    /// Carries what one request says to a way out that it shares with others.
    pub(super) fn forward(&self, mut from: mpsc::Receiver<Out>, to: mpsc::Sender<Out>) {
        self.tasks.spawn(async move {
            while let Some(out) = from.recv().await {
                if to.send(out).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Whether a session of the handshake era watches this.
    pub(super) fn watches(&self, session: &str, uri: &str) -> bool {
        let key = (session.to_owned(), uri.to_owned());
        self.watched.lock().unwrap().contains(&key)
    }

    /// A number for a question, and where its answer will be.
    pub(super) fn awaiting(&self) -> (u64, oneshot::Receiver<String>) {
        let id = self.next_question.fetch_add(1, Ordering::SeqCst);
        let (sender, receiver) = oneshot::channel();
        self.asked.lock().unwrap().insert(id, sender);
        (id, receiver)
    }

    /// Everything of one method that was heard.
    pub(super) fn heard(&self, method: &str) -> Vec<Heard> {
        let mut heard = self.heard.lock().unwrap().clone();
        heard.retain(|heard| heard.method == method);
        heard
    }

    /// The next message to be heard.
    pub(super) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }

    pub(super) fn is_down(&self) -> bool {
        self.script.lock().unwrap().down
    }

    pub(super) fn new_session(&self) -> String {
        format!("session-{}", self.sessions.fetch_add(1, Ordering::SeqCst))
    }

    pub(super) fn fault(&self, text: String) {
        self.faults.lock().unwrap().push(text);
    }

    fn expect(&self, holds: bool, what: &str, heard: &Heard) {
        if !holds {
            self.fault(format!("{what}: {heard:?}"));
        }
    }

    pub(super) fn note(&self, heard: Heard) {
        self.heard.lock().unwrap().push(heard);
        self.news.notify_waiters();
    }

    /// Hears one message and says what goes back.
    pub(super) fn speak(
        self: &Arc<Self>,
        text: &str,
        headers: &HeaderMap,
        session: Option<String>,
    ) -> Spoken {
        let method = member(text, "method").map(|method| {
            let method = parse(&method);
            method.as_str().unwrap().to_owned()
        });
        let heard = Heard {
            method: method.unwrap_or_default(),
            params: ["params", "result", "error"]
                .iter()
                .find_map(|key| member(text, key))
                .unwrap_or_else(|| "{}".to_owned()),
            id: member(text, "id"),
            headers: headers.clone(),
            session: session.clone(),
        };
        self.note(heard.clone());
        if heard.method.is_empty() {
            self.response(&heard, text);
            return Spoken::Accepted;
        }
        self.follow(&heard);
        let (Era::Legacy, Some(id)) = (self.revision.era(), &heard.id) else {
            return match &heard.id {
                None => Spoken::Accepted,
                Some(id) => self.modern(&heard, id),
            };
        };
        self.legacy(&heard, id)
    }

    /// Takes note of a request in a scripted frame.
    pub(super) fn scripted(&self, frame: String) -> String {
        if let (Some(_), Some(id)) = (member(&frame, "method"), member(&frame, "id")) {
            self.scripted.lock().unwrap().push(id);
        }
        frame
    }

    /// A response: to a question of this server's own, or wrong.
    fn response(&self, heard: &Heard, text: &str) {
        self.expect(
            self.revision.era() == Era::Legacy,
            "a response in the modern era",
            heard,
        );
        if let Some(id) = &heard.id {
            let mut scripted = self.scripted.lock().unwrap();
            if let Some(at) = scripted.iter().position(|asked| asked == id) {
                scripted.swap_remove(at);
                return;
            }
        }
        let id = heard.id.as_deref().and_then(|id| id.parse::<u64>().ok());
        let asked = id.and_then(|id| self.asked.lock().unwrap().remove(&id));
        self.expect(asked.is_some(), "a response to nothing", heard);
        if let Some(asked) = asked {
            // The script may have gone on.
            drop(asked.send(text.to_owned()));
        }
    }

    /// Keeps in mind who watches what, and ends listens that are cancelled on a pipe.
    fn follow(&self, heard: &Heard) {
        match heard.method.as_str() {
            "resources/subscribe" | "resources/unsubscribe" => {
                let session = heard.session.clone().unwrap_or_default();
                let key = (session, heard.text("uri").unwrap_or_default());
                let mut watched = self.watched.lock().unwrap();
                if heard.method == "resources/subscribe" {
                    watched.insert(key);
                } else {
                    watched.remove(&key);
                }
            }
            "notifications/cancelled" => {
                let id = member(&heard.params, "requestId");
                let is_it = |outlet: &Outlet| match &outlet.kind {
                    OutletKind::Listen(listen, _) => Some(listen) == id.as_ref(),
                    OutletKind::Whole | OutletKind::Stream => false,
                };
                self.outlets.lock().unwrap().retain(|outlet| !is_it(outlet));
            }
            _ => {}
        }
    }

    fn modern(self: &Arc<Self>, heard: &Heard, id: &str) -> Spoken {
        let version = heard.meta(VERSION).map(|version| parse(&version));
        if version.as_ref().and_then(|version| version.as_str()) != Some(self.revision.as_str()) {
            let error = format!(
                r#"{{"code":-32022,"message":"version","data":{{"supported":["{}"],"requested":"?"}}}}"#,
                self.revision
            );
            return self.refused(400, id, &error);
        }
        self.expect(
            heard
                .meta("io.modelcontextprotocol/clientCapabilities")
                .is_some(),
            "no capabilities",
            heard,
        );
        self.expect(
            heard.header("mcp-session-id").is_none(),
            "a session in the modern era",
            heard,
        );
        if self.wire == Wire::Http {
            self.mirrored(heard);
        }
        if heard.method == "server/discover" {
            let script = self.script.lock().unwrap();
            if !script.answers.contains_key(&heard.method) && !script.shuts_out(heard) {
                let instructions = instructions(&script);
                let result = format!(
                    r#"{{"supportedVersions":["{}"],"capabilities":{}{instructions},"ttlMs":0,"cacheScope":"private"}}"#,
                    self.revision, script.capabilities,
                );
                drop(script);
                return self.frames(vec![], &result, heard, id);
            }
        }
        self.play(heard, id)
    }

    /// Headers must say what the body says (PROTOCOL B2).
    fn mirrored(&self, heard: &Heard) {
        let accept = heard.header("accept").unwrap_or_default();
        self.expect(
            accept.contains("application/json") && accept.contains("text/event-stream"),
            "not both kinds of answer are accepted",
            heard,
        );
        let same = heard.header("mcp-protocol-version") == Some(self.revision.as_str());
        self.expect(same, "the version header differs", heard);
        self.expect(
            heard.header("mcp-method") == Some(&heard.method),
            "`Mcp-Method` differs",
            heard,
        );
        let named = match heard.method.as_str() {
            "tools/call" | "prompts/get" => heard.text("name"),
            "resources/read" => heard.text("uri"),
            "tasks/get" | "tasks/update" | "tasks/cancel" => heard.text("taskId"),
            _ => None,
        };
        let header = heard.header("mcp-name").map(unsealed);
        self.expect(header == named, "`Mcp-Name` differs", heard);
    }

    fn legacy(self: &Arc<Self>, heard: &Heard, id: &str) -> Spoken {
        let carries = self.wire == Wire::Http && self.revision >= Revision::V2025_03_26;
        if heard.method == "server/discover" {
            // How servers of this era refuse what they never heard of (PROTOCOL J8).
            let error = r#"{"code":-32601,"message":"Method not found"}"#;
            return match self.wire {
                Wire::Http => {
                    let error = r#"{"code":-32000,"message":"Bad Request: no valid session"}"#;
                    self.refused(400, id, error)
                }
                Wire::Sse | Wire::Pipe => Spoken::Frames(vec![error_frame(id, error)], None),
            };
        }
        // A handshake may say that apps can be shown; nothing else of that name is known here (PROTOCOL D1, D4).
        let ours = heard.params.matches("io.modelcontextprotocol/").count();
        let apps = r#""extensions":{"io.modelcontextprotocol/ui":{"#;
        let said = usize::from(heard.method == "initialize" && heard.params.contains(apps));
        self.expect(ours == said, "modern `_meta` in the legacy era", heard);
        if heard.method == "initialize" {
            let scripted = {
                let script = self.script.lock().unwrap();
                script.answers.contains_key(&heard.method) || script.shuts_out(heard)
            };
            if scripted {
                return self.play(heard, id);
            }
            let script = self.script.lock().unwrap();
            let result = format!(
                r#"{{"protocolVersion":"{}","capabilities":{},"serverInfo":{{"name":"scripted","version":"1"}}{}}}"#,
                self.revision,
                script.capabilities,
                instructions(&script),
            );
            let session = carries.then(|| self.new_session());
            return Spoken::Frames(vec![result_frame(id, &result)], session);
        }
        if carries {
            if heard.session.is_none() {
                let error = r#"{"code":-32000,"message":"Bad Request: no valid session"}"#;
                self.fault(format!("no session: {heard:?}"));
                return self.refused(400, id, error);
            }
            let version = heard.header("mcp-protocol-version");
            let wanted = (self.revision >= Revision::V2025_06_18).then(|| self.revision.as_str());
            self.expect(
                wanted.is_none() || version == wanted,
                "the version header differs",
                heard,
            );
        }
        self.play(heard, id)
    }

    fn play(self: &Arc<Self>, heard: &Heard, id: &str) -> Spoken {
        let script = self.script.lock().unwrap().clone();
        let mut play = script.play(heard);
        let token = heard.meta("progressToken");
        let token = token.as_deref().unwrap_or("null");
        let mut events = Vec::new();
        while let Play::Events(these, next) = play {
            events.extend(
                these
                    .iter()
                    .map(|event| self.scripted(event.replace("$token", token))),
            );
            play = *next;
        }
        if let Play::Gated(these, gate, next) = play {
            events.extend(
                these
                    .iter()
                    .map(|event| self.scripted(event.replace("$token", token))),
            );
            let spoken = self.answered(*next, Vec::new(), heard, id);
            let Spoken::Frames(rest, _) = spoken else {
                panic!("{spoken:?} behind a gate");
            };
            return Spoken::Gated(events, gate, rest);
        }
        self.answered(play, events, heard, id)
    }

    fn answered(
        self: &Arc<Self>,
        play: Play,
        mut events: Vec<String>,
        heard: &Heard,
        id: &str,
    ) -> Spoken {
        match play {
            Play::Result(result) => self.frames(events, &result, heard, id),
            Play::Error(error) => {
                events.push(error_frame(id, &error));
                Spoken::Frames(events, None)
            }
            Play::Refused(status, error) => self.refused(status, id, &error),
            Play::Raw(text) => {
                events.push(text.replace("$id", id));
                Spoken::Frames(events, None)
            }
            Play::Status(status) => Spoken::Status(status),
            Play::Hang => Spoken::Hang,
            Play::Die => Spoken::Die,
            Play::Flood => Spoken::Flood,
            Play::Live(live) => {
                let (out, receiver) = mpsc::channel(OUTGOING);
                let turn = Turn {
                    heard: heard.clone(),
                    id: id.to_owned(),
                    stage: Arc::clone(self),
                    out: out.clone(),
                };
                self.tasks.spawn(async move {
                    for event in events {
                        drop(out.send(Out::Frame(event)).await);
                    }
                    drop(out);
                    live.begin(turn).await;
                });
                Spoken::Live(receiver)
            }
            Play::Events(..) | Play::Gated(..) => unreachable!("unrolled above"),
        }
    }

    fn frames(&self, mut events: Vec<String>, result: &str, heard: &Heard, id: &str) -> Spoken {
        events.push(self.result_frame(result, heard, id));
        Spoken::Frames(events, None)
    }

    /// A result with what the revision demands of it, told last so that what is scripted keeps its place.
    pub(super) fn result_frame(&self, result: &str, heard: &Heard, id: &str) -> String {
        let mut result = result.to_owned();
        if self.revision.era() == Era::Modern && member(&result, "resultType").is_none() {
            let (ttl, scope) = self.script().hints;
            let mut add = |text: &str| {
                let end = result.trim_end().len() - 1;
                let comma = if result[..end].trim_end().ends_with('{') {
                    ""
                } else {
                    ","
                };
                result = format!("{}{comma}{text}}}", &result[..end]);
            };
            add(r#""resultType":"complete""#);
            if heard.method.ends_with("/list") || heard.method == "resources/read" {
                add(&format!(r#""ttlMs":{ttl},"cacheScope":"{scope}""#));
            }
        }
        result_frame(id, &result)
    }

    fn refused(&self, status: u16, id: &str, error: &str) -> Spoken {
        match self.wire {
            Wire::Http => Spoken::Refused(status, error_frame(id, error)),
            Wire::Sse | Wire::Pipe => Spoken::Frames(vec![error_frame(id, error)], None),
        }
    }
}

fn instructions(script: &Script) -> String {
    let text = script.instructions.as_deref();
    text.map_or_else(String::new, |text| {
        format!(r#","instructions":{}"#, quote(text))
    })
}

fn result_frame(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn error_frame(id: &str, error: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// The text that a mirrored header stands for.
fn unsealed(value: &str) -> String {
    use base64::Engine as _;
    let coded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match coded {
        None => value.to_owned(),
        Some(coded) => {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(coded)
                .unwrap();
            String::from_utf8(bytes).unwrap()
        }
    }
}
