//! Which characters are hidden, and which neighbours give some of them a meaning.
//!
//! Ranges written by hand after the Unicode Character Database, version 17.0 (Unicode licence v3): `DerivedCoreProperties`
//! (Default_Ignorable_Code_Point), `emoji-data`, `StandardizedVariants`, `emoji-sequences`. They are wider than the database
//! where a wider range is harmless: a variation selector may follow any symbol.

use unicode_normalization::char::canonical_combining_class;

/// What kind of hidden character it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// U+E0000 to U+E007F, and what is reserved after them.
    Tag,
    /// Variation selectors, but those of Mongolian.
    Variation,
    /// Zero-width joiner and non-joiner.
    Joiner,
    /// The zero-width space.
    Space,
    /// Word joiner and the like: of no use in any context that is known here.
    ZeroWidth,
    /// The zero-width no-break space, which at the start of a text is its byte order mark.
    ByteOrder,
    /// Invisible plus, times and their like.
    Operator,
    /// Left-to-right, right-to-left and Arabic letter marks.
    Mark,
    /// Embeddings, overrides and isolates, and what ends them.
    Bidi,
    /// The soft hyphen.
    SoftHyphen,
    /// The combining grapheme joiner.
    GraphemeJoiner,
    /// Fillers of Hangul that have a place in old syllables.
    HangulFiller,
    /// The empty cell of Braille.
    Braille,
    /// Mongolian vowel separator and variation selectors.
    Mongolian,
    /// Fillers and vowels that show nothing, anywhere.
    Filler,
    /// Interlinear annotation.
    Interlinear,
    /// Format characters that are deprecated, or of music and shorthand.
    Format,
    /// Code points that are no characters, and never will be.
    Noncharacter,
}

/// The kind of a character that may be hidden.
pub(super) fn kind(ch: char) -> Option<Kind> {
    Some(match ch {
        '\u{AD}' => Kind::SoftHyphen,
        '\u{34F}' => Kind::GraphemeJoiner,
        '\u{61C}' | '\u{200E}' | '\u{200F}' => Kind::Mark,
        '\u{115F}' | '\u{1160}' => Kind::HangulFiller,
        '\u{17B4}' | '\u{17B5}' | '\u{3164}' | '\u{FFA0}' => Kind::Filler,
        '\u{180B}'..='\u{180F}' => Kind::Mongolian,
        '\u{200B}' => Kind::Space,
        '\u{200C}' | '\u{200D}' => Kind::Joiner,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => Kind::Bidi,
        '\u{2060}' => Kind::ZeroWidth,
        '\u{2061}'..='\u{2065}' => Kind::Operator,
        '\u{206A}'..='\u{206F}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D159}' => Kind::Format,
        '\u{1D173}'..='\u{1D17A}' => Kind::Format,
        '\u{2800}' => Kind::Braille,
        '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' => Kind::Variation,
        '\u{FEFF}' => Kind::ByteOrder,
        '\u{FFF0}'..='\u{FFFB}' => Kind::Interlinear,
        '\u{E0000}'..='\u{E0FFF}' => Kind::Tag,
        _ if noncharacter(ch) => Kind::Noncharacter,
        _ => return None,
    })
}

fn noncharacter(ch: char) -> bool {
    matches!(ch, '\u{FDD0}'..='\u{FDEF}') || u32::from(ch) & 0xFFFE == 0xFFFE
}

/// Letters, marks and digits of scripts that are written from right to left.
pub(super) fn right_to_left(ch: char) -> bool {
    matches!(ch, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
        && ch != '\u{61C}'
}

/// Scripts whose letters take different shapes beside others: there a joiner says which shape is meant.
pub(super) fn cursive(ch: char) -> bool {
    matches!(ch, '\u{600}'..='\u{6FF}' | '\u{700}'..='\u{77F}' | '\u{7C0}'..='\u{7FF}' | '\u{840}'..='\u{8FF}'
        | '\u{1807}' | '\u{180A}' | '\u{1820}'..='\u{18AA}' | '\u{A840}'..='\u{A87F}' | '\u{FB50}'..='\u{FDCF}'
        | '\u{FDF0}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' | '\u{10AC0}'..='\u{10AFF}' | '\u{10B80}'..='\u{10BAF}'
        | '\u{10D00}'..='\u{10D3F}' | '\u{10EC0}'..='\u{10FDF}' | '\u{1E900}'..='\u{1E95F}')
        && ch != '\u{61C}'
}

/// Whether it ends a conjunct in one of the scripts of India and its neighbours: a joiner after it, or after the
/// consonant before it, says how the conjunct is drawn.
pub(super) fn virama(ch: char) -> bool {
    canonical_combining_class(ch) == 9
}

/// Consonants and vowels of those scripts, and their signs.
pub(super) fn brahmic(ch: char) -> bool {
    matches!(ch, '\u{900}'..='\u{DFF}' | '\u{F00}'..='\u{109F}' | '\u{1700}'..='\u{17B3}' | '\u{17B6}'..='\u{17FF}'
        | '\u{1A20}'..='\u{1AAF}' | '\u{1B00}'..='\u{1C4F}' | '\u{A800}'..='\u{A82F}' | '\u{A880}'..='\u{A8FF}'
        | '\u{A930}'..='\u{AA7F}' | '\u{AAE0}'..='\u{AAFF}' | '\u{ABC0}'..='\u{ABFF}' | '\u{11000}'..='\u{11FFF}')
}

/// Scripts that write words together: there a zero-width space says where a line may end.
pub(super) fn unspaced(ch: char) -> bool {
    matches!(ch, '\u{E01}'..='\u{FFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17B3}' | '\u{17B6}'..='\u{17FF}'
        | '\u{1950}'..='\u{19FF}' | '\u{1A20}'..='\u{1AAF}' | '\u{1B00}'..='\u{1B7F}' | '\u{A980}'..='\u{A9FF}'
        | '\u{AA60}'..='\u{AADF}')
}

/// Han characters: an ideographic variation sequence begins with one.
pub(super) fn ideograph(ch: char) -> bool {
    matches!(ch, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}')
}

/// What may stand on either side of a joiner in an emoji: Extended_Pictographic, and the skin tones.
pub(super) fn pictograph(ch: char) -> bool {
    matches!(ch, '\u{A9}' | '\u{AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{2199}'
        | '\u{21A9}' | '\u{21AA}' | '\u{231A}' | '\u{231B}' | '\u{2328}' | '\u{2388}' | '\u{23CF}'
        | '\u{23E9}'..='\u{23F3}' | '\u{23F8}'..='\u{23FA}' | '\u{24C2}' | '\u{25AA}' | '\u{25AB}' | '\u{25B6}'
        | '\u{25C0}' | '\u{25FB}'..='\u{25FE}' | '\u{2600}'..='\u{2767}' | '\u{2795}'..='\u{2797}' | '\u{27A1}'
        | '\u{27B0}' | '\u{27BF}' | '\u{2934}' | '\u{2935}' | '\u{2B05}'..='\u{2B07}' | '\u{2B1B}' | '\u{2B1C}'
        | '\u{2B50}' | '\u{2B55}' | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{1F000}'..='\u{1F1E5}'
        | '\u{1F201}'..='\u{1FAFF}' | '\u{1FC00}'..='\u{1FFFD}')
}

/// The key that is drawn around what stands before it.
pub(in crate::sanitize) const KEY: char = '\u{20E3}';

/// Whether the selector stands between a digit or sign and the key around it. Without a key it says nothing: nobody sees whether it is
/// there, and between the digits of a secret it would split that for whoever looks.
pub(super) fn keyed(base: char, selector: char, next: Option<char>) -> bool {
    matches!(base, '#' | '*' | '0'..='9')
        && matches!(selector, '\u{FE0E}' | '\u{FE0F}')
        && next == Some(KEY)
}

/// Whether the variation selector may follow `base`, whatever stands behind. A letter of a flag has one form.
pub(super) fn varies(base: char, selector: char) -> bool {
    match selector {
        // Text or emoji.
        '\u{FE0E}' | '\u{FE0F}' => {
            matches!(base, '\u{2000}'..='\u{200A}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205E}'
                | '\u{2100}'..='\u{27FF}' | '\u{2900}'..='\u{2BFF}' | '\u{3000}'..='\u{303F}' | '\u{3200}'..='\u{32FF}')
                || pictograph(base)
        }
        '\u{FE00}'..='\u{FE02}' if ideograph(base) => true,
        '\u{FE00}'..='\u{FE06}' if matches!(base, '\u{13000}'..='\u{1345F}') => true,
        '\u{FE00}' | '\u{FE01}' => {
            matches!(base, '\u{2018}' | '\u{2019}' | '\u{201C}' | '\u{201D}' | '\u{2100}'..='\u{214F}'
                | '\u{3001}' | '\u{3002}' | '\u{FF01}' | '\u{FF0C}' | '\u{FF0E}' | '\u{FF1A}' | '\u{FF1B}'
                | '\u{FF1F}' | '\u{1D49C}'..='\u{1D4CF}')
                || (selector == '\u{FE00}'
                    && matches!(base, '0' | '\u{FF10}' | '\u{2190}'..='\u{22FF}' | '\u{2A00}'..='\u{2AFF}'
                        | '\u{1000}'..='\u{109F}' | '\u{AA60}'..='\u{AA7F}' | '\u{A840}'..='\u{A87F}'
                        | '\u{10AC0}'..='\u{10AEF}'))
        }
        // No registered sequence goes further than the thirty-second.
        '\u{E0100}'..='\u{E013F}' => ideograph(base),
        _ => false,
    }
}

/// The end of the tags with which a text begins, if they make a black flag that of a part of a country: England, Scotland, Wales
/// and Northern Ireland, and the states of the United States and provinces of Canada, which some vendors draw.
pub(super) fn flag(text: &str) -> Option<usize> {
    let mut region = [0; 5];
    let mut length = 0;
    let mut end = None;
    for (at, tag) in text.char_indices() {
        match tag {
            '\u{E0061}'..='\u{E007A}' if length < region.len() => {
                region[length] = (u32::from(tag) & 0x7F) as u8;
                length += 1;
            }
            '\u{E007F}' => {
                end = Some(at + tag.len_utf8());
                break;
            }
            _ => return None,
        }
    }
    let known = match region.get(..length).unwrap_or_default() {
        [b'g', b'b', part @ ..] => matches!(part, b"eng" | b"sct" | b"wls" | b"nir"),
        [b'u', b's', _, _] | [b'c', b'a', _, _] => true,
        _ => false,
    };
    end.filter(|_| known)
}
