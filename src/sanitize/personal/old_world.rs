//! Further national numbers of Europe, Asia and Africa, most of them of taxpayers: see `table.rs`.
//!
//! Deliberately absent: numbers with letters in them (`lettered.rs`).

use super::{
    accounts::belgian,
    checks::{luhn, mod_11_10, number, same, weighed},
    rule::{Rule, rule},
};

/// Numbers of digits only.
// Forms and check digits as the issuing authorities publish them; see tests/corpus.
pub(super) const OLD_WORLD: &[Rule] = &[
    rule(
        "hu_tax_id",
        &["10", "2 4 4", "3 3 4"],
        &[],
        &[
            "ad\u{f3}azon",
            "adoazonos",
            "ado azonos",
            "ad\u{f3}",
            "ad\u{f3}sz\u{e1}m",
            "adoszam",
            "hungar",
            "hu tax",
        ],
        |d| d[0] == 8 && weighed(d, &[1, 2, 3, 4, 5, 6, 7, 8, 9]) % 11 == i32::from(d[9]),
    ),
    rule(
        "bg_foreigner_number",
        &["10", "4 3 3"],
        &[],
        &[
            "\u{43b}\u{43d}\u{447}",
            "lnch",
            "\u{43b}\u{438}\u{447}\u{435}\u{43d} \u{43d}\u{43e}\u{43c}\u{435}\u{440}",
            "\u{447}\u{443}\u{436}\u{434}\u{435}\u{43d}\u{435}\u{446}",
            "bulgarian foreigner",
            "foreigner number",
            "number of a foreigner",
            "lnc",
        ],
        |d| weighed(d, &[21, 19, 17, 13, 11, 9, 7, 3, 1]) % 10 == i32::from(d[9]),
    ),
    rule(
        "es_social_security",
        &["12", "2/8/2", "2 8 2", "2-8-2", "2/10", "2 10", "10-2"],
        &[],
        &[
            "seguridad social",
            "nuss",
            "naf",
            "social security",
            "afiliaci\u{f3}n",
            "nss",
            "num ss",
            "seg. social",
            "seg social",
            "n\u{ba} ss",
        ],
        |d| {
            let (province, serial) = (number(&d[..2]), number(&d[2..10]));
            let few = serial < 10_000_000;
            let all = if few {
                serial + province * 10_000_000
            } else {
                number(&d[..10])
            };
            matches!(province, 1..=53 | 66) && serial > 0 && all % 97 == number(&d[10..])
        },
    ),
    rule(
        "az_voen",
        &["10"],
        &[],
        &["v\u{f6}en", "vergi \u{f6}d\u{259}yicisi", "azerbaijan"],
        |d| matches!(d[9], 1 | 2) && weighed(d, &[4, 1, 8, 6, 2, 7, 5, 3]) % 11 == i32::from(d[8]),
    ),
    rule(
        "by_unp",
        &["9"],
        &[],
        &[
            "unp",
            "\u{443}\u{43d}\u{43f}",
            "\u{43d}\u{43e}\u{43c}\u{435}\u{440} \u{43f}\u{43b}\u{430}\u{442}\u{435}\u{43b}\u{44c}\u{449}\u{438}\u{43a}\u{430}",
            "belarus",
        ],
        |d| {
            (1..8).contains(&d[0])
                && weighed(d, &[29, 23, 19, 17, 13, 7, 5, 3]) % 11 == i32::from(d[8])
        },
    ),
    rule(
        "mk_edb",
        &["13"],
        &[],
        &[
            "edb",
            "\u{435}\u{434}\u{431}",
            "\u{435}\u{434}\u{438}\u{43d}\u{441}\u{442}\u{432}\u{435}\u{43d} \u{434}\u{430}\u{43d}\u{43e}\u{447}\u{435}\u{43d}",
            "\u{434}\u{430}\u{43d}\u{43e}\u{447}\u{435}\u{43d} \u{431}\u{440}\u{43e}\u{458}",
            "macedonian tax",
        ],
        |d| {
            // The name is one of a database, too, whose logs have milliseconds of these years.
            let moment = d[0] == 1 && matches!(d[1], 5..=9);
            let check = (11 - weighed(d, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11 % 10;
            !moment && check == i32::from(d[12])
        },
    ),
    rule(
        "at_tax_number",
        &["9", "2-3/4", "2 3/4", "2-7"],
        &[],
        &[
            "abgabenkonto",
            "steuernummer",
            "steuer nummer",
            "steuernr",
            "steuer-nr",
            "st.nr",
            "st. nr",
            "austrian tax",
        ],
        |d| {
            // Digits of the office go before.
            (3..=98).contains(&number(&d[..2])) && luhn(d)
        },
    ),
    rule(
        "nl_education_number",
        &["9"],
        &[],
        &[
            "onderwijsnummer",
            "onderwijsnr",
            "onderwijs nr",
            "persoonsgebonden",
            "education number",
        ],
        |d| d.starts_with(&[1, 0]) && weighed(d, &[9, 8, 7, 6, 5, 4, 3, 2, -1]).rem_euclid(11) == 5,
    ),
    rule(
        "rs_pib",
        &["9"],
        &[],
        &[
            "pib",
            "\u{43f}\u{438}\u{431}",
            "poreski identifikacioni",
            "poreski broj",
            "\u{43f}\u{43e}\u{440}\u{435}\u{441}\u{43a}\u{438}",
            "serbian tax",
        ],
        |d| d[0] > 0 && mod_11_10(d),
    ),
    rule(
        "vn_tax_code",
        &["10", "10-3"],
        &[],
        &[
            "mst",
            "m\u{e3} s\u{1ed1} thu\u{1ebf}",
            "vietnamese tax",
            "personal tax code",
        ],
        |d| {
            // The name of a time zone, too, behind which stand seconds of these years.
            let second = d.len() == 10 && d[0] == 1 && matches!(d[1], 5..=8);
            !second && vietnamese(d)
        },
    ),
    // Numbers of the provinces that are like seconds.
    rule(
        "vn_tax_code",
        &["10"],
        &[],
        &[
            "mst:",
            "mst=",
            "mst\"",
            "mst |",
            "mst n",
            "mst s\u{1ed1}",
            "m\u{e3} s\u{1ed1} thu\u{1ebf}",
            "vietnamese tax",
        ],
        vietnamese,
    ),
    rule(
        "id_npwp",
        &["15", "16", "2.3.3.1-3.3"],
        &[],
        &["npwp", "wajib pajak", "indonesian tax"],
        |d| {
            // Those of sixteen digits have a zero before.
            let rest = &d[d.len() - 15..];
            !same(d) && (d.len() == 15 || d[0] == 0) && luhn(&rest[..9])
        },
    ),
    rule(
        "be_identity_card",
        &["12", "3-7-2"],
        &[],
        &[
            "identiteitskaart",
            "carte d'identit\u{e9}",
            "belgian id",
            "eid",
            "personalausweis",
        ],
        belgian,
    ),
    rule(
        "ru_ogrnip",
        &["15"],
        &[],
        &["ogrnip", "\u{43e}\u{433}\u{440}\u{43d}\u{438}\u{43f}"],
        |d| matches!(d[0], 3 | 4) && number(&d[..14]) % 13 % 10 == u64::from(d[14]),
    ),
    rule(
        "za_tax_number",
        &["10", "4/3/2/1", "3/3/3/1", "4/3/3", "3 4 3", "3/3/4"],
        &[],
        &[
            "sars tax",
            "sars ref",
            "sars n",
            "tax reference",
            "income tax n",
            "income tax reference",
            "south african tax",
            "income tax ref",
            "incometaxref",
            "sars_",
        ],
        |d| matches!(d[0], 0..=3 | 9) && luhn(d),
    ),
    rule(
        "gn_nifp",
        &["9", "3-3-3", "3 3 3"],
        &[],
        &[
            "nifp",
            "nif",
            "identification fiscale permanent",
            "guinea tax",
        ],
        |d| d[0] > 0 && luhn(d),
    ),
    rule(
        "mz_nuit",
        &["9", "3 3 3"],
        &[],
        &[
            "NUIT",
            "nuit>",
            "nuit\"",
            "nuit=",
            "nuit:",
            "nuit number",
            "identifica\u{e7}\u{e3}o tribut\u{e1}ria",
            "mozambi",
            "n\u{fa}mero \u{fa}nico de ident",
            "nuit trabalhador",
            "nuit_",
        ],
        |d| {
            let rest = weighed(d, &[8, 9, 4, 5, 6, 7, 8, 9]) % 11;
            d[0] > 0 && [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1].get(rest as usize) == Some(&d[8])
        },
    ),
];

/// The number of a taxpayer of Vietnam.
fn vietnamese(d: &[u8]) -> bool {
    let sum = weighed(d, &[31, 29, 23, 19, 17, 13, 7, 5, 3]);
    number(&d[2..9]) > 0 && 10 - sum % 11 == i32::from(d[9])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{hold_beside_a_word, names};

    /// Numbers made up, with a check digit that holds and with one that does not, and whose they are.
    const NUMBERS: &[(&str, &str, &str)] = &[
        (
            "N\u{fa}mero de la Seguridad Social: 28/10279626/88",
            "N\u{fa}mero de la Seguridad Social: 28/10279626/89",
            "es_social_security",
        ),
        (
            "NUSS: 08 08519971 02",
            "NUSS: 08 08519971 03",
            "es_social_security",
        ),
        (
            "naf: 410015341974",
            "naf: 410015341975",
            "es_social_security",
        ),
        ("V\u{d6}EN: 1183391911", "V\u{d6}EN: 1183391921", "az_voen"),
        (
            "\u{423}\u{41d}\u{41f}: 186033865",
            "\u{423}\u{41d}\u{41f}: 186033866",
            "by_unp",
        ),
        ("UNP: AB0388632", "UNP: AB0388633", "by_unp"),
        (
            "\u{415}\u{414}\u{411}: 4076502493613",
            "\u{415}\u{414}\u{411}: 4076502493614",
            "mk_edb",
        ),
        (
            "Abgabenkontonummer: 59-836/0766",
            "Abgabenkontonummer: 59-836/0767",
            "at_tax_number",
        ),
        (
            "Steuernummer: 121830137",
            "Steuernummer: 121830138",
            "at_tax_number",
        ),
        (
            "Onderwijsnummer: 109946747",
            "Onderwijsnummer: 109946748",
            "nl_education_number",
        ),
        ("PIB: 168006310", "PIB: 168006311", "rs_pib"),
        (
            "M\u{e3} s\u{1ed1} thu\u{1ebf}: 0362840271",
            "M\u{e3} s\u{1ed1} thu\u{1ebf}: 0362840272",
            "vn_tax_code",
        ),
        ("MST: 0142164677-001", "MST: 0142164678-001", "vn_tax_code"),
        (
            "NPWP: 07.779.383.4-159.000",
            "NPWP: 07.779.383.5-159.000",
            "id_npwp",
        ),
        (
            "npwp: 0039401484181000",
            "npwp: 0039401485181000",
            "id_npwp",
        ),
        (
            "identiteitskaart: 590-0329027-29",
            "identiteitskaart: 590-0329027-20",
            "be_identity_card",
        ),
        (
            "\u{41e}\u{413}\u{420}\u{41d}\u{418}\u{41f}: 304032196512861",
            "\u{41e}\u{413}\u{420}\u{41d}\u{418}\u{41f}: 304032196512862",
            "ru_ogrnip",
        ),
        (
            "SARS tax number: 0797/634/01/1",
            "SARS tax number: 0797/634/01/2",
            "za_tax_number",
        ),
        (
            "tax reference number: 1893433886",
            "tax reference number: 1893433887",
            "za_tax_number",
        ),
        ("NIFp: 521-866-137", "NIFp: 521-866-138", "gn_nifp"),
        ("NUIT: 170 879 201", "NUIT: 170 879 202", "mz_nuit"),
    ];

    #[test]
    fn numbers_of_the_old_world_hold_their_check_digits_beside_a_word() {
        hold_beside_a_word(NUMBERS);
    }

    #[test]
    fn a_second_behind_the_name_of_a_time_zone_is_no_number_of_a_taxpayer() {
        for second in (1_500_000_000..1_899_999_999_u32).step_by(39_999_999) {
            for second in second..second + 12 {
                let logs = format!("12:00 MST ({second}) from edb at {second}123");
                assert_eq!(names(&logs), [""; 0], "{logs}");
            }
        }
        assert_eq!(names("MST 0362840271"), ["vn_tax_code"]);
        assert_eq!(names("{\"mst\": \"1702164681\"}"), ["vn_tax_code"]);
        assert_eq!(names("dans la nuit 170879201 lumi\u{e8}res"), [""; 0]);
        assert_eq!(names("nit: renamed at 20261122080009"), [""; 0]);
        assert_eq!(names("SARS-CoV-2 sequence 1893433886"), [""; 0]);
    }
}
