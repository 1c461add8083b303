//! What is likely a secret, by its name, by its look, and by where it stands in the words of a command.
//!
//! Pure guesses over text: nothing is resolved or changed here. Text of references is for the caller to keep out.

use std::ops::Range;

use crate::sanitize::OwnCredentials;

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

/// Whether this word of a command tells a secret to whoever reads it.
pub(super) fn is_told_in(before: &str, word: &str) -> bool {
    if is_script(before, word) {
        return script_holds_secret(word);
    }
    in_word(before, word).is_some_and(|secret| secret.start < word.len())
}

/// Whether the value of this variable tells a secret to whoever reads it; the path of a file does not.
pub(super) fn is_told_by(name: &str, value: &str) -> bool {
    let is_path = value.starts_with(['/', '~', '.']);
    (names_secret(name) && !is_path && !value.is_empty()) || holds_secret(value)
}

/// Whether the value of this header tells a secret to whoever reads it: called so, or by its look.
pub(super) fn is_told_in_header(name: &str, value: &str) -> bool {
    !value.is_empty()
        && (OwnCredentials::is_one_in_header(name, value)
            || names_secret(name)
            || holds_secret(value))
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
    let name = is_url(word).then_some("url");
    holds_secret(word).then_some(Secret { start: 0, name })
}

/// What the words of a command tell the program in confidence, each with the name that it has there, if any: what [`in_word`] says,
/// and of a word that a reference brings, as secrets are written and other things too, what is drawn at random.
pub(super) fn in_command(
    command: &[String],
    is_referenced: impl Fn(usize) -> bool,
) -> Vec<(&str, &str)> {
    let mut told = Vec::new();
    let mut before = "";
    for (index, word) in command.iter().enumerate() {
        let referenced = is_referenced(index);
        if is_script(before, word) {
            let mut before = "";
            for word in word.split_whitespace() {
                let word = word.trim_matches(['"', '\'', ';']);
                let found = in_confidence(before, word, referenced);
                let found = found.map(|(name, value)| {
                    let value = value.trim_start_matches(['"', '\'']);
                    (name, value)
                });
                // What the shell puts in is none.
                told.extend(found.filter(|(_, value)| !value.starts_with('$')));
                before = word;
            }
        } else {
            told.extend(in_confidence(before, word, referenced));
        }
        before = word;
    }
    // Whoever gets an address with a secret in it may tell that alone.
    let alone = told.iter().flat_map(|(name, value)| {
        let all = parameters(value).into_iter();
        all.map(move |parameter| (*name, &value[parameter]))
    });
    let alone: Vec<_> = alone.collect();
    told.extend(alone);
    told
}

fn in_confidence<'t>(
    before: &'t str,
    word: &'t str,
    referenced: bool,
) -> Option<(&'t str, &'t str)> {
    let found = in_word(before, word)
        .map(|secret| (secret.name.unwrap_or_default(), &word[secret.start..]))
        // A header may say anything.
        .filter(|(name, value)| is_told_in_header(name, value));
    if found.is_some() || !referenced {
        return found;
    }
    let flag = if is_name(before.trim_start_matches('-')) && before.starts_with('-') {
        before
    } else {
        ""
    };
    let (name, value) = assignment(word).unwrap_or((flag, word));
    let name = name.trim_start_matches('-');
    let is_path = value.starts_with(['/', '~', '.']);
    (!is_path && OwnCredentials::is_one(name, value)).then_some((name, value))
}

/// Whether a secret stands anywhere in this text, references aside: the password of an address, `token=…` among other pairs, a
/// member of an object.
pub(super) fn holds_secret(text: &str) -> bool {
    let text = &without_references(text);
    looks_secret(text) || has_password(text) || pairs_secret(text) || has_secret_member(text)
}

fn without_references(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        rest = after.split_once('}').map_or("", |(_, tail)| tail);
    }
    out.push_str(rest);
    out
}

/// Whether this word is a program for the interpreter before it: `sh -c "…"`.
pub(super) fn is_script(before: &str, word: &str) -> bool {
    let takes_one = matches!(
        before,
        "-c" | "-ec" | "-ic" | "-lc" | "-lic" | "/c" | "/C" | "-Command"
    );
    takes_one && word.contains(char::is_whitespace)
}

/// Whether the words of a script hold a secret; what the shell puts in (`$NAME`) is none.
pub(super) fn script_holds_secret(script: &str) -> bool {
    let mut before = "";
    script.split_whitespace().any(|word| {
        let word = word.trim_matches(['"', '\'', ';']);
        let found = in_word(before, word).is_some_and(|secret| {
            let value = word[secret.start..].trim_start_matches(['"', '\'']);
            !value.starts_with('$')
        });
        before = word;
        found
    })
}

/// What stands before the `@` of an address, and where it begins.
pub(super) fn userinfo(text: &str) -> Option<(usize, &str)> {
    let start = text.find("://")? + "://".len();
    let authority = text[start..].split(['/', '?', '#']).next()?;
    let end = authority.rfind('@')?;
    Some((start, &authority[..end]))
}

/// User and password; a colon within a reference parts nothing.
pub(super) fn user_and_password(info: &str) -> Option<(&str, &str)> {
    let mut inside = false;
    for (at, char) in info.char_indices() {
        match char {
            '{' => inside = true,
            '}' => inside = false,
            ':' if !inside => return Some((&info[..at], &info[at + 1..])),
            _ => {}
        }
    }
    None
}

/// Where the values of an address's parameters stand that are called secrets; references are none.
pub(super) fn parameters(address: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let start = match address.find("://") {
        Some(_) => address.find(['?', '#']).unwrap_or(address.len()),
        None => return found,
    };
    let mut at = start;
    for parameter in address[start..].split_inclusive(['?', '&', ';', '#']) {
        let end = at + parameter.trim_end_matches(['?', '&', ';', '#']).len();
        if let Some((name, value)) = address[at..end].split_once('=') {
            let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
            let secret = OwnCredentials::is_named_so(&name)
                || names_secret(&name)
                || matches!(&*name.to_ascii_lowercase(), "sig" | "code");
            if secret && !without_references(value).is_empty() {
                found.push(end - value.len()..end);
            }
        }
        at += parameter.len();
    }
    found
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.:".contains(&byte))
    })
}

/// `postgres://user:password@host`; at an address of the web the user alone is one (`https://TOKEN@host`). People write `#` and
/// `?` into passwords, whatever the grammar of addresses says.
fn has_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let Some((info, _)) = authority.rsplit_once('@') else {
        return false;
    };
    let (user, secret) = match info.split_once(':') {
        Some((user, password)) => (user, !password.is_empty()),
        None => (info, text.starts_with("http") && !info.is_empty()),
    };
    secret && !user.contains(['?', '#'])
}

fn pairs_secret(text: &str) -> bool {
    text.split(['?', '&', ';', '#', ',', ' ', '\n'])
        .filter_map(assignment)
        .any(|(name, value)| names_secret(name.trim_start_matches('-')) && !value.is_empty())
}

/// `{"Authorization": "Bearer …"}`, wherever the object stands.
fn has_secret_member(text: &str) -> bool {
    let parts: Vec<&str> = text.split('"').collect();
    parts.windows(3).any(|window| match window {
        [key, between, value] => {
            let value = value.trim_start_matches("Bearer").trim();
            between.trim() == ":" && names_secret(key) && !value.is_empty()
        }
        _ => false,
    })
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

/// Whether the value of this name is likely a secret itself, not how many, whether at all, where it is kept, or how it is got.
fn names_secret(name: &str) -> bool {
    const FIRST: [&str; 9] = [
        "no", "max", "min", "num", "disable", "enable", "require", "skip", "without",
    ];
    const LAST: [&str; 25] = [
        "stdin", "url", "uri", "endpoint", "name", "type", "header", "limit", "budget", "count",
        "ttl", "timeout", "expiry", "store", "storage", "provider", "backend", "method", "mode",
        "source", "cache", "audience", "format", "manager", "helper",
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
