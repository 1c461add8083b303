//! Personal numbers that belong to nobody we know of: drawn at run time, with check digits that hold or do not.
//!
//! Check digits are computed here from the descriptions of the issuers (see README.md), in another way than the detectors
//! check them: a number is completed by search. Deliberately absent: names, and numbers of real persons.

use usher::sanitize::Class;

use super::{
    digits::{completed, luhn, shaped},
    draw::Draw,
    national::NATIONAL,
    sample::Sample,
    taxpayers::TAXPAYERS,
};

const CLASS: Class = Class::PersonalChecked;
/// How many texts are made of each kind.
const EACH: usize = 24;

/// Brands: family, beginnings, length, and how it is grouped.
const CARDS: &[(&str, &[&str], usize, &[usize])] = &[
    ("card_visa", &["4"], 16, &[4, 4, 4, 4]),
    (
        "card_mastercard",
        &["51", "52", "53", "54", "55", "2221", "2350", "2719"],
        16,
        &[4, 4, 4, 4],
    ),
    ("card_amex", &["34", "37"], 15, &[4, 6, 5]),
    ("card_discover", &["6011", "644", "65"], 16, &[4, 4, 4, 4]),
    ("card_diners", &["300", "305", "36", "38"], 14, &[4, 6, 4]),
    ("card_jcb", &["3528", "3560", "3589"], 16, &[4, 4, 4, 4]),
    ("card_unionpay", &["62"], 16, &[4, 4, 4, 4]),
    ("card_mir", &["2200", "2204"], 16, &[4, 4, 4, 4]),
    ("card_maestro", &["5018", "6304", "6759"], 16, &[4, 4, 4, 4]),
    ("card_maestro_long", &["5020", "6759"], 18, &[4, 4, 4, 4, 2]),
    ("card_unionpay_long", &["62"], 19, &[6, 13]),
    ("card_hipercard", &["606282"], 16, &[4, 4, 4, 4]),
    ("card_troy", &["9792"], 16, &[4, 4, 4, 4]),
    ("card_verve", &["506099", "506198"], 16, &[4, 4, 4, 4]),
    (
        "card_elo",
        &["504175", "506699", "509048"],
        16,
        &[4, 4, 4, 4],
    ),
    ("card_maestro_short", &["5018", "6304"], 12, &[4, 4, 4]),
];

/// Countries and the form of what follows the check digits: `n` digits, `a` capitals, `c` either, `x` as many capitals as of
/// both together.
const ACCOUNTS: &[(&str, &str)] = &[
    ("AT", "n16"),
    ("BE", "n12"),
    ("BG", "a4n6c8"),
    ("CH", "n5c12"),
    ("CZ", "n20"),
    ("DE", "n18"),
    ("DK", "n14"),
    ("EE", "n16"),
    ("ES", "n20"),
    ("FI", "n14"),
    ("FR", "n10c11n2"),
    ("GB", "a4n14"),
    ("GR", "n7c16"),
    ("HR", "n17"),
    ("HU", "n24"),
    ("IE", "a4n14"),
    ("IS", "n22"),
    ("IT", "a1n10c12"),
    ("LI", "n5c12"),
    ("LT", "n16"),
    ("LU", "n3c13"),
    ("LV", "a4c13"),
    ("MT", "a4n5c18"),
    ("NL", "a4n10"),
    ("NO", "n11"),
    ("PL", "n24"),
    ("PT", "n21"),
    ("RO", "a4c16"),
    ("SE", "n20"),
    ("SI", "n15"),
    ("SK", "n20"),
    ("TR", "n6c16"),
    ("AE", "n19"),
    ("SA", "n2c18"),
    ("IL", "n19"),
    ("BR", "n23a1c1"),
    ("KZ", "n3c13"),
    ("UA", "n6c19"),
    ("RS", "n18"),
    ("CY", "n8c16"),
    ("QA", "a4c21"),
    ("MU", "a4n19a3"),
    ("BY", "x4n4x16"),
    ("GI", "a4x15"),
    ("GT", "x24"),
    ("KW", "a4x22"),
    ("LC", "a4x24"),
    ("LV", "a4x13"),
    ("MD", "x20"),
    ("OM", "n3x16"),
    ("PK", "a4x16"),
    ("PS", "a4x21"),
    ("YE", "a4n4x18"),
];

/// Texts around a number.
const AROUND: &[&str] = &[
    "{l}: {s}\n",
    "{\"{l}\": \"{s}\", \"verified\": true}",
    "Customer gave {l} {s} on the phone.",
    "<td>{l}</td><td>{s}</td>",
    "Mein/Ihr {l}: {s}.",
    "id;name;{l}\n17;A. Person;{s}\n",
    "2026-02-11T09:12:01Z INFO form submitted {l}={s} step=3",
    "| {l} | {s} |",
];

/// Texts with one number each.
pub(crate) fn positives() -> Vec<Sample> {
    let mut draw = Draw::new(0x9E_50_7A);
    let mut all = Vec::new();
    for (family, begins, length, groups) in CARDS {
        for nth in 0..EACH {
            let digits = loop {
                let mut digits: Vec<u8> =
                    draw.one(begins).bytes().map(|byte| byte - b'0').collect();
                let rest = length - 1 - digits.len();
                digits.extend(draw.digits(rest));
                if let Some(digits) = completed(digits, 1, luhn) {
                    break digits;
                }
            };
            let joint = ["", " ", "-", "\u{a0}", "\u{2011}"][nth % 5];
            let text = grouped(&digits, groups, joint);
            let label = *draw.one(&[
                "card",
                "card number",
                "credit card",
                "payment card",
                "cardNumber",
                "PAN",
            ]);
            all.push(placed(family, nth, label, &text));
        }
    }
    for (country, form) in ACCOUNTS {
        for nth in 0..6 {
            let account = account(&mut draw, country, form);
            let text = match nth % 3 {
                0 => account,
                1 => spaced(&account),
                _ => spaced(&account).replace(' ', "\u{a0}"),
            };
            let label = *draw.one(&["IBAN", "account", "Kontonummer", "iban"]);
            all.push(placed("iban", nth, label, &text));
        }
    }
    for (family, label, make) in NATIONAL.iter().chain(TAXPAYERS) {
        for nth in 0..EACH {
            // As a field of a record has it.
            let label = match nth % 3 {
                2 => label.replace(' ', "_"),
                _ => (*label).to_owned(),
            };
            all.push(placed(family, nth, &label, &make(&mut draw, nth)));
        }
    }
    all
}

/// Texts that look as if they held one, and hold none.
pub(crate) fn negatives() -> Vec<Sample> {
    let mut draw = Draw::new(0x0B_AD_1D);
    let mut all = Vec::new();
    let mut add =
        |family: &'static str, text: String| all.push(Sample::negative(CLASS, family, text));
    for nth in 0..60 {
        let mut digits = vec![4];
        digits.extend(draw.digits(15));
        if !luhn(&digits) {
            add(
                "card_luhn",
                format!(
                    "card: {}",
                    grouped(&digits, &[4, 4, 4, 4], ["", " ", "-"][nth % 3])
                ),
            );
        }
        let account = account(&mut draw, "DE", "n18");
        let wrong = format!(
            "DE{:02}{}",
            (account[2..4].parse::<u32>().unwrap_or(2) + 1) % 97,
            &account[4..]
        );
        add("iban_remainder", format!("IBAN: {wrong}"));
        add("iban_length", format!("IBAN: {}", &account[..20]));
        for form in [
            "at 17000<d5><d3> ms",
            "order no. 1<d9>",
            "0.<d16>",
            "rev <h7><d12>",
            "2026-01-0<d1> 12:3<d1>:00 1<d2>.<d1>",
            "tel. +49 30 <d8>",
            "build 20260101.<d6>",
            "<d3>.<d3>.<d3>.<d3>",
            "<h8>-<h4>-<h4>-<h4>-<h12>",
            "x=<d2>.<d6>,<d2>.<d6>",
            "snowflake 1<d17>",
            "12 34 56 78 90 <d2> <d2> <d2>",
            "ISBN 978-3-<d5>-<d3>-1x",
            "v<d1>.<d2>.<d3>+<d8>",
            "sha1 <h40>",
            "/photos/4<d15>/view",
            "| 1<d2> | 2<d3> | 3<d4> | <d6> |",
        ] {
            add("digits", draw.form(form));
        }
        for (family, label, make) in NATIONAL.iter().chain(TAXPAYERS) {
            // One digit off.
            let number = make(&mut draw, nth);
            let at = number
                .rfind(|letter: char| letter.is_ascii_digit())
                .unwrap_or(0);
            let digit = number.as_bytes()[at] - b'0';
            // Some numbers have two check digits: what is one off in the last is wrong in all of them.
            let wrong = format!("{}{}{}", &number[..at], (digit + 1) % 10, &number[at + 1..]);
            let unchecked = ["us_ssn", "us_itin", "gb_nino"];
            let checked = !family.starts_with("it_") && !unchecked.contains(family);
            // What these end with is a count of offices or of companies.
            let counted = ["ec_ruc", "id_npwp", "nl_btw"].contains(family);
            if nth < 2 && checked && !counted {
                add("national_one_off", format!("{label}: {wrong}"));
            }
        }
    }
    for text in [
        "SSN: 000-12-3456",
        "SSN: 666-12-3456",
        "SSN: 123-00-4567",
        "SSN: 123-45-0000",
        "social security number 987-65-4321",
        "SSN: 123-45-6789",
        "ITIN: 912-93-1234",
        "SIN: 823456785",
        "CNP: 1630615993454",
    ] {
        add("national_range", text.to_owned());
    }
    for text in [
        "use 4242 4242 4242 4242 in the sandbox",
        "fixtures: 4111111111111111, 5555555555554444",
        "0000 0000 0000 0000",
        "000.000.000-00",
        "DE00 0000 0000 0000 0000 00",
    ] {
        add("trial", text.to_owned());
    }
    all
}

fn placed(family: &'static str, nth: usize, label: &str, number: &str) -> Sample {
    let around = AROUND[nth % AROUND.len()].replace("{l}", label);
    let (before, after) = around.split_once("{s}").unwrap_or((&around, ""));
    Sample::positive(CLASS, family, before, number, after)
}

fn account(draw: &mut Draw, country: &str, form: &str) -> String {
    let mut rest = String::new();
    let mut parts = form;
    while !parts.is_empty() {
        let end = parts[1..]
            .find(|letter: char| letter.is_ascii_alphabetic())
            .map_or(parts.len(), |at| at + 1);
        let count = parts[1..end].parse::<usize>().unwrap_or(0);
        for _ in 0..count {
            let letter = match &parts[..1] {
                "n" => *draw.one(b"0123456789"),
                "a" => *draw.one(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
                "x" => *draw.one(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
                // Where letters may stand, digits do as a rule.
                _ => *draw.one(b"0123456789012345678901234567890123456789ABCXYZ"),
            };
            rest.push(char::from(letter));
        }
        parts = &parts[end..];
    }
    let key = (2..=98).find(|key| {
        let turned = format!("{rest}{country}{key:02}");
        turned.chars().fold(0_u64, |sum, letter| {
            letter.to_digit(36).map_or(sum, |value| {
                if value < 10 {
                    (sum * 10 + u64::from(value)) % 97
                } else {
                    (sum * 100 + u64::from(value)) % 97
                }
            })
        }) == 1
    });
    format!("{country}{:02}{rest}", key.unwrap_or(0))
}

fn spaced(text: &str) -> String {
    text.as_bytes()
        .chunks(4)
        .map(|four| String::from_utf8_lossy(four).into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

fn grouped(digits: &[u8], groups: &[usize], joint: &str) -> String {
    let mut at = 0;
    let parts = groups.iter().map(|length| {
        let part = shaped(&digits[at..at + length], &"#".repeat(*length));
        at += length;
        part
    });
    parts.collect::<Vec<_>>().join(joint)
}
