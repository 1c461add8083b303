//! Twice the text takes twice the work, whatever it holds: counted in bytes that are looked at, so that no clock is asked.

use std::fmt::Write;

use crate::sanitize::{rules::Budget, work::take_looked};

use super::*;

/// The shorter text; the other is twice as long. Half as long again as the farthest look, so that looks from each place that
/// go no farther than a bound, but over the same bytes, are seen as what they are: in twice the text they are more than twice
/// as much.
const SHORTER: usize = 48 << 10;

/// The most bytes that are looked at for each byte of a text, however often its kind asks for a bounded look.
const MOST: usize = 128;

/// What is made to be looked at again and again, by what it begins with, what is repeated, and what it ends with.
const MADE: [(&str, &str, &str); 111] = [
    ("", "7", ""),
    ("", "4111 1111 ", ""),
    ("", "4929-1234-5678-9012-", ""),
    ("", "1.2.3-4/5 ", ""),
    ("", "DE89 3704 0044 0532 0130 0", ""),
    ("", "1234563218,a\n", ""),
    ("a,b\n", "1234563218,a\n", ""),
    ("a,b\n", "1234563218,", ""),
    ("", "1234563218  a\n", ""),
    ("", "<td>1234563218", ""),
    ("<table>", "<tr><td>1234563218", ""),
    ("", "('1234563218', ", ""),
    ("(a, b) VALUES ", "('a', '1234563218'), ", ""),
    ("", "[\"1234563218\", ", ""),
    ("[[\"a\"],", "[\"1234563218\"],", ""),
    ("", "[[1234563218", ""),
    ("", "de89", ""),
    ("", "DE89-", ""),
    ("", "charge 4803 2026\n2702 ", ""),
    ("a  b\n", "1  1234563218\n", ""),
    ("a:   nip  b\n", "1    1234563218\n", ""),
    ("|===\n|nip |b |c\n\n", "|1234563218\n", ""),
    ("|===\n|nip |b |c\n\n", "|1234563218\n|a\n|b\n\n", ""),
    ("", "a: b\na  1234563218\n\n", ""),
    (
        "",
        "'AC9f86d081884c7d659a1fb2e93c07d4a6',   '9f86d081884c7d659a1fb2e93c07d4a6'",
        "",
    ),
    ("", "a=", ""),
    ("", "a=a:", ""),
    ("", "password=", ""),
    ("", "password: ", ""),
    ("", "password=a", ""),
    ("Server=x;", "Password=aB3!;", ""),
    ("", "api_key='", ""),
    ("", "\"d\": \"", ""),
    ("", "\"auth\": \"", ""),
    ("", "kind: Secret\ndata:\n a: b\n", ""),
    ("", "\"kind\": \"Secret\"", ""),
    ("", "{\"data\":{\"a\":\"b\"},\"kind\":\"Secret\"}", ""),
    ("", "\"kind\":\"Secret\"}", ""),
    ("", "{\"kind\":\"Secret\",", ""),
    ("", "{\"kind\":\"Secret\",\"data\":{\"a\":\"b\"", ""),
    ("", " data:\n  a: b\nkind: Secret\n---\n", ""),
    ("", "https://hooks.slack.com/services/", ""),
    ("", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n", ""),
    ("", "curl -u \"a:aB3!x7Qw,", ""),
    ("", "\tPGPASSWORD=aB3!x7Qw,", ""),
    ("a;", "Password=aB3!x7Qw,;", ""),
    ("", "jdbc:oracle:a/aB3!x7Qw@", ""),
    ("", "-----BEGIN PRIVATE KEY-----(", "-----END "),
    ("sshpass ", "-p aaaaaaaaaaaaa1 ", ""),
    ("", "IDENTIFIED BY 'a!aaaaaaaaaaaaa1!", ""),
    ("", "a:aaaaaaaaaaaaa1|chpasswd", ""),
    (
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
        "\"\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1",
        "",
    ),
    (
        "",
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1\n",
        "",
    ),
    ("", "{},\"k\":\"Zq8vT3nR6wYb1KdM5xHc0\",", ""),
    ("", "{\"k\":\"Zq8vT3nR6wYb1KdM5xHc0\",", ""),
    ("", "ConvertTo-SecureString \"", ""),
    ("", "Authorization: Bearer a", ""),
    ("", "Authorization: Basic ", ""),
    ("", "https://a:", ""),
    ("", "a://b@", ""),
    ("curl ", "-u a:b ", ""),
    ("", "a:b -u", ""),
    ("", "x", ""),
    ("", "x1", ""),
    ("", "a-", ""),
    ("", "a_B-", ""),
    ("", "ey-", ""),
    ("", "ey1-", ""),
    ("", "ey1-", ".eyJhbGciOiJI.eyJhbGciOiJIU"),
    ("", "ey-", ".eyJhbGciOiJI.eyJhbGciOiJIU"),
    ("", "eyJhbGciOiJIUzI1NiJ9.", ""),
    ("", "ey", ""),
    ("", "aaaaaaaaaaaaa1.", ""),
    ("", "aaaaaaaaaaaaa1/", ""),
    ("api_key=", "aaaaaaaaaaaaa1+", ""),
    ("", "token=aaaaaaaaaaaaa1=", ""),
    ("", "aws secret key ab12cd34ef56gh78 ", ""),
    ("", "ghp_aaaaaaaaaaaaaaaaaaa ", ""),
    ("", "sk_live_", ""),
    ("", "sk-", ""),
    ("", "xoxb-1234567890-", ""),
    ("", "AKIA", ""),
    ("", "AKIA AKIA1 ", ""),
    ("", "~", ""),
    ("", "a1bQ~", ""),
    ("", "-----", ""),
    ("", "-----BEGIN PRIVATE KEY-----\n", ""),
    (
        "",
        "-----BEGIN PRIVATE KEY----- ==",
        "-----END PRIVATE KEY-----",
    ),
    (
        "",
        "-----BEGIN PRIVATE KEY-----\n=-=-=-=-=-=-=-",
        "-----END ",
    ),
    ("", "PuTTY-User-Key-File-", ""),
    ("", "PuTTY-User-Key-File-3: ", "Private-Lines: 14\n===="),
    (
        "",
        "-----BEGIN PRIVATE KEY-----==========================PuTTY-User-Key-File-",
        "Private-Lines: 1==-----END ",
    ),
    ("", "PuTTY-User-Key-File-Private-Lines: 1", "="),
    ("", "<", ""),
    ("", "<a ", ""),
    ("", "<a href='", ""),
    ("", "<style>", ""),
    ("", "<!--", ""),
    ("", "[", ""),
    ("", "(", ""),
    ("", "![", ""),
    ("", "![](", ""),
    ("", "[a](", ""),
    ("", "[a]: ", ""),
    ("", "`", ""),
    ("", "`a``b```c````", "![x](//y)"),
    ("", "```\n![", ""),
    ("", "%", ""),
    ("", "%4", ""),
    ("", "%41", ""),
    ("", "%2541 ", ""),
];

/// The same of what is not plain ASCII, or not plainly so.
const HIDDEN: [&str; 24] = [
    "\u{200B}",
    "a\u{200B}",
    "\u{200D}",
    "a\u{200D}",
    "😀\u{200D}",
    "😀\u{FE0F}\u{200D}",
    "\u{FE0F}",
    "ن\u{200C}",
    "\u{200F}",
    "א\u{200E}a",
    "\u{202E}",
    "\u{2066}",
    "\u{2067}\u{2069}",
    "\u{2069}",
    "ab\u{AD}cd",
    "\u{2800}",
    "\u{E0041}",
    "\u{1B}[",
    "\u{1B}]0;",
    "\u{9B}3",
    "Ａ",
    "\\u0041",
    "12\u{A0}345\u{A0}678 ",
    "my DE89\u{A0}3704\u{A0}0044\u{A0}0532\u{A0}0130\u{A0}00, and more words behind it ",
];

fn sanitizer() -> Sanitizer {
    let own = OwnCredentials::new();
    own.hold(["aaaaaaaab", "hunter2-hunter2-hunter2"]);
    let rules = Rules {
        budget: Budget {
            base: std::time::Duration::from_secs(3600),
            ..Budget::default()
        },
        ..Rules::default()
    };
    Sanitizer::standard(rules, Findings::new(), own)
}

/// The bytes that are looked at where one text is this.
fn work(sanitizer: &Sanitizer, value: &Json) -> usize {
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    take_looked();
    let _ = sanitizer.look(value, &subject);
    take_looked()
}

/// That twice as much is no more than twice the work and a little.
fn check(sanitizer: &Sanitizer, name: &str, value: impl Fn(usize) -> Json) {
    let [(less, short), (more, long)] = [1, 2].map(|times| {
        let value = value(SHORTER * times);
        (work(sanitizer, &value), value.len())
    });
    assert!(less >= short / 2, "{name}: nothing was counted");
    assert!(less <= short * MOST, "{name}: {less} bytes of {short}");
    let times = long as f64 / short as f64;
    assert!(
        more as f64 <= less as f64 * times * 1.15,
        "{name}: {less} bytes of {short}, {more} of {long}"
    );
}

fn text(text: &str) -> Json {
    let text = Json::string(text);
    json(&format!(
        r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
        text.as_str()
    ))
}

#[test]
fn twice_the_text_takes_twice_the_work_whatever_it_is_made_of() {
    let sanitizer = sanitizer();
    for (before, again, after) in MADE {
        check(&sanitizer, again, |bytes| {
            let again = again.repeat(bytes / again.len());
            text(&format!("{before}{again}{after}"))
        });
    }
    for again in HIDDEN {
        check(&sanitizer, &again.escape_unicode().to_string(), |bytes| {
            text(&again.repeat(bytes / again.len()))
        });
    }
}

#[test]
fn what_stands_far_from_all_of_them_is_not_looked_at_for_each() {
    let sanitizer = sanitizer();
    check(&sanitizer, "dots behind runs", |bytes| {
        let runs = "aaaaaaaaaaaaa1=".repeat(bytes / 30);
        text(&format!("x={runs}{}", ".".repeat(bytes / 2)))
    });
    check(&sanitizer, "blanks before cards", |bytes| {
        let cards = "4242424242424242,x ".repeat(bytes / 38);
        text(&format!("{}{cards}", " ".repeat(bytes / 2)))
    });
}

/// Rows are much shorter than a text, so that twice as many of them take twice the work however often each is gone over.
#[test]
fn a_row_of_a_table_is_gone_over_a_few_times_however_many_numbers_are_in_it() {
    let sanitizer = sanitizer();
    let quotes = "'".repeat(2_730);
    let times = [
        (
            "quotes",
            "inn;".repeat(123) + "inn\n",
            format!("{quotes}{}\n", ";7707083893".repeat(123)),
        ),
        (
            "columns",
            "inn  note        ".repeat(200) + "\n",
            format!("{}\n", "7707083893       ".repeat(200)),
        ),
        (
            "columns under rules",
            format!(
                "{}\n{}\n",
                "inn              ".repeat(200),
                "----------       ".repeat(200)
            ),
            format!("{}\n", "7707083893       ".repeat(200)),
        ),
        (
            "cells with a line each",
            "|===\n".to_owned() + &"|inn".repeat(30) + "\n\n",
            format!("{}\n", "|7707083893     \n".repeat(30)),
        ),
        (
            "html",
            format!("<table><tr>{}</tr>", "<th>inn".repeat(200)),
            format!("<tr>{}", "<td>7707083893   ".repeat(200)),
        ),
        (
            "html without rows",
            "<table><tr><th>inn</tr>".to_owned(),
            "<td>7707083893   ".repeat(200),
        ),
        (
            "brackets",
            format!("[[{}\"inn\"]", "\"inn\",".repeat(200)),
            format!(",[{}0]", "7707083893,      ".repeat(200)),
        ),
    ]
    .map(|(name, before, row)| {
        let rows = SHORTER / row.len();
        let value = text(&(before + &row.repeat(rows)));
        (name, work(&sanitizer, &value) / value.len())
    });
    // Numbers are dense, and what stands around each is looked at, too.
    assert!(times.iter().all(|(_, times)| *times < 140), "{times:?}");
}

#[test]
fn twice_the_text_takes_twice_the_work_however_it_is_encoded() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let sanitizer = sanitizer();
    for inside in ["AKIA AKIA1 password=", "x", "ey-", "%41", "4111 1111 "] {
        for times in 1..=3 {
            check(&sanitizer, &format!("{inside} {times} times"), |bytes| {
                let all = (0..times).fold(inside.repeat(bytes / inside.len()), |all, _| {
                    STANDARD.encode(all)
                });
                text(&all)
            });
        }
        check(&sanitizer, &format!("{inside} in lines"), |bytes| {
            let line = STANDARD.encode(inside.repeat(8));
            text(&format!("{line}\n").repeat(bytes / line.len()))
        });
    }
}

#[test]
fn twice_as_many_strings_take_twice_the_work() {
    let sanitizer = sanitizer();
    for (name, value) in [
        ("text", "AK"),
        ("text", "a"),
        ("password", "x1y2z3"),
        ("a", ""),
    ] {
        check(&sanitizer, name, |bytes| {
            let mut all = String::from("[");
            for nth in 0..bytes / 24 {
                let comma = if nth == 0 { "" } else { "," };
                let _ = write!(all, r#"{comma}{{"{name}":"{value}{nth}"}}"#);
            }
            json(&(all + "]"))
        });
    }
}

/// Most of the work is for what was decoded: a text that is decoded twice over, or beginnings of text where there are none, cost
/// many times as much.
#[test]
fn what_is_encoded_among_sentences_takes_a_few_looks() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let sanitizer = sanitizer();
    let mut all = String::new();
    for nth in 0..100 {
        let sentences = format!(
            "The {nth}th paragraph is of a table. It shows which number is which, and (again) what a byte of it is.\n"
        );
        let once = STANDARD.encode(sentences.repeat(3));
        let twice = STANDARD.encode(&once);
        let _ = writeln!(all, "{sentences}{once}\n{twice}");
    }
    let value = text(&all);
    let times = work(&sanitizer, &value) as f64 / value.len() as f64;
    assert!((1.0..14.0).contains(&times), "{times}");
}
