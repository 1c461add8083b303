//! Terminal control: every family of sequences in both forms, terminated and not, and texts that only mention them.
//!
//! Made here, after ECMA-48 and the documentation of xterm.

use usher::sanitize::Class;

use super::sample::Sample;

/// Each sequence in three places.
pub(crate) fn positives() -> Vec<Sample> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    for (seven, eight) in [("\x1b[", "\u{9b}")] {
        for body in [
            "0m",
            "31;1m",
            "38;2;255;0;0m",
            "38:2::1:2:3m",
            "2J",
            "H",
            "10;20H",
            "?25l",
            "?1049h",
            ">c",
            "=c",
            "6n",
            "1A",
            "K",
            "!p",
            "4 q",
            "200~",
            "?2026$p",
            "s",
            "@",
        ] {
            for introducer in [seven, eight] {
                found.push(("CSI", format!("{introducer}{body}")));
            }
        }
    }
    let strings = [
        ("OSC", "\x1b]", "\u{9d}", "0;title"),
        ("OSC", "\x1b]", "\u{9d}", "8;;https://evil.example"),
        ("OSC", "\x1b]", "\u{9d}", "52;c;aGVsbG8="),
        ("OSC", "\x1b]", "\u{9d}", "1337;File=inline=1:AAAA"),
        ("DCS", "\x1bP", "\u{90}", "+q544e"),
        ("DCS", "\x1bP", "\u{90}", "q#0;2;0;0;0~~"),
        ("APC", "\x1b_", "\u{9f}", "Gf=100,a=T;AAAA"),
        ("PM", "\x1b^", "\u{9e}", "private"),
        ("SOS", "\x1bX", "\u{98}", "start"),
        ("OSC", "\x1b]", "\u{9d}", "0;größe\nand more"),
    ];
    for (family, seven, eight, body) in strings {
        for introducer in [seven, eight] {
            for end in ["\x1b\\", "\u{9c}"] {
                found.push((family, format!("{introducer}{body}{end}")));
            }
            if family == "OSC" {
                found.push((family, format!("{introducer}{body}\x07")));
            }
        }
    }
    for two in [
        "7",
        "8",
        "c",
        "=",
        ">",
        "D",
        "E",
        "M",
        "Z",
        "H",
        "\\",
        "(B",
        ")0",
        "*A",
        "+B",
        "#8",
        "%G",
        " F",
        "$)C",
        "NA",
        "OP",
        "kname\x1b\\",
    ] {
        found.push(("ESC", format!("\x1b{two}")));
    }
    let controls = (0..0x20_u8)
        .chain([0x7F])
        .filter(|byte| !matches!(byte, b'\t' | b'\n' | b'\r' | 0x1B));
    found.extend(controls.map(|byte| ("C0", char::from(byte).to_string())));
    let eight = (0x80..=0x9F_u32)
        .filter(|code| !matches!(code, 0x8E | 0x8F | 0x90 | 0x98 | 0x9B | 0x9D | 0x9E | 0x9F));
    found.extend(
        eight
            .filter_map(char::from_u32)
            .map(|ch| ("C1", ch.to_string())),
    );
    let mut all = Vec::new();
    for (family, sequence) in &found {
        for (before, after) in [("plain ", " text"), ("", "\n"), ("größe 漢字", "é end")] {
            all.push(Sample::positive(
                Class::Terminal,
                *family,
                before,
                sequence,
                after,
            ));
        }
    }
    for open in [
        "\x1b[31",
        "\x1b]0;title",
        "\x1bPpayload",
        "\x1b_payload",
        "\x1b^payload",
        "\x1bXpayload",
        "\u{9d}0;x",
        "\u{9b}1;",
        "\x1b",
        "\x1b(",
    ] {
        all.push(Sample::positive(
            Class::Terminal,
            "unterminated",
            "text ",
            open,
            "",
        ));
        all.push(Sample::positive(
            Class::Terminal,
            "unterminated",
            "text ",
            open,
            "\nnext line",
        ));
    }
    all
}

/// Texts that mention sequences, or look like them.
pub(crate) fn negatives() -> Vec<Sample> {
    [
        "\\x1b[31m \\033[0m \\u001b[2J ^[[0m \\e[1m",
        "ESC [ 3 1 m",
        "[31m and [0m without an escape",
        "tab\tand\r\nlines\n",
        "\u{a0}«größe» ÂÀ \u{a9}\u{ad}",
        "漢字カナ한글 😀 עברית",
        "C1 controls are U+0080 to U+009F",
        "]0;title",
        "a[0] = b[1]; c()",
    ]
    .iter()
    .map(|text| Sample::negative(Class::Terminal, "plain", *text))
    .collect()
}
