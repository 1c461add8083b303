//! How far a sequence goes, by its first characters.

use super::{Family, search};

const ESC: u8 = 0x1B;

/// The family and the end of what the control character at `start` introduces.
pub(super) fn read(text: &str, start: usize) -> (Family, usize) {
    let bytes = text.as_bytes();
    let (introducer, body) = match (bytes.get(start), bytes.get(start + 1)) {
        // The eight-bit forms are the seven-bit forms less 0x40.
        (Some(0xC2), Some(eight)) => (eight - 0x40, start + 2),
        (Some(&ESC), Some(seven)) => (*seven, start + 2),
        _ => return (alone(bytes, start), start + 1),
    };
    match introducer {
        b'[' => (Family::Csi, csi(bytes, body)),
        b']' => (Family::Osc, string(bytes, body, Terminator::OrBell)),
        b'P' | b'X' | b'^' | b'_' => (Family::Text, string(bytes, body, Terminator::Strict)),
        // `screen` takes a title so; the eight-bit range has no such letter.
        b'k' => (Family::Text, string(bytes, body, Terminator::Strict)),
        b'N' | b'O' => (
            Family::Shift,
            body + usize::from(matches!(bytes.get(body), Some(0x21..=0x7E))),
        ),
        0x20..=0x2F if bytes[start] == ESC => designation(bytes, start + 1),
        0x30..=0x7E if bytes[start] == ESC => (Family::Escape, body),
        _ if bytes[start] == ESC => (Family::Escape, start + 1),
        _ => (Family::Alone, body),
    }
}

fn alone(bytes: &[u8], start: usize) -> Family {
    match bytes.get(start) {
        Some(&ESC) => Family::Escape,
        _ => Family::Alone,
    }
}

/// Parameters, intermediates and the final character.
fn csi(bytes: &[u8], mut at: usize) -> usize {
    // The Linux console's function keys: a second bracket and a letter.
    if bytes.get(at) == Some(&b'[') {
        return at + 1 + usize::from(matches!(bytes.get(at + 1), Some(0x40..=0x7E)));
    }
    while matches!(bytes.get(at), Some(0x30..=0x3F)) {
        at += 1;
    }
    while matches!(bytes.get(at), Some(0x20..=0x2F)) {
        at += 1;
    }
    at + usize::from(matches!(bytes.get(at), Some(0x40..=0x7E)))
}

/// Intermediate characters and a final one.
fn designation(bytes: &[u8], mut at: usize) -> (Family, usize) {
    while matches!(bytes.get(at), Some(0x20..=0x2F)) {
        at += 1;
    }
    let last = usize::from(matches!(bytes.get(at), Some(0x30..=0x7E)));
    (Family::Set, at + last)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Terminator {
    Strict,
    OrBell,
}

/// To the end of the terminator, or to what breaks the string off, or to the end of the line.
fn string(bytes: &[u8], body: usize, terminator: Terminator) -> usize {
    let mut at = body;
    // What comes before the next sequence is read here and not again, however many strings are opened and never closed.
    loop {
        let Some(next) = search::next(bytes, at) else {
            return unterminated(bytes, body, bytes.len(), terminator);
        };
        match (bytes.get(next), bytes.get(next + 1)) {
            (Some(0x07), _) if terminator == Terminator::OrBell => return next + 1,
            (Some(&ESC), Some(b'\\')) | (Some(0xC2), Some(0x9C)) => return next + 2,
            // Cancel and substitute end it as well.
            (Some(0x18 | 0x1A), _) => return next + 1,
            (Some(&ESC | 0xC2), _) => return unterminated(bytes, body, next, terminator),
            _ => at = next + 1,
        }
    }
}

/// The end of the line, or `end`, where the next sequence or nothing begins.
fn unterminated(bytes: &[u8], body: usize, end: usize, terminator: Terminator) -> usize {
    let rest = bytes.get(body..end).unwrap_or_default();
    // The Linux console sets a colour of its palette with seven digits and no terminator.
    if terminator == Terminator::OrBell
        && rest.first() == Some(&b'P')
        && let Some(digits) = rest.get(1..8)
        && digits.iter().all(u8::is_ascii_hexdigit)
    {
        return body + 8;
    }
    memchr::memchr2(b'\n', b'\r', rest).map_or(end, |line| body + line)
}
