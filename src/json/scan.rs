//! The one strict reader: RFC 8259 and nothing else, bounded, linear, without recursion.
//!
//! Refuses what readers are known to disagree on: duplicate member names (compared after unescaping), unpaired
//! surrogates, byte order marks, trailing bytes, `NaN`, comments. Stack use is constant; heap use is bounded by the
//! limits. It builds nothing: its result is where the value begins and ends.

use std::borrow::Cow;

use super::Span;
use super::{node::unescape, swar::plain_run};

/// Bounds of one message (SECURITY 6).
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Containers inside containers. Default 64 from a client, 128 from an upstream.
    pub depth: usize,
    /// Values of any kind in the message. Default 200,000.
    pub values: usize,
    /// Members of one object. Default 20,000.
    pub members: usize,
    /// Bytes of one member name as written. Default 1,024.
    pub key_bytes: usize,
    /// Bytes of one number as written. Default 128.
    pub number_bytes: usize,
}

impl Limits {
    /// What a client may send.
    pub const CLIENT: Self = Self {
        depth: 64,
        values: 200_000,
        members: 20_000,
        key_bytes: 1_024,
        number_bytes: 128,
    };
    /// What an upstream may send.
    pub const UPSTREAM: Self = Self {
        depth: 128,
        ..Self::CLIENT
    };
    /// An upstream's list page: bounded by its size instead, since ten thousand definitions are many values.
    pub const LIST: Self = Self {
        values: 4_000_000,
        ..Self::UPSTREAM
    };
}

/// Why a text was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// Not RFC 8259 at this byte.
    #[error("not JSON at byte {0}")]
    Syntax(usize),
    /// Not UTF-8, or an escape that stands for no character.
    #[error("not UTF-8 at byte {0}")]
    Encoding(usize),
    /// A member name occurs twice in one object.
    #[error("a member name is repeated in the object that ends at byte {0}")]
    DuplicateMember(usize),
    /// Containers nest deeper than the limit.
    #[error("nested deeper than {0}")]
    TooDeep(usize),
    /// More values than the limit.
    #[error("more than {0} values")]
    TooManyValues(usize),
    /// An object has more members than the limit.
    #[error("an object with more than {0} members")]
    TooManyMembers(usize),
    /// A member name is longer than the limit.
    #[error("a member name of more than {0} bytes")]
    KeyTooLong(usize),
    /// A number is longer than the limit.
    #[error("a number of more than {0} characters")]
    NumberTooLong(usize),
}

impl ScanError {
    /// The stable word for `data.reason`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Syntax(_) => "parse_error",
            Self::Encoding(_) => "invalid_encoding",
            Self::DuplicateMember(_) => "duplicate_member",
            Self::TooDeep(_) => "too_deep",
            Self::TooManyValues(_) => "too_many_values",
            Self::TooManyMembers(_) => "too_many_members",
            Self::KeyTooLong(_) => "key_too_long",
            Self::NumberTooLong(_) => "number_too_long",
        }
    }
}

/// Checks that `text` is exactly one JSON value within `limits`, and says where it lies between white space.
///
/// # Errors
/// The first offence found, by position.
pub fn scan(text: &[u8], limits: &Limits) -> Result<Span, ScanError> {
    scan_members(text, limits).map(|scanned| scanned.span)
}

/// What one scan learned.
#[derive(Debug, Clone)]
pub(super) struct Scanned {
    /// Where the value lies between white space.
    pub(super) span: Span,
    /// When it is an object, its own members: the name without quotes, and the value.
    pub(super) members: Vec<(Span, Span)>,
}

/// As [`scan`], and remembers where the outermost members are, so that an envelope is not walked again.
pub(super) fn scan_members(text: &[u8], limits: &Limits) -> Result<Scanned, ScanError> {
    if let Err(error) = std::str::from_utf8(text) {
        return Err(ScanError::Encoding(error.valid_up_to()));
    }
    Scanner {
        text,
        at: 0,
        limits,
        values: 0,
        open: Vec::new(),
        keys: Vec::new(),
        member: None,
        members: Vec::new(),
    }
    .run()
}

/// An open container: an array, or an object and where its member names begin in `keys`.
enum Open {
    Array,
    Object { first_key: usize },
}

/// A member name: a fingerprint for cheap comparison, and where it stands (without quotes).
#[derive(Clone, Copy)]
struct Key {
    print: u64,
    span: Span,
    escaped: bool,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    limits: &'a Limits,
    values: usize,
    open: Vec<Open>,
    keys: Vec<Key>,
    /// The outermost member that is being read: its name, and where its value begins.
    member: Option<(Span, usize)>,
    members: Vec<(Span, Span)>,
}

impl Scanner<'_> {
    fn run(mut self) -> Result<Scanned, ScanError> {
        self.blank();
        let start = self.at;
        'value: loop {
            self.values += 1;
            if self.values > self.limits.values {
                return Err(ScanError::TooManyValues(self.limits.values));
            }
            match self.peek() {
                Some(b'{') => {
                    self.enter(Open::Object {
                        first_key: self.keys.len(),
                    })?;
                    self.blank();
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        self.open.pop();
                    } else {
                        self.key()?;
                        continue 'value;
                    }
                }
                Some(b'[') => {
                    self.enter(Open::Array)?;
                    self.blank();
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        self.open.pop();
                    } else {
                        continue 'value;
                    }
                }
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                _ => return Err(ScanError::Syntax(self.at)),
            }
            // A value has just ended: close what it closes, or find the next one.
            loop {
                let end = self.at;
                if self.open.len() == 1
                    && let Some((name, start)) = self.member.take()
                {
                    self.members.push((name, Span { start, end }));
                }
                self.blank();
                let Some(open) = self.open.last() else {
                    if self.at < self.text.len() {
                        return Err(ScanError::Syntax(self.at));
                    }
                    return Ok(Scanned {
                        span: Span { start, end },
                        members: self.members,
                    });
                };
                match (open, self.peek()) {
                    (Open::Array, Some(b',')) => {
                        self.at += 1;
                        self.blank();
                        continue 'value;
                    }
                    (Open::Object { first_key }, Some(b',')) => {
                        if self.keys.len() - first_key >= self.limits.members {
                            return Err(ScanError::TooManyMembers(self.limits.members));
                        }
                        self.at += 1;
                        self.blank();
                        self.key()?;
                        continue 'value;
                    }
                    (Open::Array, Some(b']')) => {
                        self.at += 1;
                        self.open.pop();
                    }
                    (Open::Object { first_key }, Some(b'}')) => {
                        let first_key = *first_key;
                        self.at += 1;
                        self.distinct(first_key)?;
                        self.keys.truncate(first_key);
                        self.open.pop();
                    }
                    _ => return Err(ScanError::Syntax(self.at)),
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn enter(&mut self, open: Open) -> Result<(), ScanError> {
        if self.open.len() >= self.limits.depth {
            return Err(ScanError::TooDeep(self.limits.depth));
        }
        self.open.push(open);
        self.at += 1;
        Ok(())
    }

    /// A member name and its colon; the value is next.
    fn key(&mut self) -> Result<(), ScanError> {
        if self.peek() != Some(b'"') {
            return Err(ScanError::Syntax(self.at));
        }
        let start = self.at + 1;
        let escaped = self.string()?;
        let span = Span {
            start,
            end: self.at - 1,
        };
        if span.end - span.start > self.limits.key_bytes {
            return Err(ScanError::KeyTooLong(self.limits.key_bytes));
        }
        let raw = &self.text[span.start..span.end];
        let print = if escaped {
            fingerprint(self.name(span, true).as_bytes())
        } else {
            fingerprint(raw)
        };
        self.keys.push(Key {
            print,
            span,
            escaped,
        });
        self.blank();
        if self.peek() != Some(b':') {
            return Err(ScanError::Syntax(self.at));
        }
        self.at += 1;
        self.blank();
        if self.open.len() == 1 {
            self.member = Some((span, self.at));
        }
        Ok(())
    }

    /// The member name at `span` as it reads after unescaping.
    fn name(&self, span: Span, escaped: bool) -> Cow<'_, str> {
        let raw = std::str::from_utf8(&self.text[span.start..span.end]).unwrap_or_default();
        if escaped {
            Cow::Owned(unescape(raw))
        } else {
            Cow::Borrowed(raw)
        }
    }

    /// Refuses two equal names in the object whose names begin at `first`.
    fn distinct(&mut self, first: usize) -> Result<(), ScanError> {
        let keys = &mut self.keys[first..];
        // Few names are compared pair by pair; many are brought into the order of their fingerprints first.
        if keys.len() > 12 {
            keys.sort_unstable_by_key(|key| key.print);
            let keys = &self.keys[first..];
            for (i, key) in keys.iter().enumerate() {
                let same = keys[i + 1..]
                    .iter()
                    .take_while(|other| other.print == key.print);
                self.refuse_equal(*key, same)?;
            }
            return Ok(());
        }
        let keys = &self.keys[first..];
        for (i, key) in keys.iter().enumerate() {
            self.refuse_equal(
                *key,
                keys[i + 1..]
                    .iter()
                    .filter(|other| other.print == key.print),
            )?;
        }
        Ok(())
    }

    fn refuse_equal<'k>(
        &self,
        key: Key,
        others: impl Iterator<Item = &'k Key>,
    ) -> Result<(), ScanError> {
        for other in others {
            if self.name(key.span, key.escaped) == self.name(other.span, other.escaped) {
                return Err(ScanError::DuplicateMember(self.at));
            }
        }
        Ok(())
    }

    /// Reads a string at its opening quote; says whether it holds an escape.
    fn string(&mut self) -> Result<bool, ScanError> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at = plain_run(self.text, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(ScanError::Syntax(self.at)),
            }
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let unit = self.hex(self.at + 2)?;
                match unit {
                    0xD800..=0xDBFF => {
                        let paired = self.text.get(self.at + 6) == Some(&b'\\')
                            && self.text.get(self.at + 7) == Some(&b'u')
                            && matches!(self.hex(self.at + 8)?, 0xDC00..=0xDFFF);
                        if !paired {
                            return Err(ScanError::Encoding(self.at));
                        }
                        self.at += 12;
                    }
                    0xDC00..=0xDFFF => return Err(ScanError::Encoding(self.at)),
                    _ => self.at += 6,
                }
                Ok(())
            }
            _ => Err(ScanError::Syntax(self.at)),
        }
    }

    fn hex(&self, at: usize) -> Result<u32, ScanError> {
        let digits = self.text.get(at..at + 4).ok_or(ScanError::Syntax(at))?;
        digits.iter().try_fold(0, |unit, digit| {
            let value = char::from(*digit)
                .to_digit(16)
                .ok_or(ScanError::Syntax(at))?;
            Ok(unit * 16 + value)
        })
    }

    fn number(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(ScanError::Syntax(self.at)),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.at - start > self.limits.number_bytes {
            return Err(ScanError::NumberTooLong(self.limits.number_bytes));
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            Err(ScanError::Syntax(self.at))
        } else {
            Ok(())
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), ScanError> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(ScanError::Syntax(self.at))
        }
    }
}

/// FNV-1a; collisions cost a comparison, never a wrong answer.
fn fingerprint(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
