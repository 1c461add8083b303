//! One pass over a text that finds rows of digits, as people group them, and long runs of letters and digits.
//!
//! Guarantees: every row of seven digits, with single spaces, dashes, dots and slashes between digits, and every run of fifteen
//! letters and digits is told once, in rising order; nothing is allocated. Deliberately absent: what the digits mean.

use wide::u8x16;

/// Bytes looked at together.
pub(super) const BLOCK: usize = 64;
/// The shortest row of digits that is told, in bytes.
pub(super) const DIGITS: usize = 7;
/// The shortest run of letters and digits that is told, in bytes.
pub(super) const LETTERS: usize = 15;

/// What follows from the blocks before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sweep {
    row: u64,
    rows: u64,
    letter: u64,
    letters: u64,
    digit: u64,
}

/// Places of one block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) digits: u64,
    pub(super) letters: u64,
}

impl Sweep {
    #[inline]
    pub(super) fn places(&mut self, text: &[u8], at: usize) -> Places {
        let rest = text.get(at..).unwrap_or_default();
        let (digit, joint, letter) = match rest.first_chunk::<BLOCK>() {
            Some(block) => marks(block),
            None => {
                let mut block = [b'\n'; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                marks(&block)
            }
        };
        let next = u64::from(rest.get(BLOCK).is_some_and(u8::is_ascii_digit)) << 63;
        let row = digit | (joint & (digit << 1 | self.digit >> 63) & (digit >> 1 | next));
        let rows = if row == 0 {
            0
        } else {
            eroded(self.row, row, &[1, 2, 3])
        };
        let letters = eroded(self.letter, letter, &[1, 2, 4, 7]);
        let places = Places {
            digits: rows & !(rows << 1 | self.rows >> 63),
            letters: letters & !(letters << 1 | self.letters >> 63),
        };
        *self = Self {
            row,
            rows,
            letter,
            letters,
            digit,
        };
        places
    }
}

/// Where as many set bits in a row end as the steps come to, and one.
#[inline]
fn eroded(mut before: u64, mut now: u64, steps: &[u32]) -> u64 {
    for by in steps {
        (before, now) = (
            before & before << by,
            now & (now << by | before >> (64 - by)),
        );
    }
    now
}

/// Digits; spaces, dashes, dots and slashes; letters and digits.
#[inline]
fn marks(block: &[u8; BLOCK]) -> (u64, u64, u64) {
    let (mut digits, mut joints, mut letters) = (0, 0, 0);
    let (parts, _) = block.as_chunks::<16>();
    for (at, part) in parts.iter().enumerate() {
        let bytes = u8x16::new(*part);
        let within = |bytes: u8x16, from: u8, count: u8| {
            let moved = bytes - u8x16::splat(from);
            moved.min(u8x16::splat(count)).simd_eq(moved)
        };
        let digit = within(bytes, b'0', 9);
        // `-`, `.` and `/` follow each other.
        let joint = within(bytes, b'-', 2) | bytes.simd_eq(u8x16::splat(b' '));
        let letter = digit | within(bytes | u8x16::splat(0x20), b'a', 25);
        let by = 16 * at;
        digits |= u64::from(digit.to_bitmask()) << by;
        joints |= u64::from(joint.to_bitmask()) << by;
        letters |= u64::from(letter.to_bitmask()) << by;
    }
    (digits, joints, letters)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(text: &[u8]) -> (Vec<usize>, Vec<usize>) {
        let mut sweep = Sweep::default();
        let (mut rows, mut runs) = (vec![], vec![]);
        for at in (0..text.len()).step_by(BLOCK) {
            let places = sweep.places(text, at);
            let bits = |mask: u64| {
                (0..64)
                    .filter(move |bit| mask >> bit & 1 == 1)
                    .map(move |bit| at + bit)
            };
            rows.extend(bits(places.digits));
            runs.extend(bits(places.letters));
        }
        (rows, runs)
    }

    fn byte_by_byte(text: &[u8], length: usize, of: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut run = 0;
        (0..text.len())
            .filter(|at| {
                run = if of(*at) { run + 1 } else { 0 };
                run == length
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_pass_tells_what_a_plain_loop_tells(text in "([0-9]{1,8}[ ./-]{0,2}[a-z]{0,6}é{0,1}){0,40}") {
            let bytes = text.as_bytes();
            let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
            let joint = |at: usize| at > 0 && matches!(bytes[at], b' ' | b'-' | b'.' | b'/') && digit(at - 1) && digit(at + 1);
            let (rows, runs) = told(bytes);
            prop_assert_eq!(rows, byte_by_byte(bytes, DIGITS, |at| digit(at) || joint(at)));
            prop_assert_eq!(runs, byte_by_byte(bytes, LETTERS, |at| bytes[at].is_ascii_alphanumeric()));
        }
    }
}
