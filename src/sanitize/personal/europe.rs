//! National numbers of Europe and the north of Asia: see `table.rs`.
//!
//! Deliberately absent: numbers with letters in them (`lettered.rs`).

use super::{
    checks::{is_day, luhn, mod_11_10, number, same, verhoeff, weighed},
    rule::{Rule, rule},
};

/// Numbers of digits only.
// Forms and check digits as the issuing authorities publish them; see tests/corpus.
pub(super) const EUROPE: &[Rule] = &[
    rule(
        "fr_nir",
        &[],
        &[
            "15",
            "1 2 2 2 3 3 2",
            "1 2 2 2 3 3",
            "13 2",
            "1.2.2.2.3.3.2",
            "1-2-2-2-3-3-2",
            "1 2 2 2 3 3/2",
        ],
        &[],
        |d| {
            d.len() == 15
                && matches!(d[0], 1..=4 | 7 | 8)
                && matches!(number(&d[3..5]), 1..=12 | 20 | 30..=42 | 50 | 99)
                && 97 - number(&d[..13]) % 97 == number(&d[13..])
        },
    ),
    rule(
        "fr_tax_number",
        &["13", "2 2 3 3 3", "1 2 3 3 3 1"],
        &[],
        &[
            "num\u{e9}ro fiscal",
            "n\u{b0} fiscal",
            "numero fiscal",
            "nif",
            "spi",
            "identifiant fiscal",
            "imp\u{f4}t",
            "tax",
            "num fiscal",
            "no fiscal",
        ],
        |d| d[0] < 4 && number(&d[..10]) % 511 == number(&d[10..]),
    ),
    rule(
        "it_vat_number",
        &["11"],
        &[],
        &[
            "partita iva",
            "codice fiscale",
            "p.iva",
            "p. iva",
            "piva",
            "partita_iva",
            "p_iva",
        ],
        |d| !same(d) && luhn(d),
    ),
    rule(
        "si_tax_number",
        &["8"],
        &[],
        &["dav\u{10d}na", "davcna", "personal tax n", "slovenian tax"],
        |d| {
            let check = 11 - weighed(d, &[8, 7, 6, 5, 4, 3, 2]) % 11;
            d[0] > 0 && check < 11 && check % 10 == i32::from(d[7])
        },
    ),
    rule(
        "be_national_number",
        &["11", "6 3 2"],
        &[
            "2.2.2-3.2",
            "2.2.2-3-2",
            "2.2.2-3 2",
            "2.2.2 3.2",
            "2 2 2 3 2",
            "6-3-2",
        ],
        &[
            "rijksregister",
            "registre national",
            "num\u{e9}ro national",
            "numero national",
            "insz",
            "niss",
            "nrn",
            "national number",
            "rrn",
            "national register",
            "belgi",
            "num\u{e9}ro bis",
            "bis-num",
            "bis num",
            "bisnum",
            "bisnummer",
            "rrn",
            "ssin",
        ],
        |d| {
            let rest = number(&d[9..]);
            d.len() == 11
                && (97 - number(&d[..9]) % 97 == rest
                    || 97 - (2_000_000_000 + number(&d[..9])) % 97 == rest)
        },
    ),
    rule(
        "nl_bsn",
        &["9", "4.2.3", "4 2 3", "3 3 3", "3.3.3", "2 3 4", "4-2-3"],
        &[],
        &[
            "bsn",
            "burgerservice",
            "sofi",
            "sofinummer",
            "citizen service",
            "nlminbiza",
        ],
        |d| !same(d) && weighed(d, &[9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 == 0,
    ),
    rule(
        "pl_pesel",
        &["11", "6 5"],
        &[],
        &["pesel", "3.4424.1.1.616"],
        |d| {
            (10 - weighed(d, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10) % 10 == i32::from(d[10])
                && is_day(number(&d[2..4]) % 20, number(&d[4..6]))
        },
    ),
    rule(
        "pl_nip",
        &["10", "3-3-2-2", "3-2-2-3", "3 3 2 2"],
        &[],
        &["nip", "podatk", "vat", "tax"],
        |d| !same(d) && weighed(d, &[6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11 == i32::from(d[9]),
    ),
    rule("pl_regon", &["9"], &[], &["regon"], |d| {
        weighed(d, &[8, 9, 2, 3, 4, 5, 6, 7]) % 11 % 10 == i32::from(d[8])
    }),
    rule(
        "se_personnummer",
        &["10", "12", "6 4", "8 4"],
        &["6-4", "8-4"],
        &[
            "personnummer",
            "personnr",
            "person_nr",
            "pers.nr",
            "personal number",
            "samordningsnummer",
            "samordningsnr",
            "personal identity",
            "swedish",
            "pnr",
            "ssn",
            "^^^SKV",
            "1.2.752.129.2.1.3",
        ],
        |d| {
            let d = &d[d.len() - 10..];
            let day = number(&d[4..6]);
            luhn(d) && is_day(number(&d[2..4]), if day > 60 { day - 60 } else { day })
        },
    ),
    rule(
        "no_fodselsnummer",
        &[],
        &["11", "6 5", "6-5", "2-2-2-5", "2 2 2 3 2", "6 3 2", "9-2"],
        &[],
        |d| {
            let first = (11 - weighed(d, &[3, 7, 6, 1, 8, 9, 4, 5, 2]) % 11) % 11;
            let second = (11 - weighed(d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
            let day = number(&d[..2]);
            first == i32::from(d[9])
                && second == i32::from(d[10])
                && is_day(number(&d[2..4]) % 40, if day > 40 { day - 40 } else { day })
        },
    ),
    rule(
        "dk_cpr",
        &["6-4", "6 4", "10"],
        &[],
        &["cpr", "cprnr", "personnummer", "danish", "1.2.208.176.1.2"],
        |d| {
            is_day(number(&d[2..4]), number(&d[..2]))
                && weighed(d, &[4, 3, 2, 7, 6, 5, 4, 3, 2, 1]) % 11 == 0
        },
    ),
    rule(
        "de_tax_id",
        &["11", "2 3 3 3", "3 4 4", "2/3/3/3", "2-3-3-3"],
        &[],
        &[
            "steuer",
            "idnr",
            "tin",
            "identifikationsnummer",
            "tax id",
            "tax-id",
            "tax_id",
            "taxid",
            "StID",
        ],
        |d| {
            let most = (0..10)
                .map(|digit| d[..10].iter().filter(|one| **one == digit).count())
                .max();
            d[0] != 0 && matches!(most, Some(2 | 3)) && mod_11_10(d)
        },
    ),
    rule(
        "at_social_insurance",
        &["10", "4 6", "4-6", "4/6", "4 2 2 2"],
        &[],
        &[
            "svnr",
            "vsnr",
            "vers.-nr",
            "sv-nr",
            "sv nummer",
            "svnummer",
            "versicherungsnummer",
            "sozialversicherung",
            "social insurance",
            "social security",
            "austria",
            "1.2.40.0.10.1.4.3.1",
        ],
        |d| {
            (weighed(&d[..3], &[3, 7, 9]) + weighed(&d[4..], &[5, 8, 4, 2, 1, 6])) % 11
                == i32::from(d[3])
        },
    ),
    rule(
        "ch_ahv",
        &["13", "3 4 4 2"],
        &["3.4.4.2"],
        &[
            "ahv",
            "ahvn",
            "ahvnr",
            "avs",
            "svn",
            "social",
            "sozialversicherung",
            "2.16.756.5.32",
        ],
        |d| {
            d.starts_with(&[7, 5, 6])
                && (10 - weighed(d, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3]) % 10) % 10
                    == i32::from(d[12])
        },
    ),
    rule(
        "gb_nhs",
        &["10", "3 3 4", "3-3-4", "6 4"],
        &[],
        &[
            "nhs",
            "CHI",
            "chi=",
            "chi\"",
            "patient",
            "national health",
            "chi number",
            "chi no",
            "chi\\\"",
            "community health index",
        ],
        |d| {
            !same(d)
                && (11 - weighed(d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11 == i32::from(d[9])
        },
    ),
    rule(
        "gb_utr",
        &["10", "5 5"],
        &[],
        &[
            "utr",
            "unique taxpayer",
            "unique.taxpayer",
            "self assessment",
        ],
        |d| {
            let rest = weighed(&d[1..], &[6, 7, 8, 9, 10, 5, 4, 3, 2]) % 11;
            [2, 1, 9, 8, 7, 6, 5, 4, 3, 2, 1].get(rest as usize) == Some(&d[0])
        },
    ),
    rule(
        "ro_cnp",
        &["13"],
        &[],
        &["cnp", "cod numeric", "personal numeric code", "romanian"],
        |d| {
            let rest = weighed(d, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
            // The eighth and ninth digits are of a county, or of a sector of the capital.
            let county = matches!(number(&d[7..9]), 1..=48 | 51 | 52 | 70 | 80..=83);
            county
                && d[0] != 0
                && is_day(number(&d[3..5]), number(&d[5..7]))
                && (if rest == 10 { 1 } else { rest }) == i32::from(d[12])
        },
    ),
    rule(
        "bg_egn",
        &["10"],
        &[],
        &[
            "egn",
            "\u{435}\u{433}\u{43d}",
            "\u{415}\u{413}\u{41d}",
            "\u{435}\u{434}\u{438}\u{43d}\u{435}\u{43d} \u{433}\u{440}\u{430}\u{436}\u{434}\u{430}\u{43d}\u{441}\u{43a}",
            "bulgarian",
        ],
        |d| {
            is_day(number(&d[2..4]) % 20, number(&d[4..6]))
                && weighed(d, &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10 == i32::from(d[9])
        },
    ),
    rule(
        "cz_birth_number",
        &["10", "9", "6/3", "6 4"],
        &["6/4"],
        &[
            "rodn",
            "rodn\u{e9}",
            "rodne",
            "r\u{10d}",
            "r. \u{10d}",
            "r.\u{10d}",
            "rod. \u{10d}",
            "birth number",
            "czech",
            "slovak",
        ],
        |d| {
            let month = number(&d[2..4]) % 50;
            let month = if month > 20 { month - 20 } else { month };
            // Those of nine digits were given out until 1953, and have no check digit.
            let holds = if d.len() == 9 {
                number(&d[..2]) < 54 && d[6..] != [0, 0, 0]
            } else {
                number(d).is_multiple_of(11) || (number(&d[..9]) % 11 == 10 && d[9] == 0)
            };
            is_day(month, number(&d[4..6])) && holds
        },
    ),
    rule(
        "hr_oib",
        &["11"],
        &[],
        &["oib", "osobni identifikacijski", "osobni id"],
        mod_11_10,
    ),
    rule(
        "yu_jmbg",
        &["13", "7 2 3 1"],
        &[],
        &[
            "jmbg",
            "jmb",
            "master citizen",
            "maticen broj",
            "emso",
            "enotna",
            "em\u{161}o",
            "umcn",
            "mati\u{10d}ni broj",
            "\u{458}\u{43c}\u{431}\u{433}",
            "\u{43c}\u{430}\u{442}\u{438}\u{447}",
            "embg",
            "\u{435}\u{43c}\u{431}\u{433}",
            "\u{43c}\u{430}\u{442}\u{438}\u{447}\u{435}\u{43d} \u{431}\u{440}\u{43e}\u{458}",
        ],
        |d| {
            let rest = weighed(d, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
            is_day(number(&d[2..4]), number(&d[..2])) && (11 - rest) % 11 % 10 == i32::from(d[12])
        },
    ),
    rule(
        "ee_lt_personal_code",
        &["11"],
        &[],
        &[
            "isikukood",
            "isiku kood",
            "asmens kod",
            "asm. kod",
            "a. k.",
            "a.k.",
            "personal code",
            "personal identification code",
            "estonian",
            "lithuanian",
            "personal_code",
            "sid/pid/est",
            "^^^EE",
        ],
        |d| {
            let first = weighed(d, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11;
            let check = if first < 10 {
                first
            } else {
                weighed(d, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11 % 10
            };
            is_day(number(&d[3..5]), number(&d[5..7])) && check == i32::from(d[10])
        },
    ),
    rule(
        "lv_personal_code",
        &["6-5", "11"],
        &[],
        &[
            "personas kod",
            "personaskod",
            "latvian",
            "personal code",
            "personal_code",
            "pk",
            "p.k.",
            "pers kods",
            "pers. kods",
            "pers.kods",
            "perskods",
            "latvia",
        ],
        |d| {
            // Those that are given out since 2017 hold no day.
            (1101 - weighed(d, &[1, 6, 3, 7, 9, 10, 5, 8, 4, 2])) % 11 % 10 == i32::from(d[10])
                && (d.starts_with(&[3, 2]) || is_day(number(&d[2..4]), number(&d[..2])))
        },
    ),
    rule(
        "pt_nif",
        &["9", "3 3 3", "3.3.3"],
        &[],
        &[
            "nif",
            "contribuinte",
            "identifica\u{e7}\u{e3}o fiscal",
            "nipc",
            "portug",
            "tax number",
        ],
        |d| {
            let rest = weighed(d, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
            d[0] > 0 && (if rest < 2 { 0 } else { 11 - rest }) == i32::from(d[8])
        },
    ),
    rule(
        "gr_amka",
        &["11", "6 5"],
        &[],
        &[
            "amka",
            "\u{391}\u{39c}\u{39a}\u{391}",
            "\u{3b1}\u{3bc}\u{3ba}\u{3b1}",
            "\u{3b1}\u{3c3}\u{3c6}\u{3ac}\u{3bb}\u{3b9}\u{3c3}\u{3b7}\u{3c2}",
        ],
        |d| luhn(d) && is_day(number(&d[2..4]), number(&d[..2])),
    ),
    rule(
        "gr_afm",
        &["9"],
        &[],
        &[
            "afm",
            "\u{3b1}.\u{3c6}.\u{3bc}.",
            "\u{391}\u{3a6}\u{39c}",
            "\u{3b1}\u{3c6}\u{3bc}",
            "\u{3c6}\u{3bf}\u{3c1}\u{3bf}\u{3bb}\u{3bf}\u{3b3}\u{3b9}\u{3ba}\u{3bf}\u{3cd} \u{3bc}\u{3b7}\u{3c4}\u{3c1}",
            "\u{3c6}\u{3bf}\u{3c1}\u{3bf}\u{3bb}\u{3bf}\u{3b3}\u{3b9}\u{3ba}\u{3bf}",
            "forologikou",
        ],
        |d| !same(d) && weighed(d, &[256, 128, 64, 32, 16, 8, 4, 2]) % 11 % 10 == i32::from(d[8]),
    ),
    rule(
        "ua_rnokpp",
        &["10", "2 2 2 2 2"],
        &[],
        &[
            "rnokpp",
            "ukrainian individual",
            "ukrainian tax",
            "ipn",
            "\u{43e}\u{431}\u{43b}\u{456}\u{43a}\u{43e}\u{432}\u{43e}\u{457} \u{43a}\u{430}\u{440}\u{442}\u{43a}\u{438}",
            "\u{456}\u{434}\u{435}\u{43d}\u{442}\u{438}\u{444}\u{456}\u{43a}\u{430}\u{446}\u{456}\u{439}\u{43d}\u{438}\u{439}",
            "\u{440}\u{43d}\u{43e}\u{43a}\u{43f}\u{43f}",
            "\u{420}\u{41d}\u{41e}\u{41a}\u{41f}\u{41f}",
            "\u{456}\u{43f}\u{43d}",
            "\u{406}\u{41f}\u{41d}",
            "\u{438}\u{43d}\u{43d}",
            "\u{418}\u{41d}\u{41d}",
            "tax id ua",
            "taxidua",
            "ua tax id",
            "ukrainian tax",
        ],
        |d| weighed(d, &[-1, 5, 7, 9, 4, 6, 10, 5, 7]).rem_euclid(11) % 10 == i32::from(d[9]),
    ),
    rule(
        "ru_snils",
        &["11"],
        &["3-3-3 2", "3-3-3-2"],
        &[
            "snils",
            "\u{441}\u{43d}\u{438}\u{43b}\u{441}",
            "\u{421}\u{41d}\u{418}\u{41b}\u{421}",
            "\u{441}\u{442}\u{440}\u{430}\u{445}\u{43e}\u{432}\u{43e}\u{439} \u{43d}\u{43e}\u{43c}\u{435}\u{440}",
        ],
        |d| {
            let sum = weighed(d, &[9, 8, 7, 6, 5, 4, 3, 2, 1]) % 101 % 100;
            !same(d) && sum as u64 == number(&d[9..])
        },
    ),
    rule(
        "ru_inn",
        &["12", "10"],
        &[],
        &[
            "inn",
            "\u{438}\u{43d}\u{43d}",
            "\u{418}\u{41d}\u{41d}",
            "\u{43d}\u{43e}\u{43c}\u{435}\u{440} \u{43d}\u{430}\u{43b}\u{43e}\u{433}\u{43e}\u{43f}\u{43b}\u{430}\u{442}\u{435}\u{43b}\u{44c}\u{449}\u{438}\u{43a}\u{430}",
        ],
        |d| {
            let check =
                |weights: &[i32], at: usize| weighed(d, weights) % 11 % 10 == i32::from(d[at]);
            if d.len() == 10 {
                check(&[2, 4, 10, 3, 5, 9, 4, 6, 8], 9)
            } else {
                check(&[7, 2, 4, 10, 3, 5, 9, 4, 6, 8], 10)
                    && check(&[3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8], 11)
            }
        },
    ),
    rule(
        "hu_taj",
        &["9", "3 3 3", "3-3-3"],
        &[],
        &["taj", "rsadalombiztos\u{ed}t\u{e1}si"],
        |d| weighed(d, &[3, 7, 3, 7, 3, 7, 3, 7]) % 10 == i32::from(d[8]),
    ),
    rule(
        "lu_matricule",
        &["13", "4 2 2 3 2", "4 2 2 5", "4 4 5", "8-5", "8 5"],
        &[],
        &[
            "matricule",
            "nni",
            "luxemb",
            "l\u{eb}tzebuerg",
            "sozialversicherung",
            "s\u{e9}curit\u{e9} sociale",
            "identification national",
            "matricule national",
        ],
        |d| {
            // Both digits check the eleven before them.
            let mut other = [0; 12];
            other[..11].copy_from_slice(&d[..11]);
            other[11] = d[12];
            luhn(&d[..12])
                && verhoeff(&other)
                && matches!(d[0], 1 | 2)
                && is_day(number(&d[4..6]), number(&d[6..8]))
        },
    ),
];
