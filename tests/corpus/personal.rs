//! Personal numbers that belong to nobody we know of: drawn at run time, with check digits that hold or do not.
//!
//! Check digits are computed here from the descriptions of the issuers (see README.md), in another way than the detectors
//! check them: a number is completed by search. Deliberately absent: names, and numbers of real persons.

use usher::sanitize::Class;

use super::{draw::Draw, sample::Sample};

const CLASS: Class = Class::PersonalChecked;
/// How many texts are made of each kind.
const EACH: usize = 24;

/// Brands: family, beginnings, length, and how it is grouped.
const CARDS: &[(&str, &[&str], usize, &[usize])] = &[
    ("card_visa", &["4"], 16, &[4, 4, 4, 4]),
    ("card_mastercard", &["51", "52", "53", "54", "55", "2221", "2350", "2719"], 16, &[4, 4, 4, 4]),
    ("card_amex", &["34", "37"], 15, &[4, 6, 5]),
    ("card_discover", &["6011", "644", "65"], 16, &[4, 4, 4, 4]),
    ("card_diners", &["300", "305", "36", "38"], 14, &[4, 6, 4]),
    ("card_jcb", &["3528", "3560", "3589"], 16, &[4, 4, 4, 4]),
    ("card_unionpay", &["62"], 16, &[4, 4, 4, 4]),
    ("card_mir", &["2200", "2204"], 16, &[4, 4, 4, 4]),
    ("card_maestro", &["5018", "6304", "6759"], 16, &[4, 4, 4, 4]),
];

/// Countries and the form of what follows the check digits: `n` digits, `a` capitals, `c` either.
const ACCOUNTS: &[(&str, &str)] = &[
    ("AT", "n16"), ("BE", "n12"), ("BG", "a4n6c8"), ("CH", "n5c12"), ("CZ", "n20"), ("DE", "n18"), ("DK", "n14"), ("EE", "n16"), ("ES", "n20"),
    ("FI", "n14"), ("FR", "n10c11n2"), ("GB", "a4n14"), ("GR", "n7c16"), ("HR", "n17"), ("HU", "n24"), ("IE", "a4n14"), ("IS", "n22"), ("IT", "a1n10c12"),
    ("LI", "n5c12"), ("LT", "n16"), ("LU", "n3c13"), ("LV", "a4c13"), ("MT", "a4n5c18"), ("NL", "a4n10"), ("NO", "n11"), ("PL", "n24"), ("PT", "n21"),
    ("RO", "a4c16"), ("SE", "n20"), ("SI", "n15"), ("SK", "n20"), ("TR", "n6c16"), ("AE", "n19"), ("SA", "n2c18"), ("IL", "n19"), ("BR", "n23a1c1"), ("KZ", "n3c13"),
    ("UA", "n6c19"), ("RS", "n18"), ("CY", "n8c16"), ("QA", "a4c21"), ("MU", "a4n19a3"),
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
pub fn positives() -> Vec<Sample> {
    let mut draw = Draw::new(0x9E_50_7A);
    let mut all = Vec::new();
    for (family, begins, length, groups) in CARDS {
        for nth in 0..EACH {
            let digits = loop {
                let mut digits: Vec<u8> = draw.one(begins).bytes().map(|byte| byte - b'0').collect();
                let rest = length - 1 - digits.len();
                digits.extend(draw.digits(rest));
                if let Some(digits) = completed(digits, 1, luhn) {
                    break digits;
                }
            };
            let joint = ["", " ", "-"][nth % 3];
            let text = grouped(&digits, groups, joint);
            let label = *draw.one(&["card", "card number", "credit card", "payment card", "cardNumber", "PAN"]);
            all.push(placed(family, nth, label, &text));
        }
    }
    for (country, form) in ACCOUNTS {
        for nth in 0..6 {
            let account = account(&mut draw, country, form);
            let text = if nth % 2 == 0 { account } else { spaced(&account) };
            let label = *draw.one(&["IBAN", "account", "Kontonummer", "iban"]);
            all.push(placed("iban", nth, label, &text));
        }
    }
    for (family, label, make) in NATIONAL {
        for nth in 0..EACH {
            all.push(placed(family, nth, label, &make(&mut draw, nth)));
        }
    }
    all
}

/// Texts that look as if they held one, and hold none.
pub fn negatives() -> Vec<Sample> {
    let mut draw = Draw::new(0x0B_AD_1D);
    let mut all = Vec::new();
    let mut add = |family: &'static str, text: String| all.push(Sample::negative(CLASS, family, text));
    for nth in 0..60 {
        let mut digits = vec![4];
        digits.extend(draw.digits(15));
        if !luhn(&digits) {
            add("card_luhn", format!("card: {}", grouped(&digits, &[4, 4, 4, 4], ["", " ", "-"][nth % 3])));
        }
        let account = account(&mut draw, "DE", "n18");
        let wrong = format!("DE{:02}{}", (account[2..4].parse::<u32>().unwrap_or(2) + 1) % 97, &account[4..]);
        add("iban_remainder", format!("IBAN: {wrong}"));
        add("iban_length", format!("IBAN: {}", &account[..20]));
        for form in ["at 17000<d5><d3> ms", "order no. 1<d9>", "0.<d16>", "rev <h7><d12>", "2026-01-0<d1> 12:3<d1>:00 1<d2>.<d1>", "tel. +49 30 <d8>", "build 20260101.<d6>", "<d3>.<d3>.<d3>.<d3>", "<h8>-<h4>-<h4>-<h4>-<h12>", "x=<d2>.<d6>,<d2>.<d6>", "snowflake 1<d17>", "12 34 56 78 90 <d2> <d2> <d2>", "ISBN 978-3-<d5>-<d3>-1x", "v<d1>.<d2>.<d3>+<d8>", "sha1 <h40>", "/photos/4<d15>/view", "| 1<d2> | 2<d3> | 3<d4> | <d6> |"] {
            add("digits", draw.form(form));
        }
        for (family, label, make) in NATIONAL {
            // One digit off.
            let number = make(&mut draw, nth);
            let at = number.rfind(|letter: char| letter.is_ascii_digit()).unwrap_or(0);
            let digit = number.as_bytes()[at] - b'0';
            // Some numbers have two check digits: what is one off in the last is wrong in all of them.
            let wrong = format!("{}{}{}", &number[..at], (digit + 1) % 10, &number[at + 1..]);
            if nth < 2 && !family.starts_with("it_") {
                add("national_one_off", format!("{label}: {wrong}"));
            }
        }
    }
    for text in ["use 4242 4242 4242 4242 in the sandbox", "fixtures: 4111111111111111, 5555555555554444", "0000 0000 0000 0000", "000.000.000-00", "DE00 0000 0000 0000 0000 00"] {
        add("trial", text.to_owned());
    }
    all
}

type Make = fn(&mut Draw, usize) -> String;

/// National numbers: family, what it is called, how it is made.
const NATIONAL: &[(&str, &str, Make)] = &[
    ("br_cpf", "CPF", |draw, nth| {
        let check = |digits: &[u8]| check(digits, |at, length| (length + 1 - at) as i64, |sum| if sum % 11 < 2 { 0 } else { 11 - sum % 11 });
        let mut digits = draw.digits(9);
        digits.push(check(&digits));
        digits.push(check(&digits));
        if nth % 2 == 0 { shaped(&digits, "###.###.###-##") } else { shaped(&digits, "###########") }
    }),
    ("br_cnpj", "CNPJ", |draw, nth| {
        let check = |digits: &[u8]| check(digits, |at, length| ((length - 1 - at) % 8 + 2) as i64, |sum| if sum % 11 < 2 { 0 } else { 11 - sum % 11 });
        let mut digits = draw.digits(12);
        digits.push(check(&digits));
        digits.push(check(&digits));
        if nth % 2 == 0 { shaped(&digits, "##.###.###/####-##") } else { shaped(&digits, "##############") }
    }),
    ("es_dni", "DNI", |draw, nth| {
        let digits = draw.digits(8);
        let letter = b"TRWAGMYFPDXBNJZSQVHLCKE"[(value(&digits) % 23) as usize] as char;
        format!("{}{}{letter}", shaped(&digits, "########"), if nth % 3 == 0 { "-" } else { "" })
    }),
    ("es_nie", "NIE", |draw, _| {
        let first = draw.below(3);
        let digits = draw.digits(7);
        let letter = b"TRWAGMYFPDXBNJZSQVHLCKE"[((first as u64 * 10_000_000 + value(&digits)) % 23) as usize] as char;
        format!("{}{}{letter}", ['X', 'Y', 'Z'][first], shaped(&digits, "#######"))
    }),
    ("fr_nir", "NIR", |draw, nth| {
        let mut digits = vec![1 + draw.below(2) as u8];
        digits.extend(draw.digits(2));
        digits.extend([0, 1 + draw.below(9) as u8]);
        digits.extend(draw.digits(8));
        let key = 97 - value(&digits) % 97;
        digits.extend([(key / 10) as u8, (key % 10) as u8]);
        if nth % 2 == 0 { shaped(&digits, "# ## ## ## ### ### ##") } else { shaped(&digits, "###############") }
    }),
    ("be_national_number", "Rijksregisternummer", |draw, nth| {
        let mut digits = date(draw);
        digits.extend(draw.digits(3));
        let key = 97 - value(&digits) % 97;
        digits.extend([(key / 10) as u8, (key % 10) as u8]);
        if nth % 2 == 0 { shaped(&digits, "##.##.##-###.##") } else { shaped(&digits, "###########") }
    }),
    ("nl_bsn", "BSN", |draw, _| search(draw, 8, 1, |d| d.iter().zip([9, 8, 7, 6, 5, 4, 3, 2, 10]).map(|(d, w)| i64::from(*d) * w).sum::<i64>() % 11 == 0, "#########")),
    ("pl_pesel", "PESEL", |draw, _| {
        let mut digits = date(draw);
        digits.extend(draw.digits(4));
        let sum: u64 = digits.iter().zip([1, 3, 7, 9, 1, 3, 7, 9, 1, 3]).map(|(d, w)| u64::from(*d) * w).sum();
        digits.push(((10 - sum % 10) % 10) as u8);
        shaped(&digits, "###########")
    }),
    ("no_fodselsnummer", "Fødselsnummer", |draw, nth| loop {
        let mut digits = day_first(draw);
        digits.extend(draw.digits(3));
        let first = digits.iter().zip([3, 7, 6, 1, 8, 9, 4, 5, 2]).map(|(d, w)| u64::from(*d) * w).sum::<u64>() % 11;
        if first == 1 {
            continue;
        }
        digits.push(((11 - first) % 11) as u8);
        let second = digits.iter().zip([5, 4, 3, 2, 7, 6, 5, 4, 3, 2]).map(|(d, w)| u64::from(*d) * w).sum::<u64>() % 11;
        if second == 1 {
            continue;
        }
        digits.push(((11 - second) % 11) as u8);
        return shaped(&digits, if nth % 2 == 0 { "###### #####" } else { "###########" });
    }),
    ("se_personnummer", "Personnummer", |draw, nth| {
        let mut digits = date(draw);
        digits.extend(draw.digits(3));
        let digits = completed(digits, 1, luhn).unwrap_or_default();
        shaped(&digits, if nth % 2 == 0 { "######-####" } else { "##########" })
    }),
    ("fi_hetu", "Henkilötunnus", |draw, _| {
        let mut digits = day_first(draw);
        digits.extend(draw.digits(3));
        let letter = b"0123456789ABCDEFHJKLMNPRSTUVWXY"[(value(&digits) % 31) as usize] as char;
        format!("{}{letter}", shaped(&digits, "######-###"))
    }),
    ("de_tax_id", "Steuer-ID", |draw, nth| loop {
        let digits = draw.digits(10);
        let most = (0..10).map(|one| digits.iter().filter(|digit| **digit == one).count()).max();
        if digits[0] == 0 || most != Some(2) {
            continue;
        }
        let mut rest = 10_u64;
        for digit in &digits {
            rest = (rest + u64::from(*digit)) % 10;
            rest = if rest == 0 { 10 } else { rest } * 2 % 11;
        }
        let mut digits = digits;
        digits.push(((11 - rest) % 10) as u8);
        return shaped(&digits, if nth % 2 == 0 { "## ### ### ###" } else { "###########" });
    }),
    ("gb_nhs", "NHS number", |draw, nth| search(draw, 9, 1, |d| d.iter().zip([10, 9, 8, 7, 6, 5, 4, 3, 2, 1]).map(|(d, w)| i64::from(*d) * w).sum::<i64>() % 11 == 0, if nth % 2 == 0 { "### ### ####" } else { "##########" })),
    ("ca_sin", "SIN", |draw, nth| loop {
        let text = search(draw, 8, 1, luhn, if nth % 2 == 0 { "### ### ###" } else { "###-###-###" });
        if !text.starts_with('0') {
            return text;
        }
    }),
    ("cn_resident_id", "身份证", |draw, _| {
        let mut digits = vec![1, 1, 0, 1, 0, 1, 1, 9];
        digits.extend(date(draw));
        digits.extend(draw.digits(3));
        let sum: u64 = digits.iter().zip([7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]).map(|(d, w)| u64::from(*d) * w).sum();
        format!("{}{}", shaped(&digits, "#################"), b"10X98765432"[(sum % 11) as usize] as char)
    }),
    ("tr_tckn", "TCKN", |draw, _| {
        let mut digits = vec![1 + draw.below(9) as u8];
        digits.extend(draw.digits(8));
        let odd: i64 = digits.iter().step_by(2).map(|d| i64::from(*d)).sum();
        let even: i64 = digits.iter().skip(1).step_by(2).map(|d| i64::from(*d)).sum();
        digits.push((7 * odd - even).rem_euclid(10) as u8);
        let sum: u64 = digits.iter().map(|d| u64::from(*d)).sum();
        digits.push((sum % 10) as u8);
        shaped(&digits, "###########")
    }),
    ("ro_cnp", "CNP", |draw, _| {
        let mut digits = vec![1 + draw.below(2) as u8];
        digits.extend(date(draw));
        digits.extend([1, 2]);
        digits.extend(draw.digits(3));
        let rest = digits.iter().zip([2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]).map(|(d, w)| u64::from(*d) * w).sum::<u64>() % 11;
        digits.push(if rest == 10 { 1 } else { rest as u8 });
        shaped(&digits, "#############")
    }),
    ("ch_ahv", "AHV-Nr", |draw, _| {
        let mut digits = vec![7, 5, 6];
        digits.extend(draw.digits(9));
        let sum: u64 = digits.iter().enumerate().map(|(at, d)| u64::from(*d) * if at % 2 == 0 { 1 } else { 3 }).sum();
        digits.push(((10 - sum % 10) % 10) as u8);
        shaped(&digits, "###.####.####.##")
    }),
    ("ar_cuit", "CUIT", |draw, _| search(draw, 10, 1, |d| d.iter().zip([5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]).map(|(d, w)| i64::from(*d) * w).sum::<i64>() % 11 == 0, "##-########-#")),
    ("ru_snils", "СНИЛС", |draw, _| {
        let mut digits = draw.digits(9);
        let sum = digits.iter().zip((1..=9).rev()).map(|(d, w)| u64::from(*d) * w).sum::<u64>() % 101 % 100;
        digits.extend([(sum / 10) as u8, (sum % 10) as u8]);
        shaped(&digits, "###-###-### ##")
    }),
    ("za_id", "SA ID number", |draw, _| {
        let mut digits = date(draw);
        digits.extend(draw.digits(4));
        digits.extend([0, 8]);
        shaped(&completed(digits, 1, luhn).unwrap_or_default(), "#############")
    }),
    ("il_id", "תעודת זהות", |draw, _| search(draw, 8, 1, luhn, "#########")),
    ("sg_nric", "NRIC", |draw, _| {
        let digits = draw.digits(7);
        let sum: u64 = digits.iter().zip([2, 7, 6, 5, 4, 3, 2]).map(|(d, w)| u64::from(*d) * w).sum();
        format!("S{}{}", shaped(&digits, "#######"), b"JZIHGFEDCBA"[(sum % 11) as usize] as char)
    }),
    ("hr_oib", "OIB", |draw, _| {
        let mut digits = draw.digits(10);
        let mut rest = 10_u64;
        for digit in &digits {
            rest = (rest + u64::from(*digit)) % 10;
            rest = if rest == 0 { 10 } else { rest } * 2 % 11;
        }
        digits.push(((11 - rest) % 10) as u8);
        shaped(&digits, "###########")
    }),
];

fn placed(family: &'static str, nth: usize, label: &str, number: &str) -> Sample {
    let around = AROUND[nth % AROUND.len()].replace("{l}", label);
    let (before, after) = around.split_once("{s}").unwrap_or((&around, ""));
    Sample::positive(CLASS, family, before, number, after)
}

fn account(draw: &mut Draw, country: &str, form: &str) -> String {
    let mut rest = String::new();
    let mut parts = form;
    while !parts.is_empty() {
        let end = parts[1..].find(|letter: char| letter.is_ascii_alphabetic()).map_or(parts.len(), |at| at + 1);
        let count = parts[1..end].parse::<usize>().unwrap_or(0);
        for _ in 0..count {
            let letter = match &parts[..1] {
                "n" => *draw.one(b"0123456789"),
                "a" => *draw.one(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
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
            letter.to_digit(36).map_or(sum, |value| if value < 10 { (sum * 10 + u64::from(value)) % 97 } else { (sum * 100 + u64::from(value)) % 97 })
        }) == 1
    });
    format!("{country}{:02}{rest}", key.unwrap_or(0))
}

fn spaced(text: &str) -> String {
    text.as_bytes().chunks(4).map(|four| String::from_utf8_lossy(four).into_owned()).collect::<Vec<_>>().join(" ")
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

fn shaped(digits: &[u8], shape: &str) -> String {
    let mut digits = digits.iter();
    shape.chars().map(|letter| if letter == '#' { digits.next().map_or('#', |digit| char::from(b'0' + digit)) } else { letter }).collect()
}

fn search(draw: &mut Draw, length: usize, more: usize, holds: fn(&[u8]) -> bool, shape: &str) -> String {
    loop {
        let digits = draw.digits(length);
        if let Some(digits) = completed(digits, more, holds) {
            return shaped(&digits, shape);
        }
    }
}

/// The digits and what makes them hold.
fn completed(digits: Vec<u8>, more: usize, holds: fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    (0..10_u32.pow(more as u32)).map(|last| [digits.clone(), format!("{last:0more$}").bytes().map(|byte| byte - b'0').collect()].concat()).find(|all| holds(all))
}

fn luhn(digits: &[u8]) -> bool {
    let doubled = [0, 2, 4, 6, 8, 1, 3, 5, 7, 9];
    let sum: u32 = digits.iter().rev().enumerate().map(|(at, digit)| if at % 2 == 1 { doubled[usize::from(*digit)] } else { u32::from(*digit) }).sum();
    sum.is_multiple_of(10)
}

fn check(digits: &[u8], weight: fn(usize, usize) -> i64, of: fn(i64) -> i64) -> u8 {
    let sum = digits.iter().enumerate().map(|(at, digit)| i64::from(*digit) * weight(at, digits.len())).sum();
    of(sum) as u8
}

fn value(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |all, digit| all * 10 + u64::from(*digit))
}

fn date(draw: &mut Draw) -> Vec<u8> {
    let (year, month, day) = (40 + draw.below(59), 1 + draw.below(12), 1 + draw.below(28));
    format!("{year:02}{month:02}{day:02}").bytes().map(|byte| byte - b'0').collect()
}

fn day_first(draw: &mut Draw) -> Vec<u8> {
    let date = date(draw);
    [&date[4..], &date[2..4], &date[..2]].concat()
}
