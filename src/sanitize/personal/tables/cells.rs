//! Rows, and the cells in them.
//!
//! Guarantees: a line is looked at no farther than [`ROW`], and a row that numbers stand in once for all of them. Deliberately
//! absent: what is a table.

use std::ops::Range;

use super::{Kind, ROW};
use crate::sanitize::work::looked;

/// What parts the columns of a line.
pub(super) const JOINTS: [&[u8]; 5] = [b",", b";", b"\t", b"|", "\u{2502}".as_bytes()];

/// Whether it parts columns by itself.
pub(in super::super) const fn is_joint(byte: u8) -> bool {
    matches!(byte, b',' | b';' | b'\t' | b'|')
}

/// Whether it may stand around what is in a column.
pub(in super::super) const fn is_outside(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\r' | b'"' | b'\'' | b'\\' | b'`')
}

/// A row, and what tells its columns apart.
#[derive(Debug)]
pub(super) struct Row {
    /// As far as it is looked at.
    place: Range<usize>,
    /// Where the joints of its cells stand, their tags, or its characters, whichever the kind of table is read by. `None` where
    /// the row begins too far before.
    marks: Option<Vec<usize>>,
}

impl Row {
    /// The row around a place, in a table of this kind with so many columns.
    pub(super) fn around(kind: Kind, text: &[u8], at: usize, columns: usize) -> Self {
        let start = match kind {
            Kind::Parted(_) | Kind::Fixed | Kind::Ruled | Kind::Stacked => line_start(text, at),
            Kind::Html => row_of_html(text, at),
            Kind::Bracketed(open) => row(text, at, open),
        };
        looked(at - start.unwrap_or_else(|| at.saturating_sub(ROW)));
        let from = start.unwrap_or(at);
        let to = (from + ROW).min(text.len());
        let end = match kind {
            Kind::Parted(_) | Kind::Fixed | Kind::Ruled | Kind::Stacked => line_end(text, from),
            Kind::Html => {
                // Behind the tag that the row itself begins with.
                let behind = (from + 1).min(to);
                let next = memchr::memmem::find(&text[behind..to], b"<tr");
                next.map_or(to, |next| behind + next)
            }
            Kind::Bracketed(open) => {
                let next = memchr::memchr2(open, closing(open), &text[from..to]);
                next.map_or(to, |next| from + next)
            }
        };
        let place = from..end;
        let marks = start.and_then(|_| marks(kind, text, &place, columns));
        Self { place, marks }
    }

    /// Whether a place is in this row.
    pub(super) fn holds(&self, at: usize) -> bool {
        self.place.contains(&at)
    }

    /// Whether anything is known of it.
    pub(super) const fn is_known(&self) -> bool {
        self.marks.is_some()
    }

    /// How many joints, tags or characters stand before a place in it.
    pub(super) fn before(&self, at: usize) -> Option<usize> {
        let marks = self.marks.as_ref()?;
        Some(marks.partition_point(|mark| *mark < at))
    }

    /// Where something stands in a row that is read by its characters.
    pub(super) fn characters(&self, place: &Range<usize>) -> Option<Range<usize>> {
        Some(self.before(place.start)?..self.before(place.end)?)
    }
}

/// What is counted in a row to tell its columns apart.
fn marks(kind: Kind, text: &[u8], row: &Range<usize>, columns: usize) -> Option<Vec<usize>> {
    let joints = |by| {
        cells(text, row.clone(), by)
            .into_iter()
            .map(|cell| cell.end)
    };
    Some(match kind {
        Kind::Parted(by) => joints(by).collect(),
        Kind::Bracketed(_) => joints(b",").collect(),
        Kind::Html => {
            let cells = cells_of_html(text, row.clone()).into_iter();
            cells.map(|cell| cell.start).collect()
        }
        Kind::Fixed | Kind::Ruled => {
            looked(row.len());
            let first = |at: &usize| text[*at] & 0xC0 != 0x80;
            row.clone().filter(first).collect()
        }
        // Each line above is a cell before this one.
        Kind::Stacked => vec![row.start; cells_above(text, row.start, columns)?],
    })
}

const fn closing(open: u8) -> u8 {
    if open == b'(' { b')' } else { b']' }
}

/// Where the row of a bracket of this kind begins in which a place is.
fn row(text: &[u8], start: usize, open: u8) -> Option<usize> {
    let from = start.saturating_sub(ROW);
    let at = memchr::memrchr2(open, closing(open), &text[from..start])?;
    (text[from + at] == open).then_some(from + at + 1)
}

fn row_of_html(text: &[u8], start: usize) -> Option<usize> {
    let from = start.saturating_sub(ROW);
    memchr::memmem::rfind(&text[from..start], b"<tr").map(|at| from + at)
}

/// The cells of a row of HTML.
pub(super) fn cells_of_html(text: &[u8], row: Range<usize>) -> Vec<Range<usize>> {
    let mut cells = Vec::new();
    let mut at = row.start;
    looked(row.len());
    while let Some(next) = memchr::memmem::find(&text[at..row.end], b"<t") {
        let start = at + next + 2;
        at = start;
        if matches!(text.get(start), Some(b'd' | b'h')) && text.get(start + 1) != Some(&b'e') {
            let end = memchr::memmem::find(&text[start..row.end], b"</");
            at = end.map_or(row.end, |end| start + end);
            // A row may be cut within a tag.
            cells.push((start + 1).min(at)..at);
        }
    }
    cells
}

/// The cells of a row, some of them in quotes, in which nothing parts them.
pub(super) fn cells(text: &[u8], row: Range<usize>, by: &[u8]) -> Vec<Range<usize>> {
    let mut cells = Vec::new();
    let (mut start, mut quote) = (row.start, None);
    // Whether nothing of the cell was met that stands in it.
    let mut blank = true;
    looked(row.len());
    for (at, byte) in row.clone().zip(&text[row.clone()]) {
        // The rest of a joint of several bytes.
        if at < start {
            continue;
        }
        match (quote, *byte) {
            (None, byte) if byte == by[0] && text[at..].starts_with(by) => {
                cells.push(start..at);
                (start, blank) = (at + by.len(), true);
                continue;
            }
            // A quote begins a cell, or it is an apostrophe.
            (None, byte @ (b'"' | b'\'')) if blank => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
        // A sign stands before lines of differences.
        blank &= is_outside(byte) || matches!(byte, b'+' | b'\n');
    }
    cells.push(start..row.end);
    cells
}

/// The first of the lines above this one that are as they must be, of which none begins before `from`.
pub(super) fn top(
    text: &[u8],
    start: usize,
    from: usize,
    mut is: impl FnMut(&[u8]) -> bool,
) -> usize {
    let mut top = start;
    while top > from {
        let Some(start) = line_start(text, top - 1) else {
            break;
        };
        let above = &text[start..top - 1];
        looked(above.len());
        if start < from || !is(above) {
            break;
        }
        top = start;
    }
    top
}

/// Where the line begins that a place is in, unless it is long.
pub(super) fn line_start(text: &[u8], at: usize) -> Option<usize> {
    let from = at.saturating_sub(ROW);
    match memchr::memrchr(b'\n', &text[from..at]) {
        Some(feed) => Some(from + feed + 1),
        None => (from == 0).then_some(0),
    }
}

/// Where the line ends that a place is in, or as far as it is looked at.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    let at = at.min(text.len());
    let to = (at + ROW).min(text.len());
    memchr::memchr(b'\n', &text[at..to]).map_or(to, |feed| at + feed)
}

/// Whether a line is one cell of a row.
pub(super) fn is_cell(line: &[u8]) -> bool {
    line.split_first().is_some_and(|(bar, cell)| {
        *bar == b'|' && !cell.starts_with(b"===") && !cell.contains(&b'|')
    })
}

/// How many cells stand above the line that a place is in, each in a line of its own; nothing where they are not fewer than `most`,
/// or too long.
fn cells_above(text: &[u8], at: usize, most: usize) -> Option<usize> {
    let mut line = line_start(text, at)?;
    looked(at - line);
    for above in 0..most {
        let Some(end) = line.checked_sub(1) else {
            return Some(above);
        };
        let start = line_start(text, end)?;
        looked(end - start);
        if at - start > ROW {
            return None;
        }
        if !is_cell(&text[start..end]) {
            return Some(above);
        }
        line = start;
    }
    None
}

/// The cell around a number in a line of columns: to the left as far as one blank stands between.
pub(super) fn cell(text: &[u8], span: &Range<usize>) -> Range<usize> {
    let before = &text[span.start.saturating_sub(64)..span.start];
    let start = before
        .iter()
        .enumerate()
        .rev()
        .take_while(|(at, byte)| {
            !matches!(byte, b'\n' | b'\t') && (**byte != b' ' || *at > 0 && before[*at - 1] != b' ')
        })
        .count();
    span.start - start..span.end
}

/// Whether a line is there to be seen only: `|---|:-:|`, `----+----`, and the same in lines of boxes.
pub(super) fn is_ruler(line: &[u8]) -> bool {
    let drawn = line.starts_with(b"\xE2\x94") || line.starts_with(b"\xE2\x95");
    line.len() > 2
        && line.iter().all(|byte| match byte {
            b'-' | b'=' | b'+' | b'|' | b':' | b' ' | b'\r' | b'\t' => true,
            _ => drawn && !byte.is_ascii(),
        })
}

/// Whether a line may be the names of columns: not with many digits in a row, nor if it leads to what follows.
pub(super) fn is_heading(line: &[u8]) -> bool {
    let letters = line
        .iter()
        .any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    letters
        && !line.trim_ascii_end().ends_with(b":")
        && !line
            .windows(4)
            .any(|four| four.iter().all(u8::is_ascii_digit))
}
