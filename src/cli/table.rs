//! Aligned columns: no lines, two blanks between, headings bold.

use anstream::adapter::strip_str;
use comfy_table::{Cell, Table, presets};

use super::out;

/// Rows under a heading, as text without a line end; nothing for no rows.
pub(super) fn aligned(heading: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    // Colours have no width: columns are laid out without them.
    let plain = |cell: &String| strip_str(cell).to_string();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(heading.iter().map(Cell::new));
    for row in rows {
        table.add_row(row.iter().map(plain));
    }
    let last = heading.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
    }
    let text = table.to_string();
    let lines = text.lines().map(str::trim_end).enumerate();
    let lines: Vec<String> = lines
        .map(
            |(index, line)| match index.checked_sub(1).and_then(|index| rows.get(index)) {
                None => out::paint(out::BOLD, line),
                Some(row) => coloured(line, row),
            },
        )
        .collect();
    lines.join("\n")
}

/// A line of cells laid out side by side, each as it was before its colours were taken off.
fn coloured(line: &str, row: &[String]) -> String {
    let (mut text, mut rest) = (String::new(), line);
    for cell in row {
        let plain = strip_str(cell).to_string();
        if let Some((before, after)) = rest.split_once(plain.trim_end()) {
            text.push_str(before);
            text.push_str(cell.trim_end());
            rest = after;
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_where_their_text_ends() {
        let rows = [
            vec!["a".to_owned(), "first".to_owned()],
            vec!["longer".to_owned(), "x".to_owned()],
        ];
        let text = strip_str(&aligned(&["NAME", "WHAT"], &rows)).to_string();
        assert_eq!(text, "NAME    WHAT\na       first\nlonger  x");
        assert_eq!(aligned(&["NAME"], &[]), "");
    }

    #[test]
    fn colours_move_no_column() {
        let red = |text: &str| format!("\u{1b}[31m{text}\u{1b}[0m");
        let rows = [
            vec!["a".to_owned(), red("no"), "a".to_owned()],
            vec![String::new(), "longer".to_owned(), red("x y")],
            vec!["a".to_owned(), String::new(), red("a")],
        ];
        let text = aligned(&["NAME", "STATE", "WHAT"], &rows);
        let (_, rows) = text.split_once('\n').unwrap();
        assert_eq!(
            rows,
            "a     \u{1b}[31mno\u{1b}[0m      a\n      longer  \u{1b}[31mx y\u{1b}[0m\na             \u{1b}[31ma\u{1b}[0m"
        );
    }
}
