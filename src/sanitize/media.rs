//! C10, media: pictures and sounds are what they say they are, not too large, and run nothing; what is text in Base64 is read.
//!
//! Looked at are blocks of type `image` and `audio` and resources with a `blob`. A block that may not be shown makes place for
//! one of text that says so; the others stay. Deliberately absent: whether a picture does harm to whoever decodes it.

use std::sync::{Arc, LazyLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use memchr::memmem::Finder;

use super::{Blocked, Class, Marks, Sanitizer, Subject, Verdict, asking};
use crate::{
    findings::{Action, Direction, Finding},
    json::{Edits, Json, Kind, Mark, Node, Span, Text},
};

/// Finds what every item of media has: nearly all values have none.
// Made once: making it costs as much as a search in a kilobyte.
static MEDIA_TYPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"mimeType\""));

/// What there is of media in a value, and what becomes of it.
#[derive(Debug, Default)]
pub(super) struct Media {
    /// What no detector has to read: members to skip, pictures, and what was read here.
    exempt: Vec<Span>,
    items: Vec<(Span, Json)>,
    blobs: Vec<(Span, String)>,
    marks: Marks,
}

/// An object on the way down.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    start: usize,
    name: Option<Name>,
    mime: Option<Text>,
    data: Option<Text>,
    blob: Option<Text>,
    kind: Option<Text>,
    uri: Option<Text>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Mime,
    Data,
    Blob,
    Type,
    Uri,
}

/// Finds the media of a value; `first` says that what is text in them is to be read.
///
/// # Errors
/// When something in them blocks the whole.
pub(super) fn of(
    sanitizer: &Sanitizer,
    value: &Json,
    subject: &Subject<'_>,
    first: bool,
) -> Result<Media, Blocked> {
    let mut media = Media::default();
    for name in subject.skip {
        let handle = value.root().member(name);
        let handle = handle.filter(|handle| handle.kind() == Kind::String);
        media.exempt.extend(handle.map(Node::span));
    }
    asking::addresses(value, subject.questions, &mut media.exempt);
    media.exempt.sort_unstable();
    if MEDIA_TYPE.find(value.bytes()).is_none() {
        return Ok(media);
    }
    let text = value.as_str();
    let inside = |string: Text| &text[string.inside.start..string.inside.end];
    let mut stack: Vec<Frame> = Vec::new();
    for mark in value.marks() {
        match mark {
            Mark::Open(start) => stack.push(Frame {
                start,
                ..Frame::default()
            }),
            Mark::Name(string) => {
                if let Some(frame) = stack.last_mut() {
                    frame.name = match inside(string) {
                        "mimeType" => Some(Name::Mime),
                        "data" => Some(Name::Data),
                        "blob" => Some(Name::Blob),
                        "type" => Some(Name::Type),
                        "uri" => Some(Name::Uri),
                        _ => None,
                    };
                }
            }
            Mark::String(string) => {
                if let Some(frame) = stack.last_mut() {
                    match frame.name.take() {
                        Some(Name::Mime) => frame.mime = Some(string),
                        Some(Name::Data) => frame.data = Some(string),
                        Some(Name::Blob) => frame.blob = Some(string),
                        Some(Name::Type) => frame.kind = Some(string),
                        Some(Name::Uri) => frame.uri = Some(string),
                        None => {}
                    }
                }
            }
            Mark::Plain(_) => {}
            Mark::Close(end) => {
                let Some(frame) = stack.pop() else { continue };
                let span = Span {
                    start: frame.start,
                    end,
                };
                let block = frame
                    .kind
                    .is_some_and(|kind| matches!(inside(kind), "image" | "audio"));
                let data = frame.blob.or(frame.data.filter(|_| block));
                if let (Some(mime), Some(data)) = (frame.mime, data) {
                    media.item(
                        &Item {
                            sanitizer,
                            subject,
                            span,
                            mime: inside(mime),
                            data,
                            encoded: inside(data),
                            uri: frame.uri.map(inside),
                            place: frame.start,
                        },
                        value,
                        first,
                    )?;
                }
            }
        }
    }
    media.exempt.sort_unstable();
    Ok(media)
}

/// One of them.
struct Item<'a> {
    sanitizer: &'a Sanitizer,
    subject: &'a Subject<'a>,
    span: Span,
    mime: &'a str,
    data: Text,
    encoded: &'a str,
    uri: Option<&'a str>,
    place: usize,
}

impl Media {
    pub(super) fn exempt(&self) -> &[Span] {
        &self.exempt
    }

    /// Whether nothing changes.
    pub(super) const fn is_clean(&self) -> bool {
        self.items.is_empty() && self.blobs.is_empty()
    }

    /// What was done, or only noted.
    pub(super) const fn marks(&self) -> &Marks {
        &self.marks
    }

    pub(super) fn apply(&self, value: &Json, edits: &mut Edits) {
        for (span, item) in &self.items {
            edits.replace(value.node_at(*span), item.clone());
        }
        for (span, blob) in &self.blobs {
            edits.rewrite(*span, blob);
        }
    }

    fn item(&mut self, item: &Item<'_>, value: &Json, first: bool) -> Result<(), Blocked> {
        let mime = item.mime.split(';').next().unwrap_or_default().trim();
        let mime = mime.to_ascii_lowercase();
        let plain = item.encoded.trim_end_matches('=').len() / 4 * 3;
        let fault = if plain > item.sanitizer.rules().media_bytes {
            Some("media_oversize")
        } else {
            fault(&mime, item.encoded)
        };
        if let Some(rule) = fault {
            return self.refuse(item, value, rule, first);
        }
        if is_text(&mime) {
            if first {
                return self.read(item);
            }
            self.exempt.push(item.data.inside);
        } else if is_media(&mime) {
            self.exempt.push(item.data.inside);
        }
        Ok(())
    }

    /// What may not be shown: something else stands in its place, or nothing goes on.
    fn refuse(
        &mut self,
        item: &Item<'_>,
        value: &Json,
        rule: &str,
        first: bool,
    ) -> Result<(), Blocked> {
        let Subject {
            direction, actions, ..
        } = *item.subject;
        let Some(action) = actions.of(Class::Media, direction) else {
            return Ok(());
        };
        if !first && action == Action::Flag {
            return Ok(());
        }
        let rule: Arc<str> = rule.into();
        // Names have not been looked at yet: those that are not plain words may be anything.
        let text = value.as_str();
        let is_odd = |name: Span| {
            let name = &text[name.start..name.end];
            name.len() > 24 || !name.bytes().all(|byte| byte.is_ascii_alphabetic())
        };
        let place = value.pointers(&[item.place], is_odd).swap_remove(0);
        if action != Action::Flag && direction != Direction::Results {
            return Err(Blocked {
                reason: super::verdict::REASON,
                kind: Class::Media.word(),
                rule: Some(rule),
                place,
            });
        }
        item.sanitizer.tell(Finding {
            kind: Class::Media.word(),
            rule: rule.clone(),
            action,
            direction,
            place: place.into(),
            length: item.encoded.len(),
            digest: None,
            upstream: item.subject.upstream.cloned(),
            item: item.subject.item.cloned(),
            call: item.subject.call,
            at: std::time::SystemTime::now(),
        });
        self.marks.add(action, Class::Media.word(), &rule, 1);
        if action == Action::Flag {
            return Ok(());
        }
        let told = Json::string(&format!("[blocked:{rule}]"));
        let text = match item.uri {
            Some(uri) => format!("{{\"uri\":\"{uri}\",\"text\":{}}}", told.as_str()),
            None => format!("{{\"type\":\"text\",\"text\":{}}}", told.as_str()),
        };
        self.exempt.push(item.span);
        // The address is cut from a value, between its quotes as they stand there.
        self.items.push((item.span, Json::composed(text.into())));
        Ok(())
    }

    /// What is text in Base64 is read as what it is, and goes on in Base64.
    fn read(&mut self, item: &Item<'_>) -> Result<(), Blocked> {
        let decoded = STANDARD.decode(item.encoded).ok();
        let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) else {
            // What cannot be read so is read as it stands, with everything that can be decoded in it.
            return Ok(());
        };
        self.exempt.push(item.data.inside);
        match item.sanitizer.look(&Json::string(&text), item.subject) {
            Verdict::Clean => {}
            Verdict::Flagged(marks) => self.marks.join(&marks),
            Verdict::Changed(text, marks) => {
                self.marks.join(&marks);
                let text = text.root().as_str().unwrap_or_default();
                self.blobs
                    .push((item.data.inside, STANDARD.encode(text.as_bytes())));
            }
            Verdict::Blocked(blocked) => return Err(blocked),
        }
        Ok(())
    }
}

fn is_text(mime: &str) -> bool {
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

fn is_media(mime: &str) -> bool {
    ["image/", "audio/", "video/", "font/"]
        .iter()
        .any(|kind| mime.starts_with(kind))
}

/// What is wrong with media of this declared type. Types that are not known here are not judged.
fn fault(mime: &str, encoded: &str) -> Option<&'static str> {
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
fn expected(mime: &str) -> Option<fn(&[u8]) -> bool> {
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
