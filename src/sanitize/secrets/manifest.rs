//! Secrets in manifests of Kubernetes, in YAML and in JSON.
//!
//! Guarantees: data that begins within a bound around `kind: Secret` is read to its end; a text full of kinds is still read in
//! linear time. What a value stands for is judged and not how it is written: a mask, a word or a certificate is no more secret in
//! Base64 than without. Deliberately absent: secrets that stand farther from their kind; keys among them are found when the
//! value is decoded.

use std::ops::Range;

use memchr::memmem;

use super::{
    assign::decoded,
    bytes::ends_with,
    grammar::earnest,
    plausible::{Shape, holds, kinds, placeholder, random},
    scan::Scan,
    urls::strong,
    value::end_of_quoted,
};
use crate::sanitize::{Class, work::looked};

/// How far before `kind` what belongs to it may stand, and how far behind it that may begin, in bytes.
const BEFORE: usize = 1024;
const BEHIND: usize = 2048;
/// How deep the objects of a manifest may lie in one another.
const DEEP: i32 = 8;
/// Begins the line that stands between two manifests.
const PARTED: &[u8] = b"\n---";
/// The least that is taken for a secret, in characters of Base64.
const LEAST: usize = 12;
/// How much of a value is decoded to see what it is, in characters of Base64.
const SEEN: usize = 256;

/// How the values are written that a manifest has under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// Under `data`.
    Base64,
    /// Under `stringData`.
    Plain,
}

impl Written {
    fn under(name: &[u8]) -> Option<Self> {
        match name {
            b"data" => Some(Self::Base64),
            b"stringData" => Some(Self::Plain),
            _ => None,
        }
    }
}

/// What was read of manifests last. What was read for one kind is not read again for the next.
#[derive(Default)]
pub(super) struct Manifest {
    /// The first line that was not read.
    line: usize,
    /// The data that this line may belong to.
    within: Option<Data>,
    /// Where the last kind in JSON stands.
    kind: Option<usize>,
}

/// A mapping under `data` or `stringData`.
#[derive(Clone, Copy)]
struct Data {
    written: Written,
    /// The indent of its name.
    indent: usize,
    /// The indent of its first member.
    first: Option<usize>,
}

impl Scan<'_> {
    /// `kind: Secret`, and data of a Kubernetes manifest near it.
    pub(super) fn manifest(&mut self, at: usize, end: usize) {
        let text = self.text;
        let rest = text[at + 1..].trim_ascii_start();
        let rest = rest
            .strip_prefix(b"\"")
            .or(rest.strip_prefix(b"'"))
            .unwrap_or(rest);
        let is_secret =
            rest.starts_with(b"Secret") && !rest.get(6).is_some_and(u8::is_ascii_alphanumeric);
        if !ends_with(&text[..end], b"kind") || !is_secret {
            return;
        }
        if end < at && text[end] == b'"' {
            self.manifest_in_json(at);
        } else {
            self.manifest_in_lines(at);
        }
    }

    /// The same in YAML. Reading goes on where it ended for the kind before, but begins no farther back than [`BEFORE`].
    fn manifest_in_lines(&mut self, at: usize) {
        let text = self.text;
        let from = at.saturating_sub(BEFORE);
        let Manifest { line, within, .. } = &mut self.manifest;
        if *line < from {
            (*line, *within) = (from, None);
        }
        // What stands before a separator belongs to another manifest.
        if let Some(ends) = text
            .get(*line..at)
            .and_then(|text| memmem::rfind(text, PARTED))
        {
            (*line, *within) = (*line + ends, None);
        }
        let (mut line, mut within) = (*line, *within);
        while line < text.len() && (line < at + BEHIND || within.is_some()) {
            if line > at && text[line..].starts_with(&PARTED[1..]) {
                within = None;
                break;
            }
            let ends = |rest: &[u8]| memchr::memchr(b'\n', rest);
            let next = self.ends.line.after(text, line, ends);
            let bytes = text[line..next].trim_ascii_start();
            let indent = next - line - bytes.len();
            let bytes = bytes.trim_ascii_end();
            line = next + 1;
            if bytes.is_empty() || bytes.starts_with(b"#") {
                continue;
            }
            if let Some(written) = bytes.strip_suffix(b":").and_then(Written::under) {
                within = Some(Data {
                    written,
                    indent,
                    first: None,
                });
                continue;
            }
            within = within.filter(|data| indent > data.indent);
            if let Some(data) = &mut within
                && indent <= *data.first.get_or_insert(indent)
                && let Some(colon) = bytes.iter().position(|byte| *byte == b':')
            {
                let value = bytes[colon + 1..].trim_ascii();
                let inner = value
                    .strip_prefix(b"\"")
                    .and_then(|value| value.strip_suffix(b"\""))
                    .unwrap_or(value);
                let start = inner.as_ptr() as usize - text.as_ptr() as usize;
                let (written, named) = (data.written, says_secret(&bytes[..colon]));
                self.manifest_value(start..start + inner.len(), written, named);
            }
        }
        (self.manifest.line, self.manifest.within) = (line, within);
    }

    /// The same in JSON: of the objects around `kind`, which `at` follows, only what stands in its own is looked at.
    fn manifest_in_json(&mut self, at: usize) {
        let text = self.text;
        let last = self.manifest.kind.replace(at);
        let mut depth = 0;
        let mut from = at;
        while from > at.saturating_sub(BEFORE) && (-DEEP..=0).contains(&depth) {
            from -= 1;
            match text[from] {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                // Both are in one object, which was read.
                _ if Some(from) == last && depth == 0 => return,
                _ => {}
            }
        }
        looked(at - from);
        from += usize::from(text[from] == b'{');
        let (start, mut depth) = (from, 0);
        // Strings of the object itself, and those of what is called its data.
        let (mut name, mut data) = (0..0, None);
        while from < text.len()
            && (from < at + BEHIND || depth == 1 && data.is_some())
            && (0..=DEEP).contains(&depth)
        {
            match text[from] {
                b'{' => {
                    data = Written::under(&text[name.clone()]).filter(|_| depth == 0);
                    depth += 1;
                }
                b'}' => depth -= 1,
                b'"' => {
                    let rest = &text[from + 1..];
                    let length = end_of_quoted(rest, b'"', 0).unwrap_or(rest.len());
                    let string = from + 1..from + 1 + length;
                    from = string.end;
                    let Some((b'"', behind)) = rest[length..].split_first() else {
                        // It does not end with a quote, so it is no string.
                        continue;
                    };
                    let behind = behind.iter().take(4);
                    let behind = behind.copied().find(|byte| !byte.is_ascii_whitespace());
                    if behind == Some(b':') {
                        name = string;
                    } else if let Some(written) = data
                        && depth == 1
                    {
                        let named = says_secret(&text[name.clone()]);
                        self.manifest_value(string, written, named);
                    }
                }
                _ => {}
            }
            from += 1;
        }
        looked(from.min(text.len()) - start);
    }

    fn manifest_value(&mut self, value: Range<usize>, written: Written, named: bool) {
        let bytes = &self.text[value.clone()];
        let class = match written {
            Written::Base64 => held(bytes),
            Written::Plain => told(bytes, named),
        };
        let rule = &self.names.manifest;
        if let Some(class) = class {
            let spoiled = written == Written::Plain && self.rules.is_spoiled(bytes);
            let class = if spoiled { Class::WeakSecret } else { class };
            self.hit(value, class, rule);
        }
    }
}

/// Of what class a value is that stands for itself: one word, and nothing that is for all to see, was encrypted or masked.
/// One that looks drawn at random is secret, others where their name says so.
fn told(value: &[u8], named: bool) -> Option<Class> {
    let mut room = [0; 192];
    let masked = decoded(&value[..value.len().min(SEEN)], &mut room).is_some_and(is_mask);
    let others = [&b"ENC["[..], b"pk-", b"pk_", b"age1"];
    let public = others.iter().any(|begins| value.starts_with(begins));
    let word = value.iter().all(u8::is_ascii_graphic) && !public;
    let class = (word && !masked).then(|| earnest(value)).flatten()?;
    Some(match named || random(value) {
        true => class,
        false => Class::WeakSecret,
    })
}

/// Whether the name of a value says that it is to be kept to oneself.
fn says_secret(name: &[u8]) -> bool {
    let words = [
        &b"pass"[..],
        b"pwd",
        b"secret",
        b"token",
        b"key",
        b"cred",
        b"auth",
        b"dsn",
    ];
    words.iter().any(|word| holds(name, word))
}

/// Of what class a value in Base64 is by what it stands for, unless that is nothing that anybody keeps to himself.
fn held(value: &[u8]) -> Option<Class> {
    let encoded = value
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    if !encoded
        || value.len() < LEAST
        || kinds(value) < 2
        || !value.iter().any(u8::is_ascii_uppercase)
        || placeholder(value)
    {
        return None;
    }
    let mut room = [0; 192];
    // Where it is cut, at four characters.
    let Some(plain) = decoded(&value[..value.len().min(SEEN)], &mut room) else {
        return Some(Class::Secret);
    };
    let plain = plain.trim_ascii();
    if plain.starts_with(b"-----BEGIN ") {
        // Certificates and public keys are for all to see.
        let label = &plain[..plain.len().min(48)];
        let private = label.windows(7).any(|word| word == b"PRIVATE");
        return private.then_some(Class::Secret);
    }
    // What is no text was not written by hand; but without its padding it would be no data either.
    if !plain
        .iter()
        .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
    {
        return Some(match value.len() % 4 {
            0 => Class::Secret,
            _ => Class::WeakSecret,
        });
    }
    if placeholder(plain) || is_mask(plain) {
        return None;
    }
    let Shape { upper, digits, .. } = Shape::of(plain);
    // Words may be somebody's secret.
    Some(match strong(plain) && upper + digits > 0 {
        true => Class::Secret,
        false => Class::WeakSecret,
    })
}

/// Whether it is what SOPS and others write over a secret: a word between stars, alone or as all that an object holds.
fn is_mask(plain: &[u8]) -> bool {
    let stars = plain.windows(2).filter(|two| *two == b"**").count();
    stars >= 2
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};

    use super::super::{
        detector,
        tests::{BOTH, body, strong},
    };
    use crate::sanitize::Detector;

    fn yaml(value: &str) -> String {
        format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\ndata:\n  key: {value}\n")
    }

    fn json(value: &str) -> String {
        format!("{{\"apiVersion\":\"v1\",\"data\":{{\"key\":\"{value}\"}},\"kind\":\"Secret\"}}")
    }

    #[test]
    fn what_a_value_stands_for_says_whether_it_is_secret() {
        let binary = BASE64_STANDARD.encode([0, 200, 17, 254, 9, 77, 190, 3, 99, 161, 44, 8]);
        for plain in [body(), format!("{}\n", &body()[..14])] {
            let value = BASE64_STANDARD.encode(plain);
            assert_eq!(strong(&yaml(&value)), [value.as_str()]);
            assert_eq!(strong(&json(&value)), [value]);
        }
        assert_eq!(strong(&yaml(&binary)), [binary.as_str()]);
        for plain in [
            "**SOPS**",
            "{\"mask\":\"**SOPS**\"}",
            "password\n",
            "my-secret-token\n",
            "AKIAXXXXXXXXXXXXXXXX",
            "-----BEGIN CERTIFICATE-----\nMIIC5DCCAcwCFBRRlh",
        ] {
            let value = BASE64_STANDARD.encode(plain);
            assert_eq!(strong(&yaml(&value)), [""; 0], "{plain}");
            assert_eq!(strong(&json(&value)), [""; 0], "{plain}");
        }
    }

    #[test]
    fn what_stands_under_string_data_is_the_secret_itself() {
        for plain in [body()[..14].to_owned(), body(), "x7!Qp-2#mZ9*w".to_owned()] {
            for text in [yaml(&plain), json(&plain)] {
                let text = text.replace("data", "stringData");
                assert_eq!(strong(&text), [plain.as_str()], "{text}");
            }
        }
        for plain in [
            "postgres.internal.example",
            "changeme",
            "${DB_PASSWORD1}",
            "KipTT1BTKio=",
            "ENC[AES256_GCM,data:uKiQR48qLw2,iv:x7Qp2mZ9w,type:str]",
            "github.com ecdsa-sha2-nistp256 x7Qp2mZ9w4",
            "acme-Backups-2024",
            "registry.corp/App:v1.2.3-Rc4",
            "/etc/Ssl/certs/ca2.pem",
        ] {
            for text in [yaml(plain), json(plain)] {
                let text = text.replace("data", "stringData").replace("key", "about");
                assert_eq!(strong(&text), [""; 0], "{text}");
            }
        }
    }

    #[test]
    fn a_value_that_has_begun_is_told_to_its_end_and_so_are_those_behind_it() {
        let random = |length: usize| -> String {
            let mut state = 7_u32;
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .take(length)
            .collect();
            BASE64_STANDARD.encode(bytes)
        };
        let (first, second) = (random(60_000), BASE64_STANDARD.encode(body()));
        let text = yaml(&format!("{first}\n  other: {second}"));
        assert_eq!(strong(&text), [first.as_str(), &second]);
        let text = format!(
            "{{\"kind\":\"Secret\",\"data\":{{\"key\":\"{first}\",\"other\":\"{second}\"}}}}"
        );
        assert_eq!(strong(&text), [first.as_str(), &second]);
        // One that is cut off has no end.
        assert_eq!(strong(&text[..first.len()]), [""; 0]);
        // What is no data of it any more is not looked at.
        let text = yaml(&first).replace("data:\n", "data:\n  a: b\nother:\n  name: c\n  labels:\n");
        assert_eq!(strong(&text), [""; 0]);
    }

    #[test]
    fn of_many_manifests_each_is_read_once_and_each_as_its_own() {
        let weak = BASE64_STANDARD.encode("the words of somebody");
        let many = |one: &str| {
            let mut hits = Vec::new();
            detector(BOTH).inspect(&one.repeat(400), &mut hits);
            (hits.len(), hits.capacity())
        };
        for one in [
            format!("kind: Secret\ndata:\n  a: {weak}\n"),
            format!("data:\n  a: {weak}\nkind: Secret\n---\n"),
            format!("{{\"data\":{{\"a\":\"{weak}\"}},\"kind\":\"Secret\"}}\n"),
            format!("{{\"kind\":\"Secret\",\"data\":{{\"a\":\"{weak}\"}}}},"),
        ] {
            let (found, room) = many(&one);
            assert_eq!(found, 400, "{one}");
            assert!(room <= 1024, "{one}: {room}");
        }
        let map = format!("kind: ConfigMap\ndata:\n  a: {weak}\n---\n");
        let one = format!("{map}kind: Secret\ndata:\n  a: {weak}\n---\n{map}");
        assert_eq!(many(&one).0, 400);
    }

    #[test]
    fn what_is_within_a_value_is_none() {
        let value = BASE64_STANDARD.encode(body());
        let config = "key: |\n    replacement: kubernetes.default.svc:8443a\n";
        for name in ["data", "stringData"] {
            let text = format!("kind: Secret\n{name}:\n\n # so: it\n  {config}  other: {value}\n");
            assert_eq!(strong(&text), [value.as_str()], "{text}");
        }
    }

    #[test]
    fn only_the_data_of_the_object_that_is_a_secret_is_looked_at() {
        let value = BASE64_STANDARD.encode(body());
        let other = BASE64_STANDARD.encode(body().to_lowercase());
        let map = format!("{{\"data\":{{\"a\":\"{other}\"}},\"kind\":\"ConfigMap\"}}");
        let text = format!(
            "{{\"items\":[{map},{{\n  \"data\": {{\n    \"key\": \"{value}\"\n  }},\n  \"kind\": \"Secret\"\n}},{map}]}}"
        );
        assert_eq!(strong(&text), [value]);
        let held = json(&other).replace("\"data\"", "\"spec\"");
        assert_eq!(strong(&held), [""; 0]);
    }
}
