//! The attributes of a tag, one at a time.
//!
//! Guarantees: split as HTML splits them, with any quoting and separator, and once more as strings of JSON have them: with backslashes
//! before quotes and blanks. Deliberately absent: what an attribute is for (`html.rs`).

/// The attributes of a tag, as HTML splits them.
pub(super) struct Attributes<'t> {
    pub(super) rest: &'t str,
    /// Whether backslashes belong to what is behind them: a quote, and the letter of a blank.
    pub(super) through: bool,
    /// Whether there were any.
    pub(super) escaped: bool,
}

impl<'t> Attributes<'t> {
    /// The next name and its value, as long as more than `left` bytes are left.
    pub(super) fn next_within(&mut self, left: usize) -> Option<(&'t str, Option<&'t str>)> {
        let through = self.through;
        let space = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0B;
        self.rest = without_blanks(self.rest, through, |ch| matches!(ch, '/' | '\u{0B}'));
        if self.rest.len() <= left || self.rest.is_empty() || self.rest.starts_with('>') {
            return None;
        }
        let bytes = self.rest.as_bytes();
        let end = (1..bytes.len())
            .find(|at| {
                let byte = bytes[*at];
                let escape = blank(&bytes[*at..]).is_some();
                self.escaped |= escape;
                space(byte) || matches!(byte, b'/' | b'>' | b'=') || escape && through
            })
            .unwrap_or(bytes.len());
        // The first byte may begin a longer character, whose end is no separator.
        let (name, after) = self.rest.split_at_checked(end)?;
        self.rest = after;
        let trimmed = without_blanks(after, through, |_| false);
        let Some(value) = trimmed.strip_prefix('=') else {
            return Some((name, None));
        };
        self.escaped |= blank(value.as_bytes()).is_some();
        let value = without_blanks(value, through, |_| false);
        let behind = value.trim_start_matches('\\');
        let escaped = behind.len() < value.len() && behind.starts_with(['"', '\'']);
        self.escaped |= escaped;
        let value = if escaped && self.through {
            behind
        } else {
            value
        };
        let quote = value
            .bytes()
            .next()
            .filter(|byte| matches!(byte, b'"' | b'\''));
        let (value, rest) = match quote {
            Some(quote) => {
                let inner = &value[1..];
                let (value, rest) = match memchr::memchr(quote, inner.as_bytes()) {
                    Some(end) => (&inner[..end], &inner[end + 1..]),
                    None => (inner, ""),
                };
                if escaped {
                    (value.trim_end_matches('\\'), rest)
                } else {
                    (value, rest)
                }
            }
            None => {
                let bytes = value.as_bytes();
                let end = (0..bytes.len())
                    .find(|at| {
                        let escape = blank(&bytes[*at..]).is_some();
                        self.escaped |= escape;
                        space(bytes[*at]) || bytes[*at] == b'>' || escape && through
                    })
                    .unwrap_or(value.len());
                (&value[..end], &value[end..])
            }
        };
        self.rest = rest;
        Some((name, Some(value)))
    }
}

/// The length of the escaped blank that begins here, as strings of JSON have it, or of one in JSON of JSON.
pub(super) fn blank(text: &[u8]) -> Option<usize> {
    let slashes = text
        .iter()
        .take(8)
        .take_while(|byte| **byte == b'\\')
        .count();
    let letter = || matches!(text.get(slashes), Some(b'n' | b'r' | b't' | b'f'));
    (slashes > 0 && letter()).then_some(slashes + 1)
}

/// What is left behind blanks, and behind escaped ones where these count, and what else is passed over.
fn without_blanks(mut text: &str, escaped: bool, also: impl Fn(char) -> bool) -> &str {
    loop {
        text = text.trim_start_matches(|ch: char| ch.is_ascii_whitespace() || also(ch));
        let slash = text.starts_with("\\/") && also('/');
        match blank(text.as_bytes()).or(slash.then_some(2)) {
            Some(length) if escaped => text = &text[length..],
            _ => return text,
        }
    }
}
