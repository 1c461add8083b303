//! Plain loops over every rule, for tests alone: what they find is what the quick looks must find.

use std::ops::Range;

use proptest::prelude::*;

use super::{
    COUNTRIES,
    checks::same,
    grouped::Lettered,
    named::LETTERED,
    national::{Near, TAXPAYERS, is_taxed},
    number::{Row, ends_alone, stands_alone},
    rule::Rule,
    table,
};

/// A number that is found, with the name of its rule.
type Told = Option<(Range<usize>, String)>;

/// Whether a word of a rule stands in a piece of a text; what stands around it says whether it is a word of its own.
fn said(text: &[u8], piece: Range<usize>, words: &[&str]) -> bool {
    let letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphabetic);
    let upper = |at: usize| text.get(at).is_some_and(u8::is_ascii_uppercase);
    let lower = |at: usize| text.get(at).is_some_and(u8::is_ascii_lowercase);
    let others = words.iter().flat_map(|word| table::other_ways(word));
    let words = words.iter().map(|word| (*word).to_owned());
    words.chain(others).any(|word| {
        piece.clone().any(|start| {
            let end = start + word.len();
            let here = text.get(start..end).filter(|_| end <= piece.end);
            let long = word.len() > 4 || !word.starts_with(|first: char| first.is_ascii());
            let several = word.contains([' ', '_', '-']);
            let last = start.wrapping_sub(1);
            let begins = !letter(last) || lower(last) && upper(start);
            // Abbreviations in capitals only are none in other letters.
            let any = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
            let exact = any(u8::is_ascii_uppercase) && !any(u8::is_ascii_lowercase);
            let same = |here: &[u8]| match exact {
                true => here == word.as_bytes(),
                false => here.eq_ignore_ascii_case(word.as_bytes()),
            };
            here.is_some_and(same)
                && (long && (begins || !several)
                    || begins && {
                        let capitals = text[start..end].iter().all(u8::is_ascii_uppercase);
                        let end = end + usize::from(capitals && text.get(end) == Some(&b's'));
                        !letter(end) || upper(end)
                    })
        })
    })
}

fn announced(text: &[u8], span: &Range<usize>, words: &[&str]) -> bool {
    let first = |at: usize| text[at] & 0xC0 != 0x80;
    let (mut start, mut end) = (span.start, span.end);
    let (mut before, mut after) = (0, 0);
    while start > 0 && before < 72 && span.start - start < 144 {
        start -= 1;
        before += usize::from(first(start));
    }
    while end < text.len() && end - span.end < 64 {
        after += usize::from(first(end));
        if after > 32 {
            break;
        }
        end += 1;
    }
    said(text, start..span.start, words) || said(text, span.end..end, words)
}

/// The number in the row that begins at `start`, and where the row ends.
fn plain(text: &[u8], start: usize) -> (Told, usize) {
    let digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let joint = |at: usize| text.get(at).is_some_and(|byte| b" -./".contains(byte));
    let mut end = start;
    let (mut shape, mut group, mut digits) = (String::new(), 0, Vec::new());
    while digit(end) || joint(end) && digit(end + 1) {
        if digit(end) {
            digits.push(text[end] - b'0');
            group += 1;
        } else {
            shape.push_str(&format!("{group}{}", char::from(text[end])));
            group = 0;
        }
        end += 1;
    }
    shape.push_str(&group.to_string());
    let span = start..end;
    for lettered in Lettered::ALL {
        if lettered.shapes().any(|known| known == shape)
            && let Some(row) = Row::at(text, start)
            && let Some((span, name)) =
                COUNTRIES.lettered(text, lettered, row, &span, &Near::default())
        {
            return (Some((span, name.to_string())), end);
        }
    }
    let fits = |rule: &&Rule| {
        let mut shapes = rule.worded.iter().chain(rule.alone);
        shapes.any(|known| *known == shape) && !same(&digits) && (rule.holds)(&digits)
    };
    if !stands_alone(text, &span) {
        let letters = span.start.checked_sub(2).map(|at| &text[at..span.start]);
        let letters = letters.filter(|letters| letters.iter().all(u8::is_ascii_uppercase));
        let country = letters.map(|letters| String::from_utf8_lossy(letters).to_lowercase());
        let country = country.filter(|_| stands_alone(text, &(span.start - 2..span.end)));
        let country = country.map(|country| country.replace("el", "gr"));
        let before = &text[..span.start.saturating_sub(1)];
        let part = before.iter().rev().position(|byte| *byte == b'/');
        let part = part.filter(|length| (1..48).contains(length));
        let part = part.filter(|length| {
            let part = &before[before.len() - length..];
            let letter = |byte: u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
            let words = part.windows(2).all(|two| two[1] != b' ' || letter(two[0]));
            words && !part.iter().any(u8::is_ascii_control)
        });
        let part = part.filter(|_| text[before.len()] == b'/');
        let part = part.filter(|_| text.get(end) == Some(&b'/') || ends_alone(text, end));
        let told = table::all()
            .filter(fits)
            .find(|rule| match (&country, part) {
                (Some(country), _) => {
                    let taxed = TAXPAYERS.contains(&rule.name) && is_taxed(text, span.start);
                    rule.name.starts_with(country) && (taxed || announced(text, &span, rule.words))
                }
                (None, Some(length)) => said(text, before.len() - length..before.len(), rule.words),
                (None, None) => false,
            });
        return (told.map(|rule| (span, rule.name.to_owned())), end);
    }
    let found: Vec<_> = table::all()
        .enumerate()
        .filter(|(_, rule)| fits(rule))
        .collect();
    let otherwise = |at: usize| COUNTRIES.is_called_otherwise(at, text, &span, &Near::default());
    let told = found
        .iter()
        .find(|(at, rule)| announced(text, &span, rule.words) && !otherwise(*at))
        .or_else(|| {
            let before = text[span.start.saturating_sub(16)..span.start].to_ascii_lowercase();
            let before = String::from_utf8_lossy(&before);
            let device = ["imsi", "imei", "iccid"];
            found
                .iter()
                .filter(|_| !device.iter().any(|name| before.contains(name)))
                .find(|(_, rule)| rule.alone.contains(&shape.as_str()))
        });
    let told = told.map(|(_, rule)| rule.name.to_owned());
    (told.map(|name| (span, name)), end)
}

fn piece() -> impl Strategy<Value = String> {
    let words = table::all().map(|rule| rule.words);
    let words = words.chain(LETTERED.iter().map(|(_, words)| *words));
    let words: Vec<&str> = words.flatten().copied().collect();
    prop_oneof![
        3 => prop::sample::select(words).prop_map(str::to_owned),
        1 => "(IMSI|imei|Iccid)[ :]{1,3}",
        2 => "[a-z ,;:_]{0,60}",
        1 => "/(nip|pesel|inn|oib|users|the nip| nip |no\\. nip)/[0-9]{9,11}/?",
        1 => "(OIB|NIPs|VAT|dic|vats)[: ]{1,2}(HR|PL|DE|EL|CZ)[0-9]{9,11}",
        4 => "[0-9]{7,19}",
        2 => "[A-Zx-z_./]?([0-9]{6}|[0-9]{7}|[0-9]{8}|[0-9]{9}|[0-9]{17})[- ]?[A-Zak0-9]{0,2}",
        2 => "taiwan [A-Z][1289][0-9]{8}",
        2 => "(nric [STFGM][0-9]{7}[A-Z]|hkid [A-Z][0-9]{7}|pps [0-9]{7}[A-W][A-I]?)",
        2 => "(dni|nie) ([XYZxyz][0-9]{7}|[0-9]{8})[- ]?[A-Za-z]",
        2 => "(11|32|44)[0-9]{4}19[0-9]{2}(0[1-9]|1[0-2])[0-2][0-9][0-9]{3}[0-9Xx]",
        2 => "[0-2][1-9](0[1-9]|1[0-2])[0-9]{2}-[0-9]{3}[0-9A-Y]",
        2 => "[0-9]{1,2}\\.[0-9]{3}\\.[0-9]{3}-[0-9Kk]",
        2 => "[0-9]{2,3}[ .-][0-9]{3}[ .-][0-9]{3}[ -][0-9]{1,4}",
        2 => "[0-9]{6}[-/ ][0-9]{3,7}[A-Z]?",
        1 => "([0-9]{1,8}[ ./-]){1,8}",
    ]
}

/// What the quick looks and the plain loops find at the first row of digits where they differ.
fn apart(text: &[u8]) -> Option<(Told, Told)> {
    let mut near = Near::default();
    let mut start = 0;
    while start < text.len() {
        if !text[start].is_ascii_digit() {
            start += 1;
            continue;
        }
        let (expected, end) = plain(text, start);
        let quick = Row::at(text, start)
            .filter(|row| COUNTRIES.shapes.may_know(text, start, *row))
            .and_then(|row| COUNTRIES.number(text, start, row, &mut near))
            .map(|(span, name)| (span, name.to_string()));
        // The loops know no tables: what the heading of a column says is told by the quick look alone.
        let headed = COUNTRIES.heading(text, &(start..end), &Near::default());
        if quick != expected && headed.is_none() {
            return Some((quick, expected));
        }
        start = end;
    }
    None
}

/// Digits in each group that a shape says, with its joints.
fn written(shape: &str) -> String {
    let mut out = String::new();
    let mut count = 0;
    for sign in shape.chars().chain(['!']) {
        match sign.to_digit(10) {
            Some(digit) => count = 10 * count + digit,
            None => {
                out.extend(
                    (0..std::mem::take(&mut count)).map(|nth| char::from(b'1' + (nth % 9) as u8)),
                );
                out.extend(Some(sign).filter(|sign| *sign != '!'));
            }
        }
    }
    out
}

#[test]
fn every_shape_is_looked_at_where_a_text_begins_and_ends() {
    let before = ["", "A", "x", "-", " ", "A-", "AB", "2A ", "12A", "\u{e9}"];
    let after = [
        "", "A", "a", " ", "-", "A1", "AB", " A", " A ", " A 0", " 1", " 1A", " 12 ", "X", "-1",
        "\u{e9}",
    ];
    for shape in Lettered::ALL.into_iter().flat_map(Lettered::shapes) {
        let digits = written(&shape);
        for before in before {
            for after in after {
                let text = format!("{before}{digits}{after}");
                assert_eq!(apart(text.as_bytes()), None, "{text:?}");
            }
        }
    }
}

#[test]
fn a_word_without_its_accents_announces_a_number_in_both() {
    assert_eq!(
        plain(b"rc:000101001", 3).0.map(|(_, name)| name).as_deref(),
        Some("cz_birth_number")
    );
    assert_eq!(apart(b"rc:000101001"), None);
}

#[test]
fn a_heading_far_above_says_what_no_word_near_does() {
    let text = "registro \u{fa}nico\n, ,_: ,:,::.00-000 000 000,/nip/000000000:aaaa::,,,_: a,.\n2.222.498-0";
    let (near, _) = plain(text.as_bytes(), 74);
    assert_eq!(near.map(|(_, name)| name).as_deref(), Some("cl_rut"));
    assert_eq!(apart(text.as_bytes()), None);
}

#[test]
fn a_number_of_one_digit_throughout_is_nobodys() {
    for rule in table::all() {
        for shape in rule.worded.iter().chain(rule.alone) {
            for digit in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"] {
                let word = rule.words.first().copied().unwrap_or_default();
                let digits = written(shape).replace(|sign: char| sign.is_ascii_digit(), digit);
                let text = format!("{word} {digits}");
                assert_eq!(apart(text.as_bytes()), None, "{text:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_national_number_is_found_where_plain_loops_over_every_rule_find_it(
        pieces in prop::collection::vec((piece(), "[ \n,|.:]{1,2}|a|"), 1..30),
    ) {
        let text: String = pieces.iter().map(|(piece, joint)| format!("{piece}{joint}")).collect();
        prop_assert_eq!(apart(text.as_bytes()), None, "{:?}", text);
    }
}
