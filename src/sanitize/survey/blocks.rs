//! Sixty-four bytes looked at together.

use wide::u8x16;

/// Bytes looked at together.
pub(in crate::sanitize) const BLOCK: usize = 64;

/// The block at `at`, filled up with spaces past the end.
#[inline]
pub(in crate::sanitize) fn block(text: &[u8], at: usize) -> [u8; BLOCK] {
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

/// One bit for each byte of which `of` holds, the first lowest.
#[inline(always)]
pub(in crate::sanitize) fn mask<const PARTS: usize>(
    bytes: &[u8x16; PARTS],
    of: impl Fn(u8x16) -> u8x16,
) -> u64 {
    const { assert!(PARTS * 16 <= BLOCK) };
    // The compiler makes a function of its own of `map`, which takes its vectors through memory.
    let (mut all, mut nth) = (0, 0);
    while nth < PARTS {
        all |= u64::from(of(bytes[nth]).to_bitmask()) << (16 * nth);
        nth += 1;
    }
    all
}

#[inline(always)]
pub(in crate::sanitize) fn is(bytes: u8x16, byte: u8) -> u8x16 {
    bytes.simd_eq(u8x16::splat(byte))
}

/// All bits of a byte set where it is one of `count` from `first` on.
#[inline(always)]
pub(in crate::sanitize) fn within(bytes: u8x16, first: u8, count: u8) -> u8x16 {
    let from = bytes - u8x16::splat(first);
    from.min(u8x16::splat(count - 1)).simd_eq(from)
}
