//! C1: characters that a reader does not see and a model does.
//!
//! Guarantees: whatever has no place in legitimate text is found: tags, runs of variation selectors, zero-width characters
//! and invisible operators, bidi overrides and isolates that are not balanced, interlinear marks, fillers, noncharacters.
//! What a script needs is left alone: emoji and their joiners, the flags of parts of countries, joiners in cursive and Indic
//! scripts, registered variation sequences, balanced isolates and single bidi marks in right-to-left text, soft hyphens
//! inside plain words, line breaks of scripts that do not space words, a byte order mark at the very start. Whether a
//! character has a place is decided by its neighbours that are seen, so removing what is found leaves nothing to find. All this
//! up to as many hits as one value may have.
//!
//! Deliberately absent: private use (it shows, as a box at least), look-alike letters, and what only a renderer of HTML or
//! CSS would hide.
// SECURITY 7, C1

mod bidi;
mod scan;
mod search;
mod tables;
#[cfg(test)]
mod tests;

use std::{ops::Range, sync::Arc};

pub(super) use self::tables::KEY;

use self::tables::Kind;

use super::{Class, Detector, Hit, Survey, hit::HITS};

/// The detector of class C1.
#[derive(Debug, Clone)]
pub struct Hidden {
    names: [Arc<str>; NAMES.len()],
}

/// The rules, in the order of [`rule`].
const NAMES: [&str; 11] = [
    "tag_character",
    "variation_selector",
    "joiner",
    "zero_width",
    "invisible_operator",
    "bidi_mark",
    "bidi_control",
    "filler",
    "interlinear",
    "format_control",
    "noncharacter",
];

impl Hidden {
    /// A detector with the built-in tables; there is nothing to set.
    pub fn new() -> Self {
        Self {
            names: NAMES.map(Arc::from),
        }
    }

    fn hit(&self, kind: Kind, span: Range<usize>) -> Hit {
        Hit {
            span,
            class: Class::Hidden,
            rule: Arc::clone(&self.names[rule(kind)]),
            inert: None,
        }
    }
}

impl Default for Hidden {
    fn default() -> Self {
        Self::new()
    }
}

impl Detector for Hidden {
    fn class(&self) -> Class {
        Class::Hidden
    }

    fn finds_in_plain(&self) -> bool {
        false
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        self.inspect_surveyed(text, &Survey::of(text), hits);
    }

    fn inspect_surveyed(&self, text: &str, survey: &Survey, hits: &mut Vec<Hit>) {
        let before = hits.len();
        let found = &mut |kind, span| {
            if hits.len() <= HITS {
                hits.push(self.hit(kind, span));
            }
        };
        scan::scan(text, &survey.hidden, found);
        // The controls of a paragraph are judged when its first is met, before what stands between them.
        if let Some(found) = hits.get_mut(before..) {
            found.sort_unstable_by_key(|hit| hit.span.start);
        }
    }
}

/// Whether a character may be one that is not seen, whatever stands beside it.
pub(super) fn may_be_unseen(ch: char) -> bool {
    tables::kind(ch).is_some()
}

/// Which rule finds that kind.
fn rule(kind: Kind) -> usize {
    match kind {
        Kind::Tag => 0,
        Kind::Variation | Kind::Mongolian => 1,
        Kind::Joiner => 2,
        Kind::Space
        | Kind::ZeroWidth
        | Kind::ByteOrder
        | Kind::SoftHyphen
        | Kind::GraphemeJoiner => 3,
        Kind::Operator => 4,
        Kind::Mark => 5,
        Kind::Bidi => 6,
        Kind::HangulFiller | Kind::Braille | Kind::Filler => 7,
        Kind::Interlinear => 8,
        Kind::Format => 9,
        Kind::Noncharacter => 10,
    }
}
