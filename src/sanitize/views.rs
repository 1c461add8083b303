//! Views: the strings of a value as texts for detectors, and the way back from a place in a text to a place in a string.
//!
//! Short strings stand together in one text, a line each, a name and its value on one; long ones are looked at where they
//! are. Only strings with escapes and short ones are copied, into buffers that are kept from one value to the next.

use std::{
    cell::{Cell, OnceCell},
    ops::Range,
};

use fearless_simd::{Level, Simd, dispatch};

use super::{Blocks, Tail, decoded::Decoded, survey::KEEP, tail::SEAM, work::looked};
use crate::json::{Behind, Json, Pieces, Span, Text, unquote};

/// Strings of at least this many bytes are texts of their own.
const LONG: usize = 1 << 10;

/// What stands behind a name, and behind anything else.
const NAMED: Behind = Behind::two(*b": ");
const VALUED: Behind = Behind::one(b'\n');

/// A piece of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Where it begins in the view.
    at: usize,
    /// Its length, unescaped.
    length: usize,
    /// Where the inside of its string begins in the value; [`BEFORE`] or [`EARLIER`] for what came before the value.
    pub(super) string: usize,
    /// Where in the unescaped string it begins.
    skip: usize,
    /// Whether the string is a member's name.
    pub(super) name: bool,
}

/// Stands for the end of the event before.
pub(super) const BEFORE: usize = usize::MAX;
/// Stands for the ends of those before that.
pub(super) const EARLIER: usize = BEFORE - 1;

/// Part of a string: where its inside begins in the value, and from where to where in its unescaped text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) string: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) name: bool,
}

/// A text and where its pieces come from.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) text: String,
    segments: Vec<Segment>,
    /// Where each of them ends, as soon as anything was found: by themselves, since a search touches many of these and one of
    /// those.
    ends: OnceCell<Vec<usize>>,
    /// The segment before the one in which the last span began.
    near: Cell<usize>,
}

/// Everything that reading a value needs, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// All short strings, and those with escapes.
    pub(super) joined: View,
    /// The strings that are looked at where they are.
    pub(super) long: Vec<Text>,
    /// What stands beside one another.
    pub(super) seam: View,
    /// Decoded forms: of a text, and of those.
    pub(super) decoded: [Decoded; 2],
    /// Blocks of text with something in them, in order, as segments of `joined`, or of the value itself.
    blocks: Vec<(Text, Option<usize>)>,
    /// Whether a name may be the one that all media have.
    media: bool,
}

impl View {
    fn clear(&mut self) {
        self.text.clear();
        self.segments.clear();
        self.ends.take();
        self.near.set(0);
        self.text.shrink_to(KEEP);
        self.segments.shrink_to(KEEP / 16);
    }

    fn add(&mut self, piece: &str, string: usize, skip: usize) {
        self.segments.push(Segment {
            at: self.text.len(),
            length: piece.len(),
            string,
            skip,
            name: false,
        });
        self.text.push_str(piece);
    }

    /// Where strings begin in the text.
    pub(super) fn begins(&self) -> impl Iterator<Item = usize> {
        self.segments.iter().map(|segment| segment.at)
    }

    /// The parts of strings that a span of the text covers.
    pub(super) fn parts(&self, span: &Range<usize>) -> impl Iterator<Item = Part> {
        let first = self.first_beyond(span.start);
        let (start, end) = (span.start, span.end);
        self.segments[first..]
            .iter()
            .take_while(move |segment| segment.at < end)
            .filter(|segment| segment.length > 0)
            .map(move |segment| Part {
                string: segment.string,
                from: segment.skip + start.saturating_sub(segment.at),
                to: segment.skip + (end - segment.at).min(segment.length),
                name: segment.name,
            })
    }
}

impl View {
    /// A string, as it reads: of the value itself, or this segment.
    fn plain<'a>(&'a self, text: &'a str, string: Text, segment: Option<usize>) -> &'a str {
        match segment {
            Some(segment) => {
                let segment = &self.segments[segment];
                &self.text[segment.at..segment.at + segment.length]
            }
            None => &text[string.inside.start..string.inside.end],
        }
    }

    /// The first segment that ends behind a place. Most places lie a little behind the last that was asked about.
    fn first_beyond(&self, place: usize) -> usize {
        let ends = self.ends.get_or_init(|| {
            let segments = self.segments.iter();
            segments
                .map(|segment| segment.at + segment.length)
                .collect()
        });
        let before = |end: &usize| *end <= place;
        let mut from = self.near.get();
        if !ends.get(from).is_some_and(before) {
            from = 0;
        }
        let mut step = 1;
        while ends.get(from + step).is_some_and(before) {
            from += step;
            step *= 2;
        }
        let to = ends.len().min(from + step);
        let first = from + ends[from..to].partition_point(before);
        self.near.set(first.saturating_sub(1));
        first
    }
}

impl Views {
    /// Reads the strings of a value, but those whose insides begin in one of `exempt`, which rise. The first of its blocks of
    /// text goes on from where what came before it ends.
    pub(super) fn read(
        &mut self,
        value: &Json,
        exempt: &[Span],
        (before, blocks): (Option<&Tail>, Blocks),
    ) {
        let (text, strings) = (value.as_str(), value.texts());
        self.joined.clear();
        self.seam.clear();
        self.long.clear();
        self.blocks.clear();
        // For registers as wide as the machine has, and what else it can do with single bits.
        dispatch!(Level::new(), simd => self.strings(simd, text, strings, (exempt, blocks)));
        looked(self.joined.text.len());
        self.seams(text, before);
        looked(self.seam.text.len());
    }

    /// Whether there may be media in what was read: a member has the name that all of them have, or one with an escape in it.
    pub(super) const fn may_have_media(&self) -> bool {
        self.media
    }

    #[inline(always)]
    fn strings<S: Simd>(
        &mut self,
        simd: S,
        text: &str,
        strings: impl Iterator<Item = Text>,
        (mut exempt, blocks): (&[Span], Blocks),
    ) {
        let all = blocks == Blocks::All;
        // Whether the last string was a name that a block of text has.
        let mut named = all;
        let bytes = text.as_bytes();
        let View {
            text: joined,
            segments,
            ..
        } = &mut self.joined;
        let mut joined = Pieces::onto(joined);
        let mut media = false;
        for string in strings {
            let Span { start, end } = string.inside;
            while let [first, rest @ ..] = exempt
                && first.end <= start
            {
                exempt = rest;
            }
            if exempt.first().is_some_and(|span| span.start <= start) {
                continue;
            }
            let length = end.wrapping_sub(start);
            let block = !string.name && named && length > 0;
            media |=
                string.name && (string.escaped || length == 8 && &bytes[start..end] == b"mimeType");
            named = all
                || string.name
                    && if string.escaped {
                        is_spelled_of_block(&bytes[start..end])
                    } else {
                        matches!(length, 4 | 7) && is_of_block(&bytes[start..end])
                    };
            if !string.escaped && length >= LONG {
                self.long.push(string);
                if block {
                    self.blocks.push((string, None));
                }
                continue;
            }
            if block {
                self.blocks.push((string, Some(segments.len())));
            }
            let behind = if string.name { NAMED } else { VALUED };
            let (at, end) = if string.escaped {
                let at = joined.len();
                joined.put_unescaped(simd, text, start, end);
                let end = joined.len();
                joined.put_behind(behind);
                (at, end)
            } else {
                let at = joined.put_before(text, start, end, behind);
                (at, at.wrapping_add(length))
            };
            segments.push(Segment {
                at,
                length: end - at,
                string: start,
                skip: 0,
                name: string.name,
            });
        }
        joined.finish();
        self.media = media;
    }

    /// Puts blocks of text beside one another, without what lies far from their ends.
    fn seams(&mut self, text: &str, before: Option<&Tail>) {
        let before = before.filter(|before| !before.is_empty());
        if self.blocks.len() + usize::from(before.is_some()) < 2 {
            return;
        }
        if let Some(before) = before {
            // Apart, for the last to be paired with what follows it.
            let (earlier, last) = before.pieces();
            if !earlier.is_empty() {
                self.seam.add(earlier, EARLIER, 0);
            }
            self.seam.add(last, BEFORE, 0);
        }
        for (block, joined) in &self.blocks {
            let string = block.inside.start;
            let plain = self.joined.plain(text, *block, *joined);
            if plain.len() <= 2 * SEAM {
                self.seam.add(plain, string, 0);
                continue;
            }
            let head = plain.floor_char_boundary(SEAM);
            let tail = plain.ceil_char_boundary(plain.len() - SEAM);
            self.seam.add(&plain[..head], string, 0);
            self.seam.text.push('\n');
            self.seam.add(&plain[tail..], string, tail);
        }
        self.pairs();
    }

    /// Puts pairs of blocks by themselves where those around them would hide where something begins or ends: a block that is
    /// one word, between others that end and begin with one.
    fn pairs(&mut self) {
        let pieces = self.seam.segments.len();
        let word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        for first in 0..pieces.saturating_sub(1) {
            let piece = |number: usize| {
                let segment = self.seam.segments.get(number)?;
                let text = &self.seam.text.as_bytes()[segment.at..][..segment.length];
                Some((segment, text))
            };
            // What belongs together stands beside one another: between head and tail of a long block is a line's end.
            let glued = |left: usize| match (piece(left), piece(left + 1)) {
                (Some((one, left)), Some((other, right))) => {
                    one.at + one.length == other.at && word(left.last()) && word(right.first())
                }
                _ => false,
            };
            let is_word = |number: usize| {
                piece(number).is_some_and(|(_, text)| text.iter().all(u8::is_ascii_graphic))
            };
            if !glued(first) {
                continue;
            }
            let hides_start = first > 0 && is_word(first) && glued(first - 1);
            let hides_end = is_word(first + 1) && glued(first + 1);
            if !hides_start && !hides_end {
                continue;
            }
            self.seam.text.push('\n');
            for number in [first, first + 1] {
                let segment = self.seam.segments[number];
                let at = self.seam.text.len();
                let copy = self.seam.text[segment.at..segment.at + segment.length].to_owned();
                self.seam.text.push_str(&copy);
                self.seam.segments.push(Segment { at, ..segment });
            }
        }
    }

    /// Lets a tail go on with the ends of these blocks of text.
    pub(super) fn end_in(&self, text: &str, tail: &mut Tail) {
        let plain =
            |(block, joined): &(Text, Option<usize>)| self.joined.plain(text, *block, *joined);
        let mut kept = 0;
        let far = self.blocks.iter().rposition(|block| {
            kept += plain(block).len();
            kept >= SEAM
        });
        for block in &self.blocks[far.unwrap_or(0)..] {
            tail.add(plain(block));
        }
    }
}

/// Whether a member of this name is a block of text.
fn is_of_block(name: &[u8]) -> bool {
    matches!(name, b"text" | b"message" | b"data")
}

/// The same of a name that is spelled with escapes.
#[cold]
fn is_spelled_of_block(name: &[u8]) -> bool {
    /// No character takes more bytes.
    const ESCAPED: usize = 6;
    name.len() <= ESCAPED * "message".len() && is_of_block(unquote(name).as_bytes())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    fn read(text: &str, exempt: &[Span], before: Option<&str>) -> (Json, Views) {
        let json = Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap();
        let mut tail = Tail::default();
        tail.add(before.unwrap_or_default());
        let mut views = Views::default();
        let blocks = (Some(&tail), Blocks::Named);
        views.read(&json, exempt, blocks);
        (json, views)
    }

    #[test]
    fn short_strings_stand_on_lines_with_their_names() {
        let (json, views) = read(r#"{"a":"b\u0041","c":[1,"d"],"e":{"f":"g"}}"#, &[], None);
        assert_eq!(views.joined.text, "a: bA\nc: d\ne: f: g\n");
        let at = views.joined.text.find("bA").unwrap();
        let parts: Vec<Part> = views.joined.parts(&(at + 1..at + 2)).collect();
        let string = json.as_str().find("b\\u").unwrap();
        assert_eq!(
            parts,
            [Part {
                string,
                from: 1,
                to: 2,
                name: false
            }]
        );
    }

    #[test]
    fn places_are_found_in_whatever_order_they_are_asked_for() {
        let strings: Vec<String> = (0..50)
            .map(|nth| format!("\"{}\"", "x".repeat(nth % 7)))
            .collect();
        let (_, views) = read(&format!("[{}]", strings.join(",")), &[], None);
        let text = &views.joined.text;
        let plain = |place: usize| {
            let ends = |segment: &&Segment| segment.at + segment.length > place;
            views
                .joined
                .segments
                .iter()
                .find(ends)
                .map(|segment| segment.at)
        };
        for stride in [1, 5, 31, 67, 100] {
            for nth in 0..text.len() {
                let place = nth * stride % text.len();
                let first = views.joined.first_beyond(place);
                let first = views.joined.segments.get(first).map(|segment| segment.at);
                assert_eq!(first, plain(place), "{place} by {stride}");
            }
        }
    }

    #[test]
    fn a_long_string_is_looked_at_where_it_is() {
        let long = "x".repeat(LONG);
        let (json, views) = read(&format!(r#"{{"text":"{long}","b":"short"}}"#), &[], None);
        assert_eq!(views.joined.text, "text: b: short\n");
        assert_eq!(views.long.len(), 1);
        assert_eq!(
            views.long[0].inside.start,
            json.as_str().find(&long).unwrap()
        );
    }

    #[test]
    fn media_are_known_by_the_name_that_all_of_them_have_however_it_is_spelled() {
        for (text, may) in [
            (r#"{"mimeType":"a/b"}"#, true),
            (r#"[{"x":{"mime\u0054ype":1}}]"#, true),
            (r#"{"mimetype":"a/b","x":"mimeType","mimeTyp":1}"#, false),
            (r#""mimeType""#, false),
        ] {
            let (_, views) = read(text, &[], None);
            assert_eq!(views.may_have_media(), may, "{text}");
        }
    }

    #[test]
    fn the_ends_of_blocks_stand_beside_one_another() {
        let (_, views) = read(
            r#"{"content":[{"text":"one AK"},{"text":"IA two"}]}"#,
            &[],
            Some("before "),
        );
        assert_eq!(views.seam.text, "before one AKIA two");
        let parts: Vec<usize> = views
            .seam
            .parts(&(11..15))
            .map(|part| part.string)
            .collect();
        assert_eq!(parts.len(), 2);
        let (_, views) = read(r#"{"text":"alone"}"#, &[], None);
        assert_eq!(views.seam.text, "");
    }

    #[test]
    fn a_pair_between_words_stands_by_itself_too() {
        let blocks = |texts: &[&str]| {
            let blocks: Vec<_> = texts
                .iter()
                .map(|text| format!(r#"{{"text":"{text}"}}"#))
                .collect();
            let (json, views) = read(&format!("[{}]", blocks.join(",")), &[], None);
            (json, views)
        };
        for (texts, seam) in [
            (
                &["see b", "AKIA5", "WXYZ7", "so"][..],
                "see bAKIA5WXYZ7so\nsee bAKIA5\nAKIA5WXYZ7\nWXYZ7so",
            ),
            (
                &["see b", "AKIA5", "WXYZ7"],
                "see bAKIA5WXYZ7\nsee bAKIA5\nAKIA5WXYZ7",
            ),
            (
                &["AKIA5", "WXYZ7", "so"],
                "AKIA5WXYZ7so\nAKIA5WXYZ7\nWXYZ7so",
            ),
            // Nothing is hidden between these.
            (&["see b ", "AKIA5", "WXYZ7"], "see b AKIA5WXYZ7"),
            (&["see", "this one", "here"], "seethis onehere"),
            (&["one", "two"], "onetwo"),
        ] {
            let (json, views) = blocks(texts);
            assert_eq!(views.seam.text, seam);
            if let Some(pair) = seam.find("\nAKIA5WXYZ7") {
                let parts: Vec<_> = views.seam.parts(&(pair + 3..pair + 9)).collect();
                let strings = ["AKIA5", "WXYZ7"].map(|text| json.as_str().find(text).unwrap());
                assert_eq!(
                    parts.iter().map(|part| part.string).collect::<Vec<_>>(),
                    strings
                );
                assert_eq!(
                    (parts[0].from, parts[0].to, parts[1].from, parts[1].to),
                    (2, 5, 0, 3)
                );
            }
        }
    }
}
