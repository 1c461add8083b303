//! Assignments: whose name may be that of a secret, and behind which six digits stand.
//!
//! Deliberately absent: what is assigned to what. Most `=` and `:` of a text are left out by the two characters in front of
//! them, which costs less than to go to each.

use fearless_simd::{Simd, prelude::*, u8x64};

use super::{
    BLOCK, Before,
    marks::{Marks, ahead, behind, bits, eroded},
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
    /// `:` and `=` that may follow the name of a secret. [`Before::said`] holds those that may by the last letter of it alone.
    #[inline(always)]
    pub(super) fn assigning<S: Simd>(
        &mut self,
        simd: S,
        marks: Marks<S>,
        (text, at, next): (&[u8], usize, u8),
    ) -> u64 {
        let assign = bits(marks.is(b':') | marks.is(b'='));
        self.said = assign;
        if assign == 0 || self.flag > 0 {
            return assign;
        }
        let table = |table: &[u8; BLOCK]| u8x64::from_slice(simd, table);
        let [firsts, lasts] = &ENDS;
        let last = marks.found_in(table(&lasts[0]), table(&lasts[1]));
        let first = Marks::back_from(simd, text, at);
        let first = first.found_in(table(&firsts[0]), table(&firsts[1]));

        let alnum = self.kinds.alnum();
        let other = alnum & !bits(last.at_least(1));
        let plain = alnum & !bits(first.also(last).at_least(1));
        let quote = bits(marks.is(b'"') | marks.is(b'\''));
        let (mut other_before, mut plain_before, mut quote_before) = (0, 0, 0);
        if assign & 0b11 != 0 {
            let alnum = |byte: u8| byte.is_ascii_alphanumeric();
            other_before = ahead_of(text, at, 2, |_, last| alnum(last) && !is_last(last));
            plain_before = ahead_of(text, at, 2, |first, last| {
                alnum(last) && !is_telling(first, last)
            });
            quote_before = ahead_of(text, at, 1, |_, byte| matches!(byte, b'"' | b'\''));
        }
        let quoted = behind(quote_before, quote, 1);
        let address = ahead(bits(marks.slash()), matches!(next, b'/' | b'+'));
        let but = |before: u64, plain: u64| {
            let named = behind(before, plain, 1) | quoted & behind(before, plain, 2);
            assign & (!named | address)
        };
        self.said = but(other_before, other);
        but(plain_before, plain)
    }

    /// Assignments of the block before, and of this one, behind which six digits in a row stand near: at most [`BETWEEN`] bytes
    /// lie between. For them the last letter of the name is enough.
    #[inline(always)]
    pub(super) fn numbered(&self, before: &Self) -> [u64; 2] {
        let sixth = eroded(before.kinds.digit, self.kinds.digit, &[1, 2, 2]);
        let farthest = 6 + BETWEEN;
        let mut here = sixth >> 6;
        let mut there = (sixth & ((1 << farthest) - 1)) << (BLOCK as u32 - farthest);
        for by in [1, 2, 3] {
            here |= here >> by;
            there |= there << by;
        }
        [before.said & there, self.said & here]
    }
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
