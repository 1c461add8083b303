//! JSON Schema, run over the bytes of a value: what a tool says its arguments and results are, held to (SECURITY MSG-12).
//!
//! Guarantees: a schema is laid out once and then only read; checking a value builds no tree of it, compares numbers exactly
//! whatever their digits, fetches nothing, and ends within a number of steps ([`STEPS`]) that hold for every schema and every
//! value, nested or self-referring as they may be; patterns run in linear time. What cannot be judged (a pattern that looks
//! around, a dialect that nobody knows) is neither kept nor broken: that holds through `not`, `oneOf` and `if`, so that no value
//! is refused, and no broken one let through, because of it. What is told of a broken value names its place and what the schema
//! wants there, never the value, and where the value is somebody else's no name that the schema does not have.
//!
//! Dialects: 2020-12, 2019-09, draft-07, draft-06, draft-04; the first where none is named. `format` and content keywords are
//! annotations. Deliberately absent: whether a schema is one, which the meta-schemas say, and the bounds on its size, which
//! `catalog` holds.

mod address;
mod compile;
mod dialect;
mod ecma;
mod inside;
mod notes;
mod pattern;
mod plain;
mod rule;
mod run;
#[cfg(test)]
mod tests;
mod told;

use std::time::Duration;

use crate::json::Node;

pub use compile::Faulty;
pub use ecma::is_ecma_pattern;

use notes::Three;
use rule::Rule;

/// The most steps of one check: visits of a subschema at a value, members, elements, and pieces of text. About 20 ms, and half
/// a second at worst, with patterns and texts made to be slow together.
pub const STEPS: u32 = 500_000;

/// The steps that a check may take in this time, by the measure of [`STEPS`].
pub fn steps_in(time: Duration) -> u32 {
    let each = u128::from(STEPS) / 20;
    u32::try_from(time.as_millis() * each).unwrap_or(u32::MAX)
}

/// A schema, laid out to be checked against.
#[derive(Debug)]
pub struct Schema {
    /// The first is the root.
    rules: Vec<Rule>,
    /// Whether some subschema asks what others have looked at.
    tracks: bool,
    /// What of it cannot be judged.
    gap: Option<Gap>,
}

/// What of a schema cannot be judged here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Gap {
    /// A pattern that no engine of linear time takes, such as one that looks ahead, or that is too large for one.
    #[error(
        "has a pattern that cannot be matched in linear time or is too large, which is not checked"
    )]
    Pattern,
    /// A dialect that is not known.
    #[error("is of a dialect that is not known, and is not checked")]
    Dialect,
    /// A reference to a meta-schema, or one that depends on who refers.
    #[error("has a reference to a meta-schema, or a dynamic one, which is not checked")]
    Reference,
}

/// How a value stands to a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It conforms.
    Fits,
    /// Nothing that can be judged is broken, and something cannot be judged.
    Unjudged,
    /// It does not conform: at least one place, at most [`TOLD`].
    Broken(Vec<Problem>),
    /// Judging it would take too long, or it holds a number that nothing can be said of.
    TooMuch,
}

/// The most places that are told of.
pub const TOLD: usize = 5;

/// One place where a value is not what its schema wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: a JSON pointer, without control characters; empty for the whole value. It is shortened between names, so that none is told
    /// in part, and holds those that [`Names`] says.
    pub path: String,
    /// What the schema wants there, in words: `must be an integer`.
    pub wanted: String,
}

/// Which names of a value's members are told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// All: whoever is told wrote them.
    All,
    /// Those that the schema names; `*` stands for any other, which is the text of whoever wrote the value, and was not looked at.
    Known,
}

impl Schema {
    /// Lays a schema out. Cost: its size for each level it nests, and a bounded time for its patterns; keep it.
    ///
    /// # Errors
    /// [`Faulty`] when it refers to nothing, to elsewhere, or to itself without end.
    pub fn compile(schema: Node<'_>) -> Result<Self, Faulty> {
        compile::compile(schema)
    }

    /// What of it cannot be judged, if anything.
    pub const fn gap(&self) -> Option<Gap> {
        self.gap
    }

    /// How `value` stands to it. `steps` may be less than [`STEPS`].
    pub fn check(&self, value: Node<'_>, steps: u32, names: Names) -> Verdict {
        run::check(self, value, steps, names, &[])
    }

    /// The same where members of these names may stand at the root of `value` though the root forbids all that it does not know,
    /// and does not know them.
    pub fn check_beside(
        &self,
        value: Node<'_>,
        steps: u32,
        names: Names,
        strangers: &'static [&'static str],
    ) -> Verdict {
        run::check(self, value, steps, names, strangers)
    }

    /// Whether nothing in `value` is broken; what cannot be judged, or not in time, is not.
    pub fn conforms(&self, value: Node<'_>, steps: u32) -> bool {
        matches!(
            run::fits(self, value, steps),
            Some(Three::Yes | Three::Unknown)
        )
    }
}
