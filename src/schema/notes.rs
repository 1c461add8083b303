//! What a check remembers on its way: where it is, what was looked at, what is known so far, what is about one member.

use std::borrow::Cow;

use super::rule::Id;
use crate::json::{Kind, Node};

/// What is known of a value and a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Three {
    Yes,
    No,
    Unknown,
}

impl Three {
    const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            (Self::No | Self::Unknown, Self::No | Self::Unknown) => Self::Unknown,
        }
    }

    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            (Self::Yes | Self::Unknown, Self::Yes | Self::Unknown) => Self::Unknown,
        }
    }
}

/// One step of the way into a value.
pub(super) enum Step<'a> {
    /// Into a member that the schema names.
    Named(Cow<'a, str>),
    /// Into one whose name is the value's alone.
    Unnamed(Cow<'a, str>),
    Element(usize),
}

/// Which members or elements of one value some rule has looked at. Unknown are those that a rule which cannot be judged may
/// have looked at.
pub(super) struct Seen(Vec<Three>);

impl Seen {
    /// Nothing of this value yet. It is walked along.
    pub(super) fn of(value: Node<'_>) -> Self {
        kept(value.raw_bytes().len());
        Self(match value.kind() {
            Kind::Object => vec![Three::No; value.fields().count()],
            Kind::Array => vec![Three::No; value.elements().count()],
            Kind::String | Kind::Number | Kind::Bool | Kind::Null => Vec::new(),
        })
    }

    /// Nothing yet of the value that another is of.
    pub(super) fn beside(other: &Self) -> Self {
        kept(other.0.len());
        Self(vec![Three::No; other.0.len()])
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn has(&self, at: usize) -> Three {
        self.0.get(at).copied().unwrap_or(Three::No)
    }

    pub(super) fn mark(&mut self, at: usize, known: Three) {
        if let Some(seen) = self.0.get_mut(at) {
            *seen = seen.or(known);
        }
    }

    /// Whatever was not looked at may have been.
    pub(super) fn doubt(&mut self) {
        kept(self.0.len());
        for seen in &mut self.0 {
            *seen = seen.or(Three::Unknown);
        }
    }

    /// Adds what a rule has looked at that fits the value, as far as is known.
    pub(super) fn merge(&mut self, other: &Self, fits: Three) {
        kept(other.0.len());
        for (seen, other) in self.0.iter_mut().zip(&other.0) {
            *seen = seen.or(other.and(fits));
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Bytes that were walked along, and marks that were made or merged.
    static KEPT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Tests count what keeping marks takes, beside what steps say.
#[cfg(test)]
pub(super) fn kept(much: usize) {
    KEPT.with(|all| all.set(all.get() + much));
}

/// Otherwise nobody counts it.
#[cfg(not(test))]
#[inline(always)]
pub(super) const fn kept(_: usize) {}

/// What was counted since the last time.
#[cfg(test)]
pub(super) fn take_kept() -> usize {
    KEPT.take()
}

/// Keeps what all parts say: one that is broken breaks all.
pub(super) struct Sum(pub(super) Three);

impl Sum {
    pub(super) fn add(&mut self, part: Three) {
        match part {
            Three::Yes => {}
            Three::No => self.0 = Three::No,
            Three::Unknown if self.0 == Three::Yes => self.0 = Three::Unknown,
            Three::Unknown => {}
        }
    }
}

/// The rules about one member.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) named: Option<Id>,
    pub(super) additional: Option<Id>,
    pub(super) patterned: Vec<Id>,
    /// Whether a pattern that cannot be judged may be about it.
    pub(super) unsure: bool,
}

impl Rules {
    /// Whether there is one.
    pub(super) const fn any(&self) -> Three {
        if self.named.is_some() || self.additional.is_some() || !self.patterned.is_empty() {
            Three::Yes
        } else if self.unsure {
            Three::Unknown
        } else {
            Three::No
        }
    }
}

/// Which of the required members were met: the first 64 in a word, others are looked up.
#[derive(Default)]
pub(super) struct Present(u64);

impl Present {
    pub(super) fn add(&mut self, at: usize) {
        if at < 64 {
            self.0 |= 1 << at;
        }
    }

    pub(super) fn has(&self, at: usize, look: impl FnOnce() -> bool) -> bool {
        if at < 64 {
            self.0 & (1 << at) != 0
        } else {
            look()
        }
    }
}
