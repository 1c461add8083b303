//! Finds the pairs of bytes that everything active begins with, a block at a time.

use wide::u8x16;

/// Bytes in one vector register.
const BLOCK: usize = 16;

/// Where the next of `<` and a letter or `?`, `![`, `](` and `]:` begins, at or after `at`.
pub(super) fn next(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(window) = text.get(at..).and_then(<[u8]>::first_chunk::<{ BLOCK + 1 }>) {
        let marks = marks(window);
        if marks != 0 {
            return Some(at + marks.trailing_zeros() as usize);
        }
        at += BLOCK;
    }
    (at..text.len()).find(|at| begins(text, *at))
}

fn begins(text: &[u8], at: usize) -> bool {
    match (text.get(at), text.get(at + 1)) {
        (Some(b'<'), Some(next)) => next.is_ascii_alphabetic() || *next == b'?',
        (Some(b'!'), Some(b'[')) | (Some(b']'), Some(b'(' | b':')) => true,
        _ => false,
    }
}

fn marks(window: &[u8; BLOCK + 1]) -> u32 {
    let mut block = [0; BLOCK];
    block.copy_from_slice(&window[..BLOCK]);
    let bytes = u8x16::new(block);
    block.copy_from_slice(&window[1..]);
    let nexts = u8x16::new(block);
    let is = |bytes: u8x16, byte: u8| bytes.simd_eq(u8x16::splat(byte));
    let letters = (nexts | u8x16::splat(0x20)) - u8x16::splat(b'a');
    let letter = letters.min(u8x16::splat(25)).simd_eq(letters);
    let tag = is(bytes, b'<') & (letter | is(nexts, b'?'));
    let image = is(bytes, b'!') & is(nexts, b'[');
    let link = is(bytes, b']') & (is(nexts, b'(') | is(nexts, b':'));
    (tag | image | link).to_bitmask()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_search_finds_what_a_plain_loop_finds(text in "[ a-c<!?(:\\[\\]é]{0,60}", from in 0_usize..20) {
            let plain = (from..text.len()).find(|at| begins(text.as_bytes(), *at));
            prop_assert_eq!(next(text.as_bytes(), from), plain);
        }
    }
}
