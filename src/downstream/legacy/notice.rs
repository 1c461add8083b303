//! What a session tells its client of its own accord.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    call::Change,
    json::Json,
    jsonrpc::encode,
    protocol::{meta, methods, methods::ListKind},
};

/// One thing to tell; equal ones that wait are told once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// `notifications/{tools,prompts,resources}/list_changed`, by method.
    List(&'static str),
    /// `notifications/resources/updated`
    Updated {
        /// Of what.
        uri: Arc<str>,
        /// What is watched: the same, or what that lies below.
        watched: Arc<str>,
    },
    /// `notifications/elicitation/complete`, of the page that the client knows by this id.
    Visited(Arc<str>),
}

impl Notice {
    /// The notice of a list of this kind.
    pub(super) const fn list(kind: ListKind) -> Self {
        Self::List(kind.changed())
    }

    /// The notice that a watched resource is not as it was.
    pub(super) fn updated(watched: Arc<str>) -> Self {
        let uri = watched.clone();
        Self::Updated { uri, watched }
    }

    /// What a session says of a change that it hears because it watches this, if anything; `None` where its era has no word for it.
    pub(super) fn of(change: Change, watched: Option<&Arc<str>>) -> Option<Self> {
        match change {
            Change::List(kind) => Some(Self::list(kind)),
            Change::Resource(uri) => {
                let watched = watched.unwrap_or(&uri).clone();
                Some(Self::Updated { uri, watched })
            }
            Change::Task(_) => None,
        }
    }

    /// The frame.
    pub(super) fn frame(&self) -> Bytes {
        match self {
            Self::List(method) => encode::notification(method, None),
            Self::Updated { uri, .. } => encode::notification(
                methods::RESOURCE_UPDATED,
                Some(&meta::object_of(&[("uri", Json::string(uri))])),
            ),
            Self::Visited(id) => encode::notification(
                methods::ELICITATION_COMPLETE,
                Some(&meta::object_of(&[("elicitationId", Json::string(id))])),
            ),
        }
    }
}
