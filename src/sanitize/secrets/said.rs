//! What the words of a name say: that it is kept to oneself, or harmless, or an id, or whose it is.
//!
//! Guarantees: linear in the piece that is read. Deliberately absent: where a name stands (`names.rs`), and what a value is
//! then (`context.rs`).

use std::ops::Range;

use super::rules::{Rules, Word};
use crate::sanitize::work::looked;

/// What the words in a piece of text say.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Whether one is kept to oneself.
    pub(super) secret: bool,
    /// Whether they name what is not.
    pub(super) harmless: bool,
    /// Whether they are the name of an id.
    pub(super) id: bool,
    /// Numbers of words that name a vendor, the last first.
    pub(super) vendors: [Option<u16>; 4],
}

impl Rules {
    /// What the words in a piece of text say, where they stand as words.
    pub(super) fn said(&self, text: &[u8], range: Range<usize>) -> Said {
        let mut said = Said::default();
        let piece = &text[range];
        looked(piece.len());
        for found in self.words.find_overlapping_iter(piece) {
            let at = found.pattern().as_usize();
            let (start, end) = (found.start(), found.end());
            match &self.meanings[at] {
                Word::Harmless => {
                    said.harmless |= begins(piece, start)
                        && (end - start > 4
                            || !piece[end - 1].is_ascii_alphabetic()
                            || ends(piece, end))
                        && !is_modifier(&piece[end..])
                        && !is_of_host(&piece[end..]);
                }
                Word::Id => said.harmless |= begins(piece, start) && is_last(&piece[end..]),
                Word::Secret => {
                    said.secret |= end - start > 5 || (begins(piece, start) && ends(piece, end))
                }
                Word::Vendor(..) => {
                    if end - start > 7
                        || (begins(piece, start)
                            && (end - start > 6 || ends(piece, end) || goes_on(piece, end)))
                    {
                        said.vendors.rotate_right(1);
                        said.vendors[0] = Some(at as u16);
                    }
                }
            }
        }
        said
    }
}

/// Whether a word before this is the last of a name.
fn is_last(rest: &[u8]) -> bool {
    rest.iter()
        .all(|byte| matches!(byte, b'"' | b'\'' | b' ' | b'\t'))
}

/// Whether a word before this is part of the name of a host: `registry.example.org`.
fn is_of_host(rest: &[u8]) -> bool {
    [
        &b".com"[..],
        b".org",
        b".net",
        b".io",
        b".dev",
        b".edu",
        b".internal",
    ]
    .iter()
    .any(|end| rest.starts_with(end) && !rest.get(end.len()).is_some_and(u8::is_ascii_alphanumeric))
}

/// Whether a word before this says who may use what is declared: `public const string Token`.
fn is_modifier(rest: &[u8]) -> bool {
    rest.strip_prefix(b" ").is_some_and(|rest| {
        [
            &b"const "[..],
            b"static ",
            b"readonly ",
            b"final ",
            b"string ",
            b"String ",
            b"let ",
            b"var ",
            b"val ",
        ]
        .iter()
        .any(|word| rest.starts_with(word))
    })
}

/// Whether a word begins here: `apiToken`, `APIToken`, `API_TOKEN`, `my-token`.
fn begins(piece: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|at| piece[at]) else {
        return true;
    };
    let lower_next = piece.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    !before.is_ascii_alphabetic()
        || (piece[at].is_ascii_uppercase() && (before.is_ascii_lowercase() || lower_next))
}

fn ends(piece: &[u8], at: usize) -> bool {
    let Some(&after) = piece.get(at) else {
        return true;
    };
    let letter = |at: usize| piece.get(at).is_some_and(u8::is_ascii_alphabetic);
    let plural = after == b's' && !letter(at + 1);
    let next = after.is_ascii_uppercase()
        && (piece[at - 1].is_ascii_lowercase()
            || piece.get(at + 1).is_some_and(u8::is_ascii_lowercase));
    !after.is_ascii_alphabetic() || plural || next
}

/// Whether a name goes on with what is kept to oneself, in one word: `shodankey`.
fn goes_on(piece: &[u8], at: usize) -> bool {
    [&b"api"[..], b"key", b"token", b"secret", b"auth", b"access"]
        .iter()
        .any(|word| {
            piece
                .get(at..at + word.len())
                .is_some_and(|next| next.eq_ignore_ascii_case(word))
        })
}
