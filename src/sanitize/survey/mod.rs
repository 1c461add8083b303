//! One pass over a text for all detectors: sixty-four bytes at a time, the places are found that some of them want to see
//! closer. Each of them goes through its own list, and reads nothing between.
//!
//! Guarantees: every place of each kind is told, in rising order, and no other (the tests compare with plain loops); linear;
//! the lists hold less than twice the bytes of the text, and their memory is kept from one text to the next up to a bound.
//! Deliberately absent: what becomes of a place.
// SECURITY 7

mod blocks;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub(super) use blocks::TELLING;
pub(super) use blocks::{BLOCK, block, mask};
use blocks::{Kinds, Marks, eroded, is, within};

use super::{decoded::KEEP, work::looked};

/// The shortest run of token characters that is told.
pub(super) const TOKEN: usize = 14;
/// The shortest row of digits that is told, in bytes.
pub(super) const DIGITS: usize = 7;
/// The shortest run of letters and digits that is told, in bytes.
pub(super) const LETTERS: usize = 15;
/// The shortest run that is taken for an encoded one.
pub(super) const ENCODED: usize = 20;

/// Where a text is worth a closer look. Bits stand for the bytes of a block, the first lowest.
#[derive(Debug, Default)]
pub struct Survey {
    pub(super) secrets: Vec<Secrets>,
    pub(super) numbers: Vec<Numbers>,
    pub(super) active: Vec<Active>,
    /// Where runs of Base64 of at least [`ENCODED`] characters begin.
    pub(super) encoded: Vec<usize>,
    /// Whether a `%` stands in it, or a backslash, or a character beyond ASCII.
    pub(super) percent: bool,
    pub(super) backslash: bool,
    pub(super) beyond: bool,
    /// Whether a flag for a user may stand in it, `-u`.
    flag: bool,
}

/// For secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Secrets {
    /// Where the block begins.
    pub(super) at: usize,
    /// Where a run of token characters has come to its fourteenth.
    pub(super) runs: u64,
    /// `=` and `:`, but those behind letters and digits that end no name of a secret, unless an address follows.
    pub(super) assign: u64,
    pub(super) tilde: u64,
    /// Where a row of dashes has come to its fifth.
    pub(super) dashes: u64,
}

/// For numbers of people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) at: usize,
    /// Where a row of digits, with single spaces, dashes, dots and slashes between, has come to its seventh byte.
    pub(super) digits: u64,
    /// Where a run of letters and digits has come to its fifteenth.
    pub(super) letters: u64,
    /// The second digit of two letters and two digits at the start of a word, as numbers of bank accounts begin.
    pub(super) heads: u64,
}

/// For what is active: `<` and a letter or `?`, `![`, `](`, `]:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Active {
    pub(super) at: usize,
    pub(super) marks: u64,
}

/// What is remembered of the block before.
#[derive(Default)]
struct Before {
    kinds: Kinds,
    /// Token characters, where they were asked about.
    token: Option<u64>,
    /// Runs that had their length.
    tokens: u64,
    letters: u64,
    encoded: u64,
    row: u64,
    rows: u64,
    dash: u64,
    dashes: u64,
}

impl Survey {
    /// Of this text.
    pub(super) fn of(text: &str) -> Self {
        let mut survey = Self::default();
        survey.read(text);
        survey
    }

    /// Looks at another text.
    pub(super) fn read(&mut self, text: &str) {
        self.clear();
        let text = text.as_bytes();
        looked(text.len());
        self.flag = memchr::memmem::find(text, b"-u").is_some();
        let mut before = Before::default();
        let mut at = 0;
        while at < text.len() {
            self.block(text, at, &mut before);
            at += BLOCK;
        }
    }

    fn clear(&mut self) {
        self.secrets.clear();
        self.numbers.clear();
        self.active.clear();
        self.encoded.clear();
        self.secrets.shrink_to(KEEP / size_of::<Secrets>());
        self.numbers.shrink_to(KEEP / size_of::<Numbers>());
        self.active.shrink_to(KEEP / size_of::<Active>());
        self.encoded.shrink_to(KEEP / size_of::<usize>());
        (self.percent, self.backslash, self.beyond) = (false, false, false);
    }

    #[inline]
    fn block(&mut self, text: &[u8], at: usize, before: &mut Before) {
        let marks = Marks::of(&block(text, at));
        let kinds = marks.kinds();
        let old = before.kinds;
        before.kinds = kinds;
        self.beyond |= marks.beyond();

        // No run of anything is longer than the one with the most characters in its alphabet.
        let long = eroded(old.word, kinds.word, &[1, 2, 4, 6]);
        let mut runs = 0;
        let mut letters = 0;
        if long == 0 {
            (before.tokens, before.letters, before.encoded) = (0, 0, 0);
            before.token = None;
        } else {
            let left = before.token.unwrap_or_else(|| {
                let at = at.checked_sub(BLOCK);
                at.map_or(0, |at| Marks::of(&block(text, at)).token())
            });
            let token = marks.token();
            let now = eroded(left, token, &[1, 2, 4, 6]);
            runs = now & !(now << 1 | before.tokens >> 63);
            (before.tokens, before.token) = (now, Some(token));
            let now = eroded(old.alnum, kinds.alnum, &[1, 2, 4, 7]);
            letters = now & !(now << 1 | before.letters >> 63);
            before.letters = now;
            let now = eroded(old.word, kinds.word, &[1, 2, 4, 8, 4]);
            let mut ends = now & !(now << 1 | before.encoded >> 63);
            before.encoded = now;
            while ends != 0 {
                self.encoded
                    .push(at + ends.trailing_zeros() as usize + 1 - ENCODED);
                ends &= ends - 1;
            }
        }

        let (mut digits, mut heads) = (0, 0);
        if kinds.digit == 0 {
            (before.row, before.rows) = (0, 0);
        } else {
            let next = u64::from(text.get(at + BLOCK).is_some_and(u8::is_ascii_digit)) << 63;
            let joint = mask(&marks.bytes, |bytes| {
                within(bytes, b'-', 3) | is(bytes, b' ')
            });
            let follows = kinds.digit << 1 | old.digit >> 63;
            let row = kinds.digit | (joint & follows & (kinds.digit >> 1 | next));
            let rows = eroded(before.row, row, &[1, 2, 3]);
            digits = rows & !(rows << 1 | before.rows >> 63);
            (before.row, before.rows) = (row, rows);
            heads = kinds.heads(&old);
        }
        if digits | letters | heads != 0 {
            self.numbers.push(Numbers {
                at,
                digits,
                letters,
                heads,
            });
        }

        let mut dashes = 0;
        let dash = marks.dash();
        if dash == 0 {
            before.dashes = 0;
        } else {
            let rows = eroded(before.dash, dash, &[1, 2, 1]);
            dashes = rows & !(rows << 1 | before.dashes >> 63);
            before.dashes = rows;
        }
        before.dash = dash;
        let mut tilde = 0;
        if marks.rare() {
            tilde = mask(&marks.bytes, |bytes| is(bytes, b'~'));
            self.percent |= mask(&marks.bytes, |bytes| is(bytes, b'%')) != 0;
            self.backslash |= mask(&marks.bytes, |bytes| is(bytes, b'\\')) != 0;
            let marks = marks.active(text.get(at + BLOCK).copied().unwrap_or(b' '));
            if marks != 0 {
                self.active.push(Active { at, marks });
            }
        }
        let mut assign = marks.assign();
        if assign != 0 && !self.flag {
            // What most names end with says nothing.
            let plain = kinds.alnum & !marks.telling();
            let last = at.checked_sub(1).map_or(b' ', |last| text[last]);
            let last = last.is_ascii_alphanumeric() && !TELLING.contains(&(last | 0x20));
            let slash = text.get(at + BLOCK) == Some(&b'/');
            let url = marks.slash() >> 1 | u64::from(slash) << 63;
            assign &= !(plain << 1 | u64::from(last)) | url;
        }
        if runs | assign | tilde | dashes != 0 {
            self.secrets.push(Secrets {
                at,
                runs,
                assign,
                tilde,
                dashes,
            });
        }
    }
}

/// The run of Base64 that begins at `start`, unless it is plain to see that no text is in it: nothing comes of hexadecimal
/// digits with dashes between, nor of words in letters of one case.
#[inline]
pub(super) fn encoded(text: &[u8], start: usize) -> Option<Range<usize>> {
    let marks = Marks::of(&block(text, start));
    let kinds = marks.kinds();
    let length = kinds.word.trailing_ones() as usize;
    if length >= BLOCK {
        return Some(start..end_of_encoded(text, start + BLOCK));
    }
    let run = (1 << length) - 1;
    let (alnum, digit) = (kinds.alnum & run, kinds.digit & run);
    let (hexadecimal, lower) = marks.hexadecimal();
    if alnum & !hexadecimal & !digit == 0 {
        // Slashes and pluses make it something else.
        let joint = run & !alnum;
        return (joint == 0 || joint & marks.slash() != 0).then_some(start..start + length);
    }
    let mixed = lower & alnum != 0 && (digit != 0 || alnum & !lower != 0);
    mixed.then_some(start..start + length)
}

/// Where the run of Base64 that goes on at `at` ends.
fn end_of_encoded(text: &[u8], mut at: usize) -> usize {
    loop {
        let kinds = Marks::of(&block(text, at)).kinds();
        let length = kinds.word.trailing_ones() as usize;
        looked(length);
        at += length;
        if length < BLOCK {
            return at;
        }
    }
}

/// Every bit of a mask, as places behind `at`.
#[inline]
pub(super) fn places(at: usize, mask: u64) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let place = (left != 0).then(|| at + left.trailing_zeros() as usize);
        left &= left.wrapping_sub(1);
        place
    })
}
