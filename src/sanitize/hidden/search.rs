//! Finds the characters that may be hidden, a block of bytes at a time: text without them is read once and nothing is decoded.
//!
//! What is found is decided by bytes alone; whether it is out of place is decided by its neighbours, elsewhere.

use wide::u8x16;

use crate::sanitize::survey::{BLOCK as STRIDE, Found, is, within};

/// Bytes in one vector register.
const BLOCK: usize = 16;
/// With what is seen behind the last of them.
const WINDOW: usize = STRIDE + 2;

/// The suspects of one text, asked for in rising order.
pub(super) struct Suspects<'t> {
    text: &'t [u8],
    /// Those that the survey found and nobody asked about yet.
    rest: &'t [Found],
    /// Where the stride begins that was looked at last.
    at: usize,
    /// One bit for each place in it that may be a suspect, the first lowest.
    left: u64,
}

impl<'t> Suspects<'t> {
    pub(super) fn of(text: &'t [u8], found: &'t [Found]) -> Self {
        Self {
            text,
            rest: found,
            at: 0,
            left: 0,
        }
    }

    /// The first byte of the next suspect at or after `from`, which lies between characters. What lies before it is forgotten.
    pub(super) fn next(&mut self, from: usize) -> Option<usize> {
        loop {
            while self.left != 0 {
                let place = self.at + self.left.trailing_zeros() as usize;
                if place >= from && suspect(self.text, place) {
                    return Some(place);
                }
                self.left &= self.left - 1;
            }
            let (first, rest) = self.rest.split_first()?;
            (self.at, self.left, self.rest) = (first.at, first.marks, rest);
        }
    }
}

/// Whether the character that begins at `at` may be hidden.
#[inline]
pub(super) fn suspect(text: &[u8], at: usize) -> bool {
    // Most text is not beyond ASCII where this is asked.
    text.get(at).is_some_and(|first| *first >= 0xC2) && is_suspect(text, at)
}

fn is_suspect(text: &[u8], at: usize) -> bool {
    let byte = |nth: usize| text.get(at + nth).copied().unwrap_or(0);
    match byte(0) {
        0xC2 => byte(1) == 0xAD,
        0xCD => byte(1) == 0x8F,
        0xD8 => byte(1) == 0x9C,
        0xE1 => matches!(
            (byte(1), byte(2)),
            (0x85, 0x9F | 0xA0) | (0x9E, 0xB4 | 0xB5) | (0xA0, 0x8B..=0x8F)
        ),
        0xE2 => matches!(
            (byte(1), byte(2)),
            (0x80, 0x8B..=0x8F | 0xAA..=0xAE) | (0x81, 0xA0..=0xAF) | (0xA0, 0x80)
        ),
        0xE3 => (byte(1), byte(2)) == (0x85, 0xA4),
        0xEF => matches!(
            (byte(1), byte(2)),
            (0xB7, 0x90..=0xAF)
                | (0xB8, 0x80..=0x8F)
                | (0xBB, 0xBF)
                | (0xBE, 0xA0)
                | (0xBF, 0xB0..=0xBB | 0xBE | 0xBF)
        ),
        0xF0..=0xF4 => match (byte(0), byte(1), byte(2), byte(3)) {
            (0xF3, 0xA0, _, _)
            | (0xF0, 0x9B, 0xB2, 0xA0..=0xA3)
            | (0xF0, 0x9D, 0x85, 0x99 | 0xB3..=0xBA) => true,
            // The last two of each plane.
            (_, second, 0xBF, 0xBE | 0xBF) => second & 0x0F == 0x0F,
            _ => false,
        },
        _ => false,
    }
}

/// One bit for each of the bytes from `at` on, as many as the survey looks at together, the first lowest: set where a character
/// begins that may be a suspect by its first bytes.
pub(in crate::sanitize) fn suspects(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk::<WINDOW>() {
        Some(window) => suspects_in(window),
        None => {
            let mut last = [0; WINDOW];
            last[..rest.len()].copy_from_slice(rest);
            suspects_in(&last)
        }
    }
}

fn suspects_in(window: &[u8; WINDOW]) -> u64 {
    let block = Block {
        window,
        firsts: [
            load(window, 0),
            load(window, BLOCK),
            load(window, 2 * BLOCK),
            load(window, 3 * BLOCK),
        ],
    };
    block.behind(0xC2, |second, _| is(second, 0xAD))
        | block.behind(0xCD, |second, _| is(second, 0x8F))
        | block.behind(0xD8, |second, _| is(second, 0x9C))
        | block.behind(0xE1, |second, _| {
            is(second, 0x85) | is(second, 0x9E) | is(second, 0xA0)
        })
        | block.behind(0xE2, |second, third| {
            is(second, 0x80) & (within(third, 0x8B, 5) | within(third, 0xAA, 5))
                | is(second, 0x81) & within(third, 0xA0, 16)
                | is(second, 0xA0) & is(third, 0x80)
        })
        | block.behind(0xE3, |second, _| is(second, 0x85))
        | block.behind(0xEF, |second, _| {
            within(second, 0xB7, 2) | is(second, 0xBB) | within(second, 0xBE, 2)
        })
        | block.behind(0xF3, |second, _| is(second, 0xA0))
        | block.behind(0xF0, |second, _| is(second, 0x9B) | is(second, 0x9D))
        // The last two characters of each plane.
        | block.pairs(
            |first| first.max(u8x16::splat(0xF0)).simd_eq(first),
            |second, third| is(second & u8x16::splat(0x0F), 0x0F) & is(third, 0xBF),
        )
}

/// What is looked at together, its bytes in registers. Everything about it has to come to lie in one function: where closures
/// stay functions of their own, as without link-time optimisation, it takes five times as long.
struct Block<'w> {
    window: &'w [u8; WINDOW],
    firsts: [u8x16; STRIDE / BLOCK],
}

impl Block<'_> {
    /// Where a byte stands and what is behind it fits.
    #[inline(always)]
    fn behind(&self, lead: u8, of: impl Fn(u8x16, u8x16) -> u8x16) -> u64 {
        self.pairs(|first| is(first, lead), of)
    }

    /// Where a first byte fits, and the two behind it.
    #[inline(always)]
    fn pairs(&self, lead: impl Fn(u8x16) -> u8x16, of: impl Fn(u8x16, u8x16) -> u8x16) -> u64 {
        let [first, second, third, fourth] = self.firsts;
        let leads = [lead(first), lead(second), lead(third), lead(fourth)];
        // Of a script few first bytes are met: of the others nothing more is asked.
        if (leads[0] | leads[1] | leads[2] | leads[3]).to_bitmask() == 0 {
            return 0;
        }
        let mut found = 0;
        for (nth, lead) in leads.into_iter().enumerate() {
            let at = nth * BLOCK;
            let behind = of(load(self.window, at + 1), load(self.window, at + 2));
            found |= u64::from((lead & behind).to_bitmask()) << at;
        }
        found
    }
}

#[inline(always)]
fn load(window: &[u8; WINDOW], at: usize) -> u8x16 {
    let mut block = [0; BLOCK];
    block.copy_from_slice(&window[at..at + BLOCK]);
    u8x16::new(block)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sanitize::{hidden::tables, survey::Survey};

    #[test]
    fn every_character_is_suspected_by_its_bytes_exactly_if_it_has_a_kind() {
        for ch in '\0'..=char::MAX {
            let mut bytes = [0; 4];
            let text = ch.encode_utf8(&mut bytes).as_bytes();
            assert_eq!(
                suspect(text, 0),
                tables::kind(ch).is_some(),
                "{:x}",
                u32::from(ch)
            );
        }
    }

    proptest! {
        #[test]
        fn the_search_finds_what_a_plain_loop_finds(text in "[a-z]{0,40}([a-zà-ÿ一-丏\u{200B}-\u{200F}\u{E0020}-\u{E0030}😀]{0,9}[ -~]{0,150}){0,4}", from in 0_usize..30) {
            let starts = || text.char_indices().map(|(at, _)| at);
            let from = starts().find(|at| *at >= from).unwrap_or(text.len());
            let plain = starts().find(|at| *at >= from && suspect(text.as_bytes(), *at));
            let survey = Survey::of(&text);
            prop_assert_eq!(Suspects::of(text.as_bytes(), &survey.hidden).next(from), plain);
            let mut all = Suspects::of(text.as_bytes(), &survey.hidden);
            let mut at = 0;
            for place in starts().filter(|at| suspect(text.as_bytes(), *at)) {
                prop_assert_eq!(all.next(at), Some(place));
                at = place + 1;
            }
            prop_assert_eq!(all.next(at), None);
        }
    }
}
