//! Walking along a whole value: its strings in one pass, its marks in another, and where a byte of it stands as a pointer.
//!
//! Guarantees: one pass each, no recursion, no allocation but a stack as deep as the value. Every position is one in the
//! value's own text. Deliberately absent: what a string means.

use fearless_simd::{Level as Machine, Simd, dispatch, prelude::*, u8x64};
use wide::u8x16;

use super::{Json, Node, Span, node, stops::next_stop};

/// One string of a value: a member's name or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// What stands between its quotes.
    pub inside: Span,
    /// Whether an escape stands in it.
    pub escaped: bool,
    /// Whether it is a member's name.
    pub name: bool,
}

/// Every string of a value, in order; see [`Json::texts`].
#[derive(Debug, Clone)]
pub struct Texts<'a> {
    text: &'a [u8],
    /// Where the bytes begin that were looked at together last.
    at: usize,
    /// The quotes and backslashes among them, the first lowest; of quotes those that nobody came to yet.
    quotes: u64,
    slashes: u64,
}

/// A mark of a value; see [`Json::marks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `{` or `[`, here.
    Open(usize),
    /// `}` or `]`, one past it.
    Close(usize),
    /// A member's name.
    Name(Text),
    /// A string that is a value.
    String(Text),
    /// A number or a word.
    Plain(Span),
}

/// Every mark of a value, in order.
#[derive(Debug, Clone)]
pub struct Marks<'a> {
    text: &'a [u8],
    at: usize,
}

impl Json {
    /// Every string of the value, names of members included, in order.
    pub fn texts(&self) -> Texts<'_> {
        let mut texts = Texts {
            text: &self.text,
            at: 0,
            quotes: 0,
            slashes: 0,
        };
        texts.look(0);
        texts
    }

    /// Every mark of the value, in order.
    pub fn marks(&self) -> Marks<'_> {
        Marks {
            text: &self.text,
            at: 0,
        }
    }

    /// The node of a container, by the place of its opening mark.
    pub fn node_at(&self, span: Span) -> Node<'_> {
        Node::at(self, span)
    }

    /// The JSON pointers (RFC 6901) of the strings at these places, which rise. A name has the pointer of its member. `*` stands
    /// for names that `is_hidden` says must not be shown, by where their insides are. In one pass.
    pub fn pointers(&self, places: &[usize], is_hidden: impl Fn(Span) -> bool) -> Vec<String> {
        let mut out = Vec::with_capacity(places.len());
        let mut stack: Vec<Level> = Vec::new();
        for mark in self.marks() {
            let (end, here) = match mark {
                Mark::Open(at) => {
                    stack.push(Level {
                        object: self.text[at] == b'{',
                        index: 0,
                        name: None,
                    });
                    (at, false)
                }
                Mark::Close(end) => {
                    stack.pop();
                    (end, false)
                }
                Mark::Name(text) => {
                    if let Some(level) = stack.last_mut() {
                        level.name = Some(text.inside);
                    }
                    (text.inside.end, true)
                }
                Mark::String(text) => (text.inside.end, true),
                Mark::Plain(span) => (span.end, false),
            };
            if here {
                while out.len() < places.len() && places[out.len()] <= end {
                    out.push(self.pointer(&stack, &is_hidden));
                }
            }
            if out.len() == places.len() {
                break;
            }
            if !matches!(mark, Mark::Open(_) | Mark::Name(_))
                && let Some(level) = stack.last_mut()
                && !level.object
            {
                level.index += 1;
            }
        }
        out.resize(places.len(), String::new());
        out
    }

    fn pointer(&self, stack: &[Level], is_hidden: &impl Fn(Span) -> bool) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        for level in stack {
            match level.name {
                Some(name) if level.object && is_hidden(name) => out.push_str("/*"),
                Some(name) if level.object => {
                    let name = node::unquote(&self.text[name.start..name.end]);
                    out.push('/');
                    // More than anybody shows: one name may be as long as the bound of the scan.
                    for character in name.chars().take(128) {
                        match character {
                            '~' => out.push_str("~0"),
                            '/' => out.push_str("~1"),
                            control if control.is_control() => out.push('\u{FFFD}'),
                            other => out.push(other),
                        }
                    }
                }
                _ => drop(write!(out, "/{}", level.index)),
            }
        }
        out
    }
}

/// One container on the way down.
struct Level {
    object: bool,
    index: usize,
    name: Option<Span>,
}

/// The string that opens at `at`, and where what follows it begins.
fn string(text: &[u8], at: usize) -> (Text, usize) {
    let start = at + 1;
    let stop = next_stop(text, start, true);
    let escaped = text.get(stop) == Some(&b'\\');
    let end = if escaped {
        closing(text, stop + 2)
    } else {
        stop
    };
    let next = behind(text, end + 1);
    let string = Text {
        inside: Span { start, end },
        escaped,
        name: text.get(next) == Some(&b':'),
    };
    (string, next)
}

/// Where white space that begins at `at` ends.
#[inline]
fn behind(text: &[u8], mut at: usize) -> usize {
    // Most texts have none.
    while text
        .get(at)
        .is_some_and(|byte| *byte <= b' ' && matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
    {
        at += 1;
    }
    at
}

/// The quote that ends a string, at or after `at`, which lies behind an escape.
fn closing(text: &[u8], at: usize) -> usize {
    dispatch!(Machine::new(), simd => closing_in(simd, text, at))
}

#[inline(always)]
fn closing_in<S: Simd>(simd: S, text: &[u8], mut at: usize) -> usize {
    /// After so many blocks without a quote the library is asked for the next.
    const NEAR: usize = 8;
    let begin = at;
    let (mut escaped, mut blocks) = (false, 0);
    while at < text.len() {
        let block = u8x64::from_slice(simd, &wide_block(text, at));
        let quotes = block.simd_eq(b'"').to_bitmask();
        let slashes = block.simd_eq(b'\\').to_bitmask();
        let taken = escapes(slashes, &mut escaped);
        let ends = quotes & !taken;
        if ends != 0 {
            return (at + ends.trailing_zeros() as usize).min(text.len());
        }
        at += WIDE;
        blocks = if quotes == 0 { blocks + 1 } else { 0 };
        if blocks > NEAR {
            let rest = text.get(at..).unwrap_or_default();
            let Some(found) = memchr::memchr(b'"', rest) else {
                return text.len();
            };
            let quote = at + found;
            let slashes = text[begin..quote].iter().rev();
            if slashes.take_while(|byte| **byte == b'\\').count() % 2 == 0 {
                return quote;
            }
            (at, escaped, blocks) = (quote + 1, false, 0);
        }
    }
    text.len()
}

/// What is escaped in a block with these backslashes: every second of a row of them is itself. `first` says whether the first
/// byte is, and then, whether the one behind the block is.
// Not told apart whether there are any: that is nothing that a machine foretells.
#[inline(always)]
fn escapes(slashes: u64, first: &mut bool) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let carried = u64::from(*first);
    let open = slashes & !carried;
    let behind = open << 1 | carried;
    // Rows that begin at odd places: adding carries each to its end, and tells whether its length is even.
    let (ends, beyond) = open.overflowing_add(open & !EVEN & !behind);
    *first = beyond;
    (EVEN ^ ends << 1) & behind
}

impl Texts<'_> {
    /// Looks at the bytes from `at` on.
    #[inline(always)]
    fn look(&mut self, at: usize) {
        let block = wide_block(self.text, at);
        self.at = at;
        self.quotes = marked(&block, b'"');
        self.slashes = marked(&block, b'\\');
    }

    /// Where the next quote stands that nobody came to yet.
    #[inline(always)]
    fn quote(&mut self) -> Option<usize> {
        if self.quotes == 0 {
            return None;
        }
        let at = self.at.wrapping_add(self.quotes.trailing_zeros() as usize);
        self.quotes &= self.quotes - 1;
        Some(at)
    }

    /// The same beyond what was looked at; between strings stand a few marks, as a rule, or very many numbers.
    fn farther(&mut self) -> Option<usize> {
        let from = self.at + WIDE;
        let found = memchr::memchr(b'"', self.text.get(from..)?)?;
        self.look(from + found);
        self.quote()
    }

    /// Where the string ends that begins at `start`, if it ends among what was looked at, and nothing in it is escaped.
    #[inline(always)]
    fn end(&mut self, start: usize) -> Option<usize> {
        if self.slashes != 0 && self.is_escaped(start) {
            return None;
        }
        self.quote()
    }

    /// Whether something is escaped between `start` and the next quote, if there is one among what was looked at.
    fn is_escaped(&self, start: usize) -> bool {
        let before = self.quotes.wrapping_sub(1) & !self.quotes;
        // Where there is a quote it is not before the string, and no byte of that lies beyond.
        let from = u64::MAX.checked_shl((start - self.at) as u32);
        self.slashes & before & from.unwrap_or_default() != 0
    }
}

impl Iterator for Texts<'_> {
    type Item = Text;

    #[inline(always)]
    fn next(&mut self) -> Option<Text> {
        let start = match self.quote() {
            Some(open) => open.wrapping_add(1),
            None => self.farther()?.wrapping_add(1),
        };
        // It is not known where it ends: it is looked at from its beginning.
        let mut end = self.end(start);
        if end.is_none() {
            self.look(start);
            end = self.end(start);
        }
        let Some(end) = end else {
            let (text, next) = string(self.text, start - 1);
            self.look(next);
            return Some(text);
        };
        let name = match self.text.get(end.wrapping_add(1)) {
            Some(b':') => true,
            Some(b' ' | b'\t' | b'\n' | b'\r') => {
                self.text.get(behind(self.text, end + 1)) == Some(&b':')
            }
            _ => false,
        };
        Some(Text {
            inside: Span { start, end },
            escaped: false,
            name,
        })
    }
}

impl Iterator for Marks<'_> {
    type Item = Mark;

    fn next(&mut self) -> Option<Mark> {
        loop {
            let at = self.at;
            match *self.text.get(at)? {
                b'{' | b'[' => {
                    self.at += 1;
                    return Some(Mark::Open(at));
                }
                b'}' | b']' => {
                    self.at += 1;
                    return Some(Mark::Close(self.at));
                }
                b'"' => {
                    let (text, next) = string(self.text, at);
                    self.at = next;
                    return Some(if text.name {
                        Mark::Name(text)
                    } else {
                        Mark::String(text)
                    });
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                _ => {
                    let length = self.text[at..].iter().take_while(|byte| {
                        !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
                    });
                    self.at += length.count();
                    return Some(Mark::Plain(Span {
                        start: at,
                        end: self.at,
                    }));
                }
            }
        }
    }
}

/// Bytes looked at together.
pub(super) const WIDE: usize = 64;

/// The next bytes, with zeros past the end.
#[inline(always)]
fn wide_block(text: &[u8], at: usize) -> [u8; WIDE] {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk::<WIDE>() {
        Some(block) => *block,
        None => {
            let mut last = [0; WIDE];
            last[..rest.len()].copy_from_slice(rest);
            last
        }
    }
}

/// One bit for each byte that is this one, the lowest first.
#[inline(always)]
fn marked(block: &[u8; WIDE], byte: u8) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    parts.iter().rev().fold(0, |bits, part| {
        let found = u8x16::new(*part).simd_eq(u8x16::splat(byte));
        bits << 16 | u64::from(found.to_bitmask())
    })
}

/// Finds the places in the inside of a string that rising places in its unescaped text stand for. One pass for all of them.
#[derive(Debug, Clone)]
pub struct Spelled<'a> {
    inside: &'a str,
    spelled: usize,
    plain: usize,
}

/// So many bytes are looked at one by one.
const NEAR: usize = 8;

impl<'a> Spelled<'a> {
    /// At the beginning of a string.
    pub const fn new(inside: &'a str) -> Self {
        Self {
            inside,
            spelled: 0,
            plain: 0,
        }
    }

    /// Where `plain`, a place between characters of the unescaped text that is not before the last one asked for, is spelled.
    pub fn place(&mut self, plain: usize) -> usize {
        while self.plain < plain {
            let rest = &self.inside.as_bytes()[self.spelled.min(self.inside.len())..];
            let wanted = plain - self.plain;
            // No further than need be: the cost of all calls together is that of one walk.
            let near = &rest[..wanted.min(rest.len())];
            // Most of what was found is short: the library takes longer to begin than to look at that.
            let slash = if near.len() <= NEAR {
                near.iter().position(|byte| *byte == b'\\')
            } else {
                memchr::memchr(b'\\', near)
            };
            let Some(run) = slash else {
                self.spelled += wanted;
                self.plain = plain;
                break;
            };
            let (character, length) = node::escaped(&self.inside[self.spelled + run..]);
            self.spelled += run + length;
            self.plain += run + character.len_utf8();
        }
        self.spelled.min(self.inside.len())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::json::{Limits, pieces::unescaped};

    fn json(text: &str) -> Json {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap()
    }

    fn shown(json: &Json) -> Vec<(&str, bool)> {
        let text = |text: Text| {
            (
                &json.as_str()[text.inside.start..text.inside.end],
                text.name,
            )
        };
        json.texts().map(text).collect()
    }

    #[test]
    fn every_string_is_met_once_and_names_are_told_from_values() {
        let value = json(r#"{"a" : ["b\"c", 1.5, {"d":"" }], "e:" : null , "f":true}"#);
        assert_eq!(
            shown(&value),
            [
                ("a", true),
                (r#"b\"c"#, false),
                ("d", true),
                ("", false),
                ("e:", true),
                ("f", true)
            ]
        );
        assert_eq!(shown(&json("[1,2]")), []);
        assert_eq!(shown(&json(r#""lone""#)), [("lone", false)]);
    }

    #[test]
    fn strings_are_found_by_their_pointers() {
        let value = json(r#"{"a/b":[0,{"x~":"here"},["n",["deep"]]],"z":{"q":1,"k":"last"}}"#);
        let at = |needle: &str| value.as_str().find(needle).unwrap();
        let places = [at("a/b"), at("here"), at("\"n") + 1, at("deep"), at("last")];
        assert_eq!(
            value.pointers(&places, |_| false),
            ["/a~1b", "/a~1b/1/x~0", "/a~1b/2/0", "/a~1b/2/1/0", "/z/k"]
        );
        assert_eq!(json(r#""lone""#).pointers(&[1], |_| false), [""]);
        let hidden = |name: Span| name.start == at("x~");
        assert_eq!(value.pointers(&places[1..2], hidden), ["/a~1b/1/*"]);
    }

    proptest! {
        #[test]
        fn a_string_ends_at_its_quote_wherever_quotes_and_backslashes_stand(text in "([\"\\\\]{1,9}|[a-z]{1,20}|é|[a-z]{100,300}){0,12}") {
            let value = Json::string(&text);
            let inside = value.texts().map(|text| (text.inside.start, text.inside.end));
            prop_assert_eq!(inside.collect::<Vec<_>>(), [(1, value.len() - 1)]);
        }

        #[test]
        fn places_in_the_plain_text_are_found_in_the_spelled_one(text in "(\\PC|[a-z]{20}|[\"\\\\\n\u{1}é\u{1F600}]){0,40}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let spelled = Json::string(&text);
            let inside = &spelled.as_str()[1..spelled.len() - 1];
            prop_assert_eq!(unescaped(inside), text.as_str());
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
            cuts.sort_unstable();
            let mut places = Spelled::new(inside);
            for cut in cuts {
                let at = places.place(cut);
                prop_assert_eq!(unescaped(&inside[..at]), &text[..cut]);
            }
        }
    }
}
