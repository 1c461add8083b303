//! Check digits.
//!
//! Guarantees: pure arithmetic over digits, without allocation. Deliberately absent: which number uses which.

/// The digit of Luhn, which is the last.
pub(super) fn luhn(digits: &[u8]) -> bool {
    luhn_after(0, digits)
}

/// The same where digits go before that come to this sum.
pub(super) fn luhn_after(sum: u32, digits: &[u8]) -> bool {
    let twice = |digit: u32| digit * 2 - if digit > 4 { 9 } else { 0 };
    let (first, pairs) = digits.as_rchunks::<2>();
    let sum = first.iter().fold(sum, |sum, digit| sum + u32::from(*digit));
    let sum = pairs.iter().fold(sum, |sum, [left, right]| {
        sum + twice(u32::from(*left)) + u32::from(*right)
    });
    sum.is_multiple_of(10)
}

/// The digit of Verhoeff, which is the last.
pub(super) fn verhoeff(digits: &[u8]) -> bool {
    const TIMES: [[u8; 10]; 10] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
        [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
        [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
        [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
        [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
        [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
        [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
        [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
        [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    ];
    const TURNED: [[u8; 10]; 8] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
        [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
        [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
        [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
        [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
        [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
        [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
    ];
    digits.iter().rev().enumerate().fold(0, |sum, (at, digit)| {
        TIMES[usize::from(sum)][usize::from(TURNED[at % 8][usize::from(*digit)])]
    }) == 0
}

/// ISO 7064, mod 11,10: the last digit.
pub(super) fn mod_11_10(digits: &[u8]) -> bool {
    let Some((last, rest)) = digits.split_last() else {
        return false;
    };
    let product = rest.iter().fold(10, |product, digit| {
        let sum = (u32::from(*digit) + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == u32::from(*last)
}

/// The sum of digits, each by its weight.
#[inline]
pub(super) fn weighed(digits: &[u8], weights: &[i32]) -> i32 {
    // Sums stay small: nothing is looked at while they are made.
    digits
        .iter()
        .zip(weights)
        .map(|(digit, weight)| i32::from(*digit).wrapping_mul(*weight))
        .fold(0, i32::wrapping_add)
}

/// The number that digits make.
pub(super) fn number(digits: &[u8]) -> u64 {
    digits
        .iter()
        .fold(0, |all, digit| all * 10 + u64::from(*digit))
}

/// Whether these two digits are a month and those a day of one.
pub(super) fn is_day(month: u64, day: u64) -> bool {
    let last = match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => 0,
    };
    (1..=last).contains(&day)
}

/// Whether all digits are the same.
pub(super) fn same(digits: &[u8]) -> bool {
    digits.windows(2).all(|pair| pair[0] == pair[1])
}
