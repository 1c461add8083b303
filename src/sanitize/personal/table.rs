//! What national numbers look like and how their check digits are found: a table, one entry a kind.
//!
//! Guarantees: a check looks at digits only and never fails for a number of one of its shapes. Deliberately absent: where in a
//! text a number stands.

use super::{europe::EUROPE, world::WORLD};

/// One kind of number.
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// Shapes that need a word, and those that do not.
    pub(super) worded: &'static [&'static str],
    pub(super) alone: &'static [&'static str],
    pub(super) words: &'static [&'static str],
    pub(super) holds: fn(&[u8]) -> bool,
}

pub(super) const fn rule(
    name: &'static str,
    worded: &'static [&'static str],
    alone: &'static [&'static str],
    words: &'static [&'static str],
    holds: fn(&[u8]) -> bool,
) -> Rule {
    Rule {
        name,
        worded,
        alone,
        words,
        holds,
    }
}

/// A word of more than one as names in source have it: with an underscore, a dash or nothing where prose has a space.
pub(super) fn joined(word: &str) -> impl Iterator<Item = String> {
    let joints: &[&str] = match (word.contains(' '), word.len()) {
        (false, _) => &[],
        // Short ones would be other words: `sa id`.
        (true, ..8) => &["_", "-"],
        (true, _) => &["_", "-", ""],
    };
    joints.iter().map(|joint| word.replace(' ', joint))
}

/// Every rule, in the order of their numbers.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    EUROPE.iter().chain(WORLD)
}

/// How many there are.
pub(super) const COUNT: usize = EUROPE.len() + WORLD.len();

/// The rule of this number.
pub(super) fn nth(at: usize) -> &'static Rule {
    EUROPE.get(at).unwrap_or_else(|| &WORLD[at - EUROPE.len()])
}
