//! Names that say whose key they hold though no table knows the service: `ACMECRM_API_KEY`, `acmeCrmClientSecret`.
//!
//! A key that a service hands out is called by the service and by what it is. Of such a name, in front of a value that looks
//! drawn at random, the first half may be anything but a word that every program uses for keys of its own (`services.txt`).
//!
//! Guarantees: looks back no farther than [`NAME`] bytes. Deliberately absent: names that say no more than that something is
//! secret, such as `session_secret`, which leave a doubt.

use std::sync::LazyLock;

use super::bytes::is_token;

const TABLE: &str = include_str!("services.txt");

/// What a key is called, as the last words of a name.
static KEYS: LazyLock<Vec<Vec<&[u8]>>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter_map(|line| line.strip_prefix("= "));
    let keys = lines.flat_map(str::split_whitespace);
    keys.map(|key| key.split('_').map(str::as_bytes).collect())
        .collect()
});

/// Words that programs use for keys of their own, in order.
static COMMON: LazyLock<Vec<&[u8]>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with(['=', '#']));
    let words = lines.flat_map(str::split_whitespace);
    words.map(str::as_bytes).collect()
});

/// What a name ends with in one word.
const JOINED: [&[u8]; 8] = [
    b"accesskey",
    b"accesstoken",
    b"apikey",
    b"apisecret",
    b"apitoken",
    b"authtoken",
    b"clientsecret",
    b"secretkey",
];
/// What the name in an environment may end with. Elsewhere a token marks the place in a list as often, and a key what it is found
/// by.
const ALONE: [&[u8]; 3] = [b"token", b"secret", b"pat"];

/// The longest name, in bytes.
const NAME: usize = 64;
/// The most words of a name that are looked at.
const MOST: usize = 10;

/// Stands between a name and its value: `"name": "ACME_KEY", "value": "..."`, `const KEY: &str = "..."`.
const FILLERS: [&[u8]; 14] = [
    b"value", b"val", b"default", b"content", b"body", b"text", b"str", b"string", b"String",
    b"td", b"dd", b"code", b"is", b"to",
];

/// Whether the name that ends at `end` is one of a key that a service hands out, or of a token or secret of it.
pub(super) fn names_a_service(text: &[u8], end: usize) -> bool {
    let mut piece = &text[end.saturating_sub(NAME)..end];
    // Over what stands between a name and its value, of which there is little.
    for _ in 0..3 {
        piece = without(piece, |byte| !is_part(byte));
        let name = last_name(piece);
        // One that goes on is not known whole.
        if name.is_empty() || name.len() == piece.len() && end > NAME {
            return false;
        }
        let tag = piece[..piece.len() - name.len()].ends_with(b"</");
        if !tag && ends_as_keys_do(name) {
            return is_one(name) || is_called(piece);
        }
        if !tag && !FILLERS.contains(&undashed(name)) {
            return false;
        }
        piece = &piece[..piece.len() - name.len()];
    }
    false
}

/// Whether the name that stands over another is that of a service, and the other one of a key.
pub(super) fn stands_over(over: &[u8], text: &[u8], end: usize) -> bool {
    let piece = &text[end.saturating_sub(NAME)..end];
    let piece = without(piece, |byte| !is_part(byte));
    let name = last_name(piece);
    let over = without(over, |byte| !is_part(byte));
    let over = Words::of(last_name(over));
    Words::of(name).before_key(false) == Some(0) && over.count == 1 && is_own(over.nth(0), 4)
}

fn is_one(name: &[u8]) -> bool {
    // `process.env.ACME_KEY`
    let last = name.rsplit(|byte| *byte == b'.').next().unwrap_or(name);
    let small = |name: &[u8]| name.iter().any(u8::is_ascii_lowercase);
    let environment = !small(last) && last.contains(&b'_');
    let words = Words::of(if environment { last } else { name });
    let rest = words.before_key(environment).unwrap_or_default();
    (0..rest).any(|at| is_own(words.nth(at), 2))
}

/// The same of words with blanks between, of which one before the name of the key begins with a capital: `Acme API key`.
fn is_called(piece: &[u8]) -> bool {
    let part = |byte: &&u8| is_token(**byte) || **byte == b' ';
    let length = piece.iter().rev().take_while(part).count();
    let phrase = &piece[piece.len() - length..];
    let words = Words::of(phrase);
    let rest = words.before_key(false).unwrap_or_default();
    (rest.saturating_sub(2)..rest)
        .rev()
        .take_while(|at| words.capital(*at, phrase))
        .any(|at| is_own(words.nth(at), 3))
}

/// The name at the end of a piece.
fn last_name(piece: &[u8]) -> &[u8] {
    let length = piece
        .iter()
        .rev()
        .take_while(|byte| is_part(**byte))
        .count();
    &piece[piece.len() - length..]
}

/// Whether a name ends as those of keys do: most do not, and are not taken apart.
fn ends_as_keys_do(name: &[u8]) -> bool {
    let Some(last) = name.last_chunk::<3>() else {
        return false;
    };
    matches!(
        &last.map(|byte| byte | 0x20),
        b"key" | b"ken" | b"ret" | b"ord" | b"pat"
    )
}

/// `--body` without its dashes.
fn undashed(name: &[u8]) -> &[u8] {
    let dashes = name.iter().take_while(|byte| **byte == b'-').count();
    &name[dashes..]
}

const fn is_part(byte: u8) -> bool {
    is_token(byte) || byte == b'.'
}

/// Whether a word is none that every program uses.
fn is_own(word: &[u8], least: usize) -> bool {
    let letters = word
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .count();
    (letters >= least || least == 2 && word.len() == 2 && letters == 1)
        && COMMON.binary_search(&word).is_err()
}

/// Without what stands behind a name.
fn without(piece: &[u8], behind: impl Fn(u8) -> bool) -> &[u8] {
    let end = piece.iter().rev().take(12);
    &piece[..piece.len() - end.take_while(|byte| behind(**byte)).count()]
}

/// The words of a name in small letters: `acmeCRMApiKey`, `ACME_CRM_API_KEY`, `acme-crm-api-key`.
struct Words {
    room: [u8; NAME],
    /// Where each ends there, and where it begins in the name.
    ends: [(u8, u8); MOST],
    count: usize,
}

impl Words {
    fn of(name: &[u8]) -> Self {
        let mut words = Self {
            room: [0; NAME],
            ends: [(0, 0); MOST],
            count: 0,
        };
        // Of many the last.
        let starts = (0..name.len()).rev().filter(|at| begins(name, *at));
        let from = starts.take(MOST).last().unwrap_or_default();
        let mut length = 0;
        for at in from..name.len() {
            if begins(name, at) {
                words.count += 1;
                words.ends[words.count - 1].1 = at as u8;
            }
            if name[at].is_ascii_alphanumeric() && words.count > 0 {
                words.room[length] = name[at].to_ascii_lowercase();
                length += 1;
                words.ends[words.count - 1].0 = length as u8;
            }
        }
        words
    }

    fn nth(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |at| self.ends[at].0);
        &self.room[usize::from(start)..usize::from(self.ends[at].0)]
    }

    fn capital(&self, at: usize, name: &[u8]) -> bool {
        name[usize::from(self.ends[at].1)].is_ascii_uppercase()
    }

    /// How many words stand before those that say what a key it is.
    fn before_key(&self, environment: bool) -> Option<usize> {
        let last = self.count.checked_sub(1)?;
        let word = self.nth(last);
        let keys = KEYS.iter().filter(|key| key.last() == Some(&word));
        let longest = keys.filter_map(|key| {
            let rest = self.count.checked_sub(key.len())?;
            let same = key
                .iter()
                .zip(rest..)
                .all(|(word, at)| self.nth(at) == *word);
            same.then_some(rest)
        });
        if let Some(rest) = longest.min() {
            return Some(rest);
        }
        if JOINED.contains(&word) || environment && ALONE.contains(&word) {
            return Some(last);
        }
        let mut joined = JOINED.iter();
        joined
            .any(|key| word.len() > key.len() + 2 && word.ends_with(key))
            .then_some(self.count)
    }
}

/// Whether a word begins here.
fn begins(name: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map_or(b'_', |at| name[at]);
    let small = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    let turns = name[at].is_ascii_uppercase() && (!before.is_ascii_uppercase() || small);
    name[at].is_ascii_alphanumeric() && (!before.is_ascii_alphanumeric() || turns)
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{body, strong},
        *,
    };

    fn named(name: &str) -> bool {
        names_a_service(name.as_bytes(), name.len())
    }

    #[test]
    fn a_name_of_a_service_and_of_its_key_says_whose_it_is() {
        for name in [
            "ACMECRM_API_KEY",
            "acmeCrmClientSecret",
            "acme-crm-access-token",
            "app.acmecrm.api-key",
            "x = AcmeCrmAuthToken",
            "acmecrmapikey",
            "PROD_ACMECRM_TOKEN",
            "ZQ_API_KEY",
            "zqApiKey",
            "\"acmecrm_secret_key\"",
            "our Acmecrm API key",
            "process.env.ZQ_API_KEY",
            "the Acmecrm Write API Key is",
            "const ACMECRM_API_KEY: &str =",
            "{\"name\": \"ACMECRM_API_KEY\", \"value\"",
            "<td>Acmecrm API key</td><td>",
            "<key>AcmecrmApiKey</key>\n<string>",
            "secret set ACMECRM_API_KEY --body",
            "Q7_API_KEY",
            "use the Acmecrm access token is",
            "Set `ACMECRM_TOKEN` to",
        ] {
            assert!(named(name), "{name}");
        }
        for name in [
            "API_KEY",
            "api_key",
            "clientSecret",
            "SESSION_SECRET",
            "app_secret_key",
            "user_access_token",
            "REFRESH_TOKEN",
            "acmecrm",
            "acmecrm key",
            "acmecrm_key",
            "our acmecrm api key",
            "The API key",
            "nextPageToken",
            "my.app.api.key",
            "apikey",
            "zq_token",
            "acmecrm_token",
            "builder.setAcmecrmToken",
            "pagination_token",
            "EOF_TOKEN",
            "USDC_TOKEN",
            "ACMECRM_KEY",
            "GPG_KEY",
            "",
        ] {
            assert!(!named(name), "{name}");
        }
        let long = format!("{}_ACMECRM_API_KEY", "X".repeat(NAME));
        assert!(!named(&long));
    }

    #[test]
    fn what_stands_farther_before_or_behind_a_key_does_not_hide_it() {
        let value = "4f3b2c1d9a8e47f6a5b4c3d2e1f0a9b8";
        for text in [
            format!("level=info message_id=17 datadog_api_key={value}"),
            format!("request-id 42 datadog_api_key={value}"),
            format!("ts=1 object_id=99 datadog_api_key={value}"),
            format!("DATADOG_API_KEY={value}..."),
            format!("datadog api key: {value}\u{2026}"),
        ] {
            assert_eq!(strong(&text), [value], "{text}");
        }
        for text in [
            format!("datadog_message_id: {value}"),
            format!("fastly-request-id: {value}"),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn common_words_are_in_order() {
        assert!(COMMON.is_sorted() && COMMON.len() > 500);
        assert!(KEYS.iter().all(|key| (2..=3).contains(&key.len())));
        let mut last = KEYS.iter().filter_map(|key| key.last().copied());
        assert!(last.all(ends_as_keys_do));
        assert!(
            JOINED
                .iter()
                .chain(&ALONE)
                .all(|name| ends_as_keys_do(name))
        );
    }

    #[test]
    fn a_key_of_a_service_that_nobody_knows_is_told() {
        let value = &body()[..32];
        for text in [
            format!("ACMECRM_API_KEY={value}"),
            format!("{{\"acmecrmApiKey\": \"{value}\"}}"),
            format!("X-Acmecrm-Api-Key: {value}"),
            format!("the Acmecrm API key is {value}"),
        ] {
            assert_eq!(strong(&text), [value], "{text}");
        }
        for text in [
            format!("API_KEY={value}"),
            format!("session_secret: {value}"),
            format!("acmecrm_digest: {value}"),
            format!("ACMECRM_API_KEY={value}..."),
            "ACMECRM_API_TOKEN: X509HardwareKeyUsageFlags".to_owned(),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }
}
