//! Which names a person or a model could be fooled by (SECURITY CAT-1).

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

/// Whether an address may mean another one than it reads as: it holds dot segments, plain or percent-encoded, or a percent
/// sign that encodes nothing (SECURITY AUTHZ-9).
pub fn is_twisted(uri: &str) -> bool {
    let bytes = uri.as_bytes();
    let encoded = |at: usize| {
        let digits = bytes.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let broken = (0..bytes.len()).any(|at| bytes[at] == b'%' && !encoded(at));
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let is_dots = |segment: &str| {
        segment.len() <= 6 && {
            let plain = segment.replace("%2e", ".").replace("%2E", ".");
            plain == "." || plain == ".."
        }
    };
    broken
        || path
            .split(['/', '\\', ':'])
            .flat_map(|segment| segment.split("%2f").flat_map(|it| it.split("%2F")))
            .flat_map(|segment| segment.split("%5c").flat_map(|it| it.split("%5C")))
            .any(is_dots)
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
            "",
            "a",
        ] {
            assert!(!is_twisted(plain), "{plain}");
        }
    }
}
