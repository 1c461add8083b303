//! Eight blocks at a time, of which six are told.
//!
//! What is looked for is known by what stands around it, in the block before and in the one behind.
//!
//! Guarantees: every block is told once, with what stands before and behind it. Deliberately absent: what is looked for.

use std::ops::Range;

use fearless_simd::{Simd, prelude::*, u8x64};

use super::{
    BLOCK,
    marks::{Marks, bits},
    plane::{LANES, Plane},
};

/// Which of the blocks are told: all but the first and the last.
pub(super) const TOLD: Range<usize> = 1..LANES - 1;

/// What the bytes of eight blocks are.
// What is written here is read by others as wide as registers are, which waits until all of it has left for memory: so it is
// written a tile ahead.
#[derive(Default)]
pub(super) struct Tile {
    /// Where the first block begins that is told.
    pub(super) at: usize,
    pub(super) letter: [u64; LANES],
    pub(super) digit: [u64; LANES],
    /// `:` and `=`.
    pub(super) assign: [u64; LANES],
    pub(super) dash: [u64; LANES],
    line: [u64; LANES],
    slash: [u64; LANES],
    joint: [u64; LANES],
    /// What something active or an escape may begin with, `~` and `@`.
    pub(super) rare: [u64; LANES],
    /// The last letter of what may be the name of a secret; as quotes and backslashes, where anything is assigned at all.
    pub(super) telling: [u64; LANES],
    pub(super) quote: [u64; LANES],
    pub(super) back: [u64; LANES],
    /// How many of the first blocks these three are known of, and whether they were read at all.
    pub(super) known: usize,
    pub(super) named: bool,
}

/// The same in registers.
pub(super) struct Kinds<S: Simd> {
    pub(super) letter: Plane<S>,
    pub(super) digit: Plane<S>,
    /// Letters and digits.
    pub(super) alnum: Plane<S>,
    pub(super) dash: Plane<S>,
    /// Letters, digits, dashes and lines.
    pub(super) token: Plane<S>,
    /// `+` and `/`.
    pub(super) slash: Plane<S>,
    /// What may stand between the digits of a number: `-`, `.`, `/` and blanks.
    pub(super) joint: Plane<S>,
    /// `:` and `=`.
    pub(super) assign: Plane<S>,
}

impl Tile {
    /// Where a block begins; the first may be none.
    #[inline(always)]
    pub(super) fn place(&self, lane: usize) -> Option<usize> {
        (self.at + lane * BLOCK).checked_sub(BLOCK)
    }

    /// The blocks that are not read yet: all, or those behind the first two, which are of the tile before.
    #[inline(always)]
    pub(super) fn fresh(&self) -> Range<usize> {
        if self.at == 0 { 1..LANES } else { 2..LANES }
    }

    /// Reads a block; tells what of it is no ordinary text, by [`Odd`].
    #[inline(always)]
    pub(super) fn read<S: Simd>(&mut self, simd: S, lane: usize, marks: Marks<S>) -> Odd<S> {
        let kinds = marks.found_in(table(simd, &KINDS[0]), table(simd, &KINDS[1]));
        let of = |kinds: Marks<S>, these: u8| bits(kinds.only(these).at_least(1));
        self.letter[lane] = bits(marks.letter());
        self.digit[lane] = of(kinds, DIGIT);
        self.assign[lane] = of(kinds, ASSIGN);
        self.dash[lane] = of(kinds, DASH);
        self.line[lane] = of(kinds, LINE);
        self.slash[lane] = of(kinds, PLUS | SLASH);
        self.joint[lane] = of(kinds, DASH | SLASH | DOT_OR_BLANK);
        let odd = marks.found_in(table(simd, &ODD[0]), table(simd, &ODD[1]));
        self.rare[lane] = 0;
        if !odd.at_least(1).any_true() {
            return Odd::None;
        }
        self.rare[lane] = of(odd, RARE);
        if odd.only(BEYOND).at_least(1).any_true() {
            Odd::Beyond
        } else if odd.only(CONTROL).at_least(1).any_true() {
            Odd::Controls(marks)
        } else {
            Odd::None
        }
    }

    /// Goes on behind another with the next six blocks, of which the first is read already, as is the one before them.
    #[inline(always)]
    pub(super) fn follow(&mut self, other: &Self) {
        self.at = other.at + TOLD.len() * BLOCK;
        self.known = if other.named { 2 } else { 0 };
        for (kind, before) in [
            (&mut self.telling, &other.telling),
            (&mut self.quote, &other.quote),
            (&mut self.back, &other.back),
            (&mut self.letter, &other.letter),
            (&mut self.digit, &other.digit),
            (&mut self.assign, &other.assign),
            (&mut self.dash, &other.dash),
            (&mut self.line, &other.line),
            (&mut self.slash, &other.slash),
            (&mut self.joint, &other.joint),
            (&mut self.rare, &other.rare),
        ] {
            kind[0] = before[TOLD.end - 1];
            kind[1] = before[TOLD.end];
        }
    }

    /// Empties a block behind the text.
    #[inline(never)]
    pub(super) fn empty(&mut self, lane: usize) {
        for kind in [
            &mut self.letter,
            &mut self.digit,
            &mut self.assign,
            &mut self.dash,
            &mut self.line,
            &mut self.slash,
            &mut self.joint,
            &mut self.rare,
            &mut self.telling,
            &mut self.quote,
            &mut self.back,
        ] {
            kind[lane] = 0;
        }
    }

    #[inline(always)]
    pub(super) fn kinds<S: Simd>(&self, simd: S) -> Kinds<S> {
        let of = |lanes| Plane::of(simd, lanes);
        let (letter, digit, dash) = (of(&self.letter), of(&self.digit), of(&self.dash));
        let alnum = letter | digit;
        Kinds {
            letter,
            digit,
            alnum,
            dash,
            token: alnum | dash | of(&self.line),
            slash: of(&self.slash),
            joint: of(&self.joint),
            assign: of(&self.assign),
        }
    }
}

/// What of a block is no ordinary text.
pub(super) enum Odd<S: Simd> {
    None,
    /// Control characters that no text needs, perhaps.
    Controls(Marks<S>),
    /// Characters beyond ASCII.
    Beyond,
}

#[inline(always)]
fn table<S: Simd>(simd: S, table: &[u8; BLOCK]) -> u8x64<S> {
    u8x64::from_slice(simd, table)
}

/// Kinds of bytes, a bit for each.
const DIGIT: u8 = 1;
const ASSIGN: u8 = 1 << 1;
const DASH: u8 = 1 << 2;
const LINE: u8 = 1 << 3;
const PLUS: u8 = 1 << 4;
const SLASH: u8 = 1 << 5;
const DOT_OR_BLANK: u8 = 1 << 6;

/// For [`Marks::found_in`], of each kind.
const KINDS: [[u8; BLOCK]; 2] = tables(&[
    (DIGIT, &[3], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    (ASSIGN, &[3], &[0xA, 0xD]),
    (DASH, &[2], &[0xD]),
    (LINE, &[5], &[0xF]),
    (PLUS, &[2], &[0xB]),
    (SLASH, &[2], &[0xF]),
    (DOT_OR_BLANK, &[2], &[0, 0xE]),
]);

/// What little text has: control characters that none needs, what is beyond ASCII, and `!`, `%`, `<`, `@`, `\`, `]` and `~`.
const CONTROL: u8 = 1 | 1 << 1 | 1 << 2;
const BEYOND: u8 = 1 << 3;
const RARE: u8 = 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7;

/// The same of these.
const ODD: [[u8; BLOCK]; 2] = tables(&[
    (1, &[0], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 0xB, 0xC, 0xE, 0xF]),
    (1 << 1, &[1], &EVERY),
    // The last is a control character, and the one before it is rare.
    (1 << 2, &[7], &[0xE, 0xF]),
    (BEYOND, &[8, 9, 10, 11, 12, 13, 14, 15], &EVERY),
    (1 << 4, &[2], &[1, 5]),
    (1 << 5, &[3], &[0xC]),
    (1 << 6, &[5], &[0xC, 0xD]),
    (1 << 7, &[4], &[0]),
]);

const EVERY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The tables in which bytes have a bit: all that are of any of the upper halves and any of the lower ones.
const fn tables(kinds: &[(u8, &[u8], &[u8])]) -> [[u8; BLOCK]; 2] {
    let [mut low, mut high] = [[0; BLOCK]; 2];
    let mut kind = 0;
    while kind < kinds.len() {
        let (bit, highs, lows) = kinds[kind];
        let mut from = 0;
        while from < BLOCK {
            let mut nth = 0;
            while nth < highs.len() {
                high[from + highs[nth] as usize] |= bit;
                nth += 1;
            }
            let mut nth = 0;
            while nth < lows.len() {
                low[from + lows[nth] as usize] |= bit;
                nth += 1;
            }
            from += 16;
        }
        kind += 1;
    }
    [low, high]
}
