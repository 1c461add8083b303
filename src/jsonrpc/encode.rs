//! Frames to bytes: the only place that writes an envelope.

use bytes::{BufMut, Bytes, BytesMut};

use super::{RequestId, RpcError};
use crate::json::Json;

/// A request frame in one allocation; `params` is copied once.
pub fn request(id: &RequestId, method: &str, params: &Json) -> Bytes {
    let mut out = BytesMut::with_capacity(64 + method.len() + params.len() + id.as_str().len());
    out.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.put_slice(id.as_str().as_bytes());
    method_and_params(&mut out, method, Some(params));
    out.freeze()
}

/// A notification frame.
pub fn notification(method: &str, params: Option<&Json>) -> Bytes {
    let mut out = BytesMut::with_capacity(64 + method.len() + params.map_or(0, Json::len));
    out.put_slice(b"{\"jsonrpc\":\"2.0\"");
    method_and_params(&mut out, method, params);
    out.freeze()
}

fn method_and_params(out: &mut BytesMut, method: &str, params: Option<&Json>) {
    out.put_slice(b",\"method\":");
    out.put_slice(Json::string(method).bytes());
    if let Some(params) = params {
        out.put_slice(b",\"params\":");
        out.put_slice(params.bytes());
    }
    out.put_u8(b'}');
}

/// A result frame as segments: the envelope's head, the result's own bytes uncopied, the envelope's tail.
pub fn result(id: &RequestId, result: &Json) -> [Bytes; 3] {
    [
        result_head(id),
        result.bytes().clone(),
        Bytes::from_static(b"}"),
    ]
}

/// What stands before a result: for results that are themselves made of segments. Close with `}`.
pub fn result_head(id: &RequestId) -> Bytes {
    let mut out = BytesMut::with_capacity(40 + id.as_str().len());
    out.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.put_slice(id.as_str().as_bytes());
    out.put_slice(b",\"result\":");
    out.freeze()
}

/// An error frame; without an id where the request's could not be read.
pub fn error(id: Option<&RequestId>, error: &RpcError) -> Bytes {
    let body = error.to_json();
    let mut out = BytesMut::with_capacity(64 + body.len());
    out.put_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        out.put_slice(b",\"id\":");
        out.put_slice(id.as_str().as_bytes());
    }
    out.put_slice(b",\"error\":");
    out.put_slice(body.bytes());
    out.put_u8(b'}');
    out.freeze()
}
