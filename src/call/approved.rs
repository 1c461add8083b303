//! The approval reference: that a person agreed to one call before it left (PRODUCT 9, SECURITY 8).
//!
//! A fact for the record, made where the answer is judged and carried with the call from there on, through every round of
//! input that follows. It permits nothing: the permit is policy's, and holding the call back is the stack's.

use std::fmt;

use super::Principal;
use crate::{
    json::{Edits, Json},
    protocol::meta,
};

/// That a person agreed to a call: who, when, to what, and how they were asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// The number of the question that was answered: random, used once.
    pub reference: Reference,
    /// At whose client the person was asked: whoever makes the call.
    pub by: Principal,
    /// When the answer came in, in seconds since 1970.
    pub at: u64,
    /// SHA-256 of what was agreed to: name and arguments, as [`crate::call::Call::params`] without what differs between tries.
    /// The person was shown its first eight bytes.
    pub digest: [u8; 32],
    /// How they were asked.
    pub how: Means,
}

/// Names an approval in records and results: 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reference(pub [u8; 16]);

/// How a person was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// By elicitation, at the client that made the call.
    Elicitation,
}

impl Means {
    /// The word in records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
        }
    }
}

impl Reference {
    /// A result that names it, in `_meta`.
    pub fn stamp(&self, result: &Json) -> Json {
        let reference = Json::string(&self.to_string());
        let own = [(meta::APPROVAL, meta::object_of(&[("ref", reference)]))];
        let mut edits = Edits::new();
        meta::stamp(&mut edits, result.root(), &own);
        result.splice(&edits)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
