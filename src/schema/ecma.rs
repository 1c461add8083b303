//! Whether a pattern is one of ECMA 262 with its flag `u`, as validators in JavaScript read it.
//!
//! Guarantees: what is said to be one compiles there. Deliberately absent: what it means (`pattern`). Scripts of which few have heard,
//! classes and marks that came with later editions, and halves of characters are no patterns here, though newer engines take them.

use super::pattern::{Atom, Chars, escaped};

/// What stands for itself behind a backslash, and for something else without one.
const MARKS: &str = r"^$\.*+?()[]{}|/";

/// What a property may say of characters: a category, or yes or no.
const PROPERTIES: &str = "L Lu Ll Lt LC Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf \
    Letter Lowercase_Letter Uppercase_Letter Mark Number Decimal_Number Punctuation Symbol Separator Space_Separator Other Control \
    Alphabetic Alpha Lowercase Uppercase White_Space ASCII Any Assigned Ideographic Emoji Emoji_Presentation \
    Extended_Pictographic ID_Start ID_Continue Hex_Digit ASCII_Hex_Digit";
/// The scripts that it may name.
const SCRIPTS: &str = "Latin Greek Cyrillic Han Hiragana Katakana Hangul Arabic Hebrew Thai Devanagari Armenian Georgian Common";

/// Whether an engine for JavaScript compiles this with the flag `u`.
pub fn is_ecma_pattern(text: &str) -> bool {
    let mut reading = Reading::default();
    let mut chars = text.chars().peekable();
    reading.all(&mut chars).is_some() && reading.is_whole()
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    /// For each group that is open, whether it may be repeated when it is closed: what only looks around may not.
    open: Vec<bool>,
    /// How many groups capture something.
    captures: usize,
    names: Vec<String>,
    /// The last group that is referred back to by its number, and those that are by their names.
    last: usize,
    named: Vec<String>,
}

impl Reading {
    /// Reads to the end; `None` where that is not possible.
    fn all(&mut self, chars: &mut Chars<'_>) -> Option<()> {
        let mut repeatable = false;
        while let Some(c) = chars.next() {
            repeatable = match c {
                '^' | '$' | '|' => false,
                '(' => {
                    self.group(chars)?;
                    false
                }
                ')' => self.open.pop()?,
                '[' => {
                    class(chars)?;
                    true
                }
                '*' | '+' | '?' | '{' => {
                    if !repeatable || c == '{' && !is_count(chars) {
                        return None;
                    }
                    let _reluctant = chars.next_if_eq(&'?');
                    false
                }
                '\\' => self.behind_backslash(chars)?,
                ']' | '}' => return None,
                _ => true,
            };
        }
        Some(())
    }

    /// Whether nothing is open, and all that is referred to is there.
    fn is_whole(&self) -> bool {
        self.open.is_empty()
            && self.last <= self.captures
            && self.named.iter().all(|name| self.names.contains(name))
    }

    /// What stands behind the parenthesis that opens a group.
    fn group(&mut self, chars: &mut Chars<'_>) -> Option<()> {
        let mut repeatable = true;
        if chars.next_if_eq(&'?').is_none() {
            self.captures += 1;
        } else {
            match chars.next()? {
                ':' => {}
                '=' | '!' => repeatable = false,
                '<' if matches!(chars.peek()?, '=' | '!') => {
                    chars.next();
                    repeatable = false;
                }
                '<' => {
                    let name = name(chars)?;
                    if self.names.contains(&name) {
                        return None;
                    }
                    self.names.push(name);
                    self.captures += 1;
                }
                _ => return None,
            }
        }
        self.open.push(repeatable);
        Some(())
    }

    /// What stands behind a backslash outside classes: whether it may be repeated.
    fn behind_backslash(&mut self, chars: &mut Chars<'_>) -> Option<bool> {
        match *chars.peek()? {
            'b' | 'B' => {
                chars.next();
                Some(false)
            }
            'k' => {
                chars.next();
                chars.next_if_eq(&'<')?;
                self.named.push(name(chars)?);
                Some(true)
            }
            '1'..='9' => {
                self.last = self.last.max(number(chars));
                Some(true)
            }
            _ => atom(chars, MARKS).map(|_| true),
        }
    }
}

/// How often, behind its brace and with the closing one.
fn is_count(chars: &mut Chars<'_>) -> bool {
    let is_digit = |c: Option<&char>| c.is_some_and(char::is_ascii_digit);
    if !is_digit(chars.peek()) {
        return false;
    }
    let least = number(chars);
    let most = match chars.next_if_eq(&',') {
        Some(_) if is_digit(chars.peek()) => number(chars),
        Some(_) => usize::MAX,
        None => least,
    };
    least <= most && chars.next_if_eq(&'}').is_some()
}

fn number(chars: &mut Chars<'_>) -> usize {
    let mut number = 0_usize;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        number = number.saturating_mul(10).saturating_add(digit as usize);
        chars.next();
    }
    number
}

/// The name of a group, up to its closing mark.
fn name(chars: &mut Chars<'_>) -> Option<String> {
    let is_first = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$');
    let mut name = String::from(chars.next_if(|c| is_first(*c))?);
    loop {
        match chars.next()? {
            '>' => return Some(name),
            c if is_first(c) || c.is_ascii_digit() => name.push(c),
            _ => return None,
        }
    }
}

/// A class, whose bracket is open, to its closing one.
fn class(chars: &mut Chars<'_>) -> Option<()> {
    let _none_of = chars.next_if_eq(&'^');
    while chars.next_if_eq(&']').is_none() {
        let low = member(chars)?;
        let mut behind = chars.clone();
        let ranges = behind.next() == Some('-') && behind.peek().is_some_and(|c| *c != ']');
        if !ranges {
            continue;
        }
        *chars = behind;
        match (low, member(chars)?) {
            (Atom::One(low), Atom::One(high)) if low <= high => {}
            _ => return None,
        }
    }
    Some(())
}

/// The next member of a class.
fn member(chars: &mut Chars<'_>) -> Option<Atom> {
    match chars.next()? {
        '\\' if chars.next_if_eq(&'b').is_some() => Some(Atom::One('\x08')),
        '\\' if chars.next_if_eq(&'-').is_some() => Some(Atom::One('-')),
        '\\' => atom(chars, MARKS),
        c => Some(Atom::One(c)),
    }
}

/// What stands behind a backslash, where it is no letter one of these marks.
fn atom(chars: &mut Chars<'_>, marks: &str) -> Option<Atom> {
    let next = *chars.peek()?;
    if !next.is_ascii_alphanumeric() && !marks.contains(next) {
        return None;
    }
    let mut behind = chars.clone();
    behind.next();
    if behind.next() == Some('{') {
        let inside: String = behind.take_while(|c| *c != '}').collect();
        let is_one = match next {
            'p' | 'P' => is_property(&inside),
            'u' => !inside.is_empty(),
            _ => true,
        };
        if !is_one {
            return None;
        }
    }
    escaped(chars)
}

fn is_property(text: &str) -> bool {
    let is_of = |all: &str, one: &str| all.split_ascii_whitespace().any(|it| it == one);
    match text.split_once('=') {
        None => is_of(PROPERTIES, text),
        Some(("Script" | "sc" | "Script_Extensions" | "scx", script)) => is_of(SCRIPTS, script),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_ecma_pattern as is_pattern;

    /// As an engine with the flag `u` has said of each.
    #[test]
    fn patterns_that_validators_in_javascript_compile_are_told_from_others() {
        for pattern in [
            r"",
            r"^[a-z]+$",
            r"^[\w.-]+@[\w-]+\.[a-z]{2,}$",
            r"[\-]",
            r"\/",
            r"\$\{x\}",
            r"[]",
            r"[^]",
            r"(a)\1",
            r"\2(a)(b)",
            r"(?=a)b",
            r"(?!a)b",
            r"(?<=a)b",
            r"(?:a|b)*?",
            r"(a){2,}?",
            r"\p{L}",
            r"[\p{Lu}\P{Script=Greek}]",
            r"(?<a>x)\k<a>",
            r"\k<a>(?<a>x)",
            r"a{1000000000000000000}",
            r"a{01,2}",
            r"\u{10FFFF}\u0041\x41\cJ\0",
            r"\ud83d\ude00",
            r"[\0\b\n]",
            r"[a&&b[]",
            r"()|(|)",
            r"[+--]",
            r"[--a]",
            r"[-a-c-e]",
            r"[\^\[\]\{]",
            "[\u{1F600}-\u{1F601}]",
        ] {
            assert!(is_pattern(pattern), "{pattern}");
        }
        for not in [
            r"\-",
            r"\_",
            r"\ ",
            r"\@",
            r"[\@]",
            r#"\""#,
            r"\:",
            r"\",
            r"\A",
            r"\Z",
            r"\e",
            r"\pL",
            r"\p{Greek}",
            r"\p{L",
            r"\p{Script=Nobody}",
            r"[\w-.]",
            r"[\s-a]",
            r"[a-\d]",
            r"[z-a]",
            r"[a",
            r"[\B]",
            r"[\1]",
            r"[\k<a>]",
            r"[\c]",
            r"(?i)a",
            r"(?P<a>x)",
            r"(?>a)",
            r"(?#a)",
            r"(?<1>x)",
            r"(?<a>.)(?<a>.)",
            r"(?",
            r"(",
            r")",
            r"a{,5}",
            r"a{1, 3}",
            r"a{3,2}",
            r"a{}",
            r"a{2}{3}",
            r"{a}",
            r"{",
            r"}",
            r"a}",
            r"]",
            r"[[:alpha:]]",
            r"a++",
            r"?",
            r"^*",
            r"$+",
            r"\b+",
            r"(?=a)*",
            r"(?<!a)+",
            r"\1",
            r"(?:a)\1",
            r"\k<a>",
            r"\k",
            r"\07",
            r"\x4",
            r"\u{}",
            r"\u{110000}",
            r"\u12",
            r"\c1",
        ] {
            assert!(!is_pattern(not), "{not}");
        }
    }
}
