//! Which names a person or a model could be fooled by (SECURITY CAT-1).

use std::{borrow::Cow, net::Ipv6Addr};

use unicode_normalization::{UnicodeNormalization, is_nfkc};
use unicode_security::skeleton;

/// What is wrong with a name or URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Offence {
    /// A control character.
    #[error("holds a control character")]
    Control,
    /// A character that is not seen: zero width, direction, filler, tag, private use.
    #[error("holds a hidden character")]
    Hidden,
    /// A character that looks like another.
    #[error("holds a character that looks like another")]
    LookAlike,
    /// An address that may mean another one than it reads as.
    #[error(
        "may mean another address than it reads as: it has a segment `.` or `..`, or a percent sign that encodes no text"
    )]
    Twisted,
}

/// What is wrong with `name`, if anything. Names in one script other than Latin are fine; a word that mixes Latin with a
/// script that resembles it, a word made only of foreign letters that look Latin, and compatibility forms are not.
pub(super) fn of_name(name: &str) -> Option<Offence> {
    if name.bytes().all(|byte| matches!(byte, 0x20..=0x7E)) {
        return None;
    }
    if let Some(offence) = of_uri(name) {
        return Some(offence);
    }
    let odd = !is_nfkc(name) && !name.nfkc().eq(name.chars())
        || name.chars().any(is_odd_mark)
        || name.split(|c: char| !c.is_alphanumeric()).any(is_fake_word);
    odd.then_some(Offence::LookAlike)
}

/// What is wrong with `uri`, if anything: only what cannot be seen.
pub(super) fn of_uri(uri: &str) -> Option<Offence> {
    if uri.chars().any(char::is_control) {
        Some(Offence::Control)
    } else if uri.chars().any(is_hidden) {
        Some(Offence::Hidden)
    } else {
        None
    }
}

/// What is wrong with the address of what is listed, if anything: it is judged, and sent, as it reads (AUTHZ-9).
pub(super) fn of_address(uri: &str) -> Option<Offence> {
    of_uri(uri).or_else(|| is_twisted(uri).then_some(Offence::Twisted))
}

/// What a name looks like: letters that look alike are one, and case and joints do not count.
pub(super) fn outline(name: &str) -> String {
    let plain: String = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | '.' | ' '))
        .flat_map(char::to_lowercase)
        .collect();
    // Upper-case `I` and `l` look alike only before case is taken away; digits are for both.
    skeleton(&plain)
        .flat_map(char::to_lowercase)
        .map(|c| match c {
            '1' | '|' => 'l',
            '0' => 'o',
            c => c,
        })
        .collect()
}

/// Whether an address may mean another one than it reads as (SECURITY AUTHZ-9): it holds a percent sign that encodes nothing,
/// encodes what is no UTF-8 or a control character, or its path has dot segments, plain, encoded, or with parameters behind
/// them. Behind the path, lines and tabs are text like any other.
pub fn is_twisted(uri: &str) -> bool {
    let (path, rest) = uri.split_at(uri.find(['?', '#']).unwrap_or(uri.len()));
    let (Some(path), Some(rest)) = (decoded(path), decoded(rest)) else {
        return true;
    };
    let is_dots = |segment: &str| {
        let bare = segment.split(';').next().unwrap_or_default();
        matches!(bare, "." | "..")
    };
    let is_text = |c: char| matches!(c, '\t' | '\n' | '\r');
    path.chars().any(char::is_control)
        || rest.chars().any(|c| c.is_control() && !is_text(c))
        || path.split(['/', '\\', ':']).any(is_dots)
}

/// Whether this is a URI with a scheme, and with a host and port that can be ones where it has such: what strict clients take for a
/// URL (<https://url.spec.whatwg.org>, without what that says of single schemes).
pub(super) fn is_uri(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return false;
    };
    let begins = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !begins || !scheme.chars().all(goes_on) {
        return false;
    }
    let Some(rest) = rest.strip_prefix("//") else {
        return true;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (is_host, port) = if let Some(literal) = host.strip_prefix('[') {
        let Some((address, behind)) = literal.split_once(']') else {
            return false;
        };
        let is_host = address.parse::<Ipv6Addr>().is_ok();
        match behind.strip_prefix(':') {
            Some(port) => (is_host, port),
            None => (is_host && behind.is_empty(), ""),
        }
    } else {
        let (host, port) = host.split_once(':').unwrap_or((host, ""));
        let forbidden = |c: char| matches!(c, ' ' | '<' | '>' | '[' | '\\' | ']' | '^' | '|');
        // What has a port or a user has a host.
        let is_missing = host.is_empty() && !authority.is_empty();
        (!is_missing && !host.contains(forbidden), port)
    };
    let is_digits = port.bytes().all(|byte| byte.is_ascii_digit());
    is_host && is_digits && (port.is_empty() || port.parse::<u16>().is_ok())
}

/// What stands for itself where bytes are percent-encoded; `None` where that is not UTF-8, or a percent sign encodes nothing.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(text.into());
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, behind @ ..] = rest else {
            return None;
        };
        bytes.push(digit(high)? << 4 | digit(low)?);
        rest = behind;
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Whether a character shows as nothing, or as something else than it is.
pub const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{1680}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{2800}' | '\u{3164}' | '\u{E000}'..='\u{F8FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFFD}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{10FFFF}')
}

/// Marks that look like the ASCII ones names are made of.
const fn is_odd_mark(c: char) -> bool {
    matches!(
        c,
        '\u{1C3}' | '\u{2BC}' | '\u{2D7}' | '\u{2010}'
            ..='\u{2015}' | '\u{2044}' | '\u{2212}' | '\u{2215}' | '\u{2217}' | '\u{223C}'
    )
}

fn is_fake_word(word: &str) -> bool {
    let mut latin = false;
    let mut resembling = false;
    let mut only_doubles = true;
    for c in word.chars() {
        match c {
            'a'..='z' | 'A'..='Z' => latin = true,
            '0'..='9' => {}
            _ if resembles_latin(c) => {
                resembling = true;
                only_doubles &= DOUBLES.contains(c);
            }
            _ => only_doubles = false,
        }
    }
    resembling && (latin || only_doubles)
}

/// Letters that are read as Latin ones.
const DOUBLES: &str = "асеорхуѕіјһԁԛԝѵАВЕНІЈКМОРСТХҮԌѴЅοανρυικΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոհցյզɑɡıƖ";

/// Scripts and Latin extensions with letters that are read as plain Latin ones.
const fn resembles_latin(c: char) -> bool {
    matches!(c,
        '\u{131}' | '\u{196}' | '\u{250}'..='\u{2AF}' | '\u{370}'..='\u{58F}' | '\u{13A0}'..='\u{13FF}'
        | '\u{1C80}'..='\u{1C8F}' | '\u{1D00}'..='\u{1DBF}' | '\u{1F00}'..='\u{1FFF}' | '\u{2C80}'..='\u{2CFF}'
        | '\u{A4D0}'..='\u{A4FF}' | '\u{A640}'..='\u{A69F}' | '\u{AB30}'..='\u{ABBF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cat_1_names_that_could_fool_are_told_from_those_that_could_not() {
        let cases = [
            ("list_files", None),
            ("get weather", None),
            ("поиск_файлов", None),
            ("get_погода", None),
            ("天気を調べる", None),
            ("café", None),
            ("bell\u{7}", Some(Offence::Control)),
            ("a\u{85}b", Some(Offence::Control)),
            ("list\u{200B}_files", Some(Offence::Hidden)),
            ("\u{202E}selif", Some(Offence::Hidden)),
            ("list\u{E0041}", Some(Offence::Hidden)),
            ("lіst_files", Some(Offence::LookAlike)), // Cyrillic і
            ("сор_files", Some(Offence::LookAlike)),  // all Cyrillic
            ("ｌｉｓｔ", Some(Offence::LookAlike)),
            ("ﬁles", Some(Offence::LookAlike)),
            ("list\u{2010}files", Some(Offence::LookAlike)),
            ("𝗅ist", Some(Offence::LookAlike)),
        ];
        for (name, want) in cases {
            assert_eq!(of_name(name), want, "{name:?}");
        }
    }

    #[test]
    fn what_strict_clients_take_for_a_url_is_told_from_what_they_do_not() {
        for uri in [
            "note://1",
            "note:1",
            "wh+git.v-1://repo@host:22/x:y",
            "db://table?x=a:b",
            "db://table#a:b",
            "x://h:/y",
            "x://h:65535",
            "x:///a b",
            "x://",
            "x:",
            "http://[::1]:80/x",
            "http://[::1]/x",
            "file:///C:/Users/ana/a~1",
            "C:\\Users\\ana",
            "x://字/é",
            "x://u:p@h:1/",
        ] {
            assert!(is_uri(uri), "{uri}");
        }
        for not in [
            "readme",
            "/a/b",
            "",
            " ",
            "://x",
            "1x://y",
            "é://y",
            "my note://y",
            "a/b:c",
            "db://table:users",
            "db://table:users:1",
            "git://repo@v1:x",
            "x://h:65536",
            "x://h:-1",
            "x://h:1 /",
            "x://:1/",
            "x://u@/y",
            "x://my table/y",
            // Of some schemes it ends the host, but not of those that they are shown under.
            "file://server\\share",
            "http://[::1",
            "http://[::1]80",
            "http://[x]/",
        ] {
            assert!(!is_uri(not), "{not}");
        }
    }

    #[test]
    fn authz_9_addresses_that_may_mean_others_are_told_from_those_that_do_not() {
        for twisted in [
            "file:///a/../b",
            "file:///a/./b",
            "file:///a/..",
            "..",
            "note:..",
            "file:///a/%2e%2e/b",
            "file:///a/%2E./b",
            "file:///a/..%2Fb",
            "file:///a/..%5cb",
            "file:///a\\..\\b",
            "file:///100%",
            "file:///%g0",
            "file:///%1",
            "file:///pub/a%00",
            "file:///pub/.%09./priv",
            "file:///pub/%0A",
            "file:///pub/%C2%85",
            "file:///pub/a\u{7f}",
            "file:///pub/%ff",
            "file:///pub/%c0%ae%c0%ae/priv",
            "file:///pub/..;/priv",
            "file:///pub/%2e%2e;a=b/priv",
            "file:///pub/..%3B/priv",
            "file:///pub/.;",
            "file:///pub?x=%00",
            "file:///pub?x=%c0%ae",
        ] {
            assert!(is_twisted(twisted), "{twisted}");
        }
        for plain in [
            "file:///a/b",
            "file:///a/...",
            "file:///a/..b/.c",
            "file:///a.b/c..",
            "note://x%20y%2Fz",
            "https://host/p?next=../x#.",
            "https://host/p?x=../../priv&text=one%0Atwo%09three",
            "note://caf%C3%A9/%E5%AD%97;a=b",
            "file:///a;v=1/b",
            "file:///My%20Files/a b (1).txt",
            "C:\\Users\\ana\\a.b",
            "file:///C:/Users/ana/a~1",
            "db://table?where=a=1&like=%25x",
            "note://100%25",
            "",
            "a",
        ] {
            assert!(!is_twisted(plain), "{plain}");
        }
    }
}
