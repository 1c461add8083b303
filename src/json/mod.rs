//! JSON as shared bytes: a value is checked once, then only sliced, looked at and spliced.
//!
//! Guarantees: a [`Json`] holds exactly one well-formed RFC 8259 value in UTF-8, with no duplicate member
//! name at any depth. Unknown members, member order and number spellings survive, because no value is ever
//! rebuilt. Deliberately absent: a tree of values, and any notion of what a value means.

mod canonical;
mod decimal;
mod edit;
mod node;
mod notes;
mod pieces;
mod scan;
mod stops;
mod walk;

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::memory;

pub use canonical::canonical;
pub use decimal::Decimal;
pub(crate) use edit::inside;
pub use edit::{Edits, Fate};
pub(crate) use node::unquote;
pub use node::{Elements, Field, Fields, Kind, Member, Members, Node};
pub use pieces::{Behind, Pieces};
pub use scan::{Limits, ScanError, scan};
pub use walk::{Mark, Marks, Spelled, Text, Texts};

use notes::Notes;
use scan::scan_noting;

/// A half-open range of bytes in the text of one [`Json`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// One well-formed JSON value as shared bytes; cloning and slicing never copy.
// INVARIANT: the bytes are one valid UTF-8 JSON value without surrounding white space. Values are made only by
// a scan, by serialising, by slicing at a node of a valid value, or by splicing valid values into one.
#[derive(Clone)]
pub struct Json {
    text: Bytes,
    /// What the scan noted, and where in the text that was scanned this value lies. Only saves work.
    notes: Option<Arc<Notes>>,
    offset: usize,
}

impl Json {
    /// Checks `text` strictly and wraps it, without copying. White space around the value is cut off.
    ///
    /// # Errors
    /// [`ScanError`] when the text is not one RFC 8259 value or exceeds a limit (SECURITY MSG-1 to MSG-5).
    pub fn parse(text: Bytes, limits: &Limits) -> Result<Self, ScanError> {
        Self::parse_kept(&text, limits)
    }

    /// As [`Json::parse`], of a text that is still of use if it is none.
    ///
    /// # Errors
    /// As [`Json::parse`].
    pub fn parse_kept(text: &Bytes, limits: &Limits) -> Result<Self, ScanError> {
        let (Span { start, end }, notes) = scan_noting(text, limits)?;
        Ok(Self {
            text: text.slice(start..end),
            notes,
            offset: start,
        })
    }

    /// A value whose text is well formed.
    const fn plain(text: Bytes) -> Self {
        Self {
            text,
            notes: None,
            offset: 0,
        }
    }

    /// Serialises a value of our own.
    #[expect(clippy::expect_used, reason = "see the invariant")]
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        // INVARIANT: what we serialise are derived structs, strings and numbers; serde_json fails only on maps with
        // non-string keys and on failing `Serialize` impls, and we have neither.
        Self::plain(
            serde_json::to_vec(value)
                .expect("our own types serialise")
                .into(),
        )
    }

    /// A JSON string holding `text`.
    pub fn string(text: &str) -> Self {
        let mut out = Vec::with_capacity(text.len() + 2);
        push_string(&mut out, text);
        Self::plain(out.into())
    }

    /// A value spelled in the source. Use for constants only.
    // INVARIANT: every caller passes one JSON value; `literals_are_json` in the dialects' tests holds them to it.
    pub(crate) const fn literal(text: &'static str) -> Self {
        Self::plain(Bytes::from_static(text.as_bytes()))
    }

    /// The empty object `{}`.
    pub const fn empty_object() -> Self {
        Self::plain(Bytes::from_static(b"{}"))
    }

    /// A JSON array of `items`.
    pub fn array(items: &[Self]) -> Self {
        let mut out =
            Vec::with_capacity(2 + items.iter().map(|item| item.len() + 1).sum::<usize>());
        out.push(b'[');
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&item.text);
        }
        out.push(b']');
        Self::plain(out.into())
    }

    /// The text of the value.
    #[expect(clippy::expect_used, reason = "see the invariant")]
    pub fn as_str(&self) -> &str {
        // INVARIANT: every constructor has seen valid UTF-8; re-validation runs at memory speed.
        simdutf8::basic::from_utf8(&self.text).expect("a Json is valid UTF-8")
    }

    /// The text as shared bytes.
    pub const fn bytes(&self) -> &Bytes {
        &self.text
    }

    /// The length of the text in bytes; never zero.
    #[expect(clippy::len_without_is_empty, reason = "a JSON value is never empty")]
    pub const fn len(&self) -> usize {
        self.text.len()
    }

    /// One past the end of the long value that begins at `start`, if the scan noted it.
    fn noted_end(&self, start: usize) -> Option<usize> {
        let notes = self.notes.as_ref()?;
        Some(notes.end_of(self.offset + start)? - self.offset)
    }

    /// The root of the value, to look inside.
    pub fn root(&self) -> Node<'_> {
        Node::root(self)
    }

    /// The value at `node`, sharing these bytes. `node` must come from this value's own [`Json::root`].
    pub fn slice(&self, node: Node<'_>) -> Self {
        let Span { start, end } = node.span();
        let notes = self
            .notes
            .as_ref()
            .filter(|_| Notes::matter_to(end - start));
        Self {
            text: self.text.slice(start..end),
            notes: notes.cloned(),
            offset: self.offset + start,
        }
    }

    /// The same value in bytes of its own. For what is kept long: a slice keeps the whole buffer it was cut from. It does not
    /// count for the budget of memory: what is kept has a bound of its own, or is [`Json::counted`].
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::plain(Bytes::copy_from_slice(&self.text))
    }

    /// The same value, counted for the budget of memory for as long as anybody holds a part of it.
    #[must_use]
    pub fn counted(self) -> Self {
        Self {
            text: memory::process().counted(self.text),
            ..self
        }
    }

    /// Reads the value into a type; the type may borrow.
    ///
    /// # Errors
    /// When the value does not have the shape of `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.text)
    }

    /// The value with `edits` applied in one allocation and one pass; itself, shared, when there are none.
    pub fn splice(&self, edits: &Edits) -> Self {
        if edits.is_empty() {
            return self.clone();
        }
        Self::plain(memory::process().counted(edits.apply(&self.text).into()))
    }

    /// Wraps bytes that our own encoder has just put together.
    // INVARIANT: callers inside the crate pass text they composed of literals, serialised strings and `Json`s.
    pub(crate) const fn composed(text: Bytes) -> Self {
        Self::plain(text)
    }
}

/// Appends `text` as a JSON string. Nearly all that we write are plain names; whatever is not goes through a serialiser.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    // No early end: so the compiler can look at many bytes at once.
    let odd = text.bytes().fold(false, |odd, byte| {
        odd | (byte < b' ') | (byte == b'"') | (byte == b'\\')
    });
    if !odd {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(Json::of(text).bytes());
    }
}

/// Equal when spelled alike.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Json {}

impl std::hash::Hash for Json {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for Json {
    /// Shows the length only: payloads must not reach a log by accident.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.text.len())
    }
}
