//! National numbers of the other continents: see `table.rs`.
//!
//! Deliberately absent: numbers with letters in them (`lettered.rs`).

use super::{
    checks::{is_day, luhn, luhn_after, number, same, verhoeff, weighed},
    letters::{chinese, rut},
    rule::{Rule, rule},
};

/// Numbers of digits only.
// Forms and check digits as the issuing authorities publish them; see tests/corpus.
pub(super) const WORLD: &[Rule] = &[
    rule(
        "br_cpf",
        &["11", "9-2"],
        &["3.3.3-2"],
        &["cpf", "pessoas f\u{ed}sicas", "pessoa f\u{ed}sica"],
        |d| {
            !same(d)
                && two(
                    d,
                    &[10, 9, 8, 7, 6, 5, 4, 3, 2],
                    &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2],
                )
        },
    ),
    rule(
        "br_cnpj",
        &["14"],
        &["2.3.3/4-2"],
        &["cnpj", "pessoa jur\u{ed}dica"],
        |d| {
            !same(d)
                && two(
                    d,
                    &[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2],
                    &[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2],
                )
        },
    ),
    rule(
        "ca_sin",
        &["9", "3 3 3", "3-3-3"],
        &[],
        &["sin", "social insurance", "assurance sociale", "nas"],
        |d| !matches!(d[0], 0 | 8) && !same(d) && luhn(d),
    ),
    rule(
        "us_npi",
        &["10", "4-3-3", "4 3 3"],
        &[],
        &["npi", "national provider"],
        |d| {
            // Behind 80840, which comes to 24.
            matches!(d[0], 1 | 2) && luhn_after(24, d)
        },
    ),
    // Without a check digit, but in parts that have ranges.
    rule(
        "us_ssn",
        &["3-2-4", "3 2 4", "3.2.4", "9"],
        &[],
        &["ssn", "social security", "soc sec", "soc. sec"],
        |d| {
            let (area, group, serial) = (number(&d[..3]), number(&d[3..5]), number(&d[5..]));
            // Those that everybody knows were never of a person, or are no longer.
            let shown = matches!(
                number(d),
                78_051_120 | 111_223_333 | 123_456_789 | 219_099_999 | 457_555_462
            );
            (1..900).contains(&area) && area != 666 && group > 0 && serial > 0 && !same(d) && !shown
        },
    ),
    rule(
        "us_routing_number",
        &["9", "4-4-1"],
        &[],
        &["routing", "aba", "rtn", "transit"],
        |d| {
            weighed(d, &[3, 7, 1, 3, 7, 1, 3, 7, 1]) % 10 == 0
                && matches!(number(&d[..2]), 1..=12 | 21..=32 | 61..=72 | 80)
        },
    ),
    rule(
        "au_tfn",
        &["9", "3 3 3", "3-3-3"],
        &[],
        &["tfn", "tax file"],
        |d| !same(d) && weighed(d, &[1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 == 0,
    ),
    rule(
        "au_medicare",
        &["10", "4 5 1", "11", "4 5 1 1", "4-5-1"],
        &[],
        &["medicare", "aushic"],
        |d| {
            (2..=6).contains(&d[0]) && weighed(d, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == i32::from(d[8])
        },
    ),
    rule(
        "au_abn",
        &["11", "2 3 3 3"],
        &[],
        &["abn", "business number"],
        |d| d[0] > 0 && (weighed(d, &[10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]) - 10) % 89 == 0,
    ),
    rule(
        "nz_ird",
        &["9", "8", "3-3-3", "2-3-3", "3 3 3", "7-1", "8-1"],
        &[],
        &["ird", "inland revenue"],
        |d| {
            let (last, rest) = (i32::from(d[d.len() - 1]), &d[..d.len() - 1]);
            let skip = 8 - rest.len();
            let check = |weights: &[i32; 8]| (11 - weighed(rest, &weights[skip..]) % 11) % 11;
            let first = check(&[3, 2, 7, 6, 5, 4, 3, 2]);
            if first < 10 {
                first == last
            } else {
                check(&[7, 4, 3, 2, 5, 2, 7, 6]) == last
            }
        },
    ),
    rule(
        "in_aadhaar",
        &["12", "4 4 4", "4-4-4"],
        &[],
        &[
            "aadhaar",
            "aadhar",
            "uidai",
            "uid",
            "\u{906}\u{927}\u{93e}\u{930}",
        ],
        |d| d[0] > 1 && !same(d) && verhoeff(d),
    ),
    rule(
        "kr_rrn",
        &["13"],
        &["6-7"],
        &[
            "rrn",
            "resident registration",
            "jumin",
            "\u{c8fc}\u{bbfc}",
            "foreigner registration",
            "alien registration",
            "frn",
            "\u{c678}\u{ad6d}\u{c778}\u{b4f1}\u{b85d}",
            "\u{c678}\u{ad6d}\u{c778} \u{b4f1}\u{b85d}",
        ],
        |d| {
            let check = (11 - weighed(d, &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11) % 10;
            is_day(number(&d[2..4]), number(&d[4..6]))
                && (1..=8).contains(&d[6])
                && (check == i32::from(d[12]) || (check + 2) % 10 == i32::from(d[12]) && d[6] > 4)
        },
    ),
    rule(
        "jp_my_number",
        &["12", "4 4 4", "4-4-4"],
        &[],
        &[
            "my number",
            "mynumber",
            "my_number",
            "individual number",
            "kojin bango",
            "\u{30de}\u{30a4}\u{30ca}\u{30f3}\u{30d0}\u{30fc}",
            "\u{500b}\u{4eba}\u{756a}\u{53f7}",
        ],
        |d| {
            let rest = weighed(d, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
            !same(d) && (if rest <= 1 { 0 } else { 11 - rest }) == i32::from(d[11])
        },
    ),
    rule(
        "il_id",
        &["9", "8-1", "7-1", "1-7-1"],
        &[],
        &[
            "teudat",
            "israel",
            "\u{5ea}.\u{5d6}",
            "\u{5ea}_\u{5d6}",
            "\u{5ea}\u{5f4}\u{5d6}",
            "\u{5ea}\"\u{5d6}",
            "\u{5ea}\u{5e2}\u{5d5}\u{5d3}\u{5ea}",
            "\u{5d6}\u{5d4}\u{5d5}\u{5ea}",
            "mispar zehut",
            "id number il",
            "idnumberil",
            "il id",
            "t.z.",
            "tz number",
        ],
        |d| !same(d) && luhn(d),
    ),
    rule(
        "za_id",
        &["13", "6 4 3", "6 4 2 1", "6 7"],
        &[],
        &[
            "south africa",
            "sa id",
            "za id",
            "rsa id",
            "rsaid",
            "south.african",
            "id number",
            "identity",
            "za_id",
            "sa_id",
            "idnumber",
            "id_number",
            "national id",
            "id nommer",
            "id no",
            "identity no",
            "identiteitsn",
        ],
        |d| luhn(d) && is_day(number(&d[2..4]), number(&d[4..6])) && d[10] < 3,
    ),
    rule(
        "tr_tckn",
        &["11", "3 3 3 2"],
        &[],
        &[
            "tckn",
            "tc kimlik",
            "t.c.",
            "kimlik",
            "turkish",
            "tc no",
            "tc kimlik no",
        ],
        |d| {
            let odd: i32 = d
                .iter()
                .take(9)
                .step_by(2)
                .map(|digit| i32::from(*digit))
                .sum();
            let even: i32 = d[1..8]
                .iter()
                .step_by(2)
                .map(|digit| i32::from(*digit))
                .sum();
            d[0] > 0
                && (odd * 7 - even).rem_euclid(10) == i32::from(d[9])
                && (odd + even + i32::from(d[9])) % 10 == i32::from(d[10])
        },
    ),
    rule(
        "ar_cuit",
        &["11", "2.8.1"],
        &["2-8-1"],
        &["cuit", "cuil", "identificaci\u{f3}n tributaria"],
        |d| {
            let check = (11 - weighed(d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
            // Ten is written as nine.
            check.min(9) == i32::from(d[10])
        },
    ),
    rule(
        "cl_rut",
        &["8-1", "7-1", "9", "8"],
        &["2.3.3-1", "1.3.3-1"],
        &["rut", "run", "chile", "rol \u{fa}nico"],
        |d| {
            let (rest, last) = d.split_at(d.len() - 1);
            rut(rest) == i32::from(last[0])
        },
    ),
    rule(
        "co_nit",
        &[
            "9-1",
            "3.3.3-1",
            "10",
            "1.3.3.3-1",
            "10-1",
            "11",
            "8-1",
            "2.3.3-1",
        ],
        &[],
        &["nit", "colombia", "identificaci\u{f3}n tributaria"],
        |d| {
            let (weights, last) = ([43, 41, 37, 29, 23, 19, 17, 13, 7, 3], d.len() - 1);
            let rest = weighed(&d[..last], &weights[weights.len() - last..]) % 11;
            (if rest < 2 { rest } else { 11 - rest }) == i32::from(d[last])
        },
    ),
    rule(
        "pe_ruc",
        &["11", "2 8 1"],
        &[],
        &["ruc", "sunat", "registro \u{fa}nico", "contribuyente"],
        |d| {
            matches!(number(&d[..2]), 10 | 15 | 16 | 17 | 20)
                && (11 - weighed(d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 10 == i32::from(d[10])
        },
    ),
    rule(
        "ec_cedula",
        &["10", "9-1"],
        &[],
        &["cedula", "c\u{e9}dula", "ecuador", "ci", "c.i.", "c.c."],
        |d| matches!(number(&d[..2]), 1..=24 | 30) && d[2] < 7 && luhn(d),
    ),
    rule(
        "uy_ci",
        &["1.3.3-1", "8", "7-1"],
        &[],
        &["cedula", "c\u{e9}dula", "uruguay", "c.i.", "ci"],
        |d| (10 - weighed(d, &[2, 9, 8, 7, 6, 3, 4]) % 10) % 10 == i32::from(d[7]),
    ),
    rule(
        "do_cedula",
        &["11"],
        &["3-7-1"],
        &["cedula", "c\u{e9}dula", "dominican"],
        luhn,
    ),
    rule(
        "br_pis",
        &["11", "10-1"],
        &["3.5.2-1"],
        &["pis", "pasep", "nis", "pis/pasep"],
        |d| {
            let rest = weighed(d, &[3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
            !same(d) && (if rest < 2 { 0 } else { 11 - rest }) == i32::from(d[10])
        },
    ),
    // The number of a bank account.
    rule(
        "mx_clabe",
        &["18", "3 3 11 1", "3-3-11-1"],
        &[],
        &["clabe", "cuenta", "interbancaria"],
        |d| {
            let sum: i32 = d[..17]
                .iter()
                .zip([3, 7, 1].into_iter().cycle())
                .map(|(digit, weight)| i32::from(*digit) * weight % 10)
                .sum();
            !same(d) && (10 - sum % 10) % 10 == i32::from(d[17])
        },
    ),
    rule(
        "mx_nss",
        &["11", "2 2 2 4 1", "2-2-2-4-1", "10-1"],
        &[],
        &[
            "nss",
            "imss",
            "seguridad social",
            "seguro social",
            "mexican social",
        ],
        |d| !same(d) && luhn(d),
    ),
    rule(
        "th_id",
        &["13"],
        &["1-4-5-2-1", "1 4 5 2 1"],
        &[
            "thai",
            "\u{e1a}\u{e31}\u{e15}\u{e23}",
            "\u{e40}\u{e25}\u{e02}",
            "national id",
            "citizen",
            "id card",
        ],
        |d| {
            d[0] > 0
                && (11 - weighed(d, &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 10
                    == i32::from(d[12])
        },
    ),
    rule(
        "kz_iin",
        &["12", "6 6"],
        &[],
        &[
            "iin",
            "individual identification",
            "\u{438}\u{43d}\u{434}\u{438}\u{432}\u{438}\u{434}\u{443}\u{430}\u{43b}\u{44c}\u{43d}\u{44b}\u{439} \u{438}\u{434}\u{435}\u{43d}\u{442}\u{438}\u{444}",
            "\u{438}\u{438}\u{43d}",
            "\u{438}\u{434}\u{435}\u{43d}\u{442}\u{438}\u{444}\u{438}\u{43a}\u{430}\u{446}\u{438}\u{43e}\u{43d}\u{43d}\u{44b}\u{439} \u{43d}\u{43e}\u{43c}\u{435}\u{440}",
            "\u{418}\u{418}\u{41d}",
            "\u{436}\u{441}\u{43d}",
            "zhsn",
        ],
        |d| {
            let first = weighed(d, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) % 11;
            let check = if first < 10 {
                first
            } else {
                weighed(d, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2]) % 11
            };
            is_day(number(&d[2..4]), number(&d[4..6])) && check == i32::from(d[11])
        },
    ),
    rule(
        "sa_national_id",
        &["10"],
        &[],
        &[
            "iqama",
            "saudi",
            "\u{647}\u{648}\u{64a}\u{629}",
            "\u{625}\u{642}\u{627}\u{645}\u{629}",
            "national id",
        ],
        |d| matches!(d[0], 1 | 2) && luhn(d),
    ),
    rule(
        "ae_emirates_id",
        &["3 4 7 1"],
        &["3-4-7-1", "15"],
        &[
            "emirates",
            "\u{627}\u{644}\u{625}\u{645}\u{627}\u{631}\u{627}\u{62a}",
        ],
        |d| d.starts_with(&[7, 8, 4]) && (1900..=2030).contains(&number(&d[3..7])) && luhn(d),
    ),
    rule(
        "ir_national_code",
        &["10", "3-6-1"],
        &[],
        &[
            "melli",
            "code meli",
            "kode meli",
            "kart meli",
            "\u{634}\u{645}\u{627}\u{631}\u{647} \u{645}\u{644}\u{6cc}",
            "iranian",
            "\u{6a9}\u{62f} \u{645}\u{644}\u{6cc}",
            "\u{6a9}\u{62f}\u{645}\u{644}\u{6cc}",
            "national code",
            "\u{643}\u{62f} \u{645}\u{644}\u{649}",
            "\u{6a9}\u{62f} \u{645}\u{644}\u{6cc}",
            "\u{643}\u{62f} \u{645}\u{644}\u{64a}",
        ],
        |d| {
            let rest = weighed(d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
            !same(d) && (if rest < 2 { rest } else { 11 - rest }) == i32::from(d[9])
        },
    ),
    rule("cn_resident_id", &[], &["18", "6 8 4"], &[], |d| {
        let check = weighed(d, &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11;
        chinese(d) && (12 - check) % 11 == i32::from(d[17])
    }),
    rule("tr_vkn", &["10", "3 3 4"], &[], &["vkn", "vergi"], |d| {
        let sum: u64 = d[..9]
            .iter()
            .zip((1..=9).rev())
            .map(|(digit, place)| {
                let moved = (u64::from(*digit) + place) % 10;
                match moved * (1 << place) % 9 {
                    0 if moved > 0 => 9,
                    rest => rest,
                }
            })
            .sum();
        (10 - sum % 10) % 10 == u64::from(d[9])
    }),
    rule("md_idnp", &["13"], &[], &["idnp", "cod personal"], |d| {
        d[0] < 3 && weighed(d, &[7, 3, 1, 7, 3, 1, 7, 3, 1, 7, 3, 1]) % 10 == i32::from(d[12])
    }),
    // The number of a bank account.
    rule(
        "es_ccc",
        &["20", "4 4 2 10", "4-4-2-10"],
        &[],
        &[
            "ccc",
            "cuenta corriente",
            "cuenta cliente",
            "cuenta bancaria",
            "n\u{ba} de cuenta",
            "n\u{fa}mero de cuenta",
        ],
        |d| {
            let check = |sum: i32| match 11 - sum % 11 {
                11 => 0,
                10 => 1,
                check => check,
            };
            check(weighed(d, &[4, 8, 5, 10, 9, 7, 3, 6])) == i32::from(d[8])
                && check(weighed(&d[10..], &[1, 2, 4, 8, 5, 10, 9, 7, 3, 6])) == i32::from(d[9])
        },
    ),
    rule(
        "br_titulo_eleitor",
        &["12", "4 4 4"],
        &[],
        &[
            "t\u{ed}tulo de eleitor",
            "t\u{ed}tulo eleit",
            "titulo eleit",
            "eleitor",
            "brazilian voter",
        ],
        |d| {
            let state = number(&d[8..10]);
            let check = |sum: i32| match sum % 11 {
                10 => 0,
                // Sao Paulo and Minas Gerais write a one for it.
                0 if state < 3 => 1,
                rest => rest,
            };
            let first = check(weighed(d, &[2, 3, 4, 5, 6, 7, 8, 9]));
            let second = check(weighed(&d[8..10], &[7, 8]) + first * 9);
            (1..=28).contains(&state) && first == i32::from(d[10]) && second == i32::from(d[11])
        },
    ),
    rule(
        "br_cnh",
        &["11"],
        &[],
        &["cnh", "carteira nacional de habilita"],
        |d| {
            let first = weighed(d, &[9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11;
            let second = weighed(d, &[1, 2, 3, 4, 5, 6, 7, 8, 9]) % 11;
            let less = if first == 10 { 2 } else { 0 };
            let ten = |rest: i32| if rest >= 10 { 0 } else { rest };
            ten(first) == i32::from(d[9]) && ten((second - less).rem_euclid(11)) == i32::from(d[10])
        },
    ),
    rule(
        "in_virtual_id",
        &["16", "4 4 4 4"],
        &[],
        &[
            "vid",
            "virtual id",
            "aadhaar",
            "\u{906}\u{927}\u{93e}\u{930}",
        ],
        |d| d[0] > 1 && verhoeff(d),
    ),
    rule(
        "ca_health_number",
        &["10", "4 3 3", "4-3-3"],
        &[],
        &["phn", "personal health", "patient healthcare"],
        |d| {
            let sum: i32 = d[1..9]
                .iter()
                .zip([2, 4, 8, 5, 10, 9, 7, 3])
                .map(|(digit, weight)| i32::from(*digit) * weight % 11)
                .sum();
            d[0] == 9 && (11 - sum % 11) % 11 == i32::from(d[9])
        },
    ),
    rule(
        "sv_dui",
        &["8-1", "9"],
        &[],
        &["dui", "documento \u{fa}nico", "documento \u{da}nico"],
        |d| (10 - weighed(d, &[9, 8, 7, 6, 5, 4, 3, 2]) % 10) % 10 == i32::from(d[8]),
    ),
    rule(
        "kw_civil_id",
        &["12"],
        &[],
        &[
            "civil id",
            "civil number",
            "kuwait",
            "\u{627}\u{644}\u{628}\u{637}\u{627}\u{642}\u{629} \u{627}\u{644}\u{645}\u{62f}\u{646}\u{64a}\u{629}",
            "\u{627}\u{644}\u{631}\u{642}\u{645} \u{627}\u{644}\u{645}\u{62f}\u{646}\u{64a}",
        ],
        |d| {
            let check = 11 - weighed(d, &[2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11;
            is_day(number(&d[3..5]), number(&d[5..7])) && check == i32::from(d[11])
        },
    ),
    // The number of a bank account.
    rule(
        "ar_cbu",
        &["22", "8 14", "8-14"],
        &[],
        &["cbu", "clave bancaria"],
        |d| {
            let check = |digits: &[u8], weights: &[i32]| (10 - weighed(digits, weights) % 10) % 10;
            check(d, &[7, 1, 3, 9, 7, 1, 3]) == i32::from(d[7])
                && check(&d[8..], &[3, 9, 7, 1, 3, 9, 7, 1, 3, 9, 7, 1, 3]) == i32::from(d[21])
        },
    ),
];

fn two(digits: &[u8], first: &[i32], second: &[i32]) -> bool {
    let check = |weights: &[i32]| {
        let rest = weighed(digits, weights) % 11;
        if rest < 2 { 0 } else { 11 - rest }
    };
    let at = first.len();
    digits.len() == at + 2
        && check(first) == i32::from(digits[at])
        && check(second) == i32::from(digits[at + 1])
}
