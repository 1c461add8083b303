//! Bytes to frames: one strict scan, then one look at the envelope.

use bytes::Bytes;

use super::{Frame, Notification, Request, RequestId, Response, RpcError, alike::alike, loose};
use crate::json::{Json, Kind, Limits, Node, ScanError};

/// The most frames in one batch (2025-03-26). A bound of ours; the specification names none.
pub const MAX_BATCH: usize = 256;

/// What one HTTP body, line or event holds.
#[derive(Debug)]
pub enum Message {
    /// One frame.
    One(Frame),
    /// An array of frames; never empty. Only revision 2025-03-26 has these.
    Batch(Vec<Frame>),
}

/// Why bytes are not a frame. Carries the id when it could be read, for the answer (PROTOCOL B1.9).
#[derive(Debug, Clone, thiserror::Error)]
#[error("{fault}")]
pub struct DecodeError {
    /// What is wrong.
    pub fault: Fault,
    /// The id of the offending request, if it was readable.
    pub id: Option<RequestId>,
    /// What it was to answer, by the ids that could be read: no better answer comes, since nobody sends a response twice.
    pub answered: Vec<RequestId>,
}

/// The ways in which bytes fail to be a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not strict JSON, or over a bound.
    #[error(transparent)]
    Scan(ScanError),
    /// JSON, but no JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Envelope(&'static str),
    /// A member name that differs from a protocol name only by case or compatibility form.
    #[error("a member name that only looks like a protocol name")]
    Confusable,
}

impl Fault {
    /// The stable word for `data.reason`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Scan(error) => error.reason(),
            Self::Envelope(_) => "invalid_request",
            Self::Confusable => "confusable_member",
        }
    }
}

/// Reads one body, line or event.
///
/// # Errors
/// [`DecodeError`] when it is not strict JSON within `limits`, or not one frame or a non-empty batch of frames.
pub fn decode(text: Bytes, limits: &Limits) -> Result<Message, DecodeError> {
    let json = Json::parse_kept(&text, limits).map_err(|error| DecodeError {
        fault: Fault::Scan(error),
        id: whose(&text, limits, error),
        answered: Vec::new(),
    })?;
    let root = json.root();
    let message = match root.kind() {
        Kind::Object => frame(&json, root).map(Message::One),
        Kind::Array => batch(&json, root).map(Message::Batch),
        Kind::String | Kind::Number | Kind::Bool | Kind::Null => {
            Err(envelope("neither an object nor a batch", None))
        }
    };
    message.map_err(|error| DecodeError {
        answered: answered(&json, root),
        ..error
    })
}

/// The id of a request that is JSON as far as it was read, and more of it than is taken, or says something twice: whoever
/// asks on a pipe would wait for the answer in vain (PROTOCOL B1.9).
fn whose(text: &Bytes, limits: &Limits, error: ScanError) -> Option<RequestId> {
    match error {
        ScanError::Syntax(_) | ScanError::Encoding(_) => return None,
        ScanError::DuplicateMember(_)
        | ScanError::TooDeep(_)
        | ScanError::TooManyValues(_)
        | ScanError::TooManyMembers(_)
        | ScanError::KeyTooLong(_)
        | ScanError::NumberTooLong(_) => {}
    }
    let said = loose::envelope(text)?;
    let id = said.id.filter(|_| said.asks)?;
    // Few bytes of a text that may be long, which is not kept for them.
    let id = Json::parse(Bytes::copy_from_slice(id), limits).ok()?;
    request_id(&id, id.root()).ok().flatten()
}

fn batch(json: &Json, root: Node<'_>) -> Result<Vec<Frame>, DecodeError> {
    let frames: Vec<_> = root
        .elements()
        .take(MAX_BATCH + 1)
        .map(|node| match node.kind() {
            Kind::Object => frame(json, node),
            Kind::Array | Kind::String | Kind::Number | Kind::Bool | Kind::Null => {
                Err(envelope("a batch member that is no object", None))
            }
        })
        .collect::<Result<_, _>>()?;
    match frames.len() {
        0 => Err(envelope("an empty batch", None)),
        1..=MAX_BATCH => Ok(frames),
        _ => Err(envelope("a batch of too many messages", None)),
    }
}

const fn envelope(what: &'static str, id: Option<RequestId>) -> DecodeError {
    DecodeError {
        fault: Fault::Envelope(what),
        id,
        answered: Vec::new(),
    }
}

/// What a message that is none was to answer: whatever has an id and no method asks nothing itself.
fn answered(json: &Json, root: Node<'_>) -> Vec<RequestId> {
    let id = |node: Node<'_>| {
        if node.member("method").is_some() {
            return None;
        }
        request_id(json, node.member("id")?).ok().flatten()
    };
    match root.kind() {
        Kind::Object => id(root).into_iter().collect(),
        Kind::Array => root
            .elements()
            .take(MAX_BATCH)
            .filter(|node| node.kind() == Kind::Object)
            .filter_map(id)
            .collect(),
        Kind::String | Kind::Number | Kind::Bool | Kind::Null => Vec::new(),
    }
}

/// What an envelope's members are called.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The members of an envelope, found in one walk.
#[derive(Default)]
struct Envelope<'a> {
    version: Option<Node<'a>>,
    id: Option<Node<'a>>,
    method: Option<Node<'a>>,
    params: Option<Node<'a>>,
    result: Option<Node<'a>>,
    error: Option<Node<'a>>,
    confusable: bool,
}

fn frame(json: &Json, root: Node<'_>) -> Result<Frame, DecodeError> {
    let mut found = Envelope::default();
    for field in root.fields() {
        let value = Some(field.value);
        match &*field.name() {
            b"jsonrpc" => found.version = value,
            b"id" => found.id = value,
            b"method" => found.method = value,
            b"params" => found.params = value,
            b"result" => found.result = value,
            b"error" => found.error = value,
            other => {
                found.confusable |= alike(other, MEMBERS).is_some();
            }
        }
    }
    let id = found.id.map(|id| request_id(json, id));
    // An id is worth echoing only if it is one.
    let known = id.clone().and_then(Result::ok).flatten();
    if found.confusable {
        return Err(DecodeError {
            fault: Fault::Confusable,
            id: known,
            answered: Vec::new(),
        });
    }
    if found.version.is_none_or(|version| {
        version.raw_bytes() != b"\"2.0\"" && version.as_str().as_deref() != Some("2.0")
    }) {
        return Err(envelope("`jsonrpc` is not \"2.0\"", known));
    }
    let id = id.transpose()?;
    let Some(method) = found.method else {
        return response(json, &found, id);
    };
    if found.result.is_some() || found.error.is_some() {
        return Err(envelope("both a request and a response", known));
    }
    let method = match method.as_str() {
        Some(method) if !method.is_empty() && method.len() <= 256 => method.into(),
        _ => {
            return Err(envelope(
                "`method` is not a non-empty string of at most 256 bytes",
                known,
            ));
        }
    };
    let params = match found.params {
        None => None,
        // Clients write an optional member of theirs so.
        Some(params) if params.kind() == Kind::Null => None,
        Some(params) if params.kind() == Kind::Object => Some(json.slice(params)),
        Some(_) => return Err(envelope("`params` is not an object", known)),
    };
    match id {
        None => Ok(Frame::Notification(Notification { method, params })),
        Some(Some(id)) => Ok(Frame::Request(Request { id, method, params })),
        Some(None) => Err(envelope("`id` is null", None)),
    }
}

fn response(
    json: &Json,
    found: &Envelope<'_>,
    id: Option<Option<RequestId>>,
) -> Result<Frame, DecodeError> {
    let body = match (found.result, found.error) {
        (Some(result), None) if result.kind() == Kind::Object => Ok(json.slice(result)),
        (Some(_), None) => return Err(envelope("`result` is not an object", None)),
        (None, Some(error)) => Err(rpc_error(json, error)?),
        _ => return Err(envelope("neither a request nor a response", id.flatten())),
    };
    let id = id.flatten();
    if id.is_none() && body.is_ok() {
        return Err(envelope("a result without an id", None));
    }
    Ok(Frame::Response(Response { id, body }))
}

fn rpc_error(json: &Json, error: Node<'_>) -> Result<RpcError, DecodeError> {
    let code = error
        .member("code")
        .and_then(Node::as_i64)
        .ok_or_else(|| envelope("`error.code` is not an integer", None))?;
    let message = error
        .member("message")
        .and_then(Node::as_str)
        .ok_or_else(|| envelope("`error.message` is not a string", None))?;
    let data = error.member("data").map(|data| json.slice(data));
    Ok(RpcError {
        code,
        message: message.into_owned(),
        data,
    })
}

/// `Ok(None)` for null, which only a response about an unreadable request may have.
fn request_id(json: &Json, id: Node<'_>) -> Result<Option<RequestId>, DecodeError> {
    let quotes = if id.kind() == Kind::String { 2 } else { 0 };
    if id.raw().len() > RequestId::MAX_BYTES + quotes {
        return Err(envelope("`id` is over 256 bytes", None));
    }
    match id.kind() {
        Kind::String => Ok(Some(RequestId(json.slice(id)))),
        Kind::Number if !id.raw().contains(['.', 'e', 'E']) => Ok(Some(RequestId(json.slice(id)))),
        Kind::Null => Ok(None),
        Kind::Number | Kind::Object | Kind::Array | Kind::Bool => {
            Err(envelope("`id` is neither a string nor an integer", None))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Message, DecodeError> {
        decode(Bytes::copy_from_slice(text.as_bytes()), &Limits::CLIENT)
    }

    #[test]
    fn ids_are_kept_as_spelled() {
        for id in [
            "1",
            "-7",
            "\"a\\u0062\"",
            "123456789012345678901234567890",
            "\"\"",
            // The quotes are not of the id.
            &format!("\"{}\"", "x".repeat(256)),
        ] {
            let Ok(Message::One(Frame::Request(request))) =
                read(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#))
            else {
                panic!("{id}")
            };
            assert_eq!(request.id.as_str(), id);
        }
    }

    #[test]
    fn null_fractional_object_and_oversized_ids_are_refused() {
        let long = format!("\"{}\"", "x".repeat(257));
        for id in ["null", "1.5", "1.0", "1e3", "{}", "[]", "true", &long] {
            let error =
                read(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)).unwrap_err();
            assert!(matches!(error.fault, Fault::Envelope(_)), "{id}");
        }
    }

    /// Zed writes so in `notifications/initialized`, and VS Code takes any 400 for the end of its session.
    #[test]
    fn params_that_are_nothing_are_not_there() {
        let both = [
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":null}"#,
        ];
        for text in both {
            let params = match read(text) {
                Ok(Message::One(Frame::Request(request))) => request.params,
                Ok(Message::One(Frame::Notification(told))) => told.params,
                other => panic!("{text}: {other:?}"),
            };
            assert!(params.is_none(), "{text}");
        }
    }

    #[test]
    fn envelope_names_that_only_look_right_are_refused() {
        for name in ["Method", "METHOD", "\\uff4dethod", "\u{212a}"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","{name}":"x"}}"#);
            let refused = matches!(
                read(&text),
                Err(DecodeError {
                    fault: Fault::Confusable,
                    id: Some(_),
                    ..
                })
            );
            assert_eq!(refused, name != "\u{212a}", "{name}");
        }
    }

    #[test]
    fn a_request_that_is_too_much_or_says_something_twice_is_refused_with_its_id() {
        let id = |text: &str| {
            let limits = Limits {
                depth: 3,
                values: 9,
                members: 4,
                key_bytes: 8,
                number_bytes: 8,
            };
            let error = decode(Bytes::copy_from_slice(text.as_bytes()), &limits).unwrap_err();
            let id = error.id.map(|id| id.as_str().to_owned());
            (error.fault.reason(), id)
        };
        for (params, reason) in [
            (r#"{"a":[[1]]}"#, "too_deep"),
            ("{\"a\":[1,2,3,4,5,6]}", "too_many_values"),
            (r#"{"a":1,"b":1,"c":1,"d":1,"e":1}"#, "too_many_members"),
            (r#"{"too_long_a_key":1}"#, "key_too_long"),
            (r#"{"a":123456789}"#, "number_too_long"),
            (r#"{"a":1,"a":2}"#, "duplicate_member"),
        ] {
            for spelled in ["7", r#""a\"b""#] {
                let before = format!(r#"{{"id":{spelled},"method":"m","params":{params}}}"#);
                assert_eq!(id(&before), (reason, Some(spelled.to_owned())));
                let behind = format!(r#"{{"params":{params},"method":"m","id":{spelled}}}"#);
                assert_eq!(id(&behind), (reason, Some(spelled.to_owned())));
                // It asks nothing, so that nobody waits for an answer.
                let answer = format!(r#"{{"id":{spelled},"result":{params}}}"#);
                assert_eq!(id(&answer), (reason, None));
            }
        }
        for nobody in [
            r#"{"id":1,"id":2,"method":"m"}"#,
            r#"{"id":1,"\u0069d":2,"method":"m"}"#,
            r#"{"id":1.5,"method":"m","method":"m"}"#,
            r#"{"id":null,"method":"m","method":"m"}"#,
            r#"{"id":{"a":[1]},"method":"m","method":"m"}"#,
            r#"{"id":123456789,"method":"m"}"#,
            r#"{"method":"m","params":{"id":1,"id":1}}"#,
            r#"[{"id":1,"method":"m","method":"m"}]"#,
            // This is no JSON.
            r#"{"id":1,"method":"m","params":{"a":NaN}}"#,
            "{\"id\":1,\"method\":\"m\"",
        ] {
            assert_eq!(id(nobody).1, None, "{nobody}");
        }
    }

    #[test]
    fn what_is_neither_request_nor_response_is_refused_with_its_id() {
        for text in [
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            r#"{"id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
        ] {
            assert_eq!(read(text).unwrap_err().id.unwrap().as_str(), "1", "{text}");
        }
        for text in [
            "[]",
            "1",
            "\"x\"",
            "null",
            "[1]",
            r#"{"jsonrpc":"2.0","result":{}}"#,
        ] {
            assert!(
                matches!(read(text).unwrap_err().fault, Fault::Envelope(_)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_response_that_is_none_still_names_what_it_was_to_answer() {
        let answered = |text: &str| {
            let ids = read(text).unwrap_err().answered;
            ids.iter()
                .map(|id| id.as_str().to_owned())
                .collect::<Vec<_>>()
        };
        for rest in [
            r#""result":null"#,
            r#""result":"x""#,
            r#""error":"no""#,
            r#""error":{"code":"x"}"#,
            r#""error":{"code":1}"#,
            r#""result":{},"error":{"code":1,"message":"m"}"#,
            r#""result":{},"Error":1"#,
            r#""params":{}"#,
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":"q",{rest}}}"#);
            assert_eq!(answered(&text), [r#""q""#], "{text}");
        }
        assert_eq!(answered(r#"{"id":"q","result":{}}"#), [r#""q""#]);
        // Of a batch that is refused nothing is taken, so that what is sound in it is no answer either.
        let batch = r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":0},{"jsonrpc":"2.0","id":3,"method":"m"},4]"#;
        assert_eq!(answered(batch), ["1", "2"]);
        for nothing in [
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":0}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"result":0}"#,
            r#"{"jsonrpc":"2.0","result":0}"#,
            "[]",
            "1",
            "{",
        ] {
            assert!(answered(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn responses_and_batches_are_read() {
        let Ok(Message::Batch(frames)) = read(
            r#"[{"jsonrpc":"2.0","id":1,"result":{"a":1}},{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x","data":[1]}},{"jsonrpc":"2.0","method":"n"}]"#,
        ) else {
            panic!()
        };
        assert!(matches!(
            &frames[0],
            Frame::Response(Response {
                id: Some(_),
                body: Ok(_)
            })
        ));
        assert!(matches!(
            &frames[1],
            Frame::Response(Response {
                id: None,
                body: Err(RpcError { code: -1, .. })
            })
        ));
        assert!(matches!(&frames[2], Frame::Notification(_)));
    }

    #[test]
    fn equal_ids_compare_by_meaning_and_type() {
        let id =
            |text: &str| match read(&format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"m"}}"#)) {
                Ok(Message::One(Frame::Request(request))) => request.id,
                other => panic!("{other:?}"),
            };
        assert!(id("\"ab\"").same(&id("\"a\\u0062\"")));
        assert!(!id("1").same(&id("\"1\"")));
    }
}
