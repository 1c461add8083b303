//! Numbers of accounts and of further countries: see `table.rs`.
//!
//! Deliberately absent: numbers with letters in them (`lettered.rs`).

use super::{
    accounts::{ACCOUNT_OF_SLAVS, rest_97},
    checks::{is_day, luhn, mod_11_10, number, same, weighed},
    rule::{Rule, rule},
};

/// Numbers of digits only.
pub(super) const FURTHER: &[Rule] = &[
    rule(
        "no_account_number",
        &["11", "4.2.5", "4 2 5"],
        &[],
        &[
            "kontonummer",
            "kontonr",
            "konto nr",
            "bankkonto",
            "norwegian bank",
            "norwegian account",
            "l\u{f8}nnskonto",
            "lonnskonto",
            "konto",
        ],
        |d| {
            let rest = 11 - weighed(d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
            rest % 11 == i32::from(d[10])
        },
    ),
    // The number of an account between banks: a check of the bank and the branch, and one of the account.
    rule(
        "pe_bank_account",
        &["20"],
        &["3-3-12-2", "3 3 12 2"],
        &[
            "CCI",
            "cci number",
            "numero cci",
            "cuenta cci",
            "interbancari",
            "peruvian",
        ],
        |d| {
            let holds = |digits: &[u8], check: u8| {
                let weights = [1, 2].into_iter().cycle();
                let each = digits
                    .iter()
                    .zip(weights)
                    .map(|(digit, weight)| digit * weight);
                let sum: u8 = each.map(|product| product / 10 + product % 10).sum();
                (10 - sum % 10) % 10 == check
            };
            !same(d) && holds(&d[..6], d[18]) && holds(&d[6..18], d[19])
        },
    ),
    // The number of a bank account.
    rule(
        "nz_bank_account",
        &["2-4-7-2", "2-4-7-3", "2 4 7 2", "2 4 7 3"],
        &[],
        &["account", "acct", "a/c"],
        zealandic,
    ),
    // The number of a bank account.
    rule(
        "cz_bank_account",
        &[
            "6-10/4", "10/4", "5-10/4", "4-10/4", "3-10/4", "2-10/4", "9/4", "8/4", "2-9/4",
            "3-9/4", "6-9/4", "2-8/4", "6-8/4",
        ],
        &[],
        &[
            "account",
            "\u{fa}\u{10d}tu",
            "\u{fa}\u{10d}et",
            "uctu",
            "ucet",
            "bankovn",
            "konto",
            "\u{10d}. \u{fa}.",
            "\u{10d}.\u{fa}.",
            "bankovy",
            "bankov\u{fd}",
        ],
        |d| {
            let holds = |digits: &[u8]| {
                let weights = [6, 3, 7, 9, 10, 5, 8, 4, 2, 1];
                weighed(digits, &weights[10 - digits.len()..]) % 11 == 0
            };
            let (account, bank) = d.split_at(d.len() - 4);
            // Where the first part ends is told by the shape, of which a check sees nothing.
            let parts = |first: usize| {
                let (prefix, rest) = account.split_at(first);
                (8..=10).contains(&rest.len()) && holds(prefix) && holds(rest)
            };
            let whole = account.len() <= 10 && holds(account);
            let parted = || (2..=6).any(|first| first < account.len() && parts(first));
            BANKS.contains(&number(bank)) && (whole || parted())
        },
    ),
    rule(
        "mk_bank_account",
        &["15", "3-10-2", "3 10 2"],
        &[],
        &ACCOUNT_OF_SLAVS,
        |d| !same(d) && rest_97(d) == 1,
    ),
    rule(
        "ba_bank_account",
        &["16", "3-3-8-2", "3 3 8 2", "6-8-2"],
        &[],
        &ACCOUNT_OF_SLAVS,
        |d| !same(d) && rest_97(d) == 1,
    ),
    rule(
        "hr_bank_account",
        &["7-10", "17"],
        &[],
        &ACCOUNT_OF_SLAVS,
        |d| !same(d) && mod_11_10(&d[..7]) && mod_11_10(&d[7..]),
    ),
    // Of the post: two digits, a number, and a check that carries over.
    rule(
        "ch_postal_account",
        &["2-6-1", "2-5-1", "2-4-1", "2-3-1"],
        &[],
        &[
            "postkonto",
            "postcheck",
            "pc konto",
            "pc-konto",
            "compte postal",
            "conto postale",
            "postfinance",
            "ccp",
        ],
        |d| {
            let carried = [0, 9, 4, 6, 8, 2, 7, 1, 3, 5];
            let last = d.iter().take(d.len() - 1).fold(0, |carry, digit| {
                carried[(carry + usize::from(*digit)) % 10]
            });
            (10 - last) % 10 == usize::from(d[d.len() - 1])
        },
    ),
    rule(
        "uz_pinfl",
        &["14"],
        &[],
        &[
            "pinfl",
            "jshshir",
            "jshshr",
            "\u{43f}\u{438}\u{43d}\u{444}\u{43b}",
            "\u{436}\u{448}\u{448}\u{438}\u{440}",
            "uzbek",
        ],
        |d| {
            let born = is_day(number(&d[3..5]), number(&d[1..3]));
            let sum = weighed(d, &[7, 3, 1, 7, 3, 1, 7, 3, 1, 7, 3, 1, 7]);
            matches!(d[0], 1..=6) && born && sum % 10 == i32::from(d[13])
        },
    ),
    // Of old: six digits of the bank, and two to eight, before which zeros were left out.
    rule(
        "fi_bank_account",
        &["6-2", "6-3", "6-4", "6-5", "6-6", "6-7", "6-8"],
        &[],
        &[
            "tilinumero",
            "tilinro",
            "pankkitili",
            "finnish bank",
            "finnish account",
            "kontonummer",
        ],
        |d| {
            // Those of some banks have the zeros behind the first digit of the second part.
            let (bank, rest) = d.split_at(6 + usize::from(matches!(d[0], 4 | 5)));
            let mut all = [0; 14];
            all[..bank.len()].copy_from_slice(bank);
            all[14 - rest.len()..].copy_from_slice(rest);
            luhn(&all)
        },
    ),
    rule(
        "se_bankgiro",
        &["3-4", "4-4"],
        &[],
        &["bankgiro", "bankgironr", "bg nr", "BG"],
        |d| !same(d) && luhn(d),
    ),
    // The key is made with the number of the bank, which may stand elsewhere (`keyed.rs`): whose account it is and its currency are of few.
    rule(
        "ru_bank_account",
        &["20", "5 3 1 4 7", "3 2 3 1 4 7"],
        &[],
        &[
            "\u{440}/\u{441}",
            "\u{43b}/\u{441}",
            "\u{441}\u{447}\u{435}\u{442}",
            "\u{441}\u{447}\u{451}\u{442}",
            "\u{440}\u{430}\u{441}\u{447}\u{435}\u{442}\u{43d}",
            "\u{440}\u{430}\u{441}\u{447}\u{451}\u{442}\u{43d}",
            "raschetny",
            "russian account",
            "russian bank",
            // The number of the bank, which goes with it.
            "bik",
            "\u{431}\u{438}\u{43a}",
        ],
        |d| {
            let of_persons = matches!(number(&d[..3]), 405..=408 | 420..=426);
            of_persons && matches!(number(&d[5..8]), 156 | 398 | 810 | 826 | 840 | 933 | 978)
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

/// The numbers of Czech banks, and of those of Slovakia that have others: what else stands behind ten digits and a stroke is more often a year.
const BANKS: &[u64] = &[
    100, 300, 600, 710, 800, 2010, 2020, 2060, 2070, 2100, 2200, 2220, 2250, 2260, 2275, 2600,
    2700, 3030, 3050, 3060, 3500, 4300, 5500, 5800, 6000, 6200, 6210, 6300, 6700, 6800, 7910, 7950,
    7960, 7970, 7990, 8030, 8040, 8060, 8090, 8150, 8190, 8198, 8199, 8200, 8220, 8230, 8240, 8250,
    8255, 8265, 8270, 8280, 8291, 8293, 8299, 200, 900, 1100, 1111, 3000, 3100, 5200, 5600, 5900,
    6500, 7300, 7500, 8020, 8100, 8120, 8130, 8160, 8170, 8180, 8191, 8320, 8330, 8360, 8370, 8410,
    8420, 8430,
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
        ("bankgiro: 715-2929", "bankgiro: 715-2928", "se_bankgiro"),
        (
            "Bankgironummer: 8515-4367",
            "Bankgironummer: 8515-4366",
            "se_bankgiro",
        ),
        (
            "\u{442}\u{440}\u{430}\u{43d}\u{441}\u{430}\u{43a}\u{446}\u{438}\u{441}\u{43a}\u{430} \u{441}\u{43c}\u{435}\u{442}\u{43a}\u{430}: 210937134737591",
            "smetka: 210937134737592",
            "mk_bank_account",
        ),
        (
            "transakcijski ra\u{10d}un: 129 362 23371133 63",
            "transakcijski ra\u{10d}un: 129 362 23371133 64",
            "ba_bank_account",
        ),
        (
            "transakcijski_racun: 129362-23371133-63",
            "transakcijski_racun: 129362-23371133-64",
            "ba_bank_account",
        ),
        (
            "Broj ra\u{10d}una: 2390001-3175002225",
            "Broj ra\u{10d}una: 2390001-3175002226",
            "hr_bank_account",
        ),
        (
            "PC-Konto: 87-630956-3",
            "PC-Konto: 87-630956-4",
            "ch_postal_account",
        ),
        (
            "tilinumero: 861929-82674592",
            "tilinumero: 861929-82674593",
            "fi_bank_account",
        ),
        (
            "\u{10d}\u{ed}slo \u{fa}\u{10d}tu: 123-5054508902/7500",
            "\u{10d}\u{ed}slo \u{fa}\u{10d}tu: 123-5054508903/7500",
            "cz_bank_account",
        ),
        (
            "bankovni_ucet: 491312593/0800",
            "bankovni_ucet: 491312594/0800",
            "cz_bank_account",
        ),
        (
            "JShShIR: 41908548573802",
            "JShShIR: 41908548573803",
            "uz_pinfl",
        ),
        ("RIF: V14154171-0", "RIF: V14154171-1", "ve_rif"),
        ("RUT: 5538147-K", "RUT: 5538148-K", "cl_rut"),
        (
            "\u{440}/\u{441}: 40817840861490882610",
            "\u{440}/\u{441}: 40817999861490882610",
            "ru_bank_account",
        ),
        (
            "bik: 044525974, account: 40817810213488951996",
            "bik: 044525974, account: 40817999213488951996",
            "ru_bank_account",
        ),
        (
            "Bank a/c: 12-9762-0600070-561",
            "Bank a/c: 12-9762-0600170-561",
            "nz_bank_account",
        ),
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
        (
            "r.\u{10d}.: 610828 5491",
            "r.\u{10d}.: 610828 5492",
            "cz_birth_number",
        ),
        ("CPR-nr.: 010559 3163", "CPR-nr.: 010559 3164", "dk_cpr"),
        (
            "person_nr: 19921020 3676",
            "person_nr: 19921020 3677",
            "se_personnummer",
        ),
        (
            "kennit\u{f6}lu: 1102632609",
            "kennit\u{f6}lu: 1102632619",
            "is_kennitala",
        ),
        (
            "Vers.-Nr.: 3965/130999",
            "Vers.-Nr.: 3966/130999",
            "at_social_insurance",
        ),
        (
            "personaskods: 230378-14852",
            "personaskods: 230378-14853",
            "lv_personal_code",
        ),
        (
            "\u{391}\u{39c}\u{39a}\u{391}: 110490 75374",
            "\u{391}\u{39c}\u{39a}\u{391}: 110490 75375",
            "gr_amka",
        ),
        // The check digit of a rest of ten is zero.
        (
            "Personas kods (LV): 19094814030",
            "Personas kods (LV): 19094814031",
            "lv_personal_code",
        ),
        (
            "Pers. kods: 230378-14852",
            "Pers. kods: 230378-14853",
            "lv_personal_code",
        ),
        (
            "t\u{e1}rsadalombiztos\u{ed}t\u{e1}si azonos\u{ed}t\u{f3} jel: 069 238 905",
            "t\u{e1}rsadalombiztos\u{ed}t\u{e1}si azonos\u{ed}t\u{f3} jel: 069 238 906",
            "hu_taj",
        ),
        (
            "Emirates ID: 784 1975 3578228 4",
            "Emirates ID: 784 1975 3578228 5",
            "ae_emirates_id",
        ),
        (
            "Teudat Zehut: 0-7098332-5",
            "Teudat Zehut: 0-7098332-6",
            "il_id",
        ),
        (
            "RV-Nummer: 24180570 P 148",
            "RV-Nummer: 24180570 P 149",
            "de_pension_insurance",
        ),
        (
            "Cart\u{e3}o de Cidad\u{e3}o: 13112258-9-BX0",
            "Cart\u{e3}o de Cidad\u{e3}o: 13112258-9-BX1",
            "pt_citizen_card",
        ),
        ("PPS No.: 4027136 L", "PPS No.: 4027136 M", "ie_pps"),
        ("PPS No.: 3539322 OA", "PPS No.: 3539322 PA", "ie_pps"),
        ("No. IMSS: 3785749809-3", "No. IMSS: 3785749809-4", "mx_nss"),
        (
            "num_seg_social: 117 031 162 93",
            "num_seg_social: 117 031 162 94",
            "pt_niss",
        ),
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
        (
            "cuenta interbancaria: 00910087515370788492",
            "cuenta interbancaria: 00910087515370788402",
            "pe_bank_account",
        ),
        ("DEA number: BL4449535", "DEA number: BL4449536", "us_dea"),
        (
            "prescriber_dea_number: FA3535842",
            "prescriber_dea_number: FA3535840",
            "us_dea",
        ),
        (
            "Belgian account no.: 539439090637",
            "Belgian account no.: 539439090638",
            "be_bank_account",
        ),
        (
            "banknummer: 67.06.85.208",
            "banknummer: 67.06.85.209",
            "nl_bank_account",
        ),
    ];

    #[test]
    fn numbers_of_accounts_and_of_further_countries_hold_their_check_digits_beside_a_word() {
        hold_beside_a_word(NUMBERS);
    }

    #[test]
    fn a_person_of_belarus_needs_no_word() {
        assert_eq!(names("4230787K468BI2"), ["by_personal_number"]);
        for wrong in [
            "4230787K468BI3",
            "4231387K468BI2",
            "4230787K468XX2",
            "A4230787K468BI2",
        ] {
            assert_eq!(names(wrong), [""; 0], "{wrong}");
        }
    }

    #[test]
    fn what_only_begins_as_an_abbreviation_does_says_nothing() {
        assert_eq!(names("R.C. 485611123"), [""; 0]);
        assert_eq!(names("r.\u{10d}. 485611123"), ["cz_birth_number"]);
        assert_eq!(names("R.C.S. Paris 485611123"), [""; 0]);
        assert_eq!(names("DNI: 48458734-A"), [""; 0]);
        assert_eq!(names("DNI 30123456 C/ Mayor"), ["latin_dni"]);
    }

    #[test]
    fn a_day_and_a_number_beside_the_name_of_a_country_are_nobodys() {
        assert_eq!(names("Peru dataset 20240115-1"), [""; 0]);
        assert_eq!(names("DNI 20240115-1"), ["pe_cui"]);
    }
}
