//! The shapes in which numbers are written, and what may be written in each.
//!
//! Guarantees: a row of digits whose shape no rule has costs one look at a table. Deliberately absent: what a number must hold,
//! and the words that announce it (`national.rs`).

use super::{
    grouped::Lettered,
    number::{Glance, Row, Shape},
    set::Set,
    table,
};
use crate::sanitize::survey::{DIGITS, places};

/// Every shape of every rule.
#[derive(Debug)]
pub(super) struct Shapes {
    all: Vec<Known>,
    /// Where each shape is, by where its groups end or at the next free place; zero, where none is.
    slots: Box<[u16; SLOTS]>,
    /// What stands behind the first group of shapes, by where their groups end: a bit for each, see [`joint`].
    may: Box<[u8; SLOTS]>,
}

/// A shape in which a number may be written.
#[derive(Debug)]
pub(super) struct Known {
    shape: Shape,
    /// One bit for each rule that wants a word with it, and for each that does not.
    pub(super) worded: Set,
    pub(super) free: Set,
    /// Where letters may stand beside it.
    pub(super) lettered: Option<Lettered>,
}

/// Where a group of seven digits ends.
const SEVEN: u32 = 1 << 7;
/// Places for shapes: far more than there are shapes.
const SLOTS: usize = 1 << 10;

impl Shapes {
    pub(super) fn read() -> Self {
        let all = all();
        let mut slots = Box::new([0_u16; SLOTS]);
        let mut may = Box::new([0_u8; SLOTS]);
        for (known, nth) in all.iter().zip(1_u16..) {
            let mut slot = slot(known.shape.ends);
            // Behind the only group stands anything.
            may[slot] |= known.shape.first().map_or(u8::MAX, joint);
            while slots[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = nth;
        }
        Self { all, slots, may }
    }

    /// Whether anything may be written in the shape of a row: false for most rows.
    #[inline]
    pub(super) fn may_know(&self, text: &[u8], start: usize, row: Row) -> bool {
        let first = text.get(start + row.ends().trailing_zeros() as usize);
        let behind = joint(first.copied().unwrap_or(b' '));
        if self.may[slot(row.ends())] & behind == 0 {
            return false;
        }
        // Seven digits are told with a letter beside them only, and most are the number of something in a table.
        row.ends() != SEVEN || Lettered::Seven.is_beside(text, &(start..start + 7))
    }

    /// Those rows of a block at `at` in which anything may be written, by the places of their seventh bytes, and more: what is
    /// left out is let go by [`Shapes::may_know`] as well, and does not end where a line breaks it.
    // Most rows of most texts are times, addresses and versions. Nothing here branches by what a row is.
    #[inline(always)]
    pub(super) fn likely(&self, text: &[u8], at: usize, rows: u64) -> u64 {
        let mut likely = 0;
        for place in places(at, rows) {
            let row = text.get(place + 1 - DIGITS..).unwrap_or_default();
            let may = row.first_chunk().is_none_or(|row| self.may_be(row));
            likely |= u64::from(may) << (place - at);
        }
        likely
    }

    #[inline(always)]
    fn may_be(&self, row: &[u8; 16]) -> bool {
        let Glance { ends, broken, long } = Glance::at(row);
        let first = row[ends.trailing_zeros() as usize % row.len()];
        (self.may[slot(ends)] & joint(first) != 0) | broken | long
    }

    /// What may be written in the shape of a row.
    #[inline]
    pub(super) fn known(&self, text: &[u8], start: usize, row: Row) -> Option<&Known> {
        let mut slot = slot(row.ends());
        loop {
            let nth = usize::from(self.slots[slot]).checked_sub(1)?;
            let known = &self.all[nth];
            if known.shape.ends == row.ends() && known.shape.joints == row.joints(text, start) {
                return Some(known);
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

/// The first place for a shape.
#[inline]
const fn slot(ends: u32) -> usize {
    (ends.wrapping_mul(0x9E37_79B1) >> 22) as usize % SLOTS
}

/// One bit for each byte that may stand between groups: another for each of the four.
#[inline]
const fn joint(byte: u8) -> u8 {
    1 << (byte & 3)
}

/// What the rules say of each shape.
fn all() -> Vec<Known> {
    let mut all: Vec<Known> = Vec::new();
    let mut add = |written: &str, worded: Set, free: Set, lettered: Option<Lettered>| {
        let shape = Shape::of(written);
        let at = all.iter().position(|known| known.shape == shape);
        let at = at.unwrap_or_else(|| {
            all.push(Known {
                shape,
                worded: Set::NONE,
                free: Set::NONE,
                lettered: None,
            });
            all.len() - 1
        });
        let known = &mut all[at];
        known.worded |= worded;
        known.free |= free;
        known.lettered = known.lettered.or(lettered);
    };
    for (at, rule) in table::all().enumerate() {
        for shape in rule.worded {
            add(shape, Set::of(at), Set::NONE, None);
        }
        for shape in rule.alone {
            add(shape, Set::NONE, Set::of(at), None);
        }
    }
    for lettered in Lettered::ALL {
        for shape in lettered.shapes() {
            add(&shape, Set::NONE, Set::NONE, Some(lettered));
        }
    }
    all
}
