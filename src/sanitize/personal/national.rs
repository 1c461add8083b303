//! National numbers: persons, taxpayers, insured, of many countries.
//!
//! Each rule names the shapes in which a number is written, how its check digits are found, and the words that announce it. A
//! shape that says enough by itself (two check digits, a date inside, a grouping that nothing else has) needs no word.
//!
//! Guarantees: a number is told only when its check digits hold. Deliberately absent: countries whose numbers have none.

use std::{ops::Range, sync::Arc};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{
    lettered::{LETTERED, SHAPES},
    number::{Number, Sketch, stands_alone},
    table,
};
use crate::sanitize::work::looked;

/// Where something was found, and by what rule.
pub(super) type Found = (Range<usize>, Arc<str>);

/// How far before and after a number the word that announces it may stand, in bytes.
const BEFORE: usize = 72;
const AFTER: usize = 24;

/// The rules with what finds their words.
#[derive(Debug)]
pub(super) struct Countries {
    pub(super) names: Vec<Arc<str>>,
    words: AhoCorasick,
    whose: Vec<u8>,
    /// Shapes in order, with one bit for each rule that wants a word with it, and for each that does not.
    shapes: Vec<(&'static [u8], u128, u128)>,
    /// One bit for each of them, and for those with letters beside them.
    known: Box<[u64; KNOWN / 64]>,
}

/// Bits of a table of shapes.
const KNOWN: usize = 1 << 13;

impl Countries {
    // INVARIANT: the words are compiled in, and a test builds the automaton.
    #[expect(clippy::expect_used, reason = "the words are compiled in")]
    pub(super) fn read() -> Self {
        let all = table::all()
            .map(|rule| (rule.name, rule.words))
            .chain(LETTERED.iter().copied());
        let (mut names, mut words, mut whose) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (name, announced)) in all.enumerate() {
            names.push(name.into());
            for word in announced {
                words.push(*word);
                whose.push(at as u8);
            }
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words)
            .expect("a test builds it");
        Self {
            names,
            words,
            whose,
            known: known(&shapes()),
            shapes: shapes(),
        }
    }

    /// Whether a number may be written in a shape, by its [`Sketch`].
    #[inline]
    pub(super) fn knows(&self, shape: u32) -> bool {
        let bit = shape as usize % KNOWN;
        self.known[bit / 64] >> (bit % 64) & 1 == 1
    }

    pub(super) fn names(&self) -> Vec<Arc<str>> {
        let mut names = self.names.clone();
        names.sort();
        names.dedup();
        names
    }

    /// The national number that a row of digits is, or is part of.
    pub(super) fn number(&self, text: &[u8], number: &Number) -> Option<Found> {
        if number.cut {
            return None;
        }
        let (shape, digits) = (number.shape(), number.digits());
        if let Some(found) = self.lettered(text, number) {
            return Some(found);
        }
        if digits.len() < 8 || digits.len() > 18 {
            return None;
        }
        let at = self
            .shapes
            .binary_search_by(|(known, ..)| (*known).cmp(shape))
            .ok()?;
        let (_, worded, free) = self.shapes[at];
        let mut announced = None;
        let mut alone = None;
        let mut rules = worded | free;
        while rules != 0 {
            let at = rules.trailing_zeros() as usize;
            rules &= rules - 1;
            if !(table::nth(at).holds)(digits) {
                continue;
            }
            let announced = *announced.get_or_insert_with(|| {
                if stands_alone(text, &number.span) {
                    self.announced(text, &number.span)
                } else {
                    0
                }
            });
            if announced >> at & 1 == 1 {
                return Some((number.span.clone(), self.names[at].clone()));
            }
            if free >> at & 1 == 1 && alone.is_none() && stands_alone(text, &number.span) {
                alone = Some(at);
            }
        }
        alone.map(|at| (number.span.clone(), self.names[at].clone()))
    }

    /// One bit for each rule whose word stands near.
    pub(super) fn announced(&self, text: &[u8], span: &Range<usize>) -> u128 {
        let from = span.start.saturating_sub(BEFORE);
        let to = (span.end + AFTER).min(text.len());
        [&text[from..span.start], &text[span.end..to]]
            .iter()
            .fold(0, |all, piece| {
                looked(piece.len());
                self.words
                    .find_overlapping_iter(piece)
                    .fold(all, |all, found| {
                        let letter = |at: Option<usize>| {
                            at.and_then(|at| piece.get(at))
                                .is_some_and(u8::is_ascii_alphabetic)
                        };
                        let first = piece[found.start()];
                        let camel = found.start() > 0
                            && piece[found.start() - 1].is_ascii_lowercase()
                            && first.is_ascii_uppercase();
                        let long = found.end() - found.start() > 4 || !first.is_ascii();
                        let begins = camel || !letter(found.start().checked_sub(1));
                        if long
                            || (begins
                                && (!letter(Some(found.end()))
                                    || piece[found.end()].is_ascii_uppercase()))
                        {
                            all | 1 << self.whose[found.pattern().as_usize()]
                        } else {
                            all
                        }
                    })
            })
    }
}

fn known(shapes: &[(&'static [u8], u128, u128)]) -> Box<[u64; KNOWN / 64]> {
    let mut known = Box::new([0; KNOWN / 64]);
    let digits = shapes.iter().map(|(shape, ..)| *shape);
    for shape in digits.chain(SHAPES) {
        let bit = Sketch::of(shape) as usize % KNOWN;
        known[bit / 64] |= 1 << (bit % 64);
    }
    known
}

fn shapes() -> Vec<(&'static [u8], u128, u128)> {
    let mut all: Vec<(&[u8], u128, u128)> = Vec::new();
    for (at, rule) in table::all().enumerate() {
        let worded = rule
            .worded
            .iter()
            .map(|shape| (shape.as_bytes(), 1 << at, 0));
        let free = rule
            .alone
            .iter()
            .map(|shape| (shape.as_bytes(), 0, 1 << at));
        for (shape, worded, free) in worded.chain(free) {
            match all.iter_mut().find(|(known, ..)| *known == shape) {
                Some(known) => (known.1, known.2) = (known.1 | worded, known.2 | free),
                None => all.push((shape, worded, free)),
            }
        }
    }
    all.sort_unstable();
    all
}
