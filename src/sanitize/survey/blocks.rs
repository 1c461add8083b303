//! Sixty-four bytes looked at together.

use wide::u8x16;

/// Bytes looked at together.
pub(in crate::sanitize) const BLOCK: usize = 64;

const PARTS: usize = BLOCK / 16;

/// The bytes of a run, and what is behind it.
#[derive(Clone, Copy)]
pub(super) struct Run([u8x16; PARTS]);

impl Run {
    #[inline(always)]
    pub(super) fn of(block: &[u8; BLOCK]) -> Self {
        let (parts, _) = block.as_chunks::<16>();
        Self([
            u8x16::new(parts[0]),
            u8x16::new(parts[1]),
            u8x16::new(parts[2]),
            u8x16::new(parts[3]),
        ])
    }

    /// One bit for each byte of which `of` holds, the first lowest.
    #[inline(always)]
    pub(super) fn mask(&self, of: impl Fn(u8x16) -> u8x16) -> u64 {
        mask(&self.0, of)
    }

    #[inline(always)]
    pub(super) fn letter(&self) -> u64 {
        self.mask(letter)
    }

    #[inline(always)]
    pub(super) fn digit(&self) -> u64 {
        self.mask(digit)
    }

    /// `+` and `/`.
    #[inline(always)]
    pub(super) fn slash(&self) -> u64 {
        self.mask(|bytes| is(bytes, b'+') | is(bytes, b'/'))
    }

    /// Hexadecimal digits with dashes and lines between, and the latter.
    #[inline(always)]
    pub(super) fn hexadecimal_in_groups(&self) -> (u64, u64) {
        let joints = self.mask(|bytes| is(bytes, b'-') | is(bytes, b'_'));
        let low = |bytes: u8x16| within(bytes | u8x16::splat(0x20), b'a', 6);
        (
            joints | self.mask(|bytes| low(bytes) | digit(bytes)),
            joints,
        )
    }

    /// Letters of either case up to `f`, and small letters.
    #[inline(always)]
    pub(super) fn hexadecimal(&self) -> (u64, u64) {
        let low = |bytes: u8x16| within(bytes | u8x16::splat(0x20), b'a', 6);
        let small = |bytes: u8x16| within(bytes, b'a', 26);
        (self.mask(low), self.mask(small))
    }

    /// Of either alphabet of Base64.
    #[inline(always)]
    pub(super) fn word(&self, alnums: u64) -> u64 {
        alnums | self.slash() | self.mask(|bytes| is(bytes, b'-') | is(bytes, b'_'))
    }
}

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
pub(in crate::sanitize) fn mask(bytes: &[u8x16; PARTS], of: impl Fn(u8x16) -> u8x16) -> u64 {
    bits(&each(bytes, of))
}

// Written out: the compiler makes a function of its own of `map`, which takes its vectors through memory.
#[inline(always)]
fn each(
    [first, second, third, fourth]: &[u8x16; PARTS],
    of: impl Fn(u8x16) -> u8x16,
) -> [u8x16; PARTS] {
    [of(*first), of(*second), of(*third), of(*fourth)]
}

#[inline(always)]
fn bits([first, second, third, fourth]: &[u8x16; PARTS]) -> u64 {
    let bits = |lanes: &u8x16| u64::from(lanes.to_bitmask());
    bits(fourth) << 48 | bits(third) << 32 | bits(second) << 16 | bits(first)
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

#[inline(always)]
fn letter(bytes: u8x16) -> u8x16 {
    within(bytes | u8x16::splat(0x20), b'a', 26)
}

#[inline(always)]
fn digit(bytes: u8x16) -> u8x16 {
    within(bytes, b'0', 10)
}
