//! Accounts in Russia, whose key is made with the number of their bank.
//!
//! Guarantees: looks no farther than [`NEAR`] bytes around an account. Deliberately absent: whose account it is and in what
//! money, which its own digits say (`further.rs`).

use std::ops::Range;

use crate::sanitize::work::looked;

/// How far around an account the number of its bank may stand, in bytes.
const NEAR: usize = 160;
/// How many digits that has, and what it begins with.
const BANK: usize = 9;
const RUSSIA: &[u8] = b"04";
/// What it is called, and how far before it, in bytes.
const NAMES: [&[u8]; 3] = [
    b"bik",
    "\u{411}\u{418}\u{41a}".as_bytes(),
    "\u{431}\u{438}\u{43a}".as_bytes(),
];
const NAME: usize = 16;

/// Whether an account has the key that it has at a bank whose number stands near, or nothing near is called so.
#[inline(never)]
pub(super) fn has_its_key(text: &[u8], span: &Range<usize>, account: &[u8]) -> bool {
    let from = span.start.saturating_sub(NEAR);
    let to = (span.end + NEAR).min(text.len());
    let around = &text[from..to];
    looked(around.len());
    let mut at = 0;
    let mut called = false;
    for row in around.split(|byte| !byte.is_ascii_digit()) {
        let start = at;
        at += row.len() + 1;
        // What is cut there may be a part of more digits.
        let whole = (start > 0 || from == 0) && (at <= around.len() || to == text.len());
        if !whole || row.len() != BANK || !row.starts_with(RUSSIA) {
            continue;
        }
        if key_holds(&row[BANK - 3..], account) {
            return true;
        }
        let name = &around[start.saturating_sub(NAME)..start];
        called |= NAMES.iter().any(|word| {
            name.windows(word.len())
                .any(|here| here.eq_ignore_ascii_case(word))
        });
    }
    !called
}

/// Whether the last digits of each product add up to tens.
fn key_holds(bank: &[u8], account: &[u8]) -> bool {
    let digits = bank.iter().map(|byte| byte - b'0');
    let all = digits.chain(account.iter().copied());
    let products = all.zip([7, 1, 3].into_iter().cycle());
    let sum: u32 = products.map(|(digit, by)| u32::from(digit * by % 10)).sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::super::tests::names;

    #[test]
    fn an_account_in_russia_has_the_key_of_its_bank() {
        for (bank, account) in [
            ("044525974", "40817810213488951996"),
            ("044525225", "40817810015138601737"),
        ] {
            for text in [
                format!("bik: \"{bank}\", account_ru: \"{account}\""),
                format!("\u{440}/\u{441} {account} \u{411}\u{418}\u{41a} {bank}"),
                format!("\u{440}/\u{441} {account}"),
                // The number that goes with that of a taxpayer.
                format!("\u{41a}\u{41f}\u{41f} 040001001 \u{440}/\u{441} {account}"),
            ] {
                assert_eq!(names(&text), ["ru_bank_account"], "{text}");
            }
            for other in ["044525976", "044030653"] {
                for text in [
                    format!("bik: \"{other}\", \u{440}/\u{441}: \"{account}\""),
                    format!("\u{440}/\u{441} {account} \u{411}\u{418}\u{41a} {other}"),
                ] {
                    assert_eq!(names(&text), [""; 0], "{text}");
                }
            }
        }
    }
}
