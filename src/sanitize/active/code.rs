//! Where Markdown has code, in which nothing is fetched or run.
//!
//! Guarantees: what is called code is code to every renderer of Markdown, whatever the text before it does: a fence that begins
//! in the first column and is closed, and a code span on a line, and in a paragraph, in which nothing could open or close
//! another. Whatever leaves a doubt is no code. The text is read once, up to the last place that was asked about.
//!
//! Deliberately absent: indented code, fences in lists and quotes.

use std::ops::Range;

use wide::u8x16;

use crate::sanitize::{
    survey::{BLOCK, block, places},
    work::looked,
};

/// The code of one text, asked about in rising order.
pub(super) struct Code<'t> {
    text: &'t str,
    /// Where strings begin that lie farther on than what was read; a line begins there, too.
    begins: &'t [usize],
    /// Where the string begins that is read.
    string: usize,
    /// Where the line begins that is read next.
    next: usize,
    /// The fence that was last read, from its first line to after its last.
    fence: (usize, usize),
    /// Whether the paragraph so far holds nothing that reaches beyond its lines.
    paragraph_clear: bool,
    /// Whether a block of HTML may be open.
    html: bool,
    /// Whether it cannot be told any more what is a fence.
    lost: bool,
    /// Whether the string looks like JSON: who takes the strings out of it reads each by itself.
    json: bool,
    /// The line that was last asked about.
    line: Spans,
    /// The next mark of a span, an escape or a tag, and the next of a fence of the other sort.
    marks: [usize; 2],
}

impl<'t> Code<'t> {
    /// Of a text that is made of strings which begin at these places.
    pub(super) fn new(text: &'t str, begins: &'t [usize]) -> Self {
        Self {
            text,
            begins,
            string: 0,
            next: 0,
            fence: (0, 0),
            paragraph_clear: true,
            html: false,
            line: Spans::new(0..0, false, false),
            marks: [0; 2],
            lost: is_document(text),
            json: is_json(text),
        }
    }

    /// Where the next string begins behind what was read, or the text ends.
    fn stop(&mut self) -> usize {
        while let [first, rest @ ..] = self.begins
            && *first <= self.next
        {
            if *first == self.next {
                let end = rest.first().copied().unwrap_or(self.text.len());
                let string = &self.text[self.next..end];
                // It may be none of Markdown at all.
                self.lost |= is_document(string);
                self.json = is_json(string);
            }
            self.string = *first;
            self.begins = rest;
        }
        self.begins.first().copied().unwrap_or(self.text.len())
    }

    /// Whether the byte at `at` is in code.
    pub(super) fn holds(&mut self, at: usize) -> bool {
        self.holds_going(at, Self::hurry)
    }

    /// The same, where `hurry` may pass over lines before it that change nothing.
    fn holds_going(&mut self, at: usize, hurry: impl Fn(&mut Self, usize)) -> bool {
        while !self.lost {
            if at < self.fence.1 {
                return at >= self.fence.0;
            }
            if at < self.line.end {
                return self.line.holds(self.text.as_bytes(), at);
            }
            let stop = self.stop();
            hurry(self, at.min(stop));
            let stop = self.stop();
            let start = self.next;
            let Some(line) = line(&self.text[..stop], start) else {
                return false;
            };
            if at < start + line.len() {
                let clear = self.paragraph_clear
                    && !self.html
                    && fence(line).is_none()
                    && !line.contains('|')
                    && !ends_in_link(
                        &self.text.as_bytes()[start.saturating_sub(BACK).max(self.string)..start],
                    );
                self.line = Spans::new(start..start + line.len(), clear, self.json);
                continue;
            }
            self.read((start, stop), line);
        }
        false
    }

    fn hurry(&mut self, at: usize) {
        if !self.paragraph_clear {
            self.pass(at);
        } else if !self.html {
            self.skip(at);
        }
    }

    /// Goes on to the next line that says anything, where those without marks change nothing.
    fn skip(&mut self, at: usize) {
        let (bytes, from) = (self.text.as_bytes(), self.next);
        let rest = bytes.get(from..).unwrap_or_default();
        let [mark, tilde] = &mut self.marks;
        if *mark <= from {
            let found = memchr::memchr3(b'`', b'\\', b'<', rest);
            *mark = from + found.unwrap_or(rest.len());
            looked(*mark - from);
        }
        if *tilde <= from {
            *tilde = from + memchr::memchr(b'~', rest).unwrap_or(rest.len());
            looked(*tilde - from);
        }
        let near = at.min(*mark).min(*tilde);
        if let Some(lines) = bytes.get(from..near) {
            let line = memchr::memrchr(b'\n', lines);
            looked(lines.len() - line.unwrap_or(0));
            self.next = from + line.map_or(0, |end| end + 1);
        }
    }

    /// Goes on over lines that begin with what says nothing, where the paragraph is not clear any more.
    fn pass(&mut self, at: usize) {
        let bytes = self.text.as_bytes();
        let mut says = begins_with_more(&bytes[self.next..]);
        // Lines are short: their ends and where they begin are looked for together.
        let mut from = self.next;
        while from < at {
            looked(BLOCK);
            let (ends, seen) = lines(bytes, from);
            for end in places(from, ends) {
                if end >= at || says {
                    return;
                }
                self.next = end + 1;
                let seen = seen & (u64::MAX << (end - from)) << 1;
                says = match places(from, seen).next().and_then(|first| bytes.get(first)) {
                    Some(first) => is_more(*first),
                    // It begins in the next block.
                    None => begins_with_more(&bytes[self.next..]),
                };
            }
            from += BLOCK;
        }
    }

    /// Takes note of a line that ends before what is asked about.
    fn read(&mut self, (start, stop): (usize, usize), text: &str) {
        self.next = start + text.len();
        if is_blank(text) {
            self.paragraph_clear = true;
            self.html = false;
            return;
        }
        let marks = text.bytes().take_while(|byte| is_mark(*byte));
        let indented = &text[marks.count()..];
        if let Some(opening) = fence(text) {
            if self.html {
                self.lost = true;
                return;
            }
            // One that is open at the end of a string leaves it open what is a fence behind it.
            match closing(&self.text[..stop], self.next, opening) {
                Some(end) => {
                    self.fence = (start, end);
                    self.next = end;
                    self.paragraph_clear = true;
                }
                None => self.lost = true,
            }
            return;
        }
        if opens_html(indented) {
            // Comments and the like end with a mark of their own, perhaps far away; the others at the next empty line.
            let lasting = ["<!", "<?", "<pre", "<script", "<style", "<textarea"]
                .iter()
                .any(|begin| {
                    indented
                        .get(..begin.len())
                        .is_some_and(|start| start.eq_ignore_ascii_case(begin))
                });
            // A comment that ends on its line is all of its block.
            let comment = indented.starts_with("<!--") && indented.trim_end().ends_with("-->");
            self.lost = lasting && !comment;
            if self.lost {
                return;
            }
            self.html |= !comment;
        }
        self.paragraph_clear &= clear(text, self.json);
    }
}

/// Whether it is a document of HTML or XML, and none of Markdown.
fn is_document(text: &str) -> bool {
    let start = text.trim_start().as_bytes();
    let document = [&b"<!doctype"[..], b"<html", b"<?xml", b"<svg"];
    document
        .iter()
        .any(|begin| start.len() >= begin.len() && start[..begin.len()].eq_ignore_ascii_case(begin))
}

/// Whether it looks like JSON with strings in it.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Whether a quote stands in it that nothing escapes, which ends a string of JSON, or the escape of a line.
fn has_end(text: &[u8]) -> bool {
    let quote = memchr::memchr_iter(b'"', text).any(|at| at == 0 || text[at - 1] != b'\\');
    quote || memchr::memmem::find(text, b"\\n").is_some()
}

/// One bit for each byte of the block at `from`, the first lowest: set at the ends of lines, and where no blank stands.
fn lines(text: &[u8], from: usize) -> (u64, u64) {
    let block = block(text, from);
    let (parts, _) = block.as_chunks::<16>();
    parts.iter().rev().fold((0, 0), |(ends, seen), part| {
        let part = u8x16::new(*part);
        let end = part.simd_eq(u8x16::splat(b'\n'));
        let blank = part.simd_eq(u8x16::splat(b' ')) | part.simd_eq(u8x16::splat(b'\t'));
        let next = |bits: u64, held: u8x16| bits << 16 | u64::from(held.to_bitmask());
        (next(ends, end), next(seen, !blank))
    })
}

/// Whether the line here begins with what may be more than a line of a paragraph, or is blank.
fn begins_with_more(text: &[u8]) -> bool {
    let mut line = text.iter();
    let first = line.find(|byte| !matches!(byte, b' ' | b'\t'));
    first.is_none_or(|byte| is_more(*byte))
}

/// Whether this begins more than a line of a paragraph: an end, a fence, a tag, a quote or a list.
fn is_more(first: u8) -> bool {
    !first.is_ascii_graphic() || b"`~<>-*+".contains(&first)
}

/// Whether nothing is seen on a line.
fn is_blank(line: &str) -> bool {
    // Most lines begin with something that is seen, after a few spaces.
    let first = line.bytes().find(|byte| !matches!(byte, b' ' | b'\t'));
    !first.is_some_and(|byte| byte.is_ascii_graphic()) && line.trim().is_empty()
}

/// The line that begins at `start`, with its end.
fn line(text: &str, start: usize) -> Option<&str> {
    let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
    let end = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |end| end + 1);
    looked(end);
    rest.get(..end)
}

/// The mark and the length of a fence that a line opens in its first column.
fn fence(line: &str) -> Option<(u8, usize)> {
    let mark = line
        .bytes()
        .next()
        .filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = line.bytes().take_while(|byte| *byte == mark).count();
    (length >= 3 && (mark == b'~' || !line[length..].contains('`'))).then_some((mark, length))
}

/// Where the line that closes the fence ends.
fn closing(text: &str, mut start: usize, (mark, length): (u8, usize)) -> Option<usize> {
    while let Some(line) = line(text, start) {
        start += line.len();
        let inside = line.trim_start_matches(' ');
        let closes = inside.bytes().take_while(|byte| *byte == mark).count();
        if line.len() - inside.len() <= 3
            && closes >= length
            && inside[closes..].trim_ascii().is_empty()
        {
            return Some(start);
        }
    }
    None
}

fn opens_html(line: &str) -> bool {
    let mut bytes = line.bytes();
    bytes.next() == Some(b'<')
        && bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'!' | b'?'))
}

/// Whether nothing on the line could pair with something on another, or make a code span of it that is none.
fn clear(line: &str, json: bool) -> bool {
    if memchr::memchr3(b'`', b'\\', b'<', line.as_bytes()).is_none() {
        return true;
    }
    let mut spans = Spans::new(0..line.len(), true, json);
    spans.holds(line.as_bytes(), line.len());
    spans.clear
}

/// The length of what begins here with a backslash or an angle bracket, if it has no part in what is code, whoever reads it: the
/// escape of what is no backtick, and a tag without attributes whose content is read as any other.
fn harmless(text: &[u8]) -> Option<usize> {
    let raw = [
        &b"script"[..],
        b"style",
        b"textarea",
        b"title",
        b"xmp",
        b"pre",
        b"plaintext",
        b"noembed",
        b"noframes",
        b"noscript",
        b"iframe",
        b"svg",
        b"math",
        b"template",
        b"select",
        b"code",
    ];
    match text {
        [b'\\', next, ..] => (!matches!(next, b'`' | b'\\' | b'<')).then_some(2),
        [b'<', rest @ ..] => {
            let slash = usize::from(rest.first() == Some(&b'/'));
            let name = rest[slash..].iter();
            let name = name.take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let end = slash + name;
            let name = &rest[slash..end];
            let whole =
                name.first().is_some_and(u8::is_ascii_alphabetic) && rest.get(end) == Some(&b'>');
            let plain = !raw.iter().any(|raw| name.eq_ignore_ascii_case(raw));
            (whole && plain).then_some(end + 2)
        }
        _ => None,
    }
}

/// How far before a line a link may begin whose target goes on there, in bytes.
const BACK: usize = 2048;

/// Whether the target of a link may go on behind this, which need not be code then: no span begins in a target.
fn ends_in_link(before: &[u8]) -> bool {
    looked(before.len());
    let Some(open) = memchr::memmem::rfind(before, b"](") else {
        return false;
    };
    let mut target = before[open + 2..].iter();
    let (mut depth, mut last) = (0_usize, b' ');
    while let Some(byte) = target.next() {
        match (last, byte) {
            // A title may hold anything, and who begins one is not followed any further.
            (b' ' | b'\t' | b'\n' | b'\r', b'"' | b'\'' | b'(') => return true,
            (b'\n', b'\n') => return false,
            (_, b'\\') => _ = target.next(),
            (_, b')') if depth == 0 => return false,
            (_, b')') => depth -= 1,
            (_, b'(') => depth += 1,
            _ => {}
        }
        last = *byte;
    }
    true
}

/// Whether a label may go on behind this, in which no span begins either.
fn ends_in_label(before: &[u8]) -> bool {
    let label = memchr::memmem::rfind(before, b"][");
    label.is_some_and(|open| !before[open + 2..].contains(&b']'))
}

/// Whether an address may, which is a link where it stands.
fn ends_in_address(before: &[u8]) -> bool {
    let word = before
        .iter()
        .rev()
        .take_while(|byte| !byte.is_ascii_whitespace());
    let word = &before[before.len() - word.count()..];
    // Most words have none of these.
    if memchr::memchr3(b':', b'.', b'@', word).is_none() {
        return false;
    }
    let has = |sign: &[u8]| memchr::memmem::find(word, sign).is_some();
    has(b"://") || has(b"www.") || has(b"@")
}

/// Whether it may go before what a line begins with: blanks, and the marks of quotes and lists.
fn is_mark(byte: u8) -> bool {
    b" \t>-*+.)".contains(&byte) || byte.is_ascii_digit()
}

/// The code spans of one line, read from left to right.
struct Spans {
    /// How far it has been read.
    here: usize,
    end: usize,
    /// The span that was read last.
    span: (usize, usize),
    /// Whether there has been no backslash or tag outside code, and no run of backticks without a partner.
    clear: bool,
    /// Whether no span goes on behind a quote or an escaped line.
    json: bool,
    /// Whether more than marks of quotes and lists was read.
    begun: bool,
}

impl Spans {
    fn new(line: Range<usize>, clear: bool, json: bool) -> Self {
        let Range { start, end } = line;
        Self {
            here: start,
            end,
            span: (start, start),
            clear,
            json,
            begun: false,
        }
    }

    /// Whether the byte at `at` lies in a span; asked in rising order.
    fn holds(&mut self, text: &[u8], at: usize) -> bool {
        while self.clear && self.here < at.min(self.end) {
            match text[self.here] {
                b'`' if self.in_link(text) => self.clear = false,
                b'`' => match self.pair(&text[..self.end]) {
                    Some(end) => {
                        self.span = (self.here, end);
                        self.here = end;
                        self.begun = true;
                    }
                    None => self.clear = false,
                },
                // What begins a line may begin a block of HTML.
                byte @ (b'\\' | b'<') => match harmless(&text[self.here..self.end]) {
                    Some(length) if self.begun || byte == b'\\' => self.here += length,
                    _ => self.clear = false,
                },
                _ => {
                    let rest = &text[self.here..at.min(self.end)];
                    let next = memchr::memchr3(b'`', b'\\', b'<', rest);
                    let next = next.unwrap_or(rest.len());
                    self.begun = self.begun || !rest[..next].iter().all(|byte| is_mark(*byte));
                    self.here += next;
                }
            }
        }
        (self.span.0..self.span.1).contains(&at)
    }

    /// Whether what stands here may belong to a link, or to something else that is read before spans are.
    fn in_link(&self, text: &[u8]) -> bool {
        let before = &text[self.span.1.min(self.here)..self.here];
        looked(before.len());
        let bracket = memchr::memchr(b']', before).is_some();
        bracket && (ends_in_link(before) || ends_in_label(before)) || ends_in_address(before)
    }

    /// Where the span ends that the run of backticks here opens.
    fn pair(&self, line: &[u8]) -> Option<usize> {
        let run = |from: usize| {
            line[from..]
                .iter()
                .take_while(|byte| **byte == b'`')
                .count()
        };
        let length = run(self.here);
        let mut close = self.here + length;
        loop {
            let next = memchr::memchr(b'`', &line[close..]);
            looked(next.unwrap_or(line.len() - close));
            close += next?;
            let other = run(close);
            close += other;
            if other == length {
                let quoted = self.json && has_end(&line[self.here..close]);
                return (!quoted).then_some(close);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn lines_that_are_passed_over_change_nothing(text in "(([ \t]{0,2}(```|~~~|<p>|<!--|[a-z`]{1,9}|[é|#>*+-]|\\\\|`x`))?[ a-z`<]{0,70}(\n|\n\n|\r\n)){0,12}", stride in 1_usize..40) {
            let begins: Vec<_> = text.match_indices("a").map(|(at, _)| at + 1).collect();
            let mut code = Code::new(&text, &begins);
            for at in (0..text.len()).step_by(stride) {
                let plain = Code::new(&text, &begins).holds_going(at, |_, _| ());
                prop_assert_eq!(code.holds(at), plain, "{} of {:?}", at, text);
            }
        }
    }
}
