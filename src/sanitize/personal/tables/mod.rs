//! Tables: the name of the column in which a number stands, which may be far above it.
//!
//! Lines whose cells are parted by commas, semicolons, tabs or bars, lines whose columns stand one below the other, lines that are a
//! cell each, rows of HTML, rows of values in SQL, and lists of lists in JSON.
//!
//! Guarantees: linear in the text, since rows are gone through once for each table and once for all the numbers in them, and no
//! table is looked for in what was gone through; nothing is looked for before a number asks. Deliberately absent: cells that
//! reach over more than one column.

mod cells;
mod heads;
#[cfg(test)]
mod tests;

use std::ops::Range;

use cells::{JOINTS, Row, cell, is_cell, is_ruler, line_end, line_start};
pub(super) use cells::{is_joint, is_outside};
use heads::{bracketed, fixed, html, parted, stacked};

use super::set::Set;
use crate::sanitize::work::looked;

/// The longest line or row that is looked at, in bytes.
const ROW: usize = 4096;
/// How far before a number what it stands in is looked for, in bytes.
const NEAR: usize = 512;
/// The longest name of a member before a table, in bytes.
const MEMBER: usize = 32;
/// The most columns that are told apart.
const COLUMNS: usize = 256;

/// The same where each cell has a line: for each number as many lines are looked at.
const STACKED: usize = 32;

/// What the column of a number is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heading {
    /// Where the name stands in the text.
    pub(super) place: Range<usize>,
    /// Where it stands in its line, in characters, if columns are told by that.
    characters: Option<Range<usize>>,
    /// The rules that the name announces.
    pub(super) announced: Set,
}

/// The table that a number was asked about last.
#[derive(Debug, Default)]
pub(super) struct Tables {
    table: Option<Table>,
    /// How far the text was gone through.
    searched: usize,
}

#[derive(Debug)]
struct Table {
    kind: Kind,
    /// From the first row to the end of the last one that is known to be part of it.
    rows: Range<usize>,
    /// The names of the columns; none, where nothing is known of them.
    columns: Vec<Heading>,
    /// How far these are moved to the right by what stands before the first line, in characters.
    moved: usize,
    /// What any of them announces.
    any: Set,
    /// The row that a number was asked about last.
    row: Option<Row>,
}

/// What parts the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One of [`JOINTS`], in lines.
    Parted(&'static [u8]),
    /// Where they stand in a line, with two blanks between at least.
    Fixed,
    /// Where they stand in a line, below rows of dashes.
    Ruled,
    /// Each cell behind a bar in a line of its own, and rows parted by empty lines, as AsciiDoc has them.
    Stacked,
    Html,
    /// Commas, between brackets of this kind.
    Bracketed(u8),
}

impl Tables {
    /// What the columns of the table announce in which a number stands: no rule else is announced by a name of its own column.
    pub(super) fn any(
        &mut self,
        text: &[u8],
        start: usize,
        said: impl Fn(Range<usize>) -> Set,
    ) -> Set {
        let table = self.at(text, start, said);
        table.map_or(Set::NONE, |table| table.any)
    }

    /// What the column of a number is called.
    pub(super) fn heading(
        &mut self,
        text: &[u8],
        span: &Range<usize>,
        said: impl Fn(Range<usize>) -> Set,
    ) -> Option<&Heading> {
        let table = self.at(text, span.start, said)?;
        table.column(text, span)
    }

    /// The table in which something stands that begins at `start`.
    fn at(
        &mut self,
        text: &[u8],
        start: usize,
        said: impl Fn(Range<usize>) -> Set,
    ) -> Option<&mut Table> {
        let within = |table: &mut Table| table.reaches(text, start);
        if !self.table.as_mut().is_some_and(within) {
            let gone = self.table.take().map_or(0, |table| table.rows.end);
            self.searched = self.searched.max(gone.min(start));
            let kind = kind(text, start)?;
            // A number may begin before a part of it that was asked about first.
            let mut table = Table::of(kind, text, start, self.searched.min(start));
            for column in &mut table.columns {
                column.announced = said(column.place.clone());
                table.any |= column.announced;
            }
            self.table = Some(table);
        }
        self.table.as_mut()
    }
}

impl Table {
    /// The table of this kind around a place, but for what stands before `from`.
    fn of(kind: Kind, text: &[u8], start: usize, from: usize) -> Self {
        let mut kind = kind;
        let found = match kind {
            Kind::Parted(by) => parted(text, start, from, by),
            Kind::Fixed | Kind::Ruled => fixed(text, start, from, &mut kind),
            Kind::Stacked => stacked(text, start, from).or_else(|| {
                // A row of one cell, or of an empty one and another.
                kind = Kind::Parted(b"|");
                parted(text, start, from, b"|")
            }),
            Kind::Html => html(text, start, from),
            Kind::Bracketed(open) => bracketed(text, start, from, open),
        };
        let (names, rows) = found.unwrap_or_default();
        let line = names.first().filter(|_| kind.is_aligned());
        let line = line.map(|first| Row::around(kind, text, first.start, names.len()));
        let columns = names.into_iter().map(|place| Heading {
            characters: line.as_ref().and_then(|line| line.characters(&place)),
            place,
            announced: Set::NONE,
        });
        let rows = match rows.is_empty() {
            // The rest of the line is of no table either.
            true => start..line_end(text, start),
            false => rows,
        };
        let columns: Vec<_> = columns.take(COLUMNS).collect();
        let first = columns.first().map(|first| &first.place);
        let line = first.and_then(|first| Some(line_start(text, first.start)?..first.start));
        let moved = line.map_or(0, |line| label(&text[line.start..line_end(text, line.end)]));
        Self {
            kind,
            rows,
            columns,
            moved,
            any: Set::NONE,
            row: None,
        }
    }

    /// The row around a place.
    fn row(&mut self, text: &[u8], at: usize) -> &Row {
        let row = match self.row.take().filter(|row| row.holds(at)) {
            Some(row) => row,
            None => Row::around(self.kind, text, at, self.columns.len().min(STACKED)),
        };
        self.row.insert(row)
    }

    /// Whether a place is in one of its rows, which are followed so far.
    fn reaches(&mut self, text: &[u8], start: usize) -> bool {
        if start < self.rows.end {
            return start >= self.rows.start;
        }
        // Where nothing is known of the columns, their names may yet come.
        if self.columns.is_empty() {
            return false;
        }
        if self.kind.has_lines() {
            while self.rows.end < start {
                let next = self.rows.end + 1..line_end(text, self.rows.end + 1);
                looked(next.len());
                if !self.kind.goes_on(&text[next.clone()]) {
                    return false;
                }
                self.rows.end = next.end;
            }
            return true;
        }
        let between = &text[self.rows.end..start];
        looked(between.len());
        let ends: &[&[u8]] = match self.kind {
            Kind::Html => &[b"</table"],
            Kind::Bracketed(b'(') => &[b"VALUES", b"values"],
            Kind::Parted(_) | Kind::Fixed | Kind::Ruled | Kind::Stacked | Kind::Bracketed(_) => {
                &[b"]]", b"{"]
            }
        };
        let over = |end: &&[u8]| memchr::memmem::find(between, end).is_some();
        let row = match self.kind {
            Kind::Bracketed(_) => self.row(text, start).is_known(),
            Kind::Parted(_) | Kind::Fixed | Kind::Ruled | Kind::Stacked | Kind::Html => true,
        };
        if !row || ends.iter().any(over) {
            return false;
        }
        self.rows.end = start;
        true
    }

    /// The name of the column in which a number stands.
    fn column(&mut self, text: &[u8], span: &Range<usize>) -> Option<&Heading> {
        if self.columns.is_empty() {
            return None;
        }
        let (kind, moved) = (self.kind, self.moved);
        let row = self.row(text, span.start);
        let nth = match kind {
            Kind::Parted(_) | Kind::Stacked | Kind::Bracketed(_) => row.before(span.start)?,
            Kind::Html => row.before(span.start)?.checked_sub(1)?,
            Kind::Fixed | Kind::Ruled => {
                let here = if kind == Kind::Ruled {
                    span.clone()
                } else {
                    cell(text, span)
                };
                let here = row.characters(&here)?;
                let here = here.start + moved..here.end + moved;
                let overlaps = |heading: &&Heading| {
                    let there = heading.characters.as_ref();
                    there.is_some_and(|there| there.start < here.end && here.start < there.end)
                };
                return self.columns.iter().find(overlaps);
            }
        };
        self.columns.get(nth)
    }
}

/// How long the name of a member is before this first line of a table, which is a string then: the others do not have it.
fn label(line: &[u8]) -> usize {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let name = line.iter().take(MEMBER).take_while(part).count();
    match &line[name..] {
        // Behind more blanks stand names to the right, and of members of objects each has a colon.
        [b':', b' ', rest @ ..]
            if name > 0
                && rest
                    .first()
                    .is_some_and(|next| *next != b' ' || !rest.contains(&b':')) =>
        {
            name + 2
        }
        _ => 0,
    }
}

impl Kind {
    /// Whether its rows are lines.
    const fn has_lines(self) -> bool {
        match self {
            Self::Parted(_) | Self::Fixed | Self::Ruled | Self::Stacked => true,
            Self::Html | Self::Bracketed(_) => false,
        }
    }

    /// Whether its columns are told by where they stand in a line.
    const fn is_aligned(self) -> bool {
        match self {
            Self::Fixed | Self::Ruled => true,
            Self::Parted(_) | Self::Stacked | Self::Html | Self::Bracketed(_) => false,
        }
    }

    /// Whether a line may be one of such a table.
    fn goes_on(self, line: &[u8]) -> bool {
        match self {
            Self::Parted(by) => memchr::memmem::find(line, by).is_some() || is_ruler(line),
            Self::Stacked => line.is_empty() || is_cell(line),
            Self::Fixed | Self::Ruled | Self::Html | Self::Bracketed(_) => {
                line.iter().any(|byte| !byte.is_ascii_whitespace())
            }
        }
    }
}

/// In what kind of table a number that begins here may stand.
fn kind(text: &[u8], start: usize) -> Option<Kind> {
    let before = &text[start.saturating_sub(NEAR)..start];
    // Letters of the number may go before its digits.
    let prefix = before.iter().rev().take(4);
    let prefix = prefix.take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-');
    let before = &before[..before.len() - prefix.count()];
    let feed = memchr::memrchr(b'\n', before);
    let line = &before[feed.map_or(0, |at| at + 1)..];
    let end = line.iter().rposition(|byte| !is_outside(byte));
    let rest = &line[..end.map_or(0, |at| at + 1)];
    let blank = line.is_empty() || line.ends_with(b"  ");
    match rest.last() {
        Some(b'>') => {
            let tag = memchr::memrchr(b'<', rest).map(|at| &rest[at..]);
            return tag
                .filter(|tag| tag.starts_with(b"<td"))
                .map(|_| Kind::Html);
        }
        Some(b',' | b'(' | b'[') => {
            let till = before.len() - (line.len() - rest.len());
            if let Some(open) = bracket(&before[..till], feed.unwrap_or(0)) {
                return Some(Kind::Bracketed(open));
            }
        }
        // Where a value stands alone in its line it may be one of a list.
        None if line.ends_with(b"\"") && feed.is_some() => {
            return bracket(before[..before.len() - 1].trim_ascii_end(), 0).map(Kind::Bracketed);
        }
        _ => {}
    }
    let parts = |is: &dyn Fn(&[u8]) -> bool| JOINTS.into_iter().find(|joint| is(joint));
    if let Some(by) = parts(&|joint| rest.ends_with(joint)) {
        let alone = rest == b"|" && !text[start..line_end(text, start)].contains(&b'|');
        return Some(if alone {
            Kind::Stacked
        } else {
            Kind::Parted(by)
        });
    }
    // The first column is told by what is behind it.
    if rest.is_empty() || rest == b"+" {
        let after = &text[start..(start + 64).min(text.len())];
        let number =
            |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'/');
        let after = &after[after.iter().take_while(number).count()..];
        let next = &after[after.iter().take_while(|byte| is_outside(byte)).count()..];
        if let Some(by) = parts(&|joint| next.starts_with(joint)) {
            return Some(Kind::Parted(by));
        }
        // A line of prose may begin with a number, too.
        let column = matches!(after, [] | [b'\n' | b'\r', ..] | [b' ', b' ', ..]);
        return (blank && column).then_some(Kind::Fixed);
    }
    // One blank stands before most numbers: a table is looked for from a column with two, and known for all others then.
    blank.then_some(Kind::Fixed)
}

/// The bracket that a row of values stands in which goes on so, if it begins at `from` or behind.
fn bracket(before: &[u8], from: usize) -> Option<u8> {
    let is = |byte: &u8| matches!(byte, b'(' | b'[' | b'{' | b')' | b']' | b'}');
    let at = from + before[from..].iter().rposition(is)?;
    looked(before.len() - at);
    let rest = before[..at].trim_ascii_end();
    let values = || rest.len() >= 6 && rest[rest.len() - 6..].eq_ignore_ascii_case(b"values");
    let row = match before[at] {
        b'(' => rest.ends_with(b",") || values(),
        b'[' => rest.ends_with(b",") || rest.ends_with(b"["),
        _ => false,
    };
    row.then_some(before[at])
}
