//! Secrets in manifests of Kubernetes, in YAML and in JSON.
//!
//! Guarantees: looks no farther than a bound around `kind: Secret`. What a value stands for is judged and not how it is written: a
//! mask, a word or a certificate is no more secret in Base64 than without. Deliberately absent: secrets that stand farther from
//! their kind; keys among them are found when the value is decoded.

use std::ops::Range;

use super::{
    assign::decoded,
    bytes::ends_with,
    grammar::earnest,
    plausible::{Shape, holds, kinds, placeholder, random},
    scan::Scan,
    urls::strong,
};
use crate::sanitize::{Class, work::looked};

/// How far before and behind `kind` what belongs to it may stand, in bytes.
const BEFORE: usize = 1024;
const BEHIND: usize = 2048;
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
        let from = end.saturating_sub(BEFORE);
        let from = text[from..end]
            .windows(4)
            .rposition(|part| part == b"\n---")
            .map_or(from, |at| from + at);
        let to = (at + BEHIND).min(text.len());
        let to = text[at..to]
            .windows(4)
            .position(|part| part == b"\n---")
            .map_or(to, |end| at + end);
        looked(to - from);
        if end < at && text[end] == b'"' {
            self.manifest_in_json(from..to, at);
            return;
        }
        let mut line = from;
        // How the values here are written, and how far in the first of them stands.
        let mut within: Option<(Written, Option<usize>)> = None;
        while line < to {
            let next = text[line..to]
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(to, |end| line + end + 1);
            let bytes = text[line..next].trim_ascii_start();
            let indent = next - line - bytes.len();
            let bytes = bytes.trim_ascii_end();
            let named = bytes.strip_suffix(b":").and_then(Written::under);
            if named.is_some() {
                within = named.map(|written| (written, None));
            } else if indent == 0 {
                within = None;
            } else if let Some((written, first)) = &mut within
                && !bytes.is_empty()
                && !bytes.starts_with(b"#")
                && indent <= *first.get_or_insert(indent)
                && let Some(colon) = bytes.iter().position(|byte| *byte == b':')
            {
                let written = *written;
                let value = bytes[colon + 1..].trim_ascii();
                let inner = value
                    .strip_prefix(b"\"")
                    .and_then(|value| value.strip_suffix(b"\""))
                    .unwrap_or(value);
                let start = inner.as_ptr() as usize - text.as_ptr() as usize;
                let named = says_secret(&bytes[..colon]);
                self.manifest_value(start..start + inner.len(), written, named);
            }
            line = next;
        }
    }

    /// The same in JSON: of the objects around `kind`, which `at` follows, only what stands in its own is looked at.
    fn manifest_in_json(&mut self, span: Range<usize>, at: usize) {
        let text = self.text;
        looked(span.len());
        let mut depth = 0;
        let mut back = at;
        while back > span.start && depth <= 0 {
            back -= 1;
            match text[back] {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
        }
        let mut depth = 0;
        let mut from = back + usize::from(text[back] == b'{');
        // Strings of the object itself, and those of what is called its data.
        let (mut name, mut data) = (0..0, None);
        while from < span.end && depth >= 0 {
            match text[from] {
                b'{' => {
                    data = Written::under(&text[name.clone()]).filter(|_| depth == 0);
                    depth += 1;
                }
                b'}' => depth -= 1,
                b'"' => {
                    let rest = &text[from + 1..span.end];
                    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | b'\n');
                    let length = rest.iter().position(ends).unwrap_or(rest.len());
                    let string = from + 1..from + 1 + length;
                    let behind = text[string.end..span.end].iter().skip(1);
                    let behind = behind.take(4).find(|byte| !byte.is_ascii_whitespace());
                    if behind == Some(&b':') {
                        name = string.clone();
                    } else if let Some(written) = data
                        && depth == 1
                    {
                        let named = says_secret(&text[name.clone()]);
                        self.manifest_value(string.clone(), written, named);
                    }
                    from = string.end;
                }
                _ => {}
            }
            from += 1;
        }
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

    use super::super::tests::{body, strong};

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
