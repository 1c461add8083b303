//! Private keys in JSON (RFC 7517), by the members of one object.
//!
//! Guarantees: looks no farther than [`OBJECT`] bytes around a member, and what kind of key an object is of is asked once for
//! all its members. Deliberately absent: public members such as `n`, `x` and `kid`, and of one with objects
//! in objects the members beyond these.

use std::ops::Range;

use memchr::memmem;

use super::{bytes::is_token, plausible::plausible, scan::Scan};
use crate::sanitize::{Class, work::looked};

/// How far before a member and behind it its object is looked at, in bytes: a key of RSA with 4096 bits fits.
const OBJECT: usize = 1 << 12;
/// The most objects within one that are passed over on either side.
const WITHIN: usize = 4;
/// The most blanks on either side of a colon that are passed over.
const BLANKS: usize = 16;

/// Of what kind a key is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    /// Both sides have it.
    Symmetric,
    Rsa,
    Curve,
    /// It is no key.
    #[default]
    None,
}

/// The object that was looked at last.
#[derive(Default)]
pub(super) struct Object {
    /// What stands between two braces of it: behind others `at` may be in another.
    span: Range<usize>,
    kind: Kind,
}

impl Scan<'_> {
    /// Whether a value in quotes is a private member, such as `"d": "..."`.
    pub(super) fn json_web_key(&mut self, value: &Range<usize>) -> bool {
        let text = self.text;
        let Some((member, quoted)) = member(&text[..value.start]) else {
            return false;
        };
        // The shortest are of 128 bits, and others of 256.
        let (kinds, least): (&[Kind], usize) = match member {
            b"k" => (&[Kind::Symmetric], 22),
            b"d" => (&[Kind::Rsa, Kind::Curve], 40),
            b"p" | b"q" | b"dp" | b"dq" | b"qi" => (&[Kind::Rsa], 40),
            _ => return false,
        };
        let bytes = &text[value.clone()];
        looked(bytes.len());
        if !quoted
            || !matches!(text.get(value.end), Some(b'"' | b'\'' | b'\\'))
            || bytes.len() < least
            || !bytes.iter().all(|byte| is_token(*byte))
            || !plausible(bytes)
            || !kinds.contains(&self.kind_of_key(value.start))
        {
            return false;
        }
        let rule = &self.names.private_key;
        self.hit(value.clone(), Class::Secret, rule);
        true
    }

    /// Of what kind the key is that the object around `at` holds.
    fn kind_of_key(&mut self, at: usize) -> Kind {
        if !self.object.span.contains(&at) {
            let text = self.text;
            let from = at.saturating_sub(OBJECT);
            let before = &text[from..at];
            let inward = memchr::memrchr2_iter(b'{', b'}', before).map(|at| (at, before[at]));
            let start = outward(inward, b'{').map(|brace| brace.map_or(from, |at| from + at + 1));
            let rest = &text[at..(at + OBJECT).min(text.len())];
            let onward = memchr::memchr2_iter(b'{', b'}', rest).map(|at| (at, rest[at]));
            let end = outward(onward, b'}').map(|brace| at + brace.unwrap_or(rest.len()));
            looked(end[1] - start[1]);
            self.object = Object {
                span: start[0]..end[0],
                kind: kind(&text[start[1]..end[1]]),
            };
        }
        self.object.kind
    }
}

/// The nearest of these braces, and the one that leads out of the object; at most [`WITHIN`] plain objects within it are passed
/// over, so that not much is looked at more often than once.
fn outward(mut braces: impl Iterator<Item = (usize, u8)>, out: u8) -> [Option<usize>; 2] {
    let mut near = None;
    for _ in 0..=WITHIN {
        let Some((at, brace)) = braces.next() else {
            return [near, None];
        };
        near = near.or(Some(at));
        // What goes deeper ends it, too.
        if brace == out || braces.next().is_some_and(|(_, next)| next != out) {
            return [near, Some(at)];
        }
    }
    [near, near]
}

/// The last letters of the name that the value behind `before` is assigned to, which ends with its quote, and whether they are
/// all of it.
fn member(before: &[u8]) -> Option<(&[u8], bool)> {
    let blank = |text: &[u8]| {
        let blanks = text.iter().rev().take(BLANKS);
        let blanks = blanks.take_while(|byte| byte.is_ascii_whitespace()).count();
        text.len() - blanks
    };
    let quote = |text: &[u8]| matches!(text.last(), Some(b'"' | b'\''));
    let escape = |text: &[u8]| text.len() - usize::from(text.ends_with(b"\\"));
    let before = &before[..before.len().checked_sub(1)?];
    let before = &before[..escape(before)];
    let before = before[..blank(before)].strip_suffix(b":")?;
    let before = &before[..blank(before)];
    if !quote(before) {
        return None;
    }
    let before = &before[..before.len() - 1];
    let before = &before[..escape(before)];
    let letters = before.iter().rev().take(3);
    let letters = letters.take_while(|byte| byte.is_ascii_lowercase()).count();
    let (before, member) = before.split_at(before.len() - letters);
    Some((member, quote(before)))
}

/// What `"kty"` says in what stands between two braces. Quotes may be escaped.
fn kind(members: &[u8]) -> Kind {
    let quote = |byte: &u8| matches!(byte, b'"' | b'\'');
    let between = |byte: &u8| matches!(byte, b'"' | b'\'' | b'\\' | b':' | b' ' | b'\t');
    let said = memmem::find_iter(members, b"kty").find_map(|at| {
        let rest = &members[at + 3..];
        let opened = members[..at].last().is_some_and(quote);
        let gap = rest.iter().take(12).take_while(|byte| between(byte));
        let (gap, value) = rest.split_at(gap.count());
        (opened && gap.contains(&b':') && gap.iter().any(quote)).then_some(value)
    });
    let said = said.unwrap_or_default();
    let word = said.iter().take(4);
    let word = word.take_while(|byte| byte.is_ascii_alphabetic()).count();
    match &said[..word] {
        b"oct" => Kind::Symmetric,
        b"RSA" => Kind::Rsa,
        b"EC" | b"OKP" => Kind::Curve,
        _ => Kind::None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, strong};

    #[test]
    fn private_members_of_a_key_are_told_in_any_order_and_public_ones_are_not() {
        let value = format!("{}{}", body(), &body()[5..12]);
        let value = value.as_str();
        let public = "AQ1w".repeat(11).replace("w", "_-Zk3");
        for key in [
            format!("{{\"kty\":\"oct\",\"alg\":\"HS256\",\"k\":\"{value}\"}}"),
            format!("{{ \"k\" : \"{value}\",\n  \"kid\" : \"a\", \"kty\" : \"oct\" }}"),
            format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"{value}\",\"x\":\"{public}\"}}"),
            format!("{{\"d\":\"{value}\",\"crv\":\"P-256\",\"x\":\"{public}\",\"kty\":\"EC\"}}"),
            format!("{{'kty': 'RSA', 'n': '{public}', 'e': 'AQAB', 'dq': '{value}'}}"),
            format!("{{\"qi\":\"{value}\",\"kty\":\"RSA\"}}"),
            format!("{{\"kty\":\"oct\",\"ext\":{{\"a\":1}},\"b\":{{}},\"k\":\"{value}\"}}"),
            format!("{{\"k\":\"{value}\",\"ext\":{{\"a\":1}},\"kty\":\"oct\"}}"),
            format!("\"{{\\\"kty\\\":\\\"EC\\\",\\\"d\\\":\\\"{value}\\\"}}\""),
            format!(
                "{{\"keys\":[{{\"kty\":\"EC\",\"x\":\"{public}\"}},{{\"kty\":\"oct\",\"k\":\"{value}\"}}]}}"
            ),
        ] {
            assert_eq!(strong(&key), [value], "{key}");
        }
        for key in [
            format!("{{\"kty\":\"RSA\",\"kid\":\"{value}\",\"n\":\"{value}\",\"e\":\"AQAB\"}}"),
            format!("{{\"kty\":\"EC\",\"x\":\"{value}\",\"y\":\"{value}\"}}"),
            format!("{{\"kty\":\"EC\",\"k\":\"{value}\"}}"),
            format!("{{\"kty\":\"oct\"}},{{\"k\":\"{value}\"}}"),
            format!("{{\"kty\":\"oct\",\"k\":\"{}\"}}", &value[..16]),
            format!("{{\"k\":\"{value}\",\"type\":\"oct\"}}"),
        ] {
            assert_eq!(strong(&key), [""; 0], "{key}");
        }
    }

    #[test]
    fn every_private_member_of_a_key_of_rsa_is_told() {
        let long = body().repeat(9);
        let members = ["d", "p", "q", "dp", "dq", "qi"];
        let value = |at: usize| &long[at..at + 171];
        let pairs = members.iter().enumerate();
        let pairs: Vec<_> = pairs
            .map(|(at, name)| format!("\"{name}\": \"{}\"", value(at)))
            .collect();
        let n = long.repeat(2);
        let key = format!(
            "{{\n \"kty\": \"RSA\",\n \"n\": \"{n}\",\n {}\n}}",
            pairs.join(",\n ")
        );
        let all: Vec<_> = (0..members.len()).map(value).collect();
        assert_eq!(strong(&key), all);
    }
}
