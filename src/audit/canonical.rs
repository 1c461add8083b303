//! Writing records: canonical JSON (RFC 8785) by construction, whatever is put in.
//!
//! Guarantees: members come in rising order, numbers are whole, strings hold nothing that a terminal or a reader of lines
//! would act upon, and none is longer than its bound (SECURITY AUD-3, AUD-6). What was cut or replaced says so in place.

use std::fmt::Write as _;

/// The most bytes kept of one text value; what is cut off is told by its length.
pub const TEXT: usize = 1_024;

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

    /// A text, of which at most [`TEXT`] bytes are kept.
    pub fn text(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.name(name);
        text(self.out, value, TEXT);
        self
    }

    /// A text, if there is one.
    pub fn maybe(&mut self, name: &'static str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.text(name, value);
        }
        self
    }

    /// A longer text, of which at most `most` bytes are kept.
    pub fn content(&mut self, name: &'static str, value: &str, most: usize) -> &mut Self {
        self.name(name);
        text(self.out, value, most);
        self
    }

    /// A whole number; beyond 2^53 it is written as text, since a canonical number is a double.
    pub fn number(&mut self, name: &'static str, value: u64) -> &mut Self {
        self.name(name);
        if value <= 1 << 53 {
            _ = write!(self.out, "{value}");
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
                text(self.out, value, TEXT);
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

/// A string literal, of at most `most` bytes of the value.
pub fn text(out: &mut String, value: &str, most: usize) {
    let kept = value.len().min(most);
    let kept = value.floor_char_boundary(kept);
    let (kept, cut) = value.split_at(kept);
    out.push('"');
    let mut rest = kept;
    // Most values hold nothing to replace.
    while let Some(at) = rest.find(|character| !is_harmless(character)) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let mut characters = after.chars();
        if let Some(character) = characters.next() {
            replaced(out, character);
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    if !cut.is_empty() {
        _ = write!(out, "…(+{} bytes)", cut.len());
    }
    out.push('"');
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

    #[test]
    fn a_number_that_no_double_holds_is_text() {
        let line = written(|object| _ = object.number("a", 1 << 53).number("b", u64::MAX));
        assert_eq!(line, r#"{"a":9007199254740992,"b":"18446744073709551615"}"#);
    }
}
