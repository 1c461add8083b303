//! Sets of lists: what a change may be of.

use std::ops::BitOr;

use crate::{call::Filter, protocol::methods::ListKind};

/// A set of lists. Resources, templates and skills are one: clients are told of all three by the same word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lists(u8);

impl Lists {
    /// None.
    pub const NONE: Self = Self(0);
    /// All.
    pub const ALL: Self = Self(0b111);

    /// The set of one.
    pub const fn of(kind: ListKind) -> Self {
        match kind {
            ListKind::Tools => Self(1),
            ListKind::Prompts => Self(2),
            ListKind::Resources | ListKind::Templates | ListKind::Skills => Self(4),
        }
    }

    /// Those that a filter asks for.
    pub fn wanted(filter: &Filter) -> Self {
        let wanted = ListKind::ALL.into_iter().filter(|kind| filter.wants(*kind));
        wanted.fold(Self::NONE, |set, kind| set | Self::of(kind))
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a list is in it.
    pub const fn has(self, kind: ListKind) -> bool {
        self.0 & Self::of(kind).0 != 0
    }

    /// What is in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Takes one out, in the order in which they are told.
    pub fn take_one(&mut self) -> Option<ListKind> {
        let kind = [ListKind::Tools, ListKind::Prompts, ListKind::Resources]
            .into_iter()
            .find(|kind| self.has(*kind))?;
        self.0 &= !Self::of(kind).0;
        Some(kind)
    }

    /// As bits, for atomics.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// From what [`Lists::bits`] gave.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }
}

impl BitOr for Lists {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
