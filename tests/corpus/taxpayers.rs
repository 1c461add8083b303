//! How numbers of taxpayers, of insured and of pupils are made, country by country, beside those of `national.rs`.
//!
//! Deliberately absent: numbers of companies only, and those without a check digit.

use super::{
    digits::{completed, date, luhn, search, shaped, value},
    draw::Draw,
    national::Make,
};

/// The sum of digits, each by its weight.
fn sum(digits: &[u8], weights: &[i64]) -> i64 {
    let products = digits.iter().zip(weights);
    products
        .map(|(digit, weight)| i64::from(*digit) * weight)
        .sum()
}

/// Some digits with others before them, and one more that makes them hold.
fn after(draw: &mut Draw, first: &[u8], length: usize, holds: fn(&[u8]) -> bool) -> Vec<u8> {
    loop {
        let digits = [first, &draw.digits(length - 1 - first.len())].concat();
        if let Some(digits) = completed(digits, 1, holds) {
            return digits;
        }
    }
}

/// The letter or digit at a place of an alphabet of these.
fn value_in(alphabet: &str, letter: char) -> i64 {
    alphabet
        .chars()
        .position(|known| known == letter)
        .unwrap_or(0) as i64
}

/// The product of ISO 7064 with eleven and ten, by its definition.
fn mod_11_10(digits: &[u8]) -> bool {
    let mut rest = 10;
    for digit in &digits[..digits.len() - 1] {
        let both = (i64::from(*digit) + rest) % 10;
        rest = if both == 0 { 20 } else { both * 2 } % 11;
    }
    (rest + i64::from(digits[digits.len() - 1])) % 10 == 1
}

/// The number of a taxpayer whose weights rise from its end on, and what ten is written as.
fn rising(draw: &mut Draw, first: u8, ten: char) -> (String, char) {
    let digits = [&[first][..], &draw.digits(6)].concat();
    let all: i64 = digits
        .iter()
        .rev()
        .zip(2..)
        .map(|(digit, weight)| i64::from(*digit) * weight)
        .sum();
    let check = (0..11).find(|check| (all + check) % 11 == 0).unwrap_or(0);
    let check = char::from_digit(check as u32, 10).unwrap_or(ten);
    (shaped(&digits, "#######"), check)
}

/// Family, what it is called, how it is made.
pub(crate) const TAXPAYERS: &[(&str, &str, Make)] = &[
    ("uy_rut", "RUT", |draw, nth| {
        loop {
            let digits = [&[2, 1][..], &draw.digits(6), &[0, 0, 1]].concat();
            let holds = |d: &[u8]| sum(d, &[4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11 == 0;
            if let Some(digits) = completed(digits, 1, holds) {
                return shaped(&digits, ["############", "##-######-###-#"][nth % 2]);
            }
        }
    }),
    ("py_ruc", "RUC", |draw, nth| {
        let (number, check) = rising(draw, 8, '0');
        [number, check.to_string()].join(["-", ""][nth % 2])
    }),
    ("gt_nit", "NIT", |draw, nth| {
        let (number, check) = rising(draw, 4, 'K');
        [number, check.to_string()].join(["-", ""][nth % 2])
    }),
    ("do_rnc", "RNC", |draw, nth| {
        let mut digits = [&[1][..], &draw.digits(7)].concat();
        let rest = sum(&digits, &[7, 9, 8, 6, 5, 4, 3, 2]) % 11;
        digits.push(match rest {
            0 => 2,
            1 => 1,
            rest => (11 - rest) as u8,
        });
        shaped(&digits, ["#########", "#-##-#####-#"][nth % 2])
    }),
    ("ec_ruc", "RUC", |draw, nth| {
        let digits = after(draw, &[1, 7, (nth % 6) as u8], 10, luhn);
        let digits = [&digits[..], &[0, 0, 1]].concat();
        shaped(&digits, ["#############", "##########-###"][nth % 2])
    }),
    ("es_social_security", "NUSS", |draw, nth| {
        let digits = [&[2, 8, 1 + draw.below(9) as u8][..], &draw.digits(7)].concat();
        let key = value(&digits) % 97;
        let digits = [&digits[..], &[(key / 10) as u8, (key % 10) as u8]].concat();
        shaped(
            &digits,
            ["############", "##/########/##", "## ######## ##"][nth % 3],
        )
    }),
    ("az_voen", "V\u{d6}EN", |draw, _| {
        loop {
            let digits = draw.digits(8);
            let check = sum(&digits, &[4, 1, 8, 6, 2, 7, 5, 3]) % 11;
            if check < 10 {
                return shaped(&[&digits[..], &[check as u8, 2]].concat(), "##########");
            }
        }
    }),
    ("by_unp", "\u{423}\u{41d}\u{41f}", |draw, nth| {
        loop {
            let letters = [['1', '9'], ['M', 'A'], ['A', 'T']][nth % 3];
            let first = value_in("0123456789ABCDEFGHIJKLM", letters[0]);
            let second = match letters[1] {
                '9' => 9,
                letter => value_in("ABCEHKMOPT", letter),
            };
            let digits = draw.digits(6);
            let all = first * 29 + second * 23 + sum(&digits, &[19, 17, 13, 7, 5, 3]);
            if all % 11 < 10 {
                let [one, two] = letters;
                return format!("{one}{two}{}{}", shaped(&digits, "######"), all % 11);
            }
        }
    }),
    ("mk_edb", "\u{415}\u{414}\u{411}", |draw, _| {
        let weights = |d: &[u8]| sum(d, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]) % 11 == 0;
        shaped(&after(draw, &[4, 0], 13, weights), "#############")
    }),
    ("at_tax_number", "Abgabenkontonummer", |draw, nth| {
        let digits = after(draw, &[5, 9], 9, luhn);
        shaped(&digits, ["#########", "##-###/####"][nth % 2])
    }),
    ("nl_education_number", "Onderwijsnummer", |draw, _| {
        let holds = |d: &[u8]| sum(d, &[9, 8, 7, 6, 5, 4, 3, 2, 10]) % 11 == 5;
        shaped(&after(draw, &[1, 0], 9, holds), "#########")
    }),
    ("nl_btw", "BTW-id", |draw, nth| {
        loop {
            let digits = draw.digits(9);
            // As letters count, N is 23, L 21 and B 11.
            let whole = format!("2321{}1101", shaped(&digits, "#########"));
            if whole.parse::<u64>().unwrap_or(0) % 97 == 1 {
                return shaped(&digits, ["NL#########B01", "#########B01"][nth % 2]);
            }
        }
    }),
    ("rs_pib", "PIB", |draw, _| {
        shaped(&after(draw, &[1], 9, mod_11_10), "#########")
    }),
    ("vn_tax_code", "MST", |draw, nth| {
        let holds = |d: &[u8]| {
            let all = sum(d, &[31, 29, 23, 19, 17, 13, 7, 5, 3]);
            10 - all % 11 == i64::from(d[9])
        };
        let digits = after(draw, &[0, 3], 10, holds);
        shaped(&digits, ["##########", "##########-001"][nth % 5 / 4])
    }),
    ("id_npwp", "NPWP", |draw, nth| {
        let digits = after(draw, &[0], 9, luhn);
        let digits = [&digits[..], &draw.digits(3), &[0, 0, 0]].concat();
        shaped(
            &digits,
            ["###############", "##.###.###.#-###.###"][nth % 2],
        )
    }),
    ("be_identity_card", "Identiteitskaart", |draw, nth| {
        let digits = [&[5, 9][..], &draw.digits(8)].concat();
        let key = match value(&digits) % 97 {
            0 => 97,
            key => key,
        };
        let digits = [&digits[..], &[(key / 10) as u8, (key % 10) as u8]].concat();
        shaped(&digits, ["############", "###-#######-##"][nth % 2])
    }),
    (
        "ru_ogrnip",
        "\u{41e}\u{413}\u{420}\u{41d}\u{418}\u{41f}",
        |draw, _| {
            let digits = [&[3, 0, 4][..], &draw.digits(11)].concat();
            let check = (value(&digits) % 13 % 10) as u8;
            shaped(&[&digits[..], &[check]].concat(), "###############")
        },
    ),
    ("za_tax_number", "SARS tax number", |draw, nth| {
        let digits = after(draw, &[(nth % 4) as u8], 10, luhn);
        shaped(&digits, ["##########", "####/###/##/#"][nth % 2])
    }),
    ("gn_nifp", "NIFp", |draw, nth| {
        let digits = after(draw, &[5], 9, luhn);
        shaped(&digits, ["#########", "###-###-###"][nth % 2])
    }),
    ("mz_nuit", "NUIT", |draw, nth| {
        let digits = [&[1][..], &draw.digits(7)].concat();
        let check = sum(&digits, &[8, 9, 4, 5, 6, 7, 8, 9]) % 11;
        let digits = [&digits[..], &[if check > 9 { 1 } else { check as u8 }]].concat();
        shaped(&digits, ["#########", "### ### ###"][nth % 2])
    }),
    ("gh_tin", "TIN", |draw, _| {
        let digits = draw.digits(7);
        let check = sum(&digits, &[3, 4, 5, 6, 7, 8, 9]) % 11;
        let check = char::from_digit(check as u32, 10).unwrap_or('X');
        format!("P00{}{check}", shaped(&digits, "#######"))
    }),
    ("gb_upn", "UPN", |draw, nth| {
        const LETTERS: &str = "ABCDEFGHJKLMNPQRTUVWXYZ0123456789";
        let last = ['0', '7', 'A', 'R'][nth % 4];
        let rest = format!("3302005{}{last}", shaped(&draw.digits(4), "####"));
        let values = rest.chars().map(|letter| value_in(LETTERS, letter));
        let all: i64 = values.zip(2..).map(|(value, weight)| value * weight).sum();
        let check = LETTERS.chars().nth((all % 23) as usize);
        format!("{}{rest}", check.unwrap_or('?'))
    }),
    ("in_epic", "EPIC No", |draw, nth| {
        let letters = ["ABC", "WQX", "GDN"][nth % 3];
        [letters, &search(draw, 6, 1, luhn, "#######")].concat()
    }),
    ("cy_tic", "Cyprus TIC", |draw, _| {
        let digits = [&[0][..], &draw.digits(7)].concat();
        let odd = digits.iter().step_by(2).map(|digit| match digit {
            0 => 1,
            1 => 0,
            digit @ 2..=4 => 2 * digit + 1,
            digit => 2 * digit + 3,
        });
        let even = digits.iter().skip(1).step_by(2).copied();
        let all: u8 = odd.chain(even).sum();
        format!(
            "{}{}",
            shaped(&digits, "########"),
            char::from(b'A' + all % 26)
        )
    }),
    ("mx_rfc", "RFC", |draw, nth| {
        const LETTERS: &str = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ";
        let name = ["GODE", "VAZM", "LOPQ"][nth % 3];
        let kind = ["A1", "7Z", "3K"][nth / 3 % 3];
        let all = format!("{name}{}{kind}", shaped(&date(draw), "######"));
        let values = all.chars().map(|letter| value_in(LETTERS, letter));
        let sum: i64 = values
            .zip((2..=13).rev())
            .map(|(value, weight)| value * weight)
            .sum();
        let check = "0123456789A"
            .chars()
            .find(|check| (sum + value_in(LETTERS, *check)) % 11 == 0);
        format!("{all}{}", check.unwrap_or('?'))
    }),
];
