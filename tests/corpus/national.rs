//! How national numbers are made, country by country.
//!
//! Deliberately absent: numbers without a check digit, but those of the United States and of Britain.

use super::{
    digits::{check, completed, date, day_first, luhn, search, shaped, value, verhoeff},
    draw::Draw,
};

/// Makes one: the count of those made so far chooses how it is written.
pub(crate) type Make = fn(&mut Draw, usize) -> String;

/// National numbers: family, what it is called, how it is made.
pub(crate) const NATIONAL: &[(&str, &str, Make)] = &[
    ("br_cpf", "CPF", |draw, nth| {
        let check = |digits: &[u8]| {
            check(
                digits,
                |at, length| (length + 1 - at) as i64,
                |sum| if sum % 11 < 2 { 0 } else { 11 - sum % 11 },
            )
        };
        let mut digits = draw.digits(9);
        digits.push(check(&digits));
        digits.push(check(&digits));
        if nth % 2 == 0 {
            shaped(&digits, "###.###.###-##")
        } else {
            shaped(&digits, "###########")
        }
    }),
    ("br_cnpj", "CNPJ", |draw, nth| {
        let check = |digits: &[u8]| {
            check(
                digits,
                |at, length| ((length - 1 - at) % 8 + 2) as i64,
                |sum| if sum % 11 < 2 { 0 } else { 11 - sum % 11 },
            )
        };
        let mut digits = draw.digits(12);
        digits.push(check(&digits));
        digits.push(check(&digits));
        if nth % 2 == 0 {
            shaped(&digits, "##.###.###/####-##")
        } else {
            shaped(&digits, "##############")
        }
    }),
    ("es_dni", "DNI", |draw, nth| {
        let digits = draw.digits(8);
        let letter = b"TRWAGMYFPDXBNJZSQVHLCKE"[(value(&digits) % 23) as usize] as char;
        format!(
            "{}{}{letter}",
            shaped(&digits, "########"),
            if nth % 3 == 0 { "-" } else { "" }
        )
    }),
    ("es_nie", "NIE", |draw, nth| {
        let first = draw.below(3);
        let digits = draw.digits(7);
        let letter = b"TRWAGMYFPDXBNJZSQVHLCKE"
            [((first as u64 * 10_000_000 + value(&digits)) % 23) as usize]
            as char;
        let joint = ["", "-"][nth % 2];
        format!(
            "{}{joint}{}{joint}{letter}",
            ['X', 'Y', 'Z'][first],
            shaped(&digits, "#######")
        )
    }),
    ("fr_nir", "NIR", |draw, nth| {
        let mut digits = vec![1 + draw.below(2) as u8];
        digits.extend(draw.digits(2));
        digits.extend([0, 1 + draw.below(9) as u8]);
        digits.extend(draw.digits(8));
        let key = 97 - value(&digits) % 97;
        digits.extend([(key / 10) as u8, (key % 10) as u8]);
        if nth % 2 == 0 {
            shaped(&digits, "# ## ## ## ### ### ##")
        } else {
            shaped(&digits, "###############")
        }
    }),
    ("be_national_number", "Rijksregisternummer", |draw, nth| {
        let mut digits = date(draw);
        digits.extend(draw.digits(3));
        let key = 97 - value(&digits) % 97;
        digits.extend([(key / 10) as u8, (key % 10) as u8]);
        if nth % 2 == 0 {
            shaped(&digits, "##.##.##-###.##")
        } else {
            shaped(&digits, "###########")
        }
    }),
    ("nl_bsn", "BSN", |draw, _| {
        search(
            draw,
            8,
            1,
            |d| {
                d.iter()
                    .zip([9, 8, 7, 6, 5, 4, 3, 2, 10])
                    .map(|(d, w)| i64::from(*d) * w)
                    .sum::<i64>()
                    % 11
                    == 0
            },
            "#########",
        )
    }),
    ("pl_pesel", "PESEL", |draw, _| {
        let mut digits = date(draw);
        digits.extend(draw.digits(4));
        let sum: u64 = digits
            .iter()
            .zip([1, 3, 7, 9, 1, 3, 7, 9, 1, 3])
            .map(|(d, w)| u64::from(*d) * w)
            .sum();
        digits.push(((10 - sum % 10) % 10) as u8);
        shaped(&digits, "###########")
    }),
    ("no_fodselsnummer", "Fødselsnummer", |draw, nth| {
        loop {
            let mut digits = day_first(draw);
            digits.extend(draw.digits(3));
            let first = digits
                .iter()
                .zip([3, 7, 6, 1, 8, 9, 4, 5, 2])
                .map(|(d, w)| u64::from(*d) * w)
                .sum::<u64>()
                % 11;
            if first == 1 {
                continue;
            }
            digits.push(((11 - first) % 11) as u8);
            let second = digits
                .iter()
                .zip([5, 4, 3, 2, 7, 6, 5, 4, 3, 2])
                .map(|(d, w)| u64::from(*d) * w)
                .sum::<u64>()
                % 11;
            if second == 1 {
                continue;
            }
            digits.push(((11 - second) % 11) as u8);
            return shaped(
                &digits,
                if nth % 2 == 0 {
                    "###### #####"
                } else {
                    "###########"
                },
            );
        }
    }),
    ("se_personnummer", "Personnummer", |draw, nth| {
        let mut digits = date(draw);
        digits.extend(draw.digits(3));
        let digits = completed(digits, 1, luhn).unwrap_or_default();
        shaped(
            &digits,
            if nth % 2 == 0 {
                "######-####"
            } else {
                "##########"
            },
        )
    }),
    ("fi_hetu", "Henkilötunnus", |draw, _| {
        let mut digits = day_first(draw);
        digits.extend(draw.digits(3));
        let letter = b"0123456789ABCDEFHJKLMNPRSTUVWXY"[(value(&digits) % 31) as usize] as char;
        format!("{}{letter}", shaped(&digits, "######-###"))
    }),
    ("de_tax_id", "Steuer-ID", |draw, nth| {
        loop {
            let digits = draw.digits(10);
            let most = (0..10)
                .map(|one| digits.iter().filter(|digit| **digit == one).count())
                .max();
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
            return shaped(
                &digits,
                if nth % 2 == 0 {
                    "## ### ### ###"
                } else {
                    "###########"
                },
            );
        }
    }),
    ("gb_nhs", "NHS number", |draw, nth| {
        search(
            draw,
            9,
            1,
            |d| {
                d.iter()
                    .zip([10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
                    .map(|(d, w)| i64::from(*d) * w)
                    .sum::<i64>()
                    % 11
                    == 0
            },
            if nth % 2 == 0 {
                "### ### ####"
            } else {
                "##########"
            },
        )
    }),
    ("us_ssn", "SSN", |draw, nth| {
        let (area, group) = (1 + draw.below(665), 1 + draw.below(99));
        let joint = ["-", " ", "-", ""][nth % 4];
        format!(
            "{area:03}{joint}{group:02}{joint}{:04}",
            1 + draw.below(9999)
        )
    }),
    ("us_itin", "ITIN", |draw, nth| {
        let (area, group) = (900 + draw.below(100), 70 + draw.below(19));
        let joint = ["-", "-", ""][nth % 3];
        format!("{area}{joint}{group}{joint}{:04}", draw.below(10_000))
    }),
    ("ca_sin", "SIN", |draw, nth| {
        loop {
            let text = search(
                draw,
                8,
                1,
                luhn,
                if nth % 2 == 0 {
                    "### ### ###"
                } else {
                    "###-###-###"
                },
            );
            if !text.starts_with(['0', '8']) {
                return text;
            }
        }
    }),
    ("cn_resident_id", "身份证", |draw, _| {
        let mut digits = vec![1, 1, 0, 1, 0, 1, 1, 9];
        digits.extend(date(draw));
        digits.extend(draw.digits(3));
        let sum: u64 = digits
            .iter()
            .zip([7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2])
            .map(|(d, w)| u64::from(*d) * w)
            .sum();
        format!(
            "{}{}",
            shaped(&digits, "#################"),
            b"10X98765432"[(sum % 11) as usize] as char
        )
    }),
    ("tr_tckn", "TCKN", |draw, _| {
        let mut digits = vec![1 + draw.below(9) as u8];
        digits.extend(draw.digits(8));
        let odd: i64 = digits.iter().step_by(2).map(|d| i64::from(*d)).sum();
        let even: i64 = digits
            .iter()
            .skip(1)
            .step_by(2)
            .map(|d| i64::from(*d))
            .sum();
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
        let rest = digits
            .iter()
            .zip([2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9])
            .map(|(d, w)| u64::from(*d) * w)
            .sum::<u64>()
            % 11;
        digits.push(if rest == 10 { 1 } else { rest as u8 });
        shaped(&digits, "#############")
    }),
    ("ch_ahv", "AHV-Nr", |draw, _| {
        let mut digits = vec![7, 5, 6];
        digits.extend(draw.digits(9));
        let sum: u64 = digits
            .iter()
            .enumerate()
            .map(|(at, d)| u64::from(*d) * if at % 2 == 0 { 1 } else { 3 })
            .sum();
        digits.push(((10 - sum % 10) % 10) as u8);
        shaped(&digits, "###.####.####.##")
    }),
    ("ar_cuit", "CUIT", |draw, _| {
        search(
            draw,
            10,
            1,
            |d| {
                d.iter()
                    .zip([5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1])
                    .map(|(d, w)| i64::from(*d) * w)
                    .sum::<i64>()
                    % 11
                    == 0
            },
            "##-########-#",
        )
    }),
    ("ru_snils", "СНИЛС", |draw, _| {
        let mut digits = draw.digits(9);
        let sum = digits
            .iter()
            .zip((1..=9).rev())
            .map(|(d, w)| u64::from(*d) * w)
            .sum::<u64>()
            % 101
            % 100;
        digits.extend([(sum / 10) as u8, (sum % 10) as u8]);
        shaped(&digits, "###-###-### ##")
    }),
    ("za_id", "SA ID number", |draw, _| {
        let mut digits = date(draw);
        digits.extend(draw.digits(4));
        digits.extend([0, 8]);
        shaped(
            &completed(digits, 1, luhn).unwrap_or_default(),
            "#############",
        )
    }),
    ("il_id", "תעודת זהות", |draw, _| {
        search(draw, 8, 1, luhn, "#########")
    }),
    ("sg_nric", "NRIC", |draw, _| {
        let digits = draw.digits(7);
        let sum: u64 = digits
            .iter()
            .zip([2, 7, 6, 5, 4, 3, 2])
            .map(|(d, w)| u64::from(*d) * w)
            .sum();
        format!(
            "S{}{}",
            shaped(&digits, "#######"),
            b"JZIHGFEDCBA"[(sum % 11) as usize] as char
        )
    }),
    ("gb_nino", "National Insurance", |draw, nth| {
        let first = *draw.one(b"ABCEGHJKLMNPRSTWXYZ") as char;
        let letters = [first, *draw.one(b"ACEHJLMPRSWXY") as char];
        let digits = draw.digits(6);
        let shape = ["######", " ## ## ## "][nth % 2];
        let last = *draw.one(b"ABCD") as char;
        let middle = shaped(&digits, shape);
        // No number begins with these.
        let letters = match letters {
            ['B', 'G']
            | ['G', 'B']
            | ['K', 'N']
            | ['N', 'K']
            | ['N', 'T']
            | ['T', 'N']
            | ['Z', 'Z'] => ['A', 'B'],
            letters => letters,
        };
        format!("{}{}{middle}{last}", letters[0], letters[1])
    }),
    ("es_cif", "CIF", |draw, _| {
        let digits = draw.digits(7);
        let doubled = |digit: u8| digit * 2 / 10 + digit * 2 % 10;
        let sum: u8 = digits
            .iter()
            .enumerate()
            .map(|(at, digit)| if at % 2 == 0 { doubled(*digit) } else { *digit })
            .sum();
        let kind = *draw.one(b"ABEH") as char;
        let check = (10 - sum % 10) % 10;
        format!("{kind}{}{check}", shaped(&digits, "#######"))
    }),
    ("lu_matricule", "Matricule", |draw, nth| {
        let mut digits = vec![1, 9];
        digits.extend(date(draw));
        digits.extend(draw.digits(3));
        let digits = completed(digits, 1, luhn).unwrap_or_default();
        // The last digit is found among ten as the detectors check it: by a group of the symmetries of a pentagon.
        let last = (0..10).find(|last| {
            let all = [&digits[..11], &[*last]].concat();
            verhoeff(&all)
        });
        let all = [digits, vec![last.unwrap_or_default()]].concat();
        shaped(&all, ["#############", "#### ## ## ### ##"][nth % 2])
    }),
    ("mx_clabe", "CLABE", |draw, _| {
        let sum = |digits: &[u8]| -> u32 {
            let weights = [3, 7, 1].into_iter().cycle();
            let digits = digits.iter().take(17);
            digits
                .zip(weights)
                .map(|(digit, weight)| u32::from(*digit) * weight % 10)
                .sum()
        };
        let mut digits = draw.digits(17);
        digits.push(((10 - sum(&digits) % 10) % 10) as u8);
        shaped(&digits, "##################")
    }),
    ("br_pis", "PIS", |draw, nth| {
        let mut digits = draw.digits(10);
        let weights = [3, 2, 9, 8, 7, 6, 5, 4, 3, 2];
        let sum: u32 = digits
            .iter()
            .zip(weights)
            .map(|(digit, weight)| u32::from(*digit) * weight)
            .sum();
        let check = 11 - sum % 11;
        digits.push(if check > 9 { 0 } else { check as u8 });
        shaped(&digits, ["###.#####.##-#", "###########"][nth % 2])
    }),
    ("mx_nss", "NSS", |draw, _| {
        search(draw, 10, 1, luhn, "###########")
    }),
    ("in_aadhaar", "Aadhaar number", |draw, nth| {
        let mut digits = vec![2 + draw.below(8) as u8];
        digits.extend(draw.digits(10));
        let digits = completed(digits, 1, verhoeff).unwrap_or_default();
        shaped(&digits, ["#### #### ####", "############"][nth % 2])
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
    ("md_idnp", "IDNP", |draw, _| {
        let mut digits = vec![2];
        digits.extend(draw.digits(11));
        digits.push(check(&digits, |at, _| [7, 3, 1][at % 3], |sum| sum % 10));
        shaped(&digits, "#############")
    }),
    ("ar_cbu", "CBU", |draw, nth| {
        let check = |digits: &[u8]| {
            let weight = |at, length| [3, 1, 7, 9][(length - 1_usize - at) % 4];
            check(digits, weight, |sum| (10 - sum % 10) % 10)
        };
        let mut digits = draw.digits(7);
        digits.push(check(&digits));
        let mut account = draw.digits(13);
        account.push(check(&account));
        digits.extend(account);
        let shape = ["######################", "######## ##############"][nth % 2];
        shaped(&digits, shape)
    }),
];
