//! Whether readable text may come out of a run of Base64 or hexadecimal digits, before anything is decoded: names, numbers and
//! digests are such runs, too, and there are many.
//!
//! Guarantees: whatever has readable text in it is told so; nothing is allocated. Deliberately absent: decoding (`decoded.rs`).

use wide::u8x16;

/// The longest run that is judged as one, in bytes.
const LONGEST: usize = 128;
/// A longer one is judged in pieces, which begin so far from one another: whatever is too small to be told in one of two pieces
/// that share it is whole in one of them.
const STEP: usize = 96;
/// Bytes in one vector register.
const BLOCK: usize = 16;

/// The fewest readable bytes that are worth looking at: what the shortest credential has.
pub(super) const TEXT: usize = 8;

/// Whether so many bytes of ASCII among those of a stretch are a text: characters beyond may be what splits a key.
pub(super) const fn is_text(plain: usize, all: usize) -> bool {
    plain >= TEXT && plain * 4 >= all * 3
}

/// Whether text may be in a run of Base64 of either alphabet, by the place in its first four characters where it begins.
/// Exact for runs of up to [`LONGEST`] bytes.
pub(super) fn base64(run: &[u8]) -> [bool; 4] {
    // A number or a digest: in text every fourth character of its Base64 is one from I to Z or a to f. Nothing comes of
    // hexadecimal digits in which every third character is not one of a few, from `h` to `}`.
    if run
        .iter()
        .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b'_'))
    {
        return [false; 4];
    }
    if run.len() <= LONGEST {
        return piece(run, is_text);
    }
    let mut all = [false; 4];
    for at in (0..run.len()).step_by(STEP) {
        let found = piece(&run[at..(at + LONGEST).min(run.len())], may_be_text);
        all = std::array::from_fn(|shift| all[shift] || found[shift]);
        if all == [true; 4] {
            break;
        }
    }
    all
}

/// Less than [`is_text`] asks for: of a text in two pieces or more, one is at least this.
const fn may_be_text(plain: usize, all: usize) -> bool {
    plain >= TEXT && plain * 2 >= all
}

fn piece(run: &[u8], is_text: fn(usize, usize) -> bool) -> [bool; 4] {
    let mut sextets = [0; LONGEST + BLOCK];
    let mut bytes = [0; LONGEST];
    bytes[..run.len()].copy_from_slice(run);
    let blocks = run.len().div_ceil(BLOCK);
    let (from, _) = bytes.as_chunks::<BLOCK>();
    let (to, _) = sextets.as_chunks_mut::<BLOCK>();
    for (from, to) in from.iter().zip(to).take(blocks) {
        *to = values(u8x16::new(*from)).to_array();
    }
    // What each character is, with the one behind it, as the first, second and third byte of three.
    let mut all = [Read::default(); 3];
    for block in 0..blocks {
        let at = block * BLOCK;
        let (this, next) = (load(&sextets, at), load(&sextets, at + 1));
        for (read, now) in
            all.iter_mut()
                .zip([first(this, next), second(this, next), third(this, next)])
        {
            read.plain |= bits(now.0) << at;
            read.beyond |= bits(now.1) << at;
        }
    }
    // The last character has none behind it.
    let whole = (1 << (run.len() - 1)) - 1;
    std::array::from_fn(|shift| {
        let every = u128::MAX / 15;
        let of = |nth: usize| every << (shift + nth) & whole;
        let join =
            |part: fn(&Read) -> u128| (0..3).fold(0, |bits, nth| bits | part(&all[nth]) & of(nth));
        let read = Read {
            plain: join(|read| read.plain),
            beyond: join(|read| read.beyond),
        };
        read.holds_text(of(0) | of(1) | of(2), is_text)
    })
}

/// The same for a run of hexadecimal digits, of which each two are a byte.
pub(super) fn hexadecimal(run: &[u8]) -> bool {
    if run.len() > LONGEST {
        return true;
    }
    let mut digits = [0; LONGEST + BLOCK];
    digits[..run.len()].copy_from_slice(run);
    let mut read = Read::default();
    for block in 0..run.len().div_ceil(BLOCK) {
        let at = block * BLOCK;
        let low = u8x16::splat(0x20);
        let (this, next) = (load(&digits, at) | low, load(&digits, at + 1) | low);
        let blank = is(next, b'9') | is(next, b'a') | is(next, b'd');
        let plain =
            within(this, b'2', 5) | is(this, b'7') & !is(next, b'f') | is(this, b'0') & blank;
        read.plain |= bits(plain) << at;
        read.beyond |= bits(within(this, b'8', 2) | within(this, b'a', 6)) << at;
    }
    let whole = (1 << (run.len() - 1)) - 1;
    read.holds_text((u128::MAX / 3) & whole, is_text)
}

/// One bit for each byte that would be decoded.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    /// Readable ASCII.
    plain: u128,
    /// Not ASCII.
    beyond: u128,
}

impl Read {
    /// Whether a stretch without control characters is a text; `all` are the bytes that there are.
    fn holds_text(&self, all: u128, is_text: fn(usize, usize) -> bool) -> bool {
        let plain = self.plain & all;
        if (plain.count_ones() as usize) < TEXT {
            return false;
        }
        let mut controls = all & !(self.plain | self.beyond);
        let mut rest = u128::MAX;
        loop {
            // Up to the next control character.
            let end = controls & controls.wrapping_neg();
            let stretch = rest & end.wrapping_sub(1);
            let (plain, beyond) = (plain & stretch, self.beyond & all & stretch);
            let (plain, beyond) = (plain.count_ones() as usize, beyond.count_ones() as usize);
            if is_text(plain, plain + beyond) {
                return true;
            }
            if end == 0 {
                return false;
            }
            controls &= controls - 1;
            rest = !(end | end.wrapping_sub(1));
        }
    }
}

/// What characters of Base64 stand for.
fn values(bytes: u8x16) -> u8x16 {
    let upper = within(bytes, b'A', 26) & (bytes - u8x16::splat(b'A'));
    let lower = within(bytes, b'a', 26) & (bytes - u8x16::splat(b'a' - 26));
    let digit = within(bytes, b'0', 10) & (bytes + u8x16::splat(52 - b'0'));
    let plus = (is(bytes, b'+') | is(bytes, b'-')) & u8x16::splat(62);
    let slash = (is(bytes, b'/') | is(bytes, b'_')) & u8x16::splat(63);
    upper | lower | digit | plus | slash
}

/// Six bits and two: whether they are readable, and whether they are beyond ASCII.
fn first(this: u8x16, next: u8x16) -> (u8x16, u8x16) {
    let plain = within(this, 8, 23)
        | is(this, 31) & within(next, 0, 48)
        | is(this, 2) & within(next, 16, 32)
        | is(this, 3) & within(next, 16, 16);
    (plain, within(this, 32, 32))
}

/// Four bits and four.
fn second(this: u8x16, next: u8x16) -> (u8x16, u8x16) {
    let low = this & u8x16::splat(15);
    let plain = within(low, 2, 5)
        | is(low, 7) & within(next, 0, 60)
        | is(low, 0) & (within(next, 36, 8) | within(next, 52, 4));
    (plain, within(low, 8, 8))
}

/// Two bits and six.
fn third(this: u8x16, next: u8x16) -> (u8x16, u8x16) {
    let low = this & u8x16::splat(3);
    let blank = within(next, 9, 2) | is(next, 13);
    let plain = is(low, 1) & !is(next, 63) | is(low, 0) & (within(next, 32, 32) | blank);
    (plain, within(low, 2, 2))
}

fn load(bytes: &[u8; LONGEST + BLOCK], at: usize) -> u8x16 {
    let mut block = [0; BLOCK];
    block.copy_from_slice(&bytes[at..at + BLOCK]);
    u8x16::new(block)
}

fn bits(lanes: u8x16) -> u128 {
    u128::from(lanes.to_bitmask())
}

fn is(lanes: u8x16, byte: u8) -> u8x16 {
    lanes.simd_eq(u8x16::splat(byte))
}

/// All bits set in lanes that are one of `count` values from `first` on.
fn within(lanes: u8x16, first: u8, count: u8) -> u8x16 {
    let from = lanes - u8x16::splat(first);
    from.min(u8x16::splat(count - 1)).simd_eq(from)
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

    /// Whether there is a text in what was decoded, byte by byte.
    fn readable(bytes: &[u8]) -> bool {
        bytes
            .split(|byte| *byte < 0x80 && !matches!(byte, 0x20..=0x7E | b'\t' | b'\n' | b'\r'))
            .any(|part| {
                is_text(
                    part.iter().filter(|byte| byte.is_ascii()).count(),
                    part.len(),
                )
            })
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_run_is_told_exactly_if_text_comes_out(text in "(\\PC|[ -~\t\n]{1,12}|[\u{1}-\u{1F}\u{7F}]){0,9}", before in "[A-Za-z0-9+/_-]{0,9}", after in "[A-Za-z0-9+/_-]{0,40}") {
            let encoded = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&text);
            let run = format!("{before}{encoded}{after}");
            let run = run.as_bytes();
            if run.len() >= 4 && run.len() <= LONGEST && !is_hexadecimal(run) {
                let told = base64(run);
                for (shift, told) in told.into_iter().enumerate() {
                    prop_assert_eq!(told, readable(&decoded(run, shift)), "{}", shift);
                }
            }
            let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            for run in [hex.as_bytes(), &hex.as_bytes()[..hex.len().saturating_sub(1)]] {
                if !run.is_empty() && run.len() <= LONGEST {
                    prop_assert_eq!(hexadecimal(run), readable(&text.as_bytes()[..run.len() / 2]));
                    prop_assert_eq!(hexadecimal(&run.to_ascii_uppercase()), hexadecimal(run));
                }
            }
        }

        #[test]
        fn what_is_in_a_long_run_is_told(text in "[ -~]{6,20}[ -~\u{200B}é]{0,20}", before in "[A-Za-z0-9+/]{90,230}", after in "[A-Za-z0-9+/]{0,300}") {
            let encoded = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&text);
            let run = format!("{before}{encoded}{after}");
            let told = base64(run.as_bytes());
            for (shift, told) in told.into_iter().enumerate() {
                prop_assert!(told || !readable(&decoded(run.as_bytes(), shift)), "{}", shift);
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
