//! One kind of national number, as its table has it.

/// One kind of number.
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// Shapes that need a word, and those that do not.
    pub(super) worded: &'static [&'static str],
    pub(super) alone: &'static [&'static str],
    pub(super) words: &'static [&'static str],
    pub(super) holds: fn(&[u8]) -> bool,
    /// Whether a number counts by its own name alone: no check digit tells it from others that stand near the word.
    pub(super) by_name: bool,
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
        by_name: false,
    }
}

/// A kind of number that has no check digit: each shape needs a word, and nothing may call the number something else.
pub(super) const fn named(
    name: &'static str,
    worded: &'static [&'static str],
    words: &'static [&'static str],
    can_be: fn(&[u8]) -> bool,
) -> Rule {
    Rule {
        by_name: true,
        ..rule(name, worded, &[], words, can_be)
    }
}
