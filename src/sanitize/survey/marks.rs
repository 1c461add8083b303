//! Sixty-four bytes in registers as wide as the machine has.
//!
//! Everything here has to come to lie in the function that the width is chosen for, or it is compiled for none.

use fearless_simd::{Simd, mask8x64, prelude::*, u8x64};

use super::{BLOCK, block};

/// A block in registers.
#[derive(Clone, Copy)]
pub(in crate::sanitize) struct Marks<S: Simd>(u8x64<S>);

/// How far on from a block may be looked with it.
const FARTHER: usize = 4;

/// Of which bytes of a block something holds.
pub(in crate::sanitize) type Held<S> = mask8x64<S>;

/// One bit for each byte, the first lowest.
#[inline(always)]
pub(in crate::sanitize) fn bits<S: Simd>(held: Held<S>) -> u64 {
    held.to_bitmask()
}

impl<S: Simd> Marks<S> {
    /// Of these bytes.
    #[inline(always)]
    pub(in crate::sanitize) fn of(bytes: u8x64<S>) -> Self {
        Self(bytes)
    }

    #[inline(always)]
    pub(in crate::sanitize) fn bytes(self) -> u8x64<S> {
        self.0
    }

    /// The block at `at`, filled up with spaces past the end.
    #[inline(always)]
    pub(in crate::sanitize) fn at(simd: S, text: &[u8], at: usize) -> Self {
        let rest = text.get(at..).unwrap_or_default();
        match rest.first_chunk::<BLOCK>() {
            Some(block) => Self(u8x64::from_slice(simd, block)),
            None => Self(u8x64::from_slice(simd, &block(rest, 0))),
        }
    }

    /// What stands one byte before each of the block at `at`; before the text a space.
    #[inline(always)]
    pub(super) fn back_from(simd: S, text: &[u8], at: usize) -> Self {
        match at.checked_sub(1) {
            Some(back) => Self::at(simd, text, back),
            None => {
                let mut first = [b' '; BLOCK];
                let near = text.len().min(BLOCK - 1);
                first[1..=near].copy_from_slice(&text[..near]);
                Self(u8x64::from_slice(simd, &first))
            }
        }
    }

    /// The same, and what stands one byte farther on, and so forth: `N` of them, up to five.
    #[inline(always)]
    pub(in crate::sanitize) fn on_from<const N: usize>(
        simd: S,
        text: &[u8],
        at: usize,
    ) -> [Self; N] {
        const { assert!(N <= FARTHER + 1) };
        let rest = text.get(at..).unwrap_or_default();
        match rest.first_chunk() {
            Some(window) => Self::each_of(simd, window),
            None => {
                let mut last = [b' '; BLOCK + FARTHER];
                let near = rest.len().min(last.len());
                last[..near].copy_from_slice(&rest[..near]);
                Self::each_of(simd, &last)
            }
        }
    }

    #[inline(always)]
    fn each_of<const N: usize>(simd: S, window: &[u8; BLOCK + FARTHER]) -> [Self; N] {
        let mut all = [Self(u8x64::splat(simd, 0)); N];
        for (by, marks) in all.iter_mut().enumerate() {
            *marks = Self(u8x64::from_slice(simd, &window[by..by + BLOCK]));
        }
        all
    }

    #[inline(always)]
    pub(in crate::sanitize) fn is(self, byte: u8) -> Held<S> {
        self.0.simd_eq(byte)
    }

    #[inline(always)]
    pub(in crate::sanitize) fn at_least(self, least: u8) -> Held<S> {
        self.0.simd_ge(least)
    }

    #[inline(always)]
    pub(in crate::sanitize) fn at_most(self, most: u8) -> Held<S> {
        self.0.simd_le(most)
    }

    /// One of `count` bytes from `first` on.
    #[inline(always)]
    pub(in crate::sanitize) fn within(self, first: u8, count: u8) -> Held<S> {
        (self.0 - first).simd_le(count - 1)
    }

    /// The same bytes with these bits set.
    #[inline(always)]
    pub(in crate::sanitize) fn with(self, bits: u8) -> Self {
        Self(self.0 | bits)
    }

    /// The same bytes with no other bits than these.
    #[inline(always)]
    pub(in crate::sanitize) fn only(self, bits: u8) -> Self {
        Self(self.0 & bits)
    }

    /// For each byte what both tables have for it, one by its lower four bits, one by its upper four. The tables stand in every
    /// sixteen bytes anew.
    #[inline(always)]
    pub(in crate::sanitize) fn found_in(self, low: u8x64<S>, high: u8x64<S>) -> Self {
        let by_low = low.swizzle_dyn_within_blocks(self.0 & 15);
        Self(by_low & high.swizzle_dyn_within_blocks(self.0 >> 4))
    }

    /// The bits that these have, too.
    #[inline(always)]
    pub(in crate::sanitize) fn also(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[inline(always)]
    pub(super) fn letter(self) -> Held<S> {
        self.with(0x20).within(b'a', 26)
    }

    #[inline(always)]
    pub(super) fn digit(self) -> Held<S> {
        self.within(b'0', 10)
    }

    /// `+` and `/`.
    #[inline(always)]
    pub(super) fn slash(self) -> Held<S> {
        self.with(4).is(b'/')
    }

    /// Control characters of one byte that not any text has.
    #[inline(always)]
    pub(in crate::sanitize) fn control(self) -> Held<S> {
        let usual = self.within(b'\t', 2) | self.is(b'\r');
        self.at_most(0x1F) & !usual | self.is(0x7F)
    }
}

/// What stands `by` bytes in front of each byte; `before` is of the block before.
#[inline(always)]
pub(in crate::sanitize) const fn behind(before: u64, now: u64, by: u32) -> u64 {
    now << by | before >> (64 - by)
}

/// What stands behind each byte; `next` is of the first behind the block.
#[inline(always)]
pub(super) const fn ahead(now: u64, next: bool) -> u64 {
    now >> 1 | (next as u64) << 63
}
