//! The one strict reader: RFC 8259 and nothing else, bounded, linear, without recursion.
//!
//! Refuses what readers are known to disagree on: duplicate member names (compared after unescaping), unpaired
//! surrogates, byte order marks, trailing bytes, `NaN`, comments. Stack use is constant; heap use is bounded by the
//! limits. It builds nothing: its result is where the value begins and ends.

use std::borrow::Cow;

use super::{
    Span,
    node::unescape,
    notes::Notes,
    swar::{plain, plain_run, quote_or_escape},
};

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
    scan_noting(text, limits).map(|scanned| scanned.span)
}

/// What one scan learned.
#[derive(Debug, Clone)]
pub(super) struct Scanned {
    /// Where the value lies between white space.
    pub(super) span: Span,
    /// What was noted on the way.
    pub(super) notes: Notes,
}

/// As [`scan`], and takes notes.
pub(super) fn scan_noting(text: &[u8], limits: &Limits) -> Result<Scanned, ScanError> {
    if let Err(error) = std::str::from_utf8(text) {
        return Err(ScanError::Encoding(error.valid_up_to()));
    }
    Scanner {
        text,
        at: 0,
        limits,
        values: 0,
        open: Vec::with_capacity(8),
        keys: Vec::with_capacity(16),
        notes: Notes::default(),
        plain: plain(text),
        noting: !Notes::are_idle_for(text.len()),
    }
    .run()
}

/// Names compared pair by pair.
const FEW: usize = 12;

/// An open container: where it began, and for an object where its member names begin in `keys`.
struct Open {
    start: usize,
    first_key: Option<usize>,
    /// The note on the member that is being read.
    field: Option<usize>,
    /// Whether all members so far are noted.
    whole: bool,
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
    notes: Notes,
    /// Whether no control byte stands anywhere, so that strings need not be searched for them.
    plain: bool,
    noting: bool,
}

impl Scanner<'_> {
    fn run(mut self) -> Result<Scanned, ScanError> {
        self.blank();
        let begin = self.at;
        'value: loop {
            self.values += 1;
            if self.values > self.limits.values {
                return Err(ScanError::TooManyValues(self.limits.values));
            }
            match self.peek() {
                Some(b'"') => {
                    let start = self.at;
                    self.string()?;
                    if self.noting {
                        self.notes.skip(self.open.len(), start, self.at);
                    }
                }
                Some(b'{') => {
                    self.enter(Some(self.keys.len()))?;
                    if self.peek() == Some(b'}') {
                        self.leave();
                    } else {
                        self.key()?;
                        continue 'value;
                    }
                }
                Some(b'[') => {
                    self.enter(None)?;
                    if self.peek() == Some(b']') {
                        self.leave();
                    } else {
                        continue 'value;
                    }
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
                self.blank();
                let Some(open) = self.open.last_mut() else {
                    if self.at < self.text.len() {
                        return Err(ScanError::Syntax(self.at));
                    }
                    return Ok(Scanned {
                        span: Span { start: begin, end },
                        notes: self.notes,
                    });
                };
                if let Some(field) = open.field.take() {
                    self.notes.end(field, end);
                }
                match (open.first_key, self.text.get(self.at)) {
                    (None, Some(b',')) => {
                        self.at += 1;
                        self.blank();
                        continue 'value;
                    }
                    (Some(first_key), Some(b',')) => {
                        if self.keys.len() - first_key >= self.limits.members {
                            return Err(ScanError::TooManyMembers(self.limits.members));
                        }
                        self.at += 1;
                        self.blank();
                        self.key()?;
                        continue 'value;
                    }
                    (None, Some(b']')) => self.leave(),
                    (Some(first_key), Some(b'}')) => {
                        self.leave();
                        self.distinct(first_key)?;
                        self.keys.truncate(first_key);
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

    /// Into a container at its opening mark, up to what stands inside.
    fn enter(&mut self, first_key: Option<usize>) -> Result<(), ScanError> {
        if self.open.len() >= self.limits.depth {
            return Err(ScanError::TooDeep(self.limits.depth));
        }
        self.open.push(Open {
            start: self.at,
            first_key,
            field: None,
            whole: self.noting,
        });
        self.at += 1;
        self.blank();
        Ok(())
    }

    /// Out of the innermost container at its closing mark.
    fn leave(&mut self) {
        self.at += 1;
        let Some(open) = self.open.pop() else { return };
        if self.noting {
            self.notes.skip(self.open.len(), open.start, self.at);
            if open.whole && open.first_key.is_some() {
                self.notes.whole(open.start);
            }
        }
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
        let mut key = Key {
            print: 0,
            span,
            escaped,
        };
        key.print = fingerprint(&self.name(key));
        self.keys.push(key);
        self.blank();
        if self.peek() != Some(b':') {
            return Err(ScanError::Syntax(self.at));
        }
        self.at += 1;
        self.blank();
        let depth = self.open.len();
        if let Some(open) = self.open.last_mut()
            && open.whole
        {
            open.field = self.notes.begin(depth, open.start, span, escaped, self.at);
            open.whole = open.field.is_some();
        }
        Ok(())
    }

    /// Refuses two equal names in the object whose names begin at `first`.
    fn distinct(&mut self, first: usize) -> Result<(), ScanError> {
        // Few names are compared pair by pair; many are sorted first, so that a hostile choice of names gains nothing.
        if self.keys.len() - first > FEW {
            let mut keys = self.keys.split_off(first);
            keys.sort_unstable_by(|one, two| {
                let prints = one.print.cmp(&two.print);
                prints.then_with(|| self.name(*one).cmp(&self.name(*two)))
            });
            let twins = |pair: &[Key]| matches!(pair, [one, two] if self.equal(*one, *two));
            if keys.windows(2).any(twins) {
                return Err(ScanError::DuplicateMember(self.at));
            }
            return Ok(());
        }
        let keys = &self.keys[first..];
        for (i, key) in keys.iter().enumerate() {
            if keys[..i].iter().any(|other| self.equal(*key, *other)) {
                return Err(ScanError::DuplicateMember(self.at));
            }
        }
        Ok(())
    }

    fn equal(&self, one: Key, two: Key) -> bool {
        one.print == two.print && self.name(one) == self.name(two)
    }

    /// A member name as it reads after unescaping.
    fn name(&self, key: Key) -> Cow<'_, [u8]> {
        let raw = &self.text[key.span.start..key.span.end];
        if key.escaped {
            Cow::Owned(unescape(std::str::from_utf8(raw).unwrap_or_default()).into_bytes())
        } else {
            Cow::Borrowed(raw)
        }
    }

    /// Reads a string at its opening quote; says whether it holds an escape.
    fn string(&mut self) -> Result<bool, ScanError> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at = if self.plain {
                quote_or_escape(self.text, self.at)
            } else {
                plain_run(self.text, self.at)
            };
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

/// Tells most different names apart: by length, beginning and end.
fn fingerprint(name: &[u8]) -> u64 {
    let ends = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29)
        }
        _ => name.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    };
    ends ^ (name.len() as u64).rotate_left(59)
}
