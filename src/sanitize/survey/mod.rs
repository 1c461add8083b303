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

pub(super) use blocks::{BLOCK, block, is, mask, within};
use blocks::{Gates, Marks, eroded};

use super::{decoded::KEEP, hidden, work::looked};

/// The shortest run of token characters that is told.
pub(super) const TOKEN: usize = 14;
/// The shortest row of digits that is told, in bytes.
pub(super) const DIGITS: usize = 7;
/// The shortest run of letters and digits that is told, in bytes.
pub(super) const LETTERS: usize = 15;
/// The shortest run that is taken for an encoded one.
pub(super) const ENCODED: usize = 20;
/// The last letters of the names of secrets, in lower case: password, pass, value, authorization, auth, kind.
pub(super) const TELLING: [u8; 5] = *b"dsenh";

/// Where a text is worth a closer look. Bits stand for the bytes of a block, the first lowest.
#[derive(Debug, Default)]
pub struct Survey {
    pub(super) secrets: Vec<Secrets>,
    pub(super) numbers: Vec<Numbers>,
    /// For what is active: `<` and a letter or `?`, `![`, `](`, `]:`.
    pub(super) active: Vec<Found>,
    /// Where characters begin that may be hidden, by their first bytes.
    pub(super) hidden: Vec<Found>,
    /// Control characters that no text needs, in one byte or two.
    pub(super) controls: Vec<Found>,
    /// Where runs of Base64 of at least [`ENCODED`] characters begin.
    pub(super) encoded: Vec<usize>,
    /// Whether a `%` stands in it, or a backslash, or a character beyond ASCII.
    pub(super) percent: bool,
    pub(super) backslash: bool,
    pub(super) beyond: bool,
}

/// Places in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Where the block begins.
    pub(super) at: usize,
    pub(super) marks: u64,
}

/// For secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Secrets {
    /// Where the block begins.
    pub(super) at: usize,
    /// Where a run of token characters has come to its fourteenth.
    pub(super) runs: u64,
    /// `=` and `:`, but those behind letters and digits that end no name of a secret, unless an address follows, or a flag for
    /// a user stands near.
    pub(super) assign: u64,
    pub(super) tilde: u64,
    /// Where a row of dashes has come to its fifth.
    pub(super) dashes: u64,
    /// Whether a flag for a user, `-u`, stands in this block or one of the two before.
    pub(super) flag: bool,
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

/// What is remembered of the block before.
#[derive(Default)]
struct Before {
    /// Whether nothing but what is near matters of it.
    quiet: bool,
    /// What is near the bytes of runs.
    near: u64,
    /// What runs are made of, where it was asked about.
    runs: Option<Runs>,
    /// Runs that had their length; of the alphabets of Base64 also where they had [`TOKEN`].
    words: u64,
    tokens: u64,
    letters: u64,
    encoded: u64,
    digit: u64,
    /// The same with what may stand between digits, and where that was looked at.
    filled: u64,
    row: Option<u64>,
    rows: u64,
    /// Whether there were rows of digits: then there are more, as a rule.
    dense: bool,
    dash: u64,
    dashes: u64,
    /// Whether a dash stands in it behind what is not near.
    opens: bool,
    /// For how many blocks more a flag for a user is near.
    flag: u8,
}

/// What runs are made of.
#[derive(Debug, Clone, Copy)]
struct Runs {
    alnum: u64,
    token: u64,
    /// Of either alphabet of Base64.
    word: u64,
}

impl Runs {
    #[inline(always)]
    fn of(marks: &Marks) -> Self {
        let dash = marks.mask(|bytes| is(bytes, b'-'));
        Self::with(marks, marks.letter() | marks.digit(), dash)
    }

    /// The same where letters and digits are known, and dashes.
    #[inline(always)]
    fn with(marks: &Marks, alnum: u64, dash: u64) -> Self {
        let token = alnum | dash | marks.mask(|bytes| is(bytes, b'_'));
        Self {
            alnum,
            token,
            word: token | marks.slash(),
        }
    }

    /// Those of the block before `at`.
    fn before(text: &[u8], at: usize) -> Self {
        let none = Self {
            alnum: 0,
            token: 0,
            word: 0,
        };
        at.checked_sub(BLOCK)
            .map_or(none, |at| Self::of(&Marks::of(&block(text, at))))
    }
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
        let mut before = Before::default();
        let mut at = 0;
        while at < text.len() {
            self.block(text, at, &mut before);
            at += BLOCK;
        }
    }

    fn clear(&mut self) {
        fn emptied<T>(list: &mut Vec<T>) {
            list.clear();
            list.shrink_to(KEEP / size_of::<T>());
        }
        emptied(&mut self.secrets);
        emptied(&mut self.numbers);
        emptied(&mut self.active);
        emptied(&mut self.hidden);
        emptied(&mut self.controls);
        emptied(&mut self.encoded);
        (self.percent, self.backslash, self.beyond) = (false, false, false);
    }

    #[inline(always)]
    fn block(&mut self, text: &[u8], at: usize, before: &mut Before) {
        let marks = Marks::of(&block(text, at));
        let gates = marks.gates();
        let near = marks.near();
        // No run is longer than the stretch of what is near that it lies in; what is beyond ASCII is near for now.
        let long = eroded(before.near, near, &[1, 2, 4, 6]);
        if gates.all_shut() && long == 0 {
            if !before.quiet {
                *before = Before {
                    flag: before.flag,
                    quiet: before.flag <= 1,
                    row: Some(0),
                    ..Before::default()
                };
            }
            before.flag = before.flag.saturating_sub(1);
            before.near = near;
        } else {
            self.closer(&marks, gates, (near, long), text, at, before);
        }
    }

    /// Looks at a block in which there may be something. Each part asks first whether there is anything to see for it.
    #[inline(never)]
    fn closer(
        &mut self,
        marks: &Marks,
        gates: Gates,
        (mut near, mut long): (u64, u64),
        text: &[u8],
        at: usize,
        before: &mut Before,
    ) {
        before.quiet = false;
        let mut controls = 0;
        if gates.low() {
            controls = unusual(text, at, marks.low());
        }
        let mut tilde = 0;
        if gates.high() {
            tilde = marks.mask(|bytes| is(bytes, b'~'));
            controls |= marks.mask(|bytes| is(bytes, 0x7F));
        }
        if gates.beyond() {
            self.beyond = true;
            near &= !marks.mask(|bytes| bytes);
            long = eroded(before.near, near, &[1, 2, 4, 6]);
            controls |= marks.eight_bit_controls(|| Marks::of(&block(text, at + 1)));
            found(&mut self.hidden, at, hidden::suspects(text, at));
        }
        found(&mut self.controls, at, controls);

        before.flag = before.flag.saturating_sub(1);
        let (mut dash, mut dashes, mut active) = (0, 0, 0);
        if gates.mark() {
            let (row, rare) = gates.dashes_and_others(marks);
            dash = row;
            dashes = before.dashes(marks, text, at, (dash, near));
            active = self.others(text, at, rare);
        } else {
            (before.dash, before.dashes, before.opens) = (0, 0, false);
        }
        let mut assign = 0;
        if gates.assign() {
            let tags;
            (assign, tags) = assigning(text, at, marks.assigning(), before.flag > 0);
            active |= tags;
        }
        found(&mut self.active, at, active);

        let digit = if gates.digit() { marks.digit() } else { 0 };
        let pairs = digit & (digit << 1 | before.digit >> 63);
        let letter = if long | pairs == 0 { 0 } else { marks.letter() };
        let (mut runs, mut letters) = (0, 0);
        if long == 0 {
            before.no_runs();
            before.runs = None;
        } else {
            let now = Runs::with(marks, letter | digit, dash);
            (runs, letters) = self.runs(now, text, at, before);
        }
        let digits = before.rows(marks, text, at, digit);
        let heads = if pairs == 0 {
            0
        } else {
            heads(text, at, pairs, letter, digit)
        };
        (before.near, before.digit) = (near, digit);

        if digits | letters | heads != 0 {
            self.numbers.push(Numbers {
                at,
                digits,
                letters,
                heads,
            });
        }
        if runs | assign | tilde | dashes != 0 {
            self.secrets.push(Secrets {
                at,
                runs,
                assign,
                tilde,
                dashes,
                flag: before.flag > 0,
            });
        }
    }

    /// Notes `%` and backslashes among these marks; where something active begins with one of the others.
    #[inline(always)]
    fn others(&mut self, text: &[u8], at: usize, marks: u64) -> u64 {
        places(at, marks).fold(0, |active, place| {
            let next = text.get(place + 1);
            let begins = match text.get(place) {
                Some(b'!') => next == Some(&b'['),
                Some(b']') => matches!(next, Some(b'(' | b':')),
                Some(b'%') => {
                    self.percent = true;
                    false
                }
                Some(b'\\') => {
                    self.backslash = true;
                    false
                }
                _ => false,
            };
            active | u64::from(begins) << (place - at)
        })
    }

    /// Where runs of token characters, and those of letters and digits, have come to their length.
    #[inline(always)]
    fn runs(&mut self, now: Runs, text: &[u8], at: usize, before: &mut Before) -> (u64, u64) {
        let old = before.runs.unwrap_or_else(|| Runs::before(text, at));
        before.runs = Some(now);
        let words = eroded(old.word, now.word, &[1, 2, 4, 6]);
        if words == 0 {
            before.no_runs();
            return (0, 0);
        }
        let (mut runs, mut letters) = (0, 0);
        let tokens = eroded(old.token, now.token, &[1, 2, 4, 6]);
        let mut alnums = 0;
        if tokens != 0 {
            runs = tokens & !(tokens << 1 | before.tokens >> 63);
            alnums = eroded(old.alnum, now.alnum, &[1, 2, 4, 7]);
            letters = alnums & !(alnums << 1 | before.letters >> 63);
        }
        // Those of fourteen that end six bytes before the end of another.
        let encoded =
            words & (words << (ENCODED - TOKEN) | before.words >> (64 - (ENCODED - TOKEN)));
        let ends = encoded & !(encoded << 1 | before.encoded >> 63);
        (before.words, before.tokens) = (words, tokens);
        (before.letters, before.encoded) = (alnums, encoded);
        self.encoded
            .extend(places(at, ends).map(|end| end + 1 - ENCODED));
        (runs, letters)
    }
}

impl Before {
    /// No run had its length.
    #[inline(always)]
    const fn no_runs(&mut self) {
        (self.words, self.tokens, self.letters, self.encoded) = (0, 0, 0, 0);
    }

    /// Where a row of digits has come to its seventh byte.
    #[inline(always)]
    fn rows(&mut self, marks: &Marks, text: &[u8], at: usize, digit: u64) -> u64 {
        if digit == 0 {
            (self.filled, self.row, self.rows) = (0, Some(0), 0);
            self.dense = false;
            return 0;
        }
        let next = u64::from(text.get(at + BLOCK).is_some_and(u8::is_ascii_digit)) << 63;
        // Whatever single byte stands between two digits.
        let between = (digit << 1 | self.digit >> 63) & (digit >> 1 | next);
        let filled = digit | between;
        if !self.dense && eroded(self.filled, filled, &[1, 2, 3]) == 0 {
            (self.filled, self.row, self.rows) = (filled, None, 0);
            return 0;
        }
        self.filled = filled;
        let old = self.row.unwrap_or_else(|| row_before(text, at));
        let row = digit | marks.between_digits() & between;
        let rows = eroded(old, row, &[1, 2, 3]);
        let ends = rows & !(rows << 1 | self.rows >> 63);
        (self.row, self.rows, self.dense) = (Some(row), rows, rows != 0);
        ends
    }

    /// Where a row of dashes has come to its fifth; and whether a flag for a user is near.
    #[inline(always)]
    fn dashes(&mut self, marks: &Marks, text: &[u8], at: usize, (dash, near): (u64, u64)) -> u64 {
        // Of flags the first dash stands behind what is not near, and most others stand in dates and names.
        let opens = dash & !(near << 1 | self.near >> 63) != 0;
        if opens || self.opens && dash != 0 {
            let next = text.get(at + BLOCK) == Some(&b'u');
            let user = marks.mask(|bytes| is(bytes, b'u')) >> 1 | u64::from(next) << 63;
            if dash & user != 0 {
                self.flag = FLAG;
            }
        }
        self.opens = opens;
        let mut rows = 0;
        if dash & (dash << 1 | self.dash >> 63) != 0 {
            rows = eroded(self.dash, dash, &[1, 2, 1]);
        }
        let ends = rows & !(rows << 1 | self.dashes >> 63);
        (self.dash, self.dashes) = (dash, rows);
        ends
    }
}

/// In how many blocks a flag for a user is near, its own among them.
const FLAG: u8 = 3;

/// Of control characters, those that not any text has.
#[inline(always)]
fn unusual(text: &[u8], at: usize, low: u64) -> u64 {
    let mut found = low;
    for place in places(at, low) {
        if matches!(text[place], b'\t' | b'\n' | b'\r') {
            found ^= 1 << (place - at);
        }
    }
    found
}

#[inline(always)]
fn found(list: &mut Vec<Found>, at: usize, marks: u64) {
    if marks != 0 {
        list.push(Found { at, marks });
    }
}

/// Digits of the block before `at`, and what stands between them.
#[cold]
fn row_before(text: &[u8], at: usize) -> u64 {
    let Some(from) = at.checked_sub(BLOCK) else {
        return 0;
    };
    let digit = |at: Option<usize>| {
        let byte = at.and_then(|at| text.get(at));
        u64::from(byte.is_some_and(u8::is_ascii_digit))
    };
    let marks = Marks::of(&block(text, from));
    let digits = marks.digit();
    let before = digits << 1 | digit(from.checked_sub(1));
    let behind = digits >> 1 | digit(Some(at)) << 63;
    digits | marks.between_digits() & before & behind
}

/// The second digits of two letters and two digits at the start of a word; `pairs` are the second digits of two.
#[inline(always)]
fn heads(text: &[u8], at: usize, pairs: u64, letter: u64, digit: u64) -> u64 {
    let heads = pairs & letter << 2 & letter << 3 & !((letter | digit) << 4) & !0xF;
    // What comes before is seen by the first four bytes alone.
    if pairs & 0xF == 0 {
        return heads;
    }
    let before = |place: usize, back: usize, of: fn(&u8) -> bool| {
        let byte = place.checked_sub(back).and_then(|place| text.get(place));
        byte.is_some_and(of)
    };
    places(at, pairs & 0xF).fold(heads, |heads, place| {
        let head = before(place, 2, u8::is_ascii_alphabetic)
            && before(place, 3, u8::is_ascii_alphabetic)
            && !before(place, 4, u8::is_ascii_alphanumeric);
        heads | u64::from(head) << (place - at)
    })
}

/// Of `:`, `;`, `<` and `=`, those that assign, but not behind what is no name of a secret unless a flag for a user is near; and
/// where tags begin.
#[inline(always)]
fn assigning(text: &[u8], at: usize, marks: u64, flagged: bool) -> (u64, u64) {
    if marks == 0 {
        return (0, 0);
    }
    // The block with a byte on either side.
    let inside = at.checked_sub(1).and_then(|from| text.get(from..));
    let inside = inside.and_then(<[u8]>::first_chunk::<{ BLOCK + 2 }>);
    let mut edge = [b' '; BLOCK + 2];
    let window = inside.unwrap_or_else(|| {
        let from = at.saturating_sub(1);
        let to = text.len().min(at + BLOCK + 1);
        edge[usize::from(at == 0)..][..to - from].copy_from_slice(&text[from..to]);
        &edge
    });
    let (mut told, mut tags, mut left) = (0, 0, marks);
    while left != 0 {
        let nth = left.trailing_zeros() as usize % BLOCK;
        left &= left - 1;
        let next = window[nth + 2];
        match window[nth + 1] {
            b';' => {}
            b'<' => tags |= u64::from(next.is_ascii_alphabetic() || next == b'?') << nth,
            _ => {
                let before = window[nth];
                let tells = TELLS[usize::from(before)]
                    && (!matches!(before, b'"' | b'\'') || named(text, at + nth))
                    || matches!(next, b'/' | b'+')
                    || flagged;
                told |= u64::from(tells) << nth;
            }
        }
    }
    (told, tags)
}

/// Whether what stands in quotes before an assignment may be the name of a secret.
#[inline(always)]
fn named(text: &[u8], at: usize) -> bool {
    let last = at.checked_sub(2).and_then(|at| text.get(at));
    last.is_none_or(|last| TELLS[usize::from(*last)])
}

/// Whether a byte may stand before an assignment that says anything: what most names end with does not.
const TELLS: [bool; 256] = {
    let mut tells = [true; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        tells[byte as usize] = !byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut nth = 0;
    while nth < TELLING.len() {
        tells[TELLING[nth] as usize] = true;
        tells[TELLING[nth].to_ascii_uppercase() as usize] = true;
        nth += 1;
    }
    tells
};

/// The run of Base64 that begins at `start`, unless it is plain to see that no text is in it: nothing comes of hexadecimal
/// digits with dashes between, nor of words in letters of one case.
#[inline]
pub(super) fn encoded(text: &[u8], start: usize) -> Option<Range<usize>> {
    let marks = Marks::of(&block(text, start));
    // Most of them are UUIDs and digests.
    let (plain, joints) = marks.hexadecimal_in_groups();
    let length = plain.trailing_ones() as usize;
    if (ENCODED..BLOCK).contains(&length) && !text.get(start + length).is_some_and(is_word) {
        let joined = joints & ((1 << length) - 1) != 0;
        return (!joined).then_some(start..start + length);
    }
    let digits = marks.digit();
    let alnums = marks.letter() | digits;
    let dash = marks.mask(|bytes| is(bytes, b'-'));
    let length = Runs::with(&marks, alnums, dash).word.trailing_ones() as usize;
    if length >= BLOCK {
        return Some(start..end_of_encoded(text, start + BLOCK));
    }
    let run = (1 << length) - 1;
    let (alnum, digit) = (alnums & run, digits & run);
    let (hexadecimal, lower) = marks.hexadecimal();
    if alnum & !hexadecimal & !digit == 0 {
        // Slashes and pluses make it something else.
        let joint = run & !alnum;
        return (joint == 0 || joint & marks.slash() != 0).then_some(start..start + length);
    }
    let mixed = lower & alnum != 0 && (digit != 0 || alnum & !lower != 0);
    mixed.then_some(start..start + length)
}

/// Whether it is of either alphabet of Base64.
const fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'/')
}

/// Where the run of Base64 that goes on at `at` ends.
fn end_of_encoded(text: &[u8], mut at: usize) -> usize {
    loop {
        let runs = Runs::of(&Marks::of(&block(text, at)));
        let length = runs.word.trailing_ones() as usize;
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
