//! What stands in the place of what was redacted.

use std::{borrow::Cow, ops::Range};

use super::Hit;

const OPEN: &str = "[redacted:";
/// The longest rule name.
const NAME: usize = 64;

/// What stands in the place of what this rule found.
pub(super) fn placeholder(rule: &str) -> String {
    format!("{OPEN}{rule}]")
}

/// The text with a placeholder in the place of each hit, and of the whole of each character that one lies in; they come in their
/// order, and may overlap.
pub(super) fn replaced<'a>(text: &'a str, hits: &[Hit]) -> Cow<'a, str> {
    let (mut kept, mut from) = (String::new(), 0);
    for hit in hits {
        let start = text.floor_char_boundary(hit.span.start);
        if let Some(before) = text.get(from..start) {
            kept.push_str(before);
            kept.push_str(&placeholder(&hit.rule));
        }
        from = from.max(text.ceil_char_boundary(hit.span.end));
    }
    if from == 0 {
        return text.into();
    }
    (kept + &text[from..]).into()
}

/// Whether a span of a text lies in a placeholder, so that nothing is found in what we wrote. A name of ours is words in lower
/// case with few digits: what could be a secret is no name.
pub(super) fn is_placeholder(text: &[u8], span: &Range<usize>) -> bool {
    let from = span.start.saturating_sub(OPEN.len() + NAME);
    // It begins there at the latest, and nearly nothing stands behind a bracket.
    let before = text.get(from..=span.start).unwrap_or_default();
    let mut brackets = memchr::memrchr_iter(b'[', before).map(|bracket| from + bracket);
    let Some(open) = brackets.find(|at| text[*at..].starts_with(OPEN.as_bytes())) else {
        return false;
    };
    let name = &text[open + OPEN.len()..];
    let length = name
        .iter()
        .take_while(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        .count();
    let digits = name[..length]
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .count();
    (1..=NAME).contains(&length)
        && digits <= 4
        && name.get(length) == Some(&b']')
        && open + OPEN.len() + length + 1 >= span.end
}

/// Whether a member's name may hold more than a name: it is long, or has many digits, or a long run with a digit in it, as
/// secrets do.
pub(super) fn is_telling(name: &str) -> bool {
    const LONG: usize = 64;
    const DIGITS: usize = 8;
    const RUN: usize = 12;
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    name.len() > LONG
        || digits(name) > DIGITS
        || name
            .split(|character: char| !character.is_ascii_alphanumeric())
            .any(|run| run.len() >= RUN && digits(run) > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanitize::Class;

    #[test]
    fn a_character_goes_as_a_whole() {
        let hits = [3..4, 5..9].map(|span| Hit {
            span,
            class: Class::Secret,
            rule: "x".into(),
            inert: None,
        });
        let told = "caf[redacted:x][redacted:x]";
        assert_eq!(replaced("caf\u{e9}!", &hits), told);
        assert_eq!(replaced("caf\u{e9}!", &hits[..1]), "caf[redacted:x]!");
        assert_eq!(replaced("caf\u{e9}!", &[]), "caf\u{e9}!");
    }

    #[test]
    fn only_what_lies_in_a_placeholder_is_one() {
        let text = "a [redacted:aws_key] b [redacted:0123456789abcdef] [redacted:x";
        let at = |part: &str| {
            let start = text.find(part).unwrap();
            start..start + part.len()
        };
        for (part, expected) in [
            ("[redacted:aws_key]", true),
            ("aws_key", true),
            ("redacted:aws_key]", true),
            ("a [redacted:aws_key]", false),
            ("aws_key] b", false),
            ("0123456789abcdef", false),
            ("[redacted:x", false),
        ] {
            assert_eq!(
                is_placeholder(text.as_bytes(), &at(part)),
                expected,
                "{part}"
            );
        }
    }
}
