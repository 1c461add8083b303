//! C3, the gateway's own credentials: exact values that it holds, wherever they come back.
//!
//! Looked for are the values themselves and how they look in JSON text; other forms are found where texts are decoded, but
//! for short values, whose Base64 and hexadecimal forms are looked for directly. The values are kept as secrets; what is
//! searched for first is at most their first eight bytes. Deliberately absent: values of fewer than eight bytes, which
//! ordinary text holds.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use aho_corasick::{AhoCorasick, Input, Match, Span, packed};
use arc_swap::ArcSwapOption;
use base64::{Engine, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretString};

use super::{
    Class, Detector, Hit,
    called::is_secret,
    everyday::{is_drawn, is_everyday, is_login, is_uuid, password_of},
    placeholder::replaced,
    work::looked,
};

/// The credentials that are held; cloning gives another handle to the same ones.
#[derive(Clone, Default)]
pub struct OwnCredentials(Arc<Shared>);

#[derive(Default)]
struct Shared {
    // Read by every scan, written when credentials are given, at the start: no scan waits for a writer.
    search: ArcSwapOption<Search>,
    // A std mutex: serialises writers. Never held across an await.
    held: Mutex<VecDeque<SecretString>>,
}

/// What finds the starts: all have the same length, so that either finds the same.
enum Starts {
    /// By vectors.
    Few(packed::Searcher),
    /// By an automaton.
    Many(AhoCorasick),
}

struct Search {
    starts: Starts,
    /// Forms that begin so, for each start.
    forms: Vec<Vec<SecretString>>,
}

/// The shortest value that is looked for, in bytes.
const LEAST: usize = 8;
/// The most values that are kept beside those that were given last, such as of configurations before; the oldest go.
const MOST: usize = 4_096;
/// Values of at least this many bytes are found in decoded text.
const DECODED: usize = 16;
/// As much of a form is searched for first.
const START: usize = 8;

impl OwnCredentials {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for these too, from now on: for all of them, however many they are. Those that are too short, or known, change nothing,
    /// but that what is known goes no sooner than what came before this.
    pub fn hold<'a>(&self, values: impl IntoIterator<Item = &'a str>) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        let values = values.into_iter().flat_map(|value| {
            // Who sees an address in which it stands may tell it alone.
            let password = password_of(value).filter(|password| !is_everyday(password));
            [Some(bare(value)), password].into_iter().flatten()
        });
        let mut given = HashSet::new();
        let values: Vec<&str> = values
            .filter(|value| value.len() >= LEAST && given.insert(*value))
            .collect();
        let before = held.len();
        held.retain(|known| !given.contains(known.expose_secret()));
        let known = before - held.len();
        let most = MOST.max(values.len());
        let gone = (held.len() + values.len()).saturating_sub(most);
        held.drain(..gone);
        held.extend(values.iter().map(|value| SecretString::from(*value)));
        if known < values.len() {
            self.0.search.store(Search::of(&held).map(Arc::new));
        }
    }

    /// The text with a placeholder in the place of each that stands in it.
    pub fn without<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut hits = Vec::new();
        self.inspect(text, &mut hits);
        replaced(text, &hits)
    }

    /// What of `lent` stands in a text, which is no more than a few: so they are looked for one by one.
    pub(super) fn lent(lent: &[SecretString], text: &str, hits: &mut Vec<Hit>) {
        let lent = lent.iter().map(ExposeSecret::expose_secret);
        for value in lent.filter(|value| value.len() >= LEAST) {
            looked(text.len());
            let all = memchr::memmem::find_iter(text.as_bytes(), value.as_bytes());
            hits.extend(all.map(|at| hit(at..at + value.len())));
        }
    }

    /// Whether a variable or header of this name holds a credential, by its name.
    pub fn is_named_so(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        name == "cookie"
            || is_secret(&name)
            || name
                .split(|character: char| !character.is_ascii_alphanumeric())
                .any(|word| matches!(word, "key" | "auth" | "authorization" | "pat" | "jwt"))
    }

    /// Whether the value of this name, which stands where credentials do, counts as one: called so, or drawn at random and not
    /// called what identifies something.
    pub fn is_one(name: &str, value: &str) -> bool {
        Self::is_named_so(name)
            || password_of(value).is_some()
            || !is_everyday(value) && is_drawn(value) && !identifies(name)
    }

    /// Whether the value of a header of this name counts as one, sent beside a credential or as one: what [`OwnCredentials::is_one`]
    /// says, whatever names a session, and a user with a password or a UUID where the name says that it lets somebody in. A program is
    /// told all these in its environment for other ends.
    pub fn is_one_in_header(name: &str, value: &str) -> bool {
        let told = bare(value);
        Self::is_one(name, value)
            || is_of_session(name) && !is_everyday(told)
            || lets_in(name) && (is_login(told) || is_uuid(told))
    }
}

/// The words of the name of a header.
fn words(name: &str) -> impl DoubleEndedIterator<Item = String> {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric());
    words.map(str::to_ascii_lowercase)
}

/// Whether what is called so names a session: whoever knows it may be taken for who began it.
fn is_of_session(name: &str) -> bool {
    words(name).any(|word| word.starts_with("session"))
}

/// Whether what is called so may be what lets somebody in: models, regions and accounts look like it, and are none.
fn lets_in(name: &str) -> bool {
    const WORDS: [&str; 8] = [
        "access",
        "login",
        "user",
        "username",
        "credential",
        "credentials",
        "basic",
        "invite",
    ];
    words(name).any(|word| WORDS.contains(&&*word))
}

/// Whether what is called so says which of many things is meant: that stands in what they answer, too.
fn identifies(name: &str) -> bool {
    const LAST: [&str; 10] = [
        "id", "ids", "name", "names", "host", "user", "username", "database", "bucket", "region",
    ];
    words(name)
        .next_back()
        .is_some_and(|last| LAST.contains(&&*last))
}

/// A value without the scheme that stands before a credential in a header, which is none.
fn bare(value: &str) -> &str {
    const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "apikey", "oauth", "bot"];
    let value = value.trim();
    let Some((scheme, rest)) = value.split_once(' ') else {
        return value;
    };
    let rest = rest.trim();
    let known = SCHEMES.contains(&&*scheme.to_ascii_lowercase());
    let letters = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-';
    let alone = scheme.bytes().all(letters) && !rest.contains(' ') && !is_everyday(rest);
    if known || alone { rest } else { value }
}

impl Search {
    fn of(held: &VecDeque<SecretString>) -> Option<Self> {
        let mut starts: Vec<Vec<u8>> = Vec::new();
        let mut forms: Vec<Vec<SecretString>> = Vec::new();
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        for value in held {
            for form in forms_of(value.expose_secret()) {
                let start = &form.as_bytes()[..START.min(form.len())];
                match places.get(start) {
                    Some(known) => forms[*known].push(form.into()),
                    None => {
                        places.insert(start.to_vec(), starts.len());
                        starts.push(start.to_vec());
                        forms.push(vec![form.into()]);
                    }
                }
            }
        }
        // The longest first: of two credentials of which one begins the other, all of it is found.
        for forms in &mut forms {
            forms.sort_by_key(|form| usize::MAX - form.expose_secret().len());
        }
        let few = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostFirst)
            .builder()
            .extend(&starts)
            .build();
        let starts = match few {
            Some(few) => Starts::Few(few),
            None => Starts::Many(AhoCorasick::new(starts).ok()?),
        };
        Some(Self { starts, forms })
    }
}

impl Starts {
    fn next(&self, text: &str, at: usize) -> Option<Match> {
        match self {
            Self::Few(few) => few.find_in(text, Span::from(at..text.len())),
            Self::Many(many) => many.find(Input::new(text).span(at..text.len())),
        }
    }
}

fn forms_of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let spelled = crate::json::Json::string(value);
    let spelled = &spelled.as_str()[1..spelled.len() - 1];
    if spelled != value {
        forms.push(spelled.to_owned());
    }
    if value.len() < DECODED {
        let bytes = value.bytes();
        let hex: String = bytes.map(|byte| format!("{byte:02x}")).collect();
        forms.push(hex.to_uppercase());
        forms.push(hex);
        // Wherever it begins in what was encoded: without the characters that its neighbours share.
        for before in 0..3 {
            let padded = [&b"\0\0"[..before], value.as_bytes()].concat();
            let encoded = STANDARD.encode(&padded);
            let first = [0, 2, 3][before];
            let last = padded.len() * 8 / 6;
            let core = &encoded[first..last];
            if core.len() >= LEAST {
                forms.push(core.to_owned());
                forms.push(core.replace('+', "-").replace('/', "_"));
            }
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

impl Detector for OwnCredentials {
    fn class(&self) -> Class {
        Class::Own
    }

    fn finds_in_plain(&self) -> bool {
        self.0.search.load().is_some()
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        let search = self.0.search.load();
        let Some(search) = search.as_deref() else {
            return;
        };
        looked(text.len());
        let mut at = 0;
        while let Some(found) = search.starts.next(text, at) {
            let rest = &text.as_bytes()[found.start()..];
            let form = search.forms[found.pattern().as_usize()]
                .iter()
                .find(|form| rest.starts_with(form.expose_secret().as_bytes()));
            looked(START);
            let Some(form) = form else {
                at = found.start() + 1;
                continue;
            };
            at = found.start() + form.expose_secret().len();
            hits.push(hit(found.start()..at));
        }
    }
}

/// A credential that stands there.
fn hit(span: Range<usize>) -> Hit {
    Hit {
        span,
        class: Class::Own,
        rule: "own_credential".into(),
        inert: None,
    }
}

impl fmt::Debug for OwnCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnCredentials(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(own: &OwnCredentials, text: &str) -> Vec<String> {
        let mut hits = Vec::new();
        own.inspect(text, &mut hits);
        hits.into_iter()
            .map(|hit| text[hit.span].to_owned())
            .collect()
    }

    #[test]
    fn values_are_found_whole_in_every_form() {
        let own = OwnCredentials::new();
        assert!(found(&own, "hunter2-hunter2").is_empty());
        own.hold([
            "Bearer hunter2-hunter2",
            "hunter2-hunter",
            "short",
            "qu\"ote-ti",
        ]);
        assert_eq!(
            found(&own, "x hunter2-hunter2, hunter2-hunter."),
            ["hunter2-hunter2", "hunter2-hunter"]
        );
        assert_eq!(found(&own, "hunter2-hunte short"), [""; 0]);
        assert_eq!(found(&own, r#"qu\"ote-ti"#), [r#"qu\"ote-ti"#]);
        for before in ["", "a", "ab", "abc"] {
            let text = STANDARD.encode(format!("{before}hunter2-hunter and more"));
            assert_eq!(found(&own, &text).len(), 1, "{text}");
        }
        assert_eq!(found(&own, "68756e746572322d68756e746572").len(), 1);
        assert_eq!(found(&own, "68756E746572322D68756E746572").len(), 1);
    }

    #[test]
    fn a_start_that_leads_nowhere_hides_nothing_behind_it() {
        let own = OwnCredentials::new();
        own.hold(["aaaaaaaaab", "aaaaaaaac"]);
        assert_eq!(found(&own, "aaaaaaaaaac"), ["aaaaaaaac"]);
    }

    #[test]
    fn the_oldest_goes_at_the_bound_and_nothing_that_is_given_now() {
        let own = OwnCredentials::new();
        let all: Vec<String> = (0..=MOST)
            .map(|n| format!("credential-{n:05}-of-ours"))
            .collect();
        let is_held = |n: usize| !found(&own, &all[n]).is_empty();
        for value in &all[..MOST] {
            own.0.held.lock().unwrap().push_back(value.as_str().into());
        }
        // One of a configuration that stands in the next, too, is not of before.
        own.hold([all[0].as_str(), all[MOST].as_str()]);
        assert!(is_held(0) && !is_held(1) && is_held(2) && is_held(MOST));
        own.hold([all[0].as_str()]);
        assert!(is_held(0) && is_held(2) && is_held(MOST));
        own.hold(all.iter().map(String::as_str));
        assert!((0..=MOST).all(is_held));
        own.hold(["credential-of-afterwards"]);
        assert!(!is_held(1) && is_held(MOST));
    }

    #[test]
    fn names_tell_what_holds_a_credential() {
        for name in [
            "GITHUB_TOKEN",
            "X-Api-Key",
            "Authorization",
            "DB_PASSWORD",
            "AUTH",
        ] {
            assert!(OwnCredentials::is_named_so(name), "{name}");
        }
        for name in ["NODE_OPTIONS", "X-Tenant", "KEYBOARD", "LANG"] {
            assert!(!OwnCredentials::is_named_so(name), "{name}");
        }
    }

    #[test]
    fn what_stands_around_a_credential_is_none() {
        for value in [
            "Token x8Fq2LmZp0Rv7",
            "GenieKey x8Fq2LmZp0Rv7",
            "bearer x8Fq2LmZp0Rv7",
            "postgres://app:x8Fq2LmZp0Rv7@db.example/app",
        ] {
            let own = OwnCredentials::new();
            own.hold([value]);
            assert_eq!(found(&own, "it is x8Fq2LmZp0Rv7"), ["x8Fq2LmZp0Rv7"]);
        }
        let own = OwnCredentials::new();
        own.hold([
            "my passphrase",
            "postgres://postgres:postgres@localhost/app",
        ]);
        assert_eq!(found(&own, "a passphrase for postgres"), [""; 0]);
    }

    #[test]
    fn a_text_is_told_without_them() {
        let own = OwnCredentials::new();
        assert_eq!(
            own.without("before it, nothing is held"),
            "before it, nothing is held"
        );
        own.hold(["Bearer s3cret-0a1b", "other \"quoted\" 2c3d"]);
        for (text, told) in [
            ("no secret", "no secret"),
            ("s3cret-0a1", "s3cret-0a1"),
            (
                "a s3cret-0a1b, s3cret-0a1b.",
                "a [redacted:own_credential], [redacted:own_credential].",
            ),
            (
                r#"{"e":"other \"quoted\" 2c3d"}"#,
                r#"{"e":"[redacted:own_credential]"}"#,
            ),
        ] {
            assert_eq!(own.without(text), told);
        }
    }
}
