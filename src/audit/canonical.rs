//! Writing records: canonical JSON (RFC 8785) by construction, whatever is put in.
//!
//! Guarantees: members come in rising order, numbers are whole, strings hold nothing that a terminal or a reader of lines
//! would act upon, and none is longer than its bound (SECURITY AUD-3, AUD-6). What was cut or replaced says so in place.

use std::{
    cell::Cell,
    fmt::{self, Display, Write as _},
    hash::{BuildHasher as _, Hasher as _},
    sync::LazyLock,
    time::SystemTime,
};

use hashbrown::{DefaultHashBuilder, DefaultHasher};

use super::stamp;

/// The most bytes written of one text value; what is cut off is told by its length.
pub const TEXT: usize = 1_024;
/// From here on texts of a record are cut to [`SHORT`], so that a record stays below 64 KiB whatever is put in (SECURITY 6).
const LONG: usize = 40 << 10;
/// See [`LONG`].
const SHORT: usize = 64;

/// What objects are written in.
pub struct Written {
    text: String,
    /// Of the members that are texts.
    texts: DefaultHasher,
}

/// Hashes differ from process to process as a rule, so that it is hard to make up texts of one hash.
static HASHES: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Default for Written {
    fn default() -> Self {
        Self {
            text: String::new(),
            texts: HASHES.build_hasher(),
        }
    }
}

impl Written {
    /// Writes an object; what `fill` returns comes back.
    pub fn object<T>(&mut self, fill: impl FnOnce(&mut Object<'_>) -> T) -> T {
        self.text.clear();
        self.texts = HASHES.build_hasher();
        let mut object = Object::begin(self);
        let result = fill(&mut object);
        object.end();
        result
    }

    /// What is written.
    pub const fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// A hash of every [`Object::text`] and [`Object::texts`] and where it stands, in objects inside as well; `None` where texts may be cut off for the length
    /// of others.
    pub fn texts(&self) -> Option<u64> {
        (self.text.len() < LONG).then(|| self.texts.finish())
    }
}

/// An object being written.
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut Written,
    empty: bool,
    /// The last name: the next must be greater.
    #[cfg(debug_assertions)]
    last: &'static str,
}

impl<'a> Object<'a> {
    /// Begins an object at the end of `out`.
    fn begin(out: &'a mut Written) -> Self {
        out.text.push('{');
        Self {
            out,
            empty: true,
            #[cfg(debug_assertions)]
            last: "",
        }
    }

    fn end(self) {
        self.out.text.push('}');
    }

    /// A text, of which at most [`TEXT`] bytes are written.
    pub fn text(&mut self, name: &'static str, value: &str) -> &mut Self {
        let from = self.out.text.len();
        self.content(name, value, TEXT);
        self.hash(from);
        self
    }

    /// Counts what was written from `from` on among the texts.
    fn hash(&mut self, from: usize) {
        let Written { text, texts } = &mut *self.out;
        texts.write(text.get(from..).unwrap_or_default().as_bytes());
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
        self.out.text.push('"');
        let from = self.out.text.len();
        _ = write!(self.out.text, "{value}");
        debug_assert_eq!(self.out.text.get(from..).map(odd), Some(None));
        self.out.text.push('"');
        self
    }

    /// Bytes, in hexadecimal digits.
    pub fn digits(&mut self, name: &'static str, bytes: &[u8]) -> &mut Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.name(name);
        self.out.text.push('"');
        let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        self.out
            .text
            .extend(halves.map(|half| char::from(DIGITS[usize::from(half)])));
        self.out.text.push('"');
        self
    }

    /// When it was: the member `time`.
    pub fn time(&mut self, at: SystemTime) -> &mut Self {
        self.name("time");
        self.out.text.push('"');
        stamp::write(&mut self.out.text, at);
        self.out.text.push('"');
        self
    }

    /// A text with a bound of its own: at most `most` bytes of it are written.
    pub fn content(&mut self, name: &'static str, value: &str, most: usize) -> &mut Self {
        self.name(name);
        let most = self.most(most);
        text(&mut self.out.text, value, most);
        self
    }

    /// How much of a text is written, where the record is as long as it is.
    const fn most(&self, most: usize) -> usize {
        if self.out.text.len() < LONG {
            most
        } else {
            SHORT
        }
    }

    /// A whole number; beyond 2^53 it is written as text, since a canonical number is a double.
    pub fn number(&mut self, name: &'static str, value: u64) -> &mut Self {
        self.name(name);
        if value <= 1 << 53 {
            self.out.text.push_str(itoa::Buffer::new().format(value));
        } else {
            _ = write!(self.out.text, "\"{value}\"");
        }
        self
    }

    /// A whole number that may be below zero; otherwise as [`Object::number`].
    pub fn signed(&mut self, name: &'static str, value: i64) -> &mut Self {
        self.name(name);
        if value.unsigned_abs() <= 1 << 53 {
            self.out.text.push_str(itoa::Buffer::new().format(value));
        } else {
            _ = write!(self.out.text, "\"{value}\"");
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
        let from = self.out.text.len();
        self.name(name);
        self.out.text.push('[');
        let mut count = 0;
        for value in values {
            if count < most {
                if count > 0 {
                    self.out.text.push(',');
                }
                let most = self.most(TEXT);
                text(&mut self.out.text, value, most);
            }
            count += 1;
        }
        if count > most {
            _ = write!(self.out.text, ",\"(+{} more)\"", count - most);
        }
        self.out.text.push(']');
        self.hash(from);
        self
    }

    /// An object inside it.
    pub fn object(&mut self, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        let from = self.out.text.len();
        self.name(name);
        self.hash(from);
        let mut inner = Object::begin(self.out);
        fill(&mut inner);
        inner.end();
        // What comes next is no member of it.
        self.hash(self.out.text.len() - 1);
        self
    }

    /// Objects inside it, one for each of the items, of which at most `most` are kept.
    pub fn objects<T>(
        &mut self,
        name: &'static str,
        items: impl IntoIterator<Item = T>,
        most: usize,
        fill: impl FnMut(&mut Object<'_>, T),
    ) -> &mut Self {
        self.objects_of(name, items, (most, 0), fill)
    }

    /// The same of items beside which there were so many more.
    pub fn objects_of<T>(
        &mut self,
        name: &'static str,
        items: impl IntoIterator<Item = T>,
        (most, more): (usize, u64),
        mut fill: impl FnMut(&mut Object<'_>, T),
    ) -> &mut Self {
        let from = self.out.text.len();
        self.name(name);
        self.hash(from);
        self.out.text.push('[');
        let mut count = 0_u64;
        for item in items {
            if count < most as u64 {
                if count > 0 {
                    self.out.text.push(',');
                }
                let mut inner = Object::begin(self.out);
                fill(&mut inner, item);
                inner.end();
                self.hash(self.out.text.len() - 1);
            }
            count += 1;
        }
        let more = more + count.saturating_sub(most as u64);
        if more > 0 {
            _ = write!(self.out.text, ",{{\"more\":{more}}}");
        }
        self.out.text.push(']');
        self
    }

    fn name(&mut self, name: &'static str) {
        #[cfg(debug_assertions)]
        {
            debug_assert!(self.last < name, "`{name}` comes after `{}`", self.last);
            self.last = name;
        }
        if !self.empty {
            self.out.text.push(',');
        }
        self.empty = false;
        self.out.text.push('"');
        self.out.text.push_str(name);
        self.out.text.push_str("\":");
    }
}

thread_local! {
    /// Where objects are written that are handed on: there are two for every call, and none stays.
    static SPARE: Cell<Option<Written>> = const { Cell::new(None) };
}
/// How much of that memory is kept, in bytes: records are shorter.
const KEPT: usize = 64 << 10;

/// Writes an object and hands it on, with what `fill` returned, in memory that the next one is written in.
pub fn handed<R, T>(
    fill: impl FnOnce(&mut Object<'_>) -> R,
    on: impl FnOnce(&Written, R) -> T,
) -> T {
    // Who writes one while another is written, or when the thread ends, gets memory of its own.
    let spare = SPARE.try_with(Cell::take).unwrap_or_default();
    let mut written = spare.unwrap_or_default();
    let told = written.object(fill);
    let result = on(&written, told);
    written.text.shrink_to(KEPT);
    _ = SPARE.try_with(|kept| kept.set(Some(written)));
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
        let mut out = Written::default();
        out.object(fill);
        out.text
    }

    #[test]
    fn an_object_that_is_written_while_another_is_handed_on_leaves_that_alone() {
        let one = |object: &mut Object<'_>| _ = object.text("a", "outer");
        let two = |object: &mut Object<'_>| _ = object.text("b", "inner");
        let text = |it: &Written, ()| it.text.clone();
        let both = handed(one, |outer, ()| (handed(two, text), text(outer, ())));
        assert_eq!(both, (r#"{"b":"inner"}"#.into(), r#"{"a":"outer"}"#.into()));
        assert_eq!(handed(two, text), r#"{"b":"inner"}"#);
    }

    #[test]
    fn texts_are_told_from_others_by_their_hash_whatever_else_is_written() {
        let of = |fill: &dyn Fn(&mut Object<'_>)| {
            let mut written = Written::default();
            written.object(fill);
            written.texts()
        };
        let base = of(&|object| _ = object.text("a", "x").number("n", 1));
        assert!(base.is_some());
        let alike = of(&|object| {
            object.text("a", "x").content("c", "y", TEXT);
            object.digits("d", b"z").number("n", 2).plain("p", 3);
        });
        assert_eq!(base, alike);
        let others: [&dyn Fn(&mut Object<'_>); 6] = [
            &|object| _ = object.text("a", "y"),
            &|object| _ = object.text("b", "x"),
            &|object| _ = object.text("a", "x").text("b", ""),
            &|object| _ = object.object("a", |inner| _ = inner.text("a", "x")),
            &|object| _ = object.texts("a", ["x"], 1),
            &|object| {
                _ = object
                    .objects("o", ["x"], 1, |inner, it| _ = inner.text("a", it))
                    .text("p", "")
            },
        ];
        for (nth, other) in others.into_iter().enumerate() {
            assert_ne!(of(other), base, "{nth}");
        }
        let inside = of(&|object| {
            object.object("a", |inner| _ = inner.text("b", "x").text("c", "y"));
        });
        let beside = of(&|object| {
            let a = object.object("a", |inner| _ = inner.text("b", "x"));
            a.text("c", "y");
        });
        assert_ne!(inside, beside);
        let listed = of(&|object| {
            object.objects("o", ["x"], 1, |inner, it| _ = inner.text("a", it));
        });
        assert_ne!(listed, base);
        let long = of(&|object| _ = object.text("a", "x").content("c", &"y".repeat(LONG), LONG));
        assert_eq!(long, None);
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
        let line = written(|object| _ = object.signed("a", -(1 << 53)).signed("b", i64::MIN));
        assert_eq!(
            line,
            r#"{"a":-9007199254740992,"b":"-9223372036854775808"}"#
        );
    }
}
