//! A row of digits as it is grouped.
//!
//! Guarantees: holds no more than [`MOST`] digits and looks no farther. Deliberately absent: what the digits mean.

use std::{num::NonZeroU32, ops::Range};

use wide::u8x16;

/// The most digits that a number here may have.
pub(super) const MOST: usize = 24;
/// The most bytes of a shape.
const SHAPE: usize = 24;

/// The fewest digits of a payment card.
const CARD: usize = 12;
/// Rows of so many bytes or more are no national number.
const LONG: u32 = 31;

/// How a row of digits is grouped: one bit for each byte of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// What stands between groups, and the end.
    pub(super) ends: u32,
    pub(super) joints: Joints,
}

/// What stands between the groups of a row of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Joints {
    /// `-` and `/`.
    low: u32,
    /// `.` and `/`.
    high: u32,
}

impl Shape {
    /// Of groups as rules write them: `3.3.3-2`.
    pub(super) fn of(written: &str) -> Self {
        let (mut ends, mut joints) = (0_u32, Joints::default());
        let (mut at, mut group) = (0, 0);
        for byte in written.bytes() {
            if byte.is_ascii_digit() {
                group = group * 10 + u32::from(byte - b'0');
            } else {
                at += group;
                ends |= 1 << at;
                joints.add(byte, at);
                (at, group) = (at + 1, 0);
            }
        }
        ends |= 1 << (at + group);
        Self { ends, joints }
    }

    /// What stands behind the first group, if there are more.
    pub(super) const fn first(&self) -> Option<u8> {
        let at = self.ends.trailing_zeros();
        if self.ends.is_power_of_two() {
            return None;
        }
        Some(
            match (self.joints.low >> at & 1, self.joints.high >> at & 1) {
                (0, 0) => b' ',
                (_, 0) => b'-',
                (0, _) => b'.',
                _ => b'/',
            },
        )
    }
}

impl Joints {
    fn add(&mut self, byte: u8, at: u32) {
        self.low |= u32::from(matches!(byte, b'-' | b'/')) << at;
        self.high |= u32::from(matches!(byte, b'.' | b'/')) << at;
    }
}

/// A row of digits, for a first look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// What stands between groups, and the end, as in a shape.
    // Never zero, so that a row that is none takes no more than a register either.
    ends: NonZeroU32,
}

impl Row {
    /// The row that begins at `start`; nothing, where it is too long to be held.
    #[inline]
    pub(super) fn at(text: &[u8], start: usize) -> Option<Self> {
        // Most rows end here.
        if let Some(bytes) = text[start..].first_chunk()
            && let Some(row) = Self::of(Lanes::of(bytes), 15)
        {
            return Some(row);
        }
        Self::long(text, start)
    }

    #[inline(never)]
    fn long(text: &[u8], start: usize) -> Option<Self> {
        let mut bytes = [0; 32];
        let rest = &text[start..(start + bytes.len()).min(text.len())];
        bytes[..rest.len()].copy_from_slice(rest);
        let (parts, _) = bytes.as_chunks();
        let (near, far) = (Lanes::of(&parts[0]), Lanes::of(&parts[1]));
        let lanes = Lanes {
            digit: near.digit | far.digit << 16,
            joint: near.joint | far.joint << 16,
        };
        Self::of(lanes, LONG)
    }

    /// The row at the start of these bytes, if it has fewer than `most`.
    #[inline]
    const fn of(Lanes { digit, joint }: Lanes, most: u32) -> Option<Self> {
        let joint = joint & digit << 1 & digit >> 1;
        let row = digit | joint;
        // The lowest bit that is not set.
        let end = !row & row.wrapping_add(1);
        if end.wrapping_sub(1) >= (1 << most) - 1 {
            return None;
        }
        match NonZeroU32::new(joint & (end - 1) | end) {
            Some(ends) => Some(Self { ends }),
            None => None,
        }
    }

    /// What stands between groups, and the end, as in a shape.
    #[inline]
    pub(super) const fn ends(self) -> u32 {
        self.ends.get()
    }

    /// In bytes.
    #[inline]
    pub(super) const fn length(self) -> usize {
        31 - self.ends.leading_zeros() as usize
    }

    /// How many digits it has.
    #[inline]
    pub(super) const fn count(self) -> usize {
        self.length() + 1 - self.ends().count_ones() as usize
    }

    /// Whether it has more than one group.
    #[inline]
    pub(super) const fn is_grouped(self) -> bool {
        !self.ends.is_power_of_two()
    }

    /// Whether it has the digits of a card.
    #[inline]
    pub(super) const fn is_long(self) -> bool {
        self.ends() >> CARD != 0 && self.count() >= CARD
    }

    /// What stands between its groups.
    #[inline]
    pub(super) fn joints(self, text: &[u8], start: usize) -> Joints {
        let mut joints = Joints::default();
        let mut left = self.ends();
        // The last is the end.
        while left & (left - 1) != 0 {
            let at = left.trailing_zeros();
            left &= left - 1;
            joints.add(text[start + at as usize], at);
        }
        joints
    }

    /// The digits of the row, each as its number. Those behind the last are anything.
    #[inline]
    pub(super) fn digits(self, text: &[u8], start: usize) -> [u8; MOST] {
        if self.ends.is_power_of_two()
            && let Some(bytes) = text[start..].first_chunk::<MOST>()
        {
            return bytes.map(|byte| byte.wrapping_sub(b'0'));
        }
        let mut digits = [0; MOST];
        let row = text[start..start + self.length()].iter();
        let row = row.filter(|byte| byte.is_ascii_digit());
        for (digit, byte) in digits.iter_mut().zip(row) {
            *digit = byte - b'0';
        }
        digits
    }
}

/// What is seen of a row without a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glance {
    /// What stands between groups, and the end, as in a shape; anything, where it is long.
    pub(super) ends: u32,
    /// Whether it has groups, and goes on behind a line feed.
    pub(super) broken: bool,
    /// Whether it is longer than is told here, or has the digits of a card.
    pub(super) long: bool,
}

impl Glance {
    /// At the row that begins with these bytes.
    #[inline(always)]
    pub(super) fn at(bytes: &[u8; 16]) -> Self {
        let Lanes { digit, joint } = Lanes::of(bytes);
        let joint = joint & digit << 1 & digit >> 1;
        let row = digit | joint;
        let end = !row & row.wrapping_add(1);
        let length = end.trailing_zeros();
        let ends = joint & end.wrapping_sub(1) | end;
        let feed = bytes[length as usize % bytes.len()] == b'\n';
        Self {
            ends,
            broken: !ends.is_power_of_two() & feed & (digit >> ((length + 1) % 32) & 1 == 1),
            long: (length >= 15) | (length + 1 - ends.count_ones() >= CARD as u32),
        }
    }
}

/// One bit for each of some bytes that is of a kind.
struct Lanes {
    digit: u32,
    /// What may stand between groups.
    joint: u32,
}

impl Lanes {
    #[inline(always)]
    fn of(bytes: &[u8; 16]) -> Self {
        let bytes = u8x16::new(*bytes);
        let within = |first: u8, count: u8| {
            let moved = bytes - u8x16::splat(first);
            moved.min(u8x16::splat(count - 1)).simd_eq(moved)
        };
        let blank = bytes.simd_eq(u8x16::splat(b' '));
        Self {
            digit: within(b'0', 10).to_bitmask(),
            joint: (within(b'-', 3) | blank).to_bitmask(),
        }
    }
}

/// Digits, and how they are grouped.
#[derive(Debug, Clone)]
pub(super) struct Number {
    digits: [u8; MOST],
    count: usize,
    shape: [u8; SHAPE],
    shaped: usize,
    pub(super) span: Range<usize>,
    /// Whether it went on beyond what can be held.
    pub(super) cut: bool,
}

impl Number {
    /// The row that begins at `start`, which is a digit.
    pub(super) fn at(text: &[u8], start: usize) -> Self {
        let mut number = Self {
            digits: [0; MOST],
            count: 0,
            shape: [0; SHAPE],
            shaped: 0,
            span: start..start,
            cut: false,
        };
        let (mut at, mut group) = (start, 0_u8);
        while let Some(&byte) = text.get(at) {
            let joint = matches!(byte, b' ' | b'-' | b'.' | b'/')
                && group > 0
                && text.get(at + 1).is_some_and(u8::is_ascii_digit);
            if byte.is_ascii_digit() && number.count < MOST {
                number.digits[number.count] = byte - b'0';
                number.count += 1;
                group += 1;
            } else if joint && number.shaped + 5 < SHAPE {
                number.group(group);
                number.shape[number.shaped] = byte;
                number.shaped += 1;
                group = 0;
            } else {
                number.cut = byte.is_ascii_digit() || joint;
                break;
            }
            at += 1;
        }
        number.group(group);
        number.span.end = at;
        number
    }

    /// The digits, each as its number.
    pub(super) fn digits(&self) -> &[u8] {
        &self.digits[..self.count]
    }

    /// The lengths of the groups with what stands between them: `3.3.3-2`.
    pub(super) fn shape(&self) -> &[u8] {
        &self.shape[..self.shaped]
    }

    fn group(&mut self, length: u8) {
        if length >= 10 {
            self.shape[self.shaped] = b'0' + length / 10;
            self.shaped += 1;
        }
        self.shape[self.shaped] = b'0' + length % 10;
        self.shaped += 1;
    }
}

/// Whether what stands around a number makes it a part of something else: a word, a decimal, a path.
pub(super) fn stands_alone(text: &[u8], span: &Range<usize>) -> bool {
    let before = span.start.checked_sub(1).map_or(b' ', |at| text[at]);
    let joined_before = before.is_ascii_alphanumeric()
        || matches!(
            before,
            b'_' | b'.' | b'/' | b'-' | b'+' | b'@' | b'%' | b'$' | b'&'
        );
    !joined_before && ends_alone(text, span.end)
}

/// Whether a number that ends at `end` does so, and is not a part of something that goes on.
pub(super) fn ends_alone(text: &[u8], end: usize) -> bool {
    let after = text.get(end).copied().unwrap_or(b' ');
    let further = text.get(end + 1).copied().unwrap_or(b' ');
    let joined = after.is_ascii_alphanumeric()
        || matches!(after, b'_' | b'/' | b'%' | b'@')
        || (matches!(after, b'.' | b'-') && further.is_ascii_alphanumeric());
    !joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lengths of the groups of a row, and what stands between them.
    fn written(row: &[u8]) -> String {
        let mut shape = String::new();
        let mut group = 0;
        for byte in row {
            if byte.is_ascii_digit() {
                group += 1;
            } else {
                shape.push_str(&format!("{group}{}", char::from(*byte)));
                group = 0;
            }
        }
        shape + &group.to_string()
    }

    proptest! {
        #[test]
        fn a_row_in_registers_is_what_it_is_byte_by_byte(before in "[a-zA-Z ./-]{0,2}", row in "([0-9]{1,9}[ ./-]{0,2}){1,6}", after in "(\n?[0-9])?[a-z0-9 ]{0,40}") {
            let text = format!("{before}{row}{after}");
            let (text, start) = (text.as_bytes(), before.len());
            let mut end = start;
            while text.get(end).is_some_and(|byte| {
                let joint = b" ./-".contains(byte) && text[end - 1].is_ascii_digit();
                byte.is_ascii_digit() || joint && text.get(end + 1).is_some_and(u8::is_ascii_digit)
            }) {
                end += 1;
            }
            let plain = &text[start..end];
            if let Some(bytes) = text[start..].first_chunk() {
                let glance = Glance::at(bytes);
                let digits = plain.iter().filter(|byte| byte.is_ascii_digit()).count();
                prop_assert_eq!(glance.long, plain.len() >= 15 || digits >= CARD);
                if !glance.long {
                    let row = Row::at(text, start).expect("a short one");
                    prop_assert_eq!(glance.ends, row.ends());
                    let next = [text.get(end), text.get(end + 1)];
                    let goes_on = matches!(next, [Some(b'\n'), Some(b'0'..=b'9')]);
                    prop_assert_eq!(glance.broken, row.is_grouped() && goes_on);
                }
            }
            match Row::at(text, start) {
                None => prop_assert!(plain.len() >= LONG as usize),
                Some(row) => {
                    prop_assert_eq!(row.length(), plain.len());
                    let shape = Shape { ends: row.ends(), joints: row.joints(text, start) };
                    prop_assert_eq!(shape, Shape::of(&written(plain)));
                    let digits: Vec<u8> = plain.iter().filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0').collect();
                    prop_assert_eq!(row.count(), digits.len());
                    prop_assert_eq!(row.is_long(), digits.len() >= CARD);
                    let held = digits.len().min(MOST);
                    prop_assert_eq!(&row.digits(text, start)[..held], &digits[..held]);
                }
            }
        }
    }
}
