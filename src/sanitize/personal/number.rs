//! A row of digits as it is grouped.
//!
//! Guarantees: holds no more than [`MOST`] digits and looks no farther. Deliberately absent: what the digits mean.

use std::ops::Range;

/// The most digits that a number here may have.
pub(super) const MOST: usize = 24;
/// The most bytes of a shape.
const SHAPE: usize = 24;

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
