//! Finds the pairs of bytes that everything active begins with, a block at a time.

use wide::u8x16;

/// Bytes in one vector register.
const BLOCK: usize = 16;

/// Blocks that are looked at together.
const BLOCKS: usize = 4;

/// Where the next of `<` and a letter or `?`, `![`, `](` and `]:` begins, at or after `at`.
pub(super) fn next(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(window) = text
        .get(at..)
        .and_then(<[u8]>::first_chunk::<{ BLOCKS * BLOCK + 1 }>)
    {
        let blocks: [u8x16; BLOCKS] = std::array::from_fn(|nth| marks(window, nth * BLOCK));
        if (blocks[0] | blocks[1] | blocks[2] | blocks[3]).to_bitmask() != 0 {
            let found = blocks.iter().enumerate().find_map(|(nth, marks)| {
                let marks = marks.to_bitmask();
                (marks != 0).then(|| nth * BLOCK + marks.trailing_zeros() as usize)
            });
            return found.map(|found| at + found);
        }
        at += BLOCKS * BLOCK;
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

/// All bits of a byte set where one begins in the block at `at` of the window.
fn marks(window: &[u8; BLOCKS * BLOCK + 1], at: usize) -> u8x16 {
    let block = |from: usize| {
        let mut block = [0; BLOCK];
        block.copy_from_slice(&window[from..from + BLOCK]);
        u8x16::new(block)
    };
    let bytes = block(at);
    let nexts = block(at + 1);
    let is = |bytes: u8x16, byte: u8| bytes.simd_eq(u8x16::splat(byte));
    let letters = (nexts | u8x16::splat(0x20)) - u8x16::splat(b'a');
    let letter = letters.min(u8x16::splat(25)).simd_eq(letters);
    let tag = is(bytes, b'<') & (letter | is(nexts, b'?'));
    let image = is(bytes, b'!') & is(nexts, b'[');
    let link = is(bytes, b']') & (is(nexts, b'(') | is(nexts, b':'));
    tag | image | link
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
