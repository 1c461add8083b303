//! Numbers of bank accounts as banks of one country write them, of health and social insurance, and of Icelanders: see `table.rs`.
//!
//! Deliberately absent: numbers with letters in them (`lettered.rs`), and accounts of more than twenty-four digits.

use super::{
    checks::{is_day, luhn, number, same, weighed},
    rule::{Rule, rule},
};

/// Numbers of digits only.
// Forms and check digits as banks and authorities publish them; see tests/corpus.
pub(super) const ACCOUNTS: &[Rule] = &[
    rule(
        "pt_bank_account",
        &["21", "4 4 11 2", "4.4.11.2", "4-4-11-2", "4 4 4 4 4 1"],
        &[],
        &["nib", "identifica\u{e7}\u{e3}o banc\u{e1}ria"],
        |d| !same(d) && rest_97(d) == 1,
    ),
    rule(
        "rs_bank_account",
        &["18", "3-13-2", "3 13 2"],
        &[],
        &ACCOUNT_OF_SLAVS,
        |d| !same(d) && rest_97(d) == 1,
    ),
    rule(
        "si_bank_account",
        &["15", "5-10", "5 10"],
        &[],
        &ACCOUNT_OF_SLAVS,
        |d| !same(d) && rest_97(d) == 1,
    ),
    rule(
        "hu_bank_account",
        &["8-8-8", "8-8", "8 8 8", "24", "16"],
        &[],
        &[
            "sz\u{e1}mlasz\u{e1}m",
            "banksz\u{e1}mla",
            "szamlaszam",
            "bankszla",
            "bank account",
            "account number",
            "account no",
        ],
        |d| {
            let holds = |digits: &[u8]| {
                let weights = [9, 7, 3, 1].into_iter().cycle();
                let each = digits.iter().zip(weights);
                each.map(|(digit, weight)| i32::from(*digit) * weight)
                    .sum::<i32>()
                    % 10
                    == 0
            };
            !same(d) && holds(&d[..8]) && holds(&d[8..])
        },
    ),
    rule(
        "be_bank_account",
        &["3-7-2", "3 7 2", "12"],
        &[],
        &[
            "rekeningnummer",
            "rekening nr",
            "num\u{e9}ro de compte",
            "n\u{b0} de compte",
            "numero compte",
            "compte bancaire",
            "account no",
            "account number",
            "belgian account",
            "belgian bank",
            "bankrekening",
            "bank account",
            "rek.nr",
            "rek. nr",
        ],
        belgian,
    ),
    rule(
        "nl_bank_account",
        &["9", "2 2 2 3", "2.2.2.3"],
        &[],
        &[
            "bankrekening",
            "rekeningnummer",
            "banknummer",
            "dutch bank",
            "dutch account",
            "rekening nr",
            "rek.nr",
            "rek. nr",
        ],
        |d| d[0] > 0 && weighed(d, &[9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11 == 0,
    ),
    // Of the bank, the branch and the account; of accounts with letters `lettered.rs` would have to know.
    rule(
        "fr_bank_account",
        &["23", "5 5 11 2"],
        &[],
        &["rib", "relev\u{e9} d'identit\u{e9} bancaire"],
        |d| !same(d) && rest_97(d) == 0,
    ),
    rule(
        "ma_bank_account",
        &["24", "3 3 16 2"],
        &[],
        &["rib", "relev\u{e9} d'identit\u{e9} bancaire"],
        |d| !same(d) && rest_97(d) == 0,
    ),
    rule(
        "tn_bank_account",
        &["20", "2 3 13 2"],
        &[],
        &["rib", "relev\u{e9} d'identit\u{e9} bancaire"],
        |d| !same(d) && rest_97(d) == 0,
    ),
    rule(
        "pt_niss",
        &["11", "3 3 3 2", "3 4 4"],
        &[],
        &[
            "niss",
            "seg. social",
            "seg social",
            "seg_social",
            "seguran\u{e7}a social",
            "identifica\u{e7}\u{e3}o da seguran\u{e7}a social",
        ],
        |d| {
            let sum = weighed(d, &[29, 23, 19, 17, 13, 11, 7, 5, 3, 2]);
            matches!(d[0], 1 | 2) && 9 - sum % 10 == i32::from(d[10])
        },
    ),
    rule(
        "br_cns",
        &["15", "3 4 4 4"],
        &[],
        &[
            "cns",
            "cart\u{e3}o sus",
            "cart\u{e3}o do sus",
            "cart\u{e3}o nacional sa\u{fa}de",
            "cart\u{e3}o nacional de sa\u{fa}de",
        ],
        |d| {
            let weights = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1];
            matches!(d[0], 1 | 2 | 7..=9) && weighed(d, &weights) % 11 == 0
        },
    ),
    rule(
        "ca_ohip",
        &["10", "4 3 3", "4-3-3"],
        &[],
        &["ohip", "health card", "health number", "patient hcn"],
        |d| d[0] > 0 && luhn(d),
    ),
    rule(
        "gt_cui",
        &["13", "4 5 4", "4-5-4"],
        &[],
        &["cui", "dpi", "\u{fa}nico de identificaci\u{f3}n"],
        |d| {
            // Of the department and the town where it was issued.
            let issued = matches!(number(&d[9..11]), 1..=22) && number(&d[11..]) > 0;
            issued && weighed(d, &[2, 3, 4, 5, 6, 7, 8, 9]) % 11 == i32::from(d[8])
        },
    ),
    rule(
        "au_ihi",
        &["16", "4 4 4 4"],
        &[],
        &[
            "ihi",
            "healthcare identifier",
            "health identifier",
            "ausnata",
        ],
        |d| d.starts_with(&[8, 0, 0, 3, 6]) && luhn(d),
    ),
    rule(
        "is_kennitala",
        &["6-4", "10"],
        &[],
        &["kennit", "kt.", "kt", "icelandic"],
        |d| {
            (11 - weighed(d, &[3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11 == i32::from(d[8])
                && is_day(number(&d[2..4]), number(&d[..2]) % 40)
                // The last says the century.
                && matches!(d[9], 0 | 8 | 9)
        },
    ),
    rule(
        "hu_personal_id",
        &["11", "1-6-4", "1 6 4"],
        &[],
        &[
            "szem\u{e9}lyi sz\u{e1}m",
            "szem\u{e9}lyi azonos\u{ed}t\u{f3}",
            "hungarian personal",
        ],
        |d| {
            // Those of who was born since 1997 are weighed the other way round.
            let early = matches!(d[0], 1 | 2) && number(&d[1..3]) < 97;
            let weights = match early {
                true => [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
                false => [10, 9, 8, 7, 6, 5, 4, 3, 2, 1],
            };
            (1..=8).contains(&d[0])
                && is_day(number(&d[3..5]), number(&d[5..7]))
                && weighed(d, &weights) % 11 == i32::from(d[10])
        },
    ),
];

/// What an account is called between the Alps and the Balkans.
pub(super) const ACCOUNT_OF_SLAVS: [&str; 14] = [
    "transakcijski",
    "teku\u{107}i",
    "bank account",
    "account number",
    "account no",
    "current account",
    "\u{441}\u{43c}\u{435}\u{442}\u{43a}",
    "smetka",
    "ra\u{10d}un",
    "ra\u{10d}una",
    "trr",
    "\u{440}\u{430}\u{447}\u{443}\u{43d}",
    "serbian account",
    "slovenian account",
];

/// Ten digits and two that are what is left of them by 97, of which none is written as 97 itself.
pub(super) fn belgian(digits: &[u8]) -> bool {
    (number(&digits[..10]) + 96) % 97 + 1 == number(&digits[10..])
}

/// What is left of a number that is divided by 97.
pub(super) fn rest_97(digits: &[u8]) -> u64 {
    digits
        .iter()
        .fold(0, |rest, digit| (rest * 10 + u64::from(*digit)) % 97)
}

#[cfg(test)]
mod tests {
    use super::super::tests::hold_beside_a_word;

    /// Numbers made up, with a check digit that holds and with one that does not, and whose they are.
    const NUMBERS: &[(&str, &str, &str)] = &[
        (
            "NIB: 234748581098015662829",
            "NIB: 234748581098015662820",
            "pt_bank_account",
        ),
        (
            "NIB: 2462 9909 29929251239 64",
            "NIB: 2462 9909 29929251239 65",
            "pt_bank_account",
        ),
        (
            "Broj ra\u{10d}una: 339697407769687512",
            "Broj ra\u{10d}una: 339697407769687513",
            "rs_bank_account",
        ),
        (
            "Broj ra\u{10d}una: 497-9971909675281-42",
            "Broj ra\u{10d}una: 497-9971909675281-43",
            "rs_bank_account",
        ),
        (
            "TRR: 15452 0476552305",
            "TRR: 15452 0476552306",
            "si_bank_account",
        ),
        (
            "TRR: 90684-8463498181",
            "TRR: 90684-8463498182",
            "si_bank_account",
        ),
        (
            "Sz\u{e1}mlasz\u{e1}m: 11605616-74058914-77437569",
            "Sz\u{e1}mlasz\u{e1}m: 11605616-74058914-77437560",
            "hu_bank_account",
        ),
        (
            "Sz\u{e1}mlasz\u{e1}m: 104054375247531829460006",
            "Sz\u{e1}mlasz\u{e1}m: 104054375247531829460007",
            "hu_bank_account",
        ),
        (
            "Rekeningnummer: 363-8693262-65",
            "Rekeningnummer: 363-8693262-66",
            "be_bank_account",
        ),
        (
            "Rekeningnummer: 091820602245",
            "Rekeningnummer: 091820602246",
            "be_bank_account",
        ),
        (
            "Bankrekening: 44 29 88 230",
            "Bankrekening: 44 29 88 231",
            "nl_bank_account",
        ),
        (
            "Bankrekening: 186851936",
            "Bankrekening: 186851937",
            "nl_bank_account",
        ),
        (
            "RIB: 30002693011705765506260",
            "RIB: 30002693011705765506261",
            "fr_bank_account",
        ),
        (
            "RIB: 14508 41373 93386906600 34",
            "RIB: 14508 41373 93386906600 35",
            "fr_bank_account",
        ),
        (
            "RIB: 007 102 1280754829332359 08",
            "RIB: 007 102 1280754829332359 09",
            "ma_bank_account",
        ),
        (
            "RIB: 230268408811716836591718",
            "RIB: 230268408811716836591719",
            "ma_bank_account",
        ),
        (
            "RIB: 20290487672784016423",
            "RIB: 20290487672784016424",
            "tn_bank_account",
        ),
        (
            "RIB: 20 162 0284776417501 44",
            "RIB: 20 162 0284776417501 45",
            "tn_bank_account",
        ),
        ("NISS: 172 663 434 87", "NISS: 172 663 434 88", "pt_niss"),
        ("NISS: 13067193499", "NISS: 13067193491", "pt_niss"),
        ("CNS: 214745073760006", "CNS: 214745073760007", "br_cns"),
        (
            "CNS: 241 9022 5092 0003",
            "CNS: 241 9022 5092 0004",
            "br_cns",
        ),
        ("OHIP: 4287120895", "OHIP: 4287120896", "ca_ohip"),
        ("OHIP: 3997 943 760", "OHIP: 3997 943 761", "ca_ohip"),
        ("DPI: 6503 08700 1603", "DPI: 6503 08701 1603", "gt_cui"),
        ("DPI: 4812951001612", "DPI: 4812951011612", "gt_cui"),
        (
            "IHI: 8003 6038 3570 0965",
            "IHI: 8003 6038 3570 0966",
            "au_ihi",
        ),
        ("IHI: 8003604926136523", "IHI: 8003604926136524", "au_ihi"),
        (
            "Szem\u{e9}lyi sz\u{e1}m: 2 621110 2651",
            "Szem\u{e9}lyi sz\u{e1}m: 2 621110 2652",
            "hu_personal_id",
        ),
        (
            "Szem\u{e9}lyi sz\u{e1}m: 1-741224-7515",
            "Szem\u{e9}lyi sz\u{e1}m: 1-741224-7516",
            "hu_personal_id",
        ),
        (
            "TC Kimlik No: 929 973 392 70",
            "TC Kimlik No: 929 973 392 71",
            "tr_tckn",
        ),
        (
            "\u{418}\u{418}\u{41d}: 990419 490232",
            "\u{418}\u{418}\u{41d}: 990419 490233",
            "kz_iin",
        ),
        (
            "\u{418}\u{418}\u{41d}: 501117312136",
            "\u{418}\u{418}\u{41d}: 501117312137",
            "kz_iin",
        ),
        (
            "Tax reference no: 3383209966",
            "Tax reference no: 3383209967",
            "za_tax_number",
        ),
        (
            "Tax reference no: 1597/003/696",
            "Tax reference no: 1597/003/697",
            "za_tax_number",
        ),
        (
            "NSS: 468102172691",
            "NSS: 468102172692",
            "es_social_security",
        ),
        (
            "NUSS: 4889927811-89",
            "NUSS: 4889927811-88",
            "es_social_security",
        ),
        (
            "NSS: 41-85037397-42",
            "NSS: 41-85037397-43",
            "es_social_security",
        ),
    ];

    #[test]
    fn numbers_of_accounts_and_of_insurance_hold_their_check_digits_beside_a_word() {
        hold_beside_a_word(NUMBERS);
    }
}
