//! Methods and params to operations: the head of params is looked at once, payloads are not.

use std::{borrow::Cow, sync::Arc};

use http::StatusCode;

use super::problem::Problem;
use crate::{
    call::{CompletionRef, Op, Resume, State},
    json::{Json, Kind, Node},
    jsonrpc::{RequestId, RpcError, decode::Fault},
    protocol::{codes, members, members::Alike, meta, methods, methods::ListKind},
};

/// The members of params that routing reads, found in one walk.
#[derive(Default)]
pub(super) struct Head<'a> {
    name: Option<Node<'a>>,
    /// The URI of a resource.
    pub(super) uri: Option<Node<'a>>,
    cursor: Option<Node<'a>>,
    reference: Option<Node<'a>>,
    /// Answers to what an earlier try was asked.
    responses: Option<Node<'a>>,
    /// What an earlier try was given to bring back.
    state: Option<Node<'a>>,
    /// The handle of a task.
    pub(super) task_id: Option<Node<'a>>,
    /// `_meta`, if it is an object.
    pub(super) meta: Option<Node<'a>>,
}

impl<'a> Head<'a> {
    /// The text of the member that a header mirrors: `name`, `uri` or `taskId`.
    pub(super) fn text(&self, member: &str) -> Option<Cow<'a, str>> {
        let node = match member {
            "uri" => self.uri,
            "taskId" => self.task_id,
            _ => self.name,
        };
        node.and_then(Node::as_str)
    }

    /// The cursor, if there is one.
    ///
    /// # Errors
    /// When it is not a string.
    pub(super) fn cursor(&self) -> Result<Option<String>, BadParams> {
        let text = |cursor: Node<'_>| {
            cursor
                .as_str()
                .map(Cow::into_owned)
                .ok_or_else(|| BadParams::new("`cursor` is not a string"))
        };
        self.cursor.map(text).transpose()
    }
}

/// Params that say nothing usable.
#[derive(Debug)]
pub(super) struct BadParams {
    /// The error to answer.
    pub(super) error: RpcError,
    /// Its reason word.
    pub(super) reason: &'static str,
}

impl From<Alike> for BadParams {
    fn from(alike: Alike) -> Self {
        Self {
            error: RpcError::new(codes::INVALID_REQUEST, alike.to_string()),
            reason: ALIKE,
        }
    }
}

impl BadParams {
    fn new(text: impl Into<String>) -> Self {
        Self {
            error: RpcError::new(codes::INVALID_PARAMS, text),
            reason: "invalid_params",
        }
    }

    /// Whether a name only looks like the protocol's: then there is no message, in either era.
    pub(super) fn is_alike(&self) -> bool {
        self.reason == ALIKE
    }

    /// The refusal of the whole message.
    pub(super) fn problem(self, id: Option<RequestId>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, id, self.error, self.reason)
    }
}

const ALIKE: &str = Fault::Confusable.reason();
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";
// As names are compared.
const RESPONSES_BYTES: &[u8] = RESPONSES.as_bytes();
const STATE_BYTES: &[u8] = STATE.as_bytes();
const META: &[u8] = meta::META.as_bytes();

/// Looks at the params of `method` once.
///
/// # Errors
/// For a `_meta` that is no object, and for names that only look like protocol names (SECURITY MSG-3).
pub(super) fn head<'a>(method: &str, params: &'a Json) -> Result<Head<'a>, BadParams> {
    let mut head = Head::default();
    let mut bad = None;
    for member in params.root().fields() {
        match &*member.name() {
            b"name" => head.name = Some(member.value),
            b"uri" => head.uri = Some(member.value),
            b"taskId" => head.task_id = Some(member.value),
            // Optional members that clients write as nothing are not there.
            b"cursor" if member.value.kind() == Kind::Null => {}
            b"cursor" => head.cursor = Some(member.value),
            b"arguments" => {}
            other => {
                // What more of the protocol's stands in it is looked at too.
                members::param(method, other, member.value)?;
                match other {
                    b"ref" => head.reference = Some(member.value),
                    RESPONSES_BYTES => head.responses = Some(member.value),
                    STATE_BYTES => head.state = Some(member.value),
                    META if member.value.kind() == Kind::Object => head.meta = Some(member.value),
                    META if member.value.kind() == Kind::Null => {}
                    // A name that is none is told of before a value that is none.
                    META => bad = Some(BadParams::new("`_meta` is not an object")),
                    _ => {}
                }
            }
        }
    }
    bad.map_or(Ok(head), Err)
}

/// The operation that `method` asks for; `None` if it is no method that both eras have.
///
/// # Errors
/// When the params lack what the method needs.
pub(super) fn op(method: &str, head: &Head<'_>) -> Result<Option<Op>, BadParams> {
    let list = |kind| -> Result<Option<Op>, BadParams> { Ok(Some(Op::List(kind, head.cursor()?))) };
    match method {
        methods::TOOLS_CALL => Ok(Some(Op::CallTool(text(head.name, "name")?))),
        methods::PROMPTS_GET => Ok(Some(Op::GetPrompt(text(head.name, "name")?))),
        methods::RESOURCES_READ => Ok(Some(Op::ReadResource(text(head.uri, "uri")?))),
        methods::COMPLETE => Ok(Some(Op::Complete(completion(head)?))),
        methods::TOOLS_LIST => list(ListKind::Tools),
        methods::PROMPTS_LIST => list(ListKind::Prompts),
        methods::RESOURCES_LIST => list(ListKind::Resources),
        methods::TEMPLATES_LIST => list(ListKind::Templates),
        _ => Ok(None),
    }
}

/// How a call goes on where an earlier try asked for input, if it does (PROTOCOL D2). What it brings is judged in the stack.
///
/// # Errors
/// When the state is no string.
pub(super) fn resume(params: &Json, head: &Head<'_>) -> Result<Option<Resume>, BadParams> {
    if head.responses.is_none() && head.state.is_none() {
        return Ok(None);
    }
    let state = match head.state {
        None => None,
        Some(state) => Some(State::Sealed(text(Some(state), STATE)?)),
    };
    Ok(Some(Resume {
        responses: head.responses.map(|responses| params.slice(responses)),
        state,
        ..Resume::default()
    }))
}

/// A member that must be a string.
pub(super) fn text(member: Option<Node<'_>>, name: &str) -> Result<Arc<str>, BadParams> {
    let text = member
        .and_then(Node::as_str)
        .ok_or_else(|| BadParams::new(format!("`params.{name}` is missing or not a string")))?;
    Ok(text.as_ref().into())
}

fn completion(head: &Head<'_>) -> Result<CompletionRef, BadParams> {
    let reference = head
        .reference
        .ok_or_else(|| BadParams::new("`params.ref` is missing"))?;
    match reference.member("type").and_then(Node::as_str).as_deref() {
        Some("ref/prompt") => Ok(CompletionRef::Prompt(text(
            reference.member("name"),
            "ref.name",
        )?)),
        Some("ref/resource") => Ok(CompletionRef::Resource(text(
            reference.member("uri"),
            "ref.uri",
        )?)),
        _ => Err(BadParams::new(
            "`params.ref.type` is neither `ref/prompt` nor `ref/resource`",
        )),
    }
}
