//! Values that nothing can hide in: it is seen without reading their texts.
//!
//! Guarantees: whatever a plain value's texts say, they are printable ASCII, tabs and line breaks. Deliberately absent: what may be
//! written in such text, a secret for one, and whether anybody looks for that.

use fearless_simd::{Level, Simd, dispatch};

use super::survey::{BLOCK, Marks, bits};
use crate::json::Json;

/// Whether the texts of a value are plain. May be false of a value that is, where a backslash stands before a `u`, `b` or `f`.
pub(super) fn is_plain(value: &Json) -> bool {
    dispatch!(Level::new(), simd => each_is_plain(simd, value.as_str().as_bytes()))
}

#[inline(always)]
fn each_is_plain<S: Simd>(simd: S, text: &[u8]) -> bool {
    (0..text.len()).step_by(BLOCK).all(|at| {
        let [now, next] = Marks::on_from(simd, text, at);
        let odd = now.control() | now.at_least(0x80);
        // All other escapes stand for printable characters and white space.
        let escaped = next.is(b'u') | next.is(b'b') | next.is(b'f');
        bits(odd | now.is(b'\\') & escaped) == 0
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::Limits;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned().into(), &Limits::KNOWN).unwrap()
    }

    #[test]
    fn escapes_of_printable_characters_and_of_white_space_are_plain() {
        for (text, plain) in [
            ("\"\"", true),
            ("{\"a\":\t[1,\r\n\"b\"]}", true),
            (r#""\"\\\/\n\r\t""#, true),
            (r#""ubf \\ u""#, true),
            (r#""\u0061""#, false),
            (r#""\b""#, false),
            (r#""\f""#, false),
            ("\"\u{7f}\"", false),
            ("\"\u{e9}\"", false),
        ] {
            assert_eq!(is_plain(&json(text)), plain, "{text:?}");
        }
    }

    #[test]
    fn it_is_seen_wherever_it_stands() {
        for before in 0..3 * BLOCK {
            for odd in ["\u{200b}", "\u{7f}", r"\u001b"] {
                let text = format!("\"{}{odd}\"", "x".repeat(before));
                assert!(!is_plain(&json(&text)), "{before}");
            }
            assert!(is_plain(&Json::string(&"\n".repeat(before))));
        }
    }

    proptest! {
        #[test]
        fn a_plain_value_says_nothing_but_plain_text(text in any::<String>()) {
            let visible = |ch: char| matches!(ch, ' '..='~' | '\t' | '\n' | '\r');
            if is_plain(&Json::string(&text)) {
                prop_assert!(text.chars().all(visible));
            } else {
                prop_assert!(!text.chars().all(visible) || text.contains(['\\', '"', '\n']));
            }
        }
    }
}
