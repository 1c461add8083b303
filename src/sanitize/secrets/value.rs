//! The value behind an assignment, as it is written in source, in a shell and in settings.
//!
//! Guarantees: looks no farther than a bound, and at what goes on without an end but once. Deliberately absent: what the value is.

use std::ops::Range;

use super::{bytes::is_token, plausible::PASSWORD, scan::Scan};
use crate::sanitize::work::looked;

/// The most backslashes in front of a quote: of a string within a string within two others.
const ESCAPES: usize = 7;
/// How far before the end of a name its beginning is looked for, in bytes.
const NAME: usize = 64;

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
        // The quotes of a string within a string are escaped.
        let escapes = backslashes(text[start..].iter());
        let mut opened = start + escapes;
        // `N'...'` of SQL, `b"..."` of Python.
        if let Some([b'N' | b'b' | b'r', b'"' | b'\'']) = text.get(opened..opened + 2) {
            opened += 1;
        }
        let quote = text
            .get(opened)
            .copied()
            .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
        start = match quote {
            Some(_) => opened + 1,
            None => start + escapes.min(1),
        };
        let rest = text.get(start..)?;
        let length = match quote {
            Some(quote) => {
                let near = &rest[..rest.len().min(most)];
                let length = end_of_quoted(near, quote, escapes);
                looked(length.unwrap_or(near.len()));
                length.unwrap_or(rest.len())
            }
            None => {
                let ends = |rest: &[u8]| rest.iter().position(|byte| ends_bare(*byte));
                self.ends.bare.after(text, start, ends) - start
            }
        };
        let end = start + length;
        (length < most || end == text.len() && length == most)
            .then_some((start..end, quote.is_some()))
    }

    /// Where the reader of an assignment takes its value to end, which may be behind `end`, where a value in source ends: at a
    /// blank, a quote, a semicolon, or where `&` parts it from the next. Behind a semicolon `&` parts nothing. The name ends with
    /// what begins at `name`.
    pub(super) fn end_of_assigned(&mut self, name: usize, at: usize, end: usize) -> usize {
        let text = self.text;
        let word = text[name.saturating_sub(NAME)..name].iter().rev();
        let start = name - word.take_while(|byte| is_token(**byte)).count();
        let blanks = text[start.saturating_sub(NAME)..start].iter().rev();
        let blanks = blanks.take_while(|byte| matches!(byte, b' ' | b'\t'));
        let blanks = blanks.count();
        let before = text[..start - blanks].last().copied().unwrap_or(b'\n');
        let is_part = match before {
            b'\n' => return self.ends.own.after(text, end, end_of_own),
            b';' => return self.ends.parted.after(text, end, end_of_parted),
            _ if blanks > 0 => text[at] == b'=',
            // A quote that closes behind the name is no quote around the assignment.
            b'"' | b'\'' | b'`' => is_token(text[at - 1]),
            // The escape of a line, and the sign of a change.
            b'\\' | b'+' => true,
            _ => false,
        };
        if is_part {
            self.ends.part.after(text, end, end_of_part)
        } else {
            end
        }
    }
}

/// How many backslashes these begin with.
pub(super) fn backslashes<'t>(bytes: impl Iterator<Item = &'t u8>) -> usize {
    bytes
        .take(ESCAPES)
        .take_while(|byte| **byte == b'\\')
        .count()
}

/// Where the string ends whose inside is `rest`: at its quote, or with its line. An escaped quote does not end it. `escapes`
/// backslashes stand in front of the quote that opens it, and of the one that closes it.
pub(super) fn end_of_quoted(rest: &[u8], quote: u8, escapes: usize) -> Option<usize> {
    let mut backslashes = 0;
    for (at, byte) in rest.iter().enumerate() {
        if *byte == b'\\' {
            backslashes += 1;
            continue;
        }
        // More backslashes escape a quote within it, unless they are escaped themselves.
        let closes =
            || backslashes <= escapes || (backslashes - escapes).is_multiple_of(2 * escapes + 2);
        if *byte == b'\n' || *byte == quote && closes() {
            return Some(at - backslashes.min(escapes));
        }
        backslashes = 0;
    }
    None
}

/// Where a word of a command without quotes ends: at a blank, or with the string that it stands in.
pub(super) fn end_of_word(rest: &[u8]) -> Option<usize> {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || is_quote(*byte);
    let at = rest.iter().position(ends)?;
    Some(before_escapes(rest, at))
}

/// Where an assignment ends that begins a line, or the text.
fn end_of_own(rest: &[u8]) -> Option<usize> {
    let ends = |at: &usize| match rest[*at] {
        b'&' => is_next(&rest[at + 1..]),
        byte => byte.is_ascii_whitespace() || byte == b';' || is_quote(byte),
    };
    let at = (0..rest.len()).find(ends)?;
    Some(before_escapes(rest, at))
}

/// Where an assignment ends that is part of a string or of a command.
fn end_of_part(rest: &[u8]) -> Option<usize> {
    (0..rest.len()).find(|at| match rest[*at] {
        b'&' => is_next(&rest[at + 1..]),
        _ => ends_parted(&rest[*at..]),
    })
}

/// Where an assignment ends that a semicolon parts from what stands before.
fn end_of_parted(rest: &[u8]) -> Option<usize> {
    (0..rest.len()).find(|at| ends_parted(&rest[*at..]))
}

/// Whether what begins here ends a part of a string or of a command.
fn ends_parted(rest: &[u8]) -> bool {
    match rest {
        // `<value>...;Password=...</value>`
        [b'<', b'/', ..] => true,
        [byte, ..] => byte.is_ascii_whitespace() || matches!(byte, b';' | b'\\') || is_quote(*byte),
        [] => false,
    }
}

/// Whether the next assignment begins here: `name=`.
fn is_next(rest: &[u8]) -> bool {
    let name = rest.iter().take(NAME).take_while(|byte| is_token(**byte));
    let length = name.count();
    let letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    rest.first().is_some_and(letter) && rest.get(length) == Some(&b'=')
}

/// The place of the sign at `at`, or of the first of the backslashes before it if it is a quote.
fn before_escapes(rest: &[u8], at: usize) -> usize {
    if is_quote(rest[at]) {
        at - backslashes(rest[..at].iter().rev())
    } else {
        at
    }
}

const fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// What ends a value without quotes.
const fn ends_bare(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b';' | b',' | b'&' | b'"' | b'\'' | b')' | b'}' | b'<' | b'`' | b'\\'
        )
}
