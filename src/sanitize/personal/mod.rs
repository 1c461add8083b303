//! Personal data: C6, whose check digits hold, and C7, which only looks like it.
//!
//! One pass finds rows of digits, grouped as people group them, and long runs of letters and digits. Lengths, groups and issuer
//! ranges are asked first, then check digits, and then, where one check digit is too little, a word beside the number that says
//! what it is.
//!
//! Guarantees: linear in the text, since every look is bounded; nothing is allocated for a text without a hit; the span of a
//! hit is the number and nothing else. Deliberately absent: numbers without a check digit (in C6), and whether a number was
//! ever issued.
// SECURITY 7

mod card;
mod checks;
mod contact;
mod iban;
mod national;
mod number;
mod sweep;

pub use contact::{Contact, contact};

use std::sync::{Arc, LazyLock};

use self::{
    national::{Countries, Found},
    number::Number,
    sweep::{BLOCK, Sweep},
};
use super::{Class, Detector, Hit};

static COUNTRIES: LazyLock<Countries> = LazyLock::new(Countries::read);
static CARD: LazyLock<Arc<str>> = LazyLock::new(|| "payment_card".into());
static IBAN: LazyLock<Arc<str>> = LazyLock::new(|| "iban".into());

/// Finds payment cards, bank accounts and national numbers, C6.
#[derive(Debug, Clone, Copy)]
pub struct Checked(());

/// Finds personal data whose check digits hold.
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
        let bytes = text.as_bytes();
        let mut sweep = Sweep::default();
        let mut taken = 0;
        for at in (0..bytes.len()).step_by(BLOCK) {
            let places = sweep.places(bytes, at);
            let mut all = places.digits | places.letters;
            while all != 0 {
                let bit = all.trailing_zeros();
                all &= all - 1;
                let place = at + bit as usize;
                let rows = places.digits >> bit & 1 == 1;
                if let Some((span, rule)) = look(bytes, place, rows, taken) {
                    taken = span.end;
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
}

/// What stands at a place: a row of digits that has come to its seventh byte, or a run of letters and digits to its sixteenth.
fn look(text: &[u8], place: usize, rows: bool, taken: usize) -> Option<Found> {
    if !rows {
        let start = place + 1 - sweep::LETTERS;
        return (start >= taken)
            .then(|| {
                iban::at(text, start)
                    .map(|span| (span, IBAN.clone()))
                    .or_else(|| COUNTRIES.letters(text, start))
            })
            .flatten();
    }
    let start = place + 1 - sweep::DIGITS;
    if start < taken {
        return None;
    }
    let number = Number::at(text, start);
    iban::around(text, start, taken)
        .map(|span| (span, IBAN.clone()))
        .or_else(|| card::within(text, &number).map(|span| (span, CARD.clone())))
        .or_else(|| COUNTRIES.number(text, &number))
}
