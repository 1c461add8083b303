//! Finding the next byte that matters inside a string, eight bytes at a time with plain arithmetic: most strings are names,
//! and starting a vectored search from a library costs more than finding their end. Long text goes on with the library.

/// Bytes looked at here before the library is asked.
const NEAR: usize = 64;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Whether no control byte stands anywhere: compact JSON has none.
pub(super) fn plain(text: &[u8]) -> bool {
    // No early end: so the compiler can look at many bytes at once.
    text.iter().fold(u8::MAX, |least, byte| least.min(*byte)) >= 0x20
}

/// The first byte at or after `at` that a string may not simply hold: a quote, a backslash, a control byte, or the end.
pub(super) fn plain_run(text: &[u8], mut at: usize) -> usize {
    while let Some(word) = word(text, at) {
        let control = word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word & HIGHS;
        let stop = marks(word) | control;
        if stop != 0 {
            return at + lowest(stop);
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    at + rest
        .iter()
        .take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1F))
        .count()
}

/// The first quote or backslash at or after `at`, or the end: enough for text that was scanned before.
pub(super) fn quote_or_escape(text: &[u8], mut at: usize) -> usize {
    let near = at + NEAR;
    while at < near
        && let Some(word) = word(text, at)
    {
        let stop = marks(word);
        if stop != 0 {
            return at + lowest(stop);
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    memchr::memchr2(b'"', b'\\', rest).map_or(text.len(), |found| at + found)
}

fn word(text: &[u8], at: usize) -> Option<u64> {
    let chunk = text.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*chunk))
}

/// Marks quotes and backslashes with the high bit of their byte.
const fn marks(word: u64) -> u64 {
    zeroes(word ^ ONES.wrapping_mul(0x22)) | zeroes(word ^ ONES.wrapping_mul(0x5C))
}

/// Marks zero bytes; only the lowest mark is exact, for a borrow can mark bytes above it.
const fn zeroes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// The index of the lowest marked byte.
const fn lowest(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_searches_find_what_a_plain_loop_finds(text in prop::collection::vec(any::<u8>(), 0..200), plain in 0_usize..150, at in 0_usize..200) {
            let text: Vec<u8> = std::iter::repeat_n(b'x', plain).chain(text).collect();
            let at = at.min(text.len());
            let first = |stops: fn(u8) -> bool| text[at..].iter().position(|byte| stops(*byte)).map_or(text.len(), |found| at + found);
            prop_assert_eq!(plain_run(&text, at), first(|byte| byte == b'"' || byte == b'\\' || byte < 0x20));
            prop_assert_eq!(quote_or_escape(&text, at), first(|byte| byte == b'"' || byte == b'\\'));
        }
    }
}
