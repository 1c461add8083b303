//! Where Markdown has code, in which nothing is fetched or run.
//!
//! Guarantees: what is called code is code to every renderer of Markdown, whatever the text before it does: a fence that begins
//! in the first column and is closed, and a code span on a line, and in a paragraph, in which nothing could open or close
//! another. Whatever leaves a doubt is no code. The text is read once, up to the last place that was asked about.
//!
//! Deliberately absent: indented code, fences in lists and quotes.

/// The code of one text, asked about in rising order.
pub(super) struct Code<'t> {
    text: &'t str,
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
}

impl<'t> Code<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let start = text.trim_start().as_bytes();
        let document = [&b"<!doctype"[..], b"<html", b"<?xml", b"<svg"];
        Self {
            text,
            next: 0,
            fence: (0, 0),
            paragraph_clear: true,
            html: false,
            lost: document
                .iter()
                .any(|begin| start.len() >= begin.len() && start[..begin.len()].eq_ignore_ascii_case(begin)),
        }
    }

    /// Whether the byte at `at` is in code.
    pub(super) fn holds(&mut self, at: usize) -> bool {
        while !self.lost {
            if at < self.fence.1 {
                return at >= self.fence.0;
            }
            let start = self.next;
            let Some(line) = line(self.text, start) else {
                return false;
            };
            if at < start + line.len() {
                // This line is read again for the next place on it.
                return fence(line).is_none() && self.paragraph_clear && !self.html && span(line, at - start);
            }
            self.read(start, line);
        }
        false
    }

    /// Takes note of a line that ends before what is asked about.
    fn read(&mut self, start: usize, text: &str) {
        self.next = start + text.len();
        if text.trim().is_empty() {
            self.paragraph_clear = true;
            self.html = false;
            return;
        }
        let indented = text.trim_start_matches([' ', '\t', '>', '-', '*', '+']);
        if let Some(opening) = fence(text) {
            if self.html {
                self.lost = true;
                return;
            }
            match closing(self.text, self.next, opening) {
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
                .any(|begin| indented.get(..begin.len()).is_some_and(|start| start.eq_ignore_ascii_case(begin)));
            if lasting && !(indented.starts_with("<!--") && indented.trim_end().ends_with("-->")) {
                self.lost = true;
                return;
            }
            self.html = true;
        }
        self.paragraph_clear &= clear(text);
    }
}

/// The line that begins at `start`, with its end.
fn line(text: &str, start: usize) -> Option<&str> {
    let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
    let end = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |end| end + 1);
    rest.get(..end)
}

/// The mark and the length of a fence that a line opens in its first column.
fn fence(line: &str) -> Option<(u8, usize)> {
    let mark = line.bytes().next().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = line.bytes().take_while(|byte| *byte == mark).count();
    (length >= 3 && (mark == b'~' || !line[length..].contains('`'))).then_some((mark, length))
}

/// Where the line that closes the fence ends.
fn closing(text: &str, mut start: usize, (mark, length): (u8, usize)) -> Option<usize> {
    while let Some(line) = line(text, start) {
        start += line.len();
        let inside = line.trim_start_matches(' ');
        let closes = inside.bytes().take_while(|byte| *byte == mark).count();
        if line.len() - inside.len() <= 3 && closes >= length && inside[closes..].trim_ascii().is_empty() {
            return Some(start);
        }
    }
    None
}

fn opens_html(line: &str) -> bool {
    let mut bytes = line.bytes();
    bytes.next() == Some(b'<')
        && bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'!' | b'?'))
}

/// Whether nothing on the line could pair with something on another, or make a code span of it that is none.
fn clear(line: &str) -> bool {
    spans(line.as_bytes(), None).is_some()
}

/// Whether the byte at `at` of the line is in a code span.
fn span(line: &str, at: usize) -> bool {
    !line.contains('|') && spans(line.as_bytes(), Some(at)) == Some(true)
}

/// Pairs the backticks of a line. `None` if there is a backslash or a tag outside code, or a run without a partner, up to
/// `at` or, without it, to the end of the line; otherwise whether `at` lies in code.
fn spans(line: &[u8], at: Option<usize>) -> Option<bool> {
    let mut here = 0;
    while let Some(byte) = line.get(here) {
        if at.is_some_and(|at| here >= at) {
            return Some(false);
        }
        match byte {
            b'`' => {
                let run = |from: usize| line[from..].iter().take_while(|byte| **byte == b'`').count();
                let length = run(here);
                let mut close = here + length;
                loop {
                    close += memchr::memchr(b'`', &line[close..])?;
                    let other = run(close);
                    if other == length {
                        break;
                    }
                    close += other;
                }
                if at.is_some_and(|at| at < close) {
                    return Some(true);
                }
                here = close + length;
            }
            b'\\' | b'<' => return None,
            _ => here += 1,
        }
    }
    Some(false)
}
