//! What data in Base64 is: whether it begins as its declared type does and runs nothing, and the text that it stands for.

use base64::{
    Engine, alphabet,
    engine::{
        DecodePaddingMode,
        general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD},
    },
};

use super::readable;

/// A text that data in Base64 stands for.
pub(super) struct BlobText {
    pub(super) text: String,
    /// Whether it is Base64 of that text and nothing else, byte for byte, and is read in no other way.
    pub(super) exact: bool,
    /// `None`: it is UTF-8.
    wide: Option<Wide>,
}

/// How a text is UTF-16.
#[derive(Clone, Copy)]
struct Wide {
    /// Whether the larger half of each unit comes first.
    big: bool,
    /// Whether a mark of that stands in front.
    marked: bool,
}

/// What data in Base64 that is called text is read as.
pub(super) struct Reading {
    /// The texts that readers may make of it.
    pub(super) texts: Vec<BlobText>,
    /// Whether it is no text in any encoding that can be told, but something that nobody can look into.
    pub(super) is_binary: bool,
}

/// The texts that this is Base64 of, of which there are none where no text comes of it. Readers are not strict: what is broken
/// into lines, not padded, or of the other alphabet is decoded as most of them do, and bytes that are no UTF-8 stand for nothing.
/// What says that it is UTF-16 is read as that, and as it is read by those who do not listen.
pub(super) fn read(encoded: &str, charset: &str) -> Reading {
    let strict = STANDARD.decode(encoded).ok();
    let is_strict = strict.is_some();
    let bytes = strict.unwrap_or_else(|| loosely(encoded));
    let mut texts = Vec::new();
    let wide = Wide::of(&bytes, charset);
    // Letters of UTF-16 stand apart: there is nothing to read in it otherwise.
    let is_narrow = wide.is_none() || has_run(&bytes);
    if let Some(wide) = wide {
        texts.push(wide.decoded(&bytes, is_strict && !is_narrow));
    }
    let mut is_binary = false;
    if is_narrow {
        match narrow(bytes, is_strict) {
            Ok(text) => texts.push(text),
            Err(bytes) => {
                let is_base64 = is_strict || is_loose(encoded);
                is_binary = texts.is_empty() && is_base64 && is_no_text(&bytes);
            }
        }
    }
    Reading { texts, is_binary }
}

/// The text of bytes that are UTF-8, or mostly; or they come back.
fn narrow(bytes: Vec<u8>, is_strict: bool) -> Result<BlobText, Vec<u8>> {
    let wide = None;
    let (text, bytes) = match String::from_utf8(bytes) {
        // An archive of ASCII files is UTF-8, too: without its controls nothing would be left of it.
        Ok(text) if is_strict && !is_no_text(text.as_bytes()) => {
            let exact = true;
            return Ok(BlobText { text, exact, wide });
        }
        Ok(text) => (text, Vec::new()),
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            (text, error.into_bytes())
        }
    };
    let is_plain = |one: &char| {
        *one != char::REPLACEMENT_CHARACTER
            && (!one.is_control() || matches!(one, '\t' | '\n' | '\r'))
    };
    let plain = text.chars().filter(is_plain).count();
    let exact = false;
    if readable::is_text(plain, text.chars().count()) {
        Ok(BlobText { text, exact, wide })
    } else if bytes.is_empty() {
        Err(text.into_bytes())
    } else {
        Err(bytes)
    }
}

impl Wide {
    /// How bytes are UTF-16: by the mark in front, or by what they are called where they may be.
    fn of(bytes: &[u8], charset: &str) -> Option<Self> {
        let marked = true;
        match bytes {
            [0xFF, 0xFE, ..] => return Some(Self { big: false, marked }),
            [0xFE, 0xFF, ..] => return Some(Self { big: true, marked }),
            _ => {}
        }
        let big = match charset {
            "utf-16le" | "utf16le" => false,
            "utf-16be" | "utf16be" => true,
            "utf-16" | "utf16" | "ucs-2" | "iso-10646-ucs-2" | "unicode" => {
                let zeros = |odd: usize| {
                    let every = bytes.iter().skip(odd).step_by(2);
                    every.filter(|byte| **byte == 0).count()
                };
                zeros(0) > zeros(1)
            }
            _ => return None,
        };
        let marked = false;
        let may_be = bytes.contains(&0) || str::from_utf8(bytes).is_err();
        may_be.then_some(Self { big, marked })
    }

    fn decoded(self, bytes: &[u8], alone: bool) -> BlobText {
        let mark = if self.marked { 2 } else { 0 };
        let (pairs, rest) = bytes[mark..].as_chunks::<2>();
        let units = pairs.iter().map(|pair| {
            if self.big {
                u16::from_be_bytes(*pair)
            } else {
                u16::from_le_bytes(*pair)
            }
        });
        let mut broken = !rest.is_empty();
        let text = char::decode_utf16(units)
            .map(|one| {
                broken |= one.is_err();
                one.unwrap_or(char::REPLACEMENT_CHARACTER)
            })
            .collect();
        BlobText {
            text,
            exact: alone && !broken,
            wide: Some(self),
        }
    }
}

impl BlobText {
    /// Base64 of another text, written as this one was.
    pub(super) fn encoded_like(&self, text: &str) -> String {
        let Some(Wide { big, marked }) = self.wide else {
            return STANDARD.encode(text);
        };
        let mark = marked.then_some(0xFEFF);
        let units = mark.into_iter().chain(text.encode_utf16());
        let bytes: Vec<u8> = units
            .flat_map(|unit| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            })
            .collect();
        STANDARD.encode(bytes)
    }
}

/// Whether so many readable bytes stand side by side as the shortest credential has.
fn has_run(bytes: &[u8]) -> bool {
    let parts = bytes.split(|byte| !matches!(byte, 0x20..=0x7E));
    parts.map(<[u8]>::len).any(|run| run >= readable::TEXT)
}

/// Whether bytes are text of no encoding that keeps ASCII as it is: among controls are only those that texts have.
fn is_no_text(bytes: &[u8]) -> bool {
    let odd = |byte: &&u8| matches!(**byte, 0..=0x08 | 0x0E..=0x1A | 0x1C..=0x1F);
    bytes.len() >= readable::TEXT && bytes.iter().filter(odd).count() * 32 >= bytes.len()
}

/// Whether it is Base64 of either alphabet, in lines perhaps.
fn is_loose(encoded: &str) -> bool {
    encoded.bytes().all(|byte| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=' | b'\r' | b'\n')
    })
}

/// What a declared type says of how its text is written, in small letters; nothing where it says nothing.
pub(super) fn charset(mime: &str) -> String {
    let parameters = mime.split(';').skip(1);
    let mut named = parameters.filter_map(|parameter| parameter.split_once('='));
    let charset = named.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.map_or("", |(_, value)| value.trim().trim_matches('"'));
    charset.to_ascii_lowercase()
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
    let head = encoded.len().min(64) / 4 * 4;
    match STANDARD.decode(&encoded.as_bytes()[..head]) {
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
