//! Digits with check digits: found by search, or as the issuers describe them.
//!
//! Deliberately absent: which number has which (`national.rs`).

use super::draw::Draw;

/// The digits in the place of `#`.
pub(crate) fn shaped(digits: &[u8], shape: &str) -> String {
    let mut digits = digits.iter();
    shape
        .chars()
        .map(|letter| {
            if letter == '#' {
                digits.next().map_or('#', |digit| char::from(b'0' + digit))
            } else {
                letter
            }
        })
        .collect()
}

pub(crate) fn search(
    draw: &mut Draw,
    length: usize,
    more: usize,
    holds: fn(&[u8]) -> bool,
    shape: &str,
) -> String {
    loop {
        let digits = draw.digits(length);
        if let Some(digits) = completed(digits, more, holds) {
            return shaped(&digits, shape);
        }
    }
}

/// The digits and what makes them hold.
pub(crate) fn completed(digits: Vec<u8>, more: usize, holds: fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    (0..10_u32.pow(more as u32))
        .map(|last| {
            [
                digits.clone(),
                format!("{last:0more$}")
                    .bytes()
                    .map(|byte| byte - b'0')
                    .collect(),
            ]
            .concat()
        })
        .find(|all| holds(all))
}

/// Whether the digit of Luhn holds, which is the last.
pub(crate) fn luhn(digits: &[u8]) -> bool {
    let doubled = [0, 2, 4, 6, 8, 1, 3, 5, 7, 9];
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            if at % 2 == 1 {
                doubled[usize::from(*digit)]
            } else {
                u32::from(*digit)
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether the digit of Verhoeff holds, which is the last: turns and reflections of a pentagon come to none in all.
pub(crate) fn verhoeff(digits: &[u8]) -> bool {
    let then = |left: u8, right: u8| match (left < 5, right < 5) {
        (true, true) => (left + right) % 5,
        (true, false) => (left + right) % 5 + 5,
        (false, true) => (left - right) % 5 + 5,
        (false, false) => (left + 5 - right) % 5,
    };
    let moved = |digit: &u8, times: usize| {
        (0..times).fold(*digit, |digit, _| {
            [1, 5, 7, 6, 2, 8, 3, 0, 9, 4][usize::from(digit)]
        })
    };
    let digits = digits.iter().rev().enumerate();
    digits.fold(0, |all, (at, digit)| then(all, moved(digit, at % 8))) == 0
}

pub(crate) fn check(digits: &[u8], weight: fn(usize, usize) -> i64, of: fn(i64) -> i64) -> u8 {
    let sum = digits
        .iter()
        .enumerate()
        .map(|(at, digit)| i64::from(*digit) * weight(at, digits.len()))
        .sum();
    of(sum) as u8
}

pub(crate) fn value(digits: &[u8]) -> u64 {
    digits
        .iter()
        .fold(0, |all, digit| all * 10 + u64::from(*digit))
}

pub(crate) fn date(draw: &mut Draw) -> Vec<u8> {
    let (year, month, day) = (40 + draw.below(59), 1 + draw.below(12), 1 + draw.below(28));
    format!("{year:02}{month:02}{day:02}")
        .bytes()
        .map(|byte| byte - b'0')
        .collect()
}

pub(crate) fn day_first(draw: &mut Draw) -> Vec<u8> {
    let date = date(draw);
    [&date[4..], &date[2..4], &date[..2]].concat()
}
