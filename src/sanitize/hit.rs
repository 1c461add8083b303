//! What a detector says.

use std::{borrow::Cow, ops::Range, sync::Arc};

use super::{Class, Survey};

/// One place in a text that a rule has matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Where, in bytes of the text that was inspected; both ends lie between characters.
    pub span: Range<usize>,
    /// Its class.
    pub class: Class,
    /// The rule's name: lower case, stable, shown to people and in the placeholder, as in `[redacted:aws_access_key]`.
    pub rule: Arc<str>,
    /// What makes it inert and leaves it readable, where the class can be neutralised.
    pub inert: Option<Cow<'static, str>>,
}

/// The most hits of one value: nothing goes on of one that has more.
pub(super) const HITS: usize = 1 << 16;

/// Looks at one text, which is decoded: escapes of JSON are gone.
pub trait Detector: Send + Sync + 'static {
    /// What it finds is of this class.
    fn class(&self) -> Class;

    /// Adds what it finds, in rising order and without overlaps. Must be linear in the length of the text, and must not
    /// allocate for a text in which nothing is found. May leave out what comes behind more than `HITS` hits, and should where
    /// a hit may be of a few bytes.
    fn inspect(&self, text: &str, hits: &mut Vec<Hit>);

    /// The same, where somebody has gone over the text already.
    fn inspect_surveyed(&self, text: &str, survey: &Survey, hits: &mut Vec<Hit>) {
        let _ = survey;
        self.inspect(text, hits);
    }

    /// Whether there may be something in text of printable ASCII, tabs and line breaks, whatever it says. Such text need not be
    /// shown to a detector that finds nothing in any.
    fn finds_in_plain(&self) -> bool {
        true
    }
}
