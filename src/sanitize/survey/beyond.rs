//! Characters beyond ASCII that are worth a closer look, by their bytes.
//! Those that may be hidden, and letters and digits in another form.

use fearless_simd::{Simd, prelude::*};

use super::marks::{Marks, bits};

/// One bit for each byte of a block, given with what stands one and two bytes farther on: set where a suspect of two or three
/// bytes begins, or one that may be of four by its first three.
#[inline(always)]
pub(super) fn suspects<S: Simd>([first, second, third]: [Marks<S>; 3]) -> u64 {
    let mut found = first.is(0xC2) & second.is(0xAD)
        | first.is(0xCD) & second.is(0x8F)
        | first.is(0xD8) & second.is(0x9C)
        | first.is(0xE3) & second.is(0x85) & third.is(0xA4)
        | first.is(0xF3) & second.is(0xA0);
    // Of a script few first bytes are met: of the others nothing more is asked.
    let old = first.is(0xE1);
    if old.any_true() {
        let filler = second.is(0x85) & third.within(0x9F, 2)
            | second.is(0x9E) & third.within(0xB4, 2)
            | second.is(0xA0) & third.within(0x8B, 5);
        found |= old & filler;
    }
    let symbol = first.is(0xE2);
    if symbol.any_true() {
        let general = second.is(0x80) & (third.within(0x8B, 5) | third.within(0xAA, 5))
            | second.is(0x81) & third.within(0xA0, 16)
            | second.is(0xA0) & third.is(0x80);
        found |= symbol & general;
    }
    let form = first.is(0xEF);
    if form.any_true() {
        let special = third.within(0xB0, 12) | third.within(0xBE, 2);
        let formed = second.is(0xB7) & third.within(0x90, 32)
            | second.is(0xB8) & third.within(0x80, 16)
            | second.is(0xBB) & third.is(0xBF)
            | second.is(0xBE) & third.is(0xA0)
            | second.is(0xBF) & special;
        found |= form & formed;
    }
    let four = first.at_least(0xF0);
    if four.any_true() {
        // The last two characters of each plane.
        let last = second.only(0x0F).is(0x0F) & third.is(0xBF);
        let music =
            first.is(0xF0) & (second.is(0x9B) & third.is(0xB2) | second.is(0x9D) & third.is(0x85));
        found |= four & last | music;
    }
    bits(found)
}

/// Of these suspects of a block those that stand in their place, as text with emoji or in Persian is full of them, where the block
/// itself shows it. `usual` of `hidden/scan.rs` says of each by itself what is said here of all together, and nothing hides beside it.
#[inline(always)]
pub(super) fn in_place<S: Simd>([first, second, third]: [Marks<S>; 3], suspects: u64) -> u64 {
    let picture = bits(first.is(0xF0) & second.is(0x9F) & third.within(0x8C, 32));
    let selector = bits(first.is(0xEF) & second.is(0xB8) & third.is(0x8F));
    let three = first.is(0xE2);
    let joiner = bits(three & second.is(0x80) & third.is(0x8D));
    let non_joiner = bits(three & second.is(0x80) & third.is(0x8C));
    // U+2100 to U+27FF.
    let symbol = bits(three & second.within(0x84, 28));
    let arabic = bits(first.within(0xD8, 4)) & !suspects;

    let behind_picture = picture << 4;
    // What the next block begins with is not known here.
    let nothing_beside = !(suspects >> 3) & u64::MAX >> 3;
    let joins = joiner & behind_picture & picture >> 3;
    let varies_and_joins = selector & behind_picture & joiner >> 3 & picture >> 6;
    let varies = selector & (behind_picture | symbol << 3) & nothing_beside;
    let parts = non_joiner & arabic << 2 & nothing_beside;
    joins | varies_and_joins | varies_and_joins << 3 | varies | parts
}

/// One bit for each byte of a block, given with what stands one and two bytes farther on: set where a letter or digit in another
/// form may begin, or a key around one, by its first two bytes.
#[inline(always)]
pub(super) fn forms<S: Simd>([first, second, _]: [Marks<S>; 3]) -> u64 {
    bits(
        first.is(0xEF) & second.with(1).is(0xBD)
            | first.is(0xF0) & second.is(0x9D)
            | first.is(0xE2) & (second.is(0x83) | second.is(0x92) | second.is(0x93)),
    )
}
