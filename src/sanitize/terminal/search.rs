//! Finds control characters, a block of bytes at a time.

use wide::u8x16;

/// Bytes in one vector register.
const BLOCK: usize = 16;
/// Blocks that are looked at together.
const BLOCKS: usize = 4;

/// Where the next control character begins at or after `at`, which lies between characters.
pub(super) fn next(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(stride) = text
        .get(at..)
        .and_then(<[u8]>::first_chunk::<{ BLOCKS * BLOCK }>)
    {
        let (blocks, _) = stride.as_chunks::<BLOCK>();
        let any = blocks
            .iter()
            .fold(u8x16::splat(0), |all, block| all | marks(*block));
        if any.to_bitmask() != 0 {
            for (nth, block) in blocks.iter().enumerate() {
                let mut marks = marks(*block).to_bitmask();
                while marks != 0 {
                    let place = at + nth * BLOCK + marks.trailing_zeros() as usize;
                    if control(text, place) {
                        return Some(place);
                    }
                    marks &= marks - 1;
                }
            }
        }
        at += BLOCKS * BLOCK;
    }
    (at..text.len()).find(|at| control(text, *at))
}

/// Whether the byte at `at` begins a control character that may not stand in a text.
pub(super) fn control(text: &[u8], at: usize) -> bool {
    match text.get(at) {
        Some(b'\t' | b'\n' | b'\r') => false,
        Some(0..=0x1F | 0x7F) => true,
        Some(0xC2) => matches!(text.get(at + 1), Some(0x80..=0x9F)),
        _ => false,
    }
}

/// All bits of a byte set where a control character may begin.
fn marks(block: [u8; BLOCK]) -> u8x16 {
    let bytes = u8x16::new(block);
    let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
    let low = bytes.min(u8x16::splat(0x1F)).simd_eq(bytes);
    // Tab and line feed are neighbours.
    let shifted = bytes - u8x16::splat(b'\t');
    let usual = shifted.min(u8x16::splat(1)).simd_eq(shifted) | is(b'\r');
    (low & !usual) | is(0x7F) | is(0xC2)
}
