//! Payment cards: issuer ranges, lengths, and the digit of Luhn.
//!
//! Guarantees: a number that documentation of payment services uses for trials is told only where a word beside it says that
//! it is a card, the month stands behind it until which one is valid, or it is all of a string. Deliberately absent: names of
//! holders, dates and codes of cards.

use std::{ops::Range, sync::LazyLock};

use super::{
    checks::luhn,
    labels::{self, Label},
    national::{Countries, Near},
    number::{MOST, Number, stands_alone},
    words::{PARTS, Words},
};
use crate::sanitize::work::looked;

/// First digits from and to, the least and the most digits in all, and whether an ungrouped number needs a word beside it.
// Ranges as the schemes publish them.
const ISSUERS: [(u32, u32, usize, usize, bool); 48] = [
    (400_000, 499_999, 16, 16, false), // Visa
    (400_000, 499_999, 13, 13, true),
    (400_000, 499_999, 18, 19, true),
    (510_000, 559_999, 16, 16, false), // Mastercard
    (222_100, 272_099, 16, 16, false),
    (340_000, 349_999, 15, 15, false), // American Express
    (370_000, 379_999, 15, 15, false),
    (601_100, 601_199, 16, 16, false), // Discover
    (601_100, 601_199, 17, 19, true),
    (622_126, 622_925, 16, 19, false),
    (644_000, 659_999, 16, 16, false),
    (644_000, 659_999, 17, 19, true),
    (300_000, 305_999, 14, 19, true), // Diners
    (309_500, 309_599, 14, 19, true),
    (360_000, 369_999, 14, 19, true),
    (380_000, 399_999, 14, 19, true),
    (352_800, 358_999, 16, 16, false), // JCB
    (352_800, 358_999, 17, 19, true),
    (350_000, 359_999, 16, 16, true),
    (180_000, 180_099, 15, 15, true), // JCB of old
    (213_100, 213_199, 15, 15, true),
    (620_000, 629_999, 16, 16, false), // UnionPay
    (620_000, 629_999, 17, 19, false),
    (810_000, 829_999, 16, 16, true),
    (220_000, 220_599, 16, 19, false), // Mir, Borica
    (501_900, 501_999, 16, 16, false), // Dankort
    (504_175, 504_175, 16, 16, false), // Elo
    (506_699, 506_778, 16, 16, false),
    (509_000, 509_999, 16, 16, false),
    (506_099, 506_198, 16, 16, false), // Verve
    (940_000, 949_999, 16, 16, true),  // BC Card
    (500_000, 509_999, 12, 19, true),  // Maestro, Dankort, Verve, Elo
    (560_000, 589_999, 12, 19, true),
    (590_000, 599_999, 12, 19, true),
    (384_100, 384_199, 16, 16, false), // Hipercard
    (606_282, 606_282, 16, 16, false),
    (637_095, 637_095, 16, 16, false),
    (636_000, 636_999, 16, 16, false), // InterPayment
    (600_000, 601_099, 16, 16, true),  // RuPay
    (602_000, 609_999, 16, 16, true),
    (630_000, 643_999, 12, 19, true), // Maestro, InstaPayment
    (660_000, 699_999, 12, 19, true),
    (675_900, 676_399, 12, 19, true),
    (979_200, 979_299, 16, 16, false), // Troy
    (860_000, 860_099, 16, 16, true),  // Uzcard
    (986_000, 986_099, 16, 16, true),  // Humo
    (970_400, 970_499, 16, 19, true),  // Napas
    (100_000, 199_999, 15, 15, true),  // UATP
];

/// How much around a card that a line breaks is looked at, in bytes.
const AROUND: usize = 64;

/// First digits of numbers for trials.
const TRIALS: [u32; 22] = [
    411_111, 424_242, 401_288, 400_005, 400_000, 422_222, 555_555, 510_510, 520_082, 545_454,
    222_300, 222_210, 378_282, 371_449, 378_734, 601_111, 601_100, 305_693, 385_200, 353_011,
    356_600, 630_490,
];

/// Says that a card is meant.
const WORDS: [&[u8]; 56] = [
    b"kart_no",
    b"kartno",
    b"primary account",
    b"primary_account",
    b"primaryaccount",
    b"ccnum",
    b"ccn",
    b"kart no",
    b"kart numar",
    b"card",
    b"visa",
    b"master",
    b"amex",
    b"american express",
    b"discover",
    b"diners",
    b"jcb",
    b"unionpay",
    b"maestro",
    b"credit",
    b"debit",
    b"payment",
    b"pan",
    b"cc",
    b"billing",
    b"kort",
    b"karte",
    b"carte",
    b"carta",
    b"tarjeta",
    b"cart\xc3\xa3o",
    b"\xd0\xba\xd0\xb0\xd1\x80\xd1\x82",
    b"rupay",
    b"kaart",
    b"kredi",
    b"cvv",
    b"cvc",
    b"\xe3\x82\xab\xe3\x83\xbc\xe3\x83\x89", // the word in Japanese, Chinese and Korean
    b"\xe5\x8d\xa1",
    b"\xec\xb9\xb4\xeb\x93\x9c",
    b"kart\xc4\x99", // Polish
    b"kart\xc4\x85",
    b"kartu",
    b"kart\xc4\xb1",   // Turkish
    b"k\xc3\xa1rtya",  // Hungarian
    b"th\xe1\xba\xbb", // Vietnamese
    b"\xd0\x9a\xd0\xb0\xd1\x80\xd1\x82",
    b"\xce\xac\xcf\x81\xcf\x84\xce\xb1",         // Greek
    b"\xd7\x9b\xd7\xa8\xd7\x98\xd7\x99\xd7\xa1", // Hebrew
    b"\xd7\x90\xd7\xa9\xd7\xa8\xd7\x90\xd7\x99",
    b"\xe0\xb8\x9a\xe0\xb8\xb1\xe0\xb8\x95\xe0\xb8\xa3", // Thai
    b"\xda\xa9\xd8\xa7\xd8\xb1\xd8\xaa",                 // Persian
    b"\xda\xa9\xd8\xa7\xd8\xb1\xda\x88",                 // Urdu
    b"kad kredit",                                       // Malay
    b"\xd8\xa8\xd8\xb7\xd8\xa7\xd9\x82\xd8\xa9",         // Arabic
    b"\xe0\xa4\x95\xe0\xa4\xbe\xe0\xa4\xb0\xe0\xa5\x8d\xe0\xa4\xa1", // Hindi
];

/// The same, but where they stand inside of another word, as in the name of a city.
const WHOLE: [&[u8]; 2] = [b"karta", b"karty"];

static SAYS: LazyLock<Words> = LazyLock::new(|| {
    let words = WORDS.iter().map(|word| (*word, 0));
    let words = words.chain(WHOLE.iter().map(|word| (*word, 1)));
    Words::of(words, PARTS)
});

/// How cards are grouped: a space stands for what stands between any two groups.
const GROUPED: [&[u8]; 13] = [
    b"4 4 5",
    b"4 4 4 4 3",
    b"4 4 4 4 2",
    b"4 4 4 4 1",
    b"4 4 4 4",
    b"4 6 5",
    b"4 6 4",
    b"4 5 6",
    b"4 4 4 2",
    b"4 4 4 1",
    b"6 13",
    b"4 4 4",
    b"4 3 3 3",
];
/// The bytes of the shortest of these.
const SHORTEST: usize = 14;

/// The first card in a row of digits.
pub(super) fn within(
    text: &[u8],
    number: &Number,
    countries: &Countries,
    near: &Near,
) -> Option<Range<usize>> {
    let named = |span: &Range<usize>| label(text, span, countries, near);
    if number.digits().len() < 12 {
        return None;
    }
    let shape = number.shape();
    // One group in all, or one long group among others.
    let span = number.span.clone();
    let (mut at, mut place) = (span.start, 0);
    let mut digits_before = 0;
    while at < span.end {
        let groups = shape.get(place..).unwrap_or_default();
        let digits = groups.iter().take_while(|byte| byte.is_ascii_digit());
        let written = digits.clone().count();
        let group = digits.fold(0, |all, digit| all * 10 + usize::from(digit - b'0'));
        if group == 0 {
            break;
        }
        looked(written);
        let may = matches!(group, 4 | 6) && span.end - at >= SHORTEST;
        for lengths in GROUPED.iter().filter(|_| may) {
            let Some((length, count)) = grouped(groups, lengths) else {
                continue;
            };
            // The last group may go on beyond what is held.
            if text.get(at + length).is_some_and(u8::is_ascii_digit) {
                continue;
            }
            let candidate = at..at + length;
            // Dots stand in many other numbers.
            let dotted = text[at + group] == b'.';
            // A longer row of like groups is something else.
            let goes_on = text
                .get(candidate.end)
                .is_some_and(|byte| matches!(byte, b' ' | b'-') || dotted && *byte == b'.')
                && text[candidate.end + 1..]
                    .iter()
                    .take(5)
                    .take_while(|byte| byte.is_ascii_digit())
                    .count()
                    == 4;
            // So is what begins as the number of an account does.
            let headed =
                || is_headed(text, at) || is_behind_letters(text, at) && is_headed(text, at - 5);
            let came_on = place > 0
                && at >= 5
                && text[at - 5..at - 1].iter().all(u8::is_ascii_digit)
                && (at < 6 || !text[at - 6].is_ascii_digit());
            if !goes_on
                && (!dotted || says_card(text, &candidate) || named(&candidate) == Label::Meant)
                && !came_on
                && !headed()
                && is_card(
                    &number.digits()[digits_before..],
                    count,
                    true,
                    text,
                    &candidate,
                    named,
                )
                && alone(text, &candidate)
            {
                return Some(candidate);
            }
        }
        if (12..=19).contains(&group) {
            let candidate = at..at + group;
            let single = shape.len() <= 2 || group >= 15;
            if single
                && is_card(
                    &number.digits()[digits_before..],
                    group,
                    false,
                    text,
                    &candidate,
                    named,
                )
                && (stands_alone(text, &candidate) || on_track(text, &candidate))
            {
                return Some(candidate);
            }
        }
        digits_before += group;
        place += written + 1;
        at += group + 1;
        if digits_before >= number.digits().len() {
            break;
        }
    }
    None
}

/// The card of which the first groups end a line and the others begin the next, as where text is wrapped. Words go before it in
/// its line, since what ends a line so without any is a row of a table, and it is called a card or has a month behind it, since
/// telephones are grouped so, too.
#[inline(never)]
pub(super) fn broken(
    text: &[u8],
    first: Range<usize>,
    countries: &Countries,
) -> Option<Range<usize>> {
    let from = first.start.saturating_sub(AROUND);
    let before = &text[from..first.start];
    let line = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let letter = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    looked(before.len());
    if !before[line..].iter().any(letter) {
        return None;
    }
    let to = (first.end + AROUND).min(text.len());
    let mut piece = [0; AROUND * 2 + MOST * 2];
    let piece = piece.get_mut(..to - from)?;
    piece.copy_from_slice(&text[from..to]);
    let (start, end) = (first.start - from, first.end - from);
    piece[end] = b' ';
    let number = Number::at(piece, start);
    let span = within(piece, &number, countries, &Near::default())?;
    let meant = says_card(piece, &span) || expires(piece, &span);
    (span.start == start && span.end > end && meant).then(|| first.start..from + span.end)
}

/// Whether it stands where a track of a card has it: `%B...^NAME^` or `;...=2712...`.
fn on_track(text: &[u8], span: &Range<usize>) -> bool {
    let (before, after) = (&text[..span.start], &text[span.end..]);
    let second = || {
        // The month until which it is valid, and a code, stand behind it.
        let rest = after
            .get(1..8)
            .is_some_and(|rest| rest.iter().all(u8::is_ascii_digit));
        let field = before.ends_with(b"35=") && after.starts_with(b"D");
        (before.ends_with(b";") && after.starts_with(b"=") || field) && rest
    };
    before.ends_with(b"%B") && after.starts_with(b"^") || second()
}

/// Whether it is the second field of a message between banks: `F2=...`, `DE002: ...`.
fn in_message(text: &[u8], span: &Range<usize>) -> bool {
    let from = span.start.saturating_sub(8);
    let before = text[from..span.start].trim_ascii_end();
    let Some(name) = before.strip_suffix(b"=").or(before.strip_suffix(b":")) else {
        return false;
    };
    let name = name.trim_ascii_end();
    let names: [&[u8]; 6] = [b"F2", b"F02", b"F002", b"DE2", b"DE02", b"DE002"];
    names.into_iter().any(|known| {
        name.strip_suffix(known)
            .is_some_and(|rest| rest.last().is_none_or(|byte| !byte.is_ascii_alphanumeric()))
    })
}

/// Whether groups of four hexadecimal digits go before or after: a table of codes.
fn in_table(text: &[u8], span: &Range<usize>) -> bool {
    let blank = |byte: u8| matches!(byte, b' ' | b'\n' | b'\t');
    let code = |bytes: &[u8]| {
        bytes
            .iter()
            .all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte))
    };
    let apart = |at: Option<usize>| {
        at.and_then(|at| text.get(at))
            .is_none_or(|byte| blank(*byte))
    };
    let before = span.start.checked_sub(5).is_some_and(|at| {
        blank(text[at + 4]) && code(&text[at..at + 4]) && (at == 0 || apart(Some(at - 1)))
    });
    let after = text
        .get(span.end..span.end + 5)
        .is_some_and(|part| blank(part[0]) && code(&part[1..]) && apart(Some(span.end + 5)));
    before || after
}

/// Whether another long number goes before or after: a list of numbers.
fn in_list(text: &[u8], span: &Range<usize>) -> bool {
    let near = |byte: &u8| matches!(byte, b',' | b' ' | b'\n' | b'\t' | b'\r');
    let before = &text[span.start.saturating_sub(64)..span.start];
    let after = &text[span.end..(span.end + 64).min(text.len())];
    let next = after
        .iter()
        .position(|byte| !near(byte))
        .map_or(&[][..], |at| &after[at..]);
    let last = before
        .iter()
        .rposition(|byte| !near(byte))
        .map_or(&[][..], |at| &before[..=at]);
    let long = |count: usize| count >= 10;
    (after.first() == Some(&b',')
        && long(next.iter().take_while(|byte| byte.is_ascii_digit()).count()))
        || (before[last.len()..].first() == Some(&b',')
            && long(
                last.iter()
                    .rev()
                    .take_while(|byte| byte.is_ascii_digit())
                    .count(),
            ))
}

fn alone(text: &[u8], span: &Range<usize>) -> bool {
    let before = span.start.checked_sub(1).map_or(b' ', |at| text[at]);
    let after = text.get(span.end).copied().unwrap_or(b' ');
    !before.is_ascii_alphanumeric()
        && !after.is_ascii_alphanumeric()
        && before != b'.'
        && before != b'-'
        && after != b'-'
}

/// How many bytes groups of these lengths take, and how many digits they are, if a row that is grouped so begins with them and the
/// same space, dash or dot stands between all of them.
fn grouped(shape: &[u8], lengths: &[u8]) -> Option<(usize, usize)> {
    let joint = *shape.get(1)?;
    let begins = shape.len() >= lengths.len()
        && lengths
            .iter()
            .zip(shape)
            .all(|(length, group)| length == group || *length == b' ' && *group == joint);
    let whole = !shape.get(lengths.len()).is_some_and(u8::is_ascii_digit);
    if !begins || !whole || !matches!(joint, b' ' | b'-' | b'.') {
        return None;
    }
    let groups = lengths.split(|byte| *byte == b' ');
    let length = |group: &[u8]| {
        let digits = group.iter().map(|digit| usize::from(digit - b'0'));
        digits.fold(0, |all, digit| all * 10 + digit)
    };
    let (count, joints) = groups.fold((0, 0), |(count, nth), group| {
        (count + length(group), nth + 1)
    });
    Some((count + joints - 1, count))
}

fn is_card(
    digits: &[u8],
    count: usize,
    grouped: bool,
    text: &[u8],
    span: &Range<usize>,
    named: impl Fn(&Range<usize>) -> Label,
) -> bool {
    let Some(digits) = digits.get(..count).filter(|digits| luhn(digits)) else {
        return false;
    };
    let first = digits[..6]
        .iter()
        .fold(0, |all, digit| all * 10 + u32::from(*digit));
    let mut needs_word = true;
    let mut known = false;
    for (from, to, least, most, word) in &ISSUERS {
        if (*from..=*to).contains(&first) && (*least..=*most).contains(&count) {
            known = true;
            needs_word &= *word;
        }
    }
    if !known {
        return false;
    }
    let distinct = digits
        .iter()
        .fold(0_u16, |all, digit| all | 1 << digit)
        .count_ones();
    let trial = TRIALS.contains(&first)
        || distinct < 4
        || (grouped && in_table(text, span))
        || (!grouped && in_list(text, span));
    if distinct < 2 {
        return false;
    }
    // What people group is told by that.
    let label = if grouped { Label::Any } else { named(span) };
    if label == Label::Other {
        return false;
    }
    // Three groups of four are many things, and six digits before thirteen are a name and a time, but for UnionPay.
    let joint = text
        .get(span.start + 6)
        .is_some_and(|byte| !byte.is_ascii_digit());
    let many = matches!(count, 12 | 13) || (joint && !digits.starts_with(&[6, 2]));
    let needs_word = needs_word && (!grouped || many);
    if !needs_word && !trial {
        return true;
    }
    if label == Label::Meant
        || grouped && named(span) == Label::Meant
        || on_track(text, span)
        || in_message(text, span)
        || says_card(text, span)
    {
        return true;
    }
    // A number of thirteen digits is that of an article, too.
    let expires = || expires(text, span);
    let known = || !needs_word || (grouped || count >= 14) && expires();
    let meant = || !trial || is_all(text, span) || expires();
    known() && meant()
}

/// What may stand outside of a card that is all of a string, on either side, in bytes.
const OUTSIDE: usize = 16;

/// Whether it is all of a string but for quotes, by itself or as the text of a block: documentation says more.
fn is_all(text: &[u8], span: &Range<usize>) -> bool {
    let outside = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    // There may be many in one text: no more is looked at than is asked.
    let from = span.start.saturating_sub(OUTSIDE);
    let before = &text[from..span.start];
    let after = &text[span.end..(span.end + OUTSIDE).min(text.len())];
    let after = memchr::memchr(b'\n', after).map_or(after, |end| &after[..end]);
    looked(before.len() + after.len());
    let line = match memchr::memrchr(b'\n', before) {
        Some(feed) => &before[feed..],
        None if from == 0 => before,
        None => return false,
    };
    let line = line.trim_ascii();
    let first = from == 0 && line.len() == before.trim_ascii().len();
    let alone = first && line.iter().all(outside);
    let block = line
        .strip_prefix(b"text:")
        .is_some_and(|line| line.iter().all(outside));
    (alone || block) && after.len() < OUTSIDE && after.iter().all(outside)
}

/// Whether the month until which a card is valid stands behind it: `09/28`, `9/2028`.
fn expires(text: &[u8], span: &Range<usize>) -> bool {
    let after = &text[span.end..(span.end + 24).min(text.len())];
    let slashes = after.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| at).any(|at| {
        let (before, after) = after.split_at(at);
        let digit = |byte: &&u8| byte.is_ascii_digit();
        let (rest, month) = before.split_at(at - before.iter().rev().take_while(digit).count());
        let year = after[1..].iter().take_while(digit).count();
        let known = year == 2 || year == 4 && after.starts_with(b"/20");
        // A day before it or a year behind it makes a date of it.
        let date = rest.last() == Some(&b'/') || after.get(1 + year) == Some(&b'/');
        matches!(
            month,
            [b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2'] | [b'1'..=b'9']
        ) && known
            && !date
    })
}

/// Whether the head of the number of an account stands before what begins here: `DE89 `.
fn is_headed(text: &[u8], at: usize) -> bool {
    at >= 5
        && text[at - 1] == b' '
        && text[at - 5..at - 3].iter().all(u8::is_ascii_uppercase)
        && text[at - 3..at - 1].iter().all(u8::is_ascii_digit)
        && (at == 5 || !text[at - 6].is_ascii_alphanumeric())
}

/// Whether a group of four stands before what begins here in which there are letters, as the numbers of some banks have: `G030 `.
fn is_behind_letters(text: &[u8], at: usize) -> bool {
    let part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    match text[..at].last_chunk() {
        // The letter is the first or the last, and not all are: a word is no such group.
        Some([a, b, c, d, b' ']) => {
            a.is_ascii_digit() != d.is_ascii_digit() && [*a, *b, *c, *d].into_iter().all(part)
        }
        _ => false,
    }
}

/// What the number is called, right before it or at the head of its column.
fn label(text: &[u8], span: &Range<usize>, countries: &Countries, near: &Near) -> Label {
    let name = labels::before(text, span.start);
    let name = name.or_else(|| countries.heading(text, span, near));
    name.map_or(Label::Any, |name| labels::says(&text[name], says))
}

fn says_card(text: &[u8], span: &Range<usize>) -> bool {
    let from = span.start.saturating_sub(64);
    let to = (span.end + 32).min(text.len());
    says(&text[from..span.start]) || says(&text[span.end..to])
}

/// Whether a word for a card stands in a piece of a text.
fn says(piece: &[u8]) -> bool {
    let mut said = false;
    SAYS.each(piece, |found, whole| {
        let small = |at: Option<usize>| {
            at.and_then(|at| piece.get(at))
                .is_some_and(u8::is_ascii_lowercase)
        };
        let begins = || {
            !small(found.start.checked_sub(1))
                || piece.get(found.start).is_some_and(u8::is_ascii_uppercase)
        };
        said |= match found.len() {
            4.. => whole == 0 || begins(),
            _ => begins() && !small(Some(found.end)),
        };
    });
    said
}
