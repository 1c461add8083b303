//! One request, as operations see it: whose it is, what it says, and what it shares with others.

use std::sync::Arc;

use super::{Gateway, Role, follow::Seats, paging::Query, search::Searches};
use crate::{json::Json, tasks::Tasks};

/// One request, as operations see it.
pub(super) struct Asked {
    pub(super) gateway: Arc<Gateway>,
    pub(super) bench: Arc<Bench>,
    /// As what they come; `None`: without a credential.
    pub(super) role: Option<Role>,
    /// Whether only this machine reaches the listener.
    pub(super) private: bool,
    /// The segments that names in the path stand for.
    pub(super) names: Vec<String>,
    pub(super) query: Query,
    /// The body; an empty object where there is none.
    pub(super) body: Json,
}

/// What is shared by requests that take long.
pub(super) struct Bench {
    pub(super) tasks: Tasks,
    /// Searches of the audit log.
    pub(super) searches: Searches,
    /// Event streams at once.
    pub(super) streams: Seats,
}

impl Asked {
    /// The segment that the first name in the path stands for.
    pub(super) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }
}
