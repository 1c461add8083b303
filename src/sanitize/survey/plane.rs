//! One bit for each byte of eight blocks, in registers as wide as the machine has.
//!
//! What holds of a byte by those around it is found out for all of them at once.
//!
//! Everything here has to come to lie in the function that the width is chosen for, or it is compiled for none.

use std::ops::{BitAnd, BitOr, Not};

use fearless_simd::{Simd, prelude::*, u64x8};

use super::BLOCK;

/// How many blocks stand in a plane, one behind the other.
pub(super) const LANES: usize = 8;

/// Of which bytes of eight blocks something holds. Before the first of them and behind the last nothing stands.
#[derive(Clone, Copy)]
pub(super) struct Plane<S: Simd> {
    lanes: u64x8<S>,
    simd: S,
}

impl<S: Simd> Plane<S> {
    /// Of these blocks, the first byte lowest.
    #[inline(always)]
    pub(super) fn of(simd: S, lanes: &[u64; LANES]) -> Self {
        Self {
            lanes: u64x8::from_slice(simd, lanes),
            simd,
        }
    }

    /// Of no byte.
    #[inline(always)]
    pub(super) fn none(simd: S) -> Self {
        Self {
            lanes: u64x8::splat(simd, 0),
            simd,
        }
    }

    #[inline(always)]
    fn with(self, lanes: u64x8<S>) -> Self {
        Self { lanes, ..self }
    }

    /// What stands `by` bytes in front of each byte, at most so many as a block has.
    #[inline(always)]
    pub(super) fn behind(self, by: u32) -> Self {
        let before = Self::none(self.simd)
            .lanes
            .slide::<{ LANES - 1 }>(self.lanes);
        self.with(self.lanes << by | before >> (BLOCK as u32 - by))
    }

    /// What stands `by` bytes farther on than each byte, at most so many as a block has.
    #[inline(always)]
    pub(super) fn ahead(self, by: u32) -> Self {
        let after = self.lanes.slide::<1>(Self::none(self.simd).lanes);
        self.with(self.lanes >> by | after << (BLOCK as u32 - by))
    }

    /// Where as many in a row end as the steps come to, and one.
    #[inline(always)]
    pub(super) fn eroded<const N: usize>(self, steps: [u32; N]) -> Self {
        let mut here = self;
        for by in steps {
            here = here & here.behind(by);
        }
        here
    }

    /// The first of those in a row.
    #[inline(always)]
    pub(super) fn first(self) -> Self {
        self & !self.behind(1)
    }

    /// Each block by itself.
    #[inline(always)]
    pub(super) fn lanes(self) -> [u64; LANES] {
        let mut lanes = [0; LANES];
        self.lanes.store_slice(&mut lanes);
        lanes
    }

    /// In which blocks it holds of any byte, one bit for each.
    #[inline(always)]
    pub(super) fn held(self) -> u64 {
        (!self.lanes.simd_eq(0)).to_bitmask()
    }

    #[inline(always)]
    pub(super) fn any(self) -> bool {
        !self.lanes.simd_eq(0).all_true()
    }
}

impl<S: Simd> BitAnd for Plane<S> {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        self.with(self.lanes & other.lanes)
    }
}

impl<S: Simd> BitOr for Plane<S> {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        self.with(self.lanes | other.lanes)
    }
}

impl<S: Simd> Not for Plane<S> {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        self.with(!self.lanes)
    }
}
