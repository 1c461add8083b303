//! What data in Base64 is: whether it begins as its declared type does and runs nothing, and the text that it stands for.

use base64::{
    Engine, alphabet,
    engine::{
        DecodePaddingMode,
        general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD},
    },
};

use super::readable;

/// What text in Base64 stands for.
pub(super) struct Decoded {
    pub(super) text: String,
    /// Whether it is Base64 of that text and nothing else, byte for byte.
    pub(super) exact: bool,
}

/// The text that this is Base64 of; `None` where no text comes of it. Readers are not strict: what is broken into lines, not
/// padded, or of the other alphabet is decoded as most of them do, and bytes that are no UTF-8 stand for nothing.
pub(super) fn decoded(encoded: &str) -> Option<Decoded> {
    let strict = STANDARD.decode(encoded).ok();
    let (bytes, exact) = strict.map_or_else(|| (loosely(encoded), false), |bytes| (bytes, true));
    let text = match String::from_utf8(bytes) {
        Ok(text) if exact => return Some(Decoded { text, exact }),
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    let is_plain = |one: &char| {
        *one != char::REPLACEMENT_CHARACTER
            && (!one.is_control() || matches!(one, '\t' | '\n' | '\r'))
    };
    let plain = text.chars().filter(is_plain).count();
    let exact = false;
    readable::is_text(plain, text.chars().count()).then_some(Decoded { text, exact })
}

/// What comes of the characters of either alphabet in a string, whatever stands between them.
fn loosely(encoded: &str) -> Vec<u8> {
    const LOOSE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let mut bytes = Vec::with_capacity(encoded.len() / 4 * 3);
    // Behind what ends one another may begin.
    for part in encoded.split('=') {
        let sextet = |byte: u8| match byte {
            b'-' => Some(b'+'),
            b'_' => Some(b'/'),
            b'+' | b'/' => Some(byte),
            byte => byte.is_ascii_alphanumeric().then_some(byte),
        };
        let mut sextets: Vec<u8> = part.bytes().filter_map(sextet).collect();
        // One alone is not even a byte.
        sextets.truncate(sextets.len() - usize::from(sextets.len() % 4 == 1));
        // INVARIANT: nothing is left that this cannot decode: its letters alone, not one too many, unpadded, and whatever bits
        // the last of them has beyond its byte.
        bytes.extend(LOOSE.decode(sextets).unwrap_or_default());
    }
    bytes
}

/// Whether a string is Base64 and nothing else, so that nothing can be read in it.
pub(super) fn is_base64(encoded: &str) -> bool {
    let ends = encoded.trim_end_matches('=');
    // No early end: so the compiler can look at many bytes at once.
    let other = ends.bytes().fold(false, |other, byte| {
        other | !(byte.is_ascii_alphanumeric() | (byte == b'+') | (byte == b'/'))
    });
    !other && encoded.len() - ends.len() <= 2
}

/// Whether content of a declared type is text, that anything may stand in.
pub(super) fn is_text(mime: &str) -> bool {
    mime.starts_with("text/")
        || mime.ends_with("+json")
        || mime.ends_with("+xml")
        || matches!(
            mime,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/ecmascript"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/sql"
                | "application/graphql"
                | "application/x-ndjson"
                | "application/x-sh"
                | "application/x-www-form-urlencoded"
        )
}

/// Whether a declared type is of pictures, sounds and the like.
pub(super) fn is_media(mime: &str) -> bool {
    ["image/", "audio/", "video/", "font/"]
        .iter()
        .any(|kind| mime.starts_with(kind))
}

/// What is wrong with media of this declared type. Types that are not known here are not judged.
pub(super) fn fault(mime: &str, encoded: &str) -> Option<&'static str> {
    if mime == "image/svg+xml" {
        let svg = STANDARD.decode(encoded).ok();
        let svg = svg.map(|bytes| String::from_utf8_lossy(&bytes).to_ascii_lowercase());
        return match svg {
            None => Some("media_not_base64"),
            Some(svg) if !svg.contains("<svg") => Some("media_type_mismatch"),
            Some(svg) if is_scripted(&svg) => Some("media_scripted_svg"),
            Some(_) => None,
        };
    }
    let expected = expected(mime)?;
    let cut = encoded.floor_char_boundary(64);
    let head = STANDARD.decode(&encoded[..cut / 4 * 4]);
    match head {
        Err(_) => Some("media_not_base64"),
        Ok(head) if expected(&head) => None,
        Ok(_) => Some("media_type_mismatch"),
    }
}

/// How content of a declared type begins; `None` where that is not known.
pub(super) fn expected(mime: &str) -> Option<fn(&[u8]) -> bool> {
    Some(match mime {
        "image/png" | "image/apng" => |head| head.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" | "image/jpg" => |head| head.starts_with(b"\xFF\xD8\xFF"),
        "image/gif" => |head| head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a"),
        "image/webp" => |head| head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP"),
        "image/bmp" => |head| head.starts_with(b"BM"),
        "image/tiff" => |head| head.starts_with(b"II*\0") || head.starts_with(b"MM\0*"),
        "image/avif" | "image/heic" | "image/heif" | "video/mp4" | "audio/mp4" | "audio/x-m4a" => {
            |head| head.get(4..8) == Some(b"ftyp")
        }
        "image/x-icon" | "image/vnd.microsoft.icon" => |head| head.starts_with(b"\0\0\x01\0"),
        "audio/wav" | "audio/wave" | "audio/x-wav" => {
            |head| head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WAVE")
        }
        "audio/mpeg" | "audio/mp3" => |head| {
            head.starts_with(b"ID3") || matches!(head, [0xFF, second, ..] if second & 0xE0 == 0xE0)
        },
        "audio/ogg" | "video/ogg" => |head| head.starts_with(b"OggS"),
        "audio/flac" | "audio/x-flac" => |head| head.starts_with(b"fLaC"),
        "audio/webm" | "video/webm" => |head| head.starts_with(b"\x1A\x45\xDF\xA3"),
        "application/pdf" => |head| head.starts_with(b"%PDF-"),
        _ => return None,
    })
}

/// Whether an SVG, in lower case, runs or loads anything.
fn is_scripted(svg: &str) -> bool {
    let marks = [
        "<script",
        "javascript:",
        "<foreignobject",
        "<iframe",
        "<embed",
        "<object",
        "<!entity",
        "data:text/html",
    ];
    if marks.iter().any(|mark| svg.contains(mark)) {
        return true;
    }
    // An attribute that begins with `on` is an event handler.
    let bytes = svg.as_bytes();
    memchr::memmem::find_iter(bytes, b"on").any(|at| {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let name = bytes[at..]
            .iter()
            .take(32)
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        let after = bytes[at + name..]
            .iter()
            .take(16)
            .find(|byte| !byte.is_ascii_whitespace());
        matches!(
            before,
            Some(b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'/')
        ) && name > 2
            && after == Some(&b'=')
    })
}
