//! National numbers that have letters in them.
//!
//! Guarantees: a number is told only when its check letter holds, but for those of Britain, which have none, beside their name.
//! Deliberately absent: numbers of digits only (`table.rs`).

use std::ops::Range;

use super::{
    checks::{is_day, number as value_of, weighed},
    letters::{
        british, chinese, cif, codice_fiscale, corsican, curp, german_health, german_pension, hetu,
        hong_kong, irish, is_corsica, mauritian, portuguese, rut, singapore, taiwan, venezuelan,
    },
    national::{Countries, Found, Near},
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
            "d.n.i.",
            "n.i.f.",
            "n.i.e.",
            "documento",
            "identidad",
            "spanish",
            "espa",
        ],
    ),
    (
        "es_cif",
        &[
            "cif",
            "nif",
            "identificaci\u{f3}n fiscal",
            "identificacion fiscal",
        ],
    ),
    (
        "sg_nric",
        &["nric", "fin", "singpass", "singapore", "identity", "ic"],
    ),
    (
        "gb_nino",
        &[
            "nino",
            "national insurance",
            "ni number",
            "ni no",
            "insurance number",
        ],
    ),
    ("ie_pps", &["pps", "ppsn", "irish", "ireland", "revenue"]),
    ("ve_rif", &["rif", "r.i.f."]),
    ("mu_nid", &["nic", "nid", "national id", "mauriti"]),
    (
        "pt_citizen_card",
        &[
            "cart\u{e3}o de cidad\u{e3}o",
            "cart\u{e3}o cidad\u{e3}o",
            "cc n",
            "cc",
        ],
    ),
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
            "sv nummer",
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
    Pairs,
    TwoSix,
    EightSpaced,
    EightDashed,
    Twelve,
    Thirteen,
}

impl Lettered {
    pub(super) const ALL: [Self; 14] = [
        Self::Eight,
        Self::Dotted,
        Self::Seven,
        Self::Nine,
        Self::Seventeen,
        Self::SixThree,
        Self::SixFour,
        Self::ThreeThreeTwo,
        Self::Pairs,
        Self::TwoSix,
        Self::EightSpaced,
        Self::EightDashed,
        Self::Twelve,
        Self::Thirteen,
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
            Self::Pairs => "2 2 2",
            Self::TwoSix => "2 6",
            Self::EightSpaced => "8 1",
            Self::EightDashed => "8-1",
            Self::Twelve => "12",
            Self::Thirteen => "13",
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
                    || self == Self::Eight
                        && (before.is_ascii_uppercase() || after(0).is_ascii_uppercase())
            }
            // A space stands between the department and the rest.
            Self::ThreeThreeTwo => {
                let before = span.start.checked_sub(2).map_or(b' ', |at| text[at]);
                is_corsica(before)
            }
            Self::Pairs => before == b' ' && matches!(after(0), b' ' | b'A'..=b'D'),
            Self::Seven => {
                before.is_ascii_uppercase()
                    || matches!(before, b'x'..=b'z' | b'-')
                    || after(0).is_ascii_uppercase()
            }
            Self::Nine => before.is_ascii_uppercase() || after(0).is_ascii_uppercase(),
            Self::Seventeen => matches!(after(0), b'X' | b'x'),
            Self::TwoSix => after(0) == b' ' && after(1).is_ascii_uppercase() && after(2) == b' ',
            Self::EightSpaced => after(0) == b' ' && after(3).is_ascii_digit(),
            Self::EightDashed => before == b'-',
            Self::Twelve => before.is_ascii_uppercase() && after(0).is_ascii_uppercase(),
            Self::Thirteen => before.is_ascii_uppercase() && !after(0).is_ascii_alphanumeric(),
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
                    if letter == spanish(value_of(digits))
                        && let Some(found) = told("es_dni", span.clone())
                    {
                        return Some(found);
                    }
                    let chilean = letter == b'K' && rut(digits) == 10;
                    if chilean && after(0) != b' ' && self.is_announced("cl_rut", text, &span) {
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
                if shape == Lettered::Eight
                    && begins(1)
                    && ends(0)
                    && cif(before, &digits[..7], b'0' + digits[7])
                {
                    return told("es_cif", span.start - 1..span.end);
                }
            }
            Lettered::Pairs if begins(3) => {
                let span = british(text, span.start.checked_sub(3)?)?;
                return told("gb_nino", span);
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
                if begins(1)
                    && ends(1)
                    && cif(before, digits, after(0))
                    && let Some(found) = told("es_cif", span.start - 1..span.end + 1)
                {
                    return Some(found);
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
                    && hong_kong(&[before], &digits[..6]) == digits[6]
                {
                    return told("hk_id", start..span.end);
                }
            }
            Lettered::Nine if before.is_ascii_uppercase() && begins(1) && ends(0) => {
                let span = span.start - 1..span.end;
                if venezuelan(before, digits)
                    && let Some(found) = told("ve_rif", span.clone())
                {
                    return Some(found);
                }
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
            // `65 170839 J 003`
            Lettered::TwoSix if begins(0) && ends(6) => {
                let &[_, letter, _, a, b, c] = text.get(span.end..)?.first_chunk::<6>()?;
                if german_pension(digits, letter, [a, b, c]) {
                    return told("de_pension_insurance", span.start..span.end + 6);
                }
            }
            Lettered::Nine if begins(0) && ends(3) => {
                let rest = text.get(span.end..span.end + 3)?;
                if portuguese(digits, rest) {
                    return told("pt_citizen_card", span.start..span.end + 3);
                }
            }
            // `39071155 0 ZX2`
            Lettered::EightSpaced if begins(0) && after(0) == b' ' && ends(4) => {
                let rest = text.get(span.end + 1..span.end + 4)?;
                if portuguese(digits, rest) {
                    return told("pt_citizen_card", span.start..span.end + 4);
                }
            }
            Lettered::EightDashed if before == b'-' && begins(2) && ends(0) => {
                let start = span.start.checked_sub(2)?;
                if venezuelan(text[start], digits) {
                    return told("ve_rif", start..span.end);
                }
            }
            Lettered::Twelve | Lettered::Thirteen if before.is_ascii_uppercase() && begins(1) => {
                let end = span.end + usize::from(shape == Lettered::Twelve);
                let more = text.get(end).is_some_and(u8::is_ascii_alphanumeric);
                let span = span.start - 1..end;
                if !more && mauritian(text.get(span.clone())?) {
                    return told("mu_nid", span);
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
            Lettered::Nine
            | Lettered::Seventeen
            | Lettered::SixThree
            | Lettered::SixFour
            | Lettered::Pairs
            | Lettered::TwoSix
            | Lettered::EightSpaced
            | Lettered::EightDashed
            | Lettered::Twelve
            | Lettered::Thirteen => {}
        }
        None
    }

    /// The British number that begins at `start`, with two letters, six digits and a letter: it has no check digit, but its
    /// letters are few.
    #[inline(never)]
    pub(super) fn british(&self, text: &[u8], start: usize, near: &mut Near) -> Option<Found> {
        let span = british(text, start)?;
        let at = LETTERED.iter().position(|(name, _)| *name == "gb_nino")? + COUNT;
        let announced = self.announced_near(text, &span, near) & self.announced(text, &span);
        (announced >> at & 1 == 1).then(|| (span, self.names[at].clone()))
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
