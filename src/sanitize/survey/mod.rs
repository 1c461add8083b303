//! One pass over a text, sixty-four bytes at a time, which finds for all detectors the places that some want to see closer.
//! Each of them goes through its own list, and reads nothing between.
//!
//! Guarantees: every place of each kind is told, in rising order, and no other (the tests compare with plain loops); linear;
//! the lists hold less than five times the bytes of the text, and their memory is kept from one text to the next up to a bound.
//! Deliberately absent: what becomes of a place.
// SECURITY 7

mod assign;
mod blocks;
mod marks;
#[cfg(test)]
mod tests;

use std::ops::Range;

use fearless_simd::{Level, Simd, dispatch, prelude::*};

use assign::ahead_of;
pub(super) use assign::is_telling;
pub(super) use blocks::{BLOCK, block, is, mask, within};
pub(super) use marks::behind;
pub(super) use marks::{Held, Marks, bits};
use marks::{ahead, eroded};

use super::{
    decoded::{self, KEEP},
    hidden,
    work::looked,
};

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
    /// `=` and `:` before six digits that stand near, but those behind letters and digits of which the last ends no name of a
    /// secret, unless a flag for a user stands near.
    pub(super) numbered: Vec<Found>,
    /// For what is active: `<` and a letter or `?`, `![`, `](`, `]:`.
    pub(super) active: Vec<Found>,
    /// Where characters begin that may be hidden, by their first bytes; not those that stand in their place for all to see.
    pub(super) hidden: Vec<Found>,
    /// Control characters that no text needs, in one byte or two.
    pub(super) controls: Vec<Found>,
    pub(super) encoded: Vec<Encoded>,
    /// `%` and a hexadecimal digit.
    pub(super) percent: Vec<Found>,
    /// A backslash and `u`.
    pub(super) unicode: Vec<Found>,
    /// Where letters and digits in other forms may begin, by their first bytes.
    pub(super) forms: Vec<Found>,
    /// Where the strings begin that the text is made of, in rising order, as far as anybody has told: what Markdown has at the
    /// beginning of a line may stand there, too.
    pub(super) begins: Vec<usize>,
    /// Where spaces and dashes that are not of ASCII may stand behind a digit, by their first bytes.
    pub(super) joints: Vec<Found>,
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
    /// `=` and `:`, but those behind letters and digits that end no name of a secret by their last two, unless an address
    /// follows, or a flag for a user stands near.
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
    /// The second digit of two letters to four and two digits at the start of a word, as numbers of bank accounts begin.
    pub(super) heads: u64,
    /// The last of six digits before a bracket that opens, or behind a word of three letters or four and one byte of another kind.
    pub(super) sixes: u64,
}

/// A run of at least [`ENCODED`] characters of Base64, unless it is plain to see that no text is in it: nothing comes of
/// hexadecimal digits with dashes between, nor of words in letters of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Encoded {
    pub(super) run: Range<usize>,
    pub(super) form: Form,
}

/// What a run may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Hexadecimal digits and nothing else.
    Hexadecimal,
    Base64,
    /// It was too long to be told.
    Either,
}

/// What the bytes of a block are, one bit for each.
#[derive(Default, Clone, Copy)]
struct Kinds {
    letter: u64,
    digit: u64,
    dash: u64,
    /// Letters, digits, dashes and lines.
    token: u64,
    /// Of either alphabet of Base64.
    word: u64,
}

impl Kinds {
    #[inline(always)]
    fn of<S: Simd>(marks: Marks<S>) -> Self {
        let (letter, digit) = (bits(marks.letter()), bits(marks.digit()));
        let dash = bits(marks.is(b'-'));
        let token = letter | digit | dash | bits(marks.is(b'_'));
        Self {
            letter,
            digit,
            dash,
            token,
            word: token | bits(marks.slash()),
        }
    }

    #[inline(always)]
    const fn alnum(self) -> u64 {
        self.letter | self.digit
    }
}

/// What is remembered of the block before.
#[derive(Default)]
struct Before {
    kinds: Kinds,
    /// Where runs had their length; of the alphabets of Base64 also where they had [`TOKEN`].
    words: u64,
    tokens: u64,
    letters: u64,
    encoded: u64,
    /// Digits with what may stand between, and where rows of them had their length.
    row: u64,
    rows: u64,
    dashes: u64,
    /// `:` and `=`, but those behind a digit unless a flag for a user is near.
    named: u64,
    /// For how many blocks more a flag for a user is near.
    flag: u8,
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
        self.read_at(Level::new(), text);
    }

    /// The same with what a machine of this level can do.
    fn read_at(&mut self, level: Level, text: &str) {
        self.clear();
        looked(text.len());
        dispatch!(level, simd => self.blocks(simd, text.as_bytes()));
    }

    fn clear(&mut self) {
        fn emptied<T>(list: &mut Vec<T>) {
            list.clear();
            list.shrink_to(KEEP / size_of::<T>());
        }
        emptied(&mut self.secrets);
        emptied(&mut self.numbers);
        emptied(&mut self.numbered);
        emptied(&mut self.active);
        emptied(&mut self.hidden);
        emptied(&mut self.controls);
        emptied(&mut self.encoded);
        emptied(&mut self.percent);
        emptied(&mut self.unicode);
        emptied(&mut self.forms);
        emptied(&mut self.begins);
        emptied(&mut self.joints);
    }

    #[inline(always)]
    fn blocks<S: Simd>(&mut self, simd: S, text: &[u8]) {
        let mut before = Before::default();
        let mut at = 0;
        while at < text.len() {
            let marks = Marks::at(simd, text, at);
            if marks.at_least(0x80).any_true() {
                let last = at
                    .checked_sub(1)
                    .is_some_and(|last| text[last].is_ascii_digit());
                self.beyond(Marks::on_from(simd, text, at), (at, last));
            } else {
                found(&mut self.controls, at, bits(marks.control()));
            }

            let kinds = Kinds::of(marks);
            let now = Before {
                kinds,
                words: eroded(before.kinds.word, kinds.word, &[1, 2, 4, 6]),
                flag: before.flag.saturating_sub(1),
                ..Before::default()
            };
            before = if now.words == 0 && !marks.tells().any_true() {
                now
            } else {
                self.closer(simd, marks, (text, at), &before, now)
            };
            at += BLOCK;
        }
    }

    /// Looks at a block with characters beyond ASCII, given with what stands one and two bytes farther on, and whether a digit
    /// goes before it.
    #[inline(always)]
    fn beyond<S: Simd>(&mut self, three: [Marks<S>; 3], (at, last): (usize, bool)) {
        let suspects = hidden::suspects(three);
        if suspects != 0 {
            let left = suspects & !hidden::in_place(three, suspects);
            found(&mut self.hidden, at, left);
        }
        found(&mut self.forms, at, decoded::forms(three));
        let [first, second, _] = three;
        let of_two = first.is(0xC2) & second.within(0x80, 0x20);
        found(&mut self.controls, at, bits(first.control() | of_two));
        // Whoever asks for them tells dashes from what else begins so.
        let joints = bits(first.is(0xC2) & second.is(0xA0) | first.is(0xE2) & second.is(0x80));
        if joints != 0 {
            let before = bits(first.digit()) << 1 | u64::from(last);
            found(&mut self.joints, at, joints & before);
        }
    }

    /// Looks at a block in which there may be something. Little is asked beforehand: a mask costs less than a branch that nobody
    /// can foretell.
    #[inline(always)]
    fn closer<S: Simd>(
        &mut self,
        simd: S,
        marks: Marks<S>,
        (text, at): (&[u8], usize),
        before: &Before,
        mut now: Before,
    ) -> Before {
        let next = text.get(at + BLOCK).copied().unwrap_or(b' ');
        if marks.begins().any_true() {
            self.beginnings(marks, now.kinds, (at, next));
        }
        let dashes = now.dashes(before, (simd, marks), (text, at, next));
        let assign = now.assigning(before, (simd, marks), (text, at, next));
        if now.named | before.named != 0 {
            let [there, here] = now.numbered(before, text, at);
            if there != 0 {
                found(&mut self.numbered, at - BLOCK, there);
            }
            found(&mut self.numbered, at, here);
        }
        let tilde = bits(marks.is(b'~'));
        let (runs, letters) = self.runs(simd, (text, at), before, &mut now);
        let digits = now.rows(before, marks, next);
        let heads = now.heads(before);
        let sixes = now.sixes(before, marks, next);
        if digits | letters | heads | sixes != 0 {
            self.numbers.push(Numbers {
                at,
                digits,
                letters,
                heads,
                sixes,
            });
        }
        if runs | assign | tilde | dashes != 0 {
            self.secrets.push(Secrets {
                at,
                runs,
                assign,
                tilde,
                dashes,
                flag: now.flag > 0,
            });
        }
        now
    }

    /// Notes where something active begins, and where escapes do.
    #[inline(always)]
    fn beginnings<S: Simd>(&mut self, marks: Marks<S>, kinds: Kinds, (at, next): (usize, u8)) {
        let tag = kinds.letter | bits(marks.is(b'?'));
        let target = bits(marks.is(b'(') | marks.is(b':'));
        let active = bits(marks.is(b'<')) & ahead(tag, next.is_ascii_alphabetic() || next == b'?')
            | bits(marks.is(b'!')) & ahead(bits(marks.is(b'[')), next == b'[')
            | bits(marks.is(b']')) & ahead(target, matches!(next, b'(' | b':'));
        found(&mut self.active, at, active);
        let hexadecimal = kinds.digit | bits(marks.with(0x20).within(b'a', 6));
        let percent = bits(marks.is(b'%')) & ahead(hexadecimal, next.is_ascii_hexdigit());
        found(&mut self.percent, at, percent);
        let unicode = bits(marks.is(b'\\')) & ahead(bits(marks.is(b'u')), next == b'u');
        found(&mut self.unicode, at, unicode);
    }

    /// Where runs of token characters, and those of letters and digits, have come to their length.
    #[inline(always)]
    fn runs<S: Simd>(
        &mut self,
        simd: S,
        (text, at): (&[u8], usize),
        before: &Before,
        now: &mut Before,
    ) -> (u64, u64) {
        if now.words == 0 {
            return (0, 0);
        }
        let (old, kinds) = (before.kinds, now.kinds);
        now.tokens = eroded(old.token, kinds.token, &[1, 2, 4, 6]);
        now.letters = eroded(old.alnum(), kinds.alnum(), &[1, 2, 4, 7]);
        // Those of fourteen that end six bytes before the end of another.
        now.encoded = now.words & behind(before.words, now.words, (ENCODED - TOKEN) as u32);
        let ends = now.encoded & !behind(before.encoded, now.encoded, 1);
        for end in places(at, ends) {
            self.encoded.extend(encoded(simd, text, end + 1 - ENCODED));
        }
        (
            now.tokens & !behind(before.tokens, now.tokens, 1),
            now.letters & !behind(before.letters, now.letters, 1),
        )
    }
}

impl Before {
    /// Where a row of digits has come to its seventh byte.
    #[inline(always)]
    fn rows<S: Simd>(&mut self, before: &Self, marks: Marks<S>, next: u8) -> u64 {
        let digit = self.kinds.digit;
        let joint = bits(marks.within(b'-', 3) | marks.is(b' '));
        let between = behind(before.kinds.digit, digit, 1) & ahead(digit, next.is_ascii_digit());
        self.row = digit | joint & between;
        self.rows = eroded(before.row, self.row, &[1, 2, 3]);
        self.rows & !behind(before.rows, self.rows, 1)
    }

    /// The second digits of two letters to four and two digits at the start of a word.
    #[inline(always)]
    fn heads(&self, before: &Self) -> u64 {
        let (old, now) = (before.kinds, self.kinds);
        let letter = |by: u32| behind(old.letter, now.letter, by);
        let other = |by: u32| !behind(old.alnum(), now.alnum(), by);
        let heads = now.digit & behind(old.digit, now.digit, 1) & letter(2) & letter(3);
        let four = letter(4) & (other(5) | letter(5) & other(6));
        heads & (four | other(4))
    }

    /// The last of six digits before a bracket that opens, or behind a word of three letters or four and one byte of another kind.
    #[inline(always)]
    fn sixes<S: Simd>(&self, before: &Self, marks: Marks<S>, next: u8) -> u64 {
        let (old, now) = (before.kinds, self.kinds);
        let six =
            eroded(old.digit, now.digit, &[1, 2, 2]) & !ahead(now.digit, next.is_ascii_digit());
        if six == 0 {
            return 0;
        }
        let letter = |by: u32| behind(old.letter, now.letter, by);
        let other = |by: u32| !behind(old.alnum(), now.alnum(), by);
        let word = other(6) & letter(7) & letter(8) & letter(9);
        let word = word & (other(10) | letter(10) & other(11));
        let bracket = bits(marks.is(b'(') | marks.is(b'['));
        six & (word | ahead(bracket, matches!(next, b'(' | b'[')))
    }

    /// Where a row of dashes has come to its fifth; and whether a flag for a user is near.
    #[inline(always)]
    fn dashes<S: Simd>(
        &mut self,
        before: &Self,
        (simd, marks): (S, Marks<S>),
        (text, at, next): (&[u8], usize, u8),
    ) -> u64 {
        let dash = self.kinds.dash;
        let user = ahead(bits(marks.is(b'u')), next == b'u');
        if dash & user != 0 {
            let last = at.checked_sub(BLOCK);
            if opens(simd, text, at) || last.is_some_and(|last| opens(simd, text, last)) {
                self.flag = FLAG;
            }
        }
        self.dashes = eroded(before.kinds.dash, dash, &[1, 2, 1]);
        self.dashes & !behind(before.dashes, self.dashes, 1)
    }
}

/// Whether a dash of the block at `at` stands behind what no run has: of flags the first does, and most others stand in dates and
/// names.
#[inline(always)]
fn opens<S: Simd>(simd: S, text: &[u8], at: usize) -> bool {
    let marks = Marks::at(simd, text, at);
    let near = ahead_of(text, at, 1, |_, byte| (b'+'..0x80).contains(&byte));
    let run = bits(marks.within(b'+', 0x80 - b'+'));
    bits(marks.is(b'-')) & !behind(near, run, 1) != 0
}

/// In how many blocks a flag for a user is near, its own among them.
const FLAG: u8 = 3;

#[inline(always)]
fn found(list: &mut Vec<Found>, at: usize, marks: u64) {
    if marks != 0 {
        list.push(Found { at, marks });
    }
}

/// The run of Base64 that begins at `start`, if text may be in it.
#[inline(always)]
fn encoded<S: Simd>(simd: S, text: &[u8], start: usize) -> Option<Encoded> {
    let marks = Marks::at(simd, text, start);
    let kinds = Kinds::of(marks);
    let length = kinds.word.trailing_ones() as usize;
    if length == BLOCK && text.get(start + BLOCK).is_some_and(is_word) {
        let run = start..end_of_encoded(simd, text, start + BLOCK);
        return Some(Encoded {
            run,
            form: Form::Either,
        });
    }
    let all = u64::MAX >> (BLOCK - length);
    let (alnum, digit) = (kinds.alnum() & all, kinds.digit & all);
    let low = bits(marks.with(0x20).within(b'a', 6));
    let hexadecimal = alnum & !low & !digit == 0;
    let form = if hexadecimal && alnum == all {
        Form::Hexadecimal
    } else {
        // Words, paths and names in snake case have letters of one case.
        let small = bits(marks.within(b'a', 26)) & alnum;
        let mixed = small != 0 && (digit != 0 || alnum & !small != 0);
        // Slashes and pluses make it something else. Most of them are UUIDs.
        let groups = hexadecimal && all & kinds.word & !kinds.token == 0;
        if !mixed || groups {
            return None;
        }
        Form::Base64
    };
    let run = start..start + length;
    Some(Encoded { run, form })
}

/// Whether it is of either alphabet of Base64.
const fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'/')
}

/// Where the run of Base64 that goes on at `at` ends.
#[inline(always)]
fn end_of_encoded<S: Simd>(simd: S, text: &[u8], mut at: usize) -> usize {
    loop {
        let runs = Kinds::of(Marks::at(simd, text, at));
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

/// All places of a list, which rise.
#[inline]
pub(super) fn all_places(found: &[Found]) -> impl Iterator<Item = usize> {
    found.iter().flat_map(|found| places(found.at, found.marks))
}
