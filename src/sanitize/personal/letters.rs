//! How the check letters and digits of numbers that have letters in them are found.
//!
//! Deliberately absent: where such a number stands in a text (`lettered.rs`), but for those of France, whose letter stands
//! between its digits, and of Britain, which has nothing else to check.

use std::ops::Range;

use super::checks::{is_day, number as value_of, weighed};

/// The check of a Finnish code.
pub(super) fn hetu(digits: &[u8]) -> u8 {
    b"0123456789ABCDEFHJKLMNPRSTUVWXY"[(value_of(digits) % 31) as usize]
}

/// Ends the number of a department of Corsica.
pub(super) const fn is_corsica(byte: u8) -> bool {
    matches!(byte, b'A' | b'B')
}

/// Where a French number begins whose department is one of Corsica, of which the last eight digits stand at `rest`.
pub(super) fn corsican(text: &[u8], rest: &Range<usize>) -> Option<usize> {
    let mut digits = [0; 15];
    let mut at = rest.start;
    // From the letter back: two, two and two digits, and one, with single spaces between or none.
    let blank = |at: usize| at > 0 && text[at - 1] == b' ';
    at -= usize::from(blank(at));
    let letter = *text.get(at.checked_sub(1)?)?;
    if !is_corsica(letter) {
        return None;
    }
    at -= 1;
    for place in (0..6).rev() {
        // Spaces stand before the department, the month and the year.
        at -= usize::from(matches!(place, 0 | 2 | 4) && blank(at));
        at = at.checked_sub(1)?;
        digits[place] = text[at].checked_sub(b'0').filter(|digit| *digit < 10)?;
    }
    let alone = at == 0 || !text[at - 1].is_ascii_alphanumeric();
    let mut rest = text[rest.clone()].iter().filter(|byte| **byte != b' ');
    let corsica = digits[5] == 2;
    // The department counts as nineteen or eighteen.
    (digits[5], digits[6]) = if letter == b'A' { (1, 9) } else { (1, 8) };
    for digit in &mut digits[7..] {
        *digit = rest.next()?.checked_sub(b'0').filter(|digit| *digit < 10)?;
    }
    let holds = 97 - value_of(&digits[..13]) % 97 == value_of(&digits[13..]);
    let born = matches!(digits[0], 1..=4 | 7 | 8)
        && matches!(value_of(&digits[3..5]), 1..=12 | 20 | 30..=42);
    (alone && corsica && born && holds && rest.next().is_none()).then_some(at)
}

/// The sum of the digits of products.
fn crossed(digits: impl Iterator<Item = u8>, weights: &[u8]) -> u32 {
    let products = digits
        .zip(weights)
        .map(|(digit, weight)| u32::from(digit * weight));
    products.map(|product| product / 10 + product % 10).sum()
}

/// Letters as two digits, from one on.
const fn two_digits(letter: u8) -> [u8; 2] {
    let value = letter - b'A' + 1;
    [value / 10, value % 10]
}

/// The number of somebody insured in Germany: a letter, eight digits and a check.
pub(super) fn german_health(letter: u8, digits: &[u8]) -> bool {
    let all = two_digits(letter)
        .into_iter()
        .chain(digits[..8].iter().copied());
    crossed(all, &[1, 2, 1, 2, 1, 2, 1, 2, 1, 2]) % 10 == u32::from(digits[8])
}

/// The number of a pension in Germany: an area, a day of birth, a letter, two digits and a check.
pub(super) fn german_pension(digits: &[u8], letter: u8, last: [u8; 3]) -> bool {
    if !letter.is_ascii_uppercase() || !last.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let [first, second, check] = last.map(|byte| byte - b'0');
    let all = digits
        .iter()
        .copied()
        .chain(two_digits(letter))
        .chain([first, second]);
    // Days have fifty more where a number was given out anew.
    matches!(value_of(&digits[2..4]), 1..=31 | 51..=81)
        && (1..=12).contains(&value_of(&digits[4..6]))
        && crossed(all, &[2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]) % 10 == u32::from(check)
}

pub(super) fn chinese(digits: &[u8]) -> bool {
    let year = value_of(&digits[6..10]);
    matches!(value_of(&digits[..2]), 11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81..=83)
        && (1900..=2030).contains(&year)
        && is_day(value_of(&digits[10..12]), value_of(&digits[12..14]))
}

/// The check of a Chilean number, of which ten is written as `K`.
pub(super) fn rut(digits: &[u8]) -> i32 {
    let sum: i32 = digits
        .iter()
        .rev()
        .zip([2, 3, 4, 5, 6, 7, 2, 3])
        .map(|(digit, weight)| i32::from(*digit) * weight)
        .sum();
    (11 - sum % 11) % 11
}

pub(super) fn singapore(first: u8, digits: &[u8]) -> Option<u8> {
    let sum = weighed(digits, &[2, 7, 6, 5, 4, 3, 2]);
    let offset = match first {
        b'T' | b'G' => 4,
        b'M' => 3,
        _ => 0,
    };
    let rest = (sum + offset) % 11;
    let letters: &[u8] = match first {
        b'S' | b'T' => b"JZIHGFEDCBA",
        b'F' | b'G' => b"XWUTRQPNMLK",
        _ => return b"KLJNPQRTUWX".get(10 - rest as usize).copied(),
    };
    letters.get(rest as usize).copied()
}

/// Where a British number that begins at `start` is: all at once, or in pairs.
pub(super) fn british(text: &[u8], start: usize) -> Option<Range<usize>> {
    let run = text.get(start..)?;
    let [first, second, ..] = *run else {
        return None;
    };
    let letters = first.is_ascii_uppercase()
        && second.is_ascii_uppercase()
        && !b"DFIQUV".contains(&first)
        && !b"DFIOQUV".contains(&second)
        && !matches!(
            &[first, second],
            b"BG" | b"GB" | b"KN" | b"NK" | b"NT" | b"TN" | b"ZZ"
        );
    // The digits in the middle of a number in pairs stand behind a blank or a dash, too.
    let joint = run.get(2).filter(|byte| matches!(byte, b' ' | b'-'));
    let blank = usize::from(joint.is_some());
    let mut at = 2;
    for _ in 0..3 {
        let pair = run.get(at + blank..at + blank + 2)?;
        let joined = joint.is_none_or(|joint| run[at] == *joint);
        if !letters || !joined || !pair.iter().all(u8::is_ascii_digit) {
            return None;
        }
        at += blank + 2;
    }
    at += usize::from(joint.is_some() && run.get(at) == joint);
    let last = *run.get(at)?;
    let alone = run
        .get(at + 1)
        .is_none_or(|byte| !byte.is_ascii_alphanumeric());
    (matches!(last, b'A'..=b'D') && alone).then_some(start..start + at + 1)
}

/// Whether this is the check of a Spanish number of a company: a digit, a letter, or either.
pub(super) fn cif(kind: u8, digits: &[u8], check: u8) -> bool {
    let odd = digits.iter().step_by(2);
    let odd: u8 = odd.map(|digit| digit * 2 / 10 + digit * 2 % 10).sum();
    let even: u8 = digits.iter().skip(1).step_by(2).sum();
    let value = (10 - (odd + even) % 10) % 10;
    let digit = check == b'0' + value && !matches!(kind, b'P' | b'Q' | b'R' | b'S' | b'N' | b'W');
    let letter =
        check == b"JABCDEFGHI"[usize::from(value)] && !matches!(kind, b'A' | b'B' | b'E' | b'H');
    matches!(kind, b'A'..=b'H' | b'J' | b'N' | b'P'..=b'S' | b'U' | b'V' | b'W')
        && (digit || letter)
}

pub(super) fn irish(digits: &[u8], second: u8) -> u8 {
    let more = if matches!(second, b' ' | b'W' | b'T') {
        0
    } else {
        i32::from(second - b'A') + 1
    };
    let rest = (weighed(digits, &[8, 7, 6, 5, 4, 3, 2]) + more * 9) % 23;
    if rest == 0 {
        b'W'
    } else {
        b'A' + rest as u8 - 1
    }
}

/// The check of a number of Hong Kong: ten is written as a letter.
pub(super) fn hong_kong(letters: &[u8], digits: &[u8]) -> u8 {
    let value = |letter: &u8| i32::from(letter - b'A' + 10);
    let first = match letters {
        [first, second] => value(first) * 9 + value(second) * 8,
        [letter] => 36 * 9 + value(letter) * 8,
        _ => 0,
    };
    let sum = first + weighed(digits, &[7, 6, 5, 4, 3, 2]);
    ((11 - sum % 11) % 11) as u8
}

/// Whether these are the letter and nine digits of a citizen or a resident of Taiwan.
pub(super) fn taiwan(letter: u8, digits: &[u8]) -> bool {
    matches!(digits[0], 1 | 2 | 8 | 9) && taiwanese(letter, digits)
}

/// Whether these are the two letters and eight digits that residents of Taiwan had until 2021: the second letter counts as the
/// last digit of its code.
pub(super) fn old_taiwan(letters: [u8; 2], digits: &[u8]) -> bool {
    let mut all = [0; 9];
    all[0] = letters[1] - b'A';
    all[1..].copy_from_slice(&digits[..8]);
    taiwanese(letters[0], &all)
}

fn taiwanese(letter: u8, digits: &[u8]) -> bool {
    const CODES: [u8; 26] = [
        10, 11, 12, 13, 14, 15, 16, 17, 34, 18, 19, 20, 21, 22, 35, 23, 24, 25, 26, 27, 28, 29, 32,
        30, 31, 33,
    ];
    let code = CODES[usize::from(letter - b'A')];
    let sum = i32::from(code / 10)
        + i32::from(code % 10) * 9
        + weighed(digits, &[8, 7, 6, 5, 4, 3, 2, 1, 1]);
    sum % 10 == 0
}

/// The number of a taxpayer of Venezuela, whose first letter counts as a digit by four.
pub(super) fn venezuelan(letter: u8, digits: &[u8]) -> bool {
    let first = match letter {
        b'V' => 4,
        b'E' => 8,
        b'J' => 12,
        b'P' => 16,
        b'G' => 20,
        _ => return false,
    };
    let rest = (first + weighed(digits, &[3, 2, 7, 6, 5, 4, 3, 2])) % 11;
    i32::from(digits[8]) == if rest < 2 { 0 } else { 11 - rest }
}

/// The number of a card of a citizen of Portugal: nine digits, two letters or digits, and a digit as that of Luhn.
pub(super) fn portuguese(digits: &[u8], rest: &[u8]) -> bool {
    let value = |byte: u8| match byte {
        b'0'..=b'9' => Some(u32::from(byte - b'0')),
        b'A'..=b'Z' => Some(u32::from(byte - b'A') + 10),
        _ => None,
    };
    let all = digits.iter().map(|digit| Some(u32::from(*digit)));
    let all = all.chain(rest.iter().map(|byte| value(*byte)));
    let sum: Option<u32> = all
        .zip([true, false].into_iter().cycle())
        .map(|(value, twice)| {
            let value = if twice { value? * 2 } else { value? };
            Some(if twice && value > 9 { value - 9 } else { value })
        })
        .sum();
    rest[2].is_ascii_digit() && sum.is_some_and(|sum| sum.is_multiple_of(10))
}

pub(super) fn codice_fiscale(run: &[u8]) -> bool {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let digit = |byte: u8| {
        byte.is_ascii_digit()
            || matches!(
                byte.to_ascii_uppercase(),
                b'L' | b'M' | b'N' | b'P' | b'Q' | b'R' | b'S' | b'T' | b'U' | b'V'
            )
    };
    let form = run.iter().enumerate().all(|(at, byte)| match at {
        6 | 7 | 9 | 10 | 12..=14 => digit(*byte),
        _ => byte.is_ascii_alphabetic(),
    });
    if !form
        || !matches!(run[8].to_ascii_uppercase(), b'A'..=b'E' | b'H' | b'L' | b'M' | b'P' | b'R'..=b'T')
        || !run.iter().any(u8::is_ascii_digit)
    {
        return false;
    }
    let sum: u32 = run[..15]
        .iter()
        .enumerate()
        .map(|(at, byte)| {
            let value = u32::from(if byte.is_ascii_digit() {
                byte - b'0'
            } else {
                byte.to_ascii_uppercase() - b'A'
            });
            if at % 2 == 0 {
                ODD[value as usize]
            } else {
                value
            }
        })
        .sum();
    run[15].to_ascii_uppercase() == b'A' + (sum % 26) as u8
}

pub(super) fn curp(run: &[u8]) -> bool {
    let form = run.iter().enumerate().all(|(at, byte)| match at {
        4..=9 | 17 => byte.is_ascii_digit(),
        16 => byte.is_ascii_alphanumeric(),
        _ => byte.is_ascii_uppercase(),
    });
    if !form || !matches!(run[10], b'H' | b'M' | b'X') {
        return false;
    }
    // The alphabet has Ñ after N.
    let value = |byte: u8| match byte {
        b'0'..=b'9' => i32::from(byte - b'0'),
        b'A'..=b'N' => i32::from(byte - b'A') + 10,
        _ => i32::from(byte - b'A') + 11,
    };
    let sum: i32 = run[..17]
        .iter()
        .enumerate()
        .map(|(at, byte)| value(*byte) * (18 - at as i32))
        .sum();
    (10 - sum % 10) % 10 == i32::from(run[17] - b'0')
}

/// Whether this is a number of Mauritius: a letter, a day, and digits, of which the last may be a letter.
pub(super) fn mauritian(run: &[u8]) -> bool {
    let Some((last, rest)) = run.split_last() else {
        return false;
    };
    if !last.is_ascii_digit() && !last.is_ascii_uppercase() {
        return false;
    }
    let of_day: Option<&[u8; 4]> = rest.get(1..5).and_then(|day| day.first_chunk());
    let Some(day) = of_day.map(|day| day.map(|digit| u64::from(digit - b'0'))) else {
        return false;
    };
    let sum: u32 = rest
        .iter()
        .zip((2..=14).rev())
        .map(|(byte, weight)| place(*byte) * weight)
        .sum();
    run.len() == 14
        && is_day(day[2] * 10 + day[3], day[0] * 10 + day[1])
        && place(*last) == (17 - sum % 17) % 17
}

/// The place of a digit or a letter among them all.
fn place(byte: u8) -> u32 {
    char::from(byte).to_digit(36).unwrap_or(0)
}

/// Two letters and seven digits of a person who pays taxes in Belarus: the second letter counts as a digit.
pub(super) fn belarusian(letters: [u8; 2], digits: &[u8]) -> bool {
    let second = b"ABCEHKMOPT"
        .iter()
        .position(|letter| *letter == letters[1]);
    let Some(second) = second.filter(|_| b"ABCEHKM".contains(&letters[0])) else {
        return false;
    };
    let first = place(letters[0]) as i32 * 29 + second as i32 * 23;
    let sum = first + weighed(digits, &[19, 17, 13, 7, 5, 3]);
    sum % 11 == i32::from(digits[6])
}

/// Seven digits with a day, a letter, three digits, two letters and a check: a person in Belarus, with the check of passports.
pub(super) fn belarusian_person(run: &[u8]) -> bool {
    let Some([sex, d, e, m, n, y, z, region, a, b, c, first, second, check]) = run.first_chunk()
    else {
        return false;
    };
    let digits = [sex, d, e, m, n, y, z, a, b, c, check];
    if !digits.iter().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let pair = |tens: &u8, ones: &u8| u64::from((tens - b'0') * 10 + ones - b'0');
    let value = |byte: &u8| match byte {
        b'0'..=b'9' => byte - b'0',
        letter => letter - b'A' + 10,
    };
    let citizen = matches!(&[*first, *second], b"PB" | b"BA" | b"BI");
    if !matches!(sex, b'1'..=b'6') || !b"ABCEHKM".contains(region) || !citizen {
        return false;
    }
    let all: Vec<u8> = run[..13].iter().map(value).collect();
    let sum = weighed(&all, &[7, 3, 1, 7, 3, 1, 7, 3, 1, 7, 3, 1, 7]);
    is_day(pair(m, n), pair(d, e)) && sum % 10 == i32::from(check - b'0')
}

/// A letter that says what kind it is, two zeros, seven digits and a check, of which ten is written as a letter.
pub(super) fn ghanaian(letter: u8, digits: &[u8], check: u8) -> bool {
    let rest = weighed(digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9]) % 11;
    let expected = if rest == 10 { b'X' } else { b'0' + rest as u8 };
    matches!(letter, b'C' | b'G' | b'P' | b'Q' | b'V')
        && digits.starts_with(&[0, 0])
        && digits.len() == 9
        && check == expected
}

/// Whether a letter and the twelve characters behind it are the number of a pupil in England: an authority, a school, a year
/// and a serial number, of which the last may be a letter.
pub(super) fn pupil(check: u8, rest: &[u8]) -> bool {
    let value = |byte: u8| {
        let letters = b"ABCDEFGHJKLMNPQRTUVWXYZ0123456789";
        letters.iter().position(|letter| *letter == byte)
    };
    let Some(all) = rest.first_chunk::<12>() else {
        return false;
    };
    let sum: Option<usize> = all
        .iter()
        .zip(2..)
        .map(|(byte, weight)| Some(value(*byte)? * weight))
        .sum();
    let more = rest.get(12).is_some_and(u8::is_ascii_alphanumeric);
    let digits = |byte: &u8| u64::from(byte.wrapping_sub(b'0'));
    let [a, b, c] = [&all[0], &all[1], &all[2]].map(digits);
    let authority = matches!(a * 100 + b * 10 + c, 201..=213 | 301..=421 | 800..=943);
    // All but the last are digits.
    let authority = authority && all[..11].iter().all(u8::is_ascii_digit);
    authority && !more && sum.is_some_and(|sum| value(check) == Some(sum % 23))
}

/// Nine digits, `B` and two digits of somebody who pays taxes in the Netherlands: those of a person, or all of it with the
/// country before hold.
pub(super) fn dutch(text: &[u8], span: &Range<usize>) -> bool {
    let Some(&[b'B', tens, ones]) = text.get(span.end..span.end + 3) else {
        return false;
    };
    let digits = &text[span.clone()];
    if !tens.is_ascii_digit() || !ones.is_ascii_digit() || [tens, ones] == [b'0', b'0'] {
        return false;
    }
    let nine: [u8; 9] = std::array::from_fn(|at| digits[at] - b'0');
    let person = weighed(&nine, &[9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 == 0;
    // `NL` is 2321, and `B` eleven.
    let all = ((2_321_000_000_000 + value_of(&nine)) * 100 + 11) * 100;
    let last = value_of(&[tens - b'0', ones - b'0']);
    person || (all + last) % 97 == 1
}

/// Whether this letter is the check of eight digits of somebody who pays taxes in Cyprus.
pub(super) fn cypriot(digits: &[u8], letter: u8) -> bool {
    let odd = |digit: &u8| [1, 0, 5, 7, 9, 13, 15, 17, 19, 21][usize::from(*digit)];
    let sum: u32 = digits.iter().step_by(2).map(odd).sum();
    let even = digits.iter().skip(1).step_by(2);
    let sum = sum + even.map(|digit| u32::from(*digit)).sum::<u32>();
    !digits.starts_with(&[1, 2]) && letter == b'A' + (sum % 26) as u8
}

/// The number of a person who pays taxes in Mexico: four letters of a name, a day, two letters or digits and a check.
pub(super) fn rfc(run: &[u8; 13]) -> bool {
    let form = run.iter().enumerate().all(|(at, byte)| match at {
        ..4 => byte.is_ascii_uppercase(),
        4..10 => byte.is_ascii_digit(),
        _ => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
    });
    let two = |at: usize| u64::from((run[at] & 15) * 10 + (run[at + 1] & 15));
    if !form || !is_day(two(6), two(8)) || !matches!(run[12], b'0'..=b'9' | b'A') {
        return false;
    }
    // The alphabet has an ampersand after N.
    let value = |byte: u8| match byte {
        b'0'..=b'9' => i32::from(byte - b'0'),
        b'A'..=b'N' => i32::from(byte - b'A') + 10,
        _ => i32::from(byte - b'A') + 11,
    };
    let sum: i32 = run[..12]
        .iter()
        .zip((2..=13).rev())
        .map(|(byte, weight)| value(*byte) * weight)
        .sum();
    (11 - sum % 11) % 11 == value(run[12])
}
