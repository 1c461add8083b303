//! JSON-RPC messages of the demo servers: reading one, and writing answers.
//!
//! Guarantees that a request's id is a string or an integer and that its params are an object. Does not read batches:
//! none of the three revisions has them.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use serde_json::{Value, json};

/// A JSON object.
pub(super) type Object = serde_json::Map<String, Value>;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;

/// One message from a client.
#[derive(Debug)]
pub(super) enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Object,
    },
    Response {
        id: Value,
        body: Result<Value, Value>,
    },
}

/// A request: what `id` asked for `method`.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Object,
}

/// A JSON-RPC error: the answer to a request that cannot be served.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Refusal {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code,
            message,
            data: None,
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(super) fn no_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("method not found: {method}"))
    }

    pub(super) fn with(self, data: Value) -> Self {
        Self {
            data: Some(data),
            ..self
        }
    }

    /// The whole error message; `id` is left out when it could not be read.
    pub(super) fn frame(&self, id: Option<&Value>) -> Value {
        let mut frame = json!({"jsonrpc": "2.0"});
        if let Some(id) = id {
            frame["id"] = id.clone();
        }
        frame["error"] = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            frame["error"]["data"] = data.clone();
        }
        frame
    }
}

/// The whole message that answers `id` with `result`.
pub(super) fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A whole notification.
pub(super) fn notification(method: &str, params: Option<Value>) -> Value {
    match params {
        Some(params) => json!({"jsonrpc": "2.0", "method": method, "params": params}),
        None => json!({"jsonrpc": "2.0", "method": method}),
    }
}

/// Reads one message.
///
/// # Errors
/// The whole message to answer with, under the id where one could be read.
pub(super) fn parse(bytes: &[u8]) -> Result<Message, Value> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("the message is not JSON: {error}");
        Refusal::new(PARSE_ERROR, message).frame(None)
    })?;
    let Value::Object(mut frame) = value else {
        let message = "the message is not one JSON-RPC object";
        return Err(Refusal::new(INVALID_REQUEST, message).frame(None));
    };
    let given = frame.remove("id");
    let id = given.clone().filter(is_id);
    let refuse = |message: &str| Err(Refusal::new(INVALID_REQUEST, message).frame(id.as_ref()));
    if frame.get("jsonrpc") != Some(&json!("2.0")) {
        return refuse("`jsonrpc` is not \"2.0\"");
    }
    if given.is_some() && id.is_none() {
        return refuse("`id` is neither a string nor an integer");
    }
    let method = match frame.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return refuse("`method` is not a string"),
        None => {
            let body = match (frame.remove("result"), frame.remove("error")) {
                (Some(result), None) => Ok(result),
                (None, Some(error)) => Err(error),
                (None, None) | (Some(_), Some(_)) => {
                    return refuse("the message is neither a request nor a response");
                }
            };
            return match id {
                Some(id) => Ok(Message::Response { id, body }),
                None => refuse("the response has no `id`"),
            };
        }
    };
    let params = match frame.remove("params") {
        None => Object::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return refuse("`params` is not an object"),
    };
    Ok(match id {
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification { method, params },
    })
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> (Option<Value>, i64) {
        let frame = parse(text.as_bytes()).expect_err("must be refused");
        let code = frame["error"]["code"].as_i64();
        (frame.get("id").cloned(), code.expect("a code"))
    }

    #[test]
    fn malformed_message_is_refused_with_the_id_where_there_is_one() {
        assert_eq!(refusal("{"), (None, PARSE_ERROR));
        assert_eq!(refusal("[]"), (None, INVALID_REQUEST));
        assert_eq!(
            refusal(r#"{"id":7,"method":"ping"}"#),
            (Some(json!(7)), INVALID_REQUEST)
        );
        assert_eq!(
            refusal(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#),
            (None, INVALID_REQUEST)
        );
        assert_eq!(
            refusal(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#),
            (None, INVALID_REQUEST)
        );
        assert_eq!(
            refusal(r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}"#),
            (Some(json!("a")), INVALID_REQUEST)
        );
        assert_eq!(
            refusal(r#"{"jsonrpc":"2.0","id":"a"}"#),
            (Some(json!("a")), INVALID_REQUEST)
        );
    }

    #[test]
    fn response_is_told_from_request_and_notification() {
        let response = parse(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#);
        assert!(matches!(
            response,
            Ok(Message::Response { body: Err(_), .. })
        ));
        let request = parse(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert!(matches!(request, Ok(Message::Request(_))));
        let notification = parse(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(notification, Ok(Message::Notification { .. })));
    }
}
