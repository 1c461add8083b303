//! Where the name of a value stands: before an assignment, a cell or an element.
//!
//! Guarantees: looks back no farther than [`NAME`] bytes from an assignment. Deliberately absent: what the words of a name say
//! (`said.rs`, `service.rs`).

use std::ops::Range;

use wide::u8x16;

use super::{bytes::is_token, plausible::holds};
use crate::sanitize::survey::{BLOCK, within};

/// How far before a value its own name may begin, in bytes.
const NAME: usize = 80;

/// An assignment in front of a value.
pub(super) struct Operator {
    /// Where the name before it ends.
    pub(super) at: usize,
    /// Nothing but space and a word that announces a value.
    pub(super) bare: bool,
}

pub(super) fn operator(text: &[u8], value: usize) -> Option<Operator> {
    let mut at = value;
    let (mut seen, mut spaces) = (false, 0);
    while at > 0 && value - at < 40 {
        match text[at - 1] {
            b'=' | b':' | b'>' | b'|' | b',' | b'(' => seen = true,
            b' ' | b'\t' | b'\n' | b'\r' => spaces += 1,
            b'"' | b'\'' | b'`' | b'[' | b'\\' | b'?' | b'@' if value - at < 16 => {}
            _ => break,
        }
        at -= 1;
    }
    if at == 0 {
        return None;
    }
    if seen {
        return Some(Operator { at, bare: false });
    }
    let parted = spaces > 2 || text[at..value].contains(&b'\t');
    if parted && is_in_column(text, at, value) {
        return Some(Operator { at, bare: false });
    }
    if spaces == 0 || spaces > 2 {
        return None;
    }
    let word = text[at.saturating_sub(40)..at]
        .iter()
        .rev()
        .take_while(|byte| is_token(**byte))
        .count();
    let word = &text[at - word..at];
    // Most words are none of these.
    let last = word.last().map_or(b' ', |last| last | 0x20);
    let may = b"rncystodl".contains(&last);
    let announces = word.starts_with(b"-")
        // `@api_token "..."`
        || text[..at - word.len()].ends_with(b"@") && matches!(text[value - 1], b'"' | b'\'')
        || may
            && (is_environment(word) || [
                &b"bearer"[..],
                b"token",
                b"basic",
                b"apikey",
                b"key",
                b"is",
                b"secret",
                b"to",
                b"password",
                b"credential",
                b"deepl-auth-key",
            ]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known)));
    announces.then_some(Operator { at, bare: true })
}

/// Whether the name of a secret ends at `at` and nothing but blanks stands between it and the value, as in a table of two columns:
/// `acme_api_key    0af...`.
fn is_in_column(text: &[u8], at: usize, value: usize) -> bool {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let name = &text[at.saturating_sub(7)..at];
    let ends = |end: &&[u8]| {
        let (parted, word) = (end[0], &end[1..]);
        let rest = name.len().checked_sub(end.len());
        rest.is_some_and(|rest| {
            let joint = name[rest];
            let same = joint == parted || joint == b'-';
            same && name[rest + 1..].eq_ignore_ascii_case(word)
        })
    };
    text[at..value].iter().all(blank) && [&b"_key"[..], b"_token", b"_secret"].iter().any(ends)
}

/// Whether this is the name of a secret of an environment, behind which its value may stand: `ENV ACME_API_KEY 0af...`.
fn is_environment(word: &[u8]) -> bool {
    [&b"_KEY"[..], b"_TOKEN", b"_SECRET", b"_PAT"]
        .iter()
        .any(|end| word.ends_with(end))
        && !word.iter().any(u8::is_ascii_lowercase)
}

/// One bit for each letter of a block.
pub(super) fn letters(block: &[u8; BLOCK]) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    parts.iter().rev().fold(0, |bits, part| {
        let moved = (u8x16::new(*part) | u8x16::splat(0x20)) - u8x16::splat(b'a');
        let letter = moved.min(u8x16::splat(25)).simd_eq(moved);
        bits << 16 | u64::from(letter.to_bitmask())
    })
}

/// So many of the lowest bits.
pub(super) const fn low(count: usize) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// What no name goes beyond.
const STOPS: [u8; 10] = *b"\n;{}<(,&?#";

/// Whether what goes by the name before `end` is short, a number, and no word: as in the columns of a table.
pub(super) fn is_number(text: &[u8], end: usize) -> bool {
    let Some(last) = text[..end].last_chunk::<16>() else {
        return false;
    };
    let bytes = u8x16::new(*last);
    let stops = stops(bytes).to_bitmask();
    // Behind the last of them.
    let name = u32::MAX
        .checked_shr(stops.leading_zeros())
        .map_or(0, |to| !to);
    let digits = within(bytes, b'0', 10).to_bitmask();
    let letters = within(bytes | u8x16::splat(0x20), b'a', 26).to_bitmask();
    digits & name != 0 && letters & name == 0
}

fn stops(bytes: u8x16) -> u8x16 {
    STOPS.iter().fold(u8x16::splat(0), |found, stop| {
        found | bytes.simd_eq(u8x16::splat(*stop))
    })
}

/// The last byte of a piece that no name goes beyond.
fn last_stop(piece: &[u8]) -> Option<usize> {
    let (rest, parts) = piece.as_rchunks::<16>();
    for (nth, part) in parts.iter().enumerate().rev() {
        let found = stops(u8x16::new(*part)).to_bitmask();
        if found != 0 {
            return Some(rest.len() + nth * 16 + found.ilog2() as usize);
        }
    }
    rest.iter().rposition(|byte| STOPS.contains(byte))
}

/// Where the name of a property ends, before what may be done with it: `string ApiKey { get; set; } =`.
fn before_accessors(text: &[u8], end: usize) -> usize {
    let head = &text[end.saturating_sub(ACCESSORS)..end];
    let known: [&[u8]; 4] = [b"", b"get", b"set", b"init"];
    let accessor =
        |part: &[u8]| known.contains(&part.rsplit(|byte| *byte == b' ').next().unwrap_or(part));
    let inside = head.trim_ascii_end().strip_suffix(b"}");
    let open = inside.and_then(|inside| {
        let open = memchr::memrchr(b'{', inside)?;
        let mut parts = inside[open + 1..].split(|byte| *byte == b';');
        parts
            .all(|part| accessor(part.trim_ascii()))
            .then_some(open)
    });
    open.map_or(end, |open| end - head.len() + open)
}

/// The name that stands before an assignment.
pub(super) fn name_before(text: &[u8], end: usize) -> Range<usize> {
    let end = before_accessors(text, end);
    let from = end.saturating_sub(NAME);
    let start = last_stop(&text[from..end]).map_or(from, |at| from + at + 1);
    let start = start + assigned_before(&text[start..end]);
    let name = &text[start..end];
    if start > from
        && text[start - 1] == b'<'
        // `<username>a</username><password>`, `<acmeApiKey>`, `<string name="api_key">`: it says enough by itself.
        && !says_enough(name)
        && !ATTRIBUTES.iter().any(|attribute| holds(name, attribute))
        && let Some(cell) = cell_before(text, start - 1)
    {
        return cell;
    }
    let (start, name) = match line_escaped(name) {
        Some(from) => (start + from, &name[from..]),
        None => (start, name),
    };
    let nothing = name.iter().all(|byte| !byte.is_ascii_alphanumeric());
    let word = name.trim_ascii().trim_suffix_of(b"\"' ]");
    if nothing
        || [
            &b"value"[..],
            b"val",
            b"default",
            b"content",
            b"str",
            b"str =",
        ]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
    {
        return end.saturating_sub(NAME)..end;
    }
    start..end
}

/// Where a name begins behind a line that ends as strings have it, within a string: `\n`.
fn line_escaped(name: &[u8]) -> Option<usize> {
    let mut backs = memchr::memrchr_iter(b'\\', name);
    // Behind it may be the escape of what sets in, but no part of a path.
    let at = backs.find(|at| name.get(at + 1) != Some(&b't'))?;
    matches!(name.get(at + 1), Some(b'n' | b'r')).then_some(at + 2)
}

/// How much of a piece before an assignment is an assignment of its own: `VERSION=7 ACME_API_KEY`; or an address, before the header
/// that goes with a request: `api-version=7" -H "api-key`.
fn assigned_before(piece: &[u8]) -> usize {
    let variable = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let Some(space) = memchr::memrchr(b' ', piece) else {
        // `environment=ACME_API_KEY`
        let name = memchr::memrchr(b'=', piece).map_or(0, |at| at + 1);
        let last = &piece[name..];
        let named = last.contains(&b'_') && last.iter().all(variable);
        return if named { name } else { 0 };
    };
    let (before, name) = (&piece[..space], &piece[space + 1..]);
    let word = before.rsplit(|byte| *byte == b' ').next().unwrap_or(before);
    let assigned = |word: &[u8]| {
        let mut pairs = word.windows(2);
        pairs.any(|two| two[0] == b'=' && two[1].is_ascii_alphanumeric())
    };
    if before.ends_with(b" -H") || before.ends_with(b" --header") {
        return if assigned(before) { space + 1 } else { 0 };
    }
    if assigned(word) && !name.is_empty() && name.iter().all(variable) {
        space + 1
    } else {
        0
    }
}

/// What there may be of a property between its name and an assignment, in bytes.
const ACCESSORS: usize = 40;

/// What of an element says its name.
const ATTRIBUTES: [&[u8]; 2] = [b" name=", b" key="];

/// Whether the name of an element says of what its value is the secret: a password, or more than the word for one.
fn says_enough(name: &[u8]) -> bool {
    let telling = [&b"key"[..], b"token", b"secret"];
    holds(name, b"passw")
        || telling.iter().any(|word| {
            let before = name.len().checked_sub(word.len());
            before.is_some_and(|before| before > SHORT && name[before..].eq_ignore_ascii_case(word))
        })
}

/// The most letters before the word for a secret in the name of an element that are the name of nobody: `apiKey`.
const SHORT: usize = 6;

/// What stands in the element before the one that begins at `tag`: `<td>Name</td><td>`, `<key>Name</key> <string>`.
fn cell_before(text: &[u8], tag: usize) -> Option<Range<usize>> {
    let from = tag.saturating_sub(NAME);
    let piece = text[from..tag].trim_ascii_end();
    let closed = piece.strip_suffix(b">")?;
    let open = memchr::memrchr(b'<', closed)?;
    let start = memchr::memrchr(b'>', &piece[..open])? + 1;
    let named = closed[open..].starts_with(b"</") && open - start > 2;
    named.then_some(from + start..from + open)
}

trait TrimSuffix {
    fn trim_suffix_of(&self, set: &[u8]) -> &[u8];
}

impl TrimSuffix for [u8] {
    fn trim_suffix_of(&self, set: &[u8]) -> &[u8] {
        let start = self
            .iter()
            .position(|byte| !set.contains(byte))
            .unwrap_or(self.len());
        let end = self
            .iter()
            .rposition(|byte| !set.contains(byte))
            .map_or(start, |at| at + 1);
        &self[start..end]
    }
}

/// What stands between the quotes around a value, where that is more.
pub(super) fn quoted(text: &[u8], value: Range<usize>) -> Option<Range<usize>> {
    let quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let inside = |byte: &u8| byte.is_ascii_graphic() && !quote(byte);
    let left = text[value.start.saturating_sub(64)..value.start]
        .iter()
        .rev()
        .take_while(|byte| inside(byte))
        .count();
    let right = text[value.end..]
        .iter()
        .take(128)
        .take_while(|byte| inside(byte))
        .count();
    let all = value.start - left..value.end + right;
    let open = all.start.checked_sub(1).map(|at| text[at]).filter(quote)?;
    (all != value && text.get(all.end) == Some(&open)).then_some(all)
}
