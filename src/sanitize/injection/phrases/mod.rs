//! The phrases: sets of words that stand near each other, in order, with `|` between words of one set.
//!
//! Written for this project, in English and by translation; no collection of attacks was copied. A set must be narrow enough
//! that all of a phrase in one stretch is rare in documentation.

mod abroad;
mod english;

/// A phrase: what it is about, and its sets.
pub(super) type Phrase = (Kind, &'static [&'static str]);

/// How many there are.
const COUNT: usize = english::PHRASES.len() + abroad::PHRASES.len();

/// Every phrase, the English ones first.
pub(super) const PHRASES: &[Phrase] = &ALL;

const ALL: [Phrase; COUNT] = {
    let mut all = [english::PHRASES[0]; COUNT];
    let mut at = 1;
    while at < COUNT {
        all[at] = match at.checked_sub(english::PHRASES.len()) {
            None => english::PHRASES[at],
            Some(abroad) => abroad::PHRASES[abroad],
        };
        at += 1;
    }
    all
};

/// What a phrase is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Override,
    Conceal,
    Direct,
    Credentials,
}

/// The rules, in the order of [`Kind`].
pub(super) const KINDS: [&str; 4] = [
    "instruction_override",
    "concealment",
    "cross_tool_direction",
    "credential_request",
];
