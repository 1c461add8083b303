//! Names that only look like names of the protocol: readers that fold case or compatibility forms would take one for the other.

use unicode_normalization::UnicodeNormalization;

/// More characters than any name of the protocol has: what is longer folds to none of them.
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
    let name = std::str::from_utf8(name).unwrap_or_default();
    if name.chars().count() > LONG {
        return None;
    }
    let folded: String = name.nfkc().flat_map(char::to_lowercase).collect();
    known.find(|known| folded.eq_ignore_ascii_case(known))
}
