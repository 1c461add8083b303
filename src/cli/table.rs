//! Aligned columns: no lines, two blanks between, headings bold.

use comfy_table::{Cell, Table, presets};

use super::out;

/// Rows under a heading, as text without a line end; nothing for no rows.
pub(super) fn aligned(heading: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(heading.iter().map(Cell::new));
    for row in rows {
        table.add_row(row.iter().map(Cell::new));
    }
    let last = heading.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
    }
    let text = table.to_string();
    let lines = text.lines().map(str::trim_end).enumerate();
    let lines: Vec<String> = lines
        .map(|(index, line)| {
            if index == 0 {
                out::paint(out::BOLD, line)
            } else {
                line.to_owned()
            }
        })
        .collect();
    lines.join("\n")
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
        let text = anstream::adapter::strip_str(&aligned(&["NAME", "WHAT"], &rows)).to_string();
        assert_eq!(text, "NAME    WHAT\na       first\nlonger  x");
        assert_eq!(aligned(&["NAME"], &[]), "");
    }
}
