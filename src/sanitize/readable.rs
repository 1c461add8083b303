//! Whether readable text may come out of a run of Base64 or hexadecimal digits, and where, before anything is decoded.
//! Names, numbers and digests are such runs, too, and there are many.
//!
//! Guarantees: exact, however long a run is, but for runs of hexadecimal digits with `-` or `_` in them, which are names; one pass
//! for all places where what was encoded may begin; nothing is allocated where nothing is found.
//! Deliberately absent: decoding (`decoded.rs`).

use std::ops::Range;

use fearless_simd::{Level, Simd, dispatch, prelude::*, u8x16, u8x64};

use super::{
    survey::{BLOCK, Held, Marks, bits},
    work::looked,
};

/// The fewest readable bytes that are worth looking at: what the shortest credential has.
pub(super) const TEXT: usize = 8;

/// Whether so many bytes of ASCII among those of a stretch are a text: characters beyond may be what splits a key.
pub(super) const fn is_text(plain: usize, all: usize) -> bool {
    plain >= TEXT && plain * 4 >= all * 3
}

/// The same of a stretch in which so many bytes are not where UTF-8 has them, of any script: what is ASCII in it is read all the
/// same. Something may stand before and behind that is none.
pub(super) const fn is_written(plain: usize, all: usize, odd: usize) -> bool {
    plain >= TEXT && odd * 8 <= all
}

/// How many bytes are not where UTF-8 has them: those that go on behind ASCII, and those that do not behind the first of several.
pub(super) fn odd(stretch: &[u8]) -> usize {
    let two = stretch.iter().zip(stretch.get(1..).unwrap_or_default());
    two.filter(|(before, byte)| match before {
        0..0x80 => matches!(byte, 0x80..0xC0),
        0x80..0xC0 => false,
        0xC0.. => !matches!(byte, 0x80..0xC0),
    })
    .count()
}

/// Where stretches of text are in a run, from the first character of what is readable to behind the last; in order, and those
/// that stand near one another as one.
pub(super) type Stretches = Vec<Range<usize>>;

/// Finds where text is in a run of Base64 of either alphabet, by the place in its first four characters where what was encoded
/// begins.
pub(super) fn base64(run: &[u8], found: &mut [Stretches; 4]) {
    found.iter_mut().for_each(Vec::clear);
    // A number or a digest: in text every fourth character of its Base64 is one from I to Z or a to f. Nothing comes of
    // hexadecimal digits in which every third character is not one of a few, from `h` to `}`.
    if run
        .iter()
        .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b'_'))
    {
        return;
    }
    looked(run.len());
    dispatch!(Level::new(), simd => in_base64(simd, run, found));
}

/// The same for a run of hexadecimal digits, of which each two are a byte.
pub(super) fn hexadecimal(run: &[u8]) -> bool {
    looked(run.len());
    dispatch!(Level::new(), simd => in_hexadecimal(simd, run))
}

#[inline(always)]
fn in_base64<S: Simd>(simd: S, run: &[u8], found: &mut [Stretches; 4]) {
    const EVERY: u64 = u64::MAX / 15;
    let mut stretches = [Stretch::default(); 4];
    // Of the byte before the block whether it is ASCII, and whether it is the first of several.
    let mut last = [[0; 2]; 4];
    let mut at = 0;
    let mut this = values(simd, Marks::at(simd, run, at));
    while at < run.len() {
        let after = values(simd, Marks::at(simd, run, at + BLOCK));
        let next = Marks::of(this.bytes().slide::<1>(after.bytes()));
        // What each character is, with the one behind it, as the first, second and third byte of three.
        let (first, second, third) = (first(this, next), second(this, next), third(this, next));
        let plain = [bits(first[0]), bits(second[0]), bits(third[0])];
        let beyond = [bits(first[1]), bits(second[1]), bits(third[1])];
        let lead = [bits(first[2]), bits(second[2]), bits(third[2])];
        // The last character has none behind it.
        let whole = low(run.len() - 1 - at);
        for shift in 0..4 {
            let begun = if at == 0 { !low(shift) } else { u64::MAX };
            let of = |nth: usize| EVERY << ((shift + nth) % 4) & whole & begun;
            let all = of(0) | of(1) | of(2);
            let plain = plain[0] & of(0) | plain[1] & of(1) | plain[2] & of(2);
            let beyond = beyond[0] & of(0) | beyond[1] & of(1) | beyond[2] & of(2);
            let lead = lead[0] & of(0) | lead[1] & of(1) | lead[2] & of(2);
            let control = all & !(plain | beyond);
            // Where no byte begins stands again what stands before.
            let before = |bits: u64, last: &mut u64| {
                let filled = bits | (bits << 1 | *last) & of(3);
                let before = filled << 1 | *last;
                *last = filled >> 63;
                before
            };
            let [last_plain, last_lead] = &mut last[shift];
            let odd = before(plain, last_plain) & beyond & !lead
                | before(lead, last_lead) & all & !(beyond & !lead);
            stretches[shift].goes_on(at, (all, plain, control, odd), &mut found[shift]);
        }
        (this, at) = (after, at + BLOCK);
    }
    for (found, stretch) in found.iter_mut().zip(&stretches) {
        stretch.ends(run.len(), (0, 0, 0), found);
    }
}

#[inline(always)]
fn in_hexadecimal<S: Simd>(simd: S, run: &[u8]) -> bool {
    const EVERY: u64 = u64::MAX / 3;
    let mut stretch = Stretch::default();
    let mut found = Vec::new();
    let (mut last_plain, mut last_lead) = (0, 0);
    let mut at = 0;
    while at < run.len() {
        let [this, next] = Marks::on_from(simd, run, at);
        let (this, next) = (this.with(0x20), next.with(0x20));
        let blank = next.is(b'9') | next.is(b'a') | next.is(b'd');
        let plain = this.within(b'2', 5) | this.is(b'7') & !next.is(b'f') | this.is(b'0') & blank;
        let beyond = this.within(b'8', 2) | this.within(b'a', 6);
        let lead = this.within(b'c', 4);
        let all = EVERY & low(run.len() - 1 - at);
        let (plain, beyond, lead) = (bits(plain) & all, bits(beyond) & all, bits(lead) & all);
        // Most are numbers and digests, and too few of their bytes are readable wherever they stand.
        if run.len() <= BLOCK && count(plain) < TEXT {
            return false;
        }
        let control = all & !(plain | beyond);
        let odd = (plain << 2 | last_plain) & beyond & !lead
            | (lead << 2 | last_lead) & all & !(beyond & !lead);
        (last_plain, last_lead) = (plain >> 62 & 1, lead >> 62 & 1);
        stretch.goes_on(at, (all, plain, control, odd), &mut found);
        if !found.is_empty() {
            return true;
        }
        at += BLOCK;
    }
    stretch.ends(run.len(), (0, 0, 0), &mut found);
    !found.is_empty()
}

/// What is known of a stretch without control characters that goes on: where in the run it begins, how many of its bytes are
/// ASCII, how many there are, and how many are not where UTF-8 has them.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    from: usize,
    plain: usize,
    all: usize,
    odd: usize,
}

impl Stretch {
    /// Goes on with the block at `at`, in which there are these bytes, and among them readable ASCII, control characters and what
    /// is not where UTF-8 has it.
    /// Stretches that end in it and are texts belong to what is `found`.
    #[inline(always)]
    fn goes_on(
        &mut self,
        at: usize,
        (all, plain, control, odd): (u64, u64, u64, u64),
        found: &mut Stretches,
    ) {
        if control == 0 {
            self.plain += count(plain);
            self.all += count(all);
            self.odd += count(odd);
            return;
        }
        let first = control.trailing_zeros() as usize;
        let last = BLOCK - control.leading_zeros() as usize;
        let (before, behind) = (low(first), !low(last));
        let of = |bits: u64| (count(plain & bits), count(all & bits), count(odd & bits));
        let here = of(before);
        self.ends(at + first, here, found);
        let (begun, whole, wrong) = of(behind);
        *self = Self {
            from: at + last,
            plain: begun,
            all: whole,
            odd: wrong,
        };
        // Of those between two control characters the long ones: of Base64 eight bytes begin in ten characters or more.
        let mut long = !(before | behind | control);
        for by in [1, 2, 4, 2] {
            long &= long >> by;
        }
        while long != 0 {
            let start = long.trailing_zeros() as usize;
            let from = !low(start);
            let end = (control & from).trailing_zeros() as usize;
            let stretch = from & low(end);
            if is_readable(of(stretch)) {
                widen(found, at + start..at + end);
            }
            long &= !low(end);
        }
    }

    /// Ends, with so many bytes more, told as those of it are: before `end`.
    #[inline(always)]
    fn ends(&self, end: usize, (plain, all, odd): (usize, usize, usize), found: &mut Stretches) {
        if is_readable((self.plain + plain, self.all + all, self.odd + odd)) {
            widen(found, self.from..end);
        }
    }
}

#[inline(always)]
const fn is_readable((plain, all, odd): (usize, usize, usize)) -> bool {
    is_text(plain, all) || is_written(plain, all, odd)
}

/// Adds a stretch, or makes the last reach around it: what lies between is decoded faster than left out.
#[inline(always)]
fn widen(found: &mut Stretches, stretch: Range<usize>) {
    match found.last_mut() {
        Some(last) if stretch.start < last.end + BLOCK => last.end = stretch.end,
        _ => found.push(stretch),
    }
}

#[inline(always)]
const fn count(bits: u64) -> usize {
    bits.count_ones() as usize
}

/// So many of the lowest bits.
#[inline(always)]
const fn low(count: usize) -> u64 {
    if count >= BLOCK {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// What characters of Base64 stand for.
#[inline(always)]
fn values<S: Simd>(simd: S, bytes: Marks<S>) -> Marks<S> {
    // What is to be added, by the upper half: `-`, digits, letters, which are all but one of what is there.
    const ADDED: [u8; 16] = {
        let mut added = [0; 16];
        added[2] = 62_u8.wrapping_sub(b'-');
        added[3] = 52_u8.wrapping_sub(b'0');
        (added[4], added[5]) = (0_u8.wrapping_sub(b'A'), 0_u8.wrapping_sub(b'A'));
        (added[6], added[7]) = (26_u8.wrapping_sub(b'a'), 26_u8.wrapping_sub(b'a'));
        added
    };
    let added = u8x64::block_splat(u8x16::from_slice(simd, &ADDED));
    let plain = bytes.bytes() + added.swizzle_dyn_within_blocks(bytes.bytes() >> 4);
    let plus = bytes.is(b'+').select(u8x64::splat(simd, 62), plain);
    let slash = bytes.is(b'/') | bytes.is(b'_');
    Marks::of(slash.select(u8x64::splat(simd, 63), plus))
}

/// Six bits and two: whether they are readable, whether they are beyond ASCII, and whether they are the first of several.
#[inline(always)]
fn first<S: Simd>(this: Marks<S>, next: Marks<S>) -> [Held<S>; 3] {
    let plain = this.within(8, 23)
        | this.is(31) & next.at_most(47)
        | this.is(2) & next.within(16, 32)
        | this.is(3) & next.within(16, 16);
    [plain, this.at_least(32), this.at_least(48)]
}

/// Four bits and four.
#[inline(always)]
fn second<S: Simd>(this: Marks<S>, next: Marks<S>) -> [Held<S>; 3] {
    let low = this.only(15);
    let blank = next.within(36, 8) | next.within(52, 4);
    let plain = low.within(2, 5) | low.is(7) & next.at_most(59) | low.is(0) & blank;
    [plain, low.at_least(8), low.at_least(12)]
}

/// Two bits and six.
#[inline(always)]
fn third<S: Simd>(this: Marks<S>, next: Marks<S>) -> [Held<S>; 3] {
    let low = this.only(3);
    let blank = next.within(9, 2) | next.is(13);
    let plain = low.is(1) & !next.is(63) | low.is(0) & (next.at_least(32) | blank);
    [plain, low.at_least(2), low.is(3)]
}

#[cfg(test)]
mod tests {
    use base64::{
        Engine,
        alphabet::{STANDARD, URL_SAFE},
        engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    };
    use proptest::prelude::*;

    use super::*;

    /// From the first byte of a text in what was decoded to the end of the last, byte by byte; empty, where there is none.
    fn readable(bytes: &[u8]) -> Range<usize> {
        let (mut found, mut from) = (NOWHERE, 0);
        let is_plain = |byte: &&u8| byte.is_ascii();
        for part in
            bytes.split(|byte| *byte < 0x80 && !matches!(byte, 0x20..=0x7E | b'\t' | b'\n' | b'\r'))
        {
            let plain = part.iter().filter(is_plain).count();
            if is_readable((plain, part.len(), odd(part))) {
                found = found.start.min(from)..from + part.len();
            }
            from += part.len() + 1;
        }
        found
    }

    /// Nothing was found.
    const NOWHERE: Range<usize> = Range {
        start: usize::MAX,
        end: 0,
    };

    /// What is told of a run, from the first stretch to the last.
    fn base64(run: &[u8]) -> [Range<usize>; 4] {
        let mut found = Default::default();
        super::base64(run, &mut found);
        found.map(|found| match (&found[..], found.last()) {
            ([first, ..], Some(last)) => {
                assert!(
                    found
                        .windows(2)
                        .all(|two| two[0].end + BLOCK <= two[1].start)
                );
                first.start..last.end
            }
            _ => NOWHERE,
        })
    }

    /// Whether what was told in characters are these bytes, and no character more than there is of them and of what ends them.
    fn reaches_around(told: &Range<usize>, shift: usize, bytes: &Range<usize>) -> bool {
        let character = |byte: usize| shift + byte / 3 * 4 + byte % 3;
        if bytes.is_empty() {
            return told.is_empty();
        }
        let (first, behind) = (character(bytes.start), character(bytes.end - 1) + 1);
        (first.saturating_sub(shift + 1)..=first).contains(&told.start)
            && (behind..=behind + 2).contains(&told.end)
    }

    fn decoded(run: &[u8], shift: usize) -> Vec<u8> {
        let config = GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireNone);
        let one = run[shift..].iter().map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        });
        let mut one: Vec<u8> = one.collect();
        if one.len() % 4 == 1 {
            one.pop();
        }
        assert!(URL_SAFE != STANDARD);
        GeneralPurpose::new(&STANDARD, config).decode(one).unwrap()
    }

    fn is_hexadecimal(run: &[u8]) -> bool {
        run.iter()
            .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b'_'))
    }

    #[test]
    fn bytes_that_are_not_where_they_belong_are_counted() {
        for text in ["", "a", "plain", "é", "日本語 and more", "🔑x"] {
            assert_eq!(odd(text.as_bytes()), 0, "{text}");
        }
        for (bytes, count) in [
            (&b"a\x80"[..], 1),
            (b"\xC3a", 1),
            (b"\xC3\xC3\xA9", 1),
            (b"\xFFa\xA9b\xFF", 2),
        ] {
            assert_eq!(odd(bytes), count, "{bytes:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_run_is_told_exactly_if_text_comes_out(text in "(\\PC|[ -~\t\n]{1,12}|[Ѐ-ӿ一-龥]{1,20}|[\u{1}-\u{1F}\u{7F}]){0,9}", before in "[A-Za-z0-9+/_-]{0,9}", after in "[A-Za-z0-9+/_-]{0,40}") {
            let encoded = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&text);
            let run = format!("{before}{encoded}{after}");
            let run = run.as_bytes();
            if run.len() >= 4 && !is_hexadecimal(run) {
                let told = base64(run);
                for (shift, told) in told.into_iter().enumerate() {
                    let found = readable(&decoded(run, shift));
                    prop_assert_eq!(!told.is_empty(), !found.is_empty(), "{}", shift);
                    prop_assert!(reaches_around(&told, shift, &found), "{}: {:?} {:?}", shift, told, found);
                }
            }
            let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            for run in [hex.as_bytes(), &hex.as_bytes()[..hex.len().saturating_sub(1)]] {
                if !run.is_empty() {
                    prop_assert_eq!(hexadecimal(run), !readable(&text.as_bytes()[..run.len() / 2]).is_empty());
                    prop_assert_eq!(hexadecimal(&run.to_ascii_uppercase()), hexadecimal(run));
                }
            }
        }

        #[test]
        fn a_long_run_is_told_exactly_too(text in "[ -~]{6,20}[ -~\u{200B}é]{0,20}[Ѐ-ӿ一-龥]{0,40}", before in "[A-Za-z0-9+/]{90,230}", after in "[A-Za-z0-9+/]{0,300}") {
            let encoded = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&text);
            let run = format!("{before}{encoded}{after}");
            let told = base64(run.as_bytes());
            for (shift, told) in told.into_iter().enumerate() {
                let found = readable(&decoded(run.as_bytes(), shift));
                prop_assert!(reaches_around(&told, shift, &found), "{}: {:?} {:?}", shift, told, found);
            }
        }

        #[test]
        fn hexadecimal_digits_are_base64_of_few_texts_only(run in "[0-9a-fA-F_-]{20,60}") {
            for shift in 0..4 {
                let odd = decoded(run.as_bytes(), shift).chunks(3).filter(|three| three[0].is_ascii_graphic() && !(b'h'..=b'}').contains(&three[0])).count();
                prop_assert_eq!(odd, 0);
            }
        }
    }
}
