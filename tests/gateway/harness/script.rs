//! What a scripted upstream offers and answers, whatever it is reached by.

use std::{collections::HashMap, future::Future, sync::Arc};

use http::HeaderMap;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    PATIENCE,
    json::{member, parse, quote},
    turn::{Live, Turn},
    within,
};

/// A message that an upstream heard.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) method: String,
    /// The params as written; `{}` when there were none. Of a response, whose method is empty: its result or error.
    pub(crate) params: String,
    /// As written; `None` for a notification.
    pub(crate) id: Option<String>,
    pub(crate) headers: HeaderMap,
    /// Whose conversation: an HTTP session's id, or a number for a pipe or an event stream.
    pub(crate) session: Option<String>,
}

impl Heard {
    pub(crate) fn value(&self) -> Value {
        parse(&self.params)
    }

    /// A member of the params that is text. The rest may hold what no tree can.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let text = member(&self.params, key)?;
        parse(&text).as_str().map(str::to_owned)
    }

    /// The arguments as written.
    pub(crate) fn arguments(&self) -> String {
        member(&self.params, "arguments").unwrap_or_else(|| panic!("no arguments: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// A member of `_meta`, as written.
    pub(crate) fn meta(&self, key: &str) -> Option<String> {
        member(&member(&self.params, "_meta")?, key)
    }
}

/// What an upstream does with a request. `$id` and `$token` become the request's own.
#[derive(Debug, Clone)]
pub(crate) enum Play {
    /// A result; what its revision demands beside it is added.
    Result(String),
    /// An error object.
    Error(String),
    /// The same under an HTTP status; on pipes, as any.
    Refused(u16, String),
    /// These notifications, and then.
    Events(Vec<String>, Box<Self>),
    /// These notifications, then, once the gate is open, what follows. Over HTTP only.
    Gated(Vec<String>, Gate, Box<Self>),
    /// This text instead of a message.
    Raw(String),
    /// An HTTP status and no body; on pipes, nothing.
    Status(u16),
    /// No answer, ever.
    Hang,
    /// The connection breaks; a process ends.
    Die,
    /// Bytes without end.
    Flood,
    /// Step by step.
    Live(Live),
}

impl Play {
    /// Answers step by step.
    pub(crate) fn live<F>(script: impl Fn(Turn) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::Live(Live::new(script))
    }
}

/// Holds an answer back until the test lets it go on, and knows whether somebody still waits for it.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    open: Arc<Semaphore>,
    left: CancellationToken,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            open: Arc::new(Semaphore::new(0)),
            left: CancellationToken::new(),
        }
    }

    /// Lets one answer go on.
    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }

    /// Waits until an answer's stream was closed from the other side before its end.
    pub(crate) async fn left(&self) {
        within(PATIENCE, "the stream is closed", self.left.cancelled()).await;
    }

    /// Whether it was.
    pub(crate) fn is_left(&self) -> bool {
        self.left.is_cancelled()
    }

    /// Waits until it is opened for one.
    pub(crate) async fn pass(&self) {
        let guard = self.left.clone().drop_guard();
        self.open.acquire().await.unwrap().forget();
        guard.disarm();
    }
}

pub(super) type Answers = Arc<dyn Fn(&Heard) -> Play + Send + Sync>;

/// The changeable part of an upstream.
#[derive(Clone)]
pub(super) struct Script {
    /// Tools, prompts, resources, templates: definitions as text.
    pub(super) lists: [Vec<String>; 4],
    /// Items on one page.
    pub(super) page: usize,
    pub(super) answers: HashMap<String, Answers>,
    pub(super) hints: (u64, &'static str),
    pub(super) down: bool,
    pub(super) instructions: Option<String>,
    pub(super) capabilities: String,
    /// Whether it tells of changes: on streams of its own, on listens, or on the pipe.
    pub(super) tells: bool,
    /// Whether it answers to nobody without a credential.
    pub(super) closed: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            lists: Default::default(),
            page: usize::MAX,
            answers: HashMap::new(),
            hints: (0, "private"),
            down: false,
            instructions: None,
            tells: false,
            closed: false,
            capabilities: r#"{"tools":{},"prompts":{},"resources":{},"completions":{}}"#.to_owned(),
        }
    }
}

/// The lists by method: which, and under what member.
pub(super) const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

impl Script {
    /// Whether a request is refused before it is looked at.
    pub(super) fn shuts_out(&self, heard: &Heard) -> bool {
        self.closed && heard.header("authorization").is_none()
    }

    pub(super) fn play(&self, heard: &Heard) -> Play {
        if self.shuts_out(heard) {
            return Play::Status(401);
        }
        if let Some(answer) = self.answers.get(&heard.method) {
            return answer(heard);
        }
        if let Some(at) = LISTS.iter().position(|(method, _)| *method == heard.method) {
            return Play::Result(self.listed(at, heard));
        }
        let own = |key: &str| heard.text(key).unwrap_or_default();
        match heard.method.as_str() {
            "ping" => Play::Result("{}".into()),
            "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" if self.tells => {
                Play::Result("{}".into())
            }
            "subscriptions/listen" if self.tells => Play::live(Turn::listen),
            "tools/call" => Play::Result(call_result(&own("name"))),
            "prompts/get" => Play::Result(format!(
                r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":{}}}}}]}}"#,
                quote(&own("name"))
            )),
            "resources/read" => Play::Result(format!(
                r#"{{"contents":[{{"uri":{0},"text":{0}}}]}}"#,
                quote(&own("uri"))
            )),
            "completion/complete" => {
                let reference = &heard.value()["ref"];
                let named = reference["name"]
                    .as_str()
                    .or_else(|| reference["uri"].as_str());
                let named = quote(named.unwrap());
                Play::Result(format!(r#"{{"completion":{{"values":[{named}]}}}}"#))
            }
            _ => Play::Error(r#"{"code":-32601,"message":"no such method"}"#.into()),
        }
    }

    /// One page. The cursor is the name of the last item told, so that a list may change between two pages; when that is
    /// gone the next greater name is where it goes on.
    fn listed(&self, list: usize, heard: &Heard) -> String {
        let (key, items) = (KEYS[list], &self.lists[list]);
        let name = |item: &String| parse(item)[key].as_str().unwrap_or_default().to_owned();
        let start = heard.text("cursor").map_or(0, |cursor| {
            let found = items.iter().position(|item| name(item) == cursor);
            found.map_or_else(
                || items.iter().take_while(|item| name(item) <= cursor).count(),
                |at| at + 1,
            )
        });
        let end = start.saturating_add(self.page).min(items.len());
        let next = if start < end && end < items.len() {
            format!(r#","nextCursor":{}"#, quote(&name(&items[end - 1])))
        } else {
            String::new()
        };
        format!(
            r#"{{"{}":[{}]{next}}}"#,
            LISTS[list].1,
            items[start..end].join(",")
        )
    }
}

/// What names an item of each list.
const KEYS: [&str; 4] = ["name", "name", "uri", "uriTemplate"];

/// A tool with no particular arguments.
pub(crate) fn tool(name: &str) -> String {
    format!(
        r#"{{"name":{},"inputSchema":{{"type":"object"}}}}"#,
        quote(name)
    )
}

pub(crate) fn resource(uri: &str) -> String {
    format!(r#"{{"uri":{0},"name":{0}}}"#, quote(uri))
}

pub(crate) fn template(uri: &str) -> String {
    format!(r#"{{"uriTemplate":{0},"name":{0}}}"#, quote(uri))
}

/// What tools answer that have no script of their own: their name, as their server calls them.
pub(crate) fn call_result(name: &str) -> String {
    text_result(&format!("called {name}"))
}

pub(crate) fn text_result(text: &str) -> String {
    format!(
        r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
        quote(text)
    )
}
