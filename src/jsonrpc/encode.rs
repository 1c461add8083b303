//! Frames to bytes: the only place that writes an envelope.

use bytes::{BufMut, Bytes, BytesMut};

use super::{RequestId, RpcError};
use crate::json::{Json, push_string};

/// A request frame in one allocation; `params` is copied once.
pub fn request(id: &RequestId, method: &str, params: &Json) -> Bytes {
    const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
    // Exactly as much as is needed, so that nothing is kept beside it.
    let rest = method_and_params_bytes(method, Some(params));
    let mut out = Vec::with_capacity(HEAD.len() + id.bytes().len() + rest);
    out.extend_from_slice(HEAD);
    out.extend_from_slice(id.bytes());
    method_and_params(&mut out, method, Some(params));
    out.into()
}

/// A notification frame.
pub fn notification(method: &str, params: Option<&Json>) -> Bytes {
    const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\"";
    let mut out = Vec::with_capacity(HEAD.len() + method_and_params_bytes(method, params));
    out.extend_from_slice(HEAD);
    method_and_params(&mut out, method, params);
    out.into()
}

const METHOD: &[u8] = b",\"method\":";
const PARAMS: &[u8] = b",\"params\":";

/// What [`method_and_params`] appends, for a method without anything to escape.
fn method_and_params_bytes(method: &str, params: Option<&Json>) -> usize {
    let params = params.map_or(0, |params| PARAMS.len() + params.len());
    METHOD.len() + method.len() + 2 + params + 1
}

fn method_and_params(out: &mut Vec<u8>, method: &str, params: Option<&Json>) {
    out.extend_from_slice(METHOD);
    push_string(out, method);
    if let Some(params) = params {
        out.extend_from_slice(PARAMS);
        out.extend_from_slice(params.bytes());
    }
    out.push(b'}');
}

/// A result frame as segments: the envelope's head, the result's own bytes uncopied, the envelope's tail.
pub fn result(id: &RequestId, result: &Json) -> [Bytes; 3] {
    [
        result_head(id, 0).into(),
        result.bytes().clone(),
        Bytes::from_static(b"}"),
    ]
}

/// What stands before a result, and room for so many bytes of it.
pub fn result_head(id: &RequestId, room: usize) -> Vec<u8> {
    const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
    const RESULT: &[u8] = b",\"result\":";
    let mut out = Vec::with_capacity(HEAD.len() + id.bytes().len() + RESULT.len() + room);
    out.extend_from_slice(HEAD);
    out.extend_from_slice(id.bytes());
    out.extend_from_slice(RESULT);
    out
}

/// The value of the last member of a result, behind which lies what closes the result and its frame: what is made once and sent
/// to many goes out in one piece.
#[derive(Clone, PartialEq, Eq)]
pub struct LastMember(Bytes);

impl LastMember {
    const CLOSE: &'static [u8] = b"}}";

    /// Of a value that `write` appends, which takes about so many bytes.
    pub fn of(room: usize, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut out = Vec::with_capacity(room + Self::CLOSE.len());
        write(&mut out);
        out.extend_from_slice(Self::CLOSE);
        Self(out.into())
    }

    /// The value alone.
    pub fn value(&self) -> Bytes {
        self.0.slice(..self.value_len())
    }

    /// How many bytes the value has.
    pub const fn value_len(&self) -> usize {
        self.0.len() - Self::CLOSE.len()
    }

    /// The value, and what closes the result and the frame.
    pub fn closed(self) -> Bytes {
        self.0
    }
}

impl std::fmt::Debug for LastMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value().fmt(f)
    }
}

/// An error frame; without an id where the request's could not be read.
pub fn error(id: Option<&RequestId>, error: &RpcError) -> Bytes {
    let body = error.to_json();
    let mut out = BytesMut::with_capacity(64 + body.len());
    out.put_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        out.put_slice(b",\"id\":");
        out.put_slice(id.bytes());
    }
    out.put_slice(b",\"error\":");
    out.put_slice(body.bytes());
    out.put_u8(b'}');
    out.freeze()
}
