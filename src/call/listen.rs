//! Listening: what a client wants to hear of, and what it then hears (PROTOCOL B7, D1).
//!
//! Both eras lower into this: `subscriptions/listen` as it is, a session's GET stream and its `resources/subscribe` as
//! listens of the session's own. A listen is a call whose reply begins with one acknowledgement and goes on with changes
//! until the caller drops it or the gateway ends it.

use std::sync::Arc;

use crate::{json::Json, protocol::methods::ListKind};

/// What a listen asks for, or what of it is in force. Names and URIs are outward ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Changes of the tool list.
    pub tools: bool,
    /// Changes of the prompt list.
    pub prompts: bool,
    /// Changes of the resource and template lists.
    pub resources: bool,
    /// Resources whose contents are watched, each once.
    pub subscriptions: Vec<Arc<str>>,
    /// Tasks whose state is watched: handles of ours, each once.
    pub tasks: Vec<Arc<str>>,
}

/// Something that is no longer as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A list is another one now. Templates are told as resources.
    List(ListKind),
    /// The contents of a resource, by outward URI; may lie below the watched one.
    Resource(Arc<str>),
    /// A task's state: params of the notification, with our handle in them.
    Task(Json),
}

impl Filter {
    /// The one resource that is watched, where nothing else is listened for.
    pub fn only(&self) -> Option<&Arc<str>> {
        let Self {
            tools: false,
            prompts: false,
            resources: false,
            subscriptions,
            tasks,
        } = self
        else {
            return None;
        };
        match (&subscriptions[..], &tasks[..]) {
            ([one], []) => Some(one),
            _ => None,
        }
    }

    /// Whether a change of this list is wanted.
    pub const fn wants(&self, kind: ListKind) -> bool {
        match kind {
            ListKind::Tools => self.tools,
            ListKind::Prompts => self.prompts,
            // Skills are served as resources, and no change of their list has a name of its own.
            ListKind::Resources | ListKind::Templates | ListKind::Skills => self.resources,
        }
    }
}
