//! README and manual taken apart: blocks, tables, commands.

use crate::TEXTS;

/// The contents of the fenced blocks in this language, of all texts.
pub(crate) fn blocks(language: &str) -> Vec<String> {
    let all = TEXTS.iter();
    all.flat_map(|(_, text)| blocks_of(text, language))
        .collect()
}

/// The same of one text.
pub(crate) fn blocks_of(text: &str, language: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language, String::new())),
            (Some(_), Some(_)) => all.extend(open.take()),
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is left open");
    let wanted = all.into_iter().filter(|(of, _)| *of == language);
    wanted.map(|(_, text)| text).collect()
}

/// The cells of the table whose head begins like this.
pub(crate) fn rows(head: &str) -> Vec<Vec<String>> {
    let rest = TEXTS.iter().find_map(|(_, text)| text.split_once(head));
    let rest = rest.expect("a table").1;
    rest.lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.trim_matches('|').split(" | ");
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect()
}

/// Every command: lines of shell blocks, and what stands between backticks and begins with a program of ours.
pub(crate) fn commands() -> Vec<String> {
    let mut all: Vec<String> = blocks("sh")
        .iter()
        .flat_map(|block| joined(block))
        .collect();
    let prose = TEXTS
        .iter()
        .flat_map(|(_, text)| text.split("```").step_by(2))
        .flat_map(words_in_backticks)
        .filter(|code| {
            ["usher ", "cargo ", "openssl ", "npm ", "pip "]
                .iter()
                .any(|program| code.starts_with(program))
        });
    all.extend(prose);
    all
}

pub(crate) fn words_in_backticks(text: &str) -> Vec<String> {
    let parts = text.split('`').skip(1).step_by(2);
    parts.map(|code| code.replace('\n', " ")).collect()
}

/// The lines of a shell block, continued ones joined.
pub(crate) fn joined(block: &str) -> Vec<String> {
    block
        .replace("\\\n", " ")
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

/// The words of a command as a shell would split it, up to a comment or a redirection.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') if !word.is_empty() => words.push(std::mem::take(&mut word)),
            (None, ' ') => {}
            _ => word.push(c),
        }
    }
    let end = words.iter().position(|word| word == "#" || word == ">");
    words.truncate(end.unwrap_or(words.len()));
    words
}
