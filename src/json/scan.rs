//! The one strict reader: RFC 8259 and nothing else, bounded, without recursion, linear but for the sorting of member names.
//!
//! Refuses what readers are known to disagree on: duplicate member names (compared after unescaping), unpaired
//! surrogates, byte order marks, trailing bytes, `NaN`, comments. Stack use is constant; heap use is bounded by the
//! limits. It builds nothing: its result is where the value begins and ends.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use smallvec::SmallVec;

use super::{
    Span,
    node::unescape,
    notes::{Fields, Notes},
    stops::{BLOCK, next_stop, plain, stops, wide_stops},
};

/// Bounds of one message (SECURITY 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub const LIST: Self = Self::UPSTREAM.of_lists();
    /// What was read under bounds before, and edited or written down since.
    pub const KNOWN: Self = Self {
        depth: usize::MAX,
        values: usize::MAX,
        members: usize::MAX,
        key_bytes: usize::MAX,
        number_bytes: usize::MAX,
    };
    /// The fewest values that a list page may have.
    const LIST_VALUES: usize = 4_000_000;

    /// The same for list pages.
    #[must_use]
    pub const fn of_lists(self) -> Self {
        let values = if self.values > Self::LIST_VALUES {
            self.values
        } else {
            Self::LIST_VALUES
        };
        Self { values, ..self }
    }
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
    scan_noting(text, limits).map(|(span, _)| span)
}

/// As [`scan`], and what was noted on the way, if anything is worth noting in a text of this length.
pub(super) fn scan_noting(
    text: &[u8],
    limits: &Limits,
) -> Result<(Span, Option<Arc<Notes>>), ScanError> {
    if let Err(error) = simdutf8::compat::from_utf8(text) {
        return Err(ScanError::Encoding(error.valid_up_to()));
    }
    // Where it will stay: notes are larger than one would like to move.
    let mut notes = (!Notes::are_idle_for(text.len())).then(|| Arc::new(Notes::default()));
    let span = Scanner {
        text,
        at: 0,
        limits,
        values: 0,
        open: SmallVec::new(),
        keys: SmallVec::new(),
        notes: notes.as_mut().and_then(Arc::get_mut),
        plain: text.len() > LONG && plain(text),
    }
    .run()?;
    Ok((span, notes))
}

/// How far into a string a run without a stop is one of many blocks, probably.
const LONG: usize = 4 << 10;

/// Names compared pair by pair.
const FEW: usize = 12;

/// An open container: where it began, and for an object where its member names begin in `keys`.
struct Open {
    start: usize,
    first_key: Option<usize>,
    /// The notes on its members, if all of them so far are noted.
    fields: Option<Fields>,
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
    open: SmallVec<[Open; 8]>,
    keys: SmallVec<[Key; 16]>,
    /// Where notes are taken, if they are.
    notes: Option<&'a mut Notes>,
    /// Whether it is known that no control byte stands anywhere, so that long strings need not be searched for them.
    plain: bool,
}

impl Scanner<'_> {
    fn run(mut self) -> Result<Span, ScanError> {
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
                    if let Some(notes) = &mut self.notes {
                        notes.skip(self.open.len(), start, self.at);
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
                    return Ok(Span { start: begin, end });
                };
                if let (Some(notes), Some(fields)) = (&mut self.notes, &open.fields) {
                    notes.end(fields, end);
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

    #[inline]
    fn blank(&mut self) {
        // Compact JSON has none.
        if self.peek().is_some_and(|byte| byte > b' ') {
            return;
        }
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
            fields: first_key
                .and(self.notes.as_ref())
                .map(|_| Fields::default()),
        });
        self.at += 1;
        self.blank();
        Ok(())
    }

    /// Out of the innermost container at its closing mark.
    fn leave(&mut self) {
        self.at += 1;
        let Some(open) = self.open.pop() else { return };
        if let Some(notes) = &mut self.notes {
            notes.skip(self.open.len(), open.start, self.at);
            if let Some(fields) = open.fields {
                notes.whole(open.start, &fields);
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
        let raw = &self.text[span.start..span.end];
        let print = if escaped {
            fingerprint(&unescaped(raw))
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
        let depth = self.open.len();
        if let (Some(notes), Some(open)) = (&mut self.notes, self.open.last_mut())
            && let Some(fields) = &mut open.fields
            && !notes.begin(depth, fields, span, escaped, self.at)
        {
            open.fields = None;
        }
        Ok(())
    }

    /// Refuses two equal names in the object whose names begin at `first`.
    fn distinct(&mut self, first: usize) -> Result<(), ScanError> {
        let keys = &mut self.keys[first..];
        // Few are compared pair by pair, many are sorted; in most objects no two fingerprints are the same.
        let alike =
            |(at, key): (usize, &Key)| keys[..at].iter().any(|other| other.print == key.print);
        if keys.len() <= FEW && !keys.iter().enumerate().any(alike) {
            return Ok(());
        }
        keys.sort_unstable_by_key(|key| key.print);
        let mut alike = self.keys[first..].chunk_by(|one, two| one.print == two.print);
        if alike.any(|keys| keys.len() > 1 && self.repeats(keys)) {
            return Err(ScanError::DuplicateMember(self.at));
        }
        Ok(())
    }

    /// Whether a name occurs twice. Each is unescaped once and hashed as a whole, by a hash that nobody can foresee: names can
    /// be chosen to be alike, and must not cost more for it.
    fn repeats(&self, keys: &[Key]) -> bool {
        let mut names = HashSet::with_capacity(keys.len());
        keys.iter().any(|key| !names.insert(self.name(*key)))
    }

    /// A member name as it reads after unescaping.
    fn name(&self, key: Key) -> Cow<'_, [u8]> {
        let raw = &self.text[key.span.start..key.span.end];
        if key.escaped {
            Cow::Owned(unescaped(raw))
        } else {
            Cow::Borrowed(raw)
        }
    }

    /// Reads a string at its opening quote; says whether it holds an escape.
    fn string(&mut self) -> Result<bool, ScanError> {
        let mut at = self.at + 1;
        let long = at + LONG;
        let mut escaped = false;
        // Most are names, and short.
        let (mut stops, mut looked_at) = (u64::from(stops(self.text, at)), BLOCK);
        loop {
            if stops == 0 {
                at += looked_at;
                if at > long {
                    at = next_stop(self.text, at, self.plain);
                }
                (stops, looked_at) = wide_stops(self.text, at);
                continue;
            }
            // An escape in every line is common: what is known of the block is used to its end.
            let stop = at + stops.trailing_zeros() as usize;
            match self.text.get(stop) {
                Some(b'"') => {
                    self.at = stop + 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    let next = self.escape(stop)?;
                    if next - at < looked_at {
                        stops &= u64::MAX << (next - at);
                    } else {
                        at = next;
                        (stops, looked_at) = wide_stops(self.text, at);
                    }
                }
                _ => return Err(ScanError::Syntax(stop)),
            }
        }
    }

    /// One past the escape that begins at `at`.
    fn escape(&self, at: usize) -> Result<usize, ScanError> {
        match self.text.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') => match self.hex(at + 2)? {
                0xD800..=0xDBFF => {
                    let paired = self.text.get(at + 6) == Some(&b'\\')
                        && self.text.get(at + 7) == Some(&b'u')
                        && matches!(self.hex(at + 8)?, 0xDC00..=0xDFFF);
                    if paired {
                        Ok(at + 12)
                    } else {
                        Err(ScanError::Encoding(at))
                    }
                }
                0xDC00..=0xDFFF => Err(ScanError::Encoding(at)),
                _ => Ok(at + 6),
            },
            _ => Err(ScanError::Syntax(at)),
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

/// What a member name with escapes stands for.
fn unescaped(raw: &[u8]) -> Vec<u8> {
    #[cfg(test)]
    tests::UNESCAPED.with(|count| count.set(count.get() + 1));
    unescape(std::str::from_utf8(raw).unwrap_or_default()).into_bytes()
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// How often a name was unescaped.
        pub(super) static UNESCAPED: Cell<usize> = const { Cell::new(0) };
    }

    /// Hostile: names that differ in the middle alone, where no fingerprint looks, and that have to be unescaped.
    #[test]
    fn msg_5_names_that_look_alike_are_unescaped_no_more_often_than_others() {
        for many in [2, FEW, FEW + 1, 5_000] {
            let mut names: Vec<_> = (0..many)
                .map(|nth| format!(r#""beginning\u002d{nth:06}-the end":0"#))
                .collect();
            let object = |names: &[String]| format!("{{{}}}", names.join(","));
            UNESCAPED.take();
            assert!(scan(object(&names).as_bytes(), &Limits::CLIENT).is_ok());
            assert_eq!(UNESCAPED.take(), 2 * many);
            names.push(r#""beginning-000001-the end":0"#.to_owned());
            assert!(matches!(
                scan(object(&names).as_bytes(), &Limits::CLIENT),
                Err(ScanError::DuplicateMember(_))
            ));
        }
    }
}
