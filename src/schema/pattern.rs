//! Patterns: those of ECMA 262, run by an engine of linear time.
//!
//! What both spell alike means the same after [`ours`]; what only ECMA has (looking around, referring back) no engine of linear
//! time has, and is not judged. Linear in the text, that is: each byte may cost as much as the compiled pattern is large, so the
//! size is bounded, and a match takes steps by it. How long a pattern is spelled says nothing: `[ab][a-z]{3000}` is short. What
//! only says how many characters there are, and of which sort (`^.{1,500}$`), is counted: the engine would have all bytes of
//! characters in each of five hundred places.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use regex::{Regex, RegexBuilder};

/// The least that a compiled pattern counts for, in bytes.
const LEAST: usize = 1 << 10;
/// Most bytes of one compiled pattern.
const MOST: usize = 512 << 10;
/// Most bytes that matching keeps of it. Patterns of people need a tenth; one that needs more gains nothing by it.
const CACHED: usize = 32 << 10;

/// A pattern as it is run.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) spelled: Box<str>,
    regex: Regex,
    /// Its bytes, rounded up to a power of two.
    size: usize,
    /// The fewest characters and the most, if they are counted.
    counted: Option<(usize, usize)>,
}

impl Pattern {
    pub(super) fn is_match(&self, text: &str) -> bool {
        let counts = |(least, most)| (least..=most).contains(&text.chars().count());
        self.counted.is_none_or(counts) && self.regex.is_match(text)
    }

    /// What matching a text takes: at each byte, and once before, a quarter for each KiB of the pattern.
    pub(super) const fn steps(&self, text: &str) -> usize {
        (text.len() + 1) * (self.size / LEAST) / 4
    }
}

/// What the patterns of one schema may take together, in compiled bytes.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    /// What was made of each so far, by how it is spelled.
    known: HashMap<Box<str>, Option<Arc<Pattern>>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            left: 1 << 20,
            known: HashMap::new(),
        }
    }
}

impl Budget {
    /// The pattern as it is run; `None` when it cannot be, or is too large. Equal ones are one, and count once.
    pub(super) fn compile(&mut self, pattern: &str) -> Option<Arc<Pattern>> {
        if let Some(known) = self.known.get(pattern) {
            return known.clone();
        }
        let made = self.make(pattern).map(Arc::new);
        self.known.insert(pattern.into(), made.clone());
        made
    }

    fn make(&mut self, pattern: &str) -> Option<Pattern> {
        let (ours, counted) = match repeated(pattern) {
            Some((ours, counted)) => (ours, Some(counted)),
            None => (ours(pattern)?, None),
        };
        let mut size = LEAST;
        // The engine does not tell how large a pattern is, only whether it stays below a limit.
        while size <= self.left.min(MOST) {
            let built = RegexBuilder::new(&ours)
                .size_limit(size)
                .dfa_size_limit(CACHED)
                .build();
            match built {
                Ok(regex) => {
                    self.left -= size;
                    let spelled = pattern.into();
                    return Some(Pattern {
                        spelled,
                        regex,
                        size,
                        counted,
                    });
                }
                Err(regex::Error::CompiledTooBig(_)) => size *= 2,
                Err(_) => return None,
            }
        }
        // So much was built for nothing, which takes as long.
        self.left = self.left.saturating_sub(size / 2);
        None
    }
}

/// What a dot stands for.
const ANY: &str = r"[^\n\r\u{2028}\u{2029}]";

pub(super) type Chars<'p> = std::iter::Peekable<std::str::Chars<'p>>;

/// The same pattern in the words of our engine.
fn ours(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next_if_eq(&'b').is_some() => out.push_str("(?-u:\\b)"),
            '\\' => escaped(&mut chars)?.write(&mut out),
            '[' => class(&mut chars, &mut out)?,
            '.' => out.push_str(ANY),
            // Nobody asks what a group has captured, and an engine that can tell is larger; marks for the engine are not ECMA's.
            '(' => {
                if chars.next_if_eq(&'?').is_some() {
                    match chars.next()? {
                        ':' => {}
                        '<' => group_name(&mut chars)?,
                        _ => return None,
                    }
                }
                out.push_str("(?:");
            }
            '{' => repetition(&mut chars, &mut out)?,
            c => out.push(c),
        }
    }
    Some(out)
}

/// What takes any number of the characters of which the pattern wants so many and nothing else (`^[^<>]{1,255}$`), in the words
/// of our engine, and the fewest and the most of them.
fn repeated(pattern: &str) -> Option<(String, (usize, usize))> {
    let inside = pattern.strip_prefix('^')?.strip_suffix("}$")?;
    let (one, count) = inside.rsplit_once('{')?;
    let number = |digits: &str| {
        let digits = Some(digits).filter(|digits| digits.bytes().all(|c| c.is_ascii_digit()))?;
        digits.parse::<usize>().ok()
    };
    let (least, most) = match count.split_once(',') {
        Some((least, "")) => (number(least)?, usize::MAX),
        Some((least, most)) => (number(least)?, number(most)?),
        None => (number(count)?, number(count)?),
    };
    let mut chars = one.chars().peekable();
    let mut ours = String::from("^");
    match chars.next()? {
        '.' => ours.push_str(ANY),
        '[' => class(&mut chars, &mut ours)?,
        '\\' => escaped(&mut chars)?.write(&mut ours),
        c if c.is_alphanumeric() => ours.push(c),
        _ => return None,
    }
    ours.push_str("*$");
    (chars.next().is_none() && least <= most).then_some((ours, (least, most)))
}

/// The name of a group, up to its closing mark.
fn group_name(chars: &mut Chars<'_>) -> Option<()> {
    let is_first = |c: &char| c.is_alphabetic() || matches!(c, '_' | '$');
    chars.next_if(is_first)?;
    while chars.next_if(|c| is_first(c) || c.is_numeric()).is_some() {}
    chars.next_if_eq(&'>').map(drop)
}

/// How often, behind its brace; our engine takes more for it than ECMA does (`{,3}`, `{1, 3}`).
fn repetition(chars: &mut Chars<'_>, out: &mut String) -> Option<()> {
    if !chars.peek()?.is_ascii_digit() {
        return None;
    }
    out.push('{');
    loop {
        match chars.next()? {
            '}' => break,
            c if c.is_ascii_digit() || c == ',' => out.push(c),
            _ => return None,
        }
    }
    out.push('}');
    Some(())
}

/// What one place of a pattern stands for.
pub(super) enum Atom {
    /// This character.
    One(char),
    /// Any of a set, in the words of our engine, which are of their own within a class as well.
    Set(String),
}

impl Atom {
    fn write(self, out: &mut String) {
        match self {
            // Whatever is no letter may mean something to our engine, as it is or behind a backslash.
            Self::One(c) if c.is_ascii() && !c.is_ascii_alphanumeric() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\x{:02X}", u32::from(c));
            }
            Self::One(c) => out.push(c),
            Self::Set(set) => out.push_str(&set),
        }
    }
}

/// A class, whose bracket is open. In ECMA it holds characters, sets and ranges, and nothing else: sets are not combined, and
/// a `-` beside a set is itself.
fn class(chars: &mut Chars<'_>, out: &mut String) -> Option<()> {
    out.push('[');
    if chars.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    // Nothing, or anything.
    if chars.peek() == Some(&']') {
        return None;
    }
    while chars.next_if_eq(&']').is_none() {
        let first = member(chars)?;
        let mut behind = chars.clone();
        let ranges = behind.next() == Some('-') && behind.peek().is_some_and(|c| *c != ']');
        if !ranges {
            first.write(out);
            continue;
        }
        *chars = behind;
        match (first, member(chars)?) {
            (Atom::One(low), Atom::One(high)) if low > high => return None,
            (low @ Atom::One(_), high @ Atom::One(_)) => {
                low.write(out);
                out.push('-');
                high.write(out);
            }
            (first, second) => {
                first.write(out);
                Atom::One('-').write(out);
                second.write(out);
            }
        }
    }
    out.push(']');
    Some(())
}

/// The next member of a class.
fn member(chars: &mut Chars<'_>) -> Option<Atom> {
    match chars.next()? {
        '\\' if chars.next_if_eq(&'b').is_some() => Some(Atom::One('\x08')),
        '\\' => escaped(chars),
        c => Some(Atom::One(c)),
    }
}

/// What stands behind a backslash; not `b`, which means one thing in a class and another outside.
pub(super) fn escaped(chars: &mut Chars<'_>) -> Option<Atom> {
    const WORD: &str = "A-Za-z0-9_";
    const SPACE: &str = r"\t\n\x0B\x0C\r \u{A0}\u{FEFF}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}";
    let any = |of: &str| Some(Atom::Set(format!("[{of}]")));
    let none = |of: &str| Some(Atom::Set(format!("[^{of}]")));
    let one = |code| char::from_u32(code).map(Atom::One);
    match chars.next()? {
        'd' => any("0-9"),
        'w' => any(WORD),
        's' => any(SPACE),
        'D' => none("0-9"),
        'W' => none(WORD),
        'S' => none(SPACE),
        't' => Some(Atom::One('\t')),
        'n' => Some(Atom::One('\n')),
        'r' => Some(Atom::One('\r')),
        'f' => Some(Atom::One('\x0C')),
        'v' => Some(Atom::One('\x0B')),
        '0' if !chars.peek().is_some_and(char::is_ascii_digit) => Some(Atom::One('\0')),
        'c' => one(u32::from(chars.next().filter(char::is_ascii_alphabetic)?) % 32),
        'x' => one(hex(chars, 2)?),
        'u' if chars.next_if_eq(&'{').is_some() => {
            let mut code = 0_u32;
            loop {
                match chars.next()? {
                    '}' => break one(code),
                    digit => code = code.checked_mul(16)? + digit.to_digit(16)?,
                }
            }
        }
        'u' => one(pair(chars)?),
        sign @ ('p' | 'P') if chars.next_if_eq(&'{').is_some() => {
            let mut set = format!("\\{sign}{{");
            loop {
                match chars.next()? {
                    '}' => break,
                    c if c.is_ascii_alphanumeric() || matches!(c, '_' | '=') => set.push(c),
                    _ => return None,
                }
            }
            set.push('}');
            Some(Atom::Set(set))
        }
        c if c.is_ascii_alphanumeric() => None,
        c => Some(Atom::One(c)),
    }
}

/// A unit of UTF-16 in four digits, or two that make one character.
fn pair(chars: &mut Chars<'_>) -> Option<u32> {
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

fn hex(chars: &mut Chars<'_>, digits: u32) -> Option<u32> {
    (0..digits).try_fold(0, |code, _| Some(code * 16 + chars.next()?.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Names, STEPS, Verdict,
            tests::{json, schema},
        },
        *,
    };

    fn compile(pattern: &str) -> Option<Arc<Pattern>> {
        Budget::default().compile(pattern)
    }

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
            (r"^\<[a-z]+\>$", "<b>", "b"),
            (r"^[\<\>]$", "<", "\\"),
            (r"^[\w-~]+$", "a-b~", "a`b"),
            (r"^[+-\d]+$", "1-2+", "1,2"),
            (r"^[\s-a]+$", "a -", "b"),
            (r"^[\d-\w]$", "-", ":"),
            (r"^[^\W-_]$", "a", "_"),
            (r"^[+--]+$", "+,-", "."),
            (r"^[--/]+$", "-./", ","),
            (r"^[a~~b]+$", "~b", "c"),
            (r"^[a\]\-z]+$", "]-z", "y"),
            (r"^[\b\0]+$", "\u{8}\0", "b"),
            (r"^\$\{\w+\}$", "${a}", "$a"),
            (r"^[#-&]$", "%", "-"),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert!(compiled.is_match(fits), "{pattern} {fits:?}");
            assert!(!compiled.is_match(fits_not), "{pattern} {fits_not:?}");
        }
    }

    /// The characters of ASCII that a pattern takes, as a value of their own.
    fn taken(pattern: &str) -> String {
        let compiled = compile(pattern).unwrap_or_else(|| panic!("{pattern}"));
        let all = (0..=127_u8).map(char::from);
        all.filter(|c| compiled.is_match(c.encode_utf8(&mut [0; 4])))
            .collect()
    }

    fn marks() -> impl Iterator<Item = char> + Clone {
        ('!'..='~').filter(char::is_ascii_punctuation)
    }

    #[test]
    fn an_escaped_mark_is_itself_inside_a_class_and_outside() {
        for mark in marks() {
            assert_eq!(taken(&format!(r"^\{mark}$")), mark.to_string(), "{mark}");
            assert_eq!(taken(&format!(r"^[\{mark}]$")), mark.to_string(), "{mark}");
        }
    }

    #[test]
    fn a_class_is_what_stands_in_it_whatever_stands_beside_each_other() {
        let word = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        let all = || (0..=127_u8).map(char::from);
        let plain = || marks().filter(|mark| !matches!(mark, '\\' | ']' | '^' | '-'));
        for mark in plain() {
            let beside: String = all()
                .filter(|c| word(c) || *c == '-' || *c == mark)
                .collect();
            for class in [
                format!(r"[\w-{mark}]"),
                format!(r"[{mark}-\w]"),
                format!(r"[{mark}\w-]"),
                format!(r"[-{mark}\w]"),
            ] {
                assert_eq!(taken(&format!("^{class}$")), beside, "{class}");
            }
            for other in plain() {
                let both: String = all().filter(|c| *c == mark || *c == other).collect();
                let (twice, range) = (
                    format!("^[{mark}{mark}{other}{other}]$"),
                    format!("^[{mark}-{other}]$"),
                );
                assert_eq!(taken(&twice), both, "{twice}");
                if mark <= other {
                    assert_eq!(taken(&range), (mark..=other).collect::<String>(), "{range}");
                } else {
                    assert!(compile(&range).is_none(), "{range}");
                }
            }
        }
    }

    /// Each of these is short; the engine made of it is not, and each byte of a text may lead to all of its states.
    #[test]
    fn steps_are_taken_by_what_a_pattern_is_and_not_by_how_it_is_spelled() {
        let text = "a".repeat(1_000);
        let steps = |pattern: &str| compile(pattern).map(|pattern| pattern.steps(&text));
        for usual in [
            r"^[a-z]+$",
            r"^[A-Za-z0-9+/]*={0,2}$",
            r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$",
        ] {
            assert_eq!(steps(usual), Some(250), "{usual}");
        }
        for (slow, least) in [
            (r"[ab][a-z]{300}x", 7_500),
            (r"[ab][a-z]{3000}x", 60_000),
            (r"(?:[ab](?:[a-z]{30}){50})x", 30_000),
            (r"[ab](?:[a-z]?){1000}x", 30_000),
        ] {
            assert!(steps(slow).unwrap() > least, "{slow} {:?}", steps(slow));
        }
        assert_eq!(steps(r"[ab][a-z]{9000}x"), None);
    }

    /// The engine has all bytes of characters in each of so many places; whoever counts has them once.
    #[test]
    fn how_long_a_text_of_such_characters_may_be_is_cheap_to_ask() {
        for (pattern, fits, fits_not) in [
            (r"^.{1,500}$", "é".repeat(500), "é".repeat(501)),
            (r"^.{2}$", "🚀x".to_owned(), "x".to_owned()),
            (r"^.{2,}$", "x".repeat(3000), "x".to_owned()),
            (r"^.{0,255}$", String::new(), "a\n".to_owned()),
            (r"^[^<>]{1,255}$", "a\n".to_owned(), "a<".to_owned()),
            (r"^[^\]}]{1,255}$", "a{".to_owned(), "a}".to_owned()),
            (r"^\S{3,500}$", "é-é".to_owned(), "é é".to_owned()),
            (r"^\u00e9{2,900}$", "éé".to_owned(), "é".to_owned()),
            (r"^\ud83d\ude00{2}$", "😀😀".to_owned(), "😀".to_owned()),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert!(compiled.is_match(&fits), "{pattern}");
            assert!(!compiled.is_match(&fits_not), "{pattern}");
            let text = "é".repeat(500);
            assert!(
                compiled.steps(&text) <= text.len() * 2,
                "{pattern} {}",
                compiled.steps(&text)
            );
        }
        // These are something else.
        for (pattern, fits, fits_not) in [
            (r"^a\{2}$", "a{2}", "aa"),
            (r"^ab{2}$", "abb", "abab"),
            (r"^a|b{2}$", "abbb", "b"),
            (r"^(?:ab){2}$", "abab", "ab"),
            (r"^\b{1}a{1}$", "a", "b"),
            (r"^.{2}?$", "ab", "a"),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert!(compiled.is_match(fits), "{pattern}");
            assert!(!compiled.is_match(fits_not), "{pattern}");
        }
        for pattern in [r"^.{3,2}$", r"^.{,2}$", r"^.{1, 2}$", r"^.{}$"] {
            assert!(compile(pattern).is_none(), "{pattern}");
        }
    }

    #[test]
    fn equal_patterns_of_one_schema_count_once() {
        let mut budget = Budget::default();
        for _ in 0..1_000 {
            assert!(budget.compile("^[a-z]{200}x$").is_some());
        }
        assert!(budget.compile("^[a-z]{200}y$").is_some());
    }

    #[test]
    fn the_patterns_of_one_schema_are_bounded_together() {
        let mut budget = Budget::default();
        let taken: Vec<_> = (0..1_000)
            .filter_map(|nth| budget.compile(&format!("^[a-z]{{200}}{nth}$")))
            .collect();
        let size: usize = taken.iter().map(|pattern| pattern.size).sum();
        assert!(taken.len() >= 64 && size <= 1 << 20, "{}", taken.len());
        // What is built for nothing counts as well, and leaves something for others.
        let mut budget = Budget::default();
        assert!(budget.compile("^(?:[a-z]{1000}){100}$").is_none());
        assert!(budget.compile("^[a-z]{200}$").is_some());
        assert!(budget.compile("^(?:[a-z]{1000}){100}$").is_none());
        assert!(budget.left < MOST);
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
            r"(?<1>x)",
            r"(?<a",
            r"[]",
            r"\k<a>",
            r"(",
            r"a{1000}{1000}{1000}",
            r"[z-a]",
            r"[a",
            r"[\B]",
            r"a{,5}",
            r"a{1, 3}",
        ] {
            assert!(compile(pattern).is_none(), "{pattern}");
        }
    }

    #[test]
    fn many_long_texts_may_be_held_to_a_length_that_a_pattern_says() {
        let of = schema(
            r#"{"items":{"properties":{"a":{"pattern":"^.{1,500}$"},"b":{"pattern":"^.{1,500}$"}}}}"#,
        );
        assert_eq!(of.gap(), None);
        let text = "é".repeat(500);
        let items = vec![format!(r#"{{"a":"{text}","b":"{text}"}}"#); 100];
        let value = json(&format!("[{}]", items.join(",")));
        assert_eq!(of.check(value.root(), STEPS, Names::All), Verdict::Fits);
    }
}
