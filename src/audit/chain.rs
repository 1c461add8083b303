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

use aws_lc_rs::digest::{Context, SHA256, digest};

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
        for (byte, pair) in bytes.iter_mut().zip(text.as_chunks::<2>().0) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
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
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        for byte in self.0 {
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
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

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its number: the first record of all is 1.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
}

impl Place {
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
pub fn link(out: &mut Vec<u8>, event: &[u8], last: &Place, origin: &Origin) -> Place {
    use std::io::Write as _;
    let seq = last.seq + 1;
    let head = out.len();
    out.extend_from_slice(HEAD);
    out.extend_from_slice(&[b'0'; 64]);
    out.extend_from_slice(AFTER_HASH);
    let record = out.len();
    out.extend_from_slice(BEFORE_EVENT);
    out.extend_from_slice(event);
    let Origin { node, boot } = origin;
    // A vector takes all it is given.
    _ = write!(
        out,
        "{LINK}\"boot\":\"{boot}\",\"node\":\"{node}\",\"prev\":\"{}\",\"seq\":{seq}}}}}",
        last.hash
    );
    let hash = Hash::of(out.get(record..).unwrap_or_default());
    let mut digits = String::with_capacity(64);
    hash.write(&mut digits);
    let at = head + HEAD.len();
    if let Some(place) = out.get_mut(at..at + 64) {
        place.copy_from_slice(digits.as_bytes());
    }
    out.extend_from_slice(b"}\n");
    Place { seq, hash }
}

const HEAD: &[u8] = b"{\"hash\":\"";
const AFTER_HASH: &[u8] = b"\",\"record\":";
const BEFORE_EVENT: &[u8] = b"{\"event\":";
const LINK: &str = ",\"link\":{";

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
        let rest = line.strip_prefix(HEAD)?;
        let (hash, rest) = rest.split_at_checked(64)?;
        let record = rest.strip_prefix(AFTER_HASH)?.strip_suffix(b"}")?;
        let inside = record.strip_prefix(BEFORE_EVENT)?;
        // The link holds no quote inside a text: from the end, its beginning is found without doubt.
        let at = memchr::memmem::rfind(inside, LINK.as_bytes())?;
        let (event, link) = inside.split_at(at);
        let link = std::str::from_utf8(link).ok()?.strip_prefix(LINK)?;
        let link = link.strip_suffix("}}")?.strip_prefix("\"boot\":\"")?;
        let (boot, link) = link.split_once("\",\"node\":\"")?;
        let (node, link) = link.split_once("\",\"prev\":\"")?;
        let (prev, seq) = link.split_once("\",\"seq\":")?;
        if [boot, node].iter().any(|name| !is_name(name)) {
            return None;
        }
        let number: u64 = seq.parse().ok()?;
        if seq.starts_with(['0', '+']) {
            return None;
        }
        Some(Self {
            hash: Hash::parse(hash)?,
            record,
            event,
            boot,
            node,
            prev: Hash::parse(prev.as_bytes())?,
            seq: number,
        })
    }

    /// Where it stands, by its own claim.
    pub const fn place(&self) -> Place {
        Place {
            seq: self.seq,
            hash: self.hash,
        }
    }
}

/// Whether a text may name a node or a boot: 1 to 64 of letters, digits, `.`, `_` and `-`.
pub fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
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
        let mut context = Context::new(&SHA256);
        context.update(&[0]);
        context.update(&hash.0);
        let mut node = Hash::from(context.finish());
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
    let mut context = Context::new(&SHA256);
    context.update(&[1]);
    context.update(&left.0);
    context.update(&right.0);
    Hash::from(context.finish())
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
        let first = link(&mut out, event, &Place::START, &origin());
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
        link(&mut out, b"{}", &Place::START, &origin());
        let line = String::from_utf8(out).unwrap();
        let line = line.trim_end();
        assert!(Line::parse(line.as_bytes()).is_some());
        for (from, to) in [
            ("\"seq\":1", "\"seq\":01"),
            ("\"seq\":1", "\"seq\":+1"),
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
