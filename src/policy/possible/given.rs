//! What a request brings, as values of conditions: exact where they are compared here, open where Cedar must be asked.

use std::borrow::Cow;

use super::{
    EvalContext, Outcomes,
    value::Value::{self, Bool, Fails, Open},
};
use crate::policy::represent::Held;

impl<'a> EvalContext<'a> {
    /// A member of the context; it fails where it is not there.
    pub(super) fn given(&self, name: &str) -> Value<'a> {
        let Some(given) = self.given else {
            return Open;
        };
        let text = |text: &'a str| Value::Text(Cow::Borrowed(text));
        match name {
            "args" => given.args.as_ref().map_or(Fails, Value::of),
            "text" => given.tags.as_deref().map_or(Fails, Value::Tags),
            "scopes" => Value::Texts(&given.scopes),
            "client" => given.client.map_or(Fails, text),
            "revision" => text(given.revision),
            "toolset" => given.toolset.map_or(Fails, text),
            // What these are compared with are functions of Cedar.
            "address" => given.address.map_or(Fails, |_| Open),
            "time" => Open,
            _ => Fails,
        }
    }
}

impl<'a> Value<'a> {
    /// A value that was sent.
    pub(super) fn of(held: &'a Held<'a>) -> Self {
        match held {
            Held::Bool(value) => Bool(Outcomes::of(*value)),
            Held::Long(value) => Value::Long(*value),
            Held::Text(text) => Value::Text(Cow::Borrowed(text)),
            Held::Set(_) | Held::Record(_) => Value::Held(held),
        }
    }

    /// Whether it is a set of which it can be told what is in it.
    pub(super) const fn is_set(&self) -> bool {
        matches!(
            self,
            Value::Set(_) | Value::Some(_) | Value::Texts(_) | Value::Held(Held::Set(_))
        )
    }

    /// `self.getTag(name)`
    pub(super) fn tag(&self, name: &Self) -> Self {
        match self.tagged(name) {
            Some(Some(text)) => Value::Text(Cow::Borrowed(text)),
            Some(None) => Fails,
            None => Open,
        }
    }

    /// `self.hasTag(name)`
    pub(super) fn has_tag(&self, name: &Self) -> Self {
        match self.tagged(name) {
            Some(found) => Bool(Outcomes::of(found.is_some())),
            None => Open,
        }
    }

    /// The text under a tag, if it has one; `None` where that is not known.
    fn tagged(&self, name: &Self) -> Option<Option<&'a str>> {
        let (Value::Tags(tags), Value::Text(name)) = (self, name) else {
            return None;
        };
        let (_, text) = tags.iter().find(|(tag, _)| tag == name)?;
        Some(text.as_deref())
    }
}

impl Held<'_> {
    /// A member of a record.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let Held::Record(members) = self else {
            return None;
        };
        let found = members.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    }
}
