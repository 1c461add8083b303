//! Values that any text may hold: words, numbers, paths, hosts and addresses, and what is put together of those.
//!
//! Asked of what stands beside credentials and need not be one, such as `production` in the environment of a program. It is a
//! guess: a pass phrase of words is taken for words. Deliberately absent: what a value is called.

/// As many letters make a word at most.
const WORD: usize = 16;
/// As many digits make a number at most.
const NUMBER: usize = 12;
/// As many parts may hold letters and digits both, as `v2` and `python3` do.
const MIXED: usize = 3;

/// Whether a value is one that texts hold which have nothing to do with it.
pub(super) fn is_everyday(value: &str) -> bool {
    if value.starts_with(['/', '~']) || value.starts_with("./") || value.starts_with("../") {
        return true;
    }
    if password_of(value).is_some() {
        return false;
    }
    let place = value.split_once("://").map_or(value, |(_, place)| place);
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let told = if is_host(authority) { path } else { value };
    let mut mixed = 0;
    told.split(|character: char| !character.is_alphanumeric())
        .all(|part| {
            let is_digit = |character: char| character.is_ascii_digit();
            let is_mixed = part.contains(is_digit) && !part.chars().all(is_digit);
            mixed += usize::from(is_mixed);
            mixed <= MIXED && (is_word_or_number(part) || part.len() <= 4)
        })
}

/// As many letters and digits in a row are in few names of things, UUIDs among them.
const LONG: usize = 20;

/// Whether a value is long enough, and mixed enough, to be a secret under any name.
pub(super) fn is_drawn(value: &str) -> bool {
    let mut parts = value.split(|character: char| !character.is_ascii_alphanumeric());
    value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && parts.any(|part| part.len() >= LONG)
}

/// Whether a value is a UUID. Many are drawn at random, and more only name things.
pub(super) fn is_uuid(value: &str) -> bool {
    const PARTS: [usize; 5] = [8, 4, 4, 4, 12];
    value.split('-').map(str::len).eq(PARTS)
        && value
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// As many characters a password has at least that is told by its look.
const PASSWORD: usize = 6;

/// Whether a value is a user with a password: `ana:hunter2`. The port behind a host and the kind before a word are none.
pub(super) fn is_login(value: &str) -> bool {
    let Some((user, password)) = value.split_once(':') else {
        return false;
    };
    user.starts_with(|first: char| first.is_ascii_alphabetic())
        && (user.bytes()).all(|byte| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte))
        && password.len() >= PASSWORD
        && !password.contains(|other: char| other.is_whitespace() || matches!(other, ':' | '/'))
        && password.bytes().any(|byte| byte.is_ascii_digit())
        && password.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// The password of an address, as it is spelled there.
pub(super) fn password_of(value: &str) -> Option<&str> {
    let (_, place) = value.split_once("://")?;
    let authority = place.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty()).then_some(password)
}

/// `db-1.x7f3.eu.example.com:5432`
fn is_host(authority: &str) -> bool {
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "0"));
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let top = host.rsplit('.').next().unwrap_or_default();
    host.contains('.')
        && host.bytes().all(plain)
        && (2..=WORD).contains(&top.len())
        && top.bytes().all(|byte| byte.is_ascii_lowercase())
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// `production`, `maxOldSpaceSize`, `20240722`, `python3`, `4096MiB`
fn is_word_or_number(part: &str) -> bool {
    let is_digit = |character: char| character.is_ascii_digit();
    let behind = part.trim_start_matches(is_digit);
    let before = part.trim_end_matches(is_digit);
    let digits = part.len() - behind.len();
    if behind.is_empty() || digits > 0 {
        return digits <= NUMBER && behind.len() <= 3 && !behind.contains(is_digit);
    }
    let humps = part.chars().zip(part.chars().skip(1));
    let humps = humps.filter(|(one, next)| one.is_lowercase() && next.is_uppercase());
    before.chars().count() <= WORD
        && !before.contains(is_digit)
        && part.len() - before.len() <= 4
        && humps.count() <= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_any_text_may_hold_is_told_from_what_is_drawn_at_random() {
        for everyday in [
            "",
            "true",
            "production",
            "acme-corp",
            "8080",
            "2026-07-28",
            "/usr/bin:/bin",
            "/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/",
            "~/.config",
            "./data",
            "application/json",
            "text/html; charset=utf-8",
            "en_US.UTF-8",
            "us-east-1",
            "--max-old-space-size=4096",
            "maxOldSpaceSize",
            "info,usher=debug",
            "127.0.0.1:8080",
            "localhost",
            "db-1.x7f3a9c2.eu-west-1.rds.example.com:5432",
            "https://api.example.com/v1/items",
            "https://x7f3a9c2.execute.example.com/prod",
            "claude-3-5-sonnet-20241022",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64)",
            "24h",
        ] {
            assert!(is_everyday(everyday), "{everyday}");
        }
        for drawn in [
            "Hv2-qazwsxedcrfvtgbyhnujmik-998877",
            "Tm9-7QxLz2vRk8sWp4nYb6uJd3hGf5cA1eXo0iPl",
            "Token Hw3-qazwsxedcrfvtgbyhnujmik-998877",
            "postgres://app:hunter22@db.example.com/app",
            "redis://:hunter22@localhost",
            "https://hooks.example.com/services/T01/x8Fq2LmZp0Rv7Ty4Kd9Wb3Nc",
            "AB12-CD34-EF56-GH78",
            "kJhGfDsApOiUyTrE",
            "0badc0de0badc0de",
        ] {
            assert!(!is_everyday(drawn), "{drawn}");
        }
    }

    #[test]
    fn a_user_with_a_password_is_told_from_a_host_with_a_port_and_from_a_kind_of_thing() {
        for login in ["ana:hunter2", "ana@example.com:x8Fq2LmZ", "svc-1:0badc0de!"] {
            assert!(is_login(login), "{login}");
        }
        for other in [
            "ana",
            "ana:",
            ":hunter2",
            "localhost:8080",
            "repo:read",
            "llama3:8b",
            "2001:db8::1",
            "fe80:0:0:a1b2c3",
            "urn:example:a1b2c3",
            "https://a1b2c3.example",
            "note: a1b2c3",
        ] {
            assert!(!is_login(other), "{other}");
        }
    }

    #[test]
    fn a_uuid_is_one_by_its_length_and_digits() {
        assert!(is_uuid("3f2504e0-4f89-41d3-9a0c-0305e82c3301"));
        assert!(is_uuid("3F2504E0-4F89-41D3-9A0C-0305E82C3301"));
        for other in [
            "",
            "3f2504e0",
            "3f2504e04f8941d39a0c0305e82c3301",
            "3f2504e0-4f89-41d3-9a0c-0305e82c330g",
            "3f2504e0-4f89-41d3-9a0c-0305e82c3301-",
            "3f2504e0-4f8-941d3-9a0c-0305e82c3301",
        ] {
            assert!(!is_uuid(other), "{other}");
        }
    }

    #[test]
    fn names_of_things_are_not_taken_for_what_is_drawn_at_random() {
        for named in [
            "T01234567",
            "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
            "acme-logs-a1b2c3d4",
            "myapp-7d9f8b6c5d-x2k4q",
            "subnet-0bb1c79de3",
            "i-0abc123def4567890",
            "eu-central-1_AbCdEfGhI",
            "customerordersproduction",
            "svc_deploy12345",
        ] {
            assert!(!is_drawn(named), "{named}");
        }
        for drawn in [
            "Hv2-qazwsxedcrfvtgbyhnujmik-998877",
            "Tm9-7QxLz2vRk8sWp4nYb6uJd3hGf5cA1eXo0iPl",
            "https://hooks.example.com/services/T01/x8Fq2LmZp0Rv7Ty4Kd9Wb3Nc",
        ] {
            assert!(is_drawn(drawn), "{drawn}");
        }
    }
}
