//! Scrubbing: what may be kept of content and of names, in records and in views that outlive a call (SECURITY 8, AUD-8).
//!
//! Guarantees: whatever is done about a class where content goes through, what is kept holds placeholders in the place of
//! credentials of the gateway's own, of secrets of either sort, of personal data with a check digit, of what the operator's own
//! rules match, and of other personal data where anything is done about that; what cannot be read to its end is not kept
//! at all. Nothing is noted or counted: findings are of content that goes through. Deliberately absent: what is kept, and of which
//! calls.

use std::{borrow::Cow, fmt::Write as _};

use super::{
    Class, Detector as _, OwnCredentials, Sanitizer, Subject, Verdict,
    called::is_secret,
    placeholder::replaced,
    rules::{Actions, Rules},
    secrets::{self, Wanted},
};
use crate::{
    findings::{Action, Direction, Findings, Scrub},
    json::{Edits, Json, Limits, Span, Text, unquote},
    protocol::UpstreamId,
};

/// Stands for content that cannot be kept.
pub const WITHHELD: &str = "[withheld]";
/// Stands for the value of a parameter that is called a secret.
const PARAMETER: &str = "[redacted:parameter]";
/// The shortest text in which anything is looked for, in bytes: no credential is shorter (`own.rs`).
const LEAST: usize = 8;
/// The most digits of a name that is plain: those of an index, as a rule.
const DIGITS: usize = 3;
/// Names on the way to content that are longer and are the protocol's own.
const OF_PROTOCOL: [&str; 4] = [
    "arguments",
    "description",
    "properties",
    "structuredContent",
];

/// Takes out what must not be kept. It has the detectors of a sanitizer, and actions of its own.
#[derive(Debug)]
pub struct Scrubber(Sanitizer);

impl Scrubber {
    /// With what this sanitizer looks for.
    pub fn of(sanitizer: &Sanitizer) -> Self {
        let mut rules = sanitizer.rules().clone();
        for own in &mut rules.own {
            own.action = Action::Redact;
        }
        Self(sanitizer.with(rules, Findings::unheard()))
    }

    /// What somebody looks at to judge it, without the credentials in it: all else is what they look for, what hides and what may be
    /// an attempt on the model above all. Of a text in which that splits a credential they see labels in its place. `None` where
    /// what is in it cannot be told.
    pub fn without_credentials(&self, value: &Json) -> Option<Json> {
        let credentials = [Class::Own, Class::Secret, Class::WeakSecret];
        let credentials = acting(&credentials, Action::Redact);
        // What hides is all that goes first: what the operator's own rules match is a credential here.
        let rules = Rules {
            own: Vec::new(),
            ..self.0.rules().clone()
        };
        let bare = Self(self.0.with(rules, Findings::unheard()));
        let mut shown = self.look(value, &credentials)?;
        // One that is split within a sequence of a terminal is there only as long as that is.
        for hides in [&[Class::Hidden][..], &[Class::Hidden, Class::Terminal]] {
            let seen = bare.look(&shown, &acting(hides, Action::Remove))?;
            if seen == shown {
                continue;
            }
            let kept = self.look(&seen, &credentials)?;
            if kept != seen {
                shown = labelled_where_split(&shown, &seen, &kept)?;
            }
        }
        Some(shown)
    }

    /// A name of which nothing is taken out but what nobody sees, with labels in the place of that: without them it would read as
    /// another (SECURITY AUD-6).
    fn with_what_hides(&self, name: &str, value: &Json, kept: &str) -> String {
        let hidden = acting(&[Class::Hidden, Class::Terminal], Action::Remove);
        let seen = self.look(value, &hidden);
        let seen = seen.as_ref().and_then(|seen| seen.root().as_str());
        if seen.as_deref() != Some(kept) {
            return kept.to_owned();
        }
        labelled(name, kept, kept)
    }

    /// `None` where it must not be kept.
    fn look(&self, value: &Json, actions: &Actions) -> Option<Json> {
        let subject = Subject::new(Direction::Results, actions, &[]);
        match self.0.look(value, &subject) {
            Verdict::Clean | Verdict::Flagged(_) => Some(value.clone()),
            Verdict::Changed(value, _) => Some(value),
            Verdict::Blocked(_) => None,
        }
    }

    fn actions(&self, upstream: Option<&UpstreamId>, tool: Option<&str>) -> Actions {
        let through = self.0.rules().actions(upstream, tool);
        let anywhere = [
            Direction::Arguments,
            Direction::Results,
            Direction::Definitions,
        ];
        let mut kept = Actions::default();
        for class in Class::ALL {
            let action = match class {
                // What splits a secret goes first.
                Class::Hidden | Class::Terminal => Some(Action::Remove),
                Class::Own | Class::Secret | Class::WeakSecret | Class::PersonalChecked => {
                    Some(Action::Redact)
                }
                Class::Personal => anywhere
                    .iter()
                    .any(|direction| through.of(class, *direction).is_some())
                    .then_some(Action::Redact),
                // It does nothing where nobody renders, runs or obeys it.
                Class::Active | Class::Injection | Class::Media | Class::Elicitation => None,
            };
            kept.set(class, Direction::Results, action);
        }
        kept
    }
}

impl Scrub for Scrubber {
    fn content(&self, value: &Json, upstream: Option<&UpstreamId>, tool: Option<&str>) -> Json {
        self.look(value, &self.actions(upstream, tool))
            .unwrap_or_else(|| Json::string(WITHHELD))
    }

    fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if name.len() < LEAST {
            return name.into();
        }
        let known = without_parameters(name);
        let value = Json::string(&known);
        match self.look(&value, &self.actions(None, None)) {
            None => WITHHELD.into(),
            Some(kept) if kept.bytes() == value.bytes() => known,
            Some(kept) => match kept.root().as_str() {
                Some(kept) => self.with_what_hides(&known, &value, &kept).into(),
                None => WITHHELD.into(),
            },
        }
    }

    /// What the operator's own rules match may be as short, numbers side by side may be somebody's, and what hides is no letter.
    fn is_plain(&self, name: &str) -> bool {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let few_digits = name.bytes().filter(u8::is_ascii_digit).count() <= DIGITS;
        let short = name.len() < LEAST && few_digits && name.bytes().all(letter);
        (short || OF_PROTOCOL.contains(&name)) && self.0.rules().own.is_empty()
    }

    fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        if is_ordinary(id) {
            return id.into();
        }
        // What is read of it later is its text, in which nothing is escaped.
        let Ok(text) = serde_json::from_str::<String>(id) else {
            return self.name(id);
        };
        match self.name(&text) {
            kept if kept == text => id.into(),
            kept => Json::string(&kept).as_str().to_owned().into(),
        }
    }
}

/// These classes acted upon so, and no others.
fn acting(classes: &[Class], action: Action) -> Actions {
    let mut actions = Actions::default();
    for class in Class::ALL {
        let acts = classes.contains(&class).then_some(action);
        actions.set(class, Direction::Results, acts);
    }
    actions
}

/// A value in which texts are those of `kept`, with labels, wherever more was taken out of what is seen of it than what hides.
fn labelled_where_split(value: &Json, seen: &Json, kept: &Json) -> Option<Json> {
    let mut edits = Edits::new();
    for ((text, seen_text), kept_text) in value.texts().zip(seen.texts()).zip(kept.texts()) {
        let read = |json: &Json, text: Text| {
            let Span { start, end } = text.inside;
            unquote(&json.bytes()[start..end]).into_owned()
        };
        let (seen, kept) = (read(seen, seen_text), read(kept, kept_text));
        if seen != kept {
            edits.rewrite(text.inside, &labelled(&read(value, text), &seen, &kept));
        }
    }
    // Names may have become alike.
    Json::parse(value.splice(&edits).bytes().clone(), &Limits::KNOWN).ok()
}

/// What is kept of a text of which only `seen` is seen, with labels in the place of what hides; of that where something was taken out,
/// they stand behind it. Of what can be read nothing is told then that hides: a letter of it may be one of what was taken out.
fn labelled(text: &str, seen: &str, kept: &str) -> String {
    let alike = |one: &mut dyn Iterator<Item = char>, other: &mut dyn Iterator<Item = char>| {
        let same = one.zip(other).take_while(|(one, other)| one == other);
        same.map(|(one, _)| one.len_utf8()).sum::<usize>()
    };
    let from = alike(&mut seen.chars(), &mut kept.chars());
    let (gone, instead) = (&seen[from..], &kept[from..]);
    let behind = alike(&mut gone.chars().rev(), &mut instead.chars().rev());
    let to = seen.len() - behind;
    let mut before = String::with_capacity(2 * text.len());
    let mut within = instead[..instead.len() - behind].to_owned();
    let mut after = String::new();
    let mut at = 0;
    for character in text.chars() {
        let is_seen = seen[at..].starts_with(character);
        if is_seen && (from..to).contains(&at) {
            at += character.len_utf8();
            continue;
        }
        let part = if at <= from {
            &mut before
        } else if at < to {
            &mut within
        } else {
            &mut after
        };
        if is_seen {
            part.push(character);
            at += character.len_utf8();
        } else if from == to || !character.is_alphanumeric() && !character.is_ascii_graphic() {
            // Writing to a string cannot fail.
            _ = write!(part, "<U+{:04X}>", u32::from(character));
        }
    }
    before + &within + &after
}

/// A line for a log without the secrets in it that leave no doubt.
pub fn without_secrets(line: &str) -> Cow<'_, str> {
    without_secrets_before(line, line.len())
}

/// The same for those that begin before `until`, in a line that goes on: of what comes later more may be to come.
pub fn without_secrets_before(line: &str, until: usize) -> Cow<'_, str> {
    let secrets = secrets::detector(Wanted {
        strong: true,
        weak: false,
    });
    let mut hits = Vec::new();
    secrets.inspect(line, &mut hits);
    hits.retain(|hit| hit.span.start < until);
    hits.sort_by_key(|hit| hit.span.start);
    replaced(line, &hits)
}

/// Whether an id is a number, short, or a UUID.
fn is_ordinary(id: &str) -> bool {
    let id = id.trim_matches('"');
    let hexadecimal = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    id.len() < LEAST
        || id.bytes().all(|byte| byte.is_ascii_digit()) && id.len() <= 20
        || id.len() == 36 && id.bytes().all(hexadecimal)
}

/// An address without the passwords and parameters in it that are called secrets, whatever they look like.
fn without_parameters(address: &str) -> Cow<'_, str> {
    let query = address.find(['?', '#']).unwrap_or(address.len());
    let (place, rest) = address.split_at(query);
    let mut kept = without_password(place);
    let mut rest = rest;
    while let Some(separator) = rest.chars().next() {
        let end = rest[1..]
            .find(['&', ';', '#', '?'])
            .map_or(rest.len(), |end| end + 1);
        let (parameter, after) = rest[1..].split_at(end - 1);
        rest = after;
        let secret = parameter.split_once('=').filter(|(name, value)| {
            let name = percent_decoded(name);
            !value.is_empty() && (is_secret(&name) || OwnCredentials::is_named_so(&name))
        });
        let kept = kept.to_mut();
        kept.push(separator);
        match secret {
            Some((name, _)) => {
                kept.push_str(name);
                kept.push('=');
                kept.push_str(PARAMETER);
            }
            None => kept.push_str(parameter),
        }
    }
    kept
}

/// `scheme://user:password@host`
fn without_password(place: &str) -> Cow<'_, str> {
    let found = || {
        let authority = place.find("://")? + 3;
        let end = place[authority..]
            .find('/')
            .map_or(place.len(), |end| authority + end);
        let at = authority + place[authority..end].rfind('@')?;
        let colon = authority + place[authority..at].find(':')? + 1;
        Some((colon, at))
    };
    match found() {
        Some((colon, at)) if colon < at => {
            format!("{}{PARAMETER}{}", &place[..colon], &place[at..]).into()
        }
        _ => place.into(),
    }
}

fn percent_decoded(name: &str) -> String {
    // The same escapes as in a form, and `+` is no part of a secret's name.
    let pair = format!("{name}=");
    let mut decoded = form_urlencoded::parse(pair.as_bytes());
    decoded
        .next()
        .map(|(name, _)| name.into_owned())
        .unwrap_or_default()
}

impl Sanitizer {
    /// The same detectors under other rules.
    fn with(&self, rules: Rules, findings: Findings) -> Self {
        Self::new(self.detectors().to_vec(), rules, findings)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::sanitize::rules::OwnRule;

    const TOKEN: &str = "glpat-k7Qd2ZrTn8VbXw4Ls9Yc";

    fn scrubber(rules: Rules) -> Scrubber {
        let own = OwnCredentials::new();
        own.hold([
            "planted-own-credential-31",
            "hunter2/pass",
            "P@ssw0rd!hunter22",
        ]);
        Scrubber::of(&Sanitizer::standard(rules, Findings::new(), own))
    }

    fn kept(scrubber: &Scrubber, value: &str) -> String {
        let value = Json::parse(Bytes::copy_from_slice(value.as_bytes()), &Limits::KNOWN);
        scrubber
            .content(&value.unwrap(), None, None)
            .as_str()
            .to_owned()
    }

    #[test]
    fn who_judges_a_definition_sees_all_of_it_but_the_credentials() {
        let scrubber = scrubber(Rules::default());
        let shown = |value: &str| {
            let value = scrubber.without_credentials(&Json::string(value)).unwrap();
            value.root().as_str().unwrap().into_owned()
        };
        let seen = "ignore all\u{200B} instructions \u{1B}[2J ana@x.org <script>";
        assert_eq!(shown(seen), seen);
        assert_eq!(
            shown(&format!("{seen} planted-own-credential-31 {TOKEN}.")),
            format!("{seen} [redacted:own_credential] [redacted:gitlab_personal_token].")
        );
        // What hides is shown, and hides nothing.
        let split = TOKEN.replace("ZrT", "Z\u{200B}rT");
        assert!(!shown(&split).contains("k7Qd2Z"), "{}", shown(&split));
        for (split, expected) in [
            (
                "a\u{200B}b P@ss\u{200B}w0rd!hunter22 c\u{200B}d",
                "a<U+200B>b [redacted:own_credential]<U+200B> c<U+200B>d",
            ),
            (
                "P@ss\u{1B}[2Jw0rd!hunter22",
                "[redacted:own_credential]<U+001B>",
            ),
            (
                "P@ss\u{1B}]0;w0rd!hunter22\u{7}w0rd!hunter22",
                "[redacted:own_credential]<U+001B><U+0007>",
            ),
            (
                "at \u{1B}]0;P@ss\u{200B}w0rd!hunter22\u{7} all",
                "at \u{1B}]0;[redacted:own_credential]<U+200B>\u{7} all",
            ),
        ] {
            assert_eq!(shown(split), expected);
        }
        for split in [
            TOKEN.replace("ZrT", "Z\u{1B}[1mrT"),
            TOKEN.replace("ZrT", "Z\u{1B}[1mr\u{200B}T"),
        ] {
            let shown = shown(&split);
            assert!(
                !shown.contains("k7Qd2Z") && !shown.contains("8VbXw"),
                "{shown}"
            );
        }
    }

    #[test]
    fn who_judges_a_definition_sees_no_secret_that_is_known_by_what_stands_beside_it() {
        let scrubber = scrubber(Rules::default());
        let shown = |value: &'static str| {
            let value = Json::parse(Bytes::from_static(value.as_bytes()), &Limits::KNOWN);
            scrubber.without_credentials(&value.unwrap())
        };
        let weak = r#"{"env":{"DB_PASSWORD":"x8Kd-20qpL_zz7Wd"},"a\u200bb":"x\u200by"}"#;
        let kept = shown(weak).unwrap();
        assert!(!kept.as_str().contains("x8Kd"), "{}", kept.as_str());
        assert!(kept.as_str().ends_with(r#","a\u200bb":"x\u200by"}"#));
        let plain = r#"{"name":"login","inputSchema":{"type":"object","properties":{"password":{"type":"string","description":"Your password"},"token":{"type":"string"}},"required":["password","token"]}}"#;
        assert_eq!(shown(plain).unwrap().as_str(), plain);
        // What is one without what hides in it, as no value is, nobody knows.
        assert_eq!(shown(r#"{"a":1,"a\u200b":2}"#), None);
    }

    /// SECURITY AUD-8
    #[test]
    fn secrets_are_not_kept_whatever_is_done_about_them_where_they_go_through() {
        for action in [None, Some(Action::Flag), Some(Action::Block)] {
            let mut rules = Rules::default();
            for class in Class::ALL {
                rules.actions.set_all(class, action);
            }
            let scrubber = scrubber(rules);
            for (secret, name) in [
                (TOKEN, "gitlab"),
                ("planted-own-credential-31", "own_credential"),
                ("4539 5787 6362 1486", "card"),
                ("GB82 WEST 1234 5698 7654 32", "iban"),
                ("password = \\\"x8Kd-20qpL_zz7Wd\\\"", "password"),
            ] {
                let text = kept(&scrubber, &format!(r#"{{"a":["before {secret} after"]}}"#));
                assert!(!text.contains(secret), "{name} under {action:?}: {text}");
                assert!(
                    text.contains("before ") && text.contains("[redacted:"),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn what_is_split_or_encoded_is_found_and_what_is_clean_stays() {
        let scrubber = scrubber(Rules::default());
        let split = format!("{{\"a\":\"glpat-\u{200B}{}\"}}", &TOKEN[6..]);
        assert!(!kept(&scrubber, &split).contains(&TOKEN[6..]));
        let named = format!(r#"{{"{TOKEN}":1}}"#);
        assert!(!kept(&scrubber, &named).contains(TOKEN));
        for clean in [r#"{"a":"x","b":[1,null,"ünï"]}"#, r#""<script>""#] {
            assert_eq!(kept(&scrubber, clean), clean);
        }
    }

    #[test]
    fn a_name_with_something_that_nobody_sees_is_not_kept_as_another() {
        let scrubber = scrubber(Rules::default());
        for (name, expected) in [
            ("notes_\u{200B}delete", "notes_<U+200B>delete"),
            ("notes_del\u{202E}ete", "notes_del<U+202E>ete"),
            (
                "\u{1B}[2Knotes_delete",
                "<U+001B><U+005B><U+0032><U+004B>notes_delete",
            ),
            ("notes_delete", "notes_delete"),
        ] {
            assert_eq!(scrubber.name(name), expected);
        }
        let split = format!("{}\u{200B}{}", &TOKEN[..9], &TOKEN[9..]);
        let kept = scrubber.name(&split);
        assert!(!kept.contains(&TOKEN[9..]), "{kept}");
    }

    #[test]
    fn a_name_is_plain_where_nothing_can_be_in_it() {
        let of = scrubber(Rules::default());
        for name in ["", "0", "content", "a_b-7", "structuredContent"] {
            assert!(of.is_plain(name), "{name}");
        }
        for name in ["a\u{200B}b", "\u{1B}[2K", "a~1b", "contents", "1234", TOKEN] {
            assert!(!of.is_plain(name), "{name}");
        }
        let own = OwnRule {
            name: "project".into(),
            pattern: regex::Regex::new("falcon").unwrap(),
            action: Action::Flag,
        };
        let of = scrubber(Rules {
            own: vec![own],
            ..Rules::default()
        });
        assert!(!of.is_plain("falcon"));
    }

    #[test]
    fn a_line_for_a_log_has_placeholders_for_secrets() {
        let line = format!("a {TOKEN} b {TOKEN}");
        let rule = "[redacted:gitlab_personal_token]";
        assert_eq!(without_secrets(&line), format!("a {rule} b {rule}"));
        assert_eq!(without_secrets("nothing of it"), "nothing of it");
        let second = line.rfind(TOKEN).unwrap();
        assert_eq!(
            without_secrets_before(&line, second),
            format!("a {rule} b {TOKEN}")
        );
    }

    #[test]
    fn findings_of_what_is_kept_are_not_findings() {
        let findings = Findings::new();
        let sanitizer =
            Sanitizer::standard(Rules::default(), findings.clone(), OwnCredentials::new());
        let scrubber = Scrubber::of(&sanitizer);
        assert_ne!(scrubber.name(TOKEN), TOKEN);
        assert_eq!(findings.noted(), 0);
    }

    #[test]
    fn names_and_addresses_lose_what_is_secret_and_nothing_else() {
        let scrubber = scrubber(Rules::default());
        let redacted = |text: &str| format!("{text}{PARAMETER}");
        for (written, expected) in [
            ("notes_nothing", "notes_nothing".to_owned()),
            (
                "file:///a/b?page=2#top",
                "file:///a/b?page=2#top".to_owned(),
            ),
            ("http://h/p?token=abc", redacted("http://h/p?token=")),
            (
                "http://h/p?a=1&api%5Fkey=abc",
                redacted("http://h/p?a=1&api%5Fkey="),
            ),
            (
                "http://h/#access_token=abc&b=1",
                redacted("http://h/#access_token=") + "&b=1",
            ),
            ("ftp://ann:abc@h/p", redacted("ftp://ann:") + "@h/p"),
            ("http://ann@h/?", "http://ann@h/?".to_owned()),
        ] {
            assert_eq!(scrubber.name(written), expected);
        }
        let told = scrubber.name(TOKEN);
        assert!(told.starts_with("[redacted:"), "{told}");
        assert_eq!(scrubber.id(&format!("\"{TOKEN}\"")).find(TOKEN), None);
        // What only reads as a secret once it is unescaped.
        for id in [r#""\u0068unter2/pass""#, r#""hunter2\/pass""#] {
            let told = scrubber.id(id);
            let text: String = serde_json::from_str(&told).unwrap();
            assert_eq!(text, "[redacted:own_credential]", "{id}");
        }
        for id in ["7", "\"7\"", "\"6f9619ff-8b86-d011-b42d-00cf4fc964ff\""] {
            assert_eq!(scrubber.id(id), id);
        }
    }
}
