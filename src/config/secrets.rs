//! What is likely a secret, by its name, by its look, and by where it stands in the words of a command.
//!
//! Pure guesses over text: nothing is resolved or changed here. Text of references is for the caller to keep out.

/// The secret in a text: from a byte on, to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Secret<'t> {
    pub(super) start: usize,
    /// What it is called there; `None` if nothing names it.
    pub(super) name: Option<&'t str>,
}

/// Whether something of this name is likely a secret.
pub(super) fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    [
        "token",
        "secret",
        "password",
        "passwd",
        "apikey",
        "accesskey",
        "privatekey",
        "credential",
        "authorization",
        "cookie",
        "bearer",
        "signature",
    ]
    .iter()
    .any(|word| name.contains(word))
        || matches!(name.as_str(), "key" | "pat" | "pass" | "pwd" | "auth")
        || name.ends_with("apitoken")
}

/// Whether this text looks like a secret whatever it is called: the marks that well-known issuers give theirs.
pub(super) fn looks_secret(text: &str) -> bool {
    const MARKS: [&str; 14] = [
        "ghp_",
        "gho_",
        "ghs_",
        "ghu_",
        "github_pat_",
        "glpat-",
        "sk-",
        "sk_live_",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "AIza",
        "eyJ",
        "ntn_",
    ];
    text.len() >= 16
        && (MARKS.iter().any(|mark| text.starts_with(mark))
            || text.starts_with("Bearer ")
            || text.starts_with("Basic "))
}

/// The secret in one word of a command, which may be the value of the word `before` it.
pub(super) fn in_word<'t>(before: &'t str, word: &'t str) -> Option<Secret<'t>> {
    if matches!(before, "--header" | "-H")
        && let Some((name, value)) = word.split_once(':')
    {
        let start = word.len() - value.trim_start().len();
        let name = Some(name);
        return Some(Secret { start, name });
    }
    if !word.starts_with('-') {
        if let Some(name) = secret_flag(before) {
            let name = Some(name);
            return Some(Secret { start: 0, name });
        }
        if looks_secret(word) {
            return Some(Secret {
                start: 0,
                name: None,
            });
        }
    }
    if let Some((name, value)) = assignment(word) {
        let start = name.len() + 1;
        let bare = name.trim_start_matches('-');
        if names_secret(bare) && !value.is_empty() {
            let name = Some(bare);
            return Some(Secret { start, name });
        }
        // `--env=API_KEY=…`, `--header=Authorization: …`, `--db=postgres://…`
        if let Some(inner) = in_word(name, value) {
            return Some(Secret {
                start: start + inner.start,
                name: inner.name.or(Some(bare)),
            });
        }
    }
    None
}

/// The name of a flag whose value, the next word, is a secret.
fn secret_flag(word: &str) -> Option<&str> {
    let name = word.trim_start_matches('-');
    (word.starts_with('-') && is_name(name) && names_secret(name)).then_some(name)
}

/// `NAME=VALUE` and `--name=VALUE`, dashes and all.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    is_name(name.trim_start_matches('-')).then_some((name, value))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Whether the value of this name is likely a secret itself, not how many, whether at all, or where it is kept.
fn names_secret(name: &str) -> bool {
    const FIRST: [&str; 9] = [
        "no", "max", "min", "num", "disable", "enable", "require", "skip", "without",
    ];
    const LAST: [&str; 13] = [
        "stdin", "url", "uri", "endpoint", "name", "type", "header", "limit", "budget", "count",
        "ttl", "timeout", "expiry",
    ];
    let parts = parts(name);
    let among = |part: Option<&String>, list: &[&str]| {
        part.is_some_and(|part| list.contains(&part.as_str()))
    };
    sounds_secret(name)
        && !among(parts.first(), &FIRST)
        && !among(parts.last(), &LAST)
        && !["file", "path", "dir"]
            .iter()
            .any(|end| name.to_ascii_lowercase().ends_with(end))
}

/// The parts of a name: `max-tokens`, `MAX_TOKENS` and `maxTokens` are `max` and `tokens`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_lower = false;
    for char in name.chars() {
        if !char.is_alphanumeric() || (after_lower && char.is_uppercase()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| char.is_alphanumeric()) {
            part.push(char.to_ascii_lowercase());
        }
        after_lower = char.is_lowercase();
    }
    parts.retain(|part| !part.is_empty());
    parts
}
