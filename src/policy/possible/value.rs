//! What may come out of a condition, and what an expression in one may come to.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::BitOr,
    sync::Arc,
};

use crate::policy::{represent::Held, shape::Shapes};

/// What may come out, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) struct Outcomes(pub(super) u8);

impl Outcomes {
    pub(in crate::policy) const TRUE: Self = Self(1);
    pub(in crate::policy) const FALSE: Self = Self(2);
    pub(in crate::policy) const ERROR: Self = Self(4);
    pub(super) const EITHER: Self = Self(3);
    pub(super) const ANY: Self = Self(7);

    pub(in crate::policy) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn of(value: bool) -> Self {
        if value { Self::TRUE } else { Self::FALSE }
    }

    const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn not(self) -> Self {
        let mut out = self.only(Self::ERROR);
        if self.has(Self::TRUE) {
            out = out | Self::FALSE;
        }
        if self.has(Self::FALSE) {
            out = out | Self::TRUE;
        }
        out
    }

    /// `self && other`, where the other is looked at only if the first is true.
    pub(super) fn and(self, other: impl FnOnce() -> Self) -> Self {
        let mut out = Self(self.0 & !Self::TRUE.0);
        if self.has(Self::TRUE) {
            out = out | other();
        }
        out
    }
}

impl BitOr for Outcomes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What an expression may come to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Bool(Outcomes),
    Long(i64),
    Text(Cow<'a, str>),
    Entity(Cow<'a, str>, &'a str),
    Principal,
    Resource,
    Context,
    /// A record of arguments: these members have a type, others deny if they are there. One inside another may itself be absent.
    Arguments(&'a Shapes, Depth),
    Set(Vec<Self>),
    /// A text that begins with one of these.
    Begins(Vec<&'a str>),
    /// A set of some of these texts, or of none.
    Some(&'a BTreeSet<Arc<str>>),
    /// The set of these texts.
    Texts(&'a BTreeSet<Arc<str>>),
    /// What was sent: a record or a set.
    Held(&'a Held<'a>),
    /// The arguments as text.
    Tags(&'a [(&'a str, Option<String>)]),
    Record(BTreeMap<&'a str, Self>),
    /// Anything, or an error.
    Open,
    Fails,
}

/// Where a record of arguments is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Top,
    Inside,
}

use Value::{Bool, Fails, Open};

impl Value<'_> {
    pub(super) const fn outcomes(&self) -> Outcomes {
        match self {
            Bool(outcomes) => *outcomes,
            Open => Outcomes::ANY,
            // Anything else where a truth value is wanted is an error, as in Cedar.
            _ => Outcomes::ERROR,
        }
    }

    /// Whether it is all there is to know.
    pub(super) fn is_known(&self) -> bool {
        match self {
            Bool(outcomes) => *outcomes == Outcomes::TRUE || *outcomes == Outcomes::FALSE,
            Self::Long(_) | Self::Text(_) | Self::Entity(..) => true,
            Self::Set(values) => values.iter().all(Value::is_known),
            Self::Record(fields) => fields.values().all(Value::is_known),
            Self::Principal
            | Self::Resource
            | Self::Context
            | Self::Arguments(..)
            | Self::Begins(_)
            | Self::Some(_)
            | Self::Texts(_)
            | Self::Held(_)
            | Self::Tags(_)
            | Open
            | Fails => false,
        }
    }

    /// Whether coming to it may be an error.
    pub(super) const fn may_fail(&self) -> bool {
        match self {
            Bool(outcomes) => outcomes.has(Outcomes::ERROR),
            Open | Fails | Self::Arguments(_, Depth::Inside) => true,
            // Sets and records with anything inside that may fail are open themselves.
            _ => false,
        }
    }

    /// Whether two known values are equal.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Set(one), Self::Set(two)) => {
                let within = |one: &[Self], two: &[Self]| {
                    one.iter()
                        .all(|value| two.iter().any(|other| value.equals(other)))
                };
                within(one, two) && within(two, one)
            }
            (Self::Record(one), Self::Record(two)) => {
                one.len() == two.len()
                    && one
                        .iter()
                        .all(|(key, value)| two.get(key).is_some_and(|other| value.equals(other)))
            }
            _ => self == other,
        }
    }
}
