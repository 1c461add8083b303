//! What is used: tools, prompts and resources as policy sees them, handed in by whoever holds the catalog.

use std::sync::Arc;

use super::Action;
use crate::{json::Json, protocol::UpstreamId};

/// What sort of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKind {
    /// A tool: `Tool::"outward name"`.
    Tool,
    /// A prompt: `Prompt::"outward name"`.
    Prompt,
    /// A resource: `Resource::"outward URI"`.
    Resource,
    /// A resource template: a `Resource` whose URI is open. Only listed; what it expands to is asked about as a resource.
    Template,
}

impl ItemKind {
    /// What can be done with such an item.
    pub const fn uses(self) -> &'static [Action] {
        match self {
            Self::Tool => &[Action::Call],
            Self::Prompt => &[Action::Get, Action::Complete],
            Self::Resource | Self::Template => &[Action::Read, Action::Subscribe, Action::Complete],
        }
    }
}

/// One item of the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What sort.
    pub kind: ItemKind,
    /// Whose.
    pub upstream: UpstreamId,
    /// Its name, URI or URI template as the endpoint that serves every upstream lists it: policies know it by this. Unique
    /// among items of its kind.
    pub outward: Arc<str>,
    /// What its upstream calls it. Unique among items of its kind and upstream.
    pub local: Arc<str>,
    /// Tags that the operator gave it.
    pub tags: Vec<Arc<str>>,
    /// Annotations that the operator pinned.
    pub pinned: Hints,
    /// Annotations that the upstream claims. Never an input to a permit (SECURITY AUTHZ-11).
    pub claimed: Hints,
    /// The configured toolsets it is in.
    pub toolsets: Vec<Arc<str>>,
    /// A tool's `inputSchema`; a prompt's `arguments`; `None` for the others, or where there is none.
    pub schema: Option<Json>,
}

/// What a tool does to the world, as far as somebody says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy.
    pub destructive: Option<bool>,
    /// Twice is as good as once.
    pub idempotent: Option<bool>,
    /// It reaches outside a closed world.
    pub open_world: Option<bool>,
}

impl Hints {
    /// Each with its name in policies.
    pub(super) const fn pairs(self) -> [(&'static str, Option<bool>); 4] {
        [
            ("read_only", self.read_only),
            ("destructive", self.destructive),
            ("idempotent", self.idempotent),
            ("open_world", self.open_world),
        ]
    }
}

impl Subject<'_> {
    /// As what it is decided about: what a template's text is read as, is a resource.
    pub(super) const fn as_used(self, action: Action) -> Self {
        match (self.kind, action) {
            (ItemKind::Template, Action::Read | Action::Subscribe) => Self {
                kind: ItemKind::Resource,
                ..self
            },
            _ => self,
        }
    }
}

/// Which item is asked about. One that was not handed in, such as a URI that no list has, has neither tags nor toolsets.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What sort.
    pub kind: ItemKind,
    /// Whose.
    pub upstream: &'a UpstreamId,
    /// What its upstream calls it: the exact string that is sent there (SECURITY AUTHZ-9).
    pub local: &'a str,
    /// As the endpoint that serves every upstream would spell it. Read only for an item that was not handed in.
    pub outward: &'a str,
}
