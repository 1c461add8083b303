//! Numbers of accounts and of further countries: see `table.rs`.
//!
//! Deliberately absent: numbers with letters in them (`lettered.rs`).

use super::{
    checks::{number, weighed},
    table::{Rule, rule},
};

/// Numbers of digits only.
pub(super) const FURTHER: &[Rule] = &[
    // The number of a bank account.
    rule(
        "nz_bank_account",
        &["2-4-7-2", "2-4-7-3", "2 4 7 2", "2 4 7 3"],
        &[],
        &["account", "acct"],
        zealandic,
    ),
    // The number of a bank account.
    rule(
        "cz_bank_account",
        &["6-10/4", "10/4", "5-10/4", "4-10/4", "3-10/4", "2-10/4"],
        &[],
        &[
            "account",
            "\u{fa}\u{10d}tu",
            "\u{fa}\u{10d}et",
            "uctu",
            "ucet",
            "bankovn",
        ],
        |d| {
            let holds = |digits: &[u8]| {
                let weights = [6, 3, 7, 9, 10, 5, 8, 4, 2, 1];
                weighed(digits, &weights[10 - digits.len()..]) % 11 == 0
            };
            let (prefix, rest) = d.split_at(d.len() - 14);
            let bank = number(&rest[10..]);
            holds(prefix) && holds(&rest[..10]) && BANKS.contains(&bank)
        },
    ),
    rule(
        "pe_cui",
        &["8-1", "9"],
        &[],
        &["cui", "dni", "nacional de identidad"],
        |d| {
            let rest = weighed(d, &[3, 2, 7, 6, 5, 4, 3, 2]) % 11;
            [6, 5, 4, 3, 2, 1, 1, 0, 9, 8, 7][rest as usize] == d[8]
        },
    ),
    rule(
        "sv_nit",
        &["4-6-3-1", "14"],
        &[],
        &["nit", "identificaci\u{f3}n tributaria"],
        |d| {
            // The first four are of a town or a country: they are no year of these.
            let place = matches!(d[0], 0 | 1 | 9);
            let old = (d[10], d[11], d[12]) <= (1, 0, 0);
            let check = if old {
                weighed(d, &[14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11 % 10
            } else {
                (11 - weighed(d, &[2, 7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11 % 10
            };
            place && check == i32::from(d[13])
        },
    ),
];

/// The numbers of Czech banks: what else stands behind ten digits and a stroke is more often a year.
const BANKS: &[u64] = &[
    100, 300, 600, 710, 800, 2010, 2020, 2060, 2070, 2100, 2200, 2220, 2250, 2260, 2275, 2600,
    2700, 3030, 3050, 3060, 3500, 4300, 5500, 5800, 6000, 6200, 6210, 6300, 6700, 6800, 7910, 7950,
    7960, 7970, 7990, 8030, 8040, 8060, 8090, 8150, 8190, 8198, 8199, 8200, 8220, 8230, 8240, 8250,
    8255, 8265, 8270, 8280, 8291, 8293, 8299,
];

/// The bank, the branch and the account are checked by a rule that the bank has chosen.
fn zealandic(d: &[u8]) -> bool {
    let mut all = [0; 16];
    all[..13].copy_from_slice(&d[..13]);
    // What kind of account it is may have two digits.
    all[16 - (d.len() - 13)..].copy_from_slice(&d[13..]);
    let (weights, less, modulus): ([i32; 16], i32, i32) = match d[0] * 10 + d[1] {
        8 => ([0, 0, 0, 0, 0, 0, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0], 11, 11),
        9 => ([0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 4, 3, 2, 0, 0, 1], 9, 11),
        25 | 33 => ([0, 0, 0, 0, 0, 0, 1, 7, 3, 1, 7, 3, 1, 0, 0, 0], 10, 10),
        26 | 28 | 29 => ([0, 0, 0, 0, 0, 0, 1, 3, 7, 1, 3, 7, 1, 3, 7, 1], 9, 10),
        1..=4 | 6 | 10..=24 | 27 | 30 | 35 | 38 if number(&d[6..13]) < 990_000 => {
            ([0, 0, 6, 3, 7, 9, 0, 10, 5, 8, 4, 2, 1, 0, 0, 0], 11, 11)
        }
        1..=4 | 6 | 10..=24 | 27 | 30 | 35 | 38 => {
            ([0, 0, 0, 0, 0, 0, 0, 10, 5, 8, 4, 2, 1, 0, 0, 0], 11, 11)
        }
        _ => return false,
    };
    let sum: i32 = all
        .iter()
        .zip(weights)
        .map(|(digit, weight)| match i32::from(*digit) * weight {
            product if product > less => product % less,
            product => product,
        })
        .sum();
    sum % modulus == 0
}

#[cfg(test)]
mod tests {
    use super::super::tests::{hold_beside_a_word, names};

    /// Numbers made up, with a check digit that holds and with one that does not, and whose they are.
    const NUMBERS: &[(&str, &str, &str)] = &[
        (
            "account number: 12-9762-0600070-561",
            "account number: 12-9762-0600170-561",
            "nz_bank_account",
        ),
        (
            "account number: 08-6178-0577626-686",
            "account number: 08-6178-0577026-686",
            "nz_bank_account",
        ),
        (
            "account number: 38 6706 0659410 08",
            "account number: 38 6706 0659010 08",
            "nz_bank_account",
        ),
        (
            "account number: 25-9069-0663090-117",
            "account number: 25-9069-0663190-117",
            "nz_bank_account",
        ),
        (
            "bank account: 12-1371-1727584-00",
            "bank account: 12-1371-1727084-00",
            "nz_bank_account",
        ),
        (
            "bank account: 002348-4307726322/0800",
            "bank account: 002348-4307726320/0800",
            "cz_bank_account",
        ),
        (
            "bank account: 1011845732/2010",
            "bank account: 1011845730/2010",
            "cz_bank_account",
        ),
        (
            "bank account: 1011845732/2010",
            "bank account: 1011845732/2025",
            "cz_bank_account",
        ),
        ("CUI: 42518027-0", "CUI: 42518027-1", "pe_cui"),
        ("NIT: 0370-879363-127-1", "NIT: 0370-879363-127-0", "sv_nit"),
        ("NIT: 0516-948087-028-9", "NIT: 0516-948087-028-0", "sv_nit"),
        (
            "Mauritian NID: K1408820711851",
            "Mauritian NID: K1408820711850",
            "mu_nid",
        ),
        (
            "National ID: B230591393523G",
            "National ID: B230591393523F",
            "mu_nid",
        ),
        (
            "cartao_cidadao: 42710540 4 Z57",
            "cartao_cidadao: 42710540 4 Z07",
            "pt_citizen_card",
        ),
        ("RIF: V-14825834-8", "RIF: V-14825834-0", "ve_rif"),
        ("RUT: 13441037K", "RUT: 13441038K", "cl_rut"),
    ];

    #[test]
    fn numbers_of_accounts_and_of_further_countries_hold_their_check_digits_beside_a_word() {
        hold_beside_a_word(NUMBERS);
    }

    #[test]
    fn a_day_and_a_number_beside_the_name_of_a_country_are_nobodys() {
        assert_eq!(names("Peru dataset 20240115-1"), [""; 0]);
        assert_eq!(names("DNI 20240115-1"), ["pe_cui"]);
    }
}
