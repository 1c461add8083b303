//! Images, links and definitions of Markdown.
//!
//! Guarantees: an image of another host is found in every form, and where brackets, code or tags inside its text leave it open
//! what an image is, it counts as one. Deliberately absent: the block structure (see [`super::code`] for what it would take).

use super::{
    Rule,
    target::{self, Hosts, LONGEST, Leads, Written},
};

/// Bytes of a label that are read; CommonMark allows 999 characters.
const LABEL: usize = 1024;

/// What is remembered about one text, so that it is read once.
pub(super) struct Markdown<'t> {
    text: &'t str,
    /// Where strings begin that it is made of.
    begins: &'t [usize],
    hosts: &'t Hosts,
    /// Hashes of the labels whose definitions lead away, sorted; made when an image first refers to one.
    labels: Option<Vec<u64>>,
    /// The next target that leads away, at or after where was last asked for it.
    next_away: Option<usize>,
    /// Where the search for it goes on.
    searched: usize,
}

impl<'t> Markdown<'t> {
    pub(super) fn new(text: &'t str, begins: &'t [usize], hosts: &'t Hosts) -> Self {
        Self {
            text,
            begins,
            hosts,
            labels: None,
            next_away: None,
            searched: 0,
        }
    }

    /// Judges the image whose `![` stands at `at`. Takes what it reads from `budget`.
    pub(super) fn image(&mut self, at: usize, budget: &mut usize) -> Option<Rule> {
        if escaped(self.text.as_bytes(), at) {
            return None;
        }
        let inside = self.text.get(at + 2..)?;
        if let Some(embedded) = inside.strip_prefix('[')
            && self.away(upto(embedded, [b']', b'|', b'\n'], LONGEST))
        {
            return Some(Rule::Image);
        }
        let read = alt(inside.as_bytes(), *budget);
        *budget = budget.saturating_sub(read.length);
        if let Some(end) = read.close {
            let alt = inside.get(..end).unwrap_or_default();
            let after = inside.get(end + 1..).unwrap_or_default();
            let bad = match after.bytes().next() {
                // What is no link after all is the label of a definition.
                Some(b'(') => self.away(destination(&after[1..], LONGEST)) || self.defined(alt),
                Some(b'[') => {
                    let label = label(&after[1..]);
                    self.defined(if label.trim().is_empty() { alt } else { label })
                }
                _ => self.defined(alt),
            };
            if bad {
                return Some(Rule::Image);
            }
        }
        if !read.clear || *budget == 0 {
            // A renderer may see another end than was seen here.
            let end = at + 2 + read.length;
            if self.next_away(at).is_some_and(|next| next <= end) || !self.labels().is_empty() {
                return Some(Rule::Image);
            }
        }
        None
    }

    /// Judges the link whose `](` stands at `at`.
    pub(super) fn link(&self, at: usize, budget: &mut usize) -> Option<Rule> {
        self.leads_to(self.text.get(at + 2..)?, budget)
    }

    /// Judges the definition whose `]:` stands at `at`, if it is one.
    pub(super) fn definition(&self, at: usize, budget: &mut usize) -> Option<Rule> {
        let rest = self.text.get(at + 2..)?;
        let rule = self.leads_to(rest, budget)?;
        // A word with a colon, as logs have it, is a scheme with nothing behind it.
        let target = destination(rest, LONGEST);
        let colon = target.find(':').map(|colon| colon + 1);
        let word = target.len() < LONGEST && colon == Some(target.len());
        label_before(self.text, self.begins, at)
            .filter(|_| !word)
            .map(|_| rule)
    }

    fn leads_to(&self, rest: &str, budget: &mut usize) -> Option<Rule> {
        let target = destination(rest, LONGEST);
        match target::leads(target, Written::Markdown, self.hosts) {
            Leads::Danger | Leads::Drawing => Some(Rule::Link),
            Leads::Away if target.len() < LONGEST => {
                target::carries(target).then_some(Rule::Carrier)
            }
            Leads::Away => {
                let target = destination(rest, *budget);
                *budget = budget.saturating_sub(target.len());
                (*budget == 0 || target::carries(target)).then_some(Rule::Carrier)
            }
            Leads::Here | Leads::Allowed => None,
        }
    }

    fn away(&self, target: &str) -> bool {
        matches!(
            target::leads(target, Written::Markdown, self.hosts),
            Leads::Away | Leads::Danger
        )
    }

    fn defined(&mut self, label: &str) -> bool {
        if label.len() > LABEL || self.labels().is_empty() {
            return false;
        }
        let hash = hash(label);
        self.labels().binary_search(&hash).is_ok()
    }

    fn labels(&mut self) -> &[u64] {
        let (text, begins, hosts) = (self.text, self.begins, self.hosts);
        self.labels.get_or_insert_with(|| {
            let mut labels: Vec<u64> = memchr::memmem::find_iter(text.as_bytes(), b"]:")
                .filter_map(|at| {
                    let target = destination(text.get(at + 2..)?, LONGEST);
                    let leads = target::leads(target, Written::Markdown, hosts);
                    let away = matches!(leads, Leads::Away | Leads::Danger);
                    away.then(|| label_before(text, begins, at).map(hash))
                        .flatten()
                })
                .collect();
            labels.sort_unstable();
            labels
        })
    }

    /// Where the next `](` with a target of another host stands, at or after `at`, which only grows.
    fn next_away(&mut self, at: usize) -> Option<usize> {
        if self.next_away.is_some_and(|next| next >= at) {
            return self.next_away;
        }
        let from = self.searched.max(at);
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        self.next_away = memchr::memmem::find_iter(rest, b"](")
            .map(|found| from + found)
            .find(|found| {
                self.text
                    .get(found + 2..)
                    .is_some_and(|rest| self.away(destination(rest, LONGEST)))
            });
        self.searched = self.next_away.unwrap_or(self.text.len());
        self.next_away
    }
}

/// What was read of the text of an image.
struct Alt {
    /// Where its bracket closes.
    close: Option<usize>,
    /// Whether nothing in it could make a renderer see another end.
    clear: bool,
    length: usize,
}

/// Reads to the bracket that closes, and on to the end of the paragraph if the text is not clear.
fn alt(inside: &[u8], budget: usize) -> Alt {
    let mut alt = Alt {
        close: None,
        clear: true,
        length: 0,
    };
    let mut depth = 1;
    let mut blank = false;
    while let Some(byte) = inside.get(alt.length) {
        if alt.length >= budget {
            alt.clear = false;
            break;
        }
        match byte {
            b'\\' => {
                alt.length += 1;
                blank = false;
            }
            b'\n' if blank => break,
            b'\n' => blank = true,
            b' ' | b'\t' | b'\r' => {}
            _ => blank = false,
        }
        match byte {
            b'`' | b'<' => alt.clear = false,
            b'[' if alt.close.is_none() => depth += 1,
            b']' if alt.close.is_none() => {
                depth -= 1;
                if depth == 0 {
                    alt.close = Some(alt.length);
                    if alt.clear {
                        break;
                    }
                }
            }
            _ => {}
        }
        alt.length += 1;
    }
    alt
}

/// The target that begins here, after white space: up to the next, or in angle brackets; no more of it than `most` bytes.
fn destination(rest: &str, most: usize) -> &str {
    let begin = rest
        .bytes()
        .take(most)
        .position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
        .unwrap_or(0);
    let rest = rest.get(begin..).unwrap_or_default();
    match rest.strip_prefix('<') {
        Some(inside) => upto(inside, [b'>', b'\n', b'<'], most),
        // Tabs are no part of an address for anybody, so they need not end one.
        None => upto(rest, [b' ', b'\n', b')'], most),
    }
}

/// Up to the first of those bytes, or `most` bytes.
fn upto(rest: &str, ends: [u8; 3], most: usize) -> &str {
    let most = rest.floor_char_boundary(most);
    let rest = &rest[..most];
    let end = memchr::memchr3(ends[0], ends[1], ends[2], rest.as_bytes());
    &rest[..end.unwrap_or(rest.len())]
}

/// The label that goes on here, up to its bracket.
fn label(rest: &str) -> &str {
    let within = &rest[..rest.floor_char_boundary(LABEL)];
    let ends = memchr::memchr_iter(b']', within.as_bytes());
    let end = ends
        .into_iter()
        .find(|end| !escaped(within.as_bytes(), *end));
    &within[..end.unwrap_or(within.len())]
}

/// The label that ends at the `]` at `at`, if nothing but the marks of quotes and lists stands before it on its line, or where a
/// line may begin for whoever reads what is in the text: a string, and the escape of a line.
fn label_before<'t>(text: &'t str, begins: &[usize], at: usize) -> Option<&'t str> {
    let bytes = text.as_bytes();
    let least = at.saturating_sub(LABEL);
    let mut end = at;
    let open = loop {
        let bracket = least + memchr::memrchr2(b'[', b']', &bytes[least..end])?;
        if !escaped(bytes, bracket) {
            break bracket;
        }
        end = bracket;
    };
    if bytes[open] != b'[' {
        return None;
    }
    let from = open.saturating_sub(LABEL);
    let line = &bytes[from..open];
    let feed = memchr::memrchr2(b'\n', b'\r', line).map_or(0, |feed| feed + 1);
    let begun = begins.partition_point(|begin| *begin <= open);
    let begun = begun
        .checked_sub(1)
        .map_or(0, |last| begins[last].saturating_sub(from));
    let line = &line[feed.max(begun)..];
    let before = &line[..line.len() - marks(line)];
    let alone = matches!(before, [] | [.., b'"'] | [.., b'\\', b'n' | b'r' | b't']);
    alone.then(|| text.get(open + 1..at)).flatten()
}

/// How many bytes at the end of this piece of a line are the marks of quotes and lists, and blanks.
fn marks(line: &[u8]) -> usize {
    let mark = |byte: &&u8| {
        matches!(
            byte,
            b' ' | b'\t' | b'>' | b'*' | b'+' | b'-' | b'.' | b')' | b'0'..=b'9'
        )
    };
    line.iter().rev().take_while(mark).count()
}

/// Whether a backslash takes away the meaning of what stands at `at`.
pub(super) fn escaped(text: &[u8], at: usize) -> bool {
    let slashes = text[..at]
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count();
    slashes % 2 == 1
}

/// The same for labels that Markdown takes for the same: case and white space do not count.
fn hash(label: &str) -> u64 {
    // There and back: capitals of one letter may be two.
    let fold = |ch: char| {
        ch.to_lowercase()
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
    };
    let words = label
        .split_whitespace()
        .flat_map(|word| std::iter::once(' ').chain(word.chars().flat_map(fold)));
    // FNV-1a; two labels with one hash only make an image a link.
    words.fold(0xCBF2_9CE4_8422_2325, |hash, ch| {
        (hash ^ u64::from(u32::from(ch))).wrapping_mul(0x100_0000_01B3)
    })
}
