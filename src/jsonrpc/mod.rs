//! JSON-RPC 2.0 frames: bytes in, frames out, and back. No I/O, no clock, no idea of MCP.
//!
//! Guarantees: the envelope is read once and strictly; a valid id is echoed exactly as it was spelled; only
//! [`encode`] writes an envelope. Batches exist because revision 2025-03-26 has them; who may use them is decided above.

pub mod alike;
pub mod decode;
pub mod encode;
pub mod loose;
pub mod sse;

use std::{borrow::Cow, fmt};

use bytes::Bytes;

use crate::json::{Json, Node};

pub use decode::{DecodeError, Message, decode};

/// An id as conventions of telemetry have it: a string without its quotes and escapes, anything else as it is spelled.
pub fn id_in_words(spelled: &str) -> Cow<'_, str> {
    if !spelled.starts_with('"') {
        return spelled.into();
    }
    serde_json::from_str::<String>(spelled).map_or_else(|_| spelled.into(), Into::into)
}

/// The id of a request, exactly as spelled: a JSON string or an integer, at most 256 bytes within its quotes (SECURITY MSG-7).
// INVARIANT: holds a JSON string or an integer without fraction and exponent.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestId(Json);

impl RequestId {
    /// The longest id accepted, in bytes as spelled, without the quotes of a string.
    pub const MAX_BYTES: usize = 256;

    /// The id as it stands on the wire.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The same as bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The id as a value.
    pub const fn json(&self) -> &Json {
        &self.0
    }

    /// The same in bytes of its own, to be kept longer than the message it came in.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(self.0.detached())
    }

    /// An id of our own.
    pub fn minted(number: u64) -> Self {
        Self(Json::of(&number))
    }

    /// The number, if this is an id that we could have minted.
    pub fn as_minted(&self) -> Option<u64> {
        self.0.as_str().parse().ok()
    }

    /// An id of our own for requests to clients: a number, since some read no text, and one that clients do not come to that
    /// take it for one of theirs.
    pub fn ours(number: u64) -> Self {
        Self::minted(OURS + number)
    }

    /// The number, if this is an id that [`RequestId::ours`] could have made.
    pub fn as_ours(&self) -> Option<u64> {
        self.as_minted()?.checked_sub(OURS)
    }

    /// What stands for it in a table: equal for ids that are [the same](RequestId::same).
    pub fn key(&self) -> Bytes {
        Self::key_of(self.0.root(), &self.0)
    }

    /// The same of an id that somebody names, which stands in this value.
    // As spelled, but for strings with escapes, which are spelled anew.
    pub fn key_of(id: Node<'_>, within: &Json) -> Bytes {
        match id.as_str() {
            Some(Cow::Owned(text)) => Json::string(&text).bytes().clone(),
            Some(Cow::Borrowed(_)) | None => within.slice(id).bytes().clone(),
        }
    }

    /// Whether both are the same id: numbers by value, strings after unescaping; `1` is never `"1"`.
    pub fn same(&self, other: &Self) -> bool {
        self == other
            || self
                .0
                .root()
                .as_str()
                .is_some_and(|mine| other.0.root().as_str().is_some_and(|theirs| mine == theirs))
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({})", self.as_str().escape_debug())
    }
}

/// From where on our ids to clients count: thirty-two bits hold a thousand million of them, also with a sign.
const OURS: u64 = 1 << 30;

/// One JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Frame {
    /// Wants exactly one answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Answers a request of ours.
    Response(Response),
}

impl Frame {
    /// What it carries: its params, its result, or the data of its error; an empty object where there is none.
    pub fn payload(&self) -> Json {
        let carried = match self {
            Self::Request(Request { params, .. })
            | Self::Notification(Notification { params, .. }) => params.as_ref(),
            Self::Response(Response {
                body: Ok(result), ..
            }) => Some(result),
            Self::Response(Response {
                body: Err(error), ..
            }) => error.data.as_ref(),
        };
        carried.cloned().unwrap_or(Json::empty_object())
    }

    /// The same in bytes of its own, which count for the budget of memory: to be kept longer than the text it came in.
    #[must_use]
    pub fn detached(self) -> Self {
        let apart = |json: Json| json.detached().counted();
        match self {
            Self::Request(Request { id, method, params }) => Self::Request(Request {
                id: id.detached(),
                method,
                params: params.map(apart),
            }),
            Self::Notification(Notification { method, params }) => {
                Self::Notification(Notification {
                    method,
                    params: params.map(apart),
                })
            }
            Self::Response(Response { id, body }) => Self::Response(Response {
                id: id.map(|id| id.detached()),
                body: body.map(apart).map_err(|error| RpcError {
                    data: error.data.map(apart),
                    ..error
                }),
            }),
        }
    }
}

/// A request frame.
#[derive(Debug, Clone)]
pub struct Request {
    /// The sender's id.
    pub id: RequestId,
    /// The method, unescaped.
    pub method: Method,
    /// The params: an object, if present (MCP has no positional params).
    pub params: Option<Json>,
}

/// A notification frame.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The method, unescaped.
    pub method: Method,
    /// The params: an object, if present.
    pub params: Option<Json>,
}

/// A response frame.
#[derive(Debug, Clone)]
pub struct Response {
    /// The id answered; absent or null on errors about unreadable requests.
    pub id: Option<RequestId>,
    /// The result, or the error.
    pub body: Result<Json, RpcError>,
}

/// A method name: shared text, at most 256 bytes.
pub type Method = std::sync::Arc<str>;

/// A JSON-RPC error object as it travels.
#[derive(Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// Structured detail, if any.
    pub data: Option<Json>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The error object as JSON.
    pub fn to_json(&self) -> Json {
        let mut out =
            Vec::with_capacity(64 + self.message.len() + self.data.as_ref().map_or(0, Json::len));
        out.extend_from_slice(b"{\"code\":");
        out.extend_from_slice(Json::of(&self.code).bytes());
        out.extend_from_slice(b",\"message\":");
        out.extend_from_slice(Json::string(&self.message).bytes());
        if let Some(data) = &self.data {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.bytes());
        }
        out.push(b'}');
        Json::composed(Bytes::from(out))
    }
}

impl fmt::Debug for RpcError {
    /// Shows the code only: messages are an upstream's text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RpcError({})", self.code)
    }
}
