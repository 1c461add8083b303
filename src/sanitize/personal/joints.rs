//! Numbers that are grouped by other characters than those of ASCII: spaces that keep a line together, and dashes of all kinds.
//!
//! Such a number is looked at again with a plain space or dash in each of these places, together with what stands around it.
//!
//! Guarantees: a text without such a place costs nothing; what is looked at again is bounded by [`MOST`] and
//! [`AROUND`] of each, and none of it twice. Deliberately absent: digits of other scripts (`../decoded.rs`).

use std::ops::Range;

use crate::sanitize::{
    survey::{Found, all_places},
    work::looked,
};

/// How far a number may go on from such a place, in bytes.
const MOST: usize = 64;
/// How far before and behind it words are looked for that say what it is, in bytes.
const AROUND: usize = 80;
/// The fewest digits of a number.
const DIGITS: usize = 8;

/// A piece of a text with plain spaces and dashes in its numbers.
pub(super) struct Plain {
    pub(super) text: String,
    /// Where the piece begins in the text that it was taken from, and where numbers stand there.
    start: usize,
    numbers: Vec<Range<usize>>,
    /// Behind which places of the piece characters were replaced, and by how much they and those before were longer.
    replaced: Vec<(usize, usize)>,
}

impl Plain {
    /// Where this stands in the text that the piece was taken from, if it is in one of the numbers.
    pub(super) fn original(&self, span: &Range<usize>) -> Option<Range<usize>> {
        let moved = |at: usize| {
            let before = self.replaced.partition_point(|(place, _)| *place < at);
            let more = before
                .checked_sub(1)
                .map_or(0, |last| self.replaced[last].1);
            self.start + at + more
        };
        let span = moved(span.start)..moved(span.end);
        let number = self.numbers.partition_point(|number| number.end < span.end);
        let number = self.numbers.get(number)?;
        (number.start <= span.start).then_some(span)
    }
}

/// Pieces with numbers that are grouped so, and with what stands around them: those that stand near one another in one.
pub(super) fn pieces(text: &str, found: &[Found]) -> impl Iterator<Item = Plain> {
    let mut numbers = numbers(text.as_bytes(), found).peekable();
    std::iter::from_fn(move || {
        let mut near = vec![numbers.next()?];
        let mut end = near[0].end;
        while let Some(next) = numbers.next_if(|next| next.start < end + 2 * AROUND) {
            end = next.end;
            near.push(next);
        }
        Some(plain(text, near))
    })
}

/// Where numbers stand that are grouped so.
fn numbers(text: &[u8], found: &[Found]) -> impl Iterator<Item = Range<usize>> {
    let mut seen = 0;
    all_places(found).filter_map(move |at| {
        if at < seen {
            return None;
        }
        let number = number_around(text, at, seen)?;
        seen = number.end;
        Some(number)
    })
}

/// What stands for a space or a dash at a place, and how long it is.
fn joint(text: &[u8], at: usize) -> Option<(char, usize)> {
    match text.get(at..)? {
        [0xC2, 0xA0, ..] => Some((' ', 2)),
        [0xE2, 0x80, 0x80..=0x8A | 0xAF, ..] => Some((' ', 3)),
        [0xE2, 0x80, 0x90..=0x93, ..] => Some(('-', 3)),
        _ => None,
    }
}

/// Letters and digits around a place, with single joints between, if they may be a number: none before `from`.
fn number_around(text: &[u8], at: usize, from: usize) -> Option<Range<usize>> {
    let alnum = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let (_, length) = joint(text, at)?;
    if !alnum(at.checked_sub(1)?) || !alnum(at + length) {
        return None;
    }
    let mut end = at;
    while end < at + MOST {
        if alnum(end) {
            end += 1;
        } else if let Some((_, length)) = joint(text, end)
            && alnum(end + length)
        {
            end += length;
        } else {
            break;
        }
    }
    let back = text[from.max(at.saturating_sub(MOST))..at].iter().rev();
    let start = at - back.take_while(|byte| byte.is_ascii_alphanumeric()).count();
    looked(end - start);
    let digits = text[start..end].iter().filter(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    // Of accounts some have few.
    let headed = digits >= 4 && text[start..start + 2].iter().all(u8::is_ascii_alphabetic);
    (digits >= DIGITS || headed).then_some(start..end)
}

fn plain(text: &str, numbers: Vec<Range<usize>>) -> Plain {
    let (first, last) = (numbers[0].start, numbers[numbers.len() - 1].end);
    let start = text.floor_char_boundary(first.saturating_sub(AROUND));
    let end = text.ceil_char_boundary((last + AROUND).min(text.len()));
    let mut piece = String::with_capacity(end - start);
    let (mut replaced, mut more, mut copied) = (Vec::new(), 0, start);
    for number in &numbers {
        let mut at = number.start;
        while at < number.end {
            let Some((plain, length)) = joint(text.as_bytes(), at) else {
                at += 1;
                continue;
            };
            piece.push_str(&text[copied..at]);
            more += length - 1;
            replaced.push((piece.len(), more));
            piece.push(plain);
            at += length;
            copied = at;
        }
    }
    piece.push_str(&text[copied..end]);
    Plain {
        text: piece,
        start,
        numbers,
        replaced,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{names, told};

    #[test]
    fn groups_may_have_other_spaces_and_dashes_between_them() {
        for joint in ['\u{a0}', '\u{202f}', '\u{2009}', '\u{2011}', '\u{2013}'] {
            let between = |text: &str| text.replace(' ', &joint.to_string());
            for (plain, name) in [
                ("DE89 3704 0044 0532 0130 00", "iban"),
                ("4929 1234 5678 9015", "payment_card"),
            ] {
                let number = between(plain);
                for text in [
                    number.clone(),
                    format!("é {number}, ü"),
                    format!("10{joint}€ {number}{joint}€"),
                ] {
                    assert_eq!(told(&text), [(name.to_owned(), number.clone())], "{text}");
                }
            }
            let number = between("943 476 5919");
            assert_eq!(names(&format!("NHS number {number}")), ["gb_nhs"]);
            assert_eq!(names(&format!("call {number}")), [""; 0]);
            assert_eq!(names(&between("DE88 3704 0044 0532 0130 00")), [""; 0]);
            assert_eq!(names(&between("1 000 000 km, 2 500 000 m")), [""; 0]);
        }
        let two = "DE89\u{a0}3704\u{a0}0044\u{a0}0532\u{a0}0130\u{a0}00";
        assert_eq!(names(&format!("{two} é {two}")), ["iban", "iban"]);
    }

    #[test]
    fn dots_between_the_groups_of_a_card_need_a_word() {
        let card = "4929.1234.5678.9015";
        assert_eq!(names(&format!("card number {card}")), ["payment_card"]);
        assert_eq!(names(&format!("at {card} it was")), [""; 0]);
        for text in [
            "paid 4929 1234 5678 9015.2024-05-01",
            "paid by 4929-1234-5678-9015.1234",
        ] {
            assert_eq!(names(text), ["payment_card"], "{text}");
        }
        assert_eq!(
            names("%B4929123456789015^PERSON/A^2712101000?"),
            ["payment_card"]
        );
    }
}
