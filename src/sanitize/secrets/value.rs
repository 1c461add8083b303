//! The value behind an assignment, as it is written in source, in a shell and in settings.
//!
//! Guarantees: looks no farther than a bound, and at what goes on without an end but once. Deliberately absent: what the value is.

use std::ops::Range;

use super::{plausible::PASSWORD, scan::Scan};
use crate::sanitize::work::looked;

impl Scan<'_> {
    /// The value behind an assignment, and whether it stands in quotes.
    pub(super) fn value_after(&mut self, at: usize) -> Option<(Range<usize>, bool)> {
        self.value_within(at, PASSWORD + 1)
    }

    /// The same, if it has fewer bytes than `most`, or ends with the text.
    pub(super) fn value_within(&mut self, at: usize, most: usize) -> Option<(Range<usize>, bool)> {
        let text = self.text;
        let mut start = at + 1;
        if matches!(text.get(start), Some(b'=' | b'>')) {
            start += 1;
        }
        start += text
            .get(start..)?
            .iter()
            .take(4)
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        if text.get(start) == Some(&b'\\') {
            start += 1;
        }
        // `N'...'` of SQL, `b"..."` of Python.
        if let Some([b'N' | b'b' | b'r', b'"' | b'\'']) = text.get(start..start + 2) {
            start += 1;
        }
        let quote = text
            .get(start)
            .copied()
            .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
        start += usize::from(quote.is_some());
        let rest = text.get(start..)?;
        let farthest = start + rest.len().min(most);
        let end = match quote {
            Some(quote) => {
                let end = rest
                    .iter()
                    .take(most)
                    .position(|byte| *byte == quote || matches!(byte, b'\n' | b'\\'))
                    .map(|length| start + length);
                looked(end.unwrap_or(farthest) - start);
                end
            }
            None => self.end_of_bare(start, farthest),
        };
        let end = end.or((farthest == text.len()).then_some(farthest))?;
        Some((start..end, quote.is_some()))
    }

    /// Where the value without quotes ends that begins at `start`, if it does before `farthest`. Where none ends is remembered: an
    /// assignment may stand in every few bytes of a value that goes on.
    fn end_of_bare(&mut self, start: usize, farthest: usize) -> Option<usize> {
        if !self.bare.contains(&start) {
            self.bare = start..start;
        }
        let from = self.bare.end.min(farthest);
        let rest = &self.text[from..farthest];
        let length = rest.iter().position(|byte| ends_bare(*byte));
        looked(length.unwrap_or(rest.len()));
        let end = length.map(|length| from + length);
        self.bare.end = self.bare.end.max(end.unwrap_or(farthest));
        end
    }
}

/// What ends a value without quotes.
const fn ends_bare(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b';' | b',' | b'&' | b'"' | b'\'' | b')' | b'}' | b'<' | b'`' | b'\\'
        )
}
