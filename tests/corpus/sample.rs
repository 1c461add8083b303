//! A text of the corpus, and what must be found in it.
//!
//! A positive holds one or more places that must be found; a negative holds none and looks as if it did. Every class has a
//! file of its own beside this one with `positives()` and `negatives()`. Deliberately absent: how they are counted.

use std::{borrow::Cow, ops::Range};

use usher::sanitize::Class;

/// One text that is inspected by the detectors of one class.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// Only hits of this class count.
    pub(crate) class: Class,
    /// What kind of thing it is, within its class: a provider's rule, a way of hiding, a language. Recall is told per family.
    pub(crate) family: Cow<'static, str>,
    /// The text, decoded.
    pub(crate) text: String,
    /// The places that must be found, in bytes; none for a negative.
    pub(crate) expected: Vec<Range<usize>>,
}

impl Sample {
    /// A text in which `found` stands between `before` and `after` and must be found.
    pub(crate) fn positive(
        class: Class,
        family: impl Into<Cow<'static, str>>,
        before: &str,
        found: &str,
        after: &str,
    ) -> Self {
        let start = before.len();
        Self {
            class,
            family: family.into(),
            text: [before, found, after].concat(),
            expected: std::iter::once(start..start + found.len()).collect(),
        }
    }

    /// A text in which nothing of that class may be found.
    pub(crate) fn negative(
        class: Class,
        family: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            class,
            family: family.into(),
            text: text.into(),
            expected: Vec::new(),
        }
    }
}
