//! A row of digits as it is grouped.
//!
//! Guarantees: holds no more than [`MOST`] digits and looks no farther. Deliberately absent: what the digits mean.

use std::ops::Range;

use wide::u8x16;

/// The most digits that a number here may have.
pub(super) const MOST: usize = 24;
/// The most bytes of a shape.
const SHAPE: usize = 24;

/// How a row of digits is grouped, for a first look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sketch {
    /// Equal for equal shapes, and rarely for others.
    pub(super) shape: u32,
    count: usize,
    /// Whether what stands between groups may stand before a number.
    open: bool,
}

/// The fewest digits of a payment card.
const CARD: usize = 12;
/// Rows of fewer bytes are looked at in registers.
// No more than one register holds: the compiler takes the bits of two apart one by one to put them together.
const SHORT: usize = 16;

impl Sketch {
    /// Of the row that begins at `start`, no farther than is needed to see what comes of it; nothing, if it is no number of
    /// anybody: the rest of a word in small letters, of which no part stands alone. Some numbers of Spain have an `x`, `y` or
    /// `z` in front.
    #[inline]
    pub(super) fn worth(text: &[u8], start: usize) -> Option<Self> {
        let Some(row) = text.get(start..).and_then(<[u8]>::first_chunk::<SHORT>) else {
            let sketch = Self::at(text, start);
            return (!sketch.is_inside(text, start)).then_some(sketch);
        };
        let bytes = u8x16::new(*row);
        let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
        let moved = bytes - u8x16::splat(b'0');
        let digit = moved.min(u8x16::splat(9)).simd_eq(moved).to_bitmask();
        let open = (is(b' ') | is(b'/')).to_bitmask();
        let closed = (is(b'-') | is(b'.')).to_bitmask();
        let joint = (open | closed) & digit << 1 & digit >> 1;
        let length = (digit | joint).trailing_ones();
        if length as usize >= SHORT - 1 {
            let sketch = Self::at(text, start);
            return (!sketch.is_inside(text, start)).then_some(sketch);
        }
        let all = (1 << length) - 1;
        let mut sketch = Self {
            shape: 0,
            count: (digit & all).count_ones() as usize,
            open: open & joint & all != 0,
        };
        if sketch.is_inside(text, start) {
            return None;
        }
        if sketch.is_long() {
            return Some(sketch);
        }
        let mut joints = joint & all;
        let mut from = 0;
        while joints != 0 {
            let at = joints.trailing_zeros();
            joints &= joints - 1;
            sketch.add(at - from, row[at as usize]);
            from = at + 1;
        }
        sketch.add(length - from, 0);
        Some(sketch)
    }

    /// The same byte by byte, for rows that are long or stand at the end.
    fn at(text: &[u8], start: usize) -> Self {
        let mut sketch = Self {
            shape: 0,
            count: 0,
            open: false,
        };
        let mut group = 0;
        let mut rest = text[start..].iter();
        while let Some(byte) = rest.next() {
            if byte.is_ascii_digit() {
                group += 1;
                sketch.count += 1;
                if sketch.count >= CARD && sketch.open {
                    break;
                }
            } else if matches!(byte, b' ' | b'-' | b'.' | b'/')
                && rest.as_slice().first().is_some_and(u8::is_ascii_digit)
            {
                sketch.add(group, *byte);
                sketch.open |= matches!(byte, b' ' | b'/');
                group = 0;
            } else {
                break;
            }
            if sketch.count > MOST {
                break;
            }
        }
        sketch.add(group, 0);
        sketch
    }

    /// The same of a shape as [`Number::shape`] writes it.
    pub(super) fn of(shape: &[u8]) -> u32 {
        let mut sketch = Self {
            shape: 0,
            count: 0,
            open: false,
        };
        let mut group = 0;
        for byte in shape {
            if byte.is_ascii_digit() {
                group = group * 10 + u32::from(byte - b'0');
            } else {
                sketch.add(group, *byte);
                group = 0;
            }
        }
        sketch.add(group, 0);
        sketch.shape
    }

    /// Whether it has the digits of a card.
    pub(super) const fn is_long(&self) -> bool {
        self.count >= CARD
    }

    fn is_inside(&self, text: &[u8], start: usize) -> bool {
        !self.open
            && start
                .checked_sub(1)
                .is_some_and(|at| matches!(text[at], b'a'..=b'w'))
    }

    #[inline]
    const fn add(&mut self, group: u32, joint: u8) {
        self.shape = (self.shape ^ (group << 8 | joint as u32)).wrapping_mul(0x9E37_79B1);
        self.shape ^= self.shape >> 15;
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
    let after = text.get(span.end).copied().unwrap_or(b' ');
    let further = text.get(span.end + 1).copied().unwrap_or(b' ');
    let joined_before = before.is_ascii_alphanumeric()
        || matches!(
            before,
            b'_' | b'.' | b'/' | b'-' | b'+' | b'@' | b'%' | b'$' | b'&'
        );
    let joined_after = after.is_ascii_alphanumeric()
        || matches!(after, b'_' | b'/' | b'%' | b'@')
        || (matches!(after, b'.' | b'-') && further.is_ascii_alphanumeric());
    !joined_before && !joined_after
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_sketch_in_registers_is_what_it_is_byte_by_byte(before in "[a-zA-Z ./-]{0,2}", row in "([0-9]{1,9}[ ./-]{0,2}){1,6}", after in "[a-z0-9 ]{0,40}") {
            let text = format!("{before}{row}{after}");
            let (text, start) = (text.as_bytes(), before.len());
            let slow = Sketch::at(text, start);
            let quick = Sketch::worth(text, start);
            prop_assert_eq!(quick.is_none(), slow.is_inside(text, start));
            if let Some(quick) = quick {
                prop_assert_eq!(quick.is_long(), slow.is_long());
                prop_assert!(quick.is_long() || quick.shape == slow.shape);
            }
        }
    }
}
