//! A raw client of any revision: it can say anything, and keeps every answer as text.

use std::{
    future::IntoFuture,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use base64::Engine as _;
use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use usher::{protocol::Era, tasks::Tasks};

use super::{
    EventStream, PATIENCE, Revision,
    json::{member, parse, quote},
    within,
};

/// A client of one endpoint.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) revision: Revision,
    /// What the handshake gave, in the legacy era.
    pub(crate) session: Option<String>,
    /// The answer to the handshake, in the legacy era.
    pub(crate) greeting: Option<Answer>,
    /// What it can do for servers: told in the handshake, or with every request.
    pub(crate) capabilities: String,
    /// Sent with every request.
    pub(crate) own: Vec<(&'static str, String)>,
    ids: Arc<AtomicU64>,
}

/// A handshake that opened no session.
#[derive(Debug)]
pub(crate) struct HandshakeRefused(pub(crate) Answer);

/// What came back for one POST.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The whole body.
    pub(crate) body: String,
    /// The messages in it, whether it was JSON or a stream; the last is the response.
    pub(crate) frames: Vec<String>,
}

/// One request being put together; await it.
#[derive(Clone)]
pub(crate) struct Ask<'a> {
    pub(super) client: &'a Client,
    method: String,
    pub(super) params: String,
    pub(super) id: String,
    headers: Vec<(String, String)>,
    without: Vec<&'static str>,
    meta: String,
}

impl Client {
    /// Opens a session in the legacy era, does nothing in the modern one.
    pub(crate) async fn connect(
        address: SocketAddr,
        path: &str,
        revision: Revision,
    ) -> Result<Self, HandshakeRefused> {
        Self::connect_able(address, path, revision, "{}").await
    }

    /// The same with these capabilities.
    pub(crate) async fn connect_able(
        address: SocketAddr,
        path: &str,
        revision: Revision,
        capabilities: &str,
    ) -> Result<Self, HandshakeRefused> {
        Self::connect_with(address, path, revision, capabilities, &[]).await
    }

    /// The same with headers that every request has.
    pub(crate) async fn connect_with(
        address: SocketAddr,
        path: &str,
        revision: Revision,
        capabilities: &str,
        own: &[(&'static str, String)],
    ) -> Result<Self, HandshakeRefused> {
        let mut client = Self {
            own: own.to_vec(),
            capabilities: capabilities.to_owned(),
            address,
            path: path.to_owned(),
            revision,
            session: None,
            greeting: None,
            ids: Arc::new(AtomicU64::new(0)),
        };
        if revision.era() == Era::Legacy {
            let params = format!(
                r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"raw","version":"1"}}}}"#
            );
            let answer = client.ask("initialize", &params).await;
            let Some(session) = answer.headers.get("mcp-session-id") else {
                return Err(HandshakeRefused(answer));
            };
            client.session = Some(session.to_str().unwrap().to_owned());
            client.greeting = Some(answer);
            let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            assert_eq!(client.post(told, &[]).await.status, 202);
        }
        Ok(client)
    }

    /// A request; `params` is an object as text, to which the modern era's `_meta` is added.
    pub(crate) fn ask(&self, method: &str, params: &str) -> Ask<'_> {
        Ask {
            client: self,
            method: method.to_owned(),
            params: params.to_owned(),
            id: self.next_id(),
            headers: Vec::new(),
            without: Vec::new(),
            meta: String::new(),
        }
    }

    pub(super) fn next_id(&self) -> String {
        (self.ids.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    /// The same request once more.
    pub(super) async fn again(&self, ask: &Ask<'_>) -> Answer {
        ask.clone().await
    }

    /// `tools/call` with these arguments.
    pub(crate) fn call(&self, name: &str, arguments: &str) -> Ask<'_> {
        let params = format!(r#"{{"name":{},"arguments":{arguments}}}"#, quote(name));
        self.ask("tools/call", &params)
    }

    pub(crate) fn read(&self, uri: &str) -> Ask<'_> {
        self.ask("resources/read", &format!(r#"{{"uri":{}}}"#, quote(uri)))
    }

    /// All items of a list, over all its pages, as text; fails if it does not end.
    pub(crate) async fn all(&self, method: &str, key: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut params = "{}".to_owned();
        for _ in 0..1_000 {
            let page = self.ask(method, &params).await.value();
            let list = page.as_object().unwrap().values().find_map(Value::as_array);
            let items = list.unwrap_or_else(|| panic!("no list in {page}"));
            found.extend(
                items
                    .iter()
                    .map(|item| item[key].as_str().unwrap().to_owned()),
            );
            if page["nextCursor"].is_null() {
                return found;
            }
            params = format!(r#"{{"cursor":{}}}"#, page["nextCursor"]);
        }
        panic!("a list of more than a thousand pages");
    }

    pub(crate) async fn tools(&self) -> Vec<String> {
        self.all("tools/list", "name").await
    }

    /// A body as it is, with the headers of this client and session and then these.
    pub(crate) async fn post(&self, body: &str, headers: &[(&str, &str)]) -> Answer {
        let all = self.with_headers(headers);
        exchange(
            self.address,
            Method::POST,
            &self.path,
            &all,
            body.as_bytes(),
        )
        .await
    }

    /// The same, as a stream that is read as it comes.
    pub(crate) async fn post_open(&self, body: &str) -> EventStream {
        self.opened(Method::POST, body, None).await
    }

    /// A GET stream of this session, from after an event on if one is named.
    pub(crate) async fn reading(&self, after: Option<&str>) -> EventStream {
        self.opened(Method::GET, "", after).await
    }

    async fn opened(&self, method: Method, body: &str, after: Option<&str>) -> EventStream {
        let mut headers = vec![("accept", "application/json, text/event-stream")];
        headers.extend(self.own_headers());
        if !body.is_empty() {
            headers.push(("content-type", "application/json"));
        }
        headers.extend(self.session.as_deref().map(|it| ("mcp-session-id", it)));
        headers.extend(after.map(|id| ("last-event-id", id)));
        EventStream::open(self.address, method, &self.path, &headers, body).await
    }

    fn own_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.own.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// What every request of this session carries.
    pub(super) fn session_headers(&self) -> Vec<(&str, &str)> {
        let mut headers: Vec<_> = self.own_headers().collect();
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id", session.as_str()));
            if self.revision >= Revision::V2025_06_18 {
                headers.push(("mcp-protocol-version", self.revision.as_str()));
            }
        }
        headers
    }

    /// The headers of a POST, with these in the place of the usual ones; an empty value stands for one that is left out.
    pub(super) fn with_headers<'h>(
        &'h self,
        headers: &[(&'h str, &'h str)],
    ) -> Vec<(&'h str, &'h str)> {
        let mut all = self.session_headers();
        all.extend([
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ]);
        all.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        all
    }

    /// Another method than POST, with the headers of this client and session.
    pub(crate) async fn other(&self, method: Method) -> Answer {
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend(self.own_headers());
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id", session));
        }
        exchange(self.address, method, &self.path, &headers, b"").await
    }

    /// The body and headers of a modern request, to be spoilt.
    pub(crate) fn spelled(&self, method: &str, params: &str) -> (String, Vec<(String, String)>) {
        self.ask(method, params).spelled()
    }
}

impl<'a> Ask<'a> {
    /// Under this id, as spelled.
    pub(crate) fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// With a header in the place of the usual one.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without one of the usual headers.
    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.without.push(name);
        self
    }

    /// With these members of `_meta`, as text.
    pub(crate) fn meta(mut self, members: &str) -> Self {
        members.clone_into(&mut self.meta);
        self
    }

    pub(super) fn spelled(&self) -> (String, Vec<(String, String)>) {
        let modern = self.client.revision.era() == Era::Modern;
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut meta = self.meta.clone();
        if modern {
            let comma = if meta.is_empty() { "" } else { "," };
            meta.push_str(comma);
            meta.push_str(&format!(
                r#""io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientCapabilities":{}"#,
                self.client.revision, self.client.capabilities,
            ));
            headers.push((
                "mcp-protocol-version".into(),
                self.client.revision.to_string(),
            ));
            headers.push(("mcp-method".into(), self.method.clone()));
            let mirrored = match self.method.as_str() {
                "tools/call" | "prompts/get" => member(&self.params, "name"),
                "resources/read" => member(&self.params, "uri"),
                "tasks/get" | "tasks/update" | "tasks/cancel" => member(&self.params, "taskId"),
                _ => None,
            };
            if let Some(Value::String(name)) = mirrored.as_deref().map(parse) {
                headers.push(("mcp-name".into(), mirror(&name)));
            }
        }
        let params = if meta.is_empty() {
            self.params.clone()
        } else {
            let rest = self.params.trim_start().strip_prefix('{').unwrap();
            let comma = if rest.trim_start().starts_with('}') {
                ""
            } else {
                ","
            };
            format!(r#"{{"_meta":{{{meta}}}{comma}{rest}"#)
        };
        let (id, method) = (&self.id, &self.method);
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        for (name, value) in &self.headers {
            headers.retain(|(other, _)| other != name);
            headers.push((name.clone(), value.clone()));
        }
        for gone in &self.without {
            headers.retain(|(other, _)| other != gone);
            headers.push(((*gone).to_owned(), String::new()));
        }
        (body, headers)
    }
}

impl<'a> IntoFuture for Ask<'a> {
    type Output = Answer;
    type IntoFuture = BoxFuture<'a, Answer>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            let (body, headers) = self.spelled();
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            self.client.post(&body, &headers).await
        }
        .boxed()
    }
}

impl Answer {
    /// The response.
    pub(crate) fn message(&self) -> &str {
        self.frames
            .last()
            .unwrap_or_else(|| panic!("no message in {self:?}"))
    }

    /// What came before it.
    pub(crate) fn events(&self) -> &[String] {
        &self.frames[..self.frames.len() - 1]
    }

    /// The result as text.
    pub(crate) fn result(&self) -> String {
        member(self.message(), "result").unwrap_or_else(|| panic!("no result: {}", self.message()))
    }

    /// The result as a tree.
    pub(crate) fn value(&self) -> Value {
        parse(&self.result())
    }

    /// The error as a tree.
    pub(crate) fn error(&self) -> Value {
        let error = member(self.message(), "error");
        parse(&error.unwrap_or_else(|| panic!("no error: {}", self.message())))
    }

    /// The error's code and reason.
    pub(crate) fn refusal(&self) -> (i64, String) {
        let error = self.error();
        let reason = error["data"]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (error["code"].as_i64().unwrap(), reason)
    }

    /// The id as written.
    pub(crate) fn id(&self) -> Option<String> {
        member(self.message(), "id")
    }

    /// The first text of a tool's result.
    pub(crate) fn text(&self) -> String {
        let value = self.value();
        value["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{value}"))
            .to_owned()
    }

    /// The reason word of a tool error.
    pub(crate) fn tool_error(&self) -> String {
        let value = self.value();
        assert_eq!(value["isError"], true, "{value}");
        value["_meta"]["dev.usher/reason"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// The header value that mirrors `text` (PROTOCOL B2).
fn mirror(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    if plain && !text.starts_with("=?base64?") {
        text.to_owned()
    } else {
        let coded = base64::engine::general_purpose::STANDARD.encode(text);
        format!("=?base64?{coded}?=")
    }
}

/// One HTTP exchange on a connection of its own, read to its end.
pub(crate) async fn exchange(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let what = format!(
        "{method} {path} {}",
        String::from_utf8_lossy(&body[..body.len().min(300)])
    );
    let work = async {
        let tasks = Tasks::new();
        let response = open(&tasks, address, method, path, headers, body).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        tasks.stop();
        let body = String::from_utf8(body.to_vec()).unwrap();
        let kind = head
            .headers
            .get("content-type")
            .map(|kind| kind.to_str().unwrap());
        let frames = match kind {
            Some("text/event-stream") => events(&body),
            _ if body.trim().is_empty() => Vec::new(),
            _ => vec![body.clone()],
        };
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            frames,
        }
    };
    within(PATIENCE, &what, work).await
}

/// The head of an answer, and its body to read; the connection lives as long as `tasks`.
pub(crate) async fn open(
    tasks: &Tasks,
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response<Incoming> {
    let socket = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
        .await
        .unwrap();
    tasks.spawn(async move { drop(connection.await) });
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", format!("127.0.0.1:{}", address.port()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request
        .body(Full::new(Bytes::copy_from_slice(body)))
        .unwrap();
    sender.send_request(request).await.unwrap()
}

/// The data of every event.
fn events(body: &str) -> Vec<String> {
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
    };
    body.split("\n\n")
        .map(data)
        .filter(|data| !data.is_empty())
        .collect()
}
