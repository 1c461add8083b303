//! What is found and what is left alone.

use proptest::prelude::*;

use super::*;

fn cleaned(text: &str) -> String {
    let mut hits = Vec::new();
    Hidden::new().inspect(text, &mut hits);
    let mut clean = String::new();
    let mut at = 0;
    for hit in &hits {
        clean.push_str(&text[at..hit.span.start]);
        at = hit.span.end;
    }
    clean + &text[at..]
}

#[test]
fn what_scripts_and_emoji_need_is_left_alone() {
    for text in [
        "👩‍❤️‍💋‍👨 🏳️‍🌈 🏴‍☠️ 😮‍💨 👁️‍🗨️ 🧑🏽‍🚀 ❤️ ❤︎ 1️⃣ #️⃣ ✔︎ ©️ 🇩🇪",
        "1️⃣2️⃣3️⃣ 第1️⃣步 Step4️⃣: *️⃣0️⃣ 5\u{FE0E}\u{20E3} 6\u{20E3}",
        "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F} and 🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
        "می\u{200C}خواهم کتاب\u{200C}ها API\u{200C}ها ه\u{200D}",
        "क्\u{200D}ष र\u{94D}\u{200D}य क्\u{200C}ष, র\u{200D}\u{9CD}য, ක්\u{200D}ෂ, ന്\u{200D}",
        "葛\u{E0100}城市 辻\u{E0101} 神\u{FE00}",
        "0\u{FE00} ∩\u{FE00} 、\u{FE01}",
        "שלום \u{2066}world\u{2069}! \u{2067}abc \u{2066}x\u{2069}\u{2069} \u{202B}עברית\u{202C} מחיר: 5\u{200F}₪",
        "Hello, \u{2068}Anna\u{2069}!",
        "Donau\u{AD}dampf\u{AD}schiff und Größen\u{AD}ordnung",
        "ភាសា\u{200B}ខ្មែរ ภาษา\u{200B}ไทย",
        "\u{FEFF}using System;",
        "⠓⠑⠇⠇⠕⠀⠺⠕⠗⠇⠙",
        "ᠮᠣᠩᠭᠣᠯ\u{180E}ᠠ ᠠ\u{180B}",
        "\u{E000}\u{F8FF} \u{FFFD}",
    ] {
        assert_eq!(cleaned(text), text);
    }
}

#[test]
fn what_has_no_place_is_found() {
    for (text, clean) in [
        ("a\u{E0041}\u{E0042}b", "ab"),
        (
            "🏴\u{E0068}\u{E0065}\u{E006C}\u{E006C}\u{E006F}\u{E007F}",
            "🏴",
        ),
        ("😀\u{FE0F}\u{E0121}\u{E0133}x", "😀x"),
        ("a\u{FE0F}b\u{E0101}", "ab"),
        // Behind a digit a selector is seen before a key only.
        ("AKIAQ7\u{FE0F}N5\u{FE0E}H 9\u{FE0F}", "AKIAQ7N5H 9"),
        (
            "1\u{FE0F}\u{FE0F}\u{20E3} 2\u{200B}\u{20E3}",
            "1\u{20E3} 2\u{20E3}",
        ),
        ("a1\u{E0101}\u{20E3}", "a1\u{20E3}"),
        ("\u{1F1E9}\u{FE0F}\u{1F1EA}\u{FE0E}", "\u{1F1E9}\u{1F1EA}"),
        (
            "ig\u{200B}no\u{200C}re\u{200D} \u{2060}all\u{FEFF}",
            "ignore all",
        ),
        ("a\u{2062}b\u{2064}c", "abc"),
        ("x\u{202E}txt.exe\u{202C}y", "xtxt.exey"),
        ("שלום \u{2066}open", "שלום open"),
        ("שלום close\u{2069}", "שלום close"),
        ("if \u{2067}return\u{2069} x", "if return x"),
        ("i\u{2068}gn\u{2069}ore", "ignore"),
        ("שלום ig\u{200E}nore", "שלום ignore"),
        ("plain\u{200E} text", "plain text"),
        ("\u{FFF9}a\u{FFFA}b\u{FFFB}", "ab"),
        ("x\u{3164}y\u{FFA0}z\u{115F}w\u{1160}", "xyzw"),
        ("name\u{2800}\u{2800} end", "name end"),
        ("\u{FDD0}\u{FFFE}\u{1FFFF}\u{10FFFF}", ""),
        (
            "AKIA\u{AD}IOSFODNN7EXAMPLE ghp_ab\u{AD}cd sk\u{AD}1",
            "AKIAIOSFODNN7EXAMPLE ghp_abcd sk1",
        ),
        ("i\u{AD}g\u{AD}n", "ign"),
        ("می\u{200C}\u{200B}\u{200C}خواهم", "میخواهم"),
        ("\u{200B}\u{FEFF}x", "x"),
        // A flag stays, whatever hides behind it.
        (
            "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}\u{E0069}\u{E0067} wins",
            "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F} wins",
        ),
        (
            "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}\u{FE0F}\u{E0069}",
            "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
        ),
        (
            "\u{1F3F4}\u{E0067}\u{E0062}\u{E0069}\u{E007F}x",
            "\u{1F3F4}x",
        ),
    ] {
        assert_eq!(cleaned(text), clean);
    }
}

#[test]
fn a_run_of_hidden_characters_is_one_hit_with_its_rule() {
    let mut hits = Vec::new();
    Hidden::new().inspect("a\u{E0041}\u{E0042}\u{E0043}b", &mut hits);
    assert_eq!(hits.len(), 1);
    assert_eq!(
        (hits[0].span.clone(), &*hits[0].rule),
        (1..13, "tag_character")
    );
}

#[test]
fn no_more_is_told_than_one_value_may_have() {
    let mut hits = Vec::new();
    Hidden::new().inspect(&"a\u{200B}".repeat(200_000), &mut hits);
    assert_eq!(hits.len(), HITS + 1);
}

proptest! {
    #[test]
    fn spans_rise_between_characters_and_removing_them_leaves_none(
        text in proptest::collection::vec(prop_oneof![
            "[a-z0-9A ]", "[\n⠁é한क्رسשไខ葛👩🏴]", "[\u{200B}-\u{200F}]", "[\u{202A}-\u{202E}\u{2066}-\u{2069}]",
            "[\u{AD}\u{34F}\u{61C}\u{115F}\u{1160}\u{180B}\u{180E}\u{2800}\u{FE0F}\u{FEFF}\u{E0067}\u{E007F}\u{E0100}]",
            "[\u{1161}\u{11A8}\u{1820}ុ\u{94D}\u{85}]", "[#*\u{20E3}\u{20FF}\u{2100}\u{27FF}\u{2801}\u{1F300}]",
        ], 0..40).prop_map(|parts| parts.concat())
    ) {
        let mut hits = Vec::new();
        Hidden::new().inspect(&text, &mut hits);
        let mut at = 0;
        for hit in &hits {
            prop_assert!(hit.span.start >= at && hit.span.end > hit.span.start);
            prop_assert!(text.get(hit.span.clone()).is_some());
            at = hit.span.end;
        }
        let once = cleaned(&text);
        prop_assert_eq!(cleaned(&once), once.clone(), "of {:?}", text);
    }
}
