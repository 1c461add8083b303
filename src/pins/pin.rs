//! The pin of one definition: what was approved of it, and what is offered instead.

use std::sync::Arc;

use super::known::Known;
use crate::json::Json;

/// Sort and name of an item.
pub(super) type Key = (&'static str, Arc<str>);

/// What is known of one definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pin {
    /// What was approved; `None` for what is new.
    pub(super) approved: Option<Known>,
    /// What is offered, where that is something else.
    pub(super) seen: Option<Known>,
    /// When it was found gone, counted up; 0 while it is there.
    pub(super) gone: u64,
    /// Of something new: what is gone that it may be under another name.
    pub(super) like: Option<Arc<str>>,
    /// Of something that was there at the first contact and is held all the same: why, in words for operators.
    pub(super) held: Option<Arc<str>>,
}

/// How a definition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// What is offered was approved.
    Approved,
    /// What is offered is not what was approved.
    Changed,
    /// It was not there when its server was first seen.
    New,
    /// It is not offered any more.
    Gone,
}

impl State {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

impl Pin {
    pub(super) fn approved(known: &Known) -> Self {
        Self {
            approved: Some(known.clone()),
            ..Self::default()
        }
    }

    pub(super) fn approves(&self, digest: &str) -> bool {
        let approved = self.approved.as_ref();
        approved.is_some_and(|known| known.digest == digest)
    }

    /// The bytes of its name, and of what is noted beside it.
    pub(super) fn length(&self, name: &str) -> usize {
        let noted = |text: &Option<Arc<str>>| text.as_deref().map_or(0, str::len);
        name.len() + noted(&self.like) + noted(&self.held)
    }

    /// How it stands.
    pub const fn state(&self) -> State {
        match (&self.approved, &self.seen) {
            _ if self.gone > 0 => State::Gone,
            (None, _) => State::New,
            (Some(_), Some(_)) => State::Changed,
            (Some(_), None) => State::Approved,
        }
    }

    /// What was approved and what is offered instead, as far as their texts are kept.
    pub fn texts(&self) -> (Option<&Json>, Option<&Json>) {
        (
            self.approved.as_ref().and_then(|known| known.text.as_ref()),
            self.seen.as_ref().and_then(|known| known.text.as_ref()),
        )
    }

    /// The digest of what is offered and not approved, else of what was approved.
    pub fn digest(&self) -> &str {
        let known = self.seen.as_ref().or(self.approved.as_ref());
        known.map_or("", |known| &known.digest)
    }

    /// Of something new: what is gone that it may be under another name.
    pub fn like(&self) -> Option<&str> {
        self.like.as_deref()
    }

    /// Of something that was there at the first contact and is held all the same: why, in words for operators.
    pub fn held(&self) -> Option<&str> {
        self.held.as_deref()
    }
}
