//! Finds the id in a text that is no frame: not valid JSON, or more of it than is taken.
//!
//! Guarantees: one pass, whatever the text; an id is taken only where a member of the text itself says it, once, and to its end.
//! Deliberately absent: everything else that such a text says.

/// What a text says of itself, as far as it goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What stands under `id`: a string in its quotes, or whatever else ends before the next member.
    pub id: Option<&'a [u8]>,
    /// Whether it has a `method`: then it wants something, and answers nothing.
    pub asks: bool,
}

/// The members of an envelope in a text that is one object, as far as it goes; `None` where it is none, or where it cannot be told
/// which id is its own.
pub fn envelope(text: &[u8]) -> Option<Envelope<'_>> {
    let text = text.trim_ascii();
    let mut rest = text.strip_prefix(b"{")?;
    let mut depth = 1_usize;
    let mut found = Envelope::default();
    let mut named = false;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let (said, behind) = string(rest);
                rest = behind;
                let value = rest.trim_ascii_start().strip_prefix(b":");
                match (depth, value) {
                    (1, Some(_)) if said == b"method" => found.asks = true,
                    // Said twice, it names nobody; and what is written with escapes may be the second.
                    (1, Some(_)) if said == b"id" && named || said.contains(&b'\\') => {
                        return None;
                    }
                    (1, Some(value)) if said == b"id" => {
                        named = true;
                        found.id = token(value.trim_ascii_start());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Some(found)
}

/// The number of the request that a broken text was meant to answer: it stands under `id`, in a text that has no `method`.
pub fn answered(text: &[u8]) -> Option<u64> {
    let found = envelope(text)?;
    let id = found.id.filter(|_| !found.asks)?;
    let digits = id.iter().all(u8::is_ascii_digit).then_some(id)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What stands before the closing quote, and what behind it.
fn string(text: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, &[])
}

/// One value that is no container, if something stands behind it: what was cut off may be another.
fn token(text: &[u8]) -> Option<&[u8]> {
    let length = match text.strip_prefix(b"\"") {
        Some(behind) => string(behind).0.len() + 2,
        None => text
            .iter()
            .take_while(|byte| !matches!(byte, b',' | b'}') && !byte.is_ascii_whitespace())
            .count(),
    };
    let (token, behind) = text.split_at_checked(length)?;
    let next = behind.first()?;
    (matches!(next, b',' | b'}') || next.is_ascii_whitespace()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_answer_is_known_by_the_id_that_it_says_itself() {
        for (text, id) in [
            (
                "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\u{0}\"}}",
                Some(7),
            ),
            (r#" {"result":{"id":3,"x":NaN},"id" : 12 }"#, Some(12)),
            (r#"{"id":5,"result":{"content":[{"ty"#, Some(5)),
            (r#"{"result":{"text":"}\"id\":4,"},"id":8,}"#, Some(8)),
            (r#"{"id":1,"id":2,"result":{}}"#, None),
            (r#"{"jsonrpc":"2.0","id":12"#, None),
            (r#"{"id":5,"method":"ping","params":{"#, None),
            (r#"{"id":"5","result":{"#, None),
            (r#"{"id":+5,"result":{"#, None),
            (r#"{"id":5.5,"result":{"#, None),
            (r#"{"id":99999999999999999999,"result":{"#, None),
            (r#"{"result":{"id":3}"#, None),
            (r#"[{"id":3,"result":{}"#, None),
            (r#"{"text":"id":3"#, None),
            ("}{\"id\":3,", None),
            ("{}}\"id\":3,", None),
            ("", None),
        ] {
            assert_eq!(answered(text.as_bytes()), id, "{text}");
        }
    }

    #[test]
    fn a_request_is_known_by_an_id_of_any_kind_that_it_says_once_and_to_its_end() {
        for (text, id) in [
            (r#"{"id":"a","method":"m"}"#, Some(r#""a""#)),
            (r#"{"id":"a\",\"}","method":"m"}"#, Some(r#""a\",\"}""#)),
            (r#"{"method":"m","id":-7 }"#, Some("-7")),
            (r#"{"method":"m","params":{"id":1}}"#, None),
            (r#"{"method":"m","id":"a"#, None),
            (r#"{"method":"m","id":"a""#, None),
        ] {
            let found = envelope(text.as_bytes()).unwrap();
            assert!(found.asks, "{text}");
            assert_eq!(found.id, id.map(str::as_bytes), "{text}");
        }
        for nobody in [
            r#"{"id":1,"method":"m","id":{}}"#,
            r#"{"id":{},"method":"m","id":1}"#,
            r#"{"id":1,"method":"m","\u0069d":1}"#,
            "[]",
        ] {
            assert_eq!(envelope(nobody.as_bytes()), None, "{nobody}");
        }
    }
}
