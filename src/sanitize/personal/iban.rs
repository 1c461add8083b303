//! International bank account numbers: countries, lengths, and the remainder of ninety-seven.
//!
//! Guarantees: both of the check digits hold and the length is that of the country. Deliberately absent: the check digits that
//! some countries have inside the account number.

use std::ops::Range;

/// Countries and how many characters their numbers have, as the registry of IBAN says.
const LENGTHS: [(&[u8; 2], usize); 88] = [
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BI", 27),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DJ", 27),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FK", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HN", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MN", 20),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NI", 28),
    (b"NL", 18),
    (b"NO", 15),
    (b"OM", 23),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"RU", 33),
    (b"SA", 24),
    (b"SC", 31),
    (b"SD", 18),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"SO", 23),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
];
/// One bit for each second letter that a country has behind a first.
const SECONDS: [u32; 26] = {
    let mut seconds = [0; 26];
    let mut nth = 0;
    while nth < LENGTHS.len() {
        let [first, second] = *LENGTHS[nth].0;
        seconds[(first - b'A') as usize] |= 1 << (second - b'A');
        nth += 1;
    }
    seconds
};

/// Whether these letters, in either case, are a country that has such numbers.
#[inline]
pub(super) fn is_country(text: &[u8]) -> bool {
    let letter = |at: usize| text.get(at).map_or(0, |byte| byte & 31).wrapping_sub(1);
    SECONDS
        .get(usize::from(letter(0)))
        .is_some_and(|seconds| seconds >> (letter(1) & 31) & 1 == 1)
}

/// How far before a row of digits a number may begin, in bytes.
pub(super) const BACK: usize = 22;

/// The number that begins before or at a row of digits, not before `taken`.
pub(super) fn around(text: &[u8], row: usize, taken: usize) -> Option<Range<usize>> {
    let before = text[..row].last()?;
    let near = if matches!(before, b' ' | b'-') && row > 1 {
        text[row - 2]
    } else {
        *before
    };
    if !near.is_ascii_alphanumeric() {
        return None;
    }
    let from = row.saturating_sub(BACK).max(taken);
    let mut start = row;
    while start > from {
        start -= 1;
        match text[start] {
            b'A'..=b'Z' | b'a'..=b'z' => {
                // Nothing else begins here: most that stands there is a word.
                let head = text[start + 2].is_ascii_digit();
                if head && let Some(found) = at(text, start) {
                    return Some(found);
                }
            }
            b'0'..=b'9' | b' ' | b'-' | b'.' => {}
            // No number goes on behind this.
            _ => break,
        }
    }
    None
}

/// The number that begins at `start`.
pub(super) fn at(text: &[u8], start: usize) -> Option<Range<usize>> {
    let head = text.get(start..)?.first_chunk::<4>()?;
    let [first, second, third, fourth] = *head;
    let alone = start
        .checked_sub(1)
        .is_none_or(|at| !text[at].is_ascii_alphanumeric());
    if !first.is_ascii_alphabetic()
        || !second.is_ascii_alphabetic()
        || !third.is_ascii_digit()
        || !fourth.is_ascii_digit()
        || !alone
    {
        return None;
    }
    if first.is_ascii_lowercase() != second.is_ascii_lowercase() {
        return None;
    }
    let country = [first.to_ascii_uppercase(), second.to_ascii_uppercase()];
    let at = LENGTHS
        .binary_search_by(|(code, _)| (*code).cmp(&country))
        .ok()?;
    let length = LENGTHS[at].1;
    let mut characters = [0_u8; 34];
    let (mut count, mut place) = (0, start);
    while count < length {
        let byte = *text.get(place)?;
        if byte.is_ascii_alphanumeric() {
            // Capitals or small letters, not both.
            if byte.is_ascii_alphabetic() && byte.is_ascii_lowercase() != first.is_ascii_lowercase()
            {
                return None;
            }
            characters[count] = byte.to_ascii_uppercase();
            count += 1;
        } else if !matches!(byte, b' ' | b'-' | b'.') || !text[place - 1].is_ascii_alphanumeric() {
            return None;
        }
        place += 1;
    }
    let goes_on = text.get(place).is_some_and(u8::is_ascii_alphanumeric);
    let characters = &characters[..length];
    let digits = characters[4..]
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .count();
    (!goes_on
        && digits >= 4
        && remainder(characters) == 1
        && characters[4..].iter().any(|byte| *byte != b'0'))
    .then_some(start..place)
}

fn remainder(characters: &[u8]) -> u32 {
    characters[4..]
        .iter()
        .chain(&characters[..4])
        .fold(0, |rest, byte| match byte {
            b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
            _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
        })
}
