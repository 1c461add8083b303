//! What makes the definition of an item another one, and the digest by which one is told from others.
//!
//! Guarantees: equal for equal values, however they are spelled, and for no others; pins, records and whoever else names a
//! definition by its digest mean the same one.

use aws_lc_rs::digest::{SHA256, digest as hash};

use super::methods::ListKind;
use crate::json::{Edits, Fate, Json, Node, canonical};

/// The canonical text of an item's definition. Everything in it counts but what a resource's content changes: size and time.
pub fn text(kind: ListKind, raw: &Json) -> String {
    if !matches!(kind, ListKind::Resources | ListKind::Templates) {
        return canonical(raw.root());
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
    canonical(sized.splice(&edits).root())
}

/// SHA-256 of a canonical text, in hexadecimal.
pub fn digest(text: &str) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    let hash = hash(&SHA256, text.as_bytes());
    let digits = hash.as_ref().iter();
    digits
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Whether a value is a date, or a time of one, and has no room for anything else: whatever more it said nobody would notice.
fn is_time(value: Node<'_>) -> bool {
    let text = value.as_str().unwrap_or_default();
    let in_brackets = text.contains('[');
    let is_moment = text.parse::<jiff::Timestamp>().is_ok();
    // Servers leave out the zone, and the time of day.
    !in_brackets && (is_moment || text.parse::<jiff::civil::DateTime>().is_ok())
}
