//! Decoded forms of what a text holds encoded or disguised, which may be what a rule looks for.
//! A form is Base64, hexadecimal, percent form, `\u` escapes, look-alike letters, or letters between which something is not seen.
//!
//! Guarantees: linear in the text; text that holds no such form costs nothing beside the pass that all detectors share.
//! Deliberately absent: what cannot be seen in a run of its own alphabet, such as Base64 of fewer than 20 characters, or in
//! lines of fewer.

use std::ops::Range;

use fearless_simd::{Level, Simd, dispatch, prelude::*};
use unicode_normalization::UnicodeNormalization;

use super::{
    hidden::{KEY, may_be_unseen},
    readable::{self, Stretches, TEXT, is_text, is_written},
    survey::{BLOCK, Encoded, Form, Found, KEEP, Marks, Survey, all_places, bits, places},
    tail::SEAM,
    terminal::between,
    work::looked,
};

/// Texts decoded from pieces of another text, one after the other with a line end between.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) text: String,
    /// Where each begins, and the piece that it was decoded from.
    pieces: Vec<(usize, Range<usize>)>,
    bytes: Vec<u8>,
    /// Where text is in a run, wherever in its first four characters it begins.
    stretches: [Stretches; 4],
}

/// How much of a token in escapes, percent form or look-alike letters is decoded at once, to each side.
const TOKEN: usize = 8 << 10;
/// How much of what was decoded is decoded once more with what goes on: nothing hides where a token was cut. Of the longest
/// form, six bytes each, it is as much as of blocks is read together.
const AGAIN: usize = 6 * SEAM;

impl Decoded {
    /// Forgets everything, and gives back more memory than is worth keeping.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.pieces.clear();
        self.bytes.clear();
        self.text.shrink_to(KEEP);
        self.bytes.shrink_to(KEEP);
        self.pieces.shrink_to(KEEP / 32);
        for stretches in &mut self.stretches {
            stretches.clear();
            stretches.shrink_to(KEEP / 64);
        }
    }

    /// Decodes what can be decoded in `text`.
    pub(super) fn read(&mut self, text: &str, survey: &Survey) {
        self.clear();
        let bytes = text.as_bytes();
        for encoded in &survey.encoded {
            self.run(&bytes[encoded.run.clone()], encoded.form, &encoded.run);
        }
        self.wrapped(bytes, &survey.encoded);
        tokens(bytes, &survey.percent, is_hex_pair, |token| {
            self.percent(bytes, token);
        });
        tokens(bytes, &survey.unicode, is_unicode_escape, |token| {
            self.escapes(text, token);
        });
        self.letters(text, survey);
    }

    /// The piece of the source that a place here was decoded from.
    pub(super) fn source(&self, at: usize) -> Range<usize> {
        let after = self.pieces.partition_point(|(begins, _)| *begins <= at);
        self.pieces
            .get(after.wrapping_sub(1))
            .map_or(0..0, |(_, piece)| piece.clone())
    }

    fn add(&mut self, text: &str, source: &Range<usize>) {
        self.pieces.push((self.text.len(), source.clone()));
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// The same, and once more without what is not seen and what only a terminal sees, which may be what splits a key.
    fn add_escaped(&mut self, text: &str, source: &Range<usize>) {
        self.add(text, source);
        let mut seen = String::new();
        between(text, |part| {
            seen.extend(part.chars().filter(|ch| !may_be_unseen(*ch)))
        });
        if seen.len() < text.len() {
            self.add(&seen, source);
        }
    }

    /// Runs of Base64 that are the lines of one text, as programs wrap it: all of one length, but for the last.
    fn wrapped(&mut self, text: &[u8], all: &[Encoded]) {
        let mut rest = all;
        while let [first, after @ ..] = rest {
            let follows = |(one, two): &(&Encoded, &Encoded)| {
                let width = first.run.len();
                let between = &text[one.run.end..two.run.start];
                matches!(between, b"\n" | b"\r\n")
                    && one.run.len() == width
                    && two.run.len() <= width
            };
            let lines = 1 + rest.iter().zip(after).take_while(follows).count();
            let mut source = first.run.start..rest[lines - 1].run.end;
            // After a line as wide as the first another run would be one of the lines, if it were a last one.
            let wide = rest[lines - 1].run.len() == first.run.len();
            let next = rest.get(lines).filter(|_| wide);
            let next = next.map_or(usize::MAX, |next| next.run.start);
            let behind = &text[source.end..text.len().min(next)];
            let certain = lines > 1 || WIDTHS.contains(&first.run.len());
            let last = last_line(behind, first.run.len(), certain);
            // A single line is one of several where it is as long as programs make them.
            if lines > 1 || (last > 0 && first.run.len() >= WIDTH) {
                source.end += last;
                let form = match first.form {
                    Form::Hexadecimal | Form::Either => Form::Either,
                    Form::Base64 => Form::Base64,
                };
                self.lines(text, form, source);
            }
            rest = &rest[lines..];
        }
    }

    /// A run that is broken into lines.
    fn lines(&mut self, text: &[u8], form: Form, source: Range<usize>) {
        let lines = text[source.clone()].iter();
        let joined = lines.filter(|byte| !matches!(byte, b'\r' | b'\n'));
        let joined: Vec<u8> = joined.copied().collect();
        self.run(&joined, form, &source);
    }

    /// A run of characters of Base64, which are hexadecimal digits too, perhaps.
    fn run(&mut self, piece: &[u8], form: Form, source: &Range<usize>) {
        looked(piece.len());
        let hexadecimal = match form {
            Form::Hexadecimal => true,
            Form::Base64 => false,
            Form::Either => piece.iter().all(u8::is_ascii_hexdigit),
        };
        if hexadecimal {
            if readable::hexadecimal(piece) {
                self.bytes.clear();
                let pairs = piece.chunks_exact(2);
                self.bytes
                    .extend(pairs.map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])));
                self.printed(source);
            }
            // Nothing comes of them as Base64.
            return;
        }
        if self.is_text_throughout(piece) {
            self.printed(source);
            return;
        }
        let mut stretches = std::mem::take(&mut self.stretches);
        readable::base64(piece, &mut stretches);
        let all = stretches.iter().enumerate();
        for (shift, text) in
            all.flat_map(|(shift, texts)| texts.iter().map(move |text| (shift, text)))
        {
            // Whole fours, and with what ends the text: no stretch goes on beyond them.
            let fours = |characters: usize| shift + characters.saturating_sub(shift) / 4 * 4;
            let end = piece.len().min(fours(text.end) + 4);
            let piece = &piece[fours(text.start).min(end)..end];
            looked(piece.len());
            self.bytes.clear();
            decode(piece, &mut self.bytes);
            self.printed(source);
        }
        self.stretches = stretches;
    }

    /// Decodes a run of Base64 that is one text from its first character to its last, as most are that hold any; false for others,
    /// of which little is looked at. No other text hides in it then.
    fn is_text_throughout(&mut self, run: &[u8]) -> bool {
        self.bytes.clear();
        for part in run.chunks(BLOCK) {
            looked(part.len());
            let before = self.bytes.len();
            decode(part, &mut self.bytes);
            // No early end within a part: so the compiler looks at many at once.
            let control = |byte: &u8| matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 127);
            let part = self.bytes[before..].iter();
            if part.fold(false, |any, byte| any | control(byte)) {
                return false;
            }
        }
        self.bytes.len() >= TEXT
            && std::str::from_utf8(&self.bytes).is_ok()
            && !may_hide_another(&self.bytes)
    }

    /// Takes the stretches of readable text from what was decoded to bytes.
    fn printed(&mut self, source: &Range<usize>) {
        let bytes = std::mem::take(&mut self.bytes);
        dispatch!(Level::new(), simd => self.each_stretch(simd, &bytes, source));
        self.bytes = bytes;
    }

    #[inline(always)]
    fn each_stretch<S: Simd>(&mut self, simd: S, bytes: &[u8], source: &Range<usize>) {
        let (mut from, mut beyond) = (0, false);
        for at in (0..bytes.len()).step_by(BLOCK) {
            let marks = Marks::at(simd, bytes, at);
            beyond |= marks.at_least(0x80).any_true();
            for control in places(at, bits(marks.control())) {
                self.stretch(&bytes[from..control], beyond, source);
                from = control + 1;
            }
        }
        self.stretch(&bytes[from..], beyond, source);
    }

    /// Takes a stretch without control characters, if it is a text; `beyond` says that not all of it need be ASCII.
    #[inline]
    fn stretch(&mut self, stretch: &[u8], beyond: bool, source: &Range<usize>) {
        if stretch.len() < TEXT {
            return;
        }
        if !beyond && let Ok(plain) = std::str::from_utf8(stretch) {
            self.add(plain, source);
        } else {
            self.plain_of(stretch, source);
        }
    }

    #[inline(never)]
    fn plain_of(&mut self, stretch: &[u8], source: &Range<usize>) {
        let plain = || stretch.iter().filter(|byte| byte.is_ascii());
        let count = plain().count();
        if is_written(count, stretch.len(), readable::odd(stretch)) {
            self.add_escaped(&String::from_utf8_lossy(stretch), source);
        }
        // Characters beyond ASCII may be what splits a key: they stay out of it.
        if is_text(count, stretch.len()) {
            self.pieces.push((self.text.len(), source.clone()));
            self.text.extend(plain().map(|byte| char::from(*byte)));
            self.text.push('\n');
        }
    }

    fn percent(&mut self, text: &[u8], token: Range<usize>) {
        let piece = &text[token.clone()];
        looked(piece.len());
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut at = 0;
        while at < piece.len() {
            if piece[at] == b'%' && is_hex_pair(&piece[at + 1..]) {
                bytes.push(nibble(piece[at + 1]) << 4 | nibble(piece[at + 2]));
                at += 3;
            } else {
                bytes.push(piece[at]);
                at += 1;
            }
        }
        self.add_escaped(&String::from_utf8_lossy(&bytes), &token);
        self.bytes = bytes;
    }

    fn escapes(&mut self, text: &str, token: Range<usize>) {
        let piece = &text[token.clone()];
        looked(piece.len());
        let mut plain = String::with_capacity(piece.len());
        let mut rest = piece;
        // Of a pair of surrogates the first.
        let mut high = None;
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            plain.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if is_unicode_escape(rest.as_bytes()) {
                let unit = u16::from_str_radix(&rest[1..5], 16).unwrap_or(0);
                let before = high.take().filter(|_| at == 0);
                let units = before.into_iter().chain([unit]);
                plain.extend(char::decode_utf16(units).flatten());
                high = Some(unit).filter(|unit| matches!(unit, 0xD800..=0xDBFF));
                rest = &rest[5..];
            }
        }
        plain.push_str(rest);
        self.add_escaped(&plain, &token);
    }

    /// Letters and digits in forms that read as others: full width, mathematical, circled (NFKC), or on keys. What is not seen behind
    /// one of ASCII may be in its place, as a mark beside a dash or a selector before a key is, and splits nothing all the same.
    fn letters(&mut self, text: &str, survey: &Survey) {
        let mut from = 0;
        for at in rising(all_places(&survey.forms), all_places(&survey.hidden)) {
            if at < from || !is_other_form(&text.as_bytes()[at..]) && !is_unseen_in_word(text, at) {
                continue;
            }
            let part = |character: &char| {
                character.is_ascii_alphanumeric()
                    || matches!(character, '_' | '-' | '+' | '/' | '=' | '.' | ':')
                    || matches!(character, '＿' | '－' | '＋' | '／' | '＝' | '．' | '：')
                    || is_other_form(character.encode_utf8(&mut [0; 4]).as_bytes())
                    || may_be_unseen(*character)
            };
            let farthest = text.floor_char_boundary(from.saturating_sub(AGAIN));
            let before = text[farthest..at].chars().rev();
            let before = before.take(TOKEN).take_while(part);
            let start = at - before.map(char::len_utf8).sum::<usize>();
            let after = text[at..].chars().take(TOKEN).take_while(part);
            let end = at + after.map(char::len_utf8).sum::<usize>();
            looked(end - start);
            from = end;
            // What is not seen beside it splits nothing, and is left alone.
            let piece = text[start..end].trim_start_matches(may_be_unseen);
            let start = end - piece.len();
            let piece = piece.trim_end_matches(may_be_unseen);
            if piece.len() < TEXT {
                continue;
            }
            let seen = piece.chars();
            let seen = seen.filter(|character| *character != KEY && !may_be_unseen(*character));
            let plain: String = seen.nfkc().collect();
            if plain != piece {
                self.add(&plain, &(start..start + piece.len()));
            }
        }
    }
}

/// The fewest digits of a card: nothing shorter that could hide is known without a word beside it.
const CARD: usize = 12;

/// Whether another text may begin with the third character of the Base64 of this one. The first four bits of its bytes are the last
/// four of these, and of ASCII they are 2 to 7, but for controls: texts of no language have so many of these in a row. What begins
/// with the second character could be of capitals only, and with the fourth of a quarter of all characters.
fn may_hide_another(text: &[u8]) -> bool {
    let may = |byte: &&u8| matches!(*byte & 15, 2..=7);
    // One of so many in a row stands in one of these places.
    let mut places = (CARD - 1..text.len()).step_by(CARD);
    places.any(|at| {
        let (before, after) = text.split_at(at);
        let after = after.iter().take_while(may).count();
        after > 0 && before.iter().rev().take_while(may).count() + after >= CARD
    })
}

/// The least width to which programs wrap Base64.
const WIDTH: usize = 60;
/// The widths that most of them have.
const WIDTHS: [usize; 5] = [WIDTH, 64, 70, 72, 76];

/// How long the last line is of what is wrapped to this width, with the line end before it, where it is too short to be a run; of
/// what is certainly wrapped, also where a sentence might go on there.
fn last_line(text: &[u8], width: usize, certain: bool) -> usize {
    let end = match text {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => return 0,
    };
    let part =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    let line = text[end..].iter().take(width).take_while(part).count();
    if line == 0 || line == width || !certain && is_sentence(&text[end..], line) {
        0
    } else {
        end + line
    }
}

/// Whether a sentence goes on here, by its first word, which is so long: small letters, the first of which may be a capital, and
/// a blank behind, or a mark and a blank. The last line of what is wrapped seldom has one case, and ends where it does.
fn is_sentence(text: &[u8], word: usize) -> bool {
    let (word, behind) = text.split_at(word);
    let small = word.iter().skip(1).all(u8::is_ascii_lowercase);
    let mark = matches!(
        behind,
        [b',' | b'.' | b':' | b';' | b'?' | b'!' | b')', b' ', ..]
    );
    small && word[0].is_ascii_alphabetic() && (mark || behind.first() == Some(&b' '))
}

/// Tells every token, cut by white space, quotes and angles, that holds one of these marks with what `goes_on` says follows it.
fn tokens(
    text: &[u8],
    marks: &[Found],
    goes_on: impl Fn(&[u8]) -> bool,
    mut each: impl FnMut(Range<usize>),
) {
    let part = |byte: &&u8| !matches!(byte, 0..=b' ' | b'"' | b'\'' | b'<' | b'>' | b'`');
    let mut done = 0;
    for at in all_places(marks) {
        if at < done || !goes_on(&text[at + 1..]) {
            continue;
        }
        let before = text[done.saturating_sub(AGAIN)..at]
            .iter()
            .rev()
            .take(TOKEN)
            .take_while(part)
            .count();
        let after = text[at..].iter().take(TOKEN).take_while(part).count();
        looked(before + after);
        let (mut start, mut end) = (at - before, at + after);
        while !text.is_empty() && start < at && is_inner(text[start]) {
            start += 1;
        }
        while end < text.len() && is_inner(text[end]) {
            end += 1;
        }
        done = end;
        each(start..end);
    }
}

/// Whether a byte of UTF-8 is not the first of its character.
const fn is_inner(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn is_hex_pair(rest: &[u8]) -> bool {
    matches!(rest, [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

fn is_unicode_escape(rest: &[u8]) -> bool {
    matches!(rest, [b'u', digits @ ..] if digits.len() >= 4 && digits[..4].iter().all(u8::is_ascii_hexdigit))
}

/// The places of both, which rise.
fn rising(
    one: impl Iterator<Item = usize>,
    other: impl Iterator<Item = usize>,
) -> impl Iterator<Item = usize> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(first), Some(second)) if second < first => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}

/// Whether what is not seen stands at this place behind a letter, a digit or a sign of ASCII that may be of a secret.
fn is_unseen_in_word(text: &str, at: usize) -> bool {
    let before = text.as_bytes()[..at].last();
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-+/=.:".contains(byte))
        && text[at..].chars().next().is_some_and(may_be_unseen)
}

/// Whether a text begins with a letter or digit in another form, or with the key around one.
const fn is_other_form(text: &[u8]) -> bool {
    matches!(
        text,
        [0xEF, 0xBC, 0x90..=0x99 | 0xA1..=0xBA, ..]
            | [0xEF, 0xBD, 0x81..=0x9A, ..]
            | [0xF0, 0x9D, 0x90..=0x9F, ..]
            | [0xE2, 0x83, 0xA3, ..]
            | [0xE2, 0x92, 0xB6..=0xBF, ..]
            | [0xE2, 0x93, 0x80..=0xA9, ..]
    )
}

/// Adds what characters of Base64 stand for.
fn decode(characters: &[u8], bytes: &mut Vec<u8>) {
    let (fours, rest) = characters.as_chunks::<4>();
    let before = bytes.len();
    // Room for all of them at once: to make it for each takes longer than decoding.
    bytes.resize(before + fours.len() * 3, 0);
    let (threes, _) = bytes[before..].as_chunks_mut::<3>();
    for (to, from) in threes.iter_mut().zip(fours) {
        *to = three(from);
    }
    let mut last = [b'A'; 4];
    last[..rest.len()].copy_from_slice(rest);
    bytes.extend_from_slice(&three(&last)[..(rest.len() * 3 / 4).min(3)]);
}

/// What four characters of Base64 stand for.
#[inline]
fn three(four: &[u8; 4]) -> [u8; 3] {
    let sextet = |nth: usize| u32::from(SEXTETS[usize::from(four[nth])]);
    let all = sextet(0) << 18 | sextet(1) << 12 | sextet(2) << 6 | sextet(3);
    let [_, bytes @ ..] = all.to_be_bytes();
    bytes
}

/// What each character of either Base64 alphabet stands for.
const SEXTETS: [u8; 256] = {
    let mut sextets = [63; 256];
    let mut byte = 0;
    while byte < 128 {
        sextets[byte as usize] = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            _ => 63,
        };
        byte += 1;
    }
    sextets
};

const fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10) & 0xF,
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose};
    use proptest::prelude::*;

    use super::*;

    fn decoded(text: &str) -> Decoded {
        let mut decoded = Decoded::default();
        decoded.read(text, &Survey::of(text));
        decoded
    }

    const KEY: &str = "AKIAIOSFODNN7EXAMPLX";

    #[test]
    fn each_form_is_read_and_known_by_the_piece_it_stood_in() {
        let base64 = general_purpose::STANDARD.encode(KEY);
        let unpadded = general_purpose::URL_SAFE_NO_PAD.encode(format!("key={KEY}?>"));
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        let percent: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let escapes: String = KEY.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        let wide: String = KEY
            .chars()
            .filter_map(|c| char::from_u32(c as u32 + 0xFEE0))
            .collect();
        for form in [
            base64.as_str(),
            &unpadded,
            &format!("x{base64}"),
            &format!("ab/{base64}"),
            &hex,
            &hex.to_uppercase(),
            &percent,
            "%41KIAIOSFODNN7EXAMPLX",
            &escapes,
            "\\u0041KIAIOSFODNN7EXAMPLX",
            &wide,
            "ＡKIAIOSFODNN7EXAMPLX",
        ] {
            for before in ["", "see ", "日本 ", "é\n"] {
                let text = format!("{before}{form} and more");
                let read = decoded(&text);
                let at = read.text.find(KEY);
                let at = at.unwrap_or_else(|| panic!("{text}: {:?}", read.text));
                let source = read.source(at);
                let piece = &text[source];
                assert!(
                    form.trim_end_matches('=') == piece || form == piece,
                    "{text}: {piece}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_seen_in_a_form_splits_nothing() {
        for form in [
            "AKIAIOSF\\u200bODNN7EXAMPLX",
            "AKIAIOSF\\u001b[31mODNN7EXAMPLX",
            "AKIAIOSF\\u0008ODNN7EXAMPLX",
            "AKIAIOSF\\udb40\\udc41ODNN7EXAMPLX",
            "AKIAIOSF%E2%80%8BODNN7EXAMPLX",
            "AKIAIOSF%1B[31mODNN7EXAMPLX",
            "AKIAIOSF%C2%9B31mODNN7EXAMPLX",
            // What no sequence takes away is kept as it stands.
            "\\u001b]AKIAIOSFODNN7EXAMPLX",
            "\\u001b[31mAKIAIOSFODNN7EXAMPLX",
        ] {
            let read = decoded(&format!("see {form} there"));
            assert!(read.text.contains(KEY), "{form}: {:?}", read.text);
        }
        // Pairs are one character, and half a pair is none.
        let pair = decoded("\\ud835\\udc00\\ud835x\\udc00\\u0041");
        assert_eq!(pair.text, "\u{1d400}xA\n");
    }

    #[test]
    fn base64_is_read_across_its_lines() {
        let text = format!(
            "{}{KEY} and so on",
            "a line that is long enough. ".repeat(2)
        );
        let one = general_purpose::STANDARD.encode(&text);
        for (width, end) in [(76, "\n"), (64, "\r\n"), (24, "\n"), (88, "\n")] {
            let lines: Vec<_> = one
                .as_bytes()
                .chunks(width)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            let wrapped = lines.join(end);
            let text = format!("see:\n{wrapped}\nand more");
            let read = decoded(&text);
            let at = read.text.find(KEY);
            let at = at.unwrap_or_else(|| panic!("{text}: {:?}", read.text));
            let source = read.source(at);
            assert!(wrapped.contains(&text[source.clone()]), "{source:?}");
        }
        // Words and numbers that stand in lines are no text of one width.
        let lines = "aGVsbG8gd29ybGQgaGVsbG8\nd29ybGQgaGVsbG8gd29ybGQgaGVsbG8";
        assert_eq!(decoded(lines).pieces.len(), 2);
    }

    #[test]
    fn a_text_is_decoded_once_whatever_follows_it() {
        let text = "a line that is long enough to be one of several, and longer";
        let one = general_purpose::STANDARD_NO_PAD.encode(text);
        let longer = general_purpose::STANDARD_NO_PAD.encode(text.repeat(2));
        for behind in [
            "",
            "\nAnd so on",
            "\nand, so on",
            "\n\nso on",
            &format!("\n{longer}"),
        ] {
            let read = decoded(&format!("see {one}{behind}"));
            assert_eq!(
                read.text.matches(text).count(),
                1 + 2 * usize::from(behind.len() > 80)
            );
        }
        // A last line may end in anything that is not the rest of a sentence.
        for behind in [
            "\nIGFuZA",
            "\nIGFuZA, and",
            "\nabcd\n",
            "\nabcd\"",
            "\nabcD and",
        ] {
            let read = decoded(&format!("see {one}{behind}"));
            assert_eq!(read.text.matches(text).count(), 2, "{behind}");
        }
    }

    #[test]
    fn ordinary_text_yields_next_to_nothing() {
        let text = "The quick brown fox jumps over the lazy dog; see src/sanitize/decoded.rs, https://example.com/a/b?c=d \
            and some_rather_long_function_name_in_snake_case(argument). 日本語の文章、“quotes” — and emoji 🎉.";
        assert_eq!(decoded(text).text, "");
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_pieces_lie_in_the_text(text in "(\\PC|[%\\\\uA-Fa-f0-9]|[A-Za-z0-9+/]{20,40}|ＡＢ){0,40}") {
            let read = decoded(&text);
            for (_, piece) in &read.pieces {
                prop_assert!(text.get(piece.clone()).is_some());
            }
        }
    }
}
