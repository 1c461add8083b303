//! Finds the characters that may be hidden, a block of bytes at a time: text without them is read once and nothing is decoded.
//!
//! What is found is decided by bytes alone; whether it is out of place is decided by its neighbours, elsewhere.

use wide::u8x16;

/// Bytes in one vector register.
const BLOCK: usize = 16;
/// Bytes that are looked at together as long as all are ASCII.
const STRIDE: usize = 8 * BLOCK;

/// The first byte of the next suspect at or after `at`, which lies between characters.
pub(super) fn next(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = skip_ascii(text, at);
        let block = text.get(at..)?;
        if block.is_empty() {
            return None;
        }
        let mut leads = leads(block);
        while leads != 0 {
            let lead = at + leads.trailing_zeros() as usize;
            if suspect(text, lead) {
                return Some(lead);
            }
            leads &= leads - 1;
        }
        at += BLOCK;
    }
}

/// Whether the character that begins at `at` may be hidden.
pub(super) fn suspect(text: &[u8], at: usize) -> bool {
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

/// Where the first block begins that is not wholly ASCII, or the last, which is not full.
fn skip_ascii(text: &[u8], mut at: usize) -> usize {
    while let Some(stride) = text.get(at..).and_then(<[u8]>::first_chunk::<STRIDE>) {
        if stride.iter().fold(0, |all, byte| all | byte) >= 0x80 {
            break;
        }
        at += STRIDE;
    }
    while let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        if block.iter().fold(0, |all, byte| all | byte) >= 0x80 {
            break;
        }
        at += BLOCK;
    }
    at
}

/// One bit for each of the next bytes, the lowest first: set where a character begins as suspects do.
fn leads(rest: &[u8]) -> u32 {
    let mut block = [0; BLOCK];
    match rest.first_chunk::<BLOCK>() {
        Some(full) => block = *full,
        None => block[..rest.len()].copy_from_slice(rest),
    }
    let bytes = u8x16::new(block);
    let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
    let rare = is(0xC2) | is(0xCD) | is(0xD8);
    let three = is(0xE1) | is(0xE2) | is(0xE3) | is(0xEF);
    let four = bytes.max(u8x16::splat(0xF0)).simd_eq(bytes);
    (rare | three | four).to_bitmask()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sanitize::hidden::tables;

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
            prop_assert_eq!(next(text.as_bytes(), from), plain);
        }
    }
}
