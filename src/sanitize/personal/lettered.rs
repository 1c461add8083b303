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
}

impl Lettered {
    pub(super) const ALL: [Self; 7] = [
        Self::Eight,
        Self::Dotted,
        Self::Seven,
        Self::Nine,
        Self::Seventeen,
        Self::SixThree,
        Self::SixFour,
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
                !before.is_ascii_alphanumeric()
                    && after(joint).is_ascii_alphabetic()
                    && !after(joint + 1).is_ascii_alphanumeric()
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
                if begins(0)
                    && after(joint).is_ascii_alphabetic()
                    && ends(joint + 1)
                    && upper(after(joint)) == spanish(value_of(digits))
                {
                    return told("es_dni", span.start..span.end + joint + 1);
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
            Lettered::Nine
                if before.is_ascii_uppercase()
                    && begins(1)
                    && ends(0)
                    && taiwan(before, digits) =>
            {
                return told("tw_id", span.start - 1..span.end);
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
                let value = value_of(&digits[..9]);
                let check = b"0123456789ABCDEFHJKLMNPRSTUVWXY"[(value % 31) as usize];
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
        // All begin with the name of a person, and most runs are hexadecimal.
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
