//! Whether a value looks drawn at random, or is a placeholder, an example or a name.
//!
//! Guarantees: linear in the value, no allocation. Deliberately absent: which form a value must have.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// The longest password that is looked for, in bytes.
pub(super) const PASSWORD: usize = 128;
/// What stands in places where people write what is to be replaced.
const PLACEHOLDERS: [&[u8]; 40] = [
    // Of the handbook of bots of Telegram.
    b"abc-def1234ghikl-zyx57w2v1u123ew11",
    // Of the handbook of Stripe.
    b"4ec39hqlyjwdarjtt1zdp7dc",
    b"bqokikjovbii2hlwgh4olfq2",
    b"example",
    b"sample",
    b"placeholder",
    b"your",
    b"xxxx",
    b"changeme",
    b"change_me",
    b"dummy",
    b"redacted",
    b"insert",
    b"replace",
    b"notreal",
    b"not_real",
    b"secret_here",
    b"token_here",
    b"key_here",
    b"abcdefgh",
    b"deadbeef",
    b"cafebabe",
    b"foobar",
    b"asdfgh",
    b"qwerty",
    b"loremipsum",
    b"test_test",
    b"fakefake",
    b"fake_",
    b"-fake",
    b"someth",
    b"<",
    b"${",
    b"****",
    // What is kept elsewhere.
    b"arn:aws",
    b"/secrets/",
    // The keys of the AWS documentation, however their ends are changed.
    b"iosfodnn7",
    b"/k7mdeng/",
    // The keys that the emulators of Azure come with.
    b"c2y6ydjf5/r+ob0n8a7cgv30",
    b"eby8vdm02xnocqflqu",
];

/// What a value is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape {
    pub(super) lower: u32,
    pub(super) upper: u32,
    pub(super) digits: u32,
    pub(super) others: u32,
    /// Bytes that differ from each other.
    pub(super) distinct: u32,
    /// How often letters turn into digits or their case turns.
    pub(super) turns: u32,
    /// Whether letters go beyond `f`.
    pub(super) beyond_hex: bool,
    /// The longest row of one byte, or of bytes that count up or down.
    row: u32,
    /// The longest row in which every second byte counts up.
    woven: u32,
}

impl Shape {
    pub(super) fn of(value: &[u8]) -> Self {
        let mut shape = Self::default();
        let (mut low, mut high) = (0_u64, 0_u64);
        let (mut same, mut up, mut down, mut woven) = (1_u32, 1_u32, 1_u32, 0_u32);
        let mut kind = 0_u8;
        for (at, &byte) in value.iter().enumerate() {
            let now = match byte {
                b'a'..=b'z' => {
                    shape.lower += 1;
                    shape.beyond_hex |= byte > b'f';
                    1
                }
                b'A'..=b'Z' => {
                    shape.upper += 1;
                    shape.beyond_hex |= byte > b'F';
                    2
                }
                b'0'..=b'9' => {
                    shape.digits += 1;
                    3
                }
                _ => {
                    shape.others += 1;
                    0
                }
            };
            shape.turns += u32::from(kind != 0 && now != 0 && kind != now);
            kind = now;
            if byte < 64 {
                low |= 1 << byte;
            } else {
                high |= 1 << (byte & 63);
            }
            if at > 0 {
                let before = value[at - 1];
                same = if byte == before { same + 1 } else { 1 };
                up = if byte == before.wrapping_add(1) || (before == b'9' && byte == b'0') {
                    up + 1
                } else {
                    1
                };
                down = if byte == before.wrapping_sub(1) {
                    down + 1
                } else {
                    1
                };
                shape.row = shape.row.max(same).max(up).max(down);
            }
            if at > 1 {
                woven = if byte == value[at - 2].wrapping_add(1) {
                    woven + 1
                } else {
                    0
                };
                shape.woven = shape.woven.max(woven);
            }
        }
        shape.distinct = low.count_ones() + high.count_ones();
        shape
    }

    const fn letters(self) -> u32 {
        self.lower + self.upper
    }
}

/// Whether a value is a path: what is as long as a key of Amazon, or ends as Base64 does, is none.
pub(super) fn is_path(value: &[u8]) -> bool {
    value.len() > 1 && value[0] == b'/' && value.len() != 40 && !value.ends_with(b"=")
}

/// Whether a value that already has the form of a secret may be one: neither counted up, nor written by hand, nor a name.
pub(super) fn plausible(value: &[u8]) -> bool {
    let shape = Shape::of(value);
    let long = value.len() as u32;
    let varied = match long {
        0..8 => 3,
        8..12 => 4,
        12..16 => 5,
        16..24 => 6,
        24..32 => 8,
        _ => 9,
    };
    // Ten digits cannot differ more than ten can.
    let varied = if shape.letters() == 0 {
        varied.min(5)
    } else {
        varied
    };
    shape.distinct >= varied
        && shape.row < 6
        && shape.woven < 8
        && !named(value, shape)
        && !placeholder(value)
}

/// Whether a value of unknown form looks drawn at random.
pub(super) fn random(value: &[u8]) -> bool {
    let shape = Shape::of(value);
    let long = value.len() as u32;
    // Some have no digit or one, but their case turns again and again, as in no name.
    let turning = long + shape.digits * 4 >= 20
        && shape.upper * 2 >= shape.lower
        && shape.lower * 2 >= shape.upper
        && shape.turns * 5 >= long * 2;
    let digits = shape.digits >= 2 || turning;
    if long < 16 || shape.letters() < 4 || !digits || shape.others * 5 > long {
        return false;
    }
    // Numbers of interfaces as source has them.
    let of_number = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'_';
    if value.starts_with(b"0x") && value[2..].iter().all(of_number) {
        return false;
    }
    // Types of keys in source.
    if value.contains(&b'.') && (holds(value, b"privatekey") || holds(value, b"publickey")) {
        return false;
    }
    if is_path_of_names(value) {
        return false;
    }
    // Names of files.
    let end = value
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_lowercase());
    let end = end.count();
    if matches!(end, 2..=4) && long as usize > end && value[value.len() - end - 1] == b'.' {
        return false;
    }
    // Paths, versions and host names.
    if value.contains(&b'/')
        && (shape.upper == 0 || value.contains(&b'.') || shape.turns * 4 < long)
    {
        return false;
    }
    if value.iter().filter(|byte| **byte == b'.').count() > 2 {
        return false;
    }
    shape.turns * 7 >= long && plausible(value)
}

/// Whether it says that something else belongs here.
pub(super) fn placeholder(value: &[u8]) -> bool {
    WORDS.is_match(value) || is_variable(value)
}

/// Whether it is the name of a variable between signs that templates have around it: `%DB_PASS%`, `@@DB_PASS@@`, `__DB_PASS__`.
fn is_variable(value: &[u8]) -> bool {
    [&b"%"[..], b"@@", b"@", b"__"].iter().any(|sign| {
        let name = value.strip_prefix(*sign);
        let name = name.and_then(|rest| rest.strip_suffix(*sign));
        name.is_some_and(|name| {
            let part =
                |byte: &u8| byte.is_ascii_uppercase() || *byte == b'_' || byte.is_ascii_digit();
            name.iter().all(part) && name.contains(&b'_')
        })
    })
}

// INVARIANT: the words are compiled in, and a test builds the automaton.
#[expect(clippy::expect_used, reason = "the words are compiled in")]
static WORDS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(PLACEHOLDERS)
        .expect("a test builds it")
});

/// Whether `word`, in lower case, stands anywhere in it, whatever its case.
pub(super) fn holds(value: &[u8], word: &[u8]) -> bool {
    let Some((first, rest)) = word.split_first() else {
        return true;
    };
    memchr::memchr2_iter(*first, first.to_ascii_uppercase(), value).any(|at| {
        let behind = value.get(at + 1..at + word.len());
        behind.is_some_and(|behind| behind.eq_ignore_ascii_case(rest))
    })
}

/// Words with joints between them: `your-token-goes-here`, `MAX_LENGTH_OF_NAME`, `someCamelCaseNameOfAThing`.
fn named(value: &[u8], shape: Shape) -> bool {
    // Names that are made by machines end with a number of two places.
    if shape.digits > 2 || (shape.digits == 2 && shape.others > 0) {
        return false;
    }
    let joints = value
        .iter()
        .filter(|byte| matches!(byte, b'-' | b'_' | b'.'))
        .count();
    let one_case = shape.lower == 0 || shape.upper == 0;
    // Capitals that begin words.
    let capitals = value
        .windows(3)
        .filter(|part| {
            part[0].is_ascii_uppercase()
                && part[1].is_ascii_lowercase()
                && part[2].is_ascii_lowercase()
        })
        .count() as u32;
    // One capital in letters and digits drawn at random is often followed by two small letters.
    let capitalised = if shape.digits > 0 {
        capitals > 1
    } else {
        shape.upper > 0
    };
    if shape.lower > shape.upper * 2 && capitalised && capitals * 4 >= shape.upper * 3 {
        return true;
    }
    if shape.digits > 1 {
        return false;
    }
    // Of letters drawn at random half are small.
    if shape.digits == 0 && shape.upper > 0 && shape.lower > shape.upper * 4 {
        return true;
    }
    (one_case && joints >= 2)
        || (shape.digits == 0 && joints >= 1 && one_case)
        || (joints >= 3 && shape.turns * 4 < value.len() as u32)
}

/// Whether most of it is words that begin with a capital: `X509HardwareKeyUsageFlags`.
pub(super) fn is_wordy(value: &[u8]) -> bool {
    let mut covered = 0;
    let mut at = 0;
    while at < value.len() {
        let small = value[at + 1..].iter();
        let small = small.take_while(|byte| byte.is_ascii_lowercase()).count();
        if value[at].is_ascii_uppercase() && small >= 3 {
            covered += small + 1;
        }
        at += small + 1;
    }
    covered * 5 >= value.len() * 3
}

/// Whether it is names with dots between, as code has them: `ssh.NewEd25519Generator`. Most of each is words, and what is drawn at
/// random has few rows of three small letters.
fn is_path_of_names(value: &[u8]) -> bool {
    let named = |part: &[u8]| {
        let rest = part.iter().all(|byte| byte.is_ascii_alphanumeric());
        rest && part.first().is_some_and(u8::is_ascii_alphabetic)
    };
    if !value.contains(&b'.') || !value.split(|byte| *byte == b'.').all(named) {
        return false;
    }
    let mut covered = 0;
    let mut at = 0;
    while at < value.len() {
        let small = value[at..].iter();
        let small = small.take_while(|byte| byte.is_ascii_lowercase()).count();
        let capital = at > 0 && value[at - 1].is_ascii_uppercase();
        if small >= 3 || capital && small == 2 {
            covered += small + usize::from(capital);
        }
        at += small + 1;
    }
    covered * 5 >= value.len() * 3
}

/// How far around a token the Base64 is looked at that it may be a piece of, and the least of it, in bytes.
const ENCODED: usize = 80;
const LEAST: usize = 24;

/// What stands before the digest of a package.
const DIGESTS: [&[u8]; 4] = [b"sha512-", b"sha384-", b"sha256-", b"sha1-"];

/// Whether it is a piece of something longer in Base64, such as an image: every beginning of three letters or four stands in
/// enough of that.
pub(super) fn within_base64(text: &[u8], start: usize, end: usize) -> bool {
    if !text[start..end]
        .iter()
        .all(|byte| is_base64(*byte) || *byte == b'=')
    {
        return false;
    }
    // The digest of a package: `sha512-...`.
    if DIGESTS.iter().any(|name| text[..start].ends_with(name)) {
        return true;
    }
    let rest = &text[end..(end + ENCODED).min(text.len())];
    let ahead = rest.iter().take_while(|byte| is_base64(**byte)).count();
    if encoded(&rest[..ahead]) {
        return true;
    }
    // Tokens may stand one on a line; in a line of Base64 there is a sign.
    let before = base64_before(text, start);
    before.iter().any(|byte| matches!(byte, b'+' | b'/')) && encoded(before)
}

/// The Base64 that ends at `end`, or on the line before, where little stands on this one. Breaks of lines may be escaped.
fn base64_before(text: &[u8], end: usize) -> &[u8] {
    let run = |end: usize| {
        let before = text[end.saturating_sub(ENCODED)..end].iter().rev();
        end - before.take_while(|byte| is_base64(**byte)).count()
    };
    let start = run(end);
    if end - start >= LEAST * 2 || start == 0 {
        return &text[start..end];
    }
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'"');
    let gap = text[..start]
        .iter()
        .rev()
        .take(12)
        .take_while(blank)
        .count();
    let line = if text[start - 1] == b'\\' && text.get(start) == Some(&b'n') {
        start - 1
    } else if text[start - gap..start].contains(&b'\n') {
        start - gap
    } else {
        return &text[start..end];
    };
    &text[run(line)..line]
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// Whether Base64 of something that is not written by hand looks like this.
fn encoded(piece: &[u8]) -> bool {
    let shape = Shape::of(piece);
    let (long, turns) = (piece.len() as u32, shape.turns);
    piece.len() >= LEAST
        && shape.upper * 8 >= long
        && shape.lower * 8 >= long
        && shape.digits > 0
        && turns * 4 >= long
}

/// How many of lower case, upper case, digits and others.
pub(super) fn kinds(value: &[u8]) -> usize {
    let any = |of: fn(&u8) -> bool| usize::from(value.iter().any(of));
    any(u8::is_ascii_lowercase)
        + any(u8::is_ascii_uppercase)
        + any(u8::is_ascii_digit)
        + any(|byte| !byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots_between_are_code() {
        for code in [
            "ssh.NewEd25519Generator",
            "Util.decodeFromBase64",
            "a1.ReadOnlyMap2",
        ] {
            assert!(is_path_of_names(code.as_bytes()), "{code}");
        }
        for other in [
            "k3Vq9ZtLw1Xc7Rb2NhYs",
            "k3Vq9ZtLw1.Xc7Rb2NhYs8Md4Jp6Gf",
            "ssh.NewEd25519-Generator",
            "ssh..NewEd25519Generator",
            "xk7q2mzt9w.p4rb8nhy1s",
        ] {
            assert!(!is_path_of_names(other.as_bytes()), "{other}");
        }
    }
}
