//! National numbers that have letters in them.
//!
//! Guarantees: a number is told only when its check letter holds, but for those of Britain, which have none, beside their name.
//! Deliberately absent: numbers of digits only (`table.rs`).

use std::ops::Range;

use super::{
    checks::{is_day, luhn, number as value_of, weighed},
    grouped::Lettered,
    letters::{
        belarusian, belarusian_person, british, chinese, cif, codice_fiscale, corsican, curp,
        cypriot, dutch, german_health, german_pension, ghanaian, hetu, hong_kong, irish,
        is_corsica, mauritian, old_taiwan, portuguese, pupil, rut, singapore, taiwan, venezuelan,
    },
    named::LETTERED,
    national::{Countries, Found, Near},
    number::Row,
    table::COUNT,
};

/// Whether the check of a number of Guatemala with these digits before is ten, which is written as a letter.
fn ten(digits: &[u8]) -> bool {
    let weights = [9, 8, 7, 6, 5, 4, 3, 2];
    weighed(digits, &weights[8 - digits.len()..]) % 11 == 1
}

/// Whether these are the number of who may prescribe what the United States control: its first letter says what he is.
fn prescriber([first, second]: [u8; 2], digits: &[u8]) -> bool {
    let sum = weighed(digits, &[1, 2, 1, 2, 1, 2]);
    matches!(first, b'A'..=b'H' | b'J'..=b'M' | b'P' | b'R'..=b'U' | b'X')
        && second.is_ascii_uppercase()
        && sum % 10 == i32::from(digits[6])
}

/// The same of who may prescribe, who may have such a number as a taxpayer of Belarus has.
fn prescriber_seven(
    text: &[u8],
    span: &Range<usize>,
    digits: &[u8],
) -> Option<(&'static str, usize)> {
    let start = span.start.checked_sub(2)?;
    let alone = start == 0 || !text[start - 1].is_ascii_alphanumeric();
    (alone && prescriber([text[start], text[start + 1]], digits)).then_some(("us_dea", start))
}

/// The number of which these seven digits are the end, behind two letters or three, and where it begins.
fn lettered_seven(
    text: &[u8],
    span: &Range<usize>,
    digits: &[u8],
) -> Option<(&'static str, usize)> {
    let letters = text[..span.start].iter().rev().take(4);
    let letters = letters.take_while(|byte| byte.is_ascii_uppercase()).count();
    let start = span.start - letters;
    let alone = start == 0 || !text[start - 1].is_ascii_alphanumeric();
    match letters {
        2 if alone && belarusian([text[start], text[start + 1]], digits) => Some(("by_unp", start)),
        3 if alone && luhn(digits) => Some(("in_epic", start)),
        _ => None,
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
        near: &Near,
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
            let free = LETTERED[at - COUNT].1.is_empty();
            (free || self.announced(text, &span, near).has(at))
                .then(|| (span, self.names[at].clone()))
        };
        let told_beside = |name: &str, span: Range<usize>| {
            let said = self.is_announced(name, text, &span, near);
            said.then(|| told(name, span)).flatten()
        };
        let nit = |span: &Range<usize>| self.is_announced("gt_nit", text, span, near);
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
                // The country stands before it where taxes are meant, or nothing.
                let country = text[..span.start].ends_with(b"ES") && begins(2);
                if (begins(0) || country) && after(joint).is_ascii_alphabetic() && ends(joint + 1) {
                    let span = span.start..span.end + joint + 1;
                    if letter == spanish(value_of(digits))
                        && let Some(found) = told("es_dni", span.clone())
                    {
                        return Some(found);
                    }
                    let chilean = letter == b'K' && rut(digits) == 10;
                    if chilean && after(0) != b' ' && self.is_announced("cl_rut", text, &span, near)
                    {
                        return told("cl_rut", span);
                    }
                    if letter == b'K' && after(0) != b' ' && ten(digits) && nit(&span) {
                        return told("gt_nit", span);
                    }
                    if joint == 0
                        && cypriot(digits, letter)
                        && let Some(found) = told("cy_tic", span)
                    {
                        return Some(found);
                    }
                }
                // `24180570P148`, `24180570 P 148`
                let parted = after(0) == b' ';
                let (letter, last) = if parted { (1, 3) } else { (0, 1) };
                let last_three = [after(last), after(last + 1), after(last + 2)];
                if begins(0)
                    && shape == Lettered::Eight
                    && (!parted || after(2) == b' ')
                    && ends(last + 3)
                    && german_pension(digits, after(letter), last_three)
                {
                    return told("de_pension_insurance", span.start..span.end + last + 3);
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
                // Residents of Taiwan had a second letter once, which counts as the last digit of its code.
                if shape == Lettered::Eight && matches!(before, b'A'..=b'D') && begins(2) && ends(0)
                {
                    let start = span.start.checked_sub(2)?;
                    let first = text[start];
                    let holds = first.is_ascii_uppercase() && old_taiwan([first, before], digits);
                    return holds.then(|| told("tw_id", start..span.end)).flatten();
                }
            }
            Lettered::Pairs | Lettered::PairsDashed if begins(3) => {
                let span = british(text, span.start.checked_sub(3)?)?;
                return told("gb_nino", span);
            }
            Lettered::Seven => {
                let joint = usize::from(after(0) == b'-');
                let letter = upper(after(joint));
                let dash = usize::from(before == b'-');
                let initial = span.start.checked_sub(1 + dash).map_or(b' ', |at| text[at]);
                let nie = match upper(initial) {
                    // Of children, and of people abroad or without another one.
                    b'K' | b'L' | b'M' | b'X' => Some(0),
                    b'Y' => Some(10_000_000),
                    b'Z' => Some(20_000_000),
                    _ => None,
                };
                let start = span.start.saturating_sub(1 + dash);
                if matches!(initial, b'S' | b'T' | b'F' | b'G' | b'M')
                    && singapore(initial, digits) == Some(after(joint))
                    && dash == joint
                    && begins(1 + dash)
                    && ends(1 + joint)
                    && let Some(found) = told("sg_nric", start..span.end + joint + 1)
                {
                    return Some(found);
                }
                if let Some(first) = nie
                    && begins(1 + dash)
                    && ends(joint + 1)
                    && letter == spanish(first + value_of(digits))
                {
                    return told("es_dni", start..span.end + joint + 1);
                }
                if begins(1)
                    && ends(1)
                    && cif(before, digits, after(0))
                    && let Some(found) = told("es_cif", span.start - 1..span.end + 1)
                {
                    return Some(found);
                }
                if begins(0)
                    && ends(7)
                    && let Some(run) = text.get(span.start..span.end + 7)
                    && belarusian_person(run)
                {
                    return told("by_personal_number", span.start..span.end + 7);
                }
                let blank = usize::from(after(0) == b' ');
                if begins(0) && after(blank).is_ascii_uppercase() {
                    let second = after(blank + 1);
                    let second = if second.is_ascii_uppercase() {
                        second
                    } else {
                        b' '
                    };
                    let length = blank + 1 + usize::from(second != b' ');
                    if ends(length) && irish(digits, second) == after(blank) {
                        return told("ie_pps", span.start..span.end + length);
                    }
                }
                let k = joint + 1;
                if begins(0)
                    && letter == b'K'
                    && ends(k)
                    && rut(digits) == 10
                    && let Some(found) = told_beside("cl_rut", span.start..span.end + k)
                {
                    return Some(found);
                }
                if begins(0) && letter == b'K' && ends(k) && ten(digits) {
                    let span = span.start..span.end + k;
                    return nit(&span).then(|| told("gt_nit", span)).flatten();
                }
                if ends(0) && before.is_ascii_uppercase() {
                    let any = [
                        lettered_seven(text, span, digits),
                        prescriber_seven(text, span, digits),
                    ];
                    for (name, start) in any.into_iter().flatten() {
                        let span = start..span.end;
                        let said = name != "by_unp" || self.is_announced(name, text, &span, near);
                        if said && let Some(found) = told(name, span) {
                            return Some(found);
                        }
                    }
                }
                // The check digit of Hong Kong is the seventh when no brackets stand around it.
                let letters = if begins(1) { 1 } else { 2 };
                if let Some(start) = span.start.checked_sub(letters)
                    && begins(letters)
                    && ends(0)
                    && text[start..span.start].iter().all(u8::is_ascii_uppercase)
                    && hong_kong(&text[start..span.start], &digits[..6]) == digits[6]
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
            Lettered::Nine if dutch(text, span) => {
                // The country stands before it, or nothing.
                let country = text[..span.start].ends_with(b"NL");
                let before = if country { 2 } else { 0 };
                if begins(before) && ends(3) {
                    return told("nl_btw", span.start - before..span.end + 3);
                }
            }
            Lettered::Nine if ghanaian(before, digits, after(0)) && begins(1) && ends(1) => {
                return told("gh_tin", span.start - 1..span.end + 1);
            }
            Lettered::Ten if begins(1) && ends(0) => {
                let (last, rest) = digits.split_last()?;
                if ghanaian(before, rest, b'0' + last) {
                    return told("gh_tin", span.start - 1..span.end);
                }
            }
            Lettered::Eleven | Lettered::Twelve
                if begins(1) && pupil(before, text.get(span.start..)?) =>
            {
                return told("gb_upn", span.start - 1..span.start + 12);
            }
            // `A 000 500 015`, `A000 500 015`
            Lettered::Threes if ends(0) => {
                let blank = usize::from(before == b' ');
                let start = span.start.checked_sub(1 + blank)?;
                let letter = text[start].is_ascii_uppercase() && begins(1 + blank);
                if letter && german_health(text[start], digits) {
                    return told("de_health_insurance", start..span.end);
                }
            }
            Lettered::Fives => {
                let span = span.start..span.start + Lettered::BRANCH;
                return self.french_account(text, &span, near);
            }
            Lettered::FivesTwelve | Lettered::TwentyTwo if ends(0) => {
                return self.italian_account(text, span, near);
            }
            // `65 170839 J 003`, `65 170839 J 00 3`
            Lettered::TwoSix if begins(0) => {
                let &[_, letter, _, a, b, c] = text.get(span.end..)?.first_chunk::<6>()?;
                let parted = usize::from(c == b' ');
                let c = after(5 + parted);
                if ends(6 + parted) && german_pension(digits, letter, [a, b, c]) {
                    return told("de_pension_insurance", span.start..span.end + 6 + parted);
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
            // `13112258-9-BX0`
            Lettered::EightDashed if begins(0) && after(0) == b'-' && ends(4) => {
                let rest = text.get(span.end + 1..span.end + 4)?;
                if portuguese(digits, rest) {
                    return told("pt_citizen_card", span.start..span.end + 4);
                }
            }
            Lettered::EightDashed if ends(0) => {
                let dash = usize::from(before == b'-');
                let start = span.start.checked_sub(1 + dash)?;
                if begins(1 + dash) && venezuelan(text[start], digits) {
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
            | Lettered::PairsDashed
            | Lettered::Threes
            | Lettered::TwoSix
            | Lettered::EightSpaced
            | Lettered::EightDashed
            | Lettered::Ten
            | Lettered::Eleven
            | Lettered::Twelve
            | Lettered::Thirteen
            | Lettered::FivesTwelve
            | Lettered::TwentyTwo => {}
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

#[cfg(test)]
mod tests {
    use super::super::tests::{names, told};

    /// Numbers made up, whose check holds and does not, and whose they are.
    const NUMBERS: &[(&str, &str, &str)] = &[
        ("HKID WX4862528", "HKID WX4862529", "hk_id"),
        ("UNP: AB2205957", "UNP: AB2205958", "by_unp"),
        ("NIT: 2640897K", "NIT: 2640898K", "gt_nit"),
        ("NIT: 2640897-K", "NIT: 2640898-K", "gt_nit"),
        ("NIT: 31935847K", "NIT: 31935848K", "gt_nit"),
        ("TIN: P0083019960", "TIN: P0083019961", "gh_tin"),
        ("TIN: P001718004X", "TIN: P001718005X", "gh_tin"),
        ("UPN: L330200512345", "UPN: L330200512346", "gb_upn"),
        ("UPN: B33020058678H", "UPN: B33020058679H", "gb_upn"),
        ("BTW: NL066452477B01", "BTW: NL066452477B02", "nl_btw"),
        ("BTW-id: 922795389B02", "BTW-id: 922795389B03", "nl_btw"),
        ("EPIC: HRK0969501", "EPIC: HRK0969502", "in_epic"),
        ("Cyprus TIC: 05495239D", "Cyprus TIC: 05495239E", "cy_tic"),
        ("RFC: GODE5612319H7", "RFC: GODE5612319H8", "mx_rfc"),
        ("rfc VACE561231C8A", "rfc VACE561231C8B", "mx_rfc"),
    ];

    #[test]
    fn numbers_with_letters_hold_their_check_beside_a_word() {
        for (text, wrong, name) in NUMBERS {
            let (_, number) = text.rsplit_once(' ').unwrap_or_default();
            let found = told(&format!("{text}, known"));
            assert_eq!(found, [((*name).to_owned(), number.to_owned())], "{text}");
            assert_eq!(names(wrong), [""; 0], "{wrong}");
            assert_eq!(names(&format!("item {number}")), [""; 0], "{number}");
            assert_eq!(names(&format!("{text}7")), [""; 0], "longer: {text}");
        }
        // The check of Mauritius is a character of its own.
        for text in ["nid A010180000002\u{e9}", "nid A010180000002 x"] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
        let parted = "02 230966 T 81 2";
        let found = told(&format!("RVNR {parted}, known"));
        assert_eq!(
            found,
            [("de_pension_insurance".to_owned(), parted.to_owned())]
        );
        assert_eq!(names("RVNR 02 230966 T 81 3"), [""; 0]);
    }
}
