//! Which of the rules: one bit for each.
//!
//! Guarantees: holds every rule that there may be, [`Set::MOST`], in two words. Deliberately absent: what the rules are.

use std::ops::{BitAnd, BitOr, BitOrAssign};

/// Some of the rules, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set([u128; 2]);

impl Set {
    /// More rules than this have no bits.
    pub(super) const MOST: usize = 256;
    /// None of them.
    pub(super) const NONE: Self = Self([0; 2]);
    /// All of them.
    pub(super) const ALL: Self = Self([u128::MAX; 2]);

    /// One of them.
    #[inline]
    pub(super) const fn of(at: usize) -> Self {
        match at {
            ..128 => Self([1 << at, 0]),
            _ => Self([0, 1 << (at - 128)]),
        }
    }

    #[inline]
    pub(super) const fn has(self, at: usize) -> bool {
        self.0[at / 128] >> (at % 128) & 1 == 1
    }

    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.0[0] | self.0[1] == 0
    }

    /// Their numbers, in order.
    #[inline]
    pub(super) fn each(self) -> impl Iterator<Item = usize> {
        let Self([mut low, mut high]) = self;
        std::iter::from_fn(move || {
            if low != 0 {
                let at = low.trailing_zeros() as usize;
                low &= low - 1;
                return Some(at);
            }
            let at = (high != 0).then(|| 128 + high.trailing_zeros() as usize);
            high &= high.wrapping_sub(1);
            at
        })
    }
}

impl BitOr for Set {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }
}

impl BitAnd for Set {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }
}

impl BitOrAssign for Set {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_tells_what_is_in_it_in_order() {
        let some = [0, 5, 127, 128, 200, 255];
        let mut set = Set::NONE;
        assert!(set.is_empty());
        for at in some.into_iter().rev() {
            set |= Set::of(at);
        }
        assert!(!set.is_empty());
        assert_eq!(set.each().collect::<Vec<_>>(), some);
        assert!((0..Set::MOST).all(|at| set.has(at) == some.contains(&at)));
        assert!((0..Set::MOST).all(|at| Set::ALL.has(at)));
        assert_eq!(set & Set::of(200), Set::of(200));
        assert_eq!((set & Set::of(201)).each().count(), 0);
        assert_eq!(Set::ALL.each().count(), Set::MOST);
    }
}
