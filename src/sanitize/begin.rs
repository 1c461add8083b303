//! What words begin with, in either case: where in a text one of many words may begin.
//!
//! Guarantees: every place of every word is told; sixty-four places are asked about together, and what is kept for that stays
//! in registers. Deliberately absent: whether a word stands there, and what it means.

use fearless_simd::{Simd, prelude::*, u8x16, u8x64};

use super::survey::{Held, Marks};

/// The first `N` bytes of words, in eight groups: for each of these bytes it is known which groups have it. Where some group has
/// all of them, one of its words may begin, or what has bytes of several.
#[derive(Debug, Clone)]
pub(super) struct Beginnings<const N: usize> {
    /// One bit for each group, by the lower four bits of a byte and by its upper four.
    low: [[u8; 16]; N],
    high: [[u8; 16]; N],
}

/// The same in registers.
#[derive(Clone, Copy)]
pub(super) struct Tables<S: Simd, const N: usize> {
    low: [u8x64<S>; N],
    high: [u8x64<S>; N],
}

/// How many groups there are: one for each bit of a byte.
const GROUPS: usize = 8;

impl<const N: usize> Beginnings<N> {
    /// Of these words; a shorter one may go on with anything.
    pub(super) fn of<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let first = |word: &[u8]| -> [Option<u8>; N] {
            std::array::from_fn(|nth| word.get(nth).map(u8::to_ascii_lowercase))
        };
        let mut firsts: Vec<_> = words.into_iter().map(first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let alone = |first: &[Option<u8>; N]| Group::default().with(first).often();
        let mut firsts: Vec<_> = firsts.iter().map(|first| (alone(first), first)).collect();
        firsts.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut groups = [Group::default(); GROUPS];
        let mut often = [0.; GROUPS];
        for (_, first) in firsts {
            // Where it changes least.
            let with = groups.map(|group| group.with(first).often());
            let cost = |nth: &usize| with[*nth] - often[*nth];
            let best = (0..GROUPS).min_by(|one, other| cost(one).total_cmp(&cost(other)));
            if let Some(best) = best {
                groups[best] = groups[best].with(first);
                often[best] = with[best];
            }
        }
        let table = |half: usize| {
            std::array::from_fn(|nth| {
                std::array::from_fn(|value| {
                    let has = |group: &Group<N>| group.0[nth][half] >> value & 1;
                    let bits = groups.iter().rev();
                    bits.fold(0, |bits, group| bits << 1 | has(group) as u8)
                })
            })
        };
        Self {
            low: table(0),
            high: table(1),
        }
    }

    #[inline(always)]
    pub(super) fn tables<S: Simd>(&self, simd: S) -> Tables<S, N> {
        let mut tables = Tables {
            low: [u8x64::splat(simd, 0); N],
            high: [u8x64::splat(simd, 0); N],
        };
        for nth in 0..N {
            tables.low[nth] = spread(simd, &self.low[nth]);
            tables.high[nth] = spread(simd, &self.high[nth]);
        }
        tables
    }
}

impl<S: Simd, const N: usize> Tables<S, N> {
    /// Where words may begin: `bytes` are those of a block, those one byte farther on, and so forth.
    #[inline(always)]
    pub(super) fn may_begin<const M: usize>(&self, bytes: &[Marks<S>; M]) -> Held<S> {
        const { assert!(0 < N && N <= M) };
        let mut groups = bytes[0].found_in(self.low[0], self.high[0]);
        #[expect(
            clippy::needless_range_loop,
            reason = "what goes through iterators is not kept in registers"
        )]
        for nth in 1..N {
            groups = groups.also(bytes[nth].found_in(self.low[nth], self.high[nth]));
        }
        groups.at_least(1)
    }
}

/// The same table in every sixteen bytes.
#[inline(always)]
fn spread<S: Simd>(simd: S, table: &[u8; 16]) -> u8x64<S> {
    u8x64::block_splat(u8x16::from_slice(simd, table))
}

/// Words that begin alike, or not: for each of their first bytes the lower and the upper halves that it has.
#[derive(Debug, Clone, Copy)]
struct Group<const N: usize>([[u16; 2]; N]);

impl<const N: usize> Default for Group<N> {
    fn default() -> Self {
        Self([[0; 2]; N])
    }
}

impl<const N: usize> Group<N> {
    /// With one beginning more.
    fn with(mut self, first: &[Option<u8>; N]) -> Self {
        for ([low, high], byte) in self.0.iter_mut().zip(first) {
            match byte {
                Some(byte) => {
                    for byte in [*byte, byte.to_ascii_uppercase()] {
                        *low |= 1 << (byte & 15);
                        *high |= 1 << (byte >> 4);
                    }
                }
                None => [*low, *high] = [u16::MAX; 2],
            }
        }
        self
    }

    /// How often it is met, in relation to others.
    fn often(&self) -> f32 {
        let share = |[low, high]: &[u16; 2]| {
            let mut share = 0.;
            for high in ones(*high) {
                for low in ones(*low) {
                    share += FREQUENCY[high << 4 | low];
                }
            }
            share
        };
        self.0.iter().map(share).product()
    }
}

/// Which bits are set, the lowest first.
fn ones(mut bits: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then_some(bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
        lowest.map(|bit| bit as usize)
    })
}

/// How often each byte is met in a text in a language with Latin letters, in thousandths, more or less.
static FREQUENCY: [f32; 256] = {
    const LETTERS: [u8; 26] = *b"etaoinsrhldcumfpgwybvkxjqz";
    const OFTEN: [f32; 26] = [
        95., 70., 60., 58., 55., 55., 50., 48., 40., 35., 30., 28., 24., 20., 20., 18., 16., 14.,
        14., 10., 8., 6., 3., 2., 1., 1.,
    ];
    let mut frequency = [1.; 256];
    frequency[b' ' as usize] = 150.;
    let mut nth = 0;
    while nth < LETTERS.len() {
        frequency[LETTERS[nth] as usize] = OFTEN[nth];
        frequency[LETTERS[nth].to_ascii_uppercase() as usize] = OFTEN[nth] / 10.;
        nth += 1;
    }
    frequency
};

/// What the first `N` bytes come to, of three or four: alike for letters of either case, since of most bytes that are alike in
/// their low five bits only one is in a text. Where fewer are left zeros stand for the others.
#[inline(always)]
pub(super) fn head<const N: usize>(text: &[u8]) -> u32 {
    const { assert!(N == 3 || N == 4) };
    let four = match text.first_chunk::<4>() {
        Some(four) => *four,
        None => std::array::from_fn(|nth| text.get(nth).copied().unwrap_or_default()),
    };
    u32::from_le_bytes(four) & 0x1F1F_1F1F >> (8 * (4 - N))
}

/// The same of what stands at a place.
#[inline(always)]
pub(super) fn head_at<const N: usize>(text: &[u8], at: usize) -> u32 {
    match text.get(at..at + 4) {
        // Known to be there, it is one load.
        Some(four) => head::<N>(four),
        None => head::<N>(text.get(at..).unwrap_or_default()),
    }
}

/// A number of so many bits for a head, each as good as any other.
#[inline(always)]
pub(super) const fn spread_to<const BITS: u32>(head: u32) -> usize {
    (head.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

/// What is known of heads: one bit for each of many, in 2 KiB.
#[derive(Debug, Clone)]
pub(super) struct Heads(Box<[u64; 1 << (BITS - 6)]>);

/// Some seventy times as many as there are words in a language for what is looked for.
const BITS: u32 = 14;

impl Heads {
    pub(super) fn none() -> Self {
        Self(Box::new([0; 1 << (BITS - 6)]))
    }

    pub(super) fn add(&mut self, head: u32) {
        let place = spread_to::<BITS>(head);
        self.0[place / 64] |= 1 << (place % 64);
    }

    /// Whether it was added, or one that has the same bit.
    #[inline(always)]
    pub(super) fn have(&self, head: u32) -> bool {
        let place = spread_to::<BITS>(head);
        self.0[place / 64] >> (place % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use fearless_simd::{Level, dispatch};
    use proptest::prelude::*;

    use super::*;
    use crate::sanitize::survey::bits;

    proptest! {
        #[test]
        fn wherever_a_word_begins_it_may(words in prop::collection::vec("[a-zA-Z\u{10C}. ]{1,6}", 1..60), at in 0_usize..60, nth in any::<prop::sample::Index>(), upper in any::<bool>()) {
            let word = nth.get(&words);
            let word = if upper { word.to_ascii_uppercase() } else { word.clone() };
            let text = format!("{}{word}", "-".repeat(at));
            let beginnings = Beginnings::<3>::of(words.iter().map(String::as_bytes));
            let text = text.as_bytes();
            let found = dispatch!(Level::new(), simd => {
                let bytes = Marks::on_from::<3>(simd, text, 0);
                bits(beginnings.tables(simd).may_begin(&bytes))
            });
            prop_assert_eq!(found >> at & 1, 1);
        }
    }

    #[test]
    fn where_no_byte_fits_nothing_may_begin() {
        let beginnings = Beginnings::<3>::of([&b"abc"[..], b"xyz"]);
        let text = b"ABC xyz abd yyz -abc";
        let found = dispatch!(Level::new(), simd => {
            let bytes = Marks::on_from::<3>(simd, text, 0);
            bits(beginnings.tables(simd).may_begin(&bytes))
        });
        assert_eq!(found, 1 | 1 << 4 | 1 << 17);
    }
}
