//! C10, media: pictures and sounds are what they say they are, not too large, and run nothing; what is text in Base64 is read.
//!
//! Looked at are blocks of type `image` and `audio`, `data` and `blob` both, and resources with a `blob`, however their names are
//! spelled. A block that may not be shown makes place for one of text that says so; the others stay.
//!
//! Guarantees: nothing goes unread because of what it is called: only what is Base64 and begins as its type does is left out of
//! the look at texts, and text that was read by itself. Deliberately absent: whether a picture does harm to whoever decodes it.

use std::{borrow::Cow, collections::HashSet, hash::BuildHasher, time::SystemTime};

use super::{
    Blocked, Class, Marks, Sanitizer, Subject, Verdict, asking,
    blob::{self, expected, fault, is_base64, is_media, is_text},
    verdict::{REASON, TOLD},
    work::Work,
};
use crate::{
    findings::{Action, Direction, Finding},
    json::{Edits, Json, Kind, Mark, Node, Span, Text, unquote},
};

/// What an item takes beside the bytes of its data.
const EACH: usize = 256;

/// What there is of media in a value, and what becomes of it.
#[derive(Debug, Default)]
pub(super) struct Media {
    /// What no detector has to read: members to skip, pictures, and what was read here.
    exempt: Vec<Span>,
    /// What may not be shown, in order; none lies in another.
    refused: Vec<Refused>,
    /// What might not be shown, and is only noted.
    flagged: Vec<Refused>,
    blobs: Vec<(Span, String)>,
    marks: Marks,
}

/// An item that may not be shown.
#[derive(Debug)]
struct Refused {
    span: Span,
    rule: &'static str,
    length: usize,
    /// Its address, between its quotes.
    uri: Option<Span>,
}

/// What was read and stays as it is, or was told of, in the passes before: that is done once, whatever else changes. What was
/// changed is not kept: another like it may be found only when what hides it is gone.
#[derive(Debug, Default)]
pub(super) struct Known {
    before: HashSet<u64>,
    now: Vec<u64>,
}

impl Known {
    /// What stands for data and what was done with it.
    fn key(&self, what: &str, encoded: &str) -> u64 {
        self.before.hasher().hash_one((what, encoded))
    }

    /// Whether it was noted in a pass before.
    fn has(&self, key: u64) -> bool {
        self.before.contains(&key)
    }

    fn note(&mut self, key: u64) {
        self.now.push(key);
    }
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

/// Of a value without media: what no detector has to read.
pub(super) fn none(value: &Json, subject: &Subject<'_>) -> Media {
    let mut media = Media::default();
    for name in subject.skip {
        let handle = value.root().member(name);
        let handle = handle.filter(|handle| handle.kind() == Kind::String);
        media.exempt.extend(handle.map(Node::span));
    }
    asking::addresses(value, subject.questions, &mut media.exempt);
    media.exempt.sort_unstable();
    media
}

/// Finds the media of a value, and reads what is text in them and was not read before; `media` is [`none`] of it.
///
/// # Errors
/// When something in them blocks the whole, or reading them takes too long.
pub(super) fn of(
    mut media: Media,
    (sanitizer, value, subject): (&Sanitizer, &Json, &Subject<'_>),
    known: &mut Known,
    work: &mut Work,
) -> Result<Media, Blocked> {
    known.before.extend(known.now.drain(..));
    let text = value.as_str();
    let plain = |string: Text| {
        let inside = &text[string.inside.start..string.inside.end];
        if string.escaped {
            unquote(inside.as_bytes())
        } else {
            Cow::Borrowed(inside)
        }
    };
    let mut stack: Vec<Frame> = Vec::new();
    for mark in value.marks() {
        match mark {
            Mark::Open(start) => stack.push(Frame {
                start,
                ..Frame::default()
            }),
            Mark::Name(string) => {
                if let Some(frame) = stack.last_mut() {
                    frame.name = match &*plain(string) {
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
                    .is_some_and(|kind| matches!(&*plain(kind), "image" | "audio"));
                let data = frame.data.filter(|_| block);
                let Some(mime) = frame.mime else { continue };
                // Whoever shows it takes the one or the other.
                for data in [frame.blob, data].into_iter().flatten() {
                    let item = Item {
                        sanitizer,
                        subject,
                        value,
                        span,
                        mime: &plain(mime),
                        data: data.inside,
                        encoded: &plain(data),
                        uri: frame.uri.map(|uri| uri.inside),
                    };
                    let spent = work.spend(item.encoded.len() + EACH);
                    spent.and_then(|()| work.check()).map_err(Blocked::budget)?;
                    media.item(&item, known)?;
                }
            }
        }
    }
    media.tell(sanitizer, subject, value);
    media.exempt.sort_unstable();
    Ok(media)
}

/// One of them.
struct Item<'a> {
    sanitizer: &'a Sanitizer,
    subject: &'a Subject<'a>,
    value: &'a Json,
    span: Span,
    mime: &'a str,
    /// Where its data stands, between its quotes.
    data: Span,
    encoded: &'a str,
    uri: Option<Span>,
}

impl Media {
    pub(super) fn exempt(&self) -> &[Span] {
        &self.exempt
    }

    /// Whether nothing changes.
    pub(super) const fn is_clean(&self) -> bool {
        self.refused.is_empty() && self.blobs.is_empty()
    }

    /// What was done, or only noted.
    pub(super) const fn marks(&self) -> &Marks {
        &self.marks
    }

    pub(super) fn apply(&self, value: &Json, edits: &mut Edits) {
        let text = value.as_str();
        for Refused {
            span, rule, uri, ..
        } in &self.refused
        {
            let told = Json::string(&format!("[blocked:{rule}]"));
            let told = told.as_str();
            let item = match uri {
                // As it is spelled there.
                Some(uri) => {
                    let uri = &text[uri.start..uri.end];
                    format!("{{\"uri\":\"{uri}\",\"text\":{told}}}")
                }
                None => format!("{{\"type\":\"text\",\"text\":{told}}}"),
            };
            edits.replace(value.node_at(*span), Json::composed(item.into()));
        }
        for (span, blob) in &self.blobs {
            edits.rewrite(*span, blob);
        }
    }

    fn item(&mut self, item: &Item<'_>, known: &mut Known) -> Result<(), Blocked> {
        // Its other data is gone, and this with it.
        if is_last(&self.refused, item) {
            return Ok(());
        }
        let mime = item.mime.split(';').next().unwrap_or_default().trim();
        let mime = mime.to_ascii_lowercase();
        let plain = item.encoded.trim_end_matches('=').len() / 4 * 3;
        let fault = if plain > item.sanitizer.rules().media_bytes {
            Some("media_oversize")
        } else {
            fault(&mime, item.encoded)
        };
        if let Some(rule) = fault {
            return self.refuse(item, rule, known);
        }
        if is_text(&mime) {
            return self.read(item, known);
        }
        if is_media(&mime) && expected(&mime).is_some() && is_base64(item.encoded) {
            self.exempt.push(item.data);
        }
        Ok(())
    }

    /// What may not be shown: something else stands in its place, or nothing goes on.
    fn refuse(
        &mut self,
        item: &Item<'_>,
        rule: &'static str,
        known: &mut Known,
    ) -> Result<(), Blocked> {
        let Subject {
            direction, actions, ..
        } = *item.subject;
        let Some(action) = actions.of(Class::Media, direction) else {
            return Ok(());
        };
        if action == Action::Flag {
            let key = known.key(rule, item.encoded);
            if !known.has(key) {
                known.note(key);
                // Told of once, whatever is wrong with its other data.
                if !is_last(&self.flagged, item) {
                    self.flagged.push(Refused::of(item, rule));
                }
            }
            return Ok(());
        }
        if direction != Direction::Results {
            return Err(Blocked {
                reason: REASON,
                kind: Class::Media.word(),
                rule: Some(rule.into()),
                place: pointers(item.value, &[item.span.start]).swap_remove(0),
            });
        }
        // What is inside of it goes with it.
        let inside = |span: Span| span.start > item.span.start;
        while self.refused.pop_if(|last| inside(last.span)).is_some() {}
        while self.blobs.pop_if(|(last, _)| inside(*last)).is_some() {}
        self.exempt.push(item.span);
        self.refused.push(Refused::of(item, rule));
        Ok(())
    }

    /// Notes what may not be shown: some one by one, the others by their number.
    fn tell(&mut self, sanitizer: &Sanitizer, subject: &Subject<'_>, value: &Json) {
        let Some(action) = subject.actions.of(Class::Media, subject.direction) else {
            return;
        };
        let (kind, direction) = (Class::Media.word(), subject.direction);
        let mut refused: Vec<&Refused> = self.refused.iter().chain(&self.flagged).collect();
        if refused.is_empty() {
            return;
        }
        refused.sort_unstable_by_key(|refused| refused.span);
        let (told, counted) = refused.split_at(refused.len().min(TOLD));
        let places: Vec<usize> = told.iter().map(|refused| refused.span.start).collect();
        for (refused, place) in told.iter().zip(pointers(value, &places)) {
            let finding = Finding {
                kind,
                rule: refused.rule.into(),
                action,
                direction,
                place: place.into(),
                length: refused.length,
                digest: None,
                upstream: subject.upstream.cloned(),
                item: subject.item.cloned(),
                call: subject.call(),
                at: SystemTime::now(),
            };
            sanitizer.tell(finding, subject);
        }
        for (rule, times) in by_rule(counted) {
            let findings = sanitizer.findings();
            let trail = subject.trail();
            findings.count(kind, rule, action, direction, times.into(), trail);
        }
        for (rule, times) in by_rule(&refused) {
            self.marks.add(action, kind, &rule.into(), times);
        }
    }

    /// What is text in Base64 is read as what it is, and goes on in Base64.
    fn read(&mut self, item: &Item<'_>, known: &mut Known) -> Result<(), Blocked> {
        let charset = blob::charset(item.mime);
        let reading = blob::read(item.encoded, &charset);
        if reading.is_binary {
            // Nobody can look into it, and it is not what it says (SECURITY 7).
            return self.refuse(item, "media_type_mismatch", known);
        }
        // Where there is none it is read as it stands, with everything that can be decoded in it.
        let texts = reading.texts;
        let exact = texts.iter().any(|one| one.exact);
        if exact {
            self.exempt.push(item.data);
        }
        let read = format!("read {charset}");
        let key = known.key(&read, item.encoded);
        if known.has(key) {
            return Ok(());
        }
        for one in &texts {
            match item.sanitizer.look(&Json::string(&one.text), item.subject) {
                Verdict::Clean => {}
                Verdict::Flagged(marks) => self.marks.join(&marks),
                Verdict::Changed(text, marks) => {
                    self.marks.join(&marks);
                    let text = text.root().as_str().unwrap_or_default();
                    let blob = one.encoded_like(&text);
                    // What is read in two ways is read once more.
                    if texts.len() == 1 {
                        known.note(known.key(&read, &blob));
                    }
                    if !exact {
                        self.exempt.push(item.data);
                    }
                    self.blobs.push((item.data, blob));
                    return Ok(());
                }
                Verdict::Blocked(blocked) => return Err(blocked),
            }
        }
        if !texts.is_empty() {
            known.note(key);
        }
        Ok(())
    }
}

impl Refused {
    fn of(item: &Item<'_>, rule: &'static str) -> Self {
        Self {
            span: item.span,
            rule,
            length: item.encoded.len(),
            uri: item.uri,
        }
    }
}

/// Whether the last of them is this item.
fn is_last(refused: &[Refused], item: &Item<'_>) -> bool {
    refused.last().is_some_and(|last| last.span == item.span)
}

/// How many there are by each rule.
fn by_rule(refused: &[&Refused]) -> Vec<(&'static str, u32)> {
    let mut rules: Vec<(&str, u32)> = Vec::new();
    for refused in refused {
        match rules.iter_mut().find(|(rule, _)| *rule == refused.rule) {
            Some((_, times)) => *times += 1,
            None => rules.push((refused.rule, 1)),
        }
    }
    rules
}

/// Where the items are that begin at these places, which rise.
fn pointers(value: &Json, places: &[usize]) -> Vec<String> {
    // Names have not been looked at yet: those that are not plain words may be anything.
    let text = value.as_str();
    let is_odd = |name: Span| {
        let name = &text[name.start..name.end];
        name.len() > 24 || !name.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    value.pointers(places, is_odd)
}
