//! Personal data: C6, whose check digits hold, and C7, which only looks like it.
//!
//! One pass finds rows of digits, grouped as people group them, and long runs of letters and digits. Lengths, groups and issuer
//! ranges are asked first, then check digits, and then, where one check digit is too little, a word beside the number that says
//! what it is.
//!
//! Guarantees: linear in the text, since every look around a number is bounded, and rows of tables are gone over once for all
//! numbers in them; nothing is allocated for a text without numbers; the span of a hit is the number and nothing else.
//! Deliberately absent: numbers without a check digit (in C6), but for those of the United States, of Britain, of taxpayers of
//! India, the oldest of Czechia and Slovakia, accounts of persons in Russia and those of `people.rs`, beside their name, cards
//! that a program has under the name of something else, and whether a number was ever issued.
// SECURITY 7

mod accounts;
mod americas;
mod card;
mod checks;
mod columns;
mod contact;
mod country;
mod domestic;
mod europe;
mod further;
mod grouped;
mod headed;
mod iban;
mod joints;
mod keyed;
mod labelled;
mod labels;
mod lettered;
mod letters;
mod named;
mod national;
mod number;
mod old_world;
mod people;
#[cfg(test)]
mod plain;
mod rule;
mod set;
mod shapes;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod words;
mod world;

pub use contact::{Contact, contact};

use std::{
    ops::Range,
    sync::{Arc, LazyLock},
};

use fearless_simd::{Level, Simd, dispatch};

use self::{
    national::{Countries, Found, Near},
    number::{Number, Row},
};
use super::{
    Class, Detector, Hit, Survey,
    hit::HITS,
    survey::{self, places},
    work::looked,
};

static COUNTRIES: LazyLock<Countries> = LazyLock::new(Countries::read);
static CARD: LazyLock<Arc<str>> = LazyLock::new(|| "payment_card".into());
static IBAN: LazyLock<Arc<str>> = LazyLock::new(|| "iban".into());

/// Finds payment cards, bank accounts and national numbers, C6.
#[derive(Debug, Clone, Copy)]
pub struct Checked(());

/// Finds personal data whose check digits hold, and that which has none beside its own name.
pub fn detector() -> Checked {
    LazyLock::force(&COUNTRIES);
    LazyLock::force(&CARD);
    LazyLock::force(&IBAN);
    Checked(())
}

/// The names of every rule, in order.
pub fn rules() -> Vec<Arc<str>> {
    let mut all = COUNTRIES.names();
    all.extend([CARD.clone(), IBAN.clone()]);
    all.extend(contact::NAMES.iter().map(|name| Arc::from(*name)));
    all.sort();
    all
}

impl Detector for Checked {
    fn class(&self) -> Class {
        Class::PersonalChecked
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        self.inspect_surveyed(text, &Survey::of(text), hits);
    }

    fn inspect_surveyed(&self, text: &str, survey: &Survey, hits: &mut Vec<Hit>) {
        let first = hits.len();
        inspect(text, survey, hits);
        if !survey.joints.is_empty() {
            otherwise_grouped(text, survey, first, hits);
        }
    }
}

/// Tells numbers whose groups have other spaces or dashes between them than those of ASCII.
#[inline(never)]
fn otherwise_grouped(text: &str, survey: &Survey, first: usize, hits: &mut Vec<Hit>) {
    // Those that were told, and in order, before the others; there may be as many as there are numbers.
    let told = hits.len() - first;
    let mut found = Vec::new();
    for plain in joints::pieces(text, &survey.joints) {
        looked(plain.text.len());
        inspect(&plain.text, &Survey::of(&plain.text), &mut found);
        for mut hit in found.drain(..) {
            let Some(span) = plain.original(&hit.span) else {
                continue;
            };
            let (told, pieces) = hits[first..].split_at(told);
            let next = told.partition_point(|told| told.span.end <= span.start);
            let next = told.get(next);
            let new = next.is_none_or(|told| told.span.start >= span.end)
                && pieces.last().is_none_or(|last| last.span.end <= span.start);
            if new {
                hit.span = span;
                hits.push(hit);
            }
        }
    }
    hits[first..].sort_by_key(|hit| hit.span.start);
}

fn inspect(text: &str, survey: &Survey, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    let first = hits.len();
    let countries = &*COUNTRIES;
    // Most rows are let go by a few sums, which wider machines have better instructions for.
    dispatch!(Level::new(), simd => rows(simd, bytes, &survey.numbers, countries, hits));
    let rows = hits.len();
    let near = Near::default();
    for at in survey::all_places(&survey.numbered) {
        if let Some((span, rule)) = labelled::behind(bytes, at, countries, &near) {
            hits.push(Hit {
                span,
                class: Class::PersonalChecked,
                rule,
                inert: None,
            });
        }
    }
    // Nothing that is told behind an assignment has a row of digits that is told.
    if hits.len() > rows {
        hits[first..].sort_by_key(|hit| hit.span.start);
    }
}

/// What is told where the survey has found something of a number.
#[inline(always)]
fn rows<S: Simd>(
    _: S,
    bytes: &[u8],
    numbers: &[survey::Numbers],
    countries: &Countries,
    hits: &mut Vec<Hit>,
) {
    let mut seen = Seen::default();
    for found in numbers {
        if hits.len() > HITS {
            break;
        }
        // Rows behind the beginning of a bank account may be of that.
        let digits = if found.heads == 0 && seen.head + survey::DIGITS <= found.at {
            countries.shapes.likely(bytes, found.at, found.digits)
        } else {
            found.digits
        };
        let all = digits | found.letters | found.heads | found.sixes;
        for place in places(found.at, all) {
            let bit = 1 << (place - found.at);
            let span = if found.heads & bit != 0
                && let Some(found) = headed(bytes, place, countries, &mut seen)
            {
                Some(found)
            } else if digits & bit != 0
                && let Some(found) = row(bytes, place + 1 - survey::DIGITS, countries, &mut seen)
            {
                Some(found)
            } else if found.letters & bit != 0
                && let Some(found) =
                    // Both may come to their length in one place.
                    letters(bytes, place + 1 - survey::LETTERS, countries, &seen)
            {
                Some(found)
            } else if found.sixes & bit != 0 && place >= seen.taken {
                countries.of_six(bytes, place, &mut seen.near)
            } else {
                None
            };
            if let Some((span, rule)) = span {
                seen.taken = span.end;
                hits.push(Hit {
                    span,
                    class: Class::PersonalChecked,
                    rule,
                    inert: None,
                });
            }
        }
    }
}

/// What begins with two letters to five, and two digits of which the second stands at `place`.
#[inline(never)]
fn headed(text: &[u8], place: usize, countries: &Countries, seen: &mut Seen) -> Option<Found> {
    let letter = |back: usize| place >= back && text[place - back].is_ascii_alphabetic();
    if letter(4) && letter(5) && letter(6) {
        let fresh = place - 6 >= seen.taken;
        return fresh
            .then(|| countries.indian(text, place - 6, &mut seen.near))
            .flatten();
    }
    if letter(4) && letter(5) {
        let day = text.get(place + 4).is_some_and(u8::is_ascii_digit);
        let fresh = place - 5 >= seen.taken;
        return (day && fresh)
            .then(|| countries.mexican(text, place - 5, &mut seen.near))
            .flatten();
    }
    if letter(4) {
        let upper = text[place - 2].is_ascii_uppercase() && place - 4 >= seen.taken;
        return upper
            .then(|| countries.of_three(text, place - 4, &mut seen.near))
            .flatten();
    }
    let start = place - 3;
    if iban::is_country(&text[start..]) {
        seen.head = start + iban::BACK;
        if start >= seen.taken
            && let Some(span) = iban::grouped(text, start)
        {
            return Some((span, IBAN.clone()));
        }
    }
    // Of what begins so few end so.
    let last = text.get(place + 5).copied().unwrap_or_default();
    if matches!(last, b'A'..=b'D') && start >= seen.taken {
        return countries.british(text, start, &mut seen.near);
    }
    None
}

/// What has been seen of a text.
#[derive(Default)]
struct Seen {
    /// Where what was found last ends.
    taken: usize,
    /// How far the last beginning of a bank account reaches.
    head: usize,
    near: Near,
}

/// A run of fifteen letters and digits or more.
fn letters(text: &[u8], start: usize, countries: &Countries, seen: &Seen) -> Option<Found> {
    // Names in source are runs of letters, and there are many; every number has a digit near its beginning.
    let number = text[start..start + 9].iter().any(u8::is_ascii_digit);
    if !number || start < seen.taken {
        return None;
    }
    iban::at(text, start)
        .or_else(|| iban::in_field(text, start))
        .map(|span| (span, IBAN.clone()))
        .or_else(|| countries.letters(text, start))
}

/// A row of digits of seven bytes or more.
#[inline(always)]
fn row(text: &[u8], start: usize, countries: &Countries, seen: &mut Seen) -> Option<Found> {
    if start < seen.taken {
        return None;
    }
    if start <= seen.head
        && let Some(span) = iban::around(text, start, seen.taken)
    {
        return Some((span, IBAN.clone()));
    }
    let row = Row::at(text, start);
    if let Some(row) = row
        && row.is_grouped()
        && !row.is_long()
        && let Some([b'\n', b'0'..=b'9']) = text[start + row.length()..].first_chunk()
        && let Some(span) = card::broken(text, start..start + row.length(), countries)
    {
        return Some((span, CARD.clone()));
    }
    // Most rows are times, addresses and versions.
    if row.is_some_and(|row| !row.is_long() && !countries.shapes.may_know(text, start, row)) {
        return None;
    }
    number_in(text, start, row, countries, &mut seen.near)
}

/// The card or national number in a row that may be one.
#[inline(never)]
fn number_in(
    text: &[u8],
    start: usize,
    row: Option<Row>,
    countries: &Countries,
    near: &mut Near,
) -> Option<Found> {
    if row.is_none_or(|row| row.is_long())
        && let Some(span) = card_in(text, start, countries, near)
    {
        return Some((span, CARD.clone()));
    }
    let found = match row {
        Some(row) if row.count() < 26 => countries.number(text, start, row, near)?,
        _ => countries.polish_account(text, start, near)?,
    };
    near.keep(&found, countries);
    Some(found)
}

/// The card in a row of many digits.
fn card_in(text: &[u8], start: usize, countries: &Countries, near: &Near) -> Option<Range<usize>> {
    let number = Number::at(text, start);
    looked(number.span.len());
    card::within(text, &number, countries, near)
}
