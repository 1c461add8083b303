//! A run of token characters: how long it is, where words begin in it, and whether it is a name as they stand in source.
//!
//! Guarantees: runs of up to sixty-three characters are judged in one look, longer ones with the same outcome (the tests
//! compare). Deliberately absent: whether it is a secret.

use wide::u8x16;

use super::bytes::is_token;
use crate::sanitize::{
    survey::{BLOCK, block, is, mask, within},
    work::looked,
};

/// A run of token characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) length: usize,
    /// Whether a letter or digit stands in front.
    pub(super) is_word: bool,
    name: bool,
    /// Whether it is hexadecimal digits with small letters, and fits.
    hexadecimal: bool,
    /// Where words begin, for those that fit.
    words: u64,
    long: bool,
}

impl Run {
    /// The run in front of what begins at `start`.
    #[inline]
    pub(super) fn at(text: &[u8], start: usize) -> Self {
        // Most end here.
        if let Some(half) = text.get(start..).and_then(<[u8]>::first_chunk::<HALF>)
            && let Some(run) = Self::within(&parts::<2>(half), half)
        {
            return run;
        }
        let block = block(text, start);
        Self::within(&parts::<4>(&block), &block).unwrap_or_else(|| Self::long(&text[start..]))
    }

    /// The run that begins these bytes, if it ends in them.
    #[inline]
    fn within<const PARTS: usize>(bytes: &[u8x16; PARTS], text: &[u8]) -> Option<Self> {
        let (digit, letter) = (digits(bytes), letters(bytes));
        let joint = mask(bytes, |bytes| is(bytes, b'-') | is(bytes, b'_'));
        let length = (digit | letter | joint).trailing_ones();
        if length as usize >= text.len() {
            return None;
        }
        let all = (1 << length) - 1;
        let (digit, alnum, joint) = (digit & all, (digit | letter) & all, joint & all);
        // With a digit it is no name.
        let name = digit == 0 && {
            let upper = mask(bytes, |bytes| within(bytes, b'A', 26)) & all;
            let lower = alnum & !upper;
            let counts = Counts {
                length,
                upper: upper.count_ones(),
                joints: joint.count_ones(),
                capitals: (upper << 2 & lower << 1 & lower).count_ones(),
            };
            counts.are_of_a_name(|| text[..length as usize].ends_with(SIDEKIQ))
        };
        let low = mask(bytes, |bytes| within(bytes, b'a', 6));
        Some(Self {
            length: length as usize,
            is_word: alnum & 1 == 1,
            name,
            hexadecimal: (digit | low) & all == all,
            words: alnum & !(alnum << 1) | 1,
            long: false,
        })
    }

    /// The same of a longer one.
    fn long(text: &[u8]) -> Self {
        let (mut length, mut digits) = (0, false);
        loop {
            let block = block(text, length);
            let bytes = &parts::<4>(&block);
            let digit = self::digits(bytes);
            let joint = mask(bytes, |bytes| is(bytes, b'-') | is(bytes, b'_'));
            let here = (digit | letters(bytes) | joint).trailing_ones() as usize;
            digits |= here > 0 && digit << (BLOCK - here) != 0;
            length += here;
            if here < BLOCK {
                break;
            }
        }
        looked(length);
        let run = &text[..length];
        let count = |of: fn(&u8) -> bool| run.iter().filter(|byte| of(byte)).count() as u32;
        let name = !digits && {
            let capital = |three: &&[u8]| {
                three[0].is_ascii_uppercase() && three[1..].iter().all(u8::is_ascii_lowercase)
            };
            let counts = Counts {
                length: length as u32,
                upper: count(u8::is_ascii_uppercase),
                joints: count(|byte| matches!(byte, b'_' | b'-')),
                capitals: run.windows(3).filter(capital).count() as u32,
            };
            counts.are_of_a_name(|| run.ends_with(SIDEKIQ))
        };
        Self {
            length,
            is_word: run.first().is_some_and(u8::is_ascii_alphanumeric),
            name,
            hexadecimal: false,
            words: 1,
            long: true,
        }
    }

    /// Whether it is a name as they stand in source: `snake_case`, `camelCase`, `CONSTANT_NAME`.
    pub(super) const fn is_name(&self) -> bool {
        self.name
    }

    /// Whether it is one word of hexadecimal digits with small letters: a digest or a number, if it is not too long to be told.
    pub(super) const fn is_hexadecimal(&self) -> bool {
        self.hexadecimal
    }

    /// Whether more than one word may be in it.
    pub(super) const fn has_joints(&self) -> bool {
        self.long || !self.words.is_power_of_two() || !self.is_word
    }

    /// Where it and the words in it begin, if it is not too long for that.
    pub(super) fn words(&self, start: usize) -> Option<impl Iterator<Item = usize> + use<>> {
        (!self.long).then(|| crate::sanitize::survey::places(start, self.words))
    }
}

/// Half of a block.
const HALF: usize = BLOCK / 2;

/// The first bytes, of which there have to be enough.
#[inline(always)]
fn parts<const PARTS: usize>(bytes: &[u8]) -> [u8x16; PARTS] {
    let mut parts = [u8x16::splat(0); PARTS];
    for (part, bytes) in parts.iter_mut().zip(bytes.as_chunks::<16>().0) {
        *part = u8x16::new(*bytes);
    }
    parts
}

#[inline(always)]
fn digits<const PARTS: usize>(bytes: &[u8x16; PARTS]) -> u64 {
    mask(bytes, |bytes| within(bytes, b'0', 10))
}

#[inline(always)]
fn letters<const PARTS: usize>(bytes: &[u8x16; PARTS]) -> u64 {
    mask(bytes, |bytes| within(bytes | u8x16::splat(0x20), b'a', 26))
}

/// One bit for each letter and digit of the block at `at`, the first lowest.
#[inline]
pub(super) fn alnum(text: &[u8], at: usize) -> u64 {
    let bytes = &parts::<4>(&block(text, at));
    digits(bytes) | letters(bytes)
}

/// How many characters of either alphabet of Base64 stand here, of the first [`ENCODED`].
pub(super) fn encoded(text: &[u8], at: usize) -> usize {
    let here = |at: usize| {
        let bytes = &parts::<4>(&block(text, at));
        let joint = |bytes| is(bytes, b'-') | is(bytes, b'_') | is(bytes, b'+') | is(bytes, b'/');
        let all = digits(bytes) | letters(bytes) | mask(bytes, joint);
        all.trailing_ones() as usize
    };
    match here(at) {
        BLOCK => BLOCK + here(at + BLOCK),
        fewer => fewer,
    }
}

/// How many [`encoded`] tells at most.
pub(super) const ENCODED: usize = 2 * BLOCK;

/// The length of a UUID.
pub(super) const LENGTH: usize = 36;

/// Whether the run that begins at `start` is a UUID with a digit: what [`Run`] says, at a fourth of the cost.
#[inline]
pub(super) fn is_uuid(text: &[u8], start: usize) -> bool {
    let Some(run) = text.get(start..).and_then(<[u8]>::first_chunk::<LENGTH>) else {
        return false;
    };
    if run[8] != b'-'
        || run[13] != b'-'
        || text.get(start + LENGTH).is_some_and(|byte| is_token(*byte))
    {
        return false;
    }
    let (mut all, mut digits, mut joints) = (u8x16::splat(u8::MAX), u8x16::splat(0), 0);
    // The last two overlap.
    for at in [0, 16, LENGTH - 16] {
        let mut part = [0; 16];
        part.copy_from_slice(&run[at..at + 16]);
        let bytes = u8x16::new(part);
        let (digit, joint) = (within(bytes, b'0', 10), is(bytes, b'-'));
        all &= digit | joint | within(bytes, b'a', 6);
        digits |= digit;
        joints |= u64::from(joint.to_bitmask()) << at;
    }
    all.to_bitmask() == 0xFFFF && digits.to_bitmask() != 0 && joints == UUID
}

/// Where the dashes of a UUID stand.
const UUID: u64 = 1 << 8 | 1 << 13 | 1 << 18 | 1 << 23;

/// Ends the names of variables that hold credentials of Sidekiq.
const SIDEKIQ: &[u8] = b"CONTRIBSYS__COM";

/// The length from which on letters without a joint are no word.
const LONGEST: u32 = 36;

/// What a run without digits is made of.
struct Counts {
    length: u32,
    upper: u32,
    joints: u32,
    /// Capitals with two small letters behind them.
    capitals: u32,
}

impl Counts {
    fn are_of_a_name(&self, is_sidekiq: impl Fn() -> bool) -> bool {
        let lower = self.length - self.upper - self.joints;
        // So many letters with at most a beginning before them are no words, if small ones.
        let drawn = self.length >= LONGEST && self.joints <= 1;
        let name = (self.upper == 0 && !drawn)
            || (lower == 0 && self.joints > 0)
            || (self.upper > 0 && self.capitals * 4 >= self.upper * 3 && lower > self.upper * 2);
        name && !(lower == 0 && is_sidekiq())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_uuid_is_known_by_its_form(groups in ("[0-9a-f]{8}", "[0-9a-f]{4}", "[0-9a-f]{4}", "[0-9a-f]{4}", "[0-9a-f]{12}|[a-f]{12}"), places in prop::collection::vec((0_usize..40, "[0-9a-gA-F_-]|é| "), 0..2), rest in "[ .é-]?[ -~]{0,9}") {
            let (a, b, c, d, e) = groups;
            let mut text = format!("{a}-{b}-{c}-{d}-{e}{rest}").into_bytes();
            for (at, other) in places {
                if let Some(byte) = text.get_mut(at) {
                    *byte = other.as_bytes()[0];
                }
            }
            let length = text.iter().take_while(|byte| is_token(**byte)).count();
            let groups: Vec<_> = text[..length].split(|byte| *byte == b'-').collect();
            let hexadecimal = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            let plain = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
                && groups.iter().all(|group| group.iter().all(hexadecimal))
                && text[..length].iter().any(u8::is_ascii_digit);
            prop_assert_eq!(is_uuid(&text, 0), plain, "{:?}", String::from_utf8_lossy(&text));
        }

        #[test]
        fn a_run_in_registers_is_what_it_is_byte_by_byte(run in "([A-Z][a-z]{2,5}|[A-Z]{1,4}|[a-z]{1,6}|_|-|[0-9]|(X_CONTRIBSYS__COM)?){1,9}[a-zA-Z_-]{9}", rest in "[ .é]?[ -~]{0,70}") {
            let text = format!("{run}{rest}");
            let (quick, slow) = (Run::at(text.as_bytes(), 0), Run::long(text.as_bytes()));
            prop_assert_eq!(quick.length, text.bytes().take_while(|byte| is_token(*byte)).count());
            prop_assert_eq!((quick.length, quick.is_word, quick.name), (slow.length, slow.is_word, slow.name));
            if let Some(words) = quick.words(0) {
                let bytes = text.as_bytes();
                let begins = |at: &usize| *at == 0 || bytes[*at].is_ascii_alphanumeric() && !bytes[at - 1].is_ascii_alphanumeric();
                prop_assert_eq!(words.collect::<Vec<_>>(), (0..quick.length).filter(begins).collect::<Vec<_>>());
            }
        }
    }
}
