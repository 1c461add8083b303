//! Foreign text made fit for a log.

/// The text with every control character, and every character that changes how others are shown, escaped.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || reorders(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Line separators, and the marks that reverse or hide what follows (a log may be read in a terminal).
const fn reorders(character: char) -> bool {
    matches!(
        character,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}'
    )
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn controls_and_reordering_marks_are_escaped_and_letters_kept() {
        assert_eq!(
            printable("a\u{1b}[2J\r\n\tä\u{202e}日\0\u{9b}"),
            "a\\u{1b}[2J\\r\\n\\tä\\u{202e}日\\u{0}\\u{9b}"
        );
    }
}
