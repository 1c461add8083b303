//! What is known of one definition: its digest, and its canonical text as long as that is not too long to keep.

use aws_lc_rs::digest::{SHA256, digest};

use crate::{
    json::{Edits, Fate, Json, Node, canonical},
    protocol::methods::ListKind,
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
    /// A definition of an item. Everything in it counts but what a resource's content changes: size and time.
    pub(super) fn of_item(kind: ListKind, raw: &Json) -> Self {
        if !matches!(kind, ListKind::Resources | ListKind::Templates) {
            return Self::of(raw);
        }
        let mut edits = Edits::new();
        let fate = |key: &str, _: Node<'_>| match key {
            "size" => Fate::Remove,
            _ => Fate::Keep,
        };
        edits.members(raw.root(), fate, &[]);
        let sized = raw.splice(&edits);
        let mut edits = Edits::new();
        if let Some(annotations) = sized.root().member("annotations") {
            let fate = |key: &str, value: Node<'_>| match key {
                "lastModified" if is_time(value) => Fate::Remove,
                _ => Fate::Keep,
            };
            edits.members(annotations, fate, &[]);
        }
        Self::of(&sized.splice(&edits))
    }

    /// Any value.
    pub(super) fn of(value: &Json) -> Self {
        let text = canonical(value.root());
        let hash = digest(&SHA256, text.as_bytes());
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
        Self {
            digest: hash
                .as_ref()
                .iter()
                .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
                .collect(),
            text: (text.len() <= KEPT).then(|| Json::composed(text.into())),
        }
    }
}

/// Whether a value is a date, or a time of one, and has no room for anything else: whatever more it said nobody would notice.
fn is_time(value: Node<'_>) -> bool {
    let text = value.as_str().unwrap_or_default();
    let in_brackets = text.contains('[');
    let is_moment = text.parse::<jiff::Timestamp>().is_ok();
    // Servers leave out the zone, and the time of day.
    !in_brackets && (is_moment || text.parse::<jiff::civil::DateTime>().is_ok())
}
