//! The only place that writes to the terminal.
//! Colours are written always and removed by the stream where nobody sees them; a reader that went away is no error, and any
//! other reason why a result was not written is kept, for how it all ends.

use std::{
    io::{self, IsTerminal, Write},
    sync::OnceLock,
};

use anstyle::{AnsiColor, Style};

/// Headings.
pub(super) const BOLD: Style = Style::new().bold();
/// Less important.
pub(super) const DIM: Style = Style::new().dimmed();
/// All is well.
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
/// Not yet.
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Something is wrong.
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();

/// A result, as a line.
pub(super) fn line(text: &str) {
    let mut out = anstream::stdout();
    written(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// A result, byte for byte.
pub(super) fn raw(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    written(out.write_all(bytes).and_then(|()| out.flush()));
}

/// Results that may be many, byte for byte; `false` when nobody reads them any more, or they cannot be written.
pub(super) fn sent(parts: &[&[u8]]) -> bool {
    let mut out = io::stdout().lock();
    let mut each = parts.iter();
    written(
        each.try_for_each(|part| out.write_all(part))
            .and_then(|()| out.flush()),
    )
}

/// Why a result could not be written, of the first that was not.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Whether a result was written; keeps why not.
fn written(result: io::Result<()>) -> bool {
    let Err(error) = result else { return true };
    if error.kind() != io::ErrorKind::BrokenPipe {
        _ = UNWRITTEN.set(error);
    }
    false
}

/// Why not all results were written; `None` where they were, or the reader went away.
pub(super) fn unwritten() -> Option<&'static io::Error> {
    UNWRITTEN.get()
}

/// Something about a result, as a line.
pub(super) fn note(text: &str) {
    drop(writeln!(anstream::stderr(), "{text}"));
}

/// What went wrong, as a line.
pub(super) fn problem(text: &str) {
    note(&format!("{}: {text}", paint(RED, "error")));
}

/// `text` in a style.
pub(super) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Whether a person reads stdout.
pub(super) fn to_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person reads stderr.
pub(super) fn notes_to_terminal() -> bool {
    io::stderr().is_terminal()
}

/// So many of what a word that takes an `s` says.
pub(super) fn count(number: u64, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {word}{plural}")
}

/// Text of somebody else without the characters that steer a terminal.
pub(super) fn tame(text: &str) -> String {
    text.chars()
        .map(|char| {
            let steers = char.is_control() && !matches!(char, '\n' | '\t')
                || matches!(char, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
            if steers { '\u{FFFD}' } else { char }
        })
        .collect()
}

/// The first line of somebody else's text, cut to `width` characters.
pub(super) fn short(text: &str, width: usize) -> String {
    let first = tame(text.trim_start().lines().next().unwrap_or_default());
    if first.chars().count() <= width {
        return first;
    }
    let cut: String = first.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let told = [0, 1, 2].map(|number| count(number, "record"));
        assert_eq!(told, ["0 records", "1 record", "2 records"]);
    }
}
