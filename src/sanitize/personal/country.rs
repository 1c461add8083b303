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

/// The rules of the country that is said beside the number that stands here, if it is called by no country's name of it.
pub(super) fn of_country(text: &[u8], span: &Range<usize>, of: impl Fn([u8; 2]) -> Set) -> Set {
    if !is_called_so(&text[span.start.saturating_sub(NAME)..span.start]) {
        return Set::NONE;
    }
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
    said.map_or(Set::NONE, of)
}

/// Whether what stands before a value ends with one of [`NAMES`].
fn is_called_so(before: &[u8]) -> bool {
    let sign = |byte: &&u8| !byte.is_ascii_alphanumeric();
    let gap = before.iter().rev().take_while(sign).count();
    let assigned = before[before.len() - gap..]
        .iter()
        .any(|byte| matches!(byte, b':' | b'='));
    if gap > BETWEEN || !assigned {
        return false;
    }
    let name = &before[..before.len() - gap];
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ');
    let length = name.iter().rev().take_while(part).count();
    let name = &name[name.len() - length..];
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
    NAMES.iter().any(|known| {
        let first = count
            .checked_sub(known.len())
            .filter(|_| letters[..count].ends_with(known));
        // Of a longer name it is the last words.
        first.is_some_and(|first| {
            let at = places[first];
            at == 0 || !name[at - 1].is_ascii_alphanumeric() || name[at].is_ascii_uppercase()
        })
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

/// Whether a member that says a country may stand in a text.
pub(super) fn is_said(text: &[u8]) -> bool {
    members(text).next().is_some()
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
            "{\"NATIONALITY\": \"PL\", \"TIN\": \"75081291069\"}",
            "* **Country:** DE\n\n* **Customer:** B\n* **Country:** PL\n* **National ID:** 75081291069",
            "{\"country\": \"PL\", \"ref\": \"12345678901\", \"note\": \"-------------------------------------------------------------------------------------------------------------\", \"national_id\": \"75081291069\"}",
        ] {
            assert_eq!(names(text), ["pl_pesel"], "{text}");
        }
        for text in [
            "{\"country\": \"PL\", \"order_id\": \"75081291069\"}",
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
