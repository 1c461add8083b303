//! What is known of one definition: its digest, and its canonical text as long as that is not too long to keep.

use crate::{
    json::{Json, canonical},
    protocol::{definition, methods::ListKind},
};

/// The longest definition that is kept to be shown, in bytes; of others the digest alone.
const KEPT: usize = 64 << 10;

/// One definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// SHA-256 of the canonical text, in hexadecimal.
    pub(super) digest: String,
    /// The canonical text, if it is not too long.
    pub(super) text: Option<Json>,
}

impl Known {
    /// A definition of an item.
    pub(super) fn of_item(kind: ListKind, raw: &Json) -> Self {
        Self::told(definition::text(kind, raw))
    }

    /// Any value.
    pub(super) fn of(value: &Json) -> Self {
        Self::told(canonical(value.root()))
    }

    fn told(text: String) -> Self {
        Self {
            digest: definition::digest(&text),
            text: (text.len() <= KEPT).then(|| Json::composed(text.into())),
        }
    }
}
