//! C2: escape sequences and control characters.
//!
//! Guarantees: every control character but tab, line feed and carriage return is inside a hit, and with it the whole of the
//! sequence it introduces, in the seven-bit form (ESC and a letter) and in the eight-bit form (U+0080 to U+009F), up to its
//! final character or terminator. A string that is not terminated is found to the end of its line: a terminal would swallow
//! all that follows, so what follows is text that was meant to be seen. All this up to as many hits as one value may have.
//!
//! Deliberately absent: sequences that are spelled out (`\x1b[31m` in source code), and the sequences of terminals before
//! ANSI (the two bytes of a VT52 cursor address stay).
// SECURITY 7, C2; ECMA-48

mod search;
mod sequence;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{Class, Detector, Hit, Survey, hit::HITS, survey::places, work::looked};

/// The detector of class C2.
#[derive(Debug, Clone)]
pub struct Terminal {
    names: [Arc<str>; NAMES.len()],
}

/// The rules, in the order of [`Family`].
const NAMES: [&str; 7] = [
    "control_sequence",
    "system_command",
    "control_string",
    "single_shift",
    "character_set",
    "escape",
    "control_character",
];

/// A family of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// CSI: colours, the cursor, erasing.
    Csi,
    /// OSC: titles, links, the clipboard.
    Osc,
    /// DCS, SOS, PM, APC, and the title of `screen`.
    Text,
    /// SS2 and SS3, with the character they shift.
    Shift,
    /// Designations of character sets, and what else has intermediate characters.
    Set,
    /// ESC and one character, or alone.
    Escape,
    /// A control character by itself.
    Alone,
}

impl Terminal {
    /// A detector of every family; there is nothing to set.
    pub fn new() -> Self {
        Self {
            names: NAMES.map(Arc::from),
        }
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Detector for Terminal {
    fn class(&self) -> Class {
        Class::Terminal
    }

    fn finds_in_plain(&self) -> bool {
        false
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        self.inspect_surveyed(text, &Survey::of(text), hits);
    }

    fn inspect_surveyed(&self, text: &str, survey: &Survey, hits: &mut Vec<Hit>) {
        let mut at = 0;
        let controls = survey.controls.iter();
        for start in controls.flat_map(|found| places(found.at, found.marks)) {
            // What belongs to the sequence before is gone with it.
            if start < at {
                continue;
            }
            if hits.len() > HITS {
                break;
            }
            let (family, end) = sequence::read(text, start);
            looked(end - start);
            hits.push(Hit {
                span: start..end,
                class: Class::Terminal,
                rule: Arc::clone(&self.names[family as usize]),
                inert: None,
            });
            at = end;
        }
    }
}

/// Tells what stands between control characters, and between the sequences of colours and cursors that some of them introduce.
pub(super) fn between(text: &str, mut each: impl FnMut(&str)) {
    let mut from = 0;
    while let Some(at) = search::next(text.as_bytes(), from) {
        each(&text[from..at]);
        from = match sequence::read(text, at) {
            (Family::Csi, end) => end,
            // What else a terminal takes along need not be what was split.
            _ => at + text[at..].chars().next().map_or(1, char::len_utf8),
        };
    }
    each(&text[from..]);
}
