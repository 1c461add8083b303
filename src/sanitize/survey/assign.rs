//! Assignments: whose name may be that of a secret, and behind which six digits stand.
//!
//! Deliberately absent: what is assigned to what. Most `=` and `:` of a text are left out by the two characters in front of
//! them, which costs less than to go to each.

use fearless_simd::{Simd, prelude::*, u8x64};

use super::{
    BLOCK,
    marks::{Marks, bits},
    places,
    plane::{LANES, Plane},
    tile::{Kinds, Tile},
};

/// What the names of secrets end with, in either case: any of these, and the letter behind them. That is password, pwd, or `d`
/// in quotes; kind, passphrase or value, pass, authorization, auth.
const TELLING: [(&[u8], u8); 6] = [
    (b"rw\"'", b'd'),
    (b"n", b'd'),
    (b"su", b'e'),
    (b"s", b's'),
    (b"o", b'n'),
    (b"t", b'h'),
];

/// Six digits behind an assignment may begin up to so many bytes farther on than right behind it: blanks, and two letters.
const BETWEEN: u32 = 1 + 2 + 3;

/// Whether a name of a secret may end with these two bytes.
#[inline]
pub(in crate::sanitize) fn is_telling(before: u8, last: u8) -> bool {
    TELLING.iter().any(|(firsts, then)| {
        last.eq_ignore_ascii_case(then)
            && firsts
                .iter()
                .any(|first| before.eq_ignore_ascii_case(first))
    })
}

/// Whether it is the last letter of one of these.
fn is_last(byte: u8) -> bool {
    let mut telling = TELLING.iter();
    telling.any(|(_, last)| byte.eq_ignore_ascii_case(last))
}

impl Tile {
    /// Reads what stands before assignments and behind them: last letters of names of secrets, quotes and backslashes; of every
    /// block that they are not known of, where there is an assignment in any.
    #[inline(always)]
    pub(super) fn read_names<S: Simd>(&mut self, simd: S, text: &[u8]) {
        self.named = self.assign != [0; LANES];
        if !self.named {
            return;
        }
        let table = |table: &[u8; BLOCK]| u8x64::from_slice(simd, table);
        let [firsts, lasts] = &ENDS;
        let first = [table(&firsts[0]), table(&firsts[1])];
        let last = [table(&lasts[0]), table(&lasts[1])];
        for lane in self.known..LANES {
            let Some(at) = self.place(lane).filter(|at| *at < text.len()) else {
                continue;
            };
            let marks = Marks::at(simd, text, at);
            let before = Marks::back_from(simd, text, at);
            let telling = before.found_in(first[0], first[1]);
            let telling = telling.also(marks.found_in(last[0], last[1]));
            self.telling[lane] = bits(telling.at_least(1));
            self.quote[lane] = bits(marks.is(b'"') | marks.is(b'\''));
            self.back[lane] = bits(marks.is(b'\\'));
        }
    }

    /// Whether a flag for a user may stand in a block: a dash with its letter behind it.
    #[inline(always)]
    pub(super) fn has_user<S: Simd>(&self, simd: S, text: &[u8], lane: usize) -> bool {
        self.beyond(simd, text, lane)
            .is_some_and(|beyond| bits(beyond.is(b'u')) & self.dash[lane] != 0)
    }

    /// Which bytes of a block a bracket stands behind that opens.
    #[inline(always)]
    pub(super) fn before_brackets<S: Simd>(&self, simd: S, text: &[u8], lane: usize) -> u64 {
        let beyond = self.beyond(simd, text, lane);
        beyond.map_or(0, |beyond| bits(beyond.is(b'(') | beyond.is(b'[')))
    }

    /// What stands one byte farther on than each of a block.
    #[inline(always)]
    fn beyond<S: Simd>(&self, simd: S, text: &[u8], lane: usize) -> Option<Marks<S>> {
        self.place(lane).map(|at| Marks::at(simd, text, at + 1))
    }
}

impl<S: Simd> Kinds<S> {
    /// `:` and `=` that may follow the name of a secret, or are no matter of names.
    #[inline(always)]
    pub(super) fn assigning(&self, simd: S, tile: &Tile) -> Plane<S> {
        let plain = self.alnum & !Plane::of(simd, &tile.telling);
        let quote = Plane::of(simd, &tile.quote);
        let named = plain.behind(1) | quote.behind(1) & plain.behind(2);
        // Of addresses with their slashes escaped, too.
        let address = (self.slash | Plane::of(simd, &tile.back)).ahead(1);
        self.assign & (!named | address)
    }

    /// Behind which bytes six digits in a row stand near: at most [`BETWEEN`] bytes lie between. `sixth` is where they end.
    #[inline(always)]
    pub(super) fn near(sixth: Plane<S>) -> Plane<S> {
        const { assert!(BETWEEN == 1 + 2 + 3) };
        let mut near = sixth.ahead(6);
        for by in [1, 2, 3] {
            near = near | near.ahead(by);
        }
        near
    }
}

/// The assignments among these of the block at `at` that six digits stand near to: of the name before them the last letter is
/// enough.
#[inline(always)]
pub(super) fn numbered(text: &[u8], at: usize, marks: u64, flagged: bool) -> u64 {
    let says = |place: &usize| flagged || may_say(text, *place);
    let says = places(at, marks).filter(says);
    says.fold(0, |bits, place| bits | 1 << (place - at))
}

/// Whether the assignment at `at` may follow a name of a secret by the last letter of it, or is no matter of names.
fn may_say(text: &[u8], at: usize) -> bool {
    let byte = |back: usize| at.checked_sub(back).map_or(b' ', |at| text[at]);
    let last = if is_quote(byte(1)) { byte(2) } else { byte(1) };
    !last.is_ascii_alphanumeric() || is_last(last)
}

const fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

/// For [`Marks::found_in`], of what stands before the last letter of a name, and of that letter: a bit for each of [`TELLING`].
/// No more bytes have it than are meant: no two of the first have the lower four bits of others (a test asks for every pair).
const ENDS: [[[u8; BLOCK]; 2]; 2] = {
    let mut ends = [[[0; BLOCK]; 2]; 2];
    let mut group = 0;
    while group < TELLING.len() {
        let (firsts, last) = TELLING[group];
        let mut nth = 0;
        while nth < firsts.len() {
            ends[0] = also(ends[0], firsts[nth], 1 << group);
            nth += 1;
        }
        ends[1] = also(ends[1], last, 1 << group);
        group += 1;
    }
    ends
};

/// Tables in which a byte, and a letter in either case, has this bit, too.
const fn also([mut low, mut high]: [[u8; BLOCK]; 2], byte: u8, bit: u8) -> [[u8; BLOCK]; 2] {
    let mut from = 0;
    while from < BLOCK {
        low[from + (byte & 15) as usize] |= bit;
        high[from + (byte.to_ascii_lowercase() >> 4) as usize] |= bit;
        high[from + (byte.to_ascii_uppercase() >> 4) as usize] |= bit;
        from += 16;
    }
    [low, high]
}
