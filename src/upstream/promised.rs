//! What a server promises to tell of, in either era: changes of lists, and of single resources.

use crate::{call::ServerCard, events::Lists, json::Node, protocol::methods::ListKind};

/// What a server promises to tell of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Promised {
    /// Lists.
    pub(super) lists: Lists,
    /// Resources that it is asked to watch.
    pub(super) resources: bool,
}

impl Promised {
    /// What its card says.
    pub(super) fn of(card: &ServerCard) -> Self {
        let root = card.capabilities.root();
        let promises = |capability: &str, what: &str| {
            let capability = root.member(capability);
            capability
                .and_then(|capability| capability.member(what))
                .and_then(Node::as_bool)
                == Some(true)
        };
        let lists = [
            ("tools", ListKind::Tools),
            ("prompts", ListKind::Prompts),
            ("resources", ListKind::Resources),
        ];
        Self {
            lists: lists
                .into_iter()
                .filter(|(capability, _)| promises(capability, "listChanged"))
                .fold(Lists::NONE, |set, (_, kind)| set | Lists::of(kind)),
            resources: promises("resources", "subscribe"),
        }
    }
}
