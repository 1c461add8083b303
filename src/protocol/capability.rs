//! What a client says it can do.

use crate::json::{Edits, Fate, Json, Kind, Node};

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

    /// The same in bytes of its own, to be kept longer than the message it came in.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(self.0.detached())
    }

    /// Whether a capability of this name is declared.
    pub fn has(&self, name: &str) -> bool {
        self.0
            .root()
            .member(name)
            .is_some_and(|value| value.kind() == Kind::Object)
    }

    /// The same without those whose names are `gone`.
    #[must_use]
    pub fn without(&self, gone: impl Fn(&str) -> bool) -> Self {
        let mut edits = Edits::new();
        let fate = |key: &str, _: Node<'_>| {
            if gone(key) { Fate::Remove } else { Fate::Keep }
        };
        edits.members(self.0.root(), fate, &[]);
        Self(self.0.splice(&edits))
    }

    /// Whether everything in the object `needed` is declared, sub-capabilities and extensions included. An elicitation
    /// capability that names no mode means forms (PROTOCOL A5).
    pub fn cover(&self, needed: &Json) -> bool {
        covers(self.0.root(), needed.root())
    }
}

fn covers(declared: Node<'_>, needed: Node<'_>) -> bool {
    needed.members().all(|need| {
        declared.member(&need.key).is_some_and(|own| {
            let forms = need.key == "elicitation" && own.members().next().is_none();
            own.kind() == need.value.kind()
                && (covers(own, need.value)
                    || forms && need.value.members().all(|mode| mode.key == "form"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    #[test]
    fn capabilities_cover_what_is_declared_down_to_extensions() {
        let json = |text: &'static str| Json::parse(text.into(), &Limits::CLIENT).unwrap();
        let declared = r#"{"sampling":{"tools":{}},"extensions":{"a/b":{"x":1}}}"#;
        let declared = ClientCapabilities::read(json(declared)).unwrap();
        for (needed, covered) in [
            ("{}", true),
            (r#"{"sampling":{}}"#, true),
            (r#"{"sampling":{"tools":{}},"extensions":{"a/b":{}}}"#, true),
            (r#"{"sampling":{"context":{}}}"#, false),
            (r#"{"extensions":{"c/d":{}}}"#, false),
            (r#"{"sampling":{},"roots":{}}"#, false),
        ] {
            assert_eq!(declared.cover(&json(needed)), covered, "{needed}");
        }
        let forms = ClientCapabilities::read(json(r#"{"elicitation":{}}"#)).unwrap();
        assert!(forms.cover(&json(r#"{"elicitation":{"form":{}}}"#)));
        assert!(!forms.cover(&json(r#"{"elicitation":{"url":{}}}"#)));
    }
}
