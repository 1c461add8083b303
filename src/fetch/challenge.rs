//! What a protected resource asks of somebody who brings no credential (RFC 6750 3, RFC 9728 5.1).
//!
//! A peer's word: where it points is looked at as what a peer named, and what it asks for is what is asked for first. Nothing of
//! it is shown to anybody.

use http::{HeaderValue, header::GetAll};

/// The most bytes of all challenges together.
const MOST: usize = 4_096;

/// A `Bearer` challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Where the metadata of the resource is.
    pub resource_metadata: Option<String>,
    /// Which scopes are wanted.
    pub scopes: Vec<String>,
    /// What it says is wrong with a credential, if anything.
    pub error: Option<String>,
    /// Whether it says that a credential lacks them, and is good otherwise.
    pub insufficient: bool,
}

impl Challenge {
    /// The first `Bearer` among these, if there is one.
    pub(crate) fn of(values: GetAll<'_, HeaderValue>) -> Option<Self> {
        let mut left = MOST;
        for value in values {
            left = left.checked_sub(value.len())?;
            if let Some(found) = value.to_str().ok().and_then(read) {
                return Some(found);
            }
        }
        None
    }
}

/// Challenges and their parameters stand in one list, with commas between all of them (RFC 9110 11.6.1).
fn read(text: &str) -> Option<Challenge> {
    let mut found: Option<Challenge> = None;
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            return found;
        }
        let Some(value) = after.trim_start().strip_prefix('=') else {
            // A scheme. What follows the one that was looked for is another's.
            if found.is_some() {
                return found;
            }
            found = word.eq_ignore_ascii_case("Bearer").then(Challenge::default);
            rest = after;
            continue;
        };
        let (value, after) = value_of(value.trim_start())?;
        rest = after;
        if let Some(found) = &mut found {
            match word.to_ascii_lowercase().as_str() {
                "resource_metadata" => found.resource_metadata = Some(value),
                "error" => {
                    found.insufficient = value == "insufficient_scope";
                    found.error = Some(value);
                }
                "scope" => {
                    found.scopes = value.split_ascii_whitespace().map(str::to_owned).collect();
                }
                _ => {}
            }
        }
    }
}

/// A token or a quoted string, and what follows it.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return Some((value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

const fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(
            c,
            '!' | '#'
                | '$'
                | '%'
                | '&'
                | '\''
                | '*'
                | '+'
                | '-'
                | '.'
                | '^'
                | '_'
                | '`'
                | '|'
                | '~'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(metadata: Option<&str>, scopes: &[&str]) -> Option<Challenge> {
        Some(Challenge {
            resource_metadata: metadata.map(str::to_owned),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            error: None,
            insufficient: false,
        })
    }

    #[test]
    fn what_a_credential_lacks_is_told_from_that_there_is_none() {
        let says = |text: &str| read(text).unwrap().insufficient;
        assert!(says(r#"Bearer error="insufficient_scope", scope="write""#));
        assert!(says("Bearer scope=write,error=insufficient_scope"));
        assert!(!says(r#"Bearer error="invalid_token", scope="write""#));
        assert!(!says(r#"Bearer scope="insufficient_scope""#));
    }

    #[test]
    fn a_bearer_challenge_is_found_wherever_it_stands() {
        const AT: &str = "https://mcp.example/.well-known/oauth-protected-resource";
        for (text, wanted) in [
            (
                format!(r#"Bearer resource_metadata="{AT}", scope="read write""#),
                challenge(Some(AT), &["read", "write"]),
            ),
            (
                format!(r#"bearer error="invalid_token" , RESOURCE_METADATA = "{AT}""#),
                challenge(Some(AT), &[]).map(|found| Challenge {
                    error: Some("invalid_token".into()),
                    ..found
                }),
            ),
            (
                format!(
                    r#"Basic realm="a, Bearer scope=\"x\"", Bearer scope=one, Digest scope="no", resource_metadata="{AT}""#
                ),
                challenge(None, &["one"]),
            ),
            ("Bearer".into(), challenge(None, &[])),
            (r#"Basic realm="x""#.into(), None),
            (r#"Bearer scope="never ends"#.into(), None),
            (r#"scope="of nothing""#.into(), None),
            (String::new(), None),
            ("Negotiate abc==".into(), None),
        ] {
            assert_eq!(read(&text), wanted, "{text}");
        }
    }

    #[test]
    fn challenges_without_end_are_none() {
        let mut headers = http::HeaderMap::new();
        let name = http::header::WWW_AUTHENTICATE;
        headers.append(&name, HeaderValue::from_static("Basic x"));
        headers.append(&name, HeaderValue::from_static("Bearer scope=a"));
        assert_eq!(
            Challenge::of(headers.get_all(&name)),
            challenge(None, &["a"])
        );
        let long = format!("Basic realm=\"{}\"", "x".repeat(MOST));
        headers.insert(&name, HeaderValue::from_str(&long).unwrap());
        headers.append(&name, HeaderValue::from_static("Bearer scope=a"));
        assert_eq!(Challenge::of(headers.get_all(&name)), None);
    }
}
