//! Private keys in blocks of text, and tokens of three parts.
//!
//! Guarantees: a block is followed to its end, no farther than [`KEY`] bytes; what was passed is not looked at again.
//! Deliberately absent: certificates and public keys, which are no secret.

use super::{
    plausible::holds,
    scan::{Scan, is_token},
};
use crate::sanitize::Class;

/// The longest key that is followed to its end, in bytes.
const KEY: usize = 1 << 15;
/// The longest part of a token, in bytes.
const PART: usize = 1 << 13;

/// The claims of the token that documentation of JSON Web Tokens shows.
const SHOWN: [&[u8]; 2] = [
    b"eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwi",
    b"eyJsb2dnZWRJbkFzIjoiYWRtaW4iLCJpYXQiOjE0MjI3Nzk2Mzh9",
];

impl Scan<'_> {
    /// A row of dashes has come to its fifth at `at`.
    pub(super) fn row_of_dashes(&mut self, at: usize) {
        let text = self.text;
        let rest = &text[at + 1..];
        let Some(label) = rest.strip_prefix(b"BEGIN ") else {
            return;
        };
        let Some(dashes) = label.iter().take(64).position(|byte| *byte == b'-') else {
            return;
        };
        let name = label[..dashes].trim_ascii();
        if !(name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK"))
            || !label[dashes..].starts_with(b"-----")
            || self.is_taken(at)
        {
            return;
        }
        let start = at + 1 + 6 + dashes + 5;
        let room = &text[start..(start + KEY).min(text.len())];
        let end = match room.windows(9).position(|part| part == b"-----END ") {
            Some(end) => end,
            // Cut off: as far as it looks like a key.
            None => room
                .iter()
                .position(|byte| !is_body(*byte))
                .unwrap_or(room.len()),
        };
        self.key(start, &room[..end]);
    }

    /// Whether a key in the form of PuTTY begins at `at`.
    pub(super) fn putty(&mut self, at: usize) -> bool {
        let text = self.text;
        let room = &text[at..(at + KEY).min(text.len())];
        if !room.starts_with(b"PuTTY-User-Key-File-") {
            return false;
        }
        let Some(lines) = room.windows(14).position(|part| part == b"Private-Lines:") else {
            return false;
        };
        let count = room[lines + 14..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b' ')
            .count();
        if count < 2 {
            return false;
        }
        let body = lines + 14 + count;
        let end = room[body..]
            .windows(9)
            .position(|part| part == b"Private-M" || part == b"Private-H");
        let end = end.unwrap_or_else(|| {
            room[body..]
                .iter()
                .position(|byte| !is_body(*byte))
                .unwrap_or(room.len() - body)
        });
        self.key(at + body, &room[body..body + end])
    }

    /// Takes the body of a key that begins at `start`, where it is one.
    fn key(&mut self, start: usize, body: &[u8]) -> bool {
        let letters = body
            .iter()
            .filter(|byte| byte.is_ascii_alphanumeric())
            .count();
        let distinct = body
            .iter()
            .filter(|byte| byte.is_ascii_alphanumeric())
            .fold(0_u128, |all, byte| all | 1 << byte)
            .count_ones();
        if letters < 60 || distinct < 20 || letters * 2 < body.len() {
            return false;
        }
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        let from = body.iter().position(|byte| !blank(byte)).unwrap_or(0);
        let to = body
            .iter()
            .rposition(|byte| !blank(byte))
            .map_or(body.len(), |last| last + 1);
        // The escapes of a line break are no part of the key.
        let from = from + usize::from(body[from..].starts_with(b"\\n")) * 2;
        let to = to - usize::from(body[..to].ends_with(b"\\n")) * 2;
        let rule = &self.names.private_key;
        self.hit(start + from..start + to, Class::Secret, rule);
        true
    }

    /// Whether a JSON Web Token begins at `at`, which is taken.
    pub(super) fn json_web_token(&mut self, at: usize) -> bool {
        let Some((end, signed)) = three_parts(self.text, at) else {
            return false;
        };
        if SHOWN
            .iter()
            .any(|shown| holds(&self.text[at..end.min(at + 200)], shown))
        {
            // Passed over whole.
            self.pass(end);
            return true;
        }
        let class = if signed {
            Class::Secret
        } else {
            Class::WeakSecret
        };
        let rule = &self.names.token;
        self.hit(at..end, class, rule);
        true
    }

    /// Whether one begins at `at`.
    pub(super) fn is_json_web_token(&self, at: usize) -> bool {
        self.text[at..].starts_with(b"ey") && three_parts(self.text, at).is_some()
    }
}

/// Where a token of three or five parts ends, and whether its last part is a signature.
fn three_parts(text: &[u8], at: usize) -> Option<(usize, bool)> {
    let part = |from: usize| {
        text.get(from..).map_or(0, |rest| {
            rest.iter()
                .take(PART)
                .take_while(|byte| is_token(**byte) || **byte == b'/')
                .count()
        })
    };
    let head = part(at);
    let second = at + head + 1;
    if head < 16 || text.get(second - 1) != Some(&b'.') {
        return None;
    }
    let body = part(second);
    let third = second + body + 1;
    if text.get(third - 1) != Some(&b'.') {
        return None;
    }
    let last = part(third);
    let fourth = third + last + 1;
    // Five parts: encrypted, and the second may be empty.
    if last > 8 && text.get(fourth - 1) == Some(&b'.') {
        let four = part(fourth);
        let fifth = fourth + four + 1;
        if four > 8 && text.get(fifth - 1) == Some(&b'.') && part(fifth) > 8 {
            return Some((fifth + part(fifth), true));
        }
    }
    let claims = text[second..].starts_with(b"ey") || text[second..].starts_with(b"ew");
    if !claims || body < 10 || (last > 0 && last < 10) {
        return None;
    }
    Some((third + last, last > 0))
}

/// Base64 in lines, with line breaks that may still be escaped.
const fn is_body(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'+' | b'/' | b'=' | b'\n' | b'\r' | b' ' | b'\t' | b'\\' | b':' | b',' | b'-'
        )
}
