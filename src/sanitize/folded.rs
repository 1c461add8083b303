//! Base64 and hexadecimal digits in lines that are too short to be told as runs of their own.
//!
//! Guarantees: linear in the text, and nothing is asked of text in which no line is one word and nothing else. Deliberately
//! absent: what is folded into two lines of which the second goes on with other words, and lines with anything before them.

use std::ops::Range;

use super::{
    survey::{ENCODED, Found, all_places, is_word},
    work::looked,
};

/// The shortest line, but for the last.
const LINE: usize = 4;
/// How much of the line above is taken, in which other things may stand before the first of it.
const ABOVE: usize = 64;

/// Tells what is folded into lines: of those that are one word and nothing else the ends are given.
pub(super) fn folded(text: &[u8], ends: &[Found], mut each: impl FnMut(Range<usize>)) {
    let mut done = 0;
    for end in all_places(ends).chain([text.len()]) {
        let length = words_before(text, end, ENCODED);
        let start = end - length;
        // Longer ones are told as runs.
        if start < done || length == 0 || length == ENCODED {
            continue;
        }
        let to = end_of_lines(text, end, length);
        let above = start - break_before(&text[..start]);
        let first = words_before(text, above, ABOVE);
        let goes_on = above < start && first >= LINE.max(length) && above - first >= done;
        let from = if goes_on { above - first } else { start };
        looked(to - from);
        if to - from > ENCODED && is_mixed(&text[from..to]) {
            done = to;
            each(from..to);
        }
    }
}

/// Where lines of this length end, of which the first ends at `end`; the last may be shorter.
fn end_of_lines(text: &[u8], mut end: usize, length: usize) -> usize {
    if length < LINE {
        return end;
    }
    loop {
        let next = end + break_at(&text[end..]);
        let line = text[next..].iter().take(length + 1);
        let line = line.take_while(|byte| is_word(byte)).count();
        if next == end || line == 0 || line > length {
            return end;
        }
        end = next + line;
        if line < length {
            return end;
        }
    }
}

/// How many characters of Base64 stand before `end`, if no more than so many.
fn words_before(text: &[u8], end: usize, most: usize) -> usize {
    let before = text[..end].iter().rev().take(most);
    before.take_while(|byte| is_word(byte)).count()
}

/// The length of the line end that a text begins with.
pub(super) const fn break_at(text: &[u8]) -> usize {
    match text {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => 0,
    }
}

/// The length of the line end that a text ends with.
const fn break_before(text: &[u8]) -> usize {
    match text {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    }
}

/// Whether these may be other than words and numbers: letters of both cases, or letters and digits.
fn is_mixed(lines: &[u8]) -> bool {
    let has = |of: fn(&u8) -> bool| lines.iter().any(of);
    let small = has(u8::is_ascii_lowercase);
    let (large, digit) = (has(u8::is_ascii_uppercase), has(u8::is_ascii_digit));
    small && (large || digit) || large && digit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanitize::survey::Survey;

    fn told(text: &str) -> Vec<&str> {
        let mut told = Vec::new();
        let survey = Survey::of(text);
        folded(text.as_bytes(), &survey.lines, |lines| {
            told.push(&text[lines])
        });
        told
    }

    #[test]
    fn lines_of_one_width_belong_together_with_the_one_above_and_the_last() {
        for (text, lines) in [
            (
                "a: aB1d\naB2d\naB3d\naB4d\naB5d\nx=\nno",
                &["aB1d\naB2d\naB3d\naB4d\naB5d\nx"][..],
            ),
            (
                "aB1d\r\naB2d\r\naB3d\r\naB4d\r\naB5d\r\nx y",
                &["aB1d\r\naB2d\r\naB3d\r\naB4d\r\naB5d\r\nx"],
            ),
            (
                "see aB3456789012345\naB34567=",
                &["aB3456789012345\naB34567"],
            ),
            ("aB3456789012345\naB34567", &["aB3456789012345\naB34567"]),
            // Two of them, with another between.
            (
                "aB3456789012\naB345678\n\n(aB3456789012\naB34567890\n",
                &["aB3456789012\naB345678", "aB3456789012\naB34567890"],
            ),
            // Too little, or no more than words and numbers.
            ("aB34567\naB34567\n", &[]),
            ("word\nmore\nthan\nthat\nwith\nsome\n", &[]),
            ("1234\n1235\n1236\n1237\n1238\n1239\n", &[]),
            (
                "a line of words\nand another one\nwithout anything at all",
                &[],
            ),
        ] {
            assert_eq!(told(text), lines, "{text:?}");
        }
    }
}
