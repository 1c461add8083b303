//! Media: what is refused makes place for a word, and what is text in Base64 is read.

use super::*;

#[test]
fn blobs_that_are_text_are_read_and_stay_base64() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let blob = |text: &str| {
        format!(
            r#"{{"contents":[{{"uri":"a:b","mimeType":"text/plain; charset=utf-8","blob":"{}"}}]}}"#,
            STANDARD.encode(text)
        )
    };
    assert_eq!(
        result(&blob(&format!("é {KEY}\n"))),
        blob("é [redacted:test_key]\n")
    );
    assert_eq!(result(&blob("fine")), blob("fine"));
}

/// What the first blob of a result stands for.
fn read_blob(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let value = json(text);
    let contents = value.root().member("contents");
    let first = contents.and_then(|contents| contents.elements().next());
    let blob = first.and_then(|first| first.member("blob")).unwrap();
    String::from_utf8(STANDARD.decode(&*blob.as_str().unwrap()).unwrap()).unwrap()
}

#[test]
fn a_text_that_can_be_read_only_when_what_hides_is_gone_is_read_then() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let encoded = STANDARD.encode(format!("é {KEY}, and so on"));
    let split = format!("{}\u{200B}{}", &encoded[..4], &encoded[4..]);
    for (name, mime, blob) in [
        ("mimeType", "text/plain", split.as_str()),
        ("mimeType", "te\u{200B}xt/plain", &encoded),
        ("mime\u{200B}Type", "text/plain", &encoded),
    ] {
        let once = result(&format!(
            r#"{{"contents":[{{"uri":"a:b","{name}":"{mime}","blob":"{blob}"}}]}}"#
        ));
        assert_eq!(
            read_blob(&once),
            "é [redacted:test_key], and so on",
            "{name} {mime}"
        );
        assert_eq!(result(&once), once);
    }
}

/// What every blob of the contents of a result stands for.
fn read_blobs(text: &str) -> Vec<String> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let value = json(text);
    let contents = value.root().member("contents").unwrap();
    let blobs = contents.elements().filter_map(|item| item.member("blob"));
    blobs
        .map(|blob| STANDARD.decode(&*blob.as_str().unwrap()).unwrap())
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect()
}

#[test]
fn a_blob_is_read_whatever_became_of_another_like_it() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let encoded = STANDARD.encode(format!("é {KEY}, and so on"));
    let shown = "é [redacted:test_key], and so on";
    let split = format!("{}\u{200B}{}", &encoded[..4], &encoded[4..]);
    let plain = format!(r#"{{"uri":"a:1","mimeType":"text/plain","blob":"{encoded}"}}"#);
    // What is inside of what may not be shown goes with it, though it was read.
    let refused = format!(r#"{{"uri":"a:1","mimeType":"image/png","blob":"AAAA","x":{plain}}}"#);
    for (name, mime, blob) in [
        ("mimeType", "text/plain", split.as_str()),
        ("mimeType", "te\u{200B}xt/plain", &encoded),
        ("mime\u{200B}Type", "text/plain", &encoded),
    ] {
        let item = format!(r#"{{"uri":"a:2","{name}":"{mime}","blob":"{blob}"}}"#);
        for (contents, expected) in [
            (format!("{plain},{item}"), vec![shown; 2]),
            (format!("{item},{plain}"), vec![shown; 2]),
            (format!("{refused},{item}"), vec![shown]),
        ] {
            let once = result(&format!(r#"{{"contents":[{contents}]}}"#));
            assert_eq!(read_blobs(&once), expected, "{name} {mime}: {contents}");
            assert_eq!(result(&once), once);
        }
    }
}

#[test]
fn blobs_alike_that_are_read_one_after_the_other_are_told_of_each() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let blob = STANDARD.encode(format!("é {KEY}"));
    let (verdict, sanitizer) = look(
        &format!(
            r#"{{"contents":[{{"uri":"a:1","mimeType":"text/plain","blob":"{blob}"}},{{"uri":"a:2","mime\u200BType":"text/plain","blob":"{blob}"}}]}}"#
        ),
        Direction::Results,
    );
    let Verdict::Changed(_, marks) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(
        marks.told().as_str(),
        r#"[{"action":"redact","class":"secret","rule":"test_key","count":2},{"action":"remove","class":"hidden_unicode","rule":"zero_width","count":1}]"#
    );
    assert_eq!(sanitizer.findings().recent().len(), 3);
}

#[test]
fn a_blob_that_is_read_again_is_told_of_once() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let mut rules = Rules::default();
    rules.actions.set_all(Class::Secret, Some(Action::Flag));
    let actions = rules.actions;
    let sanitizer = Sanitizer::new(
        vec![Arc::new(Invisible), Arc::new(Keys)],
        rules,
        Findings::new(),
    );
    let value = json(&format!(
        r#"{{"contents":[{{"uri":"a:\u200Bb","mimeType":"text/plain","blob":"{}"}}]}}"#,
        STANDARD.encode(KEY)
    ));
    let verdict = sanitizer.look(&value, &Subject::new(Direction::Results, &actions, &[]));
    let Verdict::Changed(_, marks) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(
        marks.told().as_str(),
        r#"[{"action":"flag","class":"secret","rule":"test_key","count":1},{"action":"remove","class":"hidden_unicode","rule":"zero_width","count":1}]"#
    );
    assert_eq!(sanitizer.findings().recent().len(), 2);
}

#[test]
fn text_in_a_loose_spelling_of_base64_is_read_too() {
    use base64::{Engine, engine::general_purpose::*};
    // What is looked for in nothing that was decoded from a string.
    let hides = "some\u{200B}thing that is hidden~~~???!";
    let lines = STANDARD.encode(hides);
    let lines = lines.as_bytes().chunks(16).map(str::from_utf8);
    let lines: Vec<&str> = lines.map(Result::unwrap).collect();
    let foreign = [b"caf\xE9 and ".as_slice(), hides.as_bytes()].concat();
    let shown = "something that is hidden~~~???!";
    for (blob, expected) in [
        (lines.join("\\r\\n"), shown.to_owned()),
        (STANDARD_NO_PAD.encode(hides), shown.to_owned()),
        (URL_SAFE.encode(hides), shown.to_owned()),
        (STANDARD.encode(foreign), format!("caf\u{FFFD} and {shown}")),
    ] {
        let once = result(&format!(
            r#"{{"contents":[{{"uri":"a:b","mimeType":"text/plain","blob":"{blob}"}}]}}"#
        ));
        assert_eq!(read_blob(&once), expected, "{blob}");
    }
    for fine in ["fine", "this is no Base64 at all, and fine", "Y2Fm6Q=="] {
        let text =
            format!(r#"{{"contents":[{{"uri":"a:b","mimeType":"text/plain","blob":"{fine}"}}]}}"#);
        assert_eq!(result(&text), text);
    }
}

/// As UTF-16 of either order, with a mark in front or without.
fn wide(text: &str, big: bool, marked: bool) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let marked = if marked { "\u{FEFF}" } else { "" };
    let units = marked.encode_utf16().chain(text.encode_utf16());
    let bytes = units.flat_map(|unit| {
        if big {
            unit.to_be_bytes()
        } else {
            unit.to_le_bytes()
        }
    });
    STANDARD.encode(bytes.collect::<Vec<u8>>())
}

fn blob_of(mime: &str, blob: &str) -> String {
    format!(r#"{{"contents":[{{"uri":"a:b","mimeType":"{mime}","blob":"{blob}"}}]}}"#)
}

#[test]
fn text_in_utf_16_is_read_and_stays_utf_16() {
    let hides = format!("é 字 {KEY}, and so on");
    let shown = "é 字 [redacted:test_key], and so on";
    for (mime, big, marked) in [
        ("text/plain; charset=utf-16", false, true),
        ("text/plain; charset=utf-16", true, true),
        ("application/xml", true, true),
        ("text/plain", false, true),
        ("text/plain; charset=UTF-16LE", false, false),
        ("text/plain; charset=\\\"utf-16be\\\"", true, false),
        ("text/plain;charset=utf-16", false, false),
        ("text/plain;charset=utf-16", true, false),
    ] {
        let once = result(&blob_of(mime, &wide(&hides, big, marked)));
        assert_eq!(
            once,
            blob_of(mime, &wide(shown, big, marked)),
            "{mime} {big} {marked}"
        );
        assert_eq!(result(&once), once);
        for fine in ["fine", "это в порядке", "字字字", "x"] {
            let fine = blob_of(mime, &wide(fine, big, marked));
            assert_eq!(result(&fine), fine, "{mime} {big} {marked}");
        }
    }
}

#[test]
fn text_that_says_of_itself_that_it_is_utf_16_hides_nothing_from_those_who_do_not_listen() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let narrow = STANDARD.encode(format!("é {KEY}, and so on"));
    let narrow = blob_of("text/plain; charset=utf-16", &narrow);
    assert_eq!(
        read_blob(&result(&narrow)),
        "é [redacted:test_key], and so on"
    );
    for bytes in [
        [
            b"\xFF\xFE".as_slice(),
            format!("a text with {KEY} in it").as_bytes(),
        ]
        .concat(),
        [
            b"h\0e\0".as_slice(),
            format!("a text with {KEY} in it").as_bytes(),
        ]
        .concat(),
    ] {
        let blob = blob_of("text/plain; charset=utf-16", &STANDARD.encode(bytes));
        assert!(
            read_blob(&result(&blob)).contains("[redacted:test_key]"),
            "{blob}"
        );
    }
}

#[test]
fn what_is_called_text_and_cannot_be_read_makes_place_for_a_word() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    // As what is packed begins.
    let packed: Vec<u8> = (0..=255_u8).map(|byte| byte.wrapping_mul(167)).collect();
    let packed = [b"\x1F\x8B\x08\x00".as_slice(), &packed].concat();
    let packed = STANDARD.encode(packed);
    let lines = format!("{}\\n{}", &packed[..76], &packed[76..]);
    for blob in [&packed, &lines] {
        assert_eq!(
            result(&blob_of("text/plain", blob)),
            r#"{"contents":[{"uri":"a:b","text":"[blocked:media_type_mismatch]"}]}"#
        );
    }
    // Not called text, or text of another alphabet: Russian in windows-1251.
    let binary = blob_of("application/octet-stream", &packed);
    assert_eq!(result(&binary), binary);
    let russian = STANDARD.encode(b"\xCF\xF0\xE8\xE2\xE5\xF2, \xEC\xE8\xF0! \xCF\xEE\xEA\xE0.\r\n");
    let russian = blob_of("text/plain; charset=windows-1251", &russian);
    assert_eq!(result(&russian), russian);
}

/// SECURITY 7, C10: servers call whatever bytes they have text, and what is mostly controls would be cut to pieces as such.
#[test]
fn what_is_called_text_and_is_an_archive_makes_place_for_a_word_and_is_not_cut_to_pieces() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let blob = |text: &str| blob_of("text/plain", &STANDARD.encode(text));
    let archive = format!(
        "notes.txt{}0000644{}hello, world",
        "\0".repeat(91),
        "\0".repeat(400)
    );
    assert_eq!(
        result(&blob(&archive)),
        r#"{"contents":[{"uri":"a:b","text":"[blocked:media_type_mismatch]"}]}"#
    );
    // What has a few of them, or has colours, is text and read as that.
    let words = "words and words ".repeat(9);
    for odd in ["\0", "\u{1}", "\u{1B}[31m"] {
        let told = result(&blob(&format!("{words}{odd}{KEY}.")));
        assert_eq!(told, blob(&format!("{words}{odd}[redacted:test_key].")));
    }
}

#[test]
fn nothing_is_left_unread_because_it_is_called_a_picture() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n and so on, and so forth, to the end of it");
    let behind = format!("{png}. {KEY}");
    for (mime, data) in [
        ("image/x", KEY),
        ("image/png", KEY),
        ("font/x", &format!("a {KEY} b")),
        ("image/png", &behind),
    ] {
        let text = format!(r#"{{"arguments":{{"x":{{"mimeType":"{mime}","blob":"{data}"}}}}}}"#);
        let verdict = look(&text, Direction::Arguments).0;
        assert!(
            matches!(&verdict, Verdict::Blocked(blocked) if blocked.kind == "secret" && blocked.place == "/arguments/x/blob"),
            "{text}: {verdict:?}"
        );
    }
}

#[test]
fn names_and_types_are_known_however_they_are_spelled() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let svg = STANDARD
        .encode("<svg><script>x()</script></svg>")
        .replace('/', r"\/");
    for block in [
        format!(r#"{{"type":"image","mimeType":"image\/svg+xml","data":"{svg}"}}"#),
        format!(r#"{{"type":"im\u0061ge","mimeType":"image/svg+xml","data":"{svg}"}}"#),
        format!(r#"{{"type":"image","mime\u0054ype":"image/svg+xml","d\u0061ta":"{svg}"}}"#),
    ] {
        assert_eq!(
            result(&format!("[{block}]")),
            r#"[{"type":"text","text":"[blocked:media_scripted_svg]"}]"#,
            "{block}"
        );
    }
    // As PHP spells what it encodes.
    let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n\xFF\xFF\xFF\xFF\xFF\xFF");
    let png = format!(
        r#"[{{"type":"image","mimeType":"image\/png","data":"{}"}}]"#,
        png.replace('/', r"\/")
    );
    assert_eq!(result(&png), png);
    let text = result(&format!(
        r#"{{"contents":[{{"uri":"a:b","mimeType":"text\/plain","blob":"{}"}}]}}"#,
        STANDARD.encode(KEY)
    ));
    assert_eq!(read_blob(&text), "[redacted:test_key]");
    // A seam is one whatever its blocks are called by.
    assert_eq!(
        result(r#"[{"t\u0065xt":"a KEY12"},{"text":"345678 b"}]"#),
        r#"[{"t\u0065xt":"a [redacted:test_key]"},{"text":"[redacted:test_key] b"}]"#
    );
}

#[test]
fn media_inside_of_what_is_refused_goes_with_it() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let text = STANDARD.encode(KEY);
    for inner in [
        r#"{"type":"image","mimeType":"image/png","data":"AAAA"}"#.to_owned(),
        format!(r#"{{"uri":"a:b","mimeType":"text/plain","blob":"{text}"}}"#),
        format!(
            r#"[{{"mimeType":"image/gif","blob":"AAAA"}},{{"mimeType":"text/plain","blob":"{text}"}}]"#
        ),
    ] {
        let outer = format!(
            r#"{{"content":[{{"type":"image","mimeType":"image/png","data":"AAAA","x":{inner}}},{{"type":"image","mimeType":"image/gif","data":"AAAA"}}]}}"#
        );
        assert_eq!(
            result(&outer),
            r#"{"content":[{"type":"text","text":"[blocked:media_type_mismatch]"},{"type":"text","text":"[blocked:media_type_mismatch]"}]}"#,
            "{inner}"
        );
    }
}

#[test]
fn of_very_many_refused_items_some_are_told_of_and_all_are_counted() {
    let items = vec![r#"{"mimeType":"image/png","blob":""}"#; 500];
    let (verdict, sanitizer) = look(&format!("[{}]", items.join(",")), Direction::Results);
    let Verdict::Changed(_, marks) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(
        marks.told().as_str(),
        r#"[{"action":"block","class":"media","rule":"media_type_mismatch","count":500}]"#
    );
    let recent = sanitizer.findings().recent();
    assert_eq!(recent.len(), verdict::TOLD);
    let places = recent.iter().map(|finding| finding.place.to_string());
    let mut places: Vec<String> = places.collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), verdict::TOLD);
    assert!(places.contains(&"/63/mimeType".to_owned()), "{places:?}");
    let counts = sanitizer.findings().counts();
    assert_eq!(counts.iter().map(|count| count.3).sum::<u64>(), 500);
}

#[test]
fn without_time_very_many_items_are_blocked_and_not_passed() {
    let rules = Rules {
        budget: Budget {
            per_mib: std::time::Duration::ZERO,
            base: std::time::Duration::ZERO,
        },
        ..Rules::default()
    };
    // Nothing else is looked for.
    let sanitizer = Sanitizer::new(Vec::new(), rules, Findings::new());
    let actions = Actions::default();
    let items = vec![r#"{"mimeType":"text/plain","blob":"YWJj"}"#; 5_000];
    let value = json(&format!("[{}]", items.join(",")));
    let verdict = sanitizer.look(&value, &Subject::new(Direction::Results, &actions, &[]));
    assert!(matches!(verdict, Verdict::Blocked(blocked) if blocked.kind == "scan_budget"));
}

#[test]
fn media_that_is_not_what_it_says_makes_place_for_a_word() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let image = |mime: &str, bytes: &[u8]| {
        format!(
            r#"{{"content":[{{"type":"image","mimeType":"{mime}","data":"{}"}},{{"type":"text","text":"x"}}]}}"#,
            STANDARD.encode(bytes)
        )
    };
    let said = |rule: &str| {
        format!(
            r#"{{"content":[{{"type":"text","text":"[blocked:{rule}]"}},{{"type":"text","text":"x"}}]}}"#
        )
    };
    let png = b"\x89PNG\r\n\x1a\n and so on, and so forth";
    assert_eq!(result(&image("image/png", png)), image("image/png", png));
    assert_eq!(
        result(&image("image/jpeg", png)),
        said("media_type_mismatch")
    );
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0'/></svg>";
    assert_eq!(
        result(&image("image/svg+xml", svg)),
        image("image/svg+xml", svg)
    );
    for bad in [
        "<svg><script>x()</script></svg>",
        "<svg onload = 'x()'></svg>",
        "<svg><a href='javascript:x'/></svg>",
    ] {
        assert_eq!(
            result(&image("image/svg+xml", bad.as_bytes())),
            said("media_scripted_svg")
        );
    }
    assert_eq!(
        result(r#"{"contents":[{"uri":"a:\u0062","mimeType":"image/gif","blob":"AAAAAAAA"}]}"#),
        r#"{"contents":[{"uri":"a:\u0062","text":"[blocked:media_type_mismatch]"}]}"#
    );
}

#[test]
fn media_that_is_no_base64_is_told_wherever_its_characters_end() {
    let image = |data: &str| {
        format!(r#"{{"content":[{{"type":"image","mimeType":"image/png","data":"{data}"}}]}}"#)
    };
    let said = r#"{"content":[{"type":"text","text":"[blocked:media_not_base64]"}]}"#;
    for before in 0..70 {
        for after in ["", "A", "AAAA", "\u{e9}AAAAAA"] {
            let data = format!("{}\u{e9}{after}", "A".repeat(before));
            // Only whole groups of the first 64 bytes are decoded.
            let read = data.len().min(64) / 4 * 4;
            let said = if before < read {
                said.to_owned()
            } else {
                said.replace("not_base64", "type_mismatch")
            };
            assert_eq!(result(&image(&data)), said, "{before} {after}");
        }
    }
}

#[test]
fn a_blob_beside_the_data_of_a_picture_hides_nothing_of_it() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let fine = STANDARD.encode("<svg><path d='M0 0'/></svg>");
    let scripted = STANDARD.encode("<svg><script>x()</script></svg>");
    let item = |data: &str, blob: &str| {
        format!(
            r#"[{{"type":"image","mimeType":"image/svg+xml","data":"{data}","blob":"{blob}"}}]"#
        )
    };
    let read = STANDARD.encode("<svg>\u{200B}<path d='M0 0'/></svg>");
    for (data, blob) in [
        (&scripted, &fine),
        (&fine, &scripted),
        (&scripted, &scripted),
        (&scripted, &read),
        (&read, &scripted),
    ] {
        assert_eq!(
            result(&item(data, blob)),
            r#"[{"type":"text","text":"[blocked:media_scripted_svg]"}]"#,
            "{data} {blob}"
        );
    }
    assert_eq!(result(&item(&fine, &fine)), item(&fine, &fine));
    assert_eq!(result(&item(&read, &read)), item(&fine, &fine));
}

#[test]
fn an_item_that_is_flagged_twice_is_told_of_once() {
    let mut rules = Rules::default();
    rules.actions.set_all(Class::Media, Some(Action::Flag));
    let actions = rules.actions;
    let sanitizer = Sanitizer::new(vec![Arc::new(Invisible)], rules, Findings::new());
    let value = json(
        r#"[{"type":"image","mimeType":"image/png","data":"AAAA","blob":"BBBB","x":"\u200B"},{"mimeType":"image/png","blob":"CCCC"}]"#,
    );
    let verdict = sanitizer.look(&value, &Subject::new(Direction::Results, &actions, &[]));
    let Verdict::Changed(_, marks) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(
        marks.told().as_str(),
        r#"[{"action":"flag","class":"media","rule":"media_type_mismatch","count":2},{"action":"remove","class":"hidden_unicode","rule":"zero_width","count":1}]"#
    );
    let recent = sanitizer.findings().recent();
    let media = recent.iter().filter(|finding| finding.kind == "media");
    assert_eq!(media.count(), 2);
}
