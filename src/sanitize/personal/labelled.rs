//! Numbers of few digits with a letter between them, which only an assignment before them leads to.
//!
//! Guarantees: looks at no more than sixteen bytes behind an assignment. Deliberately absent: such numbers in prose,
//! and behind names that no secret ends with, which nothing leads to.

use super::{
    checks::{is_day, number as value_of},
    letters::{hetu, hong_kong},
    national::{Countries, Found, Near},
};

/// How long a code of Finland is, in bytes.
const LONG: usize = 11;
/// What may stand between an assignment and its value, in bytes.
const BLANK: usize = 4;

/// The number behind the assignment at `at`. Six digits stand near it, as in all of these numbers: behind most they do not, and
/// the survey has left them out.
pub(super) fn behind(text: &[u8], at: usize, countries: &Countries, near: &Near) -> Option<Found> {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'"' | b'\'' | b'\\');
    let skipped = text[at + 1..].iter().take(BLANK).take_while(blank).count();
    let start = at + 1 + skipped;
    let rest = text.get(start..)?;
    let alone = |byte: &u8| !byte.is_ascii_alphanumeric();
    if let Some(run) = rest.first_chunk()
        && finnish(run)
        && rest.get(LONG).is_none_or(alone)
    {
        return Some((start..start + LONG, countries.called("fi_hetu")));
    }
    // With brackets `headed.rs` tells it; without them a digit is told with its row: `lettered.rs`.
    let bare = rest.first_chunk().filter(|run| with_a(run))?;
    let span = start..start + bare.len();
    let alone = rest.get(bare.len()).is_none_or(alone);
    (alone && countries.is_announced_in_letters("hk_id", text, &span, near))
        .then(|| (span, countries.called("hk_id")))
}

/// A number of Hong Kong whose check is ten: a letter, six digits and `A`.
fn with_a(run: &[u8; 8]) -> bool {
    let [letter, digits @ .., check] = run;
    let digits: [u8; 6] = digits.map(|byte| byte.wrapping_sub(b'0'));
    letter.is_ascii_uppercase()
        && *check == b'A'
        && digits.iter().all(|digit| *digit < 10)
        && hong_kong(&[*letter], &digits) == 10
}

/// A code of Finland with the sign of a century that is no dash: letters from 2000 on, and those that came when signs ran out.
fn finnish(run: &[u8; LONG]) -> bool {
    let (day, rest) = run.split_at(6);
    let digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    let (sign, serial, check) = (rest[0], &rest[1..4], rest[4]);
    if !matches!(sign, b'A'..=b'F' | b'U'..=b'Y' | b'+') || !digits(day) || !digits(serial) {
        return false;
    }
    let all: [u8; 9] = std::array::from_fn(|at| run[if at < 6 { at } else { at + 1 }] - b'0');
    is_day(value_of(&all[2..4]), value_of(&all[..2])) && hetu(&all) == check
}
