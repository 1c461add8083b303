//! Looking inside a well-formed value: kinds, members, elements, strings.
//! Nothing here can fail on a valid value, nothing allocates except to unescape, and every position is relative to the value
//! looked into.

use std::borrow::Cow;

use super::{Json, Span, notes::Walk, stops::next_stop};

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number, as spelled.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// One value inside a well-formed text.
// INVARIANT: `span` covers exactly one value of the valid JSON text `json`.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    json: &'a Json,
    span: Span,
}

/// A member of an object.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// The name, unescaped.
    pub key: Cow<'a, str>,
    /// From the name's opening quote to the end of the value.
    pub span: Span,
    /// The value.
    pub value: Node<'a>,
}

impl<'a> Node<'a> {
    pub(super) const fn root(json: &'a Json) -> Self {
        Self {
            json,
            span: Span {
                start: 0,
                end: json.len(),
            },
        }
    }

    pub(super) const fn at(json: &'a Json, span: Span) -> Self {
        Self { json, span }
    }

    fn bytes(self) -> &'a [u8] {
        &self.json.text[self.span.start..self.span.end]
    }

    /// Where the value stands in the root text.
    pub const fn span(self) -> Span {
        self.span
    }

    /// The value as spelled, in UTF-8.
    pub fn raw_bytes(self) -> &'a [u8] {
        self.bytes()
    }

    /// The value as spelled.
    pub fn raw(self) -> &'a str {
        str_of(self.bytes())
    }

    /// What the value is.
    pub fn kind(self) -> Kind {
        match self.json.text[self.span.start] {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b't' | b'f' => Kind::Bool,
            b'n' => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// The members in order; none when this is not an object.
    pub fn members(self) -> Members<'a> {
        Members {
            fields: Fields::of(self),
        }
    }

    /// The members in order, none of whose names has been read yet; none when this is not an object.
    pub fn fields(self) -> Fields<'a> {
        Fields::of(self)
    }

    /// The elements in order; none when this is not an array.
    pub fn elements(self) -> Elements<'a> {
        Elements {
            items: Items::inside(self, Kind::Array),
        }
    }

    /// The value of one member, if this is an object that has it.
    pub fn member(self, key: &str) -> Option<Self> {
        Fields::of(self)
            .find(|field| field.is(key))
            .map(|field| field.value)
    }

    /// The string, unescaped, if this is one.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        (self.kind() == Kind::String)
            .then(|| unquote(&self.json.text[self.span.start + 1..self.span.end - 1]))
    }

    /// The boolean, if this is one.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// The number, if this is one that an `i64` holds exactly and that is spelled as an integer.
    pub fn as_i64(self) -> Option<i64> {
        if self.kind() == Kind::Number {
            self.raw().parse().ok()
        } else {
            None
        }
    }
}

/// The members of an object, in order.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    fields: Fields<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let field = self.fields.next()?;
        let key = if field.escaped {
            unquote(field.raw)
        } else {
            Cow::Borrowed(str_of(field.raw))
        };
        let span = Span {
            start: field.start,
            end: field.value.span.end,
        };
        Some(Member {
            key,
            span,
            value: field.value,
        })
    }
}

/// A member before anybody has looked at its name: for walks of every call, which compare bytes.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// Where its name's opening quote stands.
    start: usize,
    /// The name between its quotes.
    raw: &'a [u8],
    escaped: bool,
    /// The value.
    pub value: Node<'a>,
}

impl<'a> Field<'a> {
    /// The name, unescaped, in UTF-8.
    pub fn name(&self) -> Cow<'a, [u8]> {
        if self.escaped {
            Cow::Owned(unquote(self.raw).into_owned().into_bytes())
        } else {
            Cow::Borrowed(self.raw)
        }
    }

    fn is(&self, key: &str) -> bool {
        if self.escaped {
            unquote(self.raw) == key
        } else {
            self.raw == key.as_bytes()
        }
    }
}

/// The members of an object, in order: from the scan's notes where it took them, else by walking.
#[derive(Debug, Clone)]
pub struct Fields<'a>(Way<'a>);

#[derive(Debug, Clone)]
enum Way<'a> {
    Noted { json: &'a Json, walk: Walk<'a> },
    Walked(Items<'a>),
}

impl<'a> Fields<'a> {
    fn of(object: Node<'a>) -> Self {
        let json = object.json;
        let notes = json.notes.as_ref();
        match notes.and_then(|notes| notes.walk(json.offset + object.span.start)) {
            Some(walk) => Self(Way::Noted { json, walk }),
            None => Self(Way::Walked(Items::inside(object, Kind::Object))),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        match &mut self.0 {
            Way::Noted { json, walk } => {
                let place = |span: Span| Span {
                    start: span.start - json.offset,
                    end: span.end - json.offset,
                };
                let field = walk.next()?;
                let name = place(field.name());
                Some(Field {
                    start: name.start - 1,
                    raw: &json.text[name.start..name.end],
                    escaped: field.escaped,
                    value: Node {
                        json,
                        span: place(field.value()),
                    },
                })
            }
            Way::Walked(items) => {
                let (start, raw, escaped) = items.next_name()?;
                Some(Field {
                    start,
                    raw,
                    escaped,
                    value: items.value(),
                })
            }
        }
    }
}

/// The elements of an array, in order.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    items: Items<'a>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        self.items.next_start()?;
        Some(self.items.value())
    }
}

/// A walk along the inside of one container.
#[derive(Debug, Clone)]
struct Items<'a> {
    json: &'a Json,
    at: usize,
    end: usize,
}

impl<'a> Items<'a> {
    fn inside(node: Node<'a>, kind: Kind) -> Self {
        let Span { start, end } = node.span;
        if node.kind() == kind {
            Self {
                json: node.json,
                at: start + 1,
                end: end - 1,
            }
        } else {
            Self {
                json: node.json,
                at: end,
                end,
            }
        }
    }

    /// Where the next item begins: past white space and the comma.
    fn next_start(&mut self) -> Option<usize> {
        let bytes = &self.json.text[..];
        while self.at < self.end && matches!(bytes[self.at], b' ' | b'\t' | b'\n' | b'\r' | b',') {
            self.at += 1;
        }
        (self.at < self.end).then_some(self.at)
    }

    fn skip(&mut self, mark: u8) {
        let bytes = &self.json.text[..];
        while self.at < self.end
            && (matches!(bytes[self.at], b' ' | b'\t' | b'\n' | b'\r') || bytes[self.at] == mark)
        {
            self.at += 1;
        }
    }

    /// The next member's name, between its quotes, where it begins, and whether it holds an escape; its value is next.
    fn next_name(&mut self) -> Option<(usize, &'a [u8], bool)> {
        let start = self.next_start()?;
        let (end, escaped) = string_end(&self.json.text, start);
        self.at = end;
        self.skip(b':');
        Some((start, &self.json.text[start + 1..end - 1], escaped))
    }

    fn value(&mut self) -> Node<'a> {
        let start = self.at;
        self.at = value_end(self.json, start);
        Node {
            json: self.json,
            span: Span {
                start,
                end: self.at,
            },
        }
    }
}

/// One past the value that begins at `at`.
fn value_end(json: &Json, at: usize) -> usize {
    let text = &json.text[..];
    match text[at] {
        b'"' => json.noted_end(at).unwrap_or_else(|| string_end(text, at).0),
        b'{' | b'[' => json
            .noted_end(at)
            .unwrap_or_else(|| container_end(text, at)),
        _ => {
            let length = text[at..].iter().take_while(|byte| {
                !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
            });
            at + length.count()
        }
    }
}

/// One past the closing quote of the string that begins at `at`, and whether an escape stands before it.
fn string_end(text: &[u8], at: usize) -> (usize, bool) {
    let mut at = at + 1;
    let mut escaped = false;
    loop {
        at = next_stop(text, at, true);
        match text.get(at) {
            Some(b'\\') => {
                escaped = true;
                at += 2;
            }
            Some(_) => return (at + 1, escaped),
            None => return (text.len(), escaped),
        }
    }
}

/// One past the closing mark of the container that begins at `at`. Kinds need no matching: the text is well formed.
fn container_end(text: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < text.len() {
        match text[at] {
            b'"' => {
                at = string_end(text, at).0;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The text that the inside of a valid string stands for.
pub(crate) fn unquote(inner: &[u8]) -> Cow<'_, str> {
    let text = str_of(inner);
    let escaped = if inner.len() <= 32 {
        inner.contains(&b'\\')
    } else {
        memchr::memchr(b'\\', inner).is_some()
    };
    if escaped {
        Cow::Owned(unescape(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// A piece of a valid text, cut where a value or a string begins and ends.
#[expect(clippy::expect_used, reason = "see the invariant")]
pub(super) fn str_of(piece: &[u8]) -> &str {
    // INVARIANT: nodes lie in valid UTF-8 and are cut at ASCII marks, which are never inside a character.
    std::str::from_utf8(piece).expect("a node of a Json is valid UTF-8")
}

/// The text that a valid escaped string stands for.
pub(super) fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (character, length) = escaped(&rest[at..]);
        out.push(character);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

/// The character of the escape that begins `text`, and how long the escape is.
pub(super) fn escaped(text: &str) -> (char, usize) {
    let unit = |at: usize| {
        text.get(at..at + 4)
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .unwrap_or(0xFFFD)
    };
    match text.as_bytes().get(1) {
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{C}', 2),
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(b'u') => match unit(2) {
            high @ 0xD800..=0xDBFF => {
                let low = unit(8).wrapping_sub(0xDC00) & 0x3FF;
                let scalar = 0x1_0000 + ((high - 0xD800) << 10) + low;
                (
                    char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER),
                    12,
                )
            }
            plain => (
                char::from_u32(plain).unwrap_or(char::REPLACEMENT_CHARACTER),
                6,
            ),
        },
        Some(other) => (char::from(*other), 2),
        None => (char::REPLACEMENT_CHARACTER, text.len()),
    }
}
