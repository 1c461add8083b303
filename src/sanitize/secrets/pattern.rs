//! The little language in which the form of a token is written, and its matcher.
//!
//! Literal bytes, `[a-z]` sets, `{n}` and `{n,m}` counts, `(a|b)` alternatives; `\d` digits, `\h` lower-case hex, `\H` hex of
//! either case, `\l` lower-case letters and digits, `\u` upper-case letters and digits, `\a` letters and digits, `\b` base64url,
//! `\s` base64 without padding, `\i` a UUID; `\` before anything else makes it literal. A match is tried at one place only and
//! looks at no more bytes than the counts allow. Deliberately absent: anything unbounded.

use thiserror::Error;

use crate::sanitize::work::looked;

/// The most that a count may be: it bounds the work of one match.
const MOST: u16 = 8192;
/// The least literal bytes in front by which a token is told, and those that tokens of anybody have in front.
const TELLING: usize = 4;
const COMMON: [&[u8]; 16] = [
    b"live_",
    b"test_",
    b"sandbox_",
    b"prod_",
    b"key-",
    b"key_",
    b"api-",
    b"api_",
    b"apikey_",
    b"apikey-",
    b"secret_",
    b"secret-",
    b"token-",
    b"token_",
    b"sk-api-",
    b"sk_live_",
];

/// What is wrong with the text of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Fault {
    #[error("a set, a group or a count is not closed")]
    Open,
    #[error("a count is not a number up to {MOST}, or its ends are the wrong way round")]
    Count,
    #[error("a set is empty, reversed or not ASCII")]
    Set,
    #[error("a count stands after nothing")]
    Bare,
}

/// A set of ASCII bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set([u64; 2]);

impl Set {
    pub(super) const fn has(self, byte: u8) -> bool {
        byte < 128 && self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    const fn with(mut self, from: u8, to: u8) -> Self {
        let mut byte = from;
        while byte <= to {
            self.0[(byte >> 6) as usize] |= 1 << (byte & 63);
            byte += 1;
        }
        self
    }

    const fn named(name: u8) -> Option<Self> {
        const NONE: Set = Set([0; 2]);
        const LOWER: Set = NONE.with(b'a', b'z').with(b'0', b'9');
        const ALL: Set = LOWER.with(b'A', b'Z');
        Some(match name {
            b'd' => NONE.with(b'0', b'9'),
            b'h' => NONE.with(b'0', b'9').with(b'a', b'f'),
            b'H' => NONE.with(b'0', b'9').with(b'a', b'f').with(b'A', b'F'),
            b'l' => LOWER,
            b'u' => NONE.with(b'0', b'9').with(b'A', b'Z'),
            b'a' => ALL,
            b'b' => ALL.with(b'_', b'_').with(b'-', b'-'),
            b's' => ALL.with(b'+', b'+').with(b'/', b'/'),
            _ => return None,
        })
    }

    fn bytes(self) -> impl Iterator<Item = u8> {
        (0..128).filter(move |byte| self.has(*byte))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(Box<[u8]>),
    Of { set: Set, least: u16, most: u16 },
}

/// One form, without alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pieces: Box<[Piece]>,
    prefix: usize,
}

impl Pattern {
    /// Every form that the text stands for: alternatives are written out.
    pub(super) fn parse(text: &str) -> Result<Vec<Self>, Fault> {
        written_out(&text.replace("\\i", r"\H{8}-\H{4}-\H{4}-\H{4}-\H{12}"))?
            .iter()
            .map(|text| Self::one(text.as_bytes()))
            .collect()
    }

    /// How many literal bytes it begins with.
    pub(super) const fn prefix(&self) -> usize {
        self.prefix
    }

    /// Every three bytes that a match may begin with.
    pub(super) fn beginnings(&self) -> Vec<[u8; 3]> {
        let mut all = vec![Vec::with_capacity(3)];
        for piece in &self.pieces {
            match piece {
                Piece::Literal(bytes) => bytes.iter().for_each(|byte| {
                    for one in &mut all {
                        one.push(*byte);
                    }
                }),
                Piece::Of { set, least, .. } => {
                    for _ in 0..(*least).min(3) {
                        if all.iter().all(|one| one.len() < 3) {
                            all = all
                                .iter()
                                .flat_map(|one| {
                                    set.bytes().map(|byte| [one.as_slice(), &[byte]].concat())
                                })
                                .collect();
                        }
                    }
                }
            }
        }
        all.iter()
            .filter_map(|one| one.first_chunk::<3>().copied())
            .collect()
    }

    /// The first literal bytes after a beginning without any, and the least and greatest distance at which they stand.
    pub(super) fn lead(&self) -> Option<(&[u8], usize, usize)> {
        let (mut near, mut far) = (0, 0);
        for piece in &self.pieces {
            match piece {
                Piece::Literal(bytes) => return Some((bytes, near, far)),
                Piece::Of { least, most, .. } => {
                    near += usize::from(*least);
                    far += usize::from(*most);
                }
            }
        }
        None
    }

    /// Whether a match may begin at one of the words of a UUID in small letters, where nothing of a token stands behind it.
    #[cfg(test)]
    pub(super) fn may_begin_in_uuid(&self) -> bool {
        const END: usize = 36;
        const DASHES: [usize; 4] = [8, 13, 18, 23];
        let alone =
            |byte: &u8| !super::bytes::is_token(*byte) && !super::bytes::is_joint_or_at(*byte);
        let fits = |set: Set, at: usize| match at {
            END => set.bytes().any(|byte| alone(&byte)),
            _ if at > END => true,
            _ if DASHES.contains(&at) => set.has(b'-'),
            _ => set
                .bytes()
                .any(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
        };
        let one = |byte: &u8| (Set::default().with(*byte, *byte), 1, 1);
        let steps: Vec<_> = self
            .pieces
            .iter()
            .flat_map(|piece| match piece {
                Piece::Literal(bytes) => bytes.iter().map(one).collect(),
                Piece::Of { set, least, most } => vec![(*set, *least, *most)],
            })
            .collect();
        // What has no beginning of its own is looked for where nothing goes before.
        let starts = if self.prefix == 0 { 1 } else { 5 };
        [0, 9, 14, 19, 24].iter().take(starts).any(|start| {
            let mut places = std::collections::BTreeSet::from([*start]);
            for (set, least, most) in &steps {
                let mut next = std::collections::BTreeSet::new();
                for place in &places {
                    for count in 0..=usize::from(*most) {
                        let at = *place + count;
                        if count >= usize::from(*least) {
                            next.insert(at.min(END + 1));
                        }
                        if !fits(*set, at) {
                            break;
                        }
                    }
                }
                places = next;
            }
            // Where it ends within, a letter or digit must not follow.
            places
                .iter()
                .any(|place| *place >= END || DASHES.contains(place))
        })
    }

    /// Every byte that may stand before the first literal bytes.
    #[cfg(test)]
    pub(super) fn before_lead(&self) -> Vec<u8> {
        let sets = self.pieces.iter().map_while(|piece| match piece {
            Piece::Of { set, .. } => Some(set.bytes()),
            Piece::Literal(_) => None,
        });
        sets.flatten().collect()
    }

    /// The bytes that a match without literal bytes in front may begin with.
    pub(super) fn first(&self) -> impl Iterator<Item = u8> {
        let set = match self.pieces.first() {
            Some(Piece::Of { set, .. }) => *set,
            _ => Set::default(),
        };
        set.bytes()
    }

    /// Where a match that begins at `at` ends: a token that goes on is another token.
    pub(super) fn token_at(&self, text: &[u8], at: usize) -> Option<usize> {
        walk(&self.pieces, text, at).filter(|end| self.closed(text, *end))
    }

    /// Whether the whole of it has this form.
    pub(super) fn is_all_of(&self, value: &[u8]) -> bool {
        walk(&self.pieces, value, 0) == Some(value.len())
    }

    /// Whether it is shorter than any match, or as long as all of them and of another alphabet; nothing, if it does not begin as
    /// they do, or that is too short to tell them by.
    pub(super) fn spoils(&self, value: &[u8]) -> Option<bool> {
        let Some(Piece::Literal(literal)) = self.pieces.first() else {
            return None;
        };
        if literal.len() < TELLING || COMMON.contains(&&**literal) || !value.starts_with(literal) {
            return None;
        }
        let lengths = self.pieces.iter().map(|piece| match piece {
            Piece::Literal(bytes) => (bytes.len(), bytes.len()),
            Piece::Of { least, most, .. } => (usize::from(*least), usize::from(*most)),
        });
        let (least, most) = lengths.fold((0, 0), |(a, b), (least, most)| (a + least, b + most));
        let long = value.len();
        Some(long < least || long == least && least == most && !self.is_all_of(value))
    }

    fn closed(&self, text: &[u8], end: usize) -> bool {
        let Some(next) = text.get(end) else {
            return true;
        };
        let goes_on = match self.pieces.last() {
            // Padding and slashes end a token as often as they go on with it.
            Some(Piece::Of { set, .. }) => set.has(*next) && !matches!(next, b'/' | b'=' | b'.'),
            _ => false,
        };
        !next.is_ascii_alphanumeric() && !goes_on
    }

    fn one(mut rest: &[u8]) -> Result<Self, Fault> {
        let mut pieces: Vec<Piece> = Vec::new();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let set = match byte {
                b'[' => {
                    let end = rest
                        .iter()
                        .position(|byte| *byte == b']')
                        .ok_or(Fault::Open)?;
                    let set = ranges(&rest[..end])?;
                    rest = &rest[end + 1..];
                    Some(set)
                }
                b'\\' => {
                    let (&name, after) = rest.split_first().ok_or(Fault::Open)?;
                    rest = after;
                    let set = Set::named(name);
                    if set.is_none() {
                        literal(&mut pieces, name);
                    }
                    set
                }
                b'{' => {
                    let end = rest
                        .iter()
                        .position(|byte| *byte == b'}')
                        .ok_or(Fault::Open)?;
                    let (low, high) = counts(&rest[..end])?;
                    rest = &rest[end + 1..];
                    if let Some(Piece::Of { least, most, .. }) = pieces.last_mut() {
                        (*least, *most) = (low, high);
                    } else {
                        let set = last_of(&mut pieces).ok_or(Fault::Bare)?;
                        pieces.push(Piece::Of {
                            set,
                            least: low,
                            most: high,
                        });
                    }
                    continue;
                }
                byte => {
                    literal(&mut pieces, byte);
                    None
                }
            };
            if let Some(set) = set {
                pieces.push(Piece::Of {
                    set,
                    least: 1,
                    most: 1,
                });
            }
        }
        let prefix = match pieces.first() {
            Some(Piece::Literal(bytes)) => bytes.len(),
            _ => 0,
        };
        Ok(Self {
            pieces: pieces.into(),
            prefix,
        })
    }
}

fn walk(pieces: &[Piece], text: &[u8], at: usize) -> Option<usize> {
    let Some((piece, rest)) = pieces.split_first() else {
        return Some(at);
    };
    let here = text.get(at..)?;
    match piece {
        Piece::Literal(bytes) => here
            .starts_with(bytes)
            .then(|| walk(rest, text, at + bytes.len()))?,
        Piece::Of { set, least, most } => {
            let (least, most) = (usize::from(*least), usize::from(*most));
            let run = here
                .iter()
                .take(most)
                .take_while(|byte| set.has(**byte))
                .count();
            looked(run);
            if rest.is_empty() {
                return (run >= least).then_some(at + run);
            }
            // Few counts of a pattern leave a choice, and sets part what follows them: the test of linear work holds the rest.
            (least..=run)
                .rev()
                .find_map(|count| walk(rest, text, at + count))
        }
    }
}

fn literal(pieces: &mut Vec<Piece>, byte: u8) {
    if let Some(Piece::Literal(bytes)) = pieces.last_mut() {
        *bytes = [&bytes[..], &[byte]].concat().into();
    } else {
        pieces.push(Piece::Literal([byte].into()));
    }
}

/// Takes the last byte off a literal, as a set of its own.
fn last_of(pieces: &mut Vec<Piece>) -> Option<Set> {
    let Some(Piece::Literal(bytes)) = pieces.last_mut() else {
        return None;
    };
    let (last, rest) = bytes.split_last()?;
    let set = Set::default().with(*last, *last);
    if rest.is_empty() {
        pieces.pop();
    } else {
        *bytes = rest.into();
    }
    Some(set)
}

fn ranges(text: &[u8]) -> Result<Set, Fault> {
    let mut set = Set::default();
    let mut rest = text;
    while let Some((&from, after)) = rest.split_first() {
        if let [b'-', to, after @ ..] = after {
            if from > *to || *to >= 128 {
                return Err(Fault::Set);
            }
            set = set.with(from, *to);
            rest = after;
        } else {
            if from >= 128 {
                return Err(Fault::Set);
            }
            set = set.with(from, from);
            rest = after;
        }
    }
    if set == Set::default() {
        Err(Fault::Set)
    } else {
        Ok(set)
    }
}

fn counts(text: &[u8]) -> Result<(u16, u16), Fault> {
    let text = std::str::from_utf8(text).map_err(|_| Fault::Count)?;
    let (low, high) = text.split_once(',').unwrap_or((text, text));
    let number = |text: &str| {
        text.parse::<u16>()
            .ok()
            .filter(|count| *count <= MOST)
            .ok_or(Fault::Count)
    };
    let (low, high) = (number(low)?, number(high)?);
    if low <= high {
        Ok((low, high))
    } else {
        Err(Fault::Count)
    }
}

fn written_out(text: &str) -> Result<Vec<String>, Fault> {
    let bytes = text.as_bytes();
    let unescaped = |at: &usize| *at == 0 || bytes[*at - 1] != b'\\';
    let Some(open) = (0..bytes.len())
        .filter(unescaped)
        .find(|at| bytes[*at] == b'(')
    else {
        return Ok(vec![text.to_owned()]);
    };
    let close = text[open..].find(')').ok_or(Fault::Open)? + open;
    let mut all = Vec::new();
    for choice in text[open + 1..close].split('|') {
        all.extend(written_out(&format!(
            "{}{choice}{}",
            &text[..open],
            &text[close + 1..]
        ))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(pattern: &str, text: &str) -> Option<usize> {
        let all = Pattern::parse(pattern).expect("a pattern of a test");
        all.iter()
            .find_map(|pattern| pattern.token_at(text.as_bytes(), 0))
    }

    #[test]
    fn a_token_has_the_length_that_its_pattern_says() {
        assert_eq!(ends(r"ab_\h{4}", "ab_12ef"), Some(7));
        assert_eq!(ends(r"ab_\h{4}", "ab_12e"), None);
        assert_eq!(ends(r"ab_\h{4}", "ab_12ef3"), None, "goes on");
        assert_eq!(
            ends(r"ab_\h{4}", "ab_12ef_"),
            Some(7),
            "ends where its alphabet does"
        );
        assert_eq!(ends(r"ab_\b{4}", "ab_12ef_"), None);
    }

    #[test]
    fn counts_that_leave_a_choice_give_back() {
        assert_eq!(ends(r"x-\b{2,9}END\d{2}", "x-aaaENDEND42"), Some(13));
        assert_eq!(ends(r"(live|test)_\d{3}", "test_123"), Some(8));
        assert_eq!(ends(r"a\.[a-c.]{2,3}", "a.b.c"), Some(5));
    }

    #[test]
    fn a_pattern_that_is_wrong_is_told() {
        assert_eq!(Pattern::parse("a[b"), Err(Fault::Open));
        assert_eq!(Pattern::parse("{3}"), Err(Fault::Bare));
        assert_eq!(Pattern::parse(r"\d{9,3}"), Err(Fault::Count));
        assert_eq!(Pattern::parse("[z-a]"), Err(Fault::Set));
    }

    #[test]
    fn beginnings_are_written_out_where_the_prefix_is_short() {
        let all = Pattern::parse(r"S\d{2}").expect("a pattern of a test");
        assert_eq!(all[0].beginnings().len(), 100);
        assert!(all[0].beginnings().contains(b"S42"));
    }
}
