//! The words without which no phrase is whole, and where they stand.
//!
//! Of each phrase, one set of words is its anchor: the one whose words are longest, and so the rarest in ordinary text.
//! Guarantees: wherever a word of that set begins, it is told; any other word costs a look at one bit, chosen by its letters.

use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, MatchKind, StartKind};
use fearless_simd::{Level, Simd, dispatch};

use super::NEAR;
use crate::sanitize::{
    begin::{Heads, head, head_at},
    survey::{self, BLOCK, Marks, bits, places},
};

/// The most bytes of a word by which it may be an anchor.
const KEY: usize = 8;
/// As many, of a word whose letters are not ASCII: two to four of them.
const BEYOND: usize = 6;
/// As many, of what begins with neither letter nor digit.
const MARKED: usize = 4;
/// Bits of the filter: by some six hundred words, one in fifty others passes.
const BITS: u32 = 15;
/// What is left of eight bytes of which so many count.
const KEPT: [u64; KEY + 1] = [
    0,
    0xFF,
    0xFFFF,
    0xFF_FFFF,
    0xFFFF_FFFF,
    0xFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF,
    0xFF_FFFF_FFFF_FFFF,
    u64::MAX,
];

/// One bit for the first letters of each word.
#[derive(Debug, Clone)]
struct Filter(Box<[u64; 1 << (BITS - 6)]>);

/// Finds anchors.
#[derive(Debug, Clone)]
pub(super) struct Anchors {
    words: AhoCorasick,
    /// For each word, of three bytes or more, how far before it its phrase may begin.
    reach: Box<[usize]>,
    /// One bit for the first three bytes of each word: asked first, since it costs least and most words end here.
    begun: Heads,
    filter: Filter,
    /// The ASCII bytes, neither letters nor digits, that a word begins with.
    marks: Box<[u8]>,
}

impl Anchors {
    /// The anchors of phrases, of each of which the sets are given.
    ///
    /// # Errors
    /// If the automaton of their words cannot be built, which the size of the table alone decides.
    pub(super) fn new<'a>(
        phrases: impl Iterator<Item = &'a [&'a str]>,
    ) -> Result<Self, aho_corasick::BuildError> {
        let mut words: Vec<(&str, usize)> = Vec::new();
        for sets in phrases {
            let rarest = (0..sets.len()).min_by_key(|place| commonness(sets[*place]));
            let rarest = rarest.unwrap_or_default();
            let before = sets[..rarest].iter().map(|set| NEAR + longest(set));
            let reach = before.sum();
            words.extend(sets[rarest].split('|').map(|word| (word, reach)));
        }
        // The longest is found, for those too that it begins with.
        let reach = words.iter().map(|(word, _)| {
            let alike = words.iter().filter(|(other, _)| word.starts_with(other));
            alike.map(|(_, reach)| *reach).max().unwrap_or_default()
        });
        let reach = reach.collect();
        let mut filter = Filter(Box::new([0; 1 << (BITS - 6)]));
        let mut begun = Heads::none();
        let mut marks = Vec::new();
        for (word, _) in &words {
            let word = word.as_bytes();
            begun.add(head::<3>(word));
            let letters = word.iter().take_while(|byte| byte.is_ascii_alphanumeric());
            let [first, whole] = keys(word, letters.count());
            // "the user" is not looked for at every "the".
            filter.add(if word.len() < KEY { first } else { whole });
            let first = word[0];
            if first.is_ascii() && !first.is_ascii_alphanumeric() && !marks.contains(&first) {
                marks.push(first);
            }
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(StartKind::Anchored)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words.iter().map(|(word, _)| word))?;
        Ok(Self {
            words,
            reach,
            begun,
            filter,
            marks: marks.into(),
        })
    }

    /// How far before an anchor a phrase may begin at most.
    pub(super) fn furthest(&self) -> usize {
        self.reach.iter().copied().max().unwrap_or_default()
    }

    /// Tells where anchors begin, in rising order, and how far before them their phrase may.
    pub(super) fn each(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        dispatch!(Level::new(), simd => self.blocks(simd, text, &mut found));
    }

    #[inline(always)]
    fn blocks<S: Simd>(&self, simd: S, text: &[u8], found: &mut impl FnMut(usize, usize)) {
        let (mut starts, mut alnum) = self.starts(Marks::at(simd, text, 0), 0);
        let mut at = 0;
        while at < text.len() {
            let (next, behind) = self.starts(Marks::at(simd, text, at + BLOCK), alnum);
            for place in places(0, starts) {
                if self.begun.have(head_at::<3>(text, at + place)) {
                    let word = &text[at + place..];
                    let letters = alnum >> place
                        | behind
                            .checked_shl(BLOCK as u32 - place as u32)
                            .unwrap_or_default();
                    self.word(word, at + place, letters.trailing_ones() as usize, found);
                }
            }
            (starts, alnum) = (next, behind);
            at += BLOCK;
        }
    }

    /// Tells an anchor, if it begins a text that begins with so many letters and digits.
    #[inline(never)]
    fn word(&self, text: &[u8], at: usize, letters: usize, found: &mut impl FnMut(usize, usize)) {
        let [first, whole] = keys(text, letters);
        if (self.filter.has(first) || self.filter.has(whole))
            && let Some(reach) = self.reach(text)
        {
            found(at, reach);
        }
    }

    /// One bit for each byte of a block that a word may begin at, and for each that is an ASCII letter or digit; `before` are
    /// those of the block before.
    #[inline(always)]
    fn starts<S: Simd>(&self, block: Marks<S>, before: u64) -> (u64, u64) {
        let alnum = bits(block.with(0x20).within(b'a', 26) | block.within(b'0', 10));
        let mut other = block.at_least(0xC0);
        for mark in &self.marks {
            other |= block.is(*mark);
        }
        (
            alnum & !survey::behind(before, alnum, 1) | bits(other),
            alnum,
        )
    }

    /// How far before it a phrase may begin, if it begins with an anchor.
    fn reach(&self, word: &[u8]) -> Option<usize> {
        let input = Input::new(word).anchored(Anchored::Yes);
        let found = self.words.find(input)?;
        Some(self.reach[found.pattern().as_usize()])
    }
}

/// The less, the rarer its words are in ordinary text: by how long they are.
fn commonness(set: &str) -> u64 {
    set.split('|')
        .map(|word| (1 << 40_u32) >> (2 * word.len().min(20)))
        .sum()
}

fn longest(set: &str) -> usize {
    set.split('|').map(str::len).max().unwrap_or_default()
}

/// What stands for a text that begins with so many ASCII letters and digits, of either case: its first word, and eight bytes
/// whatever they are.
#[inline]
fn keys(word: &[u8], letters: usize) -> [u64; 2] {
    let known = match word[0] {
        _ if letters > 0 => letters.min(KEY),
        0x80.. => BEYOND,
        _ => MARKED,
    };
    let key = match word.first_chunk::<KEY>() {
        Some(key) => u64::from_le_bytes(*key),
        None => {
            let mut key = [0; KEY];
            key[..word.len()].copy_from_slice(word);
            u64::from_le_bytes(key)
        }
    };
    let key = key | 0x2020_2020_2020_2020;
    [key & KEPT[known], key]
}

impl Filter {
    fn add(&mut self, key: u64) {
        let (word, bit) = Self::place(key);
        self.0[word] |= 1_u64.wrapping_shl(bit);
    }

    #[inline]
    fn has(&self, key: u64) -> bool {
        let (word, bit) = Self::place(key);
        self.0[word].wrapping_shr(bit) & 1 == 1
    }

    #[inline]
    const fn place(key: u64) -> (usize, u32) {
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (
            (hash >> (64 - BITS + 6)) as usize,
            (hash >> (64 - BITS)) as u32,
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_word_that_lies_across_two_blocks_is_one_word() {
        let sets: [&[&str]; 1] = [&["ignore|disregarding"]];
        let anchors = Anchors::new(sets.into_iter()).unwrap();
        let told = |text: &str| {
            let mut told = Vec::new();
            anchors.each(text.as_bytes(), |at, _| told.push(at));
            told
        };
        for at in 1..2 * BLOCK + 9 {
            let before = "-".repeat(at);
            for word in ["ignore", "disregarding"] {
                assert_eq!(told(&format!("{before}{word} it")), [at]);
            }
            for other in ["xignore", "ignorex", "xdisregarding"] {
                assert_eq!(told(&format!("{before}{other} it")), [0; 0], "{at}");
            }
        }
    }

    proptest! {
        #[test]
        fn anchors_are_told_wherever_a_plain_loop_finds_one_at_the_beginning_of_a_word(
            words in prop::collection::vec("ignore|Forget this|.env|#tag|überall|密钥|[a-z ]{1,9}|[A-Z0-9_.#é ]{1,70}", 0..9),
        ) {
            let sets: [&[&str]; 3] = [
                &["ignore|forget this|forget"],
                &["überall|密钥"],
                &[".env|#tag|enviro"],
            ];
            let anchors = Anchors::new(sets.into_iter()).unwrap();
            let text = words.join(" ");
            let text = text.as_bytes();
            let mut told = Vec::new();
            anchors.each(text, |at, reach| told.push((at, reach)));
            let begins = |at: &usize| {
                let alnum = text[*at].is_ascii_alphanumeric();
                let inside = at.checked_sub(1).is_some_and(|at| text[at].is_ascii_alphanumeric());
                !alnum || !inside
            };
            let plain = (0..text.len()).filter(begins);
            let plain: Vec<_> = plain.filter_map(|at| Some((at, anchors.reach(&text[at..])?))).collect();
            prop_assert_eq!(told, plain);
        }
    }
}
