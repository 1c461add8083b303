//! International bank account numbers: countries, lengths, and the remainder of ninety-seven.
//!
//! Guarantees: both of the check digits hold, and the length is that of the country, as are the places of letters.
//! Deliberately absent: the check digits that some countries have inside the account number.

use std::ops::Range;

/// Countries and what their numbers have behind the check digits: so many digits, letters or either, as the registry of IBAN
/// says, and those that use such numbers without being in it.
const FORMS: [(&[u8; 2], &str); 111] = [
    (b"AD", "8n12c"),
    (b"AE", "19n"),
    (b"AL", "8n16c"),
    (b"AO", "21n"),
    (b"AT", "16n"),
    (b"AZ", "4a20c"),
    (b"BA", "16n"),
    (b"BE", "12n"),
    (b"BF", "2c22n"),
    (b"BG", "4a6n8c"),
    (b"BH", "4a14c"),
    (b"BI", "23n"),
    (b"BJ", "2c22n"),
    (b"BR", "23n1a1c"),
    (b"BY", "4c4n16c"),
    (b"CF", "23n"),
    (b"CG", "23n"),
    (b"CH", "5n12c"),
    (b"CI", "2a22n"),
    (b"CM", "23n"),
    (b"CR", "18n"),
    (b"CV", "21n"),
    (b"CY", "8n16c"),
    (b"CZ", "20n"),
    (b"DE", "18n"),
    (b"DJ", "23n"),
    (b"DK", "14n"),
    (b"DO", "4c20n"),
    (b"DZ", "22n"),
    (b"EE", "16n"),
    (b"EG", "25n"),
    (b"ES", "20n"),
    (b"FI", "14n"),
    (b"FK", "2a12n"),
    (b"FO", "14n"),
    (b"FR", "10n11c2n"),
    (b"GA", "23n"),
    (b"GB", "4a14n"),
    (b"GE", "2a16n"),
    (b"GI", "4a15c"),
    (b"GL", "14n"),
    (b"GQ", "23n"),
    (b"GR", "7n16c"),
    (b"GT", "24c"),
    (b"GW", "2c19n"),
    (b"HN", "4a20n"),
    (b"HR", "17n"),
    (b"HU", "24n"),
    (b"IE", "4a14n"),
    (b"IL", "19n"),
    (b"IQ", "4a15n"),
    (b"IR", "22n"),
    (b"IS", "22n"),
    (b"IT", "1a10n12c"),
    (b"JO", "4a4n18c"),
    (b"KM", "23n"),
    (b"KW", "4a22c"),
    (b"KZ", "3n13c"),
    (b"LB", "4n20c"),
    (b"LC", "4a24c"),
    (b"LI", "5n12c"),
    (b"LT", "16n"),
    (b"LU", "3n13c"),
    (b"LV", "4a13c"),
    (b"LY", "21n"),
    (b"MA", "24n"),
    (b"MC", "10n11c2n"),
    (b"MD", "20c"),
    (b"ME", "18n"),
    (b"MG", "23n"),
    (b"MK", "3n10c2n"),
    (b"ML", "2c22n"),
    (b"MN", "16n"),
    (b"MR", "23n"),
    (b"MT", "4a5n18c"),
    (b"MU", "4a19n3a"),
    (b"MZ", "21n"),
    (b"NE", "2a22n"),
    (b"NI", "4a20n"),
    (b"NL", "4a10n"),
    (b"NO", "11n"),
    (b"OM", "3n16c"),
    (b"PK", "4a16c"),
    (b"PL", "24n"),
    (b"PS", "4a21c"),
    (b"PT", "21n"),
    (b"QA", "4a21c"),
    (b"RO", "4a16c"),
    (b"RS", "18n"),
    (b"RU", "14n15c"),
    (b"SA", "2n18c"),
    (b"SC", "4a20n3a"),
    (b"SD", "14n"),
    (b"SE", "20n"),
    (b"SI", "15n"),
    (b"SK", "20n"),
    (b"SM", "1a10n12c"),
    (b"SN", "2a22n"),
    (b"SO", "19n"),
    (b"ST", "21n"),
    (b"SV", "4a20n"),
    (b"TD", "23n"),
    (b"TG", "2a22n"),
    (b"TL", "19n"),
    (b"TN", "20n"),
    (b"TR", "6n16c"),
    (b"UA", "6n19c"),
    (b"VA", "18n"),
    (b"VG", "4a16n"),
    (b"XK", "16n"),
    (b"YE", "4a4n18c"),
];
/// One bit for each second letter that a country has behind a first.
const SECONDS: [u32; 26] = {
    let mut seconds = [0; 26];
    let mut nth = 0;
    while nth < FORMS.len() {
        let [first, second] = *FORMS[nth].0;
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

/// The number that begins at `start` in groups of four: it needs no row of digits.
#[inline]
pub(super) fn grouped(text: &[u8], start: usize) -> Option<Range<usize>> {
    let [joint, group @ .., next] = text.get(start + 4..)?.first_chunk::<6>()?;
    let joined = matches!(joint, b' ' | b'-') && next == joint;
    let group = || group.iter().all(u8::is_ascii_alphanumeric);
    (joined && group()).then(|| at(text, start)).flatten()
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

/// The number that goes on behind the name of a field of a statement: `?31DE...`.
pub(super) fn in_field(text: &[u8], start: usize) -> Option<Range<usize>> {
    let sign = *text.get(start.checked_sub(1)?)?;
    let name = text.get(start..start + 2)?;
    let field = matches!(sign, b'?' | b'~' | b'>') && name.iter().all(u8::is_ascii_digit);
    field.then(|| read(text, start + 2)).flatten()
}

/// The number that begins at `start`, if nothing goes before it.
pub(super) fn at(text: &[u8], start: usize) -> Option<Range<usize>> {
    let alone = start
        .checked_sub(1)
        .is_none_or(|at| !text[at].is_ascii_alphanumeric());
    alone.then(|| read(text, start)).flatten()
}

fn read(text: &[u8], start: usize) -> Option<Range<usize>> {
    let head = text.get(start..)?.first_chunk::<4>()?;
    let [first, second, third, fourth] = *head;
    if !first.is_ascii_alphabetic()
        || !second.is_ascii_alphabetic()
        || !third.is_ascii_digit()
        || !fourth.is_ascii_digit()
    {
        return None;
    }
    if first.is_ascii_lowercase() != second.is_ascii_lowercase() {
        return None;
    }
    let country = [first.to_ascii_uppercase(), second.to_ascii_uppercase()];
    let at = FORMS
        .binary_search_by(|(code, _)| (*code).cmp(&country))
        .ok()?;
    let form = FORMS[at].1;
    let length = 4 + parts(form).map(|(count, _)| count).sum::<usize>();
    let mut characters = [0_u8; 34];
    let (mut count, mut place) = (0, start);
    // Groups, some that are not of four, and a line that ends between those of four.
    let (mut joined, mut uneven, mut broken) = (false, false, false);
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
        } else if byte == b'\n'
            && joined
            && !broken
            && count.is_multiple_of(4)
            && text[place - 1].is_ascii_alphanumeric()
        {
            broken = true;
        } else if !matches!(byte, b' ' | b'-' | b'.') || !text[place - 1].is_ascii_alphanumeric() {
            return None;
        } else {
            joined = true;
            uneven |= count % 4 != 0;
        }
        place += 1;
    }
    let goes_on = text.get(place).is_some_and(u8::is_ascii_alphanumeric);
    let characters = &characters[..length];
    let digits = characters[4..]
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .count();
    // A few small words may come to what holds by chance.
    let plenty = if uneven || first.is_ascii_lowercase() {
        4
    } else {
        1
    };
    (!goes_on
        && digits >= plenty
        && has(form, &characters[4..])
        && remainder(characters) == 1
        && characters[4..].iter().any(|byte| *byte != b'0'))
    .then_some(start..place)
}

/// How many characters of each kind a form has, in order.
fn parts(form: &str) -> impl Iterator<Item = (usize, u8)> {
    form.split_inclusive(['n', 'a', 'c']).map(|part| {
        let (count, kind) = part.split_at(part.len() - 1);
        (count.parse().unwrap_or(0), kind.as_bytes()[0])
    })
}

/// Whether these characters have digits and letters where the form does.
fn has(form: &str, characters: &[u8]) -> bool {
    let mut rest = characters.iter();
    parts(form).all(|(count, kind)| {
        rest.by_ref().take(count).all(|byte| match kind {
            b'n' => byte.is_ascii_digit(),
            b'a' => byte.is_ascii_uppercase(),
            _ => true,
        })
    })
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
