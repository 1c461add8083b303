//! Finds the request id in a response that is not valid JSON.
//!
//! Guarantees: one pass, whatever the text; a number is taken only where a member of the text itself says it, and only if it says
//! it to its end. Deliberately absent: everything else that such a text says.

/// The id of the response that a broken text was meant to be: the number under `id`, in a text that has no `method` as far as
/// it goes.
pub(super) fn whose(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let mut rest = text.strip_prefix(b"{")?;
    let (mut depth, mut id) = (1_usize, None);
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
                    (1, Some(_)) if said == b"method" => return None,
                    // Said twice, it names nobody.
                    (1, Some(_)) if said == b"id" && id.is_some() => return None,
                    (1, Some(value)) if said == b"id" => id = number(value.trim_ascii_start()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    id
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

/// A whole number, if something stands behind it: one that was cut off may be another.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, behind) = text.split_at(digits);
    let ends = matches!(behind.first()?, b',' | b'}') || behind[0].is_ascii_whitespace();
    let digits = std::str::from_utf8(digits).ok().filter(|_| ends)?;
    digits.parse().ok()
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
            (r#"{"id":5.5,"result":{"#, None),
            (r#"{"id":99999999999999999999,"result":{"#, None),
            (r#"{"result":{"id":3}"#, None),
            (r#"[{"id":3,"result":{}"#, None),
            (r#"{"text":"id":3"#, None),
            ("}{\"id\":3,", None),
            ("{}}\"id\":3,", None),
            ("", None),
        ] {
            assert_eq!(whose(text.as_bytes()), id, "{text}");
        }
    }
}
