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
/// Numbers that stand so near each other share one look for words, in bytes.
const DENSE: usize = 256;
/// How far such a look goes beyond the first of them, in bytes.
const STRETCH: usize = 1024;

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

/// Which words stand in a stretch of a text: looked for once for all numbers in it, where there are many.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// The stretch; empty at first.
    stretch: Range<usize>,
    announced: u128,
    /// Where the last number ends.
    last: Option<usize>,
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
    pub(super) fn number(&self, text: &[u8], number: &Number, near: &mut Near) -> Option<Found> {
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
        let mut rules = free | worded & self.announced_near(text, &number.span, near);
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
        let reach = reach(text, span);
        self.said(&text[reach.start..span.start]) | self.said(&text[span.end..reach.end])
    }

    /// One bit at least for each rule that a look around this number would find announced: all of them where the numbers before
    /// it are far.
    fn announced_near(&self, text: &[u8], span: &Range<usize>, near: &mut Near) -> u128 {
        let reach = reach(text, span);
        let dense = near.last.is_some_and(|last| span.start < last + DENSE);
        near.last = Some(span.end);
        if near.stretch.start > reach.start || near.stretch.end < reach.end {
            if !dense {
                return u128::MAX;
            }
            near.stretch = reach.start..(reach.end + STRETCH).min(text.len());
            near.announced = self.said(&text[near.stretch.clone()]);
        }
        near.announced
    }

    /// One bit for each rule of which a word stands in a piece of text.
    fn said(&self, piece: &[u8]) -> u128 {
        looked(piece.len());
        let letter = |at: Option<usize>| {
            at.and_then(|at| piece.get(at))
                .is_some_and(u8::is_ascii_alphabetic)
        };
        self.words
            .find_overlapping_iter(piece)
            .fold(0, |all, found| {
                let first = piece[found.start()];
                let camel = found.start() > 0
                    && piece[found.start() - 1].is_ascii_lowercase()
                    && first.is_ascii_uppercase();
                let long = found.end() - found.start() > 4 || !first.is_ascii();
                let begins = camel || !letter(found.start().checked_sub(1));
                let ends = || !letter(Some(found.end())) || piece[found.end()].is_ascii_uppercase();
                if long || begins && ends() {
                    all | 1 << self.whose[found.pattern().as_usize()]
                } else {
                    all
                }
            })
    }
}

/// Where a word that announces a number may stand.
fn reach(text: &[u8], span: &Range<usize>) -> Range<usize> {
    span.start.saturating_sub(BEFORE)..(span.end + AFTER).min(text.len())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where rows of digits begin.
    fn rows(text: &[u8]) -> impl Iterator<Item = usize> {
        (0..text.len()).filter(|at| {
            text[*at].is_ascii_digit() && (*at == 0 || !text[*at - 1].is_ascii_digit())
        })
    }

    fn piece() -> impl Strategy<Value = String> {
        let words: Vec<&str> = table::all().flat_map(|rule| rule.words).copied().collect();
        prop_oneof![
            1 => prop::sample::select(words).prop_map(str::to_owned),
            2 => "[a-z ,;:]{0,90}",
            6 => "[0-9]{8,12}",
            2 => "[0-9]{2,3}[ -][0-9]{3}[ -][0-9]{3}[ -][0-9]{2,3}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn numbers_near_one_another_are_found_as_each_by_itself(
            pieces in prop::collection::vec(piece(), 1..40),
        ) {
            static COUNTRIES: std::sync::LazyLock<Countries> = std::sync::LazyLock::new(Countries::read);
            let text = pieces.join(" ");
            let text = text.as_bytes();
            let mut near = Near::default();
            for start in rows(text) {
                let number = Number::at(text, start);
                let found = COUNTRIES.number(text, &number, &mut near);
                let alone = COUNTRIES.number(text, &number, &mut Near::default());
                prop_assert_eq!(found, alone);
            }
        }
    }
}
