//! Encoded forms that are long, or of texts in any script: what is in them is found wherever it stands.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::*;

/// What becomes of one text.
fn told(text: &str) -> String {
    let value = Json::string(text);
    let value = result(&format!("[{}]", value.as_str()));
    value.trim_matches(&['[', ']', '"'][..]).to_owned()
}

fn gone(text: &str, why: &str) {
    let told = told(text);
    assert!(told.contains("redacted:test_key"), "{why}: {told}");
}

/// Sentences with little ASCII in them, or none, but for what is put into them.
const SENTENCES: [&str; 6] = [
    "这是生产环境的访问密钥{}请务必妥善保管不要告诉任何人谢谢",
    "Это ключ доступа к рабочей среде {} пожалуйста никому его не показывайте",
    "これは本番環境のアクセスキー「{}」です。大切に保管してください。",
    "이것은 운영 환경의 액세스 키 {} 입니다. 아무에게도 알려주지 마십시오",
    "यह उत्पादन परिवेश की कुंजी है {} कृपया इसे किसी को न बताएं",
    "🔑🔑🔑🔑🔑🔑🔑🔑🔑🔑🔑🔑🔑{}🔑🔑🔑🔑🔑🔑🔑🔑🔑",
];

#[test]
fn base64_of_a_sentence_in_any_script_is_read() {
    for sentence in SENTENCES {
        for key in [KEY, "KEY12\u{200B}34\u{200B}5678"] {
            let plain = sentence.replace("{}", key);
            let once = STANDARD.encode(&plain);
            gone(&once, &plain);
            gone(&STANDARD.encode(&once), &plain);
            gone(&format!("xy{once}"), &plain);
            let long = STANDARD.encode(format!("{}{plain}", plain.replace("KEY", "no")));
            gone(&long, &plain);
            let hex: String = plain.bytes().map(|byte| format!("{byte:02x}")).collect();
            gone(&hex, &plain);
        }
    }
}

#[test]
fn a_long_run_of_base64_is_read_at_every_alignment() {
    let line = "a line of ordinary text that says nothing at all. ";
    for before in 0..4 {
        let text = format!("{}{KEY}{}", line.repeat(100), line.repeat(60));
        let run = format!("{}{}", &"xYz1"[..before], STANDARD.encode(&text));
        gone(&run, &format!("{before} characters before"));
        // The same in bytes that are no text.
        let mut bytes: Vec<u8> = (0..6_000_u32).map(|n| (n * 7 % 31) as u8).collect();
        bytes.splice(3_000..3_000, KEY.bytes());
        let run = format!("{}{}", &"xYz1"[..before], STANDARD.encode(&bytes));
        gone(&run, &format!("{before} characters before bytes"));
    }
}

#[test]
fn what_lies_across_the_windows_of_a_long_token_is_found() {
    let percent = |text: &str| -> String { text.bytes().map(|b| format!("%{b:02X}")).collect() };
    let escapes = |text: &str| -> String { text.bytes().map(|b| format!("\\u{b:04x}")).collect() };
    let wide = |text: &str| -> String {
        let wide = |ch: char| char::from_u32(ch as u32 + 0xFEE0).unwrap();
        text.chars().map(wide).collect()
    };
    for (name, form, each) in [
        ("percent", &percent as &dyn Fn(&str) -> String, 3),
        ("escapes", &escapes, 6),
        ("wide", &wide, 1),
    ] {
        for windows in 1..=2 {
            let edge = (8 << 10) * windows / each;
            for back in (0..24).step_by(3) {
                let text = format!("{}{KEY}{}", "a".repeat(edge - back), "b".repeat(3_000));
                gone(&form(&text), &format!("{name}, {back} before {edge}"));
            }
        }
    }
}

#[test]
fn the_last_line_of_what_is_wrapped_is_read_whatever_follows_it() {
    // A last line that is a word in itself: `Ng`.
    let key = "KEY12345676";
    for (width, lines) in [(60, 1), (60, 3), (64, 1), (76, 1), (48, 2), (100, 2)] {
        let length = width / 4 * 3 * lines + 1;
        let run = STANDARD.encode(format!("{}{key}", "a".repeat(length - key.len())));
        let run = run.trim_end_matches('=');
        let wrapped: Vec<&str> = run
            .as_bytes()
            .chunks(width)
            .map(|line| str::from_utf8(line).unwrap())
            .collect();
        assert_eq!(wrapped.last(), Some(&"Ng"));
        for behind in ["", " is the key", ", it is", "\nand that is all"] {
            gone(
                &format!("{}{behind}", wrapped.join("\n")),
                &format!("{lines} of {width}, {behind:?}"),
            );
        }
    }
}

#[test]
fn lines_of_one_text_may_become_shorter_once() {
    let text = format!("{}{KEY}{}", "a".repeat(76), "b".repeat(25));
    let run = STANDARD.encode(&text);
    let (first, rest) = run.split_at(60);
    let (second, third) = rest.split_at(48);
    gone(&format!("{first}\n{second}\n{third}"), &text);
}

/// The number of a card whose Base64 begins with the third character of that of another text.
#[test]
fn a_text_in_base64_may_hide_another_that_begins_within_it() {
    let sanitizer = Sanitizer::standard(Rules::default(), Findings::new(), OwnCredentials::new());
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let is_found = |text: &str| {
        let verdict = sanitizer.look(&Json::string(text), &subject);
        !matches!(verdict, Verdict::Clean)
    };
    let number = STANDARD.encode("4562754736242227");
    let number = number.trim_end_matches('=');
    assert!(is_found(number));
    // What comes before it makes text of the whole.
    assert!(is_found(&format!("Qz{number}")));
}

/// SECURITY 7: hidden characters go before other rules run, and those that have a place split nothing either.
#[test]
fn what_is_not_seen_between_the_letters_of_a_secret_does_not_hide_it() {
    const HELD: &str = "sk-own-Zq8Xv3Lw9Rt2Yp7Nb4Kc";
    const ACCESS: &str = "AKIAQYLPMN5HHHFPZAM2";
    let own = OwnCredentials::new();
    own.hold([HELD]);
    let sanitizer = Sanitizer::standard(Rules::default(), Findings::new(), own);
    let actions = Actions::default();
    let told = |text: &str, direction| {
        let subject = Subject::new(direction, &actions, &[]);
        match sanitizer.look(&Json::string(text), &subject) {
            Verdict::Clean | Verdict::Flagged(_) => text.to_owned(),
            Verdict::Changed(value, _) => value.root().as_str().unwrap().into_owned(),
            Verdict::Blocked(_) => "blocked".to_owned(),
        }
    };
    let behind_digits = |secret: &str, what: &str| -> String {
        let all = secret.chars();
        all.map(|ch| {
            let what = if ch.is_ascii_digit() { what } else { "" };
            format!("{ch}{what}")
        })
        .collect()
    };
    for what in [
        "\u{FE0F}",
        "\u{FE0E}",
        "\u{FE0F}\u{20E3}",
        "\u{FE0E}\u{20E3}",
        "\u{20E3}",
    ] {
        for secret in [HELD, ACCESS] {
            let text = format!("use {} now", behind_digits(secret, what));
            let redacted = told(&text, Direction::Results);
            assert!(redacted.starts_with("use [redacted:"), "{text}: {redacted}");
            assert!(redacted.ends_with("] now"), "{text}: {redacted}");
            assert_eq!(told(&text, Direction::Arguments), "blocked", "{text}");
        }
    }
    // Each of these has a place in a text that is written from right to left.
    for split in [
        HELD.replace("-own", "\u{200E}-own"),
        HELD.replace("-own", "-\u{2066}own\u{2069}"),
        HELD.replace("sk-", "sk\u{200F}-"),
    ] {
        let text = format!("\u{5D4}\u{5E0}\u{5D4} {split} .");
        let redacted = told(&text, Direction::Results);
        assert!(redacted.contains("[redacted:"), "{text}: {redacted}");
        assert_eq!(told(&text, Direction::Arguments), "blocked", "{text}");
    }
}

#[test]
fn keys_and_marks_in_ordinary_text_stay_as_they_are() {
    let sanitizer = Sanitizer::standard(Rules::default(), Findings::new(), OwnCredentials::new());
    let actions = Actions::default();
    for text in [
        "1\u{FE0F}\u{20E3} Install 2\u{FE0F}\u{20E3} Run 3\u{FE0F}\u{20E3}4\u{FE0F}\u{20E3}5\u{FE0F}\u{20E3} done",
        "\u{7B2C}1\u{FE0F}\u{20E3}\u{6B65}, Step2\u{FE0F}\u{20E3}: #\u{FE0F}\u{20E3} and *\u{FE0F}\u{20E3}, \u{1F1E9}\u{1F1EA}",
        "\u{5DE}\u{5D7}\u{5D9}\u{5E8}: 050\u{200E}-1234567 \u{2066}Kubernetes\u{2069}, \u{6CC}API-Server\u{200C}\u{647}\u{627}",
        "Donau\u{AD}dampf\u{AD}schiff\u{AD}fahrt",
    ] {
        let subject = Subject::new(Direction::Results, &actions, &[]);
        let verdict = sanitizer.look(&Json::string(text), &subject);
        assert!(matches!(verdict, Verdict::Clean), "{text}: {verdict:?}");
    }
}
