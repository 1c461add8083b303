//! Numbers of persons that have no check digit, but a day, a place or a form of their own: see `table.rs`.
//!
//! Guarantees: each is told beside its own name only, where neither a program nor a table has it under another one, and where what it
//! says of its owner can be. Deliberately absent: numbers that say nothing, whatever they are called, since anything may be written
//! in their form.

use super::{
    checks::{is_day, number, same},
    rule::{Rule, named},
};

/// Numbers of digits only.
// Forms as the issuing authorities publish them.
pub(super) const PEOPLE: &[Rule] = &[
    // Without a dash a number of that length may be anything near a word that is said so often.
    named(
        "us_ssn",
        &["3-2-4"],
        &["social", "ss#", "ss #", "ss number", "ss no"],
        |d| {
            let (area, group, serial) = (number(&d[..3]), number(&d[3..5]), number(&d[5..]));
            (1..900).contains(&area) && area != 666 && group > 0 && serial > 0 && !same(d)
        },
    ),
    named(
        "us_itin",
        &["3-2-4", "3 2 4", "9"],
        &["itin", "individual taxpayer", "taxpayer id"],
        |d| {
            let group = number(&d[3..5]);
            d[0] == 9 && matches!(group, 50..=65 | 70..=88 | 90..=92 | 94..=99) && !same(d)
        },
    ),
    // Of children who are being adopted.
    named(
        "us_atin",
        &["3-2-4", "3 2 4", "9"],
        &["atin", "adoption taxpayer"],
        |d| d[0] == 9 && number(&d[3..5]) == 93,
    ),
    // The century, the day of birth and the governorate.
    named(
        "eg_national_id",
        &["14"],
        &[
            "egypt",
            "qawmi",
            "national id",
            "nationalid",
            "\u{627}\u{644}\u{631}\u{642}\u{645} \u{627}\u{644}\u{642}\u{648}\u{645}\u{64a}",
            "\u{631}\u{642}\u{645} \u{642}\u{648}\u{645}\u{64a}",
            "\u{627}\u{644}\u{628}\u{637}\u{627}\u{642}\u{629} \u{627}\u{644}\u{634}\u{62e}\u{635}\u{64a}\u{629}",
        ],
        |d| {
            // What begins with a year and a day is a moment.
            let moment = matches!(number(&d[..4]), 1900..=2099)
                && is_day(number(&d[4..6]), number(&d[6..8]));
            !moment
                && matches!(d[0], 2 | 3)
                && is_day(number(&d[3..5]), number(&d[5..7]))
                && matches!(number(&d[7..9]), 1..=4 | 11..=19 | 21..=29 | 31..=35 | 88)
        },
    ),
    // The day of birth and the place.
    named(
        "my_mykad",
        &["12", "6-2-4"],
        &[
            "mykad",
            "kad pengenalan",
            "nric",
            "ic number",
            "ic no",
            "no ic",
            "no kp",
            "k/p",
        ],
        malaysian,
    ),
    // Without dashes it is a moment or a telephone there, too.
    named("my_mykad", &["6-2-4"], &["malaysia"], malaysian),
    // The district, and the day of birth, to which forty is added for women.
    named("id_nik", &["16"], &["nik", "ktp", "kependudukan"], |d| {
        let day = number(&d[6..8]);
        (11..=94).contains(&number(&d[..2]))
            && is_day(number(&d[8..10]), if day > 40 { day - 40 } else { day })
            && number(&d[12..]) > 0
    }),
    // The province.
    named(
        "pk_cnic",
        &["13", "5-7-1"],
        &[
            "cnic",
            "computerized national id",
            "nicop",
            "nadra",
            "shanakhti",
            "\u{642}\u{648}\u{645}\u{6cc} \u{634}\u{646}\u{627}\u{62e}\u{62a}\u{6cc}",
            "pakistani",
        ],
        |d| (1..8).contains(&d[0]) && d[1] > 0 && !same(d),
    ),
    // The year of birth, of those of seventeen digits.
    named(
        "bd_nid",
        &["10", "13", "17"],
        &[
            "bangladesh",
            "\u{99c}\u{9be}\u{9a4}\u{9c0}\u{9af}\u{9bc} \u{9aa}\u{9b0}\u{9bf}\u{99a}\u{9af}\u{9bc}",
            "\u{99c}\u{9be}\u{9a4}\u{9c0}\u{9df} \u{9aa}\u{9b0}\u{9bf}\u{99a}\u{9df}",
        ],
        |d| match d.len() {
            17 => matches!(number(&d[..4]), 1900..=2030),
            10 => (1..10).contains(&d[0]) && !(d[0] == 1 && matches!(d[1], 5..=9)),
            // Neither a telephone there nor a book.
            _ => d[0] > 1 && !d.starts_with(&[8, 8, 0]) && !d.starts_with(&[9, 7, 8]),
        },
    ),
    // The province, and the century.
    named(
        "vn_cccd",
        &["12"],
        &[
            "cccd",
            "c\u{103}n c\u{1b0}\u{1edb}c",
            "can cuoc cong dan",
            "\u{111}\u{1ecb}nh danh c\u{e1} nh\u{e2}n",
        ],
        |d| (1..=96).contains(&number(&d[..3])) && d[3] < 4,
    ),
    named(
        "ng_nin",
        &["11"],
        &[
            "nimc",
            "nigerian nin",
            "nin nigeria",
            "national identification number (nin)",
        ],
        |d| d[0] > 0 && !same(d),
    ),
    named(
        "ph_sss",
        &["2-7-1"],
        &["sss", "philippine", "social security system"],
        |d| !same(d) && number(d) > 0,
    ),
    named(
        "ph_tin",
        &["3-3-3-3", "3-3-3-5", "3-3-3"],
        &["BIR", "bir tin", "philippine", "tin ph", "ph tin"],
        |d| !same(d) && d[0] > 0,
    ),
    named(
        "ph_tin",
        &["3-3-3-3", "3-3-3-5"],
        &["tin", "taxpayer identification"],
        |d| !same(d) && d[0] > 0,
    ),
    named(
        "co_cedula",
        &["1.3.3.3", "2.3.3", "10", "8"],
        &[
            "c\u{e9}dula de ciudadan\u{ed}a",
            "c\u{e9}dula ciudadan\u{ed}a",
            "c\u{e9}dula colombia",
            "n\u{fa}mero c\u{e9}dula",
            "numerocedula",
        ],
        |d| d[0] > 0 && !same(d),
    ),
    // Grouped, the initials are enough.
    named(
        "co_cedula",
        &["1.3.3.3", "2.3.3"],
        &["C.C.", "c\u{e9}dula"],
        |d| d[0] > 0 && !same(d),
    ),
    named(
        "cr_cedula",
        &["1-4-4"],
        &["c\u{e9}dula", "costa rica", "ced. f\u{ed}sica"],
        |d| d[0] > 0,
    ),
    named(
        "cr_cedula",
        &["9"],
        &["c\u{e9}dula f\u{ed}sica", "cedulafisica"],
        |d| (1..=9).contains(&d[0]) && !same(d),
    ),
    // Those that are given out since 2017 hold no day; what they are checked by was not published.
    named(
        "lv_personal_code",
        &["6-5"],
        &[
            "personas kod",
            "personaskod",
            "latvian personal",
            "personal code",
        ],
        |d| d[0] == 3 && d[1] > 1,
    ),
    // The day of birth: those that are given out since October 2007 need not hold the check.
    named("dk_cpr", &["6-4"], &["cpr", "cprnr"], |d| {
        is_day(number(&d[2..4]), number(&d[..2]))
    }),
    // The day of birth and the century: since October 2020 the rest is drawn.
    named(
        "kr_rrn",
        &["6-7"],
        &[
            "resident registration",
            "jumin",
            "\u{c8fc}\u{bbfc}",
            "foreigner registration",
            "alien registration",
            "\u{c678}\u{ad6d}\u{c778}\u{b4f1}\u{b85d}",
            "\u{c678}\u{ad6d}\u{c778} \u{b4f1}\u{b85d}",
        ],
        |d| is_day(number(&d[2..4]), number(&d[4..6])) && (1..=8).contains(&d[6]),
    ),
    // Of Argentina and Peru.
    named(
        "latin_dni",
        &["2.3.3", "8"],
        // In other languages it is a word of everyday: days.
        &[
            "DNI",
            "D.N.I.",
            "dni:",
            "dni=",
            "dni\"",
            "dni'",
            "dni>",
            "dni peru",
            "dni number",
            "nro dni",
            "n\u{fa}mero dni",
            "documentodni",
            "documento_dni",
            "documento nacional de identidad",
        ],
        |d| {
            // What else has eight digits near that word is a day, or the number of a Spaniard, behind which a letter stands.
            let day =
                matches!(number(&d[..4]), 1900..=2099) && is_day(number(&d[4..6]), number(&d[6..]));
            !day && !same(d) && number(d) > 100_000
        },
    ),
    // The office of the state that gave it out.
    named(
        "us_ein",
        &["2-7"],
        &[
            "EIN",
            "fein",
            "employer identification",
            "employer id",
            "ein number",
        ],
        |d| {
            let office = number(&d[..2]);
            !matches!(office, 0 | 7..=9 | 17..=19 | 28 | 29 | 49 | 69 | 70 | 78 | 79 | 89 | 96 | 97)
                && !same(d)
        },
    ),
    // The office of the land that gave it out.
    named(
        "de_tax_number",
        &["2/3/5", "3/3/5", "3/4/4"],
        &[
            "steuernummer",
            "steuer nummer",
            "steuernr",
            "steuer-nr",
            "st.-nr",
            "st.nr",
            "st. nr",
            "finanzamt",
        ],
        |d| number(d) > 0 && !same(d),
    ),
];

/// A day of birth and a place.
fn malaysian(d: &[u8]) -> bool {
    let place = number(&d[6..8]);
    is_day(number(&d[2..4]), number(&d[4..6]))
        && matches!(place, 1..=16 | 21..=68 | 71..=72 | 74..=79 | 82..=93 | 98..=99)
}

#[cfg(test)]
mod tests {
    use super::super::tests::names;

    /// What stands before numbers made up, the numbers, and whose they are.
    const NUMBERS: &[(&str, &str, &str)] = &[
        ("Her social is ", "153-27-7013", "us_ssn"),
        ("Soc. Sec. No.: ", "153-27-7013", "us_ssn"),
        ("SS# ", "661-22-3217", "us_ssn"),
        ("TAXPAYER_ID: ", "934-75-3564", "us_itin"),
        ("Egyptian national ID ", "26603122540147", "eg_national_id"),
        (
            "\u{627}\u{644}\u{631}\u{642}\u{645} \u{627}\u{644}\u{642}\u{648}\u{645}\u{64a}: ",
            "28806061225091",
            "eg_national_id",
        ),
        ("raqamQawmi=", "28704241426227", "eg_national_id"),
        ("nationalId: ", "28704241426227", "eg_national_id"),
        ("No. Kad Pengenalan: ", "670102-02-9244", "my_mykad"),
        ("mykad = '", "541207047965", "my_mykad"),
        ("NIK: ", "3578012207500034", "id_nik"),
        ("No. KTP: ", "3173016708040025", "id_nik"),
        ("cnic_no: '", "4210197728651", "pk_cnic"),
        ("CNIC ", "42201-2717896-6", "pk_cnic"),
        (
            "\u{642}\u{648}\u{645}\u{6cc} \u{634}\u{646}\u{627}\u{62e}\u{62a}\u{6cc} \u{6a9}\u{627}\u{631}\u{688}: ",
            "42201-2717896-6",
            "pk_cnic",
        ),
        (
            "Computerized National Identity Card: ",
            "42201-2717896-6",
            "pk_cnic",
        ),
        ("Bangladesh NID ", "19898066991652068", "bd_nid"),
        ("S\u{1ed1} CCCD: ", "092086992148", "vn_cccd"),
        (
            "C\u{103}n c\u{1b0}\u{1edb}c c\u{f4}ng d\u{e2}n: ",
            "048158751285",
            "vn_cccd",
        ),
        (
            "NIMC: National Identification Number (NIN) ",
            "25102859280",
            "ng_nin",
        ),
        ("SSS No. ", "34-5152918-3", "ph_sss"),
        ("BIR TIN ", "918-123-449", "ph_tin"),
        ("TIN ", "946-864-720-000", "ph_tin"),
        (
            "c\u{e9}dula de ciudadan\u{ed}a No. ",
            "1.037.207.328",
            "co_cedula",
        ),
        ("cedula_ciudadania: ", "1194154928", "co_cedula"),
        ("C.C. ", "44.034.080", "co_cedula"),
        ("c\u{e9}dula f\u{ed}sica ", "3-4624-4954", "cr_cedula"),
        ("cedula_fisica=", "716770634", "cr_cedula"),
        ("personasKods: ", "327448-03125", "lv_personal_code"),
        ("CPR-nr.: ", "010190-1234", "dk_cpr"),
        ("Resident registration number ", "210305-3456789", "kr_rrn"),
        (
            "\u{c8fc}\u{bbfc}\u{b4f1}\u{b85d}\u{bc88}\u{d638}: ",
            "210305-3456789",
            "kr_rrn",
        ),
        ("DNI N\u{b0} ", "48458734", "latin_dni"),
        ("documentoDni: ", "13.133.437", "latin_dni"),
        ("documento_dni;", "13.133.437", "latin_dni"),
        ("A NOMBRE DE ANA, CON DNI ", "48458734 Y ", "latin_dni"),
        ("EIN ", "45-1805115", "us_ein"),
        ("Steuernummer ", "218/342/20846", "de_tax_number"),
        ("steuernummer: ", "14/483/82526", "de_tax_number"),
    ];

    #[test]
    fn a_number_without_a_check_digit_is_told_beside_its_name_only() {
        for (before, number, name) in NUMBERS {
            assert_eq!(names(&format!("{before}{number}")), [*name], "{before}");
            assert_eq!(names(&format!("item {number} of")), [""; 0], "{number}");
        }
    }

    #[test]
    fn what_a_number_says_of_its_owner_can_be() {
        for text in [
            "Her social is 666-27-7013",
            "Egyptian national ID 26613122540147",
            "Egyptian national ID 46603122540147",
            "mykad = '541307047965'",
            "NIK: 3578013307500034",
            "CNIC 92201-2717896-6",
            "Bangladesh NID 39898066991652068",
            "CCCD: 992086992148",
            "DNI, exported on 20261125",
            "20546551 V (DNI)",
            "personas kods 297448-03125",
            "cedula_fisica=016770634",
            "CPR-nr.: 320190-1234",
            "Resident registration number 210335-3456789",
            "Resident registration number 210305-9456789",
            "EIN 07-1805115",
            "ein Wert 45-1805115",
            "social media, part 1532-77013",
            "Zam\u{f3}wienie 48458734 zostanie dostarczone w ci\u{105}gu 3 dni",
            "bir kod: 918-123-449",
            "Moto de 150 c.c., precio 12.345.678 pesos",
            "{\"order_id\": 48458734, \"dni\": null}",
            "{\"cnic\": null, \"created_at\": 1764150000000}",
            "Bangladesh, call 8801712345678",
            "Bangladesh, ISBN 9789848765432",
            "Egypt, exported 20201121103045",
            "Malaysia, at 251126123045",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }
}
