//! Names that only look like names of the protocol: readers that fold case or compatibility forms would take one for the other.

use unicode_normalization::UnicodeNormalization;

/// More bytes than any name of the protocol has: what folds to more is none of them.
const LONG: usize = 64;

/// The one of `known` that `name` equals after folding case and compatibility forms, but not as it is spelled
/// (SECURITY MSG-3). `name` is what stands between the quotes, unescaped.
pub fn alike<'k>(name: &[u8], known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let mut known = known.into_iter();
    if name.is_ascii() {
        return known.find(|known| {
            let known = known.as_bytes();
            name.eq_ignore_ascii_case(known) && name != known
        });
    }
    let folded = fold(std::str::from_utf8(name).unwrap_or_default())?;
    known.find(|known| folded.eq_ignore_ascii_case(known))
}

/// As the most generous of readers compare: without case, compatibility forms and what is not seen. `None` where too much is left
/// to be a name: what is left counts, since whatever else is in it makes no name another one.
fn fold(name: &str) -> Option<String> {
    let mut folded = String::with_capacity(LONG);
    for c in name.nfkc().flat_map(char::to_lowercase) {
        match c {
            '\u{df}' => folded.push_str("ss"),
            '\u{131}' => folded.push('i'),
            // The dot that İ leaves above its i is one that an i has.
            '\u{307}' => {}
            c if is_unseen(c) => {}
            c => folded.push(c),
        }
        if folded.len() > LONG {
            return None;
        }
    }
    Some(folded)
}

/// Whether a reader may drop a character from a name: it has no form of its own (Unicode's `Default_Ignorable_Code_Point`).
const fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_reader_takes_for_a_name_is_alike_and_the_name_itself_is_not() {
        let known = ["uri", "message", "_meta", "progressToken"];
        for (name, like) in [
            ("URI", Some("uri")),
            ("ur\u{131}", Some("uri")),
            ("UR\u{130}", Some("uri")),
            ("me\u{df}age", Some("message")),
            ("ME\u{1e9e}AGE", Some("message")),
            ("me\u{17f}sage", Some("message")),
            ("u\u{ad}ri", Some("uri")),
            ("u\u{200b}ri", Some("uri")),
            ("\u{feff}_meta", Some("_meta")),
            ("uri\u{e0041}", Some("uri")),
            ("\u{ff3f}meta", Some("_meta")),
            ("progressTo\u{212a}en", Some("progressToken")),
            ("uri", None),
            ("urn", None),
            ("ür\u{131}", None),
            ("", None),
        ] {
            assert_eq!(alike(name.as_bytes(), known), like, "{name}");
        }
    }

    /// SECURITY MSG-3: what a reader drops makes a name no longer for it, however much of it there is.
    #[test]
    fn a_name_is_alike_however_much_that_is_not_seen_is_put_into_it() {
        for unseen in ['\u{ad}', '\u{200b}', '\u{e0041}', '\u{307}'] {
            for count in [LONG - 3, LONG, 8 * LONG] {
                let padded = format!("u{}ri", unseen.to_string().repeat(count));
                assert_eq!(alike(padded.as_bytes(), ["uri"]), Some("uri"), "{count}");
            }
        }
        let long = format!("uri{}\u{ad}", "i".repeat(LONG));
        assert_eq!(alike(long.as_bytes(), ["uri"]), None);
        let most = "i".repeat(LONG);
        let padded = format!("{most}\u{ad}");
        assert_eq!(alike(padded.as_bytes(), [&*most]), Some(&*most));
    }
}
