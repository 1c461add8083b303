//! Why a gateway gave no result, whoever asks it and however that is shown.

use crate::{json::Node, jsonrpc::RpcError, protocol::codes};

/// Why a gateway gave no result.
#[derive(Debug)]
pub(super) enum Refused {
    /// It said so.
    Answer(RpcError),
    /// There was no answer.
    Silence(String),
}

impl Refused {
    /// Whether what was asked for is not there, by a gateway's own word for it or by that of a server asked directly.
    pub(super) fn is_unknown_name(&self) -> bool {
        let Self::Answer(error) = self else {
            return false;
        };
        let reason = error.data.as_ref().and_then(|data| {
            let reason = data.root().member("reason").and_then(Node::as_str)?;
            Some(reason.into_owned())
        });
        reason.map_or(error.code == codes::INVALID_PARAMS, |reason| {
            reason == "unknown_name"
        })
    }
}
