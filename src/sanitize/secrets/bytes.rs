//! What bytes tokens are made of, and what stands between their parts.

use std::ops::Range;

/// What runs are made of.
pub(super) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// What may stand between two places of one token.
pub(super) const fn is_part(byte: u8) -> bool {
    PARTS[byte as usize]
}

/// [`is_part`] of every byte.
const PARTS: [bool; 256] = {
    let mut parts = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        parts[byte as usize] = is_token(byte) || is_joint(byte);
        byte += 1;
    }
    parts
};

/// The same with what stands in no beginning.
pub(super) const fn is_joint_or_at(byte: u8) -> bool {
    is_joint(byte) || byte == b'@'
}

/// What some tokens have in them beside token characters.
pub(super) const fn is_joint(byte: u8) -> bool {
    matches!(
        byte,
        b'.' | b'/' | b'+' | b'~' | b':' | b'|' | b'!' | b'=' | b'$'
    )
}

/// The span with all of each character that it cuts.
pub(super) fn whole_characters(text: &[u8], span: Range<usize>) -> Range<usize> {
    let inside = |at: &usize| matches!(text.get(*at), Some(0x80..=0xBF));
    let back = (0..=span.start).rev().take_while(inside).count();
    let on = (span.end..).take_while(inside).count();
    span.start - back..span.end + on
}

/// Whether `text` ends with `word`, whatever its case.
pub(super) fn ends_with(text: &[u8], word: &[u8]) -> bool {
    text.len()
        .checked_sub(word.len())
        .is_some_and(|from| text[from..].eq_ignore_ascii_case(word))
}
