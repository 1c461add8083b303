//! Finding the next byte that matters inside a string: a few bytes with plain arithmetic, since most strings are names; the
//! rest in blocks whose test the compiler turns into vector instructions.

/// Bytes looked at together in long strings.
const BLOCK: usize = 32;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The first byte at or after `at` that a string may not simply hold: a quote, a backslash, a control byte, or the end.
pub(super) fn plain_run(text: &[u8], at: usize) -> usize {
    seek(
        text,
        at,
        |byte| byte == b'"' || byte == b'\\' || byte < 0x20,
        |word| {
            zeroes(word ^ (ONES * 0x22))
                | zeroes(word ^ (ONES * 0x5C))
                | (word.wrapping_sub(ONES * 0x20) & !word & HIGHS)
        },
    )
}

/// The first quote or backslash at or after `at`, or the end: enough for text that was scanned before.
pub(super) fn quote_or_escape(text: &[u8], at: usize) -> usize {
    seek(
        text,
        at,
        |byte| byte == b'"' || byte == b'\\',
        |word| zeroes(word ^ (ONES * 0x22)) | zeroes(word ^ (ONES * 0x5C)),
    )
}

/// Marks the zero bytes of a word with their high bit; only the lowest mark is exact, for a borrow can mark bytes above it.
const fn zeroes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// `byte` and `word` say the same: which bytes stop the search.
#[inline(always)]
fn seek(text: &[u8], mut at: usize, byte: impl Fn(u8) -> bool, word: impl Fn(u64) -> u64) -> usize {
    let in_words = |mut at: usize, words: usize| -> Result<usize, usize> {
        for _ in 0..words {
            let Some(chunk) = text
                .get(at..at + 8)
                .and_then(|chunk| <[u8; 8]>::try_from(chunk).ok())
            else {
                return Err(at);
            };
            let stop = word(u64::from_le_bytes(chunk));
            if stop != 0 {
                return Ok(at + (stop.trailing_zeros() / 8) as usize);
            }
            at += 8;
        }
        Err(at)
    };
    match in_words(at, 3) {
        Ok(found) => return found,
        Err(next) => at = next,
    }
    while let Some(block) = text.get(at..at + BLOCK) {
        if block.iter().fold(false, |stop, next| stop | byte(*next)) {
            break;
        }
        at += BLOCK;
    }
    match in_words(at, BLOCK / 8) {
        Ok(found) => return found,
        Err(next) => at = next,
    }
    while text.get(at).is_some_and(|next| !byte(*next)) {
        at += 1;
    }
    at
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
