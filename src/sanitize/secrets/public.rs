//! What is for all to see though a key stands near it, or in its name: who asks, what is asked for, and keys of browsers.
//!
//! Guarantees: looks back no farther than [`BACK`] bytes.

use std::ops::Range;

use memchr::memmem;

use super::{
    bytes::is_token,
    names::{name_before, operator},
    plausible::holds,
};
use crate::sanitize::work::looked;

/// How far before a value the end of its name is looked for, in bytes.
const BACK: usize = 64;
/// What a name ends with that is one of an id and a secret all the same.
const SECRET: [&[u8]; 6] = [
    b"secret_id",
    b"secret-id",
    b"secretid",
    b"session_id",
    b"session-id",
    b"sessionid",
];
/// How begins what Vault has encrypted, before the version of its key and a colon.
const SEALED: &[u8] = b"vault:v";
/// The most digits of that version.
const VERSION: usize = 3;
/// The shortest value of a sealed secret, and how far behind the name for all of them one may stand, in bytes.
const LOCKED: usize = 200;
const AMONG: usize = 4096;
/// The shortest number of a project of Firebase.
const LEAST: usize = 6;
/// How keys begin that pages hand to every browser.
const KEYS: [&[u8]; 4] = [b"pk.eyJ", b"sb_publishable_", b"pk_live_", b"pk_test_"];

/// Whether the name that ends before `end` is that of an id: `TENANT_ID`, `clientId`, `"name": "APP_ID", "value"`.
pub(super) fn is_id(text: &[u8], end: usize) -> bool {
    let before = &text[end.saturating_sub(BACK)..end];
    looked(before.len());
    let name = name_at_end(before);
    let Some((head, id)) = name.split_last_chunk::<2>() else {
        return false;
    };
    let joined = head.last().is_some_and(|last| match id {
        b"id" => matches!(last, b'_' | b'-' | b'.'),
        b"Id" => last.is_ascii_lowercase() || matches!(last, b'_' | b'-'),
        b"ID" => last.is_ascii_lowercase() || matches!(last, b'_' | b'-'),
        _ => false,
    });
    let secret = |known: &[u8]| {
        let end = name.len().checked_sub(known.len());
        end.is_some_and(|at| name[at..].eq_ignore_ascii_case(known))
    };
    joined && !SECRET.into_iter().any(secret)
}

/// What ends with the name of what follows: `<add key="TenantId" value=`, `key: TENANT_ID` and `value:` below it.
pub(super) fn name_at_end(before: &[u8]) -> &[u8] {
    let name = trimmed(before);
    match name.strip_suffix(b"value") {
        Some(rest) if !rest.last().is_some_and(u8::is_ascii_alphanumeric) => trimmed(rest),
        _ => name,
    }
}

/// Without what stands between a name and its value.
fn trimmed(mut name: &[u8]) -> &[u8] {
    while let Some((last, rest)) = name.split_last() {
        let between = last.is_ascii_whitespace()
            || matches!(
                last,
                b'"' | b'\'' | b'`' | b'\\' | b',' | b':' | b'=' | b']' | b')' | b'?'
            );
        if !between {
            break;
        }
        name = rest;
    }
    name
}

/// Whether what stands before a value says that it is the number of an application of Firebase: `1:435948698992:web:`.
pub(super) fn is_of_application(before: &[u8]) -> bool {
    // Most values stand behind something else.
    let Some(before) = before.strip_suffix(b":") else {
        return false;
    };
    let mut parts = before.rsplit(|byte| *byte == b':');
    let kinds = [&b"web"[..], b"android", b"ios"];
    parts.next().is_some_and(|kind| kinds.contains(&kind))
        && parts
            .next()
            .is_some_and(|number| number.len() >= LEAST && number.iter().all(u8::is_ascii_digit))
}

/// Whether what stands before a value says that it is encrypted by Vault, as who may not read it gets it: `vault:v1:`.
pub(super) fn is_encrypted(before: &[u8]) -> bool {
    let version = before.strip_suffix(b":").unwrap_or_default();
    let digits = version.iter().rev().take(VERSION);
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && version[..version.len() - digits].ends_with(SEALED)
}

/// Whether a value begins as what Vault has encrypted.
pub(super) fn begins_encrypted(value: &[u8]) -> bool {
    value.starts_with(SEALED)
}

/// Whether a value is one that only a controller in a cluster can open: it stands among the `encryptedData` of a sealed secret.
pub(super) fn is_sealed(text: &[u8], value: &Range<usize>) -> bool {
    // The length of a key that is encrypted stands first, in two bytes.
    let locked =
        value.len() >= LOCKED && matches!(text[value.start..], [b'A', b'g', b'A'..=b'D', ..]);
    if !locked {
        return false;
    }
    let before = &text[value.start.saturating_sub(AMONG)..value.start];
    looked(before.len());
    // Behind a line of dashes another thing begins.
    memmem::rfind(before, b"encryptedData")
        .is_some_and(|at| memmem::find(&before[at..], b"\n---").is_none())
}

/// Whether a value is the number of a message, a service or the like of Twilio: of a key it begins otherwise.
pub(super) fn is_number_of_twilio(value: &[u8]) -> bool {
    value.split_first_chunk::<2>().is_some_and(|(kind, rest)| {
        kind.iter().all(u8::is_ascii_uppercase)
            && kind != b"SK"
            && rest.len() == 32
            && rest
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Whether the name of a value that begins at `start` says that it is secret: the last word of it, but for its type, and not that word
/// alone, which sentences have, too.
pub(super) fn is_called_secret(text: &[u8], start: usize) -> bool {
    operator(text, start).is_some_and(|op| {
        let name = &text[name_before(text, op.at)];
        looked(name.len());
        let mut words = name.rsplit(|byte| !is_token(*byte));
        let kinds: [&[u8]; 4] = [b"", b"str", b"string", b"value"];
        let word = words.find(|word| !kinds.iter().any(|kind| word.eq_ignore_ascii_case(kind)));
        word.is_some_and(|word| word.len() > b"secret".len() && holds(word, b"secret"))
    })
}

/// Whether a value is a key that pages hand to every browser.
pub(super) fn is_key_of_browsers(value: &[u8]) -> bool {
    let hex = |rest: &[u8]| rest.len() == 32 && rest.iter().all(u8::is_ascii_hexdigit);
    KEYS.iter().any(|key| value.starts_with(key)) || value.strip_prefix(b"pub").is_some_and(hex)
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{body, strong, told},
        is_id,
    };

    #[test]
    fn ids_are_told_by_the_end_of_their_names() {
        for name in [
            "SPOTIFY_CLIENT_ID",
            "my $twitch_client_id",
            "AzureTenantId",
            "\"projectId\"",
            "os.environ[\"KEY_ID\"]",
            "<add key=\"BoardID\" value",
            "{\"key\": \"app_id\", \"value\"",
            "- key: APP_ID\n  value",
            "spotify.client-id",
        ] {
            assert!(is_id(name.as_bytes(), name.len()), "{name}");
        }
        for name in [
            "vault_secret_id",
            "secretId",
            "APIKEY_VALID",
            "paid",
            "CID",
            "id",
            "tokenvalue",
        ] {
            assert!(!is_id(name.as_bytes(), name.len()), "{name}");
        }
    }

    #[test]
    fn what_is_encrypted_and_numbers_of_twilio_are_no_secrets() {
        let hex = "9f86d081884c7d65".repeat(2);
        let sealed = format!("{}=", body());
        for text in [
            format!("TWILIO_MESSAGE_SID=SM{hex}"),
            format!("twilio_verify_token: \"VA{hex}\""),
            format!("secret = \"vault:v1:{sealed}\""),
            format!("vault_secret = \"vault:v12:{sealed}\""),
            format!("ELASTIC_PASSWORD=\"vault:v1:{sealed}\""),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
        let locked = format!("AgB{}", body().repeat(8));
        let secret = |data: &str| format!("kind: X\n{data}:\n  DATADOG_API_KEY: {locked}\n");
        assert_eq!(strong(&secret("  encryptedData")), [""; 0]);
        for open in ["  stringData", "  encryptedData: {}\n---\n  stringData"] {
            assert_eq!(strong(&secret(open)), [locked.as_str()], "{open}");
        }
        let other = secret("  encryptedData").replace("AgB", "Ago");
        assert_eq!(strong(&other), [locked.replace("AgB", "Ago")]);
        let key = format!("SK{hex}");
        assert_eq!(strong(&format!("TWILIO_KEY={key}")), [key.as_str()]);
        assert_eq!(
            strong(&format!("vault_secret = \"{sealed}\"")),
            [sealed.as_str()]
        );
    }

    #[test]
    fn an_id_is_no_secret_though_the_name_of_a_service_stands_in_its_own() {
        let (hex, uuid) = (
            "9f86d081884c7d65".repeat(2),
            "f0765995-6c11-48f4-8488-3aa3f051a2bd",
        );
        let letters = body()[..30].to_ascii_lowercase();
        for text in [
            format!("SPOTIFY_CLIENT_ID={hex}"),
            format!("<key>SpotifyClientId</key>\n<string>{hex}</string>"),
            format!("my $twitch_client_id = '{letters}';"),
            format!("private static final String AZURE_TENANT_ID = \"{uuid}\";"),
            format!("<add key=\"CloudflareAccountId\" value=\"{hex}\" />"),
            format!("MUX_TOKEN_ID={uuid}"),
            format!("B2_APPLICATION_KEY_ID: 003{}", &hex[..22]),
            format!("JWT_SECRET=changeme\nOAUTH_CLIENT_ID={uuid}"),
            format!("firebase_secret: 1:435948698992:web:{}", &hex[..22]),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
        // What services call an id may be all they ask for, and an argument is not the value of the one before.
        for text in [
            format!("OPENWEATHER_APP_ID={hex}"),
            format!("SpotifyOAuth(client_id, \"{hex}\")"),
            format!("datadog_key: x:1:ios:{hex}"),
        ] {
            assert_eq!(strong(&text), [hex.as_str()], "{text}");
        }
        let secret = format!("SPOTIFY_CLIENT_ID={hex} SPOTIFY_CLIENT_SECRET={hex}");
        assert_eq!(strong(&secret), [hex.as_str()]);
    }

    #[test]
    fn a_key_of_browsers_is_no_secret() {
        let hex = "9f86d081884c7d65".repeat(2);
        for value in [format!("pub{hex}"), format!("sb_publishable_{}", body())] {
            for name in ["DD_CLIENT_TOKEN", "supabaseKey"] {
                assert_eq!(told(&format!("{name}: {value}")), [], "{name}: {value}");
            }
        }
    }
}
