//! What a client says it can do.

use crate::json::{Json, Kind};

/// A client's declared capabilities: the object as sent, shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCapabilities(Json);

impl ClientCapabilities {
    /// None at all.
    pub const NONE: Self = Self(Json::empty_object());

    /// The capabilities in `object`, if it is an object.
    pub fn read(object: Json) -> Option<Self> {
        (object.root().kind() == Kind::Object).then_some(Self(object))
    }

    /// The object as sent.
    pub const fn json(&self) -> &Json {
        &self.0
    }

    /// Whether a capability of this name is declared.
    pub fn has(&self, name: &str) -> bool {
        self.0
            .root()
            .member(name)
            .is_some_and(|value| value.kind() == Kind::Object)
    }
}
