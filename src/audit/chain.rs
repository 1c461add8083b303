//! What binds records to one another: each names the hash of the one before, and a tree over many of them is signed.
//!
//! A record is one line:
//!
//! ```text
//! {"hash":"<64 hex>","record":{"event":{…},"link":{"boot":"…","node":"…","prev":"<64 hex>","seq":N}}}
//! ```
//!
//! The hash is SHA-256 over the text of `record`. The line is canonical JSON, so there is one way to write it.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};

/// The hash of a record, or of a node of the tree over records.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Hash([u8; 32]);

impl Hash {
    /// What the first record of all names as the one before.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash in 64 lower-case hexadecimal digits.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: &[u8; 64] = text.try_into().ok()?;
        let mut bytes = [0; 32];
        // One look at the end: what is no digit has bits that no digit has.
        let mut all = 0;
        for (byte, [high, low]) in bytes.iter_mut().zip(text.as_chunks::<2>().0) {
            let (high, low) = (VALUES[usize::from(*high)], VALUES[usize::from(*low)]);
            all |= high | low;
            *byte = high << 4 | low;
        }
        (all < 16).then_some(Self(bytes))
    }

    /// The hash of a record's text.
    pub fn of(record: &[u8]) -> Self {
        Self::from(digest(&SHA256, record))
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Adds its digits to `out`.
    pub fn write(&self, out: &mut String) {
        out.extend(self.digits().map(char::from));
    }

    fn digits(&self) -> [u8; 64] {
        let mut digits = [0; 64];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        digits
    }
}

impl From<aws_lc_rs::digest::Digest> for Hash {
    fn from(digest: aws_lc_rs::digest::Digest) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(64);
        self.write(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What each byte is worth as a hexadecimal digit; [`u8::MAX`] for those that are none.
const VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        values[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    values
};

const DIGITS: [u8; 16] = *b"0123456789abcdef";

/// The greatest number that a record may have: the greatest one that JSON numbers hold exactly, wherever they are read.
pub const MAX_SEQ: u64 = (1 << 53) - 1;

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainPosition {
    /// Its number: the first record of all is 1.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
}

impl ChainPosition {
    /// Before the first record of all.
    pub const START: Self = Self {
        seq: 0,
        hash: Hash::ZERO,
    };
}

/// Who writes: a name for the place and one for the life of this process, both without characters that JSON escapes.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The node's name.
    pub node: String,
    /// A random name of this start.
    pub boot: String,
}

/// Writes the line of the record that follows `last`, line feed included, at the end of `out`; returns its place.
pub fn link(
    out: &mut Vec<u8>,
    event: &[u8],
    last: &ChainPosition,
    origin: &Origin,
) -> ChainPosition {
    let seq = last.seq + 1;
    let head = out.len();
    out.extend_from_slice(HEAD);
    out.extend_from_slice(&[b'0'; 64]);
    out.extend_from_slice(AFTER_HASH);
    let record = out.len();
    let Origin { node, boot } = origin;
    for part in [
        BEFORE_EVENT,
        event,
        LINK,
        boot.as_bytes(),
        b"\",\"node\":\"",
        node.as_bytes(),
        b"\",\"prev\":\"",
        &last.hash.digits(),
        b"\",\"seq\":",
        itoa::Buffer::new().format(seq).as_bytes(),
        b"}}",
    ] {
        out.extend_from_slice(part);
    }
    let hash = Hash::of(out.get(record..).unwrap_or_default());
    let at = head + HEAD.len();
    if let Some(place) = out.get_mut(at..at + 64) {
        place.copy_from_slice(&hash.digits());
    }
    out.extend_from_slice(b"}\n");
    ChainPosition { seq, hash }
}

const HEAD: &[u8] = b"{\"hash\":\"";
const AFTER_HASH: &[u8] = b"\",\"record\":";
const BEFORE_EVENT: &[u8] = b"{\"event\":";
const LINK: &[u8] = b",\"link\":{\"boot\":\"";

/// A line taken apart.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The hash it claims.
    pub hash: Hash,
    /// What is hashed.
    pub record: &'a [u8],
    /// What happened, as an object.
    pub event: &'a [u8],
    /// The name of the process's life that wrote it.
    pub boot: &'a str,
    /// The name of the node that wrote it.
    pub node: &'a str,
    /// The hash of the one before.
    pub prev: Hash,
    /// Its number.
    pub seq: u64,
}

impl<'a> Line<'a> {
    /// Takes a line apart, without its line feed; `None` if it is not of this form. Says nothing of whether its hash is right,
    /// nor whether the event is JSON.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (hash, rest) = line.strip_prefix(HEAD)?.split_at_checked(64)?;
        let record = rest.strip_prefix(AFTER_HASH)?.strip_suffix(b"}")?;
        // From the end: the link holds no quote inside a text, so that where it begins is beyond doubt.
        let rest = record.strip_prefix(BEFORE_EVENT)?.strip_suffix(b"}}")?;
        let (rest, seq) = split_end(rest, u8::is_ascii_digit);
        if seq.first() == Some(&b'0') {
            return None;
        }
        let seq = str::from_utf8(seq).ok()?.parse().ok()?;
        let rest = rest.strip_suffix(b"\",\"seq\":")?;
        let (rest, prev) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
        let rest = rest.strip_suffix(b"\",\"prev\":\"")?;
        let (rest, node) = split_end(rest, in_name);
        let rest = rest.strip_suffix(b"\",\"node\":\"")?;
        let (rest, boot) = split_end(rest, in_name);
        let event = rest.strip_suffix(LINK)?;
        let name = |name: &'a [u8]| {
            let name = str::from_utf8(name).ok()?;
            is_name(name).then_some(name)
        };
        Some(Self {
            hash: Hash::parse(hash)?,
            record,
            event,
            boot: name(boot)?,
            node: name(node)?,
            prev: Hash::parse(prev)?,
            seq: (seq <= MAX_SEQ).then_some(seq)?,
        })
    }

    /// What of a line is hashed, if it is of the form of a line at its ends; for hashing before it is taken apart.
    pub(super) fn hashed(line: &[u8]) -> Option<&[u8]> {
        line.get(HEAD.len() + 64 + AFTER_HASH.len()..)?
            .strip_suffix(b"}")
    }

    /// Where it stands, by its own claim.
    pub const fn place(&self) -> ChainPosition {
        ChainPosition {
            seq: self.seq,
            hash: self.hash,
        }
    }
}

/// The longest end of which all bytes are of a kind, and what is before it.
fn split_end(text: &[u8], of: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    let others = text.iter().rposition(|byte| !of(byte));
    text.split_at(others.map_or(0, |at| at + 1))
}

/// Whether a text may name a node or a boot: 1 to 64 of letters, digits, `.`, `_` and `-`.
pub fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.as_bytes().iter().all(in_name)
}

const fn in_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// The root of a Merkle tree over hashes in their order, as RFC 9162 2.1 builds it, taken in one at a time.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// Roots of whole subtrees, of falling size: one for each set bit of `count`.
    whole: Vec<Hash>,
    count: u64,
}

impl Tree {
    /// Takes in the next hash.
    pub fn push(&mut self, hash: &Hash) {
        self.grow(Self::leaf(hash));
    }

    /// What a hash is in the tree, for [`Tree::grow`]: it can be made ahead, by others.
    pub(super) fn leaf(hash: &Hash) -> Hash {
        let mut text = [0; 33];
        text[1..].copy_from_slice(&hash.0);
        Hash::of(&text)
    }

    /// Takes in the next leaf.
    pub(super) fn grow(&mut self, leaf: Hash) {
        let mut node = leaf;
        let mut bits = self.count;
        while bits & 1 == 1 {
            if let Some(left) = self.whole.pop() {
                node = parent(&left, &node);
            }
            bits >>= 1;
        }
        self.whole.push(node);
        self.count += 1;
    }

    /// How many it holds.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The root over all taken in so far; [`Hash::ZERO`] over none.
    pub fn root(&self) -> Hash {
        let mut nodes = self.whole.iter().rev();
        let Some(last) = nodes.next() else {
            return Hash::ZERO;
        };
        nodes.fold(*last, |right, left| parent(left, &right))
    }
}

fn parent(left: &Hash, right: &Hash) -> Hash {
    let mut text = [1; 65];
    text[1..33].copy_from_slice(&left.0);
    text[33..].copy_from_slice(&right.0);
    Hash::of(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Origin {
        Origin {
            node: "n-1".to_owned(),
            boot: "b".to_owned(),
        }
    }

    #[test]
    fn a_line_is_taken_apart_as_it_was_put_together() {
        let mut out = Vec::new();
        let event = br#"{"name":"x\",\"link\":{\"seq\":9","v":1}"#;
        let first = link(&mut out, event, &ChainPosition::START, &origin());
        let second = link(&mut out, b"{}", &first, &origin());
        let mut lines = out.split(|byte| *byte == b'\n');
        let line = Line::parse(lines.next().unwrap()).unwrap();
        assert_eq!(
            (line.event, line.seq, line.prev),
            (&event[..], 1, Hash::ZERO)
        );
        assert_eq!(Hash::of(line.record), line.hash);
        assert_eq!(line.place(), first);
        let line = Line::parse(lines.next().unwrap()).unwrap();
        assert_eq!((line.prev, line.place()), (first.hash, second));
        assert_eq!((line.node, line.boot), ("n-1", "b"));
        assert_eq!(lines.next(), Some(&b""[..]));
    }

    #[test]
    fn other_forms_are_no_lines() {
        let mut out = Vec::new();
        link(&mut out, b"{}", &ChainPosition::START, &origin());
        let line = String::from_utf8(out).unwrap();
        let line = line.trim_end();
        assert!(Line::parse(line.as_bytes()).is_some());
        for (from, to) in [
            ("\"seq\":1", "\"seq\":01"),
            ("\"seq\":1", "\"seq\":+1"),
            ("\"seq\":1", "\"seq\":9007199254740992"),
            ("\"seq\":1", "\"seq\":18446744073709551615"),
            ("{\"hash\"", "{ \"hash\""),
            ("\"node\":\"n-1\"", "\"node\":\"n\\u0031\""),
            ("\"node\":\"n-1\"", "\"node\":\"\""),
        ] {
            let other = line.replace(from, to);
            assert_ne!(other, line);
            assert!(Line::parse(other.as_bytes()).is_none(), "{other}");
        }
    }

    /// The tree of RFC 9162 2.1.1, built from its definition.
    fn defined(hashes: &[Hash]) -> Hash {
        match hashes {
            [] => Hash::ZERO,
            [one] => {
                let mut text = vec![0];
                text.extend_from_slice(one.bytes());
                Hash::of(&text)
            }
            many => {
                let half = many.len().next_power_of_two() / 2;
                parent(&defined(&many[..half]), &defined(&many[half..]))
            }
        }
    }

    #[test]
    fn the_tree_grows_as_it_is_defined() {
        let hashes: Vec<Hash> = (0_u8..70).map(|n| Hash::of(&[n])).collect();
        let mut tree = Tree::default();
        for (n, hash) in hashes.iter().enumerate() {
            tree.push(hash);
            assert_eq!(tree.root(), defined(&hashes[..=n]), "of {}", n + 1);
        }
    }
}
