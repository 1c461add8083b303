//! Sixty-four bytes looked at together.

use wide::u8x16;

/// Bytes looked at together.
pub(in crate::sanitize) const BLOCK: usize = 64;

const PARTS: usize = BLOCK / 16;

/// The last letters of the names of secrets, in lower case: password, pass, value, authorization, auth, kind.
pub(in crate::sanitize) const TELLING: [u8; 5] = *b"dsenh";

/// A block in registers, and what is asked of all of it.
pub(super) struct Marks {
    pub(super) bytes: [u8x16; PARTS],
    nexts: [u8; BLOCK],
}

/// One bit for each byte that is of a kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kinds {
    /// Of either alphabet of Base64.
    pub(super) word: u64,
    pub(super) alnum: u64,
    pub(super) digit: u64,
}

impl Marks {
    #[inline(always)]
    pub(super) fn of(block: &[u8; BLOCK]) -> Self {
        let (parts, _) = block.as_chunks::<16>();
        Self {
            bytes: [
                u8x16::new(parts[0]),
                u8x16::new(parts[1]),
                u8x16::new(parts[2]),
                u8x16::new(parts[3]),
            ],
            nexts: *block,
        }
    }

    #[inline(always)]
    pub(super) fn kinds(&self) -> Kinds {
        let digit = each(&self.bytes, |bytes| within(bytes, b'0', 10));
        let letter = each(&self.bytes, |bytes| {
            within(bytes | u8x16::splat(0x20), b'a', 26)
        });
        let other = each(&self.bytes, |bytes| {
            is(bytes, b'-') | is(bytes, b'_') | is(bytes, b'+') | is(bytes, b'/')
        });
        let alnum = or(&letter, &digit);
        Kinds {
            word: bits(&or(&alnum, &other)),
            alnum: bits(&alnum),
            digit: bits(&digit),
        }
    }

    /// Letters of either case up to `f`, and small letters.
    #[inline(always)]
    pub(super) fn hexadecimal(&self) -> (u64, u64) {
        let low = |bytes: u8x16| within(bytes | u8x16::splat(0x20), b'a', 6);
        let small = |bytes: u8x16| within(bytes, b'a', 26);
        (mask(&self.bytes, low), mask(&self.bytes, small))
    }

    /// What names of secrets end with, [`TELLING`].
    #[inline(always)]
    pub(super) fn telling(&self) -> u64 {
        mask(&self.bytes, |bytes| {
            let low = bytes | u8x16::splat(0x20);
            is(low, TELLING[0])
                | is(low, TELLING[1])
                | is(low, TELLING[2])
                | is(low, TELLING[3])
                | is(low, TELLING[4])
        })
    }

    /// `+` and `/`.
    #[inline(always)]
    pub(super) fn slash(&self) -> u64 {
        mask(&self.bytes, |bytes| is(bytes, b'+') | is(bytes, b'/'))
    }

    /// ASCII letters, digits, `_` and `-`.
    #[inline(always)]
    pub(super) fn token(&self) -> u64 {
        mask(&self.bytes, |bytes| {
            within(bytes | u8x16::splat(0x20), b'a', 26)
                | within(bytes, b'0', 10)
                | is(bytes, b'_')
                | is(bytes, b'-')
        })
    }

    /// Whether a byte is not ASCII.
    #[inline(always)]
    pub(super) fn beyond(&self) -> bool {
        let [first, second, third, fourth] = self.bytes;
        (first | second | third | fourth).to_bitmask() != 0
    }

    #[inline(always)]
    pub(super) fn dash(&self) -> u64 {
        mask(&self.bytes, |bytes| is(bytes, b'-'))
    }

    #[inline(always)]
    pub(super) fn assign(&self) -> u64 {
        mask(&self.bytes, |bytes| is(bytes, b'=') | is(bytes, b':'))
    }

    /// Whether it holds a byte that few blocks hold.
    #[inline(always)]
    pub(super) fn rare(&self) -> bool {
        let rare = |bytes: u8x16| {
            is(bytes, b'<')
                | is(bytes, b'!')
                | is(bytes, b']')
                | is(bytes, b'\\')
                | is(bytes, b'%')
                | is(bytes, b'~')
        };
        let [first, second, third, fourth] = each(&self.bytes, rare);
        (first | second | third | fourth).to_bitmask() != 0
    }

    /// Where something active may begin; `next` is the byte behind the block.
    #[inline(always)]
    pub(super) fn active(&self, next: u8) -> u64 {
        let mut behind = [next; BLOCK];
        behind[..BLOCK - 1].copy_from_slice(&self.nexts[1..]);
        let nexts = Self::of(&behind);
        let pair = |nth: usize| {
            let (bytes, nexts) = (self.bytes[nth], nexts.bytes[nth]);
            let letter = within(nexts | u8x16::splat(0x20), b'a', 26);
            let tag = is(bytes, b'<') & (letter | is(nexts, b'?'));
            let image = is(bytes, b'!') & is(nexts, b'[');
            let link = is(bytes, b']') & (is(nexts, b'(') | is(nexts, b':'));
            tag | image | link
        };
        bits(&[pair(0), pair(1), pair(2), pair(3)])
    }
}

impl Kinds {
    /// The second digit of two letters and two digits at the start of a word.
    #[inline]
    pub(super) const fn heads(&self, before: &Self) -> u64 {
        let digit = self.digit & (self.digit << 1 | before.digit >> 63);
        if digit == 0 {
            return 0;
        }
        let (letter, letters) = (self.alnum & !self.digit, before.alnum & !before.digit);
        digit
            & (letter << 2 | letters >> 62)
            & (letter << 3 | letters >> 61)
            & !(self.alnum << 4 | before.alnum >> 60)
    }
}

/// The block at `at`, filled up with spaces past the end.
#[inline]
pub(in crate::sanitize) fn block(text: &[u8], at: usize) -> [u8; BLOCK] {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk::<BLOCK>() {
        Some(block) => *block,
        None => {
            let mut block = [b' '; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            block
        }
    }
}

/// One bit for each byte of which `of` holds, the first lowest.
#[inline(always)]
pub(in crate::sanitize) fn mask(bytes: &[u8x16; PARTS], of: impl Fn(u8x16) -> u8x16) -> u64 {
    bits(&each(bytes, of))
}

// Written out: the compiler makes a function of its own of `map`, which takes its vectors through memory.
#[inline(always)]
fn each(
    [first, second, third, fourth]: &[u8x16; PARTS],
    of: impl Fn(u8x16) -> u8x16,
) -> [u8x16; PARTS] {
    [of(*first), of(*second), of(*third), of(*fourth)]
}

#[inline(always)]
fn or(one: &[u8x16; PARTS], other: &[u8x16; PARTS]) -> [u8x16; PARTS] {
    let nth = |nth: usize| one[nth] | other[nth];
    [nth(0), nth(1), nth(2), nth(3)]
}

#[inline(always)]
fn bits([first, second, third, fourth]: &[u8x16; PARTS]) -> u64 {
    let bits = |lanes: &u8x16| u64::from(lanes.to_bitmask());
    bits(fourth) << 48 | bits(third) << 32 | bits(second) << 16 | bits(first)
}

/// Where as many set bits in a row end as the steps come to, and one.
#[inline(always)]
pub(super) fn eroded(mut before: u64, mut now: u64, steps: &[u32]) -> u64 {
    for by in steps {
        (before, now) = (
            before & before << by,
            now & (now << by | before >> (64 - by)),
        );
    }
    now
}

#[inline(always)]
pub(super) fn is(bytes: u8x16, byte: u8) -> u8x16 {
    bytes.simd_eq(u8x16::splat(byte))
}

/// All bits of a byte set where it is one of `count` from `first` on.
#[inline(always)]
pub(super) fn within(bytes: u8x16, first: u8, count: u8) -> u8x16 {
    let from = bytes - u8x16::splat(first);
    from.min(u8x16::splat(count - 1)).simd_eq(from)
}
