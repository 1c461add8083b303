//! Finding the bytes that matter inside a string, a block at a time.
//! Most strings are names or hold an escape in every line, and starting a vectored search from a library for each piece costs
//! more than finding its end. Long runs go on with the library.

use wide::u8x16;

/// Bytes looked at together.
// No more than one vector register holds: the compiler takes the bits of two apart one by one to put them together.
pub(super) const BLOCK: usize = 16;
/// Bytes looked at together where there are many: as many as a word has bits for.
pub(super) const WIDE: usize = 64;
/// Blocks looked at here before the library is asked.
const NEAR: usize = 8;

/// Whether no control byte stands anywhere: compact JSON has none.
pub(super) fn plain(text: &[u8]) -> bool {
    // No early end: so the compiler can look at many bytes at once.
    text.iter().fold(u8::MAX, |least, byte| least.min(*byte)) >= 0x20
}

/// One bit for each of the next bytes from `at` on, the lowest first: set where a string may not simply go on, at a quote,
/// a backslash, a control byte, and past the end.
pub(super) fn stops(text: &[u8], at: usize) -> u32 {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk::<BLOCK>() {
        Some(block) => marks(block),
        None => {
            let mut block = [b'"'; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            marks(&block)
        }
    }
}

/// The first of those bytes at or after `at`, or the end. `plain` says that there are no control bytes.
pub(super) fn next_stop(text: &[u8], mut at: usize, plain: bool) -> usize {
    let mut blocks = 0;
    while at < text.len() {
        let stops = stops(text, at);
        if stops != 0 {
            return (at + stops.trailing_zeros() as usize).min(text.len());
        }
        at += BLOCK;
        blocks += 1;
        if plain && blocks >= NEAR {
            let rest = text.get(at..).unwrap_or_default();
            return memchr::memchr2(b'"', b'\\', rest).map_or(text.len(), |found| at + found);
        }
    }
    text.len()
}

/// As [`stops`], of [`WIDE`] bytes, or of fewer where the text ends before; and of how many.
pub(super) fn wide_stops(text: &[u8], at: usize) -> (u64, usize) {
    match text.get(at..).and_then(<[u8]>::first_chunk::<WIDE>) {
        None => (stops(text, at).into(), BLOCK),
        Some(wide) => {
            let (blocks, _) = wide.as_chunks::<BLOCK>();
            let marks = blocks.iter().rev().fold(0, |marks, block| {
                marks << BLOCK | u64::from(self::marks(block))
            });
            (marks, WIDE)
        }
    }
}

fn marks(block: &[u8; BLOCK]) -> u32 {
    let bytes = u8x16::new(*block);
    let control = bytes.min(u8x16::splat(0x1F)).simd_eq(bytes);
    let mark = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'));
    (mark | control).to_bitmask()
}

#[cfg(test)]
fn bit_by_bit(block: &[u8; BLOCK]) -> u32 {
    block.iter().enumerate().fold(0, |marks, (at, byte)| {
        marks | u32::from(matches!(byte, b'"' | b'\\' | 0..=0x1F)) << at
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_search_finds_what_a_plain_loop_finds(text in prop::collection::vec(any::<u8>(), 0..200), before in 0_usize..150, at in 0_usize..200) {
            let text: Vec<u8> = std::iter::repeat_n(b'x', before).chain(text).collect();
            let at = at.min(text.len());
            let first = |text: &[u8]| text[at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1F)).map_or(text.len(), |found| at + found);
            prop_assert_eq!(next_stop(&text, at, false), first(&text));
            let tame: Vec<u8> = text.iter().map(|byte| (*byte).max(0x20)).collect();
            prop_assert!(plain(&tame));
            prop_assert_eq!(next_stop(&tame, at, true), first(&tame));
        }

        #[test]
        fn a_wide_look_finds_what_several_narrow_ones_find(text in prop::collection::vec(any::<u8>(), 0..200), at in 0_usize..200) {
            let at = at.min(text.len());
            let (found, looked_at) = wide_stops(&text, at);
            let whole = text.len() - at >= WIDE;
            prop_assert_eq!(looked_at, if whole { WIDE } else { BLOCK });
            for (number, from) in (at..at + looked_at).step_by(BLOCK).enumerate() {
                prop_assert_eq!(found >> (number * BLOCK) & 0xFFFF, u64::from(stops(&text, from)));
            }
        }

        #[test]
        fn a_block_is_marked_as_bit_by_bit(block in prop::array::uniform16(any::<u8>())) {
            prop_assert_eq!(marks(&block), bit_by_bit(&block));
        }
    }
}
