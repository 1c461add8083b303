//! Numbers of bank accounts with letters in them, or with more digits than other rows have.
//!
//! Guarantees: looks no farther than the number; a number is told only when its check holds, and beside a word of its own, but
//! where its groups say enough. Deliberately absent: accounts of digits only (`accounts.rs`), international ones (`iban.rs`).

use std::ops::Range;

use super::national::{Countries, Found, Near};

/// How many digits an account of Poland has.
const POLISH: usize = 26;
/// How its digits are grouped, if they are.
const GROUPS: [usize; 7] = [2, 4, 4, 4, 4, 4, 4];

impl Countries {
    /// The account of Poland that begins at `start`: an international number without its country.
    #[inline(never)]
    pub(super) fn polish_account(&self, text: &[u8], start: usize, near: &Near) -> Option<Found> {
        let rest = text.get(start..)?;
        let digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
        let plain = rest.get(..POLISH).filter(|run| digits(run));
        let (length, grouped) = match plain {
            Some(_) => (POLISH, false),
            None => (grouped(rest)?, true),
        };
        let span = start..start + length;
        let joined = |at: Option<usize>| {
            at.and_then(|at| text.get(at)).is_some_and(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/')
            })
        };
        if joined(start.checked_sub(1)) || joined(Some(span.end)) {
            return None;
        }
        let (check, account) = rest[..length].split_at(2);
        // The country is 2521, and the check digits stand behind it.
        let all = account.iter().chain(b"2521").chain(check);
        let left = all
            .filter(|byte| byte.is_ascii_digit())
            .fold(0, |left, digit| (left * 10 + u32::from(digit - b'0')) % 97);
        let zeros = !account.iter().any(|digit| matches!(digit, b'1'..=b'9'));
        let told = left == 1
            && !zeros
            && (grouped || self.is_announced_in_letters("pl_bank_account", text, &span, near));
        told.then(|| (span, self.called("pl_bank_account")))
    }

    /// The account of Italy whose digits stand at `span`: a letter that checks them, a bank, a branch and the account, which may
    /// have letters in other numbers than these.
    #[inline(never)]
    pub(super) fn italian_account(
        &self,
        text: &[u8],
        span: &Range<usize>,
        near: &Near,
    ) -> Option<Found> {
        // For each character in an odd place.
        const ODD: [u32; 10] = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21];
        let blank = usize::from(text[..span.start].ends_with(b" "));
        let start = span.start.checked_sub(1 + blank)?;
        let alone = start == 0 || !text[start - 1].is_ascii_alphanumeric();
        let digits = text[span.clone()]
            .iter()
            .filter(|byte| byte.is_ascii_digit());
        let sum: u32 = digits
            .zip([true, false].into_iter().cycle())
            .map(|(byte, odd)| match odd {
                true => ODD[usize::from(byte - b'0')],
                false => u32::from(byte - b'0'),
            })
            .sum();
        let whole = start..span.end;
        (alone
            && u32::from(text[start]) == u32::from(b'A') + sum % 26
            && self.is_announced_in_letters("it_bank_account", text, &whole, near))
        .then(|| (whole, self.called("it_bank_account")))
    }

    /// The account of France of which the bank and the branch stand at `span`: behind them stand eleven letters and digits, and
    /// two digits that check them all.
    #[inline(never)]
    pub(super) fn french_account(
        &self,
        text: &[u8],
        span: &Range<usize>,
        near: &Near,
    ) -> Option<Found> {
        let end = span.end + 15;
        let alone = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let rest = text.get(span.end..end)?;
        let (account, check) = (&rest[1..12], &rest[13..]);
        if rest[12] != b' '
            || !account
                .iter()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
            || !check.iter().all(u8::is_ascii_digit)
            || !alone(text.get(end))
            || !alone(span.start.checked_sub(1).and_then(|at| text.get(at)))
        {
            return None;
        }
        // Letters are digits by their place: A to I, J to R, and S to Z from two on.
        let value = |byte: &u8| match byte {
            b'A'..=b'I' => byte - b'A' + 1,
            b'J'..=b'R' => byte - b'J' + 1,
            b'S'..=b'Z' => byte - b'S' + 2,
            digit => digit - b'0',
        };
        let all = text[span.start..end].iter().filter(|byte| **byte != b' ');
        let left = all.fold(0, |left, byte| (left * 10 + u32::from(value(byte))) % 97);
        let whole = span.start..end;
        (left == 0 && self.is_announced("fr_bank_account", text, &whole, near))
            .then(|| (whole, self.called("fr_bank_account")))
    }
}

/// How long the groups of an account of Poland are, in bytes, if this begins with them.
fn grouped(rest: &[u8]) -> Option<usize> {
    let joint = *rest.get(2).filter(|byte| matches!(byte, b' ' | b'-'))?;
    let mut at = 0;
    for (nth, length) in GROUPS.into_iter().enumerate() {
        at += usize::from(nth > 0 && rest.get(at) == Some(&joint));
        let group = rest.get(at..at + length)?;
        if !group.iter().all(u8::is_ascii_digit) {
            return None;
        }
        at += length;
    }
    (at == POLISH + GROUPS.len() - 1).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{names, told};

    /// Numbers made up, whose check holds and does not, and whose they are.
    const NUMBERS: &[(&str, &str, &str)] = &[
        (
            "Numer konta: 04124062503753522338813284",
            "Numer konta: 04124062503753522338813285",
            "pl_bank_account",
        ),
        (
            "Rachunek: 86 1090 0017 1106 4344 8974 9545",
            "Rachunek: 86 1090 0017 1106 4344 8974 9546",
            "pl_bank_account",
        ),
        (
            "BBAN: A 11087 36463 968786193173",
            "BBAN: A 11087 36463 968786193174",
            "it_bank_account",
        ),
        (
            "BBAN: A1108736463968786193173",
            "BBAN: B1108736463968786193173",
            "it_bank_account",
        ),
        (
            "RIB: 30004 42840 V22CF21JHLK 54",
            "RIB: 30004 42840 V22CF21JHLK 55",
            "fr_bank_account",
        ),
        (
            "RIB: 20041 56360 2550376Z474 89",
            "RIB: 20041 56360 2550376Z474 88",
            "fr_bank_account",
        ),
    ];

    #[test]
    fn accounts_with_letters_hold_their_check_beside_a_word() {
        for (text, wrong, name) in NUMBERS {
            let (_, number) = text.split_once(": ").unwrap_or_default();
            let found = told(&format!("{text}, known"));
            assert_eq!(found, [((*name).to_owned(), number.to_owned())], "{text}");
            assert_eq!(names(wrong), [""; 0], "{wrong}");
            assert_eq!(names(&format!("{text}7")), [""; 0], "longer: {text}");
            let grouped = number.starts_with("86 ");
            assert_eq!(
                names(&format!("item {number}")).len(),
                usize::from(grouped),
                "{number}"
            );
        }
    }
}
