//! Streamable HTTP of 2026-07-28: one self-describing POST per request, nothing remembered between two of them.
//!
//! Guarantees the checks of the revision in the order in which their statuses are told apart, before a tool runs; a closed
//! response cancels its request. Speaks no other revision: `initialize` is told which one is spoken.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};

use super::{
    answers::{Body, empty, event_stream, json as document, refused, unacceptable},
    frame::{
        self, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message, Object,
        Refusal, Request,
    },
    mirror, places,
    server::{self, Change, DemoServer, Listing},
    turn::{Asking, Stop, Turn},
};
use crate::tasks::Tasks;

/// The revision spoken here.
const REVISION: &str = "2026-07-28";
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// How long clients may keep a list or a fixed resource, in milliseconds.
const KEEP: u64 = 3_600_000;
/// How long clients may keep a resource that changes, in milliseconds.
const KEEP_WATCHABLE: u64 = 1_000;
/// Most open `subscriptions/listen`; more are refused.
const MAX_LISTENING: usize = 64;

/// The stateless face of a demo server.
pub(super) struct Modern {
    server: Arc<dyn DemoServer>,
    tasks: Tasks,
    listening: Arc<AtomicUsize>,
}

/// A request that passed the checks of the revision.
struct Checked {
    request: Request,
    capabilities: Value,
    progress_token: Option<Value>,
}

impl Modern {
    pub(super) fn new(server: Arc<dyn DemoServer>, tasks: Tasks) -> Self {
        Self {
            server,
            tasks,
            listening: Arc::default(),
        }
    }

    pub(super) async fn post(&self, headers: &HeaderMap, body: &[u8]) -> Response<Body> {
        if let Some(response) = unacceptable(headers) {
            return response;
        }
        let request = match frame::parse(body) {
            Ok(Message::Request(request)) => request,
            Ok(Message::Notification { .. }) => return empty(StatusCode::ACCEPTED),
            Ok(Message::Response { .. }) => {
                let refusal = Refusal::new(INVALID_REQUEST, "a client sends no responses");
                return refused(StatusCode::BAD_REQUEST, None, &refusal);
            }
            Err(refusal) => return document(StatusCode::BAD_REQUEST, &refusal),
        };
        let id = request.id.clone();
        let checked = match self.check(headers, request) {
            Ok(checked) => checked,
            Err(refusal) => return refused(StatusCode::BAD_REQUEST, Some(&id), &refusal),
        };
        if checked.request.method == "subscriptions/listen" {
            return self.listen(checked.request);
        }
        if checked.request.method == "tools/call" && checked.progress_token.is_some() {
            return self.call_with_progress(checked);
        }
        // Dropped with the connection when the client goes away, which cancels the request.
        let answer = answer(&*self.server, checked, None).await;
        let status = if answer["error"]["code"] == METHOD_NOT_FOUND {
            StatusCode::NOT_FOUND
        } else {
            StatusCode::OK
        };
        document(status, &answer)
    }

    /// The checks whose failure is HTTP 400, in the order of their precedence.
    fn check(&self, headers: &HeaderMap, request: Request) -> Result<Checked, Refusal> {
        let Request { method, params, .. } = &request;
        let no_meta = Object::new();
        let meta = params
            .get("_meta")
            .and_then(Value::as_object)
            .unwrap_or(&no_meta);
        if method == "initialize" && !meta.contains_key(VERSION_KEY) {
            // A legacy client: tell it what would have been understood.
            return Err(unsupported(
                params.get("protocolVersion").cloned().unwrap_or_default(),
            ));
        }
        let malformed = |key: &str| {
            Refusal::invalid(format!("`params._meta[\"{key}\"]` is missing or malformed"))
        };
        let version = server::text(meta, VERSION_KEY).ok_or_else(|| malformed(VERSION_KEY))?;
        let capabilities = meta.get(CAPABILITIES_KEY).filter(|value| value.is_object());
        let capabilities = capabilities
            .ok_or_else(|| malformed(CAPABILITIES_KEY))?
            .clone();
        let progress_token = meta.get("progressToken").cloned();
        let is_token = |token: &Value| token.is_string() || token.is_i64() || token.is_u64();
        if !progress_token.as_ref().is_none_or(is_token) {
            return Err(malformed("progressToken"));
        }
        let mismatch = |message| Refusal::new(HEADER_MISMATCH, message);
        mirror::agree(headers, "MCP-Protocol-Version", version).map_err(mismatch)?;
        if version != REVISION {
            return Err(unsupported(version.into()));
        }
        mirror::agree(headers, "Mcp-Method", method).map_err(mismatch)?;
        let mirrored = match method.as_str() {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" => Some("uri"),
            _ => None,
        };
        if let Some(name) = mirrored.and_then(|member| server::text(params, member)) {
            mirror::agree(headers, "Mcp-Name", name).map_err(mismatch)?;
            if method == "tools/call" {
                self.check_parameters(headers, name, params)
                    .map_err(mismatch)?;
            }
        }
        Ok(Checked {
            request,
            capabilities,
            progress_token,
        })
    }

    fn check_parameters(
        &self,
        headers: &HeaderMap,
        tool: &str,
        params: &Object,
    ) -> Result<(), String> {
        let tools = self.server.tools();
        let Some(tool) = tools.iter().find(|one| one["name"] == tool) else {
            return Ok(()); // refused later, as unknown
        };
        let none = Object::new();
        let arguments = params.get("arguments").and_then(Value::as_object);
        mirror::parameters(headers, &tool["inputSchema"], arguments.unwrap_or(&none))
    }

    fn call_with_progress(&self, checked: Checked) -> Response<Body> {
        let (out, response) = event_stream();
        let server = self.server.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = out.closed() => {} // the client closed the stream: the request is cancelled
                answer = answer(&*server, checked, Some(out.clone())) => {
                    drop(out.send(answer).await); // nobody is left to tell when this fails
                }
            }
        });
        response
    }

    fn listen(&self, request: Request) -> Response<Body> {
        let Request { id, params, .. } = request;
        let changes = self.server.changes().subscribe();
        let filter = match Filter::parse(&*self.server, &params) {
            Ok(filter) => filter,
            Err(refusal) => return refused(StatusCode::OK, Some(&id), &refusal),
        };
        let Some(place) = Place::take(&self.listening) else {
            let refusal = Refusal::new(INTERNAL_ERROR, "too many subscriptions are open");
            return refused(StatusCode::OK, Some(&id), &refusal);
        };
        let (out, response) = event_stream();
        let server = self.server.clone();
        let token = self.tasks.token().clone();
        self.tasks.spawn_orderly(async move {
            let _place = place;
            tokio::select! {
                () = out.closed() => {}
                () = announce(&id, &filter, changes, &out) => {}
                () = token.cancelled() => {
                    let mut result = result_of(&*server, json!({}));
                    result["_meta"][SUBSCRIPTION_KEY] = id.clone();
                    drop(out.send(frame::result(&id, result)).await); // as above
                }
            }
        });
        response
    }
}

async fn answer(
    server: &dyn DemoServer,
    checked: Checked,
    out: Option<mpsc::Sender<Value>>,
) -> Value {
    let Request { id, method, params } = checked.request;
    let card = server.card();
    let outcome = if method == "server/discover" {
        Ok(json!({
            "supportedVersions": [REVISION],
            "capabilities": card.capabilities(),
            "instructions": card.instructions,
        }))
    } else {
        match rounds(&method, &params, checked.capabilities) {
            Ok(asking) => {
                let turn = Turn {
                    asking,
                    progress_token: checked.progress_token,
                    out,
                };
                server::answer(server, &method, &params, &turn).await
            }
            Err(refusal) => Err(refusal.into()),
        }
    };
    match outcome {
        Ok(mut result) => {
            let fresh = match (method.as_str(), server::text(&params, "uri")) {
                ("resources/read", Some(uri)) if server.is_watchable(uri) => Some(KEEP_WATCHABLE),
                ("tools/list", _) if card.tools == Listing::Changing => Some(0),
                ("server/discover" | "resources/read", _) => Some(KEEP),
                (method, _) => method.ends_with("/list").then_some(KEEP),
            };
            if let Some(fresh) = fresh {
                result["ttlMs"] = fresh.into();
                result["cacheScope"] = "public".into();
            }
            frame::result(&id, result_of(server, result))
        }
        Err(Stop::Input(result)) => frame::result(&id, result_of(server, result)),
        Err(Stop::Refused(refusal)) => refusal.frame(Some(&id)),
        Err(Stop::NoResource(uri)) => {
            let refusal = Refusal::new(INVALID_PARAMS, "resource not found");
            refusal.with(json!({"uri": uri})).frame(Some(&id))
        }
        Err(Stop::Failed(_)) => Refusal::new(INTERNAL_ERROR, "internal error").frame(Some(&id)),
    }
}

/// Adds what every result of this revision carries.
fn result_of(server: &dyn DemoServer, mut result: Value) -> Value {
    if result.get("resultType").is_none() {
        result["resultType"] = "complete".into();
    }
    result["_meta"][SERVER_KEY] = server.card().identity();
    result
}

/// The client's answers, where this call is a later round of an earlier one.
///
/// The state ties the rounds of one call together, so that answers given for one question are not taken for another's. It is
/// no secret and grants nothing.
fn rounds(method: &str, params: &Object, capabilities: Value) -> Result<Asking, Refusal> {
    let name = server::text(params, "name").unwrap_or_default();
    let arguments = params.get("arguments").and_then(Value::as_object);
    let mut arguments: Vec<(&String, &Value)> = arguments.into_iter().flatten().collect();
    arguments.sort_by_key(|(name, _)| *name); // a client may write them in another order
    let bound = places::number_of(&[method, name, &format!("{arguments:?}")]);
    let state = format!("round-{bound:016x}");
    let responses = match params.get("inputResponses") {
        None => Object::new(),
        Some(Value::Object(responses)) => responses.clone(),
        Some(_) => return Err(Refusal::invalid("`params.inputResponses` is not an object")),
    };
    let given = params.get("requestState");
    if given.map_or(!responses.is_empty(), |given| *given != state) {
        return Err(Refusal::invalid(
            "`params.requestState` does not belong to this call",
        ));
    }
    Ok(Asking::Rounds {
        capabilities,
        responses,
        state,
    })
}

fn unsupported(requested: Value) -> Refusal {
    let message = format!("unsupported protocol version; this server speaks {REVISION}");
    let requested = requested.as_str().unwrap_or_default();
    Refusal::new(UNSUPPORTED_VERSION, message)
        .with(json!({"supported": [REVISION], "requested": requested}))
}

/// What a listener asked for and this server has.
struct Filter {
    tools: bool,
    resources: Vec<String>,
}

impl Filter {
    fn parse(server: &dyn DemoServer, params: &Object) -> Result<Self, Refusal> {
        let malformed = || Refusal::invalid("`params.notifications` is missing or malformed");
        let wanted = params.get("notifications").and_then(Value::as_object);
        let wanted = wanted.ok_or_else(malformed)?;
        let flag = |name: &str| match wanted.get(name) {
            None => Ok(false),
            Some(flag) => flag.as_bool().ok_or_else(malformed),
        };
        let tools = flag("toolsListChanged")? && server.card().tools == Listing::Changing;
        flag("promptsListChanged")?;
        flag("resourcesListChanged")?;
        let uris = match wanted.get("resourceSubscriptions") {
            None => &Vec::new(),
            Some(uris) => uris.as_array().ok_or_else(malformed)?,
        };
        let mut resources = Vec::new();
        for uri in uris {
            let uri = uri.as_str().ok_or_else(malformed)?;
            if server.is_watchable(uri) && !resources.iter().any(|known| known == uri) {
                resources.push(uri.to_owned());
            }
        }
        Ok(Self { tools, resources })
    }

    fn honoured(&self) -> Value {
        let mut honoured = json!({});
        if self.tools {
            honoured["toolsListChanged"] = true.into();
        }
        if !self.resources.is_empty() {
            honoured["resourceSubscriptions"] = self.resources.clone().into();
        }
        honoured
    }

    fn notice(&self, change: &Change, subscription: &Value) -> Option<Value> {
        let meta = json!({ SUBSCRIPTION_KEY: subscription });
        match change {
            Change::ToolList => self.tools.then(|| {
                let params = json!({"_meta": meta});
                frame::notification("notifications/tools/list_changed", Some(params))
            }),
            Change::Resource(uri) => self.resources.contains(uri).then(|| {
                let params = json!({"_meta": meta, "uri": uri});
                frame::notification("notifications/resources/updated", Some(params))
            }),
        }
    }
}

/// Acknowledges a subscription, then tells of changes until the stream or the server ends. A listener that missed some is
/// told that everything it watches changed.
async fn announce(
    id: &Value,
    filter: &Filter,
    mut changes: broadcast::Receiver<Change>,
    out: &mpsc::Sender<Value>,
) {
    let params = json!({
        "_meta": { SUBSCRIPTION_KEY: id },
        "notifications": filter.honoured(),
    });
    let acknowledged = "notifications/subscriptions/acknowledged";
    let mut notices = vec![frame::notification(acknowledged, Some(params))];
    loop {
        for notice in notices {
            if out.send(notice).await.is_err() {
                return;
            }
        }
        let news = match changes.recv().await {
            Ok(change) => vec![change],
            Err(broadcast::error::RecvError::Closed) => return,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let resources = filter.resources.iter().cloned().map(Change::Resource);
                resources.chain([Change::ToolList]).collect()
            }
        };
        notices = news
            .iter()
            .filter_map(|change| filter.notice(change, id))
            .collect();
    }
}

/// One of the [`MAX_LISTENING`] places for listeners.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(places: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |taken| (taken < MAX_LISTENING).then_some(taken + 1);
        let taken = places.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.is_ok().then(|| Self(places.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
