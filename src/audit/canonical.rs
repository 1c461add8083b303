//! Writing records: canonical JSON (RFC 8785) by construction, whatever is put in.
//!
//! Guarantees: members come in rising order, numbers are whole, strings hold nothing that a terminal or a reader of lines
//! would act upon, and none is longer than its bound (SECURITY AUD-3, AUD-6). What was cut or replaced says so in place.

use std::{
    cell::Cell,
    fmt::{Display, Write as _},
    time::SystemTime,
};

use super::stamp;

/// The most bytes written of one text value; what is cut off is told by its length.
pub const TEXT: usize = 1_024;
/// From here on texts of a record are cut to [`SHORT`], so that a record stays below 64 KiB whatever is put in (SECURITY 6).
const LONG: usize = 40 << 10;
/// See [`LONG`].
const SHORT: usize = 64;

/// An object being written. It is closed by [`Object::end`].
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut String,
    empty: bool,
    /// The last name: the next must be greater.
    #[cfg(debug_assertions)]
    last: &'static str,
}

impl<'a> Object<'a> {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &'a mut String) -> Self {
        out.push('{');
        Self {
            out,
            empty: true,
            #[cfg(debug_assertions)]
            last: "",
        }
    }

    /// Ends it.
    pub fn end(self) {
        self.out.push('}');
    }

    /// A text, of which at most [`TEXT`] bytes are written.
    pub fn text(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.content(name, value, TEXT)
    }

    /// A text, if there is one.
    pub fn maybe(&mut self, name: &'static str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.text(name, value);
        }
        self
    }

    /// What is shown without any character that would have to be replaced: an address, a number with something before it.
    pub fn plain(&mut self, name: &'static str, value: impl Display) -> &mut Self {
        self.name(name);
        self.out.push('"');
        let from = self.out.len();
        _ = write!(self.out, "{value}");
        debug_assert_eq!(self.out.get(from..).map(odd), Some(None));
        self.out.push('"');
        self
    }

    /// Bytes, in hexadecimal digits.
    pub fn digits(&mut self, name: &'static str, bytes: &[u8]) -> &mut Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.name(name);
        self.out.push('"');
        let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        self.out
            .extend(halves.map(|half| char::from(DIGITS[usize::from(half)])));
        self.out.push('"');
        self
    }

    /// When it was: the member `time`.
    pub fn time(&mut self, at: SystemTime) -> &mut Self {
        self.name("time");
        self.out.push('"');
        stamp::write(self.out, at);
        self.out.push('"');
        self
    }

    /// A longer text, of which at most `most` bytes are written.
    pub fn content(&mut self, name: &'static str, value: &str, most: usize) -> &mut Self {
        self.name(name);
        let most = self.most(most);
        text(self.out, value, most);
        self
    }

    /// How much of a text is written, where the record is as long as it is.
    const fn most(&self, most: usize) -> usize {
        if self.out.len() < LONG { most } else { SHORT }
    }

    /// A whole number; beyond 2^53 it is written as text, since a canonical number is a double.
    pub fn number(&mut self, name: &'static str, value: u64) -> &mut Self {
        self.name(name);
        if value <= 1 << 53 {
            self.out.push_str(itoa::Buffer::new().format(value));
        } else {
            _ = write!(self.out, "\"{value}\"");
        }
        self
    }

    /// Texts in the order given, of which at most `most` are kept; a last one tells how many were not.
    pub fn texts<'t>(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = &'t str>,
        most: usize,
    ) -> &mut Self {
        self.name(name);
        self.out.push('[');
        let mut count = 0;
        for value in values {
            if count < most {
                if count > 0 {
                    self.out.push(',');
                }
                let most = self.most(TEXT);
                text(self.out, value, most);
            }
            count += 1;
        }
        if count > most {
            _ = write!(self.out, ",\"(+{} more)\"", count - most);
        }
        self.out.push(']');
        self
    }

    /// An object inside it.
    pub fn object(&mut self, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        self.name(name);
        let mut inner = Object::begin(self.out);
        fill(&mut inner);
        inner.end();
        self
    }

    /// Objects inside it, one for each of the items, of which at most `most` are kept.
    pub fn objects<T>(
        &mut self,
        name: &'static str,
        items: impl IntoIterator<Item = T>,
        most: usize,
        mut fill: impl FnMut(&mut Object<'_>, T),
    ) -> &mut Self {
        self.name(name);
        self.out.push('[');
        let mut count = 0_u64;
        for item in items {
            if count < most as u64 {
                if count > 0 {
                    self.out.push(',');
                }
                let mut inner = Object::begin(self.out);
                fill(&mut inner, item);
                inner.end();
            }
            count += 1;
        }
        if count > most as u64 {
            _ = write!(self.out, ",{{\"more\":{}}}", count - most as u64);
        }
        self.out.push(']');
        self
    }

    fn name(&mut self, name: &'static str) {
        #[cfg(debug_assertions)]
        {
            debug_assert!(self.last < name, "`{name}` comes after `{}`", self.last);
            self.last = name;
        }
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
    }
}

thread_local! {
    /// Where objects are written that are handed on: there are two for every call, and none stays.
    static SPARE: Cell<String> = const { Cell::new(String::new()) };
}
/// How much of that memory is kept, in bytes: records are shorter.
const KEPT: usize = 64 << 10;

/// Writes an object and hands its text on, in memory that the next one is written in.
pub fn handed<T>(fill: impl FnOnce(&mut Object<'_>), on: impl FnOnce(&[u8]) -> T) -> T {
    // Who writes one while another is written, or when the thread ends, gets memory of its own.
    let mut text = SPARE.try_with(Cell::take).unwrap_or_default();
    text.clear();
    let mut object = Object::begin(&mut text);
    fill(&mut object);
    object.end();
    let result = on(text.as_bytes());
    text.shrink_to(KEPT);
    _ = SPARE.try_with(|kept| kept.set(text));
    result
}

/// A string literal of the value, at most `most` bytes between its quotes but for what tells how much was cut off.
pub fn text(out: &mut String, value: &str, most: usize) {
    out.push('"');
    let end = out.len() + most;
    let mut rest = value;
    // Most values hold nothing to replace.
    loop {
        let plain = odd(rest);
        let room = end.saturating_sub(out.len());
        let kept = plain.unwrap_or(rest.len()).min(room);
        let (before, after) = rest.split_at(rest.floor_char_boundary(kept));
        out.push_str(before);
        rest = after;
        if plain != Some(before.len()) {
            break;
        }
        let mut characters = rest.chars();
        let Some(character) = characters.next() else {
            break;
        };
        let before = out.len();
        replaced(out, character);
        if out.len() > end {
            out.truncate(before);
            break;
        }
        rest = characters.as_str();
    }
    if !rest.is_empty() {
        _ = write!(out, "…(+{} bytes)", rest.len());
    }
    out.push('"');
}

/// Where the first character stands that may not stand in a string as it is. Most values are printable ASCII throughout, which is
/// told sixteen bytes at a time.
fn odd(text: &str) -> Option<usize> {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    // No early end within a block: so the compiler looks at all of it at once.
    let clear = |block: &&[u8; 16]| block.iter().fold(true, |clear, byte| clear & plain(byte));
    let (blocks, _) = text.as_bytes().as_chunks();
    let from = 16 * blocks.iter().take_while(clear).count();
    let first = from + text.bytes().skip(from).position(|byte| !plain(&byte))?;
    let odd = text[first..].find(|character| !is_harmless(character))?;
    Some(first + odd)
}

/// May stand in a string as it is.
fn is_harmless(character: char) -> bool {
    match character {
        '"' | '\\' => false,
        ' '..='~' => true,
        _ => !is_acted_upon(character),
    }
}

/// Whether a terminal, a reader of lines or the order of what is seen would act upon it.
const fn is_acted_upon(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1F}'
            | '\u{7F}'..='\u{9F}'
            | '\u{AD}'
            | '\u{61C}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E007F}'
    )
}

fn replaced(out: &mut String, character: char) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        other => _ = write!(out, "<U+{:04X}>", other as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(fill: impl FnOnce(&mut Object<'_>)) -> String {
        let mut out = String::new();
        let mut object = Object::begin(&mut out);
        fill(&mut object);
        object.end();
        out
    }

    #[test]
    fn an_object_that_is_written_while_another_is_handed_on_leaves_that_alone() {
        let one = |object: &mut Object<'_>| _ = object.text("a", "outer");
        let two = |object: &mut Object<'_>| _ = object.text("b", "inner");
        let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
        let both = handed(one, |outer| (handed(two, text), text(outer)));
        assert_eq!(both, (r#"{"b":"inner"}"#.into(), r#"{"a":"outer"}"#.into()));
        assert_eq!(handed(two, text), r#"{"b":"inner"}"#);
    }

    /// SECURITY AUD-6
    #[test]
    fn no_value_forges_a_record_or_reaches_a_terminal() {
        let forged = "a\n{\"hash\":\"0\"}\u{1B}[2J\u{9B}31m\u{202E}\u{7F}\"\\";
        let line = written(|object| _ = object.text("name", forged));
        assert_eq!(
            line,
            r#"{"name":"a\n{\"hash\":\"0\"}<U+001B>[2J<U+009B>31m<U+202E><U+007F>\"\\"}"#
        );
        assert!(!line.contains('\n'));
    }

    #[test]
    fn what_is_cut_says_so() {
        let line = written(|object| _ = object.text("name", &"ä".repeat(600)));
        assert!(line.ends_with("ä…(+176 bytes)\"}"), "{line}");
        let many = ["x"; 5];
        let line = written(|object| _ = object.texts("names", many, 3));
        assert_eq!(line, r#"{"names":["x","x","x","(+2 more)"]}"#);
        let line = written(|object| {
            object.objects("all", many, 1, |inner, item| _ = inner.text("it", item));
        });
        assert_eq!(line, r#"{"all":[{"it":"x"},{"more":4}]}"#);
    }

    /// SECURITY 6: a record has 64 KiB, with what links it to others.
    #[test]
    fn a_record_stays_within_its_bound_whatever_is_put_in() {
        for value in ["x", "\u{1}", "\"", "ä", "\u{202E}"] {
            let value = value.repeat(100_000);
            let many = || (0..32).map(|_| value.as_str());
            let line = written(|object| {
                object
                    .content("a", &value, 8 << 10)
                    .texts("b", many(), 32)
                    .objects("c", many(), 32, |inner, value| {
                        inner.text("one", value).text("two", value);
                    })
                    .texts("d", many(), 32)
                    .object("e", |inner| _ = inner.text("one", &value));
            });
            assert!(line.len() < 60 << 10, "{}", line.len());
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&line).is_ok());
            assert!(line.contains("bytes)"));
        }
    }

    #[test]
    fn a_number_that_no_double_holds_is_text() {
        let line = written(|object| _ = object.number("a", 1 << 53).number("b", u64::MAX));
        assert_eq!(line, r#"{"a":9007199254740992,"b":"18446744073709551615"}"#);
    }
}
