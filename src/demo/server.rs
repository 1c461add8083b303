//! What a demo server is, and the methods that all of them answer alike in every revision.
//! They are the lists, `tools/call`, `prompts/get`, `resources/read` and `completion/complete`.
//!
//! Guarantees that a server sees only calls of items it lists, with arguments that fit their schema. Writes no envelope and
//! knows no transport: that is for [`super::legacy`] and [`super::modern`].
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::{
    frame::{Object, Refusal},
    schema,
    turn::{Stop, Turn},
};

/// Entries per page of a list: few, so that a client meets a second page.
const PAGE: usize = 3;
/// Most values in one completion.
const MOST_COMPLETIONS: usize = 100;
/// Changes kept for a listener that is slow; one that falls further behind is told that everything changed.
pub(super) const CHANGES_KEPT: usize = 64;

/// A server of the demo: its items, and what they do.
pub(super) trait DemoServer: Send + Sync + 'static {
    fn card(&self) -> Card;
    /// Tools as they are listed. An entry that comes and goes stands last, so that positions in the list hold.
    fn tools(&self) -> Vec<Value>;
    fn prompts(&self) -> Vec<Value>;
    fn resources(&self) -> Vec<Value>;
    fn templates(&self) -> Vec<Value>;
    /// Calls a listed tool with arguments that fit its input schema.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Object,
        turn: &'a Turn,
    ) -> BoxFuture<'a, Result<Value, Stop>>;
    /// The messages of a listed prompt whose required arguments are there.
    fn prompt(&self, name: &str, arguments: &Object) -> Result<Value, Stop>;
    /// The contents of a resource; `None` when there is no such resource.
    fn read(&self, uri: &str) -> Option<Value>;
    /// Values for a declared argument of a listed prompt, or a variable of a listed template (`of` is the prompt's name
    /// or the URI template), given what was typed and the values of other arguments.
    fn complete(&self, of: &str, argument: &str, typed: &str, given: &Object) -> Vec<String>;
    /// Whether changes of this resource are announced.
    fn is_watchable(&self, uri: &str) -> bool;
    fn changes(&self) -> &broadcast::Sender<Change>;
}

/// How a server introduces itself.
pub(super) struct Card {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) instructions: &'static str,
    pub(super) tools: Listing,
}

/// Whether a list may change while the server runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    Fixed,
    Changing,
}

impl Card {
    pub(super) fn identity(&self) -> Value {
        json!({"name": self.name, "title": self.title, "version": env!("CARGO_PKG_VERSION")})
    }

    pub(super) fn capabilities(&self) -> Value {
        let tools = match self.tools {
            Listing::Fixed => json!({}),
            Listing::Changing => json!({"listChanged": true}),
        };
        json!({"tools": tools, "prompts": {}, "resources": {"subscribe": true}, "completions": {}})
    }
}

/// Something that listeners hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    ToolList,
    Resource(String),
}

/// A tool's result: the structure, and its text for clients that read no structures.
pub(super) fn structured(value: Value) -> Value {
    let text = value.to_string();
    json!({"content": [{"type": "text", "text": text}], "structuredContent": value})
}

/// One item of a resource's contents.
pub(super) fn text_contents(uri: &str, mime_type: &str, text: impl Into<String>) -> Value {
    let text = text.into();
    json!({"uri": uri, "mimeType": mime_type, "text": text})
}

/// An argument that is text.
pub(super) fn text<'a>(arguments: &'a Object, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// Answers `method` as every revision does.
pub(super) async fn answer(
    server: &dyn DemoServer,
    method: &str,
    params: &Object,
    turn: &Turn,
) -> Result<Value, Stop> {
    match method {
        "tools/list" => page("tools", server.tools(), params),
        "prompts/list" => page("prompts", server.prompts(), params),
        "resources/list" => page("resources", server.resources(), params),
        "resources/templates/list" => page("resourceTemplates", server.templates(), params),
        "tools/call" => call(server, params, turn).await,
        "prompts/get" => prompt(server, params),
        "resources/read" => {
            let uri = wanted_text(params, "uri")?;
            let contents = server.read(uri);
            let contents = contents.ok_or_else(|| Stop::NoResource(uri.to_owned()))?;
            Ok(json!({"contents": [contents]}))
        }
        "completion/complete" => complete(server, params),
        _ => Err(Refusal::no_method(method).into()),
    }
}

/// A member of `params` that must be text.
pub(super) fn wanted_text<'a>(params: &'a Object, name: &str) -> Result<&'a str, Refusal> {
    let missing = || Refusal::invalid(format!("`params.{name}` is missing or not a string"));
    text(params, name).ok_or_else(missing)
}

fn page(key: &str, all: Vec<Value>, params: &Object) -> Result<Value, Stop> {
    let start = match params.get("cursor") {
        None => 0,
        Some(cursor) => cursor
            .as_str()
            .and_then(|cursor| cursor.strip_prefix("from-")?.parse::<usize>().ok())
            .filter(|start| *start <= all.len())
            .ok_or_else(|| Refusal::invalid("invalid cursor"))?,
    };
    let end = all.len().min(start + PAGE);
    let mut result = json!({ key: all[start..end] });
    if end < all.len() {
        result["nextCursor"] = format!("from-{end}").into();
    }
    Ok(result)
}

async fn call(server: &dyn DemoServer, params: &Object, turn: &Turn) -> Result<Value, Stop> {
    let name = wanted_text(params, "name")?;
    let tools = server.tools();
    let tool = tools.iter().find(|tool| tool["name"] == name);
    let tool = tool.ok_or_else(|| Refusal::invalid(format!("unknown tool: {name}")))?;
    let arguments = optional_object(params, "arguments")?;
    if let Some(problems) = schema::problems(&tool["inputSchema"], &arguments) {
        return Ok(failure(&format!("{name}: {problems}")));
    }
    match server.call(name, &arguments, turn).await {
        Err(Stop::Failed(why)) => Ok(failure(&why)),
        other => other,
    }
}

fn failure(why: &str) -> Value {
    json!({"content": [{"type": "text", "text": why}], "isError": true})
}

fn prompt(server: &dyn DemoServer, params: &Object) -> Result<Value, Stop> {
    let name = wanted_text(params, "name")?;
    let prompts = server.prompts();
    let prompt = prompts.iter().find(|prompt| prompt["name"] == name);
    let prompt = prompt.ok_or_else(|| Refusal::invalid(format!("unknown prompt: {name}")))?;
    let arguments = optional_object(params, "arguments")?;
    if let Some((odd, _)) = arguments.iter().find(|(_, value)| !value.is_string()) {
        return Err(Refusal::invalid(format!("{name}: argument `{odd}` is not a string")).into());
    }
    let declared = prompt["arguments"].as_array();
    let missing: Vec<String> = declared
        .into_iter()
        .flatten()
        .filter(|argument| argument["required"] == true)
        .filter_map(|argument| argument["name"].as_str())
        .filter(|argument| !arguments.contains_key(*argument))
        .map(|argument| format!("missing argument `{argument}`"))
        .collect();
    if !missing.is_empty() {
        return Err(Refusal::invalid(format!("{name}: {}", missing.join("; "))).into());
    }
    server.prompt(name, &arguments)
}

fn complete(server: &dyn DemoServer, params: &Object) -> Result<Value, Stop> {
    let missing = |what: &str| Refusal::invalid(format!("`params.{what}` is missing or malformed"));
    let empty = Object::new();
    let reference = params
        .get("ref")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let argument = params.get("argument").and_then(Value::as_object);
    let argument = argument.ok_or_else(|| missing("argument"))?;
    let name = text(argument, "name").ok_or_else(|| missing("argument.name"))?;
    let typed = text(argument, "value").ok_or_else(|| missing("argument.value"))?;
    let (of, known) = match text(reference, "type") {
        Some("ref/prompt") => {
            let of = text(reference, "name").ok_or_else(|| missing("ref.name"))?;
            let prompts = server.prompts();
            let prompt = prompts.iter().find(|prompt| prompt["name"] == of);
            let prompt = prompt.ok_or_else(|| Refusal::invalid(format!("unknown prompt: {of}")))?;
            let declared = prompt["arguments"].as_array();
            let known = declared.is_some_and(|all| all.iter().any(|one| one["name"] == name));
            (of, known)
        }
        Some("ref/resource") => {
            let of = text(reference, "uri").ok_or_else(|| missing("ref.uri"))?;
            let templates = server.templates();
            if !templates.iter().any(|one| one["uriTemplate"] == of) {
                return Err(Refusal::invalid(format!("unknown resource template: {of}")).into());
            }
            (of, of.contains(&format!("{{{name}}}")))
        }
        _ => return Err(missing("ref").into()),
    };
    if !known {
        return Err(Refusal::invalid(format!("{of} has no argument `{name}`")).into());
    }
    let context = params
        .get("context")
        .and_then(|c| c["arguments"].as_object());
    let mut values = server.complete(of, name, typed, context.unwrap_or(&empty));
    let total = values.len();
    values.truncate(MOST_COMPLETIONS);
    let more = values.len() < total;
    Ok(json!({"completion": {"values": values, "total": total, "hasMore": more}}))
}

/// A member of `params` that is an object, or absent, which reads as empty.
fn optional_object(params: &Object, name: &str) -> Result<Object, Refusal> {
    match params.get(name) {
        None => Ok(Object::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(_) => Err(Refusal::invalid(format!(
            "`params.{name}` is not an object"
        ))),
    }
}
