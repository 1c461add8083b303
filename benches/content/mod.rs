//! What servers say, made up from a seed: content of many kinds for measurements, the same in every run.
//!
//! Guarantees: no two lines need be alike, so that nothing is measured that learned one line by heart; a given seed gives the
//! same bytes everywhere. Deliberately absent: anything that is looked for, but in [`dirty`].

mod words;

use std::fmt::Write;

use words::{
    ARABIC, CHINESE, EMOJI, EUROPEAN, HEBREW, HINDI, JAPANESE, KOREAN, PERSIAN, RUSSIAN, THAI,
};

/// One kind of content: its name, and what makes the JSON of a `tools/call` result.
pub(crate) type Content = (&'static str, fn() -> String);

const MIB: usize = 1 << 20;

/// Every clean kind, a MiB of each or a little more.
pub(crate) fn clean() -> Vec<Content> {
    vec![
        ("prose", || block(&prose(MIB))),
        ("docs", || block(&until(MIB, &[DOCS, &prose(4 << 10)]))),
        ("source", || block(&until(MIB, &SOURCES))),
        ("logs", || block(&logs(MIB))),
        ("json_logs", || block(&json_logs(MIB))),
        ("rows", || rows(MIB)),
        ("table", || block(&table(MIB))),
        ("issues", || issues(MIB)),
        ("members", || members(20_000)),
        ("arabic", || block(&sentences(MIB, &ARABIC))),
        ("hebrew", || block(&sentences(MIB, &HEBREW))),
        ("persian", || block(&sentences(MIB, &PERSIAN))),
        ("hindi", || block(&sentences(MIB, &HINDI))),
        ("thai", || block(&sentences(MIB, &THAI))),
        ("chinese", || block(&sentences(MIB, &CHINESE))),
        ("japanese", || block(&sentences(MIB, &JAPANESE))),
        ("korean", || block(&sentences(MIB, &KOREAN))),
        ("russian", || block(&sentences(MIB, &RUSSIAN))),
        ("european", || block(&sentences(MIB, &EUROPEAN))),
        ("emoji", || block(&sentences(MIB, &EMOJI))),
        ("world", || block(&world(MIB))),
    ]
}

/// What most calls bring: results of a KiB or less, many different ones of each kind.
pub(crate) fn small() -> Vec<(&'static str, Vec<String>)> {
    vec![
        ("word", vec![block("done"), block("42"), block("not found")]),
        ("prose", pieces(&prose(MANY))),
        ("source", pieces(&until(MANY, &SOURCES))),
        ("logs", pieces(&logs(MANY))),
        ("json_logs", pieces(&json_logs(MANY))),
        ("digits", pieces(&until(MANY, &[DIGITS]))),
    ]
}

/// How much text is cut into small ones.
const MANY: usize = 256 << 10;

/// A line as generators of load have it: with a number of ten digits that is nobody's.
const DIGITS: &str =
    "Sphinx of black quartz, judge \"my vow\" 0123456789 ABCDEFGHIJKLMNOPQRSTUVWXYZ at last\n";

/// A result for each KiB of this text.
fn pieces(text: &str) -> Vec<String> {
    let mut rest = text;
    let mut all = Vec::new();
    while rest.len() >= 1 << 10 {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(1 << 10));
        all.push(block(piece));
        rest = after;
    }
    all
}

/// Every dirty kind: with something in every so many bytes.
pub(crate) fn dirty() -> Vec<Content> {
    vec![
        ("sparse", || block_of(16 << 10, &ALL)),
        ("usual", || block_of(1 << 10, &ALL)),
        ("dense", || block_of(100, &ALL)),
        ("colours", || block(&coloured(MIB))),
        ("secrets", || block_of(150, &ALL[..3])),
        ("cards", || block_of(100, &ALL[3..5])),
        ("hidden", || block_of(60, &ALL[7..9])),
        ("images", || block_of(120, &ALL[5..7])),
        ("rows", || dirty_rows(MIB)),
        ("nested", || block(&nested(MIB))),
    ]
}

const DOCS: &str = include_str!("../../README.md");
const SOURCES: [&str; 5] = [
    include_str!("../../src/sanitize/engine.rs"),
    include_str!("../../src/json/node.rs"),
    include_str!("../../src/findings.rs"),
    include_str!("../../src/sanitize/secrets/pattern.rs"),
    include_str!("../../src/sanitize/active/html.rs"),
];

/// What is to be found: secrets, numbers, what a client would fetch, what hides.
const ALL: [&str; 9] = [
    concat!("AK", "IAQYLPMN5HHHFPZAM2"),
    concat!("postgres://svc:hK9", "2mQx7Lp4@db.internal:5432/app"),
    concat!("gh", "p_k3Vq9ZtLw1Xc7Rb2NhYs8Md4Jp6GfTe5UaQo"),
    "card 4929 1234 5678 9012 and 4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "![x](https://evil.example/p.png?d=1)",
    "<script src=https://evil.example/x.js></script>",
    "ze\u{200B}ro wi\u{2060}dth",
    "\u{1B}[31mred\u{1B}[0m",
];

/// A generator of numbers that is good enough for texts (xorshift64*).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 33) % end
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A result with this text in one block.
pub(crate) fn block(text: &str) -> String {
    format!(
        r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
        quoted(text)
    )
}

/// As a string of JSON, escaped as most programs do.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    out.push('"');
    for ch in text.chars() {
        match ch {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => drop(write!(out, "\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn block_of(every: usize, what: &[&str]) -> String {
    block(&strewn(MIB, every, what))
}

fn until(bytes: usize, pieces: &[&str]) -> String {
    let mut out = String::new();
    for piece in pieces.iter().cycle() {
        out.push_str(piece);
        if out.len() >= bytes {
            break;
        }
    }
    out
}

const WORDS: [&str; 60] = [
    "the",
    "a",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "for",
    "it",
    "with",
    "as",
    "was",
    "on",
    "be",
    "by",
    "gateway",
    "server",
    "request",
    "message",
    "which",
    "before",
    "after",
    "every",
    "ordinary",
    "documentation",
    "paragraph",
    "result",
    "table",
    "issue",
    "number",
    "date",
    "notice",
    "change",
    "single",
    "byte",
    "fine",
    "people",
    "however",
    "because",
    "between",
    "configuration",
    "value",
    "default",
    "setting",
    "user",
    "reads",
    "writes",
    "shows",
    "keeps",
    "answers",
    "quickly",
    "never",
    "always",
    "again",
    "another",
    "without",
    "themselves",
    "e-mail",
    "don't",
];

fn prose(bytes: usize) -> String {
    let mut dice = Dice::new(1);
    let mut out = String::with_capacity(bytes + 200);
    while out.len() < bytes {
        let words = 6 + dice.below(16);
        for nth in 0..words {
            let word = dice.of(&WORDS);
            if nth == 0 {
                out.push_str(&word[..1].to_ascii_uppercase());
                out.push_str(&word[1..]);
            } else {
                out.push(' ');
                out.push_str(word);
                if dice.below(12) == 0 {
                    out.push(',');
                }
            }
        }
        match dice.below(12) {
            0 => drop(write!(out, " (see #{})", dice.below(9000))),
            1 => drop(write!(out, " in {}", 1990 + dice.below(36))),
            2 => drop(write!(out, ": \"{} {}\"", dice.of(&WORDS), dice.of(&WORDS))),
            _ => {}
        }
        out.push_str(if dice.below(5) == 0 { ".\n\n" } else { ". " });
    }
    out
}

const LEVELS: [&str; 4] = ["INFO", "DEBUG", "WARN", "ERROR"];
const TARGETS: [&str; 6] = [
    "server::accept",
    "db.pool",
    "http.client",
    "worker",
    "auth::session",
    "scheduler",
];
const PATHS: [&str; 6] = [
    "/api/v1/orders",
    "/healthz",
    "/static/app.3f9c1a7b.js",
    "/login",
    "/search?q=shoes&page=2",
    "/api/v1/users/42/settings",
];

fn stamp(dice: &mut Dice) -> String {
    let second = dice.below(86_400);
    format!(
        "2026-11-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        1 + dice.below(28),
        second / 3600,
        second / 60 % 60,
        second % 60,
        dice.below(1_000_000)
    )
}

fn uuid(dice: &mut Dice) -> String {
    let (one, two) = (dice.next(), dice.next());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        one >> 32,
        one >> 16 & 0xFFFF,
        one & 0xFFF,
        two >> 52,
        two & 0xFFFF_FFFF_FFFF
    )
}

fn address(dice: &mut Dice) -> String {
    format!(
        "10.{}.{}.{}:{}",
        dice.below(256),
        dice.below(256),
        dice.below(256),
        1024 + dice.below(60_000)
    )
}

fn logs(bytes: usize) -> String {
    let mut dice = Dice::new(2);
    let mut out = String::with_capacity(bytes + 300);
    while out.len() < bytes {
        let (stamp, peer, id) = (stamp(&mut dice), address(&mut dice), uuid(&mut dice));
        let _ = match dice.below(4) {
            0 => writeln!(
                out,
                "{stamp}  {} {}: connection from {peer} accepted id={:08x} status=200 bytes={} took={}.{}ms",
                dice.of(&LEVELS),
                dice.of(&TARGETS),
                dice.below(1 << 32),
                dice.below(90_000),
                dice.below(900),
                dice.below(99),
            ),
            1 => writeln!(
                out,
                "{stamp} {:5} [worker-{}] request finished method=GET path={} status={} request_id={id} peer={peer}",
                dice.of(&LEVELS),
                dice.below(16),
                dice.of(&PATHS),
                200 + dice.below(300),
            ),
            2 => writeln!(
                out,
                "{} - - [21/Nov/2026:13:37:{:02} +0000] \"GET {} HTTP/1.1\" 200 {} \"-\" \"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\"",
                peer.split(':').next().unwrap_or_default(),
                dice.below(60),
                dice.of(&PATHS),
                dice.below(90_000),
            ),
            _ => writeln!(
                out,
                "{stamp} {:5} {}: retrying in {} ms, attempt {} of 5, trace_id={:016x}{:016x}",
                dice.of(&LEVELS),
                dice.of(&TARGETS),
                dice.below(5000),
                dice.below(5),
                dice.next(),
                dice.next(),
            ),
        };
    }
    out
}

fn json_logs(bytes: usize) -> String {
    let mut dice = Dice::new(3);
    let mut out = String::with_capacity(bytes + 300);
    while out.len() < bytes {
        let _ = writeln!(
            out,
            r#"{{"time":"{}","level":"{}","logger":"{}","msg":"{} {} {}","peer":"{}","request_id":"{}","duration_ms":{},"bytes":{}}}"#,
            stamp(&mut dice),
            dice.of(&LEVELS),
            dice.of(&TARGETS),
            dice.of(&WORDS),
            dice.of(&WORDS),
            dice.of(&WORDS),
            address(&mut dice),
            uuid(&mut dice),
            dice.below(900),
            dice.below(90_000),
        );
    }
    out
}

fn row(dice: &mut Dice, out: &mut String) {
    let _ = write!(
        out,
        r#"{{"id":{},"uuid":"{}","name":"{} {}","email":"{}.{}@example.com","state":"{}","labels":["{}","{} {}"],"score":0.{},"total":{}.{:02},"active":{},"parent":null,"created_at":"{}","updated_at":"{}"}}"#,
        dice.below(900_000),
        uuid(dice),
        dice.of(&WORDS),
        dice.of(&WORDS),
        dice.of(&WORDS),
        dice.of(&WORDS),
        dice.of(&["open", "closed", "in_progress"]),
        dice.of(&WORDS),
        dice.of(&WORDS),
        dice.of(&WORDS),
        dice.below(1000),
        dice.below(5000),
        dice.below(100),
        dice.below(2) == 0,
        stamp(dice),
        stamp(dice),
    );
}

/// Structured content: many small values.
fn rows(bytes: usize) -> String {
    let mut dice = Dice::new(4);
    let mut out = String::from(r#"{"structuredContent":{"rows":["#);
    while out.len() < bytes {
        row(&mut dice, &mut out);
        out.push(',');
    }
    out.pop();
    out.push_str(r#"]},"content":[]}"#);
    out
}

/// Rows of a database as text, as a command would print them.
fn table(bytes: usize) -> String {
    let mut dice = Dice::new(5);
    let mut out = String::with_capacity(bytes + 300);
    while out.len() < bytes {
        let _ = writeln!(
            out,
            " {:8} | {} | {:12} | {:>10}.{:02} | {} | {} ",
            dice.below(9_000_000),
            uuid(&mut dice),
            dice.of(&WORDS),
            dice.below(100_000),
            dice.below(100),
            stamp(&mut dice).replace('T', " "),
            dice.of(&["t", "f"]),
        );
    }
    out
}

/// Issues as an interface would give them: names, addresses, a body of some sentences.
fn issues(bytes: usize) -> String {
    let mut dice = Dice::new(6);
    let bodies = prose(256 << 10);
    let mut out = String::from(r#"{"structuredContent":{"issues":["#);
    while out.len() < bytes {
        let from = dice.below(200 << 10) as usize;
        let body = &bodies[from..from + 100 + dice.below(1400) as usize];
        let _ = write!(
            out,
            r#"{{"url":"https://api.example.com/repos/acme/widgets/issues/{0}","id":{1},"node_id":"I_kwDO{2:08x}","number":{0},"title":"{3} {4} {5}","user":{{"login":"{6}","id":{1},"avatar_url":"https://avatars.example.com/u/{1}?v=4","type":"User"}},"state":"open","comments":{0},"created_at":"{7}","body":{8}}},"#,
            dice.below(9000),
            dice.below(4_000_000_000),
            dice.below(1 << 32),
            dice.of(&WORDS),
            dice.of(&WORDS),
            dice.of(&WORDS),
            dice.of(&WORDS),
            stamp(&mut dice),
            quoted(body),
        );
    }
    out.pop();
    out.push_str(r#"]},"content":[]}"#);
    out
}

/// One object of so many members.
pub(crate) fn members(count: usize) -> String {
    let mut dice = Dice::new(7);
    let mut out = String::from(r#"{"structuredContent":{"index":{"#);
    for nth in 0..count {
        let _ = write!(
            out,
            r#""item_{nth:05}":"{} {}","#,
            dice.of(&WORDS),
            dice.below(9000)
        );
    }
    out.pop();
    out.push_str(r#"}},"content":[]}"#);
    out
}

fn sentences(bytes: usize, words: &[&str]) -> String {
    let mut dice = Dice::new(8);
    let spaced = !matches!(words.first(), Some(&"你好，" | &"こんにちは、" | &"สวัสดี"));
    let mut out = String::with_capacity(bytes + 300);
    while out.len() < bytes {
        for _ in 0..5 + dice.below(12) {
            out.push_str(dice.of(words));
            if spaced {
                out.push(' ');
            }
        }
        out.push_str(if dice.below(4) == 0 { ".\n" } else { ". " });
    }
    out
}

fn world(bytes: usize) -> String {
    let mut dice = Dice::new(9);
    let all: [&[&str]; 11] = [
        &ARABIC, &HEBREW, &PERSIAN, &HINDI, &THAI, &CHINESE, &JAPANESE, &KOREAN, &RUSSIAN,
        &EUROPEAN, &EMOJI,
    ];
    let mut out = String::with_capacity(bytes + 300);
    while out.len() < bytes {
        let words = all[dice.below(11) as usize];
        for _ in 0..6 {
            out.push_str(dice.of(words));
            out.push(' ');
        }
        let _ = writeln!(out, "{} {}.", dice.of(&WORDS), dice.of(&WORDS));
    }
    out
}

/// Prose with one of these after every so many bytes.
fn strewn(bytes: usize, every: usize, what: &[&str]) -> String {
    let prose = prose(bytes);
    let mut out = String::with_capacity(bytes * 2);
    let mut from = 0;
    for piece in what.iter().cycle() {
        let to = (from + every).min(prose.len());
        out.push_str(&prose[from..to]);
        out.push(' ');
        out.push_str(piece);
        out.push(' ');
        from = to;
        if out.len() >= bytes {
            return out;
        }
    }
    out
}

/// A log as a program writes it to a terminal.
fn coloured(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 300);
    for line in logs(bytes).lines() {
        let (stamp, rest) = line.split_once(' ').unwrap_or((line, ""));
        let _ = writeln!(out, "\u{1B}[2m{stamp}\u{1B}[0m \u{1B}[32m{rest}\u{1B}[0m");
        if out.len() >= bytes {
            break;
        }
    }
    out
}

/// Rows with a secret or a number in each.
fn dirty_rows(bytes: usize) -> String {
    let mut dice = Dice::new(10);
    let mut out = String::from(r#"{"structuredContent":{"rows":["#);
    while out.len() < bytes {
        row(&mut dice, &mut out);
        out.pop();
        let _ = write!(out, r#","note":{}}},"#, quoted(dice.of(&ALL)));
    }
    out.pop();
    out.push_str(r#"]},"content":[]}"#);
    out
}

/// Base64 of text, again and again, with nothing in it and with something.
fn nested(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 300);
    let prose = prose(bytes);
    let mut from = 0;
    while out.len() < bytes {
        let piece = &prose[from..from + 300];
        from += 300;
        let once = base64(format!("{piece}{}", ALL[0]).as_bytes());
        let _ = writeln!(out, "{piece}\n{once}\n{}", base64(once.as_bytes()));
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let value = three
            .iter()
            .fold(0, |value, byte| value << 8 | u32::from(*byte))
            << (8 * (3 - three.len()));
        for nth in 0..=three.len() {
            out.push(char::from(LETTERS[(value >> (18 - 6 * nth) & 63) as usize]));
        }
    }
    out
}
