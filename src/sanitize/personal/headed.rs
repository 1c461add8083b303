//! Numbers that begin with letters, to which these lead: two to five of them at the start of a word with digits behind.
//!
//! Guarantees: a number is told only beside its name, and when its check holds, but for those of Britain and
//! India, which have none.
//! Deliberately absent: bank accounts (`iban.rs`), and those to which their row of digits leads (`lettered.rs`).

use std::ops::Range;

use super::{
    checks::weighed,
    labels,
    letters::{british, hong_kong, rfc},
    national::{Countries, Found, Near},
};

impl Countries {
    /// The British number that begins at `start`, with two letters, six digits and a letter: it has no check digit, but its
    /// letters are few.
    #[inline(never)]
    pub(super) fn british(&self, text: &[u8], start: usize, near: &mut Near) -> Option<Found> {
        let span = british(text, start)?;
        self.beside("gb_nino", text, span, near)
    }

    /// The number that begins at `start` with three letters: that of a card of Poland, or of a patient in New Zealand.
    #[inline(never)]
    pub(super) fn of_three(&self, text: &[u8], start: usize, near: &mut Near) -> Option<Found> {
        let run = text.get(start..)?.iter().take(10);
        let length = run.take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let (letters, rest) = text[start..start + length].split_first_chunk()?;
        let name = if polish(letters, rest) {
            "pl_identity_card"
        } else if new_zealand(letters, rest) {
            "nz_nhi"
        } else {
            return None;
        };
        self.beside(name, text, start..start + length, near)
    }

    /// The Mexican number of a person that begins at `start`: four letters, a day, and three letters or digits.
    #[inline(never)]
    pub(super) fn mexican(&self, text: &[u8], start: usize, near: &mut Near) -> Option<Found> {
        let run = text.get(start..)?.first_chunk::<13>()?;
        let span = start..start + run.len();
        let more = text.get(span.end).is_some_and(u8::is_ascii_alphanumeric);
        if more || !rfc(run) {
            return None;
        }
        self.beside("mx_rfc", text, span, near)
    }

    /// The number under which a person pays taxes in India, which begins at `start` with five letters: it has no check digit, but
    /// its fourth letter says that it is one.
    #[inline(never)]
    pub(super) fn indian(&self, text: &[u8], start: usize, near: &mut Near) -> Option<Found> {
        let run = text.get(start..)?.first_chunk::<10>()?;
        let (letters, rest) = run.split_first_chunk::<5>()?;
        let (digits, last) = rest.split_first_chunk::<4>()?;
        let form = letters.iter().chain(last).all(u8::is_ascii_uppercase)
            && letters[3] == b'P'
            && digits.iter().all(u8::is_ascii_digit)
            && digits != b"0000";
        let more = text
            .get(start + run.len())
            .is_some_and(u8::is_ascii_alphanumeric);
        if !form || more {
            return None;
        }
        let span = start..start + run.len();
        // By itself the word is many things, but as the name of the number.
        let name = labels::before(text, start).map(|name| &text[name]);
        let called = name.is_some_and(|name| {
            let mut parts = name.split(|byte| !byte.is_ascii_alphanumeric());
            parts.any(|part| part.eq_ignore_ascii_case(b"pan"))
        });
        if called {
            return Some((span, self.called("in_pan")));
        }
        self.beside("in_pan", text, span, near)
    }

    /// What has six digits of which the last stands at `place`: before a bracket the number of Hong Kong, behind a word and a
    /// dash or a space one of Poland or Mexico.
    #[inline(never)]
    pub(super) fn of_six(&self, text: &[u8], place: usize, near: &mut Near) -> Option<Found> {
        let digits = place.checked_sub(5)?;
        let letters = |end: usize| {
            let back = text[..end].iter().rev().take(5);
            end - back.take_while(|byte| byte.is_ascii_alphabetic()).count()
        };
        if matches!(text.get(place + 1), Some(b'(' | b'[')) {
            let end = digits - usize::from(text[..digits].ends_with(b" "));
            let start = letters(end);
            let alone = start == 0 || !text[start - 1].is_ascii_alphanumeric();
            let holds = alone && hongkongese(&text[start..end], &text[digits..]);
            return holds.then(|| (start..place + 4, self.called("hk_id")));
        }
        let joint = digits.checked_sub(1)?;
        let start = letters(joint);
        let (first, rest) = (&text[start..joint], &text[digits..=place]);
        let next = text.get(place + 1).copied().unwrap_or(b' ');
        match (first, text[joint]) {
            (&[a, b, c], b' ' | b'-') if !next.is_ascii_alphanumeric() => {
                polish(&[a, b, c], rest).then_some(())?;
                self.beside("pl_identity_card", text, start..place + 1, near)
            }
            (&[a, b, c, d], b'-') if next == b'-' => {
                let last = text.get(place + 2..place + 5)?;
                let more = text.get(place + 5).is_some_and(u8::is_ascii_alphanumeric);
                let mut all = [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                all[4..10].copy_from_slice(rest);
                all[10..].copy_from_slice(last);
                (!more && rfc(&all)).then_some(())?;
                self.beside("mx_rfc", text, start..place + 5, near)
            }
            _ => None,
        }
    }

    /// What stands here, if a word of this rule does near it.
    fn beside(
        &self,
        name: &str,
        text: &[u8],
        span: Range<usize>,
        near: &mut Near,
    ) -> Option<Found> {
        let any = self.announced_near(text, &span, near);
        let at = self.nth_in_letters(name)?;
        let announced = any.has(at) && self.announced(text, &span, near).has(at);
        announced.then(|| (span, self.names[at].clone()))
    }
}

/// Whether this is a number of Hong Kong: a letter or two, and six digits with the check in brackets behind them.
fn hongkongese(letters: &[u8], rest: &[u8]) -> bool {
    let Some(&[ref digits @ .., open, check, close]) = rest.first_chunk::<9>() else {
        return false;
    };
    let form = (1..=2).contains(&letters.len())
        && matches!((open, close), (b'(', b')') | (b'[', b']'))
        && digits.iter().all(u8::is_ascii_digit);
    if !form {
        return false;
    }
    let named: [u8; 2] = std::array::from_fn(|at| letters[at % letters.len()].to_ascii_uppercase());
    let digits: [u8; 6] = std::array::from_fn(|at| digits[at] - b'0');
    let expected = match hong_kong(&named[..letters.len()], &digits) {
        10 => b'A',
        digit => b'0' + digit,
    };
    check.to_ascii_uppercase() == expected
}

/// Whether these are the three letters and six digits of a card of Poland, of which the first digit checks the others.
fn polish(letters: &[u8; 3], digits: &[u8]) -> bool {
    if !letters.iter().all(u8::is_ascii_uppercase)
        || digits.len() != 6
        || !digits.iter().all(u8::is_ascii_digit)
    {
        return false;
    }
    let letters = letters.map(|letter| letter - b'A' + 10);
    let digits: [u8; 6] = std::array::from_fn(|at| digits[at] - b'0');
    // Nine is the check's own weight: it stands for minus one.
    (weighed(&letters, &[7, 3, 1]) + weighed(&digits, &[9, 7, 3, 1, 7, 3])) % 10 == 0
}

/// Whether these are three letters and four digits of a patient in New Zealand, the last of which is a check; or, as they are
/// given out since 2022, two digits and two letters.
fn new_zealand(letters: &[u8; 3], rest: &[u8]) -> bool {
    // Neither `I` nor `O` is one of them.
    let value = |byte: &u8| {
        let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZ";
        let at = letters.iter().position(|letter| letter == byte);
        at.map(|at| at as u8 + 1)
    };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| byte - b'0');
    let [a, b, c, check] = rest else {
        return false;
    };
    let [x, y, z] = letters.each_ref().map(value);
    let third = digit(c).or_else(|| value(c));
    let all = [x, y, z, digit(a), digit(b), third];
    if all.contains(&None) {
        return false;
    }
    let sum = weighed(&all.map(Option::unwrap_or_default), &[7, 6, 5, 4, 3, 2]);
    match (digit(c), digit(check), value(check)) {
        (Some(_), Some(check), _) => sum % 11 > 0 && (11 - sum % 11) % 10 == i32::from(check),
        (None, _, Some(check)) => 24 - sum % 24 == i32::from(check),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{names, told};

    /// Numbers made up, whose check holds and does not, and whose they are.
    const NUMBERS: &[(&str, &str, &str)] = &[
        (
            "Dow\u{f3}d osobisty: ABA300000",
            "Dow\u{f3}d osobisty: ABA400000",
            "pl_identity_card",
        ),
        (
            "nr dowodu osobistego: UYV 506400",
            "nr dowodu osobistego: UYV 506401",
            "pl_identity_card",
        ),
        (
            "nr_dowodu_osobistego='NRW-761615'",
            "nr_dowodu_osobistego='NRW-761616'",
            "pl_identity_card",
        ),
        ("NHI number: ZZZ0016", "NHI number: ZZZ0017", "nz_nhi"),
        (
            "\"nhiNumber\": \"ZZZ00AX\"",
            "\"nhiNumber\": \"ZZZ00AY\"",
            "nz_nhi",
        ),
        ("RFC: HELV-530202-6Z3", "RFC: HELV-530202-6Z4", "mx_rfc"),
        (
            "\u{8eab}\u{4efd}\u{8b49}\u{ff1a}D063559(7)",
            "\u{8eab}\u{4efd}\u{8b49}\u{ff1a}D063559(8)",
            "hk_id",
        ),
        (
            "\"hkidNumber\": \"H 797621(8)\"",
            "\"hkidNumber\": \"H 797621(9)\"",
            "hk_id",
        ),
    ];

    #[test]
    fn numbers_that_begin_with_letters_hold_their_check_beside_a_word() {
        for (text, wrong, name) in NUMBERS {
            assert_eq!(names(&format!("{text}, known")), [*name], "{text}");
            assert_eq!(names(wrong), [""; 0], "{wrong}");
            let longer = text.replace(|sign: char| "'\"".contains(sign), "");
            assert_eq!(
                names(&format!("{longer}7")).len(),
                usize::from(longer.ends_with(')')),
                "{text}"
            );
        }
        for alone in ["ABA300000", "UYV 506400", "ZZZ0016", "HELV-530202-6Z3"] {
            assert_eq!(names(&format!("order {alone}")), [""; 0], "{alone}");
        }
        let found = told("nr dowodu osobistego: UYV 506400.");
        assert_eq!(
            found,
            [("pl_identity_card".to_owned(), "UYV 506400".to_owned())]
        );
    }
}
