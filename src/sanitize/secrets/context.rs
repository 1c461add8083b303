//! Values that their context gives away: a name, an assignment, and something that looks drawn at random.
//!
//! Guarantees: looks back no farther than [`BACK`] bytes from a value. Deliberately absent: passwords that people make up
//! (`assign.rs`).

use std::ops::Range;

use super::{
    bytes::is_token,
    ending::Ending,
    names::{is_number, letters, low, name_before, operator, quoted},
    plausible::{holds, is_path, is_wordy, plausible, random},
    public::{
        is_encrypted, is_id, is_key_of_browsers, is_number_of_twilio, is_of_application, is_sealed,
    },
    rules::{Token, Word},
    said::Said,
    scan::{Scan, WORD},
    section::owner,
    service::names_a_service,
};
use crate::sanitize::{
    Class,
    survey::{BLOCK, block},
    work::looked,
};

/// How far before a value its name may stand, in bytes.
const BACK: usize = 160;
/// The longest value, in bytes.
const VALUE: usize = 1600;
/// The most dots and dashes behind a value that are none of it: they are looked at for each of its runs.
const DOTS: usize = 64;

/// How far before a value it is looked whether that is the number of an application, in bytes.
const APPLICATION: usize = 32;

/// What was seen of values: there may be many runs in one.
#[derive(Default)]
pub(super) struct Valued {
    /// The value that was judged last.
    judged: Range<usize>,
    /// What belongs to a value, around the last run.
    inner: Range<usize>,
    /// Where that ends if `=` belongs to it, too, and from where it was followed.
    outer: Range<usize>,
}

impl Valued {
    /// The value around a run, as they rise.
    fn around(&mut self, text: &[u8], start: usize, end: usize) -> Range<usize> {
        let is_alone =
            |byte: Option<&u8>| byte.is_none_or(|byte| !is_value(*byte) && *byte != b'=');
        let last = start.checked_sub(1).and_then(|last| text.get(last));
        if is_alone(last) && is_alone(text.get(end)) {
            (self.inner, self.outer) = (start..end, end..end);
            return start..end;
        }
        if !self.inner.contains(&start) {
            // Not before what was seen: that ended.
            let from = self.inner.end.min(start);
            let left = text[from..start].iter().rev();
            let left = left.take_while(|byte| is_value(**byte)).count();
            // The run itself belongs to it.
            let right = text[end..].iter().take_while(|byte| is_value(**byte));
            let right = right.count();
            looked(left + right);
            self.inner = start - left..end + right;
        }
        // From where the run ends to where that ends all belongs to it.
        if !(self.outer.start..=self.outer.end).contains(&end) {
            let from = self.inner.end;
            let right = text[from..].iter();
            let right = right.take_while(|byte| is_value(**byte) || **byte == b'=');
            let right = right.count();
            looked(right);
            self.outer = end..from + right;
        }
        self.inner.start..self.outer.end
    }
}

impl Scan<'_> {
    /// A run of token characters in which no token was found: perhaps it belongs to a value that has a name.
    pub(super) fn value(&mut self, start: usize, end: usize) {
        let text = self.text;
        if self.beside(start, end) {
            return;
        }
        // Right behind an assignment nothing else can be the name.
        if let Some([last, b'=']) = text[..start].last_chunk()
            && is_token(*last)
            && self.is_harmless(start - 1)
        {
            return;
        }
        let mut value = self.valued.around(text, start, end);
        // A sentence may end here, or be broken off.
        let last = text[end..value.end].iter().rev().take(DOTS);
        let dots = last.take_while(|byte| matches!(byte, b'.' | b'-')).count();
        looked(dots);
        value.end -= dots;
        if value.len() > VALUE || is_path(&text[value.clone()]) {
            return;
        }
        // Of the runs in one value each is met.
        let before = &text[value.start.saturating_sub(APPLICATION)..value.start];
        if self.valued.judged == value {
            return;
        }
        self.valued.judged = value.clone();
        if is_of_application(before) || is_encrypted(before) || is_sealed(text, &value) {
            return;
        }
        looked(value.len());
        if self.placed(&value) || self.authorized(&value) {
            return;
        }
        let Some(op) = operator(text, value.start) else {
            return;
        };
        let digits = || text[value.clone()].iter().take(64).any(u8::is_ascii_digit);
        if op.bare && (!digits() || text[..op.at].ends_with(b"-id")) {
            return;
        }
        if self.is_harmless(op.at) {
            return;
        }
        if is_number(text, op.at) {
            return;
        }
        let name = name_before(text, op.at);
        // Words have letters.
        if name.len() <= BLOCK && letters(&block(text, name.start)) & low(name.len()) == 0 {
            return;
        }
        let mut said = self.rules.said(text, name.clone());
        // Behind a comma stands another argument.
        said.id = text[op.at] != b',' && is_id(text, name.end.min(op.at));
        // The digest of a module: any word may stand in the name of that.
        if said.harmless || text[name].ends_with(b" h1") {
            return;
        }
        let wide = op.at.saturating_sub(BACK)..op.at;
        let quoted = quoted(text, value.clone());
        for value in [Some(value.clone()), quoted].into_iter().flatten() {
            if self.judge(&value, &said, &wide, op.bare) {
                return;
            }
        }
    }

    /// Whether the word right before an assignment says that nothing is to be kept to oneself. What it says is remembered: the
    /// same few names stand before most values of a text.
    #[inline]
    fn is_harmless(&mut self, end: usize) -> bool {
        let last = self.text[..end].last_chunk::<{ Ending::MOST }>();
        let Some(last) = last else {
            return self.is_harmless_word(end).0;
        };
        let slot = Ending::slot(last);
        let (known, harmless) = self.called[slot];
        if known.is(last, Ending::MOST) {
            return harmless;
        }
        let (harmless, length) = self.is_harmless_word(end);
        if (1..Ending::MOST).contains(&length) {
            self.called[slot] = (Ending::of(*last, length), harmless);
        }
        harmless
    }

    /// The same, and how long the word is with its quotes; zero, where nothing is known of it.
    #[inline(never)]
    fn is_harmless_word(&mut self, before: usize) -> (bool, usize) {
        let text = self.text;
        // Of numbers nothing is known.
        if text[before - 1].is_ascii_digit() {
            return (false, 0);
        }
        let quotes = text[before.saturating_sub(2)..before].iter().rev();
        let end = before
            - quotes
                .take_while(|byte| matches!(byte, b'"' | b'\''))
                .count();
        let from = end.saturating_sub(WORD);
        let word = text[from..end].iter().rev();
        let start = end - word.take_while(|byte| is_token(**byte)).count();
        // One that goes on is not known whole.
        if start == from || start == end || text[end - 1].is_ascii_digit() {
            return (false, 0);
        }
        let mut word = [0; WORD];
        word[..end - start].copy_from_slice(&text[start..end]);
        let slot = usize::from(word[0] ^ word[1].rotate_left(2) ^ text[end - 1].rotate_left(4)) % 8;
        let known = &mut self.harmless[slot];
        if known.0 != word {
            *known = (word, self.rules.said(text, start..end).harmless);
        }
        (known.1, before - start)
    }

    fn judge(
        &mut self,
        value: &Range<usize>,
        said: &Said,
        wide: &Range<usize>,
        bare: bool,
    ) -> bool {
        let bytes = &self.text[value.clone()];
        let rules = self.rules;
        if !said.secret && said.vendors[0].is_none()
            || is_key_of_browsers(bytes)
            || is_number_of_twilio(bytes)
        {
            return false;
        }
        let around;
        // Whose it is may stand farther off, where the name itself says that it is a key.
        let vendors = if said.vendors[0].is_none() {
            around = rules.said(self.text, wide.clone());
            &around.vendors
        } else {
            &said.vendors
        };
        let mut whose =
            vendors
                .iter()
                .flatten()
                .filter_map(|at| match &rules.meanings[usize::from(*at)] {
                    Word::Vendor(contexts, name) => Some((contexts, name)),
                    Word::Secret | Word::Harmless | Word::Id => None,
                });
        let certain = whose
            .clone()
            .flat_map(|(contexts, _)| contexts)
            .find_map(|at| {
                let context = &rules.contexts[usize::from(*at)];
                let spoken = said.secret || !context.word && !bare && bytes.len() >= 24;
                (spoken
                    && (context.id || !said.id)
                    && context
                        .patterns
                        .iter()
                        .any(|pattern| pattern.is_all_of(bytes))
                    && plausible(bytes)
                    && mixed(bytes))
                .then_some(&context.name)
            });
        if let Some(name) = certain {
            self.hit(value.clone(), class_of(self.text, value), name);
            return true;
        }
        if !said.secret || said.id {
            return false;
        }
        // What is cut off is of no use to anybody; but dots are added easily.
        let after = &self.text[value.end..];
        let cut = after.starts_with(b"...") || after.starts_with("\u{2026}".as_bytes());
        if !random(bytes) {
            // Passwords of people are not drawn at random.
            return bare && self.netrc(value, wide) || self.called_password(value, wide.end);
        }
        let sure = (20..=1024).contains(&bytes.len()) && !is_client(&self.text[..wide.end]);
        let short = (16..20).contains(&bytes.len())
            && !bare
            && !cut
            && is_short_key(bytes)
            && names_a_service(self.text, wide.end);
        let own = said.vendors[0].and_then(|_| whose.next());
        let name = match own {
            Some((_, name)) if sure || short => Some(name),
            None if sure || short || bare => owner((rules, self.names), self.text, wide, bare)
                .or_else(|| {
                    let service = short
                        || sure && !cut && !is_wordy(bytes) && names_a_service(self.text, wide.end);
                    service.then_some(&self.names.service)
                }),
            _ => None,
        };
        match name.filter(|_| !rules.is_spoiled(bytes)) {
            Some(name) => self.hit(value.clone(), class_of(self.text, value), name),
            None if self.listed_key(value) => {}
            None => {
                let name = &self.names.generic;
                self.hit(value.clone(), Class::WeakSecret, name);
            }
        }
        true
    }
}

impl Scan<'_> {
    /// Whether a word stands before `at` with which the value of a context is this token.
    pub(super) fn is_named_near(&self, at: usize, token: &Token) -> bool {
        let rules = self.rules;
        let said = rules.said(self.text, at.saturating_sub(BACK)..at);
        said.vendors
            .iter()
            .flatten()
            .any(|word| match &rules.meanings[usize::from(*word)] {
                Word::Vendor(contexts, _) => contexts
                    .iter()
                    .any(|context| rules.contexts[usize::from(*context)].name == token.name),
                Word::Secret | Word::Harmless | Word::Id => false,
            })
    }
}

/// What says of a key of Algolia that pages search with it.
const SEARCHES: [&[u8]; 6] = [
    b"searchkey",
    b"search_key",
    b"searchonly",
    b"search_only",
    b"search-only",
    b"searchapikey",
];

/// Of what class a value is that is a key by its context: one that pages search with is marked only.
fn class_of(text: &[u8], value: &Range<usize>) -> Class {
    match is_of_search(text, value) {
        true => Class::WeakSecret,
        false => Class::Secret,
    }
}

/// Whether it is a key of Algolia that pages search with, by its own name or by the function that it is given to. The publisher says
/// that such a key is public and belongs in what a browser loads, so that it is marked only. Which index is asked says nothing:
/// those that write one name it, too.
fn is_of_search(text: &[u8], value: &Range<usize>) -> bool {
    let before = &text[value.start.saturating_sub(BACK)..value.start];
    looked(before.len());
    let parts = |byte: &u8| matches!(byte, b'\n' | b',' | b';' | b'{' | b'(');
    let own = before.iter().rposition(parts).map_or(0, |last| last + 1);
    let own = &before[own..];
    let writes = [&b"admin"[..], b"write"];
    if value.len() != 32 || writes.iter().any(|word| holds(before, word)) {
        return false;
    }
    let named = SEARCHES.iter().any(|word| holds(own, word));
    let given = [&b"docsearch("[..], b"instantsearch("].iter().any(|call| {
        let mut calls = before.windows(call.len());
        let at = calls.rposition(|here| here.eq_ignore_ascii_case(call));
        at.is_some_and(|at| !holds(&before[at + call.len()..before.len() - own.len()], b"key"))
    });
    named && holds(before, b"algolia") || given
}

/// Whether sixteen characters and a few are a key: of one case with digits, so that they are no name.
fn is_short_key(bytes: &[u8]) -> bool {
    let one_case =
        !bytes.iter().any(u8::is_ascii_lowercase) || !bytes.iter().any(u8::is_ascii_uppercase);
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    bytes.iter().all(u8::is_ascii_alphanumeric) && (one_case && digits >= 2 || digits >= 3)
}

/// Whether a name ends with what says who asks, which is no secret.
fn is_client(name: &[u8]) -> bool {
    let end = name.len()
        - name
            .iter()
            .rev()
            .take(2)
            .take_while(|byte| matches!(byte, b'"' | b'\''))
            .count();
    ["client_id", "client-id", "clientid"].iter().any(|known| {
        end.checked_sub(known.len())
            .is_some_and(|from| name[from..end].eq_ignore_ascii_case(known.as_bytes()))
    })
}

/// Letters and digits, or either in plenty: not one word.
fn mixed(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let upper = value
        .iter()
        .filter(|byte| byte.is_ascii_uppercase())
        .count();
    let lower = value
        .iter()
        .filter(|byte| byte.is_ascii_lowercase())
        .count();
    digits > 0
        || (upper > 2 && lower > 2 && upper * 5 > value.len())
        || (value.len() == 24 && upper == 0)
}

const fn is_value(byte: u8) -> bool {
    is_token(byte) || matches!(byte, b'.' | b'+' | b'/' | b'~')
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, strong, told};
    use crate::sanitize::Class;

    #[test]
    fn the_name_of_a_property_stands_before_what_may_be_done_with_it() {
        let other = "public string Revision { get; set; } = \"x\";\n";
        let hex = "9f86d081884c7d65".repeat(2);
        let of = |name: &str| format!("{other}public string {name} {{ get; set; }} = \"{hex}\";");
        assert_eq!(strong(&of("DatadogApiKey")), [hex.as_str()]);
        assert_eq!(strong(&of("DatadogClientId")), [""; 0]);
        let key = body();
        for accessors in [
            "{ get; set; }",
            "{ get; private set; }",
            "{get;init;}",
            "{ get; }",
        ] {
            let text = format!(
                "public string DatadogApiKey {accessors} = \"{}\";",
                "9f86d081884c7d65".repeat(2)
            );
            assert_eq!(strong(&text).len(), 1, "{text}");
            let text = format!("public string Revision {accessors} = \"{key}\";");
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn of_two_keys_of_a_captcha_the_secret_one_is_told() {
        let key = format!("6Ld{}x", body());
        for name in [
            "RECAPTCHA_SECRET_KEY",
            "recaptchaSecretKey",
            "recaptcha-secret",
        ] {
            assert_eq!(
                strong(&format!("{name}: \"{key}\"")),
                [key.as_str()],
                "{name}"
            );
        }
        let rust = format!("const RECAPTCHA_SECRET_KEY: &str = \"{key}\";");
        assert_eq!(strong(&rust), [key.as_str()]);
        for name in [
            "RECAPTCHA_SITE_KEY",
            "recaptchaKey",
            "data-sitekey",
            "recaptcha_secret: none\nRECAPTCHA_SITE_KEY",
            "- name: APP_SECRET\n  value: x\n- name: RECAPTCHA_SITE_KEY\n  value",
            "Site key (not a secret)",
        ] {
            assert_eq!(strong(&format!("{name}: \"{key}\"")), [""; 0], "{name}");
        }
    }

    #[test]
    fn a_key_that_pages_search_with_is_public_and_one_that_may_write_is_not() {
        let key = "9f86d081884c7d65".repeat(2);
        let text =
            |name: &str, rest: &str| format!("algolia: {{ appId: 'A', {name}: '{key}'{rest} }}");
        let index = ", indexName: 'docs'";
        for (name, rest) in [("apiKey", ""), ("apiKey", index), ("adminApiKey", index)] {
            assert_eq!(strong(&text(name, rest)), [key.as_str()], "{name}{rest}");
        }
        for name in ["searchApiKey", "searchOnlyKey", "SEARCH_KEY"] {
            assert_eq!(strong(&text(name, "")), [""; 0], "{name}");
        }
        let pages = format!("docsearch({{ indexName: 'docs', apiKey: '{key}' }})");
        assert_eq!(strong(&pages), [""; 0]);
        let env = format!("ALGOLIA_SEARCH_KEY=none\nALGOLIA_API_KEY={key}");
        assert_eq!(strong(&env), [key.as_str()]);
        let other = format!("ALGOLIA_SEARCH_KEY=none\nDATADOG_API_KEY={key}");
        assert_eq!(strong(&other), [key.as_str()]);
    }

    #[test]
    fn a_value_has_the_name_that_stands_right_before_it() {
        let key = "9f86d081884c7d65".repeat(2);
        for text in [
            format!(
                "<string name=\"app_name\">Northwind</string>\n<string name=\"shodan_api_key\">{key}</string>"
            ),
            format!("AGENT_VERSION=7 DD_API_KEY={key} DD_SITE=eu"),
        ] {
            assert_eq!(strong(&text), [key.as_str()], "{text}");
        }
        for more in ["datadog_api_key=US5", "datadog_secret_key=1"] {
            assert_eq!(strong(&format!("{more}:{key}")), [key.as_str()], "{more}");
        }
        let supervised = format!("environment=DD_API_KEY=\"{key}\",LANG=\"C\"");
        assert_eq!(strong(&supervised), [key.as_str()]);
        for name in ["datadogApiKey", "shodan_token"] {
            let settings = format!("<s>\n <region>eu</region>\n <{name}>{key}</{name}>\n</s>");
            assert_eq!(strong(&settings), [key.as_str()], "{name}");
        }
        let other = format!("<region>eu</region>\n<cacheKey>{key}</cacheKey>");
        assert_eq!(strong(&other), [""; 0]);
        let curl = format!(
            "curl \"https://corp.openai.azure.com/openai/chat?api-version=2024-10-21\" -H \"api-key: {key}\""
        );
        assert_eq!(strong(&curl), [key.as_str()]);
        let lines = format!("{{\"text\": \"GIT_SHA=8c50f9\\nPORT=3\\nDD_API_KEY={key}\\n\"}}");
        assert_eq!(strong(&lines), [key.as_str()]);
        let kept = |name: &str, blanks: &str| {
            format!("Key{blanks}Value\n---{blanks}-----\n{name}{blanks}{key}\nowner{blanks}us\n")
        };
        for blanks in ["    ", "\t"] {
            for name in ["spotify_client_secret", "WANDB-API-KEY"] {
                assert_eq!(strong(&kept(name, blanks)), [key.as_str()], "{name}");
            }
            for name in ["cache_key", "revision", "spotify_client_id"] {
                assert_eq!(strong(&kept(name, blanks)), [""; 0], "{name}");
            }
        }
        let duo = |section: &str| {
            format!(
                "[{section}]\nikey = DI\nskey = {}{}\n",
                &key[..32],
                &key[..8]
            )
        };
        assert_eq!(strong(&duo("duo")).len(), 1);
        assert_eq!(strong(&duo("sort")).len(), 0);
        let sent = &body()[..30];
        let mailed = format!("curl https://api.mailjet.com/v3/send -H \"Api-Key: {sent}\"");
        assert_eq!(strong(&mailed), [sent]);
        let versions = format!("DD_API_KEY=none VERSION={key}");
        assert_eq!(strong(&versions), [""; 0]);
        let uuid = "8c7d659f-86d0-4188-94c7-d659f86d0818";
        let header = format!("Authorization: DeepL-Auth-Key {uuid}:fx");
        assert_eq!(strong(&header), [uuid]);
    }

    #[test]
    fn a_password_that_people_made_up_is_marked_by_its_own_name() {
        let password = &body()[..14];
        for text in [
            format!("<username>deploy</username><password>{password}</password>"),
            format!("app login --user deploy --password {password}"),
            format!("network={{\n  psk=\"{}\"\n}}", body()),
            format!("ADMIN_PW={}", body()),
        ] {
            let found = told(&text);
            let marked = matches!(&found[..], [(Class::WeakSecret, ..)]);
            assert!(marked, "{text}: {found:?}");
        }
        let cell = format!("<td>Shodan API key</td><td>{}</td>", &body()[..24]);
        assert_eq!(strong(&cell), [&body()[..24]]);
        assert_eq!(told("--password MyPasswordOfHere1"), []);
    }
}
