//! Words that say what a number is, looked for together and in either case.
//!
//! Guarantees: every place of every word is told, those that overlap too, but inside of other words those only that may be parts
//! of some; linear, since few words begin alike. What is kept is small, 4 KiB and a few for the words themselves, so that looking
//! for words does not drive everything else out of the caches: an automaton of the same words takes 1.2 MB. Deliberately absent:
//! what may stand beside a word.

use std::ops::Range;

use fearless_simd::{Level, Simd, dispatch};

use crate::sanitize::{
    begin::{Beginnings, Heads, head, head_at, spread_to},
    survey::{BLOCK, Marks, behind, bits, places},
    work::looked,
};

/// So many bytes of words that stand alone are known before they are compared.
const ALONE: usize = 3;
/// And of those that may be parts of others.
const PART: usize = ALONE + 1;
/// By so many it is told where one of these may begin.
const BEGINNING: usize = PART + 1;
/// Words are kept in so many groups, in bits: more than there are words.
const GROUPS: u32 = 9;

/// Words by where they may begin.
#[derive(Debug)]
pub(super) struct Words {
    parts: Set<PART, BEGINNING>,
    alone: Set<ALONE, ALONE>,
    /// Whether the others stand behind no letter at all, unless in small ones a capital begins a word.
    apart: bool,
}

/// Where words may stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Where {
    /// Which of them may be parts of other words.
    pub(super) is_part: fn(&[u8]) -> bool,
    /// Whether the others need not be told behind capitals either.
    pub(super) apart: bool,
}

/// Of four bytes or more anywhere, and the others where no word goes on in small letters.
pub(super) const PARTS: Where = Where {
    is_part: |word| word.len() > ALONE,
    apart: false,
};

/// Words by what they begin with.
#[derive(Debug)]
struct Set<const N: usize, const M: usize> {
    /// Where in sixty-four bytes one may begin, by their first `M`.
    beginnings: Beginnings<M>,
    /// Of those most are told apart here.
    heads: Heads,
    /// The words by their heads.
    groups: Vec<Vec<Word>>,
}

#[derive(Debug, Clone, Copy)]
struct Word {
    bytes: &'static [u8],
    whose: u8,
    /// Whether it counts only as it is written: an abbreviation that is a word in small letters.
    exact: bool,
    /// Its first eight bytes in either case, and which bits of those are known.
    first: u64,
    known: u64,
}

/// What is left of eight bytes in either case.
const EITHER: u64 = u64::from_le_bytes([31; 8]);

impl Words {
    /// Words of two bytes or more, and whose they are. Those in capitals only are not looked for in small letters.
    pub(super) fn of(
        words: impl IntoIterator<Item = (&'static [u8], u8)>,
        Where { is_part, apart }: Where,
    ) -> Self {
        let words = words.into_iter().map(|(bytes, whose)| {
            let length = bytes.len().min(8) as u32;
            let known = EITHER & u64::MAX.unbounded_shr(64 - 8 * length);
            Word {
                bytes,
                whose,
                exact: bytes.iter().any(u8::is_ascii_uppercase)
                    && !bytes.iter().any(u8::is_ascii_lowercase),
                first: eight(bytes) & known,
                known,
            }
        });
        let (parts, alone): (Vec<_>, Vec<_>) = words.partition(|word| is_part(word.bytes));
        Self {
            parts: Set::of(&parts),
            alone: Set::of(&alone),
            apart,
        }
    }

    /// Tells every word in a piece of text: where it stands, and whose it is. Those that are no part of any are left out where they
    /// go on from a small letter in small letters, and where they stand apart, behind any letter, unless a capital stands behind a
    /// small one.
    #[inline]
    pub(super) fn each(&self, piece: &[u8], mut told: impl FnMut(Range<usize>, u8)) {
        looked(piece.len());
        dispatch!(Level::new(), simd => self.blocks(simd, piece, &mut told));
    }

    #[inline(always)]
    fn blocks<S: Simd>(&self, simd: S, piece: &[u8], told: &mut impl FnMut(Range<usize>, u8)) {
        let parts = self.parts.beginnings.tables(simd);
        let alone = self.alone.beginnings.tables(simd);
        let (mut at, mut before) = (0, (0, 0));
        while at < piece.len() {
            let bytes = Marks::on_from::<BEGINNING>(simd, piece, at);
            let small = bits(bytes[0].within(b'a', 26));
            let letter = small | bits(bytes[0].within(b'A', 26));
            let behind_small = behind(before.0, small, 1);
            let inside = if self.apart {
                behind(before.1, letter, 1) & !(behind_small & letter & !small)
            } else {
                small & behind_small
            };
            before = (small, letter);
            for start in places(at, bits(parts.may_begin(&bytes))) {
                self.parts.at(piece, start, told);
            }
            for start in places(at, bits(alone.may_begin(&bytes)) & !inside) {
                self.alone.at(piece, start, told);
            }
            at += BLOCK;
        }
    }
}

impl<const N: usize, const M: usize> Set<N, M> {
    fn of(words: &[Word]) -> Self {
        let mut all = Self {
            beginnings: Beginnings::of(words.iter().map(|word| word.bytes)),
            heads: Heads::none(),
            groups: vec![Vec::new(); 1 << GROUPS],
        };
        for word in words {
            let known = head::<N>(word.bytes);
            // Behind a shorter one anything may stand.
            let others = if word.bytes.len() < N { 32 } else { 1 };
            for other in 0..others {
                let head = known | other << (8 * (N - 1));
                all.heads.add(head);
                all.groups[spread_to::<GROUPS>(head)].push(*word);
            }
        }
        all
    }

    /// Tells the words that begin at a place.
    #[inline(always)]
    fn at(&self, piece: &[u8], start: usize, told: &mut impl FnMut(Range<usize>, u8)) {
        let head = head_at::<N>(piece, start);
        if self.heads.have(head) {
            self.compare(piece, start, head, told);
        }
    }

    #[inline(never)]
    fn compare(
        &self,
        piece: &[u8],
        start: usize,
        head: u32,
        told: &mut impl FnMut(Range<usize>, u8),
    ) {
        let first = eight(piece.get(start..).unwrap_or_default());
        for word in &self.groups[spread_to::<GROUPS>(head)] {
            if first & word.known != word.first {
                continue;
            }
            let end = start + word.bytes.len();
            let here = piece.get(start..end);
            let same = |here: &[u8]| match word.exact {
                true => here == word.bytes,
                false => here.eq_ignore_ascii_case(word.bytes),
            };
            if here.is_some_and(same) {
                told(start..end, word.whose);
            }
        }
    }
}

/// The first eight bytes; zeros stand for those that are not there.
#[inline]
fn eight(text: &[u8]) -> u64 {
    let bytes = match text.first_chunk() {
        Some(bytes) => *bytes,
        None => std::array::from_fn(|nth| text.get(nth).copied().unwrap_or_default()),
    };
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [&[u8]; 10] = [
        b"ic",
        b"tin",
        b"TIN",
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
            apart in any::<bool>(),
        ) {
            let piece = text.as_bytes();
            let all = ALL.iter().zip(0..).map(|(word, whose)| (*word, whose));
            let words = Words::of(all, Where { is_part: |word| word.len() > 3, apart });
            let mut found = Vec::new();
            let is = |at: usize, of: fn(&u8) -> bool| piece.get(at).is_some_and(of);
            let small = |at: usize| is(at, u8::is_ascii_lowercase);
            let inside = |start: usize| {
                let before = start.wrapping_sub(1);
                if apart {
                    let camel = is(start, u8::is_ascii_uppercase) && small(before);
                    is(before, u8::is_ascii_alphabetic) && !camel
                } else {
                    small(start) && small(before)
                }
            };
            words.each(piece, |span, whose| {
                if span.len() > 3 || !inside(span.start) {
                    found.push((span, usize::from(whose)));
                }
            });
            found.sort_by_key(|(span, whose)| (span.start, *whose));
            let mut plain = Vec::new();
            for start in 0..piece.len() {
                for (whose, word) in ALL.iter().enumerate() {
                    let span = start..start + word.len();
                    let here = piece.get(span.clone());
                    let exact = *word == b"TIN";
                    let same = here.is_some_and(|here| {
                        here == *word || !exact && here.eq_ignore_ascii_case(word)
                    });
                    if same && (word.len() > 3 || !inside(start)) {
                        plain.push((span, whose));
                    }
                }
            }
            prop_assert_eq!(found, plain);
        }
    }
}
