//! What is found and what is left.

use proptest::prelude::*;

use super::*;

fn cleaned(text: &str) -> String {
    let mut hits = Vec::new();
    Terminal::new().inspect(text, &mut hits);
    let mut clean = String::new();
    let mut at = 0;
    for hit in &hits {
        clean.push_str(&text[at..hit.span.start]);
        at = hit.span.end;
    }
    clean + &text[at..]
}

#[test]
fn the_whole_sequence_is_found_and_not_only_what_introduces_it() {
    for (text, clean) in [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b[?25l\x1b[38;2;1;2;3m\x1b[2 qx\x1b[>c", "x"),
        ("\u{9b}31mred\u{9b}0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\u{9d}52;c;aGk=\u{9c}x", "x"),
        ("\x1b]2;a\nb\x07x", "x"),
        ("\x1bPq#0\x1b\\x\u{90}1$r\u{9c}y", "xy"),
        (
            "\x1b_Gf=100;AAAA\x1b\\x\x1b^pm\x1b\\y\x1bXsos\x1b\\z\x1bktitle\x1b\\",
            "xyz",
        ),
        ("\u{9f}apc\u{9c}a\u{9e}pm\u{9c}b\u{98}sos\u{9c}c", "abc"),
        ("\x1bNa\x1bOPb\u{8e}c\u{8f}d", "b"),
        ("\x1b(Bx\x1b)0\x1b#8\x1b%G\x1b F", "x"),
        ("\x1b7x\x1b8\x1bc\x1b=\x1bM", "x"),
        ("\x1b]unterminated payload\nseen", "\nseen"),
        ("\x1bPunterminated\x1b[1mx", "x"),
        ("\x1b[31", ""),
        ("x\x1b", "x"),
        ("\x1b[[Ax", "x"),
        ("\x1b]P1ff0000x", "x"),
        ("a\x00b\x08c\x7fd\u{85}e\x0cf\x0bg\x07", "abcdefg"),
        ("\x1bPtmux;\x1b\x1b]52;c;x\x07\x1b\\y", "y"),
        ("tab\tline\r\n", "tab\tline\r\n"),
        ("\u{a0}«é»\u{a9} 漢字", "\u{a0}«é»\u{a9} 漢字"),
        ("\\x1b[31m ^[[0m", "\\x1b[31m ^[[0m"),
    ] {
        assert_eq!(cleaned(text), clean, "{text:?}");
    }
}

#[test]
fn each_of_many_openers_is_told() {
    let mut hits = Vec::new();
    Terminal::new().inspect(&"\x1b]".repeat(20_000), &mut hits);
    Terminal::new().inspect(&"\u{9d}\x01".repeat(20_000), &mut hits);
    assert_eq!(hits.len(), 40_000);
}

#[test]
fn no_more_is_told_than_one_value_may_have() {
    let mut hits = Vec::new();
    Terminal::new().inspect(&"\x1b]".repeat(200_000), &mut hits);
    assert_eq!(hits.len(), HITS + 1);
}

proptest! {
    #[test]
    fn no_control_character_is_left_and_spans_rise_between_characters(
        text in proptest::collection::vec(prop_oneof![
            "[a-z0-9;\\[\\]P\\\\ ()\n\té]", "[\x00-\x1f\x7f]", "[\u{80}-\u{9f}]", "\x1b", "[漢 ]{0,30}"
        ], 0..60).prop_map(|parts| parts.concat())
    ) {
        let mut hits = Vec::new();
        Terminal::new().inspect(&text, &mut hits);
        let mut at = 0;
        for hit in &hits {
            prop_assert!(hit.span.start >= at && hit.span.end > hit.span.start);
            prop_assert!(text.get(hit.span.clone()).is_some());
            at = hit.span.end;
        }
        prop_assert!(!cleaned(&text).chars().any(|ch| ch.is_control() && !matches!(ch, '\t' | '\n' | '\r')));
    }
}
