//! The configuration as it stands in its file, for operators to look at: with references where references stand, and nothing
//! in the place of what may be a secret.
//!
//! Guarantees: no value that a reference led to is in it (SECURITY 10). Deliberately absent: defaults, which nobody wrote.

use std::fmt;

use super::tree::{Entry, Node, Origin, Scalar, Value};
use crate::json::{Edits, Fate, Json};

/// Stands for a value that is not shown.
pub(super) const SET: &str = "(set)";

/// A configuration as it stands in its file, with what it includes.
#[derive(Clone)]
pub struct Loaded(Json);

impl Loaded {
    pub(super) fn of(tree: &Node) -> Self {
        Self(shown(tree, false))
    }

    /// As an object; `${env:NAME}` and `${file:/path}` where those stand, `(set)` for the environment of programs.
    pub const fn json(&self) -> &Json {
        &self.0
    }

    /// The same with the limits of another one, in their old place: the same limits make no difference.
    #[must_use]
    pub fn with_limits_of(&self, other: &Self) -> Self {
        let limits = other.0.root().member("limits");
        let limits = limits.map(|limits| other.0.slice(limits));
        Self(limited(&self.0, limits.as_ref()))
    }

    /// Whether they say the same of everything but limits.
    pub fn differs_in_limits_alone(&self, other: &Self) -> bool {
        limited(&self.0, None) == limited(&other.0, None)
    }
}

impl Default for Loaded {
    fn default() -> Self {
        Self(Json::empty_object())
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loaded(..)")
    }
}

/// The same with these limits, or with none.
fn limited(json: &Json, limits: Option<&Json>) -> Json {
    let mut edits = Edits::new();
    let has_some = json.root().member("limits").is_some();
    let anew = limits.filter(|_| !has_some);
    let anew = anew.map(|limits| ("limits", limits.clone()));
    edits.members(
        json.root(),
        |name, _| match name {
            "limits" => limits.cloned().map_or(Fate::Remove, Fate::Replace),
            _ => Fate::Keep,
        },
        anew.as_slice(),
    );
    json.splice(&edits)
}

/// `hidden`: what is written here is not shown either.
fn shown(node: &Node, hidden: bool) -> Json {
    match &node.value {
        Value::Scalar(scalar) => self::scalar(scalar, hidden),
        Value::List(items) => {
            let items: Vec<Json> = items.iter().map(|item| shown(item, hidden)).collect();
            Json::array(&items)
        }
        Value::Map(entries) => {
            let member = |entry: &Entry| {
                // Nobody has to call the environment of a program a secret.
                let hidden = hidden || matches!(entry.key.as_str(), "env" | "headers");
                (Json::string(&entry.key), shown(&entry.node, hidden))
            };
            let members: Vec<_> = entries.iter().map(member).collect();
            object(&members)
        }
    }
}

fn scalar(scalar: &Scalar, hidden: bool) -> Json {
    match &scalar.origin {
        Origin::Referenced { written, .. } => Json::string(written),
        Origin::Written if scalar.is_null() => Json::literal("null"),
        Origin::Written if hidden => Json::string(SET),
        Origin::Written if scalar.plain => plain(scalar.text.as_str()),
        Origin::Written => Json::string(&scalar.text),
    }
}

/// What stands without quotes may be a number or a truth value.
fn plain(text: &str) -> Json {
    match text {
        "true" => Json::literal("true"),
        "false" => Json::literal("false"),
        _ => match text.parse::<i64>() {
            Ok(number) => Json::of(&number),
            Err(_) => Json::string(text),
        },
    }
}

fn object(members: &[(Json, Json)]) -> Json {
    let mut text = String::from("{");
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(key.as_str());
        text.push(':');
        text.push_str(value.as_str());
    }
    text.push('}');
    // Each part is a value, and keys of a mapping are each there once.
    Json::composed(text.into())
}
