//! One pass over a text, sixty-four bytes at a time, that finds the places worth a closer look.
//!
//! Guarantees: every run of fourteen token characters, every assignment, `~` and row of five dashes is told, in rising order
//! within its kind; nothing is allocated. Deliberately absent: what becomes of a place.

use wide::u8x16;

/// Bytes looked at together.
pub(super) const BLOCK: usize = 64;
/// The shortest run of token characters that is told.
pub(super) const RUN: usize = 14;

/// One bit for each byte of a block, the first byte lowest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// ASCII letters, digits, `_` and `-`.
    pub(super) token: u64,
    /// `=` and `:`.
    pub(super) assign: u64,
    pub(super) tilde: u64,
    pub(super) dash: u64,
}

/// What follows from the marks of the block and of those before it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sweep {
    token: u64,
    long: u64,
    dash: u64,
    dashes: u64,
}

/// Places of one block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// Where a run of token characters has come to its fourteenth.
    pub(super) runs: u64,
    pub(super) assign: u64,
    pub(super) tilde: u64,
    /// Where a row of dashes has come to its fifth.
    pub(super) dashes: u64,
}

impl Sweep {
    #[inline]
    pub(super) fn places(&mut self, block: &[u8; BLOCK]) -> Places {
        let marks = marks(block);
        let long = eroded(self.token, marks.token);
        let dashes = if marks.dash == 0 {
            0
        } else {
            five(self.dash, marks.dash)
        };
        let places = Places {
            runs: long & !(long << 1 | self.long >> 63),
            assign: marks.assign,
            tilde: marks.tilde,
            dashes: dashes & !(dashes << 1 | self.dashes >> 63),
        };
        *self = Self {
            token: marks.token,
            long,
            dash: marks.dash,
            dashes,
        };
        places
    }
}

/// The next block at `at`, filled up with spaces past the end.
#[inline]
pub(super) fn block(text: &[u8], at: usize) -> [u8; BLOCK] {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk::<BLOCK>() {
        Some(block) => *block,
        None => {
            let mut block = [b' '; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            block
        }
    }
}

/// Where fourteen set bits in a row end.
#[inline]
fn eroded(before: u64, now: u64) -> u64 {
    let step = |(before, now): (u64, u64), by: u32| {
        (
            before & before << by,
            now & (now << by | before >> (64 - by)),
        )
    };
    // What the first block lost at its lower end is never looked at: no more than thirteen bits reach over.
    let (_, now) = step(step(step(step((before, now), 1), 2), 4), 6);
    now
}

#[inline]
fn five(before: u64, now: u64) -> u64 {
    let step = |(before, now): (u64, u64), by: u32| {
        (
            before & before << by,
            now & (now << by | before >> (64 - by)),
        )
    };
    let four = step(step((before, now), 1), 2);
    four.1 & (now << 4 | before >> 60)
}

#[inline]
fn marks(block: &[u8; BLOCK]) -> Marks {
    let mut marks = Marks::default();
    let (parts, _) = block.as_chunks::<16>();
    for (at, part) in parts.iter().enumerate() {
        let bytes = u8x16::new(*part);
        let within = |bytes: u8x16, from: u8, count: u8| {
            let moved = bytes - u8x16::splat(from);
            moved.min(u8x16::splat(count)).simd_eq(moved)
        };
        let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
        let dash = is(b'-');
        let token =
            within(bytes | u8x16::splat(0x20), b'a', 25) | within(bytes, b'0', 9) | is(b'_') | dash;
        let by = 16 * at;
        marks.token |= u64::from(token.to_bitmask()) << by;
        marks.assign |= u64::from((is(b'=') | is(b':')).to_bitmask()) << by;
        marks.tilde |= u64::from(is(b'~').to_bitmask()) << by;
        marks.dash |= u64::from(dash.to_bitmask()) << by;
    }
    marks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
    }

    fn told(text: &[u8]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
        let mut sweep = Sweep::default();
        let (mut runs, mut rows, mut assigns) = (vec![], vec![], vec![]);
        for at in (0..text.len()).step_by(BLOCK) {
            let places = sweep.places(&block(text, at));
            let bits = |mask: u64| {
                (0..64)
                    .filter(move |bit| mask >> bit & 1 == 1)
                    .map(move |bit| at + bit)
            };
            runs.extend(bits(places.runs));
            rows.extend(bits(places.dashes));
            assigns.extend(bits(places.assign));
        }
        (runs, rows, assigns)
    }

    fn byte_by_byte(text: &[u8], length: usize, of: impl Fn(u8) -> bool) -> Vec<usize> {
        let mut run = 0;
        let mut all = Vec::new();
        for (at, byte) in text.iter().enumerate() {
            run = if of(*byte) { run + 1 } else { 0 };
            if run == length {
                all.push(at);
            }
        }
        all
    }

    proptest! {
        #[test]
        fn the_pass_tells_what_a_plain_loop_tells(text in "[a-zA-Z0-9_\\-=: ~.é]{0,40}([a-zA-Z0-9_\\-]{10,40}[ =:.]){0,12}-{0,90}[a-z =:]{0,9}") {
            let (runs, rows, assigns) = told(text.as_bytes());
            prop_assert_eq!(runs, byte_by_byte(text.as_bytes(), RUN, token));
            prop_assert_eq!(rows, byte_by_byte(text.as_bytes(), 5, |byte| byte == b'-'));
            let plain: Vec<_> = text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'=' | b':')).map(|(at, _)| at).collect();
            prop_assert_eq!(assigns, plain);
        }
    }
}
