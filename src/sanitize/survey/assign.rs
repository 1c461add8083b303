//! Assignments: whose name may be that of a secret, and behind which six digits stand.
//!
//! Deliberately absent: what is assigned to what. Most `=` and `:` of a text are left out by the two characters in front of
//! them, which costs less than to go to each.

use fearless_simd::{Simd, prelude::*, u8x64};

use super::{
    BLOCK, Before,
    marks::{Marks, ahead, behind, bits, eroded},
    places,
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
const BETWEEN: u32 = 6;

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

impl Before {
    /// `:` and `=` that may follow the name of a secret, or are no matter of names.
    #[inline(always)]
    pub(super) fn assigning<S: Simd>(
        &mut self,
        before: &Self,
        (simd, marks): (S, Marks<S>),
        (text, at, next): (&[u8], usize, u8),
    ) -> u64 {
        let assign = bits(marks.is(b':') | marks.is(b'='));
        if self.flag > 0 {
            self.named = assign;
            return assign;
        }
        // In many texts there are none but those within times and addresses: a digit is the last of no name.
        self.named = assign & !behind(before.kinds.digit, self.kinds.digit, 1);
        // Of addresses with their slashes escaped, too.
        let slash = bits(marks.slash() | marks.is(b'\\'));
        let address = ahead(slash, matches!(next, b'/' | b'+' | b'\\'));
        if self.named == 0 {
            return assign & address;
        }
        let table = |table: &[u8; BLOCK]| u8x64::from_slice(simd, table);
        let [firsts, lasts] = &ENDS;
        let first = Marks::back_from(simd, text, at);
        let first = first.found_in(table(&firsts[0]), table(&firsts[1]));
        let last = marks.found_in(table(&lasts[0]), table(&lasts[1]));
        let plain = self.kinds.alnum() & !bits(first.also(last).at_least(1));
        let quote = bits(marks.is(b'"') | marks.is(b'\''));
        let (mut plain_before, mut quote_before) = (0, 0);
        if assign & 0b11 != 0 {
            plain_before = ahead_of(text, at, 2, |first, last| {
                last.is_ascii_alphanumeric() && !is_telling(first, last)
            });
            quote_before = ahead_of(text, at, 1, |_, byte| is_quote(byte));
        }
        let named = behind(plain_before, plain, 1)
            | behind(quote_before, quote, 1) & behind(plain_before, plain, 2);
        assign & (!named | address)
    }

    /// Assignments in this block and the one before, behind which six digits in a row stand near: at most [`BETWEEN`] bytes lie
    /// between. Of the name before them the last letter is enough.
    #[inline(always)]
    pub(super) fn numbered(&self, before: &Self, text: &[u8], at: usize) -> [u64; 2] {
        let sixth = eroded(before.kinds.digit, self.kinds.digit, &[1, 2, 2]);
        let farthest = 6 + BETWEEN;
        let mut here = sixth >> 6;
        let mut there = (sixth & ((1 << farthest) - 1)) << (BLOCK as u32 - farthest);
        for by in [1, 2, 3] {
            here |= here >> by;
            there |= there << by;
        }
        let (here, there) = (here & self.named, there & before.named);
        if here | there == 0 {
            return [0, 0];
        }
        let of = |block: &Self, at, marks| {
            let says = |place: &usize| block.flag > 0 || may_say(text, *place);
            let says = places(at, marks).filter(says);
            says.fold(0, |bits, place| bits | 1 << (place - at))
        };
        // Before the first block nothing is assigned.
        [
            of(before, at.saturating_sub(BLOCK), there),
            of(self, at, here),
        ]
    }
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

/// Of the last bytes before `at` those of which `of` holds, given what stands before and the byte, as the highest bits.
#[inline(always)]
pub(super) fn ahead_of(text: &[u8], at: usize, count: usize, of: impl Fn(u8, u8) -> bool) -> u64 {
    let byte = |back: usize| at.checked_sub(back).and_then(|at| text.get(at)).copied();
    (1..=count).fold(0, |bits, back| {
        let holds = byte(back).is_some_and(|last| of(byte(back + 1).unwrap_or(b' '), last));
        bits | u64::from(holds) << (BLOCK - back)
    })
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
