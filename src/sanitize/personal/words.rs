//! Words that say what a number is, looked for together and in either case.
//!
//! Guarantees: every place of every word is told, those that overlap too; linear, since few words begin alike. What is kept is
//! small, so that looking for words does not drive everything else out of the caches: an automaton of the same words is
//! fifty times as large. Deliberately absent: what may stand beside a word.

use std::ops::Range;

use crate::sanitize::work::looked;

/// How many places are looked at together.
const STEP: usize = 16;
/// How many keys there are.
const KEYS: usize = 1 << 13;

/// Words by what they begin with.
#[derive(Debug)]
pub(super) struct Words {
    /// One where a word begins with such a key.
    begins: Box<[u8; KEYS]>,
    /// Every word by its key, in order.
    keyed: Vec<(u16, Word)>,
}

#[derive(Debug, Clone, Copy)]
struct Word {
    bytes: &'static [u8],
    whose: u8,
}

impl Words {
    /// Words of two bytes or more, and whose they are.
    pub(super) fn of(words: impl IntoIterator<Item = (&'static [u8], u8)>) -> Self {
        let mut keyed = Vec::new();
        for (bytes, whose) in words {
            let word = Word { bytes, whose };
            match *bytes {
                [first, second] => {
                    keyed.extend((0..32).map(|third| (key(first, second, third), word)));
                }
                [first, second, third, ..] => keyed.push((key(first, second, third), word)),
                _ => {}
            }
        }
        keyed.sort_by_key(|(key, _)| *key);
        let mut begins = Box::new([0; KEYS]);
        for (key, _) in &keyed {
            begins[usize::from(*key)] = 1;
        }
        Self { begins, keyed }
    }

    /// Tells every word in a piece of text: where it stands, and whose it is.
    #[inline]
    pub(super) fn each(&self, piece: &[u8], mut told: impl FnMut(Range<usize>, u8)) {
        looked(piece.len());
        let mut at = 0;
        while at < piece.len() {
            let rest = &piece[at..];
            let mut hits = match rest.first_chunk::<{ STEP + 2 }>() {
                Some(bytes) => self.beginnings(bytes),
                None => {
                    let mut bytes = [0; STEP + 2];
                    bytes[..rest.len()].copy_from_slice(rest);
                    self.beginnings(&bytes)
                }
            };
            while hits != 0 {
                let start = at + hits.trailing_zeros() as usize;
                hits &= hits - 1;
                self.at(piece, start, &mut told);
            }
            at += STEP;
        }
    }

    /// One bit for each place where a word may begin.
    #[inline]
    fn beginnings(&self, bytes: &[u8; STEP + 2]) -> u32 {
        let mut keys = [0; STEP];
        for (nth, kept) in keys.iter_mut().enumerate() {
            *kept = key(bytes[nth], bytes[nth + 1], bytes[nth + 2]);
        }
        let found = |key: &u16| u32::from(self.begins[usize::from(*key) % KEYS]);
        keys.iter()
            .rev()
            .fold(0, |hits, key| hits << 1 | found(key))
    }

    /// Tells the words that begin at a place.
    #[inline]
    fn at(&self, piece: &[u8], start: usize, told: &mut impl FnMut(Range<usize>, u8)) {
        let nth = |more: usize| piece.get(start + more).copied().unwrap_or(0);
        let key = key(nth(0), nth(1), nth(2));
        let from = self.keyed.partition_point(|(known, _)| *known < key);
        for (_, word) in self.keyed[from..]
            .iter()
            .take_while(|(known, _)| *known == key)
        {
            let end = start + word.bytes.len();
            if piece
                .get(start..end)
                .is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.bytes))
            {
                told(start..end, word.whose);
            }
        }
    }
}

/// Alike for letters of either case: of most bytes that are alike in their low five bits only one is in a text.
#[inline(always)]
const fn key(first: u8, second: u8, third: u8) -> u16 {
    (first & 31) as u16 | ((second & 31) as u16) << 5 ^ ((third & 31) as u16) << 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [&[u8]; 9] = [
        b"ic",
        b"tin",
        b"t.c.",
        b"tax id",
        b"Tax",
        b"nas",
        b"em\xc5\xa1o",
        b"\xd0\xb8\xd0\xbd\xd0\xbd",
        b"identifikationsnummer",
    ];

    proptest! {
        #[test]
        fn words_are_found_where_a_plain_loop_finds_them(
            text in "([a-z ]{0,20}|[tTiInNcCaAxXdDsS. ]{1,9}|tax id|EMšo|инн|IdentifikationsNUMMER|[\u{80}-\u{ff}]{1,3}){0,12}",
        ) {
            let piece = text.as_bytes();
            let words = Words::of(ALL.iter().zip(0..).map(|(word, whose)| (*word, whose)));
            let mut found = Vec::new();
            words.each(piece, |span, whose| found.push((span, usize::from(whose))));
            found.sort_by_key(|(span, whose)| (span.start, *whose));
            let mut plain = Vec::new();
            for start in 0..piece.len() {
                for (whose, word) in ALL.iter().enumerate() {
                    let span = start..start + word.len();
                    let here = piece.get(span.clone());
                    if here.is_some_and(|here| here.eq_ignore_ascii_case(word)) {
                        plain.push((span, whose));
                    }
                }
            }
            prop_assert_eq!(found, plain);
        }
    }
}
