//! Whose a number is whose name says no more than that it identifies a person: a member beside it says of which country.
//!
//! Guarantees: looks no farther than [`FAR`] on either side, and not beyond the object. Deliberately absent: names of countries that
//! are written out.

use std::ops::Range;

use super::set::Set;
use crate::sanitize::work::looked;

/// How far from the number its country may stand, in bytes.
pub(super) const FAR: usize = 240;
/// How far before the number its name may begin, in bytes.
const NAME: usize = 32;
/// What such numbers are called anywhere, without what stands between words.
const NAMES: [&[u8]; 18] = [
    b"nationalid",
    b"nationalidnumber",
    b"nationalnumber",
    b"personalid",
    b"personalidnumber",
    b"personalnumber",
    b"identitynumber",
    b"idnumber",
    b"taxid",
    b"taxnumber",
    b"taxpayerid",
    b"taxpayernumber",
    b"taxidnumber",
    b"tin",
    b"governmentid",
    b"identityno",
    b"socialsecurityid",
    b"healthinsuranceid",
];
/// What stands between a name and a value.
const BETWEEN: usize = 5;

/// The rules of the country that is said beside the number that stands here, or in its name, if it is called by no country's
/// name of it.
pub(super) fn of_country(text: &[u8], span: &Range<usize>, of: impl Fn([u8; 2]) -> Set) -> Set {
    // Two letters may be of anything: what is said beside counts all the same.
    let named = match called(&text[span.start.saturating_sub(NAME)..span.start]) {
        Called::Otherwise => return Set::NONE,
        Called::Of(country) => of(country),
        Called::So => Set::NONE,
    };
    let from = span.start.saturating_sub(FAR);
    let before = &text[from..span.start];
    let brace = |byte: &u8| matches!(byte, b'{' | b'}');
    let before = &before[before.iter().rposition(brace).unwrap_or(0)..];
    let after = &text[span.end..(span.end + FAR).min(text.len())];
    let after = &after[..after.iter().position(brace).unwrap_or(after.len())];
    looked(before.len() + after.len());
    let said = members(before)
        .filter_map(|rest| country_in(&before[rest..]))
        .last();
    let said = said.or_else(|| members(after).find_map(|rest| country_in(&after[rest..])));
    named | said.map_or(Set::NONE, of)
}

/// What a value is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Called {
    /// One of [`NAMES`].
    So,
    /// The same, with the letters of a country before or behind it: `tax_id_hu`.
    Of([u8; 2]),
    Otherwise,
}

/// Whether what stands before a value ends with one of [`NAMES`].
fn called(before: &[u8]) -> Called {
    let sign = |byte: &&u8| !byte.is_ascii_alphanumeric();
    let gap = before.iter().rev().take_while(sign).count();
    let assigned = before[before.len() - gap..]
        .iter()
        .any(|byte| matches!(byte, b':' | b'='));
    if gap > BETWEEN || !assigned {
        return Called::Otherwise;
    }
    let name = &before[..before.len() - gap];
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ');
    let length = name.iter().rev().take_while(part).count();
    let name = &name[name.len() - length..];
    if let Some((rest, &[b'_', a, b])) = name.split_last_chunk()
        && let Some(country) = country([a, b])
        && is_name(rest).is_some()
    {
        return Called::Of(country);
    }
    match is_name(name) {
        None => Called::Otherwise,
        Some(at) => match name[..at] {
            [a, b, b'_'] | [.., b'_', a, b, b'_'] => country([a, b]).map_or(Called::So, Called::Of),
            _ => Called::So,
        },
    }
}

/// The letters of a country as rules have them, unless they are a word.
fn country(letters: [u8; 2]) -> Option<[u8; 2]> {
    let letters = letters.map(|letter| letter.to_ascii_lowercase());
    let word = matches!(
        &letters,
        b"id" | b"in" | b"is" | b"my" | b"no" | b"nr" | b"to"
    );
    (!word && letters.iter().all(u8::is_ascii_lowercase)).then_some(letters)
}

/// Where one of [`NAMES`] begins with which a name ends.
fn is_name(name: &[u8]) -> Option<usize> {
    let mut letters = [0; NAME];
    let mut places = [0; NAME];
    let mut count = 0;
    for (at, byte) in name
        .iter()
        .enumerate()
        .filter(|(_, byte)| byte.is_ascii_alphanumeric())
    {
        (letters[count], places[count]) = (byte.to_ascii_lowercase(), at);
        count += 1;
    }
    // Of a longer name it is the last words: the most of them that are a name.
    let starts = NAMES.iter().filter_map(|known| {
        let first = count
            .checked_sub(known.len())
            .filter(|_| letters[..count].ends_with(known))?;
        let at = places[first];
        let begins =
            at == 0 || !name[at - 1].is_ascii_alphanumeric() || name[at].is_ascii_uppercase();
        begins.then_some(at)
    });
    starts.min()
}

/// Whether a name may stand in a text that has the letters of a country before or behind it.
fn is_marked(text: &[u8]) -> bool {
    let inside =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    memchr::memchr_iter(b'_', text).any(|at| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let ends = [
            &b"id"[..],
            b"ID",
            b"Id",
            b"no",
            b"NO",
            b"er",
            b"ER",
            b"in",
            b"IN",
        ];
        let behind = after.len() >= 2
            && after[..2].iter().all(u8::is_ascii_alphabetic)
            && !inside(after.get(2))
            && ends.iter().any(|end| before.ends_with(end));
        let first = |name: &&[u8]| {
            let first = after.get(..2);
            first.is_some_and(|first| first.eq_ignore_ascii_case(&name[..2]))
        };
        let letters = before
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        behind || letters == 2 && NAMES.iter().any(first)
    })
}

/// The longest name of a member that says a country, behind that word, and what stands between it and its value, in bytes.
const MEMBER: usize = 12;

/// Names of members that say a country: both end with the letter by which they are found.
const MEMBERS: [&[u8]; 2] = [b"country", b"nationality"];

/// Where each of those names ends that stand in a text, whatever their case.
fn members(text: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memchr2_iter(b'y', b'Y', text).filter_map(|at| {
        let name = |name: &&[u8]| {
            let start = (at + 1).checked_sub(name.len());
            start.is_some_and(|start| text[start..=at].eq_ignore_ascii_case(name))
        };
        MEMBERS.iter().any(name).then_some(at + 1)
    })
}

/// Whether a country may be said in a text.
pub(super) fn is_said(text: &[u8]) -> bool {
    members(text).next().is_some() || is_marked(text)
}

/// The two letters of the country that a member says, of which this is what follows its name: `"country": "PL"`,
/// `country_code=pl`.
fn country_in(rest: &[u8]) -> Option<[u8; 2]> {
    let part = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b'_';
    let rest = &rest[rest.iter().take(MEMBER).take_while(part).count()..];
    let sign = |byte: &&u8| !byte.is_ascii_alphanumeric();
    let (gap, rest) = rest.split_at(rest.iter().take(MEMBER).take_while(sign).count());
    let assigned = gap.iter().any(|byte| matches!(byte, b':' | b'='));
    let letters = rest.first_chunk::<2>()?;
    let ends = !rest.get(2).is_some_and(u8::is_ascii_alphanumeric);
    let two = letters.iter().all(u8::is_ascii_alphabetic);
    (assigned && ends && two).then(|| letters.map(|letter| letter.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::names;

    #[test]
    fn a_number_with_a_name_of_any_country_is_told_by_the_country_beside_it() {
        for text in [
            "{\"name\": \"A\", \"country\": \"PL\", \"national_id\": \"75081291069\"}",
            "{\"nationalId\": \"75081291069\", \"countryCode\": \"pl\"}",
            "country=PL;personal_id_number=75081291069",
            "tax_id_pl: \"75081291069\"",
            "{\"seq\": 12345678901, \"pl_national_id\": \"75081291069\"}",
            "CUSTOMER_PL_TAX_ID=75081291069",
            "{\"country\": \"PL\", \"hr_national_id\": \"75081291069\"}",
            "{\"NATIONALITY\": \"PL\", \"TIN\": \"75081291069\"}",
            "* **Country:** DE\n\n* **Customer:** B\n* **Country:** PL\n* **National ID:** 75081291069",
            "{\"country\": \"PL\", \"ref\": \"12345678901\", \"note\": \"-------------------------------------------------------------------------------------------------------------\", \"national_id\": \"75081291069\"}",
        ] {
            assert_eq!(names(text), ["pl_pesel"], "{text}");
        }
        for text in [
            "{\"country\": \"PL\", \"order_id\": \"75081291069\"}",
            "order_id_pl: \"75081291069\"",
            "tax_id_de: \"75081291069\"",
            "spl_national_id=75081291069",
            "my_national_id=75081291069",
            "{\"country\": \"PL\"}, {\"national_id\": \"75081291069\"}",
            "{\"country\": \"PL\", \"national_id\": \"75081291068\"}",
            "{\"country\": \"PLX\", \"national_id\": \"75081291069\"}",
            "{\"country_of_origin\": \"PLOTS\", \"national_id\": \"75081291069\"}",
            "{\"country\": \"PL\", \"bid_number\": \"75081291069\"}",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }
}
