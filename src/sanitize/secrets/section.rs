//! Whose a value is if its own name says no more than that it is secret.
//! That is told by what stands over the name, such as a mapping or a section, or by what stands before it.
//!
//! Guarantees: looks back no farther than [`BACK`] bytes. Deliberately absent: mappings that are farther up, and what a name
//! says (`context.rs`).

use std::{ops::Range, sync::Arc};

use super::{
    Names,
    bytes::is_token,
    plausible::holds,
    rules::{Rules, Word},
    scan::Scan,
    service::stands_over,
    urls::strong,
};
use crate::sanitize::{Class, work::looked};

/// How far before a name the one over it may begin, in bytes.
const BACK: usize = 320;
/// The longest name of a mapping or a section with what stands around it, in bytes.
const NAME: usize = 64;

/// Headers that authenticate.
const HEADERS: [&[u8]; 13] = [
    b"api-token",
    b"x-api-key",
    b"x-apikey",
    b"x-api-token",
    b"x-auth-token",
    b"x-auth-key",
    b"x-access-token",
    b"x-functions-key",
    b"x-vault-token",
    b"x-token",
    b"private-token",
    b"deploy-token",
    b"ocp-apim-subscription-key",
];

/// Whose a value is whose name ends where `wide` does.
pub(super) fn owner<'a>(
    (rules, names): (&'a Rules, &'a Names),
    text: &[u8],
    wide: &Range<usize>,
    bare: bool,
) -> Option<&'a Arc<str>> {
    let before = &text[wide.clone()];
    if bare {
        looked(before.len());
        let machine = holds(before, b"machine ") && holds(before, b"login ");
        let netrc = machine || is_default(text, wide);
        return netrc.then_some(&names.netrc);
    }
    let name = before.trim_ascii_end();
    let name = &name[..name.len() - usize::from(matches!(name.last(), Some(b'"' | b'\'')))];
    let last = name.rsplit(|byte| !is_token(*byte)).next().unwrap_or(name);
    // Keys of storage are names.
    if last.eq_ignore_ascii_case(b"key") {
        return None;
    }
    if HEADERS
        .iter()
        .any(|header| last.eq_ignore_ascii_case(header))
    {
        return Some(&names.header);
    }
    let over = above(text, wide.end)?;
    let said = rules.said(text, over.clone());
    if said.harmless {
        return None;
    }
    match said.vendors[0].map(|vendor| &rules.meanings[usize::from(vendor)]) {
        Some(Word::Vendor(_, name)) => Some(name),
        Some(Word::Secret | Word::Harmless | Word::Id) | None => {
            // A list and a block of another sort have names of their own: `cases = [`, `|handle|`.
            let line = text[over.clone()].trim_ascii();
            let listed =
                !line.starts_with(b"[") && line.ends_with(b"[") && !line.ends_with(b"=> [");
            let told = !listed && !line.ends_with(b"|");
            (told && stands_over(&text[over], text, wide.end)).then_some(&names.service)
        }
    }
}

/// Whether a line begins so that is of no machine in a netrc file.
fn is_default(text: &[u8], wide: &Range<usize>) -> bool {
    let found = memchr::memmem::rfind(&text[wide.clone()], b"default login ");
    let start = found.map(|at| wide.start + at);
    start.is_some_and(|start| {
        let before = [&b"\n"[..], b"\\n", b"\"", b"'", b": "];
        start == 0 || before.iter().any(|it| text[..start].ends_with(it))
    })
}

impl Scan<'_> {
    /// Whether a value behind the word for a password is one of a netrc file.
    pub(super) fn netrc(&mut self, value: &Range<usize>, wide: &Range<usize>) -> bool {
        let named = self.text[..wide.end].ends_with(b"password");
        let told = named && strong(&self.text[value.clone()]);
        let rule = told.then(|| owner((self.rules, self.names), self.text, wide, true));
        let Some(rule) = rule.flatten() else {
            return false;
        };
        self.hit(value.clone(), Class::Secret, rule);
        true
    }
}

/// The name over the one that ends at `end`: `stripe:` of YAML, `"stripe": {` of JSON, `[stripe]` of INI and TOML.
fn above(text: &[u8], end: usize) -> Option<Range<usize>> {
    let from = end.saturating_sub(BACK);
    looked(end - from);
    let mut line = line_of(text, from, end)?;
    if let Some(over) = opened(text, line.start..end) {
        return Some(over);
    }
    let depth = indent(&text[line.clone()]);
    while let Some(last) = line.start.checked_sub(1).filter(|last| *last > from) {
        line = line_of(text, from, last)?;
        let bytes = text[line.clone()].trim_ascii();
        if bytes.is_empty() || bytes[0] == b'#' || bytes.starts_with(b"//") {
            continue;
        }
        let section = bytes[0] == b'[' && bytes.ends_with(b"]");
        let over = indent(&text[line.clone()]) < depth;
        if section || over {
            // Of PHP and Ruby: `'acme' => [`, `Acme.configure do |config|`
            let opens = section || matches!(bytes[bytes.len() - 1], b':' | b'{' | b'[' | b'|');
            return (opens && bytes.len() <= NAME).then_some(line);
        }
    }
    None
}

/// The line that ends at `end`, or what of it stands before; nothing, where it begins before `from`.
fn line_of(text: &[u8], from: usize, end: usize) -> Option<Range<usize>> {
    match memchr::memrchr(b'\n', &text[from..end]) {
        Some(at) => Some(from + at + 1..end),
        None => (from == 0).then_some(0..end),
    }
}

/// The name before the last brace that is opened in one line.
fn opened(text: &[u8], line: Range<usize>) -> Option<Range<usize>> {
    let brace = memchr::memrchr(b'{', &text[line.clone()])?;
    let before = &text[line.start..line.start + brace];
    let start = before
        .iter()
        .rposition(|byte| matches!(byte, b'{' | b',' | b';'))
        .map_or(0, |at| at + 1);
    let named = before[start..].iter().any(u8::is_ascii_alphabetic);
    (named && before.len() - start <= NAME).then(|| line.start + start..line.start + brace)
}

/// How far a line is set in.
fn indent(line: &[u8]) -> usize {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    line.iter().take_while(blank).count()
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{body, strong},
        *,
    };

    #[test]
    fn a_value_is_of_whoever_is_named_over_it() {
        let value = &body()[..32];
        for text in [
            format!("datadog:\n  site: eu\n  api_key: {value}\n"),
            format!("{{\"uploadcare\": {{\"secret\": \"{value}\"}}}}"),
            format!("[github]\nuser = x\ntoken = {value}"),
            format!("X-Api-Key: {value}"),
            format!("{{\"PRIVATE-TOKEN\": \"{value}\"}}"),
            format!("machine api.acme.io\n  login svc\n  password {value}"),
            format!("return [\n    'zenrows' => [\n        'api_key' => '{value}',\n"),
            format!("Betterstack.configure do |c|\n  c.api_key = '{value}'\nend\n"),
        ] {
            assert_eq!(strong(&text), [value], "{text}");
        }
        for text in [
            format!("settings:\n  api_key: {value}\n"),
            format!("storage:\n  key: {value}\n"),
            format!("x-request-key: {value}"),
            format!("the password {value}"),
            format!("const cases = [\n  {{ mode: 1 }},\n    api_key: '{value}',\n"),
            format!("- script: |\n    export API_KEY={value}\n"),
            format!("return [\n    'settings' => [\n        'api_key' => '{value}',\n"),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn the_name_over_a_value_is_that_of_its_mapping_or_section() {
        for (text, expected) in [
            (
                "a: 1\nstripe:\n  mode: x\n  # why\n  api_key",
                Some("stripe:"),
            ),
            ("a:\n  b:\n    c: 1\n  key", Some("a:")),
            ("{\"stripe\": {\"api_key\"", Some("\"stripe\": ")),
            (
                "{\n  \"stripe\": {\n    \"id\": 1,\n    \"key\"",
                Some("  \"stripe\": {"),
            ),
            ("[datadog]\nsite = eu\napi_key", Some("[datadog]")),
            (
                "provider \"datadog\" {\n  api_key",
                Some("provider \"datadog\" {"),
            ),
            ("a = 1\nkey", None),
            ("call(x,\n     key", None),
            ("key", None),
        ] {
            let found = above(text.as_bytes(), text.len()).map(|over| &text[over]);
            assert_eq!(found, expected, "{text}");
        }
        let far = format!("stripe:\n{}  key", "  a: 1\n".repeat(60));
        assert_eq!(above(far.as_bytes(), far.len()), None);
    }
}
