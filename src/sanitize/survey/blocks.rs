//! Sixty-four bytes looked at together.

use wide::u8x16;

/// Bytes looked at together.
pub(in crate::sanitize) const BLOCK: usize = 64;

const PARTS: usize = BLOCK / 16;

/// What may stand in a block: where one of these does not hold, what it is about is not there.
#[derive(Clone, Copy)]
pub(super) struct Gates {
    least: u8x16,
    most: u8x16,
    nearest: u8x16,
    marks: [u8x16; PARTS],
}

impl Gates {
    /// Whether none holds.
    #[inline(always)]
    pub(super) fn all_shut(&self) -> bool {
        let assign = at_most(self.nearest, ASSIGN);
        let any = at_most(self.least, LOW) | at_least(self.most, b'~') | assign;
        let any = any | joined(&self.marks);
        any.to_bitmask() == 0
    }

    /// Control characters.
    #[inline(always)]
    pub(super) fn low(&self) -> bool {
        at_most(self.least, LOW).to_bitmask() != 0
    }

    /// `~` and what lies behind it.
    #[inline(always)]
    pub(super) fn high(&self) -> bool {
        at_least(self.most, b'~').to_bitmask() != 0
    }

    /// What is not ASCII.
    #[inline(always)]
    pub(super) fn beyond(&self) -> bool {
        self.most.to_bitmask() != 0
    }

    #[inline(always)]
    pub(super) fn digit(&self) -> bool {
        at_most(self.nearest, 9).to_bitmask() != 0
    }

    /// Of `:`, `=` and `<`, or digits.
    #[inline(always)]
    pub(super) fn assign(&self) -> bool {
        at_most(self.nearest, ASSIGN).to_bitmask() != 0
    }

    /// Of `!`, `%`, `-`, `\\` and `]`.
    #[inline(always)]
    pub(super) fn mark(&self) -> bool {
        joined(&self.marks).to_bitmask() != 0
    }

    /// Dashes, and `!`, `%`, `)`, `\\` and `]`.
    #[inline(always)]
    pub(super) fn dashes_and_others(&self, marks: &Marks) -> (u64, u64) {
        let dashes = each(&marks.0, |bytes| is(bytes, b'-'));
        let others: [u8x16; PARTS] = [
            self.marks[0] ^ dashes[0],
            self.marks[1] ^ dashes[1],
            self.marks[2] ^ dashes[2],
            self.marks[3] ^ dashes[3],
        ];
        let any = joined(&others).to_bitmask() != 0;
        (bits(&dashes), if any { bits(&others) } else { 0 })
    }
}

/// The last control character.
const LOW: u8 = 0x1F;
/// How far behind `0` the last of what assigns stands.
const ASSIGN: u8 = b'=' - b'0';

/// A block in registers.
#[derive(Clone, Copy)]
pub(super) struct Marks([u8x16; PARTS]);

impl Marks {
    #[inline(always)]
    pub(super) fn of(block: &[u8; BLOCK]) -> Self {
        let (parts, _) = block.as_chunks::<16>();
        Self([
            u8x16::new(parts[0]),
            u8x16::new(parts[1]),
            u8x16::new(parts[2]),
            u8x16::new(parts[3]),
        ])
    }

    /// One bit for each byte of which `of` holds, the first lowest.
    #[inline(always)]
    pub(super) fn mask(&self, of: impl Fn(u8x16) -> u8x16) -> u64 {
        mask(&self.0, of)
    }

    /// Whether `of` holds of any byte: half of what a mask costs.
    #[inline(always)]
    pub(super) fn any(&self, of: impl Fn(u8x16) -> u8x16) -> bool {
        joined(&each(&self.0, of)).to_bitmask() != 0
    }

    /// Which questions are worth asking, from folds over the block: comparing what is folded costs once what comparing each part
    /// costs four times.
    #[inline(always)]
    pub(super) fn gates(&self) -> Gates {
        let [first, second, third, fourth] = self.0;
        let least = first.min(second).min(third.min(fourth));
        let most = first.max(second).max(third.max(fourth));
        // `0` to `9`, and `:`, `;`, `<` and `=` behind them.
        let from_zero = |bytes: u8x16| bytes - u8x16::splat(b'0');
        let nearest = from_zero(first)
            .min(from_zero(second))
            .min(from_zero(third).min(from_zero(fourth)));
        // `!`, `%`, `)` and `-` differ by two bits, `\\` and `]` by one.
        let marks = each(&self.0, |bytes| {
            is(bytes | u8x16::splat(0x0C), b'-') | is(bytes | u8x16::splat(1), b']')
        });
        Gates {
            least,
            most,
            nearest,
            marks,
        }
    }

    /// What is beyond `*`, and so all that runs are made of, and little else that stands between words.
    #[inline(always)]
    pub(super) fn near(&self) -> u64 {
        self.mask(|bytes| at_least(bytes, b'+'))
    }

    #[inline(always)]
    pub(super) fn letter(&self) -> u64 {
        self.mask(letter)
    }

    #[inline(always)]
    pub(super) fn digit(&self) -> u64 {
        self.mask(digit)
    }

    /// `+` and `/`.
    #[inline(always)]
    pub(super) fn slash(&self) -> u64 {
        self.mask(|bytes| is(bytes, b'+') | is(bytes, b'/'))
    }

    /// Hexadecimal digits with dashes and lines between, and the latter.
    #[inline(always)]
    pub(super) fn hexadecimal_in_groups(&self) -> (u64, u64) {
        let joints = self.mask(|bytes| is(bytes, b'-') | is(bytes, b'_'));
        let low = |bytes: u8x16| within(bytes | u8x16::splat(0x20), b'a', 6);
        (
            joints | self.mask(|bytes| low(bytes) | digit(bytes)),
            joints,
        )
    }

    /// Letters of either case up to `f`, and small letters.
    #[inline(always)]
    pub(super) fn hexadecimal(&self) -> (u64, u64) {
        let low = |bytes: u8x16| within(bytes | u8x16::splat(0x20), b'a', 6);
        let small = |bytes: u8x16| within(bytes, b'a', 26);
        (self.mask(low), self.mask(small))
    }

    /// What stands between the digits of one number.
    #[inline(always)]
    pub(super) fn between_digits(&self) -> u64 {
        self.mask(|bytes| within(bytes, b'-', 3) | is(bytes, b' '))
    }

    /// What is below the space.
    #[inline(always)]
    pub(super) fn low(&self) -> u64 {
        self.mask(|bytes| at_most(bytes, LOW))
    }

    /// `:`, `;`, `<` and `=`.
    #[inline(always)]
    pub(super) fn assigning(&self) -> u64 {
        self.mask(|bytes| within(bytes, b':', 4))
    }

    /// Control characters of Latin-1, in two bytes; `nexts` is the block one byte farther on.
    #[inline(always)]
    pub(super) fn eight_bit_controls(&self, nexts: impl FnOnce() -> Self) -> u64 {
        let first = |bytes: u8x16| is(bytes, 0xC2);
        if !self.any(first) {
            return 0;
        }
        self.mask(first) & nexts().mask(|bytes| within(bytes, 0x80, 0x20))
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
fn bits([first, second, third, fourth]: &[u8x16; PARTS]) -> u64 {
    let bits = |lanes: &u8x16| u64::from(lanes.to_bitmask());
    bits(fourth) << 48 | bits(third) << 32 | bits(second) << 16 | bits(first)
}

/// Where as many set bits in a row end as the steps come to, and one.
#[inline(always)]
pub(super) fn eroded(before: u64, now: u64, steps: &[u32]) -> u64 {
    let mut all = u128::from(now) << 64 | u128::from(before);
    for by in steps {
        all &= all << by;
    }
    (all >> 64) as u64
}

#[inline(always)]
fn joined([first, second, third, fourth]: &[u8x16; PARTS]) -> u8x16 {
    *first | *second | (*third | *fourth)
}

#[inline(always)]
pub(in crate::sanitize) fn is(bytes: u8x16, byte: u8) -> u8x16 {
    bytes.simd_eq(u8x16::splat(byte))
}

#[inline(always)]
fn at_most(bytes: u8x16, most: u8) -> u8x16 {
    bytes.min(u8x16::splat(most)).simd_eq(bytes)
}

#[inline(always)]
fn at_least(bytes: u8x16, least: u8) -> u8x16 {
    bytes.max(u8x16::splat(least)).simd_eq(bytes)
}

/// All bits of a byte set where it is one of `count` from `first` on.
#[inline(always)]
pub(in crate::sanitize) fn within(bytes: u8x16, first: u8, count: u8) -> u8x16 {
    let from = bytes - u8x16::splat(first);
    from.min(u8x16::splat(count - 1)).simd_eq(from)
}

#[inline(always)]
fn letter(bytes: u8x16) -> u8x16 {
    within(bytes | u8x16::splat(0x20), b'a', 26)
}

#[inline(always)]
fn digit(bytes: u8x16) -> u8x16 {
    within(bytes, b'0', 10)
}
