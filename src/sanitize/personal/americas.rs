//! National numbers of the Americas, beside those of `world.rs`: see `table.rs`.
//!
//! Deliberately absent: numbers with letters in them (`lettered.rs`).

use super::{
    checks::{is_day, luhn, number, weighed},
    rule::{Rule, rule},
};

/// Numbers of digits only.
// Forms and check digits as the issuing authorities publish them; see tests/corpus.
pub(super) const AMERICAS: &[Rule] = &[
    rule(
        "uy_rut",
        &["12", "2-6-3-1", "2 6 3 1"],
        &[],
        &["rut", "\u{fa}nico tributario", "uruguay"],
        |d| {
            (1..=22).contains(&number(&d[..2]))
                && number(&d[2..8]) > 0
                && d[8..11] == [0, 0, 1]
                && (11 - weighed(d, &[4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11
                    == i32::from(d[11])
        },
    ),
    rule(
        "py_ruc",
        &["8-1", "7-1", "6-1", "8", "9", "2.3.3-1", "1.3.3-1", "3.3-1"],
        &[],
        &["ruc", "registro \u{fa}nico", "contribuyente", "paraguay"],
        |d| !is_date(d) && rising(d) % 10 == i32::from(d[d.len() - 1]),
    ),
    rule(
        "do_rnc",
        &["9", "1-2-5-1", "3-5-1", "1-8"],
        &[],
        &[
            "rnc",
            "registro nacional del",
            "registro nacional de contribuyente",
        ],
        |d| {
            let rest = weighed(d, &[7, 9, 8, 6, 5, 4, 3, 2]) % 11;
            (10 - rest).rem_euclid(9) + 1 == i32::from(d[8])
        },
    ),
    rule(
        "ec_ruc",
        &["13", "10-3", "9-1-3"],
        &[],
        &["ruc", "registro \u{fa}nico", "contribuyente", "ecuador"],
        ecuadorian,
    ),
    // Ten is written as a letter: see `lettered.rs`.
    rule(
        "gt_nit",
        &["8-1", "7-1", "6-1", "9", "8", "2.3.3-1", "1.3.3-1"],
        &[],
        &[
            "nit",
            "identificaci\u{f3}n tributaria",
            "guatemalan",
            "guatemalteco",
        ],
        |d| !is_date(d) && rising(d) == i32::from(d[d.len() - 1]),
    ),
];

/// The check of digits whose weights rise from the last but one on.
pub(super) fn rising(digits: &[u8]) -> i32 {
    let digits = digits.iter().rev().skip(1);
    let sum: i32 = digits
        .zip(2..)
        .map(|(digit, weight)| i32::from(*digit) * weight)
        .sum();
    (11 - sum % 11) % 11
}

/// Whether eight digits are a day of these years, as many numbers of files are.
fn is_date(digits: &[u8]) -> bool {
    digits.len() == 8
        && (1900..2100).contains(&number(&digits[..4]))
        && is_day(number(&digits[4..6]), number(&digits[6..]))
}

/// The number of a taxpayer of Ecuador: the third digit says whether it is a person, a public body or a company.
fn ecuadorian(d: &[u8]) -> bool {
    let province = matches!(number(&d[..2]), 1..=24 | 30 | 50);
    let holds = |weights: &[i32]| weighed(d, weights) % 11 == 0;
    let person = || number(&d[10..]) > 0 && luhn(&d[..10]);
    let public = || number(&d[9..]) > 0 && holds(&[3, 2, 7, 6, 5, 4, 3, 2, 1]);
    let company = || number(&d[10..]) > 0 && holds(&[4, 3, 2, 7, 6, 5, 4, 3, 2, 1]);
    province
        && match d[2] {
            ..6 => person(),
            6 => public() || person(),
            9 => public() || company(),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{hold_beside_a_word, names};

    /// Numbers made up, with a check digit that holds and with one that does not, and whose they are.
    const NUMBERS: &[(&str, &str, &str)] = &[
        ("RUT: 214778630016", "RUT: 214778630017", "uy_rut"),
        (
            "Registro \u{da}nico Tributario: 21-646841-001-4",
            "Registro \u{da}nico Tributario: 21-646841-001-5",
            "uy_rut",
        ),
        ("RUC: 8812738-9", "RUC: 8812738-0", "py_ruc"),
        ("RUC: 45345325", "RUC: 45345326", "py_ruc"),
        ("RNC: 1-46-81385-8", "RNC: 1-46-81385-9", "do_rnc"),
        ("rnc: 481970257", "rnc: 481970258", "do_rnc"),
        ("RUC: 1714378252001", "RUC: 1714378253001", "ec_ruc"),
        ("RUC: 1796239820001", "RUC: 1796239821001", "ec_ruc"),
        ("RUC: 1762612800001", "RUC: 1762612810001", "ec_ruc"),
        ("NIT: 2778771-0", "NIT: 2778771-1", "gt_nit"),
        ("NIT: 108932117", "NIT: 108932118", "gt_nit"),
    ];

    #[test]
    fn numbers_of_the_americas_hold_their_check_digits_beside_a_word() {
        hold_beside_a_word(NUMBERS);
    }

    #[test]
    fn a_day_is_no_number_of_a_taxpayer() {
        for day in 10..30 {
            assert_eq!(names(&format!("NIT, RUC, {}", 20_240_100 + day)), [""; 0]);
        }
    }
}
