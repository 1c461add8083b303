//! National numbers: persons, taxpayers, insured, of many countries.
//!
//! Each rule names the shapes in which a number is written, how its check digits are found, and the words that announce it. A
//! shape that says enough by itself (two check digits, a date inside, a grouping that nothing else has) needs no word.
//!
//! Guarantees: a number is told only when its check digits hold, or, of those that have none, when what it says can be, and by its own
//! name (`people.rs`). Deliberately absent: what is read by code (`lettered.rs`, `headed.rs`).

use std::{
    cell::RefCell,
    ops::Range,
    sync::{Arc, LazyLock},
};

use super::{
    checks::same,
    columns::beneath,
    country::{self, of_country},
    keyed::has_its_key,
    labels,
    named::LETTERED,
    number::{Row, ends_alone, stands_alone},
    set::Set,
    shapes::{Known, Shapes},
    table,
    tables::Tables,
    words::{Where, Words},
};
use crate::sanitize::{placeholder::is_placeholder, work::looked};

/// Where something was found, and by what rule.
pub(super) type Found = (Range<usize>, Arc<str>);

/// How far before and after a number the word that announces it may stand, in characters.
const BEFORE: usize = 72;
const AFTER: usize = 32;
/// The letters of most scripts have more than one byte: so many times as many bytes are looked at, at most.
const WIDE: usize = 2;
/// Numbers that stand so near each other share one look for words, in bytes.
const DENSE: usize = 256;
/// How far such a look goes beyond the first of them, in bytes.
const STRETCH: usize = 1024;

/// The rules with what finds their words.
#[derive(Debug)]
pub(super) struct Countries {
    pub(super) names: Vec<Arc<str>>,
    words: Words,
    pub(super) shapes: Shapes,
}

/// Which words stand in a stretch of a text: looked for once for all numbers in it, where there are many.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// The stretch; empty at first.
    stretch: Range<usize>,
    announced: Set,
    /// Where the last number ends.
    last: Option<usize>,
    /// Where the last number stands that was told, and whose it is.
    told: Option<(Range<usize>, usize)>,
    /// The table in which numbers stand.
    tables: RefCell<Tables>,
}

impl Near {
    /// Keeps what was told last: the numbers below it in a table are alike.
    pub(super) fn keep(&mut self, (span, name): &Found, countries: &Countries) {
        let at = countries.names.iter().position(|known| known == name);
        self.told = at.map(|at| (span.clone(), at));
    }

    /// Whose the number above is, where one begins at `start`.
    #[inline]
    fn above(&self, text: &[u8], start: usize) -> Set {
        match &self.told {
            Some((above, at)) if beneath(text, above, start) => Set::of(*at),
            _ => Set::NONE,
        }
    }
}

/// Words of more than one as names in source have them, words in capitals and without accents, and whose they are.
static JOINED: LazyLock<Vec<(String, u8)>> = LazyLock::new(|| {
    let others = |((_, words), whose): ((&str, &'static [&str]), u8)| {
        let others = words.iter().flat_map(|word| table::other_ways(word));
        others.map(move |word| (word, whose))
    };
    all().zip(0..).flat_map(others).collect()
});

/// The name and the words of every rule, in the order of their numbers.
fn all() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let digits = table::all().map(|rule| (rule.name, rule.words));
    digits.chain(LETTERED.iter().copied())
}

/// Every rule has a bit of its own.
const _: () = assert!(table::COUNT + LETTERED.len() <= Set::MOST);

impl Countries {
    pub(super) fn read() -> Self {
        let words = all().zip(0..).flat_map(|((_, words), whose)| {
            let words = words.iter();
            words.map(move |word| (word.as_bytes(), whose))
        });
        let joined = JOINED.iter();
        let joined = joined.map(|(word, whose)| (word.as_bytes(), *whose));
        Self {
            names: all().map(|(name, _)| name.into()).collect(),
            words: Words::of(
                words.chain(joined),
                Where {
                    is_part,
                    apart: true,
                },
            ),
            shapes: Shapes::read(),
        }
    }

    /// The name of a rule as findings have it.
    pub(super) fn called(&self, name: &str) -> Arc<str> {
        let known = self.names.iter().find(|known| known.as_ref() == name);
        known.map_or_else(|| name.into(), Arc::clone)
    }

    /// Whether a word of this rule of digits stands near.
    pub(super) fn is_announced(
        &self,
        name: &str,
        text: &[u8],
        span: &Range<usize>,
        near: &Near,
    ) -> bool {
        let at = self.names.iter().position(|known| known.as_ref() == name);
        at.is_some_and(|at| self.announced(text, span, near).has(at))
    }

    /// Whether a word of this rule of letters and digits stands near.
    pub(super) fn is_announced_in_letters(
        &self,
        name: &str,
        text: &[u8],
        span: &Range<usize>,
        near: &Near,
    ) -> bool {
        let at = self.nth_in_letters(name);
        at.is_some_and(|at| self.announced(text, span, near).has(at))
    }

    /// The number of this rule of letters and digits.
    pub(super) fn nth_in_letters(&self, name: &str) -> Option<usize> {
        let at = LETTERED.iter().position(|(known, _)| *known == name);
        at.map(|at| table::COUNT + at)
    }

    pub(super) fn names(&self) -> Vec<Arc<str>> {
        let mut names = self.names.clone();
        names.sort();
        names.dedup();
        names
    }

    /// The national number that a row of digits is, or is part of.
    #[inline]
    pub(super) fn number(
        &self,
        text: &[u8],
        start: usize,
        row: Row,
        near: &mut Near,
    ) -> Option<Found> {
        let known = self.shapes.known(text, start, row)?;
        let span = start..start + row.length();
        if let Some(lettered) = known.lettered
            && lettered.is_beside(text, &span)
            && let Some(found) = self.lettered(text, lettered, row, &span, near)
        {
            return Some(found);
        }
        // Most rows are times, addresses and versions, or parts of something.
        if (known.worded | known.free).is_empty() {
            return None;
        }
        if stands_alone(text, &span) {
            return self.held(text, known, row, span, near);
        }
        self.joined(text, known, row, span, near)
    }

    /// The number of digits only that stands here behind the letters of its country, or as a part of a path whose part before it
    /// says what it is.
    #[inline(never)]
    fn joined(
        &self,
        text: &[u8],
        known: &Known,
        row: Row,
        span: Range<usize>,
        near: &Near,
    ) -> Option<Found> {
        let (country, announced) = if let Some(country) = country_before(text, &span) {
            let taxed = match is_taxed(text, span.start) {
                true => self.named(&TAXPAYERS),
                false => Set::NONE,
            };
            (Some(country), self.announced(text, &span, near) | taxed)
        } else {
            (None, self.said(text, part_before(text, &span)?))
        };
        let digits = row.digits(text, span.start);
        let digits = &digits[..row.count()];
        let mut rules = ((known.worded | known.free) & announced).each();
        let at = rules.find(|at| {
            let of = country.is_none_or(|country| self.names[*at].as_bytes().starts_with(&country));
            of && !same(digits) && self.holds(*at, text, &span, digits)
        })?;
        Some((span, self.names[at].clone()))
    }

    /// Whether a number holds what this rule says.
    fn holds(&self, at: usize, text: &[u8], span: &Range<usize>, digits: &[u8]) -> bool {
        let keyed = || &*self.names[at] == "ru_bank_account";
        (table::nth(at).holds)(digits) && (!keyed() || has_its_key(text, span, digits))
    }

    /// The number of digits only that stands here.
    #[inline(never)]
    fn held(
        &self,
        text: &[u8],
        known: &Known,
        row: Row,
        span: Range<usize>,
        near: &mut Near,
    ) -> Option<Found> {
        let announced = self.announced_near(text, &span, near);
        let rules = known.free | known.worded & announced;
        if rules.is_empty() {
            return None;
        }
        let digits = row.digits(text, span.start);
        let digits = &digits[..row.count()];
        // Nobody has such a number, though check digits may hold.
        if same(digits) {
            return None;
        }
        let mut announced = None;
        let mut alone = None;
        for at in rules.each() {
            if !self.holds(at, text, &span, digits) {
                continue;
            }
            let announced = announced.get_or_insert_with(|| self.announced(text, &span, near));
            if announced.has(at) && !self.is_called_otherwise(at, text, &span, near) {
                return Some((span, self.names[at].clone()));
            }
            if known.free.has(at) && alone.is_none() {
                alone = Some(at);
            }
        }
        let at = alone.filter(|_| {
            !is_of_device(text, &span) && !self.is_headed_otherwise(text, &span, near)
        })?;
        Some((span, self.names[at].clone()))
    }

    /// Whether a number that no check digit tells from others has the name of something else.
    pub(super) fn is_called_otherwise(
        &self,
        at: usize,
        text: &[u8],
        span: &Range<usize>,
        near: &Near,
    ) -> bool {
        if !table::nth(at).by_name {
            return false;
        }
        let meant = |name: Range<usize>| self.said(text, name).has(at);
        if &*self.names[at] == "latin_dni" && is_lettered(text, span.end) {
            return true;
        }
        let named = labels::before(text, span.start).is_some_and(|name| {
            let label = labels::says(&text[name.clone()], |_| meant(name.clone()));
            label == labels::Label::Other
        });
        named || self.is_headed_otherwise(text, span, near)
    }

    /// One bit for each rule whose word stands near, or at the head of the column, or whose number is right above.
    pub(super) fn announced(&self, text: &[u8], span: &Range<usize>, near: &Near) -> Set {
        let reach = reach(text, span);
        let said = self.said(text, reach.start..span.start) | self.said(text, span.end..reach.end);
        let of = of_country(text, span, |country| self.of(country));
        said | of | near.above(text, span.start) | self.headed_by(text, span, near)
    }

    /// One bit for each rule of these names.
    fn named(&self, names: &[&str]) -> Set {
        let rules = self.names.iter().enumerate();
        let rules = rules.filter(|(_, name)| names.contains(&name.as_ref()));
        rules.fold(Set::NONE, |all, (at, _)| all | Set::of(at))
    }

    /// One bit for each rule of a country that is not one of accounts.
    fn of(&self, country: [u8; 2]) -> Set {
        let of = |name: &str| {
            let rest = name.as_bytes().strip_prefix(&country);
            rest.is_some_and(|rest| rest.starts_with(b"_")) && !is_account(name)
        };
        let rules = self.names.iter().enumerate().filter(|(_, name)| of(name));
        rules.fold(Set::NONE, |all, (at, _)| all | Set::of(at))
    }

    /// One bit for each rule that the name of the column announces.
    fn headed_by(&self, text: &[u8], span: &Range<usize>, near: &Near) -> Set {
        let mut tables = near.tables.borrow_mut();
        let heading = tables.heading(text, span, |name| self.said(text, name));
        heading.map_or(Set::NONE, |heading| heading.announced)
    }

    /// Whether the column has the name of something that is counted, ordered or sent.
    fn is_headed_otherwise(&self, text: &[u8], span: &Range<usize>, near: &Near) -> bool {
        self.heading(text, span, near)
            .is_some_and(|name| labels::is_other(&text[name]))
    }

    /// Where the name of the column stands.
    pub(super) fn heading(
        &self,
        text: &[u8],
        span: &Range<usize>,
        near: &Near,
    ) -> Option<Range<usize>> {
        let mut tables = near.tables.borrow_mut();
        let heading = tables.heading(text, span, |name| self.said(text, name))?;
        Some(heading.place.clone())
    }

    /// One bit at least for each rule that a look around this number would find announced: all of them where the numbers before
    /// it are far.
    pub(super) fn announced_near(&self, text: &[u8], span: &Range<usize>, near: &mut Near) -> Set {
        let reach = widest(text, span);
        let dense = near.last.is_some_and(|last| span.start < last + DENSE);
        near.last = Some(span.end);
        if near.stretch.start > reach.start || near.stretch.end < reach.end {
            if !dense {
                return Set::ALL;
            }
            near.stretch = reach.start..(reach.end + STRETCH).min(text.len());
            let from = near.stretch.start.saturating_sub(country::FAR);
            let wide = from..(near.stretch.end + country::FAR).min(text.len());
            near.announced = match country::is_said(&text[wide]) {
                true => Set::ALL,
                false => self.said(text, near.stretch.clone()),
            };
        }
        let tables = near.tables.get_mut();
        let any = tables.any(text, span.start, |name| self.said(text, name));
        near.announced | near.above(text, span.start) | any
    }

    /// One bit for each rule of which a word stands in a piece of a text. Whether it is a word of its own is told by what stands
    /// around it, beyond the piece as well.
    fn said(&self, text: &[u8], piece: Range<usize>) -> Set {
        let letter = |at: Option<usize>| {
            at.and_then(|at| text.get(at))
                .is_some_and(u8::is_ascii_alphabetic)
        };
        let mut all = Set::NONE;
        self.words.each(&text[piece.clone()], |found, whose| {
            let found = piece.start + found.start..piece.start + found.end;
            let first = text[found.start];
            let camel = found.start > 0
                && text[found.start - 1].is_ascii_lowercase()
                && first.is_ascii_uppercase();
            let long = is_long(&text[found.clone()]);
            let begins = camel || !letter(found.start.checked_sub(1));
            // A run of a program is no number of Chile.
            if text[found.clone()].eq_ignore_ascii_case(b"run") && is_of_a_thing(&text[found.end..])
            {
                return;
            }
            // The function of that name is not announced.
            if &text[found.clone()] == b"sin" && text.get(found.end) == Some(&b'(') {
                return;
            }
            let ends = || {
                // Abbreviations have a small letter when they are more than one.
                let many = text.get(found.end) == Some(&b's')
                    && text[found.start..found.end]
                        .iter()
                        .all(u8::is_ascii_uppercase);
                let end = found.end + usize::from(many);
                !letter(Some(end)) || text[end].is_ascii_uppercase()
            };
            let part = is_part(&text[found.clone()]);
            let whole = part || begins && (long || ends());
            // What was redacted here announces nothing.
            if whole && !is_placeholder(text, &found) {
                all |= Set::of(whose.into());
            }
        });
        all
    }
}

/// Whether a word may go on with other letters.
fn is_long(word: &[u8]) -> bool {
    word.len() > 4 || !word[0].is_ascii()
}

/// Whether a word may stand inside of another.
fn is_part(word: &[u8]) -> bool {
    // The first of several words may be a short one, in which others end.
    let mut bytes = word.iter();
    is_long(word) && !bytes.any(|byte| matches!(byte, b' ' | b'_' | b'-'))
}

/// Whether a rule is of the number of an account, which has words that stand near anything.
fn is_account(name: &str) -> bool {
    name.ends_with("_account") || name.ends_with("_account_number")
}

/// Whether a name goes on with what says that it is the number of a thing: `run_id`, `run id`.
fn is_of_a_thing(rest: &[u8]) -> bool {
    let rest = match rest {
        [b' ' | b'_' | b'-', rest @ ..] => rest,
        rest => rest,
    };
    let id = rest
        .get(..2)
        .is_some_and(|id| id.eq_ignore_ascii_case(b"id"));
    id && !rest.get(2).is_some_and(u8::is_ascii_alphabetic)
}

/// Whether the letter of a Spaniard's number stands behind digits that end here, which is no word of that language.
fn is_lettered(text: &[u8], end: usize) -> bool {
    let rest = text.get(end..).and_then(<[u8]>::first_chunk::<2>);
    let letter = rest.is_some_and(|[joint, letter]| {
        let word = matches!(letter, b'A' | b'E' | b'O' | b'U' | b'Y');
        let joined = *joint == b'-' || *joint == b' ' && !word;
        joined && letter.is_ascii_uppercase()
    });
    // `C/ Mayor`
    letter
        && !text
            .get(end + 2)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'/')
}

/// The country whose letters stand right before a number, as rules have it, if nothing else is joined to it.
fn country_before(text: &[u8], span: &Range<usize>) -> Option<[u8; 2]> {
    let letters = text[..span.start].last_chunk::<2>()?;
    let of = letters.iter().all(u8::is_ascii_uppercase)
        && stands_alone(text, &(span.start - 2..span.end));
    of.then(|| match letters {
        // Greece, where taxes are meant.
        b"EL" => *b"gr",
        letters => letters.map(|letter| letter.to_ascii_lowercase()),
    })
}

/// Numbers of persons under which they pay taxes on what they sell, with the letters of the country before them.
pub(super) const TAXPAYERS: [&str; 5] = [
    "cz_birth_number",
    "gr_afm",
    "hr_oib",
    "pt_nif",
    "si_tax_number",
];
/// What such taxes and numbers are called.
const TAXES: [&[u8]; 7] = [
    b"vat",
    b"iva",
    b"pdv",
    b"ddv",
    b"dic",
    "di\u{10d}".as_bytes(),
    "DI\u{10c}".as_bytes(),
];
/// How far before a number that may stand, in bytes.
const TAXED: usize = 40;

/// Whether a number that begins at `start` with the letters of a country is called one of a tax on what is sold.
pub(super) fn is_taxed(text: &[u8], start: usize) -> bool {
    let before = &text[start.saturating_sub(TAXED)..start];
    looked(before.len());
    let is_inside = |at: Option<usize>| {
        let byte = at.and_then(|at| before.get(at));
        byte.is_some_and(|byte| is_letter(*byte))
    };
    TAXES.iter().any(|tax| {
        let mut places = before.windows(tax.len()).enumerate();
        places.any(|(at, here)| {
            here.eq_ignore_ascii_case(tax)
                && !is_inside(at.checked_sub(1))
                && !is_inside(Some(at + tax.len()))
        })
    })
}

/// A letter of any script.
const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || !byte.is_ascii()
}

/// The longest part of a path that is looked at, in bytes.
const PART: usize = 48;

/// The part of a path that goes before the one that a number is.
fn part_before(text: &[u8], span: &Range<usize>) -> Option<Range<usize>> {
    let end = span.start.checked_sub(1).filter(|at| text[*at] == b'/')?;
    let whole = text.get(span.end) == Some(&b'/') || ends_alone(text, span.end);
    let from = end.saturating_sub(PART);
    // Of several words, perhaps. Before most there is something else, or a name of something with a version of it.
    let part = |at: &usize| match text[*at] {
        b'/' => false,
        b' ' => *at > from && (text[at - 1] == b'/' || is_letter(text[at - 1])),
        byte => !byte.is_ascii_control(),
    };
    let start = end - (from..end).rev().take_while(part).count();
    let path = start > from && text[start - 1] == b'/';
    (whole && path && start < end).then_some(start..end)
}

/// Names of numbers of devices: beside one of them no shape says enough by itself.
const DEVICES: [&[u8]; 3] = [b"imsi", b"imei", b"iccid"];
/// How far before a number such a name may stand, in bytes.
const NAMED: usize = 16;

/// Whether the name of a device's number stands before this one.
fn is_of_device(text: &[u8], span: &Range<usize>) -> bool {
    let before = &text[span.start.saturating_sub(NAMED)..span.start];
    DEVICES.iter().any(|name| {
        let mut places = before.windows(name.len());
        places.any(|here| here.eq_ignore_ascii_case(name))
    })
}

/// Where a word that announces a number may stand, whatever the script.
fn widest(text: &[u8], span: &Range<usize>) -> Range<usize> {
    let end = (span.end + WIDE * AFTER).min(text.len());
    span.start.saturating_sub(WIDE * BEFORE)..end
}

/// Where a word that announces a number may stand.
fn reach(text: &[u8], span: &Range<usize>) -> Range<usize> {
    let widest = widest(text, span);
    let before = text[widest.start..span.start].iter().rev();
    let after = text[span.end..widest.end].iter();
    // The first bytes of characters; those behind the last but one of them are of the last.
    let first = |byte: &u8| !(0x80..0xC0).contains(byte);
    let nth = |(at, byte): (usize, &u8)| first(byte).then_some(at);
    let start = before.enumerate().filter_map(nth).nth(BEFORE - 1);
    let end = after.enumerate().filter_map(nth).nth(AFTER);
    let start = start.map_or(widest.start, |back| span.start - back - 1);
    start..end.map_or(widest.end, |ahead| span.end + ahead)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where rows of digits begin.
    fn rows(text: &[u8]) -> impl Iterator<Item = usize> {
        (0..text.len()).filter(|at| {
            text[*at].is_ascii_digit() && (*at == 0 || !text[*at - 1].is_ascii_digit())
        })
    }

    fn piece() -> impl Strategy<Value = String> {
        let words: Vec<&str> = table::all().flat_map(|rule| rule.words).copied().collect();
        prop_oneof![
            1 => prop::sample::select(words).prop_map(str::to_owned),
            2 => "[a-z ,;:]{0,90}",
            6 => "[0-9]{8,12}",
            2 => "[0-9]{2,3}[ -][0-9]{3}[ -][0-9]{3}[ -][0-9]{2,3}",
        ]
    }

    #[test]
    fn the_end_of_a_longer_word_announces_nothing_where_the_look_begins() {
        let countries = Countries::read();
        let told = |word: &str| {
            let text = format!("{word}{}1234567883", " ".repeat(BEFORE - "nip".len()));
            let start = text.len() - 10;
            let row = Row::at(text.as_bytes(), start).unwrap();
            let found = countries.number(text.as_bytes(), start, row, &mut Near::default());
            found.map(|(_, name)| name.to_string())
        };
        assert_eq!(told("tur nip").as_deref(), Some("pl_nip"));
        assert_eq!(told("turnip"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn numbers_near_one_another_are_found_as_each_by_itself(
            pieces in prop::collection::vec(piece(), 1..40),
        ) {
            static COUNTRIES: LazyLock<Countries> = LazyLock::new(Countries::read);
            let text = pieces.join(" ");
            let text = text.as_bytes();
            let mut near = Near::default();
            for start in rows(text) {
                let Some(row) = Row::at(text, start) else {
                    continue;
                };
                let found = COUNTRIES.number(text, start, row, &mut near);
                let alone = COUNTRIES.number(text, start, row, &mut Near::default());
                prop_assert_eq!(found, alone);
            }
        }
    }
}
