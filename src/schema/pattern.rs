//! Patterns: those of ECMA 262, run by an engine of linear time.
//!
//! What both spell alike means the same after [`ours`]; what only ECMA has (looking around, referring back) no engine of linear
//! time has, and is not judged.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};

/// Most bytes of one compiled pattern.
const COMPILED_BYTES: usize = 1 << 20;
/// Most bytes that matching keeps of it.
const CACHED_BYTES: usize = 256 << 10;

/// Whether a pattern can be judged.
pub fn is_linear(pattern: &str) -> bool {
    compile(pattern).is_some()
}

/// The pattern as it is run; `None` when it cannot be.
pub(super) fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(&ours(pattern)?)
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(CACHED_BYTES)
        .build()
        .ok()
}

/// The same pattern in the words of our engine.
fn ours(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let escape = chars.next()?;
                escaped(escape, &mut chars, class, &mut out)?;
            }
            '[' if class => out.push_str("\\["),
            '[' => {
                class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // Nothing, or anything.
                if chars.peek() == Some(&']') {
                    return None;
                }
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            // Sets are combined by these in our engine, and are themselves in ECMA.
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
            }
            '-' if class && chars.peek() == Some(&'-') => out.push_str("\\-"),
            '.' if !class => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            // Groups without a name or with one are alike; marks for the engine are not.
            '(' if chars.peek() == Some(&'?') => {
                chars.next();
                match chars.next()? {
                    ':' => out.push_str("(?:"),
                    '<' if !matches!(chars.peek(), Some('=' | '!')) => out.push_str("(?<"),
                    _ => return None,
                }
            }
            c => out.push(c),
        }
    }
    Some(out)
}

fn escaped(
    escape: char,
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    class: bool,
    out: &mut String,
) -> Option<()> {
    const SPACE: &str = r"\t\n\x0B\x0C\r \u{A0}\u{FEFF}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}";
    let mut set = |inside: &str| {
        if class {
            out.push_str(inside);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "[{inside}]");
        }
    };
    match escape {
        'd' => set("0-9"),
        'w' => set("A-Za-z0-9_"),
        's' => set(SPACE),
        'D' => out.push_str("[^0-9]"),
        'W' => out.push_str("[^A-Za-z0-9_]"),
        'S' => {
            let _ = write!(out, "[^{SPACE}]");
        }
        'b' if class => out.push_str("\\x08"),
        'b' => out.push_str("(?-u:\\b)"),
        't' | 'n' | 'r' | 'f' | 'v' => {
            out.push('\\');
            out.push(escape);
        }
        '0' if !chars.peek().is_some_and(char::is_ascii_digit) => out.push_str("\\x00"),
        'c' => {
            let letter = chars.next().filter(char::is_ascii_alphabetic)?;
            let _ = write!(out, "\\x{:02x}", u32::from(letter) % 32);
        }
        'x' => {
            let code = hex(chars, 2)?;
            let _ = write!(out, "\\u{{{code:x}}}");
        }
        'u' => {
            let code = if chars.next_if_eq(&'{').is_some() {
                let mut code = 0_u32;
                loop {
                    match chars.next()? {
                        '}' => break code,
                        digit => code = code.checked_mul(16)? + digit.to_digit(16)?,
                    }
                }
            } else {
                pair(chars)?
            };
            char::from_u32(code)?;
            let _ = write!(out, "\\u{{{code:x}}}");
        }
        'p' | 'P' if chars.peek() == Some(&'{') => {
            out.push('\\');
            out.push(escape);
        }
        c if c.is_ascii_alphanumeric() => return None,
        c if c.is_ascii() => {
            out.push('\\');
            out.push(c);
        }
        c => out.push(c),
    }
    Some(())
}

/// A unit of UTF-16 in four digits, or two that make one character.
fn pair(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<u32> {
    let high = hex(chars, 4)?;
    if !(0xD800..0xDC00).contains(&high) {
        return Some(high);
    }
    chars.next_if_eq(&'\\')?;
    chars.next_if_eq(&'u')?;
    let low = hex(chars, 4)?;
    (0xDC00..0xE000)
        .contains(&low)
        .then(|| 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
}

fn hex(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, digits: u32) -> Option<u32> {
    (0..digits).try_fold(0, |code, _| Some(code * 16 + chars.next()?.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_ecma_says() {
        for (pattern, fits, fits_not) in [
            (r"^\d+$", "12", "१२"),
            (r"^\w+$", "a_1", "é"),
            (r"^[\w-]+$", "a-b", "a b"),
            (r"^[a&&b]+$", "&&a", "c"),
            (r"^[[a]+$", "[a", "b"),
            (r"^a.b$", "a b", "a\u{2028}b"),
            (r"^\/x\-y$", "/x-y", "x"),
            (r"^\u0041\x42\u{43}\cJ$", "ABC\n", "ABC"),
            (r"^\ud83d\ude00$", "😀", "x"),
            (r"^(?<year>\d{4})-(?:\d\d)$", "2026-11", "2026"),
            (r"^\S+\s\S+$", "a\u{a0}b", "a_b"),
            (r"\bfoo\b", "a foo", "afoo"),
            (r"^[^\s]$", "é", "\t"),
            (r"a$", "ba", "a\n"),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert!(compiled.is_match(fits), "{pattern} {fits:?}");
            assert!(!compiled.is_match(fits_not), "{pattern} {fits_not:?}");
        }
    }

    #[test]
    fn what_only_ecma_has_is_not_judged() {
        for pattern in [
            r"(a)\1",
            r"(?=a)b",
            r"(?!a)b",
            r"(?<=a)b",
            r"(?<!a)b",
            r"(?i)a",
            r"(?P<a>x)",
            r"[]",
            r"\k<a>",
            r"(",
            r"a{1000}{1000}{1000}",
        ] {
            assert!(!is_linear(pattern), "{pattern}");
        }
    }
}
