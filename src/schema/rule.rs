//! Rules: a subschema as it is checked, by kinds of values.

use std::sync::Arc;

use hashbrown::HashMap;

use super::pattern::Pattern;
use crate::json::{Decimal, Kind, Node};

/// A rule's place in [`super::Schema`].
pub(super) type Id = usize;

/// One subschema.
#[derive(Debug)]
pub(super) enum Rule {
    /// Everything conforms.
    Always,
    /// Nothing does.
    Never,
    /// Nobody knows.
    Unknown,
    /// Whatever keeps all of these.
    All(Box<Words>),
}

/// The keywords of one subschema.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// The kinds of values allowed.
    pub(super) types: Option<Types>,
    /// Each a list of canonical texts, of which the value's must be one: `enum`, `const`.
    pub(super) listed: Vec<Vec<String>>,
    /// Whether it refers to what is not known.
    pub(super) gap: bool,
    pub(super) numbers: Option<Box<Numbers>>,
    pub(super) texts: Option<Box<Texts>>,
    pub(super) items: Option<Box<Items>>,
    pub(super) members: Option<Box<Members>>,
    /// `$ref` and `allOf`.
    pub(super) all: Vec<Id>,
    pub(super) any: Option<Vec<Id>>,
    pub(super) one: Option<Vec<Id>>,
    pub(super) not: Option<Id>,
    /// `if`, `then`, `else`.
    pub(super) choice: Option<(Id, Option<Id>, Option<Id>)>,
    pub(super) unevaluated_items: Option<Id>,
    pub(super) unevaluated_members: Option<Id>,
}

/// A set of the seven types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Types(u8);

/// The types by name, and what they are called.
const TYPES: [(&str, &str); 7] = [
    ("string", "a string"),
    ("integer", "an integer"),
    ("number", "a number"),
    ("boolean", "true or false"),
    ("array", "an array"),
    ("object", "an object"),
    ("null", "null"),
];

#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) minimum: Option<Decimal>,
    pub(super) above: Option<Decimal>,
    pub(super) maximum: Option<Decimal>,
    pub(super) below: Option<Decimal>,
    pub(super) multiple: Option<Decimal>,
}

#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) pattern: Option<Arc<Pattern>>,
    /// Whether there is a pattern that cannot be judged.
    pub(super) gap: bool,
}

#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) unique: bool,
    pub(super) first: Vec<Id>,
    pub(super) rest: Option<Id>,
    pub(super) contains: Option<Contains>,
}

#[derive(Debug)]
pub(super) struct Contains {
    pub(super) rule: Id,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    /// Whether what it matches counts as looked at.
    pub(super) marks: bool,
}

#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    /// Those that the schema names.
    pub(super) named: HashMap<Box<str>, Named>,
    pub(super) required: Vec<Box<str>>,
    /// `None` for a pattern that cannot be judged.
    pub(super) patterned: Vec<(Option<Arc<Pattern>>, Id)>,
    pub(super) additional: Option<Id>,
    pub(super) names: Option<Id>,
    /// Where the first is, the others must be.
    pub(super) together: Vec<(Box<str>, Vec<Box<str>>)>,
    /// Where this is, the whole must keep that.
    pub(super) along: Vec<(Box<str>, Id)>,
}

/// What a schema says of a member that it names.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Named {
    pub(super) rule: Option<Id>,
    /// Its place among those required.
    pub(super) required: Option<usize>,
}

impl Types {
    /// Adds the one of this name.
    pub(super) fn add(&mut self, name: &str) {
        if let Some(at) = TYPES.iter().position(|(known, _)| *known == name) {
            self.0 |= 1 << at;
        }
    }

    /// Whether a value is of one of them. An integer is one by value, not by spelling; `None` when nobody can tell.
    pub(super) fn has(self, value: Node<'_>) -> Option<bool> {
        let has = |at: u8| self.0 & (1 << at) != 0;
        Some(match value.kind() {
            Kind::String => has(0),
            Kind::Number if has(2) => true,
            Kind::Number if !has(1) => false,
            Kind::Number => {
                let raw = value.raw_bytes();
                !raw.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
                    || Decimal::parse(value.raw())?.is_integer()
            }
            Kind::Bool => has(3),
            Kind::Array => has(4),
            Kind::Object => has(5),
            Kind::Null => has(6),
        })
    }

    /// What they are called, in one order.
    pub(super) fn words(self) -> impl Iterator<Item = &'static str> {
        let held = TYPES.iter().enumerate();
        held.filter(move |(at, _)| self.0 & (1 << at) != 0)
            .map(|(_, (_, word))| *word)
    }
}

impl Words {
    /// The rules that look at the same value, whatever it is.
    pub(super) fn in_place(&self) -> Vec<Id> {
        let mut all = self.all.clone();
        all.extend(self.any.iter().flatten());
        all.extend(self.one.iter().flatten());
        all.extend(self.not);
        if let Some((condition, then, otherwise)) = self.choice {
            all.push(condition);
            all.extend(then);
            all.extend(otherwise);
        }
        if let Some(members) = &self.members {
            all.extend(members.along.iter().map(|(_, id)| *id));
        }
        all
    }

    /// Whether nothing is asked of anything.
    pub(super) fn is_empty(&self) -> bool {
        self.types.is_none()
            && self.listed.is_empty()
            && !self.gap
            && self.numbers.is_none()
            && self.texts.is_none()
            && self.items.is_none()
            && self.members.is_none()
            && self.all.is_empty()
            && self.any.is_none()
            && self.one.is_none()
            && self.not.is_none()
            && self.choice.is_none()
            && self.unevaluated_items.is_none()
            && self.unevaluated_members.is_none()
    }
}
