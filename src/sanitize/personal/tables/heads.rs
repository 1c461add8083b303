//! Where the names of columns stand: above the rows of a table, or before them.
//!
//! Guarantees: looks at nothing before `from`, which is how far the text was gone through. Deliberately absent: what the names
//! say.

use std::ops::Range;

use super::{
    Kind, ROW,
    cells::{cells, cells_of_html, is_heading, is_ruler, line_end, line_start, top},
    label,
};
use crate::sanitize::work::looked;

/// How many lines of other cells may go before the names of the columns.
const BEFORE: usize = 8;

/// What a table of AsciiDoc begins with.
const OPENS: &[u8] = b"|===\n";
/// How far before a list of rows the names of its columns may end that have a list of their own, in bytes.
const APART: usize = 32;

/// Names of columns, and the rows below them as far as they are known.
pub(super) type Found = Option<(Vec<Range<usize>>, Range<usize>)>;

/// The lines around a place that have such cells, and the first of them that has as many as that one.
pub(super) fn parted(text: &[u8], start: usize, from: usize, by: &'static [u8]) -> Found {
    let own = line_start(text, start)?..line_end(text, start);
    let top = top(text, own.start, from, |line| Kind::Parted(by).goes_on(line));
    let many = cells(text, own.clone(), by).len();
    let mut first = top;
    for _ in 0..BEFORE {
        let line = first..line_end(text, first);
        if line.start >= own.start {
            break;
        }
        // Wikis have two bars where names are parted.
        let named = line.start + label(&text[line.clone()]);
        let columns = match text[named..line.end].starts_with(b"||") && by == b"|" {
            true => cells(text, line.clone(), b"||"),
            false => cells(text, line.clone(), by),
        };
        if columns.len() == many && is_heading(&text[line.clone()]) {
            return Some((columns, line.end..own.end));
        }
        first = line.end + 1;
    }
    if let Some(names) = above_a_gap(text, top, from, by)
        && names.len() == many
    {
        return Some((names, top..own.end));
    }
    // What a database writes out stands below what it would be read in with.
    let above = top.checked_sub(1).filter(|end| *end > from)?;
    let above = line_start(text, above)?..above;
    let copy = text[above.clone()].starts_with(b"COPY ") && by == b"\t";
    let names = text[above.clone()]
        .strip_suffix(b") FROM stdin;")
        .filter(|_| copy)?;
    let open = memchr::memchr(b'(', names)?;
    let names = cells(
        text,
        above.start + open + 1..above.start + names.len(),
        b",",
    );
    Some((names, above.end..own.end))
}

/// The names in the first line below a rule, which an empty line may part from the rows.
fn above_a_gap(text: &[u8], top: usize, from: usize, by: &[u8]) -> Option<Vec<Range<usize>>> {
    // What was gone through may reach into the line itself.
    let gap = text.get(from..top)?.strip_suffix(b"\n\n")?;
    let end = from + gap.len();
    let line = line_start(text, end)?.max(from)..end;
    let ruled = text[..line.start].ends_with(OPENS);
    ruled.then(|| cells(text, line, by))
}

/// The names in the first line behind what opens a table whose cells have a line each.
pub(super) fn stacked(text: &[u8], start: usize, from: usize) -> Found {
    let before = &text[from..start];
    looked(before.len());
    let first = from + memchr::memmem::rfind(before, OPENS)? + OPENS.len();
    let line = first..line_end(text, first);
    let names = cells(text, line.clone(), b"|");
    // What stands before the first bar is no cell.
    (line.end < start && names.len() > 2)
        .then(|| (names[1..].to_vec(), line.end..line_end(text, start)))
}

/// The lines around a place up to one that is empty, and the one above a ruler or the first of them.
pub(super) fn fixed(text: &[u8], start: usize, from: usize, kind: &mut Kind) -> Found {
    let own = line_start(text, start)?..line_end(text, start);
    let mut ruler = false;
    let mut top = top(text, own.start, from, |line| {
        // The names stand above the ruler.
        let over = std::mem::replace(&mut ruler, is_ruler(line));
        !over && line.iter().any(|byte| !byte.is_ascii_whitespace())
    });
    if is_ruler(&text[top..line_end(text, top)]) {
        let above = top.checked_sub(1).filter(|end| *end > from)?;
        top = line_start(text, above)?.max(from);
    }
    let first = heading(text, top, own.start)?;
    let below = (first.end + 1).min(own.start)..line_end(text, first.end + 1).min(own.start);
    if is_ruler(&text[below.clone()]) && text[below.clone()].contains(&b' ') {
        *kind = Kind::Ruled;
        return Some((under_rules(text, &first, &text[below]), first.end..own.end));
    }
    Some((names(text, &first), first.end..own.end))
}

/// The line with the names of columns that stand one below the other: the first, behind members of an object that have a line each.
fn heading(text: &[u8], top: usize, own: usize) -> Option<Range<usize>> {
    let mut line = top..line_end(text, top);
    for _ in 0..BEFORE {
        if line.start >= own || label(&text[line.clone()]) == 0 || names(text, &line).len() > 1 {
            break;
        }
        let next = line.end + 1;
        line = next..line_end(text, next);
    }
    (line.start < own && is_heading(&text[line.clone()])).then_some(line)
}

/// What stands in a line with two blanks or more between.
fn names(text: &[u8], line: &Range<usize>) -> Vec<Range<usize>> {
    let mut names = Vec::new();
    let mut at = line.start;
    looked(line.len());
    while at < line.end {
        let blank = text[at..line.end].iter().take_while(|byte| **byte == b' ');
        at += blank.count();
        let rest = &text[at..line.end];
        let length = memchr::memmem::find(rest, b"  ").unwrap_or(rest.len());
        if length > 0 {
            names.push(at..at + length);
        }
        at += length.max(1);
    }
    names
}

/// The table of HTML around a place.
pub(super) fn html(text: &[u8], start: usize, from: usize) -> Found {
    let before = &text[from..start];
    looked(before.len());
    let table = from + memchr::memmem::rfind(before, b"<table")?;
    let first = table + memchr::memmem::find(&text[table..start], b"<tr")?;
    let end = first + memchr::memmem::find(&text[first..start], b"</tr").unwrap_or(0);
    let cells = cells_of_html(text, first..end.min(first + ROW));
    Some((cells, end..start))
}

/// The parts of a line that stand above each row of dashes.
fn under_rules(text: &[u8], line: &Range<usize>, rules: &[u8]) -> Vec<Range<usize>> {
    let is_first = |(_, byte): &(usize, &u8)| **byte & 0xC0 != 0x80;
    let starts: Vec<usize> = text[line.clone()]
        .iter()
        .enumerate()
        .filter(is_first)
        .map(|(at, _)| line.start + at)
        .collect();
    let before = label(&text[line.clone()]);
    let place = |column: usize| starts.get(before + column).copied().unwrap_or(line.end);
    let mut names = Vec::new();
    let mut column = 0;
    for rule in rules.split(|byte| *byte == b' ') {
        if !rule.is_empty() {
            names.push(place(column)..place(column + rule.len()));
        }
        column += rule.len() + 1;
    }
    names
}

/// The rows of values around a place, and the list of names before them, or the first of them.
pub(super) fn bracketed(text: &[u8], start: usize, from: usize, open: u8) -> Found {
    let before = &text[from..start];
    looked(before.len());
    if open == b'(' {
        let values = [b"VALUES".as_slice(), b"values"];
        let at = values
            .iter()
            .filter_map(|word| memchr::memmem::rfind(before, word))
            .max()?;
        let names = before[..at].trim_ascii_end().strip_suffix(b")")?;
        let first = memchr::memrchr(b'(', &names[names.len().saturating_sub(ROW)..])?;
        let first = from + names.len().saturating_sub(ROW) + first + 1;
        let names = cells(text, first..from + names.len(), b",");
        return Some((names, from + at..start));
    }
    // Two brackets, and nothing between them but blanks.
    let mut end = before.len();
    let outer = loop {
        let at = memchr::memrchr(b'[', &before[..end])?;
        if before[..at].trim_ascii_end().ends_with(b"[") {
            break at;
        }
        end = at;
    };
    let first = from + outer + 1;
    // The names may have a list of their own, before or behind the word for them.
    let head = &before[..outer];
    let names = ["columns", "headers", "header", "fields"];
    let names = names
        .iter()
        .filter_map(|word| memchr::memmem::rfind(head, word.as_bytes()));
    let listed = names.max().and_then(|word| {
        let open = word + memchr::memchr(b'[', &head[word..])?;
        let close = open + memchr::memchr(b']', &head[open..])?;
        Some(from + open + 1..from + close)
    });
    let near =
        |list: &Range<usize>| list.end + APART > from + outer && is_heading(&text[list.clone()]);
    if let Some(list) = listed.clone().filter(near) {
        return Some((cells(text, list, b","), first..start));
    }
    let length = memchr::memchr(b']', &text[first..(first + ROW).min(text.len())])?;
    let row = first..first + length;
    if is_heading(&text[row.clone()]) && row.end < start {
        return Some((cells(text, row.clone(), b","), row.end..start));
    }
    listed.map(|list| (cells(text, list, b","), first..start))
}
