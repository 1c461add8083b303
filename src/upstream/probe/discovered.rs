//! What the answer to a `server/discover` says of a server (PROTOCOL C2, C3).

use std::sync::Arc;

use http::StatusCode;

use crate::{
    json::{Json, Kind, Node},
    jsonrpc::RpcError,
    protocol::{Era, Revision, codes},
    upstream::{
        Deadline, Peer, UpstreamError,
        exchange::{self, AskOutcome},
        line::Line,
        modern::{self, Modern},
        transport::{Head, is_busy},
    },
};

/// What one `server/discover` led to.
pub(super) enum Discovered {
    Card(Arc<dyn Peer>),
    /// Ask again at this revision.
    Other(Revision),
    Older,
}

/// What the answer to a `server/discover` says, which was sent on `line`.
pub(super) fn discovered(
    asked: Result<AskOutcome, UpstreamError>,
    line: Arc<Line>,
    revision: Revision,
) -> Result<Discovered, UpstreamError> {
    match asked {
        Ok(AskOutcome::Result(_, result)) => {
            let card = exchange::complete(result.clone())
                .ok()
                .and_then(|_| modern::card(&result, revision));
            let versions = card
                .as_ref()
                .and_then(|_| versions(result.root().member("supportedVersions")));
            let (Some(card), Some(versions)) = (card, versions) else {
                return Ok(Discovered::Older);
            };
            match Mutual::of(&versions, revision) {
                Mutual::This => Ok(Discovered::Card(Arc::new(Modern::new(card, line)))),
                Mutual::Other(mutual) => Ok(Discovered::Other(mutual)),
                Mutual::OlderOnly => Ok(Discovered::Older),
                Mutual::None => Err(no_mutual()),
            }
        }
        Ok(AskOutcome::Error(head, error)) => {
            refused(&head, &error, revision, line.wire.streamable)
        }
        Ok(AskOutcome::Status(head)) if is_evidence(&head) => Ok(Discovered::Older),
        Ok(AskOutcome::Status(head)) => Err(exchange::bare(&head)),
        Err(UpstreamError::Timeout(_)) => Err(UpstreamError::Timeout(Deadline::Discover)),
        // A foreign body, a wrong content type, a notification for an answer: not a modern server.
        Err(UpstreamError::Protocol(_)) => Ok(Discovered::Older),
        Err(error) => Err(error),
    }
}

/// What an error to `server/discover` says.
fn refused(
    head: &Head,
    error: &RpcError,
    revision: Revision,
    streamable: bool,
) -> Result<Discovered, UpstreamError> {
    match error.code {
        codes::UNSUPPORTED_VERSION if !streamable || may_name_versions(head.status) => {
            let supported = error.data.as_ref().map(Json::root);
            let Some(versions) = versions(supported.and_then(|data| data.member("supported")))
            else {
                return Ok(Discovered::Older);
            };
            match Mutual::of(&versions, revision) {
                Mutual::This => Ok(Discovered::Other(revision)),
                Mutual::Other(mutual) => Ok(Discovered::Other(mutual)),
                Mutual::OlderOnly => Ok(Discovered::Older),
                Mutual::None => Err(no_mutual()),
            }
        }
        // With this status only a modern server has these; what it found wrong is ours to mend (PROTOCOL C2, H13). On a pipe, or
        // with another, the numbers are any server's own (PROTOCOL C3).
        codes::HEADER_MISMATCH | codes::MISSING_CAPABILITY
            if streamable && head.status == StatusCode::BAD_REQUEST =>
        {
            Err(UpstreamError::Refused(error.clone()))
        }
        _ if is_evidence(head) => Ok(Discovered::Older),
        _ => Err(exchange::bare(head)),
    }
}

/// Whether what refuses a version may say so with this status: a stateless server has 400 for that, or 200 where its stream had
/// begun; and 404 is nothing but a status before the message was looked at (PROTOCOL B1, C2).
fn may_name_versions(status: StatusCode) -> bool {
    status.is_success() || matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND)
}

/// Whether an answer with this status says anything about the era.
pub(super) fn is_evidence(head: &Head) -> bool {
    !head.status.is_server_error() && !is_busy(head.status.as_u16())
}

/// The texts of a list of versions, if it is one.
fn versions(list: Option<Node<'_>>) -> Option<Vec<String>> {
    list.filter(|list| list.kind() == Kind::Array)?
        .elements()
        .take(64)
        .map(|version| version.as_str().map(std::borrow::Cow::into_owned))
        .collect()
}

/// What a server's versions have in common with ours.
enum Mutual {
    /// The one asked for.
    This,
    /// Another modern one, the newest.
    Other(Revision),
    /// None, but some that the handshake can agree on.
    OlderOnly,
    None,
}

impl Mutual {
    fn of(versions: &[String], asked: Revision) -> Self {
        let known = || versions.iter().filter_map(|text| Revision::parse(text));
        if known().any(|revision| revision == asked) {
            return Self::This;
        }
        match known().max() {
            Some(newest) if newest.era() == Era::Modern => Self::Other(newest),
            Some(_) => Self::OlderOnly,
            None => Self::None,
        }
    }
}

fn no_mutual() -> UpstreamError {
    UpstreamError::Protocol("it serves no revision that is known here".into())
}
