//! National numbers that have letters in them.
//!
//! Guarantees: a number is told only when its check letter holds. Deliberately absent: numbers of digits only (`table.rs`).

use std::ops::Range;

use super::{
    checks::{is_day, number as value_of, weighed},
    national::{Countries, Found},
    number::Row,
    table::COUNT,
};

/// Numbers of digits and one letter or more, or with a grouping of their own: they are read by code.
pub(super) const LETTERED: &[(&str, &[&str])] = &[
    (
        "es_dni",
        &[
            "dni",
            "nif",
            "nie",
            "documento",
            "identidad",
            "spanish",
            "espa",
        ],
    ),
    (
        "sg_nric",
        &["nric", "fin", "singpass", "singapore", "identity", "ic"],
    ),
    ("ie_pps", &["pps", "irish", "ireland", "revenue"]),
    ("hk_id", &["hkid", "hong kong", "\u{8eab}\u{4efd}"]),
    (
        "tw_id",
        &[
            "taiwan",
            "national id",
            "\u{8eab}\u{5206}",
            "\u{8eab}\u{4efd}",
            "id number",
            "roc id",
        ],
    ),
    ("fi_hetu", &[]),
    ("cl_rut", &[]),
    ("fr_nir", &[]),
    (
        "de_health_insurance",
        &[
            "kvnr",
            "krankenversich",
            "versichertennummer",
            "health insurance",
        ],
    ),
    (
        "de_pension_insurance",
        &[
            "rvnr",
            "rentenversicherung",
            "sozialversicherung",
            "social security",
            "svnr",
            "vsnr",
        ],
    ),
    ("it_codice_fiscale", &[]),
    ("mx_curp", &[]),
    ("cn_resident_id", &[]),
];

/// How the digits of those that are read from a row of digits are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lettered {
    Eight,
    Dotted,
    Seven,
    Nine,
    Seventeen,
    SixThree,
    SixFour,
    ThreeThreeTwo,
}

impl Lettered {
    pub(super) const ALL: [Self; 8] = [
        Self::Eight,
        Self::Dotted,
        Self::Seven,
        Self::Nine,
        Self::Seventeen,
        Self::SixThree,
        Self::SixFour,
        Self::ThreeThreeTwo,
    ];

    /// As rules write it.
    pub(super) const fn shape(self) -> &'static str {
        match self {
            Self::Eight => "8",
            Self::Dotted => "2.3.3",
            Self::Seven => "7",
            Self::Nine => "9",
            Self::Seventeen => "17",
            Self::SixThree => "6-3",
            Self::SixFour => "6-4",
            Self::ThreeThreeTwo => "3 3 2",
        }
    }

    /// Whether such letters stand beside the digits as some number of this shape has: most have none, and are not read.
    #[inline]
    pub(super) fn is_beside(self, text: &[u8], span: &Range<usize>) -> bool {
        let before = span.start.checked_sub(1).map_or(b' ', |at| text[at]);
        let after = |more: usize| text.get(span.end + more).copied().unwrap_or(b' ');
        match self {
            Self::Eight | Self::Dotted => {
                let joint = usize::from(matches!(after(0), b'-' | b' '));
                let alone = !before.is_ascii_alphanumeric()
                    && after(joint).is_ascii_alphabetic()
                    && !after(joint + 1).is_ascii_alphanumeric();
                alone
                    || self == Self::Eight && (is_corsica(before) || after(0).is_ascii_uppercase())
            }
            // A space stands between the department and the rest.
            Self::ThreeThreeTwo => {
                let before = span.start.checked_sub(2).map_or(b' ', |at| text[at]);
                is_corsica(before)
            }
            Self::Seven => {
                before.is_ascii_uppercase()
                    || matches!(before, b'x'..=b'z' | b'-')
                    || after(0).is_ascii_uppercase()
            }
            Self::Nine => before.is_ascii_uppercase(),
            Self::Seventeen => matches!(after(0), b'X' | b'x'),
            Self::SixThree => after(0).is_ascii_uppercase(),
            Self::SixFour => !before.is_ascii_alphanumeric() && !after(0).is_ascii_alphanumeric(),
        }
    }
}

impl Countries {
    /// Numbers in which letters stand beside the digits.
    pub(super) fn lettered(
        &self,
        text: &[u8],
        shape: Lettered,
        row: Row,
        span: &Range<usize>,
    ) -> Option<Found> {
        let digits = row.digits(text, span.start);
        let digits = &digits[..row.count()];
        let before = span.start.checked_sub(1).map_or(b' ', |at| text[at]);
        let after = |more: usize| text.get(span.end + more).copied().unwrap_or(b' ');
        let ends = |more: usize| !after(more).is_ascii_alphanumeric();
        let begins = |more: usize| {
            span.start
                .checked_sub(more + 1)
                .is_none_or(|at| !text[at].is_ascii_alphanumeric())
        };
        let upper = |byte: u8| byte.to_ascii_uppercase();
        let nth = |name: &str| {
            LETTERED
                .iter()
                .position(|(known, _)| *known == name)
                .unwrap_or(0)
                + COUNT
        };
        let told = |name: &str, span: Range<usize>| {
            let at = nth(name);
            (LETTERED[at - COUNT].1.is_empty() || self.announced(text, &span) >> at & 1 == 1)
                .then(|| (span, self.names[at].clone()))
        };
        let spanish = |value: u64| b"TRWAGMYFPDXBNJZSQVHLCKE"[(value % 23) as usize];
        match shape {
            Lettered::Eight | Lettered::Dotted => {
                let joint = usize::from(after(0) == b'-' || after(0) == b' ');
                if shape == Lettered::Dotted
                    && after(0) == b'-'
                    && upper(after(1)) == b'K'
                    && ends(2)
                    && begins(0)
                    && rut(digits) == 10
                {
                    return told("cl_rut", span.start..span.end + 2);
                }
                let letter = upper(after(joint));
                if begins(0) && after(joint).is_ascii_alphabetic() && ends(joint + 1) {
                    let span = span.start..span.end + joint + 1;
                    if letter == spanish(value_of(digits)) {
                        return told("es_dni", span);
                    }
                    let chilean = letter == b'K' && rut(digits) == 10;
                    if chilean && after(0) == b'-' && self.is_announced("cl_rut", text, &span) {
                        return told("cl_rut", span);
                    }
                }
                if begins(0)
                    && shape == Lettered::Eight
                    && let Some(&[letter, a, b, c]) = text.get(span.end..span.end + 4)
                    && ends(4)
                    && german_pension(digits, letter, [a, b, c])
                {
                    return told("de_pension_insurance", span.start..span.end + 4);
                }
                if let Some(start) = corsican(text, span) {
                    return told("fr_nir", start..span.end);
                }
            }
            Lettered::Seven => {
                let joint = usize::from(after(0) == b'-');
                let letter = upper(after(joint));
                let dash = usize::from(before == b'-');
                let initial = span.start.checked_sub(1 + dash).map_or(b' ', |at| text[at]);
                let nie = match upper(initial) {
                    b'X' => Some(0),
                    b'Y' => Some(10_000_000),
                    b'Z' => Some(20_000_000),
                    _ => None,
                };
                let start = span.start.saturating_sub(1 + dash);
                if let Some(first) = nie
                    && begins(1 + dash)
                    && ends(joint + 1)
                    && letter == spanish(first + value_of(digits))
                {
                    return told("es_dni", start..span.end + joint + 1);
                }
                if matches!(before, b'S' | b'T' | b'F' | b'G' | b'M')
                    && begins(1)
                    && ends(1)
                    && singapore(before, digits) == Some(after(0))
                {
                    return told("sg_nric", start..span.end + 1);
                }
                if begins(0) && after(0).is_ascii_uppercase() {
                    let second = if after(1).is_ascii_uppercase() {
                        after(1)
                    } else {
                        b' '
                    };
                    let length = 1 + usize::from(second != b' ');
                    if ends(length) && irish(digits, second) == after(0) {
                        return told("ie_pps", span.start..span.end + length);
                    }
                }
                // The check digit of Hong Kong is the seventh when no brackets stand around it.
                if before.is_ascii_uppercase()
                    && begins(1)
                    && ends(0)
                    && hong_kong(before, &digits[..6]) == digits[6]
                {
                    return told("hk_id", start..span.end);
                }
            }
            Lettered::Nine if before.is_ascii_uppercase() && begins(1) && ends(0) => {
                let span = span.start - 1..span.end;
                let german = || told("de_health_insurance", span.clone());
                if taiwan(before, digits)
                    && let Some(found) = told("tw_id", span.clone())
                {
                    return Some(found);
                }
                if german_health(before, digits) {
                    return german();
                }
            }
            Lettered::ThreeThreeTwo => {
                if let Some(start) = corsican(text, span) {
                    return told("fr_nir", start..span.end);
                }
            }
            Lettered::Seventeen
                if upper(after(0)) == b'X' && ends(1) && begins(0) && chinese(digits) =>
            {
                let check = weighed(
                    digits,
                    &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2],
                ) % 11;
                if check == 2 {
                    return told("cn_resident_id", span.start..span.end + 1);
                }
            }
            Lettered::SixThree | Lettered::SixFour if begins(0) => {
                let check = hetu(&digits[..9]);
                let letter = shape == Lettered::SixThree && after(0) == check && ends(1);
                let digit = shape == Lettered::SixFour && check == b'0' + digits[9] && ends(0);
                if is_day(value_of(&digits[2..4]), value_of(&digits[..2])) && letter {
                    return told("fi_hetu", span.start..span.end + 1);
                }
                if is_day(value_of(&digits[2..4]), value_of(&digits[..2])) && digit {
                    return told("fi_hetu", span.clone());
                }
            }
            Lettered::Nine | Lettered::Seventeen | Lettered::SixThree | Lettered::SixFour => {}
        }
        None
    }

    /// Numbers that are a run of letters and digits.
    pub(super) fn letters(&self, text: &[u8], start: usize) -> Option<Found> {
        if text[start + 5] == b'2'
            && is_corsica(text[start + 6])
            && let Some(end) = (start + 15 <= text.len()).then_some(start + 15)
            && text
                .get(end)
                .is_none_or(|byte| !byte.is_ascii_alphanumeric())
            && corsican(text, &(start + 7..end)) == Some(start)
        {
            let name = self.called("fr_nir");
            return Some((start..end, name));
        }
        // The others begin with the name of a person, and most runs are hexadecimal.
        if !text[start..start + 4].iter().all(u8::is_ascii_alphabetic) {
            return None;
        }
        let length = text[start..]
            .iter()
            .take(19)
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        let run = &text[start..start + length];
        let nth = |name: &str| {
            LETTERED
                .iter()
                .position(|(known, _)| *known == name)
                .unwrap_or(0)
                + COUNT
        };
        let name = match length {
            16 if codice_fiscale(run) => "it_codice_fiscale",
            18 if curp(run) => "mx_curp",
            _ => return None,
        };
        Some((start..start + length, self.names[nth(name)].clone()))
    }
}

/// The check of a Finnish code.
pub(super) fn hetu(digits: &[u8]) -> u8 {
    b"0123456789ABCDEFHJKLMNPRSTUVWXY"[(value_of(digits) % 31) as usize]
}

/// Ends the number of a department of Corsica.
const fn is_corsica(byte: u8) -> bool {
    matches!(byte, b'A' | b'B')
}

/// Where a French number begins whose department is one of Corsica, of which the last eight digits stand at `rest`.
fn corsican(text: &[u8], rest: &Range<usize>) -> Option<usize> {
    let mut digits = [0; 15];
    let mut at = rest.start;
    // From the letter back: two, two and two digits, and one, with single spaces between or none.
    let blank = |at: usize| at > 0 && text[at - 1] == b' ';
    at -= usize::from(blank(at));
    let letter = *text.get(at.checked_sub(1)?)?;
    if !is_corsica(letter) {
        return None;
    }
    at -= 1;
    for place in (0..6).rev() {
        // Spaces stand before the department, the month and the year.
        at -= usize::from(matches!(place, 0 | 2 | 4) && blank(at));
        at = at.checked_sub(1)?;
        digits[place] = text[at].checked_sub(b'0').filter(|digit| *digit < 10)?;
    }
    let alone = at == 0 || !text[at - 1].is_ascii_alphanumeric();
    let mut rest = text[rest.clone()].iter().filter(|byte| **byte != b' ');
    // The department counts as nineteen or eighteen.
    (digits[5], digits[6]) = if letter == b'A' { (1, 9) } else { (1, 8) };
    let corsica = text.get(at..)?.iter().filter(|byte| **byte != b' ').nth(5) == Some(&b'2');
    for digit in &mut digits[7..] {
        *digit = rest.next()?.checked_sub(b'0').filter(|digit| *digit < 10)?;
    }
    let holds = 97 - value_of(&digits[..13]) % 97 == value_of(&digits[13..]);
    let born = matches!(digits[0], 1..=4 | 7 | 8)
        && matches!(value_of(&digits[3..5]), 1..=12 | 20 | 30..=42);
    (alone && corsica && born && holds && rest.next().is_none()).then_some(at)
}

/// The sum of the digits of products.
fn crossed(digits: impl Iterator<Item = u8>, weights: &[u8]) -> u32 {
    let products = digits
        .zip(weights)
        .map(|(digit, weight)| u32::from(digit * weight));
    products.map(|product| product / 10 + product % 10).sum()
}

/// Letters as two digits, from one on.
const fn two_digits(letter: u8) -> [u8; 2] {
    let value = letter - b'A' + 1;
    [value / 10, value % 10]
}

/// The number of somebody insured in Germany: a letter, eight digits and a check.
fn german_health(letter: u8, digits: &[u8]) -> bool {
    let all = two_digits(letter)
        .into_iter()
        .chain(digits[..8].iter().copied());
    crossed(all, &[1, 2, 1, 2, 1, 2, 1, 2, 1, 2]) % 10 == u32::from(digits[8])
}

/// The number of a pension in Germany: an area, a day of birth, a letter, two digits and a check.
fn german_pension(digits: &[u8], letter: u8, last: [u8; 3]) -> bool {
    if !letter.is_ascii_uppercase() || !last.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let [first, second, check] = last.map(|byte| byte - b'0');
    let all = digits
        .iter()
        .copied()
        .chain(two_digits(letter))
        .chain([first, second]);
    // Where no day is known there are zeros, and women of old have fifty more.
    (1..=31).contains(&value_of(&digits[2..4]))
        && (1..=12).contains(&value_of(&digits[4..6]))
        && crossed(all, &[2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]) % 10 == u32::from(check)
}

pub(super) fn chinese(digits: &[u8]) -> bool {
    let year = value_of(&digits[6..10]);
    matches!(value_of(&digits[..2]), 11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81..=83)
        && (1900..=2030).contains(&year)
        && is_day(value_of(&digits[10..12]), value_of(&digits[12..14]))
}

fn rut(digits: &[u8]) -> i32 {
    let sum: i32 = digits
        .iter()
        .rev()
        .zip([2, 3, 4, 5, 6, 7, 2, 3])
        .map(|(digit, weight)| i32::from(*digit) * weight)
        .sum();
    (11 - sum % 11) % 11
}

fn singapore(first: u8, digits: &[u8]) -> Option<u8> {
    let sum = weighed(digits, &[2, 7, 6, 5, 4, 3, 2]);
    let offset = match first {
        b'T' | b'G' => 4,
        b'M' => 3,
        _ => 0,
    };
    let rest = (sum + offset) % 11;
    let letters: &[u8] = match first {
        b'S' | b'T' => b"JZIHGFEDCBA",
        b'F' | b'G' => b"XWUTRQPNMLK",
        _ => return b"KLJNPQRTUWX".get(10 - rest as usize).copied(),
    };
    letters.get(rest as usize).copied()
}

fn irish(digits: &[u8], second: u8) -> u8 {
    let more = if matches!(second, b' ' | b'W' | b'T') {
        0
    } else {
        i32::from(second - b'A') + 1
    };
    let rest = (weighed(digits, &[8, 7, 6, 5, 4, 3, 2]) + more * 9) % 23;
    if rest == 0 {
        b'W'
    } else {
        b'A' + rest as u8 - 1
    }
}

fn hong_kong(letter: u8, digits: &[u8]) -> u8 {
    let sum = 36 * 9 + i32::from(letter - b'A' + 10) * 8 + weighed(digits, &[7, 6, 5, 4, 3, 2]);
    ((11 - sum % 11) % 11) as u8
}

fn taiwan(letter: u8, digits: &[u8]) -> bool {
    const CODES: [u8; 26] = [
        10, 11, 12, 13, 14, 15, 16, 17, 34, 18, 19, 20, 21, 22, 35, 23, 24, 25, 26, 27, 28, 29, 32,
        30, 31, 33,
    ];
    let code = CODES[usize::from(letter - b'A')];
    let sum = i32::from(code / 10)
        + i32::from(code % 10) * 9
        + weighed(digits, &[8, 7, 6, 5, 4, 3, 2, 1, 1]);
    matches!(digits[0], 1 | 2 | 8 | 9) && sum % 10 == 0
}

fn codice_fiscale(run: &[u8]) -> bool {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let digit = |byte: u8| {
        byte.is_ascii_digit()
            || matches!(
                byte.to_ascii_uppercase(),
                b'L' | b'M' | b'N' | b'P' | b'Q' | b'R' | b'S' | b'T' | b'U' | b'V'
            )
    };
    let form = run.iter().enumerate().all(|(at, byte)| match at {
        6 | 7 | 9 | 10 | 12..=14 => digit(*byte),
        _ => byte.is_ascii_alphabetic(),
    });
    if !form
        || !matches!(run[8].to_ascii_uppercase(), b'A'..=b'E' | b'H' | b'L' | b'M' | b'P' | b'R'..=b'T')
        || !run.iter().any(u8::is_ascii_digit)
    {
        return false;
    }
    let sum: u32 = run[..15]
        .iter()
        .enumerate()
        .map(|(at, byte)| {
            let value = u32::from(if byte.is_ascii_digit() {
                byte - b'0'
            } else {
                byte.to_ascii_uppercase() - b'A'
            });
            if at % 2 == 0 {
                ODD[value as usize]
            } else {
                value
            }
        })
        .sum();
    run[15].to_ascii_uppercase() == b'A' + (sum % 26) as u8
}

fn curp(run: &[u8]) -> bool {
    let form = run.iter().enumerate().all(|(at, byte)| match at {
        4..=9 | 17 => byte.is_ascii_digit(),
        16 => byte.is_ascii_alphanumeric(),
        _ => byte.is_ascii_uppercase(),
    });
    if !form || !matches!(run[10], b'H' | b'M' | b'X') {
        return false;
    }
    // The alphabet has Ñ after N.
    let value = |byte: u8| match byte {
        b'0'..=b'9' => i32::from(byte - b'0'),
        b'A'..=b'N' => i32::from(byte - b'A') + 10,
        _ => i32::from(byte - b'A') + 11,
    };
    let sum: i32 = run[..17]
        .iter()
        .enumerate()
        .map(|(at, byte)| value(*byte) * (18 - at as i32))
        .sum();
    (10 - sum % 10) % 10 == i32::from(run[17] - b'0')
}
