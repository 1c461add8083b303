//! What is made inert, and what is left.

use proptest::prelude::*;

use super::*;

fn inert(text: &str) -> String {
    let mut hits = Vec::new();
    Active::new(["img.example.org".to_owned(), "*.cdn.example.org".to_owned()])
        .inspect(text, &mut hits);
    let mut clean = String::new();
    let mut at = 0;
    for hit in &hits {
        clean.push_str(&text[at..hit.span.start]);
        clean.push_str(hit.inert.as_deref().unwrap());
        at = hit.span.end;
    }
    clean + &text[at..]
}

#[test]
fn what_would_be_fetched_or_run_is_made_inert_and_stays_so() {
    for text in [
        "![x](https://evil.example/a.png)",
        "![x](<https://evil.example/a b.png>)",
        "![x](//evil.example/a.png)",
        "![x]( \n https://evil.example/a.png \"t\")",
        "![x](HTTPS&#58;//evil.example/a)",
        "![x](https\\://evil.example/a)",
        "![x](http:\\\\evil.example\\a)",
        "![x [y] z](https://evil.example/a)",
        "![a `]` b](https://evil.example/a)",
        "![a <b t=\"]\"> b](https://evil.example/a)",
        "\\\\![x](https://evil.example/a)",
        "[![x](https://evil.example/a)](https://ok.example)",
        "![x][ref]\n\n[ref]: https://evil.example/a",
        "![Ref][]\n\n[ref]:\n  <https://evil.example/a>",
        "![ref]\n> [REF]: //evil.example/a",
        "![[https://evil.example/a.png]]",
        // What is no link after all refers to a definition.
        "![ref](not a link)\n\n[ref]: https://evil.example/a",
        "![ref](\n\n[ref]: https://evil.example/a",
        "![x][a\\]b]\n\n[a\\]b]: https://evil.example/a",
        "![\u{1E9E}]\n\n[SS]: https://evil.example/a",
        "<img src=https://evil.example/a>",
        "<IMG\nalt='>' SRC = 'https://evil.example/a'>",
        "<img/src=\"&#104;ttps:&sol;/evil.example/a\"/>",
        "<img alt=\"x\"src=\"//evil.example/a\">",
        "<img alt=\\\" src=https://evil.example/a>",
        "<img srcset='a.png 1x, https://evil.example/a 2x'>",
        "<source srcset=https://evil.example/a>",
        "<video poster=https://evil.example/a>",
        "<table background='https://evil.example/a'>",
        "<input type=image src=https://evil.example/a>",
        "<svg><image href=https://evil.example/a /></svg>",
        "<svg><use xlink:href='https://evil.example/a#x'/></svg>",
        "<p style=\"background:url('https://evil.example/a')\">",
        "<p style=\"background:u\\72l(//evil.example/a)\">",
        "<p style='background:url(&quot;https://evil.example/a&quot;)'>",
        "<style>@import 'a.css';</style>",
        "<STYLE type=x>p { background: url(https://evil.example/a) }</STYLE>",
        "<link rel=stylesheet href=https://evil.example/a.css>",
        "<script>alert(1)</script>",
        "<ScRiPt/src=x>",
        "<script",
        "<svg:script>x</svg:script>",
        "<svg/onload=alert(1)>",
        "<img src=x onerror = alert(1)>",
        "<x a=\"b\"ONCLICK='y'>",
        "<x onclick=a=b> <x onclick=\"throw a\"> <x onclick='&#97;lert`1`'>",
        "<svg><image><set attributeName=\"href\" to=\"https://evil.example/a\"/></image></svg>",
        "<svg><image><animate attributeName='xlink:href' values='a;https://evil.example/a'/></image></svg>",
        "<iframe src=https://img.example.org/x>",
        "<iframe srcdoc='<p>'>",
        "<object data=x.swf>",
        "<embed src=x>",
        "<meta http-equiv='&#114;efresh' content='0;url=x'>",
        "<base href=https://evil.example/>",
        "[x](javascript:alert(1))",
        "[x](<java\tscript:alert(1)>)",
        "[x](JAVA&#x0A;SCRIPT&colon;alert(1))",
        "[x](javascript\\:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x) and [y](file:///etc/passwd)",
        "[x]\n\n[x]: javascript:alert(1)",
        "[x](\\&#106;avascript:alert(1)) and ![x](\\&sol;\\&sol;evil.example/a)",
        "[x](`)![x](https://evil.example/a)`",
        "[x](u \"`\")![x](https://evil.example/a)`",
        "[x](u ')`')![x](https://evil.example/a)`",
        "[x](u\\)`)![x](https://evil.example/a)`",
        "[x](u(a)`)![x](https://evil.example/a)`",
        "[a][`b]![x](https://evil.example/a)`\n\n[`b]: /u",
        "see https://ok.example/` ![x](https://evil.example/a)`",
        " <div>`<img src=https://evil.example/a>`",
        "- <div>`<img src=https://evil.example/a>`",
        "1. <h1>`<img src=https://evil.example/a>`",
        "1. <div>\n   `<img src=https://evil.example/a>`",
        "[x]\n\n[x]: javascript:alert(1)//:",
        "<x onload=\"alert(1)\n-->{\">",
        "{\"a\":\"x `\\n\\n<img src=https://evil.example/a>\\n\\n`\"}",
        "[x](a(b) \"`\")![x](https://evil.example/a)`",
        "[x](\n`)![x](https://evil.example/a)`",
        "<b>`</b><img src=https://evil.example/a>`",
        "a <p title=\"`\"><img src=https://evil.example/a>`",
        "a <textarea> `<script>` x",
        "<javascript:alert(1)>",
        "<a href='  java&Tab;script:alert(1)'>x</a>",
        "<a href=\"\u{1}javascript:alert(1)\">x</a>",
        "<form action=javascript:x><button formaction=javascript:y>",
        "<animate attributeName=href values=javascript:alert(1)>",
        "<animate attributeName=href values='&#106;avascript:alert(1)'>",
        "<animate attributeName=href values='#a;java&#115;cript:alert(1)'>",
        "<animate attributeName=href values='#a&#59;java&#115;cript:alert(1)'>",
        "<set attributeName=href to='javascript&colon;alert(1)'>",
        "<set attributeName=href to='data:image/svg+xml,<svg/onload=alert(1)>'>",
        "```\n![x](https://evil.example/a)",
        "- ```\n![x](https://evil.example/a)\n```\n",
        "<div>\n```\n<img src=https://evil.example/a>\n```\n",
        "a ` b\n`<img src=https://evil.example/a>` c",
        "<b t=\"`\"><img src=https://evil.example/a> `",
        "|`a | <img src=https://evil.example/a> | b`|",
        "[\"`\",\"![x](https://evil.example/a)\",\"`\"]",
        "{\"a\":\"```\",\"b\":\"<img src=//evil.example/a>\",\"c\":\"```\"}",
        "\\`<script>` x",
    ] {
        let once = inert(text);
        assert_ne!(once, text, "nothing found");
        let twice = inert(&once);
        assert_eq!(twice, once);
    }
}

/// What is left of a string that others stand around.
fn inert_among_others(value: &str) -> String {
    let (before, behind) = ("type: text\ntext: ", "\nisError: false\n");
    let text = format!("{before}{value}{behind}");
    let mut survey = Survey::of(&text);
    survey.begins = vec![0, 6, 11, before.len(), before.len() + value.len() + 1];
    let mut hits = Vec::new();
    let active = Active::new(["img.example.org".to_owned()]);
    active.inspect_surveyed(&text, &survey, &mut hits);
    let mut clean = text.clone();
    for hit in hits.iter().rev() {
        clean.replace_range(hit.span.clone(), hit.inert.as_deref().unwrap());
    }
    let clean = clean.strip_prefix(before).unwrap();
    clean.strip_suffix(behind).unwrap().to_owned()
}

#[test]
fn a_string_begins_a_line_wherever_it_stands_in_a_text() {
    let image = "![x](https://evil.example/a)";
    for value in [
        "```\na\n```\n\nI\n\n```\nb\n```",
        "<div>\n```\nI\n```\n</div>",
        "<!--\n```\n-->\nI\n<!--\n```\n-->",
        "~~~\n```\n~~~\nI\n```",
        "<!doctype html>\n```\nI\n```\n",
        "[x]: https://evil.example/a\n\n![x]",
        "```\nI",
    ] {
        let value = value.replace('I', image);
        assert_ne!(inert_among_others(&value), value, "{value:?}");
        assert_eq!(inert_among_others(&value), inert(&value), "{value:?}");
    }
    let definition = "> [ref]: javascript:alert(1)\n\n[ref]";
    assert_ne!(inert_among_others(definition), definition);
    for value in ["```html\n<script>I\n```\nb", "`<script>` is a tag", "# `I`"] {
        let value = value.replace('I', image);
        assert_eq!(inert_among_others(&value), value);
    }
}

#[test]
fn links_that_carry_much_are_made_inert() {
    let base64 = "QWxsIHlvdXIgYmFzZSBhcmUgYmVsb25nIHRvIHVz".repeat(4);
    let hex = "deadbeef0123".repeat(12);
    for text in [
        format!("[x](https://evil.example/?q={base64})"),
        format!("[x](https://evil.example/{hex})"),
        format!("<https://evil.example/#{base64}>"),
        format!("<a href='https://evil.example/?q={base64}'>x</a>"),
        format!("[x]\n\n[x]: https://evil.example/?q={base64}"),
    ] {
        let once = inert(&text);
        assert_ne!(once, text);
        assert_eq!(inert(&once), once);
    }
}

#[test]
fn what_is_inert_already_is_left_alone() {
    for text in [
        "![x](images/a.png) ![x](#a) ![](data:image/png;base64,AAAA) ![x](https://img.example.org/a) ![x](https://a.cdn.example.org:443/a)",
        "\\![x](https://evil.example/a)",
        "[x](https://evil.example/a) [y][1]\n\n[1]: https://evil.example/b",
        "let v = vec![a](b); assert![x][0]; obj![key]; #![allow(x)]",
        "Vec<u8>, Promise<object>, a < b && c > d, if a <b {} <T: Into<Body>>",
        "<p align=\"center\"><a href=\"https://ok.example/a\"><b>x</b></a><br/></p>",
        "<img src=\"logo.svg\" alt=\"x\"> <img src=https://img.example.org/a>",
        "&lt;script> `<script>` ``<img src=https://evil.example/a>``",
        "```html\n<script src=https://evil.example/a></script>\n```\n\nand `<iframe src=x>` too",
        "~~~\n![x](https://evil.example/a)\n~~~~\n",
        "<link rel=canonical href=https://ok.example/> <meta charset=utf-8> <object>",
        "<user once=\"x\" one='1'/> <node online=\"true\"/> <Foo onChange={save} onUp=a.b>",
        "<svg><animate attributeName=\"width\" values=\"1;2\" to='3'/></svg>",
        "2026-11-22 12:00:03 [worker-1]: file:///srv/a.log is open\n12:00:04: [worker-1]: command:none",
        "ERROR: [app]: search: none\nlevel=error: [app]: file:///srv/a\n[app]: search: none",
        "- about: [x]: javascript:alert(1)",
        "[a](https://ok.example/b) is \"b\" (c) `<script>` and [c](https://ok.example/d) `![x](//e.example)`",
        "{\"about\": \"use `<script>` or `<a b=\\\"c\\\" onclick=d()>`, and \\n `![x](//e.example)`\"}",
        "one of \\<template\\> and \\<script\\> in it",
        "a <b>x</b> `<script>` and a \\_ `<script>` too",
        "<!-- no -->\n```html\n<script src=https://evil.example/a></script>\n```\n",
        "<YouTubeFrame src=\"https://ok.example/\" /> <xs:import src='https://ok.example/a'/>",
        "<Button onClick={() => save()} onBlur={event => {}} />",
        "<style>/* x */ a { b: url(#c) }</style>",
        "the word javascript: is not a link; file:///tmp is a path; onclick = x",
        "[x](https://ok.example/a-very-long-title-of-a-page-that-goes-on-and-on-and-on-until-nobody-reads-it-any-more-and-then-some-more-words-follow)",
        "[x](https://ok.example/sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef)",
    ] {
        assert_eq!(inert(text), text);
    }
}

#[test]
fn what_is_made_inert_in_a_text_that_is_json_is_json_still() {
    for text in [
        "![a](https://evil.example/a.png)",
        "[x](javascript:alert(1))",
        "[r]: javascript:alert(1)",
        "<script>alert(1)</script>",
        "<img alt=\"x\" src=\"https://evil.example/a.png\">",
        "<a href='javascript:alert(1)'>x</a> <a href=\"javascript:alert(1)\">x</a>",
        "<img\nsrc=https://evil.example/a.png>",
        "<img alt=\"x\"\nsrc=\"https://evil.example/a.png\">",
        "<img src=\nhttps://evil.example/a>",
        "<img src\n=\r\n\"https://evil.example/a\">",
        "<img alt=x\r\n\tsrc='https://evil.example/a.png'>",
        "<x\tonload=alert(1)\tid=a>",
        "<meta http-equiv=\"refresh\" content=\"0;url=https://evil.example/\">",
        "![a][r]\n\n[r]: https://evil.example/a",
        "[x]\r\n\r\n[x]: javascript:alert(1)",
    ] {
        let json = serde_json::to_string(&[text]).unwrap();
        // JSON of that JSON, too, as results have it that are told once more as text.
        let twice = serde_json::to_string(&[&json]).unwrap();
        for (text, depth) in [(json, 1), (twice, 2)] {
            let mut clean = inert(&text);
            assert_ne!(clean, text);
            for _ in 0..depth {
                let [inside]: [String; 1] = serde_json::from_str(&clean).expect("JSON");
                clean = inside;
            }
            // What it holds is inert, too.
            assert_eq!(inert(&clean), clean);
        }
    }
}

#[test]
fn hostile_texts_take_no_longer_than_others() {
    for piece in [
        "![",
        "<a \"",
        "<a b='",
        "![[x",
        "]:",
        "](",
        "<style>",
        "![`](",
        "<a:",
        "[a]: //x\n![a]",
        "<p style='//a//a",
        "`<a b=`",
    ] {
        let mut hits = Vec::new();
        Active::new([]).inspect(&piece.repeat(20_000 / piece.len()), &mut hits);
    }
}

proptest! {
    #[test]
    fn spans_rise_between_characters_and_what_is_inert_stays_so(
        text in proptest::collection::vec(prop_oneof![
            "[a-z \n>\"'`=/é\\\\]", Just("![".to_owned()), Just("](".to_owned()), Just("]: ".to_owned()), Just("[a".to_owned()),
            Just("https://e.example/".to_owned()), Just("<img src=".to_owned()), Just("<script".to_owned()),
            Just("javascript:".to_owned()), Just(" onload=".to_owned()), Just("```\n".to_owned()), Just("<style>".to_owned()),
            Just("\n\n".to_owned()), Just(")".to_owned()), Just("&#58;".to_owned()), Just("style='url(".to_owned()),
        ], 0..30).prop_map(|parts| parts.concat())
    ) {
        let mut hits = Vec::new();
        Active::new([]).inspect(&text, &mut hits);
        let mut at = 0;
        for hit in &hits {
            prop_assert!(hit.span.start >= at && text.get(hit.span.clone()).is_some());
            at = hit.span.end;
        }
        let mut clean = text.clone();
        for _ in 0..3 {
            clean = inert(&clean);
        }
        prop_assert_eq!(inert(&clean), clean);
    }
}
