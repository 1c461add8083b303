//! Canonical text of a value (RFC 8785): the same for equal values, and for no others.
//! Neither the order of members nor the spelling of strings and numbers makes values differ.
//!
//! Numbers are not rounded to doubles first, as the RFC has it: two numbers that a double cannot tell apart stay two. For all
//! others the text is that of the RFC. Recursion is as deep as the value, which its scan has bounded.

use super::{Decimal, Kind, Node};

/// The canonical text of `node`.
pub fn canonical(node: Node<'_>) -> String {
    let mut out = String::with_capacity(node.raw_bytes().len());
    write(node, &mut out);
    out
}

fn write(node: Node<'_>, out: &mut String) {
    match node.kind() {
        Kind::Object => {
            let mut members: Vec<_> = node.members().collect();
            members.sort_by(|one, other| one.key.encode_utf16().cmp(other.key.encode_utf16()));
            out.push('{');
            for (at, member) in members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                text(&member.key, out);
                out.push(':');
                write(member.value, out);
            }
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            for (at, element) in node.elements().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(element, out);
            }
            out.push(']');
        }
        Kind::String => text(&node.as_str().unwrap_or_default(), out),
        Kind::Number => match Decimal::parse(node.raw()) {
            Some(number) => number.write(out),
            None => out.push_str(node.raw()),
        },
        Kind::Bool | Kind::Null => out.push_str(node.raw()),
    }
}

fn text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{C}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => {
                out.push_str("\\u00");
                for digit in [u32::from(c) >> 4, u32::from(c) & 15] {
                    out.push(char::from_digit(digit, 16).unwrap_or('0'));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::{Json, Limits};

    fn of(text: &str) -> String {
        let json = Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::CLIENT).unwrap();
        canonical(json.root())
    }

    #[test]
    fn equal_values_have_one_text_and_others_another() {
        let one = of(r#"{"b":[1.0,"\u0041\n"],"a":{"é":null,"\ud83d\ude00":true}}"#);
        assert_eq!(one, "{\"a\":{\"é\":null,\"😀\":true},\"b\":[1,\"A\\n\"]}");
        assert_eq!(
            of("{ \"a\" : {\"😀\":true,\"é\":null}, \"b\":[1e0, \"A\\u000a\"] }"),
            one
        );
        for other in [
            r#"{"b":["A\n",1],"a":{"é":null,"😀":true}}"#,
            r#"{"b":[1,"A\n"],"a":{"é":false,"😀":true}}"#,
            r#"{"b":["1","A\n"],"a":{"é":null,"😀":true}}"#,
        ] {
            assert_ne!(of(other), one);
        }
    }

    #[test]
    fn members_are_in_the_order_of_utf_16() {
        // By code points U+FB33 comes first, by UTF-16 units the surrogates of U+1F600.
        assert_eq!(of("{\"\u{FB33}\":1,\"😀\":2}"), "{\"😀\":2,\"\u{FB33}\":1}");
        assert_eq!(of("[\"\\u001f\\u007f\\/\"]"), "[\"\\u001f\u{7f}/\"]");
    }
}
