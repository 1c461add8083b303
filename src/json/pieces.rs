//! A text put together of many small pieces: the strings of a value, and what stands between the escapes in one.
//!
//! Guarantees: what comes out is what appending each piece to a string gives. Deliberately absent: what the pieces mean.
//!
//! Most pieces have fewer bytes than a call to copy them has instructions. So they are taken with what is behind them, whose
//! length is known to the compiler, into a small room; what is in it goes onto the text when it is full.

use fearless_simd::{Level, Simd, mask8x64, prelude::*, u8x64};

use super::{node, walk::WIDE};

/// A text and what will be appended to it. What was put in is there after [`Pieces::finish`].
pub struct Pieces<'a> {
    text: &'a mut String,
    room: [u8; ROOM],
    filled: usize,
}

/// One or two characters of ASCII that stand behind a piece.
#[derive(Debug, Clone, Copy)]
pub struct Behind {
    characters: [u8; 2],
    count: usize,
}

impl Behind {
    /// This one.
    pub const fn one(character: u8) -> Self {
        Self {
            characters: [character & 0x7F, 0],
            count: 1,
        }
    }

    /// These.
    pub const fn two([first, second]: [u8; 2]) -> Self {
        Self {
            characters: [first & 0x7F, second & 0x7F],
            count: 2,
        }
    }
}

/// Pieces of at most so many bytes are put in the room.
const NEAR: usize = 32;
/// After so many windows without an escape the next is searched for.
const CLEAN: usize = 3;
/// So many escapes in a window are taken away at once.
const MANY: u32 = 3;
const ROOM: usize = 1 << 10;
/// What is looked at together, and what may be taken with the last of it.
const WINDOW: usize = WIDE + NEAR;

impl<'a> Pieces<'a> {
    /// Appends to this text.
    pub const fn onto(text: &'a mut String) -> Self {
        Self {
            text,
            room: [0; ROOM],
            filled: 0,
        }
    }

    /// The length of the text with what was put in, in bytes.
    pub const fn len(&self) -> usize {
        self.text.len().wrapping_add(self.filled)
    }

    /// Whether neither the text nor what was put in has a byte.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts in what stands in `source` from one place between characters to another.
    ///
    /// # Panics
    /// Where these are no such places.
    #[inline(always)]
    pub fn put(&mut self, source: &str, start: usize, end: usize) {
        let rest = source.as_bytes().get(start..).unwrap_or_default();
        if let Some(piece) = rest.first_chunk::<NEAR>()
            && end - start <= NEAR
        {
            self.near(piece, end - start);
        } else {
            self.far(&source[start..end]);
        }
    }

    /// Puts in the same, and a character behind it, or two; says where the piece begins.
    ///
    /// # Panics
    /// Like [`Pieces::put`].
    #[inline(always)]
    pub fn put_before(&mut self, source: &str, start: usize, end: usize, behind: Behind) -> usize {
        let at = self.len();
        let Behind { characters, count } = behind;
        let length = end.wrapping_sub(start);
        let rest = source.as_bytes().get(start..).unwrap_or_default();
        let room = self.room.get_mut(self.filled..).unwrap_or_default();
        if length <= NEAR
            && let Some(piece) = rest.first_chunk::<NEAR>()
            && let Some(room) = room.first_chunk_mut::<{ NEAR + 2 }>()
        {
            if let Some(near) = room.first_chunk_mut() {
                *near = *piece;
            }
            [room[length], room[length + 1]] = characters;
            self.filled = self.filled.wrapping_add(length + count);
        } else {
            self.put(source, start, end);
            self.put_behind(behind);
        }
        at
    }

    /// Puts in one character or two.
    #[inline(always)]
    pub fn put_behind(&mut self, behind: Behind) {
        for character in &behind.characters[..behind.count] {
            self.put_ascii(*character);
        }
    }

    /// Puts in a character.
    #[inline(always)]
    pub fn put_ascii(&mut self, character: u8) {
        if self.filled >= ROOM {
            self.flush();
        }
        self.room[self.filled] = character & 0x7F;
        self.filled += 1;
    }

    /// Puts in what the inside of a valid string stands for, which is in `source` from `start` to `end`.
    #[inline(always)]
    pub fn put_unescaped<S: Simd>(&mut self, simd: S, source: &str, start: usize, end: usize) {
        let bytes = &source.as_bytes()[..end];
        let (mut from, mut clean) = (start, 0);
        while from < end {
            let Some(window) = bytes[from..].first_chunk::<WINDOW>() else {
                break;
            };
            // Before the bytes are read, which stay in registers: over a call they would not.
            if self.filled > ROOM - WINDOW {
                self.flush();
            }
            let block = u8x64::from_slice(simd, &window[..WIDE]);
            let slashes = block.simd_eq(b'\\').to_bitmask();
            let whole = window[WIDE] & 0xC0 != 0x80;
            if compresses(simd) && ((slashes != 0) | (clean < CLEAN)) && whole {
                from = match self.all(simd, window, slashes) {
                    0 => self.block(source, from, window, slashes),
                    length => from + length,
                };
                clean = if slashes == 0 { clean + 1 } else { 0 };
            } else if slashes != 0 {
                let mut length = 0;
                if slashes.count_ones() >= MANY {
                    length = self.many(simd, window, slashes);
                }
                from = match length {
                    0 => self.block(source, from, window, slashes),
                    length => from + length,
                };
                clean = 0;
            } else if clean < CLEAN && whole {
                if let Some(room) = self.room[self.filled..].first_chunk_mut::<WIDE>()
                    && let Some(block) = window.first_chunk()
                {
                    *room = *block;
                    self.filled += WIDE;
                }
                from += WIDE;
                clean += 1;
            } else {
                let near = from + WIDE;
                let next = memchr::memchr(b'\\', &bytes[near..]);
                let next = next.map_or(end, |next| near + next);
                self.far(&source[from..next]);
                from = next;
            }
        }
        // What is too near the end for a window.
        while from < end {
            let slash = memchr::memchr(b'\\', &bytes[from..]);
            let slash = slash.map_or(end, |slash| from + slash);
            self.put(source, from, slash);
            from = slash;
            if slash < end {
                from = self.put_escape(&source[..end], slash);
            }
        }
    }

    /// Puts in what the first bytes of a window with many escapes stand for, all at once; how many bytes that was. None, where
    /// an escape is no single letter, or they stand behind one another.
    #[inline(always)]
    fn many<S: Simd>(&mut self, simd: S, window: &[u8; WINDOW], slashes: u64) -> usize {
        // What the last byte escapes is not among these.
        let length = WIDE - (slashes >> (WIDE - 1)) as usize;
        let all = u64::MAX >> (WIDE - length);
        let escaped = slashes << 1;
        let cut = window[length] & 0xC0 == 0x80;
        if slashes & escaped != 0 || cut {
            return 0;
        }
        let bytes = u8x64::from_slice(simd, &window[..WIDE]);
        let mut plain = bytes;
        // Quotes and slashes stand for themselves.
        if escaped & bytes.simd_ge(b'b').to_bitmask() != 0 {
            if escaped & bytes.simd_eq(b'u').to_bitmask() != 0 {
                return 0;
            }
            let escaped = mask8x64::from_bitmask(simd, escaped);
            for (letter, character) in LETTERS {
                let here = bytes.simd_eq(letter) & escaped;
                plain = here.select(u8x64::splat(simd, character), plain);
            }
        }
        self.keep(simd, plain, all & !slashes);
        length
    }

    /// The same whatever escapes there are, even none, for machines on which that costs nothing, of a window that ends between
    /// characters. None, where an escape is no single letter, is of `\b`, or they stand behind one another.
    #[inline(always)]
    fn all<S: Simd>(&mut self, simd: S, window: &[u8; WINDOW], slashes: u64) -> usize {
        let bytes = u8x64::from_slice(simd, &window[..WIDE]);
        let escaped = slashes << 1;
        let rare = bytes.simd_eq(b'u') | bytes.simd_eq(b'b');
        // What the last byte escapes is not among these.
        let last = (slashes >> (WIDE - 1)) as usize;
        let length = WIDE - last;
        if (slashes & escaped) | (escaped & rare.to_bitmask()) != 0 {
            return 0;
        }
        let table = u8x64::from_slice(simd, &ESCAPED);
        let escaped = mask8x64::from_bitmask(simd, escaped);
        let plain = escaped.select(table.swizzle_dyn(bytes & 63), bytes);
        let all = u64::MAX >> last;
        self.keep(simd, plain, all & !slashes);
        length
    }

    /// Puts in these of the bytes, for which there must be room.
    #[inline(always)]
    fn keep<S: Simd>(&mut self, simd: S, bytes: u8x64<S>, kept: u64) {
        if let Some(room) = self.room.get_mut(self.filled..self.filled + WIDE) {
            bytes
                .compress(mask8x64::from_bitmask(simd, kept))
                .store_slice(room);
            self.filled += kept.count_ones() as usize;
        }
    }

    /// Puts in what the first bytes of a window stand for, which begins at `at`; where to go on.
    #[inline(always)]
    fn block(&mut self, source: &str, at: usize, window: &[u8; WINDOW], slashes: u64) -> usize {
        let mut left = slashes;
        let (mut from, mut filled) = (0, self.filled);
        while left != 0 {
            let slash = left.trailing_zeros() as usize % WIDE;
            left &= left - 1;
            // One that is itself escaped lies before what has been read.
            if slash < from {
                continue;
            }
            copy(&mut self.room, filled, window, from);
            if slash > from + NEAR {
                copy(&mut self.room, filled + NEAR, window, from + NEAR);
            }
            filled = filled.wrapping_add(slash - from);
            let escaped = SHORT[usize::from(window[slash + 1])];
            if escaped == 0 {
                self.filled = filled;
                return self.put_escape(source, at + slash);
            }
            if let Some(place) = self.room.get_mut(filled) {
                *place = escaped;
            }
            (from, filled) = (slash + 2, filled.wrapping_add(1));
        }
        self.filled = filled;
        at + from
    }

    /// Ends it.
    pub fn finish(mut self) {
        self.flush();
    }

    /// Puts in the character of the escape at `from`; where to go on.
    #[inline(never)]
    fn put_escape(&mut self, source: &str, from: usize) -> usize {
        let (character, length) = node::escaped(&source[from..]);
        if self.filled > ROOM - 4 {
            self.flush();
        }
        let four = &mut self.room[self.filled..][..4];
        self.filled += character.len_utf8();
        character.encode_utf8(four);
        (from + length).min(source.len())
    }

    /// Puts in a piece that begins a stretch of the source.
    #[inline(always)]
    fn near(&mut self, piece: &[u8; NEAR], length: usize) {
        if self.filled > ROOM - NEAR {
            self.flush();
        }
        if let Some(room) = self.room[self.filled..].first_chunk_mut() {
            *room = *piece;
            self.filled += length;
        }
    }

    #[inline(never)]
    fn far(&mut self, piece: &str) {
        self.flush();
        self.text.push_str(piece);
    }

    #[inline(never)]
    #[expect(clippy::expect_used, reason = "see the invariant")]
    fn flush(&mut self) {
        // INVARIANT: pieces begin and end between characters.
        let room = simdutf8::basic::from_utf8(&self.room[..self.filled]);
        self.text.push_str(room.expect("whole characters"));
        self.filled = 0;
    }
}

/// Copies so many bytes from one place to another, if they are there.
#[inline(always)]
fn copy(room: &mut [u8; ROOM], filled: usize, window: &[u8; WINDOW], from: usize) {
    if let Some(room) = room
        .get_mut(filled..)
        .and_then(<[u8]>::first_chunk_mut::<NEAR>)
        && let Some(piece) = window.get(from..).and_then(<[u8]>::first_chunk::<NEAR>)
    {
        *room = *piece;
    }
}

/// Whether bytes are put beside one another in registers at no cost.
#[inline(always)]
fn compresses<S: Simd>(simd: S) -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(simd.level(), Level::Avx512(_));
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// What one letter behind a backslash stands for, by its lower six bits: of those that are alike in them only `b` and `"` stand
/// there.
const ESCAPED: [u8; WIDE] = {
    let mut escaped = [0; WIDE];
    let mut byte = 0_u8;
    while byte < 128 {
        if SHORT[byte as usize] != 0 && byte != b'b' {
            escaped[(byte & 63) as usize] = SHORT[byte as usize];
        }
        byte += 1;
    }
    escaped
};

/// The letters that stand behind a backslash for one other character.
const LETTERS: [(u8, u8); 5] = [
    (b'n', b'\n'),
    (b't', b'\t'),
    (b'r', b'\r'),
    (b'b', 0x08),
    (b'f', 0x0C),
];

/// What one letter behind a backslash stands for, where it is one character; else zero.
const SHORT: [u8; 256] = {
    let mut short = [0; 256];
    short[b'"' as usize] = b'"';
    short[b'\\' as usize] = b'\\';
    short[b'/' as usize] = b'/';
    short[b'b' as usize] = 0x08;
    short[b'f' as usize] = 0x0C;
    short[b'n' as usize] = b'\n';
    short[b'r' as usize] = b'\r';
    short[b't' as usize] = b'\t';
    short
};

/// What the inside of a valid string stands for.
#[cfg(test)]
pub(super) fn unescaped(inside: &str) -> String {
    use fearless_simd::{Level, dispatch};
    let mut text = String::new();
    let mut pieces = Pieces::onto(&mut text);
    dispatch!(Level::new(), simd => pieces.put_unescaped(simd, inside, 0, inside.len()));
    pieces.finish();
    text
}

#[cfg(test)]
mod tests {
    use fearless_simd::{Level, dispatch};
    use proptest::prelude::*;

    use super::*;
    use crate::json::Json;

    /// What this machine can do, and less.
    fn levels() -> Vec<Level> {
        let best = Level::new();
        #[cfg(target_arch = "x86_64")]
        let less = best.as_avx2().map(Level::Avx2);
        #[cfg(not(target_arch = "x86_64"))]
        let less = None;
        std::iter::once(best).chain(less).collect()
    }

    proptest! {
        #[test]
        fn what_was_put_in_is_what_appending_it_gives(before in "é{0,3}", sources in prop::collection::vec("([a-z\u{e9}\u{1F600}]{0,40}|[a-z]{1500}|[\"\\\\/\n\r\t\u{1}\u{8}\u{c}]{0,9}){0,9}", 0..9), cuts in any::<[prop::sample::Index; 2]>(), byte in 0_u8..0x80) {
            let (mut text, mut plain) = (before.clone(), before);
            let mut pieces = Pieces::onto(&mut text);
            for source in &sources {
                let [one, other] = cuts.map(|cut| source.floor_char_boundary(cut.index(source.len() + 1)));
                let (start, end) = (one.min(other), one.max(other));
                pieces.put(source, start, end);
                plain.push_str(&source[start..end]);
                let spelled = Json::string(&source[start..end]);
                for level in levels() {
                    dispatch!(level, simd => pieces.put_unescaped(simd, spelled.as_str(), 1, spelled.len() - 1));
                    plain.push_str(&source[start..end]);
                }
                pieces.put_ascii(byte);
                plain.push(char::from(byte));
                for behind in [Behind::one(byte), Behind::two([byte, b'!'])] {
                    prop_assert_eq!(pieces.put_before(source, start, end, behind), plain.len());
                    plain.push_str(&source[start..end]);
                    plain.push(char::from(byte));
                    plain.push_str(&"!"[..behind.count - 1]);
                }
                prop_assert_eq!(pieces.len(), plain.len());
            }
            pieces.finish();
            prop_assert_eq!(text, plain);
        }
    }

    #[test]
    fn every_spelling_of_an_escape_is_what_a_parser_makes_of_it_wherever_it_stands() {
        let spellings = [
            r"\/",
            r"\b",
            r"\f",
            r"\n",
            r"\r",
            r"\t",
            r"\\",
            r#"\""#,
            r"\u00e9",
            r"\u0062",
            r"\ud83d\ude00",
            r"\\\\",
            r"\/\n",
            r"\n\b\t",
            r"\\u0041",
            r"\u005c\u0022",
        ];
        for (spelling, before, behind) in spellings
            .iter()
            .flat_map(|spelling| (0..140).map(move |at| (spelling, at)))
            .flat_map(|(spelling, at)| [0, 1, 64, 130].map(|behind| (spelling, at, behind)))
        {
            let source = format!(
                "\"{}{spelling}{}{spelling}\"",
                "a".repeat(before),
                "\u{e9}b".repeat(behind)
            );
            let parsed: String = serde_json::from_str(&source).unwrap();
            for level in levels() {
                let mut text = String::new();
                let mut pieces = Pieces::onto(&mut text);
                dispatch!(level, simd => pieces.put_unescaped(simd, &source, 1, source.len() - 1));
                pieces.finish();
                assert_eq!(text, parsed, "{source}");
            }
        }
    }
}
