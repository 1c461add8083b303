//! Words that say what a number is, looked for together and in either case.
//!
//! Guarantees: every place of every word is told, those that overlap too, but short ones inside of other words; linear, since
//! few words begin alike. What is kept is small, 11 KiB and a few for the words themselves, so that looking for words does not
//! drive everything else out of the caches: an automaton of the same words takes 1.2 MB. Deliberately absent: what may stand
//! beside a word.

use std::ops::Range;

use crate::sanitize::work::looked;

/// How many places are looked at together.
const STEP: usize = 16;
/// How many keys there are.
const KEYS: usize = 1 << 13;
/// How many groups there are at most: keys share them when there are more.
const GROUPS: usize = 255;
/// How many keys of four bytes there are.
const LONGER: usize = 1 << 14;

/// Words by what they begin with.
#[derive(Debug)]
pub(super) struct Words {
    /// Which group a key has, and zero where no word begins so.
    keyed: Box<[u8; KEYS]>,
    /// Which words of four bytes and more there are, by those, and which shorter ones, by their keys: a group is shared by keys,
    /// and of what has one, most is told apart here.
    longer: Bits,
    shorter: Bits,
    groups: Vec<Vec<Word>>,
}

/// One bit for each of some numbers.
#[derive(Debug)]
struct Bits(Box<[u64]>);

impl Bits {
    /// None of the numbers below `many`, a multiple of 64.
    fn none(many: usize) -> Self {
        Self(vec![0; many / 64].into())
    }

    fn add(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    #[inline]
    fn has(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }
}

#[derive(Debug, Clone, Copy)]
struct Word {
    bytes: &'static [u8],
    whose: u8,
}

impl Words {
    /// Words of two bytes or more, and whose they are.
    pub(super) fn of(words: impl IntoIterator<Item = (&'static [u8], u8)>) -> Self {
        let mut all = Self {
            keyed: Box::new([0; KEYS]),
            longer: Bits::none(LONGER),
            shorter: Bits::none(KEYS),
            groups: Vec::new(),
        };
        let mut keys = 0;
        for (bytes, whose) in words {
            let word = Word { bytes, whose };
            match *bytes {
                [first, second] => {
                    (0..32).for_each(|third| all.add(key(first, second, third), word, &mut keys));
                }
                [first, second, third, ..] => all.add(key(first, second, third), word, &mut keys),
                _ => {}
            }
        }
        all
    }

    fn add(&mut self, key: u16, word: Word, keys: &mut usize) {
        match word.bytes.get(3) {
            Some(fourth) => self.longer.add(longer(key, *fourth)),
            None => self.shorter.add(usize::from(key)),
        }
        let group = &mut self.keyed[usize::from(key)];
        if *group == 0 {
            *group = 1 + (*keys % GROUPS) as u8;
            *keys += 1;
        }
        let at = usize::from(*group) - 1;
        if at == self.groups.len() {
            self.groups.push(Vec::new());
        }
        self.groups[at].push(word);
    }

    /// Tells every word in a piece of text: where it stands, and whose it is. Words of three bytes or fewer may be left out where
    /// they go on from a small letter in small letters.
    #[inline]
    pub(super) fn each(&self, piece: &[u8], mut told: impl FnMut(Range<usize>, u8)) {
        looked(piece.len());
        let mut at = 0;
        while at < piece.len() {
            let rest = &piece[at..];
            let keys = match rest.first_chunk() {
                Some(bytes) => keys(bytes),
                None => {
                    let mut bytes = [0; STEP + 2];
                    bytes[..rest.len()].copy_from_slice(rest);
                    keys(&bytes)
                }
            };
            let group = |key: &u16| self.keyed[usize::from(*key) % KEYS];
            // All places without a branch: something begins in most steps.
            let mut hits = keys
                .iter()
                .rev()
                .fold(0_u32, |hits, key| hits << 1 | u32::from(group(key) != 0));
            while hits != 0 {
                let nth = hits.trailing_zeros() as usize;
                hits &= hits - 1;
                let key = keys[nth % STEP];
                if self.may_begin(piece, at + nth, key) {
                    let group = &self.groups[usize::from(group(&key)) - 1];
                    compare(group, piece, at + nth, &mut told);
                }
            }
            at += STEP;
        }
    }

    /// Whether a word may begin at a place with this key.
    #[inline]
    fn may_begin(&self, piece: &[u8], start: usize, key: u16) -> bool {
        let fourth = piece.get(start + 3).copied().unwrap_or_default();
        let inside = |at: usize| piece.get(at).is_some_and(u8::is_ascii_lowercase);
        self.longer.has(longer(key, fourth))
            || self.shorter.has(usize::from(key))
                && !(inside(start) && inside(start.wrapping_sub(1)))
    }
}

/// Tells the words of a group that begin at a place.
fn compare(words: &[Word], piece: &[u8], start: usize, told: &mut impl FnMut(Range<usize>, u8)) {
    for word in words {
        let end = start + word.bytes.len();
        let here = piece.get(start..end);
        if here.is_some_and(|here| here.eq_ignore_ascii_case(word.bytes)) {
            told(start..end, word.whose);
        }
    }
}

/// The keys of what begins at each of these places.
#[inline(always)]
fn keys(bytes: &[u8; STEP + 2]) -> [u16; STEP] {
    let mut keys = [0; STEP];
    for (nth, kept) in keys.iter_mut().enumerate() {
        *kept = key(bytes[nth], bytes[nth + 1], bytes[nth + 2]);
    }
    keys
}

/// The number of what begins with this key and goes on with this byte: alike for letters of either case, too.
#[inline(always)]
const fn longer(key: u16, fourth: u8) -> usize {
    let all = (key as u32) << 5 | (fourth & 31) as u32;
    (all.wrapping_mul(0x9E37_79B1) >> 18) as usize % LONGER
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
            let small = |at: usize| piece.get(at).is_some_and(u8::is_ascii_lowercase);
            let inside = |start: usize| small(start) && small(start.wrapping_sub(1));
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
                    let same = here.is_some_and(|here| here.eq_ignore_ascii_case(word));
                    if same && (word.len() > 3 || !inside(start)) {
                        plain.push((span, whose));
                    }
                }
            }
            prop_assert_eq!(found, plain);
        }
    }
}
